"""Run the user's own command, and explain the error when autograd raises one; in the user's interpreter.

Its arguments are::

    EXPLAINER SCRIPT [ARG]...
    EXPLAINER -m MODULE [ARG]...
    EXPLAINER --notebook DESCRIPTOR NOTEBOOK [ARG]...

``EXPLAINER`` is a JSON list, the command that explains: it gets the facts as JSON on standard input, and
prints. It is started where and with the environment in which this process was, after Python has printed
the traceback of an error that leaves the script, and only if autograd has raised that error. ``DESCRIPTOR``
is an open file with the code of a notebook's cells.

Everything else is as with ``python SCRIPT [ARG]...``: this process *is* the script, so signals, exit code,
standard streams and memory are its own. Neither a traceback nor an import shows a frame of gradfix:

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
import importlib.machinery
import io
import json
import os
import runpy
import subprocess
import sys
import threading
import types
from typing import Any

from .. import FOLDER
from ..autograd_errors import error_in
from ..notebook import compiled, execute, provide, traceback_of
from .facts import Facts
from .hooks import Awaiting, Watch
from .own_code import is_part, own_files

PATIENCE = 120
"""Seconds that the explanation may take."""

PYTEST = "gradfix: pytest catches what tests raise; `pytest --gradfix` explains it, where both are installed"

SILENT = "silent"
"""What facts are of where nothing has been raised."""


def main(arguments: list[str]) -> None:
    """Run the script; what it raises leaves this function as it would leave the script."""
    explainer, *command = arguments
    notebook = None
    if command[0] == "--notebook":
        with os.fdopen(int(command[1]), encoding="utf-8", newline="") as file:
            file.seek(0)
            notebook = file.read()
        command = command[2:]
    # The script may change its own arguments.
    typed = list(command)
    state = os.getcwd(), dict(os.environ)
    watch = Watch()
    sys.meta_path.insert(0, Awaiting(watch))
    try:
        run(command, notebook)
    except SystemExit as end:
        if end.code in (None, 0):
            tell_of_silence(watch, json.loads(explainer), state, typed)
        elif end.code == 1 and typed[:2] == ["-m", "pytest"]:
            print(PYTEST, file=sys.stderr)
        raise
    except BaseException as error:
        report(error, os.path.abspath(typed[0]), notebook)
        explain(watch, error, json.loads(explainer), state, typed)
        # Python sets the exit code, and ends by the signal where it was Ctrl-C.
        sys.excepthook = lambda *_: None
        raise
    tell_of_silence(watch, json.loads(explainer), state, typed)


def run(command: list[str], notebook: str | None) -> None:
    """The script or module, as Python itself would run it, or the code of a notebook."""
    module = types.ModuleType("__main__")
    # Nothing else holds the globals of what was started when its name is given to the script.
    sys.modules["_gradfix_main"] = sys.modules["__main__"]
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
    if notebook is not None:
        provide(module.__dict__)
        os.chdir(os.path.dirname(path))  # As Jupyter has it.
        execute(compiled(notebook, path), module.__dict__)
        return
    with io.open_code(path) as file:
        data = file.read()
    try:
        code = compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        place = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        shown = error.msg if isinstance(error, SyntaxError) else error
        print(f"error: {command[0]}{place}: syntax-error: {shown}", file=sys.stderr)
        raise SystemExit(2) from None
    exec(code, module.__dict__)


def look_first_in(folder: str) -> None:
    """Put ``folder`` where Python has put that of gradfix, unless it was told not to (``-P``)."""
    if sys.path and os.path.abspath(sys.path[0]) == FOLDER:
        sys.path[0] = folder


def report(error: BaseException, path: str, notebook: str | None) -> None:
    """Print ``error`` as Python does, without the frames of gradfix; those of a notebook by cell."""
    trace = error.__traceback__
    while trace is not None and is_part(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    error.__traceback__ = trace
    if notebook is not None:
        print(traceback_of(error, notebook, path), end="", file=sys.stderr)
        return
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
        found = error_in(error)
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
    handed = json.dumps(facts)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    folder, environment = state
    subprocess.run(
        explainer,
        input=handed.encode(),
        cwd=folder,
        env=environment,
        timeout=PATIENCE,
        check=False,
        stdout=2,
    )
