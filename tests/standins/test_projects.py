"""Scripts of projects: what other files of theirs hold, and what a first try turns out to lack."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gradfix.verify import runner
from gradfix.verify.recording import Recording
from gradfix.verify.runner import Job, Limits, Runner, planned
from gradfix.verify.standins import pyx
from tests.standins.libraries import LOOP
from tests.standins.programs import program

LIMITS = Limits(steps=3, backwards=10, seconds=20.0)


def project(folder: Path, files: dict[str, str]) -> None:
    (folder / "pyproject.toml").write_text("")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))


def run(running: Runner, script: Path, source: str) -> Recording:
    (found,) = running.run([planned(running, Job(script, source, limits=LIMITS, manner="small"))])
    return found


def steps(found: Recording) -> int:
    return len([step for step in found.steps if step.consumes])


# -- modules of the project ------------------------------------------------------------------

CYTHON = """
# cython: language_level=3
cimport cython
cimport numpy as np
import numpy as np
from cython.parallel import prange
from libc.math cimport sqrt

DEF LIMIT = 3

class Wide(Base):
    pass

cdef class Base:
    cdef public:
        long size
        list held

    def __init__(self, int size, list held=None):
        cdef list made = [None] * size
        self.size = size
        self.held = <list>made

@cython.boundscheck(False)
cdef void fill_one(float[:, ::1] values, int row, float scale=2.) nogil:
    cdef int x
    cdef float first = 1., second
    for x in range(LIMIT):
        second = first + x
        values[row, x] = scale * sqrt(
            second * second)

cpdef np.ndarray[np.float32_t, ndim=2] fill(np.ndarray[np.float32_t, ndim=2] values not None):
    cdef Py_ssize_t rows = values.shape[0]
    with nogil:
        for row in prange(rows, nogil=True):
            fill_one(values, row)
    return values
"""


def test_cython_is_read_as_python(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"fast/__init__.py": "from . import core\n", "fast/core.pyx": CYTHON})
    source = program("""
        import numpy as np
        from fast.core import Base, Wide, fill
        values = fill(np.zeros((4, 3), dtype=np.float32))
        assert values.tolist() == [[2.0, 4.0, 6.0]] * 4
        assert Wide(2).held == [None] * 2 and Base.size == 0 and issubclass(Wide, Base)
        def batch():
            return torch.from_numpy(values)
    """)
    found = run(running, tmp_path / "script.py", source)
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "compiled code fast.core: its Cython, read as Python" in found.standins


NOT_READ = {
    "a division of whole numbers": "def middle(int low, int high):\n    return (low + high) / 2\n",
    "a remainder of whole numbers": "cdef int last(int n):\n    return n % 3\n",
    "a division in place": "def middle(int n):\n    n /= 2\n    return n\n",
    "numbers of an array": "def middle(long[:] a, int i):\n    return a[i] / 2\n",
    "numbers of numpy's": "def middle(np.ndarray[np.int64_t, ndim=1] a):\n    return a[0] // 2\n",
    "a pointer": "cdef double total(double* values, int n):\n    return values[0]\n",
    "a structure": "cdef struct Pair:\n    int a\n    int b\n",
    "code of C": 'cdef extern from "fast.h":\n    int count(int n)\n',
    "functions of C": "from libc.stdlib cimport malloc\n",
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_python_has_not_is_not_read(name: str) -> None:
    assert pyx.as_python(NOT_READ[name]) is None
    assert pyx.as_python("cdef double part(double a, int n):\n    return a / n\n") is not None


def test_cython_that_cannot_be_read_has_no_values(running: Runner, tmp_path: Path) -> None:
    text = NOT_READ["a division of whole numbers"]
    project(tmp_path, {"fast/__init__.py": "", "fast/core.pyx": text})
    source = program("""
        from fast.core import middle
        scale = torch.ones(2, requires_grad=True)
        def batch():
            return torch.ones(4, 2) * middle(scale, 4)
    """)
    found = run(running, tmp_path / "script.py", source)
    assert found.steps == () and "its values are needed" in (runner.obstacle(found) or "")


def test_a_part_of_a_package_is_no_library(running: Runner, tmp_path: Path) -> None:
    """``agents/gym`` is ``agents.gym``, also where ``import gym`` finds no other."""
    files = {
        "agents/__init__.py": "from . import gym\n",
        "agents/gym/__init__.py": "from gym.envs.registration import register\nregister('Own-v0')\n",
    }
    project(tmp_path, files)
    source = program("""
        import agents, gym
        assert not hasattr(agents.gym, "make")
        def batch():
            return torch.as_tensor(gym.make("CartPole-v1").observation_space.sample())[None]
    """)
    found = run(running, tmp_path / "script.py", source)
    assert steps(found) == 3, (found.uncaught, found.output)


def test_a_folder_that_is_called_like_a_library_holds_what_is_asked_for(
    running: Runner, tmp_path: Path
) -> None:
    """``from baselines.graphs.model import wide``, where neither folder is a package."""
    for name in ("baselines/graphs", "other"):
        (tmp_path / name).mkdir(parents=True)
    project(tmp_path, {"__init__.py": "", "baselines/graphs/model.py": "wide = 3\n"})
    source = program("""
        from baselines.graphs.model import wide
        def batch():
            return torch.ones(2, wide)
    """)
    found = run(running, tmp_path / "other" / "train.py", source)
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "import of baselines: the project's own, from folder ." in found.standins


def test_a_project_imports_itself_by_the_name_of_its_folder(running: Runner, tmp_path: Path) -> None:
    """Or by the name that its folder has elsewhere."""
    files = {"setup.py": "", "tools/sizes.py": "wide = 3\n"}
    for name in ("solver", "elsewhere"):
        root = tmp_path / "solver"
        (root / "methods").mkdir(parents=True, exist_ok=True)
        project(root, files)
        source = f"from {name}.tools.sizes import wide\n" + program(
            "def batch():\n    return torch.ones(2, wide)"
        )
        found = run(running, root / "methods" / "train.py", source)
        assert steps(found) >= 2, found.uncaught
        assert f"import of {name}: the project itself" in found.standins


def test_a_version_that_a_setup_writes(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"kit/__init__.py": "from .version import __version__\n", "kit/net.py": "WIDE = 2\n"})
    source = program("""
        import kit, kit.net
        assert kit.__version__ == "0.0.0"
        def batch():
            return torch.ones(4, kit.net.WIDE)
    """)
    found = run(running, tmp_path / "script.py", source)
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "kit.version: no version" in found.standins


def test_modules_of_packages_find_those_beside_them_as_in_python_2(running: Runner, tmp_path: Path) -> None:
    files = {
        "nets/__init__.py": "",
        "nets/build.py": "import shapes, math\ndef width():\n    return shapes.WIDTH\n",
        "nets/shapes.py": "WIDTH = 5\n",
        "data/__init__.py": "",
        "data/read.py": "import sys\nfrom shapes import load\n",
        "data/shapes.py": "import torch\ndef load(wide):\n    return torch.ones(2, wide)\n",
    }
    project(tmp_path, files)
    source = """
        from nets.build import width
        from data.read import load
        def batch():
            return load(width())
    """
    found = run(running, tmp_path / "script.py", program(source))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert any(one.startswith("imports of Python 2: ") for one in found.standins)


def test_methods_of_mappings_that_python_2_had(running: Runner, tmp_path: Path) -> None:
    text = """
        def widths(given):
            return sum(size for name, size in given.iteritems() if given.has_key(name))
    """
    project(tmp_path, {"sizes_of.py": text})
    source = program("""
        import sizes_of
        def batch():
            return torch.ones(4, sizes_of.widths({"a": 2, "b": 3}))
    """)
    found = run(running, tmp_path / "script.py", source)
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "methods that mappings and iterators had in Python 2: those of today" in found.standins


EXPERIMENT = """
    import argparse, json, os
    parser = argparse.ArgumentParser()
    parser.add_argument("--experiment", "-e", dest="experiment_directory", required=True)
    place = os.path.join(parser.parse_args().experiment_directory, "specs.json")
    if not os.path.isfile(place):
        raise Exception("no settings in " + place)
    specs = json.load(open(place))
    def batch():
        assert specs["Note"] == NOTE
        return torch.ones(specs["Rows"], specs["Wide"])
"""


@pytest.mark.parametrize(
    ("told", "note", "said"),
    [("python train.py -e examples/two", "two", False), ("", "one", True)],
)
def test_the_settings_of_an_experiment(
    told: str, note: str, said: bool, running: Runner, tmp_path: Path
) -> None:
    """The folder that the project shows, if it does; else another folder's file of that name."""
    project(
        tmp_path,
        {
            "README.md": told,
            **{
                f"examples/{one}/specs.json": '{"Rows": 4, "Wide": 3, "Note": "' + one + '"}'
                for one in ("one", "two")
            },
        },
    )
    found = run(running, tmp_path / "train.py", program(EXPERIMENT.replace("NOTE", repr(note))))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert ("settings specs.json: the project's examples/one/specs.json" in found.standins) == said


# -- files and folders -----------------------------------------------------------------------

FOLDER = """
    import os, pathlib
    HERE = pathlib.Path(__file__).parent
    from PIL import Image
    import numpy as np
    names = sorted(one for one in os.listdir("data/images") if not one.startswith("."))
    assert len(names) > 4
    assert [one.stem for one in (HERE / "data/masks").glob(names[0].split(".")[0] + ".*")] == ["000"]
    assert os.listdir("data/checkpoints") == [".gitkeep"] and os.listdir("data/notes") == ["read.me"]
    def batch():
        picture = np.asarray(Image.open("data/images/" + names[0]))
        return torch.from_numpy(picture.copy()).float()[:2]
"""


def test_a_folder_that_only_keeps_its_place_holds_nothing(running: Runner, tmp_path: Path) -> None:
    folders = ("images", "masks", "checkpoints")
    project(tmp_path, {**{f"data/{one}/.gitkeep": "" for one in folders}, "data/notes/read.me": ""})
    before = sorted(tmp_path.rglob("*"))
    found = run(running, tmp_path / "script.py", program(FOLDER))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "folder data/images: 32 files *.png" in found.standins
    assert sorted(tmp_path.rglob("*")) == before


ENDINGS = {
    "glob": """
        import glob
        names = sorted(glob.glob("features/*-wide.npy"))
    """,
    "fnmatch": """
        import fnmatch, os
        names = []
        for folder, _, inside in os.walk("features"):  # of sounds: .wav
            names += [os.path.join(folder, one) for one in fnmatch.filter(inside, "*.npy")]
        assert names, "no features were found"
    """,
    "the end of a name": """
        import os
        names = ["features/" + one for one in os.listdir("features") if one.endswith(".npy")]
    """,
    "a pattern of all the name": """
        import glob
        names = sorted(glob.glob("features/points_train*_0*.npy"))
        others = [one for one in glob.glob("features/points_test*.npy")]
        assert len(others) > 0, "no features were found"
    """,
    "a path": """
        import pathlib
        names = [str(one) for one in pathlib.Path("features").glob("train_*.npy")]  # of sounds: .wav
    """,
}


def test_numpy_reads_what_the_project_holds_by_a_path_from_where_it_is_started(
    running: Runner, tmp_path: Path
) -> None:
    project(tmp_path, {"data/links.txt": "1 2\n3 4\n", "data/links.raw": "abcd", "nets/__init__.py": ""})
    source = program("""
        import numpy as np
        links = np.genfromtxt("../data/links.txt", dtype=np.int32)
        assert links.tolist() == [[1, 2], [3, 4]]
        assert np.fromfile("../data/links.raw", dtype=np.uint8).tolist() == [97, 98, 99, 100]
        def batch():
            return torch.from_numpy(links).float()
    """)
    found = run(running, tmp_path / "nets" / "train.py", source)
    assert steps(found) == 3, (found.uncaught, found.output)


@pytest.mark.parametrize("name", ENDINGS)
def test_a_folder_holds_files_with_the_ending_that_is_looked_for(
    name: str, running: Runner, tmp_path: Path
) -> None:
    rest = """
        import numpy as np
        models = [torch.nn.Linear(7, 2)]
        def loss():
            assert len(names) == 32
            return models[0](torch.from_numpy(np.load(names[0])).float()).mean()
    """
    source = program(textwrap.dedent(ENDINGS[name]) + textwrap.dedent(rest), LOOP)
    found = run(running, tmp_path / "script.py", source)
    assert steps(found) == 3, (found.uncaught, found.output)
    assert any(one.startswith("content of ") and ".npy" in one for one in found.standins)


def test_there_are_as_many_folders_as_the_script_insists_on(running: Runner, tmp_path: Path) -> None:
    source = """
        import os
        from PIL import Image
        import torchvision.transforms as transforms
        def folders(above):
            return [one for one in os.listdir(above) if os.path.isdir(os.path.join(above, one))]
        kinds = 3
        assert len(folders("celeba/train")) == kinds
        places = [os.path.join("celeba/train", one) for one in sorted(folders("celeba/train"))]
        names = [os.path.join(place, one) for place in places for one in os.listdir(place)]
        def batch():
            assert len(names) == 96  # Thirty-two in each of three folders.
            return torch.stack([transforms.ToTensor()(Image.open(one)) for one in names[:2]])
    """
    found = run(running, tmp_path / "script.py", program(source))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "folder celeba/train: 3 folders of 32 files *.png" in found.standins


def test_a_folder_that_the_script_misses_in_its_own_words(running: Runner, tmp_path: Path) -> None:
    source = """
        import os
        from PIL import Image
        import torchvision.transforms as transforms
        if os.path.exists("data/photos"):
            names = sorted(os.listdir("data/photos"))
        else:
            raise FileNotFoundError("The photos were not found, get them first")
        def batch():
            shown = [Image.open(os.path.join("data/photos", one)).convert("RGB") for one in names[:2]]
            return torch.stack([transforms.ToTensor()(one) for one in shown])
    """
    found = run(running, tmp_path / "script.py", program(source))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert any(one.startswith("folder data/photos: ") for one in found.standins), found.standins


USUAL = """
    import argparse, json
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    given = json.load(open("configs/usual.json"))
    given.update(json.load(open(parser.parse_args().config)))
    def batch():
        return torch.ones(4, int(**given["how"]) + given["wide"])
"""


def test_the_settings_that_the_script_reads_itself_are_not_those_it_asks_for(
    running: Runner, tmp_path: Path
) -> None:
    files = {"usual.json": '{"how": null, "wide": 2}', "rings.json": '{"how": {}}'}
    project(tmp_path, {"configs/" + name: text for name, text in files.items()})
    found = run(running, tmp_path / "script.py", program(USUAL))
    assert steps(found) == 3, (found.uncaught, found.output)


def test_a_module_divides_by_the_number_of_accelerators(running: Runner, tmp_path: Path) -> None:
    text = "import torch\ndef place(rank):\n    torch.cuda.set_device(rank % torch.cuda.device_count())\n"
    project(tmp_path, {"parts/__init__.py": "", "parts/places.py": text})
    source = """
        from parts.places import place
        place(3)
        def batch():
            return torch.ones(4, 2)
    """
    found = run(running, tmp_path / "script.py", program(source))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "one accelerator: the CPU" in found.standins


SETTINGS = """
    import json
    with open("configs/base.json") as file:
        given = json.load(file)
    def batch():
        if given["speakers"] < 2:
            raise ValueError("one speaker")
        return torch.ones(4, given["wide"])
"""


def test_the_next_file_of_settings_is_taken_if_the_first_does_not_fit(
    running: Runner, tmp_path: Path
) -> None:
    files = {"one_base.json": '{"speakers": 1, "wide": 2}', "many_base.json": '{"speakers": 9, "wide": 3}'}
    project(tmp_path, {"configs/" + name: text for name, text in files.items()})
    found = run(running, tmp_path / "script.py", program(SETTINGS))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "settings base.json: the project's many_base.json" in found.standins


GROUPS = """
    import hydra
    @hydra.main(config_path="config/train.yaml", strict=True)
    def main(cfg):
        assert cfg.agent.name == "sac" and cfg.size is None
        cfg.agent.params.width = 3
        net = hydra.utils.instantiate(cfg.net)
        optimizer = torch.optim.SGD(net.parameters(), lr=cfg.rate)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(4, cfg.agent.params.width)).mean().backward()
            optimizer.step()
    main()
"""
NETS = """
import torch
class Net(torch.nn.Linear):
    def __init__(self, width, half):
        super().__init__(width, 1)
        assert half == 0.5
"""


@pytest.mark.parametrize("first", ["", "# @package _global_\n"])
def test_settings_as_hydra_had_them_at_first(first: str, running: Runner, tmp_path: Path) -> None:
    """A group's file that says itself where it belongs, ``class`` and ``params``, and what is given later."""
    net = "net:\n  class: nets.Net\n  params:\n    width: ${agent.params.width}\n    half: 0.5\n"
    files = {
        "train.yaml": "defaults:\n  - agent: sac\nrate: 1e-1\n",
        "agent/sac.yaml": first + "agent:\n  name: sac\n  params:\n    width: ???\n" + net,
    }
    project(tmp_path, {"nets.py": NETS, **{"config/" + name: text for name, text in files.items()}})
    found = run(running, tmp_path / "script.py", program(GROUPS, ""))
    assert steps(found) == 3, (found.uncaught, found.output)


# -- options ---------------------------------------------------------------------------------

OPTIONS = {
    "a command": (
        """
        commands = parser.add_subparsers(dest="command")
        commands.add_parser("eval").add_argument("--net", required=True)
        commands.add_parser("train").add_argument("--folder", required=True)
        args = parser.parse_args()
        if args.command is None:
            raise SystemExit("train or eval?")
        assert args.command == "train" and args.folder
        """,
        "argument command",
    ),
    "one of two": (
        """
        parser.add_argument("--train-scp", default=None)
        parser.add_argument("--train-dir", default=None)
        args = parser.parse_args()
        if (args.train_scp is None and args.train_dir is None) or (
            args.train_scp is not None and args.train_dir is not None
        ):
            raise ValueError("one of them, please")
        assert args.train_scp is None
        """,
        "argument train_dir",
    ),
    "one that is only needed further down": (
        """
        parser.add_argument("--scp", default=None)
        parser.add_argument("--seed", required=True)
        args = parser.parse_args()
        if args.scp is None:
            if not args.seed:
                raise ValueError("no seed")
        assert args.scp is None
        """,
        "argument seed",
    ),
    "any number of pictures": (
        """
        from PIL import Image
        parser.add_argument("--files", nargs="+")
        args = parser.parse_args()
        assert [Image.open(one).size for one in args.files] == [(128, 128)]
        """,
        "argument files",
    ),
    "a number without a type": (
        """
        parser.add_argument("-n", required=True)
        args = parser.parse_args()
        assert int(args.n) == 2
        """,
        "argument n",
    ),
    "a text that is asked for": (
        """
        parser.add_argument("--net-path", default="")
        parser.add_argument("--seed", required=True)
        args = parser.parse_args()
        if args.net_path != "":
            raise SystemExit(args.net_path)
        """,
        "argument seed",
    ),
    "another data set": (
        """
        import torchvision
        parser.add_argument("--dataset", default="faces")
        args = parser.parse_args()
        if args.dataset == "birds":
            data = None
        elif args.dataset == "mnist":
            data = torchvision.datasets.MNIST("data")
        assert len(data) == 600
        """,
        "argument dataset",
    ),
    "another data set, where a name is missing for most": (
        """
        parser.add_argument("--dataset", default="mnist")
        args = parser.parse_args()
        if args.dataset in ("mnist", "cifar10", "svhn", "stl10"):
            data = datasets.MNIST("data")
        elif args.dataset == "swans":
            data = [1.0]
        assert len(data) == 1
        """,
        "argument dataset",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_turn_out_to_be_needed(name: str, running: Runner, tmp_path: Path) -> None:
    text, told = OPTIONS[name]
    begin = "import argparse\nparser = argparse.ArgumentParser()\n"
    source = program(begin + textwrap.dedent(text) + "def batch():\n    return torch.ones(2, 2)\n")
    found = run(running, tmp_path / "script.py", source)
    assert steps(found) == 3, (found.uncaught, found.output)
    assert any(one.startswith(told + ": ") for one in found.standins), found.standins


# -- folders ---------------------------------------------------------------------------------


def test_what_should_not_be_there_is_not(running: Runner, tmp_path: Path) -> None:
    text = """
    import os
    if os.path.exists("results") and os.listdir("results"):
        raise ValueError("there are results already")
    if not os.path.exists("numbers"):
        raise ValueError("there are no numbers")
    if not os.path.exists("letters"):
        print("there are no letters")
        exit(1)
    def batch():
        return torch.ones(2, 2)
    open("numbers/000.txt")
    """
    found = run(running, tmp_path / "fit.py", program(text))
    assert steps(found) == 3, (found.uncaught, found.output)
    made = [one.split(":")[0] for one in found.standins if one.startswith("folder")]
    assert made == ["folder numbers", "folder letters"]


def test_a_file_that_begins_as_it_should_is_seen_where_it_is_missed(running: Runner, tmp_path: Path) -> None:
    other = """
    import os
    import torch

    def load(folder, model):
        kept = [one for one in os.listdir(folder) if one.startswith("step_")]
        assert sorted(os.listdir(folder))[0] == "config.txt"
        numbers = [int(one.split("_")[-1].split(".")[0]) for one in kept if os.path.isfile(f"{folder}/{one}")]
        model.load_state_dict(torch.load(f"{folder}/step_{sorted(numbers)[-1]}.t7")["net"])
    """
    project(tmp_path, {"kept/config.txt": "2", "tools/loading.py": other})
    text = """
    from tools.loading import load
    load("kept", torch.nn.Linear(2, 2))
    def batch():
        return torch.ones(2, 2)
    """
    found = run(running, tmp_path / "fit.py", program(text))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "file kept/step_*.pt: one, of unknown content" in found.standins
    assert "weights step_0.t7: networks keep their own" in found.standins
    assert sorted(one.name for one in (tmp_path / "kept").iterdir()) == ["config.txt"]


def test_nothing_is_seen_that_is_only_looked_for(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"kept/config.txt": "2"})
    text = """
    import os
    kept = [one for one in os.listdir("kept") if one.startswith("step_")]
    assert not kept
    def batch():
        return torch.ones(2, 2)
    """
    found = run(running, tmp_path / "fit.py", program(text))
    assert steps(found) == 3, (found.uncaught, found.output)


def test_pictures_of_people_are_called_as_those_of_market_1501(running: Runner, tmp_path: Path) -> None:
    text = """
    import glob, os, re
    root = "data/Market-1501-v15.09.15"
    for one in (root, root + "/bounding_box_train"):
        if not os.path.exists(one):
            raise RuntimeError(one + " is not found")
    pattern = re.compile(r"([-\\d]+)_c(\\d)")
    found = [
        tuple(map(int, pattern.search(one).groups()))
        for one in glob.glob(os.path.join(root, "bounding_box_train", "*.jpg"))
    ]
    assert len(set(person for person, _ in found)) > 1 and len(set(camera for _, camera in found)) > 1
    def batch():
        return torch.ones(2, 2)
    """
    found = run(running, tmp_path / "fit.py", program(text))
    assert steps(found) == 3, (found.uncaught, found.output)


def test_a_folder_without_the_name_is_not_the_package(running: Runner, tmp_path: Path) -> None:
    project(
        tmp_path, {"parts/layers/trainer/one.py": "VALUE = 1\n", "parts/deep/helper/one.py": "VALUE = 1\n"}
    )
    text = """
    from trainer import Trainer
    from helper import one
    assert one.VALUE == 1
    def batch():
        return torch.ones(2, 2)
    """
    found = run(running, tmp_path / "fit.py", program(text))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "trainer: objects without values" in found.standins
    assert "import of helper: the project's own, from folder parts/deep" in found.standins


def test_a_file_that_imports_from_its_package_is_no_library(running: Runner, tmp_path: Path) -> None:
    """Nobody can import it by its own name alone: who does so means a module that is missing."""
    files = {
        "parts/__init__.py": "",
        "parts/sizes.py": "WIDE = 2\n",
        "parts/showing.py": "from .sizes import WIDE\n",
        "parts/all.py": "from .showing import WIDE\nimport showing\n",
    }
    project(tmp_path, files)
    text = """
    from parts.all import WIDE
    def batch():
        return torch.ones(2, WIDE)
    """
    found = run(running, tmp_path / "fit.py", program(text))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "showing: objects without values" in found.standins


@pytest.mark.parametrize("target", ["model", "model, criterion, optimizer"])
def test_a_network_that_is_loaded_is_one_of_the_same_kind(
    target: str, running: Runner, tmp_path: Path
) -> None:
    text = f"""
    import torch
    model = torch.nn.Linear(2, 3)
    criterion = torch.nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    old = model
    with open("results/model.pt", "rb") as file:
        {target} = torch.load(file)
    assert model is not old and model.in_features == 2
    if {"," in target}:
        assert optimizer.param_groups[0]["params"][0] is model.weight
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        criterion(model(torch.ones(4, 2)), torch.zeros(4, 3)).backward()
        optimizer.step()
    """
    project(tmp_path, {})
    found = run(running, tmp_path / "fit.py", textwrap.dedent(text))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert found.standins[-1] == "weights model.pt: networks keep their own"


def test_keys_that_several_files_ask_for(running: Runner, tmp_path: Path) -> None:
    """They are known from all the project's code that asks for one of them, and each that is missed later."""
    project(
        tmp_path,
        {
            "reading.py": """
            import numpy as np
            import torch
            def read(name):
                with np.load(name) as held:
                    kept = {key: torch.from_numpy(value) for key, value in held.items()}
                assert len(kept["mass"]) == len(kept["place"])
                return kept
            """
        },
    )
    text = """
    import argparse, reading
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="energy")
    held = reading.read("stars.npz")
    targets = held[parser.parse_args().target]
    def batch():
        scale = held["mass"][:4].float().mean() * held["speed"][:4].float().mean()
        return scale * torch.ones(2, len(targets))
    """
    found = run(running, tmp_path / "fit.py", program(text))
    assert steps(found) == 3, (found.uncaught, found.output)
