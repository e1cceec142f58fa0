"""What `gradfix check` does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

import typer

from gradfix.cli import applying
from gradfix.cli.options import EVIDENCE, FindingsFormat
from gradfix.cli.output import Printed, complain, hand_out, hand_out_patch, refuse, renderer, stop_for
from gradfix.cli.preparing import prepared
from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, RequestedOptions
from gradfix.pipeline.results import Report
from gradfix.project import source
from gradfix.project.source import Problem
from gradfix.report import text

STANDARD_INPUT = "-"


class Wanted(NamedTuple):
    """What is to be done with what is found."""

    form: FindingsFormat
    fix: bool
    diff: bool
    statistics: bool
    exit_zero: bool
    file: str | None
    """Where the report goes, if not to standard output."""
    stdin_filename: str | None
    verbose: bool
    quiet: bool

    def exit_code(self, found: int) -> int:
        """What to end with where ``found`` says what there was to report."""
        return 0 if self.exit_zero and found == 1 else found

    @property
    def printed(self) -> Printed:
        return Printed(self.form is FindingsFormat.JSON, self.verbose, self.quiet)


def check(where: Sequence[str], requested: RequestedOptions, wanted: Wanted) -> NoReturn:
    """Find the mistakes in ``where``, say so, and end."""
    _must_make_sense(where, wanted)
    if wanted.fix:
        try:
            applying.apply(where, requested, wanted.printed, EVIDENCE, dry_run=False, patch=None)
        except typer.Exit as ended:
            raise typer.Exit(wanted.exit_code(ended.exit_code)) from None
    if STANDARD_INPUT in where:
        where = [wanted.stdin_filename or STANDARD_INPUT]
        data: bytes | None = sys.stdin.buffer.read()
    else:
        data = None
    options = prepared(where, requested)
    if wanted.diff:
        _print_diff(where, data, options, wanted)
    report = driver.check(where, options) if data is None else _of_text(where[0], data, options)
    hand_out(_shown(report, options, wanted), wanted.file)
    complain(report, wanted.printed)
    raise typer.Exit(wanted.exit_code(report.exit_code))


def _must_make_sense(where: Sequence[str], wanted: Wanted) -> None:
    """End if what is wanted contradicts itself."""
    if wanted.fix and wanted.diff:
        refuse("--fix writes the fixes and --diff prints them: choose one")
    if STANDARD_INPUT in where and len(where) > 1:
        refuse("`-` stands for standard input, and no other PATH may stand beside it")
    if STANDARD_INPUT in where and wanted.fix:
        refuse("what is read from standard input cannot be run, so nothing is proved: use --diff")
    if wanted.stdin_filename is not None and STANDARD_INPUT not in where:
        refuse("--stdin-filename is the name of what is read where PATH is `-`")
    if wanted.fix and wanted.form not in (FindingsFormat.TEXT, FindingsFormat.JSON):
        refuse("with --fix, --output-format is text or json")
    if (wanted.fix or wanted.diff) and wanted.statistics:
        refuse("--statistics counts what is found, and is not for --fix or --diff")
    if wanted.fix and wanted.file is not None:
        refuse("--output-file is for what is found, and not for --fix")
    if wanted.statistics and wanted.form not in (
        FindingsFormat.TEXT,
        FindingsFormat.CONCISE,
        FindingsFormat.JSON,
    ):
        refuse(f"--statistics cannot be printed as {wanted.form}, only as text or json")


def _of_text(path: str, data: bytes, options: Options) -> Report:
    """The findings in what was read from standard input."""
    if options.leaves_out(path):
        return Report((), (), 0, ())
    file = driver.check_text(path, data, options)
    return Report(() if file.silent else (file,), options.catalog.problems, 1, ())


def _shown(report: Report, options: Options, wanted: Wanted) -> Iterator[str]:
    """What is printed of the findings."""
    shown = renderer(for_file=wanted.file is not None)
    if wanted.statistics:
        if wanted.form is FindingsFormat.JSON:
            from gradfix.report import json

            yield json.of_counts(report.counts)
            return
        yield from shown.statistics(report)
    elif wanted.form is FindingsFormat.TEXT:
        yield from shown.report(report)
    elif wanted.form is FindingsFormat.CONCISE:
        yield from shown.concise(report)
    else:
        yield _for_machines(report, wanted.form, options)
        return
    if not wanted.quiet:
        yield f"{text.summary_of_report(report, wanted.verbose)}\n"


def _for_machines(report: Report, form: FindingsFormat, options: Options) -> str:
    """What was found, as other programs read it."""
    from gradfix.report import github, gitlab, json, sarif

    if form is FindingsFormat.SARIF:
        return sarif.of_report(report, options.catalog)
    if form is FindingsFormat.JSON:
        return json.of_report(report)
    if form is FindingsFormat.GITHUB:
        return github.of_report(report)
    return gitlab.of_report(report)


def _print_diff(where: Sequence[str], data: bytes | None, options: Options, wanted: Wanted) -> NoReturn:
    """Print the fixes as a patch, and end: with 1 if there is any, as `ruff check --diff` does."""
    if data is None:
        plan = driver.plan(where, options)
        patch = driver.patch(plan)
        complain(plan, wanted.printed)
        problems = bool(plan.all_problems)
    else:
        parsed = source.parse(where[0], data, options.settings.max_file_size)
        stop_for([parsed] if isinstance(parsed, Problem) else [])
        assert not isinstance(parsed, Problem)
        repaired = driver.repair(parsed, options)
        stop_for(repaired.problems)
        patch, problems = driver.patch_of([(where[0], data, repaired.after)]), False
    hand_out_patch(patch, wanted.file, show=wanted.file is None)
    found = isinstance(patch, Problem) or bool(patch.data)
    raise typer.Exit(wanted.exit_code(2 if problems else int(found)))
