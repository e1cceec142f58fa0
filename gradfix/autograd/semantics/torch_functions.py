"""Functions of torch that are more than an operation."""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Call, Keywords, flag
from gradfix.autograd.engine import backward
from gradfix.autograd.graph import Leaf, Tri
from gradfix.autograd.parameters import leaves_of
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import Transfer
from gradfix.autograd.semantics.layers import INPLACE, canonical_module, drops, make_module, module_method
from gradfix.autograd.semantics.names import MODULE_METHODS
from gradfix.autograd.semantics.operations import apply, function_row, perhaps_in_place, unknown
from gradfix.autograd.semantics.optimizers import follower, make_optimizer
from gradfix.autograd.values import NONE, Const, Each, Function, GradMode, Module, Opaque, Tensor, Value


def call_torch(run: Run, name: str, last: str, call: Call) -> Value | None:
    if name.startswith("torch.optim.") and ".lr_scheduler." not in name and last[:1].isupper():
        if name.startswith("torch.optim.swa_utils"):
            return follower(last, call.args)
        return make_optimizer(run, last, call)
    if ".lr_scheduler." in name:
        return follower(last, call.args)
    if (
        name.startswith("torch.nn.")
        and last in MODULE_METHODS
        and call.args
        and isinstance(call.args[0][0], Module)
    ):
        # ``nn.Module.train(self, mode)``: the method of the base class, past the one that overrides it.
        return module_method(run, call.args[0][0], Call(call.args[1:], call.keywords, call.site, False, last))
    if name.startswith("torch.nn.") and last[:1].isupper():
        return make_module(run, canonical_module(name), last, call)
    if name.startswith("torch.nn.init."):
        for value, _ in call.args[:1]:
            if isinstance(value, Tensor):
                run.change(value, call.site, last)
            for leaf in leaves_of(value)[0] if isinstance(value, Each) else ():
                run.change(Tensor.of_leaf(leaf), call.site, last)
        return call.args[0][0] if call.args else NONE
    if last.startswith("clip_grad"):
        run.clipped.append(run.tick())
        return Opaque(last)
    if name.startswith(("torch.cuda.", "torch.manual_seed", "torch.backends.")):
        return Opaque(last)
    lookup = name
    inplace = None
    active: Tri = True
    if name.startswith("torch.nn.functional.") and last in INPLACE:
        inplace = call.argument("inplace", INPLACE[last])
        if last in ("dropout", "dropout1d", "dropout2d", "dropout3d"):
            training = flag(call.argument("training", 2), True)
            active = drops(call.argument("p", 1) or Const(0.5), training)
    overwrites = isinstance(inplace, Const) and inplace.value is True
    if active is False:
        lookup = f"{name}#eval"
    elif overwrites and active:
        lookup = f"{name}#inplace"
    table = function_row(lookup, name, call.args, call.keywords)
    if table is None:
        return None
    if not table.operands or not any(table.saved):
        if "requires_grad" in call.keywords or last == "tensor":
            return _created(run, call.keywords, call.site)
        if not table.operands:
            return _created(run, call.keywords, call.site)
    result = apply(run, table, call.args, call.keywords, call.site)
    if overwrites and active is None:
        perhaps_in_place(call.args, call.keywords, result)
    return result


def _created(run: Run, keywords: Keywords, node: ast.AST) -> Tensor:
    """A new tensor: a leaf if ``requires_grad`` was asked for."""
    wanted: Tri = flag(keywords["requires_grad"][0], False) if "requires_grad" in keywords else False
    tensor = Tensor()
    if wanted is not False:
        leaf = Leaf("tensor", wanted, node)
        leaf.storage = tensor.storage
        tensor.leaf = leaf
        tensor.requires = wanted
    return tensor


def grad_mode(enabled: bool) -> Transfer:
    def handler(run: Run, call: Call) -> Value:
        if call.args and isinstance(call.args[0][0], Function):
            call.args[0][0].graph_free = not enabled
            return call.args[0][0]
        return GradMode(enabled)

    return handler


def set_grad_enabled(run: Run, call: Call) -> Value:
    return GradMode(flag(call.argument("mode", 0), None), switch=True)


def variable(run: Run, call: Call) -> Value:
    """``Variable(x)``: the memory of ``x`` without its graph, whatever it requires (tried: torch 2.13)."""
    wanted = flag(call.argument("requires_grad", 1), False)
    return _without_graph(run, call.args[0][0] if call.args else NONE, wanted, "tensor", call.site)


def parameter(run: Run, call: Call) -> Value:
    wanted = flag(call.argument("requires_grad", 1), True)
    return _without_graph(run, call.args[0][0] if call.args else NONE, wanted, "parameter", call.site)


def _without_graph(run: Run, value: Value, wanted: Tri, label: str, node: ast.AST) -> Tensor:
    """A tensor that has the memory of ``value`` and none of its graph; a leaf, if it may require grad."""
    tensor = Tensor()
    if isinstance(value, (Tensor, Opaque)):
        if value.node is not None:
            run.detached.append((run.tick(), value.node, node))
        if value.storage is None:
            value.storage = tensor.storage
        tensor.storage = value.storage
    if label == "parameter" or wanted is not False:
        tensor.leaf = Leaf(label, wanted, node)
        tensor.leaf.storage, tensor.requires = tensor.storage, wanted
    return tensor


def backward_function(run: Run, call: Call) -> Value:
    """``torch.autograd.backward(tensors, grad_tensors, retain_graph, create_graph)``."""
    given = call.args[0] if call.args else call.keywords.get("tensors")
    if given is not None:
        backward(run, [given], call)
    return NONE


def save(run: Run, call: Call) -> Value:
    """``torch.save``: writes what it is handed, and changes nothing."""
    return NONE


def checkpoint(run: Run, call: Call) -> Value:
    """Activation checkpointing recomputes with the weights of the moment: nothing certain is said of it."""
    return unknown(run, call.args[1:], call.keywords, call.site, "checkpoint", certain=False)


def functional_call(run: Run, call: Call) -> Value:
    made = run.node("functional_call", call.site)
    made.saves = None
    return Opaque("functional_call", made)
