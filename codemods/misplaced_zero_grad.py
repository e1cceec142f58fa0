"""Gradients are cleared at the wrong moment.
The step finds none, only a part of them, or old gradients together with the new ones.

    loss.backward()                 optimizer.zero_grad()
    optimizer.zero_grad()      =>   loss.backward()
    optimizer.step()                optimizer.step()

Five places are wrong:

* between backward and step: the step finds no gradient and trains nothing (effect: repairs), or none of the
  one network that is cleared there, which no step of the optimizer ever trains (effect: changes);
* before the backward of another loss, which leaves its gradients in the same parameters. The usual case is a
  GAN that clears both networks at the top: the generator's loss runs through the discriminator, and the
  discriminator's step uses that too, in the wrong direction (effect: changes);
* once before an inner loop that steps in every iteration: each step uses the gradients of all iterations so
  far, or those of the one network that is cleared there (effect: changes);
* once for two losses that the same optimizer steps on one after the other: the second step uses the first
  loss again (effect: changes);
* in every iteration, where the step waits for several of them: it uses the gradients of the last one, and
  those of all iterations before are thrown away (effect: changes).

The call moves to directly before the backward whose gradients the step is meant to use. Where the step waits
for several iterations (`if (i + 1) % 4 == 0: optimizer.step()`), it moves to directly after the step: before
every backward it would drop all iterations but the last. Where it is not clear whether a condition between
the two waits or leaves iterations out, nothing is offered.

When not to fix it: where gradients should add up over several iterations (accumulation). Then step and clear
equally often.

Preconditions: the use is certain in every iteration and whichever way undecided conditions go. Gradient
accumulation, where step and zero_grad share a condition, never uses a gradient twice. For the second place,
the loss that leaves its gradients behind must belong to another optimizer that has stepped on it already,
and must run through these parameters on its way to that optimizer's own. For the fourth, some parameter must
have certainly got gradients from both losses; where another optimizer, which the second loss computes
gradients for, never steps, one of the two steps may be meant for it, and nothing is offered. For the fifth,
the backward stands outside the condition that counts the iterations, all optimizers of the loop wait so,
nothing reads the gradients in between, and no framework has wrapped the optimizer, whose `zero_grad` does
nothing then in the iterations that are waited for.

By hand: clear the gradients once for each step: before the first backward that it uses, or right after it.

Severity: error.
Clause: every gradient that is meant is used.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

from gradfix.autograd.graph import Backward, Event, LoopContext, OptimizerState, Step, ZeroGrad
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    gradient_clears,
    steps,
)
from gradfix.autograd.trace_queries import between as in_between
from gradfix.autograd.values import Optimizer
from gradfix.core.codemod import Claim, Edit, Effect, Finding, Fix, Note, RemoveStatement
from gradfix.core.span import Span
from gradfix.rules import conditional_steps
from gradfix.rules.clauses import (
    KEPT,
    UNKNOWN,
    Verdict,
    accumulated_leaves,
    breaches,
    cleared_before_use,
    consuming_again,
    has_uncleared_step,
    left_before,
)
from gradfix.rules.edits import clearing_place, insert, move, note, receiver, stepped, within_file
from gradfix.rules.intent.accumulation import ThrownIterations, iterations_thrown_away
from gradfix.rules.intent.misdirected_steps import misdirected


@dataclass(eq=False)
class Misplaced:
    """A clearing of gradients, the backward before which it belongs, and the step that suffers."""

    zero: ZeroGrad
    backward: Backward
    step: Step
    effect: Effect
    lost: bool = False
    """Whether the clearing throws away what the step was to consume."""
    dirt: Backward | None = None
    earlier: Step | None = None
    """Another step of the loop that has consumed what is consumed again."""
    idle: ZeroGrad | None = None
    """The clearing of an optimizer that the backward computes gradients for, and that never steps."""
    thrown: ThrownIterations | None = None
    """Where the step waits for several iterations: the clearing of each."""

    @property
    def place(self) -> ast.expr | ast.stmt:
        """What is wrong: the clearing, or the step that should have one before it."""
        if self.thrown is not None and _here(self.zero.site):
            return self.zero.site
        if self.earlier is None and _here(self.zero.site) and _encloses(self.zero, self.step):
            return self.zero.site
        assert isinstance(self.step.site, (ast.expr, ast.stmt))
        return self.step.site


def find(program: Program) -> Iterator[Finding]:
    """Report each clearing of gradients that comes too late, too early or too rarely."""
    found: dict[ast.AST, Misplaced] = {}
    for entry in program.entry_points:
        for observe in (between, dirtied, too_rarely):
            repeated = has_uncleared_step if observe is too_rarely else None
            for one in entry.certain_observations(
                observe, _anchor, raises=False, repeated=repeated, besides=_adding_up
            ):
                if not (repeated and conditional_steps.cleared_otherwise(entry, one.step)):
                    found.setdefault(one.place, one)
    for entry in program.entry_points:
        if not any(
            one.doubtful(program) for run in entry.runs for one in iterations_thrown_away(run).values()
        ):
            continue  # Each iteration has a step of its own, and no further run has to be made.
        every = entry.certain_observations(
            iterations_thrown_away, lambda one: one.backward.site, raises=False, merge=ThrownIterations.merge
        )
        for thrown in every:
            step = thrown.awaited(program)
            if step is not None:
                one = Misplaced(thrown.zero, thrown.backward, step, Effect.CHANGES, thrown=thrown)
                found.setdefault(one.place, one)
    # What a step consumes again may also be what another optimizer's loss has left: it is said once.
    again = {one.step.site for one in found.values() if one.earlier is not None}
    for one in found.values():
        if one.dirt is None or one.step.site not in again:
            yield _finding(program, one)


def _anchor(one: Misplaced) -> ast.AST:
    """Where a run that does not show a mistake speaks against it.

    What another loss leaves is to be cleared before a backward only if no step after it is ever left out.
    """
    return one.step.site if one.dirt is None else one.backward.site


def _adding_up(run: Run) -> set[ast.AST]:
    """Steps that consume again what they have consumed before, and the backwards for them.

    Where an iteration leaves out what clears for them as well, nothing does: that is no better.
    """
    return {event.site for pair in consuming_again(run).values() for event in pair}


def between(run: Run) -> dict[Hashable, Misplaced]:
    """Steps that consume nothing since their gradients were cleared after the backward.

    Or nothing of one network, which is cleared there, and none of which the optimizer ever consumes.
    """
    return {
        place: Misplaced(*lost, Effect.CHANGES if lost.step.consumed else Effect.REPAIRS, lost=True)
        for place, lost in breaches(steps(run), partial(cleared_before_use, run)).items()
    }


def dirtied(run: Run) -> dict[Hashable, Misplaced]:
    """Steps that consume what a loss for another optimizer left on its way."""
    met: set[tuple[ast.AST, OptimizerState, LoopContext]] = set()

    def judge(step: Step) -> Misplaced | Verdict:
        place = step.site, step.optimizer, step.loops[:-1]
        one, again = _dirt(run, step), place in met
        met.add(place)
        if one is not None:
            return one
        # Before the first step of a loop there was neither a clearing behind it nor what another leaves, or
        # what stands before the loop has cleared that.
        return KEPT if step.doubtful or (again and not _right_behind_another(run, step)) else UNKNOWN

    return breaches(steps(run), judge)


def _dirt(run: Run, step: Step) -> Misplaced | None:
    left, mine = left_before(run, step), set(step.optimizer.owned())
    if left is None:
        return None
    for zero in reversed(gradient_clears(run)):
        if _alongside(zero, step) and zero.serial < left.foreign.serial and mine & set(zero.leaves):
            return Misplaced(zero, left.own, step, Effect.CHANGES, dirt=left.foreign)
    return None


def _alongside(event: Event, step: Step) -> bool:
    """Whether something happens in the very loops that the step is in, in whichever iteration."""
    return [loop for loop, _ in event.loops] == [loop for loop, _ in step.loops]


def _right_behind_another(run: Run, step: Step) -> bool:
    """Whether an inner loop repeats a step that nothing but its optimizer's own losses comes before."""
    before = [s.serial for s in steps(run) if s.optimizer is step.optimizer and s.serial < step.serial]
    mine = set(step.optimizer.owned())
    since = in_between(backwards(run), max(before, default=0), step.serial)
    return len(step.loops) > 1 and all(
        b.reached.keys() <= mine or mine.isdisjoint(b.reached) for b in since if b.accumulates
    )


def too_rarely(run: Run) -> dict[Hashable, Misplaced]:
    """Steps that consume gradients again, since they are cleared only outside their loop."""
    found: dict[Hashable, Misplaced] = {}
    for step, fresh in consuming_again(run).values():
        if _same_graph(step, fresh) or misdirected(run, step) is not None:
            continue  # Another graph is to be computed, or another optimizer to step.
        clearing = [z for z in gradient_clears(run) if set(z.leaves) & set(step.optimizer.owned())]
        # Where networks are cleared one by one, those count that clear what adds up.
        again = accumulated_leaves(step)
        if any(not again.isdisjoint(z.unshared) for z in gradient_clears(run)):
            continue  # Letting go of what is lent clears nothing, however often: see missing-zero-grad.
        clearing = [z for z in clearing if not again.isdisjoint(z.leaves)] or clearing
        before = [z for z in clearing if z.serial < fresh.serial]
        if clearing and not any(_within(z, step, fresh) for z in clearing):
            zero = before[-1] if before else clearing[0]
            found.setdefault(step.site, Misplaced(zero, fresh, step, Effect.CHANGES))
            continue
        earlier = _consumed_beside(step)
        before = [z for z in before if earlier and z.serial < earlier.serial and z.loops == earlier.loops]
        if before:
            idle = _never_steps(run, fresh)
            one = Misplaced(before[-1], fresh, step, Effect.CHANGES, earlier=earlier, idle=idle)
            found.setdefault(step.site, one)
    return found


def _same_graph(step: Step, fresh: Backward) -> bool:
    """Whether iterations share a graph that is kept: a loss computed once, and differentiated in every
    iteration.

    Its weights have moved since, so that it is the forward which is misplaced, and not the clearing.
    """
    kept = {node for node in fresh.visited if node.raises_when_freed is not False}
    return any(
        before and backward.loops != fresh.loops and not kept.isdisjoint(backward.visited)
        for held in step.consumed.values()
        for backward, (_, before) in held.items()
    )


def _never_steps(run: Run, backward: Backward) -> ZeroGrad | None:
    """The clearing of an optimizer that never steps, and that a backward computes gradients for."""
    for zero in gradient_clears(run):
        if isinstance(zero.target, Optimizer) and not zero.target.state.steps and _here(zero.site):
            if any(backward.reached.get(leaf) for leaf in zero.target.state.owned()):
                return zero
    return None


def _encloses(zero: ZeroGrad, step: Step) -> bool:
    """Whether gradients are cleared in the loops of a step, or in some of the outer ones."""
    return all(loop is other for (loop, _), (other, _) in zip(zero.loops, step.loops)) and len(
        zero.loops
    ) <= len(step.loops)


def _within(zero: ZeroGrad, step: Step, backward: Backward) -> bool:
    """Whether gradients are cleared in the innermost loop that a backward and its step share."""
    shared = [loop for (loop, _), (other, _) in zip(step.loops, backward.loops) if loop is other]
    return not shared or any(loop is shared[-1] for loop, _ in zero.loops)


def _consumed_beside(step: Step) -> Step | None:
    """The other step of its loop whose gradients are still there, certainly, beside fresh ones.

    It came earlier in the same iteration, or late in the iteration before.
    """
    for held in step.consumed.values():
        fresh = any(sure and not taken and b.loops == step.loops for b, (sure, taken) in held.items())
        for backward, (sure, taken) in held.items():
            if fresh and sure and _alongside(backward, step):
                for earlier in taken:
                    other = earlier.loops == step.loops or earlier.site is not step.site
                    if other and _alongside(earlier, step) and earlier.optimizer is step.optimizer:
                        return earlier
    return None


def _finding(program: Program, one: Misplaced) -> Finding:
    name = stepped(program, one.step.optimizer) or "the optimizer"
    loss = receiver(program, one.backward)
    assert isinstance(one.step.site, (ast.expr, ast.stmt))
    notes: list[Note] = []
    if one.thrown is not None:
        message = (
            f"gradients of `{loss}` are cleared in every iteration, but `{name}.step()` runs only in some: "
            "it uses those of one iteration, and the others are lost"
        )
        notes = [
            note(one.zero.site, "this clears the gradients of the previous iteration"),
            note(one.backward.site, "this backward computes gradients in every iteration"),
            note(one.step.site, "this step uses only those of the last iteration"),
        ]
    elif one.lost:
        part = f" for `{receiver(program, one.zero)}`" if one.effect is Effect.CHANGES else ""
        message = f"gradients of `{loss}`{part} are cleared before `{name}.step()` can use them"
        notes = [
            note(one.backward.site, "this backward computes them"),
            note(one.zero.site, "this clears them"),
            note(one.step.site, f"this step finds none{part}" + (" and updates nothing" if not part else "")),
        ]
    elif one.dirt is not None:
        dirt = receiver(program, one.dirt)
        message = f"`{name}.step()` also uses gradients from `{dirt}`, which are not cleared before it"
        notes = [
            note(one.zero.site, "gradients are cleared here"),
            note(one.dirt.site, f"`{dirt}` is another optimizer's loss, and adds gradients for `{name}`"),
            note(one.step.site, f"this step uses them together with those of `{loss}`"),
        ]
    elif one.earlier is not None:
        message = f"`{name}.step()` uses the gradients of the previous step again"
        notes = [
            note(one.zero.site, "gradients are cleared here"),
            note(one.earlier.site, "this step uses the gradients computed since"),
            note(one.step.site, f"this step uses them again, together with those of `{loss}`"),
        ]
        if one.idle is not None and isinstance(one.idle.site, ast.Call):
            idle = receiver(program, one.idle)
            message += f", and `{idle}` never steps"
            notes.append(note(one.idle.site, f"`{loss}` computes gradients for `{idle}` as well"))
    else:
        message = (
            f"`{name}.step()` uses the gradients of earlier iterations again: they are cleared too rarely"
        )
        notes = [
            note(one.zero.site, "gradients are cleared here, outside the loop that steps"),
            note(one.step.site, "every step uses the sum over all iterations since then"),
        ]
    return Finding(
        "misplaced-zero-grad",
        message,
        Span.of(one.place),
        tuple(notes),
        within_file(_fixes(program, one, name)),
    )


def _here(node: ast.AST) -> TypeGuard[ast.expr | ast.stmt]:
    """Whether something stands in this file, and not in one that calls it or is called."""
    return getattr(node, "lineno", 0) > 0


def _fixes(program: Program, one: Misplaced, name: str) -> Iterator[Fix]:
    if one.idle is not None:
        return  # One of the steps may be meant for the other optimizer.
    if one.thrown is not None:
        yield from _once_for_all(program, one, one.thrown)
        return
    place = clearing_place(program, one.backward, one.step)
    if place is None:
        return
    target, where = place
    claim = Claim(unchanged=())
    if where == "after":
        yield from _behind(program, one, target, claim, name)
        return
    if _here(one.zero.site):
        yield from _moved(program, one, target, claim)
    edits: tuple[Edit, ...] = (insert(target, "before", f"{name}.zero_grad()"),)
    if not one.lost:
        yield Fix("clear the gradients again before the backward", one.effect, edits, claim)


def _once_for_all(program: Program, one: Misplaced, thrown: ThrownIterations) -> Iterator[Fix]:
    """The clearing of each iteration goes, where there is one behind the step, or else moves there."""
    target = conditional_steps.clearing_statement(program, one.backward, one.step)
    if not isinstance(target, ast.stmt) or not _here(one.zero.site) or not _movable(program, one, target):
        return
    zero = program.statement(one.zero.site)
    if thrown.behind:
        edit: Edit = RemoveStatement(Span.of(zero))
        yield Fix("clear the gradients only after the step", one.effect, (edit,), Claim(unchanged=()))
    elif target not in program.ancestors(zero):
        edit = move(zero, target, "after")
        yield Fix("clear the gradients after the step", one.effect, (edit,), Claim(unchanged=()))


def _behind(program: Program, one: Misplaced, target: ast.stmt, claim: Claim, name: str) -> Iterator[Fix]:
    """The clearing moves behind a step that waits for several iterations, or another is put there."""
    if one.dirt is not None or one.earlier is not None:
        return  # What is consumed with the rest has come between.
    if not one.lost:
        # The one outside the loop stays: it drops what the iterations before it have left.
        yield Fix(
            "clear the gradients after the step",
            one.effect,
            (insert(target, "after", f"{name}.zero_grad()"),),
            claim,
        )
    elif _here(one.zero.site) and _movable(program, one, target):
        zero = program.statement(one.zero.site)
        if target not in program.ancestors(zero):
            yield Fix("clear the gradients after the step", one.effect, (move(zero, target, "after"),), claim)


def _movable(program: Program, one: Misplaced, target: ast.stmt) -> bool:
    """Whether the clearing is a statement by itself that nothing else needs, and means the same elsewhere."""
    zero = program.statement(one.zero.site)
    mine = set(one.step.optimizer.owned())
    single = isinstance(zero, ast.Expr) and zero.value is one.zero.site
    same = program.function(zero) is program.function(target) or program.segment(zero).startswith("self.")
    return single and same and mine.issuperset(one.zero.leaves) and _encloses(one.zero, one.step)


def _moved(program: Program, one: Misplaced, target: ast.stmt, claim: Claim) -> Iterator[Fix]:
    """The clearing itself moves, if nothing else needs it where it is."""
    zero = program.statement(one.zero.site)
    # Where it is stepped on more than once in an iteration, the other step may need its gradients cleared
    # there.
    alone = sum(s.loops == one.step.loops for s in one.step.optimizer.steps) == 1
    if _movable(program, one, target) and (alone or one.lost):
        backward_first = zero.lineno > target.lineno and one.lost
        if backward_first and _adjacent(program, target, zero):
            # The backward moves down over the clearing: its comments stay with it.
            yield Fix(
                "clear the gradients before the backward", one.effect, (move(target, zero, "after"),), claim
            )
        yield Fix(
            "clear the gradients before the backward", one.effect, (move(zero, target, "before"),), claim
        )


def _adjacent(program: Program, first: ast.stmt, second: ast.stmt) -> bool:
    block = program.suite_around(first)
    return second in block and block.index(second) == block.index(first) + 1
