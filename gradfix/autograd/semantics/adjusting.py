"""What adjusts gradients and learning rates between one step and the next.

Gradients are clipped; a ``GradScaler`` multiplies losses, divides gradients again (``unscale_``), steps and
updates its scale; a schedule goes on to its next learning rate. None of it computes or clears a gradient:
each is an event with its place in the order of things. So is a layer that is replaced when an optimizer owns
it already.
"""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Call
from gradfix.autograd.engine import step
from gradfix.autograd.graph import Advance, Backward, Clip, Leaf, Replacement, Unscale, Update
from gradfix.autograd.parameters import leaves_of, module_leaves
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.operations import scaled
from gradfix.autograd.values import NONE, Const, Module, Opaque, Optimizer, Scaler, Schedule, Tensor, Value


def clip(run: Run, call: Call) -> Value:
    """``torch.nn.utils.clip_grad_norm_(parameters, max_norm)`` and the like: of whatever make."""
    given = call.argument("parameters", 0)
    tops, known = leaves_of(given) if given is not None else ([], False)
    leaves = [leaf for top in tops for leaf in top.family()]
    event = Clip(run.home(call.site), run.path, run.tick(), leaves)
    event.doubtful = not known or any(leaf.unknown_grad for leaf in leaves)
    lent = [leaf for state in run.strangers for leaf in state.leaves]
    for leaf in dict.fromkeys((*leaves, *lent)):
        event.held[leaf] = _held(leaf)
    run.events.append(event)
    return Opaque("norm")


def _held(leaf: Leaf) -> dict[Backward, bool]:
    return {backward: bool(one.consumed) for backward, one in (leaf.grad or {}).items()}


def scale(run: Run, scaler: Scaler | Opaque, call: Call) -> Value:
    """``scaler.scale(loss)``: the loss, multiplied."""
    value, expression = call.args[0]
    if not isinstance(value, (Tensor, Opaque)):
        return value
    result = scaled(run, scaler, value, expression, call.site)
    if not (isinstance(scaler, Scaler) and scaler.enabled is False):
        run.scaled[result] = scaler
        if isinstance(result, (Tensor, Opaque)) and result.node is not None:
            run.scaled[result.node] = scaler
    return result


def scaler_method(run: Run, scaler: Scaler | Opaque, call: Call, optimizer: Value | None) -> Value | None:
    """``step`` and ``unscale_`` for an optimizer, or ``update``; None for what changes nothing."""
    if call.name == "update":
        run.events.append(Update(run.home(call.site), run.path, run.tick(), scaler))
        return NONE
    if isinstance(optimizer, Optimizer):
        if call.name == "step":
            step(run, optimizer, call.site, scaler)
            return NONE
        if call.name == "unscale_":
            run.events.append(Unscale(run.home(call.site), run.path, run.tick(), scaler, optimizer.state))
            return NONE
    return None


def make_schedule(label: str, call: Call) -> Value | None:
    """A schedule of learning rates for the optimizer that it is given first; None where that is not known."""
    optimizer = call.argument("optimizer", 0)
    if not isinstance(optimizer, Optimizer):
        return None
    last = call.keywords.get("last_epoch")
    first = last is None or (isinstance(last[0], Const) and last[0].value == -1)
    made = Schedule(label, optimizer.state, not first or "**" in call.keywords)
    made.attributes["optimizer"] = optimizer
    return made


def advance(run: Run, schedule: Schedule, call: Call) -> None:
    """``scheduler.step()``; who says which value it goes on to, or by what, sets the rate himself."""
    if not call.given and not schedule.resumed:
        event = Advance(run.home(call.site), run.path, run.tick(), schedule, schedule.optimizer_state)
        event.calls = tuple(site for site, _ in run.stack)
        run.events.append(event)


def replace(run: Run, holder: Module | Opaque, name: str, layer: Module, node: ast.AST) -> None:
    """``network.head = layer``, where an optimizer may own the layer that was there before."""
    before = holder.attributes.get(name)
    whole = [holder.leaf] if isinstance(holder, Opaque) and holder.leaf is not None else []
    old = module_leaves(before) if isinstance(before, Module) else whole
    owners = [o.state for o in run.optimizers if not set(old).isdisjoint(o.state.leaves)]
    leaves = module_leaves(layer)
    if owners and leaves and set(leaves).isdisjoint(old):
        event = Replacement(run.home(node), run.path, run.tick(), owners, leaves, whole)
        run.events.append(event)
