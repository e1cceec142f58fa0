"""Lists, dicts and other containers: construction and methods."""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Call
from gradfix.autograd.parameters import go_through, leaves_of
from gradfix.autograd.run import Run, used_none
from gradfix.autograd.semantics.dispatch import (
    attribute,
    before_methods,
    call_value,
    function,
    iterate,
    method,
    other_methods,
)
from gradfix.autograd.semantics.items import one_of, put_somewhere, take_out
from gradfix.autograd.semantics.iteration import extend
from gradfix.autograd.values import (
    NONE,
    Const,
    DefaultDictOfLists,
    ImportedName,
    Mapping,
    ParameterIterable,
    Record,
    Sequence,
    SummaryTensor,
    Unknown,
    Value,
    graphless_value,
    tensors_in,
)


@before_methods(Record)
def _held_by_record(run: Run, record: Record, call: Call) -> Value | None:
    if call.name in record.items or not hasattr(dict, call.name):
        return call_value(run, attribute(run, record, call.name, call.site), call)
    return None


@method(ParameterIterable, "items", "values")
def _named_parameters(run: Run, parameters: ParameterIterable, call: Call) -> Value:
    """A dict of them, by their names."""
    return ParameterIterable(parameters.leaves, parameters.complete, named=call.name == "items")


@before_methods(Sequence)
def _note_change(run: Run, sequence: Sequence, call: Call) -> Value | None:
    if run.scenario.chosen and sequence.kind == "tuple" and not hasattr(tuple, call.name):
        used_none(run, call.site)  # Nor has a tuple what is asked for: the choice does not fit.
    run.appended.append(sequence)
    return None


@other_methods(Sequence, Mapping)
def _other_method(run: Run, container: Sequence | Mapping, call: Call) -> Value:
    return Unknown(call.name)


@method(Sequence, "append", "appendleft", "add")
def _append(run: Run, sequence: Sequence, call: Call) -> Value | None:
    if not call.args:
        return None
    sequence.add([call.args[0][0]])
    sequence.grows |= sequence.loops is not None and run.symbolic > sequence.loops
    run.store(*call.args[0], sequence)
    return NONE


@method(Sequence, "extend", "update")
def _extend(run: Run, sequence: Sequence, call: Call) -> Value | None:
    if not call.args:
        return None
    extend(run, sequence, call.args[0][0])
    return NONE


@method(Sequence, "insert")
def _insert(run: Run, sequence: Sequence, call: Call) -> Value | None:
    if len(call.args) != 2:
        return None
    at, (value, expression) = call.args[0][0], call.args[1]
    if isinstance(at, Const) and isinstance(at.value, int):
        sequence.items.insert(at.value, value)
    else:
        sequence.add([value])
        put_somewhere(run, sequence, value, expression)
    return NONE


@method(Sequence, "pop", "popleft")
def _pop(run: Run, sequence: Sequence, call: Call) -> Value:
    at = call.args[0][0] if call.args else Const(-1 if call.name == "pop" else 0)
    number = at.value if isinstance(at, Const) and isinstance(at.value, int) else None
    if number is None or not -len(sequence.items) <= number < len(sequence.items):
        return one_of(run, sequence.items, call.receiver, call.site)
    return take_out(sequence, number)


@method(Sequence, "clear")
def _clear(run: Run, sequence: Sequence, call: Call) -> Value:
    sequence.items.clear()
    sequence.open = sequence.grows = False
    return NONE


@method(Sequence, "copy", "__iter__")
def _copy(run: Run, sequence: Sequence, call: Call) -> Value:
    return Sequence(sequence.kind, list(sequence.items), sequence.open)


@method(Sequence, "reverse")
def _reverse(run: Run, sequence: Sequence, call: Call) -> Value:
    sequence.items.reverse()
    return NONE


@method(Sequence, "sort")
def _sort(run: Run, sequence: Sequence, call: Call) -> Value:
    return NONE


@method(Mapping, "keys")
def _keys(run: Run, mapping: Mapping, call: Call) -> Value:
    return Sequence("list", _keys_of(mapping), mapping.open)


@method(Mapping, "values")
def _values(run: Run, mapping: Mapping, call: Call) -> Value:
    return Sequence("list", list(mapping.items.values()), mapping.open)


@method(Mapping, "items")
def _items(run: Run, mapping: Mapping, call: Call) -> Value:
    pairs = zip(_keys_of(mapping), mapping.items.values())
    return Sequence("list", [Sequence("tuple", [k, v]) for k, v in pairs], mapping.open)


def _keys_of(mapping: Mapping) -> list[Value]:
    """The keys; of what a comprehension has made, some may not be known."""
    return [graphless_value("key") if isinstance(k, ast.AST) else Const(k) for k in mapping.items]


@method(Mapping, "get", "pop", "setdefault")
def _get(run: Run, mapping: Mapping, call: Call) -> Value | None:
    if not call.args:
        return None
    key = call.args[0][0]
    if not isinstance(key, Const) or not isinstance(key.value, (str, int, float, bool, type(None))):
        return one_of(run, list(mapping.items.values()), call.receiver, call.site)
    if key.value in mapping.items:
        return mapping.items.pop(key.value) if call.name == "pop" else mapping.items[key.value]
    default = call.args[1][0] if len(call.args) > 1 else NONE
    if call.name == "setdefault":
        mapping.items[key.value] = default
    return Unknown("item") if mapping.open else default


@method(Mapping, "update")
def _update(run: Run, mapping: Mapping, call: Call) -> Value:
    for value, _ in call.args:
        if isinstance(value, Mapping):
            mapping.items.update(value.items)
            mapping.open = mapping.open or value.open
        else:
            mapping.open = True
    mapping.items.update({k: v for k, (v, _) in call.keywords.items()})
    return NONE


@method(Mapping, "copy")
def _copy_of_mapping(run: Run, mapping: Mapping, call: Call) -> Value:
    return Mapping(dict(mapping.items), mapping.open)


@method(Mapping, "clear")
def _clear_mapping(run: Run, mapping: Mapping, call: Call) -> Value:
    mapping.items.clear()
    return NONE


KINDS = {"builtins.list": "list", "builtins.sorted": "list", "builtins.tuple": "tuple", "builtins.set": "set"}
"""What makes a list, a tuple or a set of something."""


@function(*KINDS)
def make_list(run: Run, call: Call) -> Value:
    kind = KINDS.get(call.name, "list")
    if not call.args:
        return Sequence(kind, [], False, run.symbolic)
    value = call.args[0][0]
    if isinstance(value, ParameterIterable):
        go_through(run, value, call.site)
        held = ParameterIterable(value.leaves, value.complete, value.named)
        held.selection, held.whole_networks = value.selection, value.whole_networks
        return held
    items, element = iterate(run, value, call.args[0][1])
    if items is None:
        if isinstance(value, Sequence):
            return Sequence(kind, list(value.items), True)
        return value if isinstance(value, Unknown) else Sequence(kind, [element(0)], True)
    if any(isinstance(i, SummaryTensor) for i in items):
        return ParameterIterable(leaves_of(Sequence("list", items))[0])
    return Sequence(kind, list(items))


@function("builtins.dict", "collections.OrderedDict")
def make_dict(run: Run, call: Call) -> Value:
    if call.args and isinstance(call.args[0][0], ParameterIterable) and call.args[0][0].named:
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
    types.SimpleNamespace""".split()
)
"""What makes dicts whose keys are attributes."""


@function(*RECORDS)
def make_record(run: Run, call: Call) -> Value:
    held = make_dict(run, call)
    assert isinstance(held, Mapping)
    return Record(held.items, held.open or "**" in call.keywords)


@function("collections.defaultdict")
def make_defaultdict(run: Run, call: Call) -> Value:
    first = call.args[0][0] if call.args else NONE
    if isinstance(first, ImportedName) and first.name == "builtins.list":
        return DefaultDictOfLists({}, loops=run.symbolic)
    return Mapping({}, True)


@function("collections.deque")
def make_deque(run: Run, call: Call) -> Value:
    size = call.argument("maxlen", 1)
    result = make_list(run, Call(call.args[:1], {}, call.site))
    if isinstance(result, Sequence) and size is not None:
        result.open = True
    return result


@function("random.choice", "random.sample", "random.choices")
def draw(run: Run, call: Call) -> Value | None:
    """Items drawn at random, with repetition."""
    drawn_from = call.args[0][0] if call.args else None
    if not isinstance(drawn_from, Sequence):
        return None
    drawn = one_of(run, drawn_from.items, call.args[0][1], call.site)
    return drawn if call.name == "random.choice" else Sequence("list", [drawn], True)


@function("random.shuffle")
def shuffle(run: Run, call: Call) -> Value | None:
    """Items in another order: each may be at any place."""
    shuffled = call.args[0][0] if call.args else None
    if not isinstance(shuffled, Sequence) or not tensors_in(shuffled):
        return None
    run.mutations += 1
    shuffled.items = [one_of(run, shuffled.items, call.args[0][1], call.site) for _ in shuffled.items]
    return NONE
