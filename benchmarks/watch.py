"""Measures what `gradfix run` adds to a training loop, and to the start and memory of a script.

    python benchmarks/watch.py [--python EXE] [--repeat N]

Each workload trains for a fixed number of steps as a script of its own and prints the seconds of CPU time
that its loop took and the peak of its memory in MiB. It runs plainly and under watch in turn, ``--repeat``
times each; compared are the least times and the least peaks, since other work on the machine only adds to
them. The workloads go from the worst case, a network of one unit whose step is all overhead, to networks
whose step is mostly arithmetic. Where the arithmetic takes milliseconds, the noise is larger than the hooks.

``events`` is the cost of the hooks per training step (one backward, one step) in microseconds of CPU time,
``start`` what the whole command takes longer by the clock.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent

SCRIPT = """\
import resource
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
{network}
optimizer = torch.optim.{optimizer}(net.parameters(), lr=1e-3)


def step():
    optimizer.zero_grad()
    loss = net(data).pow(2).mean()
    loss.backward()
    optimizer.step()


for _ in range(20):
    step()
start = time.process_time()
for _ in range({steps}):
    step()
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""

MLP = "net = nn.Sequential(nn.Linear({0}, {0}), nn.ReLU(), nn.Linear({0}, {0})); data = torch.randn({1}, {0})"
CNN = (
    "net = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Flatten(), "
    "nn.LazyLinear(10)); data = torch.randn(16, 3, 32, 32); net(data)"
)
WORKLOADS = {
    "one unit, SGD": (MLP.format(1, 1), "SGD", 4000),
    "MLP 64, batch 32, Adam": (MLP.format(64, 32), "Adam", 2000),
    "MLP 512, batch 64, Adam": (MLP.format(512, 64), "Adam", 150),
    "CNN, batch 16, Adam": (CNN, "Adam", 40),
}


@dataclass(frozen=True)
class Run:
    """What one run took: seconds of the loop and of the command, peak memory in MiB."""

    loop: float
    whole: float
    memory: float


def run(command: Sequence[str]) -> Run:
    """Run a workload."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True, timeout=600)
    loop, memory = done.stdout.split()
    return Run(float(loop), time.perf_counter() - start, float(memory))


def main() -> None:
    """Measure every workload and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter, with torch")
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    print(f"{'workload':<26}{'plain':>12}{'watched':>12}{'added':>8}{'events':>10}{'start':>9}{'memory':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (network, optimizer, steps) in WORKLOADS.items():
            script = Path(folder) / "train.py"
            script.write_text(SCRIPT.format(network=network, optimizer=optimizer, steps=steps))
            plain, watched = [], []
            for _ in range(arguments.repeat):
                plain.append(run([arguments.python, str(script)]))
                watch = [sys.executable, "-m", "gradfix", "run", "--python", arguments.python, str(script)]
                watched.append(run(watch))
            before, after = min(one.loop for one in plain), min(one.loop for one in watched)
            start = min(one.whole - one.loop for one in watched) - min(one.whole - one.loop for one in plain)
            memory = min(one.memory for one in watched) - min(one.memory for one in plain)
            print(
                f"{name:<26}{before / steps * 1e6:>9.0f} us{after / steps * 1e6:>9.0f} us"
                f"{(after / before - 1) * 100:>7.1f}%{(after - before) / steps * 1e6:>7.1f} us"
                f"{start * 1e3:>6.0f} ms{memory:>6.1f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
