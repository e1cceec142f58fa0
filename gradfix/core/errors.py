"""The text of autograd's errors, by the number that gradfix gives them."""

from __future__ import annotations

WORDS = {
    "E1": "Trying to backward through the graph a second time",
    "E2": "modified by an inplace operation",
    "E3": "does not require grad and does not have a grad_fn",
    "E4": "a leaf Variable that requires grad is being used in an in-place operation",
    "E5": "is a view and is being modified inplace",
}


def quoted(kind: str) -> str:
    """An error as people know it: by autograd's words, and not by its number."""
    return f'"{WORDS[kind]}"'
