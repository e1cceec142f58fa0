"""Gradients that are zero in theory: what is there is rounding, which another order of summation changes.

Each program is held against itself with the samples of a batch in another order: every gradient is a sum over
the batch, so it is the same but for rounding. What differs by more is found all the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.core.codemod import Claim, Effect
from gradfix.verify.evidence import Evidence
from gradfix.verify.trial import Rewrite
from gradfix.verify.verification import verify_rewrites

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
"""
LOOP = """
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(4):
    order = torch.arange(len(inputs))
    x, y = inputs[order], targets[order]
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
VECTORS = "inputs, targets = torch.randn(2048, 4), torch.randn(2048, 1)\n"
IMAGES = "inputs, targets = torch.randn(16, 3, 32, 32), torch.randn(16, 1)\n"
PROGRAMS = {
    "bias before batch normalization": VECTORS
    + "net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))\n",
    "biases of convolutions before batch normalization": IMAGES
    + "net = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.LeakyReLU(), nn.Conv2d(32, 4, 3, 2),\n"
    "                    nn.BatchNorm2d(4), nn.LeakyReLU(), nn.Flatten(), nn.Linear(784, 1))\n",
    "bias before instance normalization": IMAGES
    + "net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4), nn.Flatten(), nn.Linear(3600, 1))\n",
    "bias of the keys of attention": """\
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        weights = (self.q(x) @ self.k(x).transpose(1, 2) / 8 ** 0.5).softmax(-1)
        return self.out(weights @ self.v(x)).mean(1)


inputs, targets = torch.randn(64, 20, 4), torch.randn(64, 1)
net = Attention()
""",
    "shift before softmax": """\
class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.shift = nn.Linear(4, 5), nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return (self.inner(x) + self.shift).log_softmax(-1)[:, :1]


"""
    + VECTORS
    + "net = Shifted()\n",
    "network whose output is a shift before a normalization": """\
class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.shift = nn.Linear(4, 8), nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8))
        self.norm, self.out = nn.BatchNorm1d(8), nn.Linear(8, 1)

    def forward(self, x):
        return self.out(F.relu(self.norm(self.inner(x) + self.shift(torch.ones(3)))))


"""
    + VECTORS
    + "net = Shifted()\n",
    "weights behind a dead ReLU": VECTORS
    + "net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))\n"
    + "nn.init.constant_(net[0].bias, -100.0)\n",
}
MIXED = ("torch.arange(len(inputs))", "torch.arange(len(inputs)).roll(3).flip(0)")
THREADS = ("torch.manual_seed(0)\n", "torch.manual_seed(0); torch.set_num_threads(3)\n")
CLONED = ("loss = F.mse_loss(net(x), y)", "loss = F.mse_loss(net(x).clone(), y)")
"""A larger graph: a change without any effect on graphs or gradients would not be proved."""
OTHER = ("    opt.zero_grad()\n", "    opt.zero_grad(); loss = loss + 0.001 * net(x).mean()\n")
"""Another loss, by a thousandth."""


def verified(program: str, edits: list[tuple[tuple[str, str], ...]], folder: Path) -> list[Evidence]:
    text = HEAD + program + LOOP
    rewrites = []
    for each in edits:
        after = text
        for old, new in each:
            assert old in after
            after = after.replace(old, new)
        rewrites.append(Rewrite(folder / "train.py", text, after, Claim(), Effect.PRESERVES))
    return verify_rewrites(rewrites, seeds=(0,))


@pytest.mark.sampled(every=4)
@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("name", PROGRAMS)
def test_another_order_of_summation_is_no_other_gradient(name: str, tmp_path: Path) -> None:
    found = verified(PROGRAMS[name], [(MIXED, THREADS, CLONED), (MIXED, THREADS, OTHER)], tmp_path)
    assert [one.outcome for one in found] == ["proved", "refuted"], [one.reason for one in found]


@pytest.mark.usefixtures("servers")
def test_the_evidence_says_so(tmp_path: Path) -> None:
    (found,) = verified(PROGRAMS["bias before batch normalization"], [(MIXED, CLONED)], tmp_path)
    (check,) = [one for one in found.checks if one.name == "unchanged"]
    assert "zero up to rounding in both" in check.detail
