"""What the pipeline returns: findings, rewrites and their evidence, as values.

Nothing here does anything. The command line and the reports read these, and the exit code is one of
their properties.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from gradfix.core.codemod import Applicability, Finding, Fix, UnknownFunction
from gradfix.core.coverage import Coverage, TrainingStep
from gradfix.project.source import Problem, split_lines

if TYPE_CHECKING:
    from gradfix.pipeline.fingerprints import Identity
    from gradfix.verify.evidence import Evidence
    from gradfix.verify.judging.results import Judgement


class Reported(NamedTuple):
    """A finding, and the fix that would be applied to it."""

    finding: Finding
    fix: Fix | None = None
    """The first fix that resolves the finding and leads to no new one."""
    fixed_text: str | None = None
    """The file with that fix alone."""
    left: str = ""
    """Why the finding is left alone: the way to repair it that was asked for does not exist for it."""


class FileReport(NamedTuple):
    """What ``check`` has to say of one file."""

    path: str
    text: str = ""
    """What is analysed: the file, or the code of a notebook's cells."""
    findings: tuple[Reported, ...] = ()
    problems: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()
    """Where the analysis had to give up, and why; not an error."""
    notes: tuple[str, ...] = ()
    """What else a person should know: that the choice of fixes took too much, say."""
    training_steps: tuple[TrainingStep, ...] = ()
    """Where it trains, and where silence says nothing."""
    unknown_functions: tuple[UnknownFunction, ...] = ()
    known: tuple[Identity, ...] = ()
    """What the findings are recognised by that a baseline holds, and that are not reported."""
    notebook: str = ""
    """The file, where it is a notebook in which something is found."""

    @property
    def silent(self) -> bool:
        """Whether there is nothing to say of the file."""
        return self == FileReport(self.path, self.text)


class Outcome(StrEnum):
    """What became of a fix when both versions were run."""

    PROVED = "proved"
    PROVED_ALONE = "proved for the step alone"
    """The program could not be run; a driver of the step, with what it is handed made up, shows it."""
    REFUTED = "refuted"
    """The fix does not keep its promise on this program: it is not applied."""
    UNVERIFIED = "unverified"
    """The program could not be run, or was not to be."""


class Attempt(NamedTuple):
    """A fix that passed the model, with the text before and after it, and what running them showed."""

    finding: Finding
    fix: Fix
    before: str
    after: str
    outcome: Outcome
    reason: str = ""
    """Why it is refuted, or could not be run; empty if it was not to be run."""
    evidence: Evidence | None = None
    """``None`` if nothing was to be run."""
    withheld: bool = False
    """Whether it is left out because it is not proved."""
    out_of_time: bool = False
    """Whether it is not proved because the time that the user gives to all proofs was over."""
    also: tuple[Finding, ...] = ()
    """The other findings that it mends, at their places before it."""
    asked_for: bool = True
    """Whether the file had the finding from the first: else it has come up with another fix."""
    ways: tuple[Attempt, ...] = ()
    """The other ways to repair the same finding, where they were to be compared."""

    shown: Finding | None = None
    """The finding at the place where the fix is made, if that is another one."""

    @property
    def reported_finding(self) -> Finding:
        """The finding for people."""
        return self.shown or self.finding

    @property
    def resolved(self) -> int:
        """How many of the findings that the file had it mends."""
        return self.asked_for + len(self.also)

    @property
    def applied(self) -> bool:
        """Whether the fix is part of the result."""
        return self.outcome is not Outcome.REFUTED and not self.withheld


class FilePlan(NamedTuple):
    """One file of a plan: the bytes that it holds and those that it is to hold."""

    path: str
    before: bytes
    after: bytes
    text: str
    """The text after; the findings that are left refer to it."""
    attempts: tuple[Attempt, ...] = ()
    """Those that are applied, each on the text that the one before it left; then those that were refuted."""
    remaining: tuple[Reported, ...] = ()
    problems: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()
    training_steps: tuple[TrainingStep, ...] = ()
    unknown_functions: tuple[UnknownFunction, ...] = ()
    written: bool = False
    hidden: tuple[Finding, ...] = ()
    """Findings that are gone although nothing has repaired them, at their present places."""
    silenced: int = 0
    """How many findings comments silence that were added."""

    @property
    def applied(self) -> tuple[Attempt, ...]:
        """The attempts that are part of the result."""
        return tuple(attempt for attempt in self.attempts if attempt.applied)

    @property
    def untold(self) -> tuple[Reported, ...]:
        """The remaining findings, without those that a withheld or refuted attempt already reports."""
        reported_finding = Counter(
            {(one.finding.code, _line(one.before, one.finding)) for one in self.attempts if not one.applied}
        )
        left: list[Reported] = []
        for reported in self.remaining:
            key = reported.finding.code, _line(self.text, reported.finding)
            if reported_finding[key] and reported.fix is None:
                reported_finding[key] -= 1
            else:
                left.append(reported)
        return tuple(left)


def _line(text: str, finding: Finding) -> str:
    """The line of a finding, as it tells the finding from others whatever has been added above it."""
    lines = split_lines(text)
    return lines[finding.span.line - 1].strip() if finding.span.line <= len(lines) else ""


_File = TypeVar("_File", FileReport, FilePlan)


@dataclass(frozen=True, slots=True)
class _FileResults(Generic[_File]):
    files: tuple[_File, ...]
    """Those of which there is anything to say, in order of path."""
    problems: tuple[Problem, ...]
    """Those that belong to none of the files."""
    checked: int
    """How many Python files were looked at."""
    empty: tuple[str, ...]
    """The arguments under which there is no Python file."""

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """The problems of the run and of every file."""
        return self.problems + tuple(problem for file in self.files for problem in file.problems)

    @property
    def coverage(self) -> Coverage:
        """How many of the training steps in all files were followed."""
        return Coverage.of(step for file in self.files for step in file.training_steps)


class Outdated(NamedTuple):
    """Findings that a baseline holds and that are not found any more."""

    baseline: str
    filename: str
    """As the baseline has it."""
    code: str
    line: str
    number: int


class WrittenBaseline(NamedTuple):
    """A baseline that was written."""

    file: str
    findings: int
    """How many it holds."""


class Count(NamedTuple):
    """How often a mistake was found."""

    code: str
    number: int
    fixable: int
    """For how many of them there is a fix that needs no leave."""


class Shortfall(NamedTuple):
    """Fewer training steps were followed than are asked for."""

    minimum: int
    """In percent."""
    source: str
    """The configuration that asks for it; empty for the command line."""
    coverage: Coverage
    """Of the files for which it is asked."""


@dataclass(frozen=True, slots=True)
class Report(_FileResults[FileReport]):
    """What ``check`` found."""

    outdated: tuple[Outdated, ...] = ()
    """What baselines hold and is not found any more."""
    shortfalls: tuple[Shortfall, ...] = ()
    """Where fewer training steps were followed than are asked for."""

    @property
    def known(self) -> int:
        """How many findings are in a baseline, and not reported."""
        return sum(len(file.known) for file in self.files)

    @property
    def counts(self) -> list[Count]:
        """How often each mistake was found, the most frequent first."""
        found = Counter(one.finding.code for one in self.findings)
        fixable = Counter(
            one.finding.code
            for one in self.findings
            if one.fix is not None and one.fix.applicability is Applicability.SAFE
        )
        ordered = sorted(found, key=lambda code: (-found[code], code))
        return [Count(code, found[code], fixable[code]) for code in ordered]

    @property
    def findings(self) -> tuple[Reported, ...]:
        """The findings of all files."""
        return tuple(reported for file in self.files for reported in file.findings)

    @property
    def exit_code(self) -> int:
        """0: nothing to report, 1: findings, or too few training steps followed, 2: some of the work could
        not be done."""
        return 2 if self.all_problems else int(bool(self.findings or self.shortfalls))


@dataclass(frozen=True, slots=True)
class Plan(_FileResults[FilePlan]):
    """Everything that ``apply`` is about to write, or has written."""

    unkept: str = ""
    """Why ``undo`` cannot take back what was written; empty if it can."""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts in all files."""
        return tuple(attempt for file in self.files for attempt in file.attempts)

    @property
    def remaining(self) -> tuple[Reported, ...]:
        """The findings that are left when the plan is written."""
        return tuple(reported for file in self.files for reported in file.remaining)

    @property
    def out_of_time(self) -> tuple[FilePlan, ...]:
        """The files in which the time for all proofs was over before each rewrite was proved or refused."""
        return tuple(file for file in self.files if any(one.out_of_time for one in file.attempts))

    @property
    def was_run(self) -> bool:
        """Whether both versions of any rewrite could be run."""
        return any(attempt.outcome is not Outcome.UNVERIFIED for attempt in self.attempts)

    @property
    def exit_code(self) -> int:
        """As of :class:`Report`, for the files as they are: a plan that is not written leaves findings."""
        if self.all_problems:
            return 2
        return int(
            any(file.remaining or file.hidden or (file.applied and not file.written) for file in self.files)
        )


class Judged(NamedTuple):
    """A new version of a file, held against the mistakes of the old one."""

    before: str
    after: str
    """The paths of the two."""
    text: str = ""
    """The old text, to which the findings refer."""
    findings: tuple[Finding, ...] = ()
    judgement: Judgement | None = None
    """The verdicts, one for each finding; ``None`` if there is no finding."""
    problems: tuple[Problem, ...] = ()

    @property
    def exit_code(self) -> int:
        """0: every mistake is mended, 1: one is not, 2: that could not be told."""
        outcomes = {verdict.outcome for verdict in self.judgement.verdicts} if self.judgement else set()
        if "refuted" in outcomes:
            return 1
        return 0 if outcomes == {"accepted"} and not self.problems else 2


class Explanation(NamedTuple):
    """Why autograd has raised an error in a script that ran under watch."""

    files: tuple[tuple[str, str, Finding], ...]
    """``(path, text, what happened there)``, first the file in which the error was raised."""
    known: str = ""
    """The codemod and its finding that foretell this error; empty if none does."""
    advice: str = ""
    """How to learn what could not be told."""
    by_hand: str = ""
    """What a person can do where there is no fix."""
    fix: str = ""
    """What its fix does; empty if there is none."""
    patch: bytes = b""
    apply: str = ""
    """The command that applies the fix."""


class Patch(NamedTuple):
    """A plan as a patch that ``git apply`` takes; it gives byte for byte what ``write`` writes."""

    data: bytes
    folder: str
    """The folder from which its paths count: the current one if that holds all the files."""
    by_cell: bytes = b""
    """The same for people: of a notebook, the code of each cell that changes. It cannot be applied."""
