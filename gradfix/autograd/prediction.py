"""What the model predicts that each optimizer consumes: a claim that a run can test."""

from __future__ import annotations

import ast

from gradfix.autograd.program import Program
from gradfix.autograd.trace_queries import steps


def feeds(fixed: Program, original: Program) -> tuple[tuple[int, str], ...]:
    """Which backward calls each optimizer of ``fixed`` certainly consumes, the same at every step.

    Gives pairs of the line on which ``original`` constructs the optimizer and the receiver of a backward
    call. An optimizer is left out where the model is not certain, or where its steps differ.
    """
    if not fixed.entry_points or not original.entry_points:
        return ()
    run, before = fixed.entry_points[0].runs[0], original.entry_points[0].runs[0]
    if len(run.optimizers) != len(before.optimizers) or fixed.entry_points[0].varying:
        return ()
    lines = [o.state.created.lineno for o in before.optimizers if isinstance(o.state.created, ast.expr)]
    if len(set(lines)) != len(run.optimizers):
        return ()
    found: list[tuple[int, str]] = []
    for optimizer, line in zip(run.optimizers, lines):
        consumed: set[frozenset[str]] = set()
        certain = optimizer.state.groups_known
        for step in steps(run):
            if step.optimizer is not optimizer.state:
                continue
            certain = certain and not step.doubtful
            receivers: set[str] = set()
            for backwards in step.consumed.values():
                for backward, (sure, _) in backwards.items():
                    certain = certain and sure and len(backward.receivers) == 1
                    receivers |= {ast.unparse(r) for r in backward.receivers}
            consumed.add(frozenset(receivers))
        if certain and len(consumed) == 1:
            found += [(line, receiver) for receiver in sorted(consumed.pop())]
    return tuple(found)
