"""The messages of the Language Server Protocol in a stream of bytes, whatever else the stream holds.

A message is a header, which tells the length of its body, an empty line, and the body. Where that is no
length (too large, no number), or that of another body, everything up to the next header is passed over: a
body is JSON, in which no line ends as a header does. So neither memory nor the server is lost with a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import BinaryIO

LARGEST = 64 << 20
"""Most bytes of a message that is read."""

_LENGTH = re.compile(rb"(?i)content-length:[ \t]*(\d+)[ \t]*\r?\n\Z")
_LINE = 1 << 16
"""Bytes of a line that are looked at together."""
_HEADER = 100
"""More bytes than the line has that tells a length."""


class Messages:
    """A stream, as one whose every message has a plain header: what a reader of such streams needs of it."""

    def __init__(self, stream: BinaryIO, tell: Callable[[str], None]) -> None:
        """``tell`` is told of what is passed over."""
        self._stream = stream
        self._tell = tell
        self._lines: list[bytes] = []

    def readline(self) -> bytes:
        """The next line of a header; empty at the end of the stream."""
        if not self._lines:
            length = self._next()
            if length is None:
                return b""
            self._lines = [b"Content-Length: %d\r\n" % length, b"\r\n"]
        return self._lines.pop(0)

    def read(self, count: int) -> bytes:
        """The body of the message whose header has been read."""
        return self._stream.read(count)

    def _next(self) -> int | None:
        """The length of the next body that can be read; ``None`` at the end of the stream."""
        before, length = b"", 0
        while line := self._stream.readline(_LINE):
            # It stands at the end of a line that may begin with the rest of a body, and may be cut in two.
            if found := _LENGTH.search(before + line):
                digits = found[1].lstrip(b"0")
                if len(digits) > len(str(LARGEST)) or int(digits or b"0") > LARGEST:
                    self._tell(f"a message is passed over: it is said to have {_shown(digits)} bytes")
                    digits = b""
                length, before = int(digits or b"0"), b""
            elif length and not line.strip():
                return length
            else:
                before = b"" if line.endswith(b"\n") else (before + line)[-_HEADER:]
        return None


def _shown(digits: bytes) -> str:
    return f"{int(digits):,}" if len(digits) <= 20 else f"more than {10**20:,}"
