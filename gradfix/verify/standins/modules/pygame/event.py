"""What a player does: nothing; but what a script posts itself is there."""

from __future__ import annotations

from typing import Any

from .locals import NOEVENT, USEREVENT

_posted: list[Event] = []
_types = [USEREVENT]


class Event:
    """Something that has happened, with what is told of it as attributes."""

    def __init__(self, type: int, dict: Any = None, **kwargs: Any) -> None:
        self.type = type
        self.__dict__.update({**(dict or {}), **kwargs})

    @property
    def dict(self) -> Any:
        """What is told of it."""
        return {key: value for key, value in self.__dict__.items() if key != "type"}


EventType = Event


def _meant(kinds: Any) -> Any:
    return None if kinds is None else {kinds} if isinstance(kinds, int) else set(kinds)


def get(eventtype: Any = None, pump: Any = True, exclude: Any = None) -> list[Event]:
    """All that was posted, of some kinds or of all but some."""
    wanted, others = _meant(eventtype), _meant(exclude) or ()
    taken = [one for one in _posted if (wanted is None or one.type in wanted) and one.type not in others]
    _posted[:] = [one for one in _posted if one not in taken]
    return taken


def poll() -> Event:
    """The first that was posted, or none."""
    return _posted.pop(0) if _posted else Event(NOEVENT)


def wait(*args: Any) -> Event:
    """The first that was posted, or none: nobody would do anything."""
    return poll()


def peek(eventtype: Any = None, *args: Any) -> bool:
    """Whether anything was posted."""
    wanted = _meant(eventtype)
    return any(wanted is None or one.type in wanted for one in _posted)


def clear(eventtype: Any = None, *args: Any) -> None:
    """Forget what was posted."""
    get(eventtype)


def post(event: Event) -> bool:
    """Keep what a script says has happened."""
    _posted.append(event)
    return True


def custom_type() -> int:
    """A kind of one's own."""
    _types[0] += 1
    return _types[0] - 1


def pump() -> None:
    """Nothing comes."""


def set_allowed(*args: Any) -> None:
    """All are."""


set_blocked = set_grab = set_allowed


def event_name(kind: int) -> str:
    """What it is called."""
    return "UserEvent" if kind >= USEREVENT else "Unknown"
