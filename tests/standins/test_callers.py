"""Training functions that nobody calls: by the project's own script, by what their bodies say, or not."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from gradfix.codemod import Claim
from gradfix.verify import runner
from gradfix.verify.recording import Recording
from gradfix.verify.runner import Job, Limits, Manner, Runner

LIMITS = Limits(steps=4, backwards=10, seconds=20.0)


def run(running: Runner, path: Path, source: str, manner: Manner = "small") -> Recording:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    (found,) = running.run([Job(path, textwrap.dedent(source), limits=LIMITS, manner=manner)])
    return found


def steps(found: Recording) -> int:
    return len([step for step in found.steps if step.consumes])


TRAINER = """
    import torch
    class Trainer:
        def __init__(self, net, rate):
            self.net, self.optimizer = net, torch.optim.SGD(net.parameters(), lr=rate)
        def fit(self, batches):
            for batch in batches:
                self.optimizer.zero_grad()
                self.net(batch).sum().backward()
                self.optimizer.step()
"""
MAIN = """
    import argparse
    import torch
    from trainer import Trainer
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, required=True)
    if __name__ == "__main__":
        width = parser.parse_args().width
        Trainer(torch.nn.Linear(width, 2), 0.1).fit([torch.ones(3, width)] * 4)
"""


def test_a_module_is_run_through_the_script_that_imports_it(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(textwrap.dedent(MAIN))
    (tmp_path / "evaluate.py").write_text(
        "import trainer\nif __name__ == '__main__':\n    raise ValueError\n"
    )
    found = run(running, tmp_path / "trainer.py", TRAINER)
    assert steps(found) == 4, found.uncaught
    assert "a caller of trainer.py: main.py" in found.standins
    assert found.steps[0].place.line == 10, "the step stands in the file under test"


COMMAND = """
    import argparse
    import torch
    from fit.trainer import Trainer
    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--width", type=int, required=True)
        width = parser.parse_args().width
        Trainer(torch.nn.Linear(width, 2), 0.1).fit([torch.ones(3, width)] * 4)
"""
INSTALLED = {
    "setup.py": "setup(name='fit', entry_points={'console_scripts': ['fit = fit.cli:main']})\n",
    "pyproject.toml": '[project.scripts]\nfit = "fit.cli:main"\n',
}


@pytest.mark.parametrize("name", INSTALLED)
def test_a_module_is_run_through_the_command_that_is_installed(
    name: str, running: Runner, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(INSTALLED[name])
    package = tmp_path / "fit"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "cli.py").write_text(textwrap.dedent(COMMAND))
    found = run(running, package / "trainer.py", TRAINER)
    assert steps(found) == 4, found.uncaught
    assert "a caller of trainer.py: fit/cli.py" in found.standins
    found = run(running, package / "cli.py", COMMAND)
    assert steps(found) == 4, found.uncaught
    assert "a caller of main: the command of the project that calls it" in found.standins


def test_the_script_gets_the_text_under_test(running: Runner, tmp_path: Path) -> None:
    """What is verified is a text that is not on the disk."""
    (tmp_path / "main.py").write_text(textwrap.dedent(MAIN))
    (tmp_path / "trainer.py").write_text("raise RuntimeError('the text on the disk')\n")
    source = textwrap.dedent(TRAINER)
    for manner in ("small", "full"):
        (found,) = running.run([Job(tmp_path / "trainer.py", source, limits=LIMITS, manner=manner)])
        assert steps(found) == 4, found.uncaught


def test_through_a_package_and_a_script_between(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    package = tmp_path / "code"
    package.mkdir()
    (package / "__init__.py").write_text("from .trainer import Trainer\n")
    (package / "work.py").write_text(
        "import torch\nfrom . import Trainer\ndef work():\n"
        "    Trainer(torch.nn.Linear(2, 2), 0.1).fit([torch.ones(3, 2)] * 4)\n"
    )
    (package / "start.py").write_text("from .work import work\nif __name__ == '__main__':\n    work()\n")
    found = run(running, package / "trainer.py", TRAINER)
    assert steps(found) == 4, found.uncaught
    assert any(one.startswith("python -m") for one in found.standins)


def test_a_script_of_older_python_is_read_as_it_is_written_today(running: Runner, tmp_path: Path) -> None:
    older = "def work(net, async=True):\n    print 'working', async\n    return net\nwork(1, async=False)\n"
    (tmp_path / "main.py").write_text(textwrap.dedent(MAIN) + older)
    found = run(running, tmp_path / "trainer.py", TRAINER)
    assert steps(found) == 4, found.uncaught
    assert "a caller of trainer.py: main.py" in found.standins


def test_the_script_with_the_modules_name_comes_first(running: Runner, tmp_path: Path) -> None:
    for name in ("a.py", "with_coach.py"):
        (tmp_path / name).write_text(textwrap.dedent(MAIN.replace("from trainer", "from coach")))
    found = run(running, tmp_path / "coach.py", TRAINER)
    assert steps(found) == 4, found.uncaught
    assert [one for one in found.standins if "caller" in one] == ["a caller of coach.py: with_coach.py"]


BY_SETTINGS = """
    import hydra
    import torch
    @hydra.main(config_path="config", config_name="train")
    def main(cfg):
        trainer = hydra.utils.instantiate(cfg.trainer, net=torch.nn.Linear(2, 2))
        trainer.fit([torch.ones(3, 2)] * 4)
    if __name__ == "__main__":
        main()
"""


def test_a_module_is_run_through_the_script_whose_settings_name_it(running: Runner, tmp_path: Path) -> None:
    """The settings lie beside that script, not beside the module."""
    (tmp_path / "README.md").write_text("")
    (tmp_path / "config").mkdir()
    settings = "trainer:\n  _target_: parts.trainer.Trainer\n  rate: 0.1\n"
    (tmp_path / "config" / "train.yaml").write_text(settings)
    (tmp_path / "start.py").write_text(textwrap.dedent(BY_SETTINGS))
    found = run(running, tmp_path / "parts" / "trainer.py", TRAINER)
    assert steps(found) == 4, found.uncaught
    assert "a caller of trainer.py: start.py" in found.standins


def test_a_script_that_trains_without_the_file_says_nothing_of_it(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "import torch\nimport trainer\nnet = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(9):\n    net(torch.ones(3, 2)).sum().backward()\n    optimizer.step()\n"
    )
    found = run(running, tmp_path / "trainer.py", TRAINER)
    assert found.steps != ()
    assert (runner.obstacle(found) or "").startswith("nothing in this file trained")


@pytest.mark.parametrize("found", ["eval(args.coach)", "globals()[args.coach]", "getattr(parts, args.coach)"])
def test_an_option_names_the_class_that_the_file_defines(found: str, running: Runner, tmp_path: Path) -> None:
    """Settings that go with the other class by their name are replaced by those that go with this one."""
    files = {
        "README.md": "",
        "settings/deep.yml": "width: 3\n",
        "settings/wide.yml": "width: 2\n",
        "parts/__init__.py": "from parts.wide import *\nfrom parts.deep import *\n",
        "parts/deep.py": "class DeepCoach:\n    def __init__(self, net, rate):\n        raise ValueError\n",
        "main.py": textwrap.dedent(f"""
            import argparse
            import torch
            import parts
            from parts import *
            parser = argparse.ArgumentParser()
            parser.add_argument("--coach", default="DeepCoach")
            parser.add_argument("--settings", default="deep.yml")
            parser.add_argument("--kind", default="Linear")
            args = parser.parse_args()
            width = int(open("settings/" + args.settings).read().split()[1])
            net = getattr(torch.nn, args.kind)(width, 2)
            {found}(net, 0.1).fit([torch.ones(3, 2)] * 4)
        """),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    got = run(running, tmp_path / "parts" / "wide.py", TRAINER.replace("Trainer", "WideCoach"))
    assert steps(got) == 4, (got.uncaught, got.output)
    assert {"argument coach: 'WideCoach'", "argument settings: 'wide.yml'"} <= {*got.standins}


def test_the_next_script_runs_where_one_trains_without_the_file(running: Runner, tmp_path: Path) -> None:
    alone = (
        "import torch\nimport trainer\nnet = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(9):\n    net(torch.ones(3, 2)).sum().backward()\n    optimizer.step()\n"
    )
    (tmp_path / "main.py").write_text(alone)
    (tmp_path / "train_jobs.py").write_text(textwrap.dedent(MAIN))
    source = textwrap.dedent(TRAINER)
    (tmp_path / "trainer.py").write_text(source)
    job = runner.planned(running, Job(tmp_path / "trainer.py", source, limits=LIMITS, manner="small"))
    (found,) = running.run([job])
    assert steps(found) == 4 and runner.obstacle(found) is None, found.uncaught
    assert "a caller of trainer.py: train_jobs.py" in found.standins
    # Where none trains with it, the likeliest one is what the reason names.
    (tmp_path / "train_jobs.py").write_text(alone)
    job = runner.planned(running, replace(job, plan="", seed=1))
    (found,) = running.run([job])
    reason = runner.obstacle(found) or ""
    assert reason.startswith("nothing in this file trained") and reason.endswith("main.py)"), reason


README = """\
# A trainer

```console
$ python -c 'from trainer import Trainer'
```

```python
import torch
import torch.nn as nn

net = nn.Linear(2, 2)  # Something else.
nn.Parameter(net)
```

```python
import torch
from trainer import Trainer

Trainer(torch.nn.Linear(2, 2), 0.1).fit([torch.ones(3, 2)] * 4)
```
"""


def test_the_readme_shows_how_it_is_called(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(README)
    found = run(running, tmp_path / "trainer.py", TRAINER)
    assert steps(found) == 4, found.uncaught
    assert "a caller of trainer.py: README.md" in found.standins


def test_an_example_calls_before_a_test_does(running: Runner, tmp_path: Path) -> None:
    """A test may put something in the place of what trains, or need what nobody has."""
    for folder in ("examples", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "examples" / "sample_and_demonstrate.py").write_text(
        "import torch\nfrom trainer import Trainer\nif __name__ == '__main__':\n"
        "    Trainer(torch.nn.Linear(2, 2), 0.1).fit([torch.ones(3, 2)] * 4)\n"
    )
    (tmp_path / "tests" / "test_it.py").write_text(
        "from nowhere_to_be_had import rate\nfrom trainer import Trainer\nassert float(rate)\n"
        "if __name__ == '__main__':\n    Trainer(None, rate)\n"
    )
    found = run(running, tmp_path / "trainer.py", TRAINER)
    assert steps(found) == 4, (found.uncaught, found.standins)


FUNCTION = """
    import torch
    import torch.nn.functional as F
    class Picture(torch.nn.Module):
        def __init__(self, classes=10):
            super().__init__()
            self.first = torch.nn.Conv2d(1, 4, 3)
            self.last = torch.nn.Linear(4 * 26 * 26, classes)
        def forward(self, x):
            return self.last(self.first(x).flatten(1))
    def train(model, device, loader, optimizer, epochs, args, log):
        model.train()
        for epoch in range(epochs):
            for number, (picture, label) in enumerate(loader):
                picture, label = picture.to(device), label.to(device)
                optimizer.zero_grad()
                loss = F.cross_entropy(model(picture), label)
                loss.backward()
                optimizer.step()
                if number % args.log_interval == 0:
                    log.info(loss.item())
"""


def test_arguments_are_what_the_body_does_with_them(running: Runner, tmp_path: Path) -> None:
    found = run(running, tmp_path / "script.py", FUNCTION)
    assert steps(found) >= 2, (found.uncaught, found.output)
    (told,) = [one for one in found.standins if one.startswith("a caller of train")]
    assert "model=Picture" in told and "optimizer=SGD" in told and "epochs=2" in told


LOSS = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(6, 3)
        def forward(self, x):
            return self.layer(x)
    def train(net, loader, criterion, optimizer):
        right = 0
        for x, wanted in loader:
            optimizer.zero_grad()
            answer = net(x)
            criterion(answer, wanted).backward()
            optimizer.step()
            LOG
"""
"""A function that is given its loss; ``LOG`` is what it says of its batches."""


def loss_of(found: Recording) -> str:
    """The class of the loss that a caller was derived with."""
    (told,) = [one for one in found.standins if one.startswith("a caller of train")]
    return told.partition("criterion=")[2].partition(",")[0]


def test_a_loss_is_over_classes_if_the_body_compares_classes(running: Runner, tmp_path: Path) -> None:
    source = LOSS.replace("LOG", "right += int((answer.argmax(1) == wanted).sum())")
    found = run(running, tmp_path / "script.py", source)
    assert steps(found) == 4, (found.uncaught, found.output)
    assert loss_of(found) == "CrossEntropyLoss"


def test_a_loss_is_the_one_that_the_project_gives_to_its_name(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import torch\ncriterion = torch.nn.L1Loss().cuda()\n")
    found = run(running, tmp_path / "script.py", LOSS.replace("LOG", "pass"))
    assert steps(found) == 4, (found.uncaught, found.output)
    assert loss_of(found) == "L1Loss"


def test_an_unknown_loss_is_another_one_for_each_seed(running: Runner, tmp_path: Path) -> None:
    source = textwrap.dedent(LOSS.replace("LOG", "pass"))
    jobs = [Job(tmp_path / "script.py", source, limits=LIMITS, manner="full", seed=one) for one in range(3)]
    found = running.run(jobs)
    assert [steps(one) for one in found] == [4, 4, 4]
    assert len({loss_of(one) for one in found}) == 3


def test_what_holds_for_some_losses_only_is_not_proved(tmp_path: Path) -> None:
    """Of a squared error both sides may be exchanged, of a difference they may not."""
    before = textwrap.dedent(LOSS.replace("LOG", "pass"))
    after = before.replace("criterion(answer, wanted)", "criterion(wanted, answer)")
    evidence = runner.verify_rewrite(
        tmp_path / "script.py", before, after, Claim(), "preserves", python=sys.executable, limits=LIMITS
    )
    assert evidence.outcome == "refuted", evidence.lines()


def test_a_trainer_is_made_and_its_outermost_method_called(running: Runner, tmp_path: Path) -> None:
    source = """
        import torch
        class Net(torch.nn.Module):
            def __init__(self, in_dim, hidden_dim):
                super().__init__()
                self.table = torch.nn.Embedding(20, in_dim)
                self.unit = torch.nn.GRU(in_dim, hidden_dim, batch_first=True)
            def forward(self, words):
                return self.unit(self.table(words))[0]
        class Worker:
            def __init__(self, net: Net, lr: float):
                self.net = net
                self.optimizer = torch.optim.Adam(net.parameters(), lr=lr)
                net.train()
            def one(self, words):
                self.optimizer.zero_grad()
                self.net(words).pow(2).mean().backward()
                self.optimizer.step()
            def work(self, rounds):
                for _ in range(rounds):
                    self.one(torch.ones(2, 3, dtype=torch.long))
    """
    found = run(running, tmp_path / "script.py", source)
    assert steps(found) == 2, (found.uncaught, found.output)


def test_what_an_object_keeps_is_what_its_methods_do_with_it(running: Runner, tmp_path: Path) -> None:
    source = """
        import torch
        class Critic(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Linear(5, 1))
            def forward(self, x):
                return self.layers(x)
        class Learner:
            def __init__(self, critic, optimizer, data, epochs):
                self.model, self.data, self.epochs = None, data, epochs
                self.model = critic
                self.optimizer = optimizer
                self.data = data
            def train(self):
                self.model.train()
                for x, y in self.data:
                    self.optimizer.zero_grad()
                    (self.model(x) - y).pow(2).mean().backward()
                    self.optimizer.step()
            def repeat(self, rounds):
                for _ in range(rounds):
                    self.train()
    """
    found = run(running, tmp_path / "script.py", source)
    assert steps(found) == 4, (found.uncaught, found.output)
    assert any("optimizer=SGD, data=Batches" in one and "rounds=2" in one for one in found.standins)


@pytest.mark.parametrize(
    ("argument", "use"),
    [
        ("memory", "states = memory.sample(32).float()"),
        ("states", "states = states.clone()"),
        ("args", "states = args.source.read()"),
    ],
)
def test_what_nothing_tells_is_named_and_not_made_up(
    argument: str, use: str, running: Runner, tmp_path: Path
) -> None:
    source = f"""
        import torch
        net = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        def learn({argument}):
            {use}
            optimizer.zero_grad()
            net(states).sum().backward()
            optimizer.step()
    """
    found = run(running, tmp_path / "script.py", source)
    assert found.steps == ()
    reason = runner.obstacle(found) or ""
    assert reason.startswith("nothing calls learn, and nothing says what its argument " + argument), reason
    assert reason.endswith("at line 5")


def test_a_class_whose_file_only_makes_an_object_of_it_is_trained_by_who_imports_it(
    running: Runner, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text(textwrap.dedent(MAIN))
    made = textwrap.dedent(TRAINER) + 'if __name__ == "__main__":\n    Trainer(torch.nn.Linear(2, 2), 0.1)\n'
    found = run(running, tmp_path / "trainer.py", made)
    assert steps(found) == 4, (found.uncaught, found.output)
    assert "a caller of trainer.py: main.py" in found.standins


CHOICES = {
    "branches": """
        if args.policy == "other":
            Kind = Other
        elif args.policy in ("trainer", "coach"):
            Kind = Trainer
        """,
    "a dictionary": """
        Kind = {"other": Other, "trainer": Trainer}[args.policy.lower()]
        """,
    "a part of a condition": """
        Kind = Other
        if args.policy == "test":
            Trainer.test()
        if args.policy == "trainer" and args.width > 1:
            Kind = Trainer
        """,
    "what is taken anyhow": """
        if args.policy == "nothing":
            raise SystemExit(Trainer)
        Kind = Trainer
        if args.policy == "other":
            print(Trainer)
        """,
}


@pytest.mark.parametrize("name", CHOICES)
def test_an_option_takes_what_is_asked_about(name: str, running: Runner, tmp_path: Path) -> None:
    main = """
        import argparse
        import torch
        from trainer import Trainer
        class Other:
            def __init__(self, net, rate):
                pass
            def fit(self, batches):
                loss = torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum().backward()
        parser = argparse.ArgumentParser()
        parser.add_argument("--policy", default="other")
        parser.add_argument("--width", type=int, default=3)
        args = parser.parse_args()
        """
    end = """
        Kind(torch.nn.Linear(args.width, 2), 0.1).fit([torch.ones(3, args.width)] * 4)
        """
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "main.py").write_text("".join(map(textwrap.dedent, (main, CHOICES[name], end))))
    found = run(running, tmp_path / "trainer.py", TRAINER)
    assert steps(found) == 4, (found.uncaught, found.output)
    chosen = [one for one in found.standins if one.startswith("argument policy")]
    assert chosen == ([] if "anyhow" in name else ["argument policy: 'trainer'"])


def test_options_that_a_module_in_between_asks_about(running: Runner, tmp_path: Path) -> None:
    main = """
        import argparse
        import torch
        from makers import create
        parser = argparse.ArgumentParser()
        parser.add_argument("--kind", default="other")
        parser.add_argument("--pairs", default="none")
        model = create(parser.parse_args())
        for _ in range(3):
            model.set_input(torch.ones(2, 3))
            model.optimize()
        """
    makers = """
        def create(opt):
            if opt.kind == "other":
                from other import Other
                return Other()
            elif opt.kind == "trainer":
                assert opt.pairs == "aligned"
                from trainer import Trainer
                return Trainer()
        """
    other = """
        class Other:
            def set_input(self, values):
                pass
            optimize = print
        """
    trainer = """
        import torch
        class Trainer:
            def __init__(self):
                self.model = torch.nn.Linear(3, 1)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
            def set_input(self, values):
                self.values = values
            def optimize(self):
                self.optimizer.zero_grad()
                self.model(self.values).mean().backward()
                self.optimizer.step()
        """
    for name, text in {"main.py": main, "makers.py": makers, "other.py": other}.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    found = run(running, tmp_path / "trainer.py", textwrap.dedent(trainer))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "argument kind: 'trainer'" in found.standins
