"""Verification by execution: run the script before and after a rewrite, compare what it did.

A process in the user's interpreter imports torch once and forks for every run (where the system
cannot fork, one process serves each run). The script's text is given to it, so nothing is
written to the project; it is run by the user's own command (see :mod:`gradfix.verify.command`), in the
user's working directory, and what it writes is thrown away (``overlay.py``).

The runs are sandboxed (see :mod:`gradfix.verify.sandbox`), and nothing is run where no sandbox is to
be had, unless the caller allows it. What a run leaves behind is read as something hostile.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import math
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from gradfix.core.codemod import Claim, Effect
from gradfix.core.errors import quoted
from gradfix.system import hostile, progress, scratch
from gradfix.system.parallel import before_leaving, is_forked
from gradfix.verify import cgroups, claims, made, removal, sandbox, starting
from gradfix.verify.claims import Check, Faults, Still, Surroundings
from gradfix.verify.command import PLAIN, Command, project_root
from gradfix.verify.coverage import Piece, changed
from gradfix.verify.interpreter import Interpreter, choose_interpreter
from gradfix.verify.own_modules import folder_of
from gradfix.verify.pairing import paired
from gradfix.verify.recording import Draws, Ending, Failure, Recording, load, noisy
from gradfix.verify.slicing import affected

PROBE = Path(__file__).with_name("probe.py")
Outcome = Literal["proved", "refuted", "not run"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use."""

    steps: int = 12
    """Optimizer steps of all optimizers together."""
    backwards: int = 40
    """Backward calls; only ``steps`` of them where there is no optimizer: a hand moves parameters then."""
    seconds: float = 30.0
    """Of one run, without the import of torch, and without waiting for a processor (see ``clock.py``)."""
    memory: int = 4 << 30
    """Bytes of memory beyond what the imported torch has."""
    file: int = 1 << 30
    """Bytes of one file."""
    disk: int = 2 << 30
    """Bytes of all files together."""
    files: int = 20_000
    """Files and folders."""
    tasks: int = 256
    """Processes and threads at a time."""
    total: float = 300.0
    """Seconds for everything that one call verifies, and no more than :func:`budget` leaves of its own."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of one script."""

    path: Path
    """The script's own path; it need not exist, and what it holds is not read."""
    source: str
    """The text that runs in its place."""
    command: Command = PLAIN
    """How the user runs it."""
    seed: int = 0
    blind: bool = False
    """Compute no gradients: the run goes past what autograd refuses, and shows what losses come to."""
    keep: bool = False
    """Keep every graph usable, with saved tensors as they were when they were saved."""
    corrections: tuple[tuple[int, bool, tuple[tuple[int, int], ...]], ...] = ()
    """By backward call: whether what its losses take for constants is cut off, and the parameters, by
    optimizer and position, that get nothing of it (see ``intent.corrections``)."""
    still: bool = False
    """Put the weights back after every step."""
    dither: int = 0
    """If it is not 0: move weights and gradients by as little as their type can tell, at random with this
    seed. What that makes of gradients is what rounding may make of them."""
    alone: int | None = None
    """The same, but after those of this optimizer, by number."""
    moves: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """The same, but after some steps they are put back to other weights, which later ones are put back to: by
    optimizer, a number of its own (under which other versions may know it), and those of its steps."""
    numbered: bool = False
    """Number random draws, and record which ones gradients depend on (see ``draws.py``)."""
    numbers: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """By kind of draw: numbers that they are to have instead of those by counting (negative: their own)."""
    fake: bool = False
    """Compute nothing: shapes, hashes and errors only, at any size (see ``dataless.py``)."""
    thorough: bool = True
    """Record hashes of how tensors came about, and what graphs hold for backward."""
    updates: bool = False
    """Record what each step makes of the weights, and what they are in the end."""
    limits: Limits = Limits()
    schema: str = ""
    """What takes the place of data and devices that are missing, as JSON (see ``standins/schema.py``)."""
    within: Path | None = None
    """The folder that the run may read in the place of the script's project."""
    label: str = field(default="", compare=False)
    """What version this is, for who waits for it."""
    watched: tuple[Piece, ...] = field(default=(), compare=False)
    """Pieces of the text of which it is recorded whether they are executed (see ``coverage.py``); to watch
    more of them does not make it another run."""
    scout: Literal["", "pieces", "errors"] = ""
    """Only find out how many steps it takes to come to all that is watched, or to an error of autograd's."""

    def root(self) -> Path:
        """The folder of the project, which the run may read."""
        if self.within is not None:
            return self.within.absolute()
        path, entry = self.path.absolute(), self.command.entry
        roots = [project_root(one.absolute()) for one in (entry, path) if one is not None]
        return next((root for root in roots if path.is_relative_to(root)), project_root(path))

    def payload(self, folder: Path) -> dict[str, Any]:
        """The job as the probe reads it."""
        # A project may be reached by a link.
        path = Path(os.path.realpath(self.path.absolute().parent)) / self.path.name
        return {
            "path": str(path),
            "source": self.source,
            "root": os.path.realpath(self.root()),
            "folder": str(folder),
            "command": self.command.payload(path),
            "imports": starting.folders_in("PYTHONPATH", self.command.payload(path)["cwd"]),
            "seed": self.seed,
            "keep": self.keep,
            "blind": self.blind,
            "still": self.still,
            "dither": self.dither,
            "alone": self.alone,
            "moves": self.moves,
            "numbered": self.numbered,
            "numbers": self.numbers,
            "fake": self.fake,
            "thorough": self.thorough,
            "updates": self.updates,
            "limits": asdict(self.limits),
            "schema": self.schema,
            "watched": self.watched,
            "scout": self.scout,
            "corrections": self.corrections,
        }


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite to verify."""

    path: Path
    before: str
    after: str
    claim: Claim
    effect: Effect
    within: Path | None = None
    """The folder that its runs may read in the place of the script's project."""
    faults: tuple[Faults, Faults] | None = None
    """What is known to be wrong with the original, and with what becomes of it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run, in words."""

    version: str
    """``before``, ``after``, ``reference`` (the original with its graphs kept), ``reference, weights
    off``, ``after, updates off``, or one of the first three ``without data``."""
    seed: int
    summary: str
    optimizers: tuple[RecordedOptimizer, ...] = ()
    steps: tuple[RecordedStep, ...] = ()
    backwards: tuple[RecordedBackward, ...] = ()
    peak: int | None = None
    """The most bytes that the graph of any one backward call held; ``None`` where nothing is known."""
    error: str = ""
    """What autograd said, in its own words, if it raised one of its errors."""


@dataclass(frozen=True, slots=True)
class RecordedOptimizer:
    """An optimizer that a run constructed."""

    name: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    """Those of its parameters, as they were at its first step; none if it took none."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """What an optimizer consumed at one step."""

    optimizer: str
    gradients: str
    """A digest of all its gradients: equal ones mean gradients that are equal bit for bit."""
    random: Draws
    buffers: str
    """A digest of the buffers of all networks that are trained."""


@dataclass(frozen=True, slots=True)
class RecordedBackward:
    """What the graph of one backward call held."""

    loss: str | None
    """What is differentiated, where the source says it."""
    saved: int | None
    """Bytes saved for backward, beside parameters; ``None`` where nothing is known."""
    kept: bool
    """Whether the call was told to retain them."""
    seconds: float
    """How long it took, watched as it was: on the first seed operation by operation."""


def _run(version: str, seed: int, summary: str, recording: Recording) -> Run:
    optimizers = []
    for optimizer in recording.optimizers:
        first = next(iter(recording.steps_of(optimizer.index)), None)
        shapes = tuple(state.value.shape for state in first.parameters) if first else ()
        optimizers.append(RecordedOptimizer(optimizer.name, optimizer.kind, shapes))
    steps = []
    for step in recording.steps:
        gradients = _digest(state.gradient.digest if state.gradient else "none" for state in step.parameters)
        buffers = _digest(f"{name} {value.digest}" for name, value in step.buffers.items())
        name = recording.optimizers[step.optimizer].name
        steps.append(RecordedStep(name, gradients, step.random, buffers))
    backwards = tuple(
        RecordedBackward(call.place.receiver, call.saved, call.retain, round(call.seconds, 6))
        for call in recording.backwards
    )
    peak = max((call.saved for call in backwards if call.saved is not None), default=None)
    failure = recording.crash
    error = f"{failure.type}: {failure.message}" if failure is not None and failure.kind != "other" else ""
    return Run(version, seed, summary, tuple(optimizers), tuple(steps), backwards, peak, error)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.blake2b("".join(f"{line}\n" for line in lines).encode(), digest_size=16).hexdigest()


def memory(before: Run, after: Run) -> str | None:
    """What the graphs of two versions hold for backward, in words, where it differs.

    A loss is compared over as many of its backward calls as both versions make.
    """
    found = []
    for loss in dict.fromkeys(call.loss for call in before.backwards if call.loss is not None):
        pairs = [
            (one, other)
            for one, other in zip(*([c for c in run.backwards if c.loss == loss] for run in (before, after)))
            if one.saved is not None and other.saved is not None
        ]
        if not pairs:
            continue
        sizes = [max(call.saved or 0 for call in side) for side in zip(*pairs)]
        kept = [any(call.kept for call in side) for side in zip(*pairs)]
        held, now = map(binary_size, sizes)
        if kept[0] == kept[1] and held != now:
            found.append(f"the graph of {loss} held {held}, now {now}")
        elif kept[0] != kept[1]:
            words = ["kept" if one else "freed" for one in kept]
            found.append(f"the graph of {loss} held {held} and was {words[0]}, now {now}, {words[1]}")
    return "; ".join(found) or None


def binary_size(count: int) -> str:
    """A number of bytes for people: ``640 bytes``, ``1.5 KiB``."""
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


MADE_UP = "made-up"
"""What the stand-ins for data say of themselves (see ``standins/files.py``)."""


class Cost(NamedTuple):
    """What a program takes for its gradients, to compare ways of writing it."""

    saved: int | None
    """Bytes that graphs hold for backward, the most for each loss, added up."""
    seconds: float | None
    """For one backward call of each loss, the shortest of each, watched: good for comparison only."""

    def __str__(self) -> str:
        held = "" if self.saved is None else f"{binary_size(self.saved)} held for backward"
        took = "" if self.seconds is None else f"{self.seconds * 1000:.2f} ms of backward calls, watched"
        return ", ".join(filter(None, (held, took)))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What verification found. ``proved`` means that every check that could be made holds."""

    outcome: Outcome
    reason: str
    """One sentence: what refutes the rewrite, why it was not run, or what was compared."""
    checks: tuple[Check, ...] = ()
    runs: tuple[Run, ...] = ()
    python: str = ""
    """Version of the interpreter that ran the script."""
    interpreter: str = ""
    """Which interpreter that was and how it was chosen; its path only if it is one beside the code."""
    torch: str = ""
    seeds: tuple[int, ...] = ()
    seconds: float = 0.0
    """Wall clock of the call that verified it, which may have verified others too."""
    sandbox: str = "none: nothing was run"
    """The level of the sandbox that the runs were in (see :mod:`gradfix.verify.sandbox`)."""
    standins: tuple[str, ...] = ()
    """What was replaced in all runs alike, and by what."""
    effects: Surroundings | None = None
    """How random draws and buffers compare on the first seed; ``None`` if nothing was compared."""
    passed_over: tuple[str, ...] = ()
    """Interpreters that would have come first, each with the reason why it did not."""

    def to_json(self) -> dict[str, Any]:
        """The evidence as JSON data, in the order and under the names of the fields here.

        ``checks`` is a list of ``{"name", "verdict", "detail", "subject"}``, ``runs`` one of
        ``{"version", "seed", "summary", "optimizers", "steps"}``; ``seconds`` is rounded to tenths.
        No path of the machine is in it.
        """
        return {**asdict(self), "seconds": round(self.seconds, 1)}

    def lines(self) -> list[str]:
        """A compact rendering for a terminal."""
        first = self.seeds[0] if self.seeds else 0
        shown = [
            f"{run.version:<12}{run.summary}"
            for run in self.runs
            if run.seed == first and run.version in ("before", "after")
        ]
        shown += [f"{'replaced':<12}{one}" for one in self.standins]
        shown += [f"{'memory':<12}{one}" for one in (self.memory(),) if one is not None]
        shown += [f"{check.verdict:<12}{check.detail}" for check in self.checks]
        if self.runs:
            shown.append(f"{'interpreter':<12}{self.interpreter}")
            shown.append(f"{'sandbox':<12}{self.sandbox}")
        return [*shown, f"{self.outcome:<12}{self.reason}"]

    @property
    def made_up(self) -> bool:
        """Whether the script's data, or a part of it, was made up."""
        return any(MADE_UP in one for one in self.standins)

    def cost(self) -> Cost:
        """What the fixed program takes for its gradients, as its first run has shown it."""
        run = next((run for run in self.runs if run.version == "after"), None)
        saved: dict[str | None, int] = {}
        seconds: dict[str | None, float] = {}
        for call in run.backwards if run is not None else ():
            seconds[call.loss] = min(call.seconds, seconds.get(call.loss, math.inf))
            if call.saved is not None:
                saved[call.loss] = max(call.saved, saved.get(call.loss, 0))
        return Cost(sum(saved.values()) if saved else None, sum(seconds.values()) if seconds else None)

    def memory(self) -> str | None:
        """What the graphs of the two versions hold, in words, where it differs (see :func:`memory`)."""
        for suffix in ("", ", without data"):
            runs = {run.version: run for run in reversed(self.runs)}
            before, after = runs.get(f"before{suffix}"), runs.get(f"after{suffix}")
            if before is not None and after is not None:
                return memory(before, after)
        return None


# -- running ----------------------------------------------------------------------------------


def _environment(code: Collection[Path]) -> dict[str, str]:
    """The script's environment: nothing of the user's but what programs need to start, off the network."""
    return starting.environment(code) | {
        "CUDA_VISIBLE_DEVICES": "",
        "HIP_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "WANDB_MODE": "disabled",
        # A compiled step computes what the plain one does, after a minute of compiling.
        "TORCHDYNAMO_DISABLE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
        # macOS refuses some libraries after a fork otherwise.
        "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",
    }


class CannotRun(Exception):
    """The interpreter cannot run anything; the message says why."""


@functools.cache
def _sandbox(executable: str) -> sandbox.Level | str:
    # It is asked about the system, unconfined: nothing of a project or of a stranger is to be loaded there.
    stranger = made.environment_of(executable)
    variables = starting.environment([Path(os.curdir)])
    variables.pop("PYTHONPATH", None)
    try:
        with scratch.folder() as folder:
            level = sandbox.choose(sys.executable if stranger else executable, variables, str(folder))
    except sandbox.SandboxError as error:
        return str(error)
    return level._replace(readable=sandbox.environment_files(stranger.prefixes)) if stranger else level


ALLOW = "GRADFIX_ALLOW_UNSANDBOXED"


def choose_sandbox(executable: str, allow_unsandboxed: bool = False) -> sandbox.Level:
    """The sandbox for runs of an interpreter on this machine.

    The environment variable :data:`ALLOW` allows to run without one, as ``--allow-unsandboxed`` does.

    Raises:
        CannotRun: if there is none, and running without is not allowed.
    """
    found = _sandbox(executable)
    if not isinstance(found, str):
        return found
    if allow_unsandboxed or os.environ.get(ALLOW) == "1":
        return sandbox.UNSANDBOXED
    raise CannotRun(f"no sandbox here ({found}); --allow-unsandboxed runs it with resource limits only")


OUT_OF_TIME = "the time for this file is up: set `seconds` in tool.gradfix.verify to give it more"

PATIENT = 5.0
"""Seconds that a server has to end, once when it is told, and once more when its guard is."""

_Ended = tuple[str, tuple[Ending, str]]
"""The file of a job that is over, and how."""


class _Server:
    """A process that runs jobs, and the lines that it answers; they are read as if a job wrote them.

    Raises:
        CannotRun: if torch cannot be imported, or not in time.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path, deadline: float
    ) -> None:
        self.environment = environment
        with log.open("w", encoding="utf-8") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                encoding="utf-8",
                errors="replace",
                cwd=folder,
                env={**environment, **(cgroups.session() if command[0] == "systemd-run" else {})},
                start_new_session=True,
            )
        self._answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(self._process, self._answers), daemon=True).start()
        greeting = self.answer(deadline)
        if greeting is None or "fatal" in greeting:
            late = greeting is None and time.monotonic() >= deadline
            self.end()
            if late:
                raise CannotRun(OUT_OF_TIME)
            printed = hostile.read(log, 65536, tail=True).decode("utf-8", "replace").split("\n")
            last = next((line for line in reversed(printed) if line.strip()), "it said nothing")
            raise CannotRun(f"torch cannot be imported: {greeting['fatal'] if greeting else last}")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def run(self, names: Sequence[str], deadline: float) -> Iterator[_Ended]:
        """Run the jobs in these files, and say of each when it is over; one that is missing has no end."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write("".join(name + "\n" for name in names))
            self._process.stdin.flush()
        waiting = set(names)
        while waiting:
            answer = self.answer(deadline)
            if answer is None or answer.get("job") not in waiting:
                self.end()
                break
            waiting.remove(answer["job"])
            yield answer["job"], _ending(answer.get("code"), answer.get("signal"), answer.get("why"))

    def answer(self, deadline: float) -> dict[str, Any] | None:
        """The next answer, if there is one in time."""
        try:
            line = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            answer = json.loads(line) if line else None
        except (queue.Empty, ValueError, RecursionError):
            answer = None
        return answer if isinstance(answer, dict) else None

    def end(self) -> None:
        """End the server, which ends its runs when its input is closed, or else is ended by its guard."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        for end in (self._process.terminate, self._process.kill):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=PATIENT)
                return
            end()
        self._process.wait()


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
        level: sandbox.Level | None = None,
    ) -> None:
        self._executable = executable
        self._stranger = made.environment_of(executable)
        self.workers = workers or min(4, os.cpu_count() or 2)
        self.allow(total)
        self._results: dict[Job, Recording] = {}
        self._server: _Server | None = None
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

    def _run(self, prepared: Mapping[str, tuple[Job, Path]]) -> Iterator[_Ended]:
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
        environment = _environment(self._code)
        if self._server is not None and self._server.environment != environment:
            # Its modules may be those of a project that is looked at only now.
            self._server.end()
        if self._server is None or not self._server.running:
            command = [*self.level.scope, *self._serving(self.workers)]
            log = self._folder / "server.txt"
            self._server = _Server(command, self._folder, environment, log, self._deadline)
        yield from self._server.run(list(prepared), self._deadline)

    def _serving(self, workers: int) -> list[str]:
        """The command of a server, which is within the sandbox already where runs are started apart."""
        what = [str(PROBE), "--serve", str(workers), str(self._folder), ",".join(self.level.held)]
        if self._stranger is None or self.level.apart:
            return [self._executable, *what]
        return [sys.executable, "-I", "-S", *what, self._executable, *self._stranger.prefixes]

    def _apart(self, job: Job, folder: Path) -> list[_Ended]:
        """Run one job by a server of its own, which is within the sandbox itself."""
        files = sandbox.project_files(str(job.root()), str(job.path.absolute()))
        data = sandbox.data_folders([str(one) for one in job.command.readable])
        environment = _environment([job.root()])
        modules = environment.get("PYTHONPATH", "").split(os.pathsep)
        files = sandbox.Readable(
            [*files.whole, *data.whole, *filter(None, modules)], [*files.listed, *data.listed]
        )
        command = self.level.command(files, [str(folder)], job.limits.memory)
        command += self._serving(1)
        log = self._folder / f"server-{folder.name}.txt"
        server = _Server(command, folder, environment, log, self._deadline)
        try:
            return list(server.run([str(folder / "job.json")], self._deadline))
        finally:
            server.end()

    def _one_by_one(self, prepared: Mapping[str, tuple[Job, Path]]) -> Iterator[_Ended]:
        for name, (job, folder) in list(prepared.items()):
            command = [self._executable, str(PROBE), name]
            left = self._deadline - time.monotonic()
            if left <= 0:
                break
            seconds = json.loads((folder / "job.json").read_text(encoding="utf-8"))["limits"]["seconds"]
            with (folder / "stderr.txt").open("wb") as log:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=_environment([job.root()]),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                )
            try:
                # A minute more than the run may take: it imports torch first.
                code = process.wait(timeout=min(left, seconds + 60))
                yield name, _ending(code, 0, None)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                yield name, _ending(None, None, None)


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


TRIES = 24
"""How often a run is repeated with a larger schema."""
PATIENCE = 2
"""How often one is repeated whose time was over."""


class Completed(NamedTuple):
    """What came of looking for what a run lacks."""

    job: Job
    """The job, with the schema that got furthest."""
    stopped: str | None
    """What stopped the run with the largest schema, where that was no use."""


def completed(runner: Runner, job: Job) -> Completed:
    """``job``, or the same with the schema that gets furthest of those that its runs have asked for.

    A run that fails for want of something says what it lacked (see ``standins/__init__.py``). It is repeated
    with that until it lacks nothing, or nothing suggests what. Where what was made up has not led any
    further, nothing is made up: what stopped the run as it is says more.
    """
    furthest, reached, patience = job, (0, 0), PATIENCE
    left = job.limits.seconds
    stopped = None
    for _ in range(TRIES):
        (recording,) = runner.run([job])
        stopped = obstacle(recording)
        if (got := (len(recording.steps), len(recording.backwards))) > reached:
            furthest, reached = job, got
        left -= max(0.0, recording.seconds)
        late = recording.ending in ("seconds", "killed")
        patience -= late
        if not recording.schema or patience < 0 or (left < 0 and not late):
            break
        job = replace(job, schema=recording.schema)
    return Completed(furthest, stopped if furthest.schema != job.schema else None)


LONGEST = 1 << 16
"""Characters in an answer of a server."""


def _read(server: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
    assert server.stdout is not None
    while line := server.stdout.readline(LONGEST):
        answers.put(line)
    answers.put(None)


def _ending(code: object, ended_by: object, why: object) -> tuple[Ending, str]:
    """The ending of a run that wrote none itself."""
    if code is None:
        return "killed", str(why or "it did not return in time")
    if ended_by:
        return "died", f"it was ended by signal {ended_by}"
    return "died", f"it left with exit code {code}"


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


# -- verifying --------------------------------------------------------------------------------


def verify_rewrite(
    path: Path,
    before: str,
    after: str,
    claim: Claim,
    effect: Effect,
    *,
    python: str | Interpreter | None = None,
    command: Command = PLAIN,
    seeds: Sequence[int] = (0, 1, 2),
    limits: Limits = Limits(),
    allow_unsandboxed: bool = False,
    faults: tuple[Faults, Faults] | None = None,
) -> Evidence:
    """Run the script at ``path`` before and after a rewrite and check the fix's claim.

    Args:
        path: The script; its folder is on the import path, and it is never written.
        before: The original source.
        after: The rewritten source.
        claim: What must be found.
        effect: What the fix says it does to gradients.
        python: The interpreter to use (default: see :func:`choose_interpreter`).
        command: How the user runs it.
        seeds: Each version runs once for each.
        limits: What a run, and all of them together, may use.
        allow_unsandboxed: Run even where there is no sandbox.
        faults: What is known to be wrong with either version: where autograd stops one for anything else,
            nothing is proved.

    Returns:
        ``refuted`` if any check fails; ``not run`` if the original could not be run far enough,
        or nothing could be compared; ``proved`` otherwise.
    """
    rewrite = Rewrite(path, before, after, claim, effect, faults=faults)
    return verify_rewrites(
        [rewrite],
        python=python,
        command=command,
        seeds=seeds,
        limits=limits,
        allow_unsandboxed=allow_unsandboxed,
    )[0]


def verify_rewrites(
    rewrites: Sequence[Rewrite],
    *,
    python: str | Interpreter | None = None,
    command: Command = PLAIN,
    seeds: Sequence[int] = (0, 1, 2),
    limits: Limits = Limits(),
    allow_unsandboxed: bool = False,
) -> list[Evidence]:
    """:func:`verify_rewrite` for several rewrites with one import of torch (``limits.total`` is for all)."""
    interpreters = [choose_interpreter(rewrite.path, python) for rewrite in rewrites]
    trials = [_Trial(rewrite, command, tuple(seeds), limits) for rewrite in rewrites]
    found: dict[int, Evidence] = {
        number: Evidence("not run", reason)
        for number, reason in enumerate(interpreters)
        if isinstance(reason, str)
    }
    for interpreter in dict.fromkeys(i for i in interpreters if isinstance(i, Interpreter)):
        numbers = [number for number, one in enumerate(interpreters) if one == interpreter]
        chosen = [trials[number] for number in numbers]
        evidence = _verify(chosen, interpreter, limits.total, allow_unsandboxed)
        found.update(zip(numbers, evidence))
    return [found[number] for number in range(len(rewrites))]


def _verify(
    given: Sequence[_Trial], interpreter: Interpreter, total: float, allow_unsandboxed: bool
) -> list[Evidence]:
    """Verify each trial, with stand-ins for what its original lacks."""
    trials = list(given)
    started = time.monotonic()
    try:
        with runner_for(interpreter.executable, total, allow_unsandboxed) as runner:
            # The originals first: for one that cannot be run, nothing else needs to be.
            jobs = [trial.before(trial.seeds[0]) for trial in trials]
            if len(jobs) == 1 < runner.workers:
                # Most likely it can be run, and the other processors have nothing else to do.
                runner.run(trials[0].first_seed)
                trials[0].endless(runner)
            runner.run(jobs)
            trials = [trial.completed(runner) for trial in trials]
            trials = [trial.farther(runner) for trial in trials]
            # One seed of each: where hashes prove everything, it is enough.
            runnable = [trial for trial in trials if not trial.obstacle(runner)]
            runner.run(job for trial in runnable for job in trial.opening(runner))
            trials = [trial.settled(runner) for trial in trials]
            runnable = [trial for trial in trials if not trial.obstacle(runner)]
            rest = [job for trial in runnable for _, job in trial.versions(runner)]
            runner.run(sorted(rest, key=lambda job: (not job.fake, not job.keep)))
            found = [replace(trial.evidence(runner), sandbox=str(runner.level)) for trial in trials]
            texts = [(trial.rewrite.before, trial.rewrite.after) for trial in trials]
            # What a fix has made of a file is the original of the next one.
            runner.forget_all_but({text for pair in texts for text in pair})
    except CannotRun as error:
        found = [Evidence("not run", str(error)) for _ in trials]
    seconds = time.monotonic() - started
    chosen, passed_over = interpreter.chosen, interpreter.passed_over
    return [
        replace(evidence, interpreter=chosen, passed_over=passed_over, seconds=seconds) for evidence in found
    ]


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
                sandbox.die_with_parent()
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


@dataclass(frozen=True)
class _Trial:
    """The runs that one rewrite needs, and what they show."""

    rewrite: Rewrite
    command: Command
    seeds: tuple[int, ...]
    limits: Limits
    schema: str = ""
    """What takes the place of what the original lacks."""
    stopped: str | None = None
    """What stopped the original with stand-ins, where they were no use."""
    hashed: bool = False
    """Whether hashes prove everything, so that no numbers are asked for."""
    outgrown: bool = False
    """Whether the original raises in time, and what comes after that takes too much in earnest."""

    def before(self, seed: int, **how: bool) -> Job:
        label = "with its graphs kept" if how.get("keep") else "before the fix"
        return self.job(self.rewrite.before, seed, label=label, watched=self.gone, **how)

    def after(self, seed: int, **how: bool) -> Job:
        return self.job(self.rewrite.after, seed, label="after the fix", watched=self.watched, **how)

    @functools.cached_property
    def watched(self) -> tuple[Piece, ...]:
        """What the rewrite has changed, and what depends on it: the fixed program has to come to it."""
        return affected(self.rewrite.after, changed(self.rewrite.before, self.rewrite.after))

    @functools.cached_property
    def gone(self) -> tuple[Piece, ...]:
        """What the original has in the place of that, to which it has to come if nothing stops it."""
        return changed(self.rewrite.after, self.rewrite.before)

    def farther(self, runner: Runner) -> _Trial:
        """The same with as many steps as it takes to come to what the rewrite is about, where it does."""
        seed = self.seeds[0]
        (original,) = runner.run([self.before(seed)])
        ahead: list[Job] = []
        if self.rewrite.claim.raises is not None and short(original):
            ahead.append(replace(self.before(seed), scout="errors"))
        jobs = [self.after(seed), self.reference(seed) if self.needs_reference else self.before(seed)]
        for job, run in zip(jobs, runner.run(jobs)):
            if short(run) and claims.wanting(run):
                ahead.append(replace(job, scout="pieces"))
        return replace(self, limits=farther(self.limits, runner, ahead))

    def job(self, source: str, seed: int, **how: Any) -> Job:
        """A run of one of the texts."""
        # How tensors come about is the same for every seed, and on the others their bytes are compared.
        how.setdefault("thorough", seed == self.seeds[0])
        how.setdefault("updates", how["thorough"])
        return Job(
            self.rewrite.path,
            source,
            self.command,
            seed,
            limits=self.limits,
            within=self.rewrite.within,
            schema=self.schema,
            **how,
        )

    def completed(self, runner: Runner) -> _Trial:
        """The same with the schema that its original needs, and the fixed program where it gets further."""
        job, stopped = completed(runner, self.before(self.seeds[0]))
        found = replace(self, schema=job.schema, stopped=stopped)
        (original,) = runner.run([found.before(self.seeds[0])])
        if original.crash is None:
            return found
        return replace(found, schema=completed(runner, found.after(self.seeds[0])).job.schema)

    def reference(self, seed: int, **how: bool) -> Job:
        return self.before(seed, keep=True, **how)

    def endless(self, runner: Runner) -> None:
        """Where the original with its graphs kept got nowhere in time, it is not run again without that."""
        if self.needs_reference:
            seed = self.seeds[0]
            (kept,) = runner.run([self.reference(seed)])
            if kept.ending in ("seconds", "killed") and not (kept.backwards or kept.steps):
                runner.know(self.before(seed), kept)

    def too_large(self, runner: Runner) -> bool:
        """Whether the versions cannot be run in earnest within the limits."""
        if self.outgrown:
            return True
        (recording,) = runner.run([self.before(self.seeds[0])])
        return overwhelmed(recording)

    def still(self, original: Recording) -> tuple[Job, ...]:
        """The two versions with their weights held still, given how the original runs in earnest.

        Autograd refuses some programs whatever is kept: these are run without gradients, and show the values
        of their losses alone.
        """
        seed = self.seeds[0]
        stopped = original.crash is not None or original.uncaught is not None
        how = {"blind": True} if stopped and not self.needs_reference else {"keep": True}
        # What these give is compared by values only.
        both = self.before(seed, still=True, **how), self.after(seed, still=True)
        return tuple(replace(job, thorough=False, updates=False) for job in both)

    def paired(self, runner: Runner, original: Recording) -> Still | None:
        """The same, in which the fixed program gets the random numbers of the original, if it draws
        others."""
        one, other = (replace(job, numbered=True) for job in self.still(original))
        model, run = runner.run([one, other])
        numbers = paired(model, run)
        if not numbers or claims.surroundings(model, run).random_from is None:
            return None
        return Still(model, *runner.run([replace(other, numbers=numbers)]))

    @property
    def needs_reference(self) -> bool:
        """A graph that was freed or whose tensors moved can be kept; one that never was cannot."""
        return self.rewrite.claim.raises in ("E1", "E2")

    @property
    def first_seed(self) -> list[Job]:
        """The runs on the first seed, but for the original.

        The long ones first, so that no worker is left with one at the end while the others have nothing; what
        raises ends early.
        """
        seed = self.seeds[0]
        reference = [self.reference(seed)] if self.needs_reference else []
        return [*reference, self.after(seed)]

    def opening(self, runner: Runner) -> list[Job]:
        """The runs by which :meth:`settled` decides, or all if there is nothing to decide."""
        return [job for _, job in self.versions(runner)] if self.too_large(runner) else self.first_seed

    def settled(self, runner: Runner) -> _Trial:
        """The same without data, or without the other seeds, where the runs on the first one say so.

        An original that raises in its first pass may be done in time where nothing that gets further is.

        How a gradient is computed does not depend on the seed. Where hashes prove all of them equal, other
        seeds and weights that are held still would only show it again.
        """
        if self.obstacle(runner) or self.too_large(runner):
            return self
        if overwhelmed(runner.run([self.after(self.seeds[0])])[0], SLOW):
            large = replace(self, outgrown=True)
            (fixed,) = runner.run([large.after(self.seeds[0], fake=True)])
            return self if large.obstacle(runner) or len(fixed.steps) < 2 else large
        alone = replace(self, seeds=self.seeds[:1], hashed=True)
        original = self.reference if self.needs_reference else self.before
        original_run, fixed_run = runner.run([original(self.seeds[0]), self.after(self.seeds[0])])
        return alone if claims.settled(alone.checks(runner), original_run, fixed_run) else self

    def versions(self, runner: Runner) -> list[tuple[str, Job]]:
        """Everything that is run, and what each run is called."""
        if self.too_large(runner):
            seed = self.seeds[0]
            versions = [("before", self.before(seed))]
            versions += [("before, without data", self.before(seed, fake=True))]
            versions += [("after, without data", self.after(seed, fake=True))]
            if self.needs_reference:
                versions += [("reference, without data", self.reference(seed, fake=True))]
            return versions
        versions = [("before", self.before(seed)) for seed in self.seeds]
        versions += [("after", self.after(seed)) for seed in self.seeds]
        if self.needs_reference:
            versions += [("reference", self.reference(seed)) for seed in self.seeds]
        if not self.hashed:
            (original,) = runner.run([self.before(self.seeds[0])])
            names = ("reference, updates off", "after, updates off")
            versions += zip(names, self.still(original))
        return versions

    def obstacle(self, runner: Runner) -> str | None:
        """Why the original could not be run far enough, if so."""
        seed, large = self.seeds[0], self.too_large(runner)
        (recording,) = runner.run([self.before(seed, fake=large)])
        root = self.before(seed).root()
        found = why_not(recording, self.rewrite.claim, root)
        if found is not None and large:
            (earnest,) = runner.run([self.before(seed)])
            if found != OUT_OF_TIME:
                found = f"{TOO_LARGE}: {found}"
            found = why_not(earnest, self.rewrite.claim, root) or found
        return None if found is None else self.relative(found)

    def relative(self, text: str) -> str:
        """``text`` with paths relative to the project's root, and without variables that were passed on."""
        for secret in self.command.variables().values():
            text = text.replace(secret, "***") if len(secret) >= SHORTEST else text
        return text.replace(f"{project_root(self.rewrite.path)}{os.sep}", "")

    def evidence(self, runner: Runner) -> Evidence:
        blocked = self.obstacle(runner)
        versions = self.versions(runner)[:1] if blocked else self.versions(runner)
        recordings = runner.run(job for _, job in versions)
        runs = tuple(
            _run(name, job.seed, self.relative(claims.summary(recording)), recording)
            for (name, job), recording in zip(versions, recordings)
        )
        python, torch = recordings[0].python, recordings[0].torch
        if blocked:
            if self.stopped is not None and self.relative(self.stopped) != blocked:
                blocked = f"{blocked}; with stand-ins: {self.relative(self.stopped)}"
            return Evidence("not run", blocked, (), runs, python, "", torch, self.seeds)
        standins = tuple(dict.fromkeys(one for recording in recordings for one in recording.standins))
        checks = tuple(replace(one, detail=self.relative(one.detail)) for one in self.checks(runner))
        outcome, reason = self.judge(runner, checks)
        if outcome == "proved" and standins:
            reason += f" (with stand-ins for {', '.join(one.partition(': ')[0] for one in standins)})"
        return Evidence(
            outcome,
            reason,
            checks,
            runs,
            python,
            "",
            torch,
            self.seeds,
            standins=standins,
            effects=self.effects(runner),
        )

    def effects(self, runner: Runner) -> Surroundings | None:
        """How random draws and buffers compare on the first seed."""
        seed, fake = self.seeds[0], self.too_large(runner)
        before, after = runner.run([self.before(seed, fake=fake), self.after(seed, fake=fake)])
        reference = runner.run([self.reference(seed, fake=fake)])[0] if self.needs_reference else None
        found = claims.surroundings(claims.longest(before, reference), after)
        return found if found.compared else None

    def checks(self, runner: Runner) -> list[Check]:
        """The checks of all seeds, merged."""
        claim, effect = self.rewrite.claim, self.rewrite.effect
        by_seed = []
        fake = self.too_large(runner)
        # Without numbers one seed is as good as many.
        seeds = self.seeds[:1] if fake else self.seeds
        for seed in seeds:
            before, after = runner.run([self.before(seed, fake=fake), self.after(seed, fake=fake)])
            reference = runner.run([self.reference(seed, fake=fake)])[0] if self.needs_reference else None
            still: Still | None = None
            if not fake and not self.hashed:
                # What a loss gives is the same on every seed, if it is on one.
                (first,) = runner.run([self.before(self.seeds[0])])
                still = Still(*runner.run(self.still(first)))
            found = claims.check(claim, effect, before, after, reference, still, self.rewrite.faults)
            if still is not None and any(one.name == "entries" and one.verdict != "holds" for one in found):
                still = self.paired(runner, first) or still
                found = claims.check(claim, effect, before, after, reference, still, self.rewrite.faults)
            apart = any(one.verdict == "fails" and one.name in claims.COMPARISONS for one in found)
            entries = any(one.verdict != "holds" and one.name == "entries" for one in found)
            # What two equal runs do not agree about is no rounding.
            if not fake and (apart or entries) and self.repeatable(runner):
                if apart:
                    before = noisy(before, *dithered(runner, self.before(seed)))
                if apart and reference is not None:
                    reference = noisy(reference, *dithered(runner, self.reference(seed)))
                if still is not None:
                    job = self.still(first)[0]
                    still = Still(noisy(still.reference, *dithered(runner, job)), still.after)
                found = claims.check(claim, effect, before, after, reference, still, self.rewrite.faults)
            by_seed.append(found)
        return self.steady(runner, claims.merge(seeds, by_seed), fake)

    def steady(self, runner: Runner, checks: list[Check], fake: bool) -> list[Check]:
        """``checks``, of which those say nothing that two runs of the original would fail too.

        A script that seeds a generator by the clock draws other numbers each time; its gradients may not
        depend on them.
        """
        failing = {one.name for one in checks if one.verdict == "fails"} & claims.EFFECTS
        if not failing:
            return checks
        found = claims.surroundings(*self.twice(runner, fake))
        unsteady = {"random": found.random_from, "buffers": found.buffers_from}
        why = "they differ between two runs of the original with the same seed, too"
        return [
            replace(one, verdict="not checked", detail=f"{one.name}: {why}")
            if one.verdict == "fails" and unsteady.get(one.name) is not None
            else one
            for one in checks
        ]

    def judge(self, runner: Runner, checks: Sequence[Check]) -> tuple[Outcome, str]:
        large = self.too_large(runner)
        failed = [check for check in checks if check.verdict == "fails"]
        if failed:
            compared = any(check.name in claims.COMPARISONS for check in failed)
            if compared and not large and not self.repeatable(runner):
                return (
                    "not run",
                    "two runs of the original with the same seed differ, so nothing can be compared",
                )
            return "refuted", failed[0].detail
        if (missing := claims.missing(checks)) is not None:
            return "not run", missing
        if not self.watched:
            return "not run", "the rewrite changes no statement"
        held = [check for check in checks if check.verdict == "holds"]
        if large:
            for one in checks:
                if one.name in claims.COMPARISONS and one.detail.endswith(claims.NO_NUMBERS):
                    # Numbers could refute it.
                    return "not run", f"{one.detail} ({TOO_LARGE})"
            return "proved", f"{len(held)} checks hold by hashes, {TOO_LARGE}"
        if self.hashed:
            return "proved", f"{len(held)} checks hold, and hashes prove that all gradients are equal"
        return "proved", f"{len(held)} checks hold on {len(self.seeds)} seeds"

    def repeatable(self, runner: Runner) -> bool:
        """Whether the original does the same twice."""
        return claims.same_course(*self.twice(runner))

    def twice(self, runner: Runner, fake: bool = False) -> tuple[Recording, Recording]:
        """Two runs of the original."""
        job = self.before(self.seeds[0], fake=fake)
        # Another limit makes it another job, so that it does run again.
        again = replace(job, limits=replace(job.limits, file=job.limits.file + 1))
        first, second = runner.run([job, again])
        return first, second


DITHERED = 3
"""Runs that round otherwise: in one alone, a small gradient may come out alike by chance."""


def dithered(runner: Runner, job: Job) -> list[Recording]:
    """Runs of the same program that round otherwise."""
    return runner.run(
        [replace(job, dither=seed + 1, thorough=False, updates=False) for seed in range(DITHERED)]
    )


SHORTEST = 4
"""Letters of a variable's value that is told from other text."""
TOO_LARGE = "run without data, as a full run takes too much time or memory"


SLOW = 4
"""Steps that the repaired script takes in the time of a run, at least, or it is run without data."""


FAR, FARTHEST = 20_000, 600
"""Steps of a run that only scouts, and those after which a run may come to what a rewrite is about."""


def short(recording: Recording) -> bool:
    """Whether a run was ended because it had taken as many steps, or made as many calls, as it may."""
    return recording.ending in ("steps", "backwards")


def farther(limits: Limits, runner: Runner, jobs: Sequence[Job]) -> Limits:
    """``limits`` with as many steps and backward calls as it takes to come to what these jobs scout for."""
    if not jobs:
        return limits
    wide = replace(limits, steps=FAR, backwards=FAR)
    found = runner.run(replace(job, limits=wide, thorough=False, updates=False, fake=False) for job in jobs)
    far = [run.scouted for run in found if run.scouted[0] <= FARTHEST]
    steps, backwards = (max((one[at] for one in far), default=0) for at in (0, 1))
    return replace(limits, steps=limits.steps + steps, backwards=limits.backwards + backwards)


def overwhelmed(recording: Recording, least: int = 2) -> bool:
    """Whether a run has hit its limits of time or memory before it had taken ``least`` steps."""
    if len(recording.steps) >= least or recording.crash is not None:
        return False
    error = recording.uncaught
    if error is not None:
        return error.type == "MemoryError" or "can't allocate memory" in error.message
    # The system ends with signal 9 whatever takes too much memory.
    ended = recording.ending == "died" and "signal 9" in recording.detail
    return ended or recording.ending in ("seconds", "killed")


def why_not(before: Recording, claim: Claim, root: Path | None = None) -> str | None:
    """One sentence on why the original did not run far enough to compare anything, if so.

    ``root`` is the folder of its project.
    """
    stopped = obstacle(before, root)
    if stopped is not None or before.crash is not None:
        return stopped
    if before.uncaught is not None and claim.raises is not None:
        return _obstacle(before.uncaught, before, root)
    if claim.raises is not None and before.ending != "finished":
        line = claim.raises_line
        if line is not None and not any(one.place.covers(line) for one in before.backwards):
            where = f"line {line}, which should raise {quoted(claim.raises)}"
            return f"the run did not reach {where} (the original {before.ran()})"
        return f"{quoted(claim.raises)} was not raised in time (the original {before.ran()})"
    return None


def obstacle(before: Recording, root: Path | None = None) -> str | None:
    """One sentence on why a run did not get to a gradient, if so; ``root`` is the folder of its project."""
    if before.ending == "trouble":
        if before.detail.startswith(("the sandbox ", "the record ", "torch cannot be imported")):
            return before.detail
        return f"gradfix's recorder failed: {before.detail.strip().splitlines()[-1]}"
    # Gradients that come of `torch.autograd.grad`, and are assigned, need no backward call.
    if before.crash is not None or before.backwards or any(step.consumes for step in before.steps):
        return None
    if before.uncaught is not None:
        return _obstacle(before.uncaught, before, root)
    if before.detail == OUT_OF_TIME:
        return OUT_OF_TIME
    if before.ending == "finished":
        return "backward() was never called"
    if before.ending == "seconds":
        return "the time was up before the first backward call"
    return f"it stopped before the first backward call: {before.detail or before.ending}"


def _obstacle(error: Failure, before: Recording, root: Path | None) -> str:
    """What a script needed and did not have, with what would supply it."""
    where = str(error.place)
    message = error.message.splitlines()[0] if error.message else ""
    if os.strerror(errno.ENOSPC) in message and error.type == "OSError":
        return f"{where} wrote more than a run may: see the limits in docs/sandbox.md"
    if error.type == "NeedsValues":
        return f"{message} at {where}"
    if error.type == "ModuleNotFoundError":
        return _module_missing(error.missing or message, where, root)
    if "attempted relative import with no known parent" in message:
        return f"{where} imports from the package around it: run it as a module, with -m"
    if error.type == "FileNotFoundError":
        parts = os.path.normpath(error.missing).split(os.sep) if error.missing else []
        if any(sandbox.SECRET.match(part) for part in parts if part not in (os.curdir, os.pardir)):
            return f"{where} needs {error.missing}, which the sandbox withholds: hidden files and secrets"
        needed = f"the file {error.missing}, which is not there" if error.missing else f"a file: {message}"
        return f"{where} needs {needed}: put it there, or name its folder in tool.gradfix.verify.readable"
    if error.type == "SystemExit":
        return _left(where, message, before)
    if error.type == "KeyError" and VARIABLE.fullmatch(message) and "environ" in before.source:
        return f"{where} needs the variable {message} of the environment: name it in tool.gradfix.verify.env"
    if "network is off" in message:
        return f"{where} tried to reach the network, which is off in the sandbox"
    if error.type == "PermissionError" and error.missing:
        return (
            f"{where} tried to use {error.missing}, which the sandbox refuses: a run reads only the "
            "interpreter, the project (no hidden files) and the folders in tool.gradfix.verify.readable"
        )
    if "CUDA" in message or "NVIDIA" in message:
        # What torch says depends on how it was built, and on who has asked before.
        return f"{where} needs an accelerator, which verification does not use"
    if error.type == "IndexError" and "sys.argv" in _line(error, before):
        return f"{where} reads its arguments: add them after --"
    return f"{where} raised {error.type}: {message}"


def _module_missing(name: str, where: str, root: Path | None) -> str:
    """That a module cannot be imported: one of the project's own, or one that is not installed."""
    folder = folder_of(name, root) if root is not None else None
    if folder is not None:
        return (
            f"{name} is the project's own and lies in {folder}, where {where} does not look for it: run the "
            "script from there as a module, with -m, or put that folder on PYTHONPATH"
        )
    return (
        f"{name} is not installed ({where} imports it): install it where the script runs, "
        "or give --python or --env auto"
    )


def _line(error: Failure, before: Recording) -> str:
    """The line of the script at which an error came out of it."""
    lines = before.source.splitlines()
    return lines[error.place.line - 1] if error.place.line and error.place.line <= len(lines) else ""


VARIABLE = re.compile(r"'[A-Z][A-Z0-9_]*'")
REQUIRED = re.compile(
    r"error: the following arguments are required: (.+)|Missing (?:option|argument) '?([^'.]+)"
)
"""What argparse and click say where the command line lacks something."""


def _left(where: str, code: str, before: Recording) -> str:
    """Why a script has left by itself."""
    for line in before.output.splitlines():
        if (found := REQUIRED.search(line)) is not None:
            wanted = found[1] or found[2]
            return (
                f"the script requires {wanted.strip()}: add {'it' if ',' not in wanted else 'them'} after --"
            )
    printed = [line for line in before.output.splitlines() if line.strip()]
    said = f": {printed[-1].strip()}" if printed else ""
    return f"the script left at {where} with exit code {code}{said}"
