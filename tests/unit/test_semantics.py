"""What the model knows of torch and of Python, one line of a program for each: a table of rows.

A row has the name that a transfer function is registered under, one line that comes after ``PROGRAM``, and
what is to come of it: the value of ``r``, if the line binds it, then what happens to gradients. Who registers
a function of ``gradfix/autograd/semantics`` adds a row; a test fails for the functions that have none.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

import pytest

from gradfix.autograd import values
from gradfix.autograd.graph import (
    Backward,
    Clip,
    InPlaceChange,
    ModeChange,
    ScalerUpdate,
    Step,
    Unscale,
    ZeroGrad,
)
from gradfix.autograd.interpreter import Run
from gradfix.autograd.relevance import Relevance
from gradfix.autograd.run import Scenario, Stopped
from gradfix.autograd.semantics import dispatch
from gradfix.autograd.values import (
    Const,
    ImportedName,
    Mapping,
    Module,
    Optimizer,
    ParameterIterable,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
)

PROGRAM = """\
import argparse, collections, functools, importlib, itertools, operator, sys, types
import accelerate, apex, deepspeed, einops, learn2learn, lightning, munch, transformers
import torch, torch.multiprocessing as mp
from lightning import LightningModule
from torch import nn
class Lit(LightningModule):
    def __init__(self): self.layer = nn.Linear(3, 1)
    def configure_optimizers(self): return torch.optim.SGD(self.layer.parameters(), 0.1)
def train(*given): torch.nn.Linear(3, 1)(torch.randn(3)).backward()
net = nn.Linear(3, 1)
chain, layers, named = nn.Sequential(net, nn.ReLU()), nn.ModuleList([net]), nn.ModuleDict({"a": net})
optimizer = torch.optim.SGD(net.parameters(), 0.1)
scaler = torch.amp.GradScaler()
data = torch.randn(2, 3)
out = net(data)
loss = out.mean()
gaussian = torch.distributions.Normal(out, 1.0)
learner = learn2learn.algorithms.MAML(net, 0.1)
clone = learner.clone()
lit = Lit()
process = mp.Process(target=train)
losses, table = [loss, loss], {"a": loss}
"""

Row = tuple[str, str, str]

TENSORS: list[Row] = [
    ("Tensor.backward", "loss.backward()", "backward"),
    ("Tensor.cpu", "r = loss.cpu()", "tensor with a graph"),
    ("Tensor.item", "r = loss.item()", "data"),
    ("Tensor.requires_grad_", "data.requires_grad_(); r = data", "leaf"),
    ("Tensor.detach_", "out.detach_(); r = out", "tensor"),
    ("Tensor.retain_grad", "out.retain_grad(); r = out", "tensor with a graph"),
    ("Tensor.register_hook", "out.register_hook(print); r = out", "tensor with a graph"),
    ("Tensor.chunk", "r = out.chunk(2)", "tuple of tensor with a graph, tensor with a graph"),
    ("Tensor.half", "r = loss.half()", "tensor with a graph"),
    (
        "SummaryTensor.requires_grad_",
        "for p in net.parameters(): p.requires_grad_(False); r = net.weight.requires_grad",
        "False",
    ),
    (
        "SummaryTensor.detach_",
        "for p in net.parameters(): p.detach_(); r = net.weight.requires_grad",
        "False",
    ),
    ("SummaryTensor.clone", "for p in net.parameters(): r = p.clone()", "data of parameters"),
    ("SummaryTensor.zero_grad", "for p in net.parameters(): p.zero_grad()", "clears"),
    ("torch.*", "r = torch.exp(loss)", "tensor with a graph"),
    ("torch.nn.functional.*", "nn.functional.relu(out, inplace=True)", "writes"),
    ("torch.nn.init.*", "nn.init.zeros_(net.weight)", "writes"),
    (
        "torch.autograd.grad",
        "r = torch.autograd.grad(loss, net.parameters())",
        "tuple of tensor and more; differentiates",
    ),
    ("torch.autograd.backward", "torch.autograd.backward(loss)", "backward"),
    ("torch.autograd.Variable", "r = torch.autograd.Variable(out)", "tensor"),
    ("torch.nn.Parameter", "r = nn.Parameter(out)", "leaf"),
    ("torch.no_grad", "with torch.no_grad(): r = net(data)", "tensor"),
    ("torch.enable_grad", "with torch.no_grad(), torch.enable_grad(): r = net(data)", "tensor with a graph"),
    ("torch.set_grad_enabled", "torch.set_grad_enabled(False); r = net(data)", "tensor"),
    ("torch.save", "torch.save(net.state_dict(), 'net.pt'); r = net", "network"),
    (
        "torch.utils.checkpoint.checkpoint",
        "r = torch.utils.checkpoint.checkpoint(net, out)",
        "unknown with a graph",
    ),
    ("torch.func.functional_call", "r = torch.func.functional_call(net, {}, data)", "unknown with a graph"),
    ("torch.utils.data.DataLoader", "r = torch.utils.data.DataLoader(helper())", "data"),
    ("torch.cuda.*", "torch.cuda.empty_cache(); r = out", "tensor with a graph"),
    ("torch.cuda.device_count", "r = torch.cuda.device_count()", "1"),
]

NETWORKS: list[Row] = [
    ("torch.nn.*", "r = nn.Conv2d(1, 1, 3)", "network"),
    ("Module.parameters", "r = net.parameters()", "parameters"),
    ("Module.to", "r = net.to('cpu')", "network"),
    ("Module.eval", "net.eval(); r = net.training", "False; mode"),
    ("Module.apply", "r = net.apply(print)", "network"),
    ("Module.zero_grad", "net.zero_grad()", "clears"),
    ("Module.requires_grad_", "net.requires_grad_(False); r = net.weight.requires_grad", "False"),
    ("Module.forward", "r = net.forward(data)", "tensor with a graph"),
    ("Module.load_state_dict", "net.load_state_dict({})", "writes"),
    ("Module.add_module", "chain.add_module('last', nn.Linear(1, 1)); r = len(chain)", "3; Replacement"),
    ("Module.append", "layers.append(nn.Linear(3, 1)); r = len(layers)", "2"),
    ("Module.extend", "layers.extend([nn.Linear(3, 1), net]); r = len(layers)", "3"),
    ("Module.update", "named.update({'b': nn.Linear(3, 1)}); r = named['b']", "network"),
    ("Module.modules", "r = chain.modules()", "list of network, network, network"),
    ("Module.children", "r = chain.children()", "list of network, network"),
    ("Module.items", "r = named.items()", "list of tuple of 'a', network"),
    ("Module.keys", "r = named.keys()", "list of 'a'"),
    ("torch.nn.parallel.data_parallel", "r = nn.parallel.data_parallel(net, data)", "tensor with a graph"),
    ("torch.nn.parallel.replicate", "r = nn.parallel.replicate(net, [0])", "list of network"),
    (
        "torch.nn.parallel.parallel_apply",
        "r = nn.parallel.parallel_apply([net], [data])",
        "list of tensor with a graph",
    ),
    ("torch.nn.parallel.gather", "r = nn.parallel.gather([out], 0)", "tensor with a graph"),
    ("torch.distributions.*", "r = torch.distributions.Gamma(out, 1.0)", "unknown with a graph"),
]

TRAINING: list[Row] = [
    ("torch._foreach_mul", "r = torch._foreach_mul([out], 0.9)", "list of tensor with a graph"),
    ("torch.nn.utils.clip_grad_norm_", "nn.utils.clip_grad_norm_(net.parameters(), 1.0)", "clips"),
    ("Unknown.clip_grad_norm_", "accelerator.clip_grad_norm_(net.parameters(), 1.0)", "clips"),
    ("Scaler.unscale_", "scaler.unscale_(optimizer)", "unscales"),
    ("Scaler.update", "scaler.update()", "updates"),
    ("transformers.*", "r = transformers.get_linear_schedule_with_warmup(optimizer, 1, 2)", "harmless"),
    ("torch.optim.*", "r = torch.optim.Adam(net.parameters())", "optimizer of 1"),
    ("torch.optim.swa_utils.*", "r = torch.optim.swa_utils.AveragedModel(net)", "harmless"),
    ("torch.optim.lr_scheduler.*", "r = torch.optim.lr_scheduler.StepLR(optimizer, 1)", "harmless"),
    ("Optimizer.zero_grad", "optimizer.zero_grad()", "clears"),
    ("Optimizer.step", "optimizer.step()", "step"),
    (
        "Optimizer.add_param_group",
        "optimizer.add_param_group({'params': nn.Linear(1, 1).parameters()}); r = optimizer",
        "optimizer of 2",
    ),
    ("torch.amp.GradScaler", "r = torch.amp.GradScaler().scale(loss)", "tensor with a graph"),
    ("Scaler.scale", "r = scaler.scale(loss)", "tensor with a graph"),
    ("Scaler.step", "scaler.step(optimizer)", "step"),
    ("apex.amp.scale_loss", "with apex.amp.scale_loss(loss, optimizer) as r: pass", "tensor with a graph"),
    ("apex.amp.initialize", "r = apex.amp.initialize(net, optimizer)", "tuple of network, optimizer of 1"),
    ("apex.amp.init", "with apex.amp.init().scale_loss(loss, optimizer) as r: pass", "tensor with a graph"),
    ("apex.amp.master_params", "r = apex.amp.master_params(optimizer)", "parameters"),
    ("Module.log", "lit.log('loss', loss); r = loss", "tensor with a graph"),
    ("Module.manual_backward", "lit.manual_backward(loss)", "backward"),
    ("accelerate.Accelerator", "accelerate.Accelerator().backward(loss)", "backward"),
    ("deepspeed.initialize", "r = deepspeed.initialize(model=net)[0](data)", "tensor with a graph"),
    ("Engine.backward", "deepspeed.initialize(model=net)[0].backward(loss)", "backward"),
    ("Engine.step", "deepspeed.initialize(model=net)[0].step()", "step; clears"),
    ("Engine.zero_grad", "deepspeed.initialize(model=net)[0].zero_grad()", "clears"),
    ("Engine.train", "r = deepspeed.initialize(model=net)[0].parameters()", "parameters"),
    ("Preparer.print", "lightning.Fabric().print(loss); r = loss", "tensor with a graph"),
    (
        "Preparer.wait_for_everyone",
        "accelerate.Accelerator().wait_for_everyone(); r = loss",
        "tensor with a graph",
    ),
    ("Preparer.gather", "r = accelerate.Accelerator().gather(loss)", "tensor with a graph"),
    ("Preparer.backward", "lightning.Fabric().backward(loss)", "backward"),
    ("Module.optimizers", "r = lit.optimizers()", "optimizer of 1"),
    (
        "Module.toggle_optimizer",
        "lit.toggle_optimizer(lit.optimizers()); r = net.weight.requires_grad",
        "False",
    ),
    (
        "Module.untoggle_optimizer",
        "o = lit.optimizers(); lit.toggle_optimizer(o); lit.untoggle_optimizer(o); r = net.weight",
        "leaf",
    ),
    ("Unknown.prepare", "r = accelerator.prepare(net, optimizer)", "tuple of network, optimizer of 1"),
    ("learn2learn.algorithms.MAML", "r = learn2learn.algorithms.MAML(net, 0.1)", "Learner"),
    ("Learner.clone", "r = learner.clone()", "Learner"),
    ("Learner.adapt", "clone.adapt(clone(data).mean()); r = clone(data)", "unknown with a graph"),
    ("Learner.train", "r = clone.train()", "Learner"),
    ("Learner.zero_grad", "clone.zero_grad()", ""),
    ("Learner.parameters", "r = clone.parameters()", "unknown"),
    ("Process.start", "process.start()", "backward"),
    ("torch.multiprocessing.spawn", "mp.spawn(train, args=(1,))", "backward"),
    ("torch.multiprocessing.Process", "mp.Process(target=train).start()", "backward"),
]

UNKNOWN: list[Row] = [
    ("Unknown.backward", "thing.backward()", "backward"),
    ("Unknown.parameters", "r = thing.parameters()", "parameters"),
    ("Unknown.forward", "thing.parameters(); r = thing.forward(data)", "unknown with a graph"),
    ("Unknown.zero_grad", "thing.zero_grad()", ""),
    ("Unknown.step", "thing.step(optimizer)", "step"),
    ("Unknown.detach", "r = thing.detach()", "tensor"),
    ("Unknown.cuda", "r = helper(loss).cuda()", "unknown with a graph"),
    ("Unknown.eval", "thing.eval()", "mode"),
    (
        "Unknown.requires_grad_",
        "p = thing.parameters(); thing.requires_grad_(False); r = next(p).requires_grad",
        "False",
    ),
    ("Unknown.load_state_dict", "thing.parameters(); thing.load_state_dict({})", "writes"),
    ("Unknown.item", "r = helper(loss).item()", "data"),
    ("Unknown.state_dict", "r = helper(loss).state_dict()", "unknown"),
    ("Unknown.scale", "r = thing.scale(loss)", "tensor with a graph"),
    ("Distribution.log_prob", "r = gaussian.log_prob(data)", "tensor with a graph"),
    ("Distribution.sample", "r = gaussian.sample()", "data"),
]

CONTAINERS: list[Row] = [
    ("Sequence.append", "losses.append(out); r = len(losses)", "3"),
    ("Sequence.extend", "losses.extend([out, out]); r = len(losses)", "4"),
    ("Sequence.insert", "losses.insert(0, 1); r = losses[0]", "1"),
    ("Sequence.pop", "r = losses.pop()", "tensor with a graph"),
    ("Sequence.clear", "losses.clear(); r = losses", "list of nothing"),
    ("Sequence.copy", "r = losses.copy()", "list of tensor with a graph, tensor with a graph"),
    ("Sequence.reverse", "one = [1, 2]; one.reverse(); r = one", "list of 2, 1"),
    ("Sequence.sort", "losses.sort(); r = len(losses)", "2"),
    ("Mapping.keys", "r = table.keys()", "list of 'a'"),
    ("Mapping.values", "r = table.values()", "list of tensor with a graph"),
    ("Mapping.items", "r = table.items()", "list of tuple of 'a', tensor with a graph"),
    ("Mapping.get", "r = table.get('b', 2)", "2"),
    ("Mapping.update", "table.update({'b': 2}); r = table['b']", "2"),
    ("Mapping.copy", "r = table.copy()['a']", "tensor with a graph"),
    ("Mapping.clear", "table.clear(); r = table", "dict of nothing"),
    ("ParameterIterable.items", "r = dict(net.named_parameters()).items()", "parameters"),
    ("builtins.list", "r = list((1, 2))", "list of 1, 2"),
    ("builtins.dict", "r = dict(a=1)['a']", "1"),
    ("munch.Munch", "r = munch.Munch(a=1).a", "1"),
    ("collections.defaultdict", "r = collections.defaultdict(int)", "dict of nothing and more"),
    ("collections.deque", "r = collections.deque([1], maxlen=5)", "list of 1 and more"),
]

PYTHON: list[Row] = [
    ("builtins.range", "r = range(3)", "list of 0, 1, 2"),
    ("builtins.zip", "r = list(zip([1], [2]))", "list of tuple of 1, 2"),
    ("builtins.enumerate", "r = list(enumerate([7], 1))", "list of tuple of 1, 7"),
    ("builtins.getattr", "r = getattr(net, 'weight')", "leaf"),
    ("builtins.setattr", "setattr(net, 'mine', 1); r = net.mine", "1"),
    ("builtins.hasattr", "r = hasattr(net, 'parameters')", "True"),
    ("builtins.isinstance", "r = isinstance(net, nn.Linear)", "True"),
    ("builtins.issubclass", "r = issubclass(Lit, Lit)", "True"),
    ("builtins.len", "r = len(losses)", "2"),
    ("builtins.sum", "r = sum(losses)", "tensor with a graph"),
    ("builtins.next", "r = next(net.parameters())", "leaf"),
    ("builtins.map", "r = map(net, [data])", "list of tensor with a graph"),
    ("builtins.filter", "r = filter(lambda p: p.requires_grad, net.parameters())", "parameters"),
    ("builtins.iter", "r = iter([1])", "list of 1"),
    ("builtins.vars", "r = vars(net)", "Attributes"),
    ("builtins.str", "r = str(3)", "'3'"),
    ("builtins.type", "r = type(loss)", "torch.FloatTensor"),
    ("builtins.exec", "setting = 1; exec(open('configurator.py').read()); r = setting", "unknown"),
    ("builtins.int", "r = int(2.5)", "2"),
    ("torch.is_tensor", "r = torch.is_tensor(loss)", "True"),
    ("random.sample", "import random; r = random.sample([(data, out)], 1)[0][1]", "unknown with a graph"),
    ("random.shuffle", "import random; random.shuffle(losses); r = losses[0]", "unknown with a graph"),
    ("builtins.abs", "r = abs(helper(loss))", "unknown with a graph"),
    ("builtins.max", "r = max(loss, out)", "unknown with a graph"),
    ("builtins.exit", "exit(); r = 1", "ends"),
    ("builtins.round", "r = round(loss)", "tensor with a graph"),
    ("builtins.*", "r = print(loss)", "unknown"),
    ("builtins.__import__", "r = __import__('nothing_of_the_project')", "unknown"),
    ("functools.partial", "r = functools.partial(net, data)()", "tensor with a graph"),
    ("functools.reduce", "r = functools.reduce(operator.add, losses)", "tensor with a graph"),
    ("operator.add", "r = operator.add(loss, loss)", "tensor with a graph"),
    ("itertools.chain", "r = itertools.chain(net.parameters(), net.parameters())", "parameters"),
    ("itertools.chain.from_iterable", "r = itertools.chain.from_iterable([[1], [2]])", "list of 1, 2"),
    ("argparse.ArgumentParser", "r = argparse.ArgumentParser()", "harmless"),
    ("argparse.Namespace", "r = argparse.Namespace(a=1)", "unknown"),
]

ROWS = [*TENSORS, *NETWORKS, *TRAINING, *UNKNOWN, *CONTAINERS, *PYTHON]


def registered() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The names under which something is registered, each with its transfer function."""
    for kind, name in dispatch.registered_methods():
        transfer = dispatch.method_of(kind, name)
        assert transfer is not None
        yield f"{kind.__name__}.{name}", transfer
    yield from dispatch.FUNCTIONS.items()
    for package, transfer in dispatch.PACKAGES.items():
        yield f"{package}.*", transfer


REGISTERED = dict(registered())

HAPPENED = {
    Backward: "backward",
    Step: "step",
    ZeroGrad: "clears",
    InPlaceChange: "writes",
    ModeChange: "mode",
    Clip: "clips",
    Unscale: "unscales",
    ScalerUpdate: "updates",
}


def described(value: Value) -> str:
    """What a value is, as far as gradients are concerned."""
    match value:
        case Const():
            return repr(value.value)
        case Tensor():
            if value.leaf is not None:
                return "frozen leaf" if value.leaf.requires is False else "leaf"
            if value.node is None and value.requires is None:
                return "tensor that may have a graph"
            return "tensor" + " with a graph" * (value.node is not None)
        case Unknown():
            what = "harmless" if value.harmless else "data" if value.graphless else "unknown"
            return what + " with a graph" * (value.node is not None)
        case Sequence() | Mapping():
            kind = value.kind if isinstance(value, Sequence) else "dict"
            held = value.items if isinstance(value, Sequence) else list(value.items.values())
            return f"{kind} of {', '.join(map(described, held)) or 'nothing'}" + " and more" * value.open
        case Module():
            return "network"
        case Optimizer():
            return f"optimizer of {len(value.state.leaves)}"
        case ParameterIterable():
            return "parameters"
        case SummaryTensor():
            return f"{value.view} of parameters" if value.view else "parameters"
        case ImportedName():
            return value.name
    return type(value).__name__


def outcome(line: str) -> tuple[str, set[CodeType]]:
    """What comes of a line after the program, and the code that was run for it."""
    text = PROGRAM + line + "\n"
    tree = ast.parse(text)
    run = Run(Relevance(tree, text), Scenario(), 10_000)
    last = PROGRAM.count("\n") + 1
    run.file([s for s in tree.body if s.lineno < last], run.globals)
    before, codes = len(run.events), set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    ended = True
    sys.setprofile(note)
    with suppress(Stopped):
        run.file([s for s in tree.body if s.lineno >= last], run.globals)
        ended = False
    sys.setprofile(None)
    parts = ["ends"] if ended else []
    if "r" in run.globals.variables:
        parts.append(described(run.globals.variables["r"]))
    for event in run.events[before:]:
        differentiates = isinstance(event, Backward) and not event.accumulates
        parts.append("differentiates" if differentiates else HAPPENED.get(type(event), type(event).__name__))
    return "; ".join(parts), codes


@pytest.mark.parametrize(("name", "line", "expected"), ROWS, ids=[name for name, _, _ in ROWS])
def test_a_line_comes_to_what_torch_makes_of_it(name: str, line: str, expected: str) -> None:
    found, codes = outcome(line)
    assert found == expected
    assert REGISTERED[name].__code__ in codes, f"{line} does not come to what is registered as {name}"


MODES = {
    "@torch.no_grad()": "tensor",
    "@torch.no_grad": "tensor",
    "@torch.inference_mode(mode=True)": "tensor",
    "@torch.set_grad_enabled(False)": "tensor",
    "@torch.autograd.grad_mode.no_grad()": "tensor",
    "@torch.enable_grad()": "tensor with a graph",
    "@torch.enable_grad": "tensor with a graph",
    "@torch.inference_mode(False)": "tensor with a graph",
    "@torch.set_grad_enabled(True)": "tensor with a graph",
    "@torch.no_grad()\n@torch.enable_grad()": "tensor with a graph",
    "@torch.enable_grad()\n@torch.no_grad()": "tensor",
}


@pytest.mark.parametrize("decorators", MODES)
def test_a_decorator_that_sets_the_mode_is_a_context_around_the_function(decorators: str) -> None:
    """What it says holds in the function, whatever its caller does, and nowhere else (tried: torch 2.13)."""
    recorded = "graph" in MODES[decorators]
    around = "torch.no_grad()" if recorded else "torch.enable_grad()"
    function = f"{decorators}\ndef said(): return net(data)\n"
    assert outcome(f"{function}with {around}: r = said()")[0] == MODES[decorators]
    assert outcome(f"{function}said(); r = net(data)")[0] == "tensor with a graph"


def test_a_context_that_is_called_decorates_what_it_returns() -> None:
    function = "def said(): return net(data)\n"
    line = "with torch.no_grad(): r = torch.enable_grad()(said)()"
    assert outcome(f"{function}{line}")[0] == "tensor with a graph"
    assert outcome(f"{function}torch.no_grad()(said); r = said()")[0] == "tensor with a graph"


STORED = {
    "r = [data, data]; r[helper()] = out": "list of unknown with a graph, unknown with a graph and more",
    "r = [data, data]; r[helper():] = [out]": "list of unknown with a graph, unknown with a graph and more",
    "s = [data]; s.insert(helper(), out); r = s[0]": "unknown with a graph",
    "s = {'a': data}; s[helper()] = out; r = s['a']": "unknown with a graph",
    "s = {}; s[helper()] = out; r = s[helper()]": "unknown with a graph",
    "s = {}; s[helper()] = out; r = torch.cat(list(s.values()))": "tensor with a graph",
    "r = table.get(helper())": "unknown with a graph",
    "r = losses.pop(helper())": "unknown with a graph",
    # What has no graph changes nothing, and names that are made up are not those that are written out.
    "r = [data, data]; r[helper()] = 1": "list of tensor, tensor and more",
    "s = {'a': data}; s[f'{helper()}_loss'] = out; r = s['a']": "tensor",
}


@pytest.mark.parametrize("line", STORED)
def test_what_is_stored_nobody_knows_where_may_be_read_again(line: str) -> None:
    assert outcome(line)[0].split("; writes")[0] == STORED[line]


WITHOUT_A_GRAPH = {
    # What is not known may have a graph.
    "r = data * helper()": "tensor that may have a graph",
    "r = 2 * helper()": "unknown",
    "r = -(helper() * 2)": "unknown",
    "r = helper()[0]": "unknown",
    "r = torch.stack([data, helper()])": "tensor that may have a graph",
    "r = nn.functional.mse_loss(out.detach(), helper())": "tensor that may have a graph",
    "r = helper(loss).data": "tensor that may have a graph",
    "helper(data); r = data": "tensor that may have a graph",
    "r = torch.zeros(3); r[0] = helper()": "tensor that may have a graph",
    "r = loss.item(); r += helper()": "unknown",
    "for x in helper(): r = x": "unknown",
    # Numbers, arrays, sizes, batches and what operations give that are not differentiable have none.
    "r = 2 * loss.item()": "data",
    "r = -float(loss)": "data",
    "r = data * loss.item()": "tensor",
    "r = data * out.shape[0]": "tensor",
    "r = (out > helper()).float()": "tensor",
    "r = nn.functional.mse_loss(out.argmax(1).float(), data)": "tensor",
    "r = torch.tensor([loss, helper()])": "tensor",
    "r = torch.from_numpy(out.detach().numpy())": "tensor",
    "with torch.no_grad(): r = data * helper()": "tensor",
    "for x, y in torch.utils.data.DataLoader(helper()): r = nn.functional.mse_loss(x.cuda(), y.float())": (
        "tensor"
    ),
    "for x, y in helper(): loss.backward(); r = nn.functional.mse_loss(x.cuda(), y[0])": (
        "tensor; backward; backward"
    ),
}


@pytest.mark.parametrize("line", WITHOUT_A_GRAPH)
def test_what_has_no_graph_is_told_from_what_is_not_known(line: str) -> None:
    assert outcome(line)[0].split("; writes")[0] == WITHOUT_A_GRAPH[line]


CUTS = {
    "r = loss.detach() * 2": "loss.detach()",
    "r = loss.item() * 2": "loss.item()",
    "r = torch.tensor([loss.item(), 1.0]).mean()": "loss.item()",
    "r = torch.tensor([loss, loss])": "torch.tensor([loss, loss])",
    "r = torch.from_numpy(out.detach().cpu().numpy()).sum()": "out.detach()",
    "r = (out > 0).float().mean()": "out > 0",
    "r = out.argmax(1).float().mean()": "out.argmax(1)",
    "r = torch.autograd.Variable(loss.data, requires_grad=True)": "loss.data",
    "with torch.no_grad(): r = net(data).mean()": "net(data)",
    "r = chain(out.detach())": "",
    "r = data.detach()": "",
}


@pytest.mark.parametrize("line", CUTS)
def test_what_has_no_graph_any_more_says_where_that_ended(line: str) -> None:
    run = made_of(line)
    cut = run.globals.variables["r"].lost
    assert (ast.unparse(cut.site) if cut is not None else "") == CUTS[line]


def made_of(line: str) -> Run:
    """A run of the program, and of a line after it."""
    text = PROGRAM + line + "\n"
    tree = ast.parse(text)
    run = Run(Relevance(tree, text), Scenario(), 10_000)
    run.file(tree.body, run.globals)
    return run


def test_every_transfer_function_has_a_row() -> None:
    told = {REGISTERED[name] for name, _, _ in ROWS}
    missing = {transfer: name for name, transfer in REGISTERED.items() if transfer not in told}
    assert sorted(missing.values()) == []


def test_no_name_is_registered_twice() -> None:
    with pytest.raises(AssertionError, match="is there already"):
        dispatch.method(Tensor, "backward")(lambda run, value, call: None)
    with pytest.raises(AssertionError, match="is there already"):
        dispatch.function("torch.save")(lambda run, call: None)


def test_a_kind_of_value_has_what_the_kind_has_that_it_is_derived_from() -> None:
    assert dispatch.method_of(values.Record, "items") is dispatch.method_of(Mapping, "items")
