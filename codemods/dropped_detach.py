"""The result of `detach()` is not used, and the tensor itself keeps its graph.
The loss still sends gradients through it.

    weight = near / far                     weight = near / far
    weight.detach()                         weight = weight.detach()
    loss = near + weight * far       =>     loss = near + weight * far
    loss.backward()                         loss.backward()

`detach()` returns a new tensor and leaves the one that it is called on as it is. A statement that does
nothing else has no effect.

When not to fix it: where the loss should train what computes the tensor. Then drop the statement.

Preconditions:

* the call is a statement by itself, of a tensor that certainly has a graph;
* the very tensor is used afterwards for a loss that is backpropagated and does not raise: what raises has a
  diagnosis of its own (`carried-hidden-state`, `undetached-fake`, `graph-used-twice`);
* every parameter that the loss reaches, it reaches in another way as well. Where some would get no gradient
  any more, several losses may be computed with the tensor, and it is a constant of some of them only.

By hand: use what `detach()` returns, `x = x.detach()`, or drop the statement.

Effect: changes.

Severity: error.
Clause: no other loss.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass
from functools import partial

from gradfix.autograd.graph import Backward, Leaf, Node
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, first_step
from gradfix.core.codemod import Claim, Effect, Finding, Fix, ReplaceStatement
from gradfix.core.span import Span
from gradfix.rules.edits import line, note, receiver, shown, within_file


@dataclass(eq=False)
class Dropped:
    """A detached tensor that nobody takes up, and a loss that is computed with the one it was made of."""

    site: ast.Call
    user: Node
    """What is computed with the tensor afterwards."""
    backward: Backward


def find(program: Program) -> Iterator[Finding]:
    """Report each `detach()` whose result is dropped."""
    for entry in program.entry_points:
        observe = partial(dropped, program=program)
        for one in entry.certain_observations(observe, lambda d: d.backward.site, raises=False):
            yield _finding(program, one)


def dropped(run: Run, program: Program) -> dict[Hashable, Dropped]:
    """By place, the calls of `detach()` without an effect, and the losses that go on through the tensor."""
    found: dict[Hashable, Dropped] = {}
    losses = [b for b in backwards(run) if b.certain]
    failing = {node for b in losses if b.failure is not None for node in b.visited}
    for serial, node, site in run.detached:
        if node in failing or not _is_statement(program, site):
            continue
        for backward in losses:
            if not backward.visited.get(node):
                continue
            users = {
                n for n in backward.visited if n.serial > serial and any(e.node is node for e in n.edges)
            }
            if not users:
                continue
            if first_step(run, backward) is not None and _reached(backward) <= _reached(
                backward, node, users
            ):
                first = min(users, key=lambda n: n.serial)
                assert isinstance(site, ast.Call)
                found[site] = Dropped(site, first, backward)
                break
    return found


def _is_statement(program: Program, site: ast.AST) -> bool:
    """Whether a call of the method `detach` is all that a statement consists of."""
    return (
        isinstance(site, ast.Call)
        and isinstance(site.func, ast.Attribute)
        and not site.args
        and line(site) > 0
        and isinstance(program.parent(site), ast.Expr)
    )


def _reached(backward: Backward, node: Node | None = None, users: Collection[Node] = ()) -> set[Leaf]:
    """The leaves behind a loss, or those that it reaches without ``users`` going on into ``node``."""
    seen: set[Node] = set()
    work = list(backward.roots)
    while work:
        one = work.pop()
        if one not in seen:
            seen.add(one)
            work += [e.node for e in one.edges if not (e.node is node and one in users)]
    return {leaf for one in seen for leaf, _, _ in one.leaves}


def _finding(program: Program, one: Dropped) -> Finding:
    assert isinstance(one.site.func, ast.Attribute)
    name, loss = shown(program, one.site.func.value), receiver(program, one.backward)
    notes = [note(one.site, "this returns a new tensor, which nothing uses")]
    if line(one.user.site) > 0:
        notes.append(note(one.user.site, f"`{name}` is used here, and still has its graph"))
    notes.append(note(one.backward.site, f"the backward of `{loss}` goes through it"))
    fixes: tuple[Fix, ...] = ()
    if isinstance(one.site.func.value, (ast.Name, ast.Attribute)):
        code = f"{program.segment(one.site.func.value)} = {program.segment(one.site)}"
        edit = ReplaceStatement(Span.of(program.statement(one.site)), code)
        claim = Claim(unchanged=(), losses="rerouted")
        fixes = within_file([Fix("assign the detached tensor", Effect.CHANGES, (edit,), claim)])
    return Finding(
        "dropped-detach",
        f"the result of `{shown(program, one.site)}` is not used: `{name}` itself keeps its graph",
        Span.of(one.site),
        tuple(notes),
        fixes,
    )
