"""fire: calls what a script offers on its command line."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from ..calls import called


def Fire(component: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Call the function, class or member that the command line names, or else the one that trains."""
    space = component if component is not None else sys.modules["__main__"].__dict__
    if inspect.isfunction(space) or inspect.isclass(space):
        return called(space)
    if isinstance(space, dict):
        members = {name: value for name, value in space.items() if inspect.isfunction(value)}
    else:
        members = dict(inspect.getmembers(space, inspect.isroutine))
    for name in ("train", "main", "run", "fit"):
        if name in members:
            return called(members[name])
    own = [value for value in members.values() if getattr(value, "__module__", "") == "__main__"]
    return called(own[0]) if own else None
