"""Parts of a run and loops, of which nothing is shown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from ...inert import others


def _over(values: Any) -> Any:
    return range(values) if isinstance(values, int) else values


class _Watched:
    """What a loop goes over, and how much of that there is."""

    def __init__(self, values: Any, total: int | None = None, numbered: bool = False) -> None:
        self.values, self.total, self.numbered = _over(values), total, numbered

    def __iter__(self) -> Iterator[Any]:
        return enumerate(self.values) if self.numbered else iter(self.values)

    def __len__(self) -> int:
        return len(self.values) if self.total is None else self.total


class Loop:
    """A loop that says how far it is; it may be asked for one turn after the other."""

    def __init__(self, iterator: Any, **kwargs: Any) -> None:
        self.iterator = iterator

    def __iter__(self) -> Loop:
        self.iterator_iter = iter(self.iterator)
        return self

    def __next__(self) -> Any:
        return next(self.iterator_iter)

    def log_progress(self) -> list[Any]:
        """Nothing to show."""
        return []


def loop(iterator_: Any, **kwargs: Any) -> Loop:
    """A loop over some values, or over so many numbers."""
    return Loop(_over(iterator_))


def iterate(name: Any, iterable: Any = None, total_steps: int | None = None, **kwargs: Any) -> _Watched:
    """The same values, or so many numbers."""
    return _Watched(name if iterable is None else iterable, total_steps)


def enum(name: Any, iterable: Any = None, **kwargs: Any) -> _Watched:
    """The values with their numbers."""
    return _Watched(name if iterable is None else iterable, numbered=True)


def mix(*args: Any, is_monit: bool = True) -> Iterator[Any]:
    """The values of several loops with their names, each loop's spread over all turns.

    Those of a loop that has a function for a name are handed to it instead.
    """
    parts = [(name, _over(values)) for name, values in (one for one in args if isinstance(one, tuple))]
    total = next((one for one in args if isinstance(one, int)), None)
    if total is None:
        total = max(len(values) for _, values in parts)
    values = [iter(one) for _, one in parts]
    given = [0] * len(parts)
    turn = 0
    while any(count < len(part[1]) for count, part in zip(given, parts)):
        due = (at for at, part in enumerate(parts) if given[at] < (turn + 1) * len(part[1]) // total)
        at = next((at for at in due if given[at] < len(parts[at][1])), None)
        if at is None:
            turn += 1
            continue
        given[at] += 1
        name, value = parts[at][0], next(values[at])
        if callable(name):
            name(value)
        else:
            yield name, value


def section(name: Any = None, **kwargs: Any) -> AbstractContextManager[Any]:
    """A part of a run."""
    return contextlib.nullcontext()


def func(name: Any = None, **kwargs: Any) -> Any:
    """The function as it stands."""
    if callable(name):
        return name

    def same(function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    return same


def progress(*args: Any) -> None:
    """Nothing."""


fail = clear = finish_loop = progress


__getattr__ = others(__name__)
