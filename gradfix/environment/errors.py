"""How making an environment fails."""

from __future__ import annotations


class EnvironmentFailure(Exception):
    """No environment can be had; the message is one sentence for people."""
