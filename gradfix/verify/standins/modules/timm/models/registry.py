"""timm.models.registry: networks that a script makes known."""

from __future__ import annotations

from typing import Any

known: dict[str, Any] = {}
"""Functions that make networks, by name."""


def register_model(function: Any) -> Any:
    """Make a network known."""
    known[function.__name__] = function
    return function


def is_model(name: str) -> bool:
    """Whether a network is known."""
    return name in known


def model_entrypoint(name: str) -> Any:
    """The function that makes a network."""
    return known[name]
