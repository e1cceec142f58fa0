"""einops: ``rearrange``, ``reduce`` and ``repeat`` by torch's own operations."""

from __future__ import annotations

import math
import re
import sys
import types
from typing import Any

import torch


class EinopsError(RuntimeError):
    """Raised for a pattern that does not fit."""


def groups(side: str) -> list[list[str]]:
    """The axes of each dimension of one side of a pattern."""
    side = side.replace("...", "\u2026")
    return [
        (one[1:-1].split() if one[0] == "(" else [] if one == "1" else [one])
        for one in re.findall(r"\([^)]*\)|\S+", side)
    ]


def widened(side: list[list[str]], names: list[str]) -> list[list[str]]:
    """A side with axes in the place of the dots."""
    found: list[list[str]] = []
    for one in side:
        if one == ["\u2026"]:
            found += [[name] for name in names]
        else:
            found.append([inner for axis in one for inner in (names if axis == "\u2026" else [axis])])
    return found


def taken_apart(values: torch.Tensor, left: list[list[str]], sizes: dict[str, int]) -> torch.Tensor:
    """One dimension for each axis; sizes that were unknown are filled in."""
    if len(left) != values.dim():
        raise EinopsError(f"expected {len(left)}D tensor, got {values.dim()}D tensor")
    for axes, length in zip(left, values.shape):
        unknown = [axis for axis in axes if axis not in sizes]
        known = math.prod(sizes[axis] for axis in axes if axis in sizes)
        if len(unknown) == 1:
            sizes[unknown[0]] = length // known
        if math.prod(sizes[axis] for axis in axes) != length:
            raise EinopsError(f"shape '{[sizes[axis] for axis in axes]}' does not fit {length}")
    return values.reshape([sizes[axis] for axes in left for axis in axes])


def changed(values: Any, pattern: str, how: Any, **given: int) -> Any:
    """What a pattern makes of values."""
    if isinstance(values, (list, tuple)):
        values = torch.stack([torch.as_tensor(one) for one in values])
    array = not isinstance(values, torch.Tensor)
    tensor = torch.as_tensor(values)
    left, right = (groups(side) for side in pattern.split("->"))
    plain = sum(one != ["\u2026"] for one in left)
    dots = [f"\u2026{i}" for i in range(tensor.dim() - plain)] if len(left) != plain else []
    left, right = widened(left, dots), widened(right, dots)
    sizes = {name: int(size) for name, size in given.items()}
    for side in (left, right):
        sizes.update({axis: int(axis) for axes in side for axis in axes if axis.isdigit()})
    tensor = taken_apart(tensor, left, sizes)
    have = [axis for axes in left for axis in axes]
    want = [axis for axes in right for axis in axes]
    gone = [have.index(axis) for axis in have if axis not in want]
    if gone:
        tensor = reduced(tensor, gone, how)
        have = [axis for axis in have if axis in want]
    for axis in want:
        if axis not in have:
            tensor = tensor.unsqueeze(-1).expand(*tensor.shape, sizes[axis])
            have.append(axis)
    tensor = tensor.permute([have.index(axis) for axis in want])
    tensor = tensor.reshape([math.prod(sizes[axis] for axis in axes) for axes in right])
    return tensor.numpy() if array else tensor


def reduced(values: torch.Tensor, axes: list[int], how: Any) -> torch.Tensor:
    """Axes computed away."""
    if callable(how):
        return how(values, tuple(axes))  # type: ignore[no-any-return]
    if how == "prod":
        for axis in sorted(axes, reverse=True):
            values = values.prod(axis)
        return values
    ways: dict[str, Any] = {"mean": torch.mean, "sum": torch.sum, "max": torch.amax, "min": torch.amin}
    found: torch.Tensor = ways[how](values, axes)
    return found


def rearrange(tensor: Any, pattern: str, **sizes: int) -> Any:
    """The same values in another arrangement."""
    return changed(tensor, pattern, None, **sizes)


def reduce(tensor: Any, pattern: str, reduction: Any, **sizes: int) -> Any:
    """Some axes computed away."""
    return changed(tensor, pattern, reduction, **sizes)


def repeat(tensor: Any, pattern: str, **sizes: int) -> Any:
    """Some axes repeated."""
    return changed(tensor, pattern, None, **sizes)


def einsum(*given: Any) -> torch.Tensor:
    """A sum of products; names of axes are words."""
    *tensors, pattern = given
    letters: dict[str, str] = {}
    short = re.sub(r"[A-Za-z_]\w*", lambda one: letters.setdefault(one[0], chr(97 + len(letters))), pattern)
    return torch.einsum(short.replace(" ", ""), *tensors)


def pack(tensors: Any, pattern: str) -> Any:
    """Several in one along the star, and their shapes there."""
    place = pattern.split().index("*")
    after = len(pattern.split()) - place - 1
    shapes = [one.shape[place : one.dim() - after] for one in tensors]
    flat = [one.reshape(*one.shape[:place], -1, *one.shape[one.dim() - after :]) for one in tensors]
    return torch.cat(flat, place), shapes


def unpack(tensor: torch.Tensor, shapes: Any, pattern: str) -> list[torch.Tensor]:
    """Those that were packed."""
    place = pattern.split().index("*")
    parts = torch.split(tensor, [math.prod(shape) for shape in shapes], place)
    return [
        one.reshape(*one.shape[:place], *shape, *one.shape[place + 1 :]) for one, shape in zip(parts, shapes)
    ]


def parse_shape(tensor: Any, pattern: str) -> dict[str, int]:
    """The sizes of the axes."""
    return {name: size for name, size in zip(pattern.split(), tensor.shape) if name != "_"}


class _Layer(torch.nn.Module):
    def __init__(self, pattern: str, reduction: Any = None, **sizes: int) -> None:
        super().__init__()
        self.pattern, self.reduction, self.sizes = pattern, reduction, sizes

    def forward(self, values: torch.Tensor) -> Any:
        return changed(values, self.pattern, self.reduction, **self.sizes)


class Rearrange(_Layer):
    """``rearrange`` as a module."""


class Reduce(_Layer):
    """``reduce`` as a module."""


layers = types.ModuleType("einops.layers")
layers.torch = types.ModuleType("einops.layers.torch")  # type: ignore[attr-defined]
layers.torch.Rearrange, layers.torch.Reduce = Rearrange, Reduce
layers.__path__ = []
sys.modules["einops.layers"], sys.modules["einops.layers.torch"] = layers, layers.torch
