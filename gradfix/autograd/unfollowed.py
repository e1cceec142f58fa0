"""Why a training step was not followed, and what a person can do about it."""

from __future__ import annotations

import ast
import enum
import os
from collections.abc import Iterator
from typing import NamedTuple

from gradfix.autograd import imports
from gradfix.autograd.graph import Backward, Node, Step
from gradfix.autograd.program import MODULE, EntryPoint, Program
from gradfix.core.syntax import LOOPS, last_name, walk

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WHOLE = ("it", "the scripts that import it", MODULE)
"""What messages call the analyses that may come to any place."""
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
RUN_IT = "`gradfix run` looks at what really happens"


class Seen(enum.IntEnum):
    """How much a run has seen of a backward or a step, the most first."""

    ALL = enum.auto()
    STRANGER = enum.auto()
    """The optimizer that steps was passed in by a caller that is not seen."""
    BLIND = enum.auto()
    """Which parameters it reaches is not known."""
    SUBSTITUTED = enum.auto()
    CUT_OFF = enum.auto()
    NOTHING = enum.auto()


class Site(NamedTuple):
    """A place in the file that differentiates or steps: a call, or a method whose loss a framework takes."""

    node: ast.Call | ast.FunctionDef | ast.AsyncFunctionDef
    steps: bool = False


class Sighting(NamedTuple):
    """What has been seen of a place, by which way into the file."""

    degree: Seen
    entry: EntryPoint | None = None
    event: Backward | Step | None = None


UNSEEN = Sighting(Seen.NOTHING)


def why_not(program: Program, place: ast.AST, site: Site, sighting: Sighting) -> tuple[str, str]:
    """Why a place was not followed, and what a person can do about that."""
    if not isinstance(site.node, ast.Call) and sighting.degree is Seen.NOTHING:
        return _why_not_trained(site.node), RUN_IT
    match sighting.degree:
        case Seen.NOTHING:
            assert isinstance(site.node, ast.Call)
            return _why_not_reached(program, place, site.node, site.steps)
        case Seen.CUT_OFF:
            return _budget(program), RUN_IT
        case Seen.SUBSTITUTED:
            return "weights are replaced by computed tensors, which gradfix does not follow", RUN_IT
    if isinstance(sighting.event, Backward):
        return _why_blind(program, place, sighting.event, sighting.entry)
    assert sighting.event is not None
    return _why_stranger(program, place, sighting.event, sighting.entry)


def _why_not_trained(method: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Why the loss that a method returns to a framework was not seen to be differentiated."""
    if any(parameter.arg == "optimizer_idx" for parameter in method.args.args):
        return "Lightning 2 knows no `optimizer_idx`: several optimizers are stepped by hand"
    return "the framework calls backward, and what it is handed was not seen"


def name_of(program: Program, place: ast.AST) -> str:
    """What a function, a loop or a script is called."""
    if isinstance(place, LOOPS):
        return f"the loop at line {place.lineno}"
    if not isinstance(place, FUNCTIONS):
        return "the script"
    names = [place.name]
    names += [o.name for o in program.ancestors(place) if isinstance(o, (*FUNCTIONS, ast.ClassDef))]
    return ".".join(reversed(names))


def _short(program: Program, node: ast.expr | ast.stmt) -> str:
    text = " ".join(program.segment(node).split())
    return f"`{text}`" if len(text) <= 50 else f"`{text[:47]}...`"


def _at(program: Program, node: ast.AST) -> str:
    """A call, or whatever computes something, with its place."""
    assert isinstance(node, (ast.expr, ast.stmt))
    path, line = imports.place_of(node.lineno) or ("", node.lineno)
    where = f" of {os.path.basename(path)}" if path else ""
    return f"{_short(program, node)} in line {line}{where}"


# ---------------------------------------------------------------------------- what was not understood


def _why_stranger(program: Program, place: ast.AST, event: Step, entry: EntryPoint | None) -> tuple[str, str]:
    """Why it is not known what an optimizer owns."""
    call = event.site
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.lineno <= 0:
        return f"what the optimizer `{event.optimizer.label}` owns is not known", RUN_IT
    stepped = call.args[0] if event.scaler is not None and call.args else call.func.value
    origin, advice = _origin(program, place, stepped, entry)
    return f"what the optimizer {_short(program, stepped)} owns is not known{origin}", advice


def _why_blind(
    program: Program, place: ast.AST, event: Backward, entry: EntryPoint | None
) -> tuple[str, str]:
    """Why it is not known which parameters something that is differentiated leads to."""
    loss = _loss(program, event)
    inputs = _inputs(event)
    if inputs is not None and event.roots and not event.certain:
        return f"what {_at(program, inputs)} holds is not known", RUN_IT
    if inputs is not None and event.roots and not event.visited:
        return f"no way from {loss} to {_at(program, inputs)} was seen", RUN_IT
    nodes = sorted(event.visited, key=lambda node: node.serial)
    reasons = [_why_unknown(program, place, node, entry) for node in nodes if _is_unknown(node)]
    if reasons:
        # What a person can do something about comes first, then what the file tells the origin of.
        return min(reasons, key=lambda one: (one[1] == RUN_IT, ": " not in one[0]))
    doubtful = [node for node in nodes if not event.visited[node]]
    if doubtful:
        return f"whether {loss} depends on {_at(program, doubtful[-1].site)} is not certain", RUN_IT
    origin, advice = "", RUN_IT
    if event.receivers and not _may_be_argument(event):
        origin, advice = _origin(program, place, event.receivers[0], entry)
    assigned = "" if origin else _assigned(event, place)
    return f"how {loss} is computed{assigned} could not be followed{origin}", advice


def _why_unknown(program: Program, place: ast.AST, node: Node, entry: EntryPoint | None) -> tuple[str, str]:
    """What is not known of a call that has left a graph, and where what is called comes from."""
    at = _at(program, node.site)
    network = node.opaque or node.leaves
    reason = f"which parameters {at} uses is not known" if network else f"what {at} computes is not known"
    if node.site.lineno <= 0 or not isinstance(node.site, ast.expr):  # type: ignore[attr-defined]
        return reason, RUN_IT
    origin, advice = _origin(program, place, node.site, entry)
    return reason + origin, advice


def _assigned(event: Backward, place: ast.AST) -> str:
    """The line in which a variable that is differentiated was assigned last."""
    loss = event.receivers[0] if event.receivers else None
    if not isinstance(loss, ast.Name) or _may_be_argument(event):
        return ""
    before = [
        node.lineno
        for node in walk(place)
        if isinstance(node, ast.Name)
        and node.id == loss.id
        and isinstance(node.ctx, ast.Store)
        and node.lineno < getattr(event.site, "lineno", 0)
    ]
    return f" in line {max(before)}" if before else ""


def _loss(program: Program, event: Backward) -> str:
    """What is differentiated; where that may be the object or the argument of a method, the whole call."""
    if _may_be_argument(event):
        assert isinstance(event.site, ast.Call)
        return f"the loss of {_short(program, event.site)}"
    return _short(program, event.receivers[0]) if event.receivers else "the loss"


def _may_be_argument(event: Backward) -> bool:
    """Whether the loss may be what a method is given, and not its object: ``engine.backward(loss)``."""
    call = event.site
    if not isinstance(call, ast.Call) or not call.args or not isinstance(call.func, ast.Attribute):
        return False
    return event.receivers[:1] == [call.func.value]


def _inputs(event: Backward) -> ast.expr | None:
    """What a call of ``autograd.grad`` differentiates with respect to."""
    if event.accumulates or not isinstance(event.site, ast.Call):
        return None
    named = (keyword.value for keyword in event.site.keywords if keyword.arg == "inputs")
    return next(named, event.site.args[1] if len(event.site.args) > 1 else None)


def _is_unknown(node: Node) -> bool:
    """Whether a node stands for what unseen code computes, or has parameters of which not all is known."""
    if node.opaque or node.foreign or (not node.edges and not node.leaves):
        return True
    return any(not sure or leaf.requires is None for leaf, sure, _ in node.leaves)


def written(expression: ast.AST) -> str:
    """A variable, an attribute or an item, by its text; items of one container are alike."""
    match expression:
        case ast.Name():
            return expression.id
        case ast.Attribute():
            return f"{written(expression.value)}.{expression.attr}"
        case ast.Subscript():
            return f"{written(expression.value)}[]"
    return "?"


def _origin(program: Program, place: ast.AST, used: ast.expr, entry: EntryPoint | None) -> tuple[str, str]:
    """Where something that is not known comes from, as far as the file says, and what a person can do."""
    while isinstance(used, (ast.Call, ast.Subscript, ast.BinOp)):
        used = (
            used.func
            if isinstance(used, ast.Call)
            else used.left
            if isinstance(used, ast.BinOp)
            else used.value
        )
    while isinstance(used, ast.Attribute) and not isinstance(used.value, ast.Name):
        used = used.value
    holder = used.value if isinstance(used, ast.Attribute) else used
    begun = entry is not None and entry.node is place
    if begun and _is_parameter(program, place, holder) and getattr(holder, "id", "") != "self":
        return _by_caller(program, place, holder)
    around = place if isinstance(used, ast.Name) and isinstance(place, FUNCTIONS) else program.tree
    made = [
        node
        for node in walk(around)
        if isinstance(node, ast.Assign)
        and not isinstance(node.value, ast.Constant)
        and any(written(target) == written(used) for target in node.targets)
        and all(written(part) != written(used) for part in walk(node.value))  # ``net = net.to(device)``
    ]
    if len(made) != 1:
        return "", RUN_IT
    value = made[0].value
    if begun and _is_parameter(program, made[0], value):
        return _by_caller(program, place, value)
    return (
        f": {_short(program, used)} is made by {_at(program, value)}" if isinstance(value, ast.Call) else ""
    ), RUN_IT


def _is_parameter(program: Program, place: ast.AST, expression: ast.expr) -> bool:
    """Whether an expression at a place is a parameter of the function that it stands in."""
    function = next((one for one in (place, *program.ancestors(place)) if isinstance(one, FUNCTIONS)), None)
    if function is None or not isinstance(expression, ast.Name):
        return False
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return any(one.arg == expression.id for one in arguments)


def _by_caller(program: Program, place: ast.AST, parameter: ast.expr) -> tuple[str, str]:
    """That something is given by a caller, and what has kept that from being followed."""
    name = written(parameter)
    cut_off = next((one for one in program.messages if _is_budget(one, *WHOLE)), None)
    if cut_off is not None:
        return f": `{name}` comes from a caller, and {cut_off}", RUN_IT
    call = _call_of(program, place)
    if call is not None:
        return f": `{name}` comes from the call in line {call.lineno}, which was not followed", _start(
            program, call
        )
    return f": `{name}` comes from a caller that gradfix did not find", _start(program, place)


def _call_of(program: Program, place: ast.AST) -> ast.Call | None:
    """The first call in the file of a function by its name, or of a method of that name.

    ``optimizer.step()`` is no call of a function that is called ``step``.
    """
    called = ast.Attribute if isinstance(program.parent(place), ast.ClassDef) else ast.Name
    calls = (
        node
        for node in walk(program.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, called)
        and last_name(node) == getattr(place, "name", None)
    )
    return min(calls, key=lambda call: call.lineno, default=None)


def _start(program: Program, node: ast.AST) -> str:
    """What a person can do about a function that nobody calls: that which holds a node."""
    function = next((one for one in (node, *program.ancestors(node)) if isinstance(one, FUNCTIONS)), None)
    if function is None:
        return RUN_IT
    name = name_of(program, function)
    return f"call `{name}` in this file, or in a script in its folder or above that imports it"


# ---------------------------------------------------------------------------- what was not reached


def _budget(program: Program) -> str:
    return next(filter(_is_budget, program.messages), "the analysis was cut off")


def _is_budget(message: str, *names: str) -> bool:
    """Whether a message tells that an analysis was cut off, of one of these names, if any is given."""
    return "stopped" in message and (not names or any(f" {name} stopped" in message for name in names))


def _why_not_reached(program: Program, place: ast.AST, call: ast.Call, steps: bool) -> tuple[str, str]:
    """Why no run of the model came to a call, and what a person can do."""
    constant = next(_constant_conditions(program, call), None)
    if constant is not None:
        line, text = constant
        return (
            f"line {call.lineno} never runs: it is under `{text}` in line {line}, which never applies",
            "give the constant the other value and check again",
        )
    names = (*WHOLE, getattr(place, "name", MODULE))
    cut_off = next((one for one in program.messages if _is_budget(one, *names)), None)
    if cut_off is not None:
        return cut_off, RUN_IT
    entered = {found for entry in program.entry_points for run in entry.runs for found in run.entered}
    if isinstance(place, FUNCTIONS) and place not in entered:
        known = _call_of(program, place)
        if known is not None:
            return f"the call of it in line {known.lineno} was not come to", _start(program, known)
        return "nothing that calls it was found", _start(program, place)
    if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", None) == "self":
        return f"what {_short(program, call)} does was not seen", RUN_IT
    ended = _ended_before(program, place)
    if ended is not None:
        return f"the analysis ended in line {ended}, which raises or exits as far as can be seen", RUN_IT
    if steps and isinstance(call.func, ast.Attribute):
        made, _ = _origin(program, place, call.func.value, None)
        return f"no step of an optimizer was seen at {_short(program, call)}{made}", RUN_IT
    nothing = f"nothing was seen to be differentiated by {_short(program, call)}"
    return nothing + _under(program, call), RUN_IT


def _under(program: Program, call: ast.Call) -> str:
    """The condition that a call is under, or behind, in its function."""
    inner: ast.AST = call
    for outer in program.ancestors(call):
        if isinstance(outer, ast.If) and inner is not outer.test:
            return f"; it is under `{_head(program, outer)}` in line {outer.lineno}"
        body = getattr(outer, "body", [])
        # The body of a lambda is an expression; that of ``match`` is in its cases.
        if isinstance(body, list) and inner in body:
            for before in reversed(body[: body.index(inner)]):
                if isinstance(before, ast.If) and isinstance(before.body[-1], LEAVING):
                    return f"; `{_head(program, before)}` in line {before.lineno} may leave before"
        if isinstance(outer, FUNCTIONS):
            break
        inner = outer
    return ""


def _head(program: Program, condition: ast.If) -> str:
    return f"if {_short(program, condition.test).strip('`')}"


def _ended_before(program: Program, place: ast.AST) -> int | None:
    """The line that ends every run which could have come to a place, if one does."""
    entries = [entry for entry in program.entry_points if entry.node in (place, program.tree)]
    runs = [run for entry in entries for run in entry.runs]
    lines = {getattr(run.ended_in, "lineno", 0) for run in runs if run.raised}
    return min(lines) if runs and all(run.raised for run in runs) and min(lines) > 0 else None


def _constant_conditions(program: Program, call: ast.Call) -> Iterator[tuple[int, str]]:
    """The conditions around a call that a constant decides against it: their lines, and what they say."""
    inner: ast.AST = call
    for outer in program.ancestors(call):
        if isinstance(outer, (ast.If, ast.While)):
            value = _constant(program, outer.test)
            if value is not None and value != (inner in outer.body) and inner is not outer.test:
                kind = "if" if isinstance(outer, ast.If) else "while"
                negated = "else of " if inner in outer.orelse else ""
                yield outer.lineno, f"{negated}{kind} {' '.join(program.segment(outer.test).split())}"
        inner = outer


def _constant(program: Program, test: ast.expr) -> bool | None:
    """Which way a condition goes for good: a constant, or a name that is bound once, to one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        value = _constant(program, test.operand)
        return None if value is None else not value
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Name):
        bound = [
            node
            for node in walk(program.tree)
            if isinstance(node, ast.Name) and node.id == test.id and not isinstance(node.ctx, ast.Load)
        ]
        holder = program.parent(bound[0]) if len(bound) == 1 else None
        if isinstance(holder, ast.Assign) and isinstance(holder.value, ast.Constant):
            return bool(holder.value.value)
    return None
