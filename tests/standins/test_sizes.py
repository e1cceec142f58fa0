"""Sizes within functions, lists and settings; loops before the training; and what older libraries took."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gradfix.codemod import Claim
from gradfix.verify import runner
from gradfix.verify.recording import Recording
from gradfix.verify.runner import Job, Limits, Manner, Runner
from tests.standins.programs import program

pytestmark = pytest.mark.usefixtures("servers")

LIMITS = Limits(steps=4, backwards=10, seconds=20.0)


def run(running: Runner, folder: Path, source: str, manner: Manner = "small") -> Recording:
    (found,) = running.run([Job(folder / "script.py", source, limits=LIMITS, manner=manner)])
    return found


def steps(found: Recording) -> int:
    return len([step for step in found.steps if step.consumes])


SMALL: dict[str, tuple[str, tuple[str, ...]]] = {
    "in a function": (
        program("""
            from dataclasses import dataclass
            @dataclass
            class Settings:
                img_size: int = 512
            def sizes(n_layers=12, *, seq_len=1024, layers=8):
                batch_size, rate = int(1e3), 0.1
                others = {"num_layers": 6, "width": 300}
                assert layers == 2 and others
                return batch_size, n_layers, seq_len, others["num_layers"], others["width"], rate
            def batch():
                assert sizes() == (4, 2, 32, 2, 300, 0.1) and Settings().img_size == 64
                assert dict(max_len=99) == {"max_len": 32}
                return torch.ones(sizes()[0], 2)
        """),
        ("constant batch_size", "constant n_layers", "constant seq_len", "constant img_size"),
    ),
    "sides that are one more than a multiple of eight": (
        program("""
            import torchvision.transforms as transforms
            from torchvision import datasets
            crop_size, settings = 473, {"train_h": 473, "train_w": 480}
            data = datasets.CIFAR10("data", transform=transforms.Compose(
                [transforms.Resize((513, 512)), transforms.ToTensor()]))
            def batch():
                picture = data[0][0]
                assert (crop_size, img_size(), picture.shape[1:]) == (65, 64, (65, 64))
                assert settings == {"train_h": 65, "train_w": 64}
                return picture[None]
            def img_size(img_size=480):
                return img_size
        """),
        ("constant crop_size", "constant img_size"),
    ),
    "layers beside a list with something for each": (
        program("""
            def network(widths, n_layers):
                return [widths[one] for one in range(n_layers)]
            def batch():
                assert network(widths=[8, 8, 4], n_layers=3) == [8, 8, 4]
                assert dict(widths=[8, 8, 4], n_layers=9)["n_layers"] == 2
                return torch.ones(2, 2)
        """),
        ("constant n_layers",),
    ),
    "in a loader's call": (
        program("""
            data = torch.utils.data.TensorDataset(torch.arange(200.0).view(100, 2))
            loader = torch.utils.data.DataLoader(data, 50)
            def batch():
                (values,) = next(iter(loader))
                assert values.shape == (4, 2)
                return values
        """),
        ("batches of a loader",),
    ),
    "in the call of a loader whose batches are larger": (
        program("""
            data = torch.utils.data.TensorDataset(torch.arange(200.0).view(100, 2))
            batch_size, times = 64, 7
            labelled = torch.utils.data.DataLoader(data, batch_size)
            others = torch.utils.data.DataLoader(data, batch_size=times * batch_size)
            pairs = torch.utils.data.DataLoader(data, batch_size=2 * batch_size)
            tests = torch.utils.data.DataLoader(data, 16)
            assert [one.batch_size for one in (labelled, others, pairs, tests)] == [4, 28, 8, 4]
            def batch():
                both = torch.cat([next(iter(labelled))[0], next(iter(others))[0]])
                return both.reshape(4, 8, 2)
        """),
        ("constant batch_size", "batches of a loader"),
    ),
    "a memory to fill": (
        program("""
            import collections, random
            memory = collections.deque(maxlen=100_000)
            turns = 0
            for _ in range(2_000_000):
                memory.append(random.random())
                turns += 1
            buffer = []
            while len(buffer) < 2_000_000:
                buffer.append(1.0)
            def batch():
                assert turns == len(buffer) == 64 and memory.maxlen == 100_000
                return torch.ones(4, 2)
        """),
        ("transitions to collect", "transitions to wait for"),
    ),
    "arguments without a name": (
        program("""
            class Net(torch.nn.Module):
                def __init__(self, classes, hidden_size, n_blocks):
                    super().__init__()
                    self.sizes = classes, hidden_size, n_blocks
                    # A layer of torch's, whose other width has no name.
                    torch.nn.BatchNorm1d(num_features=512)(torch.nn.Linear(3, 512)(torch.ones(4, 3)))
                def turns(self, count, batch_size):
                    return count, batch_size
            def batch():
                net = Net(500, 512, 12)
                assert net.sizes == (500, 96, 2) and net.turns(200, 128) == (200, 4)
                assert sorted([300, 200]) == [200, 300]
                return torch.ones(2, 2)
        """),
        ("argument hidden_size", "argument n_blocks", "argument batch_size"),
    ),
    "what the project brings pictures to": (
        program("""
            import random
            class RandomCrop:
                def __init__(self, size, padding=0):
                    self.size = size
                def __call__(self, picture):
                    top = random.randint(0, picture.shape[1] - self.size[0])
                    return picture[:, top:top + self.size[0], :self.size[1]]
            def rescale(values, factor):
                return values * factor
            def batch():
                found = RandomCrop((320, 448))(torch.ones(3, 128, 128))
                assert found.shape == (3, 64, 64) and RandomCrop(48).size == 48
                assert rescale(found, 255).max() == 255
                return found[None]
        """),
        ("pictures of 320", "pictures of 448"),
    ),
    "how long something goes on": (
        program("""
            class Settings:
                teacher_steps, steps, rounds = 500_000, 4000, 9000
                teacher_eval_episodes = 10
            def collect(steps_per_epoch, turns):
                return steps_per_epoch, turns
            teacher_rb, turns = [], 0
            for _ in range(Settings.teacher_steps):
                teacher_rb.append(1.0)
                turns += 1
            def batch():
                assert Settings.teacher_eval_episodes == 2 and turns == 64
                assert collect(steps_per_epoch=Settings.steps, turns=Settings.rounds) == (64, 9000)
                return torch.ones(2, 2)
        """),
        ("transitions to collect", "constant teacher_eval_episodes", "argument steps_per_epoch"),
    ),
    "environments and processes by other names": (
        program("""
            def task(num_threads=4, n_rollout_threads=32, num_actors=16, evaluation_size=500):
                return num_threads, n_rollout_threads, num_actors, evaluation_size
            def steps(max_steps=2e7, n_steps=int(1e6), num_steps=2048, exploration_steps=50_000):
                return max_steps, n_steps, num_steps, exploration_steps
            def batch():
                assert task() == (2, 2, 2, 2) and steps() == (2e7, 1_000_000, 64, 16)
                return torch.ones(4, 2)
        """),
        ("constant num_threads", "constant n_rollout_threads", "constant num_actors"),
    ),
    "tasks of a few samples": (
        program("""
            assert dict(segment_size=8192) == {"segment_size": 4096} != dict(segment_size=32)
            def task(shots=5, meta_batch_size=32, adaptation_steps=5, num_tasks=20_000):
                return shots, meta_batch_size, adaptation_steps, num_tasks
            def batch():
                assert task() == (2, 2, 2, 20) and dict(num_tasks=12) == {"num_tasks": 12}
                return torch.ones(4, 2)
        """),
        ("constant shots", "constant meta_batch_size", "constant adaptation_steps", "constant num_tasks"),
    ),
    "batches that train nothing": (
        program("""
            data = torch.utils.data.TensorDataset(torch.ones(100_000, 2))
            loader = torch.utils.data.DataLoader(data, 4)
            seen = sum(len(values) for (values,) in loader)
            with torch.no_grad():
                evaluated = sum(len(values) for (values,) in loader)
            def batch():
                assert seen == 16 * 4 and evaluated == 4 * 4
                return torch.ones(4, 2)
        """),
        ("a loop over a loader that trains nothing",),
    ),
    "widths by the sides of what they are for": (
        program("""
            class Net:
                def __init__(self, times=2):
                    self.channels = {4: 512, 8: 512, 16: 256 * times, 32: 64}
            channels = {"colours": 512, "depth": 3}
            def batch():
                assert list(Net().channels.values()) == [96, 96, 96, 64] and channels["colours"] == 512
                return torch.ones(4, 2)
        """),
        ("constant channels",),
    ),
    "batches that are only asked for a loss, without gradients in a part of it": (
        program("""
            data = torch.utils.data.TensorDataset(torch.ones(100_000, 2))
            loader = torch.utils.data.DataLoader(data, 4)
            model, seen = torch.nn.Linear(2, 2), [0, 0, 0]
            for number, (values,) in enumerate(loader):
                with torch.no_grad():
                    found = model(values)
                seen[0] += 1
            for values, in loader:
                found = model(torch.autograd.Variable(values, volatile=True))
                seen[1] += 1
            def learn(values):
                with torch.no_grad():
                    model(values)
            for values, in loader:
                with torch.no_grad():
                    found = model(values)
                learn(values)
                seen[2] += 1
            def batch():
                assert seen == [4, 4, 16], seen
                return torch.ones(4, 2)
        """),
        ("a loop over a loader that trains nothing",),
    ),
    "searches for each move of a game, and games before learning": (
        program("""
            MCTS_SEARCHES, MIN_REPLAY_TO_TRAIN = 10, 2000
            def search(num_simulations=800, n_playout=400):
                return num_simulations, n_playout
            def batch():
                assert (MCTS_SEARCHES, MIN_REPLAY_TO_TRAIN, *search()) == (2, 16, 2, 2)
                return torch.ones(4, 2)
        """),
        ("constant MCTS_SEARCHES", "constant MIN_REPLAY_TO_TRAIN", "constant num_simulations"),
    ),
    "batches of the project's own that train nothing": (
        program("""
            class Batches:
                def __init__(self, count):
                    self.count, self.at = count, 0
                def __iter__(self):
                    return self
                def __next__(self):
                    if self.at >= self.count:
                        self.at = 0
                        raise StopIteration
                    self.at += 1
                    return torch.ones(4, 2)
            def turns(count, times):
                batches = Batches(count)
                with torch.no_grad():
                    return [sum(1 for _ in batches) for _ in range(times)]
            def batch():
                assert turns(100, 2) == [4, 4] and turns(3, 3) == [3, 3, 3]
                assert sum(1 for _ in Batches(100)) == 100
                return torch.ones(4, 2)
        """),
        ("a loop over a loader that trains nothing",),
    ),
    "settings of the project": (
        program("""
            import json, os, yaml
            here = os.path.dirname(os.path.abspath(__file__))
            with open(os.path.join(here, "settings.json")) as file:
                settings = json.load(file)
            inner = yaml.safe_load("train:\\n  batch_size: 64\\n")
            def batch():
                assert settings["batch_size"] == inner["train"]["batch_size"] == 4
                return torch.ones(settings["batch_size"], settings["width"])
        """),
        ("setting batch_size",),
    ),
    "a parser of another library": (
        program("""
            import configargparse
            parser = configargparse.ArgParser(default_config_files=["none.ini"])
            parser.add("--config", is_config_file=True)
            parser.add("--batch-size", type=int, default=300, env_var="SIZE")
            given = parser.parse_args()
            def batch():
                return torch.ones(given.batch_size, 2)
        """),
        ("configargparse", "argument batch_size"),
    ),
    "arguments by hand": (
        program("""
            import sys
            if len(sys.argv) != 3:
                sys.exit("usage: SIZE NAME")
            size, name = int(sys.argv[1]), sys.argv[2]
            rounds = int(input("how many? "))
            def batch():
                return torch.ones(rounds, size)
        """),
        ("argument 1", "argument 2", "input"),
    ),
    "a device that is demanded": (
        program("""
            import os
            assert torch.cuda.is_available(), "needs a GPU"
            if not torch.cuda.is_available():
                raise SystemExit("needs a GPU")
            device = "cuda" if torch.cuda.is_available() else "cpu"
            def batch():
                assert device == "cpu"
                return torch.ones(2, 2)
        """),
        ("cuda",),
    ),
    "as older versions took it": (
        program(
            """
            class Counting(torch.optim.Adam):
                def __init__(self, parameters):
                    super().__init__(parameters)
                    for group in self.param_groups:
                        for one in group["params"]:
                            zeros = torch.zeros_like(one)
                            self.state[one] = {"step": 0, "exp_avg": zeros, "exp_avg_sq": zeros.clone()}
            network = torch.nn.Linear(8 / 2, 2)
            network.add_module("old.name", torch.nn.Identity())
            masked = torch.ones(3).masked_fill_(torch.tensor([0, 1, 0], dtype=torch.uint8), 5)
            assert masked.tolist() == [1, 5, 1]
            assert torch.stft(torch.ones(64), 16, window=torch.ones(16)).shape == (9, 17, 2)
            try:
                import numpy
            except ImportError:
                numpy = None
            assert numpy is None or numpy.array([1, 2], dtype=float, copy=False).tolist() == [1.0, 2.0]
            assert numpy is None or numpy.histogram([0.5, 1.5], 2, normed=True)[0].tolist() == [1.0, 1.0]
            optimizer = Counting(network.parameters())
            for _ in range(3):
                optimizer.zero_grad()
                judged = torch.sigmoid(network(torch.ones(2, 4))[:, :1])
                loss = torch.nn.BCELoss()(judged, torch.ones(2))
                loss.backward(torch.FloatTensor([1]), retain_variables=True)
                optimizer.step()
            """,
            "",
        ),
        (
            "a dot in the name of a module",
            "a mask of bytes",
            "complex numbers of stft",
            "a gradient of one element for a number",
            "a number as an optimizer's count of steps",
            "a width that a division made",
            "a target in another shape than its input",
            "retain_variables",
        ),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_reaches_its_steps_and_says_what_was_reduced(name: str, running: Runner, tmp_path: Path) -> None:
    source, told = SMALL[name]
    (tmp_path / "settings.json").write_text('{"batch_size": 512, "width": 3}')
    found = run(running, tmp_path, source)
    assert steps(found) == 3, (found.uncaught, found.output)
    names = [one.split(": ")[0] for one in found.standins]
    assert [what for what in told if what not in names and importlib.util.find_spec(what) is None] == []


@pytest.mark.parametrize(
    ("plan", "count"), [("", 64 * 16 * 4 * 2), ('{"sizes": {"tight": true}}', 64 * 4 * 2)]
)
def test_what_lies_deep_in_made_up_elements_has_few(
    plan: str, count: int, running: Runner, tmp_path: Path
) -> None:
    source = program(f"""
        import json
        seen = []
        for article in json.load(open("articles.json")):
            for paragraph in article["paragraphs"]:
                for question in paragraph["questions"]:
                    seen += [answer["start"] for answer in question["answers"]]
        def batch():
            assert len(seen) == {count}
            return torch.ones(4, 2)
    """)
    job = Job(tmp_path / "script.py", source, limits=LIMITS, manner="small", plan=plan)
    (found,) = running.run([job])
    assert steps(found) == 3, (found.uncaught, found.output)


def test_pictures_may_be_too_small_where_there_is_little_time(running: Runner, tmp_path: Path) -> None:
    source = program("""
        def batch(batch_size=64, img_size=256):
            pictures = torch.ones(batch_size, 3, img_size, img_size)
            down = [torch.nn.Conv2d(3, 3, 4, 2, 1) for _ in range(5)]
            return torch.nn.Sequential(*down, torch.nn.InstanceNorm2d(3))(pictures).detach()
    """)
    first = Job(
        tmp_path / "script.py", source, limits=LIMITS, manner="small", plan='{"sizes": {"tight": true}}'
    )
    (stopped,) = running.run([first])
    assert "more than 1 spatial element" in (runner.obstacle(stopped) or "")
    (found,) = running.run([replace(first, plan=stopped.plan)])
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "constant img_size: 64 in place of 256" in found.standins
    assert "constant batch_size: 2 in place of 64" in found.standins


@pytest.mark.parametrize(
    ("size", "told"),
    [
        ("n_frames_input=10", "4 in place of 10"),
        ("generated_num=5000", "1000 in place of 5000"),
        ("samples_num=5000", "1000 in place of 5000"),
    ],
)
def test_films_are_shorter_and_fewer_samples_are_drawn_where_there_is_little_time(
    running: Runner, tmp_path: Path, size: str, told: str
) -> None:
    name = size.partition("=")[0]
    source = program(f"""
        def batch({size}, frames_output=3):
            return torch.ones({name}, frames_output)
    """)
    first = Job(tmp_path / "script.py", source, limits=LIMITS, manner="small")
    plain, tight = running.run([first, replace(first, plan='{"sizes": {"tight": true}}')])
    assert steps(plain) == steps(tight) == 3, (tight.uncaught, tight.output)
    told = f"constant {name}: {told}"
    assert told in tight.standins and told not in plain.standins


def test_films_stay_as_long_as_something_else_says(running: Runner, tmp_path: Path) -> None:
    source = program("""
        def batch(n_frames_input=10):
            film = torch.ones(n_frames_input, 2)
            return torch.stack([film[one] for one in range(10)])
    """)
    plan = '{"sizes": {"tight": true}}'
    first = Job(tmp_path / "script.py", source, limits=LIMITS, manner="small", plan=plan)
    (stopped,) = running.run([first])
    (found,) = running.run([replace(first, plan=stopped.plan)])
    assert steps(stopped) == 0 and steps(found) == 3, (found.uncaught, found.output)


def test_a_slow_backward_call_is_no_loop_without_gradients(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        import time
        class Slow(torch.autograd.Function):
            @staticmethod
            def forward(context, value):
                return value * 1
            @staticmethod
            def backward(context, gradient):
                until = time.process_time() + 3
                while time.process_time() < until:
                    gradient = gradient * 1
                return gradient
        model = torch.nn.Linear(2, 2)
        for turn in range(300):
            Slow.apply(model(torch.ones(2, 2))).sum().backward()
        """,
        "",
    )
    limits = replace(LIMITS, seconds=1.0)
    (found,) = running.run([Job(tmp_path / "script.py", source, limits=limits, manner="small")])
    assert '"tight": true' in (found.plan or "") and "idle" not in (found.plan or ""), found.plan


def test_a_memory_has_room_for_what_learning_waits_for(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        import collections
        buffer_size, enough_to_learn_from = 2000, 1000
        seen = collections.deque(maxlen=buffer_size)
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        while True:
            seen.append(torch.ones(2))
            if len(seen) > enough_to_learn_from:
                optimizer.zero_grad()
                model(seen[0]).sum().backward()
                optimizer.step()
        """,
        "",
    )
    first = Job(tmp_path / "script.py", source, limits=replace(LIMITS, seconds=2.0), manner="small")
    (late,) = running.run([first])
    assert steps(late) == 0 and "constant buffer_size: 256 in place of 2000" in late.standins
    (found,) = running.run([replace(first, plan=late.plan)])
    assert steps(found) >= 3, (found.uncaught, found.output)


def test_a_long_loop_that_differentiates_and_makes_no_step_ends(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        import time
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        def adapted():
            until = time.process_time() + 0.1
            while time.process_time() < until:
                torch.autograd.grad(model(torch.ones(2, 2)).sum(), model.parameters())
        for turn in range(100):
            optimizer.zero_grad()
            model(torch.ones(2, 2)).sum().backward()
            optimizer.step()
            for task in range(500):
                adapted()
        """,
        "",
    )
    first = Job(
        tmp_path / "script.py", source, limits=replace(LIMITS, seconds=1.0, steps=4), manner="small",
        plan='{"sizes": {"tight": true}}',
    )  # fmt: skip
    (late,) = running.run([first])
    assert steps(late) == 1 and '"without a step": true' in (late.plan or ""), late.plan
    (found,) = running.run([replace(first, plan=late.plan, limits=replace(LIMITS, steps=4))])
    assert steps(found) == 4 and "a long loop without a step: 2 turns" in found.standins, found.standins


def test_a_literal_that_repeats_a_batch_is_as_small(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        batch_size = 32
        data = torch.utils.data.TensorDataset(torch.ones(128, 2), torch.zeros(128, dtype=torch.long))
        model = torch.nn.Linear(2, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for values, labels in torch.utils.data.DataLoader(data, batch_size):
            optimizer.zero_grad()
            wanted = torch.zeros(32, 3).scatter_(1, labels.view(32, 1), 1) + torch.zeros((32, 3))
            assert torch.ones(16, 32).shape == (16, 32)
            (model(values) - wanted).pow(2).mean().backward()
            optimizer.step()
        """,
        "",
    )
    found, _ = runner.search(running, Job(tmp_path / "script.py", source, limits=LIMITS, manner="small"))
    (recording,) = running.run([found])
    assert steps(recording) == 4 and '"repeated": 32' in found.plan, (recording, found.plan)
    assert "a literal that repeats a batch: 4 in place of 32" in recording.standins
    assert "constant batch_size: 4 in place of 32" in recording.standins


def test_a_long_loop_is_left_long_before_the_time_is_over(running: Runner, tmp_path: Path) -> None:
    slow = """
        import time
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        def shown():
            until = time.process_time() + 0.2
            while time.process_time() < until:
                model(torch.ones(2, 2))
        def train():
            optimizer.zero_grad()
            model(torch.ones(2, 2)).sum().backward()
            optimizer.step()
    """
    ends = {
        "idle": """
            with torch.no_grad():
                for turn in range(200):
                    shown()
            while True:
                train()
        """,
        "without a step": """
            for turn in range(200):
                train()
                for number in range(500):
                    shown()
        """,
    }
    for kind, end in ends.items():
        first = Job(
            tmp_path / "script.py", program(slow, end), limits=replace(LIMITS, seconds=3.0), manner="small"
        )
        (early,) = running.run([first])
        assert f'"{kind}": true' in (early.plan or "") and early.seconds < 2.5, (kind, early)
        (found,) = running.run([replace(first, plan=early.plan)])
        assert steps(found) >= 2, (kind, found)


def test_the_sides_of_made_up_pictures_are_no_widths(running: Runner, tmp_path: Path) -> None:
    source = program("""
        import pickle
        ngf = 64
        held = pickle.load(open("pictures.pkl", "rb"))
        pictures = torch.from_numpy(held["images"]).float()
        def batch():
            made = torch.nn.Conv2d(3, ngf, 1)(torch.ones(2, 3, 128, 128)).detach()
            assert ngf == 32
            return torch.cat([made[:, :3], pictures[:2]])
    """)
    found, _ = runner.search(running, Job(tmp_path / "script.py", source, limits=LIMITS, manner="small"))
    (recording,) = running.run([found])
    assert steps(recording) == 3 and '"kept"' not in found.plan, (recording, found.plan)


def test_wide_layers_are_narrower_where_the_time_was_over(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.norm = nn.Linear(9216, 4096), nn.BatchNorm1d(4096)
                self.second, self.last = nn.Linear(4096, 2048), torch.nn.Linear(2048, 1000)
            def forward(self, values):
                return self.last(self.second(self.norm(self.first(values)).view(-1, 4096)))
        def batch():
            shapes = [tuple(one.shape) for one in Net().parameters() if one.dim() > 1]
            assert shapes == [(96, 9216), (96, 96), (1000, 96)], shapes
            return Net()(torch.ones(2, 9216)).detach()
        """
    )
    job = Job(
        tmp_path / "script.py", source, limits=LIMITS, manner="small", plan='{"sizes": {"tight": true}}'
    )
    (found,) = running.run([job])
    assert steps(found) == 3, found
    assert "the width of a wide layer: 96 in place of 4096" in found.standins, found.standins


def test_wide_layers_stay_so_where_others_have_their_widths(running: Runner, tmp_path: Path) -> None:
    source = program("""
        from torch import nn
        wide = 4096
        def batch():
            return nn.Sequential(nn.Linear(8, wide), nn.Linear(4096, 4096))(torch.ones(2, 8)).detach()
    """)
    job = Job(
        tmp_path / "script.py", source, limits=LIMITS, manner="small", plan='{"sizes": {"tight": true}}'
    )
    found, _ = runner.search(running, job)
    (recording,) = running.run([found])
    assert steps(recording) == 3 and '"wide": true' in found.plan, (recording, found.plan)


def test_an_old_backward_call_keeps_its_receiver(running: Runner, tmp_path: Path) -> None:
    source, _ = SMALL["as older versions took it"]
    found = run(running, tmp_path, source)
    assert {event.place.receiver for event in found.backwards} == {"loss"}
    assert all(event.retain for event in found.backwards)


BREAKS_OFF = program(
    """
    network = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = network(torch.ones(2, 4)).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        print(loss.data[0])
    """,
    "",
)


@pytest.mark.parametrize(
    ("text", "standins", "count"),
    [
        (BREAKS_OFF, ("indexing a tensor without dimensions: its only value",), 3),
        (BREAKS_OFF.replace("loss.data[0]", "of_nobody"), (), 1),
    ],
)
def test_what_breaks_off_for_its_age_is_run_as_of_then(
    text: str, standins: tuple[str, ...], count: int, tmp_path: Path
) -> None:
    """What breaks off for another reason does so in every manner, and is run as it is."""
    after = text.replace("retain_graph=True", "")
    evidence = runner.verify_rewrite(
        tmp_path / "script.py", text, after, Claim(), "preserves", python=sys.executable, limits=LIMITS
    )
    assert evidence.standins == standins
    assert {len(one.steps) for one in evidence.runs if one.version == "before"} == {count}


SETTINGS = program("""
    import argparse, yaml
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    given = yaml.safe_load(open(parser.parse_args().config))
    with open("configs/large_net-x4.yaml") as file:
        other = yaml.safe_load(file)
    def batch():
        assert other == {"size": 7}
        return torch.ones(2, given["wide"])
""")


def test_settings_are_the_project_s_that_hold_what_is_asked_for(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "default.yaml").write_text("deep: 3\n")
    (tmp_path / "configs" / "of_others.yaml").write_text("wide: 5\n")
    (tmp_path / "configs" / "large_net_x4.yaml").write_text("size: 7\n")
    found = run(running, tmp_path, SETTINGS)
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "settings large_net-x4.yaml: the project's large_net_x4.yaml" in found.standins


def test_modules_of_the_project_are_reduced_alike(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("def make(batch_size=256):\n    return batch_size\n")
    source = program("""
        import shapes
        def batch():
            assert shapes.make() == 4
            return torch.ones(shapes.make(), 2)
    """)
    found = run(running, tmp_path, source)
    assert steps(found) == 3, found.uncaught
    assert "constant batch_size: 4 in place of 256" in found.standins


def test_modules_for_python_2_are_read_as_they_are_written_today(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(
        "def rows():\n"
        "    try:\n"
        "        print 'rows:', 2\n"
        "        raise ValueError, 'none'\n"
        "    except ValueError, error:\n"
        "        print\n"
        "    return 2\n"
    )
    (tmp_path / "older.py").write_text(
        "class Rows:\n"
        "    def __init__(self, rows, async=True):\n"
        "        self.rows = rows if async else 'async = none'\n"
        "        self.async = async\n"
        "    async def later(self):\n"
        "        async with self.async as found:\n"
        "            return found\n"
        "rows = Rows(2, async=True)\n"
        "none = Rows(2, async=False)\n"
    )
    source = program("""
        import old, older
        assert older.rows.rows == 2 and older.none.rows == "async = none"
        @torch.jit.script
        def doubled(x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones_like(x)
        class Cell(torch.jit.ScriptModule):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.GRUCell(2, 2)
            @torch.jit.script_method
            def forward(self, x):
                return self.inner(x).detach()
        def batch():
            return Cell()(doubled(torch.ones(old.rows(), 2)))
    """)
    found = run(running, tmp_path, source)
    assert steps(found) == 3, found.uncaught
    for name in ("old.py", "older.py"):
        assert name + " for Python 2: its statements as they are written today" in found.standins


def test_in_full_every_size_is_the_script_s_own(running: Runner, tmp_path: Path) -> None:
    source = program("""
        data = torch.utils.data.TensorDataset(torch.ones(100, 2))
        def load(batch_size=50):
            return sum(len(values) for (values,) in torch.utils.data.DataLoader(data, batch_size))
        def batch():
            assert load() == 100
            return torch.ones(2, 2)
    """)
    found = run(running, tmp_path, source, "full")
    assert steps(found) == 3 and found.standins == ()


def test_normalizing_over_one_value_needs_the_script_s_own_sizes(running: Runner, tmp_path: Path) -> None:
    source = program("""
        single = torch.nn.BatchNorm2d(2)(torch.ones(1, 2, 1, 1))
        def batch():
            assert single.flatten().tolist() == [0.0, 0.0]
            return torch.ones(2, 2)
    """)
    found = run(running, tmp_path, source, "full")
    assert steps(found) == 3 and found.standins == ("normalizing over one value: the bias alone",)
    assert steps(run(running, tmp_path, source)) == 0


def test_in_medium_what_a_network_is_made_for_is_the_script_s_own(running: Runner, tmp_path: Path) -> None:
    source = program("""
        def sizes(batch_size=50, n_layers=6, seq_len=90, img_size=256):
            return batch_size, n_layers, seq_len, img_size
        def batch():
            assert sizes() == (4, 6, 90, 128)
            return torch.ones(2, 2)
    """)
    found = run(running, tmp_path, source, "medium")
    assert steps(found) == 3, found.uncaught


def test_a_script_whose_shapes_need_its_own_sizes_is_run_in_full(tmp_path: Path) -> None:
    """The number that stands a second time under no name."""
    before = program(
        """
        data = torch.utils.data.TensorDataset(torch.ones(96, 4))
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for (values,) in torch.utils.data.DataLoader(data, batch_size=32):
            optimizer.zero_grad()
            model(values.cuda()).view(2 * 16, 2).pow(2).mean().backward(retain_graph=True)
            optimizer.step()
    """,
        "",
    )
    after = before.replace("retain_graph=True", "")
    evidence = runner.verify_rewrite(
        tmp_path / "script.py",
        before,
        after,
        Claim(),
        "preserves",
        python=sys.executable,
        limits=LIMITS,
    )
    assert evidence.outcome == "proved", evidence.lines()
    assert evidence.standins == ("cuda: the CPU",)


def test_arguments_by_hand_are_left_alone_where_they_are_asked_about(running: Runner, tmp_path: Path) -> None:
    source = program("""
        import sys
        size = int(sys.argv[1]) if len(sys.argv) > 1 else 3
        if len(sys.argv) > 2:
            name = sys.argv[2]
        def batch():
            assert len(sys.argv) == 1
            return torch.ones(2, size)
    """)
    found = run(running, tmp_path, source)
    assert steps(found) == 3 and found.standins == (), found.uncaught


def test_a_batch_that_is_divided_among_accelerators_holds_something(running: Runner, tmp_path: Path) -> None:
    source = program("""
        batch_size, gpus = 16, range(8)
        data = torch.utils.data.TensorDataset(torch.ones(64, 2))
        loader = torch.utils.data.DataLoader(data, batch_size=batch_size // len(gpus))
        def batch():
            return next(iter(loader))[0]
    """)
    planned = runner.planned(running, Job(tmp_path / "script.py", source, limits=LIMITS, manner="small"))
    (found,) = running.run([planned])
    assert steps(found) == 3, (found.uncaught, found.output)
