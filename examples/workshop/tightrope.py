"""A Wasserstein GAN with gradient penalty. It is right, and gradfix has nothing to say about it.

It detaches nothing by name, differentiates with create_graph=True, and runs three forwards of one critic
between two steps: a search for suspicious words would report it.
"""

import torch
from torch import nn

torch.manual_seed(13)
walker = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
crowd = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
walker_opt = torch.optim.Adam(walker.parameters(), lr=1e-3, betas=(0.0, 0.9))
crowd_opt = torch.optim.Adam(crowd.parameters(), lr=1e-3, betas=(0.0, 0.9))


def penalty(steady, shaky):
    blend = torch.rand(len(steady), 1)
    between = (blend * steady + (1 - blend) * shaky).requires_grad_(True)
    (slope,) = torch.autograd.grad(crowd(between).sum(), between, create_graph=True)
    return (slope.norm(2, dim=1) - 1).pow(2).mean()


for evening in range(4):
    for _ in range(2):
        angle = torch.rand(24) * 6.2832
        steady = torch.stack([angle.cos(), angle.sin()], 1)
        with torch.no_grad():
            shaky = walker(torch.randn(24, 4))
        gasp = crowd(shaky).mean() - crowd(steady).mean() + 10 * penalty(steady, shaky)
        crowd_opt.zero_grad()
        gasp.backward()
        crowd_opt.step()

    applause = -crowd(walker(torch.randn(24, 4))).mean()
    walker_opt.zero_grad()
    applause.backward()
    walker_opt.step()
    print(f"evening {evening}: gasp {gasp.item():.3f}, applause {applause.item():.3f}")
