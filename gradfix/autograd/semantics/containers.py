"""Lists, dicts and the like: how they are made, and what their methods do."""

from __future__ import annotations

from gradfix.autograd.arguments import Call
from gradfix.autograd.parameters import leaves_of
from gradfix.autograd.run import Run, used_nothing
from gradfix.autograd.semantics.dispatch import Transfer, attribute, call_value, iterate, methods_of
from gradfix.autograd.semantics.items import take_out
from gradfix.autograd.semantics.iteration import extend
from gradfix.autograd.semantics.unknown import call_opaque
from gradfix.autograd.values import (
    NONE,
    Const,
    Each,
    External,
    Lists,
    Mapping,
    Opaque,
    Params,
    Record,
    Sequence,
    Value,
)


@methods_of(Record)
def _record_method(
    run: Run,
    base: Record,
    call: Call,
) -> Value:
    if call.name in base.items or not hasattr(dict, call.name):
        return call_value(run, attribute(run, base, call.name, call.site), call)
    return _mapping_method(run, base, call)


@methods_of(Params)
def _parameters_method(
    run: Run,
    base: Params,
    call: Call,
) -> Value:
    if call.name in ("items", "values"):
        return Params(
            base.leaves, base.complete, named=call.name == "items"
        )  # a dict of them, by their names
    return call_opaque(run, Opaque(call.name), call)


@methods_of(Sequence)
def _sequence_method(
    run: Run,
    base: Sequence,
    call: Call,
) -> Value:
    if run.scenario.chosen and base.kind == "tuple" and not hasattr(tuple, call.name):
        used_nothing(run, call.site)  # Nor has a tuple what is asked for: the choice does not fit.
    run.appended.append(base)
    if call.name in ("append", "appendleft", "add") and call.args:
        base.add([call.args[0][0]])
        base.grows |= base.loops is not None and run.symbolic > base.loops
        run.store(*call.args[0], base)
        return NONE
    if call.name in ("extend", "update") and call.args:
        extend(run, base, call.args[0][0])
        return NONE
    if call.name == "insert" and len(call.args) == 2:
        at = call.args[0][0]
        base.items.insert(
            at.value if isinstance(at, Const) and isinstance(at.value, int) else 0, call.args[1][0]
        )
        return NONE
    if call.name in ("pop", "popleft"):
        at = call.args[0][0] if call.args else Const(-1 if call.name == "pop" else 0)
        if (
            isinstance(at, Const)
            and isinstance(at.value, int)
            and -len(base.items) <= at.value < len(base.items)
        ):
            return take_out(base, at.value)
        return Opaque("item")
    if call.name == "clear":
        base.items.clear()
        base.open = base.grows = False
        return NONE
    if call.name in ("copy", "__iter__"):
        return Sequence(base.kind, list(base.items), base.open)
    if call.name in ("reverse", "sort"):
        base.items.reverse() if call.name == "reverse" else None
        return NONE
    return Opaque(call.name)


@methods_of(Mapping)
def _mapping_method(
    run: Run,
    base: Mapping,
    call: Call,
) -> Value:
    if call.name in ("values", "items", "keys"):
        items: list[Value] = list(base.items.values())
        if call.name == "keys":
            items = [Const(k) for k in base.items]
        elif call.name == "items":
            items = [Sequence("tuple", [Const(k), v]) for k, v in base.items.items()]
        return Sequence("list", items, base.open)
    if call.name in ("get", "pop", "setdefault") and call.args:
        key = call.args[0][0]
        if isinstance(key, Const) and isinstance(key.value, (str, int, float, bool, type(None))):
            if key.value in base.items:
                return base.items.pop(key.value) if call.name == "pop" else base.items[key.value]
            default = call.args[1][0] if len(call.args) > 1 else NONE
            if call.name == "setdefault":
                base.items[key.value] = default
            return Opaque("item") if base.open else default
        return Opaque("item")
    if call.name == "update":
        for value, _ in call.args:
            if isinstance(value, Mapping):
                base.items.update(value.items)
                base.open = base.open or value.open
            else:
                base.open = True
        base.items.update({k: v for k, (v, _) in call.keywords.items()})
        return NONE
    if call.name == "copy":
        return Mapping(dict(base.items), base.open)
    if call.name == "clear":
        base.items.clear()
        return NONE
    return Opaque(call.name)


def make_list(kind: str) -> Transfer:
    def handler(run: Run, call: Call) -> Value:
        if not call.args:
            return Sequence(kind, [], False, run.symbolic)
        value = call.args[0][0]
        if isinstance(value, Params):
            return value
        items, element = iterate(run, value, call.args[0][1])
        if items is None:
            if isinstance(value, Sequence):
                return Sequence(kind, list(value.items), True)
            return value if isinstance(value, Opaque) else Sequence(kind, [element(0)], True)
        if any(isinstance(i, Each) for i in items):
            return Params(leaves_of(Sequence("list", items))[0])
        return Sequence(kind, list(items))

    return handler


def make_dict(run: Run, call: Call) -> Value:
    if call.args and isinstance(call.args[0][0], Params) and call.args[0][0].named:
        return call.args[0][0]
    result = Mapping({})
    for value, _ in call.args:
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
    result.items.update({k: v for k, (v, _) in call.keywords.items() if k != "**"})
    return result


RECORDS = frozenset(
    """munch.Munch munch.DefaultMunch easydict.EasyDict addict.Dict attrdict.AttrDict dotmap.DotMap
    types.SimpleNamespace argparse.Namespace""".split()
)
"""What makes dicts whose keys are attributes."""


def make_record(run: Run, call: Call) -> Value:
    held = make_dict(run, call)
    assert isinstance(held, Mapping)
    return Record(held.items, held.open or "**" in call.keywords)


def make_defaultdict(run: Run, call: Call) -> Value:
    first = call.args[0][0] if call.args else NONE
    if isinstance(first, External) and first.name == "builtins.list":
        return Lists({}, loops=run.symbolic)
    return Mapping({}, True)


def make_deque(run: Run, call: Call) -> Value:
    size = call.argument("maxlen", 1)
    result = make_list("list")(run, Call(call.args[:1], {}, call.site))
    if isinstance(result, Sequence) and size is not None:
        result.open = True
    return result
