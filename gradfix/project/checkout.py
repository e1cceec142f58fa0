"""A git checkout, looked at without its configuration: nothing that came with it is started.

What is in a checkout's ``.git`` may be somebody else's (an archive holds what its maker wants), and git
starts what its configuration names: a file system monitor, hooks, filters, a remote's transport. So git does
not get to see it. For each question it gets a folder of ours, whose configuration is ours, and in which only
objects, refs and index are links to those of the checkout. Variables of the environment (``GIT_DIR``) and the
user's and the system's configuration have no say either.

Nothing is written: neither the index nor a lock.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gradfix.system import hostile, programs, scratch

SECONDS = 120.0
"""That a question may take."""
SMALL = 1 << 16
"""Bytes of git's own small files that are read."""

_SHARED = ("objects", "refs", "packed-refs", "reftable", "shallow")
"""What all work trees of a repository have in common."""
_CONFIGURATION = """[core]
	repositoryformatversion = 1
	bare = false
	fileMode = false
	fsmonitor = false
	hooksPath = {nothing}
	attributesFile = {nothing}
	excludesFile = {nothing}
[extensions]
"""


class CheckoutError(Exception):
    """Git cannot be asked, or does not answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A work tree with its repository."""

    root: str
    """The folder that ``.git`` is in."""
    folder: str
    """Where HEAD and the index are."""
    common: str
    """Where objects and refs are: another folder if the repository has several work trees."""

    def ask(self, *arguments: str) -> bytes:
        """What git prints for a command that only reads, in the root of the work tree.

        Raises:
            CheckoutError: if it fails.
        """
        git = programs.find("git")
        if git is None:
            raise CheckoutError("there is no git")
        with scratch.folder() as folder:
            view = str(folder)
            self._lay_out(view)
            try:
                done = subprocess.run(
                    [git, "--no-pager", "--no-optional-locks", *arguments],
                    cwd=self.root,
                    env=self._environment(view),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=SECONDS,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise CheckoutError(f"git {arguments[0]}: {error}") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it gives no reason"]
            raise CheckoutError(f"git {arguments[0]}: {said[0]}")
        return done.stdout

    def _lay_out(self, view: str) -> None:
        """Make the folder that git is given in the place of ``.git``."""
        try:
            for name in _SHARED:
                if os.path.exists(os.path.join(self.common, name)):
                    os.symlink(os.path.join(self.common, name), os.path.join(view, name))
            for name in os.listdir(self.folder):
                if name == "index" or name.startswith("sharedindex."):
                    os.symlink(os.path.join(self.folder, name), os.path.join(view, name))
            Path(view, "HEAD").write_bytes(hostile.read(Path(self.folder, "HEAD"), SMALL))
            extensions = ""
            if os.path.isdir(os.path.join(self.common, "reftable")):
                extensions += "\trefStorage = reftable\n"
            if _SHA256.search(hostile.read(Path(self.common, "config"), SMALL)):
                extensions += "\tobjectFormat = sha256\n"
            Path(view, "config").write_text(_CONFIGURATION.format(nothing=os.devnull) + extensions)
        except OSError as error:
            raise CheckoutError(f"{self.folder} cannot be read: {error.strerror}") from None

    def _environment(self, view: str) -> dict[str, str]:
        return {
            "PATH": programs.search_path(),
            **{name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},
            "HOME": view,
            "LC_ALL": "C.UTF-8",
            "GIT_DIR": view,
            "GIT_WORK_TREE": self.root,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            # No transport at all.
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_TERMINAL_PROMPT": "0",
        }


_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*\"?sha256\b", re.IGNORECASE | re.MULTILINE)


def around(folder: str) -> Iterator[Checkout]:
    """The checkouts that the absolute ``folder`` lies in, the innermost first.

    Raises:
        CheckoutError: at a ``.git`` that is no repository.
    """
    for root in (Path(folder), *Path(folder).parents):
        if os.path.lexists(root / ".git"):
            yield at(root)


def at(root: Path) -> Checkout:
    """The checkout whose ``.git`` is in ``root``.

    Raises:
        CheckoutError: if there is none.
    """
    folder = root / ".git"
    if not folder.is_dir():
        # A work tree beside others, or a submodule.
        named = re.fullmatch(rb"gitdir: ([^\n\0]+)\n*", hostile.read(folder, SMALL))
        if named is None:
            raise CheckoutError(f"{folder} is no git repository")
        folder = root / os.fsdecode(named[1])
    common = folder
    if other := hostile.read(folder / "commondir", SMALL).strip(b"\n"):
        with suppress(ValueError):
            common = folder / os.fsdecode(other)
    if not (folder / "HEAD").is_file() or not (common / "objects").is_dir():
        raise CheckoutError(f"{root / '.git'} is no git repository")
    return Checkout(str(root), os.path.realpath(folder), os.path.realpath(common))
