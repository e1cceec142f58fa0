"""What a certificate costs: time cold and warm, and the memory of a run without data.

    python benchmarks/certify.py [SCRIPT...] [--python EXE] [--repeat N]

Each script (default: the GAN among the examples) is repaired, and its fixes are verified, as
``gradfix verify`` does. ``cold`` is the first time, when torch is imported; ``warm`` is the median of N
further times within the same process, each of a text that has not been run before. ``CPU`` is the time of
all processes divided by the number of verifications, the import of torch included. ``without data`` is the
resident peak of a run in torch's FakeTensorMode, torch itself included, which is most of it. Times depend on
the machine, and on what else it does.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source
from gradfix.verify.runner import (
    Limits,
    Rewrite,
    run_once,
    servers_kept,
    verify_rewrites,
)

ROOT = Path(__file__).resolve().parent.parent
ASK = "\nimport resource; print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
ENDLESS = Limits(steps=1 << 30, backwards=1 << 30)


def main() -> None:
    """Measure each script and print a line for it."""
    parser = argparse.ArgumentParser(description="What a certificate costs.")
    parser.add_argument("scripts", nargs="*", type=Path, default=[ROOT / "examples/workshop/glyph_forge.py"])
    parser.add_argument("--python", metavar="EXE")
    parser.add_argument("--repeat", metavar="N", type=int, default=5)
    chosen = parser.parse_args()
    options = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(options, Options)
    print(f"{os.cpu_count()} cores; {'script':32}{'fixes':>6}{'cold':>9}{'warm':>9}{'CPU':>9}  without data")
    for path in chosen.scripts:
        rewrites = _rewrites(path, options)
        if rewrites:
            _measure(path, rewrites, chosen.python, chosen.repeat)
        else:
            print(f"{path.name}: nothing to fix")


def _rewrites(path: Path, options: Options) -> list[Rewrite]:
    read = source.parse(str(path), path.read_bytes(), 1 << 24)
    if not isinstance(read, Source):
        sys.exit(f"error: {read}")
    return [
        Rewrite(path, attempt.before, attempt.after, attempt.fix.claim, attempt.fix.effect)
        for attempt in driver.repair(read, options).applied
    ]


def _measure(path: Path, rewrites: list[Rewrite], python: str | None, repeat: int) -> None:
    walls = []
    spent = _cpu()
    with servers_kept():
        for turn in range(repeat + 1):
            # Another text is another run.
            mark = f"\n# {turn}\n"
            fresh = [replace(one, before=one.before + mark, after=one.after + mark) for one in rewrites]
            started = time.perf_counter()
            evidence = verify_rewrites(fresh, python=python)
            walls.append(time.perf_counter() - started)
    spent = _cpu() - spent
    outcomes = ", ".join(sorted({one.outcome for one in evidence}))
    before = rewrites[-1].after
    fake = run_once(path, before + ASK, python=python, fake=True, limits=ENDLESS)
    peak = next((line.split()[1] for line in fake.output.splitlines() if line.startswith("peak ")), None)
    memory = f"{int(peak) / 1024:.0f} MiB" if peak else f"did not finish ({fake.detail or fake.ending})"
    warm = statistics.median(walls[1:])
    times = "".join(f"{seconds:7.2f} s" for seconds in (walls[0], warm, spent / (repeat + 1)))
    print(f"{path.name:41}{len(rewrites):6}{times}  {memory} ({outcomes}, torch {fake.torch})")


def _cpu() -> float:
    """Seconds of CPU time of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
