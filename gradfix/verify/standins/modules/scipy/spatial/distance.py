"""Distances."""

from __future__ import annotations

from typing import Any

import numpy


def cdist(one: Any, other: Any, metric: str = "euclidean", **kwargs: Any) -> Any:
    """Between all rows of two matrices."""
    one, other = numpy.asarray(one, float), numpy.asarray(other, float)
    if metric == "cosine":
        norms = numpy.linalg.norm(one, axis=1)[:, None] * numpy.linalg.norm(other, axis=1)[None]
        return 1 - one @ other.T / norms
    found = ((one[:, None] - other[None]) ** 2).sum(-1)
    return found if metric == "sqeuclidean" else numpy.sqrt(found)


def pdist(values: Any, metric: str = "euclidean", **kwargs: Any) -> Any:
    """Between the rows of one."""
    found = cdist(values, values, metric)
    return found[numpy.triu_indices(len(found), 1)]


def squareform(values: Any, *args: Any) -> Any:
    """Pairs as a matrix."""
    count = int((1 + (1 + 8 * len(values)) ** 0.5) / 2)
    made = numpy.zeros((count, count))
    made[numpy.triu_indices(count, 1)] = values
    return made + made.T


def cosine(one: Any, other: Any) -> float:
    """One less the cosine of the angle."""
    return float(cdist([one], [other], "cosine")[0, 0])


def euclidean(one: Any, other: Any) -> float:
    """The length of the difference."""
    return float(cdist([one], [other])[0, 0])
