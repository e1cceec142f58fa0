"""Progress: on a terminal one line that is drawn again, elsewhere a line every ten seconds."""

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
"""Seconds after which the line on a terminal is drawn again."""
SELDOM = 10.0
"""Seconds after which a line is written where there is no terminal, by :func:`shown`."""


class Display:
    """What is being done, on a stream; a context manager, and the function to tell it.

    Args:
        stream: Where it is told.
        quiet: Tell nothing.
        most: Seconds that all of it may take, where that is known.
        seldom: Without a terminal, write what is being done every :data:`SELDOM` seconds, and not at once.
    """

    def __init__(
        self, stream: TextIO, *, quiet: bool = False, most: float | None = None, seldom: bool = False
    ) -> None:
        self._stream = stream
        self._of = "" if most is None else f" of {most:.0f} s"
        self._quiet = quiet
        self._drawn = stream.isatty() and not quiet
        self._seldom = seldom and not self._drawn and not quiet
        self._doing = ""
        self._since = time.monotonic()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._draw_again, daemon=True)

    def __enter__(self) -> Display:
        if self._drawn or self._seldom:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn or self._seldom:
            self._over.set()
            self._thread.join()
        if self._drawn:
            self._write("\r\x1b[K")

    def __call__(self, doing: str) -> None:
        """Something else is being done from now on."""
        with self._lock:
            self._doing = printable(doing)
        if self._drawn:
            self._draw()
        elif not self._quiet and not self._seldom:
            self._write(f"{self._doing}\n")

    def say(self, line: str) -> None:
        """Write a line that stays, above the one that is drawn; without a terminal only after a while."""
        with self._lock:
            if self._drawn:
                self._write(f"\r\x1b[K{line}\n")
            elif time.monotonic() - self._since > SELDOM:
                self._write(f"{line}\n")

    def _draw_again(self) -> None:
        while not self._over.wait(EVERY if self._drawn else SELDOM):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            if not self._doing:
                return
            seconds = f"{time.monotonic() - self._since:.0f} s{self._of}"
            if not self._drawn:
                self._write(f"{seconds}  {self._doing}\n")
                return
            # A line that wraps could not be drawn over.
            width = max(10, shutil.get_terminal_size().columns - len(seconds) - 2)
            shown = self._doing if len(self._doing) <= width else f"{self._doing[: width - 3]}..."
            self._write(f"\r\x1b[K{seconds}  {shown}")

    def _write(self, what: str) -> None:
        # Whoever does not listen is no reason to stop.
        with suppress(OSError, ValueError):
            self._stream.write(what)
            self._stream.flush()


_stream: TextIO | None = None
_display: Display | None = None
_done, _count = 0, 0


def show_on(stream: TextIO) -> None:
    """Let :func:`shown` show on a stream what is told."""
    global _stream
    _stream = stream


def of(count: int) -> None:
    """So many files are worked on from now on, one after the other or at once."""
    global _done, _count
    _done, _count = 0, count


def one_more() -> None:
    """A file is done."""
    global _done
    _done += 1


@contextmanager
def shown(most: float) -> Iterator[None]:
    """Show what is told within it, which may take ``most`` seconds, if there is a stream to show it on."""
    global _display
    # Of several processes each would write over the others.
    if _stream is None or _display is not None or parallel.is_forked():
        yield
        return
    with Display(_stream, most=most, seldom=True) as _display:
        try:
            yield
        finally:
            _display = None


def tell(doing: str) -> None:
    """Something else is being done from now on; told only within :func:`shown`."""
    if _display is not None:
        _display(f"{_done + 1} of {_count}: {doing}" if _count > 1 else doing)


def say(line: str) -> None:
    """Write a line that stays, for who waits: a proof is done, for example."""
    if _display is not None:
        _display.say(line)
    elif _stream is not None and _stream.isatty():
        with suppress(OSError, ValueError):
            _stream.write(f"{line}\n")
            _stream.flush()
