"""The documentation says what is so: pages are generated afresh, sessions are run, tables are compared."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import ROOT

from gradfix.rules import catalog

README = (ROOT / "README.md").read_text(encoding="utf-8")
WORKSHOP = ROOT / "examples" / "workshop"
FIXTURES = ROOT / "tests" / "fixtures"
ARTICLES = sorted(path for path in FIXTURES.glob("*/article_*.py") if not path.name.endswith(".fixed.py"))
ROWS = [line for line in README.splitlines() if line.startswith("|")]


def fields(fixture: Path) -> dict[str, str]:
    """The header of a fixture."""
    return dict(re.findall(r"^# (\w+): (.*)$", fixture.read_text(encoding="utf-8"), re.MULTILINE))


def words(text: str) -> list[str]:
    return re.findall(r"[\w-]+", text)


def row_of(name: str) -> list[str]:
    """The cells of the one row of a table in the README that names ``name``."""
    (row,) = [row for row in ROWS if name in re.findall(r"`([^`]*)`", row.split("|")[1])]
    return row.split("|")[1:-1]


def run(*command: str, cwd: Path) -> str:
    """What a command prints, both streams together."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    return ran.stdout


def test_the_page_of_codemods_is_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_docs.py"), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_sessions_in_the_readme_are_what_gradfix_prints(tmp_path: Path) -> None:
    blocks = re.findall(r"^```console\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    sessions = [session for block in blocks for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert sessions
    shutil.copytree(WORKSHOP, tmp_path, dirs_exist_ok=True)
    for session in sessions:
        command, printed = session.split("\n", 1)
        assert anywhere(run(*command.split(), cwd=tmp_path)) == anywhere(printed)


def anywhere(printed: str) -> str:
    """What is printed, but for the level of the sandbox, which is the machine's."""
    return re.sub(r"^( +sandbox +).*$", r"\1...", printed, flags=re.MULTILINE)


@pytest.mark.parametrize("fixture", ARTICLES, ids=lambda path: path.stem)
def test_the_readme_tells_each_program_of_the_articles(fixture: Path) -> None:
    _, wrong, says, rewrites, verified = row_of(f"{fixture.parent.name}/{fixture.stem}")
    header = fields(fixture)
    for error in re.findall(r"^E\d", header["raises"]):
        assert error in wrong
    if header["fault"] == "none":
        assert says.strip().startswith("nothing")
        assert (rewrites.strip(), verified.strip()) == ("-", "unchanged")
    else:
        assert f"`{header['fault']}`, {header['effect']}" == says.strip()
        # Where it raises before anything is differentiated, there is nothing to compare.
        early = f"{fixture.parent.name}/{fixture.stem}" == "leaf_written_in_place/article_000"
        assert verified.strip().startswith("not proved: " if early else "proved")


def test_the_readme_names_every_codemod() -> None:
    for codemod in catalog.load().codemods:
        effects = row_of(codemod.name)[-1]
        # An effect that the fixtures of a codemod have is one that it can have.
        cases = (FIXTURES / codemod.name.replace("-", "_")).glob("*.py")
        seen = {fields(case)["effect"] for case in cases if fields(case)["fault"] == codemod.name}
        assert seen - {"none"} <= set(words(effects)), codemod.name


@pytest.mark.parametrize("example", sorted(WORKSHOP.glob("*.py")), ids=lambda path: path.stem)
def test_the_examples_are_what_their_table_says(example: Path) -> None:
    table = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    (row,) = [line for line in table.splitlines() if line.startswith(f"| `{example.name}`")]
    named = {codemod.name for codemod in catalog.load().codemods if f"`{codemod.name}`" in row}
    printed = run("gradfix", "check", "--quiet", example.name, cwd=WORKSHOP)
    assert set(re.findall(rf"^{example.name}:\d+:\d+: ([\w-]+):", printed, re.MULTILINE)) == named


def test_the_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "examples" / "README.md"):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
