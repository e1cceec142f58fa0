"""Decorators and enclosing statements as edits: lines are put in and indented, and nothing else changes."""

from __future__ import annotations

import ast

import pytest

from gradfix.core.codemod import Decorate, Edit, Enclose
from gradfix.core.span import Span
from gradfix.rewriting.rewrite import apply_fixes
from gradfix.rewriting.splice import spliced


def place(tree: ast.Module, kinds: type[ast.stmt] | tuple[type[ast.stmt], ...]) -> Span:
    """The first statement of a kind, the outermost ones first."""
    return Span.of(next(node for node in ast.walk(tree) if isinstance(node, kinds)))


def enclosed(text: str) -> str | None:
    tree = ast.parse(text)
    return spliced(text, tree, [Enclose(place(tree, (ast.For, ast.While)), "off()")])


def decorated(text: str) -> str | None:
    tree = ast.parse(text)
    return spliced(text, tree, [Decorate(place(tree, ast.FunctionDef), "off()")])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for x in y:\n    f(x)\n", "with off():\n    for x in y:\n        f(x)\n"),
        ("while x:\n\tf(x)\n", "with off():\n\twhile x:\n\t\tf(x)\n"),
        ("for x in y:\r\n  f(x)\r\ng()\r\n", "with off():\r\n  for x in y:\r\n    f(x)\r\ng()\r\n"),
        (
            "if a:\n    # why\n    for x in y:  # each\n        f(x)\n\n"
            "        # then\n        g()\n    # end\n",
            "if a:\n    # why\n    with off():\n        for x in y:  # each\n            f(x)\n\n"
            "            # then\n            g()\n    # end\n",
        ),
        (
            'for x in y:\n    f("""a\n  b\n""", x)\n    g(\n        x)\nelse:\n    h()\n',
            'with off():\n    for x in y:\n        f("""a\n  b\n""", x)\n        g(\n            x)\n'
            "    else:\n        h()\n",
        ),
        (
            'for x in y:\n    f(f"""{x}\n  b""")\n    g()\n',
            'with off():\n    for x in y:\n        f(f"""{x}\n  b""")\n        g()\n',
        ),
        ("for x in y:\n    f(x)", "with off():\n    for x in y:\n        f(x)"),
        (
            "for x in y:\n    for z in x:\n        f(z)\n",
            "with off():\n    for x in y:\n        for z in x:\n            f(z)\n",
        ),
    ],
)
def test_a_loop_is_indented(before: str, after: str) -> None:
    assert enclosed(before) == after


@pytest.mark.parametrize("text", ["for x in y: f(x)\n", "a(); b()\nif a: pass\nfor x in y: f(); g()\n"])
def test_a_loop_on_one_line_is_left_alone(text: str) -> None:
    assert enclosed(text) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\n    pass\n", "@off()\ndef f():\n    pass\n"),
        ("class A:\n\t@g\n\tdef f(self): pass\n", "class A:\n\t@g\n\t@off()\n\tdef f(self): pass\n"),
        ("# why\ndef f(\n    a,\n): pass\r\n", "# why\n@off()\ndef f(\n    a,\n): pass\r\n"),
    ],
)
def test_a_decorator_comes_beneath_the_others(before: str, after: str) -> None:
    assert decorated(before) == after


@pytest.mark.parametrize("edit", [Decorate, Enclose])
def test_what_shares_its_line_is_refused_with_a_reason(edit: type[Decorate] | type[Enclose]) -> None:
    text = "for x in y: f(x)\n"
    edits: list[Edit] = [edit(place(ast.parse(text), ast.For), "off()")]
    written = apply_fixes(text, [edits])
    assert written.text == text
    assert "lines to itself" in written.failed[0][1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "for x in y:\n  z = f(\n    x)  # why\n  g(z)\n",
            "for x in y:\n  with off():\n    z = f(\n      x)  # why\n  g(z)\n",
        ),
        ("if a:\n\tz = '''\nb'''\n", "if a:\n\twith off():\n\t\tz = '''\nb'''\n"),
        ("if a:\r\n    z = 1\r\n", "if a:\r\n    with off():\r\n        z = 1\r\n"),
        ("if a:\n    z = 1; g()\n", None),
        ("if a:\n    g(); z = 1\n", None),
        ("if a: z = 1\n", None),
    ],
)
def test_a_simple_statement_is_enclosed_where_it_has_its_lines_to_itself(
    before: str, after: str | None
) -> None:
    tree = ast.parse(before)
    assert spliced(before, tree, [Enclose(place(tree, ast.Assign), "off()")]) == after
