"""The claims' predicates on recordings made by hand: tolerances, horizons, what is not comparable."""

from __future__ import annotations

import ast
import hashlib
import math
from array import array
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gradfix.core.codemod import Claim, Effect
from gradfix.core.errors import quoted
from gradfix.verify.claims import (
    Check,
    UpdatesOff,
    check,
    compare_side_effects,
    contradiction,
    merge,
    same_course,
    settled,
    summary,
)
from gradfix.verify.recording.records import (
    Draws,
    Ending,
    Kind,
    ParameterState,
    RecordedBackward,
    RecordedEvent,
    RecordedFailure,
    RecordedOptimizer,
    RecordedStep,
    Recording,
    SourceLocation,
    Values,
)
from gradfix.verify.recording.source import Source

SOURCE = "opt = SGD()\nother = SGD()\nloss.backward()\nopt.step()\nloss2.backward()\nother.step()\n"


def values(*numbers: float) -> Values:
    return Values(
        shape=(len(numbers),),
        dtype="torch.float32",
        digest=hashlib.sha256(repr(numbers).encode()).hexdigest(),
        largest=max(map(abs, numbers)),
        norm=math.hypot(*numbers),
        finite=all(map(math.isfinite, numbers)),
        exact=array("d", numbers),
        sketch=(),
    )


def backward(index: int, receiver: str | None = "loss", **more: object) -> RecordedBackward:
    made = RecordedBackward(index, SourceLocation(3, 3, 3, receiver), False, values(1.0), frozenset(), {}, {})
    return replace(made, **more)  # type: ignore[arg-type]


def step(
    *gradients: float | None,
    of: int = 0,
    feeds: Sequence[int] = (0,),
    weight: float = 1.0,
    random: str = "",
    mean: float = 0.0,
    seen: int = 0,
) -> RecordedStep:
    """A step of an optimizer; each parameter has one element, and so has each of the two buffers."""
    states = (
        ParameterState(None if g is None else values(g), values(weight), () if g is None else tuple(feeds))
        for g in gradients
    )
    buffers = {"net.mean": values(mean), "net.seen": replace(values(seen), dtype="torch.int64")}
    return RecordedStep(of, SourceLocation(4, 4, 4), Draws(random, "", None), tuple(states), buffers)


def failure(kind: Kind, line: int, text: str = "", receiver: str | None = None) -> RecordedFailure:
    during = "script" if kind == "other" else "backward"
    name = "NameError" if kind == "other" else "RuntimeError"
    return RecordedFailure(kind, name, text or kind, "", during, SourceLocation(line, line, line, receiver))  # type: ignore[arg-type]


def recording(
    *events: RecordedEvent, ending: Ending = "finished", source: str = SOURCE, optimizers: int = 2
) -> Recording:
    failures = [event for event in events if isinstance(event, RecordedFailure)]
    made = [
        RecordedOptimizer(index, "SGD", SourceLocation(index + 1, index + 1, index + 1), name, ("w", "b"))
        for index, name in enumerate(("opt", "other")[:optimizers])
    ]
    return Recording(
        source=source,
        seed=0,
        ending="error" if failures else ending,
        detail="",
        torch="2.13.0",
        python="3.11.7",
        optimizers=tuple(made),
        events=events,
        uncaught=failures[-1] if failures else None,
        leaves={},
        seconds=0.1,
    )


def verdicts(checks: Sequence[Check], name: str) -> list[str]:
    return [one.verdict for one in checks if one.name == name]


def details(checks: Sequence[Check], name: str) -> str:
    return "; ".join(one.detail for one in checks if one.name == name)


def preserved(*pairs: tuple[RecordedStep, RecordedStep]) -> list[Check]:
    """The check ``unchanged`` of a fix that preserves, on runs with these steps."""
    before, after = (recording(backward(0), *(pair[side] for pair in pairs)) for side in (0, 1))
    return [one for one in check(Claim(), Effect.PRESERVES, before, after) if one.name == "unchanged"]


def hashed(made: RecordedStep, *hashes: str | None) -> RecordedStep:
    """A step whose gradients have these hashes; those of its weights are all the same."""
    pairs = zip(made.parameters, hashes, strict=True)
    states = tuple(replace(state, gradient_hash=one, value_hash="weight") for state, one in pairs)
    return replace(made, parameters=states)


def test_hashes_settle_what_they_prove_as_a_whole() -> None:
    def asked(*pairs: tuple[RecordedStep, RecordedStep], optimizers: int = 1) -> bool:
        before, after = (
            recording(backward(0), *(pair[side] for pair in pairs), optimizers=optimizers) for side in (0, 1)
        )
        return settled(check(Claim(), Effect.PRESERVES, before, after), before, after)

    same = hashed(step(1.0, 2.0), "x", "y")
    by_numbers = hashed(step(1.0, 2.0), "x", "z")
    assert asked((same, same), (same, same))
    assert not asked((same, by_numbers))
    assert not asked((same, same), (same, hashed(step(1.0, 3.0), "x", "z")))
    drawn = replace(same, random=Draws("", "others", None))
    assert not asked((same, same), (drawn, drawn))
    other = hashed(step(1.0, of=1), "z")
    assert asked((same, same), (other, other), optimizers=2)
    assert not asked((same, same), (other, hashed(step(1.0, of=1), "q")), optimizers=2)
    assert not settled([], recording(), recording())


def without_data(made: RecordedStep, *hashes: str | None) -> RecordedStep:
    """A step of which only hashes are known."""
    states = hashed(made, *hashes).parameters
    unknown = {"exact": None, "largest": math.nan, "norm": math.nan}
    bare = tuple(
        replace(
            state,
            gradient=state.gradient and replace(state.gradient, digest=str(one), **unknown),
            value=replace(state.value, digest="weight", **unknown),
        )
        for state, one in zip(states, hashes)
    )
    return replace(made, parameters=bare)


# -- hashes ------------------------------------------------------------------------------------


def test_equal_hashes_settle_it_and_are_counted() -> None:
    (found,) = preserved((hashed(step(1.0, 2.0), "a", "b"), hashed(step(1.0, 2.0), "a", "b")))
    assert found.verdict == "holds"
    assert "(max difference 0, all 2 gradients proved by hash)" in found.detail


def test_other_hashes_prove_nothing_and_numbers_decide() -> None:
    before = hashed(step(1.0, 2.0), "a", "b")
    (same,) = preserved((before, hashed(step(1.0, 2.0), "a", "c")))
    assert same.verdict == "holds"
    assert "(max difference 0, 1 of 2 gradients proved by hash, 1 by numbers)" in same.detail
    (other,) = preserved((before, hashed(step(1.0, 3.0), "a", "c")))
    assert other.verdict == "fails"
    (unknown,) = preserved((hashed(step(1.0), None), hashed(step(1.0), None)))
    assert unknown.verdict == "holds"
    assert "by hash" not in unknown.detail


@pytest.mark.parametrize("other", [step(1.5), step(1.0, weight=2.0)], ids=["gradient", "weight"])
def test_a_hash_that_stands_for_two_values_proves_nothing(other: RecordedStep) -> None:
    before, after = recording(hashed(step(1.0), "a")), recording(hashed(other, "a"))
    checks = check(Claim(), Effect.PRESERVES, before, after)
    (found,) = [one for one in checks if one.name == "unchanged"]
    assert found.verdict == "not checked"
    assert found.detail.startswith("recorder contradiction: w at line 4 ")
    # One seed is enough to doubt the others.
    fine = check(Claim(), Effect.PRESERVES, before, before)
    (merged,) = [one for one in merge((0, 1), (fine, checks)) if one.name == "unchanged"]
    assert merged == found


def test_a_contradiction_at_any_two_steps_is_noticed() -> None:
    one = recording(hashed(step(1.0), "a"), hashed(step(2.0), "b"))
    assert contradiction(one, one) is None
    assert contradiction(one, recording(hashed(step(2.0), "a"))) is not None
    assert contradiction(recording(hashed(step(1.0), "a"), hashed(step(2.0), "a"))) is not None
    # Of a NaN, the payload is free.
    assert contradiction(one, recording(hashed(step(math.nan), "a"))) is None


def test_without_data_only_hashes_speak() -> None:
    before = without_data(step(1.0, 2.0), "a", "b")
    (same,) = preserved((before, without_data(step(1.0, 2.0), "a", "b")))
    assert same.verdict == "holds"
    (other,) = preserved((before, without_data(step(1.0, 2.0), "a", "c")))
    assert other.verdict == "not checked"
    assert "there are no numbers" in other.detail
    (gone,) = preserved((before, without_data(step(1.0, None), "a", None)))
    assert gone.verdict == "fails"


# -- tolerances --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (step(1.0), step(1.0), "holds"),
        (step(1.0), step(1.0 + 5e-6), "holds"),
        (step(1.0), step(1.0 + 5e-5), "fails"),
        (step(1e-3), step(1e-3 * (1 + 5e-5)), "fails"),
        # Noise beside a large gradient of the same optimizer is noise; alone it is a gradient.
        (step(1e-9, 1.0), step(2e-9, 1.0), "holds"),
        (step(1e-9), step(2e-9), "fails"),
        (step(None), step(None), "holds"),
        (step(None, 1.0), step(0.0, 1.0), "fails"),
        (step(1.0), step(None), "fails"),
        (step(math.nan), step(math.nan), "holds"),
        (step(1.0), step(math.nan), "fails"),
        (step(math.nan), step(1.0), "not checked"),
        (step(1.0), step(1.0, 1.0), "fails"),
    ],
)
def test_gradients_are_equal_within_their_own_scale(
    before: RecordedStep, after: RecordedStep, verdict: str
) -> None:
    (found,) = preserved((before, after))
    assert found.verdict == verdict, found


def test_rounding_may_grow_with_the_weights_but_nothing_else_may() -> None:
    first = (step(1.0), step(1.0 + 1e-6))
    (grown,) = preserved(first, (step(2.0), step(2.0 + 2e-4, weight=1 + 1e-6)))
    assert grown.verdict == "holds"
    (jumped,) = preserved(first, (step(2.0), step(2.0 + 2e-4)))
    assert jumped.verdict == "fails"
    (apart,) = preserved(first, (step(2.0), step(3.0, weight=1.1)))
    assert apart.verdict == "fails"
    (lost,) = preserved(first, (step(2.0), step(2.0 + 1e-4, weight=1.1)))
    assert lost.verdict == "holds"
    assert "of their size, by rounding" in lost.detail


def test_equal_gradients_do_not_excuse_other_weights() -> None:
    (found,) = preserved((step(1.0), step(1.0)), (step(1.0), step(1.0, weight=1.1)))
    assert found.verdict == "fails"
    assert "although all gradients were equal" in found.detail


def test_large_tensors_are_compared_by_their_sketches() -> None:
    whole = values(3.0, 4.0)
    one = replace(whole, exact=None, sketch=(7.0, -1.0, 1.0, -7.0))
    other = replace(one, digest="other", sketch=(7.0, -1.0, 1.0, -7.5))
    assert one.distance(one) == 0
    assert one.distance(other) == pytest.approx(0.25 / 5)
    assert one.distance(replace(other, shape=(1, 2))) == math.inf


# -- what happens how often, and in which order -------------------------------------------------


def test_fewer_steps_fail_unless_the_run_was_cut() -> None:
    before = recording(backward(0), step(1.0), step(2.0))
    after = recording(backward(0), step(1.0))
    checks = check(Claim(), Effect.PRESERVES, before, after)
    assert verdicts(checks, "unchanged") == ["fails"]
    assert "1 step in the fixed program, more in the original" in details(checks, "unchanged")
    checks = check(Claim(), Effect.PRESERVES, before, replace(after, ending="steps"))
    assert verdicts(checks, "unchanged") == ["holds"]
    checks = check(Claim(), Effect.PRESERVES, after, before)
    assert verdicts(checks, "unchanged") == ["fails"]


def test_a_change_ends_the_comparison_at_the_first_step_that_may_differ() -> None:
    claim = Claim(unchanged=(1,))
    before = recording(backward(0), step(1.0), step(5.0, of=1), step(2.0))
    after = recording(backward(0), step(1.0), step(6.0, of=1), step(3.0))
    checks = check(claim, Effect.CHANGES, before, after)
    assert verdicts(checks, "unchanged") == ["holds"]
    assert "equal at the 1 step" in details(checks, "unchanged")
    assert "then other steps, whose gradients the fix changes" in details(checks, "unchanged")
    # A listed optimizer whose first step comes later has nothing to be compared.
    checks = check(Claim(unchanged=(2,)), Effect.CHANGES, before, after)
    assert verdicts(checks, "unchanged") == []


def test_other_random_numbers_make_steps_incomparable() -> None:
    crash = failure("E1", 5)
    before = recording(backward(0), step(1.0, random="a"), crash)
    after = recording(backward(0), step(2.0, random="b"), backward(1), step(1.0, of=1))
    claim = Claim("E1", 5, unchanged=(1,))
    checks = check(claim, Effect.REPAIRS, before, after)
    assert verdicts(checks, "unchanged") == ["not checked"]
    assert "different random numbers" in details(checks, "unchanged")
    # A fix that preserves has no business drawing others.
    checks = check(Claim(), Effect.PRESERVES, recording(*before.events[:2]), after)
    assert verdicts(checks, "unchanged") == ["fails"]


SAME = step(1.0)


@pytest.mark.parametrize(
    ("other", "check_name", "reported"),
    [
        (step(1.0, random="b"), "random", "differ from step 1 of opt on (torch)"),
        (step(1.0, mean=0.5), "buffers", "differ from step 1 of opt on (net.mean)"),
        # Numbers that are counted are not rounded.
        (step(1.0, seen=1), "buffers", "differ from step 1 of opt on (net.seen)"),
        # What rounding does to a mean of nearly zero is no difference.
        (step(1.0, mean=1e-9), None, ""),
    ],
)
@pytest.mark.parametrize("effect", list(Effect))
def test_what_surrounds_gradients_is_the_same_or_declared(
    other: RecordedStep, check_name: str | None, reported: str, effect: Effect
) -> None:
    whole = replace(SAME, buffers={**SAME.buffers, "net.variance": values(1.0)})
    mate = replace(other, buffers={**other.buffers, "net.variance": values(1.0)})
    before, after = recording(backward(0), whole), recording(backward(0), mate)
    for promised, verdict in ((True, "fails"), (False, "holds")):
        checks = check(Claim(unchanged=(), same_forwards=promised), effect, before, after)
        expected = {name: verdict if name == check_name else "holds" for name in ("random", "buffers")}
        assert {one.name: one.verdict for one in checks if one.name in expected} == expected
        assert reported in details(checks, check_name or "random")


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ((0.5, -1.0), "holds"),
        ((2.5, -4.0), "fails"),
        ((0.5, -4.5), "fails"),
        ((2.0, -4.0), "not checked"),
    ],
)
def test_what_is_clipped_is_shorter_at_the_first_step_that_differs(
    after: tuple[float, float], verdict: str
) -> None:
    before = recording(backward(0), step(1.0, 1.0), step(2.0, -4.0))
    checks = check(
        Claim(unchanged=(), clips=(1,)),
        Effect.CHANGES,
        before,
        recording(backward(0), step(1.0, 1.0), step(*after)),
    )
    assert verdicts(checks, "clipped") == [verdict]


def test_nothing_is_known_of_clipping_once_other_weights_have_moved() -> None:
    before = recording(backward(0), step(1.0, of=1), step(2.0))
    after = recording(backward(0), step(3.0, of=1), step(1.0))
    checks = check(Claim(unchanged=(), clips=(1,)), Effect.CHANGES, before, after)
    assert verdicts(checks, "clipped") == ["not checked"]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ("bcd", "abc", "holds"),
        ("bbccdd", "aabbcc", "holds"),
        ("aabbbb", "aaaabb", "holds"),
        ("aaaa", "baaa", "holds"),
        ("aaaa", "aaaa", "not checked"),
        ("bcd", "bcd", "fails"),
        ("bcd", "abb", "fails"),
        ("abbcc", "aabbc", "holds"),
        ("bcd", "aac", "fails"),
        ("bcd", "aaa", "fails"),
        ("bcd", "cde", "fails"),
        ("aaa", "aab", "fails"),
    ],
)
def test_a_schedule_begins_with_another_value_and_goes_on_as_it_did(
    before: str, after: str, verdict: str
) -> None:
    one, other = (recording(*(replace(step(1.0), settings=rate) for rate in run)) for run in (before, after))
    checks = check(Claim(unchanged=(), schedules=(1,)), Effect.CHANGES, one, other)
    assert verdicts(checks, "scheduled") == [verdict]


def test_what_surrounds_gradients_is_compared_while_the_weights_are_the_same() -> None:
    before = recording(backward(0), step(1.0), step(2.0, of=1), step(3.0, mean=1.0, random="a"))
    after = recording(backward(0), step(1.0), step(9.0, of=1), step(4.0, mean=2.0, random="b"))
    found = compare_side_effects(before, after)
    assert (found.compared, found.random_from, found.buffers_from) == (2, None, None)
    assert found.stopped == "from step 1 of other on the weights differ"
    same = recording(*before.events[:3], after.events[3])
    found = compare_side_effects(before, same)
    assert (found.compared, found.random_from, found.buffers_from) == (3, "step 2 of opt", "step 2 of opt")
    assert (found.generators, found.buffers) == (("torch",), ("net.mean",))


def test_hashes_of_buffers_that_differ_prove_nothing() -> None:
    known = step(1.0)
    unknown = {
        name: replace(value, exact=None, digest=f"{name} hash") for name, value in known.buffers.items()
    }
    one, other = recording(backward(0), known), recording(backward(0), replace(known, buffers=unknown))
    checks = check(Claim(), Effect.PRESERVES, one, other)
    assert verdicts(checks, "buffers") == ["not checked"]
    assert compare_side_effects(other, other).buffers_unknown is False


def test_programs_with_other_optimizers_have_nothing_in_common() -> None:
    one = recording(backward(0), step(1.0))
    other = recording(backward(0), step(1.0), optimizers=1)
    assert compare_side_effects(one, other).compared == 0
    assert verdicts(check(Claim(unchanged=()), Effect.CHANGES, one, other), "random") == []


def test_the_reference_is_followed_until_a_declared_change() -> None:
    before = recording(backward(0), step(1.0), failure("E2", 5))
    reference = recording(backward(0), step(1.0), backward(1), step(5.0, of=1), backward(2), step(2.0))
    after = recording(backward(0), step(1.0), backward(1), step(6.0, of=1), backward(2), step(3.0))
    checks = check(Claim("E2", 5, unchanged=(1,)), Effect.REPAIRS, before, after, reference)
    assert verdicts(checks, "reference") == ["holds", "not checked"]
    checks = check(Claim("E2", 5), Effect.REPAIRS, before, after, reference)
    assert verdicts(checks, "reference") == ["holds", "fails"]
    # As long as the unlisted optimizer consumes the same, so must the listed one.
    same = recording(*after.events[:3], step(5.0, of=1), *after.events[4:])
    checks = check(Claim("E2", 5, unchanged=(1,)), Effect.REPAIRS, before, same, reference)
    assert verdicts(checks, "reference") == ["fails", "holds"]
    useless = recording(backward(0), step(1.0), failure("E3", 5))
    checks = check(Claim("E2", 5), Effect.REPAIRS, before, after, useless)
    assert verdicts(checks, "reference") == ["not checked"]


# -- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "before", "verdict"),
    [
        (Claim("E1", 5), recording(failure("E1", 5)), "holds"),
        (Claim("E1", None), recording(failure("E1", 9)), "holds"),
        (Claim("E1", 5), recording(failure("E1", 3)), "not checked"),
        (Claim("E1", 5), recording(failure("E2", 5)), "not checked"),
        (Claim("E1", 5), recording(), "fails"),
        (Claim("E1", 5), recording(failure("other", 5)), "not checked"),
        (Claim("E1", 5), recording(ending="steps"), "not checked"),
        (Claim(), recording(), "holds"),
        (Claim(), recording(failure("E1", 5)), "not checked"),
    ],
)
def test_the_predicted_error(claim: Claim, before: Recording, verdict: str) -> None:
    checks = check(claim, Effect.PRESERVES, before, recording())
    assert verdicts(checks, "original") == [verdict], checks


LOOP = [backward(0), step(1.0), backward(1), step(1.0)]


@pytest.mark.parametrize(
    ("name", "before", "after", "verdict"),
    [
        ("runs", [], [], "holds"),
        ("breaks", [], [failure("E1", 5)], "fails"),
        ("breaks otherwise", [], [failure("other", 5)], "fails"),
        ("got past", [*LOOP[:2], failure("E1", 5)], LOOP, "holds"),
        ("same place", [*LOOP[:2], failure("E1", 5)], [*LOOP[:2], failure("E1", 5)], "fails"),
        ("same place, later", [*LOOP[:2], failure("E1", 5)], [*LOOP, failure("E2", 5)], "fails"),
        ("elsewhere, later", [*LOOP[:2], failure("E1", 5)], [*LOOP, failure("E2", 3)], "holds"),
        ("elsewhere, earlier", [*LOOP[:2], failure("E1", 5)], [failure("E2", 3)], "fails"),
        ("a new bug, later", [*LOOP[:2], failure("E1", 5)], [*LOOP, failure("other", 3)], "fails"),
        ("the original's own bug", [*LOOP, failure("other", 6)], [*LOOP, failure("other", 6)], "not checked"),
    ],
)
def test_how_far_the_fixed_program_gets(
    name: str, before: list[RecordedEvent], after: list[RecordedEvent], verdict: str
) -> None:
    crash = next((e for e in before if isinstance(e, RecordedFailure) and e.autograd), None)
    claim = Claim(crash.kind, crash.place.line) if crash else Claim()  # type: ignore[arg-type]
    checks = check(claim, Effect.REPAIRS, recording(*before), recording(*after))
    assert verdicts(checks, "fixed-runs") == [verdict], (name, checks)


def test_the_same_place_is_found_again_though_lines_moved() -> None:
    moved = "import torch\n" + SOURCE.replace("loss2.backward()", "loss2.backward(retain_graph=True)")
    before = recording(*LOOP[:2], failure("E1", 5))
    for line, verdict in ((6, "fails"), (4, "holds")):
        after = recording(*LOOP, failure("E2", line), source=moved)
        checks = check(Claim("E1", 5), Effect.REPAIRS, before, after)
        assert verdicts(checks, "fixed-runs") == [verdict]
    gone = recording(*LOOP, failure("E2", 1, receiver="loss2"), source="loss2.backward()\n")
    before = recording(*LOOP[:2], failure("E1", 5, receiver="loss2"))
    assert verdicts(check(Claim("E1", 5), Effect.REPAIRS, before, gone), "fixed-runs") == ["fails"]


def test_an_error_that_the_reference_raises_too_is_not_the_fix_s() -> None:
    before = recording(*LOOP[:2], failure("E1", 5))
    late = recording(*LOOP, failure("other", 6, "name 'save' is not defined"))
    checks = check(Claim("E1", 5), Effect.REPAIRS, before, late, late)
    assert verdicts(checks, "fixed-runs") == ["not checked"]
    assert "as the original does" in details(checks, "fixed-runs")


# -- gradients that go missing or come from elsewhere -------------------------------------------


def test_a_parameter_must_not_lose_its_gradient() -> None:
    before = recording(backward(0), step(1.0, 2.0))
    checks = check(Claim(unchanged=()), Effect.CHANGES, before, recording(backward(0), step(1.0, None)))
    assert verdicts(checks, "kept") == ["fails"]
    assert details(checks, "kept") == "b no longer gets a gradient"
    checks = check(Claim(unchanged=()), Effect.CHANGES, before, recording(backward(0), step(0.0, 0.0)))
    assert details(checks, "kept") == "w and 1 more no longer gets a gradient"


def test_a_gradient_that_only_leaked_in_may_go() -> None:
    before = recording(backward(0, "loss"), backward(1, "leak"), step(1.0, feeds=(1,)))
    after = recording(backward(0, "loss"), backward(1, "leak"), step(None, 1.0, feeds=(0,)))
    claim = Claim(unchanged=(), feeds=((1, "loss"),))
    checks = check(claim, Effect.CHANGES, before, after)
    assert verdicts(checks, "kept") == []
    assert verdicts(checks, "feeds") == ["holds"]


def test_a_step_that_consumes_nothing() -> None:
    idle = recording(backward(0), step(None, None))
    before = recording(backward(0), step(1.0))
    claim = Claim(unchanged=())
    assert verdicts(check(claim, Effect.CHANGES, before, idle), "consumes") == ["fails"]
    checks = check(claim, Effect.CHANGES, idle, idle)
    assert details(checks, "consumes") == "step 1 of opt finds no gradient, as in the original"
    assert verdicts(checks, "consumes") == ["not checked"]
    assert verdicts(check(claim, Effect.REPAIRS, idle, idle), "consumes") == ["fails"]
    cleared = recording(backward(0), step(0.0, feeds=()))
    assert verdicts(check(claim, Effect.CHANGES, before, cleared), "consumes") == ["fails"]


@pytest.mark.parametrize(
    ("calls", "feeds", "verdict", "detail"),
    [
        (["loss"], [(0,)], "holds", "the only step of opt uses gradients from loss only"),
        (
            ["loss", "other"],
            [(0, 1)],
            "fails",
            "step 1 of opt uses gradients from loss and other, not from loss",
        ),
        (["loss"], [()], "fails", "step 1 of opt uses gradients from nothing, not from loss"),
        (["loss"], [(-1,)], "not checked", "gradients of opt are assigned by hand"),
        (
            [None],
            [(0,)],
            "not checked",
            "the losses of opt cannot be read from the source",
        ),
        (["loss", "loss"], [(0,), (0, 1)], "fails", "opt uses gradients that it has already used"),
        (["loss", "loss"], [(0,), (1,)], "holds", "each of 2 steps of opt uses gradients from loss only"),
        ([], [], "fails", "opt takes no step"),
    ],
)
def test_feeds(calls: list[str | None], feeds: list[tuple[int, ...]], verdict: str, detail: str) -> None:
    claim = Claim(unchanged=(), feeds=((1, "loss"),))
    after = recording(
        *(backward(i, name) for i, name in enumerate(calls)), *(step(1.0, feeds=f) for f in feeds)
    )
    (found,) = [one for one in check(claim, Effect.CHANGES, after, after) if one.name == "feeds"]
    assert (found.verdict, found.detail) == (verdict, detail)


@pytest.mark.parametrize(
    ("shares", "takers", "verdict"),
    [
        # The first call is for the other optimizer, and was cut off from this one on purpose.
        ([{(1, 0): 7.0}, {(0, 0): 3.0}], [1, 0], "holds"),
        # The second call is for this optimizer, and has lost what the original's graph gives.
        ([{(1, 0): 7.0}, {(0, 0): 4.0}], [1, 0], "fails"),
        # Nobody consumes the first call: it is not excused.
        ([{(1, 0): 7.0}, {(0, 0): 3.0}], [None, 0], "fails"),
        # Cut off from everything: nobody consumes the second call any more, so it is this optimizer's.
        ([{(1, 0): 7.0}, {}], [1, None], "fails"),
    ],
)
def test_losses_that_a_helper_gives_one_name_are_told_apart_by_who_consumes_them(
    shares: list[dict[tuple[int, int], float]], takers: list[int | None], verdict: str
) -> None:
    def run(given: list[dict[tuple[int, int], float]]) -> Recording:
        calls = [
            backward(number, shares={place: values(share) for place, share in one.items()})
            for number, one in enumerate(given)
        ]
        consuming = [
            step(1.0, of=taker, feeds=(number,)) for number, taker in enumerate(takers) if taker is not None
        ]
        return recording(*calls, *consuming)

    reference = run([{(0, 0): 5.0, (1, 0): 7.0}, {(0, 0): 3.0}])
    claim = Claim("E1", 3, feeds=((1, "loss"),))
    before = recording(failure("E1", 3))
    after = run(shares)
    checks = check(claim, Effect.REPAIRS, before, after, reference, UpdatesOff(reference, after))
    assert verdicts(checks, "same-loss") == [verdict]


def test_feeds_of_an_optimizer_that_is_never_constructed() -> None:
    claim = Claim(unchanged=(), feeds=((2, "loss"),))
    runs = recording(backward(0), step(1.0), optimizers=1)
    (found,) = [one for one in check(claim, Effect.CHANGES, runs, runs) if one.name == "feeds"]
    assert (found.verdict, found.detail) == ("not checked", "the optimizer of line 2 was never constructed")


def test_a_run_with_updates_off_that_ends_before_an_optimizer_is_constructed() -> None:
    before, after = (recording(backward(0), step(number), optimizers=1) for number in (1.0, 2.0))
    still = UpdatesOff(before, recording(optimizers=0))
    checks = check(Claim(unchanged=()), Effect.CHANGES, before, after, None, still)
    assert verdicts(checks, "entries") == ["not checked"]


# -- without an optimizer ------------------------------------------------------------------------


def test_leaf_gradients() -> None:
    def run(*gradients: float, end: float | None = None) -> Recording:
        calls = [backward(i, leaves={"x": values(g)}) for i, g in enumerate(gradients)]
        last = gradients[-1] if end is None else end
        return replace(recording(*calls, optimizers=0), leaves={"x": values(last)})

    def found(before: Recording, after: Recording) -> list[str]:
        return verdicts(check(Claim(), Effect.PRESERVES, before, after), "leaves")

    assert found(run(1.0, 2.0), run(1.0, 2.0)) == ["holds", "holds"]
    assert found(run(1.0, 2.0), run(1.0, 3.0)) == ["fails"]
    assert found(run(1.0, 2.0), run(1.0, 2.0, end=4.0)) == ["holds", "fails"]
    missing = replace(run(1.0), leaves={"x": None})
    checks = check(Claim(), Effect.PRESERVES, run(1.0), missing)
    assert "x has no gradient in the fixed program" in details(checks, "leaves")


# -- telling -------------------------------------------------------------------------------------


def test_a_check_that_fails_on_one_seed_fails() -> None:
    good, bad = Check("kept", "holds", "fine"), Check("kept", "fails", "b is lost")
    unknown = Check("kept", "not checked", "who knows")
    assert merge((0, 1), [[good], [bad]]) == [Check("kept", "fails", "b is lost (seed 1)")]
    assert merge((0, 1), [[unknown], [good]]) == [Check("kept", "holds", "fine (on 1 of 2 seeds)")]
    assert merge((0, 1), [[unknown], [unknown]]) == [unknown]
    assert merge((7,), [[bad]]) == [bad]
    ran, cut = Check("fixed-runs", "holds", "ran"), Check("fixed-runs", "not checked", "cut")
    assert merge((0, 1), [[ran], [cut]]) == [cut]
    apart = [Check("feeds", "holds", "x", "a"), Check("feeds", "fails", "y", "b")]
    assert merge((0,), [apart]) == apart


def test_a_run_in_one_line() -> None:
    assert summary(recording(*LOOP)) == "ran 2 steps of opt"
    assert summary(recording(*LOOP, step(1.0, of=1))) == "ran 2 steps of opt and 1 of other"
    assert summary(recording(backward(0), optimizers=0)) == "ran 1 backward call"
    crash = failure("E1", 27, receiver="lossG")
    assert summary(recording(*LOOP[:2], crash)) == (
        f"raised {quoted('E1')} at line 27 in lossG.backward() after 1 step of opt"
    )
    added = failure("E1", 27, receiver="lossD + lossG")
    assert summary(recording(added)) == (
        f"raised {quoted('E1')} at line 27 in (lossD + lossG).backward() after 0 backward calls"
    )
    assert summary(recording(*LOOP[:2], ending="seconds")) == "ran 1 step of opt, until its time was spent"


def test_whether_a_program_does_the_same_twice() -> None:
    assert same_course(recording(*LOOP), recording(*LOOP))
    assert not same_course(recording(*LOOP), recording(*LOOP[:3], step(9.0)))


def test_source_statements_and_names() -> None:
    text = (
        "for x in f(\n    y\n):\n    opt = SGD(\n        z\n    )\n"
        "a, b = SGD(), SGD()\nself.o = SGD()\nd = {'g': SGD(), 'h': [SGD()]}\nl = [SGD()]\nd['k'] = SGD()\n"
    )
    source = Source(text)
    assert source.statement(2) == (1, 3)
    assert source.statement(5) == (4, 6)
    calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and ast.unparse(n.func) == "SGD"]
    names = {source.constructed((n.lineno, n.end_lineno, n.col_offset, n.end_col_offset)) for n in calls}
    assert names == {"opt", "a", "b", "self.o", "d['g']", "l[0]", None}
    # Before Python 3.11 only the line is known.
    assert source.constructed((8, None, None, None)) == "self.o"


def test_source_receivers() -> None:
    source = Source(
        "a.backward(); acc.backward(b)\nt.fit(model)\n(c +\n d).backward()\nx.backward(); y.backward()\n"
    )
    assert source.receiver((1, 1, 0, 12), True) == "a"
    assert source.receiver((1, 1, 14, 29), False) == "b"
    assert source.receiver((2, 2, 0, 12), False) is None
    assert source.receiver((3, 4, 0, 14), True) == "c + d"
    # Before Python 3.11 only the line is known.
    assert source.receiver((3, None, None, None), True) == "c + d"
    assert source.receiver((5, None, None, None), True) is None
    assert Source("x = (").receiver((1, 1, 0, 1), True) is None


def leaf_call(index: int, gradient: float) -> RecordedBackward:
    return replace(backward(index), leaves={"w": values(gradient)}, weights={"w": values(0.0)})


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ((1.0, 2.0, 5.0), "holds"),
        ((1.0, 2.5, 5.0), "fails"),
        ((0.5, 2.0, 5.0), "fails"),
        ((1.0, 3.0, 6.0), "not checked"),
    ],
)
def test_a_gradient_that_is_cleared_is_that_of_its_own_pass(after: tuple[float, ...], verdict: str) -> None:
    one, other = (
        replace(recording(*map(leaf_call, range(3), run)), optimizers=()) for run in ((1.0, 3.0, 6.0), after)
    )
    checks = check(Claim(unchanged=(), clears=True), Effect.CHANGES, one, other)
    assert verdicts(checks, "cleared") == [verdict]


def test_leaves_beside_optimizers_are_not_recorded() -> None:
    one, other = recording(backward(0), step(1.0)), recording(backward(0), step(1.0))
    checks = check(Claim(unchanged=(), clears=True), Effect.CHANGES, one, other)
    assert verdicts(checks, "cleared") == ["not checked"]
