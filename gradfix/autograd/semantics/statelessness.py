"""Whether a network keeps state from call to call."""

from __future__ import annotations

import ast
from functools import lru_cache

from gradfix.autograd.parameters import LAYERED
from gradfix.autograd.values import Class, Module, Unknown, Value, is_plain
from gradfix.core.syntax import walk


def keeps_nothing(module: Module, seen: set[Module] | None = None) -> bool:
    """Whether a network, with all of its layers, keeps no graph from call to call.

    Those that have been ``seen`` are being asked about already.
    """
    seen = set() if seen is None else seen
    if module in seen:
        return True
    seen.add(module)
    if module.kind == "user":
        if module.cls is None or not _leaves_itself_alone(module.cls):
            return False
    elif module.leaf is None and not module.items and module.kind in LAYERED:
        return False
    parts = [*module.items, *(v for v in module.attributes.values() if isinstance(v, (Module, Unknown)))]
    return all(part.stateless() if isinstance(part, Unknown) else _layer(part, seen) for part in parts)


def _layer(part: Value, seen: set[Module]) -> bool:
    return isinstance(part, Module) and (is_plain(part) or keeps_nothing(part, seen))


@lru_cache(maxsize=64)
def _leaves_itself_alone(cls: Class) -> bool:
    """Whether no method of a class but its constructor writes to attributes or to what they hold."""
    if cls.unknown_bases():
        return False
    for method in (node for c in cls.order() for node in c.node.body):
        if getattr(method, "name", "") == "__init__":
            continue
        for node in walk(method):
            if isinstance(node, ast.Global) or (
                isinstance(node, (ast.Attribute, ast.Subscript))
                and (isinstance(node.ctx, ast.Store) or getattr(node, "attr", "") in KEEPING)
                and _of_self(node)
            ):
                return False
    return True


def _of_self(node: ast.expr) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"


KEEPING = frozenset("append extend insert add update setdefault register_buffer __setattr__ setattr".split())
"""Methods by which something is put away in a list, a dict or an object."""
