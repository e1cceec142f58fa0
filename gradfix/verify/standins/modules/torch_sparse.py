"""torch_sparse: a matrix by the places of its values, computed by torch's own operations."""

from __future__ import annotations

from typing import Any

import torch

from ..inert import others

__version__ = "0.6.18"


class SparseTensor:
    """A matrix by rows, columns and values (none: ones)."""

    def __init__(
        self,
        row: Any = None,
        rowptr: Any = None,
        col: Any = None,
        value: Any = None,
        sparse_sizes: Any = None,
        is_sorted: bool = False,
        trust_data: bool = False,
    ) -> None:
        if row is None:
            row = torch.repeat_interleave(torch.arange(len(rowptr) - 1), rowptr[1:] - rowptr[:-1])
        known = sparse_sizes if sparse_sizes is not None else (None, None)
        ends = [int(one.max()) + 1 if one.numel() else 0 for one in (row, col)]
        rows, columns = (end if size is None else int(size) for size, end in zip(known, ends))
        self.sizes: tuple[int, int] = (rows, columns)
        order = (row * max(1, self.sizes[1]) + col).argsort(stable=True)
        self.row, self.col = row[order], col[order]
        self.value: Any = None if value is None else value[order]

    @classmethod
    def from_edge_index(
        cls, edge_index: Any, edge_attr: Any = None, sparse_sizes: Any = None, *args: Any
    ) -> Any:
        """From rows and columns in one."""
        return cls(row=edge_index[0], col=edge_index[1], value=edge_attr, sparse_sizes=sparse_sizes)

    @classmethod
    def from_dense(cls, mat: torch.Tensor, has_value: bool = True) -> Any:
        """From what is not zero."""
        row, col = mat.nonzero(as_tuple=True)
        return cls(row=row, col=col, value=mat[row, col] if has_value else None, sparse_sizes=mat.shape)

    def made(self, row: Any, col: Any, value: Any, sizes: Any = None) -> Any:
        """Another one of the same size."""
        return type(self)(row=row, col=col, value=value, sparse_sizes=sizes or self.sizes)

    def sparse_sizes(self) -> Any:
        """Rows and columns."""
        return self.sizes

    def sparse_size(self, dim: int) -> int:
        """One of these."""
        return int(self.sizes[dim])

    size = sparse_size

    def nnz(self) -> int:
        """How many values there are."""
        return len(self.row)

    def coo(self) -> Any:
        """Rows, columns and values."""
        return self.row, self.col, self.value

    def has_value(self) -> bool:
        """Whether it has other values than ones."""
        return self.value is not None

    def t(self) -> Any:
        """Rows for columns."""
        return self.made(self.col, self.row, self.value, self.sizes[::-1])

    def set_value(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """With other values."""
        return self.made(self.row, self.col, value)

    def fill_value(self, fill_value: float, dtype: Any = None) -> Any:
        """With one value everywhere."""
        return self.set_value(torch.full((self.nnz(),), fill_value, dtype=dtype or torch.float32))

    def ones(self, dtype: Any = None) -> torch.Tensor:
        """The values."""
        return torch.ones(self.nnz(), dtype=dtype) if self.value is None else self.value

    def set_diag(self, values: Any = None, k: int = 0) -> Any:
        """With these on the diagonal, or ones."""
        kept, places = self.row != self.col, torch.arange(min(self.sizes))
        row, col = (torch.cat([one[kept], places]) for one in (self.row, self.col))
        if self.value is None:
            return self.made(row, col, None)
        added = self.value.new_ones(len(places)) if values is None else values
        return self.made(row, col, torch.cat([self.value[kept], added]))

    def fill_diag(self, fill_value: float, k: int = 0) -> Any:
        """With one value on the diagonal."""
        made = self if self.value is not None else self.fill_value(1.0)
        return made.set_diag(made.value.new_full((min(self.sizes),), fill_value))

    def to_symmetric(self, *args: Any) -> Any:
        """Each place in both directions, once."""
        both = torch.cat([torch.stack([self.row, self.col]), torch.stack([self.col, self.row])], 1)
        if self.value is None:
            index, value = torch.unique(both, dim=1), None
        else:
            index, value = coalesce(both, torch.cat([self.value, self.value]), *self.sizes)
        return self.made(index[0], index[1], value)

    def to_dense(self, dtype: Any = None) -> torch.Tensor:
        """All values."""
        flat = self.ones(dtype).new_zeros(self.sizes[0] * self.sizes[1])
        return flat.index_add(0, self.row * self.sizes[1] + self.col, self.ones(dtype)).view(self.sizes)

    def to_torch_sparse_coo_tensor(self, dtype: Any = None) -> torch.Tensor:
        """As torch has it."""
        return torch.sparse_coo_tensor(torch.stack([self.row, self.col]), self.ones(dtype), self.sizes)

    def to_scipy(self, layout: Any = None, dtype: Any = None) -> Any:
        """As scipy has it."""
        import scipy.sparse  # type: ignore[import-untyped,unused-ignore]

        values = self.ones(dtype).detach().numpy(), (self.row.numpy(), self.col.numpy())
        return getattr(scipy.sparse, (layout or "csr") + "_matrix")(values, shape=self.sizes)

    def sum(self, dim: int) -> torch.Tensor:
        """Of each column (0) or each row (1)."""
        held = self.ones()
        return held.new_zeros(self.sizes[1 - dim]).index_add(0, self.col if dim == 0 else self.row, held)

    def mul(self, other: torch.Tensor) -> Any:
        """By a number for each row, or for each column."""
        by = other.view(-1)[self.row if other.shape[0] == self.sizes[0] else self.col]
        return self.set_value(self.ones() * by)

    __mul__ = mul

    def matmul(self, other: torch.Tensor, reduce: str = "sum") -> torch.Tensor:
        """The sum of the other's rows, each by the value for it."""
        if reduce not in ("sum", "add"):
            raise NotImplementedError(reduce)
        return spmm(torch.stack([self.row, self.col]), self.value, self.sizes[0], self.sizes[1], other)

    __matmul__ = matmul

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Where there is none: here."""
        return self

    cuda = cpu = coalesce = to


def spmm(index: torch.Tensor, value: Any, m: int, n: int, matrix: torch.Tensor) -> torch.Tensor:
    """The product with a full matrix."""
    told = matrix.index_select(0, index[1])
    told = told if value is None else told * value.view(-1, *[1] * (matrix.dim() - 1)).to(matrix.dtype)
    return matrix.new_zeros(m, *matrix.shape[1:]).index_add(0, index[0], told)


def matmul(src: SparseTensor, other: torch.Tensor, reduce: str = "sum") -> torch.Tensor:
    """The same of one of these."""
    return src.matmul(other, reduce)


def coalesce(index: torch.Tensor, value: Any, m: int, n: int, op: str = "add") -> Any:
    """Each place once, with the sum of its values."""
    places, where = torch.unique(index[0] * n + index[1], return_inverse=True)
    if value is not None:
        value = value.new_zeros(len(places), *value.shape[1:]).index_add(0, where, value)
    return torch.stack([places // n, places % n]), value


def transpose(index: torch.Tensor, value: Any, m: int, n: int, coalesced: bool = True) -> Any:
    """Rows for columns."""
    return coalesce(index.flip(0), value, n, m)


__getattr__ = others(__name__)
