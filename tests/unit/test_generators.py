"""Training that is written as a generator, and trainers that are handed their optimizer."""

from __future__ import annotations

import re
from textwrap import dedent, indent

import pytest

from gradfix.core.codemod import Severity
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(5, 4, 3)


def training(batches):
    state = torch.zeros(4, 3)
    for batch in batches:
        BODY
        yield state

"""

RIGHT = """
state = net(batch + state.detach())
loss = state.square().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""

CARRIED = RIGHT.replace("state.detach()", "state")
UNCLEARED = RIGHT.replace("optimizer.zero_grad()\n", "")
KEPT = RIGHT.replace("backward()", "backward(retain_graph=True)")
SWAPPED = RIGHT.replace("loss.backward()\noptimizer.step()", "optimizer.step()\nloss.backward()")

USES = {
    "a loop": "for state in training(data):\n    print(state.mean())\n",
    "a numbered loop that is left": """
        for number, state in enumerate(training(data)):
            if number == 3:
                break
            if number == 1:
                continue
            print(state.sum().item())
        else:
            print("over")
    """,
    "through another generator": """
        def reported(batches):
            for state in training(batches):
                yield float(state.detach().mean())

        for value in reported(data):
            print(value)
    """,
    "nobody in the file": "",
}


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare(
        [], RequestedOptions(unsafe_fixes=True, verify=False, min_severity=Severity.INFO)
    )
    assert isinstance(prepared, Options)
    return prepared


def codes(text: str, options: Options) -> list[str]:
    parsed = source.parse("script.py", text.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    return [f.code for f in driver.findings(parsed, options)]


def program(body: str, use: str) -> str:
    return re.sub(r" +BODY", lambda _: indent(body.strip("\n"), " " * 8), HEAD) + dedent(use)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (RIGHT, []),
        (CARRIED, ["carried-hidden-state"]),
        (UNCLEARED, ["missing-zero-grad"]),
        (KEPT, ["needless-retain-graph"]),
        (SWAPPED, ["step-before-backward"]),
    ],
    ids=["right", "carried", "uncleared", "kept", "swapped"],
)
def test_training_in_a_generator(body: str, code: list[str], use: str, options: Options) -> None:
    assert codes(program(body, use), options) == code


@pytest.mark.parametrize("use", [use for use in USES.values() if use])
def test_what_torch_says_of_them(use: str) -> None:
    exec(compile(program(RIGHT, use), "script.py", "exec"), {})
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        exec(compile(program(CARRIED, use), "script.py", "exec"), {})


def test_a_loop_that_clears_what_the_generator_consumes(options: Options) -> None:
    use = "for state in training(data):\n    optimizer.zero_grad()\n"
    assert codes(program(UNCLEARED, use), options) == []


def test_a_loop_that_differentiates_what_the_generator_kept(options: Options) -> None:
    use = "for state in training(data):\n    state.sum().backward()\n    optimizer.zero_grad()\n"
    unstepped = KEPT.replace("optimizer.step()\n", "")
    exec(compile(program(unstepped, use), "script.py", "exec"), {})
    assert codes(program(unstepped, use), options) == []


TRAINER = """
import torch


class Trainer:
    def __init__(self, model, optimizer=None, schedule=None):
        self.model = model
        self.optimizer = optimizer
        self.schedule = schedule

    def fit(self, batches):
        if self.optimizer is None:
            raise RuntimeError("training needs an optimizer")
        for batch in batches:
            self.optimizer.zero_grad()
            loss = self.model(batch).mean()
            loss.backward()
            self.optimizer.step()
            if self.schedule is not None:
                self.schedule.step()
"""


def test_a_trainer_that_need_not_be_given_an_optimizer(options: Options) -> None:
    assert codes(TRAINER, options) == []
    late = re.sub(r"(?s)( +loss.backward\(\)\n)( +self.optimizer.step\(\)\n)", r"\2\1", TRAINER)
    assert codes(late, options) == ["step-before-backward"]


OLD = """
import torch
from torch import nn
from kernels import sample


class Crop(torch.autograd.Function):
    def forward(self, picture, places):
        result = picture.new(places.size(0), 4).zero_()
        sample(picture, places, result)
        self.places = places
        return result

    def backward(self, gradient):
        return gradient, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(3, 4)

    def forward(self, picture, places):
        return Crop()(self.base(picture), places)

    def train(self, mode=True):
        nn.Module.train(self, mode)


net = Net()
net.train()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for picture, places in zip(torch.randn(5, 4, 3), torch.rand(5, 4, 2)):
    optimizer.zero_grad()
    net(picture, places).mean().backward(retain_graph=True)
    optimizer.step()
"""


def test_a_function_as_they_were_written_until_torch_1_2(options: Options) -> None:
    """Nothing that is called in it has a graph in hand."""
    assert codes(OLD, options) == ["needless-retain-graph"]


def test_a_generator_whose_use_is_not_followed(options: Options) -> None:
    """It is looked at as somebody outside would go through it."""
    use = "print(len(list(training(data))))\n"
    assert codes(program(CARRIED, use), options) == ["carried-hidden-state"]
    assert codes(program(RIGHT, use), options) == []


ATTACKED = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = [(torch.randn(4, 3), torch.randint(2, (4,))) for _ in range(5)]


def attacked(batches):
    for inputs, labels in batches:
        inputs.requires_grad_(True)
        nn.functional.cross_entropy(net(inputs), labels).backward()
        yield (inputs + 0.1 * inputs.grad.sign()).detach(), labels


for number, (inputs, labels) in enumerate(attacked(data)):
    if number == 3:
        break
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(inputs), labels)
    loss.backward()
    optimizer.step()
"""


def test_a_generator_of_data_that_differentiates(options: Options) -> None:
    exec(compile(ATTACKED, "script.py", "exec"), {})
    assert codes(ATTACKED, options) == []
    late = ATTACKED.replace(
        "    loss.backward()\n    optimizer.step()", "    optimizer.step()\n    loss.backward()"
    )
    assert codes(late, options) == ["step-before-backward"]
