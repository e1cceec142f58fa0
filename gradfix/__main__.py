"""``python -m gradfix``, and the command."""

import gc


def main() -> None:
    """Run the command line; raises ``SystemExit`` with the exit code."""
    # What is imported stays. Looking for garbage in it takes a tenth of the time to start.
    gc.disable()
    from gradfix.cli import main

    main()


if __name__ == "__main__":
    main()
