"""Canonical names of what libraries export under several."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache

from gradfix.autograd.values import ImportedName

BUILTINS = frozenset(dir(builtins))


ALIASES = {
    "torch.autograd.variable.Variable": "torch.autograd.Variable",
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
    "torch.nn.modules.module.Module": "torch.nn.Module",
    **{
        f"torch.{package}.{name}": f"torch.{name}"
        for package in ("autograd", "autograd.grad_mode")
        for name in ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled")
    },
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    **{
        f"torch.nn.utils.{norm}.{name}": f"torch.nn.utils.{name}"
        for norm in ("weight_norm", "spectral_norm")
        for name in (norm, f"remove_{norm}")
    },
    "torch.Tensor": "torch.FloatTensor",
    "builtins.xrange": "builtins.range",
    "itertools.izip": "builtins.zip",
    **{f"six.moves.{name}": f"builtins.{name}" for name in ("range", "zip", "map", "filter")},
    **{f"{module}.xrange": "builtins.range" for module in ("six.moves", "past.builtins")},
}
"""Other import paths of the same thing."""


def canonical(name: str) -> str:
    """The one dotted name under which the model knows something of torch."""
    return ALIASES.get(name, name)


@lru_cache(maxsize=4096)
def member(package: str, name: str) -> ImportedName:
    """What a package from outside calls ``name``."""
    return ImportedName(canonical(f"{package}.{name}"))


FUNCTION = "torch.autograd.Function"


TENSORS = frozenset({"torch.FloatTensor", "torch.autograd.Variable"})
"""The types of all tensors."""
NO_TENSORS = frozenset(
    """builtins.float builtins.int builtins.bool builtins.complex builtins.str numbers.Number numbers.Real
    numpy.ndarray numpy.generic numpy.number numpy.floating numpy.float32 numpy.float64""".split()
)
"""Types of numbers, texts and arrays: none of them has a graph."""
TYPES = frozenset({*TENSORS, *NO_TENSORS, "torch.nn.Parameter"})
"""Types that exclude each other: no value is of two of them."""
OF_TENSORS = frozenset({"detach", "backward", "grad_fn", "requires_grad"})
"""Attributes that only tensors have, and no numbers or arrays."""


GRAD_CONTEXTS = {"torch.no_grad": False, "torch.inference_mode": False, "torch.enable_grad": True}
"""The contexts that need no argument, with whether graphs are recorded in them."""


MODULE_METHODS = frozenset(
    """parameters named_parameters zero_grad train eval to cuda cpu float double half bfloat16 type apply
    share_memory requires_grad_ state_dict load_state_dict named_modules modules children named_children
    register_buffer register_parameter add_module register_module buffers named_buffers append extend insert
    items values keys get_submodule get_parameter register_forward_hook register_full_backward_hook
    register_backward_hook register_forward_pre_hook set_extra_state compile to_empty pop update
    get_extra_state register_full_backward_pre_hook register_comm_hook _set_static_graph
    _get_name extra_repr manual_backward optimizers flatten_parameters""".split()
)


CONTEXT = frozenset("save_for_backward mark_dirty mark_non_differentiable set_materialize_grads".split())
"""Methods by which an operation of the project says what its own backward needs."""


def is_of_networks(name: str) -> bool:
    """Whether this is the name of a part of ``torch.nn``: what is made by it is a network, or a layer."""
    return name.startswith("torch.nn.")


def asks_for_gradient(test: ast.expr, target: ast.expr) -> bool:
    """Whether this is ``p.requires_grad`` where ``p`` is what a comprehension goes over, by name or not."""
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    return (
        isinstance(test, ast.Attribute)
        and test.attr == "requires_grad"
        and isinstance(test.value, ast.Name)
        and isinstance(target, ast.Name)
        and test.value.id == target.id
    )
