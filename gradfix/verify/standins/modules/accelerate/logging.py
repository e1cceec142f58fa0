"""accelerate.logging: Python's own."""

from __future__ import annotations

import logging
from typing import Any


class Adapter(logging.LoggerAdapter):  # type: ignore[type-arg]
    """Takes what says which process is to log."""

    def process(self, msg: Any, kwargs: Any) -> Any:
        """Without that."""
        return msg, {
            name: one for name, one in kwargs.items() if name not in ("main_process_only", "in_order")
        }


def get_logger(name: str, log_level: Any = None) -> Any:
    """A logger."""
    return Adapter(logging.getLogger(name), {})
