"""How a file is entered: what surrounds a function that is called from outside, and what a budget stops."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from pathlib import Path
from textwrap import dedent

import pytest

from gradfix.autograd.graph import Backward
from gradfix.autograd.program import BUDGET, MANY_CALLS, Program, analyze
from gradfix.autograd.run import Run
from gradfix.core.span import Span
from gradfix.rules import catalog
from gradfix.rules.clauses import has_uncleared_step

NETWORK = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
DOUBLING = "\n".join(
    f"def double_{n}(x):\n    return double_{n + 1}(double_{n + 1}(x))"
    if n < 30
    else f"def double_{n}(x):\n    return x"
    for n in range(31)
)
TWICE = """\
def twice(batches):
    for batch in batches:
        loss = net(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        loss.backward()
        optimizer.step()
"""


def program(*parts: str) -> Program:
    text = "\n".join(map(dedent, parts)) + "\n"
    return analyze(ast.parse(text), text, Path("script.py"))


def failing_lines(analysed: Program) -> list[str]:
    """The source lines of the backwards that raise in the main run of an entry."""
    return [
        analysed.text.splitlines()[event.site.lineno - 1].strip()  # type: ignore[attr-defined]
        for entry in analysed.entry_points
        for event in entry.runs[0].events
        if isinstance(event, Backward) and event.failure is not None
    ]


def test_a_function_without_end_is_named_and_the_others_are_judged() -> None:
    endless = """\
    def train(batches):
        for batch in batches:
            double_0(net(batch)).mean().backward()
            optimizer.step()
    """
    analysed = program(NETWORK, DOUBLING, endless, TWICE)
    assert analysed.messages == (f"analysis of double_0 stopped: more than {MANY_CALLS} calls within it",)
    assert "loss.backward()" in failing_lines(analysed)


def test_a_function_without_end_that_a_module_calls_is_named() -> None:
    calls = """\
    twice(torch.randn(4, 5, 3))
    double_0(net(torch.randn(5, 3))).mean().backward()
    """
    analysed = program(NETWORK, DOUBLING, TWICE, calls)
    assert analysed.messages == (f"analysis of double_0 stopped: more than {MANY_CALLS} calls within it",)
    assert "loss.backward()" in failing_lines(analysed)


def test_a_long_file_is_not_stopped_for_its_length() -> None:
    lines = "\n".join(f"    scale_{n} = {n}" for n in range(BUDGET // 2))
    loop = """\
        loss = net(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        loss.backward()
    """
    head = "for batch in torch.utils.data.DataLoader([]):"
    analysed = program(NETWORK, f"{head}\n{lines}\n" + loop.replace("        ", "    "))
    assert analysed.messages == ()
    assert failing_lines(analysed)


def test_a_class_is_defined_from_others_that_stand_below_or_above() -> None:
    classes = """\
    class Trainer(Base):
        def fit(self, batches):
            state = torch.zeros(5, 3)
            for batch in batches:
                state = self.net(batch + state)
                self.update(state.square().mean())
    """
    base = """\
    class Base:
        def __init__(self):
            self.net = make()
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def update(self, loss):
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


    def make():
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
    """
    assert "loss.backward()" in failing_lines(program(NETWORK, base, classes))


def test_a_name_that_is_bound_twice_means_what_it_means_at_the_end() -> None:
    rebound = """\
    def make_loss(batch):
        return net(batch).square().mean()


    def make_loss(batch):
        return net(batch).detach().requires_grad_().mean()


    def fit(batches):
        for batch in batches:
            first = make_loss(batch)
            first.backward()
            first.backward()
    """
    assert failing_lines(program(NETWORK, rebound)) == []


@pytest.mark.parametrize(("limit", "failing"), [("max_iter=3", ["loss.backward()"]), ("max_iter=1", [])])
def test_lbfgs_evaluates_its_closure_again(limit: str, failing: list[str]) -> None:
    outside = f"""\
    lbfgs = torch.optim.LBFGS(net.parameters(), {limit})


    def fit(batches):
        for batch in batches:
            answers = net(batch)

            def closure():
                lbfgs.zero_grad()
                loss = answers.square().mean()
                loss.backward()
                return loss

            lbfgs.step(closure)
    """
    assert failing_lines(program(NETWORK, outside))[:1] == failing


THREE_STEPS = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--depth", type=int, default=0)
chosen = parser.parse_args().depth
depth = int(input())
head, body, tail = (nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)) for _ in range(3))
steps = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (head, body, tail)]
for batch in [torch.randn(2, 4) for _ in range(3)]:
    features = head(batch)
    middle = body(features.detach())
    rebuilt = body(features{cut})
    scored = tail(middle)
    features.square().mean().backward(retain_graph=True)
    steps[0].step()
    (middle.mean() + rebuilt.mean()).backward(retain_graph=True)
    steps[1].step()
    scored.mean().backward()
    steps[2].step()
"""


@pytest.mark.parametrize(
    ("cut", "reported"),
    [
        ("", [19, 21]),
        (".detach()", [21]),
        (" if depth == 0 else features.detach()", []),
        (" if chosen == 0 else features.detach()", [19, 21]),
        (" if chosen > 0 else features.detach()", [21]),
    ],
)
def test_who_may_fail_before_is_not_passed_over(cut: str, reported: list[int]) -> None:
    """Whether line 19 raises is the user's choice; to tell only of line 21 would mislead.

    Of an option, it is known what holds if nobody chooses.
    """
    source = THREE_STEPS.replace("{cut}", cut)
    analysed = analyze(ast.parse(source), source, Path("train.py"))
    (entry,) = analysed.entry_points
    found = entry.certain_observations(failing, lambda event: event.site, raises=True)
    assert sorted(event.site.lineno for event in found) == reported


def failing(run: Run) -> dict[Hashable, Backward]:
    return {event.site: event for event in run.events if isinstance(event, Backward) and event.failure}


REFINER = """
import torch


class Refiner(object):
    def __init__(self, net, store):
        self.net, self.store = net, store

    def loss(self):
        maps = self.store.maps()
        maps *= 100
        return max([max(0, 1.0 - torch.softmax(maps, 0)[:, i].max()) for i in range(2)])

    @staticmethod
    def moved(latent, loss):
        gradient = torch.autograd.grad(loss.requires_grad_(True), [latent], retain_graph=True)[0]
        return latent - 0.1 * gradient

    def __call__(self, latent):
        for _ in range(3):
            latent = latent.clone().detach().requires_grad_(True)
            self.net(latent)
            latent = self.moved(latent, self.loss())
        return latent
"""


def test_a_gradient_whose_way_is_not_seen_keeps_its_graph() -> None:
    """How the loss comes from the latent is the store's affair, and so is who else goes through its graph."""
    analysed = analyze(ast.parse(REFINER), REFINER, Path("train.py"))
    (entry,) = analysed.entry_points
    asked = [event for event in entry.runs[0].events if isinstance(event, Backward)]
    assert asked and all(event.retain is True and not event.visited for event in asked)
    codemod = catalog.load().get("needless-retain-graph")
    assert not isinstance(codemod, str)
    assert list(codemod.find(analysed)) == []


OTHERWISE = """\
def other(batches):
    for batch in batches:
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()
"""


def test_a_change_is_seen_only_by_the_ways_that_come_to_it() -> None:
    analysed = program(NETWORK, TWICE, OTHERWISE)
    loss = next(node for node in ast.walk(analysed.tree) if isinstance(node, ast.Assign) and node.col_offset)
    keys = analysed.entry_points_to([Span.of(loss)])
    assert keys == {("", "twice")}
    again = analyze(analysed.tree, analysed.text, analysed.path, keys)
    assert [entry.key for entry in again.entry_points] == [("", "twice")]
    assert set(failing_lines(again)) == {"loss.backward()"}


def test_what_stands_in_no_function_concerns_every_way() -> None:
    analysed = program(NETWORK, TWICE, OTHERWISE)
    assert analysed.entry_points_to([Span.of(analysed.tree.body[-3])]) is None


def test_no_further_run_is_made_where_there_is_nothing_to_see_a_second_time() -> None:
    code = """\
    def train(batches):
        for batch in batches:
            optimizer.zero_grad()
            net(batch).square().mean().backward()
            optimizer.step()
            break
    """
    (entry,) = program(NETWORK, code).entry_points
    entry.pending.append(lambda: pytest.fail("a further run was made"))
    assert not [
        *entry.certain_observations(
            lambda run: {}, lambda site: site, raises=False, repeated=has_uncleared_step
        )
    ]
