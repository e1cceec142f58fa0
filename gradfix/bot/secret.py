"""The token: where it comes from, and how it is kept out of everything that is printed."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from gradfix.bot.errors import UsageError
from gradfix.system import files

VARIABLE = "GRADFIX_TOKEN"
FILE_VARIABLE = "GRADFIX_TOKEN_FILE"
LONGEST = 64 << 10
"""Bytes of a file with a token; a longer one holds something else."""
KNOWN_VARIABLES = (
    VARIABLE,
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITLAB_TOKEN",
    "GITEA_TOKEN",
    "FORGEJO_TOKEN",
)
"""Where forges' own tools keep a token that can write."""

HIDDEN = "***"
ANONYMOUS = "there is no token, so it was asked as anybody can"


_known: list[Token] = []
"""Every token of this process."""


class Token:
    """A secret that is only revealed by an explicit call."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            # It is going to be part of a header line.
            raise UsageError("the token is empty or holds characters that no token has")
        self._value = value
        _known.append(self)

    def __repr__(self) -> str:
        return f"Token({HIDDEN})"

    def reveal(self) -> str:
        """The secret itself, for the header of a request."""
        return self._value

    def basic(self, user: str) -> str:
        """The value of an ``Authorization`` header for git over HTTP."""
        return "Basic " + base64.b64encode(f"{user}:{self._value}".encode()).decode()

    def redact(self, text: str, users: Sequence[str] = ("x-access-token", "oauth2")) -> str:
        """``text`` with every form in which the secret travels replaced by stars."""
        encoded = [self.basic(user).removeprefix("Basic ") for user in users]
        for form in (self._value, quote(self._value, safe=""), *encoded, *(e.rstrip("=") for e in encoded)):
            text = text.replace(form, HIDDEN)
        return text


def redacted(text: str) -> str:
    """``text`` without any secret that this process knows."""
    for token in _known:
        text = token.redact(text)
    return text


def find_token(environment: Mapping[str, str], file: str | None = None) -> Token:
    """The token, where there has to be one; see :func:`token_if_any`.

    Raises:
        UsageError: there is none, or the file cannot be read.
    """
    token = token_if_any(environment, file)
    if token is None:
        raise UsageError(f"there is no token: set {VARIABLE}, or {FILE_VARIABLE} or --token-file to a file")
    return token


def token_if_any(environment: Mapping[str, str], file: str | None = None) -> Token | None:
    """The token from ``file``, or from the environment: ``GRADFIX_TOKEN_FILE``, else ``GRADFIX_TOKEN``.

    There is no option that takes the token itself: what stands on a command line, every process can read.

    Raises:
        UsageError: the file that is named cannot be read, or others than its user can read it too.
    """
    path = file or environment.get(FILE_VARIABLE)
    if path:
        return Token(_private(path))
    value = environment.get(VARIABLE, "").strip()
    return Token(value) if value else None


def _private(path: str) -> str:
    """The text of a file that nobody but its user, and the system, can read or write."""
    try:
        descriptor, status = files.open_regular(path)
        with os.fdopen(descriptor, "rb") as stream:
            if os.name == "posix" and (reason := _shared(status)):
                raise UsageError(f"the token file {path} {reason}")
            text = stream.read(LONGEST + 1)
        if len(text) > LONGEST:
            raise UsageError(f"the token file {path} is too large to be read")
        return text.decode("ascii").strip()
    except UnicodeDecodeError:
        raise UsageError(f"the token file {path} cannot be read: it is not text") from None
    except OSError as error:
        raise UsageError(f"the token file {path} {files.describe_error(error)}") from None


def _shared(status: os.stat_result) -> str:
    """Why a file is not its user's alone; empty if it is.

    To the group of root a file may be open: systemd hands out its credentials so.
    """
    if status.st_uid not in (os.geteuid(), 0):
        return "belongs to somebody else: make a copy that is yours, with chmod 600"
    others = 0o007 if status.st_uid == status.st_gid == 0 else 0o077
    if status.st_mode & others or status.st_mode & 0o020:
        mode = f"{stat.S_IMODE(status.st_mode):03o}"
        return f"can be read or changed by others (mode {mode}): chmod 600 keeps it to you"
    return ""


def in_the_way(environment: Mapping[str, str]) -> list[str]:
    """The variables that hold a token; ``plan`` does not start beside one.

    The code that it runs belongs to the repository, and a process can read the environment with which its
    parent was started even after the parent has removed the variable.
    """
    return [name for name in (*KNOWN_VARIABLES, FILE_VARIABLE) if environment.get(name)]
