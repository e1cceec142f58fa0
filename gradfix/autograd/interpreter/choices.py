"""Functions and classes that are looked up by a name which is only known at run time."""

from __future__ import annotations

import ast
from functools import lru_cache

from gradfix.autograd import script_options
from gradfix.autograd.interpreter.conditions import evaluated_again, question
from gradfix.autograd.run import Alternative, Run
from gradfix.autograd.values import Class, Frame, Function, Mapping, Namespace, Sequence, Value
from gradfix.core.syntax import walk

ALTERNATIVES = 8
"""Up to this many items of a dict, each is tried as the one that is looked up."""


def chosen_by_name(run: Run, node: ast.expr, held: Value, name: ast.expr, frame: Frame) -> Value | None:
    """The function or class that is looked up in a dict, or in a module of the project, by a ``name``.

    None if what is held there are other things, or so many that any of them could be meant.
    """
    if not isinstance(held, (Mapping, Namespace)):
        return None
    made = _offered(run, held)
    return _alternative(run, node, made, name, frame) if 0 < len(made) <= ALTERNATIVES else None


@lru_cache(maxsize=256)
def _alternatives(node: ast.expr, key: ast.expr, names: tuple[str, ...]) -> dict[str, Alternative]:
    """One question for each key."""
    asked: dict[str, Alternative] = {}
    for name in names:
        test = ast.Compare(key, [ast.Eq()], [ast.Constant(name)])
        site = Alternative(ast.copy_location(test, node), [], [])
        asked[name] = ast.copy_location(site, node)
    return asked


def _alternative(
    run: Run, node: ast.expr, held: dict[str, Value], asked: ast.expr, frame: Frame
) -> Value | None:
    """One of the functions or classes that are ``held`` by their names, where it is not known which one.

    ``{"a": TrainerA, "b": TrainerB}[args.trainer]``. It is the one that leads into the file at hand, the one
    that no option picks, or the first; further runs take the others.
    """
    names = tuple(held)
    every = _alternatives(node, asked, names)
    keys = {name: question(run, site.test, frame)[0] for name, site in every.items()}
    first = keys[names[0]]
    if first is None or first[1][0] == "const":
        return None
    if run.equals.get(first[1]) not in held:
        index = evaluated_again(run, asked, frame)
        default = index.default.value if isinstance(index, script_options.ScriptOption) else None
        usual = default if default in held else names[0]
        if run.top is not run.globals:
            here = (name for name in names if _makes(held[name], run.globals))
            usual = next(here, usual)
        sites = {name: site for name, site in every.items() if name != usual}
        for name, site in sites.items():
            run.undecided.setdefault(site, []).append(keys[name])
        others = [name for name, site in sites.items() if site in run.scenario.flipped]
        run.equals[first[1]] = next(iter(others), usual if run.scenario.main or not sites else [*sites][-1])
        run.path_condition.update({key: name == run.equals[first[1]] for name, key in keys.items()})
    return held[run.equals[first[1]]]


def _offered(run: Run, value: Value) -> dict[str, Value]:
    """The functions and classes of which a dict, or a module of the project, has one for each name.

    Of a module they are those that it defines itself and uses nowhere: what is a part of another one of
    them is hardly what somebody asks for.
    """
    if isinstance(value, Mapping):
        names = [name for name in value.items if isinstance(name, str)]
        if value.open or len(names) < len(value.items) or not all(map(_makes, value.items.values())):
            return {}
        return {name: value.items[name] for name in names}
    if not isinstance(value, Namespace):
        return {}
    frame = value.frame
    held = {
        name: made
        for name, made in frame.variables.items()
        if isinstance(made, (Function, Class))
        and made.frame is frame
        and made.name == name
        and name[0] != "_"
    }
    used = {
        node.id
        for name, made in held.items()
        for node in walk(made.node)
        if isinstance(node, ast.Name) and node.id != name
    }
    return {name: made for name, made in held.items() if name not in used}


def _makes(value: Value, within: Frame | None = None) -> bool:
    """Whether this is a function or a class of the project, or several: of the file ``within``, if given."""
    if isinstance(value, Sequence):
        every = [_makes(item, within) for item in value.items]
        return bool(every) and (all(every) if within is None else any(every))
    if within is None or not isinstance(value, (Function, Class)):
        return isinstance(value, (Function, Class))
    classes = value.order() if isinstance(value, Class) else [value]
    return any(one.frame is within for one in classes)
