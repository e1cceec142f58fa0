"""Hashes of what tensors hold, by what is noted of their memory or else by its bytes."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
from collections.abc import Callable
from typing import Any

import torch

from .operations import Operation
from .storages import (
    MARK,
    SHARED,
    Known,
    covers,
    data_ptr_of,
    digest,
    is_resizable,
    layout_of,
    shell,
    storage_of,
    strided,
)


class Contents:
    """Tells the hashes of tensors, and of the arguments of operations."""

    def __init__(self, fake: bool) -> None:
        self.fake = fake
        self.lost: str | None = None
        """Why no hash can be trusted any more."""
        self.plain: dict[type, bool] = {}
        self.salt = os.urandom(16).hex()
        self.uniques = 0
        self.denormals: object = None

    def value(self, tensor: torch.Tensor) -> str:
        """The hash of a tensor's present contents: type, shape and elements, not their order in memory."""
        if not self.understood(tensor):
            return self.unique()
        if tensor.layout is torch.sparse_coo:
            parts = self.value(tensor._indices()), self.value(tensor._values())
            return digest("sparse", parts, tuple(tensor.shape), tensor.is_coalesced())
        if tensor.layout is not torch.strided or tensor.is_quantized:
            return self.unique()
        layout = layout_of(tensor)
        if not tensor.numel():
            return digest("empty", layout[:2])
        storage = storage_of(tensor)
        known: Known | None = getattr(storage, MARK, None)
        if known is None:
            known = self.adopt(tensor, storage, layout)
        # Memory that numpy or another process shares cannot be resized.
        shared = not is_resizable(storage) or getattr(storage, SHARED, False)
        if shared or known.size != storage.nbytes():
            return self.content(tensor)
        return self.value_of(layout, known) or self.content(tensor)

    def value_of(self, layout: Any, known: Known) -> str | None:
        """The hash of a tensor with this layout in memory of which this is known, if that says enough."""
        if known.latest is not None and known.latest[0] == layout:
            return known.latest[1]
        if known.layout == layout:
            return known.value
        if known.gaps or known.value is None:
            return None
        return digest("view", known.value, known.layout, layout)

    def understood(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor of this class is what its storage holds."""
        kind = type(tensor)
        known = self.plain.get(kind)
        if known is None:
            own = kind.__torch_dispatch__
            ordinary = own in (torch.Tensor.__torch_dispatch__, torch._C._disabled_torch_dispatch_impl)
            known = self.plain[kind] = ordinary or (self.fake and kind.__name__ == "FakeTensor")
        return known

    def adopt(self, tensor: torch.Tensor, storage: Any, layout: Any) -> Known:
        """Note the contents of memory that no observed operation wrote."""
        if covers(tensor, storage):
            known = Known(self.content(tensor), layout, storage.nbytes())
        elif self.valueless(tensor):
            known = Known(None)
        else:
            raw = ctypes.string_at(storage.data_ptr(), storage.nbytes())
            known = Known(hashlib.blake2b(raw, digest_size=16).hexdigest(), None, storage.nbytes())
        setattr(storage, MARK, known)
        return known

    def valueless(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor has a shape and no elements."""
        return tensor.is_meta or type(tensor).__name__ == "FakeTensor"

    def content(self, tensor: torch.Tensor) -> str:
        """The hash of a tensor's elements as they are now."""
        if self.valueless(tensor):
            constant = getattr(tensor, "constant", None)
            return self.unique() if constant is None else self.content(constant)
        with self.earnest():
            flat = tensor.detach().resolve_conj().resolve_neg().contiguous()
            size = flat.numel() * flat.element_size()
            raw = (ctypes.c_char * size).from_address(data_ptr_of(flat))
            found = hashlib.blake2b(raw, digest_size=16).hexdigest()
        return digest("content", tensor.dtype, tuple(tensor.shape), found)

    def earnest(self) -> contextlib.AbstractContextManager[Any]:
        """Where operations compute, though a mode that only pretends may be entered."""
        modes = torch.utils._python_dispatch._disable_current_modes
        return modes() if self.fake else contextlib.nullcontext()

    def unique(self) -> str:
        """A hash that nothing else has, in no run."""
        self.uniques += 1
        return digest(self.salt, self.uniques)

    def operand(self, tensor: torch.Tensor) -> Any:
        """A tensor as an argument of a kernel that may go by its layout and alignment."""
        if not strided(tensor):
            return self.value(tensor)
        if self.valueless(tensor):
            alignment = tensor.storage_offset() * tensor.element_size() % 64
        else:
            alignment = data_ptr_of(tensor) % 64
        return self.value(tensor), tensor.stride(), alignment

    def encoded(self, value: object, tensor: Callable[[torch.Tensor], Any]) -> Any:
        """An argument as something whose ``repr`` is its value."""
        if isinstance(value, torch.Tensor):
            return tensor(value)
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value.hex()
        if isinstance(value, complex):
            return value.real.hex(), value.imag.hex()
        if isinstance(value, (list, tuple)):
            return [self.encoded(item, tensor) for item in value]
        if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            return str(value)
        # What a generator gives is its state.
        return "generator" if isinstance(value, torch.Generator) else self.unique()

    def draw(self, operation: Operation, bound: list[Any]) -> str:
        """A hash of the random numbers that an operation is about to draw: the generator's state."""
        given = [value for value in bound if isinstance(value, torch.Generator)]
        generator = given[0] if given else torch.default_generator
        with self.earnest():
            state = generator.get_state()
            raw = ctypes.string_at(data_ptr_of(state), state.numel())
        found = hashlib.blake2b(raw, digest_size=16).hexdigest()
        if self.fake:
            # Nothing is drawn in earnest: the state that follows stands for the draws so far.
            following = digest(found, operation.name, self.encoded(bound, shell))
            generator.manual_seed(int(following[:15], 16))
        return found

    def surroundings(self) -> Any:
        """The global settings that choose kernels."""
        if torch.get_num_threads() != 1 and not self.fake:
            self.lost = "more than one thread computes"
        return (
            torch._C._get_mkldnn_enabled(),
            torch._C._get_deterministic_algorithms(),
            torch.get_float32_matmul_precision(),
            self.denormals,
        )
