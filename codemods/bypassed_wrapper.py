"""Training goes past what wraps it: a framework's object, or a scaler.
What that does is left out: the scale of mixed precision, the division by accumulated batches, the exchange of
gradients between processes.

    net, opt = accelerator.prepare(net, opt)        net, opt = accelerator.prepare(net, opt)
    for x, y in loader:                             for x, y in loader:
        with accelerator.accumulate(net):               with accelerator.accumulate(net):
            loss = loss_fn(net(x), y)         =>            loss = loss_fn(net(x), y)
            loss.backward()                                 accelerator.backward(loss)
            opt.step()                                      opt.step()
            opt.zero_grad()                                 opt.zero_grad()

`Accelerator.backward` divides the loss by the number of batches that are accumulated and multiplies it by the
scale of mixed precision; `Fabric.backward`, Lightning's `manual_backward` and the engine of DeepSpeed do what
the precision and the strategy ask for. `prepare`, `setup` and `initialize` wrap network and optimizer
accordingly. On one device, in full precision and without accumulation, nothing is noticed. `scaler.step`
divides all gradients by the scale, also those of a loss that was not multiplied by it: these all but vanish.

When not to fix it: where none of that is ever used.

Preconditions:

* the `Accelerator`, `Fabric` or engine is made here, and has prepared what the loss certainly trains; or the
  loss is differentiated in a method of a `LightningModule` under manual optimization, or of a `Trainer` of
  transformers; or a step that is made through a `GradScaler`, which is not switched off, certainly uses its
  gradients;
* it is differentiated by `loss.backward()`, and no `GradScaler` has scaled it; or the optimizer of an engine
  is stepped by itself;
* or a network that was prepared under another name (`model = fabric.setup(net)`) is called by its old name in
  the same function, and trained with the result.

The call is rewritten where the wrapper has a name there.

By hand: call `accelerator.backward(loss)`, `fabric.backward(loss)`, `self.manual_backward(loss)`,
`engine.backward(loss)` and `engine.step()`, or `scaler.scale(loss).backward()`; call the network by the name
of what `prepare` or `setup` has returned.

Effect: changes.

Severity: warning.
Clause: used as it is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial

from gradfix.autograd.graph import Backward, Leaf, Step
from gradfix.autograd.implicit_loops import LoopCall, own_backward
from gradfix.autograd.parameters import leaves_of
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, calls_in, steps, steps_using
from gradfix.autograd.values import Class, Engine, Optimizer, Preparer, Scaler, Value
from gradfix.core.codemod import Claim, Effect, Finding, Fix, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rules.edits import line, note, shown, within_file

LEFT_OUT = "the scale of mixed precision and the division by accumulated batches are left out"
UNSCALED = "its gradients are divided by a scale that they lack"
UNWRAPPED = "gradients are not exchanged between processes, and precision is not what was asked for"


@dataclass(eq=False)
class Bypass:
    """A call past what wraps the training."""

    site: ast.Call
    name: str
    """What it bypasses, for people."""
    code: str | None
    """What should stand in its place; None where that cannot be written there."""
    why: tuple[ast.AST, str] | None
    """Where it is seen that the training is wrapped, and what is said of that place."""
    lost: str
    """What is left out."""


def find(program: Program) -> Iterator[Finding]:
    """Report each call that trains past what wraps the training."""
    observe = partial(bypasses, program)
    for one in program.certain_observations(observe, lambda one: one.site, raises=False):
        yield _finding(program, one)


def bypasses(program: Program, run: Run) -> dict[Hashable, Bypass]:
    """By their places: the calls that do not go through what the wrapper has for it."""
    found: dict[Hashable, Bypass] = {}
    for event in backwards(run):
        past = _backward_past(program, run, event) if _is_plain(event) and event.scaler is None else None
        found |= {past.site: past} if past is not None else {}
        found |= {one.site: one for one in _calls_past(program, run, event)}
    for step in steps(run):
        past = _step_past(program, run, step) if _is_plain(step) else None
        found |= {past.site: past} if past is not None else {}
    return found


def _is_plain(event: Backward | Step) -> bool:
    """Whether the file calls ``backward`` or ``step`` itself, of a loss or an optimizer."""
    site = event.site
    plain = isinstance(site, ast.Call) and not isinstance(site, LoopCall) and line(site) > 0
    return plain and event.through is None and isinstance(getattr(site, "func", None), ast.Attribute)


def _backward_past(program: Program, run: Run, event: Backward) -> Bypass | None:
    assert isinstance(event.site, ast.Call)
    if not event.accumulates:
        return None
    for preparer in run.preparers:
        if any(event.reached.get(leaf) for leaf in _prepared_leaves(preparer)):
            name = _name_of(program, preparer)
            call = f"{_text(program, name)}.backward"
            why = (preparer.prepared[0][2], "what it trains is prepared here")
            in_scope = _is_in_scope(program, name, event.site)
            code = _instead(program, event.site, f"{call}({{}})") if in_scope else None
            return Bypass(event.site, call, code, why, LEFT_OUT)
    return _past_scaler(program, run, event) or _past_class(program, run, event)


def _prepared_leaves(preparer: Preparer) -> set[Leaf]:
    found: set[Leaf] = set()
    for value, *_ in preparer.prepared:
        found.update(value.state.owned() if isinstance(value, Optimizer) else leaves_of(value)[0])
    return found


def _past_scaler(program: Program, run: Run, event: Backward) -> Bypass | None:
    """Of a loss whose gradients a step uses that is made through a ``GradScaler``."""
    assert isinstance(event.site, ast.Call)
    for step in steps_using(run, [event]):
        site = step.site
        if not isinstance(step.scaler, Scaler) or step.scaler.enabled is False or step.doubtful:
            continue
        if isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute) and line(site) > 0:
            name = program.segment(site.func.value)
            code = _instead(program, event.site, f"{name}.scale({{}}).backward()")
            code = code if _is_in_scope(program, site.func.value, event.site) else None
            why = (site, "this divides the gradients by the scale")
            return Bypass(event.site, f"{name}.scale", code, why, UNSCALED)
    return None


def _past_class(program: Program, run: Run, event: Backward) -> Bypass | None:
    """Of a loss that a method of a framework's class differentiates."""
    assert isinstance(event.site, ast.Call)
    outer = next((node for node in program.ancestors(event.site) if isinstance(node, ast.ClassDef)), None)
    cls = None if outer is None else run.variable(outer.name)
    if not isinstance(cls, Class) or cls.node is not outer or not (name := own_backward(cls)):
        return None
    return Bypass(event.site, name, _instead(program, event.site, f"{name}({{}})"), None, LEFT_OUT)


def _step_past(program: Program, run: Run, step: Step) -> Bypass | None:
    """Of the optimizer of an engine, which the engine steps."""
    assert isinstance(step.site, ast.Call)
    for engine in run.preparers:
        if isinstance(engine, Engine) and engine.own.state is step.optimizer:
            name = _name_of(program, engine)
            code = f"{_text(program, name)}.step()" if _is_in_scope(program, name, step.site) else None
            why = (engine.prepared[0][2], "the engine steps its optimizer itself")
            return Bypass(step.site, f"{_text(program, name)}.step", code, why, LEFT_OUT)
    return None


def _calls_past(program: Program, run: Run, event: Backward) -> Iterator[Bypass]:
    """The calls of networks by the names that they had before they were prepared."""
    for call in calls_in(event.visited):
        if line(call.site) <= 0:
            continue
        for preparer in run.preparers:
            for value, written, site in preparer.prepared:
                new = _new_name(program, value, written, site, preparer)
                old = program.segment(call.site.func)
                if new is None or call.module is not value or old != program.segment(written):
                    continue
                if program.function(site) is program.function(call.site) and line(site) < line(call.site):
                    code = f"{new}{program.segment(call.site)[len(old) :]}"
                    why = (site, f"`{new}` is what wraps it")
                    yield Bypass(call.site, new, code, why, UNWRAPPED)


def _new_name(
    program: Program, value: Value, written: ast.expr, site: ast.AST, preparer: Preparer
) -> str | None:
    """What a network is called once it is prepared, where that is not its old name."""
    if isinstance(value, Optimizer) or isinstance(preparer, Engine) or not isinstance(site, ast.Call):
        return None
    targets = _targets(program, site)
    names = [program.segment(target) for target in targets]
    if len(names) != len(site.args) or written not in site.args or program.segment(written) in names:
        return None
    return names[site.args.index(written)]


def _targets(program: Program, site: ast.AST) -> list[ast.expr]:
    """What is assigned with the results of a call."""
    try:
        statement = program.statement(site)
    except Elsewhere:
        return []
    if not isinstance(statement, ast.Assign) or statement.value is not site or len(statement.targets) != 1:
        return []
    (target,) = statement.targets
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _name_of(program: Program, preparer: Preparer) -> ast.expr | None:
    """What a framework's object is called where it prepares something, or is made."""
    site = preparer.prepared[0][2]
    if isinstance(preparer, Engine):
        return next(iter(_targets(program, site)), None)
    return site.func.value if isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute) else None


def _text(program: Program, name: ast.expr | None) -> str:
    return "the engine" if name is None else program.segment(name)


def _is_in_scope(program: Program, name: ast.expr | None, site: ast.AST) -> bool:
    """Whether what should be called has its name there: it is an attribute, or a variable around the call."""
    if name is None or isinstance(name, ast.Attribute):
        return name is not None
    here = program.function(site)
    return program.function(name) in (here, *program.ancestors(here))


def _instead(program: Program, site: ast.Call, template: str) -> str | None:
    """The call by which a loss should be differentiated, with the options that ``backward`` was given."""
    if not isinstance(site.func, ast.Attribute):
        return None
    given = [*map(program.segment, site.args)]
    given += [f"{k.arg}={program.segment(k.value)}" for k in site.keywords]
    loss = program.segment(site.func.value)
    if template.endswith(".backward()"):
        return f"{template.format(loss).removesuffix('()')}({', '.join(given)})"
    return template.format(", ".join([loss, *given]))


def _finding(program: Program, one: Bypass) -> Finding:
    notes = [] if one.why is None else [note(*one.why)]
    notes.append(note(one.site, f"this does not go through `{one.name}`"))
    message = f"`{shown(program, one.site.func)}()` bypasses `{one.name}`: {one.lost}"
    fixes = within_file(_fixes(one))
    return Finding("bypassed-wrapper", message, Span.of(one.site), tuple(notes), fixes)


def _fixes(one: Bypass) -> Iterator[Fix]:
    if one.code is not None:
        edit = ReplaceExpression(Span.of(one.site), one.code)
        claim = Claim(unchanged=(), losses="multiplied")
        yield Fix(f"call `{one.code}`", Effect.CHANGES, (edit,), claim)
