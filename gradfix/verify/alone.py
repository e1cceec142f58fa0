"""The step alone: a rewrite is run in drivers that call one function or class, where its program cannot run.

A driver makes up what the entry is handed (``runtime/alone``), one driver for each world of the open world,
and runs it with each kind of networks that nobody sees. The claim of the fix is judged as ever; all have to
agree. And a harness proves only if it refutes: with one more mistake planted into the repair
(``planting.py``), the same driver has to refute it. Else nothing is proved.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gradfix.runtime.alone.kinds import KINDS
from gradfix.verify.command import Command
from gradfix.verify.evidence import Evidence, StepAlone
from gradfix.verify.interpreter import Interpreter, choose_interpreter
from gradfix.verify.jobs import Limits
from gradfix.verify.planting import Planted, planted
from gradfix.verify.trial import Rewrite, Trial
from gradfix.verify.verification import verified

SCHEMA = json.dumps({"handed": True, "rows": 6, "batch": 6, "alone": True})
"""With what the runs of a driver begin: little data, and no further processes."""
PLACES = 2
"""At how many places a kind of mistake is planted, until it is refuted at one."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A script that calls one entry of a file, in one world."""

    entry: str
    text: str
    world: str
    """What it assumes, for people."""
    kinds: tuple[str, ...]
    """The kinds of made-up networks that differ in it."""
    first: int
    last: int
    """The lines of the entry in the fixed text."""
    callers: tuple[tuple[int, int], ...] = ()
    """The lines there of what calls it, which is not run."""


def kinds_of(networks: Mapping[str, str]) -> tuple[str, ...]:
    """The kinds of networks that differ where these are made up, each with the optimizer that updates it."""
    if not networks:
        return KINDS[:1]
    owners = [owner for owner in networks.values() if owner]
    return KINDS if len(set(owners)) < len(owners) else tuple(one for one in KINDS if one != "shared")


class Harness:
    """The drivers of one rewrite, and what they have shown.

    Args:
        rewrite: What is verified.
        command: How the user runs the program: what a driver may read and which variables it gets.
        interpreter: The interpreter that runs it.
    """

    def __init__(
        self, rewrite: Rewrite, command: Command, interpreter: Interpreter, limits: Limits, unsandboxed: bool
    ) -> None:
        self.rewrite = rewrite
        self.command = command
        self.interpreter = interpreter
        self.limits = limits
        self.unsandboxed = unsandboxed

    def run(
        self, asked: Sequence[tuple[Driver, str, str]], schema: str, seeds: tuple[int, ...] = (0, 1, 2)
    ) -> list[tuple[Evidence, Trial]]:
        """What each of these shows: a driver, the kind of its networks, and the text after the rewrite."""
        entry = self.rewrite.path.absolute().parent / "step_alone.py"
        trials = [
            Trial(
                replace(self.rewrite, after=after, apart=driver.callers),
                replace(self.command, args=(kind,), module=None, entry=entry, driver=driver.text),
                seeds,
                self.limits,
                schema,
            )
            for driver, kind, after in asked
        ]
        return verified(trials, self.interpreter, self.limits.total, self.unsandboxed)


def verify_alone(
    rewrite: Rewrite,
    drivers: Sequence[Driver],
    why: str,
    *,
    python: str | Interpreter | None,
    command: Command,
    limits: Limits,
    allow_unsandboxed: bool,
    schema: str = SCHEMA,
) -> Evidence:
    """What drivers of a step show of a rewrite whose program cannot run for the reason ``why``.

    Args:
        drivers: Of one entry, one for each world.
        schema: What their runs begin with.
    """
    interpreter = choose_interpreter(rewrite.path, python)
    if isinstance(interpreter, str):
        return Evidence("not run", interpreter)
    harness = Harness(rewrite, command, interpreter, limits, allow_unsandboxed)
    first = drivers[0]
    ((evidence, trial),) = harness.run([(first, KINDS[0], rewrite.after)], schema)
    kinds = first.kinds
    texts = [_kept(driver, trial.schema) for driver in drivers]
    worlds = tuple(driver.world for driver in drivers)
    lines = (first.first, first.last)
    alone = StepAlone(first.entry, why, worlds, kinds, (), texts[0], tuple(texts[1:]), first.callers, lines)
    evidence = replace(evidence, alone=alone)
    if evidence.outcome != "proved":
        return evidence
    asked = [(one, kind, rewrite.after) for one in drivers for kind in kinds][1:]
    for (driver, kind, _), (other, _) in zip(asked, harness.run(asked, trial.schema, (0,))):
        if other.outcome != "proved":
            where = ", ".join(filter(None, (f"networks that are {kind}", driver.world)))
            reason = f"not all worlds agree: with {where}: {other.reason}"
            return replace(evidence, outcome="not run", reason=reason)
    refuted, missed = _refuted(harness, first, evidence, trial.schema)
    evidence = replace(evidence, alone=replace(alone, refuted=tuple(refuted)))
    if missed is not None:
        return replace(evidence, outcome="not run", reason=missed)
    counts = [(len(drivers), "worlds"), (len(kinds), "kinds of networks")]
    ways = " and ".join(f"{count} {what}" for count, what in counts if count > 1)
    reason = "; ".join(
        (
            evidence.reason,
            *([f"the same in {ways}"] if ways else []),
            f"{len(refuted)} planted mistakes are refuted there",
            f"the program itself could not run: {why}",
        )
    )
    return replace(evidence, outcome="proved for the step alone", reason=reason)


def _refuted(
    harness: Harness, driver: Driver, evidence: Evidence, schema: str
) -> tuple[list[str], str | None]:
    """Which planted mistakes are refuted, and what keeps that from being enough.

    Of each kind that can be planted, and with which the steps consume something else, one has to be refuted.
    A kind that is not at the first place is planted at the next one.
    """
    rewrite = harness.rewrite
    places: dict[str, list[Planted]] = {}
    for one in planted(rewrite.after, driver.first, driver.last):
        places.setdefault(one.kind, []).append(one)
    told: list[str] = []
    open_kinds: dict[str, str] = {}
    for turn in range(PLACES):
        asked = [of[turn] for of in places.values() if len(of) > turn]
        shown = harness.run([(driver, KINDS[0], one.text) for one in asked], schema, (0,))
        for one, (found, _) in zip(asked, shown):
            named = f"{one.kind} at line {one.line}"
            if found.outcome == "refuted":
                told.append(named)
                del places[one.kind]
                open_kinds.pop(one.kind, None)
            elif _consumed(found) != _consumed(evidence):
                if found.outcome == "proved":
                    return told, f"the step alone proves a planted mistake: {named}"
                open_kinds[one.kind] = (
                    f"the step alone does not refute a planted mistake: {named} ({found.reason})"
                )
    if open_kinds:
        return told, next(iter(open_kinds.values()))
    return told, None if told else "no mistake could be planted that the step alone refutes"


def _consumed(evidence: Evidence) -> list[str]:
    """What the steps of the fixed program consume on the first seed."""
    runs = [run for run in evidence.runs if run.version.startswith("after")]
    return [step.gradients for step in runs[0].steps] if runs else []


def _kept(driver: Driver, schema: str) -> str:
    """The driver as it is kept with the evidence: with what its runs have asked for."""
    held = {name: one for name, one in json.loads(schema).items() if name != "seen"}
    return MADE_UP.sub(lambda _: f"MADE_UP = {held!r}", driver.text, count=1)


MADE_UP = re.compile(r"^MADE_UP = (\{.*\})", re.M)


def drivers_again(alone: StepAlone) -> tuple[list[Driver], str]:
    """The drivers of a step that was run alone, and what their runs begin with."""
    texts = (alone.driver, *alone.others)
    drivers = [
        Driver(alone.entry, text, world, alone.networks, *alone.lines, alone.callers)
        for text, world in zip(texts, alone.worlds, strict=True)
    ]
    made_up = MADE_UP.search(alone.driver)
    held = ast.literal_eval(made_up[1]) if made_up is not None else {}
    return drivers, json.dumps(held) if held else SCHEMA
