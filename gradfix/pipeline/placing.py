"""The location of a finding: where its fix is made."""

from __future__ import annotations

import ast

from gradfix.core.codemod import Finding, Fix, InsertStatement, MoveStatement, Note
from gradfix.core.span import Span

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def placed(finding: Finding, fix: Fix, tree: ast.Module) -> Finding:
    """``finding``, at the place of an edit if it stands in a function of which ``fix`` touches nothing.

    That is where a person looks for what is to be done, and where a comment silences it for one caller.
    """
    touched = [span for edit in fix.edits for span in spans_of(edit)]
    home = _function(tree, finding.span)
    if not touched or any(_function(tree, span) is home for span in touched):
        return finding
    shown = next(
        (note.span for note in finding.notes if any(_beside(note.span, span) for span in touched)), None
    )
    if shown is not None:
        return finding._replace(span=shown)
    span = min(touched)
    notes = (*finding.notes, Note(span, "fix this here"))
    if all(note.span != finding.span for note in finding.notes):
        notes = (Note(finding.span, "this is what goes wrong"), *notes)
    return finding._replace(span=span, notes=notes)


def spans_of(edit: object) -> tuple[Span, ...]:
    """The places that an edit is about."""
    if isinstance(edit, InsertStatement):
        return (edit.anchor,)
    if isinstance(edit, MoveStatement):
        return edit.span, edit.anchor
    span = getattr(edit, "span", None)
    return (span,) if isinstance(span, Span) else ()


def _beside(one: Span, other: Span) -> bool:
    return one.line <= other.end_line and other.line <= one.end_line


def _function(tree: ast.Module, span: Span) -> ast.AST:
    """The innermost function that holds what is at ``span``, or the module."""
    found: ast.AST = tree
    work: list[ast.AST] = [tree]
    while work:
        node = work.pop()
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.stmt) and inner.lineno <= span.line <= (inner.end_lineno or 0):
                found = inner if isinstance(inner, FUNCTIONS) else found
                work.append(inner)
            elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                work.append(inner)
    return found
