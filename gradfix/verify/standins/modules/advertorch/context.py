"""In which mode a network is while it is attacked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ...inert import others


@contextlib.contextmanager
def ctx_noparamgrad(module: Any) -> Iterator[None]:
    """Its parameters get no gradients."""
    had = [(one, one.requires_grad) for one in module.parameters()]
    for one, _ in had:
        one.requires_grad_(False)
    try:
        yield
    finally:
        for one, wanted in had:
            one.requires_grad_(wanted)


@contextlib.contextmanager
def ctx_eval(module: Any) -> Iterator[None]:
    """It does not train."""
    had = [(one, one.training) for one in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for one, training in had:
            one.training = training


@contextlib.contextmanager
def ctx_noparamgrad_and_eval(module: Any) -> Iterator[None]:
    """Both."""
    with ctx_noparamgrad(module), ctx_eval(module):
        yield


__getattr__ = others(__name__)
