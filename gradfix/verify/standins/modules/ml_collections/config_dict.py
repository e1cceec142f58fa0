"""ml_collections.config_dict."""

from __future__ import annotations

from typing import Any


def placeholder(kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Nothing yet."""
    return None


required_placeholder = placeholder


def __getattr__(name: str) -> Any:
    """The classes, which are those of the package."""
    from .. import ml_collections

    if name in ("ConfigDict", "FrozenConfigDict"):
        return getattr(ml_collections, name)
    raise AttributeError(name)


def create(**kwargs: Any) -> Any:
    """Settings of their names."""
    from .. import ml_collections

    return ml_collections.ConfigDict(kwargs)
