"""The documentation says what is so: pages are generated afresh, sessions are run, tables are compared."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import ROOT

from gradfix.rules import catalog

DOCS = ROOT / "docs"
WORKSHOP = ROOT / "examples" / "workshop"
FIXTURES = ROOT / "tests" / "fixtures"
ARTICLES = sorted(path for path in FIXTURES.glob("*/article_*.py") if not path.name.endswith(".fixed.py"))


def fields(fixture: Path) -> dict[str, str]:
    """The header of a fixture."""
    return dict(re.findall(r"^# (\w+): (.*)$", fixture.read_text(encoding="utf-8"), re.MULTILINE))


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def row_of(page_name: str, cell: str) -> list[str]:
    """The cells of the one row of a table in a page whose first one holds ``cell``."""
    rows = [line for line in page(page_name).splitlines() if line.startswith("|")]
    (row,) = [row for row in rows if cell in row.split("|")[1]]
    return [each.strip() for each in row.split("|")[1:-1]]


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


def sessions() -> list[tuple[str, str]]:
    """The commands of the example of a verification, and what they print."""
    blocks = re.findall(r"^```console\n(.*?)^```$", page("verification.md"), re.MULTILINE | re.DOTALL)
    each = [session for block in blocks for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, printed) for command, printed in (session.split("\n", 1) for session in each)]


def test_the_example_is_what_gradfix_prints(tmp_path: Path) -> None:
    assert sessions()
    shutil.copytree(WORKSHOP, tmp_path, dirs_exist_ok=True)
    for command, printed in sessions():
        assert anywhere(run(*command.split(), cwd=tmp_path)) == anywhere(printed)


def test_the_picture_shows_the_example() -> None:
    picture = html.unescape(re.sub("<[^>]*>", "", (DOCS / "apply.svg").read_text(encoding="utf-8")))
    (printed,) = [printed for command, printed in sessions() if command.startswith("gradfix apply")]
    # The picture has the checks in short.
    shown, count = printed.split("      holds ")[0], printed.count("\n      holds ")
    summary = re.findall(r"^Fixed .*$", printed, re.MULTILINE)[0]
    for part in (shown, f"proved {count} checks hold", summary):
        assert squeezed(part) in squeezed(picture), "run python tools/generate_picture.py"


def squeezed(text: str) -> str:
    """A text without what depends on where its lines are broken."""
    return re.sub(r"[\s|]", "", text)


def anywhere(printed: str) -> str:
    """What is printed, but for the level of the sandbox, which is the machine's, and for the progress of runs
    that take long on it: where there is any, each result is printed as it comes, too."""
    progress = r"\d+ s of \d+ s  .*\n|[\w.]+:\d+: [\w-]+: proved: .*\n"
    printed = re.sub(rf"^(?:{progress})", "", printed, flags=re.MULTILINE)
    return re.sub(r"^( +sandbox +).*$", r"\1...", printed, flags=re.MULTILINE)


@pytest.mark.parametrize("fixture", ARTICLES, ids=lambda path: path.stem)
def test_the_page_of_articles_tells_each_program(fixture: Path) -> None:
    _, wrong, says, rewrites, verified = row_of("articles.md", f"`{fixture.parent.name}/{fixture.stem}`")
    header = fields(fixture)
    for error in re.findall(r"^E\d", header["raises"]):
        assert error in wrong
    if header["fault"] == "none":
        assert says.startswith("nothing")
        assert (rewrites, verified) == ("-", "unchanged")
    else:
        assert f"`{header['fault']}`, {header['effect']}" == says
        # Where it raises before anything is differentiated, there is nothing to compare.
        early = f"{fixture.parent.name}/{fixture.stem}" == "leaf_written_in_place/article_000"
        assert verified.startswith("not proved: " if early else "proved")


def test_every_codemod_tells_the_effects_of_its_fixes() -> None:
    for codemod in catalog.load().codemods:
        told = set(row_of("codemods.md", f"(#{codemod.name})")[-1].split(", "))
        # An effect that the fixtures of a codemod have is one that it can have.
        cases = (FIXTURES / codemod.name.replace("-", "_")).glob("*.py")
        seen = {fields(case)["effect"] for case in cases if fields(case)["fault"] == codemod.name}
        assert told <= {"preserves", "repairs", "changes", "none"}, f"{codemod.name}: say `Effect: ...`"
        assert seen - {"none"} <= told, codemod.name


@pytest.mark.parametrize("example", sorted(WORKSHOP.glob("*.py")), ids=lambda path: path.stem)
def test_the_examples_are_what_their_table_says(example: Path) -> None:
    table = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    (row,) = [line for line in table.splitlines() if line.startswith(f"| `{example.name}`")]
    named = {codemod.name for codemod in catalog.load().codemods if f"`{codemod.name}`" in row}
    printed = run("gradfix", "check", "--quiet", example.name, cwd=WORKSHOP)
    assert set(re.findall(rf"^{example.name}:\d+:\d+: ([\w-]+):", printed, re.MULTILINE)) == named


def test_the_links_lead_somewhere() -> None:
    for file in (*ROOT.glob("*.md"), *DOCS.glob("*.md"), ROOT / "examples" / "README.md"):
        for target, heading in re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", file.read_text(encoding="utf-8")):
            if target.startswith("https://"):
                continue
            found = file.parent / target if target else file
            assert found.exists(), f"{file.name}: {target}"
            assert not heading or heading in anchors(found), f"{file.name}: {target}{heading}"


def anchors(file: Path) -> set[str]:
    """What the headings of a page are addressed by."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
