"""Training steps in the structures in which projects keep them, with one mistake each or none.

A *step* is the body of a loop over ``x, y, z, r``, in terms of a network and its optimizer: ``NET`` and
``OPT``, or of two: ``GEN``, ``DISC``, ``OPT_G`` and ``OPT_D``. A *structure* says where these come from: of
most, nothing is seen but how they are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent, indent
from typing import NamedTuple

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


class Pair(NamedTuple):
    """A mistake and its mended twin."""

    code: str
    """The codemod that names the mistake."""
    wrong: str
    right: str


def pair(code: str, wrong: str, right: str) -> Pair:
    return Pair(code, dedent(wrong).lstrip(), dedent(right).lstrip())


ONE = {
    "freed": pair(
        "graph-used-twice",
        """
        out = NET(x)
        a = F.mse_loss(out, y)
        b = out.abs().mean()
        OPT.zero_grad()
        a.backward()
        b.backward()
        OPT.step()
        """,
        """
        out = NET(x)
        a = F.mse_loss(out, y)
        b = out.abs().mean()
        OPT.zero_grad()
        (a + b).backward()
        OPT.step()
        """,
    ),
    "stale": pair(
        "stale-forward",
        """
        out = NET(x)
        a = F.mse_loss(out, y)
        b = out.pow(2).mean()
        OPT.zero_grad()
        a.backward(retain_graph=True)
        OPT.step()
        OPT.zero_grad()
        b.backward()
        OPT.step()
        """,
        """
        a = F.mse_loss(NET(x), y)
        OPT.zero_grad()
        a.backward()
        OPT.step()
        b = NET(x).pow(2).mean()
        OPT.zero_grad()
        b.backward()
        OPT.step()
        """,
    ),
    "never cleared": pair(
        "missing-zero-grad",
        """
        loss = F.mse_loss(NET(x), y)
        loss.backward()
        OPT.step()
        """,
        """
        loss = F.mse_loss(NET(x), y)
        loss.backward()
        OPT.step()
        OPT.zero_grad()
        """,
    ),
    "cleared between": pair(
        "misplaced-zero-grad",
        """
        loss = F.mse_loss(NET(x), y)
        loss.backward()
        OPT.zero_grad()
        OPT.step()
        """,
        """
        OPT.zero_grad()
        loss = F.mse_loss(NET(x), y)
        loss.backward()
        OPT.step()
        """,
    ),
    "step first": pair(
        "step-before-backward",
        """
        OPT.zero_grad()
        loss = F.mse_loss(NET(x), y)
        OPT.step()
        loss.backward()
        """,
        """
        OPT.zero_grad()
        loss = F.mse_loss(NET(x), y)
        loss.backward()
        OPT.step()
        print(loss.item())
        """,
    ),
    "no graph": pair(
        "loss-without-graph",
        """
        OPT.zero_grad()
        out = NET(x).detach()
        loss = F.mse_loss(out, y)
        loss.backward()
        OPT.step()
        """,
        """
        OPT.zero_grad()
        out = NET(x)
        loss = F.mse_loss(out, y)
        loss.backward()
        OPT.step()
        """,
    ),
    "needlessly kept": pair(
        "needless-retain-graph",
        """
        OPT.zero_grad()
        loss = F.mse_loss(NET(x), y)
        loss.backward(retain_graph=True)
        OPT.step()
        """,
        """
        OPT.zero_grad()
        out = NET(x)
        (F.mse_loss(out, y) + out.pow(2).mean()).backward()
        OPT.step()
        """,
    ),
    "clipped late": pair(
        "misplaced-clipping",
        """
        OPT.zero_grad()
        loss = F.mse_loss(NET(x), y)
        loss.backward()
        OPT.step()
        torch.nn.utils.clip_grad_norm_(NET.parameters(), 1.0)
        """,
        """
        OPT.zero_grad()
        loss = F.mse_loss(NET(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(NET.parameters(), 1.0)
        OPT.step()
        """,
    ),
    "counted twice": pair(
        "loss-backpropagated-twice",
        """
        OPT.zero_grad()
        out = NET(x)
        a = F.mse_loss(out, y)
        b = a + out.abs().mean()
        a.backward(retain_graph=True)
        b.backward()
        OPT.step()
        """,
        """
        OPT.zero_grad()
        out = NET(x)
        a = F.mse_loss(out, y)
        b = a + out.abs().mean()
        b.backward()
        OPT.step()
        """,
    ),
    "left out": pair(
        "loss-left-out",
        """
        OPT.zero_grad()
        out = NET(x)
        a = F.mse_loss(out, y)
        b = F.l1_loss(out, y)
        loss = a + 0.1 * b
        a.backward()
        OPT.step()
        """,
        """
        OPT.zero_grad()
        out = NET(x)
        a = F.mse_loss(out, y)
        b = F.l1_loss(out, y)
        loss = a + 0.1 * b
        loss.backward()
        OPT.step()
        """,
    ),
}
"""Mistakes of one network with one optimizer."""

TWO = {
    "fake freed": pair(
        "undetached-fake",
        """
        fake = GEN(z)
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(fake)).mean()
        OPT_D.zero_grad()
        d.backward()
        OPT_D.step()
        g = F.softplus(-DISC(fake)).mean()
        OPT_G.zero_grad()
        g.backward()
        OPT_G.step()
        """,
        """
        fake = GEN(z)
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(fake.detach())).mean()
        OPT_D.zero_grad()
        d.backward()
        OPT_D.step()
        g = F.softplus(-DISC(fake)).mean()
        OPT_G.zero_grad()
        g.backward()
        OPT_G.step()
        """,
    ),
    "fake wasted": pair(
        "undetached-fake",
        """
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(GEN(z))).mean()
        OPT_D.zero_grad()
        d.backward()
        OPT_D.step()
        OPT_G.zero_grad()
        g = F.softplus(-DISC(GEN(z))).mean()
        g.backward()
        OPT_G.step()
        """,
        """
        with torch.no_grad():
            fake = GEN(z)
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(fake)).mean()
        OPT_D.zero_grad()
        d.backward()
        OPT_D.step()
        OPT_G.zero_grad()
        g = F.softplus(-DISC(GEN(z))).mean()
        g.backward()
        OPT_G.step()
        """,
    ),
    "left in the other": pair(
        "misplaced-zero-grad",
        """
        fake = GEN(z)
        g = F.softplus(-DISC(fake)).mean()
        OPT_G.zero_grad()
        g.backward()
        OPT_G.step()
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(fake.detach())).mean()
        d.backward()
        OPT_D.step()
        OPT_D.zero_grad()
        """,
        """
        fake = GEN(z)
        g = F.softplus(-DISC(fake)).mean()
        OPT_G.zero_grad()
        g.backward()
        OPT_G.step()
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(fake.detach())).mean()
        OPT_D.zero_grad()
        d.backward()
        OPT_D.step()
        """,
    ),
    "both at once": pair(
        "leaking-loss",
        """
        fake = GEN(z)
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(fake.detach())).mean()
        g = F.softplus(-DISC(fake)).mean()
        OPT_D.zero_grad()
        OPT_G.zero_grad()
        d.backward()
        g.backward()
        OPT_D.step()
        OPT_G.step()
        """,
        """
        fake = GEN(z)
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(fake.detach())).mean()
        OPT_D.zero_grad()
        d.backward()
        OPT_D.step()
        OPT_G.zero_grad()
        g = F.softplus(-DISC(fake)).mean()
        g.backward()
        OPT_G.step()
        """,
    ),
    "score stale": pair(
        "stale-forward",
        """
        fake = GEN(z)
        score = DISC(fake)
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(fake.detach())).mean()
        OPT_D.zero_grad()
        d.backward()
        OPT_D.step()
        g = F.softplus(-score).mean()
        OPT_G.zero_grad()
        g.backward()
        OPT_G.step()
        """,
        """
        fake = GEN(z)
        d = F.softplus(-DISC(x)).mean() + F.softplus(DISC(fake.detach())).mean()
        OPT_D.zero_grad()
        d.backward()
        OPT_D.step()
        g = F.softplus(-DISC(fake)).mean()
        OPT_G.zero_grad()
        g.backward()
        OPT_G.step()
        """,
    ),
    "advantage": pair(
        "undetached-advantage",
        """
        v = DISC(x)
        c = F.mse_loss(v, r)
        OPT_D.zero_grad()
        c.backward(retain_graph=True)
        logp = torch.log_softmax(GEN(x), -1)[:, 0]
        a = -(logp * (r - v.squeeze(-1))).mean()
        OPT_G.zero_grad()
        a.backward()
        OPT_D.step()
        OPT_G.step()
        """,
        """
        v = DISC(x)
        c = F.mse_loss(v, r)
        OPT_D.zero_grad()
        c.backward()
        logp = torch.log_softmax(GEN(x), -1)[:, 0]
        a = -(logp * (r - v.squeeze(-1).detach())).mean()
        OPT_G.zero_grad()
        a.backward()
        OPT_D.step()
        OPT_G.step()
        """,
    ),
}
"""Mistakes of two networks with an optimizer each."""

NAMES = {"NET": "net", "OPT": "opt", "GEN": "gen", "DISC": "disc", "OPT_G": "opt_g", "OPT_D": "opt_d"}


class Trainer:
    """What a structure is written around: the parts of a step, and the loop around it."""

    def __init__(self, step: str) -> None:
        self.step = step
        words = ["GEN", "DISC", "OPT_G", "OPT_D"] if "GEN" in step else ["NET", "OPT"]
        self.parts = [NAMES[word] for word in words]
        self.networks = [part for part in self.parts if not part.startswith("opt")]
        self.optimizers = [part for part in self.parts if part.startswith("opt")]

    def body(self, written: Callable[[str], str] = str, depth: int = 2) -> str:
        """The step, with its parts as ``written``."""
        step = re.sub(
            "|".join(sorted(NAMES, key=len, reverse=True)), lambda w: written(NAMES[w[0]]), self.step
        )
        return indent(step, "    " * depth)

    def loop(self, written: Callable[[str], str] = str, depth: int = 1) -> str:
        """A loop over data around the step."""
        return indent("for x, y, z, r in loader:\n", "    " * depth) + self.body(written, depth + 1)

    def lines(self, line: Callable[[str], str], parts: list[str] | None = None, depth: int = 1) -> str:
        """A line for each part."""
        return "".join(f"{'    ' * depth}{line(part)}\n" for part in (self.parts if parts is None else parts))

    @property
    def listed(self) -> str:
        """The parts, as parameters or arguments are listed."""
        return ", ".join(self.parts)


Structure = Callable[[Trainer], str]
STRUCTURES: dict[str, Structure] = {}


def structure(make: Structure) -> Structure:
    """Decorator: a structure, known by the name of its function."""
    STRUCTURES[make.__name__.replace("_", " ").strip()] = make
    return make


def of_self(part: str) -> str:
    return f"self.{part}"


@structure
def in_sight(t: Trainer) -> str:
    made = t.lines(
        lambda n: f"{n} = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))", t.networks, 0
    )
    for network, optimizer in zip(t.networks, t.optimizers):
        made += f"{optimizer} = torch.optim.Adam({network}.parameters())\n"
    return f"{made}\ndef train(loader):\n{t.loop()}"


@structure
def function(t: Trainer) -> str:
    return f"def train({t.listed}, loader):\n{t.loop()}"


@structure
def annotated(t: Trainer) -> str:
    typed = [f"{n}: nn.Module" for n in t.networks] + [f"{o}: torch.optim.Optimizer" for o in t.optimizers]
    return f"def train({', '.join(typed)}, loader):\n{t.loop()}"


@structure
def helper(t: Trainer) -> str:
    return (
        f"def step({t.listed}, batch):\n    x, y, z, r = batch\n{t.body(depth=1)}\n\n"
        f"def train({t.listed}, loader):\n    for batch in loader:\n        step({t.listed}, batch)\n"
    )


@structure
def trainer(t: Trainer) -> str:
    kept = t.lines(lambda part: f"self.{part} = {part}", depth=2)
    return (
        f"class Trainer:\n    def __init__(self, {t.listed}):\n{kept}\n"
        f"    def fit(self, loader):\n{t.loop(of_self, 2)}"
    )


@structure
def method_per_batch(t: Trainer) -> str:
    kept = t.lines(lambda part: f"self.{part} = {part}", depth=2)
    return (
        f"class Trainer:\n    def __init__(self, {t.listed}):\n{kept}\n    def update(self, x, y, z, r):\n"
        f"{t.body(of_self)}\n    def fit(self, loader):\n        for x, y, z, r in loader:\n"
        "            self.update(x, y, z, r)\n"
    )


@structure
def base_class(t: Trainer) -> str:
    return (
        "from framework import Base\n\nclass Trainer(Base):\n    def fit(self, loader):\n"
        f"{t.loop(of_self, 2)}"
    )


@structure
def built(t: Trainer) -> str:
    made = t.lines(lambda n: f"{n} = build_model(cfg, '{n}')", t.networks)
    for network, optimizer in zip(t.networks, t.optimizers):
        made += f"    {optimizer} = build_optimizer(cfg, {network})\n"
    return f"from builders import build_model, build_optimizer\n\ndef train(cfg, loader):\n{made}{t.loop()}"


@structure
def registry(t: Trainer) -> str:
    made = t.lines(lambda n: f"{n} = MODELS[cfg.{n}](cfg).to(cfg.device)", t.networks)
    for network, optimizer in zip(t.networks, t.optimizers):
        made += f"    {optimizer} = OPTIMIZERS[cfg.{optimizer}]({network}.parameters(), lr=cfg.lr)\n"
    return f"from registry import MODELS, OPTIMIZERS\n\ndef train(cfg, loader):\n{made}{t.loop()}"


@structure
def set_up_elsewhere(t: Trainer) -> str:
    made = t.lines(lambda n: f"self.{n} = self.cfg.model(self.cfg)", t.networks, 2)
    for network, optimizer in zip(t.networks, t.optimizers):
        made += f"        self.{optimizer} = self.cfg.optimizer(self.{network}.parameters())\n"
    return (
        "class Trainer:\n    def __init__(self, cfg):\n        self.cfg = cfg\n\n"
        f"    def setup(self):\n{made}\n    def fit(self, loader):\n{t.loop(of_self, 2)}"
    )


@structure
def dicts(t: Trainer) -> str:
    def written(part: str) -> str:
        return f"opts['{part}']" if part in t.optimizers else f"nets['{part}']"

    return f"def train(nets, opts, loader):\n{t.loop(written)}"


@structure
def lists(t: Trainer) -> str:
    def written(part: str) -> str:
        return (
            f"opts[{t.optimizers.index(part)}]" if part in t.optimizers else f"nets[{t.networks.index(part)}]"
        )

    return f"def train(nets, opts, loader):\n{t.loop(written)}"


@structure
def unpacked(t: Trainer) -> str:
    networks, optimizers = ("".join(f"{part}, " for part in of) for of in (t.networks, t.optimizers))
    return f"def train(nets, opts, loader):\n    {networks}= nets\n    {optimizers}= opts\n{t.loop()}"


@structure
def namespace(t: Trainer) -> str:
    return f"def train(state, loader):\n{t.loop('state.{}'.format)}"


@structure
def dataclass(t: Trainer) -> str:
    fields = t.lines(lambda n: f"{n}: nn.Module", t.networks)
    fields += t.lines(lambda o: f"{o}: torch.optim.Optimizer", t.optimizers)
    return (
        f"from dataclasses import dataclass\n\n@dataclass\nclass State:\n{fields}\n"
        f"def train(state: State, loader):\n{t.loop('state.{}'.format)}"
    )


@structure
def keywords(t: Trainer) -> str:
    return f"def train(loader, **given):\n{t.lines(lambda p: f'{p} = given[{p!r}]')}{t.loop()}"


@structure
def parts_of_one(t: Trainer) -> str:
    def written(part: str) -> str:
        return f"opts.{part}" if part in t.optimizers else f"model.{part}"

    return f"def train(model, opts, loader):\n    model.train()\n{t.loop(written)}"


@structure
def closure(t: Trainer) -> str:
    return f"def make_trainer({t.listed}):\n    def run(loader):\n{t.loop(depth=2)}\n    return run\n"


@structure
def prepared(t: Trainer) -> str:
    loop = re.sub(r"^( *)(.*)\.backward\(", r"\1accelerator.backward(\2, ", t.loop(), flags=re.MULTILINE)
    return (
        f"from accelerate import Accelerator\n\ndef train({t.listed}, loader):\n"
        f"    accelerator = Accelerator()\n"
        f"    {t.listed}, loader = accelerator.prepare({t.listed}, loader)\n{loop}"
    )
