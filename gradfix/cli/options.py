"""The options of commands, each declared once.

Those that several commands have are fields of groups: a command names the groups that it takes, and
:func:`gradfix.cli.arguments.takes_groups` makes options of them.
"""

# Annotations are not put off here: typer reads them all, and would have to compile each.

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from gradfix.cli import output
from gradfix.core.codemod import Severity, Way
from gradfix.system import parallel


class OutputFormat(StrEnum):
    """What to print findings as."""

    TEXT = "text"
    JSON = "json"


class FindingsFormat(StrEnum):
    """What to print findings as, where nothing but findings is printed."""

    TEXT = "text"
    CONCISE = "concise"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    GITLAB = "gitlab"


class Colour(StrEnum):
    """When to print in colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class EnvironmentChoice(StrEnum):
    """Which environment to make."""

    AUTO = "auto"


def _limit_jobs(number: int | None) -> None:
    if number is not None:
        parallel.use_processors(number)


def _choose_colour(choice: Colour | None) -> None:
    if choice is not None:
        output.choose_colour({Colour.ALWAYS: True, Colour.NEVER: False}.get(choice))


class GanOrder(StrEnum):
    """Who is trained first in each pass; as :class:`gradfix.rules.gan_order.Order` has it."""

    GENERATOR = "generator-first"
    DISCRIMINATOR = "discriminator-first"


EVIDENCE = "gradfix-evidence"

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PATH]...", help="Files and folders; the current folder if none."),
]
Format = Annotated[OutputFormat, typer.Option("--output-format", help="What to print.")]
Codemods = Annotated[
    list[str] | None, typer.Option("--codemods", metavar="DIR", help="A folder of further codemods.")
]
Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Take the settings of all files from the [tool.gradfix] table of FILE.",
    ),
]
MinSeverity = Annotated[
    Severity | None,
    typer.Option("--min-severity", help="Only what is as bad as this or worse (default: warning)."),
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
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        metavar="N",
        min=1,
        help="End the proofs after N seconds, cheap ones first; what was not reached is said.",
    ),
]
Evidence = Annotated[str, typer.Option("--evidence", metavar="DIR", help="Where the certificates go.")]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        envvar="GRADFIX_NO_CACHE",
        help="Analyse every file again, and keep nothing of what is found.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--jobs",
        metavar="N",
        min=1,
        help="At most N processes at once (default: one for each CPU).",
        callback=_limit_jobs,
        expose_value=False,
    ),
]
Color = Annotated[
    Colour | None,
    typer.Option(
        "--color",
        help="When to print in colour (default: auto, which heeds NO_COLOR and FORCE_COLOR).",
        callback=_choose_colour,
        expose_value=False,
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only what was found or done, and errors.")]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files are looked at, and which findings and fixes count."""

    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select", metavar="NAME", help="Only these codemods (NAME,NAME or repeated; ALL for all)."
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="NAME", help="Without these codemods (NAME,NAME or repeated)."),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="PATTERN",
            help="Leave out what matches, as in .gitignore (P,P or repeated); replaces the configuration's.",
        ),
    ] = None
    force_exclude: Annotated[
        bool, typer.Option("--force-exclude", help="Leave out what is excluded even if it is named.")
    ] = False
    min_severity: MinSeverity = None
    certain: Annotated[
        bool,
        typer.Option("--certain", help="Only what is a mistake whoever calls the code, without assumptions."),
    ] = False
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="Also fixes that change what a running program learns.")
    ] = False


@dataclass(frozen=True, slots=True)
class Origins:
    """Where settings, codemods and known findings come from, besides the project and gradfix itself."""

    config: Config = None
    codemods: Codemods = None
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="FILE", help="Leave out the findings that are in FILE."),
    ] = None


@dataclass(frozen=True, slots=True)
class WaysToRepair:
    """How to repair what can be repaired in several ways."""

    way: Annotated[
        Way | None,
        typer.Option(
            "--way", help="How to repair what can be repaired in several ways (see `explain --ways`)."
        ),
    ] = None
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Prove the other ways to repair it too, and compare what they cost."),
    ] = False
    gan_order: Annotated[
        GanOrder | None,
        typer.Option(
            "--gan-order", help="Only rewrite which of two adversaries is trained first in each iteration."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Running:
    """What is run, and with what, to prove a rewrite."""

    python: Python = None
    env: Annotated[
        EnvironmentChoice | None,
        typer.Option("--env", help="Run both versions in an environment that is made for the project."),
    ] = None
    script: Annotated[
        str | None,
        typer.Option("--script", metavar="FILE", help="The script to run, where PATH is a module of it."),
    ] = None
    module: Annotated[
        str | None,
        typer.Option("-m", metavar="MODULE", help="Run MODULE, as `python -m` does."),
    ] = None


@dataclass(frozen=True, slots=True)
class Printing:
    """How much is said, and how."""

    jobs: Jobs = None
    color: Color = None
    verbose: Annotated[
        bool,
        typer.Option(
            "-v",
            "--verbose",
            help="Also list every check of a proof, and training steps that were not followed.",
        ),
    ] = False
    quiet: Quiet = False


@dataclass(frozen=True, slots=True)
class Reporting:
    """What `check` does with what it finds."""

    output_format: Annotated[FindingsFormat, typer.Option("--output-format", help="What to print.")] = (
        FindingsFormat.TEXT
    )
    fix: Annotated[
        bool, typer.Option("--fix", help="Fix what was found, as `gradfix apply` does: it runs the code.")
    ] = False
    diff: Annotated[
        bool, typer.Option("--diff", help="Print the fixes as a patch; nothing is run or written.")
    ] = False
    add_ignores: Annotated[
        bool, typer.Option("--add-ignores", help="Add comments that silence what was found.")
    ] = False
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Put TEXT behind the comments of --add-ignores.")
    ] = ""
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write what was found to the baseline.")
    ] = False
    min_coverage: Annotated[
        int | None,
        typer.Option(
            "--min-coverage",
            metavar="N",
            min=0,
            max=100,
            help="Exit with 1 if fewer than N percent of the training steps were followed.",
        ),
    ] = None
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Print how often each mistake was found.")
    ] = False
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit with 0 even if something was found.")
    ] = False
    output_file: Annotated[
        str | None,
        typer.Option("-o", "--output-file", metavar="FILE", help="Write the report to FILE."),
    ] = None
    stdin_filename: Annotated[
        str | None,
        typer.Option("--stdin-filename", metavar="FILE", help="The name of what is read where PATH is `-`."),
    ] = None

    def exit_code(self, found: int) -> int:
        """What to end with where ``found`` says what there was to report."""
        return 0 if self.exit_zero and found == 1 else found
