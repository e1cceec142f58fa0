"""Functions that return several views of one tensor, of which autograd lets none be written in place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

SEVERAL = ("unbind", "split", "split_with_sizes", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit")


def separate() -> None:
    """Let them return copies, which may be written in place."""
    for name in SEVERAL:
        for owner in (torch, torch.Tensor):
            setattr(owner, name, _copying(getattr(owner, name)))


def _copying(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def several(*args: Any, **kwargs: Any) -> Any:
        views = real(*args, **kwargs)
        if not isinstance(views, (tuple, list)) or not any(one.requires_grad for one in views):
            return views
        return type(views)(one.clone() for one in views)

    return several
