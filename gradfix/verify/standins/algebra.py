"""Functions of linear algebra that left torch, by those that came after them (as torch 1.8 had them)."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import torch

from . import context

Solved = namedtuple("Solved", "solution LU")
Fitted = namedtuple("Fitted", "solution QR")
Eigen = namedtuple("Eigen", "eigenvalues eigenvectors")


def solve(input: torch.Tensor, A: torch.Tensor, **more: Any) -> Any:
    """What solves ``A x = input``, and the matrix in two factors."""
    return Solved(torch.linalg.solve(A, input), torch.linalg.lu_factor(A.detach())[0])


def lstsq(input: torch.Tensor, A: torch.Tensor, **more: Any) -> Any:
    """What fits ``A x = input`` best, followed by rows that hold how well, and the matrix in two factors."""
    found = torch.linalg.lstsq(A, input).solution
    if len(A) > len(found):
        away = (A @ found - input).norm(dim=0, keepdim=True)
        rest = torch.zeros_like(input[len(found) + 1 :])
        found = torch.cat([found, away.to(found.dtype), rest])
    return Fitted(found, torch.geqrf(A.detach())[0])


def symeig(input: torch.Tensor, eigenvectors: bool = False, upper: bool = True, **more: Any) -> Any:
    """Eigenvalues of a symmetric matrix, and its vectors if these are wanted."""
    half = "U" if upper else "L"
    if eigenvectors:
        return Eigen(*torch.linalg.eigh(input, UPLO=half))
    return Eigen(torch.linalg.eigvalsh(input, UPLO=half), input.new_empty(0))


def eig(input: torch.Tensor, eigenvectors: bool = False, **more: Any) -> Any:
    """Eigenvalues as pairs of real numbers; the vectors of two that belong together lie side by side."""
    values, vectors = torch.linalg.eig(input)
    if not eigenvectors:
        return Eigen(torch.view_as_real(values), input.new_empty(0))
    columns = [
        vectors[:, place - 1].imag if one.imag < 0 else vectors[:, place].real
        for place, one in enumerate(values)
    ]
    return Eigen(torch.view_as_real(values), torch.stack(columns, 1))


def matrix_rank(input: torch.Tensor, tol: Any = None, symmetric: bool = False, **more: Any) -> Any:
    """How many rows depend on no others."""
    least = {} if tol is None else {"atol": tol, "rtol": 0.0}
    return torch.linalg.matrix_rank(input, hermitian=symmetric, **least)


def potrf(a: torch.Tensor, upper: bool = True) -> Any:
    """The root of a matrix, the upper half of it unless told otherwise."""
    return torch.linalg.cholesky(a, upper=upper)


LEFT: dict[str, Callable[..., Any]] = {
    "solve": solve,
    "lstsq": lstsq,
    "symeig": symeig,
    "eig": eig,
    "matrix_rank": matrix_rank,
    "gesv": solve,
    "gels": lstsq,
    "potrf": potrf,
}
"""By name: those that are gone, or are there only to say so."""


def install(run: context.Run) -> None:
    """Give them their old meaning; tensors look for theirs where torch says that they are gone."""
    gone = getattr(torch, "_linalg_utils", None)
    for name, meant in LEFT.items():
        real = getattr(torch, name, None)
        if real is not None and getattr(real, "__module__", "") != "torch._linalg_utils":
            continue
        function = functools.partial(told, run, name, meant)
        for owner, called in ((gone, one) for one, held in list(vars(gone or torch).items()) if held is real):
            if real is not None:
                setattr(owner, called, function)
        setattr(torch, name, function)


def told(run: context.Run, name: str, meant: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What such a function gives."""
    run.used("torch." + name, "what it is today, in torch.linalg")
    return meant(*args, **kwargs)
