"""Shapes on surfaces: all pixels whose middle lies within, and lines one pixel wide or as wide as is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .rect import Rect
from .rect import rect as as_rect
from .surface import Surface, numpy


def _painted(surface: Surface, color: Any, area: Rect, within: Callable[[Any, Any], Any]) -> Rect:
    where = surface._clip.clip(area)
    if numpy is not None and where:
        x, y = numpy.meshgrid(
            numpy.arange(where.x, where.x + where.w), numpy.arange(where.y, where.y + where.h), indexing="ij"
        )
        part = surface._pixels[where.x : where.x + where.w, where.y : where.y + where.h]
        part[within(x, y)] = surface._written(color)
    return where


def rect(surface: Surface, color: Any, rect: Any, width: int = 0, *args: Any, **kwargs: Any) -> Rect:
    """A rectangle, filled or with a border within it; corners are not rounded."""
    area = as_rect(rect).copy()
    area.normalize()
    if width <= 0:
        return surface.fill(color, area) if width == 0 else Rect(area.topleft, (0, 0))

    def border(x: Any, y: Any) -> Any:
        inner = (x >= area.left + width) & (x < area.right - width)
        return ~(inner & (y >= area.top + width) & (y < area.bottom - width))

    return _painted(surface, color, area, border)


def ellipse(surface: Surface, color: Any, rect: Any, width: int = 0) -> Rect:
    """An ellipse in a rectangle."""
    area = as_rect(rect).copy()
    a, b = area.w / 2, area.h / 2

    def within(x: Any, y: Any) -> Any:
        def inside(less: float) -> Any:
            across, down = (x + 0.5 - area.x - a) / (a - less), (y + 0.5 - area.y - b) / (b - less)
            return across**2 + down**2 <= 1

        return inside(0) & ~inside(width) if 0 < width < min(a, b) else inside(0)

    return _painted(surface, color, area, within)


def circle(
    surface: Surface, color: Any, center: Any, radius: float, width: int = 0, *args: Any, **kwargs: Any
) -> Rect:
    """A circle; parts of it are not left out."""
    x, y = (int(one) for one in center)
    radius = int(radius)
    return ellipse(surface, color, Rect(x - radius, y - radius, 2 * radius, 2 * radius), width)


def _line(surface: Surface, color: Any, start: Any, end: Any, width: int) -> Rect:
    (x0, y0), (x1, y1) = ([int(one) for one in tuple(at)[:2]] for at in (start, end))
    steep = abs(y1 - y0) > abs(x1 - x0)
    count = max(abs(x1 - x0), abs(y1 - y0))
    before = (width - 1) // 2
    points = []
    for step in range(count + 1):
        x = x0 + round((x1 - x0) * step / max(count, 1))
        y = y0 + round((y1 - y0) * step / max(count, 1))
        points += [(x, y - before + one) if not steep else (x - before + one, y) for one in range(width)]
    kept = [at for at in points if surface._clip.collidepoint(at)]
    for at in kept:
        surface.set_at(at, color)
    if not kept:
        return Rect(x0, y0, 0, 0)
    left, top = min(x for x, _ in kept), min(y for _, y in kept)
    return Rect(left, top, max(x for x, _ in kept) - left + 1, max(y for _, y in kept) - top + 1)


def line(surface: Surface, color: Any, start_pos: Any, end_pos: Any, width: int = 1) -> Rect:
    """A line."""
    return _line(surface, color, start_pos, end_pos, width)


def aaline(surface: Surface, color: Any, start_pos: Any, end_pos: Any, *args: Any) -> Rect:
    """A line, no smoother than others."""
    return _line(surface, color, start_pos, end_pos, 1)


def lines(surface: Surface, color: Any, closed: Any, points: Any, width: int = 1) -> Rect:
    """Lines from each point to the next."""
    points = list(points)
    pairs = list(zip(points, points[1:] + (points[:1] if closed else [])))
    found = [_line(surface, color, one, other, width) for one, other in pairs]
    return found[0].unionall(found[1:])


def aalines(surface: Surface, color: Any, closed: Any, points: Any, *args: Any) -> Rect:
    """Lines from each point to the next, no smoother than others."""
    return lines(surface, color, closed, points)


def polygon(surface: Surface, color: Any, points: Any, width: int = 0) -> Rect:
    """What lies between points, or the lines along its border."""
    points = [tuple(map(int, tuple(at)[:2])) for at in points]
    if width:
        return lines(surface, color, True, points, width)
    left, top = min(x for x, _ in points), min(y for _, y in points)
    right, bottom = max(x for x, _ in points), max(y for _, y in points)

    def within(x: Any, y: Any) -> Any:
        held = numpy.zeros(x.shape, bool)
        for (x0, y0), (x1, y1) in zip(points, [*points[1:], points[0]]):
            if y0 != y1:
                crosses = (y0 > y) != (y1 > y)
                held ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
        return held

    found = _painted(surface, color, Rect(left, top, right - left + 1, bottom - top + 1), within)
    lines(surface, color, True, points)
    return found


def arc(
    surface: Surface, color: Any, rect: Any, start_angle: float, stop_angle: float, width: int = 1
) -> Rect:
    """A part of the border of an ellipse, by angles against the clock."""
    area = as_rect(rect)
    stop = stop_angle if stop_angle > start_angle else stop_angle + 2 * math.pi
    count = max(int((stop - start_angle) * max(area.w, area.h)), 1)
    points = []
    for step in range(count + 1):
        angle = start_angle + (stop - start_angle) * step / count
        points.append(
            (
                area.x + area.w / 2 + area.w / 2 * math.cos(angle),
                area.y + area.h / 2 - area.h / 2 * math.sin(angle),
            )
        )
    return lines(surface, color, False, points, width)
