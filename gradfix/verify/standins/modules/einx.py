"""einx: operations element by element, and over axes, in its notation of patterns."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from .. import inert
from . import einops


def axes(side: str) -> list[str]:
    """The names of the axes of one operand; groups, numbers and dots are not among what is known here."""
    if re.search(r"[^\w\s]", side):
        raise NotImplementedError("einx: " + side)
    return side.split()


def sides(pattern: str) -> tuple[list[list[str]], list[str]]:
    """The axes of the operands and of the answer: by default those of the operand that has all of them."""
    left, arrow, right = pattern.partition("->")
    operands = [axes(one) for one in left.split(",")]
    if arrow:
        return operands, axes(right)
    whole = {name for one in operands for name in one}
    return operands, next(one for one in operands if set(one) == whole)


def placed(value: Any, have: list[str], want: list[str]) -> Any:
    """A value with its axes in the places in which the answer has them."""
    if not isinstance(value, torch.Tensor):
        return value
    value = value.permute([have.index(name) for name in want if name in have])
    return value[tuple(slice(None) if name in have else None for name in want)]


def each(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation element by element."""

    def operate(pattern: str, *values: Any, **sizes: int) -> Any:
        operands, want = sides(pattern)
        found = operation(*(placed(value, have, want) for value, have in zip(values, operands)))
        for have, value in zip(operands, values):
            sizes.update(zip(have, sizes_of(value)))
        whole = [sizes[name] for name in want]
        return found if list(found.shape) == whole else found.expand(whole)

    return operate


def sizes_of(value: Any) -> list[int]:
    """The sizes of a tensor; a number has none."""
    return list(value.shape) if isinstance(value, torch.Tensor) else []


add, subtract, multiply = each(torch.add), each(torch.sub), each(torch.mul)
divide = true_divide = each(torch.div)
less, less_equal, greater, greater_equal = (each(one) for one in (torch.lt, torch.le, torch.gt, torch.ge))
equal, not_equal = each(torch.eq), each(torch.ne)
logical_and, logical_or = each(torch.logical_and), each(torch.logical_or)
maximum, minimum, where = each(torch.maximum), each(torch.minimum), each(torch.where)


def over(how: str) -> Callable[..., Any]:
    """An operation over the axes that the answer lacks."""

    def operate(pattern: str, value: Any, **sizes: int) -> Any:
        return einops.reduce(value, pattern, how, **sizes)

    return operate


sum, mean, max, min, prod = (over(one) for one in ("sum", "mean", "max", "min", "prod"))


def rearrange(pattern: str, value: Any, **sizes: int) -> Any:
    """As einops does it, with the pattern first."""
    return einops.rearrange(value, pattern, **sizes)


__getattr__ = inert.others(__name__)
