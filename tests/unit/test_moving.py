"""What is computed before a loop or a closure moves into it, if nobody else would notice."""

from __future__ import annotations

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

LOOP = """
import torch
from torch import nn

raw, x, y = nn.Parameter(torch.tensor(1.5)), torch.randn(8), torch.randn(8)
opt = torch.optim.{optimizer}([raw], lr=0.1)
scale = torch.exp(raw{more})
{between}
for _ in range(3):
    loss = (scale * x - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
{after}
"""
CLOSURE = """
import torch
from torch import nn

raw, x, y = nn.Parameter(torch.tensor(1.5)), torch.randn(8), torch.randn(8)
opt = torch.optim.LBFGS([raw], lr=0.1)
scale = torch.exp(raw)
def closure({given}):
    opt.zero_grad()
    loss = ({used} * x - y).pow(2).mean()
    loss.backward()
    return loss
opt.step({called})
"""


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(verify=False))
    assert isinstance(prepared, Options)
    return prepared


def fixes(text: str, options: Options) -> list[str]:
    """The code of the one finding, and its fixes in words."""
    parsed = source.parse("train.py", text.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    (finding,) = driver.findings(parsed, options)
    assert finding.code == "graph-used-twice"
    return [fix.message for fix in finding.fixes]


@pytest.mark.parametrize(
    ("more", "between", "after", "moves"),
    [
        ("", "", "", True),
        ("", "print(x.mean())", "print(raw)", True),
        (" + x.mean()", "", "", True),
        # Read elsewhere, too: it would not be there any more, or another one.
        ("", "print(scale)", "", False),
        ("", "", "print(scale)", False),
        ("", "scale = scale * 2", "", True),
        # Changed on the way, or made of what is.
        ("", "scale *= 2", "", False),
        (" + x.mean()", "x = x + 1", "", False),
    ],
)
def test_a_loop_computes_what_its_step_moves(
    more: str, between: str, after: str, moves: bool, options: Options
) -> None:
    text = LOOP.format(optimizer="SGD", more=more, between=between, after=after)
    assert fixes(text, options) == ["compute `scale` in every iteration"] * moves


@pytest.mark.parametrize(
    ("given", "used", "called", "moves"),
    [
        ("", "scale", "closure", True),
        # Each call may be given another one.
        ("scale=scale", "scale", "closure", False),
        ("given", "given", "lambda: closure(scale)", False),
    ],
)
def test_a_closure_computes_what_its_optimizer_moves(
    given: str, used: str, called: str, moves: bool, options: Options
) -> None:
    text = CLOSURE.format(given=given, used=used, called=called)
    assert fixes(text, options) == ["compute `scale` in every call of `closure`"] * moves
