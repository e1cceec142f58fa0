"""``torch.nn.parallel``, modelled on one device: autograd behaves as on several."""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Call
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import call_value, function
from gradfix.autograd.semantics.operations import unknown
from gradfix.autograd.values import NONE, Sequence, Tensor, Unknown, Value


@function("torch.nn.parallel.data_parallel", "torch.nn.parallel.data_parallel.data_parallel")
def data_parallel(run: Run, call: Call) -> Value:
    """``torch.nn.parallel.data_parallel(module, inputs, ...)``: the module, called on the inputs."""
    given = [*call.args, *(call.keywords[name] for name in ("module", "inputs") if name in call.keywords)]
    if len(given) < 2:
        return unknown(run, call.args, call.keywords, call.site, "data_parallel")
    (module, _), (inputs, expression), *_ = given
    if isinstance(module, Tensor):  # no module at all: it raises, but only where there are several devices
        return unknown(run, call.args, call.keywords, call.site, "data_parallel")
    if isinstance(inputs, Sequence) and inputs.kind == "tuple" and not inputs.open:
        parts = expression.elts if isinstance(expression, ast.Tuple) else [expression] * len(inputs.items)
        return call_value(run, module, Call(list(zip(inputs.items, parts)), {}, call.site))
    return call_value(run, module, Call([(inputs, expression)], {}, call.site))


@function("torch.nn.parallel.replicate", "torch.nn.parallel.scatter")
def on_one_device(run: Run, call: Call) -> Value:
    """``replicate`` and ``scatter``: what there is of it on the one device."""
    return Sequence("list", [call.args[0][0]]) if call.args else Unknown("replicas")


@function("torch.nn.parallel.parallel_apply")
def parallel_apply(run: Run, call: Call) -> Value:
    """``torch.nn.parallel.parallel_apply(modules, inputs)``: each module, called on its inputs."""
    if len(call.args) < 2:
        return unknown(run, call.args, call.keywords, call.site, "parallel_apply")
    (modules, expression), (inputs, _), *_ = call.args
    if not (isinstance(modules, Sequence) and isinstance(inputs, Sequence)):
        return unknown(run, call.args, call.keywords, call.site, "parallel_apply")
    return Sequence(
        "list",
        [
            data_parallel(run, Call([(module, expression), (given, call.args[1][1])], {}, call.site))
            for module, given in zip(modules.items, inputs.items)
        ],
    )


@function("torch.nn.parallel.gather")
def gather(run: Run, call: Call) -> Value:
    """``torch.nn.parallel.gather``: of one device, what it has."""
    given = call.args[0][0] if call.args else NONE
    if isinstance(given, Sequence) and len(given.items) == 1:
        return given.items[0]
    return unknown(run, call.args, call.keywords, call.site, "gather")
