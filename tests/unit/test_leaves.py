"""What is trained by hand and is no leaf: one mistake, and said once."""

from __future__ import annotations

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


PROGRAM = """
import torch

w = {made}
for _ in range(9):
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    loss = (x @ w - y).pow(2).mean()
    loss.backward()
    {update}
"""
BY_HAND = "w.data -= 0.1 * w.grad; w.grad = None"
SCALED = "torch.randn(3, 1, requires_grad=True) * 0.01"


@pytest.mark.parametrize(
    ("made", "update", "fixed"),
    [
        # The multiple is computed before the loop, so that its graph is freed: that is a symptom.
        (SCALED, BY_HAND, "w = (torch.randn(3, 1) * 0.01).requires_grad_()"),
        (
            "torch.empty(3, 1).normal_().requires_grad_().view(3, 1)",
            "w.data.sub_(0.1 * w.grad); w.grad = None",
            "w = torch.empty(3, 1).normal_().view(3, 1).requires_grad_()",
        ),
        (
            "torch.zeros(3, 1, requires_grad=True)",
            "w = w - 0.1 * w.grad",
            "w = (w - 0.1 * w.grad).detach().requires_grad_()",
        ),
        # Its gradient is used once more behind the update: a new leaf would have none yet.
        (
            "torch.zeros(3, 1, requires_grad=True)",
            "w = w - 0.1 * w.grad\n    w.grad.zero_()",
            "w.data -= 0.1 * w.grad\n    w.grad.zero_()",
        ),
    ],
)
def test_what_is_trained_is_made_a_leaf(options: Options, made: str, update: str, fixed: str) -> None:
    text = PROGRAM.format(made=made, update=update)
    read = source.parse("train.py", text.encode(), 1 << 24)
    assert isinstance(read, Source)
    result = driver.repair(read, options)
    assert [one.finding.code for one in (*result.applied, *result.remaining)] == ["gradient-of-non-leaf"]
    assert fixed in result.after.decode()


@pytest.mark.parametrize(
    "made",
    [
        "torch.zeros(3, 1, device=device, requires_grad=True).to(device)",
        "torch.zeros_like(other, requires_grad=True).to(device)",
        "torch.zeros(3, 1, requires_grad=True).to('cpu')",
    ],
)
def test_what_may_be_there_already_is_not_told(options: Options, made: str) -> None:
    text = PROGRAM.format(made=made, update=BY_HAND).replace(
        "import torch\n", "import torch\nfrom other import *\n"
    )
    read = source.parse("train.py", text.encode(), 1 << 24)
    assert isinstance(read, Source)
    result = driver.repair(read, options)
    assert not result.applied
    assert not result.remaining
