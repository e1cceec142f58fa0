"""Whether the original does what was predicted, and the fixed program gets past it."""

from __future__ import annotations

import difflib

from gradfix.core.codemod import Effect
from gradfix.core.errors import quoted
from gradfix.verify.checks import Check
from gradfix.verify.claims.case import Case
from gradfix.verify.claims.course import missed_by, spoken, too_few, until
from gradfix.verify.claims.side_effects import longest
from gradfix.verify.claims.verdicts import Faults
from gradfix.verify.recording.records import RecordedFailure, Recording


def original(case: Case) -> Check:
    """Whether the original does what was predicted."""
    claim, crash, name = case.claim, case.before.crash, "original"
    if claim.raises is not None:
        predicted = quoted(claim.raises) + (f" at line {claim.raises_line}" if claim.raises_line else "")
        if crash is None:
            if case.before.ending == "finished":
                return Check(name, "fails", f"the original runs; predicted was {predicted}")
            return Check(name, "not checked", f"the original did not get as far as {predicted}")
        where = claim.raises_line is None or crash.place.covers(claim.raises_line)
        if crash.kind == claim.raises and where:
            return Check(name, "holds", f"the original raises {spoken(crash)} at {crash.place}, as predicted")
        # Of two calls that would raise, which comes first says nothing about the repair.
        detail = f"the original raises {spoken(crash)} at {crash.place}; predicted was {predicted}"
        return Check(name, "not checked", detail)
    if crash is not None:
        detail = f"the original raises {spoken(crash)} at {crash.place}, which is another mistake"
        return Check(name, "not checked", detail)
    if claim.stops is not None:
        return _stopped_by(case, claim.stops)
    if case.effect is Effect.REPAIRS:
        idle = [step for step in case.before.steps if not step.consumes]
        if not idle:
            return Check(name, "fails", "every step of the original uses a gradient, and nothing raises")
        who = case.before.optimizers[idle[0].optimizer].name
        return Check(name, "holds", f"the original runs, and a step of {who} finds no gradient, as predicted")
    return Check(name, "holds", "the original runs, as predicted")


def _stopped_by(case: Case, text: str) -> Check:
    """Whether the original ends by an error that says ``text``, as predicted."""
    error = case.before.uncaught
    if error is None or text not in error.message:
        return Check("original", "not checked", f"the original does not raise here: {text}")
    return Check("original", "holds", f"the original raises {error.type} at {error.place}, as predicted")


def crashes(case: Case, original: Faults, fixed: Faults) -> list[Check]:
    """Whether every error of autograd that stops a version is explained by a finding."""
    for run, faults, which in (
        (case.before, original, "the original"),
        (case.after, fixed, "the fixed program"),
    ):
        error = run.crash
        if error is None or faults.explain(error):
            continue
        if run is case.before and error.kind == case.claim.raises:
            continue
        detail = f"{which} raises {spoken(error)} at {error.place}, which no finding explains"
        return [Check("crash", "not checked", detail)]
    return []


def fixed_runs(case: Case) -> Check:
    """Whether the fixed program gets past the place where the original stops."""
    name, before, after = "fixed-runs", case.before, case.after
    error = after.crash or after.uncaught
    if error is None:
        if after.ending == "trouble":
            return Check(name, "not checked", f"gradfix's recorder failed: {after.detail.strip()[-200:]}")
        if after.ending == "died" and (before.ending, before.detail) != (after.ending, after.detail):
            return Check(name, "fails", f"the fixed program {after.ran()}, then {after.detail}")
        if after.ending in ("seconds", "killed", "values") and not further(case):
            why = f", then {after.detail}" if after.ending == "values" else " before the time was up"
            return Check(name, "not checked", f"the fixed program {after.ran()}{why}")
        return Check(name, "holds", f"the fixed program {after.ran()}")
    reached = until(after, error).ran()
    stops = f"the fixed program {reached}, then raises {spoken(error)} at {error.place}"
    originals = [r for r in (before, case.reference) if r is not None]
    as_before = any(
        known.same_as(error) and same_place(case, known, error)
        for recording in originals
        for known in (recording.crash, recording.uncaught)
        if known is not None and not (recording is before and known is before.crash and case.claim.raises)
    )
    if as_before:
        return Check(name, "holds" if error.autograd else "not checked", f"{stops}, as the original does")
    if before.crash is None or not further(case):
        return Check(name, "fails", stops)
    if error.autograd:
        if same_place(case, before.crash, error):
            return Check(name, "fails", f"{stops}, where the original did")
        return Check(name, "holds", f"as far as {error.place}: {stops}, which is another mistake")
    if error.type in ("FileNotFoundError", "ModuleNotFoundError", "PermissionError", "SystemExit"):
        return Check(name, "not checked", stops)
    return Check(name, "fails", stops)


def reached(case: Case) -> list[Check]:
    """Whether both programs have come to what the rewrite changes."""
    original = longest(case.before, case.reference)
    missed = missed_by(case.after, "the fixed program")
    if missed is None and original.crash is None and original.uncaught is None:
        missed = missed_by(original, "the original")
    if missed is not None:
        return [Check("reached", "not checked", missed)]
    watched = case.after.reached
    if not watched:
        return []
    which = "what was changed, and what uses it," if len(watched) > 1 else "the changed statement"
    return [Check("reached", "holds", f"{which} was executed")]


def stepped(case: Case) -> list[Check]:
    """Whether every optimizer has stepped twice in both programs, unless they end by themselves."""
    original = longest(case.before, case.reference)
    runs = [(case.after, "the fixed program")]
    if original.crash is None and original.uncaught is None:
        runs.append((original, "the original"))
    for run, which in runs:
        why = too_few(run)
        if why is not None:
            return [Check("stepped", "not checked", f"{which} {run.ran()}: {why}")]
    once = [one.name for one in case.after.optimizers if len(case.after.steps_of(one.index)) == 1]
    if once and case.after.ending == "finished":
        return [Check("stepped", "holds", f"the fixed program ends by itself after one step of {once[0]}")]
    return []


def further(case: Case) -> bool:
    """Whether the fixed program got further than the original before anything was raised."""

    def progress(recording: Recording) -> tuple[int, int]:
        error = recording.crash or recording.uncaught
        reached = until(recording, error) if error else recording
        return len(reached.steps), len(reached.backwards)

    return progress(case.after) > progress(case.before)


def same_place(case: Case, original: RecordedFailure, fixed: RecordedFailure) -> bool:
    """Whether two errors come from the same statement, though lines may have moved."""
    if original.place.line is None or fixed.place.line is None:
        return (original.place.file, original.place.file_line) == (
            fixed.place.file,
            fixed.place.file_line,
        )
    lines = [source.splitlines() for source in (case.before.source, case.after.source)]
    matcher = difflib.SequenceMatcher(None, lines[0], lines[1], autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if start < original.place.line <= end:
            if tag == "equal" or end - start == last - first:
                return fixed.place.covers(original.place.line - start + first)
            if tag == "replace":
                return any(fixed.place.covers(line) for line in range(first + 1, last + 1))
    # The statement was moved or removed: what it differentiated still tells.
    return original.place.receiver is not None and original.place.receiver == fixed.place.receiver
