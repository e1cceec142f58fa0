"""What runs in the user's interpreter, where gradfix is not installed.

The standard library and torch (2.4 and newer) only, and no syntax newer than Python 3.9. These modules are
loaded by their path (see ``__main__.py``), as a package whose name no script uses, so they name each other
relatively; the folder is on no import path. gradfix itself imports some of them, too, by their usual names.
"""

from __future__ import annotations

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
MAIN = os.path.join(FOLDER, "__main__.py")
"""What an interpreter is given to run, before the name of a part and its arguments."""


def leave_import_path() -> None:
    """Take this folder off the import path, where Python has put it: its modules may have names of others."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != FOLDER]
