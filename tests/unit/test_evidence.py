"""Where certificates go: under names of their own, whole, through no link, without what is out of date."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakes import git

from gradfix.cli.output import Printed, showing_attempts
from gradfix.core.codemod import Claim, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.pipeline.results import Attempt, FilePlan, Outcome, Plan
from gradfix.project.source import Problem
from gradfix.report import evidence


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def attempt(code: str, *, ran: bool = True) -> Attempt:
    span = Span(1, 0, 1, 1)
    shown = cast(Any, SimpleNamespace(alone=None, to_json=lambda: {"outcome": "proved"})) if ran else None
    fix = Fix("do it", Effect.REPAIRS, (), Claim())
    return Attempt(Finding(code, "a mistake", span, (), (fix,)), fix, "x\n", "y\n", Outcome.PROVED, "", shown)


def plan(*files: tuple[str, list[Attempt]]) -> Plan:
    repaired = [FilePlan(path, b"x\n", b"y\n", "y\n", tuple(attempts)) for path, attempts in files]
    return Plan(tuple(repaired), (), len(files), ())


def saved(*files: tuple[str, list[Attempt]], folder: str = "gradfix-evidence") -> list[str]:
    count = evidence.save(plan(*files), folder)
    assert isinstance(count, int), count
    names = sorted(path.name for path in Path(folder).glob("[!.]*"))
    saved = [json.loads(Path(folder, name).read_bytes()) for name in names]
    assert sorted((one["filename"], one["code"]) for one in saved if "filename" in one) == sorted(
        (path, one.finding.code) for path, attempts in files for one in attempts if one.evidence
    )
    return names


ALIKE = ["a/b.py", "a-b.py", "a b.py", "a--b.py", "a\\b.py", "A/B.py", "a/B.py", "../a/b.py", "-a-b.py"]
ALIKE += ["train.py", "Train.py", "TRAIN.py", "train.PY"]


def test_files_whose_paths_are_alike_have_certificates_of_their_own() -> None:
    """Also where letters in capitals are the same as others."""
    names = saved(*((path, [attempt("some-mistake")]) for path in ALIKE))
    assert len({name.lower() for name in names}) == len(ALIKE)


def test_a_plain_name_is_kept() -> None:
    names = saved(("train.py", [attempt("some-mistake", ran=False), attempt("other-mistake")]))
    assert names == ["train.py-2-other-mistake.json"]


@pytest.mark.parametrize("path", ["x" * 250 + ".py", "d/" * 500 + "x.py", "\udcff\n\x1b[2J.py", "/.py", "§"])
def test_a_name_is_short_and_printable(path: str) -> None:
    (name,) = saved((path, [attempt("some-mistake")]))
    assert len(name) < 160
    assert name.isascii()
    assert name.isprintable()
    assert "/" not in name
    assert not name.startswith(("-", "."))


def test_what_an_earlier_run_said_of_the_same_file_does_not_stay() -> None:
    saved(("train.py", [attempt("one"), attempt("two")]), ("a-b.py", [attempt("one")]))
    mine = Path("gradfix-evidence", "train.py-notes.json")
    mine.write_text("{}")
    assert evidence.save(plan(("train.py", [attempt("two")]), ("a-b.py", [])), "gradfix-evidence") == 1
    left = sorted(path.name for path in Path("gradfix-evidence").glob("[!.]*"))
    assert left == [f"{evidence.stem('a-b.py')}-1-one.json", "train.py-1-two.json", mine.name]


def test_git_leaves_out_a_folder_that_was_made_for_certificates() -> None:
    git("init", "--quiet", cwd=Path())
    saved(("train.py", [attempt("one")]))
    assert git("status", "--porcelain", cwd=Path()) == b""
    # Who wants them in the repository says so once.
    Path("gradfix-evidence", ".gitignore").unlink()
    saved(("train.py", [attempt("one")]))
    assert git("status", "--porcelain", cwd=Path()) == b"?? gradfix-evidence/\n"


def test_a_folder_that_was_there_is_not_hidden_from_git() -> None:
    Path("kept").mkdir()
    saved(("train.py", [attempt("one")]), folder="kept")
    assert evidence.save(plan(("train.py", [attempt("one")])), ".") == 1
    assert [*Path().rglob(".gitignore")] == []


def test_a_certificate_is_there_as_soon_as_a_fix_has_been_run() -> None:
    attempted = showing_attempts(Printed(as_json=False, verbose=False, quiet=False), "gradfix-evidence")
    attempted("train.py", 1, attempt("some-mistake"))
    assert sorted(os.listdir("gradfix-evidence")) == [".gitignore", "train.py-1-some-mistake.json"]
    assert saved(("train.py", [attempt("some-mistake")])) == ["train.py-1-some-mistake.json"]


def test_nothing_to_save_makes_no_folder() -> None:
    assert evidence.save(plan(("train.py", [attempt("one", ran=False)])), "gradfix-evidence") == 0
    assert os.listdir() == []


@pytest.mark.parametrize("folder", ["gradfix-evidence", "gradfix-evidence/", "gradfix-evidence/inner"])
def test_a_folder_that_is_a_link_is_refused_by_name(folder: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "inner").mkdir(parents=True)
    Path("gradfix-evidence").symlink_to(home)
    problem = evidence.save(plan(("train.py", [attempt("one")])), folder)
    assert isinstance(problem, Problem)
    assert "gradfix-evidence is a symbolic link" in problem.message
    assert evidence.unusable(folder) == problem
    assert [*home.rglob("*")] == [home / "inner"]


def test_it_can_be_asked_before_whether_a_folder_is_usable() -> None:
    Path("file").touch()
    assert evidence.unusable("gradfix-evidence/inner") is None
    assert os.listdir() == ["file"]
    Path("gradfix-evidence").mkdir()
    assert evidence.unusable("gradfix-evidence") is None
    assert "Not a directory" in str(evidence.unusable("file"))


def test_a_certificate_that_is_a_link_is_refused_by_name(tmp_path: Path) -> None:
    precious = tmp_path / ".bashrc"
    precious.write_text("precious\n")
    Path("gradfix-evidence").mkdir()
    Path("gradfix-evidence", "train.py-1-one.json").symlink_to(precious)
    problem = evidence.save(plan(("train.py", [attempt("one")])), "gradfix-evidence")
    assert isinstance(problem, Problem)
    assert "train.py-1-one.json is a symbolic link" in problem.message
    assert precious.read_text() == "precious\n"


def test_what_is_out_of_date_is_removed_and_not_what_it_links_to(tmp_path: Path) -> None:
    precious = tmp_path / ".bashrc"
    precious.write_text("precious\n")
    Path("gradfix-evidence").mkdir()
    Path("gradfix-evidence", "train.py-2-two.json").symlink_to(precious)
    assert evidence.save(plan(("train.py", [attempt("one")])), "gradfix-evidence") == 1
    assert os.listdir("gradfix-evidence") == ["train.py-1-one.json"]
    assert precious.read_text() == "precious\n"
