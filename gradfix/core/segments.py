"""Exact segments of a source text by :class:`~gradfix.core.span.Span`, and code built from them.

Codemods use this while they only look, so nothing here imports libcst.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate
from operator import add

from gradfix.core.span import Span

# The line ends of CPython's tokenizer. `str.splitlines` would also split at form feeds and others.
_LINE = re.compile(rb"[^\r\n]*(\r\n|\r|\n|\Z)")
_WORD = re.compile(rb"\w|[^\x00-\x7f]")

# Expressions that an attribute access may follow as they are; of the constants all but the numbers,
# since `1.detach` starts with a float.
_PRIMARIES = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.JoinedStr,
)


class Lines:
    """A source text with its line starts, for many look-ups by ``ast`` position.

    ``text`` is decoded source without a byte order mark, with the newlines of the file.
    """

    __slots__ = ("_ends", "_starts", "data")

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        """The text in UTF-8, the unit in which ``ast`` counts columns."""
        if b"\r" not in self.data:
            # By far the most, and four times as fast.
            sizes = [len(line) for line in self.data.split(b"\n")]
            self._starts = [0, *accumulate(size + 1 for size in sizes[:-1])]
            self._ends = list(map(add, self._starts, sizes))
            return
        self._starts, self._ends = [], []
        for line in _LINE.finditer(self.data):
            self._starts.append(line.start())
            self._ends.append(line.start(1))
            if not line[1]:
                break

    def offset(self, line: int, column: int) -> int:
        """The byte offset of a position; ``ValueError`` if the text has no such position."""
        if not 1 <= line <= len(self._starts):
            raise ValueError(f"there is no line {line}")
        start, end = self._starts[line - 1], self._ends[line - 1]
        if not 0 <= column <= end - start:
            raise ValueError(f"line {line} has no column {column}")
        return start + column

    def extent(self, span: Span) -> tuple[int, int]:
        """The byte offsets of a span's start and end; ``ValueError`` if it lies outside of the text."""
        return self.offset(span.line, span.column), self.offset(span.end_line, span.end_column)

    def segment(self, span: Span) -> str:
        """The text within a span; ``ValueError`` if it lies outside of the text."""
        start, end = self.extent(span)
        return self.data[start:end].decode()

    def end(self, line: int) -> int:
        """The byte offset at which a line ends, before its newline."""
        end: int = self._ends[line - 1]
        return end

    def newline(self, line: int) -> str:
        """What ends a line: ``"\\n"``, ``"\\r\\n"``, ``"\\r"``, or ``""`` for an unended last line."""
        end = self._ends[line - 1]
        following = self._starts[line] if line < len(self._starts) else len(self.data)
        return self.data[end:following].decode()


@lru_cache(maxsize=8)
def _lines(text: str) -> Lines:
    return Lines(text)


def replaced_segment(text: str, span: Span, parts: Mapping[Span, str]) -> str:
    """The exact text within ``span``, with other code in the place of those ``parts`` that lie within it."""
    lines = _lines(text)
    start, end = lines.extent(span)
    data = lines.data[start:end]
    for part in sorted(filter(span.contains, parts), reverse=True):
        first, last = lines.extent(part)
        data = data[: first - start] + parts[part].encode() + data[last - start :]
    return data.decode()


def call_method(source: str, node: ast.expr, method: str, arguments: str = "") -> str:
    """Code that calls ``method`` on the expression ``node`` whose text is ``source``.

    Parentheses are added only where the call would otherwise bind to a part of the expression:
    ``x.detach()``, ``net(z).detach()``, ``(a + b).detach()``.
    """
    if not (_is_primary(node) or _is_parenthesised(source)):
        source = f"({source})"
    return f"{source}.{method}({arguments})"


def _is_primary(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) not in (int, float, complex)
    return isinstance(node, _PRIMARIES)


def _is_parenthesised(source: str) -> bool:
    """Whether one pair of parentheses encloses all of ``source`` (as it does not in ``(a) + (b)``)."""
    if not source.startswith("("):
        return False
    try:
        # After a name the first pair becomes a call's: it is the whole expression or only a part of it.
        called = ast.parse(f"f{source}", mode="eval").body
    except SyntaxError:
        return False
    return isinstance(called, ast.Call)


def has_to_be_enclosed(lines: Lines, extent: tuple[int, int], outermost: ast.expr, code: str) -> bool:
    """Whether ``code`` needs parentheses in the place of the expression with the byte offsets ``extent``.

    That is so where the surrounding operators would bind into it, where it would grow together with
    the word beside it (``return(a, b)``), and where a newline in it would end the statement. ``outermost``
    is the whole expression that the replaced one is a part of.
    """
    data, (start, end) = lines.data, extent
    first, last = lines.extent(Span.of(outermost))
    before, after = data[first:start].decode(), data[end:last].decode()
    plain, safe = (meaning(f"({before}{each}{after}\n)") for each in (code, f"({code})"))
    return (
        bool(_WORD.match(data[start - 1 : start]) or _WORD.match(data[end : end + 1]))
        or (meaning(code) is None and meaning(data[start:end].decode()) is not None)
        or (safe is not None and plain != safe)
    )


def meaning(code: str) -> str | None:
    """What an expression means, for comparison; ``None`` if ``code`` is not one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(code, mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def enclosed(text: str, before: str, after: str = "") -> str:
    """An operand as it is written between ``before`` and ``after``, in parentheses if it needs them there."""
    meant = meaning(f"{before}({text}){after}")
    return text if meant is not None and meaning(f"{before}{text}{after}") == meant else f"({text})"
