"""Starts a part of this package by its path::

    python .../runtime/__main__.py PART [ARGUMENT]...

``PART`` is ``probe``, ``sandbox`` or ``watch``; the arguments are those of its own ``__main__.py``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

NAME = "_gradfix_runtime"
"""The package's name in the user's interpreter."""


def main() -> None:
    """Load the package, and call the part's own main function."""
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(NAME, path, submodule_search_locations=[folder])
    assert spec is not None and spec.loader is not None
    writing, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
    part = importlib.import_module(NAME + "." + sys.argv[1] + ".__main__")
    sys.dont_write_bytecode = writing
    part.main(sys.argv[2:])


if __name__ == "__main__":
    main()
