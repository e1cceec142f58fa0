"""``python -m gradfix``, and the command."""

import gc
import os
import sys


def main() -> None:
    """Run the command line; the process ends with the exit code."""
    # What is imported stays. Looking for garbage in it takes a tenth of the time to start.
    gc.disable()
    from gradfix.interrupts import guarded

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
    from gradfix.cli import main

    main()


if __name__ == "__main__":
    main()
