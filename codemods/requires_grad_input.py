"""Input data with `requires_grad=True` is used before a loop, and what is computed from it has a graph.
The first backward frees that graph, and the second iteration raises "Trying to backward through the graph a
second time".

    x = torch.randn((100, 1), requires_grad=True)   =>   x = torch.randn((100, 1))
    y = 1 + 2 * x
    for epoch in range(n):
        loss = loss_fn(model(x), y)
        loss.backward()

Data is not trained: it needs no gradient.

When not to fix it: where the gradient with respect to the data is needed. Then compute what depends on it
inside the loop.

Preconditions:

* the freed graph was built before the loop and leads only to tensors that were created with
  `requires_grad=True` written out;
* no optimizer owns them, nothing reads their gradient or differentiates with respect to them (adversarial
  examples, gradient penalties and style transfer do).

By hand: drop `requires_grad=True` from what is data; if it is a parameter, compute what depends on it inside
the loop.

Effect: repairs.

Severity: error.
Clause: autograd can compute each gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import Backward, Leaf, NonLeaf, reachable_nodes
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, of_kind
from gradfix.core.codemod import Claim, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.rules.diagnosis import Diagnosis, diagnose
from gradfix.rules.edits import (
    line,
    note,
    receiver,
    requires_grad_call,
    shown,
    within_file,
    without_requires_grad,
)


@dataclass(eq=False)
class Outside:
    """A backward in a loop that goes through a graph built before it."""

    run: Run
    event: Backward
    leaves: list[Leaf]


def find(program: Program) -> Iterator[Finding]:
    """Report each graph that is built before a loop and traversed in every iteration of it."""
    for outside in program.certain_observations(graphs_outside, lambda o: o.event.site, raises=True):
        event = outside.event
        if not outside.leaves or any(leaf.label != "tensor" for leaf in outside.leaves):
            continue  # the graph of a network: see graph-used-twice
        assert isinstance(event.site, ast.Call)
        assert event.failure is not None and event.failure.node is not None
        origin = event.failure.node.site
        notes = [note(origin, "computed once, before the loop, with a graph")]
        notes += [
            note(leaf.created, "because this requires grad")
            for leaf in _created(outside)
            if leaf.created is not None
        ]
        notes.append(note(event.site, "every iteration goes through it: the second one raises"))
        fixes = within_file(_fixes(program, outside))
        source = shown(program, origin) if isinstance(origin, ast.expr) else "it"
        yield Finding(
            "requires-grad-input",
            f"`{receiver(program, event)}` goes through the graph of `{source}`, "
            "which the backward of the first iteration frees",
            Span.of(_created(outside)[0].created if fixes else event.site),  # type: ignore[arg-type]
            tuple(notes),
            fixes,
            event.failure.kind,
        )


def graphs_outside(run: Run) -> dict[Hashable, Outside]:
    """Failures at nodes that are older than the loop."""
    found: dict[Hashable, Outside] = {}
    taken = {event.node for event in of_kind(run, NonLeaf)}
    for event in backwards(run):
        if diagnose(run, event) is not Diagnosis.OUTSIDE:
            continue
        assert event.failure is not None and event.failure.node is not None
        depth = len(event.failure.node.loops)
        older = [n for n in event.visited if len(n.loops) <= depth and n.loops == event.loops[: len(n.loops)]]
        if not taken.isdisjoint(older):
            continue  # It is meant to be trained, and is no leaf: see gradient-of-non-leaf.
        leaves = {leaf: None for n in reachable_nodes([(n, True) for n in older]) for leaf, _, _ in n.leaves}
        found.setdefault(event.site, Outside(run, event, list(leaves)))
    return found


def _created(outside: Outside) -> list[Leaf]:
    return [leaf for leaf in outside.leaves if requires_grad_call(leaf) is not None]


def _fixes(program: Program, outside: Outside) -> Iterator[Fix]:
    run = outside.run
    read = {leaf for _, leaf in run.grad_reads}
    calls = [requires_grad_call(leaf) for leaf in outside.leaves]
    if not calls or any(call is None for call in calls):
        return
    if not read.isdisjoint(outside.leaves):
        return
    edits = [without_requires_grad(program, call) for call in dict.fromkeys(calls) if call is not None]
    yield Fix(
        "drop requires_grad=True from the data",
        Effect.REPAIRS,
        tuple(edits),
        Claim("E1", line(outside.event.site)),
    )
