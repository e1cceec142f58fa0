"""Mean and variance of what was seen."""

from __future__ import annotations

from typing import Any

import numpy


class RunningMeanStd:
    """Of arrays, by batches."""

    def __init__(self, epsilon: float = 1e-4, shape: Any = ()) -> None:
        self.mean = numpy.zeros(shape, numpy.float64)
        self.var = numpy.ones(shape, numpy.float64)
        self.count = epsilon

    def update(self, values: Any) -> None:
        """Take in a batch."""
        self.update_from_moments(numpy.mean(values, axis=0), numpy.var(values, axis=0), len(values))

    def update_from_moments(self, mean: Any, var: Any, count: float) -> None:
        """Take in what is known of a batch."""
        delta, total = mean - self.mean, self.count + count
        spread = self.var * self.count + var * count + delta**2 * self.count * count / total
        self.mean = self.mean + delta * count / total
        self.var, self.count = spread / total, total
