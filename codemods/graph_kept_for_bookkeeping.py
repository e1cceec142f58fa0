"""A loss is added up or collected for the log without `detach()`, and keeps the graph of every iteration.
Memory grows with each of them, and a long epoch ends with "out of memory".

    for x, y in loader:                       for x, y in loader:
        loss = loss_fn(model(x), y)               loss = loss_fn(model(x), y)
        optimizer.zero_grad()                     optimizer.zero_grad()
        loss.backward()                           loss.backward()
        optimizer.step()                          optimizer.step()
        total += loss                    =>       total += loss.detach()

`total` is a tensor with a graph: each addition attaches the graph of its iteration to those of all earlier
ones, and nothing is freed as long as `total` exists. The same goes for `losses.append(loss)`, for `running =
0.9 * running + 0.1 * loss`, for meters and dicts for the log, and for buffers that a network updates in its
forward.

When not to fix it: where `backward()` is called on the sum itself, after the loop.

Preconditions:

* the value adds up or is listed from iteration to iteration. What replaces the value of the previous
  iteration keeps one graph, and a list that is emptied in every iteration keeps none. A sum that starts over
  in some iterations, under a condition, adds up in the others;
* no backward uses what is kept, whichever way undecided conditions go: no sum that is backpropagated every
  few steps, no log probabilities that are stacked for the loss at the end of an episode;
* whoever tried would fail: it is a loss, and the backward of the iteration has freed its graph, so that a
  second one raises. Of what is no loss, and of a graph that is not freed, nobody who is not seen may get
  hold: no unknown function that is handed it, and no caller outside the file, as a result or in an object;
* what is kept is certainly a tensor: it is one to torch, or `backward` is called on it. A variable that is a
  number in some branch has no `detach`;
* the loop is no short one: `range(3)`, or a loop over the parts of a program.

Where a method of a meter adds up what it is handed, numbers as well, the call that hands it a
loss is rewritten.

By hand: keep a number or a detached tensor for the log: `total += loss.item()`,
`losses.append(loss.detach())`.

Effect: preserves. The gradients are the same, bit for bit.

Severity: warning. What is kept grows with every iteration, until memory runs out.
Clause: nothing is kept longer than it is used.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Edge, LoopContext, Node, Stack, Stored, reachable_nodes
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import apart, backwards, expanded_operands
from gradfix.autograd.values import Sequence, Tensor, Unknown
from gradfix.core.codemod import Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.core.syntax import LOOPS, walk
from gradfix.rules.edits import detach_at, note, shown, targets_in
from gradfix.rules.out_of_place import is_parameter

SHORT = 8
"""A loop over so few numbers keeps so few graphs that nobody notices."""


class Kept(NamedTuple):
    """A value that is kept from iteration to iteration with its graph."""

    place: ast.expr
    """The expression that is to be detached."""
    site: ast.AST
    """Where it is added up or listed; in another file, the call that leads there."""
    backward: Backward | None
    """What has freed its graph."""
    listed: bool


@dataclass
class Survey:
    """What one run shows of what is kept."""

    kept: dict[Hashable, Kept] = field(default_factory=dict)
    walked: set[ast.AST] = field(default_factory=set)
    """Where something is added up or listed for a backward."""


def find(program: Program) -> Iterator[Finding]:
    """Report each value that keeps the graphs of all iterations for no backward."""
    reported: set[ast.AST] = set()
    survey = cache(partial(_survey, program))
    for entry in program.entry_points:
        found = entry.certain_observations(
            lambda run: survey(run).kept,
            lambda kept: kept.site,
            raises=False,
            against=lambda run: survey(run).walked,
        )
        for kept in found:
            if kept.place not in reported:
                reported.add(kept.place)
                yield _finding(program, kept)


def _finding(program: Program, kept: Kept) -> Finding:
    what = shown(program, kept.place)
    how = "is collected" if kept.listed else "is added up"
    statement = program.statement(kept.place)
    notes = [note(statement, "this keeps the graphs of all previous iterations in memory")]
    if kept.backward is not None and getattr(kept.backward.site, "lineno", 0) > 0:
        notes.append(note(kept.backward.site, "this frees the graph: no other backward can use it"))
    else:
        notes.append(note(statement, "no backward uses it"))
    edits = (detach_at(program, kept.place),)
    return Finding(
        "graph-kept-for-bookkeeping",
        f"`{what}` {how} without `detach()`, and keeps the graph of every iteration: memory grows",
        Span.of(kept.place),
        tuple(notes),
        (Fix("detach what is kept", Effect.PRESERVES, edits, only_cuts=True),),
    )


def _survey(program: Program, run: Run) -> Survey:
    found = Survey()
    walked = {node for event in backwards(run) for node in event.visited}
    if not walked:
        return found
    # What something is differentiated with respect to is not walked itself: ``autograd.grad(loss, weights)``.
    used = walked | {edge.node for node in walked for edge in node.edges}
    outside = _outside(run)
    sums: set[Node] = set()
    for node, edge in _added_up(program, run, used):
        if not sums.isdisjoint(reachable_nodes([(edge.node, True)])):
            continue  # What is told of another sum mends this one.
        kept = _kept(program, run, node, edge, walked, outside)
        if kept is not None:
            found.kept.setdefault(kept.place, kept)
            sums.add(node)
    for stored, expression, node in _listed(run):
        if node in used and (node not in walked or _for_a_backward(program, run, stored, expression, node)):
            found.walked.add(_here(expression, stored.stack))
        elif _grows(program, run, stored):
            graph = reachable_nodes([(node, True)])
            backward = _freed(graph, stored.loops)
            if not _is_out_of_use(run, node, node, graph, backward, walked, outside):
                continue
            if not sums.isdisjoint(graph):
                continue
            place = _in_file(program, run, expression, node, stored.stack)
            if place is not None and _is_tensor(program, run, place, node):
                kept = Kept(place, _here(expression, stored.stack), backward, True)
                found.kept.setdefault(place, kept)
    found.walked.update(_here(node.site, node.stack) for node in used)
    # What one iteration has kept for a backward, another one keeps for nothing: ``losses[-1].backward()``.
    found.kept = {place: kept for place, kept in found.kept.items() if kept.site not in found.walked}
    return found


def _outside(run: Run) -> set[Node]:
    """What somebody who is not seen has, and could walk if it is not freed."""
    return run.escaped_since(-1) | reachable_nodes([(node, True) for node in run.returned]).keys()


def _freed(graph: dict[Node, bool], loops: LoopContext) -> Backward | None:
    """The backward of the same iteration that has freed a graph: to walk it again raises.

    What a backward walks after the loop is there until then, whoever else keeps it.
    """
    for node, sure in graph.items():
        event = node.freed_by
        if (
            sure
            and event is not None
            and node.raises_when_freed is not False
            and event.loops[: len(loops)] == loops
        ):
            return event
    return None


def _is_out_of_use(
    run: Run,
    kept: Node,
    added: Node,
    graph: dict[Node, bool],
    backward: Backward | None,
    walked: set[Node],
    outside: set[Node],
) -> bool:
    """Whether nobody can differentiate what is kept.

    A loss whose graph is freed is of no use to anybody. What else is computed on the way may be: weights that
    a step of MAML has made are walked up to, and not beyond. So nobody who is not seen may have it.
    """
    if backward is None:
        left = all(node.freed_by is None and not node.maybe_freed for node in graph)  # retain_graph=True
        # Of a network that cannot be seen it is not known what of its graph there was to free.
        left = left or _is_a_loss(run, added, walked)
        return left and kept not in outside and not walked.isdisjoint(graph)
    return kept not in outside or _is_a_loss(run, added, walked)


def _is_a_loss(run: Run, node: Node, walked: set[Node]) -> bool:
    """Whether a backward begins at a value, or it is computed of such values alone: ``loss * len(x)``."""
    roots = {root for event in backwards(run) for root in event.roots}
    work = [node]
    for at in work:
        if at not in roots:
            if at in walked or not at.edges or at.leaves:
                return False
            work += [edge.node for edge in at.edges]
    return True


def _here(site: ast.AST, stack: Stack) -> ast.AST:
    """A place in this file, or the call that leads from this file to it."""
    if getattr(site, "lineno", 0) > 0:
        return site
    return next((call for call, _ in reversed(stack) if getattr(call, "lineno", 0) > 0), site)


# ---------------------------------------------------------------------------- what adds up


def _added_up(program: Program, run: Run, walked: set[Node]) -> Iterator[tuple[Node, Edge]]:
    """Each operation whose result is made with its own result of an earlier iteration, and what is new in it.

    Only what no backward walks counts: a state that is handed on in training is another mistake.
    """
    nodes = [node for node in run.nodes if node not in walked and not (node.foreign or node.opaque)]
    alone = {node for node in nodes if len(node.edges) == 1 and _goes_on(program, node)}
    if not alone and not any(
        _loop(edge.node, node) for node in nodes for edge in node.edges if edge.node not in walked
    ):
        return
    before: dict[Node, set[ast.AST]] = {}
    """For each node, the places of what was computed in earlier iterations that it holds on to."""
    for node in nodes:
        held: set[ast.AST] = set()
        for edge in node.edges:
            if edge.node in before:
                held |= before[edge.node]
                loop = _loop(edge.node, node)
                if loop is not None and not _is_short(loop):
                    held.add(edge.node.site)
        before[node] = held
    for node in nodes:
        if node.site in before[node] or node in alone:
            for edge in node.edges:
                if not before.get(edge.node) and _loop(edge.node, node) is None:
                    yield node, edge


def _goes_on(program: Program, node: Node) -> bool:
    """Whether what an iteration adds to is what the iteration before left, but for iterations that begin anew
    at the end.

    ``total += loss; if i % 100 == 0: print(total); total = 0``: the few iterations that are run may be those.
    """
    if not isinstance(node.site, ast.AugAssign) or not node.loops or node.site.lineno <= 0:
        return False
    loop, target = node.loops[-1][0], ast.unparse(node.site.target)
    around = program.ancestors(node.site)
    if loop not in around or _is_short(loop):
        return False
    anew = [
        part
        for part in walk(loop)
        if isinstance(part, ast.Assign)
        and target in [ast.unparse(one) for t in part.targets for one in targets_in(t)]
    ]
    return bool(anew) and all(
        any(isinstance(outer, ast.If) and outer not in around for outer in program.ancestors(part))
        for part in anew
    )


def _loop(older: Node, node: Node) -> ast.AST | None:
    """The loop of which ``older`` belongs to an earlier iteration than ``node``, if there is one."""
    depth = apart(older.loops, node.loops)
    return None if depth is None else node.loops[depth][0]


def _is_short(loop: ast.AST) -> bool:
    """Whether this is a loop over few numbers, such as ``range(3)``."""
    match getattr(loop, "iter", None):
        case ast.Call(ast.Name("range"), [ast.Constant(int(count))]):
            return count <= SHORT
    return False


def _kept(
    program: Program, run: Run, node: Node, edge: Edge, walked: set[Node], outside: set[Node]
) -> Kept | None:
    """What is added up at ``node`` by way of ``edge``, if nobody can walk it."""
    added, operand = edge.node, edge.operand
    if operand is not None and [other.operand for other in node.edges].count(operand) > 1:
        operand = _new_item(program, operand)
    if isinstance(operand, ast.Subscript) and isinstance(operand.ctx, ast.Store):
        # ``losses[i] = loss``: the item is what is put there.
        holder = program.parent(operand)
        operand = holder.value if isinstance(holder, ast.Assign) else None
    while operand is added.site and isinstance(operand, ast.BinOp) and added not in walked:
        if len(added.edges) != 1 or added.leaves or added.edges[0].operand is None:
            break
        added, operand = added.edges[0].node, added.edges[0].operand  # ``0.1 * loss``
    graph = reachable_nodes([(added, True)])
    if operand is None or walked.isdisjoint(graph):
        return None
    backward = _freed(graph, node.loops)
    if not _is_out_of_use(run, node, added, graph, backward, walked, outside):
        return None
    place = _in_file(program, run, operand, added, node.stack)
    if place is None or not _is_tensor(program, run, place, added):
        return None
    return Kept(place, _here(node.site, node.stack), backward, False)


def _new_item(program: Program, operand: ast.expr) -> ast.expr | None:
    """What is put beside what was there, of tensors that are handed over together: ``cat((kept, new))``."""
    statement = program.statement(operand)
    if not isinstance(operand, (ast.Tuple, ast.List)) or not isinstance(statement, ast.Assign):
        return None
    targets = {ast.unparse(target) for target in statement.targets}
    kept = [item for item in operand.elts if ast.unparse(item) in targets]
    new = [item for item in operand.elts if item not in kept and not isinstance(item, ast.Starred)]
    return new[0] if len(kept) == len(new) == 1 and len(operand.elts) == 2 else None


# ---------------------------------------------------------------------------- what is listed


def _listed(run: Run) -> Iterator[tuple[Stored, ast.expr, Node]]:
    """What lists were given to hold: each tensor with the expression that names it."""
    for stored in run.stored:
        for expression, value in expanded_operands([(stored.expression, stored.value)]):
            if isinstance(value, (Tensor, Unknown)) and value.node is not None:
                yield stored, expression, value.node


def _grows(program: Program, run: Run, stored: Stored) -> bool:
    """Whether a list holds more of this from iteration to iteration."""
    others = [
        other
        for other in run.stored
        if other.expression is stored.expression and other.into is stored.into and other is not stored
    ]
    again = [other for other in others if _apart(other.loops, stored.loops)]
    if again:
        return any(other.held > stored.held or not isinstance(stored.into, Sequence) for other in again)
    # Of a loop over epochs one iteration shows it all: the list is older than that. A loop over the parts of
    # a network has no iterations.
    into, iterations = stored.into, [loop for loop, _ in stored.loops]
    loops = [at for at in program.ancestors(stored.expression) if isinstance(at, LOOPS)]
    parts = sum(loop not in iterations for loop in loops)
    return (
        isinstance(into, Sequence)
        and into.loops is not None
        and stored.symbolic - parts > into.loops
        and any(item is stored.value for item in into.items)
    )


def _apart(one: LoopContext, other: LoopContext) -> bool:
    """Whether these are two iterations of one loop, which is no short one."""
    depth = apart(one, other)
    return depth is not None and not _is_short(one[depth][0])


def _for_a_backward(program: Program, run: Run, stored: Stored, expression: ast.expr, node: Node) -> bool:
    """Whether what is listed is walked by way of the list.

    It is not if it was walked before. Later in the same iteration it may be walked by its own name.
    """
    text = ast.unparse(expression)
    for event in backwards(run):
        if node not in event.visited or event.serial < stored.serial:
            continue
        if event.loops[: len(stored.loops)] != stored.loops or _taken_from(program, expression, stored):
            return True
        if node in event.roots and not any(ast.unparse(given) == text for given in event.receivers):
            return True
        for user in event.visited:
            for edge in user.edges:
                if edge.node is node and user.serial > stored.serial:
                    if edge.operand is None or ast.unparse(edge.operand) != text:
                        return True
    return False


def _taken_from(program: Program, expression: ast.expr, stored: Stored) -> bool:
    """Whether a loop around takes items out of the list, by their place or one after the other."""
    at = program.parent(expression)
    while isinstance(at, (ast.List, ast.Tuple)):
        at = program.parent(at)
    match at:
        case ast.Call(ast.Attribute(into)) | ast.AugAssign(into):
            name = ast.unparse(into)
        case _:
            return True
    for loop, _ in stored.loops:
        for node in walk(loop):
            holder = (
                node.value if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) else None
            )
            holder = node.iter if isinstance(node, (ast.For, ast.comprehension)) else holder
            if holder is not None and ast.unparse(holder) == name:
                return True
    return False


# ---------------------------------------------------------------------------- where it is detached


def _in_file(program: Program, run: Run, expression: ast.expr, node: Node, stack: Stack) -> ast.expr | None:
    """Where in this file a value is kept: the argument of the call, if what is called only keeps books.

    Other calls may hand the same function numbers, which have no ``detach``.
    """
    while stack:
        call, given = stack[-1]
        if expression.lineno > 0 and not is_parameter(program, expression):
            return expression
        if any(call in event.calls for event in backwards(run)):
            break  # It differentiates what it is handed.
        if call.lineno > 0 and not isinstance(program.parent(call), ast.Expr):  # type: ignore[attr-defined]
            return None  # It may give back what it is handed.
        handed = [written for value, written in given if getattr(value, "node", None) is node]
        keywords = call.keywords if isinstance(call, ast.Call) and isinstance(expression, ast.Name) else []
        handed += [keyword.value for keyword in keywords if keyword.arg == expression.id]  # type: ignore[attr-defined]
        if len(handed) != 1:
            return None
        expression, stack = handed[0], stack[:-1]
    return expression if expression.lineno > 0 else None


def _is_tensor(program: Program, run: Run, expression: ast.expr, node: Node) -> bool:
    """Whether a value is a tensor, whichever way the program goes."""
    text = ast.unparse(expression)
    if any(
        node in event.roots or text in map(ast.unparse, event.receivers)
        for event in backwards(run)
        if event.certain
    ):
        return True
    return node.raises_when_freed is not None and not _may_be_a_number(program, expression, text)


def _may_be_a_number(program: Program, expression: ast.expr, text: str) -> bool:
    """Whether a variable is bound to a number or to nothing somewhere: ``penalty = 0``."""
    for part in walk(program.function(expression)):
        if isinstance(part, ast.Assign) and any(ast.unparse(target) == text for target in part.targets):
            if any(isinstance(value, ast.Constant) for value in _alternatives(part.value)):
                return True
    return any(isinstance(value, ast.Constant) for value in _alternatives(expression))


def _alternatives(value: ast.expr) -> Iterator[ast.expr]:
    """What an expression may come to be: ``0 if off else loss``, ``loss or 0``."""
    if isinstance(value, ast.IfExp):
        yield from _alternatives(value.body)
        yield from _alternatives(value.orelse)
    elif isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _alternatives(part)
    else:
        yield value
