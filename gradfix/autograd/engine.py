"""The events of a run: backward, step, zero_grad, and what unknown code may have done."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gradfix.autograd import operators
from gradfix.autograd.arguments import Call, flag
from gradfix.autograd.graph import (
    Backward,
    Contribution,
    Edge,
    Failure,
    GraphEnd,
    Handover,
    Leaf,
    ManualStep,
    Node,
    OptimizerState,
    ScalerUpdate,
    Step,
    ZeroGrad,
    reachable_nodes,
    run_backward,
    run_step,
    run_zero_grad,
)
from gradfix.autograd.parameters import leaves_of, set_mode
from gradfix.autograd.run import Run
from gradfix.autograd.unbound import CONSTRUCTORS
from gradfix.autograd.values import (
    Const,
    Function,
    Instance,
    Learner,
    Mapping,
    Module,
    Optimizer,
    ParameterIterable,
    Scaler,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    in_reach,
    tensors_in,
)

BACKWARD_KEYWORDS = frozenset(
    ["gradient", "retain_graph", "create_graph", "inputs", "tensors", "grad_tensors", "grad_variables"]
)


def backward(run: Run, roots: list[tuple[Value, ast.expr]], call: Call) -> Backward:
    """``tensor.backward(gradient, retain_graph, create_graph, inputs)``."""
    create = flag(call.argument("create_graph", 2), False)
    retain = flag(call.argument("retain_graph", 1), create)
    event = Backward(
        run.site_in_file(call.site),
        run.loops,
        run.next_serial(),
        [run.operand(v, e) for v, e in roots],
        retain,
    )
    event.calls = tuple(site for site, _ in run.stack)
    event.certain = "**" not in call.keywords
    event.error_expected = run.catching > 0
    event.create_graph = create
    # A function is given what is differentiated first, a method is not.
    further = call.args[1:] if call.args and call.args[0][0] is roots[0][0] else call.args
    seeds = [
        Call(further, call.keywords, call.site).argument(name, 0) for name in ("gradient", "grad_tensors")
    ]
    event.has_vector = any(seed is not None and getattr(seed, "value", seed) is not None for seed in seeds)
    run.events.append(event)
    unseen = _computed_unseen(run, event.site, [value for value, _ in roots])
    nodes = unseen.copy()
    for value, _ in roots:
        for tensor in tensors_in(value):
            if tensor.node is not None:
                nodes.append((tensor.node, True))
            elif isinstance(tensor, Tensor) and tensor.leaf is not None and tensor.leaf.requires is not False:
                event.reached[tensor.leaf] = tensor.leaf.requires is True
            elif (
                isinstance(tensor, Tensor) and tensor.requires is False and len(roots) == 1 and event.certain
            ):
                event.fail(Failure("E3", None, None))
        if isinstance(value, (Unknown, Tensor)) and value.node is None:
            event.lost = event.lost or value.lost
        if (
            isinstance(value, (Unknown, Tensor))
            and value.node is None
            and value.requires is not True
            and not unseen
        ):
            known = isinstance(value, Tensor) and value.requires is False
            event.graph_unknown = event.graph_unknown or (event.certain and not known)
            event.certain = event.certain and known
    if any(name not in BACKWARD_KEYWORDS for name in call.keywords):
        event.certain = event.graph_unknown = False
    if run.scaled:
        made = (*(value for value, _ in roots), *reachable_nodes(nodes))
        event.scaler = next((run.scaled[one] for one in made if one in run.scaled), None)
    only: set[Node] | None = None
    inputs = call.keywords.get("inputs")
    if inputs is not None:
        event.graph_unknown = False
        only = _between(run, [n for n, _ in nodes], inputs[0])
    run_backward(event, nodes, only)
    for leaf in _of_external_optimizers(run):
        leaf.grad = {**(leaf.grad or {}), event: Contribution(False)}
    if inputs is not None:
        # Only the listed leaves accumulate; what a list of unknown things holds cannot be known.

        wanted, known = leaves_of(inputs[0])
        for leaf in list(event.reached):
            if known and leaf not in wanted and leaf.grad is not None:
                leaf.grad.pop(event, None)
                if not leaf.grad:
                    leaf.grad = None
                del event.reached[leaf]
    return event


def _computed_unseen(run: Run, site: ast.AST, roots: list[Value]) -> list[tuple[Node, bool]]:
    """Where the graph of a loss begins that is computed with what is not seen, in a world that says so.

    Whoever has computed it may hold its graph.
    """
    if run.symbols is None or site not in run.symbols.world.unseen:
        return []
    graphs = [(tensor.node, True) for value in roots for tensor in tensors_in(value) if tensor.node]
    seen = {leaf for node in reachable_nodes(graphs) for leaf, _, _ in node.leaves}
    leaves = run.symbols.unseen_parameters(site, seen)
    if not leaves:
        return []
    node = run.node("loss", site)
    node.raises_when_freed, node.opaque = True, True
    # What else it is computed with is not known.
    others = Leaf("what is not seen", None)
    node.leaves = tuple((leaf, sure, None) for leaf, sure in (*leaves, (others, False)))
    run.returned.append(node)
    return [(node, True)]


def differentiate(run: Run, call: Call) -> Value:
    """``torch.autograd.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, ...)``."""
    outputs = call.argument("outputs", 0)
    inputs = call.argument("inputs", 1)
    create = flag(call.argument("create_graph", 4), False)
    retain = flag(call.argument("retain_graph", 3), create)
    expression = (
        call.args[0][1] if call.args else call.keywords["outputs"][1] if "outputs" in call.keywords else None
    )
    receivers = [run.operand(outputs, expression)] if expression and outputs else []
    event = Backward(run.site_in_file(call.site), run.loops, run.next_serial(), receivers, retain)
    event.accumulates = False
    event.certain = "**" not in call.keywords
    event.error_expected = run.catching > 0
    event.create_graph = create
    run.events.append(event)
    nodes: list[tuple[Node, bool]] = []
    if outputs is not None:
        nodes = [(t.node, True) for t in tensors_in(outputs) if t.node is not None]
    if isinstance(outputs, Tensor) and outputs.requires is False and event.certain:
        event.fail(Failure("E3", None, None))
        event.lost = outputs.lost
    known = inputs is not None and not isinstance(inputs, Unknown)
    if not known:
        event.certain = False
    run_backward(
        event, nodes, _between(run, [n for n, _ in nodes], inputs) if inputs is not None and known else None
    )
    count = 1
    if isinstance(inputs, (Sequence, ParameterIterable)):
        count = len(inputs.items) if isinstance(inputs, Sequence) else 1
    items: list[Value] = []
    # What needs nothing of the forward, a sum say, has a derivative that depends on nothing.
    given = call.argument("grad_outputs", 2)
    seeded = "**" in call.keywords or not (
        given is None or (isinstance(given, Const) and given.value is None)
    )
    for _ in range(max(count, 1)):
        result = Tensor()
        if create is False and nodes:
            run.graphs_ended += 1
            result.lost = GraphEnd(nodes[0][0], (call.site,), run.grad_enabled is not False)
        if (
            create is not False
            and nodes
            and (seeded or not event.visited or any(n.raises_when_freed is not False for n in event.visited))
        ):
            # The second derivative runs through the operands of what was differentiated.
            made = run.node("autograd.grad", call.site)
            made.raises_when_freed = None
            through = {n.call for n in event.visited if n.call is not None}
            if made.call is None and len(through) == 1:
                (made.call,) = through  # It is differentiated through that network once more.
            needed = dict.fromkeys(_needed_again(event.visited)) if create is True and event.certain else {}
            made.edges = (
                *(Edge(n, True, expression) for n in needed),
                *(Edge(n, False, expression) for n, _ in nodes if n not in needed),
            )
            # A parameter that was only added is not in the derivative: certain are those that were saved.
            leaves: dict[Leaf, bool] = {}
            for visited in event.visited:
                saved = {leaf for _, _, leaf in visited.saved}
                for leaf, _, _ in visited.leaves:
                    leaves[leaf] = leaves.get(leaf, False) or leaf in saved
            made.leaves = tuple((leaf, create is True and sure, None) for leaf, sure in leaves.items())
            result.node, result.requires = made, True if create else None
        items.append(result)
    return Sequence("tuple", items, isinstance(inputs, (ParameterIterable, Unknown)))


def _needed_again(visited: dict[Node, bool]) -> Iterator[Node]:
    """The nodes that the derivatives depend on, besides parameters: a second backward continues into them.

    The derivative of a convolution or an activation depends on its operand or result. So a penalty on a
    gradient leads back to what the differentiated tensor was computed from.
    """
    for node, certain in visited.items():
        if certain and len(node.edges) == 1 and node.edges[0].certain and node.raises_when_freed is True:
            of = operators.derivative_of(node.op)
            if of is not None:
                yield node if of == "result" else node.edges[0].node


def _between(run: Run, roots: list[Node], inputs: Value) -> set[Node]:
    """The nodes on a way from the roots to the inputs: all that a restricted backward runs."""

    leaves = set(leaves_of(inputs)[0])
    run.differentiated |= leaves
    targets = {t.node for t in tensors_in(inputs) if t.node is not None}
    seen = reachable_nodes([(r, True) for r in roots])
    found: set[Node] = set()
    # Children are always older than their parents, so one sweep from old to young settles everything.
    for node in sorted(seen, key=lambda n: n.serial):
        if any(leaf in leaves for leaf, _, _ in node.leaves) or any(
            e.node in found or e.node in targets for e in node.edges
        ):
            found.add(node)
    return found


def step(run: Run, optimizer: Optimizer, node: ast.AST, scaler: Value | None = None) -> Step:
    """``optimizer.step()``, or ``scaler.step(optimizer)``."""
    event = Step(run.site_in_file(node), run.loops, run.next_serial(), optimizer.state, scaler=scaler)
    event.calls = tuple(site for site, _ in run.stack)
    run.events.append(event)
    run_step(event)
    return event


def zero_grad(
    run: Run, target: Value, leaves: list[Leaf], node: ast.AST, to_none: bool = True, certain: bool = True
) -> None:
    """Clear gradients, in whichever way the script writes that."""
    event = ZeroGrad(run.site_in_file(node), run.loops, run.next_serial(), target)
    run_zero_grad(event, leaves, to_none, certain)
    if run.external_optimizers and not any(
        _steps(run, state) and state.leaves[0] in leaves for state in run.external_optimizers
    ):
        # What is cleared here may be what others own, unless it is an optimizer that clears its own.
        others = [leaf for leaf in _of_external_optimizers(run) if leaf not in leaves]
        run_zero_grad(ZeroGrad(event.site, event.loops, event.serial, target), others, certain=False)
    if run.symbols is not None and not isinstance(target, Optimizer):
        others = [leaf for leaf in run.symbols.anywhere() if leaf not in leaves]
        run_zero_grad(ZeroGrad(event.site, event.loops, event.serial, target), others, certain=False)
    if certain:
        run.events.append(event)


def move_by_hand(run: Run, leaves: Iterable[Leaf], site: ast.AST) -> None:
    """Record a manual step: parameters are written in place after their gradients were read."""
    moved = run.moved_by_hand
    consumed: dict[Leaf, dict[Backward, tuple[bool, bool]]] = {}
    for leaf in leaves:
        if leaf.grad and not leaf.unknown_grad:
            computed = max(backward.serial for backward in leaf.grad)
            read = any(of is leaf and at > computed for at, of in run.grad_reads)
            if read and moved.get(leaf, 0) < computed:
                before = moved.get(leaf, 0)
                consumed[leaf] = {b: (one.certain, b.serial < before) for b, one in leaf.grad.items()}
    if consumed:
        event = ManualStep(run.site_in_file(site), run.loops, run.next_serial(), consumed)
        event.calls = tuple(site for site, _ in run.stack)
        moved.update(dict.fromkeys(consumed, event.serial))
        run.events.append(event)


def give_values(run: Run, leaves: Iterable[Leaf], values: Value) -> None:
    """Note that parameters get their values from others, or again and again: not as they are initialized."""
    if run.loops or isinstance(values, SummaryTensor):
        for leaf in leaves:
            leaf.given.append(run.loops)


def change_gradients(run: Run, each: SummaryTensor, site: ast.AST, emptied: bool = False) -> None:
    """The gradients of some parameters are written in place: set to zero (``emptied``), or made other ones.

    Code that changes consumed gradients keeps state of its own, momentum for example: what is left is not
    known.
    """
    if emptied:
        zero_grad(run, each, each.leaves, site, to_none=False)
        return
    run.grad_writes.append(run.next_serial())
    for leaf in each.leaves:
        used = leaf in run.moved_by_hand or all(one.consumed for one in (leaf.grad or {}).values())
        if leaf.grad and used:
            leaf.unknown_grad = True


def _steps(run: Run, state: OptimizerState) -> bool:
    """Whether an object that was passed in is stepped at some time, which makes it an optimizer."""
    return bool(state.steps) or run.relevance.steps_on(state.label)


def _of_external_optimizers(run: Run) -> list[Leaf]:
    """What the external optimizers own."""
    return [leaf for state in run.external_optimizers for leaf in state.leaves]


def hand_over(run: Run, values: Iterable[Value], site: ast.AST, operation: bool = False) -> None:
    """Note that unseen code gets these values, and may run a backward through what it reaches from them.

    An ``operation`` may do so only where parameters are within reach. Its effects on gradients and parameters
    are not recorded here, but by :func:`havoc`.
    """
    if run.grad_enabled is False:
        return
    graphs, network = in_reach(values)
    if network or (graphs and not operation):
        around = [run.current_call.site] if run.current_call is not None else []
        chain = (site, *around, *(call for call, _ in reversed(run.stack)))
        run.handovers.append(Handover(chain, run.next_serial(), graphs, network))


DECIDING = (
    *("freez", "frozen", "trainable", "requires_grad", "lora", "adapter", "prun"),
    *("train", "tune", "fit", "learn", "update", "step"),
)
"""What the name of a function says that leaves out parameters from training, or trains them itself."""


def prepares(run: Run, name: str) -> bool:
    """Whether unseen code of this name is called while networks are set up: none of them has a gradient yet.

    What it is handed is taken to stay trainable, unless the name says otherwise: it initialises weights,
    shards them, or has activations checkpointed.
    """
    told = name.lower().replace("pretrained", "")
    if run.loops or run.current_call is not None or any(word in told for word in DECIDING):
        return False
    if run.called_from_outside and not any(
        getattr(function, "name", "") in CONSTRUCTORS for function, _ in run.active
    ):
        return False
    return not any(isinstance(event, Backward) for event in run.events)


def havoc(run: Run, values: list[Value], node: ast.AST, depth: int = 3, *, preparing: bool = False) -> None:
    """Something unknown was handed these values: whatever it could do to them may have happened.

    It could run a backward through a graph, step an optimizer, clear gradients, freeze parameters; if it is
    ``preparing`` them for training, it leaves parameters as they are (see :func:`prepares`).
    """
    for leaf in _of_external_optimizers(run):
        leaf.unknown_grad = True
    forgotten: list[Leaf] = []
    for value in values:
        if isinstance(value, Learner):
            havoc(run, [value.module], node, depth, preparing=preparing)
        elif isinstance(value, Optimizer):
            for leaf in value.state.owned():
                leaf.forget()
            value.state.groups_known = False
            value.state.escaped = True
        elif isinstance(value, Scaler) or (run.scaled and value in run.scaled.values()):
            run.events.append(ScalerUpdate(run.site_in_file(node), run.loops, run.next_serial(), value))
        elif isinstance(value, Module):
            forgotten += (leaf for top in value.leaves() for leaf in top.family())
            set_mode(run, value, None, node)
            forget_state(value, depth)
        elif isinstance(value, Unknown) and value.leaf is not None:
            forgotten += value.leaf.family()
        elif isinstance(value, (ParameterIterable, SummaryTensor)):
            forgotten += (leaf for top in value.leaves for leaf in top.family())
        elif isinstance(value, (Tensor, Unknown)):
            if value.node is not None:
                run.escapes.append((run.next_serial(), [value.node]))
                graph = reachable_nodes([(value.node, True)])
                if any(
                    sure and n.freed_by is not None and n.raises_when_freed is True
                    for n, sure in graph.items()
                ):
                    continue  # Differentiated once more it would raise.
                for reached in graph:
                    reached.maybe_freed = True
                    for leaf, _, _ in reached.leaves:
                        leaf.unknown_grad = True
            elif isinstance(value, Unknown):
                value.graphless = False
            elif value.leaf is None:
                value.requires = value.requires or None
        elif isinstance(value, Sequence) and depth:
            havoc(run, value.items, node, depth - 1, preparing=preparing)
            if value.kind == "list":
                value.open = True
        elif isinstance(value, Mapping) and depth:
            havoc(run, list(value.items.values()), node, depth - 1, preparing=preparing)
        elif isinstance(value, Instance) and depth:
            havoc(
                run,
                [*value.attributes.values(), *filter(None, [value.inherited])],
                node,
                depth - 1,
                preparing=preparing,
            )
        elif isinstance(value, Function) and depth and isinstance(value.bound, (Instance, Module)):
            havoc(run, [value.bound], node, depth - 1, preparing=preparing)
    if not preparing:
        for leaf in forgotten:
            leaf.forget()


def forget_state(module: Module, depth: int) -> None:
    """Tensors that a network keeps may have been replaced (a state reset)."""
    for name, held in module.attributes.items():
        if isinstance(held, (Tensor, Sequence)) and any(t.node is not None for t in tensors_in(held)):
            module.attributes[name] = Unknown(name)
    if depth:
        for child in [*module.items, *module.attributes.values()]:
            if isinstance(child, Module):
                forget_state(child, depth - 1)
