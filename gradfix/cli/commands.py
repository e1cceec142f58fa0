"""The command line: says what was asked for, has it done, and prints what came of it; decides nothing.

Exit codes: 0, nothing to report or nothing left; 1, findings, or findings left; 2, some of the work could
not be done (bad arguments, a file that could not be read or written); 128 and its number, interrupted by a
signal: 130 by Ctrl-C.
"""

# Annotations are not put off here: typer reads them all, and would have to compile each.

import gc
import io
import os
import sys
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

import gradfix
from gradfix import __version__
from gradfix.cli import applying, checking, verifying
from gradfix.cli.arguments import (
    CONTEXT,
    Command,
    PassesOn,
    RunsScripts,
    print_completion_script,
    start,
    takes_groups,
)
from gradfix.cli.options import (
    EVIDENCE,
    Codemods,
    Color,
    Config,
    Evidence,
    Format,
    MinSeverity,
    NoCache,
    Origins,
    OutputFormat,
    Paths,
    Printing,
    Python,
    Quiet,
    Reporting,
    Running,
    Seconds,
    Selection,
    Unsandboxed,
    WaysToRepair,
)
from gradfix.cli.output import (
    Printed,
    chosen_colour,
    hand_out_patch,
    put,
    put_all,
    refuse,
    renderer,
    stop_for,
    tell,
)
from gradfix.cli.preparing import looked_at, requested_options
from gradfix.core.errors import WORDS
from gradfix.pipeline import driver
from gradfix.pipeline.options import StepsAlone, TimeLimit
from gradfix.project.source import Problem
from gradfix.report import text
from gradfix.rules import catalog
from gradfix.system.printable import printable, visible

app = typer.Typer(
    help="Finds gradient mistakes in PyTorch training code, rewrites them, and proves each rewrite "
    "by running both versions.",
    add_completion=False,
    context_settings=CONTEXT,
    no_args_is_help=True,
    # Without markup typer does not import rich, which would double the time of a clean check.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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
        put(f"gradfix {__version__}\n")
        raise typer.Exit


@app.callback()
def _gradfix(
    version: Annotated[
        bool,
        typer.Option("-V", "--version", help="Print the version and exit.", is_eager=True, callback=_version),
    ] = False,
    color: Color = None,
) -> None:
    pass


@app.command(cls=Command, short_help="Find gradient mistakes; nothing is run.")
@takes_groups
def check(
    *,
    paths: Paths = None,
    no_cache: NoCache = False,
    reporting: Reporting,
    selection: Selection,
    origins: Origins,
    printing: Printing,
) -> None:
    """Find gradient mistakes; nothing is run, and nothing is written but a cache (see `gradfix cache`).

    With PATH `-` the code is read from standard input.
    """
    requested = requested_options(
        *(selection, origins),
        verify=reporting.fix,
        cached=not no_cache,
        whole=reporting.write_baseline,
        min_coverage=reporting.min_coverage,
    )
    printed = Printed.of(printing, reporting.output_format)
    checking.check(paths or ["."], requested, reporting, printed)


@app.command(cls=RunsScripts)
@takes_groups
def apply(
    context: typer.Context,
    *,
    paths: Paths = None,
    output_format: Format = OutputFormat.TEXT,
    interactive: Annotated[
        bool,
        typer.Option(
            "-i", "--interactive", help="Ask about each fix: accept, skip, ignore, explain, edit or quit."
        ),
    ] = False,
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
    step_alone: Annotated[
        bool,
        typer.Option(
            "--step-alone",
            help="Write fixes too that are proved for the step alone, where the program cannot run.",
        ),
    ] = False,
    seconds: Seconds = None,
    allow_unsandboxed: Unsandboxed = False,
    evidence: Evidence = EVIDENCE,
    no_cache: NoCache = False,
    selection: Selection,
    origins: Origins,
    ways: WaysToRepair,
    running: Running,
    printing: Printing,
) -> None:
    """Fix what was found. Each fix is proved by running both versions; only what is proved is written."""
    requested = requested_options(
        *(selection, origins, ways, running),
        context=context,
        quiet=printing.quiet,
        verify=verify,
        time_limit=None if seconds is None else TimeLimit.from_now(seconds),
        unproved=unproved,
        step_alone=StepsAlone.WRITTEN if step_alone else StepsAlone.SHOWN,
        allow_unsandboxed=allow_unsandboxed,
        cached=not no_cache,
    )
    printed = Printed.of(printing, output_format)
    applying.apply(
        *(looked_at(paths, running.module), requested, printed, evidence),
        dry_run=dry_run,
        patch=patch,
        interactive=interactive,
    )


@app.command(cls=Command, short_help="Take back the last apply.")
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
        refuse(f"the journal {files.describe_error(error)}")
    if undone is None:
        refuse("there is nothing to take back in this project")
    if dry_run:
        hand_out_patch(driver.patch_of(undone.changes), None, show=True)
    if not quiet:
        put(f"{text.summary_of_undone(undone, dry_run)}\n", sys.stderr if dry_run else sys.stdout)
    stop_for(undone.problems)


@app.command(cls=RunsScripts, short_help="Prove what apply would write, or a repair by others.")
@takes_groups
def verify(
    context: typer.Context,
    *,
    paths: Paths = None,
    output_format: Format = OutputFormat.TEXT,
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
    allow_unsandboxed: Unsandboxed = False,
    evidence: Evidence = EVIDENCE,
    selection: Selection,
    origins: Origins,
    ways: WaysToRepair,
    running: Running,
    printing: Printing,
) -> None:
    """Run both versions of each rewrite that apply would write, and write down what that showed."""
    requested = requested_options(
        *(selection, origins, ways, running),
        context=context,
        quiet=printing.quiet,
        unsafe_fixes=selection.unsafe_fixes or before is not None,
        whole=before is not None,
        allow_unsandboxed=allow_unsandboxed,
    )
    printed = Printed.of(printing, output_format)
    if before is not None:
        verifying.judge(before, paths, requested, printed)
    if certificate is not None:
        verifying.rerun(certificate, paths, requested, printed)
    verifying.prove(looked_at(paths, running.module), requested, printed, evidence)


@app.command(
    cls=Command,
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
    config: Config = None,
    color: Color = None,
) -> None:
    """Run your own command under watch; when autograd raises, or nothing ever learns, say why.

    This process becomes the script, so the exit code is the script's. There is no sandbox.
    """
    from gradfix.watch import running

    arguments = [*([module] if module is not None else []), *(script or [])]
    if not arguments:
        refuse("nothing to run: name a script, or a module with -m")
    command = running.command(
        arguments,
        python,
        module=module is not None,
        min_severity=min_severity,
        config=config,
        color=chosen_colour(),
    )
    if isinstance(command, Problem):
        refuse(str(command) if command.line else f"{command.path}: {command.message}")
    if module is None and (unable := running.left_out(arguments[0])):
        tell(f"note: a notebook is run without IPython: {unable}")
    try:
        os.execv(command[0], command)
    except OSError as error:
        refuse(f"{command[0]} cannot be run: {error.strerror}")


@app.command("explain-error", cls=Command, hidden=True)
def explain_error(min_severity: MinSeverity = None, config: Config = None, color: Color = None) -> None:
    """Print the explanation of an error whose facts are on standard input; `run` starts this."""
    import json

    from gradfix.watch import running

    try:
        requested = replace(running.USUAL, min_severity=min_severity, config=config)
        for explanation in running.explanations(json.load(sys.stdin), requested):
            put_all(renderer().explanation(explanation))
    except (
        Exception
    ) as failure:  # The script's own traceback stands above: one of ours would only be in the way.
        what = f"{type(failure).__name__}: {failure}"
        print(printable(f"gradfix: the error could not be explained: {what}"), file=sys.stderr)


@app.command(cls=Command, short_help="Allow an environment beside the code.")
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
        refuse("name what to trust (or with --remove: what no more), or use --list alone")
    try:
        for path, is_same in trust.allowed() if show else ():
            put(f"{path}{'' if is_same else ' (is not what it was when you allowed it)'}\n")
    except trust.TrustError as error:
        refuse(str(error))
    for path in paths or ():
        try:
            if remove:
                trust.forget(path)
            else:
                put(f"trusted: {trust.allow(path)}\n")
        except trust.TrustError as error:
            refuse(f"{path}: {error}")


@app.command(cls=Command, short_help="Serve an editor.")
@takes_groups
def lsp(*, selection: Selection, origins: Origins) -> None:
    """Serve an editor over standard input and output: findings and fixes as one writes; nothing is run.

    What is excluded is left out. The options count before the configuration of each file.
    """
    try:
        from gradfix.cli.language_server import server
    except ImportError:
        refuse("the language server needs pygls: pip install 'pygls>=2,<3'")
    requested = requested_options(selection, origins, verify=False)
    raise typer.Exit(server(replace(requested, force_exclude=True)).serve())


@app.command("list", cls=Command)
def list_codemods(output_format: Format = OutputFormat.TEXT, codemods: Codemods = None) -> None:
    """Name the mistakes that gradfix knows."""
    known = catalog.load(codemods or [])
    if output_format is OutputFormat.JSON:
        from gradfix.report import json

        put(json.of_codemods(known.codemods))
    else:
        put_all(text.codemods(known.codemods))
    stop_for(known.problems)


class Shell(StrEnum):
    """A shell that completes command lines."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


@app.command("generate-shell-completion", cls=Command, short_help="Print what a shell completes with.")
def generate_shell_completion(
    context: typer.Context, shell: Annotated[Shell, typer.Argument(help="The shell.")]
) -> None:
    """Print the script by which a shell completes commands and options of gradfix.

    In bash: eval "$(gradfix generate-shell-completion bash)"
    """
    print_completion_script(context, shell)


@app.command(cls=Command, short_help="Explain a mistake.")
def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A codemod, as `gradfix list` names it.")],
    ways: Annotated[
        bool, typer.Option("--ways", help="Only the ways to repair it, and when each is right.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Also why, when it is reported, and how it is repaired.")
    ] = False,
    codemods: Codemods = None,
) -> None:
    """Explain a mistake: what is wrong, an example before and after, and when not to fix it."""
    known = catalog.load(codemods or [])
    codemod = known.get(name)
    if isinstance(codemod, str):
        number = name.upper()
        if number in WORDS:
            refuse(
                f'{number} is autograd\'s "{WORDS[number]}", and has several causes: '
                "`gradfix check` looks for them, and `gradfix run SCRIPT` tells which it is"
            )
        refuse(codemod)
    if ways:
        shown = codemod.ways or f"There is nothing to choose with `--way`. By hand: {codemod.by_hand}."
        put(f"{visible(shown)}\n")
    elif full:
        put(f"{visible(codemod.documentation)}\n")
    else:
        more = f"\n\nMore: `gradfix explain --full {codemod.name}`"
        put(visible(codemod.in_short) + (more if codemod.in_short != codemod.documentation else "") + "\n")
    stop_for(known.problems)


OWN_CODEMODS = "my_codemods"
OwnCodemods = Annotated[str, typer.Argument(metavar="[DIR]", help="The folder of codemods.")]


@app.command(cls=Command, short_help="Begin a codemod of your own.")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is to be called: words-with-hyphens.")],
    folder: OwnCodemods = OWN_CODEMODS,
) -> None:
    """Write a codemod that works, with a program that it repairs, one that it leaves alone, and a test."""
    from gradfix.cli import authoring

    authoring.begin(name, folder)


@app.command("test", cls=Command, short_help="Try codemods of your own.")
def hold_codemods(
    folder: OwnCodemods = OWN_CODEMODS,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Prove each repair by running both versions.")
    ] = True,
    python: Python = None,
    allow_unsandboxed: Unsandboxed = False,
    quiet: Quiet = False,
) -> None:
    """Hold codemods to the programs in DIR/tests/fixtures: what is found, what is written, and its proof."""
    from gradfix.authoring.cases import Running
    from gradfix.cli import authoring

    authoring.hold(folder, Running(verify, python, allow_unsandboxed), quiet=quiet)


class SchemaName(StrEnum):
    """What there are JSON schemas of."""

    FINDINGS = "findings"
    CERTIFICATE = "certificate"
    BASELINE = "baseline"
    CONFIGURATION = "configuration"


@app.command(cls=Command, short_help="Print a JSON schema.")
def schema(
    name: Annotated[
        SchemaName,
        typer.Argument(
            help="What `check --output-format json` prints, a file of `gradfix-evidence/`, a baseline, "
            "or the table `[tool.gradfix]`."
        ),
    ],
) -> None:
    """Print the JSON schema of something that other programs read or write."""
    from gradfix.system import files

    put(files.read(os.path.join(os.path.dirname(gradfix.__file__), "schemas", f"{name}.json")))


class CacheAction(StrEnum):
    """What to do with the cache."""

    DIR = "dir"
    CLEAN = "clean"


@app.command(cls=Command, short_help="Where the cache is; clean it.")
def cache(
    action: Annotated[CacheAction, typer.Argument(help="Say where it is, or remove what is in it.")],
) -> None:
    """Where `check` keeps what it found, so that a file is not looked at again until something changes.

    The folder is that of GRADFIX_CACHE_DIR, else the user's cache folder.
    """
    from gradfix.system import store

    folder = store.place("check")
    if folder is None:
        refuse("there is no folder for a cache: set GRADFIX_CACHE_DIR")
    if action is CacheAction.DIR:
        put(f"{folder}\n")
    else:
        removed = store.clean(folder)
        files = "1 file" if removed.files == 1 else f"{removed.files} files"
        put(f"Removed {files} ({removed.size / 2**20:.1f} MiB)\n")


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
