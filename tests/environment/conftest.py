"""A user who has told uv to take distributions from one folder, and a project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from wheels import Index

from gradfix.environment import uv
from gradfix.environment.errors import EnvironmentFailure


def uv_or_skip() -> str:
    try:
        return uv.find()
    except EnvironmentFailure:
        pytest.skip("there is no uv")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """The only place that uv takes distributions from, and a cache of its own."""
    own = uv_or_skip()
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(uv, "find", lambda: own)
    return Index(folder)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project's root."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    return root
