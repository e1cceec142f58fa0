"""Several environments at once."""

from ....environments import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from ....environments import make_vec as make

__all__ = ["AsyncVectorEnv", "SyncVectorEnv", "VectorEnv", "make"]
