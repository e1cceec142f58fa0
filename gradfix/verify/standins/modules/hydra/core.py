"""What a run says of itself."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...inert import Inert, others


class Kept(NamedTuple):
    """Settings that a class or a dictionary gives, and where they belong if that is said."""

    node: Any
    package: str | None


_kept: dict[tuple[str, str], Kept] = {}


def stored(group: str, name: str) -> Kept | None:
    """What was stored under a name in a group, which is none at the top."""
    return _kept.get((group, name.removesuffix(".yaml")))


class ConfigStore:
    """Settings that classes give."""

    @staticmethod
    def instance() -> ConfigStore:
        """The only one."""
        return ConfigStore()

    def store(
        self, name: str, node: Any, group: str | None = None, package: str | None = None, provider: Any = None
    ) -> None:
        """Keep settings for lists of defaults, and for what a script is called with."""
        _kept[group or "", name.removesuffix(".yaml")] = Kept(node, package)


class HydraConfig:
    """Of the run."""

    @staticmethod
    def get() -> Any:
        """Nobody knows."""
        return Inert("hydra.core.HydraConfig")


__getattr__ = others(__name__)
