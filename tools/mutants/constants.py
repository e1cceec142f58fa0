"""Plants graphs where there should be constants, and constants where there should be graphs."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from syntax import NO_TENSORS, Code, Plan, method_of, receiver

from gradfix.core.codemod import Edit, RemoveStatement, ReplaceExpression
from gradfix.core.span import Span

LOSS = re.compile(r"loss|crit|bce|mse|l1|nll|kl|entropy|\bF\.|log|print|save|write|append", re.IGNORECASE)
CUTTING = ("detach", "item")


def targets(code: Code) -> Iterator[Plan]:
    """``r + gamma * q.detach()`` => ``r + gamma * q``; also ``.data`` and ``.item()``, and in ``return``."""
    for node in ast.walk(code.tree):
        inner = _cut(node)
        if inner is None or not isinstance(code.function(node), ast.FunctionDef | ast.Module):
            continue
        statement = code.statement(node)
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)):
            continue
        if not _counts(code, node, statement):
            continue
        edit = ReplaceExpression(Span.of(node), code.segment(inner))  # type: ignore[arg-type]
        yield Plan(node, (edit,), (statement, *_uses(code, statement)))


def _cut(node: ast.AST) -> ast.expr | None:
    """What an expression takes the graph from, if it does."""
    if isinstance(node, ast.Call) and method_of(node) in CUTTING and not node.args:
        assert isinstance(node.func, ast.Attribute)
        return node.func.value
    if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
        return None if NO_TENSORS.search(ast.unparse(node.value)) else node.value
    return None


def _counts(code: Code, node: ast.AST, statement: ast.stmt) -> bool:
    """Whether what was cut is computed with, as far as the statement tells."""
    above = [a for a in code.ancestors(node) if isinstance(a, ast.expr)]
    calls = [ast.unparse(a.func) for a in above if isinstance(a, ast.Call)]
    if any(re.search(r"print|format|write|append|save|log(ger|ging)?\b|numpy|add_scalar", c) for c in calls):
        return False
    if isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Name):
        return False
    if isinstance(statement, ast.Expr):
        return False
    if isinstance(node, ast.Call) and method_of(node) == "item" and not isinstance(statement, ast.Assign):
        return False  # What is added up for the log.
    return bool(above) or not isinstance(node, ast.Call) or method_of(node) == "detach"


def _uses(code: Code, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements that read what one binds, or those that call a function for what it returns."""
    names: set[str] = set()
    scope: ast.AST = code.function(statement)
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)} - {"self"}
    elif isinstance(scope, ast.FunctionDef):
        names, scope = {scope.name}, code.tree
    for node in ast.walk(scope):
        named = getattr(node, "id", getattr(node, "attr", None))
        if named in names and isinstance(getattr(node, "ctx", None), ast.Load):
            yield code.statement(node)


def no_grad_decorator_dropped(code: Code) -> Iterator[Plan]:
    """``@torch.no_grad()`` goes from a function that is called where something is trained."""
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.FunctionDef) or any(isinstance(n, ast.Yield) for n in ast.walk(node)):
            continue
        for decorator in node.decorator_list:
            if ast.unparse(decorator) not in ("torch.no_grad()", "no_grad()", "torch.inference_mode()"):
                continue
            calls = [
                n
                for n in ast.walk(code.tree)
                if isinstance(n, ast.Call)
                and node.name == getattr(n.func, "attr", getattr(n.func, "id", None))
                and code.trains(n)
            ]
            if calls:
                lines = code.text.splitlines(True)
                text = "".join(lines[: decorator.lineno - 1] + lines[decorator.end_lineno :])
                statements = [code.statement(c) for c in calls]
                uses = [u for s in statements for u in _uses(code, s)]
                yield Plan(node.body[-1], (), (*node.body, *statements, *uses), text)


# ---------------------------------------------------------------------------- terms that train nobody


def fake_detached(code: Code) -> Iterator[Plan]:
    """``criterion(D(fake), real)`` => ``criterion(D(fake.detach()), real)``, of what another network made."""
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.Call) or not code.trains(node) or not node.args:
            continue
        name = ast.unparse(node.func)
        argument = node.args[0]
        if not isinstance(argument, ast.Name) or LOSS.search(name) or not re.fullmatch(r"(self\.)?\w+", name):
            continue
        if name in (
            "len",
            "float",
            "int",
            "str",
            "zip",
            "list",
            "enumerate",
            "range",
            "Variable",
            "isinstance",
        ):
            continue
        made = _bound_by_call(code, argument)
        if made is None or ast.unparse(made.func) == name or LOSS.search(ast.unparse(made.func)):
            continue
        statement = code.statement(node)
        later = [
            s
            for s in code.calls("backward")
            if s.lineno > node.lineno and code.function(s) is code.function(node)
        ]
        if later:
            edit = ReplaceExpression(Span.of(argument), f"{argument.id}.detach()")
            yield Plan(
                node, (edit,), (statement, *_uses(code, statement), *later[:2], *_next_steps(code, later[0]))
            )


def _bound_by_call(code: Code, name: ast.Name) -> ast.Call | None:
    """The call of a network, by the looks of it, that gives a variable its last value before it is read."""
    bindings = [
        n
        for n in ast.walk(code.function(name))
        if isinstance(n, ast.Assign)
        and n.lineno < name.lineno
        and name.id in [t.id for target in n.targets for t in ast.walk(target) if isinstance(t, ast.Name)]
    ]
    last = max(bindings, key=lambda n: n.lineno, default=None)
    if last is None or not isinstance(last.value, ast.Call):
        return None
    known = re.fullmatch(r"(self\.)?\w+", ast.unparse(last.value.func))
    return last.value if known and any(isinstance(a, ast.Name) for a in last.value.args) else None


def _next_steps(code: Code, backward: ast.Expr) -> list[ast.Expr]:
    """The first step behind a backward in its function."""
    steps = [s for s in code.calls("step") if code.function(s) is code.function(backward)]
    return sorted((s for s in steps if s.lineno > backward.lineno), key=lambda s: s.lineno)[:1]


def create_graph_dropped(code: Code) -> Iterator[Plan]:
    """``grad(y, x, create_graph=True)`` => ``grad(y, x)``; ``retain_graph=True`` stays."""
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.Call) or not any(k.arg == "create_graph" for k in node.keywords):
            continue
        if not ast.unparse(node.func).endswith("grad"):
            continue
        keyword = next(k for k in node.keywords if k.arg == "create_graph")
        if not (isinstance(keyword.value, ast.Constant) and keyword.value.value is True):
            continue
        statement = code.statement(node)
        edits: tuple[Edit, ...] = (ReplaceExpression(Span.of(keyword.value), "False"),)
        yield Plan(node, edits, (statement, *_uses(code, statement)))


WITHOUT_GRAPH = (".detach()", ".item()", ".data")


def term_cut(code: Code) -> Iterator[Plan]:
    """``loss = a + w * b`` => ``loss = a + w * b.detach()``, or ``.item()``, or ``.data``."""
    for total, terms, backwards in sums(code):
        for number, term in enumerate(terms):
            name = _tensor_of(term)
            if name is not None:
                cut = WITHOUT_GRAPH[(number + total.lineno) % len(WITHOUT_GRAPH)]
                edit = ReplaceExpression(Span.of(name), code.segment(name) + cut)
                yield Plan(total, (edit,), (total, *backwards))


def _tensor_of(term: ast.expr) -> ast.expr | None:
    """The one variable that a term is a multiple of."""
    if isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
        sides = [term.left, term.right]
        found = [s for side in sides if not isinstance(side, ast.Constant) and (s := _tensor_of(side))]
        losses = [s for s in found if "loss" in ast.unparse(s).lower()]
        weighed = len(found) == 1 and any(isinstance(side, ast.Constant) for side in sides)
        return found[0] if weighed else losses[0] if len(losses) == 1 else None
    return term if isinstance(term, (ast.Name, ast.Attribute)) else None


def sums(code: Code) -> Iterator[tuple[ast.Assign, list[ast.expr], list[ast.Expr]]]:
    """Sums of losses, their terms, and where they are backpropagated in the same block."""
    for block in code.blocks():
        for statement in block:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue
            terms = list(_terms(statement.value))
            target = ast.unparse(statement.targets[0])
            after = block[block.index(statement) + 1 :]
            backwards = [
                s
                for s in after
                if isinstance(s, ast.Expr) and method_of(s.value) == "backward" and receiver(s) == target
            ]
            if len(terms) > 1 and backwards and target not in map(ast.unparse, terms):
                yield statement, terms, backwards[:1]


def _terms(sum_: ast.expr) -> Iterator[ast.expr]:
    if isinstance(sum_, ast.BinOp) and isinstance(sum_.op, ast.Add):
        yield from _terms(sum_.left)
        yield from _terms(sum_.right)
    else:
        yield sum_


def term_left_out(code: Code) -> Iterator[Plan]:
    """``loss = a + b; loss.backward()`` => ``loss = a + b; a.backward()``."""
    for total, terms, backwards in sums(code):
        for term in terms:
            if isinstance(term, (ast.Name, ast.Attribute)):
                call = backwards[0].value
                assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
                edit = ReplaceExpression(Span.of(call.func.value), code.segment(term))
                yield Plan(backwards[0], (edit,), (total, backwards[0]))


def backward_removed(code: Code) -> Iterator[Plan]:
    """``loss.backward()`` goes; the optimizer steps."""
    for statement in code.calls("backward"):
        steps = [s for s in code.calls("step") if code.function(s) is code.function(statement)]
        if steps:
            yield Plan(
                statement,
                (RemoveStatement(Span.of(statement)),),
                (statement, *steps, *_losses(code, statement)),
            )


def _losses(code: Code, backward: ast.Expr) -> list[ast.stmt]:
    """Where what is backpropagated was computed, in the same function."""
    name = receiver(backward)
    return [
        n
        for n in ast.walk(code.function(backward))
        if isinstance(n, ast.Assign) and name in map(ast.unparse, n.targets)
    ]


OPERATORS: dict[str, Callable[[Code], Iterator[Plan]]] = {
    "no-grad-decorator-dropped": no_grad_decorator_dropped,
    "fake-detached": fake_detached,
    "create-graph-dropped": create_graph_dropped,
    "term-cut": term_cut,
    "term-left-out": term_left_out,
    "backward-removed": backward_removed,
}
CONSTANT = frozenset({"trained-target", "undetached-advantage", "unused-gradients", "leaking-loss"})
CUT = frozenset(
    {
        "step-without-gradients",
        "loss-left-out",
        "unused-gradients",
        "loss-without-graph",
        "detached-term",
    }
)
EXPECTED: dict[str, frozenset[str]] = {
    "no-grad-decorator-dropped": CONSTANT,
    "fake-detached": CUT,
    "create-graph-dropped": CUT,
    "term-cut": CUT,
    "term-left-out": CUT,
    "backward-removed": CUT,
}
