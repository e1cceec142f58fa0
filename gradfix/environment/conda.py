"""Requirements in ``environment.yml``, as conda writes it.

Only the part of YAML that such files are made of is read: a mapping whose ``dependencies`` is a list of
words, with a list under ``pip``. Many of conda's packages are libraries that PyPI has inside its wheels, or
under other names, and PyPI may have something else under theirs. So only names that are known are taken.
"""

from __future__ import annotations

import re
from pathlib import Path

from gradfix.environment.distributions import WELL_KNOWN
from gradfix.environment.reading import Collected, Project, Stated
from gradfix.environment.requirements import normalised

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
    conda, pip = _dependencies(project.text(path, collected))
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
        known = PYPI.get(name) or (normalised(name) if normalised(name) in WELL_KNOWN else None)
        if known is None:
            why = "it is a package of conda's, and not known to be of that name on PyPI"
            collected.leave_out(package, why, matters=False)
        else:
            collected.add(f"{known}{version}")
    for line in pip:
        if line.startswith("-r"):
            collected.leave_out(line, "includes are not read here")
        else:
            collected.add(line)
    if not conda and not pip:
        collected.leave_out(collected.origin, "no list of dependencies was found in it", matters=False)
    return collected.stated(path, python_requires=python)


def _dependencies(text: str) -> tuple[list[str], list[str]]:
    """The entries of ``dependencies``, and those of the list under ``pip`` in it."""
    conda: list[str] = []
    pip: list[str] = []
    inside, under_pip = False, -1
    for line in text.splitlines():
        line = re.sub(r"(?:^|\s)#.*$", "", line).rstrip()
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0 and not line.startswith("-"):
            inside, under_pip = line.split(":")[0].strip() == "dependencies", -1
            continue
        entry = re.fullmatch(r"-\s+(.*)", line.strip())
        if not inside or entry is None:
            continue
        value = entry[1].strip().strip("'\"").strip()
        if under_pip >= 0 and indent <= under_pip:
            under_pip = -1
        if value.rstrip().endswith(":"):
            under_pip = indent if value == "pip:" else -1
        elif under_pip >= 0:
            pip.append(value)
        else:
            conda.append(value)
    return conda, pip


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
