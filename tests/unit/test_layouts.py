"""What ``check`` promises, ``apply`` does, whatever the layout of a file is."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import layouts
import pytest
from cases import CASES, Case

from gradfix.autograd.program import analyze
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.pipeline.results import Plan, Report
from gradfix.project import source
from gradfix.project.source import Source
from gradfix.rewriting.rewrite import apply_fixes
from gradfix.rewriting.splice import spliced

FAULTY = [case for case in CASES if case.fixed is not None]


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def judged(path: Path, options: Options) -> tuple[Report, Plan, Report]:
    """What check says, what apply does, and what check says then."""
    before = driver.check([str(path)], options)
    plan = driver.write(driver.plan([str(path)], options))
    return before, plan, driver.check([str(path)], options)


def promised(report: Report) -> int:
    return sum(found.fix is not None for found in report.findings)


def alike(path: Path, data: bytes, options: Options) -> bool:
    """Whether check promises a fix, which apply then makes."""
    path.write_bytes(data)
    before, plan, after = judged(path, options)
    assert not before.all_problems
    assert not plan.all_problems
    assert not after.all_problems
    applied = sum(len(file.applied) for file in plan.files)
    assert bool(promised(before)) == bool(applied)
    assert promised(after) == 0
    return bool(applied)


def sample(count: int) -> list[tuple[Case, int]]:
    chance = random.Random(35)
    return [(chance.choice(FAULTY), chance.randrange(1 << 30)) for _ in range(count)]


def compared(case: Case, seed: int, options: Options) -> int:
    """How many fixes come out the same by cutting bytes and by rewriting the tree."""
    data, done = layouts.odd(random.Random(seed), case.path.read_text(encoding="utf-8"))
    parsed = source.parse(str(case.path), data)
    if not isinstance(parsed, Source):
        return 0
    same = 0
    for codemod in options.catalog.codemods:
        for finding in codemod.find(analyze(parsed.tree, parsed.text, case.path)):
            for fix in finding.fixes:
                quick = spliced(parsed.text, parsed.tree, fix.edits)
                written = apply_fixes(parsed.text, [fix.edits])
                # Beside a lone \r at the end of a file libcst goes on with \n.
                if quick is not None and written.applied and b"\r" not in data.replace(b"\r\n", b""):
                    assert quick == written.text, (case.name, seed, done)
                    same += 1
    return same


def test_what_is_promised_is_done(tmp_path: Path, options: Options) -> None:
    done = 0
    for number, (case, seed) in enumerate(sample(80)):
        data, layout = layouts.odd(random.Random(seed), case.path.read_text(encoding="utf-8"))
        path = tmp_path / f"{number}.py"
        if isinstance(source.parse(str(path), data), Source):
            try:
                done += alike(path, data, options)
            except AssertionError as error:
                raise AssertionError(f"{case.name}, {seed}: {layout}") from error
    assert done > 40


def test_cutting_bytes_and_rewriting_the_tree_give_the_same_text(options: Options) -> None:
    assert sum(compared(case, seed, options) for case, seed in sample(100)) > 30


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_many_layouts(tmp_path: Path, options: Options, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(400):
        case, one = chance.choice(FAULTY), chance.randrange(1 << 30)
        data, _ = layouts.odd(random.Random(one), case.path.read_text(encoding="utf-8"))
        if isinstance(source.parse(str(case.path), data), Source):
            alike(tmp_path / f"{number}.py", data, options)
            compared(case, one, options)


FED = """import torch

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(8, 4)).square().mean()
{}loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("indent", ["    ", "\f    ", "\f\f    ", "    \f    ", "\t\f    "])
def test_a_form_feed_before_a_statement(tmp_path: Path, options: Options, indent: str) -> None:
    path = tmp_path / "train.py"
    assert alike(path, FED.format(indent).encode(), options)
    assert path.read_text() == FED.format(f"{indent}optimizer.zero_grad()\n    ")


SHARED = """import torch

net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(torch.randn(8, 4)).square().mean()
    {}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("call", "fixed"),
    [
        ("loss.backward(retain_graph=True)", "loss.backward()"),
        ("loss.backward( retain_graph = True , )", "loss.backward()"),
        ("loss.backward(None, retain_graph=True)", "loss.backward(None)"),
        ("loss.backward(None , retain_graph=True )", "loss.backward(None )"),
        ("loss.backward(None, retain_graph=True,)", "loss.backward(None,)"),
        ("loss.backward((None), retain_graph=True)", "loss.backward((None))"),
        ("loss.backward(None, (True))", "loss.backward(None)"),
        ("loss.backward(retain_graph=(True), gradient=None)", "loss.backward(gradient=None)"),
        ("(loss).backward(retain_graph=True, gradient=(None))", "(loss).backward(gradient=(None))"),
    ],
)
def test_an_argument_goes_with_its_comma(tmp_path: Path, options: Options, call: str, fixed: str) -> None:
    path = tmp_path / "train.py"
    assert alike(path, SHARED.format(call).encode(), options)
    assert path.read_text() == SHARED.format(fixed)


@pytest.mark.parametrize("mark", [b"\x1b(B\x1b(B", b""])
def test_no_fix_is_promised_where_the_encoding_does_not_give_the_bytes_back(
    tmp_path: Path, options: Options, mark: bytes
) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"# coding: iso2022_jp " + mark + b"\n" + FED.format("    ").encode())
    before, plan, _ = judged(path, options)
    assert promised(before) == (not mark)
    assert bool(plan.all_problems) == bool(mark)
    assert [file.written for file in plan.files] == [not mark]


def test_what_would_be_no_program_is_not_promised() -> None:
    text = "def f():\n    if g:\n        pass\n    global opt\n    opt = 1\n"
    tree = ast.parse(text)
    from gradfix.core.codemod import InsertStatement
    from gradfix.core.span import Span

    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    edit = InsertStatement(Span.of(function.body[1]), "before", "opt.zero_grad()")
    assert spliced(text, tree, [edit]) is None
    assert not apply_fixes(text, [[edit]]).applied
