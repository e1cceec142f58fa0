"""pycocotools: annotations of made-up pictures."""

from __future__ import annotations

from ...inert import others

__getattr__ = others(__name__)
