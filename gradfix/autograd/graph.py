"""The graph that autograd would record, and what backward, step and zero_grad do to it.

Of source code it knows only the ``ast`` nodes at which things happened. It is a small version of PyTorch's
engine: nodes with the tensors that they saved and the versions of these, leaves that accumulate gradients,
and a backward that runs nodes in the reverse order of their creation and frees what they
saved. Everything comes in two degrees of certainty: what holds for sure, and what
may hold because something unknown was involved. Only certain facts become findings.
"""

from __future__ import annotations

import ast
import itertools
from collections import abc
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any, Literal, NamedTuple

Tri = bool | None
"""True, False, or None for "cannot know"."""

LoopContext = tuple[tuple[ast.AST, int], ...]
"""The loops that were running, outermost first, each with the number of its iteration (from 0)."""

Stack = tuple[tuple[ast.AST, list[tuple[Any, ast.expr]]], ...]
"""The calls of the project's functions that were in progress, outermost first, with their arguments."""

ErrorKind = Literal["E1", "E2", "E3", "E4", "E5"]


_SERIALS = itertools.count()


class Storage:
    """The memory of a tensor, shared by its views, and the version counter that autograd checks."""

    __slots__ = ("fill", "history", "maybe", "maybe_same", "serial", "version")

    def __init__(self) -> None:
        self.serial = next(_SERIALS)
        """Which of two was there first."""
        self.version = 0
        self.maybe = 0
        self.fill: float | None = None
        """The number that every element is, where that is known: labels are made so."""
        self.history: abc.Sequence[Event] = ()
        """The changes that have moved the version."""
        self.maybe_same: tuple[Storage, ...] = ()
        """What may be the same memory: a reshape copies or gives a view, as the layout has it."""

    def record_change(self, event: Event, certain: Tri = True) -> None:
        """Record an in-place change; an uncertain one moves only the ``maybe`` counter."""
        self.fill = None
        if certain:
            self.version += 1
            if isinstance(self.history, list):
                self.history.append(event)
            else:
                self.history = [event]  # Most memory is never changed in place.
        else:
            self.maybe += 1
        for other in self.maybe_same:
            other.maybe += 1

    def may_be(self, other: Storage) -> None:
        """Note that this may be the memory of ``other``."""
        for one in (other, *other.maybe_same):
            one.maybe_same += (self,)
        self.maybe_same += (other, *(one for one in other.maybe_same if one is not self))


class GraphEnd(NamedTuple):
    """Where the graph ended with which a value was computed: ``detach()``, ``item()``, ``no_grad`` and so
    on."""

    graph: Node | Leaf
    """What certainly had a graph there, or is a parameter."""
    sites: tuple[ast.AST, ...]
    """The operations whose results have no graph, in order: the graph ends at the first one."""
    recorded: bool
    """Whether graphs were recorded there, so that it is the operation that ends this one."""
    from_list: Tri = False
    """Whether one of ``sites`` makes a new tensor from a list (``torch.tensor(losses)``) all of whose items
    have a graph, or had one until then; None: the list may hold something else."""

    compared: bool = False
    """Whether what has no graph was compared with something after that, by a loss of torch's."""

    @property
    def site(self) -> ast.AST:
        """Where the graph ends."""
        return self.sites[0]


class Leaf:
    """A tensor that accumulates gradient: a layer's parameters as one block, or a single leaf tensor.

    An unknown network is one block whose ``children`` are the blocks of its attributes.
    """

    __slots__ = (
        "assumed",
        "children",
        "copied",
        "created",
        "doubtful",
        "given",
        "grad",
        "grad_is_copy",
        "grad_source",
        "idle",
        "label",
        "lost",
        "requires",
        "storage",
        "unknown_grad",
    )

    def __init__(self, label: str, requires: Tri = True, created: ast.AST | None = None) -> None:
        self.label = label
        self.requires: Tri = requires
        self.storage = Storage()
        self.grad: dict[Backward, Contribution] | None = None
        """None: no gradient. Empty: a gradient that is zero."""
        self.grad_source: Leaf | None = None
        """The parameter whose gradient this one was given: ``shared.grad = own.grad``, one tensor then."""
        self.grad_is_copy = False
        """Whether its gradient is a copy of that of ``grad_source``: ``shared.grad = own.grad.clone()``."""
        self.unknown_grad = False
        """Something unknown may have written the gradient."""
        self.children: list[Leaf] = []
        self.created = created
        self.lost: GraphEnd | None = None
        """Where a graph ended that it was computed with, if it is no parameter."""
        self.doubtful = False
        """It may not be a leaf: ``requires_grad_()`` may have been called on a tensor with a graph."""
        self.copied = False
        """Made by copying another one."""
        self.given: list[LoopContext] = []
        """The loops around each place where it is given other values through `.data`: no version moves."""
        self.assumed = False
        """Whether it belongs to a network that is not seen, so that ``requires`` is an assumption."""
        self.idle = False
        """No optimizer in this world owns it: no loss is computed for its sake."""

    def family(self) -> list[Leaf]:
        """This block and the blocks of everything below it."""
        if not self.children:
            return [self]
        found = [self]
        for child in self.children:
            found += child.family()
        return found

    def forget(self) -> None:
        """Note that the leaf has escaped to unknown code, so that nothing about it is certain any more."""
        self.requires = None
        self.storage.maybe += 1
        self.unknown_grad = True
        if self.grad:
            self.grad = {b: c.doubted() for b, c in self.grad.items()}


@dataclass(slots=True)
class Contribution:
    """What one backward put into a leaf's gradient, and the steps that have consumed it since."""

    certain: bool
    consumed: list[Step] = field(default_factory=list)
    mixed: bool = False
    """Whether these are steps of several optimizers."""

    def taken_by(self, optimizer: OptimizerState) -> tuple[Step, ...]:
        """The steps of one optimizer that have consumed it."""
        if self.mixed:
            return tuple(step for step in self.consumed if step.optimizer is optimizer)
        return tuple(self.consumed) if self.consumed and self.consumed[0].optimizer is optimizer else ()

    def take(self, step: Step) -> None:
        """Note a step that consumes it."""
        self.mixed = self.mixed or bool(self.consumed and self.consumed[0].optimizer is not step.optimizer)
        self.consumed.append(step)

    def doubted(self) -> Contribution:
        """The same, of which nobody is certain any more."""
        return Contribution(False, self.consumed, self.mixed)


@dataclass(slots=True, eq=False, repr=False)
class Edge:
    """From a node to the node that computed one of its operands."""

    node: Node
    certain: bool
    operand: ast.expr | None
    """The expression that named the operand, where one did."""


@dataclass(slots=True, eq=False, repr=False)
class ModuleCall:
    """One call of a network from the training code (not from inside another network)."""

    module: object
    site: ast.Call
    operands: list[tuple[ast.expr, object]]
    loops: LoopContext
    serial: int
    leaves: set[Leaf] = field(default_factory=set)
    stack: Stack = ()
    training: Tri = None
    """Whether the network is in training mode."""
    result: object = None
    """What it returned."""
    mode: ModeChange | None = None
    """What has put it into that mode, if anything has since it was made."""


class Node:
    """One recorded operation."""

    __slots__ = (
        "call",
        "data_operands",
        "edges",
        "foreign",
        "freed_by",
        "goal",
        "graphless_operand",
        "leaves",
        "loops",
        "maybe_freed",
        "op",
        "opaque",
        "raises_when_freed",
        "saved",
        "saved_expressions",
        "saved_result",
        "serial",
        "site",
        "stack",
    )

    def __init__(
        self, op: str, site: ast.AST, serial: int, loops: LoopContext, call: ModuleCall | None, stack: Stack
    ) -> None:
        self.op = op
        self.site = site
        self.serial = serial
        self.loops = loops
        self.call = call
        self.stack = stack
        self.edges: tuple[Edge, ...] = ()
        self.leaves: tuple[tuple[Leaf, bool, ast.expr | None], ...] = ()
        self.saved: tuple[tuple[Storage, int, Leaf | None], ...] = ()
        """Storage, the version at which it was saved, and the leaf it belongs to if it is one's."""
        self.saved_expressions: tuple[ast.expr | None, ...] = ()
        """The expressions that named the first of these: the operands among them."""
        self.data_operands: tuple[Storage, ...] = ()
        """The memory of those operands that are tensors without a graph: data."""
        self.graphless_operand: tuple[int, object] | None = None
        """For an operation on two operands of which only one has a graph: the position (0 or 1) and the value
        of the other one."""
        self.goal: float | None = None
        """The number that ``graphless_operand`` was then, if all of it was one."""
        self.raises_when_freed: Tri = False
        """Whether a second backward through this node raises."""
        self.saved_result = False
        self.opaque = False
        """Computed by a network that cannot be seen: it may keep a state from call to call."""
        self.foreign = False
        """Computed by something else that is not known: it may hold on to what it was handed."""
        self.freed_by: Backward | None = None
        self.maybe_freed = False

    def __repr__(self) -> str:
        return f"<{self.op} #{self.serial} line {getattr(self.site, 'lineno', '?')}>"


@dataclass(slots=True, eq=False, repr=False)
class Handover:
    """A call through which a network, its parameters or a graph escapes to code that the model does not
    see."""

    chain: tuple[ast.AST, ...]
    """The place of the call, and the calls that lead there, innermost first."""
    serial: int
    graphs: list[Node]
    """The graphs that it was passed, directly or inside other objects."""
    network: bool
    """Whether it was given parameters that require grad, from which it can compute graphs of its own."""


@dataclass(slots=True, eq=False, repr=False)
class Event:
    """Something that happened in the run, in order."""

    site: ast.AST
    loops: LoopContext
    serial: int
    calls: tuple[ast.AST, ...] = field(default=(), kw_only=True)
    """The calls that lead to a backward or a step, outermost first."""


@dataclass(slots=True, eq=False, repr=False)
class Failure:
    """An error that autograd would raise."""

    kind: ErrorKind
    node: Node | None
    """The node at which the engine stops: it was freed (E1), or a tensor that it saved has been modified
    (E2). None where there is no graph (E3), or an in-place write is refused (E4, E5)."""
    culprit: Event | None
    """The backward that freed it (E1), or the event that changed the saved tensor (E2)."""
    leaf: Leaf | None = None
    """The leaf that was changed (E2), if it is a parameter, or that was to be changed (E4)."""
    route: tuple[tuple[Node, Edge | None], ...] = ()
    """The path from a root to ``node``: each node with the edge that leads to the next one (None for the
    last)."""


@dataclass(slots=True, eq=False, repr=False)
class Backward(Event):
    """A call of ``backward()`` or ``autograd.grad``, and what it did."""

    receivers: list[ast.expr] = field(default_factory=list)
    retain: Tri = False
    roots: list[Node] = field(default_factory=list)
    visited: dict[Node, bool] = field(default_factory=dict)
    """Every node that it ran, with whether that is certain."""
    reached: dict[Leaf, bool] = field(default_factory=dict)
    accumulates: bool = True
    certain: bool = True
    failure: Failure | None = None
    create_graph: Tri = False
    """``create_graph``."""
    lost: GraphEnd | None = None
    """Where the graph of the loss ended, if the loss has none but was computed with one."""
    has_vector: bool = False
    """Whether it is given the vector of a vector-Jacobian product: ``gradient``, ``grad_tensors``."""
    error_expected: bool = False
    """Whether an ``except`` around it catches autograd's error: then the error is expected, and not
    reported."""
    graph_unknown: bool = False
    """Whether it is uncertain only because the graph of the loss is unknown."""
    scaler: object = None
    """The ``GradScaler`` that has scaled what it differentiates."""
    through: object = None
    """The framework's object, or class, whose own form of ``backward`` it is."""

    def fail(self, failure: Failure) -> None:
        """Record that it raises; if the script catches that, what the backward still did is unknown."""
        if self.error_expected:
            self.certain = False
        else:
            self.failure = failure


@dataclass(slots=True, eq=False, repr=False)
class Step(Event):
    """An optimizer's ``step()`` and what it consumed."""

    optimizer: OptimizerState
    consumed: dict[Leaf, dict[Backward, tuple[bool, tuple[Step, ...]]]] = field(default_factory=dict)
    """For every owned leaf with a gradient: the backwards in it, each with whether that is certain and
    the earlier steps of this optimizer that had consumed it already."""
    without_gradient: list[Leaf] = field(default_factory=list)
    """Owned leaves without any gradient."""
    doubtful: bool = False
    """Something unknown may have touched the gradients."""
    scaler: object = None
    """The ``GradScaler`` through which it is made."""
    through: object = None
    """The framework's object whose own form of ``step`` it is."""


@dataclass(slots=True, eq=False, repr=False)
class ManualStep(Event):
    """Parameters updated in place from their ``.grad``: a step without an optimizer."""

    consumed: dict[Leaf, dict[Backward, tuple[bool, bool]]]
    """For each parameter, the backwards in its gradient, each with whether that is certain and whether an
    earlier ``ManualStep`` has used its gradient already."""


@dataclass(slots=True, eq=False, repr=False)
class ZeroGrad(Event):
    """Gradients cleared, by ``zero_grad``, ``.grad = None``, ``.grad.zero_()`` or the like."""

    target: object
    leaves: list[Leaf] = field(default_factory=list)
    dropped: dict[Leaf, dict[Backward, Contribution]] = field(default_factory=dict)
    unknown: set[Leaf] = field(default_factory=set)
    """Parameters that have escaped to unknown code since their gradients were last cleared."""
    unshared: list[Leaf] = field(default_factory=list)
    """Parameters whose ``.grad`` was set to None while another parameter shares the tensor and keeps it."""


@dataclass(slots=True, eq=False, repr=False)
class Clip(Event):
    """Gradients clipped where they are, if there are any."""

    leaves: list[Leaf] = field(default_factory=list)
    held: dict[Leaf, dict[Backward, bool]] = field(default_factory=dict)
    """For every parameter with a gradient, and for what external optimizers own: the backwards
    in it, each with whether a step has consumed it already."""
    doubtful: bool = False
    """It is not known whose gradients these are, or unknown code may have changed them."""


@dataclass(slots=True, eq=False, repr=False)
class Unscale(Event):
    """``scaler.unscale_(optimizer)``: gradients divided by what the loss was multiplied with."""

    scaler: object
    optimizer: OptimizerState


@dataclass(slots=True, eq=False, repr=False)
class ScalerUpdate(Event):
    """``scaler.update()``, or a call that passes the scaler to unknown code, which may update it."""

    scaler: object


@dataclass(slots=True, eq=False, repr=False)
class SchedulerStep(Event):
    """``scheduler.step()``: a schedule of learning rates goes on to its next value."""

    schedule: object
    optimizer: OptimizerState


@dataclass(slots=True, eq=False, repr=False)
class Replacement(Event):
    """A layer or a parameter put in the place of another one, which optimizers own already."""

    owners: list[OptimizerState]
    leaves: list[Leaf]
    """The parameters of the new layer, or the new parameter."""
    whole: list[Leaf]
    """Those of the network that it was put into."""
    added: bool = False
    """Whether no layer was there before."""
    one_parameter: bool = False
    undone: bool = False
    """Whether something that optimizers own has taken its place again."""


@dataclass(slots=True, eq=False, repr=False)
class ExhaustedParameters(Event):
    """An exhausted generator of parameters is iterated once more, and yields nothing."""

    made: ast.AST
    """What has made it."""
    spent: ast.AST
    """What has gone through it first."""
    optimizer: bool
    """Whether an optimizer is made of it."""
    alone: bool
    """Whether the optimizer is given nothing else, so that torch raises (empty parameter list)."""


@dataclass(slots=True, eq=False, repr=False)
class NonLeaf(Event):
    """A non-leaf tensor is used as a leaf: its ``.grad`` is read, or it is given to an optimizer."""

    node: Node
    named: ast.expr
    """What names it there."""
    optimizer: bool


@dataclass(slots=True, eq=False, repr=False)
class ReentrantCheckpoint(Event):
    """A call of ``checkpoint`` with ``use_reentrant=True`` none of whose inputs requires grad."""

    leaves: list[Leaf]
    """Its parameters."""


@dataclass(slots=True, eq=False, repr=False)
class DuplicateParameters(Event):
    """An optimizer is given the parameters of a network twice, directly or within another network."""

    optimizer: OptimizerState
    first: int
    """Which of the networks it has once more, by their order."""
    second: int
    """Which has it once more: the same one, or one of which it is a part, or that is a part of it."""
    grouped: bool
    """Whether the two are in different groups, which raises."""


@dataclass(slots=True, eq=False, repr=False)
class InPlaceChange(Event):
    """An in-place change of a tensor other than by an optimizer."""

    what: str
    failure: Failure | None = None
    """Autograd refuses it, while graphs are recorded: what is changed is a leaf that requires grad, or a view
    of one (E4), or one of several views that an operation has given at once (E5)."""
    doubtful: bool = False
    """It may be refused."""
    layer: object = None
    """The layer that works in place, if one did it."""
    written: object = None
    """What was to be changed, if that is refused."""
    sources: tuple[Node | Leaf, ...] = ()
    """The graphs, and the leaves, of what was to be written there."""
    stack: Stack | None = ()
    """The calls that lead to it, if it is refused; None: a network calls another one on the way."""


@dataclass(slots=True, eq=False, repr=False)
class Stored:
    """A value with a graph was appended to a list, or to an unknown value that is used like one."""

    value: object
    expression: ast.expr
    into: object
    held: int
    """How many items the list holds afterwards; 0 if that is unknown."""
    loops: LoopContext
    serial: int
    stack: Stack
    symbolic: int
    """How many loops of unknown length were running."""


@dataclass(slots=True, eq=False, repr=False)
class ModeChange(Event):
    """A network put into training or evaluation mode: ``train()``, ``eval()``."""

    training: Tri
    """None: it is not known into which."""
    before: ModeChange | None = None
    """What had put it into the mode that it had before, if anything."""


class OptimizerState:
    """An optimizer: the blocks it owns, and how its step treats versions."""

    __slots__ = (
        "cls",
        "created",
        "escaped",
        "external",
        "fused",
        "groups_known",
        "label",
        "leaves",
        "loops",
        "original",
        "steps",
        "unseen",
        "whole_networks",
        "wrapped",
    )

    def __init__(self, label: str, created: ast.AST, loops: LoopContext) -> None:
        self.label = label
        self.created = created
        self.leaves: list[Leaf] = []
        self.groups_known = True
        """False: it may own parameters that the model does not see."""
        self.unseen: Leaf | None = None
        """What it is taken to own, although that is not seen, since losses before its steps are computed with
        it."""
        self.escaped = False
        """It has escaped to unknown code, which may have stepped it."""
        self.fused: Tri = False
        """Whether its steps leave the version counters of the parameters alone; None: not known of a step
        method of the project's own."""
        self.external = False
        """An external optimizer, passed in by the caller: what it owns is one block, which any backward may
        reach."""
        self.wrapped = False
        """A framework has wrapped it: its step may wait for the last of several batches."""
        self.cls: object = None
        """Its class, if that is of the project."""
        self.original = self
        """The first optimizer created here for these parameters, which this one replaces; or this one
        itself."""
        self.whole_networks: tuple[tuple[Leaf, ...], ...] | None = None
        """The networks that it owns all parameters of; None where it may own only some of them."""
        self.loops = loops
        self.steps: list[Step] = []

    @property
    def in_view(self) -> bool:
        """Whether all parameters that it owns are known; not so if unknown code holds the optimizer."""
        return self.groups_known and not self.external and self.unseen is None

    def owned(self) -> list[Leaf]:
        """Every block that it moves."""
        found: list[Leaf] = []
        for leaf in self.leaves:
            found += leaf.family()
        return found


def first_divergence(one: Event, other: Event) -> tuple[ast.AST, ast.AST]:
    """Where the call chains of two events part: the first calls that differ, or the sites of the events."""
    for pair in zip((*one.calls, one.site), (*other.calls, other.site)):
        if pair[0] is not pair[1]:
            return pair
    return one.site, other.site


def reachable_nodes(roots: list[tuple[Node, bool]]) -> dict[Node, bool]:
    """Every node that a backward from ``roots`` would run, with whether that is certain.

    An operation of unknown nature with exactly one differentiable operand passes certainty on: a
    backward through it raised nothing, so the gradient must flow there.
    """
    seen: dict[Node, bool] = {}
    work = list(roots)
    while work:
        node, certain = work.pop()
        known = seen.get(node)
        if known is True or known is certain:
            continue
        seen[node] = certain
        for edge in node.edges:
            work.append((edge.node, certain and edge.certain))
    return seen


def route(roots: list[Node], target: Node) -> tuple[tuple[Node, Edge | None], ...]:
    """A way from a root to ``target`` over certain edges, preferring the shortest."""
    came: dict[Node, tuple[Node, Edge] | None] = dict.fromkeys(roots)
    queue = list(roots)
    for node in queue:
        if node is target:
            break
        for edge in node.edges:
            if edge.certain and edge.node not in came:
                came[edge.node] = (node, edge)
                queue.append(edge.node)
    if target not in came:
        return ((target, None),)
    steps: list[tuple[Node, Edge | None]] = [(target, None)]
    at = came[target]
    while at is not None:
        steps.append(at)
        at = came[at[0]]
    return tuple(reversed(steps))


def run_backward(event: Backward, roots: list[tuple[Node, bool]], only: set[Node] | None = None) -> None:
    """Run ``event`` over the graph below ``roots`` as the engine would.

    Fills what it visited and reached and the first failure, and frees what it ran. ``only`` restricts
    the run to those nodes (``inputs=`` or ``autograd.grad``).
    """
    seen = reachable_nodes(roots)
    if only is not None:
        seen = {node: certain for node, certain in seen.items() if node in only}
    event.roots = [node for node, _ in roots]
    event.visited = seen
    # The engine takes ready nodes by sequence number, the youngest first.
    order = sorted(seen, key=lambda n: n.serial, reverse=True)
    if event.certain and event.failure is None:
        failure = next(filter(None, (_fault(node) for node in order if seen[node])), None)
        if failure is not None:
            event.fail(failure)
    for node in order:
        certain = seen[node] and event.certain
        for leaf, sure, _ in node.leaves:
            if leaf.requires is False:
                continue
            sure = sure and certain and leaf.requires is True
            event.reached[leaf] = event.reached.get(leaf, False) or sure
    if event.certain and event.failure is None and not all(event.reached.values()):
        for leaf in _reached_whatever_holds(order, event.roots):
            event.reached[leaf] = leaf.requires is True
    if event.failure is not None and event.failure.node is not None:
        event.failure.route = route(event.roots, event.failure.node)
    for node, sure in seen.items():
        if event.retain is True:
            break
        if sure and event.certain and event.retain is False:
            if node.freed_by is None:
                node.freed_by = event
        else:
            node.maybe_freed = True
    if event.accumulates:
        for leaf, sure in event.reached.items():
            if leaf.grad is None:
                leaf.grad = {}
            before = leaf.grad.get(event)
            leaf.grad[event] = Contribution(sure or (before is not None and before.certain))


def _reached_whatever_holds(youngest_first: list[Node], roots: list[Node]) -> list[Leaf]:
    """The leaves that a backward reaches whichever of the uncertain edges there are, if it does not raise.

    Of what has a graph, at least one operand has one: a gradient that arrives at a node goes on to one of the
    places where it can, and so to what lies behind all of them.
    """
    leaves: dict[Leaf, int] = {}
    behind: dict[Node, int | None] = {}
    for node in reversed(youngest_first):
        ways = [(edge.certain, behind.get(edge.node)) for edge in node.edges]
        for leaf, certain, _ in node.leaves:
            if leaf.requires is not False and not leaf.idle:
                ways.append((certain and leaf.requires is True, leaves.setdefault(leaf, 1 << len(leaves))))
        open_ways = [(certain, beyond) for certain, beyond in ways if beyond is not None]
        certain_ways = [beyond for certain, beyond in open_ways if certain]
        if certain_ways:
            behind[node] = reduce(or_, certain_ways)
        elif open_ways:
            behind[node] = reduce(and_, (beyond for _, beyond in open_ways))
        else:
            behind[node] = 0 if begins_in_unseen_code(node) else None
    found = reduce(or_, (behind.get(root) or 0 for root in roots), 0)
    return [leaf for leaf, bit in leaves.items() if found & bit]


def begins_in_unseen_code(node: Node) -> bool:
    """Whether a node is where a graph begins that unseen code has recorded."""
    return not node.edges and not node.leaves and node.raises_when_freed is None


def _fault(node: Node) -> Failure | None:
    if node.freed_by is not None:
        return Failure("E1", node, node.freed_by) if node.raises_when_freed is True else None
    if node.maybe_freed:
        return None
    for storage, version, leaf in node.saved:
        if storage.version > version:
            return Failure("E2", node, storage.history[version], leaf)
    return None


def run_step(event: Step) -> None:
    """Consume gradients, and move the versions of the parameters that have one."""
    optimizer = event.optimizer
    optimizer.steps.append(event)
    for leaf in optimizer.owned():
        if leaf.unknown_grad:
            event.doubtful = True
        if leaf.grad is None:
            event.without_gradient.append(leaf)
            continue
        event.consumed[leaf] = {b: (c.certain, c.taken_by(optimizer)) for b, c in leaf.grad.items()}
        sure = not leaf.grad or any(c.certain for c in leaf.grad.values())
        if optimizer.fused is not True:
            leaf.storage.record_change(event, sure and not leaf.unknown_grad and optimizer.fused is False)
        for contribution in leaf.grad.values():
            contribution.take(event)


def run_zero_grad(event: ZeroGrad, leaves: list[Leaf], to_none: bool = True, certain: bool = True) -> None:
    """Clear gradients; unless that is ``certain``, mark what they hold as uncertain."""
    for top in leaves:
        for leaf in top.family():
            lent = (
                leaf.grad_source is not None and leaf.grad is not None and leaf.grad_source.grad is leaf.grad
            )
            if certain and leaf.grad is not None and (leaf.grad_is_copy or (lent and to_none)):
                event.unshared.append(leaf)
                leaf.grad, leaf.grad_source = None if to_none else {}, None
                continue
            if leaf.grad:
                event.dropped[leaf] = dict(leaf.grad)
            if leaf.unknown_grad:
                event.unknown.add(leaf)
            event.leaves.append(leaf)
            if certain:
                leaf.unknown_grad = False
                if to_none:
                    leaf.grad = None
                elif leaf.grad is not None:
                    leaf.grad.clear()  # In place: whose gradient it is as well has zeros, too.
            elif leaf.grad:
                leaf.unknown_grad = True
                leaf.grad = {b: c.doubted() for b, c in leaf.grad.items()}
