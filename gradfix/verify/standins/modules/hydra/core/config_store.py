"""Settings that code registers by a name."""

from __future__ import annotations

from typing import Any

STORED: dict[str, Any] = {}


class ConfigStore:
    """There is one."""

    @classmethod
    def instance(cls) -> ConfigStore:
        """It."""
        return cls()

    def store(self, name: str, node: Any, group: Any = None, **others: Any) -> None:
        """Register settings."""
        STORED[name] = node
