"""Calls the main function."""

from __future__ import annotations

import sys
from typing import Any


class UsageError(Exception):
    """The command line is wrong."""


def run(main: Any, argv: Any = None, flags_parser: Any = None) -> None:
    """Call ``main`` as from a command line without flags."""
    sys.exit(main(argv or sys.argv[:1]))
