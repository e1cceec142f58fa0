"""What a program does to gradients, as PyTorch or the model tells it, and whether both tell the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

FILE = "<program>"

Block = frozenset[tuple[int, int]] | None
"""What an optimizer's step found in the gradients of one layer or parameter: the backwards, by their
number among the events, each with how often this optimizer had consumed it before. None: no gradient."""


@dataclass(frozen=True, slots=True)
class Called:
    """A ``backward`` or ``autograd.grad``."""

    line: int


@dataclass(frozen=True, slots=True)
class Stepped:
    """An optimizer's step."""

    line: int
    created: int
    """The line where the optimizer was made."""
    blocks: tuple[Block, ...]
    """In the order in which the optimizer was given them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened under torch, up to the first error."""

    events: tuple[Called | Stepped, ...]
    error: tuple[str, int] | None
    """Its kind and line."""


@dataclass(frozen=True, slots=True)
class Guess:
    """An optimizer's step as the model sees it: for each block what it surely found, and at most."""

    line: int
    created: int
    sure: tuple[Block, ...]
    most: tuple[Block, ...]
    doubtful: bool


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says."""

    events: tuple[Called | Guess, ...]
    error: tuple[str, int] | None
    doubts: frozenset[int]
    """Numbers of the events of which something is uncertain."""
    fragile: frozenset[int]
    """Numbers of the backwards that may raise, or raise another error before the one that is predicted."""
    changes: frozenset[int]
    """How many events came before a change in place of what may be a view of a leaf."""
    open: str = ""
    """Why the whole is uncertain, if it is."""
    possible: frozenset[tuple[str, int]] | None = None
    """Where conditions are undecided: the first errors of all the ways that they may go."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the two compare."""

    kind: Literal["agrees", "abstains", "differs"]
    what: str = ""
    """A class of differences: the same cause mostly has the same word."""
    detail: str = field(default="", compare=False)


def compare(real: Outcome, model: Prediction, *, exact: bool = True) -> Verdict:
    """Hold the model's prediction against what happened.

    Not ``exact``: only whether and where the first error comes.
    """
    if not exact:
        return _errors(real, model)
    doubtful = bool(model.open)
    for number, (happened, said) in enumerate(zip(real.events, model.events)):
        if happened.line != said.line or isinstance(happened, Called) is not isinstance(said, Called):
            return _differs(model, "flow", f"event {number}: {happened} but the model has {said}")
        doubtful = doubtful or number in model.doubts
        if isinstance(happened, Stepped) and isinstance(said, Guess):
            found = _step(happened, said)
            if found:
                return _differs(model, *found)
            doubtful = doubtful or said.doubtful or said.sure != said.most
    if real.error != model.error or len(real.events) != len(model.events):
        missed = model.error is None or len(model.events) > len(real.events)
        refused = (
            real.error is not None and real.error[0] in ("E4", "E5") and len(real.events) in model.changes
        )
        if missed and (doubtful or refused or len(real.events) - 1 in model.fragile):
            return Verdict("abstains", "error")
        if _another_first(real, model):
            return Verdict("abstains", "which error")
        what = "missed" if missed else "invented" if real.error is None else "other"
        kind = model.error[0] if model.error else real.error[0] if real.error else "end"
        counts = f"torch: {real.error} after {len(real.events)} events"
        return _differs(model, f"{what} {kind}", f"{counts}, model: {model.error} after {len(model.events)}")
    return Verdict("abstains", "facts") if doubtful else Verdict("agrees")


def _errors(real: Outcome, model: Prediction) -> Verdict:
    if real.error == model.error:
        return Verdict("agrees")
    if real.error is not None:
        if model.possible is not None and real.error in model.possible:
            return Verdict("agrees")
        if (
            model.doubts
            or model.fragile
            or model.changes
            or model.open
            or (model.possible is not None and model.error is None)
        ):
            return Verdict("abstains", "error")
    if model.error is None:
        return Verdict("differs", f"missed {real.error[0] if real.error else ''}", f"torch: {real.error}")
    what = "invented" if real.error is None else "other"
    return Verdict("differs", f"{what} {model.error[0]}", f"torch: {real.error}, model: {model.error}")


def _another_first(real: Outcome, model: Prediction) -> bool:
    """Whether the backward fails that has to, for what may be wrong with it rather than for what is."""
    if real.error is None or model.error is None or len(real.events) != len(model.events):
        return False
    return real.error[1] == model.error[1] and len(real.events) - 1 in model.fragile


def _differs(model: Prediction, what: str, detail: str) -> Verdict:
    return Verdict("abstains", "open") if model.open else Verdict("differs", what, detail)


def _step(happened: Stepped, said: Guess) -> tuple[str, str] | None:
    where = f"step at line {happened.line} of the optimizer of line {happened.created}"
    if happened.created != said.created:
        return "optimizer", f"{where}: the model takes the one of line {said.created}"
    if said.doubtful:
        return None
    if len(happened.blocks) != len(said.sure):
        return "blocks", f"{where}: {len(happened.blocks)} blocks, the model has {len(said.sure)}"
    for number, (real, sure, most) in enumerate(zip(happened.blocks, said.sure, said.most)):
        detail = f"{where}, block {number}: {_say(real)}, model: {_say(sure)}, at most {_say(most)}"
        if real is None and sure:
            return "extra gradient", detail
        if real is None and sure is not None and not most:
            return "zero gradient", detail
        if real is not None and most is None:
            return "no gradient", detail
        if real is not None and most is not None:
            if not (sure or frozenset()) <= real:
                return "extra contribution", detail
            if not real <= most:
                return "lost contribution", detail
    return None


def _say(block: Block) -> str:
    if block is None:
        return "no gradient"
    return "{" + ", ".join(f"{n}" + f" ({k} before)" * (k > 0) for n, k in sorted(block)) + "}"
