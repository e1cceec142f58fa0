"""One of several views of a tensor, which one call has returned, is modified in place.
Autograd raises "Output 0 of UnbindBackward0 is a view and is being modified inplace".

    for estimate in estimates:                    for estimate in estimates:
        estimate *= mask                    =>        estimate = estimate * mask
        loss = loss + distance(estimate, y)           loss = loss + distance(estimate, y)

What `chunk`, `split` and `unbind` return, and what a loop over a tensor or `a, b = x` takes out of it, are
views that share one node of the graph, and autograd cannot record that one of them is modified. The same
holds of a view created under `no_grad`: "A view was created in no_grad mode and is being modified inplace
with grad mode enabled".

When not to fix it: where the base tensor itself has to change. Then write into a clone of it.

Preconditions of a fix:

* a variable is changed, by an augmented assignment or by methods whose names end in an underscore, or the
  result of such a method is what is used;
* what is written is read afterwards through that variable, or that result, alone: what the views were taken
  of is not read again but for its shape, nor is the variable by which a caller has handed it in.

Who wants to change the whole tensor through its parts has to write into the whole (`x[i] = ...` is recorded),
or to put the changed parts together again; which of the two is for the author to say.

By hand: compute a new tensor (`row = row * 2` for `row *= 2`); if the whole should change, collect the new
parts in a list and combine them with `torch.stack` or `torch.cat`.

Effect: repairs.

Severity: error.
Clause: autograd can compute each gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import InPlaceChange
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import refused
from gradfix.autograd.values import Tensor
from gradfix.core.codemod import Claim, Effect, Finding, Fix, ReplaceExpression
from gradfix.core.span import Span
from gradfix.core.syntax import last_name, walk
from gradfix.rules.edits import line, note, shown, within_file
from gradfix.rules.out_of_place import bound_anew, bound_at, held_by, out_of_place, read_again, renamed

TAKING_APART = frozenset({"chunk", "split", "unbind", "split_with_sizes"})


@dataclass(eq=False)
class Written:
    """A view that is written in place."""

    run: Run
    change: InPlaceChange

    @property
    def view(self) -> Tensor:
        """What is written."""
        assert isinstance(self.change.written, Tensor)
        return self.change.written


def find(program: Program) -> Iterator[Finding]:
    """Report each write in place that autograd refuses, as what is written is one of several views."""
    for written in program.certain_observations(views_written, lambda one: one.change.site, raises=True):
        yield _finding(program, written)


def views_written(run: Run) -> dict[Hashable, Written]:
    """By its place, the write that ends a run."""
    change = refused(run, "E5")
    return {} if change is None else {change.site: Written(run, change)}


def _finding(program: Program, written: Written) -> Finding:
    site = written.change.site
    assert isinstance(site, (ast.expr, ast.stmt))
    apart = written.view.among
    several = apart is not None and _taken_apart(program, apart) is not None
    notes = [note(site, "autograd raises here: this view may not be modified in place")]
    if apart is not None and line(apart) > 0:
        how = "this returns several views of one tensor" if several else "this view is created here"
        notes.insert(0, note(apart, how))
    name = shown(program, _target(site))
    which = "one of several views of a tensor" if several else "a view created with gradients disabled"
    return Finding(
        "view-written-in-place",
        f"`{name}` is {which}, and is modified in place",
        Span.of(site),
        tuple(notes),
        within_file(_fixes(program, written)),
        "E5",
    )


def _target(site: ast.expr | ast.stmt) -> ast.expr:
    """What is written, as the program calls it."""
    match site:
        case ast.AugAssign():
            return site.target
        case ast.Call(ast.Attribute(value)):
            return value
        case _:
            assert isinstance(site, ast.expr)
            return site


def _fixes(program: Program, written: Written) -> Iterator[Fix]:
    site, apart = written.change.site, written.view.among
    target = _target(site)  # type: ignore[arg-type]
    if not isinstance(target, ast.Name) or apart is None or line(apart) <= 0:
        return
    parts = _taken_apart(program, apart)
    if parts is None or any(read_again(program, apart, name) for name in parts):
        return
    holders = held_by(program, written.change, target)
    if holders is None or not all(_taken_out(program, name, apart) for name in holders):
        return
    statement = program.statement(site)
    again = read_again(program, statement, target.id)
    claim = Claim("E5", line(site))
    if isinstance(statement, (ast.AugAssign, ast.Expr)) and again:
        edit = bound_anew(program, statement)
        if edit is not None:
            yield Fix("compute a new tensor instead", Effect.REPAIRS, (edit,), claim)
    elif isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute) and not again:
        plain = out_of_place(site.func.attr)
        loads = [n for n in walk(statement) if isinstance(n, ast.Name) and n.id == target.id]
        if plain is not None and len(loads) == 1:
            code = renamed(program, site, plain)
            edits = (ReplaceExpression(Span.of(site), code),)
            yield Fix(f"compute a new tensor: `{plain}`", Effect.REPAIRS, edits, claim)


def _taken_apart(program: Program, apart: ast.AST) -> set[str] | None:
    """The variables whose tensors are taken apart at a place; None where it is a single view."""
    if line(apart) <= 0:
        return None
    outer = program.parent(apart)
    if isinstance(apart, ast.Call):
        name = last_name(apart)
        if name in TAKING_APART:
            assert isinstance(apart, ast.Call)
            whole = apart.func.value if isinstance(apart.func, ast.Attribute) else apart.args[0]
            if isinstance(whole, ast.Name) and whole.id == "torch" and apart.args:
                whole = apart.args[0]
            return _variables(whole)
    looped = isinstance(outer, (ast.For, ast.AsyncFor, ast.comprehension)) and outer.iter is apart
    unpacked = (
        isinstance(outer, ast.Assign)
        and outer.value is apart
        and any(isinstance(target, (ast.Tuple, ast.List)) for target in outer.targets)
    )
    assert isinstance(apart, ast.expr)
    return _variables(apart) if looped or unpacked else None


def _taken_out(program: Program, name: ast.Name, apart: ast.AST) -> bool:
    """Whether a variable is bound where the tensor is taken apart, and nowhere else."""
    bindings = bound_at(program, name)
    return bool(bindings) and all(
        getattr(statement, "value", getattr(statement, "iter", None)) is apart
        or (isinstance(statement, ast.For) and apart in set(walk(statement.iter)))
        for statement in bindings
    )


def _variables(whole: ast.expr) -> set[str]:
    """The variables that hold what an expression gives: none, where it computes something of its own."""
    match whole:
        case ast.Call(ast.Name("zip" | "enumerate" | "reversed" | "list" | "tuple"), args):
            return {name for given in args for name in _variables(given)}
        case ast.Call() | ast.BinOp() | ast.UnaryOp():
            return set()
        case _:
            return {
                ast.unparse(node) for node in ast.walk(whole) if isinstance(node, (ast.Name, ast.Attribute))
            }
