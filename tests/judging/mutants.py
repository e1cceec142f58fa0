"""Repairs that were made to fail: what gradfix writes, with one more mistake planted in it.

None of them may be proved by the claim of the fix it was made of. Each is told apart from the repair by what
torch says (see :mod:`judging.oracle`): one that trains as the repair does is no mutant.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gradfix.runtime.probe.coverage import changed
from judging.patches import Text, _loss, _optimizers

PLANTED = 'raise RuntimeError("planted")'


class Mutant(NamedTuple):
    """A version that is to take the place of a repair."""

    kind: str
    text: str
    always: bool = False
    """Whether it may not be proved even where it trains as the repair does."""


def mutants(before: str, after: str) -> Iterator[Mutant]:
    """All mutants of the repair that made ``after`` of ``before``."""
    yield from _raising(before, after)
    yield from _without_effect(before, after)
    for make in OPERATORS:
        for number, text in enumerate(make(after)):
            yield Mutant(f"{make.__name__.strip('_')} {number}", text)


def _raising(before: str, after: str) -> Iterator[Mutant]:
    """Whatever comes to a changed statement ends by an exception."""
    text = Text(after)
    lines = {piece[0] for piece in changed(before, text.text)}
    for node in ast.walk(text.tree):
        if isinstance(node, ast.stmt) and node.lineno in lines:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            first = node.body[0] if inside else node  # type: ignore[attr-defined]
            planted = Text(after)
            found = _before(planted, first, PLANTED)
            if found is not None:
                yield Mutant(f"raise at line {first.lineno}", found, always=True)


def _without_effect(before: str, after: str) -> Iterator[Mutant]:
    """The original, with statements that do nothing where the repair has its own."""
    text = Text(before)
    lines = {piece[0] for piece in changed(after, text.text)}
    found = next((n for n in ast.walk(text.tree) if isinstance(n, ast.stmt) and n.lineno in lines), None)
    if found is not None:
        nothing = _before(text, found, "None")
        if nothing is not None:
            yield Mutant("no effect", nothing, always=True)
    yield Mutant("comment", "# Nothing is changed.\n" + text.text, always=True)


def _before(text: Text, node: ast.stmt, code: str) -> str | None:
    """The text with another statement before one, unless that shares its line."""
    start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]) - 1
    lines = text.text.splitlines()
    if lines[start][: node.col_offset].strip():
        return None
    lines.insert(start, " " * node.col_offset + code)
    made = "\n".join(lines) + "\n"
    try:
        ast.parse(made)
    except SyntaxError:
        return None
    return made


def _dropped(after: str) -> Iterator[str]:
    """Every other call of one backward does not happen."""
    for number in range(len(Text(after).statements("backward"))):
        text = Text(after)
        one = text.statements("backward")[number]
        text.prefix("import itertools\n_turn = itertools.count()")
        text.put(one, f"if next(_turn) % 2:\n    {text.source(one)}")
        yield from _made(text)


def _doubled(after: str) -> Iterator[str]:
    """One loss counts twice."""
    for number in range(len(Text(after).statements("backward"))):
        text = Text(after)
        one = text.statements("backward")[number]
        loss = _loss(one)
        if loss.isidentifier():
            text.put(one, f"{loss} = {loss} * 2\n{text.source(one)}")
            yield from _made(text)


def _cleared(after: str) -> Iterator[str]:
    """Gradients are cleared before one backward."""
    for number in range(len(Text(after).statements("backward"))):
        for _, name in _optimizers(Text(after)):
            text = Text(after)
            one = text.statements("backward")[number]
            text.put(one, f"{name}.zero_grad()\n{text.source(one)}")
            yield from _made(text)


def _never_cleared(after: str) -> Iterator[str]:
    """One ``zero_grad`` is left out."""
    for number in range(len(Text(after).statements("zero_grad"))):
        text = Text(after)
        text.put(text.statements("zero_grad")[number], "pass")
        yield from _made(text)


def _term_detached(after: str) -> Iterator[str]:
    """One term of a sum trains nobody."""
    for number in range(len(_sums(Text(after)))):
        for side in ("left", "right"):
            text = Text(after)
            one = _sums(text)[number]
            assert isinstance(one.value, ast.BinOp)
            term = getattr(one.value, side)
            setattr(one.value, side, ast.Call(ast.Attribute(term, "detach", ast.Load()), [], []))
            text.put(one, ast.unparse(ast.fix_missing_locations(one)))
            yield from _made(text)


def _sums(text: Text) -> list[ast.Assign]:
    return [
        node
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.BinOp)
        and isinstance(node.value.op, ast.Add | ast.Sub)
        and "loss" in ast.unparse(node.targets[0]).lower()
    ]


def _other_weights(after: str) -> Iterator[str]:
    """An optimizer begins with weights that are not those of the original."""
    for number in range(len(_optimizers(Text(after)))):
        text = Text(after)
        one, name = _optimizers(text)[number]
        text.put(one, f"{text.source(one)}\n{_moved(name, 1.5)}")
        yield from _made(text)


def _weights_moved(after: str) -> Iterator[str]:
    """Weights are moved beside an optimizer's steps, before one backward."""
    for number in range(len(Text(after).statements("backward"))):
        for _, name in _optimizers(Text(after))[:1]:
            text = Text(after)
            one = text.statements("backward")[number]
            text.put(one, f"{text.source(one)}\n{_moved(name, 0.9)}")
            yield from _made(text)


def _scaled(after: str) -> Iterator[str]:
    """A hand halves the gradients that one optimizer is about to use."""
    for _, name in _optimizers(Text(after)):
        text = Text(after)
        steps = [one for one in text.statements("step") if text.source(one) == f"{name}.step()"]
        if steps:
            halved = f"{_of_each(name)}\n        if _one.grad is not None:\n            _one.grad.mul_(0.5)"
            text.put(steps[0], f"{halved}\n{text.source(steps[0])}")
            yield from _made(text)


def _path_cut(after: str) -> Iterator[str]:
    """What one call is given has no graph any more."""
    for number in range(len(_given(Text(after)))):
        text = Text(after)
        statement, at = _given(text)[number]
        given = at.args[0]
        at.args[0] = ast.Call(ast.Attribute(given, "detach", ast.Load()), [], [])
        text.put(statement, ast.unparse(ast.fix_missing_locations(statement)))
        yield from _made(text)


def _given(text: Text) -> list[tuple[ast.stmt, ast.Call]]:
    """The calls that are given a name which something was assigned to, and the statements they stand in."""
    made = {
        target.id
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Call, ast.BinOp))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return [
        (statement, call)
        for statement in ast.walk(text.tree)
        if isinstance(statement, (ast.Assign, ast.Return))
        for call in ast.walk(statement)
        if isinstance(call, ast.Call) and call.args
        if isinstance(call.args[0], ast.Name) and call.args[0].id in made
    ]


def _moved(optimizer: str, factor: float) -> str:
    """Statements that multiply the weights of an optimizer."""
    return f"{_of_each(optimizer)}\n        _one.data.mul_({factor})"


def _of_each(optimizer: str) -> str:
    """The beginning of a loop over the weights of an optimizer."""
    return f"for _group in {optimizer}.param_groups:\n    for _one in _group['params']:"


def _made(text: Text) -> Iterator[str]:
    made = text.patched()
    if made is not None:
        yield made


OPERATORS: tuple[Callable[[str], Iterator[str]], ...] = (
    _dropped,
    _doubled,
    _cleared,
    _never_cleared,
    _term_detached,
    _other_weights,
    _weights_moved,
    _scaled,
    _path_cut,
)
