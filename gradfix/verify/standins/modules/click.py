"""click: a command is called with the defaults of its options; of a group, the one that trains."""

from __future__ import annotations

import functools
from typing import Any

from ..arguments import TESTS, TRAINS, asked_for, insisted_on, place_for, text_for
from ..calls import called, reduced_value
from ..context import run

STRING, INT, FLOAT, BOOL = str, int, float, bool


class Context:
    """What a group and its commands share."""

    def __init__(self) -> None:
        self.obj: Any = None
        self.params: dict[str, Any] = {}
        self.invoked_subcommand: str | None = None

    def ensure_object(self, kind: Any) -> Any:
        """What is shared, a new one of a kind if there is nothing yet."""
        self.obj = kind() if self.obj is None else self.obj
        return self.obj

    def invoke(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a command, or a function."""
        return function(*args, **kwargs)

    forward = invoke


_CONTEXT = Context()


def get_current_context(silent: bool = False) -> Context:
    """The only one."""
    return _CONTEXT


class Command:
    """A function with options, and perhaps commands of its own."""

    def __init__(self, function: Any, name: str | None = None) -> None:
        self.function = function
        self.options: list[tuple[str, dict[str, Any]]] = getattr(function, "_click_options", [])
        self.commands: dict[str, Command] = {}
        self.__name__ = getattr(function, "__name__", "command")
        self.name = name or self.__name__.lower().replace("_", "-")
        self.callback = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = [one for one in self.commands if TRAINS.match(one)]
        names += [one for one in self.commands if not TESTS.match(one)] or [*self.commands]
        _CONTEXT.invoked_subcommand = names[0] if names else None
        values = {name: _value(name, settings, self.function) for name, settings in self.options}
        values.update({name: one for name, one in kwargs.items() if name not in ("obj", "standalone_mode")})
        _CONTEXT.obj = kwargs.get("obj", _CONTEXT.obj)
        _CONTEXT.params = values
        given = getattr(self.function, "_click_given", None)
        function = functools.partial(self.function, given()) if given is not None else self.function
        found = called(function, **values)
        if not names:
            return found
        # What a group does itself comes before what its command does.
        run().used("argument command", "the one to " + names[0])
        return self.commands[names[0]]()

    main = __call__

    def command(self, *args: Any, **kwargs: Any) -> Any:
        """Add a command to this group."""

        def wrap(function: Any) -> Command:
            made = command(name, **kwargs)(function)
            self.add_command(made)
            return made  # type: ignore[no-any-return]

        name = args[0] if args and isinstance(args[0], str) else None
        return wrap(args[0]) if args and callable(args[0]) else wrap

    group = command

    def add_command(self, command: Command, name: str | None = None) -> None:
        """Add a command to this group."""
        self.commands[name or command.name] = command


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
    name = kwargs.get("name") or (args[0] if args else None)
    return lambda function: Command(function, name)


group = command


def pass_context(function: Any) -> Any:
    """A function that is first given what a group and its commands share."""
    function._click_given = lambda: _CONTEXT
    return function


def pass_obj(function: Any) -> Any:
    """A function that is first given the object that they share."""
    function._click_given = lambda: _CONTEXT.obj
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
