"""rltorch: networks of linear layers, and memories of what an agent has seen."""

from . import memory, network

__all__ = ["memory", "network"]
