"""Windows of micro-batches: steps that wait for several iterations, and iterations that are thrown away."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Clip, Leaf, LoopContext, Step, ZeroGrad
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    gradient_clears,
    of_kind,
    steps,
    steps_using,
)
from gradfix.autograd.values import Module, Preparer
from gradfix.core.syntax import LOOPS, last_name
from gradfix.rules import conditional_steps
from gradfix.rules.edits import line


class DelayedStep(NamedTuple):
    """A backward of every iteration, and the step that waits for some of them."""

    run: Run
    backward: Backward
    step: Step
    loop: ast.For
    test: ast.expr
    """The condition that holds in the iterations that step."""
    window: ast.expr
    """For how many iterations it waits."""
    number: str
    """The variable that counts the iterations, from the start of each loop on."""


def delayed_steps(program: Program, run: Run) -> Iterator[DelayedStep]:
    """The steps of a run that wait for a fixed number of iterations of the loop around them."""
    for step in {s.site: s for s in reversed(steps(run))}.values():
        if step.doubtful or not step.loops or step.optimizer.wrapped or not step.optimizer.groups_known:
            continue
        loop = step.loops[-1][0]
        earlier = [
            b for b in backwards(run) if b.accumulates and b.loops == step.loops and b.serial < step.serial
        ]
        if not isinstance(loop, ast.For) or not earlier or getattr(step.site, "lineno", 0) <= 0:
            continue
        backward = earlier[-1]
        if next(between(steps(run), backward.serial, step.serial), None) is not None:
            continue
        if len({b.site for b in earlier}) > 1 or getattr(backward.site, "lineno", 0) <= 0:
            continue
        if not isinstance(conditional_steps.clearing_statement(program, backward, step), ast.stmt):
            continue
        outer = [a for a in program.ancestors(step.site) if isinstance(a, (ast.If, ast.For))]
        held = outer[0] if outer and isinstance(outer[0], ast.If) else None
        if held is None or outer[1:2] != [loop] or held.orelse:
            continue
        test = _meaning(held.test, loop)
        window, number = _window(test, loop)
        if window is not None and number is not None:
            yield DelayedStep(run, backward, step, loop, test, window, number)


def _meaning(test: ast.expr, loop: ast.For) -> ast.expr:
    """The condition itself, or what the variable that stands for it is assigned in the loop."""
    if not isinstance(test, ast.Name):
        return test
    names = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == test.id]
    bound = [n for n in names if not isinstance(n.ctx, ast.Load)]
    given = [s.value for s in loop.body if isinstance(s, ast.Assign) and s.targets == bound]
    return given[0] if given else test


def _window(test: ast.expr, loop: ast.For) -> tuple[ast.expr | None, str | None]:
    """What ``(i + 1) % n == 0`` waits for, and what it counts, if that starts over with the loop."""
    rest = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else None
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return None, None
    if not isinstance(rest, ast.BinOp) or not isinstance(rest.op, ast.Mod):
        return None, None
    if not isinstance(test.comparators[0], ast.Constant) or test.comparators[0].value != 0:
        return None, None
    names = [n.id for n in ast.walk(rest.left) if isinstance(n, ast.Name)]
    counted = _counter(loop)
    return (rest.right, counted) if counted is not None and names == [counted] else (None, None)


def counts_from_start(loop: ast.For) -> ast.expr | None:
    """What a loop goes through, where its variable counts from 0."""
    over = loop.iter
    if isinstance(over, ast.Call) and last_name(over) == "tqdm" and over.args:
        over = over.args[0]
    plain = isinstance(over, ast.Call) and len(over.args) == 1 and not over.keywords
    return (
        over.args[0]
        if plain and isinstance(over, ast.Call) and last_name(over) in ("enumerate", "range")
        else None
    )


def _counter(loop: ast.For) -> str | None:
    """The variable of a loop that has the number of the iteration."""
    target, over = loop.target, loop.iter
    if not isinstance(over, ast.Call):
        return None
    if last_name(over) == "tqdm" and over.args and isinstance(over.args[0], ast.Call):
        over = over.args[0]
    if last_name(over) == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    elif last_name(over) not in ("range", "trange") or len(over.args) != 1:
        return None
    return target.id if isinstance(target, ast.Name) else None


# -- iterations whose gradients are thrown away --------------------------------------------------------


@dataclass(eq=False)
class ThrownIterations:
    """A clearing between each two iterations of a backward, and what the runs show of the gradients."""

    zero: ZeroGrad
    backward: Backward
    unused: bool
    """Whether an iteration was cleared that no step had consumed."""
    steps: list[Step]
    """Those that have consumed the gradients of one iteration."""
    others: bool
    """Whether another optimizer steps in the loop."""
    behind: bool
    """Whether something else clears behind each of the steps."""
    clips: list[Clip]
    """Where they are clipped, or their norm is asked for."""

    def merge(self, other: ThrownIterations) -> None:
        """Add what another run shows."""
        self.unused = self.unused or other.unused
        self.others = self.others or other.others
        self.behind = (self.behind or not self.steps) and (other.behind or not other.steps)
        self.steps += other.steps
        self.clips += other.clips

    def lost_by_framework(self, program: Program) -> bool:
        """Whether it clears at the beginning of a batch, and a framework lets that happen in the last only of
        those that it accumulates: ``with accelerator.accumulate(net): optimizer.zero_grad()``."""
        return (
            bool(self.steps)
            and isinstance(self.backward.through, Preparer)
            and self.backward.through.accumulates
            and self.zero.loops != self.backward.loops
            and all(conditional_steps.counted_by_a_framework(program, e) for e in (self.steps[0], self.zero))
        )

    def doubtful(self, program: Program) -> bool:
        """Whether another run may show that a step is to consume several iterations."""
        if self.others or not self.steps:
            return self.unused and not self.others
        return self.lost_by_framework(program) or self._waiting(program) is not None

    def awaited(self, program: Program) -> Step | None:
        """The step that is to consume several iterations, and gets one of them."""
        if self.lost_by_framework(program) and not self.others:
            return self.steps[0]
        return self._waiting(program) if self.unused and self.steps and not self.others else None

    def _waiting(self, program: Program) -> Step | None:
        """The step, if it is not made in each iteration of the backward."""
        step = self.steps[0]
        if step.optimizer.wrapped or line(self.backward.site) <= 0:
            return None
        if len(step.loops) < len(self.backward.loops):
            loop, _ = self.backward.loops[-1]
            return step if not self._measured(program, loop) and _goes_through_all(loop) else None
        place = conditional_steps.clearing_statement(program, self.backward, step)
        return step if isinstance(place, ast.stmt) and not self._measured(program, place) else None

    def _measured(self, program: Program, but: ast.AST) -> bool:
        """Whether a norm of the gradients of an iteration is asked for: they have had their use then."""
        asked = (clip.site for clip in self.clips if line(clip.site) > 0)
        kept = [site for site in asked if not isinstance(program.parent(site), ast.Expr)]
        return any(isinstance(but, LOOPS) or but not in program.ancestors(site) for site in kept)


def iterations_thrown_away(run: Run) -> dict[Hashable, ThrownIterations]:
    """Backwards each of whose iterations is cleared before the next one, whether it was consumed or not."""
    read = {leaf for _, leaf in run.grad_reads}
    by_place: dict[tuple[ast.AST, LoopContext], list[Backward]] = {}
    for backward in backwards(run):
        if backward.loops:
            by_place.setdefault((backward.site, backward.loops[:-1]), []).append(backward)
    found: dict[Hashable, ThrownIterations] = {}
    for (site, _), iterations in by_place.items():
        if len(iterations) < 2 or None in read or not all(_for_a_step(b, read) for b in iterations):
            continue
        between_iterations = [_clearings(run, *pair) for pair in itertools.pairwise(iterations)]
        loop = iterations[0].loops[-1][0]
        around = [s for s in steps(run) if any(at is loop for at, _ in s.loops)]
        taken = [s for s in steps_using(run, iterations) if _consumes_one(s, iterations)]
        clips = [
            c for c in of_kind(run, Clip) if any(b in held for held in c.held.values() for b in iterations)
        ]
        owners = {s.optimizer.created for s in (*around, *taken)}
        for zero in between_iterations[0].values():
            if not all(zero.site in cleared for cleared in between_iterations):
                continue
            one = found.setdefault(
                (site, zero.site), ThrownIterations(zero, iterations[0], False, [], False, True, clips)
            )
            one.unused = one.unused or any(
                _unused(cleared[zero.site], b) for b, cleared in zip(iterations, between_iterations)
            )
            one.steps += [s for s in taken if set(zero.leaves) >= s.consumed.keys()]
            one.others = one.others or len(owners) > 1 or len(one.steps) < len(taken)
            one.behind = one.behind and all(_cleared_behind(run, s, zero) for s in taken)
    return found


def _goes_through_all(loop: ast.AST) -> bool:
    """Whether a loop goes through all of something that it is not told piece by piece, and never ends early.

    Of ``for loss in (a, b)`` each iteration is about something else.
    """
    return (
        isinstance(loop, ast.For)
        and not isinstance(loop.iter, (ast.Tuple, ast.List))
        and not any(isinstance(node, (ast.Break, ast.Return)) for node in ast.walk(loop))
    )


def _for_a_step(backward: Backward, read: set[Leaf | None]) -> bool:
    """Whether a backward comes off, and gives gradients that nobody reads, to parameters that are known.

    A framework that differentiates for the script (``accelerator.backward(loss)``) may clear for it as well,
    unless it is known not to.
    """
    through = backward.through
    accumulated = isinstance(through, Preparer) and (through.accumulates or not through.waits)
    by_framework = through is not None and not accumulated and not isinstance(through, Module)
    comes_off = backward.certain and backward.accumulates and backward.failure is None
    return comes_off and bool(backward.reached) and read.isdisjoint(backward.reached) and not by_framework


def _clearings(run: Run, one: Backward, following: Backward) -> dict[ast.AST, ZeroGrad]:
    """By place, what clears between a backward and its next iteration, in the loops of both and in none
    within."""
    return {
        zero.site: zero
        for zero in between(gradient_clears(run), one.serial, following.serial)
        if zero.loops in (one.loops, following.loops) and not one.reached.keys().isdisjoint(zero.leaves)
    }


def _unused(zero: ZeroGrad, backward: Backward) -> bool:
    """Whether what a backward certainly gave is cleared before any step has consumed it."""
    held = [dropped[backward] for dropped in zero.dropped.values() if backward in dropped]
    return any(one.certain for one in held) and not any(one.consumed for one in held)


def _consumes_one(step: Step, iterations: list[Backward]) -> bool:
    """Whether a step consumes what one of several iterations of a backward gave, and nothing else."""
    consumed = {b for held in step.consumed.values() for b in held}
    return not step.doubtful and len(consumed) == 1 and consumed <= set(iterations)


def _cleared_behind(run: Run, step: Step, but: ZeroGrad) -> bool:
    """Whether something else than one clearing clears for a step behind it, in the same iteration."""
    return any(
        z.site is not but.site and z.loops == step.loops and set(z.leaves) >= step.consumed.keys()
        for z in between(gradient_clears(run), step.serial)
    )
