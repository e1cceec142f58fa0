"""The same kinds of objects, elsewhere."""

from .. import handlers, metrics

__all__ = ["handlers", "metrics"]
