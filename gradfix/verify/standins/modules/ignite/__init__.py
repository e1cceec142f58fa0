"""ignite: loops that call the script's own functions. Nothing is measured."""

from __future__ import annotations

from ...inert import others

__getattr__ = others(__name__)
