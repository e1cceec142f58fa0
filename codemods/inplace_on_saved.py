"""An operation in place overwrites what another operation has saved for its backward.

    rate = layer(x).exp()        rate = layer(x).exp()
    rate += 1               =>   rate = rate + 1
    rate.mean().backward()       rate.mean().backward()

The derivative of an exponential, a sigmoid, a softmax, a square root and others is computed from their
results, that of a product from its factors. A change in place moves the version of that memory, and the
backward raises "one of the variables needed for gradient computation has been modified by an inplace
operation".

Preconditions of a fix:

* the change is an augmented assignment to a variable, a method like ``x.add_(y)`` that is a statement or is
  assigned to ``x`` again, or ``inplace=True`` in a call whose result is assigned to what it changes;
* that variable was assigned in the same block before, from something that is computed and no view, and in
  between nothing else has got hold of it: whoever has would no longer see the change.

An item or a slice that is assigned (``h[t] = ...``) and a layer like ``nn.ReLU(inplace=True)`` are reported
without a fix. So is nothing where a parameter is changed: see stale-forward.

Effect: repairs.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd import operators
from gradfix.autograd.graph import Backward, Change
from gradfix.autograd.interpreter import Run
from gradfix.autograd.questions import backwards
from gradfix.autograd.training_step import Program
from gradfix.codemod import (
    Claim,
    Edit,
    Effect,
    Finding,
    Fix,
    RemoveArgument,
    ReplaceExpression,
    ReplaceStatement,
    Span,
)
from gradfix.diagnosis import Diagnosis, diagnose
from gradfix.edits import line, note, offered, receiver, shown

VIEWS = frozenset(
    """view view_as reshape reshape_as flatten unflatten ravel squeeze unsqueeze t transpose permute movedim
    swapaxes expand expand_as narrow select diagonal chunk split unbind unfold detach data T mT H real imag
    contiguous to cpu cuda float double half type requires_grad_ index_select""".split()
)
"""What gives the same memory, or may."""


def find(program: Program) -> Iterator[Finding]:
    """Report each backward that needs what was overwritten in the forward."""
    for entry in program.entries:
        for event in entry.certain(overwritten, lambda e: e.site, raises=True):
            assert event.failure is not None and event.failure.node is not None
            change, saver = event.failure.culprit, event.failure.node
            assert isinstance(change, Change) and isinstance(event.site, ast.Call)
            # A layer that is called twice is laid down the second time as it was the first.
            again = saver.call is not None and program.function(saver.site) is program.function(change.site)
            saved = saver.call.site if again and saver.call is not None else saver.site
            places = [(saved, "saved here for the backward")] if saved is not change.site else []
            places += [(change.site, "overwritten here"), (event.site, "needed here: autograd raises")]
            if line(change.site) <= 0:
                continue
            assert isinstance(change.site, (ast.expr, ast.stmt))
            yield Finding(
                "inplace-on-saved",
                f"`{shown(program, change.site)}` overwrites what the backward of "
                f"`{receiver(program, event)}` needs",
                Span.of(change.site),
                tuple(note(place, words) for place, words in places if line(place) > 0),
                offered(_fixes(program, change, event)),
            )


def overwritten(run: Run) -> dict[Hashable, Backward]:
    """Backwards that fail for what was changed in place."""
    return {e.site: e for e in reversed(backwards(run)) if diagnose(run, e) is Diagnosis.OVERWRITTEN}


def _fixes(program: Program, change: Change, event: Backward) -> Iterator[Fix]:
    edit = _out_of_place(program, change.site)
    if edit is not None:
        claim = Claim("E2", line(event.site))
        yield Fix("compute a new tensor instead", Effect.REPAIRS, (edit,), claim)


def _out_of_place(program: Program, site: ast.AST) -> Edit | None:
    """The edit that gives the variable a new tensor, where nothing else holds the old one."""
    statement = program.statement(site)
    if statement.lineno != statement.end_lineno:
        return None
    match statement:
        case ast.AugAssign(ast.Name(name), operator, value) if site is statement:
            sign = ast.unparse(ast.BinOp(ast.Name("a"), operator, ast.Name("b")))[2:-2]
            code = f"{name} = {name} {sign} {_enclosed(program, value)}"
            edit: Edit = ReplaceStatement(Span.of(statement), code)
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), method)) as call) if site is call:
            plain = _plain(method)
            if plain is None:
                return None
            code = f"{name} = {_renamed(program, call, plain)}"
            edit = ReplaceStatement(Span.of(statement), code)
        case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(ast.Name(of), method)) as call) if (
            site is call and name == of and method.endswith("_")
        ):
            plain = _plain(method)
            if plain is None:
                return None
            edit = ReplaceExpression(Span.of(call), _renamed(program, call, plain))
        case ast.Assign([ast.Name(name)], ast.Call(_, [ast.Name(of), *_], keywords) as call) if (
            site is call and name == of and any(keyword.arg == "inplace" for keyword in keywords)
        ):
            edit = RemoveArgument(Span.of(call), "inplace")
        case _:
            return None
    return edit if _alone(program, statement, name) else None


def _plain(method: str) -> str | None:
    """The method that does out of place what one does in place."""
    plain = method.removesuffix("_")
    return plain if plain != method and operators.method(plain) is not None else None


def _renamed(program: Program, call: ast.Call, method: str) -> str:
    assert isinstance(call.func, ast.Attribute)
    text, function = program.segment(call), program.segment(call.func)
    return f"{function.removesuffix(call.func.attr)}{method}{text[len(function) :]}"


def _enclosed(program: Program, value: ast.expr) -> str:
    """The text of an operand, in parentheses unless nothing around it can bind into it."""
    text = program.segment(value)
    plain = isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant))
    return text if plain or text.startswith("(") else f"({text})"


def _alone(program: Program, statement: ast.stmt, name: str) -> bool:
    """Whether a variable was computed in the same block, and nothing else holds its tensor at a statement."""
    block = program.block(statement)
    between: list[ast.stmt] = []
    for earlier in reversed(block[: block.index(statement)]):
        if any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
            for n in ast.walk(earlier)
        ):
            value = earlier.value if isinstance(earlier, ast.Assign) and len(earlier.targets) == 1 else None
            plain = isinstance(earlier, ast.Assign) and isinstance(earlier.targets[0], ast.Name)
            return (
                plain
                and value is not None
                and _computed(value)
                and not any(_shared(s, name) for s in between)
            )
        between.append(earlier)
    return False


def _computed(value: ast.expr) -> bool:
    """Whether an expression gives a tensor that is nobody else's."""
    if isinstance(value, (ast.BinOp, ast.UnaryOp)):
        return True
    if not isinstance(value, ast.Call):
        return False
    name = str(getattr(value.func, "attr", "") or getattr(value.func, "id", ""))
    return name not in VIEWS and not name.endswith("_")


def _shared(statement: ast.stmt, name: str) -> bool:
    """Whether somebody else may hold the tensor of a variable after a statement."""
    for node in ast.walk(statement):
        inside = list(ast.iter_child_nodes(node))
        if not any(isinstance(n, ast.Name) and n.id == name for n in inside):
            continue
        if isinstance(node, ast.Attribute) and node.attr in VIEWS:
            return True
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
            "append",
            "extend",
            "insert",
            "add",
        ):
            return True
        if not isinstance(node, (ast.Call, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Compare, ast.keyword)):
            return True
    return False
