"""Command lines: what a script requires and was not given.

A value is derived from the argument's choices, its type, what the code compares it with, or its
name; a folder of data is a folder in the run's own temporary folder, which does not exist (see
``files``). A file of settings is one of the project's own.
"""

from __future__ import annotations

import argparse
import ast
import collections
import difflib
import functools
import json
import os
import re
import sys
import types
from collections.abc import Collection
from typing import Any

from . import absent, commands, content, context, files, media, samples, sizes

PATH = re.compile(
    r"dir|path|root|folder|file|ckpt|checkpoint|data|save|out|log|list|csv|corpus|src|tgt", re.I
)
DATA = re.compile(
    r"^(data|dataset|train|img|image|img_)_?(root|dir|path|folder|file)s?$|^data$|^dataroot$|^root$", re.I
)
TRAINING = re.compile(r"^(do_|is_|run_)?train(ing)?$", re.I)
"""Switches without which a script only does something else."""
MODE = re.compile(r"^(run_|exp_)?(mode|phase|stage|action|command|cmd|job|todo|train_or_test|split)$", re.I)
"""Options that say what a script does."""
TRAINS = re.compile(r"^(train|training|fit|learn)(?![a-z])", re.I)
TESTS = re.compile(r"^(test|eval|infer|predict|sampl|generat|play|demo|show)", re.I)
SETTINGS = re.compile(r"config|cfg|yaml|yml|hparams|^opt$|params_file", re.I)


def install(run: context.Run) -> None:
    """Fill in what argument parsers would refuse to go without."""

    def parse(self: Any, args: Any = None, namespace: Any = None) -> Any:
        typed = bool(args) or (args is None and len(sys.argv) > 1)
        given = {} if args else supply(run, self)
        words = [] if typed else commands.tried(run, self)
        command = [] if typed else command_of(run, self)
        try:
            found, rest = original(self, [*words, *command] or args, namespace)
        except SystemExit:
            if not words and not command:
                raise
            # What the project shows is not what its script takes today.
            words, command = [], command if words else []
            found, rest = original(self, command or args, namespace)
        if command:
            run.used("argument command", "the one to " + command[0])
        if words:
            run.used("arguments", "as the project types them: " + " ".join(words))
        for name, value in given.items():
            another_one = content.book.planned("choice " + name, "turn")
            if another_one or getattr(found, name, None) in (None, "", False):
                setattr(found, name, value)
                run.used("argument " + name, repr(value))
        another_data_set(run, found)
        for name, value in vars(found).items():
            other = content.book.planned("argument " + name, "value")
            if isinstance(value, str) and other is not None:
                setattr(found, name, other)
                run.used("argument " + name, repr(other))
        content.book.options.update({name: one for name, one in vars(found).items() if type(one) is str})
        if run.small:
            said = {action.dest: str(action.help or "") for action in self._actions}
            for name, value in vars(found).items():
                kind = "img_size" if sides_of(name, said.get(name, "")) else name
                setattr(found, name, sizes.reduced(run, "argument " + name, kind, value))
        return found, rest

    original = context.replace(argparse.ArgumentParser, "parse_known_args", parse)
    by_hand(run, run.source)
    variables(run)


DATA_SET = re.compile(r"^(data_?set|data|task|corpus|benchmark)(_?(name|type))?$", re.I)
"""Options that say which of several data sets is meant."""


def another_data_set(run: context.Run, settings: argparse.Namespace) -> None:
    """Take another of the data sets that a script knows, if it failed with the one that it takes by itself.

    Those of torchvision come first: their samples are made up as the real ones are.
    """
    for name, value in vars(settings).items():
        if not isinstance(value, str) or not DATA_SET.match(name):
            continue
        known = {*texts_compared(run.tree(run.entry), name)} - {value}
        if os.sep in value or len(known) < 2:
            continue
        pictures = {one.lower().replace("-", "") for one in samples.KINDS}
        others = sorted(known, key=lambda one: (one.lower().replace("-", "") not in pictures, one))
        taken = content.book.turn("argument " + name, [value, *others])
        if taken != value:
            setattr(settings, name, taken)
            run.used("argument " + name, repr(taken))


@functools.cache
def texts_compared(tree: ast.Module, name: str) -> tuple[str, ...]:
    """The texts that a script compares ``args.name`` with, those last that it only is to begin with."""
    found: list[str] = []
    beginnings: list[str] = []
    short = aliases(tree, name)
    for node in context.walk(tree):
        left = node.left if isinstance(node, ast.Compare) else None
        if isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute) and not left.args:
            left = left.func.value  # ``args.mode.lower()``
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "startswith"
            and node.args
            and named(node.func.value) in (name, *short)
        ):
            held = [one.value for one in context.walk(node.args[0]) if isinstance(one, ast.Constant)]
            beginnings.extend(one for one in held if isinstance(one, str) and one)
        elif isinstance(node, ast.Compare) and left is not None and means(left, name, short):
            for one in context.walk(node.comparators[0]):
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value:
                    found.append(one.value)
        elif isinstance(node, ast.Subscript) and named(node.slice) in (name, *short):
            if isinstance(node.value, ast.Name):
                found.extend(keys_of(tree, node.value.id))
            elif isinstance(node.value, ast.Dict):
                found.extend(texts_in(node.value))
    return (*found, *beginnings)


def aliases(tree: ast.Module, name: str) -> frozenset[str]:
    """The names that a script gives an option: ``kind = args.kind``, ``kind = args["<kind>"]``."""
    return frozenset(
        node.targets[0].id
        for node in context.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and means(node.value, name)
    )


def means(node: ast.expr, name: str, short: Collection[str] = ()) -> bool:
    """Whether an expression is an option's value: ``args.name``, ``args["--name"]``, or a name for it."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value).strip("-<>").replace("-", "_") == name
    return (isinstance(node, ast.Attribute) and node.attr == name) or (
        isinstance(node, ast.Name) and node.id in short
    )


def texts_looked_up(tree: ast.Module, name: str) -> tuple[str, ...]:
    """The texts that are in what a script looks an option up in, as far as it is there by now.

    ``kinds.KNOWN[args.name]`` and ``assert args.name in kinds.KNOWN`` are such places.
    """
    short = aliases(tree, name)
    found: list[str] = []
    for node in context.walk(tree):
        held: ast.expr | None = None
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            held = node.comparators[0] if means(node.left, name, short) else None
            if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) and not held.args:
                held = held.func.value if held.func.attr == "keys" else None
        elif isinstance(node, ast.Subscript) and means(node.slice, name, short):
            held = node.value
        known = loaded(held) if held is not None else None
        if isinstance(known, (dict, list, tuple)):
            found.extend(one for one in known if isinstance(one, str) and one)
    return tuple(dict.fromkeys(found))


def loaded(node: ast.expr) -> Any:
    """What a global name of the script is by now, or a name in a module: ``kinds.KNOWN``; else ``None``."""
    if isinstance(node, ast.Name):
        return vars(sys.modules["__main__"]).get(node.id)
    if isinstance(node, ast.Attribute):
        owner = loaded(node.value)
        return vars(owner).get(node.attr) if isinstance(owner, types.ModuleType) else None
    return None


NEAR = 40
"""Files beside a script, and in the folders beside it, that are looked at."""


def compared_elsewhere(run: context.Run, name: str) -> tuple[str, ...]:
    """The texts that a module beside the script compares an attribute of its settings with."""
    asked = re.compile(
        r"\b(?:args?|opts?|config|cfg|options|params|flags)\." + re.escape(name) + r"\s*(?:==|in\b)", re.I
    )
    places = []
    for folder, inner, names in context.folders(os.path.dirname(run.entry)):
        inner[:] = sorted(one for one in inner if one[0] not in "._")
        places += [os.path.join(folder, one) for one in sorted(names) if one.endswith(".py")]
        if len(places) > NEAR:
            break
    for place in places[:NEAR]:
        if asked.search(context.read(place)):
            found = texts_compared(run.tree(place), name)
            if found:
                return found
    return ()


def keys_of(tree: ast.Module, name: str) -> list[str]:
    """The texts that are keys of the dictionary that a script gives a name."""
    return [
        text
        for node in context.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Dict)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        for text in texts_in(node.value)
    ]


def texts_in(node: ast.Dict) -> list[str]:
    """The texts among the keys of a dictionary."""
    held = [key.value for key in node.keys if isinstance(key, ast.Constant)]
    return [one for one in held if isinstance(one, str) and one]


SIDES = re.compile(r"\b(image|img|picture|crop)s?\s+(size|resolution|height|width)s?\b", re.I)


def sides_of(name: str, said: str) -> bool:
    """Whether an option's help says that it is the size of pictures, and its own name only that it is one."""
    return sizes.plain(name) in ("size", "resolution", "height", "width", "side") and bool(SIDES.search(said))


LAUNCHER = frozenset(("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"))
"""What a launcher of distributed training says in the environment."""
PLACES = re.compile(r"DIR$|PATH$|ROOT$|FOLDER$|FILE$|DATA$")


def variables(run: context.Run) -> None:
    """Fill in what a script reads of the environment by ``os.environ["NAME"]`` and cannot go without."""
    environ = type(os.environ)
    real = environ.__getitem__

    def get(self: Any, name: Any) -> Any:
        try:
            return real(self, name)
        except KeyError:
            asking = run.owns(sys._getframe(1)) and not absent.prepared(run, "KeyError|LookupError|Exception")
            value = variable(run, name) if asking else None
            if value is None:
                raise
        run.used("environment variable " + name, repr(value))
        return value

    context.replace(environ, "__getitem__", get)


def variable(run: context.Run, name: str) -> str | None:
    """What a variable of the environment might hold that a launcher sets, or that names a place for files."""
    if name in LAUNCHER:
        return str(run.devices) if name.endswith("SIZE") else "0"
    if content.book.planned("environment", name):
        return "0"
    return os.path.join(run.cwd, "given", name.lower()) if PLACES.search(name) else None


def by_hand(run: context.Run, text: str) -> None:
    """Fill in what a script reads of ``sys.argv`` without asking how many there are.

    A script that asks and then gives up is one that needs them; one that asks and goes on is not.
    """
    if "argv" not in text:
        return
    if "ArgumentParser" in text:
        one_given(run, context.parse(text))
        return
    wanted: dict[int, str] = {}
    least, asks = 0, False
    for node in context.walk(context.parse(text)):
        if isinstance(node, ast.If) and "len(sys.argv)" in ast.unparse(node.test):
            if context.gives_up(node.body):
                least = max(least, arguments_wanted(node.test))
            else:
                asks = True
        for place, name, kind in read_by_hand(node):
            wanted.setdefault(place, text_for(run, name, None, kind))
    if asks and not least:
        return
    count = max(max(wanted, default=0) + 1, least)
    wanted.update({count + place: held for place, held in wanted.items() if place < 0})
    for place in range(len(sys.argv), count):
        sys.argv.append(wanted.get(place, "2"))
        run.used("argument " + str(place), repr(sys.argv[place]))


def arguments_wanted(test: ast.expr) -> int:
    """How many arguments a script wants, its own name among them, that gives up on a condition."""
    for node in context.walk(test):
        if isinstance(node, ast.Compare) and ast.unparse(node.left) in ("len(sys.argv)", "len(argv)"):
            numbers = [
                one.value for one in context.walk(node.comparators[0]) if isinstance(one, ast.Constant)
            ]
            counts = [one for one in numbers if type(one) is int]
            if counts and isinstance(node.ops[0], (ast.NotEq, ast.Lt, ast.NotIn)):
                return min(counts)
            if counts and isinstance(node.ops[0], ast.LtE):
                return min(counts) + 1
    return 0


def one_given(run: context.Run, tree: ast.Module) -> None:
    """Give an option the value that it has anyway, to a script that gives up where nothing is typed."""
    asking = [
        node.test for node in context.walk(tree) if isinstance(node, ast.If) and context.gives_up(node.body)
    ]
    if len(sys.argv) > 1 or not any(NOTHING_TYPED.fullmatch(ast.unparse(test)) for test in asking):
        return
    for node in context.walk(tree):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "add_argument":
            continue
        said = {one.arg: one.value for one in node.keywords}
        first, default = node.args[0] if node.args else None, said.get("default")
        if (
            isinstance(first, ast.Constant)
            and str(first.value)[:2] == "--"
            and not {"action", "nargs"} & {*said}
        ):
            if (
                isinstance(default, ast.Constant)
                and type(default.value) in (int, float, str)
                and default.value
            ):
                sys.argv += [str(first.value), str(default.value)]
                run.used("argument " + str(first.value), repr(default.value))
                return


NOTHING_TYPED = re.compile(
    r"len\((?:sys\.)?argv\) (?:== 1|<= 1|< 2)|not len\((?:sys\.)?argv\) > 1|not sys\.argv\[1:\]"
)
"""Conditions under which somebody has only started a script."""


def read_by_hand(node: ast.AST) -> list[tuple[int, str, Any]]:
    """The arguments that an assignment takes from ``sys.argv``: place, name, and ``int`` or ``float``.

    A place below 0 is counted from the end.
    """
    found: list[tuple[int, str, Any]] = []
    if not isinstance(node, (ast.Assign, ast.Expr, ast.Call)):
        return found
    name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else "argument"
    for one in context.walk(node):
        if isinstance(one, ast.Subscript) and ast.unparse(one.value) in ("sys.argv", "argv"):
            try:
                place = ast.literal_eval(one.slice)
            except ValueError:
                continue
            if type(place) is int and place != 0:
                text = ast.unparse(node)
                kind = next((k for k in (int, float) if k.__name__ + "(" + ast.unparse(one) in text), None)
                found.append((place, name, kind))
    return found


def supply(run: context.Run, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Values for what is required or obviously needed; nothing of it is required any more."""
    given: dict[str, Any] = {}
    groups = getattr(parser, "_mutually_exclusive_groups", [])
    for group in groups:
        group.required = False
    for action in parser._actions:
        if isinstance(action, argparse._StoreTrueAction) and TRAINING.match(action.dest):
            given[action.dest] = True
        if (
            RANKS.match(action.dest)
            and action.default == -1
            and content.book.planned("environment", "launcher")
        ):
            action.default = 0
            run.used("argument " + action.dest, "0, as a launcher would have it")
        if (trains := training_of(run, action)) is not None:
            action.default = trains
            run.used("argument " + action.dest, repr(trains))
        if takes_values(action) and action.default in (None, ""):
            EMPTY.add(action.dest)
        wanted = action.required or (
            takes_values(action) and action.default in (None, "") and needed(run, action)
        )
        if not wanted or isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            continue
        if not action.option_strings and action.nargs in ("?", "*", argparse.REMAINDER):
            continue  # Python before 3.12 calls the last of these required.
        given[action.dest] = value_of(run, action)
        action.required = False
        if not action.option_strings:
            action.nargs = "?"
    return given


def command_of(run: context.Run, parser: argparse.ArgumentParser) -> list[str]:
    """The command by which a script trains that has several: ``neural_style.py train``.

    Where none says that, and one is required, it is one that the project types, or the first one.
    """
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            training = [name for name in action.choices if TRAINS.match(name)]
            if not training and action.required:
                typed = [word for words in commands.lines(run) for word in words if word in action.choices]
                training = [name for name in [*typed, *action.choices] if not TESTS.match(name)]
            return training[:1]
    return []


def training_of(run: context.Run, action: argparse.Action) -> str | None:
    """The text by which an option makes a script train that does something else by itself."""
    if not MODE.match(action.dest) or not isinstance(action.default, (str, type(None))):
        return None
    if not takes_values(action) or TRAINS.match(action.default or ""):
        return None
    compared = texts_compared(run.tree(run.entry), action.dest)
    known = [*(action.choices or ()), *compared]
    if not action.choices and action.default in compared and TESTS.match(action.default or ""):
        known.append("train")  # ``if args.mode == "test": ... else:``
    return next((one for one in known if isinstance(one, str) and TRAINS.match(one)), None)


NO_RANK = re.compile(
    r"[Dd]evice index must not be negative|device ordinal|invalid device ordinal|Invalid device id"
)
"""Messages where a launcher would have said which process it is."""
RANKS = re.compile(r"^(local|node)_?rank$|^rank$")
HELD = re.compile(r"dict|vocab|emb|glove|image|img|audio|wav|annot|json|train|dev|val|test", re.I)
"""Further names of places, for options that turned out to need one."""
MISSED = re.compile(r"NoneType|filename must be a str or bytes object")
"""In the message of what was given nothing where it needed something."""


def advise(error: BaseException) -> str | None:
    """A plan by which places for files, and numbers, are given that are nothing by default."""
    frame = context.raised_in(error)
    if (
        isinstance(error, KeyError)
        and frame is not None
        and frame.f_code.co_filename in ("<frozen os>", os.__file__)
    ):
        return content.planned_with("environment", str(error.args[0]), True)
    if (plan := another(error)) is not None:
        return plan
    if frame is not None and (name := missed(error)) is not None:
        known = content.book.planned("arguments", "insisted") or []
        return content.planned_with("arguments", "insisted", [*known, name])
    if NO_RANK.search(str(error)):
        return content.planned_with("environment", "launcher", True)
    if isinstance(error, KeyError) and error.args == (None,):
        return commands.advise(context.run())
    if not isinstance(error, (TypeError, AttributeError)) or not MISSED.search(str(error)):
        return None
    return commands.advise(context.run()) or content.planned_with("arguments", "places", True)


EMPTY: set[str] = set()
"""The options that are nothing, if nobody gives them a value."""


def missed(error: BaseException) -> str | None:
    """The option that has no value and without which the project gives up, in whichever of its files:
    ``if not folder: raise ValueError``."""
    run, trace, found = context.run(), error.__traceback__, None
    while trace is not None:
        found = trace if run.owns(trace.tb_frame) else None
        trace = trace.tb_next
    if found is None:
        return None
    around = context.statements_at(run.tree(found.tb_frame.f_code.co_filename), found.tb_lineno)
    if not around or not isinstance(around[-1], (ast.Raise, ast.Assert)):
        return None
    insisting = [one for one in around[-2:] if isinstance(one, (ast.If, ast.Assert))]
    names = {name for one in insisting for name in insisted_on(ast.Module([one], []))}
    return next((name for name in sorted(names) if name in EMPTY), None)


def place_for(run: context.Run, name: str, unasked: bool) -> bool:
    """Whether an option without a value is to name a place for files: by the plan, if nobody asks for it."""
    wanted = unasked and (PATH.search(name) or HELD.search(name)) and not absent.KEPT.search(name)
    return bool(wanted and content.book.planned("arguments", "places"))


def takes_values(action: argparse.Action) -> bool:
    """Whether an option takes a value, or any number of them."""
    return isinstance(action, argparse._StoreAction) and action.nargs in (None, "+", "*")


def needed(run: context.Run, action: argparse.Action) -> bool:
    """Whether an option that has no value is used as if it always had one."""
    if action.dest in (content.book.planned("arguments", "insisted") or ()):
        return True
    if action.type in (None, str) and action.default is None and DATA.match(action.dest):
        return True
    used, asked = uses_of_settings(run.tree(run.entry))
    if action.dest in used | insisted_on(run.tree(run.entry)):
        return True
    asked |= asked_for(run.tree(run.entry))
    if action.default is None and action.choices and action.dest not in asked:
        return True
    if action.default is None and action.dest not in asked and gives_numbers(action.type):
        return bool(content.book.planned("arguments", "places"))
    if action.default is None and SETTINGS.search(action.dest) and action.type in (None, str):
        return bool(content.book.planned("arguments", "places"))
    return action.default is None and place_for(run, action.dest, action.dest not in asked)


def gives_numbers(kind: Any) -> bool:
    """Whether an option's type makes a number of what is typed, or several."""
    try:
        found = kind("2")
    except Exception:
        return False
    return all(type(one) in (int, float) for one in (found if isinstance(found, (tuple, list)) else [found]))


@functools.cache
def insisted_on(tree: ast.AST) -> frozenset[str]:
    """The names, or attributes of settings, without which a script gives up: ``if not args.data: raise``."""
    found: set[str] = set()
    for node in context.walk(tree):
        if isinstance(node, ast.If) and context.gives_up([one for one in node.body if not nests(one)]):
            tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
            found.update(name for test in tests if (name := missing_if(test)) is not None)
            found.update(one_of(node.test))
        elif isinstance(node, ast.Assert):
            parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
            names = [there_if(one) for one in parts]
            # ``assert not given.name or given.resume`` insists on neither.
            if None not in names or not (
                isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or)
            ):
                found.update(name for name in names if name is not None)
    return frozenset(found)


def nests(node: ast.stmt) -> bool:
    """Whether a statement holds others, which may not be reached."""
    return isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.FunctionDef))


def one_of(test: ast.expr) -> list[str]:
    """The one of several options that has to be given, if a script gives up on a condition of all of them.

    ``(a is None and b is None) or (a is not None and b is not None)`` is such a condition. That of a
    folder is the simplest one.
    """
    names: list[str] = []
    for one in context.walk(test):
        if isinstance(one, ast.Compare) and (name := missing_if(one) or there_if(one)) and name not in names:
            names.append(name)

    def holds(node: ast.expr, given: str | None) -> bool | None:
        if isinstance(node, ast.BoolOp):
            parts = [holds(value, given) for value in node.values]
            if None in parts:
                return None
            return any(parts) if isinstance(node.op, ast.Or) else all(parts)
        missing, there = missing_if(node), there_if(node) if isinstance(node, ast.Compare) else None
        return missing != given if missing else there == given if there else None

    if not 2 <= len(names) <= 4 or not isinstance(test, ast.BoolOp) or not holds(test, None):
        return []
    helping = [name for name in names if holds(test, name) is False]
    helping.sort(key=lambda name: not re.search(r"dir|folder|root|path", name, re.I))
    return helping[:1]


@functools.cache
def asked_for(tree: ast.AST) -> frozenset[str]:
    """The names that a condition asks for, or whose type is asked for."""
    found: set[str] = set()
    for node in context.walk(tree):
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
            names = [missing_if(one) or there_if(one) for one in parts]
            names += [
                ast.unparse(one.args[0])
                for one in context.walk(node.test)
                if isinstance(one, ast.Call) and ast.unparse(one.func) == "isinstance" and one.args
            ]
            found.update(name for name in names if name is not None)
    return frozenset(found)


def named(node: ast.expr) -> str | None:
    """The name of a variable, or of an attribute of settings."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def missing_if(test: ast.expr) -> str | None:
    """What is not there if a condition holds: ``not it``, ``it is None``, ``it == ""``, ``len(it) == 0``."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return named(test.operand)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.Eq)):
        other = test.comparators[0]
        if isinstance(other, ast.Constant) and other.value in (None, "", 0):
            counted = isinstance(test.left, ast.Call) and ast.unparse(test.left.func) == "len"
            if isinstance(test.left, ast.Call):
                return named(test.left.args[0]) if counted and test.left.args else None
            return named(test.left) if other.value != 0 else None
    return None


def there_if(test: ast.expr) -> str | None:
    """What is there if a condition holds: ``it``, ``it is not None``, ``len(it) > 0``."""
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Call):
        counted = ast.unparse(test.left.func) == "len" and len(test.left.args) == 1
        other = test.comparators[0]
        if counted and isinstance(test.ops[0], (ast.Gt, ast.NotEq)) and getattr(other, "value", None) == 0:
            return named(test.left.args[0])
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
        other = test.comparators[0]
        return named(test.left) if isinstance(other, ast.Constant) and other.value in (None, "") else None
    return named(test)


@functools.cache
def uses_of_settings(tree: ast.Module) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes of settings that a script computes with and never asks for, and those that it asks for.

    A name to which it gives one (``name = args.name``) is that one.
    To compute with one is to add or join it, to open it, or to compare it with a text; to ask is to use
    it as a condition or to compare it with ``None``.
    """
    used: set[str] = set()
    asked: set[str] = set()
    short = {
        node.targets[0].id: node.value.attr
        for node in context.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Attribute)
    }

    def attribute(node: ast.expr) -> str | None:
        return node.attr if isinstance(node, ast.Attribute) else short.get(getattr(node, "id", ""))

    for node in context.walk(tree):
        tests: list[ast.expr] = []
        uses: list[ast.expr] = []
        if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
            tests = [node.test]
        elif isinstance(node, ast.BoolOp):
            tests = node.values
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            tests = [node.operand]
        elif isinstance(node, ast.Compare):
            literals = [other.value for other in node.comparators if isinstance(other, ast.Constant)]
            if isinstance(node.left, ast.Call) and (counted := there_if(node) or missing_if(node)):
                asked.add(counted)
            elif None in literals or "" in literals:
                tests = [node.left]
            elif literals:
                uses = [node.left]
        elif isinstance(node, ast.BinOp):
            uses = [node.left, node.right]
        elif isinstance(node, ast.Subscript):
            uses = [node.slice]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("os.environ["):
            uses = [node.value]
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func).rpartition(".")[2] in (
                "open",
                "join",
                "listdir",
                "int",
                "float",
                "range",
            ):
                uses = node.args
        asked.update(name for one in tests if (name := attribute(one)) is not None)
        used.update(name for one in uses if (name := attribute(one)) is not None)
    return frozenset(used - asked), frozenset(asked)


def value_of(run: context.Run, action: argparse.Action) -> Any:
    """A value that an argument accepts."""
    if isinstance(action, (argparse._StoreTrueAction, argparse._StoreFalseAction)):
        return action.default
    told = commands.said(run, action.option_strings)
    if told is not None and (not PATH.search(action.dest) or is_there(os.path.join(run.folders()[-1], told))):
        try:
            made = action.type(told) if callable(action.type) else told
        except (TypeError, ValueError, argparse.ArgumentTypeError, OSError):
            made = None
        if made is not None and action.nargs is None and (not action.choices or made in action.choices):
            return chosen(action.dest, nearest(run, action.dest, made)) if type(made) is str else made
    text = text_for(run, action.dest, action.choices, action.type)
    value: Any = text
    if callable(action.type):
        try:
            value = action.type(text)
        except (TypeError, ValueError, argparse.ArgumentTypeError, OSError):
            value = text
    count = action.nargs if isinstance(action.nargs, int) else None
    if count is not None:
        return [value] * count
    return [value] if action.nargs in ("+", "*") else value


def nearest(run: context.Run, name: str, told: str) -> list[str]:
    """What the project types for an option, then what the script compares it with: what is most like it
    first, for a project may still show what its script has another name for today."""
    tree = run.tree(run.entry)
    others = {*texts_compared(tree, name), *texts_looked_up(tree, name)} - {told}

    def unlike(one: str) -> tuple[float, str]:
        return -difflib.SequenceMatcher(None, told, one).ratio(), one

    return [told, *sorted(others, key=unlike)]


def is_there(path: str) -> bool:
    """Whether there is a file at a path, or a folder with settings in it."""
    if os.path.isdir(path):
        return any(one.endswith(files.OF_SETTINGS) for one in os.listdir(path))
    return os.path.isfile(path)


def text_for(run: context.Run, name: str, choices: Any = None, kind: Any = None) -> str:
    """What a person might have typed for the argument ``name``."""
    if choices:
        return chosen(name, [str(one) for one in choices])
    if kind in (int, float) or (callable(kind) and gives_numbers(kind)):
        return next((text for names, text in NUMBERS if re.search(names, name, re.I)), "2")
    tree = run.tree(run.entry)
    compared = texts_compared(tree, name) or texts_looked_up(tree, name) or compared_elsewhere(run, name)
    if compared:
        return chosen(name, list(dict.fromkeys(compared)))
    if name in made_numbers(run.tree(run.entry)):
        return "2"
    if re.search(r"gpu|cuda", name, re.I):
        return "0"
    if SETTINGS.search(name):
        found = content.book.turn("settings", settings(run))
        if found is not None:
            return str(found)
    if READ.search(name) and re.search(r"json\.load|yaml\.\w*load", run.text(run.entry)):
        found = content.book.turn("settings", settings(run, SURE))
        if found is not None:
            return str(found)
    if PATH.search(name):
        kind = files.spoken_of(run) if FILES.search(name) else None
        return os.path.join(run.cwd, "given", name + (kind if kind in media.PICTURES else ""))
    return name


def chosen(name: str, among: list[str]) -> str:
    """The first of several texts that an option may have; the next one if the run failed for it."""
    content.book.chosen[name] = among
    return among[(content.book.planned("choice " + name, "turn") or 0) % len(among)]


def another(error: BaseException) -> str | None:
    """A plan with another text for the option whose text an error names."""
    if not isinstance(error, (LookupError, ValueError, NotImplementedError, AttributeError, AssertionError)):
        return None
    for name, among in content.book.chosen.items():
        turn = content.book.planned("choice " + name, "turn") or 0
        said = re.search(r"(?<!\w)" + re.escape(among[turn]) + r"(?!\w)", str(error))
        if said and len(among[turn]) > 2 and turn + 1 < min(len(among), content.TURNS):
            return content.planned_with("choice " + name, "turn", turn + 1)
    return None


SURE = 3
"""Names that a file of settings has that a script asks for, if that is what it is to read."""
READ = re.compile(r"^(in|input|exp|experiment|run|setup|param|parameter|json|yaml)_?(file|path|name)?$", re.I)
"""Names of files that may hold settings."""
NUMBERS = (
    ("seed|rank|gpu|device|verbose|debug|start|resume", "0"),
    ("eps(ilon)?$", "1e-5"),
    ("(^|_)lr|learning_rate|decay", "0.01"),
    ("momentum|beta|gamma|tau$|alpha|lambda|ratio|prob|drop", "0.5"),
    ("(^|_)(img|image|crop|picture|resize)\\w*|resolution", "64"),
)
"""What a person might have typed for a number, by its name."""
FILES = re.compile(r"(^|_)(img|image|picture|photo)?_?(file|img|image|picture|photo)s?$", re.I)
"""Names of what a script reads as pictures, if it reads any."""


@functools.cache
def made_numbers(tree: ast.Module) -> frozenset[str]:
    """The attributes of settings, and names, that a script makes numbers of: ``int(args.n)``."""
    return frozenset(
        name
        for node in context.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("int", "float")
        and len(node.args) == 1
        if (name := named(node.args[0])) is not None
    )


def settings(run: context.Run, least: int = 0) -> list[str]:
    """Files of settings in the project: that which has most of what the script asks for, then others.

    Of the others those come first that most of the project's folders have, one of each name. ``least``
    is the number of names that each must have of those that the script asks for. What the script names
    itself (``load(args.config, "default.yaml")``) it does not ask for, unless there is nothing else.
    """
    found: list[tuple[int, int, int, float, str]] = []
    asked = names_asked(run.tree(run.entry))
    endings = (".yaml", ".yml", ".json") if "gin" not in sys.modules else (".gin",)
    if endings == (".gin",):
        asked |= {node.arg for node in context.walk(run.tree(run.entry)) if isinstance(node, ast.arg)}
    own = os.path.splitext(os.path.basename(run.entry))[0]
    for distance, folder in enumerate(run.folders()):
        for above, inner, names in context.folders(folder):
            inner[:] = sorted(one for one in inner if one[0] != ".")[:50]
            for name in names:
                if name.endswith(endings) and not name.startswith((".", "package")):
                    usual = not re.search(r"default|base|train|config", name, re.I)
                    path = os.path.join(above, name)
                    alike = difflib.SequenceMatcher(None, own, os.path.splitext(name)[0]).ratio()
                    found.append((-len(asked & keys(path)), distance, usual, -alike, path))
            if len(found) > 200:
                break
    text = run.text(run.entry)
    found = sorted(one for one in found if os.path.basename(one[-1]) not in text) or sorted(found)
    near = [path for held, *_, path in found if -held >= least and held * 5 <= found[0][0] * 4]
    count = collections.Counter(os.path.basename(path) for path in near)
    kinds = {os.path.basename(path): path for path in reversed(near)}
    others = sorted(kinds.values(), key=lambda path: -count[os.path.basename(path)])
    return list(dict.fromkeys([*near[:1], *others]))


def names_within(held: Any) -> set[str]:
    """The keys of mappings, and of those within them."""
    if isinstance(held, dict):
        return {*held}.union(*map(names_within, held.values()))
    return set().union(*map(names_within, held)) if isinstance(held, list) else set()


LARGE = 1 << 16
"""Bytes above which a file is no settings that a person writes."""


def names_asked(tree: ast.Module) -> set[str]:
    """The attributes and keys that a script asks for."""
    nodes = list(context.walk(tree))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    indices = [node.slice for node in nodes if isinstance(node, ast.Subscript)]
    return attributes | {
        one.value for one in indices if isinstance(one, ast.Constant) and type(one.value) is str
    }


def keys(path: str) -> set[str]:
    """What stands before a colon in a file of settings; of a large one, which holds data, nothing."""
    if os.path.getsize(path) > LARGE:
        return set()
    if path.endswith(".json"):
        try:
            return names_within(json.loads(context.read(path)))
        except ValueError:
            return set()  # A template, with remarks in it.
    if path.endswith(".gin"):
        return set(re.findall(r"^[\w/.]*\.(\w+)\s*=", context.read(path), re.M))
    return set(re.findall(r"""^[\s{,-]*["']?(\w+)["']?\s*:""", context.read(path), re.M))
