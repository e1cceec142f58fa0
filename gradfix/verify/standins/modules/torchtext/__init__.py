"""torchtext: the fields and iterators of its older versions, the vocabularies and pipes of its newer ones.

Corpora are lines of common words; labels are drawn at random.
"""

from . import data, datasets, transforms, utils, vocab

__version__ = "0.16.0"
__all__ = ["data", "datasets", "transforms", "utils", "vocab"]


def disable_torchtext_deprecation_warning() -> None:
    """There is none."""
