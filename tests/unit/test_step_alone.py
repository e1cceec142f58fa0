"""A step is run alone where its program cannot run: what that proves, refutes, and leaves open."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from gradfix.core.codemod import Claim, Effect
from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, RequestedOptions, StepsAlone
from gradfix.pipeline.results import Attempt, Outcome
from gradfix.verify import alone
from gradfix.verify.alone import SCHEMA, Driver, Harness
from gradfix.verify.command import PLAIN
from gradfix.verify.evidence import Evidence, RunSummary, StepSummary
from gradfix.verify.interpreter import Interpreter, choose_interpreter
from gradfix.verify.jobs import Limits
from gradfix.verify.planting import Planted
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
    asked = Driver("train_step", DRIVER, "", (("gen", "opt_g"), ("disc", "opt_d")), 8, 17)
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


def consuming(digest: str, outcome: str = "proved") -> Evidence:
    step = StepSummary("opt", digest, None, "")  # type: ignore[arg-type]
    return replace(Evidence("proved", ""), outcome=outcome, runs=(RunSummary("after", 0, "", (), (step,)),))


@pytest.mark.parametrize(
    ("mutant", "enough"),
    [
        (consuming("b", "refuted"), True),
        (consuming("b"), False),
        (consuming("a"), False),  # It trains as the repair does, and so it is no mistake: there is none.
        (consuming("b", "not run"), False),
    ],
)
def test_a_harness_that_does_not_refute_proves_nothing(mutant: Evidence, enough: bool) -> None:
    _, missed = alone._told(consuming("a"), [(Planted("loss doubled", 3, ""), mutant)])
    assert (missed is None) == enough
