"""The ledger that the model writes of a program, held against that of a run entry by entry."""

from __future__ import annotations

import ast
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from pathlib import Path
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Event, Leaf, OptimizerState
from gradfix.autograd.model_ledger import ledger_of, operation, terms_of
from gradfix.autograd.program import analyze
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, steps
from gradfix.core.ledger import BackwardCall, Entry, Happened, Ledger, Parameter
from gradfix.verify.recording.records import RecordedOptimizer, Recording


@dataclass
class Comparison:
    """What was compared, and what came of it."""

    entries: int = 0
    """Entries, by call and layer, of which both ledgers tell the same kind of thing."""
    abstained: Counter[str] = field(default_factory=Counter)
    """What was not compared: entries, calls or whole programs, by the reason."""
    differences: list[str] = field(default_factory=list)

    def merge(self, other: Comparison) -> None:
        """Add another comparison to this one."""
        self.entries += other.entries
        self.abstained += other.abstained
        self.differences += other.differences


class Fate(NamedTuple):
    """What became of the entry of a layer."""

    forward: int | None
    backward: int
    """How often it had been moved then."""
    steps: tuple[int, ...]
    cleared: int | None
    """How many calls and steps had been before the clearing."""


def compare(path: Path, recording: Recording) -> Comparison:
    """Hold the two ledgers of a program against each other.

    Loops of many passes are run a few times by the model, and what it cannot see is no part of its ledger:
    a program that it does not follow pass by pass is not compared.
    """
    text = path.read_bytes().decode() if path.exists() else recording.source
    program = analyze(ast.parse(text), text, path)
    found = Comparison()
    if not program.entry_points or program.entry_points[0].node is not program.tree or program.messages:
        found.abstained["program: not followed"] += 1
        return found
    run, real = program.entry_points[0].runs[0], recording.ledger
    events, taken = [one for one in backwards(run) if one.accumulates], steps(run)
    layers = _layers(run, recording)
    if real is None or layers is None:
        found.abstained["program: " + ("too large" if real is None else "other layers")] += 1
        return found
    model = ledger_of(run, events, taken)
    said = _places(model, [_line(one) for one in events], [_line(one) for one in taken])
    happened = _places(
        real, [one.place.line for one in recording.backwards], [one.place.line for one in recording.steps]
    )
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(said, happened)))
    if common < max(len(said), len(happened)):
        if run.decided_by_number or run.unflipped or run.left_open:
            # The model's second pass may be any later one.
            found.abstained["program: passes with certain numbers"] += 1
            return found
        why = "after the error" if recording.uncaught is not None else "beyond what both have"
        found.abstained[f"event: {why}"] += max(len(said), len(happened)) - common
    whole = common == len(happened) and (common == len(said) or recording.uncaught is not None)
    model, real = (_until(one, common) for one in (model, real))
    _Comparing(events, model, real, layers, recording, found, whole).compare()
    return found


def _line(event: Event) -> int | None:
    return getattr(event.site, "lineno", None)


def _places(ledger: Ledger, calls: list[int | None], steps: list[int | None]) -> list[tuple[str, int | None]]:
    """The calls and the steps in order, each with its line."""
    lines = {"backward": calls, "step": steps}
    return [(kind, lines[kind][number]) for kind, number in ledger.order if kind in lines]


def _until(ledger: Ledger, most: int) -> Ledger:
    """What happened up to the last of so many calls and steps."""
    counted = list(accumulate(one.kind in ("backward", "step") for one in ledger.order))
    order = ledger.order[: bisect_left(counted, most) + 1 if most else 0]
    calls, taken, clearings = (
        sum(one.kind == kind for one in order) for kind in ("backward", "step", "clearing")
    )
    return Ledger(
        ledger.calls[:calls], ledger.steps[:taken], ledger.clearings[:clearings], order, ledger.lent
    )


def _layers(run: Run, recording: Recording) -> dict[Parameter, Leaf] | None:
    """The block of the model that each parameter of the run is a part of; ``None`` if they do not match."""
    states = [one.state for one in run.optimizers]
    if len(states) != len(recording.optimizers):
        return None
    found: dict[Parameter, Leaf] = {}
    for state, optimizer in zip(states, recording.optimizers):
        blocks, owned = _blocks(optimizer), list(dict.fromkeys(state.owned()))
        if len(blocks) != len(owned) or not _same_line(state, optimizer):
            return None
        found |= {(optimizer.index, at): leaf for positions, leaf in zip(blocks, owned) for at in positions}
    return found


def _same_line(state: OptimizerState, optimizer: RecordedOptimizer) -> bool:
    return getattr(state.created, "lineno", 0) == optimizer.place.line


def _blocks(optimizer: RecordedOptimizer) -> list[list[int]]:
    """The parameters of an optimizer by layer: the weight of a layer with its bias."""
    found: dict[str, list[int]] = {}
    for at, name in enumerate(optimizer.parameters):
        layer, _, own = name.rpartition(".")
        of_torch = layer and own.startswith(("weight", "bias", "in_proj"))
        found.setdefault(layer if of_torch else f"{at}: {name}", []).append(at)
    return list(found.values())


COMPOSED = ("kl_div",)
"""Losses that torch puts together from operations by which it multiplies."""


@dataclass
class _Comparing:
    events: list[Backward]
    model: Ledger
    real: Ledger
    layers: Mapping[Parameter, Leaf]
    recording: Recording
    found: Comparison
    whole: bool
    """Whether the model has run all passes of all loops."""

    def __post_init__(self) -> None:
        source = self.recording.source
        self.in_place = any(word in source for word in ("zero_()", "set_to_none=False", "zero_grad(False)"))
        """Whether gradients are set to zero where they are: of one that is zero already, that is not seen."""
        # A schedule that goes on where another one ended is none of which the model says anything.
        self.unordered = {"clearing", *(["schedule"] if "last_epoch" in source else [])}

    def compare(self) -> None:
        for event, said, happened in zip(self.events, self.model.calls, self.real.calls):
            self.call(event, said, happened)
        self.entries()
        self.queries()

    def differ(self, where: str, happened: object, said: object) -> None:
        if happened != said:
            self.found.differences.append(f"{where}: {happened}, the model has {said}")

    def call(self, event: Backward, said: BackwardCall, happened: BackwardCall) -> None:
        """The terms of a loss, and the earlier calls that went through its graph."""
        where = f"call {said.index}"
        if not said.followed:
            self.found.abstained["call: not certain"] += 1
            return
        kept = any(node.opaque for node in event.visited)
        earlier = {
            call for call in said.again | happened.again if self.model.calls[call].followed and not kept
        }
        self.differ(f"{where}, again through the graph of", happened.again & earlier, said.again & earlier)
        if not said.terms or any(node.opaque for node in event.visited):
            self.found.abstained["call: terms"] += 1
            return
        if not self.whole and any(term.count > 1 for term in (*said.terms, *happened.terms)):
            self.found.abstained["call: passes of a loop that are added up"] += 1
            return
        if len(said.terms) != len(happened.terms):
            most = [max(term.count for term in one.terms) for one in (happened, said)]
            self.differ(f"{where}, a term", *most)
            self.found.abstained["call: terms taken apart otherwise"] += 1
            return
        counts = [sorted(term.count for term in one.terms) for one in (happened, said)]
        self.differ(f"{where}, terms", *counts)
        scales = [sorted(_scales(one)) for one in (happened, said)]
        if any(operation(node) in COMPOSED for node in terms_of(event)) or len(scales[0]) != len(scales[1]):
            self.found.abstained["call: scale"] += 1
        elif not all(map(math.isclose, *scales)):
            self.differ(f"{where}, scales", *scales)

    def entries(self) -> None:
        """What each call has given each layer, and its fate."""
        happened = self.happened()
        said = {(one.call, one.parameter): one for one in self.model.entries}
        owned = set(self.layers.values())
        for (call, layer), entry in said.items():
            if layer not in owned:
                continue
            real = happened.pop((call, layer), None)
            where = f"call {call} for {getattr(layer, 'label', layer)}"
            if not entry.certain:
                self.found.abstained["entry: not certain"] += 1
            elif real is None:
                self.found.differences.append(f"{where}: nothing, the model has an entry")
            elif isinstance(real, str):
                self.found.abstained[f"entry: {real}"] += 1
            elif entry.lent:
                self.found.abstained["entry: gradients may be written otherwise"] += 1
            else:
                told = _fate(self.model, entry)
                if self.in_place and told.cleared is not None and real.cleared != told.cleared:
                    self.found.abstained["entry: zeros set to zero"] += 1
                    continue
                self.found.entries += 1
                if told.forward is None:
                    real = real._replace(forward=None)
                self.differ(where, real, told)
        for call, layer in happened:
            if self.model.calls[call].followed:
                label = getattr(layer, "label", layer)
                self.found.differences.append(f"call {call} for {label}: an entry, the model has none")
            else:
                self.found.abstained["entry: not certain"] += 1

    def happened(self) -> dict[tuple[int, Parameter], Fate | str]:
        """By call and layer, what became of the entries of its parameters, or why that is not one thing."""
        parts: dict[tuple[int, Parameter], list[Entry]] = {}
        for entry in self.real.entries:
            if entry.parameter in self.layers:
                parts.setdefault((entry.call, self.layers[entry.parameter]), []).append(entry)
        return {key: self.together(entries) for key, entries in parts.items()}

    def together(self, entries: list[Entry]) -> Fate | str:
        """The entries of one layer, whose parameters several optimizers may own."""
        if any(entry.lent for entry in entries):
            return "gradients are written by hand"
        by_owner: dict[int, set[Fate]] = {}
        parts: dict[int, set[str]] = {}
        for entry in entries:
            owner, at = entry.parameter  # type: ignore[misc]
            by_owner.setdefault(owner, set()).add(_fate(self.real, entry))
            parts.setdefault(owner, set()).add(
                self.recording.optimizers[owner].parameters[at].rpartition(".")[2]
            )
        if any(len(fates) > 1 for fates in by_owner.values()) or len({*map(frozenset, parts.values())}) > 1:
            return "a layer in parts"
        fates = [fate for (fate,) in by_owner.values()]
        taken = sorted({step for fate in fates for step in fate.steps})
        return fates[0]._replace(steps=tuple(taken))

    def queries(self) -> None:
        """What is asked of a ledger, where nothing in it is uncertain."""
        if self.model.lent or not all(call.followed for call in self.model.calls):
            self.found.abstained["queries"] += 1
            return
        twice = [{one.step: one.count for one in ledger.doubled()} for ledger in (self.real, self.model)]
        if self.whole:
            self.differ("used twice", *twice)
        kinds = [
            [one for one in ledger.order if one.kind not in self.unordered]
            for ledger in (self.real, self.model)
        ]
        self.differ("order", *kinds)


def _fate(ledger: Ledger, entry: Entry) -> Fate:
    if entry.clearing is None:
        return Fate(*entry.versions, entry.steps, None)
    cleared = ledger.order.index(Happened("clearing", entry.clearing))
    before = sum(one.kind in ("backward", "step") for one in ledger.order[:cleared])
    return Fate(*entry.versions, entry.steps, before)


def _scales(call: BackwardCall) -> Iterator[float]:
    """The numbers by which terms are multiplied, where they are known."""
    for term in call.terms:
        if isinstance(term.scale, tuple):
            number, others = term.scale
            if not others:
                yield number
        elif isinstance(term.scale, float):
            yield term.scale


__all__ = ["Comparison", "compare"]
