"""Vision transformers: a picture is a sequence of its squares (https://arxiv.org/abs/2010.11929)."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from ....context import run
from ....weights import blocks
from ..ops.misc import MLP
from ._api import named

__all__ = ["VisionTransformer", "vit_b_16", "vit_b_32", "vit_h_14", "vit_l_16", "vit_l_32"]


class EncoderBlock(nn.Module):
    """Attention and two layers, each with what went in."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Any,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, dropout=attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLP(hidden_dim, [mlp_dim, hidden_dim], None, nn.GELU, dropout=dropout)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Batch x length x width."""
        x = self.ln_1(input)
        x = self.dropout(self.self_attention(x, x, x, need_weights=False)[0]) + input
        found: torch.Tensor = x + self.mlp(self.ln_2(x))
        return found


class Encoder(nn.Module):
    """Some blocks over a sequence whose places are told by learnt vectors."""

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Any,
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        settings = (num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
        names = [f"encoder_layer_{number}" for number in range(num_layers)]
        self.layers = nn.Sequential(OrderedDict((name, EncoderBlock(*settings)) for name in names))
        self.ln = norm_layer(hidden_dim)

    def placed(self, length: int) -> torch.Tensor:
        """The vectors of the places: those of the class, and of as many squares as there are."""
        own = self.pos_embedding
        if length == own.shape[1]:
            return own
        side = round((own.shape[1] - 1) ** 0.5)
        grid = own[:, 1:].transpose(1, 2).reshape(1, -1, side, side)
        # Squares stand in rows; where they are no square themselves, the rows are one.
        new = round((length - 1) ** 0.5)
        shape = (new, new) if new * new == length - 1 else (1, length - 1)
        squares = nn.functional.interpolate(grid, shape, mode="bilinear", align_corners=False)
        return torch.cat([own[:, :1], squares.flatten(2).transpose(1, 2)], 1)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Batch x length x width."""
        found: torch.Tensor = self.ln(self.layers(self.dropout(input + self.placed(input.shape[1]))))
        return found


class VisionTransformer(nn.Module):
    """A vision transformer.

    The real one takes pictures of ``image_size`` only. Those of a run may be smaller: the vectors of the
    places are then brought to their size.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: Any = None,
        conv_stem_configs: Any = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or functools.partial(nn.LayerNorm, eps=1e-6)
        self.image_size, self.patch_size, self.num_classes = image_size, patch_size, num_classes
        self.hidden_dim, self.mlp_dim, self.representation_size = hidden_dim, mlp_dim, representation_size
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, patch_size)
        self.class_token = nn.Parameter(torch.zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm
        )
        parts: OrderedDict[str, nn.Module] = OrderedDict()
        width = hidden_dim
        if representation_size is not None:
            parts["pre_logits"], parts["act"] = nn.Linear(width, representation_size), nn.Tanh()
            width = representation_size
        parts["head"] = nn.Linear(width, num_classes)
        self.heads = nn.Sequential(parts)

    def _process_input(self, x: torch.Tensor) -> torch.Tensor:
        """Batch x squares x width."""
        found: torch.Tensor = self.conv_proj(x)
        return found.flatten(2).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        x = self._process_input(x)
        x = self.encoder(torch.cat([self.class_token.expand(len(x), -1, -1), x], 1))
        found: torch.Tensor = self.heads(x[:, 0])
        return found


def _network(
    name: str, patch: int, layers: int, heads: int, width: int, wide: int, **kwargs: Any
) -> VisionTransformer:
    (count,) = blocks(run(), name, [layers])
    return VisionTransformer(kwargs.pop("image_size", 224), patch, count, heads, width, wide, **kwargs)


vit_b_16 = named("vit_b_16", _network, "vit_b_16", 16, 12, 12, 768, 3072)
vit_b_32 = named("vit_b_32", _network, "vit_b_32", 32, 12, 12, 768, 3072)
vit_l_16 = named("vit_l_16", _network, "vit_l_16", 16, 24, 16, 1024, 4096)
vit_l_32 = named("vit_l_32", _network, "vit_l_32", 32, 24, 16, 1024, 4096)
vit_h_14 = named("vit_h_14", _network, "vit_h_14", 14, 32, 16, 1280, 5120)
