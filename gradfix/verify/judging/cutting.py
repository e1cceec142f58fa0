"""Programs in which the graph of what is carried over iterations is cut every so many iterations only.

A fix of state that is carried over iterations cuts in every iteration. A repair that goes back through a
segment of iterations cuts at the end of each: what its later steps should consume is told by the same program
with the same cut, made as seldom.
"""

from __future__ import annotations

import ast
import copy
import difflib


def cut_every(original: str, fixed: str, iterations: int, late: bool) -> str | None:
    """The program ``fixed``, its detaches that ``original`` has not made in every so many iterations only.

    Args:
        original: The program before the fix.
        fixed: The program after it.
        iterations: How many iterations make a segment.
        late: Whether the first to be made is that at the end of the first segment; otherwise it is the very
            first, before which there is nothing to cut.

    Returns:
        The text; ``None`` where the fix makes no detach, or one that is not a statement by itself.
    """
    lines = fixed.splitlines()
    matcher = difflib.SequenceMatcher(None, original.splitlines(), lines, autojunk=False)
    new = {
        line + 1
        for kind, _, _, start, stop in matcher.get_opcodes()
        if kind != "equal"
        for line in range(start, stop)
        if "detach" in lines[line]
    }
    try:
        tree = ast.parse(fixed)
    except SyntaxError:
        return None
    names: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or node.lineno not in new or node.end_lineno != node.lineno:
            continue
        row = lines[node.lineno - 1]
        rest = row.strip().removeprefix(ast.get_source_segment(fixed, node) or "?").strip()
        if rest and not rest.startswith("#"):
            return None
        whole = _Undetached().visit(copy.deepcopy(node.value))
        name = f"_gradfix_iterations_{len(names)}"
        turn = ast.parse(f"next({name}) % {iterations} == {iterations - 1 if late else 0}", mode="eval").body
        seldom = ast.Assign(node.targets, ast.IfExp(turn, node.value, whole), lineno=node.lineno)
        lines[node.lineno - 1] = row[: len(row) - len(row.lstrip())] + ast.unparse(seldom)
        names.append(name)
        new.discard(node.lineno)
    if new or not names:
        return None
    at = _beginning(tree) - 1
    counters = [f"{name} = _gradfix_count()" for name in names]
    lines[at:at] = ["from itertools import count as _gradfix_count", *counters]
    return "\n".join(lines) + "\n"


def _beginning(tree: ast.Module) -> int:
    """The line of the first statement that others may stand before."""
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            decorators = getattr(node, "decorator_list", [])
            return min([node.lineno, *(int(one.lineno) for one in decorators)])
    return 1


class _Undetached(ast.NodeTransformer):
    """Takes the detaches out of an expression."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "detach" and not node.args:
            return function.value
        return node
