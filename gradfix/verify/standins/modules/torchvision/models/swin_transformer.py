"""Swin transformers: attention within windows that are shifted (https://arxiv.org/abs/2103.14030)."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn

from ....context import run
from ....weights import blocks
from ..ops.misc import MLP, Permute, StochasticDepth
from ._api import named

__all__ = ["SwinTransformer", "swin_b", "swin_s", "swin_t"]

functional = nn.functional


class PatchMerging(nn.Module):
    """Four neighbours are one place with twice the width. Batch x height x width x channels."""

    def __init__(self, dim: int, norm_layer: Any = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Half the height and width."""
        high, wide = x.shape[1:3]
        x = functional.pad(x, (0, 0, 0, wide % 2, 0, high % 2))
        four = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        found: torch.Tensor = self.reduction(self.norm(torch.cat(four, -1)))
        return found


class ShiftedWindowAttention(nn.Module):
    """Attention within windows, that know how their places lie to each other."""

    relative_position_index: torch.Tensor

    def __init__(
        self,
        dim: int,
        window_size: list[int],
        shift_size: list[int],
        num_heads: int,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.window_size, self.shift_size, self.num_heads = window_size, shift_size, num_heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        high, wide = window_size
        table = torch.zeros((2 * high - 1) * (2 * wide - 1), num_heads)
        self.relative_position_bias_table = nn.Parameter(nn.init.trunc_normal_(table, std=0.02))
        rows, columns = torch.arange(high), torch.arange(wide)
        down = (rows[:, None, None, None] - rows[None, None, :, None]).expand(high, wide, high, wide)
        right = (columns[None, :, None, None] - columns[None, None, None, :]).expand(high, wide, high, wide)
        index = (down + high - 1) * (2 * wide - 1) + right + wide - 1
        self.register_buffer("relative_position_index", index.flatten())

    def _windows(self, x: torch.Tensor) -> torch.Tensor:
        """Each window on its own: batch times windows x places x channels."""
        high, wide = self.window_size
        batch, tall, broad, channels = x.shape
        parts = x.view(batch, tall // high, high, broad // wide, wide, channels).transpose(2, 3)
        return parts.reshape(-1, high * wide, channels)

    def _apart(self, high: int, wide: int, shift: list[int], like: torch.Tensor) -> torch.Tensor:
        """What is added to the scores of a shifted window, so that no place sees one from the other side."""
        kinds = []
        for side, window, by in zip((high, wide), self.window_size, shift):
            place = torch.arange(side, device=like.device)
            kinds.append((place >= side - window).long() + (place >= side - by).long() if by else place * 0)
        areas = (kinds[0][:, None] * 3 + kinds[1]).to(like.dtype)[None, :, :, None]
        seen = self._windows(areas).squeeze(-1)
        return (seen[:, None, :] != seen[:, :, None]).to(like.dtype) * -100

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Batch x height x width x channels."""
        batch, high, wide, channels = x.shape
        window = self.window_size
        x = functional.pad(x, (0, 0, 0, -wide % window[1], 0, -high % window[0]))
        tall, broad = x.shape[1:3]
        sides = zip((tall, broad), window, self.shift_size)
        shift = [0 if side <= size else by for side, size, by in sides]
        x = torch.roll(x, (-shift[0], -shift[1]), (1, 2)) if any(shift) else x
        parts = self._windows(x)
        query, key, value = self.qkv(parts).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        places = window[0] * window[1]
        bias = self.relative_position_bias_table[self.relative_position_index]
        scores = query @ key.transpose(-2, -1) * (channels // self.num_heads) ** -0.5
        scores = scores + bias.view(places, places, -1).permute(2, 0, 1)
        if any(shift):
            apart = self._apart(tall, broad, shift, scores)
            scores = (scores.unflatten(0, (batch, -1)) + apart[:, None]).flatten(0, 1)
        shares = functional.dropout(scores.softmax(-1), self.attention_dropout, self.training)
        found = (shares @ value).transpose(1, 2).flatten(2)
        found = functional.dropout(self.proj(found), self.dropout, self.training)
        found = found.view(batch, tall // window[0], broad // window[1], *window, channels)
        found = found.transpose(2, 3).reshape(batch, tall, broad, channels)
        found = torch.roll(found, (shift[0], shift[1]), (1, 2)) if any(shift) else found
        return found[:, :high, :wide].contiguous()


class SwinTransformerBlock(nn.Module):
    """Attention and two layers, each with what went in."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        window_size: list[int],
        shift_size: list[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Any = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = ShiftedWindowAttention(
            dim, window_size, shift_size, num_heads, attention_dropout=attention_dropout, dropout=dropout
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(dim, [int(dim * mlp_ratio), dim], None, nn.GELU, dropout=dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Batch x height x width x channels."""
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        found: torch.Tensor = x + self.stochastic_depth(self.mlp(self.norm2(x)))
        return found


class SwinTransformer(nn.Module):
    """Four parts of such blocks; every second one has shifted windows."""

    def __init__(
        self,
        patch_size: list[int],
        embed_dim: int,
        depths: list[int],
        num_heads: list[int],
        window_size: list[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.1,
        num_classes: int = 1000,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        norm = norm_layer or functools.partial(nn.LayerNorm, eps=1e-5)
        sides = (patch_size[0], patch_size[1])
        first = nn.Conv2d(3, embed_dim, sides, sides)
        parts: list[nn.Module] = [nn.Sequential(first, Permute([0, 2, 3, 1]), norm(embed_dim))]
        number, last, width = 0, max(1, sum(depths) - 1), embed_dim
        for index, (depth, heads) in enumerate(zip(depths, num_heads)):
            if index:
                parts.append(PatchMerging(width, norm))
                width *= 2
            made = []
            for turn in range(depth):
                shift = [size // 2 if turn % 2 else 0 for size in window_size]
                drop = stochastic_depth_prob * number / last
                settings = (mlp_ratio, dropout, attention_dropout, drop, norm)
                made.append(SwinTransformerBlock(width, heads, window_size, shift, *settings))
                number += 1
            parts.append(nn.Sequential(*made))
        self.features = nn.Sequential(*parts)
        self.norm = norm(width)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        x = self.permute(self.norm(self.features(x)))
        found: torch.Tensor = self.head(self.flatten(self.avgpool(x)))
        return found


def _network(name: str, width: int, heads: int, depth: int, drop: float, **kwargs: Any) -> SwinTransformer:
    depths = blocks(run(), name, [2, 2, depth, 2])
    settings = {"stochastic_depth_prob": drop, **kwargs}
    return SwinTransformer([4, 4], width, depths, [heads << index for index in range(4)], [7, 7], **settings)


swin_t = named("swin_t", _network, "swin_t", 96, 3, 6, 0.2)
swin_s = named("swin_s", _network, "swin_s", 96, 3, 18, 0.3)
swin_b = named("swin_b", _network, "swin_b", 128, 4, 18, 0.5)
