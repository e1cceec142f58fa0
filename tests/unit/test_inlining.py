"""A helper's call that is written out: only where it means the same there."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from gradfix.autograd.program import Program
from gradfix.rules.inlining import written_out


def written(helper: str, call: str, around: str = "{call}") -> str | None:
    """The first call of ``verdict`` in a program, written out with ``maker(...)`` marked."""
    text = dedent(helper).strip() + "\n\n" + dedent(around).strip().replace("{call}", call) + "\n"
    program = Program(ast.parse(text), text, Path("script.py"))
    nodes = list(ast.walk(program.tree))
    changed = next(n for n in nodes if isinstance(n, ast.Call) and ast.unparse(n.func) == "maker")
    site = next(n for n in nodes if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("verdict"))
    return written_out(program, site, changed, lambda inner: f"<{inner}>")


PLAIN = "def verdict(x):\n    return judge(maker(x))"


@pytest.mark.parametrize(
    ("helper", "call", "expected"),
    [
        (PLAIN, "verdict(noise)", "judge(<maker(noise)>)"),
        (PLAIN, "verdict(x=a + b)", "judge(<maker(a + b)>)"),
        (PLAIN, "verdict(torch.randn(6, 3))", "judge(<maker(torch.randn(6, 3))>)"),
        ("def verdict(x):\n    'Says.'\n    return judge(maker(x))", "verdict(z)", "judge(<maker(z)>)"),
        ("def verdict(x, k=2):\n    return judge(maker(k * x))", "verdict(z)", "judge(<maker(2 * z)>)"),
        ("def verdict(x, k):\n    return k * judge(maker(x))", "verdict(z, a.b)", "a.b * judge(<maker(z)>)"),
        ("def verdict(x):\n    return maker(x)", "verdict(z)", "<maker(z)>"),
        ("def verdict(x):\n    return maker(2 * x)", "verdict(a + b)", "<maker(2 * (a + b))>"),
    ],
)
def test_what_a_helper_returns_is_written_with_what_it_is_given(
    helper: str, call: str, expected: str
) -> None:
    assert written(helper, call) == expected


@pytest.mark.parametrize(
    ("helper", "call", "around"),
    [
        # It does more than return an expression on one line.
        ("def verdict(x):\n    print(x)\n    return maker(x)", "verdict(z)", "{call}"),
        ("def verdict(x):\n    return maker(\n        x)", "verdict(z)", "{call}"),
        ("@cached\ndef verdict(x):\n    return maker(x)", "verdict(z)", "{call}"),
        ("def verdict(x):\n    return [maker(y) for y in x]", "verdict(z)", "{call}"),
        # What is handed over is not all known, or would be computed twice, or in another order.
        (PLAIN, "verdict(*both)", "{call}"),
        (PLAIN, "verdict(**both)", "{call}"),
        ("def verdict(*x):\n    return maker(x)", "verdict(z)", "{call}"),
        ("def verdict(x):\n    return maker(x) + x", "verdict(draw())", "{call}"),
        ("def verdict(x, y):\n    return maker(y) + x", "verdict(draw(), draw())", "{call}"),
        ("def verdict(x):\n    return draw() + maker(x)", "verdict(draw())", "{call}"),
        # A name of the helper's is another one where it is called.
        (PLAIN, "verdict(z)", "def train(judge):\n    {call}"),
        (PLAIN, "verdict(z)", "def train(z):\n    maker = z\n    {call}"),
    ],
)
def test_what_would_mean_something_else_is_not_written_out(helper: str, call: str, around: str) -> None:
    assert written(helper, call, around) is None
