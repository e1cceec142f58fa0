"""Steps that wait for several micro-batches: losses that are not divided, and passes that are left over."""

from __future__ import annotations

import pytest

from gradfix.core.codemod import Severity
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

PROGRAM = """
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.{optimizer}
criterion = nn.{criterion}
every = 4
for epoch in range(9):
    {before}
    for i, (x, y) in enumerate(batches()):
        {ahead}
        loss = criterion(net(x), y)
        {loss}.backward()
        if {test}:
            opt.step()
            opt.zero_grad()
"""
USUAL = {
    "optimizer": "SGD(net.parameters(), lr=0.1)",
    "criterion": "MSELoss()",
    "before": "print(epoch)",
    "ahead": "x = x.float()",
    "loss": "loss",
    "test": "(i + 1) % every == 0",
}


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare(
        [], RequestedOptions(unsafe_fixes=True, verify=False, min_severity=Severity.INFO)
    )
    assert isinstance(prepared, Options)
    return prepared


def found(options: Options, **how: str) -> list[str]:
    """The names of what is found in the program, written another way."""
    text = PROGRAM.format(**(USUAL | how))
    read = source.parse("train.py", text.encode(), 1 << 24)
    assert isinstance(read, Source)
    result = driver.repair(read, options)
    told = [one.finding for one in result.remaining] + [one.finding for one in result.applied]
    return sorted(finding.code for finding in told if finding.code.endswith("accumulation"))


def test_both_are_told_of_a_plain_accumulation(options: Options) -> None:
    assert found(options) == ["ragged-accumulation", "undivided-accumulation"]


@pytest.mark.parametrize(
    "how",
    [
        {"loss": "(loss / every)"},
        {"loss": "(0.25 * loss)"},
        {"loss": "(loss + 1e-4 * net.weight.pow(2).sum())"},
        {"criterion": "MSELoss(reduction='sum')"},
        {"optimizer": "SGD(net.parameters(), lr=0.1 / every)"},
        {"test": "(i + 1) % 1 == 0"},
        {"test": "True"},
    ],
)
def test_what_is_divided_or_no_mean_is_not_told(options: Options, how: dict[str, str]) -> None:
    assert "undivided-accumulation" not in found(options, **how)


@pytest.mark.parametrize(
    "how",
    [
        {"before": "opt.zero_grad()"},
        {"ahead": "if i % every == 0: opt.zero_grad()"},
        {"test": "(i + 1) % every == 0 or i + 1 == 10"},
        {"test": "(i + 1) % 1 == 0"},
        {"test": "(i + epoch) % every == 0"},
    ],
)
def test_what_leaves_nothing_behind_is_not_told(options: Options, how: dict[str, str]) -> None:
    assert "ragged-accumulation" not in found(options, **how)


COUNTED = """
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(gradient_accumulation_steps=2)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net, opt, loader = accelerator.prepare(net, opt, batches())
for x, y in loader:
    with accelerator.accumulate(net):
        loss = nn.functional.mse_loss(net(x), y)
        accelerator.backward(loss)
        opt.step()
"""


def test_what_a_framework_counts_is_cleared_behind_the_step(options: Options) -> None:
    read = source.parse("train.py", COUNTED.encode(), 1 << 24)
    assert isinstance(read, Source)
    result = driver.repair(read, options)
    assert result.after.decode() == COUNTED + "        opt.zero_grad()\n"


TWO_PLAYERS = """
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(gradient_accumulation_steps=2)
G, D = nn.Linear(3, 4), nn.Linear(4, 1)
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
G, D, og, od, loader = accelerator.prepare(G, D, og, od, batches())
for real in loader:
    with accelerator.accumulate(D):
        d_loss = D(G(torch.randn(8, 3)).detach()).mean() - D(real).mean()
        accelerator.backward(d_loss)
        od.step()
    with accelerator.accumulate(G):
        g_loss = -D(G(torch.randn(8, 3))).mean()
        accelerator.backward(g_loss)
        og.step()
"""


def test_of_two_players_none_is_cleared_in_the_pass_that_steps(options: Options) -> None:
    """The discriminator gets what the generator's loss leaves, too, so clearing it alone mends nothing."""
    read = source.parse("train.py", TWO_PLAYERS.encode(), 1 << 24)
    assert isinstance(read, Source)
    result = driver.repair(read, options)
    assert result.after.decode() == TWO_PLAYERS + "        og.zero_grad()\n"
    assert [reported.finding.code for reported in result.remaining] == ["missing-zero-grad"]
