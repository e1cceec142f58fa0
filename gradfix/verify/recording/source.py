"""Where a script says what is differentiated, and what its optimizers are called."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence


class Source:
    """Answers where in a source something stands."""

    def __init__(self, text: str) -> None:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            tree = ast.Module([], [])
        nodes = list(ast.walk(tree))
        self._statements = [node for node in nodes if isinstance(node, ast.stmt)]
        self._calls = [node for node in nodes if isinstance(node, ast.Call)]

    def statement(self, line: int) -> tuple[int, int]:
        """The lines of the innermost statement around ``line`` (of its header, if it is compound)."""
        best = (line, line)
        start = 0
        for node in self._statements:
            last = node.end_lineno or node.lineno
            body = getattr(node, "body", None)
            if body:
                last = max(node.lineno, body[0].lineno - 1)
            if node.lineno <= line <= last and node.lineno >= start:
                best, start = (node.lineno, last), node.lineno
        return best

    def receiver(self, position: Sequence[int | None], tensor: bool) -> str | None:
        """What the backward call at ``position`` differentiates.

        ``position`` is ``line, end_line, column, end_column`` as bytecode knows it; ``tensor``
        says that it is the receiver of the call (otherwise the first argument is).
        """
        line, end_line, _, end_column = position
        # A call's end is its own closing bracket: no two calls share it.
        calls = [c for c in self._calls if (c.end_lineno, c.end_col_offset) == (end_line, end_column)]
        if end_line is None:
            calls = [c for c in self._calls if c.lineno == line and _is_backward(c)]
        if len(calls) != 1:
            return None
        (call,) = calls
        if tensor and isinstance(call.func, ast.Attribute):
            return ast.unparse(call.func.value)
        # `torch.autograd.backward(loss)`, `accelerator.backward(loss)`; never `trainer.fit(model)`.
        named = not tensor and ast.unparse(call.func).endswith("backward")
        return ast.unparse(call.args[0]) if named and call.args else None

    def constructed(self, position: Sequence[int | None]) -> str | None:
        """What the result of the constructor call at ``position`` is assigned to."""
        line, end_line, _, end_column = position
        for node in self._statements:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if len(targets) == 1:
                for name, value in _assigned(targets[0], node.value):
                    if (value.end_lineno, value.end_col_offset) == (end_line, end_column) or (
                        end_line is None and value.lineno == line
                    ):
                        return name
        return None


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The calls in an assignment, and how to reach what each returns."""
    if isinstance(value, ast.Call):
        if isinstance(target, ast.Name | ast.Attribute):
            yield ast.unparse(target), value
    elif isinstance(value, ast.Tuple | ast.List):
        if isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(value.elts):
            for name, item in zip(target.elts, value.elts):
                yield from _assigned(name, item)
        elif isinstance(target, ast.Name | ast.Attribute):
            yield from ((f"{ast.unparse(target)}[{i}]", item) for i, item in enumerate(value.elts))
    elif isinstance(value, ast.Dict) and isinstance(target, ast.Name | ast.Attribute):
        for key, item in zip(value.keys, value.values):
            if key is not None:
                yield f"{ast.unparse(target)}[{ast.unparse(key)}]", item


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
