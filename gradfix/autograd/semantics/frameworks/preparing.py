"""Objects that prepare networks and optimizers for training: ``Accelerator`` of accelerate, ``Fabric``.

They wrap what they are given: to autograd a prepared network is that network. What is prepared has to be
differentiated through their ``backward``, which scales losses, divides them by the batches that are
accumulated, or hands them to DeepSpeed. Facts from the documentation of accelerate 1.15 and lightning 2.6.
"""

from __future__ import annotations

from gradfix.autograd.arguments import Argument, Call
from gradfix.autograd.engine import backward
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import function, method
from gradfix.autograd.values import NONE, Module, Optimizer, Preparer, Sequence, Unknown, Value

PREPARING = frozenset(
    """prepare prepare_model prepare_optimizer setup setup_module setup_optimizers setup_dataloaders
    prepare_data_loader unwrap_model""".split()
)
"""Methods of an ``Accelerator`` or a ``Fabric`` that give back what they are given, wrapped."""


@function("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
@function("lightning.Fabric", "lightning.fabric.Fabric", "lightning.fabric.fabric.Fabric")
@function("lightning_fabric.Fabric", "lightning.pytorch.Fabric")
def _preparer(run: Run, call: Call) -> Value:
    made = Preparer(call.name.rsplit(".", 1)[-1])
    run.preparers.append(made)
    return made


@method(Preparer, "backward")
def _backward(run: Run, preparer: Preparer, call: Call) -> Value | None:
    if not call.args:
        return None
    event = backward(run, [call.args[0]], Call([], call.keywords, call.site))
    event.through = preparer
    return NONE


@method(Unknown, *PREPARING)
def _prepare(run: Run, value: Unknown, call: Call) -> Value | None:
    """Of an ``Accelerator`` or a ``Fabric``: what it is given, wrapped."""
    if call.discarded:
        return None
    if isinstance(value, Preparer) and call.name != "unwrap_model":
        value.prepared += [(given, written, call.site) for given, written in call.args]
    return prepared(call.args, sure=isinstance(value, Preparer))


def prepared(args: list[Argument], sure: bool = False) -> Value | None:
    """What preparing these gives; None where that is not ``sure`` and there is no network or optimizer."""
    values = [value for value, _ in args]
    if not values or not (sure or any(isinstance(value, (Module, Optimizer)) for value in values)):
        return None
    for value in values:
        if isinstance(value, Optimizer):
            value.state.wrapped = True
    return values[0] if len(values) == 1 else Sequence("tuple", values)
