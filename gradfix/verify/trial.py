"""The runs that one rewrite needs, and what they show."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradfix.core.codemod import Claim, Effect
from gradfix.project.source import is_notebook
from gradfix.runtime.probe.coverage import Piece, changed
from gradfix.verify import claims
from gradfix.verify.claims import Check, Faults, SideEffectComparison, UpdatesOff
from gradfix.verify.command import Command, project_root
from gradfix.verify.evidence import Evidence, EvidenceOutcome, run_in_words
from gradfix.verify.jobs import Job, Limits
from gradfix.verify.obstacles import why_not
from gradfix.verify.pairing import paired
from gradfix.verify.recording.noise import noisy
from gradfix.verify.recording.records import Recording
from gradfix.verify.reruns import SLOW, completed, dithered, farther, overwhelmed, short
from gradfix.verify.runner import Runner
from gradfix.verify.server import OUT_OF_TIME
from gradfix.verify.slicing import affected


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite to verify."""

    path: Path
    before: str
    after: str
    claim: Claim
    effect: Effect
    within: Path | None = None
    """The folder that its runs may read in the place of the script's project."""
    apart: tuple[tuple[int, int], ...] = ()
    """Between which lines of the rewritten text nothing has to be executed for what it uses: callers of a
    step that is run alone."""
    faults: tuple[Faults, Faults] | None = None
    """What is known to be wrong with the original, and with what becomes of it."""


@dataclass(frozen=True)
class Trial:
    """The runs that one rewrite needs, and what they show."""

    rewrite: Rewrite
    command: Command
    seeds: tuple[int, ...]
    limits: Limits
    schema: str = ""
    """What takes the place of what the original lacks."""
    stopped: str | None = None
    """What stopped the original with stand-ins, where they were no use."""
    hashed: bool = False
    """Whether hashes prove everything, so that no numbers are asked for."""
    too_large_after_fix: bool = False
    """Whether the original raises within the limits, and everything that gets further exceeds them in a full
    run."""

    def before(self, seed: int, **how: bool) -> Job:
        label = "with its graphs kept" if how.get("keep") else "before the fix"
        return self.job(self.rewrite.before, seed, label=label, watched=self.replaced_pieces, **how)

    def after(self, seed: int, **how: bool) -> Job:
        return self.job(self.rewrite.after, seed, label="after the fix", watched=self.changed_pieces, **how)

    @functools.cached_property
    def changed_pieces(self) -> tuple[Piece, ...]:
        """The pieces that the rewrite changed, and those that depend on them: the fixed program has to
        execute them."""
        found = changed(self.rewrite.before, self.rewrite.after)
        return tuple(
            one
            for one in affected(self.rewrite.after, found)
            if one in found or not any(first <= one[0] <= last for first, last in self.rewrite.apart)
        )

    @functools.cached_property
    def replaced_pieces(self) -> tuple[Piece, ...]:
        """The pieces of the original that were replaced: it has to execute them, if nothing stops it."""
        return changed(self.rewrite.after, self.rewrite.before)

    def with_more_steps(self, runner: Runner) -> Trial:
        """This trial, with limits of steps that let the runs reach the changed code, if they can reach it."""
        seed = self.seeds[0]
        (original,) = runner.run([self.before(seed)])
        ahead: list[Job] = []
        if self.rewrite.claim.raises is not None and short(original):
            ahead.append(replace(self.before(seed), scout="errors"))
        jobs = [self.after(seed), self.reference(seed) if self.needs_reference else self.before(seed)]
        for job, run in zip(jobs, runner.run(jobs)):
            if short(run) and claims.incomplete(run):
                ahead.append(replace(job, scout="pieces"))
        return replace(self, limits=farther(self.limits, runner, ahead))

    def job(self, source: str, seed: int, **how: Any) -> Job:
        """A run of one of the texts."""
        # How tensors come about is the same for every seed, and on the others their bytes are compared.
        how.setdefault("thorough", seed == self.seeds[0])
        how.setdefault("updates", how["thorough"])
        return Job(
            self.rewrite.path,
            source,
            self.command,
            seed,
            limits=self.limits,
            within=self.rewrite.within,
            schema=self.schema,
            **how,
        )

    def completed(self, runner: Runner) -> Trial:
        """This trial, with the schema of stand-ins that the original needs, and the fixed one where it gets
        further."""
        job, stopped = completed(runner, self.before(self.seeds[0]))
        found = replace(self, schema=job.schema, stopped=stopped)
        (original,) = runner.run([found.before(self.seeds[0])])
        if original.crash is None:
            return found
        return replace(found, schema=completed(runner, found.after(self.seeds[0])).job.schema)

    def reference(self, seed: int, **how: bool) -> Job:
        return self.before(seed, keep=True, **how)

    def skip_plain_run(self, runner: Runner) -> None:
        """If the original with its graphs kept gets nowhere within the time limit, reuse that run as the
        plain one."""
        if self.needs_reference:
            seed = self.seeds[0]
            (kept,) = runner.run([self.reference(seed)])
            if kept.ending in ("seconds", "killed") and not (kept.backwards or kept.steps):
                runner.know(self.before(seed), kept)

    def too_large(self, runner: Runner) -> bool:
        """Whether a full run, with data, exceeds the limits."""
        if self.too_large_after_fix:
            return True
        (recording,) = runner.run([self.before(self.seeds[0])])
        return overwhelmed(recording)

    def with_updates_off(self, original: Recording) -> tuple[Job, ...]:
        """The two versions with updates off, given the full run of the original.

        Autograd refuses some programs even with their graphs kept. These are run without gradients, and show
        only the values of their losses.
        """
        seed = self.seeds[0]
        stopped = original.crash is not None or original.uncaught is not None
        how = {"blind": True} if stopped and not self.needs_reference else {"keep": True}
        # What these give is compared by values only.
        both = self.before(seed, still=True, **how), self.after(seed, still=True)
        return tuple(replace(job, thorough=False, updates=True) for job in both)

    def paired(self, runner: Runner, original: Recording) -> UpdatesOff | None:
        """The runs of :meth:`with_updates_off`, the fixed program with the original's random numbers; None if
        it draws the same."""
        one, other = (replace(job, numbered=True) for job in self.with_updates_off(original))
        model, run = runner.run([one, other])
        numbers = paired(model, run)
        if not numbers or claims.compare_side_effects(model, run).random_from is None:
            return None
        return UpdatesOff(model, *runner.run([replace(other, numbers=numbers)]))

    @property
    def needs_reference(self) -> bool:
        """Whether the original is run with its graphs kept as well: for E1, E2 and E5, not where there is no
        graph."""
        return self.rewrite.claim.raises in ("E1", "E2", "E5")

    @property
    def first_seed(self) -> list[Job]:
        """The runs on the first seed, but for the original.

        The long ones first, so that no worker is left with one at the end while the others have nothing; what
        raises ends early.
        """
        seed = self.seeds[0]
        reference = [self.reference(seed)] if self.needs_reference else []
        return [*reference, self.after(seed)]

    def opening(self, runner: Runner) -> list[Job]:
        """The runs by which :meth:`settled` decides, or all if there is nothing to decide."""
        return [job for _, job in self.planned_runs(runner)] if self.too_large(runner) else self.first_seed

    def settled(self, runner: Runner) -> Trial:
        """This trial, reduced to runs without data, or to the first seed, if the first runs show that this
        will do.

        An original that raises in its first iteration may finish in time although every run that gets further
        does not.

        How a gradient is computed does not depend on the seed. If hashes prove all gradients equal, other
        seeds and runs with updates off would only show it again.
        """
        if self.obstacle(runner) or self.too_large(runner):
            return self
        if overwhelmed(runner.run([self.after(self.seeds[0])])[0], SLOW):
            large = replace(self, too_large_after_fix=True)
            (fixed,) = runner.run([large.after(self.seeds[0], fake=True)])
            return self if large.obstacle(runner) or len(fixed.steps) < 2 else large
        alone = replace(self, seeds=self.seeds[:1], hashed=True)
        original = self.reference if self.needs_reference else self.before
        original_run, fixed_run = runner.run([original(self.seeds[0]), self.after(self.seeds[0])])
        return alone if claims.settled(alone.checks(runner), original_run, fixed_run) else self

    def planned_runs(self, runner: Runner) -> list[tuple[str, Job]]:
        """Everything that is run, and what each run is called."""
        if self.too_large(runner):
            seed = self.seeds[0]
            versions = [("before", self.before(seed))]
            versions += [("before, without data", self.before(seed, fake=True))]
            versions += [("after, without data", self.after(seed, fake=True))]
            if self.needs_reference:
                versions += [("reference, without data", self.reference(seed, fake=True))]
            return versions
        versions = [("before", self.before(seed)) for seed in self.seeds]
        versions += [("after", self.after(seed)) for seed in self.seeds]
        if self.needs_reference:
            versions += [("reference", self.reference(seed)) for seed in self.seeds]
        if not self.hashed:
            (original,) = runner.run([self.before(self.seeds[0])])
            names = ("reference, updates off", "after, updates off")
            versions += zip(names, self.with_updates_off(original))
        return versions

    def obstacle(self, runner: Runner) -> str | None:
        """Why the original could not be run far enough, if so."""
        seed, large = self.seeds[0], self.too_large(runner)
        (recording,) = runner.run([self.before(seed, fake=large)])
        root = self.before(seed).root()
        found = why_not(recording, self.rewrite.claim, root)
        if found is not None and large:
            (earnest,) = runner.run([self.before(seed)])
            if found != OUT_OF_TIME:
                found = f"{TOO_LARGE}: {found}"
            found = why_not(earnest, self.rewrite.claim, root) or found
        return None if found is None else self.relative(found)

    def relative(self, text: str) -> str:
        """``text`` with paths relative to the project's root, and without variables that were passed on."""
        for secret in self.command.variables().values():
            text = text.replace(secret, "***") if len(secret) >= SHORTEST else text
        return text.replace(f"{project_root(self.rewrite.path)}{os.sep}", "")

    def evidence(self, runner: Runner) -> Evidence:
        blocked = self.obstacle(runner)
        versions = self.planned_runs(runner)[:1] if blocked else self.planned_runs(runner)
        recordings = runner.run(job for _, job in versions)
        runs = tuple(
            run_in_words(name, job.seed, self.relative(claims.summary(recording)), recording)
            for (name, job), recording in zip(versions, recordings)
        )
        python, torch = recordings[0].python, recordings[0].torch
        if blocked:
            if self.stopped is not None and self.relative(self.stopped) != blocked:
                blocked = f"{blocked}; with stand-ins: {self.relative(self.stopped)}"
            left_out = tuple(self.left_out())
            return Evidence("not run", blocked, (), runs, python, "", torch, self.seeds, standins=left_out)
        used = (one for recording in recordings for one in recording.standins)
        standins = tuple(dict.fromkeys((*used, *self.left_out())))
        checks = tuple(replace(one, detail=self.relative(one.detail)) for one in self.checks(runner))
        outcome, reason = self.judge(runner, checks)
        if outcome == "proved" and standins:
            reason += f" (with stand-ins for {', '.join(one.partition(': ')[0] for one in standins)})"
        return Evidence(
            outcome,
            reason,
            checks,
            runs,
            python,
            "",
            torch,
            self.seeds,
            standins=standins,
            effects=self.side_effects(runner),
        )

    def left_out(self) -> Iterator[str]:
        """What a notebook has that is not run, as evidence tells of what was replaced."""
        if not is_notebook(str(self.rewrite.path)):
            return
        from gradfix.project.notebooks import left_out

        if found := left_out(self.rewrite.before):
            yield f"IPython: {found}"

    def side_effects(self, runner: Runner) -> SideEffectComparison | None:
        """How random draws and buffers compare on the first seed."""
        seed, fake = self.seeds[0], self.too_large(runner)
        before, after = runner.run([self.before(seed, fake=fake), self.after(seed, fake=fake)])
        reference = runner.run([self.reference(seed, fake=fake)])[0] if self.needs_reference else None
        found = claims.compare_side_effects(claims.longest(before, reference), after)
        return found if found.compared else None

    def checks(self, runner: Runner) -> list[Check]:
        """The checks of all seeds, merged."""
        claim, effect = self.rewrite.claim, self.rewrite.effect
        by_seed = []
        fake = self.too_large(runner)
        # Without numbers one seed is as good as many.
        seeds = self.seeds[:1] if fake else self.seeds
        for seed in seeds:
            before, after = runner.run([self.before(seed, fake=fake), self.after(seed, fake=fake)])
            reference = runner.run([self.reference(seed, fake=fake)])[0] if self.needs_reference else None
            still: UpdatesOff | None = None
            if not fake and not self.hashed:
                # What a loss gives is the same on every seed, if it is on one.
                (first,) = runner.run([self.before(self.seeds[0])])
                still = UpdatesOff(*runner.run(self.with_updates_off(first)))
            found = claims.check(claim, effect, before, after, reference, still, self.rewrite.faults)
            if still is not None and any(one.name == "entries" and one.verdict != "holds" for one in found):
                still = self.paired(runner, first) or still
                found = claims.check(claim, effect, before, after, reference, still, self.rewrite.faults)
            apart = any(one.verdict == "fails" and one.name in claims.COMPARISONS for one in found)
            entries = any(one.verdict != "holds" and one.name == "entries" for one in found)
            # What two equal runs do not agree about is no rounding.
            if not fake and (apart or entries) and self.repeatable(runner):
                if apart:
                    before = noisy(before, *dithered(runner, self.before(seed)))
                if apart and reference is not None:
                    reference = noisy(reference, *dithered(runner, self.reference(seed)))
                if still is not None:
                    job = self.with_updates_off(first)[0]
                    still = UpdatesOff(noisy(still.reference, *dithered(runner, job)), still.after)
                found = claims.check(claim, effect, before, after, reference, still, self.rewrite.faults)
            by_seed.append(found)
        return self.steady(runner, claims.merge(seeds, by_seed), fake)

    def steady(self, runner: Runner, checks: list[Check], fake: bool) -> list[Check]:
        """``checks``; those that two runs of the original would fail, too, become ``not checked``.

        A script that seeds a generator by the clock draws other numbers each time; its gradients may not
        depend on them.
        """
        failing = {one.name for one in checks if one.verdict == "fails"} & claims.SIDE_EFFECTS
        if not failing:
            return checks
        found = claims.compare_side_effects(*self.twice(runner, fake))
        unsteady = {"random": found.random_from, "buffers": found.buffers_from}
        why = "they differ between two runs of the original with the same seed, too"
        return [
            replace(one, verdict="not checked", detail=f"{one.name}: {why}")
            if one.verdict == "fails" and unsteady.get(one.name) is not None
            else one
            for one in checks
        ]

    def judge(self, runner: Runner, checks: Sequence[Check]) -> tuple[EvidenceOutcome, str]:
        large = self.too_large(runner)
        failed = [check for check in checks if check.verdict == "fails"]
        if failed:
            compared = any(check.name in claims.COMPARISONS for check in failed)
            if compared and not large and not self.repeatable(runner):
                return (
                    "not run",
                    "two runs of the original with the same seed differ, so nothing can be compared",
                )
            return "refuted", failed[0].detail
        if (missing := claims.missing(checks)) is not None:
            return "not run", missing
        if not self.changed_pieces:
            return "not run", "the rewrite changes no statement"
        held = [check for check in checks if check.verdict == "holds"]
        if large:
            for one in checks:
                if one.name in claims.COMPARISONS and one.detail.endswith(claims.NO_NUMBERS):
                    # Numbers could refute it.
                    return "not run", f"{one.detail} ({TOO_LARGE})"
            return "proved", f"{len(held)} checks hold by hashes, {TOO_LARGE}"
        if self.hashed:
            return "proved", f"{len(held)} checks hold, and hashes prove that all gradients are equal"
        return "proved", f"{len(held)} checks hold on {len(self.seeds)} seeds"

    def repeatable(self, runner: Runner) -> bool:
        """Whether the original does the same twice."""
        return claims.same_course(*self.twice(runner))

    def twice(self, runner: Runner, fake: bool = False) -> tuple[Recording, Recording]:
        """Two runs of the original."""
        job = self.before(self.seeds[0], fake=fake)
        # Another limit makes it another job, so that it does run again.
        again = replace(job, limits=replace(job.limits, file=job.limits.file + 1))
        first, second = runner.run([job, again])
        return first, second


SHORTEST = 4
"""A value of an environment variable is masked in texts if it has at least this many characters."""
TOO_LARGE = "run without data, as a full run takes too much time or memory"
