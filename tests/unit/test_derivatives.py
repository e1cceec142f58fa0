"""What the derivative of an operation is computed of: a backward through a derivative goes on into that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradfix.autograd.operators import derivative_of

torch = pytest.importorskip("torch")

X = torch.rand(2, 3, 8, 8)
DERIVED: dict[str, Callable[[Any], Any]] = {
    "nn.Conv2d": torch.nn.Conv2d(3, 4, 3),
    "nn.ConvTranspose2d": torch.nn.ConvTranspose2d(3, 4, 3),
    "nn.Linear": torch.nn.Linear(8, 8),
    "nn.BatchNorm2d": torch.nn.BatchNorm2d(3),
    "nn.LayerNorm": torch.nn.LayerNorm(8),
    "nn.GroupNorm": torch.nn.GroupNorm(1, 3),
    "nn.ReLU": torch.nn.ReLU(),
    "nn.LeakyReLU": torch.nn.LeakyReLU(0.2),
    "nn.GELU": torch.nn.GELU(),
    "nn.Dropout": torch.nn.Dropout(0.5),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "abs": torch.abs,
    "softmax": lambda x: x.softmax(-1),
    "pow": lambda x: x.pow(2),
    "norm": lambda x: x.norm(),
    "mul": lambda x: x.mul(X),
    "mul.scalar": lambda x: x.mul(3),
    "matmul": lambda x: x.matmul(torch.ones(8, 8)),
    "div": lambda x: x.div(X + 1),
    "max": lambda x: x.max(),
    "clamp": lambda x: x.clamp(0.2, 0.8),
    "gather": lambda x: x.gather(1, torch.zeros(2, 1, 8, 8, dtype=torch.long)),
    "mean": lambda x: x.mean(),
}


@pytest.mark.parametrize("name", DERIVED)
def test_a_derivative_leads_to_what_it_is_computed_of(name: str) -> None:
    """Backwards through a derivative go on into the operand exactly where the table says so."""
    operand = X.clone().requires_grad_() * 1
    (slope,) = torch.autograd.grad(DERIVED[name](operand).sum(), operand, create_graph=True)
    met, waiting = set(), [slope.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in met:
            met.add(node)
            waiting += [behind for behind, _ in node.next_functions]
    assert (operand.grad_fn in met) is (derivative_of(name) is not None)
