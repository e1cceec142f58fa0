"""The engine of DeepSpeed: the network, its optimizer and its schedule in one (documentation of 0.18).

``engine.step()`` steps at the end of each accumulation, and clears then; ``engine.backward`` divides the loss
and multiplies it by the scale.
"""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Call
from gradfix.autograd.engine import backward, step, zero_grad
from gradfix.autograd.graph import OptimizerState
from gradfix.autograd.parameters import leaves_of
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import (
    attributes_of,
    call_method,
    call_value,
    called,
    function,
    method,
)
from gradfix.autograd.values import NONE, Engine, Optimizer, Sequence, Unknown, Value


@function("deepspeed.initialize")
def _initialize(run: Run, call: Call) -> Value | None:
    """``deepspeed.initialize(args, model, optimizer, model_parameters, ...)``."""
    network = call.argument("model", 1)
    if network is None:
        return None
    optimizer = call.argument("optimizer", 2)
    if not isinstance(optimizer, Optimizer):
        given = call.argument("model_parameters", 3)
        state = OptimizerState("the optimizer of the engine", call.site, run.loops)
        state.leaves, state.groups_known = leaves_of(network if given is None or given is NONE else given)
        state.groups_known = state.groups_known and bool(state.leaves)
        optimizer = Optimizer(state)
        run.optimizers.append(optimizer)
    optimizer.state.wrapped = True
    engine = Engine(network, optimizer, call.site)
    run.preparers.append(engine)
    schedule = call.keywords.get("lr_scheduler", (Unknown("lr_scheduler"), None))[0]
    return Sequence("tuple", [engine, optimizer, Unknown("loader"), schedule])


@called(Engine)
def _call(run: Run, engine: Engine, call: Call) -> Value:
    return call_value(run, engine.network, call)


@attributes_of(Engine)
def _attribute(run: Run, engine: Engine, name: str, node: ast.AST) -> Value:
    return engine.network if name == "module" else engine.attributes.setdefault(name, Unknown(name))


@method(Engine, "backward")
def _backward(run: Run, engine: Engine, call: Call) -> Value | None:
    if not call.args:
        return None
    backward(run, [call.args[0]], Call([], {}, call.site)).through = engine
    return NONE


@method(Engine, "step")
def _step(run: Run, engine: Engine, call: Call) -> Value:
    step(run, engine.own, call.site).through = engine
    zero_grad(run, engine.own, engine.own.state.owned(), call.site)
    return NONE


@method(Engine, "zero_grad")
def _zero_grad(run: Run, engine: Engine, call: Call) -> Value:
    zero_grad(run, engine.own, engine.own.state.owned(), call.site)
    return NONE


@method(Engine, "train", "eval", "parameters", "named_parameters", "state_dict", "requires_grad_")
def _of_the_network(run: Run, engine: Engine, call: Call) -> Value:
    return call_method(run, engine.network, call)
