"""Pictures and films of files as bytes, channels first or last; what is not there is made up."""

from __future__ import annotations

import enum
import io
import os
from collections.abc import Iterator
from typing import Any

import torch

from ... import media
from ...context import run
from ...inert import others
from ...samples import shown_in
from .transforms.functional import pil_to_tensor

FRAMES = 16
"""Of a film."""
RATE = 25.0
"""Of them in a second."""


class ImageReadMode(enum.Enum):
    """What a picture is read as."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


MODES = {"UNCHANGED": None, "GRAY": "L", "GRAY_ALPHA": "LA", "RGB": "RGB", "RGB_ALPHA": "RGBA"}


def _mode(mode: Any) -> str | None:
    return MODES[mode.upper() if isinstance(mode, str) else mode.name]


def read_image(path: Any, mode: Any = ImageReadMode.UNCHANGED, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Bytes, channels x height x width."""
    return pil_to_tensor(shown_in(path, _mode(mode)))


def decode_image(input: Any, mode: Any = ImageReadMode.UNCHANGED, *args: Any, **kwargs: Any) -> torch.Tensor:
    """The same of a file's bytes, or of its path."""
    return read_image(io.BytesIO(media.raw(input)) if isinstance(input, torch.Tensor) else input, mode)


decode_png = decode_jpeg = decode_gif = decode_webp = decode_image


def read_file(path: Any) -> torch.Tensor:
    """The bytes of a file."""
    with open(path, "rb") as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


def write_file(filename: Any, data: torch.Tensor) -> None:
    """Bytes to a file."""
    with open(filename, "wb") as file:
        file.write(media.raw(data))


def encode_png(input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """The bytes of a file with this picture, channels first."""
    held = media.encoded(input.permute(1, 2, 0).contiguous())
    return torch.frombuffer(bytearray(held), dtype=torch.uint8)


encode_jpeg = encode_png


def write_png(input: torch.Tensor, filename: Any, *args: Any, **kwargs: Any) -> None:
    """A picture, channels first, to a file."""
    write_file(filename, encode_png(input))


write_jpeg = write_png


def film(path: Any) -> torch.Tensor:
    """The frames of a film, which are made up by its name: time x height x width x 3."""
    name = os.path.basename(os.fspath(path))
    side = media.side(run())
    run().used("film " + name, f"{FRAMES} made-up frames of {side} x {side}")
    return torch.stack([media.pixels(run(), f"{name} {number}", side, side) for number in range(FRAMES)])


def read_video(
    filename: Any,
    start_pts: Any = 0,
    end_pts: Any = None,
    pts_unit: str = "pts",
    output_format: str = "THWC",
) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
    """The frames from one time to another, the sound, channels x length, and how many are in a second."""
    frames = film(filename)
    rate = RATE if pts_unit == "sec" else 1.0
    begin, end = int(start_pts * rate), FRAMES if end_pts is None else int(end_pts * rate) + 1
    frames = frames[begin:end]
    sound = media.sound(run(), os.path.basename(os.fspath(filename))) / 2**15
    told = {"video_fps": RATE, "audio_fps": media.rate_of_sounds()}
    return frames if output_format == "THWC" else frames.permute(0, 3, 1, 2), sound.reshape(1, -1), told


def read_video_timestamps(filename: Any, pts_unit: str = "pts") -> tuple[list[Any], float]:
    """When each frame is shown, and how many are in a second."""
    return [number / RATE if pts_unit == "sec" else number for number in range(FRAMES)], RATE


def write_video(filename: Any, video_array: Any, fps: float, *args: Any, **kwargs: Any) -> None:
    """Nothing is written."""


class VideoReader:
    """A film, frame by frame."""

    def __init__(self, src: Any, stream: str = "video", *args: Any, **kwargs: Any) -> None:
        self.frames, self.at = film(src).permute(0, 3, 1, 2), 0

    def seek(self, time_s: float, keyframes_only: bool = False) -> VideoReader:
        """From this time on."""
        self.at = int(time_s * RATE)
        return self

    def get_metadata(self) -> dict[str, Any]:
        """How long the film is, in seconds, and how many frames there are in one."""
        return {"video": {"duration": [FRAMES / RATE], "fps": [RATE]}}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        if self.at >= FRAMES:
            raise StopIteration
        self.at += 1
        return {"data": self.frames[self.at - 1], "pts": (self.at - 1) / RATE}


__getattr__ = others(__name__)
