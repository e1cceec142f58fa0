"""Where autograd refuses to write in place: what the model is certain of, and where it says nothing."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent, indent

import pytest

from gradfix.autograd.graph import Backward, InPlaceChange
from gradfix.autograd.program import analyze
from gradfix.autograd.run import Run
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

HEAD = """
import contextlib
import torch
from torch import nn
from elsewhere import build, context, decorator

net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
data = torch.randn(8, 4)
"""
TAIL = """
net(data).mean().backward()
"""


def main_run(body: str) -> Run:
    """The main run of a program that writes something, and differentiates something afterwards."""
    text = HEAD + dedent(body) + TAIL
    return analyze(ast.parse(text), text, Path("script.py")).entry_points[0].runs[0]


def refused(run: Run) -> str | None:
    """The kind of error by which a run ends at a write."""
    last = run.events[-1]
    return last.failure.kind if isinstance(last, InPlaceChange) and last.failure is not None else None


CERTAIN = {
    "a weight": ("net[0].weight.fill_(0)", "E4"),
    "an item": ("net[0].weight[0] = 0", "E4"),
    "a part of a part": ("net[0].weight.view(-1)[2:].zero_()", "E4"),
    "all of them": ("for p in net.parameters():\n    p *= 0.5", "E4"),
    "data that asks for a gradient": ("x = data.clone()\nx.requires_grad_()\nx += 1", "E4"),
    "a parameter of its own": ("scale = nn.Parameter(torch.ones(1))\nscale.mul_(2)", "E4"),
    "a layer in place": ("x = torch.ones(4, requires_grad=True)\nnn.ReLU(inplace=True)(x)", "E4"),
    "a copy of a network": ("import copy\nfor p in copy.deepcopy(net).parameters():\n    p.zero_()", "E4"),
    "what an optimizer of a network that is not seen owns": (
        "other = build()\noptimizer = torch.optim.SGD(other.parameters(), lr=1)\n"
        "for p in other.parameters():\n    p.clamp_(-1, 1)",
        "E4",
    ),
    "inside of a known context": ("with torch.autocast('cpu'):\n    net[0].bias += 1", "E4"),
    "an item of a tensor that is taken apart": ("for row in net(data):\n    row += 1", "E5"),
    "half of one": ("a, b = net(data).chunk(2)\na.relu_()", "E5"),
    "a graph written into half of the data": ("a, b = data.chunk(2)\na += net(a)", "E5"),
    "a view of half": ("a, b = torch.split(net(data), 4)\na[0] = 1", "E5"),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_a_run_ends_where_autograd_refuses_to_write(name: str) -> None:
    body, kind = CERTAIN[name]
    run = main_run(body)
    assert refused(run) == kind
    assert not any(isinstance(event, Backward) for event in run.events)


SILENT = {
    "without a graph": "with torch.no_grad():\n    net[0].weight.fill_(0)",
    "its data": "net[0].weight.data.fill_(0)",
    "detached": "net[0].weight.detach().fill_(0)",
    "initialised": "nn.init.zeros_(net[0].weight)",
    "frozen": "net.requires_grad_(False)\nnet[0].weight.fill_(0)\nnet.requires_grad_(True)",
    "in a context that is not known": "with context():\n    net[0].weight.fill_(0)",
    "in a context of an object that is not known": "with build().quiet():\n    net[0].weight.fill_(0)",
    "a network that is not seen": "for p in build().parameters():\n    p.zero_()",
    "moved, perhaps": "x = torch.ones(4, requires_grad=True).to(build())\nx += 1",
    "computed of another parameter": "layer = nn.utils.weight_norm(net[0])\nlayer.weight.zero_()",
    "expected": "try:\n    net[0].weight.fill_(0)\nexcept RuntimeError:\n    pass",
    "suppressed": "with contextlib.suppress(RuntimeError):\n    net[0].weight.fill_(0)",
    "a copy of an item": "net[0].weight[[0, 1]].mul_(2)",
    "computed": "x = net(data)\nx += 1",
    "a part by its number": "x = net(data)\nx[0] += 1",
    "rows of data": "for row in data:\n    row += 1",
    "a gradient": "net(data).mean().backward()\nnet[0].weight.grad.mul_(2)",
    "decorated by the project": (
        "def quiet(f):\n    def inner(*a):\n        with torch.no_grad():\n            return f(*a)\n"
        "    return inner\n@quiet\ndef reset():\n    net[0].weight.fill_(0)\nreset()"
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_run_goes_on_where_a_write_may_be_right(name: str) -> None:
    run = main_run(SILENT[name])
    assert refused(run) is None
    assert isinstance(run.events[-1], Backward)


def test_nothing_silent_is_told_of_what_is_not_come_to() -> None:
    """A loss without a step, say: the step comes behind the error."""
    body = """
    optimizer = torch.optim.SGD(net.parameters(), lr=1)
    for step in range(3):
        loss = net(data).mean()
        loss.backward()
        net[0].weight.clamp_(-1, 1)
        optimizer.step()
    """
    text = HEAD + dedent(body)
    (entry,) = analyze(ast.parse(text), text, Path("script.py")).entry_points
    seen = {event.site: event for event in entry.runs[0].events}
    assert [*entry.certain_observations(lambda run: seen, lambda event: event.site, raises=False)] == []


def test_what_may_be_refused_is_marked() -> None:
    run = main_run("for p in build().parameters():\n    p.zero_()")
    assert [event.doubtful for event in run.events if isinstance(event, InPlaceChange)] == [True]


def test_a_graph_that_is_not_known_may_have_been_written() -> None:
    """What is added to zeros may give them a graph: there is no error for certain."""
    for write in ("total += build()(data)", "total[0] = build()"):
        run = main_run(f"total = torch.zeros(1)\n{write}\ntotal.backward()\n{indent('', '')}")
        (first, *_) = (event for event in run.events if isinstance(event, Backward))
        assert first.failure is None


REPAIRED = {
    "a weight that has just been made": (
        "w = torch.randn(4, requires_grad=True)\nw *= 0.1",
        "w = torch.randn(4, requires_grad=True)\nwith torch.no_grad():\n    w *= 0.1",
    ),
    "data of which something is computed": (
        "w = torch.randn(4, requires_grad=True)\nv = w + 1\nw *= 0.1",
        "w = torch.randn(4, requires_grad=True)\nv = w + 1\nw = w * 0.1",
    ),
    "two of them, and what clears": (
        "a, b = (torch.ones(4, requires_grad=True) for _ in 'ab')\na = nn.Parameter(a)\nb = nn.Parameter(b)\n"
        "(a * b).sum().backward()\na -= a.grad\nb -= b.grad\na.grad = None",
        "a, b = (torch.ones(4, requires_grad=True) for _ in 'ab')\na = nn.Parameter(a)\nb = nn.Parameter(b)\n"
        "(a * b).sum().backward()\nwith torch.no_grad():\n    a -= a.grad\n    b -= b.grad\na.grad = None",
    ),
    "a loop that computes a loss as well": (
        "for p in net.parameters():\n    p.mul_(0.5)\n    net(data).mean().backward()",
        "for p in net.parameters():\n    with torch.no_grad():\n        p.mul_(0.5)\n"
        "    net(data).mean().backward()",
    ),
    "an attribute": (
        "class Box:\n    pass\nbox = Box()\nbox.w = torch.ones(4, requires_grad=True)\n"
        "box.v = box.w + 1\nbox.w += 1",
        None,
    ),
    "a weight that is shifted by what is computed": ("net[0].bias += net(data).mean()", None),
    "in the middle of an expression": ("shown = net[0].bias.add_(1).sum()", None),
    "rows whose whole is read again": ("x = net(data)\nfor row in x:\n    row += 1\nprint(x)", None),
    "rows that are handed on": (
        "def shift(row):\n    row += 1\n    return row.sum()\ntotal = 0\n"
        "for row in net(data):\n    total = total + shift(row)\ntotal.backward()",
        "def shift(row):\n    row = row + 1\n    return row.sum()\ntotal = 0\n"
        "for row in net(data):\n    total = total + shift(row)\ntotal.backward()",
    ),
    "a helper that changes what its caller goes on with": (
        "def centre(x):\n    x -= x.mean()\nx = torch.ones(4, requires_grad=True)\ny = x + 1\ncentre(x)\n"
        "print(x)",
        None,
    ),
    "an attribute by another name": (
        "class Box:\n    pass\nbox = Box()\nbox.w = torch.ones(4, requires_grad=True)\n"
        "def shift(w):\n    w += 1\n    return w.sum()\nv = box.w + 1\nshift(box.w)",
        None,
    ),
    "a part of a list": (
        "parts = net(data).chunk(2)\nfirst = parts[0]\nfirst *= 2\nnew = torch.cat(parts) + first.sum()",
        None,
    ),
    "a row that the caller reads again": (
        "def shift(row):\n    row += 1\n    return row.sum()\n"
        "for row in net(data):\n    shift(row)\n    print(row)",
        None,
    ),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_a_write_is_mended_where_it_is_certain_what_is_meant(name: str) -> None:
    before, after = REPAIRED[name]
    options = driver.prepare([], RequestedOptions(verify=False))
    assert isinstance(options, Options)
    read = source.parse("script.py", (HEAD + before + TAIL).encode(), 1 << 20)
    assert isinstance(read, Source)
    result = driver.repair(read, options)
    assert result.after.decode() == HEAD + (after or before) + TAIL
    reported = [one.finding.code for one in (*result.applied, *result.remaining)]
    assert reported == ["leaf-written-in-place"] or reported == ["view-written-in-place"]
