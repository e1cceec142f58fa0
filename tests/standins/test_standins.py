"""Scripts without their modules, data, arguments or GPU get to their steps, and say what was replaced."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gradfix.codemod import Claim
from gradfix.verify import runner
from gradfix.verify.recording import Recording
from gradfix.verify.runner import Job, Limits, Runner
from tests.standins.programs import REACHED, STOPPED, program

LIMITS = Limits(steps=4, backwards=10, seconds=20.0)


def job(folder: Path, source: str, **options: object) -> Job:
    return Job(folder / "script.py", source, limits=LIMITS, **{"manner": "small", **options})  # type: ignore[arg-type]


def installed(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


@pytest.mark.parametrize("name", REACHED)
def test_reaches_its_steps_and_says_what_was_replaced(name: str, running: Runner, tmp_path: Path) -> None:
    source, replaced = REACHED[name]
    (found,) = running.run([job(tmp_path, source)])
    assert len([step for step in found.steps if step.consumes]) >= 2, (found.uncaught, found.output)
    told = [one.split(": ")[0] for one in found.standins]
    assert [what for what in replaced if what not in told and not installed(what)] == []
    assert not any(str(tmp_path) in one for one in found.standins)


@pytest.mark.parametrize("name", STOPPED)
def test_what_nobody_can_know_is_not_made_up(name: str, running: Runner, tmp_path: Path) -> None:
    source, reason = STOPPED[name]
    for manner in ("small", "full"):
        (found,) = running.run([job(tmp_path, source, manner=manner)])
        assert found.steps == ()
        assert reason in (runner.obstacle(found) or "")


def digests(recording: Recording) -> list[str]:
    return [
        state.gradient.digest
        for step in recording.steps
        for state in step.parameters
        if state.gradient is not None
    ]


@pytest.mark.parametrize("name", ["torchvision", "folder", "files", "text", "gym", "gymnasium"])
def test_the_same_seed_gives_the_same_and_another_gives_another(
    name: str, running: Runner, tmp_path: Path
) -> None:
    source = REACHED[name][0]
    # A comment makes it another job: the runner keeps the results of equal ones.
    first, again, other = running.run(
        [job(tmp_path, source), job(tmp_path, source + "# again\n"), job(tmp_path, source, seed=1)]
    )
    assert digests(first) == digests(again) != []
    assert digests(first) != digests(other)


def test_a_script_that_lacks_nothing_gets_no_stand_in(running: Runner, tmp_path: Path) -> None:
    source = program("def batch():\n    return torch.ones(2, 2)\n")
    plain, full = running.run([job(tmp_path, source, manner=manner) for manner in ("as it is", "full")])
    assert full.standins == ()
    assert digests(plain) == digests(full) != []


def test_an_import_with_another_way_ready_takes_that_way(running: Runner, tmp_path: Path) -> None:
    source = program("""
        try:
            import instrument_of_nobody
        except ImportError:
            instrument_of_nobody = None
        def batch():
            assert instrument_of_nobody is None
            return torch.ones(2, 2)
    """)
    (found,) = running.run([job(tmp_path, source)])
    assert len(found.steps) == 3 and found.standins == ()


def test_modules_of_the_project_are_found_from_its_other_folders(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "shapes.py").write_text("WIDTH = 5\n")
    (tmp_path / "scripts").mkdir()
    source = program("""
        import shapes
        def batch():
            return torch.ones(2, shapes.WIDTH)
    """)
    (found,) = running.run([job(tmp_path / "scripts", source)])
    assert len(found.steps) == 3, found.uncaught
    assert found.standins == ("import of shapes: the project's own, from folder .",)


def test_nothing_is_written_to_the_project(running: Runner, tmp_path: Path) -> None:
    source = program("""
        import os
        HERE = os.path.dirname(os.path.abspath(__file__))
        os.makedirs(os.path.join(HERE, "out", "deep"))
        with open(os.path.join(HERE, "out", "log.txt"), "w") as log:
            log.write("1")
        torch.save({}, os.path.join(HERE, "out", "model.pt"))
        assert open(os.path.join(HERE, "out", "log.txt")).read() == "1"
        def batch():
            return torch.ones(2, 2)
    """)
    before = sorted(tmp_path.rglob("*"))
    (found,) = running.run([job(tmp_path, source)])
    assert len(found.steps) == 3, (found.uncaught, found.output)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_fix_of_a_script_without_its_data_is_proved(tmp_path: Path) -> None:
    """The whole way: as it is the script has no data, with stand-ins its fix is proved."""
    before = program(
        """
        import torchvision
        data = torchvision.datasets.MNIST("data", transform=torchvision.transforms.ToTensor())
        batch_size = 32
        loader = torch.utils.data.DataLoader(data, batch_size)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for pictures, labels in loader:
            optimizer.zero_grad()
            model(pictures).pow(2).mean().backward(retain_graph=True)
            optimizer.step()
    """,
        "",
    )
    after = before.replace("retain_graph=True", "")
    evidence = runner.verify_rewrite(
        tmp_path / "script.py", before, after, Claim(), "preserves", python=sys.executable, limits=LIMITS
    )
    assert evidence.outcome == "proved", evidence.lines()
    assert "constant batch_size: 4 in place of 32" in evidence.standins
    assert any(line.startswith("replaced") and "MNIST" in line for line in evidence.lines())
