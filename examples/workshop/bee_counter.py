"""Counts bees from the hum of a hive, and never clears its gradients.

Nothing raises. Each step moves along the sum of all gradients since the first one. Because the repair
changes what a running program learns, `gradfix apply` writes it only with `--unsafe-fixes`.
"""

import torch
from torch import nn

torch.manual_seed(2)
hive = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
keeper = torch.optim.SGD(hive.parameters(), lr=0.02)

for day in range(6):
    hum = torch.randn(40, 16)
    bees = hum.abs().sum(1, keepdim=True)
    error = nn.functional.smooth_l1_loss(hive(hum), bees)
    error.backward()
    keeper.step()
    print(f"day {day}: off by {error.item():.3f}")
