"""One source file: bytes, encoding, text, tree, and suppression comments.

The text of a notebook is that of its code cells as one module (:mod:`gradfix.project.notebooks`).

Whatever is wrong with a file comes back as a :class:`Problem` that names it; nothing here raises
for a bad file, so that one bad file never stops the others.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from gradfix.core.span import Span
from gradfix.system import files

if TYPE_CHECKING:
    from gradfix.project.notebooks import Notebook

MAX_BYTES = 4 * 1024 * 1024
"""Larger files are not analysed unless the configuration says so: they are generated, not written."""

ProblemCode = Literal["syntax-error", "io-error", "internal-error"]


class Problem(NamedTuple):
    """Something that kept gradfix from its work on one file; every one leads to exit code 2."""

    path: str
    message: str
    code: ProblemCode = "io-error"
    line: int = 0
    """The line it is about, or 0 for the file as a whole."""
    column: int = 1
    """In characters, counted from 1."""
    cell: int | None = None
    """The cell of a notebook within which lines are counted."""
    in_file: tuple[int, int] | None = None
    """The line and the column in the file of the notebook."""

    def __str__(self) -> str:
        cell = "" if self.cell is None else f"cell {self.cell}:"
        place = f"{self.path}:{cell}{self.line}:{self.column}" if self.line else self.path
        return f"{place}: {self.code}: {self.message}"


class Suppressions(NamedTuple):
    """What the ``# gradfix:`` comments of a file silence."""

    whole_file: bool = False
    by_line: tuple[tuple[int, frozenset[str] | None], ...] = ()
    """``(line, names)``; ``None`` in the place of names silences every codemod on that line."""
    without_effect: tuple[tuple[int, str], ...] = ()
    """``(line, why)`` of the comments that silence nothing whatever is found."""

    def cover(self, name: str, lines: frozenset[int]) -> bool:
        """Whether a finding of the codemod ``name`` that concerns any of ``lines`` is silenced."""
        return self.whole_file or any(
            line in lines and (names is None or name in names) for line, names in self.by_line
        )


class Layout:
    """How people count the lines of a source: from its top, or, in a notebook, from the top of each cell."""

    def __init__(self, text: str) -> None:
        self.lines = split_lines(text)
        """As the file has them."""
        self.parts: list[tuple[int | None, str]] = [(None, text)]
        """The text, or the number and the text of each cell."""

    def cell(self, line: int) -> int | None:
        """The cell that a line is in, where there are any."""
        return None

    def row(self, line: int) -> int:
        """The number of a line, in its cell if there is one."""
        return line

    def place(self, line: int) -> str:
        """The line as it stands behind a path: ``12``, or ``cell 3:2``."""
        cell = self.cell(line)
        return str(line) if cell is None else f"cell {cell}:{self.row(line)}"

    def words(self, line: int) -> str:
        """The line in a sentence: ``line 12``, or ``cell 3, line 2``."""
        cell = self.cell(line)
        return f"line {line}" if cell is None else f"cell {cell}, line {self.row(line)}"

    def reworded(self, message: str) -> str:
        """A message that names lines by their number from the top, as :meth:`words` has them."""
        return message


@lru_cache(maxsize=16)
def layout(path: str, text: str) -> Layout:
    """The layout of the ``text`` of the file at ``path``."""
    if not is_notebook(path):
        return Layout(text)
    from gradfix.project.notebooks import CellLayout

    return CellLayout(text)


def is_notebook(path: str) -> bool:
    """Whether a file is a Jupyter notebook, by its name."""
    return path.endswith(".ipynb")


@dataclass(frozen=True)
class Source:
    """A file that was read, decoded and parsed."""

    path: str
    """As it is shown to people."""
    data: bytes
    encoding: str
    """As :func:`tokenize.detect_encoding` names it: ``utf-8-sig`` where there is a byte order mark."""
    text: str
    """Decoded, without the byte order mark, its newlines as they are in the file."""
    tree: ast.Module
    notebook: Notebook | None = None
    """The file of which ``text`` is the code, if it is a notebook."""

    @property
    def file_text(self) -> str:
        """What the file itself holds, which of a notebook is not its code alone."""
        return self.text if self.notebook is None else self.notebook.text

    @property
    def layout(self) -> Layout:
        """How people count its lines."""
        return layout(self.path, self.text)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines without their ends, counted as Python counts them."""
        return split_lines(self.text)

    @cached_property
    def suppressions(self) -> Suppressions:
        """What the comments silence; looked for only where the bytes hold the word."""
        if b"gradfix:" not in self.data:
            return Suppressions()
        return _suppressions(self.lines, _first_code_line(self.tree))

    def suppressed(self, name: str, span: Span) -> bool:
        """Whether a comment silences a finding of the codemod ``name`` at ``span``.

        The comment may stand on the reported line, on the first line of the statement, or, where
        a formatter has put it behind the closing bracket, on the last line of a simple statement.
        """
        if not (self.suppressions.whole_file or self.suppressions.by_line):
            return False
        return self.suppressions.cover(name, self.lines_that_speak_for(span))

    def lines_that_speak_for(self, span: Span) -> frozenset[int]:
        """The lines on which a comment about a finding at ``span`` may stand."""
        return _lines_of_statement(self.tree, span.line) | {span.line}

    @cached_property
    def lossless(self) -> bool:
        """Whether the text gives the file's bytes back: some encodings have several for one text."""
        return self.encode(self.text) == self.data

    @property
    def lossy(self) -> Problem:
        """That a file which is not lossless cannot be written."""
        return Problem(self.path, f"cannot be rewritten: {self.encoding} does not give its bytes back")

    def encode(self, text: str) -> bytes | Problem:
        """``text`` in this file's encoding, with its byte order mark if it has one; of a notebook, the file
        with that code in its cells."""
        if self.notebook is not None:
            try:
                text = self.notebook.with_code(text)
            except ValueError as error:
                return Problem(self.path, str(error))
        try:
            return text.encode(self.encoding)
        except UnicodeError as error:
            return Problem(self.path, f"the rewritten text does not fit its encoding: {error}")

    def with_text(self, text: str) -> Source | Problem:
        """This file as it would be with other text: encoded, read back and parsed."""
        data = self.encode(text)
        return data if isinstance(data, Problem) else parse(self.path, data, limit=len(data))


# `backward` called, anything by which `torch.autograd.grad` is reached, or a step. Each pattern begins with
# a literal: Python's regex engine then searches as fast as `bytes.find`, ten times faster than an
# alternation of the two.
_BACKWARD = re.compile(
    rb"backward(?:(?<!def backward)(?<![A-Za-z0-9_]backward)|(?<=manual_backward)"
    # In the JSON of a notebook, a line may begin behind these two characters.
    rb"|(?<=\\nbackward))\s*\("
)
_AUTOGRAD = re.compile(rb"autograd(?:\s*\.\s*grad\b|\s+as\b)")
_FROM_AUTOGRAD = re.compile(rb"autograd\s+import\b(?:\s*\([^)]*|[^\n(]*)")
_GRAD = re.compile(rb"\bgrad\b")
_STEP = re.compile(rb"\.step\s*\(")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def can_matter(data: bytes) -> bool:
    """Whether a file with these bytes can hold a gradient mistake at all.

    It differentiates, it clears gradients and steps without ever doing so, or it may define a loss that a
    framework differentiates. UTF-16 hides its words from a
    search of bytes; such a file goes on, to be named as unreadable.
    """
    return (
        bool(_BACKWARD.search(data) or _AUTOGRAD.search(data))
        or any(_GRAD.search(names[0]) for names in _FROM_AUTOGRAD.finditer(data))
        or (b"zero_grad" in data and bool(_STEP.search(data)))
        or b"def training_step" in data
        or b"def compute_loss" in data
        or data[:2] in _UTF_16
    )


def read(path: str, limit: int = MAX_BYTES) -> Source | Problem:
    """The file at ``path``, read and parsed."""
    data = load(path, limit)
    return data if isinstance(data, Problem) else parse(path, data, limit)


def load(path: str, limit: int = MAX_BYTES) -> bytes | Problem:
    """The bytes of the regular file at ``path``, though it has more than the ``limit`` for parsing.

    Whether a large file matters can be seen in its bytes only; so there is a limit of its own.
    """
    try:
        return files.read(path, max(limit, files.LARGEST))
    except OSError as error:
        return Problem(path, files.describe_error(error))


def too_large(path: str, data: bytes, limit: int) -> Problem | None:
    """The problem of a file that has more bytes than are analysed; of a notebook, only its code counts."""
    if len(data) <= limit or is_notebook(path):
        return None
    size, most = (f"{count / 2**20:.1f} MiB" for count in (len(data), limit))
    return Problem(path, f"is skipped: {size} is more than max-file-size allows ({most})")


def parse(path: str, data: bytes, limit: int = MAX_BYTES) -> Source | Problem:
    """The file with the bytes ``data``, decoded and parsed as Python would do it."""
    if (problem := too_large(path, data, limit)) is not None:
        return problem
    if is_notebook(path):
        return _parse_notebook(path, data, limit)
    decoded = _decode(path, data)
    if isinstance(decoded, Problem):
        return decoded
    text, encoding = decoded
    tree = _parse(path, text)
    return tree if isinstance(tree, Problem) else Source(path, data, encoding, text, tree)


def parse_code(path: str, text: str) -> Source | Problem:
    """The source whose text this is: of a notebook, the code of its cells, of which no file is known."""
    tree = _parse(path, text)
    return tree if isinstance(tree, Problem) else Source(path, text.encode(), "utf-8", text, tree)


def code(path: str, most: int = files.LARGEST) -> bytes:
    """The Python code in the file at ``path``: its bytes, or the code of a notebook's cells.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no notebook.
    """
    data = files.read(path, most)
    if not is_notebook(path):
        return data
    from gradfix.project import notebooks

    return notebooks.read(data.decode("utf-8-sig")).code.encode()


def _parse_notebook(path: str, data: bytes, limit: int) -> Source | Problem:
    from gradfix.project import notebooks

    encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"
    try:
        notebook = notebooks.read(data.decode(encoding))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = "UTF-16" if data[:2] in _UTF_16 else f"not UTF-8 (byte 0x{data[error.start]:02x})"
        return Problem(path, f"is {what}, and a notebook is UTF-8", "syntax-error", line)
    except notebooks.NotebookError as error:
        code: ProblemCode = "syntax-error" if error.malformed else "io-error"
        return Problem(path, str(error), code, error.line, error.column)
    text = notebook.code
    if (problem := too_large("", text.encode("utf-8", "surrogatepass"), limit)) is not None:
        return problem._replace(path=path)
    tree = _parse(path, text)
    if isinstance(tree, Problem):
        return notebook.placed(tree)
    return Source(path, data, encoding, text, tree, notebook)


def encoded(path: str, text: str) -> bytes | Problem:
    """A text that is not in its file yet, as the bytes that hold it: in the encoding that it declares."""
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(text.encode()).readline)[0]
        return text.encode(encoding)
    except (SyntaxError, UnicodeError) as error:
        return Problem(path, str(error), "syntax-error", 1)


def split_lines(text: str) -> tuple[str, ...]:
    """The lines of ``text`` without their ends, as Python's own tokenizer counts them.

    ``str.splitlines`` also splits at form feeds and Unicode separators, and would miscount.
    """
    return tuple(re.split(r"\r\n|\r|\n", text))


def character_column(line: str, byte_column: int) -> int:
    """The 1-based column in characters of a 0-based column in UTF-8 bytes (:mod:`ast` counts bytes)."""
    if line.isascii():
        return byte_column + 1
    return len(line.encode()[:byte_column].decode(errors="ignore")) + 1


def _decode(path: str, data: bytes) -> tuple[str, str] | Problem:
    """The text of ``data`` and the name of its encoding."""
    if data[:2] in _UTF_16:
        return Problem(path, "is UTF-16, which Python does not read: save it as UTF-8", "syntax-error")
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError as error:
        if not str(error).startswith("invalid or missing encoding"):
            return Problem(path, str(error), "syntax-error")
        encoding = "utf-8"  # Nothing is declared, and the first lines are not UTF-8: decoding says where.
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError as error:
        return _undecodable(path, data, error.encoding, error.start)
    except (LookupError, UnicodeError) as error:
        return Problem(path, str(error), "syntax-error")


def _undecodable(path: str, data: bytes, encoding: str, at: int) -> Problem:
    line = data.count(b"\n", 0, at) + 1
    shown = encoding.upper() if encoding.startswith("utf") else encoding
    hint = "" if b"coding" in data[:200] else " and declares no other encoding"
    return Problem(path, f"is not {shown} (byte 0x{data[at]:02x}){hint}", "syntax-error", line)


def _parse(path: str, text: str) -> ast.Module | Problem:
    try:
        with warnings.catch_warnings():
            # Invalid escapes in somebody's strings are not for us to warn of, nor to fail on
            # where warnings are errors.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        message = error.msg or "invalid syntax"
        if _looks_like_python_2(message, (error.text or "")):
            message = f"looks like Python 2 ({message})"
        elif _looks_like_python_3_6(text):
            message = "looks like Python 3.6 or older (`async` and `await` cannot be names any more)"
        return Problem(path, message, "syntax-error", error.lineno or 1, max(error.offset or 1, 1))
    except ValueError as error:
        return Problem(path, str(error), "syntax-error")
    except (RecursionError, MemoryError):
        return Problem(path, "is nested too deeply to be parsed", "syntax-error")


_PYTHON_2_MESSAGES = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
    "inconsistent use of tabs",
)
_PYTHON_2_LINE = re.compile(r"""<>|`|\b\d+L\b|\bur['"]|^\s*raise\s+\w+\s*,|^\s*print\s+[^\s(=.,]""")


def _looks_like_python_2(message: str, line: str) -> bool:
    return message.startswith(_PYTHON_2_MESSAGES) or bool(_PYTHON_2_LINE.search(line))


def _looks_like_python_3_6(text: str) -> bool:
    """Whether a text is Python from before ``async`` was a keyword: ``tensor.cuda(async=True)``.

    It is if it can be parsed with another name in its place. (From Python 3.13 on, ``feature_version`` does
    not go back that far.)
    """
    try:
        ast.parse(re.sub(r"\b(async|await)\b", r"\1_", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


SUPPRESSION = re.compile(r"gradfix:\s*(ignore-file|ignore)(?![\w-])(?:\s*\[([^\]]*)\])?")
"""Its groups are what is silenced, a line or the file, and the names in brackets, if there are any."""
_NEARLY = re.compile(r"#\s*gradfix:\s*(\S+)")


def _suppressions(lines: tuple[str, ...], first_code_line: int) -> Suppressions:
    by_line: list[tuple[int, frozenset[str] | None]] = []
    without_effect: list[tuple[int, str]] = []
    for token in _comments(lines):
        match = SUPPRESSION.search(token.string)
        if match is None:
            if nearly := _NEARLY.match(token.string):
                why = f"`gradfix: {nearly[1]}` is no suppression"
                known = "write `ignore`, `ignore[NAME]` or `ignore-file`"
                without_effect.append((token.start[0], f"{why}: {known}"))
            continue
        if match[1] == "ignore-file":
            # Only above the code: further down it reads like a remark about its own line.
            if token.start[0] < first_code_line:
                return Suppressions(whole_file=True)
            without_effect.append((token.start[0], "`ignore-file` silences the file only above its code"))
            continue
        names = None if match[2] is None else frozenset(re.split(r"[\s,]+", match[2].strip()))
        by_line.append((token.start[0], names))
    return Suppressions(by_line=tuple(by_line), without_effect=tuple(without_effect))


def _comments(lines: tuple[str, ...]) -> list[tokenize.TokenInfo]:
    """The comments of a file; a string that looks like one is none."""
    found: list[tokenize.TokenInfo] = []
    readline = iter([f"{line}\n" for line in lines]).__next__
    try:
        for token in tokenize.generate_tokens(readline):
            if token.type == tokenize.COMMENT:
                found.append(token)
    except (tokenize.TokenError, SyntaxError):
        pass  # `ast` has accepted the file, so the comments up to here are comments.
    return found


def _first_code_line(tree: ast.Module) -> int:
    """The first line of the first statement that is not the docstring."""
    code = tree.body[1:] if ast.get_docstring(tree, clean=False) is not None else tree.body
    # A cell that only has magics in it is no code, either.
    code = [node for node in code if not isinstance(node, ast.Pass)]
    return code[0].lineno if code else 2**31


def _lines_of_statement(tree: ast.Module, line: int) -> frozenset[int]:
    """The lines of the innermost statement around ``line`` on which a comment may speak for it."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not around:
        return frozenset()
    inner = max(around, key=lambda node: (node.lineno, -(node.end_lineno or node.lineno)))
    compound = hasattr(inner, "body") or hasattr(inner, "cases")
    return frozenset({inner.lineno} if compound else {inner.lineno, inner.end_lineno or inner.lineno})
