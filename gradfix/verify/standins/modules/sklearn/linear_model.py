"""Linear models, all of them by least squares."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


class LinearRegression:
    """A linear function of samples."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        pass

    def _wide(self, X: Any) -> Any:
        data = numpy.asarray(X, dtype=float)
        return numpy.concatenate([data, numpy.ones((len(data), 1))], 1)

    def _solved(self, X: Any, wanted: Any) -> None:
        self.weights = numpy.linalg.lstsq(self._wide(X), wanted, rcond=None)[0]
        self.coef_, self.intercept_ = self.weights[:-1].T, self.weights[-1]

    def fit(self, X: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        """Find it."""
        self._solved(X, numpy.asarray(y, dtype=float))
        return self

    def predict(self, X: Any) -> Any:
        """Its values."""
        return self._wide(X) @ self.weights

    def score(self, X: Any, y: Any) -> float:
        """The share of the variance that it explains."""
        y = numpy.asarray(y, dtype=float)
        return float(1 - ((y - self.predict(X)) ** 2).sum() / max(1e-12, ((y - y.mean(0)) ** 2).sum()))


Ridge = Lasso = RidgeCV = LassoCV = LinearRegression


class LogisticRegression(LinearRegression):
    """A linear function for each class."""

    def fit(self, X: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        """Find them."""
        self.classes_ = numpy.unique(numpy.asarray(y))
        self._solved(X, (numpy.asarray(y)[:, None] == self.classes_).astype(float))
        return self

    def decision_function(self, X: Any) -> Any:
        """Their values; with two classes, how much larger the second is."""
        values = self._wide(X) @ self.weights
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values

    def predict_proba(self, X: Any) -> Any:
        """Their values as shares."""
        values = numpy.exp(self._wide(X) @ self.weights)
        return values / values.sum(1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """The class with the largest."""
        return self.classes_[self.predict_proba(X).argmax(1)]

    def score(self, X: Any, y: Any, *args: Any) -> float:
        """The share that is right."""
        return float((self.predict(X) == numpy.asarray(y)).mean())


SGDClassifier = RidgeClassifier = LogisticRegressionCV = LogisticRegression
__getattr__ = others(__name__)
