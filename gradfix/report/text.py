"""Findings, rewrites and evidence for people to read in a terminal."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from gradfix.core.codemod import Applicability, Codemod, Finding, Severity, UnknownFunction
from gradfix.core.coverage import Coverage, TrainingStep
from gradfix.pipeline.results import Attempt, Explanation, FilePlan, Judged, Outcome, Plan, Report, Reported
from gradfix.project.source import Layout, character_column, layout, split_lines
from gradfix.system.printable import leading, printable

if TYPE_CHECKING:
    from gradfix.pipeline.certificate import Certificate
    from gradfix.pipeline.journal import Undone
    from gradfix.pipeline.results import Outdated, Shortfall, WrittenBaseline
    from gradfix.verify.evidence import Evidence

MOST_CHANGED = 12
"""Changed lines that `check` shows of one fix."""
SHORTEST = 40
"""Columns that wrapped prose has at least."""

_BOLD, _RED, _GREEN, _YELLOW, _BLUE = "1", "1;31", "1;32", "1;33", "1;34"
_SEVERITIES = {Severity.ERROR: _RED, Severity.WARNING: _YELLOW, Severity.INFO: _BLUE}


class Text:
    """Renders what the pipeline returns.

    ``colour`` says whether terminal colours may be used, ``width`` how many columns a terminal has: prose is
    wrapped at words there, and nowhere else.
    """

    def __init__(self, colour: bool, width: int | None = None) -> None:
        self._colour = colour
        self._width = width

    def report(self, report: Report) -> Iterator[str]:
        """Every finding of ``check``."""
        for file in report.files:
            yield from self._findings(file.path, file.text, file.findings)

    def concise(self, report: Report) -> Iterator[str]:
        """Every finding of ``check`` on a line of its own; ``[*]`` marks what ``apply`` has a fix for."""
        for file in report.files:
            shown = layout(file.path, file.text)
            for finding, fix, *_ in file.findings:
                mark = " [*]" if fix is not None and fix.applicability is Applicability.SAFE else ""
                wording = f"{finding.severity}: {finding.message}" if finding.severity else finding.message
                yield f"{self._head(file.path, shown, finding)}{mark} {printable(wording)}\n"

    def statistics(self, report: Report) -> Iterator[str]:
        """How often each mistake was found, the most frequent first."""
        counted = report.counts
        width = max((len(str(one.number)) for one in counted), default=0)
        longest = max((len(one.code) for one in counted), default=0)
        for one in counted:
            fixable = f"  {one.fixable} fixable with `gradfix apply`" if one.fixable else ""
            code = self._paint(f"{one.code:<{longest}}" if fixable else one.code, _BOLD)
            yield f"{one.number:>{width}}  {code}{fixable}\n"

    def plan(self, plan: Plan, *, in_full: bool) -> Iterator[str]:
        """Every rewrite, why it was made, and the verdict of running both versions; then what is left.

        Where the evidence is shown ``in_full``, every check is listed.
        """
        yield from self.certificates(plan, in_full=in_full)
        for file in plan.files:
            yield from self._findings(file.path, file.text, file.untold)
            for finding in file.hidden:
                at = layout(file.path, file.text).place(finding.span.line)
                place = f"{file.path}:{at}: {finding.code}: {finding.message}"
                yield f"{printable(place)}\n  left as it was, although the next check does not find it\n\n"

    def certificates(self, plan: Plan, *, in_full: bool = True) -> Iterator[str]:
        """Every rewrite of ``verify`` with what running both versions showed, all of it or in short.

        Those that were tried for one finding stand together, and below them, if none holds, what a person can
        do.
        """
        for file in plan.files:
            for finding, group in groupby(file.attempts, lambda attempt: attempt.reported_finding):
                tried = list(group)
                shown = layout(file.path, tried[0].before)
                rows = [*self._why(file.path, shown, finding)]
                for attempt in tried:
                    rows += self._attempt(file, attempt, _margin(shown, finding), in_full)
                if not any(attempt.applied for attempt in tried):
                    rows.append(self._point(_margin(shown, finding), _by_hand(finding)))
                yield "".join(f"{line}\n" for line in (*rows, ""))

    def judged(self, files: Iterable[Judged]) -> Iterator[str]:
        """Every mistake of the old versions, and what is to be thought of its repair."""
        colours = {"accepted": _GREEN, "refuted": _RED, "not run": _YELLOW}
        for file in files:
            if file.judgement is None:
                continue
            shown = layout(file.before, file.text)
            for finding, verdict in zip(file.findings, file.judgement.verdicts):
                wording = (
                    f"{self._paint(verdict.outcome, colours[verdict.outcome])}: {printable(verdict.reason)}"
                )
                rows = [
                    *self._why(file.before, shown, finding),
                    self._point(_margin(shown, finding), wording),
                ]
                yield "".join(f"{line}\n" for line in rows)
                yield (
                    "".join(
                        f"      {version:<12}{printable(what)}\n" for version, what in file.judgement.runs
                    )
                    + "\n"
                )

    def rerun(self, found: Certificate, file: Path | None, evidence: Evidence) -> Iterator[str]:
        """A certificate's rewrite, and what running both versions again has shown."""
        now = {
            "as before": "holds the version before the fix",
            "as after": "holds the fixed version",
            "changed": "has been changed since; the versions of the certificate were run",
            "missing": "is not there; the versions of the certificate were run",
            "not looked at": "was not looked at; the versions of the certificate were run by themselves",
        }[found.file_now(file)]
        message = printable(found.message)
        yield f"{self._paint(found.filename, _BOLD)}: {self._paint(found.code, _RED)}: {message}\n"
        yield f"{printable(found.filename)} {now}\n"
        rows = difference(found.filename, found.before, found.after)
        yield "".join(f"    {line}\n" for line in rows) + "\n"
        yield "".join(f"      {printable(line)}\n" for line in evidence.lines()[:-1])
        certified = f"certified as {found.outcome}; now {evidence.outcome}: {evidence.reason}"
        yield f"{printable(certified)}\n"

    def explanation(self, explanation: Explanation) -> Iterator[str]:
        """Why autograd has raised an error, and the patch for it."""
        yield "\n"
        margin = ""
        for path, text, finding in explanation.files:
            shown = layout(path, text)
            margin = _margin(shown, finding)
            yield "".join(f"{row}\n" for row in self._why(path, shown, finding))
        fix = explanation.fix or "no automatic fix"
        if not explanation.fix and explanation.by_hand:
            fix += f"; by hand: {explanation.by_hand}"
        elif not explanation.fix and explanation.known:
            fix += f"; {_ways_of(explanation.known.partition(':')[0])}"
        for wording in filter(None, (explanation.known, explanation.advice, fix)):
            yield f"{self._point(margin, printable(wording))}\n"
        if explanation.patch:
            yield "\n"
            for line in explanation.patch.decode("utf-8", "replace").removesuffix("\n").split("\n"):
                line = _untabbed(line.removesuffix("\r"))
                colour = {"-": _RED, "+": _GREEN, "@": _BLUE}.get(line[:1])
                yield f"{self._paint(line, colour)}\n"
            do = "Write" if "--unproved" in explanation.apply else "Prove and write"
            yield f"\n{do} it with: {printable(explanation.apply)}\n"

    def prose(self, line: str) -> str:
        """A line about the work as a whole."""
        return "".join(f"{row}\n" for row in self._wrapped(line, 0, 4))

    def offer(self, path: str, text: str, reported: Reported) -> Iterator[str]:
        """A finding that somebody is asked about, with all that its fix would change."""
        yield "".join(f"{line}\n" for line in self._finding(path, text, reported, most_changed=None))

    def outcome(self, attempt: Attempt) -> Iterator[str]:
        """What running both versions of a fix showed, in short."""
        word, colour = _outcome(attempt)
        yield f"{self._paint(word, colour)}: {printable(attempt.reason)}\n\n"

    def _findings(self, path: str, text: str, findings: Sequence[Reported]) -> Iterator[str]:
        for reported in findings:
            yield "".join(f"{line}\n" for line in (*self._finding(path, text, reported), ""))

    def _finding(
        self, path: str, text: str, reported: Reported, most_changed: int | None = MOST_CHANGED
    ) -> Iterator[str]:
        shown = layout(path, text)
        yield from self._why(path, shown, reported.finding)
        margin = _margin(shown, reported.finding)
        yield self._point(margin, _described(reported))
        if reported.fixed_text is not None:
            yield from self._difference(path, text, reported.fixed_text, most_changed)
        if others := _other_ways(reported):
            yield self._point(margin, others)

    def _why(self, path: str, shown: Layout, finding: Finding) -> Iterator[str]:
        from gradfix.report.excerpt import excerpt

        severity = f"{finding.severity}: " if finding.severity is not None else ""
        before = len(f"{path}:{shown.place(finding.span.line)}:{finding.span.column}: {finding.code}: ")
        first, *others = self._wrapped(f"{severity}{printable(finding.message)}", before, 4)
        yield f"{self._head(path, shown, finding)}: {first}"
        yield from others
        rows = excerpt(shown.lines, finding)
        gutter = len(_margin(shown, finding))
        bar = self._paint("|", _BLUE)
        yield f"{' ' * gutter} {bar}"
        cell = None
        for row in rows:
            if row.number and (now := shown.cell(row.number)) != cell:
                cell = now
                yield f"{' ' * gutter} {bar} {self._paint(f'# cell {cell}', _BLUE)}"
            number = self._paint(f"{shown.row(row.number) if row.number else '':>{gutter}}", _BLUE)
            if row.number:
                yield f"{number} {bar} {row.text}"
            else:
                for text in self._labelled(row.text, gutter + 3):
                    yield f"{number} {bar} {self._paint(text, _RED if row.primary else _BLUE)}"
        yield f"{' ' * gutter} {bar}"

    def _point(self, margin: str, wording: str) -> str:
        """A line below an excerpt."""
        wording = "\n".join(self._wrapped(wording, len(margin) + 3, len(margin) + 3))
        return f"{margin} {self._paint('=', _BLUE)} {wording}"

    def _wrapped(self, text: str, before: int, indent: int) -> list[str]:
        """``text``, which stands behind ``before`` columns, in lines that a terminal shows as they are."""
        if self._width is None or before + len(text) <= self._width:
            return [text]
        width = max(self._width, indent + SHORTEST)
        first = " " * min(before, width - 1)
        found = textwrap.wrap(
            text, width, initial_indent=first, subsequent_indent=" " * indent, break_on_hyphens=False
        )
        return [found[0].removeprefix(first), *found[1:]] if found else [text]

    def _labelled(self, marks: str, before: int) -> list[str]:
        """A row of marks with its label; the label goes below where there is no room beside them."""
        if self._width is None or before + len(marks) <= self._width:
            return [marks]
        sign = marks.lstrip(" ").split(" ", 1)[0]
        left = len(marks) - len(marks.lstrip(" "))
        label = marks[left + len(sign) :].strip()
        indent = max(0, min(left, self._width - before - SHORTEST))
        width = max(self._width - before, SHORTEST)
        pad = " " * indent
        rows = textwrap.wrap(label, width, initial_indent=pad, subsequent_indent=pad, break_on_hyphens=False)
        return [marks[: left + len(sign)], *rows]

    def _head(self, path: str, shown: Layout, finding: Finding) -> str:
        span, lines = finding.span, shown.lines
        column = character_column(lines[span.line - 1], span.column) if span.line <= len(lines) else 1
        code = self._paint(finding.code, _SEVERITIES[finding.severity or Severity.ERROR])
        return f"{self._paint(leading(path), _BOLD)}:{shown.place(span.line)}:{column}: {code}"

    def _attempt(self, file: FilePlan, attempt: Attempt, margin: str, in_full: bool) -> Iterator[str]:
        """What was rewritten, and what running both versions showed."""
        word, colour = _outcome(attempt)
        before = (
            "fixed, " if file.written and attempt.applied else "not applied, " if attempt.withheld else ""
        )
        told = attempt.outcome in (Outcome.PROVED, Outcome.PROVED_ALONE)
        why = "" if told or not attempt.reason else f": {attempt.reason}"
        done = f" ({attempt.fix.effect}): {attempt.fix.message}{why}"
        yield self._point(margin, f"{self._paint(before + word, colour)}{printable(done)}")
        for finding in attempt.also:
            at = layout(file.path, attempt.before).reworded(f"at line {finding.span.line}")
            also = f"      also        {finding.code} {at}: {finding.message}"
            yield printable(also)
        yield from self._difference(file.path, attempt.before, attempt.after)
        if attempt.evidence is not None:
            evidence = attempt.evidence
            # The reason of what is not proved stands above.
            proved = None if told else -1
            rows = evidence.lines()[:-1] if in_full else evidence.in_short()[:proved]
            yield from (f"      {printable(row)}" for row in rows)
        for other in (attempt, *attempt.ways) if attempt.ways else ():
            cost = "" if other.evidence is None else str(other.evidence.cost())
            wording = cost if other.outcome is Outcome.PROVED else other.reason
            what = ": ".join(filter(None, (f"{other.outcome} ({other.fix.effect})", wording)))
            what += "" if other is attempt else f"; {other.fix.message}"
            yield printable(f"      {'way':<12}{other.fix.way or 'default':<12}{what}")

    def _difference(self, path: str, before: str, after: str, most: int | None = None) -> Iterator[str]:
        """The lines that differ: all of them, or the first where there are more than ``most``."""
        rows = list(_changed(path, before, after))
        width = max((len(str(number)) for _, _, number, _ in rows), default=0)
        shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
        above = None
        for cell, sign, number, line in shown:
            if cell != above:
                above = cell
                yield self._paint(f"    {'':>{width}}   # cell {cell}", _BLUE)
            row = f"    {number:>{width}} {sign} {_untabbed(line)}".rstrip()
            yield self._paint(row, _RED if sign == "-" else _GREEN)
        if shown is not rows:
            yield f"    {'':>{width}}   and {len(rows) - len(shown)} more lines; `--diff` shows them all"

    def _paint(self, text: str, colour: str | None) -> str:
        """``text``, which acts on nothing, in a colour of ours."""
        text = printable(text)
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour and colour and text.strip() else text


def _margin(shown: Layout, finding: Finding) -> str:
    """As many blanks as the numbers of the lines take that are shown of a finding."""
    spans = (finding.span, *(note.span for note in finding.notes))
    rows = [shown.row(min(span.line, len(shown.lines))) for span in spans]
    return " " * len(str(max(rows) or 0))


def _changed(path: str, before: str, after: str) -> Iterator[tuple[int | None, str, int, str]]:
    """Cell, sign, number and text of each line that was taken away or added."""
    from difflib import SequenceMatcher
    from itertools import takewhile

    for (cell, was), (_, now) in zip(layout(path, before).parts, layout(path, after).parts):
        old, new = split_lines(was), split_lines(now)
        # A rewrite changes few lines: those before and behind are not compared with each other.
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new)))
        rest = zip(reversed(old[same:]), reversed(new[same:]))
        behind = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], rest))
        changed = old[same : len(old) - behind], new[same : len(new) - behind]
        for tag, start, end, to_start, to_end in SequenceMatcher(None, *changed, False).get_opcodes():
            if tag != "equal":
                yield from ((cell, "-", same + n + 1, changed[0][n]) for n in range(start, end))
                yield from ((cell, "+", same + n + 1, changed[1][n]) for n in range(to_start, to_end))


def difference(path: str, before: str, after: str) -> list[str]:
    """The lines of the file at ``path`` that differ, numbered."""
    return [
        printable(f"{'' if cell is None else f'cell {cell}:'}{number} {sign} {_untabbed(line)}".rstrip())
        for cell, sign, number, line in _changed(path, before, after)
    ]


def _untabbed(line: str) -> str:
    return line.replace("\t", "    ")


def codemods(known: Iterable[Codemod]) -> Iterator[str]:
    """One line for each codemod: its name, how bad what it finds is, and its summary."""
    listed = list(known)
    width = max((len(codemod.name) for codemod in listed), default=0)
    for codemod in listed:
        yield f"{printable(f'{codemod.name:<{width}}  {codemod.severity:<7}  {codemod.summary}')}\n"


def described(step: TrainingStep) -> str:
    """How far a training step was followed, and if it was not, why, and what a person can do."""
    further = "; ".join(filter(None, (step.assumption, step.reason, step.advice)))
    return f"{step.name}: {step.status}" + (f": {further}" if further else "")


def unknown(function: UnknownFunction) -> str:
    """That nothing is known of a function, and what follows."""
    return f"gradfix does not know {function.name}: of what it is given, and what it gives, it says nothing"


def _coverage(coverage: Coverage, named: bool) -> str:
    """How many training steps were followed; ``named`` says whether the others are told in full."""
    if named or coverage.followed == coverage.total:
        return f"; {coverage}"
    return f"; {coverage} (-v names the {'others' if coverage.covered < coverage.total else 'assumptions'})"


def summary_of_report(report: Report, verbose: bool = False) -> str:
    """The last line of ``check``."""
    return _found(report) + _in_baseline(report) + _coverage(report.coverage, verbose)


def too_little(shortfall: Shortfall) -> str:
    """That fewer training steps were followed than are asked for."""
    asks = f"min-coverage in {shortfall.source}" if shortfall.source else "--min-coverage"
    coverage = shortfall.coverage
    return f"{coverage} ({coverage.percent} %), and {asks} asks for {shortfall.minimum} %"


def _in_baseline(report: Report) -> str:
    if not report.known:
        return ""
    return f"; {_count(report.known, 'finding')} {'is' if report.known == 1 else 'are'} in the baseline"


def _found(report: Report) -> str:
    fixes = [found.fix for found in report.findings if found.fix is not None]
    if not report.findings:
        return _nothing(report)
    files = sum(1 for file in report.files if file.findings)
    safe = sum(1 for fix in fixes if fix.applicability is Applicability.SAFE)
    unproved = sum(1 for fix in fixes if fix.is_authors_choice)
    unsafe = len(fixes) - safe - unproved
    severities = [found.finding.severity for found in report.findings]
    counts = [(severities.count(one), one) for one in Severity if one in severities]
    mixed = ", ".join(_count(number, one) if one != "info" else f"{number} info" for number, one in counts)
    wording = f" ({mixed})" if len(counts) > 1 else ""
    parts = [f"Found {_count(len(report.findings), 'finding')}{wording} in {_count(files, 'file')}"]
    if safe:
        parts.append(f"{safe} fixable with `gradfix apply`")
    if unsafe:
        more = "more " if safe else ""
        parts.append(f"{unsafe} {more}fixable with `gradfix apply --unsafe-fixes`")
    if unproved:
        more = "more " if safe or unsafe else ""
        parts.append(f"{unproved} {more}with `--unsafe-fixes --unproved`, a choice that nothing can prove")
    return ", ".join(parts)


def summary_of_plan(plan: Plan, verbose: bool = False) -> str:
    """The last line of ``apply`` and of ``verify``: of training steps if nothing was found, or some were not
    followed."""
    coverage = plan.coverage
    silent = bool(plan.attempts or plan.remaining) and coverage.covered == coverage.total
    return _done(plan) + ("" if silent else _coverage(coverage, verbose))


def summary_of_conversation(plan: Plan) -> str:
    """The last line of ``apply --interactive``."""
    applied = [attempt for attempt in plan.attempts if attempt.applied]
    outcomes = [f"{sum(one.resolved for one in applied if one.outcome is kind)} {kind}" for kind in Outcome]
    wording = ", ".join(outcome for outcome in outcomes if not outcome.startswith("0 "))
    resolved = _count(sum(attempt.resolved for attempt in applied), "finding")
    parts = [f"Fixed {resolved} ({wording})" if applied else "Fixed nothing"]
    if silenced := sum(file.silenced for file in plan.files):
        parts.append(f"ignored {silenced} by comments")
    if failed := len(plan.attempts) - len(applied):
        parts.append(f"{failed} accepted and not proved, so not written")
    if left := len(plan.remaining):
        parts.append(f"{left} left")
    return ", ".join(parts)


def _done(plan: Plan) -> str:
    if not plan.attempts and not plan.remaining:
        return _nothing(plan)
    applied = [attempt for attempt in plan.attempts if attempt.applied]
    files = [file for file in plan.files if file.applied]
    verb = "Fixed" if files and all(file.written for file in files) else "Would fix"
    outcomes = [f"{sum(a.resolved for a in applied if a.outcome is kind)} {kind}" for kind in Outcome]
    wording = ", ".join(outcome for outcome in outcomes if not outcome.startswith("0 "))
    if made_up := sum(map(_made_up, applied)):
        wording += f"; {made_up} with made-up data"
    resolved = sum(attempt.resolved for attempt in applied)
    fixed = f"{verb} {_count(resolved, 'finding')} in {_count(len(files), 'file')} ({wording})"
    parts = [fixed if applied else "Fixed nothing"]
    if new := sum(not attempt.asked_for for attempt in applied):
        parts.append(f"{new} more that came up with {'it' if resolved == 1 else 'them'}")
    if hidden := sum(len(file.hidden) for file in plan.files):
        parts.append(f"{_count(hidden, 'finding')} left that the next check does not find")
    refuted = sum(attempt.outcome is Outcome.REFUTED for attempt in plan.attempts)
    if refuted:
        parts.append(f"{refuted} refuted by running it and not applied")
    alone = sum(a.outcome is Outcome.PROVED_ALONE for a in plan.attempts if not a.applied)
    if alone:
        parts.append(f"{alone} proved for the step alone and not applied")
    late = sum(a.out_of_time for a in plan.attempts if not a.applied)
    if late:
        parts.append(f"{late} not proved in time and not applied")
    withheld = len(plan.attempts) - len(applied) - refuted - alone - late
    if withheld:
        parts.append(f"{withheld} not proved and not applied")
    unsafe = sum(1 for found in plan.remaining if found.fix)
    if unsafe:
        parts.append(f"{_count(unsafe, 'more finding')} need{'s' if unsafe == 1 else ''} `--unsafe-fixes`")
    left = sum(1 for file in plan.files for found in file.untold if not found.fix)
    if left:
        parts.append(f"{_count(left, 'finding')} left without a fix")
    return ", ".join(parts)


def out_of_time(plan: Plan, seconds: float, *, goes_on: bool) -> str:
    """That the time was over before all rewrites were proved, and what to do about it."""
    rewrites = _count(sum(one.out_of_time for one in plan.attempts), "rewrite")
    what = f"{rewrites} in {_count(len(plan.out_of_time), 'file')} not proved within {seconds:g} s"
    return f"{what}: " + ("the same command again goes on from here" if goes_on else "--seconds gives more")


def missing_in_patch(plan: Plan) -> Iterator[str]:
    """One line for each fix that was made and is not in the patch, with the reason."""
    for file in plan.files:
        for attempt in file.attempts:
            if not attempt.applied:
                finding = attempt.reported_finding
                at = layout(file.path, attempt.before).place(finding.span.line)
                where = f"{file.path}:{at}: {finding.code}"
                yield printable(f"{where}: {attempt.outcome}, so not in the patch: {attempt.reason}")


def summary_of_undone(undone: Undone, dry_run: bool) -> str:
    """What ``undo`` has to say."""
    if not undone.changes and not undone.problems:
        return "Nothing to take back: every file is as it was before the last apply"
    files = _count(len(undone.changes), "file") if undone.changes else "nothing"
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(undone.journal.time))
    wording = "".join(f"{printable(leading(change.path))}\n" for change in undone.changes)
    return f"{wording}{'Would take' if dry_run else 'Took'} back {files} of the apply of {at}"


def summary_of_baseline(written: WrittenBaseline) -> str:
    """What ``check --write-baseline`` says of a baseline."""
    return f"Wrote {_count(written.findings, 'finding')} to {os.path.relpath(written.file)}"


def outdated(entries: Sequence[Outdated], *, in_full: bool) -> Iterator[str]:
    """That baselines hold what is not found any more; ``in_full``, each of them."""
    for file, group in groupby(entries, lambda one: one.baseline):
        those = list(group)
        count = sum(one.number for one in those)
        they, them = ("is", "it") if count == 1 else ("are", "them")
        what = f"{_count(count, 'finding')} of {os.path.relpath(file)} {they} not found any more"
        yield f"{what}; `gradfix check --write-baseline` takes {them} out"
        for one in those if in_full else ():
            times = f" ({one.number} times)" if one.number > 1 else ""
            yield f"{one.filename}: {one.code}: not found any more: {one.line}{times}"


def summary_of_ignored(silenced: Sequence[int], *, written: bool) -> str:
    """The last line of ``check --add-ignores``, which ``silenced`` so many findings in each of some files."""
    if not silenced:
        return "Nothing to ignore"
    verb = "Ignored" if written else "Would ignore"
    return f"{verb} {_count(sum(silenced), 'finding')} by comments in {_count(len(silenced), 'file')}"


def summary_of_judged(files: Sequence[Judged]) -> str:
    """The last line of ``verify --before``."""
    verdicts = [verdict for file in files if file.judgement for verdict in file.judgement.verdicts]
    if not verdicts:
        return "gradfix finds no mistake in the old version, so there is no repair to judge"
    kinds = ("accepted", "refuted", "not run")
    counts = [(sum(verdict.outcome == kind for verdict in verdicts), kind) for kind in kinds]
    wording = ", ".join(f"{count} {kind}" for count, kind in counts if count)
    return f"Judged {_count(len(verdicts), 'mistake')}: {wording}"


def _nothing(run: Report | Plan) -> str:
    failed = f", and {_count(len(run.all_problems), 'problem')}" if run.all_problems else ""
    new = " new" if isinstance(run, Report) and run.known else ""
    return f"Checked {_count(run.checked, 'file')}, found nothing{new}{failed}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _made_up(attempt: Attempt) -> bool:
    """Whether a fix is proved by runs whose data was made up."""
    return attempt.outcome is Outcome.PROVED and attempt.evidence is not None and attempt.evidence.made_up


def _outcome(attempt: Attempt) -> tuple[str, str]:
    """What became of a fix in a few words, and their colour."""
    # Nobody wanted it run; one that was wanted and could not be has a reason.
    word = "not verified" if attempt.outcome is Outcome.UNVERIFIED and not attempt.reason else attempt.outcome
    if _made_up(attempt):
        word = f"{word} with made-up data"
    colours = {Outcome.PROVED: _GREEN, Outcome.REFUTED: _RED}
    return word, colours.get(attempt.outcome, _YELLOW)


def _described(reported: Reported) -> str:
    if reported.left:
        return printable(reported.left)
    if reported.fix is None:
        return f"no automatic fix; {_by_hand(reported.finding)}"
    fix = reported.fix
    return printable(f"fix ({fix.effect}, {fix.applicability_label}): {fix.message}")


def _by_hand(finding: Finding) -> str:
    """What a person can do where no fix holds.

    What is advised in general is often just what has been tried, and does not do for this program.
    """
    return _ways_of(finding.code) if finding.fixes else printable(f"by hand: {finding.advice}")


def _ways_of(code: str) -> str:
    return f"`gradfix explain {code}` says what can be done, and when"


def _other_ways(reported: Reported) -> str:
    """The ways to repair it but the one that the fix takes; empty if there is none."""
    if reported.fix is None:
        return ""
    others = [way for way in reported.finding.available_ways if way is not reported.fix.way]
    if not others:
        return ""
    asked = ", ".join(f"`--way {way}`" for way in others)
    known = f"`gradfix explain {reported.finding.code} --ways` tells when each is right"
    return printable(f"other ways: {asked} ({known})")
