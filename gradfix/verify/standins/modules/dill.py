"""dill, cloudpickle and pickle5: objects in files, as ``pickle`` has them."""

from __future__ import annotations

import pickle
from typing import Any


def __getattr__(name: str) -> Any:
    """What ``pickle`` has now, its readers of absent files included."""
    return getattr(pickle, name)
