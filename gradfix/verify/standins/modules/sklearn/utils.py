"""Orders and weights."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others
from .model_selection import shuffled, taken


def shuffle(*arrays: Any, random_state: Any = None, n_samples: Any = None) -> Any:
    """The same other order for all."""
    rows = shuffled(len(arrays[0]), random_state)[:n_samples]
    found = [taken(one, rows) for one in arrays]
    return found[0] if len(found) == 1 else found


def resample(*arrays: Any, n_samples: Any = None, random_state: Any = None, **kwargs: Any) -> Any:
    """Rows drawn with replacement."""
    source = numpy.random.RandomState(random_state) if isinstance(random_state, int) else numpy.random
    rows = source.randint(0, len(arrays[0]), n_samples or len(arrays[0]))
    found = [taken(one, rows) for one in arrays]
    return found[0] if len(found) == 1 else found


def check_random_state(seed: Any) -> Any:
    """A generator of numpy."""
    return seed if hasattr(seed, "normal") else numpy.random.RandomState(seed)


class class_weight:
    """Weights of classes."""

    @staticmethod
    def compute_class_weight(class_weight: Any = None, *, classes: Any, y: Any) -> Any:
        """Weights that make up for the sizes of the classes."""
        y = numpy.asarray(y)
        return numpy.array([len(y) / (len(classes) * max(1, int((y == one).sum()))) for one in classes])


compute_class_weight = class_weight.compute_class_weight
__getattr__ = others(__name__)
