"""The ledger that the model writes of a program, held against that of a run entry by entry."""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path

from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.model_ledger import ledger_of
from gradfix.autograd.program import analyze
from gradfix.autograd.trace_queries import backwards, steps
from gradfix.core.ledger import BackwardCall, Ledger
from gradfix.runtime.probe import BY_HAND
from gradfix.verify.recording.records import Recording


def differences(path: Path, recording: Recording) -> list[str] | None:
    """Where the two ledgers differ; ``None`` where the model does not follow the program pass by pass.

    Loops of many passes are run a few times by the model, and what it cannot see is no part of its ledger.
    """
    text = path.read_bytes().decode()
    program = analyze(ast.parse(text), text, path)
    if not program.entry_points or program.entry_points[0].node is not program.tree or program.messages:
        return None
    run, real = program.entry_points[0].runs[0], recording.ledger
    events, taken = [one for one in backwards(run) if one.accumulates], steps(run)
    if real is None or len(events) != len(real.calls) or len(taken) != len(real.steps):
        return None
    if [getattr(one.site, "lineno", 0) for one in events] != [one.place.line for one in recording.backwards]:
        return None
    model = ledger_of(run, events, taken)
    found = []
    for event, said, happened in zip(events, model.calls, real.calls):
        found += _call(event, said, happened)
    vague = {number for number, event in enumerate(events) if not _known(event)}
    for step, number in zip(taken, range(len(real.steps))):
        found += _step(step, number, model, real, vague)
    return found


def _call(event: Backward, said: BackwardCall, happened: BackwardCall) -> list[str]:
    """What of a call the two tell otherwise: how often it has one term, and whether weights have moved."""
    if not _known(event) or not said.terms or any(node.opaque for node in event.visited):
        return []
    told = [(max(term.count for term in one.terms), bool(one.stale)) for one in (said, happened)]
    where = f"backward call {said.index}"
    return [f"{where}: {told[1]}, the model has {told[0]}"] if told[0] != told[1] else []


def _known(event: Backward) -> bool:
    """Whether the model is certain of all that a backward call goes through."""
    return event.certain and bool(event.visited) and all(event.visited.values())


def _step(step: Step, number: int, model: Ledger, real: Ledger, vague: set[int]) -> list[str]:
    """Whether a step consumes the entries of the same calls, if the model is certain of it."""
    doubted = any(not sure for held in step.consumed.values() for sure, _ in held.values())
    beyond = any({BY_HAND, *vague} & {*calls} for calls in real.steps[number].consumed.values())
    if step.doubtful or doubted or beyond or not step.optimizer.groups_known:
        return []
    said, happened = (_largest(ledger.steps[number].consumed.values()) for ledger in (model, real))
    return [f"step {number}: {happened}, the model has {said}"] if said != happened else []


def _largest(entries: Collection[tuple[int, ...]]) -> set[frozenset[int]]:
    """What parameters hold that hold no less than others: a layer is one parameter for the model."""
    held = {frozenset(calls) for calls in entries if calls}
    return {calls for calls in held if not any(calls < others for others in held)}
