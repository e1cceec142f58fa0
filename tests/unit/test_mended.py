"""What a rewrite is credited with: what the next check no longer finds because of it, and nothing else."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.pipeline.results import Plan
from gradfix.report.text import summary_of_plan


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plan(code: str) -> Plan:
    Path("train.py").write_text("import torch\nfrom torch import nn\n" + dedent(code))
    options = driver.prepare(["train.py"], RequestedOptions(verify=False, unsafe_fixes=True))
    assert isinstance(options, Options)
    return driver.plan(["train.py"], options)


def found(text: str) -> list[tuple[str, int]]:
    """What a fresh check finds in ``text``."""
    Path("train.py").write_text(text)
    options = driver.prepare(["train.py"], RequestedOptions(verify=False, unsafe_fixes=True))
    assert isinstance(options, Options)
    report = driver.check(["train.py"], options)
    return [(one.finding.code, one.finding.span.line) for one in report.findings]


LEFT = """
    class Pair:
        def __init__(self):
            self.maker, self.judge = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
            self.maker_optimizer = torch.optim.Adam(self.maker.parameters())
            self.judge_optimizer = torch.optim.Adam(self.maker.parameters())

        @torch.no_grad()
        def verdict(self):
            return self.judge(self.maker(torch.randn(6, 3)))

        def learn(self, real):
            judge_loss = self.judge(self.maker(torch.randn(6, 3)).detach()).mean() - self.judge(real).mean()
            self.judge_optimizer.zero_grad()
            judge_loss.backward()
            self.judge_optimizer.step()
            maker_loss = -self.verdict().mean()
            self.maker_optimizer.zero_grad()
            self.maker_optimizer.step()

    pair = Pair()
    for real in torch.randn(3, 6, 4):
        pair.learn(real)
"""
"""The second step finds no gradient, whatever is done to the first loss: nothing differentiates its own."""


def test_what_nothing_has_changed_is_left_even_if_nobody_finds_it_any_more() -> None:
    planned = plan(LEFT)
    (file,) = planned.files
    assert [attempt.also for attempt in file.applied] == [()]
    (hidden,) = file.hidden
    line = hidden.span.line
    assert file.text.splitlines()[line - 1].strip() == "self.maker_optimizer.step()"
    assert ("step-without-gradients", line) not in found(file.text)
    assert planned.exit_code == 1
    told = summary_of_plan(planned)
    assert told.startswith("Would fix 1 finding in 1 file")
    assert "1 finding left that the next check does not find" in told


ALSO = """
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in torch.randn(4, 5, 3):
        losses = []
        for row in batch:
            losses.append(net(row).square().sum().item())
        loss = torch.tensor(losses, requires_grad=True).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_a_step_that_finds_gradients_again_is_mended_by_what_gives_it_these() -> None:
    planned = plan(ALSO)
    (file,) = planned.files
    (attempt,) = file.applied
    assert [one.code for one in attempt.also] == ["step-without-gradients"]
    assert not file.hidden
    assert summary_of_plan(planned).startswith("Would fix 2 findings in 1 file")


NEW = """
    policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(policy.parameters())

    def act(state):
        chances = torch.distributions.Categorical(logits=policy(state))
        action = chances.sample()
        return action, chances.log_prob(action)

    for _ in range(3):
        states, actions, before = [], [], []
        for _ in range(5):
            state = torch.randn(4)
            action, said = act(state)
            states.append(state)
            actions.append(action)
            before.append(said)
        states, actions, before = torch.stack(states), torch.stack(actions), torch.stack(before)
        gains = torch.randn(5)
        for _ in range(3):
            now = torch.distributions.Categorical(logits=policy(states)).log_prob(actions)
            loss = -((now - before).exp() * gains).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


def test_what_comes_up_with_a_fix_is_not_counted_among_what_was_found() -> None:
    """With its result detached, ``act`` has no use for a graph: that was no mistake before."""
    planned = plan(NEW)
    (file,) = planned.files
    at_first = found(file.before.decode())
    assert len(at_first) == 1
    assert [attempt.asked_for for attempt in file.applied] == [True, False]
    assert summary_of_plan(planned).startswith(
        "Would fix 1 finding in 1 file (1 unverified), 1 more that came"
    )


APART = """
    cell, readout = nn.RNNCell(3, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *readout.parameters()], lr=0.1)
    state = torch.zeros(2, 4)
    for _ in range(3):
        state = cell(torch.randn(2, 3), state)
        loss = readout(state).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()

    other = nn.Linear(3, 1)
    second = torch.optim.SGD(other.parameters(), lr=0.1)
    for _ in range(3):
        loss = other(torch.randn(2, 3)).sigmoid().mean()
        second.zero_grad()
        loss.backward(retain_graph=True)
        second.step()
"""


def test_a_fix_leaves_other_loops_alone() -> None:
    """That another loop keeps its graphs is a finding of its own, with a fix and a proof of its own."""
    planned = plan(APART)
    (file,) = planned.files
    codes = [(attempt.finding.code, len(attempt.also)) for attempt in file.applied]
    assert codes == [("carried-hidden-state", 0), ("needless-retain-graph", 0)]
    assert found(file.text) == []
