"""Where a change in place is reported and not rewritten, and how a statement is put in another's place."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import indent

import pytest

from gradfix import pipeline, source
from gradfix.codemod import Edit, ReplaceStatement, Span
from gradfix.pipeline import Options, Wishes
from gradfix.preview import spliced
from gradfix.rewrite import apply_fixes
from gradfix.source import Source

PROGRAM = """
import torch
from torch import nn

layer = nn.Linear(4, 4)
held = []
for batch in torch.randn(3, 8, 4):
{body}
    out.mean().backward()
"""


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = pipeline.prepare([], Wishes(verify=False))
    assert isinstance(prepared, Options)
    return prepared


def rewritten(body: str, options: Options) -> tuple[list[str], str]:
    """What is found in a program with this body of its loop, and the body as it is rewritten."""
    code = PROGRAM.format(body=indent(body, "    "))
    parsed = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    result = pipeline.repair(parsed, options)
    found = [attempt.finding.code for attempt in result.applied] + [r.finding.code for r in result.remaining]
    head, tail = PROGRAM.split("{body}")
    after = result.after.decode()
    return found, after[len(head) : len(after) - len(tail)].replace("\n    ", "\n").strip()


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("out = layer(batch).exp()\nout += 1", "out = layer(batch).exp()\nout = out + 1"),
        ("out = layer(batch).exp()\nout **= 1 + 1", "out = layer(batch).exp()\nout = out ** (1 + 1)"),
        (
            "out = layer(batch).exp()\nout.add_(1, alpha=2)  # a",
            "out = layer(batch).exp()\nout = out.add(1, alpha=2)  # a",
        ),
        ("out = -layer(batch).exp()\nout *= out", "out = -layer(batch).exp()\nout = out * out"),
    ],
)
def test_a_new_tensor_takes_its_place(body: str, after: str, options: Options) -> None:
    # The last one overwrites what it has saved itself.
    found, now = rewritten(body, options)
    assert now == after
    assert found == ["inplace-on-saved"]


@pytest.mark.parametrize(
    "body",
    [
        "out = layer(batch).exp()\nother = out\nout += 1",
        "out = layer(batch).exp()\nheld.append(out)\nout += 1",
        "out = layer(batch).exp()\nflat = out.view(-1)\nout += 1",
        "out = layer(batch).exp()\nhead = out[0]\nout += 1",
        "whole = layer(batch).exp()\nout = whole\nout += 1",
        "whole = layer(batch).exp()\nout = whole.view(-1)\nout += 1",
        "out = layer(batch).exp()\nif batch is not None:\n    out += 1",
        "out = layer(batch).exp()\nout[0] = 1.0",
        "out = layer(batch).exp()\nout += (\n    1\n)",
        "out = layer(batch).exp()\nnn.ReLU(inplace=True)(out)",
    ],
)
def test_what_somebody_else_may_hold_is_only_reported(body: str, options: Options) -> None:
    assert rewritten(body, options) == (["inplace-on-saved"], body)


@pytest.mark.parametrize(
    ("text", "code", "after"),
    [
        ("x += 1  # one\ny = 2\n", "x = x + 1", "x = x + 1  # one\ny = 2\n"),
        ("if y: x += 1; y = 2\n", "x = x + 1", "if y: x = x + 1; y = 2\n"),
        ("def f(x):\r\n\tx += 1\r\n", "x = x + 1", "def f(x):\r\n\tx = x + 1\r\n"),
        ("x += 1\n", "if x: pass", None),
        ("x += 1\n", "x = 1\ny = 2", None),
        ("x += 1\n", "x = (", None),
    ],
)
def test_a_simple_statement_is_put_in_the_place_of_another(text: str, code: str, after: str | None) -> None:
    tree = ast.parse(text)
    (statement,) = (node for node in ast.walk(tree) if isinstance(node, ast.AugAssign))
    edits: list[Edit] = [ReplaceStatement(Span.of(statement), code)]
    written = apply_fixes(text, [edits])
    if after is None:
        assert not written.applied
    else:
        assert written.text == after
        assert spliced(text, tree, edits) == after


def test_the_example_is_one_of_the_fixtures() -> None:
    case = Path(__file__).parent.parent / "fixtures" / "inplace_on_saved" / "article_000.py"
    assert "rate += 1" in case.read_text()
