"""The page on extending gradfix: its examples are run, and do what it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from fakes import ROOT, gradfix
from test_semantics import outcome

from codemods import bypassed_wrapper
from gradfix.authoring import skeleton
from gradfix.autograd.program import analyze
from gradfix.autograd.semantics import dispatch

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
TRANSFER, ROW, FRAMEWORK, CODEMOD, SCRIPT = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMAND, SESSION = re.findall(r"```console\n\$ gradfix ([^\n]*)\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the page registers, for as long as a test takes."""
    monkeypatch.setattr(dispatch, "FUNCTIONS", dispatch.FUNCTIONS.copy())
    namespace: dict[str, Any] = {}
    exec(TRANSFER, namespace)
    dispatch.functions_of.cache_clear()
    yield namespace["rearrange"]
    dispatch.functions_of.cache_clear()


def test_before_it_is_registered_nothing_is_known_for_sure() -> None:
    _, line, expected = eval(ROW)
    assert outcome(line)[0] != expected


def test_what_is_registered_comes_to_what_its_row_says(registered: Any) -> None:
    name, line, expected = eval(ROW)
    found, codes = outcome(line)
    assert dispatch.FUNCTIONS[name] is registered
    assert registered.__code__ in codes
    assert found == expected


BOOSTED = """\
import torch
from colossalai.booster import Booster

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
booster = Booster()
net, optimizer = booster.boost(net, optimizer)
for x in torch.randn(5, 2, 3):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    {}
    optimizer.step()
"""


@pytest.mark.parametrize("backward", ["loss.backward()", "booster.backward(loss, optimizer)"])
def test_a_framework_of_the_page_is_not_bypassed(backward: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in ("FUNCTIONS", "_methods"):
        monkeypatch.setattr(dispatch, table, getattr(dispatch, table).copy())
    exec(FRAMEWORK, {"__name__": "booster"})
    caches = dispatch.functions_of, dispatch.method_of
    for cache in caches:
        cache.cache_clear()
    text = BOOSTED.format(backward)
    program = analyze(ast.parse(text), text, Path("train.py"))
    found = [one.fixes[0].message for one in bypassed_wrapper.find(program)]
    assert found == (["call `booster.backward(loss)`"] if backward == "loss.backward()" else [])
    for cache in caches:
        cache.cache_clear()


def test_the_names_of_the_page_are_there() -> None:
    for name in re.findall(r"`(\w+)`", PAGE.split("Others register by kind alone")[1].split("**2.")[0]):
        source = (ROOT / "gradfix" / "autograd").rglob("*.py")
        assert any(re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")) for path in source), name


def test_the_codemod_of_the_page_is_the_one_that_is_written_first() -> None:
    assert skeleton.texts("needless-graph")["needless_graph.py"] == CODEMOD


def test_the_codemod_finds_and_repairs_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "my_codemods").mkdir()
    (tmp_path / "my_codemods" / "needless_graph.py").write_text(CODEMOD, encoding="utf-8")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = gradfix(*COMMAND.split(), cwd=tmp_path)
    assert done.stdout.decode() == SESSION
    gradfix("apply", "--codemods", "my_codemods", "--no-verify", "train.py", cwd=tmp_path)
    assert script.read_text(encoding="utf-8") == SCRIPT.replace("create_graph=True", "")
