"""What each step consumes, held against what the original differentiates: right repairs and wrong ones.

Each program has a mistake that raises nothing, so that the original trains and a repair changes what it
learns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gradfix.core.codemod import Claim, Effect
from gradfix.runtime.probe.coverage import changed
from gradfix.verify.evidence import Evidence
from gradfix.verify.verification import verify_rewrite

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
"""
LEAK = """\
G, D = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for i in range(6):
    fake = G(torch.randn(8, 4))
    g_loss = -D(fake).mean() / 2
    g_loss.backward()
    d_loss = (D(fake.detach()).mean() - D(torch.randn(8, 4)).mean()) / 2
    d_loss.backward()
    if (i + 1) % 2 == 0:
        og.step()
        od.step()
        og.zero_grad()
        od.zero_grad()
"""
UNCLEARED = """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(5):
    size = net.weight.square().sum()
    loss = F.mse_loss(net(torch.randn(8, 4)), torch.randn(8, 1)) + size
    loss.backward()
    opt.step()
"""
COUNTED = """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sync = False
for step in range(8):
    if sync:
        opt.zero_grad()
    sync = step % 2 == 1
    loss = net(torch.randn(8, 4)).square().mean() / 2
    loss.backward()
    if sync:
        opt.step()
"""
UNSCALED = """\
net, head = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for step in range(5):
    x = torch.randn(8, 4)
    size = net(x).square().mean()
    size.backward()
    loss = head(net(x)).square().mean()
    (4 * loss).backward()
    opt.step()
    opt.zero_grad()
"""
MULTIPLIED = Claim(unchanged=(), losses="multiplied")
CLEAR = ("    loss.backward()\n", "    opt.zero_grad()\n    loss.backward()\n")


CHANGED = Claim(unchanged=())


@dataclass(frozen=True)
class Case:
    """A program, edits that repair it or do not, and what verification must say."""

    program: str
    edits: tuple[tuple[str, str], ...]
    outcome: str
    said: str = ""
    """A part of the reason, if it is not proved."""
    effect: Effect = Effect.CHANGES
    claim: Claim = CHANGED


CASES = {
    "kept out of the other network": Case(
        LEAK, (("g_loss.backward()", "g_loss.backward(inputs=list(G.parameters()))"),), "proved"
    ),
    "cleared in every micro-batch": Case(
        LEAK,
        (("    d_loss.backward()", "    od.zero_grad()\n    d_loss.backward()"),),
        "not run",
        "no step uses the gradients of backward call 2, of d_loss",
    ),
    "cleared once for each step": Case(UNCLEARED, (CLEAR,), "proved"),
    "cleared, and a loss doubled": Case(
        UNCLEARED,
        (CLEAR, ("+ size", "+ 2 * size")),
        "not run",
        "whose value is that of no loss of the original",
    ),
    "cleared, and a term detached": Case(
        UNCLEARED, (CLEAR, ("+ size", "+ size.detach()")), "not run", "another gradient of net.weight"
    ),
    "cleared, and the term detached by a claim that says so": Case(
        UNCLEARED,
        (CLEAR, ("+ size", "+ size.detach()")),
        "not run",
        "fewer terms give a gradient",
        claim=Claim(unchanged=(), losses="rerouted"),
    ),
    "cleared, and a backward left out now and then": Case(
        UNCLEARED,
        (("    loss.backward()\n", "    opt.zero_grad()\n    if step % 2: loss.backward()\n"),),
        "refuted",
        "finds no gradient",
    ),
    "cleared, and weights moved": Case(
        UNCLEARED,
        (CLEAR, ("    opt.step()\n", "    net.weight.data.mul_(0.9)\n    opt.step()\n")),
        "refuted",
        "net.weight is now changed by something other than a step",
    ),
    "cleared, and begun with other weights": Case(
        UNCLEARED, (CLEAR, ("opt = ", "net.weight.data.mul_(1.1)\nopt = ")), "not run", ""
    ),
    "one loss multiplied": Case(
        UNSCALED, (("size.backward()", "(4 * size).backward()"),), "proved", claim=MULTIPLIED
    ),
    "one loss multiplied by another number each time": Case(
        UNSCALED,
        (("size.backward()", "((step + 2) * size).backward()"),),
        "not run",
        "whose value is that of no loss of the original",
        claim=MULTIPLIED,
    ),
    "one loss turned round": Case(
        UNSCALED,
        (("size.backward()", "(-4 * size).backward()"),),
        "not run",
        "whose value is that of no loss of the original",
        claim=MULTIPLIED,
    ),
    "one loss multiplied, and detached in part": Case(
        UNSCALED,
        (("size.backward()", "(4 * (net(x) * net(x).detach()).mean()).backward()"),),
        "not run",
        "another gradient of net.",
        claim=MULTIPLIED,
    ),
    "one loss multiplied, the other left out": Case(
        UNSCALED,
        (("size.backward()", "(4 * size).backward()"), ("    (4 * loss).backward()\n", "")),
        "refuted",
        "",
        claim=MULTIPLIED,
    ),
    "nothing but a comment": Case(UNCLEARED, (("for step", "# Each step.\nfor step"),), "not run", ""),
    "a statement without an effect": Case(
        UNCLEARED, (("    loss.backward()\n", "    None\n    loss.backward()\n"),), "not run", "no effect"
    ),
    "a window cleared in the pass that steps": Case(
        COUNTED,
        (
            (
                "    if sync:\n        opt.zero_grad()\n    sync = step % 2 == 1\n",
                "    sync = step % 2 == 1\n    if sync:\n        opt.zero_grad()\n",
            ),
        ),
        "not run",
        "no step uses the gradients of backward call 1, of loss",
    ),
}


def verified(case: Case, folder: Path) -> Evidence:
    before = after = HEAD + case.program
    for old, new in case.edits:
        assert old in after
        after = after.replace(old, new)
    path = folder / "train.py"
    return verify_rewrite(path, before, after, case.claim, case.effect, seeds=(0,))


@pytest.mark.sampled(every=3)
@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("name", CASES)
def test_each_step_has_to_consume_all_of_its_own_losses(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    evidence = verified(case, tmp_path)
    assert evidence.outcome == case.outcome, "\n".join(evidence.lines())
    assert case.said in evidence.reason


LOOP = """\
nets = {name: nn.Linear(4, 1) for name in "ab"}
opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets.values()]
for step in range(3):
    losses = {name: net(torch.randn(8, 4)).square().mean() for name, net in nets.items()}
    for name in losses:
        losses[name].backward()
    for opt in opts:
        opt.step()
"""


@pytest.mark.usefixtures("servers")
def test_losses_that_the_source_writes_alike_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    line = 1 + (HEAD + LOOP).splitlines().index(
        "opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets.values()]"
    )
    cleared = ("        opt.step()\n", "        opt.step()\n        opt.zero_grad()\n")
    claim = Claim(unchanged=(), feeds=((line, "losses[name]"),))
    evidence = verified(Case(LOOP, (cleared,), "", claim=claim), tmp_path)
    assert evidence.outcome == "proved", evidence.reason
    verdicts = {check.name: check for check in evidence.checks}
    assert (
        verdicts["feeds"].verdict == "not checked"
        and "several losses losses[name]" in verdicts["feeds"].detail
    )
    assert verdicts["entries"].verdict == "holds"


DECORATED = """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def evaluate(xs):
    total = net(xs).sum()
    return float(total)


for step in range(3):
    loss = net(torch.randn(8, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step > {late}:
        evaluate(torch.randn(8, 4))
"""
NO_GRAD = ("def evaluate", "@torch.no_grad()\ndef evaluate")


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    ("late", "edits", "outcome"),
    [
        (0, (NO_GRAD,), "proved"),
        (5, (NO_GRAD,), "not run"),
        (5, (NO_GRAD, ("    total =", "    raise ValueError\n    total =")), "not run"),
        (0, (NO_GRAD, ("    total =", "    raise ValueError\n    total =")), "refuted"),
    ],
)
def test_a_decorated_function_has_to_be_called(
    late: int, edits: tuple[tuple[str, str], ...], outcome: str, tmp_path: Path
) -> None:
    case = Case(DECORATED.format(late=late), edits, outcome, effect=Effect.PRESERVES, claim=Claim())
    evidence = verified(case, tmp_path)
    assert evidence.outcome == outcome, evidence.reason


def test_what_stands_above_a_body_is_stood_for_by_its_first_statement() -> None:
    plain = 'def f(x):\n    """Doc."""\n    y = x\n    return y\n'
    assert [piece[0] for piece in changed(plain, "@g\n" + plain)] == [4]
    assert [piece[0] for piece in changed("@g\n" + plain, plain)] == [3]
    assert [piece[0] for piece in changed(plain, plain.replace("f(x)", "f(x, z=1)"))] == [1, 3]
    assert changed(plain, "# A comment.\n" + plain) == ()
