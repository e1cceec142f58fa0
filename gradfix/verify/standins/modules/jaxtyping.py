"""jaxtyping: types of arrays with their shapes, which nobody checks."""

from __future__ import annotations

from typing import Any


class _Shaped:
    def __class_getitem__(cls, item: Any) -> Any:
        return item[0] if isinstance(item, tuple) and item else Any


Float = Float16 = Float32 = Float64 = BFloat16 = Int = Int8 = Int16 = Int32 = Int64 = UInt = UInt8 = Bool = (
    _Shaped
)
Integer = Inexact = Num = Real = Complex = Shaped = Key = _Shaped
Array = ArrayLike = PyTree = Scalar = ScalarLike = Any


def jaxtyped(*args: Any, **kwargs: Any) -> Any:
    """The function as it is."""
    return args[0] if args and callable(args[0]) else jaxtyped


def install_import_hook(*args: Any, **kwargs: Any) -> None:
    """Nothing is checked."""
