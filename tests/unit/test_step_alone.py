"""A step is run alone where its program cannot run: what that proves, refutes, and leaves open."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from gradfix.core.codemod import Claim, Effect
from gradfix.pipeline import certificate, driver, proving
from gradfix.pipeline.options import Options, RequestedOptions, StepsAlone
from gradfix.pipeline.results import Attempt, Outcome
from gradfix.verify import alone
from gradfix.verify.alone import SCHEMA, Driver, Harness
from gradfix.verify.command import PLAIN
from gradfix.verify.evidence import Evidence, RunSummary, StepSummary
from gradfix.verify.interpreter import Interpreter, choose_interpreter
from gradfix.verify.jobs import Limits
from gradfix.verify.runner import Runner
from gradfix.verify.trial import Rewrite

pytestmark = pytest.mark.usefixtures("servers")

ORIGINAL = textwrap.dedent(
    """
    import torch
    import nowhere.to_be_found
    from nowhere import settings

    LIMIT = settings.load("config.yaml")


    def train_step(gen, disc, opt_g, opt_d, x):
        fake = gen(torch.randn(x.size(0), 16))
        loss_d = disc(fake).mean() - disc(x).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = -disc(fake).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
    """
).lstrip()
DRIVER = textwrap.dedent(
    """
    from step_alone import Given, load, network, optimizer, turns

    module = load("train.py")
    gen = network("gen", owner="opt_g")
    disc = network("disc", owner="opt_d")
    opt_g = optimizer("opt_g", [gen], line=8)
    opt_d = optimizer("opt_d", [disc], line=8)
    for turn in turns():
        module.train_step(gen, disc, opt_g, opt_d, Given("x", turn))
    """
).lstrip()
RIGHT = ORIGINAL.replace("disc(fake).mean() - disc(x)", "disc(fake.detach()).mean() - disc(x)")
CLAIM = Claim("E1", 16)


def shown(folder: Path, after: str, kind: str = "pure") -> Evidence:
    """What the driver shows of a rewrite of the original."""
    path = folder / "train.py"
    path.write_text(ORIGINAL)
    interpreter = choose_interpreter(path, None)
    assert isinstance(interpreter, Interpreter)
    rewrite = Rewrite(path, ORIGINAL, after, CLAIM, Effect.REPAIRS)
    asked = Driver("train_step", DRIVER, "", ("pure", "noisy"), 8, 17)
    harness = Harness(rewrite, PLAIN, interpreter, Limits(), False)
    ((evidence, _),) = harness.run([(asked, kind, after)], SCHEMA, (0,))
    return evidence


def test_the_right_repair_holds_with_networks_that_have_dropout_and_state(tmp_path: Path) -> None:
    assert shown(tmp_path, RIGHT, "noisy").outcome == "proved"


def test_a_repair_that_keeps_the_generator_from_learning_is_refuted(tmp_path: Path) -> None:
    wrong = ORIGINAL.replace("loss_g = -disc(fake)", "loss_g = -disc(fake.detach())")
    assert shown(tmp_path, wrong).outcome == "refuted"


def test_what_absent_code_would_do_to_networks_stops_the_step(tmp_path: Path) -> None:
    found = shown(tmp_path, RIGHT.replace("    opt_g.step()", "    nowhere.clip(gen)\n    opt_g.step()"))
    assert found.outcome != "proved"


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Attempt, Attempt]:
    """The attempt that is reported, and the one that is made where proofs for the step alone are written."""
    monkeypatch.setattr(alone, "PLACES", 1)
    monkeypatch.setattr(Runner, "forget_all_but", lambda runner, sources: None)
    file = tmp_path / "train.py"
    file.write_text(ORIGINAL)
    found = []
    for asked in (StepsAlone.SHOWN, StepsAlone.WRITTEN):
        options = driver.prepare([str(file)], RequestedOptions(unsafe_fixes=True, step_alone=asked))
        assert isinstance(options, Options)
        (attempt,) = driver.plan([str(file)], options).attempts
        found.append(attempt)
    return found[0], found[1]


def test_a_step_without_a_program_is_proved_alone_and_written_on_request(
    planned: tuple[Attempt, Attempt],
) -> None:
    reported, written = planned
    assert reported.outcome is written.outcome is Outcome.PROVED_ALONE
    assert (reported.applied, written.applied) == (False, True)
    assert written.after == RIGHT
    evidence = written.evidence
    assert evidence is not None and evidence.alone is not None
    assert evidence.outcome == "proved for the step alone"
    assert "nowhere" in evidence.alone.why
    assert evidence.alone.worlds == ("`opt_d` updates `disc`, and `opt_g` updates `gen`",)
    assert "shared" not in evidence.alone.networks  # No optimizer has two.
    assert {one.partition(" at ")[0] for one in evidence.alone.refuted} == {
        "loss doubled",
        "micro-batch dropped",
        "stale forward",
        "term detached",
    }
    assert "MADE_UP = {'handed': True" in evidence.alone.driver


def test_a_certificate_of_a_step_alone_is_run_again(planned: tuple[Attempt, Attempt], tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    kept = tmp_path / "certificate.json"
    kept.write_text(json.dumps(certificate.of("train.py", planned[0])))
    found = certificate.read(str(kept))
    assert isinstance(found, certificate.Certificate) and found.alone is not None
    options = driver.prepare([str(file)], RequestedOptions())
    assert isinstance(options, Options)
    again = proving.rerun(found, certificate.RerunLocation(file), options)
    assert again.outcome == "proved for the step alone"
    wrong = replace(found, after=ORIGINAL.replace("loss_g = -disc(fake)", "loss_g = -disc(fake.detach())"))
    assert proving.rerun(wrong, certificate.RerunLocation(file), options).outcome == "refuted"


PROGRAM = textwrap.dedent(
    """
    import argparse
    import torch
    from nowhere import datasets

    parser = argparse.ArgumentParser()
    parser.add_argument("mode", help="train or test")
    parser.add_argument("--width", type=int, required=True)
    args = parser.parse_args()
    gen = torch.nn.Linear(16, args.width)
    disc = torch.nn.Linear(args.width, 1)
    opt_g = torch.optim.Adam(gen.parameters(), betas=(0, 0.9))
    opt_d = torch.optim.Adam(disc.parameters())
    names = int("one hundred")
    loader = torch.utils.data.DataLoader(datasets.Photos("photos"), batch_size=64, num_workers=4)
    if args.mode == "train":
        for epoch in range(3):
            for x, label in loader:
                fake = gen(torch.randn(x.size(0), 16))
                loss_d = disc(fake).mean() - disc(x).mean()
                opt_d.zero_grad()
                loss_d.backward()
                opt_d.step()
                loss_g = -disc(fake).mean()
                opt_g.zero_grad()
                loss_g.backward()
                opt_g.step()
    """
).lstrip()


def test_a_program_runs_with_arguments_data_and_modules_that_are_made_up(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    options = driver.prepare([str(file)], RequestedOptions(step_alone=StepsAlone.SHOWN))
    assert isinstance(options, Options)
    (attempt,) = driver.plan([str(file)], options).attempts
    assert attempt.outcome is Outcome.PROVED_ALONE, attempt.reason
    assert attempt.evidence is not None and attempt.evidence.alone is not None
    assert attempt.evidence.alone.entry == "the program train.py"
    assert {"the argument mode: 'train'", "names: made up, for the statement fails that computes it"} <= set(
        attempt.evidence.standins
    )


EVALUATION = textwrap.dedent(
    """
    import torch


    @torch.no_grad()
    def evaluate(net, loader):
        total = 0.0
        for x, y in loader:
            total += torch.nn.functional.mse_loss(net(x), y).item()
        return total
    """
).lstrip()
LOOKING = textwrap.dedent(
    """
    from step_alone import Given, afterwards, load, network, turns

    module = load("train.py")
    net = network("net")
    for turn in turns():
        afterwards(module.evaluate(net, Given("loader", turn)), module, net)
    """
).lstrip()


@pytest.mark.parametrize(
    ("after", "outcome"),
    [
        (EVALUATION, "proved"),
        (EVALUATION.replace("return total", "return 2 * total"), "refuted"),
        (
            EVALUATION.replace("    return", "    net.bias = next(net.parameters()).mul_(0.9)\n    return"),
            "refuted",
        ),
    ],
)
def test_an_evaluation_has_to_return_the_same_and_leave_weights_alone(
    after: str, outcome: str, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    before = EVALUATION.replace("@torch.no_grad()\n", "")
    path.write_text(before)
    interpreter = choose_interpreter(path, None)
    assert isinstance(interpreter, Interpreter)
    rewrite = Rewrite(path, before, after, Claim(), Effect.PRESERVES)
    asked = Driver("evaluate", LOOKING, "", ("pure",), 4, 9)
    harness = Harness(rewrite, PLAIN, interpreter, Limits(), False)
    ((evidence, _),) = harness.run([(asked, "pure", after)], SCHEMA, (0,))
    assert evidence.outcome == outcome, evidence.reason


def consuming(digest: str, outcome: str = "proved") -> Evidence:
    step = StepSummary("opt", digest, None, "")  # type: ignore[arg-type]
    return replace(Evidence("proved", ""), outcome=outcome, runs=(RunSummary("after", 0, "", (), (step,)),))


class Judged:
    """A harness that has judged a doubled loss as the test says, and refuted the other mistakes."""

    fixed = "def step(loss):\n    loss.backward()\n"
    rewrite = Rewrite(Path("train.py"), "", fixed, CLAIM, Effect.REPAIRS)

    def __init__(self, doubled: Evidence) -> None:
        self.doubled = doubled

    def run(self, asked: list[tuple[Driver, str, str]], *how: object) -> list[tuple[Evidence, None]]:
        other = consuming("b", "refuted")
        return [(self.doubled if "doubled(" in text else other, None) for _, _, text in asked]


@pytest.mark.parametrize(
    ("mutant", "enough"),
    [
        (consuming("b", "refuted"), True),
        (consuming("b"), False),
        (consuming("a"), True),  # It trains as the repair does, and so it is no mistake.
        (consuming("b", "not run"), False),  # It is left open.
    ],
)
def test_a_harness_proves_only_if_it_refutes_each_kind_of_mistake(mutant: Evidence, enough: bool) -> None:
    asked = Driver("step", "", "", (), 1, 2)
    _, missed = alone._refuted(Judged(mutant), asked, consuming("a"), "")  # type: ignore[arg-type]
    assert (missed is None) == enough


def test_a_harness_in_which_no_mistake_shows_proves_nothing() -> None:
    class Blind(Judged):
        def run(self, asked: list[tuple[Driver, str, str]], *how: object) -> list[tuple[Evidence, None]]:
            return [(consuming("a"), None) for _ in asked]

    asked = Driver("step", "", "", (), 1, 2)
    _, missed = alone._refuted(Blind(consuming("a")), asked, consuming("a"), "")  # type: ignore[arg-type]
    assert missed == "no mistake could be planted that the step alone refutes"
