"""A finding stands where its fix is made."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import ROOT

from gradfix.core.codemod import InsertStatement, MoveStatement
from gradfix.pipeline import driver
from gradfix.pipeline.driver import RequestedOptions

FIXTURES = ROOT / "tests" / "fixtures"


def checked(path: Path) -> tuple[driver.Reported, ...]:
    options = driver.prepare([str(path)], RequestedOptions(verify=False))
    assert isinstance(options, driver.Options)
    return driver.check([str(path)], options).findings


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("inplace_on_saved/helper_writes", 19),
        ("missing_zero_grad/lbfgs_closure_uncleared", 18),
        ("undetached_fake/partial_step", 30),
    ],
)
def test_not_in_a_helper_that_the_fix_does_not_touch(tmp_path: Path, name: str, line: int) -> None:
    text = (FIXTURES / f"{name}.py").read_text(encoding="utf-8")
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    (found,) = checked(path)
    assert found.fix is not None
    anchors = [
        e.anchor if isinstance(e, InsertStatement | MoveStatement) else e.span for e in found.fix.edits
    ]
    assert found.finding.span.line == line
    assert any(span.line <= line <= span.end_line for span in anchors)
    lines = text.splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].rstrip("\n") + f"  # gradfix: ignore[{found.finding.code}]\n"
    path.write_text("".join(lines), encoding="utf-8")
    assert checked(path) == ()
