"""Which loss is meant for which parameters, as far as a ledger tells. No name decides.

Where one step consumes the gradients of two losses that share a graph, that may be how the program is meant
(two heads on one trunk) or a leak (an advantage that carries the critic's graph into the actor's loss).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gradfix.core.ledger import BackwardCall, Entry, Ledger, Parameter, Parameters


@dataclass(frozen=True, slots=True)
class UncertainPair:
    """Two losses that reach the same parameters, where it is not certain that both are meant for them."""

    first: BackwardCall
    second: BackwardCall
    shared: Parameters
    """The parameters."""
    reason: str
    leaking: BackwardCall | None = None
    """The one of the two that most likely should not train what the other trains: it uses that as a constant
    (a target, say), or it is for another optimizer, whose parameters the other loss does not reach."""

    @property
    def other(self) -> BackwardCall:
        """The one that does not leak, if one does."""
        return self.first if self.leaking is self.second else self.second


def uncertain_pairs(ledger: Ledger) -> Iterator[UncertainPair]:
    """The pairs of losses with a common graph, consumed by one step, that may not both be meant for it."""
    for second in ledger.calls:
        for number in sorted(second.again):
            found = uncertain_pair(ledger, ledger.calls[number], second)
            if found is not None:
                yield found


def uncertain_pair(ledger: Ledger, first: BackwardCall, second: BackwardCall) -> UncertainPair | None:
    """Why it is not certain that what one step consumes of two losses is meant to be consumed together.

    Both are meant for it if one optimizer alone consumes both, nobody throws either away, and neither mixes
    what the other trains with what it alone trains, side by side. A part of a network that *follows* the
    shared one (a head on a trunk) is no such mixture, nor is a prediction that is held against data.
    """
    shared = _consumed_together(ledger, first, second)
    if not shared:
        return None
    consumers = [ledger.consumers.get(call.index, {}) for call in (first, second)]
    owners = {optimizer for each in consumers for parameter, optimizer in each.items() if parameter in shared}
    if len(owners) > 1:
        return UncertainPair(first, second, shared, "each gives gradients to several optimizers")
    apart = (first.reached & second.reached) - shared
    if any(parameter in each for each in consumers for parameter in apart):
        # Of two players that take turns, each throws away what the other's loss has left. What neither of
        # the two is ever consumed by, both only pass through.
        return UncertainPair(
            first, second, shared, "other parameters that both give gradients to do not use both"
        )
    calls = [(call, {*each.values()}) for call, each in zip((first, second), consumers)]
    for (one, mine), (other, theirs) in (calls, calls[::-1]):
        spills = theirs < mine
        alike = theirs == mine and bool(one.reached - other.reached)
        if (spills or alike) and _mixes(one, other):
            leaks = spills or _takes_for_constant(one, other)
            reason = (
                f"{one.loss} also trains parameters that {other.loss} does not, and may have been meant to "
                "be detached from those of the other"
            )
            return UncertainPair(first, second, shared, reason, one if leaks else None)
    return None


def _mixes(one: BackwardCall, other: BackwardCall) -> bool:
    """Whether a term of a loss mixes parameters of its own with those of another loss, side by side."""
    if any(term.reached <= other.reached for term in one.terms):
        return False  # A part of its own is for these alone.
    return any(
        term.direct & other.reached and term.direct - other.reached and not term.predicts
        for term in one.terms
    )


def _takes_for_constant(one: BackwardCall, other: BackwardCall) -> bool:
    """Whether a loss uses as a constant, by its role in it, what it shares with another loss.

    Without that part it still trains its own parameters.
    """
    if one.without_constants is None or not one.constants & other.reached:
        return False
    own = one.reached - other.reached
    return (
        bool(own)
        and one.constants <= other.reached
        and own <= one.without_constants.reached
        and not _mixes(one.without_constants, other)
    )


def cut_rightly(before: Ledger, after: Ledger, loss: str, parameter: Parameter) -> bool:
    """Whether a repair has rightly taken from a loss a part of what it gave to a parameter.

    The loss leaked into what another loss trains, and no longer does; what it reaches through its own
    parameters, it still reaches.
    """
    for found in uncertain_pairs(before):
        if found.leaking is None or found.leaking.loss != loss or parameter not in found.shared:
            continue
        other = found.other
        own = found.leaking.reached - other.reached
        now = next((call for call in after.calls if call.loss == loss), None)
        if now is not None and not any(_mixes(now, call) for call in after.calls if call.loss == other.loss):
            return now.flow.through(own) >= found.leaking.flow.through(own) and now.reached >= own
    return False


def leaks_still(found: UncertainPair, after: Ledger) -> bool:
    """Whether a loss of a repaired program, alone or in a sum, has the part by which one leaked before."""
    if found.leaking is None:
        return False
    other = found.other.reached
    own = found.leaking.reached - other
    return any(
        term.direct & other and term.direct - other and term.reached & own and not term.predicts
        for call in after.calls
        for term in call.terms
    )


# -- what would be right ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Correction:
    """Which gradients of a backward call no step should use."""

    drops_constants: bool = False
    """Whether those that flow through what its losses use as constants."""
    dropped: Parameters = frozenset()
    """Parameters for which it is to give nothing at all."""
    used: frozenset[int] = frozenset()
    """The terms, by number, whose gradients earlier steps have used: they are to give nothing."""


class Undecided(Exception):
    """A ledger does not tell what each step was to consume; the message says why."""


def corrections(ledger: Ledger) -> Mapping[int, Correction]:
    """What keeps a program, none of whose graphs is freed, from giving each loss once to those it is for.

    Returns:
        By call: what of it no step is to consume.

    Raises:
        Undecided: if that cannot be known.
    """
    found: dict[int, Correction] = {}
    for one in uncertain_pairs(ledger):
        if one.leaking is None:
            raise Undecided(
                f"whether {one.first.loss} and {one.second.loss} should both train what they share "
                f"is not certain: {one.reason}"
            )
        known = found.get(one.leaking.index, Correction())
        if _takes_for_constant(one.leaking, one.other):
            found[one.leaking.index] = replace(known, drops_constants=True)
        elif one.leaking.flow.through(one.leaking.reached - one.other.reached) & one.shared:
            raise Undecided(
                f"{one.leaking.loss} also trains what {one.other.loss} trains, and should train a part of it"
            )
        else:
            found[one.leaking.index] = replace(known, dropped=known.dropped | one.shared)
    for call in ledger.calls:
        if call.weighs and call.without_constants and call.without_constants.reached == call.reached:
            # What weighs a likelihood is trained by another term of the same loss.
            found[call.index] = replace(found.get(call.index, Correction()), drops_constants=True)
    for number, parameters in _repeated(ledger).items():
        known = found.get(number, Correction())
        found[number] = replace(known, dropped=known.dropped | parameters)
    for number, terms in _used_before(ledger).items():
        found[number] = replace(found.get(number, Correction()), used=terms)
    _check_consumers(ledger, found)
    return found


def _check_consumers(ledger: Ledger, corrected: Mapping[int, Correction]) -> None:
    """Whether each optimizer consumes losses of its own, or all share one, but for what is ``corrected``.

    Raises:
        Undecided: if not: one of them may consume what was meant for another one.
    """
    consumers: dict[int, set[int]] = {}
    losses: dict[int, set[int]] = {}
    for number, by in ledger.consumers.items():
        how, call = corrected.get(number, Correction()), ledger.calls[number]
        reached = (
            call.without_constants.reached
            if how.drops_constants and call.without_constants is not None
            else call.reached
        )
        for parameter, optimizer in by.items():
            if parameter in reached - how.dropped:
                consumers.setdefault(number, set()).add(optimizer)
                losses.setdefault(optimizer, set()).add(number)
    for number, several in consumers.items():
        if len(several) > 1 and len({frozenset(losses[one]) for one in several}) > 1:
            what = ledger.calls[number].loss
            raise Undecided(f"several optimizers use {what}, and not all of them use the same of it")


def _repeated(ledger: Ledger) -> dict[int, Parameters]:
    """By call: the parameters whose step consumes all that it gives by another call as well."""
    found: dict[int, Parameters] = {}
    for step in ledger.steps:
        for parameter, numbers in step.consumed.items():
            calls = [ledger.calls[number] for number in numbers if 0 <= number < len(ledger.calls)]
            given: set[int] = set()
            # Those that give the most come first: what another one gives as well is dropped.
            for call in sorted(calls, key=lambda call: (-len(call.terms), call.index)):
                terms = [term for term in call.terms if parameter in term.reached]
                numbers_ = {term.number for term in terms}
                if any(term.count > 1 for term in terms) or (numbers_ & given and not numbers_ <= given):
                    raise Undecided(f"a step uses a part of {call.loss} twice, and a part once")
                if numbers_ and numbers_ <= given:
                    found[call.index] = found.get(call.index, frozenset()) | {parameter}
                given |= numbers_
    return found


def _used_before(ledger: Ledger) -> dict[int, frozenset[int]]:
    """By call: the terms of a sum that goes on growing, whose gradients steps before have used.

    What is differentiated again as a whole, without a term that is new, may be meant to be computed anew.
    """
    found: dict[int, frozenset[int]] = {}
    used: dict[Parameter, set[int]] = {}
    for step in ledger.steps:
        for parameter, numbers in step.consumed.items():
            before, now = used.setdefault(parameter, set()), set[int]()
            for call in (ledger.calls[number] for number in numbers if 0 <= number < len(ledger.calls)):
                terms = {term.number for term in call.terms if parameter in term.reached}
                if terms & before and terms - before and all(term.scale is not None for term in call.terms):
                    found[call.index] = found.get(call.index, frozenset()) | (terms & before)
                now |= terms
            before |= now
    return found


def outdated(ledger: Ledger) -> Iterator[Entry]:
    """The entries that steps consume and that were computed with weights from before a step."""
    return (entry for entry in ledger.entries if entry.steps and entry.call in ledger.stale)


def _consumed_together(ledger: Ledger, first: BackwardCall, second: BackwardCall) -> Parameters:
    return frozenset(
        parameter
        for step in ledger.steps
        for parameter, calls in step.consumed.items()
        if first.index in calls and second.index in calls
    )
