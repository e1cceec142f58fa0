"""The programs that the guards are held against, and what the static tests assert of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from cases import CASES
from unit import test_idioms as idioms

from gradfix.pipeline import driver
from gradfix.pipeline.options import Options
from gradfix.project import source
from gradfix.project.source import Source


@dataclass(frozen=True)
class Example:
    """One program of the tests."""

    name: str
    path: str
    data: bytes
    asserted: Callable[[Source, Options], Hashable]
    """What the tests assert of it, as far as nothing is run."""

    @property
    def mistake(self) -> str:
        """The mistake that it has, or nearly has, as the file of its codemod is called."""
        return re.split(r"[/:]", self.name.removeprefix("near miss: "))[0].replace("-", "_")

    def outcome(self, options: Options) -> Hashable:
        """What the tests see of it."""
        parsed = source.parse(self.path, self.data, 1 << 24)
        assert isinstance(parsed, Source)
        return self.asserted(parsed, options)


def _repaired(parsed: Source, options: Options) -> Hashable:
    result = driver.repair(parsed, options)
    applied = tuple((a.finding.code, a.fix.effect, a.fix.claim) for a in result.applied)
    return result.after, applied, tuple(one.finding.code for one in result.remaining), result.messages


def _found(parsed: Source, options: Options) -> Hashable:
    return tuple(one.finding.code for one in driver.file_report(parsed, options).findings)


def _reported(parsed: Source, options: Options) -> Hashable:
    return tuple(idioms.reported(parsed.text, options))


def examples() -> Iterator[Example]:
    """All programs: the fixtures and what they become, and the idioms with each mistake."""
    for case in CASES:
        for path in (case.path, case.fixed):
            if path is not None:
                name = str(path.relative_to(path.parents[1]))
                yield Example(name, str(path), path.read_bytes(), _repaired)
    for idiom in idioms.IDIOMS:
        for mistake in idioms.MISTAKES:
            text = idiom.written(mistake)
            if text is not None:
                yield Example(f"{idiom.name} {mistake}", "script.py", text.encode(), _found)
    for name in idioms.turns():
        for change in idioms.CHANGES:
            text = idioms.in_turn(name, change)
            if text is not None:
                yield Example(f"adversarial: {name} {change}", "script.py", text.encode(), _found)
    for name, (text, _) in idioms.near_misses().items():
        yield Example(f"near miss: {name}", "script.py", text.encode(), _reported)
