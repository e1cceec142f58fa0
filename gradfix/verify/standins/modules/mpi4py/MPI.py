"""MPI among one process: what it sends to all, it receives."""

from __future__ import annotations

from typing import Any

from ...context import run
from ...inert import others

SUM, PROD, MIN, MAX, LAND, LOR = "SUM", "PROD", "MIN", "MAX", "LAND", "LOR"
FLOAT, DOUBLE, INT, LONG, BOOL, BYTE = "FLOAT", "DOUBLE", "INT", "LONG", "BOOL", "BYTE"
IN_PLACE = object()
"""Given for what is to be sent where that is also what is to be received."""


def buffer(given: Any) -> Any:
    """The array of a buffer, which may be given with its type or its number of elements."""
    return given[0] if isinstance(given, (list, tuple)) else given


class Comm:
    """A communicator with one member. An operation over the values of one is that value."""

    rank, size = 0, 1

    def Get_rank(self) -> int:
        """The first."""
        return 0

    def Get_size(self) -> int:
        """One."""
        return 1

    def Split(self, *args: Any, **kwargs: Any) -> Comm:
        """Of one member there is only one part."""
        return self

    Dup = Clone = Split

    def Barrier(self) -> None:
        """There is nobody to wait for."""

    barrier = Free = Barrier

    def bcast(self, value: Any, root: int = 0) -> Any:
        """The value itself."""
        return value

    def allreduce(self, value: Any, op: Any = SUM) -> Any:
        """The value itself."""
        return value

    def reduce(self, value: Any, op: Any = SUM, root: int = 0) -> Any:
        """The value itself."""
        return value

    def gather(self, value: Any, root: int = 0) -> list[Any]:
        """Everybody's value."""
        return [value]

    def allgather(self, value: Any) -> list[Any]:
        """Everybody's value."""
        return [value]

    def scatter(self, values: Any, root: int = 0) -> Any:
        """The part of the only one."""
        return values[0]

    def Bcast(self, given: Any, root: int = 0) -> None:
        """The buffer has it already."""

    def Allreduce(self, sent: Any, received: Any, op: Any = SUM) -> None:
        """From one buffer into the other."""
        if sent is not IN_PLACE:
            into = buffer(received)
            into[...] = buffer(sent).reshape(into.shape)

    def Reduce(self, sent: Any, received: Any, op: Any = SUM, root: int = 0) -> None:
        """From one buffer into the other."""
        self.Allreduce(sent, received)

    def Gather(self, sent: Any, received: Any, root: int = 0) -> None:
        """From one buffer into the other."""
        self.Allreduce(sent, received)

    Allgather = Scatter = Gather


Intracomm = Comm
COMM_WORLD = COMM_SELF = Comm()


def Get_processor_name() -> str:
    """Of this machine, whose own name is nobody's business."""
    return "localhost"


def Is_initialized() -> bool:
    """It is."""
    return True


run().used("mpi4py", "a world of one process")
__getattr__ = others(__name__)
