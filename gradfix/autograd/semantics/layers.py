"""Networks: construction, calls, copies and methods."""

from __future__ import annotations

import ast

from gradfix.autograd import operators
from gradfix.autograd.arguments import Argument, Call, flag, to_none, unwritten
from gradfix.autograd.engine import hand_over, havoc, prepares, zero_grad
from gradfix.autograd.graph import Edge, Leaf, Storage, Tri
from gradfix.autograd.parameters import (
    LAYERED,
    _below,
    add_layers,
    havoc_versions,
    hold,
    known_leaves,
    module_leaves,
    set_mode,
    set_requires,
)
from gradfix.autograd.run import Chain, Run
from gradfix.autograd.semantics.attributes import calls_network, method_held, set_attribute
from gradfix.autograd.semantics.dispatch import (
    before_methods,
    call_value,
    called,
    iterate,
    method,
    other_methods,
)
from gradfix.autograd.semantics.names import CONTEXT, FUNCTION, MODULE_METHODS
from gradfix.autograd.semantics.operations import (
    Operand,
    apply,
    enter_call,
    operands_of,
    record,
    weak_update_of_operand,
)
from gradfix.autograd.semantics.statelessness import keeps_nothing
from gradfix.autograd.semantics.tensors import SAME
from gradfix.autograd.semantics.unknown import call_unknown
from gradfix.autograd.summaries import summarised
from gradfix.autograd.values import (
    FALSE,
    NONE,
    TRUE,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Module,
    ParameterIterable,
    Sequence,
    Tensor,
    Unknown,
    Value,
)


@called(Module)
def _call_module(run: Run, value: Module, call: Call) -> Value:
    return call_module(run, value, call)


@before_methods(Module)
def _method_of_the_project(run: Run, module: Module, call: Call) -> Value | None:
    if calls_network(module, call.name):
        return call_module(run, module, call)
    held = method_held(run, module, call.name, call.site)
    if held is not None:
        if isinstance(held, Unknown) and held.owner is None:
            held.owner = module
        return call_value(run, held, call)
    if call.name in CONTEXT and module.cls is not None and FUNCTION in module.cls.outside():
        return NONE
    return None


def call_module(run: Run, module: Module, call: Call) -> Value:
    """Run a network's forward."""
    if run.current_call is not None:
        return _forward(run, module, call)
    entered = enter_call(run, module, known_leaves(run, module), call)
    try:
        if call.keywords or entered is None:
            result = _forward(run, module, call)
        else:
            result = summarised(run, module, [v for v, _ in call.args], lambda: _forward(run, module, call))
        if entered is not None:
            entered.result = result
        return result
    finally:
        if entered is not None:
            run.current_call = None


def _forward(run: Run, module: Module, call: Call) -> Value:
    if module.kind == "user":
        assert module.cls is not None
        # One that says itself how it is called has no need of a forward.
        forward = module.cls.lookup("__call__") or module.cls.lookup("forward")
        if isinstance(forward, Function):
            return call_value(run, forward.bind(module), Call(call.args, call.keywords, call.site))
        if module.items:
            return _chain(run, module, call.args, call.site)
        if module.rest is None:
            module.rest = Leaf(f"the rest of {module.label}", None)
        return _block_forward(run, module, module.rest, call)
    if module.kind == "torch.nn.Sequential" and module.leaf is None:
        return _chain(run, module, call.args, call.site)
    inplace = module.options.get("inplace")
    overwrites = isinstance(inplace, Const) and bool(inplace.value)
    if overwrites:
        _note_use(run, module, call)
    active = drops(module.options.get("p"), module.training) if module.kind in DROPOUTS else True
    mode = "#eval" if active is False else "#inplace" if overwrites and active else ""
    kind = module.kind + (".plain" if "affine" in module.options and module.leaf is None else "")
    table = operators.module(kind + mode) or operators.module(kind)
    if table is None:
        if module.kind.startswith("torch.nn.") and module.kind.rpartition(".")[2] not in CONTAINERS:
            run.unknown_functions.setdefault(module.kind, call.site)
        return _block_forward(run, module, module.leaf, call)
    result = apply(run, table, call.args, call.keywords, call.site, module.leaf, module)
    if module.leaf is not None and isinstance(result, Tensor) and result.node is not None:
        # A weight that was computed leads on to what it was computed of.
        bound = (module.attributes.get(name) for name in ("weight", "bias"))
        result.node.edges += tuple(
            Edge(one.node, False, None)
            for one in bound
            if isinstance(one, Tensor) and one.node is not None and one.node is not result.node
        )
    if overwrites and active is None:
        weak_update_of_operand(call.args, call.keywords, result)
    return result


DROPOUTS = frozenset(
    f"torch.nn.{name}"
    for name in "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout".split()
)


def drops(probability: Value | None, training: Tri) -> Tri:
    """Whether dropout changes anything: not in evaluation, nor at a probability of zero.

    It then gives back what it was given, whether it works in place or not (tried: torch 2.13).
    """
    known = probability.value if isinstance(probability, Const) else None
    likely = bool(known) if isinstance(known, (int, float)) else None
    if training is False or likely is False:
        return False
    return True if training and likely else None


def _chain(run: Run, module: Module, args: list[Argument], node: ast.AST) -> Value:
    value: Value = args[0][0] if args else Unknown("input")
    expression = args[0][1] if args else unwritten(node)
    outer = run.chain
    if outer is None or outer.site is not node:
        given = value.storage if isinstance(value, (Tensor, Unknown)) else None
        run.chain = Chain(node, given, Storage().serial)
    try:
        for child in module.items:
            run.charge(1)
            value = call_value(run, child, Call([(value, expression)], {}, node))
            if not (isinstance(child, Module) and (child.kind != "user" or keeps_nothing(child))):
                # Whoever wrote that layer may have put away what it gave.
                assert run.chain is not None
                run.chain = run.chain._replace(born=Storage().serial)
    finally:
        if outer is None or outer.site is not node:
            run.chain = outer
    return value


def _note_use(run: Run, layer: Module, call: Call) -> None:
    """Note where a layer works in place on what others may hold: not on what only its neighbours had."""
    if layer.created is None:
        return
    given = call.args[0] if call.args else call.keywords.get("input")
    held: ast.expr | None = given[1] if given is not None else None
    chain = run.chain
    if chain is not None and chain.site is call.site:
        storage = given[0].storage if given is not None and isinstance(given[0], Tensor) else None
        if storage is not None and storage.serial > chain.born:
            return
        if storage is None or storage is not chain.given:
            held = None
    run.overwriters.setdefault(layer.created, {})[call.site] = held


def _block_forward(run: Run, module: Module, leaf: Leaf | None, call: Call) -> Value:
    operands = [o for v, e in call.given for o in operands_of(v, e)]
    slots = [operands, [Operand(leaf, None)] if leaf is not None else []]
    recorded, requires, _ = record(run, module.label, call.site, slots, None)
    result = Unknown(module.label)
    if recorded is not None:
        recorded.raises_when_freed = True if requires and leaf is not None and leaf.requires else None
        recorded.opaque = not keeps_nothing(module)
        if leaf is not None and leaf.requires is True:
            recorded.saved += ((leaf.storage, leaf.storage.version, leaf),)
        result.node, result.requires = recorded, requires
    return result


@method(Module, "parameters", "named_parameters")
def _parameters(run: Run, module: Module, call: Call) -> Value:
    found = ParameterIterable(module_leaves(module), True, call.name == "named_parameters", call.site)
    found.whole_networks = None if call.args or call.keywords else (tuple(found.leaves),)
    return found


@method(Module, *(SAME - {"train", "eval", "apply"}))
def _module_itself(run: Run, module: Module, call: Call) -> Value:
    return module


@method(Module, "train", "eval")
def _mode(run: Run, module: Module, call: Call) -> Value:
    wanted = call.argument("mode", 0) if call.name == "train" else FALSE
    set_mode(run, module, flag(wanted, True), call.site)
    return module


@method(Module, "apply")
def _initialised(run: Run, module: Module, call: Call) -> Value:
    havoc_versions(run, module)
    return module


@method(Module, "zero_grad")
def _zero_grad(run: Run, module: Module, call: Call) -> Value:
    zero_grad(run, module, module_leaves(module), call.site, to_none(call))
    return NONE


@method(Module, "requires_grad_")
def _requires_grad(run: Run, module: Module, call: Call) -> Value:
    wanted = call.args[0][0] if call.args else call.keywords.get("requires_grad", (TRUE, call.site))[0]
    set_requires(run, module, module_leaves(module), wanted, call.site)
    return module


@method(Module, "forward", "__call__")
def _forward_itself(run: Run, module: Module, call: Call) -> Value:
    return call_module(run, module, call)


@method(Module, "load_state_dict")
def _load_state_dict(run: Run, module: Module, call: Call) -> Value:
    for leaf in module_leaves(module):
        run.change(Tensor.of_leaf(leaf), call.site, "load_state_dict")
    return NONE


@method(Module, "register_buffer", "register_parameter", "add_module", "register_module")
def _register(run: Run, module: Module, call: Call) -> Value | None:
    if len(call.args) < 2:
        return None
    key, (part, expression) = call.args[0][0], call.args[1]
    if isinstance(key, Const) and isinstance(key.value, str):
        set_attribute(run, module, key.value, part, expression)
        if isinstance(part, (Module, Unknown)) and module.kind in LAYERED:
            add_layers(module, [part])
    elif isinstance(part, Module) or (isinstance(part, Unknown) and module.kind in LAYERED):
        add_layers(module, [part])
    return NONE


@method(Module, "append")
def _append(run: Run, module: Module, call: Call) -> Value | None:
    if not call.args:
        return None
    add_layers(module, [call.args[0][0]])
    return module


@method(Module, "extend")
def _extend(run: Run, module: Module, call: Call) -> Value | None:
    if not call.args:
        return None
    items, element = iterate(run, call.args[0][0], None)
    add_layers(module, [element(0)] if items is None else items)
    return module


@method(Module, "update")
def _update(run: Run, module: Module, call: Call) -> Value | None:
    layers = call.args[0][0] if call.args else None
    if not isinstance(layers, Mapping) or module.kind != "torch.nn.ModuleDict":
        return None
    run.mutations += 1
    hold(module, layers.items.values())
    module.attributes.update({str(key): layer for key, layer in layers.items.items()})
    return NONE


@method(Module, "modules")
def _modules(run: Run, module: Module, call: Call) -> Value:
    return Sequence("list", list(_below(module, {})))


@method(Module, "children", "values")
def _children(run: Run, module: Module, call: Call) -> Value:
    parts = [*module.items, *module.attributes.values()]
    return Sequence("list", [part for part in parts if isinstance(part, (Module, Unknown))])


@method(Module, "named_children", "items", "named_modules")
def _named_children(run: Run, module: Module, call: Call) -> Value:
    pairs: list[Value] = [
        Sequence("tuple", [Const(k), v]) for k, v in module.attributes.items() if isinstance(v, Module)
    ]
    return Sequence("list", pairs, call.name == "named_modules")


@method(Module, "keys")
def _keys(run: Run, module: Module, call: Call) -> Value:
    return Sequence("list", [Const(k) for k in module.attributes])


@other_methods(Module)
def _other_method(run: Run, module: Module, call: Call) -> Value:
    if call.name in MODULE_METHODS:
        return Unknown(call.name)
    fresh = Unknown(call.name)
    fresh.owner = module if not call.discarded else None
    module.attributes[call.name] = fresh
    hand_over(run, [module, *call.values], call.site)
    if call.discarded:
        havoc(run, [module, *call.values], call.site, preparing=prepares(run, call.name))
        return NONE
    return call_unknown(run, fresh, call)


CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})


def canonical_module(name: str) -> str:
    """``torch.nn.modules.linear.Linear`` -> ``torch.nn.Linear``."""
    if name.startswith("torch.nn.modules."):
        return "torch.nn." + name.rsplit(".", 1)[-1]
    return name


INPLACE = {
    **dict.fromkeys("ReLU ReLU6 SELU SiLU Mish Hardswish Hardsigmoid".split(), 0),
    **dict.fromkeys("ELU CELU LeakyReLU".split(), 1),
    **dict.fromkeys("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout".split(), 1),
    **dict.fromkeys("Threshold Hardtanh RReLU".split(), 2),
    **dict.fromkeys("relu relu6 selu silu mish hardswish hardsigmoid".split(), 1),
    **dict.fromkeys("elu celu leaky_relu".split(), 2),
    **dict.fromkeys("threshold hardtanh dropout dropout1d dropout2d dropout3d".split(), 3),
    **dict.fromkeys("alpha_dropout feature_alpha_dropout".split(), 3),
    "rrelu": 4,
}
"""Where a layer, or a function of ``torch.nn.functional``, takes ``inplace`` by position."""


AFFINE = {
    **dict.fromkeys(("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"), ("affine", 3, FALSE)),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm"), ("affine", 3, TRUE)),
    **dict.fromkeys(("LayerNorm", "RMSNorm"), ("elementwise_affine", 2, TRUE)),
}
"""Layers that have parameters only if they are asked to: how they are asked, and what they do if not."""


def _parameters_seen(call: Call) -> bool:
    """Whether some of the layers that a ``Sequential`` is made of are known to have parameters.

    If not, it is one block; else an optimizer may have those, and its layers are called one by one.
    """
    return any(
        layer.leaves() if isinstance(layer, Module) else layer.leaf is not None
        for layer in call.values
        if isinstance(layer, (Module, Unknown))
    )


def make_module(run: Run, name: str, last: str, call: Call) -> Value:
    """An instance of one of torch's own modules."""
    module = Module(name)
    module.created = call.site
    if last in CONTAINERS:
        for value, _ in call.args:
            if isinstance(value, Mapping):
                module.items += list(value.items.values())
                module.attributes.update({k: v for k, v in value.items.items() if isinstance(k, str)})
                unknown_items = value.open
            elif isinstance(value, (Sequence, ParameterIterable)) or not isinstance(
                value, (Module, Unknown, Function, Class)
            ):
                items, element = iterate(run, value, None)
                pairs = items if items is not None else [element(0)]
                module.items += [_second(v) for v in pairs]
                unknown_items = items is None and last == "Sequential"
                for pair in pairs:
                    if (
                        isinstance(pair, Sequence)
                        and len(pair.items) == 2
                        and isinstance(pair.items[0], Const)
                    ):
                        module.attributes[str(pair.items[0].value)] = pair.items[1]
            else:
                module.items.append(value)
                unknown_items = isinstance(value, Unknown) and not _parameters_seen(call)
            if unknown_items and last == "Sequential":
                module.leaf = Leaf(module.label)
        hold(module, [] if module.leaf is not None else [*module.items, *module.attributes.values()])
        return module
    if last in ("DataParallel", "DistributedDataParallel"):
        return call.args[0][0] if call.args else module
    if last in INPLACE:
        module.options["inplace"] = call.argument("inplace", INPLACE[last]) or FALSE
    if name in DROPOUTS:
        module.options["p"] = call.argument("p", 0) or Const(None if "**" in call.keywords else 0.5)
    table = operators.module(name)
    if (affine := AFFINE.get(last.removeprefix("Lazy"))) is not None:
        keyword, position, default = affine
        module.options["affine"] = call.argument(keyword, position) or default
    if flag(module.options.get("affine"), None) is False:
        return module
    if table is None or "weight" in table.operands:
        module.leaf = Leaf(module.label)
        given = call.keywords.get("bias")
        known = given is None or (isinstance(given[0], Const) and given[0].value is True)
        # Up to the places at which these take a bias by position.
        places = {"Linear": 2, "Conv1d": 7, "Conv2d": 7, "Conv3d": 7}
        module.biased = known and len(call.args) <= places.get(last, -1) and "**" not in call.keywords
    return module


def _second(value: Value) -> Value:
    if isinstance(value, Sequence) and len(value.items) == 2:
        return value.items[1]
    return value


def deep_copy(value: Value, copies: dict[Module, Module] | None = None) -> Value:
    """``copy.deepcopy``: a network of the same make with parameters of its own.

    ``copies`` are those that were made: of what is in it more than once there is one.
    """
    copies = {} if copies is None else copies
    if isinstance(value, Module):
        if value in copies:
            return copies[value]
        copy = copies[value] = Module(value.kind, value.label, value.cls)
        copy.options, copy.training = dict(value.options), value.training
        copy.biased, copy.created = value.biased, value.created
        copy.items = [deep_copy(v, copies) for v in value.items]
        copy.attributes = {k: deep_copy(v, copies) for k, v in value.attributes.items()}
        for slot in ("leaf", "rest"):
            leaf = getattr(value, slot)
            if leaf is not None:
                own = Leaf(leaf.label, leaf.requires)
                own.copied = True
                setattr(copy, slot, own)
        return copy
    if isinstance(value, Sequence):
        return Sequence(value.kind, [deep_copy(v, copies) for v in value.items], value.open)
    if isinstance(value, Mapping):
        return value.__class__({k: deep_copy(v, copies) for k, v in value.items.items()}, value.open)
    if isinstance(value, Tensor) and value.leaf is not None:
        leaf = Leaf(value.leaf.label, value.leaf.requires, value.leaf.created)
        return Tensor.of_leaf(leaf)
    if isinstance(value, Unknown) and value.leaf is not None:
        made = Unknown(value.label)
        made.parameter_block().requires = value.leaf.requires
        made.parameter_block().copied = True
        return made
    if isinstance(value, (Instance, Unknown)):
        return Unknown("copy")
    return value
