"""What a driver's runs lack: statements that fail, settings that have to agree, methods to call first."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gradfix.runtime.alone import gaps
from gradfix.runtime.alone.program import _compared, _texts
from gradfix.runtime.standins import context


class Recorder:
    pid = 0

    class places:
        path = "elsewhere.py"

        @staticmethod
        def in_project(name: str) -> bool:
            return name.endswith("train.py")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[context.StandinRun]:
    job = {"root": str(tmp_path), "path": "train.py", "schema": '{"handed": true}'}
    job["command"] = {"cwd": str(tmp_path), "entry": "step_alone.py"}  # type: ignore[assignment]
    yield context.begin(Recorder(), job, None)
    context._runs.pop()


def failing(text: str, folder: Path, **known: Any) -> BaseException:
    """What executing a text raises."""
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    try:
        exec(compile(path.read_text(), str(path), "exec"), known)
    except Exception as error:
        return error
    raise AssertionError("nothing fails")


def test_a_statement_that_fails_is_a_gap_from_then_on(run: context.StandinRun, tmp_path: Path) -> None:
    text = "def names(folder):\n    return open(folder + '/missing').read()\n\nfound = names('photos')\n"
    found = gaps.advise(run, failing(text, tmp_path))
    assert found is not None
    assert found["gaps"] == ["train.py: return open(folder + '/missing').read()"]
    run.schema = found
    filled = ast.unparse(gaps.filled(run, str(tmp_path / "train.py"), ast.parse(text)))
    assert "return __made_up__('it')" in filled
    assert "found = names('photos')" in filled


@pytest.mark.parametrize(
    "text",
    [
        "loss = net(1)",  # A network.
        "loss = lost.sum(7)",  # Something with a graph.
        "opt.step(1, 2, 3)",
        "loss = holder.net(1)",
        "loss = deep.inner(1)",
    ],
)
def test_what_trains_is_never_made_up(text: str, run: context.StandinRun, tmp_path: Path) -> None:
    net = torch.nn.Linear(2, 2)
    holder = type("Holder", (), {})()
    holder.net = net
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    deep = torch.nn.Module()
    deep.inner = net
    error = failing(text, tmp_path, deep=deep, net=net, holder=holder, opt=opt, lost=net(torch.ones(1, 2)))
    assert gaps.advise(run, error) is None


def test_what_a_call_was_to_do_is_not_left_out_with_it(run: context.StandinRun, tmp_path: Path) -> None:
    text = "def train():\n    raise ValueError\n\ntrain()\n"
    assert gaps.advise(run, failing(text, tmp_path)) is None


def test_two_sizes_that_met_are_made_equal(run: context.StandinRun) -> None:
    run.numbers.update(hidden=14, width=22)
    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied (6x14 and 22x1)")
    found = gaps.advise(run, error)
    assert found is not None and found["numbers"] == {"hidden": 22}


class Trainer:
    def build(self) -> None:
        self.net = self.make()

    def prepare(self) -> None:
        self.make = lambda: 1

    def step(self) -> int:
        return self.net


def test_methods_that_set_what_is_missing_are_called_before(
    run: context.StandinRun, monkeypatch: Any
) -> None:
    monkeypatch.setattr(gaps, "_subjects", [])
    monkeypatch.setattr(run, "used", lambda *what: None)
    for _ in range(2):
        subject = Trainer()
        try:
            gaps.setup(subject)
            subject.step()
        except AttributeError as error:
            found = gaps.advise(run, error)
            assert found is not None
            run.schema = found
    assert run.schema["setup"] == ["build", "prepare"]
    subject = Trainer()
    gaps.setup(subject)
    assert subject.step() == 1


def test_a_name_that_only_the_program_sets_is_made_up(run: context.StandinRun, tmp_path: Path) -> None:
    found = gaps.advise(run, failing("print(config.rate)", tmp_path))
    assert found is not None and found["globals"] == ["config"]


def test_words_are_those_that_a_script_compares_an_argument_with() -> None:
    _texts[:] = ["if args.mode == 'test': pass\nelif 'kd' in mode: pass\n"]
    assert _compared("mode") == ["test", "kd"]
