"""imageio: pictures as arrays."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others
from ...media import keep_array
from ...samples import shown_in


def imread(path: Any, *args: Any, **kwargs: Any) -> Any:
    """The picture of a file."""
    return numpy.array(shown_in(path))


def imwrite(path: Any, values: Any, *args: Any, **kwargs: Any) -> None:
    """Write a picture."""
    keep_array(path, values)


def mimwrite(*args: Any, **kwargs: Any) -> None:
    """Nothing is kept of moving pictures."""


imsave, mimsave, volwrite = imwrite, mimwrite, mimwrite


class _Writer:
    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def append_data(self, *args: Any) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


def get_writer(*args: Any, **kwargs: Any) -> _Writer:
    """Writes nothing."""
    return _Writer()


__getattr__ = others(__name__)
