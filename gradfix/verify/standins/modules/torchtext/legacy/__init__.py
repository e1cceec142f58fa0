"""The older versions under their later name."""

from .. import data, datasets, vocab

__all__ = ["data", "datasets", "vocab"]
