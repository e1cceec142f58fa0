"""What happens to a game: nothing but what it posts itself."""

from __future__ import annotations

from typing import Any

from . import time
from .constants import EVENTS

NOEVENT, USEREVENT = EVENTS["NOEVENT"], EVENTS["USEREVENT"]
waiting: list[Event] = []
taken = {"next": USEREVENT}


class Event:
    """Something that happened."""

    def __init__(self, type: int, dict: Any = None, **attributes: Any) -> None:
        self.__dict__.update(dict or {}, **attributes)
        self.type = type

    @property
    def dict(self) -> Any:
        """What is known of it."""
        return {name: value for name, value in vars(self).items() if name != "type"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Event({self.type}-{event_name(self.type)} {self.dict})>"


EventType = Event


def kinds(given: Any) -> Any:
    """The types that are meant."""
    return given if given is None or isinstance(given, (list, tuple, set)) else (given,)


def pump() -> None:
    """See whose time has come."""
    for one in time.due():
        waiting.append(one if isinstance(one, Event) else Event(one))


def get(eventtype: Any = None, pump: bool = True, exclude: Any = None) -> list[Event]:
    """What happened since it was asked last."""
    if pump:
        globals()["pump"]()
    wanted, left = kinds(eventtype), kinds(exclude) or ()
    found = [one for one in waiting if (wanted is None or one.type in wanted) and one.type not in left]
    waiting[:] = [one for one in waiting if one not in found]
    return found


def poll() -> Event:
    """The next thing that happened, if any did."""
    pump()
    return waiting.pop(0) if waiting else Event(NOEVENT)


def wait(timeout: int = 0) -> Event:
    """The same: nobody would ever come."""
    time.wait(timeout)
    return poll()


def peek(eventtype: Any = None, pump: bool = True) -> bool:
    """Whether anything happened."""
    wanted = kinds(eventtype)
    return any(wanted is None or one.type in wanted for one in waiting)


def clear(eventtype: Any = None, pump: bool = True) -> None:
    """Forget what happened."""
    get(eventtype)


def post(event: Event) -> bool:
    """Let something happen."""
    waiting.append(event)
    return True


def event_name(type: int) -> str:
    """What a type is called."""
    names = {number: name for name, number in EVENTS.items()}
    return names.get(type, "UserEvent" if type >= USEREVENT else "Unknown").title().replace("_", "")


def custom_type() -> int:
    """A type of one's own."""
    taken["next"] += 1
    return taken["next"]


def set_blocked(*args: Any) -> None:
    """Nothing happens anyway."""


set_allowed = set_grab = set_keyboard_grab = set_blocked


def get_blocked(*args: Any) -> bool:
    """No."""
    return False


get_grab = get_keyboard_grab = get_blocked
