"""Runs in which random draws are numbered, so that another program can be given the same numbers.

A program that draws new noise where another one uses the noise that it has trains as well, and no two
gradients of them are equal. They are if both get the same noise. So :class:`Numbered`, a dispatch mode,
counts the draws of each kind and shape, makes each of them depend on its number alone, and notes on every
storage which draws its contents depend on. Another run can then be told which number each of its draws has to
have. Draws from one state of the generator are one draw, as ever.

What a script draws before it has an optimizer, or into a parameter, are weights, and remains as it is. So
does what is drawn from generators other than torch's own one: data, mostly.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import operations, storages

MARK = "_gradfix_draws"
"""The attribute of a storage that holds the draws it depends on; torch keeps it while the memory lives."""
KINDS = {
    **dict.fromkeys("randn randn_like normal normal_".split(), "normal"),
    **dict.fromkeys("rand rand_like uniform uniform_".split(), "uniform"),
}
"""Different ways to draw the same numbers."""

# The original: what scripts see is wrapped (see `provenance.install`).
_STORAGE = torch.Tensor.untyped_storage

Draw = tuple[str, int]
"""What is drawn, a digest, and how many of these were drawn before."""
NONE: frozenset[Any] = frozenset()


class Numbered(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, draws are numbered; :meth:`of` tells which ones tensors depend on."""

    def __init__(self, seed: int, numbers: dict[str, list[int]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seed = seed
        self.numbers = numbers
        """By kind, if they are to have others than they have by counting: the numbers of its draws; negative
        ones stand for none that any other draw has."""
        self.begun = False
        """Whether the script has an optimizer."""
        self.drawn: dict[str, dict[str, int]] = {}
        """By kind: the generator's states, digests, in which some were drawn, counted."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No, as in provenance.py."""
        return False

    def counts(self) -> dict[str, int]:
        """By kind: how many were drawn."""
        return {what: len(states) for what, states in self.drawn.items()}

    def of(self, tensors: Iterable[torch.Tensor | None]) -> list[Draw]:
        """The draws that any of these tensors depends on, since they were settled."""
        return sorted(NONE.union(*(self.marked(one) for one in tensors if one is not None)))

    def settle(self, tensors: Iterable[torch.Tensor]) -> None:
        """From now on these tensors depend on nothing."""
        for one in tensors:
            self.mark(one, NONE)

    def marked(self, tensor: torch.Tensor) -> frozenset[Draw]:
        """The draws that are noted on a tensor's memory."""
        return getattr(_STORAGE(tensor), MARK, NONE) if storages.strided(tensor) else NONE

    def mark(self, tensor: torch.Tensor, draws: frozenset[Draw]) -> None:
        """Note draws on a tensor's memory."""
        if storages.strided(tensor):
            storage = _STORAGE(tensor)
            if draws or getattr(storage, MARK, NONE):
                setattr(storage, MARK, draws)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation, and note on its results what they depend on."""
        kwargs = kwargs or {}
        if getattr(func, "namespace", "") == "profiler":
            return func(*args, **kwargs)
        tensors = storages.tensors
        operation = operations.operation_of(func)
        bound = operation.bind(args, kwargs)
        unread, writes = operation.shells, operation.writes
        if operation.name in operations.BATCH_NORMS and bound[5]:
            # In training the result does not depend on the running statistics.
            unread, writes = unread | {3, 4}, writes - {3, 4}
        read = [one for number, value in enumerate(bound) if number not in unread for one in tensors(value)]
        draws = NONE.union(*map(self.marked, read))
        inputs = {_STORAGE(one)._cdata for one in tensors(bound) if storages.strided(one)}
        into = bound[0] if 0 in writes else None
        given = any(isinstance(value, torch.Generator) for value in bound)
        if operation.random and self.begun and not given and not isinstance(into, torch.nn.Parameter):
            result, draw = self.draw(operation, bound, func, args, kwargs)
            draws |= {draw}
        else:
            result = func(*args, **kwargs)
        if operation.views:
            return result
        for number in writes:
            for one in tensors(bound[number]):
                covered = number in operation.shells and storages.covers(one, _STORAGE(one))
                self.mark(one, draws if covered else draws | self.marked(one))
        for _, one in storages.results(result):
            if storages.strided(one) and _STORAGE(one)._cdata not in inputs:
                self.mark(one, draws)
        return result

    def draw(
        self, operation: Any, bound: list[Any], func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Draw]:
        """Run an operation that draws random numbers; which ones, it says."""
        generator = torch.default_generator
        state = generator.get_state()
        raw = ctypes.string_at(storages.address_of(state), state.numel())
        what = self.kind(operation, bound)
        known = self.drawn.setdefault(what, {})
        count = known.setdefault(hashlib.blake2b(raw, digest_size=8).hexdigest(), len(known))
        number: object = count
        if what in self.numbers:
            numbers = self.numbers[what]
            stands = numbers[count] if count < len(numbers) else -1
            number = stands if stands >= 0 else ("its own", count)
        named = hashlib.blake2b(repr((what, number, self.seed)).encode(), digest_size=7)
        generator.manual_seed(int(named.hexdigest(), 16))
        try:
            return func(*args, **kwargs), (what, count)
        finally:
            generator.set_state(state)
            # The state moves on, by which the next draw is told from this one.
            torch.empty(1).uniform_(generator=generator)

    def kind(self, operation: Any, bound: list[Any]) -> str:
        """A digest of what is drawn: the distribution, if it is one of the usual ones, and the shape."""
        name = KINDS.get(operation.name, operation.name.rstrip("_"))
        first = next(iter(storages.tensors(bound)), None)
        if "size" in operation.names:
            shape = list(bound[operation.names.index("size")])
        elif first is not None:
            shape = list(first.shape)
        else:
            shape = [value for value in bound if isinstance(value, (bool, int, float, str))]
        return hashlib.blake2b(repr((name, shape)).encode(), digest_size=6).hexdigest()
