"""Networks that another script of the project saves whole: ``torch.save(model, path)`` in ``main.py``, and
``model = torch.load(path)`` in ``finetune.py``.

An earlier run of the other script would have left the file. What it would have saved is the network that it
makes with its own options, and so the statements by which it makes it are run: those at its top that the
making reads, directly or through others, and no more.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import random
import re
import sys
from collections.abc import Iterator
from typing import Any

import torch

from . import context, sizes

FILES = 40
"""Files beside a script that are looked at."""
OF_NETWORKS = frozenset("parameters named_parameters train eval cuda forward zero_grad".split())
"""What nothing but a network is asked for."""
LEARNS = re.compile(r"train|fit|learn|load", re.I)
"""Names of functions that do more than to make a network."""

_busy: list[str] = []
"""The scripts whose statements are running."""


def network(run: context.Run, path: str, loader: str, target: ast.expr) -> torch.nn.Module | None:
    """The network as a script beside ``loader`` makes it that saves it whole, if one script does.

    ``target`` is what the loader calls what it loads from ``path``.
    """
    if _busy or not used_as_network(run.tree(loader), ast.unparse(target)):
        return None
    called = getattr(target, "id", getattr(target, "attr", ""))
    found: list[tuple[bool, str, str]] = []
    for other in beside(loader):
        if other == run.entry:
            continue
        names = saved_whole(run, other)
        made = [one for one in names if making(run.tree(other), one) is not None]
        name = called if called in made else made[0] if len(made) == 1 else None
        if name is not None:
            found.append((os.path.basename(path) in names[name], other, name))
    found = [one for one in found if one[0]] or found
    if len(found) != 1:
        return None
    _, other, name = found[0]
    made_there = run_making(run, other, name)
    if made_there is not None:
        run.used("weights " + os.path.basename(path), f"the network as {os.path.basename(other)} makes it")
    return made_there


def used_as_network(tree: ast.Module, called: str) -> bool:
    """Whether a script calls what goes by a name, or asks it for what only networks have, and for no key."""
    used = False
    for node in context.walk(tree):
        if isinstance(node, ast.Call):
            used |= ast.unparse(node.func) == called
            if getattr(node.func, "attr", "") == "load_state_dict":
                # What is given to another network is only weights.
                if any(re.match(re.escape(called) + r"\b", ast.unparse(one)) for one in node.args):
                    return False
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == called:
            return False
        elif isinstance(node, ast.Attribute) and node.attr in OF_NETWORKS:
            used |= ast.unparse(node.value) == called
    return used


def beside(path: str) -> list[str]:
    """The other scripts in the folder of one."""
    folder = os.path.dirname(path)
    names = sorted(one for one in os.listdir(folder) if one.endswith(".py"))
    return [os.path.join(folder, one) for one in names[:FILES] if os.path.join(folder, one) != path]


def saved_whole(run: context.Run, path: str) -> dict[str, set[str]]:
    """The names of what a script saves as it is, each with the texts by which its file may be called.

    A function that saves what it is given may stand in a file beside it: ``save_checkpoint(model, folder)``.
    """
    found: dict[str, set[str]] = {}
    takers: dict[str, tuple[int, set[str]]] = {}
    for one in [path, *beside(path)]:
        tree = run.tree(one)
        for node in tree.body:
            given = [arg.arg for arg in node.args.args] if isinstance(node, ast.FunctionDef) else []
            texts = texts_in(node)
            for saved in saves(node):
                if isinstance(node, ast.FunctionDef) and saved in given:
                    takers[node.name] = given.index(saved), texts
                elif one == path:
                    found.setdefault(saved, set()).update(texts)
    for call in context.walk(run.tree(path)):
        name = getattr(call.func, "id", getattr(call.func, "attr", "")) if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and name in takers:
            place, texts = takers[name]
            held = call.args[place] if place < len(call.args) else None
            if isinstance(held, ast.Name):
                found.setdefault(held.id, set()).update(texts)
    return found


def saves(node: ast.AST) -> list[str]:
    """The names that a statement saves as they are: ``torch.save(model, file)``."""
    return [
        one.args[0].id
        for one in context.walk(node)
        if isinstance(one, ast.Call)
        and ast.unparse(one.func) == "torch.save"
        and one.args
        and isinstance(one.args[0], ast.Name)
    ]


def texts_in(node: ast.AST) -> set[str]:
    """The last parts of the texts in a statement, as those of paths are."""
    return {
        os.path.basename(one.value)
        for one in context.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


def making(tree: ast.Module, name: str) -> ast.stmt | None:
    """The first statement at the top of a script that makes what goes by a name, and does not train it."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        for one in context.walk(node):
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call):
                if any(isinstance(target, ast.Name) and target.id == name for target in one.targets):
                    if not LEARNS.search(ast.unparse(one.value.func)):
                        return node
    return None


def run_making(run: context.Run, path: str, name: str) -> torch.nn.Module | None:
    """What the script at a path makes under a name, ``None`` where it fails or does more than that."""
    tree = run.tree(path)
    kept = needed(tree, name)
    if any(".backward(" in ast.unparse(one) for one in kept):
        return None
    lines = run.text(path).split("\n")
    there = {line for one in kept for line in range(first_line(one), (one.end_lineno or one.lineno) + 1)}
    text = "\n".join(line if number in there else "" for number, line in enumerate(lines, 1)) + "\n"
    space: dict[str, Any] = {"__name__": "__main__", "__file__": path}
    _busy.append(path)
    try:
        with undisturbed(run, path):
            exec(sizes.code_of(run, text, path), space)
    except context.NeedsValues:
        raise
    except (Exception, SystemExit):
        return None
    finally:
        _busy.pop()
    found = space.get(name)
    return found if isinstance(found, torch.nn.Module) else None


def first_line(node: ast.stmt) -> int:
    """The line with which a statement begins, its decorators among it."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


@functools.cache
def needed(tree: ast.Module, name: str) -> list[ast.stmt]:
    """The statements at the top of a script by which it makes what goes by a name, in their order."""
    target = making(tree, name)
    if target is None:
        return []
    kept = [target]
    wanted = read_by(target)
    for node in reversed(tree.body[: tree.body.index(target)]):
        # Nothing says what ``import *`` binds, nor who needs ``from __future__ import annotations``.
        if changed_by(node) & {*wanted, "*", "annotations"}:
            kept.append(node)
            wanted |= read_by(node)
    return kept[::-1]


def read_by(node: ast.stmt) -> set[str]:
    """The names that a statement reads, those in functions that it defines among them."""
    names = [one for one in context.walk(node) if isinstance(one, ast.Name)]
    return {one.id for one in names if isinstance(one.ctx, ast.Load)}


def changed_by(node: ast.stmt) -> set[str]:
    """The names that a statement binds, and those of what it puts something into or calls a method of."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return {node.name}
    found: set[str] = set()
    for one in context.walk(node):
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in one.names}
            found |= {"*"} if any(alias.name == "*" for alias in one.names) else set()
        elif isinstance(one, (ast.Attribute, ast.Subscript, ast.Name)) and not isinstance(one.ctx, ast.Load):
            found |= root_of(one)
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            if isinstance(one.value.func, ast.Attribute):
                found |= root_of(one.value.func)
    return found


def root_of(node: ast.expr) -> set[str]:
    """The name from which an expression starts: ``args`` of ``args.net.width``; none of another one."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


@contextlib.contextmanager
def undisturbed(run: context.Run, path: str) -> Iterator[None]:
    """Leave the script's random numbers as they are: those drawn meanwhile are of the run's seed."""
    numpy = sys.modules.get("numpy")
    seed = run.generator("sibling", os.path.basename(path)).initial_seed() % (1 << 32)
    kept = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy is not None else None
    torch.manual_seed(seed)
    random.seed(seed)
    if numpy is not None:
        numpy.random.seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(kept[0])
        random.setstate(kept[1])
        if numpy is not None:
            numpy.random.set_state(kept[2])
