"""What the model could not follow is said, with the reason; and nothing is said of what it could."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path
from textwrap import dedent, indent

import pytest
from fakes import ROOT
from typer.testing import CliRunner

from gradfix.autograd.program import MANY_CALLS, analyze
from gradfix.autograd.training_steps import training_steps, unknown_functions
from gradfix.cli.commands import app
from gradfix.core.codemod import UnknownFunction
from gradfix.core.coverage import Status, TrainingStep

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
            "how `loss` is computed could not be followed",
        ),
        (
            f"{NET}for x in range(3):\n    losses = unknown(x)\n    losses['d'].backward()\n    opt.step()\n",
            "loop",
            "the loop at line 6",
            "how `losses['d']` is computed could not be followed",
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
            f"{NET}def outer():\n    def train():\n{indented(TRAINS)}    return 1\n",
            "function",
            "outer.train",
            "nothing that calls it was found",
        ),
        (
            f"{HEAD}net = nn.Linear(2, 1)\n\n\nclass Trainer:\n    def fit(self, opt):\n{indented(TRAINS)}",
            "function",
            "Trainer.fit",
            "the optimizer comes from a caller that gradfix did not find",
        ),
    ],
)
def test_what_was_not_followed_is_named(text: str, kind: str, name: str, reason: str) -> None:
    (found,) = missed(text)
    assert (found.kind, found.name, found.reason) == (kind, name, reason)
    assert "backward" in text.splitlines()[found.line - 1]


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
