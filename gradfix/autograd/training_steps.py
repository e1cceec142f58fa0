"""The training steps of a file, and how far the model has followed each of them.

A backward counts as followed if a finished run of the model came to it and knew which parameters it reaches,
and a step if it is known which optimizer makes it. Of any other the codemods cannot say anything, and nobody
should take their silence for health.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Container, Iterator, Mapping
from typing import Literal, NamedTuple

from gradfix.autograd import imports
from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.program import Program
from gradfix.autograd.relevance import is_differentiation, walk
from gradfix.autograd.run import Run
from gradfix.core.codemod import UnknownFunction
from gradfix.core.coverage import Status, TrainingStep
from gradfix.core.syntax import LOOPS, last_name

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OF_FRAMEWORKS = {"training_step": "LightningModule", "compute_loss": "Trainer"}
"""Methods whose loss a framework differentiates, and what the names of the frameworks' classes end with."""


class _Seen(enum.IntEnum):
    """How much a run has seen of a backward or a step, the most first."""

    ALL = enum.auto()
    STRANGER = enum.auto()
    """The optimizer that steps was passed in by a caller that is not seen."""
    BLIND = enum.auto()
    """Which parameters it reaches is not known."""
    SUBSTITUTED = enum.auto()
    CUT_OFF = enum.auto()
    NOTHING = enum.auto()


class _Site(NamedTuple):
    """A place in the file that differentiates or steps: a call, or a method that a framework calls."""

    node: ast.Call | ast.FunctionDef | ast.AsyncFunctionDef
    steps: bool = False


_Sighting = tuple[_Site, _Seen]


def training_steps(program: Program, failure: str = "") -> tuple[TrainingStep, ...]:
    """The functions, and the loops outside of functions, in which something is differentiated or stepped.

    ``failure`` says why none was followed, where the analysis has failed.
    """
    seen = _seen(program)
    # What follows an error in the forward is analysed when that is fixed.
    stopped = any(run.refused_write for entry in program.entry_points for run in entry.runs[:1])
    units: dict[ast.AST, list[_Sighting]] = {}
    for site in _sites(program, seen):
        degree = seen.get(site.node, _Seen.NOTHING)
        if stopped and degree is _Seen.NOTHING:
            degree = _Seen.ALL
        units.setdefault(_place(program, site.node), []).append((site, degree))
    found = (_training_step(program, *unit) for unit in _joined(program, units).items())
    if failure:
        found = (one._replace(reason=failure, advice="please report it") for one in found)
    return tuple(sorted(found, key=lambda step: step.line))


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


# ---------------------------------------------------------------------------- the places


def _sites(program: Program, seen: Mapping[ast.AST, _Seen]) -> Iterator[_Site]:
    """Where the file differentiates or steps an optimizer, and the methods of which a framework does so."""
    steps: list[ast.Call] = []
    classes: list[ast.ClassDef] = []
    functions: set[str] = set()
    optimizers: set[str] = set()
    scalers: set[str] = set()
    differentiating: list[ast.Call] = []
    for node in walk(program.tree):
        if isinstance(node, ast.Call):
            if is_differentiation(node.func):
                differentiating.append(node)
            elif isinstance(node.func, ast.Attribute):
                if node.func.attr == "step":
                    steps.append(node)
                elif node.func.attr == "zero_grad":
                    optimizers.add(_written(node.func.value))
                elif node.func.attr in ("scale", "unscale_"):
                    scalers.add(_written(node.func.value))
        elif isinstance(node, ast.Assign) and _is_given_parameters(node.value):
            optimizers.update(map(_written, node.targets))
        elif isinstance(node, ast.ClassDef):
            classes.append(node)
        elif isinstance(node, FUNCTIONS):
            functions.add(node.name)
    yield from map(_Site, differentiating)
    for call in steps:
        assert isinstance(call.func, ast.Attribute)
        stepped = _written(call.func.value)
        if (
            call in seen
            or (stepped in optimizers and _may_be_closure(call.args, functions))
            or (stepped in scalers and call.args)
        ):
            yield _Site(call, steps=True)
    for cls in classes:
        yield from map(_Site, _run_by_framework(program, cls, differentiating))


def _written(expression: ast.expr) -> str:
    """A variable, an attribute or an item, by its text; items of one container are alike."""
    match expression:
        case ast.Name():
            return expression.id
        case ast.Attribute():
            return f"{_written(expression.value)}.{expression.attr}"
        case ast.Subscript():
            return f"{_written(expression.value)}[]"
    return "?"


def _is_given_parameters(value: ast.expr) -> bool:
    """Whether something is made of the parameters of a network, as optimizers are."""
    return isinstance(value, ast.Call) and any(
        isinstance(argument, ast.Call) and last_name(argument) == "parameters" for argument in value.args
    )


def _may_be_closure(args: list[ast.expr], functions: Container[str]) -> bool:
    """Whether ``step`` of an optimizer takes such arguments: none, or a function that computes the loss."""
    return not args or (
        len(args) == 1 and (isinstance(args[0], ast.Lambda) or last_name(args[0]) in functions)
    )


def _run_by_framework(
    program: Program, cls: ast.ClassDef, differentiating: list[ast.Call]
) -> Iterator[ast.FunctionDef]:
    """The methods of a class whose loss a framework differentiates, and that do not do so themselves."""
    defined = {method.name: method for method in cls.body if isinstance(method, ast.FunctionDef)}
    for name, base in OF_FRAMEWORKS.items():
        method = defined.get(name)
        if method is None or any(method in program.ancestors(call) for call in differentiating):
            continue
        if "configure_optimizers" in defined or any(_is_foreign(program, one, base) for one in cls.bases):
            yield method


def _is_foreign(program: Program, base: ast.expr, ending: str) -> bool:
    """Whether a class is imported from outside of the project, and its name ends so."""
    if not last_name(base).endswith(ending):
        return False
    root = _written(base).split(".")[0]
    for node in program.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if (alias.asname or alias.name.split(".")[0]) == root:
                    module = alias.name if isinstance(node, ast.Import) else _module_of(node)
                    return imports.locate(module, str(program.path)) is None
    return False


def _module_of(statement: ast.ImportFrom) -> str:
    return "." * statement.level + (statement.module or "")


def _place(program: Program, node: ast.AST) -> ast.AST:
    """The function that a node stands in, else the outermost loop, else the file."""
    place: ast.AST = program.tree
    for outer in (node, *program.ancestors(node)):
        if isinstance(outer, FUNCTIONS):
            return outer
        if isinstance(outer, LOOPS):
            place = outer
    return place


def _joined(program: Program, units: dict[ast.AST, list[_Sighting]]) -> dict[ast.AST, list[_Sighting]]:
    """``units``, with those of functions that are defined in the midst of another one put to that one.

    What an optimizer's ``step`` is given as a closure is a part of the same training step.
    """
    joined: dict[ast.AST, list[_Sighting]] = {}
    for place, sightings in units.items():
        around = [outer for outer in program.ancestors(place) if outer in units]
        outermost = around[-1] if around and around[-1] is not program.tree else place
        joined.setdefault(outermost, []).extend(sightings)
    return joined


# ---------------------------------------------------------------------------- what was seen of them


def _seen(program: Program) -> dict[ast.AST, _Seen]:
    """By the place of a backward or a step, or of a call that leads to one: how much any run has seen of it.

    A backward that a framework makes is that of the method which returns the loss.
    """
    seen: dict[ast.AST, _Seen] = {}
    for entry in program.entry_points:
        cut_off = any(run.unfinished for run in entry.runs)
        for run in entry.runs:
            takers = _takers(run)
            for event in run.events:
                if isinstance(event, Backward):
                    degree = _degree(event, takers)
                elif isinstance(event, Step):
                    degree = _Seen.STRANGER if event.optimizer.external else _Seen.ALL
                else:
                    continue
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


# ---------------------------------------------------------------------------- what is said of them


def _training_step(program: Program, place: ast.AST, sightings: list[_Sighting]) -> TrainingStep:
    # What is differentiated comes first: a step that follows what is not known is not known either.
    unseen = [one for one in sightings if one[1] is not _Seen.ALL] or sightings
    site, degree = min(unseen, key=lambda one: (one[0].steps, -one[1], one[0].node.lineno))
    kind, name = _kind(place), _name(program, place)
    if degree is _Seen.ALL:
        return TrainingStep(site.node.lineno, kind, name, Status.FOLLOWED)
    reason, advice = _why_not(program, place, site, degree)
    return TrainingStep(site.node.lineno, kind, name, Status.NOT_FOLLOWED, "", reason, advice)


def _why_not(program: Program, place: ast.AST, site: _Site, degree: _Seen) -> tuple[str, str]:
    """Why a place was not followed, and what a person can do about that."""
    if not isinstance(site.node, ast.Call):
        return "the framework calls backward", RUN_IT
    name = _name(program, place)
    match degree:
        case _Seen.NOTHING:
            return _why_not_reached(program, place, site)
        case _Seen.CUT_OFF:
            return _budget(program)
        case _Seen.SUBSTITUTED:
            return "weights are replaced by computed tensors, which gradfix does not follow", RUN_IT
        case _Seen.STRANGER:
            return (
                "the optimizer comes from a caller that gradfix did not find",
                f"call `{name}` in this file, or check where the script that calls it can be found",
            )
    return f"how {_loss(program, site.node)} is computed could not be followed", RUN_IT


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


def _why_not_reached(program: Program, place: ast.AST, site: _Site) -> tuple[str, str]:
    """Why no run of the model came to a backward, and what a person can do."""
    call = site.node
    assert isinstance(call, ast.Call)
    constant = next(_constant_conditions(program, call), None)
    if constant is not None:
        line, text = constant
        return (
            f"line {call.lineno} never runs: it is under `{text}` in line {line}, which never applies",
            "give the constant the other value and check again",
        )
    if program.messages:
        return _budget(program)
    if isinstance(place, FUNCTIONS) and place not in _entered(program):
        return (
            "nothing that calls it was found",
            "call it in this file, or from a script that imports it",
        )
    if site.steps and isinstance(call.func, ast.Attribute):
        return f"which optimizer {_short(program, call.func.value)} is could not be followed", RUN_IT
    return f"the analysis never reached {_short(program, call)}", RUN_IT


def _entered(program: Program) -> set[ast.AST]:
    """The functions that any run has gone into."""
    return {definition for entry in program.entry_points for run in entry.runs for definition in run.entered}


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
