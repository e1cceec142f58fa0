"""Carries out rewriting on a libcst tree: expressions, arguments, and whole statements.

This knows nodes only, not where they came from: :mod:`gradfix.rewriting.rewrite` finds the nodes that a fix
means. What is difficult here is layout. A statement is not a line: it may share its line with others
or with the ``if`` that it depends on, and comments and blank lines belong to it or to its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

Line = cst.SimpleStatementLine | cst.BaseCompoundStatement
Extent = tuple[int, int]
"""Start and end in bytes, end exclusive."""
NEWLINE = re.compile(r"\r\n|\r|\n")
# What belongs to the file and not to its first statement.
_FILE_COMMENT = re.compile(r"#!|#.*?coding[:=]")


class Refused(Exception):
    """An edit cannot be done; the message is the reason that the fix reports."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed module, and its nodes by their places in the terms of ``ast``."""

    module: cst.Module
    statements: dict[int, cst.CSTNode]
    """By the start of their keyword (what decorates a definition comes before it)."""
    expressions: dict[Extent, cst.BaseExpression]
    simple_lines: dict[cst.CSTNode, cst.SimpleStatementLine]
    """The line of every simple statement that is not in a one-line suite."""
    written: dict[cst.CSTNode, str] = field(default_factory=dict)
    """The code of the statements at the top, computed on first use."""

    @classmethod
    def parse(cls, text: str) -> Tree | str:
        """The tree of ``text``, or the reason why there is none that can be relied on."""
        try:
            module = cst.parse_module(text)
            positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
        except Exception as error:  # its parser has no common error for all that it cannot read
            return f"libcst cannot read the source: {error}"
        if module.code != text:
            pairs = enumerate(zip(NEWLINE.split(text), NEWLINE.split(module.code)), 1)
            line = next((number for number, (old, new) in pairs if old != new), "last")
            return f"libcst does not reproduce the source exactly: it reads line {line} differently"
        tree = cls(module, {}, {}, {})
        for node, position in positions.items():
            start, end = position.start, position.start + position.length
            if isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
                tree.statements[start] = node
            elif isinstance(node, cst.SimpleStatementLine):
                tree.simple_lines.update((small, node) for small in node.body)
            elif isinstance(node, cst.BaseExpression):
                if _owns_parentheses(node):
                    start, end = positions[node.lpar[-1]].start, positions[node.rpar[0]].start + 1
                tree.expressions[start, end] = node
        return tree


def _owns_parentheses(node: cst.BaseExpression) -> bool:
    """Whether ``ast`` counts the innermost parentheses around a node as a part of it."""
    return isinstance(node, cst.Tuple | cst.GeneratorExp) and bool(node.lpar)


@dataclass(frozen=True, slots=True)
class Code:
    """An expression to put into the program, and whether it needs parentheses there."""

    text: str
    newline: str
    """The one in use there."""
    enclose: bool


@dataclass(frozen=True, slots=True)
class Put:
    """What to put beside a statement: code, or the statement that moves there."""

    what: str | cst.CSTNode
    newline: str
    """The one in use there."""


@dataclass(slots=True)
class Beside:
    """What happens at one statement."""

    before: list[Put] = field(default_factory=list)
    after: list[Put] = field(default_factory=list)
    fate: Literal["stays", "removed", "moved"] = "stays"


@dataclass(frozen=True, slots=True)
class Work:
    """All that is to be done in one pass over a tree."""

    paths: set[cst.CSTNode]
    """The statements in which, or beside which, something is to be done; the others are passed over."""
    replaced: dict[cst.CSTNode, Code] = field(default_factory=dict)
    arguments: dict[cst.CSTNode, list[int]] = field(default_factory=dict)
    """Of each call, the indices of the arguments to drop, in source order."""
    restated: dict[cst.CSTNode, str] = field(default_factory=dict)
    """Simple statements, and what to write in their place."""
    beside: dict[cst.CSTNode, Beside] = field(default_factory=dict)


def transform(tree: Tree, work: Work) -> str:
    """The text with all the work done; raises ``Refused`` where that is impossible."""
    transformer = _Transformer(tree, work)
    try:
        result = _written(tree, tree.module.visit(transformer))
    except (cst.CSTValidationError, cst.ParserSyntaxError) as error:
        raise Refused(f"libcst cannot write this: {error}") from None
    if transformer.left:
        # A statement that is moved into itself, or two that are moved into each other.
        raise Refused("an edit would be lost: the fix moves statements in a circle")
    return result


def _written(tree: Tree, module: cst.Module) -> str:
    """The text of a module that has most of its statements in common with the one that was parsed.

    To write all of a long file takes long, and each of its many fixes changes one statement at the top.
    """
    if not module.has_trailing_newline or not module.body:
        return module.code
    if not tree.written:
        tree.written.update((part, module.code_for_node(part)) for part in tree.module.body)
    parts = (*module.header, *module.body, *module.footer)
    codes = (tree.written.get(part) for part in parts)
    return "".join(module.code_for_node(part) if code is None else code for part, code in zip(parts, codes))


class _Transformer(cst.CSTTransformer):
    """Does all the work in one pass.

    Blocks are rebuilt when they are left, with their statements already transformed. A statement that
    moves is transformed when its destination is rebuilt, and passed over where it was.
    """

    def __init__(self, tree: Tree, work: Work) -> None:
        super().__init__()
        self._tree = tree
        self._work = work
        self.left: set[cst.CSTNode] = {*work.replaced, *work.arguments, *work.restated, *work.beside}
        """The nodes at which something is still to do."""
        self._units: list[str | None] = [None]
        """The indentation that each open block adds (``None``: the file's usual one)."""
        self._lifted: cst.CSTNode | None = None
        """The moved statement that is being transformed for its new place."""

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.IndentedBlock):
            self._units.append(node.indent)
        if node in self._work.replaced or node in self._work.restated:
            return False
        if isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            beside = self._work.beside.get(node)
            leaves = beside is not None and beside.fate != "stays" and node is not self._lifted
            return node in self._work.paths and not leaves
        return True

    def on_leave(  # type: ignore[override]  # every node stays one node; blocks see to their statements
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        if original_node in self._work.replaced:
            return self._replace(cast(cst.BaseExpression, original_node))
        if original_node in self._work.restated:
            return self._restate(cast(cst.BaseSmallStatement, original_node))
        if original_node in self._work.arguments:
            return self._without_arguments(original_node, cast(cst.Call, updated_node))
        match original_node:
            case cst.Module():
                return self._module(original_node, cast(cst.Module, updated_node))
            case cst.IndentedBlock():
                return self._block(original_node, cast(cst.IndentedBlock, updated_node))
            case cst.SimpleStatementSuite():
                return self._suite(original_node, cast(cst.SimpleStatementSuite, updated_node))
        return updated_node

    # Expressions

    def _replace(self, node: cst.BaseExpression) -> cst.BaseExpression:
        self.left.discard(node)
        code = self._work.replaced[node]
        left, right = list(node.lpar), list(node.rpar)
        if _owns_parentheses(node):
            left, right = left[:-1], right[1:]
        new = _parsed(code)
        if code.enclose:
            left, right = [*left, cst.LeftParen()], [cst.RightParen(), *right]
        return new.with_changes(lpar=[*left, *new.lpar], rpar=[*new.rpar, *right])

    def _without_arguments(self, old: cst.CSTNode, new: cst.Call) -> cst.Call:
        self.left.discard(old)
        for index in sorted(self._work.arguments[old], reverse=True):
            new = _without_argument(new, index)
        return new

    # Statements

    def _restate(self, old: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
        self.left.discard(old)
        line = cst.parse_statement(self._work.restated[old])
        assert isinstance(line, cst.SimpleStatementLine)
        return line.body[0].with_changes(semicolon=old.semicolon)

    def _module(self, old: cst.Module, new: cst.Module) -> cst.Module:
        if not self._concerns(*old.body):
            return new
        # libcst keeps apart what precedes the first statement; here it leads that statement.
        first, *rest = new.body
        body = [_led(first, [*new.header, *first.leading_lines]), *rest]
        lines, footer = self._rebuild(old.body, body, new.footer)
        return new.with_changes(
            header=(), body=lines, footer=footer, has_trailing_newline=bool(lines or footer)
        )

    def _block(self, old: cst.IndentedBlock, new: cst.IndentedBlock) -> cst.IndentedBlock:
        if self._concerns(*old.body):
            lines, footer = self._rebuild(old.body, new.body, new.footer, empty=new.header.newline)
            new = new.with_changes(body=lines, footer=footer)
        self._units.pop()
        return new

    def _suite(
        self, old: cst.SimpleStatementSuite, new: cst.SimpleStatementSuite
    ) -> cst.SimpleStatementSuite | cst.IndentedBlock:
        """A one-line suite, which stays one unless something is put beside its statements."""
        line = cst.SimpleStatementLine(old.body)
        if not self._concerns(line):
            return new
        stay = [small for was, small in zip(old.body, new.body) if self._fate(was) == "stays"]
        end = new.trailing_whitespace
        if any(beside.before or beside.after for beside in map(self._work.beside.get, old.body) if beside):
            lines, footer = self._rebuild(
                [line], [cst.SimpleStatementLine(new.body, trailing_whitespace=end)], []
            )
            header = cst.TrailingWhitespace(newline=end.newline) if stay else end
            return cst.IndentedBlock(lines, header=header, indent=self._units[-1], footer=footer)
        self.left.difference_update(old.body)
        return new.with_changes(body=_tied(stay, new.body[-1]) or [cst.Pass()])

    def _concerns(self, *lines: cst.BaseStatement) -> bool:
        return any(unit in self._work.beside for line in lines for unit in _statements_of(line))

    def _fate(self, statement: cst.CSTNode) -> str:
        beside = self._work.beside.get(statement)
        return "stays" if beside is None else beside.fate

    def _rebuild(
        self,
        old_lines: Sequence[cst.BaseStatement],
        new_lines: Sequence[cst.BaseStatement],
        footer: Sequence[cst.EmptyLine],
        empty: cst.Newline | None = None,
    ) -> tuple[list[Line], list[cst.EmptyLine]]:
        """The lines of a block and its footer; ``pass``, ended by ``empty``, if no line remains."""
        built: list[Line] = []
        carried: list[cst.EmptyLine] | None = None  # what gone statements leave to the next line
        for index, (old, new) in enumerate(zip(old_lines, new_lines)):
            assert isinstance(old, Line)
            assert isinstance(new, Line)
            if carried is not None:
                new = _led(new, _joined(carried, new.leading_lines, at_start=not built))
                carried = None
            if not self._concerns(old):
                built.append(new)
                continue
            following = new_lines[index + 1] if index + 1 < len(new_lines) else None
            ends_paragraph = not isinstance(following, Line) or bool(following.leading_lines)
            lines, left = self._rebuild_line(old, new, ends_paragraph)
            built += lines
            if left or not lines:
                carried = left
        if empty is not None and not built:
            nothing = cst.SimpleStatementLine(
                [cst.Pass()], trailing_whitespace=cst.TrailingWhitespace(newline=empty)
            )
            built, carried = [_led(nothing, _without_last_blanks(carried or []))], None
        if carried is None:
            return built, list(footer)
        if not footer:
            return built, _without_last_blanks(carried)
        return built, _joined(carried, footer, at_start=not built)

    def _rebuild_line(
        self, old: Line, new: Line, ends_paragraph: bool
    ) -> tuple[list[Line], list[cst.EmptyLine]]:
        """The lines that take the place of one, and the blank lines and comments that they leave behind."""
        was, now = _statements_of(old), _statements_of(new)
        self.left.difference_update(was)
        pieces: list[Put | list[cst.CSTNode]] = []
        for before, after in zip(was, now):
            beside = self._work.beside.get(before, Beside())
            pieces += beside.before
            if beside.fate == "stays" and pieces and isinstance(pieces[-1], list):
                pieces[-1].append(after)
            elif beside.fate == "stays":
                pieces.append([after])
            pieces += beside.after
        staying = [piece for piece in pieces if isinstance(piece, list)]

        lead = list(new.leading_lines)
        start = _start_of_comments(lead, self._is_first(old))
        waiting, comments = lead[:start], lead[start:]
        if not staying and self._fate(was[0]) == "moved":
            waiting, comments = lead[: len(lead) - len(self._comments(old))], []
        elif not pieces and ends_paragraph:
            comments = []  # they were about the removed statement alone

        lines: list[Line] = []
        following: list[cst.EmptyLine]
        for piece in pieces:
            if isinstance(piece, list):
                put, following = [_part(new, piece, is_last=piece is staying[-1])], []
            else:
                put, following = self._put(piece)
            # Inserted code belongs to what the comments above a simple statement announce. A moved statement
            # brings its own, and those above a function or a block are about that.
            announced = isinstance(old, cst.SimpleStatementLine) and not isinstance(piece, list)
            if isinstance(piece, list) or not staying or (announced and isinstance(piece.what, str)):
                waiting, comments = [*waiting, *comments], []
            lines += [_led(put[0], [*waiting, *put[0].leading_lines]), *put[1:]]
            waiting = following
        return lines, [*waiting, *comments]

    def _put(self, put: Put) -> tuple[list[Line], list[cst.EmptyLine]]:
        """The statements to put at a place, and the comments that follow them."""
        if isinstance(put.what, str):
            return _inserted(put.what, put.newline, self._units[-1])
        return [self._moved(put.what, put.newline)], []

    def _moved(self, old: cst.CSTNode, newline: str) -> Line:
        """A moved statement, transformed, as a line of its own with the comments that are its alone."""
        outer, self._lifted = self._lifted, old
        new = old.visit(self)
        self._lifted = outer
        if isinstance(new, cst.BaseCompoundStatement):
            return _led(new, self._comments(old))
        assert isinstance(new, cst.BaseSmallStatement)
        line: Line = cst.SimpleStatementLine(
            _tied([new], None), trailing_whitespace=cst.TrailingWhitespace(newline=_newline(newline))
        )
        home = self._tree.simple_lines.get(old)
        if home is not None and all(self._fate(each) != "stays" for each in home.body):
            if old is home.body[0]:
                line = _led(line, self._comments(home))
            if old is home.body[-1]:
                line = line.with_changes(trailing_whitespace=home.trailing_whitespace)
        return line

    def _is_first(self, line: cst.CSTNode) -> bool:
        body = self._tree.module.body
        return bool(body) and line is body[0]

    def _comments(self, line: cst.CSTNode) -> list[cst.EmptyLine]:
        """The comments directly above a line of the original."""
        assert isinstance(line, Line)
        lead = (
            [*self._tree.module.header, *line.leading_lines] if self._is_first(line) else line.leading_lines
        )
        return list(lead[_start_of_comments(lead, self._is_first(line)) :])


def _parsed(code: Code) -> cst.BaseExpression:
    """The expression, so that it is printed to the letter."""
    # In parentheses, which are taken off again, code of several lines can be parsed as well.
    text = f"({NEWLINE.sub(code.newline, code.text)})"
    node = cst.parse_expression(text)
    node = cast(cst.BaseExpression, node.visit(_Adopted(code.newline, is_verbatim=True)))
    if cst.Module(()).code_for_node(node) != text:
        raise Refused(f"libcst does not reproduce the replacement exactly: {code.text!r}")
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


def _statements_of(line: cst.BaseStatement) -> Sequence[cst.CSTNode]:
    return line.body if isinstance(line, cst.SimpleStatementLine) else [line]


def _led(line: Line, lead: Sequence[cst.EmptyLine]) -> Line:
    return line.with_changes(leading_lines=lead)


def _part(line: Line, statements: list[cst.CSTNode], is_last: bool) -> Line:
    """Some of the statements of a line; its comment at the end goes with the last of them."""
    if not isinstance(line, cst.SimpleStatementLine):
        return _led(line, [])
    end = line.trailing_whitespace
    return line.with_changes(
        body=_tied(statements, line.body[-1]),
        leading_lines=[],
        trailing_whitespace=end if is_last else cst.TrailingWhitespace(newline=end.newline),
    )


def _tied(statements: Sequence[cst.CSTNode], last: cst.CSTNode | None) -> list[cst.BaseSmallStatement]:
    """Statements for one line; only the one that was ``last`` keeps a semicolon that it ends with."""
    small = cast(list[cst.BaseSmallStatement], list(statements))
    if small and small[-1] is not last:
        small[-1] = small[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return small


def _inserted(code: str, newline: str, unit: str | None) -> tuple[list[Line], list[cst.EmptyLine]]:
    """Inserted code as lines, and the comments after the last of them."""
    text = NEWLINE.sub(newline, code.strip("\r\n").rstrip())
    module = cst.parse_module(text)
    if module.code != text:
        raise Refused(f"libcst does not reproduce the code to insert exactly: {code!r}")
    module = module.visit(_Adopted(newline, unit=unit))
    first, *rest = module.body
    assert isinstance(first, Line)
    return [_led(first, [*module.header, *first.leading_lines]), *rest], list(module.footer)


class _Adopted(cst.CSTTransformer):
    """Gives code from elsewhere the newline and the indentation of its new surroundings.

    With ``is_verbatim``, what its lines start with is left as it is.
    """

    def __init__(self, newline: str, unit: str | None = None, is_verbatim: bool = False) -> None:
        super().__init__()
        self._newline = _newline(newline)
        self._unit = unit
        self._is_verbatim = is_verbatim

    def leave_Newline(self, original_node: cst.Newline, updated_node: cst.Newline) -> cst.Newline:
        return self._newline.deep_clone()

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node.with_changes(indent=self._unit)

    def leave_ParenthesizedWhitespace(
        self, original_node: cst.ParenthesizedWhitespace, updated_node: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        return updated_node.with_changes(indent=False) if self._is_verbatim else updated_node

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:
        return updated_node.with_changes(indent=False) if self._is_verbatim else updated_node


def _newline(value: str) -> cst.Newline:
    return cst.Newline(cast(Literal["\n", "\r\n", "\r"], value))


# --- Blank lines and comments --------------------------------------------------------------------


def _start_of_comments(lead: Sequence[cst.EmptyLine], is_first: bool) -> int:
    """Where in the lines above a statement the comments begin that no blank line separates from it."""
    start = len(lead)
    while start and lead[start - 1].comment is not None:
        start -= 1
    if is_first:
        for index, line in enumerate(lead[:2]):
            if line.comment is not None and _FILE_COMMENT.match(line.comment.value):
                start = max(start, index + 1)
    return start


def _blanks(lines: Iterable[cst.EmptyLine]) -> int:
    """How many blank lines come first."""
    count = 0
    for line in lines:
        if line.comment is not None:
            break
        count += 1
    return count


def _without_last_blanks(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    return list(lines[: len(lines) - _blanks(reversed(lines))])


def _joined(
    above: Sequence[cst.EmptyLine], below: Sequence[cst.EmptyLine], at_start: bool
) -> list[cst.EmptyLine]:
    """The lines around a statement that is gone: of the blank lines where they meet, the longer run.

    At the start of a block, the blank lines below would have nothing above them to separate from.
    """
    upper, lower = _blanks(reversed(above)), _blanks(below)
    if lower > upper and not (at_start and upper == len(above)):
        return [*above[: len(above) - upper], *below]
    return [*above, *below[lower:]]


# --- Arguments -----------------------------------------------------------------------------------


def _without_argument(call: cst.Call, index: int) -> cst.Call:
    """The call without an argument and its comma, the rest laid out as it was."""
    args = list(call.args)
    gone = args.pop(index)
    comma = gone.comma if isinstance(gone.comma, cst.Comma) else None
    after = comma.whitespace_after if comma else gone.whitespace_after_arg
    is_last = index == len(args)
    if index == 0:
        space = _closed(call.whitespace_before_args, after, follows_parenthesis=True, is_last=is_last)
        return call.with_changes(args=args, whitespace_before_args=space)
    previous = args[index - 1]
    separator = cst.ensure_type(previous.comma, cst.Comma)
    space = _closed(separator.whitespace_after, after, follows_parenthesis=False, is_last=is_last)
    if is_last and comma is None and not _has_comment(separator.whitespace_before):
        previous = previous.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=space)
    else:
        previous = previous.with_changes(comma=separator.with_changes(whitespace_after=space))
    args[index - 1] = previous
    return call.with_changes(args=args)


def _closed(
    before: cst.BaseParenthesizableWhitespace,
    after: cst.BaseParenthesizableWhitespace,
    follows_parenthesis: bool,
    is_last: bool,
) -> cst.BaseParenthesizableWhitespace:
    """What stands in the place of an argument and the space around it.

    The comment on the argument's own line goes with it. Comments above it go if they are about it
    alone: if no other argument follows directly.
    """
    if not isinstance(before, cst.ParenthesizedWhitespace):
        if follows_parenthesis:
            return cst.SimpleWhitespace("") if is_last else before
        return after if is_last or isinstance(after, cst.ParenthesizedWhitespace) else before
    if not isinstance(after, cst.ParenthesizedWhitespace):
        return after if is_last and not _has_comment(before) else before
    above = before.empty_lines
    if is_last or after.empty_lines:
        above = above[: _start_of_comments(above, is_first=False)]
    space = after.with_changes(first_line=before.first_line, empty_lines=[*above, *after.empty_lines])
    return cst.SimpleWhitespace("") if follows_parenthesis and is_last and not _has_comment(space) else space


def _has_comment(space: cst.BaseParenthesizableWhitespace) -> bool:
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return False
    return space.first_line.comment is not None or any(line.comment is not None for line in space.empty_lines)
