"""Groups of samples, by Lloyd's method."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others

TURNS = 10


class KMeans:
    """Each sample belongs to the nearest of some centres, which are the means of what belongs to them."""

    def __init__(self, n_clusters: int = 8, *args: Any, **settings: Any) -> None:
        self.n_clusters = n_clusters

    def fit(self, X: Any, *args: Any, **kwargs: Any) -> KMeans:
        """Find the centres, from samples that lie far apart in the order that they come in."""
        data = numpy.asarray(X, dtype=float)
        places = numpy.linspace(0, len(data) - 1, self.n_clusters).astype(int)
        self.cluster_centers_ = data[places].copy()
        for _ in range(TURNS):
            nearest = self.predict(data)
            for number in numpy.unique(nearest):
                self.cluster_centers_[number] = data[nearest == number].mean(0)
        self.labels_ = self.predict(data)
        self.inertia_ = float((self.transform(data).min(1) ** 2).sum())
        self.n_iter_ = TURNS
        return self

    def transform(self, X: Any) -> Any:
        """How far each sample is from each centre."""
        data = numpy.asarray(X, dtype=float)
        squares = (data**2).sum(1)[:, None] + (self.cluster_centers_**2).sum(1)
        return numpy.sqrt(numpy.maximum(squares - 2 * data @ self.cluster_centers_.T, 0))

    def predict(self, X: Any) -> Any:
        """The number of the nearest centre."""
        return self.transform(X).argmin(1)

    def fit_predict(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Both."""
        return self.fit(X).labels_

    def fit_transform(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Both."""
        return self.fit(X).transform(X)


class MiniBatchKMeans(KMeans):
    """The same."""

    partial_fit = KMeans.fit


__getattr__ = others(__name__)
