"""What the optimizers of a program consume, as torch itself says: an opinion that owes nothing to gradfix.

A program is run in a forked process, and the gradients are copied just before each step. It answers one
question, whether a patch trains as the right program does:

* the gradients that it consumes, and the weights that it makes of them, are those of the right program, step
  for step; or
* they are if the weights of both are put back after each step, while in earnest nothing but steps moves
  weights, and what the graphs have saved is still as it was when it was saved: then only the order differs
  in which the networks are trained.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import pickle
import signal
import sys
import tempfile
import time
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

STEPS = 24
"""Steps of all optimizers together, after which a run is ended."""
SECONDS = 30.0
"""Wall clock of one run."""
TOLERANCE = 1e-4
"""How far gradients may differ, relative to the largest of their tensor or of all in the step."""

Tensors = tuple[torch.Tensor | None, ...]


@dataclass(frozen=True)
class Step:
    """An optimizer consumes gradients."""

    optimizer: int
    """Optimizers are counted as they are constructed."""
    settings: str
    gradients: Tensors
    before: Tensors
    """The weights when it begins,"""
    after: Tensors
    """and what it makes of them."""


@dataclass(frozen=True)
class Course:
    """What a run did."""

    ending: str
    """``finished``, ``raised``, ``enough`` (all steps that are looked at were taken) or ``left``."""
    steps: tuple[Step, ...]
    weights: Mapping[int, Tensors]
    """By optimizer: what it has trained when the program ended by itself."""
    leaves: Mapping[str, torch.Tensor]
    """By name: the gradients of the program's tensors and networks when it ended by itself."""


def trains_alike(text: str, right: str, path: Path) -> bool | None:
    """Whether the program ``text`` trains as ``right`` does; ``None`` if ``right`` does not run here.

    Args:
        text: The program in question.
        right: One that is right.
        path: Where both stand.
    """
    model = course(right, path)
    if model is None or model.ending not in ("finished", "enough"):
        return None
    found = course(text, path)
    if found is None or found.ending != model.ending:
        return False
    if _moves_outside(found) != _moves_outside(model):
        return False
    if _same(model, found):
        return True
    if not _same(found, course(text, path, keep=True)):
        return False
    return _same(course(right, path, still=True), course(text, path, still=True))


def course(text: str, path: Path, *, still: bool = False, keep: bool = False) -> Course | None:
    """Run a program; ``None`` if it takes too long.

    Args:
        text: The program.
        path: Where it stands: its folder is on the import path.
        still: Put the weights back after each step.
        keep: Keep what graphs save as it was when it was saved.
    """
    _warm()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        child = os.fork()
        if child == 0:
            try:
                _run(text, path, log, still, keep)
            finally:
                os._exit(1)
        if not _ended(child):
            return None
        steps = []
        for entry in _entries(log):
            if not isinstance(entry, Step):
                return Course(entry[0], tuple(steps), *entry[1:])
            steps.append(entry)
        return Course("left", tuple(steps), {}, {})


@functools.cache
def _warm() -> None:
    """Once in this process: what each run would do for itself."""
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    gc.freeze()


def _ended(child: int) -> bool:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _entries(log: Path) -> Iterator[Any]:
    with contextlib.suppress(EOFError, FileNotFoundError, pickle.UnpicklingError), log.open("rb") as file:
        while True:
            yield pickle.load(file)


def _run(text: str, path: Path, log: Path, still: bool, keep: bool) -> None:
    """Run the program in this process, and leave it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.chdir(log.parent)
    file = log.open("wb")

    def write(entry: object) -> None:
        pickle.dump(entry, file)
        file.flush()

    optimizers: list[torch.optim.Optimizer] = []
    real = torch.optim.Optimizer.__init__

    def constructed(self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        optimizers.append(self)

    held: list[Tensors] = []
    count = 0

    def owned(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
        return [one for group in optimizer.param_groups for one in group["params"]]

    def before(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        held[:] = [_copies(one.grad for one in owned(optimizer)), _copies(owned(optimizer))]

    def after(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        nonlocal count
        settings = repr([{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups])
        index = next(i for i, known in enumerate(optimizers) if known is optimizer)
        gradients, weights = held
        write(Step(index, settings, gradients, weights, _copies(owned(optimizer))))
        count += 1
        if count == STEPS:
            write(("enough", {}, {}))
            os._exit(0)
        for parameter, value in zip(owned(optimizer), weights):
            if still and value is not None:
                parameter.data.copy_(value)

    torch.optim.Optimizer.__init__ = constructed  # type: ignore[method-assign]
    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
    torch.manual_seed(0)
    sys.path.insert(0, str(path.parent))
    main = types.ModuleType("__main__")
    main.__dict__["__file__"] = str(path)
    sys.modules["__main__"] = main
    sys.argv = [str(path)]
    saved = torch.autograd.graph.saved_tensors_hooks(lambda one: one.detach().clone(), lambda one: one)
    with saved if keep else contextlib.nullcontext():
        try:
            exec(compile(text, str(path), "exec", dont_inherit=True), main.__dict__)
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                write(("raised", {}, {}))
                os._exit(0)
        except BaseException:
            write(("raised", {}, {}))
            os._exit(0)
    weights = {index: _copies(owned(optimizer)) for index, optimizer in enumerate(optimizers)}
    write(("finished", weights, dict(_leaves(main.__dict__))))
    os._exit(0)


def _copies(tensors: Iterable[torch.Tensor | None]) -> Tensors:
    return tuple(None if one is None else one.detach().clone() for one in tensors)


def _leaves(names: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in list(names.items()):
        inner: Sequence[tuple[str, torch.Tensor]] = []
        if isinstance(value, torch.nn.Module):
            inner = [(f"{name}.{path}", one) for path, one in value.named_parameters()]
        elif isinstance(value, torch.Tensor):
            inner = [(name, value)]
        for path, one in inner:
            if one.is_leaf and one.grad is not None:
                yield path, one.grad.detach().clone()


def _moves_outside(run: Course) -> set[tuple[int, int]]:
    """The parameters, by optimizer and position, that something other than a step has moved."""
    found = set()
    for index in {step.optimizer for step in run.steps}:
        steps = [step for step in run.steps if step.optimizer == index]
        later = [step.before for step in steps[1:]]
        if index in run.weights:
            later.append(run.weights[index])
        for step, weights in zip(steps, later):
            pairs = zip(step.after, weights)
            found |= {(index, place) for place, pair in enumerate(pairs) if not _equal(pair[:1], pair[1:])}
    return found


def _same(one: Course | None, other: Course | None) -> bool:
    if one is None or other is None or one.ending != other.ending:
        return False
    if not one.steps and not other.steps:
        names = one.leaves.keys() | other.leaves.keys()
        return _equal([one.leaves.get(n) for n in names], [other.leaves.get(n) for n in names])
    for index in {step.optimizer for step in (*one.steps, *other.steps)}:
        a, b = ([step for step in run.steps if step.optimizer == index] for run in (one, other))
        # Where the run was ended, another order of the networks has other counts.
        if not a or not b or (one.ending == "finished" and len(a) != len(b)):
            return False
        for mine, theirs in zip(a, b):
            alike = _equal(mine.gradients, theirs.gradients) and _equal(mine.after, theirs.after)
            if mine.settings != theirs.settings or not alike:
                return False
    return True


def _equal(one: Sequence[torch.Tensor | None], other: Sequence[torch.Tensor | None]) -> bool:
    if len(one) != len(other):
        return False
    overall = max((float(g.abs().max()) for g in (*one, *other) if g is not None and g.numel()), default=0.0)
    for a, b in zip(one, other):
        if a is None or b is None:
            if a is not b:
                return False
        elif a.shape != b.shape:
            return False
        elif a.numel():
            largest = max(float(a.abs().max()), float(b.abs().max()))
            # What is not a number is equal to nothing.
            if not float((a - b).abs().max()) <= TOLERANCE * largest + 1e-6 * overall:
                return False
    return True
