"""Scaling and encoding."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


class Transformer:
    """Learns from data, and changes data."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn."""
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Learn."""
        return self.fit(X)

    def transform(self, X: Any) -> Any:
        """Change."""
        return numpy.asarray(X)

    def fit_transform(self, X: Any, y: Any = None, **kwargs: Any) -> Any:
        """Learn and change."""
        return self.fit(X).transform(X)


class _Affine(Transformer):
    shift: Any
    scale_: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.settings = kwargs
        self.range = kwargs.get("feature_range") or (
            args[0] if args and isinstance(args[0], tuple) else (0, 1)
        )

    def transform(self, X: Any) -> Any:
        return (numpy.asarray(X, float) - self.shift) / self.scale_

    def inverse_transform(self, X: Any) -> Any:
        """Change back."""
        return numpy.asarray(X, float) * self.scale_ + self.shift


class StandardScaler(_Affine):
    """To mean 0 and variance 1."""

    def fit(self, X: Any, y: Any = None) -> Any:
        X = numpy.asarray(X, float)
        self.shift = self.mean_ = X.mean(0)
        spread = X.std(0)
        self.scale_ = numpy.where(spread == 0, 1, spread)
        self.var_ = spread**2
        return self


class MinMaxScaler(_Affine):
    """To a range."""

    def fit(self, X: Any, y: Any = None) -> Any:
        X = numpy.asarray(X, float)
        low, high = self.range
        self.data_min_, self.data_max_ = X.min(0), X.max(0)
        spread = self.data_max_ - self.data_min_
        self.scale_ = numpy.where(spread == 0, 1, spread) / (high - low)
        self.shift = self.data_min_ - low * self.scale_
        return self


class RobustScaler(StandardScaler):
    """By median and quartiles."""

    def fit(self, X: Any, y: Any = None) -> Any:
        X = numpy.asarray(X, float)
        self.shift = self.center_ = numpy.median(X, 0)
        spread = numpy.percentile(X, 75, 0) - numpy.percentile(X, 25, 0)
        self.scale_ = numpy.where(spread == 0, 1, spread)
        return self


class MaxAbsScaler(StandardScaler):
    """By the largest magnitude."""

    def fit(self, X: Any, y: Any = None) -> Any:
        top = numpy.abs(numpy.asarray(X, float)).max(0)
        self.shift, self.scale_ = numpy.zeros_like(top), numpy.where(top == 0, 1, top)
        return self


class LabelEncoder(Transformer):
    """Numbers for values."""

    def fit(self, y: Any, *args: Any) -> Any:  # type: ignore[override]
        self.classes_ = numpy.unique(numpy.asarray(y))
        return self

    def transform(self, y: Any) -> Any:
        return numpy.searchsorted(self.classes_, numpy.asarray(y))

    def inverse_transform(self, y: Any) -> Any:
        """Values of numbers."""
        return self.classes_[numpy.asarray(y)]


class OrdinalEncoder(Transformer):
    """Numbers for the values of each column."""

    def __init__(self, **kwargs: Any) -> None:
        self.categories_: list[Any] = []

    def fit(self, X: Any, y: Any = None) -> Any:
        self.categories_ = [numpy.unique(one) for one in numpy.asarray(X).T]
        return self

    def transform(self, X: Any) -> Any:
        columns = zip(self.categories_, numpy.asarray(X).T)
        return numpy.stack([numpy.searchsorted(kinds, one).astype(float) for kinds, one in columns], 1)


class OneHotEncoder(OrdinalEncoder):
    """Zeros and ones for the values of each column."""

    def transform(self, X: Any) -> Any:
        columns = zip(self.categories_, numpy.asarray(X).T)
        return _Full(numpy.concatenate([(one[:, None] == kinds).astype(float) for kinds, one in columns], 1))


class _Full(numpy.ndarray):
    def __new__(cls, values: Any) -> Any:
        return numpy.asarray(values).view(cls)

    def toarray(self) -> Any:
        """All values."""
        return numpy.asarray(self)

    todense = toarray


class LabelBinarizer(Transformer):
    """Zeros and ones for values."""

    def fit(self, y: Any, *args: Any) -> Any:  # type: ignore[override]
        self.classes_ = numpy.unique(numpy.asarray(y))
        return self

    def transform(self, y: Any) -> Any:
        found = (numpy.asarray(y)[:, None] == self.classes_).astype(int)
        return found[:, 1:] if len(self.classes_) == 2 else found


class PolynomialFeatures(Transformer):
    """Powers of the columns."""

    def __init__(self, degree: int = 2, **kwargs: Any) -> None:
        self.degree = degree

    def transform(self, X: Any) -> Any:
        X = numpy.asarray(X, float)
        return numpy.concatenate([X**power for power in range(self.degree + 1)], 1)


def scale(X: Any, *args: Any, **kwargs: Any) -> Any:
    """To mean 0 and variance 1."""
    return StandardScaler().fit_transform(X)


def minmax_scale(X: Any, *args: Any, **kwargs: Any) -> Any:
    """To a range."""
    return MinMaxScaler(*args, **kwargs).fit_transform(X)


def normalize(X: Any, norm: str = "l2", axis: int = 1, **kwargs: Any) -> Any:
    """Rows of length 1."""
    X = numpy.asarray(X, float)
    order = {"l1": 1, "l2": 2, "max": numpy.inf}[norm]
    length = numpy.linalg.norm(X, order, axis=axis, keepdims=True)
    return X / numpy.where(length == 0, 1, length)


def label_binarize(y: Any, classes: Any, **kwargs: Any) -> Any:
    """Zeros and ones for values."""
    return (numpy.asarray(y)[:, None] == numpy.asarray(classes)).astype(int)


__getattr__ = others(__name__)
