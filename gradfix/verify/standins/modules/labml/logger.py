"""Messages, which nobody reads."""

from __future__ import annotations

from typing import Any

from ...inert import Inert, others


def log(*args: Any, **kwargs: Any) -> None:
    """Nothing."""


inspect = log
Text, Color, Style = (Inert("labml.logger." + name, lenient=True) for name in ("Text", "Color", "Style"))


__getattr__ = others(__name__)
