"""How many scripts verification gets to two optimizer steps, and what each kind of stand-in is good for.

    python benchmarks/reach.py SCRIPTS.json --python EXE [--out FILE.jsonl] [--ablate] [--seconds N]

``SCRIPTS.json`` is a list of ``{"script": PATH, "cwd": PATH, "args": [...], "module": NAME}``; a script needs
no more than its path.
Each script is run by its command as verification runs an original: as it is, and again with what its errors
ask for. It *reaches* if it takes two optimizer steps, or if autograd raises one of its own errors.

With ``--ablate`` each script that reached is run again without each part of the schema that it needed: a part
is wanted by those that do not reach without it. Every script is run in the sandbox; one line of JSON each.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradfix.verify.command import Command, CommandError, of_module
from gradfix.verify.jobs import Job, Limits
from gradfix.verify.obstacles import obstacle
from gradfix.verify.recording.records import Recording
from gradfix.verify.reruns import completed, overwhelmed
from gradfix.verify.runner import Runner


@dataclass(frozen=True)
class Reach:
    """What came of one script."""

    reached: bool
    steps: int
    crash: str | None
    without_data: bool
    """Whether it was run without numbers, for want of time or memory."""
    obstacle: str
    standins: tuple[str, ...]
    parts: tuple[str, ...]
    """The parts of the schema that it was run with."""


def parts(schema: str) -> tuple[str, ...]:
    """The parts of a schema: its entries, of files by kind."""
    found = json.loads(schema) if schema else {}
    kinds = [f"files: {entry['kind']}" for entry in found.pop("files", {}).values()]
    return tuple(sorted({*kinds, *found} - {"seen"}))


class Without(Runner):
    """A runner whose runs never ask for one part of a schema."""

    part = ""

    def run(self, jobs: Iterable[Job]) -> list[Recording]:
        """As :meth:`Runner.run`."""
        return [
            replace(found, schema="") if self.part and self.part in parts(found.schema) else found
            for found in super().run(jobs)
        ]


def measured(runner: Runner, job: Job) -> Reach:
    """Run one script."""
    found = completed(runner, job)
    (recording,) = runner.run([found.job])
    steps, crash, without = len(recording.steps), recording.crash, False
    if overwhelmed(recording):
        (fake,) = runner.run([replace(found.job, fake=True)])
        without = len(fake.steps) >= 2 or fake.crash is not None
        steps, crash = (len(fake.steps), fake.crash) if without else (steps, crash)
    kind = None if crash is None or crash.kind == "other" else crash.kind
    # Where there is no optimizer, a hand moves the weights after each backward call.
    enough = steps >= 2 or (not recording.optimizers and len(recording.backwards) >= 2)
    return Reach(
        enough or kind is not None,
        steps,
        kind,
        without,
        found.stopped or obstacle(recording) or "",
        recording.standins,
        parts(found.job.schema),
    )


def jobs(listed: list[dict[str, Any]], seconds: float) -> Iterator[tuple[str, Job]]:
    """The jobs of the scripts that can be read."""
    for one in listed:
        path, cwd = Path(one["script"]), Path(one["cwd"]) if one.get("cwd") else None
        command = Command(tuple(one.get("args", ())), cwd=cwd)
        try:
            if one.get("module") and cwd is not None:
                command = of_module(one["module"], cwd, one.get("args", ()))
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError, CommandError) as error:
            print(f"{path}: left out: {error}", file=sys.stderr)
            continue
        yield one.get("id", str(path)), Job(path, text, command, limits=Limits(seconds=seconds))


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("scripts", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    lines = options.out.open("a", encoding="utf-8") if options.out else sys.stdout
    count, reached, wanted = 0, 0, Counter[str]()
    with Without(options.python, workers=1, total=1e6) as runner:
        for name, job in jobs(json.loads(options.scripts.read_text()), options.seconds):
            began = time.monotonic()
            runner.part = ""
            found = measured(runner, job)
            count, reached = count + 1, reached + found.reached
            lost = []
            for part in found.parts if options.ablate and found.reached else ():
                runner.part = part
                if not measured(runner, job).reached:
                    lost.append(part)
            wanted.update(lost)
            row = {"id": name, **vars(found), "wanted": lost, "seconds": round(time.monotonic() - began, 1)}
            print(json.dumps(row), file=lines, flush=True)
            runner.forget_all_but(())
    print(f"{reached} of {count} reach", file=sys.stderr)
    for part, scripts in wanted.most_common():
        print(f"{scripts:5} ({scripts / max(count, 1):.1%}) need {part}", file=sys.stderr)


if __name__ == "__main__":
    main()
