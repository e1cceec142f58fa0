"""Which interpreter runs the script."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from gradfix import programs, trust
from gradfix.verify import made, starting
from gradfix.verify.command import project_root

NAMES = (".venv", "venv", "env")
"""What environments beside the code are called."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that can run the script."""

    executable: str
    chosen: str
    """How it was chosen, for people."""
    passed_over: tuple[str, ...] = ()
    """What would have come first, each with the reason why it did not."""


def choose_interpreter(path: Path, explicit: str | Interpreter | None = None) -> Interpreter | str:
    """The interpreter for the script at ``path``, or the reason why there is none.

    ``explicit`` wins; otherwise the first of these that has torch: a virtual environment named
    ``.venv``, ``venv`` or ``env`` beside the script or above it, the active one, gradfix's own. What may have
    come with the code is not started (see :mod:`gradfix.trust`).
    """
    code = (project_root(path),)
    if explicit is not None:
        return _explicit(explicit, code)
    passed_over: list[str] = []
    tried: list[str] = []
    for executable, chosen in _candidates(path):
        if not chosen:
            decided = trust.verdict(executable)
            if not decided.allowed:
                passed_over.append(not_started(executable, decided.why))
                continue
            chosen = f"{trust.shown(executable)} ({decided.why})"
        tried.append(chosen)
        if _has_torch(executable, code):
            return Interpreter(executable, chosen, tuple(passed_over))
        passed_over.append(f"not used: {chosen} has no torch")
    reason = f"no interpreter has torch (tried {', '.join(dict.fromkeys(tried))}); name one with --python"
    refused = [line for line in passed_over if line.startswith(_NOT_STARTED)]
    return "; ".join([reason, *refused])


def usual_interpreter() -> Interpreter | str:
    """The interpreter that a user's command is typed with: the active environment's, else gradfix's own."""
    tried = []
    for executable, chosen in _at_hand():
        if _has_torch(executable):
            return Interpreter(executable, chosen)
        tried.append(chosen)
    where = " nor in ".join(tried)
    return f"torch is not in {where}; activate the environment that has it, or name its --python"


_NOT_STARTED = "not started: "


def not_started(executable: str, why: str) -> str:
    """What is said of an interpreter that is not started, and how to allow it."""
    shown = trust.shown(executable)
    return f"{_NOT_STARTED}{shown} {trust.printable(why)}; allow it with `gradfix trust {shlex.quote(shown)}`"


def configured_interpreter(named: str) -> Interpreter | str:
    """The interpreter that a configuration names, or why it is not started: both may come with the code."""
    found = programs.find(named)
    if found is None:
        return f"there is no Python interpreter {named!r}"
    if not trust.is_named_like_one(found):
        return f"{named} is not called what an interpreter is; name it with --python"
    chosen = f"{trust.shown(found)} (tool.gradfix.verify.python"
    if found == programs.find(os.path.basename(found)):
        return Interpreter(found, f"{os.path.basename(found)} on PATH (tool.gradfix.verify.python)")
    decided = trust.verdict(found)
    if decided.allowed:
        return Interpreter(found, f"{chosen}; {decided.why})")
    return not_started(found, decided.why)


def _explicit(explicit: str | Interpreter, code: tuple[Path, ...]) -> Interpreter | str:
    if isinstance(explicit, str):
        found = programs.find(explicit)
        if found is None:
            return f"{explicit} is not an interpreter that can be run"
        explicit = Interpreter(found, "--python")
    return explicit if _has_torch(explicit.executable, code) else f"{explicit.executable} has no torch"


def _candidates(path: Path) -> Iterator[tuple[str, str]]:
    """Interpreters, and how each is chosen: an empty text for those of which it has to be decided."""
    # Without `..`, so that what is decided upon and what is started are one.
    for folder in Path(os.path.abspath(path)).parents:
        for name in NAMES:
            executable = trust.interpreter_in(folder / name)
            if executable is not None:
                yield executable, ""
    yield from _at_hand()


def _at_hand() -> Iterator[tuple[str, str]]:
    """Interpreters that the user has started already, or has had set up."""
    active = os.environ.get("VIRTUAL_ENV")
    if active and os.path.isabs(active) and (executable := trust.interpreter_in(active)):
        yield executable, trust.ACTIVE
    yield sys.executable, trust.OWN


def _has_torch(executable: str, code: Collection[Path] = ()) -> bool:
    """Whether an interpreter finds torch outside the ``code``; it does not import it."""
    if (environment := made.environment_of(executable)) is not None:
        return environment.has("torch")
    return _finds_torch(executable, frozenset(starting.environment(code).items()))


@functools.cache
def _finds_torch(executable: str, variables: frozenset[tuple[str, str]]) -> bool:
    try:
        return starting.ask(executable, _FIND, dict(variables)) == "True"
    except starting.NoAnswer:
        return False


_FIND = "import importlib.util, sys; sys.stdout.write(str(importlib.util.find_spec('torch') is not None))"
