"""Baselines: what a project has for now is not reported, what is new is, and what is gone is told."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fakes import ROOT, gradfix, standard_codemods

from gradfix.pipeline.fingerprints import lines_of

TAIL = "# x.backward()\n"
NAME = "known.json"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    standard_codemods(tmp_path / "codemods")
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def put(project: Path, code: str, name: str = "train.py") -> Path:
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{code}\n{TAIL}")
    return path


def run(project: Path, *arguments: object, command: str = "check") -> subprocess.CompletedProcess[bytes]:
    done = gradfix(command, "--codemods", project.parent / "codemods", *arguments, cwd=project)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def found(project: Path, *arguments: object) -> list[tuple[str, int, str]]:
    """What is reported beside the baseline."""
    done = run(project, "--baseline", NAME, "--output-format", "json", *arguments)
    assert done.returncode in (0, 1), done.stderr.decode()
    return [(one["filename"], one["location"]["row"], one["code"]) for one in json.loads(done.stdout)]


def write(project: Path, *arguments: object) -> dict[str, Any]:
    done = run(project, "--baseline", NAME, "--write-baseline", *arguments)
    assert (done.returncode, done.stderr) == (0, b"")
    content: dict[str, Any] = json.loads((project / NAME).read_text())
    return content


def test_the_file_is_as_its_schema_says_and_for_people_to_read(project: Path) -> None:
    put(project, "class Model:\n    def fit(self):\n        print( bad,  bad )\nrisky")
    put(project, "bad", "zoo.py")
    done = run(project, "--baseline", NAME, "--write-baseline")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Wrote 4 findings to known.json\n", b"")
    content = json.loads((project / NAME).read_text())
    assert content["schema"] == 1
    assert [tuple(one.values()) for one in content["findings"]] == [
        ("train.py", "bad-word", "Model.fit", "print( bad, bad )", "warning", 2),
        ("train.py", "risky-word", "", "risky", "warning", 1),
        ("zoo.py", "bad-word", "", "bad", "warning", 1),
    ]
    assert len((project / NAME).read_text().splitlines()) == 5
    schema = json.loads((ROOT / "gradfix" / "schemas" / "baseline.json").read_text())
    jsonschema.validate(content, schema)


def test_only_what_is_new_is_reported_wherever_the_rest_has_moved(project: Path) -> None:
    put(project, "bad\ndef f():\n    bad\nrisky")
    write(project)
    done = run(project, "--baseline", NAME)
    assert (done.returncode, done.stderr) == (0, b"")
    said = b"Checked 1 file, found nothing new; 3 findings are in the baseline; there are no training steps\n"
    assert done.stdout == said
    put(project, "other = 1\n\n\nbad\nclass_ = 2\ndef f():\n    other()\n    bad\nrisky")
    assert found(project) == []
    put(project, "bad\ndef f():\n    bad\n    bad\nrisky\ndef g():\n    bad")
    assert found(project) == [("train.py", 4, "bad-word"), ("train.py", 7, "bad-word")]
    assert b"; 3 findings are in the baseline;" in run(project, "--baseline", NAME).stdout


def test_an_edited_line_is_new_and_its_old_self_is_told(project: Path) -> None:
    put(project, "bad\nrisky")
    write(project)
    put(project, "print(bad)\nrisky")
    done = run(project, "--baseline", NAME, "-v")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "note: 1 finding of known.json is not found any more; `gradfix check --write-baseline` takes it out",
        "note: train.py: bad-word: not found any more: bad",
    ]


def test_a_baseline_shrinks_by_what_is_gone_and_keeps_what_was_not_looked_at(project: Path) -> None:
    put(project, "bad\nbad\nrisky")
    put(project, "bad", "other.py")
    put(project, "bad", "gone.py")
    write(project)
    put(project, "bad\nrisky")
    (project / "gone.py").unlink()
    done = run(project, "--baseline", NAME, "train.py")
    assert b"note: 2 findings of known.json are not found any more" in done.stderr
    left = write(project, "train.py")["findings"]
    assert [(one["filename"], one["code"], one["count"]) for one in left] == [
        ("other.py", "bad-word", 1),
        ("train.py", "bad-word", 1),
        ("train.py", "risky-word", 1),
    ]
    assert run(project, "--baseline", NAME).stderr == b""


def test_what_is_not_asked_for_is_not_told_as_gone(project: Path) -> None:
    put(project, "bad\nrisky")
    before = write(project)
    put(project, "", "other.py")
    for options in (["--select", "hopeless-word"], ["--min-severity", "error"], ["--exclude", "train.py"]):
        assert run(project, "--baseline", NAME, *options).stderr.count(b"any more") == 0, options
        assert write(project, *options) == before, options
    (project / "train.py").write_text("bad(\n" + TAIL)  # Nothing is known of it.
    assert b"any more" not in run(project, "--baseline", NAME).stderr


def test_a_file_that_cannot_matter_any_more_has_nothing(project: Path) -> None:
    put(project, "bad")
    write(project)
    (project / "train.py").write_text("print()\n")
    assert b"1 finding of known.json is not found any more" in run(project, "--baseline", NAME).stderr


def test_fixes_are_for_what_is_new(project: Path) -> None:
    path = put(project, "bad")
    write(project)
    put(project, "bad\nprint(bad)")
    assert b"+print(good)\n" in (done := run(project, "--baseline", NAME, "--diff")).stdout
    assert b"-bad\n" not in done.stdout
    fixed = run(project, "--baseline", NAME, "--no-verify", command="apply")
    assert fixed.returncode == 0, fixed.stdout.decode()
    assert path.read_text() == f"bad\nprint(good)\n{TAIL}"
    assert run(project, "--no-verify", command="apply").returncode == 0
    assert path.read_text() == f"good\nprint(good)\n{TAIL}"


def test_the_other_forms_and_counts_agree(project: Path) -> None:
    put(project, "bad")
    write(project)
    put(project, "bad\nrisky")
    sarif = json.loads(run(project, "--baseline", NAME, "--output-format", "sarif").stdout)
    assert [one["ruleId"] for one in sarif["runs"][0]["results"]] == ["risky-word"]
    assert run(project, "--baseline", NAME, "--statistics", "-q").stdout == b"1  risky-word\n"
    assert run(project, "--baseline", NAME, "--exit-zero").returncode == 0
    assert run(project, "--baseline", NAME, "--add-ignores").stdout == (
        b"Ignored 1 finding by comments in 1 file\n"
    )
    assert (project / "train.py").read_text().splitlines()[0] == "bad"


def test_the_configuration_names_it_for_its_own_files(project: Path) -> None:
    for name in ("one", "two"):
        put(project, "bad", f"{name}/train.py")
        (project / name / "pyproject.toml").write_text("[tool.gradfix]\nbaseline = 'known.json'\n")
    done = run(project)
    assert done.returncode == 2 and b"known.json: there is no such baseline" in done.stderr
    done = run(project, "--write-baseline")
    assert done.stdout == b"Wrote 1 finding to one/known.json\nWrote 1 finding to two/known.json\n"
    assert run(project).returncode == 0
    put(project, "bad\nbad", "two/train.py")
    assert b"two/train.py:2:1: bad-word" in (done := run(project)).stdout
    assert b"Found 1 finding in 1 file" in done.stdout
    assert json.loads((project / "one" / NAME).read_text())["findings"][0]["filename"] == "train.py"


def test_the_cache_goes_by_the_baseline(project: Path) -> None:
    put(project, "bad")
    assert run(project).returncode == 1
    write(project)
    assert run(project, "--baseline", NAME).returncode == 0
    (project / NAME).write_text('{"schema": 1, "findings": []}')
    assert run(project, "--baseline", NAME).returncode == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, b"there is no such baseline"),
        ("{", b"is no baseline"),
        ('{"schema": 7, "findings": []}', b"is a baseline of another schema than 1"),
        ('{"schema": 1, "findings": [{"filename": "a"}]}', b"is no baseline"),
        ('{"schema": 1, "findings": 3}', b"is no baseline"),
    ],
)
def test_what_is_no_baseline_is_2(project: Path, content: str | None, message: bytes) -> None:
    put(project, "bad")
    if content is not None:
        (project / NAME).write_text(content)
    done = run(project, "--baseline", NAME)
    assert done.returncode == 2 and message in done.stderr


def test_a_configuration_names_nothing_outside_of_its_folder(project: Path) -> None:
    put(project, "bad")
    (project / "pyproject.toml").write_text("[tool.gradfix]\nbaseline = '../known.json'\n")
    done = run(project, "--write-baseline")
    assert done.returncode == 2 and b"is outside of its folder" in done.stderr
    assert not (project.parent / NAME).exists()
    (project / "pyproject.toml").write_text("[tool.gradfix]\nbaseline = 'known.json'\n")
    (project / NAME).symlink_to(project.parent / NAME)
    assert run(project, "--write-baseline").returncode == 2
    assert not (project.parent / NAME).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--write-baseline"], b"is under no baseline"),
        (["--write-baseline", "--fix"], b"stands without --fix"),
        (["--write-baseline", "--output-format", "json"], b"prints no findings"),
        (["--write-baseline", "-"], b"is not for --write-baseline"),
    ],
)
def test_what_makes_no_sense_is_refused(project: Path, arguments: list[str], message: bytes) -> None:
    put(project, "bad")
    done = run(project, *arguments)
    assert done.returncode == 2 and message in done.stderr


def test_functions_are_named_with_what_is_around_them() -> None:
    method = "        @wrapped\n        async def f(self):\n            def g():\n                1\n"
    lines = lines_of("class A:\n    if x:\n" + method + "try:\n    2\nexcept E:\n    def h(): 3\n")
    named = {row: one.function for row in range(1, 11) if (one := lines.identity("c", row)) is not None}
    assert named == {
        1: "",
        2: "",
        3: "A.f",
        4: "A.f",
        5: "A.f.g",
        6: "A.f.g",
        7: "",
        8: "",
        9: "",
        10: "h",
    }
    assert lines.identity("c", 99) is None
