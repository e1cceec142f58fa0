"""Whose turn it is: steps that come where another optimizer's loss has just been differentiated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import Backward, OptimizerState, Step, ZeroGrad, unseen
from gradfix.autograd.questions import backwards, between, steps, steps_in, zeros
from gradfix.autograd.run import Run
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
        path = self.step.path
        found = between(backwards(self.run), self._since(), self.step.serial)
        return [loss for loss in found if loss.accumulates and loss.path == path]

    def own(self) -> list[Backward]:
        """What its optimizer consumes at its other steps, for the first time."""
        others = [s for s in self.step.optimizer.steps if s.site is not self.step.site]
        return list(dict.fromkeys(loss for step in others for loss in _fresh(step)))

    def clearings(self) -> Iterator[ZeroGrad]:
        """Where optimizers clear their gradients for this loss, since the step before."""
        for zero in between(zeros(self.run), self._since(), self.step.serial):
            if zero.path == self.step.path and isinstance(zero.target, Optimizer):
                yield zero

    def _since(self) -> int:
        """When the step before was made, in the same pass."""
        earlier = (s.serial for s in steps_in(self.run, self.step.path) if s.serial < self.step.serial)
        return max(earlier, default=-1)


def misdirected(run: Run, step: Step) -> Misdirected | None:
    """Why a step is one of the wrong optimizer, if that is certain.

    The loss before it reaches parameters of one other optimizer alone. That one never steps, and this one has
    a loss of its own elsewhere; or that one steps where a loss for this one has been differentiated.
    """
    stray = _stray(run, step)
    if stray is None:
        return None
    if not stray.meant.steps:
        mine = step.optimizer.steps
        alone = not _fresh(step) and any(s.site is not step.site and _fresh(s) for s in mine)
        return stray if alone else None
    mine, theirs = (
        [s for s in steps_in(run, step.path) if s.optimizer is one] for one in (step.optimizer, stray.meant)
    )
    if len(mine) != 1 or len(theirs) != 1:
        return None
    loss = _before(run, theirs[0])
    owned = set(step.optimizer.owned())
    if (
        loss is None
        or loss is stray.loss
        or not any(sure and leaf in owned for leaf, sure in loss.reached.items())
    ):
        return None
    stray.partner = Misdirected(run, theirs[0], loss, step.optimizer, stray)
    return stray


def swapped(run: Run, step: Step) -> bool:
    """Whether an optimizer steps directly after another one's loss, and that one after a loss of its own."""
    found = misdirected(run, step)
    if found is not None:
        return found.partner is not None
    strays = (misdirected(run, other) for other in steps_in(run, step.path) if other is not step)
    return any(one is not None and one.partner is not None and one.partner.step is step for one in strays)


def _stray(run: Run, step: Step) -> Misdirected | None:
    """A step whose optimizer owns nothing that the loss before it reaches, where one other owns it all."""
    states = [optimizer.state for optimizer in run.optimizers]
    if len(states) < 2 or run.strangers or step.doubtful or step.scaler is not None:
        return None
    loss = _before(run, step)
    if loss is None or not all(loss.reached.values()) or any(map(unseen, loss.visited)):
        return None
    if any(not s.groups_known or s.escaped or s.wrapped or s.stranger for s in states):
        return None
    owners = [state for state in states if not loss.reached.keys().isdisjoint(state.owned())]
    if len(owners) != 1 or owners[0] is step.optimizer or not loss.reached.keys() <= set(owners[0].owned()):
        return None
    return Misdirected(run, step, loss, owners[0])


def _before(run: Run, step: Step) -> Backward | None:
    """The loss of its pass that a step comes directly after, with no other step in between."""
    losses = [b for b in backwards(run) if b.accumulates and b.serial < step.serial]
    loss = losses[-1] if losses else None
    if loss is None or loss.path != step.path or not loss.certain or loss.caught or not loss.reached:
        return None
    if run.grad_read_between(loss.serial, step.serial):
        return None
    return loss if next(between(steps(run), loss.serial, step.serial), None) is None else None


def _fresh(step: Step) -> list[Backward]:
    """What a step consumes of its own pass for the first time."""
    return [
        backward
        for held in step.consumed.values()
        for backward, (_, before) in held.items()
        if not before and backward.path[: len(step.path)] == step.path
    ]
