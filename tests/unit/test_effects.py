"""What surrounds gradients: memory for backward, random draws, buffers; and that looking disturbs nothing."""

from __future__ import annotations

import gc
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import CASES, Case
from torch import nn

from gradfix.core.codemod import Claim, Effect
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source
from gradfix.runtime.probe.effects import SideEffects
from gradfix.verify.evidence import Evidence, binary_size
from gradfix.verify.jobs import Job
from gradfix.verify.recording.records import Recording
from gradfix.verify.runner import Runner
from gradfix.verify.trial import Rewrite
from gradfix.verify.verification import verify_rewrites

pytestmark = pytest.mark.usefixtures("servers")

FLOAT = 4  # bytes


@pytest.fixture(scope="module")
def runner(sharing: Any) -> Any:
    return sharing


def run(runner: Any, text: str, **how: bool) -> Recording:
    (found,) = runner.run([Job(Path("train.py"), textwrap.dedent(text), **how)])
    assert found.ending in ("finished", "error"), found.detail
    return found


def effects() -> SideEffects:
    return SideEffects()


# -- saved for backward -----------------------------------------------------------------------


def test_memory_that_is_shared_counts_once() -> None:
    x = torch.randn(6, 5, requires_grad=True)
    y = x.exp()  # saves its result
    assert effects().saved([y]) == 30 * FLOAT
    assert effects().saved([y.view(-1) + y.t().reshape(-1)]) == 30 * FLOAT
    assert effects().saved([(y * y).sum()]) == 30 * FLOAT
    assert effects().saved([y.sum(), (y.sin() + 1).exp()]) == 2 * 30 * FLOAT


def test_leaves_and_what_networks_hold_do_not_count() -> None:
    net, frozen = (
        nn.Linear(4, 3),
        nn.Sequential(nn.Linear(3, 7), nn.BatchNorm1d(7)).eval().requires_grad_(False),
    )
    x = torch.randn(2, 4)
    found = effects()
    found.look(net.parameters(), dict)
    # The first layer saves its input; the frozen ones their weights, and the input of the normalisation.
    assert found.saved([frozen(net(x)).sum()]) == (2 * 4 + 2 * 7) * FLOAT
    w = torch.randn(4, requires_grad=True)
    assert found.saved([(w * w).sum()]) == 0


def test_what_a_function_of_the_script_saves_counts() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x * 1, None, x * 2)  # type: ignore[arg-type]
            return x * 2

    x = torch.randn(5, requires_grad=True)
    assert effects().saved([Doubled.apply(x)]) == 2 * 5 * FLOAT  # type: ignore[no-untyped-call]


def test_what_is_freed_is_not_held() -> None:
    x = torch.randn(5, requires_grad=True)
    y = x.exp()
    y.sum().backward(retain_graph=True)
    assert effects().saved([y]) == 5 * FLOAT
    y.sum().backward()
    assert effects().saved([y]) == 0


def test_looking_keeps_nothing_alive() -> None:
    def tensors() -> int:
        return sum(issubclass(type(one), torch.Tensor) for one in gc.get_objects())

    x = torch.randn(5, requires_grad=True)
    y = x.exp().sin().exp()
    found = effects()
    before = tensors()
    assert found.saved([y]) == 2 * 5 * FLOAT  # the sine saves what the first exponential has saved
    assert tensors() == before


def test_graphs_have_a_limit() -> None:
    x = torch.randn(2, requires_grad=True)
    for _ in range(20_001):
        x = x + 1
    assert effects().saved([x]) is None


CHECKPOINTED = """
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def forward(x):
        print("forward")
        return net(x)

    for step in range(2):
        loss = checkpoint(forward, torch.randn(2, 3), use_reentrant=False).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_hooks_of_the_script_are_left_alone(runner: Runner) -> None:
    found = run(runner, CHECKPOINTED)
    assert found.output.count("forward") == 4, "each pass computes forward twice, and not once more"
    assert [call.saved for call in found.backwards] == [None, None]


DISTURBED = {
    "a step": "loss = net(x).sum(); loss.backward(retain_graph=True); optimizer.step(); loss.backward()",
    "in place": "y = net(x).exp(); y += 1; y.sum().backward()",
    "in place in a view": "y = net(x).exp(); y[0] = 1; y.sum().backward()",
    "freed": "loss = net(x).sum(); loss.backward(); loss.backward()",
    "nothing": "net(x).sum().detach().backward()",
}


@pytest.mark.parametrize("name", DISTURBED)
def test_errors_are_those_without_a_recorder(name: str, runner: Runner) -> None:
    text = (
        "import torch\nfrom torch import nn\ntorch.manual_seed(0)\nx = torch.randn(2, 3)\n"
        "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))\n"
        f"optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n{DISTURBED[name]}\n"
    )
    with pytest.raises(RuntimeError) as raised:
        exec(compile(text, "plain", "exec"), {})
    found = run(runner, text)
    assert found.crash is not None
    assert found.crash.message == str(raised.value)


def test_a_backward_through_a_backward(runner: Runner) -> None:
    text = """
        import torch
        from torch import nn

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.randn(5, 3, requires_grad=True)
        net(x).sum().backward(create_graph=True)
        penalty = x.grad.square().sum()
        penalty.backward()
        print([round(p.grad.double().sum().item(), 9) for p in net.parameters()])
    """
    printed: list[str] = []
    namespace = {"print": lambda line: printed.append(str(line))}
    exec(compile(textwrap.dedent(text), "plain", "exec"), namespace)
    found = run(runner, text)
    assert found.output.splitlines()[0] == printed[0]
    first, second = found.backwards
    assert first.saved and second.saved and second.saved > first.saved


@pytest.mark.parametrize("fake", [False, True], ids=["with data", "without data"])
def test_a_run_without_data_knows_the_same_bytes(fake: bool, runner: Runner) -> None:
    found = run(
        runner,
        """
        import torch
        from torch import nn

        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(5, 3)).sum().backward(retain_graph=True)
        """,
        fake=fake,
    )
    assert [(call.saved, call.retain) for call in found.backwards] == [((5 * 3 + 5 * 4) * FLOAT, True)]


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3072.0 GiB")],
)
def test_sizes_in_words(count: int, words: str) -> None:
    assert binary_size(count) == words


# -- random draws -----------------------------------------------------------------------------

DRAWING = """
    import random
    import numpy
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.ones(2, 3)
    for step in range(2):
        optimizer.zero_grad()
        {draw}
        net(x).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("draw", "generators"),
    [
        ("pass", ()),
        ("torch.rand(1)", ("torch",)),
        ("random.random()", ("python",)),
        ("random.gauss(0, 1)", ("python",)),
        ("numpy.random.rand()", ("numpy",)),
        ("torch.rand(1, generator=torch.Generator())", ()),
        ("nn.functional.dropout(x)", ("torch",)),
        ("nn.functional.dropout(x, training=False)", ()),
    ],
)
def test_who_draws(draw: str, generators: tuple[str, ...], runner: Runner) -> None:
    pytest.importorskip("numpy")
    first, second = run(runner, DRAWING.format(draw=draw)).steps
    assert first.random.apart(second.random) == generators


def test_looking_draws_nothing() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    assert effects().draws() == effects().draws()
    assert torch.equal(torch.rand(3), expected)


# -- buffers ----------------------------------------------------------------------------------


def test_buffers_are_found_whatever_holds_the_network(runner: Runner) -> None:
    found = run(
        runner,
        """
        import copy
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, affine=False))
                self.register_buffer("mean", torch.zeros(()))
                self.register_buffer("absent", None)

            def forward(self, x):
                y = self.body(x)
                self.mean = 0.9 * self.mean + 0.1 * y.detach().square().mean()
                return y

        class Trainer:
            def __init__(self):
                self.net = copy.deepcopy(Net())
                self.other = nn.BatchNorm1d(3)
                self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

            def train(self):
                for step in range(2):
                    self.optimizer.zero_grad()
                    self.net(torch.randn(5, 3)).pow(3).sum().backward()
                    self.optimizer.step()

        Trainer().train()
        """,
    )
    first, second = (step.buffers for step in found.steps)
    inner = ["self.net.body.1." + name for name in ("running_mean", "running_var", "num_batches_tracked")]
    assert sorted(first) == sorted(["self.net.mean", *inner])
    assert [name for name in first if first[name].digest == second[name].digest] == []
    counts = [buffers["self.net.body.1.num_batches_tracked"].exact for buffers in (first, second)]
    assert [list(count or ()) for count in counts] == [[1.0], [2.0]]


def test_networks_that_answer_for_themselves_are_not_asked(runner: Runner) -> None:
    found = run(
        runner,
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.norm = nn.Linear(3, 2), nn.BatchNorm1d(2)
                self.never = nn.Sequential(nn.LazyLinear(2), nn.LazyBatchNorm1d())

            def parameters(self, recurse=True):
                return [[*self.layer.parameters()], [*self.norm.parameters()]]

            buffers = named_buffers = None

        net = Net()
        optimizer = torch.optim.SGD(net.layer.parameters(), lr=0.1)
        net.norm(net.layer(torch.randn(4, 3))).pow(3).sum().backward()
        optimizer.step()
        """,
    )
    assert sorted(found.steps[0].buffers) == [
        "net.never.1.num_batches_tracked",  # its other buffers have not been made
        "net.norm.num_batches_tracked",
        "net.norm.running_mean",
        "net.norm.running_var",
    ]


# -- what fixes promise -----------------------------------------------------------------------

SHARED = textwrap.dedent("""
    import torch
    from torch import nn

    torch.manual_seed(0)
    G = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    D = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    optimG = torch.optim.SGD(G.parameters(), lr=0.1)
    optimD = torch.optim.SGD(D.parameters(), lr=0.1)
    for step in range(3):
        fake = G(torch.randn(6, 4))
        optimD.zero_grad()
        lossD = D(fake.detach()).square().mean()
        lossD.backward(retain_graph=True)
        optimD.step()
        optimG.zero_grad()
        lossG = (D(fake) - 1).square().mean()
        lossG.backward()
        optimG.step()
""").lstrip()
KEPT = "(retain_graph=True)"


def verified(*pairs: tuple[str, str, Claim, Effect]) -> list[Evidence]:
    rewrites = [Rewrite(Path("train.py"), *pair) for pair in pairs]
    return verify_rewrites(rewrites, python=sys.executable, seeds=(0,))


def test_a_fix_that_preserves_computes_no_more_and_no_less() -> None:
    plain = SHARED.replace(KEPT, "()")
    looked = plain.replace("    optimD.zero_grad()\n", "    optimD.zero_grad()\n    D(fake)\n")
    drawn = plain.replace("    optimD.zero_grad()\n", "    optimD.zero_grad()\n    torch.rand(1)\n")
    preserving = [
        (SHARED, after, Claim(same_forwards=promised), Effect.PRESERVES)
        for after, promised in ((plain, True), (looked, True), (looked, False), (drawn, True))
    ]
    dropped, more, declared, other = verified(*preserving)
    assert dropped.outcome == "proved", dropped.lines()
    assert dropped.memory() is not None and re.fullmatch(
        r"the graph of lossD held (\d+ bytes) and was kept, now \1, freed", dropped.memory() or ""
    )
    assert more.outcome == "refuted", more.lines()
    assert "buffers differ from step 1 of optimD on (D.1.running_mean" in more.reason
    # Normalisation in training does not go by running statistics: the gradients are the same.
    assert declared.outcome == "proved", declared.lines()
    assert declared.effects is not None
    assert declared.effects.buffers[0] == "D.1.running_mean"
    assert (other.outcome, other.effects and other.effects.generators) == ("refuted", ("torch",))


def test_generators_that_are_seeded_by_the_clock_are_not_compared() -> None:
    seeded = SHARED.replace("torch.manual_seed(0)\n", "import random, os\nrandom.seed(os.urandom(8))\n")
    plain, drawn = seeded.replace(KEPT, "()"), seeded.replace(KEPT, "(); torch.rand(1)")
    pairs = [(seeded, after, Claim(), Effect.PRESERVES) for after in (plain, drawn)]
    evidence, other = verified(*pairs)
    assert evidence.outcome == "proved", evidence.lines()
    (check,) = [check for check in evidence.checks if check.name == "random"]
    assert (check.verdict, "two runs of the original" in check.detail) == ("not checked", True)
    # Then nothing is said of torch's own generator either, but its draws change the gradients.
    assert other.outcome == "refuted", other.lines()


NOISE = re.compile(r"nn\.Linear\(([^()]+), ([^(),]+)\), (?=nn\.\w+\([\d.]*\))")
"""A layer in a list of layers, before an activation."""


def noisy(case: Case) -> str:
    """A fixture with dropout and batch normalisation in its networks."""
    layers = r"nn.Linear(\1, \2), nn.BatchNorm1d(\2), nn.Dropout(0.1), "
    return "\n".join(
        row if re.search(r"^ *\w+, \w+.* = ", row) else NOISE.sub(layers, row)
        for row in case.path.read_bytes().decode().splitlines()
    )


def noisy_repairs(cases: list[Case]) -> list[tuple[Case, Rewrite]]:
    options = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(options, Options)
    found = []
    for case in cases:
        read = source.parse(str(case.path), noisy(case).encode(), 1 << 24)
        assert isinstance(read, Source)
        for attempt in driver.repair(read, options).applied:
            fix = attempt.fix
            found.append((case, Rewrite(case.path, attempt.before, attempt.after, fix.claim, fix.effect)))
    return found


NOISY = [case for case in CASES if case.fixed is not None and "nn.Dropout(0.1)" in noisy(case)]
ONE_EACH = list({case.fault: case for case in NOISY if "torch.optim" in noisy(case)}.values())


@pytest.mark.parametrize("cases", [ONE_EACH, pytest.param(NOISY, marks=pytest.mark.long)], ids=["few", "all"])
def test_each_codemod_declares_what_it_does_to_draws_and_statistics(cases: list[Case]) -> None:
    assert len({case.fault for case in cases}) > 4
    repairs = noisy_repairs(cases)
    evidence = verify_rewrites([rewrite for _, rewrite in repairs], seeds=(0,))
    refuted = {
        case.name: one.lines() for (case, _), one in zip(repairs, evidence) if one.outcome == "refuted"
    }
    assert refuted == {}
    looked = [one for one in evidence if any(check.name == "buffers" for check in one.checks)]
    assert len(looked) > len(repairs) // 2
    parted = {
        case.fault for (case, _), one in zip(repairs, evidence) if one.effects and one.effects.buffers_from
    }
    # A checkpoint that leads to gradients runs what is in it once more.
    again = {"stale-forward", "step-before-backward", "reentrant-checkpoint"}
    assert parted <= {*again, "left-in-eval-mode"}
    assert "stale-forward" in parted
