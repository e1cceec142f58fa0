"""A file of a script that ran, and where things stand in it: calls, assignments, operations in place."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gradfix.core.span import Span
from gradfix.project.source import Source

CALLS = frozenset({"backward", "manual_backward", "grad", "step"})
"""The last names of calls that run a backward or a step."""
CUTS = frozenset(
    {"detach", "item", "numpy", "tolist", "argmax", "tensor", "as_tensor", "from_numpy", "no_grad"}
)
"""The last names of what no gradient iterations."""


@dataclass(frozen=True)
class ScriptFile:
    """A file of the script's, and where things stand in it."""

    source: Source

    @cached_property
    def scopes(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [node for node in ast.walk(self.source.tree) if isinstance(node, functions)]

    def call(self, line: int) -> Span:
        """The backward or step call that runs at ``line``, or the line."""
        calls = [
            node
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.Call)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
            and last_name(node.func) in CALLS
        ]
        if calls:
            return Span.of(max(calls, key=lambda node: (node.lineno, node.col_offset)))
        return self.whole(line)

    def whole(self, line: int) -> Span:
        """All of ``line`` but its indentation and trailing blanks."""
        text = self.source.lines[line - 1] if 0 < line <= len(self.source.lines) else ""
        code = text.rstrip()
        start = len(code) - len(code.lstrip())
        return Span(line, len(code[:start].encode()), line, len(code.encode()))

    def scope(self, first_line: int) -> ast.AST:
        """The function that begins at ``first_line``, or the module."""
        for function in self.scopes:
            if first_line in {function.lineno, *(one.lineno for one in function.decorator_list)}:
                return function
        return self.source.tree

    def cls(self, qualified: str) -> ast.ClassDef | None:
        """The class of that name."""
        last = qualified.rpartition(".")[2]
        classes = (node for node in ast.walk(self.source.tree) if isinstance(node, ast.ClassDef))
        return next((node for node in classes if node.name == last), None)

    def called(self, call: ast.Call) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The function of this file that a call runs, where there is one only that it can be.

        A network that is called runs the ``forward`` of its class.
        """
        name = last_name(call.func)
        found = [one for one in self.scopes if one.name == name]
        if not found and isinstance(call.func, ast.Name | ast.Attribute):
            made = [
                last_name(node.value.func)
                for node in bindings_of(self.source.tree, ast.unparse(call.func), anew=True)
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            ]
            classes = [cls for cls in map(self.cls, made) if cls is not None]
            found = [one for cls in classes for one in cls.body if getattr(one, "name", "") == "forward"]  # type: ignore[misc]
        return found if len(found) == 1 else []

    def outer(self, statement: ast.stmt | ast.expr) -> Iterator[ast.AST]:
        """What ``statement`` stands in, up to its function."""
        line = statement.lineno
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.With | ast.FunctionDef | ast.AsyncFunctionDef):
                if node.lineno <= line <= last_line(node):
                    yield node

    def statement(self, line: int) -> ast.stmt:
        """The innermost statement that has ``line``."""
        found = [
            node
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.stmt) and node.lineno <= line <= last_line(node)
        ]
        return max(found, key=lambda node: (node.lineno, -last_line(node)), default=ast.Pass(lineno=line))

    def around(self, line: int) -> ast.AST:
        """The innermost function that has ``line``, or the module."""
        functions = [one for one in self.scopes if one.lineno <= line <= last_line(one)]
        return max(functions, key=lambda one: one.lineno, default=self.source.tree)

    def code(self, span: Span) -> str:
        """The first line of what is at ``span``, without the arguments of a call that is long."""
        raw = self.source.lines[span.line - 1].encode()
        end = span.end_column if span.end_line == span.line else len(raw)
        code = raw[span.column : end].decode(errors="replace").strip()
        return code if len(code) <= 50 else f"{code[:47]}..."


def last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def bindings_of(scope: ast.AST, name: str, anew: bool) -> Iterator[ast.stmt]:
    """The statements in ``scope`` that bind ``name``; those like ``+=`` unless the value is made ``anew``."""
    for node in ast.walk(scope):
        if isinstance(node, ast.stmt) and name in bound_by(node):
            if not (anew and isinstance(node, ast.AugAssign)):
                yield node


def changes_of(scope: ast.AST, names: set[str]) -> Iterator[ast.stmt]:
    """The statements in ``scope`` that change one of ``names`` in place."""
    for node in ast.walk(scope):
        if isinstance(node, ast.stmt) and not names.isdisjoint(changed_by(node)):
            yield node


def keyword_of(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def is_inplace(call: ast.Call) -> bool:
    """Whether a call, or the layer that it makes, works in place: ``nn.ReLU(True)`` says so as well."""
    given = keyword_of(call, "inplace")
    if given is None and last_name(call.func) in ("ReLU", "ReLU6", "SiLU", "Hardswish") and call.args:
        given = call.args[0]
    return isinstance(given, ast.Constant) and given.value is True


LAYERS = {"ReLU6": "Hardtanh", "relu6": "Hardtanh", "Dropout": "Mul", "dropout": "Mul"}
"""What autograd calls the operation of a layer, where that is not its name."""


def plain_name(name: str) -> str:
    """A name without what writings differ in: ``masked_fill_`` and ``MaskedFill`` are one."""
    return name.replace("_", "").lower()


def operations_of(node: ast.stmt) -> set[str]:
    """What autograd calls a statement in place, in plain."""
    if isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Subscript):
            return {"copyslices", "indexput"}
        return {{"mult": "mul", "matmult": "mm"}.get(kind := type(node.op).__name__.lower(), kind)}
    if isinstance(node, ast.Assign):
        return {"copyslices", "indexput", "copy"}
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return {plain_name(last_name(node.value.func))}
    return set()


def read_before_bound(block: ast.AST, name: str) -> ast.expr | None:
    """Where ``block`` reads ``name`` with its graph, if that is before the first statement that binds it."""
    bound = [node for node in ast.walk(block) if isinstance(node, ast.stmt) and name in bound_by(node)]
    cut = {
        node.value
        for node in ast.walk(block)
        if isinstance(node, ast.Attribute) and node.attr in CUTS | {"data", "shape", "size"}
    }
    reads = [
        node
        for node in ast.walk(block)
        if isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Load)
        and node not in cut
        and ast.unparse(node) == name
    ]
    added = (node.target for node in bound if isinstance(node, ast.AugAssign))
    reads += [node for node in added if isinstance(node, (ast.Name, ast.Attribute))]
    if not bound or not reads:
        return None
    first, read = min(bound, key=lambda node: node.lineno), min(reads, key=lambda node: node.lineno)
    return read if read.lineno <= last_line(first) else None


def read_after(scope: ast.AST, statement: ast.stmt, name: str) -> bool:
    """Whether ``scope`` reads ``name`` behind ``statement``, in the iteration of the loop that it is given
    in."""
    given = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.For)
        and name in bound_by(node)
        and node.lineno <= statement.lineno <= last_line(node)
    ]
    end = min(map(last_line, given), default=sys.maxsize)
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and last_line(statement) < node.lineno <= end
        and ast.unparse(node) == name
        for node in ast.walk(scope)
    )


def prefixes(name: str) -> Iterator[str]:
    """``self.h[0]``, ``self.h``, ``self``."""
    while name:
        yield name
        cut = max(name.rfind("."), name.rfind("["))
        name = name[:cut] if cut > 0 else ""


def bound_by(node: ast.stmt) -> set[str]:
    """The names and attributes that a statement assigns to."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = [node.target]
    elif isinstance(node, ast.Expr):
        # `outputs.append(value)` is what gave a list its elements.
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append":
            targets = [call.func.value]
    flat = [inner for target in targets for inner in _flat(target)]
    return {ast.unparse(target) for target in flat}


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for inner in target.elts:
            yield from _flat(inner)
    else:
        yield target.value if isinstance(target, ast.Starred) else target


def changed_by(node: ast.stmt) -> set[str]:
    """The names of what a statement changes in place."""
    if isinstance(node, ast.AugAssign):
        target = node.target
        return {ast.unparse(target.value if isinstance(target, ast.Subscript) else target)}
    if isinstance(node, ast.Assign):
        return {ast.unparse(one.value) for one in node.targets if isinstance(one, ast.Subscript)}
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and re.fullmatch(r"[a-z]\w*[a-z0-9]_", function.attr):
            return {ast.unparse(function.value)}
    return set()


def out_of_place(node: ast.stmt) -> str | None:
    """The assignment that does what a statement does in place to a name or an attribute, in one line."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name | ast.Attribute):
        return f"{ast.unparse(node.target)} = {ast.unparse(ast.BinOp(node.target, node.op, node.value))}"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        method = node.value.func
        if isinstance(method, ast.Attribute) and isinstance(method.value, ast.Name | ast.Attribute):
            name = ast.unparse(method.value)
            return f"{name} = {name}.{method.attr[:-1]}{ast.unparse(node.value)[len(ast.unparse(method)) :]}"
    return None


def last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
