"""What `gradfix verify` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import typer

from gradfix.cli.output import (
    Printed,
    complain,
    must_be_usable,
    put,
    put_all,
    refuse,
    renderer,
    save_evidence,
    say,
    say_passed_over,
    show_progress,
    showing_attempts,
    tell,
)
from gradfix.cli.preparing import prepared, settle_what_runs_get
from gradfix.pipeline import driver
from gradfix.pipeline.options import RequestedOptions
from gradfix.project.source import Problem
from gradfix.report import text


def prove(where: Sequence[str], requested: RequestedOptions, printed: Printed, evidence: str) -> NoReturn:
    """Run both versions of what would be written, say what that showed, and end; ``evidence`` is the folder
    that certificates go to."""
    options = prepared(where, replace(requested, attempted=showing_attempts(printed, evidence)))
    settle_what_runs_get(where, options)
    must_be_usable(evidence)
    show_progress(printed)
    plan = driver.plan(where, options)
    if printed.as_json:
        from gradfix.report import json

        put(json.of_plan(plan))
    else:
        put_all(renderer().certificates(plan))
        if not printed.quiet:
            say(text.summary_of_plan(plan, printed.verbose))
    complain(plan, printed)
    save_evidence(plan, evidence, printed)
    raise typer.Exit(plan.exit_code)


def judge(
    before: str, after: Sequence[str] | None, requested: RequestedOptions, printed: Printed
) -> NoReturn:
    """Say what is to be thought of a repair, and end."""
    if after is None or len(after) != 1:
        refuse("--before takes one PATH: the repaired version of OLD")
    options = prepared([before], requested)
    settle_what_runs_get([before], options)
    show_progress(printed)
    from gradfix.pipeline import reviewing

    judged = list(reviewing.judge(before, after[0], options))
    if printed.as_json:
        from gradfix.report import json

        put(json.of_judged(judged))
    else:
        put_all(renderer().judged(judged))
        if not printed.quiet:
            say(text.summary_of_judged(judged))
    if not printed.quiet:
        say_passed_over(file.judgement for file in judged)
    for file in judged:
        for problem in file.problems:
            tell(f"error: {problem}")
    codes = {file.exit_code for file in judged}
    # A mistake that is not mended outweighs one of which nothing could be said.
    raise typer.Exit(1 if 1 in codes else 2 if codes != {0} else 0)


def rerun(file: str, paths: Sequence[str] | None, requested: RequestedOptions, printed: Printed) -> NoReturn:
    """Run both versions of a certificate again, say what that showed, and end."""
    from gradfix.pipeline import certificate

    if paths and len(paths) > 1:
        refuse(
            "--certificate takes one PATH: the file that it is about, or the folder that its runs may read"
        )
    found = certificate.read(file)
    if isinstance(found, Problem):
        refuse(str(found))
    place = found.place(paths[0]) if paths else None
    if isinstance(place, Problem):
        refuse(f"{place.path}: {place.message}")
    options = prepared(paths or ["."], requested, configured=place is not None)
    settle_what_runs_get(paths or ["."], options)
    show_progress(printed)
    from gradfix.pipeline import proving

    evidence = proving.rerun(found, place, options)
    at = None if place is None else place.file
    if printed.as_json:
        from gradfix.report import json

        put(json.of_rerun(found, at, evidence))
    else:
        put_all(renderer().rerun(found, at, evidence))
    if not printed.quiet:
        say_passed_over([evidence])
    codes = {"proved": 0, "refuted": 1} | (
        {"proved for the step alone": 0} if found.alone is not None else {}
    )
    raise typer.Exit(codes.get(evidence.outcome, 2))
