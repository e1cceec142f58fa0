"""Unknown values: what calling them, or their methods, may do."""

from __future__ import annotations

import ast

from gradfix.autograd import operators, script_options
from gradfix.autograd.arguments import Argument, Call, flag, unwritten
from gradfix.autograd.engine import backward, forget_state, hand_over, havoc, prepares, step, zero_grad
from gradfix.autograd.graph import Backward, Contribution, Leaf, OptimizerState, Storage
from gradfix.autograd.parameters import leaves_of, set_mode, set_requires
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import (
    before_methods,
    call_method,
    call_value,
    called,
    inherent_method,
    method,
    other_methods,
)
from gradfix.autograd.semantics.iteration import EACH
from gradfix.autograd.semantics.operations import (
    Operand,
    apply,
    computed_with,
    enter_call,
    made_by,
    may_carry,
    operands_of,
    overload,
    record,
    scaled,
    unknown,
    weak_update,
)
from gradfix.autograd.semantics.optimizers import make_optimizer
from gradfix.autograd.semantics.tensors import OWN, PLAIN, SAME
from gradfix.autograd.semantics.texts import TEXT, text_method
from gradfix.autograd.symbols import Search, Symbols
from gradfix.autograd.values import (
    FALSE,
    NONE,
    TRUE,
    Const,
    Function,
    Instance,
    Module,
    Optimizer,
    ParameterIterable,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    graphless_value,
    hides_graph,
    tensors_in,
)


@called(Value)
def _call_other(run: Run, value: Value, call: Call) -> Value:
    return call_unknown(run, Unknown("unknown"), call)


@called(Unknown)
def _call_unknown(run: Run, value: Unknown, call: Call) -> Value:
    result = made_by(call_unknown(run, value, call), value, call.args)
    if (
        call.args
        and not call.discarded
        and not value.harmless
        and isinstance(result, Unknown)
        and result.node is None
    ):
        # What is called may be a network: the result may have a graph that cannot be seen.
        may_carry(run, result, call.site)
        if result.node is not None:
            result.node.opaque = not value.stateless()
    if run.symbols is not None:
        run.symbols.note(run.serial, value, call, "", result)
    return result


@other_methods(Value)
def _other_method(
    run: Run,
    base: Value,
    call: Call,
) -> Value:
    return call_unknown(run, Unknown(call.name), call)


@before_methods(Unknown)
def _method_of_unknown(run: Run, value: Unknown, call: Call) -> Value:
    if call.discarded and value.made_from is not None:
        # What is told to reset itself may be a part of the network.
        forget_state(value.made_from, 3)
    result = _by_its_role(run, value, call)
    if result is None:
        result = inherent_method(run, value, call)
    if run.symbols is not None:
        run.symbols.note(run.serial, value, call, call.name, result)
        if call.name in ("step", "unscale_") and call.args:
            run.symbols.note_stepped(call.args[0][0])
    return made_by(result, value, call.args)


SHARING = frozenset(
    (
        *("detach", "view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as"),
        *("t", "permute", "transpose", "to", "float", "cuda"),
    )
)
"""Methods of something unknown whose result may be its memory, if it is a tensor."""


def call_unknown(run: Run, value: Unknown, call: Call) -> Value:
    """Call something unknown: a network if it is known to be one, else a function that may do anything."""
    if value.leaf is not None:
        return _call_unknown_module(run, value, value.leaf, call)
    # Whether a function that is called for no result computes anything is its own business, in a world.
    for_nothing = call.discarded and run.symbols is not None
    if (
        value.owner is not None
        and not for_nothing
        and any(operands_of(v, e) or isinstance(v, (Tensor, Unknown)) for v, e in call.args)
    ):
        # A part of a network that could not be followed: it may have parameters of its own.
        owner = value.owner
        if owner.rest is None:
            owner.rest = Leaf(f"the rest of {owner.label}", None)
        return _call_unknown_module(run, value, owner.rest, call)
    if call.discarded and _observed(value, call):
        return Unknown(value.label)
    if run.symbols is not None and run.symbols.makes(call.site):
        return unknown(run, call.args, call.keywords, call.site, value.label)
    _hand_over(run, value, call)
    handed = None if call.discarded or run.loops else _handed(call, value.label)
    # An environment's step, a game's: an optimizer's gives nothing, or the loss of a closure.
    computes = value.label == "step" and not call.discarded and bool(call.args)
    if (call.discarded and not _only_reads(value, call.args)) or (
        suspicious(value.label, handed is not None) and not computes
    ):
        havoc(run, call.values, call.site, preparing=prepares(run, value.label))
    else:
        _havoc_owners(run, call)
    if for_nothing:
        _may_clear(run, value, call)
        return Unknown(value.label)
    result = unknown(run, call.args, call.keywords, call.site, value.label or "call")
    held = run.symbols.held_by(value) if run.symbols is not None else []
    if held and isinstance(result, Unknown) and not call.discarded:
        computed_with(run, result, held, call.site)
    if handed is not None and isinstance(result, Unknown):
        result.handed = call.site, handed
    return result


def _hand_over(run: Run, called: Unknown, call: Call) -> None:
    """What something unknown is called on gets into its hands, as does what it is a method or a part of.

    Of a library that the model knows it is known that it differentiates nothing. Nor is it assumed of what a
    network computes its result with: an operation on graphs that has no parameters in hand.
    """
    holders = [called]
    while (whole := holders[-1].parent) is not None:
        holders.append(whole)
    if not any(holder.harmless or holder.library for holder in holders):
        # In a world, a symbol that is called for its result is a criterion, or computes as one does.
        computes = run.current_call is not None or (run.symbols is not None and called in run.symbols.keys)
        operation = computes and not call.discarded and not suspicious(called.label)
        hand_over(run, [*holders, *call.values], call.site, operation)


def _observed(value: Unknown, call: Call) -> bool:
    """Whether unknown things are shown the object that trains, one after the other: callbacks, hooks.

    ``for callback in self.callbacks: callback(self)``, or ``callback.on_batch_end(self)``. Such observers are
    assumed to change nothing: the training code is the object's own. Whatever is passed a tensor, a network
    or an optimizer itself, or has the name of a part of training, may do anything.
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
    if value.__class__ is Unknown:
        assert isinstance(value, Unknown)
        return value.node is None and value.leaf is None and value.optimizer is None
    return isinstance(value, (Instance, Const))


def _handed(call: Call, name: str) -> ParameterIterable | None:
    """The parameters that an unknown function is given, first of all or alone: it may make an optimizer.

    One that is named for optimizers is handed networks, too: ``build_optimizer(config, net)``.
    """
    listed = [value for value in call.values if isinstance(value, ParameterIterable)]
    first = listed[0] if len(listed) == 1 else call.argument("params", 0)
    networks = [value for value, _ in call.args if isinstance(value, Module)]
    if networks and "optim" in name.lower():
        return ParameterIterable(leaves_of(Sequence("list", [*networks]))[0])
    if not isinstance(first, (ParameterIterable, SummaryTensor, Sequence)):
        return None
    leaves, complete = leaves_of(first)
    return ParameterIterable(leaves, complete) if leaves and not tensors_in(first) else None


def adopted(run: Run, value: Value) -> Optimizer | None:
    """The optimizer that something is which an unknown function has made of parameters, and which steps."""
    if not isinstance(value, Unknown):
        return None
    if value.optimizer is None and value.handed is not None:
        made, params = value.handed
        value.optimizer = make_optimizer(run, value.label, Call([(params, unwritten(made))], {}, made))
    return value.optimizer


def _may_clear(run: Run, value: Unknown, call: Call) -> None:
    """Code out of sight may clear what the optimizers own that it has at hand: ``trainer.after_step()``."""
    if run.symbols is not None and not is_logging(call):
        for given in (*call.values, *filter(None, [value.parent])):
            for state in run.symbols.optimizers_in(given):
                zero_grad(run, given, state.owned(), call.site, certain=False)


def _havoc_owners(run: Run, call: Call) -> None:
    """An unknown function that is handed an optimizer within training may step it, whatever it returns.

    Before training it makes a scheduler or a wrapper of it.
    """
    if not run.loops:
        return
    given = call.values
    if any(isinstance(v, Optimizer) or (isinstance(v, Unknown) and v.optimizer) for v in given):
        havoc(run, given, call.site)


LOGGING = frozenset(
    """log log_metric log_metrics log_scalar add_scalar add_scalars add_histogram add_image add_images
    add_text scalar_summary set_postfix set_description print write debug info warning""".split()
)
"""What loggers of all makes are called with: a name and a number. They run no backward."""


def _only_reads(value: Unknown, args: list[Argument]) -> bool:
    """Whether a function looks at what it is given and leaves it as it is.

    ``target.load_state(network)``; or a method of tensors that writes to its own: ``averages[name].add_(p)``.
    """
    if value.label.endswith("_") and operators.method(value.label) is not None:
        return True
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


def _call_unknown_module(run: Run, value: Unknown, leaf: Leaf, call: Call) -> Value:
    operands = [o for v, e in call.given for o in operands_of(v, e)]
    entered = enter_call(run, value, [leaf], call)
    recorded, requires, _ = record(
        run, value.label or "network", call.site, [operands, [Operand(leaf, None)]], None
    )
    result = Unknown(value.label)
    if recorded is not None:
        # A network of unknown make: taken to be deep enough to save its own weights.
        recorded.raises_when_freed = True if requires else None
        recorded.opaque = not value.stateless()
        if leaf.requires is True or any(o.requires is True for o in operands):
            recorded.saved += tuple((part_.storage, part_.storage.version, part_) for part_ in leaf.family())
        # Which of its parts take part in it is not known.
        recorded.leaves += tuple((part_, False, None) for part_ in leaf.family()[1:])
        result.node, result.requires = recorded, requires
    if entered is not None:
        run.current_call = None
    return result


def _by_its_role(run: Run, value: Unknown, call: Call) -> Value | None:
    """A method of something unknown that is told by what the value holds, or has turned out to be."""
    held = value.attributes.get(call.name)
    if held is not None and not (isinstance(held, Unknown) and held.label == call.name):
        return call_value(run, held, call)
    if isinstance(value, script_options.Parser):
        return script_options.method(run, value, call.name, call.keywords)
    if (
        isinstance(value, script_options.ScriptOption)
        and isinstance(value.default.value, str)
        and call.name in TEXT
    ):
        parts = [(script_options.given(given), expression) for given, expression in call.args]
        text = text_method(value.default.value, call.name, parts, call.keywords)
        if isinstance(text, Const):
            return script_options.text(text, [value])
    if value.harmless:
        result = Unknown(call.name)
        result.harmless = True
        return result
    if call.name == "get" and not call.keywords and value.node is None:
        setting = script_options.setting(value, [given for given, _ in call.args])
        if setting is not None:
            return setting
    found = _filled(run, value, call)
    if found is not None:
        return found
    if call.name == "append" and call.discarded and len(call.args) == 1 and value.node is None:
        run.store(*call.args[0], value)
    found = _as_optimizer(run, value, call)
    if found is None and value.node is None and value.leaf is None and is_logging(call):
        return Unknown(call.name)
    return found


def _filled(run: Run, value: Unknown, call: Call) -> Value | None:
    """Memory that is made somewhere else, and filled here: it has the graph of what it is filled with."""
    fills = call.name.endswith("_") and operators.method(call.name) is not None
    if not fills or value.node is not None:
        return None
    if not any(t.node is not None for given in call.values for t in tensors_in(given)):
        return None
    filled = unknown(run, call.args, call.keywords, call.site, call.name)
    weak_update(value)
    if isinstance(filled, Unknown) and filled.node is not None:
        value.node, value.requires = filled.node, filled.requires
    return value


def _as_optimizer(run: Run, value: Unknown, call: Call) -> Value | None:
    """A method of what is an optimizer, as it steps or clears gradients."""
    clears_or_steps = call.name == "zero_grad" or (call.name == "step" and not call.args)
    if value.leaf is not None or (value.optimizer is None and not clears_or_steps):
        return None
    optimizer = adopted(run, value)
    if optimizer is None and call.name == "zero_grad" and value.node is None:
        optimizer = _met(run, value, call.site)
    if optimizer is None or (optimizer.state.external and call.name not in ("step", "zero_grad")):
        return None
    return call_method(run, optimizer, call)


@method(Unknown, "backward", "manual_backward")
def _backward(run: Run, value: Unknown, call: Call) -> Value:
    tensors: list[Argument] = [
        (v, e) for v, e in call.args[:1] if isinstance(v, Tensor) or (isinstance(v, Unknown) and v.node)
    ]
    given = tensors[0][0] if tensors else None
    weighs = isinstance(given, Tensor) and given.requires is False and given.lost is None
    if tensors and value.node is None and not weighs:
        # ``accelerator.backward(loss)``; what has no graph is the weight of ``values[i].backward(weight)``.
        event = backward(run, tensors, Call([], call.keywords, call.site))
        event.through = value
    else:
        event = backward(run, [(value, call.receiver)], call)
        # What is handed something is no loss but what differentiates that, as far as anybody can see.
        event.through = value if call.args and value.node is None else None
    return NONE


@method(Unknown, "parameters", "named_parameters")
def _parameters(run: Run, value: Unknown, call: Call) -> Value | None:
    if not call.keywords.keys() <= {"recurse", "prefix"}:
        return None
    run.mutations += 1
    holder: Unknown | None = value
    while holder is not None:
        holder.node, holder.requires = None, False  # It is a network, or holds one, and is no tensor.
        holder = holder.parent
    found = ParameterIterable(
        [value.parameter_block(call.site)], True, call.name == "named_parameters", call.site
    )
    found.whole_networks = None if call.args or call.keywords else (tuple(found.leaves),)
    return found


@method(Unknown, "forward", "__call__")
def _forward(run: Run, value: Unknown, call: Call) -> Value | None:
    return call_unknown(run, value, call) if value.leaf is not None else None


@method(Unknown, "zero_grad")
def _zero_grad(run: Run, value: Unknown, call: Call) -> Value:
    if value.leaf is not None:
        zero_grad(run, value, [value.leaf], call.site)
    else:
        _unknown_zero(run, value, call.site)
    return NONE


@method(Unknown, "step")
def _step(run: Run, value: Unknown, call: Call) -> Value | None:
    if not call.args:
        return Unknown("step")
    first = call.args[0][0]
    if value in run.scaled.values():
        first = adopted(run, first) or first  # It is a scaler, and what it is handed an optimizer.
    if isinstance(first, Optimizer):
        step(run, first, call.site, value)
        return Unknown("step")
    if isinstance(first, Function):
        call_value(run, first, Call([], {}, call.site))
    return None


@method(Unknown, "detach")
def _detach(run: Run, value: Unknown, call: Call) -> Value:
    if value.storage is None:
        value.storage = Storage()
    if value.node is not None:
        run.detached.append((run.next_serial(), value.node, call.site))
    cut = Tensor(None, False, value.storage)
    if run.symbols is not None and value.node is not None:
        cut.detached_from = value.node, call.site
    cut.lost = run.graph_end(value, call.site)
    return cut


MOVING = frozenset("apply cuda to float half double".split())


@method(Unknown, *((SAME | MOVING) - {"train", "eval"}))
def _itself(run: Run, value: Unknown, call: Call) -> Value | None:
    return value if call.name in MOVING or not call.discarded else None


@method(Unknown, "train", "eval")
def _mode(run: Run, value: Unknown, call: Call) -> Value:
    if value.node is None and len(call.given) <= (call.name == "train"):
        wanted = call.argument("mode", 0) if call.name == "train" else FALSE
        set_mode(run, value, flag(wanted, True), call.site)
    return value


@method(Unknown, "requires_grad_")
def _requires_grad(run: Run, value: Unknown, call: Call) -> Value | None:
    if value.leaf is None:
        return value if run.symbols is not None else None
    set_requires(run, value, [value.leaf], call.args[0][0] if call.args else TRUE, call.site)
    return value


@method(Unknown, "load_state_dict")
def _load_state_dict(run: Run, value: Unknown, call: Call) -> Value | None:
    if value.leaf is None:
        return None
    run.change(Tensor.of_leaf(value.leaf), call.site, "load_state_dict")
    return NONE


@method(Unknown, *PLAIN)
def _no_graph(run: Run, value: Unknown, call: Call) -> Value | None:
    if value.leaf is not None:
        return None  # It is a network, and no tensor.
    number = graphless_value(call.name)
    if call.name in OWN:
        number.lost = run.graph_end(value, call.site)
    return number


@method(Unknown, "state_dict", "no_sync", "no_backward_sync", "accumulate")
def _of_its_own(run: Run, value: Unknown, call: Call) -> Value:
    return Unknown(call.name)


@method(Unknown, "scale")
def _scale(run: Run, value: Unknown, call: Call) -> Value | None:
    """As a ``GradScaler`` does, if it is one."""
    if len(call.args) != 1 or value.node is not None:
        return None
    loss, expression = call.args[0]
    if not isinstance(loss, (Tensor, Unknown)):
        return None
    return scaled(run, value, loss, expression, call.site)


@other_methods(Unknown)
def _other_method_of_unknown(run: Run, value: Unknown, call: Call) -> Value:
    if value.node is not None:
        return _of_tensor(run, value, call)
    if value.graphless and _computes(value, call):
        return _sharing(value, call, graphless_value(call.name, value))
    if call.name == "zero_" and value.label == "grad":
        _unknown_zero(run, value, call.site)
    if call.name[-1:] == "_":
        # Torch's own name for what is done in place.
        weak_update(value)
    if run.symbols is not None:
        return _of_symbol(run, run.symbols, value, call)
    network = value if value.leaf is not None else value.parent
    if network is not None and network.leaf is not None and call.args and not call.discarded:
        return _of_network(run, network, network.leaf, call)
    child = value.attributes.get(call.name)
    function = child if isinstance(child, Unknown) else Unknown(call.name, None, value)
    value.attributes[call.name] = function
    if function.owner is None and value.owner is not None:
        function.owner = value.owner
    return _given_by_method(value, call, call_unknown(run, function, call))


def _of_symbol(run: Run, symbols: Symbols, value: Unknown, call: Call) -> Value:
    """A method of something that is a symbol, or of a part of one: it may be a network that the symbol holds.

    ``state.model(x)`` is written as a call of a method is.
    """
    held = value.attributes.get(call.name)
    if held is None:
        held = symbols.part(value, Unknown(call.name, None, value), call.name, call.site)
        value.attributes[call.name] = held
    if not isinstance(held, Unknown):
        return call_value(run, held, call)
    if held.owner is None and value.owner is not None:
        held.owner = value.owner
    network = value if value.leaf is not None else value.parent
    if (
        held.leaf is None
        and network is not None
        and network.leaf is not None
        and call.args
        and not call.discarded
    ):
        result = _of_network(run, network, network.leaf, call)
    else:
        result = call_unknown(run, held, call)
    note_method(run, symbols, held, call, result)
    if isinstance(result, Unknown) and result.node is not None:
        computed_with(run, result, symbols.beside(held), call.site)
    return _given_by_method(value, call, result)


def note_method(run: Run, symbols: Symbols, held: Unknown, call: Call, result: Value) -> None:
    """Note a method that may be a network; where such are looked for, what it gives may have a graph."""
    if not call.discarded and isinstance(result, Unknown) and result.node is None:
        if symbols.world.search > Search.CALLED:
            may_carry(run, result, call.site)
        else:
            symbols.may_find_more = True
    symbols.note(run.serial, held, call, "", result)
    symbols.methods.add(symbols.keys.get(held))


def _given_by_method(value: Unknown, call: Call, result: Value) -> Value:
    """What a method of something unknown gives, where its name says more of that."""
    if isinstance(result, Unknown) and result.__class__ is Unknown and call.name == "configure_optimizers":
        # What Lightning calls it, and many without Lightning: the optimizer of this network, if it steps.
        result.handed = call.site, ParameterIterable([value.parameter_block(call.site)])
    elif (
        isinstance(result, Unknown) and result.__class__ is Unknown and not call.given and not call.discarded
    ):
        result.become_part(value, f"{call.name}()")
    return _sharing(value, call, result)


def _sharing(value: Unknown, call: Call, result: Value) -> Value:
    """What a method gives, with the memory of what it is a method of where it may have that."""
    if isinstance(result, Unknown) and result.__class__ is Unknown and call.name in SHARING:
        if value.storage is None:
            value.storage = Storage()
        result.storage = value.storage
    return result


def _computes(value: Unknown, call: Call) -> bool:
    """Whether a method is an operation of torch on data, which gives data again."""
    table = overload(call.name, call.args, call.keywords)
    return (
        table is not None
        and table.result != "inplace"
        and not any(hides_graph(given) or operands_of(given, None) for given in call.values)
    )


def _of_tensor(run: Run, value: Unknown, call: Call) -> Value:
    """A method of what carries a graph: an operation of torch, if it is one of those."""
    table = overload(call.name, call.args, call.keywords)
    if table is not None and table.result in ("new", "view", "either", "detached"):
        if table.result == "detached" or not table.differentiable:
            cut = Tensor()
            cut.lost = run.graph_end(value, call.site)
            return cut
        return apply(run, table, [(value, call.receiver), *call.args], call.keywords, call.site)
    if table is not None and table.result == "inplace":
        return value
    _hand_over(run, value, call)
    return unknown(run, call.args, call.keywords, call.site, call.name, value.node)


def _of_network(run: Run, network: Unknown, leaf: Leaf, call: Call) -> Value:
    """A method of an unknown network: what comes out was computed with some of its parameters."""
    _hand_over(run, network, call)
    result = unknown(run, call.args, call.keywords, call.site, call.name, certain=False)
    if isinstance(result, Unknown) and run.grad_enabled is not False:
        computed_with(run, result, [leaf], call.site)
        assert result.node is not None
        result.node.opaque, result.requires = not network.stateless(), None
    return result


def is_logging(call: Call) -> bool:
    """Whether a call says something under a name: ``log("loss", loss, step)``, ``set_postfix(loss=loss)``.

    What is called ``log_...`` may be shown a network as well, and says what nobody else makes use of
    without a name too: ``writer.log_validation(loss, network, step)``.
    """
    given, name = call.values, call.name
    if not (name in LOGGING or name.startswith("log_")) or any(
        isinstance(v, (Optimizer, Function)) for v in given
    ):
        return False
    if any(isinstance(v, Module) for v in given) and not name.startswith("log_"):
        return False
    if not call.args:
        return bool(call.keywords)
    if call.discarded and name.startswith("log_"):
        return True
    value, expression = call.args[0]
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Mod, ast.Add)):
        expression = expression.left  # "conv%d" % number
    if isinstance(expression, ast.Constant):
        return isinstance(expression.value, str)
    return isinstance(expression, ast.JoinedStr) or (
        isinstance(value, Const) and isinstance(value.value, str)
    )


def _met(run: Run, base: Unknown, node: ast.AST) -> Optimizer | None:
    """An object that was passed in and whose ``zero_grad`` is called: if it also steps, it is an external
    optimizer.

    Where others are known, nothing is said of it but that it may clear theirs.
    """
    if run.optimizers or run.symbols is not None:
        return None
    state = OptimizerState(base.label, node, run.loops)
    owned = Leaf(base.label, None)
    owned.grad = {e: Contribution(False) for e in run.events if isinstance(e, Backward) and e.accumulates}
    state.leaves, state.external = [owned], True
    run.external_optimizers.append(state)
    base.optimizer = Optimizer(state)
    return base.optimizer


def _unknown_zero(run: Run, base: Unknown, node: ast.AST) -> None:
    """``zero_grad`` on something unknown: it may clear any gradient that is in the run."""
    for state in [*(o.state for o in run.optimizers), *run.external_optimizers]:
        zero_grad(run, base, state.leaves, node, certain=False)
