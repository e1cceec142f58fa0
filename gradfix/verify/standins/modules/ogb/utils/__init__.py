"""What the networks for molecules need to know."""

from __future__ import annotations

from ....inert import others

__getattr__ = others(__name__)
