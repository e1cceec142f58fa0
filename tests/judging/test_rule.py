"""Repairs of programs for which gradfix has no repair of its own that is certain: the rule is the measure.

Each loss is to be given once to what it is meant for, and to nothing else, as autograd computes it of the
original's own graph.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from judging.test_judging import Original, judged

HEAD = """
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

torch.manual_seed(0)


def net(*sizes):
    return nn.Sequential(nn.Linear(sizes[0], 8), nn.Tanh(), nn.Linear(8, sizes[-1]))

"""
Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Program:
    """A faulty program, and patches of it."""

    text: str
    right: tuple[Edits, ...]
    wrong: tuple[Edits, ...]

    def patched(self, edits: Edits) -> str:
        text = self.whole
        for old, new in edits:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    @property
    def whole(self) -> str:
        return HEAD + textwrap.dedent(self.text)


PROGRAMS = {
    "a regulariser of one of two factors": Program(
        """
        left, right = nn.Embedding(20, 6), nn.Embedding(30, 6)
        opt = torch.optim.Adam([*left.parameters(), *right.parameters()])
        for _ in range(5):
            a, b = left(torch.randint(20, (16,))), right(torch.randint(30, (16,)))
            small = 0.01 * a.pow(2).mean()
            fit = F.mse_loss((a * b).sum(1), torch.randn(16))
            opt.zero_grad()
            small.backward()
            fit.backward()
            opt.step()
        """,
        right=(
            (("small.backward()\n    fit", "(small + fit)"),),
            (("small.backward()", "small.backward(retain_graph=True)"),),
        ),
        wrong=(
            (("(a * b)", "(a.detach() * b)"),),
            (("small.backward()\n    fit", "(small + small + fit)"),),
            (("    small.backward()\n", ""),),
            (("small.backward()", "small.backward(retain_graph=True); fit.backward(retain_graph=True)"),),
        ),
    ),
    "an advantage in one optimizer": Program(
        """
        actor, critic, value, more = nn.Linear(4, 2), net(4, 8), nn.Linear(8, 1), nn.Linear(8, 3)
        modules = nn.ModuleList([actor, critic, value, more])
        opt = torch.optim.Adam(modules.parameters())
        for _ in range(5):
            seen, gain = torch.randn(16, 4), torch.randn(16)
            hidden = critic(seen)
            choice = Categorical(logits=actor(seen))
            act = choice.sample()
            better = gain - value(hidden).squeeze(1)
            critic_loss = better.pow(2).mean() + F.cross_entropy(more(hidden), torch.randint(3, (16,)))
            actor_loss = -(choice.log_prob(act) * better).mean()
            opt.zero_grad()
            critic_loss.backward()
            actor_loss.backward()
            opt.step()
        """,
        right=((("log_prob(act) * better", "log_prob(act) * better.detach()"),),),
        wrong=(
            (("critic_loss.backward()\n    actor_loss", "(critic_loss + actor_loss)"),),
            (("critic_loss.backward()", "critic_loss.backward(retain_graph=True)"),),
            (("better.pow(2)", "better.detach().pow(2)"),),
            (("log_prob(act) * better", "log_prob(act).detach() * better"),),
        ),
    ),
    "a teacher that the student's loss would train": Program(
        """
        teacher, student = net(4, 3), nn.Linear(4, 3)
        opt = torch.optim.Adam([*teacher.parameters(), *student.parameters()])
        for _ in range(5):
            x, y = torch.randn(8, 4), torch.randint(3, (8,))
            told, guess = teacher(x), student(x)
            first, second = F.cross_entropy(told, y), F.mse_loss(guess, told)
            opt.zero_grad()
            first.backward()
            second.backward()
            opt.step()
        """,
        right=((("mse_loss(guess, told)", "mse_loss(guess, told.detach())"),),),
        wrong=(
            (("first.backward()\n    second", "(first + second)"),),
            (("mse_loss(guess, told)", "mse_loss(guess.detach(), told)"),),
            (("cross_entropy(told, y)", "cross_entropy(told.detach(), y)"),),
        ),
    ),
    "a helper that goes back already": Program(
        """
        model = net(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def compute(x):
            loss = model(x).pow(2).mean()
            loss.backward(retain_graph=True)
            return loss

        for _ in range(5):
            opt.zero_grad()
            loss = compute(torch.randn(8, 4))
            loss.backward()
            opt.step()
        """,
        right=(
            (("    loss.backward(retain_graph=True)\n", ""),),
            (("    loss.backward()\n", ""), ("(retain_graph=True)", "()")),
        ),
        wrong=(
            (("    loss.backward()\n", "    loss.backward(retain_graph=True)\n"),),
            (("    loss.backward()\n", "    (2 * loss).backward()\n"),),
            (("    loss.backward()\n", ""),),
            (("return loss", "return model(x).pow(2).mean()"), ("(retain_graph=True)", "()")),
        ),
    ),
    "a stale forward behind a helper": Program(
        """
        maker, judge = net(3, 2), net(2, 1)
        mine, its = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())

        def update(opt, loss, keep=False):
            opt.zero_grad()
            loss.backward(retain_graph=keep)
            opt.step()

        for _ in range(5):
            real, made = torch.randn(8, 2), maker(torch.randn(8, 3))
            said = judge(made)
            told = F.softplus(said).mean() + F.softplus(-judge(real)).mean()
            update(its, told, True)
            update(mine, F.softplus(-said).mean())
        """,
        right=(
            (
                ("said = judge(made)", "said = judge(made.detach())"),
                ("told, True", "told"),
                ("(-said)", "(-judge(made))"),
            ),
        ),
        wrong=(
            (("(-said)", "(-judge(made.detach()))"), ("told, True", "told")),
            (("(-said)", "(judge(made))"), ("told, True", "told"), ("= judge(made)", "= judge(0 + made)")),
            (("said = judge(made)", "said = judge(made).detach()"),),
        ),
    ),
}  # fmt: skip


def each(right: bool) -> list[object]:
    return [
        pytest.param(program, edits, id=f"{name} {number}")
        for name, program in PROGRAMS.items()
        for number, edits in enumerate(program.right if right else program.wrong, start=1)
    ]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("program", "edits"), each(True))
def test_a_right_repair_is_accepted(
    program: Program, edits: Edits, original: Original, tmp_path: Path
) -> None:
    found = judged(original(program.whole), program.patched(edits), tmp_path)
    assert {outcome for outcome, _ in found} == {"accepted"}, found


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("program", "edits"), each(False))
def test_a_wrong_repair_is_not(program: Program, edits: Edits, original: Original, tmp_path: Path) -> None:
    found = judged(original(program.whole), program.patched(edits), tmp_path)
    assert "accepted" not in {outcome for outcome, _ in found}, found
