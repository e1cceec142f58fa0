"""Mixed precision: torch's ``GradScaler`` and apex."""

from __future__ import annotations

from gradfix.autograd.arguments import Call, flag
from gradfix.autograd.engine import step
from gradfix.autograd.graph import ScalerUpdate, Unscale
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import function, method, other_methods
from gradfix.autograd.semantics.operations import scaled, simple
from gradfix.autograd.semantics.unknown import adopted
from gradfix.autograd.values import (
    NONE,
    ImportedName,
    Optimizer,
    ParameterIterable,
    ScaledLossContext,
    Scaler,
    Sequence,
    Tensor,
    Unknown,
    Value,
)


@method(Scaler, "scale")
def _scale(run: Run, scaler: Scaler, call: Call) -> Value | None:
    if not call.args:
        return None
    value, expression = call.args[0]
    if isinstance(value, (Tensor, Unknown)):
        return scaled(run, scaler, value, expression, call.site)
    return value


@method(Scaler, "step")
def _step(run: Run, scaler: Scaler, call: Call) -> Value | None:
    optimizer = _given(run, call)
    if optimizer is None:
        return None
    step(run, optimizer, call.site, scaler)
    return NONE


@method(Scaler, "unscale_")
@method(Unknown, "unscale_")
def _unscale(run: Run, scaler: Scaler | Unknown, call: Call) -> Value | None:
    optimizer = _given(run, call)
    if optimizer is None:
        return None
    run.events.append(
        Unscale(run.site_in_file(call.site), run.loops, run.next_serial(), scaler, optimizer.state)
    )
    return NONE


@method(Scaler, "update")
@method(Unknown, "update")
def _update(run: Run, scaler: Scaler | Unknown, call: Call) -> Value | None:
    """Of something unknown only if it has scaled a loss."""
    if isinstance(scaler, Unknown) and scaler not in run.scaled.values():
        return None
    run.events.append(ScalerUpdate(run.site_in_file(call.site), run.loops, run.next_serial(), scaler))
    return NONE


def _given(run: Run, call: Call) -> Optimizer | None:
    """The optimizer that a scaler is handed first."""
    first = call.args[0][0] if call.args else NONE
    if run.symbols is not None:
        run.symbols.note_stepped(first)
    optimizer = adopted(run, first) or first
    return optimizer if isinstance(optimizer, Optimizer) else None


@other_methods(Scaler)
def _other_method(run: Run, scaler: Scaler, call: Call) -> Value:
    return Unknown(call.name)


@function("torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler")
def grad_scaler(run: Run, call: Call) -> Value:
    """``GradScaler(enabled=True)``."""
    if "**" in call.keywords:
        return Scaler(None)
    return Scaler(flag(call.keywords["enabled"][0], True)) if "enabled" in call.keywords else Scaler()


@function("apex.amp.scale_loss")
def scale_loss(run: Run, call: Call) -> Value:
    """``with apex.amp.scale_loss(loss, optimizer) as scaled: scaled.backward()``."""
    given = call.args[0] if call.args else call.keywords.get("loss")
    if given is None:
        return Unknown("scale_loss")
    return ScaledLossContext(simple(run, "mul", [given, (Tensor(), given[1])], call.site))


@function("apex.amp.initialize")
def amp_initialize(run: Run, call: Call) -> Value:
    """``apex.amp.initialize(models, optimizers, ...)``: what it is handed, patched."""
    models, optimizers = (
        call.argument("models", 0),
        call.argument("optimizers", 1),
    )
    if models is None:
        return Unknown("initialize")
    if optimizers is None or optimizers is NONE:
        return models
    return Sequence("tuple", [models, optimizers])


@function("apex.amp.init")
def amp_handle(run: Run, call: Call) -> Value:
    """``handle = apex.amp.init()``: the older interface, whose handle scales losses as the module does."""
    return ImportedName("apex.amp")


@function("apex.amp.master_params")
def master_params(run: Run, call: Call) -> Value:
    """``apex.amp.master_params(optimizer)``: what it steps on."""
    owner = call.args[0][0] if call.args else NONE
    if not isinstance(owner, Optimizer):
        return Unknown("master_params")
    return ParameterIterable(owner.state.leaves, owner.state.groups_known)
