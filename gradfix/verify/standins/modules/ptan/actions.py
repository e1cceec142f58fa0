"""Actions by what a network says of them; what is random draws from numpy's generator, as it really does."""

from __future__ import annotations

from typing import Any

import numpy


class ActionSelector:
    """The base of all."""

    def __call__(self, scores: Any) -> Any:
        raise NotImplementedError


class ArgmaxActionSelector(ActionSelector):
    """The best ones."""

    def __call__(self, scores: Any) -> Any:
        return numpy.argmax(scores, axis=1)


class EpsilonGreedyActionSelector(ActionSelector):
    """Another selector's, and now and then any."""

    def __init__(self, epsilon: float = 0.05, selector: Any = None) -> None:
        self.epsilon = epsilon
        self.selector = selector or ArgmaxActionSelector()

    def __call__(self, scores: Any) -> Any:
        batch, kinds = scores.shape
        actions = self.selector(scores)
        changed = numpy.random.random(size=batch) < self.epsilon
        actions[changed] = numpy.random.choice(kinds, int(changed.sum()))
        return actions


class ProbabilityActionSelector(ActionSelector):
    """Drawn by their probabilities."""

    def __call__(self, probs: Any) -> Any:
        return numpy.array([numpy.random.choice(len(one), p=one) for one in probs])
