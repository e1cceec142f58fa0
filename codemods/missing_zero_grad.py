"""A loop steps an optimizer and never clears its gradients.
Each step uses the sum of all gradients since training began: nothing raises, and the loss diverges or hardly
moves.

    for x, y in loader:                       for x, y in loader:
        loss = loss_fn(model(x), y)      =>       loss = loss_fn(model(x), y)
                                                  optimizer.zero_grad()
        loss.backward()                           loss.backward()
        optimizer.step()                          optimizer.step()

`backward` adds to the gradients that are already there.

When not to fix it: where gradients should add up over several iterations. Then clear them after each step.

Preconditions:

* from the second iteration on, every step uses gradients that the same optimizer has used before, whichever
  way undecided conditions go: accumulation over micro-batches, where a condition guards the step and the
  clearing, never does;
* nothing in the run clears them in any way: `zero_grad` of the optimizer or of a network, `p.grad = None`,
  `p.grad.zero_()`, a helper, also in iterations without the step; or only some of them are cleared (those of
  a part that two optimizers share), and the others certainly add up;
* no function that the model cannot see is handed the optimizer, the network or its parameters in between.
  Callbacks that are shown the object that trains (`for hook in self.hooks: hook(self)`) are taken to look
  on.

Parameters without an optimizer may be updated by hand, `w.data -= lr * w.grad`: in every iteration the
gradient is read, then the parameter is written, and nothing clears the gradient. The fix clears it after the
statement that used it.

Gradients may be lent: `shared.grad = own.grad` makes them one tensor, as A3C's workers do with the network
that they share. Since torch 2.0 `zero_grad` sets gradients to None, which takes the tensor from the shared
network alone; the worker's own adds up. `zero_grad(set_to_none=False)` makes it zero for both. Of a copy,
`shared.grad = own.grad.clone()`, the worker's network has to be cleared itself.

A step that waits for several iterations (`if (i + 1) % 4 == 0: optimizer.step()`) has its gradients cleared
directly after it, and so have those that a loop of its own steps (`for o in optimizers: o.step()`), which
has the only name for each. Where it is not clear whether a condition waits or leaves iterations out, nothing
is offered.

By hand: call `optimizer.zero_grad()` once for each step, before the backward.

Effect: changes.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.graph import Backward, ManualStep, Step
from gradfix.autograd.program import EntryPoint, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    calls_in,
    gradient_clears,
    of_kind,
)
from gradfix.core.codemod import Claim, Effect, Finding, Fix, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rules.clauses import accumulated_leaves, consuming_again, has_uncleared_step
from gradfix.rules.conditional_steps import cleared_otherwise
from gradfix.rules.edits import binding_loop, clearing_place, insert, network, note, stepped, stepping


def find(program: Program) -> Iterator[Finding]:
    """Report loops that update parameters, by an optimizer or by hand, with gradients that nothing clears."""
    yield from _by_optimizers(program)
    yield from _by_hand(program)


def _by_optimizers(program: Program) -> Iterator[Finding]:
    for entry in program.entry_points:
        found = entry.certain_observations(
            never_cleared, lambda f: f[0].site, raises=False, repeated=has_uncleared_step
        )
        for step, backward, whole in found:
            if cleared_otherwise(entry, step):
                continue
            name = stepped(program, step.optimizer, backward.site)
            assert isinstance(step.site, ast.Call)
            what = "the gradients" if whole else "some of the gradients"
            notes = [
                note(backward.site, "every iteration adds its gradients to the earlier ones"),
                note(step.site, "every step uses the whole sum"),
            ]
            lent = _let_go(entry, step)
            if any(leaf.grad_is_copy for leaf in step.consumed):
                fixes = _clear_grad_source(program, backward)
            elif lent:
                fixes = _clear_in_place(program, lent)
                notes += [
                    note(
                        site, "this sets `.grad` to None here only: the network that shares it keeps the sum"
                    )
                    for site in lent
                ]
            else:
                fixes = _clear(program, backward, step, name)
            yield Finding(
                "missing-zero-grad",
                f"nothing ever clears {what} that `{name or 'the optimizer'}.step()` uses: they add up",
                Span.of(step.site),
                tuple(notes),
                fixes,
            )


def _by_hand(program: Program) -> Iterator[Finding]:
    """Report each backward of a loop whose gradients move parameters by hand, and are never cleared."""
    for entry in program.entry_points:
        found = entry.certain_observations(
            moved_by_sums,
            lambda f: f[0].site,
            raises=False,
            repeated=lambda run: bool(of_kind(run, ManualStep)),
        )
        for backward, moves in found:
            names = [_moved(program, move.site) for move in moves]
            moved = " and ".join(f"`{name or 'a tensor'}`" for name in dict.fromkeys(names))
            first = moves[0].site
            assert isinstance(first, (ast.expr, ast.stmt))
            notes = [note(backward.site, "every iteration adds its gradients to the earlier ones")]
            notes += [note(move.site, "this update uses the whole sum") for move in moves]
            yield Finding(
                "missing-zero-grad",
                f"nothing ever clears the gradients that update {moved}: they add up",
                Span.of(first),
                tuple(notes),
                _clear_moved(program, moves, names),
                advice="set each `.grad` to None after it has been used",
            )


def moved_by_sums(run: Run) -> dict[Hashable, tuple[Backward, list[ManualStep]]]:
    """Backwards after which parameters that no optimizer owns are moved by what has moved them before."""
    if run.external_optimizers or any(not one.state.in_view for one in run.optimizers):
        return {}
    kept = {leaf for one in run.optimizers for leaf in one.state.owned()}
    kept |= {leaf for z in gradient_clears(run) for leaf in z.leaves}
    found: dict[Hashable, tuple[Backward, list[ManualStep]]] = {}
    for move in of_kind(run, ManualStep):
        for leaf, consumed in move.consumed.items():
            again = any(sure and before for sure, before in consumed.values())
            fresh = [b for b, (sure, before) in consumed.items() if sure and not before]
            if again and fresh and leaf not in kept and leaf.requires is True:
                _, moves = found.setdefault(fresh[0].site, (fresh[0], []))
                if all(one.site is not move.site for one in moves):
                    moves.append(move)
    return found


def _moved(program: Program, site: ast.AST) -> str | None:
    """What is moved at a place, as the source names it: a variable or an attribute."""
    target = site.func if isinstance(site, ast.Call) else site
    if isinstance(target, ast.AugAssign):
        target = target.target
    while isinstance(target, ast.Attribute) and (target.attr == "data" or target.attr.endswith("_")):
        target = target.value
    return program.segment(target) if isinstance(target, (ast.Name, ast.Attribute)) else None


def _clear_moved(program: Program, moves: list[ManualStep], names: list[str | None]) -> tuple[Fix, ...]:
    """Drop each gradient directly behind the statement that has used it."""
    edits = [
        insert(program.statement(move.site), "after", f"{name}.grad = None")
        for move, name in zip(moves, names)
        if name is not None
    ]
    if len(edits) < len(moves):
        return ()
    claim = Claim(unchanged=(), clears=True)
    return (Fix("set each `.grad` to None after it has been used", Effect.CHANGES, tuple(edits), claim),)


def _clear(program: Program, backward: Backward, step: Step, name: str | None) -> tuple[Fix, ...]:
    if name is None:
        return ()
    several = stepping(program, step)
    loop = binding_loop(program, several) if several is not None else None
    if several is not None and loop is not None and loop not in program.ancestors(backward.site):
        # All that are stepped here are cleared here: nothing else names each of them.
        edit = insert(program.statement(step.site), "after", f"{program.segment(several)}.zero_grad()")
        return (Fix("clear the gradients after every step", Effect.CHANGES, (edit,), Claim(unchanged=())),)
    place = clearing_place(program, backward, step)
    if place is None:
        return ()
    anchor, where = place
    each = "in every iteration" if where == "before" else "after every step"
    edit = insert(anchor, where, f"{name}.zero_grad()")
    return (Fix(f"clear the gradients {each}", Effect.CHANGES, (edit,), Claim(unchanged=())),)


def _let_go(entry: EntryPoint, step: Step) -> list[ast.Call]:
    """Where parameters that the step moves lose gradients of another network, which keeps them."""
    owned = step.optimizer.owned()
    places = (
        z.site
        for run in entry.runs
        for z in gradient_clears(run)
        if any(leaf in z.unshared for leaf in owned)
    )
    return [site for site in dict.fromkeys(places) if isinstance(site, ast.Call) and site.lineno > 0]


def _clear_grad_source(program: Program, backward: Backward) -> tuple[Fix, ...]:
    """Clear the network that computes the gradients of which another one is given copies."""
    here = program.function(backward.site)
    for call in calls_in(backward.visited):
        if call.leaves.issuperset(backward.reached) and program.function(call.site) is here:
            name = program.segment(network(call))
            edit = insert(program.statement(backward.site), "before", f"{name}.zero_grad()")
            return (Fix(f"clear the gradients of `{name}`", Effect.CHANGES, (edit,), Claim(unchanged=())),)
    return ()


def _clear_in_place(program: Program, sites: list[ast.Call]) -> tuple[Fix, ...]:
    """``zero_grad`` as it was before torch 2.0: what others were lent is zero for them, too."""
    if any(site.args or site.keywords for site in sites):
        return ()
    edits = (
        ReplaceExpression(Span.of(site), f"{program.segment(site.func)}(set_to_none=False)") for site in sites
    )
    return (Fix("clear the gradients in place", Effect.CHANGES, tuple(edits), Claim(unchanged=())),)


def never_cleared(run: Run) -> dict[Hashable, tuple[Step, Backward, bool]]:
    """Steps that consume gradients again which nothing clears, with whether that is so of all of them."""
    let_go = {leaf for z in gradient_clears(run) for leaf in z.unshared}
    cleared = {leaf for z in gradient_clears(run) for leaf in z.leaves} - let_go
    found: dict[Hashable, tuple[Step, Backward, bool]] = {}
    for step, fresh in consuming_again(run).values():
        whole = cleared.isdisjoint(step.consumed)
        if whole or accumulated_leaves(step) - cleared:
            found[step.site] = step, fresh, whole
    return found
