"""Lists, dicts and the like: how they are made, and what their methods do."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.autograd.arguments import Argument, Keywords, option
from gradfix.autograd.parameters import leaves_of
from gradfix.autograd.run import used_nothing
from gradfix.autograd.semantics.dispatch import attribute, call, iterate, methods_of
from gradfix.autograd.semantics.items import take_out
from gradfix.autograd.semantics.iteration import extend
from gradfix.autograd.semantics.unknown import call_opaque
from gradfix.autograd.values import NONE, Const, Each, Mapping, Opaque, Params, Record, Sequence, Value

if TYPE_CHECKING:
    from gradfix.autograd.interpreter import Run
    from gradfix.autograd.semantics.dispatch import Handler


@methods_of(Record)
def _record_method(
    run: Run,
    base: Record,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    if name in base.items or not hasattr(dict, name):
        return call(run, attribute(run, base, name, node), args, keywords, node, discarded)
    return _mapping_method(run, base, name, args, keywords, node, discarded)


@methods_of(Params)
def _parameters_method(
    run: Run,
    base: Params,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    if name in ("items", "values"):
        return Params(base.leaves, base.complete, named=name == "items")  # a dict of them, by their names
    return call_opaque(run, Opaque(name), args, keywords, node, discarded)


@methods_of(Sequence)
def _sequence_method(
    run: Run,
    base: Sequence,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool = False,
) -> Value:
    if run.scenario.chosen and base.kind == "tuple" and not hasattr(tuple, name):
        used_nothing(run, node)  # Nor has a tuple what is asked for: the choice does not fit.
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
            return take_out(base, at.value)
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


@methods_of(Mapping)
def _mapping_method(
    run: Run,
    base: Mapping,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool = False,
) -> Value:
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


def make_list(kind: str) -> Handler:
    def handler(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
        if not args:
            return Sequence(kind, [], False, run.symbolic)
        value = args[0][0]
        if isinstance(value, Params):
            return value
        items, element = iterate(run, value, args[0][1])
        if items is None:
            if isinstance(value, Sequence):
                return Sequence(kind, list(value.items), True)
            return value if isinstance(value, Opaque) else Sequence(kind, [element(0)], True)
        if any(isinstance(i, Each) for i in items):
            return Params(leaves_of(Sequence("list", items))[0])
        return Sequence(kind, list(items))

    return handler


def make_dict(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if args and isinstance(args[0][0], Params) and args[0][0].named:
        return args[0][0]
    result = Mapping({})
    for value, _ in args:
        if isinstance(value, Mapping):
            result.items.update(value.items)
            result.open = result.open or value.open
            continue
        items, _ = iterate(run, value, None)
        for pair in items or []:
            if isinstance(pair, Sequence) and len(pair.items) == 2 and isinstance(pair.items[0], Const):
                result.items[pair.items[0].value] = pair.items[1]
            else:
                result.open = True
        result.open = result.open or items is None
    result.items.update({k: v for k, (v, _) in keywords.items() if k != "**"})
    return result


RECORDS = frozenset(
    """munch.Munch munch.DefaultMunch easydict.EasyDict addict.Dict attrdict.AttrDict dotmap.DotMap
    types.SimpleNamespace argparse.Namespace""".split()
)
"""What makes dicts whose keys are attributes."""


def make_record(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    held = make_dict(run, args, keywords, node)
    assert isinstance(held, Mapping)
    return Record(held.items, held.open or "**" in keywords)


def make_defaultdict(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    return Mapping({}, True)


def make_deque(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    size = option(args, keywords, "maxlen", 1)
    result = make_list("list")(run, args[:1], {}, node)
    if isinstance(result, Sequence) and size is not None:
        result.open = True
    return result
