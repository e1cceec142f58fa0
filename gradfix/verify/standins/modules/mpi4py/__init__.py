"""mpi4py: a world of one process."""

from . import MPI

__all__ = ["MPI"]
