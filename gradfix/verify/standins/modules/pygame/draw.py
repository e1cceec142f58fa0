"""Shapes on surfaces. Each function gives the rectangle that it changes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .rect import Rect
from .surface import Surface


def paint(surface: Surface, color: Any, x: Any, y: Any) -> Rect:
    """Give pixels a colour, as far as they may be changed."""
    x, y = np.asarray(x, int), np.asarray(y, int)
    left, top, wide, high = surface.get_clip()
    seen = (x >= left) & (x < left + wide) & (y >= top) & (y < top + high)
    x, y = x[seen], y[seen]
    if not x.size:
        return Rect(0, 0, 0, 0)
    surface.held[x, y] = surface.colour(color)
    return Rect(x.min(), y.min(), x.max() - x.min() + 1, y.max() - y.min() + 1)


def within(surface: Surface, color: Any, box: Rect, inside: Any) -> Rect:
    """Give a colour to the pixels of a box that are ``inside``: a function of their middles."""
    box = box.clip(surface.get_clip())
    if not box:
        return Rect(box.x, box.y, 0, 0)
    x, y = np.arange(box.left, box.right)[:, None], np.arange(box.top, box.bottom)[None]
    held = np.broadcast_to(inside(x, y), (box.w, box.h))
    across, down = np.nonzero(held)
    return paint(surface, color, across + box.left, down + box.top)


def rect(surface: Surface, color: Any, rect: Any, width: int = 0, *args: Any, **kwargs: Any) -> Rect:
    """A rectangle, filled or with an edge of ``width``; corners are not rounded."""
    box = Rect(rect)
    box.normalize()
    seen = box.clip(surface.get_clip())
    if width < 0 or not seen:
        return Rect(box.x, box.y, 0, 0)
    if width == 0:
        return surface.fill(surface.map_rgb(color), seen)
    inner = box.inflate(-2 * width, -2 * width)

    def edge(x: Any, y: Any) -> Any:
        if inner.w <= 0 or inner.h <= 0:
            return True
        return ~((x >= inner.left) & (x < inner.right) & (y >= inner.top) & (y < inner.bottom))

    within(surface, color, box, edge)
    return seen


def ring(surface: Surface, color: Any, box: Rect, width: int, only: Any = None, centre: Any = None) -> Rect:
    """An ellipse in a box, filled or with an edge; ``only`` a part of it."""
    if width < 0 or box.w <= 0 or box.h <= 0:
        return Rect(box.x, box.y, 0, 0)
    middle = (box.x + (box.w - 1) / 2, box.y + (box.h - 1) / 2) if centre is None else centre

    def inside(x: Any, y: Any) -> Any:
        across, down = x - middle[0], y - middle[1]

        def ellipse(wide: float, high: float) -> Any:
            if wide <= 0 or high <= 0:
                return np.zeros(np.broadcast(x, y).shape, bool)
            return (across / wide) ** 2 + (down / high) ** 2 <= 1

        held = ellipse(box.w / 2, box.h / 2)
        if width:
            held = held & ~ellipse(box.w / 2 - width, box.h / 2 - width)
        return held if only is None else held & only(across, down)

    return within(surface, color, box, inside)


def circle(
    surface: Surface, color: Any, center: Any, radius: float, width: int = 0, *parts: Any, **named: Any
) -> Rect:
    """A circle, filled or with an edge; or those of its quarters that are asked for."""
    x, y, radius = int(center[0]), int(center[1]), int(radius)
    names = ("draw_top_right", "draw_top_left", "draw_bottom_left", "draw_bottom_right")
    asked = [bool(named.get(name)) for name in names]
    asked[: len(parts)] = [bool(one) for one in parts]

    def quarter(across: Any, down: Any) -> Any:
        right, top = across >= 0, down < 0
        held = (right & top & asked[0]) | (~right & top & asked[1])
        return held | (~right & ~top & asked[2]) | (right & ~top & asked[3])

    if radius < 1:
        return Rect(x, y, 0, 0)
    box = Rect(x - radius, y - radius, 2 * radius, 2 * radius)
    # A circle lies around the corner between four pixels.
    return ring(surface, color, box, width, quarter if any(asked) else None, (x - 0.5, y - 0.5))


def ellipse(surface: Surface, color: Any, rect: Any, width: int = 0) -> Rect:
    """An ellipse within a rectangle."""
    return ring(surface, color, Rect(rect), width)


def arc(
    surface: Surface, color: Any, rect: Any, start_angle: float, stop_angle: float, width: int = 1
) -> Rect:
    """A part of the edge of an ellipse, against the clock."""
    turn = 2 * math.pi
    long = (stop_angle - start_angle) % turn or turn

    def only(across: Any, down: Any) -> Any:
        return (np.arctan2(-down, across) - start_angle) % turn <= long

    return ring(surface, color, Rect(rect), width, only) if width > 0 else Rect(0, 0, 0, 0)


def line(surface: Surface, color: Any, start_pos: Any, end_pos: Any, width: int = 1) -> Rect:
    """A line; a wide one is so across its shorter direction."""
    (x, y), (u, v) = ((int(one[0]), int(one[1])) for one in (start_pos, end_pos))
    if width < 1:
        return Rect(x, y, 0, 0)
    if x == u or y == v:
        # The usual ones, of grids and frames: a filled rectangle is much faster.
        before = (width - 1) // 2
        left, top, wide, high = min(x, u), min(y, v), abs(u - x) + 1, abs(v - y) + 1
        flat = Rect(left, top - before, wide, width)
        box = flat if y == v and x != u else Rect(left - before, top, width, high)
        return surface.fill(surface.map_rgb(color), box)
    count = max(abs(u - x), abs(v - y)) + 1
    across, down = np.linspace(x, u, count).round(), np.linspace(y, v, count).round()
    beside = np.arange(width) - (width - 1) // 2
    if abs(u - x) >= abs(v - y):
        across, down = np.repeat(across, width), (down[:, None] + beside).reshape(-1)
    else:
        across, down = (across[:, None] + beside).reshape(-1), np.repeat(down, width)
    return paint(surface, color, across, down)


def lines(surface: Surface, color: Any, closed: Any, points: Any, width: int = 1) -> Rect:
    """Lines from each point to the next."""
    points = list(points)
    if len(points) < 2:
        raise ValueError("points argument must contain 2 or more points")
    ends = [*points[1:], *(points[:1] if closed else [])]
    found = [line(surface, color, one, other, width) for one, other in zip(points, ends)]
    return found[0].unionall(found[1:])


def aaline(surface: Surface, color: Any, start_pos: Any, end_pos: Any, *args: Any) -> Rect:
    """A line, whose edges are not smooth."""
    return line(surface, color, start_pos, end_pos)


def aalines(surface: Surface, color: Any, closed: Any, points: Any, *args: Any) -> Rect:
    """Lines whose edges are not smooth."""
    return lines(surface, color, closed, points)


def polygon(surface: Surface, color: Any, points: Any, width: int = 0) -> Rect:
    """The shape between points, filled or with an edge."""
    points = [(float(one[0]), float(one[1])) for one in points]
    if len(points) < 3:
        raise ValueError("points argument must contain more than 2 points")
    if width:
        return lines(surface, color, True, points, width)
    low, high = np.min(points, 0).astype(int), np.max(points, 0).astype(int)
    ends = [*points[1:], points[0]]

    def inside(x: Any, y: Any) -> Any:
        held = np.zeros(np.broadcast(x, y).shape, bool)
        for (ax, ay), (bx, by) in zip(points, ends):
            if ay != by:
                crosses = (ay > y) != (by > y)
                held ^= crosses & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
        return held

    filled = within(surface, color, Rect(*low, *(high - low + 1)), inside)
    # Its edge belongs to it.
    edge = lines(surface, color, True, points)
    return filled.union(edge) if filled else edge
