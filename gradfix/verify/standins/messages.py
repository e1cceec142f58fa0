"""What errors say of the dimensions of made-up values, where no number in their message names one."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Sequence

from . import content, context, guards, plans

SCALAR = re.compile(
    r"only 0-dimensional arrays can be conv|only length-1 arrays can be|only size-1 arrays|"
    r"with \d+ elements cannot be converted to Scalar|only one element tensors can be converted|"
    r"truth value of an array with more than one|value of Tensor with more than one value is ambiguous"
)
"""Messages where an array has the place of a number."""
A_SIZE = re.compile(r"must be tuple of ints, ?but (?:found element of type|got) (?:Tensor|Content)")
"""Messages where it has that of a size."""


def advise(error: BaseException) -> str | None:
    """The plan with fewer or more dimensions for what the statement names that failed."""
    trace = plans.innermost(error)
    if trace is None or not content.book.touched:
        return None
    frame = trace.tb_frame
    around = context.statements_at(context.run().tree(frame.f_code.co_filename), trace.tb_lineno)
    if not around:
        return None
    if SCALAR.search(str(error)):
        return a_number(around[-1], frame)
    if A_SIZE.search(str(error)):
        # What code would have given that failed may be anything, and the size of a layer is the network's.
        return a_number(around[-1], frame, [place for place in content.book.dims if guards.made(place)])
    if isinstance(error, IndexError) and str(error) == "tuple index out of range":
        return deeper(around[-1], frame)
    return None


def a_number(statement: ast.stmt, frame: types.FrameType, apart: Sequence[str] = ()) -> str | None:
    """The plan in which an array is a number that a statement names, or asks for by its name."""
    names = {
        getattr(one, "id", getattr(one, "attr", getattr(one, "value", None))) for one in ast.walk(statement)
    }
    # By whatever name a value goes: ``for word, count in counts.items() if count > least``.
    meant = {getattr(one, "_place", "") for name, one in frame.f_locals.items() if name in names}
    for place, dims in reversed(list(content.book.dims.items())):
        if dims and (content.last(place) in names or place in meant) and place not in apart:
            plan = content.planned_with(place, "dims", [])
            if plan is not None:
                return plan
    return None


def deeper(statement: ast.stmt, frame: types.FrameType) -> str | None:
    """The plan with as many dimensions for an array as a statement asks for sizes of its shape."""
    for node in ast.walk(statement):
        if not (isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.UnaryOp))):
            continue
        place = plans.whole_number(node.slice, frame)
        held = sizes_of(node.value, frame)
        if place is None or held is None or not held:
            continue
        wanted = place + 1 if place >= 0 else -place
        found = plans.located(held[-1])
        if wanted > len(held) and found is not None:
            name = found[0]
            dims = content.book.dims[name]
            more = [content.book.prime(f"{name} {len(dims)} {one}") for one in range(wanted - len(held))]
            return content.planned_with(name, "dims", [*dims, *more])
    return None


def sizes_of(node: ast.expr, frame: types.FrameType) -> list[int] | None:
    """The whole numbers in the tuple that an expression is, which only reads it."""
    if not all(isinstance(one, plans.READ) for one in ast.walk(node)):
        return None
    try:
        found = eval(compile(ast.Expression(node), "", "eval"), frame.f_globals, frame.f_locals)
    except Exception:
        return None
    return list(found) if isinstance(found, tuple) and all(type(one) is int for one in found) else None
