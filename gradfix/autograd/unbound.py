"""Variables that are bound in some branches only: a run that takes none of them cannot read them.

A further run answers a condition the other way. Where that leaves out every branch that binds a variable or
an attribute (``if args.model == "a": net = A()``, ``elif args.model == "b": net = B()``) and the program
reads it afterwards, Python raises NameError or AttributeError. Such a run never gets to training, and is no
witness for or against anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from gradfix.autograd.relevance import suites
from gradfix.autograd.values import Class, Frame, Instance, Module
from gradfix.core.syntax import walk

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
CONSTRUCTORS = ("__init__", "initialize")
"""What is run first: the second name is the one by which factories go on with what they have made."""
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)


def missing_variable(tree: ast.Module | None, frame: Frame, name: str) -> bool:
    """Whether ``name``, which is not bound, is a variable that only branches bind.

    It may be one of the function that runs, or one of the file, ``tree``, if that is run from its top.
    """
    function = frame.function.node if frame.function is not None else None
    scopes: list[Scope] = [function] if isinstance(function, FUNCTIONS) else []
    if tree is not None:
        scopes.append(tree)
    return any(name in _in_branches(scope) and name not in _otherwise_bound(scope) for scope in scopes)


def missing_attribute(value: Module | Instance, name: str) -> bool:
    """Whether ``name``, which an instance does not have, is set only in branches of its class's methods."""
    cls = value.cls
    if cls is None or not shows_all_attributes(cls):
        return False
    bound = [_attributes(c) for c in cls.order()]
    return not any(name in always for _, always in bound) and any(name in inside for inside, _ in bound)


def shows_all_attributes(cls: Class) -> bool:
    """Whether all attributes of a class's instances are set where it can be seen."""
    if cls.unknown_bases() or cls.lookup("__getattr__") is not None:
        return False
    return not any(_sets_by_name(c) for c in cls.order())


@lru_cache(maxsize=256)
def _sets_by_name(cls: Class) -> bool:
    """Whether a class mentions ``setattr``."""
    return any(isinstance(node, ast.Name) and node.id == "setattr" for node in walk(cls.node))


@lru_cache(maxsize=256)
def _in_branches(scope: Scope) -> set[str]:
    """The names that are assigned or imported in branches only."""
    inside: set[str] = set()
    always: set[str] = set()
    for target, branch in _targets(scope.body, False):
        if isinstance(target, ast.Name):
            (inside if branch else always).add(target.id)
    return inside - always


@lru_cache(maxsize=256)
def _otherwise_bound(scope: Scope) -> set[str]:
    """Names that are bound by anything but an assignment or an import."""
    found: set[str] = set()
    waiting: list[ast.stmt] = list(scope.body)
    while waiting:
        statement = waiting.pop()
        waiting += suites(statement)
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(statement.name)
            case ast.Global() | ast.Nonlocal():
                found.update(statement.names)
            case ast.For() | ast.AsyncFor():
                found |= _names(statement.target)
            case ast.With() | ast.AsyncWith():
                for item in statement.items:
                    found |= _names(item.optional_vars)
            case ast.Try() | ast.TryStar():
                found |= {handler.name for handler in statement.handlers if handler.name}
            case ast.Match() | ast.AugAssign():
                found |= _names(statement)
            case ast.If() | ast.While():
                found |= {n.target.id for n in walk(statement.test) if isinstance(n, ast.NamedExpr)}
    return found


def _names(node: ast.AST | None) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)} if node is not None else set()


@lru_cache(maxsize=256)
def _attributes(cls: Class) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes of ``self`` that methods of a class set: in branches, and otherwise."""
    inside: set[str] = set()
    always: set[str] = set()
    for method in cls.node.body:
        if not isinstance(method, FUNCTIONS):
            always |= {n.id for n in walk(method) if isinstance(n, ast.Name)}
            continue
        always.add(method.name)
        for target, branch in _targets(method.body, False):
            if isinstance(target, ast.Attribute):
                # In another method than the constructor it may be set before, from outside.
                (inside if branch and method.name in CONSTRUCTORS else always).add(target.attr)
    return frozenset(inside), frozenset(always)


def _targets(block: list[ast.stmt], branch: bool) -> Iterator[tuple[ast.expr, bool]]:
    """What assignments and imports bind, each with whether it is in a branch of a condition."""
    for statement in block:
        if isinstance(statement, SCOPES):
            continue
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                for node in walk(target):
                    if isinstance(node, (ast.Name, ast.Attribute)):
                        yield node, branch
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                yield ast.Name((alias.asname or alias.name).split(".")[0], ast.Store()), branch
        yield from _targets(list(suites(statement)), branch or isinstance(statement, ast.If))
