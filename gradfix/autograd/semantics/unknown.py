"""What is unknown, and what calling it or asking it for something may do."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.autograd import operators, options
from gradfix.autograd.arguments import Argument, Keywords, nowhere, receiver_of
from gradfix.autograd.engine import backward, forget_state, poison, step, zero_grad
from gradfix.autograd.graph import Backward, Contribution, Edge, Leaf, OptimizerState, Storage
from gradfix.autograd.parameters import leaves_of, set_requires
from gradfix.autograd.semantics.dispatch import call, called, methods_of
from gradfix.autograd.semantics.distributions import DENSITIES
from gradfix.autograd.semantics.frameworks import PREPARING, prepared
from gradfix.autograd.semantics.iteration import EACH
from gradfix.autograd.semantics.operations import (
    Operand,
    apply,
    enter_call,
    made_by,
    may_carry,
    operands_of,
    overload,
    perhaps_changed,
    record,
    simple,
    unknown,
)
from gradfix.autograd.semantics.optimizers import make_optimizer, optimizer_method
from gradfix.autograd.semantics.tensors import PLAIN, SAME
from gradfix.autograd.semantics.texts import TEXT, text_method
from gradfix.autograd.values import (
    NONE,
    TRUE,
    Const,
    Each,
    Function,
    Instance,
    Module,
    Opaque,
    Optimizer,
    Params,
    Sequence,
    Tensor,
    Value,
    tensors_in,
)

if TYPE_CHECKING:
    from gradfix.autograd.interpreter import Run


@called(Value)
def _call_other(
    run: Run, value: Value, args: list[Argument], keywords: Keywords, node: ast.AST, discarded: bool
) -> Value:
    return call_opaque(run, Opaque("unknown"), args, keywords, node, discarded)


@called(Opaque)
def _call_unknown(
    run: Run, value: Opaque, args: list[Argument], keywords: Keywords, node: ast.AST, discarded: bool
) -> Value:
    result = made_by(call_opaque(run, value, args, keywords, node, discarded), value, args)
    if args and not discarded and not value.harmless and isinstance(result, Opaque) and result.node is None:
        # What is called may be a network: the result may have a graph that cannot be seen.
        may_carry(run, result, node)
        if result.node is not None:
            result.node.opaque = not value.stateless()
    return result


@methods_of(Value)
def _other_method(
    run: Run,
    base: Value,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    return call_opaque(run, Opaque(name), args, keywords, node, discarded)


@methods_of(Opaque)
def _unknown_method(
    run: Run,
    base: Opaque,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    if discarded and base.made_from is not None:
        # What is told to reset itself may be a part of the network.
        forget_state(base.made_from, 3)
    result = _opaque_method(run, base, name, args, keywords, node, discarded)
    return made_by(result, base, args)


SHARING = frozenset(
    (
        *("detach", "view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as"),
        *("t", "permute", "transpose", "to", "float", "cuda"),
    )
)
"""Methods of something unknown whose result may be its memory, if it is a tensor."""


def call_opaque(
    run: Run, value: Opaque, args: list[Argument], keywords: Keywords, node: ast.AST, discarded: bool
) -> Value:
    """Call something unknown: a network if it is known to be one, else a function that may do anything."""
    if value.leaf is not None:
        return _call_opaque_module(run, value, value.leaf, args, keywords, node)
    if value.owner is not None and any(operands_of(v, e) or isinstance(v, (Tensor, Opaque)) for v, e in args):
        # A part of a network that could not be followed: it may have parameters of its own.
        owner = value.owner
        if owner.rest is None:
            owner.rest = Leaf(f"the rest of {owner.label}", None)
        return _call_opaque_module(run, value, owner.rest, args, keywords, node)
    if discarded and _observed(value, args, keywords, node):
        return Opaque(value.label)
    handed = None if discarded or run.path else _handed(args)
    if (discarded and not _only_reads(value, args)) or suspicious(value.label, handed is not None):
        poison(run, [v for v, _ in args] + [v for v, _ in keywords.values()], node)
    else:
        _poison_owners(run, args, keywords, node)
    result = unknown(run, args, keywords, node, value.label or "call")
    if handed is not None and isinstance(result, Opaque):
        result.handed = node, handed
    return result


def _observed(value: Opaque, args: list[Argument], keywords: Keywords, node: ast.AST) -> bool:
    """Whether unknown things are shown the object that trains, one after the other: callbacks, hooks.

    ``for callback in self.callbacks: callback(self)``, or ``callback.on_batch_end(self)``. Whoever may
    subscribe looks on; what trains stands where the object's own code is. What is handed a tensor, a
    network or an optimizer itself, or is named for a part of training, may do anything.
    """
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Name):
        shown = value.label == EACH and not suspicious(called.id)
    else:
        shown = (
            isinstance(called, ast.Attribute)
            and value.parent is not None
            and value.parent.label == EACH
            and called.attr.startswith(("on_", "before_", "after_"))
        )
    given = [v for v, _ in [*args, *keywords.values()]]
    return shown and any(isinstance(v, Instance) for v in given) and all(map(_takes_no_part, given))


def _takes_no_part(value: Value) -> bool:
    """Whether a value is no tensor, network or optimizer itself, as far as is known."""
    if value.__class__ is Opaque:
        assert isinstance(value, Opaque)
        return value.node is None and value.leaf is None and value.optimizer is None
    return isinstance(value, (Instance, Const))


def _handed(args: list[Argument]) -> Params | None:
    """The parameters that an unknown function is given first: it may make an optimizer of them."""
    first = args[0][0] if args else NONE
    if not isinstance(first, (Params, Each, Sequence)):
        return None
    leaves, complete = leaves_of(first)
    return Params(leaves, complete) if leaves and not tensors_in(first) else None


def adopted(run: Run, value: Value) -> Optimizer | None:
    """The optimizer that something is which an unknown function has made of parameters, and which steps."""
    if not isinstance(value, Opaque):
        return None
    if value.optimizer is None and value.handed is not None:
        made, params = value.handed
        value.optimizer = make_optimizer(run, value.label, [(params, nowhere(made))], {}, made)
    return value.optimizer


def _poison_owners(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> None:
    """An unknown function that is handed an optimizer within training may step it, whatever it returns.

    Before training it makes a scheduler or a wrapper of it.
    """
    if not run.path:
        return
    given = [v for v, _ in args] + [v for v, _ in keywords.values()]
    if any(isinstance(v, Optimizer) or (isinstance(v, Opaque) and v.optimizer) for v in given):
        poison(run, given, node)


LOGGING = frozenset(
    """log log_metric log_metrics log_scalar add_scalar add_scalars add_histogram add_image add_images
    add_text scalar_summary set_postfix set_description print write debug info warning""".split()
)
"""What loggers of all makes are called with: a name and a number. They run no backward."""


def _only_reads(value: Opaque, args: list[Argument]) -> bool:
    """Whether a function looks at a network and leaves it as it is: ``target.load_state(network)``."""
    return value.label.startswith(("load", "save", "copy")) and not any(
        tensor.node is not None for given, _ in args for tensor in tensors_in(given)
    )


SUSPICIOUS = ("backward", "step", "optim", "update", "train", "fit", "grad", "freeze", "scal")


def suspicious(name: str, makes: bool = False) -> bool:
    """Whether an unknown function's name says that it may run or steer the training itself.

    What ``makes`` something of parameters, and is named for an optimizer, makes one.
    """
    name = name.lower()
    return any(word in name and not (makes and word == "optim") for word in SUSPICIOUS)


def _call_opaque_module(
    run: Run, value: Opaque, leaf: Leaf, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value:
    operands = [o for v, e in [*args, *keywords.values()] for o in operands_of(v, e)]
    entered = enter_call(run, value, [leaf], args, keywords, node)
    recorded, requires, _ = record(
        run, value.label or "network", node, [operands, [Operand(leaf, None)]], None
    )
    result = Opaque(value.label)
    if recorded is not None:
        # A network of unknown make: taken to be deep enough to save its own weights.
        recorded.saves = True if requires else None
        recorded.opaque = not value.stateless()
        if leaf.requires is True or any(o.requires is True for o in operands):
            recorded.saved += tuple((part_.storage, part_.storage.version, part_) for part_ in leaf.family())
        # Which of its parts take part in it is not known.
        recorded.leaves += tuple((part_, False, None) for part_ in leaf.family()[1:])
        result.node, result.requires = recorded, requires
    if entered is not None:
        run.current_call = None
    return result


def _opaque_method(
    run: Run,
    base: Opaque,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    receiver = receiver_of(node)
    held = base.attributes.get(name)
    if held is not None and not (isinstance(held, Opaque) and held.label == name):
        return call(run, held, args, keywords, node, discarded)
    if isinstance(base, options.Parser):
        return options.method(run, base, name, keywords)
    if isinstance(base, options.Option) and isinstance(base.default.value, str) and name in TEXT:
        parts = [(options.given(value), expression) for value, expression in args]
        text = text_method(base.default.value, name, parts, keywords)
        if isinstance(text, Const):
            return options.text(text, [base])
    if base.harmless:
        told = Opaque(name)
        told.harmless = True
        return told
    if name == "get" and not keywords and base.node is None:
        setting = options.setting(base, [value for value, _ in args])
        if setting is not None:
            return setting
    given = [value for value, _ in [*args, *keywords.values()]]
    fills = name.endswith("_") and operators.method(name) is not None
    if fills and base.node is None and any(t.node is not None for v in given for t in tensors_in(v)):
        # Memory that is made somewhere else, and filled here: the graph of what it is filled with.
        filled = unknown(run, args, keywords, node, name)
        perhaps_changed(base)
        if isinstance(filled, Opaque) and filled.node is not None:
            base.node, base.requires = filled.node, filled.requires
        return base
    clears_or_steps = name == "zero_grad" or (name == "step" and not args)
    if base.leaf is None and (base.optimizer is not None or clears_or_steps):
        optimizer = adopted(run, base)
        if optimizer is None and name == "zero_grad" and base.node is None:
            optimizer = _met(run, base, node)
        if optimizer is not None and (not optimizer.state.stranger or name in ("step", "zero_grad")):
            return optimizer_method(run, optimizer, name, args, keywords, node)
    if base.node is None and base.leaf is None and _told(name, args, keywords, discarded):
        return Opaque(name)
    if name in ("backward", "manual_backward"):
        tensors: list[Argument] = [
            (v, e) for v, e in args[:1] if isinstance(v, Tensor) or (isinstance(v, Opaque) and v.node)
        ]
        if tensors and base.node is None:
            backward(run, tensors, [], keywords, node)
        else:
            backward(run, [(base, receiver)], args, keywords, node)
        return NONE
    if name in ("parameters", "named_parameters") and keywords.keys() <= {"recurse", "prefix"}:
        run.mutations += 1
        base.node, base.requires = None, False  # It is a network, and no tensor.
        return Params([base.block(node)], True, name == "named_parameters")
    if name in ("forward", "__call__") and base.leaf is not None:
        return call_opaque(run, base, args, keywords, node, discarded)
    if name == "zero_grad":
        if base.leaf is not None:
            zero_grad(run, base, [base.leaf], node)
        else:
            _unknown_zero(run, base, node)
        return NONE
    if name == "step":
        for value, _ in args[:1]:
            if isinstance(value, Optimizer):
                step(run, value, node)
                return Opaque("step")
            if isinstance(value, Function):
                call(run, value, [], {}, node)
        if not args:
            return Opaque("step")
    if name == "detach":
        if base.storage is None:
            base.storage = Storage()
        return Tensor(None, False, base.storage)
    if name in SAME and not discarded:
        return base
    if name in ("train", "eval", "apply", "cuda", "to", "float", "half", "double"):
        return base
    if name == "requires_grad_" and base.leaf is not None:
        set_requires(run, base, [base.leaf], args[0][0] if args else TRUE, node)
        return base
    if name == "load_state_dict" and base.leaf is not None:
        run.change(Tensor.of_leaf(base.leaf), node, "load_state_dict")
        return NONE
    if name in PLAIN or name in ("sample", "state_dict", "no_sync", "accumulate"):
        return Opaque(name)
    if name in PREPARING and not discarded:
        wrapped = prepared(args)
        if wrapped is not None:
            return wrapped
    if name.startswith("clip_grad"):
        return Opaque(name)
    if name == "scale" and len(args) == 1 and base.node is None:
        value, expression = args[0]
        if isinstance(value, (Tensor, Opaque)):
            return simple(run, "mul", [(value, expression), (base.factor, expression)], node)
    if base.label == "distribution" and base.node is not None and name in DENSITIES:
        made = run.node(name, node)
        made.saves = None
        operands = [o for v, e in [(base, receiver), *args] for o in operands_of(v, e)]
        made.edges = tuple(
            Edge(o.node, o.requires is True, o.expression) for o in operands if o.node is not None
        )
        return Tensor(made, base.requires)
    if base.node is not None:
        table = overload(name, args, keywords)
        if table is not None and table.result in ("new", "view", "either", "detached"):
            if table.result == "detached" or not table.differentiable:
                return Tensor()
            return apply(run, table, [(base, receiver), *args], keywords, node)
        if table is not None and table.result == "inplace":
            return base
        return unknown(run, args, keywords, node, name, base.node)
    if name[-1:] == "_":
        # Torch's own name for what is done in place.
        perhaps_changed(base)
    network = base if base.leaf is not None else base.parent
    if network is not None and network.leaf is not None and args and not discarded:
        # A method of an unknown network: what comes out was computed with some of its parameters.
        result = unknown(run, args, keywords, node, name, certain=False)
        if isinstance(result, Opaque) and run.grad_enabled is not False:
            if result.node is None:
                may_carry(run, result, node)
            assert result.node is not None
            result.node.leaves += ((network.leaf, False, None),)
            result.node.opaque, result.requires = not network.stateless(), None
        return result
    child = base.attributes.get(name)
    function = child if isinstance(child, Opaque) else Opaque(name, None, base)
    base.attributes[name] = function
    if function.owner is None and base.owner is not None:
        function.owner = base.owner
    result = call_opaque(run, function, args, keywords, node, discarded)
    if result.__class__ is Opaque and name == "configure_optimizers":
        # What Lightning calls it, and many without Lightning: the optimizer of this network, if it steps.
        result.handed = node, Params([base.block(node)])
    if result.__class__ is Opaque and name in SHARING:
        if base.storage is None:
            base.storage = Storage()
        result.storage = base.storage
    return result


def _told(name: str, args: list[Argument], keywords: Keywords, discarded: bool) -> bool:
    """Whether a call says something under a name: ``log("loss", loss, step)``, ``set_postfix(loss=loss)``.

    What is called ``log_...`` may be shown a network as well, and says what nobody else makes use of
    without a name too: ``writer.log_validation(loss, network, step)``.
    """
    given = [v for v, _ in [*args, *keywords.values()]]
    if not (name in LOGGING or name.startswith("log_")) or any(
        isinstance(v, (Optimizer, Function)) for v in given
    ):
        return False
    if any(isinstance(v, Module) for v in given) and not name.startswith("log_"):
        return False
    if not args:
        return bool(keywords)
    if discarded and name.startswith("log_"):
        return True
    value, expression = args[0]
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Mod, ast.Add)):
        expression = expression.left  # "conv%d" % number
    if isinstance(expression, ast.Constant):
        return isinstance(expression.value, str)
    return isinstance(expression, ast.JoinedStr) or (
        isinstance(value, Const) and isinstance(value.value, str)
    )


def _met(run: Run, base: Opaque, node: ast.AST) -> Optimizer | None:
    """What somebody handed in and is told to clear gradients: if it also steps, it is an optimizer.

    Where others are known, nothing is said of it but that it may clear theirs.
    """
    if run.optimizers:
        return None
    state = OptimizerState(base.label, node, run.path)
    owned = Leaf(base.label, None)
    owned.grad = {e: Contribution(False) for e in run.events if isinstance(e, Backward) and e.accumulates}
    state.leaves, state.stranger = [owned], True
    run.strangers.append(state)
    base.optimizer = Optimizer(state)
    return base.optimizer


def _unknown_zero(run: Run, base: Opaque, node: ast.AST) -> None:
    """``zero_grad`` on something unknown: it may clear any gradient that is in the run."""
    for state in [*(o.state for o in run.optimizers), *run.strangers]:
        zero_grad(run, base, state.leaves, node, certain=False)
