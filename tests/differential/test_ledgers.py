"""The ledger of the model against that of the recorder, on generated programs.

Programs run as those of users do, and the recorder writes which call has given which parameters a gradient,
computed with which weights, and what has become of it. The default run compares those of one seed; the long
one, which prints what was compared and what was not, and each difference with its program, is

    pytest -m long -s tests/differential/test_ledgers.py

with ``GRADFIX_PROGRAMS`` (10000) programs of the seed ``GRADFIX_SEED`` (0).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agreement import program
from ledgers import Comparison, compare

from gradfix.autograd import model_ledger
from gradfix.core.ledger import Ledger
from gradfix.verify.jobs import Job, Limits

PROGRAMS = int(os.environ.get("GRADFIX_PROGRAMS", "10000"))
SEED = os.environ.get("GRADFIX_SEED", "0")
PART = 100
LIMITS = Limits(steps=100, backwards=300)


def compare_many(sharing: Any, seed: str, numbers: range) -> tuple[Comparison, list[tuple[int, Comparison]]]:
    """What comes of the programs of some numbers together, and of each on which the two differ."""
    together = Comparison()
    differing = []
    sources = {number: program(seed, number)[0] for number in numbers}
    jobs = [Job(Path("program.py"), source, updates=True, limits=LIMITS) for source in sources.values()]
    for number, recording in zip(numbers, sharing.run(jobs)):
        found = compare(Path("program.py"), recording)
        together.merge(found)
        if found.differences:
            differing.append((number, found))
    return together, differing


def test_the_ledgers_agree(sharing: Any) -> None:
    """No difference at all on the programs of one seed, and most of it is compared."""
    found, _ = compare_many(sharing, "ledger", range(60))
    assert found.differences == []
    assert found.entries > 200
    assert sum(count for why, count in found.abstained.items() if why.startswith("entry")) < 40


HEAD = """\
import torch
from torch import nn

torch.manual_seed(0)
"""
TRAINED = """\
for _ in range(2):
    optimizer.zero_grad()
    net(torch.randn(5, 3)).square().mean().backward()
    optimizer.step()
"""
AGREED = {
    "a network with another layer": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())

net = Net()
for width in (2, 5):
    net.head = nn.Linear(4, width)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
    + "".join(f"    {line}\n" for line in TRAINED.splitlines()),
    "all layers of a list but the last": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = layer(x).tanh()
        return self.layers[-1](x)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
    + TRAINED,
    "clipping whose norm is printed": """\
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    net(torch.randn(5, 3)).square().mean().backward()
    print("norm", nn.utils.clip_grad_norm_(net.parameters(), 1.0))
    optimizer.step()
""",
    "a generator that clipping has gone through": """\
net = nn.Linear(3, 1)
weights = net.parameters()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    net(torch.randn(5, 3)).square().mean().backward()
    nn.utils.clip_grad_norm_(weights, 1.0)
    optimizer.step()
""",
    "an optimizer made anew over gradients that are there": """\
net = nn.Linear(3, 1)
for _ in range(2):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.randn(5, 3)).square().mean().backward()
    optimizer.step()
""",
    "gradients for a part of the parameters": """\
trunk, head = nn.Sequential(nn.Linear(3, 6), nn.Tanh()), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.1)
for batch in torch.randn(2, 5, 3):
    features = trunk(batch)
    optimizer.zero_grad()
    head(features).square().mean().backward(inputs=list(head.parameters()))
    features.abs().mean().backward()
    optimizer.step()
""",
    "what a sum subtracts and multiplies": """\
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    near, far = net(torch.randn(5, 3)).square().mean(0).unbind(0)
    optimizer.zero_grad()
    (0.5 * near - far / 4 + (1 - near)).backward()
    optimizer.step()
""",
    "losses that divide, or that a parameter weighs": """\
net, weight = nn.Linear(3, 2), nn.Parameter(torch.ones(()))
optimizer = torch.optim.SGD([*net.parameters(), weight], lr=0.1)
for _ in range(2):
    near, far = net(torch.randn(5, 3)).square().mean(0).unbind(0)
    optimizer.zero_grad()
    near.backward(retain_graph=True)
    (torch.tensor(2.0) / near + weight * far).backward()
    optimizer.step()
""",
    "a loss used twice by an optimizer that is made later, of parameters that are frozen in the end": """\
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loss = net(torch.randn(5, 3)).square().mean()
loss.backward(retain_graph=True)
loss.backward()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
optimizer.step()
net.requires_grad_(False)
""",
    "parameters that an optimizer is given twice": """\
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD([*net.parameters(), *net.parameters()], lr=0.1)
"""
    + TRAINED,
}
"""Programs of which one of the two once wrote what did not happen."""

ABSTAINED = {
    "a network that is checkpointed": """\
from torch.utils.checkpoint import checkpoint
body, head = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    head(checkpoint(body, torch.randn(5, 3), use_reentrant=False)).square().mean().backward()
    optimizer.step()
""",
    "weights that are replaced by what was computed": """\
net, moving = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for name in ("weight", "bias"):
    delattr(moving, name)
    setattr(moving, name, getattr(net, name) * 2)
moving(torch.randn(4, 3)).square().mean().backward()
optimizer.step()
""",
}
"""Programs of which the model once said what did not happen, and that it cannot follow."""


@pytest.fixture(scope="module")
def told(sharing: Any) -> dict[str, Comparison]:
    """What comes of each of these programs."""
    sources = {name: HEAD + text for name, text in {**AGREED, **ABSTAINED}.items()}
    jobs = [Job(Path("program.py"), source, updates=True) for source in sources.values()]
    return {name: compare(Path("program.py"), one) for name, one in zip(sources, sharing.run(jobs))}


@pytest.mark.parametrize("name", AGREED)
def test_both_write_what_happened(name: str, told: dict[str, Comparison]) -> None:
    assert told[name].differences == []
    assert told[name].entries > 1
    assert not [why for why in told[name].abstained if why.startswith(("program", "event", "call: not"))]


@pytest.mark.parametrize("name", ABSTAINED)
def test_the_model_is_certain_of_nothing_that_did_not_happen(name: str, told: dict[str, Comparison]) -> None:
    assert told[name].differences == []
    assert told[name].abstained["call: not certain"] > 0


@pytest.mark.parametrize(
    "forgotten",
    [
        {"clearings": ()},
        {"steps": ()},
        {"calls": lambda calls: tuple(replace(one, gives={}) for one in calls)},
    ],
    ids=lambda one: next(iter(one)),
)
def test_a_difference_is_noticed(
    forgotten: dict[str, Any], sharing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison itself can fail: a ledger without clearings, or steps, or entries, is found out."""
    real = model_ledger.ledger_of

    def forgetful(*args: Any) -> Ledger:
        ledger = real(*args)
        changed = {key: how(getattr(ledger, key)) if callable(how) else how for key, how in forgotten.items()}
        order = ledger.order
        if changed.get("steps") == ():
            changed["steps"] = tuple(replace(step, consumed={}) for step in ledger.steps)
        return replace(ledger, order=order, **changed)

    monkeypatch.setattr("ledgers.ledger_of", forgetful)
    found, _ = compare_many(sharing, "ledger", range(10))
    assert found.differences


@pytest.mark.long
def test_the_ledgers_agree_in_the_long_run(sharing: Any) -> None:
    """As above, on very many programs."""
    together = Comparison()
    for start in range(0, PROGRAMS, PART):
        part, differing = compare_many(sharing, SEED, range(start, min(start + PART, PROGRAMS)))
        together.merge(part)
        for number, found in differing:
            print(f"{SEED}.{number}:", *found.differences, sep="\n    ")
            print(program(SEED, number)[0])
        print(
            f"{start + PART} programs: {together.entries} entries compared, "
            f"{len(together.differences)} differences",
            flush=True,
        )
    for why, count in together.abstained.most_common():
        print(f"{count:6} {why}")
    assert together.differences == []
