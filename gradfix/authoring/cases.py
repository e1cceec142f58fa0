"""The programs that codemods of one's own are held to: what is found, what is written, and the proof.

A folder of codemods, as for ``--codemods``, has them in ``tests/fixtures/<codemod>/``::

    faulty.py          a program with the mistake
    faulty.fixed.py    what `gradfix apply` makes of it, byte for byte
    right.py           one that looks like it, and has to stay as it is

Each begins with comments that say what is so of it::

    # fault: default-argument      the mistake, or: none
    # raises: E1 at line 27        autograd's error and its line in this file, or: nothing
    # effect: preserves            preserves, repairs, changes, or: none
    # unproved: assigned by hand   only where no run can prove it, or it cannot run here: words of the reason

From Python, in a test::

    @pytest.mark.parametrize("case", cases.of(FOLDER), ids=str)
    def test_a_program(case):
        assert cases.differences(case) == []
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gradfix.core.codemod import BY_HAND, Effect, Finding, Severity
from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, Refusal, RequestedOptions
from gradfix.pipeline.proving import time_budget
from gradfix.pipeline.results import Attempt, FilePlan, Outcome
from gradfix.project import source
from gradfix.project.source import Problem, Source
from gradfix.rules import catalog
from gradfix.system import files

FIXTURES = os.path.join("tests", "fixtures")
"""Where the programs of a folder of codemods are."""
FIXED = ".fixed.py"
NONE = "none"
NOTHING = "nothing"
_FIELD = re.compile(r"# (fault|raises|effect|unproved): +(.*?) *\r?")
_ERROR = re.compile(r"(E[1-5]) at line (\d+)")


class CaseError(ValueError):
    """A folder of codemods, or a program for one, that is not as it has to be."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program, what it must become, and what its header says of it."""

    codemods: str
    """The folder of the codemods."""
    path: Path
    fault: str
    """The mistake that it has, or ``none``."""
    raises: tuple[str, int] | None
    """Autograd's error and its line; ``None`` if nothing is raised."""
    effect: str
    unproved: str
    """A part of the reason why no run can prove the repair, or why it cannot be run; empty if it can."""

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def fixed(self) -> Path | None:
        """What it must become; ``None`` if it must stay as it is."""
        path = self.path.with_suffix(FIXED)
        return path if path.exists() else None


class Running(NamedTuple):
    """How programs are run."""

    verify: bool = True
    python: str | None = None
    """The interpreter, if one is named."""
    allow_unsandboxed: bool = False


def of(folder: str | os.PathLike[str]) -> list[Case]:
    """The programs that the codemods in ``folder`` are held to, by codemod and name.

    Raises:
        CaseError: if there are none, or the header of one cannot be understood.
    """
    place = Path(folder)
    if not place.is_dir():
        raise CaseError(f"{place}: is not a folder of codemods")
    paths = sorted(path for path in (place / FIXTURES).glob("*/*.py") if not path.name.endswith(FIXED))
    if not paths:
        raise CaseError(f"{place / FIXTURES}: there are no programs (`gradfix new NAME` writes some)")
    return [_case(str(place), path) for path in paths]


def _case(folder: str, path: Path) -> Case:
    try:
        text = files.read(path).decode()
    except OSError as unreadable:
        raise CaseError(f"{path}: {files.describe_error(unreadable)}") from None
    except UnicodeDecodeError:
        raise CaseError(f"{path}: is not UTF-8") from None
    head = {found[1]: found[2] for line in _header(text) if (found := _FIELD.fullmatch(line))}
    fault = head.get("fault", "").split(" ")[0]
    if not fault:
        raise CaseError(f"{path}: begins with no comment `# fault: NAME`, or `# fault: none` if it is right")
    raises = head.get("raises", NOTHING)
    error = _ERROR.match(raises)
    if error is None and not raises.startswith(NOTHING):
        raise CaseError(f"{path}: `# raises: {raises}` is neither `E1 at line 27` nor `nothing`")
    effect = head.get("effect", "").split(" ")[0]
    if effect not in ("", NONE, *Effect):
        raise CaseError(f"{path}: `# effect: {effect}` is none of {', '.join(Effect)}, none")
    known = (error[1], int(error[2])) if error else None
    return Case(folder, path, catalog.normal(fault), known, effect, head.get("unproved", ""))


def _header(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if not line.startswith("#"):
            return
        yield line


def options_for(folder: str, running: Running) -> Options:
    """What programs are held to: the codemods of ``folder``, whatever the severity of what they find.

    Raises:
        CaseError: if one of them cannot be loaded, or there is none.
    """
    # That an installed package offers the same codemods is no problem: it may be this very one.
    problems = [problem for problem in catalog.load([folder]).problems if os.path.exists(problem.path)]
    if problems:
        raise CaseError(str(problems[0]))
    own = own_names(folder)
    if not own:
        raise CaseError(f"{folder}: holds no codemod")
    options = driver.prepare(
        [],
        RequestedOptions(
            codemods=(folder,),
            select=tuple(sorted(own)),
            unsafe_fixes=True,
            min_severity=Severity.INFO,
            verify=running.verify,
            unproved=True,
            python=running.python,
            allow_unsandboxed=running.allow_unsandboxed,
        ),
        configured=False,
    )
    if isinstance(options, Refusal):
        raise CaseError(options.message)
    return options


def own_names(folder: str) -> set[str]:
    """The names of the codemods in ``folder``."""
    stems = (path.stem for path in Path(folder).glob("*.py"))
    return {catalog.normal(stem) for stem in stems if not stem.startswith("_")}


def missing(folder: str, cases: list[Case], options: Options) -> Iterator[str]:
    """What the codemods of ``folder`` lack: paragraphs of their documentation, and kinds of programs."""
    own = own_names(folder)
    for codemod in options.catalog.codemods:
        if codemod.name not in own:
            continue
        paragraphs = codemod.documentation.split("\n\n")
        for begins in (BY_HAND, "Effect: "):
            if not any(one.startswith(begins) for one in paragraphs):
                yield f"{codemod.name}: its docstring has no paragraph `{begins}...`"
        mine = [case for case in cases if case.path.parent.name == codemod.name.replace("-", "_")]
        if not any(case.fault == codemod.name for case in mine):
            yield f"{codemod.name}: there is no program that has the mistake"
        if not any(case.fault == NONE for case in mine):
            yield f"{codemod.name}: there is no right program that looks like it"


def differences(case: Case, running: Running | None = None) -> list[str]:
    """What is otherwise than ``case`` says; nothing if all is as it should be.

    Raises:
        CaseError: if the codemods cannot be loaded.
    """
    return judged(case, _kept_options(case.codemods, running or Running())).differences


@lru_cache(maxsize=4)
def _kept_options(folder: str, running: Running) -> Options:
    return options_for(folder, running)


class Judged(NamedTuple):
    """What became of a program, in a word for people, and what should have been otherwise."""

    became: str
    differences: list[str]


def judged(case: Case, options: Options) -> Judged:
    """Hold the codemods to what ``case`` says."""
    parsed = source.read(str(case.path))
    if isinstance(parsed, Problem):
        return Judged("cannot be read", [str(parsed)])
    if case.fault not in (NONE, *options.selected):
        return Judged("", [f"its fault is {case.fault}, which none of these codemods finds"])
    if case.fault != NONE:  # Another one may repair the same line.
        options = replace(options, selected=frozenset({case.fault}))
    found = [] if (raised := _predicted(parsed)) == case.raises else [_other_error(raised, case.raises)]
    failed = driver.check_text(str(case.path), parsed.data, options).problems
    if failed:
        return Judged("", [problem.message for problem in failed])
    with time_budget(options) if options.verify else nullcontext():
        repaired = driver.repair(parsed, options)
    found += [problem.message for problem in repaired.problems]
    if case.fault == NONE or case.fixed is None:
        found += _touched(repaired) if case.fault == NONE else _not_left(case, repaired)
        became = "nothing found" if case.fault == NONE else "found, and left to its author"
        if options.verify and not found:
            found += _otherwise_in_a_run(case, parsed, options)
            became += ", cannot be run" if case.unproved else ", runs as its header says"
        return Judged(became, found)
    found += _not_repaired(case, case.fixed, repaired, options)
    proved = "proved" if options.verify else "not run"
    return Judged(f"found, repaired as expected, {'not provable' if case.unproved else proved}", found)


def _predicted(parsed: Source) -> tuple[str, int] | None:
    """The error of autograd that the model predicts for a run from the top."""
    from gradfix.autograd.graph import Backward, InPlaceChange
    from gradfix.autograd.program import analyze

    program = analyze(parsed.tree, parsed.text, Path(parsed.path))
    try:
        for event in program.entry_points[0].run_without_options.events if program.entry_points else ():
            raising = isinstance(event, InPlaceChange) or (isinstance(event, Backward) and event.certain)
            failure = event.failure if isinstance(event, (Backward, InPlaceChange)) and raising else None
            if failure is not None and isinstance(event.site, (ast.expr, ast.stmt)):
                return failure.kind, event.site.lineno
        return None
    finally:
        program.release()


def _other_error(raised: tuple[str, int] | None, expected: tuple[str, int] | None) -> str:
    now, then = (NOTHING if one is None else f"{one[0]} at line {one[1]}" for one in (raised, expected))
    return f"the model says that it raises {now}; its header says {then}"


def _otherwise_in_a_run(case: Case, parsed: Source, options: Options) -> Iterator[str]:
    """What is otherwise than its header says when a program that is not rewritten is run."""
    from gradfix.verify.interpreter import choose_interpreter
    from gradfix.verify.jobs import Job, Limits
    from gradfix.verify.runner import runner_for
    from gradfix.verify.sandboxes import CannotRun

    interpreter = options.interpreter or choose_interpreter(case.path)
    if isinstance(interpreter, str):
        yield f"it cannot be run: {interpreter}"
        return
    try:
        with runner_for(interpreter.executable, Limits().total, options.allow_unsandboxed) as runner:
            (recording,) = runner.run([Job(case.path, parsed.text)])
    except CannotRun as refused:
        yield f"it cannot be run: {refused}"
        return
    error = recording.uncaught
    if recording.ending in ("killed", "died", "trouble"):
        yield f"its run did not end by itself ({recording.ending}): {recording.detail}"
    shown = "" if error is None else f"{error.type}: {error.message}"
    if case.unproved:
        if case.unproved not in shown:
            yield f"its header says {case.unproved!r} of why it cannot be run; {shown or 'it can'}"
    elif (None if error is None else (error.kind, error.place.line)) != case.raises:
        where = "" if error is None else f"{shown} at line {error.place.line}"
        yield f"it raises {where or NOTHING} when it is run"


def _shown(finding: Finding) -> str:
    return f"line {finding.span.line}: {finding.code} is found: {finding.message}"


def _touched(repaired: FilePlan) -> Iterator[str]:
    """What is found in a program that is right."""
    for finding in (
        *(one.finding for one in repaired.attempts),
        *(one.finding for one in repaired.remaining),
    ):
        yield _shown(finding)


def _not_left(case: Case, repaired: FilePlan) -> Iterator[str]:
    """What is otherwise of a program whose mistake is told, and that is not rewritten."""
    codes = [one.finding.code for one in repaired.remaining]
    if codes != [case.fault]:
        yield f"{case.fault} is to be found once; found: {', '.join(codes) or NOTHING}"
    if repaired.applied:
        yield f"it is rewritten, and there is no {case.path.stem}{FIXED}:\n{_diff(repaired, repaired.before)}"


def _not_repaired(case: Case, fixed: Path, repaired: FilePlan, options: Options) -> Iterator[str]:
    """What is otherwise of a program that is to be repaired."""
    mine = [attempt for attempt in repaired.attempts if attempt.finding.code == case.fault]
    if not mine and not any(one.finding.code == case.fault for one in repaired.remaining):
        yield f"{case.fault} is not found"
        return
    if not mine:
        yield f"{case.fault} is found, and none of its fixes removes it without a new finding in its place"
    expected = files.read(fixed)
    kept = all(one.outcome is not Outcome.REFUTED for one in mine)
    if repaired.after != expected and kept:
        yield f"what is written is not {fixed.name}:\n{_diff(repaired, expected)}"
    for one in repaired.remaining if mine and kept else ():
        yield f"in what is written, {_shown(one.finding)}"
    effects = {str(attempt.fix.effect) for attempt in mine}
    if mine and case.effect and case.effect not in effects:
        yield f"its effect is {', '.join(effects)}; its header says {case.effect}"
    for attempt in mine if options.verify else ():
        yield from _not_proved(case, attempt)
    yield from _not_right(fixed, options)


def _not_proved(case: Case, attempt: Attempt) -> Iterator[str]:
    """What is wrong with the proof of a fix."""
    lines = attempt.evidence.lines() if attempt.evidence is not None else [attempt.reason]
    shown = "\n".join(lines)
    if not case.unproved:
        if attempt.outcome is not Outcome.PROVED:
            yield f"{attempt.fix.message}: {attempt.outcome}:\n{shown}"
    elif attempt.outcome is Outcome.PROVED:
        yield f"{attempt.fix.message}: it is proved, though its header says that it cannot be"
    elif case.unproved not in shown:
        yield f"{attempt.fix.message}: its header says {case.unproved!r} of why it is not proved:\n{shown}"


def _not_right(fixed: Path, options: Options) -> Iterator[str]:
    """What is wrong with a program that was repaired."""
    parsed = source.read(str(fixed))
    if isinstance(parsed, Problem):
        yield str(parsed)
        return
    if (raised := _predicted(parsed)) is not None:
        yield f"{fixed.name} raises {raised[0]} at line {raised[1]}, the model says"
    report = driver.check_text(str(fixed), parsed.data, options)
    for one in report.findings:
        yield f"{fixed.name}: {_shown(one.finding)}"


def _diff(repaired: FilePlan, expected: bytes) -> str:
    """How what is written differs from what is expected, which has the minus."""
    one, other = (data.decode(errors="replace").splitlines() for data in (expected, repaired.after))
    return "\n".join(difflib.unified_diff(one, other, "expected", "written", n=1, lineterm=""))
