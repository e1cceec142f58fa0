"""Jupyter notebooks: the code of their cells as one module, and back.

The module has the lines of the code cells in order, and after each cell a statement that does nothing and
says which cell ends there (``pass  # end of cell 3``; cells are counted from 1, those of text included). So
the text tells by itself which line is which of what cell, and codemods, which know statements, let ends be.
What IPython alone understands is written as Python of as many lines that keeps it in a comment:

* a magic or shell line as ``pass  # IPython: !pip install torch``; nothing of it is run;
* one that gives a variable its value, or changes what comes after it, as a call of ``get_ipython()``, of
  which nothing is known: ``files = get_ipython().getoutput()  # IPython: files = !ls``;
* a line or cell that is timed as the code itself (``%time train()``, below ``%%time``);
* every line of a cell in another language (``%%bash``) as ``pass``.

Back, only the text of the changed cells' ``source`` is replaced in the file; all else stays as it is, byte
for byte. The format is that of nbformat 4. Only the standard library is used.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from gradfix.project.source import Layout, Problem, split_lines

FORMAT = 4
"""The version of nbformat whose notebooks are read."""


class NotebookError(ValueError):
    """Why a file is no notebook that is read, as a sentence about the file without its subject."""

    def __init__(self, message: str, line: int = 0, column: int = 1, *, malformed: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        """In the file, or 0."""
        self.column = column
        self.malformed = malformed
        """Whether it is broken, rather than of a kind that is not read."""


class Cell(NamedTuple):
    """A cell of Python code."""

    number: int
    """Among all cells of the notebook, from 1."""
    source: str
    start: int
    """Where the value of ``source`` begins in the text of the file."""
    end: int
    literals: tuple[tuple[int, int], ...]
    """Where the strings are that it consists of: one for each line, or one for all."""
    is_list: bool


@dataclass(frozen=True)
class Notebook:
    """A notebook as its file has it, and its code."""

    text: str
    """The text of the file, which is JSON."""
    cells: tuple[Cell, ...]
    code: str
    """The code cells as one module."""
    remark: str = ""
    """Why there is nothing to analyse, where that is no failure."""

    def with_code(self, code: str) -> str:
        """The text of the file with other code in its cells.

        Raises:
            NotebookError: It is not known which code belongs to which cell.
        """
        new = split(code)
        if [number for number, _ in new] != [cell.number for cell in self.cells]:
            raise NotebookError("cannot be rewritten: the ends of its cells have been moved")
        parts, at = [], 0
        for cell, (_, source) in zip(self.cells, new):
            if source != cell.source:
                parts += [self.text[at : cell.start], self._written(cell, source)]
                at = cell.end
        return "".join([*parts, self.text[at:]])

    def position(self, line: int, column: int) -> tuple[int, int]:
        """The line and the column of the file at which a position in the code stands; all count from 1."""
        offset = self._offset(line, column)
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def _offset(self, line: int, column: int) -> int:
        number = self._layout.cell(line)
        cell = next((cell for cell in self.cells if cell.number == number), None)
        if cell is None:
            return 0
        left = sum(map(len, _lines(cell.source)[: self._layout.row(line) - 1]))
        left += min(column - 1, len(self._layout.lines[line - 1]))
        for begin, end in cell.literals:
            characters = _CHARACTER.findall(self.text, begin + 1, end - 1)
            if left < len(characters) or (begin, end) == cell.literals[-1]:
                return begin + 1 + sum(map(len, characters[:left]))
            left -= len(characters)
        return cell.start

    @cached_property
    def _layout(self) -> CellLayout:
        return CellLayout(self.code)

    def placed(self, problem: Problem) -> Problem:
        """A problem with a line of the code, at its place in its cell."""
        layout, line = self._layout, problem.line
        # What is missing at the end of a cell is missed where the next one begins.
        while line > 1 and (layout.cell(line) is None or line in layout.ends):
            line -= 1
        moved = problem if line == problem.line else problem._replace(column=len(layout.lines[line - 1]) + 1)
        return moved._replace(
            message=layout.reworded(problem.message),
            line=layout.row(line),
            cell=layout.cell(line),
            in_file=self.position(line, moved.column),
        )

    def _written(self, cell: Cell, source: str) -> str:
        """The value of a cell's ``source``, written as it was; lines that it has already keep their text."""
        if not cell.is_list:
            return self._dumped(source)
        old = [self.text[start:end] for start, end in cell.literals]
        values = [json.loads(literal) for literal in old]
        lines = _lines(source)
        literals: list[str] = []
        for tag, start, end, first, last in SequenceMatcher(None, values, lines, False).get_opcodes():
            literals += old[start:end] if tag == "equal" else map(self._dumped, lines[first:last])
        if not old:
            return f"[{', '.join(literals)}]"
        opening = self.text[cell.start : cell.literals[0][0]]
        closing = self.text[cell.literals[-1][1] : cell.end]
        between = f",{opening[1:]}" if opening[1:] else ", "
        if len(old) > 1:
            between = self.text[cell.literals[0][1] : cell.literals[1][0]]
        return f"{opening}{between.join(literals)}{closing}"

    def _dumped(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._escapes)

    @cached_property
    def _escapes(self) -> bool:
        """Whether the file has what is not ASCII written as escapes."""
        return self.text.isascii() and _ESCAPED.search(self.text) is not None


_CHARACTER = re.compile(r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u\w{4}|\\.|.", re.DOTALL)
"""A character as it is written in a string of JSON."""
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])")


def _lines(text: str) -> list[str]:
    """The lines with their ends, as notebooks have them one by one."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


# ---------------------------------------------------------------------------- reading


@lru_cache(maxsize=8)
def read(text: str) -> Notebook:
    """The notebook in the text of a file.

    Raises:
        NotebookError: It is none, or none that is read.
    """
    if not text.strip():
        return Notebook(text, (), "", "is empty")
    try:
        content = _Content(text)
    except json.JSONDecodeError as error:
        raise NotebookError(
            f"is no notebook: as JSON, {error.msg}", error.lineno, error.colno, malformed=True
        ) from None
    except (ValueError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise NotebookError(f"is no notebook: {what}", malformed=True) from None
    if not isinstance(content.format, int):
        raise NotebookError("is no notebook: it does not say of which nbformat it is", malformed=True)
    if content.format != FORMAT:
        hint = "; `jupyter nbconvert --to notebook --inplace` makes it one of version 4"
        hint = hint if content.format < FORMAT else ""
        raise NotebookError(f"is of nbformat {content.format}, and only {FORMAT} is read{hint}")
    language = content.language
    if language and not language.lower().startswith(("python", "ipython")):
        return Notebook(text, (), "", f"is passed over: its language is {language}, not Python")
    code = "".join(f"{encoded(cell.source)}{end_of(cell.number)}" for cell in content.cells)
    found = Notebook(text, tuple(content.cells), code)
    if split(code) != [(cell.number, cell.source) for cell in content.cells]:
        raise NotebookError("cannot be analysed: a cell has a comment that gradfix itself uses for notebooks")
    return found


class _Content:
    """What is needed of a notebook's JSON, with the places of the sources."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.format: object = None
        self.metadata: object = None
        self.cells: list[Cell] = []
        self._decode = json.JSONDecoder().raw_decode
        end = self._object(self._skipped(0), self._member)
        if (rest := self._skipped(end)) != len(text):
            raise json.JSONDecodeError("there is more after its end", text, rest)

    @property
    def language(self) -> str:
        """The language of the kernel, or nothing if that is not told."""
        for part, key in (("language_info", "name"), ("kernelspec", "language")):
            told = self.metadata.get(part) if isinstance(self.metadata, dict) else None
            name = told.get(key) if isinstance(told, dict) else None
            if name and isinstance(name, str):
                return name
        return ""

    def _member(self, name: str, at: int) -> int:
        if name == "cells" and self.text[at : at + 1] == "[":
            self.cells.clear()
            return self._array(at, self._cell)
        value, end = self._decode(self.text, at)
        if name == "nbformat":
            self.format = value
        elif name == "metadata":
            self.metadata = value
        return end

    def _cell(self, number: int, at: int) -> int:
        if self.text[at : at + 1] != "{":
            raise json.JSONDecodeError(f"cell {number} is no object", self.text, at)
        found: dict[str, Any] = {}
        literals: list[tuple[int, int]] = []

        def member(name: str, at: int) -> int:
            if name != "source":
                found[name], end = self._decode(self.text, at)
                return end
            literals.clear()
            found["start"] = at
            is_list = found["is_list"] = self.text[at : at + 1] == "["

            def literal(_: int, at: int) -> int:
                value, end = self._decode(self.text, at)
                if not isinstance(value, str):
                    raise json.JSONDecodeError(f"the source of cell {number} is no text", self.text, at)
                literals.append((at, end))
                return end

            found["end"] = self._array(at, literal) if is_list else literal(0, at)
            return int(found["end"])

        end = self._object(at, member)
        if found.get("cell_type") == "code" and "start" in found and _is_python(found.get("metadata")):
            source = "".join(json.loads(self.text[start:end]) for start, end in literals)
            place = found["start"], found["end"], tuple(literals), found["is_list"]
            self.cells.append(Cell(number, source, *place))
        return end

    def _object(self, at: int, visit: Callable[[str, int], int]) -> int:
        """Where the object ends that begins at ``at``; ``visit`` tells where the value of a member ends."""
        at = self._after("{", at)
        if self.text[at : at + 1] == "}":
            return at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise json.JSONDecodeError("a name in double quotes is expected", self.text, at)
            name, at = self._decode(self.text, at)
            at = self._skipped(visit(name, self._after(":", self._skipped(at))))
            if self.text[at : at + 1] == "}":
                return at + 1
            at = self._after(",", at)

    def _array(self, at: int, visit: Callable[[int, int], int]) -> int:
        """Where the array ends that begins at ``at``; ``visit`` gets the number of an element, from 1."""
        at, number = self._after("[", at), 0
        if self.text[at : at + 1] == "]":
            return at + 1
        while True:
            number += 1
            at = self._skipped(visit(number, at))
            if self.text[at : at + 1] == "]":
                return at + 1
            at = self._after(",", at)

    def _after(self, sign: str, at: int) -> int:
        if self.text[at : at + 1] != sign:
            raise json.JSONDecodeError(f"{sign!r} is expected", self.text, at)
        return self._skipped(at + 1)

    def _skipped(self, at: int) -> int:
        found = _NO_BLANK.search(self.text, at)
        return found.start() if found else len(self.text)


_NO_BLANK = re.compile(r"[^ \t\n\r]")


def _is_python(metadata: object) -> bool:
    """Whether an editor that has cells of several languages in one notebook takes a cell for Python."""
    own = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = own.get("languageId") if isinstance(own, dict) else None
    return language in (None, "python")


# ---------------------------------------------------------------------------- the module


_END = re.compile(r"\npass  # end of cell (\d+)\n")
_LINE = "# IPython: "
"""Before a line of IPython's, without its indentation."""
_RAW = "# IPython| "
"""Before a line that is not the first of what IPython understands, as it is."""
_TIMED = "# IPython= "
"""Before the beginning of a line whose rest is Python."""
_ENCODED = re.compile(rf"({re.escape(_LINE)}|{re.escape(_RAW)}|{re.escape(_TIMED)})")


def end_of(number: int) -> str:
    """What stands between the code of a cell and the next one."""
    return f"\npass  # end of cell {number}\n"


def split(code: str) -> list[tuple[int, str]]:
    """The number and the source of each cell in a module."""
    parts = _END.split(code)
    return [(int(number), decoded(source)) for source, number in zip(parts[::2], parts[1::2])]


class CellLayout(Layout):
    """Which line of which cell the lines of a module are."""

    def __init__(self, code: str) -> None:
        cells = split(code)
        self.parts = [*cells]
        counts = [len(split_lines(source)) + 1 for _, source in cells]
        self._starts = [0, *accumulate(counts)]
        self.ends = frozenset(self._starts)
        """The lines that stand for the end of a cell."""
        self.lines = tuple(line for _, source in cells for line in (*split_lines(source), ""))

    def cell(self, line: int) -> int | None:
        index = self._index(line)
        return None if index is None else self.parts[index][0]

    def row(self, line: int) -> int:
        index = self._index(line)
        return line if index is None else line - self._starts[index]

    def reworded(self, message: str) -> str:
        # What names a cell as well is left as it is.
        return _NAMED_LINE.sub(self._named, message)

    def _named(self, found: re.Match[str]) -> str:
        line = int(found[3])
        if found[1] or self.cell(line) is None:
            return found[0]
        return f"{'in ' if found[2] else ''}{self.words(line)}"

    def _index(self, line: int) -> int | None:
        index = bisect_right(self._starts, line - 1) - 1
        return index if 0 <= index < len(self.parts) else None


_NAMED_LINE = re.compile(r"(\bcell \d+, )?(\b(?:at|on) )?\bline (\d{1,9})\b")


def inert(code: str) -> list[tuple[int, str]]:
    """What a run leaves out, by cell: magics, shell lines, first lines of cells in other languages."""
    layout, found = CellLayout(code), []
    called = [name for name in ("display", "get_ipython") if not re.search(_BOUND.format(name), code)]
    calls = re.compile(rf"\b(?:{'|'.join(called)})\(") if called else None
    for number, (line, shown) in enumerate(zip(split_lines(code), layout.lines), start=1):
        left_out = line.partition(f"pass  {_LINE}")[2].rstrip("\\ \t")
        if left_out and not (
            _HELP.fullmatch(left_out) or left_out[0] == "?" or _WHOLE_CELL.fullmatch(left_out)
        ):
            found.append((layout.cell(number) or 0, left_out))
        elif calls is not None and calls.search(shown):
            found.append((layout.cell(number) or 0, shown.strip()))
    return found


def left_out(code: str) -> str:
    """The same in words; empty if there is nothing of the kind."""
    found = [f"`{line}` (cell {cell})" for cell, line in inert(code)]
    return f"nothing is done for {', '.join(found)}" if found else ""


_BOUND = r"(?m)^[ \t]*(?:(?:def|class)[ \t]+{0}\b|(?:from\b.*)?import\b.*(?<![.\w]){0}\b|{0}[ \t]*=)"
"""Where a program has a name of its own for something else."""


def decoded(source: str) -> str:
    """The source of a cell as the notebook has it."""
    return "".join(map(_decoded, _lines(source))) if _ENCODED.search(source) else source


def _decoded(line: str) -> str:
    parts = _ENCODED.split(line, maxsplit=1)
    if len(parts) < 3:
        return line
    before, mark, rest = parts
    indent = before[: len(before) - len(before.lstrip())]
    if mark == _RAW:
        return rest
    if mark == _LINE:
        return f"{indent}{rest}"
    ending = rest[len(rest.rstrip("\r\n")) :]
    if not before.lstrip().startswith("0;"):
        raise NotebookError("cannot be rewritten: a line that is timed would have to be taken apart")
    timed = before.lstrip().removeprefix("0;").lstrip().removesuffix("  ")
    return f"{indent}{rest.removesuffix(ending)}{timed}{ending}"


_CANDIDATE = re.compile(r"^\s*[%!?/,;]|=\s*[%!]|\?[ \t\r]*$", re.MULTILINE)
_MAGIC = re.compile(r"\s*[%!?/,;]")
_HELP = re.compile(r"\s*%{0,2}[^\W\d][\w.*]*(?:\[[\w'\"]+\][\w.]*)*\?{1,2}\s*")
_ASSIGNMENT = re.compile(r"(?P<indent>\s*)(?P<target>[^\W\d][\w.,*\[\]'\" ()]*?)\s*=\s*[!%](?!=)")
_CELL_MAGIC = re.compile(r"\s*%%(?P<name>[\w!]+)")
_WHOLE_CELL = re.compile(r"%%(?:time|timeit|prun|capture|memit|snakeviz|pyinstrument|scalene|heat)\b.*")
"""First lines of cells whose other lines are Python for all that."""
_CAPTURE = re.compile(r"%%capture\s+(?:--no-\w+\s+)*(?P<target>[^\W\d]\w*)")
_TIMES = re.compile(
    r"(?P<indent>[ \t]*)"
    r"(?P<magic>%(?:time[ \t]+|(?:timeit|prun|memit|snakeviz)[ \t]+(?:-[a-zA-Z]\d*[ \t]+(?:\d+[ \t]+)?)*))"
)
_MATTERS = re.compile(r"%(?:run|pylab|reset|reset_selective|xdel|store\s+-r|rerun|recall|macro)\b")
"""Magics that change what the code after them finds."""


def encoded(source: str) -> str:
    """The source of a cell as Python of as many lines."""
    if not _CANDIDATE.search(source):
        return source
    lines = _lines(source)
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is not None and _CELL_MAGIC.match(lines[first]):
        head, body = lines[first], lines[first + 1 :]
        if not _WHOLE_CELL.fullmatch(head.strip()):
            return "".join([*lines[:first], _as_line(head), *map(_as_raw, body)])
        captured = _CAPTURE.match(head.strip())
        shown = _as_line(head, f"{captured['target']} = get_ipython().captured()" if captured else "pass")
        return "".join([*lines[:first], shown, encoded("".join(body))])
    return "".join(_encoded(lines))


def _encoded(lines: list[str]) -> Iterator[str]:
    """The lines of a cell, those of IPython written as Python."""
    scanner, at = _Scanner(), 0
    while at < len(lines):
        line = lines[at]
        assigned = _ASSIGNMENT.match(line) if scanner.at_start else None
        own = scanner.at_start and (assigned or _MAGIC.match(line) or _HELP.fullmatch(line))
        at += 1
        if not own:
            scanner.feed(line)
            yield line
            continue
        indent = line[: len(line) - len(line.lstrip())]
        if (timed := _timed(line)) is not None:
            yield timed
            continue
        if assigned:
            yield _as_line(line, f"{assigned['target']} = get_ipython().getoutput()")
        elif _MATTERS.match(line.strip()) or line.lstrip()[0] in "/,;":
            yield _as_line(line, "get_ipython().run_line_magic()")
        else:
            yield _as_line(line)
        # What goes on behind a backslash is a part of it.
        while line.rstrip("\r\n").endswith("\\") and at < len(lines):
            line = lines[at]
            at += 1
            yield _as_raw(line, indent)


def _as_line(line: str, code: str = "pass") -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}{code}  {_LINE}{line[len(indent) :]}"


def _as_raw(line: str, indent: str = "") -> str:
    return f"{indent}pass  {_RAW}{line}"


def _timed(line: str) -> str | None:
    """A line that times one statement as that statement, in its own columns."""
    found = _TIMES.match(line)
    if found is None:
        return None
    ending = line[len(line.rstrip("\r\n")) :]
    rest = line[found.end() :].removesuffix(ending)
    code = f"{found['indent']}{'0;':<{len(found['magic'])}}{rest}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return f"{code}  {_TIMED}{found['magic']}{ending}" if rest.strip() else None


class _Scanner:
    """Follows Python line by line, to tell where statements begin: not in a bracket, nor in a string."""

    _TOKEN = re.compile(r"'''|\"\"\"|'|\"|#.*|[(\[{]|[)\]}]|\\.?", re.DOTALL)

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._continued = False

    @property
    def at_start(self) -> bool:
        return not (self._depth or self._quote or self._continued)

    def feed(self, line: str) -> None:
        text, at = line.rstrip("\r\n"), 0
        self._continued = False
        while at < len(text):
            if self._quote:
                at = self._through_string(text, at)
                continue
            token = self._TOKEN.search(text, at)
            if token is None:
                break
            at, sign = token.end(), token[0]
            if sign[0] in "'\"":
                self._quote = sign
            elif sign[0] in "([{":
                self._depth += 1
            elif sign[0] in ")]}":
                self._depth = max(self._depth - 1, 0)
            elif sign == "\\":
                self._continued = True
        if len(self._quote) == 1 and not text.endswith("\\"):
            self._quote = ""

    def _through_string(self, text: str, at: int) -> int:
        """Where the text of a string ends, which may be with the line."""
        for found in re.finditer(rf"\\.|{self._quote}", text[at:]):
            if found[0] == self._quote:
                self._quote = ""
                return at + found.end()
        return len(text)
