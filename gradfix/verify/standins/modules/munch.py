"""munch: keys as attributes."""

from .easydict import EasyDict as Munch

DefaultMunch = Munch
munchify = Munch
__all__ = ["DefaultMunch", "Munch", "munchify"]
