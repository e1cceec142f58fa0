"""Markdown that says what a text says and nothing else, whatever the text is.

What comes from a repository (paths, lines of code, messages with code in them) may be written by anybody. On
a forge, text acts: ``@name`` notifies, ``#12`` and ``owner/repo#12`` leave a trace elsewhere, ``fixes #12``
closes, a line that begins with ``/merge`` is an order to GitLab, and characters that are not seen reorder
those that are. So untrusted text is put into code wherever that will do, where forges look for none of this;
elsewhere it is escaped and its references are broken by a word joiner. Characters that are invisible, that
steer, or that reorder are shown as their code points.
"""

from __future__ import annotations

import re

from gradfix.system.printable import visible

JOINER = "\N{WORD JOINER}"

# An underscore within a word is only an underscore.
_SPECIAL = re.compile(r"([\\`*{}\[\]<>#~|&$^!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
# What begins a list, a heading or a quotation, or an order to GitLab, at the beginning of a line.
_OPENING = re.compile(r"^(?=[-+=/:])|^(\d+)(?=[.)])")
# What begins a reference on one of the forges: @name, #1, !1, %milestone, ~label, &epic, $snippet, ^alert,
# *iteration.
_REFERENCE = re.compile(r"([@#!%~&$^*])(?=[\w\"({\[:])")
_LINK = re.compile(r"(?i)(:)(?=//)|(?<![\w])(www|mailto|xmpp)(?=[.:])|\b(GH)(?=-\d)")
_HASH = re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{7,}(?![A-Za-z0-9])")
_PIECE = re.compile(r"(.{6})(?=.)")
_EMOJI = re.compile(r":(?=[\w+\-]+:)")


def one_line(text: str, limit: int = 300) -> str:
    """``text`` on one line, cut at ``limit`` characters."""
    text = " ".join(visible(text).split())
    if len(text) <= limit:
        return text
    cut = text[:limit].rfind(" ")
    # At the end of a word, unless that would leave little.
    return text[: cut if cut > limit // 2 else limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def prose(text: str, limit: int = 1000) -> str:
    """``text`` as Markdown that reads as it is written; pieces in backticks become code.

    Nothing in it is markup, mentions anybody, refers to anything or is a link.
    """
    pieces = one_line(text, limit).split("`")
    if len(pieces) % 2 == 0:  # An odd number of backticks: which of them belong together is not known.
        return code("`".join(pieces))
    shown = [code(piece) if number % 2 else _inert(piece) for number, piece in enumerate(pieces)]
    return "".join(shown)


def _inert(text: str) -> str:
    return _OPENING.sub(r"\1\\", _SPECIAL.sub(r"\\\1", unlinked(text)))


def unlinked(text: str) -> str:
    """``text`` with references and links broken by word joiners; for places that take no Markdown.

    Commit messages and titles are searched for them too.
    """
    text = _REFERENCE.sub(rf"\1{JOINER}", text)
    text = _LINK.sub(lambda match: match[0] + JOINER, text)
    # What looks like the name of a commit becomes a link to it.
    text = _HASH.sub(lambda match: _PIECE.sub(rf"\1{JOINER}", match[0]), text)
    return _EMOJI.sub(f":{JOINER}", text)


def plain(text: str, limit: int = 300) -> str:
    """``text`` for a title or a commit message: one line, no references, no backticks."""
    line = unlinked(one_line(text, limit).replace("`", ""))
    return line.lstrip("/-") or "(empty)"


def code(text: str, limit: int = 300) -> str:
    """``text`` as a code span."""
    text = one_line(text, limit)
    if not text:
        return "` `"
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(markdown: str) -> str:
    """Markdown for a cell of a table: there a bar ends the cell even within code."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\|", r"\1\\|", markdown)


def fence(text: str, language: str = "") -> str:
    """``text`` as a fenced block that nothing in it can close."""
    text = visible(text).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def label(text: str, limit: int = 60) -> str:
    """``text`` as a quoted label of Mermaid: what its grammar could read is written as an entity."""
    text = one_line(text, limit)
    inert = re.compile(r"[^A-Za-z0-9 _.,:()\[\]=+/-]")
    return '"' + inert.sub(lambda match: f"#{ord(match[0])};", text) + '"'
