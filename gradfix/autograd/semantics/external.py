"""What the model knows of functions and classes from outside the project, by dotted name."""

from __future__ import annotations

from gradfix.autograd import operators, options
from gradfix.autograd.arguments import Call
from gradfix.autograd.engine import differentiate, poison
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.amp import amp_handle, amp_initialize, grad_scaler, master_params, scale_loss
from gradfix.autograd.semantics.builtin import (
    add,
    call_builtin,
    chain,
    chain_from_iterable,
    end,
    filter_parameters,
    first_argument,
    get_by_name,
    has_attribute,
    import_module,
    is_instance,
    is_subclass,
    length_of,
    make_iteration,
    make_partial,
    make_range,
    map_over,
    next_of,
    reduce,
    set_by_name,
    sum_of,
)
from gradfix.autograd.semantics.containers import (
    RECORDS,
    make_defaultdict,
    make_deque,
    make_dict,
    make_list,
    make_record,
)
from gradfix.autograd.semantics.dispatch import Transfer, called, methods_of
from gradfix.autograd.semantics.distributions import distribution
from gradfix.autograd.semantics.layers import CONTAINERS, deep_copy
from gradfix.autograd.semantics.learners import make_learner
from gradfix.autograd.semantics.libraries import HARMLESS, NETWORKS, WRAPPERS
from gradfix.autograd.semantics.names import canonical, member
from gradfix.autograd.semantics.operations import unknown
from gradfix.autograd.semantics.optimizers import AVERAGES, OPTIMIZERS, follower, make_optimizer
from gradfix.autograd.semantics.parallel import data_parallel, gather, on_one_device, parallel_apply
from gradfix.autograd.semantics.processes import PROCESSES, make_process, spawn
from gradfix.autograd.semantics.torch_functions import (
    backward_function,
    call_torch,
    checkpoint,
    functional_call,
    grad_mode,
    parameter,
    save,
    set_grad_enabled,
    variable,
)
from gradfix.autograd.semantics.unknown import call_opaque
from gradfix.autograd.values import Const, Each, External, Module, Opaque, Params, Value


@called(External)
def _call_external(run: Run, value: External, call: Call) -> Value:
    return call_external(run, Call(call.args, call.keywords, call.site, call.discarded, value.name))


@methods_of(External)
def _external_member(
    run: Run,
    base: External,
    call: Call,
) -> Value:
    return call_external(
        run, Call(call.args, call.keywords, call.site, call.discarded, member(base.name, call.name).name)
    )


def starred(run: Run, name: str) -> External | None:
    """What an unbound name stands for after ``from module import *``, where the model knows of it."""
    if not run.starred:
        return None
    for module in run.starred:
        full = canonical(f"{module}.{name}")
        if known(full):
            return External(full)
    return None


def call_external(run: Run, call: Call) -> Value:
    """Call something imported, or a builtin."""
    handler = HANDLERS.get(call.name)
    if handler is not None:
        return handler(run, call)
    last = call.name.rsplit(".", 1)[-1]
    root = call.name.split(".", 1)[0]
    if root == "torch":
        value = call_torch(run, call.name, last, call)
        if value is not None:
            return value
    first = call.args[0][0] if call.args else None
    if call.name in WRAPPERS and first is not None:
        return first
    if (isinstance(first, (Params, Each)) and last[:1].isupper()) or last in OPTIMIZERS:
        return make_optimizer(run, last, call)
    if root == "builtins":
        return call_builtin(run, Call(call.args, call.keywords, call.site, name=last))
    if last == "deepcopy" and first is not None:
        return deep_copy(first)
    if call.name in AVERAGES:
        return follower(last, [])
    if root in NETWORKS:
        made = (
            _result_of_harmless(run, call.name, root, call, last)
            if root in HARMLESS
            else call_opaque(run, Opaque(last), call)
        )
        if isinstance(made, Opaque):
            made.library = made.node is None
        return made
    if root in HARMLESS or call.name.startswith(
        ("torch.utils.", "torch.distributed.", "torch.nn.utils.clip")
    ):
        if any(isinstance(v, Module) for v, _ in call.args) and root not in HARMLESS:
            poison(run, [v for v, _ in call.args], call.site)
        return _result_of_harmless(run, call.name, root, call, last)
    return call_opaque(run, Opaque(last), call)


def known(name: str) -> bool:
    """Whether a dotted name is one that the model knows something of."""
    if name in HANDLERS or name in WRAPPERS or operators.function(name) or operators.module(name):
        return True
    package, _, last = name.rpartition(".")
    return (package == "torch.optim" and last in OPTIMIZERS) or (
        package in ("torch", "torch.nn") and last in {*CONTAINERS, "nn", "optim", "autograd", "Module"}
    )


def _result_of_harmless(run: Run, name: str, root: str, call: Call, last: str) -> Value:
    if root in ("torchvision", "torchaudio", "collections", "copy", "typing"):
        made = unknown(run, call.args, call.keywords, call.site, last)
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


HANDLERS: dict[str, Transfer] = {
    "torch.no_grad": grad_mode(False),
    "torch.inference_mode": grad_mode(False),
    "torch.autograd.no_grad": grad_mode(False),
    "torch.enable_grad": grad_mode(True),
    "torch.autograd.enable_grad": grad_mode(True),
    "torch.set_grad_enabled": set_grad_enabled,
    "torch.autograd.set_grad_enabled": set_grad_enabled,
    "torch.autograd.Variable": variable,
    "torch.nn.Parameter": parameter,
    "torch.nn.parameter.UninitializedParameter": parameter,
    "torch.autograd.grad": differentiate,
    "torch.autograd.backward": backward_function,
    "torch.cuda.amp.GradScaler": grad_scaler,
    "torch.amp.GradScaler": grad_scaler,
    "torch.cuda.amp.grad_scaler.GradScaler": grad_scaler,
    # One, as most have: what several are for goes the same way through autograd.
    "torch.cuda.device_count": lambda run, call: Const(1),
    "torch.save": save,
    "torch.jit.save": save,
    "torch.nn.parallel.data_parallel": data_parallel,
    "torch.nn.parallel.replicate": on_one_device,
    "torch.nn.parallel.scatter": on_one_device,
    "torch.nn.parallel.parallel_apply": parallel_apply,
    "torch.nn.parallel.gather": gather,
    "torch.nn.parallel.data_parallel.data_parallel": data_parallel,
    "functools.partial": make_partial,
    "functools.reduce": reduce,
    "operator.add": add,
    "apex.amp.scale_loss": scale_loss,
    "apex.amp.initialize": amp_initialize,
    "apex.amp.init": amp_handle,
    "apex.amp.master_params": master_params,
    **dict.fromkeys(PROCESSES, make_process),
    "torch.multiprocessing.spawn": spawn,
    "torch.multiprocessing.spawn.spawn": spawn,
    "itertools.chain": chain,
    "itertools.chain.from_iterable": chain_from_iterable,
    "itertools.islice": first_argument,
    "itertools.cycle": first_argument,
    "builtins.range": make_range,
    "builtins.zip": make_iteration("zip"),
    "builtins.enumerate": make_iteration("enumerate"),
    "builtins.reversed": make_iteration("reversed"),
    "builtins.iter": first_argument,
    "builtins.list": make_list("list"),
    "builtins.tuple": make_list("tuple"),
    "builtins.set": make_list("set"),
    "builtins.sorted": make_list("list"),
    "builtins.dict": make_dict,
    **dict.fromkeys(RECORDS, make_record),
    "collections.OrderedDict": make_dict,
    "collections.defaultdict": make_defaultdict,
    "collections.deque": make_deque,
    "argparse.ArgumentParser": options.make_parser,
    "argparse.Namespace": lambda run, call: Opaque("namespace"),
    "builtins.getattr": get_by_name,
    "builtins.setattr": set_by_name,
    "builtins.hasattr": has_attribute,
    "builtins.isinstance": is_instance,
    "builtins.issubclass": is_subclass,
    "builtins.__import__": import_module,
    "importlib.import_module": import_module,
    "builtins.len": length_of,
    "builtins.sum": sum_of,
    "builtins.next": next_of,
    "builtins.map": map_over,
    "builtins.filter": filter_parameters,
    "builtins.exit": end,
    "builtins.quit": end,
    "sys.exit": end,
    "os._exit": end,
    "torch.utils.checkpoint.checkpoint": checkpoint,
    "torch.utils.checkpoint.checkpoint_sequential": checkpoint,
    "torch.func.functional_call": functional_call,
    "torch.nn.utils.stateless.functional_call": functional_call,
    "learn2learn.algorithms.MAML": make_learner,
    "learn2learn.algorithms.MetaSGD": make_learner,
    "learn2learn.algorithms.maml.MAML": make_learner,
    "learn2learn.algorithms.meta_sgd.MetaSGD": make_learner,
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
