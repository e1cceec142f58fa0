"""The JSON schemas that `gradfix schema` prints: what gradfix prints and reads is as they say."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fakes import ROOT
from jsonschema import Draft7Validator, Draft202012Validator
from typer.testing import CliRunner

from gradfix.bot import config as bot
from gradfix.bot.errors import UsageError
from gradfix.cli.commands import app
from gradfix.project.configuration import Settings, settings_for
from gradfix.project.source import Problem


def printed(name: str) -> dict[str, Any]:
    """The schema that the command prints."""
    result = CliRunner().invoke(app, ["schema", name])
    assert result.exit_code == 0, result.output
    schema: dict[str, Any] = json.loads(result.stdout)
    return schema


def test_the_schemas_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_schemas.py"), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_each_is_a_schema_of_its_dialect() -> None:
    for name in ("findings", "certificate"):
        Draft202012Validator.check_schema(printed(name))
    Draft7Validator.check_schema(printed("configuration"))


def test_findings_are_as_their_schema_says(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import torch\ntorch.tensor(0.0).backward(:\n")
    arguments = ["check", "--no-cache", "--min-severity", "info", "--output-format", "json"]
    paths = [str(ROOT / "examples" / "workshop"), str(tmp_path)]
    found = json.loads(CliRunner().invoke(app, [*arguments, *paths]).stdout)
    schema = printed("findings")
    Draft202012Validator(schema).validate(found)
    assert {one["code"] for one in found} > {"syntax-error", "stale-forward"}
    assert any(one["fix"] and one["notes"] and one["ways"] for one in found)
    # Every field is described; a new one is to be written down.
    assert all(set(one) == set(schema["$defs"]["FindingData"]["properties"]) for one in found)
    wrong = [{**found[0], "severity": "fatal"}]
    assert not Draft202012Validator(schema).is_valid(wrong)


@pytest.mark.parametrize(
    "table",
    [
        "",
        "[tool.gradfix]\nselect = ['stale-forward']\nunsafe-fixes = true\nmin-severity = 'info'\n",
        "[tool.gradfix]\nmax-file-size = 9\nexclude = ['build/']\nignore = []\n",
        "[tool.gradfix]\nselct = []\n",
        "[tool.gradfix]\nselect = 'stale-forward'\n",
        "[tool.gradfix]\nignore = [1]\n",
        "[tool.gradfix]\nunsafe-fixes = 1\n",
        "[tool.gradfix]\nmin-severity = 'fatal'\n",
        "[tool.gradfix]\nmax-file-size = 0\n",
        "[tool.gradfix]\nfile = 'x'\n",
        "[tool.gradfix]\nverify = 1\n",
        "[tool.gradfix.verify]\ncommand = 'python train.py'\nseconds = 2.5\nenv = ['HOME']\n",
        "[tool.gradfix.verify]\ncommand = { 'a.py' = 'python a.py' }\nreadable = ['/srv']\npython = 'py'\n",
        "[tool.gradfix.verify]\ncommand = [1]\n",
        "[tool.gradfix.verify]\nseconds = 0\n",
        "[tool.gradfix.verify]\npython = true\n",
        "[tool.gradfix.bot]\ngroup = 'file'\nmax-open = 100\nlabels = ['a']\ndraft = true\n",
        "[tool.gradfix.bot]\ngroup = 'folder'\n",
        "[tool.gradfix.bot]\nmax-open = 101\n",
        "[tool.gradfix.bot]\nmaxopen = 1\n",
    ],
)
def test_a_configuration_is_read_if_its_schema_allows_it(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(table)
    monkeypatch.chdir(tmp_path)
    try:
        bot.read(table.encode())
        is_read = not isinstance(settings_for(["."]), Problem)
    except UsageError:
        is_read = False
    value = tomllib.loads(table).get("tool", {}).get("gradfix", {})
    assert Draft7Validator(printed("configuration")).is_valid(value) == is_read


def test_the_defaults_of_the_configuration_are_those_of_its_schema(tmp_path: Path) -> None:
    properties = printed("configuration")["properties"]
    defaults = {name: value["default"] for name, value in properties.items() if "default" in value}
    assert {name: getattr(Settings(), name.replace("-", "_")) for name in defaults} == {
        name: tuple(value) if isinstance(value, list) else value for name, value in defaults.items()
    }
    assert properties["select"]["description"] == "Only these codemods; empty for all."
