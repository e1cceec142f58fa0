"""Lists that carry graphs over passes: a state that each pass replaces is detached, one that grows is not."""

from __future__ import annotations

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


HEAD = """
import torch
from torch import nn
from torch.distributions import Categorical

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
cells = nn.ModuleList([nn.RNNCell(4, 4), nn.RNNCell(4, 4)])
opt = torch.optim.SGD([*net.parameters(), *cells.parameters()], lr=0.1)
"""
POLICY = """
saved, rewards = [], []
for episode in range(40):
    {first}
    for t in range(5):
        dist = Categorical(logits=net(torch.randn(4)))
        action = dist.sample()
        {put}
        rewards.append(float(action))
    loss = -(torch.stack(saved) * torch.tensor(rewards)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
APPENDED = POLICY.replace("{put}", "saved.append(dist.log_prob(action))")
IN_METHOD = """
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.saved = []

    def act(self, state):
        dist = Categorical(logits=self.net(state))
        action = dist.sample()
        self.saved.append(dist.log_prob(action))
        return action.item()

agent = Agent()
opt = torch.optim.Adam(agent.parameters())
for episode in range(40):
    {first}
    for t in range(5):
        agent.act(torch.randn(4))
    loss = -torch.stack(agent.saved).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
STATES = """
states = []
for cell in cells:
    states.append(torch.zeros(2, 4))
for step in range(40):
    x = torch.randn(2, 4)
    for i, cell in enumerate(cells):
        states[i] = cell(x, states[i])
        x = states[i]
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(APPENDED.format(first="pass"), False, id="appended to"),
        pytest.param(
            POLICY.format(first="pass", put="saved += [dist.log_prob(action)]"), False, id="added to"
        ),
        pytest.param(IN_METHOD.format(first="pass"), False, id="appended to in a method"),
        pytest.param(STATES, True, id="each item replaced"),
        pytest.param(
            STATES.replace(
                "states[i] = cell(x, states[i])\n        x = states[i]",
                "x = cell(x, states[i])\n        new.append(x)",
            )
            .replace("    x = torch.randn(2, 4)\n", "    x, new = torch.randn(2, 4), []\n")
            .replace("    opt.step()\n", "    opt.step()\n    states = new\n"),
            True,
            id="all replaced",
        ),
        pytest.param(APPENDED.format(first="saved, rewards = [], []"), None, id="made anew"),
        pytest.param(APPENDED.format(first="saved.clear(); rewards.clear()"), None, id="cleared"),
        pytest.param(IN_METHOD.format(first="del agent.saved[:]"), None, id="cleared in a method's stead"),
    ],
)
def test_what_grows_is_reported_and_not_detached(code: str, expected: bool | None, options: Options) -> None:
    parsed = source.parse("train.py", (HEAD + code).encode(), 1 << 20)
    assert isinstance(parsed, Source)
    found = list(driver.findings(parsed, options))
    assert [finding.code for finding in found] == ["carried-hidden-state"] * (expected is not None)
    for finding in found:
        assert bool(finding.fixes) is expected
        assert ("is never cleared" in finding.message) is not expected
