"""Functions of torch that are more than an operation."""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Call, flag
from gradfix.autograd.engine import backward, differentiate
from gradfix.autograd.graph import Edge, Leaf, ReentrantCheckpoint, Tri
from gradfix.autograd.parameters import leaves_of, module_leaves
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.adjusting import make_schedule
from gradfix.autograd.semantics.dispatch import call_method, function, inherent_method, package
from gradfix.autograd.semantics.layers import INPLACE, canonical_module, drops, make_module
from gradfix.autograd.semantics.names import GRAD_CONTEXTS, MODULE_METHODS
from gradfix.autograd.semantics.operations import (
    apply,
    function_row,
    made_of_one_number,
    unknown,
    weak_update_of_operand,
)
from gradfix.autograd.semantics.optimizers import follower, make_optimizer
from gradfix.autograd.values import (
    NONE,
    Const,
    Function,
    GradMode,
    Module,
    ParameterIterable,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    graphless_value,
    lost_in,
    tensors_in,
)

FOREACH = (
    "add sub mul div addcmul addcdiv lerp zero neg abs sqrt pow exp log norm sign copy clamp_min clamp_max "
    "maximum minimum reciprocal round"
).split()
"""The operations that torch offers for lists of tensors."""


@package("torch.optim")
def _optimizer(run: Run, call: Call) -> Value | None:
    return make_optimizer(run, _last(call), call) if _is_class(call) else None


@package("torch.optim.swa_utils")
def _average(run: Run, call: Call) -> Value | None:
    return follower(_last(call), call.args) if _is_class(call) else None


@package("torch.optim.lr_scheduler")
def _schedule(run: Run, call: Call) -> Value:
    return make_schedule(run, call) or follower(_last(call), call.args)


@package("torch.nn")
def _network(run: Run, call: Call) -> Value | None:
    last = _last(call)
    if last in MODULE_METHODS and call.args and isinstance(call.args[0][0], Module):
        # ``nn.Module.train(self, mode)``: the method of the base class, past the one that overrides it.
        return inherent_method(
            run, call.args[0][0], Call(call.args[1:], call.keywords, call.site, False, last)
        )
    return make_module(run, canonical_module(call.name), last, call) if _is_class(call) else None


@package("torch.nn.init")
def _initialise(run: Run, call: Call) -> Value:
    for value, _ in call.args[:1]:
        if isinstance(value, Tensor):
            run.change(value, call.site, _last(call))
        for leaf in leaves_of(value)[0] if isinstance(value, SummaryTensor) else ():
            run.change(Tensor.of_leaf(leaf), call.site, _last(call))
    return call.args[0][0] if call.args else NONE


@function("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
def _loader(run: Run, call: Call) -> Value | None:
    """Batches come as they were stored: none has a graph."""
    return None if any(isinstance(value, Module) for value in call.values) else graphless_value("DataLoader")


@function("torch.manual_seed")
@package("torch.cuda", "torch.backends")
def _setting(run: Run, call: Call) -> Value:
    return Unknown(_last(call))


@package("torch")
def _operation(run: Run, call: Call) -> Value | None:
    return _by_row(run, call, call.name)


@package("torch.nn.functional")
def _layer_as_function(run: Run, call: Call) -> Value | None:
    """What may be done in place, as ``inplace`` says, and dropout, which does nothing in evaluation."""
    last = _last(call)
    if last not in INPLACE:
        return None
    inplace = call.argument("inplace", INPLACE[last])
    active: Tri = True
    if last in ("dropout", "dropout1d", "dropout2d", "dropout3d"):
        training = flag(call.argument("training", 2), True)
        active = drops(call.argument("p", 1) or Const(0.5), training)
    overwrites = isinstance(inplace, Const) and inplace.value is True
    way = "#eval" if active is False else "#inplace" if overwrites and active else ""
    result = _by_row(run, call, call.name + way)
    if overwrites and active is None and result is not None:
        weak_update_of_operand(call.args, call.keywords, result)
    return result


def _by_row(run: Run, call: Call, lookup: str) -> Value | None:
    """An operation by its row of the operator table; None if there is none."""
    table = function_row(lookup, call.name, call.args, call.keywords)
    if table is None:
        return None
    creates = not table.operands or not any(table.saved)
    wanted = "requires_grad" in call.keywords or _last(call) == "tensor" or not table.operands
    if creates and wanted:
        return _created(run, call)
    return apply(run, table, call.args, call.keywords, call.site)


def _last(call: Call) -> str:
    """The name of a function, without that of its package."""
    return call.name.rpartition(".")[2]


def _is_class(call: Call) -> bool:
    return _last(call)[:1].isupper()


def _created(run: Run, call: Call) -> Tensor:
    """A new tensor: a leaf if ``requires_grad`` was asked for. What it is made of leaves its graph behind."""
    asked = call.keywords.get("requires_grad")
    wanted: Tri = flag(asked[0], False) if asked is not None else False
    tensor = Tensor()
    tensor.storage.fill = made_of_one_number(call.name, call.args)
    made_of = [tensor for value in call.values for tensor in tensors_in(value)]
    ending = next((one for one in made_of if one.requires is True), None)
    tensor.lost = run.graph_end(ending, call.site) if ending is not None else None
    if ending is None and run.graphs_ended and (lost := lost_in(call.values)) is not None:
        tensor.lost = lost._replace(sites=(*lost.sites, call.site))
    of = call.args[0][0] if call.args else NONE
    if (
        tensor.lost is not None
        and not isinstance(of, Tensor)
        and not (ending is None and of.__class__ is Unknown)
    ):
        alone = tensor.lost.from_list is not None and _lists_losses(of)
        tensor.lost = tensor.lost._replace(from_list=alone or None)
    if wanted is not False:
        leaf = Leaf("tensor", wanted, call.site)
        leaf.storage, leaf.lost = tensor.storage, tensor.lost
        tensor.leaf = leaf
        tensor.requires = wanted
    return tensor


def _lists_losses(value: Value) -> bool:
    """Whether something is a list of tensors with graphs alone, or of what one place has cut off alone."""
    if not isinstance(value, Sequence) or value.open:
        return False
    if all(isinstance(item, Tensor) and item.requires is True for item in value.items):
        return True
    cuts = {item.lost and item.lost.sites for item in value.items if isinstance(item, (Tensor, Unknown))}
    return len(cuts) == 1 and None not in cuts and not any(isinstance(item, Const) for item in value.items)


@function(*GRAD_CONTEXTS)
def grad_mode(run: Run, call: Call) -> Value:
    """A context that records graphs or does not; called on a function, without being made, it decorates."""
    mode = call.argument("mode", 0)
    if isinstance(mode, Function):
        return mode.within(GradMode(GRAD_CONTEXTS[call.name]))
    if call.name.endswith("inference_mode"):
        inference = flag(mode, True)
        return GradMode(None if inference is None else not inference)
    return GradMode(GRAD_CONTEXTS[call.name])


@function("torch.cuda.device_count")
def _device_count(run: Run, call: Call) -> Value:
    # One, as most have: what several are for goes the same way through autograd.
    return Const(1)


function("torch.autograd.grad")(differentiate)


@function("torch.set_grad_enabled")
def set_grad_enabled(run: Run, call: Call) -> Value:
    return GradMode(flag(call.argument("mode", 0), None), switch=True)


@function("torch.autograd.Variable")
def variable(run: Run, call: Call) -> Value:
    """``Variable(x)``: the memory of ``x`` without its graph, whatever it requires (tried: torch 2.13)."""
    wanted = flag(call.argument("requires_grad", 1), False)
    return _without_graph(run, call.args[0][0] if call.args else NONE, wanted, "tensor", call.site)


@function("torch.nn.Parameter", "torch.nn.parameter.UninitializedParameter")
def parameter(run: Run, call: Call) -> Value:
    wanted = flag(call.argument("requires_grad", 1), True)
    return _without_graph(run, call.args[0][0] if call.args else NONE, wanted, "parameter", call.site)


def _without_graph(run: Run, value: Value, wanted: Tri, label: str, node: ast.AST) -> Tensor:
    """A tensor that has the memory of ``value`` and none of its graph; a leaf, if it may require grad."""
    tensor = Tensor()
    if isinstance(value, (Tensor, Unknown)):
        tensor.lost = run.graph_end(value, node)
        if value.node is not None:
            run.detached.append((run.next_serial(), value.node, node))
        if value.storage is None:
            value.storage = tensor.storage
        tensor.storage = value.storage
    if label == "parameter" or wanted is not False:
        tensor.leaf = Leaf(label, wanted, node)
        tensor.leaf.storage, tensor.requires = tensor.storage, wanted
        tensor.leaf.lost = tensor.lost if label == "tensor" else None
    return tensor


@function("torch.autograd.backward")
def backward_function(run: Run, call: Call) -> Value:
    """``torch.autograd.backward(tensors, grad_tensors, retain_graph, create_graph)``."""
    given = call.args[0] if call.args else call.keywords.get("tensors")
    if given is not None:
        backward(run, [given], call)
    return NONE


@function(*(f"torch._foreach_{name}{ending}" for name in FOREACH for ending in ("", "_")))
def on_each(run: Run, call: Call) -> Value:
    """``torch._foreach_mul_(tensors, 0.9)``: an operation on each of several tensors, and of other lists."""
    name = call.name.removeprefix("torch._foreach_")
    lists = [_items_for_each(run, value, e) for value, e in call.args]
    results: list[Value] = []
    for number, item in enumerate(lists[0] or [] if lists else []):
        args = [
            (given, e) if items is None else (items[min(number, len(items) - 1)], e)
            for items, (given, e) in zip(lists[1:], call.args[1:])
        ]
        results.append(call_method(run, item, Call(args, call.keywords, call.site, False, name)))
    return Sequence("list", results, not results)


def _items_for_each(run: Run, value: Value, site: ast.expr) -> list[Value] | None:
    """The items of a list of tensors; None of a number."""
    if isinstance(value, Sequence):
        return value.items or [Unknown("item")]
    if isinstance(value, ParameterIterable):
        return [SummaryTensor(value.leaves)]
    return [value] if isinstance(value, SummaryTensor) else None


@function("torch.save", "torch.jit.save")
def save(run: Run, call: Call) -> Value:
    """``torch.save``: writes what it is handed, and changes nothing."""
    return NONE


@function("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")
def checkpoint(run: Run, call: Call) -> Value:
    """Activation checkpointing recomputes with the weights of the moment: nothing certain is said of it."""
    _note_data(run, call)
    result = unknown(run, call.args[1:], call.keywords, call.site, "checkpoint", certain=False)
    network = call.args[0][0] if call.args else None
    if isinstance(network, Module) and isinstance(result, Unknown) and run.grad_enabled is not False:
        if result.node is None:
            result.node = run.node("checkpoint", call.site)
            result.node.raises_when_freed, result.requires = None, None
        leaves = [leaf for top in module_leaves(network) for leaf in top.family()]
        result.node.leaves += tuple((leaf, False, None) for leaf in leaves)
    return result


def _note_data(run: Run, call: Call) -> None:
    """Note a network that is checkpointed by a graph which begins at its inputs, and these have none."""
    first = 2 if call.name.endswith("sequential") else 1
    given = [value for value, _ in call.args[first:] if not isinstance(value, Const)]
    if "**" in call.keywords or not given or run.grad_enabled is not True:
        return
    if flag(call.argument("use_reentrant", len(call.args)), True) is not True:
        return
    plain = all(
        isinstance(v, Tensor) and v.requires is False and v.node is None and v.leaf is None for v in given
    )
    network = call.args[0][0]
    if plain and isinstance(network, Module):
        leaves = [leaf for top in module_leaves(network) for leaf in top.family()]
        run.events.append(
            ReentrantCheckpoint(run.site_in_file(call.site), run.loops, run.next_serial(), leaves)
        )


@function("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
def functional_call(run: Run, call: Call) -> Value:
    """``functional_call(module, parameters, args)``: which of the parameters it uses is not known."""
    made = run.node("functional_call", call.site)
    made.raises_when_freed = None
    given = (tensor for value in call.values for tensor in tensors_in(value))
    made.edges = tuple(Edge(tensor.node, False, None) for tensor in given if tensor.node is not None)
    return Unknown("functional_call", made)
