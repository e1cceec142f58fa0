"""Samples in few dimensions, to be shown."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


class TSNE:
    """The directions in which samples differ most."""

    def __init__(self, n_components: int = 2, *args: Any, **settings: Any) -> None:
        self.n_components = n_components

    def fit_transform(self, X: Any, *args: Any) -> Any:
        """Their places along these."""
        data = numpy.asarray(X, dtype=float).reshape(len(X), -1)
        data = data - data.mean(0)
        found = data @ numpy.linalg.svd(data, full_matrices=False)[2][: self.n_components].T
        missing = self.n_components - found.shape[1]
        self.embedding_ = numpy.pad(found, ((0, 0), (0, missing))).astype(numpy.float32)
        return self.embedding_

    def fit(self, X: Any, *args: Any) -> TSNE:
        """Find them."""
        self.fit_transform(X)
        return self


MDS = Isomap = SpectralEmbedding = LocallyLinearEmbedding = TSNE
__getattr__ = others(__name__)
