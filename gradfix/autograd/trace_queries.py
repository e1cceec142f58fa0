"""Queries about a run that more than one codemod needs."""

from __future__ import annotations

import ast
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, TypeVar

from gradfix.autograd.graph import (
    Backward,
    Clip,
    Event,
    InPlaceChange,
    Leaf,
    LoopContext,
    ModuleCall,
    Node,
    OptimizerState,
    Step,
    ZeroGrad,
    begins_in_unseen_code,
    reachable_nodes,
)
from gradfix.autograd.run import Run
from gradfix.autograd.values import Sequence, Tensor, Value, tensors_in

Looped = Event | Node | ModuleCall
"""What happens in some iteration of the loops around it."""


@dataclass
class EventIndex:
    """The events of a run by kind, each kind in order, and which steps consume what a backward gave."""

    of: list[Event]
    backwards: list[Backward] = field(default_factory=list)
    accumulating: list[Backward] = field(default_factory=list)
    """Those that add to ``.grad``: all but ``autograd.grad``."""
    steps: list[Step] = field(default_factory=list)
    gradient_clears: list[ZeroGrad] = field(default_factory=list)
    iterations: dict[LoopContext, list[Step]] = field(default_factory=dict)
    steps_by_backward: dict[Backward, dict[Step, None]] = field(default_factory=dict)
    effective_steps: set[tuple[OptimizerState, ast.AST]] = field(default_factory=set)
    """Optimizers with the places of those of their steps that found a gradient."""
    walked: tuple[set[Node], set[object]] | None = None
    """The nodes that some backward went through, and the calls that they belong to; computed on first use."""
    answers: dict[tuple[str, Event], Any] = field(default_factory=dict)
    """Answers about single events, see :func:`cached_by_event`."""

    def __post_init__(self) -> None:
        self.count = len(self.of)
        for event in self.of:
            if isinstance(event, Backward):
                self.backwards.append(event)
                if event.accumulates:
                    self.accumulating.append(event)
            elif isinstance(event, Step):
                self.steps.append(event)
                self.iterations.setdefault(event.loops, []).append(event)
                if event.consumed:
                    self.effective_steps.add((event.optimizer, event.site))
                for consumed in event.consumed.values():
                    for backward in consumed:
                        self.steps_by_backward.setdefault(backward, {})[event] = None
            elif isinstance(event, ZeroGrad):
                self.gradient_clears.append(event)


def _index(run: Run) -> EventIndex:
    known: EventIndex | None = run.index
    if known is None or known.of is not run.events or known.count != len(run.events):
        known = run.index = EventIndex(run.events)
    return known


Answer = TypeVar("Answer")
Asked = TypeVar("Asked", bound=Event)


def cached_by_event(question: Callable[[Run, Asked], Answer]) -> Callable[[Run, Asked], Answer]:
    """Decorator: caches the answers to a question about one event until the run has more events."""

    @wraps(question)
    def answer(run: Run, event: Asked) -> Answer:
        answers = _index(run).answers
        key = question.__name__, event
        if key not in answers:
            answers[key] = question(run, event)
        found: Answer = answers[key]
        return found

    return answer


def backwards(run: Run) -> list[Backward]:
    """The backwards of a run (``autograd.grad`` among them), in order."""
    return _index(run).backwards


def steps(run: Run) -> list[Step]:
    """The optimizer steps of a run, in order."""
    return _index(run).steps


def steps_in(run: Run, path: LoopContext) -> list[Step]:
    """The optimizer steps of one iteration that are in no loop within it, in order."""
    return _index(run).iterations.get(path, [])


def gradient_clears(run: Run) -> list[ZeroGrad]:
    """The places where gradients were certainly cleared, in order."""
    return _index(run).gradient_clears


Happened = TypeVar("Happened", bound=Event)


def of_kind(run: Run, kind: type[Happened]) -> list[Happened]:
    """The events of one kind, in order; not indexed."""
    return [event for event in run.events if isinstance(event, kind)]


def between(events: list[Happened], first: int, last: float = math.inf) -> Iterator[Happened]:
    """Those of some events in order that happened after one serial number and before another."""
    start = bisect_right(events, first, key=lambda e: e.serial)
    return (events[k] for k in range(start, bisect_left(events, last, start, key=lambda e: e.serial)))


def clipped_between(run: Run, first: int, last: float = math.inf) -> bool:
    """Whether gradients were clipped between two serial numbers."""
    return next(between(of_kind(run, Clip), first, last), None) is not None


def refused(run: Run, kind: Literal["E4", "E5"]) -> InPlaceChange | None:
    """The write in place by which a run ends, if autograd refuses it for that reason."""
    last = run.events[-1] if run.refused_write else None
    return last if isinstance(last, InPlaceChange) and last.failure and last.failure.kind == kind else None


def ever_finds_gradient(run: Run, step: Step) -> bool:
    """Whether the optimizer of a step ever finds a gradient at that place."""
    return (step.optimizer, step.site) in _index(run).effective_steps


def first_step(run: Run, backward: Backward) -> Step | None:
    """The first step that consumes what ``backward`` accumulated."""
    return next(iter(_index(run).steps_by_backward.get(backward, ())), None)


@cached_by_event
def optimizer_of_loss(run: Run, backward: Backward) -> OptimizerState | None:
    """The optimizer that a loss is for.

    It is the first whose step uses its gradients. If the steps of several optimizers use them before the next
    loss, it is the only one of these that was cleared since the previous loss, if there is exactly one: two
    losses, each after a ``zero_grad``, are for one optimizer each, whichever steps first.
    """
    step = first_step(run, backward)
    if step is None:
        return None
    losses = _index(run).accumulating
    at = bisect_left(losses, backward.serial, key=lambda b: b.serial)
    since = losses[at - 1].serial if at else -1
    following = (b.serial for b in losses[at : at + 2] if b is not backward)
    until = next(following, math.inf)
    taking = {s.optimizer for s in _index(run).steps_by_backward.get(backward, ()) if s.serial < until}
    if len(taking) < 2:
        return step.optimizer
    cleared = {leaf for zero in between(gradient_clears(run), since, backward.serial) for leaf in zero.leaves}
    fresh = [optimizer for optimizer in taking if cleared.issuperset(optimizer.owned())]
    return fresh[0] if len(fresh) == 1 else step.optimizer


def step_follows(run: Run, backward: Backward) -> bool:
    """Whether a step follows the backward in the same iteration, before any other backward."""
    later = next(between(steps_in(run, backward.loops), backward.serial), None)
    other = next(between(_index(run).accumulating, backward.serial), None)
    return later is not None and (other is None or later.serial < other.serial)


def followed(loss: Backward) -> bool:
    """Whether a loss comes off, and its graph is known to its end: all that it reaches, it surely reaches."""
    comes_off = loss.certain and loss.failure is None and not loss.error_expected
    return comes_off and all(loss.reached.values()) and not any(map(begins_in_unseen_code, loss.visited))


def touched(run: Run) -> set[Leaf]:
    """Parameters whose gradients may come, or go, in another way than by ``backward``."""
    escaped = {leaf for node in run.escaped_since(-1) for leaf, _, _ in node.leaves}
    read = {leaf for _, leaf in run.grad_reads if leaf is not None}
    return escaped | read | run.differentiated | run.thawed


def unreached(run: Run) -> dict[Leaf, OptimizerState]:
    """The parameters of optimizers in view that get no gradient in any way, each with its optimizer."""
    if run.substituted or run.external_optimizers or any(leaf is None for _, leaf in run.grad_reads):
        return {}
    if not all(map(followed, _index(run).accumulating)):
        return {}
    reached = {leaf for event in backwards(run) for leaf in event.reached} | touched(run)
    states = (one.state for one in run.optimizers if one.state.in_view)
    return {
        leaf: state
        for state in states
        for leaf in state.owned()
        if leaf not in reached and leaf.requires is True and not leaf.unknown_grad
    }


def undifferentiated(run: Run, step: Step, leaves: set[Leaf], since: int) -> ast.AST | None:
    """Where, in the iteration of a step, parameters are used for something that is never differentiated.

    It is the call of a network that leads to them, or an operation on them. What is detached is wanted
    without its graph; what has escaped to unknown code may be differentiated there, and what a loss
    that is not followed leads to is not known.
    """
    here, seen = len(step.loops), set[ModuleCall | None]()
    if any(not b.certain or b.graph_unknown for b in backwards(run) if b.loops[:here] == step.loops):
        return None
    (walked, calls), escaped = _walked(run), run.escaped_since(since)
    cut = {node for _, node, _ in run.detached}
    # Of several results of one call some are of no use.
    elsewhere = {node.call or node.site for node in escaped}
    first, end = (bisect_left(run.nodes, at, key=lambda node: node.serial) for at in (since, step.serial))
    for node in reversed(run.nodes[first:end]):
        if node.loops[:here] != step.loops or node in walked or node in escaped:
            continue
        of = node.call or node.site
        if of in calls or of in elsewhere or node.opaque or node.foreign:
            continue
        own = [(leaf, sure) for leaf, sure, _ in node.leaves if node.call is None and node not in cut]
        if node.call is not None and node.call not in seen:
            seen.add(node.call)  # The last operation of the network leads to all that it uses.
            if node in cut:
                continue
            below = reachable_nodes([(node, True)]).items()
            own = [(leaf, sure and way) for one, way in below for leaf, sure, _ in one.leaves]
        if any(sure and leaf in leaves and leaf.requires is True for leaf, sure in own):
            return node.site if node.call is None else node.call.site
    return None


def walked_by_any(run: Run) -> set[Node]:
    """The nodes that some backward of a run went through."""
    return _walked(run)[0]


def _walked(run: Run) -> tuple[set[Node], set[object]]:
    index = _index(run)
    if index.walked is None:
        nodes = {node for backward in index.backwards for node in backward.visited}
        index.walked = nodes, {node.call or node.site for node in nodes}
    return index.walked


def steps_using(run: Run, some: Iterable[Backward]) -> list[Step]:
    """The steps that use gradients of any of these backwards, in order."""
    takers = _index(run).steps_by_backward
    found = {step for backward in some for step in takers.get(backward, ())}
    return sorted(found, key=lambda step: step.serial)


def consumers(run: Run, backward: Backward) -> set[OptimizerState]:
    """Every optimizer that consumes some of a backward's gradients."""
    return {s.optimizer for s in _index(run).steps_by_backward.get(backward, ())}


def same_iteration(one: Looped, event: Looped) -> bool:
    """Whether ``one`` happens in the iteration of every loop in which ``event`` happens."""
    return one.loops[: len(event.loops)] == event.loops


def earlier_iteration(node: Node, event: Event) -> int | None:
    """The depth of the outermost loop around both in whose iterations they differ: ``node`` is from an
    earlier one."""
    return apart(node.loops, event.loops)


def apart(one: LoopContext, other: LoopContext) -> int | None:
    """The depth of the outermost loop of which these are two iterations."""
    for depth, (mine, theirs) in enumerate(zip(one, other)):
        if mine[0] is not theirs[0]:
            return None
        if mine[1] != theirs[1]:
            return depth
    return None


def calls_in(nodes: Iterable[Node]) -> list[ModuleCall]:
    """The network calls that nodes belong to, in order."""
    found = {node.call for node in nodes if node.call is not None}
    return sorted(found, key=lambda c: c.serial)


def operands_reaching(
    call: ModuleCall, targets: set[Node], around: Iterable[ModuleCall] = ()
) -> list[tuple[ast.expr, Value]]:
    """The operands of a network call whose graph certainly leads into ``targets``.

    Only paths that do not go through the calls of ``around`` count. Each tensor of a list in the call counts
    as an operand.
    """
    found: list[tuple[ast.expr, Value]] = []
    closed = set(around)
    for expression, value in expanded_operands(call.operands):
        work = [t.node for t in tensors_in(value) if t.node is not None]
        seen: set[Node] = set()
        while work:
            node = work.pop()
            if node in seen or node.call in closed:
                continue
            if node in targets:
                found.append((expression, value))
                break
            seen.add(node)
            work += [e.node for e in node.edges if e.certain]
    return found


def expanded_operands(operands: Iterable[tuple[ast.expr, object]]) -> Iterator[tuple[ast.expr, Value]]:
    """Operands, with the items of ``[a, b]`` or ``(a, b)`` instead of the whole."""
    for expression, value in operands:
        assert isinstance(value, Value)
        items = value.items if isinstance(value, Sequence) and not value.open else ()
        written = expression.elts if isinstance(expression, (ast.List, ast.Tuple)) else ()
        if len(items) != len(written) or any(isinstance(e, ast.Starred) for e in written) or not items:
            yield expression, value
        else:
            yield from expanded_operands(zip(written, items))


def without_call(backward: Backward, calls: set[ModuleCall]) -> set[Node]:
    """The nodes that a backward reaches without going through the given network calls."""
    seen: set[Node] = set()
    work = list(backward.roots)
    while work:
        node = work.pop()
        if node in seen or node.call in calls:
            continue
        seen.add(node)
        work += [e.node for e in node.edges]
    return seen


def passing_gradient_to(nodes: Iterable[Node], leaves: set[Leaf]) -> set[Node]:
    """Those of ``nodes`` that pass a gradient directly to one of ``leaves``."""
    return {n for n in nodes if any(leaf in leaves for leaf, _, _ in n.leaves)}


def leading_to(nodes: Iterable[Node], leaves: set[Leaf]) -> set[Node]:
    """Those of ``nodes`` from which a gradient reaches one of ``leaves``, directly or through others of
    them."""
    found: set[Node] = set()
    # Operands are always older than what is computed from them.
    for node in sorted(nodes, key=lambda n: n.serial):
        if any(leaf in leaves for leaf, _, _ in node.leaves) or any(e.node in found for e in node.edges):
            found.add(node)
    return found


def owned_elsewhere(run: Run, backward: Backward, by: OptimizerState) -> set[Leaf]:
    """The leaves that a backward certainly reaches and that belong only to other optimizers."""
    mine = set(by.owned())
    others = {leaf for o in run.optimizers if o.state is not by for leaf in o.state.owned()}
    return {leaf for leaf, sure in backward.reached.items() if sure and leaf in others and leaf not in mine}


def leaves_gradients_for(run: Run, backward: Backward, optimizer: OptimizerState) -> bool:
    """Whether a backward, if it does not raise, leaves gradients for ``optimizer``, as far as can be seen.

    It certainly leads there and nowhere else, or it may reach what the optimizer owns, and the optimizer
    steps before anything else is differentiated.
    """
    mine = set(optimizer.owned())
    if not backward.certain or backward.failure is not None or mine.isdisjoint(backward.reached):
        return False
    alone = all(leaf in mine and leaf.requires is True for leaf in backward.reached)
    if alone and backward.accumulates and not any(map(begins_in_unseen_code, backward.visited)):
        return True
    following = between(backwards(run), backward.serial)
    end = next((b.serial for b in following if b.accumulates), math.inf)
    return any(
        s.optimizer is optimizer and same_iteration(backward, s)
        for s in between(steps(run), backward.serial, end)
    )


def detached_code(source: str, expression: ast.expr, value: Value) -> str | None:
    """Code for ``expression`` with every tensor in it detached; None if its type is not known."""
    from gradfix.core.segments import call_method

    if not isinstance(value, Sequence):
        return call_method(source, expression, "detach")
    kinds = {type(item) for item in value.items}
    if value.kind not in ("list", "tuple") or len(kinds) != 1 or not kinds <= {Tensor, Sequence}:
        return None
    if isinstance(expression, (ast.Tuple, ast.List)):
        return None
    each = [detached_code("s", ast.Name("s"), item) for item in value.items]
    inner = f"{each[0]} for s in {source}"
    if None in each:
        return None
    return f"[{inner}]" if value.kind == "list" else f"tuple({inner})"


def may_share(run: Run, one: Leaf, other: Leaf) -> bool:
    """Whether the networks that two blocks stand for are out of sight, and may have parameters in common.

    In a world, networks that come from different places have none. A part of one is none of its own, nor is a
    method, or what holds a network.
    """
    if not (one.assumed and other.assumed):
        return False
    return run.symbols is None or run.symbols.may_share(one, other)
