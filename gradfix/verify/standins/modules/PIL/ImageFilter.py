"""``PIL.ImageFilter``: the kinds of filters; pictures stay as they are."""

from __future__ import annotations

from typing import Any


class Filter:
    """One of any kind."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.radius = args[0] if args else kwargs.get("radius", 2)


class GaussianBlur(Filter):
    """Blurs."""


class BoxBlur(Filter):
    """Blurs."""


class UnsharpMask(Filter):
    """Sharpens."""


class Kernel(Filter):
    """Weighs neighbours."""


class RankFilter(Filter):
    """Takes one of the neighbours."""


class MedianFilter(RankFilter):
    """Takes the one in the middle."""


class MinFilter(RankFilter):
    """Takes the darkest."""


class MaxFilter(RankFilter):
    """Takes the lightest."""


class ModeFilter(Filter):
    """Takes what there is most of."""


BLUR = Filter()
CONTOUR = DETAIL = EDGE_ENHANCE = EDGE_ENHANCE_MORE = EMBOSS = FIND_EDGES = SHARPEN = SMOOTH = BLUR
SMOOTH_MORE = BLUR
