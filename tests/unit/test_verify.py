"""Verification by execution, end to end: right rewrites are proved, wrong ones refuted.

The programs are small and written for this test. All of them run in one process that imports
torch once and forks (see ``gradfix.verify.runner``).
"""

from __future__ import annotations

import contextvars
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from gradfix.core.codemod import Claim, Effect
from gradfix.core.errors import quoted
from gradfix.project import trust
from gradfix.verify import interpreter, reruns, runner, sandboxes, verification
from gradfix.verify.claims import Check, Faults
from gradfix.verify.command import Command
from gradfix.verify.evidence import Evidence
from gradfix.verify.interpreter import Interpreter
from gradfix.verify.jobs import Job, Limits
from gradfix.verify.own_modules import folder_of
from gradfix.verify.recording.records import RecordedBackward, Recording, SourceLocation
from gradfix.verify.runner import Runner
from gradfix.verify.trial import Rewrite

pytestmark = pytest.mark.usefixtures("servers")


def program(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def line(source: str, text: str) -> int:
    """The line of ``source`` that contains ``text``, which only one may."""
    (found,) = [number for number, row in enumerate(source.splitlines(), 1) if text in row]
    return found


def edited(source: str, *edits: tuple[str, str]) -> str:
    """``source`` with every edit made; each must apply exactly once."""
    for old, new in edits:
        assert source.count(old) == 1, (source.count(old), old)
        source = source.replace(old, new)
    return source


@dataclass(frozen=True)
class Pair:
    """A program, a rewrite of it, and what verification must say."""

    name: str
    before: str
    after: str
    claim: Claim
    effect: Effect
    outcome: str
    because: tuple[str, ...] = ()
    """For a refutation: names of checks that must fail."""


GAN = program("""
    import torch
    from torch import nn

    G = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    D = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    optimG = torch.optim.Adam(G.parameters(), lr=1e-2)
    optimD = torch.optim.Adam(D.parameters(), lr=1e-2)
    bce = nn.BCEWithLogitsLoss()
    one, zero = torch.ones(5, 1), torch.zeros(5, 1)
    for step in range(5):
        real = torch.randn(5, 3)
        fake = G(torch.randn(5, 4))
        optimD.zero_grad()
        lossD = bce(D(real), one) + bce(D(fake), zero)
        lossD.backward()
        optimD.step()
        optimG.zero_grad()
        lossG = bce(D(fake), one)
        lossG.backward()
        optimG.step()
""")
GAN_D, GAN_G = line(GAN, "optimD = "), line(GAN, "optimG = ")
GAN_FEEDS = ((GAN_D, "lossD"), (GAN_G, "lossG"))
GAN_E1 = Claim("E1", line(GAN, "lossG.backward"), "all", GAN_FEEDS)
DETACHED = ("bce(D(fake), zero)", "bce(D(fake.detach()), zero)")

REUSED = edited(
    GAN,
    (
        "lossD = bce(D(real), one) + bce(D(fake), zero)",
        "pred = D(fake); lossD = bce(D(real), one) + bce(pred, zero)",
    ),
    ("lossD.backward()", "lossD.backward(retain_graph=True)"),
    ("bce(D(fake), one)", "bce(pred, one)"),
)
REUSED_E2 = Claim("E2", line(REUSED, "lossG.backward"), (GAN_D,), GAN_FEEDS, same_forwards=False)
FRESH = edited(
    REUSED,
    ("pred = D(fake);", "pred = D(fake.detach());"),
    ("retain_graph=True", ""),
    ("bce(pred, one)", "bce(D(fake), one)"),
)
DROPOUT = edited(REUSED, ("nn.LeakyReLU(0.2)", "nn.LeakyReLU(0.2), nn.Dropout(0.3)"))
REBUILT = edited(REUSED, ("bce(pred, one)", "bce(pred, one) + (fake - real).abs().mean()"))

RNN = program("""
    import torch
    from torch import nn

    cell = nn.RNNCell(3, 4)
    head = nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
    data = torch.randn(6, 3, 2, 3)
    h = torch.zeros(2, 4)
    for segment in data:
        for x in segment:
            h = cell(x, h)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""")
RNN_OPTIMIZER = line(RNN, "optimizer = ")
RNN_E1 = Claim("E1", line(RNN, "loss.backward"), (), ((RNN_OPTIMIZER, "loss"),), losses="rerouted")
CUT = ("    for x in segment:\n", "    h = h.detach()\n    for x in segment:\n")
RETAINED_RNN = edited(RNN, ("loss.backward()", "loss.backward(retain_graph=True)"))

LSTM = program("""
    import torch
    from torch import nn

    lstm = nn.LSTM(3, 4, batch_first=True)
    optimizer = torch.optim.Adam(lstm.parameters())
    state = None
    for batch in torch.randn(4, 2, 5, 3):
        out, state = lstm(batch, state)
        loss = out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""")

REGRESSION = program("""
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(5):
        loss = net(torch.randn(6, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()
""")
ZEROED = Claim(None, None, (), ((line(REGRESSION, "optimizer = "), "loss"),))

CLEAN = program("""
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for step in range(5):
        optimizer.zero_grad()
        loss = net(torch.randn(6, 3)).pow(2).mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        check = net(torch.randn(6, 3)).mean()
        print(check.item())
""")

TWICE = program("""
    import torch
    from torch import nn

    enc, a, b = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 2)
    opt_a = torch.optim.SGD([*enc.parameters(), *a.parameters()], lr=0.1)
    opt_b = torch.optim.SGD(b.parameters(), lr=0.1)
    for step in range(3):
        opt_a.zero_grad()
        opt_b.zero_grad()
        h = enc(torch.randn(5, 3)).tanh()
        first = a(h).square().mean()
        second = b(h).square().mean()
        first.backward(retain_graph=True)
        second.backward()
        opt_a.step()
        opt_b.step()
""")

LEAK = edited(
    GAN,
    ("        optimG.zero_grad()\n".replace("    ", "", 1), ""),
    ("    lossD.backward()", "    lossD.backward(retain_graph=True)"),
    ("    optimD.zero_grad()", "    optimD.zero_grad(); optimG.zero_grad()"),
)
LEAK_CLAIM = Claim(None, None, (GAN_D,), GAN_FEEDS)

SUMMED = program("""
    import torch
    from torch import nn

    body = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh())
    left, right = nn.Linear(4, 1), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*body.parameters(), *left.parameters(), *right.parameters()], lr=0.1)
    for step in range(4):
        h = body(torch.randn(5, 3))
        a = left(h).square().mean()
        b = right(h).square().mean()
        optimizer.zero_grad()
        a.backward(retain_graph=True)
        optimizer.step()
        b.backward()
        optimizer.step()
""")
SUMMED_CLAIM = Claim("E2", line(SUMMED, "b.backward"), (), ((line(SUMMED, "optimizer = "), "(a + b)"),))

ITEM = program("""
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        loss = torch.tensor(net(torch.randn(6, 3)).pow(2).mean().item())
        loss.backward()
        optimizer.step()
""")
ITEM_CLAIM = Claim("E3", line(ITEM, "loss.backward"), "all", ((line(ITEM, "optimizer = "), "loss"),))

IDLE = edited(FRESH, ("bce(D(fake), one)", "bce(D(fake.detach()), one)"))
IDLE_CLAIM = Claim(None, None, (GAN_D,), GAN_FEEDS, losses="rerouted")

LEAVES = program("""
    import torch

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    y = (x * w).exp()
    first = y.sum()
    second = (y * w).sum()
    first.backward()
    second.backward()
    print(x.grad, w.grad)
""")
LEAVES_E1 = Claim("E1", line(LEAVES, "second.backward"))
KEPT_LEAVES = edited(LEAVES, ("first.backward()", "first.backward(retain_graph=True)"))

HOISTED = program("""
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = torch.randn(6, 3)
    out = net(data)
    for step in range(4):
        optimizer.zero_grad()
        loss = out.pow(2).mean()
        loss.backward()
        optimizer.step()
""")
HOISTED_CLAIM = Claim("E1", line(HOISTED, "loss.backward"), (), ((line(HOISTED, "optimizer = "), "loss"),))

INPLACE = program("""
    import torch
    from torch import nn

    net = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        out = net(torch.randn(6, 3)).tanh()
        out += 1
        loss = out.pow(2).mean()
        loss.backward()
        optimizer.step()
""")
INPLACE_CLAIM = Claim("E2", line(INPLACE, "loss.backward"), "all", ((line(INPLACE, "optimizer = "), "loss"),))

ACTOR = program("""
    import torch
    from torch import nn

    actor, critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-2)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-2)
    for step in range(5):
        state = torch.randn(4, 3)
        action = actor(state)
        q = critic(torch.cat([state, action], 1))
        q_loss = (critic(torch.cat([state, action.detach()], 1)) - 1).square().mean()
        policy_loss = -q.mean()
        critic_opt.zero_grad()
        q_loss.backward()
        critic_opt.step()
        actor_opt.zero_grad()
        policy_loss.backward()
        actor_opt.step()
""")
ACTOR_CLAIM = Claim(
    "E2",
    line(ACTOR, "policy_loss.backward"),
    (line(ACTOR, "critic_opt = "),),
    ((line(ACTOR, "critic_opt = "), "q_loss"), (line(ACTOR, "actor_opt = "), "policy_loss")),
)

LBFGS = program("""
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward(retain_graph=True)
        return loss

    for step in range(3):
        optimizer.step(closure)
""")
LBFGS_CLAIM = Claim(feeds=((line(LBFGS, "optimizer = "), "loss"),))

PAIRS = [
    # An output of D is used in both losses, with a step of D in between.
    Pair("reused: fresh forward", REUSED, FRESH, REUSED_E2, Effect.REPAIRS, "proved"),
    Pair(
        "reused: detached in the generator's loss",
        REUSED,
        IDLE,
        REUSED_E2,
        Effect.REPAIRS,
        "refuted",
        ("kept", "consumes", "feeds", "same-loss"),
    ),
    Pair(
        "reused: both steps at the end",
        REUSED,
        edited(
            REUSED,
            ("    optimD.step()\n", ""),
            ("    optimG.zero_grad()\n", ""),
            ("    optimD.zero_grad()\n", "    optimD.zero_grad()\n    optimG.zero_grad()\n"),
            ("    optimG.step()\n", "    optimD.step()\n    optimG.step()\n"),
        ),
        REUSED_E2,
        Effect.REPAIRS,
        "refuted",
        ("unchanged", "feeds"),
    ),
    Pair(
        "reused: generator first",
        REUSED,
        program("""
            import torch
            from torch import nn

            G = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
            D = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
            optimG = torch.optim.Adam(G.parameters(), lr=1e-2)
            optimD = torch.optim.Adam(D.parameters(), lr=1e-2)
            bce = nn.BCEWithLogitsLoss()
            one, zero = torch.ones(5, 1), torch.zeros(5, 1)
            for step in range(5):
                real = torch.randn(5, 3)
                fake = G(torch.randn(5, 4))
                optimG.zero_grad()
                lossG = bce(D(fake), one)
                lossG.backward()
                optimG.step()
                optimD.zero_grad()
                lossD = bce(D(real), one) + bce(D(fake.detach()), zero)
                lossD.backward()
                optimD.step()
        """),
        REUSED_E2,
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "reused with dropout: fresh forward",
        DROPOUT,
        edited(
            DROPOUT,
            ("pred = D(fake);", "pred = D(fake.detach());"),
            ("retain_graph=True", ""),
            ("bce(pred, one)", "bce(D(fake), one)"),
        ),
        REUSED_E2,
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "reused with reconstruction: fresh forward",
        REBUILT,
        edited(
            REBUILT,
            ("pred = D(fake);", "pred = D(fake.detach());"),
            ("retain_graph=True", ""),
            ("bce(pred, one)", "bce(D(fake), one)"),
        ),
        REUSED_E2,
        Effect.REPAIRS,
        "proved",
    ),
    # The generator still gets the reconstruction's gradient: only its size betrays the detach.
    Pair(
        "reused with reconstruction: adversarial part cut off",
        REBUILT,
        edited(
            REBUILT,
            ("pred = D(fake);", "pred = D(fake.detach());"),
            ("retain_graph=True", ""),
            ("bce(pred, one)", "bce(D(fake.detach()), one)"),
        ),
        REUSED_E2,
        Effect.REPAIRS,
        "refuted",
        ("same-loss",),
    ),
    # The fake is not detached into D.
    Pair("undetached: detached", GAN, edited(GAN, DETACHED), GAN_E1, Effect.REPAIRS, "proved"),
    Pair(
        "undetached: both detached",
        GAN,
        edited(GAN, DETACHED, ("bce(D(fake), one)", "bce(D(fake.detach()), one)")),
        GAN_E1,
        Effect.REPAIRS,
        "refuted",
        ("kept",),
    ),
    Pair(
        "undetached: no_grad around the fake",
        GAN,
        edited(
            GAN,
            (
                "    fake = G(torch.randn(5, 4))",
                "    with torch.no_grad():\n        fake = G(torch.randn(5, 4))",
            ),
        ),
        GAN_E1,
        Effect.REPAIRS,
        "refuted",
        ("kept",),
    ),
    Pair(
        "undetached: retained, cleared too early",
        GAN,
        edited(
            GAN,
            ("lossD.backward()", "lossD.backward(retain_graph=True)"),
            ("    optimG.zero_grad()\n", ""),
            ("    optimD.zero_grad()\n", "    optimD.zero_grad()\n    optimG.zero_grad()\n"),
        ),
        GAN_E1,
        Effect.REPAIRS,
        "refuted",
        ("feeds",),
    ),
    # Wasteful, and yet every optimizer consumes what it should.
    Pair(
        "undetached: retained",
        GAN,
        edited(GAN, ("lossD.backward()", "lossD.backward(retain_graph=True)")),
        GAN_E1,
        Effect.REPAIRS,
        "proved",
    ),
    # Without declared feeds the reference alone tells the leak.
    Pair(
        "undetached: retained, cleared too early, no feeds declared",
        GAN,
        edited(
            GAN,
            ("lossD.backward()", "lossD.backward(retain_graph=True)"),
            ("    optimG.zero_grad()\n", ""),
            ("    optimD.zero_grad()\n", "    optimD.zero_grad()\n    optimG.zero_grad()\n"),
        ),
        GAN_E1._replace(feeds=()),
        Effect.REPAIRS,
        "refuted",
        ("reference",),
    ),
    Pair(
        "undetached: detached, both optimizers listed",
        GAN,
        edited(GAN, DETACHED),
        GAN_E1._replace(unchanged=(GAN_D, GAN_G)),
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "undetached: a name that does not exist",
        GAN,
        edited(GAN, ("bce(D(fake), zero)", "bce(D(fakes), zero)")),
        GAN_E1,
        Effect.REPAIRS,
        "refuted",
        ("fixed-runs",),
    ),
    # Hidden state carried over iterations.
    Pair("carried: detached", RNN, edited(RNN, CUT), RNN_E1, Effect.REPAIRS, "proved"),
    Pair("carried: retained", RNN, RETAINED_RNN, RNN_E1, Effect.REPAIRS, "refuted", ("fixed-runs",)),
    Pair(
        "carried: detached at every cell",
        RNN,
        edited(RNN, ("cell(x, h)", "cell(x, h.detach())")),
        RNN_E1,
        Effect.REPAIRS,
        "refuted",
        ("same-loss",),
    ),
    Pair(
        "carried: detached behind the cell",
        RNN,
        edited(RNN, ("h = cell(x, h)", "h = cell(x, h).detach()")),
        RNN_E1,
        Effect.REPAIRS,
        "refuted",
        ("kept", "same-loss"),
    ),
    Pair(
        "carried: cleared between backward and step",
        RNN,
        edited(
            RNN,
            CUT,
            ("    optimizer.zero_grad()\n", ""),
            ("    optimizer.step()\n", "    optimizer.zero_grad()\n    optimizer.step()\n"),
        ),
        RNN_E1,
        Effect.REPAIRS,
        "refuted",
        ("consumes", "kept"),
    ),
    Pair(
        "carried and retained: detached",
        RETAINED_RNN,
        edited(RNN, CUT),
        RNN_E1._replace(raises="E2"),
        Effect.REPAIRS,
        "proved",
    ),
    # Nothing was promised beyond the crash; what truncation changes there is only reported.
    Pair(
        "carried: detached, all listed",
        RNN,
        edited(RNN, CUT),
        RNN_E1._replace(unchanged="all"),
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "carried: detached, listed by line",
        RNN,
        edited(RNN, CUT),
        RNN_E1._replace(unchanged=(RNN_OPTIMIZER,)),
        Effect.REPAIRS,
        "refuted",
        ("reference",),
    ),
    Pair(
        "two optimizers on one line: detached",
        edited(GAN, ("optimG = ", "optimG, optimD = "), ("lr=1e-2)\noptimD = ", "lr=1e-2), ")),
        edited(GAN, ("optimG = ", "optimG, optimD = "), ("lr=1e-2)\noptimD = ", "lr=1e-2), "), DETACHED),
        Claim(
            "E1", GAN_E1.raises_line and GAN_E1.raises_line - 1, "all", ((GAN_G, "lossD"), (GAN_G, "lossG"))
        ),
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "carried tuple: detached",
        LSTM,
        edited(
            LSTM,
            (
                "    out, state",
                "    if state is not None:\n        state = tuple(s.detach() for s in state)\n    out, state",
            ),
        ),
        Claim(
            "E1",
            line(LSTM, "loss.backward"),
            (),
            ((line(LSTM, "optimizer = "), "loss"),),
            losses="rerouted",
        ),
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "carried tuple: half detached",
        LSTM,
        edited(
            LSTM,
            (
                "    out, state",
                "    if state is not None:\n        state = (state[0].detach(), state[1])\n    out, state",
            ),
        ),
        Claim("E1", line(LSTM, "loss.backward"), (), ((line(LSTM, "optimizer = "), "loss"),)),
        Effect.REPAIRS,
        "refuted",
        ("fixed-runs",),
    ),
    Pair(
        "in place: out of place, with another value",
        INPLACE,
        edited(INPLACE, ("out += 1", "out = out * 2")),
        INPLACE_CLAIM,
        Effect.REPAIRS,
        "refuted",
        ("same-loss",),
    ),
    # zero_grad is missing.
    Pair(
        "zero_grad: before backward",
        REGRESSION,
        edited(REGRESSION, ("    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()")),
        ZEROED,
        Effect.CHANGES,
        "proved",
    ),
    Pair(
        "zero_grad: between backward and step",
        REGRESSION,
        edited(REGRESSION, ("    optimizer.step()", "    optimizer.zero_grad()\n    optimizer.step()")),
        ZEROED,
        Effect.CHANGES,
        "refuted",
        ("consumes", "feeds", "kept"),
    ),
    Pair(
        "zero_grad: only once",
        REGRESSION,
        edited(REGRESSION, ("for step", "optimizer.zero_grad()\nfor step")),
        ZEROED,
        Effect.CHANGES,
        "refuted",
        ("feeds",),
    ),
    Pair(
        "zero_grad: zeros instead of none, too late",
        REGRESSION,
        edited(
            REGRESSION,
            ("    optimizer.step()", "    optimizer.zero_grad(set_to_none=False)\n    optimizer.step()"),
        ),
        ZEROED,
        Effect.CHANGES,
        "refuted",
        ("consumes", "feeds", "kept"),
    ),
    # retain_graph that nothing needs, or something does.
    Pair(
        "needless retain_graph: removed",
        CLEAN,
        edited(CLEAN, ("retain_graph=True", "")),
        Claim(),
        Effect.PRESERVES,
        "proved",
    ),
    Pair(
        "evaluation: under no_grad",
        CLEAN,
        edited(CLEAN, ("    check =", "    with torch.no_grad():\n        check =")),
        Claim(),
        Effect.PRESERVES,
        "proved",
    ),
    Pair(
        "evaluation: in eval mode, which is never left",
        CLEAN,
        edited(CLEAN, ("    check =", "    net.eval()\n    check =")),
        Claim(),
        Effect.PRESERVES,
        "refuted",
        ("unchanged",),
    ),
    Pair(
        "evaluation: the training forward under no_grad too",
        CLEAN,
        edited(CLEAN, ("    loss = net", "    with torch.no_grad():\n        loss = net")),
        Claim(),
        Effect.PRESERVES,
        "refuted",
        ("fixed-runs",),
    ),
    Pair(
        "needed retain_graph: removed",
        TWICE,
        edited(TWICE, ("retain_graph=True", "")),
        Claim(),
        Effect.PRESERVES,
        "refuted",
        ("fixed-runs",),
    ),
    # Two backwards against one of the sum: equal but for rounding.
    Pair(
        "two losses: summed",
        TWICE,
        edited(
            TWICE,
            ("    first.backward(retain_graph=True)\n", ""),
            ("second.backward()", "(first + second).backward()"),
        ),
        Claim(),
        Effect.PRESERVES,
        "proved",
    ),
    Pair(
        "two losses: averaged",
        TWICE,
        edited(
            TWICE,
            ("    first.backward(retain_graph=True)\n", ""),
            ("second.backward()", "((first + second) / 2).backward()"),
        ),
        Claim(),
        Effect.PRESERVES,
        "refuted",
        ("unchanged",),
    ),
    Pair(
        "one optimizer, two steps: one of the sum",
        SUMMED,
        edited(
            SUMMED,
            ("    a.backward(retain_graph=True)\n    optimizer.step()\n", ""),
            ("b.backward()", "(a + b).backward()"),
        ),
        SUMMED_CLAIM,
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "one optimizer, two steps: the first backward dropped",
        SUMMED,
        edited(SUMMED, ("    a.backward(retain_graph=True)\n    optimizer.step()\n", "")),
        SUMMED_CLAIM,
        Effect.REPAIRS,
        "refuted",
        ("feeds",),
    ),
    Pair(
        "one optimizer, two steps: one of the sum, a part of it cut off",
        SUMMED,
        edited(
            SUMMED,
            ("    a.backward(retain_graph=True)\n    optimizer.step()\n", ""),
            ("b.backward()", "(a + b).backward()"),
            ("b = right(h)", "b = right(h.detach())"),
        ),
        SUMMED_CLAIM,
        Effect.REPAIRS,
        "refuted",
        ("same-loss",),
    ),
    # The discriminator's loss leaks into the generator's step.
    Pair("leak: detached", LEAK, edited(LEAK, DETACHED), LEAK_CLAIM, Effect.CHANGES, "proved"),
    Pair("leak: left", LEAK, LEAK + "# nothing changed\n", LEAK_CLAIM, Effect.CHANGES, "refuted", ("feeds",)),
    Pair(
        "leak: the wrong one detached",
        LEAK,
        edited(LEAK, ("bce(D(fake), one)", "bce(D(fake.detach()), one)")),
        LEAK_CLAIM,
        Effect.CHANGES,
        "refuted",
        ("feeds",),
    ),
    # A loss without a graph.
    Pair(
        "item: removed",
        ITEM,
        edited(
            ITEM,
            (
                "torch.tensor(net(torch.randn(6, 3)).pow(2).mean().item())",
                "net(torch.randn(6, 3)).pow(2).mean()",
            ),
        ),
        ITEM_CLAIM,
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "item: requires_grad instead",
        ITEM,
        edited(ITEM, (".item())", ".item(), requires_grad=True)")),
        ITEM_CLAIM,
        Effect.REPAIRS,
        "refuted",
        ("consumes", "feeds"),
    ),
    Pair("idle generator: attached", IDLE, FRESH, IDLE_CLAIM, Effect.REPAIRS, "proved"),
    Pair(
        "idle generator: left",
        IDLE,
        IDLE + "# nothing changed\n",
        IDLE_CLAIM,
        Effect.REPAIRS,
        "refuted",
        ("consumes",),
    ),
    Pair(
        "idle generator: there is none",
        FRESH,
        FRESH + "# nothing changed\n",
        IDLE_CLAIM,
        Effect.REPAIRS,
        "refuted",
        ("original",),
    ),
    # No optimizer at all.
    Pair("leaves: retained", LEAVES, KEPT_LEAVES, LEAVES_E1, Effect.REPAIRS, "proved"),
    Pair(
        "leaves: summed",
        LEAVES,
        edited(LEAVES, ("first.backward()\n", ""), ("second.backward()", "(first + second).backward()")),
        LEAVES_E1,
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "leaves: detached",
        LEAVES,
        edited(LEAVES, ("(y * w)", "(y.detach() * w)")),
        LEAVES_E1,
        Effect.REPAIRS,
        "refuted",
        ("leaves",),
    ),
    Pair(
        "leaves: retained on the last backward too, and not any more",
        edited(KEPT_LEAVES, ("second.backward()", "second.backward(retain_graph=True)")),
        KEPT_LEAVES,
        Claim(),
        Effect.PRESERVES,
        "proved",
    ),
    Pair(
        "leaves: another gradient",
        KEPT_LEAVES,
        edited(KEPT_LEAVES, ("(y * w)", "(y + w)")),
        Claim(),
        Effect.PRESERVES,
        "refuted",
        ("leaves",),
    ),
    # A graph built outside the loop.
    Pair(
        "hoisted: moved inside",
        HOISTED,
        edited(HOISTED, ("out = net(data)\n", ""), ("    loss = ", "    out = net(data)\n    loss = ")),
        HOISTED_CLAIM,
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "hoisted: retained",
        HOISTED,
        edited(HOISTED, ("loss.backward()", "loss.backward(retain_graph=True)")),
        HOISTED_CLAIM,
        Effect.REPAIRS,
        "refuted",
        ("fixed-runs",),
    ),
    Pair(
        "in place: out of place",
        INPLACE,
        edited(INPLACE, ("out += 1", "out = out + 1")),
        INPLACE_CLAIM,
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "in place: through data, behind autograd's back",
        INPLACE,
        edited(INPLACE, ("out += 1", "out.data += 1")),
        INPLACE_CLAIM,
        Effect.REPAIRS,
        "refuted",
        ("same-loss",),
    ),
    Pair(
        "actor: a fresh policy loss",
        ACTOR,
        edited(
            ACTOR,
            ("    policy_loss = -q.mean()\n", ""),
            (
                "    actor_opt.zero_grad()",
                "    policy_loss = -critic(torch.cat([state, action], 1)).mean()\n    actor_opt.zero_grad()",
            ),
        ),
        ACTOR_CLAIM,
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "actor: a fresh policy loss of a detached action",
        ACTOR,
        edited(
            ACTOR,
            ("    policy_loss = -q.mean()\n", ""),
            (
                "    actor_opt.zero_grad()",
                "    again = critic(torch.cat([state, action.detach()], 1))\n"
                "    policy_loss = -again.mean()\n    actor_opt.zero_grad()",
            ),
        ),
        ACTOR_CLAIM,
        Effect.REPAIRS,
        "refuted",
        ("kept", "feeds", "consumes", "same-loss"),
    ),
    Pair(
        "closure: retain_graph removed",
        LBFGS,
        edited(LBFGS, ("retain_graph=True", "")),
        LBFGS_CLAIM,
        Effect.PRESERVES,
        "proved",
    ),
    Pair(
        "closure: another loss",
        LBFGS,
        edited(LBFGS, ("square().mean()", "abs().mean()")),
        LBFGS_CLAIM,
        Effect.PRESERVES,
        "refuted",
        ("unchanged",),
    ),
    # The prediction itself is wrong; the repair is not.
    Pair(
        "prediction: another line",
        GAN,
        edited(GAN, DETACHED),
        GAN_E1._replace(raises_line=line(GAN, "lossD.backward")),
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "prediction: another error",
        GAN,
        edited(GAN, DETACHED),
        GAN_E1._replace(raises="E2"),
        Effect.REPAIRS,
        "proved",
    ),
    Pair(
        "prediction: nothing is wrong",
        edited(GAN, DETACHED),
        edited(GAN, DETACHED) + "# nothing changed\n",
        GAN_E1,
        Effect.REPAIRS,
        "refuted",
        ("original",),
    ),
]


READ = ("reused: fresh forward", "reused: both steps at the end", "one optimizer, two steps: one of the sum")
"""Pairs whose evidence is looked at in full."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Evidence]:
    """The evidence for every pair that a test is selected for, all of them verified by one call."""
    path = tmp_path_factory.mktemp("pairs") / "train.py"
    selected = {
        item.callspec.params.get("pair") for item in request.session.items if hasattr(item, "callspec")
    }
    pairs = [pair for pair in PAIRS if pair in selected or pair.name in READ]
    rewrites = [Rewrite(path, pair.before, pair.after, pair.claim, pair.effect) for pair in pairs]
    evidence = verification.verify_rewrites(rewrites, python=sys.executable, seeds=(0, 1))
    assert not path.exists()
    return {pair.name: found for pair, found in zip(pairs, evidence)}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_right_rewrites_are_proved_and_wrong_ones_refuted(pair: Pair, verdicts: dict[str, Evidence]) -> None:
    evidence = verdicts[pair.name]
    failed = {check.name for check in evidence.checks if check.verdict == "fails"}
    shown = "\n".join(evidence.lines())
    assert evidence.outcome == pair.outcome, shown
    assert set(pair.because) <= failed, shown


def test_the_pairs_have_names_of_their_own() -> None:
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)


def test_evidence_for_a_terminal(verdicts: dict[str, Evidence]) -> None:
    lines = verdicts["reused: fresh forward"].lines()
    assert (
        lines[0] == f"before      raised {quoted('E2')} at line 19 in lossG.backward() after 1 step of optimD"
    )
    assert lines[1] == "after       ran 5 steps of optimG and 5 of optimD"
    assert (
        "holds       gradients of optimD equal at the 1 step before the crash"
        " (max difference 0, all 4 gradients proved by hash)" in lines
    )
    assert "holds       each of 5 steps of optimG uses gradients from lossG only" in lines
    assert (
        "holds       a + b for optimizer, with updates off: the gradient that the original's own graph"
        in "\n".join(verdicts["one optimizer, two steps: one of the sum"].lines())
    )
    assert lines[-1].startswith("proved ")


def test_evidence_as_json(verdicts: dict[str, Evidence]) -> None:
    evidence = verdicts["reused: both steps at the end"]
    data = json.loads(json.dumps(evidence.to_json()))
    assert data["outcome"] == "refuted"
    assert data["reason"].startswith("gradients of optimD differ before the crash: at step 1")
    assert data["seeds"] == [0, 1]
    assert data["sandbox"] == str(sandboxes.choose_sandbox(sys.executable))
    assert data["python"] == ".".join(map(str, sys.version_info[:3]))
    assert data["torch"]
    assert data["interpreter"] == "--python"
    assert {check["verdict"] for check in data["checks"]} <= {"holds", "fails", "not checked"}
    assert {(run["version"], run["seed"]) for run in data["runs"]} >= {
        ("before", 1),
        ("after", 1),
        ("reference", 0),
    }
    assert "gradfix-" not in json.dumps(data)


def test_one_seed_is_enough_where_hashes_prove_everything(tmp_path: Path) -> None:
    claim = Claim("E1", line(GAN, "lossG.backward"), "all", GAN_FEEDS)
    after = edited(GAN, DETACHED)
    evidence = verification.verify_rewrite(tmp_path / "gan.py", GAN, after, claim, Effect.REPAIRS)
    assert (evidence.outcome, evidence.seeds) == ("proved", (0,)), evidence.lines()
    assert evidence.reason.endswith("checks hold, and hashes prove that all gradients are equal")
    assert not any(run.version.endswith("updates off") for run in evidence.runs)
    assert {check.name for check in evidence.checks if check.by_hash} == {"unchanged", "reference"}


@pytest.mark.parametrize(
    ("before", "fake"),
    [
        pytest.param(
            edited(GAN, ("optimD.zero_grad()", "import random; random.random(); optimD.zero_grad()")),
            "bce(D(fake.detach()), zero)",
            id="it draws, and may take another turn",
        ),
        pytest.param(GAN, "bce(D(fake.detach()), zero) / 3 * 3", id="gradients are computed otherwise"),
    ],
)
def test_else_there_are_three(tmp_path: Path, before: str, fake: str) -> None:
    claim = Claim("E1", line(before, "lossG.backward"), "all")
    after = edited(before, ("bce(D(fake), zero)", fake))
    evidence = verification.verify_rewrite(tmp_path / "gan.py", before, after, claim, Effect.REPAIRS)
    assert evidence.outcome == "proved", evidence.lines()
    assert evidence.seeds == (0, 1, 2)


def test_one_rewrite(tmp_path: Path) -> None:
    claim = Claim("E1", line(GAN, "lossG.backward"), "all")
    after = edited(GAN, DETACHED)
    evidence = verification.verify_rewrite(tmp_path / "gan.py", GAN, after, claim, Effect.REPAIRS, seeds=(3,))
    assert evidence.outcome == "proved", evidence.lines()
    assert [run.version for run in evidence.runs] == ["before", "after", "reference"]
    assert verification.verify_rewrites([]) == []


def test_gradients_that_no_backward_has_made(tmp_path: Path) -> None:
    before = program("""
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            loss = net(torch.randn(4, 2)).pow(2).mean()
            gradients = torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)
            for weight, gradient in zip(net.parameters(), gradients):
                weight.grad = gradient
            optimizer.step()
    """)
    right, wrong = before.replace(", retain_graph=True", ""), before.replace(".pow(2)", ".pow(4)")
    claim = Claim(None, None, "all")
    found = [
        verification.verify_rewrite(tmp_path / "grad.py", before, after, claim, Effect.PRESERVES)
        for after in (right, wrong)
    ]
    assert [one.outcome for one in found] == ["proved", "refuted"], [one.lines() for one in found]


# -- originals that cannot be run --------------------------------------------------------------

SLOW = "import torch, time\ntime.sleep(60)\n"
FREE = program("""
    import torch, os
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        noise = torch.tensor([[float(os.urandom(1)[0]), 1.0]])
        optimizer.zero_grad()
        loss = net(noise).pow(2).mean()
        loss.backward(retain_graph=True)
        optimizer.step()
""")
NOT_RUN = {
    "import": (
        "import torch\nimport module_that_is_not_there\n",
        "module_that_is_not_there is not installed (line 2 imports it): "
        "install it where the script runs, or give --python or --env auto",
    ),
    "file": (
        "import torch\n\nrows = open('data/config.json')\n",
        "line 3 needs the file data/config.json, which is not there: "
        "put it there, or name its folder in tool.gradfix.verify.readable",
    ),
    "argument": (
        "import argparse\nparser = argparse.ArgumentParser('train')\n"
        "parser.add_argument('--data', required=True)\nargs = parser.parse_args()\n",
        "the script requires --data: add it after --",
    ),
    "arguments": ("import sys\nfolder = sys.argv[1]\n", "line 2 reads its arguments: add them after --"),
    "package": (
        "from . import models\n",
        "line 1 imports from the package around it: run it as a module, with -m",
    ),
    "variable": (
        "import os\nfolder = os.environ['DATA_ROOT']\n",
        "line 2 needs the variable 'DATA_ROOT' of the environment: name it in tool.gradfix.verify.env",
    ),
    "accelerator": (
        "import torch\nx = torch.zeros(1, device='cuda')\n",
        "line 2 needs an accelerator, which verification does not use; "
        "with stand-ins: backward() was never called",
    ),
    "no backward": ("import torch\nprint(1)\n", "backward() was never called"),
    "time": (SLOW, "the time was up before the first backward call"),
    "network": (
        "import urllib.request\nurllib.request.urlopen('https://example.org')\n",
        "line 2 tried to reach the network, which is off in the sandbox",
    ),
    "left": (
        "import os\nos._exit(3)\n",
        "it stopped before the first backward call: it left with exit code 3",
    ),
    "syntax": ("import torch\nx = (\n", "line 2 raised SyntaxError: '(' was never closed (train.py, line 2)"),
    "chance": (FREE, "two runs of the original with the same seed differ, so nothing can be compared"),
}


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("nets", "code"),
        ("nets.blocks", "code"),
        ("tools", "its root"),
        ("pictures", None),
        ("torch_nets", None),
        ("nets.absent", None),
    ],
)
def test_a_module_of_the_project_is_known_from_one_that_is_not_installed(
    tmp_path: Path, name: str, folder: str | None
) -> None:
    for file in (
        "code/nets/blocks.py",
        "tools.py",
        "pictures/one.png",
        ".venv/lib/torch_nets/__init__.py",
        "venv/lib/torch_nets/__init__.py",
    ):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert folder_of(name, tmp_path) == folder


@pytest.fixture(scope="module")
def obstacles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Evidence]:
    path = tmp_path_factory.mktemp("obstacles") / "train.py"
    rewrites = [
        Rewrite(path, source, source + "pass\n", Claim(), Effect.PRESERVES) for source, _ in NOT_RUN.values()
    ]
    found = verification.verify_rewrites(
        rewrites, python=sys.executable, limits=Limits(seconds=2), seeds=(0,)
    )
    return dict(zip(NOT_RUN, found))


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_cannot_be_run_is_said_in_one_sentence(name: str, obstacles: dict[str, Evidence]) -> None:
    evidence = obstacles[name]
    assert (evidence.outcome, evidence.reason) == ("not run", NOT_RUN[name][1]), evidence.lines()


def test_what_stops_a_run_with_stand_ins_is_said_too(tmp_path: Path) -> None:
    source = (
        "import torch\nimport neptune\n"
        "run = neptune.init_run()\nif run.width > 3:\n"
        "    torch.zeros(1, requires_grad=True).sum().backward()\n"
    )
    evidence = verification.verify_rewrite(
        tmp_path / "a.py", source, source + "pass\n", Claim(), Effect.PRESERVES, python=sys.executable
    )
    assert evidence.outcome == "not run"
    assert evidence.reason == (
        "neptune is not installed (line 2 imports it): install it where the script runs, or give --python or "
        "--env auto; "
        "with stand-ins: neptune is not installed, and its values are needed at line 4"
    )


@pytest.mark.parametrize(
    ("again", "why"),
    [
        ("; step == 1999 and loss.backward()", f"{quoted('E1')} was not raised in time"),
        (
            "\n    if step == 1999: loss.backward()",
            "the run did not reach line {line}, which should raise " + quoted("E1"),
        ),
    ],
)
def test_an_error_that_the_budget_does_not_reach(again: str, why: str, tmp_path: Path) -> None:
    more = ("range(5)", "range(2000)")
    late = edited(REGRESSION, more, ("    loss.backward()", "    loss.backward()" + again))
    claim = Claim("E1", line(late, "step == 1999"))
    evidence = verification.verify_rewrite(
        tmp_path / "late.py", late, REGRESSION, claim, Effect.REPAIRS, limits=Limits(steps=2), seeds=(0,)
    )
    assert evidence.outcome == "not run"
    why = why.format(line=claim.raises_line)
    assert evidence.reason == f"{why} (the original ran 2 steps of optimizer)"


PART = program("""
    import torch
    from torch import nn

    maker, judge = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(judge.parameters(), lr=0.1)
    other = torch.optim.SGD(maker.parameters(), lr=0.1)
    score = lambda made: judge(made).mean()

    def both(noise):
        return judge(maker(noise)).mean()

    for step in range({steps}):
        optimizer.zero_grad()
        made = maker(torch.randn(6, 3))
        loss = judge(torch.randn(6, 4)).mean()
        if step > {late}: loss = loss + score(made)
        loss.backward()
        optimizer.step()
        late = score(made) if step > {late} else judge(torch.randn(6, 4)).mean()
        other.zero_grad()
        both(torch.randn(6, 3)).backward()
        other.step()
        if step > {late}:
            other.zero_grad()
            late = both(torch.randn(6, 3))
            late.backward()
            other.step()
""")
EDITS = {
    "a branch of an expression": ("late = score(made) if", "late = score(made) * 1 if"),
    "the body of a lambda": ("judge(made).mean()", "judge(made.detach()).mean()"),
    "what is used under a condition": ("randn(6, 3))\n    loss", "randn(6, 3)).detach()\n    loss"),
    "a caller of a function": ("return judge(maker(noise)).mean()", "return judge(maker(noise)).mean() * 1"),
}


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_no_run_has_come_to_is_not_proved(edit: tuple[str, str], tmp_path: Path) -> None:
    text = PART.format(steps=2000, late=1990)
    after = text.replace(*edit)
    assert after != text
    evidence = verification.verify_rewrite(
        tmp_path / "late.py", text, after, Claim(), Effect.PRESERVES, seeds=(0,)
    )
    assert evidence.outcome == "not run"
    assert "never ran" in evidence.reason


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_comes_late_is_run_up_to(edit: tuple[str, str], tmp_path: Path) -> None:
    text = PART.format(steps=2000, late=30)
    evidence = verification.verify_rewrite(
        tmp_path / "late.py", text, text.replace(*edit), Claim(), Effect.PRESERVES, seeds=(0,)
    )
    assert evidence.outcome == "proved", evidence.reason
    (run,) = [run for run in evidence.runs if run.version == "after"]
    assert len(run.steps) > 60


SATURATED = program("""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    net = nn.Linear(6, 3)
    net.weight.data.mul_(3)
    net.bias.data.copy_(torch.tensor([15.0, 0.0, 0.0]))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.rand(8, 6)
        out = net(x)
        loss = F.cross_entropy(out, torch.zeros(8, dtype=torch.long))
        opt.zero_grad()
        loss.backward()
        opt.step()
""")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("out", "outcome"),
    [
        ("(net.weight[:, 3:] @ x.T[3:] + (net.weight[:, :3] @ x.T[:3] + net.bias[:, None])).T", "proved"),
        ("net(x) + 0.4", "proved"),
        ("net(x) * 1.02", "refuted"),
        ("F.linear(x, net.weight.detach(), net.bias) + 0.5 * F.linear(x, net.weight - net.weight.detach())",
         "refuted"),
    ],
)  # fmt: skip
def test_rounding_in_a_small_gradient_refutes_nothing(out: str, outcome: str, tmp_path: Path) -> None:
    """The gradients are of size 1e-6, and made of probabilities near 1, which are rounded to 1e-7."""
    after = SATURATED.replace("net(x)", out)
    evidence = verification.verify_rewrite(tmp_path / "small.py", SATURATED, after, Claim(), Effect.PRESERVES)
    assert evidence.outcome == outcome, evidence.checks


CRASHES = program("""
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        out = net(torch.randn(6, 3)).exp()
        if step == {late}:
            out.mul_(2)
        loss = out.mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
""")


@pytest.mark.parametrize("late", [0, 3])
def test_a_crash_that_no_finding_explains_is_told_and_proves_nothing(late: int, tmp_path: Path) -> None:
    text = CRASHES.format(late=late)
    after = text.replace("retain_graph=True", "")
    place = line(text, "loss.backward")

    def outcome(*faults: Faults) -> tuple[str, str]:
        found = verification.verify_rewrite(
            tmp_path / "crash.py", text, after, Claim(), Effect.PRESERVES, seeds=(0,), faults=faults or None
        )
        return found.outcome, found.reason

    expected = "not run", f"the original raises {quoted('E2')} at line {place}, which no finding explains"
    assert outcome(Faults(), Faults()) == expected
    known = Faults(frozenset({place}))
    assert outcome(known, Faults())[1] == expected[1].replace("original", "fixed program")
    assert outcome(known, known)[0] == ("proved" if late else "not run")


@pytest.mark.parametrize("late", [0, 3])
def test_a_crash_of_the_fixed_program_alone_refutes_it(late: int, tmp_path: Path) -> None:
    text = CRASHES.format(late=99)
    after = CRASHES.format(late=late).replace("retain_graph=True", "")
    evidence = verification.verify_rewrite(
        tmp_path / "crash.py", text, after, Claim(), Effect.PRESERVES, faults=(Faults(), Faults())
    )
    assert evidence.outcome == "refuted"
    assert f"raises {quoted('E2')}" in evidence.reason


def test_an_optimizer_of_a_later_phase_has_to_step(tmp_path: Path) -> None:
    phases = program("""
        import torch
        from torch import nn

        net, head = nn.Linear(3, 4), nn.Linear(4, 1)
        first = torch.optim.SGD(net.parameters(), lr=0.1)
        second = torch.optim.SGD(head.parameters(), lr=0.1)
        for step in range({first}):
            first.zero_grad()
            net(torch.randn(6, 3)).pow(2).mean().backward({keep})
            first.step()
        for step in range({second}):
            second.zero_grad()
            head(net(torch.randn(6, 3)).detach()).pow(2).mean().backward()
            second.step()
    """)

    def outcome(first: int, second: int) -> tuple[str, str]:
        before, after = (
            phases.format(first=first, second=second, keep=keep) for keep in ("retain_graph=True", "")
        )
        evidence = verification.verify_rewrite(
            tmp_path / "phases.py", before, after, Claim(), Effect.PRESERVES, seeds=(0,)
        )
        return evidence.outcome, "\n".join([evidence.reason, *(check.detail for check in evidence.checks)])

    found, why = outcome(3000, 3)
    assert found == "not run"
    assert "second takes no step" in why
    assert outcome(40, 3)[0] == "proved"
    found, why = outcome(40, 1)
    assert found == "proved"
    assert "ends by itself after one step of second" in why


def test_a_fixed_program_that_takes_too_long_is_not_proved(tmp_path: Path) -> None:
    after = edited(GAN, DETACHED, ("for step in", "import time; time.sleep(60)\nfor step in"))
    evidence = verification.verify_rewrite(
        tmp_path / "slow.py", GAN, after, GAN_E1, Effect.REPAIRS, limits=Limits(seconds=1), seeds=(0,)
    )
    assert evidence.outcome == "not run", evidence.lines()
    assert evidence.reason == "the fixed program ran 0 backward calls before the time was up"


BARE = """
import torch

weight = torch.zeros(3, requires_grad=True)
state = torch.ones(3)
for _ in range(1000):
    state = state{cut} * weight
    state.sum().backward()
    weight.data -= 0.1 * weight.grad
    weight.grad = None
"""


def test_moves_by_hand_count_as_steps_do(tmp_path: Path) -> None:
    before, after = BARE.format(cut=""), BARE.format(cut=".detach()")
    claim = Claim("E1", line(before, "backward()"))
    limits = Limits(steps=3)
    evidence = verification.verify_rewrite(
        tmp_path / "bare.py", before, after, claim, Effect.REPAIRS, limits=limits, seeds=(0,)
    )
    assert evidence.outcome == "proved", evidence.lines()
    assert any("ran 3 backward calls" in line for line in evidence.lines())


def test_arguments_reach_the_script(tmp_path: Path) -> None:
    source = "import sys\nassert sys.argv[1:] == ['--steps', '3'], sys.argv\n" + CLEAN
    after = edited(source, ("retain_graph=True", ""))
    evidence = verification.verify_rewrite(
        tmp_path / "a.py",
        source,
        after,
        Claim(),
        Effect.PRESERVES,
        command=Command(("--steps", "3")),
        seeds=(0,),
    )
    assert evidence.outcome == "proved", evidence.lines()


# -- interpreters ------------------------------------------------------------------------------


def test_an_interpreter_without_torch(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    found = verification.verify_rewrite(
        tmp_path / "x.py", CLEAN, CLEAN, Claim(), Effect.PRESERVES, python=str(fake)
    )
    assert found.outcome == "not run"
    assert found.reason.endswith("has no torch")
    assert interpreter.choose_interpreter(tmp_path / "x.py", "no-such-python") == (
        "no-such-python is not an interpreter that can be run"
    )
    with pytest.raises(sandboxes.CannotRun, match="has no torch"):
        runner.run_once(tmp_path / "x.py", CLEAN, python=str(fake))


def test_the_project_s_environment_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def environment(folder: Path, has_torch: bool) -> Path:
        (folder / "bin").mkdir(parents=True)
        (folder / "pyvenv.cfg").touch()
        (folder / "bin/python").write_text(f"#!/bin/sh\nprintf {has_torch}\n")
        (folder / "bin/python").chmod(0o755)
        return folder

    monkeypatch.chdir(tmp_path)
    script = tmp_path / "src/deep/train.py"
    environment(tmp_path / "src/.venv", False)
    environment(tmp_path / "venv", True)
    monkeypatch.setenv("VIRTUAL_ENV", str(environment(tmp_path / "active", True)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for folder in ("src/.venv", "venv"):
        trust.allow(str(tmp_path / folder))
    chosen = interpreter.choose_interpreter(script)
    assert isinstance(chosen, Interpreter)
    assert chosen.executable == str(tmp_path / "venv/bin/python")
    assert chosen.chosen == f"venv ({trust.ALLOWED})"
    (passed_over,) = chosen.passed_over
    assert passed_over == f"not used: src/.venv ({trust.ALLOWED}) has no torch"
    (tmp_path / "venv/pyvenv.cfg").unlink()
    chosen = interpreter.choose_interpreter(script)
    assert isinstance(chosen, Interpreter)
    assert (chosen.executable, chosen.chosen) == (str(tmp_path / "active/bin/python"), trust.ACTIVE)


def test_an_interpreter_whose_torch_does_not_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("modules", "project"):
        (tmp_path / folder).mkdir()
    (tmp_path / "modules/torch.py").write_text("raise ImportError('libcuda is missing')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    # Where no server is kept: one is started in this environment.
    found = contextvars.Context().run(
        verification.verify_rewrite,
        tmp_path / "project/x.py",
        CLEAN,
        CLEAN,
        Claim(),
        Effect.PRESERVES,
        python=sys.executable,
    )
    assert found.outcome == "not run"
    assert found.reason == "torch cannot be imported: ImportError: libcuda is missing"


# -- what a run may and may not do -------------------------------------------------------------

STUBBORN = program("""
    import torch
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        try:
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        except:
            pass
""")
GREEDY = program("""
    import torch
    net = torch.nn.Linear(2, 1)
    net(torch.ones(1, 2)).sum().backward()
    torch.ones(1 << 34)
""")
STUCK = program("""
    import signal, threading
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()
""")
CAUGHT = program("""
    import torch
    x = torch.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    try:
        y.backward()
    except RuntimeError as error:
        print(error)
    torch.autograd.grad(x.sum(), x)
    x.sum().backward()
""")
MANY_LINES = program("""
    import torch
    from helper import differentiate
    net = torch.nn.Linear(2, 1)
    nets = {"a": torch.nn.Linear(2, 1)}
    (optimizer,) = [torch.optim.SGD(
        [*net.parameters(), *nets["a"].parameters()],
        lr=0.1,
    )]
    loss = (net(torch.ones(1, 2))
            + nets["a"](torch.ones(1, 2)))
    (
        loss.sum()
        .backward(
            retain_graph=True
        )
    )
    torch.autograd.backward(loss.sum(), retain_graph=True); loss.mean().backward(retain_graph=True)
    differentiate(loss.sum())
    optimizer.step()
""")
WIDE = program("""
    import torch
    net = torch.nn.Linear(200, 200)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        (net(torch.randn(3, 200)).square().mean() * SCALE).backward()
        optimizer.step()
""")
BY_HAND = program("""
    import torch
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = net(torch.ones(1, 2)).sum()
    loss.backward()
    net.weight.grad = torch.ones(1, 2)
    net.bias.grad.data.zero_()
    optimizer.step()
""")
SEEDED = program("""
    import random, torch
    torch.manual_seed(1)
    random.seed(1)
    x = torch.rand(1, requires_grad=True)
    (x * random.random()).sum().backward()
""")
WRITER = program("""
    import os, pathlib, torch, helper
    os.makedirs("checkpoints", exist_ok=True)
    torch.save({}, "checkpoints/last.pt")
    here = pathlib.Path(__file__).parent
    (here / "log.txt").write_text("x")
    (here / "runs").mkdir()
    torch.save({"a": 1}, here / "model.pt")
    assert torch.load(here / "model.pt") == {"a": 1}
    assert sorted(os.listdir(here)) == sorted(
        ["helper.py", "pyproject.toml", "checkpoints", "log.txt", "runs", "model.pt"]
    )
    os.rename(here / "helper.py", here / "other.py")
    assert "other.py" in os.listdir() and not (here / "helper.py").exists()
    os.remove(here / "other.py")
    with open(here / "pyproject.toml", "a") as file:
        file.write("x")
    assert (here / "pyproject.toml").read_text() == "x"
    x = torch.ones(1, requires_grad=True)
    (x * 2).sum().backward()
""")
HELPER = "def differentiate(loss):\n    loss.backward()\n"
SECRETS = "import os\nassert 'MY_API_TOKEN' not in os.environ and 'MY_DATA' not in os.environ\n"

SINGLE = {
    "stubborn": STUBBORN,
    "greedy": GREEDY,
    "stuck": STUCK,
    "caught": CAUGHT,
    "many lines": MANY_LINES,
    "wide": WIDE.replace("SCALE", "1"),
    "wide, almost the same": WIDE.replace("SCALE", "(1 + 1e-7)"),
    "wide, different": WIDE.replace("SCALE", "1.001"),
    "by hand": BY_HAND,
    "seeded": SEEDED,
    "seeded otherwise": SEEDED,
    "writer": WRITER,
    "secrets": SECRETS,
}


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    """Recordings of single programs, in a project with a helper module."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").touch()
    (folder / "helper.py").write_text(HELPER)
    patch = pytest.MonkeyPatch()
    patch.setenv("MY_API_TOKEN", "x")
    patch.setenv("MY_DATA", "x")
    patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
    limits = Limits(seconds=4, memory=1 << 30)
    jobs = [
        Job(
            folder / "train.py",
            source,
            seed=int("otherwise" in name),
            limits=replace(limits, seconds=1) if name == "stuck" else limits,
        )
        for name, source in SINGLE.items()
    ]
    recordings = runner.run_many(jobs, python=sys.executable)
    assert sorted(os.listdir(folder)) == ["helper.py", "pyproject.toml"]
    assert os.listdir(tempfile.gettempdir()) == []
    patch.undo()
    return dict(zip(SINGLE, recordings))


def test_a_budget_ends_a_run_that_swallows_everything(single: dict[str, Recording]) -> None:
    recording = single["stubborn"]
    assert recording.ending == "steps"
    assert len(recording.steps) == 12
    assert recording.uncaught is None


def test_memory_is_bounded(single: dict[str, Recording]) -> None:
    recording = single["greedy"]
    assert recording.uncaught is not None
    assert "allocate" in recording.uncaught.message
    assert len(recording.backwards) == 1


def test_a_run_that_does_not_listen_is_killed(single: dict[str, Recording]) -> None:
    assert (single["stuck"].ending, single["stuck"].detail) == ("killed", "it did not return in time")


def test_a_caught_error_is_recorded(single: dict[str, Recording]) -> None:
    recording = single["caught"]
    assert recording.ending == "finished"
    assert recording.uncaught is None
    assert recording.crash is not None
    assert (recording.crash.kind, recording.crash.place.line) == ("E1", 6)
    assert [backward.place.line for backward in recording.backwards] == [4, 10]
    assert list(recording.leaves) == ["x"]


def test_places_and_receivers(single: dict[str, Recording]) -> None:
    recording = single["many lines"]
    (optimizer,) = recording.optimizers
    assert optimizer.place.covers(5)
    assert optimizer.parameters == ("net.weight", "net.bias", "nets['a'].weight", "nets['a'].bias")
    places = [backward.place for backward in recording.backwards]
    assert places[0].covers(11)
    assert places[3].line == 18
    assert (places[3].file, places[3].file_line) == ("helper.py", 2)
    assert [place.receiver for place in places] == ["loss.sum()", "loss.sum()", "loss.mean()", None]
    (step,) = recording.steps
    assert all(state.feeds == (0, 1, 2, 3) for state in step.parameters)
    assert step.place.line == 19


def test_large_gradients_are_compared_by_sketches(single: dict[str, Recording]) -> None:
    wide, near, far = (
        single[name].steps[1].parameters[0].gradient
        for name in ("wide", "wide, almost the same", "wide, different")
    )
    assert wide is not None
    assert near is not None
    assert far is not None
    assert wide.exact is None
    assert len(wide.sketch) == 16
    assert 0 < wide.distance(near) < 1e-5
    assert 2e-4 < wide.distance(far) < 5e-3


def test_gradients_that_a_hand_assigned_or_cleared(single: dict[str, Recording]) -> None:
    weight, bias = single["by hand"].steps[0].parameters
    assert weight.feeds == (-1,)
    assert bias.feeds == ()
    assert bias.gradient is not None
    assert bias.gradient.zero


def test_a_script_s_own_seeds_differ_from_seed_to_seed(single: dict[str, Recording]) -> None:
    one, other = single["seeded"].leaves["x"], single["seeded otherwise"].leaves["x"]
    assert one is not None
    assert other is not None
    assert one.digest != other.digest


def test_what_a_script_writes_is_found_again_and_thrown_away(single: dict[str, Recording]) -> None:
    recording = single["writer"]
    assert recording.ending == "finished", recording.uncaught


def test_a_script_does_not_see_secrets(single: dict[str, Recording]) -> None:
    assert single["secrets"].ending == "finished", single["secrets"].uncaught


def test_a_system_that_cannot_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    recording = runner.run_once(tmp_path / "x.py", CLEAN, python=sys.executable)
    assert (recording.ending, len(recording.steps)) == ("finished", 5)


def test_nothing_outlives_the_total_time(tmp_path: Path) -> None:
    with Runner(sys.executable) as running:
        running.run([Job(tmp_path / "quick.py", "import torch\n")])
        running._deadline = started = time.monotonic()
        (recording,) = running.run([Job(tmp_path / "slow.py", SLOW)])
        server = running._server
    assert recording.ending == "killed"
    assert server is not None
    assert not server.running
    assert time.monotonic() - started < 15


BUSY = """
import time, torch
while time.process_time() < 1:
    pass
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not tell who waited")
def test_what_others_take_of_a_processor_is_not_a_run_s_time(tmp_path: Path) -> None:
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(ours)})
    # Runs stand back for others: with one of these beside it, a run gets a quarter of the processor.
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with Runner(sys.executable, workers=1) as running:
            limits = Limits(seconds=2)
            (busy,) = running.run([Job(tmp_path / "busy.py", BUSY, limits=limits)])
            (asleep,) = running.run([Job(tmp_path / "asleep.py", SLOW, limits=limits)])
    finally:
        other.kill()
        other.wait()
        os.sched_setaffinity(0, ours)
    assert busy.ending == "finished"
    assert asleep.ending == "seconds"


def test_checks_are_plain_data() -> None:
    assert Check("kept", "holds", "fine").subject == ""


def test_the_schema_that_got_furthest_is_kept(tmp_path: Path) -> None:
    """One that was tried later, and stopped before, says nothing for itself."""
    wanted = {"": '{"a": 1}', '{"a": 1}': '{"b": 1}'}
    differentiated = RecordedBackward(0, SourceLocation(line=1), False, None, frozenset(), {}, {})

    class Told:
        """Answers in the place of a runner."""

        def run(self, jobs: Sequence[Job]) -> list[Recording]:
            return [
                Recording(
                    job.source, 0, "finished", "", "", "", (),
                    (differentiated,) if '"a"' in job.schema else (), None, {}, 0.1,
                    schema=wanted.get(job.schema, ""),
                )
                for job in jobs
            ]  # fmt: skip

    found = reruns.completed(cast(Runner, Told()), Job(tmp_path / "x.py", ""))
    assert (found.job.schema, found.stopped) == ('{"a": 1}', "backward() was never called")
