"""absl: flags with their defaults."""

from . import app, flags, logging

__all__ = ["app", "flags", "logging"]
