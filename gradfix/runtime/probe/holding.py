"""Weights that are put back after steps, or moved away."""

from __future__ import annotations

from typing import Any

import torch

from .recorder import Recorder


class Holding:
    """Puts weights back after steps, as the job of a recorder asks."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.alone: int | None = recorder.job["alone"]
        self.moves: list[list[Any]] = recorder.job["moves"]
        self.active = recorder.job["still"] or self.alone is not None or bool(self.moves)
        self.stepped: dict[int, int] = {}
        """By optimizer: how many steps it has taken."""
        self.trained: dict[int, torch.Tensor] = {}
        """By identity: the parameters that have had a gradient at some step."""
        self.before: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        """By the identity of an optimizer that steps: its parameters, and what they held."""

    def begin(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        if self.active:
            tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
            self.before[id(optimizer)] = [(tensor, tensor.detach().clone()) for tensor in tensors]

    def put_back(self, optimizer: Any) -> bool:
        """Put the weights back that it has moved between two evaluations of its closure, if they are to rest;
        whether they are."""
        resting = self.active and self.recorder.optimizers.index(optimizer) != self.alone
        for tensor, value in self.before[id(optimizer)] if resting else ():
            tensor.data.copy_(value)
        return resting

    def end(self, optimizer: Any) -> None:
        """It has stepped."""
        held = self.before.pop(id(optimizer), [])
        if not held or self.recorder.idling:
            return
        number = self.recorder.optimizers.index(optimizer)
        turn = self.stepped[number] = self.stepped.get(number, 0) + 1
        self.trained |= {id(one): one for one, _ in held if one.grad is not None}
        if number == self.alone:
            return
        if number < len(self.moves) and turn in self.moves[number][1]:
            # What was kept of earlier weights is not what the run goes on with.
            name, turns = self.moves[number]
            key = name, turns.index(turn)
            # What else the optimizer owns goes on as it is, and does not count.
            moving = [(one, value) for one, value in held if id(one) in self.trained]
            with self.recorder.bookkeeping(), torch.no_grad():
                held = [
                    *held,
                    *((one, displaced(value, *key, at)) for at, (one, value) in enumerate(moving)),
                ]
        for tensor, value in held:
            tensor.data.copy_(value)


class Weights:
    """The weights of an optimizer at one moment."""

    def __init__(self, optimizer: Any) -> None:
        self.tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        self.look()

    def look(self) -> None:
        """Note what they are now."""
        self.values = [tensor.detach().clone() for tensor in self.tensors]

    def moved(self) -> bool:
        """Whether they are others than when they were noted."""
        return not all(map(torch.equal, self.tensors, self.values))


DISPLACED = 0.02
"""How far weights are moved away, at most, where a run is to go on with others than before."""


def displaced(value: torch.Tensor, optimizer: int, turn: int, position: int) -> torch.Tensor:
    """Perturbed weights: the same perturbation in every run."""
    if not value.is_floating_point():
        return value
    generator = torch.Generator().manual_seed((turn << 8 | optimizer) << 20 | position)
    away = torch.rand(value.shape, generator=generator) * 2 - 1
    return value + DISPLACED * away.to(value.device, value.dtype)
