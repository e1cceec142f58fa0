"""Where codemods come from, in a checkout and when installed, and what a broken one does: say so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import ROOT, gradfix, standard_codemods, write_codemod

from gradfix.core.codemod import LEAVE, Clause, Codemod
from gradfix.rules import catalog


def test_a_codemod_is_named_after_its_file_and_documented_by_its_docstring(tmp_path: Path) -> None:
    write_codemod(tmp_path / "c", "bad-word", "bad")
    codemod = catalog.load([str(tmp_path / "c")]).get("bad_word")
    assert isinstance(codemod, Codemod)
    assert codemod.name == "bad-word"
    assert codemod.summary == "The word bad is wrong."
    assert codemod.documentation.endswith("Before: ``bad``. After: another word.")


def test_modules_are_loaded_under_our_own_name(tmp_path: Path) -> None:
    write_codemod(tmp_path / "c", "bad-word", "bad")
    codemod = catalog.load([str(tmp_path / "c")]).get("bad-word")
    assert isinstance(codemod, Codemod)
    assert codemod.find.__module__ == "gradfix.codemods.bad_word"
    assert "bad_word" not in sys.modules


def test_helpers_beside_codemods_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "_shared.py").write_text("SUMMARY = 1\n")
    (tmp_path / "uses.py").write_text(
        '"""Uses a helper."""\nfrom gradfix.codemods._shared import SUMMARY\ndef find(program): return []\n'
    )
    loaded = catalog.load([str(tmp_path)])
    assert loaded.problems == ()
    assert "uses" in loaded.names
    assert "-shared" not in loaded.names


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def find(:\n", "cannot be loaded: SyntaxError"),
        ('"""Doc."""\nimport no_such_module\n', "cannot be loaded: ModuleNotFoundError"),
        ('"""Doc."""\nraise SystemExit(3)\n', "cannot be loaded: SystemExit: 3"),
        ('"""Doc."""\n1 / 0\n', "cannot be loaded: ZeroDivisionError"),
        ("def find(program): return []\n", "has no docstring"),
        ('"""Doc."""\n', "has no function find(program)"),
        ('"""Doc."""\nfind = 3\n', "has no function find(program)"),
    ],
)
def test_a_broken_codemod_is_a_problem_and_the_others_are_there(
    tmp_path: Path, code: str, message: str
) -> None:
    write_codemod(tmp_path, "bad-word", "bad")
    (tmp_path / "a_broken.py").write_text(code)
    loaded = catalog.load([str(tmp_path)])
    assert "bad-word" in loaded.names
    assert [problem.path for problem in loaded.problems] == [str(tmp_path / "a_broken.py")]
    assert message in loaded.problems[0].message


def test_two_codemods_of_one_name_are_a_problem(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_codemod(tmp_path / folder, "bad-word", folder)
    loaded = catalog.load([str(tmp_path / "one"), str(tmp_path / "two")])
    assert [problem.message for problem in loaded.problems] == ["there is already a codemod 'bad-word'"]
    codemod = loaded.get("bad-word")
    assert isinstance(codemod, Codemod)
    assert codemod.summary == "The word one is wrong."


def test_a_folder_that_is_none_is_a_problem(tmp_path: Path) -> None:
    loaded = catalog.load([str(tmp_path / "missing")])
    assert [problem.message for problem in loaded.problems] == ["is not a folder of codemods"]


def test_names_are_selected_and_ignored(tmp_path: Path) -> None:
    standard_codemods(tmp_path)
    loaded = catalog.load([str(tmp_path)])
    assert loaded.select((), ()) == loaded.names
    assert loaded.select(["bad_word", "risky-word"], ["risky-word"]) == {"bad-word"}
    assert loaded.select((), ["bad-word"]) == loaded.names - {"bad-word"}
    for arguments in [(["bad-wrd"], ()), ((), ["bad-wrd"])]:
        wrong = loaded.select(*arguments)
        assert isinstance(wrong, str)
        assert "no codemod 'bad-wrd'; did you mean 'bad-word'?" in wrong


def test_our_own_codemods_are_found_and_whole() -> None:
    loaded = catalog.load()
    assert loaded.problems == ()
    stems = {path.stem for path in (ROOT / "codemods").glob("*.py") if not path.stem.startswith("_")}
    assert loaded.names == {stem.replace("_", "-") for stem in stems}


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder laid out like site-packages after the wheel was installed: codemods inside the package."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "gradfix", site / "gradfix", ignore=shutil.ignore_patterns("__pycache__"))
    write_codemod(site / "gradfix" / "codemods", "packaged-word", "packaged")
    return site


def listing(site: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return gradfix("list", *arguments, cwd=site.parent, env={"PYTHONPATH": str(site)})


def test_in_a_wheel_codemods_are_inside_the_package(installed: Path) -> None:
    done = listing(installed)
    assert done.stdout == b"packaged-word  warning  The word packaged is wrong.\n"
    assert done.returncode == 0


def test_an_installed_package_offers_codemods_by_entry_points(installed: Path) -> None:
    package = installed / "other_package"
    write_codemod(package, "their-word", "their")
    offer = installed / "other_package-1.0.dist-info"
    offer.mkdir()
    (offer / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    points = "their_word = other_package.their_word\nbroken = other_package.missing\n"
    (offer / "entry_points.txt").write_text(f"[gradfix.codemods]\n{points}")
    done = listing(installed)
    assert [line.split()[0] for line in done.stdout.splitlines()] == [b"packaged-word", b"their-word"]
    assert b"broken = other_package.missing" in done.stderr
    assert b"ModuleNotFoundError" in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.returncode == 2


def test_each_names_the_clause_that_its_mistake_breaks() -> None:
    named = {codemod.name: codemod.clause for codemod in catalog.load().codemods}
    assert not [name for name, clause in named.items() if clause is None]
    assert set(named.values()) == set(Clause)  # None of them is mentioned for nothing.


def test_each_is_explained_in_short_by_an_example_and_by_what_is_no_mistake() -> None:
    for codemod in catalog.load().codemods:
        told = codemod.in_short
        assert len(told.splitlines()) <= 15, codemod.name
        assert "\n\n    " in told and f"\n\n{LEAVE}" in told, codemod.name
        assert "Precondition" not in told and "By hand" not in told, codemod.name


def test_each_says_what_a_person_can_do() -> None:
    for codemod in catalog.load().codemods:
        assert not codemod.by_hand.startswith("`gradfix explain"), codemod.name
