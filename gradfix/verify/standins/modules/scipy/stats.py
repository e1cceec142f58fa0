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

    def interval(self, confidence: float, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """The middle in which a share lies."""
        return tuple(self.ppf(0.5 + side * confidence / 2, loc, scale) for side in (-1, 1))

    def rvs(self, loc: Any = None, scale: Any = None, size: Any = None, **kwargs: Any) -> Any:
        """Values drawn with numpy's generator."""
        return numpy.random.normal(
            self.loc if loc is None else loc, self.scale if scale is None else scale, size
        )


norm = _Normal()


class _Student:
    """Student's distribution with a whole number of degrees of freedom."""

    def cdf(self, x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """The share below."""
        return numpy.vectorize(below)((numpy.asarray(x, float) - loc) / scale, df)

    def ppf(self, q: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """The value below which a share lies."""
        return numpy.vectorize(least)(q, df) * scale + loc

    def _ppf(self, q: Any, df: Any) -> Any:
        return self.ppf(q, df)

    def interval(self, confidence: float, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """The middle in which a share lies."""
        return tuple(self.ppf(0.5 + side * confidence / 2, df, loc, scale) for side in (-1, 1))


def below(value: float, df: float) -> float:
    """The share of Student's distribution below a value (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    count = max(1, round(df))
    angle = math.atan(value / math.sqrt(count))
    term, total = (math.cos(angle), 0.0) if count % 2 else (1.0, 0.0)
    for place in range(2 + count % 2, count + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (place - 1) / place
    within = math.sin(angle) * total
    return 0.5 + ((angle + within) / math.pi if count % 2 else within / 2)


def least(share: float, df: float) -> float:
    """The value of Student's distribution below which a share lies, found by halving."""
    if not 0 < share < 1:
        return math.nan if not 0 <= share <= 1 else math.copysign(math.inf, share - 0.5)
    low, high = -1e6, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle, df) < share else (low, middle)
    return (low + high) / 2


t = _Student()


class _Normals:
    """The normal distribution of several values."""

    def __init__(self, mean: Any = None, cov: Any = 1.0, **kwargs: Any) -> None:
        self.given = mean, cov

    def __call__(self, mean: Any = None, cov: Any = 1.0, **kwargs: Any) -> _Normals:
        return _Normals(mean, cov)

    def _told(self, mean: Any, cov: Any, count: int | None = None) -> tuple[Any, Any]:
        mean, cov = self.given[0] if mean is None else mean, self.given[1] if cov is None else cov
        spread = numpy.asarray(cov, float)
        size = len(numpy.atleast_1d(mean)) if mean is not None else len(spread) if spread.ndim else count or 1
        spread = (
            spread * numpy.eye(size)
            if spread.ndim == 0
            else numpy.diag(spread)
            if spread.ndim == 1
            else spread
        )
        return numpy.zeros(size) if mean is None else numpy.atleast_1d(numpy.asarray(mean, float)), spread

    def logpdf(self, x: Any, mean: Any = None, cov: Any = None, **kwargs: Any) -> Any:
        """The logarithm of the density."""
        x = numpy.asarray(x, float)
        mean, cov = self._told(mean, cov)
        away = (x[..., None] if len(mean) == 1 and x.shape[-1:] != (1,) else x) - mean
        far = numpy.einsum("...i,ij,...j", away, numpy.linalg.inv(cov), away)
        return -0.5 * (far + numpy.linalg.slogdet(cov)[1] + len(mean) * math.log(2 * math.pi))

    def pdf(self, x: Any, mean: Any = None, cov: Any = None, **kwargs: Any) -> Any:
        """The density."""
        return numpy.exp(self.logpdf(x, mean, cov))

    def rvs(self, mean: Any = None, cov: Any = None, size: Any = 1, **kwargs: Any) -> Any:
        """Values drawn with numpy's generator."""
        found = numpy.random.multivariate_normal(*self._told(mean, cov), size)
        return found[0] if size == 1 else found


multivariate_normal = _Normals()


class gaussian_kde:
    """A density by a normal distribution around each sample."""

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset = numpy.atleast_2d(numpy.asarray(dataset, float))
        self.d, self.n = self.dataset.shape
        number = isinstance(bw_method, (int, float))
        self.factor = float(bw_method) if number else self.n ** (-1.0 / (self.d + 4))
        self.covariance = numpy.atleast_2d(numpy.cov(self.dataset)) * self.factor**2

    def evaluate(self, points: Any) -> Any:
        """The density at each point."""
        points = numpy.atleast_2d(numpy.asarray(points, float))
        points = points.T if points.shape[0] != self.d and points.shape[1] == self.d else points
        away = points[:, :, None] - self.dataset[:, None, :]
        far = numpy.einsum("ipn,ij,jpn->pn", away, numpy.linalg.inv(self.covariance), away)
        scale = math.sqrt(numpy.linalg.det(2 * math.pi * self.covariance))
        return numpy.exp(-0.5 * far).mean(1) / scale

    __call__ = pdf = evaluate

    def resample(self, size: Any = None, seed: Any = None) -> Any:
        """Samples drawn with numpy's generator."""
        size = self.n if size is None else int(size)
        chosen = numpy.random.randint(0, self.n, size)
        noise = numpy.random.multivariate_normal(numpy.zeros(self.d), self.covariance, size).T
        return self.dataset[:, chosen] + noise


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


class _Drawn:
    """A distribution of which only samples and, where it is short, the density are known."""

    def __init__(self, name: str, density: Any = None, given: tuple[Any, ...] = ()) -> None:
        self.name, self.density, self.given = name, density, given

    def __call__(self, *given: Any, **named: Any) -> _Drawn:
        return _Drawn(self.name, self.density, (*given, *named.values()))

    def pdf(self, x: Any, *given: Any, **named: Any) -> Any:
        """The density."""
        return self.density(numpy.asarray(x, float), *(given or self.given), **named)

    def logpdf(self, x: Any, *given: Any, **named: Any) -> Any:
        """The logarithm of the density."""
        return numpy.log(self.pdf(x, *given, **named))

    pmf, logpmf = pdf, logpdf

    def rvs(self, *given: Any, size: Any = None, **named: Any) -> Any:
        """Values drawn with numpy's generator."""
        named.pop("random_state", None)
        return getattr(numpy.random, self.name)(*(given or self.given), *named.values(), size=size)


beta = _Drawn(
    "beta",
    lambda x, a, b: x ** (a - 1) * (1 - x) ** (b - 1) * math.gamma(a + b) / math.gamma(a) / math.gamma(b),
)
poisson = _Drawn("poisson", lambda k, mu: mu**k * numpy.exp(-mu) / numpy.vectorize(math.gamma)(k + 1))
expon = _Drawn("exponential", lambda x, loc=0, scale=1: numpy.exp(-(x - loc) / scale) / scale)
laplace = _Drawn("laplace", lambda x, loc=0, scale=1: numpy.exp(-abs(x - loc) / scale) / (2 * scale))


def kendalltau(x: Any, y: Any, **kwargs: Any) -> Any:
    """The correlation of orders, and nothing to doubt it by."""
    x, y = numpy.asarray(x, float).ravel(), numpy.asarray(y, float).ravel()
    signs = numpy.sign(x[:, None] - x) * numpy.sign(y[:, None] - y)
    return float(signs.sum() / max(1, len(x) * (len(x) - 1))), 0.0


def rankdata(values: Any, *args: Any, **kwargs: Any) -> Any:
    """The place of each value in their order."""
    return numpy.argsort(numpy.argsort(numpy.asarray(values).ravel())) + 1.0


def wasserstein_distance(one: Any, other: Any, *args: Any) -> float:
    """The mean distance of samples in their order."""
    shares = numpy.linspace(0, 1, 128)
    return float(abs(numpy.quantile(one, shares) - numpy.quantile(other, shares)).mean())


def linregress(x: Any, y: Any = None, **kwargs: Any) -> Any:
    """Slope, intercept and correlation of a line."""
    slope, intercept = numpy.polyfit(x, y, 1)
    return float(slope), float(intercept), pearsonr(x, y)[0], 0.0, 0.0


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
