"""Which settings hold for which file, from the command line: configurations, selection, exclusion."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from fakes import gradfix, standard_codemods


@pytest.fixture
def project(tmp_path: Path) -> Path:
    standard_codemods(tmp_path / "codemods")
    folder = tmp_path / "project"
    put(folder, ".git/HEAD", "")
    return folder


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n# x.backward()\n" if name.endswith(".py") else text)


def run(project: Path, command: str, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    done = gradfix(command, "--codemods", project.parent / "codemods", *arguments, cwd=project)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def found(project: Path, *arguments: object) -> list[tuple[str, str]]:
    done = run(project, "check", "--output-format", "json", *arguments)
    return [(one["filename"], one["code"]) for one in json.loads(done.stdout)]


def test_each_file_has_its_nearest_configuration_whatever_else_is_named(project: Path) -> None:
    put(project, "pyproject.toml", '[tool.gradfix]\nignore = ["risky-word"]\n')
    put(project, "train.py", "bad\nrisky")
    put(project, "inner/pyproject.toml", '[tool.gradfix]\nselect = ["risky-word"]\n')
    put(project, "inner/train.py", "bad\nrisky")
    outer, inner = [("train.py", "bad-word")], [("inner/train.py", "risky-word")]
    assert found(project, "inner/train.py") == inner
    assert found(project, "train.py") == outer
    assert found(project, "inner/train.py", "train.py") == inner + outer
    assert found(project, ".") == inner + outer


def test_the_command_line_is_stronger_than_every_configuration(project: Path) -> None:
    put(project, "inner/pyproject.toml", '[tool.gradfix]\nselect = ["risky-word"]\n')
    put(project, "inner/train.py", "bad\nrisky")
    assert found(project, "--select", "bad-word", ".") == [("inner/train.py", "bad-word")]


def test_apply_fixes_each_file_by_its_own_configuration(project: Path) -> None:
    put(project, "a/pyproject.toml", "[tool.gradfix]\nunsafe-fixes = true\n")
    put(project, "a/train.py", "risky")
    put(project, "b/train.py", "risky")
    run(project, "apply", "--no-verify", "a/train.py", "b/train.py")
    assert (project / "a/train.py").read_text().startswith("good")
    assert (project / "b/train.py").read_text().startswith("risky")


def test_a_broken_configuration_stops_only_what_it_is_for(project: Path) -> None:
    put(project, "inner/pyproject.toml", "[tool.gradfix]\nselct = []\n")
    put(project, "inner/a.py", "bad")
    put(project, "inner/b.py", "bad")
    put(project, "other/pyproject.toml", '[tool.gradfix]\nselect = ["bad-wrd"]\n')
    put(project, "other/c.py", "bad")
    put(project, "train.py", "bad")
    done = run(project, "check")
    assert done.returncode == 2
    assert b"train.py:1:1: bad-word" in done.stdout
    assert sorted(done.stderr.decode().splitlines()) == [
        "error: inner/pyproject.toml: io-error: unknown key 'selct' in [tool.gradfix]; "
        "did you mean 'select'?",
        "error: other/pyproject.toml: io-error: there is no codemod 'bad-wrd'; did you mean 'bad-word'? "
        "(`gradfix list` names them all)",
    ]


def test_patterns_of_an_inner_configuration_count_from_its_folder(project: Path) -> None:
    put(project, "inner/pyproject.toml", '[tool.gradfix]\nexclude = ["/train.py"]\n')
    put(project, "inner/train.py", "bad")
    put(project, "train.py", "bad")
    assert found(project, ".") == [("train.py", "bad-word")]


def test_a_configuration_that_is_named_holds_for_all_files(project: Path) -> None:
    put(project, "ci/gradfix.toml", '[tool.gradfix]\nselect = ["risky-word"]\nexclude = ["/inner/b.py"]\n')
    put(project, "inner/pyproject.toml", '[tool.gradfix]\nignore = ["risky-word"]\n')
    put(project, "inner/a.py", "bad\nrisky")
    put(project, "inner/b.py", "bad\nrisky")
    assert found(project, "--config", "ci/gradfix.toml", ".") == [("inner/a.py", "risky-word")]
    put(project, "empty.toml", "")
    for name, message in (("none.toml", b"none.toml: cannot be read"), ("empty.toml", b"[tool.gradfix]")):
        done = run(project, "check", "--config", name)
        assert done.returncode == 2
        assert message in done.stderr


def test_codemods_are_named_by_all_and_by_their_first_words(project: Path) -> None:
    put(project, "train.py", "bad\nrisky")
    assert found(project, "--select", "ALL", "--ignore", "bad") == [("train.py", "risky-word")]
    assert found(project, "--select", "bad") == [("train.py", "bad-word")]
    assert found(project, "--select", "bad-word", "--ignore", "ALL") == [("train.py", "bad-word")]
    done = run(project, "check", "--select", "ba")
    assert (done.returncode, b"there is no codemod 'ba'" in done.stderr) == (2, True)


def test_codemods_are_silent_in_the_files_that_the_configuration_says(project: Path) -> None:
    put(project, "pyproject.toml", '[tool.gradfix.per-file-ignores]\n"tests/" = ["bad-word"]\n')
    put(project, "tests/a.py", "bad\nrisky")
    put(project, "train.py", "bad")
    assert found(project, ".") == [("tests/a.py", "risky-word"), ("train.py", "bad-word")]
    run(project, "apply", "--no-verify", ".")
    assert (project / "tests/a.py").read_text().startswith("bad")
    for table, message in (
        ('"a" = "bad-word"', b"must be a table of patterns and lists of strings"),
        ('"a" = ["bad-wrd"]', b"per-file-ignores: there is no codemod 'bad-wrd'"),
    ):
        put(project, "pyproject.toml", f"[tool.gradfix.per-file-ignores]\n{table}\n")
        done = run(project, "check")
        assert (done.returncode, message in done.stderr) == (2, True)


def test_what_is_excluded_is_said_on_the_command_line_too(project: Path) -> None:
    put(project, "pyproject.toml", '[tool.gradfix]\nexclude = ["b.py"]\n')
    for name in ("a.py", "b.py", "old/c.py"):
        put(project, name, "bad")
    assert found(project, "--exclude", "old/", ".") == [("a.py", "bad-word"), ("b.py", "bad-word")]
    assert found(project, "b.py") == [("b.py", "bad-word")]
    assert found(project, "--force-exclude", "b.py") == []
    assert found(project, "--force-exclude", "--exclude", "old/", "old", "b.py") == [("b.py", "bad-word")]
    put(project, "pyproject.toml", '[tool.gradfix]\nexclude = ["b.py"]\nforce-exclude = true\n')
    assert found(project, "a.py", "b.py") == [("a.py", "bad-word")]
