"""The forge and the world of the bot's tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import world
from forge_server import ForgeServer
from world import World


@pytest.fixture(scope="module", autouse=True)
def _remembered() -> Iterator[None]:
    """Undone after each module: other tests are about what this leaves out."""
    with pytest.MonkeyPatch.context() as patch:
        world.remember(patch)
        yield


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[ForgeServer]:
    """A forge with the repository."""
    root = tmp_path / "forge"
    shutil.copytree(world.template(), root)
    with ForgeServer(root) as server:
        yield server
    assert server.problems == []


@pytest.fixture
def lab(forge: ForgeServer) -> World:
    """The repository on GitHub."""
    return World(forge)
