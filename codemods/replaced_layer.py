"""A layer is replaced or added after the optimizer was created: the new layer is never trained.
Nothing raises: the rest of the network is trained with a random layer.

    model = resnet18()                                     model = resnet18()
    optimizer = SGD(model.parameters(), lr=0.1)     =>     model.fc = nn.Linear(512, 2)
    model.fc = nn.Linear(512, 2)                           optimizer = SGD(model.parameters(), lr=0.1)

An optimizer keeps the parameters that it was given. Those of the old layer have left the network, and those
of the new one stay as they were initialized.

So it is with a single parameter: `model.fc.weight = nn.Parameter(...)`. `copy_` under `no_grad` changes the
values of the one that is there.

When not to fix it: where the new layer should stay as it is.

Preconditions:

* the optimizer owns the layer that was there before, or the whole network of which it was a part;
* nothing is known of an optimizer that owns the new layer: none is made afterwards, and `add_param_group` is
  not called; no unknown code has been given an optimizer;
* of a layer that is added: the optimizer owns all that the network had until then, and a loss certainly
  reaches the layer;
* the optimizer steps, and the new layer takes part in what is backpropagated, or its network in what is run
  after the replacement; it is not frozen.

The statement moves before the one that makes the optimizer, where both stand in one block and nothing that it
needs is bound in between.

By hand: create the optimizer when the network is complete, or give it the new layer by `add_param_group`.

Effect: changes.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import OptimizerState, Replacement
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, of_kind
from gradfix.core.codemod import Claim, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.rules.edits import move, note, shown, stepped, within_file
from gradfix.rules.moving import may_pass


@dataclass(eq=False)
class Orphan:
    """A layer that no optimizer owns, and the optimizer that owns what was there before."""

    replacement: Replacement
    optimizer: OptimizerState


def find(program: Program) -> Iterator[Finding]:
    """Report each layer that is put into a network once its optimizer is there."""
    for orphan in program.certain_observations(unowned, lambda o: o.replacement.site, raises=False):
        yield _finding(program, orphan)


def unowned(run: Run) -> dict[Hashable, Orphan]:
    """Layers that were put in the place of others, and that nothing trains."""
    found: dict[Hashable, Orphan] = {}
    known = [o.state for o in run.optimizers]
    owned = {leaf for optimizer in known for leaf in optimizer.owned()}
    losses = [b for b in backwards(run) if b.accumulates]
    for event in of_kind(run, Replacement):
        stepping = next((o for o in event.owners if any(s.serial > event.serial for s in o.steps)), None)
        if stepping is None or not all(o.in_view for o in known) or run.external_optimizers:
            continue
        if (
            event.undone
            or not owned.isdisjoint(event.leaves)
            or any(leaf.requires is not True for leaf in event.leaves)
        ):
            continue
        part = any(b.reached.get(leaf) for b in losses for leaf in event.leaves) or any(
            not c.leaves.isdisjoint(event.whole) for c in run.module_calls
        )
        if part and not any(leaf.unknown_grad for leaf in event.leaves):
            found.setdefault(event.site, Orphan(event, stepping))
    return found


def _finding(program: Program, orphan: Orphan) -> Finding:
    name = stepped(program, orphan.optimizer) or "the optimizer"
    site, made = orphan.replacement.site, orphan.optimizer.created
    assert isinstance(site, (ast.expr, ast.stmt))
    single = orphan.replacement.one_parameter
    new, given = ("parameter", "this one") if single else ("layer", "the parameters of the new layer")
    notes = [note(site, f"no optimizer is given {given}")]
    if getattr(made, "lineno", 0) > 0:
        notes.insert(0, note(made, f"`{name}` keeps the parameters that exist here"))
    layer = shown(program, site)
    what = "added" if orphan.replacement.added else "replaced"
    message = f"`{layer}` is {what} after `{name}` was created: the new {new} is never trained"
    return Finding("replaced-layer", message, Span.of(site), tuple(notes), _fixes(program, orphan))


def _fixes(program: Program, orphan: Orphan) -> tuple[Fix, ...]:
    try:
        statement = program.statement(orphan.replacement.site)
        made = program.statement(orphan.optimizer.created)
    except Elsewhere:
        return ()
    block = program.suite_around(made)
    if statement not in block:
        return ()
    if not may_pass(statement, block[block.index(made) : block.index(statement)]):
        return ()
    edit = move(statement, made, "before")
    what = "parameter" if orphan.replacement.one_parameter else "layer"
    words = f"put the {what} in before the optimizer is created"
    return within_file(
        [Fix(words, Effect.CHANGES, (edit,), Claim(unchanged=(), same_forwards=False, losses="rerouted"))]
    )
