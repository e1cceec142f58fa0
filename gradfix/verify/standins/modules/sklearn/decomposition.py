"""Main directions."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others
from .preprocessing import Transformer


class PCA(Transformer):
    """The directions of the largest variance."""

    def __init__(self, n_components: Any = None, **kwargs: Any) -> None:
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Any:
        X = numpy.asarray(X, float)
        self.mean_ = X.mean(0)
        _, levels, rows = numpy.linalg.svd(X - self.mean_, full_matrices=False)
        count = int(self.n_components) if self.n_components and self.n_components >= 1 else len(rows)
        self.components_ = rows[:count]
        self.explained_variance_ = (levels**2 / max(1, len(X) - 1))[:count]
        self.explained_variance_ratio_ = (levels**2 / (levels**2).sum())[:count]
        return self

    def transform(self, X: Any) -> Any:
        return (numpy.asarray(X, float) - self.mean_) @ self.components_.T

    def inverse_transform(self, X: Any) -> Any:
        """Change back."""
        return numpy.asarray(X, float) @ self.components_ + self.mean_


TruncatedSVD = IncrementalPCA = PCA
__getattr__ = others(__name__)
