"""Pictures, sounds and texts made up from the seed of the run."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import re
import struct
import wave
import zlib
from typing import Any

import torch

from . import context

SHORTEST, LONGEST = 6, 13
"""Words in a line of a text."""
FILES = 32
"""Files in a folder that is made up."""
FOLDERS = 24
"""Folders in one that holds folders."""
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm")
FIELDS = {".flo": 2, ".pfm": 1}
"""Files of numbers for each pixel of a picture, and how many: how far it moves, how far away it is."""
KINDS = {
    ".flo": "how far each pixel of a picture moves",
    ".pfm": "a number for each pixel of a picture",
    ".bin": "whole numbers below 60, two bytes each",
    ".wav": "one second of sound, or a few",
}

WORDS = (
    "the of and to in is was he for it with as his on be at by had not are but from or have an they which "
    "one you were her all she there would their we him been has when who will more no if out so said what up "
    "its about into than them can only other new some could time these two may then do first any my now such"
).split()


def pixels(run: context.Run, name: str, height: int, width: int, channels: int = 3) -> torch.Tensor:
    """Bytes of a picture, ``height`` x ``width`` x ``channels``: smooth, with a little noise."""
    with unseen(run):
        generator = run.generator("picture", name)
        coarse = torch.rand(1, channels, 8, 8, generator=generator)
        smooth = torch.nn.functional.interpolate(
            coarse, (height, width), mode="bilinear", align_corners=False
        )
        noise = torch.rand(smooth.shape, generator=generator) * 0.1
        return ((smooth * 0.9 + noise) * 255).to(torch.uint8)[0].permute(1, 2, 0).contiguous()


def unseen(run: context.Run) -> contextlib.AbstractContextManager[Any]:
    """Where bytes are made of which only the values matter: to record how each of them came about takes
    longer than all else. A run without values has nothing but that."""
    if run.recorder.job["fake"]:
        return contextlib.nullcontext()
    return torch.utils._python_dispatch._disable_current_modes()


def raw(values: torch.Tensor) -> bytes:
    """The bytes of a tensor in memory."""
    values = values.contiguous()
    return ctypes.string_at(values.data_ptr(), values.numel() * values.element_size())


SIDE = 256
"""Height and width of pictures in files, where nothing tells another; half of it in the manner *small*."""


def side(run: context.Run) -> int:
    """Height and width of the pictures in the files of a run."""
    from . import content

    planned = content.book.planned("pictures", "side")
    return int(planned or (SIDE // 2 if run.small and not run.medium else SIDE))


LABELS = re.compile(
    r"(?<![a-z])(?:train|val|test)?(labels?|masks?|gts?|gtfine|gtcoarse|ground_?truths?|annots?|"
    r"annotations?|segmentations?|segmentationclass(aug|raw)?|semantics?|trimaps?|labelids|labeltrainids)(?![a-z])",
    re.I,
)
"""Names of pictures, and of folders of them, whose values are classes."""


def of_labels(path: str) -> bool:
    """Whether a picture's path says that its values are classes, by its name and its nearest folders'."""
    return any(LABELS.search(one) for one in os.path.normpath(path).split(os.sep)[-3:])


def picture_file(run: context.Run, name: str, labels: bool = False) -> bytes:
    """A PNG file (also under another ending: readers look at the content), grey if the plan says so.

    One of ``labels`` has no colours, and a few values.
    """
    from . import content

    channels = 1 if labels else content.book.planned("pictures", "channels") or 3
    if not labels or not content.book.pictures:
        content.book.pictures = channels
    size = side(run)
    data = pixels(run, name, size, size, channels)
    return encoded(classed(data) if labels or content.book.planned("pictures", "values") else data)


def classed(data: torch.Tensor) -> torch.Tensor:
    """Pixels whose values are classes: as many as the plan says, or few."""
    from . import content

    values = content.book.planned("pictures", "values") or content.CLASSES
    return (data.long() * values // 256).to(torch.uint8)


COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
"""What a PNG file says of pictures, by their channels."""


def encoded(data: torch.Tensor) -> bytes:
    """The PNG file of the bytes of a picture, height x width x channels."""
    high, wide, channels = data.shape
    rows = raw(torch.nn.functional.pad(data.reshape(high, -1), (1, 0)))

    def chunk(kind: bytes, held: bytes) -> bytes:
        return struct.pack(">I", len(held)) + kind + held + struct.pack(">I", zlib.crc32(kind + held))

    header = struct.pack(">IIBBBBB", wide, high, 8, COLOURS[channels], 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 1))
        + chunk(b"IEND", b"")
    )


def keep(target: object, data: torch.Tensor) -> None:
    """Write a picture to a path, where it may be looked for again."""
    if isinstance(target, (str, os.PathLike)) and data.dtype == torch.uint8 and data.shape[-1] in COLOURS:
        with open(target, "wb") as file:
            file.write(encoded(data))


def keep_array(target: object, values: object) -> None:
    """Write an array as a picture: numbers up to 1, or bytes; nothing of what is none."""
    try:
        data = torch.as_tensor(values).detach()
    except (TypeError, ValueError, RuntimeError):
        return
    if data.dim() in (2, 3) and data.numel():
        scaled = data * 255 if data.is_floating_point() and data.max() <= 1 else data
        keep(target, scaled.clamp(0, 255).to(torch.uint8).reshape(*data.shape[:2], -1).contiguous())


FLOW = re.compile(r"(?<![a-z])(optical_?)?flows?(?![a-z])|into_(past|future)", re.I)
"""Names of files, and of folders of them, that say how far pixels move."""


def field_file(run: context.Run, name: str, kind: str, moves: bool = False) -> bytes:
    """A file of numbers for each pixel of the pictures of a run: Middlebury's ``.flo``
    (https://vision.middlebury.edu/flow/code/flow-code/README.txt), or a map of floats
    (https://www.pauldebevec.com/Research/HDR/PFM), which has a third number where pixels move."""
    size = side(run)
    channels = 3 if moves and kind == ".pfm" else FIELDS[kind]
    held = raw(pixels(run, name, size, size, channels).float() / 32)
    if kind == ".flo":
        return struct.pack("<fii", 202021.25, size, size) + held
    return f"{'Pf' if channels == 1 else 'PF'}\n{size} {size}\n-1.0\n".encode() + held


RATE = 22050
"""Values of a second of a sound, where the script insists on no other number."""
LONG = 4
"""Seconds of a sound of which more is cut than one has."""
RATES = (4000, 192000)
"""The lowest and the highest such number that is usual."""


def rate_of_sounds() -> int:
    """Values of a second in the sounds of a run."""
    from . import content

    content.book.heard = True
    return int(content.book.planned("sounds", "rate") or RATE)


def seconds_of_sounds() -> int:
    """How long the sounds of a run are."""
    from . import content

    content.book.heard = True
    return int(content.book.planned("sounds", "seconds") or 1)


def sound(run: context.Run, name: str, rate: int | None = None) -> torch.Tensor:
    """One second of noise, or what a run needs, as whole numbers of two bytes; at the rate of its sounds."""
    length = (rate or rate_of_sounds()) * seconds_of_sounds()
    noise = torch.randn(length, generator=run.generator("sound", name)) * 3000
    return noise.clamp(-32000, 32000).to(torch.int16)


def sound_file(run: context.Run, name: str) -> bytes:
    """A WAV file with such a sound."""
    noise, rate = sound(run, name), rate_of_sounds()
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack("<" + str(len(noise)) + "h", *noise.tolist()))
    return held.getvalue()


def text(run: context.Run, name: str, lines: int = 200) -> str:
    """Lines of common words."""
    # One draw, as the recorder looks at each.
    drawn = torch.randint(0, 1 << 30, (lines, LONGEST + 1), generator=run.generator("text", name)).tolist()
    rows = []
    for count, *picked in drawn:
        chosen = picked[: SHORTEST + count % (LONGEST + 1 - SHORTEST)]
        rows.append(" ".join(WORDS[one % len(WORDS)] for one in chosen) + " .")
    return "\n".join(rows) + "\n"


def small_numbers(run: context.Run, name: str, count: int = 1 << 18) -> bytes:
    """Numbers below 60 of two bytes each, as tokens of a text are kept."""
    values = torch.randint(0, 60, (count,), generator=run.generator("numbers", name), dtype=torch.int16)
    return raw(values)


_made: dict[tuple[str, str, bool], bytes] = {}
SEEN_OR_HEARD = (*PICTURES, *FIELDS, ".wav")
"""Files that are the same under many names and in many folders: the making of each takes long."""


def one_of_few(run: context.Run, kind: str, name: str, path: str) -> bytes:
    """The content of a picture, a field of numbers or a sound called ``name``, where its path leads."""
    told = FLOW.search(path) is not None if kind in FIELDS else of_labels(path)
    if (kind, name, told) not in _made:
        if kind == ".wav":
            made = sound_file(run, name)
        else:
            made = (
                field_file(run, name, kind, told) if kind in FIELDS else picture_file(run, name, labels=told)
            )
        _made[kind, name, told] = made
    return _made[kind, name, told]


def file_of(run: context.Run, kind: str, name: str, folder: str) -> bytes:
    """The content of a file of a kind in a folder; those of one name are the same in many folders."""
    if kind in SEEN_OR_HEARD:
        return one_of_few(run, kind, name, folder)
    from . import absent

    return absent.text_of(run, name + kind).encode()
