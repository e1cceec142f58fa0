"""A generator of parameters is used a second time, when it is already empty.
Clipping clips nothing, a penalty is zero, a group of an optimizer is empty, and nothing raises.

    params = net.parameters()                     params = list(net.parameters())
    optimizer = Adam(params)                      optimizer = Adam(params)
    for x, y in loader:                     =>    for x, y in loader:
        ...                                           ...
        loss.backward()                               loss.backward()
        clip_grad_norm_(params, 1.0)                  clip_grad_norm_(params, 1.0)
        optimizer.step()                              optimizer.step()

`parameters()` returns a generator, which can be iterated over only once. Only an optimizer that is given
nothing else says so: "optimizer got an empty parameter list".

When not to fix it: where the second use has no purpose. Then drop it.

Preconditions:

* the very same generator (`parameters()`, `named_parameters()`, a `filter` or a generator expression over
  these) has been gone through before, whichever way conditions go: by an optimizer, a clipping, a loop, a
  comprehension, or `list`;
* what comes second clips, makes an optimizer, or stands in a loop that trains. Who counts parameters for the
  log once more is not reported.

Where the generator is bound to a variable in this file, a list of it is bound instead.

By hand: make a list of the parameters, `list(net.parameters())`, or ask the network for them each time.

Effect: changes, or repairs where an optimizer raises.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.graph import Clip, ExhaustedParameters
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import of_kind
from gradfix.core.codemod import Claim, Effect, Finding, Fix, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rules.edits import note, shown, within_file

RAISED = "optimizer got an empty parameter list"


def find(program: Program) -> Iterator[Finding]:
    """Report each second use of a generator of parameters."""
    for event in program.certain_observations(used_again, lambda e: e.site, raises=False):
        if _at_once(program, event.spent) and _at_once(program, event.site):
            yield _finding(program, event)


def used_again(run: Run) -> dict[Hashable, ExhaustedParameters]:
    """The second uses of generators of parameters."""
    clipping = {clip.site for clip in of_kind(run, Clip)}
    found: dict[Hashable, ExhaustedParameters] = {}
    for event in of_kind(run, ExhaustedParameters):
        if event.optimizer or event.loops or event.site in clipping:
            found.setdefault(event.site, event)
    return found


def _at_once(program: Program, site: ast.AST) -> bool:
    """Whether a place goes through what it is given there and then: a generator expression may wait."""
    if getattr(site, "lineno", 0) <= 0:
        return False
    holder = program.parent(site)
    lazy = isinstance(holder, ast.comprehension) and program.parent(holder)
    return not isinstance(lazy, ast.GeneratorExp) or isinstance(program.parent(lazy), ast.Call)


def _finding(program: Program, event: ExhaustedParameters) -> Finding:
    made, site = event.made, event.site
    assert isinstance(site, (ast.expr, ast.stmt)) and isinstance(made, (ast.expr, ast.stmt))
    notes = []
    if made.lineno > 0:
        notes.append(note(made, "this is a generator: it can be iterated over only once"))
    if event.spent is not site:
        notes.append(note(event.spent, "this iterates over it"))
    again = "it is empty here" if event.spent is not site else "from the second iteration on it is empty"
    notes.append(note(site, again))
    what = shown(program, made)
    return Finding(
        "exhausted-parameters",
        f"`{what}` is a generator that has already been used up: it yields no parameters here",
        Span.of(site),
        tuple(notes),
        _fixes(program, event),
    )


def _fixes(program: Program, event: ExhaustedParameters) -> tuple[Fix, ...]:
    made = event.made
    try:
        statement = program.statement(made)
    except Elsewhere:
        return ()
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is not made:
        return ()
    assert isinstance(made, ast.expr)
    edit = ReplaceExpression(Span.of(made), f"list({program.segment(made)})")
    raises = event.optimizer and event.alone
    effect = Effect.REPAIRS if raises else Effect.CHANGES
    claim = Claim(stops=RAISED) if raises else Claim(unchanged=(), losses="other")
    return within_file([Fix("make a list of the parameters", effect, (edit,), claim)])
