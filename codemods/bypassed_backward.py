"""A loss is differentiated past the framework, or the scaler, that trains with it.
What that does is left out: the scale of mixed precision, the division by accumulated batches.

    net, opt = accelerator.prepare(net, opt)        net, opt = accelerator.prepare(net, opt)
    for x, y in loader:                             for x, y in loader:
        with accelerator.accumulate(net):               with accelerator.accumulate(net):
            loss = loss_fn(net(x), y)         =>            loss = loss_fn(net(x), y)
            loss.backward()                                 accelerator.backward(loss)
            opt.step()                                      opt.step()
            opt.zero_grad()                                 opt.zero_grad()

`Accelerator.backward` divides the loss by the number of batches that are accumulated and multiplies it by the
scale of mixed precision; `Fabric.backward` and Lightning's `manual_backward` do what the precision and the
strategy ask for. `prepare` and `setup` wrap the optimizer accordingly: its step takes the scale back out. On
one device, in full precision and without accumulation, nothing is noticed. `scaler.step` divides all
gradients by the scale, also those of a loss that was not multiplied by it: these all but vanish.

When not to fix it: where none of that is ever used.

Preconditions:

* the `Accelerator` or `Fabric` is made here, and has prepared the network or the optimizer that the loss
  trains; or the loss is differentiated in a method of a `LightningModule` under manual optimization, or of a
  `Trainer` of transformers;
* or a step that is made through a `GradScaler`, which is not switched off, certainly uses its gradients;
* the call is `loss.backward()`, and no `GradScaler` has scaled the loss.

The call is rewritten where the framework's object has a name there.

By hand: call `accelerator.backward(loss)`, `fabric.backward(loss)`, `self.manual_backward(loss)` or
`scaler.scale(loss).backward()`.

Effect: changes.

Severity: warning.
Clause: used as it is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial

from gradfix.autograd.graph import Backward
from gradfix.autograd.implicit_loops import LoopCall, own_backward
from gradfix.autograd.parameters import leaves_of
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, steps_using
from gradfix.autograd.values import Class, Optimizer, Scaler
from gradfix.core.codemod import Claim, Effect, Finding, Fix, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rules.edits import note, shown, within_file


@dataclass(eq=False)
class Bypass:
    """A backward call past what trains with it."""

    run: Run
    backward: Backward
    call: str
    """What should be called in its place: ``accelerator.backward({})``, of the loss."""
    owner: ast.expr | None
    """The expression by which it is called; None for a method of the class itself."""
    why: tuple[ast.AST, str] | None
    """Where that is seen to train with it, and what is said of that place."""
    lost: str
    """What is left out."""


def find(program: Program) -> Iterator[Finding]:
    """Report each loss that is differentiated past what trains with it."""
    observe = partial(bypasses, program)
    for one in program.certain_observations(observe, lambda one: one.backward.site, raises=False):
        yield _finding(program, one)


def bypasses(program: Program, run: Run) -> dict[Hashable, Bypass]:
    """By their places: the backward calls that do not go through what the framework has for it."""
    found: dict[Hashable, Bypass] = {}
    for event in backwards(run):
        if not event.accumulates or event.through is not None or event.scaler is not None:
            continue
        if isinstance(event.site, LoopCall) or getattr(event.site, "lineno", 0) <= 0:
            continue
        one = (
            _past_preparer(program, run, event)
            or _past_scaler(program, run, event)
            or _past_class(program, run, event)
        )
        if one is not None:
            found[event.site] = one
    return found


FRAMEWORKS = "the scale of mixed precision and the division by accumulated batches are left out"
UNSCALED = "its gradients are divided by a scale that they lack"


def _past_preparer(program: Program, run: Run, event: Backward) -> Bypass | None:
    """Of a loss that reaches what an ``Accelerator`` or a ``Fabric`` has prepared."""
    for preparer in run.preparers:
        prepared = {leaf for value in preparer.prepared for leaf in leaves_of(value)[0]}
        prepared |= {leaf for v in preparer.prepared if isinstance(v, Optimizer) for leaf in v.state.owned()}
        if preparer.written is None or not any(event.reached.get(leaf) for leaf in prepared):
            continue
        name = program.segment(preparer.written)
        why = (preparer.written, "what it trains is prepared here")
        return Bypass(run, event, f"{name}.backward({{}})", preparer.written, why, FRAMEWORKS)
    return None


def _past_scaler(program: Program, run: Run, event: Backward) -> Bypass | None:
    """Of a loss whose gradients a step uses that is made through a ``GradScaler``."""
    for step in steps_using(run, [event]):
        site = step.site
        if not isinstance(step.scaler, Scaler) or step.scaler.enabled is False or step.doubtful:
            continue
        if isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute) and site.lineno > 0:
            scaler = site.func.value
            why = (site, "this divides the gradients by the scale")
            call = f"{program.segment(scaler)}.scale({{}}).backward()"
            return Bypass(
                run, event, call, scaler, why, "its gradients are divided by a scale that they lack"
            )
    return None


def _past_class(program: Program, run: Run, event: Backward) -> Bypass | None:
    """Of a loss that a method of a framework's class differentiates."""
    around = (node for node in program.ancestors(event.site) if isinstance(node, ast.ClassDef))
    outer = next(around, None)
    cls = None if outer is None else run.variable(outer.name)
    if not isinstance(cls, Class) or cls.node is not outer:
        return None
    name = own_backward(cls)
    return Bypass(run, event, f"{name}({{}})", None, None, FRAMEWORKS) if name else None


def _finding(program: Program, one: Bypass) -> Finding:
    site = one.backward.site
    assert isinstance(site, ast.Call)
    name = one.call.removesuffix(".backward()").removesuffix("({})")
    notes = [] if one.why is None else [note(*one.why)]
    notes.append(note(site, f"this does not go through `{name}`"))
    message = f"`{shown(program, site.func)}()` bypasses `{name}`: {one.lost}"
    fixes = within_file(_fixes(program, one, site))
    return Finding("bypassed-backward", message, Span.of(site), tuple(notes), fixes)


def _fixes(program: Program, one: Bypass, site: ast.Call) -> Iterator[Fix]:
    if not isinstance(site.func, ast.Attribute) or not _is_in_scope(program, one):
        return
    given = [*map(program.segment, site.args)]
    given += [f"{k.arg}={program.segment(k.value)}" for k in site.keywords]
    loss = program.segment(site.func.value)
    if one.call.endswith(".backward()"):
        code = f"{one.call.format(loss).removesuffix('()')}({', '.join(given)})"
    else:
        code = one.call.format(", ".join([loss, *given]))
    claim = Claim(unchanged=(), losses="other")
    yield Fix(f"call `{code}`", Effect.CHANGES, (ReplaceExpression(Span.of(site), code),), claim)


def _is_in_scope(program: Program, one: Bypass) -> bool:
    """Whether what should be called has its name there: it is an attribute, or a variable around the call."""
    if one.owner is None or isinstance(one.owner, ast.Attribute):
        return True
    here = program.function(one.backward.site)
    return program.function(one.owner) in (here, *program.ancestors(here))
