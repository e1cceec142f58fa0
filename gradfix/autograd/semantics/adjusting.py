"""Clipping, unscaling and learning-rate schedules.

Gradients are clipped; a schedule goes on to its next learning rate; a layer is replaced when an optimizer
owns it already. None of this computes or clears a gradient; each is recorded as an event.
"""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Call
from gradfix.autograd.graph import Backward, Clip, Leaf, Replacement, SchedulerStep
from gradfix.autograd.parameters import go_through, leaves_of, module_leaves
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import before_methods, function, method, package
from gradfix.autograd.values import (
    Const,
    Module,
    Optimizer,
    ParameterIterable,
    Scheduler,
    Tensor,
    Unknown,
    Value,
)


@function(
    *(
        f"torch.nn.utils.{module}{name}"
        for module in ("", "clip_grad.")
        for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")
    ),
    *(
        f"timm.utils.{name}"
        for name in (
            *("dispatch_clip_grad", "clip_grad.dispatch_clip_grad"),
            *("adaptive_clip_grad", "agc.adaptive_clip_grad"),
        )
    ),
)
def clip(run: Run, call: Call) -> Value:
    """``torch.nn.utils.clip_grad_norm_(parameters, max_norm)`` and the like: of whatever make."""
    given = call.argument("parameters", 0)
    tops, known = leaves_of(given) if given is not None else ([], False)
    if isinstance(given, ParameterIterable) and given.made is not None and given.exhausted_by is not None:
        tops = []
    if given is not None:
        go_through(run, given, call.site)
    note_clipping(run, [leaf for top in tops for leaf in top.family()], known, call.site)
    return Unknown("norm")


def note_clipping(run: Run, leaves: list[Leaf], known: bool, site: ast.AST) -> None:
    """The gradients of some parameters are clipped where they are; ``known`` if these are all."""
    event = Clip(run.site_in_file(site), run.loops, run.next_serial(), leaves)
    event.doubtful = not known or any(leaf.unknown_grad for leaf in leaves)
    lent = [leaf for state in run.external_optimizers for leaf in state.leaves]
    for leaf in dict.fromkeys((*leaves, *lent)):
        event.held[leaf] = _held(leaf)
    run.events.append(event)


@method(Unknown, "clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_gradients")
def _clip(run: Run, value: Unknown, call: Call) -> Value:
    """As an ``Accelerator`` or a ``Fabric`` does."""
    return clip(run, call)


def _held(leaf: Leaf) -> dict[Backward, bool]:
    return {backward: bool(one.consumed) for backward, one in (leaf.grad or {}).items()}


@package("transformers", "diffusers")
def _of_library(run: Run, call: Call) -> Value | None:
    """``get_linear_schedule_with_warmup(optimizer, ...)``."""
    return make_schedule(run, call) if "schedule" in call.name.rpartition(".")[2] else None


def make_schedule(run: Run, call: Call, last: Value | None = None) -> Value | None:
    """A schedule of learning rates for the optimizer that it is given first; None where that is not known.

    It begins with its first value if the ``last`` epoch, where it is given, is -1.
    """
    optimizer = call.argument("optimizer", 0)
    if run.symbols is not None and optimizer is not None:
        run.symbols.note_stepped(optimizer)
    if not isinstance(optimizer, Optimizer):
        return None
    if last is None and "last_epoch" in call.keywords:
        last = call.keywords["last_epoch"][0]
    first = last is None or (isinstance(last, Const) and last.value == -1)
    made = Scheduler(call.name, optimizer.state, not first or "**" in call.keywords)
    made.attributes["optimizer"] = optimizer
    return made


@before_methods(Scheduler)
def _of_schedule(run: Run, schedule: Scheduler, call: Call) -> Value:
    """``scheduler.step()``; who says which value it goes on to, or by what, sets the rate himself."""
    if call.name == "step" and not call.given and not schedule.resumed:
        event = SchedulerStep(
            run.site_in_file(call.site), run.loops, run.next_serial(), schedule, schedule.optimizer_state
        )
        event.calls = tuple(site for site, _ in run.stack)
        run.events.append(event)
    result = Unknown(call.name)
    result.harmless = True
    return result


def replace_parameter(run: Run, holder: Module, name: str, new: Leaf, node: ast.AST) -> None:
    """``layer.weight = nn.Parameter(...)``: an optimizer may own the parameter that was there.

    Who is given back what optimizers own was changed for a while only, to be evaluated for one.
    """
    before = holder.attributes.get(name)
    known = before.leaf if isinstance(before, Tensor) else None
    if any(new in one.state.leaves for one in run.optimizers):
        for event in run.events:
            if isinstance(event, Replacement) and event.leaves == [known]:
                event.undone = True
        return
    of_layer = holder.leaf if holder.kind != "user" and name in ("weight", "bias") else None
    old = known if known is not None else of_layer
    owners = [one.state for one in run.optimizers if old in one.state.leaves]
    if owners and new is not old:
        now = run.site_in_file(node), run.loops, run.next_serial()
        whole = [of_layer] if of_layer is not None else []
        run.events.append(Replacement(*now, owners, [new], whole, False, one_parameter=True))


def replace(run: Run, holder: Module | Unknown, name: str, layer: Module, node: ast.AST) -> None:
    """``network.head = layer``: an optimizer may own the layer that was there, or the whole network."""
    before = holder.attributes.get(name)
    whole = [holder.leaf] if isinstance(holder, Unknown) and holder.leaf is not None else []
    old = module_leaves(before) if isinstance(before, Module) else whole
    owners = [o.state for o in run.optimizers if not set(old).isdisjoint(o.state.leaves)]
    leaves = module_leaves(layer)
    added = not owners and before is None and isinstance(holder, Module)
    if added and isinstance(holder, Module):
        held = set(module_leaves(holder))
        owners = [
            o.state
            for o in run.optimizers
            if held and any(held <= {*w} for w in o.state.whole_networks or ())
        ]
    if owners and leaves and set(leaves).isdisjoint(old):
        now = run.site_in_file(node), run.loops, run.next_serial()
        run.events.append(Replacement(*now, owners, leaves, whole, added))
