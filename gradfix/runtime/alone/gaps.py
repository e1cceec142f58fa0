"""What a step alone lacks, as its failures tell: each makes the schema of the next run larger.

A statement that fails for want of the world outside (a folder of data, an old interface) is a *gap*: from the
next run on its value is made up, unless networks, optimizers or anything with a graph have a part in it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.machinery
import inspect
import linecache
import os
import re
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import torch

from ..probe import coverage
from ..standins import context
from ..standins.schema import Schema, with_entry, with_listed
from .given import Given, handed, has_graph, number, trained

MADE_UP = "__made_up__"
"""The name among the builtins that takes the place of the value of a gap."""
REPLACED = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.For, ast.With, ast.Assert)
OUTWARDS = 3
"""How many functions further out a gap may lie, where what fails within has no value."""


def advise(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The schema in which what an error says is missing is absent or made up."""
    if not run.schema.get("handed") or isinstance(error, context.NeedsValues):
        return None
    if isinstance(error, ModuleNotFoundError) and error.name:
        return with_listed(run.schema, "absent", error.name)
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError) and error.name:
        return with_listed(run.schema, "globals", error.name)
    if (found := _setup(run, error)) is not None:
        return found
    if (found := _agreed(run, str(error))) is not None:
        return found
    return _gap(run, error) if isinstance(error, Exception) else None


# -- attributes that other methods set -----------------------------------------------------------


def _setup(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The schema in which the methods are called before that set an attribute which an object lacks."""
    if not isinstance(error, AttributeError) or error.obj is None or not error.name:
        return None
    if not _subjects or error.obj is not _subjects[-1]:
        return None
    for cls in type(error.obj).__mro__:
        for name, method in vars(cls).items():
            if isinstance(method, types.FunctionType) and name != "__init__" and sets(method, error.name):
                known = run.schema.get("setup", [])
                if name not in known:
                    return with_listed(run.schema, "setup", name)
    return None


_subjects: list[Any] = []
"""Whose methods drivers call."""


def setup(subject: Any) -> None:
    """Call the methods of an object that set what its entry reads, in an order in which they succeed."""
    _subjects.append(subject)
    waiting = [one for one in context.run().schema.get("setup", ()) if hasattr(subject, one)]
    for _ in range(len(waiting) ** 2):
        name = waiting.pop(0)
        method = getattr(subject, name)
        text = textwrap.dedent(inspect.getsource(method))
        wanted = [one for one in inspect.signature(method).parameters.values() if one.default is one.empty]
        context.run().used(f"{name}()", "called before, for it sets what the step reads")
        try:
            method(*(handed(one.name, text) for one in wanted if one.kind is one.POSITIONAL_OR_KEYWORD))
        except AttributeError as error:
            if error.obj is not subject or not waiting:
                raise
            waiting.append(name)
        if not waiting:
            return


def sets(method: types.FunctionType, name: str) -> bool:
    """Whether a method sets an attribute of its object."""
    tree = _parsed(method)
    if tree is None or not isinstance(tree, ast.FunctionDef) or not tree.args.args:
        return False
    own = tree.args.args[0].arg
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id == own
        for node in ast.walk(tree)
    )


def _parsed(function: types.FunctionType) -> ast.stmt | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None


# -- numbers that have to agree ------------------------------------------------------------------

TWO_SIZES = tuple(
    re.compile(pattern)
    for pattern in (
        r"cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)",
        r"to have (\d+) channels, but got (\d+) channels",
        r"Expected (\d+), got (\d+)",
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
        r"running_mean should contain (\d+) elements not (\d+)",
        r"Expected size (\d+) but got size (\d+)",
    )
)


def _agreed(run: context.StandinRun, message: str) -> Schema | None:
    """The schema in which two settings are equal that were made up, and met."""
    for pattern in TWO_SIZES:
        if found := pattern.search(message):
            one, other = int(found[1]), int(found[2])
            for mine, theirs in ((one, other), (other, one)):
                place = next((at for at, size in reversed(run.numbers.items()) if size == mine), None)
                if place is not None:
                    return with_entry(run.schema, "numbers", place, theirs)
    return None


# -- statements that fail ------------------------------------------------------------------------


def _gap(run: context.StandinRun, error: Exception) -> Schema | None:
    """The schema in which the innermost statement of the traceback is a gap that may be one."""
    watched = {tuple(piece) for piece in run.job.get("watched", ())}
    trace, found = error.__traceback__, []
    while trace is not None:
        if run.owns(trace.tb_frame):
            found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    for outwards, (frame, line) in enumerate(reversed(found[-OUTWARDS:])):
        path = frame.f_code.co_filename
        if path == run.job["command"]["entry"]:
            return None
        own = frame.f_locals.get("self")
        if isinstance(own, torch.nn.Module) and frame.f_code.co_name in ("__init__", "forward"):
            return None  # What is left of a network is not that network.
        statement = _statement_at(path, line)
        if statement is None or _is_watched(statement, watched):
            continue
        if outwards and not isinstance(statement, (ast.Assign, ast.Return)):
            return None  # What it was to do, nothing else does.
        if any(_may_train(frame, node) for node in _parts(statement)):
            return None
        return with_listed(run.schema, "gaps", _key(run, path, statement))
    return None


def _statement_at(path: str, line: int) -> ast.stmt | None:
    """The innermost statement at a line whose value may be made up."""
    tree = _tree("".join(linecache.getlines(path)))
    around = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.stmt) and node.lineno <= line <= _last(node)
    ]
    found = max(around, key=lambda node: node.lineno, default=None)
    return found if isinstance(found, REPLACED) else None


def _last(node: ast.stmt) -> int:
    """The last line of a statement, or of its header."""
    body = getattr(node, "body", None)
    return body[0].lineno - 1 if body else node.end_lineno or node.lineno


@functools.lru_cache(maxsize=64)
def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _is_watched(statement: ast.stmt, watched: set[tuple[int, ...]]) -> bool:
    lines = range(statement.lineno, _last(statement) + 1)
    return any(piece[0] in lines or piece[2] in lines for piece in watched)


def _parts(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions that the value of a statement is computed from: names, and chains of attributes."""
    value = _value(statement)
    waiting: list[ast.AST] = [value] if value is not None else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node
        if not isinstance(node, ast.Attribute) or not _is_chain(node):
            waiting += ast.iter_child_nodes(node)


def _is_chain(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _value(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.For):
        return statement.iter
    if isinstance(statement, ast.Assert):
        return statement.test
    if isinstance(statement, ast.With):
        return statement.items[0].context_expr
    value: ast.expr | None = getattr(statement, "value", None)
    return value


def _may_train(frame: types.FrameType, node: ast.expr) -> bool:
    """Whether a name, or a chain of attributes, is or holds what is trained."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    held = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    for name in reversed(names):
        if isinstance(held, torch.optim.Optimizer) or has_graph(held):
            return True
        if isinstance(held, torch.nn.Module):
            if callable(getattr(type(held), name, None)):
                return True
            held = getattr(held, name, None)
            continue
        held = getattr(held, "__dict__", {}).get(name, inspect.getattr_static(held, name, None))
    if isinstance(held, type) and issubclass(held, (torch.nn.Module, torch.optim.Optimizer)):
        return True
    return has_graph(held) or trained(held)


def _key(run: context.StandinRun, path: str, statement: ast.stmt) -> str:
    return f"{run.shown(path)}: {_head(statement)}"


def _head(statement: ast.stmt) -> str:
    """A statement, or the header of one, as Python writes it."""
    if isinstance(statement, (ast.For, ast.With)):
        return ast.unparse(statement).partition("\n")[0]
    return ast.unparse(statement)


def filled(run: context.StandinRun, path: str, tree: ast.Module) -> ast.Module:
    """``tree`` with made-up values in its gaps."""
    prefix = f"{run.shown(path)}: "
    known = {one.removeprefix(prefix) for one in run.schema.get("gaps", ()) if one.startswith(prefix)}
    if known:
        for node in list(ast.walk(tree)):
            if isinstance(node, REPLACED) and _head(node) in known:
                _fill(node)
    return tree


def _fill(node: ast.stmt) -> None:
    """Let a statement take a value that is made up."""
    if isinstance(node, ast.Assert):
        node.test = ast.copy_location(ast.Constant(True), node)
        return
    if isinstance(node, ast.Expr):
        node.value = ast.copy_location(ast.Constant(None), node)
        return
    target: Any = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if isinstance(node, (ast.For, ast.With)):
        target = _value(node)
    name = ast.unparse(target) if target is not None else "it"
    call = ast.Call(ast.Name(MADE_UP, ast.Load()), [ast.Constant(re.sub(r"\W+$", "", name))], [])
    holder, field = (node.items[0], "context_expr") if isinstance(node, ast.With) else (node, "value")
    setattr(holder, "iter" if isinstance(node, ast.For) else field, call)
    for one in ast.walk(call):
        ast.copy_location(one, target or node)


_counts: dict[str, int] = {}


def made_up(name: str) -> Any:
    """A value for what the code calls so, another one each time."""
    _counts[name] = _counts.get(name, 0) + 1
    plain = name.removeprefix("self.")
    context.run().used(name, "made up, for the statement fails that computes it")
    return number(plain) if plain.isidentifier() and number_like(plain) else Given(plain, _counts[name])


def number_like(name: str) -> bool:
    """Whether something of this name is a number."""
    from .given import _number

    return _number(name, name) is not None


def install(run: context.StandinRun) -> None:
    """Let the files of the project be loaded with what is made up in their gaps."""
    setattr(builtins, MADE_UP, made_up)
    files = {one.partition(": ")[0] for one in run.schema.get("gaps", ())}
    loader = importlib.machinery.SourceFileLoader
    real = loader.get_code
    under_test = os.path.realpath(run.job.get("path", ""))

    def get_code(self: Any, fullname: str) -> Any:
        path = os.path.realpath(self.get_filename(fullname))
        if run.shown(path) not in files:
            return real(self, fullname)
        if path == under_test:
            tree = coverage.marked(run.job["source"], path, run.job["watched"])
        else:
            tree = ast.parse(self.get_source(fullname), path)
        return compile(filled(run, path, tree), path, "exec", dont_inherit=True)

    loader.get_code = get_code  # type: ignore[method-assign]
