"""``python -m gradfix``, and the command."""

# Nothing else, before the import path is clean: what lies in the current folder may be anybody's.
import sys


def main() -> None:
    """Run the command line; the process ends with the exit code."""
    keep_import_path_clean()
    import gc
    import os

    # What is imported stays. Looking for garbage in it takes a tenth of the time to start.
    gc.disable()
    from gradfix.system.interrupts import guarded

    try:
        guarded(_main)
    except SystemExit as leaving:
        # Neither is it taken apart: everything that is to outlive the process has been closed by now.
        if isinstance(leaving.code, int) and not sys.gettrace() and not sys.getprofile():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(leaving.code)
        raise


def _main() -> None:
    from gradfix.cli.commands import main

    main()


NEEDED = ("libcst", "packaging", "pathspec", "typer", "unidiff", "yaml")
"""Packages that gradfix imports."""


def keep_import_path_clean() -> None:
    """Take off the import path what was put there from outside: by ``python -m``, and by ``PYTHONPATH``.

    The folder that gradfix is in stays; and if gradfix needs something that is nowhere else, the others too,
    but for the current one. Python itself has imported a few modules by then, which only
    ``python -P -m gradfix`` looks for elsewhere.
    """
    import os  # Python has it from its start.

    standard = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    names = [os.path.basename(entry) for entry in sys.path]
    # What stands before the standard library came from outside.
    count = names.index(standard) if standard in names else 0
    outside, installed = sys.path[:count], sys.path[count:]
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed += [entry for entry in outside if os.path.abspath(entry) == own]
    if all(any(os.path.exists(os.path.join(entry, name)) for entry in installed) for name in NEEDED):
        outside = []
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # It has been removed.
        here = ""
    kept = [entry for entry in outside if os.path.isabs(entry) and os.path.realpath(entry) != here]
    sys.path[:] = [*kept, *installed]


if __name__ == "__main__":
    main()
