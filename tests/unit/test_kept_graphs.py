"""What is kept for the log with its graph: how it may be kept, and by what it is needed. Nothing is run."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

CODE = "graph-kept-for-bookkeeping"


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(select=(CODE,), verify=False))
    assert isinstance(prepared, Options)
    return prepared


def parsed(code: str, path: str = "script.py") -> Source:
    read = source.parse(path, code.encode(), 1 << 20)
    assert isinstance(read, Source)
    return read


def detached(code: str, options: Options, path: str = "script.py") -> list[str]:
    """The lines that a repair changes, as they are then."""
    before = parsed(code, path)
    result = driver.repair(before, options)
    assert not result.problems
    old, new = result.before.decode().splitlines(), result.after.decode().splitlines()
    assert len(old) == len(new)
    return [line.strip() for was, line in zip(old, new) if was != line]


TRAINING = """
import torch
from torch import nn
from elsewhere import batches, criterion, keep, log

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{before}
for number, (x, y) in enumerate(batches):
    out = net(x)
    loss = nn.functional.mse_loss(out, y)
{first}
    optimizer.zero_grad()
    loss.backward({how})
    optimizer.step()
{last}
{after}
"""


def training(before: str = "", first: str = "", last: str = "", after: str = "", how: str = "") -> str:
    first, last = indent(dedent(first), "    "), indent(dedent(last), "    ")
    return TRAINING.format(before=dedent(before), first=first, last=last, after=dedent(after), how=how)


@pytest.mark.parametrize(
    ("before", "kept", "repaired"),
    [
        ("total = 0", "total += loss", "total += loss.detach()"),
        ("total = torch.zeros(1)", "total += loss", "total += loss.detach()"),
        ("total = 0", "total = total + loss * len(x)", "total = total + loss.detach() * len(x)"),
        ("total = 0", "total += loss / 2", "total += loss.detach() / 2"),
        ("total = 0", "total += out.abs().mean()", "total += out.abs().mean().detach()"),
        ("total = 0", "total += 2 * loss + out.sum()", "total += (2 * loss + out.sum()).detach()"),
        ("losses = []", "losses.append(loss)", "losses.append(loss.detach())"),
        ("losses = []", "losses += [loss]", "losses += [loss.detach()]"),
        ("losses = []", "losses.append((number, loss))", "losses.append((number, loss.detach()))"),
        ("history = {'loss': []}", "history['loss'].append(loss)", "history['loss'].append(loss.detach())"),
        ("curve = torch.zeros(1000)", "curve[number] = loss", "curve[number] = loss.detach()"),
        (
            "from collections import deque\nlosses = deque()",
            "losses.append(loss)",
            "losses.append(loss.detach())",
        ),
        ("losses = list()", "losses.append(loss)", "losses.append(loss.detach())"),
    ],
)
def test_it_is_detached_where_it_is_kept(before: str, kept: str, repaired: str, options: Options) -> None:
    assert detached(training(before, last=kept), options) == [repaired]
    assert detached(training(before, first=kept), options) == [repaired]


@pytest.mark.parametrize(
    ("before", "first", "last"),
    [
        # There is nothing that grows.
        ("losses = []", "", "losses.append(loss); losses.clear()"),
        ("", "losses = []", "losses.append(loss)"),
        ("before = 0", "", "before = loss"),
        ("log = {}", "", "log['loss'] = loss"),
        ("before = None", "", "change = 0 if before is None else loss - before\nbefore = loss"),
        # It has no graph.
        ("total = 0", "", "total += loss.item()"),
        ("total = 0", "", "total += float(loss)"),
        ("total = 0", "", "total += loss.data"),
        ("total = 0", "", "with torch.no_grad():\n    total += net(x).mean()"),
        # The backward walks it by way of the list.
        ("losses = []", "losses.append(loss); loss = losses[-1]", "losses.pop()"),
        ("losses = []", "losses.append(loss); loss = sum(losses)", "losses.clear()"),
        # What may be a number has no `detach`.
        ("total = 0", "term = 0\nif number > 9: term = out.mean()\nloss = loss + term", "total += term"),
        ("total = 0", "", "total += out.mean() if number > 9 else 0"),
        # An array takes the number.
        ("import numpy as np\ncurve = np.zeros(1000)", "", "curve[number] = loss"),
        # Of a minimum nobody knows what it keeps.
        ("best = 1e9", "", "best = min(best, loss)"),
    ],
)
def test_nothing_is_said(before: str, first: str, last: str, options: Options) -> None:
    assert detached(training(before, first, last), options) == []


def test_a_sum_that_is_walked_by_an_option_is_needed(options: Options) -> None:
    code = training("total = 0", last="total += loss", after="if log.joint:\n    total.backward()")
    assert detached(code, options) == []


def test_a_short_loop_keeps_little(options: Options) -> None:
    code = training("total = 0", last="total += loss")
    assert detached(code.replace("enumerate(batches)", "zip(range(3), batches)"), options) != []
    few = code.replace("for number, (x, y) in enumerate(batches)", "x, y = batches\nfor number in range(3)")
    assert detached(few, options) == []


def test_what_is_not_freed_may_be_walked_by_who_is_handed_it(options: Options) -> None:
    kept = training("losses = []", last="losses.append(loss)", how="retain_graph=True")
    assert detached(kept, options) == ["losses.append(loss.detach())"]
    assert detached(f"{kept}\nkeep(losses)", options) == []


def test_a_loss_that_is_freed_is_of_no_use_to_who_is_handed_it(options: Options) -> None:
    code = training("losses = []", last="losses.append(loss)", after="keep(losses)")
    assert detached(code, options) == ["losses.append(loss.detach())"]
    other = training("sizes = []", last="sizes.append(out.abs().mean())", after="keep(sizes)")
    assert detached(other, options) == []


FUNCTION = """
import torch

def train(net, batches, optimizer, history):
    total = 0
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
        history.append(loss)
        {last}
    return total
"""


def test_a_caller_who_is_not_seen_may_have_a_loss(options: Options) -> None:
    assert detached(FUNCTION.format(last=""), options) == [
        "total += loss.detach()",
        "history.append(loss.detach())",
    ]


METER = """
class Meter:
    def __init__(self):
        self.sum, self.count = 0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
"""
METERED = """
    losses.update(loss, len(x))
    sizes.update(len(x))
    errors.update(n=len(x), value=out.abs().mean())
"""
MADE = "losses, sizes, errors = Meter(), Meter(), Meter()"


def test_a_meter_is_handed_a_detached_loss(options: Options) -> None:
    assert detached(training(f"{METER}\n{MADE}", last=METERED), options) == [
        "losses.update(loss.detach(), len(x))",
        "errors.update(n=len(x), value=out.abs().mean().detach())",
    ]


def test_so_is_one_in_another_file(tmp_path: Path, options: Options) -> None:
    (tmp_path / "meters.py").write_text(METER)
    code = training(f"from meters import Meter\n{MADE}", last=METERED)
    path = tmp_path / "script.py"
    path.write_text(code)
    assert detached(code, options, str(path)) == [
        "losses.update(loss.detach(), len(x))",
        "errors.update(n=len(x), value=out.abs().mean().detach())",
    ]


TRAINER = """
import torch

class Trainer:
    def __init__(self, net, optimizer):
        self.net, self.optimizer, self.total = net, optimizer, 0

    def learn(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total += loss

net = torch.nn.Linear(3, 1)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1))
for _ in range(100):
    trainer.learn(net(torch.randn(4, 3)).mean())
"""


def test_who_differentiates_what_it_is_handed_is_handed_the_graph(options: Options) -> None:
    assert detached(TRAINER, options) == ["self.total += loss.detach()"]


def test_a_sum_of_sums_is_told_once(options: Options) -> None:
    code = """
    import torch
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    epochs = []
    for epoch in range(100):
        total = 0
        for x in torch.randn(50, 4, 3):
            loss = net(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss
        epochs.append(total / 50)
    """
    found = driver.findings(parsed(dedent(code)), options)
    assert [finding.span.line for finding in found] == [13]
    assert detached(dedent(code), options) == ["total += loss.detach()"]


POOL = """
class Pool:
    def __init__(self):
        self.held = []

    def {name}(self, value):
        self.held.append(value)
        return value
"""


def test_who_gives_back_what_it_keeps_is_handed_the_graph(options: Options) -> None:
    code = training(f"{POOL.format(name='query')}\npool = Pool()", first="loss = pool.query(loss)")
    assert detached(code, options) == []
    code = training(f"{POOL.format(name='put')}\npool = Pool()", last="pool.put(loss)")
    assert detached(code, options) == ["pool.put(loss.detach())"]
