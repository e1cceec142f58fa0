"""Distributions and what is computed from samples."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...inert import others


class _Normal:
    def __init__(self, loc: Any = 0.0, scale: Any = 1.0) -> None:
        self.loc, self.scale = loc, scale

    def __call__(self, loc: Any = 0.0, scale: Any = 1.0) -> _Normal:
        return _Normal(loc, scale)

    def pdf(self, x: Any, loc: Any = None, scale: Any = None) -> Any:
        """The density."""
        loc, scale = self.loc if loc is None else loc, self.scale if scale is None else scale
        z = (numpy.asarray(x) - loc) / scale
        return numpy.exp(-0.5 * z**2) / (scale * math.sqrt(2 * math.pi))

    def logpdf(self, x: Any, loc: Any = None, scale: Any = None) -> Any:
        """The logarithm of the density."""
        return numpy.log(self.pdf(x, loc, scale))

    def cdf(self, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """The share below."""
        z = (numpy.asarray(x, float) - loc) / scale
        return 0.5 * (1 + numpy.vectorize(math.erf)(z / math.sqrt(2)))

    def ppf(self, q: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """The value below which a share lies."""
        normal = __import__("statistics").NormalDist()
        clipped = numpy.clip(numpy.asarray(q, float), 1e-9, 1 - 1e-9)
        return numpy.vectorize(normal.inv_cdf)(clipped) * scale + loc

    def rvs(self, loc: Any = None, scale: Any = None, size: Any = None, **kwargs: Any) -> Any:
        """Values drawn with numpy's generator."""
        return numpy.random.normal(
            self.loc if loc is None else loc, self.scale if scale is None else scale, size
        )


norm = _Normal()


class truncnorm:
    """The normal distribution between two bounds."""

    def __init__(self, a: Any, b: Any, loc: Any = 0.0, scale: Any = 1.0) -> None:
        self.a, self.b, self.loc, self.scale = a, b, loc, scale

    def _draw(self, size: Any = None, **kwargs: Any) -> Any:
        low, high = norm.cdf(self.a), norm.cdf(self.b)
        return norm.ppf(numpy.random.uniform(low, high, size)) * self.scale + self.loc

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "_draw" if name == "rvs" else name)

    @staticmethod
    def rvs(a: Any, b: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        """Values drawn with numpy's generator."""
        return truncnorm(a, b, loc, scale)._draw(size)


class uniform:
    """The uniform distribution."""

    @staticmethod
    def rvs(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        """Values drawn with numpy's generator."""
        return numpy.random.uniform(loc, loc + scale, size)


def entropy(pk: Any, qk: Any = None, base: Any = None, axis: int = 0) -> Any:
    """Of a distribution, or relative to another."""
    p = numpy.asarray(pk, float)
    p = p / p.sum(axis=axis, keepdims=True)
    if qk is None:
        terms = -p * numpy.log(numpy.where(p > 0, p, 1))
    else:
        q = numpy.asarray(qk, float)
        q = q / q.sum(axis=axis, keepdims=True)
        terms = p * numpy.log(numpy.where(p > 0, p / q, 1))
    return terms.sum(axis=axis) / (math.log(base) if base else 1)


def pearsonr(x: Any, y: Any) -> Any:
    """The correlation, and nothing to doubt it by."""
    return float(numpy.corrcoef(x, y)[0, 1]), 0.0


def spearmanr(x: Any, y: Any = None, **kwargs: Any) -> Any:
    """The correlation of ranks."""
    return pearsonr(numpy.argsort(numpy.argsort(x)), numpy.argsort(numpy.argsort(y)))


def zscore(values: Any, axis: int = 0, **kwargs: Any) -> Any:
    """Standardised."""
    values = numpy.asarray(values, float)
    return (values - values.mean(axis, keepdims=True)) / values.std(axis, keepdims=True)


def sem(values: Any, axis: int = 0, **kwargs: Any) -> Any:
    """The standard error of the mean."""
    values = numpy.asarray(values, float)
    return values.std(axis, ddof=1) / math.sqrt(values.shape[axis])


def mode(values: Any, axis: int = 0, **kwargs: Any) -> Any:
    """The most frequent value."""
    found, counts = numpy.unique(numpy.asarray(values), return_counts=True)
    return numpy.array([found[counts.argmax()]]), numpy.array([counts.max()])


__getattr__ = others(__name__)
