"""What `gradfix check` does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

import typer

from gradfix.cli import applying
from gradfix.cli.options import EVIDENCE, FindingsFormat, Reporting
from gradfix.cli.output import Printed, complain, hand_out, hand_out_patch, refuse, renderer, stop_for
from gradfix.cli.preparing import prepared
from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, RequestedOptions
from gradfix.pipeline.results import Report
from gradfix.project import source
from gradfix.project.source import Problem
from gradfix.report import text

STANDARD_INPUT = "-"


def check(
    where: Sequence[str], requested: RequestedOptions, reporting: Reporting, printed: Printed
) -> NoReturn:
    """Find the mistakes in ``where``, say so, and end."""
    _must_make_sense(where, reporting)
    if reporting.fix:
        try:
            applying.apply(where, requested, printed, EVIDENCE, dry_run=False, patch=None)
        except typer.Exit as ended:
            raise typer.Exit(reporting.exit_code(ended.exit_code)) from None
    if STANDARD_INPUT in where:
        where = [reporting.stdin_filename or STANDARD_INPUT]
        data: bytes | None = sys.stdin.buffer.read()
    else:
        data = None
    options = prepared(where, requested)
    if reporting.diff:
        _print_diff(where, data, options, reporting, printed)
    report = driver.check(where, options) if data is None else _of_text(where[0], data, options)
    hand_out(_shown(report, options, reporting, printed), reporting.output_file)
    complain(report, printed)
    raise typer.Exit(reporting.exit_code(report.exit_code))


def _must_make_sense(where: Sequence[str], reporting: Reporting) -> None:
    """End if what is wanted contradicts itself."""
    if reporting.fix and reporting.diff:
        refuse("--fix writes the fixes and --diff prints them: choose one")
    if STANDARD_INPUT in where and len(where) > 1:
        refuse("`-` stands for standard input, and no other PATH may stand beside it")
    if STANDARD_INPUT in where and reporting.fix:
        refuse("what is read from standard input cannot be run, so nothing is proved: use --diff")
    if reporting.stdin_filename is not None and STANDARD_INPUT not in where:
        refuse("--stdin-filename is the name of what is read where PATH is `-`")
    if reporting.fix and reporting.output_format not in (FindingsFormat.TEXT, FindingsFormat.JSON):
        refuse("with --fix, --output-format is text or json")
    if (reporting.fix or reporting.diff) and reporting.statistics:
        refuse("--statistics counts what is found, and is not for --fix or --diff")
    if reporting.fix and reporting.output_file is not None:
        refuse("--output-file is for what is found, and not for --fix")
    if reporting.statistics and reporting.output_format not in (
        FindingsFormat.TEXT,
        FindingsFormat.CONCISE,
        FindingsFormat.JSON,
    ):
        refuse(f"--statistics cannot be printed as {reporting.output_format}, only as text or json")


def _of_text(path: str, data: bytes, options: Options) -> Report:
    """The findings in what was read from standard input."""
    if options.leaves_out(path):
        return Report((), (), 0, ())
    file = driver.check_text(path, data, options)
    return Report(() if file.silent else (file,), options.catalog.problems, 1, ())


def _shown(report: Report, options: Options, reporting: Reporting, printed: Printed) -> Iterator[str]:
    """What is printed of the findings."""
    shown = renderer(for_file=reporting.output_file is not None)
    if reporting.statistics:
        if reporting.output_format is FindingsFormat.JSON:
            from gradfix.report import json

            yield json.of_counts(report.counts)
            return
        yield from shown.statistics(report)
    elif reporting.output_format is FindingsFormat.TEXT:
        yield from shown.report(report)
    elif reporting.output_format is FindingsFormat.CONCISE:
        yield from shown.concise(report)
    else:
        yield _for_machines(report, reporting.output_format, options)
        return
    if not printed.quiet:
        yield f"{text.summary_of_report(report, printed.verbose)}\n"


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


def _print_diff(
    where: Sequence[str], data: bytes | None, options: Options, reporting: Reporting, printed: Printed
) -> NoReturn:
    """Print the fixes as a patch, and end: with 1 if there is any, as `ruff check --diff` does."""
    if data is None:
        plan = driver.plan(where, options)
        patch = driver.patch(plan)
        complain(plan, printed)
        problems = bool(plan.all_problems)
    else:
        parsed = source.parse(where[0], data, options.settings.max_file_size)
        stop_for([parsed] if isinstance(parsed, Problem) else [])
        assert not isinstance(parsed, Problem)
        repaired = driver.repair(parsed, options)
        stop_for(repaired.problems)
        patch, problems = driver.patch_of([(where[0], data, repaired.after)]), False
    hand_out_patch(patch, reporting.output_file, show=reporting.output_file is None)
    found = isinstance(patch, Problem) or bool(patch.data)
    raise typer.Exit(reporting.exit_code(2 if problems else int(found)))
