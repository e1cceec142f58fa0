"""Sparse matrices, kept as full ones with the methods that scripts call."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


class matrix:
    """A matrix."""

    format = "csr"

    def __init__(self, values: Any, shape: Any = None, dtype: Any = None) -> None:
        full: Any
        if isinstance(values, matrix):
            full = values.full
        elif isinstance(values, tuple) and len(values) == 2 and isinstance(values[1], (tuple, list)):
            data, (rows, columns) = values
            rows, columns = numpy.asarray(rows), numpy.asarray(columns)
            shape = shape or (int(rows.max()) + 1, int(columns.max()) + 1)
            full = numpy.zeros(shape, numpy.asarray(data).dtype)
            numpy.add.at(full, (rows, columns), data)
        elif isinstance(values, tuple):
            full = numpy.zeros(values)
        else:
            full = numpy.atleast_2d(numpy.asarray(values))
        self.full: Any = full if dtype is None else full.astype(dtype)

    @property
    def shape(self) -> Any:
        """Rows and columns."""
        return self.full.shape

    @property
    def dtype(self) -> Any:
        """Of its values."""
        return self.full.dtype

    @property
    def row(self) -> Any:
        """The rows of what is not zero."""
        return self.full.nonzero()[0].astype(numpy.int32)

    @property
    def col(self) -> Any:
        """The columns of what is not zero."""
        return self.full.nonzero()[1].astype(numpy.int32)

    @property
    def data(self) -> Any:
        """What is not zero."""
        return self.full[self.full.nonzero()]

    @property
    def nnz(self) -> int:
        """How much is not zero."""
        return int(numpy.count_nonzero(self.full))

    @property
    def T(self) -> matrix:
        """Turned."""
        return matrix(self.full.T)

    def _self(self, *args: Any, **kwargs: Any) -> matrix:
        return self

    tocoo = tocsr = tocsc = tolil = todok = asformat = _self

    def transpose(self, *args: Any) -> matrix:
        """Turned."""
        return self.T

    def toarray(self, *args: Any) -> Any:
        """All values."""
        return self.full.copy()

    todense = toarray

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.full.astype(dtype) if dtype is not None else self.full

    def astype(self, dtype: Any) -> matrix:
        """Of another type."""
        return matrix(self.full.astype(dtype))

    def sum(self, axis: Any = None) -> Any:
        """Of all, or along an axis."""
        found = self.full.sum(axis)
        return found if axis is None else numpy.matrix(found if axis == 0 else found[:, None])

    def dot(self, other: Any) -> Any:
        """The product."""
        found = self.full @ (other.full if isinstance(other, matrix) else numpy.asarray(other))
        return matrix(found) if isinstance(other, matrix) else found

    __matmul__ = dot

    def multiply(self, other: Any) -> matrix:
        """Element by element."""
        return matrix(self.full * (other.full if isinstance(other, matrix) else numpy.asarray(other)))

    def __mul__(self, other: Any) -> Any:
        return matrix(self.full * other) if numpy.isscalar(other) else self.dot(other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> matrix:
        return matrix(self.full + (other.full if isinstance(other, matrix) else numpy.asarray(other)))

    def __sub__(self, other: Any) -> matrix:
        return matrix(self.full - (other.full if isinstance(other, matrix) else numpy.asarray(other)))

    def __gt__(self, other: Any) -> matrix:
        return matrix(self.full > (other.full if isinstance(other, matrix) else other))

    def __getitem__(self, key: Any) -> Any:
        found = self.full[key]
        return matrix(found) if numpy.ndim(found) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        self.full[key] = value

    def setdiag(self, value: Any) -> None:
        """Set the diagonal."""
        numpy.fill_diagonal(self.full, value)

    def nonzero(self) -> Any:
        """Rows and columns of what is not zero."""
        return self.full.nonzero()


coo_matrix = csr_matrix = csc_matrix = lil_matrix = dok_matrix = spmatrix = csr_array = coo_array = matrix


def eye(n: int, m: int | None = None, **kwargs: Any) -> matrix:
    """Ones on the diagonal."""
    return matrix(numpy.eye(n, m))


identity = eye


def diags(values: Any, offsets: Any = 0, *args: Any, **kwargs: Any) -> matrix:
    """A diagonal."""
    return matrix(numpy.diag(numpy.asarray(values).reshape(-1), int(numpy.atleast_1d(offsets)[0])))


def vstack(parts: Any, *args: Any) -> matrix:
    """Below one another."""
    return matrix(numpy.vstack([matrix(one).full for one in parts]))


def hstack(parts: Any, *args: Any) -> matrix:
    """Beside one another."""
    return matrix(numpy.hstack([matrix(one).full for one in parts]))


def issparse(value: Any) -> bool:
    """Whether a value is one of these."""
    return isinstance(value, matrix)


isspmatrix = isspmatrix_coo = issparse


def load_npz(path: Any) -> matrix:
    """A matrix of a file."""
    found = numpy.load(path)
    return matrix(numpy.asarray(found["data"] if hasattr(found, "files") else found))


__getattr__ = others(__name__)
