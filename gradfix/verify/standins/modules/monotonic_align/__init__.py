"""monotonic_align: the most likely way through a text while a sound goes on (Glow-TTS, arXiv:2005.11129)."""

from __future__ import annotations

from typing import Any

import torch

from ...inert import others
from .core import maximum_path_c

__getattr__ = others(__name__)


def mask_from_len(lens: torch.Tensor, max_len: int | None = None) -> torch.Tensor:
    """Which places there are, of shape (batch, longest)."""
    longest = int(lens.max()) if max_len is None else max_len
    return torch.arange(longest, device=lens.device)[None] < lens[:, None]


def mask_from_lens(similarity: torch.Tensor, symbol_lens: Any, mel_lens: Any) -> torch.Tensor:
    """Which pairs of letters and moments there are, of ``similarity``'s shape (batch, letters, moments)."""
    letters = mask_from_len(symbol_lens, similarity.shape[1])
    moments = mask_from_len(mel_lens, similarity.shape[2])
    return (letters[:, :, None] & moments[:, None, :]).to(similarity)


def maximum_path(value: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """A one for the letter of each moment, of the shape (batch, letters, moments) of ``value``; no graph."""
    mask = torch.ones_like(value) if mask is None else mask
    values = (value * mask).detach().cpu().float().numpy()
    path = torch.zeros(value.shape, dtype=torch.int32).numpy()
    letters, moments = (mask.sum(axis)[:, 0].cpu().int().numpy() for axis in (1, 2))
    maximum_path_c(path, values, letters, moments)
    return torch.from_numpy(path).to(device=value.device, dtype=value.dtype)
