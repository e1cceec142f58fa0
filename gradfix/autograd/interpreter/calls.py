"""Call expressions: what is called, and on what."""

from __future__ import annotations

import ast

from gradfix.autograd import script_options
from gradfix.autograd.arguments import Argument, Call, Keywords
from gradfix.autograd.interpreter.choices import chosen_by_name
from gradfix.autograd.run import Run, expression
from gradfix.autograd.semantics.dispatch import call_method, call_value, iterate
from gradfix.autograd.values import (
    Class,
    Const,
    Frame,
    ImportedName,
    Mapping,
    Namespace,
    ParameterIterable,
    Sequence,
    Super,
    Unknown,
    Value,
    tensors_in,
)


def arguments(run: Run, node: ast.Call, frame: Frame) -> tuple[list[Argument], Keywords]:
    """Evaluate the arguments of a call."""
    args: list[Argument] = []
    for argument in node.args:
        if argument.__class__ is ast.Starred:
            assert isinstance(argument, ast.Starred)
            value = run.evaluate(argument.value, frame)
            if isinstance(value, ParameterIterable):
                args.append((value, argument.value))
                continue
            items, _ = iterate(run, value, argument.value)
            if items is None:
                args.append((Sequence("list", _some(value), True), argument.value))
            else:
                args += [(i, argument.value) for i in items]
        else:
            value = run.evaluate(argument, frame)
            if isinstance(value, (Sequence, Mapping)):
                run.charge(value.size >> 4)  # Whoever is called goes through all of it.
            args.append((value, argument))
    keywords: Keywords = {}
    for keyword in node.keywords:
        value = run.evaluate(keyword.value, frame)
        if keyword.arg is not None:
            keywords[keyword.arg] = (value, keyword.value)
        elif isinstance(value, Mapping):
            keywords.update({k: (v, keyword.value) for k, v in value.items.items() if isinstance(k, str)})
        else:
            keywords["**"] = (value, keyword.value)
    return args, keywords


def _some(value: Value) -> list[Value]:
    """What is known of the items of something to go over."""
    if isinstance(value, Sequence):
        return value.items
    return [value] if isinstance(value, Unknown) else [*tensors_in(value)]


@expression(ast.Call)
def call_expression(run: Run, node: ast.Call, frame: Frame, discarded: bool = False) -> Value:
    """The value of a call expression; ``discarded`` if it stands as a statement of its own."""
    function = node.func
    if function.__class__ is ast.Attribute:
        base = run.evaluate(function.value, frame)
        args, keywords = arguments(run, node, frame)
        return call_method(run, base, Call(args, keywords, node, discarded, function.attr))
    if isinstance(function, ast.Name) and function.id == "super" and not node.args:
        bound = frame.variables.get("self")
        at: Frame | None = frame
        while at is not None and at.function is None:
            at = at.parent
        owner = at.function.owner if at is not None and at.function is not None else None
        if at is not None and at.function is not None and at.function.bound is not None:
            bound = at.function.bound
        return Super(bound, owner) if bound is not None else Unknown("super")
    value = run.evaluate(function, frame)
    args, keywords = arguments(run, node, frame)
    if isinstance(value, ImportedName) and value.name == "builtins.getattr" and len(args) >= 2:
        chosen = _by_name(run, node, args[0][0], args[1], frame)
        if chosen is not None:
            return chosen
    if isinstance(value, ImportedName) and value.name == "builtins.eval" and len(args) == 1:
        named = _dotted(script_options.given(args[0][0]), node)
        if named is not None:
            return run.evaluate(named, frame)
    if isinstance(value, ImportedName) and value.name in ("builtins.super", "builtins.locals"):
        if value.name == "builtins.locals":
            return Mapping(dict(frame.variables), frame.function is None)
        if len(args) == 2:
            after, of = args[0][0], args[1][0]
            return Super(of, after) if isinstance(after, Class) else Unknown("super")
    return call_value(run, value, Call(args, keywords, node, discarded))


def _by_name(run: Run, node: ast.Call, holder: Value, name: Argument, frame: Frame) -> Value | None:
    """``getattr(module, name)`` of a module of the project, where it is not known what it is asked for."""
    if isinstance(name[0], Const) or not isinstance(holder, Namespace):
        return None
    return chosen_by_name(run, node, holder, name[1], frame)


def _dotted(text: Value, node: ast.AST) -> ast.expr | None:
    """What ``eval`` looks up: a text of names and dots, as in ``eval("models." + args.model)``."""
    if not isinstance(text, Const) or not isinstance(text.value, str):
        return None
    try:
        found = ast.parse(text.value.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    parts = list(ast.walk(found))
    if not all(isinstance(part, (ast.Name, ast.Attribute, ast.expr_context)) for part in parts):
        return None
    for part in parts:
        ast.copy_location(part, node)
    return found
