"""Seeds and the like."""

from __future__ import annotations

from typing import Any

from ... import environments


class EzPickle:
    """A class that remembers its arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class seeding:
    """Generators of random numbers."""

    @staticmethod
    def np_random(seed: Any = None) -> tuple[Any, int]:
        """A generator and its seed."""
        return environments.numbers(seed or 0), seed or 0
