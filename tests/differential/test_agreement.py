"""The model of autograd against PyTorch itself, on generated programs.

The default run compares a few hundred programs of one seed. The long one, for which the target is
99.9 % agreement where the model answers, is

    pytest -m long -s tests/differential

with ``GRADFIX_PROGRAMS`` (10000) programs of the seed ``GRADFIX_SEED`` (0). It prints the share of
agreement and of abstention, and each disagreement with the smallest program that still shows it.
"""

from __future__ import annotations

import os

import pytest
import torch
from agreement import Tally, compare_many, judge, program, shrink
from choices import Choices, Drawn
from hypothesis import HealthCheck, Phase, assume, given, settings, strategies
from model import predict
from outcome import Verdict
from programs import Features, generate

PROGRAMS = int(os.environ.get("GRADFIX_PROGRAMS", "10000"))
SEED = os.environ.get("GRADFIX_SEED", "0")
PART = 250
"""So many programs between two lines of progress."""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Programs are too small for threads."""
    torch.set_num_threads(1)


def explain(seed: str, verdict: Verdict, source: str, exact: bool) -> str:
    """A disagreement, with the smallest program that shows it."""
    small = shrink(source, exact=exact)
    found = judge(small, exact=exact) or verdict
    lines = "\n".join(f"{n:4} {line}" for n, line in enumerate(small.splitlines(), 1))
    return f"{seed}: {found.what}: {found.detail}\n{lines}\n"


@pytest.mark.parametrize("part", range(4))
def test_model_agrees_with_torch(part: int) -> None:
    """No difference at all on the programs of one seed."""
    tally = compare_many("default", range(part * 100, part * 100 + 100))
    assert not tally.differing, "\n".join(explain(*d) for d in tally.differing)
    assert tally.unsuitable <= 10
    assert tally.abstention <= 0.10


@strategies.composite
def programs(draw: strategies.DrawFn, exact: bool = True) -> str:
    """Programs that hypothesis can shrink."""
    return generate(Choices(Drawn(draw)), Features(not exact))


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(programs())
def test_model_agrees_where_hypothesis_looks(source: str) -> None:
    """Hypothesis prefers other programs than a uniform draw does."""
    verdict = judge(source)
    assume(verdict is not None)
    assert verdict is None or verdict.kind != "differs", f"{verdict}\n{verdict and verdict.detail}\n{source}"


def test_a_difference_is_noticed_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself can fail: a model that forgets every error is found out."""
    monkeypatch.setattr("gradfix.autograd.graph._fault", lambda node: None)
    tally = compare_many("default", range(40))
    errors = [d for d in tally.differing if d[1].what.startswith("missed")]
    assert errors
    _, verdict, source, exact = errors[0]
    small = shrink(source, exact=exact)
    assert len(small) < len(source)
    found = judge(small, exact=exact)
    assert found is not None
    assert found.what == verdict.what


def test_programs_are_reproducible_and_diverse() -> None:
    """A number always gives the same program, and all kinds of errors come about."""
    from reality import Unsuitable, run

    assert program(1, 7) == program(1, 7)
    kinds = set()
    for number in range(150):
        try:
            outcome = run(program(1, number)[0])
        except Unsuitable:
            continue
        kinds.add(outcome.error[0] if outcome.error else None)
    assert kinds >= {None, "E1", "E2", "E3", "E4"}


ABSTAINED = {
    "a batch that shares its memory with what is computed of it": (
        """\
import torch
net = torch.nn.Linear(3, 3)
def batches():
    for _ in range(4):
        yield torch.randn(2, 3)
for i, batch in enumerate(batches()):
    loss = (batch.permute(1, 0).permute(1, 0) / net(torch.relu(batch))).sum()
    batch.exp_()
    loss.backward()
""",
        "error",
    ),
    "what an unknown tensor was given": (
        """\
import torch
weight = torch.nn.Parameter(torch.randn(3))
def batches():
    for _ in range(4):
        yield torch.randn(2, 3)
for batch in batches():
    batch[0] = (batch + weight)[1]
    (batch + weight).sum().backward()
    (weight - batch).pow(2).mean().backward()
""",
        "error",
    ),
    "a part of one": (
        """\
import torch
weight = torch.nn.Parameter(torch.randn(3))
def batches():
    for _ in range(4):
        yield torch.randn(2, 3)
for batch in batches():
    batch[:1] = batch[1:] * weight
    batch.sum().backward()
    batch.sum().backward()
""",
        "error",
    ),
    "a view of a leaf, or a copy": (
        """\
import torch
net = torch.nn.Linear(3, 3)
net(torch.ones(2, 3)).sum().backward()
leaf = torch.ones(2, 3).requires_grad_()
flat = leaf.flatten()
flat[1] = 1
""",
        "error",
    ),
    "what one kernel saves and another does not": (
        """\
import torch
from torch import nn
words, reader = nn.Embedding(4, 3), nn.LSTM(3, 3)
text = words(torch.tensor(1)) + torch.ones(2, 3)
told, _ = reader(text)
torch.relu_(text)
text.sum().backward()
told.mean().backward()
""",
        "which error",
    ),
    "an index that is saved, unless it is a scalar": (
        """\
import torch
weight = torch.nn.Parameter(torch.randn(2, 3))
mask = torch.tensor([[True, False, True], [False, True, False]])
loss = weight[mask].sum()
loss.backward()
loss.backward()
""",
        "error",
    ),
}
"""Programs of which the model once said that all is well, or that something else fails."""

OFTEN = {
    "what a network does to a batch in place": """\
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
    def forward(self, x):
        x.relu_()
        return self.layer(x)
net = Net()
for x, y in torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2):
    first = net(y)
    net(y)
    first.sum().backward()
""",
    "a batch that is filled with a graph": """\
import torch
weight = torch.randn(3, 3, requires_grad=True)
for x in torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2):
    loss = torch.nn.functional.mse_loss(torch.ones(2, 3) @ weight, x)
    x.add_(x.matmul(weight))
    loss.backward()
""",
}
"""Errors in loops of unknown length that the model once did not think of."""

QUIET = {
    "a chained comparison with a pass's number": """\
import torch
weight = torch.randn(3, requires_grad=True)
last = (weight * weight).sum()
last.backward()
for i, x in enumerate(torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2)):
    (last if 0 < i <= 2 else (weight * x).sum()).backward()
    last = (weight * weight).sum()
""",
    "the first pass is the last": """\
import torch
weight = torch.randn(3, requires_grad=True)
loss = (weight * weight).sum()
for i, x in enumerate(torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2)):
    if not i:
        break
    loss.backward()
    loss.backward()
""",
    "a number among some, in a pass that has none of them": """\
import torch
weight = torch.randn(3, requires_grad=True)
for i, x in enumerate(torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2)):
    loss = (weight * weight).sum()
    if i % 2 == 0:
        continue
    loss.backward()
    if i in (0, 2):
        loss.backward()
""",
    "what is computed of data and of a network": """\
import torch
net = torch.nn.Linear(3, 3)
leaf = torch.zeros(3).requires_grad_()
shift = leaf.data
loss = torch.ones(3) - shift.sub(net(torch.ones(3)))
loss.mean().backward()
""",
    "the derivative of a sum": """\
import torch
weight = torch.randn(3).requires_grad_()
(slope,) = torch.autograd.grad(weight.sum(), weight, create_graph=True)
slope.sum().backward()
""",
}
"""Programs of which the model once said that they fail elsewhere than they do, if at all."""


AGREED = {
    "a network that gives a view of its parameter": """\
import torch
class Offset(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.value = torch.nn.Parameter(torch.randn(2, 3))
    def forward(self, x):
        return self.value.view_as(x)
net = Offset()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in [torch.ones(2, 3), torch.ones(2, 3)]:
    loss = torch.nn.functional.mse_loss(batch, net(batch))
    optimizer.step()
    loss.backward()
""",
    "a leaf that shares its memory": """\
import torch
from torch.autograd import Variable
weight = torch.nn.Parameter(torch.randn(3))
batch = torch.randn(3)
leaf = Variable(batch, requires_grad=True)
loss = (leaf * weight).pow(2).sum()
batch.add_(1)
loss.backward()
""",
    "a network that multiplies by its transposed parameter": """\
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = [torch.nn.Linear(3, 3)]
        self.value = torch.nn.Parameter(torch.randn(2, 3))
    def forward(self, x):
        return self.first[0](x.detach()).mm(self.value.t()).mm(torch.ones(2, 3))
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
state = torch.zeros(2, 3)
for step in range(3):
    (state - torch.ones(2, 3)).pow(2).mean().backward() if step else None
    state = net(net(state))
    optimizer.step()
""",
    "a view from before another was changed": """\
import torch
weight = torch.randn(3, requires_grad=True)
rows = torch.randn(2, 3)
first, second = rows[0], rows[1]
shift = weight.exp()
second += shift
shift.sum().backward()
(first * weight).sum().backward()
""",
    "a parameter that shares its memory": """\
import torch
weight = torch.nn.Parameter(torch.randn(3))
batch = torch.randn(3)
leaf = torch.nn.Parameter(batch)
loss = (leaf * weight).pow(2).sum()
batch.add_(1)
loss.backward()
""",
}
"""Programs of which the model once said that all is well, and knows the error now."""


@pytest.mark.parametrize("name", AGREED)
def test_the_model_knows_what_it_once_missed(name: str) -> None:
    assert judge(AGREED[name]) == Verdict("agrees")
    assert predict(AGREED[name]).error is not None


@pytest.mark.parametrize("name", ABSTAINED)
def test_the_model_abstains_where_it_cannot_know(name: str) -> None:
    source, what = ABSTAINED[name]
    assert judge(source) == Verdict("abstains", what)


@pytest.mark.parametrize("name", OFTEN)
def test_the_model_thinks_of_what_may_fail(name: str) -> None:
    assert judge(OFTEN[name], exact=False) == Verdict("abstains", "error")


@pytest.mark.parametrize("name", QUIET)
def test_the_model_invents_nothing(name: str) -> None:
    assert judge(QUIET[name], exact=False) == Verdict("agrees")


@pytest.mark.long
def test_model_agrees_in_the_long_run() -> None:
    """As above, on very many programs."""
    tally = Tally()
    for start in range(0, PROGRAMS, PART):
        part = range(start, min(start + PART, PROGRAMS))
        tally.merge(compare_many(SEED, part))
        print(
            f"{tally.programs} programs, {tally.unsuitable} unsuitable; agreement {tally.agreement:.3%}"
            f" where the model answers, abstention {tally.abstention:.2%}",
            flush=True,
        )
    for word, count in tally.words.most_common():
        print(f"{count:6} {word}")
    for difference in tally.differing:
        print(explain(*difference))
    invented = [d for d in tally.differing if d[1].what.startswith("invented")]
    assert not invented
    assert tally.agreement >= 0.999
    assert tally.abstention <= 0.05
