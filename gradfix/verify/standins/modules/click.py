"""click: a command is called with the defaults of its options."""

from __future__ import annotations

from typing import Any

from ..arguments import asked_for, insisted_on, place_for, text_for
from ..calls import called, reduced_value
from ..context import run

STRING, INT, FLOAT, BOOL = str, int, float, bool


class Command:
    """A function with options."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.options: list[tuple[str, dict[str, Any]]] = getattr(function, "_click_options", [])
        self.commands: list[Command] = []
        self.__name__ = getattr(function, "__name__", "command")
        self.callback = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = {name: _value(name, settings, self.function) for name, settings in self.options}
        return called(self.function, **{**values, **kwargs}) if not self.commands else self.commands[0]()

    main = __call__

    def command(self, *args: Any, **kwargs: Any) -> Any:
        """Add a command to this group."""

        def wrap(function: Any) -> Command:
            made = Command(function)
            self.commands.append(made)
            return made

        return wrap

    def add_command(self, command: Command, *args: Any) -> None:
        """Add a command to this group."""
        self.commands.append(command)


def _wanted(name: str, settings: dict[str, Any], function: Any) -> bool:
    """Whether a command cannot go without a value for an option that has none."""
    if settings.get("required"):
        return True
    tree = run().tree(function.__code__.co_filename) if hasattr(function, "__code__") else None
    if tree is None or settings.get("multiple"):
        return False
    return name in insisted_on(tree) or place_for(run(), name, name not in asked_for(tree))


def _value(name: str, settings: dict[str, Any], function: Any) -> Any:
    value = settings.get("default")
    kind = settings.get("type")
    if callable(value):
        value = value()
    if value is None and settings.get("is_flag"):
        return False
    if value is None and _wanted(name, settings, function):
        choices = getattr(kind, "choices", None)
        value = text_for(run(), name, choices, kind)
        run().used("argument " + name, repr(value))
    if kind in (int, float, str) and value is not None and not isinstance(value, (list, tuple)):
        value = kind(value)
    return reduced_value("argument " + name, name, value)


def _declared(args: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    names = [name for name in args if not name.startswith("-")]
    longest = names[0] if names else max(args, key=len).split("/")[0]

    def wrap(function: Any) -> Any:
        target = function.function if isinstance(function, Command) else function
        target._click_options = [
            (longest.lstrip("-").replace("-", "_").lower(), settings),
            *getattr(target, "_click_options", []),
        ]
        if isinstance(function, Command):
            function.options = target._click_options
        return function

    return wrap


def option(*args: Any, **settings: Any) -> Any:
    """An option."""
    return _declared(args, settings)


def argument(*args: Any, **settings: Any) -> Any:
    """An argument, which is required unless it has a default."""
    return _declared(args, {"required": "default" not in settings, **settings})


def command(*args: Any, **kwargs: Any) -> Any:
    """Make a function a command."""
    if args and callable(args[0]):
        return Command(args[0])
    return Command


group = command


def pass_context(function: Any) -> Any:
    """The function as it is."""
    return function


def echo(*args: Any, **kwargs: Any) -> None:
    """Nothing is printed."""


secho = echo


class Choice:
    """One of several."""

    def __init__(self, choices: Any, *args: Any, **kwargs: Any) -> None:
        self.choices = list(choices)


def Path(*args: Any, **kwargs: Any) -> Any:
    """A path."""
    return str


File = IntRange = FloatRange = Path
