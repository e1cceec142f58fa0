"""Arguments that several commands take: how the script under test is run."""
# Annotations are not put off here: typer reads them all, and would have to compile each.

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from gradfix.core.codemod import Severity
from gradfix.system.printable import printable


def start(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line, by default with this process's arguments; raises ``SystemExit`` with the exit code.

    What typer has to say of the arguments does nothing in a terminal: ``gradfix check *`` gives it the names
    of files.
    """
    command = typer.main.get_command(app)
    args = None if arguments is None else list(arguments)
    try:
        code = command.main(args=args, prog_name=name, standalone_mode=False)
    except _Mistake as mistake:
        if type(mistake).__name__ != "NoArgsIsHelpError":  # Its message is the help.
            mistake.message = printable(mistake.message)
        mistake.show()
        code = mistake.exit_code
    except typer.Abort:
        code = 1
    raise SystemExit(code or 0)


_Mistake: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What can be wrong with arguments; typer gives it no name of its own."""


class EnvironmentChoice(StrEnum):
    """Which environment to make."""

    AUTO = "auto"


class RunsScripts(TyperCommand):
    """A command after whose ``--`` stands what the script under test is called with."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Keep what stands after ``--`` for :func:`script_arguments`."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[ARGUMENTS] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """The usage line, with what may stand after ``--``."""
        return [*super().collect_usage_pieces(ctx), "[-- ARG...]"]


class PassesOn(TyperCommand):
    """A command that takes its arguments as they stand, for another command line to understand."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Leave everything in ``ctx.args``."""
        ctx.args = list(args)
        return []


ARGUMENTS = "gradfix.arguments"


def script_arguments(context: typer.Context) -> tuple[str, ...]:
    """What stood after ``--`` on the command line of ``context``."""
    found: tuple[str, ...] = context.meta.get(ARGUMENTS, ())
    return found


MinSeverity = Annotated[
    Severity | None,
    typer.Option("--min-severity", help="Only what is as bad as this or worse (default: warning)."),
]
Environment = Annotated[
    EnvironmentChoice | None,
    typer.Option("--env", help="Run both versions in an environment that is made for the project."),
]
Script = Annotated[
    str | None,
    typer.Option("--script", metavar="FILE", help="The script to run, where PATH is a module of it."),
]
Module = Annotated[
    str | None,
    typer.Option("-m", metavar="MODULE", help="Run MODULE, as `python -m` does."),
]


def environment(
    choice: EnvironmentChoice | None, quiet: bool = False
) -> Callable[[Sequence[Path]], str] | None:
    """What makes the environment that is asked for, if one is: for scripts, its interpreter."""
    if choice is None:
        return None

    def make(paths: Sequence[Path]) -> str:
        from gradfix.cli.environment import executable_for
        from gradfix.environment.errors import EnvironmentFailure

        try:
            return executable_for(paths, quiet=quiet)
        except EnvironmentFailure as failure:
            print(f"error: {printable(str(failure))}", file=sys.stderr)
            raise typer.Exit(2) from failure

    return make
