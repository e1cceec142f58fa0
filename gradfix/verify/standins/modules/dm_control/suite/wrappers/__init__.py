"""Environments in others."""

from __future__ import annotations

from . import action_scale, pixels

__all__ = ["action_scale", "pixels"]
