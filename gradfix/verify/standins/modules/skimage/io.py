"""Reading pictures."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others
from ...media import keep_array
from ...samples import shown_in


def imread(path: Any, as_gray: bool = False, *args: Any, **kwargs: Any) -> Any:
    """The picture of a file."""
    return numpy.array(shown_in(path, "L")) / 255 if as_gray else numpy.array(shown_in(path))


def imsave(path: Any, values: Any, *args: Any, **kwargs: Any) -> None:
    """Write a picture."""
    keep_array(path, values)


def imshow(*args: Any, **kwargs: Any) -> None:
    """Nothing is shown."""


show = imshow
__getattr__ = others(__name__)
