"""Networks, with the layers and the weights that they begin with."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

KINDS = {
    one.__name__.lower(): one
    for one in (
        nn.ELU, nn.Hardshrink, nn.Hardtanh, nn.LeakyReLU, nn.LogSigmoid, nn.PReLU, nn.ReLU, nn.ReLU6,
        nn.RReLU, nn.SELU, nn.Sigmoid, nn.Softplus, nn.LogSoftmax, nn.Softshrink, nn.Softsign, nn.Tanh,
        nn.Tanhshrink, nn.Softmin, nn.Softmax,
    )
}  # fmt: skip
BEGINNINGS = {"xavier": "xavier_uniform", "kaiming": "kaiming_uniform", "he": "kaiming_normal"}
"""Short names of how weights are drawn."""


@functools.cache
def activation(name: str) -> nn.Module:
    """What stands between layers: one for all networks."""
    kind: Callable[..., nn.Module] = KINDS[name]
    return kind(dim=1) if kind is nn.Softmax else kind()


def drawn(network: nn.Module, initializer: str) -> nn.Module:
    """A network with weights drawn in a way, and no bias."""
    draw = getattr(nn.init, BEGINNINGS.get(initializer, initializer) + "_")

    def begin(layer: nn.Module) -> None:
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            draw(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    return network.apply(begin)


def create_linear_network(
    input_dim: int,
    output_dim: int,
    hidden_units: Sequence[int] = (),
    hidden_activation: str = "relu",
    output_activation: str | None = None,
    initializer: str = "xavier_uniform",
) -> nn.Module:
    """Linear layers with an activation between them."""
    wide = input_dim
    layers: list[nn.Module] = []
    for units in hidden_units:
        layers += [nn.Linear(wide, units), activation(hidden_activation)]
        wide = units
    layers.append(nn.Linear(wide, output_dim))
    if output_activation is not None:
        layers.append(activation(output_activation))
    return drawn(nn.Sequential(*layers), initializer)


def create_dqn_base(num_channels: int, initializer: str = "xavier_uniform") -> nn.Module:
    """The layers that look at the screens of Atari's games."""
    layers: list[nn.Module] = []
    for wide, next_, kernel, stride in ((num_channels, 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1)):
        layers += [nn.Conv2d(wide, next_, kernel, stride), nn.ReLU()]
    return drawn(nn.Sequential(*layers, nn.Flatten()), initializer)


class BaseNetwork(nn.Module):
    """A network that is kept in a file, and that nothing trains once it is only asked."""

    def save(self, path: Any) -> None:
        """Keep the weights."""
        torch.save(self.state_dict(), path)

    def load(self, path: Any) -> None:
        """Take the weights that were kept."""
        self.load_state_dict(torch.load(path))

    def eval(self) -> Any:
        """From here on its weights need no gradients."""
        return super().eval().requires_grad_(False)

    @property
    def num_params(self) -> int:
        """How many numbers its weights have."""
        return sum(one.numel() for one in self.parameters())


base = builder = sys.modules[__name__]
