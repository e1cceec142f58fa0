"""yacs: settings of a project."""

from __future__ import annotations

from .config import CfgNode

__all__ = ["CfgNode"]
