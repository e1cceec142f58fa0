"""Builtins, ``itertools`` and ``functools``."""

from __future__ import annotations

import ast

from gradfix.autograd import imports, operators, script_options
from gradfix.autograd.arguments import Call
from gradfix.autograd.parameters import leaves_of, wholes_of
from gradfix.autograd.run import Exited, Run, used_none
from gradfix.autograd.semantics.arithmetic import binary
from gradfix.autograd.semantics.attributes import bind_weight, set_attribute
from gradfix.autograd.semantics.dispatch import (
    attribute,
    call_value,
    function,
    iterate,
    other_methods,
    package,
)
from gradfix.autograd.semantics.items import one_of
from gradfix.autograd.semantics.layers import canonical_module
from gradfix.autograd.semantics.names import MODULE_METHODS, TENSORS
from gradfix.autograd.semantics.operations import operands_of, simple, unknown
from gradfix.autograd.semantics.statelessness import keeps_nothing
from gradfix.autograd.semantics.texts import text_method
from gradfix.autograd.semantics.unknown import call_unknown
from gradfix.autograd.values import (
    FALSE,
    NONE,
    TRUE,
    Attributes,
    Class,
    Const,
    GrowingLength,
    ImportedName,
    Instance,
    LazyIterable,
    Mapping,
    Module,
    Namespace,
    ParameterIterable,
    Partial,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    graphless_value,
    tensors_in,
)


@other_methods(Const)
def _constant_method(
    run: Run,
    base: Const,
    call: Call,
) -> Value:
    if isinstance(base.value, str):
        parts = [(script_options.given(value), expression) for value, expression in call.args]
        return script_options.text(
            text_method(base.value, call.name, parts, call.keywords), [value for value, _ in call.args]
        )
    if base is NONE or not hasattr(base.value, call.name):
        used_none(run, call.site)
    return call_unknown(run, Unknown(call.name), call)


@function("functools.partial")
def make_partial(run: Run, call: Call) -> Value:
    if not call.args:
        return Unknown("partial")
    return Partial(call.args[0][0], call.args[1:], {k: v for k, (v, _) in call.keywords.items()})


@function("itertools.chain")
def chain(run: Run, call: Call) -> Value:
    values = [v for v, _ in call.args]
    if any(isinstance(v, (ParameterIterable, SummaryTensor)) for v in values):
        listed = Sequence("list", values)
        leaves, complete = leaves_of(listed)
        together = ParameterIterable(leaves, complete)
        together.whole_networks = wholes_of(listed)
        return together
    items: list[Value] = []
    for value in values:
        part, _ = iterate(run, value, None)
        if part is None:
            return Unknown("chain")
        items += part
    return Sequence("list", items)


@function("itertools.chain.from_iterable")
def chain_from_iterable(run: Run, call: Call) -> Value:
    items, _ = iterate(run, call.args[0][0], None) if call.args else (None, None)
    if items is None:
        return Unknown("chain")
    return chain(run, Call([(v, call.args[0][1]) for v in items], {}, call.site))


@function("builtins.range")
def make_range(run: Run, call: Call) -> Value:
    bounds = [v.value for v, _ in call.args if isinstance(v, Const) and isinstance(v.value, int)]
    # Of many iterations that an option asks for the first ones show as much.
    most = 3 if any(isinstance(v, script_options.Default) for v, _ in call.args) else 64
    if len(bounds) == len(call.args) and 1 <= len(call.args) <= 3:
        try:
            numbers = range(*bounds)
        except ValueError:
            return Unknown("range")
        if len(numbers) <= most:
            return Sequence("list", [Const(k) for k in numbers])
    first = call.args[0][0] if len(call.args) > 1 else Const(0)
    if len(call.args) <= 2 and isinstance(first, Const) and isinstance(first.value, int):
        return LazyIterable("range", [], first.value)
    return Unknown("range")


@function("builtins.zip", "builtins.reversed")
def make_lazy_iterable(run: Run, call: Call) -> Value:
    kind = call.name.removeprefix("builtins.")
    parts = [v for v, _ in call.args]
    spread = [isinstance(argument, ast.Starred) for argument in getattr(call.site, "args", [])]
    if kind == "zip" and spread == [True] and len(parts) == 1:
        # Rows of which nobody knows how many there are, turned into columns.
        (rows,) = parts
        row = one_of(run, rows.items, call.args[0][1], call.site) if isinstance(rows, Sequence) else None
        if isinstance(row, Sequence):
            return Sequence("list", [Sequence("tuple", [column], True) for column in row.items])
    return LazyIterable(kind, parts) if parts else Unknown(kind)


@function("builtins.enumerate")
def enumerate_items(run: Run, call: Call) -> Value:
    given = call.argument("start", 1)
    start: int | None = 0
    if given is not None:
        start = given.value if isinstance(given, Const) and isinstance(given.value, int) else None
    parts = [v for v, _ in call.args[:1]]
    return LazyIterable("enumerate", parts, start) if parts else Unknown("enumerate")


SOME = {
    "torch.optim": "torch.optim.Optimizer",
    "torch.optim.lr_scheduler": "torch.optim.lr_scheduler.LRScheduler",
}
"""What stands for a class of a torch module that is looked up by an unknown name."""


@function("builtins.getattr")
def get_by_name(run: Run, call: Call) -> Value:
    if len(call.args) >= 2 and isinstance(call.args[1][0], Const) and isinstance(call.args[1][0].value, str):
        return attribute(run, call.args[0][0], call.args[1][0].value, call.site)
    if len(call.args) >= 2 and isinstance(call.args[0][0], Namespace):
        name = script_options.given(call.args[1][0])
        if isinstance(name, Const) and isinstance(name.value, str):
            return attribute(run, call.args[0][0], name.value, call.site)
    if call.args and isinstance(call.args[0][0], ImportedName) and call.args[0][0].name in SOME:
        return ImportedName(SOME[call.args[0][0].name])
    found = Unknown("attribute")
    if call.args and isinstance(call.args[0][0], Module):
        # One of its layers, most likely; at least nobody else's.
        found.owner = call.args[0][0]
        found.library = keeps_nothing(call.args[0][0])
    return found


@function("builtins.setattr")
def set_by_name(run: Run, call: Call) -> Value:
    if len(call.args) == 3:
        name = call.args[1][0]
        if isinstance(name, Const) and isinstance(name.value, str):
            set_attribute(run, call.args[0][0], name.value, call.args[2][0], call.args[2][1])
        elif isinstance(call.args[0][0], (Module, Instance)) and isinstance(
            call.args[2][0], (Module, Unknown)
        ):
            call.args[0][0].attributes[f"<{len(call.args[0][0].attributes)}>"] = call.args[2][0]
        elif isinstance(call.args[0][0], Module):
            bind_weight(run, call.args[2][0])
        elif isinstance(call.args[0][0], Unknown):
            run.hand_on(call.args[2][0])
            if call.args[0][0].leaf is not None:
                bind_weight(run, call.args[2][0])
            if run.symbols is not None:
                run.symbols.store(call.args[0][0], call.args[2][0])
    return NONE


@function("builtins.exit", "builtins.quit", "sys.exit", "os._exit")
def end(run: Run, call: Call) -> Value:
    run.turned_back()
    raise Exited


@function("builtins.len")
def length_of(run: Run, call: Call) -> Value:
    value = call.args[0][0] if call.args else NONE
    if isinstance(value, Sequence) and not value.open:
        return GrowingLength(len(value.items)) if value.grows else Const(len(value.items))
    if isinstance(value, Module) and value.items and value.leaf is None:
        return Const(len(value.items))
    return graphless_value("length")


@function("builtins.isinstance")
def is_instance(run: Run, call: Call) -> Value:
    if len(call.args) != 2:
        return graphless_value("condition")
    value, kind = call.args[0][0], call.args[1][0]
    kinds = kind.items if isinstance(kind, Sequence) else [kind]
    if isinstance(value, Unknown) or (isinstance(value, Tensor) and value.requires is None):
        return graphless_value("condition")
    answer = False
    for one in kinds:
        name = one.name if isinstance(one, ImportedName) else ""
        if isinstance(one, Class):
            answer |= (
                isinstance(value, (Module, Instance)) and value.cls is not None and one in value.cls.order()
            )
        elif name in TENSORS:
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
            return graphless_value("condition")
    return Const(answer)


@function("builtins.hasattr")
def has_attribute(run: Run, call: Call) -> Value:
    if (
        len(call.args) == 2
        and isinstance(call.args[1][0], Const)
        and isinstance(call.args[0][0], (Module, Instance))
    ):
        name = call.args[1][0].value
        cls = call.args[0][0].cls
        if name in call.args[0][0].attributes or (cls is not None and cls.lookup(name) is not None):
            return TRUE
        if isinstance(call.args[0][0], Module) and name in MODULE_METHODS:
            return TRUE
        if cls is None or not cls.unknown_bases():
            return FALSE
    if len(call.args) == 2 and isinstance(call.args[1][0], Const) and isinstance(call.args[1][0].value, str):
        kind = known_type(call.args[0][0])
        if kind is not None and kind.name.startswith("builtins."):
            return Const(hasattr(call.args[0][0].value, call.args[1][0].value))  # type: ignore[attr-defined]
        if kind is not None and operators.method(call.args[1][0].value) is not None:
            return TRUE
    return graphless_value("condition")


@function("builtins.sum")
def sum_of(run: Run, call: Call) -> Value:
    """``sum(losses)``: additions, which save nothing."""

    items, element = iterate(run, call.args[0][0], call.args[0][1]) if call.args else ([], None)
    if items is None:
        assert element is not None
        items = [element(0)]
    if not any(operands_of(i, None) for i in items):
        return Unknown("sum")
    total: Value = call.args[1][0] if len(call.args) > 1 else Const(0)
    for value in items:
        total = binary(run, ast.Add(), total, value, call.args[0][1], call.args[0][1], call.site)
    return total


@function("functools.reduce")
def reduce(run: Run, call: Call) -> Value:
    """``functools.reduce(function, losses)``: the function of what there is so far and each further one."""
    if len(call.args) < 2:
        return Unknown("reduce")
    items, element = iterate(run, call.args[1][0], call.args[1][1])
    if items is None:
        assert element is not None
        items = [element(0), element(1)]
    items = [*(value for value, _ in call.args[2:]), *items]
    if not items:
        return Unknown("reduce")
    total = items[0]
    for value in items[1:]:
        total = call_value(
            run, call.args[0][0], Call([(total, call.args[1][1]), (value, call.args[1][1])], {}, call.site)
        )
    return total


@function("operator.add")
def add(run: Run, call: Call) -> Value:
    """``operator.add``, passed as a function."""

    if len(call.args) != 2:
        return Unknown("add")
    (left, at), (right, beside) = call.args
    return binary(run, ast.Add(), left, right, at, beside, call.site)


@function("builtins.next")
def next_of(run: Run, call: Call) -> Value:
    if not call.args:
        return Unknown("next")
    value = call.args[0][0]
    if isinstance(value, ParameterIterable):
        return Tensor.of_leaf(value.leaves[0]) if value.leaves else Unknown("parameter")
    items, element = iterate(run, value, call.args[0][1])
    if items is None:
        return element(0)
    return items[0] if items else Unknown("next")


@function("builtins.map")
def map_over(run: Run, call: Call) -> Value:
    if len(call.args) < 2:
        return Unknown("map")
    items, element = iterate(run, call.args[1][0], call.args[1][1])
    known = items is not None
    results = [
        call_value(run, call.args[0][0], Call([(v, call.args[1][1])], {}, call.site))
        for v in (items if items is not None else [element(0)])
    ]
    return Sequence("list", results, not known)


@function("builtins.filter")
def filter_parameters(run: Run, call: Call) -> Value:
    """``filter(lambda p: p.requires_grad, net.parameters())``: those that require grad now."""
    if len(call.args) == 2 and isinstance(call.args[1][0], ParameterIterable):
        params = call.args[1][0]
        wanted = [leaf for leaf in params.leaves if leaf.requires is not False]
        return ParameterIterable(wanted, params.complete, made=call.site)
    return Unknown("filter")


@function("itertools.islice", "itertools.cycle", "builtins.iter")
def first_argument(run: Run, call: Call) -> Value:
    return call.args[0][0] if call.args else NONE


@function("builtins.issubclass")
def is_subclass(run: Run, call: Call) -> Value:
    if len(call.args) == 2 and isinstance(call.args[0][0], Class):
        of, kind = call.args[0][0], call.args[1][0]
        if isinstance(kind, Class):
            return (
                Const(True)
                if kind in of.order()
                else graphless_value("condition")
                if of.unknown_bases()
                else FALSE
            )
        if isinstance(kind, ImportedName) and kind.name == "torch.nn.Module" and not of.unknown_bases():
            return Const(of.is_module)
    return graphless_value("condition")


@function("builtins.__import__", "importlib.import_module")
def import_module(run: Run, call: Call) -> Value:
    """``importlib.import_module`` or ``__import__``: a module of the project, also by an option's default."""
    name = script_options.given(call.args[0][0]) if len(call.args) == 1 else NONE
    if isinstance(name, Const) and isinstance(name.value, str) and not name.value.startswith("."):
        if (
            isinstance(call.site, ast.Call)
            and isinstance(call.site.func, ast.Name)
            and call.site.func.id == "__import__"
        ):
            name = Const(name.value.split(".", 1)[0])
        for origin in dict.fromkeys((run.top.origin, run.globals.origin)):
            path = imports.locate(name.value, origin)
            module = imports.namespace(run, path) if path is not None else None
            if module is not None:
                return module
    return Unknown("module")


@function("builtins.vars")
def attributes_as_dict(run: Run, call: Call) -> Value | None:
    of = call.args[0][0] if call.args else NONE
    if isinstance(of, (Module, Instance)):
        return Attributes(of)
    return Mapping(dict(of.attributes), True) if isinstance(of, script_options.ScriptOptions) else None


@function("builtins.str")
def text_of(run: Run, call: Call) -> Value:
    """The name of a layer: ``"conv" + str(number)``."""
    given = call.args[0][0] if call.args else None
    if isinstance(given, Const) and given.__class__ in (Const, script_options.Default):
        return given.__class__(str(given.value))
    return graphless_value("str")


@function("builtins.type")
def type_of(run: Run, call: Call) -> Value | None:
    """Of a tensor, of whatever precision: what it makes has no graph."""
    return known_type(call.args[0][0]) if len(call.args) == 1 else None


def known_type(value: Value) -> ImportedName | None:
    """The type of a tensor, or of a number or text, where it is certain that it is one."""
    if value.__class__ is Const and value is not NONE:
        assert isinstance(value, Const)
        return ImportedName(f"builtins.{type(value.value).__name__}")
    if not isinstance(value, Tensor) or value.requires is None:
        return None
    parameter = value.leaf is not None and value.leaf.label.startswith("parameter")
    return ImportedName("torch.nn.Parameter" if parameter else "torch.FloatTensor")


@function("torch.is_tensor")
def is_tensor(run: Run, call: Call) -> Value:
    value = call.args[0][0] if call.args else NONE
    if isinstance(value, Tensor) and value.requires is not None:
        return TRUE
    return FALSE if isinstance(value, Const) else graphless_value("condition")


@function("builtins.exec")
def execute(run: Run, call: Call) -> Value | None:
    if run.active or getattr(call.site, "lineno", 0) <= 0:
        return None
    script_options.overridden(run)
    return NONE


@function("builtins.float", "builtins.int", "builtins.bool")
def number_of(run: Run, call: Call) -> Value:
    """A number of what is given: no graph goes on."""
    given = call.args[0][0] if call.args else NONE
    if not isinstance(given, Const) or not isinstance(given.value, (int, float)):
        made = graphless_value(call.name.removeprefix("builtins."), given)
        if isinstance(given, (Tensor, Unknown)):
            made.lost = run.graph_end(given, call.site)
        return made
    kinds = {"builtins.float": float, "builtins.int": int, "builtins.bool": bool}
    return Const(kinds[call.name](given.value))


@function("builtins.abs")
def absolute(run: Run, call: Call) -> Value | None:
    given = call.args[0][0] if call.args else None
    if isinstance(given, (Tensor, Unknown)) and tensors_in(given):
        return unknown(run, call.args, call.keywords, call.site, "abs")
    return None


@function("builtins.max", "builtins.min")
def extreme(run: Run, call: Call) -> Value | None:
    if not any(tensors_in(v) for v, _ in call.args):
        return None
    return unknown(run, call.args, call.keywords, call.site, call.name.removeprefix("builtins."))


@function("builtins.round")
def rounded(run: Run, call: Call) -> Value | None:
    """``round(x)``: of a tensor, an operation of torch."""
    given = call.args[0][0] if call.args else None
    return simple(run, "round", call.args[:1], call.site) if isinstance(given, Tensor) else None


@package("builtins")
def other_builtin(run: Run, call: Call) -> Value | None:
    name = call.name.removeprefix("builtins.")
    first = call.args[0][0] if call.args else None
    return (
        None
        if isinstance(first, (ParameterIterable, SummaryTensor)) and name[:1].isupper()
        else Unknown(name)
    )


function("argparse.ArgumentParser")(script_options.make_parser)


@function("argparse.Namespace")
def settings(run: Run, call: Call) -> Value:
    return Unknown("namespace")
