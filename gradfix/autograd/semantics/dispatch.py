"""Dispatch by the kind of a value: calls, methods, attributes, items, iteration.

The modules of this package register what each kind does, so that none of them has to know the others. A kind
without an entry of its own uses that of its base class.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from gradfix.autograd.arguments import Call
from gradfix.autograd.run import Run
from gradfix.autograd.values import Value

Transfer = Callable[[Run, Call], Value | None]
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


_called, _attributes, _items, _iterated = (ByKind() for _ in range(4))
called, attributes_of, items_of, iterated = (t.register for t in (_called, _attributes, _items, _iterated))
_before, _other = ByKind(), ByKind()
before_methods, other_methods = _before.register, _other.register
"""The decorators of what comes before the methods that have a name here, as a value may have one of its own
by that name, and of what any other method does."""
_methods: dict[tuple[type[Value], str], Any] = {}
FUNCTIONS: dict[str, Transfer] = {}
"""What functions and classes from outside of the project do, by their dotted names."""
PACKAGES: dict[str, Transfer] = {}
"""What all other functions and classes of a package do, by the name of the package."""


def method(kind: type[Value], *names: str) -> Callable[[Registered], Registered]:
    """Decorator: registers what these methods of a kind of value do.

    The function is given the run, the value and the call. If it returns None, the method is treated like one
    that is not registered.
    """

    def register(transfer: Registered) -> Registered:
        for name in names:
            assert (kind, name) not in _methods, f"{kind.__name__}.{name} is there already"
            _methods[kind, name] = transfer
        return transfer

    return register


def function(*names: str) -> Callable[[Registered], Registered]:
    """Decorator: registers what these functions or classes from outside do, by their dotted names.

    The function is given the run and the call. If it returns None, they are treated like others of the
    library.
    """

    def register(transfer: Registered) -> Registered:
        for name in names:
            assert name not in FUNCTIONS, f"{name} is there already"
            FUNCTIONS[name] = transfer
        return transfer

    return register


def package(*names: str) -> Callable[[Registered], Registered]:
    """Decorator: registers what all functions and classes of a package do that are not registered themselves.

    The function is given the run and the call. If it returns None, the package around it decides.
    """

    def register(transfer: Registered) -> Registered:
        for name in names:
            assert name not in PACKAGES, f"{name} is there already"
            PACKAGES[name] = transfer
        return transfer

    return register


def registered_methods() -> list[tuple[type[Value], str]]:
    """The methods that have a name here."""
    return list(_methods)


@lru_cache(maxsize=8192)
def method_of(kind: type, name: str) -> Callable[[Run, Any, Call], Value | None] | None:
    """What a method does, by the nearest of the kinds that this one is derived from."""
    return next((_methods[base, name] for base in kind.__mro__ if (base, name) in _methods), None)


@lru_cache(maxsize=8192)
def functions_of(name: str) -> tuple[Callable[[Run, Call], Value | None], ...]:
    """What something from outside does: as itself, or as one of its package, or of a package around that."""
    parts = name.split(".")
    around = (PACKAGES.get(".".join(parts[:k])) for k in range(len(parts) - 1, 0, -1))
    return tuple(filter(None, (FUNCTIONS.get(name), *around)))


def call_value(run: Run, value: Value, call: Call) -> Value:
    """Call any value."""
    return _called[value.__class__](run, value, call)  # type: ignore[no-any-return]


def call_method(run: Run, base: Value, call: Call) -> Value:
    """``base.name(...)``."""
    before = _before[base.__class__]
    if before is not None:
        result: Value | None = before(run, base, call)
        if result is not None:
            return result
    return inherent_method(run, base, call)


def inherent_method(run: Run, base: Value, call: Call) -> Value:
    """``base.name(...)`` as its kind has it, whatever the project has put in its place."""
    kind: Any = base.__class__
    transfer = method_of(kind, call.name)
    if transfer is not None:
        result = transfer(run, base, call)
        if result is not None:
            return result
    return _other[kind](run, base, call)  # type: ignore[no-any-return]


def attribute(run: Run, value: Value, name: str, node: ast.AST) -> Value:
    """``value.name``."""
    return _attributes[value.__class__](run, value, name, node)  # type: ignore[no-any-return]


def item(run: Run, value: Value, index: Value, expression: ast.expr, site: ast.AST | None = None) -> Value:
    """``value[index]`` for an index that is not a slice."""
    return _items[value.__class__](run, value, index, expression, site)  # type: ignore[no-any-return]


def iterate(
    run: Run, value: Value, site: ast.expr | None
) -> tuple[list[Value] | None, Callable[[int], Value]]:
    """What iterating over ``value`` gives: all items, or None and a function from iteration to item."""
    return _iterated[value.__class__](run, value, site)  # type: ignore[no-any-return]
