"""From what was asked for to the options of the pipeline; the user is asked about what runs may have."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gradfix.cli.arguments import script_arguments
from gradfix.cli.options import EnvironmentChoice
from gradfix.cli.output import refuse, tell
from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, Refusal, RequestedOptions, module_file
from gradfix.system.printable import printable

if TYPE_CHECKING:
    from gradfix.project.configuration import Settings
    from gradfix.project.trust import Verdict


def settle_what_runs_get(paths: Sequence[str], options: Options) -> None:
    """Say what the configuration lets runs have of the machine, for it may come with the code; on a terminal
    ask about what the user has not allowed yet."""
    if not options.verify:
        return
    from gradfix.pipeline.options import read_by_runs
    from gradfix.verify.interpreter import choose_interpreter

    with _asking():
        if options.interpreter is None and options.environment is None and can_answer():
            for path in paths:
                choose_interpreter(Path(path, "x.py") if os.path.isdir(path) else Path(path))
        configured = [one.settings for one in driver.in_force(paths, options)]
        folders = {settings: read_by_runs(settings, ask=True) for settings in configured}
    for settings, decisions in folders.items():
        _say_what_runs_get(settings, decisions)


def _say_what_runs_get(settings: Settings, decisions: Sequence[tuple[str, Verdict]]) -> None:
    from gradfix.verify.command import Command

    for folder, decided in decisions:
        if decided.allowed:
            shown = f"runs may read {os.path.realpath(folder)}"
        else:
            shown = f"runs do not get to read {folder}, which {decided.why}"
            shown += f": run `gradfix trust {shlex.quote(folder)}`" if decided.askable else ""
        tell(f"note: {shown} (readable in {settings.file})")
    asked = settings.verify
    passed = Command(env=asked.env).variables()
    for name in asked.env:
        shown = "runs get" if name in passed else "runs do not get"
        tell(f"note: {shown} the variable {name} (env in {settings.file})")


def can_answer() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def _asking() -> Iterator[None]:
    """Have the user asked about what is not allowed yet, if there is a terminal to answer at."""
    from gradfix.project import trust  # It needs what `check` does without.

    def ask(question: str) -> bool:
        sys.stderr.write(f"{printable(question)} A yes is remembered. [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    with trust.asking(ask) if can_answer() else nullcontext():
        yield


def requested_options(
    *groups: Any, context: typer.Context | None = None, quiet: bool = False, **others: Any
) -> RequestedOptions:
    """What is asked for by the options of a command.

    Args:
        groups: Of options (see :mod:`gradfix.cli.options`).
        context: Of a command after whose ``--`` stands what the script is called with.
        quiet: Say nothing while an environment is made.
        others: As the pipeline takes them; they count more than those of groups.
    """
    values = {one.name: getattr(group, one.name) for group in groups for one in fields(group)} | others
    for name in ("select", "ignore", "exclude"):
        values[name] = names_in(values.get(name))
    values["codemods"] = tuple(values.get("codemods") or ())
    values["environment"] = _environment(values.pop("env", None), quiet)
    return RequestedOptions(arguments=() if context is None else script_arguments(context), **values)


def _environment(choice: EnvironmentChoice | None, quiet: bool) -> Callable[[Sequence[Path]], str] | None:
    """What makes the environment that is asked for, if one is: for scripts, its interpreter."""
    if choice is None:
        return None

    def make(paths: Sequence[Path]) -> str:
        from gradfix.cli.built_environment import executable_for
        from gradfix.environment.errors import EnvironmentFailure

        try:
            return executable_for(paths, quiet=quiet)
        except EnvironmentFailure as failure:
            refuse(str(failure))

    return make


def looked_at(paths: Sequence[str] | None, module: str | None) -> Sequence[str]:
    """What is looked at: what is named, else the file of the module that is run, else the current folder."""
    if paths or module is None:
        return paths or ["."]
    file = module_file(module)
    return [file] if file is not None else ["."]


def names_in(values: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names in a repeatable option whose values may hold several, separated by commas."""
    if values is None:
        return None
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def prepared(paths: Sequence[str], requested: RequestedOptions, *, configured: bool = True) -> Options:
    try:
        os.getcwd()
    except OSError:
        refuse("the current folder has been removed")
    with _asking() if requested.verify else nullcontext():
        options = driver.prepare(paths, requested, configured=configured)
    if isinstance(options, Refusal):
        refuse(options.message)
    return options
