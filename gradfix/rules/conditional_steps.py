"""Conditions between a backward and its step: does the step wait for several iterations, or leave some out?

Gradients that a step waits for add up on purpose, and are to be cleared when it has consumed them. Of an
iteration that is left out (``if torch.isfinite(loss)``) nothing may stay. Which of the two a condition means
is told from its words; where they do not tell, nothing is known.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator

from gradfix.autograd.graph import Backward, Event, Step
from gradfix.autograd.program import EntryPoint, Program
from gradfix.autograd.trace_queries import backwards, gradient_clears, steps
from gradfix.core.syntax import LOOPS, last_name

FINITE = frozenset({"isfinite", "isnan", "isinf"})
"""What a script asks in order to leave out an iteration whose loss or gradients are no numbers."""
SYNCHRONISING = frozenset({"sync_gradients"})
"""Attributes of frameworks that count iterations by themselves."""
PURE = frozenset({"len", "isinstance", "hasattr", "getattr", "bool", "int", "max", "min", "abs"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
EXPANDED = 4
"""How many assignments behind each other are looked through: ``due = (i + 1) % n == 0``."""


class Means(enum.Enum):
    """What a condition around a step means for the iterations in which it does not hold."""

    NOTHING = enum.auto()
    """It comes out the same in all of them."""
    WAITS = enum.auto()
    """It counts iterations."""
    SKIPS = enum.auto()
    """It drops an iteration that has gone wrong."""
    UNKNOWN = enum.auto()


def clearing_statement(program: Program, backward: Backward, step: Step) -> ast.stmt | bool:
    """Where the gradients of a step are to be cleared.

    A statement: the step waits for several iterations, and they are cleared after this statement. True: it
    does not wait, and they may be cleared before the backward. False: it is not known whether it waits.
    """
    if counted_by_a_framework(program, step):
        return program.statement(step.site)
    if program.function(backward.site) is not program.function(step.site):
        return not _left_out(program, backward, step)
    at = program.statement(step.site)
    around = set(program.ancestors(backward.site))
    region = next(
        (a for a in program.ancestors(at) if a in around and isinstance(a, (*LOOPS, *FUNCTIONS))), None
    )
    if region is None or any(isinstance(a, (ast.IfExp, ast.BoolOp)) for a in program.ancestors(step.site)):
        return region is None
    sites = _sites(program, step)
    found: ast.stmt | None = None
    while True:
        outer = program.parent(at)
        assert outer is not None
        tests = _skipping(program, at, backward, region)
        if isinstance(outer, ast.If) and outer not in around and not _steps_anyway(outer, sites):
            tests.append(outer.test)
        if isinstance(outer, ast.match_case) and outer not in around:
            return False
        for test in tests:
            means = _means(program, test, region)
            if means is Means.UNKNOWN or (means is Means.SKIPS and found is not None):
                return False
            if means is Means.WAITS and found is None:
                found = at
        if outer in around:
            break
        at = next(a for a in (outer, *program.ancestors(outer)) if isinstance(a, ast.stmt))
    if found is None:
        return True
    inside = set(ast.walk(found))
    return found if sites <= inside and not isinstance(found, ast.Return) else False


def counted_by_a_framework(program: Program, event: Event) -> bool:
    """Whether a step or a clearing stands within ``with accelerator.accumulate(net):``: most of its calls do
    nothing.

    Whatever else may be called so, gradients may be cleared behind a step.
    """
    entered = (one for one in program.ancestors(event.site) if isinstance(one, (ast.With, ast.AsyncWith)))
    items = (item.context_expr for one in entered for item in one.items)
    return any(isinstance(one, ast.Call) and last_name(one) == "accumulate" for one in items)


def cleared_otherwise(entry: EntryPoint, step: Step) -> bool:
    """Whether iterations that leave the step out clear what it consumes: ``else: optimizer.zero_grad()``.

    A run that takes the other way in all iterations (another training mode) does not count.
    """
    if not step.loops:
        return False
    loop = step.loops[-1][0]
    for run in entry.runs:
        flipped = run.scenario.flipped
        if flipped and not any(entry.varying.get(site, True) for site in flipped):
            continue
        mine = [o.state for o in run.optimizers if o.state.created is step.optimizer.created]
        if run.impossible or any(s.optimizer in mine for s in steps(run)):
            continue
        owned = {leaf for state in mine for leaf in state.owned()}
        if any(
            not owned.isdisjoint(z.leaves) and any(at is loop for at, _ in z.loops)
            for z in gradient_clears(run)
        ):
            return True
    return False


def _sites(program: Program, step: Step) -> set[ast.AST]:
    """Every place where the optimizer of a step is seen to step."""
    runs = [run for entry in program.entry_points for run in entry.runs]
    return {s.site for run in runs for s in steps(run) if s.optimizer.created is step.optimizer.created} | {
        step.site
    }


def _steps_anyway(condition: ast.If, sites: set[ast.AST]) -> bool:
    """Whether both branches of a condition step the optimizer, in two ways."""
    return all(
        any(node in sites for statement in suite for node in ast.walk(statement))
        for suite in (condition.body, condition.orelse)
    )


def _left_out(program: Program, backward: Backward, step: Step) -> bool:
    """Whether the step is left out, in some run, in an iteration that has the backward."""
    for run in (run for entry in program.entry_points for run in entry.runs):
        if run.impossible or run.raised:
            continue
        taken = [s for s in steps(run) if s.optimizer.created is step.optimizer.created]
        for one in backwards(run):
            if one.site is backward.site and not any(
                s.serial > one.serial and s.loops == one.loops[: len(s.loops)] for s in taken
            ):
                return True
    return False


def _skipping(program: Program, at: ast.stmt, backward: Backward, region: ast.AST) -> list[ast.expr]:
    """Conditions under which an iteration ends between the backward and ``at``, in the block of ``at``."""
    block = program.suite_around(at)
    start = backward.site
    found: list[ast.expr] = []
    ends: type[ast.stmt] = ast.Continue if isinstance(region, LOOPS) else ast.Return
    for statement in block[: block.index(at)]:
        if (statement.end_lineno or 0) < getattr(start, "lineno", 0):
            continue
        for node in _of_the_iteration(statement, ends):
            for outer in program.ancestors(node):
                if isinstance(outer, ast.If) and node.lineno > getattr(start, "lineno", 0):
                    found.append(outer.test)
                if outer is statement:
                    break
    return found


def _of_the_iteration(statement: ast.AST, ends: type[ast.stmt]) -> Iterator[ast.stmt]:
    """Where a statement ends the iteration that it belongs to."""
    if isinstance(statement, ends):
        yield statement
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return
    if isinstance(statement, LOOPS) and ends is ast.Continue:
        return
    for inner in ast.iter_child_nodes(statement):
        yield from _of_the_iteration(inner, ends)


def _means(program: Program, test: ast.expr, region: ast.AST) -> Means:
    """What a condition means, by its words and those of what it is computed from in each iteration."""
    changed = [
        node for node in ast.walk(region) if isinstance(node, (ast.Name, ast.Attribute)) and _bound(node)
    ]
    names = {node.id for node in changed if isinstance(node, ast.Name)}
    if isinstance(region, (ast.FunctionDef, ast.AsyncFunctionDef)):
        names |= {a.arg for a in ast.walk(region.args) if isinstance(a, ast.arg) and a.arg != "self"}
    nodes = list(_words(test, region))
    if {getattr(n, "attr", getattr(n, "id", "")) for n in nodes} & FINITE:
        return Means.UNKNOWN if any(_divides(n) for n in nodes) else Means.SKIPS
    divided = {inner for n in nodes if _divides(n) for inner in ast.walk(n)}
    calls = [n for n in nodes if isinstance(n, ast.Call) and n not in divided]
    if any(not (isinstance(c.func, ast.Name) and c.func.id in PURE) for c in calls):
        return Means.UNKNOWN
    if any(_divides(n) or getattr(n, "attr", "") in SYNCHRONISING for n in nodes):
        return Means.WAITS
    varying = [
        n
        for n in nodes
        if (isinstance(n, ast.Name) and n.id in names)
        or (isinstance(n, ast.Attribute) and assigned_again(program, n.attr))
    ]
    if not varying:
        return Means.NOTHING
    compared = [n for n in nodes if isinstance(n, ast.Compare)]
    counted = {_text(n) for n in varying} & (_counters(region) | _numbers(region))
    if (
        not counted
        or not compared
        or any(isinstance(op, (ast.Is, ast.IsNot)) for c in compared for op in c.ops)
    ):
        return Means.UNKNOWN
    exact = all(isinstance(op, (ast.Eq, ast.NotEq)) for c in compared for op in c.ops)
    return Means.WAITS if exact or counted & _begun_again(region) else Means.UNKNOWN


def _words(test: ast.AST, region: ast.AST, depth: int = EXPANDED) -> Iterator[ast.AST]:
    """The nodes of a condition, and of what the variables in it were assigned in the same iteration."""
    for node in ast.walk(test):
        yield node
        if isinstance(node, ast.Name) and depth:
            for other in ast.walk(region):
                if isinstance(other, ast.Assign) and any(
                    isinstance(t, ast.Name) and t.id == node.id for t in other.targets
                ):
                    yield from _words(other.value, region, depth - 1)


def _bound(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _divides(node: ast.AST) -> bool:
    """Whether it is the rest of a division: ``i % n``, ``i & 1``."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.BitAnd))


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def assigned_again(program: Program, attribute: str) -> bool:
    """Whether an attribute of that name is assigned outside of constructors."""
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Attribute) and node.attr == attribute and _bound(node):
            if getattr(program.function(node), "name", "") != "__init__":
                return True
    return False


def _counters(region: ast.AST) -> set[str]:
    """What is counted up or down by one."""
    return {
        _text(node.target)
        for node in ast.walk(region)
        if isinstance(node, ast.AugAssign)
        and isinstance(node.op, (ast.Add, ast.Sub))
        and isinstance(node.value, ast.Constant)
    }


def _numbers(region: ast.AST) -> set[str]:
    """The number of an iteration, by the variable that a loop gives it."""
    if not isinstance(region, (ast.For, ast.AsyncFor)) or not isinstance(region.iter, ast.Call):
        return set()
    counting = region.iter
    if counting.args and isinstance(counting.args[0], ast.Call) and last_name(counting) != "enumerate":
        counting = counting.args[0]  # tqdm(enumerate(batches))
    name, target = last_name(counting), region.target
    if name == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    elif name not in ("range", "trange"):
        return set()
    return {target.id} if isinstance(target, ast.Name) else set()


def _begun_again(region: ast.AST) -> set[str]:
    """What is set to a number within the loop."""
    return {
        _text(target)
        for node in ast.walk(region)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
    }
