"""Reading pictures."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others
from ...samples import pil


def imread(path: Any, as_gray: bool = False, *args: Any, **kwargs: Any) -> Any:
    """The picture of a file."""
    found = numpy.array(pil().open(path).convert("RGB"))
    return found.mean(-1) / 255 if as_gray else found


def imsave(*args: Any, **kwargs: Any) -> None:
    """Nothing is kept or shown."""


imshow = show = imsave
__getattr__ = others(__name__)
