"""What a run does not have is made up as its errors ask for it; nothing else is."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from gradfix.bot import proof
from gradfix.cli.commands import app
from gradfix.core.codemod import Claim, Effect
from gradfix.pipeline.results import Outcome
from gradfix.verify.command import Command
from gradfix.verify.jobs import Job, Limits
from gradfix.verify.obstacles import obstacle
from gradfix.verify.recording.records import Recording
from gradfix.verify.reruns import completed
from gradfix.verify.runner import Runner, run_many
from gradfix.verify.verification import verify_rewrite

pytestmark = pytest.mark.usefixtures("servers")


def program(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


TRAIN = program("""
    import torch
    from torch import nn
    torch.manual_seed(0)

    def train(network, batches, loss_of=lambda y, t: nn.functional.mse_loss(y, t), steps=3):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        for step, (x, t) in zip(range(steps), batches):
            loss = loss_of(network(x), t)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""")

PROGRAMS = {
    "a text": (
        """
        text = open("data/input.txt", encoding="utf-8").read()
        letters = sorted(set(text))
        codes = torch.tensor([letters.index(one) for one in text[:200]])
        network = nn.Sequential(nn.Embedding(len(letters), 8), nn.Linear(8, len(letters)))
        train(network, [(codes[:-1], codes[1:])] * 3, nn.functional.cross_entropy)
        """,
        ["file data/input.txt: a made-up text of common words"],
    ),
    "a table, by name": (
        """
        import pandas
        table = pandas.read_csv("houses.csv")
        x = torch.tensor(table[["area", "rooms"]].values).float()
        t = torch.tensor(table["price"].values).float()[:, None]
        train(nn.Linear(2, 1), [(x, t)] * 3)
        """,
        ["file houses.csv: a made-up table"],
    ),
    "a table, by width": (
        """
        import csv
        rows = [[float(cell) for cell in row] for row in csv.reader(open("points.csv"))]
        data = torch.tensor(rows)
        train(nn.Linear(12, 1), [(data[:, :-1], data[:, -1:])] * 3)
        """,
        ["file points.csv: a made-up table"],
    ),
    "an array": (
        """
        import numpy
        images = numpy.load("images.npy")
        count, height, width, channels = images.shape
        x = torch.from_numpy(images).permute(0, 3, 1, 2)
        network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1))
        train(network, [(x, torch.ones(count, 1))] * 3)
        """,
        ["file images.npy: a made-up array"],
    ),
    "arrays by name": (
        """
        import numpy
        data = dict(numpy.load("data.npz").items())
        x, labels = torch.from_numpy(data["inputs"]), torch.from_numpy(data["labels"])
        train(nn.Linear(10, 3), [(x, labels)] * 3, nn.functional.cross_entropy)
        """,
        ["file data.npz: a made-up array"],
    ),
    "a pickle": (
        """
        import pickle
        with open("corpus.pkl", "rb") as file:
            found = pickle.load(file)
        words, (x, t) = found["words"], found["train"]
        assert len(words) == 64 and words[0].split() != words[1].split()
        x, t = torch.tensor(x), torch.tensor(t)[:, :1]
        train(nn.Linear(6, 1), [(x, t)] * 3)
        """,
        ["file corpus.pkl: a made-up value, shaped by its use"],
    ),
    "JSON": (
        """
        import json
        samples = json.load(open("samples.json"))
        texts = [one["text"].lower().split() for one in samples]
        words = sorted({word for text in texts for word in text})
        codes = torch.tensor([[words.index(word) for word in text[:4]] for text in texts])
        labels = torch.tensor([int(one["label"]) for one in samples])
        network = nn.Sequential(nn.Embedding(len(words), 4), nn.Flatten(), nn.Linear(16, 2))
        train(network, [(codes, labels)] * 3, nn.functional.cross_entropy)
        """,
        ["file samples.json: a made-up value, shaped by its use"],
    ),
    "pictures": (
        """
        import glob
        import numpy
        from PIL import Image
        paths = sorted(glob.glob("images/*.jpg"))
        assert paths, "no images"
        x = torch.tensor(numpy.stack([numpy.array(Image.open(path)) for path in paths])).float() / 255
        train(nn.Linear(3, 3), [(x, x)] * 3)
        """,
        ["folder images: 64 made-up .jpg files"],
    ),
    "pictures by class": (
        """
        import os
        import numpy
        from PIL import Image
        samples = []
        for number, name in enumerate(sorted(os.listdir("photos/train"))):
            for file in sorted(os.listdir(os.path.join("photos/train", name))):
                samples.append((Image.open(os.path.join("photos/train", name, file)), number))
        x = torch.tensor(numpy.stack([numpy.array(picture) for picture, _ in samples])).float().flatten(1)
        labels = torch.tensor([label for _, label in samples])
        train(nn.Linear(784, 2), [(x, labels)] * 3, nn.functional.cross_entropy)
        """,
        ["folder photos/train: 64 made-up .png files in 2 folders"],
    ),
    "weights": (
        """
        network = nn.Linear(2, 1)
        network.load_state_dict(torch.load("pretrained.pth"))
        train(network, [(torch.ones(4, 2), torch.ones(4, 1))] * 3)
        """,
        [
            "file pretrained.pth: a made-up value, shaped by its use",
            "weights in pretrained.pth: those that the network was made with",
        ],
    ),
    "an accelerator": (
        """
        device = torch.device("cuda:0")
        network = nn.Linear(2, 1).to(device)
        torch.cuda.synchronize()
        x = torch.cuda.FloatTensor([[1, 2]]) + torch.ones(1, 2, device=device) + torch.ones(1, 2).cuda(0)
        train(network, [(x, torch.ones(1, 1).to("cuda"))] * 3)
        """,
        ["an accelerator: the CPU"],
    ),
    "an accelerator that is insisted on": (
        """
        assert torch.cuda.is_available(), "this needs a GPU"
        train(nn.Linear(2, 1).cuda(), [(torch.ones(1, 2).cuda(), torch.ones(1, 1).cuda())] * 3)
        """,
        ["an accelerator: the CPU, and yes where the script asks for one"],
    ),
    "a distributed training": (
        """
        import os
        import torch.distributed
        rank = int(os.environ["LOCAL_RANK"])
        torch.distributed.init_process_group("nccl")
        network = nn.parallel.DistributedDataParallel(nn.Linear(2, 1), device_ids=[rank])
        train(network, [(torch.ones(1, 2), torch.ones(1, 1))] * 3)
        """,
        ["a distributed training: a world of one process"],
    ),
    "a module that only logs": (
        """
        import neptune
        run = neptune.init_run(project="x")
        with run["loss"]:
            run.log("losses", 1.0)
        train(nn.Linear(2, 1), [(torch.ones(1, 2), torch.ones(1, 1))] * 3)
        """,
        ["the module neptune: nothing: it only logs or draws"],
    ),
    "a folder to write to": (
        """
        torch.save({"a": 1}, "results/first.pt")
        assert torch.load("results/first.pt") == {"a": 1}
        train(nn.Linear(2, 1), [(torch.ones(1, 2), torch.ones(1, 1))] * 3)
        """,
        ["folder results: an empty one to write to"],
    ),
    "a package of the project": (
        """
        from pieces.layers import layer
        train(layer(), [(torch.ones(1, 2), torch.ones(1, 1))] * 3)
        """,
        ["packages of the project: those in its folder, as if it had been installed"],
    ),
    "a data loader with processes": (
        """
        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, index):
                import numpy
                return torch.from_numpy(numpy.load("rows.npy")[index]), torch.ones(1)
        loader = torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=2)
        train(nn.Linear(5, 1), loader)
        """,
        ["file rows.npy: a made-up array", "processes of a data loader: the script's own process"],
    ),
}

UNCHANGED = {
    "a file that the script can do without": """
        import os
        try:
            x = torch.load("cache.pt")
        except FileNotFoundError:
            x = torch.ones(1, 2)
        assert not os.path.exists("data")
        train(nn.Linear(2, 1), [(x, torch.ones(1, 1))] * 3)
    """,
    "an accelerator that the script can do without": """
        device = "cuda" if torch.cuda.is_available() else "cpu"
        train(nn.Linear(2, 1).to(device), [(torch.ones(1, 2), torch.ones(1, 1))] * 3)
    """,
    "more data than it needs": """
        import os
        batches = [(torch.ones(1, 2), torch.ones(1, 1))] * 3
        train(nn.Linear(2, 1), batches[:3])
        if os.path.exists("data/warmup.txt"):
            train(nn.Linear(2, 1), batches)
        print([1][2])
    """,
    "data that is there": """
        x = torch.tensor([float(line) for line in open("numbers.txt")])[:, None]
        assert x.flatten().tolist() == [1.0, 2.0]
        train(nn.Linear(1, 1), [(x, x)] * 3)
    """,
}

NOT_MADE_UP = {
    "settings": (
        "import json\nrate = json.load(open('config.json'))['rate']\n",
        "needs the file config.json, which is not there",
    ),
    "a module of which nothing is known": (
        "import quite_unknown\nquite_unknown.layer()\n",
        "quite_unknown is not installed",
    ),
    "values of a module that only logs": (
        "import neptune\nif neptune.init_run().best > 1:\n    pass\n",
        "neptune is not installed, and its values are needed",
    ),
    "a condition on a module that only logs": (
        "import neptune\nif neptune.init_run()['mode'] == 'gan':\n    pass\n",
        "neptune is not installed, and its values are needed",
    ),
    "layers by a module that only logs": (
        "import neptune\nsizes = [one for one in neptune.init_run()['layers']]\n",
        "neptune is not installed, and its values are needed",
    ),
    "a file that is there, and not looked for where it lies": (
        "import os\nif not os.path.exists('prepared/numbers.txt'):\n"
        "    raise RuntimeError('numbers.txt not found')\nassert open('numbers.txt').read() == '1\\n2\\n'\n",
        "backward() was never called",
    ),
    "a network that was saved whole": (
        "import torch\nnetwork = torch.load('whole.pth')\nnetwork(torch.ones(1, 2)).sum().backward()\n",
        "whole.pth is not there, and is used as a network",
    ),
}


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """One run at a time, so that none is in another's way where the time is short."""
    with Runner(sys.executable, workers=1, total=600) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "numbers.txt").write_text("1\n2\n")
    (tmp_path / "src" / "pieces").mkdir(parents=True)
    (tmp_path / "src" / "pieces" / "layers.py").write_text(
        "from torch import nn\n\ndef layer():\n    return nn.Linear(2, 1)\n"
    )
    return tmp_path


def run(runner: Runner, project: Path, source: str, **options: object) -> tuple[Recording, str | None]:
    job = Job(project / "train.py", source, **options)  # type: ignore[arg-type]
    found = completed(runner, job)
    (recording,) = runner.run([found.job])
    return recording, found.stopped


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_missing_takes_the_shape_that_its_use_asks_for(
    name: str, runner: Runner, project: Path
) -> None:
    source, told = PROGRAMS[name]
    recording, stopped = run(runner, project, TRAIN + program(source))
    assert len(recording.steps) == 3, (recording.uncaught, stopped)
    assert all(step.consumes for step in recording.steps)
    assert list(recording.standins) == told
    assert sorted(one.name for one in project.iterdir()) == ["numbers.txt", "pyproject.toml", "src"]


@pytest.mark.parametrize("name", UNCHANGED)
def test_nothing_is_made_up_that_no_run_has_failed_for(name: str, runner: Runner, project: Path) -> None:
    recording, _ = run(runner, project, TRAIN + program(UNCHANGED[name]))
    assert len(recording.steps) == 3, recording.uncaught
    assert recording.standins == ()


@pytest.mark.parametrize("name", NOT_MADE_UP)
def test_what_nobody_can_know_is_not_made_up(name: str, runner: Runner, project: Path) -> None:
    source, why = NOT_MADE_UP[name]
    recording, stopped = run(runner, project, source)
    assert recording.backwards == ()
    assert why in (stopped or obstacle(recording) or "")


def test_made_up_content_is_the_same_in_every_run(project: Path) -> None:
    """Before and after a rewrite, on every seed; and the proof says that it was made up."""
    source = TRAIN + program(PROGRAMS["arrays by name"][0]).replace(
        "[(x, labels)] * 3", "[(x + torch.randn(64, 10), labels)] * 3"
    )
    after = source.replace("loss.backward()", "torch.autograd.backward(loss.clone())")
    evidence = verify_rewrite(
        project / "train.py", source, after, Claim(), Effect.PRESERVES, python=sys.executable
    )
    assert evidence.outcome == "proved", evidence.lines()
    assert evidence.standins == ("file data.npz: a made-up array",)
    assert evidence.reason.endswith("(with stand-ins for file data.npz)")
    other = source.replace("loss.backward()", "(2 * loss).backward()")
    evidence = verify_rewrite(
        project / "train.py", source, other, Claim(), Effect.PRESERVES, python=sys.executable
    )
    assert evidence.outcome == "refuted", evidence.lines()


def test_what_is_sent_to_an_accelerator_is_another_tensor(project: Path) -> None:
    """On the CPU as well: otherwise a rewrite could be proved that is wrong where there is one."""
    source = TRAIN + program("""
        x = torch.ones(4, 2)
        sent = x.cuda()
        x.add_(1)
        train(nn.Linear(2, 1), [(sent, torch.ones(4, 1))] * 3)
    """)
    after = source.replace("x.add_(1)", "sent.add_(1)")
    evidence = verify_rewrite(
        project / "train.py", source, after, Claim(), Effect.PRESERVES, python=sys.executable
    )
    assert evidence.outcome == "refuted", evidence.lines()
    leaf = source.replace(
        "sent = x.cuda()", "sent = torch.ones(1, requires_grad=True).cuda().is_leaf or exit(3)"
    )
    (recording,) = run_many(
        [Job(project / "train.py", leaf, schema='{"accelerator": "used"}')], python=sys.executable
    )
    assert recording.uncaught is not None and recording.uncaught.message == "3"


def test_a_proof_with_made_up_data_says_so(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the terminal, in the JSON, in the certificate, and in a pull request."""
    monkeypatch.chdir(project)
    source = TRAIN + program(PROGRAMS["arrays by name"][0])
    Path("train.py").write_text(source.replace("loss.backward()", "loss.backward(retain_graph=True)"))
    told = "file data.npz: a made-up array"
    shown = CliRunner().invoke(app, ["verify", "--python", sys.executable, "train.py"]).output
    assert "proved with made-up data (preserves)" in shown
    assert f"      replaced    {told}\n" in shown
    assert "(1 proved; 1 with made-up data)" in shown
    (certificate,) = Path("gradfix-evidence").glob("*.json")
    evidence = json.loads(certificate.read_text())["evidence"]
    assert evidence["standins"] == [told]
    listed = (
        CliRunner()
        .invoke(
            app, ["apply", "--dry-run", "--output-format", "json", "--python", sys.executable, "train.py"]
        )
        .stdout
    )
    assert told in listed
    step = SimpleNamespace(rewrite=SimpleNamespace(certificate=evidence, outcome=Outcome.PROVED, reason=""))
    said = proof.proof(step)  # type: ignore[arg-type]
    assert next(said).startswith("**Proved with made-up data:**")
    next(said)
    assert next(said) == f"- {told}"


def test_a_data_set_of_torchvision_is_the_class_itself(runner: Runner, project: Path) -> None:
    """Of a double, written for this test: the real one need not be installed."""
    package = project / "torchvision" / "datasets"
    package.mkdir(parents=True)
    (project / "torchvision" / "__init__.py").write_text("from . import datasets\n")
    (package / "__init__.py").write_text("from .mnist import MNIST\n")
    (package / "mnist.py").write_text(
        program("""
        class VisionDataset:
            def __init__(self, root=None, transforms=None, transform=None, target_transform=None):
                self.root, self.transform, self.target_transform = root, transform, target_transform

        class MNIST(VisionDataset):
            classes = [str(number) for number in range(10)]

            def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
                super().__init__(root, transform=transform, target_transform=target_transform)
                raise RuntimeError("Dataset not found. You can use download=True to download it")

            def __len__(self):
                return len(self.data)

            def __getitem__(self, index):
                return self.transform(self.data[index]), int(self.targets[index])
        """)
    )
    source = TRAIN + program("""
        from torchvision import datasets
        data = datasets.MNIST("data", train=False, transform=lambda it: it.float().flatten() / 255)
        assert len(data) == 10000 and len(datasets.MNIST("data", transform=None)) == 60000
        loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True, num_workers=2)
        train(nn.Linear(784, 10), loader, nn.functional.cross_entropy)
    """)
    recording, _ = run(runner, project, source)
    assert len(recording.steps) == 3, recording.uncaught
    assert recording.standins == ("the files of torchvision's MNIST: 10000 made-up samples of its shape",)


def test_batches_are_smaller_where_the_time_is_over(runner: Runner, project: Path) -> None:
    source = TRAIN + program("""
        import time
        class Slow(torch.utils.data.Dataset):
            def __len__(self):
                return 1000
            def __getitem__(self, index):
                time.sleep(0.02)
                return torch.ones(2), torch.ones(1)
        train(nn.Linear(2, 1), torch.utils.data.DataLoader(Slow(), batch_size=100))
    """)
    recording, _ = run(runner, project, source, limits=Limits(seconds=1))
    assert len(recording.steps) == 3, recording.ending
    assert recording.standins == ("batches of 100: batches of 8, to be done in time",)


def test_data_lies_where_the_command_says(runner: Runner, project: Path, tmp_path: Path) -> None:
    data = tmp_path / "elsewhere"
    data.mkdir()
    (data / "numbers.txt").write_text("3\n4\n")
    script = project / "code"
    script.mkdir()
    source = TRAIN + program("""
        import sys
        x = torch.tensor([float(line) for line in open(sys.argv[1])])[:, None]
        assert x.flatten().tolist() == [float(word) for word in sys.argv[2:]]
        train(nn.Linear(1, 1), [(x, x)] * 3)
    """)
    for command in (
        Command(("numbers.txt", "1", "2"), cwd=project),
        Command((str(data / "numbers.txt"), "3", "4"), readable=(data,)),
    ):
        job = Job(script / "train.py", source, command)
        (recording,) = runner.run([job])
        assert len(recording.steps) == 3, recording.uncaught
