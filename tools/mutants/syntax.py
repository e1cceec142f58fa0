"""The syntax of a file in which something is to be planted, and the plan of one fault."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from gradfix.core.codemod import Edit
from gradfix.core.segments import Lines
from gradfix.core.span import Span

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.While, ast.AsyncFor)
NOT_OPTIMIZERS = re.compile(r"sched|lr_|env|writer|scaler|progress|bar\b|timer", re.IGNORECASE)


class Project:
    """The files of a checkout: what they define, by name."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.codes: list[Code] = []
        self.texts: dict[str, str] = {}
        """The classes and functions at the top of files; those of one name together."""
        self.functions: dict[str, list[tuple[Code, ast.FunctionDef]]] = {}
        """The functions at the top of files, and methods."""
        for text in texts:
            try:
                code = Code(text, self)
            except (SyntaxError, ValueError, RecursionError):
                continue
            self.codes.append(code)
            for node in code.tree.body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    self.texts[node.name] = self.texts.get(node.name, "") + ast.unparse(node) + "\n"
                for part in (node, *(node.body if isinstance(node, ast.ClassDef) else ())):
                    if isinstance(part, ast.FunctionDef):
                        self.functions.setdefault(part.name, []).append((code, part))


NO_TENSORS = re.compile(
    r"(^|\.)(opts?|options?|args?|config|cfg|conf|hparams|params|flags|utils|torch)$", re.IGNORECASE
)


@dataclass(frozen=True)
class Plan:
    """One place for a fault: what to edit, and the original's statements that are part of it."""

    at: ast.AST
    edits: tuple[Edit, ...]
    involved: tuple[ast.AST, ...]
    text: str | None = None
    """The whole mutant, where edits cannot say it."""
    handed_in: bool = False


class Code:
    """The syntax of one file, with what operators ask of it; ``project`` has the files around it."""

    def __init__(self, text: str, project: Project | None = None) -> None:
        self.text = text
        self.project = project if project is not None else Project([])
        self.tree = ast.parse(text)
        self.lines = Lines(text)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {inner: outer for outer in ast.walk(self.tree) for inner in ast.iter_child_nodes(outer)}

    @cached_property
    def training(self) -> set[ast.AST]:
        """The functions that call backward."""
        return {
            self.function(node)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call) and method_of(node) == "backward"
        }

    def segment(self, node: ast.expr | ast.stmt) -> str:
        return self.lines.segment(Span.of(node))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: ast.AST) -> ast.AST:
        """The function that ``node`` is in, or the module."""
        return next((a for a in self.ancestors(node) if isinstance(a, FUNCTIONS)), self.tree)

    def statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def loop(self, node: ast.AST) -> ast.For | ast.While | ast.AsyncFor | None:
        """The innermost loop around ``node`` in its function."""
        for outer in self.ancestors(node):
            if isinstance(outer, FUNCTIONS):
                return None
            if isinstance(outer, LOOPS):
                return outer
        return None

    def trains(self, node: ast.AST) -> bool:
        """Whether a backward is called in the function that ``node`` is in."""
        return self.function(node) in self.training

    def name(self, node: ast.AST) -> str:
        """``Class.method`` or ``function`` of the outermost function around ``node``."""
        names = [
            a.name
            for a in self.ancestors(node)
            if isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        ]
        outermost = names[::-1]
        first = [a for a in self.ancestors(node) if isinstance(a, (ast.FunctionDef, ast.ClassDef))]
        if first and isinstance(first[-1], ast.ClassDef):
            return ".".join(outermost[:2])
        return outermost[0] if outermost else ""

    def blocks(self) -> Iterator[list[ast.stmt]]:
        """Every suite of a function that calls backward."""
        for node in ast.walk(self.tree):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    if self.trains(block[0]):
                        yield block

    def calls(self, method: str) -> Iterator[ast.Expr]:
        """The statements that are a call of this method, in functions that call backward."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and method_of(node.value) == method and self.trains(node):
                if method == "backward" or not NOT_OPTIMIZERS.search(receiver(node)):
                    yield node


def method_of(node: ast.AST) -> str | None:
    """The name of the method that an expression calls."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return None


def receiver(statement: ast.Expr) -> str:
    """What a method is called on, as text."""
    assert isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute)
    return ast.unparse(statement.value.func.value)


def is_call(statement: ast.stmt, method: str) -> bool:
    return isinstance(statement, ast.Expr) and method_of(statement.value) == method


def holds(statement: ast.stmt, method: str) -> bool:
    """Whether the method is called somewhere in the statement."""
    return any(method_of(node) == method for node in ast.walk(statement))


def without_head(code: Code, node: ast.With) -> str | None:
    """The file with the body of a ``with`` where the whole statement was; None if they share a line."""
    if node.body[0].lineno == node.lineno:
        return None
    lines = code.text.splitlines(True)
    last = node.end_lineno
    assert last is not None
    # Comments between the header and the first statement go along.
    moved = textwrap.indent(textwrap.dedent("".join(lines[node.lineno : last])), " " * node.col_offset)
    return "".join(lines[: node.lineno - 1]) + moved + "".join(lines[last:])
