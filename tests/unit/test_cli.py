"""The command line as its users meet it: what is printed where, exit codes, patches for git, speed."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes import ROOT, git, gradfix, standard_codemods


@pytest.fixture
def project(tmp_path: Path) -> Path:
    standard_codemods(tmp_path / "codemods")
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run(project: Path, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    command, *rest = arguments
    done = gradfix(command, "--codemods", project.parent / "codemods", *rest, cwd=cwd or project)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def put(project: Path, code: str, name: str = "train.py") -> Path:
    path = project / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(f"{code}\n# x.backward()\n".encode())
    return path


# ---------------------------------------------------------------------------- check


def test_nothing_to_report_is_0(project: Path) -> None:
    put(project, "fine")
    done = run(project, "check")
    nothing = b"Checked 1 file, found nothing; there are no training steps\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, nothing, b"")
    done = run(project, "check", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_findings_are_shown_in_the_source(project: Path) -> None:
    put(project, "good\ncall(bad)")
    put(project, "risky", "pkg/other.py")
    done = run(project, "check")
    assert done.returncode == 1
    assert done.stdout.decode() == (
        "pkg/other.py:1:1: risky-word: warning: the word risky is wrong\n"
        "  |\n"
        "1 | risky\n"
        "  | ^^^^^ here\n"
        "  |\n"
        "  = fix (changes, unsafe): say good\n"
        "    1 - risky\n"
        "    1 + good\n"
        "\n"
        "train.py:2:6: bad-word: warning: the word bad is wrong\n"
        "  |\n"
        "2 | call(bad)\n"
        "  |      ^^^ here\n"
        "  |\n"
        "  = fix (preserves, safe): say good\n"
        "    2 - call(bad)\n"
        "    2 + call(good)\n"
        "\n"
        "Found 2 findings in 2 files, 1 fixable with `gradfix apply`, "
        "1 more fixable with `gradfix apply --unsafe-fixes`; there are no training steps\n"
    )
    assert done.stderr == b""


def test_json_has_the_shape_of_ruff(project: Path) -> None:
    put(project, "'梯度', bad")
    put(project, "hopeless", "b.py")
    put(project, "x = (", "broken.py")
    done = run(project, "check", "--output-format", "json", ".", "missing.py")
    assert done.returncode == 2
    found = {item["filename"]: item for item in json.loads(done.stdout)}
    assert found["train.py"] == {
        "code": "bad-word",
        "message": "the word bad is wrong",
        "filename": "train.py",
        "cell": None,
        "location": {"row": 1, "column": 7},
        "end_location": {"row": 1, "column": 10},
        "fix": {
            "applicability": "safe",
            "message": "say good",
            "edits": found["train.py"]["fix"]["edits"],
        },
        "url": None,
        "severity": "warning",
        "assumption": None,
        "ways": [],
        "effect": "preserves",
        "notes": [
            {
                "cell": None,
                "location": {"row": 1, "column": 7},
                "end_location": {"row": 1, "column": 10},
                "message": "here",
            }
        ],
        "training_steps": None,
    }
    assert found["b.py"]["fix"] is None
    assert found["broken.py"]["code"] == "syntax-error"
    assert found["broken.py"]["location"] == {"row": 1, "column": 5}
    assert found["missing.py"]["code"] == "io-error"
    assert {frozenset(item) for item in found.values()} == {frozenset(found["train.py"])}


def test_the_edits_in_json_lead_to_the_fixed_text(project: Path) -> None:
    path = put(project, "'梯度', bad")
    done = run(project, "check", "--output-format", "json")
    lines = path.read_text().split("\n")
    (item,) = json.loads(done.stdout)
    for edit in reversed(item["fix"]["edits"]):
        start, end = edit["location"], edit["end_location"]
        offsets = [
            sum(len(line) + 1 for line in lines[: at["row"] - 1]) + at["column"] - 1 for at in (start, end)
        ]
        text = "\n".join(lines)
        lines = (text[: offsets[0]] + edit["content"] + text[offsets[1] :]).split("\n")
    assert lines[0] == "'梯度', good"


def test_one_bad_file_stops_no_other(project: Path) -> None:
    put(project, "bad")
    (project / "py2.py").write_bytes(b"print 'x'\n# x.backward()\n")
    (project / "latin.py").write_bytes(b"'\xe9'\n# x.backward()\n")
    (project / "gone.py").symlink_to("nowhere")
    (project / "empty.py").touch()
    (project / "prose.py").write_text("this is no Python, and nothing that could matter\n")
    done = run(project, "check")
    assert done.returncode == 2
    assert b"train.py:1:1: bad-word" in done.stdout
    assert sorted(line.split(b":")[1] for line in done.stderr.splitlines()) == [
        b" gone.py",
        b" latin.py",
        b" py2.py",
    ]


def test_a_file_that_is_named_is_parsed_in_any_case(project: Path) -> None:
    (project / "prose.py").write_text("this is no Python\n")
    assert run(project, "check").returncode == 0
    assert run(project, "check", "prose.py").returncode == 2


def test_a_folder_that_has_been_removed_is_2(project: Path) -> None:
    done = subprocess.run(
        f"rmdir {project} && {sys.executable} -m gradfix check",
        shell=True,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (2, b"error: the current folder has been removed\n")


def test_a_folder_without_python_is_a_warning(project: Path) -> None:
    done = run(project, "check")
    assert (done.returncode, done.stderr) == (0, b"warning: no Python files found under .\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--select", "bad-wrd"], "there is no codemod 'bad-wrd'; did you mean 'bad-word'?"),
        (["check", "--ignore", "bad-word,nope"], "there is no codemod 'nope'"),
        (["check", "--output-format", "yaml"], "yaml"),
        (["check", "--no-such-option"], "--no-such-option"),
        (["check", "missing"], "missing: io-error: no such file or directory"),
        (["check", "--codemods", "missing"], "missing: io-error: is not a folder of codemods"),
        (["apply", "--python", "no-such-python"], "there is no Python interpreter 'no-such-python'"),
        (["explain", "bad-wrd"], "did you mean 'bad-word'?"),
        (["explain"], "NAME"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_bad_arguments_are_2_and_say_so(project: Path, arguments: list[str], message: str) -> None:
    put(project, "fine")
    command = arguments if arguments[0] == "frobnicate" else None
    done = gradfix(*command, cwd=project) if command else run(project, *arguments)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_codemods_are_selected_by_lists_and_by_repetition(project: Path) -> None:
    put(project, "bad\nrisky\nbroken")
    done = run(
        project,
        "check",
        "--select",
        "bad-word,risky_word",
        "--select",
        "broken-word",
        "--ignore",
        "risky-word",
    )
    assert done.stdout.count(b": bad-word:") == done.stdout.count(b": broken-word:") == 1
    assert b"risky-word" not in done.stdout


def test_a_mistake_in_the_configuration_is_2(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.gradfix]\nselct = []\n")
    done = run(project, "check")
    assert done.returncode == 2
    assert (
        done.stderr
        == b"error: pyproject.toml: unknown key 'selct' in [tool.gradfix]; did you mean 'select'?\n"
    )


# ---------------------------------------------------------------------------- apply


def test_apply_that_fixes_everything_is_0(project: Path) -> None:
    path = put(project, "bad\nbroken")
    done = run(project, "apply", "--no-verify")
    assert done.returncode == 0
    assert path.read_text() == "good\ngood\n# x.backward()\n"
    shown = done.stdout.decode()
    assert "train.py:1:1: bad-word: " in shown
    assert "= fixed, not verified (preserves): say good\n    1 - bad" in shown
    assert "= fixed, not verified (repairs): say good\n    2 - broken" in shown
    assert shown.endswith("\n\nFixed 2 findings in 1 file (2 unverified)\n")
    again = run(project, "apply", "--no-verify")
    assert (again.returncode, again.stdout) == (
        0,
        b"Checked 1 file, found nothing; there are no training steps\n",
    )


def test_apply_that_leaves_something_is_1(project: Path) -> None:
    path = put(project, "bad\nrisky\nhopeless")
    done = run(project, "apply", "--no-verify")
    assert done.returncode == 1
    assert path.read_text() == "good\nrisky\nhopeless\n# x.backward()\n"
    assert done.stdout.decode().splitlines()[-1] == (
        "Fixed 1 finding in 1 file (1 unverified), 1 more finding needs `--unsafe-fixes`, "
        "1 finding left without a fix"
    )
    assert run(project, "apply", "--no-verify", "--unsafe-fixes").returncode == 1
    assert path.read_text() == "good\ngood\nhopeless\n# x.backward()\n"
    done = run(project, "apply", "--no-verify")
    assert done.stdout.decode().splitlines()[-1] == "Fixed nothing, 1 finding left without a fix"


def test_apply_tells_json_what_it_did(project: Path) -> None:
    put(project, "bad\nhopeless")
    put(project, "x = (", "broken.py")
    done = run(project, "apply", "--no-verify", "--output-format", "json")
    assert done.returncode == 2
    broken, train = json.loads(done.stdout)
    assert broken["remaining"][0]["code"] == "syntax-error"
    assert (broken["fixes"], broken["written"]) == ([], False)
    assert train["filename"] == "train.py"
    assert train["written"] is True
    (fix,) = train["fixes"]
    assert (fix["code"], fix["effect"], fix["outcome"]) == ("bad-word", "preserves", "unverified")
    assert fix["evidence"] is None
    assert [item["code"] for item in train["remaining"]] == ["hopeless-word"]


def test_a_read_only_file_is_2_and_the_others_are_written(project: Path) -> None:
    locked, path = put(project, "bad", "locked.py"), put(project, "bad")
    locked.chmod(0o444)
    done = run(project, "apply", "--no-verify")
    assert done.returncode == 2
    assert done.stderr == b"error: locked.py: io-error: cannot be written: it is read-only\n"
    assert locked.read_text().startswith("bad")
    assert path.read_text().startswith("good")


AWKWARD = {
    "lf.py": b"bad\n# x.backward()\n",
    "crlf.py": b"bad\r\n# x.backward()\r\n",
    "no newline.py": b"# x.backward()\nbad",
    "bom.py": b"\xef\xbb\xbfbad\n# x.backward()\n",
    "bom_crlf.py": b"\xef\xbb\xbfbad\r\n# x.backward()",
    "latin.py": b"# -*- coding: latin-1 -*-\nbad  # \xe9\n# x.backward()\n",
    "gbk.py": "# coding: gbk\nbad  # 梯度\n# x.backward()\n".encode("gbk"),
    "mixed.py": b"bad\n# x.backward()\r\nbad\r\n",
    "tabs.py": b"if x:\n\tbad\n\t# x.backward()\n",
    "feed.py": b"bad\n\x0c\n# x.backward()\n",
    "pkg/梯度.py": "bad  # 梯度\n# x.backward()\n".encode(),
    'quo"te.py': b"bad\n# x.backward()\n",
}


@pytest.fixture
def awkward(project: Path) -> Path:
    git("init", "-q", ".", cwd=project)
    for name, data in AWKWARD.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_bytes(data)
    (project / "lf.py").chmod(0o755)
    git("add", ".", cwd=project)
    git("commit", "-qm", "before", cwd=project)
    return project


def contents(project: Path) -> dict[str, bytes]:
    return {name: (project / name).read_bytes() for name in AWKWARD}


@pytest.mark.parametrize("below", [".", "pkg"])
def test_git_apply_gives_byte_for_byte_what_apply_writes(awkward: Path, below: str) -> None:
    here = awkward / below
    patch = run(awkward, "apply", "--dry-run", "--no-verify", cwd=here)
    assert patch.returncode == 1
    assert contents(awkward) == AWKWARD
    written = run(awkward, "apply", "--patch", "../fix.patch", "--no-verify", cwd=awkward)
    assert written.returncode == 1
    assert contents(awkward) == AWKWARD

    assert run(awkward, "apply", "--no-verify", cwd=here).returncode == 0
    by_us = contents(awkward)
    changed = [name for name in AWKWARD if below == "." or name.startswith(below)]
    assert by_us == {
        name: data.replace(b"bad", b"good") if name in changed else data for name, data in AWKWARD.items()
    }
    assert b"mode" not in git("diff", "--summary", cwd=awkward)

    git("checkout", "-q", ".", cwd=awkward)
    (awkward / ".git" / "dry-run.patch").write_bytes(patch.stdout)
    git("apply", str(awkward / ".git" / "dry-run.patch"), cwd=here)
    assert contents(awkward) == by_us


def test_a_patch_file_is_what_a_dry_run_prints(awkward: Path) -> None:
    printed = run(awkward, "apply", "--dry-run", "--no-verify").stdout
    run(awkward, "apply", "--patch", "../out/fix.patch", "--no-verify")
    assert (awkward.parent / "out" / "fix.patch").read_bytes() == printed
    assert printed.count(b"\n+++ ") == len(AWKWARD)


def test_a_patch_for_another_folder_says_where_it_belongs(project: Path) -> None:
    put(project, "bad", "a/train.py")
    (project / "elsewhere").mkdir()
    done = run(project, "apply", "--dry-run", "--no-verify", project / "a", cwd=project / "elsewhere")
    assert b"--- a/train.py" in done.stdout
    assert f"the paths in the patch count from {project / 'a'}".encode() in done.stderr


def test_a_dry_run_with_nothing_to_fix_prints_nothing(project: Path) -> None:
    put(project, "fine")
    done = run(project, "apply", "--dry-run", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# ---------------------------------------------------------------------------- verification


WORKS = """\
import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def bad(x):
    return model(x).clone()


def good(x):
    return model(x)


for step in range(3):
    loss = {word}(torch.ones(2, 3)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_verify_runs_both_versions_and_writes_the_certificate(project: Path) -> None:
    path = project / "train.py"
    path.write_text(WORKS.format(word="bad"))
    done = run(project, "verify")
    assert path.read_text() == WORKS.format(word="bad")
    assert done.returncode == 1, done.stdout.decode()
    (certificate,) = (project / "gradfix-evidence").glob("*.json")
    assert certificate.name == "train.py-1-bad-word.json"
    shown = json.loads(certificate.read_text())
    assert (shown["filename"], shown["code"], shown["outcome"]) == ("train.py", "bad-word", "proved")
    assert shown["evidence"]["outcome"] == "proved"
    assert b"Would fix 1 finding in 1 file (1 proved)" in done.stdout
    assert str(project).encode() not in certificate.read_bytes()

    done = run(project, "apply", "--evidence", "../proof")
    assert done.returncode == 0, done.stdout.decode()
    assert path.read_text() == WORKS.format(word="good")
    assert done.stdout.endswith(b"Fixed 1 finding in 1 file (1 proved)\n")
    assert done.stderr == b"note: the evidence is in ../proof\n"
    assert (project.parent / "proof" / "train.py-1-bad-word.json").is_file()


@pytest.mark.parametrize("command", ["apply", "verify"])
def test_where_no_certificate_can_go_nothing_is_run_and_nothing_is_written(
    command: str, project: Path
) -> None:
    path = project / "train.py"
    path.write_text(WORKS.format(word="bad"))
    (project.parent / "home").mkdir()
    (project / "gradfix-evidence").symlink_to("../home")
    done = run(project, command)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"error: gradfix-evidence: io-error: cannot be written: " in done.stderr
    assert path.read_text() == WORKS.format(word="bad")
    assert os.listdir(project.parent / "home") == []


def listing(folder: Path) -> dict[str, tuple[int, int, int, int]]:
    """What can be told of everything below a folder without looking into it."""
    found = {str(path): path.lstat() for path in [folder, *folder.rglob("*")]}
    return {path: (one.st_ino, one.st_mode, one.st_size, one.st_mtime_ns) for path, one in found.items()}


WRITES = """import pathlib

import helper

pathlib.Path("written").write_text(helper.WORD)
pathlib.Path(__file__).with_name("beside").mkdir(exist_ok=True)
"""


def test_a_dry_run_writes_nothing_at_all(project: Path) -> None:
    (project / "train.py").write_text(WRITES + WORKS.format(word="bad"))
    (project / "helper.py").write_text("WORD = 'a module of the project'\n")
    (project / "pyproject.toml").write_text("[tool.gradfix]\n")
    before = listing(project.parent)
    done = run(project, "apply", "--dry-run")
    assert b"Would fix 1 finding in 1 file (1 proved)" in done.stderr, done.stderr.decode()
    assert b"+    loss = good(" in done.stdout
    assert listing(project.parent) == before
    run(project, "check")
    assert listing(project.parent) == before


# ---------------------------------------------------------------------------- list, explain, the rest


def test_list_and_explain(project: Path) -> None:
    done = run(project, "list")
    assert re.search(rb"^risky-word +warning +The word risky is wrong\.$", done.stdout, re.M)
    done = run(project, "explain", "risky_word")
    assert done.stdout == b"The word risky is wrong.\n\nMore: `gradfix explain --full risky-word`\n"
    done = run(project, "explain", "--full", "risky_word")
    assert done.stdout == b"The word risky is wrong.\n\nBefore: ``risky``. After: another word.\n"
    assert done.returncode == 0


def test_the_version_is_that_of_the_package(project: Path) -> None:
    import gradfix as package

    assert gradfix("--version", cwd=project).stdout.decode() == f"gradfix {package.__version__}\n"


@pytest.mark.parametrize(("code", "exit_code"), [("fine", 0), ("bad", 1)])
def test_a_reader_that_goes_away_changes_nothing(project: Path, code: str, exit_code: int) -> None:
    put(project, "\n".join([code] * 3))
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "check", "--codemods", str(project.parent / "codemods")],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (exit_code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_report_that_cannot_be_written_is_an_error(project: Path) -> None:
    put(project, "bad")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gradfix", "check", "--codemods", str(project.parent / "codemods")],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 2
    assert done.stderr == b"error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(("files", "everybody"), [(1, True), (40, True), (40, False)])
def test_an_interrupt_is_130_without_a_traceback(project: Path, files: int, everybody: bool) -> None:
    waiting = (
        "import os, pathlib, time\ndef find(program):\n"
        "    new = pathlib.Path(f'new{os.getpid()}')\n    new.write_text(str(os.getpid()))\n"
        "    new.replace('started')\n    time.sleep(60)\n"
    )
    (project.parent / "codemods" / "slow.py").write_text(f'"""Slow."""\n{waiting}    return []\n')
    for number in range(files):
        put(project, "fine", f"f{number}.py")
    process = subprocess.Popen(
        [sys.executable, "-m", "gradfix", "check", "--codemods", str(project.parent / "codemods")],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Tests that run in the background may have been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 30
    while not (project / "started").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    if everybody:  # As a terminal does it.
        os.killpg(process.pid, signal.SIGINT)
    else:
        os.kill(int((project / "started").read_text()), signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


def test_only_a_terminal_gets_colours(project: Path) -> None:
    put(project, "bad")

    def printed(**environment: str) -> bytes:
        terminal, other_end = pty.openpty()
        subprocess.run(
            [sys.executable, "-m", "gradfix", "check", "--codemods", str(project.parent / "codemods")],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environment},
            stdout=other_end,
        )
        os.close(other_end)
        text = os.read(terminal, 100_000)
        os.close(terminal)
        return text

    assert b"\x1b[1;33mbad-word\x1b[0m" in printed()
    assert b"\x1b" not in printed(NO_COLOR="1")
    assert b"\x1b" not in printed(TERM="dumb")


def test_a_file_name_that_is_not_text_is_printed(project: Path) -> None:
    with open(os.path.join(os.fsencode(project), b"\xff.py"), "wb") as stream:
        stream.write(b"bad\n# x.backward()\n")
    assert b"\\xff.py:1:1: bad-word" in run(project, "check").stdout
    assert json.loads(run(project, "check", "--output-format", "json").stdout)[0]["filename"] == r"\xff.py"
    assert run(project, "apply", "--no-verify").returncode == 0


def test_a_clean_check_imports_nothing_heavy(project: Path) -> None:
    put(project, "fine")
    code = (
        "import sys\nfrom gradfix.cli.commands import main\nsys.argv = ['gradfix', 'check']\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert done.code == 0\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    imported = set(done.stdout.decode().split())
    assert "gradfix.autograd" in imported
    heavy = {"libcst", "rich", "pygments", "torch", "unidiff", "numpy", "packaging", "pathspec", "yaml"}
    assert not heavy & imported
    assert (
        not {"gradfix.rewriting.rewrite", "gradfix.rewriting.patch", "gradfix.verify", "gradfix.report.json"}
        & imported
    )
