"""Summaries of a network's forward: its graph is recorded once and replayed for each further call.

A training loop calls the same few networks in every iteration, on operands that look alike to autograd.
Interpreting `forward` each time is most of the work of a run, so the first call with operands of a kind
is kept as a summary, unless it did anything but compute: wrote an attribute, asked an undecided
condition, changed an operand in place, or drew on a graph that it was not handed.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gradfix.autograd.graph import Edge, Event, GraphEnd, InPlaceChange, Leaf, Node, Storage, Tri
from gradfix.autograd.run import Run
from gradfix.autograd.values import Const, Mapping, Module, Sequence, Tensor, Unknown, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class CallSummary:
    """What one call of a network computed, apart from the operands it was called on.

    It is taken down at once, in terms of its own: the tensors that came out of that call live on, and may
    be changed in place.
    """

    __slots__ = ("kin", "nodes", "result", "storages")

    def __init__(self, recorded: list[Node], operands: list[Value], result: Value, born: int) -> None:
        """Raises KeyError if the graph draws on anything but the operands, or the result cannot be told.

        Memory that was there before (a storage with a serial number below ``born``) is kept as it is.
        """
        places: dict[Node, int] = {}
        memory: dict[Storage, int] = {}
        for number, value in enumerate(operands):
            if isinstance(value, (Tensor, Unknown)) and value.node is not None:
                places[value.node] = -1 - number
            if isinstance(value, (Tensor, Unknown)) and value.storage is not None:
                memory[value.storage] = -1 - number
        self.storages: list[tuple[int, int, list[Event]]] = []
        self.nodes: list[_Record] = []

        def is_old(storage: Storage) -> bool:
            return storage.serial < born and storage not in memory

        def place(storage: Storage) -> int:
            if storage not in memory:
                if is_old(storage) or any(map(is_old, storage.maybe_same)):
                    raise KeyError(storage)  # Each call gives the same memory.
                memory[storage] = len(self.storages)
                self.storages.append((storage.version, storage.maybe, list(storage.history)))
            return memory[storage]

        for number, node in enumerate(recorded):
            places[node] = number
        for node in recorded:
            edges = [(places[e.node], e.certain, e.operand) for e in node.edges]
            saved = [(s if leaf is not None or is_old(s) else place(s), v, leaf) for s, v, leaf in node.saved]
            nature = (
                node.raises_when_freed,
                node.opaque,
                node.foreign,
                node.saved_expressions,
                node.data_operands,
                node.graphless_operand,
            )
            self.nodes.append((node.op, node.site, nature, node.leaves, edges, saved))
        self.result = _encoded(result, operands, places, place)
        self.kin = [
            (number, memory[other])
            for storage, number in memory.items()
            for other in storage.maybe_same
            if number >= 0 and memory.get(other, number) < number
        ]
        """Pairs of what may be the same memory."""

    def replay(self, run: Run, operands: list[Value]) -> Value:
        """Record the same graph again, here and now, on other operands."""
        storages = [_storage(*memory) for memory in self.storages]
        made = [run.node(record[0], record[1]) for record in self.nodes]

        def node_at(place: int) -> Node:
            if place >= 0:
                return made[place]
            node = getattr(operands[-1 - place], "node", None)
            assert isinstance(node, Node)
            return node

        def storage_at(place: int) -> Storage:
            if place >= 0:
                return storages[place]
            tensor = operands[-1 - place]
            assert isinstance(tensor, (Tensor, Unknown))
            if tensor.storage is None:
                tensor.storage = Storage()
            return tensor.storage

        for number, other in self.kin:
            storages[number].may_be(storage_at(other))

        for node, (_, _, nature, leaves, edges, saved) in zip(made, self.nodes):
            (
                node.raises_when_freed,
                node.opaque,
                node.foreign,
                node.saved_expressions,
                node.data_operands,
                node.graphless_operand,
            ) = nature
            node.leaves = leaves
            node.edges = tuple(Edge(node_at(place), certain, operand) for place, certain, operand in edges)
            kept: list[tuple[Storage, int, Leaf | None]] = []
            for storage, version, leaf in saved:
                if isinstance(storage, Storage):
                    kept.append((storage, storage.version, leaf))
                else:
                    held = storage_at(storage)
                    kept.append((held, version if storage >= 0 else held.version, leaf))
            node.saved = tuple(kept)
        return _decoded(self.result, operands, node_at, storage_at)


_Record = tuple[
    str,
    ast.AST,
    tuple[Tri, bool, bool, tuple[ast.expr | None, ...], tuple[Storage, ...], tuple[int, object] | None],
    tuple[tuple[Leaf, bool, ast.expr | None], ...],
    list[tuple[int, bool, ast.expr | None]],
    list[tuple[Storage | int, int, Leaf | None]],
]
_Encoded = tuple[Any, ...]


def _storage(version: int, maybe: int, history: list[Event]) -> Storage:
    made = Storage()
    made.version, made.maybe, made.history = version, maybe, list(history)
    return made


def _encoded(
    value: Value, operands: list[Value], places: dict[Node, int], place: Callable[[Storage], int]
) -> _Encoded:
    for number, operand in enumerate(operands):
        if value is operand:
            return ("given", number)
    if isinstance(value, Const):
        return ("const", value)
    if isinstance(value, Tensor) and value.base is not None and value.base.leaf is not None:
        raise KeyError(value)  # Each call gives the same memory: that of a parameter.
    if isinstance(value, Tensor) and value.leaf is None:
        node = places[value.node] if value.node is not None else None
        lost = _lost(value.lost, operands, places)
        return ("tensor", node, value.requires, place(value.storage), lost)
    if isinstance(value, Unknown) and value.leaf is None:
        node = places[value.node] if value.node is not None else None
        lost = _lost(value.lost, operands, places)
        return ("opaque", value.label, node, value.requires, value.graphless, lost)
    if isinstance(value, Sequence):
        return (
            "sequence",
            value.kind,
            [_encoded(v, operands, places, place) for v in value.items],
            value.open,
        )
    if isinstance(value, Mapping):
        items = {k: _encoded(v, operands, places, place) for k, v in value.items.items()}
        return ("mapping", items, value.open)
    raise KeyError


def _lost(lost: GraphEnd | None, operands: list[Value], places: dict[Node, int]) -> _Encoded | None:
    """Where a graph was lost: before the call, or in it."""
    if lost is None:
        return None
    for number, operand in enumerate(operands):
        if isinstance(operand, (Tensor, Unknown)) and operand.lost is lost:
            return ("given", number)
    graph = lost.graph if isinstance(lost.graph, Leaf) else places[lost.graph]
    return ("cut", graph, lost.sites, lost.recorded)


def _found(lost: _Encoded | None, operands: list[Value], node_at: Callable[[int], Node]) -> GraphEnd | None:
    match lost:
        case ("given", number):
            operand = operands[number]
            return operand.lost if isinstance(operand, (Tensor, Unknown)) else None
        case ("cut", graph, sites, recorded):
            return GraphEnd(graph if isinstance(graph, Leaf) else node_at(graph), sites, recorded)
    return None


def _decoded(
    encoded: _Encoded,
    operands: list[Value],
    node_at: Callable[[int], Node],
    storage_at: Callable[[int], Storage],
) -> Value:
    match encoded:
        case ("given", number):
            return operands[number]
        case ("const", value):
            assert isinstance(value, Const)
            return value
        case ("tensor", node, requires, storage, lost):
            tensor = Tensor(node_at(node) if node is not None else None, requires, storage_at(storage))
            tensor.lost = _found(lost, operands, node_at)
            return tensor
        case ("opaque", label, node, requires, graphless, lost):
            made = Unknown(label, node_at(node) if node is not None else None)
            made.requires, made.graphless = requires, graphless
            made.lost = _found(lost, operands, node_at)
            return made
        case ("sequence", _signature, items, open_):
            return Sequence(_signature, [_decoded(t, operands, node_at, storage_at) for t in items], open_)
        case ("mapping", items, open_):
            return Mapping({k: _decoded(t, operands, node_at, storage_at) for k, t in items.items()}, open_)
    raise AssertionError(encoded)


def _signature(run: Run, module: Module, operands: list[Value]) -> Hashable | None:
    """What must agree for a summary to fit; None if none can."""
    key: list[Hashable] = [id(module), run.grad_enabled, run.modes]
    seen: dict[int, int] = {}
    for value in operands:
        if id(value) in seen:
            key.append(seen[id(value)])
            continue
        seen[id(value)] = len(seen)
        if isinstance(value, Tensor):
            if value.leaf is not None:
                return None
            lost = value.lost is None
            key.append(("tensor", value.requires, value.node is None, value.base is None, lost))
        elif isinstance(value, Unknown):
            if value.leaf is not None or any(not _inert(a) for a in value.attributes.values()):
                return None
            key.append(("opaque", value.requires, value.node is None, value.graphless, value.lost is None))
        elif isinstance(value, Const) and isinstance(value.value, (int, float, str, bool, type(None))):
            key.append(("const", value.value, type(value.value)))
        else:
            return None
    assert run.current_call is not None
    return (*key, tuple(leaf.requires for leaf in run.leaves_known[module][1]))


def _inert(value: Value) -> bool:
    """Whether an attribute of an unknown value (its shape, say) has no part in the graph."""
    return isinstance(value, Unknown) and value.node is None and value.leaf is None


def summarised(run: Run, module: Module, operands: list[Value], forward: Callable[[], Value]) -> Value:
    """The result of ``forward``, from a summary where one fits."""
    key = _signature(run, module, operands)
    if key is None:
        return forward()
    known = run.summaries.get(key)
    if known is not None:
        return known.replay(run, operands)
    start, born = len(run.nodes), Storage().serial
    before, happened = _effects(run), len(run.events)
    changes = _changes(operands)
    run.kept += operands
    run.kept.append(module)
    result = forward()
    computes = before == _effects(run) and all(isinstance(e, InPlaceChange) for e in run.events[happened:])
    if computes and changes == _changes(operands):
        with suppress(KeyError):
            summary = CallSummary(run.nodes[start:], operands, result, born)
            if not _stores(run, module):
                run.summaries[key] = summary
    return result


def _effects(run: Run) -> tuple[int, ...]:
    """Counts of what a call can do besides computing, but for events."""
    return (
        run.mutations,
        len(run.undecided),
        len(run.path_condition),
        len(run.grad_reads),
        len(run.escapes),
        len(run.handovers),
        len(run.differentiated),
        len(run.optimizers),
    )


def _changes(operands: list[Value]) -> list[tuple[int, int]]:
    """How often each operand was changed in place: certainly, and perhaps."""
    memory = [v.storage for v in operands if isinstance(v, (Tensor, Unknown)) and v.storage is not None]
    return [(storage.version, storage.maybe) for storage in memory if storage.version or storage.maybe]


def _stores(run: Run, module: Module) -> bool:
    """Whether a list that the network keeps was appended to in its forward."""
    return bool(run.appended) and any(
        isinstance(v, Sequence) and any(v is a for a in run.appended) for v in module.attributes.values()
    )
