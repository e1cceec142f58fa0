"""Which parameters a value stands for: a network's, those of an optimizer, what is clipped or frozen."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradfix.autograd.graph import ExhaustedParameters, Leaf, ModeChange, Tri
from gradfix.autograd.run import Run
from gradfix.autograd.values import (
    Const,
    Mapping,
    Module,
    ParameterIterable,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    WholeNetworks,
)


def leaves_of(value: Value) -> tuple[list[Leaf], bool]:
    """The parameters in what was handed to an optimizer or clipped, and whether that is all of them."""
    if isinstance(value, ParameterIterable):
        return value.leaves, value.complete
    if isinstance(value, SummaryTensor):
        return value.leaves, True
    if isinstance(value, Tensor):
        return ([value.leaf], True) if value.leaf is not None else ([], value.requires is False)
    if isinstance(value, Module):
        return module_leaves(value), True
    if isinstance(value, Sequence):
        found: list[Leaf] = []
        complete = not value.open
        groups = [_picked(item_) for item_ in value.items]
        for item_, picked in zip(value.items, groups):
            leaves, known = leaves_of(item_)
            found += leaves
            rest = picked is not None and any(other is not None and _rest(picked, other) for other in groups)
            complete = complete and (known or rest)
        return list(dict.fromkeys(found)), complete
    if isinstance(value, Mapping):
        if "params" in value.items:
            return leaves_of(value.items["params"])
        return leaves_of(Sequence("list", list(value.items.values()), value.open))
    return [], False


def wholes_of(value: Value) -> WholeNetworks | None:
    """The networks all of whose parameters a value has, each as often as it has them."""
    if isinstance(value, ParameterIterable):
        return value.whole_networks if value.complete else None
    if isinstance(value, Mapping) and "params" in value.items:
        return wholes_of(value.items["params"])
    if not isinstance(value, Sequence) or value.open or not value.items:
        return None
    found: WholeNetworks = ()
    for item_ in value.items:
        held = wholes_of(item_)
        if held is None:
            return None
        found += held
    return found


def go_through(run: Run, value: Value, site: ast.AST, optimizer: bool = False, alone: bool = True) -> None:
    """Note that something goes through parameters to the end: of a generator, nothing is left."""
    if isinstance(value, Sequence):
        for group in value.items:
            if isinstance(group, Mapping) and "params" in group.items:
                go_through(run, group.items["params"], site, optimizer, alone=False)
    elif isinstance(value, ParameterIterable) and value.made is not None:
        if value.exhausted_by is None:
            value.exhausted_by = site
            return
        calls = tuple(call for call, _ in run.stack)
        run.events.append(
            ExhaustedParameters(
                site,
                run.loops,
                run.next_serial(),
                value.made,
                value.exhausted_by,
                optimizer,
                alone,
                calls=calls,
            )
        )


def _picked(value: Value) -> ParameterIterable | None:
    """What a group of an optimizer holds, if a condition has picked it."""
    if isinstance(value, Mapping):
        value = value.items.get("params", value)
    return value if isinstance(value, ParameterIterable) and value.selection is not None else None


def _rest(one: ParameterIterable, other: ParameterIterable) -> bool:
    """Whether one holds what the other leaves out: those with weight decay, and those without."""
    if one.selection is None or other.selection is None or set(one.leaves) != set(other.leaves):
        return False
    return one.selection == (other.selection[0], not other.selection[1])


def module_leaves(module: Module) -> list[Leaf]:
    """Every parameter block of a network; parts that cannot be seen get a block of their own."""
    _reserve(module, set())
    return module.leaves()


def known_leaves(run: Run, module: Module) -> list[Leaf]:
    """As :func:`module_leaves`, remembered as long as no attribute is written anywhere."""
    known = run.leaves_known.get(module)
    if known is None or known[0] != run.mutations:
        known = run.leaves_known[module] = (run.mutations, module_leaves(module))
    return known[1]


def _reserve(module: Module, seen: set[int]) -> None:
    if id(module) in seen:
        return
    seen.add(id(module))
    for value in [*module.items, *module.attributes.values()]:
        if isinstance(value, Module):
            _reserve(value, seen)
        elif isinstance(value, Sequence):
            for inner in value.items:
                if isinstance(inner, Module):
                    _reserve(inner, seen)
        elif (
            isinstance(value, Unknown)
            and value.leaf is None
            and module.rest is None
            and value.owner is not None
        ):
            module.rest = Leaf(f"the rest of {module.label}", None)


LAYERED = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})
"""Containers of torch whose items are all networks."""


def hold(container: Module, layers: Iterable[Value]) -> None:
    """What a container of layers holds unseen is a layer too: it may have parameters."""
    if container.kind in LAYERED:
        for layer in layers:
            if isinstance(layer, Unknown) and layer.owner is None and layer.node is None:
                layer.owner = container


def add_layers(container: Module, layers: list[Value]) -> None:
    """``append``, ``extend`` and ``add_module`` of a container of torch."""
    container.items += layers
    hold(container, layers)
    if container.kind == "torch.nn.Sequential" and any(isinstance(layer, Unknown) for layer in layers):
        # Layers that cannot be seen: one block that is taken to be deep.
        container.leaf = container.leaf or Leaf(container.label)


def is_leaf(value: Value) -> bool:
    """Whether a value is a parameter, or none, as against a tensor that was computed."""
    if isinstance(value, SummaryTensor):
        return value.view == ""
    return isinstance(value, Const) or (isinstance(value, Tensor) and value.leaf is not None)


def set_requires(run: Run, holder: Value, leaves: list[Leaf], value: Value, site: ast.AST) -> None:
    """``requires_grad = value`` on parameters or on a tensor."""
    wanted: Tri = bool(value.value) if isinstance(value, Const) else None
    if run.selects_some and isinstance(holder, SummaryTensor):
        wanted = None
    if isinstance(holder, Tensor) and holder.leaf is None:
        if wanted is not False and holder.node is None:
            leaf = Leaf("tensor", wanted, site)
            leaf.storage, leaf.lost, leaf.doubtful = holder.storage, holder.lost, holder.requires is not False
            holder.leaf = leaf
            holder.requires = wanted
        return
    for top in leaves:
        for leaf in top.family():
            if wanted and leaf.requires is False:
                run.thawed.add(leaf)
            leaf.requires = wanted
    if isinstance(holder, Tensor):
        holder.requires = wanted


def set_mode(run: Run, network: Module | Unknown, training: Tri, node: ast.AST | None = None) -> None:
    """Put a network and everything in it into training or evaluation mode, or into one that is not known.

    At ``node``, or before anything is run.
    """
    change = None
    if node is not None:
        calls = tuple(call for call, _ in run.stack)
        before = run.mode_of.get(network)
        change = ModeChange(
            run.site_in_file(node), run.loops, run.next_serial(), training, before, calls=calls
        )
        run.events.append(change)
    for part_ in _below(network, {}) if isinstance(network, Module) else [network]:
        if change is not None:
            run.mode_of[part_] = change
        if isinstance(part_, Module) and part_.training is not training:
            part_.training = training
            run.modes += 1


def _below(module: Module, seen: dict[Value, None]) -> dict[Value, None]:
    """A network and everything in it, each once."""
    if module not in seen:
        seen[module] = None
        for value in [*module.items, *module.attributes.values()]:
            if isinstance(value, Module):
                _below(value, seen)
            elif isinstance(value, Unknown):
                seen[value] = None
    return seen


def havoc_versions(run: Run, module: Module) -> None:
    """Weights may have been written in place by something unknown (weight initialisation)."""
    for leaf in module_leaves(module):
        leaf.storage.maybe += 1
