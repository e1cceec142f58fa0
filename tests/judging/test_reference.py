"""Repairs that are held against what the original means, whatever it does: state that is begun anew, closures
that are evaluated several times in a step, what weighs a likelihood, mistakes of which one hides another.
"""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.verify.judging.cutting import begun_anew
from judging.test_judging import Original, judged
from judging.test_rule import Edits

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""
CURVE = """
net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=0.2, max_iter=3)
points, heights = torch.rand(12, 2), torch.rand(12, 1)
for _ in range(3):
    error = F.mse_loss(net(points), heights)
    def closure():
        opt.zero_grad()
        error.backward()
        return error
    opt.step(closure)
"""
EVALUATED = "    def closure():\n        opt.zero_grad()\n        error.backward()\n        return error\n"
TIDE = """
cell, gauge = nn.GRUCell(2, 5), nn.Linear(5, 1)
opt = torch.optim.Adam([*cell.parameters(), *gauge.parameters()], lr=0.01)
level = torch.zeros(3, 5)
for _ in range(5):
    seen, error = torch.randn(4, 3, 2), 0
    for moment in seen:
        level = cell(moment, level)
        error = error + F.mse_loss(gauge(level)[:, 0], moment[:, 0])
    opt.zero_grad()
    error.backward()
    opt.step()
"""
MOMENT = """
cell, gauge = nn.GRUCell(2, 5), nn.Linear(5, 1)
opt = torch.optim.Adam([*cell.parameters(), *gauge.parameters()], lr=0.01)
level = torch.zeros(3, 5)
for _ in range(8):
    seen = torch.randn(3, 2)
    level = cell(seen, level)
    error = F.mse_loss(gauge(level)[:, 0], seen[:, 0])
    opt.zero_grad()
    error.backward()
    opt.step()
"""
FORGER = """
forger = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
expert = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt_f = torch.optim.Adam(forger.parameters(), lr=0.01)
opt_e = torch.optim.Adam(expert.parameters(), lr=0.01)
one, zero = torch.ones(6, 1), torch.zeros(6, 1)
for _ in range(5):
    painted = forger(torch.randn(6, 3))
    praise = F.binary_cross_entropy_with_logits(expert(painted), one)
    praise.backward()
    opt_f.step()
    opt_f.zero_grad()
    doubt = F.binary_cross_entropy_with_logits(expert(torch.randn(6, 4)), one)
    doubt = doubt + F.binary_cross_entropy_with_logits(expert(painted), zero)
    doubt.backward()
    opt_e.step()
    opt_e.zero_grad()
"""
EPOCHS = """
trunk, choice, worth = nn.Sequential(nn.Linear(3, 8), nn.Tanh()), nn.Linear(8, 2), nn.Linear(8, 1)
opt = torch.optim.Adam([p for m in (trunk, choice, worth) for p in m.parameters()], lr=0.01)
for _ in range(3):
    seen = torch.randn(8, 3)
    gained = seen.sum(1)
    with torch.no_grad():
        policy = torch.distributions.Categorical(logits=choice(trunk(seen)))
        done = policy.sample()
        before = policy.log_prob(done)
    better = gained - worth(trunk(seen))[:, 0]
    for _ in range(2):
        body = trunk(seen)
        now = torch.distributions.Categorical(logits=choice(body)).log_prob(done)
        ratio = (now - before).exp()
        gain = torch.min(ratio * better, ratio.clamp(0.8, 1.2) * better).mean()
        loss = F.mse_loss(worth(body)[:, 0], gained) - gain
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
GAMES = """
player = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.Adam(player.parameters(), lr=0.01)
chosen, paid = [], []
for game in range(5):
    for _ in range(3):
        move = torch.distributions.Categorical(logits=player(torch.randn(3)))
        made = move.sample()
        chosen.append(move.log_prob(made))
        paid.append(float(made) - 0.2 * game)
    loss = torch.stack([-one * two for one, two in zip(chosen, paid)]).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SWAPPED = """
forger = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
expert = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt_f = torch.optim.Adam(forger.parameters(), lr=0.01)
opt_e = torch.optim.Adam(expert.parameters(), lr=0.01)
one, zero = torch.ones(6, 1), torch.zeros(6, 1)
for _ in range(5):
    painted = forger(torch.randn(6, 3))
    doubt = F.binary_cross_entropy_with_logits(expert(torch.randn(6, 4)), one)
    doubt = doubt + F.binary_cross_entropy_with_logits(expert(painted), zero)
    opt_e.zero_grad()
    doubt.backward()
    opt_f.step()
    praise = F.binary_cross_entropy_with_logits(expert(painted), one)
    opt_f.zero_grad()
    praise.backward()
    opt_f.step()
"""
SHELF = """
reader = nn.Linear(6, 4)
opt = torch.optim.SGD(reader.parameters(), lr=0.1)
papers = torch.randn(12, 6)
shelf = F.normalize(torch.randn(12, 4), dim=1)
for _ in range(8):
    taken = torch.randperm(12)[:4]
    read = F.normalize(reader(papers[taken]), dim=1)
    error = F.cross_entropy(read @ shelf.t() / 0.3, taken)
    opt.zero_grad()
    error.backward()
    opt.step()
    shelf = shelf.clone()
    shelf[taken] = F.normalize(shelf[taken] + read, dim=1)
"""
WINDOWS = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for turn in range(60):
    seen = torch.randn(4, 3)
    opt.zero_grad()
    error = F.mse_loss(net(seen)[:, 0], seen.sum(1)) / 4
    error.backward()
    if turn % 4 == 3:
        opt.step()
"""
GATHERED = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
errors = []
for turn in range(60):
    seen = torch.randn(4, 3)
    errors.append(F.mse_loss(net(seen)[:, 0], seen.sum(1)))
    if turn % 4 == 3:
        opt.zero_grad()
        torch.stack(errors).mean().backward()
        opt.step()
        errors = []
"""
RETITLED = """
class Titled(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.title = nn.Linear(4, 6), nn.Linear(6, 9)
    def forward(self, x):
        return self.title(torch.tanh(self.body(x)))
net = Titled()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
net.title = nn.Linear(6, 3)
for _ in range(8):
    seen = torch.randn(5, 4)
    error = F.cross_entropy(net(seen), seen[:, :3].argmax(1))
    opt.zero_grad()
    error.backward()
    opt.step()
"""
LEVELLED = """
class Levelled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.zeros(4))
        self.gain = nn.Parameter(torch.ones(4))
    def forward(self, x):
        self.level = 0.7 * self.level + 0.3 * x.mean(0)
        return (x - self.level) * self.gain
net = nn.Sequential(nn.Linear(3, 4), Levelled(), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(8):
    seen = torch.randn(6, 3)
    error = F.mse_loss(net(seen)[:, 0], seen.std(1))
    opt.zero_grad()
    error.backward()
    opt.step()
"""
GAUGED = """
def gauge(net, seen):
    net.eval()
    with torch.no_grad():
        return net(seen).mean().item()
net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
aside = torch.randn(10, 3) + 2
for turn in range(8):
    seen = torch.randn(6, 3)
    error = F.mse_loss(net(seen)[:, 0], seen.sum(1))
    opt.zero_grad()
    error.backward()
    opt.step()
    if turn % 3 == 2:
        gauge(net, aside)
"""
CLEARED = ("    doubt.backward()\n", "    opt_e.zero_grad()\n    doubt.backward()\n")
CUT = ("expert(painted), zero", "expert(painted.detach()), zero")
NO_STATE = ("    level = cell(seen, level)\n", "    level = cell(seen, torch.zeros(3, 5))\n")

RIGHT: dict[str, tuple[str, Edits]] = {
    "training mode where a batch begins": (GAUGED, (("    error = F", "    net.train()\n    error = F"),)),
    "a closure that computes its loss": (
        CURVE,
        (
            ("    error = F.mse_loss(net(points), heights)\n", ""),
            (EVALUATED, EVALUATED.replace("        error.b", "        error = F.mse_loss(net(points), heights)\n        error.b")),
        ),
    ),
    "state begun anew": (TIDE, (("    seen, error", "    level = torch.zeros(3, 5)\n    seen, error"),)),
    "a mistake behind another": (FORGER, (CLEARED, CUT)),
    "features that are kept as constants": (SHELF, (("(shelf[taken] + read,", "(shelf[taken] + read.detach(),"),)),
    "one backward for a window, where there were four": (WINDOWS, ((WINDOWS, GATHERED),)),
    "a layer that is added to what the optimizer owns": (
        RETITLED,
        (("nn.Linear(6, 3)\n", "nn.Linear(6, 3)\nopt.add_param_group({'params': net.title.parameters()})\n"),),
    ),
    "a statistic that goes on as a constant": (LEVELLED, (("0.7 * self.level +", "0.7 * self.level.detach() +"),)),
    "buffers that are emptied": (GAMES, (("    opt.step()\n", "    opt.step()\n    chosen, paid = [], []\n"),)),
    "an advantage from before the epochs": (
        EPOCHS,
        (("worth(trunk(seen))[:, 0]\n    for", "worth(trunk(seen))[:, 0].detach()\n    for"),),
    ),
}  # fmt: skip
WRONG: dict[str, tuple[str, Edits]] = {
    "an evaluation in training mode": (GAUGED, (("    net.eval()\n", ""),)),
    "a closure whose first evaluation differentiates": (
        CURVE,
        ((EVALUATED, EVALUATED.replace("        opt", "        if fresh: opt").replace("        error.b", "        if fresh: error.b").replace("    def", "    fresh = [1]\n    def").replace("return error", "fresh.clear()\n        return error")),),
    ),
    "a closure that differentiates nothing": (
        CURVE,
        ((EVALUATED, "    opt.zero_grad()\n    error.backward()\n    def closure():\n        return error\n"),),
    ),
    "state begun anew each time that it is used": (
        TIDE,
        (("        level = cell(moment, level)\n", "        level = cell(moment, torch.zeros(3, 5))\n"),),
    ),
    "state that is none any more": (MOMENT, (NO_STATE,)),
    "state begun anew, and a loss that is not": (
        TIDE,
        (
            ("    seen, error = torch.randn(4, 3, 2), 0\n", "    level, seen = torch.zeros(3, 5), torch.randn(4, 3, 2)\n    error = 0\n"),
            ("F.mse_loss(gauge(level)", "F.mse_loss(gauge(level.detach())"),
        ),
    ),
    "features that are not kept any more": (
        SHELF,
        (("    shelf = shelf.clone()\n    shelf[taken] = F.normalize(shelf[taken] + read, dim=1)\n", ""),),
    ),
    "one backward for a window, of its last batch": (
        WINDOWS,
        ((WINDOWS, GATHERED.replace("torch.stack(errors).mean()", "errors[-1]")),),
    ),
    "a layer that is added without its bias": (
        RETITLED,
        (("nn.Linear(6, 3)\n", "nn.Linear(6, 3)\nopt.add_param_group({'params': [net.title.weight]})\n"),),
    ),
    "the mistake that hid another": (FORGER, (CUT,)),
    "an advantage that is computed again": (
        EPOCHS,
        (("        ratio =", "        better = gained - worth(body)[:, 0]\n        ratio ="),),
    ),
}  # fmt: skip


def outcomes(old: Path, text: str, edits: Edits, folder: Path) -> set[str]:
    for before, after in edits:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return {outcome for outcome, _ in judged(old, HEAD + text, folder)}


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_repair_is_accepted(name: str, original: Original, tmp_path: Path) -> None:
    text, edits = RIGHT[name]
    assert outcomes(original(HEAD + text), text, edits, tmp_path) == {"accepted"}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_repair_is_refuted(name: str, original: Original, tmp_path: Path) -> None:
    text, edits = WRONG[name]
    assert "refuted" in outcomes(original(HEAD + text), text, edits, tmp_path)


def test_nothing_is_accepted_while_an_optimizer_that_should_step_never_does(
    original: Original, tmp_path: Path
) -> None:
    again = (("    praise =", "    painted = forger(torch.randn(6, 3))\n    praise ="),)
    assert "accepted" not in outcomes(original(HEAD + SWAPPED), SWAPPED, again, tmp_path)


def test_a_buffer_that_is_emptied_beside_one_that_is_not_is_not_accepted(
    original: Original, tmp_path: Path
) -> None:
    one_of_two = (("    opt.step()\n", "    opt.step()\n    chosen.clear()\n"),)
    assert outcomes(original(HEAD + GAMES), GAMES, one_of_two, tmp_path) == {"not run"}


def test_nobody_knows_whether_a_buffer_may_be_begun_anew(original: Original, tmp_path: Path) -> None:
    anew = (("0.7 * self.level + 0.3 * x.mean(0)", "0.3 * x.mean(0)"),)
    assert outcomes(original(HEAD + LEVELLED), LEVELLED, anew, tmp_path) == {"not run"}


def test_what_is_detached_begins_anew_with_what_it_held_first() -> None:
    before = "h = [0]\nseen = []\nfor turn in range(3):\n    seen.append(h[0])\n    h = [h[0] + 1]\n"
    after = before.replace("    seen.append", "    h = detach(h)\n    seen.append")
    made = begun_anew(before, after.replace("detach(h)", "h.detach()"))
    assert made is not None
    held: dict[str, object] = {}
    exec(made, held)
    assert held["seen"] == [0, 0, 0]
