"""Matrices."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from numpy.linalg import cholesky, det, eig, eigh, inv, norm, pinv, qr, solve, svd

from ...inert import others

__all__ = [
    "block_diag",
    "cholesky",
    "det",
    "eig",
    "eigh",
    "inv",
    "lu",
    "norm",
    "pinv",
    "qr",
    "solve",
    "sqrtm",
    "svd",
]


def lu(values: Any, *args: Any, **kwargs: Any) -> Any:
    """A permutation, a lower and an upper triangle."""
    return tuple(part.numpy() for part in torch.linalg.lu(torch.as_tensor(numpy.asarray(values))))


def sqrtm(values: Any, disp: bool = True, **kwargs: Any) -> Any:
    """The root of a symmetric matrix; with ``disp=False`` also that there is no error."""
    levels, vectors = eigh(numpy.asarray(values, float))
    root = (vectors * numpy.sqrt(numpy.clip(levels, 0, None))) @ vectors.T
    return root if disp else (root, 0.0)


def block_diag(*parts: Any) -> Any:
    """Blocks along the diagonal."""
    parts = tuple(numpy.atleast_2d(one) for one in parts)
    made = numpy.zeros((sum(one.shape[0] for one in parts), sum(one.shape[1] for one in parts)))
    row = column = 0
    for one in parts:
        made[row : row + one.shape[0], column : column + one.shape[1]] = one
        row, column = row + one.shape[0], column + one.shape[1]
    return made


__getattr__ = others(__name__)
