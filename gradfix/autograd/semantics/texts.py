"""Methods of strings."""

from __future__ import annotations

from gradfix.autograd.arguments import Argument, Keywords
from gradfix.autograd.values import (
    Const,
    GrowingLength,
    Sequence,
    Value,
    graphless_value,
    known_items,
    length,
    spelled,
)

TEXT = frozenset(
    "lower upper capitalize title strip lstrip rstrip startswith endswith replace format split".split()
)
"""Methods of texts that give what is known where everything is."""


def text_method(text: str, name: str, args: list[Argument], keywords: Keywords) -> Value:
    if name == "join" and len(args) == 1:
        parts = known_items(args[0][0])
        if parts is None:
            return graphless_value("text")
        return spelled("", lambda: text.join(parts), length(parts) + len(parts) * len(text))
    given = {key: value.value for key, (value, _) in keywords.items() if type(value) is Const}
    fixed = [value for value, _ in args if not isinstance(value, GrowingLength)]
    constants = [value.value for value in fixed if isinstance(value, Const)]
    if name not in TEXT or len(constants) < len(args) or len(given) < len(keywords):
        return graphless_value("text")
    # Every character may be replaced, and every placeholder filled.
    size = (len(text) + 1) * max(map(length, (*constants, *given.values())), default=1)
    size = size if name == "replace" else len(text) + text.count("{") * size // (len(text) + 1)
    found = spelled(text, lambda: getattr(text, name)(*constants, **given), size)
    if isinstance(found, Const) and isinstance(found.value, list):
        return Sequence("list", [Const(part) for part in found.value])
    return found
