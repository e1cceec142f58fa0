"""What is nearest, by comparing everything with everything."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


class NearestNeighbors:
    """The samples that are nearest to others."""

    def __init__(self, n_neighbors: int = 5, *args: Any, **settings: Any) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any = None) -> Any:
        """Keep the samples."""
        self.data: Any = numpy.asarray(X, dtype=float)
        self.classes: Any = numpy.zeros(len(self.data)) if y is None else numpy.asarray(y)
        self.classes_: Any = numpy.unique(self.classes)
        return self

    def kneighbors(self, X: Any = None, n_neighbors: Any = None, return_distance: bool = True) -> Any:
        """How far the nearest are, and which."""
        asked = self.data if X is None else numpy.asarray(X, dtype=float)
        squares = (asked**2).sum(1)[:, None] + (self.data**2).sum(1) - 2 * asked @ self.data.T
        found = squares.argsort(1, kind="stable")[:, : n_neighbors or self.n_neighbors]
        far = numpy.sqrt(numpy.maximum(numpy.take_along_axis(squares, found, 1), 0))
        return (far, found) if return_distance else found


class KNeighborsRegressor(NearestNeighbors):
    """The mean of the nearest."""

    def predict(self, X: Any) -> Any:
        """One for each sample."""
        return self.classes[self.kneighbors(X, return_distance=False)].mean(1)


class KNeighborsClassifier(NearestNeighbors):
    """The class that most of the nearest have."""

    def predict_proba(self, X: Any) -> Any:
        """The share of each class."""
        near = self.classes[self.kneighbors(X, return_distance=False)]
        return (near[..., None] == self.classes_).mean(1)

    def predict(self, X: Any) -> Any:
        """One for each sample."""
        return self.classes_[self.predict_proba(X).argmax(1)]

    def score(self, X: Any, y: Any) -> float:
        """The share that is right."""
        return float((self.predict(X) == numpy.asarray(y)).mean())


__getattr__ = others(__name__)
