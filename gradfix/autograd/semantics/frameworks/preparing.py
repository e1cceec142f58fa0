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
    name = call.name.rsplit(".", 1)[-1]
    batches = call.keywords.get("gradient_accumulation_steps", (NONE, None))[0]
    accumulates = batches is not NONE and getattr(batches, "value", None) != 1
    made = Preparer(name, waits=name != "Fabric", accumulates=accumulates)
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
    return prepared(call.args, value if isinstance(value, Preparer) else None)


def prepared(args: list[Argument], preparer: Preparer | None = None) -> Value | None:
    """What preparing these gives; None where nothing is known to prepare, and no network or optimizer is
    among them.

    What is not known may let optimizers wait, as an ``Accelerator`` does.
    """
    values = [value for value, _ in args]
    if not values or not (preparer or any(isinstance(value, (Module, Optimizer)) for value in values)):
        return None
    for value in values:
        if isinstance(value, Optimizer):
            value.state.wrapped = preparer is None or preparer.waits
    return values[0] if len(values) == 1 else Sequence("tuple", values)


@method(Preparer, "print", "log", "log_dict", "save", "save_state", "save_model", "barrier", "launch")
@method(Preparer, "wait_for_everyone", "init_trackers", "end_training", "free_memory", "seed_everything")
def _tell(run: Run, preparer: Preparer, call: Call) -> Value:
    """What tells, writes or waits, and leaves networks and graphs as they are."""
    return Unknown(call.name)


@method(Preparer, "gather", "gather_for_metrics", "reduce", "pad_across_processes", "all_reduce", "to_device")
def _collect(run: Run, preparer: Preparer, call: Call) -> Value | None:
    """What collects from all processes: of one process, what it is given."""
    return call.args[0][0] if call.args else None
