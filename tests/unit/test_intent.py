"""Whom a loss is meant for and by what that is told; which networks it leaks into; what breaks a clause."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from gradfix.autograd.graph import Backward, Event, OptimizerState
from gradfix.autograd.program import analyze
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, steps
from gradfix.rules.clauses import KEPT, UNKNOWN, Verdict, breaches, cleared_before_use, strays, used_by_nobody
from gradfix.rules.intent.leak_paths import leak_path, opponents, passing_through, takes_turns
from gradfix.rules.intent.purpose import Evidence, purpose

PLAYERS = """\
import torch
from torch import nn

g = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 5))
d = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
opt_g = torch.optim.SGD(g.parameters(), lr=0.1)
opt_d = torch.optim.SGD(d.parameters(), lr=0.1)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(2, 1), torch.zeros(2, 1)
for real in torch.randn(4, 2, 5):
"""
IN_TURN = """\
    fake = g(torch.randn(2, 3))
    opt_d.zero_grad()
    d_loss = bce(d(real), ones) + bce(d(fake{cut}), zeros)
    d_loss.backward(retain_graph=True)
    opt_d.step()
    opt_g.zero_grad()
    g_loss = bce(d(fake), ones)
    g_loss.backward()
    opt_g.step()
"""
AT_ONCE = """\
    opt_g.zero_grad(), opt_d.zero_grad()
    fake = g(torch.randn(2, 3))
    g_loss = bce(d(fake), ones)
    g_loss.backward()
    d_loss = bce(d(real), ones) + bce(d(fake.detach()), zeros)
    {clear}
    d_loss.backward()
    opt_d.step(), opt_g.step()
"""
THAWED = """\
    opt_g.zero_grad(), opt_d.zero_grad()
    d.requires_grad_(False)
    g_loss = d(g(torch.randn(2, 3))).square().mean()
    g_loss.backward()
    d.requires_grad_(True)
    d_loss = (d(g(torch.randn(2, 3))) - d(real)).mean()
    d_loss.backward()
    opt_g.step(), opt_d.step()
"""
JOINT = """\
    opt_g.zero_grad(), opt_d.zero_grad()
    loss = (d(g(torch.randn(2, 3))) - 1).square().mean()
    loss.backward()
    opt_d.step(), opt_g.step()
"""


def run_of(body: str) -> tuple[Run, dict[str, Backward], dict[str, OptimizerState]]:
    """The main run, its first backward of each loss by name, and the optimizers by name."""
    text = PLAYERS + body
    (entry,) = analyze(ast.parse(text), text, Path("script.py")).entry_points
    run = entry.runs[0]
    losses: dict[str, Backward] = {}
    for event in backwards(run):
        losses.setdefault(ast.unparse(event.site).split(".")[0], event)
    return run, losses, dict(zip(("opt_g", "opt_d"), (one.state for one in run.optimizers)))


@pytest.mark.parametrize(
    ("body", "loss", "optimizer", "evidence"),
    [
        (IN_TURN.format(cut=".detach()"), "d_loss", "opt_d", Evidence.STEPS),
        (IN_TURN.format(cut=".detach()"), "g_loss", "opt_g", Evidence.FOOLS),
        (AT_ONCE.format(clear="pass"), "g_loss", "opt_g", Evidence.FOOLS),  # Though opt_d steps on it first.
        (THAWED, "d_loss", "opt_d", Evidence.THAWED),  # Though opt_g steps on it first.
        (THAWED, "g_loss", "opt_g", Evidence.STEPS),
    ],
)
def test_a_loss_is_meant_for_an_optimizer_and_something_says_so(
    body: str, loss: str, optimizer: str, evidence: Evidence
) -> None:
    run, losses, optimizers = run_of(body)
    assert purpose(run, losses[loss]) == (optimizers[optimizer], evidence)


def test_a_loss_that_no_step_uses_is_meant_for_nobody_that_is_known() -> None:
    run, losses, _ = run_of("    loss = d(real).mean()\n    loss.backward()\n    opt_d.zero_grad()\n")
    assert purpose(run, losses["loss"]) is None


def test_a_loss_leaks_into_what_feeds_its_own_network_and_has_an_opponent_there() -> None:
    run, losses, optimizers = run_of(IN_TURN.format(cut=""))
    path = leak_path(run, losses["d_loss"])
    assert path is not None
    assert (path.optimizer, path.leaves) == (optimizers["opt_d"], set(optimizers["opt_g"].owned()))
    assert [*opponents(run, losses["d_loss"], path)] == [losses["g_loss"]]
    assert takes_turns(run, losses["d_loss"], losses["g_loss"], path)
    assert leak_path(run, losses["g_loss"]) is None


def test_two_parts_that_one_loss_trains_have_no_opponent() -> None:
    run, losses, _ = run_of(JOINT)
    path = leak_path(run, losses["loss"])
    assert path is not None
    assert not any(opponents(run, losses["loss"], path))
    assert not strays(run)


def test_what_passes_through_a_network_is_meant_for_the_one_behind_it() -> None:
    run, losses, optimizers = run_of(AT_ONCE.format(clear="pass"))
    events = [losses["g_loss"], losses["d_loss"]]
    assert passing_through(run, events[0], optimizers["opt_d"], events) == (optimizers["opt_g"], events[1])
    assert passing_through(run, events[1], optimizers["opt_d"], events) is None


def test_no_other_loss_is_broken_by_what_nothing_clears() -> None:
    run, losses, optimizers = run_of(AT_ONCE.format(clear="pass"))
    (stray,) = strays(run).values()
    assert (stray.foreign, stray.own) == (losses["g_loss"], losses["d_loss"])
    assert (stray.step.optimizer, stray.meant_for) == (optimizers["opt_d"], optimizers["opt_g"])
    assert not strays(run_of(AT_ONCE.format(clear="opt_d.zero_grad()"))[0])


@pytest.mark.parametrize(
    ("order", "verdict"),
    [("loss.backward(), opt_d.zero_grad()", None), ("opt_d.zero_grad(), loss.backward()", KEPT)],
)
def test_a_gradient_is_used_unless_it_is_cleared_before_the_step(order: str, verdict: Verdict | None) -> None:
    run, losses, _ = run_of(f"    loss = d(real).mean()\n    {order}\n    opt_d.step()\n")
    judged = cleared_before_use(run, steps(run)[0])
    assert (judged if isinstance(judged, Verdict) else None) is verdict
    if not isinstance(judged, Verdict):
        assert (judged.backward, judged.step) == (losses["loss"], steps(run)[0])


def test_what_is_cleared_before_any_step_was_for_nobody() -> None:
    run, losses, _ = run_of(IN_TURN.format(cut=""))
    path = leak_path(run, losses["d_loss"])
    assert path is not None
    clearing = used_by_nobody(run, losses["d_loss"], path.leaves)
    assert not isinstance(clearing, Verdict)
    assert [ast.unparse(zero.site) for zero in clearing] == ["opt_g.zero_grad()"]
    assert used_by_nobody(run, losses["g_loss"], path.leaves) is KEPT


@pytest.mark.parametrize(
    ("verdicts", "found"),
    [([UNKNOWN, "second", "third"], "second"), (["first", KEPT], None), ([UNKNOWN], None)],
)
def test_a_clause_is_broken_at_a_place_where_no_iteration_keeps_it(
    verdicts: list[str | Verdict], found: str | None
) -> None:
    run, _, _ = run_of(JOINT)
    events = [event for event in run.events if isinstance(event, Backward)]
    judged = iter([*verdicts, *[UNKNOWN] * len(events)])
    judge: Callable[[Event], str | Verdict] = lambda event: next(judged)  # noqa: E731
    assert breaches([events[0]] * len(verdicts), judge).get(events[0].site) == found
