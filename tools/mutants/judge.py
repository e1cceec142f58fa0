"""Runs the original and its mutants on the stage, and says from what they did whether a mutant is faulty.

The judge knows nothing of gradfix's model. It compares two recordings of real autograd: the error, and
what every optimizer consumed at every step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradfix.verify import claims
from gradfix.verify.jobs import Job, Limits
from gradfix.verify.recording.records import Recording
from gradfix.verify.runner import Runner

STAGE = Path(__file__).with_name("stage.py").read_text(encoding="utf-8")
LIMITS = Limits(steps=48, backwards=64, seconds=60.0)


def job(path: Path, root: Path, text: str, entry: str, watched: Iterable[int]) -> Job:
    """A run of ``text`` in the place of the file at ``path``; as a script, or from one function of it.

    The whole stage stands on the first line, so that lines keep their numbers.
    """
    stage = (
        f"_s = dict(__name__='stage'); exec(compile({STAGE!r}, '<stage>', 'exec', dont_inherit=True), _s); "
        f"_s['perform']({str(path)!r}, {str(root)!r}, {text!r}, {entry!r}, {sorted(watched)!r})\n"
    )
    return Job(path, stage + "pass\n" * text.count("\n"), limits=LIMITS)


def ran(recording: Recording) -> set[int]:
    """The watched lines that a run has executed."""
    return {int(number) for number in re.findall(r"^ran (\d+)$", recording.output, re.MULTILINE)}


def autograd_error(recording: Recording) -> str | None:
    """The error that autograd ended the run with."""
    crash = recording.crash
    if crash is not None:
        return f"{crash.kind}@{crash.place.line}"
    return None


@dataclass(frozen=True)
class Verdict:
    """What two runs show of a change."""

    kind: str
    """``raises``, ``differs``, ``same``, or ``undecided``."""
    why: str
    shows_no_difference: bool = False
    """Undecided, as some optimizer stays idle; the others consume the same."""


def usable(recording: Recording) -> str | None:
    """Why a run of the original says nothing, if so."""
    error = autograd_error(recording)
    if error:
        return f"the original raises {error}"
    if len(recording.steps) < 2:
        failure = recording.uncaught
        reason = f"{failure.type}: {claims.first_line(failure.message)} ({failure.place})" if failure else ""
        return f"fewer than two steps ({recording.ending}) {reason}"
    return None


def compare(original: Recording, mutant: Recording) -> Verdict:
    """Whether a change makes a difference to what optimizers consume."""
    error = autograd_error(mutant)
    if error:
        return Verdict("raises", error)
    if mutant.uncaught is not None and original.uncaught is None:
        stop = f"the mutant stops: {mutant.uncaught.type} {mutant.uncaught.message[:80]}"
        if not claims.same_course(original, mutant):
            return Verdict("differs", f"other gradients are consumed before {stop}")
        return Verdict("undecided", stop)
    cut = {"steps", "backwards", "seconds", "killed"} & {original.ending, mutant.ending}
    if len(mutant.steps) != len(original.steps) and not cut:
        return Verdict("differs", f"{len(mutant.steps)} steps instead of {len(original.steps)}")
    idle = [
        o.name for o in original.optimizers if original.steps_of(o.index) and not moving(original, o.index)
    ]
    if not claims.same_course(original, mutant):
        # What no optimizer steps may belong to one that the stage could not give it to.
        if not idle or isinstance(claims.follow(original, mutant), str):
            return Verdict("differs", "other gradients are consumed")
    if {"seconds", "killed"} & {original.ending, mutant.ending}:
        return Verdict("undecided", "no difference up to where the time was over")
    if idle:
        why = f"on the stage {idle[0]} consumes nothing in the original either"
        return Verdict("undecided", why, claims.same_course(original, mutant))
    return Verdict("same", "the same gradients are consumed")


def moving(recording: Recording, optimizer: int) -> bool:
    """Whether an optimizer ever consumes a gradient that is not zero."""
    return any(state.moves for step in recording.steps_of(optimizer) for state in step.parameters)


def run(jobs: Sequence[Job], python: str | None, seconds: float = 2400.0) -> list[Recording]:
    """All runs, with one import of torch."""
    import sys

    with Runner(python or sys.executable, workers=2, total=seconds) as runner:
        return runner.run(jobs)
