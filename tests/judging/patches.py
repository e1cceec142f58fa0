"""Wrong and right patches for the faulty fixtures: what people do to make an error go away.

A wrong patch is wrong by construction: a loss that trained a network no longer does, or trains another as
well, or gradients are thrown away or kept too long. Each is made of the text of a fixture (or of its fixed
version), and leaves every other line as it is.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cases import Case

CARRIES = ("undetached_fake", "stale_forward")
"""The fixtures in which one network's loss runs into another network."""


@dataclass(frozen=True)
class Patch:
    """A patched version of one fixture."""

    case: Case
    kind: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.case.name}-{self.kind}"


class Text:
    """A program whose statements can be replaced and surrounded, by line."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.tree = ast.parse(self.text)
        self._lines = self.text.splitlines()
        self._edits: list[tuple[int, int, list[str]]] = []

    def statements(self, calls: str) -> list[ast.Expr]:
        """The statements that are one call of a method."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr == calls
            # A statement that shares its line with another is left alone.
            and self._lines[node.lineno - 1]
            .strip()
            .startswith(ast.get_source_segment(self.text, node) or "?")
        ]

    def segment(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text, node) or "?"

    def put(self, node: ast.stmt, code: str) -> None:
        """Put ``code`` (rows of it, dedented) in the place of a statement."""
        indent = " " * node.col_offset
        assert node.end_lineno is not None
        rows = [indent + row for row in code.split("\n")]
        self._edits.append((node.lineno - 1, node.end_lineno, rows))

    def source(self, node: ast.AST) -> str:
        return ast.unparse(node)

    def patched(self) -> str | None:
        """The text after all edits; None if there were none or it does not parse."""
        if not self._edits:
            return None
        lines = list(self._lines)
        for start, end, rows in sorted(self._edits, reverse=True):
            lines[start:end] = rows
        text = "\n".join(lines) + "\n"
        try:
            ast.parse(text)
        except SyntaxError:
            return None
        return text if text != self.text else None


def _receiver(statement: ast.Expr) -> str:
    call = statement.value
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    return ast.unparse(call.func.value)


def _raising(text: Text, case: Case) -> list[ast.Expr]:
    line = case.raises[1] if case.raises else 0
    return [s for s in text.statements("backward") if s.lineno <= line <= (s.end_lineno or 0)]


# -- wrong ------------------------------------------------------------------------------------


def retain_everywhere(case: Case) -> str | None:
    """``retain_graph=True`` at every backward: what a search engine says."""
    text = Text(case.path.read_text())
    for statement in text.statements("backward"):
        text.put(statement, f"{_receiver(statement)}.backward(retain_graph=True)")
    return text.patched()


def _steps_last(source: str) -> str | None:
    text = Text(source)
    steps = text.statements("step")
    for block in ast.walk(text.tree):
        body = getattr(block, "body", None)
        if not isinstance(body, list):
            continue
        own = [s for s in body if s in steps]
        if len({_receiver(s) for s in own}) < 2 or body[-1] not in own:
            continue
        *early, last = own
        if any(body.index(s) + 1 < len(body) and body[body.index(s) + 1] not in own for s in early):
            for step in early:
                text.put(step, "pass")
            text.put(last, "\n".join(text.source(s) for s in own))
    return text.patched()


def steps_last(case: Case) -> str | None:
    """Both optimizers step at the end of the pass: nothing is stale, and each takes in the other's loss."""
    return _steps_last(case.path.read_text())


def steps_last_and_retain(case: Case) -> str | None:
    """The two together: no error is left, and the gradients are mixed."""
    retained = retain_everywhere(case)
    return None if retained is None else _steps_last(retained)


def caught(case: Case) -> str | None:
    """The error is swallowed, and what it would have trained is not trained."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, f"try:\n    {text.source(statement)}\nexcept RuntimeError:\n    pass")
    return text.patched()


def left_out(case: Case) -> str | None:
    """The backward that raises is no longer called."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, "pass")
    return text.patched()


def loss_cut_off(case: Case) -> str | None:
    """The loss is detached and made to require grad: the backward runs, and reaches nothing."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, f"({_receiver(statement)}).detach().requires_grad_().backward()")
    return text.patched()


def loss_as_data(case: Case) -> str | None:
    """The same through ``.data``."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, f"({_receiver(statement)}).data.requires_grad_(True).backward()")
    return text.patched()


def only_once(case: Case) -> str | None:
    """The backward that raises is called in the first pass only."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        done = f"'_done_{statement.lineno}'"
        text.put(
            statement,
            f"if {done} not in globals():\n    globals()[{done}] = True\n    {text.source(statement)}",
        )
    return text.patched()


BUILTINS = frozenset({"print", "range", "len", "float", "enumerate"})


def everything_detached(case: Case) -> str | None:
    """Every value that is handed to something called is detached on the way, for all losses."""
    source = case.path.read_text().replace("\r\n", "\n")
    lines = [line.encode() for line in source.splitlines()]
    tree = ast.parse(source)
    backwards = [node.lineno for node in ast.walk(tree) if getattr(node, "attr", "") == "backward"]
    changed = False
    for node in sorted(
        (n for n in ast.walk(tree) if isinstance(n, ast.Call)), key=lambda n: (-n.lineno, -n.col_offset)
    ):
        if len(node.args) != 1 or not isinstance(node.args[0], ast.Name) or node.keywords:
            continue
        argument = node.args[0]
        outer = [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.FunctionDef))]
        inside = any(
            n.lineno < node.lineno <= (n.end_lineno or 0)
            and any(n.lineno < b <= (n.end_lineno or 0) for b in backwards)
            for n in outer
        )
        builtin = isinstance(node.func, ast.Name) and node.func.id in (
            "print",
            "range",
            "len",
            "float",
            "enumerate",
        )
        if not inside or builtin:
            continue
        row = lines[argument.lineno - 1]
        end = argument.end_col_offset or 0
        lines[argument.lineno - 1] = row[:end] + b".detach()" + row[end:]
        changed = True
    return b"\n".join([*lines, b""]).decode() if changed else None


def cleared_before_the_step(case: Case) -> str | None:
    """In the right program the gradients are cleared between backward and step."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for statement in text.statements("step"):
        if "sched" in _receiver(statement) or "scaler" in _receiver(statement):
            continue
        text.put(statement, f"{_receiver(statement)}.zero_grad()\n{text.source(statement)}")
    return text.patched()


def never_cleared(case: Case) -> str | None:
    """In the right program no gradient is ever cleared."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    repeated = [n for n in ast.walk(text.tree) if isinstance(n, (ast.For, ast.While, ast.FunctionDef))]
    again = {id(inner) for node in repeated for inner in ast.walk(node)}
    for statement in text.statements("zero_grad"):
        # What runs only once has nothing to clear.
        if id(statement) in again:
            text.put(statement, "pass")
    return text.patched()


def step_before_backward(case: Case) -> str | None:
    """In the right program each step comes before its backward."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    steps, backwards = text.statements("step"), text.statements("backward")
    for block in ast.walk(text.tree):
        body = getattr(block, "body", None)
        if not isinstance(body, list):
            continue
        for one, other in itertools.pairwise(body):
            if one in backwards and other in steps:
                text.put(one, text.source(other))
                text.put(other, text.source(one))
    return text.patched()


def cloned_instead(case: Case) -> str | None:
    """In the right program ``clone()`` stands for ``detach()``."""
    assert case.fixed is not None
    right = case.fixed.read_text()
    if ".detach()" in case.path.read_text() or ".detach()" not in right:
        return None
    return right.replace(".detach()", ".clone()")


def no_learning(case: Case) -> str | None:
    """In the right program the learning rates are zero."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for node in ast.walk(text.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            source = text.source(node)
            if "optim." in source and "lr=" in source:
                for keyword in node.value.keywords:
                    if keyword.arg == "lr":
                        keyword.value = ast.Constant(0.0)
                text.put(node, text.source(node))
    return text.patched()


WRONG: dict[str, tuple[Callable[[Case], str | None], tuple[str, ...]]] = {
    "retain_everywhere": (retain_everywhere, (*CARRIES, "carried_hidden_state", "requires_grad_input")),
    "steps_last": (steps_last, CARRIES),
    "steps_last_and_retain": (steps_last_and_retain, CARRIES),
    "caught": (caught, ()),
    "left_out": (left_out, ()),
    "loss_cut_off": (loss_cut_off, ()),
    "loss_as_data": (loss_as_data, ()),
    "only_once": (only_once, ()),
    "everything_detached": (everything_detached, CARRIES),
    "cleared_before_the_step": (cleared_before_the_step, ()),
    "never_cleared": (never_cleared, ()),
    "step_before_backward": (step_before_backward, ()),
    "cloned_instead": (cloned_instead, ()),
    "no_learning": (no_learning, ()),
}
"""The ways to go wrong, each with the folders of fixtures in which it is wrong (none: in all)."""


def wrong(cases: list[Case]) -> Iterator[Patch]:
    """Every wrong patch of ``cases``."""
    for case in cases:
        right = case.fixed.read_text() if case.fixed else ""
        for kind, (make, folders) in WRONG.items():
            if folders and case.path.parent.name not in folders:
                continue
            text = make(case)
            if text is not None and text.strip() not in (right.strip(), case.path.read_text().strip()):
                yield Patch(case, kind, text)


# -- right ------------------------------------------------------------------------------------


def as_written(case: Case) -> str | None:
    """The fixed version itself."""
    assert case.fixed is not None
    return case.fixed.read_text()


def detached_clone(case: Case) -> str | None:
    """``clone().detach()`` for ``detach()``."""
    assert case.fixed is not None
    text = case.fixed.read_text()
    return text.replace(".detach()", ".clone().detach()") if ".detach()" in text else None


def through_autograd(case: Case) -> str | None:
    """``torch.autograd.backward(loss)`` for ``loss.backward()``."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for statement in text.statements("backward"):
        call = statement.value
        assert isinstance(call, ast.Call)
        if not call.args and not call.keywords and "import torch\n" in text.text:
            text.put(statement, f"torch.autograd.backward({_receiver(statement)})")
    return text.patched()


RIGHT: dict[str, Callable[[Case], str | None]] = {
    "as_written": as_written,
    "detached_clone": detached_clone,
    "through_autograd": through_autograd,
}


def right(cases: list[Case]) -> Iterator[Patch]:
    """Right patches of ``cases``."""
    for case in cases:
        for kind, make in RIGHT.items():
            text = make(case)
            if text is not None:
                yield Patch(case, kind, text)
