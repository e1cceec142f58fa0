"""Environments for scripts: what they need, and an interpreter that has it.

:func:`plan` reads and runs nothing. :func:`ensure` makes an environment with uv, or finds the one that was
made of the same before.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from gradfix.environment import bytecode, cache, interpreters, resolve, uv
from gradfix.environment.cache import Manifest
from gradfix.environment.distributions import suppliers, why_not
from gradfix.environment.errors import EnvironmentFailure
from gradfix.environment.imports import Import, reached
from gradfix.environment.interpreters import Base
from gradfix.environment.reading import Stated
from gradfix.environment.requirements import LeftOut, Requirement, parse
from gradfix.environment.resolve import Relaxed
from gradfix.environment.statements import root_of, stated_for
from gradfix.project import configuration, source

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Needed:
    """An import of the scripts, and what supplies it."""

    module: Import
    distribution: str
    """Empty where none is known."""
    origin: str
    """Where that distribution is stated, or why there is none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What some scripts need."""

    scripts: tuple[Path, ...]
    requirements: tuple[Requirement, ...]
    """What to install: what is stated, and for imports that this does not cover, what supplies them."""
    imports: tuple[Needed, ...]
    left_out: tuple[LeftOut, ...]
    """What is stated and will not be installed."""
    files: tuple[Path, ...]
    """Where it is stated."""
    python_requires: str


@dataclass(frozen=True, slots=True)
class Built:
    """An environment that can be used."""

    executable: str
    """Its interpreter; hand it to whatever takes ``--python``."""
    python: str
    """The version of that."""
    installed: tuple[str, ...]
    """Distributions, as ``numpy==2.4.6``."""
    relaxed: tuple[Relaxed, ...]
    """What is there in another version than the stated one."""
    missing: tuple[LeftOut, ...]
    """What could not be installed, and imports that the environment lacks."""
    notes: tuple[str, ...]
    size: int
    """In bytes."""
    reused: bool
    """Whether it was there already."""


def plan(paths: Sequence[Path], extra: Iterable[str] = ()) -> Plan:
    """What the scripts at ``paths`` need; nothing is run, and nothing but files is read.

    Args:
        paths: Scripts, and folders for what below them gradfix can have something to say about.
        extra: Further requirements, in the syntax of PEP 508.

    Raises:
        EnvironmentFailure: A path that is not there, or a further requirement that is none.
    """
    scripts = _scripts(paths)
    roots = {script: root_of(script) for script in scripts}
    stated = Stated()
    for script in scripts:
        stated += stated_for(script, roots[script])
    further = []
    for line in extra:
        one = parse(line, "--with")
        if isinstance(one, LeftOut):
            raise EnvironmentFailure(f"--with {line}: {one.why}")
        further.append(one)
    requirements = [*stated.requirements, *further]
    imports: list[Import] = []
    for root in dict.fromkeys(roots.values()):
        imports += reached([script for script in scripts if roots[script] == root], root)
    needed = _needed({one.module: one for one in imports}.values(), requirements)
    guessed = [
        Requirement(one.distribution, "", "", "", one.origin)
        for one in needed
        if one.distribution and one.distribution not in {known.name for known in requirements}
    ]
    return Plan(
        tuple(scripts),
        # What several files state alike is stated once.
        tuple({one.text: one for one in reversed([*requirements, *guessed])}.values())[::-1],
        needed,
        stated.left_out,
        stated.files,
        stated.python_requires,
    )


def ensure(
    paths: Sequence[Path] | Plan,
    *,
    python: str | None = None,
    extra: Iterable[str] = (),
    refresh: bool = False,
    progress: Progress = lambda _: None,
) -> Built:
    """An environment with what the scripts at ``paths`` need, made with uv or found in the cache.

    Args:
        paths: Scripts and folders, or what :func:`plan` made of them.
        python: The interpreter to make it with (default: the one that runs gradfix).
        extra: Further requirements; not where ``paths`` is a plan.
        refresh: Make it again.
        progress: Told what is being done, one line at a time.

    Raises:
        EnvironmentFailure: There is no uv, no index, nothing to install, or nothing of it can be.
    """
    needs = paths if isinstance(paths, Plan) else plan(paths, extra)
    if not needs.requirements:
        raise EnvironmentFailure("there is nothing to install: nothing is stated, and no import is known")
    base = interpreters.base(python)
    texts = [requirement.text for requirement in needs.requirements]
    folder = cache.home() / cache.digest(texts, base.executable, base.version, uv.settings())
    manifest = None if refresh else cache.load(folder)
    reused = manifest is not None
    if manifest is None:
        with cache.locked(folder, progress):
            # Whoever had the lock before may have made it.
            manifest = None if refresh else cache.load(folder)
            reused = manifest is not None
            if manifest is None:
                manifest = cache.make(
                    folder, lambda building: _fill(building, needs.requirements, base, progress)
                )
    return _built(folder, manifest, needs, reused=reused)


def _fill(building: Path, wanted: Sequence[Requirement], base: Base, progress: Progress) -> Manifest:
    """Make an environment in an empty folder."""
    work = building / "work"
    work.mkdir(mode=0o700)
    own = uv.Uv(uv.find(), work)
    try:
        progress(f"resolving {_counted(len(wanted), 'requirement')}")
        series = ".".join(base.version.split(".")[:2])
        found = resolve.resolve(wanted, own, base.executable, series, progress)
        if not found.lines:
            names = "; ".join(f"{one.text}: {one.why}" for one in found.missing)
            raise EnvironmentFailure(f"nothing of what is needed can be installed ({names})")
        progress(f"installing {_counted(len(found.lines), 'distribution')}")
        _install(building, found, own, base.executable)
        progress("compiling what was installed")
        bytecode.compile_all(building, base.executable)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    progress("measuring what was installed")
    return Manifest(
        requirements=tuple(one.text for one in wanted),
        installed=found.lines,
        modules=interpreters.modules_in(building),
        relaxed=found.relaxed,
        missing=found.missing,
        notes=found.notes,
        python=base.version,
        bases=base.prefixes,
        size=cache.size_of(building),
        created=cache.now(),
    )


def _install(building: Path, found: resolve.Resolution, own: uv.Uv, base: str) -> None:
    locked = own.folder / "requirements.txt"
    locked.write_text("".join(f"{line}\n" for line in found.lines), encoding="utf-8")
    # It is going to be renamed, and the folder is there already.
    made = own.call(
        "venv", "--python", base, "--relocatable", "--no-project", "--allow-existing", str(building)
    )
    if not made.ok:
        raise EnvironmentFailure(f"uv cannot make an environment: {made.first_line}")
    # The environment's interpreter is asked by uv while there is nothing in it yet, and never afterwards: uv
    # would compile with it.
    done = own.call(
        "pip",
        "install",
        *uv.WHEELS_ONLY,
        "--no-deps",
        "--no-compile-bytecode",
        "--python",
        str(cache.executable_of(building)),
        *found.options,
        "-r",
        str(locked),
    )
    if not done.ok:
        raise EnvironmentFailure(f"uv cannot install what it has resolved: {done.first_line}")


def _built(folder: Path, manifest: Manifest, needs: Plan, *, reused: bool) -> Built:
    has = {*manifest.modules, *sys.stdlib_module_names}
    # Of a distribution that could not be installed it has been said already.
    gone = {one.name for text in manifest.missing if isinstance(one := parse(text.text, ""), Requirement)}
    imports = [
        LeftOut(
            f"import {one.module.module}",
            f"{one.distribution} ({one.origin}) does not supply it" if one.distribution else one.origin,
            os.path.relpath(one.module.path),
        )
        for one in needs.imports
        if one.module.top not in has and one.distribution not in gone
    ]
    stated = [one for one in needs.left_out if one.matters]
    return Built(
        str(cache.executable_of(folder)),
        manifest.python,
        manifest.installed,
        manifest.relaxed,
        tuple(dict.fromkeys([*manifest.missing, *stated, *imports])),
        manifest.notes,
        manifest.size,
        reused,
    )


# ---------------------------------------------------------------------------- what is needed


def _scripts(paths: Sequence[Path]) -> list[Path]:
    """The scripts that are meant: of a folder those that can hold a gradient mistake, else all."""
    scripts: list[Path] = []
    for path in paths:
        listing = configuration.find_files([str(path)])
        if listing.problems:
            raise EnvironmentFailure(f"{listing.problems[0].path}: {listing.problems[0].message}")
        found = [Path(listed.path).absolute() for listed in listing.files]
        if path.is_dir():
            found = [one for one in found if _can_matter(one)] or found
            if not found:
                raise EnvironmentFailure(f"there are no Python files under {path}")
        scripts += found
    return list(dict.fromkeys(scripts))


def _can_matter(path: Path) -> bool:
    data = source.load(str(path))
    return isinstance(data, bytes) and source.can_matter(data)


def _needed(imports: Iterable[Import], stated: Sequence[Requirement]) -> tuple[Needed, ...]:
    """For each import, what supplies it: what is stated before what would be guessed."""
    origins = {one.name: one.origin for one in reversed(stated)}
    found = []
    for one in imports:
        known = suppliers(one.module)
        same = canonicalize_name(one.top)
        supplier = next((name for name in (*known, same) if name in origins), None)
        if supplier is not None:
            found.append(Needed(one, supplier, origins[supplier]))
        elif known:
            where = f"imported in {os.path.relpath(one.path)}, line {one.line}"
            found.append(Needed(one, known[0], where))
        else:
            found.append(Needed(one, "", why_not(one.module)))
    return tuple(found)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
