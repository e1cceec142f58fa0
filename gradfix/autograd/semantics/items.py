"""Items and slices, read, written and deleted."""

from __future__ import annotations

import ast

from gradfix.autograd import operators
from gradfix.autograd.graph import Edge, Storage
from gradfix.autograd.parameters import LAYERED, hold, is_leaf
from gradfix.autograd.run import Run, used_none
from gradfix.autograd.semantics.dispatch import attribute, items_of
from gradfix.autograd.semantics.libraries import DIFFERENTIABLE_OUTPUTS
from gradfix.autograd.semantics.names import member
from gradfix.autograd.semantics.operations import (
    apply,
    changed_in_place,
    graphs_of,
    may_require,
    operands_of,
    record,
    unknown,
    weak_update,
    write_to_all,
)
from gradfix.autograd.semantics.statelessness import keeps_nothing
from gradfix.autograd.values import (
    NONE,
    Array,
    Attributes,
    Const,
    Frame,
    ImportedName,
    Instance,
    IterationNumber,
    LazyIterable,
    Mapping,
    Module,
    ParameterIterable,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    graphless_value,
    graphs_in,
    hides_graph,
    tensors_in,
)


@items_of(Value)
def _other_item(run: Run, value: Value, index: Value, expression: ast.expr, site: ast.AST | None) -> Value:
    return Unknown("item")


@items_of(Const)
def _constant_item(run: Run, value: Const, index: Value, expression: ast.expr, site: ast.AST | None) -> Value:
    if value is NONE:
        used_none(run, site or expression)
    return Unknown("item")


@items_of(Sequence)
def _sequence_item(
    run: Run, value: Sequence, index: Value, expression: ast.expr, site: ast.AST | None
) -> Value:
    if value.items and isinstance(index, IterationNumber):
        # As if the loop that counts went over the items themselves.
        place = _place(index)
        if place is not None:
            return item_at(run, value, place, expression)
    if isinstance(index, Const) and isinstance(index.value, int):
        if -len(value.items) <= index.value < len(value.items):
            return value.items[index.value]
        if not value.items or not value.open:
            return Unknown("item")
        # What a loop has filled holds more than is known; the parts of one tensor are alike.
        return item_at(run, value, len(value.items), expression) if value.grows else value.items[-1]
    if len(value.items) == 1 and not (value.open and tensors_in(value)):
        return value.items[0]
    if _any_will_do(run, value.items, index):
        return value.items[0]
    return one_of(run, value.items, expression, site or expression)


@items_of(LazyIterable)
def _lazy_item(
    run: Run, value: LazyIterable, index: Value, expression: ast.expr, site: ast.AST | None
) -> Value:
    return one_of(run, [*tensors_in(value)], expression, site or expression)


@items_of(Mapping)
def _mapping_item(
    run: Run, value: Mapping, index: Value, expression: ast.expr, site: ast.AST | None
) -> Value:
    if isinstance(index, Const):
        try:
            held = value.items.get(index.value)
        except TypeError:
            held = None
        if held is not None:
            return held
        if not value.open:
            run.missed.add((ast.unparse(expression), str(index.value)))
        fresh = value.fresh(str(index.value))
        if run.symbols is not None and isinstance(fresh, Unknown):
            fresh = run.symbols.part(value, fresh, f"[{index.value!r}]", site or expression)
        if isinstance(index.value, (str, int)):
            value.items[index.value] = fresh
        return fresh
    return one_of(run, list(value.items.values()), expression, site or expression)


@items_of(Tensor)
def _tensor_item(run: Run, value: Tensor, index: Value, expression: ast.expr, site: ast.AST | None) -> Value:
    if isinstance(index, (Tensor, Unknown, Sequence)):
        # A mask or an index tensor would save the index; an integer, a scalar or a slice saves nothing.
        slot = operands_of(value, expression)
        node, requires, _ = record(run, "getitem", site or expression, [slot], None)
        if isinstance(index, Tensor) and node is not None:
            kept = Storage()
            index.storage.may_be(kept)
            node.saved += ((kept, kept.version, None),)
        return Tensor(node, requires)
    table = operators.method("getitem.int_or_slice")
    assert table is not None
    return apply(run, table, [(value, expression)], {}, site or expression)


@items_of(Module)
def _module_item(run: Run, value: Module, index: Value, expression: ast.expr, site: ast.AST | None) -> Value:
    if value.items and isinstance(index, IterationNumber):
        # As if the loop that counts went over the items themselves.
        place = _place(index)
        if place is not None:
            return value.items[place % len(value.items)]
    if isinstance(index, Const):
        if isinstance(index.value, int) and -len(value.items) <= index.value < len(value.items):
            return value.items[index.value]
        if isinstance(index.value, str) and index.value in value.attributes:
            return value.attributes[index.value]
    layer = Unknown("item")
    layer.library = value.kind in LAYERED and keeps_nothing(value)
    return layer


@items_of(Unknown)
def _unknown_item(
    run: Run, value: Unknown, index: Value, expression: ast.expr, site: ast.AST | None
) -> Value:
    if isinstance(index, Const) and isinstance(index.value, (int, str)):
        if value.node is not None:
            return part(run, value, f"[{index.value!r}]", site or expression)
        name = f"[{index.value!r}]"
        known = value.attributes.get(name)
        if known is None:
            known = Unknown(value.label + name, None, value)
            known.graphless, known.lost = value.graphless, value.lost
            if run.symbols is not None:
                known = run.symbols.part(value, known, name, site or expression)
            value.attributes[name] = known
        return known
    if value.node is not None:
        fresh = Unknown("item")
        child = part(run, value, "[]", site or expression)
        if isinstance(child, Unknown):
            fresh.node, fresh.requires = child.node, None
        return fresh
    # A layer of a library's network, whichever it is, is one that keeps nothing.
    item = Unknown("item", None, value if value.stateless() else None)
    item.graphless, item.lost = value.graphless, value.lost
    return item


@items_of(Attributes)
def _held_item(
    run: Run, value: Attributes, index: Value, expression: ast.expr, site: ast.AST | None
) -> Value:
    if isinstance(index, Const) and isinstance(index.value, str):
        return attribute(run, value.holder, index.value, site or expression)
    if isinstance(value.holder, ImportedName):
        # Whichever it is, it is of that library.
        return member(value.holder.name, "item")
    return Unknown("item")


def part(run: Run, value: Unknown, name: str, site: ast.AST | None) -> Value:
    """An item or attribute of an unknown value that carries a graph.

    Whether this part of it depends on everything that went in is not known; that it was computed with the
    network's parameters, if a network made it, is.
    """
    known = value.attributes.get(name)
    if known is not None:
        return known
    child = run.part_of(value, name)
    if value.node is not None:
        node = run.node(name, site or value.node.site)
        node.raises_when_freed = None
        node.edges = (Edge(value.node, False, None),)
        node.leaves = tuple((leaf, sure, None) for leaf, sure, _ in value.node.leaves)
        if any(sure for _, sure, _ in node.leaves):
            # It is an output of the network, and as deep.
            node.raises_when_freed, node.saved = value.node.raises_when_freed, value.node.saved
        child.node, child.requires = node, None
        if name in DIFFERENTIABLE_OUTPUTS and any(leaf.requires and sure for leaf, sure, _ in node.leaves):
            child.requires = True
    value.attributes[name] = child
    return child


def _place(index: IterationNumber) -> int | None:
    """The number that an index has in this iteration, if it is one that counts."""
    return int(index.number) if index.counts and index.number == int(index.number) else None


def _any_will_do(run: Run, items: list[Value], index: Value) -> bool:
    """Whether the first of several similar objects may stand for the one that is looked up.

    ``agent = self.agents[number]``: what is trained for one number is trained for any, again and again. Of
    another number nobody knows whether it is the same.
    """
    if (
        not isinstance(index, Unknown)
        or index.__class__ is not Unknown
        or index.node is not None
        or index.made
    ):
        return False
    makes = {item.cls for item in items if isinstance(item, Instance)}
    if len(makes) != 1 or not all(isinstance(item, Instance) for item in items):
        return False
    asked = index.label, index.parent
    if run.any_number is None:
        run.any_number = asked
    return run.any_number == asked


def one_of(run: Run, items: list[Value], expression: ast.expr, site: ast.AST) -> Value:
    """One of several values, not known which: it may have the graph of any.

    Of tuples of one length, as a memory of transitions holds, each place is one of what is there.
    """
    rows = [item for item in items if isinstance(item, Sequence) and item.kind == "tuple" and not item.open]
    if rows and len(rows) == len(items) and len({len(row.items) for row in rows}) == 1:
        columns = zip(*(row.items for row in rows))
        return Sequence("tuple", [one_of(run, list(column), expression, site) for column in columns])
    nodes = [tensor.node for item in items for tensor in tensors_in(item) if tensor.node is not None]
    chosen = Unknown("item")
    if nodes:
        node = run.node("item", site)
        node.raises_when_freed = None
        node.edges = tuple(Edge(one, False, expression) for one in dict.fromkeys(nodes))
        chosen.node, chosen.requires = node, None
    elif items:
        chosen.graphless = all(isinstance(item, (Tensor, Unknown)) and _is_data(item) for item in items)
    return chosen


def _is_data(value: Tensor | Unknown) -> bool:
    """Whether a value certainly has no graph."""
    if isinstance(value, Tensor):
        return value.requires is False and value.leaf is None
    return value.graphless


SOMEWHERE = ...
"""The key under which a dict holds what it was given under keys that are not known."""


def put_somewhere(run: Run, holder: Sequence | Mapping, value: Value, site: ast.expr) -> None:
    """Store a value at an unknown place: what is read later may be the old item or the new one."""

    def either(old: Value) -> Value:
        graphs = any(tensor.node is not None for tensor in [*tensors_in(old), *tensors_in(value)])
        vague = bool(tensors_in(old)) and hides_graph(value)
        return one_of(run, [old, value], site, site) if graphs or vague else old

    holder.open = True
    if isinstance(holder, Sequence):
        holder.items = [either(item) for item in holder.items or [value]]
        return
    for key, held in holder.items.items():
        holder.items[key] = either(held)
    if SOMEWHERE not in holder.items and tensors_in(value):
        holder.items[SOMEWHERE] = one_of(run, [value], site, site)


def item_at(run: Run, value: Sequence, place: int, expression: ast.expr | None) -> Value:
    """An item by the number of an iteration: the few that are known stand for more, with graphs of their
    own."""
    if place >= len(value.items) and any(t.node is not None for t in tensors_in(value)):
        at = expression or ast.Constant(None, lineno=0, col_offset=0, end_lineno=0, end_col_offset=0)
        return one_of(run, value.items, at, at)
    return value.items[place % len(value.items)]


def slice_of(run: Run, value: Value, node: ast.Subscript, frame: Frame) -> Value:
    """``value[a:b:c]``."""
    bounds = node.slice
    assert isinstance(bounds, ast.Slice)
    if value is NONE:
        used_none(run, node)
    parts: list[int | None] = []
    for bound in (bounds.lower, bounds.upper, bounds.step):
        if bound is None:
            parts.append(None)
            continue
        held = run.evaluate(bound, frame)
        parts.append(held.value if isinstance(held, Const) and isinstance(held.value, int) else -(1 << 60))
    unknown_bound = any(p == -(1 << 60) for p in parts)
    if isinstance(value, Sequence):
        if unknown_bound:
            return Sequence(value.kind, list(value.items), True)
        return Sequence(value.kind, value.items[slice(*parts)], value.open)
    if isinstance(value, Tensor):
        table = operators.method("getitem.int_or_slice")
        assert table is not None
        return apply(run, table, [(value, node.value)], {}, node)
    listed = ("torch.nn.Sequential", "torch.nn.ModuleList")
    if isinstance(value, Module) and value.kind in listed and not unknown_bound:
        cut = Module(value.kind, value.label)
        cut.items = value.items[slice(*parts)]
        return cut
    if isinstance(value, Unknown) and value.node is not None:
        return part(run, value, "[:]", node)
    if isinstance(value, Const) and isinstance(value.value, str):
        return Const(value.value[slice(*parts)]) if not unknown_bound else Unknown()
    return (
        graphless_value("slice", value)
        if isinstance(value, Unknown) and value.graphless
        else Unknown("slice")
    )


def is_key(index: Value) -> bool:
    """Whether no tensor takes this as an index: a text, or a tuple that holds one."""
    if isinstance(index, Sequence):
        return index.kind == "tuple" and any(map(is_key, index.items))
    return _is_text(index) or _is_spelled(index)


def _is_spelled(index: Value) -> bool:
    """Whether this is a text that is made up of parts of which not all are known."""
    return isinstance(index, Unknown) and index.label == "text"


def keyed(run: Run, holder: Value, index: Value, frame: Frame) -> Value:
    """``holder``, or what it turns out to be where it has seemed to be a tensor and has items by name.

    ``torch.stack`` makes a mapping of mappings, if their class says so (``__torch_function__``, TensorDict).
    What was changed in place of the tensor that it has been taken for was none that a graph has saved.
    """
    if not isinstance(holder, Tensor) or not is_key(index):
        return holder
    mapping = run.keyed.get(holder)
    if mapping is None:
        mapping = run.keyed[holder] = Unknown("mapping", holder.node)
        if holder.storage.version:
            for node in run.nodes:
                node.saved = tuple(saved for saved in node.saved if saved[0] is not holder.storage)
                node.saved_expressions = ()
    at: Frame | None = frame
    while at is not None and not at.shared:
        for name in [name for name, value in at.variables.items() if value is holder]:
            at.variables[name] = mapping
        at = at.parent
    return mapping


def set_item(run: Run, target: ast.Subscript, value: Value, frame: Frame) -> None:
    """``container[index] = value``."""
    holder = run.evaluate(target.value, frame)
    run.mutations += 1
    if isinstance(holder, Tensor) and not isinstance(target.slice, ast.Slice):
        holder = keyed(run, holder, run.evaluate(target.slice, frame), frame)
    if isinstance(holder, Tensor):
        args = [(holder, target.value), (value, target)]
        slots = [operands_of(v, e) for v, e in args]
        table = operators.method("setitem.int_or_slice")
        node, requires, saves = record(run, "setitem", target, slots, table)
        if node is not None:
            node.raises_when_freed = True  # an item is a view: see _changed_in_place
        elif run.grad_enabled is not False and hides_graph(value):
            may_require(holder)
        if not (node is None and holder is value):
            changed_in_place(run, holder, node, requires, saves, "item assignment", target)
        return
    if isinstance(holder, SummaryTensor):
        where = target.slice
        whole = isinstance(where, ast.Slice) and not (where.lower or where.upper or where.step)
        whole = whole or (isinstance(where, ast.Constant) and where.value is ...)
        nothing = whole and isinstance(value, Const) and value.value == 0
        write_to_all(run, holder, target, nothing, graphs_of(value) if holder.view == "" else ())
        return
    if isinstance(holder, Array):
        cut = run.graph_end(value, target) if isinstance(value, (Tensor, Unknown)) else None
        holder.lost = holder.lost or cut
        return
    if isinstance(holder, Unknown):
        weak_update(holder)
        run.hand_on(value)
        if holder.label == "_parameters" and not is_leaf(value):
            run.substituted = True  # Whatever it was computed of: it is no parameter any more.
    if isinstance(target.slice, ast.Slice):
        if isinstance(holder, Sequence):
            for item in value.items if isinstance(value, Sequence) else [value]:
                put_somewhere(run, holder, item, target)
        elif isinstance(holder, Unknown):
            _fed(run, holder, value, target)
        return
    index = run.evaluate(target.slice, frame)
    if isinstance(holder, Unknown) and not _is_text(index):
        _fed(run, holder, value, target)
    if isinstance(holder, Sequence):
        if isinstance(index, Const) and isinstance(index.value, int):
            if -len(holder.items) <= index.value < len(holder.items):
                holder.items[index.value] = value
                return
        if (
            isinstance(index, IterationNumber)
            and holder.items
            and not holder.open
            and _place(index) is not None
        ):
            holder.items[_place(index) % len(holder.items)] = value  # type: ignore[operator]
            return
        put_somewhere(run, holder, value, target)
        run.hand_on(value)  # Whoever reads an item later may have it.
    elif isinstance(holder, Mapping):
        if isinstance(index, Const) and isinstance(index.value, (str, int, float, bool, type(None))):
            before = holder.items.get(index.value)
            if isinstance(before, ParameterIterable):
                # `optimizer.param_groups[0]["params"] = ...`: it owns something else from then on.
                for state in (one.state for one in run.optimizers if one.state.leaves == before.leaves):
                    state.groups_known = False
            holder.items[index.value] = value
        elif _is_spelled(index):
            holder.open = True  # Names that are made up of parts are not those that are written out.
            run.hand_on(value)
        else:
            put_somewhere(run, holder, value, target)
            run.hand_on(value)
    elif isinstance(holder, Module) and isinstance(index, Const):
        hold(holder, [value])
        if isinstance(index.value, str):
            holder.attributes[index.value] = value
        elif isinstance(index.value, int) and -len(holder.items) <= index.value < len(holder.items):
            holder.items[index.value] = value
    elif isinstance(holder, Module) and holder.kind == "torch.nn.ModuleDict":
        # A layer under a name that is not known, such as f"layer_{i}": one that no other has.
        hold(holder, [value])
        holder.attributes[f"[{len(holder.attributes)}]"] = value
    elif isinstance(holder, Unknown) and isinstance(index, Const):
        holder.attributes[f"[{index.value!r}]"] = value


def _fed(run: Run, holder: Unknown, value: Value, site: ast.Subscript) -> None:
    """Something unknown got an item: if it is a tensor, it has the graph of what was put in from now on."""
    if graphs_in([value]):
        after = unknown(run, [(holder, site.value), (value, site)], {}, site, "item assignment")
        if isinstance(after, Unknown) and after.node is not None:
            holder.node, holder.requires = after.node, None


def _is_text(index: Value) -> bool:
    """Whether this is a key of a dict, and no index of a tensor."""
    return isinstance(index, Const) and isinstance(index.value, str)


def take_out(holder: Sequence, index: int) -> Value:
    """Remove an item.

    Of a list that a loop of unknown length fills, the items of a few iterations are known: the one that is
    removed at its other end may be older than these.
    """
    if not holder.grows or index < 0:
        return holder.items.pop(index)
    holder.items[:-1] = [Unknown("item") for _ in holder.items[:-1]]
    holder.open = True
    return Unknown("item")


def delete_item(run: Run, target: ast.Subscript, frame: Frame) -> None:
    """``del container[index]``."""
    holder = run.evaluate(target.value, frame)
    run.mutations += 1
    if isinstance(holder, Tensor):
        keyed(run, holder, run.evaluate(target.slice, frame), frame)
    elif isinstance(holder, Sequence):
        index = None if isinstance(target.slice, ast.Slice) else run.evaluate(target.slice, frame)
        whole = isinstance(target.slice, ast.Slice) and target.slice.lower is target.slice.upper is None
        if whole:
            holder.items.clear()
            holder.open = False
        elif isinstance(index, Const) and isinstance(index.value, int):
            if -len(holder.items) <= index.value < len(holder.items):
                take_out(holder, index.value)
        else:
            # Which items are left is not known.
            holder.items[:] = [Unknown("item") for _ in holder.items]
            holder.open = True
    elif isinstance(holder, Mapping):
        key = run.evaluate(target.slice, frame)
        if isinstance(key, Const):
            holder.items.pop(key.value, None)
