"""Hashes for the results of operations: results that are equal bit for bit get equal hashes."""

from __future__ import annotations

import math
import platform
from typing import Any

import torch

from .contents import Contents
from .operations import (
    BATCH_NORM_BACKWARDS,
    BATCH_NORMS,
    COMMUTATIVE,
    COPIES,
    FILLED_BY,
    FILLS,
    MASKED,
    UNINITIALISED,
    Operation,
)
from .storages import MARK, Known, Namer, covers, digest, full, layout_of, shell, storage_of, strided, tensors

X86 = platform.machine().lower() in ("x86_64", "amd64", "i686")


class NormalForms(Contents):
    """Looks at an operation before it runs."""

    def read(self, operation: Operation, bound: list[Any]) -> Namer:
        """Look at an operation's arguments before it runs: how its results are to be called."""
        for number in operation.writes:
            for tensor in tensors(bound[number]):
                # What is written in part keeps the rest.
                if strided(tensor) and not covers(tensor, storage_of(tensor)):
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
        bytewise = layout_of(source) if strided(source) and covers(source, storage_of(source)) else None
        known: Known | None = getattr(storage_of(source), MARK, None) if bytewise else None
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
        memory = [{storage_of(t)._cdata for t in tensors(own) if strided(t)} for own in items]
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
