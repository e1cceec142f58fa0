"""Callers for training functions that nobody calls."""

from __future__ import annotations

import types

from . import context


def call_what_nobody_called(run: context.Run, main: types.ModuleType) -> None:
    """Call the training function of a script that only defines it, where its arguments are known."""
