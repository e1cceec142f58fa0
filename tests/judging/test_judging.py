"""Repairs that gradfix did not write: wrong ones are refuted, right ones accepted in whatever manner.

All patches take up to an hour and a half on one core, about a second each. What is judged is printed as it
goes, and all that is amiss in the end; a kind of patch can be chosen, and with pytest-xdist they are judged
side by side::

    pytest -m long -s tests/judging
    pytest -m long -s tests/judging -k "left_out or caught"
"""

from __future__ import annotations

import functools
import json
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from cases import CASES, Case
from typer.testing import CliRunner

from gradfix.cli.commands import app
from gradfix.core.errors import quoted
from gradfix.pipeline import driver, reviewing
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.verify.judging.verdicts import judge
from judging import patches
from judging.patches import Patch

FAULTY = [case for case in CASES if case.fixed is not None]

Verdicts = list[tuple[str, str]]
Original = Callable[[str], Path]


ACCELERATED = "undetached_fake/data_parallel_function"
"""The program that does not run where there is no accelerator."""


@functools.cache
def every_wrong() -> tuple[Patch, ...]:
    """All wrong patches, which take some seconds to make."""
    return tuple(patches.wrong(FAULTY))


def of_kind(kind: str) -> list[Patch]:
    return [patch for patch in every_wrong() if patch.kind == kind]


def one_of(make: Callable[[list[Case], list[str]], Iterator[Patch]], kind: str) -> Patch:
    """One patch of a kind, the same in every run, for whichever fixture: others that come change little."""
    shuffled = sorted(FAULTY, key=lambda case: random.Random(f"{kind} of {case.name}").random())
    return next(make(shuffled, [kind]))


SEEDS = (0, 1)
"""Those of the default run: enough to hold one against another; what is marked long takes all."""


def judged(old: Path, text: str, folder: Path, seeds: Sequence[int] = SEEDS) -> Verdicts:
    """The outcome and the reason for every mistake."""
    for package in old.parent.iterdir():
        # The new version has the same project around it.
        if package.is_dir() and package.name != "__pycache__":
            shutil.copytree(package, folder / package.name, dirs_exist_ok=True)
    new = folder / old.name
    new.write_text(text)
    options = driver.prepare([str(old)], RequestedOptions())
    assert isinstance(options, Options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gradfix.verify.judging.verdicts.judge", functools.partial(judge, seeds=seeds))
        (file,) = reviewing.judge(str(old), str(new), options)
    assert not file.problems
    assert file.judgement is not None
    assert len(file.judgement.verdicts) == len(file.findings) > 0
    return [(verdict.outcome, verdict.reason) for verdict in file.judgement.verdicts]


def outcome(verdicts: Verdicts) -> str:
    """``accepted`` if that is the verdict on every mistake, ``refuted`` if it is on one."""
    found = {outcome for outcome, _ in verdicts}
    return "accepted" if found == {"accepted"} else "refuted" if "refuted" in found else "not run"


def judged_all(chosen: Sequence[Patch], folder: Path) -> list[tuple[Patch, str, Verdicts]]:
    """All of them, with a line of progress for each; what goes wrong for one is a verdict, too."""
    found = []
    for number, patch in enumerate(chosen, start=1):
        started = time.monotonic()
        try:
            verdicts = judged(patch.case.path, patch.text, folder, seeds=(0, 1, 2))
        except Exception as error:
            verdicts = [("error", repr(error))]
        found.append((patch, outcome(verdicts), verdicts))
        taken = time.monotonic() - started
        print(f"{number}/{len(chosen)} {taken:4.1f} s  {patch.name}: {outcome(verdicts)}", flush=True)
    return found


@pytest.mark.long
def test_there_are_enough_patches() -> None:
    assert len(every_wrong()) >= 4000
    assert {patch.kind for patch in every_wrong()} == set(patches.WRONG)


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("kind", patches.WRONG)
def test_a_wrong_patch_is_refuted(kind: str, tmp_path: Path) -> None:
    patch = one_of(patches.wrong, kind)
    verdicts = judged(patch.case.path, patch.text, tmp_path)
    # Where the run gives out, nothing is proved either way.
    gives_out = patch.kind in patches.UNTOLD or patch.case.name == ACCELERATED
    expected = ("refuted", "not run") if gives_out else ("refuted",)
    assert outcome(verdicts) in expected, (patch.name, verdicts)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", patches.RIGHT)
def test_a_right_patch_is_accepted(kind: str, tmp_path: Path) -> None:
    patch = one_of(patches.right, kind)
    verdicts = judged(patch.case.path, patch.text, tmp_path)
    assert outcome(verdicts) == "accepted", (patch.name, verdicts)


SLIPS = 0.05
"""Of the patches of a kind that is wrong, as many may be right: they do nothing in some program or other."""


def right_after_all(patch: Patch) -> bool:
    """Whether a patch that is made to be wrong trains as the right program does, by torch's own account."""
    from judging.oracle import trains_alike

    assert patch.case.fixed is not None
    return not patches.hides(patch) and trains_alike(
        patch.text, patch.case.fixed.read_text(), patch.case.path
    )


@pytest.mark.long
@pytest.mark.parametrize("kind", patches.WRONG)
def test_what_is_called_wrong_is_wrong(kind: str) -> None:
    made = of_kind(kind)
    right = [patch.name for patch in made if right_after_all(patch)]
    print(f"{kind}: {len(made)} patches, {len(right)} right after all", *right, sep="\n", flush=True)
    assert len(right) <= SLIPS * len(made)


@pytest.mark.long
@pytest.mark.parametrize("kind", patches.WRONG)
def test_no_wrong_patch_is_accepted(kind: str, tmp_path: Path) -> None:
    found = judged_all(of_kind(kind), tmp_path)
    amiss = [(patch.name, verdicts) for patch, how, verdicts in found if how != "refuted"]
    print(f"{kind}: {len(found)} wrong patches, {len(amiss)} not refuted", *amiss, sep="\n", flush=True)
    assert not [patch.name for patch, how, _ in found if how == "accepted" and not right_after_all(patch)]


@pytest.mark.long
def test_most_right_patches_are_accepted(tmp_path: Path) -> None:
    found = judged_all(list(patches.right(FAULTY)), tmp_path)
    missed = [(patch.name, verdicts) for patch, how, verdicts in found if how != "accepted"]
    print(f"{len(found) - len(missed)} of {len(found)} right patches accepted", *missed, sep="\n")
    assert len(missed) <= 0.2 * len(found)


HEAD = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""
GAN = (
    HEAD
    + """
maker = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 6))
judge = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
opt_maker = torch.optim.SGD(maker.parameters(), lr=0.05)
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.05)
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
for step in range(4):
    real = torch.randn(8, 6)
    fake = maker(torch.randn(8, 4))
"""
)
JUDGE = """
    opt_judge.zero_grad()
    loss_j = F.binary_cross_entropy_with_logits(judge(real), ones)
    loss_j = loss_j + F.binary_cross_entropy_with_logits(judge({fake}), zeros)
    loss_j.backward()
    opt_judge.step()
"""
MAKER = """
    opt_maker.zero_grad()
    loss_m = F.binary_cross_entropy_with_logits(judge(fake), ones)
    loss_m.backward()
    opt_maker.step()
"""
OWNED = "tuple(p for group in opt_judge.param_groups for p in group['params'])"
UNNOTICED = f"with torch.autograd._unsafe_preserve_version_counter({OWNED}):\n        opt_judge.step()"
CLIPPED = "opt_judge.step()\n    for p in judge.parameters():\n        p.data.clamp_(-0.01, 0.01)"
RNN = (
    HEAD
    + """
cell = nn.RNNCell(3, 5)
head = nn.Linear(5, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
"""
)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            GAN + JUDGE.format(fake="fake") + MAKER,
            GAN + MAKER + JUDGE.format(fake="fake.detach()"),
            "accepted",
            id="generator-first",
        ),
        pytest.param(
            GAN + JUDGE.format(fake="fake") + MAKER,
            GAN + JUDGE.format(fake="fake.detach()") + MAKER.replace("judge(fake)", "judge(fake.detach())"),
            "refuted",
            id="detached-in-both",
        ),
        pytest.param(
            GAN + JUDGE.format(fake="fake") + MAKER,
            GAN.replace("fake = maker(torch.randn(8, 4))", "fake = maker(torch.randn(8, 4)).detach()")
            + JUDGE.format(fake="fake")
            + MAKER.replace("loss_m.backward()", "loss_m.backward()  # reaches the judge only"),
            "refuted",
            id="detached-at-the-source",
        ),
        pytest.param(
            GAN + JUDGE.format(fake="fake") + MAKER,
            GAN + "    noise = fake.detach()\n" + JUDGE.format(fake="noise") + MAKER,
            "accepted",
            id="detached-under-another-name",
        ),
        pytest.param(
            GAN + JUDGE.format(fake="fake") + MAKER,
            GAN
            + "    wished = F.binary_cross_entropy_with_logits(judge(fake), ones)\n"
            + JUDGE.format(fake="fake.detach()").replace("opt_judge.step()", UNNOTICED)
            + "    opt_maker.zero_grad()\n    wished.backward()\n    opt_maker.step()\n",
            "refuted",
            id="through-weights-that-have-moved",
        ),
        pytest.param(
            GAN + JUDGE.format(fake="fake") + MAKER,
            GAN + MAKER + JUDGE.format(fake="fake.detach()").replace("opt_judge.step()", CLIPPED),
            "refuted",
            id="generator-first-and-weights-clipped",
        ),
        pytest.param(
            RNN
            + """
h = torch.zeros(4, 5)
for t in range(4):
    h = cell(torch.randn(4, 3), h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
            RNN
            + """
h = torch.zeros(4, 5)
total = torch.zeros(())
for t in range(4):
    h = cell(torch.randn(4, 3), h)
    total = total + head(h).pow(2).mean()
opt.zero_grad()
total.backward()
opt.step()
""",
            "accepted",
            id="through-all-time",
        ),
        pytest.param(
            RNN
            + """
h = torch.zeros(4, 5)
for t in range(4):
    h = cell(torch.randn(4, 3), h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
            RNN
            + """
for begin in range(2):
    h = torch.zeros(4, 5)
    total = torch.zeros(())
    for t in range(2):
        h = cell(torch.randn(4, 3), h)
        total = total + head(h).pow(2).mean()
    total.backward()
    opt.step()
""",
            "refuted",
            id="through-all-time-never-cleared",
        ),
        pytest.param(
            RNN
            + """
h = torch.zeros(4, 5)
for t in range(4):
    h = cell(torch.randn(4, 3), h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
            RNN
            + """
h = torch.zeros(4, 5)
for t in range(4):
    h = cell(torch.randn(4, 3), h)
    total = head(h).pow(2).mean()
opt.zero_grad()
total.backward()
opt.step()
""",
            "refuted",
            id="only-the-last-loss",
        ),
        pytest.param(
            RNN
            + """
for t in range(4):
    h = cell(torch.randn(4, 3))
    size, score = h.pow(2).mean(), head(h).pow(2).mean()
    opt.zero_grad()
    size.backward()
    score.backward()
    opt.step()
""",
            RNN
            + """
for t in range(4):
    h = cell(torch.randn(4, 3))
    opt.zero_grad()
    torch.autograd.backward([h.pow(2).mean(), head(h).pow(2).mean()])
    opt.step()
""",
            "accepted",
            id="one-backward-of-two-losses",
        ),
    ],
)
def test_a_repair_in_another_manner(
    before: str, after: str, expected: str, original: Original, tmp_path: Path
) -> None:
    assert [found for found, _ in judged(original(before), after, tmp_path)] == [expected]


HAND = (
    HEAD
    + """
x = torch.randn(30, 3)
y = x.pow(2).sum(1, keepdim=True)
first = (torch.randn(3, 8) * 0.5).requires_grad_()
second = (torch.randn(8, 1) * 0.5).requires_grad_()
for step in range({steps}):
    hidden = torch.tanh(x @ first)
    loss = (hidden @ second - y).pow(2).mean()
    size = 0.1 * hidden.pow(2).mean()
"""
)
TWICE = """
    loss.backward()
    size.backward()
"""
ONCE = """
    (loss + size).backward()
"""
MOVED = """
    with torch.no_grad():
        for p in (first, second):
            p -= 0.05 * p.grad
            p.grad.zero_()
"""
NONE = MOVED.replace("p.grad.zero_()", "p.grad = None")
FIRST_GRADS = """
    grads = torch.autograd.grad(loss + size, (first, second))
    with torch.no_grad():
        for p, grad in zip((first, second), grads):
            p -= 0.05 * grad
"""


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("steps", [1, 4, 40])
@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(ONCE + MOVED, "accepted", id="sum"),
        pytest.param(ONCE + NONE, "accepted", id="sum-cleared-to-none"),
        pytest.param(ONCE.replace("+", "-") + MOVED, "refuted", id="sign"),
        pytest.param(ONCE.replace(" + size", "") + MOVED, "refuted", id="one-loss-left-out"),
        pytest.param(ONCE + MOVED.replace("0.05", "0.005"), "refuted", id="smaller-steps"),
        pytest.param(ONCE + MOVED.replace("p -=", "p +="), "refuted", id="steps-back"),
        pytest.param(ONCE + MOVED.replace("p -= 0.05 * p.grad", "pass"), "refuted", id="never-moved"),
        pytest.param(ONCE + MOVED.replace("(first, second)", "(first,)"), "refuted", id="one-never-moved"),
        pytest.param(ONCE + MOVED + "    if step == 2: break\n", None, id="leaves-early"),
        pytest.param(FIRST_GRADS, "not run", id="without-backward"),
    ],
)
def test_weights_that_are_moved_by_hand(
    after: str, expected: str | None, steps: int, original: Original, tmp_path: Path
) -> None:
    if expected is None:
        # Where the program ends before, nobody has seen what that does.
        expected = "not run" if steps < 3 else "refuted"
    program = HAND.format(steps=steps)
    ((found, reason),) = judged(original(program + TWICE + MOVED), program + after, tmp_path)
    assert found == expected, reason
    assert "optimizer" not in reason
    if found == "accepted":
        assert ("for the first" in reason) == (steps == 40)


PASSES = """
h = torch.zeros(4, 5)
for t in range({passes}):
    h = cell(torch.randn(4, 3), h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SEGMENTS = """
h = torch.zeros(4, 5)
total = torch.zeros(())
for t in range({passes}):
    h = cell(torch.randn(4, 3), h)
    total = total + head(h).pow(2).mean()
    if t % {length} == {length} - 1 or t == {passes} - 1:
        opt.zero_grad()
        total.backward()
        opt.step()
        total, h = torch.zeros(()), h.detach()
"""


def changed(old: str, new: str) -> str:
    assert old in SEGMENTS
    return SEGMENTS.replace(old, new)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("after", "passes", "length", "expected"),
    [
        pytest.param(SEGMENTS, 8, 2, "accepted", id="segments"),
        pytest.param(SEGMENTS, 7, 3, "accepted", id="the-last-is-shorter"),
        pytest.param(SEGMENTS, 100, 4, "accepted", id="more-than-are-looked-at"),
        pytest.param(SEGMENTS, 100, 100, "not run", id="all-time-is-more-than-is-looked-at"),
        pytest.param(SEGMENTS, 100, 30, "not run", id="a-second-segment-is-more-than-is-looked-at"),
        pytest.param(
            changed("total.backward()", "(total if t < 2 else -total).backward()"),
            8,
            2,
            "refuted",
            id="sign-later",
        ),
        pytest.param(
            changed("total.backward()", "(total if t < 2 else 0.1 * total).backward()"),
            8,
            2,
            "refuted",
            id="size",
        ),
        pytest.param(SEGMENTS + "    if t == 19: break\n", 100, 4, "refuted", id="leaves-early"),
        pytest.param(SEGMENTS + "    if t == 3: break\n", 100, 4, "refuted", id="leaves-after-one-step"),
        pytest.param(changed("h.detach()", "torch.zeros(4, 5)"), 8, 2, "refuted", id="state-lost"),
        pytest.param(
            changed("    h = cell", "    h = h.detach() if t > 2 else h\n    h = cell"),
            8,
            2,
            "refuted",
            id="cut-in-every-pass-later",
        ),
        pytest.param(
            changed("head(h)", "head(h if t < 2 else h.detach())"), 8, 2, "refuted", id="only-the-head-later"
        ),
        pytest.param(
            changed("total = total +", "total = (total if t < 2 else total.detach()) +"),
            8,
            2,
            "refuted",
            id="last-loss-later",
        ),
        pytest.param(
            changed("        opt.step()", "        opt.step()\n        cell.requires_grad_(False)"),
            8,
            2,
            "refuted",
            id="frozen-later",
        ),
    ],
)
def test_segments_of_time(
    after: str, passes: int, length: int, expected: str, original: Original, tmp_path: Path
) -> None:
    old = original(RNN + PASSES.format(passes=passes))
    ((found, reason),) = judged(old, RNN + after.format(passes=passes, length=length), tmp_path)
    assert found == expected, reason
    if found == "not run":
        assert "more iterations than the run of the original" in reason


def test_the_command_line(tmp_path: Path) -> None:
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text(GAN + JUDGE.format(fake="fake") + MAKER)
    new.write_text(GAN + JUDGE.format(fake="fake.detach()") + MAKER)
    runner = CliRunner()
    result = runner.invoke(app, ["verify", "--before", str(old), str(new), "--output-format", "json"])
    assert result.exit_code == 0
    (file,) = json.loads(result.stdout)
    (mistake,) = file["mistakes"]
    assert mistake["code"] == "undetached-fake"
    assert mistake["outcome"] == "accepted"
    assert file["seeds"] == [0, 1, 2]

    result = runner.invoke(app, ["verify", "--before", str(old), str(old)])
    assert result.exit_code == 1
    assert f"refuted: it raised {quoted('E1')}" in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("x = 1\n", "x = 2\n", "gradfix finds no mistake"),
        ("x = (\n", "x = 2\n", "old.py"),
    ],
)
def test_what_cannot_be_judged_has_exit_code_2(old: str, new: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(old)
    (tmp_path / "new.py").write_text(new)
    arguments = ["verify", "--before", str(tmp_path / "old.py"), str(tmp_path / "new.py")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_folders_are_compared_file_by_file(tmp_path: Path) -> None:
    for name, fake in (("old", "fake"), ("new", "fake.detach()")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.py").write_text(GAN + MAKER)
        (tmp_path / name / "train.py").write_text(GAN + JUDGE.format(fake=fake) + MAKER)
    arguments = ["verify", "--before", str(tmp_path / "old"), str(tmp_path / "new"), "-q"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "accepted" in result.stdout
    assert "same.py" not in result.stdout
