"""What a ledger tells of its entries."""

from __future__ import annotations

from dataclasses import replace

from test_claims import backward, recording, step

from gradfix.core import intent
from gradfix.core.ledger import BackwardCall, Clearing, GradientFlow, Ledger, OptimizerStep, Term, Versions
from gradfix.verify.judging import owned
from gradfix.verify.recording.records import RecordedClearing

FRESH, MOVED = Versions(0, 0), Versions(0, 1)


def call(index: int, **gives: Versions) -> BackwardCall:
    reached = frozenset[object](gives)
    term = Term(index, 1, reached, reached)
    return BackwardCall(
        index, f"loss {index}", (term,), GradientFlow([reached], [frozenset()]), gives=dict(gives)
    )


def test_the_fate_of_an_entry() -> None:
    ledger = Ledger(
        (call(0, a=FRESH, b=FRESH, c=FRESH, d=FRESH),),
        (OptimizerStep(0, 0, {"a": (0,)}), OptimizerStep(0, 1, {"a": (0,)})),
        (Clearing({"a": (0,), "b": (0,)}), Clearing({"b": (0,)})),
        lent=frozenset("d"),
    )
    told = {entry.parameter: entry for entry in ledger.entries}
    assert [told[one].fate for one in "abcd"] == ["consumed", "cleared", "left", "unknown"]
    assert told["a"].steps == (0, 1)
    assert told["b"].clearing == 0
    assert ledger.consumers == {0: {"a": 0}}


def test_what_is_not_certain_to_come_has_no_known_fate() -> None:
    first = call(0, a=FRESH)
    ledger = Ledger((BackwardCall(0, "", gives=first.gives, unsure=frozenset("a")),), ())
    assert [entry.fate for entry in ledger.entries] == ["unknown"]


def test_what_is_computed_with_former_weights() -> None:
    """All that a call gives is outdated where some of the weights that it goes through have moved."""
    calls = call(0, a=FRESH), call(1, a=MOVED, b=FRESH), call(2, a=Versions(None, 2))
    steps = (
        OptimizerStep(0, 0, {"a": (0,)}),
        OptimizerStep(1, 0, {"b": (1,)}),
        OptimizerStep(0, 1, {"a": (2,)}),
    )
    outdated = list(intent.outdated(Ledger(calls, steps)))
    assert [(entry.call, entry.parameter) for entry in outdated] == [(1, "b")]


def test_a_loss_that_a_step_uses_twice() -> None:
    """The same term in two calls, the second of which has another one as well."""
    first = call(0, a=FRESH)
    second = BackwardCall(
        1, "sum", (first.terms[0], call(2, a=FRESH).terms[0]), first.flow, gives=first.gives
    )
    once = OptimizerStep(0, 0, {"a": (0,)})
    twice = OptimizerStep(0, 1, {"a": (0, 1)})
    (found,) = Ledger((first, second), (once, twice)).doubled()
    assert (found.step, found.parameter, found.count) == (1, "a", 2)
    assert found.calls == (first, second)


def test_parameters_have_other_names() -> None:
    made = call(0, a=MOVED).renamed(lambda name: (str(name).upper(),))
    assert made.gives == {"A": MOVED}
    assert made.reached == made.terms[0].direct == made.flow.layers[0] == frozenset("A")


def test_optimizers_in_another_order_have_other_entries() -> None:
    """A judged version may make its optimizers in another order than the original."""
    parameters = (0, 0), (1, 0)
    through = BackwardCall(0, "loss", gives=dict.fromkeys(parameters[:1], FRESH))
    run = recording(
        backward(0, reached=frozenset(parameters[:1]), through=through),
        step(1.0),
        RecordedClearing({parameters[0]: (0,)}),
    )
    told = owned.in_order(run, [1, 0]).ledger
    assert told is not None
    (entry,) = told.entries
    assert (entry.parameter, entry.steps, entry.clearing) == ((1, 0), (0,), 0)
    assert told.steps[0].optimizer == 1


def test_an_optimizer_that_is_made_anew_finds_what_is_there() -> None:
    """Its parameters are those of the first one, which has got the gradient."""
    through = BackwardCall(0, "loss", gives={(0, 0): FRESH})
    run = recording(
        backward(0, reached=frozenset({(0, 0)}), through=through), step(1.0), step(1.0, of=1), optimizers=2
    )
    made = tuple(replace(one, tensors=(7,)) for one in run.optimizers)
    told = replace(run, optimizers=made).ledger
    assert told is not None
    assert {entry.parameter: entry.steps for entry in told.entries} == {(0, 0): (0,), (1, 0): (1,)}
