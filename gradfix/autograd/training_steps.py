"""The training steps of a file, and how far the model has followed each of them.

A backward counts as followed if a finished run of the model came to it and knew which parameters it reaches,
and a step if it is known which optimizer makes it. Of any other the codemods cannot say anything, and nobody
should take their silence for health.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Literal

from gradfix.autograd import implicit_loops, imports
from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.program import Program
from gradfix.autograd.relevance import is_differentiation
from gradfix.autograd.run import Run
from gradfix.autograd.unfollowed import FUNCTIONS, UNSEEN, Seen, Sighting, Site, name_of, why_not, written
from gradfix.core.codemod import UnknownFunction
from gradfix.core.coverage import Status, TrainingStep
from gradfix.core.syntax import LOOPS, last_name, walk

_Units = dict[ast.AST, dict[Site, Sighting]]


def training_steps(program: Program, failure: str = "") -> tuple[TrainingStep, ...]:
    """The functions, and the loops outside of functions, in which something is differentiated or stepped.

    ``failure`` says why none was followed, where the analysis has failed.
    """
    seen = _seen(program)
    # What follows an error in the forward is analysed when that is fixed.
    stopped = any(run.refused_write for entry in program.entry_points for run in entry.runs[:1])
    units: _Units = {}
    for site in _sites(program, seen):
        sighting = seen.get(site.node, UNSEEN)
        if stopped and sighting is UNSEEN:
            sighting = Sighting(Seen.ALL)
        units.setdefault(_place(program, site.node), {})[site] = sighting
    found: Iterable[TrainingStep] = (
        _under_assumption(program, *unit) for unit in _joined(program, units).items()
    )
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


def _sites(program: Program, seen: Container[ast.AST]) -> Iterator[Site]:
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
                    optimizers.add(written(node.func.value))
                elif node.func.attr in ("scale", "unscale_"):
                    scalers.add(written(node.func.value))
        elif isinstance(node, ast.Assign) and _is_given_parameters(node.value):
            optimizers.update(map(written, node.targets))
        elif isinstance(node, ast.ClassDef):
            classes.append(node)
        elif isinstance(node, FUNCTIONS):
            functions.add(node.name)
    yield from map(Site, differentiating)
    for call in steps:
        assert isinstance(call.func, ast.Attribute)
        stepped = written(call.func.value)
        if (
            call in seen
            or (stepped in optimizers and _may_be_closure(call.args, functions))
            or (stepped in scalers and call.args)
        ):
            yield Site(call, steps=True)
    for cls in classes:
        yield from map(Site, _run_by_framework(program, cls, differentiating))


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
    for loop in implicit_loops.LOOPS:
        method = defined.get(loop.method)
        if method is None or any(method in program.ancestors(call) for call in differentiating):
            continue
        if "configure_optimizers" in defined or any(
            _is_foreign(program, one, loop.base) for one in cls.bases
        ):
            yield method


def _is_foreign(program: Program, base: ast.expr, ending: str) -> bool:
    """Whether a class is imported from outside of the project, and its name ends so."""
    if not last_name(base).endswith(ending):
        return False
    root = written(base).split(".")[0]
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


def _joined(program: Program, units: _Units) -> _Units:
    """``units``, with those of functions that are defined in the midst of another one put to that one.

    What an optimizer's ``step`` is given as a closure is a part of the same training step.
    """
    joined: _Units = {}
    for place, sites in units.items():
        around = [outer for outer in program.ancestors(place) if outer in units]
        outermost = around[-1] if around and around[-1] is not program.tree else place
        joined.setdefault(outermost, {}).update(sites)
    return joined


# ---------------------------------------------------------------------------- what was seen of them


def _seen(program: Program) -> dict[ast.AST, Sighting]:
    """By the place of a backward or a step, or of a call that leads to one: the most that a run saw of it.

    A backward that a framework makes is that of the method which returns the loss.
    """
    seen: dict[ast.AST, Sighting] = {}
    for entry in program.entry_points:
        cut_off = entry.runs[0].unfinished
        for run in entry.runs:
            takers = _takers(run)
            for event in run.events:
                why: Backward | Step | None = event if isinstance(event, (Backward, Step)) else None
                if isinstance(event, Backward):
                    degree = _degree(event, takers)
                    why = takers[event][0] if degree is Seen.STRANGER else event
                elif isinstance(event, Step) and not isinstance(event.site, implicit_loops.LoopCall):
                    degree = Seen.STRANGER if event.optimizer.external else Seen.ALL
                else:
                    continue
                if cut_off or run.substituted:
                    degree = Seen.CUT_OFF if cut_off else Seen.SUBSTITUTED
                for site in {_method_of(program, event.site), *event.calls}:
                    if degree < seen.get(site, UNSEEN).degree:
                        seen[site] = Sighting(degree, entry, why)
    return seen


def _method_of(program: Program, site: ast.AST) -> ast.AST:
    """The place itself; of a call that a framework makes, the method that returns what it is made with."""
    return program.function(site) if isinstance(site, implicit_loops.LoopCall) else site


def _takers(run: Run) -> dict[Backward, list[Step]]:
    takers: dict[Backward, list[Step]] = {}
    for step in run.events:
        if isinstance(step, Step):
            for backward in {one for consumed in step.consumed.values() for one in consumed}:
                takers.setdefault(backward, []).append(step)
    return takers


def _degree(event: Backward, takers: dict[Backward, list[Step]]) -> Seen:
    if event.failure is not None or event.error_expected:
        return Seen.ALL
    if not event.certain or not any(event.reached.values()):
        return Seen.BLIND
    steps = takers.get(event, ())
    if steps and all(step.optimizer.external for step in steps):
        return Seen.STRANGER
    return Seen.ALL


def _training_step(program: Program, place: ast.AST, sites: Mapping[Site, Sighting]) -> TrainingStep:
    # What is differentiated comes first: a step that follows what is not known is not known either.
    unseen = [site for site in sites if sites[site].degree is not Seen.ALL]
    site = min(unseen or sites, key=lambda one: (one.steps, -sites[one].degree, one.node.lineno))
    step = TrainingStep(site.node.lineno, _kind(place), name_of(program, place), Status.FOLLOWED)
    if not unseen:
        return step
    reason, advice = why_not(program, place, site, sites[site])
    return step._replace(status=Status.NOT_FOLLOWED, reason=reason, advice=advice)


def _under_assumption(program: Program, place: ast.AST, sites: Mapping[Site, Sighting]) -> TrainingStep:
    """A training step with its status: what is not followed as it stands may be under an assumption."""
    step = _training_step(program, place, sites)
    if step.status is not Status.NOT_FOLLOWED:
        return step
    for version in program.under_assumption():
        seen = _seen(version)
        assumed = {
            site: min(sighting, seen.get(site.node, UNSEEN), key=lambda one: one.degree)
            for site, sighting in sites.items()
        }
        if all(one.degree is Seen.ALL for one in assumed.values()):
            return step._replace(status=Status.ASSUMED, assumption=version.assumption, reason="", advice="")
    return step


def _kind(place: ast.AST) -> Literal["function", "loop", "script"]:
    if isinstance(place, FUNCTIONS):
        return "function"
    return "loop" if isinstance(place, LOOPS) else "script"
