"""Finding mistakes from Python: what ``import gradfix`` offers.

::

    import gradfix

    for mistake in gradfix.check_text(source):
        print(mistake.finding.span.line, mistake.finding.code, mistake.finding.message)
        if mistake.fixed_text is not None:
            ...

Nothing of the code that is looked at runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from gradfix.pipeline.options import Options, Refusal, RequestedOptions, prepare
from gradfix.pipeline.results import FileReport, Report, Reported


class GradfixError(ValueError):
    """What was asked for cannot be done: there is no such file or codemod, or the text is not Python."""


def check_text(
    text: str,
    filename: str = "<text>",
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unsafe_fixes: bool = False,
) -> list[Reported]:
    """The mistakes in a source text, each with the fix that ``gradfix apply`` would choose.

    Args:
        text: The source. No configuration is read for it.
        filename: What it is called; modules beside a real file are found as its imports.
        select: The names of the codemods to use; all if there are none.
        ignore: The names of codemods to leave out.
        unsafe_fixes: Choose among the fixes that change what a running program learns, too.

    Raises:
        GradfixError: if the text cannot be parsed, or there is no codemod of a name.
    """
    options = _prepared([], select, ignore, unsafe_fixes)
    report = main.check_text(filename, text.encode(), options)
    if report.problems:
        raise GradfixError(str(report.problems[0]))
    return list(report.findings)


def check_paths(
    paths: Iterable[str | os.PathLike[str]],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unsafe_fixes: bool = False,
) -> Report:
    """The mistakes in files and folders, as ``gradfix check`` finds them, with their configuration.

    What cannot be read or parsed is among the ``problems`` of its file, and stops no other.

    Args:
        paths: Files, and folders that are looked through for Python files.
        select: As in :func:`check_text`.
        ignore: As there.
        unsafe_fixes: As there.

    Raises:
        GradfixError: if there is no codemod of a name, or a configuration cannot be understood.
    """
    names = [os.fspath(path) for path in paths]
    return main.check(names, _prepared(names, select, ignore, unsafe_fixes))


def _prepared(paths: list[str], select: Sequence[str], ignore: Sequence[str], unsafe_fixes: bool) -> Options:
    requested = RequestedOptions(
        select=tuple(select) or None, ignore=tuple(ignore) or None, unsafe_fixes=unsafe_fixes
    )
    options = prepare(paths, requested, configured=bool(paths))
    if isinstance(options, Refusal):
        raise GradfixError(options.message)
    return options


__all__ = ["FileReport", "GradfixError", "Report", "Reported", "check_paths", "check_text"]
