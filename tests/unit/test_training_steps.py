"""What the model could not follow is said, with the reason; and nothing is said of what it could."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path
from textwrap import dedent, indent

import pytest
from fakes import ROOT
from typer.testing import CliRunner

from gradfix.autograd.program import MANY_CALLS, Program, analyze
from gradfix.autograd.training_steps import training_steps, unknown_functions
from gradfix.cli.commands import app
from gradfix.core.codemod import UnknownFunction
from gradfix.core.coverage import Coverage, Status, TrainingStep

HEAD = "import torch\nfrom torch import nn\n\n"
NET = f"{HEAD}net = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
TRAINS = """\
    for x in range(3):
        loss = net(torch.randn(3, 2)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


indented = partial(indent, prefix="    ")


def steps(text: str) -> tuple[TrainingStep, ...]:
    return training_steps(analyze(ast.parse(text), text, Path("train.py")))


def missed(text: str) -> list[TrainingStep]:
    return [step for step in steps(text) if step.status is not Status.FOLLOWED]


@pytest.mark.parametrize(
    "text",
    [
        NET + dedent(TRAINS),
        f"{NET}def train():\n{TRAINS}\ntrain()\n",
        f"{NET}def train(net, opt):\n{TRAINS}\ntrain(net, opt)\n",
        f"{HEAD}def grow(w):\n    w = torch.ones(3, requires_grad=True)\n    w.exp().sum().backward()\n",
    ],
    ids=["a loop", "a function that is called", "a function that is given all", "no optimizer"],
)
def test_of_what_was_followed_nothing_is_said(text: str) -> None:
    assert missed(text) == []


@pytest.mark.parametrize(
    ("text", "kind", "name", "reason"),
    [
        (
            f"{NET}loss = unknown(torch.randn(3, 2))\nloss.backward()\n",
            "script",
            "the script",
            "which parameters `unknown(torch.randn(3, 2))` in line 6 uses is not known",
        ),
        (
            f"{NET}for x in range(3):\n    losses = unknown(x)\n    losses['d'].backward()\n    opt.step()\n",
            "loop",
            "the loop at line 6",
            "which parameters `unknown(x)` in line 7 uses is not known",
        ),
        (
            f"{HEAD}def train(net):\n    net(torch.ones(2)).mean().backward()\n",
            "function",
            "train",
            "which parameters `net(torch.ones(2))` in line 5 uses is not known: "
            "`net` comes from a caller that gradfix did not find",
        ),
        (
            f"{HEAD}def train(net):\n    net(torch.ones(2)).mean().backward()\nif False:\n    train(1)\n",
            "function",
            "train",
            "which parameters `net(torch.ones(2))` in line 5 uses is not known: "
            "`net` comes from the call in line 7, which was not followed",
        ),
        (
            f"{HEAD}def step(net, opt):\n{TRAINS}",
            "function",
            "step",
            "which parameters `net(torch.randn(3, 2))` in line 6 uses is not known: "
            "`net` comes from a caller that gradfix did not find",
        ),
        (
            f"{NET}def train(accelerator, loss):\n    accelerator.backward(loss)\n",
            "function",
            "train",
            "how the loss of `accelerator.backward(loss)` is computed could not be followed",
        ),
        (
            f"{NET}torch.autograd.grad(net(torch.ones(2)).sum(), unknown)",
            "script",
            "the script",
            "what `unknown` in line 6 holds is not known",
        ),
        (
            f"{NET}raise SystemExit\nfor _ in range(3):\n    net(torch.ones(2)).sum().backward()\n",
            "loop",
            "the loop at line 7",
            "the analysis ended in line 6, which raises or exits as far as can be seen",
        ),
        (
            f"{NET}DEBUG = False\nif DEBUG:\n{TRAINS}",
            "loop",
            "the loop at line 8",
            "line 11 never runs: it is under `if DEBUG` in line 7, which never applies",
        ),
        (
            f"{NET}if True:\n    print('no training')\nelse:\n{TRAINS}",
            "loop",
            "the loop at line 9",
            "line 12 never runs: it is under `else of if True` in line 6, which never applies",
        ),
        (
            f"{NET}train = lambda x: (net(x).sum().backward(), opt.step())\n",
            "script",
            "the script",
            "nothing was seen to be differentiated by `net(x).sum().backward()`",
        ),
        (
            f"{NET}def outer():\n    def train():\n{indented(TRAINS)}    return 1\n",
            "function",
            "outer.train",
            "nothing that calls it was found",
        ),
        (
            f"{HEAD}net = nn.Linear(2, 1)\n\n\nclass Trainer:\n    def fit(self, opt):\n{indented(TRAINS)}",
            "function",
            "Trainer.fit",
            "what the optimizer `opt` owns is not known: `opt` comes from a caller that gradfix did not find",
        ),
        (
            f"from elsewhere import build\n{HEAD}net = nn.Linear(2, 1)\nopt = build(net)\n{dedent(TRAINS)}",
            "loop",
            "the loop at line 7",
            "what the optimizer `opt` owns is not known: `opt` is made by `build(net)` in line 6",
        ),
        (
            f"from elsewhere import build\n{NET}other = build()\nother = other.to(x)\n"
            "other(torch.ones(2)).mean().backward()\n",
            "script",
            "the script",
            "which parameters `other(torch.ones(2))` in line 9 uses is not known: "
            "`other` is made by `build()` in line 7",
        ),
        (
            f"{HEAD}class Trainer:\n    def __init__(self, model):\n        self.model = model\n"
            "    def fit(self, x):\n        self.model(x).mean().backward()\n",
            "function",
            "Trainer.fit",
            "which parameters `self.model(x)` in line 8 uses is not known: "
            "`model` comes from a caller that gradfix did not find",
        ),
    ],
)
def test_what_was_not_followed_is_named(
    text: str, kind: str, name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Program, "under_assumption", lambda program: ())  # As if no assumption explained it.
    (found,) = missed(text)
    assert (found.kind, found.name, found.reason) == (kind, name, reason)
    assert ("grad(" if "autograd" in text else "backward") in text.splitlines()[found.line - 1]


STEPS_ONLY = "def finish():\n    opt.step()\n    opt.zero_grad()\n"
CLOSURE = """\
for x in range(3):
    def closure():
        opt.zero_grad()
        loss = net(torch.ones(2)).mean()
        loss.backward()
        return loss
    opt.step(closure)
"""
PENALTY = """\
for x in range(3):
    x = torch.randn(3, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    slope.norm().backward()
    opt.step()
"""
LIGHTNING = """\
import lightning as L

class Model(L.LightningModule):
    def training_step(self, batch, index):
        return self.net(batch).mean()
"""
TRANSFORMERS = """\
from transformers import Seq2SeqTrainer

class Own(Seq2SeqTrainer):
    def compute_loss(self, model, inputs):
        return model(**inputs).loss
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{NET}net(torch.ones(2)).mean().backward()\nenv.step()\nenv.step(1)\n", ["the script: followed"]),
        (f"{NET}{STEPS_ONLY}finish()\n", ["finish: followed"]),
        (f"{NET}{CLOSURE}", ["the loop at line 6: followed"]),
        (f"{NET}{PENALTY}", ["the loop at line 6: followed"]),
        (f"{NET}def one():\n{TRAINS}def two():\n{TRAINS}one()\ntwo()\n", ["one: followed", "two: followed"]),
        (LIGHTNING, ["Model.training_step: not followed"]),
        (
            LIGHTNING.replace("return self.net(batch).mean()", "self.manual_backward(loss)"),
            ["Model.training_step: not followed"],
        ),
        (TRANSFORMERS, ["Own.compute_loss: followed"]),
        (TRANSFORMERS.replace("from transformers", "from .trainers"), ["Own.compute_loss: followed"]),
        (TRANSFORMERS.replace("Seq2SeqTrainer", "object"), []),
        (f"{NET}net(torch.ones(2))\n", []),
    ],
)
def test_the_training_steps_are_counted(text: str, found: list[str]) -> None:
    assert [f"{step.name}: {step.status}" for step in steps(text)] == found


def test_a_step_of_no_known_optimizer_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "under_assumption", lambda program: ())
    text = f"import elsewhere\n{NET}opt = elsewhere.make()\n{dedent(TRAINS)}"
    (step,) = missed(text.replace("opt.", "opt['net']."))
    assert (step.line, step.reason) == (12, "no step of an optimizer was seen at `opt['net'].step()`")


def test_a_class_of_the_project_is_no_framework(tmp_path: Path) -> None:
    (tmp_path / "trainers.py").write_text("class Seq2SeqTrainer:\n    pass\n")
    text = TRANSFORMERS.replace("transformers", "trainers")
    assert training_steps(analyze(ast.parse(text), text, tmp_path / "own.py")) == ()


def test_where_the_analysis_fails_every_step_is_not_followed() -> None:
    text = f"{NET}{dedent(TRAINS)}"
    (step,) = training_steps(Program(ast.parse(text), text, Path("train.py")), "it failed")
    assert (step.status, step.reason) == (Status.NOT_FOLLOWED, "it failed")


def test_coverage_counts_what_is_followed_under_an_assumption() -> None:
    step = TrainingStep(1, "script", "the script", Status.FOLLOWED)
    given = [step._replace(status=status) for status in Status]
    assert Coverage.of(given) == (1, 1, 1, 1)
    assert Coverage.of(given).percent == 50
    assert str(Coverage.of(given)) == "followed 2 of 4 training steps, 1 under an assumption, 1 not decided"
    assert str(Coverage.of([step])) == "followed 1 of 1 training step"
    assert (str(Coverage.of([])), Coverage.of([]).percent) == ("there are no training steps", 100)


def test_a_budget_that_is_spent_is_told() -> None:
    doubles = "".join(
        f"def double_{k}(x):\n    return double_{k - 1}(x) + double_{k - 1}(x)\n\n\n" for k in range(1, 18)
    )
    training = "double_17(net(torch.randn(3, 2))).sum().backward()\n"
    text = f"{NET}def double_0(x):\n    return x + 1\n\n\n{doubles}{training}"
    analysed = analyze(ast.parse(text), text, Path("train.py"))
    assert analysed.messages == (f"analysis of double_17 stopped: more than {MANY_CALLS} calls within it",)


@pytest.mark.parametrize(
    "folder", ["undetached_fake", "stale_forward", "carried_hidden_state", "graph_used_twice"]
)
def test_the_fixtures_are_followed(folder: str) -> None:
    """Where gradfix knows right from wrong, it does not say that it knows nothing."""
    for path in sorted((ROOT / "tests" / "fixtures" / folder).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        found = training_steps(analyze(ast.parse(text), text, path))
        assert all(step.status is Status.FOLLOWED for step in found), path.name


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("y = torch.special.unheard_of(y)", "torch.special.unheard_of"),
        ("y = y.unheard_of()", "torch.Tensor.unheard_of"),
        ("y = y + odd(y)", "torch.nn.Odd"),
        ("torch.unheard_of_(list(net.parameters()))", "torch.unheard_of_"),
        ("torch.nn.utils.unheard_of(net)", "torch.nn.utils.unheard_of"),
        ("z = torch.unheard_of(torch.ones(3))", ""),
        ("z = torch.rand(3).unheard_of()", ""),
        ("y = elsewhere.unheard_of(y)", ""),
        ("y = torch.special.expit(y)", ""),
    ],
)
def test_a_function_of_torch_that_nobody_has_taught_the_model_is_named(line: str, unknown: str) -> None:
    text = f"""{NET}import elsewhere
odd = nn.Odd()
for x in range(3):
    y = net(torch.randn(3, 2))
    {line}
    y.mean().backward()
    opt.step()
    opt.zero_grad()
"""
    found = unknown_functions(analyze(ast.parse(text), text, Path("train.py")))
    assert found == ((UnknownFunction(10, unknown),) if unknown else ())


def test_such_a_function_is_told_once_and_only_where_more_is_asked_for(tmp_path: Path) -> None:
    once = "    loss = torch.unheard_of(net(torch.randn(3, 2)))\n    loss.backward()\n"
    loop = f"{once}    torch.unheard_of(loss)\n"
    script = tmp_path / "train.py"
    script.write_text(f"{NET}for x in range(3):\n{loop}    opt.step()\n    opt.zero_grad()\n")
    for command in (["check"], ["apply", "--no-verify", "--dry-run"]):
        said = CliRunner().invoke(app, [*command, "-v", str(script)])
        assert said.stderr.count("gradfix does not know torch.unheard_of: ") == 1
        assert f"{script}:7: gradfix does not know" in said.stderr
        assert "does not know" not in CliRunner().invoke(app, [*command, str(script)]).stderr
