"""What `check` prints for code hosts: SARIF, annotations of GitHub, and GitLab's Code Quality."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from test_printable import HOSTILE, acts
from typer.testing import CliRunner

from gradfix.cli.commands import app
from gradfix.core.codemod import Finding, Severity
from gradfix.core.span import Span
from gradfix.pipeline.results import FileReport, Report, Reported
from gradfix.report import sarif
from gradfix.rules import catalog

FAULTY = """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()
for x in torch.randn(3, 8, 4):
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


def check(form: str, *paths: str) -> tuple[int, str]:
    """The exit code of a `check`, and what it has printed."""
    result = CliRunner().invoke(app, ["check", "--no-cache", "--output-format", form, *paths])
    return result.exit_code, result.stdout


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a faulty script, and a file that is no Python."""
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "a, b").mkdir()
    (tmp_path / "a, b" / "train.py").write_text(FAULTY)
    (tmp_path / "broken.py").write_text("import torch\ntorch.tensor(0.0).backward(:\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def applied(text: str, replacements: list[dict[str, Any]]) -> str:
    """A text after the replacements of a SARIF fix."""
    lines = text.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + column - 1

    for one in reversed(replacements):
        region = one["deletedRegion"]
        start = offset(region["startLine"], region["startColumn"])
        end = offset(region["endLine"], region["endColumn"])
        text = text[:start] + one["insertedContent"]["text"] + text[end:]
    return text


def test_sarif_tells_rules_places_and_fixes() -> None:
    code, printed = check("sarif")
    log = json.loads(printed)
    (run,) = log["runs"]
    found = {result["ruleId"]: result for result in run["results"]}
    assert code == 2
    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "gradfix")
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == sorted(found)
    assert {name: one["level"] for name, one in found.items()} == {
        "misplaced-zero-grad": "error",
        "needless-retain-graph": "warning",
        "syntax-error": "error",
    }
    needless = found["needless-retain-graph"]
    place = needless["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%2C%20b/train.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["startLine"] == 10
    (change,) = needless["fixes"][0]["artifactChanges"]
    assert applied(FAULTY, change["replacements"]) == FAULTY.replace("retain_graph=True", "")
    assert "fixes" not in found["syntax-error"]


def test_annotations_escape_what_would_end_them() -> None:
    _, printed = check("github")
    lines = printed.splitlines()
    assert [line.split(" ", 1)[0] for line in lines] == ["::error", "::warning", "::error"]
    assert "title=gradfix (needless-retain-graph),file=a%2C b/train.py,line=10,col=5," in lines[1]
    assert lines[1].count("::") == 2


def test_paths_are_those_below_the_checkout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder))
    monkeypatch.setenv("CI_PROJECT_DIR", str(folder))
    monkeypatch.chdir(folder / "a, b")
    _, printed = check("gitlab", "train.py")
    assert {one["location"]["path"] for one in json.loads(printed)} == {"a, b/train.py"}
    _, printed = check("github", os.path.join(folder, "a, b"))
    assert printed.count("file=a%2C b/train.py,") == 2


def test_an_issue_of_gitlab_is_known_again_where_it_has_moved(folder: Path) -> None:
    train = folder / "a, b" / "train.py"
    _, printed = check("gitlab", str(train))
    before = json.loads(printed)
    train.write_text("# moved\n" + FAULTY)
    _, printed = check("gitlab", str(train))
    after = json.loads(printed)
    assert [one["fingerprint"] for one in before] == [one["fingerprint"] for one in after]
    assert [one["location"]["positions"]["begin"]["line"] + 1 for one in before] == [
        one["location"]["positions"]["begin"]["line"] for one in after
    ]
    assert {one["severity"] for one in before} == {"major", "minor"}


def test_equal_findings_of_one_file_are_issues_of_their_own(folder: Path) -> None:
    train = folder / "a, b" / "train.py"
    loop = FAULTY.split("for x")[1]
    train.write_text(FAULTY + f"for x{loop}")
    _, printed = check("gitlab", str(train))
    found = json.loads(printed)
    assert len({one["description"] for one in found}) < len(found)
    assert len({one["fingerprint"] for one in found}) == len(found)


def test_other_commands_have_text_and_json_alone() -> None:
    result = CliRunner().invoke(app, ["apply", "--dry-run", "--output-format", "sarif"])
    assert result.exit_code == 2
    assert "'text', 'json'" in result.output


NOT_UTF8 = b"caf\xe9.py"


@pytest.fixture
def hostile(folder: Path) -> set[bytes]:
    """The names of faulty scripts that are no text, or act on a terminal or a log."""
    names = {"".join(one for one in f"a{text}.py" if one not in "/\x00\ud800") for text in HOSTILE.values()}
    found = {NOT_UTF8, b"::error::forged.py", *map(os.fsencode, names)}
    for name in found:
        (folder / os.fsdecode(name)).write_text(FAULTY)
    return found


def strings(value: Any) -> Iterator[str]:
    """Every text in JSON data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


@pytest.mark.parametrize("form", ["json", "sarif", "gitlab"])
def test_every_name_of_a_file_can_be_told_in_json(form: str, hostile: set[bytes]) -> None:
    code, printed = check(form)
    assert code == 2
    assert printed.isascii()
    for text in strings(json.loads(printed)):
        text.encode()  # Half a pair of UTF-16, which many readers refuse, is no UTF-8.
    assert "##vso[" not in printed
    if form == "sarif":
        results = json.loads(printed)["runs"][0]["results"]
        places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results]
        assert hostile <= set(map(unquote_to_bytes, places))
    else:
        assert "caf\\\\xe9.py" in printed


def test_an_annotation_acts_on_no_terminal_and_is_one_line(hostile: set[bytes]) -> None:
    _, printed = check("github")
    assert acts(printed) == []
    lines = printed.removesuffix("\n").split("\n")
    assert len(lines) == 2 * (len(hostile) + 1) + 1
    assert all(line.startswith(("::error title=gradfix (", "::warning title=gradfix (")) for line in lines)


def test_no_name_of_a_file_is_an_order_to_the_job_that_prints_it(hostile: set[bytes]) -> None:
    _, printed = check("text")
    assert "./::error::forged.py:10:5: " in printed
    assert not re.search(r"(?m)^\s*::", printed)


def test_code_in_a_message_of_sarif_makes_no_link() -> None:
    finding = Finding("some-mistake", "`losses[0](x)` is wasted", Span(1, 0, 1, 1), severity=Severity.INFO)
    report = Report((FileReport("a.py", "x\n", (Reported(finding),)),), (), 1, ())
    (result,) = json.loads(sarif.of_report(report, catalog.load()))["runs"][0]["results"]
    assert result["message"]["text"] == "`losses[0] (x)` is wasted"
