"""How far a run got, and what it did not execute."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import replace

from gradfix.core.errors import WORDS, quoted
from gradfix.verify.recording.records import RecordedFailure, Recording


def summary(recording: Recording) -> str:
    """A run in one line: ``raised "..." at line 27 in lossG.backward() after 1 step of optimD``."""
    error = recording.crash or recording.uncaught
    if error is None:
        why = {
            "seconds": ", until its time was spent",
            "killed": f", then {recording.detail}",
            "died": f", then {recording.detail}",
            "values": f", then {recording.detail}",
            "trouble": ", then gradfix's recorder failed",
        }
        return recording.ran() + why.get(recording.ending, "")
    call = f" in {_backward(error.place.receiver)}" if error.place.receiver else ""
    reached = until(recording, error).ran()
    return f"raised {spoken(error)} at {error.place}{call} after " + reached.removeprefix("ran ")


def spoken(error: RecordedFailure) -> str:
    """An error in the words of whoever raises it: autograd's, or its type and what it says."""
    return quoted(error.kind) if error.kind in WORDS else f"{error.type} ({first_line(error.message)})"


def _backward(receiver: str) -> str:
    """The backward call of an expression, as it is written."""
    with suppress(SyntaxError, ValueError):
        return ast.unparse(ast.parse(f"({receiver}).backward()", mode="eval"))
    return f"{receiver}.backward()"


ENOUGH = 2
"""Steps of each optimizer without which nothing is known of how a program goes on."""


def missed_by(run: Recording, which: str) -> str | None:
    """Which changed lines a run did not execute, in words; ``which`` program it ran is for the message."""
    lines = sorted({piece[0] for piece, executed in run.reached.items() if not executed})
    if not lines:
        return None
    what = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    statements = {piece[0] for piece, executed in run.reached.items() if executed} & {*lines}
    part = "a part of " if len(statements) == len(lines) else ""
    return f"{part}{what} of {which}, which the fix changes, never ran"


def too_few(run: Recording) -> str | None:
    """Why too little is known of an optimizer, if a run has ended by its budget before that stepped twice."""
    if run.ending in ("finished", "error"):
        return None
    for optimizer in run.optimizers:
        count = len(run.steps_of(optimizer.index))
        if count < ENOUGH:
            taken = "takes no step" if not count else "takes only one step"
            return f"{optimizer.name} {taken} in it, which is too little to compare"
    return None


def incomplete(run: Recording) -> bool:
    """Whether a run missed changed code, or an optimizer took too few steps in it."""
    return missed_by(run, "") is not None or too_few(run) is not None


def first_line(text: str) -> str:
    """The first line of a message, which may be empty."""
    return text.splitlines()[0] if text else ""


def until(recording: Recording, error: RecordedFailure) -> Recording:
    """The recording up to an error."""
    return replace(recording, events=recording.events[: recording.events.index(error)])


def each_step(count: int) -> str:
    """All of so many steps, in words."""
    return "the only step" if count == 1 else f"each of {count} steps"
