"""Which interpreter runs the script."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from gradfix.project import trust
from gradfix.system import programs
from gradfix.system.printable import printable
from gradfix.verify import starting, untrusted_environments
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

    ``explicit`` wins; otherwise the first of these that has torch: a virtual environment named ``.venv``,
    ``venv`` or ``env`` beside the script or above it that the user has allowed; the active one; one beside
    the script that the user allows when asked; gradfix's own (see :mod:`gradfix.project.trust`).
    """
    code = (project_root(path),)
    if explicit is not None:
        return _explicit(explicit, code)
    tried: list[str] = []
    refused: list[str] = []
    for executable, chosen in _candidates(path, refused):
        if _has_torch(executable, code):
            unused = (f"not used: {one} has no torch" for one in dict.fromkeys(tried))
            return Interpreter(executable, chosen, (*refused, *unused))
        tried.append(chosen)
    described = f"torch is not in {' nor in '.join(dict.fromkeys(tried))}"
    return "; ".join([described, *(refused or ["name an interpreter that has it with --python"])])


def usual_interpreter() -> Interpreter | str:
    """The interpreter that a user's command is typed with: the active environment's, else gradfix's own."""
    tried = []
    for executable, chosen in _at_hand():
        if _has_torch(executable):
            return Interpreter(executable, chosen)
        tried.append(chosen)
    where = " nor in ".join(tried)
    return f"torch is not in {where}; activate the environment that has it, or name its --python"


def not_started(executable: str, decided: trust.Verdict) -> str:
    """What is said of an interpreter that is not started, and what its user can do."""
    name = shlex.quote(trust.shown(executable))
    ways = [f"run `gradfix trust {name}`"] if decided.askable else []
    ways += ["activate it"] if trust.interpreter_in(trust.subject_of(executable)) else []
    ways += [f"give --python {shlex.quote(printable(os.path.relpath(executable)))}"]
    described = ", ".join(ways[:-1]) + " or " * (len(ways) > 1) + ways[-1]
    return f"not started: {name}, which {printable(decided.why)}: {described}"


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
    decided = trust.verdict(found, ask=True)
    if decided.allowed:
        return Interpreter(found, f"{chosen}; {decided.why})")
    return not_started(found, decided)


def _explicit(explicit: str | Interpreter, code: tuple[Path, ...]) -> Interpreter | str:
    if isinstance(explicit, str):
        found = programs.find(explicit)
        if found is None:
            return f"{explicit} is not an interpreter that can be run"
        explicit = Interpreter(found, "--python")
    return explicit if _has_torch(explicit.executable, code) else f"{explicit.executable} has no torch"


def _candidates(path: Path, refused: list[str]) -> Iterator[tuple[str, str]]:
    """Interpreters that are started, and how each is chosen; what is said of others goes to ``refused``."""
    beside = [(executable, trust.verdict(executable)) for executable in _beside(path)]
    yield from (_described(*one) for one in beside if one[1].allowed)
    *active, own = _at_hand()
    yield from active
    # Who has activated one that will do is not asked about others.
    for executable, decided in beside:
        if not decided.allowed:
            decided = trust.verdict(executable, ask=True)
            if decided.allowed:
                yield _described(executable, decided)
            else:
                refused.append(not_started(executable, decided))
    yield own


def _described(executable: str, decided: trust.Verdict) -> tuple[str, str]:
    return executable, f"{trust.shown(executable)} ({decided.why})"


def _beside(path: Path) -> Iterator[str]:
    # Without `..`, so that what is decided upon and what is started are one.
    for folder in Path(os.path.abspath(path)).parents:
        for name in NAMES:
            executable = trust.interpreter_in(folder / name)
            if executable is not None:
                yield executable


def _at_hand() -> Iterator[tuple[str, str]]:
    """Interpreters that the user has activated; and at last, the one that runs gradfix."""
    for folder in trust.active():
        if (executable := trust.interpreter_in(folder)) is not None:
            yield executable, trust.ACTIVE
    yield sys.executable, trust.OWN


def _has_torch(executable: str, code: Collection[Path] = ()) -> bool:
    """Whether an interpreter finds torch outside the ``code``; it does not import it."""
    if (environment := untrusted_environments.environment_of(executable)) is not None:
        return environment.has("torch")
    return _finds_torch(executable, frozenset(starting.environment(code).items()))


@functools.cache
def _finds_torch(executable: str, variables: frozenset[tuple[str, str]]) -> bool:
    try:
        return starting.ask(executable, _FIND, dict(variables)) == "True"
    except starting.NoAnswer:
        return False


_FIND = "import importlib.util, sys; sys.stdout.write(str(importlib.util.find_spec('torch') is not None))"
