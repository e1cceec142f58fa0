"""What commands print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TextIO

import typer

from gradfix.core.coverage import Status
from gradfix.pipeline.results import Attempt, FileReport, Patch, Plan, Report
from gradfix.project import configuration, source
from gradfix.project.source import Problem
from gradfix.report import text
from gradfix.system import interrupts
from gradfix.system.printable import printable

if TYPE_CHECKING:
    from gradfix.cli.options import FindingsFormat, OutputFormat, Printing
    from gradfix.verify.evidence import Evidence
    from gradfix.verify.judging.results import Judgement


class Printed(NamedTuple):
    """What a command is to print."""

    as_json: bool
    verbose: bool
    quiet: bool

    @classmethod
    def of(cls, printing: Printing, form: OutputFormat | FindingsFormat) -> Printed:
        """What the options of a command say."""
        return cls(form == "json", printing.verbose, printing.quiet)


def show_progress(printed: Printed) -> None:
    """Tell on a terminal what is being run; it may take minutes."""
    if not printed.quiet:
        from gradfix.system import progress

        progress.show_on(sys.stderr)


def showing_attempts(printed: Printed, folder: str | None) -> Callable[[str, int, Attempt], None]:
    """Say what came of each fix as soon as it has been run, and keep its certificate in ``folder``.

    So an interrupt loses neither. Without a folder nothing is kept.
    """

    def attempted(path: str, number: int, attempt: Attempt) -> None:
        from gradfix.report import evidence
        from gradfix.system import progress

        if folder is not None:
            evidence.save_one(path, number, attempt, folder)
            interrupts.say(f"nothing was written; the evidence so far is in {folder}")
        if not printed.quiet:
            at = source.layout(path, attempt.before).place(attempt.reported_finding.span.line)
            said = f"{path}:{at}: {attempt.finding.code}: {attempt.outcome}"
            progress.say(printable(f"{said}: {attempt.reason}" if attempt.reason else said))

    return attempted


def refuse(message: str) -> NoReturn:
    tell(f"error: {message}")
    raise typer.Exit(2)


def hand_out_patch(patch: Patch | Problem, file: str | None, *, show: bool) -> None:
    """Write ``patch`` to ``file``, if there is one, and print it, if it is to be shown."""
    if isinstance(patch, Problem):
        refuse(str(patch))
    if file is not None:
        with interrupts.whole():
            problem = configuration.save(file, patch.data)
            interrupts.say("the patch was written" if problem is None else "nothing was written")
        interrupts.check()
        stop_for([problem] if problem else [])
    if show:
        # Who reads it on a terminal cannot do anything with the JSON of a notebook.
        put(patch.by_cell if sys.stdout.isatty() else patch.data)
    if patch.data and not os.path.samefile(patch.folder, "."):
        tell(f"note: the paths in the patch count from {patch.folder}")


def must_be_usable(folder: str) -> None:
    """End if no certificates could be written to ``folder``: what is run for them would be lost."""
    from gradfix.report import evidence

    stop_for([problem] if (problem := evidence.unusable(folder)) else [])


def save_evidence(plan: Plan, folder: str, printed: Printed) -> None:
    """Write the certificates to ``folder``, and say so."""
    from gradfix.report import evidence

    saved = evidence.save(plan, folder)
    stop_for([saved] if isinstance(saved, Problem) else [])
    if saved and not printed.quiet:
        tell(f"note: the evidence is in {folder}")


def complain(run: Report | Plan, printed: Printed) -> None:
    """Say on standard error what could not be done."""
    for problem in run.all_problems:
        tell(f"error: {problem}")
    for shortfall in run.shortfalls if isinstance(run, Report) else ():
        tell(f"error: {text.too_little(shortfall)}")
    if printed.quiet:
        return
    for path in run.empty:
        tell(f"warning: no Python files found under {path}")
    for file in run.files:
        for message in file.notes if isinstance(file, FileReport) else ():
            tell(f"note: {file.path}: {message}")
        if printed.verbose:
            shown = source.layout(file.path, file.text)
            for step in file.training_steps:
                if step.status is not Status.FOLLOWED:
                    what = shown.reworded(text.described(step))
                    tell(f"note: {file.path}:{shown.place(step.line)}: {what}")
            for function in file.unknown_functions:
                tell(f"note: {file.path}:{shown.place(function.line)}: {text.unknown(function)}")
            for message in file.messages:
                tell(f"note: {file.path}: {shown.reworded(message)}")
    if isinstance(run, Report) and run.outdated:
        for line in text.outdated(run.outdated, in_full=printed.verbose):
            tell(f"note: {line}")
    if isinstance(run, Plan):
        say_passed_over(attempt.evidence for file in run.files for attempt in file.attempts)


def say_passed_over(runs: Iterable[Evidence | Judgement | None]) -> None:
    """Say which interpreters would have come first and did not, each once."""
    lines = dict.fromkeys(line for run in runs if run is not None for line in run.passed_over)
    for line in lines:
        tell(f"note: {line}")


def stop_for(problems: Iterable[Problem]) -> None:
    """End with exit code 2 if there are ``problems``."""
    reported = [f"error: {problem}" for problem in problems]
    for line in reported:
        tell(line)
    if reported:
        raise typer.Exit(2)


def say(line: str) -> None:
    """Print a line; what files hold is no control sequence for the terminal."""
    put(fitting(line, sys.stdout))


def tell(line: str) -> None:
    """Print a line about the work on standard error."""
    put(fitting(line, sys.stderr), sys.stderr)


def fitting(line: str, stream: TextIO) -> str:
    """``line`` as it is printed to ``stream``: on a terminal it is wrapped at words."""
    return text.Text(False, _columns(stream)).prose(printable(line))


def _columns(stream: TextIO) -> int | None:
    """How wide the terminal is that ``stream`` leads to, if it does."""
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


_chosen: bool | None = None
"""Whether to print in colour, if the user has said."""


def choose_colour(wanted: bool | None) -> None:
    """Print in colour from now on, or not; ``None`` for what the environment and the terminal say."""
    global _chosen
    _chosen = wanted


def chosen_colour() -> str | None:
    """What the user has said of colours, as ``--color`` takes it."""
    return None if _chosen is None else "always" if _chosen else "never"


def _colour() -> bool:
    if _chosen is not None:
        return _chosen
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def renderer(*, for_file: bool = False) -> text.Text:
    """What renders reports for standard output, which may be a terminal, or for a file."""
    if for_file:
        return text.Text(bool(_chosen))
    return text.Text(_colour(), _columns(sys.stdout))


def hand_out(parts: Iterable[str], file: str | None) -> None:
    """Print ``parts``, or write them to ``file`` if there is one."""
    if file is None:
        put_all(parts)
        return
    problem = configuration.save(file, "".join(parts).encode("utf-8", "backslashreplace"))
    stop_for([problem] if problem else [])


def put_all(parts: Iterable[str]) -> None:
    for part in parts:
        put(part)


def put(what: str | bytes, stream: TextIO | None = None) -> None:
    """Print to ``stream`` (standard output), now.

    If whoever reads has gone (``gradfix check | head``), the rest goes nowhere: the exit code still
    says what was found.
    """
    stream = stream or sys.stdout
    try:
        if isinstance(what, bytes):
            stream.buffer.write(what)
        else:
            stream.write(what)
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError) and stream is not sys.stderr:
            tell(f"error: the output cannot be written: {error.strerror}")
            raise typer.Exit(2) from error
