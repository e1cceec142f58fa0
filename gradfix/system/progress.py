"""Progress messages: on a terminal one line with the elapsed seconds, elsewhere line by line."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TextIO

from gradfix.system import parallel
from gradfix.system.printable import printable

EVERY = 0.2
"""Seconds after which the line is drawn again."""


class Display:
    """What is being done, on a stream; a context manager, and the function to tell it.

    Args:
        stream: Where it is told.
        quiet: Tell nothing.
        most: Seconds that all of it may take, where that is known.
    """

    def __init__(self, stream: TextIO, *, quiet: bool = False, most: float | None = None) -> None:
        self._stream = stream
        self._of = "" if most is None else f" of {most:.0f} s"
        self._quiet = quiet
        self._drawn = stream.isatty() and not quiet
        self._doing = ""
        self._since = time.monotonic()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._draw_again, daemon=True)

    def __enter__(self) -> Display:
        if self._drawn:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._over.set()
            self._thread.join()
            self._write("\r\x1b[K")

    def __call__(self, doing: str) -> None:
        """Something else is being done from now on."""
        with self._lock:
            self._doing = printable(doing)
        if self._drawn:
            self._draw()
        elif not self._quiet:
            self._write(f"{self._doing}\n")

    def _draw_again(self) -> None:
        while not self._over.wait(EVERY):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            if self._doing:
                seconds = f"{time.monotonic() - self._since:.0f} s{self._of}"
                # A line that wraps could not be drawn over.
                width = max(10, shutil.get_terminal_size().columns - len(seconds) - 2)
                shown = self._doing if len(self._doing) <= width else f"{self._doing[: width - 3]}..."
                self._write(f"\r\x1b[K{seconds}  {shown}")

    def _write(self, what: str) -> None:
        # Whoever does not listen is no reason to stop.
        with suppress(OSError, ValueError):
            self._stream.write(what)
            self._stream.flush()


_terminal: TextIO | None = None
_display: Display | None = None


def show_on(stream: TextIO) -> None:
    """Let :func:`shown` show on a stream what is told, if that is a terminal."""
    global _terminal
    _terminal = stream if stream.isatty() else None


@contextmanager
def shown(most: float) -> Iterator[None]:
    """Show what is told within it, which may take ``most`` seconds, if there is a terminal to show it on."""
    global _display
    # Of several processes each would write over the others.
    if _terminal is None or _display is not None or parallel.is_forked():
        yield
        return
    with Display(_terminal, most=most) as _display:
        try:
            yield
        finally:
            _display = None


def tell(doing: str) -> None:
    """Something else is being done from now on; told only within :func:`shown`."""
    if _display is not None:
        _display(doing)
