"""How command lines are declared: groups of options, and the help that is made of them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer

from gradfix.cli import bot, commands, environment
from gradfix.cli.arguments import Command, PassesOn, takes_groups

COMMANDS = {
    f"{app.info.name or ''}{one.name or getattr(one.callback, '__name__', '')}": one
    for app in (commands.app, bot.app, environment.app)
    for one in app.registered_commands
    if one.cls is not PassesOn
}


@dataclass(frozen=True)
class Greeting:
    """Two options."""

    name: Annotated[str, typer.Option("--name")]
    loud: Annotated[bool, typer.Option("--loud")] = False
    counted: Annotated[int | None, typer.Option("--count", expose_value=False)] = None


def test_the_fields_of_a_group_are_options_and_come_back_as_the_group() -> None:
    came: list[Any] = []
    app = typer.Typer()

    @app.command()
    @takes_groups
    def greet(*, place: str, times: Annotated[int, typer.Option("--times")] = 1, greeting: Greeting) -> None:
        came.append((place, times, greeting))

    assert list(inspect.signature(greet).parameters) == ["place", "times", "name", "loud", "counted"]
    line = ["home", "--loud", "--name", "you", "--count", "3"]
    typer.main.get_command(app).main(args=line, standalone_mode=False)
    assert came == [("home", 1, Greeting("you", loud=True))]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_shows_its_help_without_python_types(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = COMMANDS[name]
    assert command.cls is not None and issubclass(command.cls, Command), name
    app = typer.Typer(rich_markup_mode=None)
    app.registered_commands.append(command)
    typer.main.get_command(app).main(args=["--help"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: ")
    assert "<str>" not in shown and "list[str]" not in shown and "[[" not in shown
    assert max(map(len, shown.splitlines())) <= 80
