"""packaging: versions in their order."""

from __future__ import annotations

from . import version

__all__ = ["version"]
