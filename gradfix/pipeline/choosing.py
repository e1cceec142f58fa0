"""Which fix a finding gets: the first that resolves it, by what the model says, and brings nothing new.

Every candidate is a version of the file that is analysed like the file itself, so there is a budget for them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gradfix.core.codemod import Applicability, Edit, Effect, Finding, Fix, Severity
from gradfix.pipeline.analysis import Analysis, analyse, identity_of, is_elsewhere, run_codemods, run_model
from gradfix.pipeline.options import Options
from gradfix.pipeline.placing import placed, spans_of
from gradfix.pipeline.results import Reported
from gradfix.project.source import Problem, Source
from gradfix.rewriting.splice import spliced
from gradfix.rules import bindings

if TYPE_CHECKING:
    from gradfix.autograd.program import Program

ALONE = 12
"""How many versions of a file with a single fix are analysed."""

TOGETHER = 12
"""How many versions with the fixes of several findings are analysed after these."""

STATEMENTS = 30_000, 120_000
"""Statements that the model may execute before no further version is analysed: with one fix, with several."""


class _Budget:
    """What may be spent on the choice of the fixes of one file."""

    def __init__(self, before: Program | None) -> None:
        self._version = before.statements_executed if before is not None else 0
        """About how many statements the model executes for a version: as many as for the unchanged file."""
        self.statements = 0
        self.versions = 0
        self.exceeded = False

    def charge(self, program: Program) -> None:
        """Count a version that was analysed: the statements that the model executed, and one for each
        line."""
        self.versions += 1
        self.statements += program.statements_executed + program.text.count("\n")

    @property
    def for_one(self) -> bool:
        """Whether there is something left for a version with one fix alone."""
        return self.versions < ALONE and self.statements + self._version <= STATEMENTS[0]

    @property
    def for_many(self) -> bool:
        """Whether there is something left for a version with many fixes."""
        return self.versions < ALONE + TOGETHER and self.statements < STATEMENTS[1]


def choose_fixes(
    analysis: Analysis, findings: Iterable[Finding], options: Options, notes: list[str]
) -> Iterator[Reported]:
    """``findings``, each with the fix that is chosen for it; where that takes too much, a note says so."""
    whole = options.selected == options.catalog.names
    everything = analysis if whole else analyse(analysis.source, options)
    budget = _Budget(everything.program)
    waiting = list(findings)
    chosen: list[Reported] = []
    while len(chosen) < len(waiting) and budget.for_one:
        finding = waiting[len(chosen)]
        chosen.append(choose_fix(everything, finding, _in_order(finding, options), options, budget))
    chosen += _together(everything, waiting[len(chosen) :], options, budget)
    if budget.exceeded:
        notes.append(
            f"stopped looking for fixes after {budget.versions} versions of the file: some findings have none"
        )
    for reported in chosen:
        lent = everything.program.proxy_calls() if everything.program is not None else ()
        if reported.fix is not None:
            yield reported._replace(finding=placed(reported.finding, reported.fix, analysis.source.tree))
        elif not is_elsewhere(reported.finding, lent):
            yield reported


def _together(
    analysis: Analysis, findings: Sequence[Finding], options: Options, budget: _Budget
) -> list[Reported]:
    """``findings`` with the first fix of each, if one version of the file that has them all bears them out.

    Else half of them, and the other half.
    """
    if not budget.for_many:
        budget.exceeded = budget.exceeded or any(finding.fixes for finding in findings)
        return [Reported(finding) for finding in findings]
    if len(findings) < 2 or not analysis.source.lossless:
        return [choose_fix(analysis, f, _in_order(f, options), options, budget) for f in findings]
    made = {finding: fixes[0] for finding in findings if (fixes := _in_order(finding, options))}
    edits = dict.fromkeys(edit for fix in made.values() for edit in fix.edits)
    text = _rewritten(analysis.source, tuple(edits))
    after = _bears_out(analysis, made, text, options, budget)
    if after is None:
        half = len(findings) // 2
        return [
            *_together(analysis, findings[:half], options, budget),
            *_together(analysis, findings[half:], options, budget),
        ]
    after.release()
    texts = {finding: _rewritten(analysis.source, fix.edits) for finding, fix in made.items()}
    return [
        Reported(finding) if texts.get(finding) is None else Reported(finding, made[finding], texts[finding])
        for finding in findings
    ]


def _in_order(finding: Finding, options: Options) -> list[Fix]:
    """The fixes of a finding: best first, but those that may be applied before those that may not."""
    return sorted(finding.fixes_by(options.way), key=lambda fix: not is_allowed(fix, options))


def choose_fix(
    analysis: Analysis,
    finding: Finding,
    fixes: Iterable[Fix],
    options: Options,
    budget: _Budget | None = None,
) -> Reported:
    """``finding`` with the first of ``fixes`` that resolves it, if the file can be written back."""
    for fix in fixes if analysis.source.lossless else ():
        text = _rewritten(analysis.source, fix.edits)
        after = _bears_out(analysis, {finding: fix}, text, options, budget)
        if after is not None:
            after.release()
            return Reported(finding, fix, after.source.text)
    return Reported(finding)


def other_fixes(analysis: Analysis, chosen: Reported, options: Options) -> Iterator[Reported]:
    """The finding with each further fix that resolves it, of each way the first: for a person to choose from.

    They have a budget of their own.
    """
    known = chosen.finding
    kept = (known.code, known.message, known.fixes, known.ways)
    alike = (f for f in analysis.findings if (f.code, f.message, f.fixes, f.ways) == kept)
    finding = next(alike, None)
    if finding is None:
        return
    budget = _Budget(analysis.program)
    texts, ways = {chosen.fixed_text}, {chosen.fix.way if chosen.fix is not None else None}
    for fix in (*finding.fixes, *finding.ways):
        if (fix.way is not None and fix.way in ways) or not budget.for_one:
            continue
        other = choose_fix(analysis, finding, [fix], options, budget)
        if other.fix is not None and other.fixed_text not in texts:
            texts.add(other.fixed_text)
            ways.add(fix.way)
            yield other


def is_allowed(fix: Fix, options: Options) -> bool:
    """Whether a fix may be applied without further leave."""
    return options.unsafe_fixes or fix.applicability is Applicability.SAFE


def resolve(analysis: Analysis, finding: Finding, fix: Fix, options: Options) -> Analysis | None:
    """The file after ``fix``, if the model says that ``finding`` is gone and nothing new has come."""
    text = _rewritten(analysis.source, fix.edits)
    return _bears_out(analysis, {finding: fix}, text, options)


def _rewritten(before: Source, edits: Sequence[Edit]) -> str | None:
    """The text after ``edits``; None if they cannot be made."""
    text = spliced(before.text, before.tree, edits)
    if text is None:
        from gradfix.rewriting.rewrite import apply_fixes

        rewrite = apply_fixes(before.text, [edits])
        text = None if rewrite.failed or rewrite.deferred else rewrite.text
    return text


def _bears_out(
    analysis: Analysis,
    made: Mapping[Finding, Fix],
    text: str | None,
    options: Options,
    budget: _Budget | None = None,
) -> Analysis | None:
    """The analysis of ``text``, the file after the fixes ``made``, if these findings are gone and no new one
    has come.

    All codemods are asked, selected or not: a fix may not trade one mistake for another. Nor may it
    leave a network without the gradient that it was to learn from.
    """
    from gradfix.autograd.regression import worse

    before = analysis.source
    parsed = before.with_text(text) if text is not None and text != before.text else None
    if not isinstance(parsed, Source) or analysis.program is None:
        return None
    if not bindings.variables_hold(
        before.tree, parsed.tree, [edit for fix in made.values() for edit in fix.edits]
    ):
        return None
    repairs = any(fix.effect is Effect.REPAIRS and fix.claim.raises is not None for fix in made.values())
    cuts = all(fix.only_cuts for fix in made.values())
    after = None
    # Where nothing continues from this version, entry points that never reach the change are left out.
    spans = [span for fix in made.values() for edit in fix.edits for span in spans_of(edit)]
    keys = analysis.program.entry_points_to(spans) if budget is not None else None
    for chosen in (None,) if keys is None else (keys, None):
        program = run_model(parsed, chosen)
        if isinstance(program, Problem):
            return None
        if not worse(analysis.program, program, repairs, not cuts, chosen):
            if cuts and budget is not None:
                # What runs that are made on demand would rule out is no new mistake either.
                with program.no_further_runs():
                    after = _without(analysis, made, run_codemods(parsed, program, options))
            # The codemods come last: they ask for every further run, `worse` for the first bad one.
            after = after or _without(analysis, made, run_codemods(parsed, program, options))
        if budget is not None:
            budget.charge(program)
        if after is not None:
            return after
        program.release()
    return None


def _without(before: Analysis, made: Mapping[Finding, Fix], after: Analysis) -> Analysis | None:
    """``after``, if what is mended is gone there and nothing has come."""
    return after if replaces(before, made, after) is None else None


def replaces(before: Analysis, made: Mapping[Finding, Fix], after: Analysis) -> str | None:
    """Why ``after`` is not ``before`` with the findings of ``made`` mended; ``None`` if it is."""
    if new := [problem for problem in after.problems if problem not in before.problems]:
        return f"cannot be analysed: {new[0].message}"
    if come := _others(before, made, after):
        return f"has {come[0].code} at line {come[0].span.line}: {come[0].message}"
    return None


class Compared(NamedTuple):
    """The findings of two versions of a file, of which some were mended on purpose."""

    same: dict[Finding, Finding]
    """Those of the new version that the old one has as well, each with its old self."""
    gone: list[Finding]
    """Those of the old version that are not found any more, besides the mended ones."""
    come: list[Finding]
    """Those of the new version that the old one has not."""


def compared(before: Analysis, mended: Container[Finding], after: Analysis) -> Compared:
    """The findings of both versions.

    A finding is recognised by its code and the text of its line, or, where a fix has changed that
    line, by the place of the line.
    """
    pool = [finding for finding in before.findings if finding not in mended]
    same: dict[Finding, Finding] = {}
    changed: list[Finding] = []
    for finding in after.findings:
        known = next((old for old in pool if identity_of(old, before) == identity_of(finding, after)), None)
        if known is None:
            changed.append(finding)
        else:
            pool.remove(known)
            same[finding] = known
    moved_to = line_map(before.source.lines, after.source.lines) if changed else {}
    come: list[Finding] = []
    for finding in changed:
        known = next(
            (
                old
                for old in pool
                if old.code == finding.code and moved_to.get(old.span.line) == finding.span.line
            ),
            None,
        )
        if known is None:
            come.append(finding)
        else:
            pool.remove(known)
            same[finding] = known
    return Compared(same, pool, come)


def _others(before: Analysis, made: Mapping[Finding, Fix], after: Analysis) -> list[Finding]:
    """The findings of ``after`` that speak against the fixes that were ``made``.

    A fix that changes what a loss trains may lead to wasted work elsewhere, which another fix can save: such
    a finding does not count. Nor does a hint at a line that the fix leaves alone: the worse mistake had
    hidden it.
    """
    come = compared(before, made, after).come
    redirects = any(fix.effect is not Effect.PRESERVES for fix in made.values())
    moved_to = line_map(before.source.lines, after.source.lines) if come else {}
    untouched = {
        new for old, new in moved_to.items() if before.source.lines[old - 1] == after.source.lines[new - 1]
    }
    return [one for one in come if not (redirects and _is_minor(one) and one.span.line in untouched)]


def _is_minor(finding: Finding) -> bool:
    """Whether what a finding reports is but a hint, or changes no gradient and can be mended."""
    wastes = bool(finding.fixes) and all(fix.effect is Effect.PRESERVES for fix in finding.fixes)
    return wastes or finding.severity is Severity.INFO


def line_map(before: Sequence[str], after: Sequence[str]) -> dict[int, int]:
    """The new number of each line that was kept, or replaced by one other."""
    from difflib import SequenceMatcher

    numbers: dict[int, int] = {}
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, to_start, to_end in matcher.get_opcodes():
        if tag in ("equal", "replace") and end - start == to_end - to_start:
            numbers.update(zip(range(start + 1, end + 1), range(to_start + 1, to_end + 1)))
    return numbers
