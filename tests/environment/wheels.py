"""Distributions that are written by hand, in a folder that uv takes them from."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


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
