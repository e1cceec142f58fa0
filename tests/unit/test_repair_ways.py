"""The ways to repair one finding: which it admits, what each makes of a program, and that each is proved."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fakes import ROOT
from typer.testing import CliRunner

from gradfix.cli.commands import app
from gradfix.cli.options import GanOrder
from gradfix.core.codemod import Way
from gradfix.rules import catalog
from gradfix.rules.gan_order import Order

pytestmark = pytest.mark.usefixtures("servers")

HEAD = """import torch
from torch import nn

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
judge = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
maker_opt = torch.optim.SGD(maker.parameters(), lr=0.1)
judge_opt = torch.optim.SGD(judge.parameters(), lr=0.1)
bce = nn.BCEWithLogitsLoss()
one, zero = torch.ones(16, 1), torch.zeros(16, 1)
for _ in range(4):
    real = torch.randn(16, 8)
"""
JUDGE = """    judge_opt.zero_grad()
    made = maker(torch.randn(16, 4))
    j_loss = bce(judge(real), one) + bce(judge({made}), zero)
    j_loss.backward()
    judge_opt.step()
"""
MAKER = """    maker_opt.zero_grad()
    m_loss = bce(judge({made}), one)
    m_loss.backward()
    maker_opt.step()
"""
SHARED = HEAD + JUDGE.format(made="made") + MAKER.format(made="made")
APART = HEAD + JUDGE.format(made="made") + MAKER.format(made="maker(torch.randn(16, 4))")
INLINE = APART.replace("    made = maker(torch.randn(16, 4))\n", "").replace(
    "judge(made)", "judge(maker(torch.randn(16, 4)))"
)
RIGHT = HEAD + JUDGE.format(made="made.detach()") + MAKER.format(made="made")
ACTOR = """import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
actor_opt = torch.optim.SGD(actor.parameters(), lr=0.1)
critic_opt = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(4):
    states, returns = torch.randn(16, 4), torch.randn(16)
    actions = torch.randint(3, (16, 1))
    actor_opt.zero_grad()
    critic_opt.zero_grad()
    log_prob = actor(states).log_softmax(-1).gather(1, actions).squeeze(-1)
    advantage = returns - critic(states).squeeze(-1)
    actor_loss = -(log_prob * advantage).mean()
    critic_loss = advantage.pow(2).mean()
    actor_loss.backward(retain_graph=True)
    critic_loss.backward()
    actor_opt.step()
    critic_opt.step()
"""
EARLY = (
    HEAD
    + """    made = maker(torch.randn(16, 4))
    j_loss = bce(judge(real), one) + bce(judge(made.detach()), zero)
    m_loss = bce(judge(made), one)
    judge_opt.zero_grad()
    j_loss.backward()
    judge_opt.step()
    maker_opt.zero_grad()
    m_loss.backward()
    maker_opt.step()
"""
)

BOTH_LAST = (
    HEAD
    + """    made = maker(torch.randn(16, 4))
    maker_opt.zero_grad()
    m_loss = bce(judge(made), one)
    m_loss.backward()
    judge_opt.zero_grad()
    j_loss = bce(judge(real), one) + bce(judge(made.detach()), zero)
    j_loss.backward()
    judge_opt.step()
    maker_opt.step()
"""
)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a program goes; its folder is the current one."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "train.py"


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def findings(script: Path, code: str) -> list[dict[str, Any]]:
    script.write_text(code)
    _, output = invoke("check", "--no-cache", "--output-format", "json", "train.py")
    reported: list[dict[str, Any]] = json.loads(output)
    return reported


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("code", "codemod", "ways"),
    [
        (SHARED, "undetached-fake", ["detach", "reorder", "inputs"]),
        (APART, "undetached-fake", ["detach", "no-grad", "freeze", "reorder", "inputs"]),
        (INLINE, "undetached-fake", ["detach", "freeze", "reorder", "inputs"]),
        (ACTOR, "undetached-advantage", ["detach", "inputs"]),
        (EARLY, "stale-forward", ["reorder", "inputs"]),
    ],
    ids=["shared", "apart", "inline", "actor", "early"],
)
def test_every_way_that_a_finding_admits_is_proved(
    script: Path, code: str, codemod: str, ways: list[str]
) -> None:
    (found,) = [one for one in findings(script, code) if one["code"] == codemod]
    assert found["ways"] == ways
    for way in ways:
        script.write_text(code)
        wanted = ("--way", way, "--select", codemod, "--unsafe-fixes", "train.py")
        _, output = invoke("apply", "--output-format", "json", *wanted)
        (file,) = json.loads(output[: output.rindex("]") + 1])
        (fix,) = file["fixes"]
        assert (fix["way"], fix["outcome"]) == (way, "proved"), fix["reason"]
        assert codemod not in [one["code"] for one in file["remaining"]]
        assert script.read_text() != code


@pytest.mark.parametrize(
    ("code", "way", "line"),
    [
        (SHARED, "inputs", "    j_loss.backward(inputs=list(judge.parameters()))\n"),
        (APART, "no-grad", "    with torch.no_grad():\n        made = maker(torch.randn(16, 4))\n"),
        (
            APART,
            "freeze",
            "    maker.requires_grad_(False)\n    made = maker(torch.randn(16, 4))\n"
            "    maker.requires_grad_(True)\n",
        ),
        (SHARED, "reorder", "    maker_opt.step()\n    judge_opt.zero_grad()\n    j_loss = "),
        (ACTOR, "inputs", "    actor_loss.backward(inputs=list(actor.parameters()))\n"),
    ],
    ids=["inputs", "no-grad", "freeze", "reorder", "actor"],
)
def test_what_a_way_writes(script: Path, code: str, way: str, line: str) -> None:
    script.write_text(code)
    invoke("apply", "--way", way, "--no-verify", "--unsafe-fixes", "train.py")
    assert line in script.read_text()


def test_a_way_that_a_finding_does_not_admit_leaves_it_alone(script: Path) -> None:
    script.write_text(SHARED)
    code, output = invoke("apply", "--way", "no-grad", "--no-verify", "train.py")
    assert code == 1
    assert script.read_text() == SHARED
    assert "left alone: `--way no-grad` does not apply to it, only `--way detach` or" in output
    assert "1 finding left without a fix" in output


def test_a_person_is_told_of_the_other_ways(script: Path) -> None:
    script.write_text(SHARED)
    _, output = invoke("check", "--no-cache", "train.py")
    assert "= fix (repairs, safe): detach `made`" in output
    reported = re.search(r"= other ways: (.*) \(`gradfix explain undetached-fake --ways` ", output)
    assert reported is not None
    assert reported[1] == "`--way reorder`, `--way inputs`"
    script.write_text(RIGHT.replace("m_loss.backward()", "m_loss.backward(retain_graph=True)"))
    _, output = invoke("check", "--no-cache", "train.py")
    assert "= fix (" in output
    assert "other ways" not in output


def test_what_is_repaired_in_one_way_only_is_repaired_whatever_way_is_asked_for(script: Path) -> None:
    script.write_text(RIGHT.replace("m_loss.backward()", "m_loss.backward(retain_graph=True)"))
    invoke("apply", "--way", "freeze", "--no-verify", "train.py")
    assert script.read_text() == RIGHT


def test_without_a_wish_the_first_way_is_taken_and_no_other_is_tried(script: Path) -> None:
    script.write_text(SHARED)
    _, output = invoke("apply", "--no-verify", "train.py")
    assert script.read_text() == RIGHT
    assert "inputs" not in output


def test_ways_are_compared(script: Path) -> None:
    script.write_text(APART)
    _, output = invoke("verify", "--compare", "--select", "undetached-fake", "train.py")
    rows = re.findall(r"^ +way +([a-z-]+) +proved \((\w+)\): .* held for backward, ", output, re.MULTILINE)
    # Another order is another training, and needs leave.
    assert rows == [(way, "preserves") for way in ("detach", "no-grad", "freeze", "inputs")]
    (file,) = Path("gradfix-evidence").glob("*.json")
    reported = json.loads(file.read_text())
    assert reported["way"] == "detach"
    cost = {one["way"]: one for one in reported["ways"]}
    assert list(cost) == ["detach", "no-grad", "freeze", "inputs"]
    # What keeps the graph of the fake holds more.
    assert cost["inputs"]["saved"] > cost["detach"]["saved"] == cost["no-grad"]["saved"]
    assert all(one["backward_seconds"] > 0 for one in cost.values())
    assert "inputs=" in cost["inputs"]["after"]["text"]


def test_one_order_of_adversaries_becomes_the_other(script: Path) -> None:
    script.write_text(RIGHT)
    code, output = invoke("apply", "-v", "--gan-order", "generator-first", "train.py")
    assert code == 0, output
    first = script.read_text()
    assert first.index("maker_opt.step()") < first.index("judge_opt.zero_grad()")
    assert "fixed, proved (changes)" in output
    assert (
        "j_loss for judge_opt, with updates off: the gradient that the original's own graph gives" in output
    )
    code, output = invoke("apply", "--gan-order", "generator-first", "train.py")
    assert (code, script.read_text()) == (0, first)
    code, output = invoke("apply", "--gan-order", "discriminator-first", "train.py")
    assert code == 0, output
    second = script.read_text()
    assert second.index("judge_opt.step()") < second.index("maker_opt.zero_grad()")


@pytest.mark.parametrize(
    "code",
    [
        RIGHT.replace(
            "    judge_opt.zero_grad()\n", "    judge_opt.zero_grad()\n    real = real * size\n    size = 2\n"
        )
        .replace("for _ in", "size = 1\nfor _ in")
        .replace("maker(torch", "maker(size * torch"),
        RIGHT.replace("j_loss", "loss").replace("m_loss", "loss") + "    print(loss.item())\n",
        SHARED,
        EARLY,
        ACTOR,
        BOTH_LAST,
        RIGHT.replace("m_loss = bce(", "m_loss = 0 * j_loss.detach() + bce("),
        RIGHT.replace(
            "    judge_opt.step()\n", "    judge_opt.step()\n    if j_loss.isnan():\n        break\n"
        ),
        RIGHT.replace("    maker_opt.zero_grad()\n", "    maker_opt.zero_grad()\n    real = real * 2\n"),
    ],
    ids=[
        "computed after it",
        "read afterwards",
        "undetached",
        "early",
        "no adversaries",
        "both steps last",
        "reads the loss",
        "leaves",
        "rebinds",
    ],
)
def test_an_order_that_cannot_be_exchanged_stays(script: Path, code: str) -> None:
    script.write_text(code)
    invoke("apply", "--gan-order", "generator-first", "--no-verify", "train.py")
    assert script.read_text() == code


def test_the_orders_that_can_be_asked_for_are_those_that_there_are() -> None:
    assert set(GanOrder) == set(Order)


def test_no_order_is_a_mistake(script: Path) -> None:
    assert not [one for one in findings(script, RIGHT) if one["code"].endswith("-first")]
    assert "generator-first" not in catalog.load().names


@pytest.mark.parametrize("codemod", catalog.load().codemods, ids=lambda codemod: codemod.name)
def test_ways_are_explained_where_a_codemod_has_them(codemod: catalog.Codemod) -> None:
    source = (ROOT / "codemods" / f"{codemod.name.replace('-', '_')}.py").read_text()
    used = {way for way in Way if f"Way.{way.name}" in source}
    explained = set(re.findall(r"^\* ([a-z-]+)(?:,|:)", codemod.ways, re.MULTILINE))
    assert explained == used
    code, output = invoke("explain", "--ways", codemod.name)
    assert code == 0
    assert all(f"* {way}" in output for way in used) and bool(used) is output.startswith("* ")
