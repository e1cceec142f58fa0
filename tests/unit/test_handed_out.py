"""A graph that a function hands out is kept for somebody: what the caller may still differentiate."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
history = []
last = None


class Result:
    def __init__(self, value):
        self.value = value


"""

FUNCTIONS = {
    "an object": ("return Result(held)", "handed.value"),
    "an object in a list in a dict": ('return {"results": [Result(held)]}', 'handed["results"][0].value'),
    "a distribution": ("return torch.distributions.Normal(held, held.exp())", "handed.mean"),
    "a function": ("return lambda: held", "handed()"),
    "a nested function": ("def inner():\n    return held\nreturn inner", "handed()"),
    "a partial": ("return partial(torch.mul, held)", "handed(2.0)"),
    "a list of the file": ("history.append(held)", "history[-1]"),
    "a variable of the file": ("global last\nlast = held", "last"),
    "an argument's attribute": ("out.value = held", "out.value"),
    "an argument's item": ('out["value"] = held', 'out["value"]'),
    "an argument's list": ("out.values.append(held)", "out.values[0]"),
}

OUT = {
    "an argument's attribute": "Result(None)",
    "an argument's item": "{}",
    "an argument's list": "type('Out', (), {'values': []})()",
}

UPDATE = """
from functools import partial


def update(batch, out):
    held = other(batch)
    loss = (net(batch) + held).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
"""

METHOD = """
class Trainer:
    def update(self, batch):
        self.held = other(batch)
        loss = (net(batch) + self.held).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def codes(text: str, options: Options) -> list[str]:
    parsed = source.parse("script.py", text.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    # That no optimizer owns the other network is told besides.
    found = [f.code for f in driver.findings(parsed, options)]
    return [code for code in found if code != "unused-gradients"]


def raises(text: str) -> bool:
    """Whether a program raises that the graph is gone."""
    try:
        exec(compile(text, "script.py", "exec"), {"__name__": "script"})
    except RuntimeError as error:
        return "backward through the graph a second time" in str(error)
    return False


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_hands_out(name: str, options: Options) -> None:
    way, used = FUNCTIONS[name]
    text = HEAD + UPDATE + indent(dedent(way), "    ") + "\n"
    call = (
        f"out = {OUT.get(name, 'None')}\nhanded = update(torch.randn(2, 3), out)\n({used}).sum().backward()\n"
    )
    assert not raises(text + call)
    assert raises((text + call).replace("retain_graph=True", ""))
    assert codes(text, options) == []


def test_what_a_method_leaves_in_its_object(options: Options) -> None:
    text = HEAD + METHOD
    call = "trainer = Trainer()\ntrainer.update(torch.randn(2, 3))\ntrainer.held.sum().backward()\n"
    assert not raises(text + call)
    assert raises((text + call).replace("retain_graph=True", ""))
    assert codes(text, options) == []


def test_what_is_handed_out_of_no_use(options: Options) -> None:
    """The step has moved all that it was computed with: to differentiate it raises, flag or no flag."""
    for name, (way, _) in FUNCTIONS.items():
        if name == "an argument's list":
            continue  # Its method may do anything with what it is handed.
        moved = (HEAD + UPDATE + indent(dedent(way), "    ") + "\n").replace("= other(batch)", "= net(batch)")
        assert codes(moved, options) == ["needless-retain-graph"], way
    assert codes((HEAD + METHOD).replace("= other(batch)", "= net(batch)"), options) == [
        "needless-retain-graph"
    ]
