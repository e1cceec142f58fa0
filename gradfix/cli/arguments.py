"""How a command line is taken apart and started."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperCommand

from gradfix.system.printable import printable


def start(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line, by default with this process's arguments; raises ``SystemExit`` with the exit code.

    What typer has to say of the arguments does nothing in a terminal: ``gradfix check *`` gives it the names
    of files.
    """
    command = typer.main.get_command(app)
    args = None if arguments is None else list(arguments)
    if _VARIABLE.format(name.upper()) in os.environ:  # A shell asks how a command line may go on.
        _know_shells()
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


_VARIABLE = "_{}_COMPLETE"


def print_completion_script(context: Any, shell: str) -> NoReturn:
    """Print the script by which ``shell`` completes the command line, and end."""
    from typer.completion import show_callback

    show_callback(context, cast(Any, None), shell)  # What typer's own --show-completion calls; it exits.
    raise SystemExit(0)


def _know_shells() -> None:
    """Make typer's ways to complete known, as it does itself where it has options of its own for them."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()


_Mistake: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What can be wrong with arguments; typer gives it no name of its own."""


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
