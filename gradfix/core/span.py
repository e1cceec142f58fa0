"""Stretches of source."""

from __future__ import annotations

import ast
from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of source in the terms of :mod:`ast`.

    Lines count from 1, columns from 0 **in UTF-8 bytes**; the end is exclusive.
    """

    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def of(cls, node: ast.expr | ast.stmt | ast.keyword) -> Span:
        """The span of an ``ast`` node (decorators are not part of a statement's span)."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return cls(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def contains(self, other: Span) -> bool:
        """Whether ``other`` lies within this span."""
        return (self.line, self.column) <= (other.line, other.column) and (
            other.end_line,
            other.end_column,
        ) <= (self.end_line, self.end_column)
