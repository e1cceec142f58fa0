"""Pictures in files."""

from __future__ import annotations

import os
from typing import Any

from ... import absent, media
from ...context import run
from ...samples import pil
from .surface import SRCALPHA, Surface, numpy

SIDE = 32
"""Height and width of a picture that is not there."""
ORDERS = {
    "RGB": (0, 1, 2),
    "RGBA": (0, 1, 2, 3),
    "BGRA": (2, 1, 0, 3),
    "ARGB": (3, 0, 1, 2),
    "RGBX": (0, 1, 2, 3),
}
"""Which parts of a pixel stand one after another in bytes."""


def load(file: Any, namehint: str = "") -> Surface:
    """The picture of a file; a made-up one of a file that is not there."""
    if absent.is_absent(file):
        run().used("pictures of pygame", f"made-up ones of {SIDE} x {SIDE}")
        if numpy is None:
            return Surface((SIDE, SIDE))
        found = media.pixels(run(), os.path.basename(str(file)), SIDE, SIDE).numpy()
    elif numpy is None:
        return Surface(pil().open(file).size)
    else:
        picture = pil().open(file)
        clear = picture.mode in ("RGBA", "LA") or "transparency" in picture.info
        found = numpy.array(picture.convert("RGBA" if clear else "RGB"))
    made = Surface(found.shape[1::-1], SRCALPHA if found.shape[2] == 4 else 0)
    made._pixels[..., : found.shape[2]] = found.swapaxes(0, 1)
    return made


load_basic = load_extended = load


def save(surface: Surface, file: Any, *args: Any) -> None:
    """Write a picture."""
    if numpy is not None:
        media.keep_array(file, surface._pixels[..., :3].swapaxes(0, 1).copy())


save_extended = save


def tobytes(surface: Surface, format: str = "RGB", flipped: bool = False) -> bytes:
    """Row after row."""
    if format == "P":
        raise ValueError("can only create string from 8bit surfaces")
    if numpy is None:
        return bytes(len(ORDERS[format]) * surface.width * surface.height)
    rows = surface._pixels.swapaxes(0, 1)[:: -1 if flipped else 1]
    return bytes(rows[..., list(ORDERS[format])].tobytes())


def frombytes(data: Any, size: Any, format: str = "RGB", flipped: bool = False) -> Surface:
    """The picture that rows of bytes are."""
    order = ORDERS[format]
    made = Surface(size, SRCALPHA if len(order) == 4 else 0)
    if numpy is not None:
        rows = numpy.frombuffer(data, numpy.uint8).reshape(size[1], size[0], len(order))
        made._pixels[..., list(order)] = rows[:: -1 if flipped else 1].swapaxes(0, 1)
    return made


tostring, fromstring, frombuffer = tobytes, frombytes, frombytes


def get_extended() -> bool:
    """All kinds of pictures are read."""
    return True
