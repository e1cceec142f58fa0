"""A small world in which training code runs without its data, its libraries and its size.

The text of this file runs before the training code, in the process of gradfix's probe (standard library and
torch only, syntax of Python 3.9). Autograd is the real one; everything else is small. Every tensor has the
shape ``(1,)``, whatever the code asks for: an operation that is possible on it is done, any other is
replaced by one of the same name's nature (a view, a sum that saves nothing, or a function that saves all its
operands). A layer has one weight and saves it as the real one does. Modules that are missing, data, files and
arguments are stand-ins that can be called, unpacked, indexed and computed with. Random numbers are constants,
so that a forward more or less changes no other one.

What runs here is therefore not the training itself. It does show which backward goes through which graph,
what is freed and moved when, and which gradients each step consumes.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import dis
import importlib.abc
import importlib.machinery
import io
import itertools
import json
import math
import os
import pickle
import random
import re
import subprocess
import sys
import time
import types
import warnings
from typing import Any

import torch
import torch.distributed
import torch.nn.parallel
import torch.utils.data
from torch import nn
from torch.overrides import TorchFunctionMode

BATCHES = 3
SIZE = 4
"""Every dimension of every tensor, as far as the code can see."""
fill = torch.full

# ---------------------------------------------------------------------------- stand-ins


def wanted(frame: Any, default: int) -> int:
    """How many items the code in ``frame`` is unpacking, if it is."""
    code = frame.f_code.co_code
    at = frame.f_lasti
    name = dis.opname[code[at]]
    if name == "UNPACK_SEQUENCE":
        return int(code[at + 1])
    if name == "UNPACK_EX":
        return int(code[at + 1]) + 1
    return default


class Flexible(list):  # type: ignore[type-arg]
    """A list that unpacks into as many items as are asked for."""

    def __iter__(self) -> Any:
        count = wanted(sys._getframe(1), len(self))
        items = list(super().__iter__())
        return iter([items[i % len(items)] for i in range(count)])


class Dimensions(tuple):  # type: ignore[type-arg]
    """The shape of a tensor: as large in every direction, of which there are as many as are asked for."""

    def __iter__(self) -> Any:
        return iter([SIZE] * wanted(sys._getframe(1), 4))

    def __getitem__(self, index: Any) -> Any:
        return Dimensions((SIZE,) * 4) if isinstance(index, slice) else SIZE

    def numel(self) -> int:
        return SIZE


TELL_NETWORK = ("train", "eval", "zero_grad", "state_dict", "load_state_dict")
"""What only a network is told: it has a weight."""


KINDS = (type, types.GenericAlias, types.UnionType)


class Anything(torch.Tensor):
    """What is not known: data, an argument, a library. A tensor, and whatever else is asked of it."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def of(value: float, name: str = "") -> Anything:
        made = fill((1,), value).as_subclass(Anything)
        made.__dict__["label"] = name
        made.__dict__["number"] = value
        return made

    def child(self, key: Any) -> Anything:
        if self.requires_grad:
            return plain_sum([self]).as_subclass(Anything)  # type: ignore[no-any-return]
        children = self.__dict__.setdefault("children_", {})
        if key not in children:
            children[key] = self.made(key)
        return children[key]

    def made(self, key: Any) -> Anything:
        """A new thing with a value of its own."""
        shift = (sum(map(ord, str(key))) % 17 + 1) / 40
        number = self.__dict__.get("number", 0.3)
        thing = Anything.of(0.15 + (number * 0.7 + shift) % 0.8, str(key))
        thing.__dict__["parent_"] = self
        return thing

    def weights(self) -> list[Any]:
        """The parameters of the network that this is, or is a part or method of, if anybody asked for any."""
        at: Any = self
        while at is not None:
            found = at.weights_below()
            if found:
                return found  # type: ignore[no-any-return]
            at = at.__dict__.get("parent_")
        return []

    def weights_below(self) -> list[Any]:
        own = self.__dict__.get("_parameter")
        inner = [
            w
            for child in self.__dict__.get("children_", {}).values()
            if isinstance(child, Anything)
            for w in child.weights_below()
        ]
        return [*([own] if own is not None else []), *inner]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("children_", "_parameter", "_optimizer", "handed_"):
            raise AttributeError(name)
        return self if name == "module" else self.child(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__dict__.get("label", "")
        owner = self.__dict__.get("parent_")
        if "parameters" in name and not any(t.is_floating_point() for t in flat(args)):
            network = self if owner is None else owner
            return [(name, network.parameter_())] if name.startswith("named") else [network.parameter_()]
        if owner is not None and name in ("step", "zero_grad") and not args and owner.steps():
            return getattr(owner.optimizer_(), name)()
        if owner is not None and name in TELL_NETWORK:
            owner.parameter_()
            if name == "zero_grad":
                for weight in owner.weights_below():
                    weight.grad = None
        if name in ("train", "eval", "apply", "share_memory", "module", "DataParallel") and owner is not None:
            return args[0] if args and isinstance(args[0], Anything) else owner
        if OPTIMIZER.search(name):
            return self.optimizer_made(args)
        if name in ("trange",):
            return Bar(range(*args))
        if args and name in ("tqdm", "track", "prefetch", "ProgressBar"):
            return Bar(args[0])
        if args and name == "wraps":
            return args[0]
        if len(args) == 1 and isinstance(args[0], (types.FunctionType, type)) and not kwargs:
            return args[0]
        found = [t for t in flat([*args, *kwargs.values()]) if t.is_floating_point()]
        if self.requires_grad:
            found.append(self)  # A method of something computed: a distribution, for one.
        if name in ("open", "join"):
            return self.child(name)
        weights = self.weights() if found else []
        if any(t.requires_grad for t in found) or weights:
            return Keep.apply(*found, *weights).as_subclass(Anything)
        return self.made(name + "()")

    def optimizer_made(self, args: Any) -> Anything:
        """What is called as one calls what makes optimizers: of the parameters that it is handed, if any."""
        thing = self.made(str(self) + "()")
        thing.__dict__["handed_"] = [t for t in flat(args) if type(t) is nn.Parameter]
        thing.optimizer_()
        return thing

    def steps(self) -> bool:
        """Whether this is an optimizer, going by what it was made of or what it is called."""
        return "handed_" in self.__dict__ or OPTIMIZER.search(self.__dict__.get("label", "")) is not None

    def optimizer_(self) -> Any:
        """The optimizer that this is: of its parameters, or of the network that it belongs to."""
        if "_optimizer" not in self.__dict__:
            at: Any = self
            while at.__dict__.get("parent_") is not None and not at.weights() and at.steps():
                at = at.__dict__["parent_"]
            owned = self.__dict__.get("handed_") or at.weights() or [at.parameter_()]
            self.__dict__["_optimizer"] = torch.optim.SGD(owned, lr=0.01)
        return self.__dict__["_optimizer"]

    def parameter_(self) -> Any:
        if "_parameter" not in self.__dict__:
            self.__dict__["_parameter"] = parameter()
        return self.__dict__["_parameter"]

    def __iter__(self) -> Any:
        count = wanted(sys._getframe(1), BATCHES)
        return Batches([self.child(i) for i in range(count)])

    def __getitem__(self, key: Any) -> Any:
        return self.child(str(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__dict__.setdefault("children_", {})[str(key)] = value

    def __len__(self) -> int:
        return BATCHES

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def keys(self) -> Any:
        """As what ``**`` spreads: nothing."""
        return []

    def __int__(self) -> int:
        return 2

    def __index__(self) -> int:
        return 3

    def __bool__(self) -> bool:
        return True

    def __fspath__(self) -> str:
        return "/nowhere/" + str(self.__dict__.get("label", "x"))

    def __str__(self) -> str:
        return str(self.__dict__.get("label", "x"))

    def __format__(self, how: str) -> str:
        return "0"

    def __contains__(self, item: Any) -> bool:
        return False

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, str) if isinstance(other, str) or other is None else torch.eq(self, other)

    def __ne__(self, other: Any) -> Any:
        return other is None if isinstance(other, str) or other is None else torch.ne(self, other)

    def __mod__(self, other: Any) -> Any:
        """The number of a pass, perhaps: what is done every so often is done now."""
        return 0 if isinstance(other, (int, Anything)) else torch.Tensor.__mod__(self, other)

    def __gt__(self, other: Any) -> Any:
        return True if isinstance(other, Anything) else torch.gt(self, other)

    def __add__(self, other: Any) -> Any:
        return str(self) + other if isinstance(other, str) else torch.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return other + str(self) if isinstance(other, str) else torch.add(self, other)

    def __or__(self, other: Any) -> Any:
        """One of two kinds, in an annotation: either will do."""
        return self if other is None or isinstance(other, KINDS) else torch.Tensor.__or__(self, other)

    __ror__ = __or__

    __hash__ = object.__hash__

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def clone(self, *args: Any, **kwargs: Any) -> Any:
        """A copy: of a network, one that hands its gradients on."""
        return self if self.weights_below() else torch.Tensor.clone(self)

    def __mro_entries__(self, bases: Any) -> Any:
        return (Base,)


class Bar:
    """A progress bar around what it goes over."""

    def __init__(self, items: Any) -> None:
        self.items = shortened(items)

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "items":
            raise AttributeError(name)
        return getattr(self.items, name, nothing)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


class Base:
    """What stands in for a base class of a missing library."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Anything.of(0.4, name)
        self.__dict__[name] = made
        return made


class Missing(types.ModuleType):
    """A module that is not installed."""

    __path__ = ()
    __version__ = "1.0.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Anything.of(0.5, name)
        setattr(self, name, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What looks like a module may be a class or a function: whose, nobody knows."""
        return Anything.of(0.5, self.__name__.rsplit(".", 1)[-1])(*args, **kwargs)

    def __mro_entries__(self, bases: Any) -> Any:
        return (Base,)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module that nobody else finds."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.split(".")[0] in ("torch", "numpy", "ctypes", "_ctypes") or name.startswith("_"):
            return None
        if name in ("cPickle", "Queue", "urllib2"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return Missing(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


# ---------------------------------------------------------------------------- operations


class Keep(torch.autograd.Function):
    """A function of all its operands that saves them all, as most operations do."""

    @staticmethod
    def forward(ctx: Any, *operands: Any) -> Any:
        ctx.save_for_backward(*operands)
        return torch.sin(mixed(operands))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        operands = ctx.saved_tensors
        slope = gradient * torch.cos(mixed(operands))
        return tuple(slope / (n + 1.5) if o.is_floating_point() else None for n, o in enumerate(operands))


class Shrink(torch.autograd.Function):
    """A linear function that saves nothing, as a mean does: but never its operand itself.

    With it, what code subtracts from its own mean does not vanish.
    """

    @staticmethod
    def forward(ctx: Any, operand: Any) -> Any:
        return operand.reshape(-1)[:1] * 0.8

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 0.8


def mixed(operands: Any) -> Any:
    total = 0.1
    for n, operand in enumerate(operands):
        total = total + operand.reshape(-1)[:1].float() / (n + 1.5)
    return total


def plain_sum(operands: Any) -> Any:
    """A sum, which saves nothing; of one operand a view."""
    total = operands[0].reshape(-1)[:1].view(1)
    for operand in operands[1:]:
        total = total + operand.reshape(-1)[:1]
    return total


def flat(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += flat(list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value))
        elif isinstance(value, dict):
            found += flat(value.values())
    return found


def small(value: Any) -> Any:
    """``value`` with every tensor in it brought to the shape ``(1,)``."""
    if isinstance(value, torch.Tensor):
        if value.shape == (1,) or value.is_sparse:
            return value
        if value.numel() == 0:
            return fill((1,), 0.25, dtype=value.dtype)
        if value.numel() == 1:
            return value.reshape(1)
        if value.is_floating_point():
            return value.mean().reshape(1)
        return value.reshape(-1)[:1]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(small(v) for v in tuple(value)))
    if isinstance(value, (list, tuple)) and value and any(isinstance(v, torch.Tensor) for v in value):
        return type(value)(small(v) for v in value)
    return value


def named(text: str) -> frozenset[str]:
    return frozenset(text.split())


NOTHING_SAVED = named(
    """view reshape permute transpose t T squeeze unsqueeze flatten expand expand_as repeat cat stack concat
    sum mean pad narrow select contiguous view_as reshape_as swapaxes movedim flip roll diagonal unflatten
    interpolate upsample hstack vstack index_select __getitem__ broadcast_to tile mT H moveaxis"""
)
ALWAYS_REPLACED = named(
    """softmax log_softmax softmin cross_entropy nll_loss relu relu_ leaky_relu leaky_relu_ clamp clip
    hardtanh elu selu std var normalize layer_norm batch_norm instance_norm group_norm smooth_l1_loss
    l1_loss huber_loss gumbel_softmax bmm mm matmul __matmul__ einsum conv1d conv2d conv3d conv_transpose2d
    mean sum max_pool2d avg_pool2d cosine_similarity norm adaptive_avg_pool2d binary_cross_entropy glu kl_div
    triplet_margin_loss margin_ranking_loss pairwise_distance linear embedding"""
)
SPLIT = named("chunk split unbind tensor_split unsafe_chunk unsafe_split hsplit")
PAIRS = named("max min sort topk median mode cummax cummin kthvalue std_mean var_mean aminmax")
CONSTANTS = {
    "randn": 0.37,
    "rand": 0.61,
    "normal": 0.37,
    "zeros": 0.25,
    "ones": 0.75,
    "empty": 0.45,
    "full": 0.55,
    "linspace": 0.35,
    "eye": 0.65,
    "bernoulli": 0.8,
    "multinomial": 1.0,
    "randint": 1.0,
    "randperm": 0.0,
    "arange": 0.0,
}
RANDOM_IN_PLACE = {"normal_": 0.33, "uniform_": 0.44, "bernoulli_": 0.8, "random_": 1.0, "exponential_": 0.4}
SAME = named(
    """cuda cpu half bfloat16 pin_memory share_memory_ contiguous channels_last resize_ resize_as_ resize
    resize_as"""
)


class World(TorchFunctionMode):
    """Every call of torch goes through here."""

    def __init__(self, root: str, probe: str) -> None:
        super().__init__()
        self.root = root
        self.probe = probe

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        frame = sys._getframe(1)
        while frame.f_code.co_filename == "<stage>" and frame.f_back is not None:
            frame = frame.f_back
        caller = frame.f_code.co_filename
        if caller.endswith(self.probe):
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__", "__delete__"):
            if name == "__get__" and getattr(func.__self__, "__name__", "") == "shape":
                if caller.startswith(self.root):
                    return Dimensions((SIZE,) * 4)
            return func(*args, **kwargs)
        if caller.startswith(self.root):
            if name == "size":
                return SIZE if len(args) > 1 or kwargs else Dimensions((SIZE,) * 4)
            if name in ("dim", "ndimension"):
                return 4
            if name in ("numel", "nelement"):
                return SIZE
            if name == "__len__":
                return BATCHES
        if name in (
            "backward",
            "grad",
            "requires_grad_",
            "detach",
            "detach_",
            "register_hook",
            "retain_grad",
        ):
            return self.differentiate(func, name, args, kwargs)
        if name in SAME:
            return args[0]
        return self.operate(func, name, args, kwargs)

    def differentiate(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        if name == "grad" and kwargs.get("grad_outputs") is not None:
            kwargs["grad_outputs"] = small(kwargs["grad_outputs"])
        return small(func(*args, **kwargs))

    def operate(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        constant = self.constant(name, args, kwargs)
        if constant is not None:
            return constant
        if name in RANDOM_IN_PLACE:
            return args[0].fill_(RANDOM_IN_PLACE[name])
        if name in ("dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout"):
            return args[0] * 0.9
        kwargs.pop("device", None)
        if name not in ALWAYS_REPLACED:
            try:
                result = func(*args, **kwargs)
            except Exception as error:
                if "leaf Variable" in str(error) or ("view" in str(error) and "in-place" in str(error)):
                    raise
            else:
                if all(
                    not t.is_floating_point() or bool(torch.isfinite(t.detach()).all())
                    for t in flat([result])
                ):
                    return small(result)
        return self.replaced(name, args, kwargs)

    def constant(self, name: str, args: Any, kwargs: Any) -> Any:
        base = name[:-5] if name.endswith("_like") else name
        if base not in CONSTANTS or name.startswith("new_"):
            return None
        if base in ("normal", "bernoulli", "multinomial") and not flat(args):
            args = ()
        like = flat(args[:1]) if name.endswith("_like") else []
        dtype = kwargs.get("dtype")
        if not isinstance(dtype, torch.dtype):
            dtype = like[0].dtype if like else None
        if base in ("randint", "randperm", "arange", "multinomial") and dtype is None:
            dtype = torch.long
        made = fill((1,), CONSTANTS[base], dtype=torch.float32)
        made = made.to(dtype) if dtype is not None else made
        return made.requires_grad_() if kwargs.get("requires_grad") is True else made

    def replaced(self, name: str, args: Any, kwargs: Any) -> Any:
        try:
            return self.replacement(name, args, kwargs)
        except RuntimeError as error:
            if "leaf Variable" in str(error):
                raise
            return args[0]

    def replacement(self, name: str, args: Any, kwargs: Any) -> Any:
        tensors = [t for t in flat([*args, *kwargs.values()]) if t.is_floating_point()]
        if name in ("__setitem__", "index_fill_", "masked_fill_", "scatter_", "index_copy_"):
            others = [t for t in flat(args[1:]) if t.is_floating_point()]
            return args[0].copy_(small(others[-1])) if others else args[0].mul_(0.9)
        if name.endswith("_") and not name.endswith("__") and args and isinstance(args[0], torch.Tensor):
            return args[0].mul_(0.9) if len(tensors) < 2 else args[0].add_(small(tensors[1]))
        if not tensors:
            found = flat(args)
            return small(found[0]) if found else Anything.of(0.4, name)
        if name in ("to", "type", "type_as", "long", "int", "bool"):
            return args[0]
        if name in ("__index__", "__int__"):
            return 2
        if name in ("item", "tolist", "__float__"):
            return float(tensors[0].detach().reshape(-1)[0])
        if name in ("numpy", "__array__"):
            return tensors[0].detach().reshape(-1)[:1].numpy()
        if name in ("argmax", "argmin", "multinomial", "argsort", "nonzero"):
            return fill((1,), 0, dtype=torch.long)
        if name in SPLIT:
            count = args[1] if len(args) > 1 and name.endswith("chunk") and isinstance(args[1], int) else 3
            return Flexible([plain_sum([tensors[0]]) for _ in range(max(1, min(count, 16)))])
        if name in PAIRS and (
            (len(args) > 1 and isinstance(args[1], int)) or "dim" in kwargs or "k" in kwargs
        ):
            return Keep.apply(tensors[0]), fill((1,), 0, dtype=torch.long)
        if name in ("mean", "sum"):
            return Shrink.apply(tensors[0])
        if name in NOTHING_SAVED:
            return plain_sum(tensors)
        return Keep.apply(*tensors)


# ---------------------------------------------------------------------------- layers

made = [0]


def parameter() -> Any:
    """A parameter of its own value."""
    made[0] += 1
    return nn.Parameter(fill((1,), 0.5 + 0.2 * math.sin(made[0])))


WEIGHTED = (
    "Linear",
    "Conv",
    "Norm",
    "Embedding",
    "RNN",
    "GRU",
    "LSTM",
    "PReLU",
    "Bilinear",
    "Transformer",
    "Attention",
)
WITHOUT = ("InstanceNorm", "LocalResponseNorm", "CrossMapLRN", "Loss")
STAYS = (
    nn.Sequential,
    nn.ModuleList,
    nn.ModuleDict,
    nn.ParameterList,
    nn.ParameterDict,
    nn.DataParallel,
    nn.Identity,
    nn.Container,
)


NUMBERS = named(
    """in_channels out_channels in_features out_features num_features kernel_size stride padding dilation
    groups hidden_size num_layers num_embeddings embedding_dim input_size batch_first eps momentum
    padding_idx max_norm norm_type scale_grad_by_freq sparse num_heads embed_dim upscale_factor p
    inplace normalized_shape"""
)


class Layer(nn.Module):
    """Every layer: one weight if the real one has some, and what it saves."""

    kind = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        if any(part in self.kind for part in WEIGHTED) and not any(part in self.kind for part in WITHOUT):
            self.weight = parameter()
            if kwargs.get("bias") is not False and "Embedding" not in self.kind:
                self.bias = parameter()
            if any(part in self.kind for part in ("RNN", "GRU", "LSTM")):
                self.weight_hh_l0 = parameter()
                self.weight_ih_l0 = parameter()

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
        return cls()

    def __getattr__(self, name: str) -> Any:
        return 2 if name in NUMBERS else super().__getattr__(name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        kind = self.kind
        tensors = [t for t in flat([*args, *kwargs.values()]) if t.is_floating_point()]
        weight, bias = self._parameters.get("weight"), self._parameters.get("bias")
        if "Embedding" in kind and weight is not None:
            return weight + 0.01
        if any(part in kind for part in ("RNN", "GRU", "LSTM")):
            return self.recur(args, tensors)
        if not tensors:
            return Anything.of(0.4)
        if kind == "MultiheadAttention":
            return Keep.apply(*tensors[:3], weight), Keep.apply(tensors[0].detach())
        if weight is not None:
            if "Linear" in kind:
                product = tensors[0] * weight
                return product if bias is None else product + bias
            kept = Keep.apply(*tensors, weight)
            return kept if bias is None else kept + bias
        if "Loss" in kind:
            return Keep.apply(*tensors)
        if "Dropout" in kind:
            return tensors[0] * 0.9
        if kind in ("Flatten", "Unflatten", "PixelShuffle", "ZeroPad2d", "ReflectionPad2d"):
            return plain_sum(tensors[:1])
        if any(part in kind for part in ("Pool", "Upsample", "Pad", "Softmax", "Norm")):
            return Keep.apply(tensors[0])
        return torch.tanh(tensors[0])

    def recur(self, args: Any, tensors: Any) -> Any:
        state = flat(args[1:]) or [fill((1,), 0.2)]
        entering = (flat(args[:1]) or [fill((1,), 0.3)])[0].float()
        hidden = torch.tanh(entering * self.weight_ih_l0 + state[0] * self.weight_hh_l0 + self.weight)
        if "LSTM" in self.kind:
            cell = torch.sigmoid(hidden) * state[-1] + hidden * self.weight
            hidden = torch.tanh(cell) * hidden
            return (hidden, cell) if "Cell" in self.kind else (hidden + 0.0, (hidden.view(1), cell))
        return hidden if "Cell" in self.kind else (hidden + 0.0, hidden.view(1))


def replace_layers() -> None:
    for name in dir(nn):
        real = getattr(nn, name)
        if not (isinstance(real, type) and issubclass(real, nn.Module)) or real is nn.Module:
            continue
        if issubclass(real, STAYS):
            continue
        stand_in = type(name, (Layer,), {"kind": name, "__module__": "torch.nn"})
        setattr(nn, name, stand_in)
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("torch.nn.modules") and hasattr(module, name):
                setattr(module, name, stand_in)


# ---------------------------------------------------------------------------- the rest of the world


def nothing(*args: Any, **kwargs: Any) -> Any:
    return None


def first_argument(*args: Any, **kwargs: Any) -> Any:
    if args:
        return args[0]
    return first_argument


class Batches:
    """The iterator of a loader."""

    def __init__(self, items: list[Any]) -> None:
        self.left = items

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if not self.left:
            raise StopIteration
        return self.left.pop(0)

    next = __next__

    def __len__(self) -> int:
        return BATCHES


class Loader:
    """A loader: a few batches, whatever it is asked to load."""

    def __init__(self, dataset: Any = None, *args: Any, **kwargs: Any) -> None:
        self.dataset = dataset if isinstance(dataset, Anything) else Anything.of(0.3, "dataset")
        self.sampler = Anything.of(0.3, "sampler")
        self.batch_size = 2

    def __iter__(self) -> Any:
        return Batches([Anything.of(0.2 + 0.13 * k, "batch") for k in range(BATCHES)])

    def __len__(self) -> int:
        return BATCHES


class Unloaded(type):
    """Makes a data set of the project a stand-in: it would want its files."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return Anything.of(0.3, "dataset")


class Dataset(metaclass=Unloaded):
    """The base of the project's data sets."""


def replace_surroundings() -> None:
    torch.utils.data.DataLoader = Loader  # type: ignore[misc,assignment]
    torch.utils.data.Dataset = Dataset  # type: ignore[misc,assignment]
    torch.utils.data.dataset.Dataset = Dataset  # type: ignore[misc,assignment]
    torch.utils.data.random_split = lambda d, *a, **k: Flexible([d, d])  # type: ignore[assignment]
    for name in dir(nn.init):
        if (name.endswith("_") and not name.startswith("_")) or name in (
            "xavier_normal",
            "xavier_uniform",
            "kaiming_normal",
            "orthogonal",
            "normal",
            "uniform",
        ):
            setattr(nn.init, name, first_argument)
    for module in (nn.utils, nn.utils.rnn, torch.nn.utils.parametrizations):
        for name in ("spectral_norm", "weight_norm", "clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"):
            if hasattr(module, name):
                setattr(
                    module,
                    name,
                    first_argument
                    if "norm" in name and "clip" not in name
                    else lambda *a, **k: fill((1,), 1.0),
                )
        if hasattr(module, "pack_padded_sequence"):
            module.pack_padded_sequence = first_argument
            module.pad_packed_sequence = lambda x, *a, **k: (x, Anything.of(1.0, "lengths"))
            module.pad_sequence = lambda x, *a, **k: plain_sum(flat([x]))
    for dtype in (
        "FloatTensor",
        "DoubleTensor",
        "HalfTensor",
        "LongTensor",
        "IntTensor",
        "ByteTensor",
        "BoolTensor",
    ):
        kind = torch.long if dtype in ("LongTensor", "IntTensor", "ByteTensor") else torch.float32
        maker = lambda *a, kind=kind, **k: fill((1,), 1 if kind is torch.long else 0.45, dtype=kind)  # noqa: E731
        setattr(torch, dtype, maker)
        setattr(torch.cuda, dtype, maker)
    for name in list(dir(torch.optim)):
        real = getattr(torch.optim, name)
        if (
            isinstance(real, type)
            and issubclass(real, torch.optim.Optimizer)
            and real is not torch.optim.Optimizer
        ):
            replace_optimizer(real)
    for name in dir(torch.optim.lr_scheduler):
        if isinstance(getattr(torch.optim.lr_scheduler, name), type):
            setattr(torch.optim.lr_scheduler, name, Base)
    nn.Module.cuda = lambda self, *a, **k: self  # type: ignore[assignment,method-assign]
    nn.Module.to = lambda self, *a, **k: self  # type: ignore[assignment,method-assign]
    nn.Module.half = lambda self, *a, **k: self  # type: ignore[method-assign]
    nn.Module.load_state_dict = nothing  # type: ignore[assignment,method-assign]
    torch.save = nothing  # type: ignore[assignment]
    torch.load = lambda *a, **k: Anything.of(0.3, "loaded")  # type: ignore[assignment]
    torch.cuda.is_available = lambda: False  # type: ignore[assignment]
    torch.cuda.current_device = lambda: 0  # type: ignore[assignment]
    torch.cuda.set_device = nothing  # type: ignore[assignment]
    torch.set_default_tensor_type = nothing  # type: ignore[assignment]
    torch.Tensor.__format__ = lambda self, how: "0"  # type: ignore[assignment,method-assign]
    torch.Tensor.__iter__ = lambda self: iter(
        [self.reshape(-1)[:1].view(1) for _ in range(wanted(sys._getframe(1), 2))]
    )  # type: ignore[assignment,method-assign]
    torch.Tensor.astype = lambda self, *a, **k: self  # type: ignore[attr-defined]
    torch.distributions.Distribution.set_default_validate_args(False)
    wrap_torch()
    for module in (json, pickle):
        for name in ("load", "loads"):
            setattr(module, name, loading(getattr(module, name)))
    for name in ("run", "call", "check_call", "check_output", "Popen"):
        setattr(subprocess, name, lambda *a, **k: Anything.of(0.3, "process"))
    for name in ("init_process_group", "barrier", "all_reduce", "broadcast", "destroy_process_group"):
        setattr(torch.distributed, name, nothing)
    torch.distributed.get_rank = lambda *a: 0  # type: ignore[assignment]
    torch.distributed.get_world_size = lambda *a: 1  # type: ignore[assignment]
    torch.nn.parallel.DistributedDataParallel = first_argument  # type: ignore[assignment,misc]
    draw_from(random, "sample", lambda population, count, **k: [next(iter(population or [0]))] * int(count))
    draw_from(random, "randrange", lambda *a: 0)
    draw_from(random, "randint", lambda *a: 0)
    draw_from(random, "choice", lambda *a: Anything.of(0.3, "choice"))
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        draw_from(numpy.random, "choice", lambda a, size=None, **k: numpy.zeros(SIZE, dtype=int))
        draw_from(numpy.random, "randint", lambda *a, **k: 0)
        for name in ("load", "loadtxt", "genfromtxt"):
            setattr(sys.modules["numpy"], name, lambda *a, **k: Anything.of(0.3, "loaded"))
    sys.modules["torch.utils.cpp_extension"] = Missing("torch.utils.cpp_extension")
    real_isinstance, real_issubclass = builtins.isinstance, builtins.issubclass

    def tolerant(real: Any) -> Any:
        def ask(one: Any, kinds: Any) -> bool:
            try:
                return bool(real(one, kinds))
            except TypeError:
                return False

        return ask

    builtins.isinstance = tolerant(real_isinstance)
    builtins.issubclass = tolerant(real_issubclass)
    torch.jit.script = first_argument  # type: ignore[assignment]
    torch.compile = first_argument  # type: ignore[assignment]
    sys.modules["torch.utils.tensorboard"] = Missing("torch.utils.tensorboard")
    time.sleep = nothing
    for name in ("makedirs", "mkdir", "remove", "rename", "system"):
        setattr(os, name, nothing)
    os.listdir = lambda *a: ["a", "b", "c"]  # type: ignore[assignment]
    builtins.input = lambda *a: ""
    warnings.filterwarnings = warnings.simplefilter = nothing  # their classes may be stand-ins
    builtins.print = nothing
    real_open = builtins.open

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        try:
            return real_open(file, mode, *args, **kwargs)
        except (OSError, TypeError):
            return io.BytesIO(b"a b c\n") if "b" in mode else io.StringIO("a b c\n")

    builtins.open = io.open = opened  # type: ignore[assignment]
    itertools.izip = zip  # type: ignore[attr-defined]
    builtins.xrange = range  # type: ignore[attr-defined]
    builtins.unicode = str  # type: ignore[attr-defined]
    real_add = nn.Module.add_module

    def add_module(self: Any, name: str, module: Any) -> None:
        if not (module is None or isinstance(module, nn.Module)):
            module = nn.Linear(2, 2)
        real_add(self, name, module)

    nn.Module.add_module = add_module  # type: ignore[method-assign]
    real_argument = argparse.ArgumentParser.add_argument

    def add_argument(self: Any, *args: Any, **kwargs: Any) -> Any:
        missing = kwargs.pop("required", False) or (args and not str(args[0]).startswith("-"))
        action = real_argument(self, *args, **kwargs)
        if missing and action.default is None:
            action.nargs = "?" if not action.option_strings else action.nargs
            action.default = Anything.of(0.4, action.dest)
        return action

    argparse.ArgumentParser.add_argument = add_argument  # type: ignore[assignment,method-assign]
    nn.Parameter.__new__ = staticmethod(small_parameter(nn.Parameter.__new__))  # type: ignore[assignment]


def draw_from(owner: Any, name: str, otherwise: Any) -> None:
    """Let a random draw that is impossible in a small world be a constant."""
    real = getattr(owner, name)

    def draw(*args: Any, **kwargs: Any) -> Any:
        try:
            return real(*args, **kwargs)
        except Exception:
            return otherwise(*args, **kwargs)

    setattr(owner, name, draw)


def wrap_torch() -> None:
    """Let calls that torch refuses before anybody can intercept them be replaced as well."""
    world = World("/", "probe.py")

    def wrapped(real: Any, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return real(*args, **kwargs)
            except TypeError:
                if not flat([*args, *kwargs.values()]) or name in ("backward", "requires_grad_"):
                    raise
                with torch._C.DisableTorchFunction():
                    return world.replaced(name, args, kwargs)

        call.__name__ = name
        return call

    def made(name: str) -> Any:
        return lambda *args, **kwargs: world.constant(name, args, kwargs)

    for name in CONSTANTS:
        setattr(torch, name, made(name))
        if hasattr(torch, name + "_like"):
            setattr(torch, name + "_like", made(name + "_like"))
    for owner, kind in ((torch.Tensor, types.MethodDescriptorType), (torch, types.BuiltinFunctionType)):
        for name in dir(owner):
            real = getattr(owner, name)
            if type(real) is kind and not name.startswith("_") and name not in ("detach", "detach_", "numpy"):
                setattr(owner, name, wrapped(real, name))


def loading(real: Any) -> Any:
    def load(*args: Any, **kwargs: Any) -> Any:
        try:
            return real(*args, **kwargs)
        except Exception:
            return Anything.of(0.3, "loaded")

    return load


def small_parameter(real: Any) -> Any:
    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        data = fill((1,), 0.4) if not isinstance(data, torch.Tensor) else small(data.detach().clone())
        return real(cls, data.as_subclass(torch.Tensor) if type(data) is Anything else data, requires_grad)

    return new


def replace_optimizer(real: Any) -> None:
    init = real.__init__

    def small_init(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        groups = list(params) if not isinstance(params, torch.Tensor) else [params]
        kept = []
        for group in groups:
            if isinstance(group, tuple):
                group = group[1]
            if isinstance(group, dict):
                held = group["params"]
                held = [held] if isinstance(held, torch.Tensor) else list(held)
                kept.append({"params": held, "lr": 0.01})
            else:
                kept.append(group)
        init(self, kept, lr=0.01)

    real.__init__ = small_init


# ---------------------------------------------------------------------------- running


IMPORTANT = ("backward", "step", "zero_grad", "reset_grad")
LONG = 24
"""A loop over more numbers than this is cut short."""


def shortened(iterable: Any) -> Any:
    """What a loop goes over: of a long range only the first few numbers."""
    return iterable[:6] if isinstance(iterable, range) and len(iterable) > LONG else iterable


def substitute(error: Exception, names: tuple[str, ...], space: dict[str, Any]) -> Any:
    """What a statement computes that is impossible in a small world: something of all that it reads.

    Raises ``error`` again where it is autograd's own, or one with which code says something.
    """
    own = ("inplace operation", "second time", "does not require grad", "leaf Variable")
    if isinstance(error, StopIteration) or any(text in str(error) for text in own):
        raise error
    found: list[Any] = []
    for name in names:
        head, *rest = name.split(".")
        value = space.get(head)
        for attribute in rest:
            inner = getattr(value, attribute, None)
            value = getattr(inner, "__self__", inner) if callable(inner) else inner
        if isinstance(value, nn.Module):
            found += list(value.parameters())
        elif isinstance(value, Anything):
            found += [*value.weights(), value]
        else:
            found += [t for t in flat([value]) if t.is_floating_point()]
    kept = list({id(t): t for t in found}.values())
    if any(t.requires_grad for t in kept):
        return Keep.apply(*kept).as_subclass(Anything)
    return Anything.of(0.4, "result")


def spread(function: Any, given: Any, *args: Any, **keywords: Any) -> Any:
    """``function(*args, **keywords, **given)``: what is not known holds whatever the function asks for."""
    import inspect

    if not isinstance(given, Anything):
        return function(*args, **keywords, **given)
    try:
        asked = list(inspect.signature(function).parameters.values())[len(args) :]
    except (TypeError, ValueError):
        asked = []
    for one in asked:
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and one.default is one.empty:
            keywords.setdefault(one.name, given.child(one.name))
    return function(*args, **keywords)


def read(node: ast.AST) -> list[str]:
    """What an expression reads: variables, and attributes of attributes of them."""
    if isinstance(node, ast.Attribute):
        text = ast.unparse(node)
        return [text] if re.fullmatch(r"[\w.]+", text) else read(node.value)
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Load) else []
    return [name for inner in ast.iter_child_nodes(node) for name in read(inner)]


def forgiving(tree: ast.Module, watched: frozenset[int]) -> ast.Module:
    """The program with stand-ins for what statements cannot compute, and its lines watched."""

    class Forgive(ast.NodeTransformer):
        def guarded(self, node: ast.stmt, value: ast.expr, otherwise: Any) -> Any:
            """``node``, or what ``otherwise`` makes of the substitute for its value."""
            names = ast.Tuple([ast.Constant(name) for name in dict.fromkeys(read(value))], ast.Load())
            space = ast.parse("{**globals(), **locals()}", mode="eval").body
            call = ast.Call(
                ast.Name("substitute_", ast.Load()), [ast.Name("error_", ast.Load()), names, space], []
            )
            handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), "error_", [otherwise(call)])
            made = ast.Try(body=[node], handlers=[handler], orelse=[], finalbody=[])
            for inner in ast.walk(made):
                if not hasattr(inner, "lineno"):
                    ast.copy_location(inner, node)
            return made

        def visit_Try(self, node: ast.Try) -> Any:
            """Code that handles errors itself keeps them."""
            for block in (node.orelse, node.finalbody, *(h.body for h in node.handlers)):
                block[:] = [s for old in block for s in [self.visit(old)] if s is not None]
            if not node.handlers:
                node.body = [self.visit(s) for s in node.body]
            return node

        def visit_For(self, node: ast.For) -> Any:
            self.generic_visit(node)
            node.iter = ast.copy_location(
                ast.Call(ast.Name("shortened_", ast.Load()), [node.iter], []), node.iter
            )
            return node

        def visit_Call(self, node: ast.Call) -> Any:
            self.generic_visit(node)
            held = [k for k in node.keywords if k.arg is None]
            if len(held) != 1 or any(isinstance(a, ast.Starred) for a in node.args):
                return node
            others = [k for k in node.keywords if k.arg is not None]
            call = ast.Call(ast.Name("spread_", ast.Load()), [node.func, held[0].value, *node.args], others)
            return ast.fix_missing_locations(ast.copy_location(call, node))

        def visit_Assign(self, node: ast.Assign) -> Any:
            self.generic_visit(node)
            plain = not any(isinstance(n, ast.Subscript) for t in node.targets for n in ast.walk(t))
            return self.guarded(
                node, node.value, lambda call: ast.Assign(node.targets, call) if plain else ast.Expr(call)
            )

        def visit_AugAssign(self, node: ast.AugAssign) -> Any:
            self.generic_visit(node)
            return self.guarded(node, node.value, ast.Expr)

        def visit_Return(self, node: ast.Return) -> Any:
            self.generic_visit(node)
            return node if node.value is None else self.guarded(node, node.value, ast.Return)

        def visit_Expr(self, node: ast.Expr) -> Any:
            self.generic_visit(node)
            words = [getattr(n, "attr", "") for n in ast.walk(node)]
            calls = isinstance(node.value, ast.Call) and not any(word in IMPORTANT for word in words)
            return self.guarded(node, node.value, ast.Expr) if calls else node

        def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
            if node.module == "__future__" or any(alias.name == "*" for alias in node.names):
                return node
            absent = [
                ast.Assign(
                    targets=[ast.Name(alias.asname or alias.name, ast.Store())],
                    value=ast.Call(ast.Name("stand_in_", ast.Load()), [ast.Constant(alias.name)], []),
                )
                for alias in node.names
            ]
            handler = ast.ExceptHandler(ast.Name("ImportError", ast.Load()), None, [*absent])
            guarded = ast.Try(body=[node], handlers=[handler], orelse=[], finalbody=[])
            return ast.fix_missing_locations(ast.copy_location(guarded, node))

        def visit_Assert(self, node: ast.Assert) -> Any:
            return ast.copy_location(ast.Pass(), node)

    return ast.fix_missing_locations(Forgive().visit(tree))


def outline(text: str) -> ast.Module:
    """A module of the project that is no Python of today: stand-ins for what it defines."""
    names = dict.fromkeys(re.findall(r"^(?:class|def)\s+(\w+)", text, re.MULTILINE))
    lines = [f"{name} = stand_in_({name!r})" for name in names]
    lines += ["def __getattr__(name):", "    if name[:2] == '__': raise AttributeError(name)"]
    return ast.parse("\n".join([*lines, "    return stand_in_(name)"]))


def watch(path: str, watched: frozenset[int]) -> None:
    """Say on standard error which of the watched lines run."""
    left = set(watched)

    def local(frame: Any, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_lineno in left:
            left.discard(frame.f_lineno)
            sys.stderr.write(f"ran {frame.f_lineno}\n")
            sys.stderr.flush()
            if not left:
                sys.settrace(None)
        return local

    def trace(frame: Any, event: str, argument: Any) -> Any:
        return local if frame.f_code.co_filename == path and left else None

    if left:
        sys.settrace(trace)


NETWORK = re.compile(
    r"net|model|gen|dis|critic|actor|policy|coder|rnn|lstm|classif|^[GDEF]$|^[a-z]?[GD](_|$)"
)
OPTIMIZER = re.compile(r"opti?m|_opt|opt_|^opt$|solver", re.IGNORECASE)


def letters(name: str) -> str:
    """What tells one network, or its optimizer, from another in a name."""
    return re.sub(r"optimi[sz]er|optim|opt|solver|net|model|_", "", name, flags=re.IGNORECASE).lower()


def enter(space: dict[str, Any], name: str) -> None:
    """Call a function or method of the file with arguments that stand in for anything."""
    import inspect

    def arguments(function: Any, skip: int, known: Any = ()) -> list[Any]:
        """Stand-ins for what a function is to be called with; networks and optimizers are those ``known``."""
        wanted = [
            p.name
            for p in list(inspect.signature(function).parameters.values())[skip:]
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            and (p.default is p.empty or (p.default is None and "loss" in p.name))
        ]
        given = {name: Anything.of(0.3 + 0.05 * n, name) for n, name in enumerate(wanted)}
        owner = getattr(function, "__self__", None)
        for name in wanted:
            if "loss" in name and isinstance(owner, nn.Module):
                # Computed outside, from the network of the same initial if there is one.
                own = [p for n, c in owner.named_children() if n[:1] == name[:1] for p in c.parameters()]
                given[name] = Keep.apply(*(own or owner.parameters())).as_subclass(Anything)
        networks = [name for name in wanted if NETWORK.search(name) and not OPTIMIZER.search(name)]
        used = function.__code__.co_names if isinstance(function, types.FunctionType) else ()
        for name in wanted:
            if name == "opt" and not {"step", "zero_grad"}.intersection(used):
                continue  # options
            if OPTIMIZER.search(name):
                own = [n for n in networks if letters(n)[:1] == letters(name)[:1]] or networks
                given[name] = torch.optim.SGD([given[n].parameter_() for n in own] or [parameter()])
            elif "scaler" in name.lower():
                given[name] = torch.cuda.amp.GradScaler(enabled=False)
        given.update((name, one) for name, one in zip(wanted, known) if lasts(one))
        stepping = {n: o for n, o in given.items() if isinstance(o, torch.optim.Optimizer)}
        for name in wanted:
            if "loss" in name and stepping and not isinstance(owner, nn.Module):
                # Computed outside, from what an optimizer of the same initial owns if there is one.
                like = [o for n, o in stepping.items() if letters(n)[:1] == name[:1]]
                own = [p for o in like or stepping.values() for g in o.param_groups for p in g["params"]]
                given[name] = Keep.apply(*own).as_subclass(Anything)
        return list(given.values())

    if "." not in name:
        repeatedly(space[name], arguments)
        return
    owner, method = name.split(".")[:2]
    cls = space[owner]
    one = cls.__new__(cls)
    with contextlib.suppress(Exception):
        one.__init__(*arguments(cls.__init__, 1))
    if not isinstance(one, nn.Module):
        cls.__getattr__ = Base.__getattr__  # What was not set up is a stand-in.
    if method == "__init__":
        return
    repeatedly(getattr(one, method), arguments)


def lasts(value: Any) -> bool:
    """Whether an argument is the same from call to call: a network or an optimizer."""
    return isinstance(value, torch.optim.Optimizer) or (
        isinstance(value, Anything) and "_parameter" in value.__dict__
    )


def requires(value: Any) -> bool:
    return isinstance(value, Anything) and value.requires_grad


def repeatedly(function: Any, arguments: Any) -> None:
    """Call a function for a few batches: with the same networks and optimizers, and other data."""
    first = arguments(function, 0)
    for number in range(BATCHES):
        fresh = (
            arguments(function, 0, first)
            if number and any(requires(one) for one in first)
            else [
                Anything.of(0.3 + 0.05 * n + 0.11 * number, one.__dict__.get("label", ""))
                if isinstance(one, Anything) and "_parameter" not in one.__dict__ and not requires(one)
                else one
                for n, one in enumerate(first)
            ]
        )
        function(*fresh)


def perform(path: str, root: str, text: str, entry: str, watched: list[int]) -> None:
    """Run the training code ``text`` of ``path``: as a script, or one function of it."""
    main = sys.modules["__main__"].__dict__
    inside = os.path.relpath(os.path.dirname(path), root)
    main["__package__"] = "" if inside == "." else inside.replace(os.sep, ".")
    builtins.stand_in_ = lambda name: Anything.of(0.5, name)  # type: ignore[attr-defined]
    builtins.substitute_, builtins.shortened_ = substitute, shortened  # type: ignore[attr-defined]
    builtins.spread_ = spread  # type: ignore[attr-defined]
    for folder in (root, os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    sys.meta_path.append(Finder())
    replace_layers()
    replace_surroundings()
    real_code = importlib.machinery.SourceFileLoader.source_to_code

    def source_to_code(self: Any, data: Any, path: Any, **kwargs: Any) -> Any:
        if str(path).startswith(root):
            try:
                data = forgiving(ast.parse(data), frozenset())
            except SyntaxError:
                data = outline(bytes(data).decode(errors="replace"))
        return real_code(self, data, path, **kwargs)

    importlib.machinery.SourceFileLoader.source_to_code = source_to_code  # type: ignore[assignment,method-assign]
    tree = forgiving(ast.parse(text), frozenset(watched))
    if entry:
        main["__name__"] = "entered"
    watch(path, frozenset(watched))
    with World(root, "probe.py"):
        if entry:
            try:
                exec(compile(tree, path, "exec", dont_inherit=True), main)
            except Exception:
                if entry.split(".")[0] not in main:
                    raise
            enter(main, entry)
        else:
            exec(compile(tree, path, "exec", dont_inherit=True), main)
