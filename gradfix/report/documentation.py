"""The documentation of a codemod, which is a docstring, as other programs show it."""

from __future__ import annotations

import re
import textwrap
from itertools import groupby

_TITLES = re.compile(
    r"^(Preconditions?|When not to fix it|By hand|Effect|Severity|Clause)\b", flags=re.MULTILINE
)


def in_markdown(documentation: str) -> str:
    """A docstring as Markdown: indented blocks are fenced, and the titles of paragraphs are bold."""
    paragraphs = re.split(r"\n{2,}", documentation.strip())
    blocks = groupby(paragraphs, lambda paragraph: paragraph.startswith("    "))
    return "\n\n".join(_block("\n\n".join(block), code) for code, block in blocks) + "\n"


def _block(text: str, code: bool) -> str:
    return f"```text\n{textwrap.dedent(text)}\n```" if code else _TITLES.sub(r"**\1**", text)


def first_paragraph(documentation: str, longest: int) -> str:
    """What is wrong, on one line, and whole sentences alone if it has more than ``longest`` characters."""
    text = " ".join(documentation.split("\n\n")[0].split())
    if len(text) <= longest:
        return text
    return text[: text.rfind(". ", 0, longest) + 1] or text[:longest]
