"""The examples for CI and the page about the bot: what they say is so."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gradfix.bot import config
from gradfix.bot.config import REBUILD, BotConfig
from gradfix.bot.errors import UsageError
from gradfix.cli.bot import app

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "examples" / "ci"
PAGE = (ROOT / "docs" / "bot.md").read_text(encoding="utf-8")
TEXTS = [*sorted(path for path in CI.rglob("*") if path.is_file()), ROOT / "docs" / "bot.md"]


def load(name: str) -> dict[Any, Any]:
    content: dict[Any, Any] = yaml.safe_load((CI / name).read_text(encoding="utf-8"))
    return content


def test_the_job_that_runs_the_code_has_no_secret_and_may_only_read() -> None:
    workflow = load("github.yml")
    assert workflow["permissions"] == {}
    plan, publish = workflow["jobs"]["plan"], workflow["jobs"]["publish"]
    assert plan["permissions"] == {"contents": "read"}
    assert publish["permissions"] == {"contents": "write", "pull-requests": "write"}
    told = yaml.dump(plan)
    assert "secrets" not in told and "token" not in told.lower()
    (checkout,) = [step for step in plan["steps"] if "checkout" in step.get("uses", "")]
    assert checkout["with"]["persist-credentials"] is False
    assert not [step for step in publish["steps"] if "checkout" in step.get("uses", "")]
    assert [list(step["env"]) for step in publish["steps"] if "env" in step] == [["GRADFIX_TOKEN"]]


def test_the_job_of_gitlab_that_holds_the_token_checks_nothing_out() -> None:
    template = load("gitlab.yml")
    plan, publish = template["gradfix-plan"], template["gradfix-publish"]
    assert publish["variables"]["GIT_STRATEGY"] == "none"
    assert "GRADFIX_TOKEN" not in yaml.dump(plan)
    assert "environment" not in plan
    assert publish["environment"] == {"name": "gradfix"}


def commands(text: str) -> list[list[str]]:
    """Every call of ``gradfix bot`` in a text."""
    lines = (line.split("#")[0] if line.startswith("gradfix") else line for line in text.splitlines())
    found = [re.search(r"gradfix bot ((?:plan|publish|status|review)\b[^`&|]*)", line) for line in lines]
    return [shlex.split(match[1]) for match in found if match and not match[1].strip().endswith((".", ","))]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_the_options_that_are_named_exist(path: Path) -> None:
    for command, *arguments in commands(path.read_text(encoding="utf-8")):
        helped = CliRunner().invoke(app, [command, "--help"])
        assert helped.exit_code == 0, command
        for argument in arguments:
            if argument.startswith("--"):
                assert argument.split("=")[0] in helped.output, (path, argument)


def test_both_phases_are_in_every_example() -> None:
    for name in ("github.yml", "gitlab.yml", "crontab"):
        names = [command for command, *_ in commands((CI / name).read_text(encoding="utf-8"))]
        assert {"plan", "publish"} <= set(names), name


def test_the_page_names_every_key_with_its_default() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert config.read(block.encode()) == BotConfig()
    for field in fields(BotConfig):
        assert re.search(rf"^{field.name.replace('_', '-')} = ", block, re.MULTILINE), field.name
    assert REBUILD in PAGE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max-open = -1", "a number"),
        ("max-open = true", "a number"),
        ('group = "each"', "one of codemod, file, all"),
        ('labels = ["a,b"]', "a list of labels"),
        ('labels = "a"', "a list of labels"),
        ('author = "x"', "a name with an address"),
        ('author = "x <a@b>\\nGradfix-Key: 1"', "a name with an address"),
        ("sign-off = 1", "true or false"),
        ("max-opne = 1", "did you mean 'max-open'"),
    ],
)
def test_a_wrong_configuration_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        config.read(f"[tool.gradfix.bot]\n{text}\n".encode())


def test_no_configuration_is_the_default() -> None:
    for data in (None, b"", b"[tool.other]\nx = 1\n", b"[tool.gradfix]\nselect = []\n"):
        assert config.read(data) == BotConfig()
    with pytest.raises(UsageError):
        config.read(b"[tool.gradfix.bot\n")
