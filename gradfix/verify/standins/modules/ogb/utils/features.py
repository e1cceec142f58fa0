"""How many categories each column of an atom and of a bond has."""

from __future__ import annotations

from ....inert import others


def get_atom_feature_dims() -> list[int]:
    """Of an atom."""
    return [119, 5, 12, 12, 10, 6, 6, 2, 2]


def get_bond_feature_dims() -> list[int]:
    """Of a bond."""
    return [5, 6, 2]


__getattr__ = others(__name__)
