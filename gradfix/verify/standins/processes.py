"""Several processes in one: distributed training of a world of one, and workers run in turn.

Only what happens in the process of the run is recorded, so the workers of a script that forks its
training run one after the other in that process, when the script waits for them or ends.
"""

from __future__ import annotations

import concurrent.futures
import errno
import inspect
import multiprocessing
import multiprocessing.context
import multiprocessing.pool
import multiprocessing.process
import multiprocessing.queues
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import content, context

_waiting: list[Any] = []
_run: list[context.Run] = []
_running: list[Any] = []
"""Those that run now, each within a wait of the one before."""
_producers: list[Producer] = []
_held: dict[int, int] = {}
"""By queue: how many things were put into it that nobody has taken."""


def install(run: context.Run) -> None:
    """Make a world of one, and keep the script's processes here."""
    _run[:] = [run]
    environment()
    world(run)
    workers(run)
    history(run)
    ports(run)


def environment() -> None:
    """What a launcher would have set; the rest only for who cannot do without (see ``arguments``)."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    if content.book.planned("environment", "launcher"):
        for name, value in (
            ("RANK", "0"),
            ("LOCAL_RANK", "0"),
            ("WORLD_SIZE", "1"),
            ("LOCAL_WORLD_SIZE", "1"),
        ):
            os.environ.setdefault(name, value)


NO_COMMIT = "0" * 40


def history(run: context.Run) -> None:
    """git's answers to scripts that note which commit they are of: the sandbox keeps the history shut; and
    programs that are not there and that nobody waits for."""

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, args: Any, *more: Any, **kwargs: Any) -> None:
            words = args.split() if isinstance(args, str) else [str(one) for one in args]
            if words[:1] == ["git"]:
                run.used("git " + " ".join(words[1:2]), "what it says of a commit that is all zeros")
                args = ["echo", said(words)]
                kwargs["shell"] = False
            elif in_background(words, kwargs, more) and run.owns(sys._getframe(1)):
                run.used("program " + words[0], "nothing: it is not here, and nobody reads what it says")
                args = ["true"]
            super().__init__(args, *more, **kwargs)

    def said(words: list[str]) -> str:
        if "--show-toplevel" in words:
            return os.path.abspath(run.root)
        if "--abbrev-ref" in words or "branch" in words:
            return "main"
        short = any(word.startswith(("--short", "--pretty=%h", "--format=%h")) for word in words)
        if {"rev-parse", "log", "describe", "show"} & {*words}:
            return NO_COMMIT[:7] if short else NO_COMMIT
        return ""

    def in_background(words: list[str], named: dict[str, Any], more: tuple[Any, ...]) -> bool:
        """Whether a program is not there that is started beside the script (``tensorboard``), which neither
        tells it anything nor asks it."""
        told = [named.get(one) for one in ("stdin", "stdout", "stderr")]
        plain = not (more or named.get("shell") or subprocess.PIPE in told)
        return plain and bool(words) and shutil.which(words[0]) is None

    subprocess.Popen = Popen  # type: ignore[misc]


PORT = 29500
"""A port of this machine that is free, as far as anybody can tell: nobody is connected to it."""


def ports(run: context.Run) -> None:
    """Ends of connections that the sandbox does not allow, for scripts that look for a free port."""

    class Socket(socket.socket):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._name: tuple[str, int] | None = None
            try:
                super().__init__(*args, **kwargs)
            except OSError:
                if not run.owns(sys._getframe(1)):
                    raise
                run.used("socket", "one that is connected to nothing")
                self._io_refs, self._closed = 0, False
                self._name = ("0.0.0.0", 0)

        def bind(self, address: Any) -> None:
            if self._name is None:
                super().bind(address)
            else:
                self._name = (address[0] or "0.0.0.0", address[1] or PORT)

        def getsockname(self) -> Any:
            return super().getsockname() if self._name is None else self._name

        def listen(self, *args: Any) -> None:
            if self._name is None:
                super().listen(*args)

        def setsockopt(self, *args: Any) -> None:
            if self._name is None:
                super().setsockopt(*args)

        def connect_ex(self, address: Any) -> int:
            return super().connect_ex(address) if self._name is None else errno.ECONNREFUSED

    socket.socket = Socket  # type: ignore[misc]


class Parallel(torch.nn.Module):
    """``DistributedDataParallel`` over a world of one: its gradients are the network's own."""

    def __init__(self, module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.module = module
        context.run().used("DistributedDataParallel", "the network itself")

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The network's own forward."""
        return self.module(*inputs, **kwargs)

    def no_sync(self) -> Any:
        """There is nobody to wait for."""
        import contextlib

        return contextlib.nullcontext()


class Work:
    """A collective operation that is over."""

    def wait(self, *args: Any) -> bool:
        """It is over."""
        return True

    is_completed = wait


def world(run: context.Run) -> None:
    """``torch.distributed`` among one process, without its network."""
    import torch.distributed as dist

    if not dist.is_available():
        return

    def start(*args: Any, **kwargs: Any) -> None:
        alone(run)

    context.replace(dist, "init_process_group", start)
    for owner in (torch.nn.parallel, sys.modules["torch.nn.parallel.distributed"]):
        owner.DistributedDataParallel = Parallel  # type: ignore[attr-defined]


def alone(run: context.Run) -> None:
    """Answer as the first process of the world; what the others would send is what it has itself."""
    import torch.distributed as dist

    more = run.devices > 1
    several = f"the first of {run.devices} processes; what the others would send is its own"
    run.used("torch.distributed", several if more else "a world of one process")
    answers: dict[str, Any] = {
        "is_initialized": True,
        "get_rank": 0,
        "get_world_size": run.devices,
        "get_backend": "gloo",
        "new_group": None,
    }
    for name, answer in answers.items():
        context.replace(dist, name, lambda *args, _answer=answer, **kwargs: _answer)
    for name in ("barrier", "destroy_process_group"):
        context.replace(dist, name, lambda *args, **kwargs: None)
    for name in ("all_reduce", "broadcast", "reduce", "broadcast_object_list"):
        context.replace(dist, name, lambda *args, **kwargs: Work())
    for name in ("all_gather", "all_gather_object"):
        context.replace(dist, name, gather)


def gather(found: list[Any], value: Any, *args: Any, **kwargs: Any) -> Work:
    """Everybody's value, which is the same."""
    for place, one in enumerate(found):
        if isinstance(one, torch.Tensor):
            one.copy_(value)
        else:
            found[place] = value
    return Work()


def workers(run: context.Run) -> None:
    """``Process`` and ``spawn``, from either library."""
    import torch.multiprocessing as multi

    def start(self: Any) -> None:
        if produces(self):
            run.used("process " + worker_name(self), "in turn with what takes what it makes")
            _producers.append(Producer(self))
            return
        if not trains(self):
            real_start(self)
            return
        run.used("process " + worker_name(self), "it runs in the script's own process")
        _waiting.append(self)

    def join(self: Any, timeout: Any = None) -> None:
        run_waiting()

    def spawn(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, **kwargs: Any) -> None:
        run.used("torch.multiprocessing.spawn", "the first process, run here")
        fn(0, *args)

    base = multiprocessing.process.BaseProcess
    real_start = context.replace(base, "start", start)
    context.replace(base, "join", join)

    def get(self: Any, *args: Any, **kwargs: Any) -> Any:
        while _waiting and _held.get(id(self), 0) < 1:
            # Who waits for what a process sends waits for the process.
            run_next()
        if _producers:
            fill(self)
        found = real_get(self, *args, **kwargs)
        _held[id(self)] = _held.get(id(self), 0) - 1
        return found

    def put(self: Any, *args: Any, **kwargs: Any) -> Any:
        producer = Producer.here()
        while producer is not None and self.full():
            producer.pause()
        if producer is None and _running and self.full():
            run.used("process " + worker_name(_running[-1]), "it ends where it has filled its queue")
            raise Full
        real_put(self, *args, **kwargs)
        _held[id(self)] = _held.get(id(self), 0) + 1
        if producer is not None:
            producer.pause()

    def end(self: Any) -> None:
        if self._popen is not None:
            real_end(self)

    real_get = context.replace(multiprocessing.queues.Queue, "get", get)
    real_put = context.replace(multiprocessing.queues.Queue, "put", put)
    real_end = context.replace(base, "terminate", end)
    context.replace(base, "is_alive", lambda self: False)
    context.replace(multi, "spawn", spawn)
    for kind in ("SpawnProcess", "ForkServerProcess"):
        # A fresh interpreter would have none of this.
        if hasattr(multiprocessing.context, kind) and hasattr(multiprocessing.context, "ForkProcess"):
            getattr(multiprocessing.context, kind)._Popen = staticmethod(
                multiprocessing.context.ForkProcess._Popen
            )
    for owner in (multi, multiprocessing):
        context.replace(owner, "set_start_method", lambda *args, **kwargs: None)
    pools(run)
    managers(run)


class Producer:
    """A worker that makes one thing after the other for a queue: it goes on when another one is wanted.

    Several processes would race, and a run would not be like the next one. It runs in a thread of the
    script's own process that never runs beside another.
    """

    def __init__(self, process: Any) -> None:
        self.over = False
        self.turn, self.back = threading.Semaphore(0), threading.Semaphore(0)
        self.thread = threading.Thread(target=self._work, args=(process,), daemon=True)
        self.thread.start()

    @staticmethod
    def here() -> Producer | None:
        """The one whose code this is."""
        return next((one for one in _producers if one.thread is threading.current_thread()), None)

    def _work(self, process: Any) -> None:
        self.turn.acquire()
        try:
            process.run()
        finally:
            self.over = True
            self.back.release()

    def resume(self) -> None:
        """Let it go on, up to where it pauses or ends."""
        self.turn.release()
        self.back.acquire()

    def pause(self) -> None:
        """Let the one go on that let this one go on."""
        self.back.release()
        self.turn.acquire()


def fill(wanted: Any) -> None:
    """Let those that produce go on, one after the other, until something is in a queue."""
    producer = Producer.here()
    while producer is not None and _held.get(id(wanted), 0) < 1:
        producer.pause()
    before: dict[int, int] | None = None
    while producer is None and before != _held:
        before = dict(_held)
        for _ in range(len(_producers)):
            if _held.get(id(wanted), 0) > 0:
                return
            _producers.append(_producers.pop(0))
            if not _producers[-1].over:
                _producers[-1].resume()


class Result:
    """What a pool was asked for, which is there already."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        try:
            self.value = work()
        except Exception as error:
            self.error = error

    def get(self, timeout: Any = None) -> Any:
        """The value, or the error that came in its place."""
        if self.error is not None:
            raise self.error
        return self.value

    def wait(self, timeout: Any = None) -> None:
        """It is there."""

    def ready(self) -> bool:
        """It is there."""
        return True

    def successful(self) -> bool:
        """Whether no error came in its place."""
        return self.error is None


class Pool:
    """A pool of processes that does its work at once, in the process that asks for it."""

    def __init__(
        self, processes: Any = None, initializer: Any = None, initargs: Any = (), *args: Any, **kwargs: Any
    ) -> None:
        context.run().used("a pool of processes", "its work is done in the script's own process")
        if initializer is not None:
            initializer(*initargs)

    def apply(self, func: Any, args: Any = (), kwds: Any = None) -> Any:
        """Call a function."""
        return func(*args, **(kwds or {}))

    def map(self, func: Any, iterable: Any, chunksize: Any = None) -> list[Any]:
        """Call a function for each."""
        return [func(one) for one in iterable]

    def starmap(self, func: Any, iterable: Any, chunksize: Any = None) -> list[Any]:
        """Call a function for each, whose parts are its arguments."""
        return [func(*one) for one in iterable]

    def imap(self, func: Any, iterable: Any, chunksize: Any = 1) -> Iterator[Any]:
        """Call a function for each when its value is asked for."""
        return (func(one) for one in iterable)

    imap_unordered = imap

    def _later(self, real: Any, args: Any, kwargs: dict[str, Any]) -> Result:
        callback, failed = kwargs.pop("callback", None), kwargs.pop("error_callback", None)
        result = Result(lambda: real(*args, **kwargs))
        told = callback if result.error is None else failed
        if told is not None:
            told(result.value if result.error is None else result.error)
        return result

    def apply_async(self, *args: Any, **kwargs: Any) -> Result:
        """Call a function."""
        return self._later(self.apply, args, kwargs)

    def map_async(self, *args: Any, **kwargs: Any) -> Result:
        """Call a function for each."""
        return self._later(self.map, args, kwargs)

    def starmap_async(self, *args: Any, **kwargs: Any) -> Result:
        """Call a function for each, whose parts are its arguments."""
        return self._later(self.starmap, args, kwargs)

    def close(self) -> None:
        """Nothing is open."""

    join = terminate = close

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class Executor(concurrent.futures.Executor):
    """The same as ``concurrent.futures`` has it."""

    def __init__(self, *args: Any, initializer: Any = None, initargs: Any = (), **kwargs: Any) -> None:
        Pool(initializer=initializer, initargs=initargs)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def pools(run: context.Run) -> None:
    """Pools: a fork of this process would wait for what only its other threads could give."""
    import torch.multiprocessing as multi

    def make(self: Any, *args: Any, **kwargs: Any) -> Pool:
        return Pool(*args, **kwargs)

    multiprocessing.context.BaseContext.Pool = make  # type: ignore[method-assign, assignment]
    for owner in (multiprocessing, multiprocessing.pool, multi):
        owner.Pool = Pool  # type: ignore[attr-defined]
    concurrent.futures.ProcessPoolExecutor = Executor  # type: ignore[assignment, misc]


class Manager:
    """A manager of what processes share: as they run in one, it is shared without one."""

    list = list
    dict = dict
    Namespace = types.SimpleNamespace
    Queue = queue.Queue
    JoinableQueue = queue.Queue
    Lock = threading.Lock
    RLock = threading.RLock
    Event = threading.Event
    Condition = threading.Condition
    Semaphore = threading.Semaphore

    def Value(self, kind: Any, value: Any, *args: Any) -> Any:
        """A value that may be changed."""
        return types.SimpleNamespace(value=value)

    def Array(self, kind: Any, values: Any, *args: Any) -> Any:
        """Values that may be changed."""
        return [*values]

    def start(self, *args: Any) -> None:
        """Nothing is to be started."""

    shutdown = start

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


def managers(run: context.Run) -> None:
    """Managers, whose process could not answer: only this one runs."""
    import torch.multiprocessing as multi

    def make(*args: Any, **kwargs: Any) -> Manager:
        run.used("multiprocessing.Manager", "values of the script's own process")
        return Manager()

    multiprocessing.context.BaseContext.Manager = make  # type: ignore[method-assign, assignment]
    for owner in (multiprocessing, multi):
        owner.Manager = make  # type: ignore[attr-defined]


def worker_name(process: Any) -> str:
    """What to call a worker."""
    target = getattr(process, "_target", None)
    return getattr(target, "__name__", None) or type(process).__name__


def produces(process: Any) -> bool:
    """Whether a worker makes things for a queue again and again, and does not differentiate."""
    target = getattr(process, "_target", None)
    try:
        text = inspect.getsource(type(process) if target is None else target)
    except (OSError, TypeError):
        return False
    endless = re.search(r"\bwhile\b", text) is not None
    return endless and ".put(" in text and ".backward(" not in text and "optim" not in text


def trains(process: Any) -> bool:
    """Whether a worker trains, as far as its text says; others only test, show or serve."""
    target = getattr(process, "_target", None)
    if serves(target or type(process).run):
        return False
    try:
        subject = type(process) if target is None else target
        module = inspect.getmodule(subject)
        text = inspect.getsource(subject)
        whole = inspect.getsource(module) if module is not None and module.__name__ != "__main__" else text
    except (OSError, TypeError):
        return True
    if ".backward(" in text or ".step(" not in text:
        return ".backward(" in text or "test" not in worker_name(process).lower()
    return "optim" in whole


def serves(work: Any) -> bool:
    """Whether a worker waits for what it is told, again and again, and does not differentiate itself.

    Who tells it waits for answers, which only another process can give meanwhile.
    """
    try:
        text = inspect.getsource(work)
    except (OSError, TypeError):
        return False
    return ".recv(" in text and re.search(r"\bwhile\b", text) is not None and ".backward(" not in text


class Full(BaseException):
    """A worker would wait for who takes what it has made, who waits for the worker."""


def run_waiting() -> None:
    """Run the workers that were started."""
    while _waiting:
        run_next()


def run_next() -> None:
    """Run the first of the workers that were started."""
    process = _waiting.pop(0)
    _running.append(process)
    try:
        process.run()
    except Full:
        pass
    finally:
        _running.pop()
