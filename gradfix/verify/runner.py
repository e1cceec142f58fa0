"""Runs of scripts in the user's interpreter.

A process in the user's interpreter imports torch once and forks for every run (where the system
cannot fork, one process serves each run). The script's text is given to it, so nothing is
written to the project; it is run by the user's own command (see :mod:`gradfix.verify.command`), in the
user's working directory, and what it writes is thrown away (``runtime/probe/overlay.py``).

The runs are sandboxed (see :mod:`gradfix.runtime.sandbox`), and nothing is run where no sandbox is to
be had, unless the caller allows it. What a run leaves behind is read as something hostile.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any

from gradfix import runtime
from gradfix.runtime.sandbox import kernel, levels, readable, removal
from gradfix.system import progress, scratch
from gradfix.system.parallel import before_leaving, is_forked
from gradfix.verify import untrusted_environments
from gradfix.verify.interpreter import Interpreter, choose_interpreter
from gradfix.verify.jobs import Job
from gradfix.verify.recording.loading import load
from gradfix.verify.recording.records import Ending, Recording
from gradfix.verify.sandboxes import CannotRun, choose_sandbox, variables_of_runs
from gradfix.verify.server import OUT_OF_TIME, Ended, Server, ending_of


class Runner:
    """Runs jobs in one interpreter; used as a context manager.

    Identical jobs run once: results are kept until the runner closes.

    Args:
        executable: The interpreter.
        workers: How many runs at a time.
        total: Seconds for everything.
        allow_unsandboxed: Run even where there is no sandbox.
        level: The sandbox to use (default: see :func:`choose_sandbox`).

    Raises:
        CannotRun: on entering, if there is no sandbox.
    """

    def __init__(
        self,
        executable: str,
        *,
        workers: int | None = None,
        total: float = 300.0,
        allow_unsandboxed: bool = False,
        level: levels.Level | None = None,
    ) -> None:
        self._executable = executable
        self._untrusted = untrusted_environments.environment_of(executable)
        self.workers = workers or min(4, os.cpu_count() or 2)
        self.allow(total)
        self._results: dict[Job, Recording] = {}
        self._server: Server | None = None
        self._code: set[Path] = set()
        """The projects whose scripts run here."""
        self.level = level or choose_sandbox(executable, allow_unsandboxed)
        """The sandbox that the runs are in."""

    def __enter__(self) -> Runner:
        self._temporary = scratch.folder()
        self._folder = self._temporary.__enter__()
        self._count = 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.end()
        self._temporary.__exit__(None, None, None)

    def run(self, jobs: Iterable[Job]) -> list[Recording]:
        """Run jobs side by side, begun in their order; the answer is in it too.

        Raises:
            CannotRun: if torch cannot be imported.
        """
        wanted = list(jobs)
        fresh = [job for job in dict.fromkeys(wanted) if not self._answered(job)]
        prepared = {
            str(folder / "job.json"): (job, folder) for job in fresh for folder in [self._prepare(job)]
        }
        # What a run leaves may be large: it is read, and removed, before the next ones are over.
        _tell_of(prepared.values())
        for name, ending in self._run(prepared) if fresh else ():
            self._take(*prepared.pop(name), ending)
            _tell_of(prepared.values())
        for job, folder in prepared.values():
            self._take(job, folder, ("killed", OUT_OF_TIME))
        return [self._results[job] for job in wanted]

    def _take(self, job: Job, folder: Path, ending: tuple[Ending, str]) -> None:
        self._results[job] = load(folder, job.source, job.seed, ending, job.watched)
        removal.remove(folder)

    def know(self, job: Job, recording: Recording) -> None:
        """Take it for what a job would show that was not run."""
        self._results.setdefault(job, recording)

    def _answered(self, job: Job) -> bool:
        """Whether there is a run of ``job`` already in which all was watched that it wants watched."""
        return job in self._results and self._results[job].reached.keys() >= {*job.watched}

    def allow(self, total: float) -> None:
        """Begin a new span of ``total`` seconds for everything, within what :func:`budget` leaves."""
        self._deadline = min(time.monotonic() + total, _budget.get())

    def forget_all_but(self, sources: Collection[str]) -> None:
        """Drop the results of runs of other texts than these; they hold all the gradients."""
        self._results = {job: found for job, found in self._results.items() if job.source in sources}

    def _prepare(self, job: Job) -> Path:
        folder = self._folder / str(self._count)
        self._count += 1
        folder.mkdir()
        level = {"level": self.level.name, "shared": self.level.memory, "newest": self.level.newest}
        (folder / "job.json").write_text(json.dumps(job.payload(folder) | level), encoding="utf-8")
        return folder

    def _run(self, prepared: Mapping[str, tuple[Job, Path]]) -> Iterator[Ended]:
        """Run jobs, and say of each when it is over.

        Args:
            prepared: By the name of its file: a job, and its folder.
        """
        if time.monotonic() >= self._deadline:
            return
        if not hasattr(os, "fork"):
            yield from self._one_by_one(prepared)
            return
        if self.level.apart:
            with ThreadPoolExecutor(self.workers) as threads:
                waiting = [threads.submit(self._apart, *one) for one in prepared.values()]
                for done in as_completed(waiting):
                    yield from done.result()
            return
        self._code.update(job.root() for job, _ in prepared.values())
        environment = variables_of_runs(self._code)
        if self._server is not None and self._server.environment != environment:
            # Its modules may be those of a project that is looked at only now.
            self._server.end()
        if self._server is None or not self._server.running:
            command = [*self.level.scope, *self._serving(self.workers)]
            log = self._folder / "server.txt"
            self._server = Server(command, self._folder, environment, log, self._deadline)
        yield from self._server.run(list(prepared), self._deadline)

    def _serving(self, workers: int) -> list[str]:
        """The command of a server, which is within the sandbox already where runs are started apart."""
        what = [runtime.MAIN, "probe", "--serve", str(workers), str(self._folder), ",".join(self.level.held)]
        if self._untrusted is None or self.level.apart:
            return [self._executable, *what]
        return [sys.executable, "-I", "-S", *what, self._executable, *self._untrusted.prefixes]

    def _apart(self, job: Job, folder: Path) -> list[Ended]:
        """Run one job by a server of its own, which is within the sandbox itself."""
        files = readable.project_files(str(job.root()), str(job.path.absolute()))
        data = readable.data_folders([str(one) for one in job.command.readable])
        environment = variables_of_runs([job.root()])
        modules = environment.get("PYTHONPATH", "").split(os.pathsep)
        files = readable.Readable(
            [*files.whole, *data.whole, *filter(None, modules)], [*files.listed, *data.listed]
        )
        command = self.level.command(files, [str(folder)], job.limits.memory)
        command += self._serving(1)
        log = self._folder / f"server-{folder.name}.txt"
        server = Server(command, folder, environment, log, self._deadline)
        try:
            return list(server.run([str(folder / "job.json")], self._deadline))
        finally:
            server.end()

    def _one_by_one(self, prepared: Mapping[str, tuple[Job, Path]]) -> Iterator[Ended]:
        for name, (job, folder) in list(prepared.items()):
            command = [self._executable, runtime.MAIN, "probe", name]
            left = self._deadline - time.monotonic()
            if left <= 0:
                break
            seconds = json.loads((folder / "job.json").read_text(encoding="utf-8"))["limits"]["seconds"]
            with (folder / "stderr.txt").open("wb") as log:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=variables_of_runs([job.root()]),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                )
            try:
                # A minute more than the run may take: it imports torch first.
                code = process.wait(timeout=min(left, seconds + 60))
                yield name, ending_of(code, 0, None)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                yield name, ending_of(None, None, None)


def _tell_of(waiting: Iterable[tuple[Job, Path]]) -> None:
    """Tell who waits what is running."""
    for job, _ in waiting:
        progress.tell(f"running {job.path.name}{job.label and f' {job.label}'}")
        return


_budget: ContextVar[float] = ContextVar("_budget", default=math.inf)
"""By when everything has to be verified."""


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Give so many seconds to everything that is verified within it, and show how many of them are spent."""
    token = _budget.set(min(_budget.get(), time.monotonic() + seconds))
    try:
        with progress.shown(seconds):
            yield
    finally:
        _budget.reset(token)


def run_many(
    jobs: Sequence[Job],
    *,
    python: str | Interpreter | None = None,
    workers: int | None = None,
    total: float = 300.0,
    allow_unsandboxed: bool = False,
) -> list[Recording]:
    """Run several scripts with one import of torch; the answer is in the jobs' order.

    Args:
        jobs: What to run; they may be different scripts.
        python: The interpreter, else :func:`choose_interpreter` of the first job's path.
        workers: How many runs at a time.
        total: Seconds for everything.
        allow_unsandboxed: Run even where there is no sandbox.

    Raises:
        CannotRun: if there is no interpreter with torch, or no sandbox.
    """
    if not jobs:
        return []
    interpreter = choose_interpreter(jobs[0].path, python)
    if isinstance(interpreter, str):
        raise CannotRun(interpreter)
    with Runner(
        interpreter.executable, workers=workers, total=total, allow_unsandboxed=allow_unsandboxed
    ) as runner:
        return runner.run(jobs)


def run_once(
    path: Path, source: str, *, python: str | None = None, allow_unsandboxed: bool = False, **options: Any
) -> Recording:
    """Run one script; ``options`` are the other fields of :class:`Job`. See :func:`run_many`."""
    job = Job(path, source, **options)
    return run_many([job], python=python, allow_unsandboxed=allow_unsandboxed)[0]


class _Servers:
    """The runners that are kept open, by interpreter; each process has its own."""

    def __init__(self) -> None:
        self._runners: dict[tuple[int, str, bool], Runner] = {}

    def runner(self, executable: str, total: float, allow_unsandboxed: bool) -> Runner:
        key = os.getpid(), executable, allow_unsandboxed
        runner = self._runners.get(key)
        if runner is None:
            runner = Runner(executable, total=total, allow_unsandboxed=allow_unsandboxed).__enter__()
            self._runners[key] = runner
            # A process that does a part of many files leaves without coming back to where it was forked.
            before_leaving(self.close)
            if is_forked():
                # It would verify what it is at, for nobody, and its servers with it.
                kernel.die_with_parent()
        runner.allow(total)
        return runner

    def close(self) -> None:
        """End the servers of this process."""
        for key in list(self._runners):
            if key[0] == os.getpid():
                self._runners.pop(key).__exit__(None, None, None)


_servers: ContextVar[_Servers | None] = ContextVar("_servers", default=None)


@contextmanager
def servers_kept() -> Iterator[None]:
    """Within it, verifications share one server for each interpreter: torch is imported once for all.

    Of two verifications in a row, a run that both need happens once. Within another one it does nothing.
    """
    if _servers.get() is not None:
        yield
        return
    servers = _Servers()
    token = _servers.set(servers)
    try:
        yield
    finally:
        _servers.reset(token)
        servers.close()


@contextmanager
def runner_for(executable: str, total: float, allow_unsandboxed: bool) -> Iterator[Runner]:
    """A runner, the one that is kept for this interpreter if :func:`servers_kept` keeps them."""
    servers = _servers.get()
    if servers is not None:
        yield servers.runner(executable, total, allow_unsandboxed)
    else:
        with Runner(executable, total=total, allow_unsandboxed=allow_unsandboxed) as runner:
            yield runner
