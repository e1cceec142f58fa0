"""``torch.nn.parallel``: on one device, which goes the same way through autograd as several."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.autograd.arguments import Argument, Keywords
from gradfix.autograd.semantics.dispatch import call
from gradfix.autograd.semantics.operations import unknown
from gradfix.autograd.values import NONE, Opaque, Sequence, Tensor, Value

if TYPE_CHECKING:
    from gradfix.autograd.interpreter import Run


def data_parallel(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``torch.nn.parallel.data_parallel(module, inputs, ...)``: the module, called on the inputs."""
    given = [*args, *(keywords[name] for name in ("module", "inputs") if name in keywords)]
    if len(given) < 2:
        return unknown(run, args, keywords, node, "data_parallel")
    (module, _), (inputs, expression), *_ = given
    if isinstance(module, Tensor):  # no module at all: it raises, but only where there are several devices
        return unknown(run, args, keywords, node, "data_parallel")
    if isinstance(inputs, Sequence) and inputs.kind == "tuple" and not inputs.open:
        parts = expression.elts if isinstance(expression, ast.Tuple) else [expression] * len(inputs.items)
        return call(run, module, list(zip(inputs.items, parts)), {}, node)
    return call(run, module, [(inputs, expression)], {}, node)


def on_one_device(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``replicate`` and ``scatter``: what there is of it on the one device."""
    return Sequence("list", [args[0][0]]) if args else Opaque("replicas")


def parallel_apply(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``torch.nn.parallel.parallel_apply(modules, inputs)``: each module, called on its inputs."""
    if len(args) < 2:
        return unknown(run, args, keywords, node, "parallel_apply")
    (modules, expression), (inputs, _), *_ = args
    if not (isinstance(modules, Sequence) and isinstance(inputs, Sequence)):
        return unknown(run, args, keywords, node, "parallel_apply")
    return Sequence(
        "list",
        [
            data_parallel(run, [(module, expression), (given, args[1][1])], {}, node)
            for module, given in zip(modules.items, inputs.items)
        ],
    )


def gather(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``torch.nn.parallel.gather``: of one device, what it has."""
    given = args[0][0] if args else NONE
    if isinstance(given, Sequence) and len(given.items) == 1:
        return given.items[0]
    return unknown(run, args, keywords, node, "gather")
