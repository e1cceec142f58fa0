"""Two steps use the same gradients.
The weights are updated twice: as with twice the learning rate, and momentum counts the gradients twice.

    loss.backward()            loss.backward()
    optimizer.step()     =>    optimizer.step()
    optimizer.step()

A step leaves gradients as they are. After `scaler.step(optimizer)` a plain `optimizer.step()` is a second
one too; before it, it uses gradients that are still scaled by a large factor. The same happens where two
optimizers have the same parameters, and both step on each loss.

When not to fix it: where twice the step is meant, which a larger learning rate says more clearly.

Preconditions:

* the second step comes in the same iteration of every loop, and certainly uses what the first has used and
  nothing else: no backward is called and nothing is cleared in between;
* nothing reads gradients in between, writes them, or changes the groups of an optimizer (`param_groups`) in
  the same function;
* the optimizers are torch's, and of no kind that evaluates a loss by itself (LBFGS, `step(closure)`);
* two optimizers own exactly the same parameters, which are all that some networks have.

The second step is dropped, or the plain one beside that of a scaler, where nothing is computed between the
two: otherwise a backward may have been forgotten. Which of two optimizers is the right one, only their author
knows.

By hand: step once for each backward.

Effect: changes.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Leaf, OptimizerState, Step
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, between, steps, steps_in
from gradfix.core.codemod import Claim, Effect, Finding, Fix, Note, RemoveStatement
from gradfix.core.span import Span
from gradfix.rules.clauses import KEPT, Verdict, breaches
from gradfix.rules.edits import constructed, line, note, receiver, stepped, within_file
from gradfix.rules.intent.misdirected_steps import misdirected


class RepeatedStep(NamedTuple):
    """Two steps that consume the same gradients."""

    run: Run
    first: Step
    second: Step
    loss: Backward
    """The last backward in these gradients."""

    @property
    def by_two(self) -> bool:
        """Whether these are steps of two optimizers."""
        return self.first.optimizer is not self.second.optimizer


def find(program: Program) -> Iterator[Finding]:
    """Report each step that consumes what another one has just consumed."""
    for one in program.certain_observations(repeated_steps, lambda a: a.second.site, raises=False):
        if not _rates_change(program, one):
            yield _finding(program, one)


def repeated_steps(run: Run) -> dict[Hashable, RepeatedStep]:
    """By the place of the second step: pairs of steps that use the same gradients."""

    def judge(second: Step) -> RepeatedStep | Verdict:
        earlier = (s for s in reversed(steps_in(run, second.loops)) if s.serial < second.serial)
        first = next((s for s in earlier if _alike(s.optimizer, second.optimizer)), None)
        loss = None if first is None else _consumed_again(run, first, second)
        return KEPT if first is None or loss is None else RepeatedStep(run, first, second, loss)

    return breaches(steps(run), judge)


def _alike(one: OptimizerState, other: OptimizerState) -> bool:
    """Whether it is the same optimizer, or another one of all parameters of the same networks."""
    if one.whole_networks is None or other.whole_networks is None:
        return one is other
    return set(one.owned()) == set(other.owned())


def _consumed_again(run: Run, first: Step, second: Step) -> Backward | None:
    """The loss whose gradients both of two steps certainly consume, and nothing else."""
    if first.site is second.site or any(map(_by_itself, (first, second))):
        return None
    if misdirected(run, second) is not None:
        return None  # Another optimizer should have made it.
    if run.grad_read_between(first.serial, second.serial) or _held(first) != _held(second):
        return None
    if next(between(backwards(run), first.serial, second.serial), None) is not None:
        return None
    sure = [b for held in second.consumed.values() for b, (certain, _) in held.items() if certain]
    return max(sure, key=lambda b: b.serial, default=None)


def _held(step: Step) -> dict[Leaf, set[Backward]]:
    """Whose gradients a step finds in each block."""
    return {leaf: set(held) for leaf, held in step.consumed.items()}


def _by_itself(step: Step) -> bool:
    """Whether it is not known that a step consumes what is there, and only that: a closure may differ."""
    site, state = step.site, step.optimizer
    given = isinstance(site, ast.Call) and bool(site.args or site.keywords) and step.scaler is None
    return given or step.doubtful or state.wrapped or state.cls is not None


def _rates_change(program: Program, one: RepeatedStep) -> bool:
    """Whether the function of a step has groups of an optimizer in hand: it may step with another rate."""
    homes = {program.function(step.site) for step in (one.first, one.second)}
    return any(
        isinstance(n, ast.Attribute) and n.attr == "param_groups" for home in homes for n in ast.walk(home)
    )


def _finding(program: Program, one: RepeatedStep) -> Finding:
    first, second = one.first, one.second
    assert isinstance(second.site, (ast.expr, ast.stmt))
    name, other = (stepped(program, step.optimizer) or "the optimizer" for step in (second, first))
    notes: list[Note] = []
    if one.by_two:
        for each, step in ((other, first), (name, second)):
            if line(step.optimizer.created) > 0:
                notes.append(note(step.optimizer.created, f"`{each}` has these parameters"))
        message = f"`{other}.step()` and `{name}.step()` update the same parameters with the same gradients"
        advice = "create each optimizer with the parameters it should train, or keep only one of the two"
    else:
        message = f"`{name}` steps twice on the same gradients"
        advice = "drop one of the two steps, or call the backward that the second one is for before it"
    notes.append(note(first.site, "this step has used them"))
    notes.append(note(second.site, "this step uses them again"))
    return Finding(
        "stepped-twice",
        message,
        Span.of(second.site),
        tuple(notes),
        () if one.by_two else within_file(_fixes(program, one)),
        advice=advice,
    )


def _fixes(program: Program, one: RepeatedStep) -> Iterator[Fix]:
    """Without the second of the two steps, or the one that is not made through a scaler."""
    run, first, second = one.run, one.first, one.second
    if any(first.serial < call.serial < second.serial for call in run.module_calls):
        return
    if any(first.serial < node.serial < second.serial for node in run.nodes):
        return
    slip = first if first.scaler is None and second.scaler is not None else second
    statement = program.statement(slip.site)
    if not isinstance(statement, ast.Expr) or statement.value is not slip.site:
        return
    if statement not in program.suite_around(program.statement((first if slip is second else second).site)):
        return
    edit = RemoveStatement(Span.of(statement))
    consumed = {b for held in second.consumed.values() for b, (sure, _) in held.items() if sure}
    feeds = {(made, receiver(program, b)) for made in constructed(run, second.optimizer) for b in consumed}
    claim = Claim(unchanged=(), feeds=tuple(sorted(feeds)), same_forwards=False)
    yield Fix("drop the second step", Effect.CHANGES, (edit,), claim)
