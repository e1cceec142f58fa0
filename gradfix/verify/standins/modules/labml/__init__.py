"""labml: settings that are computed when they are asked for; nothing is logged or kept."""

from __future__ import annotations

from ...inert import others

__getattr__ = others(__name__)
