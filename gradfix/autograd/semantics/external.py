"""What the model knows about functions and classes of libraries, by dotted name."""

from __future__ import annotations

from gradfix.autograd import operators
from gradfix.autograd.arguments import Call
from gradfix.autograd.engine import havoc, prepares
from gradfix.autograd.parameters import leaves_of
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import FUNCTIONS, called, functions_of, other_methods
from gradfix.autograd.semantics.layers import CONTAINERS, deep_copy
from gradfix.autograd.semantics.libraries import ARRAYS, HARMLESS, METRICS, NETWORKS, WEIGHT_NORMS, WRAPPERS
from gradfix.autograd.semantics.names import canonical, member
from gradfix.autograd.semantics.operations import made_by, note_unknown, unknown
from gradfix.autograd.semantics.optimizers import AVERAGES, OPTIMIZERS, follower, make_optimizer
from gradfix.autograd.semantics.unknown import call_unknown
from gradfix.autograd.values import (
    Array,
    ImportedName,
    Module,
    ParameterIterable,
    SummaryTensor,
    Unknown,
    Value,
    graphless_value,
    hides_graph,
    tensors_in,
)


@called(ImportedName)
def _call_external(run: Run, value: ImportedName, call: Call) -> Value:
    return call_external(run, Call(call.args, call.keywords, call.site, call.discarded, value.name))


@other_methods(ImportedName)
def _external_member(
    run: Run,
    base: ImportedName,
    call: Call,
) -> Value:
    return call_external(
        run, Call(call.args, call.keywords, call.site, call.discarded, member(base.name, call.name).name)
    )


def starred(run: Run, name: str) -> ImportedName | None:
    """What an unbound name stands for after ``from module import *``, where the model knows of it."""
    if not run.starred:
        return None
    for module in run.starred:
        full = canonical(f"{module}.{name}")
        if known(full):
            return ImportedName(full)
    return None


def call_external(run: Run, call: Call) -> Value:
    """Call something imported, or a builtin."""
    for transfer in functions_of(call.name):
        value = transfer(run, call)
        if value is not None:
            return value
    last = call.name.rsplit(".", 1)[-1]
    root = call.name.split(".", 1)[0]
    first = call.args[0][0] if call.args else None
    if call.name in WRAPPERS and first is not None:
        if last in WEIGHT_NORMS:
            run.remade.update(leaves_of(first)[0])
        return first
    if (isinstance(first, (ParameterIterable, SummaryTensor)) and last[:1].isupper()) or last in OPTIMIZERS:
        return make_optimizer(run, last, call)
    if last == "deepcopy" and first is not None:
        return deep_copy(first)
    if call.name in AVERAGES:
        return follower(last, [])
    if root in NETWORKS:
        function = Unknown(last)
        function.library = True
        made = _harmless(run, last, call) if root in HARMLESS else call_unknown(run, function, call)
        if isinstance(made, Unknown):
            made.library = made.node is None
        return made
    if root in HARMLESS or call.name.startswith(UNCONCERNED):
        if any(isinstance(v, Module) for v, _ in call.args) and root not in HARMLESS:
            havoc(run, call.values, call.site, preparing=prepares(run, last))
        return _harmless(run, last, call)
    function = Unknown(last)
    function.library = root in METRICS
    if root == "torch":
        note_unknown(run, call.name, [*call.args, *call.keywords.values()], call.site)
    made = made_by(call_unknown(run, function, call), function, call.args)
    if isinstance(made, Unknown) and made.node is None:
        made.library = function.library
    return made


UNCONCERNED = ("torch.utils.", "torch.distributed.", "torch.nn.utils.clip")
"""Parts of torch that do nothing to gradients but in a network that they are handed."""


def known(name: str) -> bool:
    """Whether a dotted name is one that the model knows something of."""
    if name in FUNCTIONS or name in WRAPPERS or operators.function(name) or operators.module(name):
        return True
    package, _, last = name.rpartition(".")
    return (package == "torch.optim" and last in OPTIMIZERS) or (
        package in ("torch", "torch.nn") and last in {*CONTAINERS, "nn", "optim", "autograd", "Module"}
    )


def _harmless(run: Run, last: str, call: Call) -> Value:
    """What something of a harmless library gives."""
    name, root = call.name, call.name.split(".", 1)[0]
    if root in ("torchvision", "torchaudio", "collections", "copy", "typing"):
        made = unknown(run, call.args, call.keywords, call.site, last)
        if name.startswith(("torchvision.transforms.", "torchaudio.transforms.")) and isinstance(
            made, Unknown
        ):
            made.harmless = made.node is None
        return made
    if name in ARRAYS:
        kind = call.argument("dtype", ARRAYS[name])
        if kind is None or (isinstance(kind, ImportedName) and "object" not in kind.name):
            return Array(last)
    if root == "numpy" and not any(hides_graph(value) or tensors_in(value) for value in call.values):
        return graphless_value(last, *call.values)
    result = Unknown(last)
    # A logger, a progress bar, a plot: what is done with it only tells.
    result.harmless = root in ("logging", "wandb", "tensorboardX", "visdom", "tqdm", "argparse") or last in (
        "SummaryWriter",
    )
    return result
