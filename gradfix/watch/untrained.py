"""What is said at the end of a script that raised nothing, and in which steps had no gradient to use.

The facts come from ``runtime/watch``: for each optimizer, which of its parameters no step ever found with a
gradient. The likely reason is looked for in the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradfix.core.codemod import Finding, Note
from gradfix.core.span import Span
from gradfix.pipeline.results import Explanation
from gradfix.watch.explain_run import RunExplainer, listed, shown
from gradfix.watch.script import CUTS, ScriptFile, last_line, last_name

HEADING = "no gradient"
PLACES = 3
"""Calls of one network that are shown."""


def explain(facts: Mapping[str, Any]) -> Iterator[Explanation]:
    """What is to be said of each optimizer some of whose steps, or parameters, never had a gradient."""
    explainer = RunExplainer(facts)
    for one in facts["optimizers"]:
        places = [place for place in map(tuple, one["places"]) if explainer.file(place[0]) is not None]
        if not places:
            continue
        path, line = places[0]
        file = explainer.file(path)
        assert file is not None
        if one["idle"]:
            yield _idle(facts, one, path, file, line)
        elif one["zeros"]:
            yield _zeros(one, path, file, line)
        else:
            for network in one["left_out"]:
                found = _left_out(explainer, one, network, path)
                if found is not None:
                    yield found


def _idle(
    facts: Mapping[str, Any], one: Mapping[str, Any], path: str, file: ScriptFile, line: int
) -> Explanation:
    """No step has ever found a gradient."""
    who = _called(one)
    notes: list[Note] = []
    if one["frozen"]:
        why = f"none of the parameters of {who} requires grad"
        by_hand = (
            "unfreeze what should be trained (`requires_grad_(True)`), or create the optimizer with "
            "parameters that require grad"
        )
    elif not facts["backwards"]:
        why = "`backward()` was never called"
        by_hand = "call `backward()` on the loss before the step"
    elif one["held"] and not one["networks"]:
        why = f"its parameters do not belong to the networks in use ({listed(one['held'][:3])})"
        by_hand = "create the optimizer after the network is copied or replaced, not before"
    else:
        trains = f" ({listed(one['networks'][:3])})" if one["networks"] else ""
        why = f"no parameter of {who}{trains} ever had a `.grad` when it stepped"
        by_hand = (
            "check that the optimizer was created with the parameters of the network that computes the loss, "
            "that nothing in between is detached, and that `zero_grad()` does not come between backward and "
            "step"
        )
        for network in one["networks"]:
            for call in _calls(file, network.rpartition(".")[2]):
                notes += [
                    Note(Span.of(at), f"no gradient flows through `{what}`") for at, what in _cuts(file, call)
                ]
    message = f"{_steps(one)} of {who} had no gradient to use: {why}"
    notes = [Note(file.call(line), f"{_steps(one)}, none with a gradient"), *dict.fromkeys(notes)]
    return _explanation(path, file, message, notes, by_hand)


def _zeros(one: Mapping[str, Any], path: str, file: ScriptFile, line: int) -> Explanation:
    """Steps have found gradients that are zero throughout."""
    message = f"every gradient that {_called(one)} had at its first steps is zero"
    note = Note(file.call(line), "each parameter has a gradient, and each is zero")
    by_hand = "check whether the loss is constant, has a factor that is zero, or is clamped"
    return _explanation(path, file, message, [note], by_hand)


def _left_out(explainer: RunExplainer, one: Mapping[str, Any], network: str, path: str) -> Explanation | None:
    """A network is called that an optimizer owns, and no loss has ever reached it."""
    name = network.rpartition(".")[2]
    calls = [
        (where, call)
        for where in dict.fromkeys((path, *explainer.facts.get("files", ())))
        for call in _calls(explainer.file(where), name)
    ]
    if not calls:
        return None
    cut: list[str] = []
    where, _ = calls[0]
    file = explainer.file(where)
    assert file is not None
    notes: list[Note] = []
    for at, call in calls:
        if at != where or len(notes) >= PLACES:
            continue
        notes.append(Note(Span.of(call), f"`{name}` is called here"))
        for place, what in _cuts(file, call):
            cut.append(what)
            notes.append(Note(Span.of(place), f"no gradient flows through `{what}`"))
    message = (
        f"`{network}` had no gradient in {_steps(one)} of {_called(one)}, which should train it: "
        "it gets none from any loss"
    )
    what = (
        f"leave out {listed(list(dict.fromkeys(cut))[:2])} after `{name}`"
        if cut
        else (
            f"check where the gradient ends between the loss and `{name}`: `detach()`, `.data`, "
            "`item()`, `no_grad()`, or a result that no loss uses"
        )
    )
    return _explanation(where, file, message, notes, what)


def _explanation(
    path: str, file: ScriptFile, message: str, notes: Sequence[Note], by_hand: str
) -> Explanation:
    finding = Finding(HEADING, message, notes[0].span, tuple(sorted(notes, key=lambda note: note.span)))
    return Explanation(((shown(path), file.source.text, finding),), by_hand=by_hand)


def _called(one: Mapping[str, Any]) -> str:
    return f"`{one['name']}`" if one["name"] else f"an optimizer ({one['class']})"


def _steps(one: Mapping[str, Any]) -> str:
    return "the only step" if one["steps"] == 1 else f"all {one['steps']} steps"


def _calls(file: ScriptFile | None, name: str) -> Iterator[ast.Call]:
    """The calls of a network by its name, or as an attribute of that name."""
    for node in ast.walk(file.source.tree) if file is not None and not name.isdigit() else ():
        if isinstance(node, ast.Call) and last_name(node.func) == name:
            yield node


def _cuts(file: ScriptFile, call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """What no gradient iterations, around a call and around the variable that it is assigned to."""
    scope = file.around(call.lineno)
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and last_name(node.func) in CUTS and call in ast.walk(node):
            yield node, last_name(node.func)
    for outer in file.outer(call):
        if isinstance(outer, ast.With):
            for item in outer.items:
                place = item.context_expr
                if "no_grad" in ast.unparse(place) or "inference_mode" in ast.unparse(place):
                    yield place, last_name(place.func if isinstance(place, ast.Call) else place)
    names = {
        target.id
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and node.lineno <= call.lineno <= last_line(node)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(scope):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            if node.attr in CUTS | {"data"} and node.lineno >= call.lineno:
                yield node, node.attr
