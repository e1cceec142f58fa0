"""What calls, attributes, items and operators do to the values of the model.

Functions, methods and classes of the project are followed into their bodies. Operations of torch are
looked up in the operator table. What is not known stays unknown: it makes what it touches uncertain and
never leads to a finding.
"""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from gradfix.autograd import adjusting, frameworks, imports, operators, options, unbound
from gradfix.autograd.counting import NUMBER, Pass, Term
from gradfix.autograd.engine import backward, flag, forget_state, option, poison, step, zero_grad
from gradfix.autograd.graph import (
    Backward,
    Contribution,
    Edge,
    Leaf,
    ModuleCall,
    Node,
    OptimizerState,
    Storage,
    Tri,
    reach,
)
from gradfix.autograd.operators import OUT, Operator
from gradfix.autograd.relevance import walk
from gradfix.autograd.templates import templated
from gradfix.autograd.values import (
    FALSE,
    NONE,
    TRUE,
    Class,
    Const,
    Each,
    External,
    Frame,
    Function,
    GradMode,
    Index,
    Instance,
    Learner,
    Length,
    Mapping,
    Method,
    Module,
    Opaque,
    Optimizer,
    Params,
    Partial,
    Process,
    Record,
    Scaler,
    Schedule,
    Sequence,
    Super,
    Suspended,
    Tensor,
    Value,
    fold,
    graphs_in,
    is_plain,
    known_items,
    length,
    spelled,
    tensors_in,
)

if TYPE_CHECKING:
    from gradfix.autograd.interpreter import Run

Argument = tuple[Value, ast.expr]
Keywords = dict[str, Argument]

BUILTINS = frozenset(dir(builtins))


class Stopped(Exception):
    """The program raised or ended; unwinds the functions in progress."""


class Exited(Stopped):
    """The program ends itself."""


class Impossible(Stopped):
    """A way that only a further run has taken has led nowhere: what it reads has never been bound there."""


ALIASES = {
    "torch.autograd.variable.Variable": "torch.autograd.Variable",
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
    "torch.nn.modules.module.Module": "torch.nn.Module",
    "torch.autograd.grad_mode.no_grad": "torch.no_grad",
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    **{
        f"torch.nn.utils.{norm}.{name}": f"torch.nn.utils.{name}"
        for norm in ("weight_norm", "spectral_norm")
        for name in (norm, f"remove_{norm}")
    },
    "torch.Tensor": "torch.FloatTensor",
    "builtins.xrange": "builtins.range",
    "itertools.izip": "builtins.zip",
    **{f"six.moves.{name}": f"builtins.{name}" for name in ("range", "zip", "map", "filter")},
    **{f"{module}.xrange": "builtins.range" for module in ("six.moves", "past.builtins")},
}
"""Other import paths of the same thing."""


def canonical(name: str) -> str:
    """The one dotted name under which the model knows something of torch."""
    return ALIASES.get(name, name)


@lru_cache(maxsize=4096)
def member(package: str, name: str) -> External:
    """What a package from outside calls ``name``."""
    return External(canonical(f"{package}.{name}"))


def starred(run: Run, name: str) -> External | None:
    """What an unbound name stands for after ``from module import *``, where the model knows of it."""
    if not run.starred:
        return None
    for module in run.starred:
        full = canonical(f"{module}.{name}")
        if library.known(full):
            return External(full)
    return None


# ---------------------------------------------------------------------- operations of torch


class Operand:
    """A tensor that goes into an operation: where it hangs and which memory it has."""

    __slots__ = ("expression", "leaf", "node", "requires", "storage")

    def __init__(self, value: Tensor | Opaque | Leaf, expression: ast.expr | None) -> None:
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
    return isinstance(value, Tensor) or (isinstance(value, Opaque) and value.node is not None)


def operands_of(value: Value, expression: ast.expr | None) -> list[Operand]:
    """The tensors in an argument."""
    if value.__class__ is Tensor:
        return [Operand(value, expression)]
    if isinstance(value, Each):
        return [Operand(leaf, expression) for leaf in value.leaves] if value.view == "" else []
    if isinstance(value, Params):
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
        node.saves = None
        saved = 0
    else:
        if not high & table.gradients:
            return None, False, False
        if not low & table.gradients:
            requires = None
        certain = table.saves(low, given) if low else 0
        saved = certain if low == high else certain & table.saves(high, given)
        node.saves = True if certain else (None if table.may_save(high, given) else False)
    edges: list[Edge] = []
    leaves: list[tuple[Leaf, bool, ast.expr | None]] = []
    kept: list[tuple[Storage, int, Leaf | None]] = []
    named: list[ast.expr | None] = []
    for bit, slot in enumerate(slots):
        differentiable = table is None or (table.gradients >> bit) & 1
        for operand in slot:
            if operand.requires is False:
                pass
            elif differentiable:
                sure = certain_edges and operand.requires is True and requires is True
                if operand.leaf is not None:
                    leaves.append((operand.leaf, sure, operand.expression))
                elif operand.node is not None:
                    edges.append(Edge(operand.node, sure, operand.expression))
            if (saved >> bit) & 1 and operand.storage is not None:
                kept.append((operand.storage, operand.storage.version, operand.leaf))
                named.append(operand.expression)
    node.edges, node.leaves, node.saved = tuple(edges), tuple(leaves), tuple(kept)
    node.named = tuple(named)
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
        elif kind is Opaque:
            if value.node is not None:  # type: ignore[attr-defined]
                return None
            vague = vague or places is None or place in places or place in table.operands
        elif kind is not Const:
            return None
    return vague


def _has_unknown(value: Value, depth: int = 2) -> bool:
    """Whether a value is, or a container holds, something unknown that is not seen to carry a graph."""
    if isinstance(value, Opaque):
        return value.node is None
    if depth and isinstance(value, Sequence):
        return any(_has_unknown(item, depth - 1) for item in value.items)
    return False


def build(structure: str, make: Callable[[bool], Value]) -> Value:
    """A value of the shape that an operator's ``outputs`` describes."""
    value, _ = _build(structure, 0, make)
    return value


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
    return Opaque("result"), at + 1


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
            if table.outputs == "t":
                return Tensor(None, requires)
            return build(
                table.outputs, lambda differentiable: Tensor(None, requires if differentiable else False)
            )
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
            if (table.sequences >> bit) & 1 and not isinstance(args[position][0], (Sequence, Opaque)):
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
                if kind is Opaque and value.node is None:  # type: ignore[attr-defined]
                    vague = True
                    slot.append(Operand(value, expression))  # type: ignore[arg-type]
                else:
                    slot += operands_of(value, expression)
                    vague = vague or _has_unknown(value)
        slots.append(slot)
        if given and not isinstance(given[0][0], Const):
            present |= 1 << bit
    node, requires, saves_result = record(run, table.name, site, slots, table, given=present)
    if node is not None and len(args) == 2 and len(node.edges) == 1:
        place = int(getattr(args[0][0], "node", None) is node.edges[0].node)
        node.beside = place, args[place][0]
    if table.result == "inplace":
        if isinstance(first, Each):
            each_changed(run, first, site)
            return first
        if not isinstance(first, Tensor):
            if isinstance(first, Opaque):
                perhaps_changed(first)
            return first if first is not None else Opaque("result")
        return _changed_in_place(run, first, node, requires, saves_result, table.name, site, layer)
    if node is None and vague and run.grad_enabled is not False and table.result != "detached":
        # What is not known may have a graph of its own: the result may require grad.
        requires = None
    if run.grad_enabled is False and table.result in ("view", "either") and isinstance(first, Tensor):
        # A view of something that requires grad does so too, even then; but nothing reaches the original.
        requires = False if first.requires is False else None
    if table.result == "detached" and isinstance(first, Tensor) and first.node is not None:
        run.detached.append((run.tick(), first.node, site))
    shared = table.result in ("view", "detached") and isinstance(first, (Tensor, Opaque))
    storage = first.storage if shared else None  # type: ignore[union-attr]

    def make(differentiable: bool) -> Value:
        tensor = Tensor(node if differentiable else None, requires if differentiable else False, storage)
        if isinstance(first, Tensor):
            if table.result == "view":
                tensor.base, tensor.perhaps = first.base or first, first.perhaps
                tensor.base.seen_as(tensor)
                run.views.append(tensor)
            elif table.result == "either":
                tensor.storage.may_be(first.storage)
                tensor.perhaps = first.perhaps or _leaf_of(first)
        if saves_result and differentiable and node is not None and not node.saved_result:
            node.saved_result = True
            node.saved += ((tensor.storage, tensor.storage.version, None),)
        return tensor

    return make(True) if table.outputs == "t" else build(table.outputs, make)


def _leaf_of(tensor: Tensor) -> Leaf | None:
    """The leaf that this tensor is, or is a view of."""
    return tensor.leaf or (tensor.base.leaf if tensor.base is not None else None)


def _changed_in_place(
    run: Run,
    tensor: Tensor,
    node: Node | None,
    requires: Tri,
    saves_result: bool,
    what: str,
    site: ast.AST,
    layer: Module | None = None,
) -> Tensor:
    event = run.change(tensor, site, what, layer)
    leaf = _leaf_of(tensor)
    if run.grad_enabled is not False and leaf is not None and leaf.requires is True:
        event.leaf_error = not run.catching
        return tensor
    if run.grad_enabled is not False and tensor.perhaps is not None and tensor.perhaps.requires is not False:
        event.leaf_error = None
    if node is not None:
        tensor.node, tensor.requires = node, requires
        if tensor.base is not None:
            # A change through a view rewrites the history of what it is a view of, and keeps a buffer.
            node.saves = True
            tensor.base.node, tensor.base.requires = node, requires
        for view in (tensor.base or tensor).views:
            view.node, view.requires = node, requires
        if saves_result:
            node.saved += ((tensor.storage, tensor.storage.version, None),)
    return tensor


SHARING = frozenset(
    (
        *("detach", "view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as"),
        *("t", "permute", "transpose", "to", "float", "cuda"),
    )
)
"""Methods of something unknown whose result may be its memory, if it is a tensor."""


def perhaps_changed(value: Opaque) -> None:
    """Something unknown was changed in place: if it is a tensor, graphs that have saved it notice."""
    if value.storage is None:
        value.storage = Storage()
    value.storage.maybe += 1


def simple(run: Run, name: str, args: list[Argument], site: ast.AST) -> Value:
    """An operation by the name of its tensor method."""
    table = operators.method(name)
    if table is not None and any(operands_of(v, e) for v, e in args):
        return apply(run, table, args, {}, site)
    return unknown(run, args, {}, site, name)


def binary(
    run: Run,
    op: ast.operator,
    left: Value,
    right: Value,
    left_node: ast.expr,
    right_node: ast.expr,
    site: ast.AST,
) -> Value:
    """``left op right``."""
    if left is NONE or right is NONE:
        used_nothing(run, site)
    if isinstance(left, options.Option) or isinstance(right, options.Option):
        known = [side.value for side in map(options.given, (left, right)) if isinstance(side, Const)]
        if len(known) == 2 and any(isinstance(one, str) for one in known):
            return options.text(fold(op, *known), (left, right))
    if isinstance(left, Const):
        if isinstance(right, Const):
            folded = fold(op, left.value, right.value)
            if left.__class__ is Length or right.__class__ is Length:
                shifted = isinstance(op, (ast.Add, ast.Sub)) and right.__class__ is not Length
                return Length(folded.value) if shifted and isinstance(folded, Const) else Opaque("length")
            unset = left.__class__ is options.Default or right.__class__ is options.Default
            return options.Default(folded.value) if unset and isinstance(folded, Const) else folded
        if isinstance(op, ast.Mod) and isinstance(left.value, str):
            items = known_items(right)
            return Opaque("text") if items is None else fold(op, left.value, items)
    elif left.__class__ is Opaque and left.node is None and isinstance(right, Const):
        return Opaque("value")
    if isinstance(left, Index) or isinstance(right, Index):
        counted = _counted(op, left, right)
        if counted is not None:
            return counted
    if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(op, ast.Add):
        return Sequence(left.kind, left.items + right.items, left.open or right.open)
    if (
        isinstance(left, (Params, Sequence))
        and isinstance(right, (Params, Sequence))
        and isinstance(op, ast.Add)
    ):
        leaves, complete = leaves_of(left)
        more, also = leaves_of(right)
        return Params(list(dict.fromkeys(leaves + more)), complete and also)
    if isinstance(left, Sequence) and isinstance(op, ast.Mult) and isinstance(right, Const):
        if isinstance(right.value, int) and len(left.items) * right.value <= 64:
            return Sequence(left.kind, left.items * right.value, left.open)
        return Sequence(left.kind, left.items, True)
    tensors = isinstance(left, Tensor), isinstance(right, Tensor)
    graph = operands_of(left, left_node) + operands_of(right, right_node)
    if not any(tensors) and not graph:
        # The data of a parameter, and what is computed from it, have no graph.
        return Tensor() if isinstance(left, Each) or isinstance(right, Each) else Opaque("value")
    if not any(o.requires is not False for o in graph):
        return Tensor()
    scalar: Any = None
    if isinstance(left, Const):
        scalar = "left"
    elif isinstance(right, Const):
        scalar = "right"
    table = operators.binary(op.__class__.__name__, scalar)
    args = [(left, left_node), (right, right_node)]
    if table is None:
        return unknown(run, args, {}, site, op.__class__.__name__)
    return apply(run, table, args, {}, site)


def _counted(op: ast.operator, left: Value, right: Value) -> Index | None:
    """Arithmetic on the number of a pass."""
    numbers = [v.number if isinstance(v, Index) else getattr(v, "value", None) for v in (left, right)]
    if not all(isinstance(n, (int, float)) for n in numbers):
        return None
    result = fold(op, *numbers)
    if not isinstance(result, Const):
        return None
    steady = [v.counts if isinstance(v, Index) else isinstance(v, Const) for v in (left, right)]
    passed, term = of_pass(op.__class__, left, right)
    return Index(result.value, all(steady) and isinstance(op, (ast.Add, ast.Sub)), passed, term)


def of_pass(op: type[ast.AST], left: Value, right: Value) -> tuple[Pass | None, Term]:
    """How ``left op right`` is computed from the number of one pass, if it is: else of no pass."""
    passes = {v.passed for v in (left, right) if isinstance(v, Index)}
    terms = [v.term if isinstance(v, Index) else ("const", getattr(v, "value", None)) for v in (left, right)]
    return (passes.pop() if len(passes) == 1 else None), (op, *terms)


def counted(op: ast.operator, old: Const | Index, step: Const) -> Value:
    """What ``count op= step`` makes of a variable from before the loop: each time it is another pass."""
    if isinstance(old, Const):
        whole = type(old.value) is int and isinstance(op, (ast.Add, ast.Sub))
        first = fold(op, old.value, step.value) if whole else None
        if not isinstance(first, Const):
            return Opaque("counter")
        term: Term = (op.__class__, ("const", first.value), (ast.Mult, NUMBER, ("const", step.value)))
        return Index(first.value, True, Pass(), term)
    value = _counted(op, old, step)
    if value is not None and old.passed is not None and value.counts:
        return Index(value.number, True, Pass(old.passed), old.term)
    return value if value is not None else Opaque("counter")


def numbered(origin: int) -> Callable[[int], Index]:
    """What gives the number of each pass of a loop that counts from ``origin``."""
    latest: list[Pass] = []
    term = (ast.Add, NUMBER, ("const", origin)) if origin else NUMBER

    def number(k: int) -> Index:
        latest.append(Pass(latest[-1] if latest else None))
        return Index(origin + k, True, latest[-1], term)

    return number


def inplace_binary(run: Run, old: Tensor, operand: Value, node: ast.AugAssign) -> Tensor:
    """``tensor op= operand``: changes the tensor in place."""
    table = operators.augmented(node.op.__class__.__name__, isinstance(operand, Const))
    target: ast.expr = node.target
    if table is None:
        slots = [operands_of(old, target), operands_of(operand, node.value)]
        recorded, requires, _ = record(run, "augmented", node, slots, None)
        return _changed_in_place(run, old, recorded, requires, False, "augmented assignment", node)
    result = apply(run, table, [(old, target), (operand, node.value)], {}, node)
    return result if isinstance(result, Tensor) else old


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

    Where exactly one of them carries a graph, what comes out is taken to depend on it.
    """
    operands = [
        o for v, e in [*args, *keywords.values()] for o in operands_of(v, e) if o.requires is not False
    ]
    carrying = len({id(o.node or o.leaf) for o in operands}) + (base is not None)
    result = Opaque(label)
    result.made = True
    if not carrying or run.grad_enabled is False:
        return result
    node, requires, _ = record(run, label, site, [operands], None, certain and carrying == 1)
    if base is not None:
        if node is None:
            node = run.node(label, site)
            node.saves = None
        node.edges += (Edge(base, certain and carrying == 1, None),)
    if node is not None:
        node.foreign = True
    result.node = node
    result.requires = requires if carrying == 1 and certain and base is None else None
    if base is not None and carrying == 1 and certain:
        result.requires = None
    return result


# ---------------------------------------------------------------------- parameters


def leaves_of(value: Value) -> tuple[list[Leaf], bool]:
    """The parameters in what was handed to an optimizer or clipped, and whether that is all of them."""
    if isinstance(value, Params):
        return value.leaves, value.complete
    if isinstance(value, Each):
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


def _picked(value: Value) -> Params | None:
    """What a group of an optimizer holds, if a condition has picked it."""
    if isinstance(value, Mapping):
        value = value.items.get("params", value)
    return value if isinstance(value, Params) and value.half is not None else None


def _rest(one: Params, other: Params) -> bool:
    """Whether one holds what the other leaves out: those with weight decay, and those without."""
    if one.half is None or other.half is None or set(one.leaves) != set(other.leaves):
        return False
    return one.half == (other.half[0], not other.half[1])


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
            isinstance(value, Opaque)
            and value.leaf is None
            and module.rest is None
            and value.owner is not None
        ):
            module.rest = Leaf(f"the rest of {module.label}", None)


FUNCTION = "torch.autograd.Function"
LAYERED = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})
"""Containers of torch whose items are all networks."""


def hold(container: Module, layers: Iterable[Value]) -> None:
    """What a container of layers holds and nobody can see is a layer too: it may have parameters."""
    if container.kind in LAYERED:
        for layer in layers:
            if isinstance(layer, Opaque) and layer.owner is None and layer.node is None:
                layer.owner = container


def add_layers(container: Module, layers: list[Value]) -> None:
    """``append``, ``extend`` and ``add_module`` of a container of torch."""
    container.items += layers
    hold(container, layers)
    if container.kind == "torch.nn.Sequential" and any(isinstance(layer, Opaque) for layer in layers):
        # Layers that cannot be seen: one block that is taken to be deep.
        container.leaf = container.leaf or Leaf(container.label)


def each_changed(run: Run, each: Each, site: ast.AST) -> None:
    """An in-place write to every parameter of a set (or to its gradients or data)."""
    if each.view == "":
        for leaf in each.leaves:
            event = run.change(Tensor.of_leaf(leaf), site, "in-place write")
            event.leaf_error = leaf.requires is True and run.grad_enabled is True and not run.catching


def extend(run: Run, target: Sequence, value: Value) -> None:
    """``list += value``."""
    items, _ = iterate(run, value, None)
    if items is None:
        target.open = True
    else:
        target.add(items)


# ---------------------------------------------------------------------- iteration and items


EACH = "each item"
"""The label of what a loop takes out of something unknown."""


def iterate(
    run: Run, value: Value, site: ast.expr | None
) -> tuple[list[Value] | None, Callable[[int], Value]]:
    """What iterating over ``value`` gives: all items, or None and a function from pass to item."""
    if isinstance(value, Sequence):
        # One batch stands for as many as there will be.
        sample = value.grows and len(value.items) == 1 and not any(t.node for t in tensors_in(value))
        if not value.open and not sample:
            return value.items, lambda k: value.items[k % len(value.items)]
        if value.items:
            return None, lambda k: _at(run, value, k, site)
        return None, lambda k: Opaque(EACH)
    if isinstance(value, Mapping):
        if not value.open:
            return [Const(k) for k in value.items], lambda k: NONE
        return None, lambda k: Opaque("key")
    if isinstance(value, Iteration):
        return value.iterate(run, site)
    if isinstance(value, Params):
        if value.named:
            return [Sequence("tuple", [Opaque("name"), Each(value.leaves)])], lambda k: NONE
        return [Each(value.leaves)], lambda k: NONE
    if isinstance(value, Module) and value.kind != "user":
        if value.kind == "torch.nn.ModuleDict":
            return [Const(k) for k in value.attributes], lambda k: NONE
        if value.leaf is None:
            return value.items, lambda k: NONE
    if isinstance(value, Const) and isinstance(value.value, str) and len(value.value) <= 16:
        return [Const(c) for c in value.value], lambda k: NONE
    if isinstance(value, Tensor):

        def select(k: int) -> Value:
            table = operators.method("getitem.int_or_slice")
            if table is None or site is None:
                return Tensor(value.node, value.requires, value.storage)
            return apply(run, table, [(value, site)], {}, site)

        return None, select
    if isinstance(value, Opaque) and value.node is not None:
        return None, lambda k: part(run, value, f"[{k}]", site)
    if isinstance(value, Opaque):
        return None, lambda k: _made(Opaque(EACH), value, [])
    return None, lambda k: Opaque(EACH)


class Made(NamedTuple):
    """What a loop goes over where that is a generator of the project."""

    call: Suspended
    item: Callable[[Value], Value]
    """What the loop is handed of what is yielded."""


def generator(iterable: Value) -> Made | None:
    """The generator behind something to go over, also in ``enumerate``."""
    if isinstance(iterable, Suspended):
        return Made(iterable, lambda value: value)
    if isinstance(iterable, Iteration) and iterable.kind == "enumerate":
        (part,) = iterable.parts
        if isinstance(part, Suspended):
            return Made(part, lambda value: Sequence("tuple", [Opaque("index"), value]))
    return None


def is_each(item: Value) -> bool:
    """Whether an item stands for all parameters of something, by itself or beside their names."""
    return isinstance(item, Each) or (isinstance(item, Sequence) and any(map(is_each, item.items)))


class Iteration(Value):
    """``zip``, ``enumerate``, ``reversed`` and the like, not yet run."""

    __slots__ = ("kind", "parts", "start")

    def __init__(self, kind: str, parts: list[Value], start: int | None = 0) -> None:
        self.kind = kind
        self.parts = parts
        self.start = start

    def iterate(self, run: Run, site: ast.expr | None) -> tuple[list[Value] | None, Callable[[int], Value]]:
        """As :func:`iterate`."""
        if self.kind == "range":
            origin = self.start or 0
            return None, numbered(origin)
        inner = [iterate(run, p, site) for p in self.parts]
        if self.kind == "enumerate":
            items, element = inner[0]
            if items is not None and self.start is not None:
                start = self.start
                return [
                    Sequence("tuple", [Opaque("index") if is_each(item_) else Const(start + k), item_])
                    for k, item_ in enumerate(items)
                ], lambda k: NONE
            if self.start is None:
                return None, lambda k: Sequence("tuple", [Opaque("index"), element(k)])
            number = numbered(self.start)
            return None, lambda k: Sequence("tuple", [number(k), element(k)])
        if self.kind == "zip":
            known = [items for items, _ in inner if items is not None]
            if known:
                # The shortest known one bounds the whole.
                count = min(len(items) for items in known)
                if count <= 64:
                    return [
                        Sequence(
                            "tuple",
                            [items[k] if items is not None else element(k) for items, element in inner],
                        )
                        for k in range(count)
                    ], lambda k: NONE
            return None, lambda k: Sequence("tuple", [element(k) for _, element in inner])
        items, element = inner[0]
        if items is not None and self.kind == "reversed":
            return items[::-1], lambda k: NONE
        return items, element


def part(run: Run, value: Opaque, name: str, site: ast.AST | None) -> Value:
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
        node.saves = None
        node.edges = (Edge(value.node, False, None),)
        node.leaves = tuple((leaf, sure, None) for leaf, sure, _ in value.node.leaves)
        child.node, child.requires = node, None
    value.attributes[name] = child
    return child


def item(run: Run, value: Value, index: Value, expression: ast.expr, site: ast.AST | None = None) -> Value:
    """``value[index]`` for an index that is not a slice."""
    if value is NONE:
        used_nothing(run, site or expression)
    if isinstance(value, (Sequence, Module)) and value.items and isinstance(index, Index):
        # As if the loop that counts went over the items themselves.
        place = _place(index)
        if place is not None and isinstance(value, Sequence):
            return _at(run, value, place, expression)
        if place is not None:
            return value.items[place % len(value.items)]
    if isinstance(value, Sequence):
        if isinstance(index, Const) and isinstance(index.value, int):
            if -len(value.items) <= index.value < len(value.items):
                return value.items[index.value]
            return value.items[-1] if value.items and value.open else Opaque("item")
        if len(value.items) == 1 and not (value.open and tensors_in(value)):
            return value.items[0]
        if _any_will_do(run, value.items, index):
            return value.items[0]
        return _one_of(run, value.items, expression, site or expression)
    if isinstance(value, Mapping):
        if isinstance(index, Const):
            try:
                held = value.items.get(index.value)
            except TypeError:
                held = None
            if held is not None:
                return held
            fresh = Opaque(str(index.value))
            if isinstance(index.value, (str, int)):
                value.items[index.value] = fresh
            return fresh
        return Opaque("item")
    if isinstance(value, Tensor):
        if isinstance(index, (Tensor, Opaque, Sequence)):
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
    if isinstance(value, Module):
        if isinstance(index, Const):
            if isinstance(index.value, int) and -len(value.items) <= index.value < len(value.items):
                return value.items[index.value]
            if isinstance(index.value, str) and index.value in value.attributes:
                return value.attributes[index.value]
        layer = Opaque("item")
        layer.library = value.kind in LAYERED and keeps_nothing(value)
        return layer
    if isinstance(value, Opaque):
        if isinstance(index, Const) and isinstance(index.value, (int, str)):
            if value.node is not None:
                return part(run, value, f"[{index.value!r}]", site or expression)
            name = f"[{index.value!r}]"
            known = value.attributes.get(name)
            if known is None:
                known = value.attributes[name] = Opaque(value.label + name, None, value)
            return known
        if value.node is not None:
            fresh = Opaque("item")
            child = part(run, value, "[]", site or expression)
            if isinstance(child, Opaque):
                fresh.node, fresh.requires = child.node, None
            return fresh
        # A layer of a library's network, whichever it is, is one that keeps nothing.
        return Opaque("item", None, value if value.stateless() else None)
    if isinstance(value, Attributes):
        if isinstance(index, Const) and isinstance(index.value, str):
            return attribute(run, value.holder, index.value, site or expression)
        if isinstance(value.holder, External):
            # Whichever it is, it is of that library.
            return member(value.holder.name, "item")
    return Opaque("item")


def _place(index: Index) -> int | None:
    """The number that an index has in this pass, if it is one that counts."""
    return int(index.number) if index.counts and index.number == int(index.number) else None


def _any_will_do(run: Run, items: list[Value], index: Value) -> bool:
    """Whether the first of several things of one make may stand for the one that is asked for.

    ``agent = self.agents[number]``: what is trained for one number is trained for any, again and again. Of
    another number nobody knows whether it is the same.
    """
    if not isinstance(index, Opaque) or index.__class__ is not Opaque or index.node is not None or index.made:
        return False
    makes = {item.cls for item in items if isinstance(item, Instance)}
    if len(makes) != 1 or not all(isinstance(item, Instance) for item in items):
        return False
    asked = index.label, index.parent
    if run.any_number is None:
        run.any_number = asked
    return run.any_number == asked


def _one_of(run: Run, items: list[Value], expression: ast.expr, site: ast.AST) -> Value:
    """One of several values, nobody knows which: it may have the graph of any."""
    chosen = Opaque("item")
    nodes = [tensor.node for item in items for tensor in tensors_in(item) if tensor.node is not None]
    if nodes:
        node = run.node("item", site)
        node.saves = None
        node.edges = tuple(Edge(one, False, expression) for one in dict.fromkeys(nodes))
        chosen.node, chosen.requires = node, None
    return chosen


def _at(run: Run, value: Sequence, place: int, expression: ast.expr | None) -> Value:
    """An item by the number of a pass: the few that are known stand for more, with graphs of their own."""
    if value.open and place >= len(value.items) and any(t.node is not None for t in tensors_in(value)):
        at = expression or ast.Constant(None, lineno=0, col_offset=0, end_lineno=0, end_col_offset=0)
        return _one_of(run, value.items, at, at)
    return value.items[place % len(value.items)]


def slice_of(run: Run, value: Value, node: ast.Subscript, frame: Frame) -> Value:
    """``value[a:b:c]``."""
    bounds = node.slice
    assert isinstance(bounds, ast.Slice)
    if value is NONE:
        used_nothing(run, node)
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
    if isinstance(value, Module) and value.kind == "torch.nn.Sequential" and not unknown_bound:
        cut = Module(value.kind, value.label)
        cut.items = value.items[slice(*parts)]
        return cut
    if isinstance(value, Opaque) and value.node is not None:
        return part(run, value, "[:]", node)
    if isinstance(value, Const) and isinstance(value.value, str):
        return Const(value.value[slice(*parts)]) if not unknown_bound else Opaque()
    return Opaque("slice")


def bind_weight(run: Run, value: Value) -> None:
    """Note that a weight of a layer has been bound to a value: MAML's are computed with gradients.

    A weight that is computed of others alone, as in spectral normalisation, is followed as it is.
    """
    if _is_leaf(value) or not tensors_in(value):
        return
    graph = reach([(tensor.node, True) for tensor in tensors_in(value) if tensor.node is not None])
    if any(node.op == "autograd.grad" for node in graph) or any(
        isinstance(event, Backward) and event.accumulates and event.creates is not False
        for event in run.events
    ):
        run.substituted = True


def _is_leaf(value: Value) -> bool:
    """Whether a value is a parameter, or none, as against a tensor that was computed."""
    if isinstance(value, Each):
        return value.view == ""
    return isinstance(value, Const) or (isinstance(value, Tensor) and value.leaf is not None)


def is_key(index: Value) -> bool:
    """Whether no tensor takes this as an index: a text, or a tuple that holds one."""
    if isinstance(index, Sequence):
        return index.kind == "tuple" and any(map(is_key, index.items))
    return _is_text(index) or (isinstance(index, Opaque) and index.label == "text")


def keyed(run: Run, holder: Value, index: Value, frame: Frame) -> Value:
    """``holder``, or what it turns out to be where it has seemed to be a tensor and has items by name.

    ``torch.stack`` makes a mapping of mappings, if their class says so (``__torch_function__``, TensorDict).
    What was changed in place of the tensor that it has been taken for was none that a graph has saved.
    """
    if not isinstance(holder, Tensor) or not is_key(index):
        return holder
    mapping = run.keyed.get(holder)
    if mapping is None:
        mapping = run.keyed[holder] = Opaque("mapping", holder.node)
        if holder.storage.version:
            for node in run.nodes:
                node.saved = tuple(saved for saved in node.saved if saved[0] is not holder.storage)
                node.named = ()
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
            node.saves = True  # an item is a view: see _changed_in_place
        if not (node is None and holder is value):
            _changed_in_place(run, holder, node, requires, saves, "item assignment", target)
        return
    if isinstance(holder, Opaque):
        perhaps_changed(holder)
        if run.inside:
            run.returned += graphs_in([value])
        if holder.label == "_parameters" and not _is_leaf(value):
            run.substituted = True  # Whatever it was computed of: it is no parameter any more.
    if isinstance(target.slice, ast.Slice):
        if isinstance(holder, Sequence):
            holder.open = True
        elif isinstance(holder, Opaque):
            _fed(run, holder, value, target)
        return
    index = run.evaluate(target.slice, frame)
    if isinstance(holder, Opaque) and not _is_text(index):
        _fed(run, holder, value, target)
    if isinstance(holder, Sequence):
        if isinstance(index, Const) and isinstance(index.value, int):
            if -len(holder.items) <= index.value < len(holder.items):
                holder.items[index.value] = value
                return
        if isinstance(index, Index) and holder.items and not holder.open and _place(index) is not None:
            holder.items[_place(index) % len(holder.items)] = value  # type: ignore[operator]
            return
        # Some item changes: each may be the old or the new one.
        holder.items = [Opaque("item") if tensors_in(i) or tensors_in(value) else i for i in holder.items]
        holder.open = True
    elif isinstance(holder, Mapping):
        if isinstance(index, Const) and isinstance(index.value, (str, int, float, bool, type(None))):
            holder.items[index.value] = value
        else:
            holder.open = True
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
    elif isinstance(holder, Opaque) and isinstance(index, Const):
        holder.attributes[f"[{index.value!r}]"] = value


def _fed(run: Run, holder: Opaque, value: Value, site: ast.Subscript) -> None:
    """Something unknown got an item: if it is a tensor, it has the graph of what was put in from now on."""
    if graphs_in([value]):
        after = unknown(run, [(holder, site.value), (value, site)], {}, site, "item assignment")
        if isinstance(after, Opaque) and after.node is not None:
            holder.node, holder.requires = after.node, None


def _is_text(index: Value) -> bool:
    """Whether this is a key of a dict, and no index of a tensor."""
    return isinstance(index, Const) and isinstance(index.value, str)


def _take_out(holder: Sequence, index: int) -> Value:
    """Remove an item.

    Of a list that a loop of unknown length fills, the items of a few passes are known: the one that is
    removed at its other end may be older than these.
    """
    if not holder.grows or index < 0:
        return holder.items.pop(index)
    holder.items[:-1] = [Opaque("item") for _ in holder.items[:-1]]
    holder.open = True
    return Opaque("item")


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
                _take_out(holder, index.value)
        else:
            # Which items are left is not known.
            holder.items[:] = [Opaque("item") for _ in holder.items]
            holder.open = True
    elif isinstance(holder, Mapping):
        key = run.evaluate(target.slice, frame)
        if isinstance(key, Const):
            holder.items.pop(key.value, None)


# ---------------------------------------------------------------------- attributes

TENSOR_DATA = frozenset(
    "shape dtype device is_leaf grad_fn ndim is_cuda layout names itemsize nbytes output_nr _version".split()
)


def attribute(run: Run, value: Value, name: str, node: ast.AST) -> Value:
    """``value.name``."""
    if isinstance(value, (External, imports.Namespace)) and name == "__dict__":
        return Attributes(value)
    if isinstance(value, External):
        return member(value.name, name)
    if isinstance(value, Opaque):
        known = value.attributes.get(name)
        if known is not None:
            return known
        if value.node is not None:
            if name in TENSOR_DATA:
                return Opaque(name)
            if name == "data":
                return Tensor()
            return part(run, value, name, node)
        child = run.part_of(value, name)
        value.attributes[name] = child
        return child
    if isinstance(value, imports.Namespace):
        return _member(run, value, name)
    if isinstance(value, Learner):
        if name == "module" or value.cloned:
            return value if value.cloned else value.module
        return attribute(run, value.module, name, node)
    if isinstance(value, Tensor):
        if name in ("grad", "_grad"):
            run.grad_reads.append((run.tick(), value.leaf))
            return Each([value.leaf], "grad", True) if value.leaf is not None else Opaque("grad")
        if name == "data":
            # Writes through .data do not move the version counter: memory of its own to the model.
            return Each([value.leaf], "data") if value.leaf is not None else Tensor()
        if name == "requires_grad":
            return Opaque("requires_grad") if value.requires is None else Const(value.requires)
        if name in TENSOR_DATA:
            return Opaque(name)
        table = operators.attribute(name)
        if table is not None and isinstance(node, ast.Attribute):
            # What has the attribute is no argument: it has a name alone.
            return apply(run, table, [], {table.operands[0]: (value, node.value)}, node)
        return Method(value, name)
    if isinstance(value, Each):
        if name in ("grad", "_grad", "data"):
            if name != "data":
                run.grad_reads += [(run.tick(), leaf) for leaf in value.leaves]
            itself = name != "data" and value.view == ""
            return Each(value.leaves, "grad" if name != "data" or value.view == "grad" else "data", itself)
        if name == "requires_grad":
            flags = {leaf.requires for leaf in value.leaves}
            flag = flags.pop() if len(flags) == 1 else None
            return Opaque(name) if flag is None else Const(flag)
        if name in TENSOR_DATA:
            return Opaque(name)
        return Method(value, name)
    if isinstance(value, (Module, Instance)):
        return _object_attribute(run, value, name, node)
    if isinstance(value, Optimizer):
        if name == "param_groups":
            group = Mapping({"params": Params(list(value.state.leaves), value.state.groups_known)}, True)
            return Sequence("list", [group])
        return Method(value, name)
    if isinstance(value, Class):
        found = value.lookup(name)
        if isinstance(found, Property):
            return Opaque(name)
        return found if found is not None else Method(value, name)
    if isinstance(value, Super):
        return Method(value, name)
    if isinstance(value, Record) and (name in value.items or not hasattr(dict, name)):
        return item(run, value, Const(name), _nowhere(node), node)
    if isinstance(value, (Sequence, Mapping, Params, Scaler, Const, Iteration)):
        return Method(value, name)
    if isinstance(value, Process):
        return Method(value, name)
    return Opaque(name)


def _member(run: Run, namespace: imports.Namespace, name: str) -> Value:
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
    return value if value is not None else External(f"{namespace.frame.origin}.{name}")


class Property(Value):
    """A ``@property`` of a class of the project."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function


class Attributes(Value):
    """``holder.__dict__``, or ``vars(holder)``, of an object or of a module that was imported."""

    __slots__ = ("holder",)

    def __init__(self, holder: Module | Instance | External | imports.Namespace) -> None:
        self.holder = holder


class Static(Value):
    """A ``@staticmethod`` or ``@classmethod``."""

    __slots__ = ("function", "of_class")

    def __init__(self, function: Function, of_class: bool) -> None:
        self.function = function
        self.of_class = of_class


def _object_attribute(run: Run, value: Module | Instance, name: str, node: ast.AST) -> Value:
    held = value.attributes.get(name)
    if held is not None:
        if isinstance(held, Opaque) and held.owner is None and isinstance(value, Module):
            held.owner = value
        return held
    if name == "__dict__":
        return Attributes(value)
    if value.cls is not None:
        found = value.cls.lookup(name)
        if isinstance(found, Function):
            return found.bind(value)
        if isinstance(found, Property):
            return call_function(run, found.function.bind(value), [], {}, node)
        if isinstance(found, Static):
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
            return Opaque("training") if value.training is None else Const(value.training)
    if isinstance(value, Instance) and value.inherited is not None:
        return attribute(run, value.inherited, name, node)
    if run.scenario.other and (unbound.missing_attribute(value, name) or _made_at_first(run, value, name)):
        raise Impossible
    fresh = Opaque(name)
    if isinstance(value, Module):
        fresh.owner = value
    value.attributes[name] = fresh
    return fresh


def _made_at_first(run: Run, value: Module | Instance, name: str) -> bool:
    """Whether the main run has a network there since the object was made, and this run has nothing.

    Either a caller makes up for it (``Agent(set_up=False)``, then ``agent.set_up()``), and things are as in
    the main run, or Python raises AttributeError.
    """
    first = run.scenario.first
    return (
        first is not None
        and not run.catching
        and value.cls is not None
        and (value.cls.node, name) in first.made
        and not value.cls.unknown_bases()
        and value.cls.lookup("__getattr__") is None
    )


def set_attribute(run: Run, holder: Value, name: str, value: Value, target: ast.expr) -> None:
    """``holder.name = value``."""
    run.mutations += 1
    if isinstance(holder, (Module, Instance, Opaque)):
        if (
            isinstance(value, (Module, Optimizer))
            and isinstance(holder, (Module, Instance))
            and holder.cls is not None
            and any(getattr(node, "name", "") in unbound.CONSTRUCTORS for node, _ in run.active)
        ):
            run.made.add((holder.cls.node, name))
        if name in ("grad", "_grad") and isinstance(holder, Opaque):
            return
        if isinstance(holder, Module) and isinstance(value, Tensor) and value.leaf is not None:
            known = value.leaf.label
            if known == "parameter":
                value.leaf.label = f"parameter {name}"
        if isinstance(holder, Module) and isinstance(value, Opaque) and value.owner is None:
            value.owner = holder
        if isinstance(value, Module) and value.label == value.kind.rsplit(".", 1)[-1]:
            value.label = name
        if run.optimizers and isinstance(value, Module) and isinstance(holder, (Module, Opaque)):
            adjusting.replace(run, holder, name, value, target)
        holder.attributes[name] = value
        if name == "weight" and isinstance(holder, Module) and holder.leaf is not None:
            # A layer that is given another one's weights shares them; a bias of its own is left out.
            if (
                isinstance(value, Tensor)
                and value.leaf is not None
                and not value.leaf.label.startswith("parameter")
            ):
                holder.leaf = value.leaf
        if isinstance(holder, Opaque) and run.inside:
            # Who handed the object in has what is put there.
            run.returned += graphs_in([value])
        if isinstance(holder, Module) and holder.kind != "user":
            bind_weight(run, value)
    elif isinstance(holder, Record):
        holder.items[name] = value
    elif isinstance(holder, (Tensor, Each)):
        leaves = [holder.leaf] if isinstance(holder, Tensor) and holder.leaf else []
        if isinstance(holder, Each):
            leaves = holder.leaves
        if name in ("grad", "_grad"):
            if isinstance(value, Const) and value.value is None:
                zero_grad(run, holder, leaves, target)
            elif isinstance(value, Each) and value.itself and len(value.leaves) == len(leaves):
                for leaf, lender in zip(leaves, value.leaves):
                    leaf.grad, leaf.unknown_grad = lender.grad, lender.unknown_grad
                    leaf.lender = lender if lender is not leaf else None
            else:
                for leaf in leaves:
                    leaf.unknown_grad = True
        elif name == "requires_grad":
            set_requires(run, holder, leaves, value, target)
        elif name == "data" and isinstance(holder, Tensor) and not leaves:
            pass


def set_requires(run: Run, holder: Value, leaves: list[Leaf], value: Value, site: ast.AST) -> None:
    """``requires_grad = value`` on parameters or on a tensor."""
    wanted: Tri = bool(value.value) if isinstance(value, Const) else None
    if run.some and isinstance(holder, Each):
        wanted = None
    if isinstance(holder, Tensor) and holder.leaf is None:
        if wanted is not False and holder.node is None:
            leaf = Leaf("tensor", wanted, site)
            leaf.storage = holder.storage
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


# ---------------------------------------------------------------------- calls

NEVER = Const("never")
"""What a call that does not come back evaluates to."""


def arguments(run: Run, node: ast.Call, frame: Frame) -> tuple[list[Argument], Keywords]:
    """Evaluate the arguments of a call."""
    args: list[Argument] = []
    for argument in node.args:
        if argument.__class__ is ast.Starred:
            assert isinstance(argument, ast.Starred)
            value = run.evaluate(argument.value, frame)
            if isinstance(value, Params):
                args.append((value, argument.value))
                continue
            items, _ = iterate(run, value, argument.value)
            if items is None:
                args.append((Sequence("list", _some(value), True), argument.value))
            else:
                args += [(i, argument.value) for i in items]
        else:
            value = run.evaluate(argument, frame)
            if isinstance(value, (Sequence, Mapping)):
                run.charge(value.size >> 4)  # Whoever is called goes through all of it.
            args.append((value, argument))
    keywords: Keywords = {}
    for keyword in node.keywords:
        value = run.evaluate(keyword.value, frame)
        if keyword.arg is not None:
            keywords[keyword.arg] = (value, keyword.value)
        elif isinstance(value, Mapping):
            keywords.update({k: (v, keyword.value) for k, v in value.items.items() if isinstance(k, str)})
        else:
            keywords["**"] = (value, keyword.value)
    return args, keywords


def _some(value: Value) -> list[Value]:
    return value.items if isinstance(value, Sequence) else ([value] if isinstance(value, Opaque) else [])


def call_expression(run: Run, node: ast.Call, frame: Frame, discarded: bool = False) -> Value:
    """The value of a call expression; ``discarded`` if it stands as a statement of its own."""
    function = node.func
    if function.__class__ is ast.Attribute:
        base = run.evaluate(function.value, frame)
        args, keywords = arguments(run, node, frame)
        return call_method(run, base, function.attr, args, keywords, node, discarded)
    if isinstance(function, ast.Name) and function.id == "super" and not node.args:
        bound = frame.variables.get("self")
        at: Frame | None = frame
        while at is not None and at.function is None:
            at = at.parent
        owner = at.function.owner if at is not None and at.function is not None else None
        if at is not None and at.function is not None and at.function.bound is not None:
            bound = at.function.bound
        return Super(bound, owner) if bound is not None else Opaque("super")
    value = run.evaluate(function, frame)
    args, keywords = arguments(run, node, frame)
    if isinstance(value, External) and value.name == "builtins.getattr" and len(args) >= 2:
        chosen = _by_name(run, node, args[0][0], args[1], frame)
        if chosen is not None:
            return chosen
    if isinstance(value, External) and value.name == "builtins.eval" and len(args) == 1:
        named = _dotted(options.given(args[0][0]), node)
        if named is not None:
            return run.evaluate(named, frame)
    if isinstance(value, External) and value.name in ("builtins.super", "builtins.locals"):
        if value.name == "builtins.locals":
            return Mapping(dict(frame.variables), frame.function is None)
        if len(args) == 2:
            after, of = args[0][0], args[1][0]
            return Super(of, after) if isinstance(after, Class) else Opaque("super")
    return call(run, value, args, keywords, node, discarded)


def _by_name(run: Run, node: ast.Call, holder: Value, name: Argument, frame: Frame) -> Value | None:
    """``getattr(module, name)`` of a module of the project, where it is not known what it is asked for."""
    if isinstance(name[0], Const) or not isinstance(holder, imports.Namespace):
        return None
    return run.asked_for(node, holder, name[1], frame)


def _dotted(text: Value, node: ast.AST) -> ast.expr | None:
    """What ``eval`` looks up: a text of names and dots, as in ``eval("models." + args.model)``."""
    if not isinstance(text, Const) or not isinstance(text.value, str):
        return None
    try:
        found = ast.parse(text.value.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    parts = list(ast.walk(found))
    if not all(isinstance(part, (ast.Name, ast.Attribute, ast.expr_context)) for part in parts):
        return None
    for part in parts:
        ast.copy_location(part, node)
    return found


def call(
    run: Run, value: Value, args: list[Argument], keywords: Keywords, node: ast.AST, discarded: bool = False
) -> Value:
    """Call any value."""
    if isinstance(value, Function):
        return call_function(run, value, args, keywords, node)
    if isinstance(value, Module):
        return call_module(run, value, args, keywords, node)
    if isinstance(value, External):
        return library.call_external(run, value.name, args, keywords, node, discarded)
    if isinstance(value, Class):
        return instantiate(run, value, args, keywords, node)
    if isinstance(value, Learner):
        return call_learner(run, value, args, keywords, node)
    if isinstance(value, Method):
        return call_method(run, value.of, value.name, args, keywords, node, discarded)
    if isinstance(value, Partial):
        merged = {k: (v, _nowhere(node)) for k, v in value.keywords.items()}
        return call(run, value.function, value.args + args, {**merged, **keywords}, node, discarded)
    if isinstance(value, Instance):
        method = value.cls.lookup("__call__")
        if isinstance(method, Function):
            return call_function(run, method.bind(value), args, keywords, node)
        if FUNCTION in value.cls.outside():
            # As functions were written until torch 1.2: an object is called. There is no graph inside.
            return call(run, attribute(run, value.cls, "apply", node), args, keywords, node, discarded)
        if value.cls.lookup("forward") is not None and value.cls.unknown_bases():
            forward = value.cls.lookup("forward")
            if isinstance(forward, Function):
                return call_function(run, forward.bind(value), args, keywords, node)
        return call_opaque(run, Opaque(value.cls.name), args, keywords, node, discarded)
    if isinstance(value, Static):
        return call_function(run, value.function, args, keywords, node)
    if isinstance(value, Opaque):
        result = _made(call_opaque(run, value, args, keywords, node, discarded), value, args)
        if (
            args
            and not discarded
            and not value.harmless
            and isinstance(result, Opaque)
            and result.node is None
        ):
            # What is called may be a network: the result may have a graph that cannot be seen.
            _may_carry(run, result, node)
            if result.node is not None:
                result.node.opaque = not value.stateless()
        return result
    return call_opaque(run, Opaque("unknown"), args, keywords, node, discarded)


def _may_carry(run: Run, result: Opaque, node: ast.AST) -> None:
    if run.grad_enabled is not False:
        result.node = run.node(result.label, node)
        result.node.saves = None
        result.node.opaque = True
        result.requires = None


def _nowhere(node: ast.AST) -> ast.expr:
    return node if isinstance(node, ast.expr) else ast.Constant(None)


def call_opaque(
    run: Run, value: Opaque, args: list[Argument], keywords: Keywords, node: ast.AST, discarded: bool
) -> Value:
    """Call something unknown: a network if it is known to be one, else a function that may do anything."""
    if value.leaf is not None:
        return _call_opaque_module(run, value, value.leaf, args, keywords, node)
    if value.owner is not None and any(operands_of(v, e) or isinstance(v, (Tensor, Opaque)) for v, e in args):
        # A part of a network that could not be followed: it may have parameters of its own.
        owner = value.owner
        if owner.rest is None:
            owner.rest = Leaf(f"the rest of {owner.label}", None)
        return _call_opaque_module(run, value, owner.rest, args, keywords, node)
    if discarded and _observed(value, args, keywords, node):
        return Opaque(value.label)
    handed = None if discarded or run.path else _handed(args)
    if (discarded and not _only_reads(value, args)) or suspicious(value.label, handed is not None):
        poison(run, [v for v, _ in args] + [v for v, _ in keywords.values()], node)
    else:
        _poison_owners(run, args, keywords, node)
    result = unknown(run, args, keywords, node, value.label or "call")
    if handed is not None and isinstance(result, Opaque):
        result.handed = node, handed
    return result


def _observed(value: Opaque, args: list[Argument], keywords: Keywords, node: ast.AST) -> bool:
    """Whether unknown things are shown the object that trains, one after the other: callbacks, hooks.

    ``for callback in self.callbacks: callback(self)``, or ``callback.on_batch_end(self)``. Whoever may
    subscribe looks on; what trains stands where the object's own code is. What is handed a tensor, a
    network or an optimizer itself, or is named for a part of training, may do anything.
    """
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Name):
        shown = value.label == EACH and not suspicious(called.id)
    else:
        shown = (
            isinstance(called, ast.Attribute)
            and value.parent is not None
            and value.parent.label == EACH
            and called.attr.startswith(("on_", "before_", "after_"))
        )
    given = [v for v, _ in [*args, *keywords.values()]]
    return shown and any(isinstance(v, Instance) for v in given) and all(map(_takes_no_part, given))


def _takes_no_part(value: Value) -> bool:
    """Whether a value is no tensor, network or optimizer itself, as far as is known."""
    if value.__class__ is Opaque:
        assert isinstance(value, Opaque)
        return value.node is None and value.leaf is None and value.optimizer is None
    return isinstance(value, (Instance, Const))


def _handed(args: list[Argument]) -> Params | None:
    """The parameters that an unknown function is given first: it may make an optimizer of them."""
    first = args[0][0] if args else NONE
    if not isinstance(first, (Params, Each, Sequence)):
        return None
    leaves, complete = leaves_of(first)
    return Params(leaves, complete) if leaves and not tensors_in(first) else None


def adopted(run: Run, value: Value) -> Optimizer | None:
    """The optimizer that something is which an unknown function has made of parameters, and which steps."""
    if not isinstance(value, Opaque):
        return None
    if value.optimizer is None and value.handed is not None:
        made, params = value.handed
        value.optimizer = library.make_optimizer(run, value.label, [(params, _nowhere(made))], {}, made)
    return value.optimizer


def _poison_owners(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> None:
    """An unknown function that is handed an optimizer within training may step it, whatever it returns.

    Before training it makes a scheduler or a wrapper of it.
    """
    if not run.path:
        return
    given = [v for v, _ in args] + [v for v, _ in keywords.values()]
    if any(isinstance(v, Optimizer) or (isinstance(v, Opaque) and v.optimizer) for v in given):
        poison(run, given, node)


LOGGING = frozenset(
    """log log_metric log_metrics log_scalar add_scalar add_scalars add_histogram add_image add_images
    add_text scalar_summary set_postfix set_description print write debug info warning""".split()
)
"""What loggers of all makes are called with: a name and a number. They run no backward."""


def _only_reads(value: Opaque, args: list[Argument]) -> bool:
    """Whether a function looks at a network and leaves it as it is: ``target.load_state(network)``."""
    return value.label.startswith(("load", "save", "copy")) and not any(
        tensor.node is not None for given, _ in args for tensor in tensors_in(given)
    )


SUSPICIOUS = ("backward", "step", "optim", "update", "train", "fit", "grad", "freeze", "scal")


def suspicious(name: str, makes: bool = False) -> bool:
    """Whether an unknown function's name says that it may run or steer the training itself.

    What ``makes`` something of parameters, and is named for an optimizer, makes one.
    """
    name = name.lower()
    return any(word in name and not (makes and word == "optim") for word in SUSPICIOUS)


def call_learner(run: Run, value: Learner, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """A network itself, or a clone, which saves copies of the weights that no optimizer moves."""
    if not value.cloned:
        return call(run, value.module, args, keywords, node)
    operands = [o for v, e in [*args, *keywords.values()] for o in operands_of(v, e)]
    entered = _enter_call(run, value, value.leaves, args, keywords, node)
    weights = [Operand(leaf, None) for leaf in value.leaves]
    recorded, requires, _ = record(run, "learner", node, [operands, weights], None)
    result = Opaque("learner")
    if recorded is not None:
        recorded.saves = True if requires else None
        if value.adapted is not None:
            recorded.edges += (Edge(value.adapted, True, None),)
        result.node, result.requires = recorded, requires
    if entered is not None:
        run.current_call = None
    return result


def _call_opaque_module(
    run: Run, value: Opaque, leaf: Leaf, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value:
    operands = [o for v, e in [*args, *keywords.values()] for o in operands_of(v, e)]
    entered = _enter_call(run, value, [leaf], args, keywords, node)
    recorded, requires, _ = record(
        run, value.label or "network", node, [operands, [Operand(leaf, None)]], None
    )
    result = Opaque(value.label)
    if recorded is not None:
        # A network of unknown make: taken to be deep enough to save its own weights.
        recorded.saves = True if requires else None
        recorded.opaque = not value.stateless()
        if leaf.requires is True or any(o.requires is True for o in operands):
            recorded.saved += tuple((part_.storage, part_.storage.version, part_) for part_ in leaf.family())
        # Which of its parts take part in it is not known.
        recorded.leaves += tuple((part_, False, None) for part_ in leaf.family()[1:])
        result.node, result.requires = recorded, requires
    if entered is not None:
        run.current_call = None
    return result


def _enter_call(
    run: Run,
    module: Value,
    leaves: list[Leaf],
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
) -> ModuleCall | None:
    if run.current_call is not None or not isinstance(node, ast.Call):
        return None
    operands = [(e, v) for v, e in [*args, *keywords.values()]]
    entered = ModuleCall(module, node, operands, run.path, run.tick(), set(leaves), run.stack)  # type: ignore[arg-type]
    run.current_call = entered
    run.module_calls.append(entered)
    return entered


def _abstract(definition: ast.AST) -> bool:
    """Whether a method says that others are to define it."""
    if isinstance(definition, ast.Lambda):
        return False
    decorators = getattr(definition, "decorator_list", [])
    if any((getattr(d, "attr", None) or getattr(d, "id", None)) == "abstractmethod" for d in decorators):
        return True
    last = definition.body[-1]  # type: ignore[attr-defined]
    told = last.exc if isinstance(last, ast.Raise) else None
    told = told.func if isinstance(told, ast.Call) else told
    rest = definition.body[:-1]  # type: ignore[attr-defined]
    return getattr(told, "id", None) == "NotImplementedError" and all(
        isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in rest
    )


NESTED = 5
"""How often a function is followed into itself for what is in lists: those of states are seldom deeper."""
CUTTING = frozenset("detach detach_ data item numpy tolist no_grad new_tensor".split())
"""What leaves graphs behind."""


def _cuts(definition: ast.AST) -> bool:
    """Whether a function says anywhere that it leaves graphs behind."""
    return any(isinstance(node, ast.Attribute) and node.attr in CUTTING for node in walk(definition))


def call_function(
    run: Run, function: Function, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value:
    """Follow a call into a function of the project."""
    definition = function.node
    if definition.lineno <= 0:
        imports.joined(run, definition)
    # A network within a network of the same class is no recursion.
    active = definition, function.bound if isinstance(function.bound, Module) else None
    # What goes into lists of pairs of states ends at the tensors.
    nested = any(isinstance(value, (Tensor, Sequence)) for value, _ in args)
    if run.depth >= run.max_depth or run.active.count(active) >= (NESTED if nested else 2):
        if not run.relevance.touches(definition):
            # A tree: the rest is like what was seen, unless the end of it is what matters.
            return unknown(run, args, keywords, node, function.name, certain=not _cuts(definition))
        return call_opaque(run, Opaque(function.name), args, keywords, node, True)
    if isinstance(function.bound, (Module, Instance)) and _abstract(definition):
        # A subclass that is not here has it.
        missing = Opaque(function.name)
        missing.owner = function.bound if isinstance(function.bound, Module) else None
        return call_opaque(run, missing, args, keywords, node, False)
    frame = Frame(function.frame, function)
    if function.bound is not None:
        args = [(function.bound, _nowhere(node)), *args]
    spec = definition.args
    if spec.vararg is None and len(args) > len(spec.posonlyargs) + len(spec.args):
        # Python raises here: this is not the function that is called.
        if run.scenario.other:
            raise Impossible
        return unknown(run, args, keywords, node, function.name)
    bind(run, definition.args, frame, args, keywords, function.frame)
    if isinstance(definition, ast.Lambda):
        run.charge(1)
        run.entered.add(definition)
        return run.evaluate(definition.body, frame)
    generator = run.relevance.generator(definition)
    if generator and not function.context and run.relevance.differentiates(definition):
        return Suspended(definition, frame)  # entered as soon as somebody goes through it
    run.entered.add(definition)
    if generator:
        if function.context:
            return Suspended(definition, frame)
        return _yielded_parameters(run, definition, frame) or Opaque("generator")
    enabled = run.grad_enabled
    if function.graph_free:
        run.grad_enabled = False
    run.depth += 1
    run.active.append(active)
    statement, stack, guesses = run.statement, run.stack, len(run.guesses)
    if run.current_call is None:
        run.stack = (*stack, (node, args))
    try:
        flow = run.block(definition.body, frame)
    finally:
        run.depth -= 1
        run.active.pop()
        del run.guesses[guesses:]
        if function.graph_free:
            run.grad_enabled = enabled
        run.statement, run.stack = statement, stack
    if flow is None:
        return NONE
    value = getattr(flow, "value", None)
    if value is None:
        raise Stopped
    assert isinstance(value, Value)
    return value


def _yielded_parameters(run: Run, definition: ast.AST, frame: Frame) -> Params | None:
    """The parameters that a generator of the project yields, where it yields nothing else.

    ``for module in self.modules(): for p in module.parameters(): yield p``, the groups of an optimizer. It is
    run when it is called: nothing that it reads changes before its items are asked for.
    """
    assert isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef))
    names = (node.attr for node in walk(definition) if isinstance(node, ast.Attribute))
    if run.relevance.touches(definition) or not any(name.endswith("parameters") for name in names):
        return None
    found: list[tuple[Value, int]] = []
    statement, symbolic = run.statement, run.symbolic
    run.yielding[frame] = lambda value: found.append((value, run.symbolic - symbolic))
    run.depth += 1
    run.active.append((definition, None))
    try:
        run.block(definition.body, frame)
    finally:
        del run.yielding[frame]
        run.depth -= 1
        run.active.pop()
        run.statement = statement
    leaves: dict[Leaf, None] = {}
    tests = [node.test for node in walk(definition) if isinstance(node, ast.If)]
    # Who picks by name or by kind leaves some to others.
    complete = all(isinstance(test, ast.Attribute) and test.attr == "requires_grad" for test in tests)
    for value, unknown_loops in found:
        if not isinstance(value, (Each, Params, Tensor)) or (isinstance(value, Each) and value.view):
            return None
        held, known = leaves_of(value)
        leaves.update(dict.fromkeys(held))
        # A loop over the parameters of a network is one, in a loop over its parts none may be left out.
        complete = complete and known and unknown_loops <= isinstance(value, Each)
    return Params(list(leaves), complete) if leaves else None


def bind(
    run: Run,
    spec: ast.arguments,
    frame: Frame,
    args: list[Argument],
    keywords: Keywords,
    outer: Frame,
) -> None:
    """Bind arguments to parameters as Python does; what is missing is unknown."""
    names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
    variables = frame.variables
    variables.update(zip(names, (v for v, _ in args)))
    missing = [*names[len(args) :], *(a.arg for a in spec.kwonlyargs)]
    if missing:
        defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults))
        defaults.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults) if d is not None})
        for name in missing:
            if name in keywords:
                variables[name] = keywords[name][0]
            elif name in defaults:
                variables[name] = run.evaluate(defaults[name], outer)
            else:
                variables[name] = Opaque(name)
    if spec.vararg is not None:
        variables[spec.vararg.arg] = Sequence("tuple", [v for v, _ in args[len(names) :]])
    if spec.kwarg is not None:
        known = set(names) | {a.arg for a in spec.kwonlyargs}
        variables[spec.kwarg.arg] = Mapping(
            {k: v for k, (v, _) in keywords.items() if k not in known and k != "**"}, "**" in keywords
        )


def instantiate(run: Run, cls: Class, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """Make an instance of a class of the project and run its ``__init__``."""
    if library.is_optimizer(cls):
        return library.make_own_optimizer(run, cls, args, keywords, node)
    value: Module | Instance = Module("user", cls.name, cls) if cls.is_module else Instance(cls)
    inherits = cls.unknown_bases() and FUNCTION not in cls.outside()
    if not cls.is_module and inherits and isinstance(cls.lookup("forward"), Function):
        value = Module("user", cls.name, cls)
    if isinstance(value, Module) and cls.unknown_bases():
        value.rest = Leaf(f"the rest of {cls.name}", None)
    initialiser = cls.lookup("__init__")
    if isinstance(initialiser, Function):
        outer = run.current_call
        run.current_call = None
        call_function(run, initialiser.bind(value), args, keywords, node)
        run.current_call = outer
    elif isinstance(value, Instance):
        _inherit(run, value, args, keywords, node)
        # A dataclass or a namedtuple: fields by position and keyword.
        fields = [
            s.target.id
            for s in cls.node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        value.attributes.update(zip(fields, (v for v, _ in args)))
        value.attributes.update({k: v for k, (v, _) in keywords.items()})
    return value


def call_module(run: Run, module: Module, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """Run a network's forward."""
    if run.current_call is not None:
        return _forward(run, module, args, keywords, node)
    entered = _enter_call(run, module, known_leaves(run, module), args, keywords, node)
    try:
        if keywords or entered is None:
            return _forward(run, module, args, keywords, node)
        return templated(
            run, module, [v for v, _ in args], lambda: _forward(run, module, args, keywords, node)
        )
    finally:
        if entered is not None:
            run.current_call = None


def _forward(run: Run, module: Module, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if module.kind == "user":
        assert module.cls is not None
        # One that says itself how it is called has no need of a forward.
        forward = module.cls.lookup("__call__") or module.cls.lookup("forward")
        if isinstance(forward, Function):
            return call_function(run, forward.bind(module), args, keywords, node)
        if module.items:
            return _chain(run, module, args, node)
        if module.rest is None:
            module.rest = Leaf(f"the rest of {module.label}", None)
        return _block_forward(run, module, module.rest, args, keywords, node)
    if module.kind == "torch.nn.Sequential" and module.leaf is None:
        return _chain(run, module, args, node)
    inplace = module.options.get("inplace")
    overwrites = isinstance(inplace, Const) and bool(inplace.value)
    if overwrites:
        _note_use(run, module, args, keywords, node)
    active = drops(module.options.get("p"), module.training) if module.kind in DROPOUTS else True
    mode = "#eval" if active is False else "#inplace" if overwrites and active else ""
    table = operators.module(module.kind + mode) or operators.module(module.kind)
    if table is None:
        return _block_forward(run, module, module.leaf, args, keywords, node)
    result = apply(run, table, args, keywords, node, module.leaf, module)
    if overwrites and active is None:
        perhaps_in_place(args, keywords, result)
    return result


DROPOUTS = frozenset(
    f"torch.nn.{name}"
    for name in "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout".split()
)


def drops(probability: Value | None, training: Tri) -> Tri:
    """Whether dropout changes anything: not in evaluation, nor at a probability of zero.

    It then gives back what it was given, whether it works in place or not (tried: torch 2.13).
    """
    known = probability.value if isinstance(probability, Const) else None
    likely = bool(known) if isinstance(known, (int, float)) else None
    if training is False or likely is False:
        return False
    return True if training and likely else None


def perhaps_in_place(args: list[Argument], keywords: Keywords, result: Value) -> None:
    """What was taken to compute a new tensor may have changed its operand instead."""
    given = args[0] if args else keywords.get("input")
    operand = given[0] if given is not None else None
    if isinstance(operand, Opaque):
        perhaps_changed(operand)
    elif isinstance(operand, Tensor):
        operand.storage.maybe += 1
        if isinstance(result, Tensor):
            result.storage.may_be(operand.storage)


class Chain(NamedTuple):
    """The layers of a ``Sequential`` that is being called, with those of the ones within it."""

    site: ast.AST
    given: Storage | None
    """The memory of what it was called on."""
    born: int
    """The number of the first memory that only these layers can hold."""


def _chain(run: Run, module: Module, args: list[Argument], node: ast.AST) -> Value:
    value: Value = args[0][0] if args else Opaque("input")
    expression = args[0][1] if args else _nowhere(node)
    outer = run.chain
    if outer is None or outer.site is not node:
        given = value.storage if isinstance(value, (Tensor, Opaque)) else None
        run.chain = Chain(node, given, Storage().serial)
    try:
        for child in module.items:
            run.charge(1)
            value = call(run, child, [(value, expression)], {}, node)
            if not (isinstance(child, Module) and (child.kind != "user" or keeps_nothing(child))):
                # Whoever wrote that layer may have put away what it gave.
                assert run.chain is not None
                run.chain = run.chain._replace(born=Storage().serial)
    finally:
        if outer is None or outer.site is not node:
            run.chain = outer
    return value


def _note_use(run: Run, layer: Module, args: list[Argument], keywords: Keywords, node: ast.AST) -> None:
    """Note where a layer works in place on what others may hold: not on what only its neighbours had."""
    if layer.created is None:
        return
    given = args[0] if args else keywords.get("input")
    held: ast.expr | None = given[1] if given is not None else None
    chain = run.chain
    if chain is not None and chain.site is node:
        storage = given[0].storage if given is not None and isinstance(given[0], Tensor) else None
        if storage is not None and storage.serial > chain.born:
            return
        if storage is None or storage is not chain.given:
            held = None
    run.overwriters.setdefault(layer.created, {})[node] = held


def _block_forward(
    run: Run, module: Module, leaf: Leaf | None, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value:
    operands = [o for v, e in [*args, *keywords.values()] for o in operands_of(v, e)]
    slots = [operands, [Operand(leaf, None)] if leaf is not None else []]
    recorded, requires, _ = record(run, module.label, node, slots, None)
    result = Opaque(module.label)
    if recorded is not None:
        recorded.saves = True if requires and leaf is not None and leaf.requires else None
        recorded.opaque = not keeps_nothing(module)
        if leaf is not None and leaf.requires is True:
            recorded.saved += ((leaf.storage, leaf.storage.version, leaf),)
        result.node, result.requires = recorded, requires
    return result


def keeps_nothing(module: Module, seen: set[Module] | None = None) -> bool:
    """Whether a network, with all of its layers, keeps no graph from call to call.

    Those that have been ``seen`` are being asked about already.
    """
    seen = set() if seen is None else seen
    if module in seen:
        return True
    seen.add(module)
    if module.kind == "user":
        if module.cls is None or not _leaves_itself_alone(module.cls):
            return False
    elif module.leaf is None and not module.items and module.kind in LAYERED:
        return False
    parts = [*module.items, *(v for v in module.attributes.values() if isinstance(v, (Module, Opaque)))]
    return all(part.stateless() if isinstance(part, Opaque) else _layer(part, seen) for part in parts)


def _layer(part: Value, seen: set[Module]) -> bool:
    return isinstance(part, Module) and (is_plain(part) or keeps_nothing(part, seen))


@lru_cache(maxsize=64)
def _leaves_itself_alone(cls: Class) -> bool:
    """Whether no method of a class but its constructor writes to attributes or to what they hold."""
    if cls.unknown_bases():
        return False
    for method in (node for c in cls.order() for node in c.node.body):
        if getattr(method, "name", "") == "__init__":
            continue
        for node in walk(method):
            if isinstance(node, ast.Global) or (
                isinstance(node, (ast.Attribute, ast.Subscript))
                and (isinstance(node.ctx, ast.Store) or getattr(node, "attr", "") in KEEPING)
                and _of_self(node)
            ):
                return False
    return True


def _of_self(node: ast.expr) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"


KEEPING = frozenset("append extend insert add update setdefault register_buffer __setattr__ setattr".split())
"""Methods by which something is put away in a list, a dict or an object."""


def decorate(run: Run, function: Value, decorator: ast.expr, frame: Frame) -> Value:
    """Apply a decorator; one that is not known is taken to keep the function's meaning."""
    value = run.evaluate(decorator, frame)
    if isinstance(value, GradMode) and isinstance(function, Function):
        function.graph_free = value.enabled is False
    elif isinstance(value, External) and isinstance(function, Function):
        if value.name == "builtins.property" or value.name.endswith("cached_property"):
            return Property(function)
        if value.name in ("builtins.staticmethod", "builtins.classmethod"):
            return Static(function, value.name.endswith("classmethod"))
        if value.name in ("torch.no_grad", "torch.inference_mode"):
            function.graph_free = True
        if value.name in ("contextlib.contextmanager", "contextlib.asynccontextmanager"):
            function.context = True
    return function


# ---------------------------------------------------------------------- methods

MODULE_METHODS = frozenset(
    """parameters named_parameters zero_grad train eval to cuda cpu float double half bfloat16 type apply
    share_memory requires_grad_ state_dict load_state_dict named_modules modules children named_children
    register_buffer register_parameter add_module register_module buffers named_buffers append extend insert
    items values keys get_submodule get_parameter register_forward_hook register_full_backward_hook
    register_backward_hook register_forward_pre_hook set_extra_state compile to_empty pop update
    get_extra_state register_full_backward_pre_hook register_comm_hook _set_static_graph
    _get_name extra_repr manual_backward optimizers flatten_parameters""".split()
)

SAME = frozenset(
    """to cuda cpu float double half bfloat16 type contiguous type_as pin_memory share_memory
    train eval apply share_memory_ compile to_empty""".split()
)
"""Methods whose result is, to autograd, the value itself."""

CONTEXT = frozenset("save_for_backward mark_dirty mark_non_differentiable set_materialize_grads".split())
"""Methods by which an operation of the project says what its own backward needs."""

DENSITIES = frozenset({"log_prob", "entropy", "rsample", "cdf", "icdf"})
"""Methods of a distribution through which gradients reach its parameters."""

PLAIN = frozenset(
    """item tolist numpy size dim numel nelement element_size stride data_ptr is_contiguous get_device
    is_floating_point __len__ new_zeros new_ones new_empty new_tensor new_full new argmax argmin
    argsort""".split()
)
"""Methods of a tensor whose result carries no graph."""


def call_method(
    run: Run,
    base: Value,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool = False,
) -> Value:
    """``base.name(...)``."""
    if isinstance(base, External):
        return library.call_external(run, member(base.name, name).name, args, keywords, node, discarded)
    if isinstance(base, imports.Namespace):
        return call(run, _member(run, base, name), args, keywords, node, discarded)
    if isinstance(base, Tensor):
        return _tensor_method(run, base, name, args, keywords, node)
    if isinstance(base, Opaque):
        if discarded and base.made_from is not None:
            # What is told to reset itself may be a part of the network.
            forget_state(base.made_from, 3)
        result = _opaque_method(run, base, name, args, keywords, node, discarded)
        return _made(result, base, args)
    if isinstance(base, Learner):
        own = frameworks.learner_method(run, base, name, args, keywords, node)
        if own is not None:
            return own
        result = call_method(run, base.module, name, args, keywords, node, discarded)
        return base if result is base.module else result
    if isinstance(base, Record) and (name in base.items or not hasattr(dict, name)):
        return call(run, attribute(run, base, name, node), args, keywords, node, discarded)
    if isinstance(base, Process) and name in ("start", "run"):
        library.start(run, base, node)
        return NONE
    if isinstance(base, (Module, Instance)):
        held = base.attributes.get(name)
        if held is None and base.cls is not None and base.cls.lookup(name) is not None:
            held = _object_attribute(run, base, name, node)
        if held is not None:
            if isinstance(held, Opaque) and held.owner is None and isinstance(base, Module):
                held.owner = base
            return call(run, held, args, keywords, node, discarded)
        if name in CONTEXT and base.cls is not None and FUNCTION in base.cls.outside():
            return NONE
        if isinstance(base, Module):
            return module_method(run, base, name, args, keywords, node, discarded)
        if name == "start" and not library.PROCESSES.isdisjoint(base.cls.outside()):
            body = base.cls.lookup("run")
            if isinstance(body, Function):
                library.start(run, body.bind(base), node)
            return NONE
        if base.inherited is not None:
            return call_method(run, base.inherited, name, args, keywords, node, discarded)
        if _told(name, args, keywords, discarded):
            return Opaque(name)  # a logger that hands on what it is asked for, by ``__getattr__``
        if discarded and name not in LOGGING and base.cls.unknown_bases():
            # What is inherited from somewhere that cannot be seen has all of the object in hand.
            poison(run, [base], node)
        return call_opaque(run, _inherited(base, name), args, keywords, node, discarded)
    if isinstance(base, Optimizer):
        return _optimizer_method(run, base, name, args, keywords, node)
    if isinstance(base, Each):
        return _each_method(run, base, name, args, keywords, node)
    if isinstance(base, Sequence):
        if run.scenario.chosen and base.kind == "tuple" and not hasattr(tuple, name):
            used_nothing(run, node)  # Nor has a tuple what is asked for: the choice does not fit.
        return _sequence_method(run, base, name, args)
    if isinstance(base, Mapping):
        return _mapping_method(run, base, name, args, keywords)
    if isinstance(base, Params) and name in ("items", "values"):
        return Params(base.leaves, base.complete, named=name == "items")  # a dict of them, by their names
    if isinstance(base, Attributes):
        return _attributes_method(run, base.holder, name, args, keywords)
    if isinstance(base, Scaler):
        known = adjusting.scaler_method(run, base, name, args, node)
        return Opaque(name) if known is None else known
    if isinstance(base, Super):
        return _super_method(run, base, name, args, keywords, node)
    if isinstance(base, Class):
        found = base.lookup(name)
        if isinstance(found, Function):
            return call_function(run, found, args, keywords, node)
        if isinstance(found, Static):
            target = found.function.bind(base) if found.of_class else found.function
            return call_function(run, target, args, keywords, node)
        return call_opaque(run, Opaque(name), args, keywords, node, discarded)
    if isinstance(base, Const) and isinstance(base.value, str):
        parts = [(options.given(value), expression) for value, expression in args]
        return options.text(_text_method(base.value, name, parts, keywords), [value for value, _ in args])
    if base is NONE:
        used_nothing(run, node)
    return call_opaque(run, Opaque(name), args, keywords, node, discarded)


def used_nothing(run: Run, node: ast.AST) -> None:
    """None is used as if it were something: subscripted, unpacked, computed with, asked for a method.

    Where only this way round leaves it at None, Python raises. In the main run something that cannot be seen
    must have replaced it.
    """
    first = run.scenario.first
    if first is not None and node not in first.nothing:
        raise Impossible
    run.nothing.add(node)


def _made(result: Value, by: Opaque, args: list[Argument]) -> Value:
    """``result``, which remembers the network that it may hold parts of."""
    if result.__class__ is Opaque and result is not by and result.made_from is None:
        handed = next((value for value, _ in args if isinstance(value, Module)), None)
        result.made_from = handed or by.made_from
    return result


TEXT = frozenset(
    "lower upper capitalize title strip lstrip rstrip startswith endswith replace format split".split()
)
"""Methods of texts that give what is known where everything is."""


def _text_method(text: str, name: str, args: list[Argument], keywords: Keywords) -> Value:
    if name == "join" and len(args) == 1:
        parts = known_items(args[0][0])
        if parts is None:
            return Opaque("text")
        return spelled("", lambda: text.join(parts), length(parts) + len(parts) * len(text))
    given = {key: value.value for key, (value, _) in keywords.items() if type(value) is Const}
    fixed = [value for value, _ in args if not isinstance(value, Length)]
    constants = [value.value for value in fixed if isinstance(value, Const)]
    if name not in TEXT or len(constants) < len(args) or len(given) < len(keywords):
        return Opaque("text")
    # Every character may be replaced, and every placeholder filled.
    size = (len(text) + 1) * max(map(length, (*constants, *given.values())), default=1)
    size = size if name == "replace" else len(text) + text.count("{") * size // (len(text) + 1)
    found = spelled(text, lambda: getattr(text, name)(*constants, **given), size)
    if isinstance(found, Const) and isinstance(found.value, list):
        return Sequence("list", [Const(part) for part in found.value])
    return found


def _inherit(run: Run, of: Instance, args: list[Argument], keywords: Keywords, node: ast.AST) -> None:
    """Set up what an object inherits from a class of torch's that the model knows: a distribution."""
    if any(name.startswith("torch.distributions.") for name in of.cls.outside()):
        of.inherited = library.distribution(run, args, keywords, node)


def _inherited(instance: Instance, name: str) -> Opaque:
    """A method from a class outside of the project; one of an environment or the like has no weights."""
    value = Opaque(name)
    roots = {base.split(".", 1)[0] for base in instance.cls.outside()}
    value.harmless = bool(roots) and roots <= library.HARMLESS - library.NETWORKS
    instance.attributes[name] = value
    return value


def _tensor_method(
    run: Run, base: Tensor, name: str, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value:
    receiver = _receiver(node)
    if name == "backward":
        backward(run, [(base, receiver)], args[0:], keywords, node)
        return NONE
    if name in ("double", "half", "bfloat16"):
        return _converted(run, base, name, node)
    if name in SAME:
        return base
    if name in PLAIN:
        return Opaque(name)
    if name == "requires_grad_":
        set_requires(run, base, [base.leaf] if base.leaf else [], args[0][0] if args else TRUE, node)
        return base
    if name == "detach_":
        base.node, base.leaf, base.requires = None, None, False
        return base
    if name in ("register_hook", "retain_grad"):
        if name == "register_hook" and base.node is not None:
            hook = args[0][0] if args else NONE
            if not isinstance(hook, Function) or run.relevance.differentiates(hook.node):
                base.node.maybe_freed = True
            run.hooked.add(base.node)
        return NONE
    if name == "unbind" or name == "split" or name == "chunk":
        table = operators.method(name)
        if table is not None:
            count = args[0][0] if args else NONE
            result = apply(run, table, [(base, receiver), *args], keywords, node)
            if name == "chunk" and isinstance(count, Const) and isinstance(result, Sequence) and result.items:
                number = count.value if isinstance(count.value, int) else 0
                if 0 < number <= 16:
                    return Sequence("tuple", result.items * number)
            return result
    table = _overload(name, args, keywords)
    if table is not None:
        return apply(run, table, [(base, receiver), *args], keywords, node)
    return unknown(run, [(base, receiver), *args], keywords, node, name)


def _converted(run: Run, base: Tensor, name: str, node: ast.AST) -> Tensor:
    """A copy in another precision; the conversion saves nothing."""
    if run.grad_enabled is False:
        return Tensor()
    if base.leaf is None:
        return Tensor(base.node, base.requires)
    made = run.node(name, node)
    made.leaves = ((base.leaf, base.leaf.requires is True, _receiver(node)),)
    return Tensor(made, base.leaf.requires)


def _overload(name: str, args: list[Argument], keywords: Keywords) -> Operator | None:
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


def _receiver(node: ast.AST) -> ast.expr:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value
    return _nowhere(node)


def _opaque_method(
    run: Run,
    base: Opaque,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    receiver = _receiver(node)
    held = base.attributes.get(name)
    if held is not None and not (isinstance(held, Opaque) and held.label == name):
        return call(run, held, args, keywords, node, discarded)
    if isinstance(base, options.Parser):
        return options.method(run, base, name, keywords)
    if isinstance(base, options.Option) and isinstance(base.default.value, str) and name in TEXT:
        parts = [(options.given(value), expression) for value, expression in args]
        text = _text_method(base.default.value, name, parts, keywords)
        if isinstance(text, Const):
            return options.text(text, [base])
    if base.harmless:
        if isinstance(base, Schedule) and name == "step":
            adjusting.advance(run, base, args, keywords, node)
        told = Opaque(name)
        told.harmless = True
        return told
    if name == "get" and not keywords and base.node is None:
        setting = options.setting(base, [value for value, _ in args])
        if setting is not None:
            return setting
    given = [value for value, _ in [*args, *keywords.values()]]
    fills = name.endswith("_") and operators.method(name) is not None
    if fills and base.node is None and any(t.node is not None for v in given for t in tensors_in(v)):
        # Memory that is made somewhere else, and filled here: the graph of what it is filled with.
        filled = unknown(run, args, keywords, node, name)
        perhaps_changed(base)
        if isinstance(filled, Opaque) and filled.node is not None:
            base.node, base.requires = filled.node, filled.requires
        return base
    clears_or_steps = name == "zero_grad" or (name == "step" and not args)
    if base.leaf is None and (base.optimizer is not None or clears_or_steps):
        optimizer = adopted(run, base)
        if optimizer is None and name == "zero_grad" and base.node is None:
            optimizer = _met(run, base, node)
        if optimizer is not None and (not optimizer.state.stranger or name in ("step", "zero_grad")):
            return _optimizer_method(run, optimizer, name, args, keywords, node)
    if base.node is None and base.leaf is None and _told(name, args, keywords, discarded):
        return Opaque(name)
    if name in ("backward", "manual_backward"):
        tensors: list[Argument] = [
            (v, e) for v, e in args[:1] if isinstance(v, Tensor) or (isinstance(v, Opaque) and v.node)
        ]
        if tensors and base.node is None:
            backward(run, tensors, [], keywords, node)
        else:
            backward(run, [(base, receiver)], args, keywords, node)
        return NONE
    if name in ("parameters", "named_parameters") and keywords.keys() <= {"recurse", "prefix"}:
        run.mutations += 1
        base.node, base.requires = None, False  # It is a network, and no tensor.
        return Params([base.block(node)], True, name == "named_parameters")
    if name in ("forward", "__call__") and base.leaf is not None:
        return call_opaque(run, base, args, keywords, node, discarded)
    if name == "zero_grad":
        if base.leaf is not None:
            zero_grad(run, base, [base.leaf], node)
        else:
            _unknown_zero(run, base, node)
        return NONE
    if name == "unscale_" or (name in ("step", "update") and base in run.scaled.values()):
        scaled = adjusting.scaler_method(run, base, name, args, node)
        if scaled is not None:
            return scaled
    if name == "step":
        for value, _ in args[:1]:
            if isinstance(value, Optimizer):
                step(run, value, node, base)
                return Opaque("step")
            if isinstance(value, Function):
                call_function(run, value, [], {}, node)
        if not args:
            return Opaque("step")
    if name == "detach":
        if base.storage is None:
            base.storage = Storage()
        return Tensor(None, False, base.storage)
    if name in SAME and not discarded:
        return base
    if name in ("train", "eval", "apply", "cuda", "to", "float", "half", "double"):
        return base
    if name == "requires_grad_" and base.leaf is not None:
        set_requires(run, base, [base.leaf], args[0][0] if args else TRUE, node)
        return base
    if name == "load_state_dict" and base.leaf is not None:
        run.change(Tensor.of_leaf(base.leaf), node, "load_state_dict")
        return NONE
    if name in PLAIN or name in ("sample", "state_dict", "no_sync", "accumulate"):
        return Opaque(name)
    if name in frameworks.PREPARING and not discarded:
        wrapped = frameworks.prepared(args)
        if wrapped is not None:
            return wrapped
    if name.startswith("clip_grad"):
        return adjusting.clip(run, args, keywords, node)
    if name == "scale" and len(args) == 1 and base.node is None:
        if isinstance(args[0][0], (Tensor, Opaque)):
            return adjusting.scale(run, base, args, node)
    if base.label == "distribution" and base.node is not None and name in DENSITIES:
        made = run.node(name, node)
        made.saves = None
        operands = [o for v, e in [(base, receiver), *args] for o in operands_of(v, e)]
        made.edges = tuple(
            Edge(o.node, o.requires is True, o.expression) for o in operands if o.node is not None
        )
        return Tensor(made, base.requires)
    if base.node is not None:
        table = _overload(name, args, keywords)
        if table is not None and table.result in ("new", "view", "either", "detached"):
            if table.result == "detached" or not table.differentiable:
                return Tensor()
            return apply(run, table, [(base, receiver), *args], keywords, node)
        if table is not None and table.result == "inplace":
            return base
        return unknown(run, args, keywords, node, name, base.node)
    if name[-1:] == "_":
        # Torch's own name for what is done in place.
        perhaps_changed(base)
    network = base if base.leaf is not None else base.parent
    if network is not None and network.leaf is not None and args and not discarded:
        # A method of an unknown network: what comes out was computed with some of its parameters.
        result = unknown(run, args, keywords, node, name, certain=False)
        if isinstance(result, Opaque) and run.grad_enabled is not False:
            if result.node is None:
                _may_carry(run, result, node)
            assert result.node is not None
            result.node.leaves += ((network.leaf, False, None),)
            result.node.opaque, result.requires = not network.stateless(), None
        return result
    child = base.attributes.get(name)
    function = child if isinstance(child, Opaque) else Opaque(name, None, base)
    base.attributes[name] = function
    if function.owner is None and base.owner is not None:
        function.owner = base.owner
    result = call_opaque(run, function, args, keywords, node, discarded)
    if result.__class__ is Opaque and name == "configure_optimizers":
        # What Lightning calls it, and many without Lightning: the optimizer of this network, if it steps.
        result.handed = node, Params([base.block(node)])
    if result.__class__ is Opaque and name in SHARING:
        if base.storage is None:
            base.storage = Storage()
        result.storage = base.storage
    return result


def _told(name: str, args: list[Argument], keywords: Keywords, discarded: bool) -> bool:
    """Whether a call says something under a name: ``log("loss", loss, step)``, ``set_postfix(loss=loss)``.

    What is called ``log_...`` may be shown a network as well, and says what nobody else makes use of
    without a name too: ``writer.log_validation(loss, network, step)``.
    """
    given = [v for v, _ in [*args, *keywords.values()]]
    if not (name in LOGGING or name.startswith("log_")) or any(
        isinstance(v, (Optimizer, Function)) for v in given
    ):
        return False
    if any(isinstance(v, Module) for v in given) and not name.startswith("log_"):
        return False
    if not args:
        return bool(keywords)
    if discarded and name.startswith("log_"):
        return True
    value, expression = args[0]
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Mod, ast.Add)):
        expression = expression.left  # "conv%d" % number
    if isinstance(expression, ast.Constant):
        return isinstance(expression.value, str)
    return isinstance(expression, ast.JoinedStr) or (
        isinstance(value, Const) and isinstance(value.value, str)
    )


def _met(run: Run, base: Opaque, node: ast.AST) -> Optimizer | None:
    """What somebody handed in and is told to clear gradients: if it also steps, it is an optimizer.

    Where others are known, nothing is said of it but that it may clear theirs.
    """
    if run.optimizers:
        return None
    state = OptimizerState(base.label, node, run.path)
    owned = Leaf(base.label, None)
    owned.grad = {e: Contribution(False) for e in run.events if isinstance(e, Backward) and e.accumulates}
    state.leaves, state.stranger = [owned], True
    run.strangers.append(state)
    base.optimizer = Optimizer(state)
    return base.optimizer


def _unknown_zero(run: Run, base: Opaque, node: ast.AST) -> None:
    """``zero_grad`` on something unknown: it may clear any gradient that is in the run."""
    for state in [*(o.state for o in run.optimizers), *run.strangers]:
        zero_grad(run, base, state.leaves, node, certain=False)


def module_method(
    run: Run,
    base: Module,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    if name in ("parameters", "named_parameters"):
        return Params(module_leaves(base), True, name == "named_parameters")
    if name in SAME or name in ("share_memory",):
        if name in ("train", "eval"):
            wanted = option(args, keywords, "mode", 0) if name == "train" else FALSE
            set_mode(run, base, flag(wanted, True))
        if name == "apply":
            poison_versions(run, base)
        return base
    if name == "zero_grad":
        zero_grad(run, base, module_leaves(base), node, _to_none(args, keywords))
        return NONE
    if name == "requires_grad_":
        wanted = args[0][0] if args else keywords.get("requires_grad", (TRUE, node))[0]
        set_requires(run, base, module_leaves(base), wanted, node)
        return base
    if name in ("forward", "__call__"):
        return call_module(run, base, args, keywords, node)
    if name == "load_state_dict":
        for leaf in module_leaves(base):
            run.change(Tensor.of_leaf(leaf), node, "load_state_dict")
        return NONE
    if name in ("register_buffer", "register_parameter", "add_module", "register_module") and len(args) >= 2:
        key = args[0][0]
        if isinstance(key, Const) and isinstance(key.value, str):
            set_attribute(run, base, key.value, args[1][0], args[1][1])
            if isinstance(args[1][0], (Module, Opaque)) and base.kind in LAYERED:
                add_layers(base, [args[1][0]])
        elif isinstance(args[1][0], Module) or (isinstance(args[1][0], Opaque) and base.kind in LAYERED):
            add_layers(base, [args[1][0]])
        return NONE
    if name == "append" and args:
        add_layers(base, [args[0][0]])
        return base
    if name == "extend" and args:
        items, element = iterate(run, args[0][0], None)
        add_layers(base, [element(0)] if items is None else items)
        return base
    if name == "update" and args and isinstance(args[0][0], Mapping) and base.kind == "torch.nn.ModuleDict":
        run.mutations += 1
        hold(base, args[0][0].items.values())
        base.attributes.update({str(key): layer for key, layer in args[0][0].items.items()})
        return NONE
    if name == "modules":
        return Sequence("list", list(_below(base, {})))
    if name in ("children", "values"):
        direct: list[Value] = [
            v for v in [*base.items, *base.attributes.values()] if isinstance(v, (Module, Opaque))
        ]
        return Sequence("list", direct)
    if name in ("named_children", "items", "named_modules"):
        pairs: list[Value] = [
            Sequence("tuple", [Const(k), v]) for k, v in base.attributes.items() if isinstance(v, Module)
        ]
        return Sequence("list", pairs, name == "named_modules")
    if name == "keys":
        return Sequence("list", [Const(k) for k in base.attributes])
    if name == "manual_backward" and args:
        backward(run, [args[0]], [], keywords, node)
        return NONE
    known = frameworks.lightning(run, base, name, args, node)
    if known is not None:
        return known
    if name in MODULE_METHODS:
        return Opaque(name)
    fresh = Opaque(name)
    fresh.owner = base if not discarded else None
    base.attributes[name] = fresh
    if discarded:
        poison(run, [base, *(v for v, _ in args), *(v for v, _ in keywords.values())], node)
        return NONE
    return call_opaque(run, fresh, args, keywords, node, discarded)


def set_mode(run: Run, module: Module, training: Tri) -> None:
    """Put a network and everything in it into training or evaluation mode, or into one that is not known."""
    for part_ in _below(module, {}):
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
            elif isinstance(value, Opaque):
                seen[value] = None
    return seen


def poison_versions(run: Run, module: Module) -> None:
    """Weights may have been written in place by something unknown (weight initialisation)."""
    for leaf in module_leaves(module):
        leaf.storage.maybe += 1


def _to_none(args: list[Argument], keywords: Keywords) -> bool:
    """Whether ``zero_grad(set_to_none)`` leaves no gradient (the default) or one that is zero."""
    given = args[0] if args else keywords.get("set_to_none")
    return given is None or not (isinstance(given[0], Const) and given[0].value is False)


def _optimizer_method(
    run: Run, base: Optimizer, name: str, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value:
    own = base.state.cls.lookup(name) if isinstance(base.state.cls, Class) else None
    if name == "zero_grad":
        zero_grad(run, base, list(base.state.leaves), node, _to_none(args, keywords), own is None)
        return NONE
    if own is not None and name != "step":
        if not isinstance(own, Function) or _touches_gradients(own.node):
            base.state.groups_known = False  # It may have stepped, or cleared what it likes.
        return Opaque(name)
    if name == "step":
        closure = args[0][0] if args else keywords.get("closure", (NONE, node))[0]
        result: Value = NONE
        if isinstance(closure, (Function, Partial)):
            result = call(run, closure, [], {}, node)
            if _evaluates_again(base):
                for leaf in base.state.owned():
                    run.change(Tensor.of_leaf(leaf), node, "step")
                call(run, closure, [], {}, node)
        step(run, base, node)
        return result
    if name == "add_param_group" and args:
        leaves, known = leaves_of(args[0][0])
        base.state.leaves += leaves
        base.state.groups_known = base.state.groups_known and known
        return NONE
    if name.startswith("register_"):
        # A hook may do anything to the gradients.
        base.state.groups_known = False
    return Opaque(name)


def _touches_gradients(definition: ast.AST) -> bool:
    """Whether a method of somebody's own optimizer may do to parameters or gradients what a step does."""
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("grad", "data", "step", "zero_grad", "backward", "copy_")
        for n in walk(definition)
    )


def _evaluates_again(optimizer: Optimizer) -> bool:
    """Whether a step moves the weights and calls its closure again: LBFGS, unless it is told not to."""
    made = optimizer.state.created
    limits = [k.value for k in made.keywords if k.arg == "max_iter"] if isinstance(made, ast.Call) else []
    once = bool(limits) and isinstance(limits[0], ast.Constant) and limits[0].value == 1
    return optimizer.state.label == "LBFGS" and not once


NUMBERS = frozenset("numpy item tolist norm mean sum abs std var max min square pow sqrt".split())
"""Methods of a gradient whose result is read only: nobody changes the gradient through it."""


def _each_method(
    run: Run, base: Each, name: str, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value:
    if name == "requires_grad_":
        set_requires(run, base, base.leaves, args[0][0] if args else TRUE, node)
        return base
    if base.view == "grad":
        if name == "zero_" or (
            name in ("fill_", "mul_") and args and isinstance(args[0][0], Const) and args[0][0].value == 0
        ):
            zero_grad(run, base, base.leaves, node, to_none=False)
        if name in NUMBERS:
            return Opaque(name)
        graph = [o for v, e in [*args, *keywords.values()] for o in operands_of(v, e)]
        if name.endswith("_") or all(o.requires is False for o in graph):
            return Each(base.leaves, "grad")
    if name in ("detach_", "detach", "clone"):
        return base if base.view else Each(base.leaves, "data")
    if name in ("zero_grad",):
        zero_grad(run, base, base.leaves, node)
        return NONE
    if base.view == "data" and name.endswith("_") and not name.endswith("__"):
        return base
    if base.view == "" and name.endswith("_") and not name.endswith("__"):
        each_changed(run, base, node)
        return base
    table = _overload(name, args, keywords)
    if table is not None and table.differentiable:
        # What is computed of data has the graph of the other operands.
        of: Value = base if base.view == "" else Tensor()
        return apply(run, table, [(of, _receiver(node)), *args], keywords, node)
    return Opaque(name)


def _sequence_method(run: Run, base: Sequence, name: str, args: list[Argument]) -> Value:
    run.appended.append(base)
    if name in ("append", "appendleft", "add") and args:
        base.add([args[0][0]])
        base.grows |= base.loops is not None and run.symbolic > base.loops
        return NONE
    if name in ("extend", "update") and args:
        extend(run, base, args[0][0])
        return NONE
    if name == "insert" and len(args) == 2:
        at = args[0][0]
        base.items.insert(at.value if isinstance(at, Const) and isinstance(at.value, int) else 0, args[1][0])
        return NONE
    if name in ("pop", "popleft"):
        at = args[0][0] if args else Const(-1 if name == "pop" else 0)
        if (
            isinstance(at, Const)
            and isinstance(at.value, int)
            and -len(base.items) <= at.value < len(base.items)
        ):
            return _take_out(base, at.value)
        return Opaque("item")
    if name == "clear":
        base.items.clear()
        base.open = base.grows = False
        return NONE
    if name in ("copy", "__iter__"):
        return Sequence(base.kind, list(base.items), base.open)
    if name in ("reverse", "sort"):
        base.items.reverse() if name == "reverse" else None
        return NONE
    return Opaque(name)


def _mapping_method(run: Run, base: Mapping, name: str, args: list[Argument], keywords: Keywords) -> Value:
    if name in ("values", "items", "keys"):
        items: list[Value] = list(base.items.values())
        if name == "keys":
            items = [Const(k) for k in base.items]
        elif name == "items":
            items = [Sequence("tuple", [Const(k), v]) for k, v in base.items.items()]
        return Sequence("list", items, base.open)
    if name in ("get", "pop", "setdefault") and args:
        key = args[0][0]
        if isinstance(key, Const) and isinstance(key.value, (str, int, float, bool, type(None))):
            if key.value in base.items:
                return base.items.pop(key.value) if name == "pop" else base.items[key.value]
            default = args[1][0] if len(args) > 1 else NONE
            if name == "setdefault":
                base.items[key.value] = default
            return Opaque("item") if base.open else default
        return Opaque("item")
    if name == "update":
        for value, _ in args:
            if isinstance(value, Mapping):
                base.items.update(value.items)
                base.open = base.open or value.open
            else:
                base.open = True
        base.items.update({k: v for k, (v, _) in keywords.items()})
        return NONE
    if name == "copy":
        return Mapping(dict(base.items), base.open)
    if name == "clear":
        base.items.clear()
        return NONE
    return Opaque(name)


def _attributes_method(
    run: Run,
    holder: Module | Instance | External | imports.Namespace,
    name: str,
    args: list[Argument],
    keywords: Keywords,
) -> Value:
    """A method of ``holder.__dict__``: ``update(locals())`` sets attributes past ``nn.Module``'s own eyes."""
    if isinstance(holder, imports.Namespace) and name == "items":
        # Who goes through a module looks for a class that is defined there.
        defined = [
            Sequence("tuple", [Const(key), value])
            for key, value in holder.frame.variables.items()
            if isinstance(value, Class) and value.frame is holder.frame
        ]
        return Sequence("list", [*defined])
    if not isinstance(holder, (Module, Instance)):
        return Opaque(name)
    if name == "update":
        run.mutations += 1
        for value, _ in args:
            if isinstance(value, Mapping):
                _set_past(holder, {k: v for k, v in value.items.items() if isinstance(k, str)})
            if isinstance(holder, Module) and not (isinstance(value, Mapping) and not value.open):
                holder.rest = holder.rest or Leaf(f"the rest of {holder.label}", None)
        _set_past(holder, {k: v for k, (v, _) in keywords.items() if k != "**"})
    elif name == "get" and args and isinstance(args[0][0], Const):
        held = holder.attributes.get(args[0][0].value)
        if held is not None:
            return held
    return Opaque(name)


def _set_past(holder: Module | Instance, given: dict[str, Value]) -> None:
    """Set attributes through ``__dict__``: of a network, none of them becomes a part."""
    for name, value in given.items():
        if isinstance(holder, Instance) or isinstance(value, (Const, Function, Class, External)):
            holder.attributes[name] = value
        elif value is not holder:
            holder.attributes[name] = Opaque(name)


def _super_method(
    run: Run, base: Super, name: str, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value:
    of = base.of
    cls = of.cls if isinstance(of, (Module, Instance)) else None
    if cls is not None:
        found = cls.lookup(name, base.after or cls)
        if found is None and name == "__call__" and isinstance(of, Module):
            found = cls.lookup("forward")
        if isinstance(found, Function):
            return call_function(run, found.bind(of), args, keywords, node)
    if isinstance(of, Instance):
        if name == "__init__":
            _inherit(run, of, args, keywords, node)
        elif of.inherited is not None:
            return call_method(run, of.inherited, name, args, keywords, node, False)
    if name == "__init__":
        if isinstance(of, Module) and args and cls is not None:
            # nn.Sequential.__init__(*layers) by a subclass.
            of.items += [v for v, _ in args if isinstance(v, Module)]
        return NONE
    if isinstance(of, Module) and name in MODULE_METHODS:
        return module_method(run, of, name, args, keywords, node, False)
    return call_opaque(run, Opaque(name), args, keywords, node, True)


# Last, since it needs what is defined above. It is asked at every call: an import in there costs as much as
# the answer.
from gradfix.autograd import library  # noqa: E402
