"""Edits to new source: one pass over the libcst tree for every fix that can be applied together.

A fix is applied whole or not at all. The story is in :func:`apply_fixes`: resolve every edit against
``ast`` (which statements and expressions are meant, what each fix touches), defer what conflicts,
transform the libcst tree once, and check that what came out is still a program.

Importing this module imports libcst; ``gradfix check`` must not. :mod:`gradfix.core.segments` is for it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from gradfix.core.codemod import (
    Decorate,
    Edit,
    Enclose,
    InsertStatement,
    MoveStatement,
    RemoveArgument,
    RemoveStatement,
    ReplaceExpression,
    ReplaceStatement,
)
from gradfix.core.segments import Lines, has_to_be_enclosed, meaning
from gradfix.core.span import Span
from gradfix.rewriting.tree import NEWLINE, Beside, Code, Extent, Put, Refused, Tree, Work, transform

Gap = tuple[int, int]
"""A place for statements: the number of the block, and the index of the statement that follows."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What became of the fixes: each index is in exactly one of the three tuples."""

    text: str
    """The source with the applied fixes."""
    applied: tuple[int, ...] = ()
    deferred: tuple[int, ...] = ()
    """Fixes that conflict with an applied one; they may be possible in the new text."""
    failed: tuple[tuple[int, str], ...] = ()
    """Fixes that cannot be applied to this text, each with the reason."""


def apply_fixes(text: str, fixes: Sequence[Sequence[Edit]]) -> Rewrite:
    """Apply every fix that can be applied together with the ones before it.

    ``text`` is decoded source without a byte order mark, its newlines as in the file; each fix is the
    edits that it consists of, in terms of ``text``. Never raises for what a fix asks: see
    :class:`Rewrite` for the outcomes.
    """
    if not fixes:
        return Rewrite(text)
    source = _source(text)
    if isinstance(source, str):
        return Rewrite(text, failed=tuple((index, source) for index in range(len(fixes))))
    plans: dict[int, _Plan] = {}
    failed: dict[int, str] = {}
    for index, edits in enumerate(fixes):
        try:
            plans[index] = _resolve(source, edits)
        except Refused as refusal:
            failed[index] = str(refusal)

    accepted, deferred = _compatible(plans)
    try:
        result = _carry_out(source, list(accepted.values()))
    except Refused:
        # One of them is to blame. A fix that it displaced gets its turn as well.
        result, accepted, deferred = source.text, {}, []
        for index, plan in plans.items():
            if any(plan.conflicts_with(other) for other in accepted.values()):
                deferred.append(index)
                continue
            try:
                result = _carry_out(source, [*accepted.values(), plan])
            except Refused as refusal:
                failed[index] = str(refusal)
            else:
                accepted[index] = plan
    return Rewrite(
        source.restore(result) if accepted else text,
        tuple(accepted),
        tuple(deferred),
        tuple(sorted(failed.items())),
    )


# --- What the edits mean -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement of the source and its place in its block."""

    node: ast.stmt
    extent: Extent
    """With its decorators."""
    start: int
    """Where its keyword is: libcst's statement of that position is the same one."""
    gap: Gap
    """The place before it."""
    is_elif: bool
    is_docstring: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """The original program: its text, its ``ast``, and its libcst tree with positions."""

    text: str
    """Always with one newline at the end, so that no edit has to care for a last line without one."""
    tail: str
    """What stands in the place of that newline in the file: nothing, or blank lines as well."""
    lines: Lines
    compiles: bool
    """Whether it is a whole program. (A notebook with ``await`` at its top level parses only.)"""
    statements: dict[Extent, _Statement]
    """By the extent of their ``ast`` span."""
    expressions: dict[Extent, tuple[ast.expr, ast.expr]]
    """Expressions with the outermost expression that each is a part of."""
    tree: Tree

    def restore(self, result: str) -> str:
        """``result`` with the end that the file has."""
        ending = next(ending for ending in ("\r\n", "\n", "\r", "") if result.endswith(ending))
        return result.removesuffix(ending) + self.tail if result else ""

    def statement(self, span: Span, purpose: str) -> _Statement:
        found = self.statements.get(self._extent(span))
        if found is None:
            raise Refused(f"there is no statement at {_shown(span)} to {purpose}")
        if found.is_elif:
            raise Refused(f"the elif at {_shown(span)} is no statement of its own to {purpose}")
        return found

    def expression(self, span: Span) -> tuple[Extent, ast.expr, ast.expr]:
        extent = self._extent(span)
        if extent not in self.expressions or extent not in self.tree.expressions:
            raise Refused(f"there is no expression at {_shown(span)}")
        return extent, *self.expressions[extent]

    def _extent(self, span: Span) -> Extent:
        try:
            return self.lines.extent(span)
        except ValueError as error:
            raise Refused(f"the position {_shown(span)} is not in the source: {error}") from None


# The fixes of a file are tried one after the other, each on the same text.
@lru_cache(maxsize=2)
def _source(text: str) -> _Source | str:
    """The source, or the reason why it cannot be rewritten."""
    text, tail = _split_tail(text)
    newlines = NEWLINE.findall(tail) or NEWLINE.findall(text)[-1:]
    # libcst does not see a newline in a \r at the very end; what is put after such a line follows \n.
    text += "\r\n" if newlines and newlines[0] == "\r\n" else "\n"
    program = _parsed(text)
    if isinstance(program, str):
        return f"the source does not parse: {program}"
    tree = Tree.parse(text)
    if isinstance(tree, str):
        return tree
    lines = Lines(text)
    return _Source(
        text,
        tail,
        lines,
        _compile_problem(text) is None,
        _index_statements(program, lines),
        _index_expressions(program, lines),
        tree,
    )


def _split_tail(text: str) -> tuple[str, str]:
    """``text`` up to the end of its last line that is not blank, and its newline with what follows.

    That is set aside because libcst can lose one of several blank lines at the end of a file.
    """
    content = len(text.rstrip(" \t\f\r\n"))
    newline = NEWLINE.search(text, content)
    if newline is None or text[:content].endswith("\\"):
        return text, ""
    return text[: newline.start()], text[newline.start() :]


def _shown(span: Span) -> str:
    return f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"


def _parsed(text: str) -> ast.Module | str:
    """The program, or what is wrong with it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the user's own escapes and comparisons
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _first_line(error)


def _compile_problem(text: str) -> str | None:
    """What is wrong with a program that may parse: a ``return`` at its top level, a late ``__future__``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<source>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _first_line(error)
    return None


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _index_statements(program: ast.Module, lines: Lines) -> dict[Extent, _Statement]:
    found: dict[Extent, _Statement] = {}
    blocks = 0
    for owner in ast.walk(program):
        for name, block in ast.iter_fields(owner):
            if not (isinstance(block, list) and block and isinstance(block[0], ast.stmt)):
                continue
            blocks += 1
            for index, node in enumerate(block):
                start, end = lines.extent(Span.of(node))
                is_else = isinstance(owner, ast.If) and name == "orelse"
                found[start, end] = _Statement(
                    node,
                    (_start_with_decorators(node, start, lines), end),
                    start,
                    (blocks, index),
                    is_elif=is_else and lines.data.startswith(b"elif", start),
                    is_docstring=index == 0 and _has_docstring(owner),
                )
    return found


def _start_with_decorators(node: ast.stmt, start: int, lines: Lines) -> int:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.decorator_list:
        return lines.data.rindex(b"@", 0, lines.extent(Span.of(node.decorator_list[0]))[0])
    return start


def _has_docstring(owner: ast.AST) -> bool:
    if not isinstance(owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return ast.get_docstring(owner, clean=False) is not None


def _index_expressions(program: ast.Module, lines: Lines) -> dict[Extent, tuple[ast.expr, ast.expr]]:
    found: dict[Extent, tuple[ast.expr, ast.expr]] = {}
    waiting: list[tuple[ast.AST, ast.expr | None, bool]] = [(program, None, False)]
    while waiting:
        node, outermost, formatted = waiting.pop()
        if isinstance(node, ast.expr):
            outermost = outermost or node
            # Before Python 3.12 positions inside of an f-string can be those of something else.
            # A starred element is no expression that another can replace.
            known = not formatted or _is_at_its_position(node, lines)
            if known and not isinstance(node, ast.Starred):
                found.setdefault(lines.extent(Span.of(node)), (node, outermost))
            formatted = formatted or isinstance(node, ast.JoinedStr)
        if not isinstance(node, ast.pattern):  # whose values are not any expressions
            waiting.extend((child, outermost, formatted) for child in ast.iter_child_nodes(node))
    return found


def _is_at_its_position(node: ast.expr, lines: Lines) -> bool:
    try:
        return meaning(lines.segment(Span.of(node))) == ast.dump(ast.Expression(node))
    except (ValueError, UnicodeDecodeError):
        return False


# --- What a fix does, and what it touches --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Placement:
    """Statements to put beside an anchor: inserted code, or a statement that moves."""

    anchor: _Statement
    where: Literal["before", "after"]
    what: str | _Statement
    newline: str

    @property
    def gap(self) -> Gap:
        block, index = self.anchor.gap
        return block, index + (self.where == "after")


@dataclass(slots=True)
class _Plan:
    """A fix in terms of the source's nodes."""

    replaced: dict[Extent, Code] = field(default_factory=dict)
    arguments: dict[Extent, tuple[Extent, int]] = field(default_factory=dict)
    """By the argument's extent: the call, and the index among its arguments in source order."""
    argument_lists: list[Extent] = field(default_factory=list)
    """From the end of the called expression to the end of the call."""
    removed: dict[Extent, _Statement] = field(default_factory=dict)
    restated: dict[Extent, tuple[_Statement, str]] = field(default_factory=dict)
    moved: dict[Extent, _Statement] = field(default_factory=dict)
    placements: list[_Placement] = field(default_factory=list)

    def conflicts_with(self, other: _Plan) -> bool:
        """Whether the two together are not what each is alone, or depend on which comes first."""
        return (
            _any_overlap(self._touched(), other._touched())
            or not {p.gap for p in self.placements}.isdisjoint(p.gap for p in other.placements)
            or self._unsettles(other)
            or other._unsettles(self)
        )

    def places(self) -> list[Extent]:
        """Everything in or beside which the plan does something."""
        anchors = (placement.anchor.extent for placement in self.placements)
        return [*self.replaced, *self.arguments, *self.removed, *self.restated, *self.moved, *anchors]

    def _touched(self) -> list[Extent]:
        return [*self.replaced, *self.argument_lists, *self.removed, *self.restated, *self.moved]

    def _unsettles(self, other: _Plan) -> bool:
        """Whether a statement that this plan takes away is, or holds, an anchor of the other."""
        return any(
            _contains(gone, placement.anchor.extent)
            for gone in (*self.removed, *self.moved)
            for placement in other.placements
        )


def _overlap(one: Extent, two: Extent) -> bool:
    return one[0] < two[1] and two[0] < one[1]


def _any_overlap(some: Iterable[Extent], others: Sequence[Extent]) -> bool:
    return any(_overlap(one, two) for one in some for two in others)


def _contains(outer: Extent, inner: Extent) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _compatible(plans: dict[int, _Plan]) -> tuple[dict[int, _Plan], list[int]]:
    """The plans that can be carried out together, and the indices of the ones that have to wait."""
    accepted: dict[int, _Plan] = {}
    deferred: list[int] = []
    for index, plan in plans.items():
        if any(plan.conflicts_with(other) for other in accepted.values()):
            deferred.append(index)
        else:
            accepted[index] = plan
    return accepted, deferred


def _resolve(source: _Source, edits: Sequence[Edit]) -> _Plan:
    """Find what every edit of a fix means; raises ``Refused`` if the edits make no sense together."""
    if not edits:
        raise Refused("the fix has no edits")
    plan = _Plan()
    for edit in edits:
        match edit:
            case ReplaceExpression(span, code):
                extent, _, outermost = source.expression(span)
                _claim(plan, extent, span)
                plan.replaced[extent] = _fitting(source, extent, outermost, code)
            case RemoveArgument(span, argument):
                _resolve_argument(source, plan, span, argument)
            case RemoveStatement(span):
                statement = source.statement(span, "remove")
                _claim(plan, statement.extent, span)
                plan.removed[statement.extent] = statement
            case ReplaceStatement(span, code):
                statement = source.statement(span, "replace")
                _claim(plan, statement.extent, span)
                plan.restated[statement.extent] = statement, _simple(code)
            case MoveStatement(span, anchor, where):
                statement = source.statement(span, "move")
                if statement.extent in plan.moved:
                    raise Refused(f"the statement at {_shown(span)} is moved twice")
                plan.moved[statement.extent] = statement
                plan.placements.append(_placement(source, anchor, where, statement))
            case Decorate(span) | Enclose(span):
                # Lines are put in and indented by :mod:`gradfix.rewriting.splice`; what shares its lines is
                # left alone.
                raise Refused(f"the statement at {_shown(span)} does not have its lines to itself")
            case InsertStatement(anchor, where, code):
                plan.placements.append(_placement(source, anchor, where, code))
    _check_together(plan)
    return plan


def _claim(plan: _Plan, extent: Extent, span: Span) -> None:
    """Refuse an edit of what an earlier edit of the fix replaces or removes, or the other way round."""
    if _any_overlap([extent], [*plan.replaced, *plan.arguments, *plan.removed, *plan.restated]):
        raise Refused(f"two edits of the fix overlap at {_shown(span)}")


def _check_together(plan: _Plan) -> None:
    """Refuse statements that would be lost: moved out of, or put into, what the fix removes."""
    lost = [*plan.removed, *plan.replaced, *plan.arguments, *plan.restated]
    for extent, statement in plan.moved.items():
        if any(_overlap(extent, gone) and not _strictly_contains(extent, gone) for gone in lost):
            raise Refused(f"the statement on line {statement.node.lineno} is moved and removed")
    for placement in plan.placements:
        anchor = placement.anchor
        if anchor.extent in plan.moved:
            raise Refused(f"the statement on line {anchor.node.lineno} is an anchor and moved itself")
        if any(_strictly_contains(gone, anchor.extent) for gone in plan.removed):
            raise Refused(f"the anchor on line {anchor.node.lineno} is inside a removed statement")


def _strictly_contains(outer: Extent, inner: Extent) -> bool:
    return outer != inner and _contains(outer, inner)


def _resolve_argument(source: _Source, plan: _Plan, span: Span, argument: str | int) -> None:
    whole, call, _ = source.expression(span)
    if not isinstance(call, ast.Call):
        raise Refused(f"the expression at {_shown(span)} is not a call")
    node: ast.expr | ast.keyword | None = None
    if isinstance(argument, str):
        node = next((keyword for keyword in call.keywords if keyword.arg == argument), None)
    elif 0 <= argument < len(call.args):
        node = call.args[argument]
    if node is None:
        raise Refused(f"the call at {_shown(span)} has no argument {argument!r}")
    extent = source.lines.extent(Span.of(node))
    _claim(plan, extent, Span.of(node))
    others: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    index = sum(source.lines.extent(Span.of(other)) < extent for other in others)
    plan.arguments[extent] = whole, index
    plan.argument_lists.append((source.lines.extent(Span.of(call.func))[1], whole[1]))


def _placement(
    source: _Source, anchor: Span, where: Literal["before", "after"], what: str | _Statement
) -> _Placement:
    beside = source.statement(anchor, "anchor to")
    if isinstance(what, str):
        code = _parsed(what)
        if isinstance(code, str):
            raise Refused(f"the code to insert does not parse: {code}")
        if not code.body:
            raise Refused("the code to insert has no statement")
    if beside.is_docstring:
        where = "after"  # before it, what was a docstring would be a mere string
    newline = source.lines.newline(anchor.line if where == "before" else anchor.end_line)
    return _Placement(beside, where, what, newline)


def _fitting(source: _Source, extent: Extent, outermost: ast.expr, code: str) -> Code:
    """``code`` with the file's newlines, to be enclosed if the program would read it otherwise."""
    code = code.strip()
    if meaning(f"({code})") is None:
        raise Refused(f"the replacement {code!r} is not an expression")
    enclose = has_to_be_enclosed(source.lines, extent, outermost, code)
    return Code(code, source.lines.newline(outermost.lineno), enclose)


def _simple(code: str) -> str:
    """``code``, if it is one simple statement on one line."""
    program = _parsed(code)
    one = isinstance(program, ast.Module) and len(program.body) == 1 and "\n" not in code
    if not one or hasattr(program.body[0], "body"):  # type: ignore[union-attr]
        raise Refused(f"the replacement {code!r} is not one simple statement")
    return code


# --- Carrying it out -----------------------------------------------------------------------------


def _carry_out(source: _Source, plans: Sequence[_Plan]) -> str:
    """The text with all plans carried out; raises ``Refused`` if that is no program any more."""
    result = transform(source.tree, _work(source, plans))
    program = _parsed(result)
    problem = program if isinstance(program, str) else _compile_problem(result) if source.compiles else None
    if problem is not None:
        raise Refused(f"the result would not be valid: {problem}")
    return result


def _work(source: _Source, plans: Sequence[_Plan]) -> Work:
    statements, expressions = source.tree.statements, source.tree.expressions
    places = [place for plan in plans for place in plan.places()]
    work = Work(
        paths={
            statements[statement.start]
            for statement in source.statements.values()
            if _any_overlap([statement.extent], places)
        }
    )

    def at(statement: _Statement) -> Beside:
        return work.beside.setdefault(statements[statement.start], Beside())

    for plan in plans:
        for extent, code in plan.replaced.items():
            work.replaced[expressions[extent]] = code
        for call, index in plan.arguments.values():
            work.arguments.setdefault(expressions[call], []).append(index)
        for statement, text in plan.restated.values():
            work.restated[statements[statement.start]] = text
        for statement in plan.removed.values():
            at(statement).fate = "removed"
        for statement in plan.moved.values():
            at(statement).fate = "moved"
        for placement in plan.placements:
            what = placement.what
            put = Put(what if isinstance(what, str) else statements[what.start], placement.newline)
            beside = at(placement.anchor)
            (beside.before if placement.where == "before" else beside.after).append(put)
    return work
