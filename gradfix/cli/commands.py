"""The command line: says what was asked for, has it done, and prints what came of it; decides nothing.

Exit codes: 0, nothing to report or nothing left; 1, findings, or findings left; 2, some of the work could
not be done (bad arguments, a file that could not be read or written); 128 and its number, interrupted by a
signal: 130 by Ctrl-C.
"""
# Annotations are not put off here: typer reads them all, and would have to compile each.

import gc
import io
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer

from gradfix import __version__
from gradfix.cli.arguments import (
    Environment,
    MinSeverity,
    Module,
    PassesOn,
    RunsScripts,
    Script,
    environment,
    script_arguments,
    start,
)
from gradfix.core.codemod import Way
from gradfix.core.errors import WORDS
from gradfix.pipeline import main as pipeline
from gradfix.pipeline.options import Options, Refusal, Wishes, module_file
from gradfix.pipeline.results import FileReport, Patch, Plan, Report
from gradfix.project import configuration as project
from gradfix.project.source import Problem
from gradfix.report import text
from gradfix.rules import catalog
from gradfix.system import interrupts
from gradfix.system.printable import printable, visible

if TYPE_CHECKING:
    from gradfix.verify.judging import Judgement
    from gradfix.verify.runner import Evidence as Shown

app = typer.Typer(
    help="Finds gradient mistakes in PyTorch training code, rewrites them, and proves each rewrite "
    "by running both versions.",
    add_completion=False,
    no_args_is_help=True,
    # Without markup typer does not import rich, which would double the time of a clean check.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class OutputFormat(StrEnum):
    """What to print findings as."""

    TEXT = "text"
    JSON = "json"


class FindingsFormat(StrEnum):
    """What to print findings as, where nothing but findings is printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    GITLAB = "gitlab"


Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PATH]...", help="Files and folders; the current folder if none."),
]
Format = Annotated[OutputFormat, typer.Option("--output-format", help="What to print.")]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="NAME", help="Only these codemods (NAME,NAME or repeated)."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="NAME", help="Without these codemods (NAME,NAME or repeated)."),
]
Codemods = Annotated[
    list[str] | None, typer.Option("--codemods", metavar="DIR", help="A folder of further codemods.")
]
Unsafe = Annotated[
    bool, typer.Option("--unsafe-fixes", help="Also fixes that change what a running program learns.")
]
Python = Annotated[
    str | None, typer.Option("--python", metavar="EXE", help="The interpreter to run both versions with.")
]
Unsandboxed = Annotated[
    bool,
    typer.Option(
        "--allow-unsandboxed",
        help="Where no sandbox is available, run the code with resource limits only.",
    ),
]
Evidence = Annotated[str, typer.Option("--evidence", metavar="DIR", help="Where the certificates go.")]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        envvar="GRADFIX_NO_CACHE",
        help="Look at every file anew, and keep nothing of what is found.",
    ),
]
WayOption = Annotated[
    Way | None,
    typer.Option("--way", help="How to repair what can be repaired in several ways (see `explain --ways`)."),
]
Ways = Annotated[
    bool, typer.Option("--compare", help="Prove the other ways to repair it too, and compare what they cost.")
]


class GanOrder(StrEnum):
    """Who is trained first in each pass; as :class:`gradfix.rules.gan_order.Order` has it."""

    GENERATOR = "generator-first"
    DISCRIMINATOR = "discriminator-first"


GanOrderOption = Annotated[
    GanOrder | None,
    typer.Option("--gan-order", help="Only rewrite which of two adversaries is trained first in each pass."),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only what was found or done, and errors.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Also name what could not be analysed.")]

EVIDENCE = "gradfix-evidence"


def main() -> None:
    """Run the command line; raises ``SystemExit`` with the exit code."""
    # A standard stream that was closed is nobody who listens.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name that is not text, or a terminal that cannot show a character, is no failure.
            stream.reconfigure(errors="backslashreplace")
    collect_rarely()
    start(app, "gradfix")


def collect_rarely() -> None:
    """Runs of the model are large, and let go of by hand: garbage is best looked for between two files."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(2_000_000, 20, 100)


def _version(wanted: bool) -> None:
    if wanted:
        _print(f"gradfix {__version__}\n")
        raise typer.Exit


@app.callback()
def _gradfix(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass


@app.command(short_help="Find gradient mistakes; nothing is run.")
def check(
    paths: Paths = None,
    output_format: Annotated[
        FindingsFormat, typer.Option("--output-format", help="What to print.")
    ] = FindingsFormat.TEXT,
    select: Select = None,
    ignore: Ignore = None,
    min_severity: MinSeverity = None,
    codemods: Codemods = None,
    no_cache: NoCache = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Find gradient mistakes; nothing is run, and nothing is written but a cache (see `gradfix cache`)."""
    where = paths or ["."]
    options = _prepared(
        where, _wishes(select, ignore, codemods, min_severity=min_severity, verify=False, cached=not no_cache)
    )
    report = pipeline.check(where, options)
    if output_format is FindingsFormat.TEXT:
        _print_all(_text().report(report))
        if not quiet:
            _print(f"{text.summary_of_report(report, verbose)}\n")
    else:
        _print(_for_machines(report, output_format, options))
    _complain(report, quiet, verbose)
    raise typer.Exit(report.exit_code)


def _for_machines(report: Report, form: FindingsFormat, options: Options) -> str:
    """What ``check`` found, as other programs read it."""
    from gradfix.report import github, gitlab, json, sarif

    if form is FindingsFormat.SARIF:
        return sarif.of_report(report, options.catalog)
    if form is FindingsFormat.JSON:
        return json.of_report(report)
    if form is FindingsFormat.GITHUB:
        return github.of_report(report)
    return gitlab.of_report(report)


@app.command(cls=RunsScripts)
def apply(
    context: typer.Context,
    paths: Paths = None,
    output_format: Format = OutputFormat.TEXT,
    select: Select = None,
    ignore: Ignore = None,
    min_severity: MinSeverity = None,
    codemods: Codemods = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the patch and write nothing."),
    ] = False,
    patch: Annotated[
        str | None,
        typer.Option(
            "--patch", metavar="FILE", help="Write the patch to FILE instead of changing the files."
        ),
    ] = None,
    unsafe_fixes: Unsafe = False,
    way: WayOption = None,
    compare: Ways = False,
    gan_order: GanOrderOption = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify",
            help="Run both versions of each rewrite, and leave out what that refutes.",
        ),
    ] = True,
    unproved: Annotated[
        bool, typer.Option("--unproved", help="Write fixes too that running could not prove.")
    ] = False,
    python: Python = None,
    env: Environment = None,
    script: Script = None,
    module: Module = None,
    allow_unsandboxed: Unsandboxed = False,
    evidence: Evidence = EVIDENCE,
    no_cache: NoCache = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Fix what was found. Each fix is proved by running both versions; only what is proved is written."""
    interrupts.say("nothing was written")
    where = _where(paths, module)
    wishes = _wishes(
        select,
        ignore,
        codemods,
        unsafe_fixes=unsafe_fixes,
        min_severity=min_severity,
        way=way,
        compare=compare,
        gan_order=gan_order,
        python=python,
        environment=environment(env, quiet),
        script=script,
        module=module,
        arguments=script_arguments(context),
        verify=verify,
        unproved=unproved,
        allow_unsandboxed=allow_unsandboxed,
        cached=not no_cache,
    )
    options = _prepared(where, wishes)
    _settle_what_runs_get(where, options)
    if verify and not dry_run:
        _must_be_usable(evidence)
    _show_progress(quiet)
    plan = pipeline.plan(where, options)
    if dry_run or patch is not None:
        made = pipeline.patch(plan)
        _hand_out_patch(made, patch, show=dry_run and output_format is OutputFormat.TEXT)
    else:
        plan = pipeline.write(plan)
    if output_format is OutputFormat.JSON:
        from gradfix.report import json

        _print(json.of_plan(plan))
    elif not dry_run:
        _print_all(_text().plan(plan))
    if not quiet and output_format is OutputFormat.TEXT:
        # In a dry run the patch alone goes to standard output, so that it can be piped into git.
        _print(f"{text.summary_of_plan(plan, verbose)}\n", sys.stderr if dry_run else sys.stdout)
    _complain(plan, quiet, verbose)
    if dry_run and not quiet and output_format is OutputFormat.TEXT:
        # Nothing else tells of them where the patch is all that is printed.
        for line in text.missing_in_patch(plan):
            _tell(f"note: {line}")
    withheld = sum(attempt.withheld for attempt in plan.attempts)
    if withheld and not quiet:
        it = "it" if withheld == 1 else "them"
        _tell(f"note: {withheld} could not be proved; `--unproved` writes {it}")
    if plan.unkept and not quiet:
        _tell(f"note: `gradfix undo` cannot take this back: the journal {plan.unkept}")
    if plan.was_run and not dry_run:
        _save_evidence(plan, evidence, quiet)
    raise typer.Exit(plan.exit_code)


@app.command(short_help="Take back the last apply.")
def undo(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the patch that takes it back and write nothing.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Take back the last apply in this project: every file that is still as apply has left it."""
    from gradfix.pipeline import journal
    from gradfix.system import files

    try:
        last = journal.last()
        undone = None if last is None else journal.take_back(last, dry_run=dry_run)
    except OSError as error:
        _refuse(f"the journal {files.told(error)}")
    if undone is None:
        _refuse("there is nothing to take back in this project")
    if dry_run:
        _hand_out_patch(pipeline.patch_of(undone.changes), None, show=True)
    if not quiet:
        _print(f"{text.summary_of_undone(undone, dry_run)}\n", sys.stderr if dry_run else sys.stdout)
    _stop_for(undone.problems)


@app.command(cls=RunsScripts, short_help="Prove what apply would write, or a repair by others.")
def verify(
    context: typer.Context,
    paths: Paths = None,
    output_format: Format = OutputFormat.TEXT,
    select: Select = None,
    ignore: Ignore = None,
    min_severity: MinSeverity = None,
    codemods: Codemods = None,
    unsafe_fixes: Unsafe = False,
    way: WayOption = None,
    compare: Ways = False,
    gan_order: GanOrderOption = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="OLD",
            help="Judge PATH as a repair of OLD (two files, or two folders) that somebody else has made.",
        ),
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="Run again what a certificate says was run, by itself, or with what is in PATH.",
        ),
    ] = None,
    python: Python = None,
    env: Environment = None,
    script: Script = None,
    module: Module = None,
    allow_unsandboxed: Unsandboxed = False,
    evidence: Evidence = EVIDENCE,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run both versions of each rewrite that apply would write, and write down what that showed."""
    where = _where(paths, module)
    wishes = _wishes(
        select,
        ignore,
        codemods,
        unsafe_fixes=unsafe_fixes or before is not None,
        min_severity=min_severity,
        way=way,
        compare=compare,
        gan_order=gan_order,
        python=python,
        environment=environment(env, quiet),
        script=script,
        module=module,
        arguments=script_arguments(context),
        allow_unsandboxed=allow_unsandboxed,
    )
    if before is not None:
        _judge(before, paths, output_format, wishes, quiet)
    if certificate is not None:
        _rerun(certificate, paths, output_format, wishes, quiet)
    options = _prepared(where, wishes)
    _settle_what_runs_get(where, options)
    _must_be_usable(evidence)
    _show_progress(quiet)
    plan = pipeline.plan(where, options)
    if output_format is OutputFormat.JSON:
        from gradfix.report import json

        _print(json.of_plan(plan))
    else:
        _print_all(_text().certificates(plan))
        if not quiet:
            _print(f"{text.summary_of_plan(plan, verbose)}\n")
    _complain(plan, quiet, verbose)
    _save_evidence(plan, evidence, quiet)
    raise typer.Exit(plan.exit_code)


def _show_progress(quiet: bool) -> None:
    """Tell on a terminal what is being run; it may take minutes."""
    if not quiet:
        from gradfix.system import progress

        progress.show_on(sys.stderr)


def _judge(
    before: str, after: Sequence[str] | None, form: OutputFormat, wishes: Wishes, quiet: bool
) -> NoReturn:
    """Say what is to be thought of a repair, and end."""
    if after is None or len(after) != 1:
        _refuse("--before takes one PATH: the repaired version of OLD")
    options = _prepared([before], wishes)
    _settle_what_runs_get([before], options)
    _show_progress(quiet)
    from gradfix.pipeline import reviewing

    judged = list(reviewing.judge(before, after[0], options))
    if form is OutputFormat.JSON:
        from gradfix.report import json

        _print(json.of_judged(judged))
    else:
        _print_all(_text().judged(judged))
        if not quiet:
            _print(f"{text.summary_of_judged(judged)}\n")
    if not quiet:
        _say_passed_over(file.judgement for file in judged)
    for file in judged:
        for problem in file.problems:
            _tell(f"error: {problem}")
    codes = {file.exit_code for file in judged}
    # A mistake that is not mended outweighs one of which nothing could be said.
    raise typer.Exit(1 if 1 in codes else 2 if codes != {0} else 0)


def _rerun(
    file: str, paths: Sequence[str] | None, form: OutputFormat, wishes: Wishes, quiet: bool
) -> NoReturn:
    """Run both versions of a certificate again, say what that showed, and end."""
    from gradfix.pipeline import certificate

    if paths and len(paths) > 1:
        _refuse(
            "--certificate takes one PATH: the file that it is about, or the folder that its runs may read"
        )
    found = certificate.read(file)
    if isinstance(found, Problem):
        _refuse(str(found))
    place = found.place(paths[0]) if paths else None
    if isinstance(place, Problem):
        _refuse(f"{place.path}: {place.message}")
    options = _prepared(paths or ["."], wishes, configured=place is not None)
    _settle_what_runs_get(paths or ["."], options)
    _show_progress(quiet)
    from gradfix.pipeline import proving

    evidence = proving.rerun(found, place, options)
    at = None if place is None else place.file
    if form is OutputFormat.JSON:
        from gradfix.report import json

        _print(json.of_rerun(found, at, evidence))
    else:
        _print_all(_text().rerun(found, at, evidence))
    if not quiet:
        _say_passed_over([evidence])
    raise typer.Exit({"proved": 0, "refuted": 1}.get(evidence.outcome, 2))


@app.command(
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True},
    short_help="Run your script; say why autograd raises.",
)
def run(
    script: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCRIPT [ARG]...", help="The script, and all that it is to be called with."),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as `python -m` does.")
    ] = None,
    python: Annotated[
        str | None, typer.Option("--python", metavar="EXE", help="The interpreter to run it with.")
    ] = None,
    min_severity: MinSeverity = None,
) -> None:
    """Run your own command under watch; when autograd raises, or nothing ever learns, say why.

    This process becomes the script, so the exit code is the script's. There is no sandbox.
    """
    from gradfix.watch import running as watching

    arguments = [*([module] if module is not None else []), *(script or [])]
    if not arguments:
        _refuse("nothing to run: name a script, or a module with -m")
    command = watching.command(arguments, python, module=module is not None, min_severity=min_severity)
    if isinstance(command, Problem):
        _refuse(f"{command.path}: {command.message}")
    try:
        os.execv(command[0], command)
    except OSError as error:
        _refuse(f"{command[0]} cannot be run: {error.strerror}")


@app.command("explain-error", hidden=True)
def explain_error(min_severity: MinSeverity = None) -> None:
    """Print the explanation of an error whose facts are on standard input; `run` starts this."""
    import json

    from gradfix.watch import running as watching

    try:
        for explanation in watching.explanations(json.load(sys.stdin), min_severity):
            _print_all(_text().explanation(explanation))
    except (
        Exception
    ) as failure:  # The script's own traceback stands above: one of ours would only be in the way.
        what = f"{type(failure).__name__}: {failure}"
        print(printable(f"gradfix: the error could not be explained: {what}"), file=sys.stderr)


@app.command(short_help="Allow an environment beside the code.")
def trust(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Virtual environments, or interpreters."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Trust them no more.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Name what is trusted.")] = False,
) -> None:
    """Allow an environment beside the code, or an interpreter that a configuration names, to be started."""
    from gradfix.project import trust

    if show == bool(paths) or (show and remove):
        _refuse("name what to trust (or with --remove: what no more), or use --list alone")
    try:
        for path, is_same in trust.allowed() if show else ():
            _print(f"{path}{'' if is_same else ' (is not what it was when you allowed it)'}\n")
    except trust.TrustError as error:
        _refuse(str(error))
    for path in paths or ():
        try:
            if remove:
                trust.forget(path)
            else:
                _print(f"trusted: {trust.allow(path)}\n")
        except trust.TrustError as error:
            _refuse(f"{path}: {error}")


@app.command(short_help="Serve an editor.")
def lsp() -> None:
    """Serve an editor over standard input and output: findings and fixes as one writes; nothing is run."""
    try:
        from gradfix.cli.language_server import server
    except ImportError:
        _refuse("the language server needs pygls: pip install 'pygls>=2,<3'")
    raise typer.Exit(server().serve())


@app.command("list")
def list_codemods(codemods: Codemods = None) -> None:
    """Name the mistakes that gradfix knows."""
    known = catalog.load(codemods or [])
    _print_all(text.codemods(known.codemods))
    _stop_for(known.problems)


@app.command(short_help="Explain a mistake in full.")
def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A codemod, as `gradfix list` names it.")],
    ways: Annotated[
        bool, typer.Option("--ways", help="Only the ways to repair it, and when each is right.")
    ] = False,
    codemods: Codemods = None,
) -> None:
    """Explain a mistake: before and after, when it is reported, and why."""
    known = catalog.load(codemods or [])
    codemod = known.get(name)
    if isinstance(codemod, str):
        number = name.upper()
        if number in WORDS:
            _refuse(
                f'{number} is autograd\'s "{WORDS[number]}", and has several causes: '
                "`gradfix check` looks for them, and `gradfix run SCRIPT` tells which it is"
            )
        _refuse(codemod)
    if ways:
        told = codemod.ways or f"There is nothing to choose with `--way`. By hand: {codemod.by_hand}."
        _print(f"{visible(told)}\n")
    else:
        _print(f"{visible(codemod.documentation)}\n")
    _stop_for(known.problems)


class CacheAction(StrEnum):
    """What to do with the cache."""

    DIR = "dir"
    CLEAN = "clean"


@app.command(short_help="Where the cache is; clean it.")
def cache(
    action: Annotated[CacheAction, typer.Argument(help="Say where it is, or remove what is in it.")],
) -> None:
    """Where `check` keeps what it found, so that a file is not looked at again until something changes.

    The folder is that of GRADFIX_CACHE_DIR, else the user's cache folder.
    """
    from gradfix.system import store

    folder = store.place("check")
    if folder is None:
        _refuse("there is no folder for a cache: set GRADFIX_CACHE_DIR")
    if action is CacheAction.DIR:
        _print(f"{folder}\n")
    else:
        removed = store.clean(folder)
        files = "1 file" if removed.files == 1 else f"{removed.files} files"
        _print(f"Removed {files} ({removed.size / 2**20:.1f} MiB)\n")


@app.command(cls=PassesOn, short_help="Open pull requests with the rewrites.")
def bot(context: typer.Context) -> None:
    """Open pull requests with the rewrites: plan, publish, status, review."""
    # Loaded here and not sooner: nothing else needs an HTTP client.
    from gradfix.cli.bot import run

    run(context.args)


@app.command(cls=PassesOn, short_help="Make an environment for scripts.")
def env(context: typer.Context) -> None:
    """Make an environment that scripts can run in: what their project states, else what they import."""
    # Loaded here and not sooner: a check needs none of it.
    from gradfix.cli.environment import run

    run(context.args)


# ---------------------------------------------------------------------------- arguments


def _settle_what_runs_get(paths: Sequence[str], options: Options) -> None:
    """Say what the configuration lets runs have of the machine, for it may come with the code; on a terminal
    ask about what the user has not allowed yet."""
    if not options.verify:
        return
    from pathlib import Path

    from gradfix.pipeline.options import read_by_runs
    from gradfix.verify.command import Command
    from gradfix.verify.interpreter import choose_interpreter

    asked = options.settings.verify
    with _asking():
        if options.interpreter is None and options.environment is None and _can_answer():
            for path in paths:
                choose_interpreter(Path(path, "x.py") if os.path.isdir(path) else Path(path))
        folders = read_by_runs(options.settings, ask=True)
    for folder, decided in folders:
        if decided.allowed:
            told = f"runs may read {os.path.realpath(folder)}"
        else:
            told = f"runs do not get to read {folder}, which {decided.why}"
            told += f": run `gradfix trust {shlex.quote(folder)}`" if decided.askable else ""
        _tell(f"note: {told} (readable in {options.settings.file})")
    passed = Command(env=asked.env).variables()
    for name in asked.env:
        told = "runs get" if name in passed else "runs do not get"
        _tell(f"note: {told} the variable {name} (env in {options.settings.file})")


def _can_answer() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def _asking() -> Iterator[None]:
    """Have the user asked about what is not allowed yet, if there is a terminal to answer at."""
    from gradfix.project import trust  # It needs what `check` does without.

    def ask(question: str) -> bool:
        sys.stderr.write(f"{printable(question)} A yes is remembered. [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    with trust.asking(ask) if _can_answer() else nullcontext():
        yield


def _wishes(
    select: Sequence[str] | None, ignore: Sequence[str] | None, codemods: Sequence[str] | None, **others: Any
) -> Wishes:
    return Wishes(select=_names(select), ignore=_names(ignore), codemods=tuple(codemods or ()), **others)


def _where(paths: Sequence[str] | None, module: str | None) -> Sequence[str]:
    """What is looked at: what is named, else the file of the module that is run, else the current folder."""
    if paths or module is None:
        return paths or ["."]
    file = module_file(module)
    return [file] if file is not None else ["."]


def _names(values: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names in a repeatable option whose values may hold several, separated by commas."""
    if values is None:
        return None
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _prepared(paths: Sequence[str], wishes: Wishes, *, configured: bool = True) -> Options:
    try:
        os.getcwd()
    except OSError:
        _refuse("the current folder has been removed")
    with _asking() if wishes.verify else nullcontext():
        options = pipeline.prepare(paths, wishes, configured=configured)
    if isinstance(options, Refusal):
        _refuse(options.message)
    return options


def _refuse(message: str) -> NoReturn:
    _tell(f"error: {message}")
    raise typer.Exit(2)


# ---------------------------------------------------------------------------- output


def _hand_out_patch(patch: Patch | Problem, file: str | None, *, show: bool) -> None:
    """Write ``patch`` to ``file``, if there is one, and print it, if it is to be shown."""
    if isinstance(patch, Problem):
        _refuse(str(patch))
    if file is not None:
        with interrupts.whole():
            problem = project.save(file, patch.data)
            interrupts.say("the patch was written" if problem is None else "nothing was written")
        interrupts.check()
        _stop_for([problem] if problem else [])
    if show:
        _print(patch.data)
    if patch.data and not os.path.samefile(patch.folder, "."):
        _tell(f"note: the paths in the patch count from {patch.folder}")


def _must_be_usable(folder: str) -> None:
    """End if no certificates could be written to ``folder``: what is run for them would be lost."""
    from gradfix.report import evidence

    _stop_for([problem] if (problem := evidence.unusable(folder)) else [])


def _save_evidence(plan: Plan, folder: str, quiet: bool) -> None:
    """Write the certificates to ``folder``, and say so."""
    from gradfix.report import evidence

    saved = evidence.save(plan, folder)
    _stop_for([saved] if isinstance(saved, Problem) else [])
    if saved and not quiet:
        _tell(f"note: the evidence is in {folder}")


def _complain(run: Report | Plan, quiet: bool, verbose: bool) -> None:
    """Say on standard error what could not be done."""
    for problem in run.all_problems:
        _tell(f"error: {problem}")
    if quiet:
        return
    for path in run.empty:
        _tell(f"warning: no Python files found under {path}")
    for file in run.files:
        for message in file.notes if isinstance(file, FileReport) else ():
            _tell(f"note: {file.path}: {message}")
        if verbose:
            for place in file.unanalysed:
                _tell(f"note: {file.path}:{place.line}: {text.described(place)}")
            for function in file.unknown_functions:
                _tell(f"note: {file.path}:{function.line}: {text.unknown(function)}")
            for message in file.messages:
                _tell(f"note: {file.path}: {message}")
    if isinstance(run, Plan):
        _say_passed_over(attempt.evidence for file in run.files for attempt in file.attempts)


def _say_passed_over(runs: "Iterable[Shown | Judgement | None]") -> None:
    """Say which interpreters would have come first and did not, each once."""
    lines = dict.fromkeys(line for run in runs if run is not None for line in run.passed_over)
    for line in lines:
        _tell(f"note: {line}")


def _stop_for(problems: Iterable[Problem]) -> None:
    """End with exit code 2 if there are ``problems``."""
    told = [f"error: {problem}" for problem in problems]
    for line in told:
        _tell(line)
    if told:
        raise typer.Exit(2)


def _tell(line: str) -> None:
    """Print a line about the work on standard error."""
    _print(f"{printable(line)}\n", sys.stderr)


def _colour() -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def _text() -> text.Text:
    """What renders reports for standard output, which may be a terminal."""
    if not sys.stdout.isatty():
        return text.Text(_colour())
    from shutil import get_terminal_size

    return text.Text(_colour(), get_terminal_size().columns)


def _print_all(parts: Iterable[str]) -> None:
    for part in parts:
        _print(part)


def _print(what: str | bytes, stream: TextIO | None = None) -> None:
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
            _tell(f"error: the output cannot be written: {error.strerror}")
            raise typer.Exit(2) from error
