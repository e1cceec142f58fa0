"""Rewriting: every kind of edit in every layout, alone, together, and at random against an oracle."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradfix.core.codemod import (
    Edit,
    InsertStatement,
    MoveStatement,
    RemoveArgument,
    RemoveStatement,
    ReplaceExpression,
)
from gradfix.core.segments import Lines, call_method
from gradfix.core.span import Span
from gradfix.rewriting.rewrite import Rewrite, apply_fixes

Where = Literal["before", "after"]
WHERE: tuple[Where, Where] = ("before", "after")


class Source:
    """A program in which spans are found by what stands there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)

    def s(self, start: str) -> Span:
        """The statement that starts with ``start``; the innermost if there are several."""
        return self._only(start, ast.stmt)

    def e(self, code: str, nth: int = 0) -> Span:
        """The ``nth`` expression that is written ``code``."""
        found = [
            Span.of(node)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.expr) and Lines(self.text).segment(Span.of(node)) == code
        ]
        return sorted(found)[nth]

    def _only(self, start: str, kind: type[ast.stmt]) -> Span:
        found = [
            Span.of(node)
            for node in ast.walk(self.tree)
            if isinstance(node, kind) and Lines(self.text).segment(Span.of(node)).startswith(start)
        ]
        assert found, start
        return found[-1]

    def insert(self, where: Where, anchor: str, code: str) -> InsertStatement:
        return InsertStatement(self.s(anchor), where, code)

    def remove(self, statement: str) -> RemoveStatement:
        return RemoveStatement(self.s(statement))

    def move(self, statement: str, where: Where, anchor: str) -> MoveStatement:
        return MoveStatement(self.s(statement), self.s(anchor), where)

    def replace(self, old: str, new: str, nth: int = 0) -> ReplaceExpression:
        return ReplaceExpression(self.e(old, nth), new)

    def drop(self, call: str, *arguments: str | int) -> list[Edit]:
        return [RemoveArgument(self.e(call), argument) for argument in arguments]


Make = Callable[[Source], "Edit | Sequence[Edit]"]


def only(text: str, *edits: Edit) -> str:
    """The text with one fix, which must be applied."""
    rewrite = apply_fixes(text, [edits])
    assert rewrite.applied == (0,), rewrite.failed
    ast.parse(rewrite.text)
    return rewrite.text


def made(text: str, make: Make) -> list[Edit]:
    edits = make(Source(text))
    return list(edits) if isinstance(edits, Sequence) else [edits]


def reason(text: str, *edits: Edit) -> str:
    """Why a fix cannot be applied; the text must be as it was."""
    rewrite = apply_fixes(text, [edits])
    assert rewrite.text == text
    ((index, why),) = rewrite.failed
    assert index == 0
    return why


CASES: dict[str, tuple[str, Make, str]] = {
    # ---- insertion
    "before, in a block": (
        "if x:\n    a()\n    b()\n",
        lambda t: t.insert("before", "b()", "new()"),
        "if x:\n    a()\n    new()\n    b()\n",
    ),
    "before: what the comments above announce includes the new": (
        "a()\n\n# about b\n# and more\nb()\n",
        lambda t: t.insert("before", "b()", "new()"),
        "a()\n\n# about b\n# and more\nnew()\nb()\n",
    ),
    "before: comments apart from the anchor stay above": (
        "# section\n\nb()\n",
        lambda t: t.insert("before", "b()", "new()"),
        "# section\n\nnew()\nb()\n",
    ),
    "before the first statement, below the interpreter line": (
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# about a\na()\n",
        lambda t: t.insert("before", "a()", "new()"),
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# about a\nnew()\na()\n",
    ),
    "before a docstring is after it": (
        'def f():\n    """Doc."""  # c\n\n    a()\n',
        lambda t: t.insert("before", '"""Doc', "new()"),
        'def f():\n    """Doc."""  # c\n    new()\n\n    a()\n',
    ),
    "before a decorated function": (
        "a()\n\n\n# about f\n@d\n# inner\ndef f():\n    pass\n",
        lambda t: t.insert("before", "def f", "new()"),
        "a()\n\n\nnew()\n# about f\n@d\n# inner\ndef f():\n    pass\n",
    ),
    "after: comments of the next statement stay with it": (
        "a()  # about a\n# about b\nb()\n",
        lambda t: t.insert("after", "a()", "new()"),
        "a()  # about a\nnew()\n# about b\nb()\n",
    ),
    "after a compound statement, its else and its last comments": (
        "for i in j:\n    a()\nelse:\n    b()\n    # last\n\n# next\nc()\n",
        lambda t: t.insert("after", "for", "new()"),
        "for i in j:\n    a()\nelse:\n    b()\n    # last\nnew()\n\n# next\nc()\n",
    ),
    "after the last of a block, above its last comments": (
        "if x:\n    a()\n    # last\nelse:\n    b()\n",
        lambda t: t.insert("after", "a()", "new()"),
        "if x:\n    a()\n    new()\n    # last\nelse:\n    b()\n",
    ),
    "after the last line of a file without a newline": (
        "if x:\n    a()",
        lambda t: t.insert("after", "a()", "new()"),
        "if x:\n    a()\n    new()",
    ),
    "before the last line of a file without a newline": (
        "a()",
        lambda t: t.insert("before", "a()", "new()"),
        "new()\na()",
    ),
    "blank lines at the end of the file are kept": (
        "a()\n\n  \n",
        lambda t: t.insert("after", "a()", "new()"),
        "a()\nnew()\n\n  \n",
    ),
    "several statements, one of them compound, in tabs": (
        "if x:\n\ta()\n",
        lambda t: t.insert("after", "a()", "with y:\n    b()\n\n    # c\n    d()\ne()"),
        "if x:\n\ta()\n\twith y:\n\t\tb()\n\n\t\t# c\n\t\td()\n\te()\n",
    ),
    "comments around inserted code": (
        "a()\nb()\n",
        lambda t: t.insert("after", "a()", "# why\nnew()  # how\n# end\n"),
        "a()\n# why\nnew()  # how\n# end\nb()\n",
    ),
    "the newline of the anchor's line": (
        "a()\r\nif x:\r\n    b()\r\n",
        lambda t: t.insert("after", "b()", "if y:\n    new('''1\n2''')"),
        "a()\r\nif x:\r\n    b()\r\n    if y:\r\n        new('''1\r\n2''')\r\n",
    ),
    "mixed newlines": (
        "a()\nb()\r\nc()\n",
        lambda t: [t.insert("after", "a()", "x()"), t.insert("after", "b()", "y()")],
        "a()\nx()\nb()\r\ny()\r\nc()\n",
    ),
    "old Macintosh newlines": (
        "if x:\r    a()\rb()\r",
        lambda t: t.insert("before", "a()", "new()"),
        "if x:\r    new()\r    a()\rb()\r",
    ),
    "another newline at the end than in the middle": (
        "a()\nb()\r\nc()",
        lambda t: t.remove("c()"),
        "a()\nb()",
    ),
    "the last line gets the newline of the one before": (
        "a()\r\nb()",
        lambda t: t.insert("after", "b()", "new()"),
        "a()\r\nb()\r\nnew()",
    ),
    "a continued last line": (
        "a()\nb = 1 \\\n\n",
        lambda t: t.insert("before", "b = 1", "new()"),
        "a()\nnew()\nb = 1 \\\n\n",
    ),
    "a form feed line": (
        "a()\n\x0c\nb()\n",
        lambda t: t.insert("before", "b()", "new()"),
        "a()\n\x0c\nnew()\nb()\n",
    ),
    "several at one place keep their order": (
        "a()\nb()\n",
        lambda t: [
            t.insert("before", "b()", "x()"),
            t.insert("after", "a()", "y()"),
            t.insert("before", "b()", "z()"),
        ],
        "a()\ny()\nx()\nz()\nb()\n",
    ),
    # ---- semicolons
    "before the first on a line": (
        "# c\na(); b()  # t\n",
        lambda t: t.insert("before", "a()", "new()"),
        "# c\nnew()\na(); b()  # t\n",
    ),
    "between two on a line": (
        "# c\na(); b(); d();  # t\n",
        lambda t: t.insert("after", "a()", "new()"),
        "# c\na()\nnew()\nb(); d();  # t\n",
    ),
    "after the last on a line": (
        "if x:\n    a(); b();  # t\n",
        lambda t: t.insert("after", "b()", "new()"),
        "if x:\n    a(); b();  # t\n    new()\n",
    ),
    "around all of a line": (
        "a(); b()\n",
        lambda t: [
            t.insert("before", "a()", "x()"),
            t.insert("before", "b()", "y()"),
            t.insert("after", "b()", "z()"),
        ],
        "x()\na()\ny()\nb()\nz()\n",
    ),
    "remove the first on a line": ("# c\na(); b()  # t\n", lambda t: t.remove("a()"), "# c\nb()  # t\n"),
    "remove the last on a line": ("# c\na(); b()  # t\n", lambda t: t.remove("b()"), "# c\na()  # t\n"),
    "remove the middle of a line": ("a();b() ; c();\n", lambda t: t.remove("b()"), "a();c();\n"),
    "remove all of a line": ("a(); b()  # t\nc()\n", lambda t: [t.remove("a()"), t.remove("b()")], "c()\n"),
    "semicolons over two lines": ("a(); \\\n  b()\n", lambda t: t.remove("b()"), "a()\n"),
    "split over two lines": (
        "a(); \\\n  b()\n",
        lambda t: t.insert("before", "b()", "c()"),
        "a()\nc()\nb()\n",
    ),
    "move one of a line": (
        "# c\na(); b()  # t\nif x:\n    d()\n",
        lambda t: t.move("a()", "after", "d()"),
        "# c\nb()  # t\nif x:\n    d()\n    a()\n",
    ),
    "move within a line": ("a(); b(); c()\n", lambda t: t.move("a()", "after", "b()"), "b()\na()\nc()\n"),
    "move all of a line": (
        "# c\na(); b()  # t\nd()\n",
        lambda t: [t.move("a()", "after", "d()"), t.move("b()", "after", "d()")],
        "d()\n# c\na()\nb()  # t\n",
    ),
    # ---- one-line suites
    "insert into a one-line suite": (
        "if x: opt.zero_grad()  # c\nelse: b()\n",
        lambda t: t.insert("before", "opt", "new()"),
        "if x:\n    new()\n    opt.zero_grad()  # c\nelse: b()\n",
    ),
    "insert between the statements of a one-line suite": (
        "class A:\n\tdef f(self): a(); b()\n",
        lambda t: t.insert("after", "a()", "new()"),
        "class A:\n\tdef f(self):\n\t\ta()\n\t\tnew()\n\t\tb()\n",
    ),
    "a one-line suite among other indentation than the file's": (
        "if x:\n    a()\nclass A:\n\tdef f(self): b()\n",
        lambda t: t.insert("after", "b()", "with y: c()\nif z:\n  d()"),
        "if x:\n    a()\nclass A:\n\tdef f(self):\n\t\tb()\n\t\twith y: c()\n\t\tif z:\n\t\t\td()\n",
    ),
    "insert a block into a one-line suite": (
        "while x: a()\n",
        lambda t: t.insert("after", "a()", "if y:\n  new()"),
        "while x:\n    a()\n    if y:\n        new()\n",
    ),
    "insert beside a one-line compound statement": (
        "if x: a()\nb()\n",
        lambda t: [t.insert("before", "if", "x()"), t.insert("after", "if", "y()")],
        "x()\nif x: a()\ny()\nb()\n",
    ),
    "empty a one-line suite": ("if x: a()  # c\n", lambda t: t.remove("a()"), "if x: pass  # c\n"),
    "remove one of a one-line suite": (
        "for i in x: a(); b()\n",
        lambda t: t.remove("a()"),
        "for i in x: b()\n",
    ),
    "one-line else": ("if x: a()\nelse: b()\n", lambda t: t.remove("b()"), "if x: a()\nelse: pass\n"),
    "one-line except and finally": (
        "try: a()\nexcept E: b()\nfinally: c()\n",
        lambda t: [t.insert("after", "b()", "x()"), t.remove("c()")],
        "try: a()\nexcept E:\n    b()\n    x()\nfinally: pass\n",
    ),
    "move out of a one-line suite": (
        "for i in x: a(); b()  # c\n",
        lambda t: t.move("b()", "after", "for"),
        "for i in x: a()  # c\nb()\n",
    ),
    "replace the statement of a one-line suite": (
        "if x: a()  # c\n",
        lambda t: [t.remove("a()"), t.insert("before", "a()", "new()")],
        "if x:  # c\n    new()\n",
    ),
    # ---- removal
    "remove, with the comment at its end": ("a()\nb()  # t\nc()\n", lambda t: t.remove("b()"), "a()\nc()\n"),
    "a comment above a paragraph stays": (
        "# phase\na()\nb()\n\nc()\n",
        lambda t: t.remove("a()"),
        "# phase\nb()\n\nc()\n",
    ),
    "a comment about the removed statement alone goes": (
        "a()\n\n# about b\nb()\n\nc()\n",
        lambda t: t.remove("b()"),
        "a()\n\nc()\n",
    ),
    "a comment over two removed statements goes with the last": (
        "a()\n# both\nb()\nc()\n# d\nd()\n",
        lambda t: [t.remove("b()"), t.remove("c()")],
        "a()\n# d\nd()\n",
    ),
    "a section's comment stays": (
        "a()\n\n# section\n\nb()\n\nc()\n",
        lambda t: t.remove("b()"),
        "a()\n\n# section\n\nc()\n",
    ),
    "the longer run of blank lines stays": (
        "a()\n\nb()\n\n\ndef f():\n    pass\n",
        lambda t: t.remove("b()"),
        "a()\n\n\ndef f():\n    pass\n",
    ),
    "blank lines before a removed last statement go": (
        "if x:\n    a()\n\n    b()\nc()\n",
        lambda t: t.remove("b()"),
        "if x:\n    a()\nc()\n",
    ),
    "blank lines after a removed first statement go": (
        "if x:\n    a()\n\n    b()\n",
        lambda t: t.remove("a()"),
        "if x:\n    b()\n",
    ),
    "the only statement of a block": (
        "if x:  # h\n    # about a\n    a()  # t\n    # last\nelse:\n    b()\n",
        lambda t: t.remove("a()"),
        "if x:  # h\n    pass\n    # last\nelse:\n    b()\n",
    ),
    "the only statement of an else": (
        "if x:\n    a()\nelse:\n\n    # why\n\n    b()\n",
        lambda t: t.remove("b()"),
        "if x:\n    a()\nelse:\n\n    # why\n    pass\n",
    ),
    "every statement of a block": (
        "for i in x:\r\n\ta()\r\n\tb()\r\n",
        lambda t: [t.remove("a()"), t.remove("b()")],
        "for i in x:\r\n\tpass\r\n",
    ),
    "a whole compound statement": (
        "a()\nif x:\n    b()\nelif y:\n    c()\nelse:\n    d()\n    # last\ne()\n",
        lambda t: t.remove("if x"),
        "a()\ne()\n",
    ),
    "a decorated function with what decorates it": (
        "a()\n\n\n@d\n@e(\n    1)\nasync def f():\n    pass\n\n\nb()\n",
        lambda t: t.remove("async def"),
        "a()\n\n\nb()\n",
    ),
    "a docstring": ('def f():\n    """Doc."""\n', lambda t: t.remove('"""Doc'), "def f():\n    pass\n"),
    "a statement of several lines": ("a(\n  1,\n)\nb()\n", lambda t: t.remove("a("), "b()\n"),
    "the only statement of a file": ("a()\n", lambda t: t.remove("a()"), ""),
    "the interpreter line stays": ("#!python\na()\nb()\n", lambda t: t.remove("a()"), "#!python\nb()\n"),
    "the last without a newline": ("a()\nb()", lambda t: t.remove("b()"), "a()"),
    "a removed statement is an anchor": (
        "a()\n# why\nb()\nc()\n",
        lambda t: [t.remove("b()"), t.insert("before", "b()", "new()")],
        "a()\n# why\nnew()\nc()\n",
    ),
    "a case of match": (
        "match x:\n  case 1:\n    a()\n  case _: b()\n",
        lambda t: [t.remove("a()"), t.insert("before", "b()", "new()")],
        "match x:\n  case 1:\n    pass\n  case _:\n    new()\n    b()\n",
    ),
    # ---- moving
    "move deeper, with its comments": (
        "# about a\na(\n  1)  # t\n\nwith x:\n\tif y:\n\t\tb()\n",
        lambda t: t.move("a(", "before", "b()"),
        "with x:\n\tif y:\n\t\t# about a\n\t\ta(\n\t\t  1)  # t\n\t\tb()\n",
    ),
    "move out": (
        "for i in x:\n    a()\n    # about b\n    b()  # t\nc()\n",
        lambda t: t.move("b()", "after", "for"),
        "for i in x:\n    a()\n# about b\nb()  # t\nc()\n",
    ),
    "comments apart from it do not travel": (
        "# section\n\n# about a\na()\nb()\n",
        lambda t: t.move("a()", "after", "b()"),
        "# section\n\nb()\n# about a\na()\n",
    ),
    "the interpreter line does not travel": (
        "#!python\n# about a\na()\nb()\n",
        lambda t: t.move("a()", "after", "b()"),
        "#!python\nb()\n# about a\na()\n",
    ),
    "a compound statement changes its depth": (
        "if x:\n\tfor i in j:  # h\n\n\t\t# about a\n\t\ta('''\n1''', [\n\t\t\t2])\n\t\t# last\n\tb()\n",
        lambda t: t.move("for", "before", "if"),
        "for i in j:  # h\n\n\t# about a\n\ta('''\n1''', [\n\t\t2])\n\t# last\nif x:\n\tb()\n",
    ),
    "a decorated function": (
        "class A:\n    x = 1\n\n    # about f\n    @d\n    def f(self):\n        pass\n",
        lambda t: t.move("def f", "before", "class"),
        "# about f\n@d\ndef f(self):\n    pass\nclass A:\n    x = 1\n",
    ),
    "into a one-line suite": (
        "a()  # t\nif x: b()\n",
        lambda t: t.move("a()", "after", "b()"),
        "if x:\n    b()\n    a()  # t\n",
    ),
    "out of a block that is then empty": (
        "if x:\n    a()\nb()\n",
        lambda t: t.move("a()", "after", "b()"),
        "if x:\n    pass\nb()\na()\n",
    ),
    "two to one place keep the order of the edits": (
        "a()\nb()\nc()\n",
        lambda t: [t.move("b()", "after", "c()"), t.move("a()", "after", "c()")],
        "c()\nb()\na()\n",
    ),
    "edits inside travel": (
        "if x:\n    a(y, 1)\n    b()\nc()\n",
        lambda t: [
            t.move("if", "after", "c()"),
            t.replace("y", "z"),
            *t.drop("a(y, 1)", 1),
            t.insert("before", "b()", "new()"),
        ],
        "c()\nif x:\n    a(z)\n    new()\n    b()\n",
    ),
    "out of a statement that moves": (
        "if x:\n    a()\n    b()\nc()\n",
        lambda t: [t.move("if", "after", "c()"), t.move("a()", "before", "c()")],
        "a()\nc()\nif x:\n    b()\n",
    ),
    "into a statement that moves": (
        "if x:\n    a()\nc()\nd()\n",
        lambda t: [t.move("if", "after", "d()"), t.move("c()", "after", "a()")],
        "d()\nif x:\n    a()\n    c()\n",
    ),
    "the last line of a file without a newline": (
        "a()\r\nb()  # t",
        lambda t: t.move("b()", "before", "a()"),
        "b()  # t\r\na()",
    ),
    "comments at the left edge": (
        "if x:\n# left\n    a()\n    b()\n",
        lambda t: t.move("a()", "after", "b()"),
        "if x:\n    b()\n# left\n    a()\n",
    ),
    # ---- expressions
    "parentheses stay": ("x = ( a )\n", lambda t: t.replace("a", "b.c()"), "x = ( b.c() )\n"),
    "a tuple goes with its parentheses": ("x = (a, b)\n", lambda t: t.replace("(a, b)", "c"), "x = c\n"),
    "a tuple in double parentheses": ("x = ((a, b))\n", lambda t: t.replace("(a, b)", "c"), "x = (c)\n"),
    "no word grows": ("def f(): return(a, b)\n", lambda t: t.replace("(a, b)", "c"), "def f(): return(c)\n"),
    "weaker code is enclosed": ("x = a * y\n", lambda t: t.replace("a", "b + c"), "x = (b + c) * y\n"),
    "stronger code is not": ("x = a + y\n", lambda t: t.replace("a", "b * c"), "x = b * c + y\n"),
    "nor where it stands alone": (
        "f(a, k=d)\n",
        lambda t: t.replace("d", "x if y else z"),
        "f(a, k=x if y else z)\n",
    ),
    "a tuple as an argument": ("f(a)\n", lambda t: t.replace("a", "b, c"), "f((b, c))\n"),
    "several lines are enclosed": ("x = a\r\n", lambda t: t.replace("a", "b +\nc"), "x = (b +\r\nc)\r\n"),
    "several lines in parentheses": (
        "if x:\n    f(a\n      .b)\n",
        lambda t: t.replace("a\n      .b", "a\n      .b.detach()"),
        "if x:\n    f(a\n      .b.detach())\n",
    ),
    "columns are bytes": ("é = 'ü', a, b\n", lambda t: t.replace("a", "ö"), "é = 'ü', ö, b\n"),
    "in an f-string": ("x = f'{a} {b!r}'\n", lambda t: t.replace("b", "c"), "x = f'{a} {c!r}'\n"),
    "several in one expression": (
        "f(a, b, c)\n",
        lambda t: [t.replace("c", "z"), t.replace("a", "x")],
        "f(x, b, z)\n",
    ),
    "an expression that is a statement": ("a()\n", lambda t: t.replace("a()", "b"), "b\n"),
    "a decorator": ("@a\ndef f(): pass\n", lambda t: t.replace("a", "b.c(1)"), "@b.c(1)\ndef f(): pass\n"),
    # ---- arguments
    "the only keyword": (
        "a.backward(retain_graph=True)\n",
        lambda t: t.drop("a.backward(retain_graph=True)", "retain_graph"),
        "a.backward()\n",
    ),
    "the only argument, with space": ("f( a , )\n", lambda t: t.drop("f( a , )", 0), "f()\n"),
    "the only one, on lines of its own": (
        "f(\n    a,  # c\n)\n",
        lambda t: t.drop("f(\n    a,  # c\n)", 0),
        "f()\n",
    ),
    "a generator": ("f(x for x in y)\n", lambda t: t.drop("f(x for x in y)", 0), "f()\n"),
    "the first": ("f(a, b)\n", lambda t: t.drop("f(a, b)", 0), "f(b)\n"),
    "the middle": ("f(a , b, *c)\n", lambda t: t.drop("f(a , b, *c)", 1), "f(a , *c)\n"),
    "the last": ("f(a, *b)\n", lambda t: t.drop("f(a, *b)", 1), "f(a)\n"),
    "the last before a comma": ("f(a, b,)\n", lambda t: t.drop("f(a, b,)", 1), "f(a,)\n"),
    "a positional one after a keyword": ("f(k=1, *b)\n", lambda t: t.drop("f(k=1, *b)", 0), "f(k=1)\n"),
    "two of a call": ("f(a, b, k=1, **d)\n", lambda t: t.drop("f(a, b, k=1, **d)", "k", 0), "f(b, **d)\n"),
    "all of a call": ("f(a, k=1)\n", lambda t: t.drop("f(a, k=1)", 0, "k"), "f()\n"),
    "one per line, the first": (
        "f(\n    a,  # about a\n    b,  # about b\n)\n",
        lambda t: t.drop("f(\n    a,  # about a\n    b,  # about b\n)", 0),
        "f(\n    b,  # about b\n)\n",
    ),
    "one per line, the last": (
        "f(\n    a,  # about a\n    # about b\n    b,  # b, too\n    # end\n)\n",
        lambda t: t.drop("f(\n    a,  # about a\n    # about b\n    b,  # b, too\n    # end\n)", 1),
        "f(\n    a,  # about a\n    # end\n)\n",
    ),
    "one per line, the last, without a comma": (
        "f(\n    a,\n    b\n)\n",
        lambda t: t.drop("f(\n    a,\n    b\n)", 1),
        "f(\n    a\n)\n",
    ),
    "a comment above several arguments stays": (
        "f(\n    # both\n    a,\n    b,\n)\n",
        lambda t: t.drop("f(\n    # both\n    a,\n    b,\n)", 0),
        "f(\n    # both\n    b,\n)\n",
    ),
    "aligned with the parenthesis, the last": (
        "if x:\n    f(a,  # about a\n      b)\n",
        lambda t: t.drop("f(a,  # about a\n      b)", 1),
        "if x:\n    f(a  # about a\n      )\n",
    ),
    "aligned with the parenthesis, the first": (
        "f(a,\n  b)\n",
        lambda t: t.drop("f(a,\n  b)", 0),
        "f(b)\n",
    ),
    "at the end of a line with others": (
        "f(a, b,  # both\n  c)\n",
        lambda t: t.drop("f(a, b,  # both\n  c)", 1),
        "f(a,  # both\n  c)\n",
    ),
    "commas first": (
        "f(a  # about a\n  , b)\n",
        lambda t: t.drop("f(a  # about a\n  , b)", 1),
        "f(a  # about a\n  ,)\n",
    ),
    "an argument and another's expression": (
        "f(a, b=c)\n",
        lambda t: [*t.drop("f(a, b=c)", 0), t.replace("c", "d")],
        "f(b=d)\n",
    ),
    "an argument of the called expression": (
        "f(a)(b)\n",
        lambda t: [*t.drop("f(a)", 0), *t.drop("f(a)(b)", 0)],
        "f()()\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_edit(name: str) -> None:
    before, make, after = CASES[name]
    assert only(before, *made(before, make)) == after


REFUSED: dict[str, tuple[str, Make, str]] = {
    "no edits": ("a()\n", lambda t: [], "no edits"),
    "no such statement": ("a()\n", lambda t: RemoveStatement(Span(1, 0, 1, 2)), "no statement at 1:0-1:2"),
    "no such line": ("a()\n", lambda t: RemoveStatement(Span(9, 0, 9, 2)), "there is no line 9"),
    "no such column": ("a()\n", lambda t: ReplaceExpression(Span(1, 0, 1, 44), "b"), "has no column 44"),
    "no such expression": ("a + b\n", lambda t: ReplaceExpression(Span(1, 0, 1, 3), "b"), "no expression"),
    "a pattern": ("match x:\n    case 1: pass\n", lambda t: t.replace("1", "f()"), "no expression"),
    "a starred element": ("[*a]\n", lambda t: t.replace("*a", "b"), "no expression"),
    "an elif": ("if x: a()\nelif y: b()\n", lambda t: t.remove("elif"), "elif"),
    "not a call": ("a.b\n", lambda t: t.drop("a.b", 0), "not a call"),
    "no such keyword": ("f(a)\n", lambda t: t.drop("f(a)", "k"), "no argument 'k'"),
    "no such position": ("f(a)\n", lambda t: t.drop("f(a)", 1), "no argument 1"),
    "not an expression": ("f(a)\n", lambda t: t.replace("a", "x ="), "not an expression"),
    "not a statement": ("a()\n", lambda t: t.insert("after", "a()", "x ="), "does not parse"),
    "no statement": ("a()\n", lambda t: t.insert("after", "a()", "# c"), "no statement"),
    "nested expressions": ("f(a)\n", lambda t: [t.replace("f(a)", "g"), t.replace("a", "b")], "overlap"),
    "an argument in a replaced call": (
        "f(a)\n",
        lambda t: [t.replace("f(a)", "g"), *t.drop("f(a)", 0)],
        "overlap",
    ),
    "an expression in a dropped argument": (
        "f(a.b)\n",
        lambda t: [*t.drop("f(a.b)", 0), t.replace("a", "c")],
        "overlap",
    ),
    "an edit in a removed statement": (
        "if x: a()\n",
        lambda t: [t.remove("if"), t.replace("x", "y")],
        "overlap",
    ),
    "removed twice": ("a()\n", lambda t: [t.remove("a()"), t.remove("a()")], "overlap"),
    "moved twice": ("a()\nb()\n", lambda t: [t.move("a()", "after", "b()")] * 2, "moved twice"),
    "moved and removed": (
        "a()\nb()\n",
        lambda t: [t.move("a()", "after", "b()"), t.remove("a()")],
        "moved and removed",
    ),
    "out of what is removed": (
        "if x:\n    a()\nb()\n",
        lambda t: [t.move("a()", "after", "b()"), t.remove("if")],
        "moved and removed",
    ),
    "into what is removed": (
        "if x:\n    a()\n",
        lambda t: [t.remove("if"), t.insert("after", "a()", "b()")],
        "inside a removed",
    ),
    "beside what is moved": (
        "a()\nb()\n",
        lambda t: [t.move("a()", "after", "b()"), t.insert("after", "a()", "c()")],
        "an anchor and moved",
    ),
    "into itself": ("if x:\n    a()\n", lambda t: t.move("if", "after", "a()"), "circle"),
    "into each other": (
        "if x:\n    a()\nif y:\n    b()\n",
        lambda t: [t.move("if x", "after", "b()"), t.move("if y", "after", "a()")],
        "circle",
    ),
    "a return out of its function": (
        "def f():\n    return 1\n",
        lambda t: t.move("return", "after", "def"),
        "outside function",
    ),
    "before a future import": (
        "from __future__ import x\n".replace("x", "annotations"),
        lambda t: t.insert("before", "from", "a()"),
        "beginning of the file",
    ),
    "an assignment to a call": ("a = 1\n", lambda t: t.replace("a", "f()"), "cannot assign"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, make, why = REFUSED[name]
    assert why in reason(text, *made(text, make))


# ---- several fixes


def outcome(text: str, *fixes: list[Edit]) -> tuple[str, tuple[int, ...], tuple[int, ...], list[int]]:
    rewrite = apply_fixes(text, fixes)
    return rewrite.text, rewrite.applied, rewrite.deferred, [index for index, _ in rewrite.failed]


def test_independent_fixes_are_applied_together() -> None:
    t = Source("a(x, k=1); b()\nif c: d()\n")
    assert outcome(
        t.text,
        [t.replace("x", "y")],
        [t.remove("b()")],
        [t.insert("after", "d()", "new()")],
        [t.move("a(", "before", "d()")],
    ) == ("a(y, k=1)\nif c:\n    d()\n    new()\n", (0, 1, 2), (3,), [])


CONFLICTS: dict[str, tuple[str, Make, Make]] = {
    "the same expression": ("a\n", lambda t: t.replace("a", "b"), lambda t: t.replace("a", "c")),
    "one in the other": ("f(a)\n", lambda t: t.replace("a", "b"), lambda t: t.replace("f(a)", "c")),
    "two arguments of a call": ("f(a, b)\n", lambda t: t.drop("f(a, b)", 0), lambda t: t.drop("f(a, b)", 1)),
    "an argument of a changed list": (
        "f(a, b)\n",
        lambda t: t.drop("f(a, b)", 0),
        lambda t: t.replace("b", "c"),
    ),
    "removed and changed": ("f(a)\n", lambda t: t.replace("a", "b"), lambda t: t.remove("f(a)")),
    "moved and changed": (
        "f(a)\nb()\n",
        lambda t: t.replace("a", "b"),
        lambda t: t.move("f(a)", "after", "b()"),
    ),
    "moved by two": (
        "a()\nb()\nc()\n",
        lambda t: t.move("a()", "after", "b()"),
        lambda t: t.move("a()", "after", "c()"),
    ),
    "beside what is removed": (
        "a()\n",
        lambda t: t.remove("a()"),
        lambda t: t.insert("before", "a()", "new()"),
    ),
    "in what is moved": (
        "if x:\n    a()\nb()\n",
        lambda t: t.insert("before", "a()", "new()"),
        lambda t: t.move("if", "after", "b()"),
    ),
    "in a function with what decorates it": (
        "@d\ndef f():\n    pass\n",
        lambda t: t.replace("d", "e"),
        lambda t: t.remove("def"),
    ),
    "the same place": (
        "a()\n",
        lambda t: t.insert("after", "a()", "x()"),
        lambda t: t.insert("after", "a()", "y()"),
    ),
    "the same place by other names": (
        "a()\nb()\n",
        lambda t: t.insert("after", "a()", "x()"),
        lambda t: t.insert("before", "b()", "y()"),
    ),
    "moved to where another inserts": (
        "a()\nb()\nc()\n",
        lambda t: t.insert("before", "b()", "x()"),
        lambda t: t.move("c()", "after", "a()"),
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
@pytest.mark.parametrize("swapped", [False, True])
def test_the_first_of_conflicting_fixes_wins(name: str, swapped: bool) -> None:
    text, *makes = CONFLICTS[name]
    fixes = [made(text, make) for make in (reversed(makes) if swapped else makes)]
    assert outcome(text, *fixes) == (only(text, *fixes[0]), (0,), (1,), [])


def test_no_conflict_where_only_the_block_is_shared() -> None:
    t = Source("if x:\n    a()\n    b()\n    c()\n")
    fixes: list[list[Edit]] = [[t.remove("a()")], [t.remove("b()")], [t.remove("c()")]]
    assert outcome(t.text, *fixes) == ("if x:\n    pass\n", (0, 1, 2), (), [])


def test_a_fix_that_fails_neither_spoils_nor_displaces_others() -> None:
    t = Source("def f():\n    return a\nb()\n")
    assert outcome(
        t.text,
        [t.insert("before", "b()", "x()")],
        [t.move("return", "after", "b()")],
        [t.replace("a", "c")],
        [RemoveStatement(Span(3, 0, 3, 1))],
        [t.insert("before", "b()", "y()")],
    ) == ("def f():\n    return c\nx()\nb()\n", (0, 2), (4,), [1, 3])


def test_a_fix_is_applied_whole_or_not_at_all() -> None:
    t = Source("a()\nb()\n")
    assert outcome(t.text, [t.remove("a()"), RemoveStatement(Span(7, 0, 7, 1))]) == (t.text, (), (), [0])


def test_a_program_that_never_compiled_can_be_rewritten() -> None:
    t = Source("await a()\nreturn 1\n")  # a notebook's cell
    assert only(t.text, t.replace("1", "2")) == "await a()\nreturn 2\n"


@pytest.mark.parametrize("text", ["a(\n", "\tx = 1\n  y = 2\n", "\0", "("])
def test_a_text_that_does_not_parse_fails_every_fix(text: str) -> None:
    rewrite = apply_fixes(text, [[RemoveStatement(Span(1, 0, 1, 1))]] * 2)
    assert rewrite.text == text
    assert [index for index, _ in rewrite.failed] == [0, 1]
    assert all(why.startswith("the source does not parse: ") for _, why in rewrite.failed)


def test_what_libcst_does_not_reproduce_is_not_touched() -> None:
    t = Source("a()\n\x0cb()\n")
    assert reason(t.text, t.remove("a()")).endswith("it reads line 2 differently")


def test_without_fixes_nothing_is_even_parsed() -> None:
    assert apply_fixes("a(", []) == Rewrite("a(")


def test_twenty_fixes_in_a_thousand_lines_are_made_in_one_pass() -> None:
    block = """
def step_{0}(net, opt, data):
    for x, y in data:  # one pass
        opt.zero_grad()
        out = net(x.to(device), scale=0.{0}, mode="train")
        loss = criterion(out, y) + sum(p.pow(2).sum() for p in net.parameters())
        loss.backward(retain_graph=True)
        if loss.item() > best[{0}]:
            best[{0}] = loss.item(); print(f"{{loss}}")
        opt.step()
"""
    t = Source("".join(block.format(number) for number in range(100)))
    assert t.text.count("\n") == 1000
    calls = [node for node in ast.walk(t.tree) if isinstance(node, ast.Call) and node.keywords]
    fixes = [[RemoveArgument(Span.of(call), str(call.keywords[-1].arg))] for call in calls[::10]]
    rewrite = apply_fixes(t.text, fixes)
    assert len(rewrite.applied) == 20
    assert not rewrite.deferred
    assert rewrite.text.count("\n") == 1000


# ---- pieces of source


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a", "a.d()"),
        ("a.b", "a.b.d()"),
        ("a(b)", "a(b).d()"),
        ("a[0]", "a[0].d()"),
        ("(a + b)", "(a + b).d()"),
        ("( a )", "( a ).d()"),
        ("(a, b)", "(a, b).d()"),
        ("(a) + (b)", "((a) + (b)).d()"),
        ("a, b", "(a, b).d()"),
        ("(a), (b)", "((a), (b)).d()"),
        ("-a", "(-a).d()"),
        ("a ** b", "(a ** b).d()"),
        ("not a", "(not a).d()"),
        ("a if b else c", "(a if b else c).d()"),
        ("lambda: a", "(lambda: a).d()"),
        ("await a", "(await a).d()"),
        ("1", "(1).d()"),
        ("1.5", "(1.5).d()"),
        ("True", "True.d()"),
        ("'a'", "'a'.d()"),
        ("'a' 'b'", "'a' 'b'.d()"),
        ("f'{a}'", "f'{a}'.d()"),
        ("[a]", "[a].d()"),
        ("{a: b}", "{a: b}.d()"),
        ("[a for a in b]", "[a for a in b].d()"),
        ("(a for a in b)", "(a for a in b).d()"),
        ("(a := b)", "(a := b).d()"),
        ("a < b", "(a < b).d()"),
    ],
)
def test_call_method(code: str, expected: str) -> None:
    node = ast.parse(code, mode="eval").body
    assert call_method(code, node, "d") == expected
    called = ast.parse(expected, mode="eval").body
    assert isinstance(called, ast.Call)
    assert isinstance(called.func, ast.Attribute)
    assert ast.dump(called.func.value) == ast.dump(node)


def test_call_method_with_arguments() -> None:
    assert call_method("a", ast.Name("a"), "requires_grad_", "False") == "a.requires_grad_(False)"


@given(st.text(alphabet="aé🙂\n\r\x0c\x1c\u2028 ", max_size=40))
def test_lines_are_those_of_python(text: str) -> None:
    expected = re.split(r"\r\n|\r|\n", text)
    lines = Lines(text)
    for number, line in enumerate(expected, 1):
        whole = Span(number, 0, number, len(line.encode()))
        assert lines.segment(whole) == line
        with pytest.raises(ValueError, match="no column"):
            lines.offset(number, len(line.encode()) + 1)
    with pytest.raises(ValueError, match="no line"):
        lines.offset(len(expected) + 1, 0)
    numbered = range(1, len(expected) + 1)
    assert "".join(line + lines.newline(number) for number, line in zip(numbered, expected)) == text


# ---- at random


class Program:
    """Writes a random program in every layout that a statement can have."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.names = 0
        self.lines: list[str] = ["#!/usr/bin/env python"] if draw.random() < 0.2 else []
        if draw.random() < 0.3:
            self.lines.append('"""Module."""')
        self.block("", 0)
        text = "\n".join(self.lines) + draw.choice(["", "\n", "\n", "\n\n"])
        newline = draw.choice(["\n", "\n", "\r\n", "mixed"])
        choices = ["\n", "\r\n", "\r"] if newline == "mixed" else [newline]
        self.text = "".join(draw.choice(choices) if char == "\n" else char for char in text)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def expression(self, depth: int = 0) -> str:
        kind = self.draw.randrange(9 if depth < 2 else 2)
        if kind == 0:
            return self.name()
        if kind == 1:
            return str(self.draw.randrange(99))
        if kind == 2:
            operator = self.draw.choice(["+", "*", "**", "-", "and", "<", "in"])
            return f"{self.expression(depth + 1)} {operator} {self.expression(depth + 1)}"
        if kind == 3:
            return f"({self.expression(depth + 1)}, {self.expression(depth + 1)})"
        if kind == 4:
            return f"-{self.expression(depth + 1)}"
        if kind == 5:
            return f"({self.expression(depth + 1)})"
        if kind == 6:
            return f"[{self.expression(depth + 1)}]if {self.expression(depth + 1)} else é{self.name()}"
        arguments = [self.expression(depth + 1) for _ in range(self.draw.randrange(4))]
        arguments += [f"{self.name()}={self.expression(depth + 1)}" for _ in range(self.draw.randrange(3))]
        if kind == 7 or not arguments:
            return f"{self.name()}.m({', '.join(arguments)})"
        end = self.draw.choice([",\n    )", "\n    )", ")"])
        return f"{self.name()}(\n        " + f",  # {self.name()}\n        ".join(arguments) + end

    def simple(self) -> str:
        kind = self.draw.randrange(5)
        if kind == 0:
            return f"{self.name()} = 1 + \\\n  2"
        if kind == 1:
            return f's = """x\n  {self.name()}\n"""'
        if kind == 2:
            return f"{self.name()} += {self.expression()}"
        return f"{self.name()} = {self.expression()}" if kind == 3 else f"{self.name()}({self.expression()})"

    def joined(self) -> str:
        parts = [self.simple() for _ in range(self.draw.choice([1, 1, 1, 2, 3]))]
        return self.draw.choice(["; ", ";", " ;  "]).join(parts) + self.draw.choice(["", "", ";"])

    def comment(self) -> str:
        return f"# {self.name()}"

    def end(self) -> str:
        return self.draw.choice(["", "", "  " + self.comment(), " "])

    def suite(self, indent: str, head: str, depth: int) -> None:
        if self.draw.random() < 0.3:
            self.lines.append(f"{indent}{head} {self.joined()}{self.end()}")
        else:
            self.lines.append(indent + head + self.end())
            self.block(indent + self.draw.choice(["    ", "    ", "\t", "  "]), depth + 1)

    def space(self, indent: str) -> None:
        choices = ["", "", indent + self.comment(), indent + self.comment()]
        self.lines += [self.draw.choice(choices) for _ in range(self.draw.choice([0, 0, 0, 1, 2]))]

    def block(self, indent: str, depth: int) -> None:
        for _ in range(self.draw.randrange(1, 4)):
            self.space(indent)
            self.statement(indent, depth)
        self.space(indent)

    def statement(self, indent: str, depth: int) -> None:
        kind = self.draw.randrange(14) if depth < 3 else 0
        maybe = self.draw.random() < 0.5
        if kind < 6:
            self.lines.append(indent + self.joined() + self.end())
        elif kind == 6:
            self.suite(indent, f"if {self.name()}:", depth)
            if maybe:
                self.suite(indent, f"elif {self.name()}:", depth)
            self.suite(indent, "else:", depth)
        elif kind == 7:
            self.suite(indent, f"for {self.name()} in {self.name()}:", depth)
        elif kind == 8:
            self.suite(indent, f"while {self.name()}:", depth)
            if maybe:
                self.suite(indent, "else :", depth)
        elif kind == 9:
            self.suite(indent, f"with {self.name()} as {self.name()}:", depth)
        elif kind == 10:
            self.suite(indent, "try:", depth)
            self.suite(indent, f"except {self.name()}:", depth)
            if maybe:
                self.suite(indent, "finally:", depth)
        elif kind == 11:
            self.lines.append(f"{indent}match {self.name()}:")
            self.suite(indent + "  ", "case 1:", depth)
            self.suite(indent + "  ", "case _:", depth)
        elif kind == 12:
            if maybe:
                self.lines.append(f"{indent}@{self.name()}")
            self.lines.append(f"{indent}{self.draw.choice(['', 'async '])}def {self.name()}():{self.end()}")
            if self.draw.random() < 0.5:
                self.lines.append(f'{indent}    """Doc {self.name()}."""{self.end()}')
            self.block(indent + "    ", depth + 1)
        else:
            self.suite(indent, f"class {self.name()}:", depth)


CODES = ["q", "q.detach()", "a + b", "-q", "lambda: 0", "(a, b)", "f(\n  1)", "not q", "a\n+ b", "[1]"]
STATEMENTS = [
    "new()",
    "new(); more()",
    "with torch.no_grad():\n    new(1)\n    new(2)",
    "# lead\nnew()",
    "new()\n# trail",
    "if q:\n  new()\n\n  # mid\n  new2()\nelse: new3()",
    's2 = """a\nb"""',
]


def random_edit(draw: random.Random, tree: ast.Module) -> Edit:
    nodes = list(ast.walk(tree))

    def statement() -> Span:
        return Span.of(draw.choice([node for node in nodes if isinstance(node, ast.stmt)]))

    where = draw.choice(WHERE)
    kind = draw.randrange(8)
    if kind == 0:
        return RemoveStatement(statement())
    if kind <= 2:
        return MoveStatement(statement(), statement(), where)
    if kind <= 4:
        return InsertStatement(statement(), where, draw.choice(STATEMENTS))
    calls = [node for node in nodes if isinstance(node, ast.Call) and (node.args or node.keywords)]
    if kind == 5 and calls:
        call = draw.choice(calls)
        arguments = [*range(len(call.args)), *(str(keyword.arg) for keyword in call.keywords)]
        return RemoveArgument(Span.of(call), draw.choice(arguments))
    read = [
        node
        for node in nodes
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store)
    ]
    return (
        ReplaceExpression(Span.of(draw.choice(read)), draw.choice(CODES))
        if read
        else RemoveStatement(statement())
    )


class Oracle:
    """What the fixes mean, by a way that shares nothing with the rewriting: on ``ast``."""

    def __init__(self, text: str, edits: Sequence[Edit]) -> None:
        self.tree = ast.parse(text)
        statements: dict[Span, ast.stmt] = {}
        expressions: dict[Span, ast.expr] = {}
        documented: set[ast.AST] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt):
                statements[Span.of(node)] = node
            elif isinstance(node, ast.expr):
                expressions.setdefault(Span.of(node), node)
            if isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ) and ast.get_docstring(node):
                documented.add(node.body[0])
        self.gone: set[ast.AST] = set()
        self.dropped: set[ast.AST] = set()
        self.replaced: dict[ast.AST, ast.AST] = {}
        self.put: dict[tuple[ast.AST, str], list[ast.stmt]] = {}
        for edit in edits:
            match edit:
                case ReplaceExpression(span, code):
                    self.replaced[expressions[span]] = ast.parse(f"({code})", mode="eval").body
                case RemoveArgument(span, argument):
                    call = expressions[span]
                    assert isinstance(call, ast.Call)
                    named: dict[object, ast.AST] = {keyword.arg: keyword for keyword in call.keywords}
                    self.dropped.add(named[argument] if isinstance(argument, str) else call.args[argument])
                case RemoveStatement(span):
                    self.gone.add(statements[span])
                case InsertStatement(anchor, where, code):
                    self.beside(statements[anchor], where, documented).extend(ast.parse(code).body)
                case MoveStatement(span, anchor, where):
                    self.gone.add(statements[span])
                    self.beside(statements[anchor], where, documented).append(statements[span])

    def beside(self, anchor: ast.stmt, where: str, documented: set[ast.AST]) -> list[ast.stmt]:
        return self.put.setdefault((anchor, "after" if anchor in documented else where), [])

    def dump(self) -> str:
        return ast.dump(self.copy(self.tree))

    def copy(self, node: ast.AST) -> ast.AST:
        if node in self.replaced:
            return self.replaced[node]
        new = type(node)()
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                block = self.block(value)
                value = block or ([] if isinstance(node, ast.Module) else [ast.Pass()])
            elif isinstance(value, list):
                value = [
                    self.copy(each) if isinstance(each, ast.AST) else each
                    for each in value
                    if each not in self.dropped
                ]
            elif isinstance(value, ast.AST):
                value = self.copy(value)
            setattr(new, name, value)
        return new

    def block(self, statements: list[ast.stmt]) -> list[ast.AST]:
        out: list[ast.AST] = []
        for statement in statements:
            out += map(self.copy, self.put.get((statement, "before"), []))
            out += [] if statement in self.gone else [self.copy(statement)]
            out += map(self.copy, self.put.get((statement, "after"), []))
        return out


def lines_at_stake(tree: ast.Module, edits: Sequence[Edit]) -> set[int]:
    """The lines that the edits may change or move, and the ones that are joined with them."""
    stake: set[int] = set()
    for edit in edits:
        match edit:
            case ReplaceExpression(span) | RemoveArgument(span) | RemoveStatement(span):
                stake.update(range(span.line, span.end_line + 1))
            case MoveStatement(span, anchor):
                stake.update(range(span.line, span.end_line + 1), (anchor.line, anchor.end_line))
            case InsertStatement(anchor):
                stake.update((anchor.line, anchor.end_line))
    joined = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno if body and body[0].lineno == node.lineno else node.lineno
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
            joined.append(set(range(first, (last if body else Span.of(node).end_line) + 1)))
    while any(lines & stake and not lines <= stake for lines in joined):
        stake.update(*(lines for lines in joined if lines & stake))
    return stake


def is_subsequence(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(any(line == other for other in rest) for line in part)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_edits_of_random_programs(draw: random.Random) -> None:
    text = Program(draw).text
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return  # some comparisons and conditional expressions do not chain
    counts = [draw.choice([1, 1, 2, 3]) for _ in range(draw.choice([1, 1, 2, 4]))]
    fixes = [[random_edit(draw, tree) for _ in range(count)] for count in counts]
    rewrite = apply_fixes(text, fixes)

    failed = [index for index, _ in rewrite.failed]
    assert sorted([*rewrite.applied, *rewrite.deferred, *failed]) == list(range(len(fixes)))
    applied = [edit for index in rewrite.applied for edit in fixes[index]]
    assert ast.dump(ast.parse(rewrite.text)) == Oracle(text, applied).dump()

    # The lines that no edit is about are all there, in their order; blank lines and comments may
    # have gone with what they belonged to.
    stake = lines_at_stake(tree, applied)
    split = re.split(r"\r\n|\r|\n", text)
    kept = [line for number, line in enumerate(split, 1) if number not in stake]
    kept = [line for line in kept if line.strip() and not line.lstrip().startswith("#")]
    assert is_subsequence(kept, re.split(r"\r\n|\r|\n", rewrite.text))
    newlines = set(re.findall(r"\r\n|\r|\n", text))
    if newlines in ({"\n"}, {"\r\n"}):
        assert set(re.findall(r"\r\n|\r|\n", rewrite.text)) <= newlines
    if rewrite.text:
        assert rewrite.text.endswith(("\r", "\n")) == text.endswith(("\r", "\n"))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_an_insertion_changes_nothing_else(draw: random.Random) -> None:
    """Every line of the original is there, comments and blank lines included, but for split lines."""
    text = Program(draw).text
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    anchor = draw.choice([node for node in ast.walk(tree) if isinstance(node, ast.stmt)])
    where = draw.choice(WHERE)
    rewrite = apply_fixes(text, [[InsertStatement(Span.of(anchor), where, "new()")]])
    if rewrite.failed:
        return  # an elif, or a text that libcst does not reproduce
    split = re.split(r"\r\n|\r|\n", text)
    shared = lines_at_stake(tree, [InsertStatement(Span.of(anchor), where, "new()")])
    kept = [line for number, line in enumerate(split, 1) if number not in shared]
    assert is_subsequence(kept, re.split(r"\r\n|\r|\n", rewrite.text))
    assert re.sub(r"\s|;", "", rewrite.text.replace("new()", "", 1)) == re.sub(r"\s|;", "", text)
