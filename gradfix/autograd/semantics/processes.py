"""Processes and threads."""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Argument, Call
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import call_value, function, method
from gradfix.autograd.values import NONE, Mapping, Process, Sequence, Unknown, Value


@method(Process, "start", "run")
def _start(run: Run, process: Process, call: Call) -> Value:
    start(run, process, call.site)
    return NONE


PROCESSES = frozenset(
    f"{module}.{kind}"
    for module, kind in [
        *(("multiprocessing", kind) for kind in ("Process", "process.BaseProcess", "context.Process")),
        *(("torch.multiprocessing", kind) for kind in ("Process", "process.BaseProcess")),
        *(("threading", kind) for kind in ("Thread", "threading.Thread")),
    ]
)
"""What runs a function, or its own method ``run``, beside the program once it is told to ``start``."""


@function(*PROCESSES)
def make_process(run: Run, call: Call) -> Value:
    """``Process(group, target, name, args, kwargs)``."""
    target = call.argument("target", 1)
    given, named = call.argument("args", 3), call.argument("kwargs", 4)
    if target is None:
        return Unknown("process")
    handed: list[Argument] = []
    if isinstance(given, Sequence) and not given.open:
        written = call.keywords["args"][1] if "args" in call.keywords else call.args[3][1]
        places = written.elts if isinstance(written, (ast.Tuple, ast.List)) else []
        handed = list(zip(given.items, places)) if len(places) == len(given.items) else []
        handed = handed or [(item, written) for item in given.items]
    keys = named.items if isinstance(named, Mapping) else {}
    return Process(target, handed, {str(k): v for k, v in keys.items()})


@function("torch.multiprocessing.spawn", "torch.multiprocessing.spawn.spawn")
def spawn(run: Run, call: Call) -> Value:
    """``torch.multiprocessing.spawn(fn, args)``: the function gets the number of its process first."""
    target, given = call.argument("fn", 0), call.argument("args", 1)
    if target is not None:
        known = given.items if isinstance(given, Sequence) and not given.open else []
        nothing = ast.copy_location(ast.Constant(None), call.site)
        written = (
            call.keywords["args"][1]
            if "args" in call.keywords
            else call.args[-1][1]
            if call.args
            else nothing
        )
        start(
            run, Process(target, [(Unknown("rank"), written), *((v, written) for v in known)], {}), call.site
        )
    return Unknown("processes")


def start(run: Run, process: Value, node: ast.AST) -> None:
    """Run what a process runs, the first of a kind only; its gradients are its own."""

    function = process.function if isinstance(process, Process) else process
    definition = getattr(function, "node", None)
    if definition is None or definition in run.started:
        return
    run.started.add(definition)
    before = [(leaf, leaf.grad) for o in run.optimizers for leaf in o.state.owned()]
    call_value(run, process, Call([], {}, node, True))
    for leaf, grad in before:
        leaf.grad = grad
