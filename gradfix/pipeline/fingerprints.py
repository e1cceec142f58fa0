"""What tells findings apart, and stays the same when they move within their file.

Baselines go by it, and services that compare reports of two commits, to tell a new finding from a known one.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from gradfix.project.source import split_lines


class Identity(NamedTuple):
    """What a finding is recognised by in its file: nothing of it changes with what stands elsewhere.

    There is no line's number in it, and no message, for that may name one. Equal findings on equal lines of
    one function are the same; there may be several.
    """

    code: str
    function: str
    """The qualified name of the function around it; empty in the module itself."""
    line: str
    """The text of its line, with a blank for all that is between its words."""


class Lines:
    """The lines of a file, by which its findings are recognised."""

    def __init__(self, lines: Sequence[str], tree: ast.Module | None) -> None:
        self._lines = lines
        self._functions = [] if tree is None else list(_functions(tree.body, ""))

    def identity(self, code: str, row: int) -> Identity | None:
        """What a finding of the codemod ``code`` at the line ``row`` is recognised by.

        ``None`` if there is no such line.
        """
        if not 0 < row <= len(self._lines):
            return None
        around = [name for first, last, name in self._functions if first <= row <= last]
        return Identity(code, around[-1] if around else "", " ".join(self._lines[row - 1].split()))


def _functions(body: Sequence[ast.AST], outer: str) -> Iterator[tuple[int, int, str]]:
    """First line, last line and qualified name of each function, outer ones before inner ones."""
    for node in body:
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        name = f"{outer}{node.name}" if named else outer  # type: ignore[attr-defined]
        if named and not isinstance(node, ast.ClassDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])  # type: ignore[attr-defined]
            yield first, node.end_lineno or first, name  # type: ignore[attr-defined]
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _functions(list(ast.iter_child_nodes(node)), f"{name}." if named else outer)


@lru_cache(maxsize=4)
def lines_of(text: str) -> Lines:
    """The lines of ``text``."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    return Lines(split_lines(text), tree)


class Fingerprints:
    """Names findings, in the order of a report."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()

    def of(self, code: str, row: int, message: str, text: str, path: str) -> str:
        """A digest of where a finding is (``path``), and of what it is recognised by.

        Of those that are the same it is the first, the second and so on. Of a problem, which has no ``text``,
        the message counts.
        """
        identity = lines_of(text).identity(code, row) if text else None
        known = (path, *(identity or (code, message)))
        material = "\0".join((*known, str(self._seen[known]))).encode("utf-8", "surrogatepass")
        self._seen[known] += 1
        return hashlib.sha256(material).hexdigest()
