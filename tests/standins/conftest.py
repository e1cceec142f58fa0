"""One import of torch, and of the stand-ins, for all that these tests run."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from gradfix.verify.runner import Runner


@pytest.fixture(scope="session")
def running() -> Iterator[Runner]:
    """What runs the programs. Its total is one for all of them, each of which has limits of its own."""
    with Runner(sys.executable, workers=2, total=3600.0) as one:
        yield one
