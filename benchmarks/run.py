"""Compares the speed and the memory of `gradfix check` with those of other tools on the same files.

    python benchmarks/run.py [--scripts DIR] [--packages DIR...] [--runs N] [--without-torchfix]

``--scripts`` is a folder of training scripts (default: the fixtures and the examples), ``--packages``
are installed packages, such as torch's folder in site-packages. The tools:

* ``gradfix check --no-cache`` and ``ruff check --no-cache`` of the environment that runs this;
* ``gradfix check`` once more, with what the unmeasured run has left in a cache (a temporary one);
* ``torchfix --select ALL``, of ``benchmarks/.venv``, made from ``benchmarks/requirements.txt`` if it is
  not there; on scripts only, unless ``--torchfix-on-packages`` is given (it takes many minutes);
* ``ast.parse`` of each file in one Python process: what any tool that needs trees has to spend.

Each tool runs once unmeasured, so that caches of the disk and of bytecode are warm, and then N times;
the table gives medians. CPU time adds up all processes of a tool, and the memory is the resident peak of its
largest process, both as ``wait4`` tells them. Ratios are those of one run on one machine; the times
themselves mean little elsewhere.
"""

from __future__ import annotations

import argparse
import atexit
import os
import platform
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

PARSE = "import ast, sys\nfor path in sys.stdin.read().split('\\0'):\n    ast.parse(open(path, 'rb').read())"


@dataclass(frozen=True)
class Tool:
    """A command line; the folders to look at follow it, or the files come on standard input."""

    name: str
    command: tuple[str, ...]
    reads_files: bool = False
    good: tuple[int, ...] = (0, 1)
    """Its exit codes when it has done its work."""


@dataclass(frozen=True)
class Cost:
    """What one run, or the median run, of a tool took."""

    wall: float
    cpu: float
    memory: float
    """MB (millions of bytes)."""


def main() -> None:
    """Measure and print one table for the scripts and one for each package."""
    parser = argparse.ArgumentParser(description="Compares gradfix check with other tools.")
    parser.add_argument("--scripts", metavar="DIR", action="append", type=Path)
    parser.add_argument("--packages", metavar="DIR", nargs="+", type=Path, default=[])
    parser.add_argument("--runs", metavar="N", type=int, default=5)
    parser.add_argument("--without-torchfix", action="store_true")
    parser.add_argument("--torchfix-on-packages", action="store_true")
    options = parser.parse_args()
    scripts = options.scripts or [ROOT / "tests" / "fixtures", ROOT / "examples"]

    plain = [
        Tool("gradfix check", (sys.executable, "-m", "gradfix", "check", "--quiet", "--no-cache")),
        Tool("the second time", (sys.executable, "-m", "gradfix", "check", "--quiet")),
        Tool("ruff check", (_program("ruff"), "check", "--no-cache", "--isolated", "--quiet")),
        Tool("ast.parse", (sys.executable, "-c", PARSE), reads_files=True),
    ]
    torchfix = [] if options.without_torchfix else [_torchfix()]
    os.environ["GRADFIX_CACHE_DIR"] = tempfile.mkdtemp(prefix="gradfix-cache-")
    atexit.register(shutil.rmtree, os.environ["GRADFIX_CACHE_DIR"], ignore_errors=True)
    print(f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, ", end="")
    print(f"median of {options.runs} runs")
    _compare("scripts", scripts, plain + torchfix, options.runs)
    for package in options.packages:
        tools = plain + (torchfix if options.torchfix_on_packages else [])
        _compare(package.resolve().name, [package], tools, options.runs)


def _program(name: str) -> str:
    """A program of this environment, or of the PATH."""
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    return found or sys.exit(f"error: {name} is not installed")


def _torchfix() -> Tool:
    environment = HERE / ".venv"
    program = environment / "bin" / "torchfix"
    if not program.exists():
        print("Setting up benchmarks/.venv with TorchFix", file=sys.stderr)
        venv.create(environment, clear=True, with_pip=True)
        pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--requirement", str(HERE / "requirements.txt")], check=True)
    return Tool("torchfix", (str(program), "--select", "ALL"))


def _compare(title: str, folders: Sequence[Path], tools: Sequence[Tool], runs: int) -> None:
    files = sorted({path for folder in folders for path in _python_files(folder)})
    size = sum(path.stat().st_size for path in files)
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    print(f"\n{title}: {len(files)} files, {lines:,} lines, {size / 1e6:.1f} MB")
    for tool in tools:
        _run(tool, folders, files)
    # The tools take turns: whatever else the machine does meets all of them.
    costs: dict[str, list[Cost]] = {tool.name: [] for tool in tools}
    for _ in range(runs):
        for tool in tools:
            costs[tool.name].append(_run(tool, folders, files))
    medians = {name: _median(measured) for name, measured in costs.items()}
    ours = medians[tools[0].name]
    print(f"{'':16}{'wall':>9}{'CPU':>9}{'memory':>9}   wall and CPU, in those of gradfix")
    for name, cost in medians.items():
        print(f"{name:16}{cost.wall:7.2f} s{cost.cpu:7.2f} s{cost.memory:6.0f} MB", end="")
        print(f"{_ratio(cost.wall, ours.wall):>9}{_ratio(cost.cpu, ours.cpu):>9}", flush=True)


def _python_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.py"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _run(tool: Tool, folders: Sequence[Path], files: Sequence[Path]) -> Cost:
    arguments = [] if tool.reads_files else [str(folder.resolve()) for folder in folders]
    paths = "\0".join(map(str, files)).encode() if tool.reads_files else b""
    environment = dict(os.environ)
    # Installed tools have their bytecode; a checkout gets its in the unmeasured run.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("GRADFIX_NO_CACHE", None)
    if tool.command[0] == sys.executable:
        environment["PYTHONPATH"] = str(ROOT)
    started = time.perf_counter()
    process = subprocess.Popen(
        [*tool.command, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=HERE,
    )
    assert process.stdin is not None
    process.stdin.write(paths)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in tool.good:
        sys.exit(f"error: {tool.name} ended with {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6)


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        statistics.median(cost.memory for cost in costs),
    )


def _ratio(theirs: float, ours: float) -> str:
    ratio = theirs / ours
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}" if ratio >= 0.995 else f"{ratio:.2f}"


if __name__ == "__main__":
    main()
