"""The pixels of surfaces as arrays, width x height: ``pixels...`` change with the surface."""

from __future__ import annotations

from typing import Any

import numpy as np

from .surface import Surface


def pixels3d(surface: Surface) -> Any:
    """Red, green and blue of the surface itself."""
    return surface.held[..., 2::-1]


def array3d(surface: Surface) -> Any:
    """Red, green and blue."""
    return np.ascontiguousarray(surface.held[..., 2::-1])


def pixels2d(surface: Surface) -> Any:
    """The numbers of the surface itself."""
    return surface.held.view(np.uint32)[..., 0]


def array2d(surface: Surface) -> Any:
    """The numbers."""
    return pixels2d(surface).astype(np.int32 if surface.get_bitsize() < 32 else np.uint32)


def pixels_alpha(surface: Surface) -> Any:
    """The alpha of the surface itself."""
    if not surface.has_alpha:
        raise ValueError("unsupported colormasks for alpha reference array")
    return surface.held[..., 3]


def array_alpha(surface: Surface) -> Any:
    """The alpha: 255 where there is none."""
    return surface.held[..., 3].copy() if surface.has_alpha else np.full(surface.get_size(), 255, np.uint8)


def pixels_red(surface: Surface) -> Any:
    """The red of the surface itself."""
    return surface.held[..., 2]


def pixels_green(surface: Surface) -> Any:
    """The green of the surface itself."""
    return surface.held[..., 1]


def pixels_blue(surface: Surface) -> Any:
    """The blue of the surface itself."""
    return surface.held[..., 0]


def array_red(surface: Surface) -> Any:
    """The red."""
    return surface.held[..., 2].copy()


def array_green(surface: Surface) -> Any:
    """The green."""
    return surface.held[..., 1].copy()


def array_blue(surface: Surface) -> Any:
    """The blue."""
    return surface.held[..., 0].copy()


def array_colorkey(surface: Surface) -> Any:
    """0 where the key is, else 255."""
    plain = surface.copy()
    plain.has_alpha = False
    return plain.alphas(own=True).astype(np.uint8)


def make_surface(array: Any) -> Surface:
    """A surface of an array: colours, or numbers."""
    made = Surface(np.asarray(array).shape[:2])
    blit_array(made, array)
    return made


def blit_array(surface: Surface, array: Any) -> None:
    """Put an array over all of a surface."""
    array = np.asarray(array)
    if array.shape[:2] != surface.get_size():
        raise ValueError("array must match surface dimensions")
    if array.ndim == 3:
        surface.held[..., 2::-1] = array[..., :3].astype(np.uint8)
        if surface.has_alpha:
            surface.held[..., 3] = array[..., 3] if array.shape[2] == 4 else 255
    else:
        pixels2d(surface)[:] = array.astype(np.uint32)


def map_array(surface: Surface, array: Any) -> Any:
    """The numbers of an array of colours."""
    red, green, blue = (np.asarray(array)[..., place].astype(np.uint32) for place in range(3))
    return red << 16 | green << 8 | blue


def get_arraytype() -> str:
    """numpy's."""
    return "numpy"


def get_arraytypes() -> tuple[str]:
    """numpy's."""
    return ("numpy",)


def use_arraytype(arraytype: str) -> None:
    """There are no others."""
