"""What evaluates with grad enabled: which part of a program is told, and what keeps it from being told."""

from __future__ import annotations

from textwrap import indent

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

CODE = "evaluation-with-grad"


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(select=(CODE,), verify=False))
    assert isinstance(prepared, Options)
    return prepared


def told(code: str, options: Options) -> list[str]:
    """The lines on which something is told."""
    read = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(read, Source)
    lines = code.splitlines()
    return [lines[finding.span.line - 1].strip() for finding in driver.findings(read, options)]


def parsed(code: str) -> Source:
    read = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(read, Source)
    return read


def lines_added(code: str, options: Options) -> list[str]:
    read = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(read, Source)
    result = driver.repair(read, options)
    before = {line.strip() for line in result.before.decode().splitlines()}
    return [line for line in result.after.decode().splitlines() if line.strip() not in before]


SCRIPT = """
import torch
from torch import nn
from elsewhere import batches, held_out, keep, metric, option

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{before}

for epoch in range(100):
    for x, y in batches:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{last}
"""


def script(before: str = "", last: str = "") -> str:
    return SCRIPT.format(before=before, last=indent(last, "    "))


EVALUATE = """
def evaluate():
    total = 0
    for x, y in held_out:
        total += nn.functional.mse_loss(net(x), y){end}
    return total
"""


@pytest.mark.parametrize("end", ["", ".item()", ".detach()"])
@pytest.mark.parametrize(
    "last",
    [
        "evaluate()",
        "print(evaluate())",
        "print(f'{epoch}: {evaluate():.3f}')",
        "print('%.3f' % round(float(evaluate()), 2))",
        "best = min(1e9, float(evaluate()))",
    ],
)
def test_a_function_is_told_however_it_is_called(last: str, end: str, options: Options) -> None:
    assert told(script(EVALUATE.format(end=end), last), options) == ["def evaluate():"]


def test_it_is_decorated_by_what_the_file_calls_torch(options: Options) -> None:
    code = script(EVALUATE.format(end=""), "evaluate()")
    assert lines_added(code, options) == ["@torch.no_grad()"]
    assert lines_added(
        code.replace("import torch", "import torch as t").replace(" torch.optim", " t.optim"), options
    ) == ["@t.no_grad()"]
    elsewhere = code.replace("import torch", "from torch import optim").replace("torch.optim", "optim")
    assert told(elsewhere, options) == []


LOOP = """
net.eval()
for x, y in held_out:
    print(metric(net(x).argmax(1), y))
net.train()
"""


def test_a_loop_is_told_where_the_function_trains(options: Options) -> None:
    assert told(script(last=LOOP), options) == ["for x, y in held_out:"]
    assert lines_added(script(last=LOOP), options) == ["    with torch.no_grad():"]


def test_of_several_around_it_the_outermost_function_is_told(options: Options) -> None:
    before = """
def predict(x):
    return net(x).argmax(1)

def score():
    return sum(float((predict(x) == y).sum()) for x, y in held_out)
"""
    assert told(script(before, "for _ in range(10):\n    print(score())"), options) == ["def score():"]


@pytest.mark.parametrize(
    "last",
    [
        # A loss that somebody walks, now or by an option.
        "evaluate().backward()",
        "if option.joint:\n    evaluate().backward()",
        "total = evaluate()\nif epoch % 2:\n    total.backward()",
        # Who is not seen may do so.
        "keep(evaluate())",
        "held_out.loss = evaluate()",
        # It is done already.
        "with torch.no_grad():\n    evaluate()",
        "with torch.set_grad_enabled(option.learns):\n    evaluate()",
        # Nobody knows what these do.
        "with option.context:\n    evaluate()",
        "with option.no_gradients():\n    evaluate()",
    ],
)
def test_nothing_is_said(last: str, options: Options) -> None:
    assert told(script(EVALUATE.format(end=""), last), options) == []


@pytest.mark.parametrize(
    "body",
    [
        "return net(torch.zeros(1, 3)).requires_grad",
        "x = torch.zeros(1, 3).requires_grad_()\n    return net(x).sum()",
        "with torch.enable_grad():\n        return net(torch.zeros(1, 3))",
        "for x, y in held_out:\n        yield net(x).item()",
    ],
)
def test_what_looks_at_graphs_or_yields_is_left_alone(body: str, options: Options) -> None:
    assert told(script(f"def look():\n    {body}", "for _ in range(9):\n    print(look())"), options) == []


def test_what_a_decorator_does_that_is_not_seen_is_not_known(options: Options) -> None:
    code = script(EVALUATE.format(end=""), "evaluate()")
    assert told(code.replace("def evaluate", "@option.quietly\ndef evaluate"), options) == []


def test_one_forward_that_nothing_repeats_is_too_little(options: Options) -> None:
    before = "def shape():\n    return net(torch.zeros(1, 3)).shape\nsize = shape()"
    assert told(script(before), options) == []


def test_a_network_that_is_frozen_has_no_graph(options: Options) -> None:
    code = script(EVALUATE.format(end="").replace("net(x)", "teacher(x)"), "evaluate()")
    made = "teacher = nn.Linear(3, 1){}\ndef evaluate"
    assert told(code.replace("def evaluate", made.format("")), options) == ["def evaluate():"]
    assert told(code.replace("def evaluate", made.format(".requires_grad_(False)")), options) == []


def test_a_caller_who_is_not_seen_may_walk_a_result(options: Options) -> None:
    function = """
import torch

def fit(batches):
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def evaluate():
        return sum(torch.nn.functional.mse_loss(net(x), y) for x, y in batches)

    for x, y in batches:
        loss = torch.nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {last}
"""
    ends = "last = evaluate()"
    assert told(function.format(last=ends) + "    return float(last)", options) == ["def evaluate():"]
    assert told(function.format(last=ends) + "    return last", options) == []


def test_code_for_a_torch_that_knew_volatile_is_left_alone(options: Options) -> None:
    code = script(EVALUATE.format(end=""), "evaluate()")
    assert told(f"# Variable(x, volatile=True)\n{code}", options) == []


UNSEEN = """
import torchmetrics
from functools import partial
from elsewhere import Base, adapt, learner_of, options, unroll

class Fitted(Base):
    def __init__(self):
        self.net = net

fitted = Fitted()
outside = learner_of(net)

def evaluate():
    total = 0
    for x, y in held_out:
        {line}
        total += nn.functional.mse_loss(net(x), y).item()
    return total
"""


@pytest.mark.parametrize(
    "line",
    [
        # The network itself, its parameters, or something that holds them or can call it.
        "adapt(net, x, y)",
        "score = adapt(net)",
        "score = adapt(list(net.parameters()))",
        "score = adapt({'net': net, 'rate': 0.1}, x)",
        "score = adapt(optimizer, x)",
        "score = adapt(fitted)",
        "score = adapt(lambda: net(x))",
        "score = adapt(net.forward, x)",
        "score = adapt(partial(net, x))",
        "score = unroll(evaluation=(x, [y, net]))",
        # What was made from it before, and what is inherited from out of sight.
        "score = outside.score(x, y)",
        "score = fitted.score(x, y)",
        # What was computed.
        "score = adapt(net(x), y)",
        "score = adapt(options(loss=nn.functional.mse_loss(net(x), y)))",
    ],
)
def test_code_that_is_not_seen_may_differentiate_what_it_gets_hold_of(line: str, options: Options) -> None:
    assert told(script(UNSEEN.format(line=line), "evaluate()"), options) == []


@pytest.mark.parametrize(
    "line",
    [
        "score = adapt(x, y)",
        "score = adapt(net(x).argmax(1), y)",
        "score = adapt(net(x).detach().numpy())",
        "with torch.no_grad():\n            score = adapt(net(x), y)",
        "print(net(x), net)",
        "score = torchmetrics.functional.accuracy(net(x), y)",
        "score = torchmetrics.Accuracy()(net(x), y)",
    ],
)
def test_code_that_is_not_seen_may_have_data(line: str, options: Options) -> None:
    assert told(script(UNSEEN.format(line=line), "evaluate()"), options) == ["def evaluate():"]


def test_a_frozen_network_gives_nothing_to_differentiate(options: Options) -> None:
    frozen = "teacher = nn.Linear(3, 1).requires_grad_(False)\n"
    code = script(frozen + UNSEEN.format(line="score = adapt(teacher, x)"), "evaluate()")
    assert told(code, options) == ["def evaluate():"]


def test_a_forward_may_differentiate_in_a_library(options: Options) -> None:
    code = """
import torch
from torch import nn
from elsewhere import batches, gradients_of, held_out, pooled, unrolled

class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.of = nn.Linear(4, 1)

    def forward(self, x):
        y = torch.zeros(len(x), 1, requires_grad=True)
        inner = unrolled(torch.optim.SGD([y], lr=0.1), [y])
        for _ in range(3):
            {step}
        return {result}

net = Energy()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def test():
    net.eval()
    return sum(float(nn.functional.mse_loss(net(x), y)) for x, y in held_out)

for x, y in batches:
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(test())
"""
    energy = "self.of(torch.cat((x, y), 1))"
    unrolling = f"y, = inner.step({energy}.sum(), params=[y])"
    assert told(code.format(step=unrolling, result=energy), options) == []
    assert told(code.format(step=f"print({energy}.sum())", result=energy), options) == ["def test():"]
    # An operation that is not seen is one: the network is trained through it.
    pooled = f"pooled({energy}, x)"
    assert told(code.format(step="pass", result=pooled), options) == ["def test():"]
    assert told(code.format(step="pass", result=f"gradients_of({energy}, x)"), options) == []


ADAPTING = """
import learn2learn as l2l
import torch
from torch import nn
from elsewhere import tasks

def fast_adapt(learner, x, y):
    learner.adapt(nn.functional.mse_loss(learner(x), y))
    return nn.functional.mse_loss(learner(x), y)

maml = l2l.algorithms.MAML(nn.Linear(3, 1), lr=0.1)
optimizer = torch.optim.Adam(maml.parameters())
for _ in range(1000):
    optimizer.zero_grad()
    for x, y in tasks.train:
        fast_adapt(maml.clone(), x, y).backward()
    optimizer.step()
total = 0
for x, y in tasks.test:
    total += {evaluation}
"""


def test_a_learner_that_adapts_differentiates(options: Options) -> None:
    assert told(ADAPTING.format(evaluation="fast_adapt(maml.clone(), x, y).item()"), options) == []
    plain = "nn.functional.mse_loss(maml(x), y).item()"
    assert told(ADAPTING.format(evaluation=plain), options) == ["for x, y in tasks.test:"]


PENALTY = """
class {cls}:
    def {name}(self, x):
        total = 0
        for part in x:
            total = total + net(part).square().mean()
        return total

terms = {cls}()
"""


def rated(code: str, options: Options, path: str = "script.py") -> list[tuple[str | None, int]]:
    """The severity of each finding that is more than nothing, and how many fixes it has."""
    read = source.parse(path, code.encode(), 1 << 20)
    assert isinstance(read, Source)
    found = driver.findings(read, options)
    return [(finding.severity and finding.severity.value, len(finding.fixes)) for finding in found]


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        ("Terms", "penalty"),
        ("Terms", "gradientPenaltyTerm"),
        ("Terms", "value_loss"),
        ("SmoothnessLoss", "forward_all"),
        ("Regularization", "of"),
    ],
)
def test_what_is_named_for_a_loss_is_no_evaluation(cls: str, name: str) -> None:
    prepared = driver.prepare([], RequestedOptions(select=(CODE,), verify=False, min_severity="info"))
    assert isinstance(prepared, Options)
    term = f"left_out = terms.{name}(batches)  # loss = loss + left_out"
    code = script(PENALTY.format(cls=cls, name=name), term)
    assert rated(code, prepared) == [("info", 0)]
    assert "no backward uses what it computes" in driver.findings(parsed(code), prepared)[0].message


@pytest.mark.parametrize("name", ["validation_loss", "val_loss", "estimate_loss", "test_losses", "score"])
def test_what_is_named_for_an_evaluation_is_one(name: str, options: Options) -> None:
    code = script(PENALTY.format(cls="Terms", name=name), f"print(terms.{name}(batches))")
    assert rated(code, options) == [("warning", 1)]


@pytest.mark.parametrize(
    ("path", "severity"),
    [
        ("losses.py", "info"),
        ("criterion.py", "info"),
        ("losses/smooth.py", "info"),
        ("weight_loss.py", "warning"),
    ],
)
def test_what_stands_where_losses_do_is_no_evaluation(path: str, severity: str) -> None:
    prepared = driver.prepare([], RequestedOptions(select=(CODE,), verify=False, min_severity="info"))
    assert isinstance(prepared, Options)
    code = script(PENALTY.format(cls="Terms", name="smooth"), "left_out = terms.smooth(batches)")
    assert [one for one, _ in rated(code, prepared, path)] == [severity]
