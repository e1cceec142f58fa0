"""Arrows run one way: which part may import which, read off the import statements."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from fakes import ROOT

MODULES = sorted([*(ROOT / "gradfix").rglob("*.py"), *(ROOT / "codemods").glob("*.py")])

ROOMS = {
    "runtime": (),
    "system": ("runtime",),
    "core": (),
    "project": ("core", "runtime", "system"),
    "autograd": ("core", "project", "system"),
    "rules": ("autograd", "core", "project", "system"),
    "codemods": ("autograd", "core", "rules"),
    "rewriting": ("core",),
    "verify": ("core", "project", "runtime", "system"),
    "pipeline": ("autograd", "core", "project", "rewriting", "rules", "system", "verify"),
    "report": ("core", "pipeline", "project", "rewriting", "rules", "system", "verify"),
    "watch": ("core", "pipeline", "project", "rewriting", "rules", "runtime", "system", "verify"),
    "authoring": ("autograd", "core", "pipeline", "project", "rules", "system", "verify"),
    "environment": ("core", "project", "system", "verify"),
    "bot": ("autograd", "core", "pipeline", "project", "report", "rewriting", "rules", "system", "verify"),
}
"""By room: the rooms that its modules may import from, beside their own. The command line may import all, and
nothing imports it."""

CHAPTERS = tuple(
    f"gradfix.pipeline.{name}" for name in ("options", "analysis", "choosing", "proving", "reviewing")
)
EDITS = tuple(
    f"gradfix.core.codemod.{edit}"
    for edit in ("Edit", "Fix", "InsertStatement", "MoveStatement", "RemoveArgument", "RemoveStatement")
)
MODEL = tuple(
    f"gradfix.autograd.{name}"
    for name in ("interpreter", "program", "trace_queries", "model_ledger", "prediction", "regression")
)
BELOW_SEMANTICS = (
    *(
        "graph",
        "iteration_numbers",
        "relevance",
        "operators",
        "values",
        "run",
        "arguments",
        "parameters",
        "engine",
    ),
    *("imports", "script_options", "unbound", "summaries", "matching"),
)
MAY_NOT_IMPORT = {
    "gradfix.autograd": (*EDITS, "torch", "libcst"),
    # Values, the state of a run, what each thing does, how statements are executed, whole programs.
    **{f"gradfix.autograd.{name}": (*MODEL, "gradfix.autograd.semantics") for name in BELOW_SEMANTICS},
    "gradfix.autograd.semantics": MODEL,
    "gradfix.autograd.interpreter": MODEL[1:],
    "gradfix.codemods": ("gradfix.rules.catalog",),
    "gradfix.rules": ("torch", "libcst"),
    "gradfix.rewriting.patch": ("libcst",),
    # It runs in the user's interpreter, where gradfix is not installed.
    "gradfix.runtime": ("gradfix",),
    "gradfix.environment": ("torch",),
    # Each chapter of the pipeline knows those before it.
    **{
        chapter: ("gradfix.pipeline.driver", *CHAPTERS[number:])
        for number, chapter in enumerate(CHAPTERS, start=1)
    },
    "gradfix.pipeline.results": ("gradfix.pipeline.driver", *CHAPTERS),
    # It does not run anything, and rewrites nothing itself.
    "gradfix.bot": ("gradfix.verify", "gradfix.rewriting.rewrite", "torch", "libcst"),
    # The phase that holds the token: nothing of it reaches what runs code.
    "gradfix.bot.publish": ("gradfix.bot.planning",),
    "gradfix.bot.replay": ("gradfix.bot.planning",),
    "gradfix.bot.review": ("gradfix.bot.planning",),
}
"""What a module may not import besides, its package's rules and its own."""

ALLOWED = {"gradfix.bot": "gradfix.verify.checks"}
"""What may be imported nevertheless: it says when the checks in a plan make a proof."""

RUNTIME = ROOT / "gradfix" / "runtime"

STARTS_THE_COMMAND_LINE = {"gradfix.__main__"}


def name_of(path: Path) -> str:
    """The dotted name of a module; codemods are part of the package when it is installed."""
    relative = path.relative_to(ROOT).with_suffix("")
    parts = relative.parts if relative.parts[0] == "gradfix" else ("gradfix", *relative.parts)
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path) -> Iterator[str]:
    """Everything that a module imports, at once or later, with the names that it takes from modules."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                # What is loaded by path has no other way to name each other.
                assert RUNTIME in path.parents, f"{path}: a relative import"
                assert node.level <= len(path.relative_to(RUNTIME).parts), f"{path}: out of the runtime"
                continue
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_at_run_time(path: Path) -> set[str]:
    """The modules that a module imports, at once or later, without what only a type checker sees."""
    tree = ast.parse(path.read_bytes())
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    known = {name_of(one) for one in MODULES}
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in known else str(node.module))
    return found


def belongs(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def test_only_the_bot_knows_the_network() -> None:
    for path in MODULES:
        found = set(imports(path))
        if any(belongs(module, "httpx2") for module in found):
            assert name_of(path) == "gradfix.bot.http"
        if any(belongs(module, "gradfix.bot") for module in found):
            assert belongs(name_of(path), "gradfix.bot") or belongs(name_of(path), "gradfix.cli")


def room_of(module: str) -> str:
    """The room of a module; nothing for what starts the others, or is no module of gradfix."""
    parts = module.split(".")
    rooms = {*ROOMS, "cli"}
    return parts[1] if parts[0] == "gradfix" and len(parts) > 1 and parts[1] in rooms else ""


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_arrows_between_rooms_run_one_way(path: Path) -> None:
    own = room_of(name_of(path))
    if own in ("", "cli"):
        return
    found = {module for module in imported_at_run_time(path) if room_of(module)}
    assert {module for module in found if room_of(module) not in (own, *ROOMS[own])} == set()


def test_every_module_has_a_room() -> None:
    without = {name_of(path) for path in MODULES if not room_of(name_of(path))}
    assert without == {"gradfix", *STARTS_THE_COMMAND_LINE}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_imports_what_it_may_not(path: Path) -> None:
    own = name_of(path)
    if own in STARTS_THE_COMMAND_LINE:
        return
    rules = [rule for package, rules in MAY_NOT_IMPORT.items() if belongs(own, package) for rule in rules]
    allowed = [module for package, module in ALLOWED.items() if belongs(own, package)]
    found = [module for module in imports(path) if any(belongs(module, rule) for rule in rules)]
    # A package is named by who imports a module of it.
    packages = {one.rpartition(".")[0] for one in allowed}
    assert [m for m in found if m not in packages and not any(belongs(m, one) for one in allowed)] == []


@pytest.mark.parametrize(
    "path", [path for path in MODULES if belongs(name_of(path), "gradfix.codemods")], ids=name_of
)
def test_codemods_import_only_gradfix_and_the_standard_library(path: Path) -> None:
    assert {module.split(".")[0] for module in imports(path)} <= {"gradfix", *sys.stdlib_module_names}


TORCHLESS = ("__init__", "__main__", "autograd_errors", "sandbox", "watch", "probe.server", "probe.stranger")
"""What runs before torch is imported, or without it: it may name torch in functions alone, if at all."""


@pytest.mark.parametrize("path", sorted(RUNTIME.rglob("*.py")), ids=name_of)
def test_what_runs_in_the_users_interpreter_needs_only_torch(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 9))
    # Where there is a numpy, scripts may draw random numbers from it, so the probe seeds it.
    found = {module.split(".")[0] for module in imports(path)}
    standins = {"pandas", "PIL", "cv2"} if belongs(name_of(path), "gradfix.runtime.standins") else set()
    assert found <= {"torch", "numpy", *standins, *sys.stdlib_module_names}
    if any(belongs(name_of(path), f"gradfix.runtime.{one}") for one in TORCHLESS):
        assert not any(isinstance(one, ast.Import) and one.names[0].name == "torch" for one in tree.body)


@pytest.mark.parametrize("root", ["gradfix.runtime", "gradfix.verify", "gradfix.autograd"])
def test_there_is_no_import_cycle(root: str) -> None:
    graph: dict[str, set[str]] = {}
    names = {name_of(path): path for path in MODULES if belongs(name_of(path), root)}
    for name, path in names.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_bytes())):
            if not isinstance(node, ast.ImportFrom):
                continue
            source = node.module or ""
            if node.level:
                above = package.split(".")[: 1 - node.level or None]
                source = ".".join(filter(None, [*above, node.module]))
            wanted = {f"{source}.{alias.name}" for alias in node.names} | {source}
            # A package is not its modules: who asks it for one of them imports that one.
            found = {one for one in wanted if one in names and names[one].name != "__init__.py"}
            graph.setdefault(name, set()).update(found - {name})
    order = TopologicalSorter(graph)
    order.prepare()  # It raises if there is a cycle.


def test_the_interpreter_knows_no_name_of_torch() -> None:
    known = re.compile(r"torch|requires_grad|no_grad|zero_grad|optim|backward|detach")
    for path in [
        *(ROOT / "gradfix" / "autograd" / "interpreter").glob("*.py"),
        ROOT / "gradfix/autograd/run.py",
    ]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                assert not known.search(node.value), f"{path.name}, line {node.lineno}: {node.value}"


OPENING = frozenset({"open", "read_text", "read_bytes", "write_text", "write_bytes", "touch"})
CHANGING = {
    *(f"os.{name}" for name in ("replace", "rename", "link", "symlink", "chmod", "chown", "lchown")),
    *("tempfile.mkstemp", "shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move"),
}

OPENS_OTHERWISE = {
    "gradfix.system.files": "it is the one way",
    "gradfix.cli.commands": "os.devnull",
    "gradfix.cli.output": "os.devnull",
    "gradfix.system.store": "the cache, which may be lost: it is not synchronised",
    "gradfix.environment.cache": "the cache, a folder that only the user can write to",
    "gradfix.environment.build": "the cache",
    "gradfix.environment.resolve": "the cache",
    "gradfix.verify.runner": "a temporary folder of its own",
    "gradfix.verify.server": "the log of a process, in the runner's folder",
    "gradfix.system.scratch": "temporary folders of its own, by descriptors",
    "gradfix.runtime.sandbox.removal": "a temporary folder of its own, by descriptors",
    "gradfix.bot.git": "a temporary folder of its own",
    "gradfix.project.checkout": "a temporary folder of its own",
    "gradfix.runtime": "where nothing of gradfix is, or looking at /proc and at its own",
}


def opens(path: Path) -> Iterator[str]:
    """The calls by which a module opens or changes files."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in CHANGING or called.rpartition(".")[2] in OPENING:
            yield f"line {node.lineno}: {called}"


def test_files_are_read_and_written_in_one_place() -> None:
    elsewhere = [
        path for path in MODULES if not any(belongs(name_of(path), allowed) for allowed in OPENS_OTHERWISE)
    ]
    found = {name_of(path): calls for path in elsewhere if (calls := list(opens(path)))}
    assert found == {}, "use gradfix.system.files, which waits for nothing and follows no link"


def test_what_may_open_files_otherwise_does() -> None:
    modules = {name: [path for path in MODULES if belongs(name_of(path), name)] for name in OPENS_OTHERWISE}
    assert [name for name, paths in modules.items() if not any(list(opens(path)) for path in paths)] == []


def test_files_need_only_the_standard_library() -> None:
    found = {module.split(".")[0] for module in imports(ROOT / "gradfix" / "system" / "files.py")}
    assert found <= set(sys.stdlib_module_names)
