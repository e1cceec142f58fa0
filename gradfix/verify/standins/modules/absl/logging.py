"""Messages, which are dropped."""

from typing import Any

INFO = DEBUG = WARNING = ERROR = FATAL = 0


def info(*args: Any, **kwargs: Any) -> None:
    """Dropped."""


debug = warning = warn = error = fatal = log = set_verbosity = vlog = log_first_n = info
