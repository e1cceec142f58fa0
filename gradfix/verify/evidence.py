"""What verification has found: the runs in words, the checks and the outcome."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

from gradfix.verify.claims import Check, SideEffectComparison
from gradfix.verify.recording.records import Draws, Recording

EvidenceOutcome = Literal["proved", "proved for the step alone", "refuted", "not run"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run, in words."""

    version: str
    """``before``, ``after``, ``reference`` (the original with its graphs kept), ``reference, weights
    off``, ``after, updates off``, or one of the first three ``without data``."""
    seed: int
    summary: str
    optimizers: tuple[OptimizerSummary, ...] = ()
    steps: tuple[StepSummary, ...] = ()
    backwards: tuple[BackwardSummary, ...] = ()
    peak: int | None = None
    """The most bytes that the graph of any one backward call held; ``None`` where nothing is known."""
    error: str = ""
    """What autograd said, in its own words, if it raised one of its errors."""


@dataclass(frozen=True, slots=True)
class OptimizerSummary:
    """An optimizer that a run constructed."""

    name: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    """Those of its parameters, as they were at its first step; none if it took none."""


@dataclass(frozen=True, slots=True)
class StepSummary:
    """What an optimizer consumed at one step."""

    optimizer: str
    gradients: str
    """A digest of all its gradients: equal ones mean gradients that are equal bit for bit."""
    random: Draws
    buffers: str
    """A digest of the buffers of all networks that are trained."""


@dataclass(frozen=True, slots=True)
class BackwardSummary:
    """What the graph of one backward call held."""

    loss: str | None
    """What is differentiated, where the source says it."""
    saved: int | None
    """Bytes saved for backward, beside parameters; ``None`` where nothing is known."""
    kept: bool
    """Whether the call was told to retain them."""
    seconds: float
    """How long it took, watched as it was: on the first seed operation by operation."""


def run_in_words(version: str, seed: int, summary: str, recording: Recording) -> RunSummary:
    optimizers = []
    for optimizer in recording.optimizers:
        first = next(iter(recording.steps_of(optimizer.index)), None)
        shapes = tuple(state.value.shape for state in first.parameters) if first else ()
        optimizers.append(OptimizerSummary(optimizer.name, optimizer.kind, shapes))
    steps = []
    for step in recording.steps:
        gradients = _digest(state.gradient.digest if state.gradient else "none" for state in step.parameters)
        buffers = _digest(f"{name} {value.digest}" for name, value in step.buffers.items())
        name = recording.optimizers[step.optimizer].name
        steps.append(StepSummary(name, gradients, step.random, buffers))
    backwards = tuple(
        BackwardSummary(call.place.receiver, call.saved, call.retain, round(call.seconds, 6))
        for call in recording.backwards
    )
    peak = max((call.saved for call in backwards if call.saved is not None), default=None)
    failure = recording.crash
    error = f"{failure.type}: {failure.message}" if failure is not None and failure.kind != "other" else ""
    return RunSummary(version, seed, summary, tuple(optimizers), tuple(steps), backwards, peak, error)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.blake2b("".join(f"{line}\n" for line in lines).encode(), digest_size=16).hexdigest()


def memory(before: RunSummary, after: RunSummary) -> str | None:
    """What the graphs of two versions hold for backward, in words, where it differs.

    A loss is compared over as many of its backward calls as both versions make.
    """
    found = []
    for loss in dict.fromkeys(call.loss for call in before.backwards if call.loss is not None):
        pairs = [
            (one, other)
            for one, other in zip(*([c for c in run.backwards if c.loss == loss] for run in (before, after)))
            if one.saved is not None and other.saved is not None
        ]
        if not pairs:
            continue
        sizes = [max(call.saved or 0 for call in side) for side in zip(*pairs)]
        kept = [any(call.kept for call in side) for side in zip(*pairs)]
        held, now = map(binary_size, sizes)
        if kept[0] == kept[1] and held != now:
            found.append(f"the graph of {loss} held {held}, now {now}")
        elif kept[0] != kept[1]:
            words = ["kept" if one else "freed" for one in kept]
            found.append(f"the graph of {loss} held {held} and was {words[0]}, now {now}, {words[1]}")
    return "; ".join(found) or None


def binary_size(count: int) -> str:
    """A number of bytes for people: ``640 bytes``, ``1.5 KiB``."""
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


MADE_UP = "made-up"
"""What the stand-ins for data say of themselves (see ``standins/files.py``)."""


class Cost(NamedTuple):
    """What a program takes for its gradients, to compare ways of writing it."""

    saved: int | None
    """Bytes that graphs hold for backward, the most for each loss, added up."""
    seconds: float | None
    """For one backward call of each loss, the shortest of each, watched: good for comparison only."""

    def __str__(self) -> str:
        held = "" if self.saved is None else f"{binary_size(self.saved)} held for backward"
        took = "" if self.seconds is None else f"{self.seconds * 1000:.2f} ms of backward calls, watched"
        return ", ".join(filter(None, (held, took)))


@dataclass(frozen=True, slots=True)
class StepAlone:
    """That a step was run alone, since its program cannot run, and in what."""

    entry: str
    """The function or method that was called."""
    why: str
    """Why the program could not run."""
    worlds: tuple[str, ...]
    """What is assumed of what it is handed: all of these agree."""
    networks: tuple[str, ...]
    """The kinds of the networks that were made up."""
    refuted: tuple[str, ...]
    """The mistakes that were planted into the repair, and that the same runs refute."""
    driver: str
    """The script that calls it, in the first of the worlds."""
    others: tuple[str, ...] = ()
    """The scripts that call it in the other worlds."""
    callers: tuple[tuple[int, int], ...] = ()
    """Between which lines of the fixed file it is called, which is not run."""
    lines: tuple[int, int] = (1, 1)
    """Between which lines of the fixed file mistakes are planted."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What verification found. ``proved`` means that every check that could be made holds."""

    outcome: EvidenceOutcome
    reason: str
    """One sentence: what refutes the rewrite, why it was not run, or what was compared."""
    checks: tuple[Check, ...] = ()
    runs: tuple[RunSummary, ...] = ()
    python: str = ""
    """Version of the interpreter that ran the script."""
    interpreter: str = ""
    """Which interpreter that was and how it was chosen; its path only if it is one beside the code."""
    torch: str = ""
    seeds: tuple[int, ...] = ()
    seconds: float = 0.0
    """Wall clock of the call that verified it, which may have verified others too."""
    sandbox: str = "none: nothing was run"
    """The level of the sandbox that the runs were in (see :mod:`gradfix.runtime.sandbox`)."""
    standins: tuple[str, ...] = ()
    """What was replaced in all runs alike, and by what."""
    effects: SideEffectComparison | None = None
    """How random draws and buffers compare on the first seed; ``None`` if nothing was compared."""
    passed_over: tuple[str, ...] = ()
    """Interpreters that would have come first, each with the reason why it did not."""
    alone: StepAlone | None = None
    """How the step was run alone, if its program could not run."""

    def to_json(self) -> dict[str, Any]:
        """The evidence as JSON data, in the order and under the names of the fields here.

        ``checks`` is a list of ``{"name", "verdict", "detail", "subject"}``, ``runs`` one of
        ``{"version", "seed", "summary", "optimizers", "steps"}``; ``seconds`` is rounded to tenths.
        No path of the machine is in it.
        """
        return {**asdict(self), "seconds": round(self.seconds, 1)}

    def lines(self) -> list[str]:
        """All of it for a terminal: the runs, every check, and the verdict last."""
        shown = [*self._runs(), *(f"{check.verdict:<12}{check.detail}" for check in self.checks)]
        if self.runs:
            shown.append(f"{'interpreter':<12}{self.interpreter}")
            shown.append(f"{'sandbox':<12}{self.sandbox}")
        return [*shown, self._verdict()]

    def in_short(self) -> list[str]:
        """The runs, the checks that do not hold, and the verdict last."""
        failing = [check for check in self.checks if check.verdict != "holds"]
        return [
            *self._runs(),
            *(f"{check.verdict:<12}{check.detail}" for check in failing),
            self._verdict(),
        ]

    def _verdict(self) -> str:
        outcome = self.outcome if len(self.outcome) < 12 else "proved"
        return f"{outcome:<12}{self.reason}"

    def _runs(self) -> list[str]:
        first = self.seeds[0] if self.seeds else 0
        shown = [
            f"{run.version:<12}{run.summary}"
            for run in self.runs
            if run.seed == first and run.version in ("before", "after")
        ]
        shown += self._alone()
        shown += [f"{'replaced':<12}{one}" for one in self.standins]
        shown += [f"{'memory':<12}{one}" for one in (self.memory(),) if one is not None]
        return shown

    def _alone(self) -> list[str]:
        """In what the step was run alone."""
        if self.alone is None:
            return []
        entry = self.alone.entry if " " in self.alone.entry else f"{self.alone.entry}()"
        shown = [f"{'program':<12}could not run: {self.alone.why}", f"{'step alone':<12}{entry}"]
        shown += [f"{'assumed':<12}{world}" for world in self.alone.worlds if world]
        if len(kinds := self.alone.networks) > 1:
            shown.append(f"{'networks':<12}made up, of {len(kinds)} kinds: {', '.join(kinds)}")
        if self.alone.refuted:
            shown.append(f"{'planted':<12}and refuted: {', '.join(self.alone.refuted)}")
        return shown

    def reworded(self, before: Callable[[str], str], after: Callable[[str], str]) -> Evidence:
        """The evidence with lines named otherwise: as ``after`` does where they are of the fixed version."""

        def of(run: RunSummary) -> RunSummary:
            say = after if run.version.startswith("after") else before
            optimizers = tuple(replace(one, name=say(one.name)) for one in run.optimizers)
            steps = tuple(replace(one, optimizer=say(one.optimizer)) for one in run.steps)
            return replace(run, summary=say(run.summary), optimizers=optimizers, steps=steps)

        checks = tuple(
            replace(one, detail=before(one.detail), subject=before(one.subject)) for one in self.checks
        )
        runs = tuple(map(of, self.runs))
        return replace(self, reason=before(self.reason), checks=checks, runs=runs)

    @property
    def made_up(self) -> bool:
        """Whether the script's data, or a part of it, was made up."""
        return any(MADE_UP in one for one in self.standins)

    def cost(self) -> Cost:
        """What the fixed program takes for its gradients, as its first run has shown it."""
        run = next((run for run in self.runs if run.version == "after"), None)
        saved: dict[str | None, int] = {}
        seconds: dict[str | None, float] = {}
        for call in run.backwards if run is not None else ():
            seconds[call.loss] = min(call.seconds, seconds.get(call.loss, math.inf))
            if call.saved is not None:
                saved[call.loss] = max(call.saved, saved.get(call.loss, 0))
        return Cost(sum(saved.values()) if saved else None, sum(seconds.values()) if seconds else None)

    def memory(self) -> str | None:
        """What the graphs of the two versions hold, in words, where it differs (see :func:`memory`)."""
        for suffix in ("", ", without data"):
            runs = {run.version: run for run in reversed(self.runs)}
            before, after = runs.get(f"before{suffix}"), runs.get(f"after{suffix}")
            if before is not None and after is not None:
                return memory(before, after)
        return None
