"""Requirements in TOML: a script's own metadata (PEP 723), pyproject.toml (PEP 621, Poetry), Pipfile.

``[tool.uv]`` and what else would say where distributions come from is not read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradfix.environment.reading import Collected, Project, Stated
from gradfix.environment.requirements import ADDRESS

# The expression that PEP 723 gives.
_BLOCK = re.compile(
    r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)[ \t]*\r?$\s(?P<content>(^#(| .*)\r?$\s)+)^# ///[ \t]*\r?$"
)


def of_script(path: Path, project: Project) -> Stated:
    """What the metadata of a script says (PEP 723)."""
    text = project.text(path)
    blocks = [found for found in _BLOCK.finditer(text) if found["type"] == "script"]
    # PEP 723: more than one block of a type is an error.
    if len(blocks) != 1:
        return Stated()
    content = "".join(
        line[2:] if line.startswith("# ") else line[1:]
        for line in blocks[0]["content"].splitlines(keepends=True)
    )
    collected = Collected(f"the metadata of {project.named(path)}")
    table = _toml(content, collected)
    collected.add_all(table.get("dependencies"))
    return collected.stated(path, python_requires=_text(table.get("requires-python")))


def of_pyproject(path: Path, project: Project) -> Stated:
    """What pyproject.toml says: its dependencies, none that are optional or for development."""
    collected = Collected(project.named(path))
    table = _toml(project.text(path, collected), collected)
    standard = _table(table, "project")
    collected.add_all(standard.get("dependencies"))
    python = _text(standard.get("requires-python"))
    poetry = _table(table, "tool", "poetry", "dependencies")
    for name, wanted in poetry.items():
        if name.lower() == "python":
            python = python or _text(wanted)
        else:
            _add_poetry(name, wanted, collected)
    return collected.stated(path, python_requires=python)


def of_pipfile(path: Path, project: Project) -> Stated:
    """What a Pipfile says."""
    collected = Collected(project.named(path))
    table = _toml(project.text(path, collected), collected)
    for name, wanted in _table(table, "packages").items():
        _add_poetry(name, wanted, collected)
    python = _text(_table(table, "requires").get("python_version"))
    return collected.stated(path, python_requires=f"=={python}.*" if python else "")


def _add_poetry(name: str, wanted: object, collected: Collected) -> None:
    """Add a requirement of a table by name, whose value is a version or says more."""
    if isinstance(wanted, list):
        # By platform or Python: what they agree on is the name.
        collected.add(name)
        return
    if isinstance(wanted, Mapping):
        if any(key in wanted for key in ("git", "url", "path", "file")):
            collected.leave_out(name, ADDRESS)
            return
        if wanted.get("optional") is True:
            return
        extras = [extra for extra in wanted.get("extras") or [] if isinstance(extra, str)]
        marker = _text(wanted.get("markers"))
        specifier = _specifier(_text(wanted.get("version")) or "*")
        name = f"{name}[{','.join(extras)}]" if extras else name
        collected.add(f"{name}{specifier}{f' ; {marker}' if marker else ''}")
    else:
        collected.add(f"{name}{_specifier(_text(wanted) or '*')}")


def _specifier(poetry: str) -> str:
    """Poetry's notation of versions as PEP 440 has it: ``^1.2`` is ``>=1.2,<2``, ``1.2`` is ``==1.2``."""
    if "||" in poetry or poetry.strip() in ("", "*"):
        return ""
    return ",".join(_clause(part) for part in re.split(r"[,\s]+(?![0-9])", poetry.strip()) if part)


def _clause(part: str) -> str:
    part = part.strip()
    caret = re.fullmatch(r"([\^~])\s*([0-9]+(?:\.[0-9]+)*)(\S*)", part)
    if not caret:
        return f"=={part}" if part[:1].isdigit() else part
    numbers = caret[2].split(".")
    if caret[1] == "~":
        at = min(1, len(numbers) - 1)
    else:
        # Caret: the first number that is not 0 may not change.
        at = next((index for index, number in enumerate(numbers) if int(number)), len(numbers) - 1)
    ceiling = ".".join([*numbers[:at], str(int(numbers[at]) + 1)])
    return f">={caret[2]}{caret[3]},<{ceiling}"


def _toml(text: str, collected: Collected) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    # Deeply nested arrays of a stranger's file are a recursion.
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        collected.leave_out(collected.origin, f"it is no TOML: {error}", matters=False)
        return {}


def _table(table: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        inner = table.get(name)
        table = inner if isinstance(inner, Mapping) else {}
    return table


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
