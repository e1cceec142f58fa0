"""Versions in their order: by their numbers, and before one with the same numbers if they come before it."""

from __future__ import annotations

import functools
import re
from typing import Any


class InvalidVersion(ValueError):
    """No version."""


@functools.total_ordering
class Version:
    """A version, ``1.13.0a0+cu117`` for one."""

    def __init__(self, text: Any) -> None:
        self.text = str(text).strip()
        found = re.match(r"v?(\d+(?:\.\d+)*)", self.text)
        if found is None:
            raise InvalidVersion(f"Invalid version: {text!r}")
        self.release = tuple(map(int, found[1].split(".")))
        self.base_version = found[1]
        rest, _, self.local = self.text[found.end() :].partition("+")
        self.is_prerelease = re.match(r"[._-]?(a|b|c|rc|alpha|beta|pre|dev)", rest) is not None
        self.major, self.minor, self.micro = (*self.release, 0, 0, 0)[:3]
        self.public = self.text.partition("+")[0]

    @property
    def order(self) -> tuple[Any, ...]:
        """By what it is compared."""
        numbers = list(self.release)
        while numbers and not numbers[-1]:
            numbers.pop()
        return tuple(numbers), not self.is_prerelease

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.order == other.order

    def __lt__(self, other: Version) -> bool:
        return self.order < other.order

    def __hash__(self) -> int:
        return hash(self.order)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Version('{self.text}')>"


LegacyVersion = Version


def parse(version: Any) -> Version:
    """The version that a text is."""
    return Version(version)
