"""Environments that are not there, and scripts that need less, or something else, to get to their steps."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from gradfix.verify import runner
from gradfix.verify.recording import Recording
from gradfix.verify.runner import Job, Limits, Runner, planned
from tests.standins.libraries import LOOP
from tests.standins.programs import program
from tests.standins.test_standins import digests, installed
from tests.standins.worlds import EITHER, POLICY, SMALLER, WORLDS

LIMITS = Limits(steps=3, backwards=20, seconds=20.0)


def reached(running: Runner, folder: Path, source: str, name: str = "script.py") -> Recording:
    job = Job(folder / name, textwrap.dedent(source), limits=LIMITS, manner="small")
    (found,) = running.run([planned(running, job)])
    assert len([step for step in found.steps if step.consumes]) >= 2, (runner.obstacle(found), found.output)
    return found


def told(found: Recording) -> list[str]:
    return [one.split(": ")[0] for one in found.standins]


@pytest.mark.parametrize("name", WORLDS)
def test_environments_have_the_spaces_of_their_package_or_of_their_use(
    name: str, running: Runner, tmp_path: Path
) -> None:
    source, replaced = WORLDS[name]
    found = reached(running, tmp_path, source)
    assert [one for one in replaced if one not in told(found) and not installed(one.split(" ")[0])] == []


def test_the_states_of_an_unknown_environment_depend_on_the_seed(running: Runner, tmp_path: Path) -> None:
    source = WORLDS["an unknown environment whose actions are numbered"][0]
    jobs = [
        planned(running, Job(tmp_path / "script.py", text, limits=LIMITS, manner="small", seed=seed))
        for text, seed in ((source, 0), (source + "# again\n", 0), (source, 1))
    ]
    first, again, other = running.run(jobs)
    assert digests(first) == digests(again) != []
    assert digests(first) != digests(other)


def test_what_takes_actions_of_both_kinds_says_nothing_of_them(running: Runner, tmp_path: Path) -> None:
    job = Job(tmp_path / "script.py", EITHER, limits=LIMITS, manner="small")
    (found,) = running.run([planned(running, job)])
    assert "the environment OfNobody-v0 is not here" in (runner.obstacle(found) or "")


@pytest.mark.parametrize("name", SMALLER)
def test_gets_to_its_steps(name: str, running: Runner, tmp_path: Path) -> None:
    if name.startswith("a graph"):
        pytest.importorskip("networkx")
    source, what = SMALLER[name]
    found = reached(running, tmp_path, source)
    assert not what or installed(what.split(" ")[0].split(".")[0]) or what in told(found)


def test_environments_in_processes_that_are_spawned(running: Runner, tmp_path: Path) -> None:
    found = reached(
        running,
        tmp_path,
        program(
            """
            import gym
            import multiprocessing
            def serve(end):
                env = gym.make("CartPole-v1")
                while True:
                    what, action = end.recv()
                    end.send(env.reset() if what == "reset" else env.step(action))
            if __name__ == "__main__":
                mine, theirs = multiprocessing.Pipe()
                spawning = multiprocessing.get_context("spawn")
                spawning.Process(target=serve, args=(theirs,), daemon=True).start()
                class env:
                    def reset():
                        mine.send(("reset", None))
                        return mine.recv()
                    def step(action):
                        mine.send(("step", action))
                        return mine.recv()[:4]
                model = torch.nn.Linear(4, 2)
                def seen(state):
                    return torch.as_tensor(state).float()
                def act(chances):
                    return int(chances.argmax())
            """,
            POLICY,
        ),
    )
    assert "gym" in told(found) or installed("gym")


def test_files_with_the_ending_that_a_function_is_given(running: Runner, tmp_path: Path) -> None:
    found = reached(
        running,
        tmp_path,
        program(
            """
            import os, soundfile
            def found(folder, kind):
                names = []
                for name in os.listdir(folder):
                    if os.path.isdir(os.path.join(folder, name)):
                        names += found(os.path.join(folder, name), kind)
                    elif name.endswith(kind):
                        names.append(os.path.join(folder, name))
                return names
            sounds = [soundfile.read(name)[0] for name in found("sounds", "wav")[:4]]
            models = [torch.nn.Linear(1000, 1)]
            def loss():
                return models[0](torch.stack([torch.as_tensor(one[:1000]).float() for one in sounds])).mean()
            print("nothing of it speaks of pictures: .png")
            """,
            LOOP,
        ),
    )
    assert any("*.wav" in one for one in found.standins)


def test_settings_whose_place_is_typed(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "first.json").write_text(json.dumps({"wide": 4, "rate": 0.1, "rounds": 3}))
    (tmp_path / "runs" / "template.json").write_text('{"wide": 4, "rate": 0.1, "rounds": 3 # how often\n}')
    reached(
        running,
        tmp_path,
        program(
            """
            import json, sys
            in_file = sys.argv[1]
            given = json.load(open(in_file))
            models = [torch.nn.Linear(given["wide"], 1)]
            def loss():
                return models[0](torch.ones(2, given["wide"])).mean() * given["rate"] * given["rounds"]
            """,
            LOOP,
        ),
    )


WRAPPED = """
    import torch
    class Unet(torch.nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.channels, self.net = 3, torch.nn.Conv2d(3, dim, 3)
        def forward(self, x):
            return self.net(x)
    class Head(torch.nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.net = torch.nn.Linear(dim, 1)
    class Diffusion(torch.nn.Module):
        def __init__(self, model, *, image_size):
            super().__init__()
            self.model, self.image_size = model, image_size
            self.channels = self.model.channels
        def forward(self, x):
            return self.model(x).pow(2).mean()
    class Trainer:
        def __init__(self, process, rate=0.1):
            self.process, self.size = process, process.image_size
            self.optimizer = torch.optim.SGD(process.parameters(), lr=rate)
        def train(self):
            for _ in range(3):
                self.optimizer.zero_grad()
                self.process(torch.rand(2, self.process.channels, self.size, self.size)).backward()
                self.optimizer.step()
"""


def test_a_network_is_the_class_that_has_what_is_asked_of_it(running: Runner, tmp_path: Path) -> None:
    found = reached(running, tmp_path, WRAPPED)
    assert "a caller of Trainer.train: called with process=Diffusion" in found.standins


def test_a_package_that_is_only_a_folder_holds_what_its_modules_define(
    running: Runner, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "blocks.py").write_text("class Wide:\n    size = 4\n")
    source = program(
        """
        from parts import Wide
        models = [torch.nn.Linear(Wide.size, 1)]
        def loss():
            return models[0](torch.ones(2, Wide.size)).mean()
        """,
        LOOP,
    )
    assert "import of Wide: that of parts.blocks" in reached(running, tmp_path, source).standins


def test_the_rank_that_a_launcher_would_have_given(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=-1)
        rank = parser.parse_args().local_rank
        device = torch.device("cuda", rank)
        models = [torch.nn.Linear(4, 1).to(device)]
        def loss():
            return models[0](torch.ones(2, 4, device=device)).mean()
        """,
        LOOP,
    )
    assert "argument local_rank" in told(reached(running, tmp_path, source))


def test_processes_that_wait_for_what_they_are_told_run_beside(running: Runner, tmp_path: Path) -> None:
    """The project's own class of them, which says nothing of environments; its like serves others."""
    reached(
        running,
        tmp_path,
        program(
            """
            import multiprocessing
            class Server(multiprocessing.Process):
                def __init__(self, end):
                    super().__init__(daemon=True)
                    self.end = end
                def run(self):
                    while True:
                        self.end.send(self.answer(self.end.recv()))
            class Doubling(Server):
                def answer(self, number):
                    return 2 * number
            mine, theirs = multiprocessing.Pipe()
            Doubling(theirs).start()
            models = [torch.nn.Linear(1, 1)]
            def loss(model=models[0]):
                mine.send(2.0)
                return model(torch.tensor([mine.recv()])).mean()
            """,
            LOOP,
        ),
    )


def test_processes_that_make_things_for_a_queue_go_on_in_turn(running: Runner, tmp_path: Path) -> None:
    """Endlessly, for a queue that may be full; one hands on what another one makes."""
    found = reached(
        running,
        tmp_path,
        program(
            """
            import multiprocessing
            from multiprocessing import Process, Queue
            def count(queue, name):
                number = 0
                while True:
                    queue.put((name, number))
                    number += 1
            class Doubling(multiprocessing.Process):
                def __init__(self, source, target):
                    super().__init__()
                    self.source, self.target = source, target
                def run(self):
                    while True:
                        self.target.put(2 * self.source.get()[1])
            counted, doubled = Queue(maxsize=2), Queue()
            workers = [Process(target=count, args=(counted, name), daemon=True) for name in "ab"]
            for worker in workers:
                worker.start()
            assert [counted.get() for _ in range(5)] == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2)]
            Doubling(counted, doubled).start()
            models = [torch.nn.Linear(1, 1)]
            def loss(model=models[0]):
                return model(torch.tensor([float(doubled.get())])).mean()
            """,
            LOOP + "    workers[0].terminate()\n",
        ),
    )
    assert {"process count", "process Doubling"} <= set(told(found))


def test_a_name_that_nothing_gives_a_value_is_the_script_s_own_mistake(
    running: Runner, tmp_path: Path
) -> None:
    """Nor is there an accelerator for one that something else gives a value, or that is reached without."""
    for given in ("", "if torch.cuda.is_available():\n    moved = 1\nif Given.other:\n    moved = 2\n"):
        text = "class Given:\n    other = False\n" + given + "net = torch.nn.Linear(moved, 1)\n"
        text = "import torch\n" + text + "net(torch.ones(1, 1)).sum().backward()\n"
        (found,) = running.run(
            [planned(running, Job(tmp_path / "script.py", text, limits=LIMITS, manner="small"))]
        )
        assert "name 'moved' is not defined" in (runner.obstacle(found) or "") and "cuda" not in told(found)
