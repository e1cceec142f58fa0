"""What the steps of optimizers have found: parameters that never had a gradient."""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

from .names import Names
from .own_code import is_own, places

LOOKED_AT = 16
"""Steps of an optimizer whose gradients are looked at; later only those whose number is a power of two."""
VALUES = 4
"""Steps of which it is looked at whether any gradient is other than zero."""


class Training:
    """What the steps of an optimizer have found: which of its parameters ever had a gradient."""

    def __init__(self, optimizer: Any, frame: types.FrameType | None) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.kind = type(optimizer).__name__
        self.places = places(frame)
        self.steps = 0
        self.valued = 0
        """At how many steps the values of gradients were looked at."""
        self.nonzero = False
        """Whether any of them was other than zero."""
        parameters = list(parameters_of(optimizer))
        self.never = set(range(len(parameters)))
        """The numbers of the parameters that no step has found with a gradient."""
        self.frozen = {number for number, one in enumerate(parameters) if not one.requires_grad}
        self.identities = [id(one) for one in parameters]
        self.count = len(parameters)
        names = Names()
        while frame is not None:
            if is_own(frame.f_code.co_filename):
                names.collect(frame, frame.f_lineno)
                forget_locals(frame)
            frame = frame.f_back
        self.name = names.optimizers.get(id(optimizer))
        self.held = list(names.networks)
        self.names = [names.modules.get(id(one)) for one in parameters]

    def look(self, optimizer: Any, had: set[int], *, done: bool) -> None:
        """A step is about to be made, or is ``done``; ``had`` are the identities of what had a gradient.

        A closure computes gradients in the step, and a hook of the script's may clear them at its end.
        """
        self.steps += done
        if self.steps > LOOKED_AT and self.steps & (self.steps - 1):
            return
        if not self.never and (self.nonzero or self.valued == VALUES):
            return
        given = [(n, one.grad) for n, one in enumerate(parameters_of(optimizer)) if one.grad is not None]
        self.never.difference_update(number for number, _ in given)
        had.update(self.identities[number] for number, _ in given)
        if given and not self.nonzero and self.valued < VALUES:
            self.valued += 1
            self.nonzero = any(bool(gradient.any()) for _, gradient in given)

    @property
    def only_zeros(self) -> bool:
        """Whether all gradients that were looked at were zero."""
        return self.valued > 0 and not self.nonzero

    @property
    def is_idle(self) -> bool:
        """Whether no step has ever found a gradient."""
        return len(self.never) == self.count

    def is_suspicious(self, had: set[int], called: set[int]) -> bool:
        """Whether there is something to tell."""
        return bool(self.count and self.steps) and (
            self.is_idle or self.only_zeros or bool(self.left_out(had, called))
        )

    def left_out(self, had: set[int], called: set[int]) -> list[str]:
        """The largest parts of networks that were called, and of which no parameter ever had a gradient."""
        all_of: dict[str, set[int]] = {}
        for number, name in enumerate(self.names):
            parts = (name or "").split(".")[:-1]
            for length in range(1, len(parts) + 1):
                all_of.setdefault(".".join(parts[:length]), set()).add(number)
        found: list[str] = []
        for name, numbers in sorted(all_of.items(), key=lambda item: item[0].count(".")):
            inside = any(name.startswith(f"{known}.") for known in found)
            untouched = all(self.identities[number] not in had for number in numbers)
            used = any(self.identities[number] in called for number in numbers)
            if not inside and untouched and used and not numbers <= self.frozen:
                found.append(name)
        return found

    def told(self, had: set[int], called: set[int]) -> dict[str, Any]:
        return {
            "name": self.name,
            "class": self.kind,
            "places": self.places,
            "steps": self.steps,
            "idle": self.is_idle,
            "zeros": self.only_zeros,
            "frozen": len(self.frozen) == self.count,
            "networks": [
                held
                for held in self.held
                if any(name is not None and name.startswith(f"{held}.") for name in self.names)
            ],
            "left_out": self.left_out(had, called),
            "held": self.held,
        }


def parameters_of(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]


def forget_locals(frame: types.FrameType) -> None:
    """Let go of what a look at the variables of a function has noted: it would live as long as the call."""
    if sys.version_info < (3, 13) and frame.f_code.co_flags & 1:
        frame.f_locals.clear()
