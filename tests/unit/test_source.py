"""Reading one file: a bad one is one message that names it, and of a good one nothing is lost."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradfix.core.span import Span
from gradfix.project.source import (
    MAX_BYTES,
    Problem,
    Source,
    can_matter,
    character_column,
    load,
    parse,
    read,
    split_lines,
)


def good(data: bytes) -> Source:
    source = parse("f.py", data)
    assert isinstance(source, Source), source
    return source


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"x = (\n", "was never closed", 1),
        (b"ok = 1\nprint 'x'\n", "looks like Python 2", 2),
        (b"exec 'x'\n", "looks like Python 2", 1),
        (b"try:\n    x\nexcept E, e:\n    y\n", "looks like Python 2", 3),
        (b"raise E, 'x'\n", "looks like Python 2", 1),
        (b"mode = 0777\n", "looks like Python 2", 1),
        (b"if a <> b: pass\n", "looks like Python 2", 1),
        (b"x = 10L\n", "looks like Python 2", 1),
        (b"x = 1\ny = x.cuda(async=True)\n", "looks like Python 3.6 or older", 2),
        (b"a = 1\nb = '\xe9'\n", "is not UTF-8 (byte 0xe9) and declares no other encoding", 2),
        (b"a = 1\n\n\n\nb = '\xe9'\n", "is not UTF-8 (byte 0xe9)", 5),
        (b"# coding: utf-8\nb = '\xe9'\n", "is not UTF-8 (byte 0xe9)", 2),
        (b"# coding: klingon\n", "unknown encoding: klingon", 0),
        (b"# coding: rot13\nk = 1\n", "is not a text encoding", 0),
        (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem", 0),
        ("loss.backward()".encode("utf-16"), "is UTF-16", 0),
        (b"a = 1\0\n", "null bytes", None),
        (b"x = " + b"(" * 300 + b")" * 300 + b"\n", "too many nested parentheses", 1),
        (b"x = " + b"-" * 100_000 + b"1\n", "nested too deeply", 0),
        (b"x = " + b"1+" * 100_000 + b"1\n", "nested too deeply", 0),
        (b"x = 1\n" + b"\ty = 2\n", "unexpected indent", 2),
    ],
)
def test_a_file_that_is_not_python_is_one_problem(data: bytes, message: str, line: int | None) -> None:
    problem = parse("some/f.py", data)
    assert isinstance(problem, Problem)
    assert problem.code == "syntax-error"
    assert message in problem.message
    assert str(problem).startswith("some/f.py:")
    assert "\n" not in str(problem)
    if line is not None:
        assert problem.line == line


def test_what_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    dangling = tmp_path / "dangling.py"
    dangling.symlink_to("nowhere")
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    for path, message in [
        (tmp_path / "missing.py", "No such file"),
        (dangling, "a symbolic link to a file that does not exist"),
        (tmp_path, "is not a regular file"),
        (pipe, "is not a regular file"),
    ]:
        problem = load(str(path))
        assert isinstance(problem, Problem)
        assert problem.code == "io-error"
        assert message in problem.message
        assert str(path) in str(problem)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_file_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "f.py").touch(mode=0)
    problem = load(str(tmp_path / "f.py"))
    assert isinstance(problem, Problem)
    assert "Permission denied" in problem.message


def test_a_generated_file_is_skipped_with_its_size_and_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "big.py"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    problem = read(str(path))
    assert isinstance(problem, Problem)
    assert "4.0 MiB is more than max-file-size" in problem.message
    assert isinstance(read(str(path), limit=MAX_BYTES * 2), Source)


def test_a_notebook_is_not_mistaken_for_a_clean_program() -> None:
    problem = parse("n.ipynb", b'{"cells": [], "metadata": null}')
    assert isinstance(problem, Problem)
    assert "notebook" in problem.message


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"x = 1\r\ny = 2\r\n", "utf-8", "x = 1\r\ny = 2\r\n"),
        (b"x = 1\ry = 2\r", "utf-8", "x = 1\ry = 2\r"),
        (b"\xef\xbb\xbfx = 1\r\n", "utf-8-sig", "x = 1\r\n"),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'", "iso-8859-1", "# -*- coding: latin-1 -*-\nx = 'é'"),
        ("#!/usr/bin/python\n# coding: gbk\nx = '梯度'\n".encode("gbk"), "gbk", None),
        ("x = '梯度'\n".encode(), "utf-8", "x = '梯度'\n"),
    ],
)
def test_bytes_survive_decoding_and_encoding(data: bytes, encoding: str, text: str | None) -> None:
    source = good(data)
    assert source.encoding == encoding
    assert text is None or source.text == text
    assert source.encode(source.text) == data
    again = source.with_text(source.text)
    assert isinstance(again, Source)
    assert again.data == data


def test_text_that_the_encoding_cannot_hold_is_a_problem() -> None:
    problem = good(b"# coding: latin-1\n").encode("梯度")
    assert isinstance(problem, Problem)
    assert "does not fit its encoding" in problem.message


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n")))
def test_lines_are_counted_as_python_counts_them(comment: str) -> None:
    source = good(f"# {comment}\nlast = 1\n".encode())
    assert source.lines[source.tree.body[0].lineno - 1] == "last = 1"
    assert source.encode(source.text) == source.data


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n\\'")))
def test_columns_are_counted_in_characters(text: str) -> None:
    line = f"x = '{text}' + name"
    name = good(f"{line}\n".encode()).tree.body[0]
    assert isinstance(name, ast.Assign)
    assert isinstance(name.value, ast.BinOp)
    column = character_column(line, name.value.right.col_offset)
    assert line[column - 1 :] == "name"


def test_form_feeds_end_no_line() -> None:
    assert split_lines("a\fb\x1cc\u2028d\r\ne\rf\ng") == ("a\fb\x1cc\u2028d", "e", "f", "g")


@pytest.mark.filterwarnings("error")
def test_nobody_is_warned_of_invalid_escapes(capfd: pytest.CaptureFixture[str]) -> None:
    good(b"x = '\\d'\n")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("code", "matters"),
    [
        (b"loss.backward()", True),
        (b"scaler.scale(loss) . backward (retain_graph=True)", True),
        (b"self.manual_backward(loss)", True),
        (b"torch.autograd.grad(loss, x)", True),
        (b"from torch.autograd import grad", True),
        (b"from torch.autograd import (\n    Variable,\n    grad,\n)", True),
        (b"import torch.autograd as ag", True),
        (b"from torch.autograd import Variable\nwith torch.no_grad():\n    pass", False),
        (b"forwards, backwards = 1, 2", False),
        (b"opt.zero_grad()\nloss = f(x)\nopt.step()", True),
        (b"opt.zero_grad()\nwarmup.steps = 3", False),
        (b"env.step(action)", False),
        (b"", False),
    ],
)
def test_only_what_differentiates_or_steps_can_matter(code: bytes, matters: bool) -> None:
    assert can_matter(code) is matters


SUPPRESSIONS = """\
a.backward()  # gradfix: ignore
b.backward()  # gradfix: ignore[one, two] because of this
c.backward()  # gradfix:ignore[one]
d.backward(  # gradfix: ignore
    retain_graph=True,
)
e.backward(
    retain_graph=True,
)  # gradfix: ignore
f("# gradfix: ignore").backward()
for x in y:  # gradfix: ignore
    g.backward()
h.backward()  # gradfix: ignored
i.backward()  # noqa: E501  # gradfix: ignore
# gradfix: ignore-file
j.backward()  # gradfix: ignore[]
"""


@pytest.mark.parametrize(
    ("line", "one", "other"),
    [
        (1, True, True),
        (2, True, False),
        (3, True, False),
        (5, True, True),
        (8, True, True),
        (10, False, False),
        (11, True, True),
        (12, False, False),
        (13, False, False),
        (14, True, True),
        (16, False, False),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_comments_silence_findings(line: int, one: bool, other: bool, newline: str) -> None:
    source = good(SUPPRESSIONS.replace("\n", newline).encode())
    span = Span(line, 4, line, 5)
    assert source.suppressed("one", span) is one
    assert source.suppressed("other", span) is other


@pytest.mark.parametrize(
    ("code", "silent"),
    [
        ("# gradfix: ignore-file\nx.backward()\n", True),
        ('#!/usr/bin/env python\n"""Doc."""\n\n# gradfix: ignore-file: generated\nx.backward()\n', True),
        ("import torch  # gradfix: ignore-file\nx.backward()\n", False),
        ("import torch\n# gradfix: ignore-file\nx.backward()\n", False),
        ("x = '# gradfix: ignore-file'\n", False),
    ],
)
def test_a_file_is_silenced_above_its_code_only(code: str, silent: bool) -> None:
    assert good(code.encode()).suppressed("any", Span(1, 0, 1, 1)) is silent


@pytest.mark.skipif(sys.platform == "win32", reason="file names are text there")
def test_a_file_name_that_is_not_text_can_be_read(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"\xff.py")
    with open(path, "wb") as stream:
        stream.write(b"x = 1\n")
    assert isinstance(read(os.fsdecode(path)), Source)
