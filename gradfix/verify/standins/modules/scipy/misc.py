"""Pictures, as older versions read and wrote them."""

from __future__ import annotations

from typing import Any

import numpy

from ...media import keep_array
from ...samples import pil, shown_in


def imread(path: Any, flatten: bool = False, mode: str | None = None, **kwargs: Any) -> Any:
    """A picture as an array."""
    shown = shown_in(path, "L" if flatten else mode)
    return numpy.asarray(shown).astype(float) if flatten else numpy.asarray(shown).copy()


def imresize(values: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """A picture of another size: a factor, a percentage, or height and width."""
    values = numpy.asarray(values)
    if values.ndim == 3 and values.shape[-1] not in (1, 3, 4) and values.shape[0] in (3, 4):
        values = values.transpose(1, 2, 0)  # The answer has its colours last, wherever they were.
    if isinstance(size, float):
        height, width = (int(side * size) for side in values.shape[:2])
    elif isinstance(size, int):
        height, width = (side * size // 100 for side in values.shape[:2])
    else:
        height, width = size[:2]
    shown = pil().fromarray(values.astype(numpy.uint8))
    return numpy.asarray(shown.resize((width, height))).copy()


def imsave(path: Any, values: Any, *args: Any, **kwargs: Any) -> None:
    """Write a picture."""
    keep_array(path, values)


def toimage(values: Any, *args: Any, **kwargs: Any) -> Any:
    """A picture of an array."""
    return pil().fromarray(numpy.asarray(values))


def imshow(*args: Any, **kwargs: Any) -> None:
    """Nothing is shown."""


def imrotate(values: Any, angle: float, *args: Any, **kwargs: Any) -> Any:
    """Turned by quarters."""
    return numpy.rot90(numpy.asarray(values), round(angle / 90)).copy()


def logsumexp(values: Any, axis: Any = None, **kwargs: Any) -> Any:
    """The logarithm of the sum of exponentials."""
    values = numpy.asarray(values)
    top = values.max()
    return numpy.log(numpy.exp(values - top).sum(axis=axis)) + top
