"""The text of autograd's errors, by the number that gradfix gives them."""

from __future__ import annotations

import re

WORDS = {
    "E1": "Trying to backward through the graph a second time",
    "E2": "modified by an inplace operation",
    "E3": "does not require grad and does not have a grad_fn",
    "E4": "a leaf Variable that requires grad is being used in an in-place operation",
    "E5": "is a view and is being modified inplace",
}


def spelled(lines: list[str]) -> list[str]:
    """``lines`` with autograd's words beside the first mention of each of its errors."""
    seen: set[str] = set()

    def words(match: re.Match[str]) -> str:
        kind = match[0]
        if kind in seen:
            return kind
        seen.add(kind)
        return f'{kind} ("{WORDS[kind]}")'

    return [re.sub(r"\bE[1-5]\b", words, line) for line in lines]
