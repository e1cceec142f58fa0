"""Interrupts: Ctrl-C ends the work at the current file, and one line says how far it came.

Python raises an exception where an interrupt finds it, and in some places an exception gets nowhere: in what
the garbage collector, a weak reference or a fork calls, or in somebody's bare ``except``. So the signal is
noted as well, looked for before each file, and raised again until it has come through. What must not be left
half done holds it back (:func:`whole`). Another signal, later, ends the process without tidying up.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""A terminal's, a supervisor's, and that of a terminal which has been closed."""
AGAIN = 0.2
"""Seconds after which what has got nowhere is raised again."""
PATIENCE = 0.5
"""Seconds within which another signal is the same one: whoever starts gradfix may pass it on."""


class Interrupted(BaseException):
    """Gradfix has been asked to end.

    No ``KeyboardInterrupt``, for typer would say something of its own.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        """Of the signal."""


class _State:
    def __init__(self) -> None:
        self.number = 0
        """The signal that has come; 0 if none has."""
        self.at = 0.0
        self.holding = 0
        """How many have to come to their end before it is raised."""
        self.so_far = ""
        self.children: set[int] = set()


_state = _State()


def guarded(work: Callable[[], object]) -> None:
    """Do ``work``, which an interrupt ends; then raise ``SystemExit`` with 128 and the signal's number."""
    for number in SIGNALS:
        # Who ignores a signal (nohup, a shell that starts something in the background) means it.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _arrived)
    try:
        try:
            work()
        finally:
            check()
            leave_to_the_system()  # It is over.
    except Interrupted as interrupt:
        _rest()
        with suppress(OSError, ValueError, AttributeError):  # Nobody may listen any more.
            sys.stderr.write(f"interrupted{': ' if _state.so_far else ''}{_state.so_far}\n")
            sys.stderr.flush()
        raise SystemExit(128 + interrupt.number) from None


def check() -> None:
    """Raise :class:`Interrupted` if a signal has come: called before anything that cannot be taken back."""
    if _state.number:
        raise Interrupted(_state.number)


@contextmanager
def whole() -> Iterator[None]:
    """What is done within comes to its end; :func:`check` says then whether a signal came."""
    _state.holding += 1
    try:
        yield
    finally:
        _state.holding -= 1


def say(so_far: str) -> None:
    """What has been done, to be told if it goes no further."""
    _state.so_far = so_far


def born(process: int) -> None:
    """Note a child that is to be ended with this process, even if that has no time to tidy up."""
    _state.children.add(process)


def gone(process: int) -> None:
    """Note that a child has ended."""
    _state.children.discard(process)


def leave_to_the_system() -> None:
    """Let signals end this process at once: it has nothing to tidy up, or is a child, whose parent does."""
    global _state
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    _state = _State()


# ---------------------------------------------------------------------------- signals


def _arrived(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if not _state.number:
        _state.number, _state.at = number, now
        sys.unraisablehook = _unheard
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, _again)
            signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
        if not _state.holding:
            raise Interrupted(number)
    elif not _state.holding and now > _state.at + PATIENCE:
        for child in _state.children:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
        os._exit(128 + number)


def _again(number: int, frame: FrameType | None) -> None:
    """Raise it again, unless it is on its way: then what tidies up is at work."""
    on_its_way: BaseException | None = sys.exception()
    while on_its_way is not None and not isinstance(on_its_way, Interrupted):
        on_its_way = on_its_way.__context__
    if on_its_way is None and not _state.holding:
        raise Interrupted(_state.number)


def _unheard(unraisable: sys.UnraisableHookArgs) -> None:
    """Say nothing of an interrupt that got nowhere: it is raised again."""
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)


def _rest() -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
