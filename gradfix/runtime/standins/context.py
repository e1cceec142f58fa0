"""What all stand-ins of one run share: its schema, the user's frames, and the log of what was used."""

from __future__ import annotations

import hashlib
import importlib.abc
import linecache
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from .schema import Schema, parsed


class NeedsValues(Exception):
    """The run needs values that nothing can stand in for; the message says whose."""


class StandinRun:
    """One run of one script, as its stand-ins see it."""

    def __init__(self, recorder: Any, job: dict[str, Any], overlay: Any) -> None:
        self.recorder = recorder
        self.overlay = overlay
        self.job = job
        self.root: str = job["root"]
        self.cwd: str = job["command"]["cwd"]
        self.schema: Schema = parsed(job["schema"])
        self.sizes: dict[str, list[int]] = {}
        """The sizes of all arrays that were made up, by place, the latest last."""
        self.rows: set[int] = set()
        """How many samples have been put together in batches of what was made up."""
        self.enumerated: dict[str, None] = {}
        """Places whose keys were asked for, and nothing said which there are; the latest last."""
        self.numbers: dict[str, int] = {}
        """The sizes that settings were made up to say, by place, the latest last."""
        self.advisers: list[Callable[[StandinRun, BaseException], Schema | None]] = []
        """Who else knows what an error says is missing."""
        self.words: dict[str, int] = {}
        """By argument that nobody gives: among how many words its value was chosen."""
        self.at_end: list[Callable[[StandinRun], Schema | None]] = []
        """Who knows what a script lacks that has come to its end without training."""
        self._told: set[str] = set()

    def used(self, what: str, gave: str) -> None:
        """Record, once for each ``what``, that a stand-in was used and what it gave."""
        if what not in self._told and os.getpid() == self.recorder.pid:
            self._told.add(what)
            self.recorder.emit("standin", what=what, gave=gave)

    def stop(self, message: str) -> NoReturn:
        """End the run on the spot, which no ``except:`` of the script can prevent."""
        error = NeedsValues(message)
        if os.getpid() == self.recorder.pid:
            self.recorder.finish("error", self.recorder.failed(error, "script", self.recorder.places.here()))
        raise error

    def shown(self, path: str) -> str:
        """A path as people read it: relative to the project's root where it lies below."""
        absolute = os.path.abspath(path)
        inside = absolute.startswith(os.path.join(self.root, ""))
        return os.path.relpath(absolute, self.root) if inside else absolute

    def owns(self, frame: types.FrameType) -> bool:
        """Whether a frame belongs to the script or to its project."""
        name = frame.f_code.co_filename
        return name == self.recorder.places.path or bool(self.recorder.places.in_project(name))

    def caller(self) -> types.FrameType | None:
        """The innermost frame of the user's code that is running."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and not self.owns(frame):
            frame = frame.f_back
        return frame

    def raised_in(self, error: BaseException) -> types.TracebackType | None:
        """The innermost entry of the user's code in an exception's traceback."""
        found, trace = None, error.__traceback__
        while trace is not None:
            found = trace if self.owns(trace.tb_frame) else found
            trace = trace.tb_next
        return found


_runs: list[StandinRun] = []


def begin(recorder: Any, job: dict[str, Any], overlay: Any) -> StandinRun:
    """Make the run of this process, which runs one job."""
    _runs.append(StandinRun(recorder, job, overlay))
    return _runs[-1]


def run() -> StandinRun:
    """The run of this process."""
    return _runs[-1]


def statement(trace: types.TracebackType) -> str:
    """The line of source that a traceback entry stands at."""
    return linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)


def generator(*about: object) -> torch.Generator:
    """A generator of its own, whose numbers depend on ``about`` and on nothing else."""
    number = int.from_bytes(hashlib.blake2b(repr(about).encode(), digest_size=7).digest(), "big")
    return torch.Generator(device="cpu").manual_seed(number)


def quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, with no mode of the recorder looking on, nor of the script."""

    def call(*args: Any, **kwargs: Any) -> Any:
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes(), torch.no_grad():
            return function(*args, **kwargs)

    return call


class _Changing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Changes one module as soon as it has been imported."""

    def __init__(self, name: str, change: Callable[[Any], None]) -> None:
        self.name, self.change, self.real = name, change, None

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        self.real, spec.loader = spec.loader, self  # type: ignore[assignment]
        return spec

    def create_module(self, spec: Any) -> Any:
        return self.real.create_module(spec)  # type: ignore[attr-defined]

    def exec_module(self, module: types.ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.real
        self.real.exec_module(module)  # type: ignore[attr-defined]
        self.change(module)


def when_imported(name: str, change: Callable[[Any], None]) -> None:
    """Call ``change`` with a module, now if it is imported, else once it is."""
    if name in sys.modules:
        change(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Changing(name, change))
