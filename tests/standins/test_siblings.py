"""Networks that another script of the project would have saved whole, and that a script goes on with."""

from __future__ import annotations

from pathlib import Path

from gradfix.verify.runner import Runner
from tests.standins.programs import program
from tests.standins.test_projects import project, run, steps

NETS = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self, width, deep):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(2, width) for _ in range(deep)])
        def forward(self, given):
            return sum(layer(given) for layer in self.layers)
    """
SAVED = """
    import os
    import torch
    def save_all(folder, net, optimizer):
        torch.save(net, os.path.join(folder, "net.pt"))
        torch.save(optimizer.state_dict(), os.path.join(folder, "optimizer.pt"))
    """
MAIN = """
    import argparse
    import numpy as np
    import torch
    import nets as net
    from saved import save_all
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=6)
    parser.add_argument("--deep", type=int,
                        default=-1)
    parser.add_argument("--go-on", action="store_true")
    given = parser.parse_args()
    if given.deep < 0:
        given.deep = 2
    torch.manual_seed(3)
    np.zeros(3)
    def scaled(width):
        return width // 2
    if given.go_on:
        net = torch.load("net.pt")
    else:
        net = net.Net(scaled(given.width), given.deep)
    raise SystemExit("it trains")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(2, 2)).mean().backward()
    save_all("out", net, optimizer)
    """
TUNED = """
import os
torch.manual_seed(5)
wanted = torch.rand(1)
torch.manual_seed(5)
net = torch.load(os.path.join("out", "net.pt"))
assert torch.rand(1) == wanted
net.train()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    answer = net(torch.ones(4, 2))
    assert answer.shape == (4, 3) and len(net.layers) == 2
    answer.pow(2).mean().backward()
    optimizer.step()
"""
FILES = {"nets.py": NETS, "saved.py": SAVED, "main.py": MAIN}


def test_the_network_is_made_as_the_script_makes_it_that_saves_it(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, FILES)
    found = run(running, tmp_path / "tune.py", "import torch\n" + TUNED)
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "weights net.pt: the network as main.py makes it" in found.standins


def test_of_two_scripts_that_save_a_network_none_is_taken(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {**FILES, "wide.py": MAIN.replace("default=6", "default=12")})
    found = run(running, tmp_path / "tune.py", "import torch\n" + TUNED)
    assert steps(found) == 0
    assert "weights net.pt: networks keep their own" in found.standins


def test_the_one_is_taken_that_saves_a_file_of_the_name(running: Runner, tmp_path: Path) -> None:
    other = MAIN.replace("save_all(", "torch.save(net, 'wide.pt')\n    (").replace("=6", "=12")
    project(tmp_path, {**FILES, "wide.py": other})
    found = run(running, tmp_path / "tune.py", "import torch\n" + TUNED)
    assert steps(found) == 3, (found.uncaught, found.output)


def test_what_only_has_weights_is_no_network(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, FILES)
    text = """
    from nets import Net
    net = torch.load("out/net.pt")
    net.eval()
    own = Net(5, 1)
    own.load_state_dict(net.state_dict())
    def batch():
        return own(torch.ones(2, 2)).detach()
    """
    found = run(running, tmp_path / "tune.py", program(text))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "weights net.pt: networks keep their own" in found.standins
