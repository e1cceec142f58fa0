"""Lengths and scales."""

from __future__ import annotations

import glob
import os
from typing import Any

import numpy

from ...inert import others


def normalize(values: Any, *args: Any, **kwargs: Any) -> Any:
    """With the largest magnitude 1."""
    top = numpy.abs(values).max()
    return values / (top or 1)


def fix_length(values: Any, size: int, **kwargs: Any) -> Any:
    """Cut or padded."""
    values = values[..., :size]
    return numpy.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, size - values.shape[-1])])


def pad_center(values: Any, size: int, **kwargs: Any) -> Any:
    """Padded at both ends."""
    before = (size - len(values)) // 2
    return numpy.pad(values, (before, size - len(values) - before))


def tiny(values: Any) -> Any:
    """The smallest number."""
    return numpy.finfo(numpy.float32).tiny


def find_files(directory: Any, ext: Any = None, recurse: bool = True, *args: Any, **kwargs: Any) -> list[str]:
    """The files of a folder that hold sounds, or have an ending, with their whole paths."""
    wanted = [ext] if isinstance(ext, str) else ext or ["wav", "flac", "mp3", "ogg", "au", "m4a", "aac"]
    # By the module that a script would ask itself, which knows of folders that are made up.
    found = {
        os.path.abspath(path)
        for one in (wanted if ext else wanted[:1])
        for pattern in ([f"*.{one}", f"**/*.{one}"] if recurse else [f"*.{one}"])
        for path in glob.glob(os.path.join(directory, pattern), recursive=recurse)
    }
    return sorted(found)


__getattr__ = others(__name__)
