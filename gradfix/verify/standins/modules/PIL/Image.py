"""Pictures: sizes, modes and bytes are right; the only way of resampling is by averages of neighbours."""

from __future__ import annotations

import builtins
import os
from typing import Any

import numpy as np
import torch

from ...context import run
from ...media import keep, of_labels, picture_file, raw, side
from ...media import pixels as made_up
from ...png import decoded

NEAREST, LANCZOS, BILINEAR, BICUBIC, BOX, HAMMING = 0, 1, 2, 3, 4, 5
ANTIALIAS = LANCZOS
FLIP_LEFT_RIGHT, FLIP_TOP_BOTTOM, ROTATE_90, ROTATE_180, ROTATE_270 = 0, 1, 2, 3, 4
AFFINE, EXTENT, PERSPECTIVE, QUAD, MESH = 0, 1, 2, 3, 4
MAX_IMAGE_PIXELS: Any = None
CHANNELS = {
    "L": 1,
    "LA": 2,
    "RGB": 3,
    "RGBA": 4,
    "P": 1,
    "1": 1,
    "F": 1,
    "I": 1,
    "CMYK": 4,
    "YCbCr": 3,
    "HSV": 3,
}


class Resampling:
    """The names of the ways of resampling."""

    NEAREST, LANCZOS, BILINEAR, BICUBIC, BOX, HAMMING = 0, 1, 2, 3, 4, 5


class Transform:
    """The names of the ways of transforming."""

    AFFINE, EXTENT, PERSPECTIVE, QUAD, MESH = 0, 1, 2, 3, 4


class UnidentifiedImageError(OSError):
    """Raised for data that is no picture."""


class Image:
    """A picture; its values are bytes, height x width x channels."""

    def __init__(self, pixels: torch.Tensor, mode: str) -> None:
        self.pixels = pixels
        self.mode = mode
        self.info: dict[str, Any] = {}
        self.palette: Any = None
        self.format: str | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.pixels.shape[1], self.pixels.shape[0]

    @property
    def width(self) -> int:
        """Pixels in a row."""
        return self.size[0]

    @property
    def height(self) -> int:
        """Rows."""
        return self.size[1]

    def _like(self, pixels: torch.Tensor) -> Image:
        made = Image(pixels.contiguous(), self.mode)
        made.palette = self.palette
        return made

    def getbands(self) -> tuple[str, ...]:
        """The names of the channels."""
        return tuple(self.mode) if len(self.mode) == CHANNELS[self.mode] else (self.mode,)

    def convert(self, mode: str | None = None, *args: Any, **kwargs: Any) -> Image:
        """The same picture in another mode."""
        if self.palette is not None and mode not in (None, "P"):
            colours = torch.from_numpy(self.palette)[self.pixels[..., 0].long()]
            return Image(colours, "RGBA").convert(mode)
        mode = mode or self.mode
        count = CHANNELS.get(mode, 3)
        have = self.pixels.shape[2]
        if count == have:
            return Image(self.pixels.clone(), mode)
        shown = self.pixels[..., : 1 if have == 2 else 3]
        if count == 2:
            clear = self.pixels[..., 3:] if have == 4 else torch.full_like(shown[..., :1], 255)
            return Image(torch.cat([self.convert("L").pixels, clear], -1), mode)
        grey = shown.to(torch.float32).mean(-1, keepdim=True).to(torch.uint8)
        if count == 1:
            return Image(grey, mode)
        colour = grey.expand(-1, -1, 3) if have < 3 else shown
        if count == 4:
            clear = self.pixels[..., 1:] if have == 2 else torch.full_like(colour[..., :1], 255)
            colour = torch.cat([colour, clear], -1)
        return Image(colour.contiguous(), mode)

    def resize(self, size: Any, resample: Any = None, box: Any = None, *args: Any, **kwargs: Any) -> Image:
        """The picture at another size (width, height)."""
        source = self.crop(box).pixels if box is not None else self.pixels
        moved = source.permute(2, 0, 1)[None].to(torch.float32)
        height, width = int(size[1]), int(size[0])
        if resample == NEAREST or self.palette is not None:
            scaled = torch.nn.functional.interpolate(moved, (height, width), mode="nearest")
        else:
            scaled = torch.nn.functional.interpolate(
                moved, (height, width), mode="bilinear", align_corners=False, antialias=True
            )
        return self._like(scaled[0].permute(1, 2, 0).round().clamp(0, 255).to(torch.uint8))

    def thumbnail(self, size: Any, *args: Any) -> None:
        """Shrink in place, the sides in proportion."""
        ratio = min(size[0] / self.width, size[1] / self.height, 1.0)
        self.pixels = self.resize((max(1, int(self.width * ratio)), max(1, int(self.height * ratio)))).pixels

    def crop(self, box: Any = None) -> Image:
        """The part within left, upper, right, lower; black outside the picture."""
        left, upper, right, lower = (round(edge) for edge in box or (0, 0, *self.size))
        out = self.pixels.new_zeros((max(0, lower - upper), max(0, right - left), self.pixels.shape[2]))
        top, start = max(upper, 0), max(left, 0)
        part = self.pixels[top : max(lower, 0), start : max(right, 0)]
        out[top - upper : top - upper + part.shape[0], start - left : start - left + part.shape[1]] = part
        return self._like(out)

    def transpose(self, method: int) -> Image:
        """Flipped, or turned by quarters."""
        if method == FLIP_LEFT_RIGHT:
            return self._like(self.pixels.flip(1))
        if method == FLIP_TOP_BOTTOM:
            return self._like(self.pixels.flip(0))
        return self._like(torch.rot90(self.pixels, int(method) - 1, (0, 1)))

    def rotate(self, angle: float, *args: Any, **kwargs: Any) -> Image:
        """Turned by the nearest quarter that keeps the size."""
        quarters = round(angle / 90) % 4
        if self.width != self.height:
            quarters -= quarters % 2
        return self._like(torch.rot90(self.pixels, quarters, (0, 1)))

    def transform(self, size: Any, *args: Any, **kwargs: Any) -> Image:
        """The picture at another size: what else a transformation does is left out."""
        return self.resize(size)

    def point(self, lut: Any, mode: str | None = None) -> Image:
        """Each value replaced: by a function, or by the one that stands in its place in a table."""
        table = [lut(value) for value in range(256)] if callable(lut) else list(lut)
        rows = torch.tensor([float(one) for one in table]).clamp(0, 255).to(torch.uint8).reshape(-1, 256)
        parts = [rows[min(i, len(rows) - 1)][self.pixels[..., i].long()] for i in range(self.pixels.shape[2])]
        return Image(torch.stack(parts, -1), mode or self.mode)

    def getextrema(self) -> Any:
        """The darkest and the lightest value, of each channel if there are several."""
        found = [(int(one.min()), int(one.max())) for one in self.pixels.unbind(-1)]
        return found[0] if len(found) == 1 else tuple(found)

    def histogram(self, *args: Any) -> list[int]:
        """How often there is each value, channel after channel."""
        counts = [torch.bincount(one.reshape(-1).long(), minlength=256) for one in self.pixels.unbind(-1)]
        return [number for one in counts for number in one.tolist()]

    def filter(self, kernel: Any) -> Image:
        """The picture as it is."""
        return self.copy()

    def paste(self, other: Any, box: Any = None, mask: Any = None) -> None:
        """Put another picture, or a colour, over this one."""
        left, upper = (int(one) for one in (box or (0, 0))[:2])
        if isinstance(other, Image):
            source = other.convert(self.mode).pixels
            room = self.pixels[upper : upper + source.shape[0], left : left + source.shape[1]]
            room.copy_(source[: room.shape[0], : room.shape[1]])
        elif box is not None and len(box) == 4:
            colour = other if isinstance(other, (tuple, list)) else [other] * self.pixels.shape[2]
            self.pixels[upper : box[3], left : box[2]] = torch.tensor(colour, dtype=torch.uint8)

    def split(self) -> tuple[Image, ...]:
        """The channels."""
        return tuple(Image(self.pixels[..., i : i + 1].clone(), "L") for i in range(self.pixels.shape[2]))

    def copy(self) -> Image:
        """The same picture again."""
        return self._like(self.pixels.clone())

    def getpixel(self, at: Any) -> Any:
        """The value at x, y."""
        values = self.pixels[at[1], at[0]].tolist()
        return values[0] if len(values) == 1 else tuple(values)

    def putpixel(self, at: Any, value: Any) -> None:
        """Set the value at x, y."""
        self.pixels[at[1], at[0]] = torch.as_tensor(value, dtype=torch.uint8)

    def getdata(self) -> list[Any]:
        """All values, row by row."""
        flat = self.pixels.reshape(-1, self.pixels.shape[2]).tolist()
        return [one[0] for one in flat] if self.pixels.shape[2] == 1 else [tuple(one) for one in flat]

    def tobytes(self, *args: Any) -> bytes:
        """All values."""
        return raw(self.pixels)

    def save(self, target: Any, *args: Any, **kwargs: Any) -> None:
        """Write it to a path; nothing is kept of what goes elsewhere."""
        keep(target, self.pixels)

    def show(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is shown."""

    def load(self) -> None:
        """It is there."""

    close = verify = load

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    @property
    def __array_interface__(self) -> dict[str, Any]:
        shape = tuple(self.pixels.shape[:2]) if self.pixels.shape[2] == 1 else tuple(self.pixels.shape)
        return {"shape": shape, "typestr": "|u1", "version": 3, "data": self.tobytes()}


def frombytes(mode: str, size: Any, data: bytes, *args: Any) -> Image:
    """A picture of given values."""
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return Image(flat.reshape(int(size[1]), int(size[0]), CHANNELS[mode]).clone(), mode)


def fromarray(values: Any, mode: str | None = None) -> Image:
    """A picture of an array, height x width (x channels)."""
    # An array that was turned round has steps that torch does not know.
    pixels = torch.as_tensor(values.copy() if isinstance(values, np.ndarray) else values)
    if pixels.dtype == torch.bool:
        pixels = pixels.to(torch.uint8) * 255
    pixels = pixels.to(torch.uint8)
    if pixels.dim() < 2:
        wanted = 2 if CHANNELS.get(mode or "L", 1) == 1 else 3
        raise ValueError(f"expected {wanted}D tensor, got {pixels.dim()}D tensor, for a picture")
    if pixels.dim() == 2:
        pixels = pixels[..., None]
    wanted = CHANNELS[mode] if mode is not None else pixels.shape[2] if pixels.shape[2] in (1, 3, 4) else 3
    if pixels.shape[2] != wanted:
        raise ValueError(f"expected a picture to have {wanted} channels, but got {pixels.shape[2]} channels")
    return Image(pixels.clone(), mode or {1: "L", 3: "RGB", 4: "RGBA"}[pixels.shape[2]])


def new(mode: str, size: Any, color: Any = 0) -> Image:
    """A picture of one colour."""
    pixels = torch.zeros(int(size[1]), int(size[0]), CHANNELS[mode], dtype=torch.uint8)
    if isinstance(color, (int, tuple, list)):
        pixels[:] = torch.tensor(color, dtype=torch.uint8)
    return Image(pixels, mode)


def merge(mode: str, bands: Any) -> Image:
    """One picture of several channels."""
    return Image(torch.cat([band.pixels for band in bands], -1), mode)


def blend(one: Image, other: Image, alpha: float) -> Image:
    """Between two pictures."""
    mixed = one.pixels.to(torch.float32) * (1 - alpha) + other.pixels.to(torch.float32) * alpha
    return Image(mixed.clamp(0, 255).to(torch.uint8), one.mode)


def open(source: Any, *args: Any, **kwargs: Any) -> Image:
    """A picture of a file: a PNG of bytes without interlacing is read, of another one only that it is there.

    The pixels of a JPEG cannot be had without its decoder: it is a picture made from its name.
    """
    name = ""
    if isinstance(source, (str, os.PathLike)):
        name = os.path.basename(os.fspath(source))
        with builtins.open(source, "rb") as file:
            data = file.read()
    else:
        data = source.read()
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        found = _png(data)
        if found is not None:
            return found
    size = side(run())
    run().used("reading of pictures without PIL", f"made-up pictures of {size} x {size}")
    if isinstance(source, (str, os.PathLike)) and of_labels(os.path.abspath(os.fspath(source))):
        made = _png(picture_file(run(), name, labels=True))
        assert made is not None
        return made
    return Image(made_up(run(), name or str(len(data)), size, size), "RGB")


def _png(data: bytes) -> Image | None:
    found = decoded(data)
    if found is None:
        return None
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[found.values.shape[2]]
    made = Image(torch.from_numpy(found.values), mode if found.palette is None else "P")
    made.palette = found.palette
    return made
