"""An optimizer is given the parameters of one network twice.
As a rule another network was meant, and that one is never trained.

    params = list(encoder.parameters()) + list(encoder.parameters())
    optimizer = Adam(params)

In one list the parameters that are there twice are updated twice by each step, with a warning that
"duplicate parameters" will be an error in future. In two groups they raise "some parameters appear in more
than one parameter group": a group for the head of a network, beside one of all its parameters, head
included.

When not to fix it: where another network was meant. Then name that one in place of the duplicate.

Preconditions:

* the optimizer's argument, or the one assignment of the variable that stands there, asks networks for all
  their parameters and for nothing else, whether by `+`, `chain`, `*` or in groups;
* it asks one network twice, by the same name, or a network and a part of it.

Where the very same is written twice in a list, and every network that is run has an optimizer without it, the
second is dropped. Otherwise nothing is rewritten: which network was meant, or which learning rate a part is
to have, only the author knows.

By hand: ask the other network for its parameters, or leave the parameters of the part out of the group of
the whole.

Effect: changes.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from gradfix.autograd.graph import DuplicateParameters
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import of_kind
from gradfix.core.codemod import Claim, Effect, Finding, Fix, RemoveArgument, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rules.edits import line, note, shown, within_file

ASKS = ("parameters", "named_parameters")


class Twice(NamedTuple):
    """An optimizer with a network that it has twice, and whether all networks that are run have one."""

    event: DuplicateParameters
    complete: bool


def find(program: Program) -> Iterator[Finding]:
    """Report each optimizer that is given parameters twice."""
    for one in program.certain_observations(overlapping, lambda t: t.event.site, raises=False):
        asked = _asked(program, one.event)
        if asked is not None:
            yield _finding(program, one, *asked)


def overlapping(run: Run) -> dict[Hashable, Twice]:
    """By place: the optimizers that are given parameters twice."""
    events = of_kind(run, DuplicateParameters)
    if not events:
        return {}
    owned = {leaf for optimizer in run.optimizers for leaf in optimizer.state.owned()}
    complete = all(call.leaves <= owned for call in run.module_calls) and not run.external_optimizers
    return {event.site: Twice(event, complete) for event in reversed(events)}


def _asked(program: Program, event: DuplicateParameters) -> tuple[ast.Call, ast.Call] | None:
    """Where one network is asked twice for its parameters, or a network and a part of it."""
    site = event.site
    if not isinstance(site, ast.Call) or line(site) <= 0 or event.optimizer.whole_networks is None:
        return None
    given = site.args[0] if site.args else next((k.value for k in site.keywords if k.arg == "params"), None)
    if isinstance(given, ast.Name):
        given = _assigned(program, site, given.id)
    if given is None:
        return None
    asking = [
        node
        for node in ast.walk(given)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKS
    ]
    asking.sort(key=lambda node: (node.lineno, node.col_offset))
    if len(asking) != len(event.optimizer.whole_networks):
        return None
    first, second = asking[event.first], asking[event.second]
    names = [ast.unparse(call.func.value) for call in (first, second) if isinstance(call.func, ast.Attribute)]
    if any("[" in name or "(" in name for name in names):
        return None  # What stands there may be another network each time.
    one, other = sorted(names, key=len)
    return (first, second) if one == other or other.startswith(f"{one}.") else None


def _assigned(program: Program, site: ast.Call, name: str) -> ast.expr | None:
    """What a variable was assigned that an optimizer is made of, if it was assigned once."""
    try:
        home = program.function(program.statement(site))
    except Elsewhere:
        return None
    stores = [
        n
        for n in ast.walk(home)
        if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
    ]
    if len(stores) != 1 or program.function(stores[0]) is not home:
        return None
    statement = program.statement(stores[0])
    return statement.value if isinstance(statement, ast.Assign) and statement.targets == [stores[0]] else None


def _finding(program: Program, one: Twice, first: ast.Call, second: ast.Call) -> Finding:
    assert isinstance(second.func, ast.Attribute) and isinstance(first.func, ast.Attribute)
    what, whole = shown(program, second.func.value), shown(program, first.func.value)
    which = what if len(what) >= len(whole) else whole
    result = (
        "torch raises: some parameters appear in more than one parameter group"
        if one.event.grouped
        else "each step updates them twice"
    )
    exact = what == whole
    made = one.event.site
    notes = [note(first, f"these are the parameters of `{whole}`")]
    notes.append(note(second, "these are the same" if exact else f"these are the parameters of `{what}`"))
    if line(made) != line(second):
        notes.append(note(made, result))
    return Finding(
        "parameters-listed-twice",
        f"the parameters of `{which}` are given to an optimizer twice: {result}",
        Span.of(second),
        tuple(notes),
        within_file(_fixes(program, one, first, second)) if exact and one.complete else (),
        advice="" if exact else f"leave the parameters of `{which}` out of the other group",
    )


def _fixes(program: Program, one: Twice, first: ast.Call, second: ast.Call) -> Iterator[Fix]:
    """Without what is there a second time, in a list."""
    if one.event.grouped:
        return
    words = "drop the duplicate"
    part: ast.AST = second
    while True:
        outer = program.parent(part)
        if (
            isinstance(outer, ast.Call)
            and isinstance(part, ast.expr)
            and len(outer.args) == 1
            and part in outer.args
        ):
            part = outer  # list(...)
            continue
        break
    if isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Add) and outer.right is part:
        edit = ReplaceExpression(Span.of(outer), program.segment(outer.left))
    elif isinstance(outer, ast.Call) and part in outer.args and len(outer.args) > 1:
        edit_ = RemoveArgument(Span.of(outer), outer.args.index(part))
        yield Fix(words, Effect.CHANGES, (edit_,), Claim(unchanged=(), losses="rerouted"))
        return
    else:
        return
    yield Fix(words, Effect.CHANGES, (edit,), Claim(unchanged=(), losses="rerouted"))
