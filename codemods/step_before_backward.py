"""An optimizer steps before the backward whose gradients it should use.
The gradients are cleared before the next step: nothing raises, and the network does not learn from that
loss.

    optimizer.zero_grad()          optimizer.zero_grad()
    loss = loss_fn(model(x), y)    loss = loss_fn(model(x), y)
    optimizer.step()          =>   loss.backward()
    loss.backward()                optimizer.step()

It learns nothing at all, or only from the losses that are backpropagated before the step.

When not to fix it: where the step is for an earlier loss.

Preconditions:

* the optimizer's only step in the iteration comes before the backward, in the same block and with no other
  backward in between, and the backward reaches what it owns: certainly, or at least as far as can be seen
  where no step of the optimizer uses anything;
* it never uses a gradient of that backward: wherever another iteration follows, they are certainly cleared;
* it never uses anything at all; or nobody else uses that loss or looks at its gradients, no other optimizer
  owns a part of what it reaches, and no other step follows that it could be for;
* or it is all that a function does with the optimizer and the loss that it is handed: it clears the one,
  steps, and differentiates the other.

By hand: call `step()` after the backward whose gradients it should use.

Effect: repairs where no step of the optimizer uses anything, changes where it uses other losses. What is
predicted between the two is predicted before the step now.

Severity: error.
Clause: every gradient that is meant is used.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    clipped_between,
    consumers,
    ever_finds_gradient,
    first_step,
    gradient_clears,
    owned_elsewhere,
    step_follows,
    steps,
    steps_in,
    undifferentiated,
)
from gradfix.core.codemod import Claim, Effect, Finding, Fix, Note
from gradfix.core.span import Span
from gradfix.rules.clauses import KEPT, UNKNOWN, Verdict, breaches, cleared_since_the_step_before
from gradfix.rules.edits import move, note, receiver, stepped, within_file
from gradfix.rules.intent.misdirected_steps import misdirected
from gradfix.rules.intent.purpose import meant_for


@dataclass(eq=False)
class Early:
    """A step, and the backward that should have come before it."""

    step: Step
    backward: Backward
    effect: Effect


def find(program: Program) -> Iterator[Finding]:
    """Report each step that comes before its backward."""
    for early in program.certain_observations(
        too_early, lambda e: e.backward.site, raises=False, repeated=_loses
    ):
        step = program.statement(early.step.site)
        block = program.suite_around(step)
        # It may be in a function that is called there.
        places = [*early.backward.calls, early.backward.site]
        leading = [program.statement(place) for place in places if getattr(place, "lineno", 0) > 0]
        backward = next((statement for statement in leading if statement in block), None)
        if backward is not None and block.index(step) < block.index(backward):
            yield _finding(program, early, step, backward)


def _loses(run: Run) -> bool:
    """Whether nobody consumes what some backward has computed."""
    return any(event.accumulates and first_step(run, event) is None for event in backwards(run))


def too_early(run: Run) -> dict[Hashable, Early]:
    """Backwards that nobody consumes, each with the step of their optimizer that came just before."""

    def judge(event: Backward) -> Early | Verdict:
        early = _before(run, event)
        if early is not None and (not event.loops or _lost(run, early)):
            return early
        return KEPT if early is None or _followed(run, early) else UNKNOWN

    return breaches(backwards(run), judge)


def _before(run: Run, event: Backward) -> Early | None:
    """The step that should have waited for ``event``, if its optimizer gets nothing from it."""
    if not event.loops:
        return _in_helper(run, event)
    if not ((event.certain or event.graph_unknown) and event.accumulates and event.failure is None):
        return None
    reached = set(event.reached)
    if not all(o.state.groups_known for o in run.optimizers):
        return None
    here = steps_in(run, event.loops)
    place = bisect_left(here, event.serial, key=lambda s: s.serial)
    step = here[place - 1] if place else None
    if step is None or step.doubtful or not _may_feed(event, step) or misdirected(run, step) is not None:
        return None
    idle = not ever_finds_gradient(run, step)
    if event.graph_unknown and not idle:
        return None
    consumed = first_step(run, event) is not None
    # What somebody has in hand who cannot be seen may be for him. Where the step trains nothing, that counts
    # only until it is cleared, see _lost.
    if not idle and any(leaf.unknown_grad for leaf in reached):
        return None
    others = any(s is not step and s.optimizer is step.optimizer for s in here)
    if others and (not idle or step.optimizer in consumers(run, event)):
        return None
    if any(b.accumulates for b in between(backwards(run), step.serial, event.serial)):
        return None
    if idle:
        before = [s.serial for s in step.optimizer.steps if s.serial < step.serial]
        if undifferentiated(run, step, set(step.optimizer.owned()), max(before, default=-1)) is not None:
            return None  # A backward is missing: see step-without-gradients.
        if any(_astray(run, b) for b in backwards(run) if b.loops == event.loops and b.serial < step.serial):
            return None  # That one is for the step, and does not reach its parameters.
        return None if _robbed(run, step, event) else Early(step, event, Effect.REPAIRS)
    reached = {leaf for leaf, sure in event.reached.items() if sure}
    if reached.isdisjoint(step.optimizer.owned()):
        return None
    # It has losses: this one is for it only if it is for nobody else, and nobody just looks at it.
    owners = [o for o in run.optimizers if not reached.isdisjoint(o.state.owned())]
    watched = run.grad_read_between(event.serial, run.serial + 1) or clipped_between(run, event.serial)
    if consumed or watched or len(owners) > 1 or step_follows(run, event):
        return None
    return Early(step, event, Effect.CHANGES)


def _astray(run: Run, event: Backward) -> bool:
    """Whether a loss reaches nothing that any optimizer owns."""
    owned = (leaf for optimizer in run.optimizers for leaf in optimizer.state.owned())
    return event.accumulates and not any(leaf in event.reached for leaf in owned)


def _in_helper(run: Run, event: Backward) -> Early | None:
    """As ``_before``, in a function that is handed its only optimizer, clears it, steps, and differentiates.

    Whatever the loss is: nothing was differentiated between the clearing and the step.
    """
    if not event.accumulates or len(steps(run)) != 1 or len(backwards(run)) != 1:
        return None
    (step,) = steps(run)
    own = step.optimizer.owned()
    if not step.optimizer.external or step.loops or step.serial > event.serial or step.doubtful:
        return None
    if len(run.optimizers) + len(run.external_optimizers) > 1 or any(leaf.unknown_grad for leaf in own):
        return None
    cleared = any(
        z.serial < step.serial and not z.loops and set(own) <= set(z.leaves) for z in gradient_clears(run)
    )
    return Early(step, event, Effect.REPAIRS) if cleared else None


def _robbed(run: Run, step: Step, event: Backward) -> bool:
    """Whether gradients of this iteration were there for the step, and cleared: that is misplaced-zero-grad.

    What a loss leaves on its way into other networks is not for the step where ``event`` is for it alone.
    """
    alone = not owned_elsewhere(run, event, step.optimizer)
    return any(
        meant_for(run, lost) in (None, step.optimizer)
        and not (alone and owned_elsewhere(run, lost, step.optimizer))
        for _, lost in cleared_since_the_step_before(run, step)
    )


def _lost(run: Run, early: Early) -> bool:
    """Whether all that a backward computed for the optimizer, or may have, is certainly cleared."""
    event, optimizer = early.backward, early.step.optimizer
    idle = early.effect is Effect.REPAIRS
    dropped = {
        leaf
        for z in gradient_clears(run)
        for leaf, held in z.dropped.items()
        if event in held and not (idle and leaf in z.unknown)
    }
    mine = set(optimizer.owned())
    return (mine if optimizer.external else mine & set(event.reached)) <= dropped


def _may_feed(event: Backward, step: Step) -> bool:
    """Whether a backward may leave gradients in what a step moves."""
    return step.optimizer.external or not set(event.reached).isdisjoint(step.optimizer.owned())


def _followed(run: Run, early: Early) -> bool:
    """Whether another iteration of the innermost loop follows, for the same optimizer."""
    event = early.backward
    return any(
        other.site is event.site
        and other.serial > event.serial
        and other.loops[:-1] == event.loops[:-1]
        and _may_feed(other, early.step)
        for other in backwards(run)
    )


def _finding(program: Program, early: Early, step: ast.stmt, backward: ast.stmt) -> Finding:
    name, loss = stepped(program, early.step.optimizer) or "the optimizer", receiver(program, early.backward)
    assert isinstance(early.step.site, ast.Call)
    if early.effect is Effect.REPAIRS:
        what = "this step finds no gradient and updates nothing"
    else:
        what = "this step runs without them"
    notes: tuple[Note, ...] = (
        note(early.step.site, what),
        note(early.backward.site, "these gradients are cleared before the next step"),
    )
    anchor = _last_word(program, backward)
    # A forward that stood between the two comes before the step now.
    claim = Claim(unchanged=(), same_forwards=False)
    fix = Fix("step after the backward", early.effect, (move(step, anchor, "after"),), claim)
    return Finding(
        "step-before-backward",
        f"`{name}.step()` comes before the backward of `{loss}`: it never uses these gradients",
        Span.of(early.step.site),
        notes,
        within_file([fix]),
    )


def _last_word(program: Program, backward: ast.stmt) -> ast.stmt:
    """The last of the statements directly after a backward that clip or unscale its gradients."""
    block = program.suite_around(backward)
    last = backward
    for statement in block[block.index(backward) + 1 :]:
        if not re.search(r"\bclip_grad|\bunscale_\b|\.grad\b", program.segment(statement)):
            break
        last = statement
    return last
