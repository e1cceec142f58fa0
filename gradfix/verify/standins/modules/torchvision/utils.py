"""Grids of pictures; nothing is saved."""

from __future__ import annotations

import math
from typing import Any

import torch


def make_grid(tensor: Any, nrow: int = 8, padding: int = 2, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Pictures side by side: the shape is right, and so are the values up to normalization."""
    pictures = torch.stack(list(tensor)) if isinstance(tensor, (list, tuple)) else tensor
    while pictures.dim() < 4:
        pictures = pictures.unsqueeze(0)
    if pictures.shape[1] == 1:
        pictures = pictures.expand(-1, 3, -1, -1)
    pictures = pictures.detach()
    count = pictures.shape[0]
    if count == 1:
        return pictures[0]
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    height, width = pictures.shape[2] + padding, pictures.shape[3] + padding
    grid = pictures.new_zeros((pictures.shape[1], height * rows + padding, width * columns + padding))
    for index in range(count):
        top, left = (index // columns) * height + padding, (index % columns) * width + padding
        grid[:, top : top + pictures.shape[2], left : left + pictures.shape[3]] = pictures[index]
    return grid


def save_image(tensor: Any, fp: Any = None, *args: Any, **kwargs: Any) -> None:
    """Nothing is saved."""
