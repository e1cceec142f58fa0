"""Run a script without computing: shapes, types and autograd's own bookkeeping, in torch's FakeTensorMode.

Nothing has values here, so a network of any size takes no memory. What autograd raises, it raises as in
earnest, for versions move and graphs are freed without any arithmetic.

A number that is read from a tensor becomes an :class:`UnknownValue`: it can be printed, added up and
averaged for a log. Where one decides what the script does next (a condition, a length, an index), or
where elements themselves are wanted, the run ends and says so; nothing is guessed.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import math
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

Unable = Callable[[str], None]
"""Ends the run, with the reason; it does not return."""

ENDS = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedOperatorException")
"""What FakeTensorMode raises where it would need values."""
REMAINDERS = (6, 19)
"""``%`` and ``%=`` as arguments of the instruction BINARY_OP (Include/opcode.h: NB_REMAINDER)."""


class UnknownValue:
    """A number that is not known."""

    unable: Unable

    def __repr__(self) -> str:
        return "unknown"

    def __format__(self, specification: str) -> str:
        return "unknown"

    def __float__(self) -> float:
        if not formatting(sys._getframe(1)):
            self.unable("the script branches on a number that it reads from a tensor")
        return math.nan

    def arithmetic(self, *others: object) -> UnknownValue:
        """Anything computed of it is unknown too, and a tensor computed of it would be of no use."""
        if any(isinstance(other, torch.Tensor) for other in others):
            self.unable("a number that was read from a tensor enters the computation")
        return self

    def end_run(self, *others: object) -> Any:
        """End the run: what the script does next depends on the number."""
        self.unable("the script branches on a number that it reads from a tensor")


for _name in "add sub mul truediv floordiv mod pow".split():
    setattr(UnknownValue, f"__{_name}__", UnknownValue.arithmetic)
    setattr(UnknownValue, f"__r{_name}__", UnknownValue.arithmetic)
for _name in "neg pos abs round".split():
    setattr(UnknownValue, f"__{_name}__", UnknownValue.arithmetic)
for _name in "bool int index eq ne lt le gt ge hash".split():
    setattr(UnknownValue, f"__{_name}__", UnknownValue.end_run)


def formatting(frame: types.FrameType) -> bool:
    """Whether a frame is at ``text % values``, which asks for numbers only to print them."""
    code, at = frame.f_code.co_code, frame.f_lasti
    name = dis.opname[code[at]]
    return "MODULO" in name or (name == "BINARY_OP" and code[at + 1] in REMAINDERS)


@contextlib.contextmanager
def pretending(unable: Unable) -> Iterator[None]:
    """The mode, with all that the script may ask of tensors that have no values. Once in a process."""
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    UnknownValue.unable = staticmethod(unable)

    def valueless(tensor: object) -> bool:
        return isinstance(tensor, FakeTensor) and tensor.constant is None

    def instead(name: str, answer: Callable[..., Any]) -> None:
        real = getattr(torch.Tensor, name)

        @functools.wraps(real)
        def method(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if valueless(tensor):
                return answer(tensor, real, *args, **kwargs)
            known = getattr(tensor, "constant", None)
            return real(tensor if known is None else known, *args, **kwargs)

        setattr(torch.Tensor, name, method)
        # Some versions have a method of their own there, for another purpose.
        if name in vars(FakeTensor):
            setattr(FakeTensor, name, method)

    def elements(*_: Any, **__: Any) -> None:
        unable("the script reads the elements of a tensor")

    def numbers(tensor: Any, *_: Any) -> Any:
        return [numbers(row) for row in tensor] if tensor.dim() else UnknownValue()

    def number(tensor: Any, real: Callable[..., Any]) -> float:
        if formatting(sys._getframe(2)):
            return math.nan
        found: float = real(tensor)  # raises what the probe takes for the end
        return found

    instead("item", lambda *_: UnknownValue())
    instead("tolist", numbers)
    instead("__float__", number)
    instead("__format__", lambda *_: "unknown")
    for name in ("numpy", "__array__"):
        instead(name, elements)

    def apply(module: torch.nn.Module, function: Callable[..., Any], recurse: bool = True) -> torch.nn.Module:
        """All tensors of a module elsewhere: here there is one place only."""
        for tensor in [*module.parameters(recurse), *module.buffers(recurse)]:
            if function(tensor).dtype != tensor.dtype:
                unable("the script converts a whole module to another type")
        return module

    torch.nn.Module._apply = apply  # type: ignore[method-assign]
    torch.save = lambda *_, **__: None
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield
