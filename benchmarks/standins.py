"""How many training scripts get to their optimizer steps without their data, and how fast.

    python benchmarks/standins.py FOLDER_OR_LIST... [--python EXE] [--seconds N] [--steps N] [--json FILE]

Each argument is a folder, of which the training scripts are taken, or a text file with a path on
each line. A training script is a Python file that parses, imports torch, calls ``.backward(`` and
``.step(`` in its own text, and has ``if __name__``, or a backward call or a call of a function of
its own outside any function.

Each script is run as verification runs it (``gradfix.verify.runner``): as it stands, then with stand-
ins, with the first manner of running that gets to a gradient; where that takes too much time or memory,
without data. A script counts as reached when two optimizer steps consumed gradients. One that autograd
stops before, by an error of the script's own (E1 to E5), does not, but its run shows what a user would
see: the totals tell how many these are. The seconds are those of all its runs, one after the other:
without the import of torch, which the runs share, and, where the system tells it, without waiting for a
processor that has other work. This repository holds none of the scripts that were measured.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gradfix.verify.recording import Recording
from gradfix.verify.runner import (
    MANNERS,
    CannotRun,
    Interpreter,
    Job,
    Limits,
    Manner,
    Runner,
    broken_off,
    choose_interpreter,
    hopeless,
    obstacle,
    overwhelmed,
    search,
)
from gradfix.verify.watch import KINDS


@dataclass(frozen=True)
class Measured:
    """What became of one script."""

    path: str
    steps: int
    """Optimizer steps that consumed a gradient."""
    backwards: int
    manner: str
    seconds: float
    refused: str
    """The kind of autograd's error that ended it, if one did."""
    why: str
    standins: list[str]


def main() -> None:
    """Measure and print one line a script, then the totals."""
    parser = argparse.ArgumentParser(description="Runs training scripts with stand-ins.")
    parser.add_argument("scripts", metavar="FOLDER_OR_LIST", nargs="+", type=Path)
    parser.add_argument("--python", metavar="EXE", default=sys.executable)
    parser.add_argument("--seconds", metavar="N", type=float, default=20.0, help="for one run")
    parser.add_argument("--steps", metavar="N", type=int, default=2, help="after which a run ends")
    parser.add_argument("--json", metavar="FILE", type=Path)
    options = parser.parse_args()
    interpreter = choose_interpreter(Path.cwd() / "script.py", options.python)
    if not isinstance(interpreter, Interpreter):
        sys.exit(interpreter)
    limits = Limits(steps=options.steps, seconds=options.seconds)
    found = []
    with Timed(interpreter.executable, total=1e9) as runner:
        for path in dict.fromkeys(script for given in options.scripts for script in scripts(given)):
            measured = measure(runner, path, limits)
            found.append(measured)
            print(
                f"{'ok  ' if measured.steps >= 2 else 'FAIL'} {measured.seconds:5.1f} s "
                f"{measured.steps} steps, {measured.backwards} backwards, {measured.manner:<9} {path}"
                + (f"\n     {measured.why}" if measured.why else ""),
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    reached = [one for one in found if one.steps >= 2]
    share = len(reached) / max(1, len(found))
    print(f"{len(reached)} of {len(found)} reached two optimizer steps ({share:.0%})")
    print(f"{sum(one.backwards > 0 for one in found)} reached a backward call")
    if kinds := sorted(one.refused for one in found if one.refused):
        print(f"{len(kinds)} of the others were stopped by autograd ({', '.join(kinds)})")
    if found:
        print(f"median of all {statistics.median(one.seconds for one in found):.1f} s")
    if reached:
        print(f"median of those that reached {statistics.median(one.seconds for one in reached):.1f} s")


class Timed(Runner):
    """A runner that adds up what its runs took."""

    def __init__(self, executable: str, total: float) -> None:
        super().__init__(executable, workers=1, total=total)
        self.seconds: dict[Job, float] = {}

    def run(self, jobs: Iterable[Job]) -> list[Recording]:
        """See :meth:`Runner.run`."""
        wanted = list(jobs)
        found = super().run(wanted)
        for job, recording in zip(wanted, found):
            # One that was killed had all of its time, and could not say so.
            self.seconds[job] = recording.seconds or job.limits.seconds
        return found


def measure(runner: Timed, path: Path, limits: Limits) -> Measured:
    """Run one script in the manners that verification tries."""
    runner.seconds = {}
    started = time.process_time()
    source = path.read_text(encoding="utf-8-sig", errors="replace")
    furthest: tuple[Recording, Manner, Job, Job] | None = None
    manner: Manner = "as it is"
    why: str | None = ""
    without = ""
    reasons = []
    for manner in MANNERS:
        try:
            job, last = search(runner, Job(path, source, limits=limits, manner=manner))
            (recording,) = runner.run([job])
        except CannotRun as error:
            return Measured(str(path), 0, 0, manner, sum(runner.seconds.values()), "", str(error), [])
        why = obstacle(recording)
        if why is None and not broken_off(recording):
            break
        if why is None and manner != "as it is" and furthest is None:
            furthest = recording, manner, job, last
        reasons.append(why or "")
        ends = {one.ending for one in runner.run([job, last])}
        if manner != "as it is" and ends & {"seconds", "killed"}:
            break
        if manner == "small" and hopeless(runner, last):
            break
    if furthest is not None and (why or broken_off(recording)):
        # It came to a gradient in no manner without breaking off: the first that came to one is taken.
        (recording, manner, job, last), why = furthest, None
    enough = why is None and sum(step.consumes for step in recording.steps) >= 2
    if not enough and manner != "as it is" and any(map(overwhelmed, runner.run([job, last]))):
        # So does verification, which then compares shapes and hashes.
        (dataless,) = runner.run([replace(job, fake=True)])
        if obstacle(dataless) is None and not broken_off(dataless):
            recording, why, without = dataless, None, ", without data"
    # What trained without the script says nothing of it.
    steps = 0 if why else sum(step.consumes for step in recording.steps)
    if why:
        # Those that follow only differ in sizes; what stopped the run with small ones says more.
        why = reasons[1]
    elif steps < 2:
        why = f"it ended: {recording.ending} {recording.uncaught or ''}"
    return Measured(
        path=str(path),
        steps=steps,
        backwards=len(recording.backwards),
        manner=manner + without,
        seconds=sum(runner.seconds.values()) + time.process_time() - started,
        refused=refused(recording) if steps < 2 else "",
        why=why or "",
        standins=list(recording.standins),
    )


def refused(recording: Recording) -> str:
    """The kind of autograd's error that ended a run, or nothing."""
    error = recording.crash or recording.uncaught
    return next((kind for kind, text in KINDS if error is not None and text in error.message), "")


def scripts(given: Path) -> Iterator[Path]:
    """The training scripts that an argument names."""
    if given.is_file() and given.suffix == ".txt":
        for line in given.read_text().splitlines():
            if line.strip():
                yield Path(line.strip())
    elif given.is_file():
        yield given
    else:
        yield from (path for path in sorted(given.rglob("*.py")) if path.is_file() and trains(path))


def trains(path: Path) -> bool:
    """Whether a file is an entry point that trains: see the module's docstring."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return False
    nodes = list(ast.walk(tree))
    imports = any(
        (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "torch" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch")
        for node in nodes
    )
    if not (imports and _calls(tree, "backward") and _calls(tree, "step")):
        return False
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    own = {node.name for node in tree.body if isinstance(node, functions[:2])}
    return any(
        (isinstance(node, ast.If) and "__name__" in ast.dump(node.test))
        or (not isinstance(node, functions) and (_calls(node, "backward") or _calls_one_of(node, own)))
        for node in tree.body
    )


def _calls_one_of(tree: ast.AST, names: set[str]) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
        for node in ast.walk(tree)
    )


def _calls(tree: ast.AST, method: str) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
        for node in ast.walk(tree)
    )


if __name__ == "__main__":
    main()
