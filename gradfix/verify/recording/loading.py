"""Reads what a run has left, as something hostile."""

from __future__ import annotations

import itertools
import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from gradfix.core import ledger
from gradfix.runtime.probe import BY_HAND
from gradfix.runtime.probe.coverage import Piece
from gradfix.system import hostile
from gradfix.verify.recording.records import (
    Draws,
    Ending,
    Graphs,
    ParameterState,
    RecordedAdjustment,
    RecordedBackward,
    RecordedClearing,
    RecordedEvent,
    RecordedFailure,
    RecordedOptimizer,
    RecordedStep,
    Recording,
    SourceLocation,
    Values,
)
from gradfix.verify.recording.source import Source

EVENTS, VALUES, NUMBERS = 64 << 20, 512 << 20, 100_000
"""Bytes of events and of values that are read, and the number of events."""

SCHEMA = 1 << 16
"""Characters that a schema may have."""

UNPRINTABLE = re.compile(r"[^\t\n\r -~\xa0-\ud7ff\ue000-\U0010ffff]")
"""What is not printed of a script's texts: escape sequences may rule the terminal that shows them."""


ADJUSTMENTS: dict[str, ledger.Kind] = {
    "clipped": "clipping",
    "unscaled": "unscaling",
    "scheduled": "schedule",
}
"""What else happens to gradients and learning rates, by the probe's events."""


class Forged(ValueError):
    """The files of a run hold what the probe never writes: the script has written to them."""


class _Loader:
    """Builds a recording from the files of one run.

    The process that writes them runs the user's code too, so they may hold anything at all.
    """

    def __init__(self, folder: Path, source: str) -> None:
        self.source = Source(source)
        self.folder = folder
        self.bytes = hostile.read(folder / "values.bin", VALUES)
        self.made: dict[tuple[str, int | None], Values] = {}
        self.buffers: dict[str, Values] = {}
        self.others: dict[str, Values] = {}
        self.modules: dict[str, str] = {}
        self.settings: dict[int, str] = {}

    def clean(self, text: str) -> str:
        """``text`` without the folders of the run: what is in the layer lies where the script put it."""
        scratch = self.folder / "scratch"
        text = text.replace(f"{scratch}/.overlay/", "/")
        for folder in (scratch, self.folder):
            text = text.replace(f"{folder}/", "").replace(str(folder), ".")
        return UNPRINTABLE.sub("?", text)

    def values(self, entry: list[Any] | None) -> Values | None:
        if entry is None:
            return None
        shape, dtype, digest, largest, norm, finite, offset, sketch = entry
        known = self.made.get((digest, offset))
        if known is None:
            exact: array[float] | None = None
            if offset is not None:
                exact = array("d")
                size = 8 * math.prod(shape)
                if not 0 <= offset <= offset + size <= len(self.bytes):
                    raise Forged("a tensor lies outside the file of values")
                exact.frombytes(self.bytes[offset : offset + size])
            known = self.made[digest, offset] = Values(
                shape=tuple(shape),
                dtype=dtype,
                digest=digest,
                largest=float(largest),
                norm=float(norm),
                finite=finite,
                exact=exact,
                sketch=tuple(float(number) for number in sketch or ()),
            )
        return known

    def given(self, entry: list[Any]) -> Values:
        values = self.values(entry)
        if values is None:
            raise Forged("there is no tensor where one must be")
        return values

    def updated(self, known: dict[str, Values], changed: dict[str, Any]) -> dict[str, Values]:
        """What is known of tensors by name, with what has changed."""
        given = {self.clean(name): self.given(entry) for name, entry in changed.items()}
        return {**known, **given} if given else known

    def place(self, at: dict[str, Any]) -> SourceLocation:
        inner = at["inner"] or {}
        if at["script"] is None:
            return SourceLocation(None, file=inner.get("file"), file_line=inner.get("line"))
        line = at["script"][0]
        first, last = self.source.statement(line)
        receiver = None if inner else self.source.receiver(at["script"], at["tensor"])
        return SourceLocation(line, first, last, receiver, inner.get("file"), inner.get("line"))

    def event(self, raw: dict[str, Any], backwards: int) -> RecordedEvent:
        if raw["event"] == "cleared":
            return RecordedClearing(
                {(int(one), int(at)): tuple(map(int, calls)) for one, at, calls in raw["parameters"]}
            )
        if raw["event"] in ADJUSTMENTS:
            return RecordedAdjustment(ADJUSTMENTS[raw["event"]], raw["optimizer"])
        place = self.place(raw["at"])
        if raw["event"] == "backward":
            return RecordedBackward(
                index=backwards,
                place=place,
                retain=raw["retain"],
                value=self.values(raw["value"]),
                reached=frozenset((index, position) for index, position in raw["reached"]),
                shares={(index, position): self.given(share) for index, position, share in raw["shares"]},
                leaves={name: self.values(entry) for name, entry in raw["leaves"].items()},
                weights={name: self.given(entry) for name, entry in raw.get("weights", {}).items()},
                saved=raw["saved"],
                seconds=raw.get("seconds", 0.0),
                through=self.through(raw, backwards, place),
                floor={(index, position): float(size) for index, position, size in raw.get("terms", ())},
            )
        if raw["event"] == "step":
            floors = map(float, raw.get("terms") or itertools.repeat(0.0))
            states = (
                replace(
                    ParameterState(self.values(gradient), self.given(value), tuple(feeds), *hashes),
                    floor=floor,
                )
                for (gradient, value, feeds, *hashes), floor in zip(raw["parameters"], floors)
            )
            # Steps between which nothing changes share one mapping.
            self.buffers = self.updated(self.buffers, raw["buffers"])
            self.others = self.updated(self.others, raw.get("others", {}))
            modules = {self.clean(name): self.clean(text) for name, text in raw.get("modules", {}).items()}
            self.modules = {**self.modules, **modules} if modules else self.modules
            index = raw["optimizer"]
            self.settings[index] = self.clean(raw.get("settings", self.settings.get(index, "")))
            random = Draws(*raw["random"])
            clips = [(self.clean(how), float(factor)) for how, factor in raw.get("clips", ())]
            return RecordedStep(
                index,
                place,
                random,
                tuple(states),
                self.buffers,
                self.others,
                self.modules,
                tuple(how for how, _ in clips if how),
                math.prod(factor for _, factor in clips),
                frozenset((what, number) for what, number in raw.get("draws", ())),
                dict(raw.get("drawn", {})),
                settings=self.settings[index],
                graphs=_graphs(raw.get("graphs")),
            )
        return RecordedFailure(
            kind=raw["kind"],
            type=raw["type"],
            message=self.clean(raw["message"]),
            missing=self.clean(raw["missing"]),
            during=raw["during"],
            place=place,
        )

    def through(
        self, backward: dict[str, Any], index: int, place: SourceLocation
    ) -> ledger.BackwardCall | None:
        """What a backward call went through (see ``traversal.py``), and what it gave to whom."""
        raw = backward.get("through")
        if raw is None:
            return None
        used = [
            frozenset[ledger.Parameter]((int(one), int(at)) for one, at in each) for each in raw["layers"]
        ]
        behind = _closed([tuple(map(int, each)) for each in raw["below"]])
        flow = ledger.GradientFlow(used, behind)
        firsts = [first for _, _, first, *_ in raw["terms"]]
        numbered = [
            (int(number), int(count), bool(predicts), None if scale is None else float(scale))
            for number, count, _, predicts, scale in raw["terms"]
        ]
        again = frozenset(call for call in map(int, raw["again"]) if 0 <= call < index)
        versions = {
            (int(one), int(at)): ledger.Versions(int(forward), int(now))
            for one, at, forward, now in raw["versions"]
        }
        # What is itself differentiated is used by no operation.
        gives: dict[ledger.Parameter, ledger.Versions] = {
            (one, at): versions.get((one, at), ledger.Versions(0, 0)) for one, at in backward["reached"]
        }

        def call(
            flow: ledger.GradientFlow, firsts: Sequence[Sequence[int]], **more: Any
        ) -> ledger.BackwardCall:
            terms = []
            for (number, count, predicts, scale), first in zip(numbered, firsts):
                direct = frozenset(parameter for layer in first for parameter in used[layer])
                terms.append(ledger.Term(number, count, flow.reached(first), direct, predicts, scale))
            return ledger.BackwardCall(
                index, place.receiver or str(place), tuple(terms), flow, again, gives, **more
            )

        if "cut" not in raw:
            return call(flow, firsts)
        below = _closed([tuple(map(int, each)) for each in raw["cut"]["below"]])
        cut = call(ledger.GradientFlow(used, below), raw["cut"]["terms"])
        return call(
            flow,
            firsts,
            constants=flow.reached(raw["constants"]),
            weighs=bool(raw["weighs"]),
            without_constants=cut,
        )

    def optimizer(self, raw: dict[str, Any], index: int) -> RecordedOptimizer:
        place = self.place(raw["at"])
        name = raw["at"].get("called")
        if name is None and place.line and not place.file:
            name = self.source.constructed(raw["at"]["script"])
        name = name or f"the {raw['kind']} of {place}"
        shapes = tuple(tuple(shape) for shape in raw["shapes"])
        return RecordedOptimizer(
            index,
            raw["kind"],
            place,
            name,
            tuple(raw["parameters"]),
            raw["settings"],
            shapes,
            tuple(map(int, raw.get("tensors", ()))),
        )


def _closed(below: Sequence[Sequence[int]]) -> list[frozenset[int]]:
    """By layer, all that come after it; each comes before those that come next.

    Raises:
        Forged: if they do not.
    """
    closed: list[frozenset[int]] = [frozenset()] * len(below)
    for layer in reversed(range(len(below))):
        if not all(layer < following < len(below) for following in below[layer]):
            raise Forged("a graph that goes round in circles")
        closed[layer] = frozenset(below[layer]).union(*(closed[following] for following in below[layer]))
    return closed


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in hostile.read(path, EVENTS).split(b"\n", NUMBERS)[:NUMBERS]:
        try:
            event = json.loads(line)
        except ValueError:
            return  # the process was ended while it wrote this line
        yield event


def _tail(path: Path, size: int = 4000) -> str:
    return hostile.read(path, size, tail=True).decode("utf-8", "replace")


def load(
    folder: Path, source: str, seed: int, fallback: tuple[Ending, str], watched: Collection[Piece] = ()
) -> Recording:
    """Read what the probe wrote into ``folder`` when it ran ``source``.

    ``fallback`` is the ending of a run whose process could not write its own, and its detail; ``watched`` are
    the pieces of the program that the probe was to watch. Where the files make no sense the recording is
    empty, and its ending is ``trouble``.
    """
    try:
        recording = _load(folder, source, seed, fallback, watched)
        _check(recording)
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ) as error:
        detail = (
            f"the record of the run makes no sense ({type(error).__name__}): its own code has written to it"
        )
        empty = Recording(source, seed, "trouble", detail, "", "", (), (), None, {}, 0.0)
        return replace(empty, reached=dict.fromkeys(watched, False))
    return recording


def _load(
    folder: Path, source: str, seed: int, fallback: tuple[Ending, str], watched: Collection[Piece]
) -> Recording:
    loader = _Loader(folder, source)
    events: list[RecordedEvent] = []
    optimizers: list[RecordedOptimizer] = []
    standins: list[str] = []
    reached: set[Piece] = set()
    scouted = (0, 0)
    schema = ""
    start: dict[str, Any] = {}
    end: dict[str, Any] = {}
    detail = ""
    backwards = 0
    for raw in _lines(folder / "events.jsonl"):
        match raw["event"]:
            case "start":
                start = raw
            case "optimizer":
                optimizers.append(loader.optimizer(raw, len(optimizers)))
            case "standin":
                standins.append(loader.clean(f"{raw['what']}: {raw['gave']}"))
            case "trouble":
                detail = loader.clean(raw["message"])
            case "schema":
                schema = str(raw["text"]) if len(str(raw["text"])) <= SCHEMA else ""
            case "reached":
                reached.add(_piece(raw["piece"]))
            case "scouted":
                scouted = int(raw["steps"]), int(raw["backwards"])
            case "end":
                end = raw
            case "stepped":
                last = max(i for i, one in enumerate(events) if _steps(one, raw["optimizer"]))
                after = tuple(loader.given(entry) for entry in raw["weights"])
                events[last] = replace(cast(RecordedStep, events[last]), after=after)
            case _:
                events.append(loader.event(raw, backwards))
                backwards += raw["event"] == "backward"
    names = Counter(optimizer.name for optimizer in optimizers)
    turns: Counter[str] = Counter()
    for optimizer in optimizers:
        turns[optimizer.name] += 1
        if names[optimizer.name] > 1:
            name = f"{optimizer.name} #{turns[optimizer.name]}"
            optimizers[optimizer.index] = replace(optimizer, name=name)
    failures = [event for event in events if isinstance(event, RecordedFailure)]
    raised = end.get("raised")
    return Recording(
        source=source,
        seed=seed,
        ending=end.get("how", fallback[0]),
        detail=detail if end else fallback[1],
        torch=start.get("torch", ""),
        python=start.get("python", ""),
        optimizers=tuple(optimizers),
        events=tuple(events),
        uncaught=failures[raised] if raised is not None else None,
        leaves={name: loader.values(entry) for name, entry in end.get("leaves", {}).items()},
        seconds=end.get("seconds", 0.0),
        output=loader.clean(_tail(folder / "stdout.txt") + _tail(folder / "stderr.txt")),
        standins=tuple(standins),
        schema=schema,
        weights=tuple(tuple(map(loader.given, entries)) for entries in end.get("weights", ())),
        held={name: loader.given(entry) for name, entry in end.get("held", {}).items()},
        reached={piece: piece in reached for piece in watched},
        scouted=scouted,
        graphs=_graphs(end.get("graphs")),
    )


def _graphs(raw: Sequence[int] | None) -> Graphs:
    made, alive, references = map(int, raw or (0, 0, 0))
    return made, alive, references


def _piece(raw: Sequence[int]) -> Piece:
    line, column, last, end = map(int, raw)
    return line, column, last, end


def _steps(event: RecordedEvent, optimizer: int) -> bool:
    return isinstance(event, RecordedStep) and event.optimizer == optimizer


def _check(recording: Recording) -> None:
    """Hold a recording against what the probe can have written, as far as others rely on it.

    Raises:
        Forged: if it cannot have.
    """
    backwards = 0
    for event in recording.events:
        if isinstance(event, RecordedStep):
            if not 0 <= event.optimizer < len(recording.optimizers):
                raise Forged("a step of no optimizer")
            if not 0.0 <= event.scale <= 1.0:
                raise Forged("clipped gradients that have grown")
            if any(not BY_HAND <= feed < backwards for state in event.parameters for feed in state.feeds):
                raise Forged("a gradient of a backward call that did not happen")
            digests = event.random.torch, event.random.python, event.random.numpy or ""
            if not all(
                type(n) is int and 0 <= n < event.drawn.get(what, 0) <= NUMBERS for what, n in event.draws
            ):
                raise Forged("a random draw that did not happen")
            if not all(type(count) is int and count <= NUMBERS for count in event.drawn.values()):
                raise Forged("a number that is none")
            if not all(isinstance(text, str) for text in (*digests, *event.buffers, *event.others)):
                raise Forged("what is no text stands for one")
        elif isinstance(event, RecordedAdjustment):
            if not 0 <= event.optimizer < len(recording.optimizers):
                raise Forged("gradients of no optimizer")
        elif isinstance(event, RecordedBackward):
            backwards += 1
            if any(not 0 <= index < len(recording.optimizers) for index, _ in event.reached):
                raise Forged("a parameter of no optimizer")
            if not (event.saved is None or (type(event.saved) is int and event.saved >= 0)):
                raise Forged("a graph that holds less than nothing")
            if not (type(event.seconds) is float and 0 <= event.seconds < math.inf):
                raise Forged("a call that takes no time")
    if not all(type(n) is int for one in recording.optimizers for shape in one.shapes for n in shape):
        raise Forged("a shape of no numbers")
    texts = [recording.torch, recording.python, recording.detail, *(f.message for f in _failures(recording))]
    texts += [
        name
        for optimizer in recording.optimizers
        for name in (optimizer.name, optimizer.kind, *optimizer.parameters)
    ]
    if not all(isinstance(text, str) for text in texts) or recording.ending not in get_args(Ending):
        raise Forged("what is no text stands for one")
    if not (isinstance(recording.seconds, float) and math.isfinite(recording.seconds)):
        raise Forged("no time was taken")


def _failures(recording: Recording) -> Iterator[RecordedFailure]:
    return (event for event in recording.events if isinstance(event, RecordedFailure))
