"""What a run writes: its events, and the values that they point into."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any


class EventWriter:
    """Writes to two files that were opened before the process confined itself."""

    def __init__(self, events: int, values: int) -> None:
        self.events = os.fdopen(events, "w", encoding="utf-8")
        self.values = os.fdopen(values, "wb")
        self.offset = 0
        self.writing = 0
        self.overdue: Any = None
        """What ends the run as soon as what is being written is whole."""

    def emit(self, event: str, **fields: Any) -> None:
        """Write one event, after the values that it points into."""
        line = json.dumps({"event": event, **fields}) + "\n"
        with self.undivided():
            self.values.flush()
            self.events.write(line)
            self.events.flush()

    @contextlib.contextmanager
    def undivided(self) -> Any:
        """Around a write: a signal that ends the run is answered after it; no file can be written within."""
        self.writing += 1
        try:
            yield
        finally:
            self.writing -= 1
            if self.overdue is not None and not self.writing:
                leave, self.overdue = self.overdue, None
                leave()

    def interrupt(self, leave: Any) -> None:
        """Leave now, or once what is being written is whole."""
        if self.writing:
            self.overdue = leave
        else:
            leave()

    def store(self, values: Any, size: int) -> int:
        """Write so many bytes of values; returns where they begin."""
        offset = self.offset
        with self.undivided():
            self.values.write(values)
        self.offset += size
        return offset
