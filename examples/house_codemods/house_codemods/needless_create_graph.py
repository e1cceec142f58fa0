"""`create_graph=True` gives gradients a graph that nothing uses.
It takes memory and time in every iteration, and changes no gradient.

    loss.backward(create_graph=True)  =>  loss.backward()

`backward` builds the graph of the gradients for those who differentiate them in turn: a penalty on a gradient, a
second-order optimizer. Without one of these it is thrown away in the next iteration, and torch warns that the gradients
and their parameters may keep each other in memory.

When not to fix it: where gradients are differentiated in turn, in a way that gradfix does not see.

Preconditions:

* the argument is written as `create_graph=True`, on a backward that fills `.grad`, in whatever way the program goes;
* no gradient is read, by the script or by code that gradfix does not see;
* all optimizers are torch's: one that is written in the project, or comes from another package, may differentiate the
  gradients in its step.

By hand: leave the argument out.

Effect: preserves.

Severity: warning.
"""

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.graph import Backward
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, steps
from gradfix.autograd.program import Program
from gradfix.core.codemod import Effect, Finding, Fix, Note, RemoveArgument
from gradfix.core.span import Span


def find(program: Program) -> Iterator[Finding]:
    """Report each backward that is given such an argument."""
    for entry in program.entry_points:
        # What `needless` finds whichever way the conditions go that nobody can decide.
        for event in entry.certain_observations(needless, lambda event: event.site, raises=False):
            if isinstance(event.site, ast.Call):
                yield from finding(event.site)


def needless(run: Run) -> dict[Hashable, Backward]:
    """By place: the backwards of a run that build a graph of their gradients which nobody can use."""
    if run.grad_reads or not all(is_torchs(step.optimizer) for step in steps(run)):
        return {}
    return {
        event.site: event
        for event in backwards(run)
        if event.create_graph is True and event.accumulates and event.certain and event.failure is None
    }


FIRST_ORDER = frozenset("Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop SGD".split())


def is_torchs(optimizer) -> bool:
    """Whether an optimizer is certainly one of torch's own, which use the values of gradients only."""
    seen = optimizer.cls is None and not (optimizer.external or optimizer.wrapped or optimizer.escaped)
    return seen and optimizer.label in FIRST_ORDER


def finding(call: ast.Call) -> Iterator[Finding]:
    """What is said of a backward, if its argument can be taken out."""
    if call.lineno <= 0:
        return  # It stands in another module of the project.
    span = Span.of(call)
    for argument in call.keywords:
        if argument.arg == "create_graph" and ast.unparse(argument.value) == "True":
            fix = Fix("leave `create_graph=True` out", Effect.PRESERVES, (RemoveArgument(span, "create_graph"),))
            note = Note(span, "each gradient gets a graph, and no gradient is differentiated")
            yield Finding("needless-create-graph", "nothing uses the graph of these gradients", span, (note,), (fix,))
