"""Whether a loss gives its optimizer what it gives in the original's own graph, weights held still."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass, field

from gradfix.core import intent
from gradfix.core.codemod import Effect
from gradfix.verify.checks import Check, Verdict
from gradfix.verify.claims.case import Case
from gradfix.verify.claims.gradients import RELATIVE, Course, agreement, is_zero, largest_of, nearly_equal
from gradfix.verify.claims.side_effects import compare_side_effects, longest
from gradfix.verify.claims.verdicts import UpdatesOff
from gradfix.verify.recording.records import RecordedBackward, Recording, Values


def same_loss(case: Case, still: UpdatesOff) -> list[Check]:
    """Whether a declared loss gives its optimizer what the original's own graph gives it."""
    checks = []
    for index, receivers in sorted(case.declared().items()):
        for receiver in sorted(str(receiver) for receiver in receivers):
            checks.append(_same_loss(case, still, index, receiver))
    return checks


def _same_loss(case: Case, still: UpdatesOff, index: int, receiver: str) -> Check:
    who = case.known.optimizers[index].name
    turn = _turn(still.after, receiver, index)
    one, other = (_loss(recording, receiver, index, turn) for recording in (still.reference, still.after))

    def verdict(what: Verdict, detail: str) -> Check:
        return Check(
            "same-loss", what, f"{receiver} for {who}, with updates off: {detail}", f"{who} {receiver}"
        )

    if one is None or other is None:
        return verdict("not checked", f"no backward call in {'the original' if one is None else 'the fix'}")
    broken = case.effect is Effect.REPAIRS and case.claim.raises in ("E1", "E2")
    if not one.value.distance(other.value) <= RELATIVE:
        # Of losses that share a name, each may be differentiated at another's place.
        alone = sum(receiver in names for names in case.declared().values()) == 1
        if broken and alone and case.claim.same_forwards and _draws_alike(case, still):
            return verdict("fails", "it has another value, although the fix should compute the same")
        return verdict("not checked", "it has another value (random draws, or state that moves)")
    overall = largest_of(*one.shares.values(), *other.shares.values())
    if all(value.zero for value in one.shares.values()):
        return verdict("not checked", "it gets no gradient in the original")
    largest, cut = 0.0, False
    for position in sorted({*one.shares, *other.shares}):
        a, b = one.shares.get(position), other.shares.get(position)
        noise, floor = one.noise.get(position, 0.0), one.floor.get(position, 0.0)
        if nearly_equal(a, b, overall, RELATIVE, noise, floor) or (is_zero(a) and is_zero(b)):
            largest = max(largest, a.distance(b) if a and b else 0.0)
            continue
        if cut_rightly(case, receiver, (index, position)):
            cut = True
            continue
        name = case.known.parameter(index, position)
        detail = f"the same loss, but another gradient of {name} than the original's own graph gives"
        return verdict("fails" if broken else "not checked", detail)
    how = agreement(Course(largest=largest))
    but = ", except for parameters that another loss trains" if cut else ""
    return verdict("holds", f"the gradient that the original's own graph gives ({how}){but}")


def _draws_alike(case: Case, still: UpdatesOff) -> bool:
    """Whether both versions have drawn the same random numbers at every step that they share."""
    found = compare_side_effects(still.reference, still.after)
    return bool(found.compared) and found.random_from is None


def cut_rightly(case: Case, receiver: str, parameter: tuple[int, int]) -> bool:
    """Whether a loss leaked into what another one trains, and leaks no more."""
    original = longest(case.before, case.reference).ledger
    if original is None or case.after.ledger is None:
        return False
    return intent.cut_rightly(original, case.after.ledger, receiver, parameter)


@dataclass(frozen=True, slots=True)
class Given:
    """What was differentiated, and what that gave each parameter of one optimizer."""

    value: Values
    shares: dict[int, Values]
    noise: dict[int, float] = field(default_factory=dict)
    floor: dict[int, float] = field(default_factory=dict)

    @classmethod
    def by(cls, call: RecordedBackward, optimizer: int) -> Given:
        """What a backward call has given, of which the value is known, while the weights were held still."""
        assert call.value is not None
        shares = {place: share for (index, place), share in call.shares.items() if index == optimizer}
        noise, floor = (
            {place: size for (index, place), size in sizes.items() if index == optimizer}
            for sizes in (call.noise, call.floor)
        )
        return cls(call.value, shares, noise, floor)

    def times(self, factor: float) -> Given:
        """The same of a loss that is multiplied by a number."""
        if factor == 1.0:
            return self
        shares = {place: share.times(factor) for place, share in self.shares.items()}
        noise, floor = (
            {place: size * abs(factor) for place, size in sizes.items()} for sizes in (self.noise, self.floor)
        )
        return Given(self.value.times(factor), shares, noise, floor)

    def plus(self, other: Given) -> Given:
        shares = dict(self.shares)
        for position, share in other.shares.items():
            shares[position] = shares[position].plus(share) if position in shares else share
        noise, floor = (
            {place: one.get(place, 0.0) + two.get(place, 0.0) for place in shares}
            for one, two in ((self.noise, other.noise), (self.floor, other.floor))
        )
        return Given(self.value.plus(other.value), shares, noise, floor)


def _turn(after: Recording, receiver: str, optimizer: int) -> int:
    """Which of the backward calls of ``receiver`` is the first for this optimizer.

    A helper that all losses go through gives them one name: the calls that only other optimizers
    consume are theirs. One that nobody consumes is not passed over.
    """
    takers: dict[int, set[int]] = {}
    for step in after.steps:
        for state in step.parameters:
            for feed in state.feeds:
                takers.setdefault(feed, set()).add(step.optimizer)
    for turn, call in enumerate(_calls(after, receiver)):
        if call.index not in takers or optimizer in takers[call.index]:
            return turn
    return 0


def _calls(recording: Recording, receiver: str) -> list[RecordedBackward]:
    return [c for c in recording.backwards if c.place.receiver == receiver and c.value is not None]


def _loss(recording: Recording, receiver: str, optimizer: int, turn: int) -> Given | None:
    """A backward call of ``receiver`` by its turn, or the first of all the terms of a sum together."""
    for call in _calls(recording, receiver)[turn : turn + 1]:
        return Given.by(call, optimizer)
    with suppress(SyntaxError):
        parsed = ast.parse(receiver, mode="eval").body
        if isinstance(parsed, ast.BinOp) and isinstance(parsed.op, ast.Add):
            left, right = (
                _loss(recording, ast.unparse(n), optimizer, 0) for n in (parsed.left, parsed.right)
            )
            return left.plus(right) if left and right else None
    return None
