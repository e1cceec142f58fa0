"""The certificates of a run as files in a folder: what they are called, and which of them stay."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from gradfix.pipeline import certificate
from gradfix.pipeline.results import Attempt, Plan
from gradfix.project.source import Problem
from gradfix.system import files

_PLAIN = re.compile(r"[a-z0-9_]+\.py")
"""A path that is a file's name as it is, on any file system."""
_LONGEST = 80
_IGNORED = b"# Made by gradfix: certificates hold your code, and are not to be committed by accident.\n*\n"


def save(plan: Plan, folder: str) -> int | Problem:
    """Write a certificate for every rewrite that was to be run to ``folder``, and say how many there are.

    What earlier runs have left there about the same files is removed; what they say of others stays.
    """
    made = certificates(plan)
    if not made:
        return 0
    ran = {file.path for file in plan.files for attempt in file.attempts if attempt.evidence is not None}
    try:
        with _opened(folder) as opened:
            for name, content in made.items():
                opened.save(name, content)
            for name in opened.names():
                if name not in made and any(_is_about(path, name) for path in ran):
                    opened.remove(name)
    except OSError as error:
        return Problem(folder, files.describe_error(error, "cannot be written"))
    return len(made)


def save_one(path: str, number: int, attempt: Attempt, folder: str) -> None:
    """Write the certificate of one rewrite of a file as soon as it has been run; :func:`save` follows.

    If it cannot be written, that is reported by :func:`save`.
    """
    with suppress(OSError), _opened(folder) as opened:
        opened.save(*_certificate(path, number, attempt))


@contextmanager
def _opened(folder: str) -> Iterator[files.Folder]:
    """The folder for certificates; where it is made, git is told to leave it out.

    In one that was there, other things may lie.
    """
    is_new = not os.path.lexists(folder)
    with files.folder_for(folder) as opened:
        if is_new:
            opened.save(".gitignore", _IGNORED)
        yield opened


def unusable(folder: str) -> Problem | None:
    """Why nothing could be saved to ``folder``; it is asked before anything is run, and makes nothing."""
    try:
        files.folder_for(folder, make=False).close()
    except FileNotFoundError:
        return None
    except OSError as error:
        return Problem(folder, files.describe_error(error, "cannot be written"))
    return None


def certificates(plan: Plan) -> Mapping[str, bytes]:
    """The content of each certificate by the name of its file."""
    return dict(
        made
        for file in plan.files
        for number, attempt in enumerate(file.attempts, start=1)
        if attempt.evidence is not None
        for made in (_certificate(file.path, number, attempt), *_driver(file.path, number, attempt))
    )


def _driver(path: str, number: int, attempt: Attempt) -> Iterator[tuple[str, bytes]]:
    """The driver that ran a step alone, if one did: to read, and to run by hand."""
    alone = attempt.evidence.alone if attempt.evidence is not None else None
    if alone is not None:
        yield f"{stem(path)}-{number}-{attempt.finding.code}.step-alone.py", alone.driver.encode()


def _certificate(path: str, number: int, attempt: Attempt) -> tuple[str, bytes]:
    """The name and the content of a file."""
    content = json.dumps(certificate.of(path, attempt), indent=2) + "\n"
    return f"{stem(path)}-{number}-{attempt.finding.code}.json", content.encode()


def stem(path: str) -> str:
    """What the names of a file's certificates begin with; no two files have the same.

    It is the path from the current folder. Where something in it has to be left out or put otherwise, or
    differs in case only from another on some systems, a digest of the path tells it from others.
    """
    path = os.path.relpath(path)
    if len(path) <= _LONGEST and _PLAIN.fullmatch(path):
        return path
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:20]
    readable = re.sub(r"[^\w.]+", "-", path, flags=re.ASCII)[-_LONGEST:].strip("-.")
    return f"{readable}-{digest}" if readable else digest


def _is_about(path: str, name: str) -> bool:
    """Whether ``name`` is that of a certificate of the file at ``path``."""
    return (
        re.fullmatch(re.escape(stem(path)) + r"-\d{1,9}-[A-Za-z_][\w-]*(\.json|\.step-alone\.py)", name)
        is not None
    )
