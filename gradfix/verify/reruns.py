"""Runs that are repeated: with what they have lacked, with more steps, with other rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gradfix.verify.jobs import Job, Limits
from gradfix.verify.obstacles import obstacle
from gradfix.verify.recording.records import Recording
from gradfix.verify.runner import Runner

TRIES = 24
"""How often a run is repeated with a larger schema."""
PATIENCE = 2
"""How often one is repeated whose time was over."""


class Completed(NamedTuple):
    """What came of looking for what a run lacks."""

    job: Job
    """The job, with the schema that got furthest."""
    stopped: str | None
    """What stopped the run with the largest schema, where that was no use."""


def completed(runner: Runner, job: Job) -> Completed:
    """``job``, or the same with the schema that gets furthest of those that its runs have asked for.

    A run that fails for want of something says what it lacked (see ``standins/__init__.py``). It is repeated
    with that until it lacks nothing, or nothing suggests what. Where what was made up has not led any
    further, nothing is made up: what stopped the run as it is says more.
    """
    furthest, reached, patience = job, (0, 0), PATIENCE
    left = job.limits.seconds
    stopped = None
    for _ in range(TRIES):
        (recording,) = runner.run([job])
        stopped = obstacle(recording)
        if (got := (len(recording.steps), len(recording.backwards))) > reached:
            furthest, reached = job, got
        left -= max(0.0, recording.seconds)
        late = recording.ending in ("seconds", "killed")
        patience -= late
        if not recording.schema or patience < 0 or (left < 0 and not late):
            break
        job = replace(job, schema=recording.schema)
    return Completed(furthest, stopped if furthest.schema != job.schema else None)


DITHERED = 3
"""Runs that round otherwise: in one alone, a small gradient may come out alike by chance."""


def dithered(runner: Runner, job: Job) -> list[Recording]:
    """Runs of the same program that round otherwise."""
    return runner.run(
        [replace(job, dither=seed + 1, thorough=False, updates=False) for seed in range(DITHERED)]
    )


SLOW = 4
"""Steps that the repaired script takes in the time of a run, at least, or it is run without data."""

FAR, FARTHEST = 20_000, 600
"""Steps of a run that only scouts, and those after which a run may come to what a rewrite is about."""


def short(recording: Recording) -> bool:
    """Whether a run was ended because it had taken as many steps, or made as many calls, as it may."""
    return recording.ending in ("steps", "backwards")


def farther(limits: Limits, runner: Runner, jobs: Sequence[Job]) -> Limits:
    """``limits`` with as many steps and backward calls as it takes to come to what these jobs scout for."""
    if not jobs:
        return limits
    wide = replace(limits, steps=FAR, backwards=FAR)
    found = runner.run(replace(job, limits=wide, thorough=False, updates=False, fake=False) for job in jobs)
    far = [run.scouted for run in found if run.scouted[0] <= FARTHEST]
    steps, backwards = (max((one[at] for one in far), default=0) for at in (0, 1))
    return replace(limits, steps=limits.steps + steps, backwards=limits.backwards + backwards)


def overwhelmed(recording: Recording, least: int = 2) -> bool:
    """Whether a run has hit its limits of time or memory before it had taken ``least`` steps."""
    if len(recording.steps) >= least or recording.crash is not None:
        return False
    error = recording.uncaught
    if error is not None:
        return error.type == "MemoryError" or "can't allocate memory" in error.message
    # The system ends with signal 9 whatever takes too much memory.
    ended = recording.ending == "died" and "signal 9" in recording.detail
    return ended or recording.ending in ("seconds", "killed")
