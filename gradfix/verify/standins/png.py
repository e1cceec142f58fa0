"""Reading PNG files, for stand-ins of what reads pictures, and the sizes in the heads of other formats."""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

BEGIN = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Values of a pixel by the kind of colours in a PNG's head."""
INDEXED = 3
MOST = 1 << 20
"""Pixels of the largest picture that is read: a larger one takes seconds."""


class Decoded(NamedTuple):
    """The picture of a file."""

    values: Any
    """Bytes, height x width x channels; the numbers of colours where there is a ``palette``."""
    palette: Any = None
    """Red, green, blue and alpha of each colour."""


def chunks(data: bytes) -> dict[bytes, bytes]:
    """What a PNG file holds, by names; parts of one name put together."""
    found: dict[bytes, bytes] = {}
    at = len(BEGIN)
    while at + 8 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind = data[at + 4 : at + 8]
        found[kind] = found.get(kind, b"") + data[at + 8 : at + 8 + length]
        at += 12 + length
    return found


def decoded(data: bytes) -> Decoded | None:
    """The picture of a PNG file; ``None`` for one that is large or interlaced, or has other than eight bits a
    value (fewer are read where they number colours)."""
    held = chunks(data)
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", held[b"IHDR"])
    if interlaced or width * height > MOST or not (depth == 8 or (depth < 8 and kind == INDEXED)):
        return None
    step = CHANNELS[kind] if depth == 8 else 1
    across = (width * CHANNELS[kind] * depth + 7) // 8
    rows = np.frombuffer(zlib.decompress(held[b"IDAT"]), np.uint8).reshape(height, across + 1)
    values = unfiltered(rows[:, 1:].reshape(height, -1, step), rows[:, 0])
    if depth < 8:
        bits = np.unpackbits(values.reshape(height, across), axis=1).reshape(height, -1, depth)
        values = (bits << np.arange(depth - 1, -1, -1, dtype=np.uint8)).sum(-1).astype(np.uint8)
        values = values[:, :width, None]
    return Decoded(values.copy(), colours(held) if kind == INDEXED else None)


def colours(held: dict[bytes, bytes]) -> Any:
    """The palette of a PNG file."""
    table = np.full((256, 4), 255, np.uint8)
    table[:, :3] = 0
    listed = np.frombuffer(held.get(b"PLTE", b""), np.uint8).reshape(-1, 3)
    table[: len(listed), :3] = listed
    clear = np.frombuffer(held.get(b"tRNS", b""), np.uint8)
    table[: len(clear), 3] = clear
    return table


def unfiltered(rows: Any, filters: Any) -> Any:
    """The bytes of which each row says how they were guessed from those beside and above
    (https://www.w3.org/TR/png-3/#9Filters).

    A pixel needs its neighbours on the left and above: all of one diagonal are computed together.
    """
    if not filters.any():
        return rows
    height, width, step = rows.shape
    out = np.zeros((height + 1, width + 1, step), np.int16)
    for place in range(height + width - 1):
        y = np.arange(max(0, place - width + 1), min(height - 1, place) + 1)
        x = place - y
        left, above, corner = out[y + 1, x], out[y, x + 1], out[y, x]
        by_left, by_above = abs(above - corner), abs(left - corner)
        by_corner = abs(left + above - 2 * corner)
        nearest = np.where(by_above <= by_corner, above, corner)
        nearest = np.where((by_left <= by_above) & (by_left <= by_corner), left, nearest)
        guesses = [np.zeros_like(left), left, above, (left + above) // 2, nearest]
        out[y + 1, x + 1] = (rows[y, x] + np.choose(filters[y][:, None], guesses)) & 255
    return out[1:, 1:].astype(np.uint8)


def size(data: bytes) -> tuple[int, int] | None:
    """Width and height in the head of a PNG, GIF, BMP or JPEG file."""
    if data[:8] == BEGIN:
        return struct.unpack(">II", data[16:24])
    if data[:3] == b"GIF":
        return struct.unpack("<HH", data[6:10])
    if data[:2] == b"BM":
        width, height = struct.unpack("<ii", data[18:26])
        return width, abs(height)
    at = 2
    while data[:2] == b"\xff\xd8" and at + 9 <= len(data) and data[at] == 0xFF:
        kind = data[at + 1]
        # The frame's head, whatever the way of coding; these four are tables and the like.
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + int(struct.unpack(">H", data[at + 2 : at + 4])[0])
    return None
