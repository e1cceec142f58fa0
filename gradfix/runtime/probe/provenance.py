"""Structural hashes of tensors: how each was computed, so that equal hashes prove equal bits.

:class:`Provenance` is a dispatch mode. It sees every operation below autograd, those of the backward
included, and notes on every storage the hash of its contents:

* an operation's result hashes the operation, its arguments and the hashes of what it read;
* a random draw hashes the state of the generator that it draws from;
* memory that no observed operation wrote (constants, loaded data) hashes by its bytes;
* memory that something unseen may write (shared with numpy, handed out as a pointer, never
  initialised) hashes by its bytes at every reading, and is never trusted for longer;
* whatever is not understood gets a hash that nothing else has.

**Soundness.** Equal hashes of two runs on one machine, with one version of torch, mean equal bits (of
a NaN, its payload aside). So the memory layout and the alignment of operands enter the hash of every
operation whose kernels may depend on them; those that round each element once, or only move elements,
are listed by name (:data:`EXACT`, :data:`MOVES`). What other threads or foreign C code write into a
tensor's memory is not seen: the first thread that a script starts ends all hashing, and the recorder
holds equal hashes against the digests of the values where it has both.

**Normal form.** Programs that differ harmlessly get equal hashes: copies and detached tensors have
the hash of the original; addition and multiplication commute (they do bit for bit, for two operands);
adding to zeros gives the other operand, after a look that it holds no negative zero; batch
normalisation in training does not depend on its running statistics; which other gradients a backward
kernel also computes does not enter (:data:`MASKED`); `_foreach` and `_fused` kernels are taken apart.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from .normal_forms import NormalForms
from .operations import (
    BATCH_NORMS,
    Operation,
    operation_of,
)
from .storages import (
    MARK,
    SHARED,
    Known,
    Namer,
    copied_alike,
    covers,
    digest,
    forget,
    layout_of,
    results,
    storage_of,
    strided,
    tensors,
)

HARMLESS_THREADS = ("tqdm.", "multiprocessing.", "torch.multiprocessing.")
"""Modules whose threads touch no tensor's memory in place."""

MOST = 100_000
"""Operations that are looked at, which takes about 50 microseconds each; longer runs lose their hashes."""


class Provenance(NormalForms, TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes how every tensor came about while it is entered; :meth:`of` tells."""

    def __init__(self, fake: bool = False) -> None:
        TorchDispatchMode.__init__(self)  # type: ignore[no-untyped-call]
        NormalForms.__init__(self, fake)
        self.raised: Callable[[BaseException], None] = lambda error: None
        """Is told what an operation raises."""
        self.left = False
        """Whether it has left before its block ended."""
        self.seen = 0
        self.copying = False
        """Whether operations are the recorder's own, which are not recorded."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would have each operation pass its compiler's guard, and nothing is compiled here."""
        return False

    def leave_if_lost(self) -> None:
        """Look at no more operations if no hash can be trusted: each one costs its way through Python.

        To be called between operations of the user's code.
        """
        if self.lost and not self.left and not self.fake and _get_current_dispatch_mode() is self:
            super().__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self.left = True

    def __exit__(self, *raised: Any) -> None:
        """Leave, if that was not done before."""
        if not self.left:
            super().__exit__(*raised)  # type: ignore[no-untyped-call]

    def of(self, tensor: torch.Tensor | None) -> str | None:
        """The hash of a tensor's present value; ``None`` if there is no tensor or no hash to trust.

        To be called with the mode left or disabled.
        """
        if tensor is None or self.lost:
            return None
        with torch.no_grad():
            return self.value(tensor)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation and note its results; what fails here never reaches the script."""
        kwargs = kwargs or {}
        if self.lost or self.copying or getattr(func, "namespace", "") == "profiler":
            try:
                return func(*args, **kwargs)
            except BaseException as error:
                self.raised(error)
                raise
        self.seen += 1
        if self.seen > MOST:
            self.lost = f"more than {MOST} operations"
        try:
            operation = operation_of(func)
            bound = operation.bind(args, kwargs)
            name = self.read(operation, bound)
            inputs = {storage_of(t)._cdata for t in tensors(bound) if strided(t)}
        except Exception as error:
            self.lost = f"{func}: {type(error).__name__}: {error}"
            return func(*args, **kwargs)
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            self.raised(error)
            for number in operation.writes:
                for tensor in tensors(bound[number]):
                    forget(tensor)
            raise
        try:
            self.wrote(operation, bound, name)
            self.made(operation, result, inputs, name)
        except Exception as error:
            self.lost = f"{func}: {type(error).__name__}: {error}"
        return result

    def copied_alike(self, tensor: torch.Tensor) -> torch.Tensor:
        """:func:`copied_alike`, and the copy holds what the tensor holds: one note for all its operations."""
        if self.lost or self.copying or not strided(tensor):
            return copied_alike(tensor)
        self.copying = True
        try:
            copy = copied_alike(tensor)
            try:
                with torch.no_grad():
                    self.written(copy, self.copied(tensor)(0, copy))
            except Exception as error:
                self.lost = f"a copy: {type(error).__name__}: {error}"
        finally:
            self.copying = False
        return copy

    def wrote(self, operation: Operation, bound: list[Any], name: Namer) -> None:
        """Note what an operation has written into its arguments."""
        if operation.name == "set_":
            return  # another storage takes the place of the tensor's own, which keeps its contents
        places = set(operation.writes)
        if operation.name in BATCH_NORMS and bound[5]:
            places |= {3, 4}
        for number in sorted(places):
            argument = bound[number]
            if isinstance(argument, torch.Tensor):
                # `a.add_(b)` leaves in a what `a.add(b)` returns.
                alone = operation.exact and len(places) == 1
                self.written(argument, name(0 if alone else (number, None), argument))
            else:
                for item, tensor in enumerate(argument or ()):
                    if isinstance(tensor, torch.Tensor):
                        self.written(tensor, name((number, item), tensor))

    def written(self, tensor: torch.Tensor, value: str | Known | None) -> None:
        """Note that a tensor has been written to."""
        if not strided(tensor):
            self.write_sparse(tensor, value)
            return
        storage = storage_of(tensor)
        layout, size = layout_of(tensor), storage.nbytes()
        if covers(tensor, storage):
            setattr(storage, MARK, value if isinstance(value, Known) else Known(value, layout, size))
            return
        if isinstance(value, Known):
            value = self.value_of(layout, value)
        old: Known | None = getattr(storage, MARK, None)
        if old is None or old.value is None or value is None or old.size != size:
            latest = None if value is None else (layout, value)
            setattr(storage, MARK, Known(None, None, size, False, latest))
        elif tensor.numel():
            whole = digest("part", old.value, old.layout, layout, value)
            setattr(storage, MARK, old._replace(value=whole, latest=(layout, value)))

    def made(self, operation: Operation, result: Any, inputs: set[int], name: Namer) -> None:
        """Note the results that have memory of their own."""
        fresh: set[int] = set()
        for which, tensor in results(result):
            if not strided(tensor):
                if not operation.writes:
                    self.write_sparse(tensor, name(which, tensor), inputs)
                continue
            storage = storage_of(tensor)
            if storage._cdata in inputs:
                continue
            # Of several results in one piece of memory only the bytes tell.
            value = None if storage._cdata in fresh else name(which, tensor)
            fresh.add(storage._cdata)
            if isinstance(value, Known) and covers(tensor, storage):
                setattr(storage, MARK, value)
            elif operation.repeatable:
                layout = layout_of(tensor)
                value = self.value_of(layout, value) if isinstance(value, Known) else value
                gaps = not covers(tensor, storage)
                setattr(storage, MARK, Known(value, layout, storage.nbytes(), gaps))

    def write_sparse(
        self, tensor: torch.Tensor, value: str | Known | None, inputs: set[int] | None = None
    ) -> None:
        """Note a sparse tensor's contents on its two parts; ``inputs`` keep what they have."""
        if tensor.layout is not torch.sparse_coo or not self.understood(tensor):
            return
        for which, part in enumerate((tensor._indices(), tensor._values())):
            storage = storage_of(part)
            if inputs is None or (storage._cdata not in inputs and getattr(storage, MARK, None) is None):
                own = None if value is None else digest(value, which)
                gaps = not covers(part, storage)
                setattr(storage, MARK, Known(own, layout_of(part), storage.nbytes(), gaps))


def install(provenance: Provenance) -> None:
    """Watch the ways in which memory is written unseen. Once in a process, before the script runs."""

    def leaking(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        @functools.wraps(real)
        def wrapped(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if isinstance(tensor, torch.Tensor) and not str(caller).startswith("torch."):
                if strided(tensor):
                    setattr(storage_of(tensor), SHARED, True)
            return real(tensor, *args, **kwargs)

        setattr(owner, name, wrapped)

    # Whoever holds a pointer may use it at any time: such memory is never trusted again.
    for name in ("data_ptr", "untyped_storage", "storage", "__dlpack__", "apply_", "map_", "map2_"):
        leaking(torch.Tensor, name)
    real_start, real_denormal = threading.Thread.start, torch.set_flush_denormal

    @functools.wraps(real_start)
    def start(thread: threading.Thread) -> None:
        target = getattr(thread, "_target", None)
        owner = str(getattr(target, "__module__", None) or type(thread).__module__) + "."
        if not owner.startswith(HARMLESS_THREADS):
            provenance.lost = "the script started a thread"
        real_start(thread)

    @functools.wraps(real_denormal)
    def set_flush_denormal(mode: bool) -> bool:
        provenance.denormals = mode
        return real_denormal(mode)

    for owner, name, wrapped in (
        (threading.Thread, "start", start),
        (torch, "set_flush_denormal", set_flush_denormal),
    ):
        setattr(owner, name, wrapped)
