"""monotonic_align.core: the search itself, for each sample of a batch."""

from __future__ import annotations

from typing import Any


def maximum_path_c(paths: Any, values: Any, t_xs: Any, t_ys: Any, max_neg_val: float = -1e9) -> None:
    """Write ones along the best way through each of ``values``, of shape (batch, letters, moments).

    It begins at the first letter, ends at the last of ``t_xs`` at the last moment of ``t_ys``, and goes on by
    one letter or none from a moment to the next.
    """
    for path, value, letters, moments in zip(paths, values, t_xs, t_ys):
        best = [[max_neg_val] * moments for _ in range(letters)]
        for moment in range(moments):
            for letter in range(max(0, letters + moment - moments), min(letters, moment + 1)):
                stay = best[letter][moment - 1] if moment > letter else max_neg_val
                go = best[letter - 1][moment - 1] if letter else max_neg_val
                first = 0.0 if moment == 0 else max(stay, go)
                best[letter][moment] = float(value[letter, moment]) + first
        letter = letters - 1
        for moment in range(moments - 1, -1, -1):
            path[letter, moment] = 1
            behind = moment and letter and best[letter][moment - 1] < best[letter - 1][moment - 1]
            if letter and (letter == moment or behind):
                letter -= 1
