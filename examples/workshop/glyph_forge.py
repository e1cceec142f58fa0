"""Forges handwritten strokes: a small convolutional GAN (the forger) against an inspector.

As it stands it stops in the first batch with "Trying to backward through the graph a second time".
"""

import torch
from torch import nn

SIDE, NOISE, WIDTH = 16, 24, 16


class Forger(nn.Module):
    """Noise in, a picture of SIDE x SIDE out."""

    def __init__(self):
        super().__init__()
        self.stack = nn.Sequential(
            nn.ConvTranspose2d(NOISE, WIDTH * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(WIDTH * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(WIDTH * 2, WIDTH, 4, 2, 1, bias=False),
            nn.BatchNorm2d(WIDTH),
            nn.ReLU(True),
            nn.ConvTranspose2d(WIDTH, 1, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, noise):
        return self.stack(noise)


class Inspector(nn.Module):
    """A picture in, the logit of "this one is genuine" out."""

    def __init__(self):
        super().__init__()
        self.eye = nn.Sequential(
            nn.Conv2d(1, WIDTH, 4, 2, 1),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(WIDTH, WIDTH * 2, 4, 2, 1),
            nn.BatchNorm2d(WIDTH * 2),
            nn.LeakyReLU(0.2, inplace=True),
        )
        self.verdict = nn.Conv2d(WIDTH * 2, 1, 4, 1, 0)

    def forward(self, picture):
        return self.verdict(self.eye(picture)).flatten()


def genuine_strokes(count):
    """Pictures of one bright diagonal each, slightly smeared."""
    rows = torch.arange(SIDE)
    offsets = torch.randint(-4, 5, (count, 1))
    pictures = torch.full((count, 1, SIDE, SIDE), -1.0)
    for picture, offset in zip(pictures, offsets):
        picture[0, rows, (rows + offset).clamp(0, SIDE - 1)] = 1.0
    return pictures + 0.05 * torch.randn_like(pictures)


def main():
    torch.manual_seed(7)
    forger, inspector = Forger(), Inspector()
    judge = nn.BCEWithLogitsLoss()
    forger_optim = torch.optim.Adam(forger.parameters(), lr=2e-4, betas=(0.5, 0.999))
    inspector_optim = torch.optim.Adam(inspector.parameters(), lr=2e-4, betas=(0.5, 0.999))

    for batch in range(6):
        strokes = genuine_strokes(16)
        genuine = torch.ones(len(strokes))
        forged = torch.zeros(len(strokes))

        # The inspector learns to tell them apart.
        inspector_optim.zero_grad()
        loss_genuine = judge(inspector(strokes), genuine)
        loss_genuine.backward()
        pictures = forger(torch.randn(len(strokes), NOISE, 1, 1))
        loss_forged = judge(inspector(pictures), forged)
        loss_forged.backward()
        inspector_optim.step()

        # The forger learns to pass.
        forger_optim.zero_grad()
        loss_forger = judge(inspector(pictures), genuine)
        loss_forger.backward()
        forger_optim.step()

        found_out = (loss_genuine + loss_forged).item()
        print(f"batch {batch}: inspector {found_out:.3f}, forger {loss_forger.item():.3f}")


if __name__ == "__main__":
    main()
