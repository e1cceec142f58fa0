"""Assignments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy

from ...inert import others


def linear_sum_assignment(cost: Any, maximize: bool = False) -> Any:
    """The cheapest assignment: exact up to seven rows, beyond that the nearest that is free for each row."""
    cost = numpy.asarray(cost, float) * (-1 if maximize else 1)
    rows, columns = cost.shape
    if max(rows, columns) <= 7 and rows <= columns:
        best = min(
            itertools.permutations(range(columns), rows),
            key=lambda chosen: sum(cost[i, j] for i, j in enumerate(chosen)),
        )
        return numpy.arange(rows), numpy.array(best)
    free = set(range(columns))
    pairs = []
    for row in range(min(rows, columns)):
        column = min(free, key=lambda one: cost[row, one])
        free.discard(column)
        pairs.append((row, column))
    found = numpy.array(pairs)
    return found[:, 0], found[:, 1]


__getattr__ = others(__name__)
