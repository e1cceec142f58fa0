"""Whether the variables that a rewrite uses are bound where it uses them, and are what every path has."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from gradfix.core.codemod import InsertStatement, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rewriting.rewrite import apply_fixes
from gradfix.rules import bindings

BOUND = {
    "before the loop": "h = zeros()\nfor x in data:\n    HERE\n    h = net(x, h)",
    "read there in any case": "if cold:\n    h = zeros()\nfor x in data:\n    HERE\n    h = net(x, h)",
    "behind what binds it": "for x in data:\n    h = net(x)\n    HERE",
    "in both branches": "if a:\n    h = one()\nelse:\n    h = other()\nHERE",
    "the other branch ends": "if a:\n    h = one()\nelse:\n    raise ValueError\nHERE",
    "the other case ends": "match a:\n    case 1:\n        h = one()\n    case _:\n        exit()\nHERE",
    "a loop makes a pass": "for k in range(3):\n    h = net(k)\nHERE",
    "an endless loop is left behind it": "while True:\n    h = net()\n    if h > 0:\n        break\nHERE",
    "in a context": "with context() as c:\n    h = c\nHERE",
    "in a try and its handler": "try:\n    h = one()\nexcept OSError:\n    h = other()\nHERE",
    "a parameter": "def f(h):\n    HERE",
    "in an expression": "use(h := net())\nHERE",
    "read before": "if a:\n    h = one()\nprint(h)\nHERE",
    "of a starred import": "from settings import *\nHERE",
}
UNBOUND = {
    "at the first pass": "for x in data:\n    HERE\n    for k in range(3):\n        h = net(h if k else x)",
    "bound in between": "for x in data:\n    HERE\n    if first:\n        h = zeros()\n    h = net(x, h)",
    "in one branch": "if a:\n    h = one()\nHERE",
    "by a loop over nothing": "for x in data:\n    h = net(x)\nHERE",
    "by a loop's own variable": "HERE\nfor h in optimizers:\n    h.step()",
    "in a try": "try:\n    h = one()\nexcept OSError:\n    pass\nHERE",
    "where errors are suppressed": "with suppress(OSError):\n    h = one()\nHERE",
    "read under a condition": "if a:\n    h = one()\nprint(a and h)\nHERE",
    "read in a comprehension": "[h for h in data]\nHERE",
    "deleted": "h = zeros()\ndel h\nHERE",
    "of the file, and bound in the function from then on": "h = zeros()\ndef f(x):\n    HERE\n    return h",
    "of another function": "def f():\n    h = zeros()\ndef g():\n    HERE",
    "in one case": "match a:\n    case 1:\n        h = one()\nHERE",
}


def fits(program: str, code: str, place: str = "HERE") -> bool:
    """Whether ``code`` may be written where the program says so."""
    tree = ast.parse(program)
    anchor = next(s for s in ast.walk(tree) if isinstance(s, ast.Expr) and ast.unparse(s) == place)
    edits = [InsertStatement(Span.of(anchor), "before", code)]
    return bindings.variables_hold(tree, ast.parse(apply_fixes(program, [edits]).text), edits)


@pytest.mark.parametrize("program", BOUND.values(), ids=list(BOUND))
def test_what_is_bound_may_be_used(program: str) -> None:
    assert fits(program, "h = h.detach()")


@pytest.mark.parametrize("program", UNBOUND.values(), ids=list(UNBOUND))
def test_what_some_path_may_not_have_bound_is_not_used(program: str) -> None:
    assert not fits(program, "h = h.detach()")
    assert fits(program, "unrelated = 1")


def test_what_is_only_read_may_be_bound_around_the_function() -> None:
    around = "use, zeros = print, int\nh = zeros()\ndef f(x):\n    HERE"
    assert fits(around, "use(h)")
    assert fits("use = print\ndef outer():\n    h = 1\n    def f(x):\n        HERE", "use(h)")
    assert fits("use = print\ndef f(x):\n    HERE\ndef g():\n    global h\n    h = 1", "use(h)")
    assert fits("def f(x):\n    HERE", "print(len(x))")
    assert not fits("use = print\ndef f(x):\n    print", "use(h)", "print")


def test_a_name_that_nothing_binds_is_new_only_where_all_others_are_bound() -> None:
    assert not fits("x = 1\nprint", "log(x)", "print")
    assert fits("x = given\nprint", "log(x)", "print")


FORMS = {
    "p = D(fake)\nHERE": True,
    "if a:\n    p = D(fake)\nelse:\n    p = D(fake.detach())\nHERE": True,
    "p = None\np = D(fake)\nHERE": True,
    "if a:\n    p = D(fake)\n    HERE\nelse:\n    p = D(fake, 1)": True,
    "if a:\n    p = D(fake)\nelse:\n    p = D(fake, label)\nHERE": False,
    "p = D(fake)\nif a:\n    p = D(noisy)\nHERE": False,
    "p, q = D(fake), 1\nif a:\n    p, q = D(noisy), 2\nHERE": False,
    "try:\n    p = D(noisy)\nexcept OSError:\n    p = D(fake)\nHERE": False,
    "for k in data:\n    HERE\n    p = D(fake)\n    if a:\n        p = D(noisy)": False,
}


@pytest.mark.parametrize("program", FORMS)
def test_what_is_computed_again_is_what_every_path_has(program: str) -> None:
    written = f"D = fake = noisy = label = a = data = 0\n{program}"
    assert fits(written, "p = D(fake)") is FORMS[program]
    # A value of another form is no copy of any.
    assert fits(written, "p = p.detach()") is fits(written, "p = p * 1")


def test_a_use_that_is_replaced_is_what_every_path_has() -> None:
    for other, fine in (("D(fake)", True), ("D(noisy)", False)):
        text = dedent(f"""
            D = fake = noisy = a = 0
            if a:
                p = D(fake)
            else:
                p = {other}
            loss = -p
            """)
        tree = ast.parse(text)
        use = next(n.operand for n in ast.walk(tree) if isinstance(n, ast.UnaryOp))
        edits = [ReplaceExpression(Span.of(use), "D(fake)")]
        after = ast.parse(apply_fixes(text, [edits]).text)
        assert bindings.variables_hold(tree, after, edits) is fine


def test_a_use_may_be_changed_where_it_stands() -> None:
    """The branch that binds it and the one that uses it may hang together."""
    text = "if a:\n    h = one()\nif a:\n    use(h)\n"
    tree = ast.parse(text)
    (use,) = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "h" and n.lineno == 4)
    edits = [ReplaceExpression(Span.of(use), "h.detach()")]
    assert bindings.variables_hold(tree, ast.parse(apply_fixes(text, [edits]).text), edits)
