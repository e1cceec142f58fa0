"""Where in a program that counts which a rewrite has changed: the forward slice of the changed statements.

Who detaches a tensor where it is made changes what happens wherever it is used, and who does so within a
function changes it for every caller. So a run that is to prove something has to come to these uses as well:
to those at least from which a loss may be made. What is only looked at (printed, detached, converted to a
number, used where no gradients are recorded) is none.

Names are told by the function that binds them, attributes by what they are called. What a function is given
is not followed into it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from gradfix.runtime.probe.coverage import Piece, parts, piece_of

LOOKS = frozenset(
    {"item", "detach", "detach_", "numpy", "tolist", "argmax", "eq", "ne", "size", "dim", "numel"}
)
"""Methods of whose result nothing is differentiated."""
FIELDS = frozenset({"data", "shape", "dtype", "device", "grad", "requires_grad", "ndim"})
"""Attributes of which the same is true."""
READERS = frozenset({"print", "float", "int", "str", "repr", "len", "isinstance", "type", "id", "bool"})
"""Functions of which it is."""
KEEPS = frozenset({"zero_grad", "step", "backward", "train", "eval"})
"""Methods that leave what they are called on what it was."""
UNRECORDED = frozenset({"no_grad", "inference_mode"})

Name = tuple[int, str]
"""A name, with the identity of the function that binds it; an attribute goes by 0."""


def affected(text: str, changed: Collection[Piece]) -> tuple[Piece, ...]:
    """The pieces of ``text`` that use what the ``changed`` pieces compute, and these."""
    try:
        program = _Program(ast.parse(text))
    except (SyntaxError, ValueError):
        return tuple(changed)
    return tuple(sorted({*changed, *program.slice({*changed})}))


@dataclass
class _Statement:
    """A statement without those of its body."""

    node: ast.stmt
    function: ast.AST
    """The function, or the module, that it is a part of."""
    of: str
    """The class that it is a part of, if any."""
    recorded: bool
    """Whether autograd records what it computes."""
    arms: tuple[tuple[int, str], ...] = ()
    """The branches that it stands in: the identity of each ``if``, and which part of it."""
    uses: dict[Name, list[ast.expr]] = field(default_factory=dict)
    """By name that may be differentiated: the innermost parts that read it, evaluated under a condition."""
    calls: dict[str, list[ast.expr]] = field(default_factory=dict)
    """The same for the functions that it calls, by their names."""
    binds: set[Name] = field(default_factory=set)


class _Program:
    """The statements of a program, and what each reads and binds."""

    def __init__(self, tree: ast.Module) -> None:
        self.bound: dict[int, set[str]] = {}
        """By function: the names that it binds."""
        self.outer: dict[int, ast.AST] = {}
        self.statements = list(self._block(tree.body, tree, "", True))
        for one in self.statements:
            for node in _own(one.node):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self.bound.setdefault(id(one.function), set()).add(node.id)
        for one in self.statements:
            self._read(one)

    def _block(
        self,
        body: list[ast.stmt],
        function: ast.AST,
        of: str,
        recorded: bool,
        arms: tuple[tuple[int, str], ...] = (),
    ) -> Iterator[_Statement]:
        for node in body:
            yield _Statement(node, function, of, recorded, arms)
            inner, records = function, recorded
            within = node.name if isinstance(node, ast.ClassDef) else of
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = node
                self.outer[id(node)] = function
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                self.bound.setdefault(id(node), set()).update(one.arg for one in arguments)
                records = not any(_mentions(one, UNRECORDED) for one in node.decorator_list)
            elif isinstance(node, ast.With):
                records = recorded and not any(_mentions(one.context_expr, UNRECORDED) for one in node.items)
            for name in ("body", "orelse", "finalbody"):
                here = (*arms, (id(node), name)) if isinstance(node, ast.If) else arms
                yield from self._block(getattr(node, name, []), inner, within, records, here)
            for handler in getattr(node, "handlers", []):
                yield from self._block(handler.body, inner, within, records, arms)
            for case in getattr(node, "cases", []):
                yield from self._block(case.body, inner, within, records, arms)

    def _name(self, function: ast.AST, name: str) -> Name:
        """A name as a function means it."""
        while id(function) in self.outer and name not in self.bound.get(id(function), ()):
            function = self.outer[id(function)]
        return id(function), name

    def _read(self, one: _Statement) -> None:
        conditional = list(parts(one.node))
        inside = {
            id(node): part for part in conditional for node in ast.walk(part)
        }  # The innermost one comes last.
        for node in _own(one.node):
            part = [inside[id(node)]] if id(node) in inside else []
            if isinstance(node, ast.Call):
                called = node.func
                name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
                one.calls.setdefault(name, []).extend(part)
                target = called.value if isinstance(called, ast.Attribute) else None
                whole = isinstance(one.node, ast.Expr) and node is one.node.value and name not in KEEPS
                if whole and isinstance(target, ast.Name):
                    one.binds.add(self._name(one.function, target.id))  # It may change what it is called on.
        for node in _differentiable(one.node):
            part = [inside[id(node)]] if id(node) in inside else []
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                one.uses.setdefault(self._name(one.function, node.id), []).extend(part)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                one.uses.setdefault((0, node.attr), []).extend(part)
        for node in _own(one.node):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                one.binds.add(self._name(one.function, node.id))
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                one.binds.add((0, node.attr))
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                base = node.value
                if isinstance(base, ast.Name):
                    one.binds.add(self._name(one.function, base.id))

    def slice(self, changed: set[Piece]) -> Iterator[Piece]:
        """The pieces that use what changed ones compute, directly or by way of others."""
        names: dict[Name, list[_Statement]] = {}
        functions: set[str] = set()
        reached: set[int] = set()
        waiting = [
            one
            for one in self.statements
            if piece_of(one.node) in changed or any(piece_of(part) in changed for part in parts(one.node))
        ]
        while waiting:
            one = waiting.pop()
            if id(one) in reached:
                continue
            reached.add(id(one))
            for name in one.binds:
                names.setdefault(name, []).append(one)
            if isinstance(one.node, ast.Return) and isinstance(one.function, ast.FunctionDef):
                functions |= self._names_of(one.function.name, one.of)
            waiting += [
                other
                for other in self.statements
                if id(other) not in reached and _computes(other) and self._touched(other, names, functions)
            ]
        for one in self.statements:
            if not _computes(one):
                continue
            found = [uses for name, uses in one.uses.items() if self._flows(names.get(name, []), name, one)]
            found += [calls for name, calls in one.calls.items() if name in functions]
            if found:
                yield piece_of(one.node)
                yield from (piece_of(part) for each in found for part in each)

    def _names_of(self, function: str, of: str) -> set[str]:
        """What a function is called by: a network, by the names of the objects of its class."""
        if function not in ("forward", "__call__"):
            return {function}
        made = [one for one in self.statements if of in one.calls]
        return {function, *(name for one in made for _, name in one.binds)}

    def _touched(self, one: _Statement, names: dict[Name, list[_Statement]], functions: set[str]) -> bool:
        flows = any(self._flows(names[name], name, one) for name in one.uses.keys() & names.keys())
        return flows or not functions.isdisjoint(one.calls)

    def _flows(self, binders: list[_Statement], name: Name, to: _Statement) -> bool:
        """Whether what a name is bound to by one of some statements may be what another one reads.

        It is not what another branch of the same ``if`` reads that binds the name itself.
        """
        return any(not self._apart(one, name, to) for one in binders)

    def _apart(self, one: _Statement, name: Name, other: _Statement) -> bool:
        arms = dict(one.arms)
        apart = [arm for arm in other.arms if arms.get(arm[0], arm[1]) != arm[1]]
        return any(arm in own.arms and name in own.binds for arm in apart for own in self.statements)


def _computes(one: _Statement) -> bool:
    """Whether a loss may be made of what a statement computes, or is differentiated there."""
    if not one.recorded:
        return False
    if isinstance(one.node, ast.Expr):
        return not one.calls.keys().isdisjoint({"backward", "step", "append", "extend", "update"})
    return isinstance(one.node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return))


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement without those of its body."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from _own(child)


def _differentiable(node: ast.AST) -> Iterator[ast.AST]:
    """The same without what is only looked at."""
    if isinstance(node, ast.Attribute) and (node.attr in FIELDS or node.attr in LOOKS):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in READERS:
        return
    if isinstance(node, (ast.JoinedStr, ast.Compare)):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from _differentiable(child)


def _mentions(node: ast.AST, names: Collection[str]) -> bool:
    return any(getattr(one, "attr", getattr(one, "id", None)) in names for one in ast.walk(node))
