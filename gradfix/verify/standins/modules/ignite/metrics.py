"""Measures, which measure nothing: 0 in a state's metrics."""

from __future__ import annotations

from typing import Any


class Metric:
    """Any measure."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def attach(self, engine: Any, name: str, *args: Any, **kwargs: Any) -> None:
        """It is 0 in the engine's state."""
        engine.state.metrics[name] = 0.0

    def update(self, *args: Any) -> None:
        """Nothing is measured."""

    reset = update

    def compute(self) -> float:
        """Nothing is measured."""
        return 0.0


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (Metric,), {})
