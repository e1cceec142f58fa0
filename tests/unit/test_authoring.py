"""`gradfix new` and `gradfix test`: a codemod that works from the first, and programs that it is held to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import ROOT, gradfix

from gradfix.authoring import cases, skeleton

PACKAGE = ROOT / "examples" / "house_codemods"
UNPROVED = cases.Running(verify=False)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with the first files of a codemod."""
    skeleton.write("own-mistake", str(tmp_path / "own"))
    return tmp_path / "own"


def fixture(own: Path, name: str) -> Path:
    return own / "tests" / "fixtures" / "own_mistake" / name


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def shown(own: Path) -> dict[str, list[str]]:
    """What is otherwise than expected, by program."""
    options = cases.options_for(str(own), UNPROVED)
    return {case.path.name: cases.judged(case, options).differences for case in cases.of(own)}


def test_what_is_written_first_works(tmp_path: Path) -> None:
    written = gradfix("new", "own_mistake", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == set(
        written.stdout.decode().split("\n")[:-2]
    )
    tried = gradfix("test", cwd=tmp_path)
    assert tried.stdout.decode() == (
        "own_mistake/faulty: found, repaired as expected, proved\n"
        "own_mistake/right: nothing found, runs as its header says\n"
        "\n2 programs, all as expected\n"
    )
    assert (tried.returncode, tried.stderr) == (0, b"")


def test_its_own_test_passes_and_can_fail(own: Path) -> None:
    for name in ("faulty.py", "faulty.fixed.py"):
        shutil.copy(fixture(own, name), fixture(own, name.replace("faulty", "other")))
    replace(fixture(own, "other.fixed.py"), "loss.backward()", "loss.backward( )")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=own,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.stdout.splitlines()[-1].startswith("1 failed, 2 passed")
    assert "FAILED tests/test_codemods.py::test_a_program[own_mistake/other] - " in ran.stdout


def test_a_second_codemod_is_begun_beside_the_first(own: Path) -> None:
    """Though both find the same, each program is for one of them."""
    skeleton.write("other-mistake", str(own))
    assert len(cases.of(own)) == 4
    assert not any(shown(own).values())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("own-mistake", "is there already"),
        ("stale-forward", "there is already a codemod 'stale-forward'"),
        ("OwnMistake", "lower case with hyphens"),
        ("../own", "lower case with hyphens"),
        ("_own", "lower case with hyphens"),
        ("class", "lower case with hyphens"),
    ],
)
def test_a_name_that_will_not_do_writes_nothing(name: str, reason: str, own: Path) -> None:
    before = {path: path.read_bytes() for path in own.parent.rglob("*.*") if path.is_file()}
    done = gradfix("new", name, "own", cwd=own.parent)
    assert done.returncode == 2
    assert reason in done.stderr.decode()
    assert {path: path.read_bytes() for path in own.parent.rglob("*.*") if path.is_file()} == before


# ---------------------------------------------------------------------------- what is otherwise


def test_another_text_is_told_with_the_difference(own: Path) -> None:
    replace(fixture(own, "faulty.fixed.py"), "loss.backward()", "loss.backward( )")
    (difference,) = shown(own)["faulty.py"]
    assert difference.startswith("what is written is not faulty.fixed.py:\n")
    assert "-    loss.backward( )\n+    loss.backward()" in difference


def test_a_mistake_that_is_not_found(own: Path) -> None:
    replace(fixture(own, "faulty.py"), "create_graph=True", "create_graph=bool(1)")
    assert shown(own)["faulty.py"] == ["own-mistake is not found"]


def test_a_codemod_that_fails_is_told_with_the_line(own: Path) -> None:
    replace(own / "own_mistake.py", "    sites = {", "    1 / 0\n    sites = {")
    (difference,) = shown(own)["faulty.py"]
    assert re.fullmatch(
        r"the codemod own-mistake failed: ZeroDivisionError: .* \(own_mistake\.py:\d+\)", difference
    )


def test_a_right_program_in_which_something_is_found(own: Path) -> None:
    shutil.copy(fixture(own, "faulty.py"), fixture(own, "right.py"))
    replace(fixture(own, "right.py"), "# fault: own-mistake", "# fault: none")
    assert shown(own)["right.py"] == [
        "line 13: own-mistake is found: nothing uses the graph of these gradients"
    ]


def test_what_is_for_its_author_to_repair_is_reported_and_left(own: Path) -> None:
    fixture(own, "faulty.fixed.py").unlink()
    (difference,) = shown(own)["faulty.py"][1:]
    assert difference.startswith("it is rewritten, and there is no faulty.fixed.py")
    replace(own / "own_mistake.py", "span, (), (fix,))", "span)")
    assert shown(own)["faulty.py"] == []


def test_another_error_than_that_of_the_header(own: Path) -> None:
    replace(fixture(own, "right.py"), "# raises: nothing", "# raises: E1 at line 14")
    assert shown(own)["right.py"] == ["the model says that it raises nothing; its header says E1 at line 14"]
    replace(fixture(own, "right.py"), ".backward()\n", ".backward()\n    loss.square().backward()\n")
    replace(fixture(own, "right.py"), "E1 at line 14", "E1 at line 15")
    assert shown(own)["right.py"] == []


def test_a_fixed_program_that_still_has_the_mistake(own: Path) -> None:
    shutil.copy(fixture(own, "faulty.py"), fixture(own, "faulty.fixed.py"))
    assert "faulty.fixed.py: line 13: own-mistake is found" in "\n".join(shown(own)["faulty.py"])


def test_another_effect_than_that_of_the_header(own: Path) -> None:
    for name in ("faulty.py", "faulty.fixed.py"):
        replace(fixture(own, name), "# effect: preserves", "# effect: repairs")
    assert shown(own)["faulty.py"] == ["its effect is preserves; its header says repairs"]


def test_a_repair_that_is_refuted(own: Path) -> None:
    """It learns at another pace, and says that it preserves."""
    replace(own / "own_mistake.py", '(RemoveArgument(span, "create_graph"),)', "(edit,)")
    replace(
        own / "own_mistake.py",
        "                fix = ",
        "                edit = HALF(span)\n                fix = ",
    )
    half = 'def HALF(span):\n    return ReplaceExpression(span, "(loss / 2).backward()")\n\n\ndef find('
    replace(own / "own_mistake.py", "def find(", half)
    replace(own / "own_mistake.py", "RemoveArgument", "ReplaceExpression")
    replace(fixture(own, "faulty.fixed.py"), "loss.backward()", "(loss / 2).backward()")
    assert shown(own)["faulty.py"] == []
    done = gradfix("test", "own", cwd=own.parent)
    assert done.returncode == 1
    printed = done.stdout.decode()
    assert "own_mistake/faulty: not as expected\n    leave the argument out: refuted:\n" in printed
    assert printed.endswith("\n2 programs, 1 not as expected\n")


def test_a_right_program_that_does_not_run(own: Path) -> None:
    replace(fixture(own, "right.py"), "import torch\n", "import torch\n\nprint(nothing)\n")
    done = gradfix("test", "own", cwd=own.parent)
    assert done.returncode == 1
    shown = "it raises NameError: name 'nothing' is not defined at line 7 when it is run"
    assert f"own_mistake/right: not as expected\n    {shown}\n" in done.stdout.decode()


def test_a_repair_that_no_run_can_prove(own: Path) -> None:
    """What it takes out has no effect: that is said, and what is said is asked for."""
    replace(own / "own_mistake.py", '== "True"', '== "False"')
    for name, end in (("faulty.py", "create_graph=False"), ("faulty.fixed.py", "")):
        replace(fixture(own, name), "# why", "# unproved: the fix had no effect in this run\n# why")
        replace(fixture(own, name), f"backward({'create_graph=True' if end else ''})", f"backward({end})")
        other = fixture(own, name.replace("faulty", "other"))
        shutil.copy(fixture(own, name), other)
        replace(other, "# unproved: the fix had no effect", "# unproved: its author says so")
    done = gradfix("test", "own", cwd=own.parent)
    assert done.returncode == 1
    printed = done.stdout.decode()
    assert "own_mistake/faulty: found, repaired as expected, not provable\n" in printed
    assert "own_mistake/other: not as expected\n" in printed
    assert "its header says 'its author says so in this run' of why it is not proved" in printed


def test_what_a_codemod_lacks_is_told(own: Path) -> None:
    fixture(own, "right.py").unlink()
    replace(own / "own_mistake.py", "By hand: leave the argument out.\n\n", "")
    done = gradfix("test", "own", "--no-verify", cwd=own.parent)
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "warning: own-mistake: its docstring has no paragraph `By hand: ...`\n"
        "warning: own-mistake: there is no right program that looks like it\n"
    )


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("import torch", "begins with no comment `# fault: NAME`"),
        ("# fault: own-mistake\n# raises: an error", "`# raises: an error` is neither"),
        ("# fault: own-mistake\n# effect: fixes", "`# effect: fixes` is none of preserves"),
    ],
)
def test_a_header_that_cannot_be_understood(header: str, reason: str, own: Path) -> None:
    fixture(own, "faulty.py").write_text(f"{header}\n")
    done = gradfix("test", "own", cwd=own.parent)
    assert done.returncode == 2
    assert reason in done.stderr.decode()


@pytest.mark.parametrize("folder", ["nothing", "empty", "broken"])
def test_a_folder_that_cannot_be_tried(folder: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    skeleton.write("own-mistake", str(tmp_path / "broken"))
    (tmp_path / "broken" / "own_mistake.py").write_text("def\n")
    done = gradfix("test", folder, cwd=tmp_path)
    assert done.returncode == 2
    assert re.match(rf"error: (.*/)?{folder}\b", done.stderr.decode())
    assert b"Traceback" not in done.stderr


# ---------------------------------------------------------------------------- the package in examples/


def test_the_package_is_as_its_page_says() -> None:
    page = (PACKAGE / "README.md").read_text(encoding="utf-8")
    ((command, printed),) = re.findall(r"```console\n\$ gradfix ([^\n]*)\n(.*?)```", page, re.DOTALL)
    done = gradfix(*command.split(), cwd=PACKAGE)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, printed, b"")


def test_the_package_offers_its_codemod_where_it_is_installed(tmp_path: Path) -> None:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    copy = shutil.copytree(PACKAGE, tmp_path / "package")
    site = tmp_path / "site"
    subprocess.run([*pip, "--target", str(site), str(copy)], check=True, capture_output=True)
    assert not [*site.rglob("tests")]
    code = f"import sys; sys.path[:0] = [{str(site)!r}, {str(ROOT)!r}]; "
    code += "from gradfix.cli.commands import main; main()"

    def ran(*arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True).stdout

    assert re.search(r"^needless-create-graph +warning ", ran("list"), re.MULTILINE)
    # Who works on it has installed it.
    assert "all as expected" in ran("test", "--no-verify", "house_codemods")
