"""The findings that a rewrite resolves.

A finding other than the one that a fix is for may disappear for two reasons. If the fix has changed the code
that the finding is about, or what happens there, it is mended. If all of that is as before, and still no
codemod reports it, it is hidden, and counts as remaining.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gradfix.core.codemod import Finding
from gradfix.core.span import Span
from gradfix.pipeline.analysis import Analysis, identity_of, reported_by
from gradfix.pipeline.choosing import compared, line_map
from gradfix.pipeline.options import Options


class HiddenFinding(NamedTuple):
    """A finding that nothing has mended, and that is found no more."""

    finding: Finding
    line: int
    """Where it is now."""
    identity: tuple[str, str]

    @property
    def now(self) -> Finding:
        """The finding at its place in the present version, which its notes are not about."""
        span = self.finding.span
        moved = span._replace(line=self.line, end_line=self.line + span.end_line - span.line)
        return self.finding._replace(span=moved, notes=())


class Tally:
    """The findings that a file had before anything was rewritten, and what has become of them."""

    def __init__(self, analysis: Analysis, options: Options) -> None:
        self._left = set(reported_by(analysis, options))
        self.hidden: list[HiddenFinding] = []

    def counts(self, finding: Finding) -> bool:
        """Whether a finding is one of these: else it has come up with a rewrite."""
        return finding in self._left

    def also(self, before: Analysis, finding: Finding, after: Analysis) -> tuple[Finding, ...]:
        """What else is mended by the fix of ``finding`` that has made ``after`` of ``before``."""
        gone = compared(before, {finding}, after).gone
        return tuple(mended(before, after, [one for one in gone if one in self._left]))

    def go_on(self, before: Analysis, finding: Finding, also: Iterable[Finding], after: Analysis) -> None:
        """Take note that the fix of ``finding``, which mends others ``also``, is applied."""
        same, gone, come = compared(before, {finding}, after)
        moved_to = line_map(before.source.lines, after.source.lines)
        lost = (
            HiddenFinding(one, one.span.line, identity_of(one, before))
            for one in gone
            if one in self._left and one not in also
        )
        self.hidden = [one._replace(line=moved_to.get(one.line, one.line)) for one in (*self.hidden, *lost)]
        self._left = {new for new, old in same.items() if old in self._left}
        for one in come:
            known = next((other for other in self.hidden if other.identity == identity_of(one, after)), None)
            if known is not None:
                self.hidden.remove(known)
                self._left.add(one)


def mended(before: Analysis, after: Analysis, gone: Iterable[Finding]) -> Iterator[Finding]:
    """Those findings of ``before`` of which ``after`` changes what they tell of.

    That is what a step, a backward, a clearing does where the finding stands. Where there is none, it is what
    happens and what is computed at all the lines that the finding shows.
    """
    from gradfix.autograd.events_by_line import events_by_line

    assert before.program is not None and after.program is not None
    old, new = before.source.lines, after.source.lines
    moved_to = line_map(old, new)
    came_from = {to: line for line, to in moved_to.items()}
    for finding in gone:
        lines, computed = set(_lines([finding.span])), False
        then = events_by_line(before.program, lines, int, computed=False)
        if not then:
            lines, computed = set(_lines([finding.span, *(note.span for note in finding.notes)])), True
            then = events_by_line(before.program, lines, int, computed=True)
        now = {moved_to[line] for line in lines if line in moved_to}
        rewritten = any(line not in moved_to or old[line - 1] != new[moved_to[line] - 1] for line in lines)
        if rewritten or then != events_by_line(
            after.program, now, lambda line: came_from.get(line, -line), computed=computed
        ):
            yield finding


def _lines(spans: Iterable[Span]) -> Iterator[int]:
    for span in spans:
        yield from range(span.line, span.end_line + 1)
