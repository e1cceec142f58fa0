"""Where on the web a reader of a report finds more."""

from __future__ import annotations

import os

from gradfix.rules import catalog

HOME: str | None = None
"""The address of the project's repository. It has none yet, so reports leave out what needs one, or say null.
A test holds it to the addresses in ``pyproject.toml``."""


def of_codemod(name: str) -> str | None:
    """The page on a codemod that comes with gradfix; ``None`` of another one, and while there is no page."""
    if HOME is None or not os.path.exists(os.path.join(catalog.builtin(), f"{name.replace('-', '_')}.py")):
        return None
    return f"{HOME}/blob/main/docs/codemods.md#{name}"
