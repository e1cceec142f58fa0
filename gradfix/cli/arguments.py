"""How a command line is taken apart and started."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, NoReturn, cast, get_type_hints

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


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """``command``, whose parameters that are of a dataclass are taken apart: each field is an option.

    So an option that several commands have is declared once, as a field of a group that they share.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}

    def parameters() -> Iterator[inspect.Parameter]:
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name not in groups:
                yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name])
                continue
            declared = get_type_hints(groups[parameter.name], include_extras=True)
            for one in fields(groups[parameter.name]):
                default = inspect.Parameter.empty if one.default is MISSING else one.default
                yield inspect.Parameter(
                    one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=declared[one.name]
                )

    @wraps(command)
    def gathered(**values: Any) -> None:
        made = {}
        for name, kind in groups.items():
            names = [one.name for one in fields(kind) if one.name in values]  # Some only have a callback.
            made[name] = kind(**{one: values.pop(one) for one in names})
        command(**values, **made)

    taken = list(parameters())
    gathered.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    gathered.__annotations__ = {one.name: one.annotation for one in taken}
    del gathered.__wrapped__
    return gathered


CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
"""What holds for every command line."""


class Command(TyperCommand):
    """A command whose help names arguments as they are declared, without their Python types."""

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """The usage line."""
        names = [str(one.metavar or one.name) for one in self.params if one.param_type_name == "argument"]
        return ["[OPTIONS]", *names]

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """What is said of each argument and each option."""
        for kind, title in (("argument", "Arguments"), ("option", "Options")):
            rows = [one.get_help_record(ctx) for one in self.get_params(ctx) if one.param_type_name == kind]
            if shown := [(_TYPES.sub("", row[0]), row[1]) for row in rows if row is not None]:
                with formatter.section(title):
                    formatter.write_dl(shown)


_TYPES = re.compile(r" <(str|list\[str\])>$")


class RunsScripts(Command):
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


class PassesOn(Command):
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
