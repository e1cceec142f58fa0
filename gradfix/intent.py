"""Which loss is meant for which parameters, as far as a ledger tells. No name decides.

Where one step consumes the gradients of two losses that share a graph, that may be how the program is meant
(two heads on one trunk) or a leak (an advantage that carries the critic's graph into the actor's loss).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gradfix.ledger import Call, Ledger, Parameter


class Doubt(NamedTuple):
    """Two losses of which it is not certain that both are meant for the parameters that receive both."""

    first: Call
    second: Call
    reason: str
    """In words that go after "whether both are meant for it is not certain:"."""
    shared: frozenset[Parameter]


def doubts(ledger: Ledger) -> Iterator[Doubt]:
    """The pairs of losses with a common graph, consumed by one step, that may not both be meant for it."""
    for second in ledger.calls:
        for number in sorted(second.again):
            first = ledger.calls[number]
            shared = _consumed_together(ledger, first, second)
            reason = _doubt(ledger, first, second, shared) if shared else None
            if reason is not None:
                yield Doubt(first, second, reason, shared)


def _consumed_together(ledger: Ledger, first: Call, second: Call) -> frozenset[Parameter]:
    return frozenset(
        parameter
        for step in ledger.steps
        for parameter, calls in step.consumed.items()
        if first.index in calls and second.index in calls
    )


def _doubt(ledger: Ledger, first: Call, second: Call, shared: frozenset[Parameter]) -> str | None:
    """Why it is not certain that all of ``shared`` is to learn from both losses."""
    consumers = [ledger.consumers.get(call.index, {}) for call in (first, second)]
    owners = {optimizer for each in consumers for parameter, optimizer in each.items() if parameter in shared}
    if len(owners) > 1:
        return "each goes into parameters of several optimizers"
    both = first.reached & second.reached
    if both - shared:
        # Of two players that take turns, each throws away what the other's loss has left.
        return "other parameters that both reach do not consume both"
    for one, other in ((first, second), (second, first)):
        if other.reached < one.reached and one.direct & other.reached:
            return (
                f"`{one.loss}` reaches all that `{other.loss}` does, not only through what is its own: "
                f"it may have been meant to take that as a constant"
            )
    return None
