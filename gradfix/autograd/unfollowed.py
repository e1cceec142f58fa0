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
from gradfix.autograd.relevance import walk
from gradfix.core.syntax import LOOPS

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
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
    if not isinstance(site.node, ast.Call):
        return "the framework calls backward", RUN_IT
    match sighting.degree:
        case Seen.NOTHING:
            return _why_not_reached(program, place, site.node, site.steps)
        case Seen.CUT_OFF:
            return _budget(program), RUN_IT
        case Seen.SUBSTITUTED:
            return "weights are replaced by computed tensors, which gradfix does not follow", RUN_IT
        case Seen.STRANGER:
            return "the optimizer comes from a caller that gradfix did not find", _call_it(program, place)
    if isinstance(sighting.event, Backward):
        return _why_blind(program, place, sighting.event, sighting.entry)
    return "what it does could not be followed", RUN_IT


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


def _call_it(program: Program, place: ast.AST) -> str:
    return (
        f"call `{name_of(program, place)}` in this file, or check where the script that calls it can be found"
    )


# ---------------------------------------------------------------------------- what was not understood


def _why_blind(
    program: Program, place: ast.AST, event: Backward, entry: EntryPoint | None
) -> tuple[str, str]:
    """Why it is not known which parameters something that is differentiated leads to."""
    loss = _loss(program, event)
    inputs = _inputs(event.site)
    if not event.certain and event.roots and inputs is not None:
        return f"what {_at(program, inputs)} holds is not known", RUN_IT
    nodes = sorted(event.visited, key=lambda node: node.serial)
    unknown = next(filter(_is_unknown, nodes), None)
    doubtful = [node for node in nodes if not event.visited[node]]
    if unknown is not None:
        handed = _parameter_called(unknown.site, place)
        reason = f"which parameters {_at(program, unknown.site)} uses is not known"
        if handed is None or entry is None or entry.node is not place:
            return reason, RUN_IT
        return f"{reason}: `{handed}` comes from a caller that gradfix did not find", _call_it(program, place)
    if doubtful:
        return f"whether {loss} depends on {_at(program, doubtful[-1].site)} is not certain", RUN_IT
    made = _assigned(event, place)
    return f"how {loss} is computed{made} could not be followed", RUN_IT


def _assigned(event: Backward, place: ast.AST) -> str:
    """The line in which a variable that is differentiated was assigned last."""
    loss = event.receivers[0] if event.receivers else None
    if not isinstance(loss, ast.Name):
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
    call = event.site
    if isinstance(call, ast.Call) and call.args and isinstance(call.func, ast.Attribute):
        if event.receivers[:1] == [call.func.value]:
            return f"the loss of {_short(program, call)}"
    return _short(program, event.receivers[0]) if event.receivers else "the loss"


def _inputs(site: ast.AST) -> ast.expr | None:
    """What a call of ``autograd.grad``, or ``backward(inputs=...)``, differentiates with respect to."""
    if not isinstance(site, ast.Call):
        return None
    named = (keyword.value for keyword in site.keywords if keyword.arg == "inputs")
    takes = getattr(site.func, "attr", getattr(site.func, "id", None)) == "grad" and len(site.args) > 1
    return next(named, site.args[1] if takes else None)


def _is_unknown(node: Node) -> bool:
    """Whether a node stands for what unseen code computes, or has parameters of which not all is known."""
    if node.opaque or node.foreign or (not node.edges and not node.leaves):
        return True
    return any(not sure or leaf.requires is None for leaf, sure, _ in node.leaves)


def _parameter_called(site: ast.AST, place: ast.AST) -> str | None:
    """The parameter of a function that a call within it starts from: ``model`` in ``model.net(x)``."""
    if not isinstance(place, FUNCTIONS):
        return None
    at = site.func if isinstance(site, ast.Call) else site
    while isinstance(at, (ast.Attribute, ast.Subscript)):
        at = at.value
    arguments = (*place.args.posonlyargs, *place.args.args, *place.args.kwonlyargs)
    return next((one.arg for one in arguments if isinstance(at, ast.Name) and one.arg == at.id), None)


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
    names = ("it", "the scripts that import it", MODULE, getattr(place, "name", MODULE))
    cut_off = next((one for one in program.messages if _is_budget(one, *names)), None)
    if cut_off is not None:
        return cut_off, RUN_IT
    entered = {found for entry in program.entry_points for run in entry.runs for found in run.entered}
    if isinstance(place, FUNCTIONS) and place not in entered:
        return "nothing that calls it was found", "call it in this file, or from a script that imports it"
    assert isinstance(call.func, (ast.Attribute, ast.Name))
    if steps and isinstance(call.func, ast.Attribute):
        return f"which optimizer {_short(program, call.func.value)} is could not be followed", RUN_IT
    ended = _ended_before(program, place)
    if ended is not None:
        return f"the analysis ended in line {ended}, which raises or exits as far as can be seen", RUN_IT
    return (
        f"the analysis saw nothing that {_short(program, call)} differentiates{_under(program, call)}",
        RUN_IT,
    )


def _under(program: Program, call: ast.Call) -> str:
    """The condition that a call is under, or behind, in its function."""
    inner: ast.AST = call
    for outer in program.ancestors(call):
        if isinstance(outer, ast.If) and inner is not outer.test:
            return f"; it is under `{_head(program, outer)}` in line {outer.lineno}"
        body = getattr(outer, "body", [])
        if inner in body:
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
