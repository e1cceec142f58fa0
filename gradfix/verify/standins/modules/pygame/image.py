"""Pictures in files. The size in the head of a file is right, whatever its format; so are the pixels of a
PNG, and those of others where PIL is installed."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import numpy as np

from ... import absent, media, png
from ...context import run
from ...samples import pil
from .surface import Surface

SPRITE = 32
"""Height and width of pictures that are not there: parts of a game are small."""


def of(values: Any) -> Surface:
    """The surface of a picture, height x width x 3, or 4 with alpha."""
    high, wide, channels = values.shape
    made = Surface((wide, high), 1 << 16 if channels == 4 else 0)
    made.held[..., 2::-1] = values[..., :3].transpose(1, 0, 2)
    if channels == 4:
        made.held[..., 3] = values[..., 3].T
    return made


def load(file: Any, namehint: str = "") -> Surface:
    """The picture of a file; a made-up one of a file that is not there."""
    if isinstance(file, (str, os.PathLike)):
        name = os.path.basename(os.fspath(file))
        if absent.is_absent(file):
            run().used("pictures of pygame", f"made-up ones of {SPRITE} x {SPRITE}")
            return of(media.pixels(run(), name, SPRITE, SPRITE).numpy())
        with open(file, "rb") as opened:
            data = opened.read()
    else:
        name, data = namehint, file.read()
    try:
        return of(values_of(data, name))
    except ValueError as wrong:
        from . import error

        raise error("Unsupported image format") from wrong


load_basic = load_extended = load


def values_of(data: bytes, name: str) -> Any:
    """The picture of a file's content, height x width x 3 or 4."""
    size = png.size(data)
    if size is None:
        raise ValueError("no picture")
    found = png.decoded(data) if data[:8] == png.BEGIN else None
    if found is not None and found.palette is not None:
        colours = found.palette[found.values[..., 0]]
        return colours if (found.palette[..., 3] < 255).any() else colours[..., :3]
    if found is not None:
        grey = found.values.shape[2] < 3
        shown = found.values[..., :1].repeat(3, -1) if grey else found.values
        return np.concatenate([shown, found.values[..., 1:]], -1) if grey else shown
    image = pil()
    if "_gradfix_standins" not in getattr(image, "__name__", ""):
        picture = image.open(io.BytesIO(data))
        clear = picture.mode in ("RGBA", "LA") or "transparency" in picture.info
        return np.array(picture.convert("RGBA" if clear else "RGB"))
    run().used("pixels of pictures of pygame", "made-up ones, in the size of the file's")
    return media.pixels(run(), name, size[1], size[0]).numpy()


def save(surface: Surface, file: Any, *args: Any) -> None:
    """Write a picture to a path."""
    media.keep_array(file, np.ascontiguousarray(surface.held[..., 2::-1].transpose(1, 0, 2)))


save_extended = save
ORDERS = {
    "P": [0],
    "RGB": [2, 1, 0],
    "BGR": [0, 1, 2],
    "RGBA": [2, 1, 0, 3],
    "RGBX": [2, 1, 0, 3],
    "BGRA": [0, 1, 2, 3],
    "ARGB": [3, 2, 1, 0],
    "RGBA_PREMULT": [2, 1, 0, 3],
}
"""Where the bytes of a format are in those of a surface."""


def tobytes(surface: Surface, format: str, flipped: bool = False, *args: Any) -> bytes:
    """The bytes of a surface, row by row."""
    whole = surface.convert_alpha() if len(ORDERS[format]) == 4 else surface
    held = whole.held[..., ORDERS[format]].transpose(1, 0, 2)
    return bytes((held[::-1] if flipped else held).tobytes())


def frombytes(data: Any, size: Any, format: str, flipped: bool = False, *args: Any) -> Surface:
    """A surface of bytes, row by row."""
    order = ORDERS[format]
    values = np.frombuffer(data, np.uint8).reshape(int(size[1]), int(size[0]), len(order)).transpose(1, 0, 2)
    made = Surface(size, 1 << 16 if len(order) == 4 and format != "RGBX" else 0)
    made.held[..., order] = values[:, ::-1] if flipped else values
    if not made.has_alpha:
        made.held[..., 3] = 0
    return made


tostring, fromstring, frombuffer = tobytes, frombytes, frombytes


def get_extended() -> bool:
    """All formats are known."""
    return True


def get_sdl_image_version() -> tuple[int, int, int]:
    """As of pygame 2.6."""
    return 2, 8, 2


imageext = sys.modules[__name__]
