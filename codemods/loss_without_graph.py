"""A loss is backpropagated that something has cut off from every parameter.

    loss = criterion(net(x).detach(), y)   =>   loss = criterion(net(x), y)
    loss.backward()                             loss.backward()

Autograd raises "element 0 of tensors does not require grad and does not have a grad_fn". What a network has
computed was detached on its way to the loss, or became a number (`item()`, `numpy()`), a choice (`argmax`),
data (`.data`) or a new tensor (`torch.tensor(...)`), or the network ran under `no_grad`.

Preconditions:

* nothing that the loss is computed of has a graph, for certain;
* of what it is computed of in the same function, something had a graph before it was cut off.

Where one such place alone is on the way to the loss, it is a `.detach()`, `.data` or `torch.tensor(x)` of
what an optimizer trains, and no other network is run for the loss, it goes: there is nothing else that the
loss could be for. A choice has no derivative, so there the loss has to be another one, and nothing is
rewritten.

By hand: compute the loss of what the network gives, logits rather than labels, without `detach`, `.data`,
`.item()`, `argmax`, numpy or a new tensor on the way, and not under `no_grad`.

Effect: repairs.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import Backward, Node, reach
from gradfix.autograd.questions import backwards
from gradfix.autograd.relevance import walk
from gradfix.autograd.run import Run
from gradfix.autograd.training_step import Program
from gradfix.codemod import Claim, Effect, Finding, Fix, ReplaceExpression, Span
from gradfix.edits import line, note, offered, receiver, shown

FOLLOWED = 200
"""Expressions that are looked at for what a loss is computed of."""
CHOICES = frozenset(
    {"argmax", "argmin", "argsort", "round", "floor", "ceil", "sign", "eq", "gt", "lt", "ge", "le"}
)


@dataclass(eq=False)
class Severed:
    """A loss that has no graph."""

    run: Run
    backward: Backward


def find(program: Program) -> Iterator[Finding]:
    """Report each loss without a graph of which it is known where that was cut off."""
    for entry in program.entries:
        for severed in entry.certain(without_graph, lambda one: one.backward.site, raises=True):
            if line(severed.backward.site) <= 0:
                continue
            cuts = _cuts(program, severed)
            if cuts:
                yield _finding(program, severed, cuts)


def without_graph(run: Run) -> dict[Hashable, Severed]:
    """Backwards that fail as what they are to differentiate has no graph."""
    failing = (e for e in backwards(run) if e.failure is not None and e.failure.kind == "E3" and e.certain)
    return {event.site: Severed(run, event) for event in failing}


def _finding(program: Program, severed: Severed, cuts: dict[ast.expr, Node | None]) -> Finding:
    site = severed.backward.site
    assert isinstance(site, ast.Call)
    loss = receiver(program, severed.backward)
    notes = [note(cut, _words(cut, node)) for cut, node in cuts.items()]
    notes.append(note(site, "autograd raises here: nothing that this is computed of requires grad"))
    return Finding(
        "loss-without-graph",
        f"`{loss}` has no graph: it is cut off from what it is to train",
        Span.of(site),
        tuple(notes),
        offered(_fixes(program, severed, cuts)),
        "E3",
    )


def _words(cut: ast.expr, node: Node | None) -> str:
    if node is None:
        return "no graph is recorded here"
    named = cut.func if isinstance(cut, ast.Call) else cut
    name = str(getattr(named, "attr", getattr(named, "id", "")))
    return f"`{name}` has no derivative" if name in CHOICES else f"no gradient passes `{name}`"


def _cuts(program: Program, severed: Severed) -> dict[ast.expr, Node | None]:
    """The places on the way to a loss at which a graph ends, each with that graph.

    None where none is recorded: a network runs under ``no_grad``.
    """
    run = severed.run
    known: dict[ast.AST, Node] = {site: node for _, node, site in run.detached} | run.cuts
    silent = {call.site for call in run.module_calls} - {node.call.site for node in run.nodes if node.call}
    found: dict[ast.expr, Node | None] = {}
    for node in _computed_of(program, severed.backward):
        if isinstance(node, ast.expr) and node in known:
            found[node] = known[node]
        elif isinstance(node, ast.Call) and node in silent and _within_no_grad(program, node):
            found[node] = None
    return found


def _within_no_grad(program: Program, call: ast.Call) -> bool:
    return any(
        isinstance(outer, ast.With)
        and any("no_grad" in ast.unparse(item.context_expr) for item in outer.items)
        for outer in program.ancestors(call)
    )


def _computed_of(program: Program, backward: Backward) -> Iterator[ast.AST]:
    """The expressions that a loss is computed of, as far as one function shows it."""
    function = program.function(backward.site)
    assigned: dict[str, list[ast.expr]] = {}
    for node in walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in walk(target):
                    if isinstance(name, (ast.Name, ast.Attribute)) and not isinstance(name.ctx, ast.Load):
                        assigned.setdefault(ast.unparse(name), []).append(node.value)
    waiting: list[ast.expr] = [e for e in backward.receivers if line(e) > 0]
    seen = set(waiting)
    while waiting and len(seen) < FOLLOWED:
        for node in walk(waiting.pop()):
            yield node
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                for value in assigned.get(ast.unparse(node), ()):
                    if value not in seen:
                        seen.add(value)
                        waiting.append(value)


def _fixes(program: Program, severed: Severed, cuts: dict[ast.expr, Node | None]) -> Iterator[Fix]:
    if len(cuts) != 1:
        return
    ((cut, node),) = cuts.items()
    owned = {leaf for optimizer in severed.run.optimizers for leaf in optimizer.state.owned()}
    graph = reach([(node, True)]) if node is not None else {}
    if not any(sure and known and leaf in owned for n, sure in graph.items() for leaf, known, _ in n.leaves):
        return
    run_for_it = {call.site for call in severed.run.module_calls} & {*_computed_of(program, severed.backward)}
    if not run_for_it <= {one.call.site for one in graph if one.call is not None}:
        return
    match cut:
        case ast.Call(ast.Attribute(value, "detach"), [], []) | ast.Attribute(value, "data"):
            words = f"let it run through `{shown(program, value)}`"
        case ast.Call(ast.Attribute(_, "tensor"), [ast.Name() | ast.Call() | ast.BinOp() as value], []):
            words = f"take `{shown(program, value)}` itself"
        case _:
            return
    edit = ReplaceExpression(Span.of(cut), program.segment(value))
    yield Fix(words, Effect.REPAIRS, (edit,), Claim("E3", line(severed.backward.site)))
