"""Autograd's own errors, told by their messages."""

from __future__ import annotations

FREED = "backward through the graph a second time"
MOVED = "modified by an inplace operation"
KINDS = (
    ("E1", FREED),
    ("E2", MOVED),
    ("E3", "does not require grad and does not have a grad_fn"),
    ("E3", "One of the differentiated Tensors does not require grad"),
    ("E4", "leaf Variable that requires grad"),
    # Autograd refuses this of views; no codemod is about it.
    ("E5", "is being modified inplace"),
)


def kind_of(error: BaseException) -> str:
    """Which of autograd's own errors this is, or ``other``."""
    if isinstance(error, RuntimeError):
        for kind, text in KINDS:
            if text in str(error):
                return kind
    return "other"


def error_in(error: BaseException | None) -> tuple[str, BaseException] | None:
    """The error of autograd in a chain of errors, with its kind; the one that was raised last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        kind = kind_of(error)
        if kind != "other":
            return kind, error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None
