"""Stand-ins for what a training script lacks: modules, data, downloads, weights, arguments, CUDA.

This package runs in the USER's interpreter, loaded by path by ``probe.py`` under the name
``_gradfix_standins``: standard library and torch only, syntax of Python 3.9. :func:`install` puts it
around one run. Four rules keep a proof honest:

* A stand-in acts only where something is missing, except that the manner ``small`` also reduces sizes
  that scripts name themselves (``batch_size``, ``learning_starts``, ...).
* What it gives depends on the seed of the run and on what was asked for, and on nothing else; it draws
  from generators of its own, never from the script's. The version before a rewrite and the one after
  it therefore see the same.
* What cannot be known is not made up: a value of an unknown module that gets into a tensor, into a
  number or into a condition ends the run with :class:`~.context.NeedsValues`.
* Every stand-in that was used is an event of the recording, once.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from . import (
    absent,
    arguments,
    callers,
    commands,
    content,
    context,
    cuda,
    elastic,
    files,
    finder,
    guards,
    installed,
    library,
    messages,
    parallel,
    plans,
    processes,
    samples,
    sizes,
    weights,
    worlds,
)


class Standins:
    """What :func:`install` put around a run."""

    def __init__(self, run: context.Run, main: types.ModuleType) -> None:
        self.run = run
        self.main = main

    def code(self) -> types.CodeType:
        """The script's compiled text; what it needs of the package that it belongs to is there."""
        callers.within_package(self.run, self.main, self.run.script, self.run.source)
        return sizes.code_of(self.run, self.run.source, self.run.script)

    def failed(self, error: BaseException) -> None:
        """Say how content that was made up should have looked, if that is why the run failed."""
        plan = self.advice(error)
        if plan is None and error.__context__ is not None:
            # What a script does after an error fails where there was to be none.
            plan = self.advice(error.__context__)
        if plan is not None:
            self.run.recorder.emit("plan", text=plan)

    def advice(self, error: BaseException) -> str | None:
        """The plan of a run that might get further than this error."""
        trained = self.run.recorder.backwards
        return (
            samples.advise_if_missed(self.run, error)
            or (guards.advise(error) if trained else None)
            or sizes.advise(self.run, error)
            or library.advise(error)
            or files.advise(error)
            or finder.advise(error)
            or cuda.advise(error)
            or arguments.advise(error)
            or worlds.advise(error)
            or weights.advise(error)
            or messages.advise(error)
            or plans.advise(error)
            or elastic.advise(error)
            or (None if trained else commands.advise(self.run))
            or guards.advise(error)
            or samples.advise(self.run, error)
        )

    def late(self) -> None:
        """Say what a run that takes too long might do with less of."""
        plan = sizes.advise_when_late(self.run)
        if plan is not None:
            self.run.recorder.emit("plan", text=plan)

    def early(self) -> bool:
        """Whether a run is in a loop that would take all of its time, and might do with less of that."""
        plan = sizes.advise_when_early(self.run)
        if plan is not None:
            self.run.recorder.emit("plan", text=plan)
        return plan is not None

    def exhausted(self) -> None:
        """Say what a run might do with less of that has differentiated often and made no step."""
        plan = sizes.advise_when_exhausted(self.run)
        if plan is not None:
            self.run.recorder.emit("plan", text=plan)

    def after(self) -> None:
        """Do what the script left to do at its end: its processes, and what nobody called."""
        processes.run_waiting()
        callers.call_what_nobody_called(self.run, self.main)
        self.left()

    def left(self, leaving: SystemExit | None = None) -> None:
        """Say what a run might do otherwise whose script has ended without a gradient."""
        if self.run.recorder.backwards or not (self.run.lacking or self.run.without):
            return
        plan = plans.advise_when_left(leaving) if leaving is not None and leaving.code else None
        plan = plan or cuda.advise_when_left(self.run)
        if plan is None and self.run.shown is not None:
            self.failed(self.run.shown)
            return
        if plan is None and self.run.lacking:
            # Perhaps a condition has kept nothing of what was made up.
            plan = content.planned_with("code", "kept", True) if content.book.touched else None
            plan = plan or (content.more_samples() if content.book.touched else None)
            plan = plan or commands.advise(self.run)
        if plan is not None:
            self.run.recorder.emit("plan", text=plan)


def install(recorder: Any, job: dict[str, Any], main: types.ModuleType) -> Standins:
    """Put the stand-ins around the run of ``main``, whose recorder is ``recorder``."""
    run = context.Run(recorder, job)
    context.current = run
    content.book = content.Book(job["plan"])
    files.install(run)
    absent.install(run)
    arguments.install(run)
    cuda.install(run)
    processes.install(run)
    parallel.install(run)
    library.install(run)
    weights.install(run)
    sizes.install(run)
    guards.install(run)
    elastic.install(run)
    installed.install()
    sys.meta_path.insert(0, finder.Inner())
    sys.meta_path.append(finder.Finder(run))
    return Standins(run, main)
