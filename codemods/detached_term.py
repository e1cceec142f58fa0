"""A term of a loss has lost its graph: no parameter gets a gradient from it.
It changes the value of the loss and nothing else. Nothing raises, and the printed loss contains it.

    slope = grad(D(mixed).sum(), mixed)         slope = grad(D(mixed).sum(), mixed, create_graph=True)
    penalty = (slope[0].norm() - 1) ** 2   =>   penalty = (slope[0].norm() - 1) ** 2
    loss = D(fake).mean() + 10 * penalty        loss = D(fake).mean() + 10 * penalty
    loss.backward()                             loss.backward()

A penalty on a gradient needs `create_graph=True`; an entropy, a regularization or another loss must not go
through `item()`, `detach()` or numpy.

When not to fix it: where the term should change the value of the loss only, for the log.

Preconditions:

* the term is added to the loss, or subtracted, and certainly has no graph. Factors and targets are no terms.
  Or it has one that leads through a network which is given something detached (`D(fake.detach())` in the
  loss of the generator) or drawn by `sample()`, and no step uses any of its gradients, nor is it
  backpropagated anywhere else;
* it certainly was computed, with a graph and in the same iteration, from parameters that the same loss
  trains: an optimizer uses its gradients of them;
* what it has been cut off from is backpropagated nowhere, unless it is a gradient that was computed without
  a graph. So a term that only takes another value for the same gradient is none (a straight-through
  estimator, `x - x.detach()`), nor is a loss that is backpropagated by itself and added for the log; and no
  unknown code has been given it;
* this holds whichever way conditions go.

`create_graph=True` is put where a gradient is computed whose penalty is added. The `detach()` goes from the
argument of a network whose gradients no optimizer uses, and `sample()` becomes `rsample()` there, where the
distribution has it. Nothing else is rewritten: whether a constant
was to be trained, or to be printed, only its author knows.

By hand: let the term keep its graph, or leave it out of the loss and log it by itself.

Effect: changes.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.autograd.cuts import DeadTerm, dead_terms, of_gradient
from gradfix.autograd.graph import Node
from gradfix.autograd.program import Program
from gradfix.core.codemod import Claim, Edit, Effect, Finding, Fix, ReplaceExpression
from gradfix.core.span import Span
from gradfix.core.syntax import last_name
from gradfix.rules.edits import (
    constructed_beside,
    creating_graph,
    line,
    note,
    receiver,
    shown,
    stepped,
    uncut,
    within_file,
)


def find(program: Program) -> Iterator[Finding]:
    """Report each term of a loss that trains nobody of what it was computed of."""
    for one in program.certain_observations(dead_terms, lambda one: one.backward.site, raises=False):
        if line(one.cut.site) > 0:
            yield _finding(program, one)


def _finding(program: Program, one: DeadTerm) -> Finding:
    loss, cut, term = receiver(program, one.backward), one.cut, _place(one.term)
    name = stepped(program, one.optimizer) or "the optimizer"
    ends = (
        "this gradient has no graph: `create_graph=True` is missing"
        if of_gradient(cut)
        else "the graph ends here"
        if cut.recorded
        else "this is computed with gradients disabled"
    )
    notes = [note(cut.site, ends)]
    if isinstance(term, (ast.expr, ast.stmt)) and line(term) > 0:
        here = "added here without a graph" if one.given is None else "no optimizer uses gradients from this"
        notes.append(note(term, here))
    notes.append(note(one.backward.site, f"`{name}` gets no gradient from that term of `{loss}`"))
    what = f"the gradient penalty in `{loss}`" if of_gradient(cut) else f"a term of `{loss}`"
    drawn = last_name(cut.site) == "sample"
    from_ = "a sample, which has no gradient" if drawn else "a detached tensor"
    way = "has no graph" if one.given is None else f"is computed from {from_}"
    message = f"{what} {way}: it changes the value of the loss, but no parameter gets a gradient from it"
    site = cut.site
    assert isinstance(site, (ast.expr, ast.stmt))
    return Finding("detached-term", message, Span.of(site), tuple(notes), _fixes(program, one))


def _place(term: Node) -> ast.AST:
    """Where a term is computed: by a call of a network, or by an operation."""
    return term.call.site if term.call is not None else term.site


def _fixes(program: Program, one: DeadTerm) -> tuple[Fix, ...]:
    site = one.cut.site
    if not isinstance(site, ast.Call) or len(one.cut.sites) > 1:
        return ()
    if of_gradient(one.cut):
        code = creating_graph(program, site)
        words = f"compute `{shown(program, site)}` with `create_graph=True`"
        edits: tuple[Edit, ...] = () if code is None else (ReplaceExpression(Span.of(site), code),)
    else:
        words, edits = (uncut(program, one.cut) if one.given is not None else None) or ("", ())
    if not edits:
        return ()
    others = constructed_beside(one.run, one.optimizer)
    return within_file([Fix(words, Effect.CHANGES, edits, Claim(unchanged=others, losses="rerouted"))])
