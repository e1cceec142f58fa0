"""Torch is imported once for all that is judged, and what several tests run alike is run once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from gradfix.verify.runner import Runner


@pytest.fixture(autouse=True, scope="module")
def _shared(servers: None) -> Iterator[None]:
    """One original is judged by many tests: its runs, and those of its repairs, are kept for the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "forget_all_but", lambda runner, sources: None)
        yield


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Puts a program into a file, always the same one for the same text."""
    root = tmp_path_factory.mktemp("originals")

    def put(text: str) -> Path:
        file = root / sha256(text.encode()).hexdigest()[:16] / "train.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    return put
