"""Notebooks: the code of their cells is analysed and run as one module, and nothing else of them changes."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import nbformat
import pytest
from fakes import git, gradfix
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from nbclient import NotebookClient

from gradfix.project import notebooks, source
from gradfix.project.notebooks import CellLayout, NotebookError
from gradfix.project.source import Problem, Source, split_lines

GAN = [
    ("markdown", "# A GAN"),
    ("code", "import torch\nfrom torch import nn\n%load_ext autoreload\n!pip install \\\n    torch"),
    (
        "code",
        "netG, netD = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())\n"
        "optG = torch.optim.SGD(netG.parameters(), lr=0.1)\n"
        "optD = torch.optim.SGD(netD.parameters(), lr=0.1)\n"
        "bce = nn.BCELoss()  # größer\n",
    ),
    ("markdown", "Train"),
    (
        "code",
        "for step in range(3):\n"
        "    fake = netG(torch.randn(6, 4))\n"
        "    optD.zero_grad()\n"
        "    name = 'a\\t\"b\"'; lossD = bce(netD(fake), torch.zeros(6, 1))\n"
        "    lossD.backward()\n"
        "    optD.step()\n"
        "    optG.zero_grad()\n"
        "    lossG = bce(netD(fake), torch.ones(6, 1))\n"
        "    lossG.backward()\n"
        "    optG.step()",
    ),
    ("code", "lossG?"),
]
"""A GAN whose fake is not detached; in cell 5, line 4."""

CARRIED = [
    (
        "code",
        "import torch\nrnn = torch.nn.RNN(3, 5)\nopt = torch.optim.SGD(rnn.parameters(), lr=0.1)\n"
        "h = torch.zeros(1, 2, 5)",
    ),
    (
        "code",
        "for x in torch.randn(4, 7, 2, 3):\n    out, h = rnn(x, h)\n    opt.zero_grad()\n"
        "    out.pow(2).mean().backward()\n    opt.step()",
    ),
]
"""A hidden state whose graph is carried over; a statement has to be put into cell 2."""


def content(cells: list[tuple[str, str]], *, listed: bool = True, **metadata: Any) -> dict[str, Any]:
    """A notebook with outputs, as Jupyter has it."""
    made = []
    for number, (kind, text) in enumerate(cells, start=1):
        value = text.splitlines(True) if listed else text
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {"tags": []}}
        if kind == "code":
            picture = {"output_type": "display_data", "data": {"text/plain": ["loss.backward(é)"]}}
            cell |= {"execution_count": number, "outputs": [{**picture, "metadata": {}}]}
        made.append({**cell, "source": value})
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": made, "metadata": kernel | metadata, "nbformat": 4, "nbformat_minor": 5}


def written(path: Path, cells: list[tuple[str, str]], **how: Any) -> Path:
    path.write_text(json.dumps(content(cells, **how), indent=1, ensure_ascii=False) + "\n")
    return path


def parsed(path: Path) -> Source:
    found = source.read(str(path))
    assert isinstance(found, Source), found
    return found


# ---------------------------------------------------------------------------- lines of IPython's


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("%matplotlib inline", "pass"),
        ("if a:\n    !wget b\nelse:\n    x?", "if a:\n    pass\nelse:\n    pass"),
        ("!pip install \\\n  a \\\n  b\nc", "pass\npass\npass\nc"),
        ("?torch\ntorch.nn??\n%timeit?", "pass\npass\npass"),
        ("files = !ls\na, b = %sql c", "files = get_ipython().getoutput()\na, b = get_ipython().getoutput()"),
        ("%run other.py", "get_ipython().run_line_magic()"),
        ("%time x = f(y)\n%timeit -n 10 -r3 g()", "0;    x = f(y)\n0;                g()"),
        ("%time for", "pass"),
        ("%%bash\nrm -r a\n  if b", "pass\npass\npass"),
        ("\n%%time\nx = 1\n!ls", "\npass\nx = 1\npass"),
        ("%%capture out\nx = 1", "out = get_ipython().captured()\nx = 1"),
        # These are Python.
        ("a = b  # what?", None),
        ("a %= b", None),
        ("a = (b\n  % c)\nd = '''\n%e\n!f\n'''\ng = h \\\n  % i", None),
        ("a = '\\\n%b'\nc = \"#'\"\nd = [  # (\n !=\n]".replace("!=", "1"), None),
        ("a != b\nf'{c!r}'", None),
    ],
)
def test_what_only_ipython_understands_becomes_python_of_as_many_lines(cell: str, code: str | None) -> None:
    encoded = notebooks.encoded(cell)
    ast.parse(encoded)
    assert notebooks.decoded(encoded) == cell
    assert len(split_lines(encoded)) == len(split_lines(cell))
    assert "\n".join(line.split("  # IPython")[0] for line in encoded.split("\n")) == (code or cell)


@given(
    st.lists(
        st.sampled_from(["%", "!", "?", "a", " ", "=", "(", ")", "'", '"""', "\\", "#", "\n", "%%b", "0;"])
    )
)
def test_every_cell_is_given_back_as_it_was(parts: list[str]) -> None:
    cell = "".join(parts)
    assert notebooks.decoded(notebooks.encoded(cell)) == cell


def test_a_cell_that_says_what_gradfix_writes_for_ipython_is_refused() -> None:
    for cell in ("pass  # IPython: %a", "a\npass  # end of cell 1\nb"):
        with pytest.raises(NotebookError, match="a comment that gradfix itself uses"):
            notebooks.read(json.dumps(content([("code", cell)])))


def test_what_a_run_leaves_out_is_told_by_cell() -> None:
    def told(*cells: str) -> list[tuple[int, str]]:
        made = content([("markdown", ""), *(("code", cell) for cell in cells)])
        return notebooks.inert(notebooks.read(json.dumps(made)).code)

    assert told("%time f()\n%pip install a\nif b:\n    !c \\\n      d", "x?\n?y", "%%time\nz") == [
        (2, "%pip install a"),
        (2, "!c"),
    ]
    assert told("%%html\n<b>", "display(x)") == [(2, "%%html"), (3, "display(x)")]
    assert told("def display(x):\n    pass", "display(x)") == []
    assert told("from IPython.display import display", "display(x)") == []


# ---------------------------------------------------------------------------- back to the file


STYLES: dict[str, dict[str, Any]] = {
    "as Jupyter writes it": {"indent": 1},
    "with escapes": {"indent": 2, "ensure_ascii": True},
    "with tabs": {"indent": "\t"},
    "on one line": {},
    "compact": {"separators": (",", ":"), "sort_keys": True},
}


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_nothing_but_the_source_of_the_changed_cell_differs(style: str, listed: bool, ending: str) -> None:
    text = json.dumps(content(GAN, listed=listed), **{"ensure_ascii": False, **STYLES[style]})
    text = text.replace("\n", ending or "\n") + ending
    found = notebooks.read(text)
    code = found.code.replace("optG.step()", "optG.step()  # ä").replace("bce(netD(fake)", "bce(netD(é)", 1)
    after = found.with_code(code)
    # Of the JSON, only these two lines; they are in one cell.
    changed = json.loads(after)
    lines = "".join(changed["cells"][4]["source"]).split("\n")
    assert lines[3].startswith("    name = 'a\\t\"b\"'; lossD = bce(netD(é)")
    assert lines[9] == "    optG.step()  # ä"
    changed["cells"][4]["source"] = json.loads(text)["cells"][4]["source"]
    assert changed == json.loads(text)
    # Of the text, what is before and after it is the same, byte for byte.
    cell = next(cell for cell in found.cells if cell.number == 5)
    assert after.startswith(text[: cell.start]) and after.endswith(text[cell.end :])
    # So are the lines beside those that differ, as far as they are told one by one.
    if listed:
        old, new = (one[cell.start : len(one) - len(text) + cell.end] for one in (text, after))
        gone = json.dumps("    optG.step()", ensure_ascii=False)
        assert old[: old.index("lossD = ")] == new[: new.index("lossD = ")]
        assert old[old.index("lossD.backward") : old.index(gone)] in new
    if STYLES[style].get("ensure_ascii"):
        assert after.isascii()


def test_lines_are_put_into_cells_of_every_shape() -> None:
    for indent in (1, None):
        for before, after in [
            (["a"], ["b\n", "a"]),
            (["a\n", "b\n"], ["a\n", "c\n", "b\n", "d"]),
            (["a\n"], ["a\n", "b\n"]),
            (["a\nb\n", "c"], ["a\n", "x\n", "c"]),
        ]:
            text = json.dumps(
                content([("code", "")])
                | {
                    "cells": [
                        {
                            "cell_type": "code",
                            "metadata": {},
                            "outputs": [],
                            "execution_count": None,
                            "source": before,
                        }
                    ]
                },
                indent=indent,
            )
            found = notebooks.read(text)
            made = found.with_code(f"{''.join(after)}{notebooks.end_of(1)}")
            assert json.loads(made)["cells"][0]["source"] == after
            # The layout is the one that the file has.
            assert made == json.dumps(json.loads(made), indent=indent)


def test_code_without_the_ends_of_its_cells_is_refused() -> None:
    found = notebooks.read(json.dumps(content(GAN)))
    with pytest.raises(NotebookError, match="the ends of its cells"):
        found.with_code(found.code.replace("pass  # end of cell 3\n", ""))


def test_positions_are_those_of_the_file() -> None:
    text = json.dumps(content(GAN), indent=1)
    found = notebooks.read(text)
    lines, layout = text.split("\n"), CellLayout(found.code)
    for number, line in enumerate(layout.lines, start=1):
        for word in ("lossD = ", "fake", "größer"):
            if word in line:
                row, column = found.position(number, line.index(word) + 1)
                assert lines[row - 1][column - 1 :].startswith(json.dumps(word)[1:-1])
    assert [layout.place(line) for line in (1, 5, 7, 12)] == [
        "cell 2:1",
        "cell 2:5",
        "cell 3:1",
        "cell 3:6",
    ]
    said = layout.reworded("that of line 7 is freed at line 8 (m.py:3), as in cell 3, line 2")
    assert said == "that of cell 3, line 1 is freed in cell 3, line 2 (m.py:3), as in cell 3, line 2"


# ---------------------------------------------------------------------------- what is no notebook of ours


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"cells": [}', "1:12: syntax-error: is no notebook: as JSON, cell 1 is no object"),
        (b'{"cells": [], "metadata": {}}', "is no notebook: it does not say of which nbformat it is"),
        (b"[1, 2]", "is no notebook: as JSON, '{' is expected"),
        (b'{"worksheets": [], "nbformat": 3}', "is of nbformat 3, and only 4 is read; `jupyter nbconvert"),
        (b'{"cells": [], "nbformat": 5}', "is of nbformat 5, and only 4 is read"),
        (
            '{"cells": "ä"}'.encode("latin-1"),
            "syntax-error: is not UTF-8 (byte 0xe4), and a notebook is UTF-8",
        ),
        ('{"cells": "a"}'.encode("utf-16"), "is UTF-16, and a notebook is UTF-8"),
        (b'{"metadata": ' + b"[" * 100_000, "is no notebook: it is nested too deeply"),
        (b'{"nbformat": ' + b"4" * 10_000, "is no notebook: Exceeds the limit"),
        (json.dumps(content([("code", "\ud800")])).encode(), "syntax-error: 'utf-8' codec can't encode"),
        (
            json.dumps(content([("code", "a\0b")])).encode(),
            "syntax-error: source code string cannot contain null",
        ),
    ],
)
def test_each_problem_is_told_in_a_line(data: bytes, said: str) -> None:
    problem = source.parse("a.ipynb", data)
    assert isinstance(problem, Problem)
    assert said in str(problem) and "\n" not in str(problem)


def test_cells_of_other_languages_are_left_out(tmp_path: Path) -> None:
    made = content([("code", "SELECT"), ("code", "x = 1"), ("raw", "y"), ("code", "%%html\n<b>")])
    made["cells"][0]["metadata"] = {"vscode": {"languageId": "sql"}}
    assert [cell.number for cell in notebooks.read(json.dumps(made)).cells] == [2, 4]
    made["metadata"] = {"kernelspec": {"name": "ir", "language": "R"}}
    (tmp_path / "r.ipynb").write_text(json.dumps(made).replace("x = 1", "loss$backward()"))
    (tmp_path / "empty.ipynb").write_text("")
    done = gradfix("check", "r.ipynb", "empty.ipynb", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.decode() == (
        "note: empty.ipynb: is empty\nnote: r.ipynb: is passed over: its language is R, not Python\n"
    )


def test_a_syntax_error_is_told_by_cell_and_line(tmp_path: Path) -> None:
    broken = written(tmp_path / "a.ipynb", [("markdown", ""), ("code", "x = 1"), ("code", "a\nb = = c")])
    problem = source.read(str(broken))
    assert isinstance(problem, Problem)
    assert str(problem).endswith("a.ipynb:cell 3:2:5: syntax-error: invalid syntax")
    assert problem.in_file is not None
    row, column = problem.in_file
    assert broken.read_text().split("\n")[row - 1][column - 1 :] == '= c"'
    # What ends with a cell is missed in that cell.
    left = source.parse("a.ipynb", json.dumps(content([("code", "for a in b:"), ("code", "c")])).encode())
    assert isinstance(left, Problem) and left.cell == 1


def test_only_the_code_counts_for_the_size() -> None:
    made = content([("code", "x = 1\n" * 10)])
    made["cells"][0]["outputs"][0]["data"]["image/png"] = "A" * 5_000_000
    assert isinstance(source.parse("a.ipynb", json.dumps(made).encode()), Source)
    problem = source.parse("a.ipynb", json.dumps(made).encode(), limit=30)
    assert isinstance(problem, Problem) and "is skipped" in problem.message


def test_a_backward_at_the_start_of_a_line_can_matter() -> None:
    assert source.can_matter(rb'"source": "a = 1\nbackward(loss)"')
    assert not source.can_matter(rb'"source": "a = 1\n_backward(loss)"')


# ---------------------------------------------------------------------------- as users see it


@pytest.fixture
def project(tmp_path: Path) -> Path:
    written(tmp_path / "gan.ipynb", GAN)
    written(tmp_path / "rnn.ipynb", CARRIED, listed=False)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    written(tmp_path / ".ipynb_checkpoints" / "gan-checkpoint.ipynb", GAN)
    return tmp_path


def test_notebooks_are_found_in_folders_and_findings_name_their_cells(project: Path) -> None:
    done = gradfix("check", "--output-format", "concise", cwd=project)
    assert done.returncode == 1
    first, second, last = done.stdout.decode().splitlines()
    assert first.startswith("gan.ipynb:cell 5:4:39: undetached-fake [*] error: ")
    assert second.startswith("rnn.ipynb:cell 2:4:5: carried-hidden-state [*] error: ")
    found = "Found 2 findings in 2 files, 2 fixable with `gradfix apply`"
    assert last == f"{found}; followed 2 of 2 training steps"
    assert b"found nothing" in gradfix("check", "--exclude", "*.ipynb", cwd=project).stdout


def test_the_lines_that_are_shown_are_those_of_the_cell(project: Path) -> None:
    shown = gradfix("check", "gan.ipynb", cwd=project).stdout.decode()
    assert "  | # cell 5\n4 |     name = 'a\\t\"b\"'; lossD" in shown
    assert "      # cell 5\n    4 -     name" in shown
    assert "pass  #" not in shown


def test_json_has_the_cell_and_edits_within_it(project: Path) -> None:
    found = json.loads(gradfix("check", "--output-format", "json", cwd=project).stdout)
    schema = json.loads(gradfix("schema", "findings", cwd=project).stdout)
    Draft202012Validator(schema).validate(found)
    fake, carried, coverage = found
    assert (fake["cell"], fake["location"]) == (5, {"row": 4, "column": 39})
    assert [(note["cell"], note["location"]["row"]) for note in fake["notes"]] == [(5, 4), (5, 5), (5, 9)]
    (edit,) = carried["fix"]["edits"]
    assert (edit["cell"], edit["location"]) == (2, {"row": 2, "column": 1})
    assert edit["content"] == "    h = h.detach()\n"
    assert [(step["cell"], step["name"]) for step in coverage["training_steps"]] == [
        (5, "the loop in cell 5, line 1"),
        (2, "the loop in cell 2, line 1"),
    ]


@pytest.mark.parametrize("form", ["github", "gitlab", "sarif"])
def test_code_hosts_get_the_line_of_the_file(project: Path, form: str) -> None:
    printed = gradfix("check", "gan.ipynb", "--output-format", form, cwd=project).stdout.decode()
    lines = (project / "gan.ipynb").read_text().split("\n")
    row = next(number for number, line in enumerate(lines, start=1) if "lossD = bce" in line)
    column = lines[row - 1].index("fake)") + 1
    if form == "github":
        assert (
            f"line={row},endLine={row},col={column},endColumn={column + 4}::cell 5, line 4: `fake`" in printed
        )
        assert "%0Acell 5, line 9: autograd raises here" in printed
    elif form == "gitlab":
        (issue,) = json.loads(printed)
        assert issue["location"]["positions"]["begin"] == {"line": row, "column": column}
        assert issue["description"].startswith("cell 5, line 4: ")
    else:
        (result,) = json.loads(printed)["runs"][0]["results"]
        place = result["locations"][0]["physicalLocation"]
        assert (place["region"]["startLine"], place["region"]["startColumn"]) == (row, column)
        assert place["region"]["snippet"]["text"] == "fake"
        assert result["message"]["text"].startswith("cell 5, line 4: ")
        (change,) = result["fixes"][0]["artifactChanges"]
        (edit,) = change["replacements"]
        at, where = edit["deletedRegion"]["startColumn"], edit["deletedRegion"]["startLine"]
        line = lines[where - 1]
        assert where == row
        assert (
            f"{line[: at - 1]}{edit['insertedContent']['text']}{line[at - 1 :]}".count("fake.detach()") == 1
        )


def test_a_patch_is_one_for_the_file(project: Path) -> None:
    git("init", "-q", cwd=project)
    done = gradfix("check", "--diff", "-o", "fix.patch", cwd=project)
    assert done.returncode == 1 and done.stdout == b""
    before = (project / "rnn.ipynb").read_bytes()
    git("apply", "fix.patch", cwd=project)
    assert (project / "rnn.ipynb").read_bytes() != before
    for name in ("gan.ipynb", "rnn.ipynb"):
        nbformat.validate(nbformat.read(project / name, as_version=4))
    assert gradfix("check", cwd=project).returncode == 0


def test_a_person_is_shown_the_cells_that_change(project: Path) -> None:
    if os.name != "posix":
        pytest.skip("there is no pseudo-terminal")
    command = f"{sys.executable} -m gradfix check --diff"
    done = subprocess.run(
        ["script", "-qc", command, "/dev/null"], cwd=project, capture_output=True, check=False
    )
    shown = done.stdout.decode().replace("\r", "")
    assert (
        "--- a/rnn.ipynb:cell 2" in shown and "\n+    h = h.detach()\n" in shown and "No newline" not in shown
    )


def test_comments_in_cells_suppress(tmp_path: Path) -> None:
    code = CARRIED[1][1].replace(".backward()", ".backward()  # gradfix: ignore[carried-hidden-state]")
    written(
        tmp_path / "a.ipynb",
        [CARRIED[0], ("code", code), ("code", "x = 1  # gradfix: ignore[stale-forward]")],
    )
    done = gradfix("check", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == b"note: a.ipynb: cell 3, line 1: `ignore[stale-forward]` silences nothing\n"
    whole = [
        ("code", "%load_ext autoreload"),
        ("code", f"# gradfix: ignore-file\n{CARRIED[0][1]}"),
        CARRIED[1],
    ]
    written(tmp_path / "a.ipynb", whole)
    assert gradfix("check", cwd=tmp_path).returncode == 0


def test_standard_input_is_a_notebook_by_its_name(project: Path) -> None:
    data = (project / "rnn.ipynb").read_bytes()

    def read(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "gradfix", "check", "-", *arguments]
        return subprocess.run(command, input=data, cwd=project, capture_output=True, check=False)

    assert b"x.ipynb:cell 2:4:5: carried" in read("--stdin-filename", "x.ipynb").stdout
    assert b"+++ b/x.ipynb" in read("--stdin-filename", "x.ipynb", "--diff").stdout
    unnamed = read()
    assert unnamed.returncode == 2
    assert b"give it a name with --stdin-filename" in unnamed.stderr


# ---------------------------------------------------------------------------- runs


def test_run_tells_errors_by_cell_and_line(project: Path) -> None:
    done = gradfix("run", "gan.ipynb", cwd=project)
    told = done.stderr.decode()
    assert done.returncode == 1
    assert told.startswith(
        "note: a notebook is run without IPython: nothing is done for `%load_ext autoreload`"
    )
    assert 'gan.ipynb, cell 5", line 9, in <module>\n    lossG.backward()\n' in told
    assert 'gan.ipynb:cell 5:9:5: "Trying to backward' in told
    assert "`lossD.backward()` in cell 5, line 5 has already freed" in told
    assert "+++ b/gan.ipynb:cell 5" in told
    assert "runtime" not in told
    broken = written(project / "b.ipynb", [("code", "a = (")])
    assert gradfix("run", broken, cwd=project).stderr.decode().startswith(f"error: {broken}:cell 1:1:5: ")


def execute(text: str) -> None:
    """Have a notebook executed by Jupyter's own kernel."""
    made = nbformat.reads(text.replace("!pip", "!true"), as_version=4)
    NotebookClient(cast(Any, made), timeout=120).execute()


def test_proved_as_a_script_is_and_executed_by_jupyter(project: Path) -> None:
    before = (project / "gan.ipynb").read_text()
    done = gradfix("apply", "-v", cwd=project)
    told = done.stdout.decode()
    assert done.returncode == 0, told
    assert "Fixed 2 findings in 2 files (2 proved" in told
    assert 'a second time" in cell 5, line 9 in lossG.backward()' in told
    nothing = "IPython: nothing is done for `%load_ext autoreload` (cell 2), `!pip install` (cell 2)\n"
    assert f"replaced    {nothing}" in told
    assert "line 2" not in told.replace("cell 2, line 2", "").replace("cell 5, line 2", "")
    after = (project / "gan.ipynb").read_text()
    nbformat.validate(nbformat.reads(after, 4))
    execute(after)
    # The certificate proves it again, by itself.
    (certificate,) = (project / "gradfix-evidence").glob("*undetached-fake.json")
    again = gradfix("verify", "--certificate", certificate, cwd=project)
    assert again.returncode == 0, again.stdout.decode()
    assert b"certified as proved; now proved" in again.stdout
    assert gradfix("undo", cwd=project).returncode == 0
    assert (project / "gan.ipynb").read_text() == before


LEARNS = """\
from __future__ import annotations
import asyncio
import torch
from IPython.display import clear_output
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
STEPS = """\
await asyncio.sleep(0)
assert "__file__" not in globals()
for x in torch.randn(3, 4, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    display(loss)
    clear_output(wait=True)
    get_ipython().run_line_magic("matplotlib", "inline")
"""


def test_what_ipython_gives_is_there(tmp_path: Path) -> None:
    cells = [("code", "%%capture out\nx = 1"), ("code", LEARNS), ("code", f"%%time\n{STEPS}\nout.show()")]
    written(tmp_path / "a.ipynb", cells)
    done = gradfix("apply", "-v", cwd=tmp_path)
    told = done.stdout.decode()
    assert "fixed, proved (preserves): drop retain_graph=True" in told, told
    assert "nothing is done for `display(loss)` (cell 3), `get_ipython()" in told
    assert "cell 3:7:5: needless-retain-graph" in told


def test_what_only_ipython_can_do_is_not_run(tmp_path: Path) -> None:
    cells = [("code", "%%bash\nls"), ("code", "files = !ls"), ("code", LEARNS), ("code", STEPS)]
    written(tmp_path / "a.ipynb", cells)
    told = gradfix("apply", cwd=tmp_path).stdout.decode()
    assert "unverified" in told
    assert "`files = !ls` needs IPython, and is not run in cell 2, line 1" in told
    assert "nothing is done for `%%bash` (cell 1)" in told


def test_a_run_is_in_the_folder_of_the_notebook(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "data.txt").write_text("1 2 3")
    reads = f"{LEARNS}numbers = open('data.txt').read().split()\nassert len(numbers) == 3"
    written(inner / "a.ipynb", [("code", reads), ("code", STEPS)])
    (tmp_path / "pyproject.toml").touch()
    assert b"fixed, proved" in gradfix("apply", "inner/a.ipynb", cwd=tmp_path).stdout
    done = gradfix("run", "inner/a.ipynb", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    (tmp_path / "b.py").write_text("import inner")
    refused = gradfix("verify", "--script", "inner/a.ipynb", "b.py", cwd=tmp_path)
    assert (refused.returncode, b"a notebook cannot be the script" in refused.stderr) == (2, True)


def test_a_repair_by_somebody_else_is_judged(project: Path) -> None:
    repaired = (
        (project / "gan.ipynb").read_text().replace("netD(fake), torch.z", "netD(fake.detach()), torch.z")
    )
    (project / "repaired.ipynb").write_text(repaired)
    done = gradfix("verify", "--before", "gan.ipynb", "repaired.ipynb", cwd=project)
    told = done.stdout.decode()
    assert done.returncode == 0, told
    assert 'a second time" in cell 5, line 9 in lossG.backward()' in told
