"""Shows how the cost of `gradfix check` grows with files that are made to be costly.

    python benchmarks/costly.py [--sizes N...] [--only NAME...] [--command check|apply] [--limit SECONDS]

Each generator below makes a file of a given size in which something is repeated that has once cost too much:
faulty loops, functions that call each other twice, conditions that nothing decides. For each, the table
gives what `gradfix check --no-cache` (or ``apply --no-verify --dry-run``) takes for each size in seconds of
processor time, and the exponent with which that grows between the two largest: about 1 where it is linear, 0
where a budget ends it. What took more than the limit is shown as such, and larger sizes are left out.
"""

from __future__ import annotations

import argparse
import math
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
import argparse
args = argparse.ArgumentParser().parse_args()
data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(10)]
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
STEP = """    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TRAINS = f"for x, y in data:\n{STEP}"


def faulty_loops(n: int) -> str:
    """Loops one after the other, each of which steps before its backward."""
    backward = "    loss.backward()\n"
    return HEAD + (TRAINS.replace(backward, "") + backward) * n


def adversarial_loops(n: int) -> str:
    """Loops that train a network against another one, which what they make enters with its graph."""
    made = [
        f"gen{k}, dis{k} = nn.Linear(3, 3), nn.Linear(3, 1)\n"
        f"gen_opt{k} = torch.optim.Adam(gen{k}.parameters())\n"
        f"dis_opt{k} = torch.optim.Adam(dis{k}.parameters())\n"
        "for x, y in data:\n"
        f"    fake = gen{k}(x)\n"
        f"    dis_loss = F.softplus(dis{k}(fake)).mean() + F.softplus(-dis{k}(x)).mean()\n"
        f"    dis_opt{k}.zero_grad()\n    dis_loss.backward()\n    dis_opt{k}.step()\n"
        f"    gen_loss = F.softplus(-dis{k}(fake)).mean()\n"
        f"    gen_opt{k}.zero_grad()\n    gen_loss.backward()\n    gen_opt{k}.step()\n"
        for k in range(n)
    ]
    return HEAD + "".join(made)


def faulty_functions(n: int) -> str:
    """Functions that nothing calls, each of which carries a state with its graph."""
    made = [
        f"def train{k}(batches):\n    cell = nn.GRUCell(3, 3)\n"
        "    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)\n    h = torch.zeros(4, 3)\n"
        "    for x, y in batches:\n        h = cell(x, h)\n        loss = F.mse_loss(h, y)\n"
        "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n"
        for k in range(n)
    ]
    return HEAD + "".join(made)


def evaluations(n: int) -> str:
    """Functions that evaluate with graphs, called by the loop that trains."""
    made = [f"def evaluate{k}():\n    return sum(F.mse_loss(net(x), y) for x, y in data)\n" for k in range(n)]
    return HEAD + "".join(made) + TRAINS + "".join(f"    print(evaluate{k}())\n" for k in range(n))


def doubling(n: int) -> str:
    """Functions that each call the one before twice."""
    made = [f"def f{k + 1}(x):\n    return f{k}(x) + f{k}(x)\n" for k in range(n)]
    trains = TRAINS.replace("net(x)", f"f{n}(net(x))")
    return HEAD + "def f0(x):\n    return x\n" + "".join(made) + trains


def doubling_layers(n: int) -> str:
    """Layers of which each runs the one within it twice."""
    made = [
        f"class L{k + 1}(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        self.a = L{k}()\n"
        "    def forward(self, x):\n        return self.a(x) + self.a(x)\n"
        for k in range(n)
    ]
    first = (
        "class L0(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.Linear(3, 3)\n    def forward(self, x):\n        return self.a(x)\n"
    )
    last = f"net = L{n}()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    return HEAD + first + "".join(made) + last + TRAINS


def conditions(n: int) -> str:
    """Conditions that nothing decides, each about a term of a loss that is backpropagated twice."""
    made = [f"    if args.c{k}:\n        loss = loss + {k} * F.l1_loss(net(x), y)\n" for k in range(n)]
    loss, after = TRAINS.split("    opt.zero_grad()")
    return HEAD + loss + "".join(made) + "    opt.zero_grad()" + after + "    loss.backward()\n"


def long_forward(n: int) -> str:
    """A graph of many operations, and a backward of each of many losses of it."""
    made = "".join(
        f"    h = torch.tanh(h) * {k}\n    h.mean().backward(retain_graph=True)\n" for k in range(n)
    )
    return HEAD + f"for x, y in data:\n    h = net(x)\n    opt.zero_grad()\n{made}    opt.step()\n"


def networks(n: int) -> str:
    """Many networks that one optimizer each trains in one loop, each of which nothing clears."""
    made = [
        f"net{k} = nn.Linear(3, 1)\nopt{k} = torch.optim.SGD(net{k}.parameters(), lr=0.1)\n" for k in range(n)
    ]
    body = [f"    F.mse_loss(net{k}(x), y).backward()\n    opt{k}.step()\n" for k in range(n)]
    return HEAD + "".join(made) + "for x, y in data:\n" + "".join(body)


def right_loops(n: int) -> str:
    """Loops in which nothing is wrong: what an ordinary long file costs."""
    return HEAD + TRAINS * n


GENERATORS: tuple[Callable[[int], str], ...] = (
    faulty_loops,
    adversarial_loops,
    faulty_functions,
    evaluations,
    doubling,
    doubling_layers,
    conditions,
    long_forward,
    networks,
    right_loops,
)


def main() -> None:
    """Print one row for each generator."""
    parser = argparse.ArgumentParser(description="Shows how the cost of gradfix check grows.")
    parser.add_argument("--sizes", metavar="N", nargs="+", type=int, default=[20, 40, 80, 160])
    parser.add_argument("--only", metavar="NAME", nargs="+", choices=[g.__name__ for g in GENERATORS])
    parser.add_argument("--command", choices=("check", "apply"), default="check")
    parser.add_argument("--limit", metavar="SECONDS", type=float, default=120)
    options = parser.parse_args()
    print(f"{platform.system()}, Python {platform.python_version()}: gradfix {options.command}, CPU seconds")
    print(f"| generator | {' | '.join(map(str, options.sizes))} | exponent |")
    print(f"| --- |{' --- |' * (len(options.sizes) + 1)}")
    for generator in GENERATORS:
        if not options.only or generator.__name__ in options.only:
            costs = _costs(generator, options.sizes, options.command, options.limit)
            shown = [f"{cost:.1f}" for cost in costs]
            if len(shown) < len(options.sizes):
                shown += [f"> {options.limit:.0f}"] + [""] * (len(options.sizes) - len(shown) - 1)
            growth = f"{_exponent(options.sizes, costs):.1f}" if len(costs) > 1 else ""
            print(f"| {generator.__name__} | {' | '.join(shown)} | {growth} |", flush=True)


def _costs(generator: Callable[[int], str], sizes: list[int], command: str, limit: float) -> list[float]:
    """What each size takes, up to the first that takes more than the limit."""
    costs: list[float] = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="gradfix-costly-") as folder:
            path = Path(folder, "train.py")
            path.write_text(generator(size))
            arguments = ["check"] if command == "check" else ["apply", "--no-verify", "--dry-run"]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            bound = partial(resource.setrlimit, resource.RLIMIT_CPU, (round(limit), round(limit)))
            ended = subprocess.run(
                [sys.executable, "-m", "gradfix", *arguments, "--no-cache", str(path)],
                capture_output=True,
                preexec_fn=bound,
            )
            if ended.returncode < 0:
                break
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return costs


def _exponent(sizes: list[int], costs: list[float]) -> float:
    """With which power of the size the cost grows, from the two largest sizes."""
    *_, (size, cost), (larger, more) = zip(sizes, costs)
    return math.log(more / cost) / math.log(larger / size)


if __name__ == "__main__":
    main()
