"""Where a missing module comes from: the project's other folders, a stand-in, or nothing but its name."""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import types
from collections.abc import Sequence
from typing import Any

from . import content, context, inert, installed, media, pyx, samples

MODULES = os.path.join(context.HERE, "modules")

LENIENT = frozenset(
    """
    wandb tensorboard tensorboardX tensorboard_logger tensorboardx matplotlib mpl_toolkits seaborn
    plotly visdom rich progressbar alive_progress colorama termcolor tabulate prettytable mlflow
    comet_ml neptune clearml aim sacred pylab IPython ipdb loguru coloredlogs psutil GPUtil pynvml
    nvidia_smi torchsummary torchinfo torchviz hiddenlayer graphviz pydot bokeh altair cycler
    imageio_ffmpeg moviepy pyglet beepy git telegram slack requests_toolbelt line_profiler
    memory_profiler pytorch_memlab gputil blessings crayons humanize setproctitle dotenv logger_tt
    colorlog swanlab dllogger nsml livelossplot torch_tb_profiler pyvirtualdisplay ipywidgets imgcat tkinter
    turtle celluloid terminaltables texttable yaspin halo prefetch_generator_log thop ptflops fvcore
    torchprofile calflops flopth
    """.split()
)
"""Modules that log, plot, show progress, count operations, watch the machine: nothing of it trains."""


class Finder(importlib.abc.MetaPathFinder):
    """The last finder: asked for what nobody else has."""

    def __init__(self, run: context.Run) -> None:
        self.run = run

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The place of a missing module, for an import in the user's code only.

        Libraries ask for optional modules all the time, and so does a script in ``try``: those
        have another way ready, which is the user's own.
        """
        top = fullname.split(".")[0]
        parent = sys.modules.get(fullname.rpartition(".")[0])
        frame = importing(self.run)
        if frame is None or self.guarded(frame):
            return None
        if parent is not None:
            if getattr(parent, "__name__", "").startswith("_gradfix_standins.modules."):
                return package(fullname, Within(parent))
            return self.beside(fullname, parent)
        found = self.elsewhere(fullname, known=(has(top) and top != "datasets") or top in LENIENT)
        if found is not None:
            return found
        if fullname in RENAMED:
            self.run.used(fullname, "what it is called today, " + RENAMED[fullname])
            return importlib.machinery.ModuleSpec(fullname, Renamed())
        if has(top):
            self.run.modern_gym |= top == "gymnasium"
            self.run.used(top, "a stand-in with the same shapes")
            return package(fullname, Specific())
        lenient = top in LENIENT
        self.run.used(top, "nothing: it only logs or shows" if lenient else "objects without values")
        return package(fullname, Inert(lenient))

    def beside(self, fullname: str, parent: types.ModuleType) -> importlib.machinery.ModuleSpec | None:
        """A submodule that an installed package no longer has (``scipy.misc`` and the like)."""
        name = getattr(parent, "__file__", None) or next(iter(getattr(parent, "__path__", ())), "")
        folder, last = os.path.dirname(name), fullname.rpartition(".")[2]
        source = source_of(folder, os.path.abspath(self.run.root), fullname) or os.path.join(
            folder, last + ".pyx"
        )
        if self.run.recorder.in_project(name) and (found := pyx.loader(source)):
            self.run.used("compiled code " + fullname, "its Cython, read as Python")
            return importlib.machinery.ModuleSpec(fullname, found)
        if self.run.recorder.in_project(name) and VERSION.match(last):
            self.run.used(fullname, "no version")
            return importlib.machinery.ModuleSpec(fullname, Version())
        if self.run.recorder.in_project(name) and is_built(folder, fullname):
            self.run.used("compiled code " + fullname, "objects without values")
            return package(fullname, Inert(False))
        if not hasattr(parent, "__path__"):
            return None
        if self.run.recorder.in_project(name) and (
            others_by_option(folder, last) or self.is_name(parent, last)
        ):
            return None
        self.run.used(fullname, "objects without values")
        return package(fullname, Inert(False))

    def is_name(self, parent: types.ModuleType, last: str) -> bool:
        """Whether ``from package import Name`` is asked for, which need not be a module."""
        frame = self.run.caller()
        nodes = (
            context.statements_at(self.run.tree(frame.f_code.co_filename), frame.f_lineno) if frame else []
        )
        asking = nodes[-1] if nodes else None
        return isinstance(asking, ast.ImportFrom) and last in {one.name for one in asking.names}

    def elsewhere(self, fullname: str, known: bool) -> importlib.machinery.ModuleSpec | None:
        """A module of the project, found from another folder than the script's.

        One that is ``known`` to be a library has to be a module or a package, not only a folder, and
        not a part of a package: ``agents/gym`` of the package ``agents`` is ``agents.gym``. It may be any
        folder that holds the very module within it that is asked for.
        """
        folders = self.run.folders()
        root = folders[-1]
        try:
            inner = sorted(
                entry.path for entry in os.scandir(root) if entry.is_dir() and entry.name[0] != "."
            )
        except OSError:
            inner = []
        # What a script adds relative to the folder that it is started in, which is mostly its own.
        added = [os.path.normpath(os.path.join(folders[0], entry)) for entry in sys.path if entry[:1] == "."]
        for folder in dict.fromkeys([*folders, *added, self.asking(), *inner]):
            other = known and folder != folders[0] and os.path.isfile(os.path.join(folder, "__init__.py"))
            found = importlib.machinery.PathFinder.find_spec(fullname, [folder])
            if (
                found is not None
                and not within_package(found.origin)
                and ((found.origin and not other) or self.is_meant(found, fullname, folder, known))
            ):
                shown = os.path.relpath(folder, root)
                self.run.used("import of " + fullname, "the project's own, from folder " + shown)
                sys.path.append(folder)
                return found
        place = None if known else self.deeper(fullname, root)
        if place is None:
            return None if known else self.itself(fullname, root)
        folder = os.path.dirname(place)
        sys.path.append(folder)
        self.run.used(
            "import of " + fullname, "the project's own, from folder " + os.path.relpath(folder, root)
        )
        return importlib.machinery.PathFinder.find_spec(fullname, [folder])

    def is_meant(self, found: Any, fullname: str, folder: str, known: bool) -> bool:
        """Whether any folder can be what is asked for; if a library is called so as well, it has to hold the
        very module within it: ``from baselines.graphs.model import Graphs``."""
        if not known:
            return holds_code(found) and self.could_be(fullname, folder)
        frame = self.run.caller()
        nodes = (
            context.statements_at(self.run.tree(frame.f_code.co_filename), frame.f_lineno) if frame else []
        )
        asked = str(getattr(nodes[-1], "module", None) or "") if nodes else ""
        inside = asked.startswith(fullname + ".")
        return inside and os.path.isfile(os.path.join(folder, *asked.split(".")) + ".py")

    def asking(self) -> str:
        """The folder of the module that asks."""
        frame = self.run.caller()
        return os.path.dirname(frame.f_code.co_filename if frame is not None else self.run.script)

    def itself(self, name: str, root: str) -> importlib.machinery.ModuleSpec | None:
        """The project as a package by the name that its folder has, or has elsewhere."""
        frame = self.run.caller()
        nodes = (
            context.statements_at(self.run.tree(frame.f_code.co_filename), frame.f_lineno) if frame else []
        )
        asked = getattr(nodes[-1], "module", None) if nodes else None
        rest = str(asked or "").split(".")[1:]
        inside = os.path.join(root, *rest)
        if os.path.basename(root) != name and not (
            rest and (os.path.isfile(inside + ".py") or os.path.isdir(inside))
        ):
            return None
        self.run.used("import of " + name, "the project itself")
        own = os.path.join(root, "__init__.py")
        if os.path.isfile(own):
            return importlib.util.spec_from_file_location(name, own, submodule_search_locations=[root])
        found = importlib.machinery.ModuleSpec(name, None, is_package=True)
        found.submodule_search_locations = [root]
        return found

    def deeper(self, name: str, root: str) -> str | None:
        """The file or package called ``name`` beside the module that asks, else nearest to the script."""
        places = []
        near = self.asking()
        for count, (folder, inner, files) in enumerate(context.folders(root)):
            inner[:] = sorted(one for one in inner if one[0] != "." and one != "site-packages")
            package = name in inner and has_code(os.path.join(folder, name)) and self.could_be(name, folder)
            if package or (name + ".py" in files and not within_package(os.path.join(folder, name + ".py"))):
                shared = os.path.commonpath([folder, os.path.dirname(self.run.script)])
                places.append((folder != near, -len(shared), len(folder), os.path.join(folder, name)))
            if count > 2000:
                break
        return min(places)[3] if places else None

    def could_be(self, name: str, above: str) -> bool:
        """Whether a folder can be the package that is asked for: one without ``__init__.py`` has nothing but
        its modules to give, so ``from trainer import Trainer`` does not mean a folder of three scripts."""
        folder = os.path.join(above, *name.split("."))
        if os.path.isfile(os.path.join(folder, "__init__.py")):
            return True
        frame = self.run.caller()
        nodes = (
            context.statements_at(self.run.tree(frame.f_code.co_filename), frame.f_lineno) if frame else []
        )
        asking = nodes[-1] if nodes else None
        if not isinstance(asking, ast.ImportFrom) or not asking.module or asking.level:
            return True
        if asking.module != name and not asking.module.startswith(name + "."):
            return True
        within = asking.module.split(".")[len(name.split(".")) :][:1]
        inside = {one.removesuffix(".py") for one in real_names(folder)}
        return bool(inside & ({*within} or {"*", *(one.name for one in asking.names)}))

    def guarded(self, frame: types.FrameType) -> bool:
        """Whether the import stands in a ``try`` that has another way ready."""
        tree = self.run.tree(frame.f_code.co_filename)
        for node in context.walk(tree):
            if isinstance(node, ast.Try) and any(covers(child, frame.f_lineno) for child in node.body):
                for handler in node.handlers:
                    if catches_imports(handler.type):
                        return not context.gives_up(handler.body)
        return False


class Inner(importlib.abc.MetaPathFinder):
    """The first finder: asked for what belongs to a stand-in, whose folder is not the script's to look in."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The place of a submodule of a stand-in, or of a package that is only a folder."""
        parent = sys.modules.get(fullname.rpartition(".")[0])
        if isinstance(parent, inert.InertModule):
            return package(fullname, Inert(parent._lenient))
        if content.book.planned("package " + fullname, "gathered"):
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            if spec is not None and spec.submodule_search_locations is not None and spec.origin is None:
                found = package(fullname, Gathered())
                found.submodule_search_locations = list(spec.submodule_search_locations)
                return found
            if spec is not None and spec.origin is not None and spec.submodule_search_locations is not None:
                spec.loader = Whole(fullname, spec.origin)
                return spec
        ours = getattr(parent, "__name__", "").startswith("_gradfix_standins.modules.")
        if ours and not fullname.startswith("_gradfix_standins."):
            return package(fullname, Specific() if has(fullname) else Within(parent))
        return None


def within_package(path: str | None) -> bool:
    """Whether a file imports from the package around it: nobody can import it by its own name alone, so who
    asks for that name means a library (``pose/imutils.py`` beside ``import imutils``)."""
    if not path or os.path.basename(path) == "__init__.py" or not path.endswith(".py"):
        return False
    beside = os.path.isfile(os.path.join(os.path.dirname(path), "__init__.py"))
    return beside and RELATIVE.search(context.read(path)) is not None


RELATIVE = re.compile(r"^from\s+\.", re.M)


def defining(run: context.Run, package: Any, name: str) -> str | None:
    """The module of a package of the project that defines a name at its top."""
    for folder in getattr(package, "__path__", ()):
        for file in sorted(os.listdir(folder)) if run.owns_file(os.path.join(folder, "__init__.py")) else ():
            text = context.read(os.path.join(folder, file)) if file.endswith(".py") else ""
            if re.search(
                r"^(?:(?:class|def)\s+" + re.escape(name) + r"\b|" + re.escape(name) + r"\s*=)", text, re.M
            ):
                part: str = package.__name__ + "." + file[:-3]
                run.used("import of " + name, "that of " + part)
                return part
    return None


class Gathered(importlib.abc.Loader):
    """A package without the file that would say what it holds: what its modules define."""

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: Any) -> None:
        gather(module)


def gather(module: Any) -> None:
    """Let a package have what its modules define."""

    def attribute(name: str) -> Any:
        part = None if name.startswith("__") else defining(context.run(), module, name)
        if part is None:
            raise AttributeError(name)
        return getattr(importlib.import_module(part), name)

    module.__dict__["__getattr__"] = attribute


class Whole(importlib.machinery.SourceFileLoader):
    """A package whose own file leaves out what one of its modules defines."""

    def exec_module(self, module: Any) -> None:
        gather(module)
        super().exec_module(module)


LEFT_OUT = re.compile(r"cannot import name '\w+' from '([\w.]+)' \((?:unknown location|.*__init__\.py)\)")
"""The message about a package that is only a folder, or whose own file does not say all that it holds."""


ANOTHER = re.compile(r"cannot import name '\w+' from '(\w+)' \(.*\.py\)|module '(\w+)' has no attribute")
"""Messages about a module that another one of the project was found for, which has the same name."""


class Beside(ast.NodeTransformer):
    """Lets the modules of a package find those beside them first, as Python 2 does."""

    def __init__(self, path: str) -> None:
        self.folder = os.path.dirname(path)

    def is_beside(self, name: str) -> bool:
        """Whether there is such a module beside the one that imports it."""
        return os.path.isfile(os.path.join(self.folder, name + ".py"))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """``from shapes import area``."""
        if not node.level and self.is_beside(node.module or ""):
            node.level = 1
        return node

    def visit_Import(self, node: ast.Import) -> Any:
        """``import shapes``."""
        found: list[ast.stmt] = []
        for one in node.names:
            made = ast.ImportFrom(None, [one], 1) if self.is_beside(one.name) else ast.Import([one])
            found.append(ast.copy_location(made, node))
        return found


def as_python_2(path: str, tree: ast.AST) -> Any:
    """The tree of a module as Python 2 reads its imports, if it is one of a package."""
    within = path != context.run().entry and os.path.isfile(
        os.path.join(os.path.dirname(path), "__init__.py")
    )
    if not within or not content.book.planned("python", "imports"):
        return tree
    context.run().used("imports of Python 2", "a module beside the one that imports comes first")
    return Beside(path).visit(tree)


def advise(error: BaseException) -> str | None:
    """The plan in which such a package has what its modules define, or in which an option names a module
    that there is."""
    found, frame = ANOTHER.match(str(error)), context.raised_in(error)
    if found and frame is not None and context.run().owns(frame):
        name = found[1] or found[2]
        beside = os.path.join(os.path.dirname(frame.f_code.co_filename), name + ".py")
        taken = getattr(sys.modules.get(name), "__file__", None)
        if os.path.isfile(beside) and taken and not os.path.samefile(beside, taken):
            return content.planned_with("python", "imports", True)
    if not isinstance(error, ImportError):
        return None
    found = LEFT_OUT.match(str(error))
    if found:
        return content.planned_with("package " + found[1], "gathered", True)
    package, _, name = str(error.name or "").rpartition(".")
    folders = getattr(sys.modules.get(package), "__path__", ())
    return next((plan for folder in folders if (plan := another_module(folder, name)) is not None), None)


def another_module(folder: str, name: str) -> str | None:
    """The plan in which an option names another module of a folder than one that is not there."""
    for option, value, other in others_by_option(folder, name):
        tried = content.book.planned("argument " + option, "tried") or [value]
        if other not in tried and len(tried) < content.TURNS:
            content.book.plan.setdefault("argument " + option, {})["tried"] = [*tried, other]
            return content.planned_with("argument " + option, "value", other)
    return None


def others_by_option(folder: str, name: str) -> list[tuple[str, str, str]]:
    """The options in whose values the name of a module is made, with that value and others of modules that
    there are: ``importlib.import_module("data." + given.kind + "_dataset")``. Those of almost the same name
    come first, those that others derive from last.
    """
    found: list[tuple[str, str, str]] = []
    beside = sorted(one[:-3] for one in real_names(folder) if one.endswith(".py"))
    for option, value in content.book.options.items():
        if len(value) < 3 or value not in name:
            continue
        begin, _, end = name.partition(value)
        others = [
            one[len(begin) : len(one) - len(end)]
            for one in beside
            if one.startswith(begin) and one.endswith(end) and len(one) > len(begin) + len(end)
        ]
        others.sort(key=lambda one: (re.match(r"_|base|abstract|template", one) is not None, len(one)))
        found += [(option, value, one) for one in others if one != value]
    return found


def real_names(folder: str) -> list[str]:
    """What there is in a folder of the project."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def package(fullname: str, loader: importlib.abc.Loader) -> importlib.machinery.ModuleSpec:
    """A package, so that its submodules are asked for here as well."""
    return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)


def covers(node: ast.stmt, line: int) -> bool:
    """Whether a statement spans ``line``."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def catches_imports(kind: ast.expr | None) -> bool:
    """Whether ``except kind`` catches a failed import."""
    if kind is None:
        return True
    names = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")
    return any(isinstance(node, ast.Name) and node.id in names for node in context.walk(kind))


COMPILED = (".pyx", ".pxd", ".c", ".cc", ".cpp", ".cu")


def source_of(folder: str, root: str, fullname: str) -> str | None:
    """The Cython from which a setup of the project makes a module, if it says so."""
    made = re.escape(fullname) + r"""['"]\s*,\s*(?:sources\s*=\s*)?\[\s*['"]([^'"]+\.pyx)['"]"""
    while (folder + os.sep).startswith(root + os.sep):
        if found := re.search(made, context.read(os.path.join(folder, "setup.py"))):
            return os.path.join(folder, found[1])
        folder = os.path.dirname(folder)
    return None


def is_built(folder: str, fullname: str) -> bool:
    """Whether a module of a package is compiled first, from a source of its name or by a setup."""
    name = fullname.rpartition(".")[2]
    for one in (folder, os.path.dirname(folder)):
        if any(os.path.isfile(os.path.join(one, name + ending)) for ending in COMPILED):
            return True
        if "ext_modules" in context.read(os.path.join(one, "setup.py")):
            return True
    return False


def has_code(folder: str) -> bool:
    """Whether there are modules in a folder, or in one within it."""
    inner = [os.path.join(folder, one) for one in real_names(folder)]
    names = [*inner, *(name for one in inner if os.path.isdir(one) for name in real_names(one))]
    return any(name.endswith(".py") for name in names)


def holds_code(spec: importlib.machinery.ModuleSpec) -> bool:
    """Whether a folder without ``__init__.py`` holds modules."""
    return any(
        name.endswith(".py")
        for folder in spec.submodule_search_locations or ()
        for name in os.listdir(folder)
    )


def importing(run: context.Run) -> types.FrameType | None:
    """The user's frame whose import statement is being executed, if a statement of the user is."""
    frame: types.FrameType | None = sys._getframe(2)
    # What a configuration of logging names is imported because the user's code says so.
    through = ("importlib", "logging" + os.sep + "config.py", "logging/config.py")
    while frame is not None and any(one in frame.f_code.co_filename for one in through):
        frame = frame.f_back
    return frame if frame is not None and run.owns(frame) else None


ALIASES = {
    "ale_py": "atari_py",
    "attrs": "attr",
    "cloudpickle": "dill",
    "pickle5": "dill",
    "box": "dotmap",
    "attrdict": "dotmap",
    "gymnasium": "gym",
    "gym3": "gym",
    "roboschool": "gym",
    "baselines": "stable_baselines3",
    "sb3_contrib": "stable_baselines3",
    "gym_minigrid": "minigrid",
    "lightning": "pytorch_lightning",
    "mpe2": "pettingzoo",
    "pytorch_transformers": "transformers",
}
"""Modules whose stand-in is that of another."""


def standin(fullname: str) -> str:
    """The name under which the stand-in of ``fullname`` is found in ``modules``."""
    top, dot, rest = fullname.partition(".")
    return ALIASES.get(top, top) + dot + rest


def has(fullname: str) -> bool:
    """Whether there is a stand-in of this name."""
    path = os.path.join(MODULES, *standin(fullname).split("."))
    return os.path.isfile(path + ".py") or os.path.isfile(os.path.join(path, "__init__.py"))


class Specific(importlib.abc.Loader):
    """Loads a stand-in of ``modules``; the script's name for it is another name of the same module."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        name = "_gradfix_standins.modules." + standin(spec.name)
        fresh = name not in sys.modules
        module = importlib.import_module(name)
        if fresh and spec.name == "yaml":
            installed.change_yaml(module)
        held = vars(module)
        if "__all__" in held:
            # It lists what it has from others; ``import *`` gives what it defines, too.
            made = [key for key, one in held.items() if getattr(one, "__module__", "") == module.__name__]
            held["__all__"] = list(dict.fromkeys([*held["__all__"], *(key for key in made if key[0] != "_")]))
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


VERSION = re.compile(r"^_{0,2}version_{0,2}$|^_scm_version$")
"""Modules that a setup writes: they only say which version of a package it is."""


RENAMED = {
    "cPickle": "pickle",
    "StringIO": "io",
    "cStringIO": "io",
    "Queue": "queue",
    "ConfigParser": "configparser",
    "copy_reg": "copyreg",
    "urlparse": "urllib.parse",
    "urllib2": "urllib.request",
    "__builtin__": "builtins",
}
"""Modules of Python 2, and what they are called today."""


class Renamed(importlib.abc.Loader):
    """A module of Python's own under the name that it once had."""

    def create_module(self, spec: Any) -> Any:
        return importlib.import_module(RENAMED[spec.name])

    def exec_module(self, module: Any) -> None:
        pass


class Version(importlib.abc.Loader):
    """A module that only says which version of a package it belongs to."""

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: Any) -> None:
        module.__version__ = module.version = module.short_version = module.full_version = "0.0.0"
        module.git_revision = module.git_version = "unknown"


class Within(importlib.abc.Loader):
    """A part of a stand-in without a module of its own: what is asked of it is looked for in its package."""

    def __init__(self, parent: Any) -> None:
        self.parent = parent

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        own = getattr(self.parent, spec.name.rpartition(".")[2], None)
        if type(own) is types.ModuleType and own.__spec__ is None:
            # The package makes its parts as they are asked for.
            return own
        module = types.ModuleType(spec.name)

        def attribute(name: str) -> Any:
            if name == "__all__":
                return inert.starred()
            if name.startswith("__"):
                raise AttributeError(name)
            try:
                return getattr(self.parent, name)
            except AttributeError:
                return inert.Inert(spec.name + "." + name)

        module.__dict__["__getattr__"] = attribute
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class Inert(importlib.abc.Loader):
    """Makes an inert module."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        return inert.InertModule(spec.name, self.lenient)

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ in PLOTTING:
            module.imread, module.imsave = samples.plotted, media.keep_array  # type: ignore[attr-defined]


PLOTTING = ("matplotlib.pyplot", "matplotlib.image", "pylab", "matplotlib.pylab")
"""Modules that show, but also read and write pictures, which are data."""
