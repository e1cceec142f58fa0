"""What scripts take of labml beside its settings."""

from __future__ import annotations

from ....inert import others

__getattr__ = others(__name__)
