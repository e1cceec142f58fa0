"""A tensor that requires grad is modified in place outside of `no_grad`.
Autograd raises "a leaf Variable that requires grad is being used in an in-place operation", or "a view of a
leaf Variable ..." where a part of it is modified (`weight[0] = 0`).

    loss.backward()                         loss.backward()
    w -= rate * w.grad                =>    with torch.no_grad():
    w.grad.zero_()                              w -= rate * w.grad
                                            w.grad.zero_()

The update of a weight is no part of what the next loss is computed from, so no graph should record it:

    for p in net.parameters():              with torch.no_grad():
        p.add_(p.grad, alpha=-rate)   =>        for p in net.parameters():
                                                    p.add_(p.grad, alpha=-rate)

What is data, and requires a gradient for another reason or for none, is computed as a new tensor instead:

    def forward(self, x):                   def forward(self, x):
        x.mul_(2).sub_(1)             =>        x = x.mul(2).sub(1)

When not to fix it: where a gradient should flow through the update (unrolled optimization). Then compute a
new tensor.

Preconditions of a fix:

* under `no_grad`: what is written belongs to a network, is a `Parameter`, is owned by an optimizer, or its
  gradient is read; or it has just been made, and nothing is computed from it yet. What is written into it
  has no graph; or one that leads to weights alone, by no call of a network, and all of these are owned by
  the optimizer that owns what is written: whoever shifts one weight by another one does not train through
  that.
* out of place: a variable is changed that holds data, by an augmented assignment or by methods whose names
  end in an underscore, and nothing reads the values of that tensor afterwards by another variable: a caller
  that has handed it in may ask for its gradient only;
* where items of data are filled with what has a graph, `requires_grad=True` goes where the data is made.

Nothing is reported where graphs may be switched off by what is not known, where the error is expected, and
of a network that cannot be seen unless an optimizer owns it: it may be frozen.

By hand: put updates of weights under `with torch.no_grad():`; for data, compute a new tensor (`x = x * 2`
for `x *= 2`), or create it without `requires_grad=True`.

Effect: repairs.

Severity: error.
Clause: autograd can compute each gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import InPlaceChange, Leaf, Node, reachable_nodes
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import refused
from gradfix.autograd.values import SummaryTensor
from gradfix.core.codemod import Claim, Effect, Enclose, Finding, Fix
from gradfix.core.span import Span
from gradfix.core.syntax import last_name, walk
from gradfix.rules.edits import (
    line,
    note,
    requires_grad_call,
    shown,
    torch_name,
    within_file,
    without_requires_grad,
)
from gradfix.rules.out_of_place import bound_anew, bound_at, held_by

CALM = frozenset(
    """parameters named_parameters modules children zip range enumerate len list tuple reversed zero_grad
    print sign norm item abs sqrt pow exp clone detach clamp mean sum max min float to size dim view reshape t
    randn_like rand_like zeros_like ones_like randn rand zeros ones tensor items values keys get isinstance
    format unsqueeze squeeze flatten data_ptr append""".split()
)
"""What may be called in a loop that goes under ``no_grad``: none of it is differentiated later."""


@dataclass(eq=False)
class Written:
    """A leaf that is written in place."""

    run: Run
    change: InPlaceChange

    @property
    def leaves(self) -> list[Leaf]:
        """What is written: several, where a loop goes over parameters."""
        if isinstance(self.change.written, SummaryTensor):
            return self.change.written.leaves
        assert self.change.failure is not None and self.change.failure.leaf is not None
        return [self.change.failure.leaf]


def find(program: Program) -> Iterator[Finding]:
    """Report each write in place that autograd refuses, as what is written is a leaf."""
    for written in program.certain_observations(leaves_written, lambda one: one.change.site, raises=True):
        yield _finding(program, written)


def leaves_written(run: Run) -> dict[Hashable, Written]:
    """By its place, the write that ends a run."""
    change = refused(run, "E4")
    return {} if change is None else {change.site: Written(run, change)}


def _finding(program: Program, written: Written) -> Finding:
    site = written.change.site
    assert isinstance(site, (ast.expr, ast.stmt))
    (first, *_) = written.leaves
    name = shown(program, _target(site))
    notes = [note(site, "autograd raises here: gradients are enabled, and this modifies a leaf")]
    if line(first.created or site) > 0 and isinstance(first.created, ast.expr):
        notes.insert(0, note(first.created, "this requires grad"))
    return Finding(
        "leaf-written-in-place",
        f"`{name}` requires grad, and is modified in place outside of `no_grad`",
        Span.of(site),
        tuple(notes),
        within_file(_fixes(program, written)),
        "E4",
    )


def _target(site: ast.expr | ast.stmt) -> ast.expr:
    """What is written, as the program calls it."""
    match site:
        case ast.AugAssign():
            return site.target
        case ast.Call(ast.Attribute(value)):
            return value
        case ast.Call(_, [first, *_]):
            return first
        case _:
            assert isinstance(site, ast.expr)
            return site


def _fixes(program: Program, written: Written) -> Iterator[Fix]:
    site = written.change.site
    claim = Claim("E4", line(site))
    statement = program.statement(site)
    if written.change.layer is not None or (isinstance(site, ast.Call) and _whole(program, site) is None):
        return
    target = _target(site)  # type: ignore[arg-type]
    if _is_weight(program, written, target):
        if _without_graph(written):
            yield from _under_no_grad(program, statement, target, claim)
        return
    if not written.change.sources and _just_made(program, written, statement):
        yield from _under_no_grad(program, statement, target, claim)
        return
    if isinstance(target, ast.Name):
        edit = bound_anew(program, statement)
        if edit is not None and _own(program, written, target):
            yield Fix("compute a new tensor instead", Effect.REPAIRS, (edit,), claim)
        return
    made = [requires_grad_call(leaf) for leaf in written.leaves]
    if isinstance(target, ast.Subscript) and written.change.sources and all(made):
        edits = tuple(without_requires_grad(program, call) for call in made if call is not None)
        yield Fix("create the tensor without `requires_grad=True`", Effect.REPAIRS, edits, claim)


def _whole(program: Program, call: ast.Call) -> ast.Expr | None:
    """The statement that a call is all of, but for further methods that are called on its result."""
    at: ast.AST = call
    while True:
        outer = program.parent(at)
        if isinstance(outer, ast.Expr):
            return outer
        method = isinstance(outer, ast.Attribute) and outer.value is at
        if not method and not (isinstance(outer, ast.Call) and outer.func is at):
            return None
        assert outer is not None
        at = outer


def _is_weight(program: Program, written: Written, target: ast.expr) -> bool:
    """Whether what is written is trained: a parameter, or a tensor whose gradient somebody uses."""
    run = written.run
    owned = {leaf for optimizer in run.optimizers for leaf in optimizer.state.owned()}
    read = {leaf for _, leaf in run.grad_reads}
    if any(leaf.label != "tensor" or leaf in owned or leaf in read for leaf in written.leaves):
        return True
    while isinstance(target, ast.Subscript):
        target = target.value
    name = ast.unparse(target)
    region = program.function(target)
    return any(
        (isinstance(node, ast.Attribute) and node.attr == "grad" and ast.unparse(node.value) == name)
        or (isinstance(node, ast.Call) and _differentiates(node, name))
        for node in walk(region)
    )


def _differentiates(call: ast.Call, name: str) -> bool:
    """Whether a call asks for the gradient with respect to a variable, or hands it to an optimizer."""
    function = last_name(call)
    if not (function == "grad" or function[:1].isupper()):
        return False
    handed = [*call.args[1:], *(k.value for k in call.keywords)] if function == "grad" else call.args
    return any(isinstance(n, ast.Name) and n.id == name for given in handed for n in ast.walk(given))


def _without_graph(written: Written) -> bool:
    """Whether what is written into weights has no graph that anybody could want to train through."""
    sources = written.change.sources
    if not sources:
        return True
    nodes = reachable_nodes([(one, True) for one in sources if isinstance(one, Node)])
    leaves = {leaf for node in nodes for leaf, _, _ in node.leaves}
    leaves |= {one for one in sources if isinstance(one, Leaf)}
    optimizers = [one.state.owned() for one in written.run.optimizers]
    return (
        bool(leaves)
        and not any(node.call is not None or node.foreign or node.opaque for node in nodes)
        and any(leaves.union(written.leaves).issubset(owned) for owned in optimizers)
    )


def _just_made(program: Program, written: Written, statement: ast.stmt) -> bool:
    """Whether a leaf was made in the same function, and nothing has been computed of it yet."""
    created = [leaf.created for leaf in written.leaves]
    if any(made is None or line(made) <= 0 for made in created):
        return False
    function = program.function(statement)
    used = {leaf for node in written.run.nodes[:-1] for leaf, _, _ in node.leaves}
    return used.isdisjoint(written.leaves) and all(
        made is not None and program.function(made) is function for made in created
    )


def _own(program: Program, written: Written, target: ast.Name) -> bool:
    """Whether a variable alone holds what is written, in its function or in the one that has handed it in."""
    names = [node for node in walk(program.function(target)) if isinstance(node, (ast.Global, ast.Nonlocal))]
    if any(target.id in node.names for node in names):
        return False
    holders = held_by(program, written.change, target)
    return holders is not None and all(_computed(program, name) for name in holders)


def _computed(program: Program, name: ast.Name) -> bool:
    """Whether a variable is bound to nothing but what is computed there, and nobody else has."""
    bindings = bound_at(program, name)
    return bool(bindings) and all(
        isinstance(one, ast.Assign)
        and all(isinstance(target, ast.Name) for target in one.targets)
        and isinstance(one.value, (ast.Call, ast.BinOp))
        for one in bindings
    )


def _under_no_grad(program: Program, statement: ast.stmt, target: ast.expr, claim: Claim) -> Iterator[Fix]:
    torch = torch_name(program, statement)
    if torch is None:
        return
    around = _calm_around(program, statement)
    last = statement if around is statement else around
    if around is statement:
        last = _last_like_it(program, statement, target)
    code = f"{torch}.no_grad()"
    edit = Enclose(Span.of(around), code, None if last is around else Span.of(last))
    yield Fix(f"modify it under {code}", Effect.REPAIRS, (edit,), claim)


def _calm_around(program: Program, statement: ast.stmt) -> ast.stmt:
    """The outermost loop or condition around a statement in which nothing but such changes is made."""
    found = statement
    for outer in program.ancestors(statement):
        if not isinstance(outer, (ast.For, ast.While, ast.If)) or not _calm(outer):
            break
        found = outer
    return found


def _calm(statement: ast.stmt) -> bool:
    """Whether nothing in a statement is computed for a loss."""
    for node in walk(statement):
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.Return, ast.Break, ast.With)):
            return False
        if isinstance(node, ast.Call):
            name = last_name(node)
            if name not in CALM and not (name.endswith("_") and isinstance(node.func, ast.Attribute)):
                return False
    return True


def _last_like_it(program: Program, statement: ast.stmt, target: ast.expr) -> ast.stmt:
    """The last of the statements directly behind one that change weights as it does."""
    block = program.suite_around(statement)
    last = statement
    for following in block[block.index(statement) + 1 :]:
        if following.lineno != following.end_lineno or not _calm(following):
            break
        if _changes(following, target):
            last = following
        elif not _clears(following):
            break
    return last if statement.lineno == statement.end_lineno else statement


def _changes(statement: ast.stmt, target: ast.expr) -> bool:
    """Whether a statement changes something in place by its gradient, or what another one changes."""
    match statement:
        case ast.AugAssign(written, _, value):
            pass
        case ast.Expr(ast.Call(ast.Attribute(written, name)) as call) if name.endswith("_"):
            value = call
        case _:
            return False
    if ast.unparse(written) == ast.unparse(target):
        return True
    by = f"{ast.unparse(written)}.grad"
    return any(isinstance(node, ast.Attribute) and ast.unparse(node) == by for node in ast.walk(value))


def _clears(statement: ast.stmt) -> bool:
    """Whether a statement clears a gradient."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Attribute(_, "grad"), "zero_" | "detach_"))):
            return True
        case ast.Assign([ast.Attribute(_, "grad")]):
            return True
        case _:
            return False
