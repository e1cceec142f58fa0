"""Structural hashes of tensors: how each was computed, so that equal hashes prove equal bits.

Executed in the user's interpreter beside the probe: the standard library and torch only, syntax of
Python 3.9, torch 2.4 and newer. :class:`Provenance` is a dispatch mode. It sees every operation below
autograd, those of the backward included, and notes on every storage the hash of its contents:

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

import contextlib
import ctypes
import functools
import hashlib
import math
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

MARK = "_gradfix_provenance"
"""The attribute of a storage that holds what is known of it; torch keeps it while the memory lives."""
SHARED = "_gradfix_shared"
"""The attribute of a storage whose memory something unseen may write at any time."""

COPIES = frozenset(
    "clone detach alias lift_fresh lift_fresh_copy contiguous _to_copy copy_ detach_copy alias_copy".split()
)
FILLS: dict[str, Any] = {
    **dict.fromkeys("zeros zeros_like new_zeros zero zero_".split(), 0),
    **dict.fromkeys("ones ones_like new_ones".split(), 1),
    # The value is an argument.
    **dict.fromkeys("full full_like new_full fill fill_ scalar_tensor".split()),
}
"""The number that fills the result."""
FILLED_BY = {"scalar_tensor": 0, "new_full": 2}
"""Which argument that is, where it is not the second."""
DRAWS = frozenset("bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_".split())
"""Random draws that overwrite their first argument."""
UNINITIALISED = frozenset(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided "
    "resize resize_ resize_as resize_as_ _resize_output _resize_output_".split()
)
COMMUTATIVE = frozenset({"add", "mul"})
EXACT = COMMUTATIVE | frozenset("sub neg div eq ne lt le gt ge where".split())
"""Operations that round each element once (IEEE 754), whichever kernel computes them."""
MOVES = frozenset(
    "cat stack index index_select gather select_backward slice_backward expand repeat flip roll "
    "constant_pad_nd embedding masked_fill tril triu".split()
)
"""Operations that move elements and compute none."""
BATCH_NORMS = frozenset("native_batch_norm _native_batch_norm_legit _batch_norm_with_update".split())
"""``(input, weight, bias, running_mean, running_var, training, momentum, ...)``; the first of them
writes the running statistics without saying so in its schema."""
BATCH_NORM_BACKWARDS = {"native_batch_norm_backward": 7, "batch_norm_backward": 7}
"""``(gradient, input, weight, running_mean, running_var, ...)``, and where ``training`` stands."""
MASKED = frozenset(
    "convolution_backward native_batch_norm_backward native_layer_norm_backward "
    "native_group_norm_backward".split()
)
"""Backward kernels that compute the gradients of input, weight and bias that a mask asks for, the one
of the input apart from the others (ATen/native: Convolution.cpp, Normalization.cpp, layer_norm.cpp,
group_norm.cpp; tested bit for bit)."""
HARMLESS_THREADS = ("tqdm.", "multiprocessing.", "torch.multiprocessing.")
"""Modules whose threads touch no tensor's memory in place."""

MOST = 100_000
"""Operations that are looked at, which takes about 50 microseconds each; longer runs lose their hashes."""

X86 = platform.machine().lower() in ("x86_64", "amd64", "i686")

# The originals: what scripts see is wrapped by :func:`install`.
_DATA_PTR = torch.Tensor.data_ptr
_STORAGE = torch.Tensor.untyped_storage
# Where torch does not tell, all memory may be shared.
_RESIZABLE: Callable[[Any], bool] = getattr(torch.UntypedStorage, "resizable", lambda storage: False)
_SEEDED = torch.Tag.nondeterministic_seeded
_NOT_REPEATABLE = getattr(torch.Tag, "nondeterministic_bitwise", None)

if TYPE_CHECKING:
    Namer = Callable[[Any, torch.Tensor], "str | Known | None"]
    """The hash of a result, given which one it is and the tensor itself (or what is known of its memory,
    where it is a copy of other memory); none: only its bytes tell."""


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


class Operation:
    """What an overload's schema says."""

    def __init__(self, overload: Any) -> None:
        schema = overload._schema
        namespace, _, name = schema.name.partition("::")
        self.ours = namespace == "aten"
        self.name = name if self.ours else schema.name
        self.overload = schema.overload_name
        self.parameters = [
            (argument.name, argument.default_value if argument.has_default_value() else None)
            for argument in schema.arguments
        ]
        writes = [
            number
            for number, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        self.writes = frozenset(writes)
        returned = [given.alias_info for given in schema.returns]
        # What it returns is the memory of an argument, as it stands.
        self.views = bool(returned) and not writes and None not in returned
        plain = self.name[:-1] if self.name.endswith("_") and not self.name.startswith("__") else self.name
        self.names = [name for name, _ in self.parameters]
        self.alpha = self.names.index("alpha") if "alpha" in self.names else None
        self.exact = self.ours and plain in EXACT | MOVES and "mode" not in self.overload
        self.plain = plain if self.exact else self.name
        self.per_item = self.ours and self.name.startswith(("_foreach_", "_fused_"))
        self.random = _SEEDED in overload.tags or any("Generator" in str(a.type) for a in schema.arguments)
        self.repeatable = self.ours and _NOT_REPEATABLE not in overload.tags
        overwrites = self.name in ("copy_", "fill_", "zero_") or self.name in DRAWS
        like = self.name.endswith("_like") or self.name.startswith("new_")
        # Of these the contents do not matter, only the layout.
        self.shells = frozenset(
            number
            for number, argument in enumerate(schema.arguments)
            if argument.is_out or (number == 0 and (overwrites or like))
        )

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in the order of the schema."""
        given = list(args)
        for name, default in self.parameters[len(args) :]:
            given.append(kwargs.get(name, default))
        return given


@functools.lru_cache(None)
def operation_of(overload: Any) -> Operation:
    """What the schema of an overload says; the same for all runs."""
    return Operation(overload)


COMMON = (
    "detach.default clone.default alias.default view.default _unsafe_view.default t.default transpose.int "
    "expand.default slice.Tensor select.int cat.default add.Tensor add_.Tensor sub.Tensor mul.Tensor "
    "mul.Scalar mul_.Tensor mul_.Scalar div.Tensor div.Scalar neg.default pow.Tensor_Scalar sqrt.default "
    "addcmul_.default addcdiv_.default lerp_.Scalar sum.default sum.dim_IntList mean.default mm.default "
    "addmm.default relu.default threshold_backward.default leaky_relu.default leaky_relu_.default "
    "leaky_relu_backward.default sigmoid.default sigmoid_backward.default tanh.default tanh_backward.default "
    "convolution.default convolution_backward.default native_batch_norm.default "
    "native_batch_norm_backward.default mse_loss.default mse_loss_backward.default "
    "binary_cross_entropy.default binary_cross_entropy_backward.default "
    "binary_cross_entropy_with_logits.default empty.memory_format empty_like.default zeros.default "
    "zeros_like.default ones_like.default ones.default full.default randn.default rand.default "
    "uniform_.default normal_.default fill_.Scalar zero_.default copy_.default _to_copy.default "
    "_foreach_add_.Scalar item.default _local_scalar_dense.default"
)
"""What training steps are made of."""


def prepare() -> None:
    """Read the schemas of common operations once for all runs: each takes a quarter of a millisecond."""
    for name in COMMON.split():
        packet, _, overload = name.partition(".")
        # Not every torch has them all.
        with contextlib.suppress(AttributeError):
            operation_of(getattr(getattr(torch.ops.aten, packet), overload))


class Provenance(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes how every tensor came about while it is entered; :meth:`of` tells."""

    def __init__(self, fake: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.fake = fake
        self.lost: str | None = None
        """Why no hash can be trusted any more."""
        self.raised: Callable[[BaseException], None] = lambda error: None
        """Is told what an operation raises."""
        self.plain: dict[type, bool] = {}
        self.left = False
        """Whether it has left before its block ended."""
        self.salt = os.urandom(16).hex()
        self.uniques = 0
        self.seen = 0
        self.copying = False
        """Whether operations are the recorder's own, of which nobody wants to know."""
        self.denormals: object = None

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
            inputs = {_STORAGE(t)._cdata for t in tensors(bound) if strided(t)}
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

    # -- reading ---------------------------------------------------------------------------

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
        storage = _STORAGE(tensor)
        known: Known | None = getattr(storage, MARK, None)
        if known is None:
            known = self.adopt(tensor, storage, layout)
        # Memory that numpy or another process shares cannot be resized.
        shared = not _RESIZABLE(storage) or getattr(storage, SHARED, False)
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
            raw = (ctypes.c_char * size).from_address(_DATA_PTR(flat))
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
            alignment = _DATA_PTR(tensor) % 64
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
            raw = ctypes.string_at(_DATA_PTR(state), state.numel())
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

    # -- operations ------------------------------------------------------------------------

    def read(self, operation: Operation, bound: list[Any]) -> Namer:
        """Look at an operation's arguments before it runs: how its results are to be called."""
        for number in operation.writes:
            for tensor in tensors(bound[number]):
                # What is written in part keeps the rest.
                if strided(tensor) and not covers(tensor, _STORAGE(tensor)):
                    self.value(tensor)
        name = operation.name
        if not operation.repeatable or operation.views or name in UNINITIALISED:
            return lambda which, tensor: None
        if operation.random:
            return self.general(operation, bound, self.draw(operation, bound))
        if name in COPIES:
            return self.copied(bound[1 if name == "copy_" else 0])
        if name in FILLS and not (name in ("fill", "fill_") and operation.overload != "Scalar"):
            return self.filled(operation, bound)
        if operation.per_item:
            return self.item_by_item(operation, bound)
        if name in BATCH_NORMS and bound[5]:
            return self.batch_norm(operation, bound)
        if name in BATCH_NORM_BACKWARDS and bound[BATCH_NORM_BACKWARDS[name]]:
            bound = [*bound[:3], None, None, *bound[5:]]
        if name in MASKED:
            return self.masked(operation, bound)
        if operation.plain in COMMUTATIVE and operation.overload == "Tensor":
            return self.commuted(operation, bound)
        return self.general(operation, bound)

    def general(self, operation: Operation, bound: list[Any], *more: object) -> Namer:
        """Results that depend on everything that goes in."""
        # With a factor, kernels may round once or twice.
        once = operation.alpha is None or bound[operation.alpha] == 1
        exact = operation.exact and once and not any(t.is_complex() for t in tensors(bound))
        read = self.value if exact else self.operand
        arguments = [
            self.encoded(value, shell if number in operation.shells else read)
            for number, value in enumerate(bound)
        ]
        if operation.name == "convolution" and not X86:
            # On ARM another kernel serves where no gradient is wanted (Winograd3x3Depthwise).
            more += (torch.is_grad_enabled() and any(t.requires_grad for t in tensors(bound)),)
        # Of what the arguments are now, though it is asked for when the operation has run.
        whole = repr((operation.plain, operation.overload, arguments, self.surroundings(), more))
        return lambda which, tensor: digest(whole, which, tensor.dtype, tuple(tensor.shape))

    def copied(self, source: torch.Tensor) -> Namer:
        """The same elements in other memory, perhaps as another type or repeated."""
        value = self.value(source)
        dtype, shape = source.dtype, tuple(source.shape)
        # A copy of all the bytes in their order, though it be of a transposed view, holds what they hold.
        bytewise = layout_of(source) if strided(source) and covers(source, _STORAGE(source)) else None
        known: Known | None = getattr(_STORAGE(source), MARK, None) if bytewise else None
        trusted = known is not None and known.layout is not None and self.value_of(bytewise, known) == value
        whole = value
        if dtype.is_floating_point or dtype.is_complex:
            # What becomes of a number that another type cannot hold is the kernel's own affair.
            whole = digest(self.operand(source))

        def name(which: Any, tensor: torch.Tensor) -> str | Known:
            if trusted and known is not None and layout_of(tensor) == bytewise:
                return known
            if tensor.dtype == dtype:
                alike = tuple(tensor.shape) == shape
                return value if alike else digest("repeated", value, tuple(tensor.shape))
            widened = value if tensor.dtype.is_floating_point and dtype.is_floating_point else whole
            return digest("converted", widened, tensor.dtype, tuple(tensor.shape))

        return name

    def filled(self, operation: Operation, bound: list[Any]) -> Namer:
        """One number everywhere."""
        number = FILLS[operation.name]
        if number is None:
            number = bound[FILLED_BY.get(operation.name, 1)]
        if not isinstance(number, (bool, int, float)):
            return self.general(operation, bound)
        return lambda which, tensor: full(number, tensor.dtype, tuple(tensor.shape))

    def item_by_item(self, operation: Operation, bound: list[Any]) -> Namer:
        """The tensors of a list, each by itself (on the CPU these kernels are loops over the lists)."""
        lists = [value for value in bound if isinstance(value, (list, tuple)) and tensors(value)]
        count = len(lists[0]) if lists else 0
        if any(len(value) not in (0, count) for value in lists):
            return self.general(operation, bound)
        items = [
            [
                value[item] if isinstance(value, (list, tuple)) and len(value) == count else value
                for value in bound
            ]
            for item in range(count)
        ]
        memory = [{_STORAGE(t)._cdata for t in tensors(own) if strided(t)} for own in items]
        apart = sum(len(own) for own in memory) == len(set().union(*memory))
        if operation.name == "_fused_sgd_":
            # The first step writes the momentum, whatever it was.
            fresh = bool(bound[operation.names.index("is_first_step")])
            momentum = operation.names.index("momentum_buffer_list")
            items = [
                [None if fresh and number == momentum else value for number, value in enumerate(own)]
                for own in items
            ]
        if not apart:
            return self.general(operation, bound)
        names = [self.general(operation, own) for own in items]

        def name(which: Any, tensor: torch.Tensor) -> str | Known | None:
            argument, item = which if isinstance(which, tuple) else (None, which)
            return names[item](argument, tensor) if item is not None else self.unique()

        return name

    def batch_norm(self, operation: Operation, bound: list[Any]) -> Namer:
        """In training the result does not depend on the running statistics, which are written."""
        statistics, momentum = (bound[3], bound[4]), bound[6]
        before = [None if known is None else self.value(known) for known in statistics]
        name = self.general(operation, [*bound[:3], None, None, bound[5], None, *bound[7:]])

        def named(which: Any, tensor: torch.Tensor) -> str | Known | None:
            found = name(which, tensor)
            if not isinstance(which, tuple):
                return found
            return digest("running", found, before[which[0] - 3], self.encoded(momentum, self.value))

        return named

    def masked(self, operation: Operation, bound: list[Any]) -> Namer:
        """Gradients of input, weight and bias, of which a mask asks for some."""
        if "output_mask" not in operation.names or operation.overload:
            return self.general(operation, bound)
        at = operation.names.index("output_mask")
        mask = [*bound[at]]
        name = self.general(operation, [*bound[:at], None, *bound[at + 1 :]])

        def named(which: Any, tensor: torch.Tensor) -> str | None:
            return digest(name(which, tensor), None if which == 0 else mask[1:])

        return named

    def commuted(self, operation: Operation, bound: list[Any]) -> Namer:
        """Sums and products of two operands, in either order."""
        one, other, *_ = bound
        both = [item for item in (one, other) if isinstance(item, torch.Tensor)]
        factor = 1 if operation.alpha is None else bound[operation.alpha]
        if len(both) < 2 or any(t.is_complex() for t in both):
            return self.general(operation, bound)
        if factor != 1:
            return self.scaled(operation, bound, factor)
        values = [self.value(t) for t in both]
        if operation.plain == "add" and one.dtype == other.dtype and one.shape == other.shape:
            nothing = full(0, one.dtype, tuple(one.shape))
            for known, added in ((0, 1), (1, 0)):
                if values[known] == nothing:
                    sum_is = values[added]
                    if not self.no_negative_zero(both[added]):
                        sum_is = digest("without negative zeros", sum_is)
                    return lambda which, tensor: sum_is
        whole = digest(operation.plain, sorted(values))
        return lambda which, tensor: digest(whole, tensor.dtype, tuple(tensor.shape))

    def scaled(self, operation: Operation, bound: list[Any], factor: Any) -> Namer:
        """A sum with a factor, as of a weight and its gradient: zeros change nothing."""
        one, other = bound[:2]
        alike = one.dtype == other.dtype and one.shape == other.shape and one.is_floating_point()
        if alike and isinstance(factor, float) and math.isfinite(factor):
            nothing = self.value(other) == full(0, one.dtype, tuple(one.shape))
            # A negative factor makes negative zeros of them, and those leave either zero as it is.
            if nothing and (factor < 0 or self.no_negative_zero(one)):
                value = self.value(one)
                return lambda which, tensor: value
        return self.general(operation, bound)

    def no_negative_zero(self, tensor: torch.Tensor) -> bool:
        """Whether adding zeros surely changes no bit."""
        if not tensor.is_floating_point():
            return True
        if self.valueless(tensor) or not strided(tensor):
            return False
        return not bool(((tensor == 0) & tensor.signbit()).any())

    # -- writing ---------------------------------------------------------------------------

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
        storage = _STORAGE(tensor)
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
            storage = _STORAGE(tensor)
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
            storage = _STORAGE(part)
            if inputs is None or (storage._cdata not in inputs and getattr(storage, MARK, None) is None):
                own = None if value is None else digest(value, which)
                gaps = not covers(part, storage)
                setattr(storage, MARK, Known(own, layout_of(part), storage.nbytes(), gaps))


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
    known: Known | None = getattr(_STORAGE(tensor), MARK, None) if strided(tensor) else None
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
    return _DATA_PTR(tensor)


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
        setattr(_STORAGE(tensor), MARK, Known(None))


def install(provenance: Provenance) -> None:
    """Watch the ways in which memory is written unseen. Once in a process, before the script runs."""

    def leaking(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        @functools.wraps(real)
        def wrapped(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if isinstance(tensor, torch.Tensor) and not str(caller).startswith("torch."):
                if strided(tensor):
                    setattr(_STORAGE(tensor), SHARED, True)
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
