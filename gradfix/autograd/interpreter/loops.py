"""Loops: how many iterations are run, and what each binds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.autograd.interpreter.assignments import assign
from gradfix.autograd.interpreter.conditions import may_repeat, settled_by_training, truth, value_in_iteration
from gradfix.autograd.interpreter.contexts import drive
from gradfix.autograd.parameters import go_through
from gradfix.autograd.run import Break, Continue, ControlFlow, Run, statement
from gradfix.autograd.semantics import dispatch
from gradfix.autograd.semantics.arithmetic import numbered
from gradfix.autograd.semantics.iteration import generator, is_summary
from gradfix.autograd.values import (
    Class,
    Const,
    Frame,
    Function,
    ImportedName,
    Instance,
    IterationNumber,
    LazyIterable,
    Mapping,
    Module,
    NumberCondition,
    Optimizer,
    ParameterIterable,
    Sequence,
    Tensor,
    Unknown,
    Value,
    graphs_in,
    tensors_in,
)
from gradfix.core.syntax import walk

UNROLLED = 8
"""A loop over this many known items is run item by item; longer ones run a few iterations."""


UNROLLED_TOTAL = 36
"""... as long as the nested loops make no more than this many iterations together."""


PARTS = 600
"""Loops over so many layers of a network are run layer by layer."""


OUTER_ITERATIONS = 2


def iterations_of(run: Run, node: ast.For | ast.While | ast.AsyncFor) -> int:
    """How many iterations to run of a loop whose length is unknown."""
    if not run.relevance.touches(node):
        return 2
    if run.relevance.nests(node, run.unrolled):
        return 1 if run.relevance.quiet_around(node) else OUTER_ITERATIONS
    return 2


def numbers_to_run(run: Run, node: ast.For | ast.While | ast.AsyncFor) -> Iterator[int]:
    """The numbers of the iterations to run; what an iteration shows of inner loops may ask for more of
    them."""
    number, shown = 0, _Unrolling(run, node)
    while number < iterations_of(run, node) + shown.asks_for_more() or (
        number == 1 and shown.switches_mode()
    ):
        shown.begin()
        yield number
        number += 1


def run_loop(
    run: Run,
    node: ast.For | ast.While | ast.AsyncFor,
    frame: Frame,
    items: Iterator[Value | None],
    symbolic: bool,
    count: int,
    unrolled: bool = False,
) -> ControlFlow:
    """Run the iterations of a loop; ``items`` gives what each iteration binds (None: nothing).

    Args:
        symbolic: The number of iterations is not known. Whether there is a further one may be unknown, too
            (``UNSURE``): of ``done = False; while not done:`` only the first one is certain.
        count: How many iterations are run at most.
        unrolled: The iterations are no repetitions, see :func:`_names_a_part`.
    """
    outer, weight = run.loops, run.weight
    before = variables_of_loop(run, node, frame)
    if symbolic:
        run.counters.append((frame, before))
    run.weight *= max(count, 1)
    run.symbolic += symbolic
    watched = not unrolled and run.relevance.touches(node)
    flow: ControlFlow = None
    broken, left_open = False, run.left_open
    try:
        for number, item in enumerate(items):
            if item is UNSURE and not symbolic:
                symbolic = True
                run.symbolic += 1
                run.counters.append((frame, before))
            if watched:
                run.loops = (*outer, (node, number))
                if number:
                    values = carried(variables_of_loop(run, node, frame))
                    run.carried[node, run.loops] = values
                    run.brought[node, run.loops] = {
                        name: graphs_in([value]) for name, value in values.items()
                    }
                else:
                    run.before[node, outer] = values_by_path(before)
            if item is not None and not isinstance(node, ast.While):
                assign(run, node.target, item, frame, None)
            flow = run.execute_block(node.body, frame)
            if isinstance(flow, Continue):
                flow = None
            if isinstance(flow, Break):
                broken, flow = True, None
                break
            if flow is not None:
                return flow
    finally:
        run.loops, run.weight = outer, weight
        run.symbolic -= symbolic
        if symbolic:
            _, known_before = run.counters.pop()
            forget_counters(run, node, frame, known_before)
    if node.orelse and not broken:
        # Of something that is looked for, and raised if it is not there, a program that works finds one.
        sought = isinstance(node.orelse[-1], ast.Raise) and run.left_open > left_open
        if not (sought and run.scenario.main):
            flow = run.execute_block(node.orelse, frame)
    return flow


def variables_of_loop(run: Run, loop: ast.AST, frame: Frame) -> dict[str, Value]:
    """The variables of a frame that the iterations of a loop may use, as they are now."""
    variables = frame.variables
    home = frame.function.node if frame.function is not None else None
    return {n: variables[n] for n in run.relevance.names(loop, home) if n in variables}


def forget_counters(run: Run, loop: ast.AST, frame: Frame, before: dict[str, Value]) -> None:
    """After a loop of unknown length nobody knows how far it has counted."""
    for name, value in variables_of_loop(run, loop, frame).items():
        if value.__class__ in COUNTING and before.get(name) is not value:
            frame.variables[name] = Unknown("counter")


class _Unrolling:
    """Decides, from what the iterations of a loop have shown, whether to run another one."""

    __slots__ = ("calls", "decided", "first", "last", "nodes", "run", "trains", "unflipped")

    def __init__(self, run: Run, loop: ast.AST) -> None:
        self.run = run
        self.trains = run.relevance.differentiates(loop)
        self.decided = run.decided_by_number
        self.unflipped = len(run.unflipped)
        self.first = run.serial
        self.begin()

    def begin(self) -> None:
        """An iteration begins."""
        self.last = self.run.serial
        self.nodes = len(self.run.nodes)
        self.calls = len(self.run.module_calls)

    def asks_for_more(self) -> bool:
        """Whether there is something that only a further iteration would show.

        A condition on the number of the iteration has kept something from being run. Or a graph is handed on
        from iteration to iteration: a recurrent step is first stale in the third (autograd_facts: RNN).
        """
        if self.run.decided_by_number > self.decided:
            return True
        if len(self.run.unflipped) > self.unflipped:
            # What begins with the second iteration has been run once then.
            return True
        if self.last == self.first or not self.trains:
            return False
        made = self.run.nodes[self.nodes :]
        return any(self.first < edge.node.serial <= self.last for node in made for edge in node.edges)

    def switches_mode(self) -> bool:
        """Whether the iteration leaves a network in evaluation mode that it has called in another."""
        run = self.run
        return any(
            call.training is not False and mode.training is False and mode.serial > call.serial
            for call in run.module_calls[self.calls :]
            if (mode := run.mode_of.get(call.module)) is not None
        )


UNSURE = Unknown("pass")
"""Stands for an iteration of a ``while`` loop that may or may not happen."""


COUNTING = (IterationNumber, NumberCondition)


LEAVES = frozenset({Tensor, Unknown, Const})
"""What holds nothing that can be named."""
PLAIN = frozenset({ImportedName, Function, Class, Optimizer, ParameterIterable})
"""What can be handed on from iteration to iteration without consequence."""


def values_by_path(variables: dict[str, Value]) -> dict[str, Value]:
    """What can be named in a frame: access path as source text -> value."""
    found: dict[str, Value] = {}
    for name, value in variables.items():
        if value.__class__ in LEAVES:
            found[name] = value
        elif value.__class__ not in PLAIN:
            _values_by_path(name, value, found, 2)
    return found


def _values_by_path(name: str, value: Value, found: dict[str, Value], depth: int) -> None:
    if isinstance(value, Mapping):
        for key, held in value.items.items():
            if isinstance(key, str) and key.isidentifier() and held.__class__ not in PLAIN:
                _values_by_path(f'{name}["{key}"]', held, found, 0)
    elif isinstance(value, (Module, Instance)):
        if depth:
            for attribute, held in value.attributes.items():
                if held.__class__ in LEAVES:
                    found[f"{name}.{attribute}"] = held
                elif held.__class__ not in PLAIN:
                    _values_by_path(f"{name}.{attribute}", held, found, depth - 1)
            if isinstance(value, Module) and value.numbered:
                for place, layer in enumerate(value.items):
                    _values_by_path(f"{name}[{place}]", layer, found, depth)
    else:
        found[name] = value


def carried(variables: dict[str, Value]) -> dict[str, Value]:
    """What a new iteration inherits that carries a graph."""
    return {
        name: value
        for name, value in values_by_path(variables).items()
        if value.__class__ is not Const and any(t.node is not None for t in tensors_in(value))
    }


@statement(ast.For, ast.AsyncFor)
def _for(run: Run, node: ast.For | ast.AsyncFor, frame: Frame) -> ControlFlow:
    iterable = run.evaluate(node.iter, frame)
    made = generator(iterable)
    if made is not None:
        return drive(run, made, node, frame)
    go_through(run, iterable, node.iter)
    if isinstance(node.target, (ast.Tuple, ast.List)) and run.relevance.differentiates(node):
        _hands_out_batches(iterable)
    items, element = dispatch.iterate(run, iterable, node.iter)
    if items is not None:
        if len(items) <= PARTS and all(isinstance(i, Module) for i in items):
            # The parts of a network: a reset that left some out would be no reset.
            return run_loop(run, node, frame, iter(items), False, 1)
        # Fifty steps of a sampler that leave no graph are as good as a few.
        graphless = run.grad_enabled is False and run.current_call is not None
        limit = UNROLLED if graphless or run.relevance.differentiates(node) else 64
        if len(items) <= limit and run.weight * len(items) <= UNROLLED_TOTAL * (
            1 if limit == UNROLLED else 8
        ):
            if any(is_summary(i) for i in items):
                return _over_parameters(run, node, frame, items)
            unrolled = all(_names_a_part(i) for i in items)
            if unrolled:
                run.unrolled.add(node)
            return run_loop(run, node, frame, iter(items), False, len(items), unrolled)
        if not isinstance(items[0], Const):
            return run_loop(run, node, frame, iter(items[:3]), True, 3)
        if isinstance(first := items[0].value, int) and [i.value for i in items if isinstance(i, Const)] == [
            *range(first, first + len(items))
        ]:
            # Which of the many iterations are run is not for their numbers to decide.
            element = numbered(first)
    if not may_repeat(run, node.iter, frame):
        return run_loop(run, node, frame, iter([element(0)]), True, 1)
    count = iterations_of(run, node)
    return run_loop(run, node, frame, map(element, numbers_to_run(run, node)), True, count)


def _hands_out_batches(iterable: Value) -> None:
    """Assume that an unknown iterable which a training loop unpacks yields data: inputs and targets."""
    while isinstance(iterable, LazyIterable) and iterable.kind == "enumerate":
        (iterable,) = iterable.parts
    if iterable.__class__ is Unknown and isinstance(iterable, Unknown):
        of_network = iterable.owner is not None or iterable.made_from is not None or iterable.leaf is not None
        iterable.graphless = iterable.graphless or not (of_network or iterable.node is not None)


def _over_parameters(run: Run, node: ast.For | ast.AsyncFor, frame: Frame, items: list[Value]) -> ControlFlow:
    some = run.selects_some
    run.parameter_variables.append({name.id for name in walk(node.target) if isinstance(name, ast.Name)})
    try:
        return run_loop(run, node, frame, iter(items), False, len(items))
    finally:
        run.parameter_variables.pop()
        run.selects_some = some


def _names_a_part(item: Value) -> bool:
    """Whether a loop over such items goes over the parts of a program, and not over time or data.

    Its iterations are different statements rather than repetitions of one: they belong to one iteration of
    the loop around them.
    """
    if isinstance(item, Const):
        return isinstance(item.value, str)
    if isinstance(item, Sequence):
        return any(_names_a_part(i) for i in item.items)
    return isinstance(item, (Module, Optimizer, Function))


@statement(ast.While)
def _while(run: Run, node: ast.While, frame: Frame) -> ControlFlow:
    def items() -> Iterator[Value | None]:
        number, shown = 0, _Unrolling(run, node)
        while True:
            limit = max(iterations_of(run, node) + shown.asks_for_more(), 2 * shown.switches_mode())
            shown.begin()
            value = run.evaluate(node.test, frame)
            known = truth(value) if not isinstance(node.test, ast.BoolOp) else _known(run, node.test, frame)
            if known is False or (number and value_in_iteration(value) is False):
                return
            if number and known is None and settled_by_training(run, node.test, frame) is False:
                return  # ``while not done:``, with ``if done: learn()`` at the end of the episode.
            if number >= (UNROLLED if known and not isinstance(node.test, ast.Constant) else limit):
                return
            yield UNSURE if number and known is None else None
            number += 1

    symbolic = isinstance(node.test, ast.Constant) or _known(run, node.test, frame) is None
    return run_loop(run, node, frame, items(), symbolic, iterations_of(run, node))


def _known(run: Run, test: ast.expr, frame: Frame) -> bool | None:
    """Whether a condition holds, as far as the values of all its parts tell."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        held = _known(run, test.operand, frame)
        return None if held is None else not held
    if isinstance(test, ast.BoolOp):
        stop = isinstance(test.op, ast.Or)
        parts = [_known(run, part, frame) for part in test.values]
        return stop if stop in parts else None if None in parts else not stop
    return truth(run.evaluate(test, frame))
