"""Code that prepares data and fails, data that give way, and runs that take too long."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gradfix.codemod import Claim
from gradfix.verify import runner
from gradfix.verify.recording import Recording
from gradfix.verify.runner import Job, Limits, Runner, planned
from tests.standins.libraries import LOOP
from tests.standins.programs import program

pytestmark = pytest.mark.usefixtures("servers")

LIMITS = Limits(steps=3, backwards=10, seconds=60.0)
"""Time for a dozen tries on a machine that does other work too."""

ITEMS = """
import pickle
from torch.utils.data import DataLoader, Dataset
class Notes(Dataset):
    def __init__(self, name):
        with open(name) as held:
            first = held.readline()
        self.wide = len(first.split("#")[7].split("~")[3])
        self.rows = [self.row(line) for line in first.split("#")[2]]
    def row(self, line):
        return float(line.split("~")[1].removeprefix("v"))
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        '''A picture and its class.'''
        held = self.rows[index].pop().open("rb")
        image = pickle.load(held)["a"]["b"].convert(index)
        label = int(self.rows[index].label.split("#")[4])
        return {"image": torch.as_tensor(image).float(), "label": label}
"""
TRAINING = """
models = [torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 2)]
def loss():
    batch = next(iter(loader))
    found = models[1](models[0](batch["image"]).mean((2, 3)))
    return torch.nn.functional.cross_entropy(found, batch["label"])
"""

REACHED: dict[str, tuple[str, tuple[str, ...]]] = {
    "samples that nobody can take apart": (
        program(ITEMS + 'loader = DataLoader(Notes("notes.txt"), batch_size=4)' + TRAINING, LOOP),
        ("label in Notes.__getitem__", "values of Notes.row"),
    ),
    "a function that only data go through": (
        program(
            """
            from pathlib import Path
            def read(place):
                found = [line.split("#")[3] for line in open(place)]
                scale = 1 / (len(found) - len(found))
                counts = sorted(found, key=lambda one: one.nothing)
                inputs, classes = counts.partition_by(scale)
                return inputs, classes
            inputs, classes = read("held.txt")
            models = [torch.nn.Linear(12, 2)]
            def loss():
                values = torch.as_tensor(inputs[:4]).float()
                target = torch.as_tensor(classes[:4]).long()
                return torch.nn.functional.cross_entropy(models[0](values), target)
            """,
            LOOP,
        ),
        ("scale in read", "counts in read"),
    ),
    "an item in whose making several functions fail": (
        program(
            """
            import pickle
            class Pairs(torch.utils.data.Dataset):
                def __init__(self):
                    self.held = pickle.load(open("pairs.pkl", "rb"))
                def colours(self, found):
                    found = found.nothing_of(1).split("#")[4] + 1 / 0
                    return found
                def erased(self, found):
                    found = 1 / 0 + found
                    found = [][3]
                    found = {}["none"]
                    return found
                def __len__(self):
                    return 64
                def __getitem__(self, index):
                    left, right = self.erased(self.colours(self.held[index]))
                    return left, right.float()
            loader = torch.utils.data.DataLoader(Pairs(), batch_size=4)
            models = [torch.nn.Conv2d(3, 4, 16, stride=16), torch.nn.Conv2d(4, 2, 5)]
            def loss():
                left, right = next(iter(loader))
                rows, channels, high, wide = left.shape
                return (models[1](models[0](torch.cat([left, right]))) ** 2).mean()
            """,
            LOOP,
        ),
        ("values of Pairs.__getitem__",),
    ),
    "a function whose guarded statement leads to nothing": (
        program(
            """
            def read():
                graphs = []
                with open("graphs.txt") as file:
                    count = int(file.readline().removeprefix("v"))
                    for number in range(count - count):
                        graphs.append(file.readline())
                labels = {}
                return graphs, len(labels)
            graphs, classes = read()
            models = [torch.nn.Linear(graphs[0].features.shape[1], classes)]
            def loss():
                values = torch.as_tensor(graphs[1].features[:4]).float()
                return torch.nn.functional.cross_entropy(models[0](values), torch.tensor([0, 1, 1, 0]))
            """,
            LOOP,
        ),
        ("values of read",),
    ),
    "batches of a loader that could not be made": (
        program(
            """
            def make_loader():
                train_loader = [1 / len(line.removeprefix(line)) for line in open("held.txt")]
                return train_loader
            data_loader = make_loader()
            models = [torch.nn.Conv2d(3, 4, 3)]
            def loss():
                for images, labels in data_loader:
                    assert len(images) == len(labels) == 4
                    found = models[0](torch.as_tensor(images).float())
                    return torch.nn.functional.cross_entropy(found.mean((2, 3)), torch.as_tensor(labels))
            """,
            LOOP,
        ),
        ("train_loader in make_loader",),
    ),
    "a function of a library that nobody knows": (
        program(
            """
            import framing_of_nobody
            import numpy as np
            def features(number):
                found = framing_of_nobody.mel(np.ones(16), bins=5)
                return found if float(found.sum()) > 0 else -found
            models = [torch.nn.Linear(5, 2)]
            def loss():
                return models[0](torch.as_tensor(features(0)).float()).mean()
            """,
            LOOP,
        ),
        ("framing_of_nobody",),
    ),
    "a variable of the environment": (
        program("""
            import os
            number = int(os.environ["QUEUE_OF_NOBODY"])
            def batch():
                return torch.ones(2, 3) * (number + 1)
        """),
        ("environment variable QUEUE_OF_NOBODY",),
    ),
    "a width beside one that has a name": (
        program(
            """
            class Net(torch.nn.Module):
                def __init__(self, emb_dim=256):
                    super().__init__()
                    self.first = torch.nn.Linear(8, 256)
                    self.last = torch.nn.Linear(emb_dim, 2)
                def forward(self, x):
                    return self.last(self.first(x))
            models = [Net()]
            def loss():
                return models[0](torch.ones(2, 8)).mean()
            """,
            LOOP,
        ),
        (),
    ),
    "sides that a network is made for": (
        program(
            """
            import numpy as np
            from PIL import Image
            def picture(number):
                return torch.from_numpy(np.array(Image.open(f"pictures/{number}.png"))).float()
            models = [torch.nn.Linear(84, 2)]
            def loss():
                found = picture(1)[..., 0].reshape(1, 7, 12, 7, 12)
                return models[0](found.reshape(84, 84)).mean()
            """,
            LOOP,
        ),
        ("file pictures/*.png",),
    ),
    "an option by the keys of a dictionary": (
        program("""
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--dataset", required=True)
            args = parser.parse_args()
            channels = {"greys": 1, "colours": 3}[args.dataset]
            def batch():
                return torch.ones(2, channels)
        """),
        ("argument dataset",),
    ),
    "what older versions took": (
        program(
            """
            import shutil, os
            import numpy as np
            from torch.nn.utils.rnn import pack_padded_sequence
            held = torch.load("pretrained.pth")
            models = [torch.nn.SyncBatchNorm(4), torch.nn.Linear(4, 2)]
            own = models[1].state_dict()
            for name in own:
                own[name] = held["module." + name]
            missing, unexpected = models[1].load_state_dict(own)
            assert not missing and not unexpected
            assert models[1].load_state_dict(held).missing_keys == []
            os.makedirs("kept")
            open("one.txt", "w").close()
            shutil.copy("one.txt", "kept")
            assert os.listdir("kept") == ["one.txt"]
            def loss():
                found = models[1](models[0](torch.randn(3, 4, 5)).transpose(1, 2))
                packed, sizes = pack_padded_sequence(found, [5, 4, 2], batch_first=True)
                assert sizes.tolist() == [3, 3, 2, 2, 1] and np.cumproduct([2, 3])[-1] == 6
                return packed.mean()
            """,
            LOOP,
        ),
        ("SyncBatchNorm", "weights pretrained.pth", "a packed sequence in two parts"),
    ),
    "pictures in an array": (
        program(
            """
            import h5py
            held = h5py.File("pairs.h5", "r")
            small, large = held["data"], held["label"]
            models = [torch.nn.Conv2d(3, 4, 9, padding=4)]
            def loss():
                given = torch.from_numpy(small[0:4, :, :, :]).float()
                assert given.shape[2:] == (32, 32)
                return models[0](given).mean()
            """,
            LOOP,
        ),
        ("content of pairs.h5",),
    ),
    "settings of another parser": (
        program("""
            import configargparse
            parser = configargparse.ArgumentParser(ignore_unknown_config_file_keys=True, prog="train")
            parser.add_argument("--wide", type=int, default=3)
            def batch():
                return torch.ones(2, parser.parse_args().wide)
        """),
        ("configargparse",),
    ),
    "what older versions of numpy and torch had": (
        program("""
            import numpy as np
            import thop
            import packaging
            from PIL import ExifTags
            from torch._six import string_classes, int_classes, container_abcs
            from torch._utils import _accumulate
            from torch.utils.data.dataset import Dataset, T_co
            assert packaging.version.parse("1.10") > packaging.version.parse("1.9")
            assert not hasattr(packaging, "nothing_of_it") and list(_accumulate([1, 2])) == [1, 3]
            assert [k for k, v in ExifTags.TAGS.items() if v == "Orientation"] == [274]
            class Kept(Dataset[T_co]):
                pass
            assert isinstance("a", string_classes) and isinstance(1, int_classes)
            count = thop.profile(torch.nn.Linear(2, 2), inputs=(torch.ones(1, 2),))
            values = np.fromstring(b"abcdef", dtype=np.uint8)
            values[0] = 3
            if torch.cuda.is_available():
                wide = 3
            else:
                raise NotImplementedError("it wants a device")
            def batch():
                return torch.as_tensor(values[:wide]).float().reshape(1, wide)
        """),
        ("numpy.fromstring of bytes", "thop"),
    ),
    "places that are asked for in other ways": (
        program("""
            import os, shutil
            from pathlib import Path
            assert Path("data/photos").exists(), "no photos"
            open("settings.txt", "w").close()
            shutil.copy("settings.txt", "runs/7")
            assert os.listdir("runs/7") == ["settings.txt"]
            held = open("archive-ubyte", "rb")
            held.seek(8, 1)
            kind = ".png"
            def batch():
                return torch.ones(2, 3)
        """),
        ("folder data/photos",),
    ),
    "an encoding that is named": (
        program("""
            import codecs
            words = [line.split() for line in codecs.open("words.txt", "r", "utf-8")]
            rest = codecs.open("words", "r", "utf-8").read()
            def batch():
                return torch.ones(2, min(4, len(words)))
        """),
        ("file words.txt",),
    ),
}


def run(running: Runner, folder: Path, source: str, limits: Limits = LIMITS) -> Recording:
    job = planned(running, Job(folder / "script.py", source, limits=limits, manner="small"))
    return running.run([job])[0]


@pytest.mark.parametrize("name", REACHED)
def test_gets_to_its_steps_and_says_what_was_made_up(name: str, running: Runner, tmp_path: Path) -> None:
    source, told = REACHED[name]
    found = run(running, tmp_path, source)
    assert len([step for step in found.steps if step.consumes]) >= 2, (found.uncaught, found.output)
    named = [one.split(": ")[0] for one in found.standins]
    assert [what for what in told if what not in named] == [], named


NETWORK = """
models = [torch.nn.Linear(4, 2)]
def loss():
    return models[0](torch.ones(2, 4)).mean()
"""
LACKS = 'held = open("held.txt").read()\n'

NOT_GUARDED = {
    "what a network computes": program(
        LACKS
        + NETWORK
        + "def prepare(found):\n    return found.split('#')[9]\n"
        + "def loss():\n    values = prepare(models[0](torch.ones(2, 4)))\n    return values.mean()",
        LOOP,
    ),
    "what makes a network": program(
        LACKS + "def build():\n    wide = int(held.split('#')[9])\n    return torch.nn.Linear(wide, 2)\n"
        "models = [build()]\ndef loss():\n    return models[0](torch.ones(2, 4)).mean()",
        LOOP,
    ),
    "what may be a network": program(
        LACKS + NETWORK + "found = [held.split('#')[9]][0]\n"
        "def loss():\n    return models[0](found(torch.ones(2, 4))).mean()",
        LOOP,
    ),
    "what a function computes that holds weights": program(
        LACKS
        + NETWORK
        + "from functools import partial\nweights = {'one': torch.ones(2, requires_grad=True)}\n"
        + "def compute(given, held):\n    return given * held['two']\n"
        + "def together(given):\n    parts = [partial(compute, held=weights)]\n"
        + "    found = [one(given) for one in parts]\n    return found\n"
        + "def loss():\n    return together(1.0)[0].mean() + models[0](torch.ones(2, 4)).mean()",
        LOOP,
    ),
    "a condition of the training": program(
        LACKS + NETWORK + "if held.nothing_of_texts == 'a':\n    models.append(torch.nn.Linear(4, 2))", LOOP
    ),
    "what settings say": program(
        LACKS + NETWORK + "config = held.nothing_of_texts\nrate = config.rate", LOOP
    ),
    "a command that trains": program(
        LACKS
        + "import click\n@click.command()\ndef main():\n    torch.optim.SGD([], lr=0.1)\nmain()"
        + NETWORK,
        LOOP,
    ),
    "a mistake where nothing is missing": program(NETWORK + "rows = [1, 2]\nlast = rows[2]", LOOP),
    "a name that there is not": program(LACKS + NETWORK + "print(name_of_nobody)", LOOP),
}


@pytest.mark.parametrize("name", NOT_GUARDED)
def test_what_is_of_the_training_is_not_made_up(name: str, running: Runner, tmp_path: Path) -> None:
    found = run(running, tmp_path, NOT_GUARDED[name])
    assert found.steps == ()
    assert runner.obstacle(found) is not None
    assert not any("failed without its data" in one for one in found.standins)


def test_a_network_of_transformers_is_no_transformation(running: Runner, tmp_path: Path) -> None:
    """Modules named after transformers hold networks; nothing of what these compute is made up."""
    (tmp_path / "small_transformer.py").write_text(
        "import torch\nclass Mixer(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.one = torch.nn.Linear(4, 2)\n"
        "    def forward(self, x):\n        found = [x][3]\n        return self.one(found)\n"
    )
    source = program(
        LACKS + "from small_transformer import Mixer\nmodels = [Mixer()]\n"
        "for one in models[0].parameters():\n    one.requires_grad_(False)\n"
        "models.append(torch.nn.Linear(2, 1))\n"
        "def loss():\n    return models[1](models[0](torch.ones(2, 4))).mean()",
        LOOP,
    )
    found = run(running, tmp_path, source)
    assert found.steps == () and "raised IndexError" in (runner.obstacle(found) or "")


TAKEN = """
import numpy as np
class Reader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)
    def load_from(self, held):
        with torch.no_grad():
            self.first.bias.fill_(7)
            places = {"center": held["first/place"]}
            self.last.bias.copy_(torch.from_numpy(places["middle"]))
        LAST
    def forward(self, x):
        return self.last(self.first(x))
models = [Reader()]
before = models[0].first.bias.tolist()
models[0].load_from(np.load("data/reader.npz"))
assert models[0].first.bias.tolist() == before != [7.0] * 3
def loss():
    return models[0](torch.ones(2, 4)).mean()
"""


@pytest.mark.parametrize("last", ["self.done = True", "self.last.bias.requires_grad = False"])
def test_a_network_keeps_its_weights_where_it_fails_to_take_others(
    running: Runner, tmp_path: Path, last: str
) -> None:
    """But not where the method does more: what is trained afterwards is not made up."""
    found = run(running, tmp_path, program(TAKEN.replace("LAST", last), LOOP))
    if "done" in last:
        assert len(found.steps) == 3, (found.uncaught, found.output)
        assert "weights of Reader: networks keep their own" in found.standins
    else:
        assert found.steps == () and "raised KeyError" in (runner.obstacle(found) or "")


TAKEN_BY_A_FUNCTION = """
import json
import numpy as np
def load_pretrained(net, folder="./weights/"):
    shapes = json.load(open(folder + "params_shapes.json"))
    held = np.split(np.load(folder + "params.npy"), np.cumsum([np.prod(shape) for shape in shapes]))
    net.weight.data = torch.from_numpy(held[0])
    net.bias.data = torch.from_numpy(held[1])
models = [torch.nn.Linear(4, 2)]
before = models[0].weight.tolist()
load_pretrained(models[0])
assert models[0].weight.tolist() == before
def loss():
    return models[0](torch.ones(2, 4)).mean()
"""


def test_a_network_keeps_its_weights_where_a_function_fails_to_give_it_others(
    running: Runner, tmp_path: Path
) -> None:
    found = run(running, tmp_path, program(TAKEN_BY_A_FUNCTION, LOOP))
    assert len(found.steps) == 3, (found.uncaught, found.output)
    assert "weights of Linear: networks keep their own" in found.standins


def test_before_and_after_a_rewrite_the_same_is_made_up(tmp_path: Path) -> None:
    """A place is the same where lines have moved, and what is made up is."""
    before = program(ITEMS + 'loader = DataLoader(Notes("notes.txt"), batch_size=4)' + TRAINING, LOOP)
    after = before.replace("import pickle\n", "import pickle\n\n# More lines.\n\n").replace(
        "loss().backward()", "found = loss()\n    found.backward()"
    )
    assert after.count("\n") > before.count("\n") + 3
    evidence = runner.verify_rewrite(
        tmp_path / "script.py", before, after, Claim(), "preserves", python=sys.executable, limits=LIMITS
    )
    assert evidence.outcome == "proved", evidence.reason
    assert any("failed without its data" in one for one in evidence.standins)
    worse = after.replace("found.backward()", "(2 * found).backward()")
    evidence = runner.verify_rewrite(
        tmp_path / "script.py", before, worse, Claim(), "preserves", python=sys.executable, limits=LIMITS
    )
    assert evidence.outcome == "refuted"


SHAPES = program(
    """
    import numpy as np
    values = np.load("values.npy")
    def batch():
        found = torch.as_tensor(values[:4]).float()
        return torch.cat([found.mean(0, keepdim=True)[:, :3], torch.ones(1, 3)]).reshape(2, 5)
    models = [torch.nn.Linear(9, 2)]
    def loss():
        found = models[0](batch())
        return torch.nn.functional.mse_loss(found, batch()) + found[torch.tensor([7])].mean()
    """,
    LOOP,
)


def test_data_give_way_but_no_graph_does(running: Runner, tmp_path: Path) -> None:
    found = run(running, tmp_path, SHAPES)
    assert len(found.steps) == 3, found.uncaught
    told = [one for one in found.standins if one.startswith("data that ")]
    assert any("linear" in one for one in told) and any("reshape" in one for one in told)
    graph = SHAPES.replace("batch()) + ", "models[0](batch())[:, :1] @ batch()) + ")
    found = run(running, tmp_path, graph)
    assert found.steps == ()
    own = SHAPES.replace('np.load("values.npy")', "np.ones((64, 7))")
    assert run(running, tmp_path, own).steps == ()


def test_long_loops_without_gradients_end_where_the_time_is_over(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        models = [torch.nn.Linear(900, 900)]
        def sample():
            found = torch.ones(900, 900)
            with torch.no_grad():
                for turn in reversed(range(100000)):
                    found = models[0](found).tanh()
        def loss():
            sample()
            return models[0](torch.ones(2, 900)).mean()
        """,
        LOOP,
    )
    found = run(running, tmp_path, source, Limits(steps=3, backwards=10, seconds=4.0))
    assert len(found.steps) == 3
    assert "a long loop without gradients: 2 turns" in found.standins


def test_long_loops_that_make_data_end_where_the_time_is_over(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        models = [torch.nn.Linear(900, 3)]
        def made(count):
            values = torch.zeros(count, 900)
            for turn in range(count):
                values[turn] = torch.ones(900, 900).mean(0)
            return values
        values = made(50_000)
        def loss():
            return models[0](values[:4]).mean()
        """,
        LOOP,
    )
    limits = Limits(steps=3, backwards=10, seconds=4.0)
    found = run(running, tmp_path, source, limits)
    assert len(found.steps) == 3
    assert "a long loop that makes data: 256 turns" in found.standins
    trained = source.replace(".mean(0)", ".matmul(models[0].weight.detach()[0])")
    found = run(running, tmp_path, trained, limits)
    assert found.steps == () and not any("makes data" in one for one in found.standins)


def test_no_plan_comes_twice(running: Runner, tmp_path: Path) -> None:
    """A message asks for one thing, the next one for its contrary."""
    source = program(
        """
        import numpy as np
        values = np.load("values.npy")
        if values.ndim == 2:
            raise ValueError("too many indices for array: array is 2-dimensional, but 3 were indexed")
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        """,
        "",
    )
    job = Job(tmp_path / "script.py", source, limits=LIMITS, manner="small")
    plans: list[str] = []
    while True:
        (found,) = running.run([Job(job.path, source, limits=LIMITS, manner="small", plan=["", *plans][-1])])
        if not found.plan:
            break
        plans.append(found.plan)
        assert len(plans) < runner.TRIES
    assert len(set(plans)) == len(plans)


def test_a_name_that_its_package_lacks_is_that_of_its_module(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "README.md").write_text("A project.")
    (tmp_path / "settings" / "__init__.py").write_text("")
    (tmp_path / "settings" / "usual.py").write_text("class Usual:\n    wide = 3\n")
    source = program("""
        from settings import Usual
        def batch():
            return torch.ones(2, Usual.wide)
    """)
    found = run(running, tmp_path, source)
    assert len(found.steps) == 3, found.uncaught
    assert "import of Usual: that of settings.usual" in found.standins


def test_widths_in_one_text_are_smaller_where_the_time_is_over(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--projector", default="4096-4096-4096")
        sizes = [8, *map(int, parser.parse_args().projector.split("-"))]
        models = [torch.nn.Linear(one, two) for one, two in zip(sizes, sizes[1:])]
        def loss():
            found = torch.ones(4096, 8)
            for one in models:
                found = one(found)
            return found.mean()
        """,
        LOOP,
    )
    found = run(running, tmp_path, source, Limits(steps=3, backwards=10, seconds=4.0))
    assert len(found.steps) == 3, found.ending
    assert "argument projector: at most 96 in place of each of 4096-4096-4096" in found.standins


def test_an_option_by_what_a_module_beside_the_script_compares_it_with(
    running: Runner, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("A project.")
    (tmp_path / "nets.py").write_text(
        "import torch\ndef network(args):\n    if args.net == 'flat':\n"
        "        return torch.nn.Linear(3, 2)\n    raise SystemExit(0)\n"
    )
    source = program(
        """
        import argparse
        from nets import network
        parser = argparse.ArgumentParser()
        parser.add_argument("-net", type=str, required=True)
        models = [network(parser.parse_args())]
        def loss():
            return models[0](torch.ones(2, 3)).mean()
        """,
        LOOP,
    )
    assert len(run(running, tmp_path, source).steps) == 3
