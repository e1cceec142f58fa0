"""``gradfix env``: says what scripts need and what the chosen interpreter lacks, and makes an environment.

Exit codes: 0, all is there; 1, something could not be installed; 2, no environment could be made (no uv, a
path that is not there).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TextIO

import typer

from gradfix.cli.arguments import start
from gradfix.environment import build, cache, interpreters
from gradfix.environment.build import Built, Plan
from gradfix.environment.errors import EnvironmentFailure
from gradfix.system.printable import printable
from gradfix.system.progress import Display

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

MOST_FILES = 5
"""That are named as where something is stated."""


def run(arguments: Sequence[str]) -> None:
    """Run ``gradfix env`` with these arguments; raises ``SystemExit`` with the exit code."""
    start(app, "gradfix env", arguments)


@app.command()
def env(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Scripts and folders; the current folder if none."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is needed and what is lacking, and make nothing.")
    ] = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Make the environment anew, with what the index has now.")
    ] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Remove all environments that were made.")] = False,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="EXE", help="The interpreter to make it with (gradfix's own)."),
    ] = None,
    extra: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME", help="Install this too: NAME or NAME==VERSION (repeatable)."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only what is missing, and errors.")] = False,
) -> None:
    """Make an environment for scripts: from what their project states, else from their imports.

    Wheels alone are installed, by uv, and nothing of the project is run. Environments are kept by what they
    are made of, and used again.
    """
    try:
        if clean:
            _clean(paths, dry_run=dry_run, quiet=quiet)
            code = 0
        else:
            code = _env([Path(path) for path in paths or ["."]], extra or [], python, dry_run, refresh, quiet)
    except EnvironmentFailure as failure:
        _say(f"error: {failure}", sys.stderr)
        code = 2
    raise typer.Exit(code)


def _env(
    paths: Sequence[Path], extra: Sequence[str], python: str | None, dry_run: bool, refresh: bool, quiet: bool
) -> int:
    needs = build.plan(paths, extra)
    if not quiet:
        for line in _described(needs, python):
            _say(line)
    if dry_run:
        return 0
    if not needs.requirements and not needs.imports:
        _say("nothing beyond the standard library is needed")
        return 0
    began = time.monotonic()
    with Display(sys.stderr, quiet=quiet) as display:
        built = build.ensure(needs, python=python, refresh=refresh, progress=display)
    for line in _told(built, time.monotonic() - began, quiet=quiet):
        _say(line)
    return 1 if built.missing else 0


def executable_for(paths: Sequence[Path], *, quiet: bool = False) -> str:
    """The interpreter of an environment that is made for scripts, or was before; what it lacks is told on
    standard error.

    Raises:
        EnvironmentFailure: if none can be made.
    """
    began = time.monotonic()
    with Display(sys.stderr, quiet=quiet) as display:
        built = build.ensure(paths, progress=display)
    for line in _told(built, time.monotonic() - began, quiet=quiet):
        if not line.startswith("use it with"):
            _say(line if line.startswith("note: ") else f"note: {line}", sys.stderr)
    return built.executable


def _clean(paths: Sequence[str] | None, *, dry_run: bool, quiet: bool) -> None:
    if paths or dry_run:
        raise EnvironmentFailure("--clean removes all environments, and takes neither a PATH nor --dry-run")
    removed = cache.clean()
    if not quiet:
        count = "1 environment" if removed.environments == 1 else f"{removed.environments} environments"
        _say(f"removed {count} ({_size(removed.size)})")
    if removed.in_use:
        _say(f"note: {removed.in_use} in the making, and left alone", sys.stderr)


# ---------------------------------------------------------------------------- what is said


def _described(needs: Plan, python: str | None) -> Iterator[str]:
    """What is needed and from where it is known; what the interpreter that would be used lacks of it."""
    files = ", ".join(os.path.relpath(path) for path in needs.files[:MOST_FILES])
    if len(needs.files) > MOST_FILES:
        files += f", and {len(needs.files) - MOST_FILES} more"
    yield f"stated in: {files}" if files else "stated: nothing; the imports say what is needed"
    if needs.python_requires:
        yield f"Python: the project asks for {needs.python_requires}"
    yield from _lacked(needs, python)
    for left in needs.left_out:
        if not left.matters:
            what = left.text if left.text == left.origin else f"{left.text} ({left.origin})"
            yield f"left out: {what}: {left.why}"


def _lacked(needs: Plan, python: str | None) -> Iterator[str]:
    from gradfix.verify.interpreter import choose_interpreter

    chosen = choose_interpreter(needs.scripts[0], python)
    if isinstance(chosen, str):
        yield f"interpreter without this environment: none: {chosen}"
        lacking = {one.module.top for one in needs.imports}
    else:
        yield f"interpreter without this environment: {chosen.executable} ({chosen.chosen})"
        yield from (f"note: {line}" for line in chosen.passed_over)
        lacking = set(interpreters.lacking(chosen.executable, [one.module.top for one in needs.imports]))
    lacked = [one for one in needs.imports if one.module.top in lacking]
    yield f"it lacks {len(lacked)} of {len(needs.imports)} imports{':' if lacked else ''}"
    width = max((len(one.module.module) for one in lacked), default=0)
    for one in lacked:
        supplied = f"{one.distribution} ({one.origin})" if one.distribution else f"- {one.origin}"
        yield f"  {one.module.module:{width}}  {supplied}"


def _told(built: Built, seconds: float, *, quiet: bool) -> Iterator[str]:
    """What came of it."""
    if not quiet:
        for one in built.relaxed:
            yield f"relaxed: {one.stated} -> {one.installed}: {one.why}"
        for note in built.notes:
            yield f"note: {note}"
    for left in built.missing:
        yield f"missing: {left.text} ({left.origin}): {left.why}"
    if not quiet:
        what = f"{len(built.installed)} distributions, {_size(built.size)}, Python {built.python}"
        yield f"environment: {what}, {'used again' if built.reused else f'made in {seconds:.0f} s'}"
        yield f"use it with: --env auto, or --python {built.executable}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _say(line: str, stream: TextIO | None = None) -> None:
    """Print a line; what a project's files hold is no control sequence for the terminal."""
    stream = stream or sys.stdout
    try:
        stream.write(f"{printable(line)}\n")
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
