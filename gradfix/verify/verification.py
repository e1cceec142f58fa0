"""Verification by execution: run the script before and after a rewrite, compare what it did."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gradfix.core.codemod import Claim, Effect
from gradfix.verify.claims import Faults
from gradfix.verify.command import PLAIN, Command
from gradfix.verify.evidence import Evidence
from gradfix.verify.interpreter import Interpreter, choose_interpreter
from gradfix.verify.jobs import Limits
from gradfix.verify.runner import runner_for
from gradfix.verify.sandboxes import CannotRun
from gradfix.verify.trial import Rewrite, Trial


def verify_rewrite(
    path: Path,
    before: str,
    after: str,
    claim: Claim,
    effect: Effect,
    *,
    python: str | Interpreter | None = None,
    command: Command = PLAIN,
    seeds: Sequence[int] = (0, 1, 2),
    limits: Limits = Limits(),
    allow_unsandboxed: bool = False,
    faults: tuple[Faults, Faults] | None = None,
) -> Evidence:
    """Run the script at ``path`` before and after a rewrite and check the fix's claim.

    Args:
        path: The script; its folder is on the import path, and it is never written.
        before: The original source.
        after: The rewritten source.
        claim: What must be found.
        effect: What the fix says it does to gradients.
        python: The interpreter to use (default: see :func:`choose_interpreter`).
        command: How the user runs it.
        seeds: Each version runs once for each.
        limits: What a run, and all of them together, may use.
        allow_unsandboxed: Run even where there is no sandbox.
        faults: What is known to be wrong with either version: where autograd stops one for anything else,
            nothing is proved.

    Returns:
        ``refuted`` if any check fails; ``not run`` if the original could not be run far enough,
        or nothing could be compared; ``proved`` otherwise.
    """
    rewrite = Rewrite(path, before, after, claim, effect, faults=faults)
    return verify_rewrites(
        [rewrite],
        python=python,
        command=command,
        seeds=seeds,
        limits=limits,
        allow_unsandboxed=allow_unsandboxed,
    )[0]


def verify_rewrites(
    rewrites: Sequence[Rewrite],
    *,
    python: str | Interpreter | None = None,
    command: Command = PLAIN,
    seeds: Sequence[int] = (0, 1, 2),
    limits: Limits = Limits(),
    allow_unsandboxed: bool = False,
) -> list[Evidence]:
    """:func:`verify_rewrite` for several rewrites with one import of torch (``limits.total`` is for all)."""
    interpreters = [choose_interpreter(rewrite.path, python) for rewrite in rewrites]
    trials = [Trial(rewrite, command, tuple(seeds), limits) for rewrite in rewrites]
    found: dict[int, Evidence] = {
        number: Evidence("not run", reason)
        for number, reason in enumerate(interpreters)
        if isinstance(reason, str)
    }
    for interpreter in dict.fromkeys(i for i in interpreters if isinstance(i, Interpreter)):
        numbers = [number for number, one in enumerate(interpreters) if one == interpreter]
        chosen = [trials[number] for number in numbers]
        shown = verified(chosen, interpreter, limits.total, allow_unsandboxed)
        found.update((number, evidence) for number, (evidence, _) in zip(numbers, shown))
    return [found[number] for number in range(len(rewrites))]


def verified(
    given: Sequence[Trial], interpreter: Interpreter, total: float, allow_unsandboxed: bool
) -> list[tuple[Evidence, Trial]]:
    """What each trial shows, with the trial itself once it has stand-ins for what its original lacks."""
    trials = list(given)
    started = time.monotonic()
    try:
        with runner_for(interpreter.executable, total, allow_unsandboxed) as runner:
            # The originals first: for one that cannot be run, nothing else needs to be.
            jobs = [trial.before(trial.seeds[0]) for trial in trials]
            if len(jobs) == 1 < runner.workers:
                # Most likely it can be run, and the other processors have nothing else to do.
                runner.run(trials[0].first_seed)
                trials[0].skip_plain_run(runner)
            runner.run(jobs)
            trials = [trial.completed(runner) for trial in trials]
            trials = [trial.with_more_steps(runner) for trial in trials]
            # One seed of each: where hashes prove everything, it is enough.
            runnable = [trial for trial in trials if not trial.obstacle(runner)]
            runner.run(job for trial in runnable for job in trial.opening(runner))
            trials = [trial.settled(runner) for trial in trials]
            runnable = [trial for trial in trials if not trial.obstacle(runner)]
            rest = [job for trial in runnable for _, job in trial.planned_runs(runner)]
            runner.run(sorted(rest, key=lambda job: (not job.fake, not job.keep)))
            found = [replace(trial.evidence(runner), sandbox=str(runner.level)) for trial in trials]
            texts = [(trial.rewrite.before, trial.rewrite.after) for trial in trials]
            # What a fix has made of a file is the original of the next one.
            runner.forget_all_but({text for pair in texts for text in pair})
    except CannotRun as error:
        found = [Evidence("not run", str(error)) for _ in trials]
    seconds = time.monotonic() - started
    chosen, passed_over = interpreter.chosen, interpreter.passed_over
    return [
        (replace(evidence, interpreter=chosen, passed_over=passed_over, seconds=seconds), trial)
        for evidence, trial in zip(found, trials)
    ]
