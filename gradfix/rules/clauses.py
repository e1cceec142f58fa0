"""The clauses of right training, as questions about a run: each is *broken*, *kept*, or nothing is known.

At every step, each parameter of the optimizer receives each loss that is meant for it once, computed with the
weights that the step moves, and no other; every gradient meant for a parameter is used by its optimizer; what
is meant for nobody costs nothing. Whom a loss is meant for is asked of :mod:`gradfix.rules.intent`. What
breaks a clause is told by the events that show it.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import NamedTuple, TypeVar

from gradfix.autograd.graph import Backward, Event, Leaf, ModuleCall, OptimizerState, Step, ZeroGrad
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    calls_in,
    first_step,
    gradient_clears,
    leaves_gradients_for,
    same_iteration,
    steps,
    steps_in,
    steps_using,
    undifferentiated,
)
from gradfix.autograd.values import Module
from gradfix.rules.intent.leak_paths import leads_through, passing_through
from gradfix.rules.intent.misdirected_steps import swapped
from gradfix.rules.intent.players import fooling
from gradfix.rules.intent.purpose import meant_for


class Verdict(enum.Enum):
    """What is said of a clause that nothing is seen to break."""

    KEPT = enum.auto()
    UNKNOWN = enum.auto()


KEPT, UNKNOWN = Verdict.KEPT, Verdict.UNKNOWN
Happened = TypeVar("Happened", bound=Event)
Breach = TypeVar("Breach")


def breaches(
    events: Iterable[Happened],
    judge: Callable[[Happened], Breach | Verdict],
    merge: Callable[[Breach, Breach], None] = lambda first, another: None,
) -> dict[Hashable, Breach]:
    """By place: the first breach of a clause there, if no iteration keeps the clause at that place.

    Args:
        events: what may break it.
        judge: what is so of one of them.
        merge: adds to the first breach what another one at its place shows.
    """
    found: dict[Hashable, Breach] = {}
    kept: set[Hashable] = set()
    for event in events:
        judged = judge(event)
        if not isinstance(judged, Verdict):
            known = found.setdefault(event.site, judged)
            if known is not judged:
                merge(known, judged)
        elif judged is KEPT:
            kept.add(event.site)
    return {site: breach for site, breach in found.items() if site not in kept}


# -- exactly one of each loss ----------------------------------------------------------------------


def has_uncleared_step(run: Run) -> bool:
    """Whether some step in a loop consumes what nothing clears in the same iteration."""
    for step in steps(run):
        cleared = {leaf for z in gradient_clears(run) if same_iteration(z, step) for leaf in z.leaves}
        if step.loops and not cleared.issuperset(step.consumed):
            return True
    return False


def consuming_again(run: Run) -> dict[Hashable, tuple[Step, Backward]]:
    """By place: steps that consume a gradient which the same optimizer has consumed before.

    Each with the first backward of the same iteration that is for its optimizer. Where any step at a place,
    but the first, uses only fresh gradients, they are cleared somewhere.
    """
    met: set[Hashable] = set()
    repeats = _repeats(steps(run))
    later: list[Step] = []
    for step in steps(run):
        place = step.optimizer.original, step.site, step.loops[: -repeats[step.optimizer.original, step.site]]
        later += [step] if place in met else []
        met.add(place)
    return breaches(later, partial(_received_again, run))


def _received_again(run: Run, step: Step) -> tuple[Step, Backward] | Verdict:
    """Whether a step consumes what an earlier one has consumed, beside what is new."""
    held = [(b, sure, before) for d in step.consumed.values() for b, (sure, before) in d.items()]
    again = any(
        (before or _replaced(run, b, step))
        and (sure or step.optimizer.external or leaves_gradients_for(run, b, step.optimizer))
        for b, sure, before in held
    )
    fresh = [b for b, _, before in held if not before and same_iteration(b, step)]
    if step.doubtful or not again or not fresh or not step.optimizer.groups_known:
        return KEPT
    # Losses for other optimizers leave gradients here too, which are to be cleared with the rest.
    own = [b for b in fresh if meant_for(run, b) is step.optimizer]
    return step, min(own or fresh, key=lambda b: b.serial)


def accumulated_leaves(step: Step) -> set[Leaf]:
    """The parameters that certainly have a gradient of this iteration and one that was consumed before."""
    return {
        leaf
        for leaf, consumed in step.consumed.items()
        if any(sure and before for sure, before in consumed.values())
        and any(sure and not before for sure, before in consumed.values())
    }


def _replaced(run: Run, backward: Backward, step: Step) -> bool:
    """Whether an optimizer that this step's optimizer replaces has already used the gradients of a
    backward."""
    own = step.optimizer
    takers = steps_using(run, [backward])
    return any(
        s.serial < step.serial and s.optimizer is not own and s.optimizer.original is own.original
        for s in takers
    )


def _repeats(happened: list[Step]) -> dict[tuple[OptimizerState, ast.AST], int]:
    """For each optimizer and place of a step: which loop repeats it, counted outwards (the innermost is 1).

    A loop over several optimizers repeats none of them.
    """
    groups: dict[tuple[OptimizerState, ast.AST], list[Step]] = {}
    for step in happened:
        groups.setdefault((step.optimizer.original, step.site), []).append(step)
    found: dict[tuple[OptimizerState, ast.AST], int] = {}
    for place, together in groups.items():
        deepest = max(len(step.loops) for step in together)
        found[place] = next(
            (
                level
                for level in range(1, deepest + 1)
                if len({step.loops[:-level] for step in together}) < len(together)
            ),
            1,
        )
    return found


# -- and no other -----------------------------------------------------------------------------------


class Stray(NamedTuple):
    """A step that uses, beside a loss that is meant for its optimizer, one that is meant for another."""

    run: Run
    step: Step
    foreign: Backward
    meant_for: OptimizerState
    own: Backward
    """The first loss of its own that the step uses."""


def strays(run: Run) -> dict[Hashable, Stray]:
    """By place: the steps that use another optimizer's loss, which nothing clears, beside their own."""
    optimizers = [one.state for one in run.optimizers]
    if len(optimizers) < 2 or run.external_optimizers or not all(one.in_view for one in optimizers):
        return {}
    again = {step.optimizer for step, _ in consuming_again(run).values()}
    return breaches((s for s in steps(run) if s.optimizer not in again), partial(_no_other, run))


def _no_other(run: Run, step: Step) -> Stray | Verdict:
    """Whether a step surely uses a loss beside its own that is left over, or passes through its network."""
    if step.doubtful or swapped(run, step):
        return UNKNOWN
    left = _left_over(run, step)
    if left is not None:
        return left
    taken = {event: None for held in step.consumed.values() for event, (sure, _) in held.items() if sure}
    events = sorted((e for e in taken if e.loops == step.loops), key=lambda event: event.serial)
    for event in events:
        passing = passing_through(run, event, step.optimizer, events)
        if passing is not None and not run.grad_read_between(event.serial, step.serial):
            return Stray(run, step, event, *passing)
    return UNKNOWN


def _left_over(run: Run, step: Step) -> Stray | None:
    """What a step uses of parameters that two optimizers have, and the other one has stepped on before.

    A loss of its own was differentiated after that, and is added to what is left.
    """
    for leaf, held in step.consumed.items():
        sure = [event for event, (certain, _) in held.items() if certain and event.loops == step.loops]
        for event in sure:
            before = first_step(run, event)
            if before is None or before.optimizer is step.optimizer or before.loops != step.loops:
                continue
            if before.doubtful or event not in before.consumed.get(leaf, ()):
                continue
            own = next((one for one in sure if one.serial > before.serial), None)
            if own is not None and not run.grad_read_between(event.serial, step.serial):
                return Stray(run, step, event, before.optimizer, own)
    return None


def left_before(run: Run, step: Step) -> Stray | None:
    """What a loss has left on its way to another optimizer's parameters, which has stepped on it already.

    A loss for this step was differentiated after that: before it, gradients were to be cleared.
    """
    mine = set(step.optimizer.owned())
    consumed = {b: sure for d in step.consumed.values() for b, (sure, _) in d.items()}
    own = [b for b in consumed if meant_for(run, b) is step.optimizer]
    if step.doubtful or not own or any(b.loops != step.loops for b in own):
        return None  # What has accumulated over several iterations would be cleared with the rest.
    needed = min(own, key=lambda b: b.serial)
    for event in (event for event, sure in consumed.items() if sure):
        other, stepped_on = meant_for(run, event), first_step(run, event)
        if other is None or other is step.optimizer or stepped_on is None:
            continue
        theirs = set(other.owned())
        early = max(event.serial, stepped_on.serial) <= needed.serial
        spilled = {leaf for leaf, known in needed.reached.items() if known} & theirs
        # Both may be trained on both losses, or one of them on what both leave in an iteration.
        both = bool(spilled) and (
            event.loops == needed.loops or not isinstance(used_by_nobody(run, needed, spilled), list)
        )
        if early and not both and leads_through(event, mine, theirs):
            return Stray(run, step, event, other, needed)
    return None


class Misowned(NamedTuple):
    """A step that trains another player's network on its own loss, since its optimizer owns both."""

    step: Step
    loss: Backward
    """What is backpropagated for the step."""
    other: OptimizerState
    """The optimizer of the other player, which is trained against this loss."""
    network: ModuleCall
    """A call of its network."""


def other_players_owned(run: Run) -> dict[Hashable, Misowned]:
    """By place: the steps that move the network that their loss fools, or the one whose results it judges."""
    if run.external_optimizers or not all(one.state.in_view for one in run.optimizers):
        return {}
    return breaches(steps(run), partial(_own_network_only, run))


def _own_network_only(run: Run, step: Step) -> Misowned | Verdict:
    """Whether a step surely moves all of a network of the other player."""
    if step.doubtful:
        return UNKNOWN
    for fools in filter(None, (fooling(run, event) for event in backwards(run) if event.loops == step.loops)):
        if step.optimizer is fools.maker:
            loss, other, networks = fools.loss, fools.judge, [fools.judged]
        elif step.optimizer is fools.judge:
            loss, other = fools.judging, fools.maker
            owned = set(other.owned()) - fools.judged.leaves
            networks = [call for call in calls_in(loss.visited) if call.leaves and call.leaves <= owned]
        else:
            continue
        moved = {leaf for leaf, held in step.consumed.items() if held.get(loss, (False,))[0]}
        shared = {leaf for call in calls_in(loss.visited) if call not in networks for leaf in call.leaves}
        for call in networks:
            if call.leaves <= moved - shared and not run.grad_read_between(loss.serial, step.serial):
                return Misowned(step, loss, other, call)
    return UNKNOWN


# -- every gradient that is meant is used -------------------------------------------------------------


class ThrownAway(NamedTuple):
    """A step that finds no gradient, or none of one network, since it was cleared after the backward."""

    zero: ZeroGrad
    backward: Backward
    step: Step


def cleared_before_use(run: Run, step: Step) -> ThrownAway | Verdict:
    """Whether what a step is to use has been cleared since it was computed.

    All that it is to use; or all of one network, none of which the optimizer ever uses.
    """
    optimizer = step.optimizer
    if step.doubtful or not optimizer.groups_known or not step.without_gradient:
        return KEPT
    if _backward_comes_later(run, step):
        return KEPT  # What is misplaced is the step: see step-before-backward.
    lost = cleared_since_the_step_before(run, step)
    if not lost or (step.consumed and not _never_trained(optimizer, lost[-1][0])):
        return KEPT
    zero = lost[-1][0]
    dropped = [b for z, b in lost if z is zero]
    # A loss that another optimizer has stepped on has only left some of its gradients here.
    own = [b for b in dropped if meant_for(run, b) in (None, optimizer)]
    if not own and (
        any(b.loops == step.loops for b in between(backwards(run), zero.serial, step.serial))
        or undifferentiated(run, step, set(optimizer.owned()), step_before(step)) is not None
    ):
        return KEPT  # It is meant for that backward, which does not come to its parameters, or a missing one.
    return ThrownAway(zero, min(own or dropped, key=lambda b: b.serial), step)


def cleared_since_the_step_before(run: Run, step: Step) -> list[tuple[ZeroGrad, Backward]]:
    """What has cleared gradients of a step's iteration that it does not find, and their backwards."""
    previous, optimizer = step_before(step), step.optimizer
    return [
        (z, b)
        for z in between(gradient_clears(run), previous, step.serial)
        for leaf, d in z.dropped.items()
        if leaf in step.without_gradient
        for b, c in d.items()
        if not c.consumed
        and b.serial > previous
        and same_iteration(b, step)
        and step.loops == z.loops
        and (c.certain or optimizer.external or leaves_gradients_for(run, b, optimizer))
    ]


def step_before(step: Step) -> int:
    """When the optimizer has stepped before."""
    return max((s.serial for s in step.optimizer.steps if s.serial < step.serial), default=0)


def _never_trained(optimizer: OptimizerState, zero: ZeroGrad) -> bool:
    """Whether a whole network is cleared, and no step of the optimizer finds a gradient of it.

    Gradients that are cleared one parameter at a time are thrown away on purpose.
    """
    cleared = set(zero.leaves)
    return isinstance(zero.target, Module) and not any(
        cleared & set(step.consumed) or step.doubtful for step in optimizer.steps
    )


def _backward_comes_later(run: Run, step: Step) -> bool:
    """Whether a backward that nobody uses follows in the iteration: the step should have waited for it."""
    mine = set(step.optimizer.owned())
    return any(
        later.loops == step.loops and mine & set(later.reached) and first_step(run, later) is None
        for later in between(backwards(run), step.serial)
    )


# -- what is meant for nobody costs nothing ------------------------------------------------------------


def used_by_nobody(run: Run, backward: Backward, leaves: set[Leaf]) -> list[ZeroGrad] | Verdict:
    """Where the gradients of some parameters are cleared before any step uses what a backward gives them.

    Nowhere, if no step on these parameters is ever made.
    """
    using = any(backward in s.consumed.get(leaf, ()) for s in steps_using(run, [backward]) for leaf in leaves)
    # A step that finds nothing at all was to use them: it is misplaced, or the clearing is.
    starved = (s for s in steps_in(run, backward.loops) if not s.consumed)
    if using or any(leaf.unknown_grad for leaf in leaves):
        return KEPT
    if any(not leaves.isdisjoint(step.without_gradient) for step in starved):
        return KEPT
    dropped = {
        z: {leaf for leaf in leaves if backward in z.dropped.get(leaf, ())} for z in gradient_clears(run)
    }
    clearing = [zero for zero, some in dropped.items() if some]
    owned = {leaf for o in run.optimizers for leaf in o.state.owned()}
    idle = leaves <= owned and all(leaves.isdisjoint(s.optimizer.owned()) for s in steps(run))
    return clearing if idle or leaves == set().union(*dropped.values()) else UNKNOWN


def optimizers_that_step(runs: Iterable[Run]) -> set[ast.AST]:
    """Where the optimizers are made that step in any of some runs."""
    return {step.optimizer.created for run in runs for step in steps(run)}
