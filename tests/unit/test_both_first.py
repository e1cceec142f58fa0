"""When a step waits for the second of two backwards, and when it must not. Nothing is run."""

from __future__ import annotations

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

PROGRAM = """
import torch
from torch import nn

generator = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
body = nn.Sequential(nn.Linear(3, 8), nn.Tanh())
head, guess = nn.Linear(8, 1), nn.Linear(8, 2)
first_optimizer = torch.optim.Adam({first}, lr=0.01)
second_optimizer = torch.optim.Adam({second}, lr=0.01)


def losses():
    code = torch.randn(5, 2)
    features = body(generator(torch.cat((torch.randn(5, 2), code), 1)))
    return -head(features).mean(), (guess(features) - code).pow(2).mean()


def learn(loss, second_loss):
    first_optimizer.zero_grad()
    loss.backward(retain_graph=True)
    first_optimizer.step()
    {between}
    second_loss.backward()
    second_optimizer.step()


for _ in range(3):
    learn(*losses())
"""
CLEARING = "second_optimizer.zero_grad()"
GENERATOR = "list(generator.parameters())"
CRITIC = "[*body.parameters(), *guess.parameters()]"


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(verify=False))
    assert isinstance(prepared, Options)
    return prepared


@pytest.mark.parametrize(
    ("first", "second", "between", "repaired"),
    [
        (CRITIC, GENERATOR, CLEARING, True),
        # InfoGAN: what the second loss gives the generator would be in what the first step consumes.
        (GENERATOR, f"{GENERATOR} + {CRITIC}", CLEARING, False),
        # What waits for the step would be cleared before it.
        (CRITIC, GENERATOR, f"{CLEARING}; first_optimizer.zero_grad()", False),
        # The step would use gradients that this backward adds.
        (CRITIC, GENERATOR, f"{CLEARING}; head(body(torch.randn(5, 3))).mean().backward()", False),
    ],
)
def test_the_first_step_waits_where_it_consumes_the_same(
    first: str, second: str, between: str, repaired: bool, options: Options
) -> None:
    code = PROGRAM.format(first=first, second=second, between=between)
    parsed = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    result = driver.repair(parsed, options)
    codes = [attempt.finding.code for attempt in result.applied]
    after = result.after.decode()
    assert ("stale-forward" in codes) is repaired
    waits = after.find("second_loss.backward(") < after.find("first_optimizer.step()")
    assert waits is repaired
    assert ("inputs=[p for group in second_optimizer.param_groups" in after) is repaired
    found = {finding.code for finding in driver.findings(parsed, options)}
    assert "stale-forward" in found
