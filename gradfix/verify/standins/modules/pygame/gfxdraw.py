"""Shapes on surfaces, by numbers."""

from __future__ import annotations

from typing import Any

from . import draw
from .surface import Surface


def pixel(surface: Surface, x: int, y: int, color: Any) -> None:
    """A point."""
    surface.set_at((x, y), color)


def hline(surface: Surface, x1: int, x2: int, y: int, color: Any) -> None:
    """A line from left to right."""
    draw.line(surface, color, (x1, y), (x2, y))


def vline(surface: Surface, x: int, y1: int, y2: int, color: Any) -> None:
    """A line from top to bottom."""
    draw.line(surface, color, (x, y1), (x, y2))


def line(surface: Surface, x1: int, y1: int, x2: int, y2: int, color: Any) -> None:
    """A line."""
    draw.line(surface, color, (x1, y1), (x2, y2))


def rectangle(surface: Surface, rect: Any, color: Any) -> None:
    """The edge of a rectangle."""
    draw.rect(surface, color, rect, 1)


def box(surface: Surface, rect: Any, color: Any) -> None:
    """A rectangle."""
    draw.rect(surface, color, rect)


def circle(surface: Surface, x: int, y: int, r: int, color: Any) -> None:
    """The edge of a circle."""
    draw.circle(surface, color, (x, y), r, 1)


def filled_circle(surface: Surface, x: int, y: int, r: int, color: Any) -> None:
    """A circle."""
    draw.circle(surface, color, (x, y), r)


def ellipse(surface: Surface, x: int, y: int, rx: int, ry: int, color: Any) -> None:
    """The edge of an ellipse."""
    draw.ellipse(surface, color, (x - rx, y - ry, 2 * rx, 2 * ry), 1)


def filled_ellipse(surface: Surface, x: int, y: int, rx: int, ry: int, color: Any) -> None:
    """An ellipse."""
    draw.ellipse(surface, color, (x - rx, y - ry, 2 * rx, 2 * ry))


def polygon(surface: Surface, points: Any, color: Any) -> None:
    """The edge of the shape between points."""
    draw.polygon(surface, color, points, 1)


def filled_polygon(surface: Surface, points: Any, color: Any) -> None:
    """The shape between points."""
    draw.polygon(surface, color, points)


def trigon(surface: Surface, x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: Any) -> None:
    """The edge of a triangle."""
    polygon(surface, [(x1, y1), (x2, y2), (x3, y3)], color)


def filled_trigon(surface: Surface, x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: Any) -> None:
    """A triangle."""
    filled_polygon(surface, [(x1, y1), (x2, y2), (x3, y3)], color)


aacircle, aaellipse, aapolygon, aatrigon = circle, ellipse, polygon, trigon
