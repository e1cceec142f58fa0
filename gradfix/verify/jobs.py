"""What is to be run, and what it may use."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from gradfix.runtime.probe.coverage import Piece
from gradfix.verify import starting
from gradfix.verify.command import PLAIN, Command, project_root


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use."""

    steps: int = 12
    """Optimizer steps of all optimizers together."""
    backwards: int = 40
    """Backward calls; only ``steps`` of them where there is no optimizer: a hand moves parameters then."""
    seconds: float = 30.0
    """Of one run, without the import of torch, and without waiting for a processor (see ``clock.py``)."""
    memory: int = 4 << 30
    """Bytes of memory beyond what the imported torch has."""
    file: int = 1 << 30
    """Bytes of one file."""
    disk: int = 2 << 30
    """Bytes of all files together."""
    files: int = 20_000
    """Files and folders."""
    tasks: int = 256
    """Processes and threads at a time."""
    total: float = 300.0
    """Seconds for everything that one call verifies, and no more than :func:`budget` leaves of its own."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of one script."""

    path: Path
    """The script's own path; it need not exist, and what it holds is not read."""
    source: str
    """The text that runs in its place."""
    command: Command = PLAIN
    """How the user runs it."""
    seed: int = 0
    blind: bool = False
    """Compute no gradients: the run goes past what autograd refuses, and shows what losses come to."""
    keep: bool = False
    """Keep every graph usable, with saved tensors as they were when they were saved."""
    corrections: tuple[tuple[int, bool, tuple[tuple[int, int], ...], tuple[int, ...]], ...] = ()
    """By backward call: whether what its losses take for constants is cut off, and the parameters, by
    optimizer and position, that get nothing of it, and the terms that give nothing, by number (see
    ``intent.corrections``)."""
    still: bool = False
    """Put the weights back after every step."""
    dither: int = 0
    """If it is not 0: move weights and gradients by as little as their type can tell, at random with this
    seed. What that makes of gradients is what rounding may make of them."""
    alone: int | None = None
    """The same, but after those of this optimizer, by number."""
    moves: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """The same, but after some steps they are put back to other weights, which later ones are put back to: by
    optimizer, a number of its own (under which other versions may know it), and those of its steps."""
    numbered: bool = False
    """Number random draws, and record which ones gradients depend on (see ``draws.py``)."""
    numbers: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """By kind of draw: numbers that they are to have instead of those by counting (negative: their own)."""
    fake: bool = False
    """Compute nothing: shapes, hashes and errors only, at any size (see ``dataless.py``)."""
    thorough: bool = True
    """Record hashes of how tensors came about, and what graphs hold for backward."""
    updates: bool = False
    """Record what each step makes of the weights, and what they are in the end."""
    limits: Limits = Limits()
    schema: str = ""
    """What takes the place of data and devices that are missing, as JSON (see ``standins/schema.py``)."""
    within: Path | None = None
    """The folder that the run may read in the place of the script's project."""
    label: str = field(default="", compare=False)
    """What version this is, for who waits for it."""
    watched: tuple[Piece, ...] = field(default=(), compare=False)
    """Pieces of the text of which it is recorded whether they are executed (see ``coverage.py``); to watch
    more of them does not make it another run."""
    scout: Literal["", "pieces", "errors"] = ""
    """Only find out how many steps it takes to come to all that is watched, or to an error of autograd's."""

    def root(self) -> Path:
        """The folder of the project, which the run may read."""
        if self.within is not None:
            return self.within.absolute()
        path, entry = self.path.absolute(), self.command.entry
        roots = [project_root(one.absolute()) for one in (entry, path) if one is not None]
        return next((root for root in roots if path.is_relative_to(root)), project_root(path))

    def payload(self, folder: Path) -> dict[str, Any]:
        """The job as the probe reads it."""
        # A project may be reached by a link.
        path = Path(os.path.realpath(self.path.absolute().parent)) / self.path.name
        return {
            "path": str(path),
            "source": self.source,
            "root": os.path.realpath(self.root()),
            "folder": str(folder),
            "command": self.command.payload(path),
            "imports": starting.folders_in("PYTHONPATH", self.command.payload(path)["cwd"]),
            "seed": self.seed,
            "keep": self.keep,
            "blind": self.blind,
            "still": self.still,
            "dither": self.dither,
            "alone": self.alone,
            "moves": self.moves,
            "numbered": self.numbered,
            "numbers": self.numbers,
            "fake": self.fake,
            "thorough": self.thorough,
            "updates": self.updates,
            "limits": asdict(self.limits),
            "schema": self.schema,
            "watched": self.watched,
            "scout": self.scout,
            "corrections": self.corrections,
        }
