"""Two losses are backpropagated through one graph, and the first backward has freed it.

    loss_a.backward()          =>   (loss_a + loss_b).backward()
    loss_b.backward()
    optimizer.step()                optimizer.step()

Autograd frees what a graph saved as soon as a backward has used it; the second backward raises "Trying to
backward through the graph a second time".

Which repair:

* one optimizer (or none) consumes both gradients, and nothing looks at or clears gradients in between:
  the losses are summed into one backward. The gradients are those of two backwards but for rounding;
* otherwise `retain_graph=True` goes on all but the last traversal, so that each gradient arrives at its
  own moment.

A graph that is traversed twice because a loss leaked into another network, or because a prediction or a
state was kept too long, is not repaired here: retaining it would hide that mistake (see undetached-fake,
stale-forward, carried-hidden-state, requires-grad-input).

Effect: repairs.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.graph import Backward, Change, Step, ZeroGrad, reach
from gradfix.autograd.interpreter import Run
from gradfix.autograd.questions import backwards, consumers
from gradfix.autograd.training_step import Program
from gradfix.codemod import Claim, Edit, Effect, Finding, Fix, RemoveStatement, ReplaceExpression, Span
from gradfix.diagnosis import Diagnosis, diagnose
from gradfix.edits import add_retain, names_bound, names_read, note, offered, receiver


def find(program: Program) -> Iterator[Finding]:
    """Report each second traversal of a freed graph that no other codemod explains."""
    for entry in program.entries:
        for run, event in entry.certain(used_twice, lambda f: f[1].site, raises=True):
            assert event.failure is not None and isinstance(event.failure.culprit, Backward)
            assert isinstance(event.site, ast.Call)
            first = event.failure.culprit
            again = "this same call" if first.site is event.site else f"`{receiver(program, first)}`"
            yield Finding(
                "graph-used-twice",
                f"the graph of `{receiver(program, event)}` was freed by the backward of {again}",
                Span.of(event.site),
                (
                    note(first.site, "this backward frees the graph"),
                    note(event.site, "this one goes through it again: autograd raises"),
                ),
                offered(_fixes(program, run, event)),
            )


def used_twice(run: Run) -> dict[Hashable, tuple[Run, Backward]]:
    """Second traversals that are nothing but that."""
    return {
        event.site: (run, event)
        for event in reversed(list(backwards(run)))
        if diagnose(run, event) is Diagnosis.USED_TWICE or _of_a_network(run, event)
    }


def _of_a_network(run: Run, event: Backward) -> bool:
    """Whether what was computed before the loop, and is traversed in each pass, is a network's output."""
    if diagnose(run, event) is not Diagnosis.OUTSIDE:
        return False
    assert event.failure is not None
    assert event.failure.node is not None
    below = reach([(event.failure.node, True)])
    return any(leaf.label != "tensor" for node in below for leaf, _, _ in node.leaves)


def _fixes(program: Program, run: Run, event: Backward) -> Iterator[Fix]:
    group = _group(run, event)
    if len(group) < 2:
        return
    claim = Claim("E1", getattr(event.site, "lineno", None))
    summed = _summed(program, run, group)
    if summed is not None:
        yield Fix("sum the losses into one backward", Effect.REPAIRS, tuple(summed), claim)
    edits = [add_retain(program, member) for member in group[:-1] if member.retain is not True]
    if all(edit is not None for edit in edits):
        yield Fix(
            "keep the graph for the later backward",
            Effect.REPAIRS,
            tuple(edit for edit in edits if edit is not None),
            claim,
        )


def _group(run: Run, event: Backward) -> list[Backward]:
    """All traversals of the graph in this pass, in order, each call once."""
    assert event.failure is not None
    first = event.failure.culprit
    shared = {n for n in event.visited if isinstance(first, Backward) and n in first.visited}
    members = [
        b
        for b in backwards(run)
        if b.path == event.path and any(n in shared for n in b.visited) and b.certain
    ]
    if len({b.site for b in members}) < len(members):
        return []
    return members


def _summed(program: Program, run: Run, group: list[Backward]) -> list[Edit] | None:
    statements = [program.statement(b.site) for b in group]
    plain = all(
        isinstance(s, ast.Expr) and s.value is b.site and b.accumulates and _only_retain(b.site)
        for s, b in zip(statements, group)
    )
    if not plain or any(program.block(s) is not program.block(statements[0]) for s in statements):
        return None
    owners = [consumers(run, b) for b in group]
    if len(owners[0]) > 1 or any(o != owners[0] for o in owners):
        return None
    first, last = group[0].serial, group[-1].serial
    between = [e for e in run.events if first < e.serial < last and isinstance(e, (Step, ZeroGrad, Change))]
    if between or run.grad_read_between(first, last):
        return None
    block = program.block(statements[0])
    inside = block[block.index(statements[0]) + 1 : block.index(statements[-1])]
    bound = {name for s in inside for name in names_bound(s)}
    if any(names_read(r) & bound for b in group[:-1] for r in b.receivers):
        return None
    texts = [_term(program, b) for b in group]
    target = group[-1].receivers[0]
    edits: list[Edit] = [RemoveStatement(Span.of(s)) for s in statements[:-1]]
    return [*edits, ReplaceExpression(Span.of(target), f"({' + '.join(texts)})")]


def _only_retain(site: ast.AST) -> bool:
    return (
        isinstance(site, ast.Call)
        and isinstance(site.func, ast.Attribute)
        and not site.args
        and not site.keywords
    )


def _term(program: Program, event: Backward) -> str:
    expression = event.receivers[0]
    text = program.segment(expression)
    return text if isinstance(expression, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"
