"""Environments that were made for scripts, and what is said of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradfix.cli.output import tell
from gradfix.environment import build
from gradfix.environment.build import Built
from gradfix.system.progress import Display


def executable_for(paths: Sequence[Path], *, quiet: bool = False) -> str:
    """The interpreter of an environment that is made for scripts, or was before; what it lacks is told on
    standard error.

    Raises:
        EnvironmentFailure: if none can be made.
    """
    began = time.monotonic()
    with Display(sys.stderr, quiet=quiet) as display:
        built = build.ensure(paths, progress=display)
    for line in outcome_of(built, time.monotonic() - began, quiet=quiet):
        if not line.startswith("use it with"):
            tell(line if line.startswith("note: ") else f"note: {line}")
    return built.executable


def outcome_of(built: Built, seconds: float, *, quiet: bool) -> Iterator[str]:
    """What came of it."""
    if not quiet:
        for one in built.relaxed:
            yield f"relaxed: {one.stated} -> {one.installed}: {one.why}"
        for note in built.notes:
            yield f"note: {note}"
    for left in built.missing:
        yield f"missing: {left.text} ({left.origin}): {left.why}"
    if not quiet:
        what = f"{len(built.installed)} distributions, {size_of(built.size)}, Python {built.python}"
        yield f"environment: {what}, {'used again' if built.reused else f'made in {seconds:.0f} s'}"
        yield f"use it with: --env auto, or --python {built.executable}"


def size_of(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
