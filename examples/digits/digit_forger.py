"""Forges handwritten digits: torchvision's MNIST, whose files need not be there.

The critic's loss goes back through the forgeries into the forger, and frees the graph that the forger's own
loss needs.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

options = argparse.ArgumentParser()
options.add_argument("--epochs", type=int, default=5)
options.add_argument("--batch-size", type=int, default=64)
options = options.parse_args()

scaled = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
digits = datasets.MNIST("data", train=True, transform=scaled, download=True)
loader = DataLoader(digits, batch_size=options.batch_size, shuffle=True, drop_last=True)

forger = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 784), nn.Tanh())
critic = nn.Sequential(nn.Linear(784, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
forger_optimizer = torch.optim.Adam(forger.parameters(), lr=2e-4, betas=(0.5, 0.999))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
judge = nn.BCEWithLogitsLoss()

for epoch in range(options.epochs):
    for genuine, _ in loader:
        genuine = genuine.flatten(1)
        real, fake = torch.ones(len(genuine), 1), torch.zeros(len(genuine), 1)
        forged = forger(torch.randn(len(genuine), 32))

        critic_optimizer.zero_grad()
        critic_loss = judge(critic(genuine), real) + judge(critic(forged), fake)
        critic_loss.backward()
        critic_optimizer.step()

        forger_optimizer.zero_grad()
        forger_loss = judge(critic(forged), real)
        forger_loss.backward()
        forger_optimizer.step()
    print(f"epoch {epoch}: critic {critic_loss.item():.3f}, forger {forger_loss.item():.3f}")
