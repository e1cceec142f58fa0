"""Options: the command line over the configuration.

A configuration may have come with the code that it is for: what it names has to lie in its own folder.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradfix.core.codemod import Severity, Way
from gradfix.project import configuration, source
from gradfix.project.source import Problem
from gradfix.rules import catalog
from gradfix.system import programs

if TYPE_CHECKING:
    from gradfix.pipeline.asking import Interactive
    from gradfix.pipeline.baseline import Baseline
    from gradfix.pipeline.results import Attempt
    from gradfix.project.trust import Verdict
    from gradfix.verify.interpreter import Interpreter


class StepsAlone(enum.Enum):
    """What is done where a program cannot run, and a step of it may run alone."""

    LEFT = enum.auto()
    SHOWN = enum.auto()
    """It is run, and what that shows is reported."""
    WRITTEN = enum.auto()
    """What is proved so is written."""


class TimeLimit(NamedTuple):
    """How long the proofs of all files together may take."""

    seconds: float
    end: float
    """When it is over, by ``time.monotonic()``, which tells the same in forked processes."""

    @classmethod
    def from_now(cls, seconds: float) -> TimeLimit:
        """The limit that begins now."""
        return cls(seconds, time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self.end - time.monotonic())


@dataclass(frozen=True, slots=True)
class RequestedOptions:
    """What the command line says; ``None`` and ``False`` leave it to the configuration."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    unsafe_fixes: bool = False
    min_severity: Severity | None = None
    """Findings that are less bad are not reported."""
    certain: bool = False
    """Whether only what is a mistake whoever calls the code is reported."""
    min_coverage: int | None = None
    """The share of training steps that has to be followed, in percent."""
    way: Way | None = None
    """The way to repair findings that can be repaired in several."""
    compare: bool = False
    """Whether the other ways are proved as well, to compare what they cost."""
    gan_order: str | None = None
    """Rewrite to this order of two adversaries (see :mod:`gradfix.rules.gan_order`), and nothing else."""
    python: str | None = None
    environment: Callable[[Sequence[Path]], str] | None = None
    """Makes the environment that the scripts run in, for all of them, and gives its interpreter."""
    script: str | None = None
    """The script that is run, where the files that are named are modules that it imports."""
    module: str | None = None
    """The same, by the name that ``python -m`` is given."""
    arguments: tuple[str, ...] = ()
    """What the script is called with."""
    verify: bool = True
    time_limit: TimeLimit | None = None
    unproved: bool = False
    step_alone: StepsAlone = StepsAlone.LEFT
    codemods: tuple[str, ...] = ()
    """Further folders of codemods."""
    allow_unsandboxed: bool = False
    cached: bool = False
    config: str | None = None
    """The file whose configuration holds for all files, in place of each file's own."""
    baseline: str | None = None
    """The file with the findings that are known, in place of that of the configuration."""
    whole: bool = False
    """Whether the findings are reported, too, that are in a baseline."""
    exclude: tuple[str, ...] | None = None
    """Patterns as in ``.gitignore``, which count from the current folder."""
    force_exclude: bool = False
    """Whether what is excluded is left out also where it is named."""
    attempted: Callable[[str, int, Attempt], None] | None = None
    """Called when a fix has been run: with the file, the number of the attempt there (from 1), and the
    attempt; in the process that ran it."""
    interactive: Interactive | None = None
    """Who is asked about each fix before it is proved; everything is written in the course of that."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to do, in full; made by :func:`prepare`."""

    catalog: catalog.Catalog
    selected: frozenset[str]
    """The names of the codemods that report; a fix is held against all of them."""
    settings: configuration.Settings
    """The configuration; that of the files' common folder where each has its own."""
    unsafe_fixes: bool = False
    min_severity: Severity = Severity.WARNING
    """Findings that are less bad are not reported; a fix is held against all of them."""
    certain: bool = False
    """Whether what rests on an assumption is not reported either."""
    min_coverage: int = 0
    """The share of training steps that has to be followed, in percent."""
    asks_for_coverage: bool = False
    """Whether the command line asks for it, of all files together."""
    way: Way | None = None
    """The way to repair findings that can be repaired in several; ``None`` for the default of each."""
    compare: bool = False
    """Whether the other ways are proved as well, to compare what they cost."""
    interpreter: Interpreter | None = None
    """The one that runs the scripts, where one is named."""
    environment: Callable[[Sequence[Path]], str] | None = None
    script: str | None = None
    module: str | None = None
    arguments: tuple[str, ...] = ()
    verify: bool = True
    time_limit: TimeLimit | None = None
    """When no further proof is begun, and the one that is being made is given up."""
    unproved: bool = False
    """Whether a fix is applied too that running could not prove."""
    step_alone: StepsAlone = StepsAlone.LEFT
    """What is done where a program cannot run, and a step of it may run alone."""
    allow_unsandboxed: bool = False
    """Verify even where no sandbox is to be had."""
    cached: bool = False
    """Whether what was found in a file is kept for the next time."""
    requested: RequestedOptions | None = None
    """What is asked for over each file's own configuration; ``None`` where one holds for all files."""
    baseline: Baseline | None = None
    """The findings that are not reported."""
    baseline_file: str | None = None
    """Where a baseline is, or is to be written."""
    exclude: tuple[str, ...] | None = None
    force_exclude: bool = False
    attempted: Callable[[str, int, Attempt], None] | None = None
    """Called when a fix has been run, see :class:`RequestedOptions`."""
    interactive: Interactive | None = None

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time for all proofs is over."""
        return self.verify and self.time_limit is not None and not self.time_limit.left

    def under(self, settings: configuration.Settings) -> Options | Refusal:
        """The options for files whose configuration is ``settings``."""
        if self.requested is None or settings == self.settings:
            return self
        return _combined(settings, self.requested, self.catalog)

    def files(self, paths: Sequence[str]) -> configuration.Listing:
        """The files that ``paths`` mean, each with its configuration."""
        known = self.settings if self.requested is None else configuration.Configurations()
        return configuration.find_files(paths, known, self.exclude, force_exclude=self.force_exclude)

    def leaves_out(self, path: str) -> bool:
        """Whether a file that is named is left out, since it is excluded."""
        force = self.force_exclude or self.settings.force_exclude
        return force and configuration.is_excluded(path, self.settings, self.exclude)

    def reporting_in(self, path: str) -> frozenset[str]:
        """The names of the codemods that report in the file at ``path``."""
        named = configuration.ignored_in(path, self.settings)
        ignored = self.catalog.select(named, ()) if named else frozenset()
        return self.selected if isinstance(ignored, str) else self.selected - ignored


class Refusal(NamedTuple):
    """Why nothing was done at all."""

    message: str


def prepare(
    paths: Sequence[str],
    requested: RequestedOptions,
    scripts: Sequence[str] | None = None,
    *,
    configured: bool = True,
) -> Options | Refusal:
    """The options for ``paths``: the configuration, if it is ``configured``, overridden by what is asked for.

    ``scripts`` are the files that are run, where the configuration is that of other paths.
    """
    if requested.config is not None:
        settings = configuration.settings_of(requested.config)
    else:
        settings = configuration.settings_for(paths) if configured else configuration.Settings()
    if isinstance(settings, Problem):
        return Refusal(f"{settings.path}: {settings.message}")
    known = catalog.load(requested.codemods)
    refusal = _unusable_command(paths if scripts is None else scripts, requested)
    options = refusal or _combined(settings, requested, known)
    if isinstance(options, Refusal) or requested.config is not None or not configured:
        return options
    return replace(options, requested=requested)


def _combined(
    settings: configuration.Settings, requested: RequestedOptions, codemods: catalog.Catalog
) -> Options | Refusal:
    """What is asked for over the configuration ``settings``."""
    select = settings.select if requested.select is None else requested.select
    ignore = settings.ignore if requested.ignore is None else requested.ignore
    selected = codemods.select(select, ignore)
    if requested.gan_order is not None:
        from gradfix.rules import gan_order

        asked_for = gan_order.codemod(gan_order.Order(requested.gan_order))
        codemods = codemods._replace(codemods=(*codemods.codemods, asked_for))
        selected = frozenset({asked_for.name})
    if isinstance(selected, str):
        asked = codemods.select(requested.select or (), requested.ignore or ())
        return Refusal(selected if isinstance(asked, str) else f"{settings.file}: {selected}")
    interpreter = _named_interpreter(requested, settings)
    if isinstance(interpreter, Refusal):
        return interpreter
    ignored = [name for _, names in settings.per_file_ignores for name in names]
    if isinstance(unknown := codemods.select(ignored, ()), str):
        return Refusal(f"{settings.file}: per-file-ignores: {unknown}")
    refusal = _unusable_settings(settings)
    if refusal is not None:
        return refusal
    file = requested.baseline or settings.baseline
    known = _baseline(file, requested, settings)
    if isinstance(known, Refusal):
        return known
    return Options(
        catalog=codemods,
        selected=selected,
        settings=settings,
        # Who asks for another order asks for another training.
        unsafe_fixes=requested.unsafe_fixes or settings.unsafe_fixes or requested.gan_order is not None,
        min_severity=Severity.INFO
        if requested.gan_order
        else requested.min_severity or settings.min_severity,
        certain=requested.certain,
        min_coverage=settings.min_coverage if requested.min_coverage is None else requested.min_coverage,
        asks_for_coverage=requested.min_coverage is not None,
        way=requested.way,
        compare=requested.compare,
        interpreter=interpreter,
        environment=requested.environment,
        script=requested.script,
        module=requested.module,
        arguments=requested.arguments,
        verify=requested.verify,
        time_limit=requested.time_limit,
        unproved=requested.unproved,
        step_alone=StepsAlone.WRITTEN if settings.step_alone else requested.step_alone,
        allow_unsandboxed=requested.allow_unsandboxed,
        cached=requested.cached,
        baseline=known,
        baseline_file=file,
        exclude=requested.exclude,
        force_exclude=requested.force_exclude,
        attempted=requested.attempted,
        interactive=requested.interactive,
    )


def _baseline(
    file: str | None, requested: RequestedOptions, settings: configuration.Settings
) -> Baseline | Refusal | None:
    """The findings that are known, by the baseline in ``file``."""
    if file is None:
        return None
    if requested.baseline is None and not _is_within(configured_in(settings), Path(file)):
        return Refusal(f"{settings.file}: baseline: {file} is outside of its folder")
    if requested.whole:
        return None
    from gradfix.pipeline import baseline

    found = baseline.load(file)
    return Refusal(f"{found.path}: {found.message}") if isinstance(found, Problem) else found


def _named_interpreter(
    requested: RequestedOptions, settings: configuration.Settings
) -> Interpreter | Refusal | None:
    """The interpreter that the command line names, or else the configuration, if anything is to be run."""
    named = requested.python or settings.verify.python
    if not named or not (requested.verify or requested.python):
        return None
    from gradfix.verify.interpreter import Interpreter, configured_interpreter

    if not requested.python:
        found = configured_interpreter(named)
        return Refusal(f"{settings.file}: {found}") if isinstance(found, str) else found
    executable = programs.find(named)
    if executable is None:
        return Refusal(f"there is no Python interpreter {named!r}")
    return Interpreter(executable, "--python")


def _unusable_command(paths: Sequence[str], requested: RequestedOptions) -> Refusal | None:
    """Why the command that is asked for cannot be that of ``paths``."""
    if requested.script is not None and not os.path.isfile(requested.script):
        what = "is a folder" if os.path.isdir(requested.script) else "there is no such script"
        return Refusal(f"{requested.script}: {what}")
    if requested.script is not None and source.is_notebook(requested.script):
        return Refusal(f"{requested.script}: a notebook cannot be the script that is run for other files")
    alone = requested.script is None and requested.module is None
    if requested.arguments and alone and not (len(paths) == 1 and os.path.isfile(paths[0])):
        return Refusal("what stands after -- is for one script: name it, or say which is run with --script")
    if requested.module is not None:
        from gradfix.verify import command

        try:
            command.of_module(requested.module, Path.cwd())
        except command.CommandError as error:
            return Refusal(str(error))
    return None


def _unusable_settings(settings: configuration.Settings) -> Refusal | None:
    """Why what the configuration says of running scripts cannot be followed."""
    if settings.verify == configuration.Verification():
        return None
    from gradfix.verify import command

    root = configured_in(settings)
    folder = Path(settings.verify.cwd) if settings.verify.cwd else root
    try:
        if not folder.is_dir():
            raise command.CommandError(f"cwd: there is no folder {folder}")
        keep_within(root, folder)
        for _, text in settings.verify.command:
            keep_within(root, command.parse(text, folder).entry)
    except command.CommandError as error:
        return Refusal(f"{settings.file}: tool.gradfix.verify: {error}")
    return None


def configured_in(settings: configuration.Settings) -> Path:
    """The folder of the configuration."""
    return Path(settings.root or os.path.abspath(os.curdir))


def read_by_runs(settings: configuration.Settings, *, ask: bool = False) -> list[tuple[str, Verdict]]:
    """The folders that the configuration lets runs read, and whether the user lets them, too."""
    from gradfix.project import trust

    root = configured_in(settings)
    return [(one, trust.may_read(one, root, ask=ask)) for one in settings.verify.readable]


def keep_within(root: Path, *named: Path | None) -> None:
    """Refuse what a configuration names outside its own folder: it may have come with the code.

    Raises:
        CommandError: if it does.
    """
    from gradfix.verify.command import CommandError

    for one in named:
        if one is not None and not _is_within(root, one):
            raise CommandError(f"tool.gradfix.verify names {one}, which is outside of {root}")


def _is_within(root: Path, path: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def module_file(name: str) -> str | None:
    """The file that ``python -m name`` would run from the current folder."""
    from gradfix.verify import command

    try:
        found = command.of_module(name, Path.cwd()).entry
    except command.CommandError:
        return None
    return None if found is None else os.path.relpath(found)
