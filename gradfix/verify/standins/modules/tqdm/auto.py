"""The same progress bars under another name."""

from . import tqdm, trange

tnrange = trange
__all__ = ["tnrange", "tqdm", "trange"]
