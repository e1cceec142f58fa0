"""Which lines of a file can matter: found by searching its text, before anything is interpreted.

Interpretation asks these questions at every loop and every function, so they must cost nothing: the
lines with a relevant call are found once by a regular expression, and a statement is relevant if one of
them lies within it. Calls of functions that hold relevant lines are relevant in turn.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right

DIRECT = re.compile(r"\b(?:backward|manual_backward|step|zero_grad|autograd\s*\.\s*grad)\b\s*\(|\.grad\b")
"""Calls that move gradients or parameters."""
GRAPH = re.compile(
    r"\b(?:detach_?|no_grad|requires_grad_?|retain_graph|inference_mode|set_grad_enabled|clone)\b"
)
"""What shapes the graph: a condition around it is worth both outcomes."""
BACKWARD = re.compile(r"(?<!def )\b(?:backward|manual_backward|grad)\b\s*\(")
"""Where a backward may be called; whether it is one, and not a comment, the syntax tree says."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Relevance:
    """The relevant lines of one file."""

    def __init__(self, tree: ast.Module, text: str, offset: int = 0) -> None:
        """``offset`` is what has been added to the tree's line numbers."""
        self.tree = tree
        self._offset = offset
        self._joined: set[str] = set()
        self.functions: list[Definition] = []
        self.classes: dict[Definition, ast.ClassDef] = {}
        self._generators: dict[ast.AST, bool] = {}
        self._collect(tree.body, None)
        self._text = text
        self._starts = [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", text))]
        self.used: set[str] = set()
        """Names of functions that differentiate and are mentioned outside their definition."""
        self.switches_mode = "set_grad_enabled" in text
        """Whether the mode in which a function is called cannot be taken for granted."""
        self.graph = self._lines(GRAPH)
        self.backwards = self._spread(self._calls(tree))
        self.direct = self._spread(self._lines(DIRECT)) if self.backwards else []

    def _collect(self, body: list[ast.stmt], cls: ast.ClassDef | None) -> None:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.append(statement)
                if cls is not None:
                    self.classes[statement] = cls
                self._collect(statement.body, None)
            elif isinstance(statement, ast.ClassDef):
                self._collect(statement.body, statement)
            else:
                for field in ("body", "orelse", "finalbody"):
                    inner = getattr(statement, field, None)
                    if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                        self._collect(inner, cls)
                for handler in getattr(statement, "handlers", ()):
                    self._collect(handler.body, cls)

    def _lines(self, pattern: re.Pattern[str]) -> list[int]:
        return sorted({self._line(m.start()) for m in pattern.finditer(self._text)})

    def _line(self, position: int) -> int:
        return bisect_right(self._starts, position) + self._offset

    def _calls(self, tree: ast.Module) -> list[int]:
        """The lines on which something is differentiated."""
        candidates = self._lines(BACKWARD)
        found: set[int] = set()
        for statement in tree.body:
            if not _within(statement, candidates):
                continue
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and _differentiates(node.func):
                    found.add(node.func.end_lineno or node.lineno)
        return sorted(found)

    def _spread(self, found: list[int]) -> list[int]:
        """The lines found, and those that mention a function that holds such lines, and so on."""
        known: set[str] = {"__init__", "__call__"}
        while True:
            names = {f.name for f in self.functions if f.name not in known and _within(f, found)}
            if not names:
                return found
            known |= names
            mention = re.compile(r"(?<!def )\b(" + "|".join(map(re.escape, names)) + r")\b")
            relevant = set(found)
            for match in mention.finditer(self._text):
                relevant.add(self._line(match.start()))
                self.used.add(match[1])
            found = sorted(relevant)

    def join(self, path: str, other: Relevance) -> None:
        """Take in the lines of an imported module, which have numbers of their own."""
        if path in self._joined:
            return
        self._joined.add(path)
        self.direct = sorted({*self.direct, *other.direct})
        self.backwards = sorted({*self.backwards, *other.backwards})
        self.graph = sorted({*self.graph, *other.graph})

    def mention(self, name: str, definition: ast.AST) -> None:
        """Make the lines relevant that mention an imported function which is."""
        for lines in ("direct", "backwards"):
            known: list[int] = getattr(self, lines)
            if _within(definition, known):
                found = self._lines(re.compile(rf"(?<!def )\b{re.escape(name)}\b"))
                setattr(self, lines, sorted({*known, *found}))

    def touches(self, node: ast.AST) -> bool:
        """Whether a statement holds a call that moves gradients, directly or through the project."""
        return _within(node, self.direct)

    def differentiates(self, node: ast.AST) -> bool:
        """Whether a statement holds a backward, directly or through the project."""
        return _within(node, self.backwards)

    def shapes(self, node: ast.AST) -> bool:
        """Whether a statement holds something that cuts or keeps graphs."""
        return _within(node, self.graph)

    def nests(self, loop: ast.For | ast.While | ast.AsyncFor) -> bool:
        """Whether a loop holds another relevant loop."""
        work: list[ast.stmt] = list(loop.body)
        while work:
            statement = work.pop()
            if isinstance(statement, (ast.For, ast.While, ast.AsyncFor)) and self.differentiates(statement):
                return True
            for field in ("body", "orelse", "finalbody"):
                work += getattr(statement, field, ())
        return False

    def mentioned(self, names: list[str]) -> set[str]:
        """Those names that occur in the file other than in their own definition."""
        return {name for name in names if name in self.used}

    def quiet_around(self, loop: ast.For | ast.While | ast.AsyncFor) -> bool:
        """Whether nothing in a loop but its inner loops moves gradients or shapes graphs.

        A second pass of such a loop (over epochs) shows nothing that the inner loop's passes do not.
        """
        for statement in loop.body:
            inner = isinstance(statement, (ast.For, ast.While, ast.AsyncFor))
            if not inner and (self.touches(statement) or self.shapes(statement)):
                return False
        return True

    def generator(self, definition: ast.AST) -> bool:
        """Whether a function yields."""
        known = self._generators.get(definition)
        if known is None:
            known = self._generators[definition] = _yields(getattr(definition, "body", []))
        return known


def _within(node: ast.AST, lines: list[int]) -> bool:
    at = bisect_left(lines, node.lineno)  # type: ignore[attr-defined]
    return at < len(lines) and lines[at] <= node.end_lineno  # type: ignore[attr-defined]


def _differentiates(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        if function.attr == "grad":
            holder = function.value
            return getattr(holder, "attr", None) == "autograd" or getattr(holder, "id", None) == "autograd"
        return function.attr in ("backward", "manual_backward")
    return isinstance(function, ast.Name) and function.id in ("grad", "backward")


def _yields(body: list[ast.stmt]) -> bool:
    work: list[ast.AST] = list(body)
    while work:
        node = work.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        work.extend(ast.iter_child_nodes(node))
    return False
