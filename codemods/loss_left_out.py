"""A loss is computed and never backpropagated: the rest of a sum, or all that would train a network.
No parameter gets a gradient from it. Nothing raises, and the printed loss looks as if it were learned.

    recon = mse(decoder(z), x)                  recon = mse(decoder(z), x)
    label = cross_entropy(classifier(z), y)     label = cross_entropy(classifier(z), y)
    loss = recon + 0.1 * label             =>   loss = recon + 0.1 * label
    recon.backward()                            loss.backward()

A helper that returns one of the terms where it has computed the sum does the same. So does a second loss
that is computed for a network of its own, and added to nothing, or assigned to the variable of the first. And
so does a loop that computes a loss in each pass, where the backward stands after the loop: only the last one
counts.

When not to fix it: where the sum, or the loss, is for the log only.

Preconditions of a sum:

* the sum, and the term that is left out, are backpropagated nowhere, whichever way conditions go; no unknown
  code has been given them, and no caller outside the file gets them;
* another term of the same sum is backpropagated by itself, or with others, in the same iteration, and an
  optimizer uses what that gives;
* the term that is left out certainly depends, by way of a network, on parameters of that optimizer, and not
  because it is computed from losses that are backpropagated: such a term measures them.

Preconditions of a loss by itself:

* a network of it is run in the loop and owned by an optimizer that trains others, and no loss reaches it, in
  no run of any part of the file; all losses are known to their ends, and nothing else touches gradients;
* what is computed with the network is compared with something, by a loss of torch or a difference, a square
  or a likelihood, and nobody differentiates it, returns it or hands it to unknown code.

A penalty on a gradient with a graph (`create_graph=True`), in an iteration that backpropagates another loss,
is left out if nobody differentiates, returns or hands on what is computed from that gradient.

A loss of each pass of a loop is lost if the loop assigns it to a variable, does nothing else with it, and
never ends early; and if each pass computes it from what the loop goes through. Where the passes build on each
other (a recurrent network), what the result is compared with has to differ.

Nothing is rewritten: whether the sum was to be backpropagated, or to be printed, only its author knows.

By hand: backpropagate the sum, or return it; compute what is for the log alone under `torch.no_grad()`.

Effect: none.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import Backward, Node, OptimizerState, reachable_nodes
from gradfix.autograd.model_ledger import SUMS, operation, summands, terms_of
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, first_step
from gradfix.core.codemod import Finding
from gradfix.core.span import Span
from gradfix.rules.edits import line, network, note, receiver, shown, stepped
from gradfix.rules.overwritten import Overwritten, Pass, overwritten, repeating
from gradfix.rules.untrained import (
    LostPenalty,
    Untrained,
    lost_penalties,
    trained_elsewhere,
    untrained,
)


@dataclass(eq=False)
class LeftOut:
    """A term of a sum that nobody differentiates, beside another one that somebody does."""

    whole: Node
    left: Node
    backward: Backward


def find(program: Program) -> Iterator[Finding]:
    """Report each loss, and each part of a sum of losses, that is not backpropagated."""
    for entry in program.entry_points:
        for lost in entry.certain_observations(_lost, lambda one: one.step.site, raises=False):
            if not trained_elsewhere(program, lost.step.optimizer, lost.call.leaves):
                yield _lost_finding(program, lost)
        for lone in entry.certain_observations(_penalties, lambda one: one.backward.site, raises=False):
            yield _penalty_finding(program, lone)
        for pair in entry.certain_observations(overwritten, lambda o: o.backward.site, raises=False):
            repeated = repeating(program, pair)
            if repeated is not None:
                yield _overwritten_finding(program, pair, repeated)
        certain = list(entry.certain_observations(left_out, lambda one: one.backward.site, raises=False))
        if not certain:
            continue
        walked = {n.site for run in entry.all_runs() for b in backwards(run) for n in b.visited}
        reported: set[ast.AST] = set()
        for one in certain:
            if one.left.site not in walked and one.whole.site not in walked and one.left.site not in reported:
                reported.add(one.left.site)
                yield _finding(program, one)


def _lost(run: Run) -> dict[Hashable, Untrained]:
    """By place: losses without a backward that alone would train a network."""
    found: dict[Hashable, Untrained] = {}
    sums = left_out(run)
    for one in untrained(run):
        if one.loss is not None and one.loss.site not in sums and line(one.loss.site) > 0:
            found.setdefault(one.loss.site, one)
    return found


def _penalties(run: Run) -> dict[Hashable, LostPenalty]:
    """By place: penalties on gradients that are left out."""
    here = (one for one in lost_penalties(run) if line(one.penalty.site) > 0 and line(one.gradient.site) > 0)
    return {one.gradient.site: one for one in here}


def left_out(run: Run) -> dict[Hashable, LeftOut]:
    """By the place of a sum: what of it is left out where the rest is differentiated."""
    trained = [
        (b, terms_of(b), step.optimizer)
        for b in backwards(run)
        if b.loops and b.certain and b.failure is None and (step := first_step(run, b))
    ]
    walked = {node for b in backwards(run) for node in b.visited}
    wanted = {term for _, terms, _ in trained for term in terms}
    detached = {node for _, node, _ in run.detached}  # They are taken for their values.
    losses = wanted | {root for b in backwards(run) for root in b.roots}
    sums = [n for n in run.nodes if n.call is None and operation(n) in SUMS]
    parts = {edge.node for n in sums for edge in n.edges}
    found: dict[Hashable, LeftOut] = {}
    known: set[Node] | None = None
    for whole in sums:
        if whole in parts or whole in detached or line(whole.site) <= 0:
            continue
        terms = summands(whole)
        if known is None:
            handed_out = [(node, True) for node in run.returned]
            known = walked | run.escaped_since(-1) | set(reachable_nodes(handed_out))
        for backward, mine, optimizer in trained:
            if mine.keys().isdisjoint(terms) or backward.loops != whole.loops:
                continue
            left = [n for n in terms if n not in known and _trains(n, optimizer, losses)]
            if left:
                found.setdefault(whole.site, LeftOut(whole, left[0], backward))
    return found


def _trains(term: Node, optimizer: OptimizerState, losses: set[Node]) -> bool:
    """Whether a term certainly depends on parameters of an optimizer, by way of a network, but not of losses.

    What is computed of losses alone, the balance of two players for one, is a measure of them.
    """
    owned = set(optimizer.owned())
    behind = {term}
    work = [term]
    while work:
        below = {edge.node for edge in work.pop().edges if edge.certain} - losses - behind
        behind |= below
        work += below
    return any(node.call is not None for node in behind) and any(
        leaf in owned and leaf.requires is True for node in behind for leaf, _, _ in node.leaves
    )


def _finding(program: Program, one: LeftOut) -> Finding:
    loss, whole, left = receiver(program, one.backward), one.whole.site, one.left.site
    assert isinstance(whole, (ast.expr, ast.stmt)) and isinstance(one.backward.site, (ast.expr, ast.stmt))
    notes = [note(whole, "no backward is called on this sum")]
    if isinstance(left, ast.expr) and line(left) > 0:
        notes.insert(0, note(left, "no parameter gets a gradient from this term of the sum"))
    notes.append(note(one.backward.site, f"`{loss}`, another term of it, is backpropagated alone"))
    sum_ = shown(program, whole)
    message = f"only a part of `{sum_}` is backpropagated: no parameter gets a gradient from the rest"
    return Finding("loss-left-out", message, Span.of(one.backward.site), tuple(notes))


def _lost_finding(program: Program, lost: Untrained) -> Finding:
    assert lost.loss is not None
    place, net = lost.loss.site, shown(program, network(lost.call))
    assert isinstance(place, (ast.expr, ast.stmt))
    name = stepped(program, lost.step.optimizer) or "the optimizer"
    loss = _assigned(program, place) or shown(program, place)
    notes = (
        note(lost.call.site, f"`{net}` belongs to `{name}`, and only this loss is computed with it"),
        note(lost.step.site, f"this step finds no gradient for `{net}` and does not update it"),
    )
    message = f"`{loss}` is never backpropagated: no parameter of `{net}` gets a gradient"
    advice = "add it to the loss that is backpropagated, or compute it under `torch.no_grad()`"
    return Finding("loss-left-out", message, Span.of(place), notes, advice=advice)


def _overwritten_finding(program: Program, one: Overwritten, repeated: Pass) -> Finding:
    loss = repeated.variable
    notes = (
        note(repeated.assignment, f"each pass of the loop computes `{loss}` anew"),
        note(one.backward.site, "this backward comes after the loop"),
    )
    message = f"only the last `{loss}` of the loop is backpropagated: what the other passes compute is lost"
    advice = f"add up `{loss}` in the loop, or call `backward()` in it"
    return Finding("loss-left-out", message, Span.of(repeated.assignment), notes, advice=advice)


def _penalty_finding(program: Program, one: LostPenalty) -> Finding:
    place, gradient = one.penalty.site, one.gradient.site
    assert isinstance(place, (ast.expr, ast.stmt)) and isinstance(gradient, (ast.expr, ast.stmt))
    name, loss = _assigned(program, place) or shown(program, place), receiver(program, one.backward)
    notes = (
        note(gradient, "this gradient is given a graph, so that a penalty on it can be backpropagated"),
        note(one.backward.site, f"`{loss}` is backpropagated without it"),
    )
    message = f"`{name}` is never backpropagated: the penalty changes nothing"
    advice = f"add it to `{loss}`, or compute the gradient without `create_graph=True`"
    return Finding("loss-left-out", message, Span.of(place), notes, advice=advice)


def _assigned(program: Program, place: ast.AST) -> str | None:
    """The variable that a loss is assigned to where it is computed."""
    statement = program.statement(place)
    plain = isinstance(statement, ast.Assign) and statement.value is place and len(statement.targets) == 1
    target = statement.targets[0] if plain and isinstance(statement, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else None
