"""Seeds and the like."""

from __future__ import annotations

import random
from typing import Any


class EzPickle:
    """A class that remembers its arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class seeding:
    """Generators of random numbers."""

    @staticmethod
    def np_random(seed: Any = None) -> tuple[Any, int]:
        """A generator and its seed."""
        try:
            import numpy
        except ImportError:
            return random.Random(seed or 0), seed or 0
        return numpy.random.RandomState(seed or 0), seed or 0
