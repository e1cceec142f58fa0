"""A condition is decided both ways only where autograd may go by what stands under it, or what it sets."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gradfix.autograd.program import analyze

TRAINING = """\
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def train(batches, measure, again):
    best, scale = 0.0, 1.0
    for x, y in batches:
        score = measure(x)
{condition}
        loss = scale * (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{after}
"""


def _runs(condition: str, after: str = "") -> int:
    text = TRAINING.format(condition=condition, after=after)
    program = analyze(ast.parse(text), text, Path("train.py"))
    (entry,) = program.entry_points
    return len(entry.all_runs())


@pytest.mark.parametrize(
    ("condition", "after"),
    [
        ("        if again > 3:\n            best = score", "        print(best)"),
        ("        if again > 3:\n            best = score", "        torch.save(best, 'best.pt')"),
        ("        if again > 3:\n            best = score", "        worst = best + 1\n        print(worst)"),
        ("        if again > 3:\n            best = score", "        if best:\n            print(best)"),
    ],
)
def test_what_is_only_told_is_not_followed_twice(condition: str, after: str) -> None:
    assert _runs(condition, after) == 1


@pytest.mark.parametrize(
    ("condition", "after"),
    [
        ("        if again > 3:\n            scale = net(x)", ""),
        ("        if again > 3:\n            best = score\n        scale = best", ""),
        ("        if again > 3:\n            best = score", "    return best"),
        ("        if again > 3:\n            best = score", "        if best:\n            break"),
        ("        if again > 3:\n            best = score", "        again.best = best"),
        ("        if again > 3:\n            best = score", "        x.keep(best)"),
        (
            "        if again > 3:\n            best = score",
            "        if (scale := best):\n            pass",
        ),
    ],
)
def test_what_autograd_may_go_by_is(condition: str, after: str) -> None:
    assert _runs(condition, after) == 2
