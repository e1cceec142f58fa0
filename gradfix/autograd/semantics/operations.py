"""Operations of torch: what each records in the graph, by its row in the operator table.

What is not known stays unknown: it makes what it touches uncertain and never leads to a finding.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from gradfix.autograd import operators
from gradfix.autograd.arguments import Argument, Call, Keywords
from gradfix.autograd.engine import change_gradients, move_by_hand
from gradfix.autograd.graph import (
    Edge,
    Failure,
    GraphEnd,
    InPlaceChange,
    Leaf,
    ModuleCall,
    Node,
    Storage,
    Tri,
)
from gradfix.autograd.operators import OUT, Operator, is_loss
from gradfix.autograd.run import Run, Uncaught
from gradfix.autograd.symbols import Symbols
from gradfix.autograd.values import (
    NONE,
    Const,
    Module,
    NamedResults,
    Optimizer,
    ParameterIterable,
    Scaler,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    fill_of,
    hides_graph,
    lost_in,
    tensors_in,
)


class Operand:
    """A tensor that goes into an operation: where it hangs and which memory it has."""

    __slots__ = ("expression", "leaf", "node", "requires", "storage")

    def __init__(self, value: Tensor | Unknown | Leaf, expression: ast.expr | None) -> None:
        self.expression = expression
        self.node: Node | None = None
        self.leaf: Leaf | None = None
        if isinstance(value, Tensor):
            self.leaf = value.leaf
            self.node = value.node
            self.requires = value.leaf.requires if value.leaf is not None else value.requires
            self.storage = value.storage
        elif isinstance(value, Leaf):
            self.leaf = value
            self.requires = value.requires
            self.storage = value.storage
        else:
            self.node = value.node
            self.requires = value.requires
            if value.node is None and value.storage is None:
                value.storage = Storage()
            self.storage = value.storage  # type: ignore[assignment]


def is_tensor(value: Value) -> bool:
    """Whether this is a tensor: known as one, or the result of something unknown that carries a graph."""
    return isinstance(value, Tensor) or (isinstance(value, Unknown) and value.node is not None)


def as_tensor(value: Value) -> Value:
    """What carries a graph and is used as only a tensor can be: a tensor."""
    if isinstance(value, Unknown) and value.node is not None:
        if value.storage is None:
            value.storage = Storage()
        return Tensor(value.node, value.requires, value.storage)
    return value


def operands_of(value: Value, expression: ast.expr | None) -> list[Operand]:
    """The tensors in an argument."""
    if value.__class__ is Tensor:
        return [Operand(value, expression)]
    if isinstance(value, SummaryTensor):
        return [Operand(leaf, expression) for leaf in value.leaves] if value.view == "" else []
    if isinstance(value, ParameterIterable):
        return [Operand(leaf, expression) for leaf in value.leaves]
    return [Operand(t, expression) for t in tensors_in(value)]


def record(
    run: Run,
    op: str,
    site: ast.AST,
    slots: list[list[Operand]],
    table: Operator | None,
    certain_edges: bool = True,
    given: int = -1,
) -> tuple[Node | None, Tri, bool]:
    """Record an operation in the graph.

    Returns its node (None: no graph is recorded), whether the result requires grad, and whether the
    result itself is saved.
    """
    if run.grad_enabled is False:
        return None, False, False
    low = high = 0
    seen = False
    for bit, slot in enumerate(slots):
        for operand in slot:
            if operand.requires is not False:
                high |= 1 << bit
                seen = seen or operand.node is not None or operand.leaf is not None
                if operand.requires is True:
                    low |= 1 << bit
    if not high:
        return None, False, False
    if not seen:
        return None, None, False  # What the unknown is computed of stays unknown.
    requires: Tri = True if low else None
    if run.grad_enabled is None:
        requires, low = None, 0
    node = run.node(op, site)
    if table is None:
        node.raises_when_freed = None
        saved = 0
    else:
        if not high & table.gradients:
            return None, False, False
        if not low & table.gradients:
            requires = None
        certain = table.saves(low, given) if low else 0
        saved = certain if low == high else certain & table.saves(high, given)
        node.raises_when_freed = True if certain else (None if table.may_save(high, given) else False)
    # In a world, what is not computed by a network has no graph that could be differentiated instead.
    carrying = [o for slot in slots for o in slot if o.requires is not False and (o.node or o.leaf)]
    alone = run.symbols is not None and len(carrying) == 1
    edges: list[Edge] = []
    leaves: list[tuple[Leaf, bool, ast.expr | None]] = []
    kept: list[tuple[Storage, int, Leaf | None]] = []
    named: list[ast.expr | None] = []
    fixed: list[Storage] = []
    for bit, slot in enumerate(slots):
        differentiable = table is None or (table.gradients >> bit) & 1
        for operand in slot:
            if operand.requires is False or (operand.leaf is None and operand.node is None):
                fixed.append(operand.storage)
            elif differentiable:
                sure = certain_edges and (alone or (operand.requires is True and requires is True))
                if operand.leaf is not None:
                    leaves.append((operand.leaf, sure, operand.expression))
                elif operand.node is not None:
                    edges.append(Edge(operand.node, sure, operand.expression))
            if (saved >> bit) & 1 and operand.storage is not None:
                kept.append((operand.storage, operand.storage.version, operand.leaf))
                named.append(operand.expression)
    node.edges, node.leaves, node.saved = tuple(edges), tuple(leaves), tuple(kept)
    node.saved_expressions, node.data_operands = tuple(named), tuple(fixed)
    return node, requires, bool(saved & OUT)


def _graphless(table: Operator, args: list[Argument], keywords: Keywords) -> bool | None:
    """Whether something unknown is among operands without a graph; None if one of them may have one.

    Most operations of a script are on data: they are done with quickly. An unknown size is no operand.
    """
    vague = False
    places = None if table.sequences else table.positions
    given: list[tuple[int | str, Value]] = [(place, value) for place, (value, _) in enumerate(args)]
    if keywords:
        given += [(name, value) for name, (value, _) in keywords.items()]
    for place, value in given:
        kind = value.__class__
        if kind is Tensor:
            if value.requires is not False:  # type: ignore[attr-defined]
                return None
        elif kind is Unknown:
            if value.node is not None:  # type: ignore[attr-defined]
                return None
            if not value.graphless:  # type: ignore[attr-defined]
                vague = vague or places is None or place in places or place in table.operands
        elif kind is not Const:
            return None
    return vague


FILLS = {"ones": 1.0, "ones_like": 1.0, "zeros": 0.0, "zeros_like": 0.0}
"""What makes tensors of one number, with that number."""
COPIES = frozenset("clone repeat expand expand_as to contiguous".split())
"""Operations whose results have the same number everywhere as what they are given."""


def made_of_one_number(name: str, args: list[Argument]) -> float | None:
    """The number that all elements of an operation's result are, if that is known."""
    last = name.rpartition(".")[2]
    if last in FILLS or last == "zero_":
        return FILLS.get(last, 0.0)
    if last in ("full", "full_like", "fill_"):
        return fill_of(args[1][0]) if len(args) > 1 else None
    return fill_of(args[0][0]) if last in COPIES and args and isinstance(args[0][0], Tensor) else None


def lost_in_call(args: list[Argument], keywords: Keywords) -> GraphEnd | None:
    """Where something that a call is given has lost a graph."""
    return lost_in(value for value, _ in [*args, *keywords.values()])


def build(table: Operator, make: Callable[[bool], Value]) -> Value:
    """A value of the shape that an operator's ``outputs`` describes."""
    if table.outputs == "t":
        return make(True)
    value, _ = _build(table.outputs, 0, make)
    return NamedResults(value.items, table.fields) if table.fields and isinstance(value, Sequence) else value


def _build(text: str, at: int, make: Callable[[bool], Value]) -> tuple[Value, int]:
    letter = text[at]
    if letter in "([":
        items: list[Value] = []
        at += 1
        while text[at] not in ")]":
            value, at = _build(text, at, make)
            items.append(value)
        return Sequence("tuple", items, letter == "["), at + 1
    if letter == "t":
        return make(True), at + 1
    if letter == "i":
        return make(False), at + 1
    return Unknown("result"), at + 1


def apply(
    run: Run,
    table: Operator,
    args: list[Argument],
    keywords: Keywords,
    site: ast.AST,
    weight: Leaf | None = None,
    layer: Module | None = None,
) -> Value:
    """Run an operation of torch, which may be that of a layer, on arguments given by position and keyword."""
    if weight is None and table.result == "new":
        vague = _graphless(table, args, keywords)
        if vague is not None:
            requires: Tri = None if vague and run.grad_enabled is not False else False
            lost = lost_in_call(args, keywords) if run.graphs_ended and not vague else None
            if lost is not None and is_loss(table.name):
                lost = lost._replace(compared=True)

            def plain(differentiable: bool) -> Tensor:
                tensor = Tensor(None, requires if differentiable else False)
                tensor.lost = lost
                tensor.storage.fill = made_of_one_number(table.name, args)
                return tensor

            return build(table, plain)
    slots: list[list[Operand]] = []
    first: Value | None = None
    vague = False
    present = 0
    positions = table.positions
    for bit, (name, position) in enumerate(zip(table.operands, positions)):
        if position is not None and position < len(args) and not (table.sequences >> bit) & 1:
            value, expression = args[position]
            if value.__class__ is Tensor:  # as most are
                slots.append([Operand(value, expression)])
                present |= 1 << bit
                if bit == 0:
                    first = value
                continue
        if weight is not None and position is None and bit == len(positions) - 1:
            slots.append([Operand(weight, None)])
            present |= 1 << bit
            continue
        given: list[Argument] = []
        if position is not None and position < len(args):
            given = [args[position]]
            if (table.sequences >> bit) & 1 and not isinstance(args[position][0], (Sequence, Unknown)):
                given = args[position:]
        elif name in keywords:
            given = [keywords[name]]
        if bit == 0 and given:
            first = given[0][0]
        if (
            given
            and isinstance(given[0][0], Sequence)
            and position is not None
            and positions.count(position) > 1
        ):
            # The elements of one tuple, as (h, c).
            number = positions[:bit].count(position)
            held = given[0][0].items
            given = [(held[number], given[0][1])] if number < len(held) else []
        slot: list[Operand] = []
        for value, expression in given:
            kind = value.__class__
            if kind is Tensor:
                slot.append(Operand(value, expression))  # type: ignore[arg-type]
            elif kind is not Const:
                if kind is Unknown and value.node is None:  # type: ignore[attr-defined]
                    vague = vague or not value.graphless  # type: ignore[attr-defined]
                    slot.append(Operand(value, expression))  # type: ignore[arg-type]
                else:
                    slot += operands_of(value, expression)
                    vague = vague or hides_graph(value)
        slots.append(slot)
        if given and not isinstance(given[0][0], Const):
            present |= 1 << bit
    node, requires, saves_result = record(run, table.name, site, slots, table, given=present)
    if node is not None and len(args) == 2 and len(node.edges) == 1:
        place = int(getattr(args[0][0], "node", None) is node.edges[0].node)
        node.graphless_operand = place, args[place][0]
        node.goal = fill_of(args[place][0])
    if table.result == "inplace":
        if isinstance(first, SummaryTensor):
            write_to_all(run, first, site, sources=_sources(node, first.leaves))
            return first
        if not isinstance(first, Tensor):
            if isinstance(first, Unknown):
                weak_update(first)
            return first if first is not None else Unknown("result")
        if vague and node is None and run.grad_enabled is not False:
            may_require(first)
        fill = made_of_one_number(table.name, args)
        changed = changed_in_place(run, first, node, requires, saves_result, table.name, site, layer)
        changed.storage.fill = fill
        return changed
    if node is None and vague and run.grad_enabled is not False and table.result != "detached":
        # What is not known may have a graph of its own: the result may require grad.
        requires = None
    if run.grad_enabled is False and table.result in ("view", "either") and isinstance(first, Tensor):
        # A view of something that requires grad does so too, even then; but nothing reaches the original.
        requires = False if first.requires is False else None
    if table.result == "detached" and isinstance(first, Tensor) and first.node is not None:
        run.detached.append((run.next_serial(), first.node, site))
    lost = None
    if node is None and requires is False:
        ending = next((o for slot in slots for o in slot if o.requires is True), None)
        if ending is not None:
            lost = run.graph_end(ending, site)
        elif run.graphs_ended:
            lost = lost_in_call(args, keywords)
            if lost is not None:
                lost = lost._replace(compared=lost.compared or is_loss(table.name))
                if table.result == "detached":
                    lost = lost._replace(sites=(*lost.sites, site))
    shared = table.result in ("view", "detached") and isinstance(first, (Tensor, Unknown))
    storage = first.storage if shared else None  # type: ignore[union-attr]

    def make(differentiable: bool) -> Value:
        tensor = Tensor(node if differentiable else None, requires if differentiable else False, storage)
        tensor.lost = lost
        if isinstance(first, Tensor):
            if table.result == "detached":
                tensor.detached_from = (first.node, site) if first.node is not None else first.detached_from
            elif table.result == "view":
                tensor.detached_from = first.detached_from
                tensor.base, tensor.may_view = first.base or first, first.may_view
                tensor.base.seen_as(tensor)
                run.views.append(tensor)
                apart = table.name in SEVERAL or run.grad_enabled is False
                tensor.among = site if apart else first.among
            elif table.result == "either":
                tensor.storage.may_be(first.storage)
                tensor.storage.fill = first.storage.fill
                tensor.may_view = first.may_view or _leaf_of(first)
        if saves_result and differentiable and node is not None and not node.saved_result:
            node.saved_result = True
            node.saved += ((tensor.storage, tensor.storage.version, None),)
        return tensor

    return build(table, make)


def _leaf_of(tensor: Tensor) -> Leaf | None:
    """The leaf that this tensor is, or is a view of."""
    return tensor.leaf or (tensor.base.leaf if tensor.base is not None else None)


SEVERAL = frozenset({"unbind", "split", "chunk", "split_with_sizes"})
"""Operations whose results may not be written in place, as they are several views of one tensor."""


def changed_in_place(
    run: Run,
    tensor: Tensor,
    node: Node | None,
    requires: Tri,
    saves_result: bool,
    what: str,
    site: ast.AST,
    layer: Module | None = None,
) -> Tensor:
    """Change a tensor in place, where ``node`` records how.

    Raises:
        Uncaught: Autograd refuses it.
    """
    event = run.change(tensor, site, what, layer)
    leaf = _leaf_of(tensor)
    if leaf is not None and run.grad_enabled is False:
        move_by_hand(run, [leaf], site)
    if run.grad_enabled is not False and leaf is not None and leaf.requires is True:
        known = tensor.leaf is not None or tensor.requires is True
        _refuse(run, event, "E4" if tensor.among is None else "E5", tensor, [leaf], node, known)
        return tensor
    if run.grad_enabled is not False and tensor.among is not None and tensor.requires is not False:
        _refuse(run, event, "E5", tensor, [], node, tensor.requires is True)
    elif run.grad_enabled is not False and tensor.among is not None and requires is not False:
        _refuse(run, event, "E5", tensor, [], node, requires is True)
    if (
        run.grad_enabled is not False
        and tensor.may_view is not None
        and tensor.may_view.requires is not False
    ):
        event.doubtful = True
    if node is not None:
        tensor.node, tensor.requires = node, requires
        if tensor.base is not None:
            # A change through a view rewrites the history of what it is a view of, and keeps a buffer.
            node.raises_when_freed = True
            tensor.base.node, tensor.base.requires = node, requires
        for view in (tensor.base or tensor).views:
            view.node, view.requires = node, requires
        if saves_result:
            node.saved += ((tensor.storage, tensor.storage.version, None),)
    return tensor


def _refuse(
    run: Run,
    event: InPlaceChange,
    kind: Literal["E4", "E5"],
    written: Tensor | SummaryTensor,
    leaves: list[Leaf],
    node: Node | None,
    known: bool = True,
) -> None:
    """Note that autograd refuses a change, or may refuse it; if it is certain, and not expected, it raises.

    Raises:
        Uncaught: It does.
    """
    if run.catching:
        return
    event.doubtful = True
    if run.grad_enabled is not True or run.unknown_contexts or not known or run.selects_some:
        return
    if leaves and not any(_surely_asks(run, leaf) for leaf in leaves):
        return
    event.doubtful = False
    event.failure = Failure(kind, None, None, leaves[0] if leaves else None)
    event.written, event.sources = written, event.sources or _sources(node, leaves, written)
    stack = run.stack
    if run.current_call is not None:
        stack += ((run.current_call.site, [(value, e) for e, value in run.current_call.operands]),)
    event.stack = stack if len(stack) == len(run.active) else None
    raise Uncaught


def _surely_asks(run: Run, leaf: Leaf) -> bool:
    """Whether the program's tensor is this leaf itself, and it requires grad."""
    if leaf.requires is not True or leaf in run.remade or leaf in run.thawed:
        return False
    # Of a network that cannot be seen some may be frozen; not all, where an optimizer has it.
    return not leaf.assumed or (
        leaf.created is None and any(leaf in one.state.owned() for one in run.optimizers)
    )


def _sources(
    node: Node | None, leaves: list[Leaf], written: Tensor | SummaryTensor | None = None
) -> tuple[Node | Leaf, ...]:
    """What else than these leaves, and than what is ``written``, has gone into an operation with a graph."""
    if node is None:
        return ()
    own = getattr(written, "node", None)
    nodes = [edge.node for edge in node.edges if edge.node is not own]
    return (*nodes, *(leaf for leaf, _, _ in node.leaves if leaf not in leaves))


def graphs_of(*values: Value) -> tuple[Node | Leaf, ...]:
    """The graphs and the leaves of some operands."""
    operands = [one for value in values for one in operands_of(value, None) if one.requires is not False]
    return tuple(filter(None, (one.leaf or one.node for one in operands)))


def may_require(tensor: Tensor) -> None:
    """An unknown value was written into a tensor, which may require grad from now on."""
    for one in (tensor, tensor.base):
        if one is not None:
            one.requires = one.requires or None


def weak_update(value: Unknown) -> None:
    """Something unknown was changed in place: if it is a tensor, graphs that have saved it notice.

    It may have been given a graph.
    """
    value.graphless = False
    if value.storage is None:
        value.storage = Storage()
    value.storage.maybe += 1


def simple(run: Run, name: str, args: list[Argument], site: ast.AST) -> Value:
    """An operation by the name of its tensor method."""
    table = operators.method(name)
    if table is not None and any(operands_of(v, e) for v, e in args):
        return apply(run, table, args, {}, site)
    return unknown(run, args, {}, site, name)


def scaled(run: Run, by: Value, value: Tensor | Unknown, expression: ast.expr, site: ast.AST) -> Value:
    """A loss multiplied by a scale that another object keeps, a ``GradScaler``: the same each time."""
    result = simple(run, "mul", [(value, expression), (Tensor(), expression)], site)
    node = result.node if isinstance(result, (Tensor, Unknown)) else None
    if node is not None:
        node.graphless_operand = 1, by
    if not (isinstance(by, Scaler) and by.enabled is False):
        run.scaled[result] = by
        if node is not None:
            run.scaled[node] = by
    return result


def note_unknown(run: Run, name: str, args: list[Argument], site: ast.AST) -> None:
    """Note that a function of torch is not known, if it is given what may have a graph, or a network."""
    if any(
        isinstance(value, (Module, ParameterIterable, SummaryTensor, Optimizer))
        or (isinstance(value, Unknown) and value.leaf is not None)
        or any(operand.requires is not False for operand in operands_of(value, expression))
        for value, expression in args
    ):
        run.unknown_functions.setdefault(name, site)


def unknown(
    run: Run,
    args: list[Argument],
    keywords: Keywords,
    site: ast.AST,
    label: str,
    base: Node | None = None,
    certain: bool = True,
) -> Value:
    """The result of something that is not known, called on these arguments.

    Where exactly one of them carries a graph, what comes out is taken to depend on it. In a world it depends
    on all that do: a criterion is differentiable in its arguments.
    """
    operands = [
        o for v, e in [*args, *keywords.values()] for o in operands_of(v, e) if o.requires is not False
    ]
    carrying = len({id(o.node or o.leaf) for o in operands}) + (base is not None)
    if run.symbols is not None:
        carrying, certain = min(carrying, 1), True
    result = Unknown(label)
    result.made = True
    if not carrying or run.grad_enabled is False:
        return result if run.symbols is None else _of_symbols(run, run.symbols, result, args, keywords, site)
    node, requires, _ = record(run, label, site, [operands], None, certain and carrying == 1)
    if base is not None:
        if node is None:
            node = run.node(label, site)
            node.raises_when_freed = None
        node.edges += (Edge(base, certain and carrying == 1, None),)
    if node is not None:
        node.foreign = True
    elif run.symbols is not None:
        return _of_symbols(run, run.symbols, result, args, keywords, site)
    result.node = node
    result.requires = requires if carrying == 1 and certain and base is None else None
    if base is not None and carrying == 1 and certain:
        result.requires = None
    return result


def _of_symbols(
    run: Run, symbols: Symbols, result: Unknown, args: list[Argument], keywords: Keywords, site: ast.AST
) -> Value:
    """The result of a function out of sight that gets no graph: a symbol, or computed with a network that the
    function is handed."""
    networks = symbols.handed_over(args, keywords)
    if networks and not symbols.makes(site):
        computed_with(run, result, networks, site)
    if run.symbolic:
        return result
    return symbols.returned(result, site, [value for value, _ in (*args, *keywords.values())])


def write_to_all(
    run: Run,
    each: SummaryTensor,
    site: ast.AST,
    emptied: bool = False,
    sources: tuple[Node | Leaf, ...] = (),
    known: bool = True,
) -> None:
    """An in-place write to every parameter of a set (or to its gradients, perhaps of zeros, or its data).

    Raises:
        Uncaught: Autograd refuses it.
    """
    if each.view == "grad":
        change_gradients(run, each, site, emptied)
    else:
        move_by_hand(run, each.leaves, site)
    if each.view == "":
        for leaf in each.leaves:
            event = run.change(Tensor.of_leaf(leaf), site, "in-place write")
            if run.grad_enabled is not False and leaf.requires is not False:
                event.sources = sources
                _refuse(run, event, "E4", each, [leaf], None, known)


def may_carry(run: Run, result: Unknown, node: ast.AST) -> None:
    if run.grad_enabled is not False:
        result.node = run.node(result.label, node)
        result.node.raises_when_freed = None
        result.node.opaque = True
        result.requires = None


def computed_with(run: Run, result: Unknown, leaves: list[Leaf], site: ast.AST) -> None:
    """Note that unseen code may have computed a result with some parameters."""
    if result.node is None:
        may_carry(run, result, site)
    if result.node is not None:
        result.node.leaves += tuple((leaf, False, None) for leaf in leaves)


def enter_call(
    run: Run,
    module: Value,
    leaves: list[Leaf],
    call: Call,
) -> ModuleCall | None:
    if run.current_call is not None or not isinstance(call.site, ast.Call):
        return None
    operands = [(e, v) for v, e in call.given]
    entered = ModuleCall(module, call.site, operands, run.loops, run.next_serial(), set(leaves), run.stack)  # type: ignore[arg-type]
    entered.mode = run.mode_of.get(module)
    if entered.mode is not None:
        entered.training = entered.mode.training
    elif isinstance(module, Module):
        entered.training = module.training
    run.current_call = entered
    run.module_calls.append(entered)
    return entered


def weak_update_of_operand(args: list[Argument], keywords: Keywords, result: Value) -> None:
    """What was taken to compute a new tensor may have changed its operand instead."""
    given = args[0] if args else keywords.get("input")
    operand = given[0] if given is not None else None
    if isinstance(operand, Unknown):
        weak_update(operand)
    elif isinstance(operand, Tensor):
        operand.storage.maybe += 1
        if isinstance(result, Tensor):
            result.storage.may_be(operand.storage)


def made_by(result: Value, by: Unknown, args: list[Argument]) -> Value:
    """``result``, which remembers the network that it may hold parts of."""
    if result.__class__ is Unknown and result is not by and result.made_from is None:
        handed = next((value for value, _ in args if isinstance(value, Module)), None)
        result.made_from = handed or by.made_from
    return result


def overload(name: str, args: list[Argument], keywords: Keywords) -> Operator | None:
    """The row of a tensor method for these arguments."""
    if args and is_tensor(args[0][0]):
        found = operators.method(f"{name}.other")
        if found is not None:
            return found
    if args and isinstance(args[0][0], Const) and isinstance(args[0][0].value, (int, float)):
        found = operators.method(f"{name}.scalar") or (
            operators.method(f"{name}.dim") if isinstance(args[0][0].value, int) else None
        )
        if found is not None:
            return found
    if "dim" in keywords:
        found = operators.method(f"{name}.dim")
        if found is not None:
            return found
    return operators.method(name)


def function_row(
    lookup: str, name: str, args: list[Argument], keywords: Keywords
) -> operators.Operator | None:
    second = args[1][0] if len(args) > 1 else NONE
    scalar = isinstance(second, Const) and isinstance(second.value, (int, float))
    return _variant(lookup, name, scalar, is_tensor(second), "dim" in keywords)


@lru_cache(maxsize=1024)
def _variant(lookup: str, name: str, scalar: bool, other: bool, dim: bool) -> operators.Operator | None:
    """The row of a function for the way in which it is called."""
    ways = ["scalar", "dim"] if scalar else []
    ways += ["other"] * other + ["dim"] * dim
    found = (operators.function(f"{lookup}.{way}") for way in ways)
    return next(filter(None, found), None) or operators.function(lookup) or operators.function(name)
