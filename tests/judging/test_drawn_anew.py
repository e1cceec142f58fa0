"""Repairs that draw random numbers anew, where the original uses the ones that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging.test_going_on import changed, outcomes
from judging.test_judging import GAN, HEAD, JUDGE, MAKER, Original

LONG = GAN.replace("range(4)", "range(40)")
OLD = LONG + JUDGE.format(fake="fake") + MAKER
RIGHT = JUDGE.format(fake="fake.detach()")
ANEW = MAKER.replace("judge(fake)", "judge(maker(torch.randn(8, 4)))")

NORMED = OLD.replace("nn.ReLU(), nn.Linear(12, 6)", "nn.BatchNorm1d(12), nn.Dropout(0.2), nn.Linear(12, 6)")

# A policy whose loss needs an action and the logarithm of that action's probability.
POLICY = (
    HEAD
    + """
from torch.distributions import Normal
actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
opt_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)
for step in range(40):
    state, reward = torch.randn(8, 3), torch.randn(8, 1)
    dist = Normal(actor(state), 0.5)
    action = dist.rsample()
    opt_critic.zero_grad()
    loss_critic = F.mse_loss(critic(torch.cat([state, {taken}], 1)), reward)
    loss_critic.backward()
    opt_critic.step()
    opt_actor.zero_grad()
    {again}
    value = critic(torch.cat([state, action], 1))
    loss_actor = (0.1 * dist.log_prob({judged}).sum(1, keepdim=True) - value).mean()
    loss_actor.backward()
    opt_actor.step()
"""
)
OLD_POLICY = POLICY.format(taken="action", again="pass", judged="action")


def again(more: str, judged: str = "action") -> str:
    return POLICY.format(taken="action.detach()", again=more, judged=judged)


CASES = {
    "the generator's own noise": (OLD, LONG + RIGHT + ANEW, "accepted"),
    "the generator's own noise, and the judge's graph": (
        OLD,
        LONG + JUDGE.format(fake="fake") + ANEW,
        "accepted",
    ),
    "noise in another manner": (
        OLD,
        LONG + RIGHT + ANEW.replace("torch.randn(8, 4)", "torch.empty(8, 4).normal_()"),
        "accepted",
    ),
    "the judge's own noise": (
        OLD,
        LONG + JUDGE.format(fake="maker(torch.randn(8, 4)).detach()") + MAKER,
        "accepted",
    ),
    "the generator's own noise, and before": (OLD, LONG + ANEW + RIGHT, "accepted"),
    "running statistics and masks": (
        NORMED,
        NORMED.replace("judge(fake)", "judge(fake.detach())", 1).replace(
            "judge(fake), ones", "judge(maker(torch.randn(8, 4))), ones"
        ),
        "accepted",
    ),
    "noise for a log": (
        OLD,
        LONG + RIGHT + MAKER + "    with torch.no_grad():\n        print(maker(torch.randn(8, 4)).mean())\n",
        "accepted",
    ),
    "noise that is drawn once": (
        OLD,
        changed(LONG, ("for step", "noise = torch.randn(8, 4)\nfor step"))
        + RIGHT
        + ANEW.replace("torch.randn(8, 4)", "noise"),
        "not run",
    ),
    "noise that is the same each time": (
        OLD,
        LONG
        + RIGHT
        + ANEW.replace("    opt_maker.zero_grad()", "    torch.manual_seed(1)\n    opt_maker.zero_grad()"),
        "not run",
    ),
    "less noise": (
        OLD,
        LONG + RIGHT + ANEW.replace("torch.randn(8, 4)", "0.9 * torch.randn(8, 4)"),
        "not run",
    ),
    "other noise": (OLD, LONG + RIGHT + ANEW.replace("randn", "rand"), "not run"),
    "no noise": (OLD, LONG + RIGHT + ANEW.replace("randn", "zeros"), "refuted"),
    "noise for a generator that does not learn": (
        OLD,
        LONG + RIGHT + ANEW.replace("maker(torch.randn(8, 4))", "maker(torch.randn(8, 4)).detach()"),
        "refuted",
    ),
    "noise for a loss of the other sign": (
        OLD,
        LONG + RIGHT + ANEW.replace("loss_m.backward()", "(-loss_m).backward()"),
        "not run",
    ),
    "a generator that steps twice": (
        OLD,
        LONG + RIGHT + ANEW + "    opt_maker.step()\n",
        "refuted",
    ),
    "an action of its own": (OLD_POLICY, again("action = dist.rsample()"), "accepted"),
    "a probability of another action": (OLD_POLICY, again("pass", "dist.rsample()"), "not run"),
    "a value of another action": (
        OLD_POLICY,
        again("other, action = action, dist.rsample()", "other"),
        "not run",
    ),
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", CASES)
def test_what_is_drawn_anew_is_held_against_what_it_stands_for(
    name: str, original: Original, tmp_path: Path
) -> None:
    before, after, expected = CASES[name]
    assert outcomes(original(before), after, tmp_path) == {expected}
