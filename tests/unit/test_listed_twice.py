"""An optimizer that is given a network and a part of it in two groups, which raises."""

from __future__ import annotations

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x).relu())

net = Net()
opt = torch.optim.SGD([{{"params": {first}}}, {{"params": net.head.parameters(), "lr": 0.1}}], lr=0.01)
for _ in range(9):
    loss = net(torch.randn(8, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("first", "reported"),
    [
        ("net.parameters()", ["parameters-listed-twice"]),
        ("net.body.parameters()", []),
        ("[p for n, p in net.named_parameters() if 'head' not in n]", []),
    ],
)
def test_a_part_in_a_group_beside_that_of_the_whole(first: str, reported: list[str]) -> None:
    options = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(options, Options)
    read = source.parse("train.py", PROGRAM.format(first=first).encode(), 1 << 24)
    assert isinstance(read, Source)
    found = driver.findings(read, options)
    # What is to be left out of the group of the whole is not written.
    assert [(finding.code, finding.fixes) for finding in found] == [(code, ()) for code in reported]
    assert all("more than one parameter group" in finding.message for finding in found)
