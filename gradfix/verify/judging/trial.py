"""The runs that the versions of one file need to be judged."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from gradfix.core import intent
from gradfix.runtime.probe.coverage import changed
from gradfix.verify import claims
from gradfix.verify.command import Command
from gradfix.verify.interpreter import Interpreter
from gradfix.verify.jobs import Job, Limits
from gradfix.verify.judging.iterations import Counts
from gradfix.verify.judging.owned import idle_in, in_order, owned_in, turn_of, without
from gradfix.verify.judging.results import Judgement, Mistake, Repair, Verdict
from gradfix.verify.obstacles import why_not
from gradfix.verify.pairing import Numbers, paired
from gradfix.verify.recording.noise import noisy
from gradfix.verify.recording.records import (
    Recording,
)
from gradfix.verify.reruns import completed, dithered, farther, short
from gradfix.verify.runner import Runner
from gradfix.verify.slicing import affected

FURTHER = 4
"""How many times as far runs go to be compared through time, and when nothing else was found."""


class Trial:
    """The runs of the versions, each made when it is first asked for."""

    def __init__(
        self,
        runner: Runner,
        before: tuple[Path, str],
        after: tuple[Path, str],
        seeds: tuple[int, ...],
        limits: Limits,
        command: Command,
        command_after: Command,
    ) -> None:
        self._runner = runner
        self.before = before
        self._after = after
        self.seeds = seeds
        self._limits = limits
        self._command = command
        self._command_after = command_after
        self._schema = ""
        self._changed = affected(after[1], changed(before[1], after[1]))
        self._ahead = (0, 0)
        """More steps and backward calls than usual that runs may make."""
        self._numbers: dict[int, Numbers] | None = None
        self.doubting = False
        """Whether it is looked at what rounding makes of gradients."""

    def paired(self, repair: Repair) -> Trial | None:
        """Another one, in which the judged version gets the random numbers of ``repair``, if it can."""
        counted, other = copy.copy(self), copy.copy(self)
        counted._numbers = dict.fromkeys(self.seeds, ())
        other._numbers = {}
        for seed in self.seeds:
            model, run = counted.repaired(repair, seed, through=True), counted.judged(seed, through=True)
            numbers = paired(model, run)
            if numbers is None:
                return None
            other._numbers[seed] = numbers
        return other

    def settle(self, mistakes: Sequence[Mistake]) -> str | None:
        """Settle for the stand-ins that the original needs; why it cannot be run even so, if so."""
        self._schema = completed(self._runner, self._job(self.before, self.seeds[0])).job.schema
        self._look_ahead(any(one.claim.raises is not None for one in mistakes))
        first = self.original(self.seeds[0])
        return next((why for one in mistakes if (why := why_not(first, one.claim))), None)

    def _look_ahead(self, raises: bool) -> None:
        """Let all runs take as many steps as it takes to come to what the repair is about, where it does."""
        first, ahead = self.seeds[0], []
        if raises and short(self.original(first)) and self.original(first).crash is None:
            ahead.append(replace(self._job(self.before, first), scout="errors"))
        job = self._job(self._after, first, watched=self._changed)
        (run,) = self._runner.run([job])
        if short(run) and claims.incomplete(run):
            ahead.append(replace(job, scout="pieces"))
        wider = farther(self._limits, self._runner, ahead)
        self._ahead = wider.steps - self._limits.steps, wider.backwards - self._limits.backwards

    def missed(self) -> str | None:
        """What of the repair no run has come to, in words."""
        first = self.seeds[0]
        (run,) = self._runner.run([self._job(self._after, first, through=True, watched=self._changed)])
        missed = claims.missed_by(run, "the repaired program")
        if missed is None and (few := claims.too_few(run)) is not None:
            missed = f"the repaired program {run.ran()}: {few}"
        original = self.original(first)
        if missed is None and original.crash is None and original.uncaught is None:
            gone = changed(self._after[1], self.before[1])
            (run,) = self._runner.run([self._job(self.before, first, through=True, watched=gone)])
            missed = claims.missed_by(run, "the original")
        return missed

    def _job(self, version: tuple[Path, str], seed: int, through: bool = False, **how: Any) -> Job:
        limits = self._limits
        if through:
            # A step may be worth many iterations.
            limits = replace(limits, steps=FURTHER * limits.steps, backwards=FURTHER * limits.backwards)
        steps, backwards = self._ahead
        limits = replace(limits, steps=limits.steps + steps, backwards=limits.backwards + backwards)
        how |= {"limits": limits, "schema": self._schema}
        # As in verification, hashes are taken on the first seed.
        hashed = seed == self.seeds[0] and self._numbers is None and "corrections" not in how
        how |= {"updates": True, "thorough": hashed}
        if self._numbers is not None:
            how |= {"numbered": True, "numbers": self._numbers[seed] if version is self._after else ()}
        command = self._command_after if version is self._after else self._command
        return Job(*version, command, seed, **how)

    def _run(self, version: tuple[Path, str], seed: int, **how: Any) -> Recording:
        return self._runner.run([self._job(version, seed, **how)])[0]

    def original(self, seed: int, **how: bool) -> Recording:
        return self._run(self.before, seed, **how)

    def repaired(self, repair: Repair, seed: int, *, moves: Sequence[Counts] = (), **how: Any) -> Recording:
        keyed = tuple((index, tuple(steps)) for index, steps in enumerate(moves))
        if repair.ruled:
            how |= {"keep": True, "corrections": self.corrections(seed)}
        version = self.before[0], repair.text
        run = self._run(version, seed, moves=keyed, **how)
        if self.doubting and run.steps:
            run = noisy(run, *dithered(self._runner, self._job(version, seed, moves=keyed, **how)))
        return self._without_idle(run, version)

    def judged(
        self, seed: int, *, alone: int | None = None, moves: Sequence[Counts] = (), **how: Any
    ) -> Recording:
        """A run of the judged version, told as if it made its optimizers in the order of the original.

        ``alone`` and ``moves`` count in that order.
        """
        turn = turn_of(self._run(self._after, seed), self.original(seed))
        if alone is not None or moves:
            order = turn or range(max(len(moves), (alone or 0) + 1))
            how |= {
                "alone": None if alone is None else order.index(alone),
                "moves": tuple((one, tuple(moves[one])) for one in order) if moves else (),
            }
        run = self._run(self._after, seed, **how)
        run = run if turn is None or len(run.optimizers) != len(turn) else in_order(run, turn)
        return self._without_idle(run, self._after, turn)

    def _without_idle(
        self, run: Recording, version: tuple[Path, str], turn: Sequence[int] | None = None
    ) -> Recording:
        """``run`` without the parameters that get no gradient in this version, where the judged one has more
        or fewer parameters than the original: an optimizer may as well own such."""
        first = self.seeds[0]
        judged, original = self._run(self._after, first), self.original(first)
        judged = judged if turn is None else in_order(judged, turn)
        if [owned_in(judged, one.index) for one in judged.optimizers] == [
            owned_in(original, one.index) for one in original.optimizers
        ]:
            return run
        whole = self._run(version, first, through=True)
        whole = whole if turn is None or len(whole.optimizers) != len(turn) else in_order(whole, turn)
        return without(run, idle_in(whole) & idle_in(run))

    def corrections(
        self, seed: int
    ) -> tuple[tuple[int, bool, tuple[tuple[int, int], ...], tuple[int, ...]], ...]:
        """What keeps the original from giving each loss once to those it is for, if no graph is freed.

        Raises:
            Undecided: if that cannot be known.
        """
        ledger = self.original(seed, keep=True, through=True).ledger
        if ledger is None:
            raise intent.Undecided("the graphs of the original are too large to look at")
        found = intent.corrections(ledger)
        return tuple(
            (
                call,
                one.drops_constants,
                tuple(sorted(cast(Collection[tuple[int, int]], one.dropped))),
                tuple(sorted(one.used)),
            )
            for call, one in sorted(found.items())
        )

    def prepare(self, repairs: Sequence[Repair], seeds: Sequence[int]) -> None:
        """Make the runs of the judged version and of these repairs side by side."""
        rewritten = [repair.text for repair in repairs if not repair.ruled]
        versions = [self._after, *((self.before[0], text) for text in rewritten)]
        self._runner.run(self._job(version, seed) for seed in seeds for version in versions)

    def judgement(self, verdicts: tuple[Verdict, ...], chosen: Interpreter, seconds: float) -> Judgement:
        before = self.original(self.seeds[0])
        runs = [("before", claims.summary(before))]
        if any(verdict.outcome != "not run" for verdict in verdicts):
            runs.append(("after", claims.summary(self.judged(self.seeds[0]))))
        return Judgement(
            verdicts,
            tuple(runs),
            before.python,
            chosen.chosen,
            before.torch,
            self.seeds,
            seconds,
            str(self._runner.level),
            chosen.passed_over,
        )
