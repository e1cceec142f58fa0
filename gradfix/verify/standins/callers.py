"""Who calls a training function that the script only defines: another script of the project.

A file that others import (``trainer.py`` beside ``main.py``) trains nothing by itself. The script of the
project that imports it, directly or through other modules, is run in its place; where that one imports
the file, it gets the text under test.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
import types
from collections.abc import Iterator

from . import arguments, commands, content, context, derive, sizes

FILES = 400
"""Files of a project that are looked at."""
TRIES = 3
"""Scripts that are tried, best first."""
APART = 5
"""How many imports there may be between a script and the file."""
OTHER = re.compile(
    r"test|eval|infer|demo|sampl|generat|predict|plot|visual|setup|conftest|export|convert", re.I
)
"""Scripts that mostly do something else than train."""
TESTS = re.compile(r"(^|[/\\_])tests?([/\\_.]|$)", re.I)
"""Scripts that try the project's parts."""
PREPARES = re.compile(r"^sys\.|^warnings|seed|logg|matplotlib|plt\.|set_|append|environ|filter|register")
USUAL = re.compile(r"main|train|run", re.I)


def call_what_nobody_called(run: context.Run, main: types.ModuleType) -> None:
    """Train with what the script only defines, if it has come to its end without an error.

    The project's own caller knows best; otherwise the function is called with what its arguments tell.
    """
    if run.recorder.backwards or run.recorder.errors:
        return
    command = commands_installed(run.root).get(run.script, "")
    if command in main.__dict__ and not is_script(run.tree(run.script)):
        run.used("a caller of " + command, "the command of the project that calls it")
        main.__dict__[command]()
    if run.recorder.backwards or not derive.uncalled(run.tree(run.script)):
        return
    failure: BaseException | None = None
    turn = content.book.planned("callers", "turn") or 0
    shown = [*((entry, "") for entry in entries(run)[turn : turn + TRIES]), *examples(run)[:TRIES]]
    for entry, text in shown:
        run.used("a caller of " + os.path.basename(run.script), os.path.relpath(entry, run.root))
        if text:
            run.examples[entry] = text
        try:
            run_through(run, entry)
        except (Exception, SystemExit) as error:
            if run.recorder.backwards:
                raise
            failure = failure or error
        if run.recorder.backwards:
            return
    sys.modules["__main__"] = main
    try:
        missing = derive.call(run, main)
    except Exception:
        if failure is None or run.recorder.backwards:
            raise
        missing = None
    if failure is not None and not run.recorder.backwards:
        # The project knows better how its function is called than anybody who reads it.
        raise failure
    if missing is not None:
        run.stop(missing.said(), missing.line)


def run_through(run: context.Run, entry: str) -> None:
    """Run another script of the project as the main one."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=entry, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    sys.argv[0] = entry
    sys.path.insert(0, os.path.dirname(entry))
    run.entry = entry
    text = run.text(entry)
    held = [os.path.basename(one) for one in settings_files(run.root)]
    own, others, name = training(run.tree(run.script)), definitions_beside(run), module_name(run.script)
    between = [one for one in project_files(run) if one != entry and name in imports(run, one)]
    asked = [pair for one in [entry, *between] for pair in chosen(run.tree(one), name)]
    for option, value in [*asked, *named_by_option(run.tree(entry), own, others, held)]:
        content.book.plan.setdefault("argument " + option, {}).setdefault("value", value)
    within_package(run, main, entry, text)
    exec(sizes.code_of(run, text, entry), main.__dict__)
    command = commands_installed(run.root).get(entry, "")
    if not run.recorder.backwards and not is_script(run.tree(entry)) and command in main.__dict__:
        main.__dict__[command]()


COMMAND = re.compile(
    r"""=\s*["']?(?P<module>[A-Za-z_][\w.]*)\s*:\s*(?P<function>[A-Za-z_]\w*)\s*(?:["'\n]|$)"""
)
"""In what says how a project is installed: a command, and the function of a module that it calls
(https://packaging.python.org/en/latest/specifications/entry-points)."""


@functools.cache
def commands_installed(root: str) -> dict[str, str]:
    """The modules of a project that are commands once it is installed, and the function that each calls."""
    found: dict[str, str] = {}
    root = os.path.abspath(root)
    for name in {"setup.py", "setup.cfg", "pyproject.toml"} & {*os.listdir(root)}:
        for at in COMMAND.finditer(context.read(os.path.join(root, name))):
            inner = os.path.join(*at["module"].split("."))
            for place in (inner + ".py", os.path.join(inner, "__init__.py")):
                for path in (os.path.join(root, place), os.path.join(root, "src", place)):
                    if os.path.isfile(path):
                        found.setdefault(path, at["function"])
    return found


README = re.compile(r"readme.*\.(md|markdown)$", re.I)
BLOCK = re.compile(r"^```[ {.]*(?:python|py)\d?\b[^\n]*\n(.*?)^```", re.I | re.M | re.S)


def examples(run: context.Run) -> list[tuple[str, str]]:
    """The programs by which the project's README shows how what nobody calls is used, each with its file.

    They keep the lines that they have in it.
    """
    wanted = {node.name for node in derive.uncalled(run.tree(run.script))}
    found = []
    for folder in run.folders():
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            text = context.read(path) if README.match(name) and os.path.isfile(path) else ""
            for block in BLOCK.finditer(text):
                program = "\n" * text.count("\n", 0, block.start(1)) + block[1]
                if mentions(context.parse(program).body, wanted):
                    found.append((path, program))
    return found


def entries(run: context.Run) -> list[str]:
    """The scripts of the project that reach the run's script by their imports, best first."""
    files = project_files(run)
    imported = {path: imports(run, path) for path in files}
    found: list[tuple[bool, bool, int, bool, int, str]] = []
    own = re.compile(r"(?<![^\W_])" + re.escape(module_name(run.script)) + r"(?![^\W_])", re.I)
    reached = {run.script}
    wave = [run.script]
    for distance in range(1, APART + 1):
        names = {module_name(path) for path in wave}
        folders = {module_name(os.path.dirname(path)) for path in wave}
        told = any(in_settings(run, path) for path in wave)
        wave = [
            path
            for path in files
            if path not in reached
            and (imported[path] & names or ("*" in imported[path] and (told or module_name(path) in folders)))
        ]
        reached.update(wave)
        for path in wave:
            name = os.path.basename(path)
            started = is_script(run.tree(path)) and name not in ("__init__.py", "setup.py")
            if started or path in commands_installed(run.root):
                other = bool(OTHER.search(os.path.relpath(path, run.root)))
                # ``ppo_gym.py`` is more likely to train ``ppo.py`` than another that imports it as well.
                alike = own.search(name) is not None
                usual = alike or USUAL.search(name) is not None
                found.append((other, not usual, distance, not alike, len(path), path))
    ordered = [one[-1] for one in sorted(found)]
    # A test often puts something in the place of what trains.
    return [one for one in ordered if not TESTS.search(os.path.relpath(one, run.root))] or ordered


def chosen(tree: ast.Module, module: str) -> list[tuple[str, str]]:
    """The options by whose values a script takes what it imports from a module, with these values.

    ``if args.policy == "TD3": policy = TD3.TD3()``; where the other branch takes it as well, or where it is
    taken as the script stands, there is nothing to choose.
    """
    names: set[str] = set()
    for node in context.walk(tree):
        if isinstance(node, ast.Import):
            found = [one for one in node.names if one.name.rpartition(".")[2] == module]
            names |= {one.asname or one.name.partition(".")[0] for one in found}
        elif isinstance(node, ast.ImportFrom):
            within = (node.module or "").rpartition(".")[2] == module
            names |= {one.asname or one.name for one in node.names if within or one.name == module}
    wanted: dict[str, list[str]] = {}
    for node in context.walk(tree):
        if isinstance(node, ast.If) and mentions(node.body, names) and not mentions(node.orelse, names):
            tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
            # What else it insists on there.
            tests = [*tests[:1], *(one.test for one in node.body if isinstance(one, ast.Assert))]
            for test in tests:
                if (one := compared(test)) is not None:
                    wanted.setdefault(one[0], []).append(one[1])
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values):
                option = option_of(node.slice)
                if option and isinstance(key, ast.Constant) and mentions([value], names):
                    if isinstance(key.value, str):
                        wanted.setdefault(option, []).append(key.value)
    usual = defaults(tree)
    trains = {
        option: [one for one in values if not commands.ELSE.search(one)]
        for option, values in wanted.items()
        if usual.get(option) not in values
    }
    return [(option, values[0]) for option, values in trains.items() if values]


def named_by_option(
    tree: ast.Module, own: list[str], others: set[str], files: list[str]
) -> list[tuple[str, str]]:
    """The options by whose values a script finds a definition of the file, with the first of its ``own``.

    ``eval(args.runner)``, ``globals()[args.runner]``, ``getattr(runners, args.runner)``: each option that
    names one of the ``others`` if nobody says otherwise, which are of the same kind.
    """
    found: list[str] = []
    for node in context.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("eval", "getattr"):
            found += [option_of(one) for one in node.args[:2]]
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):
            found += [option_of(node.slice)] if getattr(node.value.func, "id", "") == "globals" else []
    usual = defaults(tree)
    named = [(option, own[0]) for option in found if own and usual.get(option) in others.difference(own)]
    return named + [one for option, value in named for one in said_alike(usual, usual[option], value, files)]


def said_alike(usual: dict[str, str], before: str, now: str, files: list[str]) -> list[tuple[str, str]]:
    """Other options that go with what another one names: ``wide.yml`` with ``WideRunner`` where there is a
    ``deep.yml`` for ``DeepRunner``."""
    found = []
    for option, value in usual.items():
        stem, ending = os.path.splitext(value)
        if ending and stem and stem.lower() in before.lower():
            fitting = [
                one for one in files if one.endswith(ending) and one[: -len(ending)].lower() in now.lower()
            ]
            found += [(option, one) for one in fitting[:1]]
    return found


def training(tree: ast.Module) -> list[str]:
    """What a file defines that differentiates."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    return [node.name for node in tree.body if isinstance(node, kinds) and ".backward(" in ast.unparse(node)]


def definitions_beside(run: context.Run) -> set[str]:
    """What the files in the folder of the run's script define."""
    folder = os.path.dirname(run.script)
    files = [os.path.join(folder, one) for one in os.listdir(folder) if one.endswith(".py")]
    nodes = [node for path in files for node in run.tree(path).body]
    return {node.name for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def defaults(tree: ast.Module) -> dict[str, str]:
    """The texts that the options of a script are if nobody says otherwise, by the names of the options."""
    found: dict[str, str] = {}
    for node in context.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            names = [one.value for one in node.args if isinstance(one, ast.Constant)]
            given = next((one.value for one in node.keywords if one.arg == "default"), None)
            if isinstance(given, ast.Constant) and type(given.value) is str:
                found.update({str(one).lstrip("-").replace("-", "_"): given.value for one in names})
    return found


def compared(test: ast.expr) -> tuple[str, str] | None:
    """The option that a condition compares with a text, or asks for among texts, and the (first) text."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not (option := option_of(test.left)):
        return None
    (other,) = test.comparators
    if isinstance(test.ops[0], ast.In) and isinstance(other, (ast.List, ast.Tuple, ast.Set)) and other.elts:
        other = other.elts[0]
    elif not isinstance(test.ops[0], ast.Eq):
        return None
    return (option, other.value) if isinstance(other, ast.Constant) and type(other.value) is str else None


def option_of(node: ast.expr) -> str:
    """The name of the option that an expression reads (``args.policy``, ``args.policy.lower()``), or none."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        node = node.func.value
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""


def mentions(nodes: list[ast.stmt] | list[ast.expr], names: set[str]) -> bool:
    """Whether any of ``names`` is read in ``nodes``."""
    return any(
        isinstance(inner, ast.Name) and inner.id in names for node in nodes for inner in context.walk(node)
    )


def project_files(run: context.Run) -> list[str]:
    """The project's Python files, those of the script's own folder first."""
    found = []
    for folder, inner, names in context.folders(run.root):
        inner[:] = sorted(
            one for one in inner if one[0] != "." and one not in ("site-packages", "node_modules")
        )
        found += [os.path.join(folder, name) for name in sorted(names) if name.endswith(".py")]
        if len(found) > 10 * FILES:
            break
    near = os.path.dirname(run.script)
    found.sort(key=lambda path: (-len(os.path.commonpath([near, path])), path))
    return [path for path in found if path != run.script][:FILES]


def module_name(path: str) -> str:
    """The last part of the name by which a file is imported; a package's is its folder's."""
    folder, name = os.path.split(path)
    return os.path.basename(folder) if name == "__init__.py" else name[:-3] if name.endswith(".py") else name


def in_settings(run: context.Run, path: str) -> bool:
    """Whether a file of settings of the project names what a file defines: ``agents.learner.Learner``."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    names = "|".join(node.name for node in run.tree(path).body if isinstance(node, kinds))
    named = re.compile(rf"(?<![\w/]){re.escape(module_name(path))}\.(?:{names or '$'})\b")
    return any(named.search(context.read(one)) for one in settings_files(run.root))


@functools.cache
def settings_files(root: str) -> tuple[str, ...]:
    """A project's files of settings."""
    found: list[str] = []
    for above, inner, names in context.folders(root):
        inner[:] = sorted(one for one in inner if one[0] != ".")
        found += [
            os.path.join(above, one) for one in sorted(names) if one.endswith((".yaml", ".yml", ".json"))
        ]
        if len(found) > FILES:
            break
    return tuple(one for one in found[:FILES] if os.path.getsize(one) <= arguments.LARGE)


BY_NAME = ("import_module", "instantiate", "get_class", "locate")
"""Functions that take what they import, or what they make an object of, by its name."""


def imports(run: context.Run, path: str) -> frozenset[str]:
    """The last parts of all names that a file imports; ``*`` if it imports by names that it makes."""
    found: set[str] = set()
    for node in context.walk(run.tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name.rpartition(".")[2] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.name for alias in node.names)
            folder = path
            for _ in range(node.level):
                folder = os.path.dirname(folder)
            found.add((node.module or (os.path.basename(folder) if node.level else "")).rpartition(".")[2])
        elif getattr(node, "attr", getattr(node, "id", "")) in BY_NAME:
            found.add("*")
    return frozenset(found - {""})


def is_script(tree: ast.Module) -> bool:
    """Whether a file does something when it is run: it asks for its name, loops or calls at its top."""
    return any(
        (isinstance(node, ast.If) and "__name__" in ast.dump(node.test))
        or isinstance(node, (ast.For, ast.While))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not prepares(node.value))
        for node in tree.body
    )


def prepares(call: ast.Call) -> bool:
    """Whether a call at the top of a module only prepares what follows."""
    return bool(PREPARES.search(ast.unparse(call.func)))


def within_package(run: context.Run, main: types.ModuleType, path: str, text: str) -> None:
    """Let a script of a package import relative to itself, as ``python -m`` would."""
    above_namesakes(run, os.path.dirname(path), text)
    level = max(
        (node.level for node in context.walk(context.parse(text)) if isinstance(node, ast.ImportFrom)),
        default=0,
    )
    if not level:
        return
    folders = list(packages(os.path.dirname(path), level))
    name = ""
    for folder in reversed(folders):
        parent, name = name, (name + "." if name else "") + re.sub(r"\W", "_", os.path.basename(folder))
        known = sys.modules.get(name)
        if known is not None and folder in getattr(known, "__path__", ()):
            continue
        if known is not None:
            name += "_"  # A library has that name.
        module = types.ModuleType(name)
        module.__path__ = [folder]
        module.__package__ = name
        module.__file__ = start = os.path.join(folder, "__init__.py")
        sys.modules[name] = module
        if parent:
            setattr(sys.modules[parent], name.rpartition(".")[2], module)
        if os.path.isfile(start):
            exec(sizes.code_of(run, run.text(start), start), module.__dict__)
    main.__package__ = name
    run.used("python -m", "the script is run as a part of the package " + name)


def above_namesakes(run: context.Run, folder: str, text: str) -> None:
    """Let ``import name.part`` find the project's package, though a ``name.py`` stands by the script."""
    for whole in imports_whole(text):
        first, _, rest = whole.partition(".")
        if rest and os.path.isfile(os.path.join(folder, first + ".py")):
            part = os.path.join(first, rest.split(".")[0])
            for above in run.folders()[1:]:
                place = os.path.join(above, part)
                if above != folder and (os.path.isdir(place) or os.path.isfile(place + ".py")):
                    sys.path.insert(0, above)
                    break


def imports_whole(text: str) -> set[str]:
    """The whole names of the modules that a text imports, other than relative to itself."""
    found: set[str] = set()
    for node in context.walk(context.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
    return found


def packages(folder: str, level: int) -> Iterator[str]:
    """A script's folder and those above it that are packages, as many as its imports go up at least."""
    while level > 0 or os.path.isfile(os.path.join(folder, "__init__.py")):
        yield folder
        level -= 1
        if os.path.dirname(folder) == folder:
            return
        folder = os.path.dirname(folder)
