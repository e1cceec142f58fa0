"""A state that a loop carries from one iteration to the next keeps the graph of all earlier iterations.
The next backward goes through these graphs again, and autograd raises.

    for x, y in loader:                        for x, y in loader:
                                                   hidden = hidden.detach()
        out, hidden = rnn(x, hidden)      =>       out, hidden = rnn(x, hidden)
        loss = loss_fn(out, y)                     loss = loss_fn(out, y)
        loss.backward(retain_graph=True)           loss.backward()
        optimizer.step()                           optimizer.step()

Without `retain_graph` the second iteration raises "Trying to backward through the graph a second time"; with
it, the optimizer's step has modified the weights that the old iterations saved, and autograd raises
"modified by an inplace operation". The assignment `h = h_next` only binds a name: what was modified in place
is the weight.

The repair cuts the carried value once for each backward: at the plain assignment that hands it over, if
there is one, else where the iteration begins. It goes to the end of the iteration where the first state is
itself trained (a parameter), so that this keeps its gradient. `retain_graph=True` goes with it.

When not to fix it: where gradients should flow back through several iterations. Then add up their losses,
call backward once, and detach only after that.

Preconditions: the failing backward certainly reaches a node of an earlier iteration of the loop, and every
value that leads there is known by name and make (a tensor, a list or tuple of tensors, None at first).
Reported without a repair: a list that each iteration adds to, which should have been cleared with what goes
along with it; and a value into which iterations put nothing but parameters (`rays = rays + pose`). That may
be no state at all: cut, it would still be moved once more by each iteration, where each iteration should
start over.

By hand: detach what is carried at the start of each iteration (`h = h.detach()`), or add up the losses of
all iterations and call backward once, after the loop.

Effect: repairs. Gradients up to the first failing iteration are unchanged; afterwards each iteration learns
from its own segment (truncated backpropagation through time).

Severity: error.
Clause: autograd can compute each gradient.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from gradfix.autograd.graph import Backward, Leaf, LoopContext, Node, Storage, reachable_nodes
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, detached_code, earlier_iteration
from gradfix.autograd.values import Sequence, Tensor, Unknown, Value, graphs_in, tensors_in
from gradfix.core.codemod import Claim, Edit, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.core.syntax import walk
from gradfix.rules.diagnosis import Diagnosis, diagnose
from gradfix.rules.edits import (
    detach_at,
    drop_retain,
    in_order,
    insert,
    line,
    note,
    receiver,
    targets_in,
    within_file,
)
from gradfix.rules.moving import cause_of


@dataclass(eq=False)
class Carried:
    """A failing backward, the loop whose iterations it crosses, and what crosses them."""

    run: Run
    event: Backward
    loop: ast.AST
    loops: LoopContext
    values: dict[str, Value] = field(default_factory=dict)
    """Source text of what carries the graph -> its value at the start of the iteration."""


def find(program: Program) -> Iterator[Finding]:
    """Report each backward that crosses into an earlier iteration through a carried value."""
    seen: set[ast.AST] = set()
    for carried in program.certain_observations(crossing, lambda c: c.event.site, raises=True):
        if carried.event.site in seen:
            continue
        seen.add(carried.event.site)
        yield _finding(program, carried)


def crossing(run: Run) -> dict[Hashable, Carried]:
    """Failures at nodes of an earlier iteration."""
    found: dict[Hashable, Carried] = {}
    for event in backwards(run):
        if diagnose(run, event) is not Diagnosis.CARRIED:
            continue
        assert event.failure is not None and event.failure.node is not None
        depth = earlier_iteration(event.failure.node, event)
        if depth is None:
            continue
        loop, _ = event.loops[depth]
        loops = event.loops[: depth + 1]
        at_start = run.carried.get((loop, loops), {})
        brought = run.brought.get((loop, loops), {})
        values = {
            name: value
            for name, value in at_start.items()
            if any(map(event.visited.get, brought.get(name) or graphs_in([value])))
            and _read_first(loop, name)
        }
        if values:
            known = found.setdefault(event.site, Carried(run, event, loop, loops, values))
            known.values.update({k: v for k, v in values.items() if k not in known.values})
    return found


def _read_first(loop: ast.AST, name: str) -> bool:
    """Whether an iteration may read a variable before it binds it: else what it held is a leftover."""
    top = re.split(r"[.\[]", name, maxsplit=1)[0]
    return top != name or _first_use_in(_body(loop) or [], name) is ast.Load


def _first_use_in(statements: list[ast.stmt], name: str) -> type[ast.expr_context] | None:
    """What statements do with a variable first: load it on one of the ways through them, or store it."""
    for statement in statements:
        branches: list[list[ast.stmt]] = []
        parts: list[ast.AST] = [statement]
        if isinstance(statement, ast.If):
            branches, parts = [statement.body, statement.orelse], [statement.test]
        for node in (n for part in parts for n in in_order(part)):
            if isinstance(node, ast.Name) and node.id == name:
                return type(node.ctx)
        uses = [_first_use_in(branch, name) for branch in branches]
        if ast.Load in uses:
            return ast.Load
        if uses and None not in uses:
            return uses[0]
    return None


def _current(node: Node, event: Backward) -> bool:
    assert event.failure is not None and event.failure.node is not None
    depth = earlier_iteration(event.failure.node, event)
    return depth is not None and node.loops[: depth + 1] == event.loops[: depth + 1]


def _finding(program: Program, carried: Carried) -> Finding:
    event = carried.event
    failure = event.failure
    assert failure is not None and failure.culprit is not None and isinstance(event.site, ast.Call)
    names = ", ".join(f"`{name}`" for name in carried.values)
    notes = []
    for node, edge in failure.route:
        if edge is not None and not _current(edge.node, event):
            place = edge.operand if edge.operand is not None else node.site
            notes.append(note(place, "the state of the previous iteration, which still has its graph"))
            break
    if failure.kind == "E1":
        notes.append(note(failure.culprit.site, "the backward of the previous iteration freed that graph"))
        why = "which their backward has already freed"
    else:
        notes.append(
            note(failure.culprit.site, "this modifies weights that the graph of the earlier iteration needs")
        )
        why = "and the weights that it needs have been modified since"
    notes.append(note(event.site, "this backward also goes through the earlier iterations: autograd raises"))
    verb = "carry" if len(carried.values) > 1 else "carries"
    growing = [name for name, value in carried.values.items() if _grows(carried, value)]
    if growing:
        why += f"; `{growing[0]}` grows in every iteration and is never cleared"
    moved = [name for name in carried.values if _only_moved(program, carried, name)]
    advice = ""
    if moved:
        advice = (
            f"if each iteration should start from the value before the loop, do not assign to `{moved[0]}` "
            "itself; if it is a state that goes on, detach it once per iteration"
        )
    return Finding(
        "carried-hidden-state",
        f"{names} {verb} the graph of earlier iterations into `{receiver(program, event)}`, {why}",
        Span.of(event.site),
        tuple(notes),
        within_file([] if growing or moved else _fixes(program, carried)),
        failure.kind,
        advice=advice,
        for_later=_for_later(carried),
    )


def _for_later(carried: Carried) -> bool:
    """Whether earlier iterations computed what is carried by something that no loss of theirs went through.

    The last state of a recurrent network may be used by no loss, but the ones before it come from the same
    operation.
    """
    before = itertools.takewhile(lambda event: event is not carried.event, backwards(carried.run))
    differentiated = {node for event in before for node in event.visited}
    operations = {(node.op, node.site) for node in differentiated}
    assert carried.event.failure is not None
    return any(
        node.raises_when_freed is True and (node.op, node.site) not in operations
        for node, _ in carried.event.failure.route
        if not _current(node, carried.event)
    )


def _only_moved(program: Program, carried: Carried, name: str) -> bool:
    """Whether each iteration computes a value from what it was and from parameters alone.

    A network's output counts only where no iteration is given anything of its own: else this may be a series.
    """
    within, old = _of_this_iteration(program, carried, name)
    if not within:
        within, old = _of_the_iteration_before(carried, name)
    known = all(not node.foreign and (node.call is not None or not node.opaque) for node in within)
    if not within or old is None or not known or not _data(within) <= {old.storage}:
        return False
    return not any(node.call for node in within) or _repeats_itself(carried, _iteration_before(carried.loops))


def _iteration_before(loops: LoopContext) -> LoopContext:
    loop, number = loops[-1]
    return (*loops[:-1], (loop, number - 1))


def _of_this_iteration(program: Program, carried: Carried, name: str) -> tuple[list[Node], Tensor | None]:
    """What the failing iteration computes a variable anew by, of its value, and that value.

    It has a graph by then, which shows all that is computed of it.
    """
    old, home, depth = carried.values[name], program.function(carried.loop), len(carried.loops)
    if not isinstance(old, Tensor) or old.node is None:
        return [], None
    bound = []
    for node in carried.event.visited:
        if node.loops[:depth] == carried.loops:
            at = cause_of(program, home, node)
            statement = program.statement(at) if getattr(at, "lineno", 0) > 0 else None
            targets = statement.targets if isinstance(statement, ast.Assign) else ()
            if any(program.segment(one) == name for target in targets for one in targets_in(target)):
                bound.append(node)
    behind, below = reachable_nodes([(node, True) for node in bound]), reachable_nodes([(old.node, True)])
    within = [node for node in behind if node not in below]
    whole = old.node in behind and all(node.loops[:depth] == carried.loops for node in within)
    return (within, old) if whole else ([], None)


def _of_the_iteration_before(carried: Carried, name: str) -> tuple[list[Node], Tensor | None]:
    """What the iteration before computed a value by, and what it was made of, if that iteration did all of
    it."""
    loops, (loop, number) = carried.loops[:-1], carried.loops[-1]
    earlier, run = _iteration_before(carried.loops), carried.run
    before = run.carried.get((loop, earlier), {}) if number > 1 else run.before.get((loop, loops), {})
    new, old = carried.values[name], before.get(name)
    if not isinstance(new, Tensor) or new.node is None or not isinstance(old, Tensor):
        return [], None
    below = reachable_nodes([(old.node, True)]) if old.node is not None else {}
    within = [node for node in reachable_nodes([(new.node, True)]) if node not in below]
    return (within, old) if all(n.loops[: len(earlier)] == earlier for n in within) else ([], None)


def _data(nodes: Iterable[Node]) -> set[Storage | None]:
    """The memory of the tensors without a graph that go into operations, or into networks as their input."""
    computed = set(nodes)
    found: set[Storage | None] = {s for node in computed if node.call is None for s in node.data_operands}
    for call in {node.call for node in computed if node.call is not None}:
        for _, value in call.operands:
            given = tensors_in(value) if isinstance(value, Value) else []
            found |= {tensor.storage for tensor in given if tensor.node not in computed}
    return found


def _repeats_itself(carried: Carried, earlier: LoopContext) -> bool:
    """Whether an iteration is given the same data as the one before, and uses nothing that its loop hands
    out."""
    loop = carried.loop
    target = getattr(loop, "target", None)
    handed = {n.id for n in walk(target) if isinstance(n, ast.Name)} if target is not None else set()
    if any(n.id in handed for s in _body(loop) or [] for n in _computing(s) if isinstance(n, ast.Name)):
        return False
    states = {tensor.storage for value in carried.values.values() for tensor in tensors_in(value)}
    ran = {node for event in backwards(carried.run) for node in event.visited}
    now = _data(node for node in ran if node.loops[: len(earlier)] == carried.loops)
    return now - states <= _data(node for node in ran if node.loops[: len(earlier)] == earlier)


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """A statement's nodes, but for the tests of branches and what is printed."""
    printed = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    if printed:
        return
    yield node
    for below in ast.iter_child_nodes(node):
        if not (isinstance(node, (ast.If, ast.While)) and below is node.test):
            yield from _computing(below)


def _grows(carried: Carried, value: Value) -> bool:
    """Whether a list keeps what several iterations have put into it."""
    depth = len(carried.loops)
    iterations = {
        tensor.node.loops[:depth]
        for tensor in (tensors_in(value) if isinstance(value, Sequence) else ())
        if tensor.node is not None and tensor.node.loops[: depth - 1] == carried.loops[:-1]
    }
    return sum(loops[-1][0] is carried.loop for loops in iterations if len(loops) == depth) > 1


def _fixes(program: Program, carried: Carried) -> Iterator[Fix]:
    failure = carried.event.failure
    assert failure is not None and failure.kind in ("E1", "E2")
    # With the graphs retained, iterations before the failing one had already reached into each other.
    if failure.kind == "E1":
        claim = Claim("E1", line(carried.event.site), beyond=False, losses="rerouted")
    else:
        claim = Claim("E2", line(carried.event.site), (), losses="rerouted")
    # Another loop that keeps its graphs is another matter.
    within = [b for b in backwards(carried.run) if any(loop is carried.loop for loop, _ in b.loops)]
    retain = list(dict.fromkeys(edit for b in within for edit in drop_retain(b)))
    names = ", ".join(f"`{name}`" for name in carried.values)
    for detach in (_at_assignment(program, carried), _at_start(program, carried), _at_end(program, carried)):
        if not detach:
            continue
        for dropped in [retain, []] if retain else [[]]:
            suffix = " and drop retain_graph=True" if dropped else ""
            yield Fix(
                f"detach {names} once per iteration{suffix}", Effect.REPAIRS, (*detach, *dropped), claim
            )


def _at_assignment(program: Program, carried: Carried) -> list[Edit] | None:
    """Detach in place of the plain assignment that hands the state over: `h = h_next`."""
    edits: list[Edit] = []
    loop = carried.loop
    if not isinstance(loop, (ast.For, ast.While, ast.AsyncFor)) or _body(loop) is None:
        return None
    for name, value in carried.values.items():
        if not isinstance(value, Tensor):
            return None
        handing = [
            s
            for s in walk(loop)
            if isinstance(s, ast.Assign)
            and len(s.targets) == 1
            and not isinstance(s.targets[0], (ast.Tuple, ast.List))
            and program.segment(s.targets[0]) == name
        ]
        if len(handing) != 1 or not isinstance(handing[0].value, (ast.Name, ast.Attribute, ast.Subscript)):
            return None
        # A later read of the name in the iteration may need the graph.
        if handing[0] not in loop.body or _read_after(program, loop, handing[0], name):
            return None
        edits.append(detach_at(program, handing[0].value))
    return edits


def _read_after(program: Program, loop: ast.For | ast.While | ast.AsyncFor, at: ast.stmt, name: str) -> bool:
    later = loop.body[loop.body.index(at) + 1 :]
    return any(
        isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))
        and isinstance(n.ctx, ast.Load)
        and program.segment(n) == name
        for s in later
        for n in walk(s)
    )


def _at_start(program: Program, carried: Carried) -> list[Edit] | None:
    """Detach where the iteration begins, unless the first state is trained."""
    inside = _inside_method(program, carried)
    if inside is not None:
        return [inside]
    body = _body(carried.loop)
    if body is None:
        return None
    first_iteration = {id(v): v for v in _first_values(carried)}
    if any(_trained(carried, v) for v in first_iteration.values()):
        return None
    code = _detach_code(program, carried)
    if code is None:
        return None
    return [insert(_first_use(program, carried, body), "before", code)]


def _inside_method(program: Program, carried: Carried) -> Edit | None:
    """Where one method reads the state and runs the backward, the state is detached in that method."""
    assert carried.event.failure is not None
    home = program.function(carried.event.site)
    if len(carried.values) != 1 or home is program.function(carried.loop):
        return None
    ((name, value),) = carried.values.items()
    for _, edge in carried.event.failure.route:
        if edge is None or _current(edge.node, carried.event):
            continue
        place = edge.operand
        if not isinstance(place, ast.Attribute) or program.function(place) is not home:
            return None
        text = program.segment(place)
        if text.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]:
            code = _detached(text, value)
            if code is None:
                return None
            lines = f"{text} = {code}"
            first = carried.run.before.get((carried.loop, carried.loops[:-1]), {}).get(name)
            if first is not None and _is_none(first):
                lines = f"if {text} is not None:\n    {lines}"
            return insert(program.statement(place), "before", lines)
    return None


def _at_end(program: Program, carried: Carried) -> list[Edit] | None:
    """Detach where the iteration ends: the first state keeps its gradient."""
    body = _body(carried.loop)
    if body is None or any(isinstance(n, ast.Continue) for s in body for n in walk(s)):
        return None
    code = _detach_code(program, carried, at_end=True)
    return None if code is None else [insert(body[-1], "after", code)]


def _body(loop: ast.AST) -> list[ast.stmt] | None:
    """What is done in each iteration, if it stands in the file at hand: nothing is written to another one."""
    body = getattr(loop, "body", None)
    return body if isinstance(body, list) and getattr(loop, "lineno", 0) > 0 else None


def _first_values(carried: Carried) -> list[Value]:
    """What the carried names held before the first iteration."""
    frame = carried.run.before.get((carried.loop, carried.loops[:-1]), {})
    return [frame[name] for name in carried.values if name in frame]


def _trained(carried: Carried, value: Value) -> bool:
    owned = {leaf for o in carried.run.optimizers for leaf in o.state.owned()}
    leaves: list[Leaf] = []
    for tensor in tensors_in(value):
        if isinstance(tensor, Tensor) and tensor.leaf is not None:
            leaves.append(tensor.leaf)
        if tensor.node is not None:
            leaves += [leaf for n in reachable_nodes([(tensor.node, True)]) for leaf, _, _ in n.leaves]
    return any(leaf in owned for leaf in leaves)


def _detach_code(program: Program, carried: Carried, at_end: bool = False) -> str | None:
    before = carried.run.before.get((carried.loop, carried.loops[:-1]), {})
    lines: list[str] = []
    plain: list[str] = []
    for known, value in carried.values.items():
        # As the program itself writes it.
        name = known.replace('"', "'") if known not in program.text else known
        code = _detached(name, value)
        if code is None:
            return None
        initial = before.get(known)
        if not at_end and initial is not None and _is_none(initial):
            lines.append(f"if {name} is not None:\n    {name} = {code}")
        elif not at_end and _is_number(initial):
            return None
        elif isinstance(value, (Tensor, Unknown)):
            plain.append(name)
        else:
            lines.append(f"{name} = {code}")
    if plain:
        values = ", ".join(f"{n}.detach()" for n in plain)
        lines.append(f"{', '.join(plain)} = {values}")
    return "\n".join(lines)


def _is_none(value: Value) -> bool:
    return getattr(value, "value", 0) is None


def _is_number(value: Value | None) -> bool:
    return isinstance(getattr(value, "value", None), (int, float))


def _detached(name: str, value: Value) -> str | None:
    if not isinstance(value, (Tensor, Sequence)) or (isinstance(value, Sequence) and value.open):
        return None
    return detached_code(name, ast.Name(name), value)


def _first_use(program: Program, carried: Carried, body: list[ast.stmt]) -> ast.stmt:
    """The first statement of the iteration that could see the carried value."""
    tops = {name.split(".", 1)[0].split("[", 1)[0] for name in carried.values}
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        reads = any(isinstance(n, ast.Name) and n.id in tops for n in walk(statement))
        compound = hasattr(statement, "body")
        if reads or compound:
            return statement
    return body[0]
