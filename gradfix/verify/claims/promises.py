"""What single claims promise beyond gradients that stay: modes, clipping, schedules, cleared gradients."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from gradfix.verify.checks import Check
from gradfix.verify.claims.case import Case
from gradfix.verify.claims.course import each_step
from gradfix.verify.claims.gradients import RELATIVE, compare, leaves_apart
from gradfix.verify.recording.records import Recording, Values, plural


def modes(case: Case) -> list[Check]:
    """Whether the networks train in the modes in which training began, as the claim may say."""
    if not case.claim.steady_modes:
        return []
    if _other_mode(case.before) is None:
        return [
            Check(
                "modes", "not checked", "in the original, too, every step finds the networks in the same mode"
            )
        ]
    other = _other_mode(case.after)
    if other is not None:
        return [Check("modes", "fails", f"{other} in another mode than the first step did")]
    detail = f"{each_step(len(case.after.steps))} finds the networks in the mode that the first one found"
    return [Check("modes", "holds", detail)]


def clipped(case: Case) -> list[Check]:
    """Whether optimizers consume clipped gradients, and in the original others, as the claim may say."""
    named = {index: None for line in case.claim.clips for index in case.constructed_at(line)}
    return [_shorter(case, index) for index in named]


def _shorter(case: Case, index: int) -> Check:
    who = case.known.optimizers[index].name
    taken: Counter[int] = Counter()
    for one in case.before.steps:
        turn, mates = taken[one.optimizer], case.after.steps_of(one.optimizer)
        taken[one.optimizer] += 1
        if turn >= len(mates):
            break
        other = mates[turn]
        compared = compare(one, other, case.before)
        if compared.problem is None and compared.unknown is None and compared.drift == 0:
            continue
        if one.optimizer != index or compared.unknown is not None or compared.drift > 0:
            why = f"other weights differ before the gradients of {who} do"
            return Check("clipped", "not checked", why, who)
        lengths = [
            (a.gradient.norm, b.gradient.norm)
            for a, b in zip(one.parameters, other.parameters)
            if a.gradient is not None and b.gradient is not None
        ]
        before, after = (math.hypot(*norms) for norms in zip(*lengths)) if lengths else (0.0, 0.0)
        if after < before and all(b <= a * (1 + RELATIVE) for a, b in lengths):
            what = f"step {turn + 1} of {who} uses a gradient of norm {after:.3g}"
            what += f", clipped from {before:.3g}"
            return Check("clipped", "holds", what, who)
        detail = f"step {turn + 1} of {who} uses another gradient than in the original, but not a shorter one"
        return Check("clipped", "fails", detail, who)
    return Check("clipped", "not checked", f"no gradient of {who} is above the bound in this run", who)


def scheduled(case: Case) -> list[Check]:
    """Whether the options of optimizers change later than in the original, as the claim may say."""
    named = {index: None for line in case.claim.schedules for index in case.constructed_at(line)}
    return [_later(case, index) for index in named]


def _later(case: Case, index: int) -> Check:
    who = case.known.optimizers[index].name
    before, after = ([step.settings for step in run.steps_of(index)] for run in (case.before, case.after))
    same = before[: len(after)] == after[: len(before)]
    if same and len({*before, *after}) < 2:
        return Check("scheduled", "not checked", f"the options of {who} do not change in this run", who)
    for late in range(1, 1 if same else len(after)):
        common = min(len(before), len(after) - late)
        if len(set(after[:late])) == 1 and after[late : late + common] == before[:common]:
            what = f"the options of {who} at each step are those of {plural(late, 'step')} earlier"
            return Check("scheduled", "holds", what, who)
    detail = f"the options of {who} are not those of the original, one scheduler step later"
    return Check("scheduled", "fails", detail, who)


def cleared(case: Case) -> list[Check]:
    """Whether gradients are no longer added to those of earlier iterations, as the claim may say."""
    if not case.claim.clears:
        return []
    if case.known.optimizers:
        detail = "gradients of tensors outside any optimizer are not recorded where there are optimizers"
        return [Check("cleared", "not checked", detail)]
    earlier: Mapping[str, Values | None] = {}
    for one, other in zip(case.before.backwards, case.after.backwards):
        if leaves_apart(one.leaves, other.leaves) is None:
            earlier = one.leaves
            continue
        fresh = {name: _less(value, earlier.get(name)) for name, value in one.leaves.items()}
        wrong = leaves_apart(fresh, other.leaves)
        if wrong is not None:
            return [Check("cleared", "fails", f"not the gradients of one iteration alone: {wrong}")]
        what = f"after backward call {one.index + 1}, leaf gradients are the original's without the earlier"
        return [Check("cleared", "holds", f"{what} ones")]
    return [Check("cleared", "not checked", "no gradient is added to another in this run")]


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
