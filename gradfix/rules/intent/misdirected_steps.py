"""Alternating optimizers: steps that follow the backward of another optimizer's loss."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import Backward, OptimizerState, Step, ZeroGrad, begins_in_unseen_code
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    cached_by_event,
    gradient_clears,
    steps,
    steps_in,
)
from gradfix.autograd.values import Optimizer


@dataclass(eq=False)
class Misdirected:
    """A step that follows a loss which trains what another optimizer owns, and nothing of its own."""

    run: Run
    step: Step
    loss: Backward
    meant: OptimizerState
    """Whose step would consume the loss."""
    partner: Misdirected | None = None
    """The step of that optimizer, if it follows the loss that is for this one."""

    def losses(self) -> list[Backward]:
        """What is differentiated for the step, since the one before."""
        path = self.step.loops
        found = between(backwards(self.run), self._since(), self.step.serial)
        return [loss for loss in found if loss.accumulates and loss.loops == path]

    def own(self) -> list[Backward]:
        """What its optimizer consumes at its other steps, for the first time."""
        others = [s for s in self.step.optimizer.steps if s.site is not self.step.site]
        return list(dict.fromkeys(loss for step in others for loss in _fresh(step)))

    def clearings(self) -> Iterator[ZeroGrad]:
        """Where optimizers clear their gradients for this loss, since the step before."""
        return (zero for zero in self._clearings() if isinstance(zero.target, Optimizer))

    def _clearings(self) -> Iterator[ZeroGrad]:
        found = between(gradient_clears(self.run), self._since(), self.step.serial)
        return (zero for zero in found if zero.loops == self.step.loops)

    def cleared_for_it(self) -> bool:
        """Whether the gradients of the one that should step are cleared for the loss, and not this one's."""
        cleared = {leaf for zero in self._clearings() for leaf in zero.leaves}
        return cleared >= set(self.meant.owned()) and cleared.isdisjoint(self.step.optimizer.owned())

    def _since(self) -> int:
        """When the step before was made, in the same iteration."""
        made = steps_in(self.run, self.step.loops)
        at = bisect_left(made, self.step.serial, key=lambda s: s.serial)
        return made[at - 1].serial if at else -1


@cached_by_event
def misdirected(run: Run, step: Step) -> Misdirected | None:
    """Why a step is one of the wrong optimizer, if that is certain.

    A loss before it reaches parameters of another optimizer, which never steps, and this one steps elsewhere
    on a loss of its own: here it finds nothing new, or what the other one's loss leaves in it on its way, for
    which the other one is cleared. Or the loss directly before it reaches parameters of another optimizer
    alone, and that one steps where a loss for this one has been differentiated.
    """
    states = [optimizer.state for optimizer in run.optimizers]
    if len(states) < 2 or run.external_optimizers or step.doubtful or step.scaler is not None:
        return None
    if any(s.wrapped or not s.in_view for s in states):
        return None
    return _never_stepped(run, step) or _swapped(run, step)


def _never_stepped(run: Run, step: Step) -> Misdirected | None:
    """A step where another optimizer's loss has been differentiated, and that one never steps."""
    idle = [o.state for o in run.optimizers if not o.state.steps]
    path, mine = step.loops, [s for s in step.optimizer.steps if s.site is not step.site and _fresh(s)]
    if not idle or not mine:
        return None
    losses = [b for b in backwards(run) if b.accumulates and b.loops == path and b.serial < step.serial]
    for loss in reversed(losses):
        meant = [state for state in idle if any(loss.reached.get(leaf) for leaf in state.owned())]
        if not meant:
            continue
        if len(meant) > 1 or not _comes_off(run, loss, step):
            return None
        stray, fresh = Misdirected(run, step, loss, meant[0]), set(_fresh(step))
        if not fresh:
            return stray
        earlier = any(s.loops == path and s.serial < step.serial and loss not in _fresh(s) for s in mine)
        return stray if fresh == {loss} and earlier and stray.cleared_for_it() else None
    return None


def _swapped(run: Run, step: Step) -> Misdirected | None:
    """A step directly after another optimizer's loss, whose own step comes after a loss for this one."""
    losses = _since_the_step_before(run, step)
    reached = {leaf for loss in losses for leaf in loss.reached}
    if not losses or any(begins_in_unseen_code(node) for loss in losses for node in loss.visited):
        return None
    states = [optimizer.state for optimizer in run.optimizers]
    owners = [state for state in states if not reached.isdisjoint(state.owned())]
    if len(owners) != 1 or owners[0] is step.optimizer or not reached <= set(owners[0].owned()):
        return None
    (meant,), owned = owners, set(step.optimizer.owned())
    if any(len({s.site for s in state.steps}) != 1 for state in (step.optimizer, meant)):
        return None
    for theirs in meant.steps:
        around = min(len(theirs.loops), len(step.loops))
        for loss in (
            _since_the_step_before(run, theirs) if theirs.loops[:around] == step.loops[:around] else ()
        ):
            if loss not in losses and any(sure and leaf in owned for leaf, sure in loss.reached.items()):
                stray = Misdirected(run, step, losses[-1], meant)
                stray.partner = Misdirected(run, theirs, loss, step.optimizer, stray)
                return stray
    return None


def swapped(run: Run, step: Step) -> bool:
    """Whether an optimizer steps directly after another one's loss, and that one after a loss of its own."""
    found = misdirected(run, step)
    if found is not None:
        return found.partner is not None
    strays = (misdirected(run, other) for other in steps_in(run, step.loops) if other is not step)
    return any(one is not None and one.partner is not None and one.partner.step is step for one in strays)


def _since_the_step_before(run: Run, step: Step) -> list[Backward]:
    """The losses of its iteration that are differentiated between the last step of any optimizer and this
    one."""
    made = steps(run)
    at = bisect_left(made, step.serial, key=lambda s: s.serial)
    since = made[at - 1].serial if at else -1
    losses = [b for b in between(backwards(run), since, step.serial) if b.accumulates]
    known = all(loss.loops == step.loops and loss.certain and not loss.error_expected for loss in losses)
    return losses if known and any(_comes_off(run, loss, step) for loss in losses) else []


def _comes_off(run: Run, loss: Backward, step: Step) -> bool:
    """Whether a loss certainly leaves gradients, and nothing reads them before a step."""
    sure = loss.certain and not loss.error_expected and any(loss.reached.values())
    return sure and not run.grad_read_between(loss.serial, step.serial)


def _fresh(step: Step) -> list[Backward]:
    """What a step consumes of its own iteration for the first time."""
    return [
        backward
        for held in step.consumed.values()
        for backward, (_, before) in held.items()
        if not before and backward.loops[: len(step.loops)] == step.loops
    ]
