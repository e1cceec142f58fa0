"""Plants clippings, schedules and scalers in the wrong order, or leaves out what keeps them in order.

No gradient on the stage is long enough to be clipped, and no scaler is switched on there: these faults are
not decided by running. Instead each operator plants only where the code around leaves no doubt.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from syntax import NOT_OPTIMIZERS, Code, Plan, holds, is_call, receiver

from gradfix.core.codemod import MoveStatement, RemoveStatement
from gradfix.core.span import Span

CLIPS = frozenset({"clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_grad_value"})
LONGEST = 4
"""So many statements may stand between a backward, a clipping and a step that belong together."""


def clipping_early(code: Code) -> Iterator[Plan]:
    """``backward(); clip_grad_norm_(); step()`` => ``clip_grad_norm_(); backward(); step()``."""
    for block, clip, step in _clippings(code):
        before = block[: block.index(clip)]
        passes = [s for s in before if holds(s, "backward")]
        if not passes or not _calls_clip(clip) or _binds_what_follows(code, clip):
            continue
        first = next(s for s in passes if _one_pass(before, s))
        yield _moved(code, clip, step, first, "before")


def clipping_late(code: Code) -> Iterator[Plan]:
    """``backward(); clip_grad_norm_(); step()`` => ``backward(); step(); clip_grad_norm_()``."""
    for block, clip, step in _clippings(code):
        before = block[: block.index(clip)]
        if any(holds(s, "backward") for s in before) and not _binds_what_follows(code, clip):
            yield _moved(code, clip, step, step, "after")


def _moved(code: Code, clip: ast.stmt, step: ast.stmt, anchor: ast.stmt, side: str) -> Plan:
    edit = MoveStatement(Span.of(clip), Span.of(anchor), side)  # type: ignore[arg-type]
    return Plan(clip, (edit,), (clip, step, anchor))


def _clippings(code: Code) -> Iterator[tuple[list[ast.stmt], ast.stmt, ast.stmt]]:
    """Blocks with a statement that clips, and the last of the steps right behind it, if something clears."""
    for block in code.blocks():
        if not holds(code.function(block[0]), "zero_grad"):  # type: ignore[arg-type]
            continue
        for number, clip in enumerate(block):
            if not _clips(clip):
                continue
            after = block[number + 1 :]
            until = next((n for n, s in enumerate(after) if _begins_anew(s)), len(after))
            near = [s for s in after[:until] if _steps(s)]
            if near and after.index(near[0]) < LONGEST:
                yield block, clip, near[-1]


def _begins_anew(statement: ast.stmt) -> bool:
    return holds(statement, "zero_grad") or holds(statement, "backward")


def _one_pass(before: list[ast.stmt], first: ast.stmt) -> bool:
    """Whether all gradients that a step consumes are computed from a statement on."""
    since = before[before.index(first) :]
    return not any(_steps(s) or holds(s, "zero_grad") for s in since[1:])


def _steps(statement: ast.stmt) -> bool:
    """Whether a statement steps an optimizer, by itself or through a scaler."""
    if not is_call(statement, "step"):
        return False
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    through = "scaler" in receiver(statement) and len(statement.value.args) == 1
    return through or not NOT_OPTIMIZERS.search(receiver(statement))


def _clips(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but clip gradients, by torch or parameter by parameter."""
    if isinstance(statement, ast.If):
        return len(statement.body) == 1 and not statement.orelse and _clips(statement.body[0])
    if isinstance(statement, ast.For):
        return "parameters()" in ast.unparse(statement.iter) and all(map(_clamps, statement.body))
    return _calls_clip(statement)


def _calls_clip(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return _calls_clip(statement.body[0])
    if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(statement.value, ast.Call):
        return False
    function = statement.value.func
    return getattr(function, "attr", getattr(function, "id", "")) in CLIPS


def _clamps(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement).partition("(")[0].endswith(
        (".grad.data.clamp_", ".grad.clamp_")
    )


def _binds_what_follows(code: Code, statement: ast.stmt) -> bool:
    """Whether a statement binds a name that is read: it cannot move."""
    bound = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound -= {ast.unparse(statement.target)} if isinstance(statement, ast.For) else set()
    scope = code.function(statement)
    return any(
        isinstance(n, ast.Name) and n.id in bound and isinstance(n.ctx, ast.Load) for n in ast.walk(scope)
    )


def scheduler_early(code: Code) -> Iterator[Plan]:
    """``optimizer.step(); scheduler.step()`` => ``scheduler.step(); optimizer.step()``, for loops as well."""
    made = _schedules(code)
    for node in ast.walk(code.tree):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if not isinstance(block, list):
                continue
            for statement in block:
                if not isinstance(statement, ast.Expr) or not is_call(statement, "step"):
                    continue
                assert isinstance(statement.value, ast.Call)
                optimizer = made.get(receiver(statement))
                given = statement.value.args or statement.value.keywords
                if optimizer is None or given or code.loop(statement) is None:
                    continue
                before = block[: block.index(statement)]
                first = next((s for s in before if _trains_with(code, s, optimizer)), None)
                alone = ast.unparse(code.tree).count(ast.unparse(statement)) == 1
                if first is not None and alone:
                    edit = MoveStatement(Span.of(statement), Span.of(first), "before")
                    yield Plan(statement, (edit,), (statement, first))


def _schedules(code: Code) -> dict[str, str]:
    """The schedules of torch that are made once in the file, from their first value, and their optimizers."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        call = node.value
        if isinstance(call, ast.Call) and call.args:
            kind = ast.unparse(call.func).rsplit(".", 1)[-1]
            text = ast.unparse(call)
            known = kind.endswith("LR") or "WarmRestarts" in kind
            if known and "last_epoch" not in text and "Plateau" not in kind:
                found.setdefault(ast.unparse(node.targets[0]), []).append(ast.unparse(call.args[0]))
    return {name: optimizers[0] for name, optimizers in found.items() if len(optimizers) == 1}


def _trains_with(code: Code, statement: ast.stmt, optimizer: str) -> bool:
    """Whether a statement steps an optimizer, or is a loop or a call that does."""
    if isinstance(statement, ast.If):
        return False
    steps = [n for n in ast.walk(statement) if isinstance(n, ast.Expr) and _steps(n)]
    if any(optimizer in (receiver(n), *map(ast.unparse, getattr(n.value, "args", ()))) for n in steps):
        return not any(isinstance(n, ast.If) and holds(n, "step") for n in ast.walk(statement))
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    names = {f.name for f in code.training if isinstance(f, ast.FunctionDef)}
    return any(
        isinstance(c.func, ast.Name) and c.func.id in names and optimizer in map(ast.unparse, c.args)
        for c in calls
    )


def scaler_update_removed(code: Code) -> Iterator[Plan]:
    """``scaler.step(optimizer); scaler.update()`` => ``scaler.step(optimizer)``, if it is the only one."""
    updates = [s for s in _scaling(code, "update") if code.loop(s) is not None or code.trains(s)]
    for update in updates:
        same = [s for s in updates if receiver(s) == receiver(update)]
        steps = [s for s in _scaling(code, "step") if receiver(s) == receiver(update)]
        near = [s for s in steps if code.function(s) is code.function(update)]
        if len(same) == 1 and near:
            yield Plan(update, (RemoveStatement(Span.of(update)),), (update, *near))


def unscale_removed(code: Code) -> Iterator[Plan]:
    """``scaler.unscale_(optimizer); clip_grad_norm_()`` => ``clip_grad_norm_()``."""
    for unscale in _scaling(code, "unscale_"):
        block = next(
            b
            for field in ("body", "orelse", "finalbody")
            if isinstance(b := getattr(code.parents[unscale], field, None), list) and unscale in b
        )
        after = block[block.index(unscale) + 1 :][:LONGEST]
        clips = [s for s in after if _clips(s)]
        if clips:
            steps = [s for s in after if _steps(s)]
            removed = (RemoveStatement(Span.of(unscale)),)
            yield Plan(unscale, removed, (unscale, *clips, *steps))


def _scaling(code: Code, method: str) -> Iterator[ast.Expr]:
    """The statements that call a method of a scaler."""
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Expr) and is_call(node, method) and "scaler" in receiver(node).lower():
            yield node


OPERATORS: dict[str, Callable[[Code], Iterator[Plan]]] = {
    "clipping-early": clipping_early,
    "clipping-late": clipping_late,
    "scheduler-early": scheduler_early,
    "scaler-update-removed": scaler_update_removed,
    "unscale-removed": unscale_removed,
}
CLIPPING = frozenset({"misplaced-clipping"})
EXPECTED: dict[str, frozenset[str]] = {
    "clipping-early": CLIPPING,
    "clipping-late": CLIPPING,
    "scheduler-early": frozenset({"scheduler-before-optimizer"}),
    "scaler-update-removed": frozenset({"missing-scaler-update"}),
    "unscale-removed": CLIPPING,
}
