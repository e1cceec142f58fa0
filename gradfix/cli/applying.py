"""What `gradfix apply` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import typer

from gradfix.cli.output import (
    Printed,
    complain,
    fitting,
    hand_out_patch,
    must_be_usable,
    put,
    put_all,
    refuse,
    renderer,
    save_evidence,
    say,
    show_progress,
    showing_attempts,
    tell,
)
from gradfix.cli.preparing import prepared, settle_what_runs_get
from gradfix.pipeline import driver
from gradfix.pipeline.options import RequestedOptions
from gradfix.pipeline.results import Outcome
from gradfix.report import text
from gradfix.rules import catalog
from gradfix.system import interrupts


def apply(
    where: Sequence[str],
    requested: RequestedOptions,
    printed: Printed,
    evidence: str,
    *,
    dry_run: bool,
    patch: str | None,
    interactive: bool = False,
) -> NoReturn:
    """Fix what is found in ``where``, say so, and end.

    Args:
        evidence: The folder that certificates go to.
        dry_run: Print the patch, and write nothing.
        patch: The file that the patch goes to, where the files themselves are not to be changed.
        interactive: Ask about each fix.
    """
    if interactive:
        _ask(where, requested, printed, evidence, writes=not dry_run and patch is None)
    interrupts.say("nothing was written")
    kept = evidence if requested.verify and not dry_run else None
    requested = replace(requested, attempted=showing_attempts(printed, kept))
    options = prepared(where, requested)
    settle_what_runs_get(where, options)
    if requested.verify and not dry_run:
        must_be_usable(evidence)
    show_progress(printed)
    plan = driver.plan(where, options)
    if dry_run or patch is not None:
        made = driver.patch(plan)
        hand_out_patch(made, patch, show=dry_run and not printed.as_json)
    else:
        plan = driver.write(plan)
    if printed.as_json:
        from gradfix.report import json

        put(json.of_plan(plan))
    elif not dry_run:
        put_all(renderer().plan(plan, in_full=printed.verbose))
    if not printed.quiet and not printed.as_json:
        # In a dry run the patch alone goes to standard output, so that it can be piped into git.
        stream = sys.stderr if dry_run else sys.stdout
        put(fitting(text.summary_of_plan(plan, printed.verbose), stream), stream)
    complain(plan, printed)
    if dry_run and not printed.quiet and not printed.as_json:
        # Nothing else tells of them where the patch is all that is printed.
        for line in text.missing_in_patch(plan):
            tell(f"note: {line}")
    alone = sum(one.withheld and one.outcome is Outcome.PROVED_ALONE for one in plan.attempts)
    if alone and not printed.quiet:
        it = "it" if alone == 1 else "them"
        tell(f"note: {alone} proved for the step alone; `gradfix apply --step-alone` writes {it}")
    withheld = sum(one.withheld and not one.out_of_time for one in plan.attempts) - alone
    if withheld and not printed.quiet:
        it = "it" if withheld == 1 else "them"
        tell(f"note: {withheld} could not be proved; `gradfix apply --unproved` writes {it}")
    if plan.out_of_time and requested.time_limit is not None:
        goes_on = requested.cached and not dry_run and patch is None
        tell(f"note: {text.out_of_time(plan, requested.time_limit.seconds, goes_on=goes_on)}")
    if plan.unkept and not printed.quiet:
        tell(f"note: `gradfix undo` cannot take this back: the journal {plan.unkept}")
    if plan.was_run and not dry_run:
        save_evidence(plan, evidence, printed)
    raise typer.Exit(plan.exit_code)


def _ask(
    where: Sequence[str], requested: RequestedOptions, printed: Printed, evidence: str, *, writes: bool
) -> NoReturn:
    """Ask about one fix after the other; prove and write at once what is accepted, say so, and end."""
    from gradfix.cli import asking
    from gradfix.pipeline.asking import Interactive

    if not writes:
        refuse("--interactive writes what is accepted, and is not for --dry-run and --patch")
    if printed.as_json:
        refuse("--interactive is for people, and prints no JSON")
    if requested.time_limit is not None:
        refuse("--interactive waits for answers, and has no --seconds")
    asking.must_be_at_a_terminal()
    interrupts.say("nothing was written")
    talk = Interactive(asking.Terminal(catalog.load(requested.codemods)))
    attempted = asking.showing_outcomes(evidence if requested.verify else None)
    options = prepared(where, replace(requested, attempted=attempted, interactive=talk))
    settle_what_runs_get(where, options)
    if requested.verify:
        must_be_usable(evidence)
    show_progress(printed)
    plan = driver.plan(where, options)
    say(text.summary_of_conversation(plan))
    complain(plan, printed)
    if plan.unkept and not printed.quiet:
        tell(f"note: `gradfix undo` cannot take this back: the journal {plan.unkept}")
    if plan.was_run:
        save_evidence(plan, evidence, printed)
    raise typer.Exit(plan.exit_code)
