"""Made-up data that gives way: where torch refuses their shape or kind, they get the one that it takes.

Whoever makes data up has to guess their sizes; a message tells one, at best. Where no message helps any
more, the run is repeated in a mode in which a function of torch that fails is called again with other
data: the features of a layer, the shape of a loss's input for its target, classes and indices within
their range. Only what belongs to no graph is changed, and never a parameter: what is differentiated, and
how, stays what the script makes of it. It is done in runs alone whose data are made up anyway.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import content, context

REFUSED = re.compile(
    r"shape|size|dimension|index|indices|dtype|scalar type|expected|channels|broadcast|match|target|range|"
    r"dims|same number|must be|not implemented for|invalid for input",
    re.I,
)
"""Messages about shapes and kinds of tensors."""
AUTOGRAD = re.compile(r"backward|in-?place|requires? grad|grad_fn", re.I)
OF_TORCH = re.compile(
    r"for dimension \d|Dimension out of range|indices for tensor|dimension specified as|\(position \d+\)|"
    r"tensor"
)
"""Messages of torch's about what it was called with."""
SIDES = {1: 256, 2: 32, 3: 16}
"""What data are wide that a convolution takes, by its dimensions."""
LARGEST = 256
"""Pixels along a side of them, at most."""
SMALL = re.compile(r"Output size is too small|Kernel size can't be greater than actual input size")
PAIRS = frozenset(
    "add sub mul div true_divide pow where eq ne lt le gt ge maximum minimum max min logical_and logical_or "
    "masked_fill masked_fill_ masked_select addcmul lerp atan2 fmod remainder copy_ "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __pow__ __eq__ __ne__ "
    "__lt__ __le__ __gt__ __ge__ __and__ __or__ add_ sub_ mul_ div_ cosine_similarity "
    "pairwise_distance".split()
)
LOSSES = frozenset(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div "
    "soft_margin_loss multilabel_soft_margin_loss poisson_nll_loss".split()
)
CLASSES = frozenset(("cross_entropy", "nll_loss", "cross_entropy_loss", "nll_loss_nd", "multi_margin_loss"))
ARRANGING = frozenset(("view", "reshape", "expand", "resize"))


def possible(error: BaseException) -> bool:
    """Whether an error may be one of made-up data's shapes."""
    frame = context.raised_in(error)
    by_torch = frame is not None and os.sep + "torch" + os.sep in frame.f_code.co_filename
    if not isinstance(error, (RuntimeError, IndexError, TypeError, ValueError)):
        return False
    if not (isinstance(error, RuntimeError) or by_torch or OF_TORCH.search(str(error))):
        return False
    book = content.book
    made = book.touched or book.pictures or book.styles or any("guard" in one for one in book.plan.values())
    return bool(made and REFUSED.search(str(error)) and not AUTOGRAD.search(str(error)))


def advise(error: BaseException) -> str | None:
    """The plan of a run whose made-up data give way."""
    if content.book.planned("torch", "elastic") and SMALL.search(str(error)):
        side = content.book.planned("torch", "side") or LARGEST // 4
        return content.planned_with("torch", "side", 2 * side) if side < LARGEST else None
    return content.planned_with("torch", "elastic", True) if possible(error) else None


def install(run: context.Run) -> None:
    """Let made-up data give way, if the plan says so."""
    if not content.book.planned("torch", "elastic"):
        return
    Elastic(run).__enter__()  # type: ignore[no-untyped-call]
    recurrent(run)
    packed(run)


def is_data(value: Any) -> bool:
    """Whether a value is a tensor that belongs to no graph and is no parameter."""
    return isinstance(value, torch.Tensor) and not value.requires_grad and type(value) is torch.Tensor


class Elastic(TorchFunctionMode):
    """Calls what has failed again, with data that it takes."""

    def __init__(self, run: context.Run) -> None:
        super().__init__()
        self.run = run
        self.side: int = content.book.planned("torch", "side") or 0
        """What pictures are wide at least, if a network has found them too small."""
        SIDES[2] = max(SIDES[2], self.side)

    def wide(self, data: torch.Tensor) -> torch.Tensor:
        """Pictures as wide as they have to be."""
        if data.dim() != 4 or min(data.shape[2:]) >= self.side:
            return data
        self.run.used("pictures in a network that takes no small ones", f"{self.side} pixels along a side")
        return fit(data, [*data.shape[:2], *(max(one, self.side) for one in data.shape[2:])])

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.side and args and getattr(func, "__name__", "") == "conv2d" and is_data(args[0]):
            args = (self.wide(args[0]), *args[1:])
        try:
            return func(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            if not REFUSED.search(str(error)) or AUTOGRAD.search(str(error)):
                raise
            name = getattr(func, "__name__", "")
            args = content.known(tuple(args))
            for changed in ways(name, args, kwargs, str(error)):
                try:
                    found = func(*changed, **kwargs)
                except (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError):
                    continue
                self.run.used(
                    "data that " + name.strip("_") + " is given",
                    "the same in the shape and kind that it takes",
                )
                return found
            raise


def ways(name: str, args: Any, kwargs: Any, message: str) -> Iterator[tuple[Any, ...]]:
    """Other arguments with which a function may succeed, the likeliest first."""
    try:
        for changed in shaped(name, args, kwargs):
            yield changed
            yield from kinds(changed, message)
    except (RuntimeError, IndexError, ValueError, TypeError, AttributeError, ZeroDivisionError):
        pass
    yield from kinds(args, message)


def kinds(args: Any, message: str) -> Iterator[tuple[Any, ...]]:
    """The same with data of other kinds of numbers."""
    if not re.search(
        r"dtype|scalar type|not implemented for|Long|Float|Double|Bool|Byte|tensors used as", message
    ):
        return
    for kind in (torch.float32, torch.int64):
        yield tuple(one.to(kind) if is_data(one) else one for one in args)


def shaped(name: str, args: Any, kwargs: Any) -> Iterator[tuple[Any, ...]]:
    """The same with data in other shapes."""
    first: Any = args[0] if args else None
    rest: Any = tuple(args[1:])
    second: Any = rest[0] if rest else kwargs.get("target", kwargs.get("other"))
    if name == "linear" and is_data(first):
        weight = second if second is not None else kwargs["weight"]
        lead = list(first.shape[:-1]) if first.dim() > 1 else list(first.shape)
        yield (fit(first, [*lead, weight.shape[1]]).to(weight.dtype), *rest)
    elif name.startswith("conv") and is_data(first) and isinstance(second, torch.Tensor):
        yield (for_convolution(first, second, "transpose" in name, args, kwargs), *rest)
    elif name == "embedding" and is_data(first):
        yield (first.long() % len(second), *rest)
    elif name == "batch_norm" and is_data(first):
        yield (fit(first, [first.shape[0], len(second), *first.shape[2:]]).float(), *rest)
    elif name == "layer_norm" and is_data(first):
        yield (fit(first, [*first.shape[: -len(second)], *second]).float(), *rest)
    elif name in CLASSES and isinstance(first, torch.Tensor) and is_data(second):
        sizes = [first.shape[0], *first.shape[2:]] if first.dim() > 1 else []
        count = first.shape[min(1, first.dim() - 1)]
        yield (first, fit(second, sizes).long().remainder(count), *rest[1:])
    elif name in LOSSES and isinstance(first, torch.Tensor) and is_data(second):
        target = fit(second, list(first.shape)).to(first.dtype)
        yield (first, target.clamp(0, 1) if "binary" in name else target, *rest[1:])
    elif name in ARRANGING and is_data(first):
        sizes = list(rest[0]) if len(rest) == 1 and isinstance(rest[0], (tuple, list)) else list(rest)
        yield (arranged(first, sizes), *rest)
    elif name in ("permute", "transpose", "squeeze", "unsqueeze") and is_data(first):
        wanted = list(rest[0]) if len(rest) == 1 and isinstance(rest[0], (tuple, list)) else list(rest)
        count = (
            len(wanted)
            if name == "permute"
            else max([*(one + 1 for one in wanted), *(-one for one in wanted)])
        )
        yield (deeper(first, count), *rest)
    elif name in ("cat", "concat", "concatenate", "stack"):
        yield from joined(name, args, kwargs)
    elif name in ("matmul", "mm", "bmm", "__matmul__", "addmm") and isinstance(second, torch.Tensor):
        if is_data(first):
            yield (
                fit(first, [*first.shape[:-1], second.shape[-2 if second.dim() > 1 else 0]]).to(second.dtype),
                *rest,
            )
        if is_data(second) and isinstance(first, torch.Tensor):
            yield (
                first,
                fit(second, [*second.shape[:-2], first.shape[-1], *second.shape[-1:]]).to(first.dtype),
                *rest[1:],
            )
    elif (name == "gather" and isinstance(first, torch.Tensor) and len(rest) > 1 and is_data(rest[1])) or (
        name in ("scatter", "scatter_")
        and isinstance(first, torch.Tensor)
        and len(rest) > 1
        and is_data(rest[1])
    ):
        index = deeper(rest[1].long(), first.dim())
        while index.dim() > max(1, first.dim()):
            index = index[..., 0]  # One of each: a class is one number.
        yield (first, rest[0], index.remainder(first.shape[rest[0]]), *rest[2:])
    elif name == "index_select" and len(rest) > 1 and is_data(rest[1]):
        yield (first, rest[0], rest[1].long().remainder(first.shape[rest[0]]), *rest[2:])
    elif name == "one_hot" and is_data(first):
        count = second if isinstance(second, int) else kwargs.get("num_classes", -1)
        yield (first.long().abs().remainder(count) if count > 0 else first.long().abs(), *rest)
    elif name in ("__getitem__", "__setitem__") and isinstance(first, torch.Tensor):
        yield (first, within(first, rest[0]), *rest[1:])
        if name == "__setitem__" and is_data(rest[1]):
            yield (first, rest[0], fit(rest[1], list(first[rest[0]].shape)).to(first.dtype))
        if is_data(first) and isinstance(rest[0], tuple):
            yield (deeper(first, sum(one is not None for one in rest[0])), *rest)
    elif name in PAIRS and isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        if is_data(second):
            yield (first, fit(second, list(first.shape)), *rest[1:])
        if (is_data(first) and not name.endswith("_")) or name.endswith("__"):
            yield (fit(first, list(second.shape)), *rest)
    elif is_data(first):
        for count in range(first.dim() + 1, 5):
            yield (deeper(first, count), *rest)


def fit(data: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """The values of data in another shape: repeated where there are too few."""
    sizes = [int(one) for one in sizes]
    if list(data.shape) == sizes:
        return data
    if not data.numel():
        return data.new_zeros(sizes)
    if data.dim() == len(sizes):
        for dim, size in enumerate(sizes):
            if data.shape[dim] != size:
                data = data.index_select(dim, torch.arange(size) % data.shape[dim])
        return data
    flat = data.reshape(-1)
    count = math.prod(sizes)
    return flat[torch.arange(count) % len(flat)].reshape(sizes)


def deeper(data: torch.Tensor, count: int) -> torch.Tensor:
    """The same with ``count`` dimensions at least; new ones are the last."""
    while data.dim() < count:
        data = data.unsqueeze(-1)
    return data


def arranged(data: torch.Tensor, sizes: list[Any]) -> torch.Tensor:
    """As many values as a shape has room for, in one in which it can be given."""
    known = math.prod(int(one) for one in sizes if one >= 0)
    rest = max(1, round(data.numel() / max(1, known)))
    return fit(data, [rest if one < 0 else int(one) for one in sizes])


def for_convolution(
    data: torch.Tensor, weight: torch.Tensor, transposed: bool, args: Any, kwargs: Any
) -> torch.Tensor:
    """Data with the channels and dimensions that a convolution takes."""
    groups = kwargs.get("groups", args[6] if len(args) > 6 and not transposed else 1)
    channels = weight.shape[0] if transposed else weight.shape[1] * int(groups)
    count = weight.dim() - 2
    kernel = list(weight.shape[2:])
    if data.dim() == count + 2:
        sides = [max(one, two) for one, two in zip(data.shape[2:], kernel)]
    else:
        sides = [max(SIDES.get(count, 32), one) for one in kernel]
    batch = data.shape[0] if data.dim() else 1
    return fit(data, [batch, channels, *sides]).to(weight.dtype)


def joined(name: str, args: Any, kwargs: Any) -> Iterator[tuple[Any, ...]]:
    """Tensors that are put together, those of no graph in the shape of the others."""
    held = list(args[0])
    model = next((one for one in held if isinstance(one, torch.Tensor) and one.requires_grad), held[0])
    dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
    changed = []
    for one in held:
        if is_data(one) and one is not model:
            sizes = list(model.shape)
            if name != "stack":
                known = one.dim() == model.dim() or 0 <= dim < one.dim()
                sizes[dim] = one.shape[dim] if known else 1
            one = fit(one, sizes).to(model.dtype)
        changed.append(one)
    yield (changed, *args[1:])


def within(data: torch.Tensor, index: Any) -> Any:
    """An index whose numbers are within the sizes of what it is an index of."""
    parts = index if isinstance(index, tuple) else (index,)
    found: list[Any] = []
    for dim, one in enumerate(parts):
        size = data.shape[dim] if dim < data.dim() else 1
        if type(one).__module__ == "numpy" or isinstance(one, list):
            one = torch.as_tensor(one)
        if isinstance(one, torch.Tensor) and one.dtype not in (torch.bool, torch.uint8):
            one = one.long().remainder(max(1, size))
        elif isinstance(one, torch.Tensor):
            one = fit(one, list(data.shape[dim : dim + one.dim()]))
        elif type(one) is int:
            one = one % max(1, size)
        found.append(one)
    return tuple(found) if isinstance(index, tuple) else found[0]


def recurrent(run: context.Run) -> None:
    """Recurrent layers, whose own code looks at the shapes of what it is given."""
    for owner in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        real = owner.forward

        def forward(self: Any, input: Any, *args: Any, _real: Any = real, **kwargs: Any) -> Any:
            if is_data(input) and (input.dim() not in (2, 3) or input.shape[-1] != self.input_size):
                lead = list(input.shape[:2]) if input.dim() > 1 else [len(input), 1]
                run.used("data that a recurrent layer is given", "the same in the shape that it takes")
                input = fit(input, [*lead, self.input_size])
            return _real(self, input.float() if is_data(input) else input, *args, **kwargs)

        context.replace(owner, "forward", forward)


def packed(run: context.Run) -> None:
    """Lengths of sequences that are none."""
    rnn = torch.nn.utils.rnn
    real = rnn.pack_padded_sequence

    def pack(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> Any:
        longest = input.shape[1 if batch_first else 0]
        held = torch.as_tensor(lengths).long().reshape(-1)
        if longest and (
            len(held) != input.shape[0 if batch_first else 1]
            or not bool(((held > 0) & (held <= longest)).all())
        ):
            run.used("lengths of sequences", "those that there are")
            held = fit(held, [input.shape[0 if batch_first else 1]]).clamp(1, longest)
            lengths = held.sort(descending=True).values if enforce_sorted else held
        return real(input, lengths, batch_first, enforce_sorted)

    context.replace(rnn, "pack_padded_sequence", pack)
