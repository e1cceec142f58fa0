"""A network goes on training in eval mode: nothing calls `train()` after the evaluation.
Dropout drops nothing, and batch normalization uses its running statistics, which no longer change. Nothing
raises, and as a rule the network learns worse.

    net.train()                            for epoch in range(epochs):
    for epoch in range(epochs):                net.train()
        for x, y in loader:                    for x, y in loader:
            loss = loss_fn(net(x), y)              loss = loss_fn(net(x), y)
            ...                       =>           ...
        net.eval()                             net.eval()
        evaluate(net)                          evaluate(net)

`eval()` stays in force until `train()` is called. From the second iteration on, the network trains without
the regularization that it was given.

When not to fix it: where the statistics of a pretrained network are frozen on purpose. Then call `eval()` in
every iteration, before the loss.

Preconditions:

* an iteration of a loop computes something with the network before it puts the network into eval mode; the
  next iteration computes the same in eval mode, and differentiates it; or a function that has put it into
  that mode, and has run it for an evaluation, is over when it is called there (an agent that acts, and then
  learns), and nothing else has put it into that mode before. No step has then seen the right mode, so that
  running it cannot prove the repair;
* nothing that the model cannot see gets hold of the network in between;
* something in the network depends on the mode: dropout, a normalization with running statistics, a
  transformer, a class that asks for `self.training`, or a part that is not known.

Who freezes the statistics of a pretrained network on purpose calls `eval()` before the loss, in every
iteration, or on parts of it: of that nothing is said.

`train()` is put in front of the phase that trains: the outermost statement of the loop that does and does not
evaluate. Effect: changes.

By hand: call `train()` before the phase that trains.

Severity: error.
Clause: nothing is kept longer than it is used.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cache

from gradfix.autograd.graph import ModeChange, ModuleCall
from gradfix.autograd.modes import depends_on_mode
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, calls_in
from gradfix.core.codemod import Claim, Edit, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.rules.edits import insert, names_bound, names_read, network, note, shown, within_file


@dataclass(eq=False)
class Left:
    """Networks that are put into evaluation mode in one iteration of a loop, and train so in the next."""

    loop: ast.For | ast.While | ast.AsyncFor
    changes: dict[ast.AST, ModeChange] = field(default_factory=dict)
    """What puts them into evaluation mode, by place."""
    calls: dict[ast.AST, ModuleCall] = field(default_factory=dict)
    """Where they train, by place."""
    before: bool = False
    """Whether the first iteration trains so as well: an evaluation before it has left them in that mode."""
    shared: bool = False
    """Whether such a place is in a function that evaluation calls as well."""

    @property
    def first(self) -> ast.AST:
        """Where the first `eval()` is."""
        return next(iter(self.changes))


def find(program: Program) -> Iterator[Finding]:
    """Report each loop whose iterations leave networks in evaluation mode that the next iteration trains."""
    survey = cache(left_in_eval)
    for entry in program.entry_points:
        seen = [left for run in entry.runs for left in survey(run).values()]
        for left in entry.certain_observations(
            survey,
            lambda found: found.first,
            raises=False,
            against=lambda run, seen=seen: _evaluated(run, seen),  # type: ignore[misc]
        ):
            if not _may_be_last(program, left):
                yield _finding(program, left)


def left_in_eval(run: Run) -> dict[Hashable, Left]:
    """By loop: what its iterations leave in evaluation mode, and train in that mode afterwards."""
    found: dict[Hashable, Left] = {}
    alike: dict[tuple[ast.AST, object], list[ModuleCall]] = {}
    for call in run.module_calls:
        alike.setdefault((call.site, call.module), []).append(call)
    differentiating = (b for b in backwards(run) if b.certain and b.accumulates)
    trained = {call for event in differentiating for call in calls_in(event.visited)}
    differentiated = {call for event in backwards(run) for call in calls_in(event.visited)}
    for call in sorted(trained, key=lambda one: one.serial):
        if call.training is not False or call.mode is None or not depends_on_mode(call.module):
            continue
        same = alike[call.site, call.module]
        earlier = next((one for one in reversed(same) if one.serial < call.mode.serial), None)
        loop = _loop_between(earlier, call) if earlier is not None and earlier.training is not False else None
        before = loop is None and _is_over(run, call, call.mode, differentiated)
        if before:
            loop = _loop_after(call.mode, call)
        if loop is None:
            continue
        left = found.setdefault(loop, Left(loop))
        left.before = left.before or before
        left.changes.setdefault(call.mode.site, call.mode)
        left.calls.setdefault(call.site, call)
        left.shared = left.shared or any(one not in trained for one in same)
    return found


def _is_over(run: Run, call: ModuleCall, mode: ModeChange, differentiated: set[ModuleCall]) -> bool:
    """Whether a network trains after evaluations that are over, and were all that has set its mode.

    Who freezes statistics on purpose has said `eval()` for what trains, and not in a function that evaluates.
    """
    at: ModeChange | None = mode
    around = {site for site, _ in call.stack}
    while at is not None and at.training is False:
        if not at.calls or at.calls[-1] in around or not _evaluates(run, call, at, differentiated):
            return False
        at = at.before
    return at is None or at.training is True


def _evaluates(run: Run, call: ModuleCall, mode: ModeChange, differentiated: set[ModuleCall]) -> bool:
    """Whether the function that puts a network into evaluation mode calls it, and nothing walks that."""
    return any(
        other.module is call.module
        and mode.serial < other.serial < call.serial
        and other.training is False
        and other not in differentiated
        and mode.calls[-1] in (site for site, _ in other.stack)
        for other in run.module_calls
    )


def _loop_after(mode: ModeChange, call: ModuleCall) -> ast.For | ast.While | ast.AsyncFor | None:
    """The outermost loop around a call that begins after an `eval()`, else the innermost one around it."""
    loop = next(
        (at for number, at in enumerate(call.loops) if mode.loops[number : number + 1] != (at,)), None
    )
    loop = loop or (call.loops[-1] if call.loops else None)
    return loop[0] if loop is not None and isinstance(loop[0], (ast.For, ast.While, ast.AsyncFor)) else None


def _evaluated(run: Run, seen: list[Left]) -> set[ast.AST]:
    """Where networks are put into evaluation mode, as far as it matters to what runs have shown.

    An evaluation after the loop is none of its iterations'.
    """
    loops = {left.loop for left in seen}
    before = {site for left in seen if left.before for site in left.changes}
    return {
        event.site
        for event in run.events
        if isinstance(event, ModeChange)
        and (event.site in before or any(loop in loops for loop, _ in event.loops))
    }


def _loop_between(earlier: ModuleCall, later: ModuleCall) -> ast.For | ast.While | ast.AsyncFor | None:
    """The loop in whose iterations two calls differ, if they are in the same iterations of all loops around
    it."""
    for (loop, number), (other, later_number) in zip(earlier.loops, later.loops):
        if loop is not other:
            return None
        if number != later_number:
            return loop if isinstance(loop, (ast.For, ast.While, ast.AsyncFor)) else None
    return None


def _may_be_last(program: Program, left: Left) -> bool:
    """Whether the `eval()` waits for an iteration whose number is not known: the last one, say."""
    counters = set() if isinstance(left.loop, ast.While) else names_bound(left.loop.target)
    for node in ast.walk(left.loop):
        if isinstance(node, ast.AugAssign):
            counters |= names_bound(node)
    conditions = [
        outer.test
        for change in left.changes.values()
        for site in (*change.calls, change.site)
        if getattr(site, "lineno", 0) > 0
        for outer in program.ancestors(site)
        if isinstance(outer, (ast.If, ast.IfExp))
    ]
    tests = [
        node for condition in conditions for node in ast.walk(condition) if isinstance(node, ast.Compare)
    ]
    return any(_against_unknown(test, counters) for test in tests)


def _against_unknown(test: ast.Compare, counters: set[str]) -> bool:
    """Whether a count itself, give or take something, is compared with something that is no literal."""

    def counts(side: ast.expr) -> bool:
        plain = isinstance(side, ast.Name) or (
            isinstance(side, ast.BinOp) and isinstance(side.op, (ast.Add, ast.Sub))
        )
        return plain and not counters.isdisjoint(names_read(side))

    sides = [test.left, *test.comparators]
    others = [side for side in sides if not counts(side)]
    return len(others) < len(sides) and not all(isinstance(side, ast.Constant) for side in others)


def _finding(program: Program, left: Left) -> Finding:
    calls = list(left.calls.values())
    names = list(dict.fromkeys(shown(program, network(call)) for call in calls))
    several = " and ".join(f"`{name}`" for name in names)
    goes = "goes" if len(names) == 1 else "go"
    how = "the first iteration runs in train mode, later ones in eval mode"
    how = "this trains in eval mode" if left.before else how
    notes = [
        *(note(site, "eval mode begins here, and nothing switches back") for site in left.changes),
        *(note(call.site, how) for call in calls),
    ]
    message = f"{several} {goes} on training in eval mode: nothing calls `train()` after the evaluation"
    assert isinstance(left.first, ast.Call)
    fixes = within_file(_back_to_training(program, left))
    return Finding("left-in-eval-mode", message, Span.of(left.first), tuple(notes), fixes)


def _back_to_training(program: Program, left: Left) -> Iterator[Fix]:
    """`train()` in front of what trains, and nothing else."""
    if left.shared:
        return
    edits: dict[Edit, None] = {}
    for call in left.calls.values():
        if not isinstance(network(call), (ast.Name, ast.Attribute)):
            return
        place = _phase(program, left, call)
        edits.setdefault(insert(place, "before", f"{program.segment(network(call))}.train()"))
    claim = Claim(unchanged=(), same_forwards=False, steady_modes=True, losses="other")
    yield Fix("switch back to train mode", Effect.CHANGES, tuple(edits), claim)


def _phase(program: Program, left: Left, call: ModuleCall) -> ast.stmt:
    """The outermost statement around a call that is in the loop and does not hold an `eval()`."""
    place = program.statement(call.site)
    sites = [site for change in left.changes.values() for site in (*change.calls, change.site)]
    around = {outer for site in sites if getattr(site, "lineno", 0) > 0 for outer in program.ancestors(site)}
    for outer in program.ancestors(place):
        if (
            outer is left.loop
            or outer in around
            or isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
        ):
            break
        if isinstance(outer, (ast.For, ast.While, ast.AsyncFor, ast.With)):
            place = outer
    return place
