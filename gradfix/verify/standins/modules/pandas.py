"""pandas: tables as columns of numpy's arrays, with what scripts for training do to them.

A table of a file that is not there has the columns that the script asks for, with made-up values.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from .. import absent, content
from ..context import run
from ..inert import others

NaN = NA = float("nan")
COLUMNS = 4
"""Of a made-up table of which nothing is said."""


def numbers(values: Any) -> Any:
    """An array: of numbers if all of the values are, else of objects."""
    if isinstance(values, (Series, content.Content)):
        return numpy.asarray(values)
    values = list(values) if not isinstance(values, numpy.ndarray) else values
    if isinstance(values, numpy.ndarray):
        return values
    if all(isinstance(one, str) for one in values) and values:
        for kind in (int, float):
            try:
                return numpy.array([kind(one) if one != "" else NaN for one in values])
            except ValueError:
                continue
        return numpy.array(values, object)
    try:
        found = numpy.array(values)
    except ValueError:
        found = None
    if found is None or found.ndim != 1 or found.dtype.kind in "US":
        found = numpy.empty(len(values), object)
        found[:] = values
    return found


class Index(list):  # type: ignore[type-arg]
    """Labels."""

    @property
    def values(self) -> Any:
        """As an array."""
        return numbers(self)

    to_list = tolist = lambda self: list(self)

    def get_loc(self, label: Any) -> int:
        """The place of a label."""
        return self.index(label)

    def drop(self, labels: Any) -> Index:
        """Without some."""
        gone = [labels] if isinstance(labels, str) else list(labels)
        return Index(one for one in self if one not in gone)

    def difference(self, other: Any) -> Index:
        """Those that are not in another."""
        return Index(one for one in self if one not in set(other))


class Series:
    """A column."""

    def __init__(self, data: Any = (), index: Any = None, name: Any = None, dtype: Any = None) -> None:
        if isinstance(data, dict):
            index, data = list(data), list(data.values())
        self.values = numbers(data)
        if dtype is not None:
            self.values = self.values.astype(dtype)
        self.index = Index(index if index is not None else range(len(self.values)))
        self.name = name

    def _like(self, values: Any, index: Any = None) -> Series:
        return Series(values, self.index if index is None else index, self.name)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values if dtype is None else self.values.astype(dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values.tolist())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (Series, list, numpy.ndarray, slice)):
            chosen = numpy.asarray(key) if not isinstance(key, slice) else key
            index = numpy.array(self.index, object)[chosen]
            return self._like(self.values[chosen], index.tolist())
        return self.values[self.index.index(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values[numpy.asarray(key) if not isinstance(key, (int, slice)) else key] = value

    @property
    def loc(self) -> Series:
        """By label."""
        return self

    @property
    def iloc(self) -> Any:
        """By place."""
        return _Places(
            lambda key: (
                self.values[key]
                if isinstance(key, int)
                else self._like(self.values[key], numpy.array(self.index, object)[key].tolist())
            )
        )

    @property
    def shape(self) -> Any:
        """The number of values."""
        return self.values.shape

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.values.dtype

    @property
    def str(self) -> Any:
        """Methods of texts, for each value."""
        return _Texts(self)

    @property
    def dt(self) -> Any:
        """Parts of dates: nobody knows them."""
        return _Dates(self)

    cat = property(lambda self: _Codes(self))

    def to_numpy(self, dtype: Any = None, **kwargs: Any) -> Any:
        """As an array."""
        return self.values if dtype is None else self.values.astype(dtype)

    def tolist(self) -> list[Any]:
        """As a list."""
        return self.values.tolist()  # type: ignore[no-any-return]

    to_list = tolist

    def astype(self, kind: Any, **kwargs: Any) -> Series:
        """Of another type."""
        if kind == "category":
            return self
        return self._like(self.values.astype(object if kind in ("str", "string") else kind))

    def apply(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Series:
        """The results of a function for each value."""
        return self._like([function(one) for one in self])

    def map(self, function: Any, *args: Any) -> Series:
        """The results of a function or of a table."""
        if callable(function):
            return self.apply(function)
        return self._like(
            [function.get(one, NaN) if hasattr(function, "get") else function[one] for one in self]
        )

    def replace(self, old: Any, new: Any = None, **kwargs: Any) -> Series:
        """Other values in the place of some."""
        table = (
            old
            if isinstance(old, dict)
            else dict(zip(old, new))
            if isinstance(old, list) and isinstance(new, list)
            else dict.fromkeys(old if isinstance(old, list) else [old], new)
        )
        return self._like([table.get(one, one) for one in self])

    def unique(self) -> Any:
        """Each value once."""
        return numbers(list(dict.fromkeys(self)))

    def nunique(self, *args: Any) -> int:
        """How many values differ."""
        return len(self.unique())

    def value_counts(self, normalize: bool = False, **kwargs: Any) -> Series:
        """How often each value occurs."""
        counts: dict[Any, float] = {}
        for one in self:
            counts[one] = counts.get(one, 0) + 1
        ranked = sorted(counts.items(), key=lambda pair: -pair[1])
        share = len(self) if normalize else 1
        return Series(
            [count / share if normalize else count for _, count in ranked], [one for one, _ in ranked]
        )

    def isin(self, values: Any) -> Series:
        """Whether each value is one of these."""
        known = set(values)
        return self._like(numpy.array([one in known for one in self]))

    def isnull(self) -> Series:
        """Whether each value is missing."""
        return self._like(numpy.array([one is None or one != one for one in self]))

    isna = isnull

    def notnull(self) -> Series:
        """Whether each value is there."""
        return self._like(~self.isnull().values)

    notna = notnull

    def fillna(self, value: Any = None, **kwargs: Any) -> Series:
        """A value in the place of missing ones."""
        return self._like(
            [(0 if value is None else value) if one is None or one != one else one for one in self]
        )

    def dropna(self, **kwargs: Any) -> Series:
        """Without missing values."""
        return self[self.notnull().values]  # type: ignore[no-any-return]

    def sort_values(self, ascending: bool = True, **kwargs: Any) -> Series:
        """In order."""
        order = numpy.argsort(self.values, kind="stable")
        return self[order if ascending else order[::-1]]  # type: ignore[no-any-return]

    def items(self) -> Iterator[Any]:
        """Labels and values."""
        return iter(zip(self.index, self))

    iteritems = items

    def to_dict(self) -> dict[Any, Any]:
        """As a dictionary."""
        return dict(zip(self.index, self))

    def keys(self) -> Index:
        """The labels."""
        return self.index

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a label."""
        return self[key] if key in self.index else default

    def reset_index(self, drop: bool = False, **kwargs: Any) -> Series:
        """Numbered from the beginning."""
        return Series(self.values, None, self.name)

    def to_frame(self, name: Any = None) -> DataFrame:
        """As a table."""
        return DataFrame({name or self.name or 0: self.values})

    def rolling(self, window: int, *args: Any, **kwargs: Any) -> Any:
        """What is computed of the last few values."""
        return _Rolling(self, window)

    ewm = expanding = lambda self, *args, **kwargs: _Rolling(self, 1)

    def shift(self, count: int = 1) -> Series:
        """Values of other rows; missing ones at the end from which they came."""
        moved = numpy.full(len(self), NaN)
        if count > 0:
            moved[count:] = self.values[:-count]
        else:
            moved[:count] = self.values[-count:]
        return self._like(moved)

    def diff(self, count: int = 1) -> Series:
        """Differences of rows."""
        return self._like(self.values - self.shift(count).values)

    def pct_change(self, count: int = 1) -> Series:
        """Relative differences of rows."""
        return self._like(self.values / self.shift(count).values - 1)

    def sample(self, n: Any = None, frac: Any = None, random_state: Any = None, **kwargs: Any) -> Series:
        """Some, drawn at random."""
        return self[chosen(len(self), n, frac, random_state)]  # type: ignore[no-any-return]

    def head(self, count: int = 5) -> Series:
        """The first."""
        return self[slice(0, count)]  # type: ignore[no-any-return]

    def tail(self, count: int = 5) -> Series:
        """The last."""
        return self[slice(max(0, len(self) - count), None)]  # type: ignore[no-any-return]

    def copy(self, *args: Any) -> Series:
        """Again."""
        return self._like(self.values.copy())

    def __eq__(self, other: Any) -> Any:
        return self._like(self.values == (numpy.asarray(other) if isinstance(other, Series) else other))

    def __ne__(self, other: Any) -> Any:
        return self._like(self.values != (numpy.asarray(other) if isinstance(other, Series) else other))

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: Any) -> Any:
        if name[:1] == "_" or name == "values":
            raise AttributeError(name)
        if name in self.index:
            return self[name]
        reduced = getattr(numpy, "nan" + name, None) or getattr(numpy, name, None)
        if reduced is None:
            raise AttributeError(name)

        def compute(*args: Any, **kwargs: Any) -> Any:
            for unused in ("skipna", "inplace", "axis", "numeric_only"):
                kwargs.pop(unused, None)
            if name in ("std", "var"):
                kwargs.setdefault("ddof", 1)
            found = reduced(self.values, *args, **kwargs)
            return self._like(found) if numpy.ndim(found) == 1 and len(found) == len(self) else found

        return compute


def _lifted(name: str) -> Any:
    def operate(self: Any, *others: Any) -> Any:
        values = [numpy.asarray(one) if isinstance(one, (Series, DataFrame)) else one for one in others]
        return self._like(getattr(self.values, name)(*values))

    return operate


for _name in (
    "add sub mul truediv floordiv mod pow radd rsub rmul rtruediv rpow and or xor lt le gt ge neg abs invert"
).split():
    setattr(Series, "__" + _name + "__", _lifted("__" + _name + "__"))


class _Places:
    """What is taken by place or label."""

    def __init__(self, get: Callable[[Any], Any], put: Callable[[Any, Any], None] | None = None) -> None:
        self.get, self.put = get, put

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        assert self.put is not None
        self.put(key, value)


class _Texts:
    def __init__(self, column: Series) -> None:
        self.column = column

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.column._like(
            [getattr(str(one), name)(*args) for one in self.column]
        )

    def len(self) -> Series:
        """The lengths of the texts."""
        return self.column._like([len(str(one)) for one in self.column])

    def contains(self, part: str, *args: Any, **kwargs: Any) -> Series:
        """Whether each text has a part."""
        return self.column._like(numpy.array([part in str(one) for one in self.column]))

    def replace(self, old: str, new: str, *args: Any, **kwargs: Any) -> Series:
        """The texts with another part."""
        return self.column._like([str(one).replace(old, new) for one in self.column])


class _Dates:
    def __init__(self, column: Series) -> None:
        self.column = column

    def __getattr__(self, name: str) -> Any:
        return self.column._like(numpy.arange(len(self.column)) % 7)


class _Codes:
    def __init__(self, column: Series) -> None:
        kinds = sorted(set(column), key=str)
        self.categories = Index(kinds)
        self.codes = column._like(numpy.array([kinds.index(one) for one in column]))


class _Rolling:
    def __init__(self, column: Any, window: int) -> None:
        self.column, self.window = column, window

    def mean(self) -> Any:
        """Of the last few values."""
        values, count = numpy.asarray(self.column.values, float), self.window
        found = numpy.full(values.shape, NaN)
        for row in range(count - 1, len(values)):
            found[row] = values[row - count + 1 : row + 1].mean(0)
        return self.column._like(found)

    std = sum = max = min = var = mean


def chosen(count: int, n: Any, frac: Any, seed: Any) -> Any:
    """Places drawn at random."""
    wanted = n if n is not None else round((frac or 1) * count) if frac else 1
    source = numpy.random.RandomState(seed) if isinstance(seed, int) else numpy.random
    return source.permutation(count)[:wanted]


class DataFrame:
    """A table."""

    def __init__(self, data: Any = None, index: Any = None, columns: Any = None, dtype: Any = None) -> None:
        self._held: dict[Any, Any] = {}
        self._made: content.Content | None = None
        rows = 0
        if isinstance(data, DataFrame):
            data = dict(data._held)
        if isinstance(data, content.Content):
            data = numpy.asarray(data)
        if isinstance(data, dict):
            rows = max(
                [len(one) for one in data.values() if hasattr(one, "__len__") and not isinstance(one, str)]
                or [1 if data else 0]
            )
            for name, one in data.items():
                self._held[name] = (
                    numbers(one)
                    if hasattr(one, "__len__") and not isinstance(one, str)
                    else numbers([one] * rows)
                )
        elif isinstance(data, numpy.ndarray):
            data = data if data.ndim > 1 else data[:, None]
            rows = len(data)
            for number, name in enumerate(columns if columns is not None else range(data.shape[1])):
                self._held[name] = data[:, number]
        elif data is not None:
            data = list(data)
            rows = len(data)
            if data and isinstance(data[0], dict):
                for name in dict.fromkeys(key for row in data for key in row):
                    self._held[name] = numbers([row.get(name, NaN) for row in data])
            elif data:
                width = len(data[0]) if hasattr(data[0], "__len__") and not isinstance(data[0], str) else 1
                data = (
                    data
                    if width > 1 or not isinstance(data[0], (int, float, str))
                    else [[one] for one in data]
                )
                for number, name in enumerate(columns if columns is not None else range(width)):
                    self._held[name] = numbers([row[number] for row in data])
        for name in columns if columns is not None else ():
            self._held.setdefault(name, numpy.full(rows, NaN))
        if columns is not None and isinstance(data, dict):
            self._held = {name: self._held[name] for name in columns}
        self.index = Index(index if index is not None else range(rows))

    # -- what is made up -------------------------------------------------------------------

    @classmethod
    def made_up(cls, found: content.Content) -> DataFrame:
        """The table of a file that is not there."""
        table = cls()
        table._made = found
        table.index = Index(range(content.book.sizes(found._place, 2)[0]))
        return table

    def _column(self, name: Any) -> Any:
        if name not in self._held:
            if self._made is None:
                raise KeyError(name)
            found = self._made._child(name)
            count = len(self.index)
            if isinstance(found, str):
                # The plan says that it holds texts; ``1_000`` would be a number.
                called = name if isinstance(name, str) else f"column_{name}"
                self._held[name] = numbers([f"{called}_{i:03d}" for i in range(count)])
                return self._held[name]
            kind = content.book.kind(found._place)
            generator = run().generator("column", found._place)
            import torch

            if kind == "int":
                self._held[name] = torch.randint(0, content.CLASSES, (count,), generator=generator).numpy()
            elif content.book.planned(found._place, "kind") is None and TEXTS.search(str(name)):
                self._held[name] = numbers([content.part(found._place, i)._text() for i in range(count)])
            else:
                self._held[name] = torch.rand(count, generator=generator).numpy().astype(numpy.float64)
        return self._held[name]

    def _all(self) -> dict[Any, Any]:
        """All columns: of a made-up table those that were asked for, else as many as its use asks for."""
        if self._made is not None and not self._held:
            for number in range(content.book.sizes(self._made._place, 2)[1]):
                self._column(f"column_{number}")
        return self._held

    # -- access ----------------------------------------------------------------------------

    @property
    def columns(self) -> Index:
        """The names of the columns; of a table of which one is known at most, there are some more."""
        if self._made is not None and len(self._held) < 2:
            for number in range(len(self._held), COLUMNS):
                self._column(f"column_{number}")
        return Index(self._all())

    @columns.setter
    def columns(self, names: Any) -> None:
        names = list(names)
        if self._made is not None and len(names) != len(self._held):
            self._held = {name: self._column(name) for name in names}
        else:
            self._held = dict(zip(names, self._held.values()))

    @property
    def values(self) -> Any:
        """All values."""
        held = list(self._all().values())
        return numpy.stack(held, 1) if held else numpy.zeros((len(self.index), 0))

    def to_numpy(self, dtype: Any = None, **kwargs: Any) -> Any:
        """All values."""
        return self.values if dtype is None else self.values.astype(dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.to_numpy(dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.index), len(self._all())

    @property
    def dtypes(self) -> Series:
        """The types of the columns."""
        return Series([one.dtype for one in self._all().values()], list(self._all()))

    @property
    def T(self) -> DataFrame:
        """Turned."""
        return DataFrame(self.values.T)

    @property
    def empty(self) -> bool:
        """Whether there are no rows."""
        return not len(self.index)

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self._held or (self._made is not None and isinstance(name, str))

    def _like(self, values: Any) -> DataFrame:
        return DataFrame(values, self.index, self.columns)

    def _rows(self, key: Any) -> DataFrame:
        made = DataFrame()
        made._made = self._made
        made._held = {name: one[key] for name, one in self._all().items()}
        made.index = Index(numpy.array(self.index, object)[key].tolist())
        return made

    def _some(self, names: Any) -> DataFrame:
        made = DataFrame()
        made._held = {name: self._column(name) for name in names}
        made.index = self.index
        return made

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._rows(key)
        if isinstance(key, (Series, numpy.ndarray)) and numpy.asarray(key).dtype.kind == "b":
            return self._rows(numpy.asarray(key))
        if isinstance(key, (list, Index, numpy.ndarray, Series)):
            return self._some(list(key))
        return Series(self._column(key), self.index, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, list):
            values = numpy.asarray(value)
            for number, name in enumerate(key):
                self._held[name] = values[:, number]
            return
        scalar = not hasattr(value, "__len__") or isinstance(value, str)
        self._held[key] = numbers([value] * len(self.index)) if scalar else numbers(value)
        if scalar is False and not len(self.index):
            self.index = Index(range(len(self._held[key])))

    def __delitem__(self, key: Any) -> None:
        self._column(key)
        del self._held[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._held or (self._made is not None and not hasattr(numpy, name)):
            return self[name]
        reduced = getattr(numpy, "nan" + name, None) or getattr(numpy, name, None)
        if reduced is None:
            raise AttributeError(name)

        def compute(*args: Any, **kwargs: Any) -> Any:
            extra = {"ddof": 1} if name in ("std", "var") else {}
            axis = kwargs.get("axis", 0)
            found = reduced(self.values.astype(float), axis=axis, **extra)
            return Series(found, list(self.columns) if axis == 0 else self.index)

        return compute

    def _located(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if isinstance(rows, (Series, numpy.ndarray)) and numpy.asarray(rows).dtype.kind == "b":
            place: Any = numpy.asarray(rows)
        elif isinstance(rows, slice):
            place = slice(rows.start, None if rows.stop is None else rows.stop + 1, rows.step)
        elif isinstance(rows, (list, numpy.ndarray, Series)):
            place = [self.index.index(one) for one in rows]
        else:
            place = self.index.index(rows)
        return self._taken(place, columns)

    def _placed(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if columns is not None:
            names = list(self._all())
            if isinstance(columns, int) and self._made is not None:
                while len(names) <= columns:
                    self._column(f"column_{len(names)}")
                    names = list(self._held)
            columns = names[columns] if isinstance(columns, (int, slice)) else [names[one] for one in columns]
        return self._taken(rows, columns)

    def _taken(self, rows: Any, columns: Any) -> Any:
        if isinstance(columns, slice):
            columns = None
        one_row = isinstance(rows, (int, numpy.integer))
        if columns is None:
            if one_row:
                self._all()
                if self._made is not None:
                    return _Row(self, int(rows))
                return Series([one[rows] for one in self._held.values()], list(self._held))
            return self._rows(numpy.asarray(rows) if isinstance(rows, list) else rows)
        if isinstance(columns, (str, int)):
            found = self._column(columns)[rows]
            return found if one_row else Series(found, None, columns)
        part = self._some(columns)
        return part._taken(rows, None)

    def _set(self, key: Any, value: Any) -> None:
        rows, column = key
        if isinstance(column, int) and column not in self._held:
            column = list(self._all())[column]
        if column not in self._held:
            self[column] = NaN
        self._column(column)[numpy.asarray(rows) if isinstance(rows, Series) else rows] = value

    loc = property(lambda self: _Places(self._located, self._set))
    iloc = property(lambda self: _Places(self._placed, self._set))
    at = loc
    iat = iloc

    # -- what is done to it ----------------------------------------------------------------

    def copy(self, *args: Any) -> DataFrame:
        """Again."""
        made = DataFrame()
        made._held, made._made, made.index = dict(self._held), self._made, Index(self.index)
        return made

    def head(self, count: int = 5) -> DataFrame:
        """The first rows."""
        return self._rows(slice(0, count))

    def tail(self, count: int = 5) -> DataFrame:
        """The last rows."""
        return self._rows(slice(max(0, len(self) - count), None))

    def sample(self, n: Any = None, frac: Any = None, random_state: Any = None, **kwargs: Any) -> DataFrame:
        """Some rows, drawn at random."""
        return self._rows(chosen(len(self), n, frac, random_state))

    def drop(
        self,
        labels: Any = None,
        axis: Any = 0,
        columns: Any = None,
        index: Any = None,
        inplace: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Without some columns or rows."""
        if columns is None and axis in (1, "columns"):
            columns = labels
        if columns is not None:
            gone = [columns] if isinstance(columns, (str, int)) else list(columns)
            target = self if inplace else self.copy()
            target._all()
            target._held = {name: one for name, one in target._held.items() if name not in gone}
            return None if inplace else target
        wanted = labels if index is None else index
        rows = set(wanted) if hasattr(wanted, "__iter__") and not isinstance(wanted, str) else {wanted}
        return self._rows(numpy.array([one not in rows for one in self.index], bool))

    def dropna(self, *args: Any, **kwargs: Any) -> Any:
        """Without rows that lack something."""
        keep = numpy.ones(len(self), bool)
        for one in self._all().values():
            keep &= numpy.array([value is not None and value == value for value in one], bool)
        return None if kwargs.get("inplace") else self._rows(keep)

    def fillna(self, value: Any = 0, **kwargs: Any) -> Any:
        """A value in the place of missing ones."""
        if kwargs.get("inplace"):
            return None
        return self.apply(lambda column: column.fillna(value))

    def apply(self, function: Callable[..., Any], axis: Any = 0, **kwargs: Any) -> Any:
        """The results of a function for each column, or for each row."""
        if axis in (1, "columns"):
            return Series([function(self._taken(i, None)) for i in range(len(self))], self.index)
        found = {name: function(self[name]) for name in self._all()}
        if all(isinstance(one, Series) for one in found.values()):
            return DataFrame({name: one.values for name, one in found.items()}, self.index)
        return Series(list(found.values()), list(found))

    def astype(self, kind: Any, **kwargs: Any) -> DataFrame:
        """Of another type."""
        made = self.copy()
        for name, one in self._all().items():
            wanted = kind.get(name, one.dtype) if isinstance(kind, dict) else kind
            made._held[name] = one.astype(wanted)
        return made

    def rename(self, columns: Any = None, inplace: bool = False, **kwargs: Any) -> Any:
        """Other names of columns."""
        for name in columns or {}:
            self._column(name)
        target = self if inplace else self.copy()
        target._held = {(columns or {}).get(name, name): one for name, one in target._held.items()}
        return None if inplace else target

    def reset_index(self, drop: bool = False, inplace: bool = False, **kwargs: Any) -> Any:
        """Numbered from the beginning."""
        target = self if inplace else self.copy()
        target.index = Index(range(len(target.index)))
        return None if inplace else target

    def set_index(self, name: Any, **kwargs: Any) -> DataFrame:
        """Labels from a column, from several ones, or from an iterator."""
        made = self.copy()
        if isinstance(name, Iterator):
            made.index = Index(list(name))
            return made
        names = name if isinstance(name, list) else [name]
        columns = [made._column(one).tolist() for one in names]
        made.index = Index(columns[0] if len(columns) == 1 else list(zip(*columns)))
        for one in names:
            made._held.pop(one, None)
        return made

    def sort_values(self, by: Any, ascending: Any = True, **kwargs: Any) -> Any:
        """In the order of a column."""
        order = numpy.argsort(self._column(by if isinstance(by, str) else by[0]), kind="stable")
        return None if kwargs.get("inplace") else self._rows(order if ascending else order[::-1])

    def iterrows(self) -> Iterator[tuple[Any, Any]]:
        """Labels and rows."""
        return iter([(label, self._taken(i, None)) for i, label in enumerate(self.index)])

    def itertuples(self, index: bool = True, **kwargs: Any) -> Iterator[Any]:
        """Rows as tuples."""
        import collections

        names = [str(one) for one in self._all()]
        kind = collections.namedtuple("Pandas", (["Index"] if index else []) + names, rename=True)  # type: ignore[misc]
        columns = [list(self.index)] * index + [one.tolist() for one in self._held.values()]
        return iter([kind(*row) for row in zip(*columns)])

    def items(self) -> Iterator[Any]:
        """Names and columns."""
        return iter([(name, self[name]) for name in self._all()])

    def to_dict(self, orient: str = "dict", **kwargs: Any) -> Any:
        """As dictionaries."""
        held = {name: one.tolist() for name, one in self._all().items()}
        if orient == "records":
            return [dict(zip(held, row)) for row in zip(*held.values())]
        return held if orient == "list" else {name: dict(zip(self.index, one)) for name, one in held.items()}

    def groupby(self, by: Any, **kwargs: Any) -> Any:
        """Rows that share a value."""
        return _Groups(self, by if isinstance(by, str) else by[0])

    def rolling(self, window: int, *args: Any, **kwargs: Any) -> Any:
        """What is computed of the last few rows."""
        return _Rolling(self, window)

    def isnull(self) -> DataFrame:
        """Whether each value is missing."""
        return self.apply(lambda column: column.isnull())  # type: ignore[no-any-return]

    isna = isnull

    def describe(self, *args: Any, **kwargs: Any) -> DataFrame:
        """As it is."""
        return self

    def info(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is shown."""

    to_csv = to_pickle = to_json = to_excel = to_hdf = to_parquet = to_sql = info

    def append(self, other: Any, ignore_index: bool = False, **kwargs: Any) -> DataFrame:
        """With other rows below."""
        return concat([self, other if isinstance(other, DataFrame) else DataFrame([dict(other)])])  # type: ignore[no-any-return]

    def merge(self, other: Any, *args: Any, **kwargs: Any) -> DataFrame:
        """The columns of both, row by row."""
        made = self.copy()
        for name, one in other._all().items():
            made._held.setdefault(name, one[: len(made)])
        return made

    join = merge

    def __repr__(self) -> str:
        return f"<table {self.shape}>"


class _Row:
    """A row of a made-up table: it has every column."""

    def __init__(self, table: DataFrame, number: int) -> None:
        self._table, self._number = table, number

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (slice, list)):
            return (
                Series(self.values, list(self._table.columns))[key]
                if isinstance(key, slice)
                else Series([self[one] for one in key], key)
            )
        if isinstance(key, int) and key not in self._table._held:
            return self._table._placed((self._number, key))
        return self._table._column(key)[self._number]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("values", "tolist", "to_numpy", "astype"):
            values = numpy.array([one[self._number] for one in self._table._all().values()])
            return values if name == "values" else getattr(Series(values), name)
        return self[name]

    def __len__(self) -> int:
        return len(self._table._all())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)


class _Groups:
    def __init__(self, table: DataFrame, by: str) -> None:
        column = table._column(by)
        kinds = sorted(set(column.tolist()), key=str)
        self.groups = {
            kind: table._rows(numpy.array([one == kind for one in column.tolist()])) for kind in kinds
        }

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups.items())

    def __len__(self) -> int:
        return len(self.groups)

    def get_group(self, kind: Any) -> DataFrame:
        """The rows of a value."""
        return self.groups[kind]

    def __getitem__(self, name: Any) -> Any:
        return _Some({kind: rows[name] for kind, rows in self.groups.items()})

    def apply(self, function: Any) -> Series:
        """A function of each group."""
        return Series([function(rows) for rows in self.groups.values()], list(self.groups))


class _Some:
    def __init__(self, columns: dict[Any, Series]) -> None:
        self.columns = columns

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns.items())

    def apply(self, function: Any) -> Series:
        """A function of the column of each group."""
        return Series([function(one) for one in self.columns.values()], list(self.columns))

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: Series(
            [getattr(one, name)() for one in self.columns.values()], list(self.columns)
        )


import re  # noqa: E402

TEXTS = re.compile(
    r"text|sentence|title|comment|tweet|review|content|description|question|answer|name|path|file|url", re.I
)


def read_csv(
    filepath_or_buffer: Any, sep: Any = None, header: Any = "infer", names: Any = None, **kwargs: Any
) -> DataFrame:
    """The table of a file."""
    if isinstance(filepath_or_buffer, (absent.AbsentFile, absent.TableFile)):
        return DataFrame.made_up(filepath_or_buffer.content())
    if isinstance(filepath_or_buffer, (str, os.PathLike)) and absent.is_absent(filepath_or_buffer):
        found = DataFrame.made_up(content.absent(run(), absent.named(filepath_or_buffer)))
        if names is not None:
            found.columns = names
        wanted = kwargs.get("usecols")
        if not isinstance(wanted, list):
            return found
        if names is not None and all(isinstance(one, int) for one in wanted):
            # By number, of the columns of the file; their names may be those of all, or of these only.
            wanted = list(names) if len(names) == len(wanted) else [names[one] for one in wanted]
        return found._some(wanted)
    separator = sep or kwargs.get("delimiter") or ","
    held = (
        filepath_or_buffer
        if hasattr(filepath_or_buffer, "read")
        else open(filepath_or_buffer, encoding=kwargs.get("encoding") or "utf-8", errors="replace")  # noqa: SIM115
    )
    with held as file:
        text = [line for line in file.read().splitlines() if line.strip()]
    if len(separator) > 1:
        rows = [re.split(separator, line.strip()) for line in text]
    else:
        rows = list(csv.reader(text, delimiter=separator))
    rows = (
        rows[kwargs.get("skiprows") or 0 :]
        if isinstance(kwargs.get("skiprows", 0), (int, type(None)))
        else rows
    )
    if names is None and header is not None:
        names = rows.pop(0)
    elif names is not None and header == 0:
        rows.pop(0)
    rows = rows[: kwargs.get("nrows")]
    names = names if names is not None else range(len(rows[0]))
    table = DataFrame(
        {name: numbers([row[i] if i < len(row) else "" for row in rows]) for i, name in enumerate(names)}
    )
    if kwargs.get("index_col") is not None and kwargs["index_col"] is not False:
        key = kwargs["index_col"]
        table = table.set_index(table.columns[key] if isinstance(key, int) else key)
    return table


read_table = read_excel = read_fwf = read_parquet = read_feather = read_hdf = read_json = read_csv


def read_pickle(path: Any, *args: Any, **kwargs: Any) -> Any:
    """What a file holds that is not there."""
    return DataFrame.made_up(content.absent(run(), absent.named(path)))


def concat(parts: Any, axis: Any = 0, **kwargs: Any) -> Any:
    """Tables below or beside one another."""
    parts = list(parts.values() if isinstance(parts, dict) else parts)
    if all(isinstance(one, Series) for one in parts):
        if axis == 0:
            return Series(numpy.concatenate([one.values for one in parts]))
        return DataFrame({one.name if one.name is not None else i: one.values for i, one in enumerate(parts)})
    parts = [one if isinstance(one, DataFrame) else one.to_frame() for one in parts]
    if axis in (1, "columns"):
        made = DataFrame()
        for one in parts:
            made._held.update(one._all())
        made.index = parts[0].index
        return made
    names = list(dict.fromkeys(name for one in parts for name in one._all()))
    return DataFrame(
        {name: numpy.concatenate([one._column(name) for one in parts if name in one]) for name in names}
    )


def merge(one: DataFrame, other: DataFrame, *args: Any, **kwargs: Any) -> DataFrame:
    """The columns of both."""
    return one.merge(other)


def get_dummies(data: Any, columns: Any = None, **kwargs: Any) -> DataFrame:
    """A column of zeros and ones for each value."""
    if isinstance(data, Series):
        return DataFrame({kind: (data.values == kind).astype(int) for kind in sorted(set(data), key=str)})
    made: dict[Any, Any] = {}
    for name, one in data._all().items():
        if (columns is None and one.dtype.kind == "O") or (columns is not None and name in columns):
            made.update(
                {f"{name}_{kind}": (one == kind).astype(int) for kind in sorted(set(one.tolist()), key=str)}
            )
        else:
            made[name] = one
    return DataFrame(made)


def to_datetime(values: Any, *args: Any, **kwargs: Any) -> Any:
    """As they are."""
    return values


def to_numeric(values: Any, *args: Any, **kwargs: Any) -> Any:
    """As numbers."""
    return Series(numbers([str(one) for one in values])) if isinstance(values, Series) else float(values)


def isnull(value: Any) -> Any:
    """Whether a value is missing."""
    return (
        value.isnull()
        if hasattr(value, "isnull")
        else value is None or (isinstance(value, float) and math.isnan(value))
    )


isna = isnull


def notnull(value: Any) -> Any:
    """Whether a value is there."""
    return value.notnull() if hasattr(value, "notnull") else not isnull(value)


notna = notnull


def factorize(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Numbers of values, and the values."""
    kinds = list(dict.fromkeys(values))
    return numpy.array([kinds.index(one) for one in values]), numbers(kinds)


def set_option(*args: Any, **kwargs: Any) -> None:
    """Nothing is shown."""


__getattr__ = others(__name__)
