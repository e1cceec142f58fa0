"""Optimizers: construction and methods."""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Argument, Call, flag, to_none
from gradfix.autograd.engine import step, zero_grad
from gradfix.autograd.graph import DuplicateParameters, NonLeaf, OptimizerState
from gradfix.autograd.parameters import go_through, leaves_of, wholes_of
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import (
    attributes_of,
    before_methods,
    call_value,
    method,
    other_methods,
)
from gradfix.autograd.values import (
    NONE,
    Class,
    Function,
    Mapping,
    Method,
    Module,
    Optimizer,
    ParameterIterable,
    Partial,
    Sequence,
    Tensor,
    Unknown,
    Value,
)
from gradfix.core.syntax import walk


@attributes_of(Optimizer)
def _optimizer_attribute(run: Run, value: Optimizer, name: str, node: ast.AST) -> Value:
    if name == "param_groups":
        group = Mapping(
            {"params": ParameterIterable(list(value.state.leaves), value.state.groups_known)}, True
        )
        return Sequence("list", [group])
    return Method(value, name)


@method(Optimizer, "zero_grad")
def _zero_grad(run: Run, optimizer: Optimizer, call: Call) -> Value:
    inherited = _own_method(optimizer, call.name) is None
    zero_grad(run, optimizer, list(optimizer.state.leaves), call.site, to_none(call), inherited)
    return NONE


@method(Optimizer, "step")
def _step(run: Run, optimizer: Optimizer, call: Call) -> Value:
    closure = call.args[0][0] if call.args else call.keywords.get("closure", (NONE, call.site))[0]
    result: Value = NONE
    if isinstance(closure, (Function, Partial)):
        result = call_value(run, closure, Call([], {}, call.site))
        if _evaluates_again(optimizer):
            for leaf in optimizer.state.owned():
                run.change(Tensor.of_leaf(leaf), call.site, "step")
            call_value(run, closure, Call([], {}, call.site))
    step(run, optimizer, call.site)
    return result


@method(Optimizer, "add_param_group")
def _add_param_group(run: Run, optimizer: Optimizer, call: Call) -> Value | None:
    if not call.args:
        return None
    leaves, known = leaves_of(call.args[0][0])
    optimizer.state.leaves += leaves
    optimizer.state.groups_known = optimizer.state.groups_known and known
    return NONE


def _own_method(optimizer: Optimizer, name: str) -> Value | None:
    """What a class of the project has by the name of a method, if the optimizer is of one."""
    return optimizer.state.cls.lookup(name) if isinstance(optimizer.state.cls, Class) else None


@before_methods(Optimizer)
def _method_of_the_project(run: Run, optimizer: Optimizer, call: Call) -> Value | None:
    own = _own_method(optimizer, call.name)
    if own is None or call.name in ("step", "zero_grad"):
        return None
    if not isinstance(own, Function) or _touches_gradients(own.node):
        optimizer.state.groups_known = False  # It may have stepped, or cleared what it likes.
    return Unknown(call.name)


@other_methods(Optimizer)
def _other_method(run: Run, optimizer: Optimizer, call: Call) -> Value:
    if call.name.startswith("register_"):
        # A hook may do anything to the gradients.
        optimizer.state.groups_known = False
    return Unknown(call.name)


def _touches_gradients(definition: ast.AST) -> bool:
    """Whether a method of a custom optimizer may change parameters or gradients as a step does."""
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("grad", "data", "step", "zero_grad", "backward", "copy_")
        for n in walk(definition)
    )


def _evaluates_again(optimizer: Optimizer) -> bool:
    """Whether a step moves the weights and calls its closure again: LBFGS, unless it is told not to."""
    made = optimizer.state.created
    limits = [k.value for k in made.keywords if k.arg == "max_iter"] if isinstance(made, ast.Call) else []
    once = bool(limits) and isinstance(limits[0], ast.Constant) and limits[0].value == 1
    return optimizer.state.label == "LBFGS" and not once


OPTIMIZERS = frozenset(
    """Adadelta Adagrad Adam AdamW Adamax ASGD LBFGS NAdam RAdam RMSprop Rprop SGD SparseAdam Adafactor Muon
    Lion Lamb LAMB RangerLars Ranger AdaBound AdaBelief FusedAdam""".split()
)


AVERAGES = frozenset(
    """timm.utils.ModelEma timm.utils.ModelEmaV2 timm.utils.ModelEmaV3 torch_ema.ExponentialMovingAverage
    ema_pytorch.EMA diffusers.training_utils.EMAModel""".split()
)
"""Averages of weights: they are updated from a network, and leave its gradients alone."""


def follower(last: str, args: list[Argument]) -> Value:
    """A schedule of learning rates, or an average of weights: it reads weights and leaves gradients alone."""
    result = Unknown(last)
    result.harmless = True
    if args and isinstance(args[0][0], (Optimizer, Module)):
        result.attributes["module" if isinstance(args[0][0], Module) else "optimizer"] = args[0][0]
    return result


def make_optimizer(run: Run, last: str, call: Call) -> Optimizer:
    """An optimizer and the parameters it owns."""
    state = OptimizerState(last, call.site, run.loops)
    given = call.args[0][0] if call.args else call.keywords.get("params", (None, call.site))[0]
    if given is None:
        state.groups_known = False
    else:
        state.leaves, state.groups_known = leaves_of(given)
        go_through(run, given, call.site, optimizer=True)
        if isinstance(given, Unknown):
            state.groups_known = False
        state.whole_networks = wholes_of(given)
        _note_overlap(run, state, given, call)
        for tensor, named in _listed(given, call):
            if tensor.leaf is None and tensor.node is not None and tensor.requires is True:
                where = run.site_in_file(call.site), run.loops, run.next_serial()
                run.events.append(NonLeaf(*where, tensor.node, named, True))
    for other in run.optimizers:
        if other.state.created is call.site and other.state.leaves == state.leaves and state.leaves:
            state.original = other.state.original
            break
    fused = call.keywords.get("fused")
    state.fused = fused is not None and flag(fused[0], False) is not False
    optimizer = Optimizer(state)
    run.optimizers.append(optimizer)
    return optimizer


def _listed(given: Value, call: Call) -> list[tuple[Tensor, ast.expr]]:
    """The tensors that an optimizer is given one by one, each with what names it: ``SGD([w, b])``."""
    written = call.args[0][1] if call.args else call.keywords["params"][1]
    if not isinstance(given, Sequence) or not isinstance(written, (ast.List, ast.Tuple)):
        return []
    if len(given.items) != len(written.elts):
        return []
    return [(value, e) for value, e in zip(given.items, written.elts) if isinstance(value, Tensor)]


def _note_overlap(run: Run, state: OptimizerState, given: Value, call: Call) -> None:
    """Note a network whose parameters an optimizer is given twice."""
    wholes = [{leaf for top in whole for leaf in top.family()} for whole in state.whole_networks or ()]
    groups: list[int] = []
    if isinstance(given, Sequence):
        for number, group in enumerate(given.items):
            groups += [number] * len(wholes_of(group) or ())
    for second, leaves in enumerate(wholes):
        first = next((k for k in range(second) if not leaves.isdisjoint(wholes[k])), None)
        if first is not None:
            grouped = len(groups) == len(wholes) and groups[first] != groups[second]
            grouped = grouped and isinstance(given, Sequence) and isinstance(given.items[0], Mapping)
            event = DuplicateParameters(
                run.site_in_file(call.site), run.loops, run.next_serial(), state, first, second, grouped
            )
            event.calls = tuple(site for site, _ in run.stack)
            run.events.append(event)
            return


def is_optimizer(cls: Class) -> bool:
    """Whether a class of the project is an optimizer of torch's kind."""
    return any(
        name.startswith("torch.optim.") and name.rsplit(".", 1)[-1] in (*OPTIMIZERS, "Optimizer")
        for name in cls.outside()
    )


def make_own_optimizer(run: Run, cls: Class, call: Call) -> Optimizer:
    """An optimizer of a class of the project: it owns the parameters that it is handed first, as torch's do.

    How a step of its own writes the weights, and how often it calls a closure, is not looked at.
    """
    optimizer = make_optimizer(run, cls.name, call)
    optimizer.state.cls = cls
    step = cls.lookup("step")
    if step is not None:
        optimizer.state.fused = None
        written = getattr(step, "node", None)
        if written is None or any(
            isinstance(n, ast.Attribute) and n.attr in ("backward", "zero_grad") for n in walk(written)
        ):
            optimizer.state.groups_known = False
    return optimizer
