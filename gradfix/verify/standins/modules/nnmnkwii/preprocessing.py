"""What is done to sounds before they are analysed."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


def preemphasis(x: Any, coef: float = 0.97) -> Any:
    """Each value less a part of the one before."""
    return numpy.concatenate([x[:1], x[1:] - coef * x[:-1]]).astype(x.dtype)


def inv_preemphasis(x: Any, coef: float = 0.97) -> Any:
    """The sound that became this."""
    found = numpy.array(x, copy=True)
    for number in range(1, len(found)):
        found[number] += coef * found[number - 1]
    return found


__getattr__ = others(__name__)
