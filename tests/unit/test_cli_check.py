"""`gradfix check` as users of ruff know it: fixes, patches, counts, short lines, files, standard input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import ROOT, git, gradfix, standard_codemods


@pytest.fixture
def project(tmp_path: Path) -> Path:
    standard_codemods(tmp_path / "codemods")
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run(
    project: Path, *arguments: object, given: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "check", "--codemods", "../codemods", *map(str, arguments)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        input=given,
        capture_output=True,
        timeout=120,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def put(project: Path, code: str, name: str = "train.py") -> Path:
    path = project / name
    path.write_text(f"{code}\n# x.backward()\n")
    return path


def test_a_finding_shows_the_lines_that_its_fix_would_change(project: Path) -> None:
    put(project, "fine\nbad")
    assert run(project).stdout.decode().splitlines()[5:8] == [
        "  = fix (preserves, safe): say good",
        "    2 - bad",
        "    2 + good",
    ]


def test_diff_is_the_patch_of_the_fixes_and_writes_nothing(project: Path) -> None:
    path = put(project, "bad\nrisky")
    before = path.read_bytes()
    done = run(project, "--diff")
    assert (done.returncode, done.stderr) == (1, b"")
    assert path.read_bytes() == before
    git("init", "-q", cwd=project)
    (project / "fix.patch").write_bytes(done.stdout)
    git("apply", "fix.patch", cwd=project)
    assert path.read_text().splitlines()[:2] == ["good", "risky"]
    assert run(project, "--diff").returncode == 0  # What is left has no fix that needs no leave.
    assert b"+good" in run(project, "--diff", "--unsafe-fixes").stdout


def test_diff_runs_nothing(project: Path) -> None:
    put(project, "open('ran', 'w')\nbad = 1\nbad")
    assert b"+good" in run(project, "--diff").stdout
    assert not (project / "ran").exists()


def test_fix_writes_only_what_is_proved(project: Path) -> None:
    path = put(project, "raise SystemExit(3)\nbad")
    done = run(project, "--fix")
    assert done.returncode == 1
    assert path.read_text().splitlines()[1] == "bad"
    assert b"not applied" in done.stdout
    assert b"`gradfix apply --unproved` writes it" in done.stderr
    assert run(project, "--fix", "--exit-zero").returncode == 0


def test_statistics(project: Path) -> None:
    put(project, "bad\nbad\nrisky")
    done = run(project, "--statistics")
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[:2] == [
        "2  bad-word    2 fixable with `gradfix apply`",
        "1  risky-word",
    ]
    done = run(project, "--statistics", "--output-format", "json")
    assert json.loads(done.stdout) == [
        {"code": "bad-word", "count": 2, "fixable": 2},
        {"code": "risky-word", "count": 1, "fixable": 0},
    ]


def test_concise(project: Path) -> None:
    put(project, "call(bad)\nrisky")
    assert run(project, "--output-format", "concise", "-q").stdout.decode() == (
        "train.py:1:6: bad-word [*] warning: the word bad is wrong\n"
        "train.py:2:1: risky-word warning: the word risky is wrong\n"
    )


def test_exit_zero_is_for_findings_and_not_for_failures(project: Path) -> None:
    put(project, "bad")
    assert run(project, "--exit-zero").returncode == 0
    assert run(project, "--exit-zero", "--diff").returncode == 0
    assert run(project, "--exit-zero", ".", "missing.py").returncode == 2


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_the_report_goes_to_a_file(form: str, project: Path) -> None:
    put(project, "bad")
    printed = run(project, "--output-format", form)
    done = run(project, "--output-format", form, "-o", "reports/found")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
    assert (project / "reports" / "found").read_bytes() == printed.stdout
    assert run(project, "-o", ".").returncode == 2


def test_standard_input_has_a_name_and_its_configuration(project: Path) -> None:
    code = b"bad\nrisky\n# x.backward()\n"
    done = run(project, "-", "--output-format", "concise", given=code)
    assert done.returncode == 1
    assert done.stdout.startswith(b"-:1:1: bad-word")
    (project / "src").mkdir()
    (project / "src" / "pyproject.toml").write_text(
        '[tool.gradfix]\nignore = ["risky-word"]\nexclude = ["left.py"]\n'
    )
    options = ("--stdin-filename", "src/new.py", "--output-format", "json")
    done = run(project, "-", *options, given=code)
    assert [(one["filename"], one["code"]) for one in json.loads(done.stdout)] == [("src/new.py", "bad-word")]
    left = run(project, "-", "--stdin-filename", "src/left.py", "--force-exclude", given=code)
    assert left.returncode == 0 and left.stdout.startswith(b"Checked 0 files, found nothing")
    done = run(project, "-", "--stdin-filename", "src/new.py", "--diff", given=code)
    assert (done.returncode, b"+++ b/src/new.py" in done.stdout, b"+good" in done.stdout) == (1, True, True)
    broken = run(project, "-", given=b"x = (")
    assert (broken.returncode, broken.stderr.startswith(b"error: -:1:5: syntax-error")) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fix", "--diff"], b"choose one"),
        (["-", "train.py"], b"no other PATH"),
        (["-", "--fix"], b"use --diff"),
        (["--stdin-filename", "a.py"], b"--stdin-filename"),
        (["--fix", "--output-format", "sarif"], b"text or json"),
        (["--statistics", "--diff"], b"--statistics"),
        (["--statistics", "--output-format", "sarif"], b"cannot be printed as sarif"),
        (["-j", "0"], b"-j"),
        (["--color", "pink"], b"pink"),
    ],
)
def test_what_contradicts_itself_is_refused(arguments: list[str], message: bytes, project: Path) -> None:
    put(project, "bad")
    done = run(project, *arguments, given=b"")
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr


def test_when_there_is_colour(project: Path) -> None:
    put(project, "bad")
    plain = {"NO_COLOR": "", "FORCE_COLOR": ""}

    def coloured(*arguments: str, **environment: str) -> bool:
        return b"\x1b[" in run(project, *arguments, **{**plain, **environment}).stdout

    assert not coloured()
    assert coloured("--color", "always")
    assert coloured("--color", "always", NO_COLOR="1")
    assert coloured(FORCE_COLOR="1")
    assert not coloured(FORCE_COLOR="1", NO_COLOR="1")
    assert not coloured("--color", "never", FORCE_COLOR="1")


def test_processes_are_limited_and_what_is_found_is_the_same(project: Path) -> None:
    for number in range(3):
        put(project, "bad", f"train{number}.py")
    assert run(project, "-j", "1").stdout == run(project, "-j", "4", "--no-cache").stdout != b""


def test_short_names_of_help_and_version(project: Path) -> None:
    for short, long in (
        (["-V"], ["--version"]),
        (["-h"], ["--help"]),
        (["check", "-h"], ["check", "--help"]),
    ):
        done = gradfix(*short, cwd=project)
        assert (done.returncode, done.stdout) == (0, gradfix(*long, cwd=project).stdout)


def told(project: Path, code: str, *options: str) -> list[str]:
    put(project, code)
    return run(project, *options).stderr.decode().splitlines()


def test_comments_that_silence_nothing_are_told(project: Path) -> None:
    assert told(project, "bad  # gradfix: ignore[bad-word]\nbad  # gradfix: ignore") == []
    assert told(
        project, "bad  # gradfix: ignore[bad-word, risky-word]\nfine  # gradfix: ignore[bad-word]"
    ) == [
        "note: train.py: line 1: `ignore[risky-word]` silences nothing",
        "note: train.py: line 2: `ignore[bad-word]` silences nothing",
    ]
    assert told(project, "fine  # gradfix: ignore") == ["note: train.py: line 1: `ignore` silences nothing"]
    # The comment may stand at the end of the statement, and is not to be judged by what was not asked for.
    assert told(project, "f(\n    bad,\n)  # gradfix: ignore[bad-word]") == []
    assert told(project, "fine  # gradfix: ignore[bad-word]", "--select", "risky-word") == []
    assert told(project, "fine  # gradfix: ignore", "--select", "risky-word") == []
    assert told(project, "fine  # gradfix: ignore", "-q") == []


def test_mistyped_comments_are_told(project: Path) -> None:
    assert told(
        project, "bad  # gradfix: ignore[bad-wrd]\nbad  # gradfix: ignroe\nbad  # gradfix: ignore-file"
    ) == [
        "note: train.py: line 1: there is no codemod 'bad-wrd'; did you mean 'bad-word'?",
        "note: train.py: line 2: `gradfix: ignroe` is no suppression: write `ignore`, `ignore[NAME]` or "
        "`ignore-file`",
        "note: train.py: line 3: `ignore-file` silences the file only above its code",
    ]


def test_the_list_of_codemods_as_json(project: Path) -> None:
    done = gradfix("list", "--output-format", "json", "--codemods", "../codemods", cwd=project)
    (bad,) = [one for one in json.loads(done.stdout) if one["code"] == "bad-word"]
    assert (bad["severity"], bad["summary"]) == ("warning", "The word bad is wrong.")
    clauses = {one["code"]: one["clause"] for one in json.loads(done.stdout)}
    assert (bad["clause"], clauses["leaking-loss"]) == (None, "no other loss")
    assert bad["documentation"].startswith("The word bad is wrong.\n\nBefore")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_options(project: Path) -> None:
    script = gradfix("generate-shell-completion", "bash", cwd=project).stdout.decode()
    command = project / "gradfix"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gradfix "$@"\n')
    command.chmod(0o755)
    asked = """
    COMP_WORDS=(gradfix check --exit) COMP_CWORD=2
    _gradfix_completion gradfix
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", script + asked],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{project}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["--exit-zero"], done.stderr
