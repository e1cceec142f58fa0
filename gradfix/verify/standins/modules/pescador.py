"""pescador: streams of samples, mixed and put together into batches."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import torch

from ..context import run
from ..inert import library


class Streamer:
    """What a generator gives, from the beginning each time."""

    def __init__(self, streamer: Any, *args: Any, **kwargs: Any) -> None:
        self.streamer, self.args, self.kwargs = streamer, args, kwargs

    def _stream(self) -> Iterator[Any]:
        inner = self.streamer
        return iter(inner(*self.args, **self.kwargs) if callable(inner) else inner)

    def iterate(self, max_iter: Any = None) -> Iterator[Any]:
        """At most so many."""
        return itertools.islice(self._stream(), max_iter)

    __iter__ = iterate

    def __call__(self, max_iter: Any = None, cycle: bool = False, max_items: Any = None) -> Iterator[Any]:
        return self.cycle(max_iter) if cycle else self.iterate(max_iter)

    def cycle(self, max_iter: Any = None) -> Iterator[Any]:
        """Again and again."""
        return itertools.islice(itertools.chain.from_iterable(iter(self.iterate, None)), max_iter)


class StochasticMux(Streamer):
    """One of several streams at a time, drawn at random; what is over begins again."""

    def __init__(self, streamers: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(streamers)
        self.generator = run().generator("streams")

    def _stream(self) -> Iterator[Any]:
        inner = [one if isinstance(one, Streamer) else Streamer(one) for one in self.streamer]
        active = [iter(one.iterate()) for one in inner]
        barren = 0
        while inner and barren < len(inner):
            place = int(torch.randint(len(inner), (), generator=self.generator))
            for one in active[place]:
                barren = 0
                yield one
                break
            else:
                active[place] = iter(inner[place].iterate())
                barren += 1


class ChainMux(Streamer):
    """One stream after the other."""

    def _stream(self) -> Iterator[Any]:
        for one in self.streamer:
            yield from one


ShuffledMux = PoissonMux = BinomialMux = RoundRobinMux = StochasticMux
ZMQStreamer = Streamer


def buffer_stream(stream: Any, buffer_size: int, *args: Any, **kwargs: Any) -> Iterator[Any]:
    """Batches of samples, each a dictionary of arrays."""
    numpy = library("numpy")
    samples = iter(stream)
    while held := list(itertools.islice(samples, buffer_size)):
        if len(held) == buffer_size:
            yield {name: numpy.array([one[name] for one in held]) for name in held[0]}


maps = core = mux = sys.modules[__name__]
