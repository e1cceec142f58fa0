"""Environments that ``gradfix env`` has made: of wheels that strangers have written.

A wheel may bring a ``.pth`` file, which Python executes whenever the environment's interpreter starts. Nobody
has vouched for any of it, so nothing of such an environment runs outside the sandbox: what it is made of is
read off its manifest, never asked of its interpreter, and that is started by gradfix's own, in a process that
is confined already (``runtime/probe/untrusted.py``).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

from gradfix.system import hostile

MANIFEST = "gradfix.json"
"""The file by which such an environment is known, beside its ``pyvenv.cfg``."""
LARGEST = 1 << 22
"""Bytes of a manifest that are read."""


class Made(NamedTuple):
    """An environment that gradfix has made."""

    folder: str
    bases: tuple[str, ...]
    """Where the interpreter is installed that it was made with."""

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The folders whose programs, libraries and packages its interpreter reads."""
        return (self.folder, *self.bases)

    def has(self, module: str) -> bool:
        """Whether a package of this name lies in it."""
        places = [
            *Path(self.folder).glob("lib/python*/site-packages"),
            Path(self.folder, "Lib/site-packages"),
        ]
        return any((place / module).is_dir() for place in places)


def environment_of(executable: str) -> Made | None:
    """The environment in which an interpreter lies, if gradfix has made it."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(executable)))
    manifest = os.path.join(folder, MANIFEST)
    if not os.path.lexists(manifest):
        return None
    try:
        bases = json.loads(hostile.read(Path(manifest), LARGEST))["bases"]
        return Made(folder, tuple(base for base in bases if os.path.isabs(base)))
    except (OSError, ValueError, LookupError, TypeError):
        return Made(folder, bases_of_this())


def bases_of_this() -> tuple[str, ...]:
    """Where gradfix's own interpreter is installed."""
    return tuple(dict.fromkeys(map(os.path.abspath, (sys.base_prefix, sys.base_exec_prefix))))
