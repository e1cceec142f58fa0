"""The journal is told in the middle of a write that the time is up."""

from __future__ import annotations

import io
import json

from gradfix.runtime.probe.journal import EventWriter


class Interrupting(io.StringIO):
    """A file in the middle of whose writes the time is up."""

    journal: EventWriter
    left: list[str]

    def write(self, text: str) -> int:
        self.journal.interrupt(lambda: self.left.append(self.getvalue()))
        return super().write(text)


def journal() -> tuple[EventWriter, Interrupting]:
    made = EventWriter.__new__(EventWriter)
    made.writing, made.overdue = 0, None
    made.values, made.events = io.BytesIO(), Interrupting()
    made.events.journal, made.events.left = made, []
    return made, made.events


def test_what_is_being_written_is_whole_before_the_run_is_left() -> None:
    made, events = journal()
    made.emit("step", number=3)
    assert [json.loads(text) for text in events.left] == [{"event": "step", "number": 3}]


def test_the_run_is_left_once() -> None:
    made, events = journal()
    with made.undivided():
        made.emit("step", number=1)
        made.emit("step", number=2)
        assert events.left == []
    assert len(events.left) == 1


def test_between_writes_it_is_left_at_once() -> None:
    made, events = journal()
    made.interrupt(lambda: events.left.append("now"))
    assert events.left == ["now"]
