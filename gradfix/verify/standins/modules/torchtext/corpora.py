"""Sentences, and pairs of labels and sentences, of the corpora that torchtext offers."""

from __future__ import annotations

from typing import Any

import torch

from ... import media
from ...context import run

LINES = 256
"""Sentences in each part."""


def sentences(name: str, part: str, language: str = "", lines: int = LINES) -> list[str]:
    """Lines of common words."""
    run().used("torchtext corpus " + name, "lines of common words")
    return media.text(run(), "/".join((name, part, language)), lines).splitlines()


def classes(name: str, part: str, count: int, lines: int = LINES) -> list[int]:
    """A class for each line."""
    generator = run().generator("classes", name, part)
    return [int(one) for one in torch.randint(0, count, (lines,), generator=generator)]


def words(line: Any) -> list[str]:
    """The words of a line."""
    return str(line).split()
