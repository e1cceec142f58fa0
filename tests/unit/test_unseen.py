"""What code that cannot be seen leaves certain, and what it does not. Little is run."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from gradfix.autograd.graph import Backward
from gradfix.autograd.program import analyze
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False, certain=True))
    assert isinstance(prepared, Options)
    return prepared


def found(code: str, options: Options) -> list[tuple[str, str]]:
    """The findings in a program: the mistake, and the line that is reported."""
    text = dedent(code)
    parsed = source.parse("script.py", text.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    lines = text.splitlines()
    return [(f.code, lines[f.span.line - 1].strip()) for f in driver.findings(parsed, options)]


# ---------------------------------------------------------------------- who clears and steps

LOOP = """
import torch
from torch import nn
from elsewhere import Wrapper, batches, build

net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
{made}
for batch in batches:
    loss = net(batch).mean()
    loss.backward()
    optimizer.step()
    {last}
"""


@pytest.mark.parametrize(
    "made",
    [
        "optimizer = build(net.parameters(), lr=0.1)",
        "optimizer = build([{'params': net.parameters()}])",
        "optimizer = build.optimizer_for(net.parameters())",
    ],
)
def test_what_is_made_of_parameters_and_steps_is_their_optimizer(made: str, options: Options) -> None:
    assert found(LOOP.format(made=made, last="print(batch)"), options) == [
        ("missing-zero-grad", "optimizer.step()")
    ]
    assert not found(LOOP.format(made=made, last="optimizer.zero_grad()"), options)
    assert not found(LOOP.format(made=made, last="net.zero_grad()"), options)


def test_who_is_not_known_may_clear_gradients(options: Options) -> None:
    made = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nwrapper = Wrapper()"
    assert found(LOOP.format(made=made, last="print(wrapper)"), options) == [
        ("missing-zero-grad", "optimizer.step()")
    ]
    assert not found(LOOP.format(made=made, last="wrapper.zero_grad()"), options)


EARLY = """
import torch
from elsewhere import Actor, Critic, follow

class Agent:
    def __init__(self, device):
        self.actor, self.critic = Actor().to(device), Critic().to(device)
        self.for_actor = torch.optim.Adam(self.actor.parameters())
        self.for_critic = torch.optim.Adam(self.critic.parameters())

    def learn(self, seen):
        follow(self.{followed})
        loss = -self.critic(seen, self.actor(seen)).mean()
        self.for_actor.zero_grad()
        self.for_actor.step()
        loss.backward()
        {after}
"""


def test_a_step_too_early_is_so_whoever_has_another_network_in_hand(options: Options) -> None:
    expected = [("step-before-backward", "self.for_actor.step()")]
    assert found(EARLY.format(followed="critic", after="print(seen)"), options) == expected
    # Whoever has this very network in hand may look at its gradients.
    assert not found(EARLY.format(followed="critic", after="follow(self.actor)"), options)


# ---------------------------------------------------------------------- attributes through __dict__

ARGUMENTS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, size, {arguments}):
        super().__init__()
        {update}
        self.layer = nn.Linear(size, 1)

    def forward(self, x):
        return self.layer(x.view(-1, self.size))

net = Net(3, {given})
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
for batch in torch.randn(4, 5, 3):
    loss = net(batch).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("update", ["self.__dict__.update(locals())", "vars(self).update(locals())"])
def test_arguments_kept_by_their_names_are_known(update: str, options: Options) -> None:
    code = ARGUMENTS.format(arguments="depth=1", update=update, given="depth=2")
    assert found(code, options) == [("missing-zero-grad", "optimizer.step()")]


def test_what_is_kept_that_way_may_hold_anything(options: Options) -> None:
    code = ARGUMENTS.format(arguments="**kept", update="self.__dict__.update(unknown)", given="depth=2")
    # That may bring parameters. Those that are not picked here get no gradient.
    assert found(code, options) == [("missing-zero-grad", "optimizer.step()")]
    # Whether they have as many dimensions cannot be known.
    assert not found(code.replace("if p.requires_grad", "if p.ndim > 1"), options)


# ---------------------------------------------------------------------- who may hold on to a graph

KEPT = """
import torch
from torch import nn
from elsewhere import batches, load

net = load("net")
head = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = torch.optim.SGD({owned}, lr=0.1)
for batch in batches:
    optimizer.zero_grad()
    loss = {loss}
    loss.backward(retain_graph=True)
    optimizer.step()
"""


def test_what_somebody_may_hold_on_to_is_useless_once_its_weights_have_moved(options: Options) -> None:
    expected = [("needless-retain-graph", "loss.backward(retain_graph=True)")]
    owned = "net.parameters()"
    # The head cannot hold on to anything, so it need not move. That nobody trains it is told besides.
    untrained = [("unused-gradients", "loss = net(batch).mean() + head(batch).mean()")]
    code = KEPT.format(owned=owned, loss="net(batch).mean() + head(batch).mean()")
    assert found(code, options) == untrained + expected
    both = "[*net.parameters(), *head.parameters()]"
    assert found(KEPT.format(owned=both, loss="net(head(batch)).mean()"), options) == expected


def test_what_went_into_a_network_that_is_not_seen_may_be_kept(options: Options) -> None:
    codes = {
        code
        for code, _ in found(KEPT.format(owned="net.parameters()", loss="net(head(batch)).mean()"), options)
    }
    assert codes == {"unused-gradients"}


ACCUMULATED = """
import torch
from torch import nn
from elsewhere import load

{net}
{made}
for _ in range(3):
    for batch in torch.randn(2, 4, 3):
        loss = net(batch).mean()
        loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    {then}
"""
STATEFUL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 1)
        self.state = torch.zeros(3)

    def forward(self, x):
        self.state = torch.tanh(self.first(x + self.state))
        return self.last(self.state)
"""
OWN_OPTIMIZER = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)"


@pytest.mark.parametrize(
    ("made", "then", "useless"),
    [
        (OWN_OPTIMIZER, "pass", True),
        ("optimizer = net.optimizer", "pass", True),
        ("optimizer = torch.optim.SGD(net.last.parameters(), lr=0.1)", "pass", False),
        # Every step ends what was kept.
        (OWN_OPTIMIZER, "net.reset_state()", False),
        (OWN_OPTIMIZER, "net.hidden = None", False),
        (OWN_OPTIMIZER, "load.init_hidden(net)", False),
    ],
)
def test_a_state_that_outlives_the_steps_cannot_be_gone_through(
    made: str, then: str, useless: bool, options: Options
) -> None:
    code = ACCUMULATED.format(net="net = load()", made=made, then=then)
    flags = [("needless-retain-graph", "loss.backward(retain_graph=True)")]
    assert found(code, options) == (flags if useless else [])


@pytest.mark.parametrize(("then", "goes_on"), [("pass", False), ("net.state = torch.zeros(3)", True)])
def test_networks_with_such_a_state_raise_with_the_flag(then: str, goes_on: bool) -> None:
    code = ACCUMULATED.format(net=STATEFUL + "net = Net()", made=OWN_OPTIMIZER, then=then)
    code = code.replace("from elsewhere import load", "")
    if goes_on:
        exec(code, {})
    else:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            exec(code, {})


# ---------------------------------------------------------------------- optimizers that are handed in

EPOCH = """
def epoch(model, criterion, optimizer, batches):
    {before}
    for batch, wanted in batches:
        {first}
        loss = criterion(model(batch), wanted)
        {second}
        {third}
        {fourth}
"""
CLEAR, BACKWARD, STEP, OTHER = "optimizer.zero_grad()", "loss.backward()", "optimizer.step()", "print(loss)"


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ((OTHER, CLEAR, STEP, BACKWARD, OTHER), ("step-before-backward", STEP)),
        ((OTHER, OTHER, BACKWARD, CLEAR, STEP), ("misplaced-zero-grad", CLEAR)),
        ((CLEAR, OTHER, BACKWARD, STEP, OTHER), ("misplaced-zero-grad", CLEAR)),
        ((OTHER, CLEAR, BACKWARD, STEP, OTHER), None),
        ((OTHER, OTHER, BACKWARD, STEP, CLEAR), None),
        # The gradients of one pass are for the step of the next.
        ((OTHER, STEP, CLEAR, BACKWARD, OTHER), None),
        # Whatever has both methods may be the network; and who clears here, clears these.
        ((CLEAR, OTHER, BACKWARD, STEP, "model.zero_grad()"), None),
        ((OTHER, OTHER, BACKWARD, "model.zero_grad()", STEP), None),
        # It does something, and nobody knows what.
        ((CLEAR, OTHER, BACKWARD, STEP, "model.finish(optimizer)"), None),
        ((OTHER, CLEAR, "criterion.differentiate(loss)", STEP, BACKWARD), None),
    ],
)
def test_what_somebody_hands_in_that_clears_and_steps_is_an_optimizer(
    order: tuple[str, str, str, str, str], expected: tuple[str, str] | None, options: Options
) -> None:
    code = EPOCH.format(**dict(zip(("before", "first", "second", "third", "fourth"), order)))
    assert found(code, options) == ([expected] if expected is not None else [])


def test_two_optimizers_that_are_handed_in_have_networks_of_their_own(options: Options) -> None:
    code = """
    def epoch(generator, critic, to_generate, to_tell, batches):
        for real, noise in batches:
            to_tell.zero_grad()
            fake = generator(noise)
            telling = critic(fake.detach()).mean() - critic(real).mean()
            telling.backward()
            to_tell.step()
            to_generate.zero_grad()
            deceiving = -critic(fake).mean()
            deceiving.backward()
            to_generate.step()
    """
    assert not found(code, options)


def test_what_turns_out_to_be_a_network_is_none(options: Options) -> None:
    code = """
    import torch

    def train(model, batches):
        model.zero_grad()
        optimizer = torch.optim.Adam(model.parameters())
        for batch in batches:
            {clear}
            loss = model(batch).mean()
            loss.backward()
            optimizer.step()
    """
    assert not found(code.format(clear="model.zero_grad()"), options)
    assert found(code.format(clear="print(batch)"), options) == [("missing-zero-grad", "optimizer.step()")]


# ---------------------------------------------------------------------- a network that makes its optimizer

TRAINER = """
class Trainer:
    def __init__(self, config, model, loader):
        self.config, self.model, self.loader = config, model, loader

    def run(self):
        model = self.model
        self.optimizer = model.{made}(self.config)
        for x, y in self.loader:
            logits, loss = model(x, y)
            {before}
            loss.backward()
            {between}
            self.optimizer.step()
"""


def test_what_a_network_configures_is_its_optimizer(options: Options) -> None:
    def asked(before: str = "pass", between: str = "pass", made: str = "configure_optimizers") -> object:
        return found(TRAINER.format(before=before, between=between, made=made), options)

    assert asked() == [("missing-zero-grad", "self.optimizer.step()")]
    assert asked(between="model.zero_grad()") == [("misplaced-zero-grad", "model.zero_grad()")]
    assert not asked(before="model.zero_grad()")
    assert not asked(before="self.optimizer.zero_grad(set_to_none=True)")
    # What another method makes may be anything that steps.
    assert not asked(made="prepare")


# ---------------------------------------------------------------------- who only looks on

WATCHED = """
import torch

class Trainer:
    def __init__(self, model, callbacks, loader):
        self.model, self.callbacks, self.loader = model, callbacks, loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self):
        for x in self.loader:
            self.loss = self.model(x).mean()
            self.loss.backward()
            self.optimizer.step()
            {told}
"""


@pytest.mark.parametrize(
    "told",
    [
        "for callback in self.callbacks: callback(self)",
        "for callback in self.callbacks.get('batch', []): callback(self, 3)",
        "for hook in self.callbacks: hook.on_step_end(self)",
        "for hook in self.callbacks: hook.after_batch(self, x)",
    ],
)
def test_callbacks_look_on(told: str, options: Options) -> None:
    assert found(WATCHED.format(told=told), options) == [("missing-zero-grad", "self.optimizer.step()")]


@pytest.mark.parametrize(
    "told",
    [
        "for callback in self.callbacks: callback(self.model)",
        "for callback in self.callbacks: callback(self, self.optimizer)",
        "for train_step in self.callbacks: train_step(self)",
        "for hook in self.callbacks: hook.finish(self)",
        "for hook in self.callbacks: hook.on_step_end(self, self.optimizer)",
        "self.callbacks(self)",
        "self.callbacks['clear'](self)",
    ],
)
def test_what_takes_part_may_clear_gradients(told: str, options: Options) -> None:
    assert not found(WATCHED.format(told=told), options)


# ---------------------------------------------------------------------- what keeps no state

CRITIC = """
import torch
from elsewhere import Actor, Critic, batches

actor, critic = Actor(), Critic()
for_actor = torch.optim.Adam(actor.parameters())
for_critic = torch.optim.Adam(critic.parameters())
for seen in batches:
    value = critic(seen, actor(seen).detach()).pow(2).mean()
    for_critic.zero_grad()
    value.backward({first})
    for_critic.step()
    loss = -critic(seen, actor(seen)).mean()
    for_actor.zero_grad()
    loss.backward(retain_graph=True)
    for_actor.step()
"""


def test_a_network_whose_graph_was_freed_between_two_calls_keeps_none(options: Options) -> None:
    flagged = ("needless-retain-graph", "loss.backward(retain_graph=True)")
    assert found(CRITIC.format(first=""), options) == [flagged]
    # Nothing says so of a network that is asked for this loss alone.
    alone = CRITIC.format(first="").replace("critic(seen, actor(seen).detach())", "actor(seen)")
    assert flagged not in found(alone, options)


# ---------------------------------------------------------------------- helpers that are handed an optimizer

HELPER = """
def update(optimizer, loss):
    {before}
    optimizer.step()
    {after}
"""


def test_what_is_cleared_and_stepped_before_the_backward(options: Options) -> None:
    expected = [("step-before-backward", "optimizer.step()")]
    for after in ("loss.backward()", "loss.backward(retain_graph=True)"):
        assert found(HELPER.format(before="optimizer.zero_grad()", after=after), options) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("print(loss)", "loss.backward()"),  # the gradients of the call before
        ("optimizer.zero_grad(); loss.backward()", "loss.backward()"),
        ("optimizer.zero_grad(); prepare(loss)", "loss.backward()"),
        ("optimizer.zero_grad()", "loss.backward(); optimizer.step()"),
        ("optimizer.zero_grad()", "print(loss)"),
    ],
)
def test_a_helper_may_step_on_what_it_was_left(before: str, after: str, options: Options) -> None:
    assert not found(HELPER.format(before=before, after=after), options)


# ---------------------------------------------------------------------- learners of learn2learn

LEARNER = """
import learn2learn as l2l
import torch
from torch import nn
from elsewhere import tasks

net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
maml = l2l.algorithms.MAML(net, lr=0.1{option})
optimizer = torch.optim.Adam(maml.parameters())
for pairs in tasks:
    {first}
    for known, asked in pairs:
        learner = maml.clone()
        learner.adapt(learner(known).pow(2).mean())
        loss = learner(asked).pow(2).mean()
        {backward}
    optimizer.step()
"""


@pytest.mark.parametrize("option", ["", ", first_order=True", ", first_order=pick"])
def test_the_loss_of_a_clone_leaves_its_gradients_in_the_network(option: str, options: Options) -> None:
    program = LEARNER.format(option=option, first="{first}", backward="loss.backward()")
    assert found(program.format(first="print(pairs)"), options) == [("missing-zero-grad", "optimizer.step()")]
    for clearing in ("optimizer.zero_grad()", "maml.zero_grad()", "net.zero_grad()"):
        assert not found(program.format(first=clearing), options)


def test_what_a_learner_has_learnt_from_is_a_part_of_its_loss(options: Options) -> None:
    kept = LEARNER.format(
        option="", first="optimizer.zero_grad()", backward="loss.backward(retain_graph=True)"
    )
    assert found(kept, options) == [("needless-retain-graph", "loss.backward(retain_graph=True)")]
    twice = kept.replace("{0}loss.backward(", "{0}(loss * 2).backward()\n{0}loss.backward(".format(" " * 8))
    both = kept + "    learner(asked).mean().backward()\n"
    assert "retain_graph" in twice
    assert not [f for f in found(both, options) if f[0] == "needless-retain-graph"]


@pytest.mark.parametrize(
    "first", ["learner.zero_grad()", "for p in learner.parameters(): p.detach_().requires_grad_()"]
)
def test_what_is_done_to_a_clone_is_not_done_to_the_network(first: str, options: Options) -> None:
    program = LEARNER.format(option="", first="print(pairs)", backward="loss.backward()")
    program = program.replace("learner = maml.clone()", f"learner = maml.clone()\n        {first}")
    assert found(program, options) == [("missing-zero-grad", "optimizer.step()")]


# ---------------------------------------------------------------------- options of the command line

REPEATED = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--repeats", type=int, default={repeats})
parser.add_argument("--cut", action="store_true")
options = parser.parse_args()
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in [torch.randn(2, 3)] * 3:
    predicted = net(x)
    if options.cut:
        predicted = net(x * 2)
        predicted.sum().backward(retain_graph=True)
    for _ in range(options.repeats):
        optimizer.zero_grad()
        predicted.mean().backward()
        optimizer.step()
    if options.cut:
        (net(x) * 2).sum().backward()
"""


@pytest.mark.parametrize(("repeats", "raises"), [(1, False), (2, True), (9, True)])
def test_a_loop_runs_as_often_as_it_does_without_options(repeats: int, raises: bool) -> None:
    text = REPEATED.format(repeats=repeats)
    (entry,) = analyze(ast.parse(text), text, Path("script.py")).entry_points
    assert entry.run_without_options is not entry.runs[0]
    assert any(isinstance(e, Backward) and e.failure for e in entry.run_without_options.events) is raises


# ---------------------------------------------------------------------- who expects an error

CAUGHT = """
import torch
from torch import nn
from elsewhere import batches

net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
for batch in batches:
    loss = net(batch).square().mean()
    loss.backward()
    try:
        loss.backward()
    except {handler}
"""


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        ("RuntimeError: print('as expected')", False),
        ("RuntimeError as e:\n        if 'second time' not in str(e): raise", False),
        ("RuntimeError as e:\n        if 'out of memory' in str(e): print(e)\n        else: raise", True),
        ("KeyboardInterrupt: print('enough')", True),
        ("(ValueError, RuntimeError): pass", False),
        ("Exception as e: raise SystemExit(1) from e", True),
    ],
)
def test_an_error_is_expected_by_who_catches_it_and_goes_on(
    handler: str, told: bool, options: Options
) -> None:
    assert bool(found(CAUGHT.format(handler=handler), options)) is told


SHOWN = """
import torch
from torch import nn
from elsewhere import Writer, batches

net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
writer = Writer()
for batch in batches:
    loss = net(batch).mean()
    loss.backward()
    optimizer.step()
    {shown}
"""


@pytest.mark.parametrize(
    ("shown", "certain"),
    [
        ("writer.log_validation(loss, net, batch)", True),
        ("writer.validation(loss, net, batch)", False),
        ("writer.log_and_clear(loss, optimizer)", False),
    ],
)
def test_who_logs_leaves_what_it_is_shown(shown: str, certain: bool, options: Options) -> None:
    assert bool(found(SHOWN.format(shown=shown), options)) is certain


# ---------------------------------------------------------------------- processes, optimizers of one's own

BESIDE = """
import threading
import torch
import torch.multiprocessing as mp
from torch import nn

net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def train(rank, model, owner):
    for batch in torch.randn(5, 2, 3):
        {zero}
        model(batch).mean().backward()
        owner.step()

class Worker(mp.Process):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def run(self):
        train(0, self.model, optimizer)

{started}
"""


@pytest.mark.parametrize(
    "started",
    [
        "mp.Process(target=train, args=(0, net, optimizer)).start()",
        "p = mp.Process(target=train, kwargs={'rank': 0, 'model': net, 'owner': optimizer})\\np.start()",
        "for p in [threading.Thread(None, train, 'one', (i, net, optimizer)) for i in range(2)]: p.start()",
        "mp.spawn(train, args=(net, optimizer), nprocs=2)",
        "[w.start() for w in [Worker(net) for _ in range(3)]]",
    ],
)
def test_what_a_process_runs_is_run(started: str, options: Options) -> None:
    faulty = BESIDE.format(zero="pass", started=started.replace("\\n", "\n"))
    assert found(faulty, options) == [("missing-zero-grad", "owner.step()")]
    right = BESIDE.format(zero="owner.zero_grad()", started=started.replace("\\n", "\n"))
    assert found(right, options) == []


def test_a_process_may_be_handed_nothing(options: Options) -> None:
    started = "def alone(rank): train(rank, net, optimizer)\nmp.spawn(fn=alone)"
    assert found(BESIDE.format(zero="pass", started=started), options) == [
        ("missing-zero-grad", "owner.step()")
    ]


OWN = """
import torch
from torch import nn
from elsewhere import batches

class Own(torch.optim.{base}):
    def share(self):
        {shared}

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-0.1)
        {after}

net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = Own(net.parameters(), {{}})
for batch in batches:
    net(batch).mean().backward()
    optimizer.step()
    {last}
"""


@pytest.mark.parametrize(
    ("base", "shared", "after", "last", "certain"),
    [
        ("Optimizer", "pass", "pass", "pass", True),
        ("SGD", "pass", "pass", "optimizer.share()", True),
        ("Adam", "pass", "pass", "optimizer.zero_grad()", False),
        ("Adam", "pass", "self.zero_grad()", "pass", False),
        ("Adam", "self.zero_grad()", "pass", "optimizer.share()", False),
    ],
)
def test_an_optimizer_of_ones_own_steps_and_owns_what_it_is_handed(
    base: str, shared: str, after: str, last: str, certain: bool, options: Options
) -> None:
    code = OWN.format(base=base, shared=shared, after=after, last=last)
    assert (("missing-zero-grad", "optimizer.step()") in found(code, options)) is certain


def test_a_step_of_ones_own_may_leave_the_versions(options: Options) -> None:
    code = OWN.format(base="SGD", shared="pass", after="pass", last="loss.backward()").replace(
        "net(batch).mean().backward()", "loss = net(batch).mean(); loss.backward(retain_graph=True)"
    )
    plain = code.replace("Own(net.parameters(), {})", "torch.optim.SGD(net.parameters())")
    assert "stale-forward" in {kind for kind, _ in found(plain, options)}
    assert "stale-forward" not in {kind for kind, _ in found(code, options)}


NAMED = """
import torch
from torch import nn
from elsewhere import batches, depth

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.parts = nn.ModuleDict()
        for number in range(depth):
            self.parts[{name}] = nn.Linear(3, 3)

    def forward(self, x):
        for _, part in self.parts.items():
            x = torch.tanh(part(x))
        return x

net = Net(depth)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in batches:
    {zero}
    net(batch).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("name", ['f"part_{number}"', '"part_%d" % number', "str(number)"])
def test_layers_have_names_that_are_computed(name: str, options: Options) -> None:
    assert found(NAMED.format(name=name, zero="pass"), options) == [("missing-zero-grad", "optimizer.step()")]
    assert found(NAMED.format(name=name, zero="net.zero_grad()"), options) == []


COMPUTED = """
import torch
from torch import nn
from elsewhere import batches

class Net(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.widths = widths
        for number, width in enumerate(widths, 1):
            {made}

    def forward(self, x):
        for number in range(1, len(self.widths) + 1):
            x = getattr(self, {name})(x)
        return x

first, second = nn.Linear(3, 3), Net([3, 3])
optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
for batch in batches:
    second(first(batch)).mean().backward()
    optimizer.step()
    for p in first.parameters():
        p.grad = None
    print([p.grad for p in second.parameters()])
"""


@pytest.mark.parametrize(
    ("made", "name"),
    [
        ('setattr(self, "stage" + str(number), nn.Linear(width, width))', '"stage" + str(number)'),
        ('self.add_module("stage%d" % number, nn.Linear(width, width))', '"stage%d" % number'),
        ('setattr(self, "a{}_{}".format(number, "b"), nn.Linear(width, width))', 'f"a{number}_b"'),
        ('setattr(self, f"a{number:02d}", nn.Linear(width, width))', '"a%02d" % (number,)'),
        (
            'setattr(self, "_".join(["a", str(number)]), nn.Linear(width, width))',
            '"A_{n}".format(n=number).lower()',
        ),
    ],
)
def test_attributes_have_names_that_are_computed(made: str, name: str) -> None:
    code = COMPUTED.format(made=made, name=name)
    program = analyze(ast.parse(code), code, Path("script.py"))
    (backward, *_) = [e for e in program.entry_points[0].runs[0].events if isinstance(e, Backward)]
    # The layers of both networks, each of them for certain.
    assert len(backward.reached) == 3
    assert all(backward.reached.values())


@pytest.mark.parametrize(
    "text",
    ['"%999d" % number', '"{:999}".format(number)', 'f"{number:{number}99999}"', '"%*d" % (number, 1)'],
)
def test_texts_that_would_be_huge_are_not_made(text: str) -> None:
    code = COMPUTED.format(made=f"self.add_module({text}, nn.Linear(width, width))", name=text)
    program = analyze(ast.parse(code), code, Path("script.py"))
    (backward, *_) = [e for e in program.entry_points[0].runs[0].events if isinstance(e, Backward)]
    assert len(backward.reached) < 3


INHERITED = """
import torch
from abc import abstractmethod
from torch import nn

class Template(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    {method}

    def fit(self, batches):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        for batch in batches:
            {zero}
            value = self.loss(self.layer(batch))
            value.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    "method",
    [
        "@abstractmethod\n    def loss(self, x):\n        ...",
        "def loss(self, x):\n        raise NotImplementedError",
        'def loss(self, x):\n        """See subclasses."""\n        raise NotImplementedError("loss")',
    ],
)
def test_what_a_subclass_defines_has_a_graph(method: str, options: Options) -> None:
    expected = [("missing-zero-grad", "optimizer.step()")]
    assert found(INHERITED.format(method=method, zero="pass"), options) == expected
    assert found(INHERITED.format(method=method, zero="optimizer.zero_grad()"), options) == []


SEARCHED = """
import torch
from torch import nn
from elsewhere import batches, modules, name

def build(modules, name):
    for module in modules:
        kind = getattr(module, name, None)
        if kind is not None:
            break
    if kind is None:
        raise ValueError(name)
    return kind()

net = build(modules, name)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in batches:
    loss = net(batch).mean()
    loss.backward()
    optimizer.step()
"""


def test_what_was_guessed_in_a_search_does_not_end_the_program(options: Options) -> None:
    assert found(SEARCHED, options) == [("missing-zero-grad", "optimizer.step()")]


PLACED = """
import torch
from elsewhere import batches, count, width
from munch import Munch
from torch import nn
from types import SimpleNamespace

{made}
for batch in batches:
    loss = {loss}
    {zero}
    loss.mean().backward()
    {step}
"""

NETWORKS = """
    nets = {record}(one=nn.Linear(3, 3), two=nn.Linear(3, 3))
    owners = {record}()
    owners.one = torch.optim.SGD(nets.one.parameters())
    owners.two = torch.optim.SGD(nets.two.parameters())
"""

LISTED = """
    parts = nn.ModuleList([nn.Linear(3, 3) for _ in range(count)])
    owner = torch.optim.SGD([p for p in parts.parameters() if p.requires_grad])
    def through(x):
        for number in range(count):
            x = torch.tanh(parts[number](x))
        return x
"""

REPLACED = """
    net = nn.Linear(3, 3)
    def optimizer(rate):
        return torch.optim.SGD(net.parameters(), lr=rate)
    owner = optimizer(0.1)
    def halve():
        global owner
        if width:
            owner = optimizer(0.05)
"""


@pytest.mark.parametrize(
    ("made", "loss", "step"),
    [
        (
            NETWORKS.format(record="Munch"),
            "nets.two(nets.one(batch))",
            "owners.one.step(); owners.two.step()",
        ),
        (NETWORKS.format(record="SimpleNamespace"), "nets.two(batch)", "owners.two.step()"),
        (LISTED, "through(batch)", "owner.step()"),
        (REPLACED, "net(batch)", "owner.step(); halve()"),
    ],
)
def test_networks_and_optimizers_are_followed_where_they_are_kept(
    made: str, loss: str, step: str, options: Options
) -> None:
    code = PLACED.format(made=dedent(made), loss=loss, step=step, zero="pass")
    steps = {line for kind, line in found(code, options) if kind == "missing-zero-grad"}
    assert steps == {step}
    clear = "; ".join(call.replace("step", "zero_grad") for call in step.split("; ") if "step" in call)
    assert not found(PLACED.format(made=dedent(made), loss=loss, step=step, zero=clear), options)


OPTIMISED = """
import torch
from apex import amp
from elsewhere import count, target
from torch import nn

image = torch.randn(1, 3).repeat(count, 1)
image.requires_grad = True
noises = [torch.zeros(2).repeat(count, 1).normal_() for _ in range(2)]
for noise in noises:
    noise.requires_grad = True
net = nn.Linear(5, 1)
optimizer = torch.optim.Adam([image] + noises)
net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
for _ in range(100):
    loss = (net(torch.cat([image, noises[0] * noises[1]], 1)) - target).square().mean()
    {zero}
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
    optimizer.step()
    for noise in noises:
        noise.data.add_(-noise.mean()).div_(noise.std())
"""


def test_tensors_are_optimised_and_a_loss_is_scaled(options: Options) -> None:
    assert found(OPTIMISED.format(zero="pass"), options) == [("missing-zero-grad", "optimizer.step()")]
    assert not found(OPTIMISED.format(zero="optimizer.zero_grad()"), options)


def test_a_graph_is_kept_for_a_derivative_whose_way_is_not_seen(options: Options) -> None:
    code = """
    import torch
    from elsewhere import Block
    from torch import nn

    def twice(x):
        lin, block = nn.Linear(3, 3), Block(3)
        h = lin(x)
        target = block(h).mean()
        target.backward(retain_graph=True)
        torch.autograd.grad(target, [h] + list(block.parameters()))
    """
    assert not found(code, options)


# ---------------------------------------------------------------------- who keeps a graph

FLAGGED = """
import torch
from elsewhere import batches, options
from torch import nn
from torch.autograd import Function, Variable
from torchvision import models

{made}
for batch in batches:
    noise = torch.zeros(2, 3).requires_grad_()
    {forward}
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
"""

USUAL = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)"
KEEPER = """
class Keeper(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net, self.last = net, 0

    def forward(self, x):
        self.last = self.net(x) + self.last
        return self.last
"""


def needless(made: str, forward: str, options: Options) -> bool:
    """Whether the flag in :data:`FLAGGED` is held to be needless."""
    code = FLAGGED.format(made=dedent(made), forward=dedent(forward).strip().replace("\n", "\n    "))
    return ("needless-retain-graph", "loss.backward(retain_graph=True)") in found(code, options)


@pytest.mark.parametrize(
    ("network", "keeps"),
    [
        ("models.__dict__[options.arch]()", False),
        ("models.__dict__['resnet18'](pretrained=True)", False),
        ("models.resnet18(); net.fc = nn.Linear(512, 2)", False),
        ("models.resnet18(); net.fc = Keeper(net.fc)", True),
        ("Keeper(models.resnet18())", True),
        ("options.build()", True),
        ("options.__dict__['build']()", True),
    ],
)
def test_networks_of_libraries_keep_no_graph(network: str, keeps: bool, options: Options) -> None:
    # The noise is not stepped on: who kept the graph could traverse it up to there.
    made = f"{KEEPER}\nnet = {network}\n{USUAL}"
    assert needless(made, "loss = net(batch + noise).mean()", options) is not keeps


@pytest.mark.parametrize("known", [True, False])
def test_whether_operands_require_grad_is_not_who_keeps_them(known: bool, options: Options) -> None:
    made = f"from elsewhere import mix, sample\nnet = nn.Linear(3, 1)\n{USUAL}"
    mixed = "image * other" if known else "mix(image, other)"
    forward = f"image, other = sample(noise), sample(noise)\nloss = net({mixed}).mean()"
    assert needless(made, forward.replace("sample(noise)", "sample()"), options)
    assert needless(made, forward, options) is known


HIDDEN = """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.net, self.judge = nn.Linear(3, 3), nn.Linear(3, 1)
        self.head = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1)).requires_grad_(False)
        self.optimizer = torch.optim.SGD([*self.net.parameters(), *self.judge.parameters()], lr=0.1)

    def forward(self, batch):
        self.fake = self.net(batch)

    def update(self, batch):
        loss = self.head({fake}).mean()
        loss.backward(retain_graph=True)
        self.judge({fake}).mean().backward()
        self.optimizer.step()
"""


def test_what_another_method_has_made_may_have_a_graph(options: Options) -> None:
    for fake, needless in (("self.fake", False), ("self.net(batch)", True)):
        codes = [code for code, _ in found(HIDDEN.format(fake=fake), options)]
        assert ("needless-retain-graph" in codes) is needless


CONSTRUCTED = """
import torch
from elsewhere import batches
from torch import nn

class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 1)

    def loss(self, x):
        return self.lin(x).mean()

class Trainer:
    def {first}(self, opt):
        self.opt = opt
        if opt.train:
            self.judge = Judge()
            self.optimizer = torch.optim.SGD(self.judge.parameters(), lr=0.1)

    def step(self, batch):
        loss = self.opt.weight * self.judge.loss(batch)
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        self.optimizer.step()

def main(opt):
    trainer = Trainer({given})
    {then}
    for batch in batches:
        trainer.step(batch)
"""


@pytest.mark.parametrize("first", ["__init__", "initialize", "prepare"])
def test_what_is_set_first_is_not_set_from_outside(first: str, options: Options) -> None:
    given, then = ("opt", "pass") if first == "__init__" else ("", f"trainer.{first}(opt)")
    flags = found(CONSTRUCTED.format(first=first, given=given, then=then), options)
    assert bool(flags) is (first != "prepare")


@pytest.mark.parametrize(("otherwise", "ends"), [("assert 0, 'which loss?'", True), ("print(batch)", False)])
def test_an_assertion_of_nothing_ends_the_program(otherwise: str, ends: bool, options: Options) -> None:
    made = f"net = nn.Linear(3, 1)\n{USUAL}"
    forward = f"""
    loss = 0
    if options.kind == "mean":
        loss += net(batch).mean()
    else:
        {otherwise}
    loss = options.weight * loss
    """
    assert needless(made, forward, options) is ends


@pytest.mark.parametrize(
    "forward",
    [
        "loss = net(batch - Variable(type(batch.data)(noise.size()))).mean()",
        "loss = parts(net(batch)).mean()",
        "loss = Own()(net(batch)).mean()",
    ],
)
def test_what_makes_no_graph_of_its_own_keeps_none(forward: str, options: Options) -> None:
    made = f"""
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.all = nn.ModuleDict({{"first": nn.ReLU()}})
            self.all.update({{"last": nn.Linear(1, 1)}})

        def forward(self, x):
            return self.all.last(self.all.first(x))

    class Own(Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x * 2

    parts = Parts()
    net = nn.Linear(3, 1)
    {USUAL}
    """
    assert needless(made, forward, options)


JOINED = """
import torch
from torch import nn

class Component:
    def train(self, trainer):
        for real in trainer.loader:
            trainer.optimizer.zero_grad()
            fake = trainer.generator(torch.randn(4, 2))
            answers = torch.cat((trainer.critic(real.detach()), trainer.critic(fake.detach())))
            loss = nn.functional.nll_loss(answers, torch.zeros(8).long())
            trainer.optimizer.step()
            loss.backward()
"""


def test_what_is_joined_of_unknown_things_may_have_a_graph(options: Options) -> None:
    program = analyze(ast.parse(JOINED), JOINED, Path("script.py"))
    backwards = [e for e in program.entry_points[0].runs[0].events if isinstance(e, Backward)]
    assert backwards and not any(event.failure for event in backwards)
    assert found(JOINED, options) == [("step-before-backward", "trainer.optimizer.step()")]


SEPARATE = """
import torch

class Component:
    def train(self, trainer):
        for real in trainer.loader:
            trainer.critic_optimizer.zero_grad()
            trainer.actor_optimizer.zero_grad()
            loss = trainer.critic(real.detach()).mean()
            {first}
            trainer.actor_optimizer.zero_grad()
            trainer.critic_optimizer.zero_grad()
            value = trainer.critic(trainer.actor(real)).mean()
            value.backward()
            trainer.actor_optimizer.step()
"""


def test_a_step_that_finds_nothing_whatever_is_differentiated(options: Options) -> None:
    """Nothing is known of networks and losses; that the optimizer was cleared and steps on nothing is."""
    step, backward = "trainer.critic_optimizer.step()", "loss.backward()"
    right, wrong = ("\n            ".join(order) for order in ((backward, step), (step, backward)))
    assert found(SEPARATE.format(first=right), options) == []
    assert found(SEPARATE.format(first=wrong), options) == [("step-before-backward", step)]
    # Who is told by name what to fill may fill it for somebody else.
    told = wrong.replace("backward()", "backward(inputs=trainer.given)")
    assert found(SEPARATE.format(first=told), options) == []


VIEWED = """
import torch
from torch import nn
from library import batches

net = nn.Linear(3, 3)
for batch in batches():
    loss = (batch.{view} / net(torch.randn(2, 3))).sum()
    batch.exp_()
    loss.backward()
"""


@pytest.mark.parametrize(("view", "doubtful"), [("t().t()", True), ("detach()", True), ("clone()", False)])
def test_a_view_of_the_unknown_is_the_same_memory(view: str, doubtful: bool) -> None:
    program = analyze(ast.parse(VIEWED.format(view=view)), VIEWED, Path("script.py"))
    backwards = [e for e in program.entry_points[0].runs[0].events if isinstance(e, Backward)]
    saved = [storage for e in backwards for node in e.visited for storage, _, _ in node.saved]
    assert backwards and doubtful == any(storage.maybe or storage.version for storage in saved)


PARTS = """
import torch
from library import Pair

both = Pair()
weights = list(both.parameters())
makers = torch.optim.Adam(both.maker.parameters())
judges = torch.optim.Adam(both.judge.parameters())
for real in torch.randn(5, 4, 3):
    {clear}
    made, scores = both(real)
    scores.mean().backward()
    judges.step()
    makers.zero_grad()
    made, scores = both(real)
    (-scores.mean()).backward()
    makers.step()
"""


def test_a_call_of_the_whole_may_go_through_its_parts(options: Options) -> None:
    assert found(PARTS.format(clear="judges.zero_grad()"), options) == []
    assert found(PARTS.format(clear="pass"), options) == [("missing-zero-grad", "judges.step()")]


CHAINED = """
import torch

def train(trainer):
    for real in trainer.loader:
        trainer.optimizer.zero_grad()
        answers = torch.cat((trainer.critic(real), trainer.critic(real.flip(0))))
        loss = {loss}
        loss.backward(retain_graph=True)
        trainer.optimizer.step()
"""


@pytest.mark.parametrize("loss", ["answers.mean()", "-answers.mean() * 2", "trainer.critic(real)"])
def test_what_is_computed_of_the_unknown_is_no_better_known(loss: str, options: Options) -> None:
    """The critic may keep a state from call to call, however much is computed of what it gives."""
    assert found(CHAINED.format(loss=loss), options) == []


LOOKED_UP = """
import argparse

import torch
from torch import nn

class NetSmall(nn.Module):
    def __init__(self):
        super().__init__()
        self.only = nn.Linear(3, 1)

    def forward(self, x):
        return self.only(x)

def choose(name):
    name = name.lower().capitalize()
    return eval({text})

parser = argparse.ArgumentParser()
parser.add_argument("--net", default="SMALL")
net = choose(parser.parse_args([]).net)()
optimizer = eval("torch.optim." + "SGD")(net.parameters(), lr=0.1)
for x in torch.randn(3, 5, 3):
    optimizer.zero_grad()
    out = net(x)
    out.mean().backward(retain_graph=True)
    optimizer.step()
    out.square().mean().backward()
"""


@pytest.mark.parametrize("text", ["'Net{}'.format(name)", "f'Net{name}'", "'Net%s' % name", "'Net' + name"])
def test_what_eval_looks_up_by_a_name(text: str, options: Options) -> None:
    """One layer on data saves no weights: the second backward does not mind the step."""
    code = LOOKED_UP.format(text=text)
    exec(compile(code, "script.py", "exec"), {})
    assert [kind for kind, _ in found(code, options)] == ["step-before-backward"]
    # Two layers do.
    deeper = code.replace("nn.Linear(3, 1)", "nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))")
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        exec(compile(deeper, "script.py", "exec"), {})
    assert [kind for kind, _ in found(deeper, options)] == ["stale-forward"]


MADE = """
import torch
from torch import nn

class Agent:
    def __init__(self, make):
        self.local, self.target = make(4, 2).to("cpu"), make(4, 2).to("cpu")
        self.optimizer = torch.optim.Adam(self.local.parameters())

    def learn(self, states, actions, rewards):
        targets = rewards + self.target.forward(states).detach().max(1)[0]
        values = self.local.forward(states).gather(1, actions)
        loss = nn.functional.mse_loss(values, targets)
        {0}
        loss.backward()
        self.optimizer.step()
"""


def test_what_is_asked_for_its_parameters_is_a_network_by_its_forward_too(options: Options) -> None:
    assert found(MADE.format("self.optimizer.zero_grad()"), options) == []
    assert found(MADE.format("pass"), options) == [("missing-zero-grad", "self.optimizer.step()")]


OLDER_APEX = """
import torch
from apex import amp
from torch import nn

handle = amp.init(True)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.randn(5, 8, 3):
    {0}
    with handle.scale_loss(net(batch).mean(), optimizer) as scaled:
        scaled.backward()
    optimizer.step()
"""


def test_the_older_interface_of_apex(options: Options) -> None:
    assert found(OLDER_APEX.format("optimizer.zero_grad()"), options) == []
    assert found(OLDER_APEX.format("pass"), options) == [("missing-zero-grad", "optimizer.step()")]


ONE_FORWARD = """
import torch
from elsewhere import Model, critics

model = Model()
optimizer = torch.optim.Adam(model.parameters())
for batch in torch.randn(5, 8, 3):
    answer = model(batch)
    optimizer.zero_grad()
    for critic in critics:
        loss = critic(answer).mean()
        loss.backward(retain_graph=True)
        optimizer.step()
"""


def test_one_prediction_for_several_steps_is_no_matter_of_clearing(options: Options) -> None:
    assert "misplaced-zero-grad" not in [code for code, _ in found(ONE_FORWARD, options)]
    anew = ONE_FORWARD.replace("critic(answer)", "critic(model(batch))").replace("retain_graph=True", "")
    assert [code for code, _ in found(anew, options)] == ["misplaced-zero-grad"]


SEVERAL = """
import torch
from torch import nn

class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
        self.optimizer = torch.optim.Adam(self.actor.parameters())

class Agents:
    def __init__(self):
        self.agents = [Agent(), Agent()]

    def update(self, states, number, other):
        agent = self.agents[number]
        agent.optimizer.zero_grad()
        loss = -agent.critic(agent.actor(states)).mean() - {extra}
        loss.backward({flag})
        agent.optimizer.step()
"""


def test_one_of_several_agents_stands_for_any(options: Options) -> None:
    flag = "retain_graph=True"
    assert found(SEVERAL.format(extra="0", flag=""), options) == []
    needless = ("needless-retain-graph", f"loss.backward({flag})")
    assert found(SEVERAL.format(extra="0", flag=flag), options) == [needless]
    # Of a second number nobody knows whether it is the first one.
    second = "self.agents[other].critic(agent.actor(states)).mean()"
    assert found(SEVERAL.format(extra=second, flag=""), options) == []


# ---------------------------------------------------------------------- who sets an object up

AGENT = """
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
        self.optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)

    def forward(self, state):
        return self.actor(state)


class Agent:
    names = {{"mlp": Policy{more}}}

    def __init__(self, policy, set_up=True):
        if isinstance(policy, str):
            self.policy_class = self.names[policy]
        else:
            self.policy_class = policy
        if set_up:
            self.set_up()

    def set_up(self):
        self.policy = self.policy_class()

    def train(self, states, wanted, again=False):
        loss = (self.policy(states) - wanted).pow(2).mean()
        self.policy.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        if {again}:
            loss.backward()
        self.policy.optimizer.step()
"""


@pytest.mark.parametrize("more", ["", ", 'other': Policy"])
def test_who_sets_an_agent_up_later_has_the_same_networks(more: str, options: Options) -> None:
    """A class that is named or handed in, and networks that are made at once or later: none of it says
    that networks are other ones than those that can be seen."""
    kept = [("needless-retain-graph", "loss.backward(retain_graph=True)")]
    assert found(AGENT.format(more=more, again="False"), options) == kept
    twice = [("loss-backpropagated-twice", "loss.backward()")]  # For who asks for it.
    assert found(AGENT.format(more=more, again="again"), options) == twice


# ---------------------------------------------------------------------- settings that are executed

EXECUTED = """
import torch
from torch import nn

rounds = 3
warm = False
{override}
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.randn(5, 4, 3):
    optimizer.zero_grad()
    loss = net(batch).mean()
    if warm:
        loss.backward({flag})
        optimizer.step()
    else:
        loss.backward()
        {last}
        optimizer.step()
"""


def test_constants_that_an_executed_file_may_replace(options: Options) -> None:
    override = "exec(open('configurator.py').read())"
    flagged = EXECUTED.format(override=override, flag="retain_graph=True", last="pass")
    assert found(flagged, options) == [("needless-retain-graph", "loss.backward(retain_graph=True)")]
    assert not found(flagged.replace(override, "pass"), options)  # it is never run
    twice = EXECUTED.format(override=override, flag="", last="loss.backward()")
    assert [code for code, _ in found(twice, options)] == ["loss-backpropagated-twice"]


PICTURES = """
import torch
from torch import nn
from torchvision import transforms
from loader import pictures

prepare = transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
{made}
net = nn.Sequential(nn.Conv2d(3, 3, 3), nn.Tanh(), nn.Flatten())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.stack([prepare(picture) for picture in pictures])
for _ in range(100):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()
"""


def test_what_prepares_pictures_has_no_weights(options: Options) -> None:
    assert found(PICTURES.format(made="pass"), options) == [
        ("needless-retain-graph", "loss.backward(retain_graph=True)")
    ]
    # Something unknown may be a network, whose graph every pass goes through.
    assert not found(PICTURES.format(made="prepare = torch.load('prepare.pt')"), options)


SHARED_WEIGHTS = """
import torch
from torch import nn

def tie(source, target):
    target.weight = source.weight
    target.bias = source.bias

first, second = nn.Linear(3, 3), nn.Linear(3, 3)
{shared}
optimizer = torch.optim.SGD(second.parameters(), lr=0.1)
for batch in torch.randn(5, 4, 3):
    optimizer.zero_grad()
    early = first(batch.requires_grad_())
    second(batch).mean().backward()
    optimizer.step()
    early.mean().backward()
"""


@pytest.mark.parametrize(
    ("shared", "raises"),
    [("tie(second, first)", True), ("first.weight = second.weight", True), ("tie(first, first)", False)],
)
def test_a_layer_with_another_ones_weights_is_stepped_with_it(
    shared: str, raises: bool, options: Options
) -> None:
    code = SHARED_WEIGHTS.format(shared=shared)
    assert [name for name, _ in found(code, options)] == (["stale-forward"] if raises else [])
    if raises:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            exec(code, {})
    else:
        exec(code, {})


DEFAULTED = """
import torch

class Runner:
    def __init__(self, model, optimizer, criteria={{}}):
        self.model, self.optimizer, self.criteria = model, optimizer, criteria
        {filled}

    def step(self, x, wanted):
        losses = [criterion(self.model(x), wanted) for criterion in self.criteria.values()]
        total = torch.zeros(1)
        for loss in losses:
            total = total + loss
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize("filled", ["pass", "self.criteria = dict(criteria)"])
def test_a_dict_that_is_empty_by_default_is_filled_by_somebody(filled: str, options: Options) -> None:
    text = dedent(DEFAULTED.format(filled=filled))
    program = analyze(ast.parse(text), text, Path("script.py"))
    events = [e for entry in program.entry_points for run in entry.iter_runs() for e in run.events]
    backwards = [e for e in events if isinstance(e, Backward)]
    assert backwards and all(e.failure is None for e in backwards)


WRAPPED = """
import torch
from torch import nn
from torch.autograd import Variable

net, base = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
value = base(torch.randn(4, 3)).exp()
gain = {gain}
for _ in range(3):
    loss = (net(torch.randn(4, 3)) * gain).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("gain", "raises"),
    [
        ("Variable(value)", False),
        ("Variable(value - 1)", False),
        ("torch.autograd.Variable(value, requires_grad=False)", False),
        ("value", True),
        ("value - 1", True),
    ],
)
def test_a_variable_of_a_tensor_has_no_graph(gain: str, raises: bool, options: Options) -> None:
    code = WRAPPED.format(gain=gain)
    assert [name for name, _ in found(code, options)] == (["graph-used-twice"] if raises else [])
    if raises:
        with pytest.raises(RuntimeError, match="second time"):
            exec(code, {})
    else:
        exec(code, {})


EACH_ONE = """
import torch
from torch import nn
{counted}

net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.randn(3, 4, 3):
    out = net(batch)
    each = out.pow(2).sum(1)
    given = {given}
    optimizer.zero_grad()
    net(batch).mean().backward()
    optimizer.step()
"""
GRADIENT = "torch.autograd.grad(each[i], out, retain_graph=True)[0]"


@pytest.mark.parametrize("given", [f"[{GRADIENT} for i in rows]", f"{{i: {GRADIENT} for i in rows}}"])
@pytest.mark.parametrize(
    ("counted", "useless"),
    [("from elsewhere import rows", False), ("rows = range(4)", False), ("rows = [0]", True)],
)
def test_what_differentiates_for_each_of_unknown_things_does_so_more_than_once(
    given: str, counted: str, useless: bool, options: Options
) -> None:
    code = EACH_ONE.format(given=given, counted=counted)
    assert [name for name, _ in found(code, options)] == (["needless-retain-graph"] if useless else [])
    if "elsewhere" not in counted:
        exec(code, {})
        without = code.replace(", retain_graph=True", "")
        if useless:
            exec(without, {})
        else:
            with pytest.raises(RuntimeError, match="second time"):
                exec(without, {})


HELD_BESIDE = """
import torch
from torch import nn

class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.painter = nn.Linear(3, 3)
        self.critic = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
        self.painter_optimizer = torch.optim.SGD(self.painter.parameters(), lr=0.1)
        self.critic_optimizer = torch.optim.SGD(self.critic.parameters(), lr=0.1)

    def forward(self, x):
        return self.painter(x)

both = Both()
for batch in torch.randn(5, 4, 3):
    picture = both(batch)
    critic_loss = both.critic(picture.detach()).mean() - both.critic(batch).mean()
    painter_loss = -both.critic(picture).mean()
    both.critic_optimizer.zero_grad()
    critic_loss.backward()
    both.critic_optimizer.step()
    both.painter_optimizer.zero_grad()
    painter_loss.backward()
    both.painter_optimizer.step()
"""


def test_what_is_stale_is_the_network_that_was_used(options: Options) -> None:
    parsed = source.parse("script.py", HELD_BESIDE.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    (stale,) = [f for f in driver.findings(parsed, options) if f.code == "stale-forward"]
    # The whole has the critic's weights, too, but its call uses the painter's alone.
    assert "`both.critic(picture)`" in stale.message


# ---------------------------------------------------------------------- what scales a loss

SCALED = """
import torch
from torch import nn
from elsewhere import make_scaler

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler, other = make_scaler(), make_scaler()
for _ in range(3):
    loss = net(torch.randn(4, 3)).tanh().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward(retain_graph=True)
    {second}.backward()
    scaler.step(optimizer)
    scaler.update()
"""


@pytest.mark.parametrize(
    ("second", "twice"),
    [
        ("scaler.scale(loss)", True),
        ("other.scale(loss)", False),
        ("scaler.scale(0.1 * loss)", False),
        ("loss", False),
    ],
)
def test_what_one_scaler_scales_is_one_loss(second: str, twice: bool, options: Options) -> None:
    code = SCALED.format(second=second)
    told = [("loss-backpropagated-twice", "scaler.scale(loss).backward()")] if twice else []
    assert found(code, options) == told


SLICED = """
import torch
from elsewhere import Judge, Painter, batches

painter, judge = Painter(), Judge()
paints = torch.optim.Adam(painter.parameters())
judges = torch.optim.Adam(judge.parameters())
for real in batches:
    said = judge(painter(torch.randn(4, 3)))
    ours = said{part}.log().mean()
    judges.zero_grad()
    (-ours).backward(retain_graph=True)
    judges.step()
    paints.zero_grad()
    ours.backward()
    paints.step()
"""


@pytest.mark.parametrize(
    ("part", "tensor"),
    [
        ("[:, 0]", True),
        ("[:, 1:3]", True),
        ("[..., k]", True),
        ("[:, k]", True),
        ("[k, 'said']", False),
        ("[0]", False),
    ],
)
def test_what_is_asked_for_an_axis_is_a_tensor(part: str, tensor: bool, options: Options) -> None:
    """Lists and mappings take no tuple with a slice; which parameters an output has seen is not known."""
    told = [("stale-forward", "ours.backward()")] if tensor else []
    assert found(SLICED.format(part=part), options) == told


BROKEN = """
import math
import torch
from elsewhere import batches, criterion
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in batches:
    loss = criterion(net(x), y)
    if {test}:
        {body}
    {zero}
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("test", "body"),
    [
        ("torch.isnan(loss)", "loss = 1e-6"),
        ("loss.isnan().any() or torch.isinf(loss)", "loss = 0.0"),
        ("not torch.isfinite(loss).all()", "loss = 0"),
        ("math.isnan(loss.item()) and y is not None", "loss = None"),
    ],
)
def test_training_that_goes_well_does_without_what_is_for_numbers_that_are_none(
    test: str, body: str, options: Options
) -> None:
    """Nor has a number a ``backward``: Python raises where one takes the place of a loss."""
    told = [("missing-zero-grad", "optimizer.step()")]
    assert found(BROKEN.format(test=test, body=body, zero="pass"), options) == told
    assert not found(BROKEN.format(test=test, body=body, zero="optimizer.zero_grad()"), options)


PENALISED = """
import torch
from elsewhere import Painter, batches
from torch import nn
from unseen import Dropped

painter = Painter()
judge = nn.Sequential(nn.Linear(3, 3), Dropped(0.1), nn.Linear(3, 1))
judges = torch.optim.Adam(judge.parameters())
for real in batches:
    mixed = ({mixed}).requires_grad_()
    {slope}
    loss = judge(real).mean() + slope.norm()
    judges.zero_grad()
    loss.backward(retain_graph=True)
    judges.step()
"""


@pytest.mark.parametrize("asked", [True, False])
def test_who_is_not_seen_keeps_no_data_of_a_penalty(asked: bool, options: Options) -> None:
    """Data that somebody differentiates by is made for that; other data may be what a state is made of."""
    said = "judge(mixed).sum()"
    slope = (
        f"(slope,) = torch.autograd.grad({said}, mixed, create_graph=True)" if asked else f"slope = {said}"
    )
    code = PENALISED.format(mixed="0.5 * real + 0.5 * painter(real).detach()", slope=slope)
    assert ("needless-retain-graph" in [name for name, _ in found(code, options)]) is asked


MODES = """
import torch
from torch import nn

net, head = nn.Linear(3, 3), nn.Linear(3, 1)
both = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)

def train(mode, batches):
    for x in batches:
        if {test}:
            head(net(x)).mean().backward()
            both.step()
        else:
            alone = torch.optim.SGD(head.parameters(), lr=0.1)
            alone.zero_grad()
            head(x).mean().backward()
            alone.step()
"""


@pytest.mark.parametrize(
    ("test", "told"), [("mode == 'both'", True), ("mode", True), ("x.mean() > 0", False), ("x.due", False)]
)
def test_another_mode_of_training_clears_nothing_for_this_one(
    test: str, told: bool, options: Options
) -> None:
    """What is another way in some passes only does."""
    codes = [name for name, _ in found(MODES.format(test=test), options)]
    assert ("missing-zero-grad" in codes) is told


POLICY = """
import torch
from torch import nn

class Policy:
    def __init__(self, config):
        self.model, self.learner = nn.Linear(3, 3), nn.Linear(3, 1)
        {optimizer}

    def learn(self, batches):
        for x in batches:
            loss = self.learner(x).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""
OF_THE_MODEL = "self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)"
BY_CHOICE = """if config.adversarial:
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        else:
            self.optimizer = torch.optim.SGD(self.learner.parameters(), lr=0.1)"""


@pytest.mark.parametrize(
    ("optimizer", "told"),
    [(OF_THE_MODEL, True), (BY_CHOICE, False)],
    ids=["always", "chosen by a condition"],
)
def test_a_step_finds_nothing_only_where_no_condition_decides_what_it_moves(
    optimizer: str, told: bool, options: Options
) -> None:
    code = POLICY.format(optimizer=optimizer)
    assert ("step-without-gradients" in [name for name, _ in found(code, options)]) is told
