"""What a fix promises about gradients, as predicates over recordings of both versions.

"The error is gone" is no evidence: moving both optimizer steps to the end silences an error and
changes what the discriminator learns, and a detach too many silences it and stops the generator
from learning at all. So the checks here compare what optimizers *consume*:

``original``
    The original raised the predicted error on the predicted line, or ran. Another error of autograd's own is
    told, and decides nothing: whether the fixed program gets past it is the next question.
``crash``
    Autograd stops neither version for what no finding explains.
``fixed-runs``
    The fixed program gets past that place. Another autograd error at a later place is another
    fault of the file, and is said as "as far as"; one at the same place or earlier fails. Where something
    else stops both versions, nobody knows what would have come after: that is no proof.
``unchanged``
    The optimizers that the claim lists consume equal gradients, step for step: all steps for a
    fix that preserves, those before the crash for one that repairs, those before the first step
    of an optimizer that is not listed for one that changes.
``reference``
    The same against the original run with its graphs *kept* (nothing freed, saved tensors as
    they were when saved): what the original would have consumed had autograd not stopped it. It
    is followed as long as no unlisted optimizer has consumed anything different, for from there
    on the weights differ and nothing is comparable. It binds the optimizers that the claim lists
    by line; for ``"all"``, which promises nothing beyond the crash, those that no declared
    backward feeds; none for a claim that ends at the crash. What does not bind is reported.
``kept``
    No parameter loses its gradient: what has one in the original or the reference has one in the
    fixed program.
``reached``
    The fixed program has executed every statement that the rewrite has changed, and every part of one that is
    evaluated under a condition; the original, if nothing stops it, what stood there before.
``stepped``
    Every optimizer has stepped at least twice in both versions, or the program ends before by itself.
``once``
    No step consumes two entries of one loss, unless the original does: a loss that is backpropagated twice
    is not repaired by a graph that is kept for the second time.
``meant``
    Where a step consumes two losses with a common graph, and the original does not, both are meant for what
    receives both (see :mod:`gradfix.intent`).
``consumes``
    Every step finds a gradient.
``modes``
    Where the claim says so, every step finds the networks in the modes (training, evaluation) in which the
    first step of its optimizer found them, and in the original one does not.
``clipped``
    Where the claim says so, the first step whose gradients differ consumes shorter ones than in the original,
    at the same weights, and none that is longer. Where none differs, nothing was above the bound.
``scheduled``
    Where the claim says so, an optimizer begins with other options (a learning rate, say) than in the
    original, and goes on, some steps later, with those that the original begins with, in the same order.
``cleared``
    For programs without an optimizer, where the claim says so: the first leaf gradients that differ are those
    of the original less what was there before the backward call.
``feeds``
    Every step consumes gradients of exactly the declared backward calls.
``same-loss``
    While the weights are held still, the first backward of a declared loss (for this optimizer, where
    a helper gives several losses one name) gives its optimizer
    what it gives in the original's own graph. A detach does not change a loss's value: where the
    values agree and the gradients do not, something was cut off, and a fix of E1 or E2 fails.
``random``, ``buffers``
    At every step the random generators are in the same state, and the buffers of the networks (running
    statistics, say) hold the same, for as long as the weights are the same. A claim may say that networks
    are run more or less often, or at another time: then these two only tell where the versions part.
``leaves``
    For programs without an optimizer: the gradients of leaf tensors after each backward.

Equal hashes of how two gradients were computed (:mod:`gradfix.verify.provenance`) settle that they are
equal, bit for bit; different hashes prove nothing, and numbers decide. Hashes that say equal where the
values of the same seed differ are a fault of the recorder: then nothing is proved.

By numbers, gradients are equal if no element differs by more than :data:`RELATIVE` of the tensor's largest
magnitude plus :data:`ABSOLUTE` of the largest among the optimizer's gradients. Rounding grows
from step to step, so the relative tolerance is also :data:`GROWTH` times what the weights differ
by, up to :data:`GROWN`; while the weights are equal bit for bit that adds nothing. Where gradients differ by
more, the original runs once more with weights that are moved by as little as their type can tell: what that
makes of a gradient, :data:`NOISE` times, is rounding, up to :data:`ROUNDED` of the gradient. Tensors too
large to be stored whole are compared by the estimated norm of their difference.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from gradfix import intent
from gradfix.codemod import Claim, Effect
from gradfix.verify.recording import BY_HAND, Backward, Failure, Recording, Step, Values, plural

RELATIVE = 1e-5
ABSOLUTE = 1e-7
GROWTH = 100.0
GROWN = 1e-3
NOISE = 10.0
"""How many times what the least change of all weights makes of a gradient two versions may differ by: in one
of size 1e-6 that is made of numbers of size 1, that is a good part of it."""
ROUNDED = 0.25
"""How far apart two gradients may be by that at most, relative to the larger one."""
MOVED = 0.1
"""How far two updates of a tensor may be apart, relative to the longer one: they are small differences of
large numbers, and optimizers such as Adam give rounding in small gradients the size of large ones."""
EXACT = 1e-4
"""The same, beside rounding, where an optimizer has been given the very same gradients."""

Verdict = Literal["holds", "fails", "not checked"]

COMPARISONS = frozenset({"unchanged", "reference", "leaves", "same-loss"})
"""Checks that mean nothing if two runs of the same program differ."""
EFFECTS = frozenset({"random", "buffers"})
"""Checks of what surrounds the gradients."""
CONTRADICTION = "recorder contradiction"
"""Begins the detail of a check where equal hashes stand for different values."""
NO_NUMBERS = "and there are no numbers"
"""Ends the detail of a check where hashes differ, which prove nothing then, in a run without data."""
PROMISED = frozenset({"modes", "clipped", "scheduled", "cleared"})
"""The checks that a claim asks for by itself: nothing is proved where one of them could not be made."""
SUBSTANCE = COMPARISONS | PROMISED | {"feeds", "kept"}
"""Checks of which at least one must hold for evidence to be evidence."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what was found."""

    name: str
    """Stable, see the module's documentation."""
    verdict: Verdict
    detail: str
    """For people: what holds or fails, or why it was not checked."""
    subject: str = ""
    """The optimizer it is about, as the script calls it."""
    by_hash: bool = False
    """Whether it is about gradients, none was left out, and hashes alone have shown that they are equal."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What the model says is wrong with a program, so that autograd may raise for it."""

    lines: frozenset[int] = frozenset()
    """The lines of the findings."""
    kinds: frozenset[str] = frozenset()
    """The errors that they are about."""

    def explain(self, error: Failure) -> bool:
        """Whether an error comes of one of them."""
        return error.kind in self.kinds or any(error.place.covers(line) for line in self.lines)


@dataclass(frozen=True, slots=True)
class Still:
    """Both versions run with every optimizer's weights put back after each step."""

    reference: Recording
    """The original, its graphs kept."""
    after: Recording


def check(
    claim: Claim,
    effect: Effect,
    before: Recording,
    after: Recording,
    reference: Recording | None = None,
    still: Still | None = None,
    faults: tuple[Faults, Faults] | None = None,
) -> list[Check]:
    """Check a fix's claim against one run of each version with the same seed.

    Args:
        claim: What the fix promises.
        effect: What it does to gradients.
        before: The original.
        after: The fixed program.
        reference: The original with its graphs kept, for a claim that it raises E1 or E2.
        still: Both with their weights held still, for a claim with ``feeds``.
        faults: What is wrong with the original and with the fixed program, as far as that is known.
    """
    case = _Case(claim, effect, before, after, reference)
    checks = [
        *(case.crashes(*faults) if faults else ()),
        case.original(),
        case.fixed_runs(),
        *case.reached(),
        *case.stepped(),
    ]
    checks += [*case.unchanged(), *case.against_reference()]
    checks += [*case.kept(), *case.once(), *case.meant(), *case.consumes(), *case.feeds(), *case.around()]
    checks += [*case.modes(), *case.clipped(), *case.scheduled(), *case.cleared()]
    if still is not None:
        checks += case.same_loss(still)
    return _doubted([*checks, *case.leaves()], contradiction(before, after, reference))


def contradiction(*recordings: Recording | None) -> str | None:
    """Where one hash stands for two different values in runs with the same seed, in words."""
    found: dict[str, str] = {}
    for recording in recordings:
        for step in recording.steps if recording is not None else ():
            for position, state in enumerate(step.parameters):
                for key, value in ((state.gradient_hash, state.gradient), (state.value_hash, state.value)):
                    # The payload of a NaN is free.
                    if key is None or value is None or not value.finite or not value.numeric:
                        continue
                    if found.setdefault(key, value.digest) != value.digest:
                        assert recording is not None
                        what = recording.parameter(step.optimizer, position)
                        return f"{what} at {step.place} has a hash that stands for other values too"
    return None


def _doubted(checks: list[Check], doubt: str | None) -> list[Check]:
    """The checks, of which those that may rest on hashes say nothing where there is a ``doubt``."""
    if doubt is None:
        return checks
    why = f"{CONTRADICTION}: {doubt}"
    hashed = ("unchanged", "reference")
    kept = [replace(one, verdict="not checked", detail=why) if one.name in hashed else one for one in checks]
    return (
        kept if any(one.name in hashed for one in kept) else [*kept, Check("unchanged", "not checked", why)]
    )


def settled(checks: Sequence[Check], original: Recording, fixed: Recording) -> bool:
    """Whether the checks of one seed leave no question that a number could answer.

    Every check holds, hashes have shown every gradient that every optimizer consumes to be equal, and
    neither Python's nor numpy's random numbers, by which a script may take another turn, were drawn.

    Args:
        checks: The checks.
        original: The run of the original that gets furthest (:func:`longest`).
        fixed: That of the fixed program.
    """
    if not checks or any(one.verdict != "holds" for one in checks):
        return False
    compared = [one for one in checks if one.name in COMPARISONS]
    name = "reference" if any(one.name == "reference" for one in compared) else "unchanged"
    whole = sum(one.name == name for one in compared) == sum(
        bool(original.steps_of(optimizer.index)) for optimizer in original.optimizers
    )
    drawn = {(step.random.python, step.random.numpy) for step in (*original.steps, *fixed.steps)}
    return bool(compared) and whole and all(one.by_hash for one in compared) and len(drawn) == 1


def merge(seeds: Sequence[int], by_seed: Sequence[Sequence[Check]]) -> list[Check]:
    """One list of checks from those of several seeds: what fails on one seed fails."""
    found: dict[tuple[str, str], list[tuple[int, Check]]] = {}
    for seed, checks in zip(seeds, by_seed):
        for one in checks:
            found.setdefault((one.name, one.subject), []).append((seed, one))
    merged = []
    for group in found.values():
        failed = [(seed, one) for seed, one in group if one.verdict == "fails"]
        held = [one for _, one in group if one.verdict == "holds"]
        # A fixed program that has not been seen to run on every seed has not been seen to run.
        if group[0][1].name == "fixed-runs" and len(held) < len(group):
            held = []
        doubted = [one for _, one in group if one.detail.startswith(CONTRADICTION)]
        if doubted:
            merged.append(doubted[0])
        elif failed:
            seed, one = failed[0]
            merged.append(
                replace(one, detail=f"{one.detail} (seed {seed})" if len(seeds) > 1 else one.detail)
            )
        elif held:
            part = f" (on {len(held)} of {len(group)} seeds)" if len(held) < len(group) else ""
            merged.append(replace(held[0], detail=held[0].detail + part))
        else:
            merged.append(next(one for _, one in group if one.verdict == "not checked"))
    return merged


def summary(recording: Recording) -> str:
    """A run in one line: ``raised E1 at line 27 in lossG.backward() after 1 step of optimD``."""
    error = recording.crash or recording.uncaught
    if error is None:
        why = {
            "seconds": ", until its time was spent",
            "killed": f", then {recording.detail}",
            "died": f", then {recording.detail}",
            "values": f", then {recording.detail}",
            "trouble": ", then gradfix's recorder failed",
        }
        return recording.ran() + why.get(recording.ending, "")
    what = error.kind if error.kind != "other" else f"{error.type} ({first_line(error.message)})"
    call = f" in {_backward(error.place.receiver)}" if error.place.receiver else ""
    reached = _until(recording, error).ran()
    return f"raised {what} at {error.place}{call} after " + reached.removeprefix("ran ")


def _backward(receiver: str) -> str:
    """The backward call of an expression, as it is written."""
    with suppress(SyntaxError, ValueError):
        return ast.unparse(ast.parse(f"({receiver}).backward()", mode="eval"))
    return f"{receiver}.backward()"


ENOUGH = 2
"""Steps of each optimizer without which nothing is known of how a program goes on."""


def missed_by(run: Recording, which: str) -> str | None:
    """What a run has not come to that a rewrite changes, in words, given ``which`` program it is."""
    lines = sorted({piece[0] for piece, executed in run.reached.items() if not executed})
    if not lines:
        return None
    what = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    statements = {piece[0] for piece, executed in run.reached.items() if executed} & {*lines}
    part = "a part of " if len(statements) == len(lines) else ""
    return f"{part}{what} of {which}, which the fix changes, did not come to be executed"


def too_few(run: Recording) -> str | None:
    """Why too little is known of an optimizer, if a run has ended by its budget before that stepped twice."""
    if run.ending in ("finished", "error"):
        return None
    for optimizer in run.optimizers:
        count = len(run.steps_of(optimizer.index))
        if count < ENOUGH:
            taken = "takes no step" if not count else "takes only one step"
            return f"{optimizer.name} {taken} in it, so what it trains is not known"
    return None


def wanting(run: Recording) -> bool:
    """Whether a run has not come to all that it was to come to."""
    return missed_by(run, "") is not None or too_few(run) is not None


def same_course(one: Recording, other: Recording) -> bool:
    """Whether two runs of the same program did the same."""
    everything = frozenset(range(len(one.optimizers)))
    courses = _follow(one.steps, one, other, everything, patient=True, stop_at_unlisted=False)
    if any(course.problem for course in courses.values()):
        return False
    return all(_leaves_apart(a.leaves, b.leaves) is None for a, b in zip(one.backwards, other.backwards))


@dataclass(frozen=True, slots=True)
class Followed:
    """How far an optimizer was found to consume equal gradients in two versions."""

    compared: int
    """At how many steps."""
    open: str | None
    """Why that is not known of its other steps, if both versions did take more."""


def follow(one: Recording, other: Recording) -> dict[int, Followed] | str:
    """By optimizer, how far two versions consume equal gradients; or what differs, in words.

    Optimizers are told by the order of their construction. Where the versions have drawn different
    random numbers the comparison ends without a difference.
    """
    if len(one.optimizers) != len(other.optimizers):
        return f"it makes {plural(len(other.optimizers), 'optimizer')}, not {len(one.optimizers)}"
    everything = frozenset(range(len(one.optimizers)))
    courses = _follow(one.steps, one, other, everything, patient=True, stop_at_unlisted=False)
    for index, course in courses.items():
        who = one.optimizers[index].name
        if course.problem is not None:
            return f"gradients of {who} differ: {course.problem}"
        more = len(other.steps_of(index)) - len(one.steps_of(index))
        if one.ending == other.ending == "finished" and more > 0:
            return f"{who} takes {plural(more, 'step')} more"
    found = {}
    for index, course in courses.items():
        common = min(len(one.steps_of(index)), len(other.steps_of(index)))
        found[index] = Followed(course.compared, course.stopped if course.compared < common else None)
    return found


def updates_apart(one: Step, other: Step, *, exact: Collection[int] = ()) -> int | None:
    """The position of a parameter that two steps move differently, though their gradients are equal.

    What was not asked for, or did not come to pass, is not known to differ. Nor is what a gradient does that
    is nothing but rounding: some optimizers take no note of its size. Where all that an optimizer has been
    given for a parameter is equal bit for bit, at the positions ``exact``, what it makes of it must be equal
    but for rounding.
    """
    if one.after is None or other.after is None:
        return None
    overall = _overall(*(state.gradient for step in (one, other) for state in step.parameters))
    for place, (mine, theirs) in enumerate(zip(one.parameters, other.parameters)):
        gradients = [state.gradient for state in (mine, theirs) if state.gradient is not None]
        if place not in exact and any(NOISE * mine.noise > RELATIVE * one.largest for one in gradients):
            continue
        if place not in exact and all(gradient.largest <= RELATIVE * overall for gradient in gradients):
            continue
        a = one.after[place].minus(mine.value)
        b = other.after[place].minus(theirs.value)
        apart, length = math.dist(a, b), max(math.hypot(*a), math.hypot(*b))
        if place in exact and mine.value.exact is not None:
            rounding = 4 * mine.value.norm * (2**-8 if "16" in mine.value.dtype else 2**-24)
            if apart > EXACT * length + rounding:
                return place
        elif not apart <= MOVED * length:
            return place
    return None


@dataclass(frozen=True, slots=True)
class ByHand:
    """How two programs without an optimizer compare."""

    apart: str | None
    """What differs, in words."""
    known: bool = True
    """Whether that is known to be different, or only not known to be equal."""
    calls: int = 0
    """At how many backward calls of the other program they were compared."""
    whole: bool = False
    """Whether these are all that both make."""


def by_hand(one: Recording, other: Recording) -> ByHand:
    """Compare programs without an optimizer: what weights are moved by, and what they come to be.

    How often gradients are computed before weights move is free.
    """
    mine, theirs = _moves(one), _moves(other)
    finished = one.ending == other.ending == "finished"
    calls = 0
    for turn, (a, b) in enumerate(zip(mine, theirs), start=1):
        problem = _weights_apart(a.weights, b.weights) or _given_apart(a.gradients, b.gradients)
        if problem is not None:
            return ByHand(f"at turn {turn}, {problem}")
        calls += b.calls
    if any(
        run.ending == "finished" and len(turns) < len(more)
        for run, turns, more in ((one, mine, theirs), (other, theirs, mine))
    ):
        return ByHand(f"weights move at {plural(len(theirs), 'turn')}, not {len(mine)}")
    if finished and (problem := _weights_apart(one.held, other.held)) is not None:
        return ByHand(f"at the end, {problem}")
    if min(len(mine), len(theirs)) < min(len(mine), 2):
        return ByHand(
            "weights do not move as in the original", known=other.ending in ("finished", "backwards")
        )
    if not mine or (len(mine) < 2 and not finished):
        return ByHand("there is no optimizer, and no gradient to compare", known=False)
    # By numbers, what moves by no more than rounding does not differ from what does not move.
    common = min(len(mine), len(theirs))
    alone = sorted(_moving(one, mine[:common], finished) ^ _moving(other, theirs[:common], finished))
    if alone:
        return ByHand(f"{alone[0]} moves in one version alone, though by no more than rounding", known=False)
    return ByHand(None, calls=calls, whole=finished)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a program without an optimizer does until weights move."""

    weights: dict[str, Values]
    """What the leaves hold until then."""
    gradients: dict[str, Values | None]
    """Their gradients in the end."""
    calls: int
    """How many backward calls it takes."""


def _moves(run: Recording) -> list[_Turn]:
    """What the leaves hold, and the gradients that are computed, each time before any of them moves."""
    found: list[_Turn] = []
    for call in run.backwards:
        last = found[-1] if found else _Turn({}, {}, 0)
        moved = any(
            name in last.weights and last.weights[name].digest != now.digest
            for name, now in call.weights.items()
        )
        if moved or not found:
            found.append(_Turn(dict(call.weights), dict(call.leaves), 1))
        else:
            weights, gradients = {**last.weights, **call.weights}, {**last.gradients, **call.leaves}
            found[-1] = _Turn(weights, gradients, last.calls + 1)
    # A budget may end a run in the middle of a turn.
    return found[:-1] if run.ending != "finished" and len(found) > 1 else found


def _moving(run: Recording, turns: Sequence[_Turn], ended: bool) -> set[str]:
    """The leaves that hold something else at some turn than at the one before."""
    held = [turn.weights for turn in turns] + ([dict(run.held)] if ended else [])
    return {
        name
        for before, after in itertools.pairwise(held)
        for name in before.keys() & after.keys()
        if before[name].digest != after[name].digest
    }


def _weights_apart(one: Mapping[str, Values], other: Mapping[str, Values]) -> str | None:
    """The first leaf of both that holds something else, in words."""
    overall = _overall(*one.values(), *other.values())
    for name in sorted(one.keys() & other.keys()):
        if not _equal(one[name], other[name], overall, RELATIVE):
            return f"{name} differs by {one[name].distance(other[name]):.1e} of its size"
    return None


def _given_apart(one: Mapping[str, Values | None], other: Mapping[str, Values | None]) -> str | None:
    """The first leaf whose gradients differ by more than rounding in the largest of them, in words."""
    overall = _overall(*one.values(), *other.values())

    def of_note(given: Mapping[str, Values | None]) -> dict[str, Values | None]:
        pairs = ((name, (given.get(name), one.get(name), other.get(name))) for name in given)
        return {name: these[0] for name, these in pairs if _overall(*these) > RELATIVE * overall}

    return _leaves_apart(of_note(one), of_note(other))


def same_gradients(one: Mapping[int, Values], other: Mapping[int, Values | None]) -> bool:
    """Whether two sets of gradients, by position, are equal; a missing one may be zero."""
    overall = _overall(*one.values(), *other.values())
    return all(
        _equal(one.get(place), other.get(place), overall, RELATIVE)
        or (_zero(one.get(place)) and _zero(other.get(place)))
        for place in {*one, *other}
    )


def first_line(text: str) -> str:
    """The first line of a message, which may be empty."""
    return text.splitlines()[0] if text else ""


def _until(recording: Recording, error: Failure) -> Recording:
    """The recording up to an error."""
    return replace(recording, events=recording.events[: recording.events.index(error)])


# -- comparing gradients ----------------------------------------------------------------------


@dataclass
class _Course:
    """How far one optimizer's steps were followed, and what came of it."""

    compared: int = 0
    largest: float = 0.0
    """The largest relative difference of gradients that were found equal."""
    problem: str | None = None
    stopped: str | None = None
    """Why later steps were not compared."""
    declared: bool = False
    """Whether they were not compared because the claim says that they differ."""
    hashed: int = 0
    """Gradients that were proved equal by their hashes."""
    measured: int = 0
    """Gradients that were found equal by their numbers."""


@dataclass
class _Comparison:
    """Two steps, gradient by gradient."""

    problem: str | None = None
    """What differs."""
    unknown: str | None = None
    """A gradient that cannot be compared: the hashes differ and there are no numbers."""
    largest: float = 0.0
    """The largest relative difference of gradients that agree."""
    drift: float = 0.0
    """The largest relative difference of the weights."""
    hashed: int = 0
    measured: int = 0


def _equal(
    one: Values | None, other: Values | None, overall: float, relative: float, noise: float = 0.0
) -> bool:
    """Whether two gradients are equal within the tolerance, of which one is known up to some ``noise``."""
    if one is None or other is None:
        return one is other
    apart = one.distance(other)
    scale = max(one.largest, other.largest) if one.exact is not None else max(one.norm, other.norm)
    # What is moved about by its own size is nothing but rounding: that of a bias before a normalization.
    rounding = NOISE * noise if noise >= scale / 2 else min(NOISE * noise, ROUNDED * scale)
    return apart == 0 or apart * scale <= relative * scale + ABSOLUTE * overall + rounding


def _overall(*values: Values | None) -> float:
    return max((value.largest for value in values if value is not None), default=0.0)


def _same_hash(one: str | None, other: str | None) -> bool:
    return one is not None and one == other


def _compare(one: Step, other: Step, name: Recording) -> _Comparison:
    """Compare two steps up to the first gradient that differs."""
    if len(one.parameters) != len(other.parameters):
        return _Comparison("it owns other parameters")
    pairs = list(zip(one.parameters, other.parameters))
    overall = max((_overall(a.gradient, b.gradient) for a, b in pairs), default=0.0)
    drifts = (
        0.0 if _same_hash(a.value_hash, b.value_hash) else a.value.distance(b.value)
        for a, b in pairs
        if a.value.numeric and b.value.numeric
    )
    found = _Comparison(drift=max(drifts, default=0.0))
    relative = max(RELATIVE, min(GROWTH * found.drift, GROWN))
    for position, (a, b) in enumerate(pairs):
        what = name.parameter(one.optimizer, position)
        if a.gradient is None or b.gradient is None:
            if a.gradient is not b.gradient:
                without = "the fixed program" if b.gradient is None else "the original"
                return replace(found, problem=f"{what} has no gradient in {without}")
        elif _same_hash(a.gradient_hash, b.gradient_hash):
            found.hashed += 1
        elif not (a.gradient.numeric and b.gradient.numeric):
            found.unknown = f"the gradient of {what} has another hash, {NO_NUMBERS}"
        else:
            apart = a.gradient.distance(b.gradient)
            if not _equal(a.gradient, b.gradient, overall, relative, max(a.noise, b.noise)):
                return replace(found, problem=f"the gradient of {what} differs by {apart:.1e} of its size")
            found.largest = max(found.largest, apart)
            found.measured += 1
    return found


def _finite(step: Step) -> bool:
    return all(state.gradient is None or state.gradient.finite for state in step.parameters)


def _follow(
    steps: Iterable[Step],
    one: Recording,
    other: Recording,
    listed: frozenset[int],
    *,
    patient: bool,
    stop_at_unlisted: bool,
) -> dict[int, _Course]:
    """Compare the ``steps`` of ``one`` with those of ``other``, each optimizer's k-th with its k-th.

    Unlisted optimizers are only watched: once one consumes something different (with
    ``stop_at_unlisted``: once one steps at all) the weights may differ, and the comparison ends.
    ``patient`` takes a difference for unknown rather than wrong where the two runs have drawn
    different random numbers.
    """
    courses = {index: _Course() for index in listed}
    taken: Counter[int] = Counter()
    exact = True
    for step in steps:
        index, turn = step.optimizer, taken[step.optimizer]
        taken[index] += 1
        mates = other.steps_of(index)
        mate = mates[turn] if turn < len(mates) else None
        if index not in listed:
            name = one.optimizers[index].name
            if stop_at_unlisted:
                return _stopped(courses, f"{name} steps, which the fix changes", declared=True)
            known = None if mate is None else _compare(step, mate, one)
            if known is None or known.problem is not None or known.unknown is not None:
                why = f"{name} consumes something else from here, as the fix declares"
                return _stopped(courses, why, declared=True)
            continue
        course = courses[index]
        if mate is None:
            if other.ending == "finished":
                course.problem = f"{plural(len(mates), 'step')} in the fixed program, more in the original"
            else:
                course.stopped = "the fixed program's run ended"
            continue
        if not _finite(step) and not _same_digests(step, mate):
            return _stopped(courses, "the original's gradients are not finite")
        found = _compare(step, mate, one)
        problem, largest, drift = found.problem, found.largest, found.drift
        if problem is None and found.unknown is not None:
            return _stopped(courses, found.unknown)
        if problem is None and exact and drift > GROWN:
            problem = f"the weights differ by {drift:.1e} of their size although all gradients were equal"
        if problem is None and drift > GROWN:
            return _stopped(courses, f"rounding has moved the weights apart by {drift:.1e} of their size")
        if problem is not None:
            if patient and step.random != mate.random:
                return _stopped(courses, "the two versions have drawn different random numbers")
            course.problem = f"at step {turn + 1}, {problem}"
            return _stopped(courses, f"{one.optimizers[index].name} differs from here")
        exact = exact and largest == 0
        course.compared += 1
        course.largest = max(course.largest, largest)
        course.hashed += found.hashed
        course.measured += found.measured
    return courses


def _same_digests(one: Step, other: Step) -> bool:
    def digests(step: Step) -> list[str | None]:
        return [state.gradient.digest if state.gradient else None for state in step.parameters]

    return digests(one) == digests(other)


def _stopped(courses: dict[int, _Course], why: str, *, declared: bool = False) -> dict[int, _Course]:
    for course in courses.values():
        if course.stopped is None:
            course.stopped, course.declared = why, declared
    return courses


def _leaves_apart(one: Mapping[str, Values | None], other: Mapping[str, Values | None]) -> str | None:
    """The first leaf whose gradients differ, in words; ``None`` if all are equal."""
    overall = _overall(*one.values(), *other.values())
    for name in [*one, *(name for name in other if name not in one)]:
        a, b = one.get(name), other.get(name)
        if _equal(a, b, overall, RELATIVE):
            continue
        if a is None or b is None:
            return f"{name} has no gradient in {'the original' if a is None else 'the fixed program'}"
        return f"the gradient of {name} differs by {a.distance(b):.1e} of its size"
    return None


# -- comparing what surrounds them ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How the random draws and the buffers of two versions compare, step for step."""

    compared: int
    """Steps at which they were compared."""
    stopped: str | None
    """Why later ones were not."""
    random_from: str | None
    """The first step at which a random generator is in another state, for people."""
    generators: tuple[str, ...]
    """The generators of which that is true (see :class:`Draws`)."""
    buffers_from: str | None
    """The first step at which a buffer holds something else, for people."""
    buffers: tuple[str, ...]
    """The buffers that do so there."""
    buffers_compared: int
    """How many buffers both versions have."""
    buffers_unknown: bool
    """Whether some buffers have other hashes, and there are no values."""


def longest(before: Recording, reference: Recording | None) -> Recording:
    """The run of the original that gets furthest."""
    return reference if reference is not None and reference.steps else before


def surroundings(one: Recording, other: Recording) -> Surroundings:
    """Compare the random draws and the buffers at the steps that two versions take.

    Each optimizer's k-th step is held against its k-th. Once two of them consume different gradients the
    weights differ, and with them what a forward makes of the buffers: there the comparison ends. Versions
    that construct different optimizers are not compared.
    """
    taken: Counter[int] = Counter()
    compared = known = 0
    stopped = random_from = buffers_from = None
    generators: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    unknown = False
    for step in one.steps if len(one.optimizers) == len(other.optimizers) else ():
        turn = taken[step.optimizer]
        taken[step.optimizer] += 1
        mates = other.steps_of(step.optimizer)
        if turn >= len(mates):
            break
        mate = mates[turn]
        here = f"step {turn + 1} of {one.optimizers[step.optimizer].name}"
        found = _compare(step, mate, one)
        if random_from is None and (generators := step.random.apart(mate.random)):
            random_from = here
        if found.drift > GROWN:
            # Steps of another size have moved them: what a forward has made of the buffers is another thing.
            compared += 1
            stopped = f"from {here} on the weights differ"
            break
        if buffers_from is None:
            known = max(known, len(step.buffers.keys() & mate.buffers.keys()))
            buffers, unclear = _buffers_apart(step, mate, found.drift)
            unknown = unknown or unclear
            buffers_from = here if buffers else None
        compared += 1
        if found.problem is not None or found.unknown is not None:
            stopped = f"from {here} on the weights differ"
            break
    return Surroundings(compared, stopped, random_from, generators, buffers_from, buffers, known, unknown)


def _buffers_apart(one: Step, other: Step, drift: float) -> tuple[tuple[str, ...], bool]:
    """The buffers that hold something else, and whether that cannot be told of some.

    Whole numbers (how many batches were seen) have to be equal; others within the tolerance for gradients.
    """
    pairs = [
        (name, value, other.buffers[name]) for name, value in one.buffers.items() if name in other.buffers
    ]
    fractions = [value for _, *both in pairs for value in both if "float" in value.dtype]
    overall = _overall(*(value for value in fractions if value.finite))
    relative = max(RELATIVE, min(GROWTH * drift, GROWN))
    apart = []
    unclear = False
    for name, a, b in pairs:
        if a.digest == b.digest:
            continue
        if not (a.numeric and b.numeric):
            unclear = True
        elif "float" not in a.dtype or not _equal(a, b, overall, relative):
            apart.append(name)
    return tuple(apart), unclear


# -- in words ---------------------------------------------------------------------------------


def _agreement(course: _Course) -> str:
    apart = "max difference 0" if course.largest == 0 else f"max relative difference {course.largest:.1e}"
    if not course.hashed:
        return apart
    if not course.measured:
        return f"{apart}, {_all(course.hashed)} proved by hash"
    every = course.hashed + course.measured
    return f"{apart}, {course.hashed} of {every} gradients proved by hash, {course.measured} by numbers"


def _all(count: int) -> str:
    return "the 1 gradient" if count == 1 else f"all {count} gradients"


# -- the checks -------------------------------------------------------------------------------


class _Case:
    """One claim and the recordings to check it against."""

    def __init__(
        self, claim: Claim, effect: Effect, before: Recording, after: Recording, reference: Recording | None
    ) -> None:
        self.claim = claim
        self.effect = effect
        self.before = before
        self.after = after
        self.reference = reference
        # Optimizers that the original did not live to construct are known from the reference.
        self.known = max(
            (before, *([reference] if reference else [])), key=lambda recording: len(recording.optimizers)
        )
        self.listed = (
            frozenset(range(len(self.known.optimizers)))
            if claim.unchanged == "all"
            else frozenset(index for line in claim.unchanged for index in self.constructed_at(line))
        )

    def constructed_at(self, line: int) -> list[int]:
        """The optimizers constructed on a line of the original."""
        return [o.index for o in self.known.optimizers if not o.place.file and o.place.covers(line)]

    def original(self) -> Check:
        """Whether the original does what was predicted."""
        claim, crash, name = self.claim, self.before.crash, "original"
        if claim.raises is not None:
            predicted = f"{claim.raises} at line {claim.raises_line}" if claim.raises_line else claim.raises
            if crash is None:
                if self.before.ending == "finished":
                    return Check(name, "fails", f"the original runs; predicted was {predicted}")
                return Check(name, "not checked", f"the original did not get as far as {predicted}")
            where = claim.raises_line is None or crash.place.covers(claim.raises_line)
            if crash.kind == claim.raises and where:
                return Check(
                    name, "holds", f"the original raises {crash.kind} at {crash.place}, as predicted"
                )
            kind = crash.kind if crash.kind != "other" else f"{crash.type} ({first_line(crash.message)})"
            # Of two calls that would raise, which comes first says nothing about the repair.
            detail = f"the original raises {kind} at {crash.place}; predicted was {predicted}"
            return Check(name, "not checked", detail)
        if crash is not None:
            detail = f"the original raises {crash.kind} at {crash.place}, which is another fault"
            return Check(name, "not checked", detail)
        if claim.stops is not None:
            return self._stopped_by(claim.stops)
        if self.effect is Effect.REPAIRS:
            idle = [step for step in self.before.steps if not step.consumes]
            if not idle:
                return Check(
                    name, "fails", "every step of the original consumes a gradient, and nothing raises"
                )
            who = self.before.optimizers[idle[0].optimizer].name
            return Check(
                name, "holds", f"the original runs, and a step of {who} consumes nothing, as predicted"
            )
        return Check(name, "holds", "the original runs, as predicted")

    def _stopped_by(self, text: str) -> Check:
        """Whether the original ends by an error that says ``text``, as predicted."""
        error = self.before.uncaught
        if error is None or text not in error.message:
            return Check("original", "not checked", f"the original does not raise here: {text}")
        return Check("original", "holds", f"the original raises {error.type} at {error.place}, as predicted")

    def crashes(self, original: Faults, fixed: Faults) -> list[Check]:
        """Whether autograd stops a version for what nobody has found."""
        for run, faults, which in (
            (self.before, original, "the original"),
            (self.after, fixed, "the fixed program"),
        ):
            error = run.crash
            if error is None or faults.explain(error):
                continue
            if run is self.before and error.kind == self.claim.raises:
                continue
            what = error.kind if error.kind != "other" else f"{error.type} ({first_line(error.message)})"
            detail = f"{which} raises {what} at {error.place}, which no finding explains"
            return [Check("crash", "not checked", detail)]
        return []

    # -- the fixed program

    def fixed_runs(self) -> Check:
        """Whether the fixed program gets past the place where the original stops."""
        name, before, after = "fixed-runs", self.before, self.after
        error = after.crash or after.uncaught
        if error is None:
            if after.ending == "trouble":
                return Check(name, "not checked", f"gradfix's recorder failed: {after.detail.strip()[-200:]}")
            if after.ending == "died" and (before.ending, before.detail) != (after.ending, after.detail):
                return Check(name, "fails", f"the fixed program {after.ran()}, then {after.detail}")
            if after.ending in ("seconds", "killed", "values") and not self.further():
                why = f", then {after.detail}" if after.ending == "values" else " before its time was spent"
                return Check(name, "not checked", f"the fixed program {after.ran()}{why}")
            return Check(name, "holds", f"the fixed program {after.ran()}")
        what = error.kind if error.kind != "other" else f"{error.type} ({first_line(error.message)})"
        reached = _until(after, error).ran()
        stops = f"the fixed program {reached}, then raises {what} at {error.place}"
        originals = [r for r in (before, self.reference) if r is not None]
        as_before = any(
            known.same_as(error) and self.same_place(known, error)
            for recording in originals
            for known in (recording.crash, recording.uncaught)
            if known is not None and not (recording is before and known is before.crash and self.claim.raises)
        )
        if as_before:
            return Check(name, "holds" if error.autograd else "not checked", f"{stops}, as the original does")
        if before.crash is None or not self.further():
            return Check(name, "fails", stops)
        if error.autograd:
            if self.same_place(before.crash, error):
                return Check(name, "fails", f"{stops}, where the original did")
            return Check(name, "holds", f"as far as {error.place}: {stops}, which is another fault")
        if error.type in ("FileNotFoundError", "ModuleNotFoundError", "PermissionError", "SystemExit"):
            return Check(name, "not checked", stops)
        return Check(name, "fails", stops)

    def reached(self) -> list[Check]:
        """Whether both programs have come to what the rewrite changes."""
        original = longest(self.before, self.reference)
        missed = missed_by(self.after, "the fixed program")
        if missed is None and original.crash is None and original.uncaught is None:
            missed = missed_by(original, "the original")
        if missed is not None:
            return [Check("reached", "not checked", missed)]
        watched = self.after.reached
        if not watched:
            return []
        which = "what was changed, and what uses it," if len(watched) > 1 else "the changed statement"
        return [Check("reached", "holds", f"{which} was executed")]

    def stepped(self) -> list[Check]:
        """Whether every optimizer has stepped twice in both programs, unless they end by themselves."""
        original = longest(self.before, self.reference)
        runs = [(self.after, "the fixed program")]
        if original.crash is None and original.uncaught is None:
            runs.append((original, "the original"))
        for run, which in runs:
            why = too_few(run)
            if why is not None:
                return [Check("stepped", "not checked", f"{which} {run.ran()}: {why}")]
        once = [one.name for one in self.after.optimizers if len(self.after.steps_of(one.index)) == 1]
        if once and self.after.ending == "finished":
            return [
                Check("stepped", "holds", f"the fixed program ends by itself after one step of {once[0]}")
            ]
        return []

    def further(self) -> bool:
        """Whether the fixed program got further than the original before anything was raised."""

        def progress(recording: Recording) -> tuple[int, int]:
            error = recording.crash or recording.uncaught
            reached = _until(recording, error) if error else recording
            return len(reached.steps), len(reached.backwards)

        return progress(self.after) > progress(self.before)

    def same_place(self, original: Failure, fixed: Failure) -> bool:
        """Whether two errors come from the same statement, though lines may have moved."""
        if original.place.line is None or fixed.place.line is None:
            return (original.place.file, original.place.file_line) == (
                fixed.place.file,
                fixed.place.file_line,
            )
        lines = [source.splitlines() for source in (self.before.source, self.after.source)]
        matcher = difflib.SequenceMatcher(None, lines[0], lines[1], autojunk=False)
        for tag, start, end, first, last in matcher.get_opcodes():
            if start < original.place.line <= end:
                if tag == "equal" or end - start == last - first:
                    return fixed.place.covers(original.place.line - start + first)
                if tag == "replace":
                    return any(fixed.place.covers(line) for line in range(first + 1, last + 1))
        # The statement was moved or removed: what it differentiated still tells.
        return original.place.receiver is not None and original.place.receiver == fixed.place.receiver

    # -- what optimizers consume

    def unchanged(self) -> list[Check]:
        """Whether the listed optimizers consume the same, as far as the original gets."""
        steps = [event for event in self.before.until_crash if isinstance(event, Step)]
        courses = _follow(
            steps,
            self.before,
            self.after,
            self.listed,
            patient=self.effect is not Effect.PRESERVES,
            stop_at_unlisted=self.effect is Effect.CHANGES,
        )
        checks = []
        for index, course in sorted(courses.items()):
            if not any(step.optimizer == index for step in steps):
                continue
            if course.declared and not course.compared and not course.problem:
                continue
            count = len(self.after.steps_of(index)) - len(self.before.steps_of(index))
            if self.effect is Effect.PRESERVES and self.before.ending == "finished" and count > 0:
                course.problem = course.problem or f"{plural(count, 'step')} more in the fixed program"
            crash = " before the crash" if self.before.crash else ""
            checks.append(self._verdict("unchanged", self.before, index, course, crash))
        return checks

    def against_reference(self) -> list[Check]:
        """Whether the fixed program consumes what the original's own graphs hold."""
        reference = self.reference
        if reference is None:
            return []
        crash = self.before.crash
        passed = [event for event in self.before.until_crash if isinstance(event, Step)]
        beyond = reference.steps[len(passed) :]
        if crash is None or not beyond:
            why = f"it {summary(reference)}" if reference.optimizers else "there is no optimizer"
            return [Check("reference", "not checked", f"the original with its graphs kept is no help: {why}")]
        courses = _follow(
            reference.steps, reference, self.after, self.listed, patient=True, stop_at_unlisted=False
        )
        loose = self.listed & self.declared().keys() if self.claim.unchanged == "all" else frozenset()
        loose = loose | self.untangled() if self.claim.beyond else self.listed
        for index in loose:
            course = courses.get(index)  # None where neither run has stepped it.
            if course is not None and course.problem is not None:
                course.stopped, course.problem = f"it may differ, and does: {course.problem}", None
        checks = [
            self._verdict("reference", reference, index, course, " from the original with its graphs kept")
            for index, course in sorted(courses.items())
            if reference.steps_of(index)
        ]
        return checks + self._first_beyond(reference, passed, beyond[0])

    def _first_beyond(self, reference: Recording, passed: Sequence[Step], step: Step) -> list[Check]:
        """How the first step after the crash compares, if its optimizer may change."""
        index = step.optimizer
        if index in self.listed:
            return []
        turn = sum(earlier.optimizer == index for earlier in passed)
        mates = self.after.steps_of(index)
        who = reference.optimizers[index].name
        if turn >= len(mates):
            return []
        found = _compare(step, mates[turn], reference)
        problem = found.problem or found.unknown
        if problem is None:
            how = _agreement(_Course(1, found.largest, hashed=found.hashed, measured=found.measured))
            detail = (
                f"the first step of {who} after the crash consumes what the original's graph holds ({how})"
            )
            return [Check("reference", "holds", detail, who)]
        detail = f"the first step of {who} after the crash may differ from the original's graph, and does"
        return [Check("reference", "not checked", f"{detail}: {problem}", who)]

    def _verdict(self, name: str, one: Recording, index: int, course: _Course, where: str) -> Check:
        who = one.optimizers[index].name
        if course.problem is not None:
            return Check(name, "fails", f"gradients of {who} differ{where}: {course.problem}", who)
        if not course.compared:
            return Check(name, "not checked", f"gradients of {who}: {course.stopped}", who)
        of = "the 1 step" if course.compared == 1 else f"{course.compared} steps"
        rest = f"; then {course.stopped}" if course.stopped else ""
        if name == "reference":
            detail = f"gradients of {who} equal those of the original with its graphs kept at {of}"
        else:
            detail = f"gradients of {who} equal at {of}{where}"
        detail += f" ({_agreement(course)}){rest}"
        return Check(name, "holds", detail, who, not course.measured and course.stopped is None)

    def kept(self) -> list[Check]:
        """Whether every parameter that had a gradient still gets one."""
        original = longest(self.before, self.reference)
        calls = {call.place.receiver for call in original.backwards}
        # Where the fix itself makes the declared loss (a sum, say), the original knows none of that name.
        declared = {index: wanted for index, wanted in self.declared().items() if wanted & calls}
        lost = []
        looked = 0
        for optimizer in original.optimizers:
            index = optimizer.index
            pairs = list(zip(original.steps_of(index), self.after.steps_of(index)))
            for position in range(min((len(s.parameters) for pair in pairs for s in pair), default=0)):
                states = [step.parameters[position] for step, _ in pairs]
                # A gradient that only leaked in from a loss that is not this optimizer's may go.
                owed = any(
                    state.moves
                    and (index not in declared or declared[index] & original.receivers(state.feeds))
                    for state in states
                )
                looked += owed
                # Without what had leaked in, the gradient that is left may be exactly zero for one of them
                # (the last bias of a critic that scores two batches), but not for all.
                after = [step.parameters[position] for _, step in pairs]
                if self.effect is Effect.CHANGES:
                    alive = any(state.moves for _, step in pairs for state in step.parameters)
                    kept = alive and any(state.gradient is not None for state in after)
                else:
                    kept = any(state.moves for state in after)
                if owed and not kept:
                    lost.append(original.parameter(index, position))
        if lost:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            return [Check("kept", "fails", f"{lost[0]}{more} no longer gets a gradient")]
        if not looked:
            return []
        return [Check("kept", "holds", f"{plural(looked, 'parameter')} with a gradient still get one")]

    def once(self) -> list[Check]:
        """Whether no step of the fixed program consumes a loss twice, unless the original's do."""
        if self.after.ledger is None or not self.after.ledger.steps:
            return []
        known = self.before.ledger.doubled() if self.before.ledger is not None else ()
        excused = {tuple(call.loss for call in one.calls) for one in known}
        for one in self.after.ledger.doubled():
            losses = tuple(call.loss for call in one.calls)
            if losses not in excused:
                who = self.after.optimizers[one.step.optimizer].name
                how = "is backpropagated twice" if len(losses) > 1 else f"adds one term {one.count} times"
                detail = f"step {one.step.turn + 1} of {who} consumes one loss {one.count} times"
                counts = f"{losses[-1]} {how}, so its gradient counts {_times(one.count)}"
                return [Check("once", "fails", f"{detail}: {counts}")]
        return [Check("once", "holds", f"{_each(len(self.after.steps))} consumes each loss once")]

    def meant(self) -> list[Check]:
        """Whether losses that the fixed program consumes together are meant to be."""
        if self.effect is Effect.PRESERVES or self.after.ledger is None:
            return []
        known = intent.doubts(self.before.ledger) if self.before.ledger is not None else ()
        excused = {(doubt.first.loss, doubt.second.loss) for doubt in known}
        # What is summed is one loss: of the original with its graphs kept, they are two.
        original = self.reference.ledger if self.reference is not None else None
        undecided = [one for one in intent.doubts(original) if one.leaking is None] if original else []
        for doubt in [*intent.doubts(self.after.ledger), *undecided]:
            if (doubt.first.loss, doubt.second.loss) not in excused:
                what = " and ".join(sorted({self._names(one) for one in doubt.shared})[:2])
                detail = f"{what} consumes {doubt.first.loss} and {doubt.second.loss}, and "
                unsure = f"whether both are meant for it is not certain: {doubt.reason}"
                return [Check("meant", "not checked", detail + unsure)]
        for doubt in intent.doubts(original) if original else ():
            if doubt.leaking is not None and intent.leaks_still(doubt, self.after.ledger):
                detail = f"{doubt.leaking.loss} still trains what {doubt.other.loss} trains: {doubt.reason}"
                return [Check("meant", "not checked", detail)]
        return []

    def _names(self, parameter: object) -> str:
        """The optimizer that owns a parameter."""
        assert isinstance(parameter, tuple)
        return self.after.optimizers[parameter[0]].name

    def consumes(self) -> list[Check]:
        """Whether every step of the fixed program finds a gradient."""
        original = self.reference or self.before
        promised = self.effect is Effect.REPAIRS and self.claim.raises is None
        taken: Counter[int] = Counter()
        excused = None
        for step in self.after.steps:
            index, turn = step.optimizer, taken[step.optimizer]
            taken[index] += 1
            if step.consumes:
                continue
            who = self.after.optimizers[index].name
            detail = f"step {turn + 1} of {who} consumes nothing"
            steps = original.steps_of(index) if index < len(original.optimizers) else ()
            if promised or turn >= len(steps) or steps[turn].consumes:
                return [Check("consumes", "fails", detail)]
            excused = f"{detail}, as in the original"
        if excused is not None:
            return [Check("consumes", "not checked", excused)]
        if not taken:
            return []
        return [Check("consumes", "holds", f"{_each(taken.total())} consumes a gradient")]

    def declared(self) -> dict[int, frozenset[str | None]]:
        """By optimizer, what the backward calls that feed it differentiate."""
        found: dict[int, frozenset[str | None]] = {}
        for line, receiver in self.claim.feeds:
            for index in self.constructed_at(line):
                found[index] = found.get(index, frozenset()) | {_normal(receiver)}
        for line in {line for line, _ in self.claim.feeds}:
            sharing = self.constructed_at(line)
            for index in sharing if len(sharing) > 1 else ():
                # The line names them all, so each may consume a part of what is declared for it.
                steps = self.after.steps_of(index)
                feeds = {feed for step in steps for state in step.parameters for feed in state.feeds}
                found[index] = found[index] & self.after.receivers(sorted(feeds)) or found[index]
        return found

    def modes(self) -> list[Check]:
        """Whether the networks train in the modes in which training began, as the claim may say."""
        if not self.claim.steady_modes:
            return []
        if _other_mode(self.before) is None:
            return [Check("modes", "not checked", "the original's steps find the networks in one mode, too")]
        other = _other_mode(self.after)
        if other is not None:
            return [Check("modes", "fails", f"{other} in another mode than the first step did")]
        detail = f"{_each(len(self.after.steps))} finds the networks in the mode that the first one found"
        return [Check("modes", "holds", detail)]

    def clipped(self) -> list[Check]:
        """Whether optimizers consume clipped gradients, and in the original others, as the claim may say."""
        named = {index: None for line in self.claim.clips for index in self.constructed_at(line)}
        return [self._shorter(index) for index in named]

    def _shorter(self, index: int) -> Check:
        who = self.known.optimizers[index].name
        taken: Counter[int] = Counter()
        for one in self.before.steps:
            turn, mates = taken[one.optimizer], self.after.steps_of(one.optimizer)
            taken[one.optimizer] += 1
            if turn >= len(mates):
                break
            other = mates[turn]
            compared = _compare(one, other, self.before)
            if compared.problem is None and compared.unknown is None and compared.drift == 0:
                continue
            if one.optimizer != index or compared.unknown is not None or compared.drift > 0:
                why = f"other weights have moved before {who} differs"
                return Check("clipped", "not checked", why, who)
            lengths = [
                (a.gradient.norm, b.gradient.norm)
                for a, b in zip(one.parameters, other.parameters)
                if a.gradient is not None and b.gradient is not None
            ]
            before, after = (math.hypot(*norms) for norms in zip(*lengths)) if lengths else (0.0, 0.0)
            if after < before and all(b <= a * (1 + RELATIVE) for a, b in lengths):
                what = f"step {turn + 1} of {who} consumes a gradient of norm {after:.3g}"
                what += f", clipped from {before:.3g}"
                return Check("clipped", "holds", what, who)
            detail = (
                f"step {turn + 1} of {who} consumes another gradient than the original's, and no shorter one"
            )
            return Check("clipped", "fails", detail, who)
        return Check("clipped", "not checked", f"no gradient of {who} is above the bound in this run", who)

    def scheduled(self) -> list[Check]:
        """Whether the options of optimizers change later than in the original, as the claim may say."""
        named = {index: None for line in self.claim.schedules for index in self.constructed_at(line)}
        return [self._later(index) for index in named]

    def _later(self, index: int) -> Check:
        who = self.known.optimizers[index].name
        before, after = ([step.settings for step in run.steps_of(index)] for run in (self.before, self.after))
        same = before[: len(after)] == after[: len(before)]
        if same and len({*before, *after}) < 2:
            return Check("scheduled", "not checked", f"the options of {who} do not change in this run", who)
        for late in range(1, 1 if same else len(after)):
            common = min(len(before), len(after) - late)
            if len(set(after[:late])) == 1 and after[late : late + common] == before[:common]:
                what = f"the options of {who} are at each step what they were {plural(late, 'step')} earlier"
                return Check("scheduled", "holds", what, who)
        detail = f"the options of {who} do not change one move later than in the original"
        return Check("scheduled", "fails", detail, who)

    def cleared(self) -> list[Check]:
        """Whether gradients are no longer added to those of earlier passes, as the claim may say."""
        if not self.claim.clears:
            return []
        if self.known.optimizers:
            detail = "beside optimizers, gradients of what none of them owns are not recorded"
            return [Check("cleared", "not checked", detail)]
        earlier: Mapping[str, Values | None] = {}
        for one, other in zip(self.before.backwards, self.after.backwards):
            if _leaves_apart(one.leaves, other.leaves) is None:
                earlier = one.leaves
                continue
            fresh = {name: _less(value, earlier.get(name)) for name, value in one.leaves.items()}
            wrong = _leaves_apart(fresh, other.leaves)
            if wrong is not None:
                return [Check("cleared", "fails", f"not the gradients of one pass alone: {wrong}")]
            what = (
                f"after backward call {one.index + 1}, leaf gradients are the original's less what was there"
            )
            return [Check("cleared", "holds", f"{what} before")]
        return [Check("cleared", "not checked", "no gradient is added to another in this run")]

    def feeds(self) -> list[Check]:
        """Whether each step consumes gradients of exactly the declared backward calls."""
        declared = self.declared()
        checks = [
            Check(
                "feeds", "not checked", f"the optimizer of line {line} was never constructed", f"line {line}"
            )
            for line in dict.fromkeys(line for line, _ in self.claim.feeds)
            if not self.constructed_at(line)
        ]
        return checks + [self._fed(index, wanted) for index, wanted in sorted(declared.items())]

    def _fed(self, index: int, wanted: frozenset[str | None]) -> Check:
        who = self.known.optimizers[index].name
        words = " and ".join(sorted(str(receiver) for receiver in wanted))
        steps = self.after.steps_of(index)
        if not steps:
            ended = self.after.ending == "finished"
            return Check("feeds", "fails" if ended else "not checked", f"{who} takes no step", who)
        for turn, step in enumerate(steps):
            feeds = sorted({feed for state in step.parameters for feed in state.feeds})
            found = self.after.receivers(feeds)
            if BY_HAND in feeds:
                return Check("feeds", "not checked", f"gradients of {who} are assigned by hand", who)
            if None in found:
                return Check("feeds", "not checked", f"what feeds {who} cannot be read from the source", who)
            if found != wanted:
                fed = " and ".join(sorted(str(receiver) for receiver in found)) or "nothing"
                detail = f"step {turn + 1} of {who} consumes gradients of {fed}, not of {words}"
                return Check("feeds", "fails", detail, who)
        if leftover(steps) and (
            self.effect is Effect.CHANGES or not leftover((self.reference or self.before).steps_of(index))
        ):
            return Check("feeds", "fails", f"{who} consumes gradients that it had already consumed", who)
        return Check("feeds", "holds", f"{_each(len(steps))} of {who} consumes {words} only", who)

    def same_loss(self, still: Still) -> list[Check]:
        """Whether a declared loss gives its optimizer what the original's own graph gives it."""
        checks = []
        for index, receivers in sorted(self.declared().items()):
            for receiver in sorted(str(receiver) for receiver in receivers):
                checks.append(self._same_loss(still, index, receiver))
        return checks

    def _same_loss(self, still: Still, index: int, receiver: str) -> Check:
        who = self.known.optimizers[index].name
        turn = _turn(still.after, receiver, index)
        one, other = (_loss(recording, receiver, index, turn) for recording in (still.reference, still.after))

        def verdict(what: Verdict, detail: str) -> Check:
            return Check(
                "same-loss", what, f"{receiver} for {who}, weights held still: {detail}", f"{who} {receiver}"
            )

        if one is None or other is None:
            return verdict(
                "not checked", f"no backward call in {'the original' if one is None else 'the fix'}"
            )
        broken = self.effect is Effect.REPAIRS and self.claim.raises in ("E1", "E2")
        if not one.value.distance(other.value) <= RELATIVE:
            # Of losses that share a name, each may be differentiated at another's place.
            alone = sum(receiver in names for names in self.declared().values()) == 1
            if broken and alone and self.claim.same_forwards and self._draws_alike(still):
                return verdict("fails", "it has another value, though the fix computes what the original did")
            return verdict("not checked", "it has another value (random draws, or state that moves)")
        overall = _overall(*one.shares.values(), *other.shares.values())
        if all(value.zero for value in one.shares.values()):
            return verdict("not checked", "the original gives it nothing")
        largest, cut = 0.0, False
        for position in sorted({*one.shares, *other.shares}):
            a, b = one.shares.get(position), other.shares.get(position)
            noise = one.noise.get(position, 0.0)
            if _equal(a, b, overall, RELATIVE, noise) or (_zero(a) and _zero(b)):
                largest = max(largest, a.distance(b) if a and b else 0.0)
                continue
            if self.cut_rightly(receiver, (index, position)):
                cut = True
                continue
            name = self.known.parameter(index, position)
            detail = f"the same loss, but another gradient of {name} than the original's own graph holds"
            return verdict("fails" if broken else "not checked", detail)
        how = _agreement(_Course(largest=largest))
        but = ", but for what leaked into what another loss trains" if cut else ""
        return verdict("holds", f"the gradient that the original's own graph holds ({how}){but}")

    def _draws_alike(self, still: Still) -> bool:
        """Whether both versions have drawn the same random numbers at every step that they share."""
        found = surroundings(still.reference, still.after)
        return bool(found.compared) and found.random_from is None

    def untangled(self) -> frozenset[int]:
        """The optimizers into whose parameters a loss for another one had leaked, and does no more."""
        original, fixed = longest(self.before, self.reference).ledger, self.after.ledger
        if original is None or fixed is None:
            return frozenset()
        left = {(one.first.loss, one.second.loss) for one in intent.doubts(fixed)}
        return frozenset(
            parameter[0]
            for one in intent.doubts(original)
            if one.leaking is not None and (one.first.loss, one.second.loss) not in left
            for parameter in one.shared
            if isinstance(parameter, tuple)
        )

    def cut_rightly(self, receiver: str, parameter: tuple[int, int]) -> bool:
        """Whether a loss leaked into what another one trains, and leaks no more."""
        original = longest(self.before, self.reference).ledger
        if original is None or self.after.ledger is None:
            return False
        return intent.cut_rightly(original, self.after.ledger, receiver, parameter)

    # -- what surrounds the gradients

    def around(self) -> list[Check]:
        """Whether random draws and buffers are the same, or the claim says that they may differ."""
        found = surroundings(longest(self.before, self.reference), self.after)
        if not found.compared:
            return []
        checks = [self._part("random", "random numbers", found, found.random_from, found.generators)]
        if found.buffers_unknown and not found.buffers_from:
            why = f"buffers: their hashes differ, {NO_NUMBERS}"
            checks.append(Check("buffers", "not checked", why))
        elif found.buffers_compared:
            what = plural(found.buffers_compared, "buffer")
            checks.append(self._part("buffers", what, found, found.buffers_from, found.buffers))
        return checks

    def _part(
        self, name: str, what: str, found: Surroundings, where: str | None, which: Sequence[str]
    ) -> Check:
        """The verdict on one of them, given ``where`` the versions part and in ``which``."""
        if where is None:
            at = "the 1 step" if found.compared == 1 else f"{found.compared} steps"
            rest = f"; {found.stopped}" if found.stopped else ""
            return Check(name, "holds", f"{what} the same at {at}{rest}")
        more = f" and {len(which) - 3} more" if len(which) > 3 else ""
        detail = f"{what} differ from {where} on ({', '.join(which[:3])}{more})"
        if self.claim.same_forwards:
            return Check(name, "fails", f"{detail}, though networks are said to run as before")
        return Check(
            name, "holds", f"{detail}: the fix runs a network again, or at another time, as it declares"
        )

    # -- programs without an optimizer

    def leaves(self) -> list[Check]:
        """Whether leaf gradients stay equal in a program without an optimizer."""
        if self.known.optimizers or self.claim.unchanged != "all":
            return []
        checks = []
        compared = 0
        still = self.never_moved()
        for a, b in zip(self.before.backwards, self.after.backwards):
            if a.place.receiver != b.place.receiver:
                break
            owed = {name: value for name, value in a.leaves.items() if name not in still or name in b.leaves}
            problem = _leaves_apart(owed, b.leaves)
            if problem:
                return [Check("leaves", "fails", f"after backward call {a.index + 1}, {problem}")]
            compared += 1
        if compared:
            of = plural(compared, "backward call")
            checks.append(Check("leaves", "holds", f"leaf gradients equal after {of}"))
        original = self.reference or self.before
        if original.ending == self.after.ending == "finished":
            owed = {name: value for name, value in original.leaves.items() if name not in still}
            problem = _leaves_apart(owed, {n: v for n, v in self.after.leaves.items() if n not in still})
            kept = " of the original with its graphs kept" if self.reference else ""
            if problem:
                checks.append(Check("leaves", "fails", f"at the end, {problem}", "end"))
            elif original.leaves:
                checks.append(Check("leaves", "holds", f"leaf gradients at the end equal those{kept}", "end"))
        return checks

    def never_moved(self) -> set[str]:
        """The leaves that hold the same all through the original, while others are moved: data, not weights.

        Nobody consumes the gradients of one.
        """
        held = [dict(call.weights) for call in self.before.backwards] + [dict(self.before.held)]
        moved = {
            name
            for one, other in itertools.pairwise(held)
            for name in one.keys() & other.keys()
            if one[name].digest != other[name].digest
        }
        return {name for each in held for name in each} - moved if moved else set()


def _less(one: Values | None, other: Values | None) -> Values | None:
    """``one - other``, where both are there."""
    return one if one is None or other is None else one.plus(other.times(-1.0))


def _other_mode(run: Recording) -> str | None:
    """The first step that finds a network's settings changed since its optimizer's first step, in words."""
    first: dict[int, Mapping[str, str]] = {}
    turns: Counter[int] = Counter()
    for step in run.steps:
        known = first.setdefault(step.optimizer, step.modules)
        turns[step.optimizer] += 1
        changed = next((name for name, settings in known.items() if step.modules.get(name) != settings), None)
        if changed is not None:
            return f"step {turns[step.optimizer]} of {run.optimizers[step.optimizer].name} finds {changed}"
    return None


def _times(count: int) -> str:
    return "double" if count == 2 else f"{count} times"


def _each(count: int) -> str:
    return "the only step" if count == 1 else f"each of {count} steps"


@dataclass(frozen=True, slots=True)
class _Loss:
    """What was differentiated, and what that gave each parameter of one optimizer."""

    value: Values
    shares: dict[int, Values]
    noise: dict[int, float] = field(default_factory=dict)

    def plus(self, other: _Loss) -> _Loss:
        shares = dict(self.shares)
        for position, share in other.shares.items():
            shares[position] = shares[position].plus(share) if position in shares else share
        noise = {place: self.noise.get(place, 0.0) + other.noise.get(place, 0.0) for place in shares}
        return _Loss(self.value.plus(other.value), shares, noise)


def _turn(after: Recording, receiver: str, optimizer: int) -> int:
    """Which of the backward calls of ``receiver`` is the first for this optimizer.

    A helper that all losses go through gives them one name: the calls that only other optimizers
    consume are theirs. One that nobody consumes is not passed over.
    """
    takers: dict[int, set[int]] = {}
    for step in after.steps:
        for state in step.parameters:
            for feed in state.feeds:
                takers.setdefault(feed, set()).add(step.optimizer)
    for turn, call in enumerate(_calls(after, receiver)):
        if call.index not in takers or optimizer in takers[call.index]:
            return turn
    return 0


def _calls(recording: Recording, receiver: str) -> list[Backward]:
    return [c for c in recording.backwards if c.place.receiver == receiver and c.value is not None]


def _loss(recording: Recording, receiver: str, optimizer: int, turn: int) -> _Loss | None:
    """A backward call of ``receiver`` by its turn, or the first of all the terms of a sum together."""
    for call in _calls(recording, receiver)[turn : turn + 1]:
        assert call.value is not None
        shares = {place: share for (index, place), share in call.shares.items() if index == optimizer}
        noise = {place: size for (index, place), size in call.noise.items() if index == optimizer}
        return _Loss(call.value, shares, noise)
    with suppress(SyntaxError):
        parsed = ast.parse(receiver, mode="eval").body
        if isinstance(parsed, ast.BinOp) and isinstance(parsed.op, ast.Add):
            left, right = (
                _loss(recording, ast.unparse(n), optimizer, 0) for n in (parsed.left, parsed.right)
            )
            return left.plus(right) if left and right else None
    return None


def _zero(values: Values | None) -> bool:
    return values is None or values.zero


def leftover(steps: Sequence[Step]) -> bool:
    """Whether a step consumes a backward call's gradient that an earlier step consumed."""
    for earlier, later in itertools.pairwise(steps):
        for old, new in zip(earlier.parameters, later.parameters):
            if {*old.feeds} & {*new.feeds} - {BY_HAND}:
                return True
    return False


def _normal(receiver: str) -> str:
    """A receiver's text as :mod:`ast` writes it."""
    with suppress(SyntaxError):
        return ast.unparse(ast.parse(receiver, mode="eval").body)
    return receiver


__all__ = [
    "COMPARISONS",
    "EFFECTS",
    "NO_NUMBERS",
    "SUBSTANCE",
    "Check",
    "Faults",
    "Followed",
    "Still",
    "Surroundings",
    "Verdict",
    "by_hand",
    "check",
    "follow",
    "leftover",
    "longest",
    "merge",
    "same_course",
    "same_gradients",
    "summary",
    "surroundings",
    "updates_apart",
]
