"""Functions of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...inert import others
from .misc import logsumexp

__all__ = ["erf", "expit", "factorial", "gammaln", "logit", "logsumexp", "softmax", "xlogy"]
erf = numpy.vectorize(math.erf, otypes=[float])
gammaln = numpy.vectorize(math.lgamma, otypes=[float])


def expit(x: Any) -> Any:
    """The logistic function."""
    return 1 / (1 + numpy.exp(-numpy.asarray(x, float)))


def logit(x: Any) -> Any:
    """Its inverse."""
    return numpy.log(x / (1 - numpy.asarray(x, float)))


def softmax(x: Any, axis: Any = None) -> Any:
    """Shares by exponentials."""
    raised = numpy.exp(x - numpy.max(x, axis=axis, keepdims=True))
    return raised / raised.sum(axis=axis, keepdims=True)


def factorial(n: Any, **kwargs: Any) -> float:
    """Of a whole number."""
    return float(math.factorial(int(n)))


def xlogy(x: Any, y: Any) -> Any:
    """``x log y``, and nothing where ``x`` is nothing."""
    return numpy.where(numpy.asarray(x) == 0, 0.0, x * numpy.log(numpy.where(numpy.asarray(y) > 0, y, 1)))


__getattr__ = others(__name__)
