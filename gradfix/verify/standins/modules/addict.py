"""addict: keys as attributes."""

from .easydict import EasyDict as Dict

__all__ = ["Dict"]
