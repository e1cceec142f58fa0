"""What holds on one way through a program, and is not said, or done, of all of them. Nothing is run."""

from __future__ import annotations

from textwrap import indent

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

HEAD = """\
import random, sys
import torch
from torch import nn
from elsewhere import helper, Policy

net, other = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
opt, opt_other = torch.optim.Adam(net.parameters()), torch.optim.Adam(other.parameters())
mode = sys.argv[1]
"""


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def parsed(program: str) -> Source:
    read = source.parse("train.py", (HEAD + program).encode(), 1 << 20)
    assert isinstance(read, Source)
    return read


def codes(program: str, options: Options) -> list[str]:
    """The mistakes that are reported."""
    return [finding.code for finding in driver.findings(parsed(program), options)]


def written(program: str, options: Options) -> list[str]:
    """The lines that the fixes of a program add, and those that they change."""
    before = parsed(program)
    lines = driver.repair(before, options).after.decode().splitlines()
    old = before.text.splitlines()
    return [line.strip() for line in lines if line not in old]


# ---------------------------------------------------------------- one form for every branch

PREDICTED = """
for _ in range(9):
    real, noise = torch.randn(3, 4), torch.randn(3, 4)
    fake = net(torch.randn(3, 4))
    {forms}
    opt_other.zero_grad()
    (said.mean() - other(real).mean()).backward(retain_graph=True)
    opt_other.step()
    opt.zero_grad()
    loss = -said.mean()
    loss.backward()
    opt.step()
"""
IN_TWO_FORMS = {
    "two branches": """if mode:
        said = other(fake + noise)
    else:
        said = other(fake)""",
    "one branch binds it anew": """said = other(fake)
    if mode:
        said = other(fake.flip(1))""",
    "cases": """match mode:
        case "noisy":
            said = other(fake + noise)
        case _:
            said = other(fake)""",
    "an input that one branch has": """if mode:
        mixed = fake.flip(1)
        said = other(mixed)
    else:
        said = other(fake)""",
}


@pytest.mark.parametrize("forms", IN_TWO_FORMS.values(), ids=list(IN_TWO_FORMS))
def test_no_branch_gets_the_form_of_another(forms: str, options: Options) -> None:
    program = PREDICTED.format(forms=forms)
    assert codes(program, options) == ["stale-forward"]
    # Each loss is differentiated with the weights that it was computed with, whatever it was computed of.
    assert written(program, options) == [
        'loss.backward(inputs=[p for group in opt.param_groups for p in group["params"]])'
    ]


def test_a_form_that_all_branches_have_is_repeated(options: Options) -> None:
    forms = "if mode:\n        fake = net(noise)\n    said = other(fake)"
    assert "said = other(fake)" in PREDICTED.format(forms=forms)
    lines = written(PREDICTED.format(forms=forms), options)
    assert "said = other(fake.detach())" in lines
    assert not any("inputs" in line for line in lines)


# ---------------------------------------------------------------- names, attributes and keys that are there

CARRIED = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        {attribute}
    def forward(self, x):
        if hasattr(self, "state"):
            x = x + self.state
        self.state = torch.tanh(self.layer(x))
        return self.state
cell, kept = Cell(), {kept}
opt_cell = torch.optim.Adam(cell.parameters())
for number in range(9):
    opt.zero_grad()
    opt_cell.zero_grad()
    loss = 0
    for k in range(5):
        x = torch.randn(3, 4)
        {step}
        loss = loss + x.pow(2).mean()
    loss.backward()
    opt.step()
    opt_cell.step()
"""
FIRST = {
    "an exception": (
        "try:\n            x = x + h\n        except NameError:\n            pass\n        h = x = net(x)",
        "h = h.detach()",
    ),
    "the number of the pass": (
        "if number + k:\n            x = x + h\n        h = x = net(x)",
        "h = h.detach()",
    ),
    "an attribute": ("x = cell(x)", "cell.state = cell.state.detach()"),
    "a key": (
        "if 'h' in kept:\n            x = x + kept['h']\n        kept['h'] = x = net(x)",
        "kept['h'] = kept['h'].detach()",
    ),
}


@pytest.mark.parametrize(("step", "detached"), FIRST.values(), ids=list(FIRST))
def test_a_state_is_detached_behind_what_binds_it_first(step: str, detached: str, options: Options) -> None:
    program = CARRIED.format(attribute="", kept="{}", step=step)
    assert "carried-hidden-state" in codes(program, options)
    assert written(program, options) == [detached]
    after = driver.repair(parsed(program), options).after.decode().splitlines()
    assert after[-1].strip() == detached  # at the end of the pass


def test_a_variable_that_may_be_local_is_not_read_before_it_is(options: Options) -> None:
    step = "if 'h' in locals():\n            x = x + h\n        h = x = net(x)"
    head, loop = CARRIED.format(attribute="", kept="{}", step=step).split("for number", 1)
    program = f"{head}def train():\n{indent('for number' + loop, '    ')}train()\n"
    after = driver.repair(parsed(program), options).after.decode().splitlines()
    assert after[-2:] == ["        h = h.detach()", "train()"]


def test_a_state_that_is_there_is_detached_before_it_is_used(options: Options) -> None:
    step = "x = cell(x)"
    program = CARRIED.format(attribute="self.state = torch.zeros(3, 4)", kept="{}", step=step)
    after = driver.repair(parsed(program), options).after.decode().splitlines()
    at = [line.strip() for line in after].index("cell.state = cell.state.detach()")
    assert after[at + 1].strip() == "for k in range(5):"


# ---------------------------------------------------------------- what is no tensor in a branch

LOGGED = """
history, total = [], 0.0
for _ in range(9):
    opt.zero_grad()
    loss = net(torch.randn(3, 4)).mean()
    loss.backward()
    opt.step()
    score = {score}
    {log}
"""
NO_TENSOR = (
    "if type(score) == float:\n        history.append(score)",
    "if type(score) in (int, float):\n        history.append(score)",
    "if score.__class__ is float:\n        history.append(score)",
    "if isinstance(score, float):\n        history.append(score)",
    "if not torch.is_tensor(score):\n        history.append(score)",
    "if not hasattr(score, 'detach'):\n        history.append(score)",
    "if mode and not isinstance(score, torch.Tensor):\n        history.append(score)",
    "total += score if isinstance(score, float) else score.item()",
    "match score:\n        case float():\n            history.append(score)",
)


@pytest.mark.parametrize("log", NO_TENSOR)
@pytest.mark.parametrize("score", ["loss", "helper(loss)"])
def test_what_a_test_of_its_type_says_is_no_tensor_keeps_no_graph(
    log: str, score: str, options: Options
) -> None:
    assert codes(LOGGED.format(score=score, log=log), options) == []


@pytest.mark.parametrize(
    "log",
    [
        "history.append(score)",
        "if type(score) == torch.Tensor:\n        history.append(score)",
        "if isinstance(score, torch.Tensor):\n        history.append(score)",
        "if not isinstance(score, float):\n        history.append(score)",
    ],
)
def test_what_is_a_tensor_there_is_told(log: str, options: Options) -> None:
    assert codes(LOGGED.format(score="loss", log=log), options) == ["graph-kept-for-bookkeeping"]


# ---------------------------------------------------------------- what comes back from a memory

REPLAYED = """
memory = []
for _ in range(100):
    state = torch.randn(1, 4)
    memory.append((state, {action}))
    if len(memory) > 8:
        {draw}
        opt_other.zero_grad()
        loss = other(torch.cat(states) + torch.cat(actions)).pow(2).mean()
        loss.backward(retain_graph=True)
        opt_other.step()
"""
DRAWN = (
    "states, actions = zip(*random.sample(memory, 8))",
    "batch = random.sample(memory, 8); states, actions = [b[0] for b in batch], [b[1] for b in batch]",
    "row = random.choice(memory); states, actions = [row[0]], [row[1]]",
    "rows = [memory[helper()] for _ in range(8)]; states, actions = zip(*rows)",
    "random.shuffle(memory); states, actions = [b[0] for b in memory[:8]], [b[1] for b in memory[:8]]",
)


@pytest.mark.parametrize("draw", DRAWN)
def test_what_is_drawn_from_a_memory_may_be_walked_again(draw: str, options: Options) -> None:
    assert "needless-retain-graph" not in codes(REPLAYED.format(action="net(state)", draw=draw), options)


def test_a_memory_without_graphs_needs_none_kept(options: Options) -> None:
    for draw in DRAWN[:3]:
        program = REPLAYED.format(action="net(state).detach()", draw=draw)
        assert codes(program, options) == ["needless-retain-graph"]


# ---------------------------------------------------------------- optimizers that a loop steps

STEPPED = """
for number in range(9):
    z, x = torch.randn(3, 4), torch.randn(3, 4)
    loss = -other(net(z)).mean()
    loss.backward()
    judged = other(net(z).detach()).mean() - other(x).mean()
    judged.backward()
    {steps}
"""
EACH = "for o in (opt, opt_other):\n        o.step()\n        o.zero_grad()"


def test_an_optimizer_that_a_loop_steps_is_named_as_it_was_made(options: Options) -> None:
    program = STEPPED.format(steps=EACH)
    (finding,) = driver.findings(parsed(program), options)
    assert finding.message.startswith(
        "`opt_other.step()` also uses gradients from `loss`, which is the loss of `opt`"
    )
    assert written(program, options) == ["opt_other.zero_grad()"]


def test_what_several_passes_add_up_is_not_cleared_in_each(options: Options) -> None:
    waits = "if number % 3 == 2:\n        " + EACH.replace("\n", "\n    ")
    program = STEPPED.format(steps=waits)
    assert codes(program, options) == ["leaking-loss"]
    assert written(program, options) == ["loss.backward(inputs=list(net.parameters()))"]


def test_all_optimizers_that_a_loop_steps_are_cleared_there(options: Options) -> None:
    program = """
for _ in range(9):
    other(net(torch.randn(3, 4))).mean().backward()
    for o in (opt, opt_other):
        o.step()
"""
    assert codes(program, options) == ["missing-zero-grad"]
    assert written(program, options) == ["o.zero_grad()"]


# ---------------------------------------------------------------- what may reach an optimizer

UNKNOWN_PLACE = """
for _ in range(9):
    parts = {parts}
    {store}
    loss = -other({read}).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LIST, DICT = "[torch.randn(3, 4), torch.randn(3, 4)]", "{'a': torch.randn(3, 4)}"
STORES = (
    (LIST, "parts[random.randrange(2)] = {made}", "sum(parts)"),
    (LIST, "parts[helper():] = [{made}]", "parts[0] + parts[1]"),
    (LIST, "parts.insert(random.randrange(2), {made})", "parts[0] + parts[1]"),
    (DICT, "parts[helper()] = {made}", "parts['a']"),
    ("{}", "parts[helper()] = {made}", "torch.cat(list(parts.values()))"),
)


@pytest.mark.parametrize(("parts", "store", "read"), STORES)
def test_what_is_stored_nobody_knows_where_may_reach_the_loss(
    parts: str, store: str, read: str, options: Options
) -> None:
    made = "net(torch.randn(3, 4))"
    program = UNKNOWN_PLACE.format(parts=parts, store=store.format(made=made), read=read)
    assert codes(program, options) == []
    cut = UNKNOWN_PLACE.format(parts=parts, store=store.format(made=f"{made}.detach()"), read=read)
    assert codes(cut, options) == ["step-without-gradients"]


SAMPLED = """
policy = Policy(4)
opt_policy = torch.optim.Adam(policy.parameters())
for state in torch.randn(9, 3, 4):
    {draw}
    loss = -other(state + action).mean()
    opt_policy.zero_grad()
    loss.backward()
    opt_policy.step()
"""


@pytest.mark.parametrize(
    "draw",
    ["action = policy.sample(state)", "action, _ = policy.sample(state)", "action = policy(state).sample()"],
)
def test_a_method_of_something_unseen_is_not_told_by_its_name(draw: str, options: Options) -> None:
    assert codes(SAMPLED.format(draw=draw), options) == []


@pytest.mark.parametrize("kind", ["Normal(net(state), 1.0)", "OneHotCategorical(logits=net(state))"])
def test_what_a_distribution_of_torch_draws_has_no_graph(kind: str, options: Options) -> None:
    program = SAMPLED.format(draw=f"action = torch.distributions.{kind}.sample()")
    program = program.replace("opt_policy", "opt").replace("opt = torch.optim.Adam(policy.parameters())", "")
    assert codes(program, options) == ["step-without-gradients"]


# ---------------------------------------------------------------- who trains again in a later pass

ALTERNATING = """
net.load_state_dict(other[0].state_dict())
steps = 0
while steps < 1000:
    done = False
    while not done:
        done = helper(steps)
        steps += 1
        x = torch.randn(3, 4)
        opt.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        opt.step()
        if steps % 2 == 0:
            opt_other.zero_grad()
            (net(x) * other(x)).mean().backward()
            opt_other.step()
"""


def test_who_steps_in_the_loop_of_a_backward_steps_again(options: Options) -> None:
    assert codes(ALTERNATING, options) == []


RECORDED = """
{decorator}
def perturbed(x):
    shift = torch.zeros_like(x).requires_grad_(True)
    loss = net(x + shift).pow(2).mean()
    loss.backward()
    return x + shift.grad.sign()

with torch.no_grad():
    print(net(perturbed(torch.randn(3, 4))).mean())
"""


@pytest.mark.parametrize(
    "decorator", ["enable_grad()", "enable_grad", "set_grad_enabled(True)", "inference_mode(False)"]
)
def test_a_function_that_is_decorated_to_record_graphs_does(decorator: str, options: Options) -> None:
    assert codes(RECORDED.format(decorator=f"@torch.{decorator}"), options) == []
    assert codes(RECORDED.format(decorator=""), options) == ["loss-without-graph"]
