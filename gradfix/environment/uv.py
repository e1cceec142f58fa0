"""Calls of ``uv``, which finds, downloads and installs distributions (https://docs.astral.sh/uv).

uv is run in a folder of its own and told which configuration to read, because it would otherwise take its
settings from the project it is called in: a stranger's ``[tool.uv]`` could say where distributions come
from. What the user has set for uv (the ``UV_`` variables, ``uv.toml`` in the user's own configuration)
holds. Only wheels are taken: a source distribution runs a stranger's program when it is built.
"""

from __future__ import annotations

import importlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gradfix.environment.errors import EnvironmentFailure
from gradfix.system import files, programs

WHEELS_ONLY = ("--only-binary", ":all:")
SECONDS = 3600
"""For one call, the longest of which downloads."""

_UNWANTED = (
    "UV_COMPILE_BYTECODE",
    "UV_NO_BINARY",
    "UV_NO_BINARY_PACKAGE",
    "UV_SYSTEM_PYTHON",
    "UV_BREAK_SYSTEM_PACKAGES",
    "UV_WORKING_DIR",
    "UV_WORKING_DIRECTORY",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_MANAGED_PYTHON",
    "UV_PYTHON",
)
_IMPATIENT = {"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "10"}
_CACHED_BY = (
    "UV_CONFIG_FILE",
    "UV_CONSTRAINT",
    "UV_DEFAULT_INDEX",
    "UV_EXCLUDE_NEWER",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_INDEX",
    "UV_INDEX_STRATEGY",
    "UV_INDEX_URL",
    "UV_NO_INDEX",
    "UV_OVERRIDE",
    "UV_PRERELEASE",
    "UV_RESOLUTION",
    "UV_TORCH_BACKEND",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call ended."""

    ok: bool
    output: str
    message: str
    """What uv said on standard error, without its line breaks within a sentence."""

    @property
    def first_line(self) -> str:
        """The part of the message that says what is wrong, for people."""
        said = self.message.split(" hint: ")[0].removeprefix("error: ")
        return said if len(said) <= 300 else f"{said[:297]}..."


@dataclass(frozen=True, slots=True)
class Uv:
    """A uv that can be run."""

    executable: str
    folder: Path
    """A private folder to run it in."""
    impatient: bool = False
    """Whether a host that does not answer is given up at once."""

    def call(self, *arguments: str, constraints: Sequence[Path] = ()) -> Answer:
        """Run uv and wait for it.

        Raises:
            EnvironmentFailure: It could not be run.
        """
        try:
            done = subprocess.run(
                [self.executable, *arguments, *_configuration(os.environ), "--color", "never"],
                cwd=self.folder,
                env=_environment(os.environ, constraints) | (_IMPATIENT if self.impatient else {}),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EnvironmentFailure(f"uv could not be run: {error}") from error
        return Answer(done.returncode == 0, done.stdout, " ".join(done.stderr.split()))


def find() -> str:
    """The uv to use: that of the extra ``gradfix[env]``, else the one on PATH.

    Raises:
        EnvironmentFailure: There is none.
    """
    try:
        return str(importlib.import_module("uv").find_uv_bin())
    except (ImportError, AttributeError, FileNotFoundError):
        pass
    found = programs.find("uv")
    if found is None:
        raise EnvironmentFailure("there is no uv: pip install uv, or put uv on PATH")
    return found


def settings() -> dict[str, str]:
    """What the user has set that decides which distributions uv finds; of files, what they hold too."""
    found = {name: os.environ[name] for name in _CACHED_BY if os.environ.get(name)}
    named = [part for name in ("UV_CONSTRAINT", "UV_OVERRIDE") for part in found.get(name, "").split()]
    for file in filter(None, [*named, found.get("UV_CONFIG_FILE"), *_configuration(os.environ)[1:]]):
        with suppress(OSError):
            found[file] = files.read(file).decode("utf-8", "replace")
    return found


def _configuration(environ: Mapping[str, str]) -> list[str]:
    """The options that say which configuration uv reads: the user's or none, never a project's."""
    if environ.get("UV_NO_CONFIG"):
        return ["--no-config"]
    if environ.get("UV_CONFIG_FILE"):
        return []
    own = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for file in (own / "uv" / "uv.toml", Path("/etc/uv/uv.toml")):
        if file.is_file():
            return ["--config-file", str(file)]
    return ["--no-config"]


def _environment(environ: Mapping[str, str], constraints: Sequence[Path]) -> dict[str, str]:
    own = {
        name: value
        for name, value in environ.items()
        if name not in _UNWANTED and name not in ("VIRTUAL_ENV", "CONDA_PREFIX") and name[:6] != "PYTHON"
    }
    # Python itself is not to be downloaded: the interpreter was chosen.
    own["UV_PYTHON_DOWNLOADS"] = "never"
    if constraints:
        own["UV_CONSTRAINT"] = " ".join([*environ.get("UV_CONSTRAINT", "").split(), *map(str, constraints)])
    for name in ("UV_CONFIG_FILE", "UV_CONSTRAINT", "UV_OVERRIDE", "UV_FIND_LINKS"):
        # What the user means is relative to where the user is, and uv runs elsewhere.
        if own.get(name):
            separator = {"UV_FIND_LINKS": ",", "UV_CONFIG_FILE": os.pathsep}.get(name, " ")
            own[name] = separator.join(_absolute(part) for part in own[name].split(separator))
    return own


def _absolute(part: str) -> str:
    return os.path.abspath(part) if "://" not in part and os.path.exists(part) else part
