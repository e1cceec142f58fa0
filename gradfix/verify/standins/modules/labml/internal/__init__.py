"""What of labml is not for others, and is imported all the same."""

from __future__ import annotations

from ....inert import others

__getattr__ = others(__name__)
