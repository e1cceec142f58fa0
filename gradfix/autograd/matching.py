"""``match`` statements, lowered to the equivalent chain of ``if``."""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(maxsize=256)
def as_if(node: ast.Match) -> list[ast.stmt]:
    """The statements that a ``match`` stands for: what it binds once, then one ``if`` for each case.

    Of a pattern that is neither a value, a class nor anything at all, nothing can be said: its test is one
    of an unknown value.
    """
    first: list[ast.stmt] = []
    subject = node.subject
    if not isinstance(subject, (ast.Name, ast.Attribute, ast.Constant)):
        # No program can write such a name.
        held = ast.Name("match subject", ast.Store())
        first.append(ast.copy_location(ast.Assign([held], subject), subject))
        subject = ast.Name(held.id, ast.Load())
    otherwise: list[ast.stmt] = []
    for case in reversed(node.cases):
        binding = _bound(case.pattern, subject)
        test = _test(case.pattern, subject)
        if case.guard is not None:
            # A guard is asked with the names of its pattern: they are bound whatever it says.
            asked = ast.If(case.guard, case.body, otherwise)
            body = [*binding, ast.copy_location(asked, case.guard)]
        else:
            body = [*binding, *case.body]
        if test is None and case.guard is None:
            otherwise = body
            continue
        chosen = ast.If(test or ast.Constant(True), body, otherwise)
        ast.copy_location(chosen, case.pattern)
        chosen.end_lineno, chosen.end_col_offset = node.end_lineno, node.end_col_offset
        otherwise = [chosen]
    made = [*first, *otherwise]
    for statement in made:
        ast.fix_missing_locations(statement)
    return made


def _test(pattern: ast.pattern, subject: ast.expr) -> ast.expr | None:
    """What asks whether a pattern fits; None for one that always does."""
    match pattern:
        case ast.MatchValue(value):
            return _located(ast.Compare(subject, [ast.Eq()], [value]), pattern)
        case ast.MatchSingleton(value):
            return _located(ast.Compare(subject, [ast.Is()], [ast.Constant(value)]), pattern)
        case ast.MatchAs(None):
            return None
        case ast.MatchAs(inner):
            return _test(inner, subject)  # type: ignore[arg-type]
        case ast.MatchOr(patterns):
            if all(isinstance(one, ast.MatchValue) for one in patterns):
                values = ast.Tuple([one.value for one in patterns], ast.Load())  # type: ignore[attr-defined]
                return _located(ast.Compare(subject, [ast.In()], [values]), pattern)
            tests = [_test(one, subject) for one in patterns]
            known = [test for test in tests if test is not None]
            return _located(ast.BoolOp(ast.Or(), known), pattern) if len(known) == len(tests) else None
        case ast.MatchClass(cls, [], []):
            return _is_of(subject, cls, pattern)
        case _:
            return _is_of(subject, ast.Attribute(subject, "__match_args__", ast.Load()), pattern)


def _is_of(subject: ast.expr, cls: ast.expr, pattern: ast.pattern) -> ast.expr:
    return _located(ast.Call(ast.Name("isinstance", ast.Load()), [subject, cls], []), pattern)


def _located(expression: ast.expr, pattern: ast.pattern) -> ast.expr:
    return ast.copy_location(expression, pattern)


def _bound(pattern: ast.pattern, subject: ast.expr) -> list[ast.stmt]:
    """What a pattern binds: the whole subject, or the items of a sequence."""
    made: list[ast.stmt] = []
    if isinstance(pattern, ast.MatchAs) and pattern.name is not None:
        target = ast.Name(pattern.name, ast.Store())
        made = [ast.copy_location(ast.Assign([target], subject), pattern)]
    elif isinstance(pattern, ast.MatchSequence) and all(
        isinstance(item, ast.MatchAs) and item.pattern is None for item in pattern.patterns
    ):
        names: list[ast.expr] = [
            ast.Name(item.name or "_", ast.Store())  # type: ignore[attr-defined]
            for item in pattern.patterns
        ]
        if names:
            made = [ast.copy_location(ast.Assign([ast.Tuple(names, ast.Store())], subject), pattern)]
    return made
