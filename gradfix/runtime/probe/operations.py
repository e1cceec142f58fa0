"""What an operation does, as its schema and a few tables say it."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import torch

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
_SEEDED = torch.Tag.nondeterministic_seeded
_NOT_REPEATABLE = getattr(torch.Tag, "nondeterministic_bitwise", None)


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
