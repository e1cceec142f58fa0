"""Shows how the cost of `gradfix check` grows with the length of a script.

    python benchmarks/curve.py [--kinds KIND...] [--lengths N...] [--repeat N]

Generated scripts of every kind are checked in this process, at 100 to 100,000 lines:

* ``flat``: one training loop whose body is as long as the script;
* ``loops``: training loops one after the other at module level, nested one to six deep;
* ``functions``: functions with a training loop each, which nothing calls;
* ``methods``: classes whose training method calls helper methods;
* ``helpers``: 500 helper functions, each calling the one after it, and a loop that calls them all, again and
  again;
* ``plain``: code that trains nothing, around one training loop;
* ``branching``: one function whose helpers each call the next one twice, so that following the calls takes
  2^500 steps. This one ends by the budget, and its message names the function.

Printed is the CPU time per kind and length, and in microseconds per line: a column that stays level is a cost
that is linear. The messages say where a budget ended the analysis of a function. Times mean little elsewhere;
their growth does.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gradfix.cli.commands import collect_rarely
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.pipeline.results import Report

LENGTHS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
HELPERS = 500
DEEPEST = 6

HEAD = """\
import torch
from torch import nn

G = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
D = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()


def load():
    return torch.utils.data.DataLoader([])

"""
STEP = """\
fake_{n} = G(torch.randn(5, 3))
opt_d.zero_grad()
loss_d_{n} = bce(D(real), torch.ones(5, 1)) + bce(D(fake_{n}.detach()), torch.zeros(5, 1))
loss_d_{n}.backward()
opt_d.step()
opt_g.zero_grad()
loss_g_{n} = bce(D(fake_{n}), torch.ones(5, 1))
loss_g_{n}.backward()
opt_g.step()
print({n}, loss_d_{n}.item(), loss_g_{n}.item())
"""


def _indented(text: str, by: int) -> list[str]:
    return [" " * 4 * by + line for line in text.splitlines()]


def flat() -> Iterator[list[str]]:
    """One loop, one training step after the other in its body."""
    yield ["for real in load():"]
    number = 0
    while True:
        yield _indented(STEP.format(n=number), 1)
        number += 1


def loops() -> Iterator[list[str]]:
    """Loops at module level, nested one to six deep."""
    number = 0
    while True:
        depth = number % DEEPEST + 1
        heads = [f"for epoch_{level} in range(100):" for level in range(depth - 1)] + ["for real in load():"]
        nest = [line for level, head in enumerate(heads) for line in _indented(head, level)]
        yield [*nest, *_indented(STEP.format(n=number), depth)]
        number += 1


def functions() -> Iterator[list[str]]:
    """Functions that train and that nobody calls."""
    number = 0
    while True:
        yield [
            f"def train_{number}(batches, scale=1.0):",
            *_indented("for real in batches:", 1),
            *_indented(STEP.format(n=number), 2),
            *_indented("return scale", 1),
            "",
        ]
        number += 1


def methods() -> Iterator[list[str]]:
    """Classes whose training method calls others."""
    number = 0
    while True:
        body = f"""\
class Trainer{number}:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def loss(self, batch):
        return self.net(batch).square().mean()

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def fit(self, batches):
        for batch in batches:
            self.update(self.loss(batch))

"""
        yield body.splitlines()
        number += 1


def helpers() -> Iterator[list[str]]:
    """Helper functions that call each other, and loops that call them."""
    for number in range(HELPERS):
        following = f"helper_{number + 1}(x) + x" if number % 10 != 9 else "D(x)"
        yield [f"def helper_{number}(x):", f"    return {following}", ""]
    number = 0
    while True:
        yield [
            "for real in load():",
            f"    loss = helper_{number % HELPERS}(real).mean()",
            "    opt_d.zero_grad()",
            "    loss.backward()",
            "    opt_d.step()",
        ]
        number += 1


def plain() -> Iterator[list[str]]:
    """One training loop, and then a long script that trains nothing."""
    yield ["for real in load():", *_indented(STEP.format(n=0), 1)]
    number = 0
    while True:
        yield [
            f"def describe_{number}(rows, width={number}):",
            "    total = 0",
            "    for row in rows:",
            "        if row.kind == 'head':",
            "            continue",
            "        total += width * len(row.cells)",
            "    return {'total': total, 'width': width}",
            "",
            f"table_{number} = describe_{number}([])",
            f"print(table_{number})",
        ]
        number += 1


def branching() -> Iterator[list[str]]:
    """Helpers that each call the next one twice."""
    for number in range(HELPERS):
        following = f"both_{number + 1}(both_{number + 1}(x))" if number < HELPERS - 1 else "D(x)"
        yield [f"def both_{number}(x):", f"    return {following}", ""]
    yield [
        "def train_both(batches):",
        "    for real in batches:",
        "        opt_d.zero_grad()",
        "        both_0(real).mean().backward()",
        "        opt_d.step()",
        "",
    ]
    yield from functions()


KINDS: dict[str, Callable[[], Iterator[list[str]]]] = {
    kind.__name__: kind for kind in (flat, loops, functions, methods, helpers, plain, branching)
}


def script(kind: str, length: int) -> str:
    """A script of one kind of about so many lines; at least what its kind needs."""
    lines = HEAD.splitlines()
    for part in KINDS[kind]():
        if len(lines) + len(part) > length and not _unfinished(kind, lines):
            break
        lines += part
    return "\n".join(lines) + "\n"


def _unfinished(kind: str, lines: list[str]) -> bool:
    """Whether the helpers are still being written, or the loop has no body yet."""
    wanted = {"helpers": "for real in load():", "branching": "        opt_d.step()"}.get(kind)
    return wanted not in lines if wanted is not None else lines[-1].endswith(":")


def measure(text: str, options: Options, folder: Path, repeat: int) -> tuple[float, Report]:
    """The least CPU time in seconds that a check of this text took, and what it found."""
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    best = float("inf")
    for _ in range(repeat):
        gc.collect()  # What the script before has left is not this one's cost.
        started = time.process_time()
        report = driver.check([str(path)], options)
        best = min(best, time.process_time() - started)
    return best, report


def main() -> None:
    """Print the curve of each kind."""
    parser = argparse.ArgumentParser(description="Shows how the cost of gradfix check grows with length.")
    parser.add_argument("--kinds", metavar="KIND", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--lengths", metavar="N", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--repeat", metavar="N", type=int, default=1)
    asked = parser.parse_args()
    collect_rarely()
    options = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    if not isinstance(options, Options):
        sys.exit(f"error: {options.message}")
    options = replace(options, settings=replace(options.settings, max_file_size=1 << 30))
    with tempfile.TemporaryDirectory() as folder:
        for kind in asked.kinds:
            print(f"\n{kind:12}{'lines':>9}{'CPU':>11}{'a line':>11}")
            for length in asked.lengths:
                text = script(kind, length)
                lines = text.count("\n")
                seconds, report = measure(text, options, Path(folder), asked.repeat)
                print(f"{'':12}{lines:9,}{seconds:9.2f} s{seconds / lines * 1e6:8.0f} us", end="")
                said = [message for file in report.files for message in file.messages]
                found = sum(len(file.findings) for file in report.files)
                wrong = [problem.message for file in report.files for problem in file.problems]
                print(f"   {found} findings" if found else "", *said[:2], *wrong[:2], sep="  ", flush=True)


if __name__ == "__main__":
    main()
