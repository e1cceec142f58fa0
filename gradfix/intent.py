"""Which loss is meant for which parameters, as far as a ledger tells. No name decides.

Where one step consumes the gradients of two losses that share a graph, that may be how the program is meant
(two heads on one trunk) or a leak (an advantage that carries the critic's graph into the actor's loss).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradfix.ledger import Call, Ledger, Parameter, Parameters


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two losses of which it is not certain that both are meant for the parameters that receive both."""

    first: Call
    second: Call
    shared: Parameters
    """The parameters."""
    reason: str
    leaking: Call | None = None
    """The one of the two that most likely was to take what the other trains as a constant: it is for another
    optimizer, into whose parameters the other loss does not go."""


def doubts(ledger: Ledger) -> Iterator[Doubt]:
    """The pairs of losses with a common graph, consumed by one step, that may not both be meant for it."""
    for second in ledger.calls:
        for number in sorted(second.again):
            found = doubt(ledger, ledger.calls[number], second)
            if found is not None:
                yield found


def doubt(ledger: Ledger, first: Call, second: Call) -> Doubt | None:
    """Why it is not certain that what one step consumes of two losses is meant to be consumed together.

    Both are meant for it if one optimizer alone consumes both, nobody throws either away, and neither mixes
    what the other trains with what it alone trains, side by side. A part of a network that *follows* the
    shared one (a head on a trunk) is no such mixture.
    """
    shared = _consumed_together(ledger, first, second)
    if not shared:
        return None
    consumers = [ledger.consumers.get(call.index, {}) for call in (first, second)]
    owners = {optimizer for each in consumers for parameter, optimizer in each.items() if parameter in shared}
    if len(owners) > 1:
        return Doubt(first, second, shared, "each goes into parameters of several optimizers")
    if (first.reached & second.reached) - shared:
        # Of two players that take turns, each throws away what the other's loss has left.
        return Doubt(first, second, shared, "other parameters that both reach do not consume both")
    calls = [(call, {*each.values()}) for call, each in zip((first, second), consumers)]
    for (one, mine), (other, theirs) in (calls, calls[::-1]):
        spills = theirs < mine
        alike = theirs == mine and not one.reached <= other.reached
        if (spills or alike) and _mixes(one, other):
            reason = (
                f"{one.loss} trains what {other.loss} does not as well, and may have been meant to take "
                "what the other trains as a constant"
            )
            return Doubt(first, second, shared, reason, one if spills else None)
    return None


def _mixes(one: Call, other: Call) -> bool:
    """Whether a term of a loss mixes parameters of its own with those of another loss, side by side."""
    if any(term.reached <= other.reached for term in one.terms):
        return False  # A part of its own is for these alone.
    return any(term.direct & other.reached and term.direct - other.reached for term in one.terms)


def cut_rightly(before: Ledger, after: Ledger, loss: str, parameter: Parameter) -> bool:
    """Whether a repair has rightly taken from a loss a part of what it gave to a parameter.

    It leaked into what another loss trains, and does no more; what it reaches by way of its own parameters,
    it still reaches so.
    """
    for found in doubts(before):
        if found.leaking is None or found.leaking.loss != loss or parameter not in found.shared:
            continue
        other = found.first if found.leaking is found.second else found.second
        own = found.leaking.reached - other.reached
        now = next((call for call in after.calls if call.loss == loss), None)
        if now is not None and not any(_mixes(now, call) for call in after.calls if call.loss == other.loss):
            return now.flow.through(own) >= found.leaking.flow.through(own) and now.reached >= own
    return False


def _consumed_together(ledger: Ledger, first: Call, second: Call) -> Parameters:
    return frozenset(
        parameter
        for step in ledger.steps
        for parameter, calls in step.consumed.items()
        if first.index in calls and second.index in calls
    )
