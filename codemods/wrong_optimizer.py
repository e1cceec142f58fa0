"""The optimizer that steps after a loss is not the one that the loss is for.
Nothing raises: one network is not trained by its own loss, or by that of another one.

    opt_d.zero_grad()                  opt_d.zero_grad()
    d_loss.backward()                  d_loss.backward()
    opt_g.step()                       opt_d.step()
                                =>
    opt_g.zero_grad()                  opt_g.zero_grad()
    g_loss.backward()                  g_loss.backward()
    opt_g.step()                       opt_g.step()

The step uses gradients that it has used already, or those that another loss has added on its way, or none.
It raises only where a step in the wrong place modifies weights that a later backward needs.

When not to fix it: where both optimizers have the same parameters.

Preconditions:

* a loss reaches parameters of an optimizer that never steps, in any run, and after it another one steps that
  steps elsewhere on a loss of its own: it uses nothing there that it has not used already; or only that
  loss, for which the gradients of the optimizer that never steps are cleared, and not its own;
* or two optimizers are swapped: each steps at one place, and directly after losses that reach what the other
  one owns, the first of them nothing else;
* all optimizers are known with all that they own, and no framework or unknown function has had one in hand;
  nothing reads gradients between the loss and the step.

Where the other optimizer never steps, the step is made its own, and so is a clearing before the loss that
names the wrong one. Of two that are swapped, the steps change places if the clearings name the right ones;
if these are swapped as well, the optimizers were made from each other's parameters, and these change places.
Where nothing tells which of the two it is, the finding names both.

By hand: after each loss, step the optimizer of the network that the loss is for.

Effect: changes, or repairs where weights are moved that a later backward needs.

Severity: error.
Clause: every gradient that is meant is used.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.graph import Backward, OptimizerState, Step, ZeroGrad
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, steps
from gradfix.core.codemod import Claim, Edit, Effect, Finding, Fix, Note, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rules.clauses import UNKNOWN, breaches, optimizers_that_step
from gradfix.rules.edits import (
    constructed,
    line,
    named_where_made,
    note,
    receiver,
    stepped,
    stepping,
    within_file,
)
from gradfix.rules.intent.misdirected_steps import Misdirected, misdirected


def find(program: Program) -> Iterator[Finding]:
    """Report each step of an optimizer that another one should have made."""
    for entry in program.entry_points:
        reported: set[ast.AST] = set()
        for one in entry.certain_observations(wrong, lambda m: m.step.site, raises=False):
            trained = optimizers_that_step(run for each in program.entry_points for run in each.runs)
            if one.step.site in reported or (one.partner is None and one.meant.created in trained):
                continue
            reported |= {one.step.site} | ({one.partner.step.site} if one.partner is not None else set())
            yield _finding(program, one)


def wrong(run: Run) -> dict[Hashable, Misdirected]:
    """By place: the steps of the wrong optimizer."""
    return breaches(steps(run), lambda step: misdirected(run, step) or UNKNOWN)


def _finding(program: Program, one: Misdirected) -> Finding:
    name, loss = stepped(program, one.step.optimizer) or "the optimizer", receiver(program, one.loss)
    other = _name(program, one) or "another optimizer"
    notes: list[Note] = [note(one.loss.site, f"`{loss}` computes gradients for `{other}`")]
    if one.partner is not None:
        notes.append(note(one.step.site, f"`{name}` gets no gradient from it"))
        notes.append(note(one.partner.step.site, f"`{other}` steps after `{name}`'s loss"))
    else:
        notes.append(note(one.step.site, f"this is another step of `{name}`, and `{other}` never steps"))
    assert isinstance(one.step.site, (ast.expr, ast.stmt))
    choices = f"step `{other}` here, or swap the parameters that the two optimizers were created with"
    return Finding(
        "wrong-optimizer",
        f"`{name}.step()` comes after the backward of `{loss}`, which computes gradients for `{other}`",
        Span.of(one.step.site),
        tuple(notes),
        within_file(_fixes(program, one)),
        advice=choices if one.partner is not None else "",
    )


def _fixes(program: Program, one: Misdirected) -> Iterator[Fix]:
    named: set[bool | None] = set()
    if one.partner is None:
        name = _name(program, one)
        clearings = [z for z in one.clearings() if _of(z) is one.step.optimizer]
        edits = [_renamed(program, stepping(program, one.step), name)]
        edits += [_renamed(program, _cleared(z), name) for z in clearings]
        words = f"step `{name}` instead"
    else:
        pair, named = (one, one.partner), {_by_its_own(one), _by_its_own(one.partner)}
        if named <= {True, None} and True in named:
            holders = [stepping(program, each.step) for each in pair]
            words = "swap the two steps"
        elif named == {False}:
            holders = [_parameters(each.step.optimizer) for each in pair]
            words = "swap the parameters of the two optimizers"
        else:
            return
        texts = [None if holder is None else program.segment(holder) for holder in holders]
        edits = [_renamed(program, holder, text) for holder, text in zip(holders, reversed(texts))]
    known = [edit for edit in edits if edit is not None]
    if len(known) == len(edits):
        raising = _raising(one)
        effect = Effect.CHANGES if raising is None else Effect.REPAIRS
        yield Fix(words, effect, tuple(known), _claim(program, one, raising, remade=named == {False}))


def _raising(one: Misdirected) -> Backward | None:
    """The backward that finds weights moved by one of the steps in the wrong place."""
    wrong = {one.step.site} | ({one.partner.step.site} if one.partner is not None else set())
    for event in backwards(one.run):
        failure = event.failure
        if failure is not None and event.certain:
            culprit = failure.culprit
            return event if isinstance(culprit, Step) and culprit.site in wrong else None
    return None


def _claim(program: Program, one: Misdirected, raising: Backward | None, remade: bool) -> Claim:
    """That each of the two steps on its own losses, and on nothing else.

    Those that are ``remade`` of each other's parameters step where they did.
    """
    pairs = [(one.step.optimizer if remade else one.meant, one.losses())]
    if one.partner is not None:
        other = one.partner.step.optimizer if remade else one.partner.meant
        pairs.append((other, one.partner.losses()))
    else:
        pairs.append((one.step.optimizer, one.own()))
    feeds = {
        (made, receiver(program, loss))
        for optimizer, losses in pairs
        for made in constructed(one.run, optimizer)
        for loss in losses
    }
    claim = Claim(unchanged=(), feeds=tuple(sorted(feeds)), same_forwards=False, losses="rerouted")
    if raising is None:
        return claim
    return claim._replace(raises="E2", raises_line=line(raising.site), beyond=False)


def _renamed(program: Program, holder: ast.expr | None, name: str | None) -> Edit | None:
    """Another expression in the place of one that stands in this file."""
    if holder is None or name is None or line(holder) <= 0:
        return None
    return ReplaceExpression(Span.of(holder), name)


def _of(zero: ZeroGrad) -> OptimizerState | None:
    return getattr(zero.target, "state", None)


def _cleared(zero: ZeroGrad) -> ast.expr | None:
    """What names the optimizer where it clears its gradients."""
    site = zero.site
    written = (
        isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute) and site.func.attr == "zero_grad"
    )
    return site.func.value if written else None  # type: ignore[attr-defined]


def _by_its_own(one: Misdirected) -> bool | None:
    """Whether the gradients are cleared, for a loss, by the optimizer that it is for; or by the other one."""
    clearing = {_of(zero) for zero in one.clearings()}
    mine, theirs = one.meant in clearing, one.step.optimizer in clearing
    return mine if mine is not theirs else None


def _parameters(optimizer: OptimizerState) -> ast.expr | None:
    """The argument that says what an optimizer owns."""
    made = optimizer.created
    if not isinstance(made, ast.Call) or any(isinstance(a, ast.Starred) for a in made.args):
        return None
    return made.args[0] if made.args else next((k.value for k in made.keywords if k.arg == "params"), None)


def _name(program: Program, one: Misdirected) -> str | None:
    """What the optimizer that should step is called at the place of the step."""
    known = stepped(program, one.meant)
    if known is not None:
        return known
    for zero in one.clearings():
        holder = _cleared(zero) if _of(zero) is one.meant else None
        if holder is not None and line(holder) > 0:
            return program.segment(holder)
    made, name = one.meant.created, named_where_made(program, one.meant)
    if name is None or "." in name:
        return name
    visible = program.function(made) in (program.function(one.step.site), program.tree)
    return name if visible else None
