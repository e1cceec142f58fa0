"""Clipping, scalers and schedules: what the model notes of them, and where it says nothing."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from gradfix.autograd.graph import Clip, Event, ScalerUpdate, SchedulerStep, Step, Unscale
from gradfix.autograd.program import analyze
from gradfix.rules import catalog

NETWORK = """\
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""


def found(*parts: str) -> list[tuple[str, str]]:
    """The codemods that report something, with the source lines on which they do."""
    text = "\n".join(map(dedent, parts)) + "\n"
    program = analyze(ast.parse(text), text, Path("script.py"))
    lines = text.splitlines()
    return [
        (codemod.name, lines[finding.span.line - 1].strip())
        for codemod in catalog.load().codemods
        for finding in codemod.find(program)
    ]


def kinds(*parts: str) -> list[type[Event]]:
    text = "\n".join(map(dedent, parts)) + "\n"
    program = analyze(ast.parse(text), text, Path("script.py"))
    return [type(event) for event in program.entry_points[0].runs[0].events]


LOOP = """\
def train(batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        {before}
        loss.backward()
        {between}
        optimizer.step()
        {after}
"""
CLIP = "clip_grad_norm_(net.parameters(), 1.0)"
MISPLACED = [("misplaced-clipping", CLIP)]


def loop(**lines: str) -> str:
    return LOOP.format(**{"before": "pass", "between": "pass", "after": "pass", **lines})


@pytest.mark.parametrize(("place", "wrong"), [("before", True), ("between", False), ("after", True)])
def test_clipping_counts_between_backward_and_step(place: str, wrong: bool) -> None:
    assert found(NETWORK, loop(**{place: CLIP})) == (MISPLACED if wrong else [])


@pytest.mark.parametrize(
    "way",
    [
        "torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)",
        "nn.utils.clip_grad_norm(net.parameters(), max_norm=1.0)",
        "clip_grad_norm_(parameters=net.parameters(), max_norm=1.0)",
        "clip_grad_norm_([p for p in net.parameters() if p.requires_grad], 1.0)",
        "clip_grad_norm_(filter(lambda p: p.requires_grad, net.parameters()), 1.0)",
    ],
)
def test_clipping_is_known_by_any_writing(way: str) -> None:
    assert found(NETWORK, loop(before=way)) == [("misplaced-clipping", way)]


def test_what_may_be_in_other_hands_is_left_alone() -> None:
    assert found(NETWORK, loop(before=f"helper(net)\n        {CLIP}")) == []
    assert found(NETWORK, loop(before="clip_grad_norm_(parameters, 1.0)")) == []


def test_clipping_another_network_than_the_one_that_steps_is_no_question_of_time() -> None:
    other = "other = nn.Linear(1, 1)"
    assert found(NETWORK, other, loop(before="clip_grad_norm_(other.parameters(), 1.0)")) == []


SCALED = """\
scaler = torch.amp.GradScaler({arguments})


def train(batches, mixed):
    for x, y in batches:
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        if mixed:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        {line}
        if mixed:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
"""


def test_what_one_way_scales_is_clipped_scaled_there() -> None:
    assert found(NETWORK, SCALED.format(arguments='"cuda"', line=CLIP)) == MISPLACED
    assert found(NETWORK, SCALED.format(arguments='"cuda", enabled=False', line=CLIP)) == []
    unscaled = f"scaler.unscale_(optimizer)\n        {CLIP}"
    assert found(NETWORK, SCALED.format(arguments='"cuda"', line=unscaled)) == []


def test_a_scaler_that_is_handed_in_is_known_by_what_it_does() -> None:
    handed_in = """\
    def train(batches, scaler):
        for x, y in batches:
            optimizer.zero_grad()
            scaler.scale((net(x) - y).square().mean()).backward()
            scaler.unscale_(optimizer)
            clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    """
    assert kinds(NETWORK, handed_in)[2:6] == [Unscale, Clip, Step, ScalerUpdate]
    assert found(NETWORK, handed_in) == []
    update = "            scaler.update()\n    "
    assert found(NETWORK, handed_in.replace(update, "    ")) == [
        ("missing-scaler-update", "scaler.step(optimizer)")
    ]
    # What something unknown is handed may be updated there.
    assert found(NETWORK, handed_in.replace("scaler.update()", "finish(scaler)")) == []


SCHEDULED = """\
{made}


def train(batches):
    for epoch in range(3):
        {first}
        for batch in batches:
            loss = net(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {last}
"""
STEP_LR = "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)"


def scheduled(made: str = STEP_LR, first: str = "schedule.step()", last: str = "pass") -> str:
    return SCHEDULED.format(made=made, first=first, last=last)


def test_a_schedule_moves_on_behind_the_first_step() -> None:
    early = [("scheduler-before-optimizer", "schedule.step()")]
    assert found(NETWORK, scheduled()) == early
    assert found(NETWORK, scheduled(first="pass", last="schedule.step()")) == []
    library = "from transformers import get_linear_schedule_with_warmup"
    made = f"{library}\nschedule = get_linear_schedule_with_warmup(optimizer, 1, 9)"
    assert found(NETWORK, scheduled(made)) == early


@pytest.mark.parametrize(
    "made",
    [
        "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10, last_epoch=4)",
        f"{STEP_LR}\nwarm_up(optimizer)",
        f"{STEP_LR}\nnet(torch.ones(3)).sum().backward()\noptimizer.step()",
        "schedule = make_schedule(optimizer)",
        "schedule = torch.optim.lr_scheduler.StepLR(other(), 10)",
    ],
)
def test_a_schedule_that_may_have_begun_is_left_alone(made: str) -> None:
    assert found(NETWORK, scheduled(made), "train(torch.randn(2, 5, 3))") == []


@pytest.mark.parametrize("first", ["schedule.step(epoch)", "schedule.step(epoch=epoch)"])
def test_a_schedule_that_is_told_its_value_is_left_alone(first: str) -> None:
    assert found(NETWORK, scheduled(first=first)) == []
    assert SchedulerStep not in kinds(NETWORK, scheduled(first=first))


def test_a_schedule_that_a_condition_holds_back_is_left_alone() -> None:
    assert found(NETWORK, scheduled(first="if epoch >= warm:\n            schedule.step()")) == []
    assert found(NETWORK, scheduled(first="if schedule is not None:\n            schedule.step()")) == [
        ("scheduler-before-optimizer", "schedule.step()")
    ]


def test_a_schedule_of_a_class_of_the_project_is_one_of_torch_s_kind() -> None:
    own = """\
    class Rising(torch.optim.lr_scheduler.LRScheduler):
        def __init__(self, optimizer, last_epoch=-1):
            self.rate = 1e-5
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            return [self.rate * self.last_epoch for _ in self.base_lrs]
    """
    early = [("scheduler-before-optimizer", "schedule.step()")]
    assert found(NETWORK, own, scheduled("schedule = Rising(optimizer)")) == early
    assert found(NETWORK, own, scheduled("schedule = Rising(optimizer, 7)")) == []
