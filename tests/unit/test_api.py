"""Gradfix from Python: what ``import gradfix`` offers, and that importing it loads nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gradfix

FAULTY = """\
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(5, 4, 3):
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
"""


def test_a_text_is_looked_at_in_five_lines() -> None:
    (mistake,) = gradfix.check_text(FAULTY, unsafe_fixes=True)
    assert (mistake.finding.code, mistake.finding.span.line) == ("missing-zero-grad", 9)
    assert mistake.fixed_text == FAULTY.replace("    loss.backward", "    opt.zero_grad()\n    loss.backward")
    assert gradfix.check_text(mistake.fixed_text) == []
    assert gradfix.check_text(FAULTY, ignore=["missing-zero-grad"]) == []


def test_files_are_looked_at_with_their_configuration(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAULTY)
    (tmp_path / "broken.py").write_text(FAULTY + "def broken(:\n")
    report = gradfix.check_paths([tmp_path])
    assert [one.finding.code for one in report.findings] == ["missing-zero-grad"]
    assert [problem.code for problem in report.all_problems] == ["syntax-error"]
    (tmp_path / "pyproject.toml").write_text('[tool.gradfix]\nignore = ["missing-zero-grad"]\n')
    assert gradfix.check_paths([str(tmp_path / "train.py")]).findings == ()


def test_what_cannot_be_done_raises() -> None:
    with pytest.raises(gradfix.GradfixError, match="there is no codemod 'nope'"):
        gradfix.check_text(FAULTY, select=["nope"])
    with pytest.raises(gradfix.GradfixError, match="syntax-error"):
        gradfix.check_text("loss.backward(:\n")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gradfix.nothing  # noqa: B018


def test_all_that_is_offered_is_there_and_costs_nothing_before() -> None:
    assert all(getattr(gradfix, name) is not None for name in gradfix.__all__)
    assert set(gradfix.__all__) <= set(dir(gradfix))
    code = "import sys, gradfix; print([m for m in sys.modules if m.startswith('gradfix.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
