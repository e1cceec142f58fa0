"""What the readers of a project's files share: a file's text, and what they make of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gradfix.environment.requirements import LeftOut, Requirement, parse
from gradfix.system import files

MAX_BYTES = 1 << 20
"""Of a file that states requirements; a larger one is something else."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What the files of a project ask for."""

    requirements: tuple[Requirement, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    files: tuple[Path, ...] = ()
    """Where it is stated."""
    python_requires: str = ""
    """The versions of Python that the project says it is for, as it puts them."""

    def __bool__(self) -> bool:
        return bool(self.requirements or self.left_out)

    def __add__(self, other: Stated) -> Stated:
        return Stated(
            tuple(dict.fromkeys(self.requirements + other.requirements)),
            tuple(dict.fromkeys(self.left_out + other.left_out)),
            tuple(dict.fromkeys(self.files + other.files)),
            self.python_requires or other.python_requires,
        )


@dataclass(frozen=True, slots=True)
class Project:
    """Where files may be read, and what they are called when people are told of them."""

    root: Path

    def text(self, path: Path, into: Collected | None = None) -> str:
        """A file's text; nothing where it cannot be read, which is told ``into`` what is found."""
        try:
            if not self.holds(path):
                raise files.Refused("is outside of the project")
            data = files.read(path, MAX_BYTES)
        except OSError as error:
            if into is not None:
                into.leave_out(self.named(path), f"it {files.describe_error(error)}", matters=False)
            return ""
        for encoding in ("utf-8-sig", "utf-16") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                continue
        return data.decode("latin-1")

    def holds(self, path: Path) -> bool:
        """Whether a path lies in the project, links followed."""
        return path.resolve().is_relative_to(self.root.resolve())

    def named(self, path: Path) -> str:
        """A path for people, from the project's root."""
        return os.path.relpath(path, self.root)


@dataclass(slots=True)
class Collected:
    """What one reader has found so far."""

    origin: str
    requirements: list[Requirement] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Add a requirement in the syntax of PEP 508."""
        found = parse(line, self.origin)
        if isinstance(found, LeftOut):
            self.left_out.append(found)
        else:
            self.requirements.append(found)

    def add_all(self, lines: object) -> None:
        """Add those of a list, which a stranger wrote: whatever is no text in it is left out."""
        if isinstance(lines, Iterable) and not isinstance(lines, str | bytes):
            for line in lines:
                if isinstance(line, str) and line.strip():
                    self.add(line.strip())

    def leave_out(self, text: str, why: str, *, matters: bool = True) -> None:
        self.left_out.append(LeftOut(" ".join(text.split()), why, self.origin, matters))

    def stated(self, *files: Path, python_requires: str = "") -> Stated:
        return Stated(
            tuple(dict.fromkeys(self.requirements)),
            tuple(dict.fromkeys(self.left_out)),
            files,
            python_requires,
        )
