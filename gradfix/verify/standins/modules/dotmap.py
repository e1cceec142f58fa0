"""dotmap, attrdict and box: keys as attributes."""

from __future__ import annotations

from typing import Any

from .addict import Dict
from .easydict import EasyDict


class DotMap(Dict):
    """What is not there is empty, and may be filled."""

    def toDict(self) -> dict[str, Any]:
        """The same as plain dictionaries."""
        return self.to_dict()


class Box(EasyDict):
    """A dictionary whose keys are attributes."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries."""
        return {name: one.to_dict() if isinstance(one, Box) else one for name, one in self.items()}


AttrDict = AttrMap = ConfigBox = SBox = Box
