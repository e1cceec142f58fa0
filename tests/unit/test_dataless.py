"""The rung without data: the same errors at the same lines, and an honest end where values are needed."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from gradfix.core.codemod import Claim, Effect
from gradfix.verify.jobs import Job, Limits
from gradfix.verify.recording.records import Recording
from gradfix.verify.reruns import overwhelmed
from gradfix.verify.verification import verify_rewrite

pytestmark = pytest.mark.usefixtures("servers")

TRAINING = textwrap.dedent("""
    import torch
    from torch import nn

    SIZE = 8
    net = nn.Sequential(nn.Linear(SIZE, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    total, best = 0.0, float("inf")
    for step in range(3):
        optimizer.zero_grad()
        loss = net(torch.randn(4, SIZE)).square().mean()
        loss.backward()
        optimizer.step()
        {body}
""").lstrip()
BODY = TRAINING.count("\n")  # the line of what is put there

LOGS = {
    "remainder": 'print("%d: %.4f" % (step, loss.item()))',
    "format": 'print(f"{loss.item():.4f}", "{:.3f}".format(loss), round(loss.item(), 2))',
    "sum": "total += loss.item(); print(total / 3)",
    "tensor": 'print("%.4f" % loss)',
    "list": "best = [loss.item()]; print(best, loss.tolist())",
}
NEEDS = {
    "condition on a number": "best = loss.item() if loss.item() < best else best",
    "condition on a tensor": "assert loss > 0",
    "length": "print(list(range(int(loss.item()))))",
    "positions": "loss.nonzero()",
    "elements": "loss.detach().numpy()",
    "caught": "try: assert loss > 0\n    except Exception: pass",
    "a number that computes": "net(torch.randn(4, SIZE) * loss.item())",
    "mathematics": "__import__('math').exp(loss.item())",
}
FAULTS = {
    "E1": "loss.backward()",
    "E2": "h = net[0].weight * 1; k = h.exp(); k.add_(1); k.sum().backward()",
    "E3": "loss.detach().backward()",
    "E4": "net[0].weight.add_(1)",
}


def program(body: str) -> str:
    return TRAINING.format(body=body)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, sharing: Any) -> dict[str, Recording]:
    """Every program without data, those with a fault in earnest too."""
    path = Path(tmp_path_factory.mktemp("project")) / "train.py"
    jobs = {
        f"{kind}: {name}": Job(path, program(body), fake=True)
        for kind, bodies in (("log", LOGS), ("needs", NEEDS), ("fault", FAULTS))
        for name, body in bodies.items()
    }
    jobs |= {f"earnest: {name}": Job(path, program(body)) for name, body in FAULTS.items()}
    jobs |= {f"plain: {seed}": Job(path, program("pass"), seed=seed, fake=True) for seed in (0, 1)}
    jobs |= {"noise": Job(path, program("torch.rand(2)"), fake=True)}
    return dict(zip(jobs, sharing.run(jobs.values())))


@pytest.mark.parametrize("name", LOGS)
def test_numbers_may_be_printed(name: str, runs: dict[str, Recording]) -> None:
    found = runs[f"log: {name}"]
    assert (found.ending, found.detail) == ("finished", "")
    assert len(found.steps) == 3


@pytest.mark.parametrize("name", NEEDS)
def test_where_values_decide_the_run_ends(name: str, runs: dict[str, Recording]) -> None:
    found = runs[f"needs: {name}"]
    assert found.ending == "values", (found.detail, found.output)
    assert found.detail
    assert found.crash is None
    assert len(found.steps) == 1


@pytest.mark.parametrize("name", FAULTS)
def test_errors_have_the_same_kind_and_line(name: str, runs: dict[str, Recording]) -> None:
    earnest, fake = runs[f"earnest: {name}"], runs[f"fault: {name}"]
    assert earnest.crash is not None and fake.crash is not None
    assert (fake.crash.kind, fake.crash.place) == (earnest.crash.kind, earnest.crash.place)
    assert fake.crash.kind == name


def test_hashes_without_data(runs: dict[str, Recording]) -> None:
    plain, seeded, noise = runs["plain: 0"], runs["plain: 1"], runs["noise"]
    first, other = ([p.gradient_hash for p in r.steps[0].parameters] for r in (plain, seeded))
    assert None not in first
    assert not {*first} & {*other}
    assert first == [p.gradient_hash for p in noise.steps[0].parameters]
    # The draw between the steps moves the generator.
    second, moved = ([p.gradient_hash for p in r.steps[1].parameters] for r in (plain, noise))
    assert not {*second} & {*moved}
    assert not any(p.value.numeric for step in plain.steps for p in step.parameters)


RETAINED = program("pass").replace("loss.backward()", "loss.backward(retain_graph=True)")
PRESERVES = Claim(None, None, "all", ())


def test_what_is_too_large_in_earnest_is_proved_without_data(tmp_path: Path) -> None:
    large = RETAINED.replace("SIZE = 8", "SIZE = 100_000_000")
    after = large.replace("retain_graph=True", "")
    evidence = verify_rewrite(
        tmp_path / "train.py",
        large,
        after,
        PRESERVES,
        Effect.PRESERVES,
        python=sys.executable,
        limits=Limits(memory=1 << 30),
    )
    assert evidence.outcome == "proved", evidence.lines()
    assert "without data" in evidence.reason
    (unchanged,) = [check for check in evidence.checks if check.name == "unchanged"]
    assert "18 gradients proved by hash" in unchanged.detail
    assert [run.version for run in evidence.runs] == ["before", "before, without data", "after, without data"]


TWICE = textwrap.dedent("""
    import torch
    from torch import nn

    body, head, other = nn.Linear(8, 8), nn.Linear(8, 1), nn.Linear(8, 1)
    first = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.01)
    second = torch.optim.Adam(other.parameters(), lr=0.01)
    for step in range(3):
        hidden = body(torch.randn(4, 8)).tanh()
        first.zero_grad()
        head(hidden).square().mean().backward()
        first.step()
        second.zero_grad()
        other(hidden).square().mean().backward()
        print(torch.ones(100_000_000, 100).sum().item())
        second.step()
""").lstrip()
"""Raises E1 before it comes to what takes too much memory, and to its second step."""


@pytest.mark.parametrize(
    ("repair", "outcome"),
    [
        (("other(hidden)", "other(hidden.detach())"), "proved"),
        # The first optimizer's network gets no gradient any more.
        (("head(hidden)", "head(hidden.detach())"), "refuted"),
        # The second one consumes another gradient, perhaps: numbers could tell.
        (("other(hidden).square()", "other(hidden.detach()).abs()"), "not run"),
    ],
)
def test_what_only_the_repaired_script_comes_to_is_too_large_in_earnest(
    repair: tuple[str, str], outcome: str, tmp_path: Path
) -> None:
    lines = TWICE.splitlines()
    optimizers = tuple(number for number, line in enumerate(lines, 1) if "Adam(" in line)
    (raises,) = (number for number, line in enumerate(lines, 1) if "other(hidden)" in line)
    evidence = verify_rewrite(
        tmp_path / "train.py",
        TWICE,
        TWICE.replace(*repair),
        Claim("E1", raises, optimizers),
        Effect.REPAIRS,
        python=sys.executable,
        limits=Limits(memory=1 << 30),
    )
    assert evidence.outcome == outcome, evidence.lines()
    assert evidence.runs[0].version == "before"
    assert all(run.version.endswith("without data") for run in evidence.runs[1:])


def test_what_is_too_large_and_changed_is_not_proved(tmp_path: Path) -> None:
    large = RETAINED.replace("SIZE = 8", "SIZE = 100_000_000")
    after = large.replace("square()", "abs()")
    limits = Limits(memory=1 << 30)
    evidence = verify_rewrite(
        tmp_path / "train.py",
        large,
        after,
        PRESERVES,
        Effect.PRESERVES,
        python=sys.executable,
        limits=limits,
    )
    assert evidence.outcome == "not run", evidence.lines()
    assert "there are no numbers" in evidence.reason


def test_only_limits_overwhelm(runs: dict[str, Recording]) -> None:
    assert not any(overwhelmed(found) for found in runs.values())
