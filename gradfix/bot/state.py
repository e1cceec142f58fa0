"""The bot's state, without a database: in branch names, commits and pull request bodies.

- The **branch** says which group of rewrites it is: ``gradfix/undetached-fake``.
- The **commit** carries one trailer for each rewrite, ``Gradfix-Key``, and last a ``Gradfix-Seal``: a digest
  of everything else in the commit. A commit whose seal does not fit was made or changed by somebody else. The
  seal is no signature: who forges one gives the bot leave to rebuild that branch, and nothing more.
- The **body** of the pull request ends with a marker, an HTML comment with the keys, and digests of the title
  and the body as the bot wrote them: where they do not fit, a person has edited, and the bot leaves it so.

A **key** names a rewrite by the codemod, the path and the code, without line numbers: it survives changes
elsewhere in the file, and a person's no outlives them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradfix.core.codemod import Finding
from gradfix.project.source import Source

PREFIX = "gradfix/"
"""All branches of the bot begin so, and it touches no others."""

_KEY = re.compile(r"[0-9a-f]{16}")
_TRAILER = re.compile(r"^Gradfix-Key: ([0-9a-f]{16}) ([a-z0-9-]{1,80}) (\"[\x20-\x7e]*\")$", re.MULTILINE)
_SEAL = re.compile(rb"\nGradfix-Seal: ([0-9a-f]{64})\n\Z")
_MARKER = re.compile(r"<!-- gradfix:(\{[^<>]*\}) -->")


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A rewrite's identity."""

    digest: str
    codemod: str
    path: str

    @classmethod
    def of(cls, finding: Finding, source: Source, path: str) -> Key:
        """The key of a rewrite for ``finding`` in ``source``, the file at ``path`` of the repository."""
        lines = source.lines[finding.span.line - 1 : finding.span.end_line]
        snippet = " ".join(" ".join(lines).split())
        material = "\0".join((finding.code, path, snippet)).encode("utf-8", "surrogatepass")
        return cls(hashlib.sha256(material).hexdigest()[:16], finding.code, path)


# ---------------------------------------------------------------------------- branches


def branch_of(group: str) -> str:
    """The branch for a group: a codemod's name, a path, or ``all``.

    A name that could mean anything else to git becomes a slug with a digest.
    """
    if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", group) and len(group) <= 80:
        return PREFIX + group
    digest = hashlib.sha256(group.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    slug = re.sub(r"[^a-z0-9]+", "-", group.lower()).strip("-")[-60:].strip("-") or "file"
    return f"{PREFIX}{slug}-{digest}"


# ---------------------------------------------------------------------------- commits


def trailers(keys: Iterable[Key]) -> str:
    """The lines for ``keys`` at the end of a commit's message."""
    return "".join(f"Gradfix-Key: {key.digest} {key.codemod} {_inert(key.path)}\n" for key in sorted(keys))


def seal(commit: bytes) -> bytes:
    """The commit object ``commit``, whose message ends with a newline, with its seal as the last trailer."""
    return commit + b"Gradfix-Seal: " + hashlib.sha256(commit).hexdigest().encode() + b"\n"


def is_sealed(commit: bytes) -> bool:
    """Whether the commit object is exactly as the bot has made it."""
    match = _SEAL.search(commit)
    return match is not None and hashlib.sha256(commit[: match.start() + 1]).hexdigest().encode() == match[1]


def keys_in(commit: bytes) -> tuple[Key, ...]:
    """The keys in the trailers of a commit object."""
    text = commit.decode("utf-8", "replace")
    return tuple(Key(match[1], match[2], json.loads(match[3])) for match in _TRAILER.finditer(text))


# ---------------------------------------------------------------------------- pull requests


@dataclass(frozen=True, slots=True)
class Marker:
    """What the body of a pull request says to the bot."""

    keys: tuple[Key, ...] = ()
    title: str = ""
    """A digest of the title as the bot wrote it."""
    body: str = ""
    """A digest of the body as the bot wrote it, without the marker."""
    facts: str = ""
    """A digest of what the body is about. Another run of the proof words some of it differently (a difference
    of 1e-7, a version), which is no reason to edit."""
    settled: bool = field(default=False)
    """Whether the bot itself has closed the pull request: the base branch has no such mistake any more."""
    unlabelled: bool = field(default=False)
    """Whether the labels of a new pull request are still to be set."""

    def written(self) -> str:
        """The marker as an HTML comment."""
        content = {
            "keys": [[key.digest, key.codemod, key.path] for key in sorted(self.keys)],
            "title": self.title,
            "body": self.body,
            "facts": self.facts,
            **({"settled": True} if self.settled else {}),
            **({"unlabelled": True} if self.unlabelled else {}),
        }
        return f"<!-- gradfix:{_inert(content)} -->"


def _inert(content: object) -> str:
    """``content`` as ASCII JSON in which nothing ends a comment, or means anything to a forge.

    A commit's message is searched for names and numbers as well. (JSON has these characters in strings only.)
    """
    text = json.dumps(content, separators=(",", ":"))
    return re.sub(r"[<>@#&!`~%$*-]", lambda match: f"\\u{ord(match[0]):04x}", text)


def marked(title: str, body: str, keys: Iterable[Key], facts: str) -> str:
    """``body`` with its marker."""
    marker = Marker(tuple(keys), digest_of(title), digest_of(body), facts)
    return f"{body.rstrip()}\n\n{marker.written()}\n"


def settled(body: str) -> str:
    """``body`` with its marker saying that the bot has closed it."""
    marker, text = parsed(body)
    return f"{text}\n\n{replace(marker or Marker(), settled=True).written()}\n"


def unlabelled(body: str) -> str:
    """``body`` with its marker saying that labels are still to be set."""
    marker, text = parsed(body)
    return f"{text}\n\n{replace(marker or Marker(), unlabelled=True).written()}\n"


def parsed(body: str) -> tuple[Marker | None, str]:
    """The marker in ``body``, the last if there are several, and the body without it."""
    found = list(_MARKER.finditer(body))
    if not found:
        return None, body
    match = found[-1]
    text = (body[: match.start()] + body[match.end() :]).strip()
    try:
        return _marker(json.loads(match[1])), text
    except (ValueError, TypeError, KeyError):
        return None, body


def _marker(content: Mapping[str, Any]) -> Marker:
    keys = tuple(_key(item) for item in content["keys"])
    title, body, facts = (str(content[name]) for name in ("title", "body", "facts"))
    flags = (content.get(name) is True for name in ("settled", "unlabelled"))
    return Marker(keys, title, body, facts, *flags)


def _key(item: Sequence[object]) -> Key:
    digest, codemod, path = (str(part) for part in item)
    if not _KEY.fullmatch(digest):
        raise ValueError(digest)
    return Key(digest, codemod, path)


def digest_of(text: str) -> str:
    """A digest of what a person reads: forges change line ends and trailing blanks."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").strip().split("\n")]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]
