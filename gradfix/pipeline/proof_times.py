"""How long the proofs of each file took the last time, by which those of many files are put in order.

Where there is not time for all, those come first that held the last time, then those that have not been made
yet, the cheap ones first; what could not be proved is tried again at last. No verdict is taken from here: a
run depends on data, packages and the machine, so each proof is made again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from os.path import abspath
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from gradfix.project import configuration
from gradfix.project.traces import digest
from gradfix.system import store

if TYPE_CHECKING:
    from gradfix.pipeline.results import FilePlan, FileReport

SECONDS = 10.0
"""What one rewrite is guessed to take in a file whose proofs have not been timed."""

_Outcome = Literal["applied", "unfinished", "nothing applied"]
"""What came of a file's rewrites."""
_ORDER = ("applied", "unknown", "unfinished", "nothing applied")
"""Whose proofs are made first. One that was given up takes longer than it was given."""


class LastTime(NamedTuple):
    """What is known of the proofs of a file."""

    content: str
    """A digest of the file as it was."""
    seconds: float
    outcome: _Outcome


@dataclass(frozen=True, slots=True)
class ProofTimes:
    """What is known of the proofs of files; nothing is, and is kept, where there is no folder."""

    folder: str | None

    def order(self, path: str, data: bytes, report: FileReport) -> tuple[int, float, int]:
        """What sorts files: by what is to be expected of their proofs, then by the cost, then by size."""
        known = self._last_time(path)
        if known is None:
            rewrites = sum(bool(one.finding.fixes) for one in report.findings)
            return _ORDER.index("unknown"), rewrites * SECONDS, len(data)
        outcome = known.outcome if known.content == digest(data) else "unknown"
        return _ORDER.index(outcome), known.seconds, len(data)

    def keep(self, plan: FilePlan, seconds: float) -> None:
        """Keep how long the proofs of a file took, if any were made."""
        proofs = [one for one in plan.attempts if one.evidence is not None]
        if self.folder is None or not proofs:
            return
        outcome: _Outcome = "nothing applied"
        if plan.applied:
            outcome = "applied"
        elif any(one.out_of_time for one in plan.attempts):
            outcome = "unfinished"
        entry = LastTime(digest(plan.before), round(seconds, 1), outcome)
        store.write(self.folder, _name(plan.path), json.dumps(entry).encode())

    def _last_time(self, path: str) -> LastTime | None:
        if self.folder is None:
            return None
        with suppress(ValueError, TypeError):
            content, seconds, outcome = json.loads(store.read(self.folder, _name(path)))
            if outcome in get_args(_Outcome):
                return LastTime(str(content), float(seconds), outcome)
        return None


def opened(paths: Sequence[str]) -> ProofTimes:
    """What is known of files below ``paths``, in the user's cache folder."""
    folder = store.place("check")
    if folder is None or store.came_with_the_code(folder, configuration.repository(paths)):
        return ProofTimes(None)
    return ProofTimes(folder if store.own(folder) else None)


def _name(path: str) -> str:
    return digest(b"proofs", abspath(path).encode("utf-8", "surrogateescape"))
