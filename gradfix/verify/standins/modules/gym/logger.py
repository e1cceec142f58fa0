"""Messages, which are dropped."""

from typing import Any

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50
MIN_LEVEL = WARN


def warn(*args: Any, **kwargs: Any) -> None:
    """Dropped."""


set_level = setLevel = info = debug = error = deprecation = success = warn
