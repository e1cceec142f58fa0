"""``python -m gradfix``."""

from gradfix.cli import main

if __name__ == "__main__":
    main()
