"""One run of a script in a process, to its end."""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import importlib.machinery
import importlib.util
import linecache
import os
import signal
import socket
import sys
import types
from collections.abc import Collection
from typing import Any

import torch

from .. import notebook
from ..autograd_errors import kind_of
from . import coverage, dataless, hooks, operations, overlay, provenance
from .confining import confine, limit, opened, scratch_of
from .descriptions import EXACT, SKETCH
from .recorder import ENOUGH, Recorder
from .surroundings import surround

SOON = 0.05
"""Seconds until a run that waited for a processor is asked again whether its time is over, at least."""


def run(
    job: dict[str, Any], channel: socket.socket | None = None, held: Collection[str] = (), group: Any = None
) -> None:
    """Run one job in this process, which ends with it; ``channel`` and ``held`` as in :func:`confine`.

    Args:
        group: The control group that it is to be in, if there is one.
    """
    recorder = Recorder(job, *opened(job))
    limit(job["limits"])
    try:
        if group is not None:
            group.join()
        confine(job, channel, held)
    except Exception as error:
        recorder.emit("trouble", message="the sandbox could not be set up: " + str(error))
        recorder.finish("trouble")
    record(recorder, job)


def record(recorder: Recorder, job: dict[str, Any]) -> None:
    """Run a job in a process that is confined, to its end."""
    command, scratch = job["command"], scratch_of(job)
    with contextlib.suppress(OSError):
        os.chdir(command["cwd"])
    surround(recorder, job, scratch)
    recorder.emit(
        "start",
        torch=str(torch.__version__),
        python=sys.version.split()[0],
        exact=EXACT,
        sketch=SKETCH,
    )
    hooks.install(recorder)
    provenance.install(recorder.provenance)
    begin_clock(recorder, job)
    if job["schema"]:
        with recorder.bookkeeping():
            load_standins().install(recorder, job, recorder.overlay)
    with contextlib.ExitStack() as stack:
        modes(stack, recorder, job)
        setattr(builtins, coverage.MARK, recorder.reach)
        try:
            execute(job)
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                advise(recorder, job, leaving)
                recorder.finish("error", recorder.failed(leaving, "script", where(recorder, leaving)))
        except BaseException as error:
            advise(recorder, job, error)
            recorder.finish("error", recorder.failed(error, "script", where(recorder, error)))
    advise(recorder, job)
    recorder.finish("finished")


def begin_clock(recorder: Recorder, job: dict[str, Any]) -> None:
    """End the run when its time is over, where the system has timers."""
    if not hasattr(signal, "setitimer"):
        return
    seconds = job["limits"]["seconds"]

    def late() -> None:
        if not recorder.errors:
            advise(recorder, job, late=True)
        recorder.finish("seconds")

    def alarm(*_: object) -> None:
        left = seconds - recorder.clock.elapsed()
        if left <= 0:
            recorder.journal.interrupt(late)
        else:
            signal.setitimer(signal.ITIMER_REAL, max(left, SOON))

    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def modes(stack: contextlib.ExitStack, recorder: Recorder, job: dict[str, Any]) -> None:
    """Enter the modes of torch that the job asks for."""
    if job["keep"]:
        # What is saved is copied, so no later step can reach it, and hooks skip the version check.
        stack.enter_context(
            torch.autograd.graph.saved_tensors_hooks(recorder.provenance.copied_alike, lambda kept: kept)
        )
    if job["fake"]:
        stack.enter_context(dataless.pretending(recorder.unable))
        recorder.provenance.raised = recorder.refused
    if not job["thorough"]:
        recorder.provenance.lost = "nobody asks for hashes"
    if job["thorough"] or job["fake"]:
        stack.enter_context(recorder.provenance)
    if recorder.draws:
        stack.enter_context(recorder.draws)


def execute(job: dict[str, Any]) -> None:
    """Run what the user's command starts, with the text under test in the place of its file."""
    command, path, source = job["command"], job["path"], job["source"]
    entry, module = command["entry"], command["module"]
    lines_of(path, source)
    sys.argv = [entry, *command["args"]]
    imports = [folder for folder in job["imports"] if folder not in sys.path]
    sys.path[:0] = [command["cwd"] if module else os.path.dirname(entry), *imports]
    if imports:
        os.environ["PYTHONPATH"] = os.pathsep.join(job["imports"])
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=entry, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    rewritten = command["rewritten"]
    for other, text in rewritten.items():
        lines_of(other, text)
        imported_as(other, text, [])
    if command["driver"]:
        lines_of(entry, command["driver"])
        importlib.import_module("..alone", __package__).provide()
        exec(compile(command["driver"], entry, "exec", dont_inherit=True), main.__dict__)
        return
    elsewhere = os.path.realpath(entry) != os.path.realpath(path)
    if elsewhere:
        imported_as(path, source, job["watched"])
    if module:
        # As ``runpy`` does: the packages around it are imported first.
        main.__spec__ = importlib.util.find_spec(module)
        main.__package__ = module if os.path.basename(entry) == "__main__.py" else module.rpartition(".")[0]
    if elsewhere and os.path.realpath(entry) in rewritten:
        lines_of(entry, rewritten[os.path.realpath(entry)])
        code = compile(rewritten[os.path.realpath(entry)], entry, "exec", dont_inherit=True)
    elif elsewhere:
        with open(entry, "rb") as file:
            code = compile(file.read(), entry, "exec", dont_inherit=True)
    else:
        code = coverage.compiled(source, entry, job["watched"])
    if notebook.is_notebook(entry):
        notebook.provide(main.__dict__)
        notebook.execute(code, main.__dict__)
    else:
        exec(code, main.__dict__)


def lines_of(path: str, source: str) -> None:
    """Let the lines of the file at ``path`` be those of another text.

    Without a time of modification linecache keeps them, whatever the file on disk says.
    """
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)


def imported_as(path: str, source: str, watched: list[tuple[int, int, int, int]]) -> None:
    """Let the file at ``path`` be imported with another text."""
    loader = importlib.machinery.SourceFileLoader
    real = loader.get_code

    def get_code(self: Any, fullname: str) -> Any:
        if os.path.realpath(self.get_filename(fullname)) == os.path.realpath(path):
            return coverage.compiled(source, path, watched)
        return real(self, fullname)

    loader.get_code = get_code  # type: ignore[method-assign]


def advise(
    recorder: Recorder, job: dict[str, Any], error: BaseException | None = None, late: bool = False
) -> None:
    """Record the schema with which the run might get further, if it lacked something.

    A run whose steps are enough, or that autograd has ended, lacks nothing.
    """
    done = recorder.steps if recorder.optimizers else recorder.backwards
    if done >= ENOUGH or (error is not None and kind_of(error) != "other"):
        return
    with recorder.bookkeeping():
        package = load_standins()
        if not job["schema"]:
            package.install(recorder, job, recorder.overlay)
        found = package.advise(error) if error is not None else package.advise_at_end(late)
        if found is not None:
            recorder.emit("schema", text=found)


def load_standins() -> Any:
    """The stand-ins, which are seldom needed."""
    from .. import standins

    return standins


def where(recorder: Recorder, error: BaseException) -> dict[str, Any]:
    """The place that an exception came from, by its traceback."""
    if isinstance(error, SyntaxError) and error.filename == recorder.places.path:
        return {"script": [error.lineno, None, None, None], "inner": None, "tensor": False}
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    return recorder.places.place(frames[::-1])


def warm() -> dict[str, Any]:
    """Import what every run needs, once."""
    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401
    torch.set_num_threads(1)
    # Before any run is confined to what it may read.
    operations.prepare()
    overlay.captured()
    try:
        from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: F401
    except ImportError:
        raise ImportError("torch " + str(torch.__version__) + " is too old (2.0 is needed)") from None
    # The first optimizer of a process makes torch import its compiler, which takes a second.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    first_operations()
    gc.freeze()  # a collection in a forked process would copy all the pages that it shares
    return {"torch": str(torch.__version__), "python": sys.version.split()[0]}


def first_operations() -> None:
    """Let torch do what it does on the first use of an operation, which otherwise each run would repeat.

    No backward: where torch makes threads for it, a forked process could not use them. No FakeTensorMode:
    it asks for accelerators, and then those who are forked may not ask any more.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    with torch.no_grad():
        image = torch.zeros(2, 1, 6, 6)
        hidden = torch.nn.functional.leaky_relu(torch.nn.Conv2d(1, 2, 3)(image))
        image = torch.nn.ConvTranspose2d(2, 1, 3)(torch.nn.BatchNorm2d(2)(hidden))
        score = torch.sigmoid(torch.nn.Linear(36, 1)(image.flatten(1)))
        torch.nn.functional.binary_cross_entropy(torch.cat([score, 1 - score]), torch.ones(4, 1)).mean()
    with _disable_current_modes():
        pass
