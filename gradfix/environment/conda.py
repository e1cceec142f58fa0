"""Requirements in ``environment.yml``, as conda writes it.

Many of conda's packages are libraries that PyPI has inside its wheels, or under other names, and PyPI may
have something else under theirs. So only names that are known are taken.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from packaging.utils import canonicalize_name

from gradfix.environment.distributions import WELL_KNOWN
from gradfix.environment.reading import Collected, Project, Stated

PYPI = {
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "pytorch-gpu": "torch",
    "opencv": "opencv-python-headless",
    "py-opencv": "opencv-python-headless",
    "pytables": "tables",
    "matplotlib-base": "matplotlib",
    "seaborn-base": "seaborn",
    "pyg": "torch-geometric",
    "tensorboard": "tensorboard",
    "python-lmdb": "lmdb",
    "importlib_metadata": "importlib-metadata",
    "faiss": "faiss-cpu",
    "faiss-gpu": "faiss-cpu",
    "dask-core": "dask",
    "pywavelets": "pywavelets",
    "tensorflow-gpu": "tensorflow",
    "msgpack-python": "msgpack",
    "ignite": "pytorch-ignite",
}
"""What conda calls otherwise."""

NO_DISTRIBUTIONS = frozenset(
    {"python", "pip", "cudatoolkit", "cudnn", "cuda", "pytorch-cuda", "pytorch-mutex", "mkl", "nccl"}
)
"""Part of the interpreter, of a driver or of PyTorch's wheels."""

_PACKAGE = re.compile(
    r"(?:[\w.-]+::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]*)\s*(?P<version>[=<>!~][^\[]*|[0-9][^\[]*)?(?:\[.*\])?"
)


def files_in(folder: Path) -> list[Path]:
    """The file of conda's in a folder, or none."""
    for pattern in ("environment.y*ml", "environment*.y*ml", "env.y*ml", "conda*.y*ml"):
        if found := sorted(path for path in folder.glob(pattern) if path.is_file()):
            return found[:1]
    return []


def of_environment(path: Path, project: Project) -> Stated:
    """What a file of conda's says."""
    collected = Collected(project.named(path))
    conda, pip = _dependencies(project.text(path, collected), collected)
    python = ""
    for package in conda:
        found = _PACKAGE.fullmatch(package)
        if found is None:
            collected.leave_out(package, "it is not understood", matters=False)
            continue
        name, version = found["name"].lower(), _specifier(found["version"] or "")
        if name == "python":
            python = version
        if name in NO_DISTRIBUTIONS:
            continue
        known = PYPI.get(name, canonicalize_name(name))
        if name not in PYPI and known not in WELL_KNOWN:
            why = "it is a package of conda's, and not known to be of that name on PyPI"
            collected.leave_out(package, why, matters=False)
        else:
            collected.add(f"{known}{version}")
    for line in pip:
        if line.startswith("-r"):
            collected.leave_out(line, "includes are not read here")
        else:
            collected.add(line)
    return collected.stated(path, python_requires=python)


def _dependencies(text: str, collected: Collected) -> tuple[list[str], list[str]]:
    """The entries of ``dependencies``, and those of the lists under ``pip`` in it."""
    try:
        # Everything stays text: versions are no numbers, and keys that are merged cannot multiply.
        file = yaml.load(text, Loader=yaml.BaseLoader)
    # Deeply nested lists of a stranger's file are a recursion.
    except (yaml.YAMLError, RecursionError) as error:
        collected.leave_out(collected.origin, f"it is no YAML: {_described(error)}", matters=False)
        return [], []
    listed = file.get("dependencies") if isinstance(file, dict) else None
    if not isinstance(listed, list) or not listed:
        collected.leave_out(collected.origin, "no list of dependencies was found in it", matters=False)
        return [], []
    pip = [inner.get("pip") for inner in listed if isinstance(inner, dict)]
    return _texts(listed), [text for inner in pip if isinstance(inner, list) for text in _texts(inner)]


def _texts(listed: list[object]) -> list[str]:
    return [entry.strip() for entry in listed if isinstance(entry, str) and entry.strip()]


def _described(error: Exception) -> str:
    """What a parser says, in one line."""
    if isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark) is not None:
        return f"{error.problem} (line {mark.line + 1}, column {mark.column + 1})"
    return " ".join(str(error).split())


def _specifier(version: str) -> str:
    """conda's notation of versions as PEP 440 has it: ``1.2=build`` is ``==1.2``, ``1.2`` is ``==1.2.*``."""
    version = version.strip().replace(" ", "")
    if "|" in version:
        return ""
    exact = re.fullmatch(r"=?([0-9][\w.]*)=[\w.]+", version)
    if exact:
        return f"=={exact[1]}"
    fuzzy = re.fullmatch(r"=?([0-9][\w.]*?)(?:\.?\*)?", version)
    if fuzzy:
        return f"=={fuzzy[1]}.*"
    return re.sub(r"(==[^,*]+)=[\w.]+", r"\1", version)
