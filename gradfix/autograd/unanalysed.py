"""What the model has not followed in a program: no findings there do not mean that it is correct.

A backward counts as seen if a finished run of the model came to it and knew which parameters it reaches, and
which optimizer takes what it leaves there. Of any other the codemods cannot say anything, and nobody should
take their silence for health.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from typing import Literal

from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.program import Program
from gradfix.autograd.relevance import is_differentiation, walk
from gradfix.autograd.run import Run
from gradfix.core.codemod import Unanalysed, UnknownFunction
from gradfix.core.syntax import LOOPS

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Seen(enum.IntEnum):
    """How much a run has seen of a backward, the most first."""

    ALL = enum.auto()
    STRANGER = enum.auto()
    """The optimizer that steps was passed in by a caller that is not seen."""
    BLIND = enum.auto()
    """Which parameters it reaches is not known."""
    SUBSTITUTED = enum.auto()
    CUT_OFF = enum.auto()
    NOTHING = enum.auto()


def unanalysed(program: Program) -> tuple[Unanalysed, ...]:
    """The functions, and the loops outside of functions, in which something is differentiated unseen."""
    seen = _seen(program)
    # What follows an error in the forward is analysed when that is fixed.
    stopped = any(run.refused_write for entry in program.entry_points for run in entry.runs[:1])
    missed: dict[ast.AST, list[tuple[ast.Call, _Seen]]] = {}
    for call in walk(program.tree):
        if isinstance(call, ast.Call) and is_differentiation(call.func):
            degree = seen.get(call, _Seen.NOTHING)
            if degree is not _Seen.ALL and not (stopped and degree is _Seen.NOTHING):
                missed.setdefault(_place(program, call), []).append((call, degree))
    return tuple(
        _unanalysed(program, place, *max(calls, key=lambda one: (one[1], -one[0].lineno)))
        for place, calls in missed.items()
    )


def unknown_functions(program: Program) -> tuple[UnknownFunction, ...]:
    """The functions of torch that the model does not know, and that training hands graphs or networks to.

    What is called in another module is left out, and what further runs alone come to.
    """
    lines: dict[str, int] = {}
    for entry in program.entry_points:
        for run in entry.runs[:1]:
            for name, site in run.unknown_functions.items():
                line: int = getattr(site, "lineno", 0)
                if line > 0:
                    lines[name] = min(line, lines.get(name, line))
    return tuple(sorted(UnknownFunction(line, name) for name, line in lines.items()))


def _seen(program: Program) -> dict[ast.AST, _Seen]:
    """By the place of a backward, or of a call that leads to one: how much any run has seen of it."""
    seen: dict[ast.AST, _Seen] = {}
    for entry in program.entry_points:
        cut_off = entry.runs[0].unfinished
        for run in entry.runs:
            takers = _takers(run)
            for event in run.events:
                if not isinstance(event, Backward):
                    continue
                degree = _degree(event, takers)
                if cut_off or run.substituted:
                    degree = _Seen.CUT_OFF if cut_off else _Seen.SUBSTITUTED
                for site in {event.site, *event.calls}:
                    seen[site] = min(degree, seen.get(site, _Seen.NOTHING))
    return seen


def _takers(run: Run) -> dict[Backward, list[Step]]:
    takers: dict[Backward, list[Step]] = {}
    for step in run.events:
        if isinstance(step, Step):
            for backward in {one for consumed in step.consumed.values() for one in consumed}:
                takers.setdefault(backward, []).append(step)
    return takers


def _degree(event: Backward, takers: dict[Backward, list[Step]]) -> _Seen:
    if event.failure is not None or event.error_expected:
        return _Seen.ALL
    if not event.certain or not any(event.reached.values()):
        return _Seen.BLIND
    steps = takers.get(event, ())
    if steps and all(step.optimizer.external for step in steps):
        return _Seen.STRANGER
    return _Seen.ALL


def _place(program: Program, call: ast.Call) -> ast.AST:
    """The function that a call stands in, else the outermost loop, else the file."""
    place: ast.AST = program.tree
    for outer in program.ancestors(call):
        if isinstance(outer, FUNCTIONS):
            return outer
        if isinstance(outer, LOOPS):
            place = outer
    return place


def _unanalysed(program: Program, place: ast.AST, call: ast.Call, degree: _Seen) -> Unanalysed:
    name = _name(program, place)
    match degree:
        case _Seen.NOTHING:
            reason, advice = _why_not_reached(program, place, call)
        case _Seen.CUT_OFF:
            reason, advice = _budget(program)
        case _Seen.SUBSTITUTED:
            reason = "weights are replaced by computed tensors, which gradfix does not follow"
            advice = RUN_IT
        case _Seen.STRANGER:
            reason = "the optimizer comes from a caller that gradfix did not find"
            advice = f"call `{name}` in this file, or check where the script that calls it can be found"
        case _:
            reason = f"how {_loss(program, call)} is computed could not be followed"
            advice = RUN_IT
    return Unanalysed(call.lineno, _kind(place), name, reason, advice)


RUN_IT = "`gradfix run` looks at what really happens"


def _kind(place: ast.AST) -> Literal["function", "loop", "script"]:
    if isinstance(place, FUNCTIONS):
        return "function"
    return "loop" if isinstance(place, LOOPS) else "script"


def _name(program: Program, place: ast.AST) -> str:
    if isinstance(place, LOOPS):
        return f"the loop at line {place.lineno}"
    if not isinstance(place, FUNCTIONS):
        return "the script"
    names = [place.name]
    names += [o.name for o in program.ancestors(place) if isinstance(o, (*FUNCTIONS, ast.ClassDef))]
    return ".".join(reversed(names))


def _short(program: Program, node: ast.expr) -> str:
    text = " ".join(program.segment(node).split())
    return f"`{text}`" if len(text) <= 50 else f"`{text[:47]}...`"


def _loss(program: Program, call: ast.Call) -> str:
    """What a call differentiates."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and not _of_torch(call.func):
        return _short(program, call.func.value)
    return _short(program, call.args[0]) if call.args else "the loss"


def _of_torch(function: ast.Attribute) -> bool:
    """Whether it is a function of ``torch.autograd``, which is given the loss."""
    holder = function.value
    return getattr(holder, "attr", getattr(holder, "id", None)) == "autograd"


def _budget(program: Program) -> tuple[str, str]:
    why = next((message for message in program.messages if "stopped" in message), "the analysis was cut off")
    return why, RUN_IT


def _why_not_reached(program: Program, place: ast.AST, call: ast.Call) -> tuple[str, str]:
    """Why no run of the model came to a backward, and what a person can do."""
    constant = next(_constant_conditions(program, call), None)
    if constant is not None:
        line, text = constant
        return (
            f"line {call.lineno} never runs: it is under `{text}` in line {line}, which never applies",
            "give the constant the other value and check again",
        )
    if program.messages:
        return _budget(program)
    entered = {
        definition for entry in program.entry_points for run in entry.runs for definition in run.entered
    }
    if isinstance(place, FUNCTIONS) and place not in entered:
        return (
            "nothing that calls it was found",
            "call it in this file, or from a script that imports it",
        )
    return f"the analysis never reached {_short(program, call)}", RUN_IT


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
