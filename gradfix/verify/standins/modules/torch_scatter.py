"""torch_scatter: values that belong to the same number put together, by torch's own operations."""

from __future__ import annotations

from typing import Any

import torch

from ..inert import others

__version__ = "2.1.2"


def _beside(src: torch.Tensor, index: torch.Tensor, dim: int) -> tuple[torch.Tensor, int]:
    """The number of each value, and the dimension counted from the first."""
    dim %= src.dim()
    if index.dim() == 1:
        index = index.reshape([-1 if place == dim else 1 for place in range(src.dim())])
    while index.dim() < src.dim():
        index = index.unsqueeze(-1)
    return index.expand_as(src), dim


def _shape(src: torch.Tensor, index: torch.Tensor, dim: int, dim_size: Any) -> list[int]:
    count = dim_size if dim_size is not None else int(index.max()) + 1 if index.numel() else 0
    return [int(count) if place == dim else size for place, size in enumerate(src.shape)]


def scatter_sum(
    src: torch.Tensor, index: torch.Tensor, dim: int = -1, out: Any = None, dim_size: Any = None
) -> torch.Tensor:
    """Their sum, added to what there is."""
    index, dim = _beside(src, index, dim)
    to: torch.Tensor = src.new_zeros(_shape(src, index, dim, dim_size)) if out is None else out
    return to.scatter_add_(dim, index, src)


scatter_add = scatter_sum


def scatter_mean(
    src: torch.Tensor, index: torch.Tensor, dim: int = -1, *, dim_size: Any = None
) -> torch.Tensor:
    """Their mean."""
    sums = scatter_sum(src, index, dim, None, dim_size)
    counts = scatter_sum(torch.ones_like(src), index, dim, None, dim_size)
    return sums / counts.clamp(min=1)


def scatter_mul(
    src: torch.Tensor, index: torch.Tensor, dim: int = -1, *, dim_size: Any = None
) -> torch.Tensor:
    """Their product."""
    index, dim = _beside(src, index, dim)
    return src.new_ones(_shape(src, index, dim, dim_size)).scatter_reduce(dim, index, src, "prod")


def _extreme(src: torch.Tensor, index: torch.Tensor, dim: int, dim_size: Any, how: str) -> Any:
    index, dim = _beside(src, index, dim)
    shape, count = _shape(src, index, dim, dim_size), src.shape[dim]
    values = src.detach()
    best = values.new_zeros(shape).scatter_reduce(dim, index, values, how, include_self=False)
    places = torch.arange(count, device=src.device)
    places = places.reshape([-1 if place == dim else 1 for place in range(src.dim())]).expand_as(src)
    places = places.masked_fill(values != best.gather(dim, index), count)
    first = places.new_full(shape, count).scatter_reduce(dim, index, places, "amin")
    # The gradient is that of the one value that was taken; where there is none, it is 0.
    padded = torch.cat([src, torch.zeros_like(src.narrow(dim, 0, 1))], dim)
    return padded.gather(dim, first), first


def scatter_max(src: torch.Tensor, index: torch.Tensor, dim: int = -1, *, dim_size: Any = None) -> Any:
    """The largest, and where it is."""
    return _extreme(src, index, dim, dim_size, "amax")


def scatter_min(src: torch.Tensor, index: torch.Tensor, dim: int = -1, *, dim_size: Any = None) -> Any:
    """The smallest, and where it is."""
    return _extreme(src, index, dim, dim_size, "amin")


def scatter(
    src: torch.Tensor,
    index: torch.Tensor,
    dim: int = -1,
    out: Any = None,
    dim_size: Any = None,
    reduce: str = "sum",
) -> torch.Tensor:
    """Together, as ``reduce`` says."""
    if reduce in ("sum", "add"):
        return scatter_sum(src, index, dim, out, dim_size)
    if out is not None:
        raise NotImplementedError("into what there is")
    if reduce in ("mean", "mul"):
        return (scatter_mean if reduce == "mean" else scatter_mul)(src, index, dim, dim_size=dim_size)
    found: torch.Tensor = _extreme(src, index, dim, dim_size, "a" + reduce)[0]
    return found


def _by_largest(src: torch.Tensor, index: torch.Tensor, dim: int, dim_size: Any) -> Any:
    """Values less the largest of their number, and the logarithm of the sum of their exponentials."""
    where, dim = _beside(src, index, dim)
    top = _extreme(src.detach(), index, dim, dim_size, "amax")[0]
    less = src - top.gather(dim, where)
    sums = scatter_sum(less.exp(), index, dim, None, dim_size)
    return less, sums, top, where, dim


def scatter_softmax(
    src: torch.Tensor, index: torch.Tensor, dim: int = -1, dim_size: Any = None
) -> torch.Tensor:
    """Their softmax."""
    less, sums, _, where, dim = _by_largest(src, index, dim, dim_size)
    found: torch.Tensor = less.exp() / sums.gather(dim, where)
    return found


def scatter_log_softmax(
    src: torch.Tensor, index: torch.Tensor, dim: int = -1, eps: float = 1e-12, dim_size: Any = None
) -> torch.Tensor:
    """The logarithm of that."""
    less, sums, _, where, dim = _by_largest(src, index, dim, dim_size)
    found: torch.Tensor = less - (sums + eps).log().gather(dim, where)
    return found


def scatter_logsumexp(
    src: torch.Tensor, index: torch.Tensor, dim: int = -1, *, dim_size: Any = None, eps: float = 1e-12
) -> torch.Tensor:
    """The logarithm of the sum of their exponentials."""
    _, sums, top, _, _ = _by_largest(src, index, dim, dim_size)
    found: torch.Tensor = (sums + eps).log() + top
    return found


__getattr__ = others(__name__)
