"""Patches as git itself reads them, and edits as their reader applies them."""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradfix.rewriting.patch import TextEdit, check, combine, edits_between, unified_diff

CONTENTS = {
    "one line": (b"a\nb\nc\n", b"a\nB\nc\n"),
    "far apart": (
        b"".join(b"%d\n" % n for n in range(40)),
        b"x\n" + b"".join(b"%d\n" % n for n in range(1, 39)),
    ),
    "the first line of all": (b"a\n" * 9, b"new\n" + b"a\n" * 9),
    "CRLF": (b"a\r\nb\r\nc\r\n", b"a\r\nnew\r\nb\r\nc\r\n"),
    "mixed newlines": (b"a\r\nb\nc\r\n", b"a\r\nb\nnew\nc\r\n"),
    "only a newline": (b"a\nb\n", b"a\r\nb\n"),
    "carriage returns in lines": (b"\ra\r\rb\n\r\nc\rd\n", b"\ra\r\rB\n\r\nc\rd\n\r"),
    "form feeds and other separators": (b"a\x0cb\n\x0c\nc\x1cd\xc2\x85\n", b"a\x0cb\n\x0c\nc\x1cD\xc2\x85\n"),
    "no newline before": (b"a\nb", b"a\nb\n"),
    "no newline after": (b"a\nb\n", b"a\nb"),
    "no newline at all": (b"a\nb", b"A\nb"),
    "no newline, the last line": (b"a\nb", b"a\nc"),
    "not UTF-8": (
        "# -*- coding: latin-1 -*-\né = 1\nb\n".encode("latin-1"),
        "# -*- coding: latin-1 -*-\né = 2\nb\n".encode("latin-1"),
    ),
    "lines like those of a patch": (
        b"--- a\n+++ b\n@@ -1 +1 @@\n\\ No newline\ndiff --git\n",
        b"--- a\n-- b\n@@ -1 +1 @@\n++ c\n\\ No newline\n",
    ),
    "trailing blanks": (b"a  \n\t\nb\n", b"a  \n\t\n \nb\n"),
    "all of it": (b"a\nb\n", b""),
    "from nothing": (b"", b"a\nb\n"),
}
PATHS = [
    "t.py",
    "pkg/my file.py",
    "pkg/é.py",
    "日本/語.py",
    'a"b\\c.py',
    "tab\t.py",
    " b/x b/y.py",
    "a b/c.py",
    "-x.py",
    "line\nend.py",
]


class Repository:
    """A git repository, with no configuration but its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(root.parent),
        }
        self.git("init", "--quiet")

    def git(self, *arguments: str, cwd: Path | None = None, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.root,
            env=self.environment,
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode() + done.stderr.decode()

    def write(self, path: str, content: bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    def apply(self, patch: bytes, *arguments: str, cwd: Path | None = None) -> None:
        self.git("apply", "--check", *arguments, cwd=cwd, stdin=patch)
        said = self.git("apply", "--verbose", *arguments, cwd=cwd, stdin=patch)
        assert "Skipped" not in said


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("repository"))


@pytest.mark.parametrize("from_toplevel", [False, True])
def test_git_makes_after_of_before(repository: Repository, from_toplevel: bool) -> None:
    """All contents in one patch, which also proves that they do not disturb each other."""
    contents = {f"contents/{number}.py": pair for number, pair in enumerate(CONTENTS.values())}
    for path, (before, _) in contents.items():
        repository.write(path, before)
    patch = combine(unified_diff(path, *pair, from_toplevel=from_toplevel) for path, pair in contents.items())
    assert check(patch, contents) is None
    repository.apply(patch)
    assert {path: (repository.root / path).read_bytes() for path in contents} == {
        path: after for path, (_, after) in contents.items()
    }


@pytest.mark.parametrize("name", CONTENTS)
def test_the_reverse_is_exact_as_well(repository: Repository, name: str) -> None:
    before, after = CONTENTS[name]
    file = repository.write("reverse.py", after)
    repository.apply(unified_diff("reverse.py", before, after), "--reverse")
    assert file.read_bytes() == before


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("from_toplevel", [False, True])
def test_paths(repository: Repository, path: str, from_toplevel: bool) -> None:
    before, after = CONTENTS["CRLF"]
    file = repository.write(path, before)
    patch = unified_diff(path, before, after, from_toplevel=from_toplevel)
    assert check(patch, {path: (before, after)}) is None
    repository.apply(patch)
    assert file.read_bytes() == after


def test_names_are_quoted_as_git_quotes_them(repository: Repository) -> None:
    for path in ["pkg/é\u3042.py", 'quote"\\.py', "tab\tbell\a.py", "my file.py"]:
        repository.write(path, b"a\n")
        repository.git("add", path)
        repository.write(path, b"b\n")
        header = unified_diff(path, b"a\n", b"b\n", from_toplevel=True).decode().split("@@")[0]
        shown = repository.git("diff", path).split("@@")[0]
        assert header == re.sub(r"index .*\n", "", shown)


def test_from_a_subdirectory(repository: Repository) -> None:
    """A path that counts from a folder works there, and elsewhere with --directory."""
    before, after = CONTENTS["far apart"]
    patch = unified_diff("deep/t.py", before, after)
    for cwd, arguments in [
        ("sub", ()),
        ("sub", ("-p1",)),
        (".", ("--directory=sub",)),
        (".", ("--directory=sub", "-p1")),
    ]:
        file = repository.write("sub/deep/t.py", before)
        repository.apply(patch, *arguments, cwd=repository.root / cwd)
        assert file.read_bytes() == after


def test_from_the_toplevel(repository: Repository) -> None:
    """A path that counts from the top works everywhere in the repository."""
    before, after = CONTENTS["far apart"]
    patch = unified_diff("sub/deep/t.py", before, after, from_toplevel=True)
    for cwd in (".", "sub", "sub/deep"):
        file = repository.write("sub/deep/t.py", before)
        repository.apply(patch, cwd=repository.root / cwd)
        assert file.read_bytes() == after


def test_outside_of_a_repository(tmp_path: Path, repository: Repository) -> None:
    before, after = CONTENTS["mixed newlines"]
    (tmp_path / "t.py").write_bytes(before)
    environment = {**repository.environment, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    patch = unified_diff("t.py", before, after)
    subprocess.run(["git", "apply"], cwd=tmp_path, env=environment, input=patch, check=True)
    assert (tmp_path / "t.py").read_bytes() == after


def test_the_same_is_no_patch() -> None:
    assert unified_diff("t.py", b"a", b"a") == b""
    assert check(b"", {}) is None


def test_what_a_patch_looks_like() -> None:
    before = b"".join(b"%d\n" % n for n in range(1, 11))
    assert unified_diff("a b.py", before, before.replace(b"5\n", b"").removesuffix(b"\n")) == (
        b"--- a/a b.py\t\n+++ b/a b.py\t\n"
        b"@@ -2,9 +2,8 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n 9\n-10\n+10\n\\ No newline at end of file\n"
    )


def test_an_empty_range_is_named_by_the_line_before_it() -> None:
    assert b"\n@@ -0,0 +1,2 @@\n" in unified_diff("t.py", *CONTENTS["from nothing"])
    assert b"\n@@ -1,2 +0,0 @@\n" in unified_diff("t.py", *CONTENTS["all of it"])


def test_frequent_lines_do_not_blow_up_a_patch() -> None:
    before = b"first\n" + b"step()\n" * 3 + b"last\n" + b"step()\n" * 300
    after = before.replace(b"first", b"1st").replace(b"last", b"end")
    lines = unified_diff("t.py", before, after).splitlines()
    assert [line for line in lines[3:] if line[:1] in b"+-"] == [b"-first", b"+1st", b"-last", b"+end"]


BEFORE, AFTER = b"a\nb\nc\n", b"a\nB\nc\n"
GOOD = unified_diff("t.py", BEFORE, AFTER)


@pytest.mark.parametrize(
    ("patch", "contents", "why"),
    [
        (GOOD.replace(b"-1,3", b"-1,4"), None, "does not parse: Hunk is shorter"),
        (GOOD.replace(b"+1,3", b"+1,2"), None, "does not parse: Hunk is longer"),
        (
            GOOD.replace(b"+++ b/t.py\n", b"+++ b/u.py\n").replace(b"--- a/t.py\n", b""),
            None,
            "does not parse",
        ),
        (GOOD.replace(b"@@ -1,3 +1,3 @@\n", b"@@ -1,3 @@\n"), None, "1 hunks are announced, 0 were read"),
        (GOOD, {}, "for 1 files, not for the 0"),
        (GOOD, {"u.py": (BEFORE, AFTER)}, "not for the 1 that have changed"),
        (GOOD, {"t.py": (BEFORE, AFTER), "u.py": (BEFORE, AFTER)}, "not for the 2"),
        (GOOD, {"t.py": (BEFORE, BEFORE)}, "does not make of t.py what was meant"),
        (GOOD, {"t.py": (b"a\nx\nc\n", AFTER)}, "does not make of t.py what was meant"),
        (GOOD, {"t.py": (b"a\n", AFTER)}, "does not make of t.py what was meant"),
        (GOOD, {"t.py": (BEFORE + b"d\n", AFTER)}, "does not make of t.py what was meant"),
        (
            GOOD.replace(b" c\n", b" c\n\\ No newline at end of file\n"),
            {"t.py": (BEFORE, AFTER)},
            "does not make",
        ),
    ],
)
def test_check_says_what_is_wrong(
    patch: bytes, contents: dict[str, tuple[bytes, bytes]] | None, why: str
) -> None:
    assert check(GOOD, {"t.py": (BEFORE, AFTER)}) is None
    assert why in (check(patch, contents) or "")


LINES = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"\n", b"a\r\n", b"\r", b"c\x0c", b"\xe9\n", b"+x\n", b"-- \n", b" "]),
    max_size=14,
)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(LINES.map(b"".join), LINES.map(b"".join)), min_size=8, max_size=8))
def test_any_contents(repository: Repository, pairs: list[tuple[bytes, bytes]]) -> None:
    contents = {f"any/{n}.py": pair for n, pair in enumerate(pairs) if pair[0] != pair[1]}
    for path, (before, _) in contents.items():
        repository.write(path, before)
    patch = combine(unified_diff(path, *pair) for path, pair in contents.items())
    assert check(patch, contents) is None
    if patch:
        repository.apply(patch)
    for path, (_, after) in contents.items():
        assert (repository.root / path).read_bytes() == after


# ---- edits


def applied(text: str, edits: list[TextEdit]) -> str:
    """The edits as an editor applies them: from the last to the first, each at its place."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    for edit in reversed(edits):
        start, end = (
            starts[place["row"] - 1] + place["column"] - 1
            for place in (edit["location"], edit["end_location"])
        )
        assert start <= end <= len(text)
        text = text[:start] + edit["content"] + text[end:]
    return text


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a\n", "a\n", []),
        ("x = fé(a)\n", "x = fé(b.c)\n", [("b.c", 1, 8, 1, 9)]),
        ("a\nb\n", "a\nnew\nb\n", [("new\n", 2, 1, 2, 1)]),
        ("a\nb\nc\n", "a\nc\n", [("", 2, 1, 3, 1)]),
        ("a\n", "a\nb\n", [("b\n", 2, 1, 2, 1)]),
        ("a", "a\nb", [("\nb", 1, 2, 1, 2)]),
        ("a\r\nb", "A\r\nB", [("A", 1, 1, 1, 2), ("B", 2, 1, 2, 2)]),
        ("a\r\n", "a\n", [("\n", 1, 2, 2, 1)]),
        ("f(a, b)\nf(c, d)\n", "f(a)\nf(c)\n", [("", 1, 4, 1, 7), ("", 2, 4, 2, 7)]),
        ("", "a", [("a", 1, 1, 1, 1)]),
    ],
)
def test_edits(before: str, after: str, expected: list[tuple[str, int, int, int, int]]) -> None:
    edits = edits_between(before, after)
    assert applied(before, edits) == after
    assert edits == [
        {
            "content": content,
            "location": {"row": row, "column": column},
            "end_location": {"row": end_row, "column": end_column},
            "cell": None,
        }
        for content, row, column, end_row, end_column in expected
    ]


TEXTS = st.lists(
    st.sampled_from(["a", "b", "é🙂", "\n", "\n", "\r\n", "\r", "\x0c", "\u2028", "x = 1\n"]), max_size=20
).map("".join)


@given(TEXTS, TEXTS)
def test_any_edits(before: str, after: str) -> None:
    edits = edits_between(before, after)
    assert applied(before, edits) == after
    places = [
        (place["row"], place["column"])
        for edit in edits
        for place in (edit["location"], edit["end_location"])
    ]
    assert places == sorted(places)
    assert all(edit["content"] or edit["location"] != edit["end_location"] for edit in edits)


@given(st.randoms(use_true_random=False))
def test_edits_are_small(draw: random.Random) -> None:
    """One changed line is one edit, within that line."""
    lines = [f"line {number}\n" for number in range(30)]
    number = draw.randrange(30)
    changed = [*lines[:number], f"line! {number}\n", *lines[number + 1 :]]
    (edit,) = edits_between("".join(lines), "".join(changed))
    assert edit["content"] == "!"
    assert edit["location"] == edit["end_location"] == {"row": number + 1, "column": 5}
