"""Gradients that a script writes into itself: zeros clear them, and who changes old ones keeps account."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def found(code: str, options: Options) -> list[tuple[str, list[str]]]:
    """The findings in a program: the mistake, and the fixes that are offered."""
    parsed = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    return [(f.code, [fix.message for fix in f.fixes]) for f in driver.findings(parsed, options)]


LOOP = """
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(4, 3)).tanh().mean()
    loss.backward()
{before}
    optimizer.step()
{after}
"""


def loop(before: str = "pass", after: str = "pass") -> str:
    return LOOP.format(before=indent(dedent(before), "    "), after=indent(dedent(after), "    "))


EACH = "for p in net.parameters():\n    "


@pytest.mark.parametrize(
    "write",
    [
        EACH + "p.grad.zero_()",
        EACH + "p.grad.data.zero_()",
        EACH + "p.grad.fill_(0)",
        EACH + "p.grad.mul_(0)",
        EACH + "p.grad *= 0",
        EACH + "p.grad[:] = 0",
        EACH + "p.grad[...] = 0.0",
        EACH + "p.grad.data[:] = 0",
        EACH + "p.grad.copy_(torch.zeros_like(p))",
        EACH + "p.grad -= p.grad",
        EACH + "p.grad = torch.zeros_like(p)",
        "net.weight.grad.zero_()\nnet.bias.grad.zero_()",
        "net.weight.grad *= 0\nnet.bias.grad *= 0",
        "torch._foreach_zero_([p.grad for p in net.parameters()])",
        # A momentum by hand: what has been consumed is to stay in part.
        EACH + "p.grad *= 0.9",
        EACH + "p.grad.mul_(0.5)",
    ],
)
def test_who_writes_into_gradients_that_were_consumed_sees_to_them(write: str, options: Options) -> None:
    assert not found(loop(after=write), options)


@pytest.mark.parametrize(
    "write",
    [
        EACH + "p.grad.clamp_(-1, 1)",
        EACH + "p.grad.data.clamp_(-1, 1)",
        EACH + "p.grad *= 0.5",
        EACH + "p.grad[0] = 0",
        "nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
        "print(net.weight.grad.norm())",
    ],
)
def test_what_is_changed_before_its_step_is_not_cleared(write: str, options: Options) -> None:
    assert [code for code, _ in found(loop(before=write), options)] == ["missing-zero-grad"]


TWICE = """
import torch
from torch import nn

net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    near, far = net(torch.randn(4, 3)).tanh().mean(0)
    optimizer.zero_grad()
    {first}
    {between}
    {second}
    optimizer.step()
"""


@pytest.mark.parametrize(
    "between",
    [
        "nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
        "nn.utils.clip_grad_value_(net.parameters(), 1.0)",
        "net.weight.grad.mul_(0.5)",
        "net.weight.grad[0] = 0",
    ],
)
def test_what_is_changed_between_two_backwards_is_no_sum(between: str, options: Options) -> None:
    kept = "near.backward(retain_graph=True)", "near.backward()"
    assert not found(TWICE.format(first=kept[0], between=between, second=kept[1]), options)
    told = found(TWICE.format(first=kept[1], between=between, second="far.backward()"), options)
    assert told == [("graph-used-twice", ["keep the graph for the later backward (`retain_graph=True`)"])]
    ((_, fixes),) = found(TWICE.format(first=kept[1], between="pass", second="far.backward()"), options)
    assert fixes[0] == "call backward once, on the sum of the losses"
