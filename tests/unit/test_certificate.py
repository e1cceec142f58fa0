"""Certificates: what they hold is documented, and they can be run again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fakes import ROOT
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from gradfix.cli.commands import app
from gradfix.pipeline import certificate
from gradfix.project.source import Problem

pytestmark = pytest.mark.usefixtures("servers")

DOCS = Path(__file__).parents[2] / "docs" / "certificate.md"
SCRIPT = """import torch
from torch import nn

torch.manual_seed(0)
maker, critic = nn.Linear(3, 4), nn.Linear(4, 1)
opt_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
opt_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(3):
    made = maker(torch.randn(5, 3)).tanh()
    opt_critic.zero_grad()
    low = critic(made).sigmoid().mean()
    low.backward()
    opt_critic.step()
    opt_maker.zero_grad()
    high = -critic(made).sigmoid().mean()
    high.backward()
    opt_maker.step()
"""


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that ``apply`` has written."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(SCRIPT)
    code, output = invoke("apply", str(folder / "train.py"), "--evidence", str(folder / "evidence"))
    assert code == 0, output
    (file,) = (folder / "evidence").glob("*.json")
    return file


def content(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(file.read_text())
    return read


def documented(heading: str) -> set[str]:
    """The fields in the table that follows ``heading``."""
    table = DOCS.read_text().split(heading, 1)[1].split("\n\n", 2)[1]
    rows = re.findall(r"^\| (`.*?) \|", table, re.M)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_field_is_documented(written: Path) -> None:
    whole = content(written)
    assert set(whole) == documented(f"## Schema {certificate.SCHEMA}")
    assert set(whole["claim"]) == documented("\n`claim`:")
    assert set(whole["evidence"]) == documented("\n`evidence`:")
    assert set(whole["evidence"]["effects"]) == documented("\n`effects`, up to")
    run = whole["evidence"]["runs"][0]
    inner = {name for part in ("optimizers", "steps", "backwards") for name in run[part][0]}
    assert set(run) == documented("\nEach of the `runs`:")
    told = DOCS.read_text().split("\nEach of the `runs`:", 1)[1]
    assert [name for name in (*inner, *run["steps"][0]["random"]) if f"`{name}`" not in told] == []
    assert whole["schema"] == certificate.SCHEMA


def test_it_is_as_its_schema_says(written: Path) -> None:
    schema = json.loads((ROOT / "gradfix" / "schemas" / "certificate.json").read_text())
    whole = content(written)
    Draft202012Validator(schema).validate(whole)
    assert set(whole) == set(schema["$defs"]["CertificateData"]["properties"])
    assert set(whole["claim"]) == set(schema["$defs"]["ClaimData"]["properties"])
    assert set(whole["evidence"]) == set(schema["$defs"]["Evidence"]["properties"])
    whole["evidence"]["runs"][0]["steps"][0]["gradients"] = 1
    assert not Draft202012Validator(schema).is_valid(whole)


def test_it_says_what_was_run(written: Path) -> None:
    whole = content(written)
    assert whole["outcome"] == "proved"
    before, after = (
        next(run for run in whole["evidence"]["runs"] if run["version"] == version)
        for version in ("before", "after")
    )
    assert [optimizer["shapes"] for optimizer in after["optimizers"]] == [[[4, 3], [4]], [[1, 4], [1]]]
    # The critic's step before the crash consumed the same in both versions.
    assert before["steps"] == [after["steps"][0]]
    assert len(after["steps"]) == 6


def test_it_runs_again(written: Path) -> None:
    code, output = invoke("verify", "--certificate", str(written))
    assert code == 0
    assert "was not looked at" in output
    assert "certified as proved; now proved" in output
    for place in (written.parents[1], written.parents[1] / "train.py"):
        code, output = invoke("verify", "--certificate", str(written), str(place))
        assert code == 0
        assert "holds the fixed version" in output


def test_it_says_what_surrounds_the_gradients(written: Path) -> None:
    evidence = content(written)["evidence"]
    before, after = evidence["runs"][0], next(run for run in evidence["runs"] if run["version"] == "after")
    # The critic's loss went on through the maker, which has saved its input. What its tanh has saved
    # is the critic's input, too.
    low, high = before["backwards"][0], after["backwards"][0]
    assert (low["loss"], low["kept"], high["kept"]) == ("low", False, False)
    assert low["saved"] - high["saved"] == 5 * 3 * 4
    assert after["peak"] == max(call["saved"] for call in after["backwards"]) == low["saved"]
    states = [step["random"]["torch"] for step in after["steps"]]
    assert states[0] == states[1] != states[2], "one draw for each pass of the loop"
    assert evidence["effects"]["compared"] == len(after["steps"])
    assert evidence["effects"]["random_from"] is None


def test_a_certificate_of_the_first_schema_can_be_read(written: Path, tmp_path: Path) -> None:
    whole = content(written)
    whole["schema"] = 1
    del whole["claim"]["same_forwards"], whole["evidence"]["effects"]
    for run in whole["evidence"]["runs"]:
        del run["backwards"], run["peak"]
    old = tmp_path / "old.json"
    old.write_text(json.dumps(whole))
    found = certificate.read(str(old))
    assert not isinstance(found, Problem)
    assert not found.claim.same_forwards, "it has promised nothing of forward passes"


def test_a_certificate_of_the_second_schema_can_be_read(written: Path, tmp_path: Path) -> None:
    whole = content(written)
    whole["schema"] = 2
    whole["claim"] |= {
        "stops": "nothing",
        "steady_modes": True,
        "clips": [1],
        "schedules": [1],
        "clears": True,
    }
    old = tmp_path / "old.json"
    old.write_text(json.dumps(whole))
    found = certificate.read(str(old))
    assert not isinstance(found, Problem)
    assert (found.claim.stops, found.claim.steady_modes) == (None, False)
    assert (found.claim.clips, found.claim.schedules, found.claim.clears) == ((), (), False)


def test_a_claim_is_read_as_it_was_written(written: Path, tmp_path: Path) -> None:
    whole = content(written)
    whole["claim"] |= {"stops": "empty parameter list", "steady_modes": True, "clips": [7, 9]}
    new = tmp_path / "new.json"
    new.write_text(json.dumps(whole))
    found = certificate.read(str(new))
    assert not isinstance(found, Problem)
    assert found.claim.stops == "empty parameter list"
    assert (found.claim.steady_modes, found.claim.clips) == (True, (7, 9))


def test_a_crash_that_nothing_explains_proves_nothing_again(written: Path, tmp_path: Path) -> None:
    whole = content(written)
    raised = "\ntorch.zeros(1, requires_grad=True).sum().backward(torch.zeros(2))\n"
    for version in ("before", "after"):
        whole[version]["text"] += raised
        whole[version]["sha256"] = certificate._digest(whole[version]["text"])
    crashing = tmp_path / "crashing.json"
    crashing.write_text(json.dumps(whole))
    code, output = invoke("verify", "--certificate", str(crashing), "--output-format", "json")
    assert (code, json.loads(output)["again"]["outcome"]) == (2, "not run")


def test_a_fix_that_does_not_hold_is_refuted(written: Path, tmp_path: Path) -> None:
    whole = content(written)
    whole["after"]["text"] = SCRIPT.replace("-critic(made)", "-critic(made.detach())").replace(
        "critic(made).sigmoid().mean()\n    low", "critic(made.detach()).sigmoid().mean()\n    low"
    )
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(whole))
    code, output = invoke("verify", "--certificate", str(forged))
    assert code == 2
    assert "does not have" in output or "do not have the digests" in output

    whole["after"]["sha256"] = certificate._digest(whole["after"]["text"])
    forged.write_text(json.dumps(whole))
    code, output = invoke("verify", "--certificate", str(forged), "--output-format", "json")
    assert code == 1
    assert json.loads(output)["again"]["outcome"] == "refuted"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no certificate"),
        ("[]", "no certificate"),
        ('{"schema": 99}', "schema 99"),
        ('{"schema": 1}', "no certificate"),
        ('{"schema": 2}', "no certificate"),
        ('{"schema": 3}', "no certificate"),
        ('{"schema": []}', "schema []"),
        ("[" * 100_000, "no certificate"),
        ('{"schema": 1, "claim": 3, "filename": 1}', "no certificate"),
    ],
)
def test_what_is_no_certificate(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    file.write_text(text)
    problem = certificate.read(str(file))
    assert isinstance(problem, Problem)
    assert said in str(problem)
    code, output = invoke("verify", "--certificate", str(file))
    assert code == 2
    assert str(file) in output


def test_the_file_may_have_changed_since(written: Path) -> None:
    found = certificate.read(str(written))
    assert not isinstance(found, Problem)
    path = Path(found.filename)
    fixed = path.read_text()
    assert found.file_now(path) == "as after"
    path.write_text(found.before)
    assert found.file_now(path) == "as before"
    path.write_text(fixed + "\n")
    assert found.file_now(path) == "changed"
    path.unlink()
    assert found.file_now(path) == "missing"
    path.write_text(fixed)


def test_only_what_is_proved_is_applied_unless_more_is_asked_for(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import no_licence\nif no_licence.given:\n    pass\n" + SCRIPT)
    before = script.read_bytes()
    arguments = ["apply", str(script), "--evidence", str(tmp_path / "evidence")]
    code, output = invoke(*arguments)
    assert code == 1
    assert script.read_bytes() == before
    assert "not proved and not applied" in output
    assert "not applied, unverified" in output

    assert "`gradfix apply --unproved` writes it" in output
    _, dry = invoke(*arguments, "--dry-run")
    assert "no_licence" in dry
    assert ": unverified, so not in the patch: " in dry
    code, output = invoke(*arguments, "--unproved")
    assert code == 0
    assert "unverified" in output
    assert script.read_bytes() != before


def set_at(whole: dict[str, Any], place: str, value: object) -> None:
    *way, last = place.split(".")
    for name in way:
        whole = whole[name]
    whole[last] = value


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("claim.raises", "E9"),
        ("claim.raises", ["E1"]),
        ("claim.raises_line", "1"),
        ("claim.raises_line", True),
        ("claim.unchanged", [1.5]),
        ("claim.feeds", [[1e999, "x"]]),
        ("claim.clips", ["1"]),
        ("before.text", "\ud800"),
        ("message", "\udcff"),
        ("outcome", "sure"),
        ("outcome", ["proved"]),
        ("evidence", None),
        ("evidence.checks", []),
        ("evidence.checks", [1]),
        ("evidence.outcome", "refuted"),
        ("evidence.checks", [{"name": "kept", "verdict": "fails", "detail": "", "subject": ""}]),
        ("evidence.checks", [{"name": "kept", "verdict": "fine", "detail": "", "subject": ""}]),
    ],
)
def test_what_is_forged_is_no_certificate(written: Path, tmp_path: Path, place: str, value: object) -> None:
    whole = content(written)
    set_at(whole, place, value)
    (tmp_path / "forged.json").write_text(json.dumps(whole))
    assert isinstance(certificate.read(str(tmp_path / "forged.json")), Problem)
