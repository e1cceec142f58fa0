"""Which of two adversaries is trained first in an iteration: one order rewritten into the other, on request.

    fake = G(z)                                   fake = G(z)
    d_loss = bce(D(fake.detach()), zeros) + ...   g_loss = bce(D(fake), ones)
    d_loss.backward()                             g_loss.backward()
    optimizer_D.step()                       =>   optimizer_G.step()
    g_loss = bce(D(fake), ones)                   d_loss = bce(D(fake.detach()), zeros) + ...
    g_loss.backward()                             d_loss.backward()
    optimizer_G.step()                            optimizer_D.step()

Both orders are right, and neither is a mistake: so this is no codemod, and `check` never tells it. What
differs: the generator learns from the discriminator as it is before its step of the iteration, or after it.

Who is who is not read from names: the generator's loss goes through the discriminator, and the
discriminator's does not reach the generator. An actor and its critic stand to each other in the same way.

Preconditions:

* two optimizers step, each once in an iteration, in one block;
* the discriminator's loss is cut off from the generator, and each loss has a prediction of its own;
* one has stepped before the other one's loss is backpropagated;
* the two phases store nothing in attributes and do not leave the block (`break`, `return`), and the second
  one reads nothing that the first one makes but what the networks are fed.

Effect: changes.

Severity: info.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import ModuleType

from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, calls_in, gradient_clears, steps
from gradfix.core.codemod import Claim, Codemod, Effect, Finding, Fix, Way
from gradfix.core.span import Span
from gradfix.rules.edits import note, stepped, within_file
from gradfix.rules.intent.purpose import meant_for
from gradfix.rules.phases import swap_phases


class Order(StrEnum):
    """Who is trained first in each iteration."""

    GENERATOR = "generator-first"
    DISCRIMINATOR = "discriminator-first"


@dataclass(eq=False)
class AdversarialIteration:
    """One iteration: both steps, and the backwards before each."""

    run: Run
    generator: Step
    discriminator: Step
    losses: dict[Step, list[Backward]]

    @property
    def order(self) -> Order:
        """Who comes first."""
        first = self.generator.serial < self.discriminator.serial
        return Order.GENERATOR if first else Order.DISCRIMINATOR


def codemod(order: Order) -> Codemod:
    """What rewrites programs to ``order``, in the shape of a codemod: no mistake is called so."""
    module = ModuleType(order, __doc__)
    module.find = partial(find, order=order)  # type: ignore[attr-defined]
    return Codemod(str(order), lambda: module)


def find(program: Program, order: Order) -> Iterator[Finding]:
    """Each iteration in which the other one of two adversaries is trained first."""
    for entry in program.entry_points:
        for one in entry.certain_observations(
            partial(_otherwise, order=order), lambda one: one.generator.site, raises=False
        ):
            yield _finding(program, one, order)


def _otherwise(run: Run, order: Order) -> dict[Hashable, AdversarialIteration]:
    found: dict[Hashable, AdversarialIteration] = {}
    for path in dict.fromkeys(step.loops for step in steps(run)):
        iteration = _adversarial_iteration(run, [step for step in steps(run) if step.loops == path])
        if iteration is not None and iteration.order is not order:
            found.setdefault(iteration.generator.site, iteration)
    return found


def _adversarial_iteration(run: Run, pair: list[Step]) -> AdversarialIteration | None:
    """An iteration with two steps, if they are those of adversaries and nothing else is amiss."""
    if len(pair) != 2 or len({step.optimizer for step in pair}) != 2 or any(step.doubtful for step in pair):
        return None
    inside = [b for b in backwards(run) if b.loops[: len(pair[0].loops)] == pair[0].loops]
    losses: dict[Step, list[Backward]] = {step: [] for step in pair}
    for event in inside:
        mine = next((step for step in pair if meant_for(run, event) is step.optimizer), None)
        if mine is None or event.failure is not None or not event.certain or event.loops != mine.loops:
            return None
        losses[mine].append(event)
    if not all(losses.values()) or not all(step.optimizer.in_view for step in pair):
        return None
    reached = {step: {leaf for b in losses[step] for leaf in b.reached} for step in pair}
    owned = {step: set(step.optimizer.owned()) for step in pair}
    one, other = pair
    # Where both step behind both backwards, neither phase comes first.
    first, second = sorted(pair, key=lambda step: step.serial)
    if any(b.serial < first.serial for b in losses[second]):
        return None
    for generator, discriminator in ((one, other), (other, one)):
        through = not reached[generator].isdisjoint(owned[discriminator])
        if through and reached[discriminator].isdisjoint(owned[generator]):
            return AdversarialIteration(run, generator, discriminator, losses)
    return None


def _finding(program: Program, one: AdversarialIteration, order: Order) -> Finding:
    first, second = sorted((one.generator, one.discriminator), key=lambda step: step.serial)
    names = {step: stepped(program, step.optimizer) or "an optimizer" for step in (first, second)}
    notes = (
        note(first.site, f"`{names[first]}` steps first"),
        note(second.site, f"`{names[second]}` steps after it"),
    )
    when = "as it was before its step" if order is Order.GENERATOR else "as it is after its step"
    message = f"train with `{names[second]}` first: the generator learns from the discriminator {when}"
    moves = swap_phases(program, _events(one, first), first.site, second.site)
    claim = Claim(unchanged=(), same_forwards=False)
    fixes = [] if moves is None else [Fix(message, Effect.CHANGES, tuple(moves), claim, Way.REORDER)]
    reported = f"`{names[first]}` is trained before `{names[second]}`, and the order asked for is {order}"
    advice = "exchange the two phases; what the second one reads has to be computed before both"
    return Finding(str(order), reported, Span.of(_place(second)), notes, within_file(fixes), advice=advice)


def _place(step: Step) -> ast.expr | ast.stmt:
    assert isinstance(step.site, (ast.expr, ast.stmt))
    return step.site


def _events(one: AdversarialIteration, step: Step) -> set[ast.AST]:
    """What belongs to the phase of a step."""
    own, judges = set(step.optimizer.owned()), set(one.discriminator.optimizer.owned())
    events: set[ast.AST] = {event.site for event in one.losses[step]}
    events |= {z.site for z in gradient_clears(one.run) if own & set(z.leaves)}
    for event in one.losses[step]:
        events |= {call.site for call in calls_in(event.visited) if call.leaves & judges}
    return events
