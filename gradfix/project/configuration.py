"""Which files are meant, how the project is configured, and how a file is written back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from gradfix.core.codemod import Severity
from gradfix.project.source import MAX_BYTES, Problem
from gradfix.system import files

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

ANALYSED = (".py", ".ipynb")
"""What the names of files end with that are looked for in folders."""

_SKIPPED = frozenset(
    {".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache"}
    | {".nox", ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv"}
    | {".vscode", "__pycache__", "__pypackages__", "_build", "buck-out", "build", "dist", "dist-packages"}
    | {"node_modules", "site-packages", "venv"}
)
"""Folders that a walk does not enter, by name. Ruff's list; each can be named as an argument."""

_ENVIRONMENTS = frozenset({"pyvenv.cfg", "conda-meta"})
"""What a folder holds that is a virtual environment, however it is called."""


_LONGEST_CONFIGURATION = 1 << 20
_LONGEST_IGNORE = 128 << 10
"""In bytes; each pattern of such a list is tried on each file."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The ``[tool.gradfix.verify]`` table: how the project's scripts are run. Relative paths count from
    ``pyproject.toml``, and have become absolute here."""

    command: tuple[tuple[str, str], ...] = ()
    """Pairs of a pattern as in ``.gitignore`` and the command that runs what it matches, as it is typed:
    ``python train.py --epochs 1``. The first that matches counts; ``*`` stands for a command that is given
    alone."""
    cwd: str | None = None
    """The folder that the commands are typed in."""
    readable: tuple[str, ...] = ()
    """Folders with data, outside the project, that a run may read."""
    env: tuple[str, ...] = ()
    """Names of variables of the environment that a run gets."""
    python: str | None = None
    """The interpreter; a bare name is looked up in ``PATH``."""
    seconds: float | None = None
    """How long one run may take."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The ``[tool.gradfix]`` table of a ``pyproject.toml``; its keys are these names with dashes."""

    select: tuple[str, ...] = ()
    """Only these codemods; empty for all."""
    ignore: tuple[str, ...] = ()
    """Without these codemods."""
    exclude: tuple[str, ...] = ()
    """Patterns as in ``.gitignore``, relative to the folder of ``pyproject.toml``."""
    verify: Verification = field(default=Verification(), metadata={"key": False})
    """A table of its own."""
    unsafe_fixes: bool = False
    """Also make fixes that change what a running program learns."""
    step_alone: bool = False
    """Also write fixes that are proved for the step alone, since the program cannot run."""
    min_severity: Severity = Severity.WARNING
    """Findings that are less bad are not reported."""
    min_coverage: int = 0
    """In percent of the training steps: if ``check`` has followed fewer of them, it ends with 1."""
    max_file_size: int = MAX_BYTES
    """In bytes."""
    force_exclude: bool = False
    """Whether ``exclude`` holds for files that are named, too."""
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Pairs of a pattern as in ``.gitignore`` and the codemods that do not report in what it matches."""
    baseline: str | None = None
    """A file with findings that are known, and not reported; in the folder of ``pyproject.toml`` or below."""
    file: str | None = field(default=None, metadata={"key": False})
    """The ``pyproject.toml`` that this was read from."""
    root: str | None = field(default=None, metadata={"key": False})
    """The folder that its patterns and paths count from."""


class Listed(NamedTuple):
    """A file to look at."""

    path: str
    """As it is shown to people."""
    named: bool
    """Whether it was an argument itself, rather than found below one."""
    settings: Settings
    """The configuration that holds for it."""


class Listing(NamedTuple):
    """What the arguments expand to, in order of path."""

    files: tuple[Listed, ...]
    problems: tuple[Problem, ...]
    empty: tuple[str, ...]
    """The folders among the arguments that hold no Python file."""


# ---------------------------------------------------------------------------- configuration


def settings_for(paths: Sequence[str]) -> Settings | Problem:
    """The configuration of the deepest folder that holds all of ``paths``; see :class:`Configurations`."""
    return Configurations().of(_common_folder(paths))


class Configurations:
    """The configuration of each folder: of the nearest ``pyproject.toml`` that has ``[tool.gradfix]``.

    The search ends at the root of the folder's git repository: what lies above is another project's. The
    nearest one counts alone; it is not merged with those around it.
    """

    def __init__(self, everywhere: Settings | None = None) -> None:
        """``everywhere`` is the configuration of all folders, if it is stated."""
        self._everywhere = everywhere
        self._known: dict[str, Settings | Problem] = {}

    def of(self, folder: str) -> Settings | Problem:
        """The configuration of what lies in ``folder``, a real path."""
        if self._everywhere is not None:
            return self._everywhere
        if folder not in self._known:
            self._known[folder] = self._nearest(folder)
        return self._known[folder]

    def _nearest(self, folder: str) -> Settings | Problem:
        found = _settings_in(folder)
        if found is not None:
            return found
        above = os.path.dirname(folder)
        outermost = above == folder or os.path.exists(os.path.join(folder, ".git"))
        return Settings() if outermost else self.of(above)


def _settings_in(folder: str) -> Settings | Problem | None:
    """What the ``pyproject.toml`` of ``folder`` says, if there is one, and it says anything."""
    file = os.path.join(folder, "pyproject.toml")
    try:
        data = files.read(file, _LONGEST_CONFIGURATION)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Problem(_shown(file), files.describe_error(error))
    return _settings(file, data, folder) if b"gradfix" in data else None


def settings_of(file: str) -> Settings | Problem:
    """The configuration in ``file``, which the user has named: its patterns and paths count from the current
    folder, as they would on the command line."""
    try:
        data = files.read(file, _LONGEST_CONFIGURATION)
    except OSError as error:
        return Problem(file, files.describe_error(error))
    settings = _settings(os.path.abspath(file), data, os.path.realpath(os.curdir))
    return Problem(file, "has no table [tool.gradfix]") if settings is None else settings


def _settings(file: str, data: bytes, root: str) -> Settings | Problem | None:
    """The settings in the ``pyproject.toml`` with the bytes ``data``; ``None`` if it has no such table."""
    import tomllib

    shown = _shown(file)
    try:
        table = tomllib.loads(data.decode()).get("tool", {}).get("gradfix")
    except (ValueError, AttributeError) as error:
        return Problem(shown, f"is not valid TOML: {error}")
    if table is None:
        return None
    if not isinstance(table, dict):
        return Problem(shown, "tool.gradfix must be a table")
    return _settings_from(table, root, shown)


def _settings_from(table: Mapping[str, object], root: str, shown: str) -> Settings | Problem:
    known = {item.name.replace("_", "-"): item for item in fields(Settings) if item.metadata.get("key", True)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key == "bot":  # A table of its own, which the bot reads, from the base branch only.
            continue
        if key == "verify":
            verification = _verification_from(value, root, shown)
            if isinstance(verification, Problem):
                return verification
            values["verify"] = verification
            continue
        if key == "python":
            return Problem(shown, "tool.gradfix.python has moved: write it as tool.gradfix.verify.python")
        if key not in known:
            return Problem(shown, f"unknown key {key!r} in [tool.gradfix]{near_miss(key, known)}")
        if key == "per-file-ignores":
            if not _is_table_of_lists(value):
                return Problem(shown, f"tool.gradfix.{key} must be a table of patterns and lists of strings")
            values[known[key].name] = tuple((pattern, tuple(names)) for pattern, names in value.items())
            continue
        kind, accepted = _percentage(value) if key == "min-coverage" else _accepts(known[key].default, value)
        if not accepted:
            return Problem(shown, f"tool.gradfix.{key} must be {kind}")
        if isinstance(value, list):
            value = tuple(value)
        elif key == "baseline":
            value = _from(root, str(value))
        elif isinstance(value, str):
            value = Severity(value)
        values[known[key].name] = value
    return Settings(**values, file=shown, root=root)


def _is_table_of_lists(value: object) -> TypeGuard[dict[str, list[str]]]:
    return isinstance(value, dict) and all(
        isinstance(one, list) and all(isinstance(item, str) for item in one) for one in value.values()
    )


def _verification_from(table: object, folder: str, shown: str) -> Verification | Problem:
    """The ``[tool.gradfix.verify]`` table of the ``pyproject.toml`` in ``folder``."""
    name = "tool.gradfix.verify"
    if not isinstance(table, dict):
        return Problem(shown, f"{name} must be a table")
    known = {item.name for item in fields(Verification)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            return Problem(shown, f"unknown key {key!r} in [{name}]{near_miss(key, known)}")
        wanted = kind_of_verification(key)
        commands = {"*": value} if isinstance(value, str) else value
        if not {
            "a command, or a table of patterns and commands": isinstance(commands, dict)
            and all(isinstance(one, str) for one in commands.values()),
            "a list of strings": isinstance(value, list) and all(isinstance(one, str) for one in value),
            "a number of seconds": isinstance(value, int | float)
            and not isinstance(value, bool)
            and value > 0,
            "a string": isinstance(value, str),
        }[wanted]:
            return Problem(shown, f"{name}.{key} must be {wanted}")
        values[key] = value
        if key == "command":
            values[key] = tuple(commands.items())
        elif key == "seconds":
            values[key] = float(value)
        elif key == "env":
            values[key] = tuple(value)
        elif key == "readable":
            values[key] = tuple(_from(folder, one) for one in value)
        elif key == "cwd" or os.path.dirname(value):  # A bare name of an interpreter is looked up in PATH.
            values[key] = _from(folder, value)
    return Verification(**values)


_VERIFICATION = {
    "command": "a command, or a table of patterns and commands",
    "readable": "a list of strings",
    "env": "a list of strings",
    "seconds": "a number of seconds",
}


def kind_of_verification(key: str) -> str:
    """What a key of ``[tool.gradfix.verify]`` takes, in words."""
    return _VERIFICATION.get(key, "a string")


def _from(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))


def _accepts(default: object, value: object) -> tuple[str, bool]:
    """What values a key takes whose default is ``default``, and whether ``value`` is one."""
    if isinstance(default, tuple):
        return "a list of strings", isinstance(value, list) and all(isinstance(item, str) for item in value)
    if isinstance(default, bool):
        return "true or false", isinstance(value, bool)
    if isinstance(default, int):
        return "a number of bytes", isinstance(value, int) and not isinstance(value, bool) and value > 0
    if isinstance(default, Severity):
        return f"one of {', '.join(Severity)}", value in list(Severity)
    return "a string", isinstance(value, str)


def _percentage(value: object) -> tuple[str, bool]:
    """The same of a percentage."""
    kind = "a percentage from 0 to 100"
    return kind, isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 100


def near_miss(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known word that is nearest, if one is near."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _common_folder(paths: Sequence[str]) -> str:
    folders = [
        path if os.path.isdir(path) else os.path.dirname(path)
        for path in (os.path.realpath(path) for path in paths or ["."])
    ]
    try:
        return os.path.commonpath(folders)
    except ValueError:  # Different drives.
        return folders[0]


def repository(paths: Sequence[str]) -> str | None:
    """The root of the git repository that all of ``paths`` are in, if one is known."""
    return repository_root(_common_folder(paths))


def _upwards(folder: str, root: str | None) -> Iterator[str]:
    """``folder`` and those around it, up to ``root`` or the top."""
    while True:
        yield folder
        above = os.path.dirname(folder)
        if folder in (root, above):
            return
        folder = above


def repository_root(folder: str) -> str | None:
    """The folder of the git repository that ``folder`` lies in."""
    return next((up for up in _upwards(folder, None) if os.path.exists(os.path.join(up, ".git"))), None)


def _shown(path: str) -> str:
    """An absolute path as people want to read it: relative to the current directory if below it."""
    below = os.path.join(os.getcwd(), "")
    return path[len(below) :] if path.startswith(below) else path


# ---------------------------------------------------------------------------- files


def find_files(
    paths: Sequence[str],
    settings: Settings | Configurations = Settings(),
    exclude: Sequence[str] | None = None,
    *,
    force_exclude: bool = False,
) -> Listing:
    """The files that ``paths`` mean: files as they are given, folders for the Python files below.

    Args:
        settings: The configuration of every file, or what knows that of each.
        exclude: Patterns in place of those of the configuration; they count from the current folder.
        force_exclude: Leave out what is excluded also where it is named.

    A walk leaves out what git ignores, what the configuration excludes, and folders that hold no
    source of the project (environments, caches, builds). It does not follow links to folders, nor
    links to files outside of the project (:func:`_root`): its configuration is not theirs. A file that
    is reached in several ways is listed once.
    """
    known = settings if isinstance(settings, Configurations) else Configurations(settings)
    excluding = _Excluding(known, _of_command_line(exclude))
    found: dict[str, Listed] = {}
    problems: list[Problem] = []
    empty: list[str] = []
    for path in paths:
        if not os.path.lexists(path):
            problems.append(Problem(path, "no such file or directory"))
            continue
        if not os.path.isdir(path):
            before = found.get(real := os.path.realpath(path))
            own = known.of(os.path.dirname(real))
            if isinstance(own, Problem):
                problems.append(own)
            elif (force_exclude or own.force_exclude) and excluding.named(real, own):
                continue
            elif before is None or not before.named:
                found[real] = Listed(_plain(path), named=True, settings=own)
            continue
        if force_exclude and excluding.names_folder(os.path.realpath(path)):
            continue
        failed = len(problems)
        below = list(_walk(path, excluding, problems))
        for real, shown, own in below:
            found.setdefault(real, Listed(shown, named=False, settings=own))
        if not below and len(problems) == failed:
            empty.append(path)
    return Listing(
        files=tuple(sorted(found.values(), key=lambda listed: listed.path)),
        problems=tuple(dict.fromkeys(problems)),
        empty=tuple(empty),
    )


def is_excluded(path: str, settings: Settings, exclude: Sequence[str] | None = None) -> bool:
    """Whether the file at ``path``, or a folder around it, is excluded; see :func:`find_files`."""
    return _Excluding(Configurations(settings), _of_command_line(exclude)).named(
        os.path.realpath(path), settings
    )


def _of_command_line(exclude: Sequence[str] | None) -> _Rules | None:
    if exclude is None:
        return None
    return _Rules(_base(os.path.realpath(os.curdir)), _spec(exclude), None)


def _plain(path: str) -> str:
    """``path`` without a leading ``./``; nothing else is safe to drop where links may be involved."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


class _Rules(NamedTuple):
    """The patterns of one ``.gitignore``, and those of the folders around it."""

    base: str
    """The real path of its folder, with a separator at the end."""
    spec: GitIgnoreSpec
    outer: _Rules | None

    def ignore(self, path: str) -> bool:
        """Whether git leaves out the absolute ``path`` (a folder's ends with a separator)."""
        rules: _Rules | None = self
        while rules is not None:
            verdict = rules.spec.check_file(path[len(rules.base) :]).include
            if verdict is not None:  # The nearest file that says anything decides.
                return verdict
            rules = rules.outer
        return False


def _root(settings: Settings, folder: str) -> str:
    """The real path of the project that the real path ``folder`` is walked for.

    That is the folder of the configuration, else the git repository, else what is walked itself.
    """
    root = os.path.realpath(settings.root) if settings.root else repository_root(folder)
    return root if root and _base(folder).startswith(_base(root)) else folder


class _Excluding(NamedTuple):
    """What the configurations exclude, or the command line in their place."""

    known: Configurations
    instead: _Rules | None

    def by(self, settings: Settings) -> _Rules | None:
        return self.instead or _excluded(settings)

    def names_folder(self, real: str) -> bool:
        """Whether a folder, or one around it, is excluded."""
        settings = self.known.of(real)
        return isinstance(settings, Settings) and self.named(os.path.join(real, ""), settings)

    def named(self, real: str, settings: Settings) -> bool:
        """Whether a file, or a folder around it, is excluded."""
        rules = self.by(settings)
        return rules is not None and _left_out(real, None, rules)


def _walk(
    argument: str, excluding: _Excluding, problems: list[Problem]
) -> Iterator[tuple[str, str, Settings]]:
    """``(real path, shown path, configuration)`` of the Python files and notebooks below the folder
    ``argument``."""
    real_root = os.path.realpath(argument)
    outermost = excluding.known.of(real_root)
    if isinstance(outermost, Problem):
        problems.append(outermost)
        return
    project = _base(_root(outermost, real_root))
    rules = _outer_rules(real_root, problems)
    shown_root = _plain(os.path.join(argument, ""))
    stack = [(os.path.join(real_root, ""), "" if shown_root == "." else shown_root, rules)]
    while stack:
        real, shown, rules = stack.pop()
        try:
            with os.scandir(real) as scan:
                entries = list(scan)
        except OSError as error:
            problems.append(Problem(shown or argument, f"cannot be read: {error.strerror}"))
            continue
        settings = excluding.known.of(real.rstrip(os.sep) or os.sep)
        if isinstance(settings, Problem):
            problems.append(settings)  # How this is to be looked at is not known.
            continue
        excluded = excluding.by(settings)
        names = {entry.name for entry in entries}
        if not names.isdisjoint(_ENVIRONMENTS) and len(real) > len(real_root) + 1:
            continue
        if ".gitignore" in names:
            rules = _gitignore(real, rules, problems)
        for entry in entries:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                if name in _SKIPPED or _left_out(f"{real}{name}/", rules, excluded):
                    continue
                stack.append((f"{real}{name}{os.sep}", f"{shown}{name}{os.sep}", rules))
            elif name.endswith(ANALYSED) and not _left_out(f"{real}{name}", rules, excluded):
                if entry.is_file(follow_symlinks=False):
                    yield f"{real}{name}", f"{shown}{name}", settings
                # Emacs locks a file by a dangling link, .#name.
                elif not (os.path.isdir(f"{real}{name}") or name.startswith(".#")) and entry.is_symlink():
                    target = os.path.realpath(f"{real}{name}")
                    if _base(os.path.dirname(target)).startswith(project):
                        own = excluding.known.of(os.path.dirname(target))
                        at = _shown(target) if os.path.exists(target) else f"{shown}{name}"
                        yield target, at, settings if isinstance(own, Problem) else own


def _left_out(path: str, rules: _Rules | None, excluded: _Rules | None) -> bool:
    if rules is None and excluded is None:
        return False
    path = path.replace(os.sep, "/")
    return (rules is not None and rules.ignore(path)) or (
        excluded is not None and path.startswith(excluded.base) and excluded.ignore(path)
    )


def _excluded(settings: Settings) -> _Rules | None:
    if not settings.exclude or settings.root is None:
        return None
    return _Rules(_base(os.path.realpath(settings.root)), _spec(settings.exclude), None)


def ignored_in(path: str, settings: Settings) -> frozenset[str]:
    """The names under ``per-file-ignores`` of ``settings`` that do not report in the file at ``path``."""
    if not settings.per_file_ignores or settings.root is None:
        return frozenset()
    name = os.path.relpath(os.path.realpath(path), os.path.realpath(settings.root)).replace(os.sep, "/")
    matching = (names for pattern, names in settings.per_file_ignores if _spec([pattern]).match_file(name))
    return frozenset(name for names in matching for name in names)


def _outer_rules(folder: str, problems: list[Problem]) -> _Rules | None:
    """The rules from the root of the repository down to, but without, ``folder``.

    None if they ignore ``folder`` itself: who names an ignored folder wants to see into it.
    """
    root = repository_root(folder)
    if root is None:
        return None
    rules = _gitignore(root, None, problems, os.path.join(".git", "info", "exclude"))
    inward = list(_upwards(folder, root))[::-1]
    for outer, inner in pairwise(inward):
        rules = _gitignore(outer, rules, problems)
        if rules is not None and rules.ignore(_base(inner)):
            return None
    return rules


def _gitignore(
    folder: str, outer: _Rules | None, problems: list[Problem], name: str = ".gitignore"
) -> _Rules | None:
    """The rules of the ``.gitignore`` in ``folder`` inside ``outer``."""
    path = os.path.join(folder, name)
    try:
        data = files.read(path, _LONGEST_IGNORE)
    except (FileNotFoundError, NotADirectoryError):
        return outer
    except OSError as error:
        problems.append(Problem(_shown(path), files.describe_error(error)))
        return outer
    # Git reads bytes; a byte order mark is not part of the first pattern.
    lines = data.decode("utf-8-sig", "surrogateescape").splitlines()
    return _Rules(_base(folder), _spec(lines), outer)


def _spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """The patterns of ``lines``; like git, without those that are malformed."""
    from pathspec import GitIgnoreSpec

    patterns: list[Any] = []
    for line in lines:
        with suppress(ValueError):
            patterns += GitIgnoreSpec.from_lines([line]).patterns
    return GitIgnoreSpec(patterns)


def _base(folder: str) -> str:
    return os.path.join(folder, "").replace(os.sep, "/")


# ---------------------------------------------------------------------------- writing


def replace(path: str, before: bytes, after: bytes) -> Problem | None:
    """Write ``after`` to the file at ``path``, which held ``before``; see
    :func:`gradfix.system.files.replace`."""
    try:
        files.replace(path, before, after)
    except OSError as error:
        return Problem(path, files.describe_error(error, "cannot be written"))
    return None


def save(path: str, data: bytes) -> Problem | None:
    """Write ``data`` to ``path`` as a file of our own; see :func:`gradfix.system.files.save`."""
    try:
        files.save(path, data)
    except OSError as error:
        return Problem(path, files.describe_error(error, "cannot be written"))
    return None
