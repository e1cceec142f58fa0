"""One loss is backpropagated twice before the step that uses it.
Its gradient counts double, or the second call raises "Trying to backward through the graph a second time".

    loss.backward()        =>   loss.backward()
    loss.backward()             optimizer.step()
    optimizer.step()

The gradients of both calls add up. `retain_graph=True`, which the error suggests, only hides that. It
happens where a helper or a criterion calls `backward` as well, and where a running sum goes on being added
to after it was backpropagated: the second backward contains the terms of the first.

When not to fix it: where the loss should count double, which `(2 * loss).backward()` says more clearly.

Preconditions:

* both calls differentiate one term: a loss is taken apart as far as it is a sum, so that `a + b` and `b + c`
  have `b` in common;
* nothing clears the gradients between the two calls. Where nothing raises, a step certainly uses both, and
  the second call does not scale the term differently (`(0.1 * loss).backward()` is a decision; the scale of
  a `GradScaler`, or `loss / accumulated` in both, is none).

The call is dropped only where it is certainly the slip: the same statement twice, one directly after the
other. Otherwise there is a choice that only its author can make, and the finding names it: drop one of the
two calls, start the sum from zero, or backpropagate only what has been added.

By hand: drop the backward that is one too many, or start the sum from zero after the first; retain_graph=True
would only hide that the loss counts double.

Effect: repairs where the second call raises, changes where the flag has hidden it.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.model_ledger import in_common, ledger_of, multiples_of
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, clipped_between, steps
from gradfix.core.codemod import Claim, Effect, Finding, Fix, RemoveStatement
from gradfix.core.span import Span
from gradfix.rules.diagnosis import Diagnosis, diagnose
from gradfix.rules.edits import line, note, receiver, retain_argument, stepped, within_file


class Twice(NamedTuple):
    """Two backward calls that differentiate a common term, and the step that consumes both."""

    first: Backward
    second: Backward
    step: Step | None


def find(program: Program) -> Iterator[Finding]:
    """Report each loss that a step consumes twice."""
    for one in program.certain_observations(raising, _second, raises=True):
        yield _finding(program, one)
    for one in program.certain_observations(silent, _second, raises=False):
        yield _finding(program, one)


def _second(found: Twice) -> ast.AST:
    return found.second.site


def raising(run: Run) -> dict[Hashable, Twice]:
    """Second calls that raise because the first has freed the graph, and for no other mistake."""
    found: dict[Hashable, Twice] = {}
    for event in backwards(run):
        if diagnose(run, event) is Diagnosis.BACKPROPAGATED_TWICE:
            assert event.failure is not None and isinstance(event.failure.culprit, Backward)
            consumed = _consumed_twice(run, event)
            found.setdefault(event.site, consumed or Twice(event.failure.culprit, event, None))
    return found


def silent(run: Run) -> dict[Hashable, Twice]:
    """The same where a flag keeps the graph, unless the second call weighs the loss differently."""
    passing = [b for b in backwards(run) if b.failure is None and b.certain and b.accumulates]
    shared = {event for those in in_common(passing, weighed=False).values() for event in those}
    return {
        event.site: found
        for event in sorted(shared, key=lambda b: b.serial, reverse=True)
        if (found := _consumed_twice(run, event)) is not None and found.first.failure is None
    }


def _consumed_twice(run: Run, event: Backward) -> Twice | None:
    """The call before ``event`` of which a step consumes a term that ``event`` differentiates too."""
    earlier = [b for b in backwards(run) if b.serial < event.serial and b.certain and b.accumulates]
    common = in_common([*earlier, event])
    pairs = [those for those in common.values() if event in those and those[0] is not event]
    if not pairs:
        return None
    calls = [*dict.fromkeys(those[0] for those in pairs), event]
    taken = steps(run)
    for one in ledger_of(run, calls, taken).doubled():
        if one.calls[0] is not one.calls[-1]:
            step = taken[one.step]
            # Whoever looks at gradients in between may change them.
            first = calls[one.calls[0].index]
            looked_at = run.grad_read_between(first.serial, step.serial)
            if not (step.doubtful or looked_at or clipped_between(run, first.serial, event.serial)):
                return Twice(first, event, step)
    return None


def _finding(program: Program, twice: Twice) -> Finding:
    first, second, step = twice
    loss, earlier = receiver(program, second), receiver(program, first)
    result = "autograd raises" if second.failure is not None else "its gradient counts double"
    notes = [
        note(first.site, "this backward has already added its gradient"),
        note(second.site, f"this one adds it again: {result}"),
    ]
    before = ""
    if step is not None:
        who = stepped(program, step.optimizer) or "the optimizer"
        notes.append(note(step.site, f"`{who}` uses both"))
        before = f" before `{who}` steps"
    fixes = within_file(_dropped(program, twice))
    assert isinstance(second.site, ast.Call)
    still = (
        f"with `{earlier}` still in it"
        if earlier != loss
        else f"with that of line {line(first.site)} still in it"
    )
    again = "twice" if _same(first, second) else still
    message = f"`{loss}` is backpropagated {again}{before}: the gradient of `{earlier}` counts double"
    return Finding(
        "loss-backpropagated-twice",
        message,
        Span.of(second.site),
        tuple(notes),
        fixes,
        None if second.failure is None else second.failure.kind,
        _choices(first, second, loss),
    )


def _same(first: Backward, second: Backward) -> bool:
    """Whether two calls differentiate the very same loss, equally weighed."""
    return multiples_of(first) == multiples_of(second)


def _choices(first: Backward, second: Backward, loss: str) -> str:
    """What a person can do where nobody else can decide."""
    if _same(first, second):
        return "drop one of the two calls; retain_graph=True would only hide that it counts double"
    return (
        f"start `{loss}` from zero after the first backward, or drop that backward; retain_graph=True would "
        "only hide that it counts double"
    )


def _dropped(program: Program, twice: Twice) -> Iterator[Fix]:
    """Without the second of two equal statements that follow each other, or the one with the flag."""
    first, second, _ = twice
    statements = program.statement(first.site), program.statement(second.site)
    block = program.suite_around(statements[0])
    alone = all(isinstance(s, ast.Expr) and s.value is b.site for s, b in zip(statements, twice[:2]))
    if not alone or block is not program.suite_around(statements[1]) or first.loops != second.loops:
        return
    if block.index(statements[1]) != block.index(statements[0]) + 1:
        return
    if not _same(first, second) or receiver(program, first) != receiver(program, second):
        return
    slip = (
        statements[0] if retain_argument(first.site) and not retain_argument(second.site) else statements[1]
    )
    raises = second.failure is not None
    claim = Claim("E1", line(second.site), beyond=False) if raises else Claim(unchanged=())
    effect = Effect.REPAIRS if raises else Effect.CHANGES
    yield Fix("drop the repeated backward", effect, (RemoveStatement(Span.of(slip)),), claim)
