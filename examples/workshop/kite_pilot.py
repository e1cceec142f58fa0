"""Keeps a kite in the air: one critic, one stochastic policy, in the manner of soft actor-critic.

Both losses are computed first and applied afterwards. By the time the policy's loss goes backward, the
critic that it was computed with has been moved by its own optimizer.
"""

import copy

import torch
from torch import nn

WIND, ROPES = 6, 2
GAMMA, TEMPERATURE = 0.98, 0.1


def tower(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outputs))


class Pilot(nn.Module):
    def __init__(self):
        super().__init__()
        self.brain = tower(WIND, 2 * ROPES)

    def forward(self, wind):
        mean, spread = self.brain(wind).chunk(2, dim=-1)
        gust = torch.distributions.Normal(mean, spread.clamp(-4, 1).exp())
        raw = gust.rsample()
        pull = torch.tanh(raw)
        log_prob = gust.log_prob(raw) - torch.log(1 - pull.pow(2) + 1e-6)
        return pull, log_prob.sum(-1, keepdim=True)


torch.manual_seed(5)
pilot = Pilot()
value_of = tower(WIND + ROPES, 1)
value_target = copy.deepcopy(value_of)
pilot_optim = torch.optim.Adam(pilot.parameters(), lr=3e-4)
value_optim = torch.optim.Adam(value_of.parameters(), lr=3e-4)

for minute in range(5):
    wind, pulled = torch.randn(32, WIND), torch.rand(32, ROPES) * 2 - 1
    next_wind = wind + 0.1 * torch.randn_like(wind)
    height = -(wind[:, :ROPES] - pulled).pow(2).sum(-1, keepdim=True)

    with torch.no_grad():
        next_pull, next_log_prob = pilot(next_wind)
        later = value_target(torch.cat([next_wind, next_pull], -1)) - TEMPERATURE * next_log_prob
        wanted = height + GAMMA * later
    value_loss = nn.functional.mse_loss(value_of(torch.cat([wind, pulled], -1)), wanted)

    pull, log_prob = pilot(wind)
    policy_loss = (TEMPERATURE * log_prob - value_of(torch.cat([wind, pull], -1))).mean()

    value_optim.zero_grad()
    value_loss.backward()
    value_optim.step()

    pilot_optim.zero_grad()
    policy_loss.backward()
    pilot_optim.step()

    with torch.no_grad():
        for slow, quick in zip(value_target.parameters(), value_of.parameters()):
            slow.lerp_(quick, 0.005)
    print(f"minute {minute}: value {value_loss.item():.3f}, policy {policy_loss.item():.3f}")
