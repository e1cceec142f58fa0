"""torch_einops_utils: small functions over tensors: means under masks, padding, masks, trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree

from ... import inert
from .. import einops
from .nn import temp_eval as temp_eval


def exists(value: Any) -> bool:
    """Whether it is there."""
    return value is not None


def default(value: Any, other: Any) -> Any:
    """It, or something else."""
    return other if value is None else value


def maybe(function: Any) -> Any:
    """A function that gives nothing for nothing; nothing as a function changes nothing."""
    if function is None:
        return lambda value, *args, **kwargs: value
    return lambda value, *args, **kwargs: None if value is None else function(value, *args, **kwargs)


def masked_mean(t: Any, mask: Any = None, dim: Any = None, eps: float = 1e-5, keepdim: bool = False) -> Any:
    """The mean of what a mask leaves."""
    if mask is None:
        return t.mean() if dim is None else t.mean(dim=dim, keepdim=keepdim)
    mask = pad_right_ndim_to(mask, t.ndim).expand_as(t)
    if dim is None:
        kept = t[mask]
        return kept.mean() if mask.any() else kept.sum()
    count = mask.sum(dim=dim, keepdim=keepdim).clamp(min=eps)
    return (t * mask).sum(dim=dim, keepdim=keepdim) / count


def exclusive_cumsum(t: Any, dim: int = -1) -> Any:
    """The sums of all before each."""
    return t.cumsum(dim=dim) - t


def reverse_cumsum(t: Any, dim: int = -1) -> Any:
    """The sums of each and all behind it."""
    return t.sum(dim=dim, keepdim=True) - t.cumsum(dim=dim) + t


def slice_at_dim(t: Any, slc: slice, dim: int = -1) -> Any:
    """A part along one dimension."""
    return t[tuple(slc if one == dim % t.ndim else slice(None) for one in range(t.ndim))]


def slice_left_at_dim(t: Any, length: int, dim: int = -1) -> Any:
    """The first ones along it."""
    return slice_at_dim(t, slice(0, length), dim)


def slice_right_at_dim(t: Any, length: int, dim: int = -1) -> Any:
    """The last ones along it."""
    return slice_at_dim(t, slice(-length, None) if length else slice(0, 0), dim)


def pad_ndim(t: Any, ndims: tuple[int, int]) -> Any:
    """Dimensions of one before and behind."""
    return t.reshape(*[1] * ndims[0], *t.shape, *[1] * ndims[1])


def pad_left_ndim(t: Any, ndims: int) -> Any:
    """Before."""
    return pad_ndim(t, (ndims, 0))


def pad_right_ndim(t: Any, ndims: int) -> Any:
    """Behind."""
    return pad_ndim(t, (0, ndims))


def pad_left_ndim_to(t: Any, ndims: int) -> Any:
    """Before, until there are so many."""
    return t if t.ndim >= ndims else pad_left_ndim(t, ndims - t.ndim)


def pad_right_ndim_to(t: Any, ndims: int) -> Any:
    """Behind, until there are so many."""
    return t if t.ndim >= ndims else pad_right_ndim(t, ndims - t.ndim)


def safe_stack(tensors: Any, dim: int = 0) -> Any:
    """Those that are there."""
    held = [one for one in tensors if one is not None]
    return torch.stack(held, dim=dim) if held else None


def safe_cat(tensors: Any, dim: int = 0) -> Any:
    """Those that are there; one alone as it is."""
    held = [one for one in tensors if one is not None]
    return torch.cat(held, dim=dim) if len(held) > 1 else held[0] if held else None


def lens_to_mask(lens: Any, max_len: Any = None) -> Any:
    """Which places are within each length."""
    longest = lens.amax().item() if max_len is None else max_len
    return torch.arange(longest, device=lens.device) < lens.unsqueeze(-1)


def reduce_masks(masks: Any, op: Callable[[Any, Any], Any]) -> Any:
    """Those that are there, put together."""
    found = None
    for one in masks:
        found = one if found is None else found if one is None else op(found, one)
    return found


def and_masks(masks: Any) -> Any:
    """What all of them leave."""
    return reduce_masks(masks, torch.logical_and)


def or_masks(masks: Any) -> Any:
    """What any of them leaves."""
    return reduce_masks(masks, torch.logical_or)


def pad_at_dim(t: Any, pad: tuple[int, int], *, dim: int = -1, value: float = 0.0) -> Any:
    """More, or less, at the two ends of a dimension."""
    behind = t.ndim - 1 - dim % t.ndim
    return torch.nn.functional.pad(t, (*[0, 0] * behind, *pad), value=value)


def pad_left_at_dim(t: Any, pad: int, **how: Any) -> Any:
    """At its beginning."""
    return pad_at_dim(t, (pad, 0), **how)


def pad_right_at_dim(t: Any, pad: int, **how: Any) -> Any:
    """At its end."""
    return pad_at_dim(t, (0, pad), **how)


def pad_left_at_dim_to(t: Any, length: int, dim: int = -1, **how: Any) -> Any:
    """At its beginning, until it is so long."""
    return t if t.shape[dim] >= length else pad_left_at_dim(t, length - t.shape[dim], dim=dim, **how)


def pad_right_at_dim_to(t: Any, length: int, dim: int = -1, **how: Any) -> Any:
    """At its end, until it is so long."""
    return t if t.shape[dim] >= length else pad_right_at_dim(t, length - t.shape[dim], dim=dim, **how)


def shift_right(t: Any, amount: int = 1, dim: int = -1, pad_value: float = 0.0) -> Any:
    """All of it some places further."""
    return pad_at_dim(t, (amount, -amount), dim=dim, value=pad_value)


def shift_left(t: Any, amount: int = 1, dim: int = -1, pad_value: float = 0.0) -> Any:
    """All of it some places back."""
    return shift_right(t, -amount, dim, pad_value)


def mask_after(t: Any, value: Any, dim: int = -1, inclusive: bool = True) -> Any:
    """The places up to the first of a value, that one too if ``inclusive``."""
    found = t == value
    if inclusive:
        found = shift_right(found, dim=dim, pad_value=False)
    return found.float().cumsum(dim=dim) == 0.0


def tree_map_tensor(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same with other tensors."""
    return _pytree.tree_map(lambda one: function(one) if isinstance(one, torch.Tensor) else one, tree)


def tree_flatten_with_inverse(tree: Any) -> Any:
    """What is in it, and how it is put back."""
    flat, form = _pytree.tree_flatten(tree)
    return flat, lambda values: _pytree.tree_unflatten(values, form)


def pack_with_inverse(t: Any, pattern: str) -> Any:
    """What ``einops.pack`` makes of one or several, and how it is taken apart."""
    one = isinstance(t, torch.Tensor)
    packed, sizes = einops.pack([t] if one else t, pattern)

    def inverse(values: Any, inv_pattern: str | None = None) -> Any:
        found = einops.unpack(values, sizes, pattern if inv_pattern is None else inv_pattern)
        return found[0] if one else found

    return packed, inverse


def batched_index_select(values: Any, indices: Any, dim: int = 1) -> Any:
    """What stands at the places along a dimension, for each of a batch."""
    batch = [
        pad_right_ndim_to(pad_left_ndim(torch.arange(values.shape[i], device=values.device), i), indices.ndim)
        for i in range(dim)
    ]
    return values[(*batch, indices)]


__getattr__ = inert.others(__name__)
