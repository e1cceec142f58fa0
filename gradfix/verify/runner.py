"""Verification by execution: run the script before and after a rewrite, compare what it did.

A process in the user's interpreter imports torch once and forks for every run (where the system
cannot fork, one process serves each run). The script's text is given to it, so nothing is
written to the project; the working directory is an empty temporary folder. A script that reads
data by a path relative to the working directory is therefore reported as not run, with the file
that it needs; paths built from ``__file__`` work.
"""

from __future__ import annotations

import functools
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from gradfix import claims
from gradfix.claims import Check, Still
from gradfix.codemod import Claim, Effect
from gradfix.verify.recording import Ending, Failure, Recording, load

PROBE = Path(__file__).with_name("probe.py")
SANDBOX = (
    "none (subprocess with resource limits; Python code in it cannot write outside "
    "its temporary folder or reach the network)"
)

Outcome = Literal["proved", "refuted", "not run"]

Manner = Literal["as it is", "small", "full"]
"""How a script is run: with nothing but what it has; with stand-ins for what is missing and with small
batches; with stand-ins and batches as the script has them."""
MANNERS: tuple[Manner, ...] = ("as it is", "small", "full")
"""In the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use."""

    steps: int = 12
    """Optimizer steps of all optimizers together."""
    backwards: int = 40
    """Backward calls."""
    seconds: float = 30.0
    """Wall clock of one run, without the import of torch."""
    memory: int = 4 << 30
    """Bytes of memory beyond what the imported torch has."""
    file: int = 1 << 30
    """Bytes of one file."""
    total: float = 300.0
    """Seconds for everything that one call verifies."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of one script."""

    path: Path
    """The script's own path; it need not exist, and what it holds is not read."""
    source: str
    """The text that runs in its place."""
    args: tuple[str, ...] = ()
    seed: int = 0
    keep: bool = False
    """Keep every graph usable, with saved tensors as they were when they were saved."""
    still: bool = False
    """Put the weights back after every step."""
    limits: Limits = Limits()
    manner: Manner = "as it is"

    def payload(self, folder: Path) -> dict[str, Any]:
        """The job as the probe reads it."""
        path = self.path.absolute()
        return {
            "path": str(path),
            "source": self.source,
            "root": str(project_root(path)),
            "folder": str(folder),
            "args": list(self.args),
            "seed": self.seed,
            "keep": self.keep,
            "still": self.still,
            "limits": asdict(self.limits),
            "manner": self.manner,
        }


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite to verify."""

    path: Path
    before: str
    after: str
    claim: Claim
    effect: Effect


@dataclass(frozen=True, slots=True)
class Run:
    """One run, in words."""

    version: str
    """``before``, ``after``, ``reference`` (the original with its graphs kept), ``reference, weights
    held still`` or ``after, weights held still``."""
    seed: int
    summary: str


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
    """How that interpreter was chosen (never its path)."""
    torch: str = ""
    seeds: tuple[int, ...] = ()
    seconds: float = 0.0
    """Wall clock of the call that verified it, which may have verified others too."""
    sandbox: str = SANDBOX
    standins: tuple[str, ...] = ()
    """What was replaced in all runs alike, and by what."""

    def to_json(self) -> dict[str, Any]:
        """The evidence as JSON data, in the order and under the names of the fields here.

        ``checks`` is a list of ``{"name", "verdict", "detail", "subject"}``, ``runs`` one of
        ``{"version", "seed", "summary"}``; ``seconds`` is rounded to tenths. No path of the
        machine is in it.
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
        shown += [f"{check.verdict:<12}{check.detail}" for check in self.checks]
        return [*shown, f"{self.outcome:<12}{self.reason}"]


# -- which interpreter ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that can run the script."""

    executable: str
    chosen: str
    """How it was chosen, for people."""


def choose_interpreter(path: Path, explicit: str | None = None) -> Interpreter | str:
    """The interpreter for the script at ``path``, or the reason why there is none.

    ``explicit`` wins; otherwise the first of these that has torch: a virtual environment named
    ``.venv``, ``venv`` or ``env`` beside the script or above it, the active one, gradfix's own.
    """
    if explicit is not None:
        found = shutil.which(explicit)
        if found is None:
            return f"{explicit} is not an interpreter that can be run"
        return Interpreter(found, "--python") if _has_torch(found) else f"{explicit} has no torch"
    candidates = [
        Interpreter(executable, name)
        for folder in path.absolute().parents
        for name in (".venv", "venv", "env")
        for executable in [_executable(folder / name)]
        if executable
    ]
    active = os.environ.get("VIRTUAL_ENV")
    if active and (executable := _executable(Path(active))):
        candidates.append(Interpreter(executable, "VIRTUAL_ENV"))
    candidates.append(Interpreter(sys.executable, "gradfix's own"))
    for candidate in candidates:
        if _has_torch(candidate.executable):
            return candidate
    tried = ", ".join(dict.fromkeys(candidate.chosen for candidate in candidates))
    return f"no interpreter has torch (tried {tried}); name one with --python"


def _executable(environment: Path) -> str | None:
    for name in ("bin/python", "Scripts/python.exe"):
        if (environment / name).is_file() and (environment / "pyvenv.cfg").is_file():
            return str(environment / name)
    return None


@functools.cache
def _has_torch(executable: str) -> bool:
    ask = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    try:
        return (
            subprocess.run(
                [executable, "-c", ask],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=tempfile.gettempdir(),
                timeout=60,
                check=False,
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def project_root(path: Path) -> Path:
    """The project that a script belongs to: the nearest folder above it that says so, else its own."""
    markers = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
    for folder in path.absolute().parents:
        if any((folder / marker).exists() for marker in markers):
            return folder
    return path.absolute().parent


# -- running ----------------------------------------------------------------------------------

SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE", re.IGNORECASE)


def _environment() -> dict[str, str]:
    """The script's environment: the user's, without what looks like a secret, off the network."""
    kept = {name: value for name, value in os.environ.items() if not SECRET.search(name)}
    return kept | {
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


class Runner:
    """Runs jobs in one interpreter; used as a context manager.

    Identical jobs run once: results are kept until the runner closes.
    """

    def __init__(self, executable: str, *, workers: int | None = None, total: float = 300.0) -> None:
        self._executable = executable
        self._workers = workers or min(4, os.cpu_count() or 2)
        self._deadline = time.monotonic() + total
        self._results: dict[Job, Recording] = {}
        self._server: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str | None] = queue.Queue()

    def __enter__(self) -> Runner:
        self._temporary = tempfile.TemporaryDirectory(prefix="gradfix-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name).resolve()
        self._count = 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            _end(self._server)
        self._temporary.cleanup()

    def run(self, jobs: Iterable[Job]) -> list[Recording]:
        """Run jobs side by side; the answer is in their order.

        Raises:
            CannotRun: if torch cannot be imported.
        """
        wanted = list(jobs)
        fresh = [job for job in dict.fromkeys(wanted) if job not in self._results]
        prepared = [self._prepare(job) for job in fresh]
        run = self._forked if hasattr(os, "fork") else self._one_by_one
        endings = run(prepared) if fresh else {}
        for job, folder in zip(fresh, prepared):
            ending = endings.get(str(folder / "job.json"), ("killed", "the total time was spent"))
            self._results[job] = load(folder, job.source, job.seed, ending)
            shutil.rmtree(folder, ignore_errors=True)
        return [self._results[job] for job in wanted]

    def _prepare(self, job: Job) -> Path:
        folder = self._folder / str(self._count)
        self._count += 1
        folder.mkdir()
        (folder / "job.json").write_text(json.dumps(job.payload(folder)), encoding="utf-8")
        return folder

    def _forked(self, folders: list[Path]) -> dict[str, tuple[Ending, str]]:
        server = self._started()
        assert server.stdin is not None
        names = [str(folder / "job.json") for folder in folders]
        server.stdin.write("".join(name + "\n" for name in names))
        server.stdin.flush()
        endings: dict[str, tuple[Ending, str]] = {}
        while len(endings) < len(names):
            answer = self._answer()
            if answer is None:
                break
            endings[answer["job"]] = _ending(answer["code"], answer["signal"])
        return endings

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None or self._server.poll() is not None:
            with (self._folder / "server.txt").open("w", encoding="utf-8") as log:
                self._server = subprocess.Popen(
                    [self._executable, str(PROBE), "--serve", str(self._workers)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    encoding="utf-8",
                    cwd=self._folder,
                    env=_environment(),
                    start_new_session=True,
                )
            self._answers = queue.Queue()
            threading.Thread(target=_read, args=(self._server, self._answers), daemon=True).start()
            greeting = self._answer()
            if greeting is None or "fatal" in greeting:
                printed = (self._folder / "server.txt").read_text(encoding="utf-8").split("\n")
                last = next((line for line in reversed(printed) if line.strip()), "no answer in time")
                raise CannotRun(f"torch cannot be imported: {greeting['fatal'] if greeting else last}")
        return self._server

    def _answer(self) -> dict[str, Any] | None:
        try:
            line = self._answers.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except queue.Empty:
            line = None
        if line is None and self._server is not None:
            _end(self._server)
        answer: dict[str, Any] | None = json.loads(line) if line else None
        return answer

    def _one_by_one(self, folders: list[Path]) -> dict[str, tuple[Ending, str]]:
        endings: dict[str, tuple[Ending, str]] = {}
        for folder in folders:
            name = str(folder / "job.json")
            command = [self._executable, str(PROBE), name]
            left = self._deadline - time.monotonic()
            if left <= 0:
                break
            seconds = json.loads((folder / "job.json").read_text(encoding="utf-8"))["limits"]["seconds"]
            with (folder / "stderr.txt").open("wb") as log:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                )
            try:
                # A minute more than the run may take: it imports torch first.
                code = process.wait(timeout=min(left, seconds + 60))
                endings[name] = _ending(code, 0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                endings[name] = _ending(None, None)
        return endings


def _read(server: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
    assert server.stdout is not None
    for line in server.stdout:
        answers.put(line)
    answers.put(None)


def _end(server: subprocess.Popen[str]) -> None:
    """End the server, which ends its runs when its input is closed, or else all of its group."""
    with suppress(OSError):
        assert server.stdin is not None
        server.stdin.close()
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _ending(code: int | None, ended_by: int | None) -> tuple[Ending, str]:
    """The ending of a run that wrote none itself."""
    if code is None:
        return "killed", "it did not return in time"
    if ended_by:
        return "died", f"it was ended by signal {ended_by}"
    return "died", f"it left with exit code {code}"


def run_many(
    jobs: Sequence[Job], *, python: str | None = None, workers: int | None = None, total: float = 300.0
) -> list[Recording]:
    """Run several scripts with one import of torch; the answer is in the jobs' order.

    Args:
        jobs: What to run; they may be different scripts.
        python: The interpreter, else :func:`choose_interpreter` of the first job's path.
        workers: How many runs at a time.
        total: Seconds for everything.

    Raises:
        CannotRun: if there is no interpreter with torch.
    """
    if not jobs:
        return []
    interpreter = choose_interpreter(jobs[0].path, python)
    if isinstance(interpreter, str):
        raise CannotRun(interpreter)
    with Runner(interpreter.executable, workers=workers, total=total) as runner:
        return runner.run(jobs)


def run_once(path: Path, source: str, *, python: str | None = None, **options: Any) -> Recording:
    """Run one script; ``options`` are the other fields of :class:`Job`. See :func:`run_many`."""
    return run_many([Job(path, source, **options)], python=python)[0]


# -- verifying --------------------------------------------------------------------------------


def verify_rewrite(
    path: Path,
    before: str,
    after: str,
    claim: Claim,
    effect: Effect,
    *,
    python: str | None = None,
    args: Sequence[str] = (),
    seeds: Sequence[int] = (0, 1, 2),
    limits: Limits = Limits(),
) -> Evidence:
    """Run the script at ``path`` before and after a rewrite and check the fix's claim.

    Args:
        path: The script; its folder is on the import path, and it is never written.
        before: The original source.
        after: The rewritten source.
        claim: What must be found.
        effect: What the fix says it does to gradients.
        python: The interpreter to use (default: see :func:`choose_interpreter`).
        args: The script's arguments.
        seeds: Each version runs once for each.
        limits: What a run, and all of them together, may use.

    Returns:
        ``refuted`` if any check fails; ``not run`` if the original could not be run far enough,
        or nothing could be compared; ``proved`` otherwise.
    """
    rewrite = Rewrite(path, before, after, claim, effect)
    return verify_rewrites([rewrite], python=python, args=args, seeds=seeds, limits=limits)[0]


def verify_rewrites(
    rewrites: Sequence[Rewrite],
    *,
    python: str | None = None,
    args: Sequence[str] = (),
    seeds: Sequence[int] = (0, 1, 2),
    limits: Limits = Limits(),
) -> list[Evidence]:
    """:func:`verify_rewrite` for several rewrites with one import of torch (``limits.total`` is for all)."""
    interpreters = [choose_interpreter(rewrite.path, python) for rewrite in rewrites]
    trials = [_Trial(rewrite, tuple(args), tuple(seeds), limits) for rewrite in rewrites]
    found: dict[int, Evidence] = {
        number: Evidence("not run", reason)
        for number, reason in enumerate(interpreters)
        if isinstance(reason, str)
    }
    for interpreter in dict.fromkeys(i for i in interpreters if isinstance(i, Interpreter)):
        numbers = [number for number, chosen in enumerate(interpreters) if chosen == interpreter]
        evidence = _verify([trials[number] for number in numbers], interpreter, limits.total)
        found.update(zip(numbers, evidence))
    return [found[number] for number in range(len(rewrites))]


def _verify(given: Sequence[_Trial], interpreter: Interpreter, total: float) -> list[Evidence]:
    """Verify each trial in the first manner in which its original runs, else as it is."""
    trials = list(given)
    started = time.monotonic()
    try:
        with Runner(interpreter.executable, total=total) as runner:
            # The originals first: for one that cannot be run, nothing else needs to be.
            for manner in MANNERS:
                waiting = [
                    number
                    for number, trial in enumerate(trials)
                    if manner == "as it is" or trial.obstacle(runner, exact=False)
                ]
                attempts = {number: replace(trials[number], manner=manner) for number in waiting}
                runner.run(attempt.before(attempt.seeds[0]) for attempt in attempts.values())
                for number, attempt in attempts.items():
                    if manner == "as it is" or not attempt.obstacle(runner, exact=False):
                        trials[number] = attempt
            runnable = [trial for trial in trials if not trial.obstacle(runner)]
            runner.run(job for trial in runnable for _, job in trial.versions())
            found = [trial.evidence(runner) for trial in trials]
    except CannotRun as error:
        found = [Evidence("not run", str(error)) for _ in trials]
    seconds = time.monotonic() - started
    return [replace(evidence, interpreter=interpreter.chosen, seconds=seconds) for evidence in found]


@dataclass(frozen=True)
class _Trial:
    """The runs that one rewrite needs, and what they show."""

    rewrite: Rewrite
    args: tuple[str, ...]
    seeds: tuple[int, ...]
    limits: Limits
    manner: Manner = "as it is"

    def before(self, seed: int, **how: bool) -> Job:
        return self.job(self.rewrite.before, seed, **how)

    def after(self, seed: int, **how: bool) -> Job:
        return self.job(self.rewrite.after, seed, **how)

    def job(self, source: str, seed: int, keep: bool = False, still: bool = False) -> Job:
        """A run of one of the texts, in the manner of this trial."""
        return Job(self.rewrite.path, source, self.args, seed, keep, still, self.limits, self.manner)

    def reference(self, seed: int) -> Job:
        return self.before(seed, keep=True)

    def still(self) -> tuple[Job, Job]:
        seed = self.seeds[0]
        return self.before(seed, keep=True, still=True), self.after(seed, still=True)

    @property
    def needs_reference(self) -> bool:
        """A graph that was freed or whose tensors moved can be kept; one that never was cannot."""
        return self.rewrite.claim.raises in ("E1", "E2")

    def versions(self) -> list[tuple[str, Job]]:
        """Everything that is run, and what each run is called."""
        versions = [("before", self.before(seed)) for seed in self.seeds]
        versions += [("after", self.after(seed)) for seed in self.seeds]
        if self.needs_reference:
            versions += [("reference", self.reference(seed)) for seed in self.seeds]
        if self.rewrite.claim.feeds:
            versions += zip(("reference, weights held still", "after, weights held still"), self.still())
        return versions

    def obstacle(self, runner: Runner, exact: bool = True) -> str | None:
        """Why the original could not be run far enough, if so.

        Without ``exact`` it is enough that it gets to a gradient and to no error but autograd's: a
        claim that it then does not bear out is no reason to try it in another manner.
        """
        (recording,) = runner.run([self.before(self.seeds[0])])
        found = why_not(recording, self.rewrite.claim)
        if not exact and found is not None and obstacle(recording) is None and recording.uncaught is None:
            return None
        return None if found is None else self.relative(found)

    def relative(self, text: str) -> str:
        """``text`` with paths of the project relative to its root."""
        return text.replace(f"{project_root(self.rewrite.path)}{os.sep}", "")

    def evidence(self, runner: Runner) -> Evidence:
        blocked = self.obstacle(runner)
        versions = self.versions()[:1] if blocked else self.versions()
        recordings = runner.run(job for _, job in versions)
        runs = tuple(
            Run(name, job.seed, self.relative(claims.summary(recording)))
            for (name, job), recording in zip(versions, recordings)
        )
        python, torch = recordings[0].python, recordings[0].torch
        if blocked:
            return Evidence("not run", blocked, (), runs, python, "", torch, self.seeds)
        standins = tuple(dict.fromkeys(one for recording in recordings for one in recording.standins))
        checks = tuple(replace(one, detail=self.relative(one.detail)) for one in self.checks(runner))
        outcome, reason = self.judge(runner, checks)
        return Evidence(outcome, reason, checks, runs, python, "", torch, self.seeds, standins=standins)

    def checks(self, runner: Runner) -> list[Check]:
        """The checks of all seeds, merged."""
        claim, effect = self.rewrite.claim, self.rewrite.effect
        by_seed = []
        for seed in self.seeds:
            before, after = runner.run([self.before(seed), self.after(seed)])
            reference = runner.run([self.reference(seed)])[0] if self.needs_reference else None
            still: Still | None = None
            if claim.feeds and seed == self.seeds[0]:
                still = Still(*runner.run(self.still()))
            by_seed.append(claims.check(claim, effect, before, after, reference, still))
        return claims.merge(self.seeds, by_seed)

    def judge(self, runner: Runner, checks: Sequence[Check]) -> tuple[Outcome, str]:
        failed = [check for check in checks if check.verdict == "fails"]
        if failed:
            if any(check.name in claims.COMPARISONS for check in failed) and not self.repeatable(runner):
                return (
                    "not run",
                    "two runs of the original with the same seed differ, so nothing can be compared",
                )
            return "refuted", failed[0].detail
        for one in checks:
            if one.name == "fixed-runs" and one.verdict == "not checked":
                return "not run", one.detail
        held = [check for check in checks if check.verdict == "holds"]
        settled = {check.subject for check in held if check.name in ("unchanged", "reference")}
        for one in checks:
            if one.name == "unchanged" and one.verdict == "not checked" and one.subject not in settled:
                return "not run", f"nothing could be compared: {one.detail}"
        if not any(check.name in claims.SUBSTANCE for check in held):
            missing = next((c.detail for c in checks if c.verdict == "not checked"), "no step happened")
            return "not run", f"nothing could be compared: {missing}"
        return "proved", f"{len(held)} checks hold on {len(self.seeds)} seeds"

    def repeatable(self, runner: Runner) -> bool:
        """Whether the original does the same twice."""
        job = self.before(self.seeds[0])
        # Another limit makes it another job, so that it does run again.
        again = replace(job, limits=replace(job.limits, file=job.limits.file + 1))
        first, second = runner.run([job, again])
        return claims.same_course(first, second)


def why_not(before: Recording, claim: Claim) -> str | None:
    """One sentence on why the original did not run far enough to compare anything, if so."""
    if before.ending == "trouble":
        return f"gradfix's recorder failed: {before.detail.strip().splitlines()[-1]}"
    if before.crash is not None:
        return None
    error = before.uncaught
    if error is not None and (claim.raises is not None or not before.backwards):
        return _obstacle(error, before)
    stopped = obstacle(before)
    if stopped is not None:
        return stopped
    if claim.raises is not None and before.ending != "finished":
        return f"{claim.raises} was not raised within the budget (the original {before.ran()})"
    return None


def obstacle(before: Recording) -> str | None:
    """One sentence on why a run did not get to a gradient, if so."""
    if before.ending == "trouble":
        return f"gradfix's recorder failed: {before.detail.strip().splitlines()[-1]}"
    if before.crash is not None:
        return None
    if not before.backwards and before.uncaught is not None:
        return _obstacle(before.uncaught, before)
    if not before.backwards:
        if before.ending == "finished":
            return "no backward call happened"
        if before.ending in ("seconds", "killed"):
            return "the time was spent before the first backward call"
        return f"it stopped before the first backward call: {before.detail or before.ending}"
    return None


def _obstacle(error: Failure, before: Recording) -> str:
    """What a script needed and did not have."""
    where = str(error.place)
    message = error.message.splitlines()[0] if error.message else ""
    if error.type == "NeedsValues":
        return f"{message} at {where}"
    if error.type == "ModuleNotFoundError":
        return f"{where} imports {error.missing or message}, which the interpreter does not have"
    if error.type == "FileNotFoundError":
        return f"{where} needs the file {error.missing or message}"
    if error.type == "SystemExit":
        printed = [line for line in before.output.splitlines() if line.strip()]
        said = f": {printed[-1]}" if printed else ""
        return f"the script left at {where} with exit code {message}{said}"
    if "CUDA" in message or "NVIDIA" in message:
        return f"{where} needs an accelerator: {message}"
    return f"{where} raised {error.type}: {message}"
