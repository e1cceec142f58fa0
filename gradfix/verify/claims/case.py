"""One claim and the recordings to check it against."""

from __future__ import annotations

import ast
from contextlib import suppress

from gradfix.core.codemod import Claim, Effect
from gradfix.verify.recording.records import Recording


class Case:
    """One claim and the recordings to check it against."""

    def __init__(
        self, claim: Claim, effect: Effect, before: Recording, after: Recording, reference: Recording | None
    ) -> None:
        self.claim = claim
        self.effect = effect
        self.before = before
        self.after = after
        self.reference = reference
        # Optimizers that the original did not live to construct are known from the reference.
        self.known = max(
            (before, *([reference] if reference else [])), key=lambda recording: len(recording.optimizers)
        )
        self.listed = (
            frozenset(range(len(self.known.optimizers)))
            if claim.unchanged == "all"
            else frozenset(index for line in claim.unchanged for index in self.constructed_at(line))
        )

    def constructed_at(self, line: int) -> list[int]:
        """The optimizers constructed on a line of the original."""
        return [o.index for o in self.known.optimizers if not o.place.file and o.place.covers(line)]

    def declared(self) -> dict[int, frozenset[str | None]]:
        """By optimizer, what the backward calls that feed it differentiate."""
        found: dict[int, frozenset[str | None]] = {}
        for line, receiver in self.claim.feeds:
            for index in self.constructed_at(line):
                found[index] = found.get(index, frozenset()) | {_normal(receiver)}
        for line in {line for line, _ in self.claim.feeds}:
            sharing = self.constructed_at(line)
            for index in sharing if len(sharing) > 1 else ():
                # The line names them all, so each may consume a part of what is declared for it.
                steps = self.after.steps_of(index)
                feeds = {feed for step in steps for state in step.parameters for feed in state.feeds}
                found[index] = found[index] & self.after.receivers(sorted(feeds)) or found[index]
        return found


def _normal(receiver: str) -> str:
    """A receiver's text as :mod:`ast` writes it."""
    with suppress(SyntaxError):
        return ast.unparse(ast.parse(receiver, mode="eval").body)
    return receiver
