"""An index of wheels in a folder, and a user who has told uv to use nothing else."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from gradfix.environment import uv
from gradfix.environment.errors import EnvironmentFailure


def uv_or_skip() -> str:
    try:
        return uv.find()
    except EnvironmentFailure:
        pytest.skip("there is no uv")


@dataclass(frozen=True, slots=True)
class Index:
    """A folder of distributions."""

    folder: Path

    def wheel(
        self,
        name: str,
        version: str = "1.0",
        *,
        modules: Mapping[str, str] | None = None,
        requires: Sequence[str] = (),
        tag: str = "py3-none-any",
    ) -> None:
        stem = name.replace("-", "_")
        info = f"{stem}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        files = {
            **(modules if modules is not None else {f"{stem}/__init__.py": f"version = {version!r}\n"}),
            f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {one}\n" for one in requires),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
        }
        record = "".join(f"{path},sha256={_hash(text)},{len(text)}\n" for path, text in files.items())
        with zipfile.ZipFile(self.folder / f"{stem}-{version}-{tag}.whl", "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
            archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")

    def sdist(self, name: str, version: str, setup: str) -> None:
        """A source distribution with this ``setup.py``."""
        files = {"setup.py": setup, "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
        with tarfile.open(self.folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(f"{name}-{version}/{path}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))


def _hash(text: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


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
    yield root
    shutil.rmtree(root, ignore_errors=True)
