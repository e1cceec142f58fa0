"""Attributes, read and written."""

from __future__ import annotations

import ast
import os

from gradfix.autograd import imports, operators, unbound
from gradfix.autograd.arguments import Call, unwritten
from gradfix.autograd.engine import give_values, move_by_hand, zero_grad
from gradfix.autograd.graph import Backward, Leaf, reachable_nodes
from gradfix.autograd.parameters import is_leaf, set_requires
from gradfix.autograd.run import Impossible, Run
from gradfix.autograd.semantics.adjusting import replace, replace_parameter
from gradfix.autograd.semantics.dispatch import attribute, attributes_of, call_value, item, other_methods
from gradfix.autograd.semantics.items import part
from gradfix.autograd.semantics.names import MODULE_METHODS, member
from gradfix.autograd.values import (
    Attributes,
    Class,
    Const,
    Function,
    ImportedName,
    Instance,
    LazyIterable,
    Mapping,
    Method,
    Module,
    NamedResults,
    Namespace,
    Optimizer,
    ParameterIterable,
    Process,
    Property,
    Record,
    Scaler,
    Sequence,
    StaticOrClassMethod,
    SummaryTensor,
    Super,
    Tensor,
    Unknown,
    Value,
    graphless_value,
    tensors_in,
)


def method_held(run: Run, base: Module | Instance, name: str, node: ast.AST) -> Value | None:
    """What an object of the project has by the name of a method: in itself, or from its class."""
    held = base.attributes.get(name)
    if held is None and base.cls is not None and base.cls.lookup(name) is not None:
        held = _object_attribute(run, base, name, node)
    return held


@attributes_of(Value)
def _other_attribute(run: Run, value: Value, name: str, node: ast.AST) -> Value:
    return Unknown(name)


@attributes_of(Super, Sequence, Mapping, ParameterIterable, Scaler, Const, LazyIterable, Process)
def _as_method(run: Run, value: Value, name: str, node: ast.AST) -> Value:
    return Method(value, name)


@attributes_of(NamedResults)
def _named_result(run: Run, value: NamedResults, name: str, node: ast.AST) -> Value:
    return value.items[value.fields.index(name)] if name in value.fields else Method(value, name)


@attributes_of(ImportedName)
def _external_attribute(run: Run, value: ImportedName, name: str, node: ast.AST) -> Value:
    return Attributes(value) if name == "__dict__" else member(value.name, name)


@attributes_of(Namespace)
def _namespace_attribute(run: Run, value: Namespace, name: str, node: ast.AST) -> Value:
    return Attributes(value) if name == "__dict__" else member_of(run, value, name)


@attributes_of(Unknown)
def _unknown_attribute(run: Run, value: Unknown, name: str, node: ast.AST) -> Value:
    known = value.attributes.get(name)
    if known is not None:
        return known
    if name == "module" and value.leaf is not None and run.symbols is not None:
        return value  # wrapped in DataParallel or the like
    if value.node is not None:
        if name in TENSOR_DATA:
            return graphless_value(name)
        if name == "data":
            # Of a packed sequence, say, it is no more than another name for what has the graph.
            return Tensor(None, None)
        return part(run, value, name, node)
    child = run.part_of(value, name)
    if value.graphless and (name in TENSOR_DATA or operators.attribute(name) is not None):
        child.graphless, child.lost = True, value.lost
    known = child if run.symbols is None else run.symbols.part(value, child, name, node)
    value.attributes[name] = known
    return known


@attributes_of(Class)
def _class_attribute(run: Run, value: Class, name: str, node: ast.AST) -> Value:
    found = value.lookup(name)
    if isinstance(found, Property):
        return Unknown(name)
    return found if found is not None else Method(value, name)


@attributes_of(Record)
def _record_attribute(run: Run, value: Record, name: str, node: ast.AST) -> Value:
    if name in value.items or not hasattr(dict, name):
        return item(run, value, Const(name), unwritten(node), node)
    return Method(value, name)


def bind_weight(run: Run, value: Value) -> None:
    """Note that a weight of a layer has been bound to a value: MAML's are computed with gradients.

    A weight that is computed of others alone, as in spectral normalisation, is followed as it is.
    """
    if is_leaf(value) or not tensors_in(value):
        return
    graph = reachable_nodes([(tensor.node, True) for tensor in tensors_in(value) if tensor.node is not None])
    if any(node.op == "autograd.grad" for node in graph) or any(
        isinstance(event, Backward) and event.accumulates and event.create_graph is not False
        for event in run.events
    ):
        run.substituted = True


TENSOR_DATA = frozenset(
    "shape dtype device is_leaf grad_fn ndim is_cuda layout names itemsize nbytes output_nr _version".split()
)


def member_of(run: Run, namespace: Namespace, name: str) -> Value:
    """An attribute of a module of the project, which may be a module inside a package."""
    held = namespace.frame.variables.get(name)
    if isinstance(held, imports.Lazy):
        held = imports.settled(run, namespace.frame, name, held)
    if held is not None:
        return held
    inner = imports.locate(f".{name}", namespace.frame.origin)
    if inner is not None:
        value = imports.namespace(run, inner)
    else:
        origin = namespace.frame.origin
        value = imports.bare_package(os.path.join(os.path.dirname(origin), name), origin)
    return value if value is not None else ImportedName(f"{namespace.frame.origin}.{name}")


def calls_network(value: Value, name: str) -> bool:
    """Whether a method of a network does what calling it does: ``net.forward(x)`` is a call of ``net``."""
    if name != "forward" or not isinstance(value, Module) or "forward" in value.attributes:
        return False
    return value.cls is not None and value.cls.lookup("__call__") is None


@attributes_of(Module, Instance)
def _object_attribute(run: Run, value: Module | Instance, name: str, node: ast.AST) -> Value:
    held = value.attributes.get(name)
    if held is not None:
        if isinstance(held, Unknown) and held.owner is None and isinstance(value, Module):
            held.owner = value
        return held
    if name == "__dict__":
        return Attributes(value)
    if value.cls is not None:
        found = value.cls.lookup(name)
        if isinstance(found, Function):
            return Method(value, name) if calls_network(value, name) else found.bind(value)
        if isinstance(found, Property):
            return call_value(run, found.function.bind(value), Call([], {}, node))
        if isinstance(found, StaticOrClassMethod):
            return found.function.bind(value.cls) if found.of_class else found.function
        if found is not None:
            return found
    if isinstance(value, Module):
        if name == "module":
            return value  # wrapped in DataParallel or the like
        if name in MODULE_METHODS or name in ("forward", "__call__"):
            return Method(value, name)
        if value.leaf is not None and (name == "weight" or (name == "bias" and value.biased)):
            # Weight and bias are one block here.
            return Tensor.of_leaf(value.leaf)
        if name == "training":
            return Unknown("training") if value.training is None else Const(value.training)
    if isinstance(value, Instance) and value.inherited is not None:
        return attribute(run, value.inherited, name, node)
    if value.cls is not None and unbound.shows_all_attributes(value.cls):
        run.missed.add((value.cls.name, name))
    if run.scenario.other and (unbound.missing_attribute(value, name) or _made_at_first(run, value, name)):
        raise Impossible
    fresh = Unknown(name)
    if isinstance(value, Module):
        fresh.owner = value
    value.attributes[name] = fresh
    if run.symbols is not None and isinstance(value, Instance):
        value.attributes[name] = run.symbols.introduce(fresh, (value.cls.node, name), f"self.{name}", node)
    return value.attributes[name]


def _made_at_first(run: Run, value: Module | Instance, name: str) -> bool:
    """Whether the main run has a network there since the object was made, and this run has nothing.

    Either a caller makes up for it (``Agent(set_up=False)``, then ``agent.set_up()``), and things are as in
    the main run, or Python raises AttributeError.
    """
    first = run.scenario.main_run
    return (
        first is not None
        and not run.catching
        and value.cls is not None
        and (value.cls.node, name) in first.made
        and not value.cls.unknown_bases()
        and value.cls.lookup("__getattr__") is None
    )


def _write_gradient(run: Run, holder: Value, value: Value) -> None:
    """Note that a gradient is given to something by hand, and not only cleared: anybody may own that."""
    if isinstance(value, Const) and value.value is None:
        return
    of = [leaf for state in run.external_optimizers for leaf in state.leaves]
    while isinstance(holder, Unknown) and holder.leaf is None and holder.parent is not None:
        holder = holder.parent
    if isinstance(holder, Unknown) and holder.leaf is not None:
        of += holder.leaf.family()
    for leaf in of:
        leaf.unknown_grad = True
    if run.symbols is not None:
        run.symbols.gradients_written = True


def set_attribute(run: Run, holder: Value, name: str, value: Value, target: ast.expr) -> None:
    """``holder.name = value``."""
    run.mutations += 1
    if isinstance(holder, (Module, Instance, Unknown)):
        if (
            isinstance(value, (Module, Optimizer))
            and isinstance(holder, (Module, Instance))
            and holder.cls is not None
            and any(getattr(node, "name", "") in unbound.CONSTRUCTORS for node, _ in run.active)
        ):
            run.made.add((holder.cls.node, name))
        if name in ("grad", "_grad") and isinstance(holder, Unknown):
            _write_gradient(run, holder, value)
            return
        if name in ("requires_grad", "data") and isinstance(holder, Unknown):
            holder.graphless = False
        if isinstance(holder, Module) and isinstance(value, Tensor) and value.leaf is not None:
            known = value.leaf.label
            if known == "parameter":
                value.leaf.label = f"parameter {name}"
        if isinstance(holder, Module) and isinstance(value, Unknown) and value.owner is None:
            value.owner = holder
        if isinstance(value, Module) and value.label == value.kind.rsplit(".", 1)[-1]:
            value.label = name
        if run.optimizers and isinstance(value, Module) and isinstance(holder, (Module, Unknown)):
            replace(run, holder, name, value, target)
        if run.optimizers and isinstance(holder, Module) and isinstance(value, Tensor) and value.leaf:
            replace_parameter(run, holder, name, value.leaf, target)
        if isinstance(holder, Module) and isinstance(holder.attributes.get(name), Module):
            run.summaries.clear()  # The networks that this is a part of compute with another layer now.
        holder.attributes[name] = value
        if name == "weight" and isinstance(holder, Module) and holder.leaf is not None:
            # A layer that is given another one's weights shares them; a bias of its own is left out.
            if (
                isinstance(value, Tensor)
                and value.leaf is not None
                and not value.leaf.label.startswith("parameter")
            ):
                holder.leaf = value.leaf
        if isinstance(holder, Unknown):
            run.hand_on(value)
            if run.symbols is not None:
                run.symbols.store(holder, value)
        if isinstance(holder, Module) and holder.kind != "user":
            bind_weight(run, value)
    elif isinstance(holder, Record):
        holder.items[name] = value
    elif isinstance(holder, ImportedName):
        run.hand_on(value)
    elif isinstance(holder, (Tensor, SummaryTensor)):
        leaves = [holder.leaf] if isinstance(holder, Tensor) and holder.leaf else []
        if isinstance(holder, SummaryTensor):
            leaves = holder.leaves
        if name in ("grad", "_grad"):
            _write_gradient(run, holder, value)
            if isinstance(value, Const) and value.value is None:
                zero_grad(run, holder, leaves, target)
            elif (
                isinstance(value, SummaryTensor) and value.view == "grad" and len(value.leaves) == len(leaves)
            ):
                _share_gradients(leaves, value)
            else:
                for leaf in leaves:
                    leaf.unknown_grad = True
        elif name == "requires_grad":
            set_requires(run, holder, leaves, value, target)
        elif name == "data":
            move_by_hand(run, leaves, target)
            give_values(run, leaves, value)


def _share_gradients(leaves: list[Leaf], gradients: SummaryTensor) -> None:
    """Give parameters the gradients of others, or copies of them."""
    for leaf, source in zip(leaves, gradients.leaves):
        if gradients.itself or source.grad is None:
            leaf.grad = source.grad
        else:
            leaf.grad = dict(source.grad)
        leaf.unknown_grad = source.unknown_grad
        leaf.grad_source = source if source is not leaf else None
        leaf.grad_is_copy = leaf.grad_source is not None and not gradients.itself


@other_methods(Attributes)
def _attributes_method(
    run: Run,
    base: Attributes,
    call: Call,
) -> Value:
    """A method of ``holder.__dict__``: ``update(locals())`` sets attributes past ``nn.Module``'s own eyes."""
    holder = base.holder
    if isinstance(holder, Namespace) and call.name == "items":
        # Who goes through a module looks for a class that is defined there.
        defined = [
            Sequence("tuple", [Const(key), value])
            for key, value in holder.frame.variables.items()
            if isinstance(value, Class) and value.frame is holder.frame
        ]
        return Sequence("list", [*defined])
    if not isinstance(holder, (Module, Instance)):
        return Unknown(call.name)
    if call.name == "update":
        run.mutations += 1
        for value, _ in call.args:
            if isinstance(value, Mapping):
                _set_past(holder, {k: v for k, v in value.items.items() if isinstance(k, str)})
            if isinstance(holder, Module) and not (isinstance(value, Mapping) and not value.open):
                holder.rest = holder.rest or Leaf(f"the rest of {holder.label}", None)
        _set_past(holder, {k: v for k, (v, _) in call.keywords.items() if k != "**"})
    elif call.name == "get" and call.args and isinstance(call.args[0][0], Const):
        held = holder.attributes.get(call.args[0][0].value)
        if held is not None:
            return held
    return Unknown(call.name)


def _set_past(holder: Module | Instance, given: dict[str, Value]) -> None:
    """Set attributes through ``__dict__``: of a network, none of them becomes a part."""
    for name, value in given.items():
        if isinstance(holder, Instance) or isinstance(value, (Const, Function, Class, ImportedName)):
            holder.attributes[name] = value
        elif value is not holder:
            holder.attributes[name] = Unknown(name)
