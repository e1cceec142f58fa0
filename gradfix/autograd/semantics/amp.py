"""Mixed precision: torch's ``GradScaler`` and apex."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.autograd.arguments import Argument, Keywords, option
from gradfix.autograd.engine import step
from gradfix.autograd.semantics.dispatch import methods_of
from gradfix.autograd.semantics.operations import simple
from gradfix.autograd.semantics.unknown import adopted
from gradfix.autograd.values import (
    NONE,
    External,
    Opaque,
    Optimizer,
    Params,
    Scaled,
    Scaler,
    Sequence,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from gradfix.autograd.interpreter import Run


@methods_of(Scaler)
def _scaler_method(
    run: Run,
    base: Scaler,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool = False,
) -> Value:
    if name == "scale" and args:
        value, expression = args[0]
        if isinstance(value, (Tensor, Opaque)):
            return simple(run, "mul", [(value, expression), (base.factor, expression)], node)
        return value
    if name == "step" and args:
        optimizer = adopted(run, args[0][0]) or args[0][0]
        if isinstance(optimizer, Optimizer):
            step(run, optimizer, node)
            return NONE
    return Opaque(name)


def grad_scaler(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    return Scaler()


def scale_loss(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``with apex.amp.scale_loss(loss, optimizer) as scaled: scaled.backward()``."""
    given = args[0] if args else keywords.get("loss")
    if given is None:
        return Opaque("scale_loss")
    return Scaled(simple(run, "mul", [given, (Tensor(), given[1])], node))


def amp_initialize(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``apex.amp.initialize(models, optimizers, ...)``: what it is handed, patched."""
    models, optimizers = option(args, keywords, "models", 0), option(args, keywords, "optimizers", 1)
    if models is None:
        return Opaque("initialize")
    if optimizers is None or optimizers is NONE:
        return models
    return Sequence("tuple", [models, optimizers])


def amp_handle(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``handle = apex.amp.init()``: the older interface, whose handle scales losses as the module does."""
    return External("apex.amp")


def master_params(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``apex.amp.master_params(optimizer)``: what it steps on."""
    owner = args[0][0] if args else NONE
    if not isinstance(owner, Optimizer):
        return Opaque("master_params")
    return Params(owner.state.leaves, owner.state.groups_known)
