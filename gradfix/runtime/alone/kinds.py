"""The kinds of networks that stand for those that nobody sees."""

from __future__ import annotations

KINDS = ("pure", "noisy", "stateful", "shared", "cut")
"""``pure``; ``noisy``: with dropout and a batch normalization; ``stateful``: with a state that each call
moves; ``shared``: networks of one optimizer share their trunk; ``cut``: not differentiable in data."""
