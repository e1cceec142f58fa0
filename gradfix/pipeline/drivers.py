"""Drivers: scripts that call one function or class of a file, with what it is handed made up.

Who calls the entry is not known, but what it may be handed is: the open world says which parameters are
networks and optimizers, and which optimizer updates which network. One driver is written for each world.
"""

from __future__ import annotations

import ast
import keyword
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeGuard

from gradfix.autograd.callers import scripts
from gradfix.autograd.open_world import OF_NETWORKS
from gradfix.autograd.program import Program, worlds_of
from gradfix.autograd.symbols import Key, Role, World
from gradfix.core.codemod import Fix
from gradfix.core.span import Span
from gradfix.pipeline.analysis import Analysis, run_model
from gradfix.pipeline.placing import spans_of
from gradfix.project.scanning import scan
from gradfix.verify.alone import Driver, kinds_of
from gradfix.verify.command import project_root

SIZE = re.compile(
    r"dim|size|(?:^|_)n(?:um)?_|_n(?:um)?$|channels|classes|epoch|(?:^|_)lr|rate$|seed|step|gamma|tau|cuda"
)
"""Names of parameters that are numbers even where they are handed on."""


class Entry(NamedTuple):
    """What a driver calls: a function at the top of the file, or a method of a class there."""

    function: ast.FunctionDef
    cls: ast.ClassDef | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.cls.name if self.cls is not None else "", self.function.name

    @property
    def name(self) -> str:
        return ".".join(filter(None, self.key))

    @property
    def node(self) -> ast.AST:
        """The syntax that a driver runs: all of a class."""
        return self.cls or self.function


def drivers(before: Analysis, after: Analysis, fix: Fix, assumed: bool) -> Iterator[list[Driver]]:
    """The drivers of each entry through which the fix can be run, the nearest first: one for each world.

    Args:
        assumed: Whether the finding rests on the worlds of its entry. Where it does not, and there are
            callers in sight, these know more than worlds do, and what is handed optimizers is no entry.
    """
    spans = [span for edit in fix.edits for span in spans_of(edit)]
    whole = list(_programs(before, after, spans))
    if not assumed and not fix.only_cuts:
        yield from whole  # They know more than what can be made up.
    yield from _by_entry(before, after, fix, assumed, spans)
    if assumed or fix.only_cuts:
        yield from whole


def _programs(before: Analysis, after: Analysis, spans: Sequence[Span]) -> Iterator[list[Driver]]:
    """The scripts that run the file, or import it: each is run with what it lacks absent or made up."""
    path = os.path.realpath(before.source.path)
    own = [path] if scan(path).runs else []
    first, last = _around(after.source.tree, spans)
    for script in (*own, *(one.path for one in scripts(path)))[:PROGRAMS]:
        name = os.path.relpath(script, os.path.realpath(project_root(Path(path)))).replace(os.sep, "/")
        if name.startswith(".."):
            continue
        text = '''"""The program {name}, without what is not installed, and with what it lacks made up.

By hand, from the project's root, where gradfix is installed beside torch:
python -m gradfix.runtime alone THIS_FILE
"""

from step_alone import program

MADE_UP = {{}}  # What its runs have asked for.

program({name!r})
'''
        yield [Driver(f"the program {name}", text.format(name=name), "", kinds_of({}), first, last)]


PROGRAMS = 2
"""How many scripts are tried."""


def _around(tree: ast.Module, spans: Sequence[Span]) -> tuple[int, int]:
    """The lines of the innermost functions around some places; of all of the file where one is in none."""
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    found = [
        min(
            (one for one in functions if _first_line(one) <= span.line <= (one.end_lineno or 0)),
            key=lambda one: (one.end_lineno or 0) - one.lineno,
            default=None,
        )
        for span in spans
    ]
    inner = [one for one in found if one is not None]
    if len(inner) < len(found) or not inner:
        return 1, max((node.end_lineno or 1 for node in tree.body), default=1)
    return min(one.lineno for one in inner), max(one.end_lineno or 0 for one in inner)


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line of a function's first decorator, or of its name."""
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def _by_entry(
    before: Analysis, after: Analysis, fix: Fix, assumed: bool, spans: Sequence[Span]
) -> Iterator[list[Driver]]:
    """The drivers of each entry, the nearest first."""
    reaching = (before.program.entry_points_to(spans) if before.program is not None else None) or set()
    for entry in _entries(before.source.tree, spans, reaching):
        program = run_model(before.source, {entry.key})
        found = program.entry_points if isinstance(program, Program) else []
        point = next((one for one in found if one.key == entry.key), None)
        worlds = worlds_of(point) if point is not None else [World()]
        known = (
            assumed
            or reaching == {entry.key}
            or not any(Role.OPTIMIZER in world.roles.values() for world in worlds)
        )
        evaluates = fix.only_cuts and not _differentiates(entry.function)
        written = [_driver(before, after, entry, world, evaluates) for world in worlds if known]
        if isinstance(program, Program):
            program.release()
        if written:
            yield sorted(dict.fromkeys(written), key=lambda one: one.world)


def _entries(tree: ast.Module, spans: Sequence[Span], reaching: Collection[tuple[str, str]]) -> list[Entry]:
    """The functions that hold some places, then the entry points that reach them."""
    known = {entry.key: entry for entry in _functions(tree)}
    around = [
        entry
        for entry in known.values()
        if any(entry.function.lineno <= span.line <= (entry.function.end_lineno or 0) for span in spans)
    ]
    return list(dict.fromkeys((*around, *(known[key] for key in sorted(reaching) if key in known))))


def _functions(tree: ast.Module) -> Iterator[Entry]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield Entry(node)
        elif isinstance(node, ast.ClassDef):
            yield from (Entry(one, node) for one in node.body if isinstance(one, ast.FunctionDef))


def _differentiates(function: ast.FunctionDef) -> bool:
    """Whether there is a backward in a function."""
    return any(isinstance(node, ast.Attribute) and node.attr == "backward" for node in ast.walk(function))


def _driver(before: Analysis, after: Analysis, entry: Entry, world: World, evaluates: bool) -> Driver:
    """The script that calls an entry in a world; it takes a step afterwards where that only evaluates."""
    path = Path(before.source.path).absolute()
    name = os.path.relpath(path, project_root(path)).replace(os.sep, "/")
    written = _Script(entry, world, before.source.lines)
    written.set_up()
    call = written.call()
    if evaluates:
        call = f"afterwards({call}, {', '.join(written.holders())})"
    made = "".join(f"{line}\n" for line in written.lines)
    assumed = _assumed(world)
    said = f"\n\nIt is assumed that {assumed}." if assumed else ""
    text = f'''"""The step alone: {entry.name}() of {name}, with what it is handed made up.{said}

By hand, from the project's root, where gradfix is installed beside torch:
python -m gradfix.runtime alone THIS_FILE
"""

from step_alone import Given, afterwards, load, make, network, number, optimizer, returns, setup, turns

MADE_UP = {{}}  # The sizes and types that its use has asked for.

module = load({name!r})
{made}for turn in turns():
    {call}
'''
    node = next((one.node for one in _functions(after.source.tree) if one.key == entry.key), entry.node)
    return Driver(
        entry.name,
        text,
        assumed,
        kinds_of(written.networks),
        getattr(node, "lineno", 1),
        getattr(node, "end_lineno", 1),
        tuple(_callers(after.source.tree, entry)),
    )


def _callers(tree: ast.Module, entry: Entry) -> Iterator[tuple[int, int]]:
    """The lines of the functions, and of what else is at the top, that call an entry."""
    name = entry.function.name
    for node in [
        *tree.body,
        *(one for cls in tree.body if isinstance(cls, ast.ClassDef) for one in cls.body),
    ]:
        if isinstance(node, ast.ClassDef) or getattr(node, "name", "") == name:
            continue
        called = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
        if any(name == _last(func) for func in called):
            yield node.lineno, node.end_lineno or node.lineno


def _assumed(world: World) -> str:
    """What a world assumes of what the entry is handed, for people."""
    owned: dict[Key, list[str]] = {}
    for network, owner in (world.owners or {}).items():
        owned.setdefault(owner, []).append(f"`{world.names[network]}`")
    parts = [
        f"`{world.names[owner]}` updates {' and '.join(held)}"
        if owner is not None
        else f"nobody updates {' and '.join(held)}"
        for owner, held in owned.items()
    ]
    return ", and ".join(sorted(parts))


class _Script:
    """Writes the statements that make what an entry is handed, and the call itself."""

    def __init__(self, entry: Entry, world: World, source: Sequence[str]) -> None:
        self.entry = entry
        self.source = source
        self.world = world
        self.networks: dict[str, str] = {}
        self.lines: list[str] = []
        self.made: dict[Key, str] = {}
        """By symbol: the variable that holds it."""
        self.names: set[str] = {
            "module",
            "turn",
            "subject",
            "turns",
            "load",
            "network",
            "optimizer",
            "number",
            "setup",
            "afterwards",
        }

    def set_up(self) -> None:
        """The statements before the loop."""
        roles = {key: self.world.roles[key] for key in sorted(self.world.roles, key=self._place)}
        self.constructor = _constructor(self.entry.cls)
        for key, role in roles.items():
            if role is Role.NETWORK and (_is_handed(key) or _is_result(key)):
                self._make(key)
        for key, role in roles.items():
            if role is Role.OPTIMIZER and (_is_handed(key) or _is_result(key)):
                self._make(key)
        self._put_together()
        if self.entry.cls is not None and not _is_static(self.entry.function):
            made = f"module.{self.entry.cls.name}"
            own = self.constructor
            if self.entry.cls.bases and (own is None or own.args.vararg is not None):
                self.lines.append(f"subject = make({made})")
            else:
                self.lines.append(f"subject = {made}({self._arguments(own, False)})")
            for key in roles:
                if isinstance(key, tuple) and isinstance(key[0], ast.ClassDef) and key in self.made:
                    self.lines.append(f"subject.{key[1]} = {self.made[key]}")

            self.lines.append("setup(subject)")

    def holders(self) -> list[str]:
        """The variables that hold networks."""
        held = [line.partition(" = network(")[0] for line in self.lines if " = network(" in line]
        of_class = self.entry.cls is not None and not _is_static(self.entry.function)
        return ["module", *(["subject"] if of_class else []), *dict.fromkeys(held)]

    def _place(self, key: Key) -> tuple[int, int, str]:
        """Where a symbol comes from: they are made in this order."""
        root = _root(key)
        return getattr(root, "lineno", 0), getattr(root, "col_offset", 0), self.world.names.get(key, "")

    def call(self) -> str:
        """The call of the entry."""
        called = f"module.{self.entry.name}"
        if self.entry.cls is not None and not _is_static(self.entry.function):
            called = f"subject.{self.entry.function.name}"
        return f"{called}({self._arguments(self.entry.function, True)})"

    def _put_together(self) -> None:
        """Put networks and optimizers into what holds them, or let code out of sight return them."""
        for key, variable in list(self.made.items()):
            if _is_result(key):
                line = self.source[key[0].lineno - 1].strip()
                self.lines.append(f"returns({line!r}, {variable})")
        for key, variable in list(self.made.items()):
            if isinstance(key, tuple) and isinstance(_root(key), ast.arg):
                self.lines.append(f"{self._expression(key[0])}{_suffix(key)} = {variable}")

    def _expression(self, key: Key) -> str:
        """How to reach a symbol; what it is handed in with is made, unless it is there."""
        if key in self.made:
            return self.made[key]
        if isinstance(key, tuple):
            return self._expression(key[0]) + _suffix(key)
        assert isinstance(key, ast.arg)
        self.made[key] = self._variable(key.arg)
        self.lines.append(f"{self.made[key]} = Given({key.arg!r})")
        return self.made[key]

    def _make(self, key: Key) -> None:
        """Make a network or an optimizer."""
        while isinstance(key, tuple) and isinstance(key[0], ast.arg) and self._is_called(key[0].arg):
            # A method of a network computes with it: `net.sample(x)` beside `net(x)`.
            key = self._renamed(key)
        if key in self.made:
            return
        label = self.world.names.get(key, "it")
        variable = self._variable(label)
        self.made[key] = variable
        owners = self.world.owners or {}
        if self.world.roles[key] is Role.NETWORK:
            owner = owners.get(key)
            of = f", owner={self.world.names[owner]!r}" if owner is not None else ""
            self.networks[label] = self.world.names[owner] if owner is not None else ""
            self.lines.append(f"{variable} = network({label!r}{of})")
            return
        held = ", ".join(self.made[net] for net, owner in owners.items() if owner == key and net in self.made)
        line = getattr(_root(key), "lineno", 0)
        self.lines.append(f"{variable} = optimizer({label!r}, [{held}], line={line})")

    def _around(self, function: ast.FunctionDef) -> ast.AST:
        """Where a parameter of a function is used: of a constructor in all of the class."""
        return self.entry.cls if function is self.constructor and self.entry.cls is not None else function

    def _is_called(self, name: str) -> bool:
        """Whether something of this name, or an attribute, is called, and so a network itself."""
        calls = (node.func for node in ast.walk(self.entry.node) if isinstance(node, ast.Call))
        return any(name == getattr(func, "attr", getattr(func, "id", "")) for func in calls)

    def _renamed(self, key: tuple[Key, str]) -> Key:
        """The network that a part belongs to, which takes its place in the world."""
        owners = dict(self.world.owners or {})
        if key in owners:
            owners.setdefault(key[0], owners.pop(key))
        names = {**self.world.names, key[0]: getattr(key[0], "arg", "it")}
        self.world = replace(
            self.world, roles={**self.world.roles, key[0]: Role.NETWORK}, owners=owners, names=names
        )
        return key[0]

    def _variable(self, label: str) -> str:
        """A name for what people call ``label``."""
        name = re.sub(r"\W+", "_", label.removeprefix("self.")).strip("_") or "it"
        while name in self.names or keyword.iskeyword(name):
            name += "_"
        self.names.add(name)
        return name

    def _arguments(self, function: ast.FunctionDef | None, varies: bool) -> str:
        """What a function is given: all that it needs, and what the world knows."""
        if function is None:
            return ""
        spec = function.args
        bare = not _is_static(function) and self.entry.cls is not None
        by_position = [*spec.posonlyargs, *spec.args]
        optional = (
            {one.arg for one in by_position[len(by_position) - len(spec.defaults) :]}
            if spec.defaults
            else set()
        )
        optional |= {one.arg for one, value in zip(spec.kwonlyargs, spec.kw_defaults) if value is not None}
        found: list[str] = []
        for one in (*by_position[bare:], *spec.kwonlyargs):
            value = self._argument(one, function, one.arg in optional, varies)
            if value is not None:
                found.append(value if one in spec.posonlyargs else f"{one.arg}={value}")
        return ", ".join(found)

    def _argument(self, one: ast.arg, function: ast.FunctionDef, optional: bool, varies: bool) -> str | None:
        """The expression for one parameter; None where its default will do."""
        if one in self.made:
            return self.made[one]
        turn = ", turn" if varies else ""
        if optional:
            return None
        if one.arg in ("device", "dev"):
            return "'cpu'"
        if _is_used_as_network(one.arg, self.entry.node):
            self.made[one] = self._variable(one.arg)
            self.networks[one.arg] = ""
            self.lines.append(f"{self.made[one]} = network({one.arg!r})")
            return self.made[one]
        annotation = ast.unparse(one.annotation) if one.annotation is not None else ""
        if annotation == "bool":
            return "False"
        if annotation in ("int", "float") or not _is_used_as_data(one.arg, self._around(function)):
            return f"number({one.arg!r}{turn})"
        return f"Given({one.arg!r}{turn})"


def _is_used_as_network(name: str, within: ast.AST) -> bool:
    """Whether something of this name, or an attribute set to it, has methods that only networks have."""
    names = _names_of(name, within)
    calls = (node.func for node in ast.walk(within) if isinstance(node, ast.Call))
    return any(
        isinstance(func, ast.Attribute) and func.attr in OF_NETWORKS and _last(func.value) in names
        for func in calls
    )


def _names_of(name: str, within: ast.AST) -> set[str]:
    """A parameter's name, and those of the attributes that are set to it."""
    kept = (node for node in ast.walk(within) if isinstance(node, ast.Assign) and _last(node.value) == name)
    targets = (target for node in kept for target in node.targets)
    return {name, *(target.attr for target in targets if isinstance(target, ast.Attribute))}


def _last(node: ast.expr) -> str:
    """The name of a variable or an attribute."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_used_as_data(name: str, function: ast.AST) -> bool:
    """Whether a parameter is asked for parts, gone through, called, or handed on and no size by its name."""
    names = _names_of(name, function)
    for node in ast.walk(function):
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            held = [node.value]
        elif isinstance(node, ast.Call):
            held = [node.func, *(() if _is_range(node) or SIZE.search(name) else node.args)]
        elif isinstance(node, (ast.For, ast.comprehension)):
            held = [node.iter]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            held = [node.value]
        else:
            continue
        if any(_last(one) in names for one in held):
            return True
    return False


def _is_range(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in (
        "range",
        "print",
        "float",
        "int",
        "min",
        "max",
    )


def _is_result(key: Key) -> TypeGuard[tuple[ast.Call, int]]:
    """Whether a symbol is what a call out of sight returns, which is on a line of its own."""
    return isinstance(key, tuple) and isinstance(key[0], ast.Call) and key[0].lineno > 0


def _is_handed(key: Key) -> bool:
    """Whether a symbol is a parameter, an attribute that nobody sets, or a part of one."""
    return isinstance(_root(key), (ast.arg, ast.ClassDef))


def _suffix(key: tuple[Key, str]) -> str:
    """The last step on the way to a part, as Python writes it."""
    return key[1] if key[1].startswith("[") else f".{key[1]}"


def _root(key: Key) -> Key:
    while isinstance(key, tuple):
        key = key[0]
    return key


def _constructor(cls: ast.ClassDef | None) -> ast.FunctionDef | None:
    """The ``__init__`` of a class, as it stands there."""
    for one in cls.body if cls is not None else ():
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            return one
    return None


def _is_static(function: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.decorator_list)
