"""timm.models.vision_transformer: the network itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from ....inert import others
from ..layers import DropPath, Mlp, PatchEmbed, trunc_normal_

__getattr__ = others(__name__)
default_cfgs: dict[str, Any] = {}


def _cfg(url: str = "", **kwargs: Any) -> dict[str, Any]:
    return {"url": url, "num_classes": 1000, "input_size": (3, 224, 224), **kwargs}


def checkpoint_filter_fn(state: Any, *args: Any, **kwargs: Any) -> Any:
    """Weights as they are."""
    return state


class Attention(nn.Module):
    """Attention with several heads."""

    def __init__(
        self,
        dim: int,
        num_heads: int = 8,
        qkv_bias: bool = False,
        *args: Any,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = dim // num_heads
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(proj_drop)

    def forward(self, x: torch.Tensor, **kwargs: Any) -> Any:
        """Of each row to all."""
        batch, rows, wide = x.shape
        parts = self.qkv(x).reshape(batch, rows, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        attention = self.attn_drop((query @ key.transpose(-2, -1) * self.scale).softmax(dim=-1))
        return self.proj_drop(self.proj((attention @ value).transpose(1, 2).reshape(batch, rows, wide)))


class Block(nn.Module):
    """Attention and two layers."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        mlp_ratio: float = 4.0,
        qkv_bias: bool = False,
        *args: Any,
        drop: float = 0.0,
        attn_drop: float = 0.0,
        drop_path: float = 0.0,
        act_layer: Any = nn.GELU,
        norm_layer: Any = nn.LayerNorm,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = Attention(dim, num_heads, qkv_bias, attn_drop=attn_drop, proj_drop=drop)
        self.drop_path = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()
        self.norm2 = norm_layer(dim)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), act_layer=act_layer, drop=drop)

    def forward(self, x: torch.Tensor, **kwargs: Any) -> Any:
        """One after the other."""
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class VisionTransformer(nn.Module):
    """A transformer over patches of pictures."""

    def __init__(
        self,
        img_size: Any = 224,
        patch_size: Any = 16,
        in_chans: int = 3,
        num_classes: int = 1000,
        global_pool: Any = "token",
        embed_dim: int = 768,
        depth: int = 12,
        num_heads: int = 12,
        mlp_ratio: float = 4.0,
        qkv_bias: bool = True,
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        embed_layer: Any = PatchEmbed,
        norm_layer: Any = None,
        act_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.num_classes = num_classes
        self.num_features = self.embed_dim = embed_dim
        self.num_tokens = 1
        self.patch_embed = embed_layer(
            img_size=img_size, patch_size=patch_size, in_chans=in_chans, embed_dim=embed_dim
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.num_patches + 1, embed_dim))
        self.pos_drop = nn.Dropout(drop_rate)
        rates = torch.linspace(0, drop_path_rate, depth).tolist()
        self.blocks = nn.Sequential(
            *(
                Block(
                    embed_dim, num_heads, mlp_ratio, qkv_bias, drop=drop_rate, attn_drop=attn_drop_rate,
                    drop_path=rate, norm_layer=norm_layer, act_layer=act_layer or nn.GELU,
                )
                for rate in rates
            )
        )  # fmt: skip
        self.norm = norm_layer(embed_dim)
        self.pre_logits = nn.Identity()
        self.head = nn.Linear(embed_dim, num_classes) if num_classes > 0 else nn.Identity()
        trunc_normal_(self.pos_embed, std=0.02)
        trunc_normal_(self.cls_token, std=0.02)
        self.apply(self._init_weights)

    def _init_weights(self, m: nn.Module) -> None:
        if isinstance(m, nn.Linear):
            trunc_normal_(m.weight, std=0.02)
            if m.bias is not None:
                nn.init.zeros_(m.bias)

    def no_weight_decay(self) -> set[str]:
        """Weights that are not to shrink."""
        return {"pos_embed", "cls_token"}

    def get_classifier(self) -> nn.Module:
        """The last layer."""
        return self.head

    def reset_classifier(self, num_classes: int, *args: Any) -> None:
        """Another last layer."""
        self.num_classes = num_classes
        self.head = nn.Linear(self.embed_dim, num_classes) if num_classes > 0 else nn.Identity()

    def forward_features(self, x: torch.Tensor) -> Any:
        """The features of the first row."""
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1)
        x = self.blocks(self.pos_drop(x + self.pos_embed))
        return self.pre_logits(self.norm(x)[:, 0])

    def forward(self, x: torch.Tensor) -> Any:
        """A batch of pictures."""
        return self.head(self.forward_features(x))
