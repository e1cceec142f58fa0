"""Plants optimizers that own other parameters than they should, and steps of the wrong one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from syntax import NOT_OPTIMIZERS, Code, Plan, receiver

from gradfix.core.codemod import MoveStatement, ReplaceExpression
from gradfix.core.span import Span

OPTIMIZERS = re.compile(r"^(Adam\w*|SGD|RMSprop|Ada\w+|NAdam|RAdam|LBFGS|Lion|Lamb)$")


def optimizers(code: Code) -> Iterator[ast.Call]:
    """The calls that make an optimizer of torch."""
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Call) and node.args:
            if OPTIMIZERS.match(ast.unparse(node.func).rsplit(".", 1)[-1]):
                yield node


def _networks(node: ast.expr) -> list[ast.Call]:
    """The calls ``network.parameters()`` in an expression."""
    return [
        n
        for n in ast.walk(node)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "parameters"
        and not n.args
    ]


def _involved(code: Code, made: ast.Call) -> list[ast.stmt]:
    """Where an optimizer is made, and where it is stepped and anything is backpropagated."""
    statement = code.statement(made)
    names = [ast.unparse(t) for t in getattr(statement, "targets", [])]
    steps = [s for s in code.calls("step") if receiver(s) in names]
    return [statement, *steps, *code.calls("backward")]


def optimizer_of_other(code: Code) -> Iterator[Plan]:
    """``SGD(D.parameters())`` => ``SGD(G.parameters())``, where another optimizer owns ``G``."""
    made = list(optimizers(code))
    for one in made:
        mine = _networks(one.args[0])
        for other in made:
            theirs = _networks(other.args[0])
            if len(mine) != 1 or len(theirs) != 1 or code.function(one) is not code.function(other):
                continue
            if ast.unparse(mine[0]) != ast.unparse(theirs[0]):
                edit = ReplaceExpression(Span.of(mine[0]), code.segment(theirs[0]))
                yield Plan(mine[0], (edit,), tuple(_involved(code, one) + _involved(code, other)))
                break


def parameters_left_out(code: Code) -> Iterator[Plan]:
    """``SGD(list(E.parameters()) + list(G.parameters()))`` => ``SGD(list(E.parameters()))``, or the like."""
    for one in optimizers(code):
        given = one.args[0]
        if isinstance(given, ast.Name):
            given = _bound(code, given) or given
        for left in _halves(code, given):
            edit = ReplaceExpression(Span.of(given), left)
            yield Plan(given, (edit,), (*_involved(code, one), code.statement(given)))


def _bound(code: Code, name: ast.Name) -> ast.expr | None:
    """What a variable is, if it is bound once in its function."""
    found = [
        n.value
        for n in ast.walk(code.function(name))
        if isinstance(n, ast.Assign) and [ast.unparse(t) for t in n.targets] == [name.id]
    ]
    return found[0] if len(found) == 1 else None


def _halves(code: Code, given: ast.expr) -> Iterator[str]:
    """An expression for parameters of several networks, without those of one."""
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Add):
        for side in (given.left, given.right):
            if _networks(given.left) and _networks(given.right):
                yield code.segment(side)
        return
    if isinstance(given, ast.Call) and ast.unparse(given.func).endswith("chain"):
        parts = given.args
        opening, closing = code.segment(given.func) + "(", ")"
    elif isinstance(given, ast.List):
        parts, opening, closing = given.elts, "[", "]"
    else:
        return
    if len(parts) > 1 and all(_networks(part) for part in parts):
        for part in parts:
            yield opening + ", ".join(code.segment(p) for p in parts if p is not part) + closing


def step_of_other(code: Code) -> Iterator[Plan]:
    """``opt_G.step()`` => ``opt_D.step()``, where both are stepped in one function."""
    steps = [s for s in code.calls("step") if not NOT_OPTIMIZERS.search(receiver(s))]
    for step in steps:
        for other in steps:
            if code.function(step) is code.function(other) and receiver(step) != receiver(other):
                call = step.value
                assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
                edit = ReplaceExpression(Span.of(call.func.value), receiver(other))
                own = [
                    s
                    for method in ("zero_grad", "backward")
                    for s in code.calls(method)
                    if code.function(s) is code.function(step)
                ]
                yield Plan(step, (edit,), (step, other, *own))
                break


def layer_replaced_late(code: Code) -> Iterator[Plan]:
    """``net.fc = Linear(); optimizer = SGD(net.parameters())`` => the other way round."""
    for one in optimizers(code):
        made = code.statement(one)
        networks = [ast.unparse(n.func.value) for n in _networks(one.args[0])]  # type: ignore[attr-defined]
        block = next(
            (
                b
                for b in (getattr(code.parents[made], f, None) for f in ("body", "orelse"))
                if b and made in b
            ),
            [],
        )
        for statement in block[: block.index(made)] if made in block else []:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
                continue
            target = ast.unparse(statement.targets[0])
            layer = re.search(r"(Linear|Conv\w*|Sequential)$", ast.unparse(statement.value.func))
            if layer and any(target.startswith(network + ".") for network in networks):
                edit = MoveStatement(Span.of(statement), Span.of(made), "after")
                yield Plan(statement, (edit,), (statement, made))


OPERATORS: dict[str, Callable[[Code], Iterator[Plan]]] = {
    "optimizer-of-other": optimizer_of_other,
    "parameters-left-out": parameters_left_out,
    "step-of-other": step_of_other,
    "layer-replaced-late": layer_replaced_late,
}
WIRING = frozenset(
    {
        "step-without-gradients",
        "unused-gradients",
        "leaking-loss",
        "missing-zero-grad",
        "misplaced-zero-grad",
        "stale-forward",
        "wrong-optimizer",
        "stepped-twice",
    }
)
EXPECTED: dict[str, frozenset[str]] = {
    "optimizer-of-other": WIRING,
    "parameters-left-out": WIRING,
    "step-of-other": WIRING,
    "layer-replaced-late": frozenset({"replaced-layer"}),
}
