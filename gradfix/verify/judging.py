"""Judging a repair that gradfix did not write.

Silencing an error is easy, and most ways to do so train something else. So a repair is held against programs
whose gradients are known to be right. Where all that is wrong with the original is which loss is given to
whom, and how often, that is the original itself, made to keep its graphs and to give each loss once to those
that it is for (see :func:`gradfix.core.intent.corrections`). Else it is what gradfix's own fixes make of it,
but for choices (each is run first, and has to run). A repair is accepted

* if every optimizer consumes, step for step and on every seed, the gradients that it consumes in one
  of them; or
* if it does so while the weights of both are put back after each step: then the order in which the
  networks are trained (generator first, say) makes no difference, and everything else does. In further runs
  one optimizer's weights do move, or all are put back to others after every other pass, which copies of the
  former ones do not have; or
* if, for state that is carried over passes, its first step consumes the sum of what the passes of the
  original contribute, with their graphs kept and the weights held still: full backpropagation
  through time, where gradfix's own fix truncates. Later steps must go on with the passes after these,
  differentiate what these come to, and consume the sum of what they contribute to gradfix's own fix, if that
  is made to truncate as seldom.

In the last two cases the repair's optimizers must also have the settings of the original's, and their
steps must move the weights. In all cases it must keep up what else there is: averages of weights, running
statistics. And what is found alike is looked at once more in runs that go several times as far, where
schedules and epochs come to bear, and where weights are put back to others every now and then: what goes on
with former ones is seen, however slowly they are learned.

Random numbers may be drawn anew: each optimizer has to depend on as many draws as in the repair, and then all
this has to hold in runs in which it gets the same numbers.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from gradfix.core import intent
from gradfix.core.codemod import Claim
from gradfix.verify import claims
from gradfix.verify.beside import kept_apart
from gradfix.verify.command import PLAIN, Command
from gradfix.verify.coverage import changed
from gradfix.verify.cutting import cut_every
from gradfix.verify.interpreter import Interpreter, choose_interpreter
from gradfix.verify.pairing import Numbers, paired
from gradfix.verify.passes import Counts, Passes, common
from gradfix.verify.recording import (
    Backward,
    Event,
    ParameterState,
    Place,
    Recording,
    Step,
    Values,
    noisy,
    plural,
)
from gradfix.verify.runner import (
    CannotRun,
    Job,
    Limits,
    Runner,
    completed,
    dithered,
    farther,
    runner_for,
    short,
    why_not,
)
from gradfix.verify.slicing import affected

Judged = Literal["accepted", "refuted", "not run"]
FURTHER = 4
"""How many times as far runs go to be compared through time, and when nothing else was found."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The original after fixes of gradfix's own."""

    text: str
    fixed: frozenset[int]
    """The mistakes of the original, by number, that are gone in it."""
    how: str
    """The fixes, in words."""
    choice: bool = False
    """Whether one of them is a choice, which is no measure for others."""
    ruled: bool = False
    """Whether it is no rewrite: the original itself, whose runs are made to give each loss once to those that
    it is for (see :func:`gradfix.core.intent.corrections`)."""
    held: bool = False
    """Whether it is right only while the weights are held still."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in the original that a repair has to mend."""

    claim: Claim
    carried: bool
    """Whether it is about state that is carried over passes, so that there is a sum over time."""
    still_there: str | None = None
    """What the model says of the mistake in the repaired version, if it is still there."""
    entries: bool = False
    """Whether it is only about which loss is given to whom, and how often."""
    kept: bool = False
    """Whether steps consume what is right, while the weights are held still, where no graph is freed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mistake."""

    outcome: Judged
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on each mistake, and the runs that it rests on."""

    verdicts: tuple[Verdict, ...]
    runs: tuple[tuple[str, str], ...] = ()
    """``(version, what it did)`` on the first seed."""
    python: str = ""
    interpreter: str = ""
    torch: str = ""
    seeds: tuple[int, ...] = ()
    seconds: float = 0.0
    sandbox: str = ""
    """What kept the runs from doing harm."""
    passed_over: tuple[str, ...] = ()
    """Interpreters that would have come first, each with the reason why it did not."""


def judge(
    before: tuple[Path, str],
    after: tuple[Path, str],
    mistakes: Sequence[Mistake],
    repairs: Sequence[Repair],
    *,
    python: str | Interpreter | None = None,
    command: Command = PLAIN,
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
        command: How the user runs either version.
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
            trial = _Trial(runner, before, after, tuple(seeds), limits, command)
            verdicts = tuple(_verdicts(trial, mistakes, repairs))
            judgement = trial.judgement(verdicts, chosen, time.monotonic() - started)
            runner.forget_all_but(())
            return judgement
    except CannotRun as error:
        return Judgement(tuple(Verdict("not run", str(error)) for _ in mistakes))


class _Trial:
    """The runs of the versions, each made when it is first asked for."""

    def __init__(
        self,
        runner: Runner,
        before: tuple[Path, str],
        after: tuple[Path, str],
        seeds: tuple[int, ...],
        limits: Limits,
        command: Command,
    ) -> None:
        self._runner = runner
        self.before = before
        self._after = after
        self.seeds = seeds
        self._limits = limits
        self._command = command
        self._schema = ""
        self._changed = affected(after[1], changed(before[1], after[1]))
        self._ahead = (0, 0)
        """More steps and backward calls than usual that runs may make."""
        self._numbers: dict[int, Numbers] | None = None
        self.doubting = False
        """Whether it is looked at what rounding makes of gradients."""

    def paired(self, repair: Repair) -> _Trial | None:
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
        if short(run) and claims.wanting(run):
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
            # A step may be worth many passes.
            limits = replace(limits, steps=FURTHER * limits.steps, backwards=FURTHER * limits.backwards)
        steps, backwards = self._ahead
        limits = replace(limits, steps=limits.steps + steps, backwards=limits.backwards + backwards)
        how |= {"limits": limits, "schema": self._schema}
        # As in verification, hashes are taken on the first seed.
        hashed = seed == self.seeds[0] and self._numbers is None and "corrections" not in how
        how |= {"updates": True, "thorough": hashed}
        if self._numbers is not None:
            how |= {"numbered": True, "numbers": self._numbers[seed] if version is self._after else ()}
        return Job(*version, self._command, seed, **how)

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
        if not self.doubting or not run.steps:
            return run
        return noisy(run, *dithered(self._runner, self._job(version, seed, moves=keyed, **how)))

    def judged(
        self, seed: int, *, alone: int | None = None, moves: Sequence[Counts] = (), **how: Any
    ) -> Recording:
        """A run of the judged version, told as if it made its optimizers in the order of the original.

        ``alone`` and ``moves`` count in that order.
        """
        turn = _turn(self._run(self._after, seed), self.original(seed))
        if alone is not None or moves:
            order = turn or range(max(len(moves), (alone or 0) + 1))
            how |= {
                "alone": None if alone is None else order.index(alone),
                "moves": tuple((one, tuple(moves[one])) for one in order) if moves else (),
            }
        run = self._run(self._after, seed, **how)
        return run if turn is None or len(run.optimizers) != len(turn) else _in_order(run, turn)

    def corrections(self, seed: int) -> tuple[tuple[int, bool, tuple[tuple[int, int], ...]], ...]:
        """What keeps the original from giving each loss once to those it is for, if no graph is freed.

        Raises:
            Undecided: if that cannot be known.
        """
        ledger = self.original(seed, keep=True, through=True).ledger
        if ledger is None:
            raise intent.Undecided("the graphs of the original are too large to look at")
        found = intent.corrections(ledger)
        return tuple(
            (call, one.cut, tuple(sorted(cast(Collection[tuple[int, int]], one.dropped))))
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


def _turn(run: Recording, like: Recording) -> list[int] | None:
    """By optimizer of ``run``: its number in ``like``, where that is another order, and can be told.

    They are told by their settings, and by the parameters that they own: their names, or else their shapes.
    """

    def named(recording: Recording) -> list[Any]:
        return [(one.kind, one.settings, one.parameters) for one in recording.optimizers]

    def shaped(recording: Recording) -> list[Any]:
        return [(one.kind, one.settings, one.shapes) for one in recording.optimizers]

    for known in (named, shaped):
        mine, wanted = known(run), known(like)
        if len(set(mine)) == len(mine) and set(mine) == set(wanted):
            return None if mine == wanted else [wanted.index(one) for one in mine]
    return None


def _in_order(run: Recording, turn: Sequence[int]) -> Recording:
    """``run`` with other numbers for its optimizers."""

    def moved(event: Event) -> Event:
        if isinstance(event, Step):
            return replace(event, optimizer=turn[event.optimizer])
        if isinstance(event, Backward):
            reached = frozenset((turn[index], place) for index, place in event.reached)
            shares = {(turn[index], place): share for (index, place), share in event.shares.items()}
            return replace(event, reached=reached, shares=shares)
        return event

    optimizers = sorted(
        (replace(one, index=turn[one.index]) for one in run.optimizers), key=lambda one: one.index
    )
    weights = [run.weights[turn.index(place)] for place in range(len(turn))] if run.weights else ()
    events = tuple(moved(event) for event in run.events)
    return replace(run, optimizers=tuple(optimizers), events=events, weights=tuple(weights))


def _verdicts(trial: _Trial, mistakes: Sequence[Mistake], repairs: Sequence[Repair]) -> list[Verdict]:
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
    refusals: list[_Apart] = []
    for repair in models:
        if repair.fixed <= accepted.keys():
            continue
        found = _same(trial, repair)
        if found.apart is not None and found.apart.slight:
            trial.doubting = True
            found = _same(trial, repair)
            trial.doubting = False
        if found.apart is not None and not found.apart.known:
            found = _drawn_anew(trial, repair) or found
        if found.apart is not None:
            refusals.append(found.apart)
            continue
        for number in repair.fixed:
            accepted.setdefault(number, f"{found.manner} of the original {repair.how}")
    other: dict[int, _Apart] = {}
    for number, mistake in enumerate(mistakes):
        if number not in accepted and mistake.carried:
            summed = _through_time(trial, [repair for repair in models if number in repair.fixed])
            if isinstance(summed, _Apart):
                other[number] = summed
            elif summed is not None:
                accepted[number] = summed
    stopped = None
    if accepted:
        missed = trial.missed()
        stopped = _stopped(trial, trial.seeds) or (Verdict("not run", missed) if missed else None)
    if stopped is not None:
        return [stopped for _ in mistakes]
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


def _verdict(
    number: int,
    mistake: Mistake,
    accepted: dict[int, str],
    refusals: Sequence[_Apart],
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
    trial: _Trial, mistakes: Sequence[Mistake], repairs: Sequence[Repair]
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
        trial.corrections(first)
    except intent.Undecided as why:
        return models, undecided if models else str(why)
    kept = trial.original(first, keep=True, through=True)
    if _stops(kept) is not None or kept.ledger is None:
        return models, undecided
    if next(intent.outdated(kept.ledger), None) is not None:
        # Its entries were computed with former weights, unless these are held still.
        rule = replace(rule, fixed=frozenset(range(len(mistakes))), held=True)
        return models or ([rule] if all(mistake.kept for mistake in mistakes) else []), undecided
    if len(entries) == len(mistakes):
        return [rule], undecided
    return [*models, *([rule] if entries else [])], undecided


RULED = "with its graphs kept and each loss used once, by the optimizers it is for"


def _stopped(trial: _Trial, seeds: Sequence[int]) -> Verdict | None:
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


@dataclass(frozen=True, slots=True)
class _Apart:
    """Why two versions do not train alike."""

    why: str
    known: bool = True
    """Whether that is known: otherwise it could not be told whether they do."""

    @property
    def slight(self) -> bool:
        """Whether it is a difference in numbers, which may be rounding."""
        return " of its size" in self.why


@dataclass(frozen=True, slots=True)
class _Found:
    """What came of holding the judged version against one repair."""

    apart: _Apart | None
    manner: str = ""
    """How it trains as the repair does, if so."""


def _same(trial: _Trial, repair: Repair) -> _Found:
    """Whether the judged version consumes what the original with ``repair`` consumes."""
    first = trial.seeds[0]
    apart = (
        _outdated(trial.judged(first)) or _Apart("they cannot be compared in another way", known=False)
        if repair.held
        else _in_earnest(trial.repaired(repair, first), trial.judged(first), first)
    )
    if repair.held and apart is not None and apart.known:
        return _Found(apart)
    if apart is None:
        trial.prepare([repair], trial.seeds)
        apart = _first(
            _in_earnest(trial.repaired(repair, seed), trial.judged(seed), seed) for seed in trial.seeds[1:]
        )
    if repair.ruled:
        needless = _keeps_needlessly(trial.judged(first))
    else:
        kept = max(_retains(trial.repaired(repair, first)), _retains(trial.original(first)))
        needless = _retains(trial.judged(first)) > kept
    if needless:
        # Its gradients may be right. But what it keeps is memory, and the mistake is only hidden.
        hidden = _Apart("it needs retain_graph=True, which no right repair does")
        return _Found(hidden if apart is None or not apart.known else apart)
    if apart is None:
        doubts = [apart for look in (_later, _moved) if (apart := look(trial, repair)) is not None]
        later = next((apart for apart in doubts if apart.known), None)
        if later is None and len(doubts) == 2 and trial.judged(first).optimizers:
            later = doubts[0]
        return _Found(None, _manner(trial, repair)) if later is None else _Found(later)
    other = _other_order(trial, repair)
    if other is None:
        return _Found(None, "with optimizer updates off, the optimizers use the gradients")
    # What differs where the weights do move is what people can see, but it is no reason in another order.
    pairs = zip(trial.repaired(repair, first).steps, trial.judged(first).steps)
    in_order = all(mine.optimizer == theirs.optimizer for mine, theirs in pairs)
    return _Found(apart if other.known and in_order and not repair.held else other)


def _drawn_anew(trial: _Trial, repair: Repair) -> _Found | None:
    """Whether the judged version consumes what ``repair`` consumes, given the same random numbers for it."""
    first = trial.seeds[0]
    if not trial.judged(first).optimizers or not _same_draws_elsewhere(trial, repair):
        return None
    given = trial.paired(repair)
    found = None if given is None else _same(given, repair)
    if found is None or found.apart is not None:
        return None
    return _Found(None, f"given the same random numbers, {found.manner}")


def _same_draws_elsewhere(trial: _Trial, repair: Repair) -> bool:
    """Whether of all generators only torch's gives other numbers to the judged version."""
    first = trial.seeds[0]
    one, other = trial.repaired(repair, first), trial.judged(first)
    apart = {
        name
        for optimizer in one.optimizers
        for mine, theirs in zip(one.steps_of(optimizer.index), other.steps_of(optimizer.index))
        for name in mine.random.apart(theirs.random)
    }
    return apart == {"torch"}


def _later(trial: _Trial, repair: Repair) -> _Apart | None:
    """What differs further on."""
    first = trial.seeds[0]
    return _in_earnest(trial.repaired(repair, first, through=True), trial.judged(first, through=True), first)


def _manner(trial: _Trial, repair: Repair) -> str:
    """How the judged version trains as the repair does, in words."""
    on = f"on {len(trial.seeds)} seeds"
    if trial.judged(trial.seeds[0]).optimizers:
        return f"{on}, the optimizers use the gradients"
    found = [claims.by_hand(trial.repaired(repair, seed), trial.judged(seed)) for seed in trial.seeds]
    if not all(one.whole for one in found):
        on += f" and for the first {plural(min(one.calls for one in found), 'backward call')}"
    return f"{on}, the weights are updated with the gradients"


def _other_order(trial: _Trial, repair: Repair) -> _Apart | None:
    """What differs, if the judged version does not only train the networks in another order than the repair.

    With the weights put back after each step the order makes no difference. Nor would it make one then if
    something else than steps moved the weights, or if graphs held weights that have moved: so both are
    looked for where the weights do move. And what goes on with gradients of former weights, or with a copy
    of these, is seen where one optimizer's weights alone move, and where all are put back to others.
    """
    first = trial.seeds[0]
    if not trial.repaired(repair, first).optimizers:
        return _Apart("there is no optimizer")
    for seed in trial.seeds:
        model, run = trial.repaired(repair, seed), trial.judged(seed)
        if model.moved_otherwise != run.moved_otherwise:
            return _Apart("something other than a step changes the weights")
        kept = kept_apart(model, run, in_earnest=False)
        if kept is not None:
            return _Apart(f"{kept} (seed {seed})")
        model, run = trial.repaired(repair, seed, still=True), trial.judged(seed, still=True)
        apart = _apart(model, run, seed)
        if apart is not None:
            return replace(apart, why=f"with optimizer updates off, {apart.why}")
    apart = _first(_alone(trial, repair, one.index) for one in trial.judged(first).optimizers)
    if apart is None:
        apart = _moved(trial, repair)
    if apart is not None:
        return apart
    return _Apart("gradients are computed from outdated weights") if _stale(trial) else None


def _alone(trial: _Trial, repair: Repair, optimizer: int) -> _Apart | None:
    """What differs for an optimizer while it alone moves its weights."""
    first = trial.seeds[0]

    def its(run: Recording) -> Recording:
        mine = (e for e in run.events if not isinstance(e, Step) or e.optimizer == optimizer)
        return replace(run, events=tuple(mine))

    model, run = (
        its(trial.repaired(repair, first, alone=optimizer)),
        its(trial.judged(first, alone=optimizer)),
    )
    return _apart(model, run, first, partly=True)


def _moved(trial: _Trial, repair: Repair) -> _Apart | None:
    """What differs in passes before which the weights were put back to others: every other one."""
    first = trial.seeds[0]
    whole = (
        trial.repaired(repair, first, still=True, through=True),
        trial.judged(first, still=True, through=True),
    )
    apart = _apart(*whole, first)
    if apart is not None and apart.known:
        return apart
    passes = common(*whole)
    if not passes.ends:
        return _Apart("there are too few steps to compare", known=False)
    return _moved_in(trial, repair, passes, whole[0]) or _moved_in(trial, repair, passes.later(), None)


def _moved_in(trial: _Trial, repair: Repair, passes: Passes, still: Recording | None) -> _Apart | None:
    """What differs in the resting ones of these passes, in which all optimizers of ``still`` should step.

    In the other passes networks see others that were moved before, if those step first. So they are compared
    only if networks see the same ones in both versions, as what they consume in the first pass tells.
    """
    first = trial.seeds[0]
    moves = passes.moving()
    if not moves:
        return None
    runs = (
        trial.repaired(repair, first, moves=moves, through=True),
        trial.judged(first, moves=moves, through=True),
    )
    kept = kept_apart(*runs, in_earnest=True)
    if kept is not None:
        return _Apart(kept)
    resting = passes.resting(runs[0])
    alike = _begin_alike(trial.repaired(repair, first), trial.judged(first), passes.ends[0])
    one, other = runs if alike else (resting, passes.resting(runs[1]))
    # What optimizers remember of the passes between may differ.
    apart = _apart(one, other, first, updates=False, partly=True)
    if apart is not None:
        return apart
    for optimizer in one.optimizers if still is not None else ():
        # One that steps once has nothing to go on with.
        taken = len(resting.steps_of(optimizer.index))
        if still is not None and len(still.steps_of(optimizer.index)) > 1 > taken:
            return _Apart(f"{optimizer.name} takes too few steps to compare", known=False)
    return None


def _begin_alike(one: Recording, other: Recording, until: Counts) -> bool:
    """Whether two versions consume the same until each optimizer has taken so many steps."""
    return all(
        claims.same_gradients(
            {at: g for at, g in _gradients(mine).items() if g is not None}, _gradients(theirs)
        )
        for optimizer, count in zip(one.optimizers, until)
        for mine, theirs in zip(one.steps_of(optimizer.index)[:count], other.steps_of(optimizer.index))
    )


def _in_earnest(one: Recording, other: Recording, seed: int) -> _Apart | None:
    """What differs between two versions whose weights do move."""
    apart = _apart(one, other, seed)
    if apart is not None and apart.known:
        return apart
    for index, place in sorted(one.moved_otherwise ^ other.moved_otherwise):
        what = one.parameter(index, place)
        return _Apart(f"in one version something other than a step changes {what} (seed {seed})")
    kept = kept_apart(one, other, in_earnest=apart is None)
    return apart if kept is None else _Apart(f"{kept} (seed {seed})")


def _first(found: Iterable[_Apart | None]) -> _Apart | None:
    return next((apart for apart in found if apart is not None), None)


def _retains(run: Recording) -> int:
    """In how many places backward calls retain their graph."""
    return len({call.place for call in run.backwards if call.retain})


def _outdated(run: Recording) -> _Apart | None:
    """Whether a step consumes what was computed with weights from before a step."""
    if run.ledger is None:
        return _Apart("its graphs are too large to look at", known=False)
    for call, _ in intent.outdated(run.ledger):
        return _Apart(f"the backward call of {call.loss} uses weights that a step has changed since")
    return None


def _keeps_needlessly(run: Recording) -> bool:
    """Whether a graph is retained in a place from which no later call ever goes through it again."""
    again = {call for one in run.backwards if one.through is not None for call in one.through.again}
    needed = {run.backwards[call].place for call in again}
    return any(call.retain and call.place not in needed for call in run.backwards)


def _apart(
    one: Recording, other: Recording, seed: int, updates: bool = True, partly: bool = False
) -> _Apart | None:
    """What differs between the trainings of two versions, if anything does.

    ``partly``: the recordings lack some of the steps.
    """
    if not one.optimizers:
        found = claims.by_hand(one, other)
        return _Apart(found.apart, found.known) if found.apart is not None else None
    followed_all = claims.follow(one, other)
    if isinstance(followed_all, str):
        return _Apart(f"{followed_all} (seed {seed})")
    settings = _settings_apart(one, other)
    if settings is not None:
        return _Apart(settings)
    for optimizer in one.optimizers:
        who, followed = optimizer.name, followed_all[optimizer.index]
        pairs = list(zip(one.steps_of(optimizer.index), other.steps_of(optimizer.index)))
        exact = {place for mine, _ in pairs[:1] for place, _ in enumerate(mine.parameters)}
        for turn, (mine, theirs) in enumerate(pairs[: followed.compared], start=1):
            exact &= _bit_for_bit(mine, theirs)
            place = claims.updates_apart(mine, theirs, exact=exact)
            if updates and place is not None:
                what = one.parameter(optimizer.index, place)
                return _Apart(f"step {turn} of {who} updates {what} differently (seed {seed})")
            if mine.settings != theirs.settings:
                return _Apart(f"step {turn} of {who} has other settings: {theirs.settings}")
            if set(mine.clips) != set(theirs.clips):
                return _Apart(f"step {turn} of {who} clips gradients differently: {_clips(theirs)}")
        counts = [len(run.steps_of(optimizer.index)) for run in (one, other)]
        if not partly and _other_count(one, other, *counts):
            return _Apart(f"{who} takes {plural(counts[1], 'step')}, not {counts[0]}")
        if followed.open is not None:
            return _Apart(f"the gradients of {who} cannot be compared: {followed.open}", known=False)
        if not partly and followed.compared < min(len(one.steps_of(optimizer.index)), 2):
            return _unfinished(other, who)
    if partly:
        return None
    if len(_unused(other)) > len(_unused(one)):
        return _Apart(f"no step uses the gradients of the backward call at {_unused(other)[-1]}")
    return _cut_short(one, other)


def _schedules(run: Recording, optimizer: int) -> bool:
    """Whether the settings of an optimizer change while it steps; maybe if it hardly does."""
    steps = run.steps_of(optimizer)
    return len(steps) < 3 or len({step.settings for step in steps}) > 1


def _clips(step: Step) -> str:
    return "; ".join(step.clips) or "not at all"


def _bit_for_bit(one: Step, other: Step) -> set[int]:
    """The positions of parameters with which two steps begin at the very same value and gradient."""

    def digests(state: ParameterState) -> tuple[str, str | None]:
        return state.value.digest, None if state.gradient is None else state.gradient.digest

    pairs = enumerate(zip(one.parameters, other.parameters))
    return {place for place, (a, b) in pairs if digests(a) == digests(b)}


def _other_count(one: Recording, other: Recording, mine: int, theirs: int) -> bool:
    """Whether an optimizer takes more or fewer steps than it should.

    Where runs end by their budget, that may cut one off in the middle of a pass.
    """
    if not {one.ending, other.ending} <= {"finished", "steps"}:
        return False
    if one.ending == other.ending == "finished":
        return mine != theirs
    cycle = max(len(list(turns)) for _, turns in itertools.groupby(step.optimizer for step in one.steps))
    more = cycle if one.ending == "steps" else 0
    fewer = cycle if other.ending == "steps" else 0
    return theirs > mine + more or theirs < mine - fewer


def _unused(run: Recording) -> list[Place]:
    """Where backward calls are whose gradients are cleared before any step consumes them."""
    used = {feed for step in run.steps for state in step.parameters for feed in state.feeds}
    last = max(used, default=-1)
    return [
        call.place for call in run.backwards if call.reached and call.index < last and call.index not in used
    ]


def _unfinished(run: Recording, who: str) -> _Apart:
    return _Apart(f"{who} takes too few steps to compare: it {claims.summary(run)}", known=_left(run))


def _cut_short(one: Recording, other: Recording) -> _Apart | None:
    """Whether the judged version ends before it has done as much as the other."""
    if other.ending == "finished" or (other.ending == one.ending and len(other.steps) >= len(one.steps)):
        return None
    return _Apart(f"it ends early: it {claims.summary(other)}", known=_left(other))


def _left(run: Recording) -> bool:
    """Whether a run ended by what the program did, and not by what it may use."""
    return run.ending in ("finished", "error", "died")


def _settings_apart(one: Recording, other: Recording) -> str | None:
    for a, b in itertools.zip_longest(one.optimizers, other.optimizers):
        if a is None or b is None or (a.kind, a.settings) != (b.kind, b.settings):
            return "the optimizers are not those of the original"
    return None


def _stale(trial: _Trial) -> bool:
    """Whether gradients are computed from what has changed since graphs saved it, and autograd was fooled."""
    first = trial.seeds[0]
    return _apart(trial.judged(first), trial.judged(first, keep=True), first) is not None


def _idle(run: Recording) -> bool:
    """Whether the steps of an optimizer do not move its weights, though they consume gradients."""
    for optimizer in run.optimizers:
        for step in run.steps_of(optimizer.index):
            if step.after is None or not any(state.moves for state in step.parameters):
                continue
            if all(state.value.digest == now.digest for state, now in zip(step.parameters, step.after)):
                return True
    return False


def _through_time(trial: _Trial, repairs: Sequence[Repair]) -> str | _Apart | None:
    """Whether each step consumes the sum over several passes of the original; says so, if it does.

    If only the first one is known to, says what differs at the others; ``None`` if not even that.
    """
    lengths: set[int] = set()
    for seed in trial.seeds:
        original, run = trial.original(seed), trial.judged(seed)
        whole = trial.original(seed, keep=True, still=True, through=True)
        held = trial.judged(seed, still=True, through=True)
        if _settings_apart(whole, run) or not _steps_well(original, run):
            return None
        for repair in repairs[:1]:
            model = trial.repaired(repair, seed)
            kept = kept_apart(model, run, in_earnest=False)
            if kept is not None:
                return _Apart(f"{kept} (seed {seed})")
            for one in run.optimizers:
                if _schedules(model, one.index) and not _schedules(held, one.index):
                    return _Apart(f"the settings of {one.name} do not change any more")
            clips = {(step.optimizer, frozenset(step.clips)) for step in model.steps}
            other = next((s for s in run.steps if (s.optimizer, frozenset(s.clips)) not in clips), None)
            if other is not None:
                return _Apart(f"{run.optimizers[other.optimizer].name} clips differently: {_clips(other)}")
        for optimizer in held.optimizers:
            steps = held.steps_of(optimizer.index)
            if not steps:
                continue
            length = _summed(whole, optimizer.index, _consumed(steps[0]))
            if length is None:
                return _beyond(whole, held, steps)
            if not _goes_on(whole, held, steps, length):
                why = f"its first step uses the sum over {length} iterations, but later ones do not continue"
                return _Apart(f"{why} where the one before ended (seed {seed})")
            apart = _cut_as_seldom(trial, repairs, seed, steps, length)
            if apart is not None:
                return apart
            lengths.add(length)
    if len(lengths) != 1 or _stale(trial):
        return None
    return f"its step uses the sum over {lengths.pop()} iterations of what the original's own graph gives"


def _gradients(step: Step) -> dict[int, Values | None]:
    return {place: state.gradient for place, state in enumerate(step.parameters)}


def _consumed(step: Step) -> dict[int, Values | None]:
    """What a step consumes, as it was before it was clipped."""
    return {
        place: g if g is None or step.scale in (0.0, 1.0) else g.times(1 / step.scale)
        for place, state in enumerate(step.parameters)
        for g in [state.gradient]
    }


FARTHER = "it goes back through more iterations than the run of the original has"


def _beyond(whole: Recording, held: Recording, steps: Sequence[Step]) -> _Apart | None:
    """Whether the first step may sum more passes than the run of the original was left to make."""
    if whole.ending == "finished" or len(held.backwards) >= len(whole.backwards):
        return None
    feeds = {feed for state in steps[0].parameters for feed in state.feeds if feed >= 0}
    taken = [held.backwards[feed].value for feed in feeds]
    losses = [call.value for call in whole.backwards]
    if not taken or any(_same_sum(losses[:count], taken) for count in range(1, len(losses) + 1)):
        return None
    # A loss that is too small for all of these passes, where there are more steps, is another one.
    if len(steps) > 1 and _total(taken) < _total(losses):
        return None
    return _Apart(FARTHER, known=False)


def _cut_as_seldom(
    trial: _Trial, repairs: Sequence[Repair], seed: int, steps: Sequence[Step], length: int
) -> _Apart | None:
    """What differs from gradfix's own fixes, made to cut the graph every ``length`` passes only.

    On the first seed the weights are put back to others every other time, too.
    """
    if len(steps) < 2:
        return None
    _, before = trial.before
    found: _Apart | None = None
    for repair, late in itertools.product(repairs, (False, True)):
        text = cut_every(before, repair.text, length, late)
        if text is None:
            continue
        model = trial.repaired(replace(repair, text=text), seed, keep=True, still=True, through=True)
        sums = _segments(model, steps[0].optimizer, length)
        # Where it is cut elsewhere, the first segment is another one.
        if not sums or not claims.same_gradients(sums[0], _consumed(steps[0])):
            continue
        if len(sums) < 2:
            found = found or _Apart(FARTHER, known=False)
            continue
        pairs = enumerate(zip(sums, steps), start=1)
        turn = next((n for n, (a, step) in pairs if not claims.same_gradients(a, _consumed(step))), None)
        if turn is None and (model.ending != "finished" or len(sums) >= len(steps)):
            cut = replace(repair, text=text)
            return _moved_through(trial, cut, steps[0].optimizer, length) if seed == trial.seeds[0] else None
        what = f"step {turn or len(sums) + 1} does not use the sum over its own {length} iterations"
        found = _Apart(f"{what}, though the first one does (seed {seed})")
    why = f"its first step uses the sum over {length} iterations, and later ones cannot be compared"
    return found or _Apart(why, known=False)


def _moved_through(trial: _Trial, cut: Repair, optimizer: int, length: int) -> _Apart | None:
    """What differs for an optimizer in segments before which the weights were put back to others."""
    first = trial.seeds[0]
    held = trial.judged(first, still=True, through=True)
    passes = common(held, held)
    moves = passes.moving()
    run = trial.judged(first, still=True, through=True, moves=moves)
    rarely = [tuple(length * number for number in numbers) for numbers in moves]
    model = trial.repaired(cut, first, keep=True, still=True, through=True, moves=rarely)
    pairs = zip(_segments(model, optimizer, length), run.steps_of(optimizer))
    for turn, (consumed, step) in enumerate(pairs, start=1):
        if passes.rests(optimizer, turn) and not claims.same_gradients(consumed, _consumed(step)):
            what = f"step {turn} does not use the sum over its own {length} iterations"
            return _Apart(f"{what} once the weights were replaced by others (seed {first})")
    return None


def _segments(model: Recording, optimizer: int, length: int) -> list[dict[int, Values]]:
    """What each so many passes contribute to an optimizer; the last are fewer only if the run has ended."""
    sums: list[dict[int, Values]] = []
    calls = model.backwards
    for begin in range(0, len(calls), length):
        if begin + length > len(calls) and model.ending != "finished":
            break
        sums.append(_added(calls[begin : begin + length], optimizer))
    return sums


def _added(calls: Iterable[Backward], optimizer: int) -> dict[int, Values]:
    """What backward calls add to the gradients of an optimizer."""
    added: dict[int, Values] = {}
    for call in calls:
        _add(added, call, optimizer)
    return added


def _add(total: dict[int, Values], call: Backward, optimizer: int) -> None:
    """Add what one backward call adds."""
    for (index, place), share in call.shares.items():
        if index == optimizer:
            total[place] = total[place].plus(share) if place in total else share


def _total(losses: Sequence[Values | None]) -> float:
    return abs(sum(value.exact[0] for value in losses if value is not None and value.exact))


def _goes_on(whole: Recording, held: Recording, steps: Sequence[Step], length: int) -> bool:
    """Whether all steps do what the first one does, each with the passes after those of the one before.

    Where a graph is cut between them the original's own holds more, so gradients are not comparable. But what
    is differentiated does not depend on where graphs are cut, nor which weights have a part in it; and a step
    consumes what its backward calls add, and nothing else.
    """
    first = {place for place, state in enumerate(steps[0].parameters) if state.moves}
    losses = [call.value for call in whole.backwards]
    done = 0
    for step in steps:
        calls = [
            held.backwards[feed] for feed in sorted({f for s in step.parameters for f in s.feeds if f >= 0})
        ]
        taken = losses[done : done + length]
        if len(taken) < length and whole.ending != "finished":
            return True  # the run of the original does not go so far
        done += length
        if {place for place, state in enumerate(step.parameters) if state.moves} != first:
            return False
        if not calls or not taken or not _same_sum(taken, [call.value for call in calls]):
            return False
        if not claims.same_gradients(_added(calls, step.optimizer), _consumed(step)):
            return False
    return done >= len(losses) or (not _left(whole) and not _left(held))


def _same_sum(some: Sequence[Values | None], others: Sequence[Values | None]) -> bool:
    """Whether losses come to the same in all."""
    sums = []
    for values in (some, others):
        numbers = [value.exact[0] for value in values if value is not None and value.exact]
        if len(numbers) != len(values):
            return False
        sums.append(sum(numbers))
    return abs(sums[0] - sums[1]) <= claims.RELATIVE * max(map(abs, sums))


def _steps_well(original: Recording, run: Recording) -> bool:
    """Whether what is not compared with anything is sound: each step learns something new, by itself."""
    if run.ending not in ("finished", "steps", "backwards") or _idle(run):
        return False
    if _retains(run) and not _retains(original):
        return False
    if not run.moved_otherwise <= original.moved_otherwise:
        return False
    fresh = not any(claims.leftover(run.steps_of(optimizer.index)) for optimizer in run.optimizers)
    return fresh and all(step.consumes for step in run.steps)


def _summed(whole: Recording, optimizer: int, consumed: dict[int, Values | None]) -> int | None:
    """Over how many passes (two or more) the shares in one optimizer have to be added up."""
    total: dict[int, Values] = {}
    for number, call in enumerate(whole.backwards, start=1):
        _add(total, call, optimizer)
        if number > 1 and claims.same_gradients(total, consumed):
            return number
    return None
