"""A loss has an estimate as a factor that is not detached, and also trains the network that computes it.
The actor's loss moves the critic: towards low values where actions are likely, whatever the returns are.
Nothing raises.

    advantage = returns - value(states)            advantage = returns - value(states)
    actor = -(log_prob * advantage).mean()     =>  actor = -(log_prob * advantage.detach()).mean()
    critic = advantage.pow(2).mean()               critic = advantage.pow(2).mean()
    (actor + critic).backward()                    (actor + critic).backward()

The advantage says how much better than expected an action was: a constant of the actor's loss. Where it is
not detached, the critic learns something that is no estimate of the returns, and the actor follows it.

When not to fix it: where this loss should train the factor (a learned weight).

Preconditions:

* a term of a loss is a product of two factors with a graph, but for sums, means, signs, minima and
  constants;
* one factor is the logarithm of a likelihood, or a ratio of likelihoods. A confidence that multiplies
  errors, or one side of a score `user * item`, is trained by right. Where the estimate multiplies it as it
  is, a distribution has to have computed it: a confidence multiplies `cross_entropy`, too;
* the other is computed by a network and nothing but sums, differences and multiples of that;
* a term of the same iteration drives just that output of the network to a target: a square, an absolute
  value, or one of torch's losses for it (`mse_loss`, `smooth_l1_loss`, `huber_loss`);
* the likelihood depends on other parameters, or on another output of that network;
* steps certainly use both, and nothing raises (see graph-used-twice).

What is detached is the factor, where the product is written. Effect: changes.

Ways (`gradfix apply --way NAME`):

* detach, the default: right wherever it stands;
* inputs: `backward(inputs=...)` says whose gradients are wanted. Right where the loss is backpropagated by
  itself and its optimizer does not own the estimate. It needs torch 1.8; the graph is kept until then.

By hand: detach the advantage where it multiplies the log probabilities (`-(log_prob *
advantage.detach()).mean()`).

Severity: error.
Clause: no other loss.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from gradfix.autograd.graph import Backward, Edge, Node
from gradfix.autograd.model_ledger import addends, operation
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, calls_in, first_step
from gradfix.core.codemod import Claim, Effect, Finding, Fix, Way
from gradfix.core.span import Span
from gradfix.rules.edits import constructed, detach_at, note, only_for, receiver, shown, stepped, within_file
from gradfix.rules.targets import LIKELIHOODS, OF_A_DISTRIBUTION, likelihood

VIEWS = frozenset(
    """squeeze unsqueeze view reshape flatten expand expand_as view_as permute transpose t item getitem select
    index gather contiguous to float double chunk split unbind""".split()
)
REDUCTIONS = frozenset(
    {"mean", "sum", "stack", "cat", "min", "minimum", "clamp", "clamp_min", "clamp_max", "neg"}
)
SUMS = frozenset(
    {"binary.Add", "binary.Sub", "add", "sub", "rsub", "neg", "stack", "cat", "mean", "sum", "setitem"}
)
PRODUCTS = frozenset({"binary.Mult", "mul", "multiply"})
QUOTIENTS = frozenset({"binary.Div", "div", "true_divide", "divide"})
REGRESSIONS = frozenset(
    """pow square abs binary.Pow mse_loss smooth_l1_loss huber_loss l1_loss
    nn.MSELoss nn.SmoothL1Loss nn.HuberLoss nn.L1Loss""".split()
)
"""Operations that are least where a value is what it is to be."""
Output = tuple[ast.AST, object]
"""Which output of which network: the operation that gives it, and the network."""


@dataclass(eq=False)
class Weighted:
    """Products in a loss one factor of which another loss drives to a target."""

    run: Run
    loss: Backward
    other: Backward
    source: Node
    """The output of the network that the factors are computed from."""
    factors: dict[ast.expr, None] = field(default_factory=dict)

    @property
    def first(self) -> ast.expr:
        """The first of the factors."""
        return next(iter(self.factors))


def find(program: Program) -> Iterator[Finding]:
    """Report each factor of a loss that another loss trains."""
    for found in program.certain_observations(weighted_losses, lambda one: one.loss.site, raises=False):
        yield _finding(program, found)


def weighted_losses(run: Run) -> dict[Hashable, Weighted]:
    """Factors with a graph that a loss of the same iteration drives to a target: by the places of a backward
    and of the estimate.
    """
    events = [
        b
        for b in backwards(run)
        if b.certain and b.accumulates and b.failure is None and first_step(run, b) is not None
    ]
    failing = {node for b in backwards(run) if b.failure is not None for node in b.visited}
    terms = {event: list(addends(event)) for event in events}
    targets: dict[object, dict[Output, Backward]] = {}
    for event in events:
        for term in terms[event]:
            for output in _regressed(term):
                targets.setdefault(event.loops, {})[output] = event
    found: dict[Hashable, Weighted] = {}
    for event in events:
        known = targets.get(event.loops, {})
        for product in [one for term in terms[event] for one in _products(term)] if known else ():
            for edge, others in _factors(product):
                outputs = _outputs(edge.node)
                if not outputs or event.visited.keys().isdisjoint(outputs):
                    continue  # With `inputs=...` a backward goes where it is told to.
                trained = [known[key] for key in map(_key, outputs) if key in known]
                if edge.operand is None or len(trained) < len(outputs) or not failing.isdisjoint(outputs):
                    continue
                known_as = OF_A_DISTRIBUTION if _bare(edge.node) else LIKELIHOODS
                if any(likelihood(o.node, known_as) and _apart(o.node, outputs) for o in others):
                    new = Weighted(run, event, trained[0], outputs[0])
                    found.setdefault((event.site, outputs[0].site), new).factors.setdefault(edge.operand)
    return found


def _key(output: Node) -> Output:
    assert output.call is not None
    return output.site, output.call.module


def _certain(node: Node) -> list[Edge]:
    return [edge for edge in node.edges if edge.certain]


def _below(node: Node, operations: frozenset[str]) -> Iterator[Node]:
    """What a node is made of by some operations, views and multiples by constants: what is none of these."""
    waiting, seen = [node], set()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        edges, name = _certain(at), operation(at)
        through = at.call is None and not at.leaves and len(edges) == len(at.edges)
        if through and name in QUOTIENTS and edges:
            waiting.append(edges[0].node)
        elif through and (name in operations or name in VIEWS or (name in PRODUCTS and len(edges) == 1)):
            waiting += [edge.node for edge in edges]
        else:
            yield at


def _outputs(node: Node) -> list[Node]:
    """The outputs of networks that a value is computed from, if by sums, differences and multiples only."""
    found = list(_below(node, SUMS))
    return found if all(one.call is not None for one in found) else []


def _bare(node: Node) -> bool:
    """Whether a value is what a network says, but for its shape: a confidence may be, and no advantage."""
    return all(one.call is not None for one in _below(node, frozenset()))


def _regressed(term: Node) -> Iterator[Output]:
    """The outputs of networks that a term of a loss drives to a target."""
    for node in _below(term, REDUCTIONS):
        if operation(node) not in REGRESSIONS and not _squares(node):
            continue
        outputs = [output for edge in _certain(node) for output in _outputs(edge.node)]
        for output in outputs:
            yield _key(output)


def _squares(node: Node) -> bool:
    """Whether a node multiplies a value with itself."""
    return operation(node) in PRODUCTS and len({edge.node for edge in node.edges}) == 1 < len(node.edges)


def _products(term: Node) -> Iterator[Node]:
    """The products of factors with a graph that a term adds up."""
    for node in _below(term, REDUCTIONS):
        if operation(node) in PRODUCTS and len({edge.node for edge in _certain(node)}) > 1:
            yield node


def _factors(product: Node) -> Iterator[tuple[Edge, list[Edge]]]:
    """Each factor of a product, with the others."""
    edges = _certain(product)
    for index, edge in enumerate(edges):
        yield edge, edges[:index] + edges[index + 1 :]


def _apart(factor: Node, outputs: list[Node]) -> bool:
    """Whether a factor is computed from something else than these outputs, too."""
    known = set(map(_key, outputs))
    others = _outputs(factor)
    return not others or any(_key(one) not in known for one in others)


def _finding(program: Program, found: Weighted) -> Finding:
    factor = shown(program, found.first)
    loss, other = receiver(program, found.loss), receiver(program, found.other)
    assert found.source.call is not None
    notes = [
        note(found.source.call.site, f"`{factor}` is computed from this"),
        *(
            note(place, "not detached: this loss also trains the network that computes it")
            for place in found.factors
        ),
        note(
            found.other.site,
            "this backward trains both" if loss == other else f"`{other}` is the loss that should train it",
        ),
    ]
    message = (
        f"`{factor}` is a factor of a loss and is not detached: that loss also trains the network that "
        f"computes `{factor}`"
    )
    fixes = within_file(_detached(program, found))
    ways = within_file(_ways(program, found))
    return Finding("undetached-advantage", message, Span.of(found.first), tuple(notes), fixes, ways=ways)


def _ways(program: Program, found: Weighted) -> Iterator[Fix]:
    """The gradients of a loss that is differentiated by itself, for its own optimizer alone."""
    mine = first_step(found.run, found.loss)
    if mine is None or found.loss is found.other:
        return
    only = only_for(program, found.loss, mine.optimizer, calls_in(found.loss.visited))
    if only is not None:
        name = stepped(program, mine.optimizer) or "its optimizer"
        message = f"restrict the backward of `{receiver(program, found.loss)}` to the parameters of `{name}`"
        yield Fix(message, Effect.CHANGES, (only,), _claim(found), Way.INPUTS)


def _detached(program: Program, found: Weighted) -> Iterator[Fix]:
    """The factors, without their graphs."""
    edits = [detach_at(program, factor) for factor in found.factors]
    what = f"detach `{shown(program, found.first)}`"
    yield Fix(what, Effect.CHANGES, tuple(edits), _claim(found), Way.DETACH)


def _claim(found: Weighted) -> Claim:
    """Who does not own the network that estimates consumes what it did."""
    assert found.source.call is not None
    others = [o.state for o in found.run.optimizers if found.source.call.leaves.isdisjoint(o.state.owned())]
    unchanged = tuple(place for other in others for place in constructed(found.run, other))
    return Claim(unchanged=unchanged, losses="rerouted")
