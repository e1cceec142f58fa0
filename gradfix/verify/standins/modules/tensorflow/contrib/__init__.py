"""tensorflow.contrib: the settings that scripts for torch took from it."""

from __future__ import annotations

from ....inert import others

__getattr__ = others(__name__)
