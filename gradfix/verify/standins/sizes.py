"""Smaller sizes, where a script names them: batches, workers, and what is collected before training.

Only sizes whose names say what they are, and only as an argument's value, a constant at the top of the
script or a field of a settings object: everything in the script that is computed from one then agrees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, MutableMapping
from typing import Any

from . import context

BATCH = 4
WARM_UP = 16
"""Transitions to collect before learning begins: more than one batch."""
MEMORY = 5000
"""Transitions that a replay memory has room for: some allocate it all at once."""

_NAMES = {
    BATCH: "batchsize trainbatchsize testbatchsize valbatchsize evalbatchsize bsz batchsz minibatchsize "
    "batchsizetrain batchsizetest batchsizeval batch bs batchnum trainbatch testbatch minibatch nbatch "
    "batchsizeperreplica batchesize batchsizes perdevicetrainbatchsize microbatchsize",
    0: "workers numworkers nworkers ncpu numcpu loadernumworkers nthreads dataloaderworkers worker",
    1: "cpu cpus nproc nprocs numprocs nprocess gradaccum gradaccumulationsteps gradientaccumulationsteps "
    "accumulationsteps accumgrad gradientaccumulateevery gradientaccumulation accumiter",
    2: "numenvs nenvs numprocesses envnum parallelenvs numenv nenv",
    WARM_UP: "learningstarts starttimesteps startsteps learnstart replaystart replaystartsize updateafter "
    "initialmemory initialexploration learningstart minreplaysize minmemory warmupsteps startlearning "
    "minmemorysize startupdate randomsteps initialcollectsteps initreplaysize seedepisodes observe "
    "numseedsteps replayinitial startepisode numinitialsteps observation startsize learnstartstep "
    "minimalsize minhistory updatestart initsteps numstepsbeforetrain replaystartthreshold",
    MEMORY: "buffersize memorysize replaysize memorycapacity replaycapacity buffercapacity replaybuffersize "
    "experiencesize capacity replaymemorysize maxbuffersize memory memsize maxmemory maxsize bufferlimit "
    "maxreplaysize "
    "replaymemory experiencereplaysize bufsize replaybuffer",
}
LIMITS = {name: limit for limit, names in _NAMES.items() for name in names.split()}


def reduced(run: context.Run, what: str, name: str, value: Any) -> Any:
    """``value`` or, where ``name`` is that of a known size, at most its limit."""
    limit = LIMITS.get(name.lower().replace("_", "").replace("-", ""))
    if limit is None or not isinstance(value, (int, float)) or isinstance(value, bool) or value <= limit:
        return value
    if value != int(value):
        return value
    run.used(what, str(limit) + " in place of " + str(value))
    return type(value)(limit)


class Namespace(MutableMapping[str, Any]):
    """The names at the top of the script: assignments of literal sizes give the reduced ones."""

    def __init__(self, run: context.Run, names: dict[str, Any]) -> None:
        self.run = run
        self.names = names
        self.literal = literals(run.tree(run.script))

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self.literal:
            value = reduced(self.run, "constant " + name, name, value)
        self.names[name] = value

    def __getitem__(self, name: str) -> Any:
        return self.names[name]

    def __delitem__(self, name: str) -> None:
        del self.names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def literals(tree: ast.Module) -> set[str]:
    """The names that are assigned at the top of a script, and only number literals."""
    written: set[str] = set()
    other: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    (written if is_number(node.value) else other).add(target.id)
                elif isinstance(target, ast.Tuple):
                    values = node.value.elts if isinstance(node.value, ast.Tuple) else []
                    for index, name in enumerate(target.elts):
                        if isinstance(name, ast.Name):
                            good = len(values) == len(target.elts) and is_number(values[index])
                            (written if good else other).add(name.id)
        elif isinstance(node, ast.For):
            other.update(name.id for name in ast.walk(node.target) if isinstance(name, ast.Name))
    return written - other


def is_number(node: ast.expr) -> bool:
    """Whether an expression is made of number literals."""
    return all(
        isinstance(one, (ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop))
        or (isinstance(one, ast.Constant) and isinstance(one.value, (int, float)))
        for one in ast.walk(node)
    )


def install(run: context.Run) -> None:
    """Load data in this process: a process for each loader costs more than it saves here."""
    import torch.utils.data as data

    real = data.DataLoader.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > 5:
            args = (*args[:5], 0, *args[6:])
        elif kwargs.get("num_workers"):
            kwargs["num_workers"] = 0
        if not kwargs.get("num_workers"):
            for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
                kwargs.pop(name, None)
        real(self, *args, **kwargs)

    context.replace(data.DataLoader, "__init__", init)
