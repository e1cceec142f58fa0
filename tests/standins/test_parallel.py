"""Training over several devices and what a launcher says: the first process, with the network whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gradfix.codemod import Claim
from gradfix.verify import runner
from gradfix.verify.recording import Recording
from gradfix.verify.runner import Job, Limits, Runner
from tests.standins.programs import program

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not hasattr(torch, "accelerator"),
    reason="this torch has no distributed training, or no name for accelerators of any kind",
)
LIMITS = Limits(steps=3, backwards=10, seconds=20.0)


def run(running: Runner, folder: Path, source: str) -> Recording:
    (found,) = running.run([Job(folder / "script.py", source, limits=LIMITS, manner="full")])
    return found


TENSOR_PARALLEL = program(
    """
    import os, sys
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    def enough(count):
        return torch.accelerator.is_available() and torch.accelerator.device_count() >= count
    if not enough(4):
        print("too few")
        sys.exit()
    size = int(os.environ["WORLD_SIZE"])
    assert size % 2 == 0 and int(os.environ["RANK"]) == 0
    kind = torch.accelerator.current_accelerator().type
    mesh = init_device_mesh(kind, (size // 2, 2), mesh_dim_names=("data", "tensor"))
    assert mesh["tensor"].size() == 2 and mesh.get_rank() == mesh["data"].get_local_rank() == 0
    assert mesh.shape == (size // 2, 2) and dist.get_world_size() == size
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(kind)
    net = parallelize_module(net, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for turn in range(3):
        torch.manual_seed(turn)
        optimizer.zero_grad()
        net(torch.rand(4, 6, device=kind)).sum().backward()
        optimizer.step()
    """,
    "",
)


def gradients(found: Recording) -> list[tuple[str, ...]]:
    return [
        tuple(state.gradient.digest for state in step.parameters if state.gradient is not None)
        for step in found.steps
    ]


def test_a_network_in_parts_trains_as_the_whole_one(running: Runner, tmp_path: Path) -> None:
    found = run(running, tmp_path, TENSOR_PARALLEL)
    assert len(found.steps) == 3, (found.uncaught, found.output)
    told = dict(one.split(": ", 1) for one in found.standins)
    assert "not checked" in told["a network in parts"]
    assert told["torch.distributed"].startswith("the first of 8 processes")
    plain = program(
        """
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for turn in range(3):
            torch.manual_seed(turn)
            optimizer.zero_grad()
            net(torch.rand(4, 6)).sum().backward()
            optimizer.step()
        """,
        "",
    )
    assert gradients(found) == gradients(run(running, tmp_path, plain)) != []


def test_what_is_not_checked_stands_in_the_evidence(tmp_path: Path) -> None:
    before = TENSOR_PARALLEL.replace(".backward()", ".backward(retain_graph=True)")
    evidence = runner.verify_rewrite(
        tmp_path / "script.py",
        before,
        TENSOR_PARALLEL,
        Claim(),
        "preserves",
        python=sys.executable,
        limits=LIMITS,
    )
    assert evidence.outcome == "proved", evidence.lines()
    assert any("which device holds what" in line for line in evidence.lines())


@pytest.mark.long
def test_a_change_of_the_gradients_is_seen_in_the_whole_network(tmp_path: Path) -> None:
    after = TENSOR_PARALLEL.replace(".sum().backward()", ".mean().backward()")
    evidence = runner.verify_rewrite(
        tmp_path / "script.py",
        TENSOR_PARALLEL,
        after,
        Claim(),
        "preserves",
        python=sys.executable,
        limits=LIMITS,
    )
    assert evidence.outcome == "refuted", evidence.lines()


def test_a_script_that_does_without_accelerators_is_told_of_none(running: Runner, tmp_path: Path) -> None:
    source = program("""
        import os
        count = torch.cuda.device_count()
        found = torch.accelerator.current_accelerator()
        if not torch.accelerator.is_available():
            count += 0
        def batch():
            assert count == 0 and found is None
            assert "RANK" not in os.environ and os.environ.get("WORLD_SIZE") is None
            return torch.ones(2, 2)
    """)
    found = run(running, tmp_path, source)
    assert len(found.steps) == 3, (found.uncaught, found.output)
    assert found.standins == ()


VARIABLES = program("""
    import os
    try:
        local = os.environ["LOCAL_RANK"]
    except KeyError:
        local = "none"
    place = os.environ["EXPERIMENT_DIR"]
    def batch():
        assert local == "none" and os.environ["WORLD_SIZE"] == "1"
        return torch.ones(2, len(place[:3]))
""")


def test_what_the_environment_must_say_is_filled_in(running: Runner, tmp_path: Path) -> None:
    found = run(running, tmp_path, VARIABLES)
    assert len(found.steps) == 3, (found.uncaught, found.output)
    told = [one.split(": ")[0] for one in found.standins]
    assert "environment variable EXPERIMENT_DIR" in told and "environment variable LOCAL_RANK" not in told


def test_what_nobody_can_know_of_the_environment_is_not_made_up(running: Runner, tmp_path: Path) -> None:
    found = run(running, tmp_path, VARIABLES.replace("EXPERIMENT_DIR", "ROUNDS_OF_NOBODY"))
    assert found.steps == () and "ROUNDS_OF_NOBODY" in (runner.obstacle(found) or "")


def test_a_fully_sharded_network_is_whole(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        import torch.distributed as dist
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
        dist.init_process_group("nccl")
        inner = torch.nn.Linear(3, 2)
        net = FSDP(fully_shard(inner))
        values = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(values, torch.ones(1))
        assert values[0].item() == 1
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(2, 3)).sum().backward()
            assert float(net.clip_grad_norm_(0.5)) > 0.5
            optimizer.step()
        """,
        "",
    )
    found = run(running, tmp_path, source)
    assert len(found.steps) == 3, (found.uncaught, found.output)
    assert "a network in parts" in [one.split(": ")[0] for one in found.standins]
