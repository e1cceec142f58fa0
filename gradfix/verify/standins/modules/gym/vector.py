"""Several environments at once."""

from ...environments import AsyncVectorEnv, SyncVectorEnv, VectorEnv, make

__all__ = ["AsyncVectorEnv", "SyncVectorEnv", "VectorEnv", "make"]
