"""Whatever a repository holds, nothing that is printed acts on the terminal; patches alone are exact."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from fakes import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradfix.core.codemod import Finding, Note
from gradfix.core.span import Span
from gradfix.pipeline.results import (
    Attempt,
    Explanation,
    FilePlan,
    FileReport,
    Outcome,
    Plan,
    Report,
    Reported,
)
from gradfix.project.source import Problem
from gradfix.report import text
from gradfix.report.excerpt import excerpt
from gradfix.system.printable import encodable, printable, visible

HOSTILE = {
    "escape sequence": "\x1b[2J\x1b[1;1H",
    "link": "\x1b]8;;https://evil.example\x1b\\safe\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;Y3VybA==\x07",
    "C1 control": "\x9b2J\x85\x90",
    "carriage return": "\rerror: forged",
    "backspace and delete": "\b\x7f\x00\f\v",
    "override": "\u202e\u2066 x \u2069\u202c",
    "marks": "\u200e\u200f\u061c",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "separators": "\u2028\u2029\u00a0",
    "tags and fillers": "\U000e0041\u3164\u2800\ufe0f",
    "surrogates": "\udc80\ud800",
    "newline": "\nerror: forged",
    "order to a job": "##vso[task.setvariable variable=PATH]evil ##[error]x ##teamcity[x]",
}
OURS = re.compile(r"\x1b\[(?:1|1;3[1-4]|0)m")
"""The colours of gradfix."""


def acts(shown: str, orders: bool = True) -> list[str]:
    """What in it does more than to stand there, but newlines and gradfix's colours."""
    plain = OURS.sub("", shown).replace("\n", "")
    categories = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    found = re.findall(r"##[a-z]*\[", shown) if orders else []
    return found + [one for one in plain if unicodedata.category(one) in categories]


def program(name: str) -> str:
    """A program with a mistake, whose comment and string hold what is hostile as far as Python takes it."""
    held = "".join(one for one in HOSTILE[name] if one not in "\x00\r\n\\")
    held = held.encode("utf-8", "ignore").decode()
    return (
        "import torch\n\nnet = torch.nn.Linear(4, 4)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor _ in range(3):\n"
        f"    loss = net(torch.randn(8, 4)).square().mean()  # {held}\n"
        f"    loss.backward(), '{held}'\n"
        "    optimizer.step()\n"
    )


def gradfix(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / ".state")},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_hostile_repository_prints_nothing_that_acts(tmp_path: Path) -> None:
    names = set()
    for name, hostile in HOSTILE.items():
        file = "".join(one for one in f"a{hostile}.py" if one not in "/\x00\ud800")
        (tmp_path / file).write_text(program(name), encoding="utf-8")
        (tmp_path / f"broken{file}").write_text("loss.backward(\n")
        names |= {file, f"broken{file}"}
    code, out, error = gradfix(tmp_path, "check")
    told = [line for line in error.split("\n") if line.startswith("error: broken")]
    assert (code, out.count("missing-zero-grad: "), len(told)) == (2, len(HOSTILE), len(HOSTILE))
    assert acts(out + error) == []
    # Every line begins as gradfix begins it.
    assert [line for line in (out + error).split("\n") if line.startswith("error: forged")] == []
    code, out, error = gradfix(tmp_path, "check", "--output-format", "json")
    assert out.isascii() and {one["filename"] for one in json.loads(out)[:-1]} == set(map(encodable, names))
    assert acts(error) == []
    code, patch, error = gradfix(tmp_path, "apply", "--no-verify", "--unsafe-fixes", "--dry-run")
    assert acts(error) == []
    headers = re.findall(r"(?m)^(?:---|\+\+\+) (.*)$", patch)
    assert len(headers) == 2 * len(HOSTILE)
    assert acts("".join(headers).replace("\t", ""), orders=False) == []
    code, out, error = gradfix(tmp_path, "apply", "--no-verify", "--unsafe-fixes")
    assert out.count("fixed, not verified") == len(HOSTILE)
    assert acts(out + error) == []


def test_arguments_and_configurations_are_printed_as_harmless(tmp_path: Path) -> None:
    hostile = "\x1b[31m\n\u202e"
    (tmp_path / "pyproject.toml").write_text('[tool.gradfix]\nselect = ["\\u001b[31m\\n"]\n')
    for arguments in (
        ("check", f"--{hostile}"),
        ("check", "--select", hostile),
        ("explain", hostile),
        ("list", hostile),
        ("explain", "name", hostile),
        ("bot", "status", f"--{hostile}"),
        ("bot", hostile),
        ("env", f"--{hostile}"),
        ("verify", "--certificate", hostile),
        ("check", "."),
        ("env", hostile),
        (hostile,),
    ):
        code, out, error = gradfix(tmp_path, *arguments)
        assert code != 0, arguments
        assert error, arguments
        assert acts(out + error) == [], arguments


ANY = st.text(st.characters(), max_size=40) | st.sampled_from(sorted(HOSTILE.values()))


def reported(message: str, line: int = 1) -> Reported:
    note = Note(Span(line, 0, line, 1), message)
    return Reported(Finding(message, message, Span(line, 0, line, 1), (note,)))


DECODED = ANY.map(lambda what: what.encode("utf-8", "ignore").decode())


@given(path=ANY, source=DECODED, message=ANY)
# The first draw makes a table of all characters, which takes long where the machine has other things to do.
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_report_holds_a_character_that_acts(path: str, source: str, message: str) -> None:
    problem = Problem(path, message)
    found = reported(message)
    attempt = Attempt(found.finding, _fix(message), source, source + message, Outcome.REFUTED, message)
    plan = Plan((FilePlan(path, b"", b"", source, (attempt,), (found,), (problem,)),), (), 1, ())
    report = Report((FileReport(path, source, (found,), (problem,)),), (), 1, ())
    story = Explanation(
        ((path, source, found.finding),),
        message,
        message,
        message,
        message,
        source.encode("utf-8", "replace"),
        path,
    )
    for colour in (False, True):
        shown = text.Text(colour)
        parts = [
            *shown.report(report),
            *shown.plan(plan, in_full=True),
            *shown.certificates(plan),
            *shown.explanation(story),
        ]
        assert acts("".join(parts)) == []
        assert acts(printable(str(problem))) == []


def _fix(message: str) -> object:
    from gradfix.core.codemod import Effect, Fix

    return Fix(message, Effect.REPAIRS, ())


@given(ANY)
def test_what_is_printable_is_one_line_and_stays_as_it_is(what: str) -> None:
    shown = printable(what)
    assert acts(shown) == []
    assert "\n" not in shown
    assert printable(shown) == shown
    assert acts(visible(what).replace("\t", "")) == []


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        ("naïve 名前 ∂.py", "naïve 名前 ∂.py"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[31m", "\\u{1b}[31m"),
        (os.fsdecode(b"caf\xe9.py"), "caf\\xe9.py"),
        ("\u202e", "\\u{202e}"),
        ("##vso[x] ## [x] #[x]", "##vso\\u{5b}x] ## [x] #[x]"),
    ],
)
def test_how_it_is_written_out(what: str, shown: str) -> None:
    assert printable(what) == shown


@pytest.mark.parametrize(
    "before", ["", "\t", "é", "名前", "e\u0301", "\u202e", "\x1b[2J", "\u200b名\t", "\u20dd"]
)
def test_a_mark_stands_under_what_it_marks(before: str) -> None:
    line = f"{before}loss.backward()"
    start = len(before.encode())
    span = Span(1, start, 1, start + len("loss"))
    rows = excerpt([line], Finding("code", "message", span))
    assert acts(rows[0].text) == []
    wide = sum(
        0 if unicodedata.category(c) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in rows[0].text.partition("loss")[0]
    )
    assert rows[1].text == " " * wide + "^^^^"
