"""Git as plumbing, in a bare temporary repository: nothing is checked out, nothing of the repository runs.

There is no work tree, so there are no filters, no line end conversion, no submodules and no LFS smudging;
hooks, replacement refs, credential helpers and every configuration file are switched off. Refs are full
names that begin with ``refs/``, paths go through ``-z`` or ``--stdin``, so that none is taken for an option.

The token is in the environment of the three commands that talk to the server, ``fetch``, ``push`` and
``ls-remote``, as a header for that server alone, and nowhere else: not in an argument, a URL or a file.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from gradfix.bot import markdown, secret, state
from gradfix.bot.errors import (
    AnswerLost,
    BotError,
    LostRace,
    Missing,
    NotAllowed,
    RateLimited,
    Unreachable,
    UsageError,
)
from gradfix.bot.secret import ANONYMOUS, Token
from gradfix.project import checkout
from gradfix.project.checkout import Checkout, CheckoutError
from gradfix.project.configuration import ANALYSED
from gradfix.system import programs, scratch

LOCAL_SECONDS = 120.0
REMOTE_SECONDS = 300.0
WAITS = (1.0, 4.0)
"""Seconds between attempts to reach the server."""
REGULAR = ("100644", "100755")
"""The modes of files that may be rewritten: not links (120000), not submodules (160000)."""

BASE = "refs/gradfix/base"
HEADS = "refs/gradfix/heads/"
DEEP = "refs/gradfix/deep/"
HISTORY = 250
"""Commits of a branch that are fetched where it matters what a person has merged into it."""
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PASSED_ON = (
    "PATH",
    "SYSTEMROOT",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
)
"""What git needs of the environment to run and to reach the server; plain HTTP is for this machine only."""
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.symlinks": "false",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "protocol.http.allow": "always",
    "protocol.https.allow": "always",
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "submodule.recurse": "false",
    "transfer.fsckObjects": "true",
}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file in a commit's tree."""

    mode: str
    blob: str
    size: int
    """In bytes; 0 for what is no blob."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository on a server."""

    url: str
    token: Token | None
    """``None`` to fetch without authentication."""
    user: str
    """The name that goes with the token in HTTP's basic authentication."""


class Git:
    """A bare repository in a temporary folder; used as a context manager."""

    def __init__(
        self,
        object_format: str | None = None,
        *,
        seconds: float = REMOTE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``object_format`` is ``sha1`` or ``sha256``; if it is not known, the server is asked.

        ``seconds`` is how long one command may talk to the server.
        """
        self._object_format = object_format
        self._seconds = seconds
        self._sleep = sleep

    def __enter__(self) -> Git:
        self._temporary = scratch.folder()
        self._folder = self._temporary.__enter__()
        self._directory = str(self._folder / "repository.git")
        self._initialised = False
        self._trees: dict[str, dict[str, TreeEntry]] = {}
        self._commits: dict[str, bytes] = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._temporary.__exit__(None, None, None)

    @property
    def folder(self) -> Path:
        """A folder of our own that goes when the repository goes."""
        return self._folder

    # ------------------------------------------------------------------ the server

    def fetch(self, remote: Remote, branch: str, *, whole: bool = False) -> str:
        """Fetch ``branch`` into :data:`BASE` and our own branches below :data:`HEADS`; gives its commit.

        Only the last commit of each and what that is built on are fetched, or, with ``whole``, all that
        they are made of: a server that does not have the base branch itself takes no commit on top of it
        otherwise.
        """
        self._initialise(remote)
        depth = [] if whole else ["--depth=2"]
        refs = [f"+refs/heads/{branch}:{BASE}", f"+refs/heads/{state.PREFIX}*:{HEADS}*"]
        self._fetch(remote, [*depth, "--prune"], refs)
        return self._commit_of(BASE)

    def fetch_heads(self, remote: Remote) -> None:
        """Fetch our own branches from ``remote``, a fork, in the place of those that are there."""
        self._fetch(remote, ["--prune"], [f"+refs/heads/{state.PREFIX}*:{HEADS}*"])

    def fetch_ref(self, remote: Remote, ref: str, target: str) -> str:
        """Fetch one full ``ref`` to ``target``; gives its commit."""
        self._initialise(remote)
        self._fetch(remote, ["--depth=1"], [f"+{ref}:{target}"])
        return self._commit_of(target)

    def deepen(self, remote: Remote, branches: Iterable[str]) -> None:
        """Fetch the last :data:`HISTORY` commits of ``branches``, if no more than two of each are there."""
        if (Path(self._directory) / "shallow").exists():
            refs = [f"+refs/heads/{branch}:{DEEP}{number}" for number, branch in enumerate(branches)]
            self._fetch(remote, [f"--depth={HISTORY}"], refs)

    def _initialise(self, remote: Remote) -> None:
        if self._initialised:
            return
        if self._object_format is None:
            output = self._repeated(remote, "ls-remote", "--end-of-options", remote.url, "HEAD", local=False)
            self._object_format = "sha256" if re.match(rb"[0-9a-f]{64}\t", output) else "sha1"
        # No template: it would bring hooks, and what else an administrator has put there.
        self._run("init", "--quiet", "--bare", "--template=", f"--object-format={self._object_format}")
        self._initialised = True

    def _fetch(self, remote: Remote, options: Sequence[str], refs: Sequence[str]) -> None:
        flags = ["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-gc"]
        self._repeated(remote, "fetch", *flags, *options, "--end-of-options", remote.url, *refs)

    def push(self, remote: Remote, branch: str, commit: str | None, expected: str | None) -> None:
        """Make ``branch``, one of ours, point to ``commit`` on the server, or delete it.

        Args:
            remote: Where.
            branch: Its name begins with our prefix.
            commit: ``None`` deletes the branch.
            expected: Where the branch must point until then; ``None``: it must not exist.

        Raises:
            LostRace: the branch points elsewhere; it is left as it is.
            NotAllowed: the server refuses.
            Unreachable: the server was asked several times, and the branch is still where it was.
        """
        assert branch.startswith(state.PREFIX)
        ref = f"refs/heads/{branch}"
        lease = f"--force-with-lease={ref}:{expected or ''}"
        command = ["push", "--porcelain", "--no-verify", "--no-signed", lease]
        for wait in (*WAITS, None):
            try:
                self._remote(remote, *command, "--end-of-options", remote.url, f"{commit or ''}:{ref}")
                return
            except (AnswerLost, _Rejected) as error:
                # It may have been done nevertheless: git, or what is below it, sends again what it got no
                # answer to, and is then told that the branch is not where it should be.
                now = self.branch_on(remote, branch)
                if now == commit:
                    return
                if now != expected:
                    raise LostRace("the branch was moved by somebody else just now") from None
                if isinstance(error, _Rejected):
                    raise NotAllowed(str(error)) from None
                if wait is None:
                    raise Unreachable(str(error)) from None
                self._sleep(wait)

    def branch_on(self, remote: Remote, branch: str) -> str | None:
        """Where ``branch`` points on the server now."""
        ref = f"refs/heads/{branch}"
        output = self._repeated(remote, "ls-remote", "--end-of-options", remote.url, ref).decode()
        rows = (line.split("\t") for line in output.splitlines() if line.count("\t") == 1)
        return next((oid for oid, name in rows if name == ref and _OID.fullmatch(oid)), None)

    # ------------------------------------------------------------------ reading

    def _commit_of(self, ref: str) -> str:
        """The commit that the full ``ref`` points to."""
        return self._run("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}").decode().strip()

    def heads(self) -> dict[str, str]:
        """Our branches as they were fetched, with their commits."""
        output = self._run("for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", HEADS)
        rows = [line.split(" ", 2) for line in output.decode("utf-8", "surrogateescape").splitlines()]
        return {state.PREFIX + ref.removeprefix(HEADS): oid for oid, kind, ref in rows if kind == "commit"}

    def raw_commit(self, oid: str) -> bytes:
        """The commit object."""
        if oid not in self._commits:
            self._commits[oid] = self._run("cat-file", "commit", oid)
        return self._commits[oid]

    def parents(self, commit: str) -> tuple[str, ...]:
        """The parents of a commit; none of them need be here."""
        head = self.raw_commit(commit).partition(b"\n\n")[0].decode("ascii", "replace")
        return tuple(line.split(" ")[1] for line in head.splitlines() if line.startswith("parent "))

    def has(self, commit: str) -> bool:
        """Whether a commit has been fetched."""
        return commit in self._commits or self._status("cat-file", "-e", f"{commit}^{{commit}}")[0] == 0

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Whether ``commit`` is part of ``of``, as far as its history has been fetched."""
        return self.has(commit) and self._status("merge-base", "--is-ancestor", commit, of)[0] == 0

    def renames(self, before: str, after: str) -> dict[str, str]:
        """Files of the commit ``before`` that git finds under another name in ``after``, with that name."""
        output = self._run("diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--name-status", before, after)
        words = output.decode("utf-8", "surrogateescape").rstrip("\0").split("\0")
        return dict(zip(words[1::3], words[2::3], strict=True))

    def merged(self, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        """What git makes of two versions of a file that was ``base``; ``None`` if they are in conflict."""
        if base == ours or ours == theirs:
            return theirs
        if base == theirs:
            return ours
        names = []
        for name, data in (("ours", ours), ("base", base), ("theirs", theirs)):
            (self._folder / name).write_bytes(data)
            names.append(str(self._folder / name))
        status, out = self._status("merge-file", "-p", "--quiet", *names)
        return out if status == 0 else None

    def tree(self, commit: str) -> dict[str, TreeEntry]:
        """Every file in ``commit``, by its path (bytes that are no UTF-8 as surrogates)."""
        if commit not in self._trees:
            self._trees[commit] = self._read_tree(commit)
        return self._trees[commit]

    def _read_tree(self, commit: str) -> dict[str, TreeEntry]:
        output = self._run("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
        entries = {}
        for row in output.split(b"\0"):
            if row:
                head, _, path = row.partition(b"\t")
                mode, _, blob, size = head.decode().split()
                name = path.decode("utf-8", "surrogateescape")
                entries[name] = TreeEntry(mode, blob, int(size) if size.isdecimal() else 0)
        return entries

    def blobs(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of blobs."""
        wanted = list(dict.fromkeys(oids))
        data = self._run("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in wanted).encode())
        contents, at = {}, 0
        for oid in wanted:
            end = data.index(b"\n", at)
            size = int(data[at:end].split()[2])
            contents[oid] = data[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return contents

    # ------------------------------------------------------------------ making a commit

    def build(self, parent: str, contents: Mapping[str, bytes], message: str, author: str) -> str:
        """A commit on ``parent`` in which the regular files of ``contents`` have these bytes.

        The same arguments always give the same commit: it is dated like its parent.
        """
        entries = self.tree(parent)
        index = {"GIT_INDEX_FILE": str(self._folder / "index")}
        self._run("read-tree", parent, extra=index)
        rows = []
        for path, data in contents.items():
            assert entries[path].mode in REGULAR
            blob = self._run("hash-object", "-w", "-t", "blob", "--stdin", stdin=data).decode().strip()
            rows.append(f"{entries[path].mode} {blob}\t{path}".encode("utf-8", "surrogateescape"))
        self._run("update-index", "-z", "--index-info", stdin=b"\0".join([*rows, b""]), extra=index)
        tree = self._run("write-tree", extra=index).decode().strip()
        who = f"{author} {self._date(parent)}"
        head = f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n"
        commit = f"{head}\n{message.rstrip()}\n".encode()
        sealed = state.seal(commit)
        return self._run("hash-object", "-w", "-t", "commit", "--stdin", stdin=sealed).decode().strip()

    def _date(self, commit: str) -> str:
        head = self.raw_commit(commit).split(b"\n\n", 1)[0]
        match = re.search(rb"^committer .*> (\d+ [+-]\d{4})$", head, re.MULTILINE)
        return match[1].decode() if match else "0 +0000"

    # ------------------------------------------------------------------ running git

    def _status(self, *arguments: str) -> tuple[int | None, bytes]:
        """The exit code of a command without the token that may say no, and what it prints."""
        command = ["git", f"--git-dir={self._directory}", *arguments]
        code, out, _ = _call(command, b"", self._environment({}, {}), LOCAL_SECONDS)
        return code, out

    def _run(self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
        """What a command without the token prints.

        Raises:
            BotError: it failed.
        """
        command = ["git", f"--git-dir={self._directory}", *arguments]
        code, out, err = _call(command, stdin, self._environment({}, extra or {}), LOCAL_SECONDS)
        if code != 0:
            raise BotError(f"git {arguments[0]} failed: {_said(err)}")
        return out

    def _repeated(self, remote: Remote, *arguments: str, local: bool = True) -> bytes:
        """What a command prints that only asks the server, and so can be repeated."""
        for wait in WAITS:
            try:
                return self._remote(remote, *arguments, local=local)
            except AnswerLost:
                self._sleep(wait)
        try:
            return self._remote(remote, *arguments, local=local)
        except AnswerLost as error:
            raise Unreachable(str(error)) from None

    def _remote(self, remote: Remote, *arguments: str, local: bool = True) -> bytes:
        """What a command that talks to the server prints."""
        key = f"http.{remote.url}.extraHeader"
        # The empty value first takes away whatever a configuration may have put there.
        settings = [(key, "")]
        if remote.token is not None:
            settings.append((key, f"Authorization: {remote.token.basic(remote.user)}"))
        command = ["git", *([f"--git-dir={self._directory}"] if local else []), *arguments]
        environment = self._environment(settings, {})
        code, out, err = _call(command, b"", environment, self._seconds, self._folder)
        if code != 0:
            raise _failure(arguments[0], out, err, remote)
        return out

    def _environment(
        self, settings: Mapping[str, str] | Sequence[tuple[str, str]], extra: Mapping[str, str]
    ) -> dict[str, str]:
        added = list(settings.items()) if isinstance(settings, Mapping) else list(settings)
        pairs = [*_SETTINGS.items(), *added]
        numbered = {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in enumerate(pairs)}
        numbered |= {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(pairs)}
        return {
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            "HOME": str(self._folder),  # No .netrc, no configuration.
            "LC_ALL": "C.UTF-8",
            "GIT_ASKPASS": "false",
            "GIT_CONFIG_COUNT": str(len(pairs)),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(self._folder),
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            **numbered,
            **extra,
        }


def _call(
    command: Sequence[str],
    stdin: bytes,
    environment: Mapping[str, str],
    seconds: float,
    folder: Path | None = None,
) -> tuple[int | None, bytes, bytes]:
    """Exit code (``None``: it took too long and was ended), standard output and standard error."""
    git = programs.find(command[0])
    if git is None:
        raise UsageError(f"there is no {command[0]}")
    try:
        process = subprocess.Popen(
            [git, *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,  # Git has children, which have to end with it.
        )
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror}") from None
    try:
        out, err = process.communicate(stdin, timeout=seconds)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        return None, b"", b"it took too long"
    finally:
        if process.poll() is None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class _Rejected(BotError):
    """A push was refused: by the lease, by a protection, or since the branch has moved."""


_STATUS = re.compile(r"(?:returned error: |HTTP )(\d{3})")


def _failure(command: str, out: bytes, err: bytes, remote: Remote) -> BotError:
    """What it means that a command that talks to the server failed."""
    output = err.decode("utf-8", "replace")
    said = secret.redacted(_said(err))
    rejected = [line for line in out.decode("utf-8", "replace").splitlines() if line.startswith("!\t")]
    if command == "push" and rejected:
        reason = rejected[0].split("\t")[-1]
        return _Rejected(secret.redacted(f"the server refuses the push: {markdown.one_line(reason, 200)}"))
    statuses = [int(status) for status in _STATUS.findall(output)]
    if 429 in statuses:
        return RateLimited("the server asks git to come back later")
    if 401 in statuses or 403 in statuses or "Authentication failed" in output or "could not read" in output:
        how = "with this token" if remote.token is not None else f"({ANONYMOUS})"
        return NotAllowed(f"the server does not let git {command} {how}")
    if 404 in statuses or "couldn't find remote ref" in output or "not found" in output.lower():
        return Missing(f"git {command}: {said}")
    return AnswerLost(f"git {command}: {said}")


def _said(err: bytes) -> str:
    """The line of git's complaint that says most."""
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return markdown.one_line((fatal or lines or ["no reason was given"])[0], 200)


# ---------------------------------------------------------------------------- a checkout, in `plan`


def checkout_of(folder: str) -> Checkout:
    """The innermost checkout that ``folder`` lies in.

    Raises:
        UsageError: there is none.
    """
    with _usage_errors():
        found = next(checkout.around(os.path.realpath(folder)), None)
    if found is None:
        raise UsageError(f"{folder} is not in a git repository")
    return found


def head_of(where: Checkout) -> str:
    """The commit that is checked out."""
    return _ask(where, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()


def files_of(where: Checkout, commit: str) -> dict[str, TreeEntry]:
    """Every file in ``commit``, by its path."""
    output = _ask(where, "ls-tree", "-r", "-z", "--full-tree", commit)
    rows = [row.partition(b"\t") for row in output.split(b"\0") if row]
    return {
        path.decode("utf-8", "surrogateescape"): TreeEntry(
            head.split()[0].decode(), head.split()[2].decode(), 0
        )
        for head, _, path in rows
    }


def uncommitted(where: Checkout) -> list[str]:
    """The Python files and notebooks that git knows and that are not as they are in the commit."""
    flags = ["--porcelain=v1", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames"]
    wanted = [f"*{ending}" for ending in ANALYSED]
    output = _ask(where, "status", *flags, "--", *wanted).decode("utf-8", "surrogateescape")
    return [row[3:] for row in output.split("\0") if row]


def content_of(where: Checkout, blob: str) -> bytes:
    """The content of a blob."""
    return _ask(where, "cat-file", "blob", blob)


def _ask(where: Checkout, *arguments: str) -> bytes:
    with _usage_errors():
        return where.ask(*arguments)


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except CheckoutError as error:
        raise UsageError(markdown.one_line(str(error), 200)) from None


def blob_id(data: bytes, like: str) -> str:
    """The name that git gives to a blob, in the hash function of the object name ``like``."""
    import hashlib

    material = b"blob %d\0" % len(data) + data
    digest = hashlib.sha256(material) if len(like) == 64 else hashlib.sha1(material, usedforsecurity=False)
    return digest.hexdigest()


def is_safe(path: str) -> bool:
    """Whether ``path`` of a tree stays below the folder that it is written to, on any system."""
    parts = path.split("/")
    return not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts) and not re.search(
        r"[\\:\x00-\x1f]", path
    )


def export(git: Git, commit: str, folder: Path, wanted: Iterable[str]) -> dict[str, TreeEntry]:
    """Write the regular files named in ``wanted`` as they are in ``commit`` below ``folder``."""
    entries = git.tree(commit)
    chosen = {path: entries[path] for path in wanted if entries[path].mode in REGULAR and is_safe(path)}
    contents = git.blobs(entry.blob for entry in chosen.values())
    for path, entry in chosen.items():
        target = os.path.join(os.fsencode(folder), path.encode("utf-8", "surrogateescape"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as stream:
            stream.write(contents[entry.blob])
    return entries
