"""An optimizer is created again in every iteration of the loop that trains with it.
Its state is lost each time: Adam's moving averages, the momentum of SGD. Nothing raises, and the loss jumps.

    for epoch in range(epochs):                    optimizer = Adam(net.parameters())
        optimizer = Adam(net.parameters())         for epoch in range(epochs):
        for x, y in loader:                   =>       for x, y in loader:
            ...                                            ...
            optimizer.step()                               optimizer.step()

A new optimizer has no state: Adam's first step has the size of the learning rate in every direction,
whatever the gradients are, and its averages need some hundreds of steps. Created in every epoch it begins so
again and again; created for each step, it never does anything else.

When not to fix it: where training starts over on purpose (another task, a restart).

Preconditions:

* the optimizer keeps a state, as far as its class and a momentum that is written as a number tell;
* it is made from the same parameters in every iteration, with arguments that no iteration changes, and not
  under a condition; nothing but its steps has written them since the loop began;
* each iteration steps at once, or in one loop within it that goes through the same batches as that of every
  other iteration: a loop around that is one over tasks, restarts or rounds, whose optimizers start over on
  purpose;
* in the loop nothing is loaded, copied, initialised or frozen, and the optimizer is handed to nobody but
  functions of this file: a schedule that starts over with it says that it is meant to.

The statement moves before the loop, where it stands directly in it and nothing that it reads is bound in the
loop. Where a function makes the optimizer that the loop calls, nothing is rewritten.

By hand: create the optimizer once, before the loop, and hand it to the function that trains.

Effect: changes.

Severity: error.
Clause: used as it is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import OptimizerState, Step
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import steps
from gradfix.core.codemod import Claim, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.core.syntax import last_name
from gradfix.rules.clauses import KEPT, breaches
from gradfix.rules.conditional_steps import assigned_again
from gradfix.rules.edits import line, move, names_bound, names_read, note, stepped, within_file

KEEPING = frozenset("Adam AdamW Adamax NAdam RAdam RMSprop Adadelta Adagrad".split())
"""Optimizers that keep averages of gradients, whatever they are told."""
LOOPS = (ast.For, ast.While)
BEGINNING = frozenset(
    """load_state_dict load reset_parameters apply deepcopy copy_ fill_ zero_ normal_ uniform_ clone copy
    requires_grad requires_grad_ prune reset init_weights""".split()
)
"""Attributes by which a loop begins something anew, or goes on with something else."""
WRAPPING = frozenset("enumerate tqdm trange zip iter".split())


@dataclass(eq=False)
class Recreated:
    """An optimizer that each iteration of a loop makes anew, and a step of it."""

    optimizer: OptimizerState
    loop: ast.For | ast.While
    step: Step
    within: ast.AST | None
    """The loop in an iteration in which it steps, if there is one."""


def find(program: Program) -> Iterator[Finding]:
    """Report each optimizer that is made in the loop that trains with it."""
    for one in program.certain_observations(
        recreated, lambda a: a.step.site, raises=False, repeated=_replaced
    ):
        if _same_each_time(program, one) and _one_training(program, one):
            yield _finding(program, one)


def _replaced(run: Run) -> bool:
    return any(optimizer.state.loops for optimizer in run.optimizers)


def recreated(run: Run) -> dict[Hashable, Recreated]:
    """By place: the steps of optimizers that replace one of the same parameters, made at the same place."""
    again = (step for step in steps(run) if step.optimizer.original is not step.optimizer)
    return breaches(again, lambda step: _anew(run, step) or KEPT)


def _anew(run: Run, step: Step) -> Recreated | None:
    """What a step shows, if its optimizer has replaced another one that stepped as well."""
    state, first = step.optimizer, step.optimizer.original
    if not first.steps or not state.in_view:
        return None
    if not _keeps(state) or not state.loops or len(step.loops) > len(state.loops) + 1 or run.thawed:
        return None
    loop = state.loops[-1][0]
    if not isinstance(loop, LOOPS) or line(loop) <= 0 or step.loops[: len(state.loops)] != state.loops:
        return None
    if (
        len(first.loops) != len(state.loops)
        or first.loops[:-1] != state.loops[:-1]
        or first.loops[-1][0] is not loop
    ):
        return None
    for leaf in state.owned():
        written = [event for event in leaf.storage.history if not isinstance(event, Step)]
        if leaf.storage.maybe or written or leaf.requires is not True or leaf.copied:
            return None
    within = step.loops[-1][0] if len(step.loops) > len(state.loops) else None
    return Recreated(state, loop, step, within)


def _keeps(state: OptimizerState) -> bool:
    """Whether an optimizer keeps something from step to step that a new one does not have."""
    made = state.created
    if state.cls is not None or not isinstance(made, ast.Call):
        return False
    if state.label in KEEPING:
        return True
    momentum = next((k.value for k in made.keywords if k.arg == "momentum"), None)
    return state.label == "SGD" and isinstance(momentum, ast.Constant) and bool(momentum.value)


def _same_each_time(program: Program, one: Recreated) -> bool:
    """Whether an optimizer is made in each iteration, and of the same things."""
    made = one.optimizer.created
    assert isinstance(made, ast.Call)
    if line(made) <= 0:
        return False
    home = program.function(made)
    around: ast.AST = one.loop if home is program.function(one.loop) else home
    for outer in program.ancestors(made):
        if outer is around:
            break
        if isinstance(outer, (ast.If, ast.IfExp, ast.Try, *LOOPS, ast.match_case)):
            return False
    given = [*made.args[1:], *(k.value for k in made.keywords if k.arg != "params")]
    if any(k.arg is None for k in made.keywords) or any(isinstance(a, ast.Starred) for a in made.args):
        return False
    return all(_constant(program, value, one.loop, home) for value in given)


def _constant(program: Program, value: ast.expr, loop: ast.AST, home: ast.AST) -> bool:
    """Whether an argument is the same in each iteration of a loop."""
    bound = names_bound(loop)
    if home is not program.function(loop):
        bound |= names_bound(home)
        arguments = home.args if isinstance(home, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        bound |= (
            {a.arg for a in ast.walk(arguments) if isinstance(a, ast.arg)} - {"self"} if arguments else set()
        )
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and node.id in bound:
            return False
        if isinstance(node, ast.Attribute) and assigned_again(program, node.attr):
            return False
        if isinstance(node, (ast.Call, ast.Subscript, ast.Await)):
            return False
    return True


def _one_training(program: Program, one: Recreated) -> bool:
    """Whether the iterations of a loop are those of one training, and not each a training of its own."""
    made = one.optimizer.created
    home = program.function(made)
    bodies: list[ast.AST] = [one.loop] if home is program.function(one.loop) else [one.loop, home]
    words = {n.attr for body in bodies for n in ast.walk(body) if isinstance(n, ast.Attribute)}
    words |= {n.id for body in bodies for n in ast.walk(body) if isinstance(n, ast.Name)}
    if not words.isdisjoint(BEGINNING) or _handed_on(program, one, bodies):
        return False
    if one.within is None:
        return True
    if not isinstance(one.within, ast.For) or line(one.within) <= 0:
        return False
    return _counts(one.loop) and _same_batches(program, one.within, one.loop)


def _counts(loop: ast.For | ast.While) -> bool:
    """Whether a loop goes over numbers, and not over things to train on."""
    if isinstance(loop, ast.While):
        return True
    called = loop.iter
    while isinstance(called, ast.Call) and last_name(called) in WRAPPING - {"trange"} and called.args:
        called = called.args[0]
    return isinstance(called, ast.Call) and last_name(called) in ("range", "trange")


def _same_batches(program: Program, within: ast.For, loop: ast.AST) -> bool:
    """Whether a loop goes over what is the same in each iteration of the loop around it."""
    over: ast.expr = within.iter
    while isinstance(over, ast.Call) and last_name(over) in WRAPPING and over.args:
        over = over.args[0]
    if isinstance(over, ast.Name) and program.function(within) is program.function(loop):
        return over.id not in names_bound(loop)
    if isinstance(over, ast.Attribute):
        return not assigned_again(program, over.attr) and not names_bound(loop) & names_read(over)
    return isinstance(over, ast.Name) and _handed_in(program, within, loop, over.id)


def _handed_in(program: Program, within: ast.For, loop: ast.AST, name: str) -> bool:
    """Whether a function is given what it goes through, the same in each iteration of a loop."""
    home = program.function(within)
    if not isinstance(home, ast.FunctionDef) or name in names_bound(home):
        return False
    places = [a.arg for a in (*home.args.posonlyargs, *home.args.args)]
    calls = [
        n
        for n in ast.walk(loop)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == home.name
    ]
    for call in calls:
        given = {k.arg: k.value for k in call.keywords} | dict(zip(places, call.args))
        value = given.get(name)
        if not isinstance(value, ast.Name) or value.id in names_bound(loop):
            return False
    return bool(calls)


def _handed_on(program: Program, one: Recreated, bodies: list[ast.AST]) -> bool:
    """Whether the optimizer is given to a schedule, or to anything else that is not of this file."""
    try:
        statement = program.statement(one.optimizer.created)
    except Elsewhere:
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {ast.unparse(target) for target in targets}
    defined = {
        n.name for n in ast.walk(program.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    for call in (n for body in bodies for n in ast.walk(body) if isinstance(n, ast.Call)):
        given = [*call.args, *(k.value for k in call.keywords)]
        if any(ast.unparse(value) in names for value in given):
            if last_name(call) not in defined and last_name(call) not in ("step", "unscale_"):
                return True
    return len(names) != 1


def _finding(program: Program, one: Recreated) -> Finding:
    made = one.optimizer.created
    assert isinstance(made, ast.Call)
    name = stepped(program, one.optimizer) or "the optimizer"
    each = "for every step" if one.within is None else "in every iteration"
    return Finding(
        "recreated-optimizer",
        f"`{name}` is created again {each}: its moving averages or momentum are lost each time",
        Span.of(made),
        (
            note(made, f"a new `{one.optimizer.label}` starts without moving averages or momentum"),
            note(one.step.site, "this is one of its first steps"),
        ),
        within_file(_moved(program, one)),
    )


def _moved(program: Program, one: Recreated) -> Iterator[Fix]:
    """The statement that makes the optimizer, before the loop."""
    statement = program.statement(one.optimizer.created)
    if statement not in one.loop.body or not isinstance(statement, ast.Assign):
        return
    bound = {name for other in one.loop.body if other is not statement for name in names_bound(other)}
    if isinstance(one.loop, ast.For):
        bound |= names_bound(one.loop.target)
    used = names_read(statement) | names_bound(statement)
    if not bound.isdisjoint(used) or one.loop not in program.suite_around(one.loop):
        return
    edit = move(statement, one.loop, "before")
    yield Fix("create the optimizer once, before the loop", Effect.CHANGES, (edit,), Claim(unchanged=()))
