"""Run the user's own command, and explain the error when autograd raises one; in the user's interpreter.

This file is executed, never imported by gradfix: it may use the standard library and torch only, and no
syntax newer than Python 3.9::

    python watch.py EXPLAINER SCRIPT [ARG]...
    python watch.py EXPLAINER -m MODULE [ARG]...

``EXPLAINER`` is a JSON list, the command that explains: it gets the facts as JSON on standard input, and
prints. It is started where and with the environment in which this process was, after Python has printed
the traceback of an error that leaves the script, and only if autograd has raised that error.

Everything else is as with ``python SCRIPT [ARG]...``: this process *is* the script, so signals, exit code,
standard streams and memory are its own. Neither a traceback nor an import shows a frame of this file:

* The engine that runs backward calls is replaced by one whose ``run_backward`` is a property. Its getter
  notes the line and returns torch's own method, and is over before that runs.
* Optimizers call a post hook, which torch offers for all of them.
* torch is not imported before the script does it: a finder, which finds nothing, is asked for each
  further module and sees when the parts of torch are there.
* The frames below the script's are taken off before ``sys.excepthook`` is called.

What is kept: the lines of the last ``EVENTS`` backward and step calls, and the graph nodes under the last
``ROOTS`` backward calls that have freed their graphs. These nodes hold no saved tensors any more. A call
that frees only a part of a graph (``inputs=``, ``autograd.grad``) is kept until the next call only.
"""

from __future__ import annotations

import builtins
import collections
import importlib.machinery
import io
import itertools
import json
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import threading
import time
import types
import weakref
from collections.abc import Iterator
from typing import Any

EVENTS = 64
ROOTS = 4
NODES = 100_000
"""Graph nodes that are looked at, at most, when an error is explained."""
SECONDS = 5.0
"""How long may be spent on looking at a graph."""
VARIABLES = 5_000
NAMES = 100
"""Variables in the graph that failed that are told."""
PATIENCE = 120
"""Seconds that the explanation may take."""

SAME = "backward through the graph a second time"
MOVED = "modified by an inplace operation"
KINDS = (
    ("E1", SAME),
    ("E2", MOVED),
    ("E3", "does not require grad and does not have a grad_fn"),
    ("E3", "One of the differentiated Tensors does not require grad"),
    ("E4", "leaf Variable that requires grad"),
    ("E5", "is being modified inplace"),
)
"""Autograd's own errors, as in ``probe.py``; and what it refuses of views, which no codemod is about."""

SILENT = "silent"
"""What facts are of where nothing has been raised."""
LOOKED_AT = 16
"""Steps of an optimizer whose gradients are looked at; later only those whose number is a power of two."""
VALUES = 4
"""Steps of which it is looked at whether any gradient is other than zero."""
OPTIMIZERS = 32
"""Optimizers that are looked at."""

Place = tuple[str, int]
"""A file and a line."""

HERE = os.path.abspath(__file__)
LIBRARIES = tuple(
    {os.path.join(path, "") for key in ("stdlib", "platstdlib") for path in [sysconfig.get_path(key)] if path}
)


def main() -> None:
    """Run the script; what it raises leaves this function as it would leave the script."""
    explainer, *command = sys.argv[1:]
    # The script may change its own arguments.
    typed = list(command)
    state = os.getcwd(), dict(os.environ)
    watch = Watch()
    sys.meta_path.insert(0, Awaiting(watch))
    try:
        run(command)
    except SystemExit as end:
        if end.code in (None, 0):
            tell_of_silence(watch, json.loads(explainer), state, typed)
        raise
    except BaseException as error:
        report(error)
        explain(watch, error, json.loads(explainer), state, typed)
        # Python sets the exit code, and ends by the signal where it was Ctrl-C.
        sys.excepthook = lambda *_: None
        raise
    tell_of_silence(watch, json.loads(explainer), state, typed)


def run(command: list[str]) -> None:
    """The script or module, as Python itself would run it."""
    module = types.ModuleType("__main__")
    # Nothing else holds the globals of this file when its name is given to the script.
    sys.modules["_gradfix_watch"] = sys.modules["__main__"]
    sys.modules["__main__"] = module
    module.__dict__["__builtins__"] = builtins
    if command[0] == "-m":
        sys.argv = ["-m", *command[2:]]
        look_first_in(os.getcwd())
        runpy._run_module_as_main(command[1])  # type: ignore[attr-defined]
        return
    sys.argv = command
    look_first_in(os.path.dirname(os.path.realpath(command[0])))
    path = os.path.abspath(command[0])
    module.__file__ = path
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    module.__dict__.update(__cached__=None, __annotations__={})
    with io.open_code(path) as file:
        data = file.read()
    try:
        code = compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        place = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        told = error.msg if isinstance(error, SyntaxError) else error
        print(f"error: {command[0]}{place}: syntax-error: {told}", file=sys.stderr)
        raise SystemExit(2) from None
    exec(code, module.__dict__)


def look_first_in(folder: str) -> None:
    """Put ``folder`` where Python has put the folder of this file, unless it was told not to (``-P``)."""
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(HERE):
        sys.path[0] = folder


def report(error: BaseException) -> None:
    """Print ``error`` as Python does, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, HERE):
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)


def explain(
    watch: Watch,
    error: BaseException,
    explainer: list[str],
    state: tuple[str, dict[str, str]],
    command: list[str],
) -> None:
    """Have the explanation printed, if autograd has raised ``error`` or what led to it."""
    try:
        found = autograd_error(error)
        if found is None:
            return
        hand_over({**Facts(watch, *found).told, "command": command}, explainer, state)
    except Exception as failure:
        print(f"gradfix: the error could not be explained: {failure}", file=sys.stderr)


def tell_of_silence(
    watch: Watch, explainer: list[str], state: tuple[str, dict[str, str]], command: list[str]
) -> None:
    """Have it told if the script has ended well, and has made steps that had no gradient to use."""
    try:
        had = watch.had
        silent = [
            one.told(had, watch.called)
            for one in watch.trainings.values()
            if one.is_suspicious(had, watch.called)
        ]
        busy = any(not one.daemon for one in threading.enumerate() if one is not threading.current_thread())
        if silent and not busy:
            facts = {"kind": SILENT, "optimizers": silent, "backwards": watch.backwards, "command": command}
            hand_over({**facts, "files": own_files()}, explainer, state)
    except Exception as failure:
        print(f"gradfix: what was seen could not be told: {failure}", file=sys.stderr)


def hand_over(facts: dict[str, Any], explainer: list[str], state: tuple[str, dict[str, str]]) -> None:
    """Start what explains ``facts``, where and with the environment in which this process was."""
    told = json.dumps(facts)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    folder, environment = state
    subprocess.run(
        explainer,
        input=told.encode(),
        cwd=folder,
        env=environment,
        timeout=PATIENCE,
        check=False,
        stdout=2,
    )


def autograd_error(error: BaseException | None) -> tuple[str, BaseException] | None:
    """The error of autograd in a chain of errors, with its kind; the one that was raised last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, RuntimeError):
            for kind, text in KINDS:
                if text in str(error):
                    return kind, error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


# ---------------------------------------------------------------------------- while it runs


class Event:
    """A backward call or an optimizer step."""

    __slots__ = ("clock", "number", "optimizer", "partial", "places", "retained", "roots", "thread")

    def __init__(self, number: int, clock: int, places: list[Place]) -> None:
        self.number = number
        self.clock = clock
        """The number that the next graph node made in this thread gets."""
        self.places = places
        """The lines of the user's files that led here, innermost first."""
        self.thread = threading.get_ident()
        self.roots: list[Any] = []
        self.retained = False
        self.partial = False
        self.optimizer: int | None = None
        """The identity of the optimizer; ``None`` for a backward call."""


class Training:
    """What the steps of an optimizer have found: which of its parameters ever had a gradient."""

    def __init__(self, optimizer: Any, frame: types.FrameType | None) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.kind = type(optimizer).__name__
        self.places = places(frame)
        self.steps = 0
        self.valued = 0
        """At how many steps the values of gradients were looked at."""
        self.nonzero = False
        """Whether any of them was other than zero."""
        parameters = list(parameters_of(optimizer))
        self.never = set(range(len(parameters)))
        """The numbers of the parameters that no step has found with a gradient."""
        self.frozen = {number for number, one in enumerate(parameters) if not one.requires_grad}
        self.identities = [id(one) for one in parameters]
        self.count = len(parameters)
        names = Names()
        while frame is not None:
            if is_own(frame.f_code.co_filename):
                names.collect(frame, frame.f_lineno)
                forget_locals(frame)
            frame = frame.f_back
        self.name = names.optimizers.get(id(optimizer))
        self.held = list(names.networks)
        self.names = [names.modules.get(id(one)) for one in parameters]

    def look(self, optimizer: Any, had: set[int], *, done: bool) -> None:
        """A step is about to be made, or is ``done``; ``had`` are the identities of what had a gradient.

        A closure computes gradients in the step, and a hook of the script's may clear them at its end.
        """
        self.steps += done
        if self.steps > LOOKED_AT and self.steps & (self.steps - 1):
            return
        if not self.never and (self.nonzero or self.valued == VALUES):
            return
        given = [(n, one.grad) for n, one in enumerate(parameters_of(optimizer)) if one.grad is not None]
        self.never.difference_update(number for number, _ in given)
        had.update(self.identities[number] for number, _ in given)
        if given and not self.nonzero and self.valued < VALUES:
            self.valued += 1
            self.nonzero = any(bool(gradient.any()) for _, gradient in given)

    @property
    def only_zeros(self) -> bool:
        """Whether all gradients that were looked at were zero."""
        return self.valued > 0 and not self.nonzero

    @property
    def is_idle(self) -> bool:
        """Whether no step has ever found a gradient."""
        return len(self.never) == self.count

    def is_suspicious(self, had: set[int], called: set[int]) -> bool:
        """Whether there is something to tell."""
        return bool(self.count and self.steps) and (
            self.is_idle or self.only_zeros or bool(self.left_out(had, called))
        )

    def left_out(self, had: set[int], called: set[int]) -> list[str]:
        """The largest parts of networks that were called, and of which no parameter ever had a gradient."""
        all_of: dict[str, set[int]] = {}
        for number, name in enumerate(self.names):
            parts = (name or "").split(".")[:-1]
            for length in range(1, len(parts) + 1):
                all_of.setdefault(".".join(parts[:length]), set()).add(number)
        found: list[str] = []
        for name, numbers in sorted(all_of.items(), key=lambda item: item[0].count(".")):
            inside = any(name.startswith(f"{known}.") for known in found)
            untouched = all(self.identities[number] not in had for number in numbers)
            used = any(self.identities[number] in called for number in numbers)
            if not inside and untouched and used and not numbers <= self.frozen:
                found.append(name)
        return found

    def told(self, had: set[int], called: set[int]) -> dict[str, Any]:
        return {
            "name": self.name,
            "class": self.kind,
            "places": self.places,
            "steps": self.steps,
            "idle": self.is_idle,
            "zeros": self.only_zeros,
            "frozen": len(self.frozen) == self.count,
            "networks": [
                held
                for held in self.held
                if any(name is not None and name.startswith(f"{held}.") for name in self.names)
            ],
            "left_out": self.left_out(had, called),
            "held": self.held,
        }


def parameters_of(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]


def forget_locals(frame: types.FrameType) -> None:
    """Let go of what a look at the variables of a function has noted: it would live as long as the call."""
    if sys.version_info < (3, 13) and frame.f_code.co_flags & 1:
        frame.f_locals.clear()


class Watch:
    """What has happened so far."""

    def __init__(self) -> None:
        self.events: collections.deque[Event] = collections.deque(maxlen=EVENTS)
        self.kept: collections.deque[Event] = collections.deque()
        self.numbers = itertools.count()
        self.clock: Any = lambda: -1
        self.attached = False
        self.backwards = 0
        """How many backward calls there were."""
        self.trainings: dict[int, Training] = {}
        """By the identity of the optimizer."""
        self.had: set[int] = set()
        """The identities of the parameters that any step has found with a gradient."""
        self.called: set[int] = set()
        """The identities of the parameters whose layers were called, of those that had none at first."""
        self.noting: Any = None
        """What takes away again the hook that notes these calls."""

    def attach(self) -> None:
        """Hook into torch, as soon as the parts that this needs are there."""
        variable = getattr(sys.modules.get("torch.autograd.variable"), "Variable", None)
        optimizer = sys.modules.get("torch.optim.optimizer")
        autograd = getattr(getattr(sys.modules.get("torch"), "_C", None), "_autograd", None)
        if variable is None or autograd is None or not hasattr(optimizer, "Optimizer"):
            return
        self.attached = True
        try:
            self.clock = getattr(autograd, "_get_sequence_nr", self.clock)
            self.replace_engine(variable)
            optimizer.register_optimizer_step_pre_hook(self.stepping)  # type: ignore[union-attr]
            optimizer.register_optimizer_step_post_hook(self.stepped)  # type: ignore[union-attr]
        except Exception as error:  # The script goes on, whatever this torch is like.
            print(f"gradfix: this torch cannot be watched: {error}", file=sys.stderr)

    def replace_engine(self, variable: Any) -> None:
        genuine = variable._execution_engine
        backward = self.backward

        class Engine(type(genuine)):  # type: ignore[misc]
            """torch's engine, which is asked for ``run_backward`` before each use of it."""

            @property
            def run_backward(self) -> Any:
                backward(sys._getframe(1))
                return genuine.run_backward

        variable._execution_engine = Engine()

    def event(self, frame: types.FrameType | None) -> Event:
        event = Event(next(self.numbers), self.clock(), places(frame))
        self.events.append(event)
        return event

    def backward(self, frame: types.FrameType) -> None:
        """A backward call is about to run; ``frame`` is the one that calls the engine."""
        try:
            self.backwards += 1
            event = self.event(frame)
            names = frame.f_locals
            arguments = names.get("args", ())
            roots = roots_of(names)
            # run_backward(tensors, gradients, retain_graph, create_graph, inputs, ...)
            event.retained = bool(arguments[1]) if len(arguments) > 1 else True
            event.partial = bool(arguments[3]) if len(arguments) > 3 else False
            if self.kept and self.kept[-1].partial:
                self.kept.pop().roots = []
            if not event.retained:
                event.roots = [root.grad_fn for root in roots if root.grad_fn is not None]
                self.kept.append(event)
            if len(self.kept) > ROOTS:
                self.kept.popleft().roots = []
        except Exception:  # The script goes on, whatever torch looks like.
            return

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """An optimizer has made a step."""
        frame = sys._getframe(1)
        self.event(frame).optimizer = id(optimizer)
        self.look(optimizer, frame, done=True)
        self.note_calls()

    def stepping(self, optimizer: Any, *_: Any) -> None:
        """An optimizer is about to make a step."""
        self.look(optimizer, sys._getframe(1), done=False)

    def look(self, optimizer: Any, frame: types.FrameType, *, done: bool) -> None:
        """Note which parameters of an optimizer have a gradient now."""
        try:
            known = self.trainings.get(id(optimizer))
            if known is None or known.optimizer() is not optimizer:
                if len(self.trainings) == OPTIMIZERS:
                    return
                known = self.trainings[id(optimizer)] = Training(optimizer, frame)
            known.look(optimizer, self.had, done=done)
        except Exception:  # The script goes on, whatever its optimizers look like.
            return

    def note_calls(self) -> None:
        """Have the layers noted that are called although a first step has found no gradient in them.

        That costs a little at each call of a layer, and is done for as many steps as gradients are looked at.
        """
        try:
            steps = [one.steps for one in self.trainings.values()]
            if self.noting is not None and min(steps) >= LOOKED_AT:
                self.noting.remove()
                self.noting = None
            elif self.noting is None and max(steps) < LOOKED_AT:
                if any(one.never and not one.is_idle for one in self.trainings.values()):
                    module = sys.modules["torch.nn.modules.module"]
                    self.noting = module.register_module_forward_pre_hook(self.calling)
        except Exception:  # The script goes on, whatever its torch looks like.
            return

    def calling(self, module: Any, _: Any) -> None:
        """A layer is about to be called."""
        self.called.update(id(one) for one in module._parameters.values() if one is not None)


class Awaiting:
    """A finder that finds nothing: it only sees that modules are being imported."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Attach to torch once it is there."""
        if not self.watch.attached and "torch.optim.optimizer" in sys.modules:
            self.watch.attach()


OWN: dict[str, bool] = {}
"""Whether a file is the user's, by its name in code objects."""


def is_own(file: str) -> bool:
    known = OWN.get(file)
    if known is None:
        path = os.path.abspath(file)
        library = "site-packages" in path or "dist-packages" in path or path.startswith(LIBRARIES)
        known = OWN[file] = not (file.startswith("<") or library or path == HERE)
    return known


def own_files() -> list[str]:
    """The files of the user's modules that have been imported, the script among them."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [
        file
        for file in dict.fromkeys(files)
        if isinstance(file, str) and file.endswith(".py") and os.path.isabs(file) and is_own(file)
    ]


def places(frame: types.FrameType | None) -> list[Place]:
    """The user's lines that are running, innermost first, at most four."""
    found: list[Place] = []
    while frame is not None and len(found) < 4:
        if is_own(frame.f_code.co_filename):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found


def roots_of(names: dict[str, Any]) -> list[Any]:
    """The tensors from which a backward call starts, in the names of the function that calls the engine."""
    for name in ("t_outputs", "outputs", "tensors"):
        roots = names.get(name)
        if isinstance(roots, (tuple, list)):
            return [root for root in roots if hasattr(root, "grad_fn")]
    return []


# ---------------------------------------------------------------------------- when autograd has raised


class Variable:
    """A tensor that a name of the script holds, or an element or attribute of what it holds."""

    __slots__ = ("frame", "holder", "line", "name", "value")

    def __init__(self, name: str, value: Any, frame: types.FrameType, line: int, holder: type | None) -> None:
        self.name, self.value, self.frame, self.line = name, value, frame, line
        self.holder = holder
        """The class of the object whose attribute it is."""

    def told(self) -> dict[str, Any]:
        """Where it stands: the explanation finds its assignment there, or in the class of its object."""
        code = self.frame.f_code
        return {
            "name": self.name,
            "file": code.co_filename,
            "line": self.line,
            "function": code.co_firstlineno,
            "classes": own_classes(self.holder),
            "operation": operation(self.value.grad_fn) if self.value.grad_fn is not None else None,
            "parameter": isinstance(self.value, sys.modules["torch"].nn.Parameter),
            "view": self.value._is_view(),
        }


def own_classes(kind: type | None) -> list[tuple[str, str]]:
    """The files and names of a class and of those that it inherits from, as far as they are the user's."""
    found: list[tuple[str, str]] = []
    for one in getattr(kind, "__mro__", ()):
        file = getattr(sys.modules.get(one.__module__), "__file__", None)
        if isinstance(file, str) and is_own(file):
            found.append((os.path.abspath(file), one.__qualname__))
    return found


class Names:
    """What the script calls its tensors, networks and optimizers."""

    def __init__(self) -> None:
        self.optimizers: dict[int, str] = {}
        self.modules: dict[int, str] = {}
        """The name of each parameter by its identity."""
        self.networks: list[str] = []
        """The names of networks that are no part of others, as far as that is known when they are met."""
        self.layers: dict[int, tuple[str, Any]] = {}
        """Networks and the layers in them, by identity: the name that the script has for each, and itself."""
        self.variables: list[Variable] = []
        self.constants: set[str] = set()
        """The names of what holds nothing that requires a gradient."""

    def collect(self, frame: types.FrameType, line: int) -> None:
        scope = dict(frame.f_locals)
        if frame.f_locals is not frame.f_globals:
            scope = {
                **{name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals},
                **scope,
            }
        for name, value in scope.items():
            if not name.startswith("__"):
                known, layers = len(self.variables), len(self.layers)
                self.visit(name, value, frame, line, 3)
                new = self.variables[known:]
                data = isinstance(value, (list, tuple, dict, int, float)) or hasattr(value, "__array__")
                if data and layers == len(self.layers) and not any(one.value.requires_grad for one in new):
                    self.constants.add(name)

    def visit(
        self,
        name: str,
        value: Any,
        frame: types.FrameType,
        line: int,
        depth: int,
        holder: type | None = None,
    ) -> None:
        torch = sys.modules["torch"]
        if len(self.variables) > VARIABLES or isinstance(value, (types.ModuleType, type, types.FunctionType)):
            return
        if isinstance(value, torch.Tensor):
            self.variables.append(Variable(name, value, frame, line, holder))
        elif isinstance(value, torch.optim.Optimizer):
            self.optimizers.setdefault(id(value), name)
        elif depth and isinstance(value, (tuple, list)):
            for number, item in enumerate(itertools.islice(value, 64)):
                self.visit(f"{name}[{number}]", item, frame, line, depth - 1, holder)
        elif depth and isinstance(value, dict):
            for key, item in itertools.islice(value.items(), 64):
                self.visit(f"{name}[{key!r}]", item, frame, line, depth - 1, holder)
        else:
            if isinstance(value, torch.nn.Module) and id(value) not in self.layers:
                self.networks.append(name)
                for inner, parameter in value.named_parameters():
                    self.modules.setdefault(id(parameter), f"{name}.{inner}")
                for inner, layer in value.named_modules():
                    at = f"{name}.{inner}" if inner else name
                    self.layers.setdefault(id(layer), (at, layer))
                    for own, buffer in layer._buffers.items():
                        if buffer is not None:
                            self.variables.append(Variable(f"{at}.{own}", buffer, frame, line, type(layer)))
            attributes = getattr(value, "__dict__", None)
            if depth and isinstance(attributes, dict):
                for inner, item in itertools.islice(attributes.items(), 128):
                    if not inner.startswith("_"):
                        self.visit(f"{name}.{inner}", item, frame, line, depth - 1, type(value))


class Facts(Names):
    """What is known of an error, in ``told``: kind, message, lines, and per kind what led to it."""

    def __init__(self, watch: Watch, kind: str, error: BaseException) -> None:
        super().__init__()
        self.watch = watch
        self.deadline = time.monotonic() + SECONDS
        self.roots: list[Any] = []
        self.failed: list[Place] = []
        self.owned: dict[int, set[int]] | None = None
        self.look(error)
        self.told: dict[str, Any] = {
            "kind": kind,
            "message": str(error).split("\n", 1)[0],
            "places": self.failed[::-1],
            "files": own_files(),
        }
        nodes = self.nodes([root.grad_fn for root in self.roots])
        self.told["roots"] = [one.told() for one in self.holding(self.roots)]
        if kind == "E1":
            self.told.update(self.freed(nodes))
        elif kind == "E2":
            self.told.update(self.moved(nodes))
            self.told["layers"] = list(self.writing_in_place())
        elif kind == "E3":
            self.told["recording"] = bool(sys.modules["torch"].is_grad_enabled())
            self.told["frozen"] = list(self.frozen())
            self.told["trainable"] = sorted(set(self.trainable()))
            self.told["constants"] = sorted(self.constants)
        elif kind == "E4":
            owners = self.owners()
            self.told["parameters"] = list(self.modules.values())
            self.told["leaves"] = [
                {**one.told(), "owned": id(one.value) in owners}
                for one in self.variables
                if one.value.requires_grad and one.value.is_leaf
            ][:NAMES]
        if kind in ("E1", "E2"):
            self.told["graph"] = [one.told() for one in self.variables if one.value.grad_fn in nodes][:NAMES]

    def look(self, error: BaseException) -> None:
        """Collect lines, names and the roots of the backward calls from the traceback.

        What the engine calls (a custom function, the hook of a tensor) does not lead to the error: it is only
        where autograd has noticed.
        """
        trace = error.__traceback__
        frames: list[tuple[types.FrameType, int]] = []
        engine = False
        while trace is not None:
            frame = trace.tb_frame
            if is_own(frame.f_code.co_filename):
                if not engine:
                    self.failed.append((frame.f_code.co_filename, trace.tb_lineno))
                    frames.append((frame, trace.tb_lineno))
            elif frame.f_code.co_name in ("_engine_run_backward", "backward", "grad"):
                self.roots += [
                    root
                    for root in roots_of(frame.f_locals)
                    if all(root is not known for known in self.roots)
                ]
                engine = engine or frame.f_code.co_name == "_engine_run_backward" or bool(self.roots)
            trace = trace.tb_next
        # The innermost names are those that the reader has before him.
        for frame, line in reversed(frames):
            self.collect(frame, line)

    def nodes(self, roots: list[Any], barred: Any = ()) -> dict[Any, None]:
        """The nodes of a graph, from its roots on and not through what is ``barred``; a part of many."""
        found: dict[Any, None] = dict.fromkeys(barred)
        waiting = [root for root in roots if root is not None]
        while waiting and len(found) < NODES and time.monotonic() < self.deadline:
            node = waiting.pop()
            if node not in found:
                found[node] = None
                waiting.extend(after for after, _ in node.next_functions if after is not None)
        return found if not barred else {node: None for node in found if node not in barred}

    def troubles(self, nodes: dict[Any, None], text: str) -> Iterator[tuple[Any, str, str]]:
        """The nodes whose saved tensors cannot be had because of what autograd calls ``text``.

        Each with the name of such a tensor in it, and autograd's message.
        """
        for node in nodes:
            if time.monotonic() > self.deadline:
                return
            names = [name for name in dir(node) if name.startswith("_saved_") or name == "saved_tensors"]
            for name in names:
                try:
                    getattr(node, name)
                except RuntimeError as error:
                    if text in str(error):
                        yield node, name, str(error)
                        break
                except Exception:
                    continue

    def holding(self, values: list[Any]) -> list[Variable]:
        """The variables that hold one of ``values``, a tensor each once."""
        wanted = {id(value) for value in values}
        found: dict[int, Variable] = {}
        for one in self.variables:
            if id(one.value) in wanted:
                found.setdefault(id(one.value), one)
        return list(found.values())

    def writing_in_place(self) -> Iterator[dict[str, Any]]:
        """The layers that change their input (``inplace=True``) or their own weights (``max_norm``)."""
        for name, layer in self.layers.values():
            for option in ("inplace", "max_norm"):
                value = getattr(layer, option, None)
                if value is True or (option == "max_norm" and isinstance(value, (int, float))):
                    yield {"name": name, "kind": type(layer).__name__, "option": option, "value": value}

    def frozen(self) -> Iterator[str]:
        """The networks that an optimizer is to train, and none of whose parameters requires a gradient."""
        owned = self.owners()
        for name, layer in self.layers.values():
            parameters = list(layer.parameters())
            if "." not in name and parameters and not any(one.requires_grad for one in parameters):
                if any(id(one) in owned for one in parameters):
                    yield name

    def trainable(self) -> Iterator[str]:
        """The names of what a gradient could reach: networks, layers, tensors that require a gradient."""
        for name, layer in self.layers.values():
            if any(one.requires_grad for one in layer.parameters()):
                yield name
        yield from (one.name for one in self.variables if one.value.requires_grad)

    def freed(self, nodes: dict[Any, None]) -> dict[str, Any]:
        """Which earlier backward has freed a part of the graph, and what was computed in that part."""
        broken = {node for node, _, _ in self.troubles(nodes, SAME)}
        failing = self.watch.events[-1] if self.watch.events else None
        for event in reversed(self.watch.kept):
            if event is failing:
                continue
            shared = self.nodes(event.roots)
            common = broken & shared.keys()
            if common:
                return {
                    "earlier": event.places,
                    **self.hanging({node: None for node in shared if node in nodes}),
                    "across": self.across(nodes, broken, event),
                    "joint": self.can_be_added(nodes, shared, event),
                    "same": all(root.grad_fn in event.roots for root in self.roots),
                }
        return self.hanging(self.nodes(list(broken)))

    def hanging(self, old: dict[Any, None]) -> dict[str, Any]:
        """The variables whose graph is the old part: those that were computed last in it."""
        found = [one for one in self.variables if one.value.grad_fn is not None and one.value.grad_fn in old]
        # What this very backward has freed before it failed is no older graph.
        before = [one for one in found if all(one.value is not root for root in self.roots)]
        found = sorted(before or found, key=lambda one: -one.value.grad_fn._sequence_nr())
        unique = list({id(one.value): one for one in reversed(found)}.values())[::-1]
        return {"shared": [one.told() for one in unique[:3]]}

    def moved(self, nodes: dict[Any, None]) -> dict[str, Any]:
        """Which tensor has moved since it was saved, and the step that moved it."""
        told = [self.moved_tensor(*trouble) for trouble in self.troubles(nodes, MOVED)]
        # What is known best is told; of equals the one that was saved last.
        ranked = sorted(
            told, key=lambda one: ("step" not in one, "parameter" not in one, "tensors" not in one)
        )
        best = ranked[0] if ranked else {}
        event = best.pop("event", None)
        if event is not None:
            moved = {node for node, _, _ in self.troubles(nodes, MOVED)}
            best["across"] = self.across(nodes, moved | self.freed_before(nodes), event)
        return best

    def freed_before(self, nodes: dict[Any, None]) -> set[Any]:
        """Those of ``nodes`` that an earlier backward has freed."""
        failing = self.watch.events[-1] if self.watch.events else None
        roots = [root for event in self.watch.kept if event is not failing for root in event.roots]
        return {node for node, _, _ in self.troubles(nodes, SAME)} & self.nodes(roots).keys()

    # What could be done about it: the conditions under which advice is right are looked up in the graph.

    def across(self, nodes: dict[Any, None], broken: set[Any], event: Event) -> dict[str, Any] | None:
        """How the failing backward gets into what was computed before ``event``, and what it reaches without.

        What was computed before is entered at some nodes: with the graph cut off there, nothing ``broken`` is
        left, but parameters may be left without a gradient.
        """
        if event.thread != threading.get_ident() or event.clock < 0 or time.monotonic() > self.deadline:
            return None
        # What this very backward has freed before it failed is no obstacle.
        broken = {node for node in broken if node._sequence_nr() < event.clock}
        leading = leading_to(nodes, broken)
        before = {node for node in leading if not is_leaf(node) and node._sequence_nr() < event.clock}
        roots = [root.grad_fn for root in self.roots]
        now = [node for node in nodes if node not in before]
        entered = {node for node in roots if node in before}
        entered |= {after for node in now for after, _ in node.next_functions if after in before}
        if not entered:
            return None
        rest = self.nodes([node for node in roots if node not in before], before)
        owned = self.owners()
        lost = [
            node.variable
            for node in nodes
            if is_leaf(node) and node not in rest and (id(node.variable) in owned or not owned)
        ]
        names = [self.modules.get(id(one)) for one in lost]
        names = [name.rpartition(".")[0] if name else None for name in names]
        names += [one.name for one in self.holding(lost)]
        held = [one for one in self.variables if one.value.grad_fn in entered]
        # Of several names for one tensor the plainest is told.
        held.sort(key=lambda one: -len(re.findall(r"[.\[]", one.name)))
        operations = {operation(node) for node in entered}
        return {
            "whole": all(node in before for node in roots),
            "again": [
                one.told()
                for one in sorted(
                    (one for one in self.variables if one.value.grad_fn in before),
                    key=lambda one: one.value.grad_fn._sequence_nr(),
                )
            ][:1],
            "entered": [one.told() for one in {id(one.value): one for one in held}.values()],
            "rebound": [
                one.told()
                for one in self.variables
                if one.value.grad_fn is not None
                and one.value.grad_fn._sequence_nr() >= event.clock
                and operation(one.value.grad_fn) in operations
            ][:NAMES],
            "fed": any(
                any(is_leaf(leaf) for leaf in beside(node))
                for node in leading_to(
                    rest, {n for n in rest if any(a in entered for a, _ in n.next_functions)}
                )
                if node not in before
            ),
            "starves": bool(lost),
            "starved": list(dict.fromkeys(name for name in names if name))[:4],
        }

    def can_be_added(self, nodes: dict[Any, None], earlier: dict[Any, None], event: Event) -> bool:
        """Whether the failing loss and that of an earlier backward are both for one step that is yet to come.

        No step lies between them, one optimizer owns all that they reach, the gradients of the first are
        still there, and neither loss is a part of the other.
        """
        since = [one for one in self.watch.events if one.number > event.number]
        failing = [root.grad_fn for root in self.roots]
        if any(one.optimizer is not None for one in since):
            return False
        if any(root in nodes for root in event.roots) or any(root in earlier for root in failing):
            return False
        owned = self.owners()
        first = [node.variable for node in earlier if is_leaf(node)]
        second = [node.variable for node in nodes if is_leaf(node)]
        owners = {frozenset(owned.get(id(one), ())) for one in (*first, *second)}
        return len(owners) == 1 and len(*owners) == 1 and all(one.grad is not None for one in first)

    def made_of(self, node: Any) -> list[dict[str, Any]]:
        """The variable that was computed first of those whose graph goes through ``node``."""
        hanging = [one for one in self.variables if one.value.grad_fn is not None]
        hanging.sort(key=lambda one: one.value.grad_fn._sequence_nr())
        for one in hanging:
            if one.value.grad_fn._sequence_nr() >= node._sequence_nr():
                if node in self.nodes([one.value.grad_fn]):
                    return [one.told()]
        return []

    def moved_tensor(self, node: Any, saved_as: str, message: str) -> dict[str, Any]:
        saved = re.search(r"\[[\w.]+ \[([\d, ]*)\]\].* version (\d+); expected version (\d+)", message)
        if saved is None:
            return {}
        shape = [int(size) for size in saved.group(1).split(",") if size.strip()]
        version = int(saved.group(2))
        parameter = next(
            (
                leaf
                for leaf in leaves_beside(node)
                if leaf._version == version and sorted(leaf.shape) == sorted(shape)
            ),
            None,
        )
        if parameter is None:
            tensors = [
                one
                for one in self.variables
                if sorted(one.value.shape) == sorted(shape) and one.value._version == version
            ]
            unique: dict[int, Variable] = {}
            for one in tensors:
                unique.setdefault(id(one.value), one)
            role = "result" if saved_as.startswith("_saved_result") else "operand"
            return {
                "made": self.made_of(node),
                "tensors": [one.told() for one in unique.values()],
                "operation": operation(node),
                "role": role,
                "shape": shape,
                "after": sorted({operation(other) for other in self.followers(node)}),
            }
        name = self.modules.get(id(parameter)) or next(
            (one.name for one in self.variables if one.value is parameter), None
        )
        layer = next(
            (
                held
                for held, one in self.layers.values()
                if any(owned is parameter for owned in one._parameters.values())
            ),
            None,
        )
        known = {"parameter": name, "layer": layer, "made": self.made_of(node)}
        return {**known, **self.step_since(node, parameter)}

    def followers(self, node: Any) -> Iterator[Any]:
        """The nodes of what was computed of the result of ``node``, or of its operands, before or in place.

        What changes a tensor in place is one of them, if gradients were recorded then.
        """
        sources = {node, *(before for before, _ in node.next_functions if before is not None)}
        sources |= {b for one in list(sources) for b, _ in one.next_functions if b is not None}
        for other in self.nodes([one.value.grad_fn for one in self.variables] + self.roots_nodes()):
            if other is not node and any(before in sources for before, _ in other.next_functions):
                yield other

    def roots_nodes(self) -> list[Any]:
        return [root.grad_fn for root in self.roots]

    def step_since(self, node: Any, parameter: Any) -> dict[str, Any]:
        """The last step of an optimizer of ``parameter`` after ``node`` was made."""
        owners = self.owners().get(id(parameter), set())
        born = node._sequence_nr()
        for event in reversed(self.watch.events):
            if (
                event.optimizer in owners
                and event.clock > born >= 0
                and event.thread == threading.get_ident()
            ):
                return {
                    "step": event.places,
                    "optimizer": self.optimizers.get(event.optimizer or 0),
                    "event": event,
                }
        return {}

    def owners(self) -> dict[int, set[int]]:
        """The identities of the optimizers by those of the parameters that they update."""
        if self.owned is None:
            import gc

            kind = sys.modules["torch"].optim.Optimizer
            self.owned = {}
            for one in gc.get_objects():
                if issubclass(type(one), kind):
                    for parameter in parameters_of(one):
                        self.owned.setdefault(id(parameter), set()).add(id(one))
        return self.owned


def operation(node: Any) -> str:
    """What autograd calls the operation of a graph node: ``Mul``, ``CopySlices``."""
    return re.sub(r"Backward\d*$", "", node.name().rpartition("::")[2])


def is_leaf(node: Any) -> bool:
    """Whether a node of the graph is where a leaf accumulates its gradient."""
    return hasattr(node, "variable")


def beside(node: Any) -> Iterator[Any]:
    """What goes into a node, a transposed weight being that weight (``Linear``)."""
    for before, _ in node.next_functions:
        if before is not None:
            yield before
            if len(before.next_functions) == 1 and before.next_functions[0][0] is not None:
                yield before.next_functions[0][0]


def leading_to(nodes: dict[Any, None], wanted: set[Any]) -> set[Any]:
    """Those of ``nodes`` that come to one of the ``wanted``, these included."""
    into: dict[Any, list[Any]] = {}
    for node in nodes:
        for after, _ in node.next_functions:
            into.setdefault(after, []).append(node)
    found = set(wanted)
    waiting = list(wanted)
    while waiting:
        for node in into.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def leaves_beside(node: Any) -> Iterator[Any]:
    """The leaf tensors that go into ``node``, or a view of them (``Linear`` saves the transposed weight)."""
    for before, _ in node.next_functions:
        depth = 0
        while before is not None and depth < 4:
            if hasattr(before, "variable"):
                yield before.variable
                break
            if len(before.next_functions) != 1:
                break
            before, depth = before.next_functions[0][0], depth + 1


if __name__ == "__main__":
    main()
