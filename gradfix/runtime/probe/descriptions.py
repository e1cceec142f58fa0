"""Tensors as events tell them: a digest, a magnitude, and all elements or a sketch of them."""

from __future__ import annotations

import ctypes
import hashlib
import math
from typing import Any

import torch

from . import storages
from .gradients import nonzero
from .journal import EventWriter
from .provenance import Provenance

EXACT = 10_000
"""Tensors up to this many elements are stored whole, larger ones as a sketch."""
SKETCH = 16
"""Numbers in a sketch: projections on fixed random signs, whose differences estimate a norm."""
ROW = 4096
"""Elements in a row of a sketch: a sign for each row and one for each place in it."""
ROWS = 64
"""Rows that are measured at a time: as float64 they fit a processor's cache."""


def memory(flat: torch.Tensor) -> Any:
    """The bytes of a contiguous tensor: a view, for large ones are not to be copied once more."""
    size = flat.numel() * flat.element_size()
    # Not by the tensor's own method: whoever asks that is taken for one who may write there.
    return (ctypes.c_char * size).from_address(storages.address_of(flat)) if size else b""


class Descriptions:
    """Describes tensors, equal ones once.

    Args:
        journal: Where values are written.
        fake: In a run that computes nothing: what tells how tensors came about, in the place of values.
    """

    def __init__(self, journal: EventWriter, fake: Provenance | None) -> None:
        self.journal = journal
        self.fake = fake
        self.known: dict[str, list[Any]] = {}
        self.signs: dict[int, torch.Tensor] = {}

    def describe(self, tensor: torch.Tensor | None) -> list[Any] | None:
        """``[shape, type, digest, largest, norm, finite, offset, sketch]`` of a tensor.

        ``largest`` is the largest magnitude. Either ``offset`` points at all elements in the
        values file or ``sketch`` holds projections.
        """
        if tensor is None:
            return None
        if self.fake is not None:
            how = self.fake.of(tensor) or "unknown"
            extent = repr(math.nan if nonzero(tensor) else 0.0)
            return [list(tensor.shape), str(tensor.dtype), how, extent, extent, True, None, None]
        with torch.no_grad():
            plain = tensor.detach()
            if plain.layout != torch.strided:
                plain = plain.to_dense()
            if plain.is_complex():
                plain = torch.view_as_real(plain)
            flat = plain.to("cpu").resolve_neg().reshape(-1).contiguous()
            size = flat.numel()
            shape = list(plain.shape)
            key = repr((shape, flat.dtype)).encode()[:64]
            digest = hashlib.blake2b(memory(flat), digest_size=16, key=key).hexdigest()
            if digest in self.known:
                return self.known[digest]
            offset = sketch = None
            with torch.autocast("cpu", enabled=False):
                if size <= EXACT:
                    wide = flat.to(torch.float64)
                    largest = float(torch.linalg.vector_norm(wide, math.inf)) if size else 0.0
                    norm = float(torch.linalg.vector_norm(wide))
                    offset = self.journal.store(memory(wide), size * 8)
                else:
                    largest, norm, sketch = self.measure(flat)
        finite = math.isfinite(largest)
        entry = [shape, str(tensor.dtype), digest, repr(largest), repr(norm), finite, offset, sketch]
        self.known[digest] = entry
        return entry

    def measure(self, flat: torch.Tensor) -> tuple[float, float, list[str]]:
        """Largest magnitude, Euclidean norm and sketch of a large tensor.

        The sketch is projections on signs that are the same in every run: linear, so they may be
        subtracted. Everything is computed in float64, a few rows at a time: a copy of a large
        tensor would cost more than the arithmetic.
        """
        rows = -(-flat.numel() // ROW)
        drawn = self.signs.get(rows)
        if drawn is None:
            # Its own generator: the script's random numbers are not ours to draw.
            generator = torch.Generator(device="cpu").manual_seed(rows)
            signs = torch.randint(
                0, 2, (SKETCH, rows + ROW), generator=generator, dtype=torch.int8, device="cpu"
            )
            drawn = signs.t().contiguous().to(torch.float64) * 2 - 1
            self.signs[rows] = drawn
        along, across = drawn[:rows], drawn[rows:]
        largest = squares = 0.0
        projections = torch.zeros(SKETCH, dtype=torch.float64, device="cpu")
        room = torch.empty(min(rows, ROWS) * ROW, dtype=torch.float64, device="cpu")
        for first in range(0, rows, ROWS):
            part = flat[first * ROW : (first + ROWS) * ROW]
            wide = room[: len(part)].copy_(part)
            low, high = torch.aminmax(wide)
            magnitude = float(torch.maximum(-low, high))
            # Written so that a magnitude that is not a number stays the largest.
            largest = largest if magnitude <= largest or math.isnan(largest) else magnitude
            squares += float(wide @ wide)
            whole = len(wide) // ROW
            folded = wide[: whole * ROW].view(whole, ROW) @ across
            projections += (folded * along[first : first + whole]).sum(0)
            rest = wide[whole * ROW :]
            if len(rest):
                projections += (rest @ across[: len(rest)]) * along[first + whole]
        return largest, math.sqrt(squares), [repr(value) for value in projections.tolist()]
