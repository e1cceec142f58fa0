"""The plan: what is to be proposed, and what running it showed. The only thing that goes from ``plan`` to
``publish``.

It is a JSON file::

    {
      "format": 2,
      "gradfix": "0.1.0",                version that made it; another one refuses it
      "base": "8d1e...",                 the commit it was made for
      "group": "codemod",                how changes are put into pull requests
      "unsafe_fixes": false,
      "scope": {                         what it is about: of other mistakes, it says nothing
        "paths": ["."],                  the files and folders that it was made for, from the root
        "codemods": ["undetached-fake"], those that were asked
        "found": ["train.py"],           files in which one of them has found something
        "failed": []                     files that could not be analysed, or not be left as they are in git
      },
      "command": {                       how scripts were run: as they are if there is nothing in it
        "script": null, "module": null, "arguments": []
      },
      "changes": [                       one file in one pull request
        {
          "group": "undetached-fake",    the pull request: a codemod, a path, or "all"
          "path": "train.py",            from the root of the repository
          "blob": "5f02...",             what git calls the file's content at the base commit
          "left": 0,                     how many findings of the same codemods the rewrites leave in the file
          "rewrites": [                  one after the other, each on what the one before it has left
            {
              "codemod": "undetached-fake",
              "diff": "--- a/train.py\\n...",
              "outcome": "proved",       or "unverified"; what was refuted is not in a plan
              "reason": "",              why it could not be verified
              "certificate": {...}       what running both versions showed; null if nothing was to be run
            }
          ]
        }
      ]
    }

``publish`` takes it as a claim of unknown origin. It makes every rewrite again, from the blob on the base
branch, and refuses the change if a diff is not the same. The certificate it cannot check; of it, only text
that has been made harmless is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradfix import __version__
from gradfix.bot import config, git
from gradfix.bot.errors import UsageError
from gradfix.pipeline.results import Outcome
from gradfix.system import files
from gradfix.verify.checks import proves

FORMAT = 2
MAX_BYTES = 64 << 20
"""A larger file is no plan."""

_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9-]{1,80}")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One fix."""

    codemod: str
    diff: str
    outcome: Outcome
    reason: str = ""
    certificate: Json | None = None

    def to_json(self) -> Json:
        """The rewrite as JSON data."""
        return {
            "codemod": self.codemod,
            "diff": self.diff,
            "outcome": str(self.outcome),
            "reason": self.reason,
            "certificate": self.certificate,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """One file in one pull request."""

    group: str
    path: str
    blob: str
    rewrites: tuple[Rewrite, ...]
    left: int = 0
    """How many findings of the same codemods the rewrites leave."""

    def to_json(self) -> Json:
        """The change as JSON data."""
        rewrites = [rewrite.to_json() for rewrite in self.rewrites]
        place = {"group": self.group, "path": self.path, "blob": self.blob, "left": self.left}
        return {**place, "rewrites": rewrites}


@dataclass(frozen=True, slots=True)
class Scope:
    """What a plan is about. What it does not propose outside of that, it does not speak against."""

    paths: tuple[str, ...]
    """Files and folders, from the root of the repository; ``.`` is all of it."""
    codemods: tuple[str, ...]
    found: tuple[str, ...] = ()
    """Files in which one of the codemods has found something, whatever became of it."""
    failed: tuple[str, ...] = ()
    """Files of which nothing could be said."""

    def covers(self, codemod: str, path: str) -> bool:
        """Whether the plan was to look for the mistake ``codemod`` in the file at ``path``."""
        within = any(one == "." or path == one or path.startswith(f"{one}/") for one in self.paths)
        return within and codemod in self.codemods

    def to_json(self) -> Json:
        """The scope as JSON data."""
        names = ("paths", "codemods", "found", "failed")
        return {name: list(getattr(self, name)) for name in names}


@dataclass(frozen=True, slots=True)
class Command:
    """How scripts were run; by themselves and without arguments if there is nothing in it."""

    script: str | None = None
    """From the root of the repository."""
    module: str | None = None
    arguments: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """The command as JSON data."""
        return {"script": self.script, "module": self.module, "arguments": list(self.arguments)}


@dataclass(frozen=True, slots=True)
class PlanFile:
    """The whole plan."""

    base: str
    group: str
    unsafe_fixes: bool
    scope: Scope
    changes: tuple[Change, ...]
    command: Command = Command()

    @property
    def groups(self) -> dict[str, tuple[Change, ...]]:
        """The changes by pull request."""
        names = dict.fromkeys(change.group for change in self.changes)
        return {name: tuple(c for c in self.changes if c.group == name) for name in names}

    def dump(self) -> str:
        """The plan as it is written."""
        content = {
            "format": FORMAT,
            "gradfix": __version__,
            "base": self.base,
            "group": self.group,
            "unsafe_fixes": self.unsafe_fixes,
            "scope": self.scope.to_json(),
            "command": self.command.to_json(),
            "changes": [change.to_json() for change in self.changes],
        }
        return json.dumps(content, indent=1) + "\n"


# ---------------------------------------------------------------------------- reading


def load(path: str) -> PlanFile:
    """The plan in the file at ``path``.

    Raises:
        UsageError: there is none, or it is not one of this version.
    """
    try:
        data = files.read(path, MAX_BYTES)
    except OSError as error:
        raise UsageError(f"the plan {path} {files.describe_error(error)}") from None
    try:
        return parse(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError("this is no plan of `gradfix bot plan`") from None


def parse(content: Mapping[str, Any]) -> PlanFile:
    """The plan in JSON data; what it does not know, it leaves out.

    Raises:
        UsageError: another version of gradfix made it.
        ValueError, KeyError, TypeError, AttributeError: it is no plan.
    """
    if content["format"] != FORMAT or content["gradfix"] != __version__:
        made = str(content["gradfix"])[:20]
        raise UsageError(f"the plan was made by gradfix {made!r}, and this is {__version__}: make it again")
    if content["group"] not in config.GROUPS:
        raise ValueError
    if not isinstance(content["changes"], list):
        raise TypeError
    changes = tuple(_change(item) for item in content["changes"])
    if len({(change.group, change.path) for change in changes}) < len(changes):
        raise ValueError
    if any(change.group != _group_of(change, content["group"]) for change in changes):
        raise ValueError  # Under other names, the same could be proposed again and again.
    base = _match(_OID, content["base"])
    scope, command = _scope(content["scope"]), _command(content["command"])
    return PlanFile(base, content["group"], content["unsafe_fixes"] is True, scope, changes, command)


def _scope(item: Mapping[str, Any]) -> Scope:
    return Scope(*(_texts(item[name]) for name in ("paths", "codemods", "found", "failed")))


def _command(item: Mapping[str, Any]) -> Command:
    script, module = (None if item[name] is None else _text(item[name]) for name in ("script", "module"))
    return Command(script, module, _texts(item["arguments"]))


def _change(item: Mapping[str, Any]) -> Change:
    rewrites = tuple(_rewrite(rewrite) for rewrite in item["rewrites"])
    path, group = _text(item["path"]), _text(item["group"])
    if not rewrites or not path or not group or not git.is_safe(path):
        raise ValueError
    if not isinstance(item["left"], int):
        raise TypeError
    return Change(group, path, _match(_OID, item["blob"]), rewrites, item["left"])


def _group_of(change: Change, group: str) -> str | None:
    """The pull request that ``change`` belongs to, if it is of one codemod where that is asked for."""
    if group == "codemod":
        names = {rewrite.codemod for rewrite in change.rewrites}
        return names.pop() if len(names) == 1 else None
    return change.path if group == "file" else "all"


def _rewrite(item: Mapping[str, Any]) -> Rewrite:
    outcome = Outcome(item["outcome"])
    certificate = item.get("certificate")
    if outcome is Outcome.REFUTED or not isinstance(certificate, dict | None):
        raise ValueError
    if outcome is Outcome.PROVED and not proves(certificate or {}):
        raise UsageError("the plan calls a rewrite proved whose certificate does not: it has been changed")
    codemod = _match(_NAME, item["codemod"])
    return Rewrite(codemod, _text(item["diff"]), outcome, _text(item.get("reason", "")), certificate)


def _match(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(map(_text, value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
