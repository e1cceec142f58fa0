"""Files of sound."""

from . import read, savemat

write = savemat
__all__ = ["read", "write"]
