"""Paints portraits from profiles: a conditional GAN that asks its critic only once in each round.

Somebody met "Trying to backward through the graph a second time" and added retain_graph=True. Now it
stops with "modified by an inplace operation".
"""

import torch
import torch.nn.functional as F
from torch import nn


class Studio:
    """A painter and a critic that are trained against each other."""

    def __init__(self, profile_size=8, portrait_size=20):
        self.painter = nn.Sequential(
            nn.Linear(profile_size, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, portrait_size)
        )
        self.critic = nn.Sequential(
            nn.Linear(profile_size + portrait_size, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)
        )
        self.painter_opt = torch.optim.AdamW(self.painter.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.AdamW(self.critic.parameters(), lr=1e-3)

    def round(self, profile, portrait):
        painted = self.painter(profile)
        opinion = self.critic(torch.cat([profile, painted], 1))
        praise = self.critic(torch.cat([profile, portrait], 1))

        scorn = F.softplus(opinion).mean() + F.softplus(-praise).mean()
        self.critic_opt.zero_grad()
        scorn.backward(retain_graph=True)
        self.critic_opt.step()

        flattery = F.softplus(-opinion).mean()
        likeness = F.l1_loss(painted, portrait)
        toil = flattery + 10.0 * likeness
        self.painter_opt.zero_grad()
        toil.backward()
        self.painter_opt.step()
        return scorn.item(), toil.item()


if __name__ == "__main__":
    torch.manual_seed(11)
    studio = Studio()
    for number in range(5):
        profile = torch.randn(12, 8)
        portrait = torch.cat([profile.sin(), profile.cos(), profile[:, :4]], 1)
        scorn, toil = studio.round(profile, portrait)
        print(f"round {number}: critic {scorn:.3f}, painter {toil:.3f}")
