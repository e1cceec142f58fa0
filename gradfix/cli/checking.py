"""What `gradfix check` does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

import typer

from gradfix.cli import applying
from gradfix.cli.options import EVIDENCE, FindingsFormat, Reporting
from gradfix.cli.output import (
    Printed,
    complain,
    hand_out,
    hand_out_patch,
    refuse,
    renderer,
    say,
    stop_for,
    tell,
)
from gradfix.cli.preparing import prepared
from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, RequestedOptions
from gradfix.pipeline.results import Report
from gradfix.project import source
from gradfix.project.source import Problem
from gradfix.report import text
from gradfix.system import interrupts

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
        _must_be_named(data or b"", reporting)
    else:
        data = None
    options = prepared(where, requested)
    if reporting.write_baseline:
        _write_baselines(where, options, printed)
    if reporting.add_ignores:
        _add_ignores(where, options, reporting, printed)
    if reporting.diff:
        _print_diff(where, data, options, reporting, printed)
    report = driver.check(where, options) if data is None else _of_text(where[0], data, options)
    hand_out(_shown(report, options, reporting, printed), reporting.output_file)
    if reporting.output_format is FindingsFormat.GITLAB and not printed.quiet:
        tell(f"note: {report.coverage}")  # Its report has no place for what is no issue.
    complain(report, printed)
    raise typer.Exit(reporting.exit_code(report.exit_code))


def _must_be_named(data: bytes, reporting: Reporting) -> None:
    """End if what was read is a notebook without a name that says so.

    It may well parse as Python, and would be found to be without mistakes.
    """
    if reporting.stdin_filename is None and data.lstrip()[:1] == b"{" and b'"nbformat"' in data:
        refuse("what is read is a notebook: give it a name with --stdin-filename NAME.ipynb")


def _must_make_sense(where: Sequence[str], reporting: Reporting) -> None:
    """End if what is wanted contradicts itself."""
    if reporting.fix and reporting.diff:
        refuse("--fix writes the fixes and --diff prints them: choose one")
    if reporting.min_coverage is not None and (
        reporting.fix or reporting.diff or reporting.add_ignores or reporting.write_baseline
    ):
        refuse("--min-coverage stands without --fix, --diff, --add-ignores and --write-baseline")
    _must_make_sense_to_ignore(where, reporting)
    _must_make_sense_for_a_baseline(where, reporting)
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


def _must_make_sense_to_ignore(where: Sequence[str], reporting: Reporting) -> None:
    """The same of what --add-ignores does."""
    if reporting.reason and not reporting.add_ignores:
        refuse("--reason is put behind the comments of --add-ignores")
    if not reporting.add_ignores:
        return
    if STANDARD_INPUT in where:
        refuse("what is read from standard input is no file that --add-ignores could write to")
    if reporting.fix or reporting.statistics:
        refuse("--add-ignores stands without --fix and --statistics")
    if reporting.output_format is not FindingsFormat.TEXT:
        refuse("--add-ignores prints no findings, so --output-format is not for it")
    if reporting.output_file is not None and not reporting.diff:
        refuse("--output-file is for what is found, and not for --add-ignores")
    if not reporting.reason.isprintable():
        refuse("--reason is one line of text")


def _must_make_sense_for_a_baseline(where: Sequence[str], reporting: Reporting) -> None:
    """The same of what --write-baseline does."""
    if not reporting.write_baseline:
        return
    if STANDARD_INPUT in where:
        refuse("what is read from standard input is not for --write-baseline")
    if reporting.fix or reporting.diff or reporting.statistics or reporting.add_ignores:
        refuse("--write-baseline stands without --fix, --diff, --statistics and --add-ignores")
    if reporting.output_format is not FindingsFormat.TEXT or reporting.output_file is not None:
        refuse("--write-baseline prints no findings, so --output-format and --output-file are not for it")


def _of_text(path: str, data: bytes, options: Options) -> Report:
    """The findings in what was read from standard input."""
    if options.leaves_out(path):
        return Report((), (), 0, ())
    file = driver.check_text(path, data, options)
    files = () if file.silent else (file,)
    shortfalls = driver.shortfalls(files, {path: options})
    return Report(files, options.catalog.problems, 1, (), shortfalls=shortfalls)


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
        yield shown.prose(text.summary_of_report(report, printed.verbose))


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


def _write_baselines(where: Sequence[str], options: Options, printed: Printed) -> NoReturn:
    """Write what is found to the baselines, and end; the exit code is 0 if that could be done."""
    report, written = driver.write_baselines(where, options)
    if not printed.quiet:
        for one in written:
            say(text.summary_of_baseline(one))
    complain(report, printed)
    raise typer.Exit(2 if report.all_problems else 0)


def _add_ignores(where: Sequence[str], options: Options, reporting: Reporting, printed: Printed) -> NoReturn:
    """Silence what is found by comments, or with --diff print the patch that would, and end.

    The exit code is 0 if nothing is left, as that of `ruff check --add-noqa`.
    """
    from gradfix.pipeline import ignoring, writing

    interrupts.say("nothing was written")
    report = driver.check(where, options)
    made = ignoring.ignore_all(report.files, reporting.reason.strip())
    failed: Sequence[Problem | None] = [None] * len(made.changes)
    if reporting.diff:
        patch = driver.patch_of(made.changes)
        hand_out_patch(patch, reporting.output_file, show=reporting.output_file is None)
    else:
        done = writing.write(made.changes)
        failed = done.problems
        if done.unkept and not printed.quiet:
            tell(f"note: `gradfix undo` cannot take this back: the journal {done.unkept}")
    if not printed.quiet:
        silenced = [count for count, problem in zip(made.silenced, failed) if problem is None]
        summary = text.summary_of_ignored(silenced, written=not reporting.diff)
        (tell if reporting.diff else say)(summary)
    complain(report, printed)
    texts = {file.path: file.text for file in report.files}
    for path, finding in made.left:
        at = source.layout(path, texts[path]).place(finding.span.line)
        tell(f"warning: {path}:{at}: {finding.code}: no comment can silence it there")
    stop_for([*made.problems, *(problem for problem in failed if problem is not None)])
    raise typer.Exit(2 if report.all_problems else reporting.exit_code(int(bool(made.left))))
