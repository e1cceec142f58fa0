"""Reading pictures."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others
from ...media import keep_array
from ...samples import pil


def imread(path: Any, as_gray: bool = False, *args: Any, **kwargs: Any) -> Any:
    """The picture of a file."""
    found = numpy.array(pil().open(path).convert("RGB"))
    return found.mean(-1) / 255 if as_gray else found


def imsave(path: Any, values: Any, *args: Any, **kwargs: Any) -> None:
    """Write a picture."""
    keep_array(path, values)


def imshow(*args: Any, **kwargs: Any) -> None:
    """Nothing is shown."""


show = imshow
__getattr__ = others(__name__)
