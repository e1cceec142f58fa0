"""``gradfix bot``: says what was asked for, has it done, prints what came of it.

Everything that is printed goes through the token's own redaction, whatever it is.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO

import typer

from gradfix.bot import secret
from gradfix.bot.errors import DONE, PARTLY, USAGE, BotError, UsageError
from gradfix.cli.arguments import CONTEXT, Command, RunsScripts, start, takes_groups
from gradfix.cli.options import Jobs, Running, Selection
from gradfix.cli.preparing import requested_options
from gradfix.project import configuration
from gradfix.project.source import Problem
from gradfix.system.printable import printable, visible

if TYPE_CHECKING:
    from gradfix.bot.forges.protocol import Forge
    from gradfix.bot.git import Git
    from gradfix.bot.publish import Done
    from gradfix.bot.secret import Token
    from gradfix.pipeline.options import RequestedOptions

app = typer.Typer(
    help="Open pull requests with proved rewrites on GitHub, GitLab, Gitea and Forgejo. `plan` runs the code "
    "and holds no token; `publish` holds the token and runs nothing of the repository.",
    add_completion=False,
    context_settings=CONTEXT,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

PLAN = "plan.json"


class Kind(StrEnum):
    """A forge."""

    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"


Repository = Annotated[
    str | None,
    typer.Option("--repo", metavar="OWNER/NAME", help="The repository; in CI, the one that it runs for."),
]
ForgeKind = Annotated[
    Kind | None, typer.Option("--forge", help="What the server is (Forgejo: gitea); else found out.")
]
ApiUrl = Annotated[
    str | None,
    typer.Option("--api-url", metavar="URL", help="The API of the server, as https://host/api/v4."),
]
TokenFile = Annotated[
    str | None,
    typer.Option("--token-file", metavar="FILE", help=f"A file with the token; else {secret.VARIABLE}."),
]
BaseBranch = Annotated[
    str | None,
    typer.Option(
        "--base", metavar="BRANCH", help="The branch that pull requests go to (the default branch)."
    ),
]
Fork = Annotated[bool, typer.Option("--fork", help="Push to a fork of the token's owner.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]
PublicDryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Say what would be done, and change nothing; needs no token where anybody can read.",
    ),
]
PlanPath = Annotated[str, typer.Argument(metavar="PLAN", help="What `gradfix bot plan` has written.")]


def run(arguments: Sequence[str]) -> None:
    """Run ``gradfix bot`` with these arguments; raises ``SystemExit`` with the exit code."""
    start(app, "gradfix bot", arguments)


@app.command(cls=RunsScripts)
@takes_groups
def plan(
    context: typer.Context,
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...", help="Files and folders of a git checkout; the current one if none."
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Where the plan goes.")
    ] = PLAN,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Run both versions of each rewrite.")
    ] = True,
    jobs: Jobs = None,
    selection: Selection,
    running: Running,
) -> None:
    """Find, rewrite and prove; write down what is to be proposed. Runs the code, so it takes no token."""
    requested = requested_options(
        *(selection, running),
        context=context,
        verify=verify,
        whole=True,  # A baseline shrinks by what is proposed.
        unproved=True,  # What is proposed is the maintainers' to decide (`unverified` in the settings).
    )
    _guarded(lambda: _write_plan(paths or [], requested, output))


@app.command(cls=Command)
def publish(
    plan: PlanPath = PLAN,
    repo: Repository = None,
    forge: ForgeKind = None,
    api_url: ApiUrl = None,
    base: BaseBranch = None,
    fork: Fork = False,
    again: Annotated[bool, typer.Option("--again", help="Also what a person has closed before.")] = False,
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="Accept fixes that change what a running program learns.")
    ] = False,
    token_file: TokenFile = None,
    gradfix_url: Annotated[
        str | None,
        typer.Option(
            "--gradfix-url",
            metavar="URL",
            envvar="GRADFIX_URL",
            help="The git repository that gradfix is installed from, which pull requests then name.",
        ),
    ] = None,
    dry_run: PublicDryRun = False,
) -> None:
    """Open, update and close the pull requests. Runs nothing of the repository."""

    def work() -> int:
        from gradfix.bot import plan as plans
        from gradfix.bot import publish as publishing

        loaded = plans.load(plan)
        find = secret.token_if_any if dry_run else secret.find_token
        token = find(os.environ, token_file)
        if token is None:
            _say("note: there is no token, so only what anybody can see is looked at", error=True)
        with _connected(repo, forge, api_url, token, fork, loaded.base) as (served, git):
            wanted = publishing.Wanted(base, fork, again, unsafe_fixes, dry_run, gradfix_url or None)
            done = publishing.publish(loaded, served, git, token, wanted)
        return _tell(done)

    _guarded(work)


@app.command(cls=Command)
def status(
    repo: Repository = None,
    forge: ForgeKind = None,
    api_url: ApiUrl = None,
    fork: Fork = False,
    token_file: TokenFile = None,
) -> None:
    """Say which pull requests are open, and who has touched them."""

    def work() -> int:
        from gradfix.bot import status as statuses

        token = secret.find_token(os.environ, token_file)
        with _connected(repo, forge, api_url, token, fork, None) as (served, git):
            return _tell(statuses.status(served, git, token, fork=fork))

    _guarded(work)


@app.command(cls=Command)
def review(
    plan: PlanPath = PLAN,
    pr: Annotated[int, typer.Option("--pr", metavar="N", min=1, help="The pull request.")] = 0,
    repo: Repository = None,
    forge: ForgeKind = None,
    api_url: ApiUrl = None,
    token_file: TokenFile = None,
    dry_run: DryRun = False,
) -> None:
    """Suggest the rewrites on the lines that somebody's pull request changes."""

    def work() -> int:
        from gradfix.bot import plan as plans
        from gradfix.bot import review as reviewing

        if pr < 1:
            raise UsageError("--pr names the pull request")
        loaded = plans.load(plan)
        token = secret.find_token(os.environ, token_file)
        with _connected(repo, forge, api_url, token, False, loaded.base) as (served, git):
            return _tell(reviewing.review(loaded, pr, served, git, token, dry_run=dry_run))

    _guarded(work)


# ---------------------------------------------------------------------------- what they do


def _write_plan(paths: Sequence[str], requested: RequestedOptions, output: str) -> int:
    """Write the plan to the file ``output``, and say what is in it."""
    from gradfix.bot import planning

    found = secret.in_the_way(os.environ)
    if requested.verify and found:
        unset = " ".join(f"-u {name}" for name in found)
        raise UsageError(
            f"{found[0]} is set, and plan runs code of the repository, which could read it; "
            f"use: env {unset} gradfix bot plan"
        )
    made = planning.make(paths, requested, _progress)
    for problem in made.problems:
        _say(f"error: {problem}", error=True)
    for note in made.notes:
        _say(f"note: {note}", error=True)
    written = configuration.save(output, made.plan.dump().encode())
    if isinstance(written, Problem):
        raise UsageError(str(written))
    groups = made.plan.groups
    count = "1 pull request" if len(groups) == 1 else f"{len(groups)} pull requests"
    _say(f"{output}: {count} for {made.plan.base[:12]}")
    for name, changes in groups.items():
        described = [f"{change.path} ({planning.outcomes_of(change)})" for change in changes]
        _say(f"  {name}: {', '.join(described)}")
    return PARTLY if made.problems else DONE


@contextmanager
def _connected(
    repo: str | None,
    forge: Kind | None,
    api_url: str | None,
    token: Token | None,
    fork: bool,
    commit: str | None,
) -> Iterator[tuple[Forge, Git]]:
    """The forge, and a repository for git's plumbing, whose hash is that of ``commit``."""
    from gradfix.bot import connect
    from gradfix.bot.git import Git

    object_format = None if commit is None else "sha256" if len(commit) == 64 else "sha1"
    place = connect.place(os.environ, forge, api_url, repo)
    with connect.forge(place, token, fork=fork) as served, Git(object_format) as git:
        yield served, git


def _tell(done: Iterable[Done]) -> int:
    """Say what was done; the exit code is that of the worst of it."""
    worst = DONE
    for one in done:
        why = f": {one.why}" if one.why else ""
        url = f" {one.url}" if one.url else ""
        _say(f"{one.branch}: {one.what}{why}{url}")
        if one.words is not None:
            _put(visible(f"\n{one.words.title}\n\n{one.words.body}\n") + one.words.patch, sys.stdout)
        worst = max(worst, one.code)
    return worst


def _guarded(work: Callable[[], int]) -> NoReturn:
    """Do the work and end with its exit code; nothing that goes wrong is told with a secret in it."""
    try:
        code = work()
    except BotError as error:
        _say(f"error: {error}", error=True)
        code = error.exit_code
    except ImportError as error:
        if error.name != "httpx2":
            raise
        _say("error: the bot needs an HTTP client: pip install 'httpx2>=2.16,<3'", error=True)
        code = USAGE
    except (typer.Exit, BrokenPipeError):
        raise
    except Exception as error:
        # A traceback may show anything, even a header of a request.
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}:{place.lineno}"
        _say(f"error: this is a fault of gradfix: {type(error).__name__}: {error} ({where})", error=True)
        code = PARTLY
    raise typer.Exit(code)


def _progress(line: str) -> None:
    """Print progress."""
    if sys.stderr.isatty():
        _say(line, error=True)


def _say(text: str, *, error: bool = False) -> None:
    """Print ``text``, a line, without secrets, and without characters that steer a terminal."""
    _put(printable(text), sys.stderr if error else sys.stdout)


def _put(text: str, stream: TextIO) -> None:
    stream.write(f"{secret.redacted(text)}\n")
    stream.flush()
