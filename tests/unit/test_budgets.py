"""Inputs that would take minutes or gigabytes: their analysis ends soon, and that is told."""

from __future__ import annotations

import ast
import gc
from collections.abc import Collection
from pathlib import Path

import pytest

from gradfix.autograd import imports
from gradfix.autograd import program as program_module
from gradfix.autograd.graph import Backward, Node
from gradfix.autograd.program import BUDGET, FILE_STATEMENTS, SCRIPT_STATEMENTS, Program, analyze
from gradfix.autograd.semantics import functions
from gradfix.autograd.semantics.functions import MANY_CALLS
from gradfix.autograd.semantics.layers import deep_copy
from gradfix.autograd.semantics.statelessness import keeps_nothing
from gradfix.autograd.trace_queries import backwards, steps
from gradfix.autograd.values import (
    LARGEST,
    LONGEST,
    Class,
    Const,
    Frame,
    Mapping,
    Module,
    Sequence,
    Unknown,
    Value,
    fold,
    is_plain,
)
from gradfix.pipeline import analysis, choosing, driver
from gradfix.pipeline.choosing import ALONE, TOGETHER
from gradfix.pipeline.driver import Options, RequestedOptions, prepare
from gradfix.project import source
from gradfix.project.source import Problem, Source

HEAD = """import torch
from torch import nn
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
"""
TRAINS = """
loss = net(torch.randn(2, 3)).mean()
opt.zero_grad()
loss.backward()
opt.step()
"""
DOUBLING = "".join(f"\ndef f{n + 1}(x):\n    return f{n}(x) + f{n}(x)\n" for n in range(30))
"""Functions of which the last one calls the first 2 ** 30 times."""
DOUBLED = HEAD + "def f0(x):\n    return x\n" + DOUBLING


@pytest.fixture
def options(tmp_path: Path) -> Options:
    made = prepare([str(tmp_path)], RequestedOptions())
    assert isinstance(made, Options)
    return made


def analysed(text: str, path: Path = Path("train.py")) -> Program:
    program = analyze(ast.parse(text), text, path)
    assert program.statements_executed <= FILE_STATEMENTS + SCRIPT_STATEMENTS
    return program


def looked_at(path: Path, options: Options) -> driver.FileReport:
    return driver._look(driver._Loaded(str(path), path.read_bytes(), options), with_fixes=True)


# ---------------------------------------------------------------------- bytes


@pytest.mark.parametrize(
    "words", [b"autograd import a ", b"from autograd import (", b"backward ", b"autograd . "]
)
def test_bytes_are_searched_in_one_go(words: bytes) -> None:
    """On one line of a megabyte, each of many beginnings of an import may not be read on to the end."""
    line = words * (1_000_000 // len(words))
    assert not source.can_matter(line)
    assert source.can_matter(line + b"\nfrom torch.autograd import Variable, grad\n")


# ---------------------------------------------------------------------- values


@pytest.mark.parametrize("made", [lambda x: Sequence("list", [x, x]), lambda x: Mapping({"a": x, "b": x})])
def test_a_value_that_holds_another_twice_is_no_tree_without_end(made: object) -> None:
    assert callable(made)
    value: Value = Const(1)
    for _ in range(200):
        value = made(value)
        assert isinstance(value, (Sequence, Mapping))
        assert value.size <= LARGEST
    assert value.open  # type: ignore[union-attr]


def test_what_is_put_into_a_list_has_to_fit() -> None:
    held = Sequence("list", [Const(1)])
    for _ in range(60):
        held.add(held.items)
    assert len(held.items) <= held.size <= LARGEST
    assert held.open


def test_texts_do_not_grow_without_end() -> None:
    long = "a" * (LONGEST - 1)
    assert isinstance(fold(ast.Add(), long, "b"), Const)
    assert isinstance(fold(ast.Add(), long, "bb"), Unknown)
    assert isinstance(fold(ast.Mod(), "%s%s", (long, long)), Unknown)


@pytest.mark.parametrize(
    "grows",
    [
        "x = x + x",
        "x = f'{x}{x}'",
        "x = '%s%s' % (x, x)",
        "x = '{}{}'.format(x, x)",
        "x = ''.join([x, x])",
        "x = x.replace('a', 'aa')",
        "x = (x, x)",
        "x = [*x, *x]",
        "x = {'a': x, **{'b': x}}",
        "x = nn.Sequential(x, x)\nopt.add_param_group({'params': x.parameters()})",
        "x = torch.stack([x, x])",
        "x = copy.deepcopy([x, x])",
    ],
)
def test_what_doubles_is_looked_at_as_long_as_it_is_small(grows: str) -> None:
    begin = "x = 'a'\n" if "Sequential" not in grows else "x = nn.Sequential(net)\n"
    program = analysed(
        HEAD + "import copy\n" + begin + f"{grows}\n" * 60 + "for y in x:\n    print(y)\n" + TRAINS
    )
    assert program.messages == ()
    assert len(program.entry_points[0].runs[0].optimizers) == 1


def test_a_network_in_which_others_are_many_times_is_gone_through_once() -> None:
    class_ = Class(ast.ClassDef("Net", [], [], [], []), [], Frame(None, None))
    plain: Module = Module("torch.nn.Linear")
    own: Module = Module("user", "Net", class_)
    for _ in range(60):
        plain.items, inner = [], plain
        plain = Module("torch.nn.Sequential")
        plain.items = [inner, inner]
        own, before = Module("user", "Net", class_), own
        own.attributes = {"first": before, "second": before}
    assert is_plain(plain)
    assert keeps_nothing(own)
    copied = deep_copy(own)
    assert isinstance(copied, Module)
    assert copied.attributes["first"] is copied.attributes["second"] is not own.attributes["first"]


def test_classes_with_many_common_bases_have_an_order() -> None:
    text = "class A0: pass\nclass B0: pass\n" + "".join(
        f"class A{n + 1}(A{n}, B{n}): pass\nclass B{n + 1}(A{n}, B{n}): pass\n" for n in range(60)
    )
    assert analysed(HEAD + text + "A60().run()\n" + TRAINS).messages == ()


# ---------------------------------------------------------------------- steps


def test_calls_without_statements_are_counted() -> None:
    lambdas = "f0 = lambda x: net(x)\n" + "".join(f"f{n + 1} = lambda x: f{n}(f{n}(x))\n" for n in range(30))
    (told,) = analysed(HEAD + lambdas + "f30(torch.randn(2, 3)).mean().backward()\n").messages
    assert told.startswith("analysis of <module> stopped")
    layers = "layer = nn.Sequential(net, net)\n" + "layer = nn.Sequential(layer, layer)\n" * 60
    (told,) = analysed(HEAD + layers + "layer(torch.randn(2, 3)).mean().backward()\n").messages
    assert told.startswith("analysis of <module> stopped")


def test_calls_that_double_are_followed_for_a_while_and_the_rest_goes_on() -> None:
    program = analysed(DOUBLED + "f30(net(torch.randn(2, 3)))\n" + TRAINS)
    assert program.statements_executed < 3 * MANY_CALLS
    assert program.messages == (f"analysis of f30 stopped: more than {MANY_CALLS} calls within it",)
    (run,) = program.entry_points[0].runs
    (backward,) = backwards(run)
    assert backward.certain and list(backward.reached.values()) == [True]
    assert list(next(iter(steps(run))).consumed) == list(backward.reached)


def test_what_is_known_beside_calls_that_double_is_reported(options: Options, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(DOUBLED + "f30(net(torch.randn(2, 3)))\n" + TRAINS + "loss.backward()\n")
    report = looked_at(path, options)
    assert [one.finding.code for one in report.findings] == ["stale-forward"]
    assert report.messages == (f"analysis of f30 stopped: more than {MANY_CALLS} calls within it",)


def test_all_runs_of_a_file_have_one_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MANY_CALLS", BUDGET)
    trainings = "".join(
        f"\ndef train{n}(net, opt, x):\n    f30(x)\n    net(x).mean().backward()\n    opt.step()\n"
        for n in range(20)
    )
    program = analysed("def f0(x):\n    return x\n" + DOUBLING + trainings)
    assert program.statements_executed == FILE_STATEMENTS
    assert program.messages[-1] == f"analysis of it stopped: more than {FILE_STATEMENTS} statements together"
    assert any(run.unfinished for entry in program.entry_points for run in entry.runs)


def test_all_runs_of_scripts_have_one_allowance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MANY_CALLS", BUDGET)
    runs: list[object] = []
    run_script = program_module.run_script
    monkeypatch.setattr(program_module, "run_script", lambda *given: (runs.append(given), run_script(*given)))
    path = tmp_path / "trainer.py"
    path.write_text("def train(net, opt, x):\n    net(x).mean().backward()\n    opt.step()\n")
    for number in range(4):
        script = f"from trainer import train\ndef f0(x):\n    return x\n{DOUBLING}\nf30(1)\ntrain(1, 2, 3)\n"
        (tmp_path / f"main{number}.py").write_text(script)
    program = analysed(path.read_text(), path)
    assert len(runs) == 1
    assert (
        f"analysis of the scripts that import it stopped: more than {SCRIPT_STATEMENTS} statements together"
        in program.messages
    )


def test_a_script_that_asks_for_no_options_is_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[object] = []
    run_script = program_module.run_script
    monkeypatch.setattr(program_module, "run_script", lambda *given: (runs.append(given), run_script(*given)))
    path = tmp_path / "trainer.py"
    path.write_text("def train(net, opt, x):\n    net(x).mean().backward()\n    opt.step()\n")
    main = tmp_path / "main.py"
    main.write_text("from trainer import train\nprint('not now')\n")
    analysed(path.read_text(), path)
    assert len(runs) == 1
    main.write_text("import trainer, argparse\nargparse.ArgumentParser().parse_args()\nprint('not now')\n")
    analysed(path.read_text(), path)
    assert len(runs) == 3


# ---------------------------------------------------------------------- fixes


def faulty(loops: int) -> str:
    return HEAD + "".join(
        f"loss{n} = net(torch.randn(2, 3)).mean()\nloss{n}.backward()\nloss{n}.backward()\nopt.step()\n"
        "opt.zero_grad()\n"
        for n in range(loops)
    )


def test_the_fixes_of_many_mistakes_are_chosen_in_few_versions(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions: list[object] = []
    run_model = analysis.run_model

    def counted(parsed: Source, ways: Collection[tuple[str, str]] | None = None) -> Program | Problem:
        versions.append(parsed)
        return run_model(parsed, ways)

    for module in (analysis, choosing):
        monkeypatch.setattr(module, "run_model", counted)
    path = tmp_path / "train.py"
    path.write_text(faulty(80))
    report = looked_at(path, options)
    assert len(report.findings) == 80
    assert len(versions) == 1 + ALONE + TOGETHER
    assert report.messages == ()
    (note,) = report.notes
    assert note.startswith(f"stopped looking for fixes after {ALONE + TOGETHER} versions of the file")


def test_fixes_that_are_chosen_together_are_those_that_are_chosen_alone(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train.py"
    names = [f"net{n}" for n in range(6)]
    path.write_text(
        "import torch\nfrom torch import nn\n"
        + "".join(f"{n} = nn.Linear(3, 1)\n{n}_opt = torch.optim.SGD({n}.parameters(), 0.1)\n" for n in names)
        + "".join(f"for x in data:\n    {n}(x).mean().backward()\n    {n}_opt.step()\n" for n in names)
    )
    alone = looked_at(path, options)
    monkeypatch.setattr(choosing, "ALONE", 0)
    assert looked_at(path, options) == alone
    assert all(one.fix is not None and one.fixed_text for one in alone.findings)
    assert len(alone.findings) == len(names)


# ---------------------------------------------------------------------- memory


def test_modules_are_parsed_once_for_all_files(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    parse = imports._parsed_as_written
    monkeypatch.setattr(imports, "_parsed_as_written", lambda text: (parsed.append(text), parse(text))[1])
    names = [f"part{n}" for n in range(40)]
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"class Base:\n    pass\n# {name}\n")
    for number in range(4):
        used = "".join(
            f"from {name} import Base as B{name}\nB{name}()\n" for name in names[number * 10 :][:20]
        )
        path = tmp_path / f"train{number}.py"
        path.write_text(HEAD + used + TRAINS)
        looked_at(path, options)
    assert len(parsed) == len(set(parsed)) == len(names)
    # Where they have become too many, all go before the next file.
    monkeypatch.setattr(imports, "KEPT", 100)
    looked_at(path, options)
    assert not imports._parsed.keys() - {str(tmp_path / f"{name}.py") for name in names[30:]}


def test_what_was_run_is_freed_without_the_collector(tmp_path: Path, options: Options) -> None:
    """A run is let go of as soon as nobody asks about it: a whole tree of files leaves no garbage behind."""
    path = tmp_path / "train.py"
    path.write_text(HEAD + f"for x in data:{TRAINS}".replace("\n", "\n    ") + "\n" + TRAINS * 100)
    looked_at(path, options)
    gc.collect()
    before = sum(isinstance(one, Node) for one in gc.get_objects())
    gc.disable()
    try:
        looked_at(path, options)
        left = sum(isinstance(one, Node) for one in gc.get_objects()) - before
    finally:
        gc.enable()
    assert left <= 5


def test_a_complete_run_counts_where_further_ones_were_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        f"{HEAD}from elsewhere import ready\nfor x in torch.randn(9, 2, 3):\n    opt.zero_grad()\n"
        "    loss = net(x).mean()\n    if ready(x):\n        loss = loss + net(x.detach()).mean()\n"
        "    else:\n        loss = loss - net(x.detach()).mean()\n"
        "    loss.backward()\n    loss.backward()\n    opt.step()\n"
    )
    whole = analysed(text)
    (entry,) = whole.entry_points
    assert len(entry.all_runs()) > 1
    main = BUDGET - entry.runs[0].budget
    monkeypatch.setattr(program_module, "FILE_STATEMENTS", main + 3)
    monkeypatch.setattr(program_module, "FILE_STATEMENTS_PER_LINE", 0)
    (entry,) = analysed(text).entry_points
    assert any(run.unfinished for run in entry.all_runs())
    found = entry.certain_observations(
        lambda run: {e.site: e for e in run.events if isinstance(e, Backward)}, lambda e: e.site, raises=True
    )
    assert len([*found]) == 2
