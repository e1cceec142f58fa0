"""What keeps, stops or shows; none of it does here."""

from __future__ import annotations

from typing import Any


class Handler:
    """Anything that is called at events."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.last_checkpoint = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def attach(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is done."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (Handler,), {})
