"""Batches of which each picture is mixed with the one before it, and so are the classes."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["CutMix", "MixUp"]


class _Mixed(torch.nn.Module):
    """For pictures and their classes, batch x channels x height x width and batch."""

    def __init__(
        self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: Any = None
    ) -> None:
        super().__init__()
        self.alpha, self.num_classes = float(alpha), num_classes

    def mixed(self, pictures: torch.Tensor, share: float) -> tuple[torch.Tensor, float]:
        """The pictures, and which share of each is its own."""
        raise NotImplementedError

    def forward(self, *inputs: Any) -> Any:
        """Both, or a dictionary in which they are; classes become shares of all of them."""
        sample: Any = inputs if len(inputs) > 1 else inputs[0]
        named = isinstance(sample, dict)
        key = next((name for name in sample if "label" in str(name).lower()), None) if named else 1
        at = next(name for name, one in sample.items() if one.dim() > 2) if named else 0
        pictures, labels = sample[at], sample[key]
        if labels.dim() == 1:
            if self.num_classes is None:
                raise ValueError("num_classes must be passed if the labels are a batch of indices")
            labels = torch.nn.functional.one_hot(labels, self.num_classes)
        share = float(torch.distributions.Beta(self.alpha, self.alpha).sample())
        pictures, share = self.mixed(pictures, share)
        labels = labels.float() * share + labels.float().roll(1, 0) * (1 - share)
        if named:
            return {**sample, at: pictures, key: labels}
        return (pictures, labels, *sample[2:])


class MixUp(_Mixed):
    """Means of two pictures."""

    def mixed(self, pictures: torch.Tensor, share: float) -> tuple[torch.Tensor, float]:
        """The pictures, and which share of each is its own."""
        return pictures * share + pictures.roll(1, 0) * (1 - share), share


class CutMix(_Mixed):
    """A part of another picture in each."""

    def mixed(self, pictures: torch.Tensor, share: float) -> tuple[torch.Tensor, float]:
        """The pictures, and which share of each is its own."""
        sides = pictures.shape[-2:]
        ends = []
        for side in sides:
            middle, half = int(torch.randint(side, (1,))), int(side * (1 - share) ** 0.5 / 2)
            ends.append(slice(max(0, middle - half), min(side, middle + half)))
        mixed = pictures.clone()
        mixed[..., ends[0], ends[1]] = pictures.roll(1, 0)[..., ends[0], ends[1]]
        taken = (ends[0].stop - ends[0].start) * (ends[1].stop - ends[1].start)
        return mixed, 1 - taken / (sides[0] * sides[1])
