"""Running both versions of a rewrite: by which command, in which environment, for how long."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gradfix.core.codemod import Finding, Fix
from gradfix.pipeline.analysis import Analysis, analyse, problem_of
from gradfix.pipeline.options import Options, StepsAlone, configured_in, keep_within, read_by_runs
from gradfix.pipeline.results import Attempt, Outcome
from gradfix.project import configuration, source
from gradfix.project.source import Problem
from gradfix.system import files, scratch

if TYPE_CHECKING:
    from gradfix.pipeline.certificate import Certificate, RerunLocation
    from gradfix.verify.claims import Faults
    from gradfix.verify.command import Command
    from gradfix.verify.evidence import Evidence
    from gradfix.verify.jobs import Limits

FixKey = tuple[str, str, int, str]


class Candidate(NamedTuple):
    """A fix that may be applied next."""

    key: FixKey
    """A name for the fix that outlives changes elsewhere in the file."""
    finding: Finding
    fix: Fix


def prove(before: Analysis, candidate: Candidate, after: Analysis, options: Options) -> Attempt:
    """Run the file before and after, and hold what happens against the claim of the fix.

    The claim is completed by what the model says of the fixed program, so the model is tested too.
    """
    fix = complete(candidate.fix, before, after)
    text = after.source.text
    attempt = Attempt(candidate.finding, fix, before.source.text, text, Outcome.UNVERIFIED)
    if not options.verify:
        return attempt
    if options.is_out_of_time:
        return _out_of_time(attempt, options, "not reached")
    evidence: Evidence | None
    try:
        evidence = _evidence(before, after, fix, options)
        tries_alone = options.step_alone is not StepsAlone.LEFT and not options.is_out_of_time
        if evidence.outcome == "not run" and tries_alone:
            evidence = _alone(before, after, candidate.finding, fix, evidence, options)
    except Exception as error:
        reason = problem_of(before.source.path, "verification", error).message
        attempt = attempt._replace(reason=reason, withheld=not options.unproved)
        evidence = None
    if options.is_out_of_time:
        return _out_of_time(attempt, options, "begun, and not finished", begun=True)
    if evidence is None:
        return attempt
    others = tuple(f"{os.path.relpath(one)} by what it is rewritten to" for one in files.now_rewritten())
    evidence = replace(evidence, standins=(*evidence.standins, *others))
    outcomes = {one.value: one for one in Outcome}
    outcome = outcomes.get(evidence.outcome, Outcome.UNVERIFIED)
    is_unproved = outcome is Outcome.UNVERIFIED or (
        outcome is Outcome.PROVED_ALONE and options.step_alone is not StepsAlone.WRITTEN
    )
    withheld = not options.unproved and is_unproved
    return attempt._replace(outcome=outcome, reason=evidence.reason, evidence=evidence, withheld=withheld)


def _out_of_time(attempt: Attempt, options: Options, how_far: str, *, begun: bool = False) -> Attempt:
    """``attempt``, as the user's limit of time has left it.

    Of a proof that was under way nothing counts: its last runs may have been ended before they were over.
    """
    from gradfix.verify.evidence import Evidence

    assert options.time_limit is not None
    reason = f"{how_far} within the {options.time_limit.seconds:g} s of --seconds"
    evidence = Evidence("not run", reason) if begun else None
    return attempt._replace(reason=reason, evidence=evidence, withheld=not options.unproved, out_of_time=True)


def complete(fix: Fix, before: Analysis, after: Analysis) -> Fix:
    """``fix`` with what the model says of the losses that optimizers use once it is made."""
    if fix.claim.feeds or before.program is None or after.program is None:
        return fix
    from gradfix.autograd.prediction import feeds

    return fix._replace(claim=fix.claim._replace(feeds=feeds(after.program, before.program)))


def faults_of(analysis: Analysis) -> Faults:
    """What runs of a version may stop at, as the findings say."""
    from gradfix.verify.claims import Faults

    spans = [span for one in analysis.findings for span in (one.span, *(note.span for note in one.notes))]
    promised = [fix.claim for one in analysis.findings for fix in one.fixes]
    lines = {line for span in spans for line in range(span.line, span.end_line + 1)}
    lines |= {claim.raises_line for claim in promised if claim.raises_line is not None}
    return Faults(frozenset(lines), frozenset(claim.raises for claim in promised if claim.raises is not None))


def _evidence(before: Analysis, after: Analysis, fix: Fix, options: Options) -> Evidence:
    """What running both versions shows: by the user's command, else alone, else through a script that imports
    the file."""
    from gradfix.autograd.callers import scripts
    from gradfix.verify.command import Command
    from gradfix.verify.verification import verify_rewrite

    path = Path(before.source.path)

    def run(command: Command) -> Evidence:
        found = verify_rewrite(
            path,
            before.source.text,
            after.source.text,
            fix.claim,
            fix.effect,
            faults=(faults_of(before), faults_of(after)),
            python=options.interpreter,
            command=command,
            limits=limits_of(options),
            allow_unsandboxed=options.allow_unsandboxed,
        )
        if before.source.notebook is None:
            return found
        return found.reworded(before.source.layout.reworded, after.source.layout.reworded)

    chosen = command_for(str(path), options)
    evidence = run(chosen)
    plain = Command(readable=chosen.readable, env=chosen.env, rewritten=chosen.rewritten)
    if evidence.outcome != "not run" or chosen != plain:
        return evidence
    for script in scripts(os.path.realpath(path))[:THROUGH]:
        through = run(replace(chosen, entry=Path(script.path)))
        if through.outcome != "not run":
            return through
        tried = f"run through {os.path.basename(script.path)}: {through.reason}"
        evidence = replace(evidence, reason=f"{evidence.reason}; {tried}")
    return evidence


def _alone(
    before: Analysis, after: Analysis, finding: Finding, fix: Fix, program: Evidence, options: Options
) -> Evidence:
    """What the step shows alone, in the place of the ``program``, which could not run."""
    from gradfix.pipeline.drivers import drivers
    from gradfix.verify.alone import verify_alone
    from gradfix.verify.trial import Rewrite

    path = Path(before.source.path)
    faults = (faults_of(before), faults_of(after))
    rewrite = Rewrite(path, before.source.text, after.source.text, fix.claim, fix.effect, faults=faults)
    for written in (
        drivers(before, after, fix, bool(finding.assumption)) if before.source.notebook is None else ()
    ):
        found = verify_alone(
            rewrite,
            written,
            program.reason,
            python=options.interpreter,
            command=command_for(str(path), options),
            limits=limits_of(options),
            allow_unsandboxed=options.allow_unsandboxed,
        )
        if found.outcome != "not run":
            return found
        reason = f"{program.reason}; the step alone: {found.reason}"
        program = replace(program, reason=reason, alone=found.alone)
    return program


THROUGH = 2
"""Scripts that import a file, through which it is run if it does nothing by itself."""


def command_for(path: str, options: Options) -> Command:
    """How the user runs the file at ``path``: by the command line, else by the configuration.

    Raises:
        CommandError: if the configuration's command for it cannot be understood.
    """
    from gradfix.verify import command

    settings = options.settings.verify
    folder = Path(settings.cwd) if settings.cwd else None
    found = command.Command()
    if options.module is not None:
        found = command.of_module(options.module, Path.cwd())
    elif options.script is not None:
        found = command.Command(entry=Path(options.script), cwd=Path.cwd())
    elif options.arguments:
        found = command.Command(cwd=Path.cwd())
    elif (text := _configured(path, options.settings)) is not None:
        base = folder or configured_in(options.settings)
        found = replace(command.parse(text, base), cwd=base)
    if options.module is None and options.script is None:
        keep_within(configured_in(options.settings), found.entry, folder)
    return replace(
        found,
        args=options.arguments or found.args,
        cwd=found.cwd or folder,
        readable=tuple(Path(one) for one, decided in read_by_runs(options.settings) if decided.allowed),
        env=settings.env,
        rewritten=tuple(_rewritten()),
    )


def _rewritten() -> Iterator[tuple[str, str]]:
    """The other files that are to hold another text when this one is written."""
    for path, data in files.now_rewritten().items():
        if isinstance(parsed := source.parse(path, data), source.Source):
            yield path, parsed.text


def _configured(path: str, settings: configuration.Settings) -> str | None:
    """The command that the configuration has for a file."""
    if not settings.verify.command:
        return None
    from pathspec import GitIgnoreSpec

    root = os.path.realpath(configured_in(settings))
    name = os.path.relpath(os.path.realpath(path), root).replace(os.sep, "/")
    for pattern, text in settings.verify.command:
        if GitIgnoreSpec.from_lines([pattern]).match_file(name):
            return text
    return None


def limits_of(options: Options) -> Limits:
    """What one run may take, and all runs of a rewrite."""
    from gradfix.verify.jobs import Limits

    seconds = options.settings.verify.seconds
    return Limits() if seconds is None else Limits(seconds=seconds, total=max(Limits().total, 10 * seconds))


def with_environment(paths: Iterable[str], options: Options) -> Options:
    """The options with the interpreter of an environment for these scripts, if one is asked for."""
    return next(iter(with_environments([(path, options) for path in paths])), options)


def with_environments(scripts: Sequence[tuple[str, Options]]) -> list[Options]:
    """The options of each script, with the interpreter of one environment for all that need it."""
    needy = [
        (Path(path), options.environment)
        for path, options in scripts
        if options.environment is not None and options.interpreter is None and options.verify
    ]
    if not needy:
        return [options for _, options in scripts]
    from gradfix.verify.interpreter import Interpreter

    built = Interpreter(needy[0][1]([path for path, _ in needy]), "--env")
    return [
        options if options.interpreter is not None else replace(options, interpreter=built)
        for _, options in scripts
    ]


def servers_kept() -> AbstractContextManager[None]:
    """Have the processes that run scripts wait for the next one, instead of starting again for each."""
    from gradfix.verify.runner import servers_kept

    return servers_kept()


def time_budget(options: Options) -> AbstractContextManager[None]:
    """The seconds that everything which is run for one file may take together."""
    from gradfix.verify.runner import budget

    seconds = max(PER_FILE, RUNS_PER_FILE * limits_of(options).seconds)
    if options.step_alone is not StepsAlone.LEFT:
        seconds *= ALONE
    return budget(seconds if options.time_limit is None else min(seconds, options.time_limit.left))


ALONE = 3
"""How many times as long a file may take whose steps are run alone, in several kinds of networks."""
PER_FILE, RUNS_PER_FILE = 120.0, 4
"""Seconds for one file, at least, and the longest runs that there is time for."""


def rerun(certificate: Certificate, place: RerunLocation | None, options: Options) -> Evidence:
    """What running both versions of a certificate shows now, in ``place`` or in an empty folder."""
    from gradfix.verify.alone import drivers_again, verify_alone
    from gradfix.verify.evidence import Evidence
    from gradfix.verify.interpreter import choose_interpreter
    from gradfix.verify.verification import verify_rewrites

    # The certificate does not choose it: it is the one that scripts where the user is are run with.
    name = os.path.basename(certificate.filename)
    interpreter = options.interpreter or choose_interpreter(place.file if place else Path.cwd() / name)
    if isinstance(interpreter, str):
        return Evidence("not run", interpreter)
    drivers, schema = drivers_again(certificate.alone) if certificate.alone is not None else ([], "")
    with (
        time_budget(replace(options, step_alone=StepsAlone.SHOWN) if drivers else options),
        scratch.folder() as folder,
    ):
        here = place or certificate.place_apart(folder)
        command = command_for(str(here.file), options)
        rewrite = replace(certificate.rewrite(here), faults=_certified_faults(certificate, here, options))
        how: dict[str, Any] = {
            "python": interpreter,
            "command": command if place else replace(command, cwd=folder),
            "limits": limits_of(options),
            "allow_unsandboxed": options.allow_unsandboxed,
        }
        (evidence,) = verify_rewrites([rewrite], **how)
        if evidence.outcome == "not run" and certificate.alone is not None:
            evidence = verify_alone(rewrite, drivers, evidence.reason, schema=schema, **how)
    versions = (certificate.before, certificate.after)
    before, after = (source.layout(certificate.filename, text) for text in versions)
    return evidence.reworded(before.reworded, after.reworded)


def _certified_faults(
    certificate: Certificate, place: RerunLocation, options: Options
) -> tuple[Faults, Faults] | None:
    """What runs of the two versions of a certificate may stop at: it is found again, not read from it."""
    versions = [source.parse_code(str(place.file), text) for text in (certificate.before, certificate.after)]
    before, after = versions
    if isinstance(before, Problem) or isinstance(after, Problem):
        return None
    return faults_of(analyse(before, options)), faults_of(analyse(after, options))
