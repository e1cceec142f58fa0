"""What is noted of tensors' memory, and how tensors lie in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

MARK = "_gradfix_provenance"
"""The attribute of a storage that holds what is known of it; torch keeps it while the memory lives."""
SHARED = "_gradfix_shared"
"""The attribute of a storage whose memory something unseen may write at any time."""

# The originals: what scripts see is wrapped by :func:`install`.
data_ptr_of = torch.Tensor.data_ptr
storage_of = torch.Tensor.untyped_storage

# Where torch does not tell, all memory may be shared.
is_resizable: Callable[[Any], bool] = getattr(torch.UntypedStorage, "resizable", lambda storage: False)


def digest(*parts: object) -> str:
    """A hash of values whose ``repr`` tells them apart."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


class Known(NamedTuple):
    """What is known of a storage's contents."""

    value: str | None
    """The hash of its contents, none where only its bytes tell."""
    layout: Any = None
    """The hash is that of the tensor with this layout (none: of all the bytes)."""
    size: int = 0
    """Bytes of the storage when this was noted."""
    gaps: bool = False
    """Whether there are bytes outside of that tensor, of which nothing is known."""
    latest: tuple[Any, str] | None = None
    """The layout and the hash of what was written last, where that was a part."""


Namer = Callable[[Any, torch.Tensor], "str | Known | None"]
"""The hash of a result, given which one it is and the tensor itself (or what is known of its memory,
where it is a copy of other memory); none: only its bytes tell."""


def tensors(value: object) -> list[torch.Tensor]:
    """The tensors in an argument or a result."""
    if isinstance(value, torch.Tensor):
        return [value]
    found: list[torch.Tensor] = []
    if isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, torch.Tensor):
                found.append(item)
            elif isinstance(item, (list, tuple)):
                found += tensors(item)
    return found


def results(value: object) -> Iterator[tuple[Any, torch.Tensor]]:
    """The tensors that an operation returns, each with its position."""
    if isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            if isinstance(item, torch.Tensor):
                yield position, item
            else:
                yield from ((f"{position}.{inner}", tensor) for inner, tensor in enumerate(tensors(item)))
    elif isinstance(value, torch.Tensor):
        yield 0, value


def nothing_but_zeros(tensor: torch.Tensor) -> bool:
    """Whether a tensor is known to have been filled with zeros and nothing else."""
    known: Known | None = getattr(storage_of(tensor), MARK, None) if strided(tensor) else None
    zeros = full(0, tensor.dtype, tuple(tensor.shape))
    return known is not None and known.value == zeros and known.layout == layout_of(tensor)


def strided(tensor: torch.Tensor) -> bool:
    """Whether a tensor's elements lie in one storage."""
    return tensor.layout is torch.strided and not tensor.is_quantized


def layout_of(tensor: torch.Tensor) -> Any:
    """How a tensor's elements lie in its storage; strides that no element is reached by are zero."""
    shape = tuple(tensor.shape)
    strides = tensor.stride()
    if 1 in shape:
        strides = tuple(0 if size == 1 else stride for size, stride in zip(shape, strides))
    flags = tensor.is_neg(), tensor.is_complex() and tensor.is_conj()
    return tensor.dtype, shape, strides, tensor.storage_offset(), flags


def shell(tensor: torch.Tensor) -> Any:
    """A tensor whose contents do not matter."""
    return tensor.dtype, tuple(tensor.shape), tensor.stride()


def copied_alike(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides and alignment where that can be, by which kernels go."""
    if not strided(tensor):
        return tensor.detach().clone()
    reach = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size > 1:
            if stride < reach:
                return tensor.detach().clone()
            reach += stride * (size - 1)
    # The alignment too: an offset of up to 64 bytes, which is what storages are aligned to.
    shift = tensor.storage_offset() % max(1, 64 // tensor.element_size())
    memory = torch.empty(shift + reach, dtype=tensor.dtype, device=tensor.device)
    return memory.as_strided(tensor.shape, tensor.stride(), shift).copy_(tensor.detach())


def address_of(tensor: torch.Tensor) -> int:
    """Where a tensor's elements begin, for one who only reads them."""
    return data_ptr_of(tensor)


def covers(tensor: torch.Tensor, storage: Any) -> bool:
    """Whether a tensor takes all of its storage, each byte once."""
    if tensor.numel() * tensor.element_size() != storage.nbytes() or tensor.storage_offset():
        return False
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def full(number: float, dtype: torch.dtype, shape: tuple[int, ...]) -> str:
    """The hash of a tensor that is the same number everywhere."""
    if dtype.is_floating_point:
        number = float(number)
    elif dtype == torch.bool:
        number = bool(number)
    elif not dtype.is_complex:
        number = int(number)
    return digest("full", number.hex() if isinstance(number, float) else number, dtype, shape)


def forget(tensor: torch.Tensor) -> None:
    """Something unseen may write a tensor's memory from now on."""
    if strided(tensor):
        setattr(storage_of(tensor), MARK, Known(None))
