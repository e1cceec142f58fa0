"""The graph of a network's forward, recorded once and laid down again for each further call.

A training loop calls the same few networks in every pass, on operands that look alike to autograd.
Interpreting `forward` each time is most of the work of a run, so the first call with operands of a kind
is kept as a template, unless it did anything but compute: wrote an attribute, asked an undecided
condition, changed an operand in place, or drew on a graph that it was not handed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.autograd.graph import Change, Edge, Node, Storage
from gradfix.autograd.values import Const, Mapping, Module, Opaque, Sequence, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from gradfix.autograd.interpreter import Run


class Template:
    """What one call of a network computed, apart from the operands it was called on."""

    __slots__ = ("nodes", "operands", "result")

    def __init__(self, nodes: list[Node], operands: list[Value], result: Value) -> None:
        self.nodes = nodes
        self.operands = operands
        self.result = result

    def lay(self, run: Run, operands: list[Value]) -> Value:
        """Record the same graph again, here and now, on other operands."""
        nodes: dict[Node, Node] = {}
        storages: dict[Storage, Storage] = {}
        for old, new in zip(self.operands, operands):
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                storages[old.storage] = new.storage
            old_node, new_node = getattr(old, "node", None), getattr(new, "node", None)
            if old_node is not None and new_node is not None:
                nodes[old_node] = new_node
        given_storages = set(storages)
        given = {id(old): new for old, new in zip(self.operands, operands)}
        for known in self.nodes:
            node = nodes[known] = run.node(known.op, known.site)
            node.saves, node.opaque, node.leaves = known.saves, known.opaque, known.leaves
            node.edges = [Edge(nodes[e.node], e.certain, e.operand) for e in known.edges]
            for storage, version, leaf in known.saved:
                if leaf is not None:
                    node.saved.append((storage, storage.version, leaf))
                    continue
                if storage in given_storages:
                    node.saved.append((storages[storage], storages[storage].version, None))
                    continue
                copy = storages.get(storage)
                if copy is None:
                    copy = storages[storage] = _copy(storage)
                node.saved.append((copy, version, None))
        return _rebuilt(self.result, nodes, storages, given)


def _copy(storage: Storage) -> Storage:
    copy = Storage()
    copy.version, copy.maybe, copy.history = storage.version, storage.maybe, list(storage.history)
    return copy


def _rebuilt(
    value: Value, nodes: dict[Node, Node], storages: dict[Storage, Storage], given: dict[int, Value]
) -> Value:
    if id(value) in given:
        return given[id(value)]
    if isinstance(value, Tensor):
        storage = storages.get(value.storage)
        if storage is None:
            storage = storages[value.storage] = _copy(value.storage)
        return Tensor(nodes[value.node] if value.node is not None else None, value.requires, storage)
    if isinstance(value, Opaque):
        made = Opaque(value.label, nodes[value.node] if value.node is not None else None)
        made.requires = value.requires
        return made
    if isinstance(value, Sequence):
        return Sequence(value.kind, [_rebuilt(v, nodes, storages, given) for v in value.items], value.open)
    if isinstance(value, Mapping):
        return Mapping({k: _rebuilt(v, nodes, storages, given) for k, v in value.items.items()}, value.open)
    return value


def kind(run: Run, module: Module, operands: list[Value]) -> Hashable | None:
    """What must agree for a template to fit; None if no template can."""
    key: list[Hashable] = [id(module), run.grad_enabled]
    seen: dict[int, int] = {}
    for value in operands:
        if id(value) in seen:
            key.append(seen[id(value)])
            continue
        seen[id(value)] = len(seen)
        if isinstance(value, Tensor):
            if value.leaf is not None:
                return None
            key.append(("tensor", value.requires, value.node is None, value.base is None))
        elif isinstance(value, Opaque):
            if value.leaf is not None or value.attributes:
                return None
            key.append(("opaque", value.requires, value.node is None))
        elif isinstance(value, Const) and isinstance(value.value, (int, float, str, bool, type(None))):
            key.append(("const", value.value, type(value.value)))
        else:
            return None
    assert run.current_call is not None
    return (*key, tuple(leaf.requires for leaf in run.leaves_known[module][1]))


def templated(run: Run, module: Module, operands: list[Value], forward: Callable[[], Value]) -> Value:
    """The result of ``forward``, from a template where one fits."""
    key = kind(run, module, operands)
    if key is None:
        return forward()
    known = run.templates.get(key)
    if known is not None:
        return known.lay(run, operands)
    start = len(run.nodes)
    before = _effects(run)
    versions = [v.storage.version for v in operands if isinstance(v, Tensor)]
    run.kept += operands
    run.kept.append(module)
    result = forward()
    if before == _effects(run) and versions == [v.storage.version for v in operands if isinstance(v, Tensor)]:
        template = Template(run.nodes[start:], list(operands), result)
        if _closed(template) and not _stores(run, module):
            run.templates[key] = template
    return result


def _effects(run: Run) -> tuple[int, ...]:
    """Counts of everything that a call can do besides computing."""
    return (
        sum(not isinstance(e, Change) for e in run.events),
        run.mutations,
        len(run.undecided),
        len(run.decisions),
        len(run.grad_reads),
        len(run.escapes),
        len(run.differentiated),
        len(run.optimizers),
    )


def _closed(template: Template) -> bool:
    """Whether the graph draws on nothing but the operands, and the result is made of known parts."""
    inner = set(template.nodes)
    inner |= {v.node for v in template.operands if isinstance(v, (Tensor, Opaque)) and v.node is not None}
    if any(edge.node not in inner for node in template.nodes for edge in node.edges):
        return False
    return _plain(template.result, inner, {id(v) for v in template.operands})


def _plain(value: Value, inner: set[Node], given: set[int]) -> bool:
    if id(value) in given or isinstance(value, Const):
        return True
    if isinstance(value, Tensor):
        return value.leaf is None and (value.node is None or value.node in inner)
    if isinstance(value, Opaque):
        return value.leaf is None and (value.node is None or value.node in inner)
    if isinstance(value, Sequence):
        return all(_plain(v, inner, given) for v in value.items)
    if isinstance(value, Mapping):
        return all(_plain(v, inner, given) for v in value.items.values())
    return False


def _stores(run: Run, module: Module) -> bool:
    """Whether a list that the network keeps was appended to in its forward."""
    return bool(run.appended) and any(
        isinstance(v, Sequence) and any(v is a for a in run.appended) for v in module.attributes.values()
    )
