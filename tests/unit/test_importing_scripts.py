"""What the scripts of a project tell about a file that they import. Nothing is run."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from gradfix.autograd import callers
from gradfix.autograd.graph import Backward
from gradfix.autograd.program import analyze
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import traces

TRAINER = """
class Trainer:
    def __init__(self, generator, discriminator, g_optimizer, d_optimizer):
        self.G, self.D = generator, discriminator
        self.g_optimizer, self.d_optimizer = g_optimizer, d_optimizer

    def epoch(self, batches):
        for real in batches:
            fake = self.G(real)
            d_loss = self.D(fake.detach()).mean() - self.D(real).mean()
            {d_zero}
            d_loss.backward()
            self.d_optimizer.step()
            self.g_optimizer.zero_grad()
            g_loss = -self.D(fake).mean()
            g_loss.backward()
            self.g_optimizer.step()
"""

SCRIPT = """
import torch
from torch import nn
{imported}

def network():
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))

if __name__ == "__main__":
    G, D = network(), network()
    g_optimizer = torch.optim.Adam(G.parameters())
    d_optimizer = torch.optim.Adam({owned})
    trainer = Trainer(G, D, g_optimizer, d_optimizer)
    for _ in range(10):
        trainer.epoch(torch.randn(5, 3, 2))
        {afterwards}
"""


def script(
    imported: str = "from trainer import Trainer", owned: str = "D.parameters()", afterwards: str = "pass"
) -> str:
    return SCRIPT.format(imported=imported, owned=owned, afterwards=afterwards)


@pytest.fixture
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False, certain=True))
    assert isinstance(prepared, Options)
    return prepared


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    traces.look_again()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))


def codes(path: Path, options: Options) -> list[str]:
    report = driver.check([str(path)], options)
    assert not any(file.problems for file in report.files)
    return [reported.finding.code for file in report.files for reported in file.findings]


FAULTY = TRAINER.format(d_zero="pass")
RIGHT = TRAINER.format(d_zero="self.d_optimizer.zero_grad()")


def test_a_trainer_is_seen_with_the_networks_that_a_script_hands_it(tmp_path: Path, options: Options) -> None:
    write(tmp_path, {"trainer.py": FAULTY})
    assert codes(tmp_path / "trainer.py", options) == []
    traces.look_again()
    write(tmp_path, {"main.py": script()})
    assert codes(tmp_path / "trainer.py", options) == ["missing-zero-grad"]
    write(tmp_path, {"trainer.py": RIGHT})
    assert codes(tmp_path / "trainer.py", options) == []


def test_what_a_script_does_itself_counts(tmp_path: Path, options: Options) -> None:
    write(tmp_path, {"trainer.py": FAULTY, "main.py": script(afterwards="d_optimizer.zero_grad()")})
    assert codes(tmp_path / "trainer.py", options) == ["misplaced-zero-grad"]  # once for five batches
    write(
        tmp_path, {"trainer.py": FAULTY.replace("for real in batches:", "if (real := batches) is not None:")}
    )
    assert codes(tmp_path / "trainer.py", options) == []


OFFERS = """
import torch
from torch import nn
from trainer import Trainer

def network():
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))

def usual(batches, **options):
    G, D = network(), network()
    cuda = options.get("cuda")
    G.cuda(async=cuda)
    trainer = Trainer(G, D, torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters()))
    for _ in range(10):
        trainer.epoch(batches)

def other(batches):
    G, D = network(), network()
    d_optimizer = torch.optim.Adam(D.parameters())
    trainer = Trainer(G, D, torch.optim.Adam(G.parameters()), d_optimizer)
    for real in batches:
        {clears}
        trainer.epoch([real])

if __name__ == "__main__":
    print("choose one")
    # usual(torch.randn(5, 3, 2))
"""


def test_what_a_script_offers_without_running_it(tmp_path: Path, options: Options) -> None:
    """Trainings of which one is chosen by a comment; the script is from before ``async`` was a keyword."""
    write(tmp_path, {"trainer.py": FAULTY, "main.py": OFFERS.format(clears="pass")})
    assert codes(tmp_path / "trainer.py", options) == ["missing-zero-grad"]
    write(tmp_path, {"main.py": OFFERS.format(clears="d_optimizer.zero_grad()")})
    assert codes(tmp_path / "trainer.py", options) == []  # every way has to bear it out
    write(tmp_path, {"trainer.py": RIGHT})
    assert codes(tmp_path / "trainer.py", options) == []


def test_every_script_has_to_bear_a_mistake_out(tmp_path: Path, options: Options) -> None:
    other = script().replace("torch.optim.Adam(D.parameters())", "Cleared(D.parameters())") + dedent(
        """
        class Cleared(torch.optim.Adam):
            def step(self, closure=None):
                super().step(closure)
                self.zero_grad()
        """
    )
    head, tail = other.split("if __name__")
    guard, own = tail.split("\n\n", 1)
    write(
        tmp_path,
        {"trainer.py": FAULTY, "main.py": script(), "other.py": f"{head}{own}\nif __name__{guard}\n"},
    )
    assert codes(tmp_path / "trainer.py", options) == []


@pytest.mark.parametrize(
    ("files", "imported"),
    [
        (("package/trainer.py", "main.py"), "from package.trainer import Trainer"),
        (("package/trainer.py", "main.py"), "from package import Trainer"),
        (("package/trainer.py", "scripts/main.py"), "from package import Trainer"),
        (
            ("package/inner/trainer.py", "main.py"),
            "import package.inner.trainer\nTrainer = package.inner.trainer.Trainer",
        ),
        (("package/trainer.py", "package/main.py"), "from .trainer import Trainer"),
    ],
)
def test_scripts_are_found_where_they_stand(
    files: tuple[str, str], imported: str, tmp_path: Path, options: Options
) -> None:
    trainer, main = files
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "setup.py": "",
            "package/__init__.py": "from package.trainer import Trainer" if "inner" not in trainer else "",
            "package/inner/__init__.py": "",
            trainer: FAULTY,
            main: script(imported),
        },
    )
    found = callers.scripts(str(tmp_path / trainer))
    assert [module.path for module in found] == [str(tmp_path / main)]


@pytest.mark.parametrize(
    ("imported", "made"),
    [
        ("from parts import networks", "networks.Net()"),
        ("from parts import networks as n", "n.Net()"),
        ("import parts.networks", "parts.networks.Net()"),
        ("import parts.networks as n", "n.Net()"),
        ("import parts.deep.others", "parts.deep.others.networks.Net()"),
        ("import parts.deep.others", "parts.networks.Net()"),
        ("from parts.deep import others", "others.networks.Net()"),
        ("from parts.deep.others import networks", "networks.Net()"),
    ],
)
@pytest.mark.parametrize("root", [True, False])
def test_folders_of_modules_are_packages(
    root: bool, imported: str, made: str, tmp_path: Path, options: Options
) -> None:
    """Also without ``__init__.py``. A layer on data saves no weights: no second backward minds the step."""
    network = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.only = torch.nn.Linear(2, 1)

        def forward(self, x):
            return self.only(x)
    """
    training = f"""
    import torch
    {imported}

    def train(batches):
        net = {made}
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for batch in batches:
            optimizer.zero_grad()
            out = net(torch.as_tensor(batch).detach())
            out.mean().backward(retain_graph=True)
            optimizer.step()
            out.sum().backward()
    """
    files = {
        "parts/networks.py": dedent(network),
        "parts/deep/others.py": "from parts import networks\n",
        "train.py": dedent(training),
    }
    write(tmp_path, files if not root else {**files, "parts/__init__.py": "", "parts/deep/__init__.py": ""})
    assert codes(tmp_path / "train.py", options) == ["step-before-backward"]


@pytest.mark.parametrize(("mark", "seen"), [("requirements.txt", True), ("LICENSE", True), ("notes", False)])
def test_a_project_that_was_copied_without_its_history(mark: str, seen: bool, tmp_path: Path) -> None:
    """Between the file and the script lies a folder without code: whose is what is above?"""
    write(
        tmp_path,
        {
            mark: "",
            "src/inner/trainer.py": FAULTY,
            "main.py": script("from src.inner.trainer import Trainer"),
        },
    )
    assert [module.path for module in callers.scripts(str(tmp_path / "src/inner/trainer.py"))] == [
        str(tmp_path / "main.py")
    ] * seen


def test_who_only_names_the_module_is_no_caller(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "trainer.py": FAULTY,
            "noted.py": "import os  # not trainer\nprint('trainer')\n",
            "another.py": "from elsewhere.trainer import Trainer\nTrainer()\n",
            "broken.py": "from trainer import Trainer\ndef (",
        },
    )
    assert callers.scripts(str(tmp_path / "trainer.py")) == []


def test_an_installed_package_has_no_scripts(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    write(folder, {"trainer.py": FAULTY, "main.py": script()})
    assert callers.scripts(str(folder / "trainer.py")) == []


def test_a_module_between_passes_on_the_file_as_it_is_now(tmp_path: Path, options: Options) -> None:
    between = "from trainer import Trainer\n\ndef trainer(*of):\n    return Trainer(*of)\n"
    outer = "from between import trainer as made\n\ndef begin(*of):\n    return made(*of)\n"
    imported = "from outer import begin as Trainer"
    write(tmp_path, {"between.py": between, "outer.py": outer, "script.py": script(imported)})
    for text, expected in [(FAULTY, ["missing-zero-grad"]), (RIGHT, []), (FAULTY, ["missing-zero-grad"])]:
        write(tmp_path, {"trainer.py": text})
        assert codes(tmp_path / "trainer.py", options) == expected


BASE = """
from abc import ABC, abstractmethod
import torch

class Base(ABC):
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters())

    @abstractmethod
    def loss(self, batch):
        pass

    def epoch(self, batches):
        for batch in batches:
            self.optimizer.zero_grad()
            loss = self.loss(batch)
            loss.backward(retain_graph=True)
            self.optimizer.step()
"""

KINDS = """
from base import Base

class Mean(Base):
    @classmethod
    def code(cls):
        return "mean"

    def loss(self, batch):
        return self.net(batch).mean()

class Other(Base):
    last = 0

    @classmethod
    def code(cls):
        return "other"

    def loss(self, batch):
        {kept}
        return self.net(batch).square().mean() + self.last

TRAINERS = {{Mean.code(): Mean, Other.code(): Other}}
"""

CHOOSING = """
from elsewhere import options
from kinds import TRAINERS
from torch import nn

def one():
    return nn.Linear(2, 2)

def two():
    return nn.Sequential(nn.Linear(2, 2), nn.Tanh())

NETWORKS = {"mean": one, "other": two}

if __name__ == "__main__":
    kind = options.kind
    trainer = TRAINERS[kind](NETWORKS[kind]())
    while True:
        trainer.epoch(options.batches)
"""


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("pass", ["needless-retain-graph"]),
        ("self.last = self.net(batch).mean().detach()", ["needless-retain-graph"]),
        ("self.last = self.last + batch.mean() * self.net[0].weight.exp().sum()", []),
    ],
)
def test_each_of_what_a_dict_lists_may_be_asked_for(
    kept: str, expected: list[str], tmp_path: Path, options: Options
) -> None:
    write(tmp_path, {"base.py": BASE, "kinds.py": KINDS.format(kept=kept), "main.py": CHOOSING})
    assert codes(tmp_path / "base.py", options) == expected
    # A dict of more than a few may list anything.
    many = (
        "".join(f"NETWORKS['{name}'] = two\n" for name in "abcdefgh") + "TRAINERS.update(NETWORKS)\n\nif __"
    )
    write(tmp_path, {"main.py": CHOOSING.replace("if __", many, 1)})
    assert codes(tmp_path / "base.py", options) == []


MATCHING = """
from torch import nn

def network(kind, pooled):
    layers = [nn.Linear(2, 2)]
    for _ in range(2):
        if len(pooled) > 0:
            match pooled.popleft():
                case "max":
                    layers.append(nn.MaxPool1d(1))
    match kind:
        case "relu":
            layers.append(nn.ReLU())
        case "tanh":
            layers.append(nn.Tanh())
    return nn.Sequential(*layers)
"""


def test_a_pattern_in_an_imported_module(tmp_path: Path, options: Options) -> None:
    imported = f"from networks import network as build\n{TRAINER.format(d_zero='pass')}"
    text = script(imported).replace("return nn.", "return build(input(), []) or nn.")
    write(tmp_path, {"networks.py": MATCHING, "main.py": text})
    assert codes(tmp_path / "main.py", options) == ["missing-zero-grad"]


FOUND_BY_NAME = """
import torch
from torch import nn
{imported}

class Trainer:
    def __init__(self, options):
        self.net = {made}
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def step(self, batch):
        self.optimizer.zero_grad()
        loss = self.net(batch).mean()
        loss.backward(retain_graph=True)
        self.optimizer.step()
"""

NAMING = """
import argparse
import torch
from trainer import Trainer

parser = argparse.ArgumentParser()
parser.add_argument("--model", type=str, default="small")
parser.add_argument("--width", type=int, default=3)
parser.set_defaults(width=4)
options = {options}
trainer = Trainer(options)
for _ in range(10):
    trainer.step(torch.randn(5, 3))
"""

SMALL = """
from torch import nn

class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))

    def forward(self, x):
        return self.layers(x)
"""

FIND = """
import importlib
from torch import nn

def find(name):
    module = importlib.import_module("models." + name + "_net")
    found = None
    wanted = name.replace("_", "") + "net"
    for key, cls in module.__dict__.items():
        if key.lower() == wanted.lower() and issubclass(cls, nn.Module):
            found = cls
    if found is None:
        exit(1)
    return found
"""


@pytest.mark.parametrize(
    ("imported", "made"),
    [
        ("from models import find", "find(options.model)()"),
        ("import importlib", "importlib.import_module(f'models.{options.model}_net').SmallNet()"),
        ("", "getattr(__import__(options.model), options.model.title() + 'Net')()"),
        ("import models.small_net as nets", "getattr(nets, '{}Net'.format('Small'))()"),
    ],
)
def test_a_network_in_a_module_that_an_option_names(
    imported: str, made: str, tmp_path: Path, options: Options
) -> None:
    """The module that is named if nobody gives the option shows what the networks are like."""
    trainer = FOUND_BY_NAME.format(imported=imported, made=made)
    files = {"models/__init__.py": FIND, "models/small_net.py": SMALL, "small.py": SMALL}
    write(tmp_path, {**files, "trainer.py": trainer, "main.py": NAMING.format(options="parser.parse_args()")})
    assert codes(tmp_path / "trainer.py", options) == ["needless-retain-graph"]
    keeps = SMALL.replace(
        "return self.layers(x)", "self.last = self.layers(x + self.last)\n        return self.last"
    )
    keeps = keeps.replace("super().__init__()", "super().__init__()\n        self.last = 0")
    write(tmp_path, {"models/small_net.py": keeps, "small.py": keeps})
    assert "carried-hidden-state" in codes(tmp_path / "trainer.py", options)


def test_options_as_a_dict(tmp_path: Path, options: Options) -> None:
    made = "__import__(options['model']).SmallNet()"
    write(tmp_path, {"small.py": SMALL, "trainer.py": FOUND_BY_NAME.format(imported="", made=made)})
    write(tmp_path, {"main.py": NAMING.format(options="vars(parser.parse_args())")})
    assert codes(tmp_path / "trainer.py", options) == ["needless-retain-graph"]


SETTINGS = """
import json
import torch

class Settings:
    def __init__(self, path):
        self.told = json.load(open(path))

    def make(self, what, module, *given):
        return getattr(module, self.told[what]["kind"])(*given, **self.told[what]["given"])
"""

BY_SETTINGS = """
import sys
import torch
import losses, networks
from settings import Settings
from trainer import Trainer

def main(settings):
    net = settings.make("network", networks)
    optimizer = settings.make("optimizer", torch.optim, net.parameters())
    rates = settings.make("rates", torch.optim.lr_scheduler, optimizer)
    loss = getattr(losses, settings.told["loss"])
    measures = [getattr(losses, name) for name in settings.told["measures"]]
    Trainer(net, optimizer, rates, loss, measures).epochs()

main(Settings(sys.argv[1]))
"""

BY_LOSS = """
class Trainer:
    def __init__(self, net, optimizer, rates, loss, measures):
        self.net, self.optimizer, self.rates = net, optimizer, rates
        self.loss, self.measures = loss, measures

    def epochs(self):
        for epoch in range(100):
            for batch, target in batches():
                {zero}
                out = self.net(batch)
                loss = self.loss(out, target)
                loss.backward({flag})
                self.optimizer.step()
                print([measure(out, target) for measure in self.measures])
            self.rates.step()
"""

MEASURES = """
import torch
import torch.nn.functional as F

def squared(out, target):
    return F.mse_loss(out, target)

def absolute(out, target):
    return F.l1_loss(out, target)
"""

LARGER = (
    SMALL
    + """
class LargeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = SmallNet()
        self.last = nn.Linear(1, 1)

    def forward(self, x):
        return self.last(self.first(x))
"""
)

KEEPING = """
class OtherNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.state = 0

    def forward(self, x):
        self.state = self.layer(x) + self.state
        return self.state
"""


@pytest.mark.parametrize(
    ("zero", "flag", "found"),
    [
        ("self.optimizer.zero_grad()", "", []),
        ("self.optimizer.zero_grad()", "retain_graph=True", ["needless-retain-graph"]),
        ("pass", "", ["missing-zero-grad"]),
    ],
)
@pytest.mark.parametrize("networks", [SMALL, LARGER])
def test_networks_optimizers_and_losses_that_a_file_of_settings_names(
    zero: str, flag: str, found: list[str], networks: str, tmp_path: Path, options: Options
) -> None:
    """What is asked for by a name that nobody knows is one of what the module offers."""
    trainer = BY_LOSS.format(zero=zero, flag=flag)
    write(tmp_path, {"settings.py": SETTINGS, "losses.py": MEASURES, "networks.py": networks})
    write(tmp_path, {"trainer.py": trainer, "main.py": BY_SETTINGS})
    assert codes(tmp_path / "trainer.py", options) == found
    # Of two networks the flag must be needless for both: this one keeps its state.
    write(tmp_path, {"networks.py": networks + KEEPING})
    seen = [code for code in found if code != "needless-retain-graph"]
    assert codes(tmp_path / "trainer.py", options) == seen


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("get('kind', 'SmallNet')", ["needless-retain-graph"]),
        ("get('kind', 'Other3Net')", []),
    ],
)
def test_settings_with_a_default(asked: str, found: list[str], tmp_path: Path, options: Options) -> None:
    """Of more networks than can be tried, the one that is named by default: one keeps a state."""
    script = BY_SETTINGS.replace(
        'settings.make("network", networks)', f"getattr(networks, settings.told.{asked})()"
    )
    networks = SMALL + "".join(KEEPING.replace("Other", f"Other{number}") for number in range(10))
    trainer = BY_LOSS.format(zero="self.optimizer.zero_grad()", flag="retain_graph=True")
    write(tmp_path, {"main.py": script, "settings.py": SETTINGS, "losses.py": MEASURES})
    write(tmp_path, {"networks.py": networks, "trainer.py": trainer})
    assert codes(tmp_path / "trainer.py", options) == found


REGISTERED = """
kinds = {}
for year in ("2007", "2012"):
    kinds["small" + year] = lambda: [1, 2, 3]

def make(kind):
    if kind not in kinds:
        raise KeyError(kind)
    return kinds[kind]()
"""


def test_a_table_that_statements_fill_which_are_not_executed(tmp_path: Path, options: Options) -> None:
    """Nothing is concluded from its being empty before."""
    first = "from registered import make\nsizes = make('small2007')\n"
    write(tmp_path, {"registered.py": REGISTERED, "main.py": first + dedent(EXECUTED)})
    assert codes(tmp_path / "main.py", options) == ["missing-zero-grad"]


EXECUTED = """
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.randn(5, 4, 3):
    net(batch).mean().backward()
    optimizer.step()
"""


MODES = """
import json
from model import Model

class Settings:
    def __init__(self):
        self.told = json.load(open("settings.json"))

    def __getattr__(self, name):
        return self.told[name]

class Work:
    def __init__(self, settings):
        self.settings = settings
        self.model = Model()
        if self.settings.mode == 2:
            self.pictures = json.load(open("test.json"))
        else:
            self.pictures = json.load(open("train.json"))

    def learn(self):
        for picture in self.pictures:
            self.model.learn(*self.model.losses(picture))

    def test(self):
        for picture in self.pictures:
            print(self.model.losses(picture))

def main(settings):
    work = Work(settings)
    if settings.mode == 1:
        work.learn()
    elif settings.mode == 2:
        work.test()

main(Settings())
"""

MODEL = """
import torch
from torch import nn

class Model:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def losses(self, picture):
        return self.net(picture).mean(), self.net(picture).pow(2).mean()

    def learn(self, first, second):
        (first + second).backward()
        self.optimizer.step()
"""


def test_what_is_asked_for_the_data_does_not_settle_whether_anything_is_trained(
    tmp_path: Path, options: Options
) -> None:
    write(tmp_path, {"main.py": MODES, "model.py": MODEL})
    assert codes(tmp_path / "model.py", options) == ["missing-zero-grad"]
    clearing = MODEL.replace("(first", "self.optimizer.zero_grad()\n        (first")
    write(tmp_path, {"model.py": clearing})
    assert not codes(tmp_path / "model.py", options)


RUNNER = """
def keep_going(agent, batches):
    while True:
        if agent.finished:
            break
        agent.step(next(batches))
"""

AGENT = """
import torch

class Agent:
    def __init__(self, make):
        self.net = make()
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.finished = False

    def step(self, batch):
        loss = self.net(batch).mean()
        {before}
        loss.backward()
        {between}
        self.optimizer.step()
"""

MAKING = """
import torch
from torch import nn
from agent import Agent
from runner import keep_going

if __name__ == "__main__":
    keep_going(Agent(lambda: nn.Linear(3, 1)), iter(torch.randn(5, 4, 3)))
"""


def test_a_loop_in_a_module_between_is_one_for_every_file(tmp_path: Path) -> None:
    """Modules are read once for all files: what they repeat does not depend on which file came first."""
    write(tmp_path, {"runner.py": RUNNER, "main.py": MAKING})
    for _ in range(2):
        text = AGENT.format(before="self.optimizer.zero_grad()", between="pass")
        write(tmp_path, {"agent.py": text})
        program = analyze(ast.parse(text), text, tmp_path / "agent.py")
        (run, *_) = program.entry_points[0].runs
        assert [len(e.loops) for e in run.events if isinstance(e, Backward)] == [1, 1]


HANDED_IN = """
import torch

class Learner:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def learn(self, batch):
        loss = self.net(batch).mean()
        loss.backward()
        self.optimizer.step()
"""

ENGINE = """
from learner import Learner

class Engine:
    def __init__(self, net):
        self.net, self.learner = net, Learner(net)

    def turn(self, batch):
        {clears}
        self.learner.learn(batch)
"""


def test_whoever_imports_it_may_clear_what_it_was_handed(tmp_path: Path, options: Options) -> None:
    """A class makes an optimizer for a network that it was handed, and clears nothing itself."""
    write(tmp_path, {"learner.py": HANDED_IN})
    assert codes(tmp_path / "learner.py", options) == ["missing-zero-grad"]
    for clears, expected in (("pass", ["missing-zero-grad"]), ("self.net.zero_grad()", [])):
        traces.look_again()
        write(
            tmp_path, {"engine.py": ENGINE.format(clears=clears), "main.py": "import engine\nprint(engine)\n"}
        )
        assert codes(tmp_path / "learner.py", options) == expected


MEASURING = """
import torch
from torch import nn

def measure(batches):
    judge = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(judge.parameters())
    for batch in batches:
        optimizer.zero_grad()
        judge(batch).mean().backward()
        optimizer.step()
"""

BETWEEN = """
import torch
from torch import nn
import trainer
from ameasure import measure

def network():
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))

def train(batches):
    G, D = network(), network()
    made = trainer.Trainer(G, D, torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters()))
    for _ in range(10):
        made.epoch(batches)
    measure(batches)
"""


def test_what_another_file_was_led_to_by_is_read_anew(tmp_path: Path, options: Options) -> None:
    """What a module between has imported for another file stands for the file at hand when that comes."""
    files = {"trainer.py": FAULTY, "ameasure.py": MEASURING, "between.py": BETWEEN}
    write(
        tmp_path,
        {**files, "main.py": "import torch\nfrom between import train\n\ntrain(torch.randn(5, 3, 2))\n"},
    )
    assert codes(tmp_path / "trainer.py", options) == ["missing-zero-grad"]
    traces.look_again()
    assert codes(tmp_path, options) == ["missing-zero-grad"]
