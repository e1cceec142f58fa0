"""cv2: pictures as arrays, height x width x 3 in the order blue, green, red."""

from __future__ import annotations

import os
from typing import Any

import numpy

from .. import absent, media
from ..context import run
from ..inert import others
from ..samples import pil

IMREAD_COLOR, IMREAD_GRAYSCALE, IMREAD_UNCHANGED = 1, 0, -1
INTER_NEAREST, INTER_LINEAR, INTER_CUBIC, INTER_AREA, INTER_LANCZOS4 = 0, 1, 2, 3, 4
COLOR_BGR2RGB, COLOR_RGB2BGR, COLOR_BGR2GRAY, COLOR_RGB2GRAY, COLOR_GRAY2RGB, COLOR_GRAY2BGR = (
    4,
    4,
    6,
    7,
    8,
    8,
)
COLOR_BGR2HSV, COLOR_HSV2BGR, COLOR_RGB2HSV, COLOR_BGR2YCrCb, COLOR_BGR2LAB, COLOR_RGB2LAB = (
    40,
    54,
    41,
    36,
    44,
    45,
)
COLOR_RGBA2RGB, COLOR_BGRA2BGR, COLOR_BGR2YUV, COLOR_RGB2YUV, COLOR_YUV2BGR = 1, 1, 82, 83, 84
BORDER_CONSTANT, BORDER_REPLICATE, BORDER_REFLECT, BORDER_REFLECT_101, BORDER_DEFAULT = 0, 1, 2, 4, 4
ROTATE_90_CLOCKWISE, ROTATE_180, ROTATE_90_COUNTERCLOCKWISE = 0, 1, 2
FONT_HERSHEY_SIMPLEX, LINE_AA, FILLED, WINDOW_NORMAL = 0, 16, -1, 0
THRESH_BINARY, THRESH_OTSU, NORM_MINMAX, NORM_L2 = 0, 8, 32, 4


def imread(path: Any, flags: int = IMREAD_COLOR) -> Any:
    """A picture of a file; a made-up one of a file that is not there."""
    if absent.is_absent(path):
        run().used("pictures of cv2", "made-up ones of 256 x 256")
        of_labels = media.of_labels(os.path.abspath(path))
        made = media.pixels(run(), os.path.basename(str(path)), 256, 256, 1 if of_labels else 3)
        found = (media.classed(made) if of_labels else made).expand(-1, -1, 3).numpy()
    else:
        found = numpy.array(pil().open(path).convert("RGB"))
    return cvtColor(found, COLOR_RGB2GRAY) if flags == IMREAD_GRAYSCALE else found[..., ::-1].copy()


def imdecode(data: Any, flags: int = IMREAD_COLOR) -> Any:
    """A picture: nobody reads the bytes."""
    found = media.pixels(run(), str(len(data)), 256, 256).numpy()
    return found[..., 0].copy() if flags == IMREAD_GRAYSCALE else found.copy()


def imwrite(path: Any, values: Any, *args: Any) -> bool:
    """Write a picture."""
    found = numpy.asarray(values)
    media.keep_array(path, found[..., ::-1].copy() if found.ndim == 3 and found.shape[2] == 3 else found)
    return True


def imencode(extension: str, values: Any, *args: Any) -> Any:
    """As many bytes as there are values."""
    return True, numpy.asarray(values).reshape(-1).astype(numpy.uint8)


def resize(
    values: Any, size: Any = None, dst: Any = None, fx: float = 0, fy: float = 0, interpolation: int = 1
) -> Any:
    """Another size (width, height): bilinear, or the nearest."""
    import torch

    values = numpy.asarray(values)
    if size is None or not all(size):
        size = (round(values.shape[1] * fx), round(values.shape[0] * fy))
    width, height = int(size[0]), int(size[1])
    moved = torch.as_tensor(values.reshape(*values.shape[:2], -1).copy()).permute(2, 0, 1)[None].double()
    if interpolation == INTER_NEAREST:
        scaled = torch.nn.functional.interpolate(moved, (height, width), mode="nearest")
    else:
        scaled = torch.nn.functional.interpolate(moved, (height, width), mode="bilinear", align_corners=False)
    found = scaled[0].permute(1, 2, 0).numpy()
    found = numpy.clip(found.round(), 0, 255) if values.dtype == numpy.uint8 else found
    found = found.astype(values.dtype)
    return found[..., 0] if values.ndim == 2 or values.shape[2] == 1 else found


def cvtColor(values: Any, code: int, *args: Any) -> Any:
    """Other channels: another order, grey, or three of grey; other spaces of colours are left out."""
    values = numpy.asarray(values)
    if code in (COLOR_BGR2GRAY, COLOR_RGB2GRAY):
        return values[..., :3].mean(-1).astype(values.dtype)
    if code == COLOR_GRAY2RGB:
        return numpy.stack([values.reshape(values.shape[:2])] * 3, -1)
    if code == COLOR_RGBA2RGB:
        return values[..., :3].copy()
    return values[..., ::-1].copy() if code == COLOR_BGR2RGB else values.copy()


def flip(values: Any, code: int) -> Any:
    """Mirrored: 0 up and down, 1 left and right, -1 both."""
    axes = {0: (0,), 1: (1,)}.get(code, (0, 1))
    return numpy.flip(numpy.asarray(values), axes).copy()


def rotate(values: Any, code: int) -> Any:
    """Turned by quarters."""
    return numpy.rot90(numpy.asarray(values), {0: -1, 1: 2, 2: 1}[code]).copy()


def getRotationMatrix2D(center: Any, angle: float, scale: float) -> Any:
    """A turn as a matrix."""
    a, b = scale * numpy.cos(numpy.radians(angle)), scale * numpy.sin(numpy.radians(angle))
    return numpy.array(
        [[a, b, (1 - a) * center[0] - b * center[1]], [-b, a, b * center[0] + (1 - a) * center[1]]]
    )


def getAffineTransform(src: Any, dst: Any) -> Any:
    """The matrix that moves three points to three others."""
    before = numpy.hstack([numpy.asarray(src, float).reshape(3, 2), numpy.ones((3, 1))])
    return numpy.linalg.solve(before, numpy.asarray(dst, float).reshape(3, 2)).T


def invertAffineTransform(matrix: Any) -> Any:
    """The matrix that moves everything back."""
    return numpy.linalg.inv(numpy.vstack([matrix, [0, 0, 1]]))[:2]


def warpAffine(values: Any, matrix: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """The picture at another size: what else the matrix does is left out."""
    return resize(values, size)


warpPerspective = warpAffine


def copyMakeBorder(
    values: Any, top: int, bottom: int, left: int, right: int, kind: int = 0, *args: Any, **kwargs: Any
) -> Any:
    """With a border."""
    values = numpy.asarray(values)
    width = [(top, bottom), (left, right), *([(0, 0)] * (values.ndim - 2))]
    ways: dict[int, Any] = {1: "edge", 2: "symmetric", 4: "reflect"}
    return numpy.pad(values, width, mode=ways.get(kind, "constant"))


def GaussianBlur(values: Any, *args: Any, **kwargs: Any) -> Any:
    """As it is."""
    return numpy.array(values)


blur = medianBlur = bilateralFilter = filter2D = dilate = erode = morphologyEx = equalizeHist = GaussianBlur


def Canny(values: Any, low: float, high: float, *args: Any, **kwargs: Any) -> Any:
    """Where the brightness changes from one point to the next: 255, else 0, height x width."""
    gray = numpy.asarray(values, dtype=float)
    gray = gray.mean(axis=2) if gray.ndim == 3 else gray
    change = numpy.abs(numpy.diff(gray, axis=0, append=gray[-1:]))
    change += numpy.abs(numpy.diff(gray, axis=1, append=gray[:, -1:]))
    return numpy.where(change > low, 255, 0).astype(numpy.uint8)


def normalize(
    values: Any, dst: Any = None, alpha: float = 0, beta: float = 1, *args: Any, **kwargs: Any
) -> Any:
    """Between two bounds."""
    values = numpy.asarray(values, float)
    spread = values.max() - values.min()
    return (values - values.min()) / (spread or 1) * (beta - alpha) + alpha


def threshold(values: Any, level: float, top: float, kind: int) -> Any:
    """What lies above a level."""
    values = numpy.asarray(values)
    return level, numpy.where(values > level, top, 0).astype(values.dtype)


def split(values: Any) -> Any:
    """The channels."""
    return [numpy.asarray(values)[..., i].copy() for i in range(numpy.asarray(values).shape[2])]


def merge(channels: Any) -> Any:
    """One picture of channels."""
    return numpy.stack(channels, -1)


def addWeighted(one: Any, alpha: float, other: Any, beta: float, gamma: float = 0, *args: Any) -> Any:
    """A mixture."""
    mixed = numpy.asarray(one, float) * alpha + numpy.asarray(other, float) * beta + gamma
    return numpy.clip(mixed, 0, 255).astype(numpy.asarray(one).dtype)


def setNumThreads(*args: Any, **kwargs: Any) -> Any:
    """Nothing is shown, drawn or set."""
    return args[0] if args else None


imshow = waitKey = destroyAllWindows = namedWindow = putText = rectangle = circle = line = setUseOptimized = (
    setNumThreads
)


class ocl:
    """Nothing to set."""

    setUseOpenCL = staticmethod(setNumThreads)


__getattr__ = others(__name__)
