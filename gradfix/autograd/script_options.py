"""The command-line options and settings of the analysed script, and their defaults.

They are unknown: a mistake that is reported shows whatever they are. What raises is also a mistake if it
raises where none is given, and one run asks for that. Facts from the documentation of argparse.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradfix.autograd.arguments import Call
from gradfix.autograd.run import Run
from gradfix.autograd.values import NONE, Const, Sequence, Unknown, Value

GROUPS = ("add_argument_group", "add_mutually_exclusive_group")


class Default(Const):
    """The value of an option that is not given."""

    __slots__ = ()


class ScriptOption(Unknown):
    """An option that may have been given, and its value if it was not."""

    __slots__ = ("default",)

    def __init__(self, name: str, default: Default) -> None:
        super().__init__(name)
        self.default = default


class Parser(Unknown):
    """An ``ArgumentParser``, with the defaults of its options."""

    __slots__ = ("defaults",)

    def __init__(self) -> None:
        super().__init__("parser")
        self.harmless = True
        self.defaults: dict[str, Default] = {}


class ScriptOptions(Unknown):
    """What a parser makes of the command line."""

    __slots__ = ()

    def __init__(self, options: dict[str, Value]) -> None:
        super().__init__("parse_args")
        self.harmless = True
        self.attributes = options


def learn(parser: Value, call: ast.Call) -> None:
    """Note what ``add_argument`` says of an option that is not given."""
    if not isinstance(parser, Parser):
        return
    flags = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    settings = {k.arg: k.value for k in call.keywords}
    if None in settings or len(flags) != len(call.args):
        return
    name = _name(flags, settings)
    default = _default(settings)
    if name is not None and default is not None:
        parser.defaults[name] = default


def _name(flags: list[str], settings: dict[str | None, ast.expr]) -> str | None:
    """The attribute that an option becomes: ``dest``, else the first long flag, else the first one."""
    given = settings.get("dest")
    if given is not None:
        return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None
    required = settings.get("required")
    if not flags or not flags[0].startswith("-") or not _is(required, (None, False)):
        return None
    flag = next((f for f in flags if f.startswith("--")), flags[0])
    return flag.lstrip("-").replace("-", "_")


def _is(given: ast.expr | None, values: tuple[object, ...]) -> bool:
    """Whether an argument has one of some constant values, None for one that is not given."""
    if given is None:
        return None in values
    return isinstance(given, ast.Constant) and any(given.value is value for value in values)


def _default(settings: dict[str | None, ast.expr]) -> Default | None:
    """The default of an option; None where it is computed or converted."""
    action = settings.get("action")
    given = settings.get("default")
    if given is None:
        if isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):
            return Default(action.value == "store_false")
        return Default(None)
    if isinstance(given, ast.UnaryOp) and isinstance(given.op, ast.USub):
        given, sign = given.operand, -1
    else:
        sign = 1
    if not isinstance(given, ast.Constant) or not isinstance(
        given.value, (bool, int, float, str, type(None))
    ):
        return None
    kind = settings.get("type")
    if isinstance(given.value, str):
        plain = kind is None or (isinstance(kind, ast.Name) and kind.id == "str")
        return Default(given.value) if plain else None
    return Default(given.value) if sign == 1 else Default(-given.value) if given.value is not None else None


def given(value: Value) -> Value:
    """What a value is if no option is given."""
    return value.default if isinstance(value, ScriptOption) else value


def overridden(run: Run) -> None:
    """``exec(open("configurator.py").read())``: every constant of the file is an option from there on."""
    variables = run.globals.variables
    for name, value in variables.items():
        if value.__class__ is Const and name != "__name__":
            assert isinstance(value, Const)
            if run.scenario.default_options:
                variables[name] = Default(value.value)
            else:
                variables[name] = ScriptOption(name, Default(value.value))
    run.options_read = True


def setting(of: Unknown, args: list[Value]) -> ScriptOption | None:
    """``settings.get("network", "Small")``: a text that settings need not give is an option, too."""
    match args:
        case [Const(value=str(key)), Const(value=str()) as usual]:
            name = f"[{key!r}]"
            known = of.attributes.get(name)
            if not isinstance(known, ScriptOption):
                known = of.attributes[name] = ScriptOption(key, Default(usual.value))
            return known
        case _:
            return None


def text(value: Value, parts: Iterable[Value]) -> Value:
    """What was computed of the defaults of options, or of anything else: a text of options is one, too."""
    if isinstance(value, Const) and isinstance(value.value, str):
        if any(isinstance(part, ScriptOption) for part in parts):
            return ScriptOption("text", Default(value.value))
    return value


def method(run: Run, parser: Parser, name: str, keywords: dict[str, tuple[Value, ast.expr]]) -> Value:
    """A method of a parser, other than ``add_argument``."""
    if name in GROUPS:
        return parser
    if name == "set_defaults" and "**" not in keywords:
        for option, (value, _) in keywords.items():
            parser.defaults.pop(option, None)
            if value.__class__ is Const and isinstance(value.value, (bool, int, float, str, type(None))):
                parser.defaults[option] = Default(value.value)
        return NONE
    if name in ("parse_args", "parse_known_args"):
        run.options_read = True
        unset = run.scenario.default_options
        options = ScriptOptions({n: d if unset else ScriptOption(n, d) for n, d in parser.defaults.items()})
        return options if name == "parse_args" else Sequence("tuple", [options, Unknown("rest")])
    parser.defaults.clear()  # set_defaults, parents, ...
    settings = Unknown(name)
    settings.harmless = True
    return settings


def make_parser(run: Run, call: Call) -> Value:
    """``argparse.ArgumentParser(...)``."""
    return Parser()
