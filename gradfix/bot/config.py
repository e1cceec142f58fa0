"""``[tool.gradfix.bot]``: how the bot behaves in a repository; read from the base branch only.

A pull request can change its own ``pyproject.toml``; what it says there concerns nobody before it is merged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gradfix.bot.errors import UsageError
from gradfix.project.configuration import near_miss

GROUPS = ("codemod", "file", "all")
REBUILD = "gradfix-rebuild"
"""The label by which a person asks the bot to rebuild a branch that a person has pushed to."""

MOST = 100
"""The largest number that a key takes."""
CHOICES = {"group": GROUPS, "rebase": ("needed", "always")}
_IDENTITY = re.compile(r"[^<>\x00-\x1f\x7f]+ <[^<>@\s]+@[^<>@\s]+>")


@dataclass(frozen=True, slots=True)
class BotConfig:
    """The table; its keys are these names with dashes."""

    group: str = "codemod"
    """One pull request for each ``codemod``, for each ``file``, or one for ``all``."""
    max_open: int = 3
    """How many pull requests of the bot may be open at a time."""
    labels: tuple[str, ...] = ()
    """What new pull requests are labelled with."""
    unverified: bool = False
    """Also propose rewrites that could not be verified by running the code."""
    author: str = "gradfix <gradfix@noreply.invalid>"
    """Who the commits are by."""
    sign_off: bool = False
    """Whether the author signs off on each commit (developer certificate of origin)."""
    draft: bool = False
    """Whether pull requests are opened as drafts."""
    rebase: str = "needed"
    """When a branch is built anew on the base branch: when it is ``needed``, since merging it would not give
    the same, or ``always`` when the base branch has moved."""


def read(pyproject: bytes | None) -> BotConfig:
    """The configuration in the bytes of a ``pyproject.toml``; the defaults where there is none.

    Raises:
        UsageError: it is no TOML, or the table holds something that it cannot hold.
    """
    if pyproject is None or b"gradfix" not in pyproject:
        return BotConfig()
    try:
        tools = tomllib.loads(pyproject.decode()).get("tool", {})
        table = tools.get("gradfix", {}).get("bot", {})
    except (ValueError, AttributeError):
        raise UsageError("pyproject.toml on the base branch is not valid TOML") from None
    if not isinstance(table, dict):
        raise UsageError("tool.gradfix.bot must be a table")
    return _from(table)


def _from(table: Mapping[str, object]) -> BotConfig:
    known = {field.name.replace("_", "-"): field for field in fields(BotConfig)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise UsageError(f"unknown key {key!r} in [tool.gradfix.bot]{near_miss(key, known)}")
        wanted = _wanted(key, known[key].default, value)
        if wanted is not None:
            raise UsageError(f"tool.gradfix.bot.{key} must be {wanted}")
        values[known[key].name] = tuple(value) if isinstance(value, list) else value
    return BotConfig(**values)


def _wanted(key: str, default: object, value: object) -> str | None:
    """What ``key`` takes, if ``value`` is not that."""
    if key in CHOICES:
        return None if value in CHOICES[key] else f"one of {', '.join(CHOICES[key])}"
    if key == "author":
        valid = isinstance(value, str) and _IDENTITY.fullmatch(value)
        return None if valid else "a name with an address: Name <name@example.org>"
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(default, int):
        fine = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST
        return None if fine else f"a number from 0 to {MOST}"
    fine = isinstance(value, list) and all(isinstance(item, str) and _is_label(item) for item in value)
    return None if fine else "a list of labels"


def _is_label(text: str) -> bool:
    # GitLab separates labels by commas.
    return 0 < len(text) <= 50 and text.isprintable() and "," not in text
