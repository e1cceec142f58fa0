"""Two backward calls go through the same graph, and the first one has freed it.
Autograd raises "Trying to backward through the graph a second time".

    loss_a.backward()          =>   (loss_a + loss_b).backward()
    loss_b.backward()
    optimizer.step()                optimizer.step()

Autograd frees what a graph has saved as soon as a backward has used it.

Which repair:

* one optimizer (or none) uses both gradients, and nothing looks at or clears gradients in between: the
  losses are summed into one backward. The gradients are those of two backwards but for rounding; A loop that
  does nothing but differentiate them becomes one backward of their sum;
* what leads only to parameters whose gradients of the second loss no optimizer ever uses (a target that
  other networks compute) is detached where that loss uses it;
* where one loss mixes a network of its own with the network that the other loss trains, and each network has
  its own optimizer (an actor's loss whose advantage carries the critic's graph), what comes from the latter
  is detached in it. If both losses are meant for that network, or one optimizer has both networks, the graph
  is kept or the losses are summed: a choice for the author, and a fix that is not safe. Offered first, if
  the other loss takes the same thing for a constant (returns of which the advantage is a part), is the
  detach;
* otherwise `retain_graph=True` goes on all but the last backward, so that each gradient arrives at its own
  time, if it is certain that both losses are meant for what they share: one optimizer uses both, and nobody
  throws either away;
* what is computed before a loop, or before a closure that an optimizer calls again (`LBFGS`), of parameters
  that an optimizer moves, is computed in every iteration or call, if nothing else reads it;
* what a network computes once before a loop, and every iteration goes through, is detached where the
  iteration uses it, if no optimizer owns that network's parameters and nothing reads their gradients
  (features of a picture that is imitated, a target from a network that is only followed).

A graph that is gone through twice because a loss leaked into another network, or because a prediction or a
state was kept too long, is not repaired here: retaining it would hide that mistake (see undetached-fake,
stale-forward, carried-hidden-state, requires-grad-input).

When not to fix it: where one of the losses should not train what both share: do not keep the graph then,
detach it there.

By hand: where both losses should train what they share, add them and call backward once; where one should
not, detach what they share before it.

Effect: repairs, or changes where keeping the graph is a choice.

Severity: error.
Clause: autograd can compute each gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterator

from gradfix.autograd.graph import (
    Backward,
    Clip,
    InPlaceChange,
    Leaf,
    Node,
    Step,
    ZeroGrad,
    begins_in_unseen_code,
    reachable_nodes,
)
from gradfix.autograd.model_ledger import ledger_of
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    calls_in,
    consumers,
    detached_code,
    leading_to,
    operands_reaching,
    steps,
)
from gradfix.autograd.values import Tensor, Value
from gradfix.core.codemod import Claim, Edit, Effect, Finding, Fix, RemoveStatement, ReplaceExpression
from gradfix.core.intent import uncertain_pairs
from gradfix.core.segments import call_method, enclosed
from gradfix.core.span import Span
from gradfix.rules.diagnosis import Diagnosis, diagnose
from gradfix.rules.edits import (
    add_retain,
    insert,
    line,
    names_bound,
    names_read,
    note,
    receiver,
    shown,
    within_file,
)
from gradfix.rules.moving import called_again, moved_inside


def find(program: Program) -> Iterator[Finding]:
    """Report each second traversal of a freed graph that no other codemod explains."""
    for run, event in program.certain_observations(used_twice, lambda f: f[1].site, raises=True):
        assert event.failure is not None and isinstance(event.failure.culprit, Backward)
        assert isinstance(event.site, ast.Call)
        first = event.failure.culprit
        loss = receiver(program, event)
        same = first.site is event.site
        by = "an earlier run of this line" if same else f"the backward of `{receiver(program, first)}`"
        message = f"the graph of `{loss}` has already been freed by {by}"
        notes = [
            note(first.site, "this backward frees the graph"),
            note(event.site, "this backward goes through it again: autograd raises"),
        ]
        advice = ""
        if set(first.roots) == set(event.roots):
            advice = f"compute `{loss}` again before its second backward"
        if diagnose(run, event) is Diagnosis.OUTSIDE:
            advice = "compute it inside the loop, or detach it if this loss should not train it"
            message = (
                f"`{loss}` goes through a graph that is built before the loop and freed by the backward "
                "of the first iteration"
            )
            notes = [note(event.site, "every iteration goes through it: the second one raises")]
            notes[:0] = [note(place, "computed once, before the loop") for place in _origin(program, event)]
        elif (function := called_again(program, event)) is not None:
            advice = f"compute it inside `{function.name}`, or detach it if this loss should not train it"
            message = (
                f"`{loss}` goes through a graph that is built before `{function.name}` and freed by its "
                "first call"
            )
            notes = [note(event.site, "every call goes through it: the second one raises")]
        yield Finding(
            "graph-used-twice",
            message,
            Span.of(event.site),
            tuple(notes),
            within_file(_fixes(program, run, event)),
            event.failure.kind,
            advice,
        )


def used_twice(run: Run) -> dict[Hashable, tuple[Run, Backward]]:
    """Second traversals that are nothing but that."""
    return {
        event.site: (run, event)
        for event in reversed(list(backwards(run)))
        if diagnose(run, event) is Diagnosis.USED_TWICE or _of_a_network(run, event)
    }


def _origin(program: Program, event: Backward) -> list[ast.expr]:
    """Where this function computed, before the loop, what has been freed."""
    assert event.failure is not None and event.failure.node is not None
    node = event.failure.node
    places = [node.site, *(call.site for call in calls_in([node]))]
    here = program.function(event.site)
    return [p for p in places if isinstance(p, ast.expr) and program.function(p) is here][:1]


def _of_a_network(run: Run, event: Backward) -> bool:
    """Whether what was computed before the loop, and is traversed in each iteration, is a network's
    output."""
    if diagnose(run, event) is not Diagnosis.OUTSIDE:
        return False
    assert event.failure is not None
    assert event.failure.node is not None
    below = reachable_nodes([(event.failure.node, True)])
    return any(leaf.label != "tensor" for node in below for leaf, _, _ in node.leaves)


def _fixes(program: Program, run: Run, event: Backward) -> Iterator[Fix]:
    assert event.failure is not None
    claim = Claim("E1", line(event.site))
    idle = _idle(run, event)
    if event.failure.node in idle:
        what = "detach {}: no optimizer uses the gradients that this loss sends through it"
        yield from _as_fix(_detached(program, event, event.visited.keys() - idle, idle), what, claim)
        return
    if diagnose(run, event) is Diagnosis.OUTSIDE:
        yield from _cut_off(program, run, event)
        yield from _recomputed(program, run, event)
        yield from _one_for_all(program, run, event)
        return
    group = _group(run, event)
    if len(group) < 2:
        yield from _recomputed(program, run, event)
        return
    unsure = _doubt(run, group)
    if unsure is None:
        for what, edits in _joined(program, run, group):
            yield Fix(what, Effect.REPAIRS, tuple(edits), claim)
        return
    leaking, other = unsure
    if leaking is not None:
        separated = _separated(program, run, group, leaking, other, claim)
        if consumers(run, leaking) != consumers(run, other):
            yield from separated
        for fix in separated:
            # One optimizer has both, and consumes less of one: what is detached elsewhere says so.
            yield fix._replace(effect=Effect.CHANGES, claim=claim._replace(unchanged=(), losses="rerouted"))
    for what, edits in _joined(program, run, group):
        # It is for the author to say that both losses are meant for what they share.
        yield Fix(what, Effect.CHANGES, tuple(edits), claim._replace(unchanged=()))


def _recomputed(program: Program, run: Run, event: Backward) -> Iterator[Fix]:
    """What a loop, or a closure, walks again is computed in it: an optimizer moves what it is made of."""
    owned = {leaf for one in run.optimizers for leaf in one.state.owned()}
    assert event.failure is not None and event.failure.node is not None
    below = reachable_nodes([(event.failure.node, True)])
    if not any(leaf in owned for node in below for leaf, _, _ in node.leaves):
        return
    moved = moved_inside(program, event)
    if moved is not None:
        claim = Claim("E1", line(event.site), beyond=False, same_forwards=False)
        yield Fix(moved[0], Effect.REPAIRS, tuple(moved[1]), claim)


def _joined(program: Program, run: Run, group: list[Backward]) -> Iterator[tuple[str, list[Edit]]]:
    """How all losses of a group can go through their common graph."""
    summed = _summed(program, run, group)
    if summed is not None:
        yield "call backward once, on the sum of the losses", summed
    kept = _kept(program, group)
    if kept is not None:
        yield "keep the graph for the later backward (`retain_graph=True`)", kept


def _kept(program: Program, group: list[Backward]) -> list[Edit] | None:
    edits = [add_retain(program, member) for member in group[:-1] if member.retain is not True]
    kept = [edit for edit in edits if edit is not None]
    return kept if len(kept) == len(edits) else None


def _doubt(run: Run, group: list[Backward]) -> tuple[Backward | None, Backward] | None:
    """Two losses of a group of which it is uncertain that both are meant for what they share.

    The first is the one that most likely was to take as a constant what the other one trains.
    """
    found = next(uncertain_pairs(ledger_of(run, group, steps(run))), None)
    if found is None:
        return None
    pair = group[found.first.index], group[found.second.index]
    if found.leaking is not None:
        return pair if found.leaking is found.first else pair[::-1]
    if any(_constant_there(*each) for each in (pair, pair[::-1])):
        return pair if _constant_there(*pair) else pair[::-1]
    return None, pair[1]


def _constant_there(leaking: Backward, other: Backward) -> bool:
    """Whether what weighs one loss is taken as a constant in the loss that trains what it comes from.

    A return that the values are trained on is detached there, and the advantage is a part of it.
    """
    weights = {node for _, node in _uses(*_weighed(leaking, other))}
    besides = (node.graphless_operand[1] for node in other.visited if node.graphless_operand is not None)
    cuts = (
        value.detached_from[0]
        for value in besides
        if isinstance(value, Tensor) and value.detached_from is not None
    )
    return any(not weights.isdisjoint(reachable_nodes([(node, True)])) for node in cuts)


def _weighed(leaking: Backward, other: Backward) -> tuple[set[Node], set[Node]]:
    """What a loss goes through on the way to what it alone trains, and what leads elsewhere beside that."""
    own = leaking.reached.keys() - other.reached.keys()
    taught = leading_to(leaking.visited, own)
    shared = {leaf for leaf in leaking.reached if leaf in other.reached}
    return taught & _before(leaking, own, ()), leading_to(leaking.visited, shared) - taught


def _separated(
    program: Program, run: Run, group: list[Backward], leaking: Backward, other: Backward, claim: Claim
) -> Iterator[Fix]:
    """Detach in one loss what the other trains, where that does not come by way of its own parameters.

    Both may go on through a trunk that they share: that graph is kept.
    """
    shared = leaking.visited.keys() & other.visited.keys()
    own = leaking.reached.keys() - other.reached.keys()
    beside = _before(leaking, own, shared)
    detached = _detached(program, leaking, beside, shared, own)
    if detached is None:
        detached = _detached(program, leaking, *_weighed(leaking, other), own)
    if detached is None:
        return
    names, edits = detached
    rest = _before(leaking, (), {node for _, node in _uses(beside, shared)})
    what = f"detach {names}, which the other loss trains"
    if not any(node.raises_when_freed is not False for node in rest & shared):
        yield Fix(what, Effect.REPAIRS, tuple(edits), claim)
        return
    for how, joined in _joined(program, run, group):
        yield Fix(f"{what}, and {how}", Effect.REPAIRS, (*edits, *joined), claim)


def _before(event: Backward, parameters: Collection[Leaf], until: Collection[Node]) -> set[Node]:
    """What a loss goes through before it comes to ``until`` or to what uses some parameters."""
    found: set[Node] = set()
    waiting = list(event.roots)
    while waiting:
        node = waiting.pop()
        if node in found or node in until or any(leaf in parameters for leaf, _, _ in node.leaves):
            continue
        found.add(node)
        waiting += [edge.node for edge in node.edges]
    return found


def _cut_off(program: Program, run: Run, event: Backward) -> Iterator[Fix]:
    """Detach what was computed before the loop, if nobody trains what computes it."""
    assert event.failure is not None and event.failure.node is not None
    before = len(event.failure.node.loops)
    older = {n for n in event.visited if n.loops == event.loops[: len(n.loops)] and len(n.loops) <= before}
    trained = {leaf for o in run.optimizers for leaf in o.state.owned()}
    looked_at = {leaf for _, leaf in run.grad_reads} | run.differentiated
    leaves = {leaf for n in reachable_nodes([(n, True) for n in older]) for leaf, _, _ in n.leaves}
    if not all(o.state.in_view for o in run.optimizers) or leaves & (trained | looked_at):
        return
    found = _detached(program, event, event.visited.keys() - older, older)
    yield from _as_fix(found, "detach what is computed before the loop", Claim("E1", line(event.site)))


def _one_for_all(program: Program, run: Run, event: Backward) -> Iterator[Fix]:
    """One backward of their sum in the place of a loop that does nothing but differentiate losses."""
    statement, call = program.statement(event.site), event.site
    loop = program.parent(statement)
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    if not isinstance(loop, ast.For) or loop.body != [statement] or loop.orelse or not _only_retain(call):
        return
    if not isinstance(loop.target, ast.Name) or loop.target.id != program.segment(call.func.value):
        return
    group = [b for b in backwards(run) if b.site is call and b.loops[:-1] == event.loops[:-1]]
    if not _together(run, group) or "sum" in names_bound(program.tree):
        return
    text = program.segment(loop.iter)
    # What is gone through is one tensor, or something that holds several.
    elements = all(root.site is loop.iter for b in group for root in b.roots)
    total = call_method(text, loop.iter, "sum") if elements else f"sum({text})"
    edits = [insert(loop, "before", f"{total}.backward()"), RemoveStatement(Span.of(loop))]
    unsure = _doubt(run, group) is not None
    claim = Claim("E1", line(event.site))
    yield Fix(
        "call backward once, on the sum of the losses",
        Effect.CHANGES if unsure else Effect.REPAIRS,
        tuple(edits),
        claim._replace(unchanged=()) if unsure else claim,
    )


def _together(run: Run, group: list[Backward]) -> bool:
    """Whether one optimizer, or none, consumes what some backwards give, and nothing happens in between."""
    owners = [consumers(run, b) for b in group]
    if len(owners[0]) > 1 or any(o != owners[0] for o in owners):
        return False
    first, last = group[0].serial, group[-1].serial
    between = [
        e
        for e in run.events
        if first < e.serial < last and isinstance(e, (Step, ZeroGrad, InPlaceChange, Clip))
    ]
    return not between and not run.grad_read_between(first, last)


def _uses(within: Collection[Node], beyond: Collection[Node]) -> Iterator[tuple[ast.expr | None, Node]]:
    """Where a loss uses something of ``beyond`` directly."""
    for node in within:
        for edge in node.edges:
            if edge.node in beyond:
                yield edge.operand, edge.node


def _detached(
    program: Program,
    event: Backward,
    within: Collection[Node],
    beyond: Collection[Node],
    own: Collection[Leaf] = (),
) -> tuple[str, list[Edit]] | None:
    """What is detached, in words, and how, where a loss uses something of ``beyond``.

    What goes into calls of networks that have parameters of its ``own`` stays as it is.
    """
    uses: list[tuple[ast.expr, Value]] = [
        (operand, Tensor(node)) for operand, node in _uses(within, beyond) if operand is not None
    ]
    calls = [call for call in calls_in(within) if call.leaves.isdisjoint(own)]
    uses += [use for call in calls for use in operands_reaching(call, set(beyond))]
    # Within the forward of a network it has another name, for another caller perhaps.
    here = program.function(event.site)
    edits: dict[Span, Edit] = {}
    for expression, value in uses:
        if expression.lineno > 0 and program.function(expression) is here:
            code = detached_code(program.segment(expression), expression, value)
            if code is None:
                return None
            edits[Span.of(expression)] = ReplaceExpression(Span.of(expression), code)
    names = dict.fromkeys(f"`{shown(program, e)}`" for e, _ in uses if Span.of(e) in edits)
    return (", ".join(names), list(edits.values())) if edits else None


def _as_fix(detached: tuple[str, list[Edit]] | None, what: str, claim: Claim) -> Iterator[Fix]:
    if detached is not None:
        names, edits = detached
        yield Fix(what.format(names), Effect.REPAIRS, tuple(edits), claim)


def _idle(run: Run, event: Backward) -> set[Node]:
    """What a loss flows through to parameters for which nobody uses its gradients, and to no other ones."""
    taken = {leaf for s in steps(run) for leaf, held in s.consumed.items() if event in held}
    every = {leaf for node in event.visited for leaf, _, _ in node.leaves}
    looked_at = {leaf for _, leaf in run.grad_reads} | run.differentiated
    if not taken or not all(o.state.in_view for o in run.optimizers) or every & looked_at:
        return set()
    if any(leaf.unknown_grad for leaf in every) or any(begins_in_unseen_code(node) for node in event.visited):
        return set()
    return event.visited.keys() - leading_to(event.visited, taken)


def _group(run: Run, event: Backward) -> list[Backward]:
    """All traversals of the graph in this iteration, in order, each call once."""
    assert event.failure is not None
    first = event.failure.culprit
    shared = {n for n in event.visited if isinstance(first, Backward) and n in first.visited}
    members = [
        b
        for b in backwards(run)
        if b.loops == event.loops and any(n in shared for n in b.visited) and b.certain
    ]
    if len({b.site for b in members}) < len(members):
        return []
    return members


def _summed(program: Program, run: Run, group: list[Backward]) -> list[Edit] | None:
    statements = [program.statement(b.site) for b in group]
    plain = all(
        isinstance(s, ast.Expr) and s.value is b.site and b.accumulates and _only_retain(b.site)
        for s, b in zip(statements, group)
    )
    if not plain or any(
        program.suite_around(s) is not program.suite_around(statements[0]) for s in statements
    ):
        return None
    if not _together(run, group):
        return None
    block = program.suite_around(statements[0])
    inside = block[block.index(statements[0]) + 1 : block.index(statements[-1])]
    bound = {name for s in inside for name in names_bound(s)}
    if any(names_read(r) & bound for b in group[:-1] for r in b.receivers):
        return None
    target = group[-1].receivers[0]
    total, *texts = (program.segment(b.receivers[0]) for b in group)
    total = enclosed(total, "", " + loss")
    for text in texts:
        total += f" + {enclosed(text, f'{total} + ')}"
    edits: list[Edit] = [RemoveStatement(Span.of(s)) for s in statements[:-1]]
    return [*edits, ReplaceExpression(Span.of(target), f"({total})")]


def _only_retain(site: ast.AST) -> bool:
    return (
        isinstance(site, ast.Call)
        and isinstance(site.func, ast.Attribute)
        and not site.args
        and not site.keywords
    )
