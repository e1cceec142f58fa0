"""Gradients are clipped before they are computed, after they were used, or while they are still scaled.
The step uses gradients that are not clipped or, with a `GradScaler`, far too small ones.

    clip_grad_norm_(net.parameters(), 1.0)   =>   loss.backward()
    loss.backward()                               clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()                              optimizer.step()

Clipping changes the gradients that exist at that moment. Before the backward these are those of the previous
iteration, if any, and after the step they have been used: no step ever uses a clipped gradient. A
`GradScaler` multiplies the loss by a large factor, so that what is clipped before
`scaler.unscale_(optimizer)` is clipped far below what was meant, and each step is a tiny one.

    scaler.scale(loss).backward()                 scaler.scale(loss).backward()
                                                  scaler.unscale_(optimizer)
    clip_grad_norm_(net.parameters(), 1.0)   =>   clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)                        scaler.step(optimizer)

When not to fix it: where the norm is only measured. Then give it no bound (`float("inf")`).

Preconditions:

* the parameters that are clipped are known, and so are those of the optimizer that steps on them; or one
  optimizer is all that steps, so that any gradient is for it. `p.grad.clamp_(-1, 1)` for each parameter
  clips as well;
* without effect: no step uses what was clipped there, in any iteration of any run: what it holds has been
  used before, and is cleared, or there is nothing. Gradients that a later step waits for are neither;
* still scaled: the step is made through the scaler that has scaled the loss, its `unscale_` has not been
  called for the optimizer since, nobody has read or written a gradient in between, and the bound is not
  scaled itself;
* no unknown code has been given the parameters;
* a norm that is only measured, with no bound (`float("inf")`), is left alone.

The statement moves to directly before the step, if it stands in the same loop, and nobody uses the norm that
it returns before it gets there; a condition that holds it alone (`if args.clip:`) moves with it. Where
`unscale_` is missing it is inserted, if a scaler steps wherever gradients are clipped. Otherwise nothing is
rewritten. Nor is it where the next step is another optimizer's, and nothing clips what that one uses: either
the place or the network is the wrong one.

By hand: clip directly before the optimizer's step, and after `scaler.unscale_(optimizer)` where a scaler
scales the loss.

Effect: changes.

Severity: error. What is used is not what was clipped.
Clause: used as it is meant.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from gradfix.autograd.graph import Backward, Clip, Leaf, LoopContext, OptimizerState, Step, Unscale, ZeroGrad
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    clipped_between,
    gradient_clears,
    of_kind,
    steps,
)
from gradfix.autograd.values import Optimizer
from gradfix.core.codemod import Claim, Edit, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.rules.clauses import KEPT, UNKNOWN, Verdict, breaches
from gradfix.rules.edits import (
    constructed,
    insert,
    move,
    note,
    receiver,
    shown,
    stepped,
    with_lone_condition,
    within_file,
)
from gradfix.rules.moving import may_pass

When = Literal["before", "after", "scaled"]
Held = dict[Leaf, dict[Backward, bool]]


@dataclass(eq=False)
class Ineffective:
    """A clipping, and why it is none."""

    run: Run
    clip: Clip
    when: When
    step: Step
    """The step whose gradients it should have clipped."""
    backward: Backward
    """What computes them."""
    unscale: Unscale | None = None
    """The call behind which it should stand, where there is one."""
    between_two: bool = False
    """Whether it is too late for one step, and too early for the next."""
    beside: Step | None = None
    """The next step, if it is another optimizer's, and nothing clips what that one consumes."""


def find(program: Program) -> Iterator[Finding]:
    """Report each clipping that comes at the wrong time."""
    how = {"raises": False, "repeated": lambda run: any(of_kind(run, Clip))}
    for one in program.certain_observations(without_effect, lambda c: c.clip.site, **how):
        yield _finding(program, one)
    for one in program.certain_observations(still_scaled, lambda c: c.clip.site, **how, besides=_unscaled):
        yield _finding(program, one)


def without_effect(run: Run) -> dict[Hashable, Ineffective]:
    """Clippings after which no step consumes what was clipped, in any iteration."""

    def judge(clip: Clip) -> Ineffective | Verdict:
        held = _concerned(run, clip)
        if held is None or _taken(run, clip, held) is not None:
            return KEPT
        if _pending(run, clip, held):
            return UNKNOWN  # A further iteration may consume it.
        if any(not consumed for entries in held.values() for consumed in entries.values()):
            return KEPT  # It is thrown away, which is another mistake than to clip it.
        return _idle(run, clip, held) or UNKNOWN

    return breaches((clip for clip in of_kind(run, Clip) if not _measures(clip.site)), judge)


def still_scaled(run: Run) -> dict[Hashable, Ineffective]:
    """Clippings of gradients that are divided by the scale only afterwards, in every iteration."""

    def judge(clip: Clip) -> Ineffective | Verdict:
        held = _concerned(run, clip)
        taken = _taken(run, clip, held or {})
        scaled = _scaled(run, clip, *taken) if taken is not None else None
        kept = not _nothing(held) and (taken is None or taken[1].scaler is not None)
        return scaled or (KEPT if kept else UNKNOWN)

    return breaches(of_kind(run, Clip), judge)


def _unscaled(run: Run) -> set[ast.AST]:
    """Clippings that a run says nothing about: there are no gradients, or it goes the way without a scaler,
    to the step at least.
    """
    found: dict[ast.AST, bool] = {}
    for clip in of_kind(run, Clip):
        held = _concerned(run, clip)
        taken = _taken(run, clip, held or {})
        plain = taken is not None and (taken[1].scaler is None or taken[0].scaler is None)
        found[clip.site] = found.get(clip.site, True) and (plain or _nothing(held))
    return {site for site, plain in found.items() if plain}


def _nothing(held: Held | None) -> bool:
    """Whether there certainly are no gradients to be clipped, as where a loss turns out to have no graph."""
    return held is not None and not any(held.values())


def _words(site: ast.AST) -> set[str]:
    """The names in a piece of code, and its texts."""
    found = set()
    for node in ast.walk(site):
        if isinstance(node, (ast.Attribute, ast.Name, ast.Constant)):
            found.add(str(getattr(node, "attr", getattr(node, "id", getattr(node, "value", "")))))
    return {word.lower() for word in found}


def _measures(site: object) -> bool:
    """Whether a clipping has no bound: what it returns is all that it is for."""
    return isinstance(site, ast.AST) and not _words(site).isdisjoint({"inf", "infty", "infinity"})


def _sole(run: Run) -> OptimizerState | None:
    """The optimizer that is all that steps, if it is not seen what it owns: any parameter may be its."""
    stepping = {step.optimizer for step in steps(run)}
    one = next(iter(stepping)) if len(stepping) == 1 else None
    if one is None or one.external or (one.in_view and one.owned()):
        return None
    if any(other.state.escaped for other in run.optimizers):
        return None
    return one


def _concerned(run: Run, clip: Clip) -> Held | None:
    """The gradients that were clipped, as far as an optimizer steps on them; None where that is not known."""
    stepping = {step.optimizer for step in steps(run)}
    sole = _sole(run)
    if clip.doubtful or not stepping or any(not o.groups_known and not o.external for o in stepping - {sole}):
        return None
    owned = {leaf for optimizer in stepping for leaf in optimizer.owned()}
    mine = [leaf for leaf in clip.leaves if leaf in owned or sole is not None]
    if not mine and len(stepping) == 1 and next(iter(stepping)).external:
        (stranger,) = stepping
        mine = stranger.owned()
    if not mine or any(leaf.unknown_grad for leaf in mine):
        return None
    if sole is None:
        return {leaf: clip.held.get(leaf, {}) for leaf in mine}
    before = [step.serial for step in sole.steps if step.serial < clip.serial]
    return {
        leaf: {
            backward: any(backward.serial < serial for serial in before)
            for backward in clip.held.get(leaf, ())
            if not _dropped(run, leaf, backward, clip.serial)
        }
        for leaf in mine
    }


def _dropped(run: Run, leaf: Leaf, backward: Backward, until: float = math.inf, since: int = -1) -> bool:
    """Whether what a backward has given to a parameter is cleared before some moment."""
    return any(
        backward in zero.dropped.get(leaf, ()) or (_all(run, zero) and backward.serial < zero.serial)
        for zero in between(gradient_clears(run), since, until)
    )


def _all(run: Run, zero: ZeroGrad) -> bool:
    """Whether all that may be consumed is cleared: an optimizer that may own anything clears its own."""
    return isinstance(zero.target, Optimizer) and zero.target.state is _sole(run)


def _taken(run: Run, clip: Clip, held: Held) -> tuple[Step, Backward] | None:
    """The first step that consumes something of what was clipped, and what has computed that."""
    for step in between(steps(run), clip.serial):
        for leaf, entries in held.items():
            for backward in entries:
                if backward in _consumed(run, step, leaf):
                    return step, backward
    return None


def _consumed(run: Run, step: Step, leaf: Leaf) -> Collection[Backward]:
    """What a step consumes of a parameter's gradient: all that is there, if it may own anything."""
    if step.optimizer is not _sole(run):
        return step.consumed.get(leaf, ())
    before = [b for b in backwards(run) if b.serial < step.serial and leaf in b.reached]
    return [b for b in before if not _dropped(run, leaf, b, step.serial)]


def _pending(run: Run, clip: Clip, held: Held) -> bool:
    """Whether some of it is neither consumed later nor cleared: a further iteration may still consume it.

    It does not where each iteration clears before it steps.
    """
    loops = _loops(run, clip)
    first = next((s.serial for s in steps(run) if s.loops == loops), 0)
    fresh = [z for z in gradient_clears(run) if z.loops == loops and z.serial < first]
    return any(
        not _dropped(run, leaf, backward, since=clip.serial)
        for leaf, entries in held.items()
        if not any(leaf in z.leaves or _all(run, z) for z in fresh)
        for backward in entries
    )


def _loops(run: Run, clip: Clip) -> LoopContext:
    """The iteration in which something is clipped, of the loops in which optimizers step."""
    loops = clip.loops
    while loops and not any(loop is loops[-1][0] for step in steps(run) for loop, _ in step.loops):
        loops = loops[:-1]
    return loops


def _idle(run: Run, clip: Clip, held: Held) -> Ineffective | None:
    """What a clipping without effect is too early or too late for, in its own iteration."""
    loops = _loops(run, clip)
    mine = [
        s
        for s in steps(run)
        if s.loops == loops and not s.doubtful and any(_consumed(run, s, leaf) for leaf in held)
    ]
    after = next((s for s in mine if s.serial > clip.serial), None)
    before = next((s for s in reversed(mine) if s.serial < clip.serial), None)
    step = after or before
    feeding = _feeding(run, step, held, clip.serial if after else -1) if step is not None else None
    if step is None or feeding is None:
        return None
    return Ineffective(
        run,
        clip,
        "before" if after else "after",
        step,
        feeding,
        between_two=bool(after and before),
        beside=_beside(run, clip, step),
    )


def _beside(run: Run, clip: Clip, mine: Step) -> Step | None:
    """The next step, if it waits for gradients that nothing clips: these may have been meant."""
    following = next((s for s in between(steps(run), clip.serial) if s.loops == _loops(run, clip)), None)
    if following is None or following.optimizer is mine.optimizer:
        return None
    waiting = any(b.serial < clip.serial for entries in following.consumed.values() for b in entries)
    clipped = {leaf for one in of_kind(run, Clip) for leaf in one.leaves}
    return following if waiting and clipped.isdisjoint(following.consumed) else None


def _feeding(run: Run, step: Step, held: Held, since: int) -> Backward | None:
    """The last backward of a step's iteration that computed what it consumes, after some moment."""
    computed = {b for leaf in held for b in _consumed(run, step, leaf)}
    found = [b for b in computed if b.serial > since and b.loops == step.loops]
    return max(found, key=lambda b: b.serial, default=None)


def _scaled(run: Run, clip: Clip, step: Step, backward: Backward) -> Ineffective | None:
    """Whether what is clipped is still scaled by the scaler through which it is consumed."""
    scaler = backward.scaler
    if scaler is None or step.scaler is not scaler or step.doubtful:
        return None
    if any("scale" in word for word in _words(clip.site)):
        return None
    if run.grad_read_between(backward.serial, clip.serial):
        return None
    if clipped_between(run, backward.serial, clip.serial):
        return None
    unscaled = [u for u in of_kind(run, Unscale) if u.optimizer is step.optimizer and u.scaler is scaler]
    if any(backward.serial < u.serial < clip.serial for u in unscaled):
        return None
    late = next((u for u in unscaled if clip.serial < u.serial < step.serial), None)
    return Ineffective(run, clip, "scaled", step, backward, late)


def _finding(program: Program, one: Ineffective) -> Finding:
    name = stepped(program, one.step.optimizer) or "the optimizer"
    loss = receiver(program, one.backward)
    assert isinstance(one.clip.site, (ast.expr, ast.stmt))
    if one.when == "scaled":
        message = (
            f"gradients are clipped before they are unscaled for `{name}`: its steps become far too small"
        )
        notes = [
            note(one.backward.site, f"the gradients of `{loss}` are scaled by a large factor"),
            note(one.clip.site, "this clips the scaled gradients"),
        ]
        if one.unscale is not None:
            notes.append(note(one.unscale.site, "they are unscaled only here"))
        else:
            notes.append(note(one.step.site, "they are unscaled only here, by the step"))
    elif one.when == "before":
        message = f"gradients are clipped before the backward: `{name}.step()` uses them unclipped"
        notes = [
            note(one.clip.site, "no step uses the gradients that are clipped here"),
            note(one.backward.site, f"this computes the gradients of `{loss}`"),
            note(one.step.site, "this step uses them unclipped"),
        ]
    else:
        message = f"gradients are clipped after `{name}.step()` has used them: the clipping has no effect"
        notes = [
            note(one.backward.site, f"this computes the gradients of `{loss}`"),
            note(one.step.site, "this step uses them unclipped"),
            note(one.clip.site, "clipped here, and cleared before the next step"),
        ]
    # What is unscaled first is clipped less than in the original.
    clips = constructed(one.run, one.step.optimizer) if one.when != "scaled" else ()
    claim = Claim(unchanged=(), clips=clips)
    fixes: tuple[Fix, ...] = ()
    if one.beside is not None:
        notes.append(note(one.beside.site, "the gradients of this step are not clipped: should they be?"))
    with suppress(Elsewhere):
        edits, words = _edits(program, one)
        if edits:
            fixes = within_file([Fix(words, Effect.CHANGES, edits, claim)])
    return Finding("misplaced-clipping", message, Span.of(one.clip.site), tuple(notes), fixes)


def _edits(program: Program, one: Ineffective) -> tuple[tuple[Edit, ...], str]:
    """What puts the clipping between backward and step, or unscales before it; and that in words."""
    statement = program.statement(one.clip.site)
    anchor = program.statement(one.step.site)
    if (
        one.between_two
        or one.beside is not None
        or program.function(statement) is not program.function(anchor)
    ):
        return (), ""
    unscaling = _unscaling(program, one)
    if one.when == "scaled" and one.unscale is None:
        certain = set(program.ancestors(anchor)) <= set(program.ancestors(statement))
        edits = (insert(statement, "before", unscaling),) if certain and unscaling else ()
        return edits, "unscale before clipping"
    if one.backward.scaler is not None and not unscaling:
        return (), ""
    unit = _unit(program, one, statement)
    if not _may_move(program, unit, anchor):
        return (), ""
    needed = one.unscale is None and one.backward.scaler is not None
    first = (insert(anchor, "before", unscaling),) if needed else ()
    return (*first, move(unit, anchor, "before")), "clip between backward and step"


def _unit(program: Program, one: Ineffective, statement: ast.stmt) -> ast.stmt:
    """What clips, with the condition that holds it alone, and the loop over all parameters."""
    iterations = {loop for loop, _ in _loops(one.run, one.clip)}
    while True:
        unit = with_lone_condition(program, statement)
        outer = program.parent(unit)
        if not isinstance(outer, ast.For) or outer in iterations or outer.orelse or outer.body != [unit]:
            return unit
        statement = outer


def _unscaling(program: Program, one: Ineffective) -> str:
    """The call of ``unscale_`` for the optimizer of a step that is made by ``scaler.step(optimizer)``."""
    site = one.step.site
    if not (isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute) and len(site.args) == 1):
        return ""
    if site.func.attr != "step" or any(isinstance(n, ast.Call) for n in ast.walk(site.func.value)):
        return ""
    return f"{shown(program, site.func.value)}.unscale_({shown(program, site.args[0])})"


def _may_move(program: Program, unit: ast.stmt, anchor: ast.stmt) -> bool:
    """Whether a statement means the same directly before another: one loop, and nothing bound in between."""
    if _loop(program, unit) is not _loop(program, anchor) or anchor in ast.walk(unit):
        return False
    if not isinstance(anchor, (ast.Expr, ast.Assign)):
        return False
    function = program.function(unit)
    first, last = sorted((unit, anchor), key=lambda s: s.lineno)
    own = set(ast.walk(unit))
    passed = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.stmt)
        and node not in own
        and (first.end_lineno or 0) < node.lineno <= last.lineno
        and not isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try))
    ]
    return may_pass(unit, passed)


def _loop(program: Program, statement: ast.stmt) -> ast.AST | None:
    kinds = (ast.For, ast.While, ast.AsyncFor, ast.Try)
    return next((a for a in program.ancestors(statement) if isinstance(a, kinds)), None)
