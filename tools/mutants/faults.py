"""Plants gradient mistakes in training code, one at a time.

Each operator of :data:`OPERATORS` looks at the syntax of a file, names the places where it could plant its
fault, and gives for each the edits. Whether what comes out is a fault at all is not decided here: dropping
a second detach changes nothing. See :mod:`judge`.
"""

from __future__ import annotations

import ast
import itertools
import random
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

import by_definition
import constants
import sequence
import wiring
from syntax import (
    NO_TENSORS,
    NOT_OPTIMIZERS,
    Code,
    Plan,
    Project,
    holds,
    is_call,
    method_of,
    receiver,
    without_head,
)

from gradfix.core.codemod import Edit, MoveStatement, RemoveStatement, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rewriting.rewrite import apply_fixes

DETACHING = re.compile(r"\.detach_?\(\)|\.data\b|\brepackage\w*\(")


@dataclass(frozen=True)
class Mutant:
    """A file with one planted fault."""

    operator: str
    line: int
    """Where in the original it was planted."""
    text: str
    places: frozenset[int]
    """The lines of the mutant at which a finding may point to say that it found this fault."""
    watched: frozenset[int]
    """The lines of the original that must have run for a run to say anything about it."""
    function: str
    """The function or method in which it was planted; empty at the top of the file."""
    handed_in: bool = False
    """Whether the loss is an argument of the function: what else goes through its graph is its caller's."""


# ---------------------------------------------------------------------------- graphs not cut


def detach_dropped(code: Code) -> Iterator[Plan]:
    """``D(fake.detach())`` => ``D(fake)``; also a name of its own, and ``.data``."""
    for node in ast.walk(code.tree):
        if not code.trains(node):
            continue
        plain = isinstance(node, ast.Call) and method_of(node) == "detach" and not node.args
        data = isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load)
        if data and NO_TENSORS.search(ast.unparse(node.value)):  # type: ignore[attr-defined]
            continue
        if not (plain or data):
            continue
        inner = node.func.value if isinstance(node, ast.Call) else node.value  # type: ignore[attr-defined]
        outer = code.parents[node]
        argument = isinstance(outer, ast.Call) and node in outer.args and not _reads_only(outer)
        statement = code.statement(node)
        renamed = (
            plain
            and isinstance(outer, ast.Assign)
            and isinstance(outer.targets[0], ast.Name)
            and ast.unparse(outer.targets[0]) != ast.unparse(inner)
            and not _carried(code, outer)
        )
        if (argument and not _hands_over_state(code, statement)) or renamed:
            uses = (
                list(_loads(code, outer.targets[0].id, code.function(node)))  # type: ignore[attr-defined]
                if renamed
                else []
            )
            yield Plan(
                node,
                (ReplaceExpression(Span.of(node), code.segment(inner)),),
                (statement, *(code.statement(u) for u in uses)),
            )


def _reads_only(call: ast.Call) -> bool:
    """Whether a call only looks at numbers: it builds no graph that a backward could follow."""
    name = ast.unparse(call.func).rsplit(".", 1)[-1]
    return name in {
        "print",
        "append",
        "float",
        "int",
        "str",
        "len",
        "format",
        "write",
        "save",
        "imshow",
        "item",
        "add_scalar",
        "add_image",
        "add_images",
        "make_grid",
        "save_image",
        "log",
        "update",
        "plot",
        "copy_",
        "fill_",
        "images",
        "denorm",
        "tensor2im",
        "Variable",
        "info",
    }


def _loads(code: Code, name: str, scope: ast.AST) -> Iterator[ast.Name]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def no_grad_dropped(code: Code) -> Iterator[Plan]:
    """``with torch.no_grad(): fake = G(z)`` => ``fake = G(z)``."""
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.With) or len(node.items) != 1 or not code.trains(node):
            continue
        if ast.unparse(node.items[0].context_expr) not in ("torch.no_grad()", "no_grad()"):
            continue
        text = without_head(code, node)
        if holds(node, "backward") or text is None:
            continue
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        uses = [u for name in names for u in _loads(code, name, code.function(node))]
        yield Plan(node, (), (*node.body, *(code.statement(u) for u in uses)), text)


def _carried(code: Code, statement: ast.Assign) -> bool:
    """Whether what an assignment binds is read by an earlier statement of the loop: the next pass sees it."""
    loop = code.loop(statement)
    target = statement.targets[0]
    if isinstance(target, ast.Attribute):
        return True
    if loop is None or not isinstance(target, ast.Name):
        return False
    before = [n for n in _loads(code, target.id, loop) if n.lineno < statement.lineno]
    bound = [
        n
        for n in ast.walk(loop)
        if isinstance(n, ast.Name)
        and n.id == target.id
        and isinstance(n.ctx, ast.Store)
        and n.lineno < statement.lineno
    ]
    return bool(before) and not (bound and min(b.lineno for b in bound) < min(n.lineno for n in before))


def _hands_over_state(code: Code, statement: ast.stmt) -> bool:
    """Whether a statement is ``h = detached(h)``, in any writing."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    if isinstance(statement.value, ast.BinOp):
        return False  # ``loss = loss - value * gain.detach()`` adds something to what it was.
    target = ast.unparse(statement.targets[0]).strip("()")
    names = {ast.unparse(n) for n in ast.walk(statement.value) if isinstance(n, (ast.Name, ast.Attribute))}
    return all(part.strip() in names for part in target.split(","))


def state_detach_dropped(code: Code) -> Iterator[Plan]:
    """``h = h.detach()`` goes, ``h = h_next.detach()`` => ``h = h_next``."""
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.stmt) or not code.trains(node):
            continue
        text = ast.unparse(node) if isinstance(node, (ast.Assign, ast.Expr)) else ""
        if not DETACHING.search(text):
            continue
        if isinstance(node, ast.Expr) and method_of(node.value) == "detach_":
            yield _state(code, node, (RemoveStatement(Span.of(node)),), receiver(node))
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = ast.unparse(node.targets[0])
        calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call) and not _cuts(n)]
        if _hands_over_state(code, node) and not calls:
            yield _state(code, node, (RemoveStatement(Span.of(node)),), target)
        elif _carried(code, node) and _cuts(node.value):
            value = node.value
            inner = value.func.value if isinstance(value, ast.Call) else value.value  # type: ignore[attr-defined]
            yield _state(code, node, (ReplaceExpression(Span.of(value), code.segment(inner)),), target)


def _cuts(node: ast.AST) -> bool:
    """Whether an expression is a detach, or only wraps one."""
    if isinstance(node, ast.Attribute):
        return node.attr == "data"
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func).rsplit(".", 1)[-1]
    return name in ("detach", "Variable", "tuple", "list", "map") or name.startswith("repackage")


def _state(code: Code, node: ast.stmt, edits: tuple[Edit, ...], target: str) -> Plan:
    scope = code.loop(node) or code.function(node)
    names = [part.strip(" ()") for part in target.split(",")]
    uses = [
        code.statement(n)
        for n in ast.walk(scope)
        if isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) in names
    ]
    backwards = [s for s in code.calls("backward") if code.function(s) is code.function(node)]
    return Plan(node, edits, (*uses, *backwards))


def target_detach_dropped(code: Code) -> Iterator[Plan]:
    """``r + gamma * q.detach()`` => ``r + gamma * q``: where the two operators above do not plant."""
    others = {p.at for operator in (detach_dropped, state_detach_dropped) for p in operator(code)}
    for plan in constants.targets(code):
        if plan.at not in others and code.statement(plan.at) not in others:
            yield plan


# ---------------------------------------------------------------------------- graphs kept


def retain_added(code: Code) -> Iterator[Plan]:
    """``loss.backward()`` => ``loss.backward(retain_graph=True)``."""
    for statement in code.calls("backward"):
        call = statement.value
        assert isinstance(call, ast.Call)
        if any(k.arg in ("retain_graph", "retain_variables", "create_graph", None) for k in call.keywords):
            continue
        head = code.segment(call).rstrip()[:-1].rstrip().rstrip(",")
        comma = ", " if call.args or call.keywords else ""
        edit = ReplaceExpression(Span.of(call), f"{head}{comma}retain_graph=True)")
        yield Plan(statement, (edit,), (statement,), handed_in=_is_argument(code, call))


def _is_argument(code: Code, call: ast.Call) -> bool:
    """Whether a method is called on what a caller of the function hands in."""
    assert isinstance(call.func, ast.Attribute)
    function, loss = code.function(call), call.func.value
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not isinstance(loss, ast.Name):
        return False
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return loss.id in {a.arg for a in given} - _bound(function.body)


# ---------------------------------------------------------------------------- order


def _around(code: Code, zero: ast.Expr) -> tuple[ast.AST, ...]:
    """The statements to which a misplaced ``zero_grad`` matters."""
    optimizer = receiver(zero)
    steps = [s for s in code.calls("step") if code.function(s) is code.function(zero)]
    own = [s for s in steps if receiver(s) == optimizer] or steps
    backwards = [s for s in code.calls("backward") if code.function(s) is code.function(zero)]
    return (*own, *backwards)


def zero_between(code: Code) -> Iterator[Plan]:
    """``zero_grad(); backward(); step()`` => ``backward(); zero_grad(); step()``."""
    for block in code.blocks():
        for number, zero in enumerate(block):
            if not is_call(zero, "zero_grad"):
                continue
            assert isinstance(zero, ast.Expr)
            step = next((s for s in block[number:] if is_call(s, "step") and _fits(code, zero, s)), None)
            if step is not None and any(holds(s, "backward") for s in block[number : block.index(step)]):
                edit = MoveStatement(Span.of(zero), Span.of(step), "before")
                yield Plan(zero, (edit,), (zero, step))


def _fits(code: Code, zero: ast.Expr, step: ast.stmt) -> bool:
    """Whether a step may be that of what is cleared: the same optimizer, or a network is cleared."""
    assert isinstance(step, ast.Expr)
    if NOT_OPTIMIZERS.search(receiver(step)):
        return False
    optimizers = {receiver(s) for s in code.calls("step")}
    return receiver(step) == receiver(zero) or receiver(zero) not in optimizers


def zero_out_of_loop(code: Code) -> Iterator[Plan]:
    """``zero_grad`` is called once before the loop rather than in each pass."""
    for zero in code.calls("zero_grad"):
        loop = code.loop(zero)
        if loop is not None:
            edit = MoveStatement(Span.of(zero), Span.of(loop), "before")
            yield Plan(zero, (edit,), (zero, *_around(code, zero)))


def zero_removed(code: Code) -> Iterator[Plan]:
    """``zero_grad`` is not called."""
    for zero in code.calls("zero_grad"):
        yield Plan(zero, (RemoveStatement(Span.of(zero)),), _around(code, zero))


def zero_after_other_step(code: Code) -> Iterator[Plan]:
    """D's ``zero_grad`` is called after G's ``step`` instead of before D's backward."""
    for block in code.blocks():
        for zero in block:
            if not is_call(zero, "zero_grad"):
                continue
            assert isinstance(zero, ast.Expr)
            for step in block:
                if is_call(step, "step") and not _fits(code, zero, step):
                    if NOT_OPTIMIZERS.search(receiver(step)):  # type: ignore[arg-type]
                        continue
                    edit = MoveStatement(Span.of(zero), Span.of(step), "after")
                    yield Plan(zero, (edit,), (zero, *_around(code, zero)))


def swapped(code: Code) -> Iterator[Plan]:
    """``backward(); step()`` => ``step(); backward()``."""
    for block in code.blocks():
        for number, statement in enumerate(block):
            if not is_call(statement, "backward"):
                continue
            following = block[number + 1 : number + 4]
            step = next((s for s in following if is_call(s, "step") and _optimizes(s)), None)
            if step is None or any(holds(s, "backward") for s in following[: following.index(step)]):
                continue
            edit = MoveStatement(Span.of(step), Span.of(statement), "before")
            yield Plan(step, (edit,), (step, statement))


def _optimizes(step: ast.stmt) -> bool:
    assert isinstance(step, ast.Expr)
    return not NOT_OPTIMIZERS.search(receiver(step))


def step_early(code: Code) -> Iterator[Plan]:
    """``a.backward(); b.backward(); A.step(); B.step()`` => ``a.backward(); A.step(); b.backward(); ...``."""
    for block in code.blocks():
        backwards = [s for s in block if is_call(s, "backward")]
        for first, second in itertools.pairwise(backwards):
            after = block[block.index(second) + 1 :]
            steps = [s for s in after if is_call(s, "step") and _optimizes(s)]
            between = block[block.index(first) : block.index(second)]
            if len(steps) >= 2 and not any(holds(s, "step") for s in between):
                edit = MoveStatement(Span.of(steps[0]), Span.of(first), "after")
                yield Plan(steps[0], (edit,), (steps[0], first, second))


def forward_reused(code: Code) -> Iterator[Plan]:
    """``b = D(fake)`` after ``a = D(fake.detach())``: the second forward goes, and the first serves both."""
    for block in code.blocks():
        calls = [s for s in block if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)]
        for number, second in enumerate(calls):
            for first in calls[:number]:
                if not _repeats(first, second):
                    continue
                between = block[block.index(first) + 1 : block.index(second)]
                if not any(holds(s, "step") or holds(s, "backward") for s in between):
                    continue
                if _bound(between) & {n.id for n in ast.walk(second.value) if isinstance(n, ast.Name)}:
                    continue  # It is another prediction, of something else.
                if not isinstance(first.targets[0], ast.Name):
                    continue
                bare = [
                    ReplaceExpression(Span.of(a), code.segment(a.func.value))
                    for a in first.value.args  # type: ignore[attr-defined]
                    if method_of(a) == "detach"
                ]
                name = first.targets[0].id
                if name in _bound(between):
                    continue
                if ast.unparse(second.targets[0]) == name:
                    reuse: Edit = RemoveStatement(Span.of(second))
                else:
                    reuse = ReplaceExpression(Span.of(second.value), name)
                uses = [code.statement(u) for u in _loads(code, ast.unparse(second.targets[0]), code.tree)]
                yield Plan(second, (*bare, reuse), (first, second, *uses))
                break


def _bound(statements: list[ast.stmt]) -> set[str]:
    """The variables that statements bind."""
    return {
        n.id
        for s in statements
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _repeats(first: ast.Assign, second: ast.Assign) -> bool:
    """Whether two assignments call the same network on the same tensors, but for a detach in the first."""
    one, two = first.value, second.value
    assert isinstance(one, ast.Call) and isinstance(two, ast.Call)
    if ast.unparse(one.func) != ast.unparse(two.func) or one.keywords or two.keywords or not one.args:
        return False
    if "." in ast.unparse(one.func) and not ast.unparse(one.func).startswith("self."):
        return False
    undetached = [a.func.value if method_of(a) == "detach" else a for a in one.args]  # type: ignore[attr-defined]
    return [ast.unparse(a) for a in undetached] == [ast.unparse(a) for a in two.args] and any(
        isinstance(a, ast.Name) for a in two.args
    )


OPERATORS: dict[str, Callable[[Code], Iterator[Plan]]] = {
    "detach-dropped": detach_dropped,
    "no-grad-dropped": no_grad_dropped,
    "state-detach-dropped": state_detach_dropped,
    "forward-reused": forward_reused,
    "step-early": step_early,
    "swapped": swapped,
    "zero-between": zero_between,
    "zero-after-other-step": zero_after_other_step,
    "zero-out-of-loop": zero_out_of_loop,
    "zero-removed": zero_removed,
    "retain-added": retain_added,
    **by_definition.OPERATORS,
    **sequence.OPERATORS,
    "target-detach-dropped": target_detach_dropped,
    **constants.OPERATORS,
    **wiring.OPERATORS,
}

GRAPH = frozenset({"undetached-fake", "stale-forward", "carried-hidden-state", "graph-used-twice"})
ZERO = frozenset({"missing-zero-grad", "misplaced-zero-grad"})
EXPECTED: dict[str, frozenset[str]] = {
    "detach-dropped": GRAPH | constants.CONSTANT,
    "no-grad-dropped": GRAPH | constants.CONSTANT,
    "state-detach-dropped": GRAPH,
    "forward-reused": GRAPH,
    "step-early": GRAPH,
    "swapped": GRAPH | ZERO | {"step-before-backward"},
    "zero-between": ZERO,
    "zero-after-other-step": ZERO,
    "zero-out-of-loop": ZERO,
    "zero-removed": ZERO,
    "retain-added": frozenset({"needless-retain-graph"}),
    **by_definition.EXPECTED,
    **sequence.EXPECTED,
    "target-detach-dropped": GRAPH | constants.CONSTANT,
    **constants.EXPECTED,
    **wiring.EXPECTED,
}
"""The findings that name what an operator plants."""


def plant(
    text: str,
    per_operator: int,
    seed: str,
    project: Project | None = None,
    only: Container[str] = frozenset(OPERATORS),
) -> Iterator[Mutant]:
    """The mutants of a file, at most ``per_operator`` of each operator, drawn by ``seed``.

    ``project`` has the files around it; ``only`` these operators plant.
    """
    known = project.codes if project is not None else []
    code = next((code for code in known if code.text == text), None) or Code(text, project)
    for operator, places in OPERATORS.items():
        if operator not in only:
            continue
        plans = list(places(code))
        random.Random(f"{seed} {operator}").shuffle(plans)
        for plan in plans[:per_operator]:
            mutant = _mutant(code, operator, plan)
            if mutant is not None:
                yield mutant


def _mutant(code: Code, operator: str, plan: Plan) -> Mutant | None:
    text = plan.text
    if text is None:
        rewrite = apply_fixes(code.text, [plan.edits])
        if not rewrite.applied:
            return None
        text = rewrite.text
    try:
        changed = ast.dump(ast.parse(text)) != ast.dump(code.tree)
    except SyntaxError:
        return None
    if not changed:
        return None
    moved, fresh = _lines(code.text, text)
    involved = {line for node in plan.involved for line in _span(node)}
    places = {moved[line] for line in involved if line in moved} | fresh
    watched = frozenset({plan.at.lineno})  # type: ignore[attr-defined]
    at: int = plan.at.lineno  # type: ignore[attr-defined]
    return Mutant(operator, at, text, frozenset(places), watched, code.name(plan.at), plan.handed_in)


def _span(node: ast.AST) -> range:
    body = getattr(node, "body", None)
    last = body[0].lineno if isinstance(body, list) and body else node.end_lineno + 1  # type: ignore[attr-defined]
    return range(node.lineno, last)  # type: ignore[attr-defined]


def _lines(before: str, after: str) -> tuple[dict[int, int], set[int]]:
    """The new number of each line that was kept or replaced one by one, and the lines that are new."""
    moved: dict[int, int] = {}
    fresh: set[int] = set()
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for tag, start, end, to_start, to_end in matcher.get_opcodes():
        if tag == "equal" or (tag == "replace" and end - start == to_end - to_start):
            moved.update(zip(range(start + 1, end + 1), range(to_start + 1, to_end + 1)))
        if tag in ("insert", "replace"):
            fresh.update(range(to_start + 1, to_end + 1))
    return moved, fresh
