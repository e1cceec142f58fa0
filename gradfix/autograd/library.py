"""What the model knows of functions and classes from outside the project, by dotted name."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from gradfix.autograd import adjusting, frameworks, imports, operators, options
from gradfix.autograd.calls import (
    DROPOUTS,
    MODULE_METHODS,
    Argument,
    Attributes,
    Exited,
    Iteration,
    Keywords,
    apply,
    attribute,
    bind_weight,
    call,
    call_opaque,
    drops,
    hold,
    is_tensor,
    iterate,
    keeps_nothing,
    leaves_of,
    module_method,
    operands_of,
    perhaps_in_place,
    set_attribute,
    simple,
    unknown,
)
from gradfix.autograd.engine import backward, differentiate, flag, option, poison
from gradfix.autograd.graph import Leaf, OptimizerState, Tri
from gradfix.autograd.relevance import walk
from gradfix.autograd.values import (
    FALSE,
    NONE,
    TRUE,
    Class,
    Const,
    Each,
    External,
    Function,
    GradMode,
    Instance,
    Length,
    Mapping,
    Module,
    Opaque,
    Optimizer,
    Params,
    Partial,
    Process,
    Record,
    Scaled,
    Sequence,
    Tensor,
    Value,
    tensors_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradfix.autograd.interpreter import Run

    Handler = Callable[[Run, list[Argument], Keywords, ast.AST], Value]

CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})

WRAPPERS = frozenset(
    """torch.nn.DataParallel torch.nn.parallel.DistributedDataParallel torch.compile torch.jit.script
    apex.parallel.DistributedDataParallel apex.parallel.convert_syncbn_model
    torch.nn.utils.spectral_norm torch.nn.utils.weight_norm torch.nn.utils.parametrizations.spectral_norm
    torch.nn.utils.parametrizations.weight_norm torch.nn.SyncBatchNorm.convert_sync_batchnorm
    torch.nn.utils.remove_weight_norm torch.jit.trace tqdm.tqdm tqdm.auto.tqdm tqdm.notebook.tqdm
    tqdm.trange typing.cast torch.as_tensor torch.nn.utils.remove_spectral_norm""".split()
)
"""Calls whose result is, to autograd, their first argument."""

OPTIMIZERS = frozenset(
    """Adadelta Adagrad Adam AdamW Adamax ASGD LBFGS NAdam RAdam RMSprop Rprop SGD SparseAdam Adafactor Muon
    Lion Lamb LAMB RangerLars Ranger AdaBound AdaBelief FusedAdam""".split()
)

AVERAGES = frozenset(
    """timm.utils.ModelEma timm.utils.ModelEmaV2 timm.utils.ModelEmaV3 torch_ema.ExponentialMovingAverage
    ema_pytorch.EMA diffusers.training_utils.EMAModel""".split()
)
"""Averages of weights: they are updated from a network, and leave its gradients alone."""

SCHEDULING = frozenset({"transformers", "diffusers"})
"""Libraries that make schedules of learning rates: ``get_linear_schedule_with_warmup(optimizer, ...)``."""

HARMLESS = frozenset(
    """numpy os sys time math random json pickle csv logging warnings datetime pathlib shutil glob re string
    torchvision matplotlib PIL cv2 wandb tensorboardX tensorboard tqdm pandas scipy sklearn skimage imageio
    gym gymnasium visdom pprint collections itertools argparse yaml h5py copy typing dataclasses abc io
    torchaudio torchtext datasets soundfile librosa seaborn termcolor colorama tabulate torchsummary
    torchinfo tensorflow mlflow comet_ml neptune swanlab loguru rich""".split()
)
"""Libraries that neither run backward nor touch parameters."""

NETWORKS = frozenset(
    """torchvision timm transformers segmentation_models_pytorch efficientnet_pytorch pretrainedmodels
    facenet_pytorch lpips clip open_clip monai""".split()
)
"""Libraries whose networks keep no graph from call to call: all the world trains them without the flag."""


def call_external(
    run: Run, name: str, args: list[Argument], keywords: Keywords, node: ast.AST, discarded: bool = False
) -> Value:
    """Call something imported, or a builtin."""
    handler = HANDLERS.get(name)
    if handler is not None:
        return handler(run, args, keywords, node)
    last = name.rsplit(".", 1)[-1]
    root = name.split(".", 1)[0]
    if root == "torch":
        value = _torch(run, name, last, args, keywords, node)
        if value is not None:
            return value
    first = args[0][0] if args else None
    if name in WRAPPERS and first is not None:
        return first
    if (isinstance(first, (Params, Each)) and last[:1].isupper()) or last in OPTIMIZERS:
        return make_optimizer(run, last, args, keywords, node)
    if root == "builtins":
        return _builtin(run, last, args, keywords, node)
    if last == "deepcopy" and first is not None:
        return deep_copy(first)
    if name in AVERAGES:
        return _follower(last, [])
    if root in SCHEDULING and "schedule" in last:
        made = adjusting.make_schedule(last, args, keywords)
        if made is not None:
            return made
    if root in NETWORKS:
        made = (
            _result_of_harmless(run, name, root, args, keywords, node, last)
            if root in HARMLESS
            else call_opaque(run, Opaque(last), args, keywords, node, discarded)
        )
        if isinstance(made, Opaque):
            made.library = made.node is None
        return made
    if root in HARMLESS or name.startswith(("torch.utils.", "torch.distributed.", "torch.nn.utils.clip")):
        if any(isinstance(v, Module) for v, _ in args) and root not in HARMLESS:
            poison(run, [v for v, _ in args], node)
        return _result_of_harmless(run, name, root, args, keywords, node, last)
    return call_opaque(run, Opaque(last), args, keywords, node, discarded)


def known(name: str) -> bool:
    """Whether a dotted name is one that the model knows something of."""
    if name in HANDLERS or name in WRAPPERS or operators.function(name) or operators.module(name):
        return True
    package, _, last = name.rpartition(".")
    return (package == "torch.optim" and last in OPTIMIZERS) or (
        package in ("torch", "torch.nn") and last in {*CONTAINERS, "nn", "optim", "autograd", "Module"}
    )


def _result_of_harmless(
    run: Run, name: str, root: str, args: list[Argument], keywords: Keywords, node: ast.AST, last: str
) -> Value:
    if root in ("torchvision", "torchaudio", "collections", "copy", "typing"):
        made = unknown(run, args, keywords, node, last)
        if name.startswith(("torchvision.transforms.", "torchaudio.transforms.")) and isinstance(
            made, Opaque
        ):
            made.harmless = made.node is None
        return made
    result = Opaque(last)
    # A logger, a progress bar, a plot: what is done with it only tells.
    result.harmless = root in ("logging", "wandb", "tensorboardX", "visdom", "tqdm", "argparse") or last in (
        "SummaryWriter",
    )
    return result


# ---------------------------------------------------------------------- torch


def _torch(
    run: Run, name: str, last: str, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value | None:
    if name.startswith("torch.optim.") and ".lr_scheduler." not in name and last[:1].isupper():
        if name.startswith("torch.optim.swa_utils"):
            return _follower(last, args)
        return make_optimizer(run, last, args, keywords, node)
    if ".lr_scheduler." in name:
        return adjusting.make_schedule(last, args, keywords) or _follower(last, args)
    if name.startswith("torch.nn.") and last in MODULE_METHODS and args and isinstance(args[0][0], Module):
        # ``nn.Module.train(self, mode)``: the method of the base class, past the one that overrides it.
        return module_method(run, args[0][0], last, args[1:], keywords, node, False)
    if name.startswith("torch.nn.") and last[:1].isupper():
        return make_module(run, canonical_module(name), last, args, keywords, node)
    if name.startswith("torch.nn.init."):
        for value, _ in args[:1]:
            if isinstance(value, Tensor):
                run.change(value, node, last)
            for leaf in leaves_of(value)[0] if isinstance(value, Each) else ():
                run.change(Tensor.of_leaf(leaf), node, last)
        return args[0][0] if args else NONE
    if name.startswith(("torch.nn.utils.clip_grad", "torch.cuda.", "torch.manual_seed", "torch.backends.")):
        return Opaque(last)
    lookup = name
    inplace = None
    active: Tri = True
    if name.startswith("torch.nn.functional.") and last in INPLACE:
        inplace = option(args, keywords, "inplace", INPLACE[last])
        if last in ("dropout", "dropout1d", "dropout2d", "dropout3d"):
            training = flag(option(args, keywords, "training", 2), True)
            active = drops(option(args, keywords, "p", 1) or Const(0.5), training)
    overwrites = isinstance(inplace, Const) and inplace.value is True
    if active is False:
        lookup = f"{name}#eval"
    elif overwrites and active:
        lookup = f"{name}#inplace"
    table = _function_row(lookup, name, args, keywords)
    if table is None:
        return None
    if not table.operands or not any(table.saved):
        if "requires_grad" in keywords or last == "tensor":
            return _created(run, keywords, node)
        if not table.operands:
            return _created(run, keywords, node)
    result = apply(run, table, args, keywords, node)
    if overwrites and active is None:
        perhaps_in_place(args, keywords, result)
    return result


def _follower(last: str, args: list[Argument]) -> Value:
    """A schedule of learning rates, or an average of weights: it reads weights and leaves gradients alone."""
    result = Opaque(last)
    result.harmless = True
    if args and isinstance(args[0][0], (Optimizer, Module)):
        result.attributes["module" if isinstance(args[0][0], Module) else "optimizer"] = args[0][0]
    return result


def _function_row(
    lookup: str, name: str, args: list[Argument], keywords: Keywords
) -> operators.Operator | None:
    second = args[1][0] if len(args) > 1 else NONE
    scalar = isinstance(second, Const) and isinstance(second.value, (int, float))
    return _variant(lookup, name, scalar, is_tensor(second), "dim" in keywords)


@lru_cache(maxsize=1024)
def _variant(lookup: str, name: str, scalar: bool, other: bool, dim: bool) -> operators.Operator | None:
    """The row of a function for the way in which it is called."""
    ways = ["scalar", "dim"] if scalar else []
    ways += ["other"] * other + ["dim"] * dim
    found = (operators.function(f"{lookup}.{way}") for way in ways)
    return next(filter(None, found), None) or operators.function(lookup) or operators.function(name)


def _created(run: Run, keywords: Keywords, node: ast.AST) -> Tensor:
    """A new tensor: a leaf if ``requires_grad`` was asked for."""
    wanted: Tri = flag(keywords["requires_grad"][0], False) if "requires_grad" in keywords else False
    tensor = Tensor()
    if wanted is not False:
        leaf = Leaf("tensor", wanted, node)
        leaf.storage = tensor.storage
        tensor.leaf = leaf
        tensor.requires = wanted
    return tensor


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


def make_module(
    run: Run, name: str, last: str, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value:
    """An instance of one of torch's own modules."""
    module = Module(name)
    module.created = node
    if last in CONTAINERS:
        for value, _ in args:
            if isinstance(value, Mapping):
                module.items += list(value.items.values())
                module.attributes.update({k: v for k, v in value.items.items() if isinstance(k, str)})
                unknown_items = value.open
            elif isinstance(value, (Sequence, Params)) or not isinstance(
                value, (Module, Opaque, Function, Class)
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
                unknown_items = isinstance(value, Opaque)
            if unknown_items and last == "Sequential":
                module.leaf = Leaf(module.label)
        hold(module, [] if last == "Sequential" else [*module.items, *module.attributes.values()])
        return module
    if last in ("DataParallel", "DistributedDataParallel"):
        return args[0][0] if args else module
    if last in INPLACE:
        module.options["inplace"] = option(args, keywords, "inplace", INPLACE[last]) or FALSE
    if name in DROPOUTS:
        module.options["p"] = option(args, keywords, "p", 0) or Const(None if "**" in keywords else 0.5)
    table = operators.module(name)
    if table is None or "weight" in table.operands:
        module.leaf = Leaf(module.label)
        given = keywords.get("bias")
        known = given is None or (isinstance(given[0], Const) and given[0].value is True)
        # Up to the places at which these take a bias by position.
        places = {"Linear": 2, "Conv1d": 7, "Conv2d": 7, "Conv3d": 7}
        module.biased = known and len(args) <= places.get(last, -1) and "**" not in keywords
    return module


def _second(value: Value) -> Value:
    if isinstance(value, Sequence) and len(value.items) == 2:
        return value.items[1]
    return value


def make_optimizer(run: Run, last: str, args: list[Argument], keywords: Keywords, node: ast.AST) -> Optimizer:
    """An optimizer and the parameters it owns."""
    state = OptimizerState(last, node, run.path)
    given = args[0][0] if args else keywords.get("params", (None, node))[0]
    if given is None:
        state.groups_known = False
    else:
        state.leaves, state.groups_known = leaves_of(given)
        if isinstance(given, Opaque):
            state.groups_known = False
    for other in run.optimizers:
        if other.state.created is node and other.state.leaves == state.leaves and state.leaves:
            state.like = other.state.like
            break
    fused = keywords.get("fused")
    state.fused = fused is not None and flag(fused[0], False) is not False
    optimizer = Optimizer(state)
    run.optimizers.append(optimizer)
    return optimizer


def is_optimizer(cls: Class) -> bool:
    """Whether a class of the project is an optimizer of torch's kind."""
    return any(
        name.startswith("torch.optim.") and name.rsplit(".", 1)[-1] in (*OPTIMIZERS, "Optimizer")
        for name in cls.outside()
    )


def make_own_optimizer(
    run: Run, cls: Class, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Optimizer:
    """An optimizer of a class of the project: it owns the parameters that it is handed first, as torch's do.

    How a step of its own writes the weights, and how often it calls a closure, is not looked at.
    """
    optimizer = make_optimizer(run, cls.name, args, keywords, node)
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
                setattr(copy, slot, Leaf(leaf.label, leaf.requires))
        return copy
    if isinstance(value, Sequence):
        return Sequence(value.kind, [deep_copy(v, copies) for v in value.items], value.open)
    if isinstance(value, Mapping):
        return value.__class__({k: deep_copy(v, copies) for k, v in value.items.items()}, value.open)
    if isinstance(value, Tensor) and value.leaf is not None:
        leaf = Leaf(value.leaf.label, value.leaf.requires, value.leaf.created)
        return Tensor.of_leaf(leaf)
    if isinstance(value, Opaque) and value.leaf is not None:
        made = Opaque(value.label)
        made.block().requires = value.leaf.requires
        return made
    if isinstance(value, (Instance, Opaque)):
        return Opaque("copy")
    return value


# ---------------------------------------------------------------------- particular names


def _grad_mode(enabled: bool) -> Handler:
    def handler(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
        if args and isinstance(args[0][0], Function):
            args[0][0].graph_free = not enabled
            return args[0][0]
        return GradMode(enabled)

    return handler


def _set_grad_enabled(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    return GradMode(flag(option(args, keywords, "mode", 0), None), switch=True)


def _variable(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``Variable(x)``: the memory of ``x`` without its graph, whatever it requires (tried: torch 2.13)."""
    wanted = flag(option(args, keywords, "requires_grad", 1), False)
    return _without_graph(run, args[0][0] if args else NONE, wanted, "tensor", node)


def _parameter(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    wanted = flag(option(args, keywords, "requires_grad", 1), True)
    return _without_graph(run, args[0][0] if args else NONE, wanted, "parameter", node)


def _without_graph(run: Run, value: Value, wanted: Tri, label: str, node: ast.AST) -> Tensor:
    """A tensor that has the memory of ``value`` and none of its graph; a leaf, if it may require grad."""
    tensor = Tensor()
    if isinstance(value, (Tensor, Opaque)):
        if value.node is not None:
            run.detached.append((run.tick(), value.node, node))
        if value.storage is None:
            value.storage = tensor.storage
        tensor.storage = value.storage
    if label == "parameter" or wanted is not False:
        tensor.leaf = Leaf(label, wanted, node)
        tensor.leaf.storage, tensor.requires = tensor.storage, wanted
    return tensor


def _backward_function(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``torch.autograd.backward(tensors, grad_tensors, retain_graph, create_graph)``."""
    given = args[0] if args else keywords.get("tensors")
    if given is not None:
        backward(run, [given], args, keywords, node)
    return NONE


def _scale_loss(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``with apex.amp.scale_loss(loss, optimizer) as scaled: scaled.backward()``."""
    given = args[0] if args else keywords.get("loss")
    if given is None:
        return Opaque("scale_loss")
    return Scaled(simple(run, "mul", [given, (Tensor(), given[1])], node))


def _amp_initialize(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``apex.amp.initialize(models, optimizers, ...)``: what it is handed, patched."""
    models, optimizers = option(args, keywords, "models", 0), option(args, keywords, "optimizers", 1)
    if models is None:
        return Opaque("initialize")
    if optimizers is None or optimizers is NONE:
        return models
    return Sequence("tuple", [models, optimizers])


def _amp_handle(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``handle = apex.amp.init()``: the older interface, whose handle scales losses as the module does."""
    return External("apex.amp")


def _master_params(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``apex.amp.master_params(optimizer)``: what it steps on."""
    owner = args[0][0] if args else NONE
    if not isinstance(owner, Optimizer):
        return Opaque("master_params")
    return Params(owner.state.leaves, owner.state.groups_known)


def _partial(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if not args:
        return Opaque("partial")
    return Partial(args[0][0], args[1:], {k: v for k, (v, _) in keywords.items()})


PROCESSES = frozenset(
    f"{module}.{kind}"
    for module, kind in [
        *(("multiprocessing", kind) for kind in ("Process", "process.BaseProcess", "context.Process")),
        *(("torch.multiprocessing", kind) for kind in ("Process", "process.BaseProcess")),
        *(("threading", kind) for kind in ("Thread", "threading.Thread")),
    ]
)
"""What runs a function, or its own method ``run``, beside the program once it is told to ``start``."""


def _process(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``Process(group, target, name, args, kwargs)``."""
    target = option(args, keywords, "target", 1)
    given, named = option(args, keywords, "args", 3), option(args, keywords, "kwargs", 4)
    if target is None:
        return Opaque("process")
    handed: list[Argument] = []
    if isinstance(given, Sequence) and not given.open:
        written = keywords["args"][1] if "args" in keywords else args[3][1]
        places = written.elts if isinstance(written, (ast.Tuple, ast.List)) else []
        handed = list(zip(given.items, places)) if len(places) == len(given.items) else []
        handed = handed or [(item, written) for item in given.items]
    keys = named.items if isinstance(named, Mapping) else {}
    return Process(target, handed, {str(k): v for k, v in keys.items()})


def _spawn(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``torch.multiprocessing.spawn(fn, args)``: the function gets the number of its process first."""
    target, given = option(args, keywords, "fn", 0), option(args, keywords, "args", 1)
    if target is not None:
        known = given.items if isinstance(given, Sequence) and not given.open else []
        nothing = ast.copy_location(ast.Constant(None), node)
        written = keywords["args"][1] if "args" in keywords else args[-1][1] if args else nothing
        start(run, Process(target, [(Opaque("rank"), written), *((v, written) for v in known)], {}), node)
    return Opaque("processes")


def start(run: Run, process: Value, node: ast.AST) -> None:
    """Run what a process runs, the first of a kind only; its gradients are its own."""
    from gradfix.autograd.calls import call

    function = process.function if isinstance(process, Process) else process
    definition = getattr(function, "node", None)
    if definition is None or definition in run.started:
        return
    run.started.add(definition)
    before = [(leaf, leaf.grad) for o in run.optimizers for leaf in o.state.owned()]
    call(run, process, [], {}, node, True)
    for leaf, grad in before:
        leaf.grad = grad


def _chain(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    values = [v for v, _ in args]
    if any(isinstance(v, (Params, Each)) for v in values):
        leaves, complete = leaves_of(Sequence("list", values))
        return Params(leaves, complete)
    items: list[Value] = []
    for value in values:
        part, _ = iterate(run, value, None)
        if part is None:
            return Opaque("chain")
        items += part
    return Sequence("list", items)


def _chain_from_iterable(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    items, _ = iterate(run, args[0][0], None) if args else (None, None)
    if items is None:
        return Opaque("chain")
    return _chain(run, [(v, args[0][1]) for v in items], {}, node)


def _range(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    bounds = [v.value for v, _ in args if isinstance(v, Const) and isinstance(v.value, int)]
    # Of many passes that an option asks for the first ones show as much.
    most = 3 if any(isinstance(v, options.Default) for v, _ in args) else 64
    if len(bounds) == len(args) and 1 <= len(args) <= 3:
        try:
            numbers = range(*bounds)
        except ValueError:
            return Opaque("range")
        if len(numbers) <= most:
            return Sequence("list", [Const(k) for k in numbers])
    first = args[0][0] if len(args) > 1 else Const(0)
    if len(args) <= 2 and isinstance(first, Const) and isinstance(first.value, int):
        return Iteration("range", [], first.value)
    return Opaque("range")


def _iteration(kind: str) -> Handler:
    def handler(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
        start: int | None = 0
        parts = [v for v, _ in args]
        if kind == "enumerate":
            given = option(args, keywords, "start", 1)
            parts = parts[:1]
            if given is not None:
                start = given.value if isinstance(given, Const) and isinstance(given.value, int) else None
        return Iteration(kind, parts, start) if parts else Opaque(kind)

    return handler


def _list(kind: str) -> Handler:
    def handler(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
        if not args:
            return Sequence(kind, [], False, run.symbolic)
        value = args[0][0]
        if isinstance(value, Params):
            return value
        items, element = iterate(run, value, args[0][1])
        if items is None:
            if isinstance(value, Sequence):
                return Sequence(kind, list(value.items), True)
            return value if isinstance(value, Opaque) else Sequence(kind, [element(0)], True)
        if any(isinstance(i, Each) for i in items):
            return Params(leaves_of(Sequence("list", items))[0])
        return Sequence(kind, list(items))

    return handler


def _dict(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if args and isinstance(args[0][0], Params) and args[0][0].named:
        return args[0][0]
    result = Mapping({})
    for value, _ in args:
        if isinstance(value, Mapping):
            result.items.update(value.items)
            result.open = result.open or value.open
            continue
        items, _ = iterate(run, value, None)
        for pair in items or []:
            if isinstance(pair, Sequence) and len(pair.items) == 2 and isinstance(pair.items[0], Const):
                result.items[pair.items[0].value] = pair.items[1]
            else:
                result.open = True
        result.open = result.open or items is None
    result.items.update({k: v for k, (v, _) in keywords.items() if k != "**"})
    return result


RECORDS = frozenset(
    """munch.Munch munch.DefaultMunch easydict.EasyDict addict.Dict attrdict.AttrDict dotmap.DotMap
    types.SimpleNamespace argparse.Namespace""".split()
)
"""What makes dicts whose keys are attributes."""


def _record(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    held = _dict(run, args, keywords, node)
    assert isinstance(held, Mapping)
    return Record(held.items, held.open or "**" in keywords)


def _defaultdict(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    return Mapping({}, True)


def _deque(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    size = option(args, keywords, "maxlen", 1)
    result = _list("list")(run, args[:1], {}, node)
    if isinstance(result, Sequence) and size is not None:
        result.open = True
    return result


SOME = {
    "torch.optim": "torch.optim.Optimizer",
    "torch.optim.lr_scheduler": "torch.optim.lr_scheduler.LRScheduler",
}
"""What stands for whatever a module of torch is asked for by a name that is not known."""


def _getattr(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) >= 2 and isinstance(args[1][0], Const) and isinstance(args[1][0].value, str):
        return attribute(run, args[0][0], args[1][0].value, node)
    if len(args) >= 2 and isinstance(args[0][0], imports.Namespace):
        name = options.given(args[1][0])
        if isinstance(name, Const) and isinstance(name.value, str):
            return attribute(run, args[0][0], name.value, node)
    if args and isinstance(args[0][0], External) and args[0][0].name in SOME:
        return External(SOME[args[0][0].name])
    found = Opaque("attribute")
    if args and isinstance(args[0][0], Module):
        # One of its layers, most likely; at least nobody else's.
        found.owner = args[0][0]
        found.library = keeps_nothing(args[0][0])
    return found


def _setattr(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) == 3:
        name = args[1][0]
        if isinstance(name, Const) and isinstance(name.value, str):
            set_attribute(run, args[0][0], name.value, args[2][0], args[2][1])
        elif isinstance(args[0][0], (Module, Instance)) and isinstance(args[2][0], (Module, Opaque)):
            args[0][0].attributes[f"<{len(args[0][0].attributes)}>"] = args[2][0]
        elif isinstance(args[0][0], Module):
            bind_weight(run, args[2][0])
    return NONE


def _exit(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    run.turned_back()
    raise Exited


def _len(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    value = args[0][0] if args else NONE
    if isinstance(value, Sequence) and not value.open:
        return Length(len(value.items)) if value.grows else Const(len(value.items))
    if isinstance(value, Module) and value.items and value.leaf is None:
        return Const(len(value.items))
    return Opaque("length")


def _isinstance(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) != 2:
        return Opaque("condition")
    value, kind = args[0][0], args[1][0]
    kinds = kind.items if isinstance(kind, Sequence) else [kind]
    if isinstance(value, Opaque) or (isinstance(value, Tensor) and value.requires is None):
        return Opaque("condition")
    answer = False
    for one in kinds:
        name = one.name if isinstance(one, External) else ""
        if isinstance(one, Class):
            answer |= (
                isinstance(value, (Module, Instance)) and value.cls is not None and one in value.cls.order()
            )
        elif name in ("torch.Tensor", "torch.FloatTensor", "torch.autograd.Variable"):
            answer |= isinstance(value, Tensor)
        elif name == "builtins.tuple":
            answer |= isinstance(value, Sequence) and value.kind == "tuple"
        elif name == "builtins.list":
            answer |= isinstance(value, Sequence) and value.kind == "list"
        elif name == "builtins.dict":
            answer |= isinstance(value, Mapping)
        elif name.startswith("torch.nn.") and isinstance(value, Module) and value.kind != "user":
            answer |= canonical_module(name) in (value.kind, "torch.nn.Module")
        elif name == "torch.nn.Module":
            answer |= isinstance(value, Module)
        elif name in ("builtins.int", "builtins.float", "builtins.str", "builtins.bool"):
            answer |= isinstance(value, Const) and type(value.value).__name__ == name[9:]
        else:
            return Opaque("condition")
    return Const(answer)


def _hasattr(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) == 2 and isinstance(args[1][0], Const) and isinstance(args[0][0], (Module, Instance)):
        name = args[1][0].value
        cls = args[0][0].cls
        if name in args[0][0].attributes or (cls is not None and cls.lookup(name) is not None):
            return TRUE
        if isinstance(args[0][0], Module) and name in MODULE_METHODS:
            return TRUE
        if cls is None or not cls.unknown_bases():
            return FALSE
    return Opaque("condition")


def _sum(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``sum(losses)``: additions, which save nothing."""
    from gradfix.autograd.calls import binary

    items, element = iterate(run, args[0][0], args[0][1]) if args else ([], None)
    if items is None:
        assert element is not None
        items = [element(0)]
    if not any(operands_of(i, None) for i in items):
        return Opaque("sum")
    total: Value = args[1][0] if len(args) > 1 else Const(0)
    for value in items:
        total = binary(run, ast.Add(), total, value, args[0][1], args[0][1], node)
    return total


def _reduce(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``functools.reduce(function, losses)``: the function of what there is so far and each further one."""
    if len(args) < 2:
        return Opaque("reduce")
    items, element = iterate(run, args[1][0], args[1][1])
    if items is None:
        assert element is not None
        items = [element(0), element(1)]
    items = [*(value for value, _ in args[2:]), *items]
    if not items:
        return Opaque("reduce")
    total = items[0]
    for value in items[1:]:
        total = call(run, args[0][0], [(total, args[1][1]), (value, args[1][1])], {}, node)
    return total


def _add(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``operator.add``, which somebody hands to something else."""
    from gradfix.autograd.calls import binary

    if len(args) != 2:
        return Opaque("add")
    (left, at), (right, beside) = args
    return binary(run, ast.Add(), left, right, at, beside, node)


def _next(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if not args:
        return Opaque("next")
    value = args[0][0]
    if isinstance(value, Params):
        return Tensor.of_leaf(value.leaves[0]) if value.leaves else Opaque("parameter")
    items, element = iterate(run, value, args[0][1])
    if items is None:
        return element(0)
    return items[0] if items else Opaque("next")


def _map(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) < 2:
        return Opaque("map")
    items, element = iterate(run, args[1][0], args[1][1])
    known = items is not None
    results = [
        call(run, args[0][0], [(v, args[1][1])], {}, node)
        for v in (items if items is not None else [element(0)])
    ]
    return Sequence("list", results, not known)


def _filter(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``filter(lambda p: p.requires_grad, net.parameters())``: those that require grad now."""
    if len(args) == 2 and isinstance(args[1][0], Params):
        params = args[1][0]
        wanted = [leaf for leaf in params.leaves if leaf.requires is not False]
        return Params(wanted, params.complete)
    return Opaque("filter")


def _first(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    return args[0][0] if args else NONE


def _saved(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``torch.save``: writes what it is handed, and changes nothing."""
    return NONE


def _data_parallel(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``torch.nn.parallel.data_parallel(module, inputs, ...)``: the module, called on the inputs."""
    given = [*args, *(keywords[name] for name in ("module", "inputs") if name in keywords)]
    if len(given) < 2:
        return unknown(run, args, keywords, node, "data_parallel")
    (module, _), (inputs, expression), *_ = given
    if isinstance(module, Tensor):  # no module at all: it raises, but only where there are several devices
        return unknown(run, args, keywords, node, "data_parallel")
    if isinstance(inputs, Sequence) and inputs.kind == "tuple" and not inputs.open:
        parts = expression.elts if isinstance(expression, ast.Tuple) else [expression] * len(inputs.items)
        return call(run, module, list(zip(inputs.items, parts)), {}, node)
    return call(run, module, [(inputs, expression)], {}, node)


def _on_one_device(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``replicate`` and ``scatter``: what there is of it on the one device."""
    return Sequence("list", [args[0][0]]) if args else Opaque("replicas")


def _parallel_apply(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``torch.nn.parallel.parallel_apply(modules, inputs)``: each module, called on its inputs."""
    if len(args) < 2:
        return unknown(run, args, keywords, node, "parallel_apply")
    (modules, expression), (inputs, _), *_ = args
    if not (isinstance(modules, Sequence) and isinstance(inputs, Sequence)):
        return unknown(run, args, keywords, node, "parallel_apply")
    return Sequence(
        "list",
        [
            _data_parallel(run, [(module, expression), (given, args[1][1])], {}, node)
            for module, given in zip(modules.items, inputs.items)
        ],
    )


def _gather(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``torch.nn.parallel.gather``: of one device, what it has."""
    given = args[0][0] if args else NONE
    if isinstance(given, Sequence) and len(given.items) == 1:
        return given.items[0]
    return unknown(run, args, keywords, node, "gather")


def _checkpoint(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """Activation checkpointing recomputes with the weights of the moment: nothing certain is said of it."""
    return unknown(run, args[1:], keywords, node, "checkpoint", certain=False)


def distribution(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """A distribution of ``torch.distributions``: what is computed with it reaches what it was made of."""
    operands = [o for v, e in [*args, *keywords.values()] for o in operands_of(v, e)]
    from gradfix.autograd.calls import record

    made, requires, _ = record(run, "distribution", node, [operands], None)
    result = Opaque("distribution", made)
    result.requires = requires if made is not None else False
    return result


def _functional_call(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    made = run.node("functional_call", node)
    made.saves = None
    return Opaque("functional_call", made)


def _issubclass(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if len(args) == 2 and isinstance(args[0][0], Class):
        of, kind = args[0][0], args[1][0]
        if isinstance(kind, Class):
            return Const(True) if kind in of.order() else Opaque("condition") if of.unknown_bases() else FALSE
        if isinstance(kind, External) and kind.name == "torch.nn.Module" and not of.unknown_bases():
            return Const(of.is_module)
    return Opaque("condition")


def _import_module(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``importlib.import_module`` or ``__import__``: a module of the project, also by an option's default."""
    name = options.given(args[0][0]) if len(args) == 1 else NONE
    if isinstance(name, Const) and isinstance(name.value, str) and not name.value.startswith("."):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
            name = Const(name.value.split(".", 1)[0])
        for origin in dict.fromkeys((run.top.origin, run.globals.origin)):
            path = imports.locate(name.value, origin)
            module = imports.namespace(run, path) if path is not None else None
            if module is not None:
                return module
    return Opaque("module")


def _builtin(run: Run, name: str, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    if name == "vars" and args and isinstance(args[0][0], (Module, Instance)):
        return Attributes(args[0][0])
    if name == "vars" and args and isinstance(args[0][0], options.Options):
        return Mapping(dict(args[0][0].attributes), True)
    if name == "str" and args and args[0][0].__class__ in (Const, options.Default):
        # The name of a layer: "conv" + str(number).
        given = args[0][0]
        assert isinstance(given, Const)
        return given.__class__(str(given.value))
    if name == "type" and len(args) == 1 and isinstance(args[0][0], Tensor):
        return External("torch.FloatTensor")  # of whatever precision: what it makes has no graph
    if name == "exec" and not run.active and getattr(node, "lineno", 0) > 0:
        options.overridden(run)
        return NONE
    if name in ("print", "input", "open", "repr", "str", "id", "hash", "format", "type", "callable", "vars"):
        return Opaque(name)
    if name in ("float", "int", "bool", "round", "abs") and args:
        value = args[0][0]
        if name == "abs" and isinstance(value, (Tensor, Opaque)) and tensors_in(value):
            return unknown(run, args, keywords, node, name)
        if (
            isinstance(value, Const)
            and isinstance(value.value, (int, float))
            and name in ("float", "int", "bool")
        ):
            return Const({"float": float, "int": int, "bool": bool}[name](value.value))
        return Opaque(name)
    if name in ("max", "min") and args:
        return (
            unknown(run, args, keywords, node, name) if any(tensors_in(v) for v, _ in args) else Opaque(name)
        )
    return Opaque(name)


HANDLERS: dict[str, Handler] = {
    "torch.no_grad": _grad_mode(False),
    "torch.inference_mode": _grad_mode(False),
    "torch.autograd.no_grad": _grad_mode(False),
    "torch.enable_grad": _grad_mode(True),
    "torch.autograd.enable_grad": _grad_mode(True),
    "torch.set_grad_enabled": _set_grad_enabled,
    "torch.autograd.set_grad_enabled": _set_grad_enabled,
    "torch.autograd.Variable": _variable,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.UninitializedParameter": _parameter,
    "torch.autograd.grad": differentiate,
    "torch.autograd.backward": _backward_function,
    **dict.fromkeys(
        ("torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"),
        adjusting.make_scaler,
    ),
    **{
        f"torch.nn.utils.{module}{name}": adjusting.clip
        for module in ("", "clip_grad.")
        for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")
    },
    # One, as most have: what several are for goes the same way through autograd.
    "torch.cuda.device_count": lambda run, args, keywords, node: Const(1),
    "torch.save": _saved,
    "torch.jit.save": _saved,
    "torch.nn.parallel.data_parallel": _data_parallel,
    "torch.nn.parallel.replicate": _on_one_device,
    "torch.nn.parallel.scatter": _on_one_device,
    "torch.nn.parallel.parallel_apply": _parallel_apply,
    "torch.nn.parallel.gather": _gather,
    "torch.nn.parallel.data_parallel.data_parallel": _data_parallel,
    "functools.partial": _partial,
    "functools.reduce": _reduce,
    "operator.add": _add,
    "apex.amp.scale_loss": _scale_loss,
    "apex.amp.initialize": _amp_initialize,
    "apex.amp.init": _amp_handle,
    "apex.amp.master_params": _master_params,
    **dict.fromkeys(PROCESSES, _process),
    "torch.multiprocessing.spawn": _spawn,
    "torch.multiprocessing.spawn.spawn": _spawn,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _chain_from_iterable,
    "itertools.islice": _first,
    "itertools.cycle": _first,
    "builtins.range": _range,
    "builtins.zip": _iteration("zip"),
    "builtins.enumerate": _iteration("enumerate"),
    "builtins.reversed": _iteration("reversed"),
    "builtins.iter": _first,
    "builtins.list": _list("list"),
    "builtins.tuple": _list("tuple"),
    "builtins.set": _list("set"),
    "builtins.sorted": _list("list"),
    "builtins.dict": _dict,
    **dict.fromkeys(RECORDS, _record),
    "collections.OrderedDict": _dict,
    "collections.defaultdict": _defaultdict,
    "collections.deque": _deque,
    "argparse.ArgumentParser": options.make_parser,
    "argparse.Namespace": lambda run, args, keywords, node: Opaque("namespace"),
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.hasattr": _hasattr,
    "builtins.isinstance": _isinstance,
    "builtins.issubclass": _issubclass,
    "builtins.__import__": _import_module,
    "importlib.import_module": _import_module,
    "builtins.len": _len,
    "builtins.sum": _sum,
    "builtins.next": _next,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.exit": _exit,
    "builtins.quit": _exit,
    "sys.exit": _exit,
    "os._exit": _exit,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.utils.checkpoint.checkpoint_sequential": _checkpoint,
    "torch.func.functional_call": _functional_call,
    "torch.nn.utils.stateless.functional_call": _functional_call,
    "learn2learn.algorithms.MAML": frameworks.make_learner,
    "learn2learn.algorithms.MetaSGD": frameworks.make_learner,
    "learn2learn.algorithms.maml.MAML": frameworks.make_learner,
    "learn2learn.algorithms.meta_sgd.MetaSGD": frameworks.make_learner,
    "torch.distributions.Normal": distribution,
    "torch.distributions.Categorical": distribution,
    "torch.distributions.Bernoulli": distribution,
    "torch.distributions.MultivariateNormal": distribution,
    "torch.distributions.Independent": distribution,
    "torch.distributions.TransformedDistribution": distribution,
    "torch.distributions.Beta": distribution,
    "torch.distributions.normal.Normal": distribution,
    "torch.distributions.categorical.Categorical": distribution,
}
