"""Files are written one by one, each whole or not at all, and the journal can take it all back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from gradfix.project import configuration
from gradfix.project.source import Problem
from gradfix.system import interrupts


class Change(NamedTuple):
    """A file that is to be written: what it holds, and what it is to hold."""

    path: str
    before: bytes
    after: bytes


class Written(NamedTuple):
    """What came of it."""

    problems: tuple[Problem | None, ...]
    """For each change the reason why the file could not be written; it keeps its bytes then."""
    unkept: str = ""
    """Why ``undo`` cannot take it back; empty if it can."""


def write(changes: Sequence[Change]) -> Written:
    """Write the files; what they hold before is kept first, for :mod:`gradfix.pipeline.journal`."""
    from gradfix.pipeline import journal
    from gradfix.system import files

    if not changes:
        return Written(())
    interrupts.check()
    kept, unkept = None, ""
    try:
        with interrupts.whole():
            kept = journal.record(changes)
    except OSError as error:
        unkept = files.describe_error(error, "cannot be kept")
    problems = tuple(_one_by_one(changes))
    if kept is not None:
        written = {os.path.realpath(one.path) for one, problem in zip(changes, problems) if problem is None}
        with suppress(OSError):  # It says more than it has to, then.
            journal.keep(kept, written)
    return Written(problems, unkept)


def _one_by_one(changes: Sequence[Change]) -> Iterator[Problem | None]:
    """Write them; an interrupt ends that between two files."""
    done = 0
    for path, before, after in changes:
        interrupts.check()
        with interrupts.whole():
            problem = configuration.replace(path, before, after)
            done += problem is None
            interrupts.say(f"{done} of {len(changes)} file{'' if len(changes) == 1 else 's'} written")
        yield problem
    interrupts.check()
