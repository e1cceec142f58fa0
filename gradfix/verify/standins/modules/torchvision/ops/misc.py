"""Layers that networks of pictures and films are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

__all__ = [
    "MLP",
    "Conv2dNormActivation",
    "Conv3dNormActivation",
    "FrozenBatchNorm2d",
    "Permute",
    "SqueezeExcitation",
    "StochasticDepth",
    "drop_block2d",
    "interpolate",
    "stochastic_depth",
]

interpolate = nn.functional.interpolate


class FrozenBatchNorm2d(nn.Module):
    """A batch norm whose four vectors are buffers, so nothing of it is learnt or counted."""

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.ones(num_features))
        self.register_buffer("bias", torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pictures, each channel on its scale."""
        weight, bias, mean, spread = (
            self.get_buffer(name)[:, None, None] for name in ("weight", "bias", "running_mean", "running_var")
        )
        scale = weight * (spread + self.eps).rsqrt()
        return x * scale + (bias - mean * scale)


class ConvNormActivation(nn.Sequential):
    """A convolution, a norm and an activation, each of which but the first may be left out."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: Any = 1,
        padding: Any = None,
        groups: int = 1,
        norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm2d,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        dilation: Any = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
        conv_layer: Callable[..., nn.Module] = nn.Conv2d,
    ) -> None:
        if padding is None:
            sides = kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size,)
            apart = dilation if isinstance(dilation, (tuple, list)) else (dilation,) * len(sides)
            around = tuple((one - 1) // 2 * step for one, step in zip(sides, apart))
            padding = around if isinstance(kernel_size, (tuple, list)) else around[0]
        bias = norm_layer is None if bias is None else bias
        parts = [
            conv_layer(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                padding,
                dilation=dilation,
                groups=groups,
                bias=bias,
            )
        ]
        if norm_layer is not None:
            parts.append(norm_layer(out_channels))
        if activation_layer is not None:
            parts.append(activation_layer() if inplace is None else activation_layer(inplace=inplace))
        super().__init__(*parts)
        self.out_channels = out_channels


class Conv2dNormActivation(ConvNormActivation):
    """Of pictures."""


class Conv3dNormActivation(ConvNormActivation):
    """Of films."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) < 7:
            kwargs.setdefault("norm_layer", nn.BatchNorm3d)
        super().__init__(*args, **{"conv_layer": nn.Conv3d, **kwargs})


class SqueezeExcitation(nn.Module):
    """Each channel times a number that is computed from the means of all of them."""

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Callable[..., nn.Module] = nn.ReLU,
        scale_activation: Callable[..., nn.Module] = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The channels, scaled."""
        scale: torch.Tensor = self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x)))))
        return scale * x


class MLP(nn.Sequential):
    """Linear layers, with an activation and dropout after each; no activation after the last."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: list[int],
        norm_layer: Callable[..., nn.Module] | None = None,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        inplace: bool | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        within = {} if inplace is None else {"inplace": inplace}
        parts: list[nn.Module] = []
        for width in hidden_channels[:-1]:
            parts.append(nn.Linear(in_channels, width, bias=bias))
            if norm_layer is not None:
                parts.append(norm_layer(width))
            if activation_layer is not None:
                parts.append(activation_layer(**within))
            parts.append(nn.Dropout(dropout, **within))
            in_channels = width
        parts += [nn.Linear(in_channels, hidden_channels[-1], bias=bias), nn.Dropout(dropout, **within)]
        super().__init__(*parts)


class Permute(nn.Module):
    """Dimensions in another order."""

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The same values."""
        return x.permute(self.dims)


def stochastic_depth(input: torch.Tensor, p: float, mode: str, training: bool = True) -> torch.Tensor:
    """Samples (``row``) or the batch (``batch``) are 0 with this probability, the others larger for it."""
    if mode not in ("row", "batch"):
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0:
        return input
    kept = torch.empty(
        [len(input) if mode == "row" else 1] + [1] * (input.dim() - 1),
        dtype=input.dtype,
        device=input.device,
    ).bernoulli_(1 - p)
    return input * (kept / (1 - p) if p < 1 else kept)


class StochasticDepth(nn.Module):
    """The same as a layer."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Some of the samples, in training."""
        return stochastic_depth(input, self.p, self.mode, self.training)


def drop_block2d(
    input: torch.Tensor,
    p: float,
    block_size: int,
    inplace: bool = False,
    eps: float = 1e-6,
    training: bool = True,
) -> torch.Tensor:
    """Squares of each channel are 0, and the rest larger for it."""
    if not training or p == 0:
        return input
    high, wide = input.shape[-2:]
    block = min(block_size, high, wide)
    share = p * high * wide / (block**2 * (high - block + 1) * (wide - block + 1))
    starts = torch.empty_like(input[..., : high - block + 1, : wide - block + 1]).bernoulli_(share)
    around = nn.functional.pad(starts, [block // 2, (block - 1) // 2] * 2)
    gone = nn.functional.max_pool2d(around, block, 1, block // 2)[..., :high, :wide]
    kept = 1 - gone
    kept = kept * (kept.numel() / (kept.sum() + eps))
    return input.mul_(kept) if inplace else input * kept
