"""What is done with a value, by its kind: it is called, asked for a method, for an attribute, for an item.

The modules of this package register what each kind does, so that none of them has to know the others. A kind
that has nothing of its own does what the kind does that it is derived from.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

from gradfix.autograd.arguments import Call
from gradfix.autograd.run import Run
from gradfix.autograd.values import Value

Transfer = Callable[[Run, Call], Value]
"""What a function from outside of the project does."""
Registered = TypeVar("Registered", bound=Callable[..., Any])


class ByKind(dict[type[Value], Any]):
    """A table by kinds of values, in which a kind has what its nearest base has."""

    def __missing__(self, kind: type[Value]) -> Any:
        found = next((self[base] for base in kind.__mro__[1:] if base in self), None)
        self[kind] = found
        return found

    def register(self, *kinds: type[Value]) -> Callable[[Registered], Registered]:
        """The decorator that puts a function into the table for some kinds."""

        def decorator(function: Registered) -> Registered:
            self.update(dict.fromkeys(kinds, function))
            return function

        return decorator


_called, _methods, _attributes, _items, _iterated = (ByKind() for _ in range(5))


called, methods_of, attributes_of = _called.register, _methods.register, _attributes.register


items_of, iterated = _items.register, _iterated.register


def call_value(run: Run, value: Value, call: Call) -> Value:
    """Call any value; ``discarded`` if the call stands as a statement of its own."""
    return _called[value.__class__](run, value, call)  # type: ignore[no-any-return]


def call_method(
    run: Run,
    base: Value,
    call: Call,
) -> Value:
    """``base.name(...)``."""
    return _methods[base.__class__](run, base, call)  # type: ignore[no-any-return]


def attribute(run: Run, value: Value, name: str, node: ast.AST) -> Value:
    """``value.name``."""
    return _attributes[value.__class__](run, value, name, node)  # type: ignore[no-any-return]


def item(run: Run, value: Value, index: Value, expression: ast.expr, site: ast.AST | None = None) -> Value:
    """``value[index]`` for an index that is not a slice."""
    return _items[value.__class__](run, value, index, expression, site)  # type: ignore[no-any-return]


def iterate(
    run: Run, value: Value, site: ast.expr | None
) -> tuple[list[Value] | None, Callable[[int], Value]]:
    """What iterating over ``value`` gives: all items, or None and a function from pass to item."""
    return _iterated[value.__class__](run, value, site)  # type: ignore[no-any-return]
