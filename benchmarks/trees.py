"""What the analysis of whole repositories costs, file by file, beside parsing them.

    python benchmarks/trees.py TREE... [--slowest N] [--without-ruff]

Each ``TREE`` is the root of a repository. Every file that ``gradfix check`` would look at there is parsed
with ``ast.parse``, then every file is analysed, all in one process; then ``ruff check --no-cache`` goes
over the same trees. All times are CPU seconds. Told are the sums and their ratios, the files that took
longest, what was cut off by a budget, and the resident peak of the memory. The start of Python and of
gradfix is no part of it: see ``run.py`` for that.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import platform
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from gradfix.cli.commands import collect_rarely
from gradfix.pipeline import driver
from gradfix.project import configuration, source


@dataclass(frozen=True)
class Cost:
    """What one file took, in CPU seconds."""

    path: str
    analysis: float
    findings: int
    messages: tuple[str, ...]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measures the analysis of whole repositories.")
    parser.add_argument("trees", metavar="TREE", nargs="+", type=Path)
    parser.add_argument("--slowest", metavar="N", type=int, default=10)
    parser.add_argument("--without-ruff", action="store_true")
    options = parser.parse_args()
    trees = [tree.resolve() for tree in options.trees]
    warnings.simplefilter("ignore")
    collect_rarely()
    parsing = sum(map(_parsing, trees))
    costs = [cost for tree in trees for cost in _measured(tree)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    analysis = sum(cost.analysis for cost in costs)
    lines = sum(Path(cost.path).read_bytes().count(b"\n") for cost in costs)
    print(f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}")
    print(
        f"{len(trees)} trees, {len(costs)} files, {lines:,} lines, {sum(c.findings for c in costs)} findings"
    )
    print(
        f"ast.parse {parsing:8.2f} s\nanalysis  {analysis:8.2f} s, {analysis / parsing:.1f} times ast.parse"
    )
    if not options.without_ruff:
        ruff = _ruff(trees)
        print(f"ruff      {ruff:8.2f} s, {ruff / parsing:.1f} times ast.parse")
    print(f"memory    {memory / 1024:8.0f} MiB at most")
    print(f"over a second: {sum(cost.analysis > 1 for cost in costs)} files; the slowest:")
    for cost in sorted(costs, key=lambda cost: -cost.analysis)[: options.slowest]:
        print(f"  {cost.analysis:6.2f} s  {cost.path}")
    for cost in costs:
        for message in cost.messages:
            print(f"cut off: {cost.path}: {message}")


def _listed(tree: Path) -> tuple[driver.Options, list[str]]:
    """How a repository is configured, and its files."""
    os.chdir(tree)  # Its configuration is that of whoever works there.
    options = driver.prepare(["."], driver.RequestedOptions())
    if isinstance(options, driver.Refusal):
        sys.exit(f"error: {options.message}")
    return options, [listed.path for listed in configuration.find_files(["."], options.settings).files]


def _parsing(tree: Path) -> float:
    """What it takes to parse the files of a repository."""
    _, paths = _listed(tree)
    begun = time.process_time()
    for path in paths:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            ast.parse(Path(path).read_bytes())
    return time.process_time() - begun


def _measured(tree: Path) -> list[Cost]:
    """The files of one repository, each analysed."""
    options, paths = _listed(tree)
    return [_cost(tree, path, options) for path in paths]


def _cost(tree: Path, path: str, options: driver.Options) -> Cost:
    begun = time.process_time()
    data = source.load(path)
    findings = 0
    messages: tuple[str, ...] = ()
    if isinstance(data, bytes) and source.can_matter(data):
        report = driver.check([path], options)
        findings = sum(len(file.findings) for file in report.files)
        messages = tuple(message for file in report.files for message in file.messages)
    return Cost(str(tree / path), time.process_time() - begun, findings, messages)


def _ruff(trees: list[Path]) -> float:
    program = shutil.which("ruff", path=sysconfig.get_path("scripts")) or shutil.which("ruff")
    if program is None:
        sys.exit("error: ruff is not installed")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    for tree in trees:
        command = [program, "check", "--no-cache", "--isolated", "--quiet", str(tree)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


if __name__ == "__main__":
    main()
