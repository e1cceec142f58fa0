"""Scripts without their libraries and without what their files hold get to their steps."""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from gradfix.codemod import Claim
from gradfix.verify import runner
from gradfix.verify.runner import Job, Limits, Runner, hopeless, planned, search
from tests.standins.agents import AGENTS
from tests.standins.commons import COMMONS
from tests.standins.former import FORMER
from tests.standins.further import FURTHER
from tests.standins.games import GAMES
from tests.standins.later import LATER
from tests.standins.libraries import LIBRARIES, LOOP
from tests.standins.newer import NEWER
from tests.standins.older import OLDER
from tests.standins.own import OWN
from tests.standins.programs import program
from tests.standins.seen import BESIDE, BEYOND, CUT, DRAWN, NOTHING, PARTED, SEEN
from tests.standins.test_standins import digests, installed
from tests.standins.trainers import TRAINERS
from tests.standins.tries import TRIES
from tests.standins.vision import VISION
from tests.standins.wild import WILD

LIMITS = Limits(steps=3, backwards=10, seconds=20.0)
SCRIPTS = {**LIBRARIES, **FURTHER, **NEWER, **WILD, **TRIES, **COMMONS, **TRAINERS, **LATER, **SEEN, **VISION}
WHOLE = {**FORMER, **OWN, **GAMES, **OLDER, **AGENTS}


def job(folder: Path, source: str, **options: object) -> Job:
    return Job(folder / "script.py", source, limits=LIMITS, **{"manner": "small", **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SCRIPTS)
def test_reaches_its_steps_and_says_what_was_replaced(name: str, running: Runner, tmp_path: Path) -> None:
    source, replaced = SCRIPTS[name]
    (found,) = running.run([planned(running, job(tmp_path, source))])
    assert len([step for step in found.steps if step.consumes]) >= 2, (found.uncaught, found.output)
    told = [one.split(": ")[0] for one in found.standins]
    assert [what for what in replaced if what not in told and not installed(what.split(" ")[0])] == []
    assert not any(str(tmp_path) in one for one in found.standins)


@pytest.mark.parametrize("name", WHOLE)
def test_reaches_its_steps_with_all_of_its_own_code(name: str, running: Runner, tmp_path: Path) -> None:
    source, replaced = WHOLE[name]
    found = planned(running, job(tmp_path, source))
    assert [place for place in json.loads(found.plan or "{}") if place.startswith("code of")] == []
    (recording,) = running.run([found])
    assert len([step for step in recording.steps if step.consumes]) >= 2, (
        recording.uncaught,
        recording.output,
    )
    told = [one.split(": ")[0] for one in recording.standins]
    assert [what for what in replaced if what not in told and not installed(what.split(" ")[0])] == []


def test_pictures_are_large_enough_for_what_is_cut_of_them(running: Runner, tmp_path: Path) -> None:
    (found,) = running.run([planned(running, job(tmp_path, CUT))])
    assert len(found.steps) == 3 and "file shots/*.png: a picture of 512 x 512" in found.standins


def test_there_are_as_many_samples_as_are_asked_for(running: Runner, tmp_path: Path) -> None:
    found = planned(running, job(tmp_path, BEYOND))
    assert len(running.run([found])[0].steps) == 3 and json.loads(found.plan)["samples"] == {"count": 1024}


def test_what_stands_beside_channels_is_as_wide_as_the_layer_takes(running: Runner, tmp_path: Path) -> None:
    found = planned(running, job(tmp_path, BESIDE))
    assert len(running.run([found])[0].steps) == 3
    assert json.loads(found.plan)["attributes.pkl['kinds']"] == {"dims": [64, 6]}


def test_there_are_more_samples_where_more_are_drawn(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("    python script.py --each 300\n")
    (first,) = running.run([job(tmp_path, DRAWN)])
    assert json.loads(first.plan).keys() == {"samples", "plans before this one"}
    (found,) = running.run([job(tmp_path, DRAWN, plan=first.plan)])
    assert len(found.steps) == 3, (found.uncaught, found.output)


def test_there_are_all_samples_where_none_are_left_of_fewer(running: Runner, tmp_path: Path) -> None:
    found = planned(running, job(tmp_path, PARTED))
    assert json.loads(found.plan)["samples"] == {"more": "all of them"}
    (recording,) = running.run([found])
    assert len(recording.steps) == 3, (recording.uncaught, recording.output)


def test_a_run_that_fails_beside_a_tensor_without_sizes_ends_as_it_should(
    running: Runner, tmp_path: Path
) -> None:
    found = planned(running, job(tmp_path, NOTHING))
    (recording,) = running.run([found])
    assert recording.ending == "error", (recording.ending, recording.output)


def test_how_sure_a_mean_is() -> None:
    """The quantiles are those of the tables (https://www.itl.nist.gov/div898/handbook/eda/section3/eda3672.htm)."""
    stats = pytest.importorskip("gradfix.verify.standins.modules.scipy.stats", reason="it needs numpy")
    for freedom, bound in ((1, 12.706), (2, 4.303), (3, 3.182), (10, 2.228), (100, 1.984)):
        assert abs(stats.t.ppf(0.975, freedom) - bound) < 6e-4
        assert abs(stats.t._ppf(0.975, freedom) + stats.t.ppf(0.025, freedom)) < 1e-6
        assert abs(stats.t.cdf(bound, freedom) - 0.975) < 1e-4
    low, high = stats.t.interval(0.95, 10, loc=3.0, scale=2.0)
    assert abs(high - 3.0 - 2 * 2.228) < 2e-3 and abs(high + low - 6.0) < 1e-9
    assert abs(stats.norm.interval(0.95)[1] - 1.96) < 1e-4


SHAPES = program(
    """
    import numpy as np
    values = np.load("values.npy")
    models = [torch.nn.Linear(784, 10)]
    def loss():
        return models[0](torch.from_numpy(values[:4]).float()).pow(2).mean()
    """,
    LOOP,
)


def test_an_error_names_the_shape_with_which_the_run_is_repeated(running: Runner, tmp_path: Path) -> None:
    first = job(tmp_path, SHAPES)
    (stopped,) = running.run([first])
    assert stopped.steps == () and "cannot be multiplied" in (runner.obstacle(stopped) or "")
    (repeated,) = running.run([replace(first, plan=stopped.plan)])
    assert len(repeated.steps) == 3 and repeated.steps[0].parameters[0].value.shape == (10, 784)


def test_pictures_whose_sides_are_made_up_stay_square(running: Runner, tmp_path: Path) -> None:
    source = program(
        """
        import pickle
        values = torch.as_tensor(pickle.load(open("pictures.pkl", "rb"))["images"]).float()
        models = [torch.nn.Conv2d(2, 2, 1)]
        def loss():
            return models[0](torch.cat([torch.ones(4, 1, 28, 28), values[:4]], dim=1)).mean()
        """,
        LOOP,
    )
    place = "pictures.pkl['images']"
    plan = json.dumps({place: {"dims": [64, 1, 32, 32]}})
    (stopped,) = running.run([job(tmp_path, source, plan=plan)])
    assert json.loads(stopped.plan)[place]["dims"] == [64, 1, 28, 28]


@pytest.mark.parametrize(
    ("drawn", "count"),
    [
        ("random.randint(0, len(values) - 4000)", 8192),
        ("int(torch.randint(len(values) - 900, (1,)))", 1024),
        ("np.random.randint(0, len(values) - 900)", 1024),
    ],
)
def test_there_is_enough_to_cut_pieces_of(drawn: str, count: int, running: Runner, tmp_path: Path) -> None:
    source = program(f"""
        import pickle
        import random
        import numpy as np
        values = np.array(pickle.load(open("sounds.pkl", "rb"))["values"])
        first = {drawn}
        def batch():
            return torch.from_numpy(values[first : first + 4]).float()
    """)
    (stopped,) = running.run([job(tmp_path, source)])
    assert json.loads(stopped.plan)["samples"] == {"count": count}
    (found,) = running.run([job(tmp_path, source, plan=stopped.plan)])
    assert len(found.steps) == 3, found.uncaught


def test_the_same_plan_and_seed_give_the_same_content_and_another_seed_another(
    running: Runner, tmp_path: Path
) -> None:
    plan = planned(running, job(tmp_path, SHAPES)).plan
    first, again, other = running.run(
        [
            job(tmp_path, SHAPES, plan=plan),
            job(tmp_path, SHAPES + "# again\n", plan=plan),
            job(tmp_path, SHAPES, plan=plan, seed=1),
        ]
    )
    # The script seeds nothing itself: the weights come from the seed of the run as well.
    assert digests(first) == digests(again) != []
    assert digests(first) != digests(other)


def test_a_fix_of_a_script_whose_file_is_absent_is_proved(tmp_path: Path) -> None:
    before = SHAPES.replace(".backward()", ".backward(retain_graph=True)")
    evidence = runner.verify_rewrite(
        tmp_path / "script.py", before, SHAPES, Claim(), "preserves", python=sys.executable, limits=LIMITS
    )
    assert evidence.outcome == "proved", evidence.lines()
    assert "content of values.npy: values made up as they are used" in evidence.standins


ANOTHER_WAY = program("""
    import pickle
    try:
        kept = pickle.load(open("state.pkl", "rb"))
    except FileNotFoundError:
        kept = None
    def batch():
        assert kept is None
        return torch.ones(2, 2)
""")


def test_a_script_that_can_do_without_a_file_does_without(running: Runner, tmp_path: Path) -> None:
    (found,) = running.run([job(tmp_path, ANOTHER_WAY)])
    assert len(found.steps) == 3 and found.standins == ()


@pytest.mark.parametrize("name", ["config.json", "settings.yaml", "hparams.pkl"])
def test_settings_are_not_made_up(name: str, running: Runner, tmp_path: Path) -> None:
    source = program(f"""
        given = open("{name}").read()
        def batch():
            return torch.ones(2, len(given))
    """)
    (found,) = running.run([job(tmp_path, source)])
    assert found.steps == () and f"needs the file {name}" in (runner.obstacle(found) or "")


ONES = """
    def batch():
        return torch.ones(2, 2)
"""


def test_what_would_be_compiled_has_no_values(running: Runner, tmp_path: Path) -> None:
    """A module of the project with a source to compile is passed around, and so is another missing one."""
    (tmp_path / "paths").mkdir()
    (tmp_path / "paths" / "__init__.py").write_text("from .core import find\n")
    (tmp_path / "paths" / "core.pyx").write_text("")
    source = program("import paths\npaths.find([1, 2])\n" + textwrap.dedent(ONES))
    (found,) = running.run([job(tmp_path, source)])
    assert len(found.steps) == 3, found.uncaught
    assert "compiled code paths.core: objects without values" in found.standins
    needing = program("import paths\nif paths.find([1, 2]):\n    pass\n" + textwrap.dedent(ONES))
    (stopped,) = running.run([job(tmp_path, needing)])
    assert stopped.steps == () and "its values are needed" in (runner.obstacle(stopped) or "")
    (tmp_path / "paths" / "core.pyx").unlink()
    (missing,) = running.run([job(tmp_path, source + "# again\n")])
    assert len(missing.steps) == 3 and "paths.core: objects without values" in missing.standins
    (stopped,) = running.run([job(tmp_path, needing + "# again\n")])
    assert stopped.steps == () and "paths.core is missing" in (runner.obstacle(stopped) or "")


def test_the_project_is_where_what_a_script_imports_is(tmp_path: Path) -> None:
    """Where no file says where a project begins, its imports of packages do; a single module does not."""
    (tmp_path / "work" / "reading").mkdir(parents=True)
    (tmp_path / "work" / "scripts").mkdir()
    script = tmp_path / "work" / "scripts" / "train.py"
    script.write_text("from reading.pictures import Pictures\n")
    assert runner.project_root(script) == script.parent
    (tmp_path / "work" / "reading" / "pictures.py").write_text("class Pictures: ...\n")
    assert runner.project_root(script) == tmp_path / "work"
    script.write_text("from reading import pictures\n")
    assert runner.project_root(script) == script.parent


def test_what_an_example_needs_may_be_listed_beside_it(tmp_path: Path) -> None:
    """A ``requirements.txt`` of an example makes no project of it where it imports the project's package."""
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "__init__.py").write_text("")
    script = tmp_path / "examples" / "pictures" / "train.py"
    script.parent.mkdir(parents=True)
    (script.parent / "requirements.txt").write_text("pillow\n")
    script.write_text("import torch\nfrom networks import core\n")
    assert runner.project_root(script) == tmp_path
    script.write_text("import torch\n")
    assert runner.project_root(script) == script.parent
    (script.parent / "networks").mkdir()
    script.write_text("import torch\nfrom networks import core\n")
    assert runner.project_root(script) == script.parent


def test_settings_are_those_that_fit_the_script(running: Runner, tmp_path: Path) -> None:
    """An absent file of settings is the project's one that has what the script asks for, never another."""
    (tmp_path / "configs").mkdir()
    held = {"wide": 5, "deep": 2, "rate": 0.1}
    (tmp_path / "configs" / "plain.json").write_text(json.dumps(held, indent=1))
    (tmp_path / "configs" / "other.json").write_text(json.dumps({"colour": 1}, indent=1))
    source = program("""
        import json
        held = json.load(open("settings.json"))
        wide, deep, rate = held["wide"], held["deep"], held["rate"]
        def batch():
            return torch.ones(2, wide)
    """)
    (found,) = running.run([job(tmp_path, source)])
    assert len(found.steps) == 3, found.uncaught
    assert "settings settings.json: the project's configs/plain.json" in found.standins
    (tmp_path / "configs" / "plain.json").write_text(json.dumps({"wide": 5}, indent=1))
    (stopped,) = running.run([job(tmp_path, source + "# again\n")])
    assert stopped.steps == () and "settings.json" in (runner.obstacle(stopped) or "")


def test_older_yaml_is_read(running: Runner, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("mean: !!python/tuple [0.5, 0.25]\n")
    source = program("""
        import yaml
        held = yaml.load(open("config.yaml"))
        def batch():
            assert held["mean"] == (0.5, 0.25)
            return torch.ones(2, 2)
    """)
    (found,) = running.run([job(tmp_path, source)])
    assert len(found.steps) == 3, found.uncaught


MISSING = """
    import instrument_of_nobody
    if instrument_of_nobody.rule():
        print("it rules")
    def batch():
        return torch.ones(2, 2)
"""
OWN_SIZE = """
    batch_size = 32
    def batch():
        rows = torch.ones(batch_size, 2)
        assert len(rows) == 32
        return rows
"""


@pytest.mark.parametrize(("text", "hopes"), [(MISSING, False), (OWN_SIZE, True)])
def test_what_no_sizes_can_mend_is_given_up(text: str, hopes: bool, running: Runner, tmp_path: Path) -> None:
    """A module without values is missing in every manner; what only fits the script's own sizes is not."""
    found, last = search(running, job(tmp_path, program(text)))
    assert running.run([found])[0].steps == ()
    assert hopeless(running, last) is not hopes


HOOKS = """
    import pytorch_lightning as pl
    said = []
    def saying(what):
        return lambda self, *args: said.append(what)
    class Watch(pl.Callback):
        on_before_zero_grad, on_after_backward = saying("zero?"), saying("backward!")
        on_before_optimizer_step, on_train_batch_end = saying("step?"), saying("end!")
    class Step(torch.optim.SGD):
        def step(self, closure):
            said.append("step")
            super().step(closure)
    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
        def training_step(self, batch, index):
            said.append("forward %d" % index)
            return self.layer(batch[0]).mean()
        def configure_optimizers(self):
            rate = Step(self.parameters(), 0.1)
            return [rate], [torch.optim.lr_scheduler.StepLR(rate, 1)]
        on_before_zero_grad, on_before_backward = saying("zero"), saying("backward")
        on_before_optimizer_step, lr_scheduler_step = saying("stepping"), saying("rate")
        def configure_gradient_clipping(
            self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None
        ):
            said.append(gradient_clip_val)
        def on_train_epoch_end(self):
            begun = ["zero?", "zero", "backward", "backward!"]
            stepped = ["step?", "stepping", 0.5]
            assert said == [
                *["forward 0", *begun, "end!"],
                *["step", "forward 1", "backward", "backward!", *stepped, "end!"],
                *["step", "forward 2", *begun, *stepped, "rate", "end!"],
            ], said
            print("as in the real one")
    data = torch.utils.data.TensorDataset(torch.ones(6, 2))
    trainer = pl.Trainer(max_epochs=1, accumulate_grad_batches=2, gradient_clip_val=0.5, callbacks=[Watch()])
    trainer.fit(Net(), torch.utils.data.DataLoader(data, batch_size=2))
    """


def test_hooks_are_called_when_lightning_calls_them(running: Runner, tmp_path: Path) -> None:
    """The order is the one that pytorch_lightning 2.6.6 takes, with which this script was run too."""
    limits = Limits(steps=9, backwards=20, seconds=20.0)
    script = replace(job(tmp_path, program(HOOKS, ""), manner="full"), limits=limits)
    (found,) = running.run([script])
    assert found.uncaught is None and "as in the real one" in found.output, (found.uncaught, found.output)
