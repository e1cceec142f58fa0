"""The verdict on each mistake that a repair was to mend."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gradfix.core import intent
from gradfix.verify import claims
from gradfix.verify.command import PLAIN, Command
from gradfix.verify.interpreter import Interpreter, choose_interpreter
from gradfix.verify.jobs import Limits
from gradfix.verify.judging.beside import counted_apart
from gradfix.verify.judging.cutting import attributes_begun_anew, begun_anew
from gradfix.verify.judging.differences import Apart
from gradfix.verify.judging.equivalence import Found, compared, compared_with_its_draws
from gradfix.verify.judging.results import Judged, Judgement, Mistake, Repair, Verdict
from gradfix.verify.judging.through_time import compared_through_time
from gradfix.verify.judging.trial import Trial
from gradfix.verify.recording.records import Recording
from gradfix.verify.runner import runner_for
from gradfix.verify.sandboxes import CannotRun


def judge(
    before: tuple[Path, str],
    after: tuple[Path, str],
    mistakes: Sequence[Mistake],
    repairs: Sequence[Repair],
    *,
    python: str | Interpreter | None = None,
    command: Command = PLAIN,
    command_after: Command | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    limits: Limits | None = None,
    allow_unsandboxed: bool = False,
) -> Judgement:
    """Hold the program ``after`` against the ``repairs`` of the program ``before``.

    Args:
        before: Path and text of the original.
        after: Path and text of the version to judge.
        mistakes: What is wrong with the original.
        repairs: What gradfix's own fixes make of the original, the most complete first.
        python: The interpreter to use (default: see :func:`runner.choose_interpreter`).
        command: How the user runs the original, and what repairs make of it.
        command_after: How the user runs the version to judge, if otherwise.
        seeds: Each version runs once for each.
        limits: What a run, and all of them together, may use.
        allow_unsandboxed: Run even where there is no sandbox.
    """
    started = time.monotonic()
    limits = limits or Limits()
    chosen = choose_interpreter(before[0], python)
    if isinstance(chosen, str):
        return Judgement(tuple(Verdict("not run", chosen) for _ in mistakes))
    try:
        with runner_for(chosen.executable, limits.total, allow_unsandboxed) as runner:
            trial = Trial(runner, before, after, tuple(seeds), limits, command, command_after or command)
            verdicts = tuple(_verdicts(trial, mistakes, repairs))
            judgement = trial.judgement(verdicts, chosen, time.monotonic() - started)
            runner.forget_all_but(())
            return judgement
    except CannotRun as error:
        return Judgement(tuple(Verdict("not run", str(error)) for _ in mistakes))


def _verdicts(trial: Trial, mistakes: Sequence[Mistake], repairs: Sequence[Repair]) -> list[Verdict]:
    obstacle = trial.settle(mistakes)
    if obstacle is not None:
        return [Verdict("not run", f"the original: {obstacle}") for _ in mistakes]
    first = trial.seeds[:1]
    # Most of what is refuted is refuted by the first seed.
    trial.prepare(repairs, first)
    stopped = _stopped(trial, first)
    if stopped is not None:
        return [stopped for _ in mistakes]
    models, undecided = _measures(trial, mistakes, repairs)
    accepted: dict[int, str] = {}
    other: dict[int, Apart] = {}
    refusals: list[Apart] = []
    # What trains otherwise than programs that break the rule themselves may be right. What the original's own
    # entries tell says nothing of optimizers that own other parameters, nor of what a sum that does not go on
    # growing is divided by.
    pairs = zip(_owned(trial.judged(trial.seeds[0])), _owned(trial.original(trial.seeds[0])))
    moved = any(one != other for one, other in pairs)
    faulty = all(not one.ruled and _breach(trial.repaired(one, trial.seeds[0])) for one in models)
    for repair in models:
        if repair.fixed <= accepted.keys():
            continue
        found = _compared(trial, repair)
        if found.apart is not None:
            loose = faulty or (repair.ruled and (moved or any(mistakes[n].carried for n in repair.fixed)))
            refusals.append(replace(found.apart, known=found.apart.known and not loose))
            continue
        for number in repair.fixed:
            counted = _counted_apart(trial, repair) if mistakes[number].claim.steady_modes else None
            if counted is None:
                accepted.setdefault(number, f"{found.manner} of the original {repair.how}")
            else:
                other[number] = Apart(counted)
    carried = {number for number, one in enumerate(mistakes) if one.carried and not one.for_later}
    carried -= accepted.keys()
    for repair in [anew for repair in models if carried & repair.fixed and (anew := _anew(trial, repair))]:
        found = _compared(trial, repair)
        buffer = _buffer_anew(trial, repair)
        for number in repair.fixed - accepted.keys() if found.apart is None else ():
            if buffer is None:
                accepted[number] = f"{found.manner} of the original {repair.how}"
            else:
                other[number] = Apart(f"it begins `{buffer}` anew, which may be a statistic", known=False)
    for number, mistake in enumerate(mistakes):
        if number not in accepted and mistake.carried:
            summed = compared_through_time(trial, [repair for repair in models if number in repair.fixed])
            if isinstance(summed, Apart):
                other[number] = summed
            elif summed is not None:
                accepted[number] = summed
    stopped = None
    if accepted:
        missed = trial.missed()
        stopped = _stopped(trial, trial.seeds) or (Verdict("not run", missed) if missed else None)
    breach = _breach(trial.judged(trial.seeds[0])) if accepted and stopped is None else None
    if breach is not None and len(accepted) == len(mistakes) and not any(one.still_there for one in mistakes):
        stopped = breach
    if stopped is not None:
        return [stopped for _ in mistakes]
    if breach is not None:
        # Who knows whether one mistake is mended by a program in which another one shows?
        refusals = [Apart(breach.reason, known=False)]
        accepted.clear()
    return [
        _verdict(
            number,
            mistake,
            accepted,
            [other[number]] if number in other else refusals,
            any(number in m.fixed for m in models),
            undecided,
        )
        for number, mistake in enumerate(mistakes)
    ]


def _counted_apart(trial: Trial, repair: Repair) -> str | None:
    """What normalizes other batches in training mode than in a repair of the modes, in words."""
    first = trial.seeds[0]
    return counted_apart(trial.repaired(repair, first), trial.judged(first))


def _compared(trial: Trial, repair: Repair) -> Found:
    """Whether the judged version trains as a repair does, with the same draws or others, but for rounding."""
    found = compared(trial, repair)
    if found.apart is not None and found.apart.slight:
        trial.doubting = True
        found = compared(trial, repair)
        trial.doubting = False
    if found.apart is not None and not found.apart.known:
        found = compared_with_its_draws(trial, repair) or found
    return found


def _anew(trial: Trial, repair: Repair) -> Repair | None:
    """A repair that begins state anew where ``repair`` detaches it, if that trains as much.

    Where state that is begun anew in every step leaves recurrent weights without a gradient, it is no state.
    """
    text = begun_anew(trial.before[1], repair.text)
    first = trial.seeds[0]
    anew = text and replace(repair, text=text, how=f"{repair.how}, and begun anew where it is detached")
    if not anew or repair.ruled or _stops(trial.repaired(anew, first)) is not None:
        return None
    return anew if _trained(trial.repaired(anew, first)) >= _trained(trial.repaired(repair, first)) else None


def _buffer_anew(trial: Trial, anew: Repair) -> str | None:
    """A registered buffer that a repair begins anew, if there is one: such are most statistics, and some
    states."""
    buffers = {
        name.rsplit(".", 1)[-1]
        for step in trial.repaired(anew, trial.seeds[0]).steps
        for name in step.buffers
    }
    return next((name for name in attributes_begun_anew(anew.text) if name in buffers), None)


def _trained(run: Recording) -> set[tuple[int, int]]:
    """The parameters, by optimizer and position, that get a gradient at some step."""
    states = (
        (step.optimizer, place, state) for step in run.steps for place, state in enumerate(step.parameters)
    )
    return {(optimizer, place) for optimizer, place, state in states if state.moves}


def _verdict(
    number: int,
    mistake: Mistake,
    accepted: dict[int, str],
    refusals: Sequence[Apart],
    known: bool,
    undecided: str,
) -> Verdict:
    if mistake.still_there is not None:
        return Verdict("refuted", f"the mistake is still there: {mistake.still_there}")
    if number in accepted:
        return Verdict("accepted", accepted[number])
    if not known:
        return Verdict("not run", undecided)
    doubt = next((apart for apart in refusals if not apart.known), None)
    if doubt is not None:
        return Verdict("not run", doubt.why)
    return Verdict("refuted", refusals[0].why if refusals else "the original trains in another way")


def _measures(
    trial: Trial, mistakes: Sequence[Mistake], repairs: Sequence[Repair]
) -> tuple[list[Repair], str]:
    """What the judged version is held against, and why there is nothing, if so.

    Where all that is wrong is which loss is given to whom, the rule itself is the measure, and no rewrite.
    """
    first = trial.seeds[0]
    undecided = "gradfix has no working repair of its own to compare with"
    models = [one for one in repairs if not one.choice and _stops(trial.repaired(one, first)) is None]
    entries = frozenset(number for number, mistake in enumerate(mistakes) if mistake.entries)
    rule = Repair(trial.before[1], entries, RULED, ruled=True)
    try:
        grows = any(used for *_, used in trial.corrections(first))
    except intent.Undecided as why:
        return models, undecided if models else str(why)
    kept = trial.original(first, keep=True, through=True)
    if _stops(kept) is not None or kept.ledger is None:
        return models, undecided
    if next(intent.outdated(kept.ledger), None) is not None:
        # Its entries were computed with former weights, unless these are held still.
        rule = replace(rule, fixed=frozenset(range(len(mistakes))), held=True)
        kept_right = all(mistake.kept or (mistake.carried and grows) for mistake in mistakes)
        return models or ([rule] if kept_right else []), undecided
    if len(entries) == len(mistakes):
        return [rule], undecided
    return [*models, *([rule] if entries else [])], undecided


def _owned(run: Recording) -> list[tuple[tuple[int, ...], ...]]:
    """By optimizer: the shapes of the parameters that it owns."""
    return [one.shapes for one in run.optimizers]


def _breach(run: Recording) -> Verdict | None:
    """The verdict on a version that breaks the rule in the open, if no mistake is known that says so."""
    stepped = {tensor for one in run.optimizers if run.steps_of(one.index) for tensor in one.tensors}
    for optimizer in run.optimizers:
        steps, who = run.steps_of(optimizer.index), optimizer.name
        if claims.leftover(steps):
            return Verdict("refuted", f"a step of {who} uses gradients that it has already used")
        given = {place for call in run.backwards for index, place in call.reached if index == optimizer.index}
        if not steps and any(optimizer.tensors[place] not in stepped for place in given):
            return Verdict("not run", f"{who} never steps, and nothing else uses the gradients that it owns")
    return None


RULED = "with its graphs kept and each loss used once, for the parameters it is meant for"


def _stopped(trial: Trial, seeds: Sequence[int]) -> Verdict | None:
    """The verdict on a version that stops on one of these seeds."""
    return next((Verdict(*why) for seed in seeds if (why := _stops(trial.judged(seed)))), None)


def _stops(run: Recording) -> tuple[Judged, str] | None:
    """Why a version that should run does not, if so."""
    error = run.crash or run.uncaught
    if error is not None and (error.autograd or error.type not in ("SystemExit",)):
        return "refuted", f"it {claims.summary(run)}"
    if run.ending in ("trouble", "died", "killed", "seconds") and len(run.steps) < 2:
        return "not run", f"it {claims.summary(run)}"
    if not run.steps and not run.backwards:
        if run.optimizers:
            return "refuted", "it never calls backward()"
        return "not run", "it never calls backward(), and what `torch.autograd.grad` returns is not followed"
    return None
