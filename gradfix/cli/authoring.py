"""What `gradfix new` and `gradfix test` do."""

from __future__ import annotations

import textwrap
from contextlib import nullcontext
from typing import NoReturn

import typer

from gradfix.authoring import cases, skeleton
from gradfix.cli.output import Printed, put, refuse, say, show_progress, tell
from gradfix.pipeline.proving import servers_kept
from gradfix.system import files
from gradfix.system.printable import visible


def begin(name: str, folder: str) -> None:
    """Write the first files of a codemod, and say which."""
    try:
        written = skeleton.write(name, folder)
    except skeleton.SkeletonError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{folder}: {files.describe_error(error, 'cannot be written')}")
    for path in written:
        say(path)
    say(f"It works as it is: change it into what you mean, and try it with `gradfix test {folder}`")


def hold(folder: str, running: cases.Running, *, quiet: bool) -> NoReturn:
    """Hold the codemods of a folder to their programs, say what is otherwise than expected, and end."""
    try:
        held = cases.of(folder)
        options = cases.options_for(folder, running)
    except cases.CaseError as error:
        refuse(str(error))
    show_progress(Printed(False, False, quiet))
    failed = 0
    with servers_kept() if running.verify else nullcontext():
        for case in held:
            became, differences = cases.judged(case, options)
            failed += bool(differences)
            if differences:
                say(f"{case}: not as expected")
                for one in differences:
                    put(textwrap.indent(visible(one), "    ") + "\n")
            elif not quiet:
                say(f"{case}: {became}")
    lacking = list(cases.missing(folder, held, options))
    for line in lacking:
        tell(f"warning: {line}")
    if not quiet:
        programs = "1 program" if len(held) == 1 else f"{len(held)} programs"
        put(f"\n{programs}, {'all as expected' if not failed else f'{failed} not as expected'}\n")
    raise typer.Exit(int(bool(failed or lacking)))
