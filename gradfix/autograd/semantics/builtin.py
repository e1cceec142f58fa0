"""Builtins, and what ``itertools`` and ``functools`` have."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.autograd import imports, options
from gradfix.autograd.arguments import Argument, Keywords, option
from gradfix.autograd.parameters import leaves_of
from gradfix.autograd.run import Exited, used_nothing
from gradfix.autograd.semantics.arithmetic import binary
from gradfix.autograd.semantics.attributes import bind_weight, set_attribute
from gradfix.autograd.semantics.dispatch import attribute, call, iterate, methods_of
from gradfix.autograd.semantics.layers import canonical_module
from gradfix.autograd.semantics.names import MODULE_METHODS
from gradfix.autograd.semantics.operations import operands_of, unknown
from gradfix.autograd.semantics.statelessness import keeps_nothing
from gradfix.autograd.semantics.texts import text_method
from gradfix.autograd.semantics.unknown import call_opaque
from gradfix.autograd.values import (
    FALSE,
    NONE,
    TRUE,
    Attributes,
    Class,
    Const,
    Each,
    External,
    Instance,
    Iteration,
    Length,
    Mapping,
    Module,
    Namespace,
    Opaque,
    Params,
    Partial,
    Sequence,
    Tensor,
    Value,
    tensors_in,
)

if TYPE_CHECKING:
    from gradfix.autograd.interpreter import Run
    from gradfix.autograd.semantics.dispatch import Handler


@methods_of(Const)
def _constant_method(
    run: Run,
    base: Const,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    if isinstance(base.value, str):
        parts = [(options.given(value), expression) for value, expression in args]
        return options.text(text_method(base.value, name, parts, keywords), [value for value, _ in args])
    if base is NONE:
        used_nothing(run, node)
    return call_opaque(run, Opaque(name), args, keywords, node, discarded)


def make_partial(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if not args:
        return Opaque("partial")
    return Partial(args[0][0], args[1:], {k: v for k, (v, _) in keywords.items()})


def chain(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    values = [v for v, _ in args]
    if any(isinstance(v, (Params, Each)) for v in values):
        leaves, complete = leaves_of(Sequence("list", values))
        return Params(leaves, complete)
    items: list[Value] = []
    for value in values:
        part, _ = iterate(run, value, None)
        if part is None:
            return Opaque("chain")
        items += part
    return Sequence("list", items)


def chain_from_iterable(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    items, _ = iterate(run, args[0][0], None) if args else (None, None)
    if items is None:
        return Opaque("chain")
    return chain(run, [(v, args[0][1]) for v in items], {}, node)


def make_range(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    bounds = [v.value for v, _ in args if isinstance(v, Const) and isinstance(v.value, int)]
    # Of many passes that an option asks for the first ones show as much.
    most = 3 if any(isinstance(v, options.Default) for v, _ in args) else 64
    if len(bounds) == len(args) and 1 <= len(args) <= 3:
        try:
            numbers = range(*bounds)
        except ValueError:
            return Opaque("range")
        if len(numbers) <= most:
            return Sequence("list", [Const(k) for k in numbers])
    first = args[0][0] if len(args) > 1 else Const(0)
    if len(args) <= 2 and isinstance(first, Const) and isinstance(first.value, int):
        return Iteration("range", [], first.value)
    return Opaque("range")


def make_iteration(kind: str) -> Handler:
    def handler(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
        start: int | None = 0
        parts = [v for v, _ in args]
        if kind == "enumerate":
            given = option(args, keywords, "start", 1)
            parts = parts[:1]
            if given is not None:
                start = given.value if isinstance(given, Const) and isinstance(given.value, int) else None
        return Iteration(kind, parts, start) if parts else Opaque(kind)

    return handler


SOME = {
    "torch.optim": "torch.optim.Optimizer",
    "torch.optim.lr_scheduler": "torch.optim.lr_scheduler.LRScheduler",
}
"""What stands for whatever a module of torch is asked for by a name that is not known."""


def get_by_name(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) >= 2 and isinstance(args[1][0], Const) and isinstance(args[1][0].value, str):
        return attribute(run, args[0][0], args[1][0].value, node)
    if len(args) >= 2 and isinstance(args[0][0], Namespace):
        name = options.given(args[1][0])
        if isinstance(name, Const) and isinstance(name.value, str):
            return attribute(run, args[0][0], name.value, node)
    if args and isinstance(args[0][0], External) and args[0][0].name in SOME:
        return External(SOME[args[0][0].name])
    found = Opaque("attribute")
    if args and isinstance(args[0][0], Module):
        # One of its layers, most likely; at least nobody else's.
        found.owner = args[0][0]
        found.library = keeps_nothing(args[0][0])
    return found


def set_by_name(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) == 3:
        name = args[1][0]
        if isinstance(name, Const) and isinstance(name.value, str):
            set_attribute(run, args[0][0], name.value, args[2][0], args[2][1])
        elif isinstance(args[0][0], (Module, Instance)) and isinstance(args[2][0], (Module, Opaque)):
            args[0][0].attributes[f"<{len(args[0][0].attributes)}>"] = args[2][0]
        elif isinstance(args[0][0], Module):
            bind_weight(run, args[2][0])
    return NONE


def end(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    run.turned_back()
    raise Exited


def length_of(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    value = args[0][0] if args else NONE
    if isinstance(value, Sequence) and not value.open:
        return Length(len(value.items)) if value.grows else Const(len(value.items))
    if isinstance(value, Module) and value.items and value.leaf is None:
        return Const(len(value.items))
    return Opaque("length")


def is_instance(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) != 2:
        return Opaque("condition")
    value, kind = args[0][0], args[1][0]
    kinds = kind.items if isinstance(kind, Sequence) else [kind]
    if isinstance(value, Opaque) or (isinstance(value, Tensor) and value.requires is None):
        return Opaque("condition")
    answer = False
    for one in kinds:
        name = one.name if isinstance(one, External) else ""
        if isinstance(one, Class):
            answer |= (
                isinstance(value, (Module, Instance)) and value.cls is not None and one in value.cls.order()
            )
        elif name in ("torch.Tensor", "torch.FloatTensor", "torch.autograd.Variable"):
            answer |= isinstance(value, Tensor)
        elif name == "builtins.tuple":
            answer |= isinstance(value, Sequence) and value.kind == "tuple"
        elif name == "builtins.list":
            answer |= isinstance(value, Sequence) and value.kind == "list"
        elif name == "builtins.dict":
            answer |= isinstance(value, Mapping)
        elif name.startswith("torch.nn.") and isinstance(value, Module) and value.kind != "user":
            answer |= canonical_module(name) in (value.kind, "torch.nn.Module")
        elif name == "torch.nn.Module":
            answer |= isinstance(value, Module)
        elif name in ("builtins.int", "builtins.float", "builtins.str", "builtins.bool"):
            answer |= isinstance(value, Const) and type(value.value).__name__ == name[9:]
        else:
            return Opaque("condition")
    return Const(answer)


def has_attribute(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) == 2 and isinstance(args[1][0], Const) and isinstance(args[0][0], (Module, Instance)):
        name = args[1][0].value
        cls = args[0][0].cls
        if name in args[0][0].attributes or (cls is not None and cls.lookup(name) is not None):
            return TRUE
        if isinstance(args[0][0], Module) and name in MODULE_METHODS:
            return TRUE
        if cls is None or not cls.unknown_bases():
            return FALSE
    return Opaque("condition")


def sum_of(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``sum(losses)``: additions, which save nothing."""

    items, element = iterate(run, args[0][0], args[0][1]) if args else ([], None)
    if items is None:
        assert element is not None
        items = [element(0)]
    if not any(operands_of(i, None) for i in items):
        return Opaque("sum")
    total: Value = args[1][0] if len(args) > 1 else Const(0)
    for value in items:
        total = binary(run, ast.Add(), total, value, args[0][1], args[0][1], node)
    return total


def reduce(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``functools.reduce(function, losses)``: the function of what there is so far and each further one."""
    if len(args) < 2:
        return Opaque("reduce")
    items, element = iterate(run, args[1][0], args[1][1])
    if items is None:
        assert element is not None
        items = [element(0), element(1)]
    items = [*(value for value, _ in args[2:]), *items]
    if not items:
        return Opaque("reduce")
    total = items[0]
    for value in items[1:]:
        total = call(run, args[0][0], [(total, args[1][1]), (value, args[1][1])], {}, node)
    return total


def add(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``operator.add``, which somebody hands to something else."""

    if len(args) != 2:
        return Opaque("add")
    (left, at), (right, beside) = args
    return binary(run, ast.Add(), left, right, at, beside, node)


def next_of(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if not args:
        return Opaque("next")
    value = args[0][0]
    if isinstance(value, Params):
        return Tensor.of_leaf(value.leaves[0]) if value.leaves else Opaque("parameter")
    items, element = iterate(run, value, args[0][1])
    if items is None:
        return element(0)
    return items[0] if items else Opaque("next")


def map_over(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) < 2:
        return Opaque("map")
    items, element = iterate(run, args[1][0], args[1][1])
    known = items is not None
    results = [
        call(run, args[0][0], [(v, args[1][1])], {}, node)
        for v in (items if items is not None else [element(0)])
    ]
    return Sequence("list", results, not known)


def filter_parameters(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``filter(lambda p: p.requires_grad, net.parameters())``: those that require grad now."""
    if len(args) == 2 and isinstance(args[1][0], Params):
        params = args[1][0]
        wanted = [leaf for leaf in params.leaves if leaf.requires is not False]
        return Params(wanted, params.complete)
    return Opaque("filter")


def first_argument(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    return args[0][0] if args else NONE


def is_subclass(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) == 2 and isinstance(args[0][0], Class):
        of, kind = args[0][0], args[1][0]
        if isinstance(kind, Class):
            return Const(True) if kind in of.order() else Opaque("condition") if of.unknown_bases() else FALSE
        if isinstance(kind, External) and kind.name == "torch.nn.Module" and not of.unknown_bases():
            return Const(of.is_module)
    return Opaque("condition")


def import_module(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``importlib.import_module`` or ``__import__``: a module of the project, also by an option's default."""
    name = options.given(args[0][0]) if len(args) == 1 else NONE
    if isinstance(name, Const) and isinstance(name.value, str) and not name.value.startswith("."):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
            name = Const(name.value.split(".", 1)[0])
        for origin in dict.fromkeys((run.top.origin, run.globals.origin)):
            path = imports.locate(name.value, origin)
            module = imports.namespace(run, path) if path is not None else None
            if module is not None:
                return module
    return Opaque("module")


def call_builtin(run: Run, name: str, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if name == "vars" and args and isinstance(args[0][0], (Module, Instance)):
        return Attributes(args[0][0])
    if name == "vars" and args and isinstance(args[0][0], options.Options):
        return Mapping(dict(args[0][0].attributes), True)
    if name == "str" and args and args[0][0].__class__ in (Const, options.Default):
        # The name of a layer: "conv" + str(number).
        given = args[0][0]
        assert isinstance(given, Const)
        return given.__class__(str(given.value))
    if name == "type" and len(args) == 1 and isinstance(args[0][0], Tensor):
        return External("torch.FloatTensor")  # of whatever precision: what it makes has no graph
    if name == "exec" and not run.active and getattr(node, "lineno", 0) > 0:
        options.overridden(run)
        return NONE
    if name in ("print", "input", "open", "repr", "str", "id", "hash", "format", "type", "callable", "vars"):
        return Opaque(name)
    if name in ("float", "int", "bool", "round", "abs") and args:
        value = args[0][0]
        if name == "abs" and isinstance(value, (Tensor, Opaque)) and tensors_in(value):
            return unknown(run, args, keywords, node, name)
        if (
            isinstance(value, Const)
            and isinstance(value.value, (int, float))
            and name in ("float", "int", "bool")
        ):
            return Const({"float": float, "int": int, "bool": bool}[name](value.value))
        return Opaque(name)
    if name in ("max", "min") and args:
        return (
            unknown(run, args, keywords, node, name) if any(tensors_in(v) for v, _ in args) else Opaque(name)
        )
    return Opaque(name)
