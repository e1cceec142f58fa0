"""What a project states of what it needs: the nearest statement to a script, in the forms that are in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from gradfix.environment import conda, pyproject, requirements_files, setuptools_files
from gradfix.environment.reading import Project, Stated

Reader = Callable[[Path, Project], Stated]


def root_of(path: Path) -> Path:
    """The folder above which nothing of a script's project lies: the repository's, else the project's."""
    path = path.absolute()
    for folder in path.parents:
        if any((folder / marker).exists() for marker in (".git", ".hg")):
            return folder
    from gradfix.verify.command import project_root

    return project_root(path)


def stated_for(script: Path, root: Path) -> Stated:
    """What is stated for a script: by itself, else by the nearest folder that states anything.

    Of the files of one folder the first that states something counts: pyproject.toml, ``requirements*.txt``,
    ``environment.yml``, setup.cfg, setup.py, Pipfile. Nothing is executed.
    """
    project = Project(root)
    own = pyproject.of_script(script, project)
    if own or own.files:
        return own
    silent = Stated()
    for folder in _upwards(script.absolute().parent, root):
        stated = _in_folder(folder, project)
        if stated.requirements or any(left.matters for left in stated.left_out):
            return Stated(
                stated.requirements,
                stated.left_out,
                stated.files,
                stated.python_requires or silent.python_requires,
            )
        silent += stated
    return Stated((), silent.left_out, (), silent.python_requires)


def _upwards(folder: Path, root: Path) -> Iterator[Path]:
    for above in (folder, *folder.parents):
        yield above
        if above == root:
            return


def _in_folder(folder: Path, project: Project) -> Stated:
    silent = Stated()
    for read in (_pyproject, _requirements, _conda, _setup_cfg, _setup_py, _pipfile):
        stated = read(folder, project)
        if stated.requirements or any(left.matters for left in stated.left_out):
            python = stated.python_requires or silent.python_requires
            # A file that cannot be parsed is told of, also where another one says what is needed.
            return Stated(stated.requirements, silent.left_out + stated.left_out, stated.files, python)
        silent += stated
    return silent


def _one(folder: Path, name: str, project: Project, reader: Reader) -> Stated:
    path = folder / name
    return reader(path, project) if path.is_file() else Stated()


def _pyproject(folder: Path, project: Project) -> Stated:
    return _one(folder, "pyproject.toml", project, pyproject.of_pyproject)


def _pipfile(folder: Path, project: Project) -> Stated:
    return _one(folder, "Pipfile", project, pyproject.of_pipfile)


def _setup_cfg(folder: Path, project: Project) -> Stated:
    return _one(folder, "setup.cfg", project, setuptools_files.of_setup_cfg)


def _setup_py(folder: Path, project: Project) -> Stated:
    return _one(folder, "setup.py", project, setuptools_files.of_setup_py)


def _conda(folder: Path, project: Project) -> Stated:
    stated = Stated()
    for path in conda.files_in(folder):
        stated += conda.of_environment(path, project)
    return stated


def _requirements(folder: Path, project: Project) -> Stated:
    stated = Stated()
    for path in requirements_files.files_in(folder):
        read, selves = requirements_files.of_requirements(path, project)
        stated += read
        # What is installed from its own folder brings along what that folder states.
        for itself in selves:
            for reader in (_pyproject, _setup_cfg, _setup_py):
                stated += reader(itself, project)
    return stated
