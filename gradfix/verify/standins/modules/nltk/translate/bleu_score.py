"""BLEU."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any


class SmoothingFunction:
    """What is done about runs of words that never match: all of them add a little to each count."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("method"):
            raise AttributeError(name)
        return 0.0 if name == "method0" else 0.1


def corpus_bleu(
    references: Any,
    hypotheses: Any,
    weights: Any = (0.25, 0.25, 0.25, 0.25),
    smoothing_function: Any = None,
    **kwargs: Any,
) -> float:
    """Of several sentences, each with several references."""
    small = smoothing_function if isinstance(smoothing_function, float) else 0.0
    met, said, long, wanted = [0.0] * len(weights), [0.0] * len(weights), 0, 0
    for several, found in zip(references, hypotheses):
        found = list(found)
        long += len(found)
        wanted += min((len(one) for one in several), key=lambda one: (abs(one - len(found)), one), default=0)
        for order in range(1, len(weights) + 1):
            own = runs(found, order)
            most: Counter[Any] = Counter()
            for one in several:
                most |= runs(list(one), order)
            met[order - 1] += sum(min(count, most[run]) for run, count in own.items())
            said[order - 1] += sum(own.values())
    if not long or not met[0]:
        return 0.0
    parts = [(one + small * (one == 0)) / max(1.0, all_) for one, all_ in zip(met, said)]
    if not all(one > 0 for one, weight in zip(parts, weights) if weight):
        return 0.0
    mean = math.exp(sum(weight * math.log(one) for one, weight in zip(parts, weights) if weight))
    return mean * min(1.0, math.exp(1 - wanted / long))


def sentence_bleu(references: Any, hypothesis: Any, *args: Any, **kwargs: Any) -> float:
    """Of one sentence."""
    return corpus_bleu([references], [hypothesis], *args, **kwargs)


def runs(words: list[Any], order: int) -> Counter[Any]:
    """How often each run of ``order`` words occurs."""
    return Counter(tuple(words[start : start + order]) for start in range(len(words) - order + 1))
