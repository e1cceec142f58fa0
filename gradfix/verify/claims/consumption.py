"""Whether optimizers consume what the claim says: the same, of the right losses, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradfix.core import intent
from gradfix.core.codemod import Effect
from gradfix.runtime.probe import BY_HAND
from gradfix.verify.checks import Check
from gradfix.verify.claims.case import Case
from gradfix.verify.claims.course import each_step, summary
from gradfix.verify.claims.gradients import Course, agreement, compare, follow_steps, leftover
from gradfix.verify.claims.side_effects import longest
from gradfix.verify.recording.records import RecordedStep, Recording, plural


def unchanged(case: Case) -> list[Check]:
    """Whether the listed optimizers consume the same, as far as the original gets."""
    steps = [event for event in case.before.until_crash if isinstance(event, RecordedStep)]
    courses = follow_steps(
        steps,
        case.before,
        case.after,
        case.listed,
        patient=case.effect is not Effect.PRESERVES,
        stop_at_unlisted=case.effect is Effect.CHANGES,
    )
    checks = []
    for index, course in sorted(courses.items()):
        if not any(step.optimizer == index for step in steps):
            continue
        if course.declared and not course.compared and not course.problem:
            continue
        count = len(case.after.steps_of(index)) - len(case.before.steps_of(index))
        if case.effect is Effect.PRESERVES and case.before.ending == "finished" and count > 0:
            course.problem = course.problem or f"{plural(count, 'step')} more in the fixed program"
        crash = " before the crash" if case.before.crash else ""
        checks.append(_verdict(case, "unchanged", case.before, index, course, crash))
    return checks


def against_reference(case: Case) -> list[Check]:
    """Whether the fixed program consumes what the original's own graphs hold."""
    reference = case.reference
    if reference is None:
        return []
    crash = case.before.crash
    passed = [event for event in case.before.until_crash if isinstance(event, RecordedStep)]
    beyond = reference.steps[len(passed) :]
    if crash is None or not beyond:
        why = f"it {summary(reference)}" if reference.optimizers else "there is no optimizer"
        return [
            Check(
                "reference", "not checked", f"nothing to compare in the original with its graphs kept: {why}"
            )
        ]
    courses = follow_steps(
        reference.steps, reference, case.after, case.listed, patient=True, stop_at_unlisted=False
    )
    loose = case.listed & case.declared().keys() if case.claim.unchanged == "all" else frozenset()
    loose = loose | untangled(case) if case.claim.beyond else case.listed
    for index in loose:
        course = courses.get(index)  # None where neither run has stepped it.
        if course is not None and course.problem is not None:
            course.stopped, course.problem = f"it may differ, and does: {course.problem}", None
    checks = [
        _verdict(case, "reference", reference, index, course, " from the original with its graphs kept")
        for index, course in sorted(courses.items())
        if reference.steps_of(index)
    ]
    return checks + _first_beyond(case, reference, passed, beyond[0])


def _first_beyond(
    case: Case, reference: Recording, passed: Sequence[RecordedStep], step: RecordedStep
) -> list[Check]:
    """How the first step after the crash compares, if its optimizer may change."""
    index = step.optimizer
    if index in case.listed:
        return []
    turn = sum(earlier.optimizer == index for earlier in passed)
    mates = case.after.steps_of(index)
    who = reference.optimizers[index].name
    if turn >= len(mates):
        return []
    found = compare(step, mates[turn], reference)
    problem = found.problem or found.unknown
    if problem is None:
        how = agreement(Course(1, found.largest, hashed=found.hashed, measured=found.measured))
        detail = f"the first step of {who} after the crash uses what the original's graph gives ({how})"
        return [Check("reference", "holds", detail, who)]
    detail = f"the first step of {who} after the crash may differ from the original's graph, and does"
    return [Check("reference", "not checked", f"{detail}: {problem}", who)]


def _verdict(case: Case, name: str, one: Recording, index: int, course: Course, where: str) -> Check:
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
    detail += f" ({agreement(course)}){rest}"
    return Check(name, "holds", detail, who, not course.measured and course.stopped is None)


def kept(case: Case) -> list[Check]:
    """Whether every parameter that had a gradient still gets one."""
    original = longest(case.before, case.reference)
    calls = {call.place.receiver for call in original.backwards}
    # Where the fix itself makes the declared loss (a sum, say), the original knows none of that name.
    declared = {index: wanted for index, wanted in case.declared().items() if wanted & calls}
    lost = []
    looked = 0
    for optimizer in original.optimizers:
        index = optimizer.index
        pairs = list(zip(original.steps_of(index), case.after.steps_of(index)))
        for position in range(min((len(s.parameters) for pair in pairs for s in pair), default=0)):
            states = [step.parameters[position] for step, _ in pairs]
            # A gradient that only leaked in from a loss that is not this optimizer's may go.
            owed = any(
                state.moves and (index not in declared or declared[index] & original.receivers(state.feeds))
                for state in states
            )
            looked += owed
            # Without what had leaked in, the gradient that is left may be exactly zero for one of them
            # (the last bias of a critic that scores two batches), but not for all.
            after = [step.parameters[position] for _, step in pairs]
            if case.effect is Effect.CHANGES:
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


def once(case: Case) -> list[Check]:
    """Whether no step of the fixed program consumes a loss twice, unless the original's do."""
    ledger = case.after.ledger
    if ledger is None or not ledger.steps:
        return []
    known = case.before.ledger.doubled() if case.before.ledger is not None else ()
    excused = {tuple(call.loss for call in one.calls) for one in known}
    for one in ledger.doubled():
        losses = tuple(call.loss for call in one.calls)
        if losses not in excused:
            step = ledger.steps[one.step]
            who = case.after.optimizers[step.optimizer].name
            how = "is backpropagated twice" if len(losses) > 1 else f"adds one term {one.count} times"
            detail = f"step {step.number + 1} of {who} uses the gradient of one loss {one.count} times"
            counts = f"{losses[-1]} {how}, so its gradient counts {_times(one.count)}"
            return [Check("once", "fails", f"{detail}: {counts}")]
    return [Check("once", "holds", f"{each_step(len(case.after.steps))} uses the gradient of each loss once")]


def meant(case: Case) -> list[Check]:
    """Whether losses that the fixed program consumes together are meant to be."""
    if case.effect is Effect.PRESERVES or case.after.ledger is None:
        return []
    known = intent.uncertain_pairs(case.before.ledger) if case.before.ledger is not None else ()
    excused = {(doubt.first.loss, doubt.second.loss) for doubt in known}
    # What is summed is one loss: of the original with its graphs kept, they are two.
    original = case.reference.ledger if case.reference is not None else None
    undecided = [one for one in intent.uncertain_pairs(original) if one.leaking is None] if original else []
    for doubt in [*intent.uncertain_pairs(case.after.ledger), *undecided]:
        if (doubt.first.loss, doubt.second.loss) not in excused:
            what = " and ".join(sorted({_names(case, one) for one in doubt.shared})[:2])
            detail = f"{what} uses gradients from {doubt.first.loss} and {doubt.second.loss}, and "
            unsure = f"whether both are meant for it is not certain: {doubt.reason}"
            return [Check("meant", "not checked", detail + unsure)]
    for doubt in intent.uncertain_pairs(original) if original else ():
        if doubt.leaking is not None and intent.leaks_still(doubt, case.after.ledger):
            detail = f"{doubt.leaking.loss} still trains what {doubt.other.loss} trains: {doubt.reason}"
            return [Check("meant", "not checked", detail)]
    return []


def _names(case: Case, parameter: object) -> str:
    """The optimizer that owns a parameter."""
    assert isinstance(parameter, tuple)
    return case.after.optimizers[parameter[0]].name


def consumes(case: Case) -> list[Check]:
    """Whether every step of the fixed program finds a gradient."""
    original = case.reference or case.before
    promised = case.effect is Effect.REPAIRS and case.claim.raises is None
    taken: Counter[int] = Counter()
    excused = None
    for step in case.after.steps:
        index, turn = step.optimizer, taken[step.optimizer]
        taken[index] += 1
        if step.consumes:
            continue
        who = case.after.optimizers[index].name
        detail = f"step {turn + 1} of {who} finds no gradient"
        steps = original.steps_of(index) if index < len(original.optimizers) else ()
        if promised or turn >= len(steps) or steps[turn].consumes:
            return [Check("consumes", "fails", detail)]
        excused = f"{detail}, as in the original"
    if excused is not None:
        return [Check("consumes", "not checked", excused)]
    if not taken:
        return []
    return [Check("consumes", "holds", f"{each_step(taken.total())} uses a gradient")]


def moved(case: Case) -> list[Check]:
    """Whether nothing but steps moves the weights of the fixed program, unless something does in the
    original."""
    original = longest(case.before, case.reference)
    stopped = case.reference is None and (original.crash is not None or original.uncaught is not None)
    if stopped or len(original.optimizers) != len(case.after.optimizers):
        return []
    for index, position in sorted(case.after.moved_otherwise - original.moved_otherwise):
        what = case.after.parameter(index, position)
        if len(original.steps_of(index)) > 1:
            return [Check("moved", "fails", f"{what} is now changed by something other than a step")]
    return []


def feeds(case: Case) -> list[Check]:
    """Whether each step consumes gradients of exactly the declared backward calls."""
    declared = case.declared()
    checks = [
        Check("feeds", "not checked", f"the optimizer of line {line} was never constructed", f"line {line}")
        for line in dict.fromkeys(line for line, _ in case.claim.feeds)
        if not case.constructed_at(line)
    ]
    return checks + [_fed(case, index, wanted) for index, wanted in sorted(declared.items())]


def _fed(case: Case, index: int, wanted: frozenset[str | None]) -> Check:
    who = case.known.optimizers[index].name
    words = " and ".join(sorted(str(receiver) for receiver in wanted))
    steps = case.after.steps_of(index)
    if not steps:
        ended = case.after.ending == "finished"
        return Check("feeds", "fails" if ended else "not checked", f"{who} takes no step", who)
    for turn, step in enumerate(steps):
        feeds = sorted({feed for state in step.parameters for feed in state.feeds})
        found = case.after.receivers(feeds)
        if BY_HAND in feeds:
            return Check("feeds", "not checked", f"gradients of {who} are assigned by hand", who)
        if None in found:
            return Check(
                "feeds",
                "not checked",
                f"the losses of {who} cannot be read from the source",
                who,
            )
        if found != wanted:
            fed = " and ".join(sorted(str(receiver) for receiver in found)) or "nothing"
            detail = f"step {turn + 1} of {who} uses gradients from {fed}, not from {words}"
            return Check("feeds", "fails", detail, who)
    several = next((str(one) for one in wanted if len(_told_apart(case.after, one)) > 1), None)
    if leftover(steps) and (
        case.effect is Effect.CHANGES or not leftover((case.reference or case.before).steps_of(index))
    ):
        return Check("feeds", "fails", f"{who} uses gradients that it has already used", who)
    if several is not None:
        detail = f"the source calls several losses {several}, and only their values tell them apart"
        return Check("feeds", "not checked", f"the losses of {who}: {detail}", who)
    return Check("feeds", "holds", f"{each_step(len(steps))} of {who} uses gradients from {words} only", who)


def _told_apart(run: Recording, receiver: str | None) -> set[tuple[object, ...]]:
    """The losses that the source calls so: by the parameters that they reach, and how many terms do."""
    calls = [call for call in run.backwards if call.place.receiver == receiver]
    return {(call.reached, len(call.through.terms) if call.through else 0) for call in calls}


def untangled(case: Case) -> frozenset[int]:
    """The optimizers into whose parameters a loss for another one had leaked, and does no more."""
    original, fixed = longest(case.before, case.reference).ledger, case.after.ledger
    if original is None or fixed is None:
        return frozenset()
    left = {(one.first.loss, one.second.loss) for one in intent.uncertain_pairs(fixed)}
    return frozenset(
        parameter[0]
        for one in intent.uncertain_pairs(original)
        if one.leaking is not None and (one.first.loss, one.second.loss) not in left
        for parameter in one.shared
        if isinstance(parameter, tuple)
    )


def _times(count: int) -> str:
    return "double" if count == 2 else f"{count} times"
