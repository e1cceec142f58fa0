"""Values that passes of a loop only move by parameters: whether each is to begin anew is not certain."""

from __future__ import annotations

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

LOOP = """
import torch
from torch import nn

net = nn.Linear(4, 4)
cell = nn.RNNCell(4, 4)
pose = nn.Parameter(torch.zeros(4))
weight = nn.Parameter(torch.eye(4))
opt = torch.optim.SGD([*net.parameters(), *cell.parameters(), pose, weight], lr=0.1)
h, x = torch.randn(8, 4), torch.randn(8, 4)
goal, goals = torch.randn(8, 4), torch.randn(5, 8, 4)
for t in range(5):
    h = {update}
    loss = ((h - {goal}) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(t, loss.item())
"""


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(verify=False))
    assert isinstance(prepared, Options)
    return prepared


@pytest.mark.parametrize(
    ("update", "goal", "certain"),
    [
        # Nothing but parameters goes in: a state, or a value that each pass should have computed anew.
        ("h * torch.exp(pose)", "goal", False),
        ("h @ torch.matrix_exp(torch.diag(pose))", "goal", False),
        ("torch.tanh(h @ weight)", "goal", False),
        ("torch.tanh(h @ weight)", "goals[t]", False),
        ("h - pose * h.pow(2)", "goal", False),
        ("net(h).tanh()", "goal", False),
        # A series: each pass has an input or a target of its own, or the data goes in again.
        ("net(h).tanh()", "goals[t]", True),
        ("net(h).tanh()", "torch.randn(8, 4)", True),
        ("torch.tanh(h @ weight + torch.randn(8, 4))", "goal", True),
        ("torch.tanh(h @ weight + x)", "goal", True),
        ("torch.tanh(torch.cat([h, x], 1) @ torch.cat([weight, weight]))", "goal", True),
        ("net(h + torch.randn(8, 4)).tanh()", "goal", True),
        ("cell(x, h)", "goal", True),
    ],
)
def test_what_is_only_moved_has_two_repairs_to_choose_from(
    update: str, goal: str, certain: bool, options: Options
) -> None:
    parsed = source.parse("train.py", LOOP.format(update=update, goal=goal).encode(), 1 << 20)
    assert isinstance(parsed, Source)
    (finding,) = driver.findings(parsed, options)
    assert finding.code == "carried-hidden-state"
    assert bool(finding.fixes) is certain
    assert ("should start from the value before the loop" in finding.advice) is not certain
