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
from typing import Annotated

import typer

from gradfix.cli.arguments import CONTEXT, Command, start
from gradfix.cli.built_environment import outcome_of, size_of
from gradfix.cli.output import say, tell
from gradfix.environment import build, cache, interpreters
from gradfix.environment.build import Plan
from gradfix.environment.errors import EnvironmentFailure
from gradfix.system.progress import Display

app = typer.Typer(
    add_completion=False,
    context_settings=CONTEXT,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

MOST_FILES = 5
"""That are named as where something is stated."""


def run(arguments: Sequence[str]) -> None:
    """Run ``gradfix env`` with these arguments; raises ``SystemExit`` with the exit code."""
    start(app, "gradfix env", arguments)


@app.command(cls=Command)
def env(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Scripts and folders; the current folder if none."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is needed and what is lacking, and make nothing.")
    ] = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Make the environment again, with what the index has now.")
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
        tell(f"error: {failure}")
        code = 2
    raise typer.Exit(code)


def _env(
    paths: Sequence[Path], extra: Sequence[str], python: str | None, dry_run: bool, refresh: bool, quiet: bool
) -> int:
    needs = build.plan(paths, extra)
    if not quiet:
        for line in _described(needs, python):
            say(line)
    if dry_run:
        return 0
    if not needs.requirements and not needs.imports:
        say("nothing beyond the standard library is needed")
        return 0
    began = time.monotonic()
    with Display(sys.stderr, quiet=quiet) as display:
        built = build.ensure(needs, python=python, refresh=refresh, progress=display)
    for line in outcome_of(built, time.monotonic() - began, quiet=quiet):
        say(line)
    return 1 if built.missing else 0


def _clean(paths: Sequence[str] | None, *, dry_run: bool, quiet: bool) -> None:
    if paths or dry_run:
        raise EnvironmentFailure("--clean removes all environments, and takes neither a PATH nor --dry-run")
    removed = cache.clean()
    if not quiet:
        count = "1 environment" if removed.environments == 1 else f"{removed.environments} environments"
        say(f"removed {count} ({size_of(removed.size)})")
    if removed.in_use:
        tell(f"note: {removed.in_use} in the making, and left alone")


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
