"""timm.layers: parts of networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ...inert import others

__getattr__ = others(__name__)


def _tuples(count: int) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, (list, tuple)) else (value,) * count


to_1tuple, to_2tuple, to_3tuple, to_4tuple = (_tuples(count) for count in (1, 2, 3, 4))


def make_divisible(value: float, divisor: int = 8, min_value: int | None = None, **kwargs: Any) -> int:
    """The nearest number that is divided, and not much less."""
    found = max(min_value or divisor, int(value + divisor / 2) // divisor * divisor)
    return found + divisor if found < 0.9 * value else found


def trunc_normal_(
    tensor: torch.Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Any:
    """Normal numbers without the outermost."""
    return nn.init.trunc_normal_(tensor, mean, std, a, b)


def lecun_normal_(tensor: torch.Tensor) -> Any:
    """Normal numbers by how many each value depends on."""
    fan = tensor[0].numel() if tensor.dim() > 1 else tensor.numel()
    return nn.init.trunc_normal_(tensor, std=(1 / fan) ** 0.5 / 0.8796)


def drop_path(
    x: torch.Tensor, drop_prob: float = 0.0, training: bool = False, scale_by_keep: bool = True
) -> torch.Tensor:
    """Samples of which some are nothing."""
    if drop_prob == 0.0 or not training:
        return x
    kept = x.new_empty((x.shape[0],) + (1,) * (x.dim() - 1)).bernoulli_(1 - drop_prob)
    return x * (kept.div_(1 - drop_prob) if scale_by_keep and drop_prob < 1 else kept)


class DropPath(nn.Module):
    """Leaves out the path of some samples."""

    def __init__(self, drop_prob: Any = 0.0, scale_by_keep: bool = True) -> None:
        super().__init__()
        self.drop_prob = drop_prob or 0.0
        self.scale_by_keep = scale_by_keep

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of a batch."""
        return drop_path(x, self.drop_prob, self.training, self.scale_by_keep)


class Mlp(nn.Module):
    """Two layers."""

    def __init__(
        self,
        in_features: int,
        hidden_features: int | None = None,
        out_features: int | None = None,
        act_layer: Any = nn.GELU,
        *args: Any,
        drop: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        hidden = hidden_features or in_features
        self.fc1 = nn.Linear(in_features, hidden)
        self.act = act_layer()
        self.fc2 = nn.Linear(hidden, out_features or in_features)
        self.drop = nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> Any:
        """One after the other."""
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


class PatchEmbed(nn.Module):
    """Pictures as rows of patches."""

    def __init__(
        self,
        img_size: Any = 224,
        patch_size: Any = 16,
        in_chans: int = 3,
        embed_dim: int = 768,
        norm_layer: Any = None,
        flatten: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.img_size, self.patch_size = to_2tuple(img_size), to_2tuple(patch_size)
        self.grid_size = tuple(side // patch for side, patch in zip(self.img_size, self.patch_size))
        self.patch_shape = self.grid_size
        self.num_patches = self.grid_size[0] * self.grid_size[1]
        self.flatten = flatten
        self.proj = nn.Conv2d(in_chans, embed_dim, self.patch_size, self.patch_size)
        self.norm = norm_layer(embed_dim) if norm_layer else nn.Identity()

    def forward(self, x: torch.Tensor, **kwargs: Any) -> Any:
        """A batch of pictures."""
        if tuple(x.shape[-2:]) != tuple(self.img_size):
            raise AssertionError(
                f"Input image size {tuple(x.shape[-2:])} doesn't match model {self.img_size}"
            )
        x = self.proj(x)
        return self.norm(x.flatten(2).transpose(1, 2) if self.flatten else x)


class LayerNorm2d(nn.LayerNorm):
    """Normalizes the channels of pictures."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of each place."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
