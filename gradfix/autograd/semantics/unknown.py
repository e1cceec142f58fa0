"""What is unknown, and what calling it or asking it for something may do."""

from __future__ import annotations

import ast

from gradfix.autograd import operators, options
from gradfix.autograd.arguments import Argument, Call, Keywords, flag, nowhere
from gradfix.autograd.engine import backward, forget_state, poison, step, zero_grad
from gradfix.autograd.graph import Backward, Contribution, Edge, Leaf, OptimizerState, Storage
from gradfix.autograd.parameters import leaves_of, set_mode, set_requires
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import call_value, called, methods_of
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
    scaled,
    unknown,
)
from gradfix.autograd.semantics.optimizers import make_optimizer, optimizer_method
from gradfix.autograd.semantics.tensors import PLAIN, SAME
from gradfix.autograd.semantics.texts import TEXT, text_method
from gradfix.autograd.values import (
    FALSE,
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


@called(Value)
def _call_other(run: Run, value: Value, call: Call) -> Value:
    return call_opaque(run, Opaque("unknown"), call)


@called(Opaque)
def _call_unknown(run: Run, value: Opaque, call: Call) -> Value:
    result = made_by(call_opaque(run, value, call), value, call.args)
    if (
        call.args
        and not call.discarded
        and not value.harmless
        and isinstance(result, Opaque)
        and result.node is None
    ):
        # What is called may be a network: the result may have a graph that cannot be seen.
        may_carry(run, result, call.site)
        if result.node is not None:
            result.node.opaque = not value.stateless()
    return result


@methods_of(Value)
def _other_method(
    run: Run,
    base: Value,
    call: Call,
) -> Value:
    return call_opaque(run, Opaque(call.name), call)


@methods_of(Opaque)
def _unknown_method(
    run: Run,
    base: Opaque,
    call: Call,
) -> Value:
    if call.discarded and base.made_from is not None:
        # What is told to reset itself may be a part of the network.
        forget_state(base.made_from, 3)
    result = _opaque_method(run, base, call)
    return made_by(result, base, call.args)


SHARING = frozenset(
    (
        *("detach", "view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as"),
        *("t", "permute", "transpose", "to", "float", "cuda"),
    )
)
"""Methods of something unknown whose result may be its memory, if it is a tensor."""


def call_opaque(run: Run, value: Opaque, call: Call) -> Value:
    """Call something unknown: a network if it is known to be one, else a function that may do anything."""
    if value.leaf is not None:
        return _call_opaque_module(run, value, value.leaf, call)
    if value.owner is not None and any(
        operands_of(v, e) or isinstance(v, (Tensor, Opaque)) for v, e in call.args
    ):
        # A part of a network that could not be followed: it may have parameters of its own.
        owner = value.owner
        if owner.rest is None:
            owner.rest = Leaf(f"the rest of {owner.label}", None)
        return _call_opaque_module(run, value, owner.rest, call)
    if call.discarded and _observed(value, call):
        return Opaque(value.label)
    handed = None if call.discarded or run.path else _handed(call.args)
    if (call.discarded and not _only_reads(value, call.args)) or suspicious(value.label, handed is not None):
        poison(run, call.values, call.site)
    else:
        _poison_owners(run, call)
    result = unknown(run, call.args, call.keywords, call.site, value.label or "call")
    if handed is not None and isinstance(result, Opaque):
        result.handed = call.site, handed
    return result


def _observed(value: Opaque, call: Call) -> bool:
    """Whether unknown things are shown the object that trains, one after the other: callbacks, hooks.

    ``for callback in self.callbacks: callback(self)``, or ``callback.on_batch_end(self)``. Whoever may
    subscribe looks on; what trains stands where the object's own code is. What is handed a tensor, a
    network or an optimizer itself, or is named for a part of training, may do anything.
    """
    called = call.site.func if isinstance(call.site, ast.Call) else None
    if isinstance(called, ast.Name):
        shown = value.label == EACH and not suspicious(called.id)
    else:
        shown = (
            isinstance(called, ast.Attribute)
            and value.parent is not None
            and value.parent.label == EACH
            and called.attr.startswith(("on_", "before_", "after_"))
        )
    given = call.values
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
        value.optimizer = make_optimizer(run, value.label, Call([(params, nowhere(made))], {}, made))
    return value.optimizer


def _poison_owners(run: Run, call: Call) -> None:
    """An unknown function that is handed an optimizer within training may step it, whatever it returns.

    Before training it makes a scheduler or a wrapper of it.
    """
    if not run.path:
        return
    given = call.values
    if any(isinstance(v, Optimizer) or (isinstance(v, Opaque) and v.optimizer) for v in given):
        poison(run, given, call.site)


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


def _call_opaque_module(run: Run, value: Opaque, leaf: Leaf, call: Call) -> Value:
    operands = [o for v, e in call.given for o in operands_of(v, e)]
    entered = enter_call(run, value, [leaf], call)
    recorded, requires, _ = record(
        run, value.label or "network", call.site, [operands, [Operand(leaf, None)]], None
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
    call: Call,
) -> Value:
    receiver = call.receiver
    held = base.attributes.get(call.name)
    if held is not None and not (isinstance(held, Opaque) and held.label == call.name):
        return call_value(run, held, call)
    if isinstance(base, options.Parser):
        return options.method(run, base, call.name, call.keywords)
    if isinstance(base, options.Option) and isinstance(base.default.value, str) and call.name in TEXT:
        parts = [(options.given(value), expression) for value, expression in call.args]
        text = text_method(base.default.value, call.name, parts, call.keywords)
        if isinstance(text, Const):
            return options.text(text, [base])
    if base.harmless:
        told = Opaque(call.name)
        told.harmless = True
        return told
    if call.name == "get" and not call.keywords and base.node is None:
        setting = options.setting(base, [value for value, _ in call.args])
        if setting is not None:
            return setting
    given = call.values
    fills = call.name.endswith("_") and operators.method(call.name) is not None
    if fills and base.node is None and any(t.node is not None for v in given for t in tensors_in(v)):
        # Memory that is made somewhere else, and filled here: the graph of what it is filled with.
        filled = unknown(run, call.args, call.keywords, call.site, call.name)
        perhaps_changed(base)
        if isinstance(filled, Opaque) and filled.node is not None:
            base.node, base.requires = filled.node, filled.requires
        return base
    clears_or_steps = call.name == "zero_grad" or (call.name == "step" and not call.args)
    if base.leaf is None and (base.optimizer is not None or clears_or_steps):
        optimizer = adopted(run, base)
        if optimizer is None and call.name == "zero_grad" and base.node is None:
            optimizer = _met(run, base, call.site)
        if optimizer is not None and (not optimizer.state.stranger or call.name in ("step", "zero_grad")):
            return optimizer_method(run, optimizer, Call(call.args, call.keywords, call.site, name=call.name))
    if base.node is None and base.leaf is None and _told(call.name, call.args, call.keywords, call.discarded):
        return Opaque(call.name)
    if call.name in ("backward", "manual_backward"):
        tensors: list[Argument] = [
            (v, e) for v, e in call.args[:1] if isinstance(v, Tensor) or (isinstance(v, Opaque) and v.node)
        ]
        if tensors and base.node is None:
            backward(run, tensors, Call([], call.keywords, call.site))
        else:
            backward(run, [(base, receiver)], call)
        return NONE
    if call.name in ("parameters", "named_parameters") and call.keywords.keys() <= {"recurse", "prefix"}:
        run.mutations += 1
        base.node, base.requires = None, False  # It is a network, and no tensor.
        return Params([base.block(call.site)], True, call.name == "named_parameters")
    if call.name in ("forward", "__call__") and base.leaf is not None:
        return call_opaque(run, base, call)
    if call.name == "zero_grad":
        if base.leaf is not None:
            zero_grad(run, base, [base.leaf], call.site)
        else:
            _unknown_zero(run, base, call.site)
        return NONE
    if call.name == "step":
        for value, _ in call.args[:1]:
            if isinstance(value, Optimizer):
                step(run, value, call.site)
                return Opaque("step")
            if isinstance(value, Function):
                call_value(run, value, Call([], {}, call.site))
        if not call.args:
            return Opaque("step")
    if call.name == "detach":
        if base.storage is None:
            base.storage = Storage()
        return Tensor(None, False, base.storage)
    if base.node is None and call.name in ("train", "eval") and len(call.given) <= (call.name == "train"):
        wanted = call.argument("mode", 0) if call.name == "train" else FALSE
        set_mode(run, base, flag(wanted, True), call.site)
        return base
    if call.name in SAME and not call.discarded:
        return base
    if call.name in ("train", "eval", "apply", "cuda", "to", "float", "half", "double"):
        return base
    if call.name == "requires_grad_" and base.leaf is not None:
        set_requires(run, base, [base.leaf], call.args[0][0] if call.args else TRUE, call.site)
        return base
    if call.name == "load_state_dict" and base.leaf is not None:
        run.change(Tensor.of_leaf(base.leaf), call.site, "load_state_dict")
        return NONE
    if call.name in PLAIN or call.name in ("sample", "state_dict", "no_sync", "accumulate"):
        return Opaque(call.name)
    if call.name in PREPARING and not call.discarded:
        wrapped = prepared(call.args)
        if wrapped is not None:
            return wrapped
    if call.name.startswith("clip_grad"):
        run.clipped.append(run.tick())
        return Opaque(call.name)
    if call.name == "scale" and len(call.args) == 1 and base.node is None:
        value, expression = call.args[0]
        if isinstance(value, (Tensor, Opaque)):
            return scaled(run, base, value, expression, call.site)
    if base.label == "distribution" and base.node is not None and call.name in DENSITIES:
        made = run.node(call.name, call.site)
        made.saves = None
        operands = [o for v, e in [(base, receiver), *call.args] for o in operands_of(v, e)]
        made.edges = tuple(
            Edge(o.node, o.requires is True, o.expression) for o in operands if o.node is not None
        )
        return Tensor(made, base.requires)
    if base.node is not None:
        table = overload(call.name, call.args, call.keywords)
        if table is not None and table.result in ("new", "view", "either", "detached"):
            if table.result == "detached" or not table.differentiable:
                return Tensor()
            return apply(run, table, [(base, receiver), *call.args], call.keywords, call.site)
        if table is not None and table.result == "inplace":
            return base
        return unknown(run, call.args, call.keywords, call.site, call.name, base.node)
    if call.name[-1:] == "_":
        # Torch's own name for what is done in place.
        perhaps_changed(base)
    network = base if base.leaf is not None else base.parent
    if network is not None and network.leaf is not None and call.args and not call.discarded:
        # A method of an unknown network: what comes out was computed with some of its parameters.
        result = unknown(run, call.args, call.keywords, call.site, call.name, certain=False)
        if isinstance(result, Opaque) and run.grad_enabled is not False:
            if result.node is None:
                may_carry(run, result, call.site)
            assert result.node is not None
            result.node.leaves += ((network.leaf, False, None),)
            result.node.opaque, result.requires = not network.stateless(), None
        return result
    child = base.attributes.get(call.name)
    function = child if isinstance(child, Opaque) else Opaque(call.name, None, base)
    base.attributes[call.name] = function
    if function.owner is None and base.owner is not None:
        function.owner = base.owner
    result = call_opaque(run, function, call)
    if result.__class__ is Opaque and call.name == "configure_optimizers":
        # What Lightning calls it, and many without Lightning: the optimizer of this network, if it steps.
        result.handed = call.site, Params([base.block(call.site)])
    if result.__class__ is Opaque and call.name in SHARING:
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
