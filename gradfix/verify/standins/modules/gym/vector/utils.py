"""Arrays of what several environments answer."""

from __future__ import annotations

from typing import Any

from ....spaces import Dict, Space, Tuple, numpy


def create_empty_array(space: Any, n: Any = 1, fn: Any = None) -> Any:
    """Room for ``n`` values of a space, or for one if that is nothing; made by ``fn``."""
    if isinstance(space, Dict):
        return {name: create_empty_array(one, n, fn) for name, one in space.items()}
    if isinstance(space, Tuple):
        return tuple(create_empty_array(one, n, fn) for one in space.spaces)
    shape = (() if n is None else (n,)) + tuple(space.shape)
    return (fn or numpy().zeros)(shape, dtype=space.dtype)


def concatenate(*given: Any, **named: Any) -> Any:
    """Put values into the room that there is for them. The space comes first, until gym 0.21 it came last."""
    space = named.get("space", next((one for one in given if isinstance(one, Space)), None))
    rest = [one for one in given if not isinstance(one, Space)]
    items, out = (*rest, *(named[name] for name in ("items", "out") if name in named))
    if isinstance(space, (Dict, Tuple)):
        inner: Any = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
        for key, one in inner:
            concatenate([item[key] for item in items], out[key], one)
    else:
        numpy().stack(items, axis=0, out=out)
    return out


def iterate(space: Any, items: Any) -> Any:
    """One value after the other."""
    if isinstance(space, Dict):
        return ({name: items[name][i] for name in items} for i in range(len(next(iter(items.values())))))
    return zip(*items) if isinstance(space, Tuple) else iter(items)
