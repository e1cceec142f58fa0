"""datasets: rows under names; text, labels and pictures are made up as they are asked for."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

from .. import content, media
from ..context import run
from ..inert import others
from ..samples import image

PICTURES = re.compile(r"^(image|img|picture|pixel)", re.I)
KNOWN = {
    "imdb": ("text", "label"),
    "rotten_tomatoes": ("text", "label"),
    "ag_news": ("text", "label"),
    "yelp_polarity": ("text", "label"),
    "sst2": ("sentence", "label", "idx"),
    "glue": ("sentence", "label", "idx"),
    "wikitext": ("text",),
    "bookcorpus": ("text",),
    "openwebtext": ("text",),
    "mnist": ("image", "label"),
    "fashion_mnist": ("image", "label"),
    "cifar10": ("img", "label"),
    "cifar100": ("img", "fine_label", "coarse_label"),
}
GLUE = {
    "mrpc": ("sentence1", "sentence2"),
    "stsb": ("sentence1", "sentence2"),
    "rte": ("sentence1", "sentence2"),
    "wnli": ("sentence1", "sentence2"),
    "qqp": ("question1", "question2"),
    "qnli": ("question", "sentence"),
    "mnli": ("premise", "hypothesis"),
}
"""The texts in a row of a task of GLUE, where there are two."""
SIZES = {"mnist": (28, 28, 1), "fashion_mnist": (28, 28, 1), "cifar10": (32, 32, 3), "cifar100": (32, 32, 3)}


class Row(dict):  # type: ignore[type-arg]
    """A row, whose values are made when they are asked for."""

    def __init__(self, name: str, number: int, columns: tuple[str, ...]) -> None:
        super().__init__()
        self.name, self.number = name, number
        for column in columns:
            self[column] = self.made(column)

    def __missing__(self, column: str) -> Any:
        self[column] = self.made(column)
        return self[column]

    def made(self, column: str) -> Any:
        """The value of a column."""
        place = f"{self.name}[{column!r}]"
        if PICTURES.search(column):
            height, width, channels = SIZES.get(self.name, (64, 64, 3))
            return image(media.pixels(run(), place + str(self.number), height, width, channels))
        if content.LABEL.search(column):
            classes = 10 if self.name in SIZES else content.CLASSES
            generator = run().generator(place, self.number)
            return int(torch.randint(0, classes, (), generator=generator))
        if column in ("idx", "id"):
            return self.number
        if column == "translation":
            return {
                one: media.text(run(), one + str(self.number), 1).strip() for one in ("en", "de", "fr", "ro")
            }
        return media.text(run(), place + str(self.number), 1).strip()


class Columns(dict):  # type: ignore[type-arg]
    """Several rows, under the names of their columns."""

    part: list[Any]

    def __missing__(self, column: str) -> Any:
        self[column] = [row[column] for row in self.part]
        return self[column]


class Dataset(torch.utils.data.Dataset[Any]):
    """Rows."""

    def __init__(self, rows: list[Any], name: str = "data") -> None:
        self.rows, self.name = rows, name
        self.kind: str | None = None
        self.taken: list[str] | None = None
        self.transform: Any = None
        names = [str(i) for i in range(content.CLASSES)]
        label = SimpleNamespace(names=names, num_classes=len(names), int2str=lambda i: names[i])
        self.features: Any = dict.fromkeys(self.column_names, label) or {"label": label}

    @classmethod
    def from_dict(cls, columns: Any, **kwargs: Any) -> Dataset:
        """Of columns."""
        return cls([dict(zip(columns, row)) for row in zip(*columns.values())])

    @classmethod
    def from_list(cls, rows: Any, **kwargs: Any) -> Dataset:
        """Of rows."""
        return cls(list(rows))

    @classmethod
    def from_pandas(cls, table: Any, **kwargs: Any) -> Dataset:
        """Of a table."""
        return cls(table.to_dict("records"))

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.rows[0]) if self.rows else []

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.column_names)

    def __len__(self) -> int:
        return len(self.rows)

    def _shown(self, row: Any) -> Any:
        if self.transform is not None:
            batch = self.transform({name: [row[name]] for name in row})
            return {name: values[0] for name, values in batch.items()}
        if self.kind is None:
            return row
        wanted = self.taken or list(row)
        return {
            name: torch.as_tensor(row[name]) if not isinstance(row[name], str) else row[name]
            for name in wanted
        }

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            values = [self._shown(row)[key] for row in self.rows]
            return torch.stack(values) if self.kind and isinstance(values[0], torch.Tensor) else values
        if isinstance(key, (slice, list)):
            rows = self.rows[key] if isinstance(key, slice) else [self.rows[int(one)] for one in key]
            shown = [self._shown(row) for row in rows]
            return {name: [row[name] for row in shown] for name in (shown[0] if shown else ())}
        return self._shown(self.rows[int(key)])

    def __iter__(self) -> Iterator[Any]:
        return (self._shown(row) for row in self.rows)

    def _like(self, rows: list[Any]) -> Dataset:
        made = Dataset(rows, self.name)
        made.kind, made.taken, made.transform = self.kind, self.taken, self.transform
        return made

    def map(
        self,
        function: Callable[..., Any],
        batched: bool = False,
        batch_size: int = 1000,
        remove_columns: Any = None,
        **kwargs: Any,
    ) -> Dataset:
        """What a function adds to each row, or to many at once."""
        gone = [remove_columns] if isinstance(remove_columns, str) else list(remove_columns or [])
        given = kwargs.get("fn_kwargs") or {}
        numbered = kwargs.get("with_indices")
        rows: list[Any] = []
        for start in range(0, len(self.rows), batch_size if batched else 1):
            part = self.rows[start : start + (batch_size if batched else 1)]
            extra = ([list(range(start, start + len(part)))] if batched else [start]) if numbered else []
            if batched:
                table = Columns({name: [row[name] for row in part] for name in part[0]})
                table.part = part
                found = dict(function(table, *extra, **given))
                kept = {name: values for name, values in table.items() if name not in gone}
                merged = {**kept, **found}
                count = len(next(iter(found.values())))
                merged = {name: values for name, values in merged.items() if len(values) == count}
                rows += [dict(zip(merged, values)) for values in zip(*merged.values())]
            else:
                found = function(part[0], *extra, **given) or {}
                rows.append({**{k: v for k, v in part[0].items() if k not in gone}, **found})
        return self._like(rows)

    def filter(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Dataset:
        """The rows that a function keeps."""
        return self._like([row for row in self.rows if function(row)])

    def shuffle(self, seed: Any = None, *args: Any, **kwargs: Any) -> Dataset:
        """In another order."""
        source = random.Random(seed) if seed is not None else random
        return self._like(source.sample(self.rows, len(self.rows)))

    def select(self, indices: Any, *args: Any, **kwargs: Any) -> Dataset:
        """Some rows."""
        return self._like([self.rows[int(one) % len(self.rows)] for one in list(indices)[: len(self.rows)]])

    def train_test_split(self, test_size: Any = 0.25, *args: Any, **kwargs: Any) -> DatasetDict:
        """Two parts."""
        held = int(len(self.rows) * test_size) if isinstance(test_size, float) else int(test_size)
        return DatasetDict(train=self._like(self.rows[held:]), test=self._like(self.rows[:held]))

    def set_format(self, type: Any = None, columns: Any = None, **kwargs: Any) -> None:
        """Which columns are shown, and as what."""
        self.kind, self.taken = type, columns

    def with_format(self, type: Any = None, columns: Any = None, **kwargs: Any) -> Dataset:
        """The same with another format."""
        made = self._like(self.rows)
        made.set_format(type, columns)
        return made

    def set_transform(self, transform: Any, *args: Any, **kwargs: Any) -> None:
        """What is done to rows when they are shown."""
        self.transform = transform

    def with_transform(self, transform: Any, *args: Any, **kwargs: Any) -> Dataset:
        """The same with a transformation."""
        made = self._like(self.rows)
        made.transform = transform
        return made

    def remove_columns(self, names: Any) -> Dataset:
        """Without some columns."""
        gone = [names] if isinstance(names, str) else list(names)
        return self._like([{k: v for k, v in row.items() if k not in gone} for row in self.rows])

    def rename_column(self, old: str, new: str) -> Dataset:
        """Another name of a column."""
        return self._like(
            [{new if k == old else k: row[k] for k in dict.fromkeys([*row, old])} for row in self.rows]
        )

    def add_column(self, name: str, values: Any) -> Dataset:
        """One more column."""
        return self._like([{**row, name: value} for row, value in zip(self.rows, values)])

    def unique(self, name: str) -> list[Any]:
        """Each value once."""
        return list(dict.fromkeys(self[name]))

    def take(self, count: int) -> Dataset:
        """The first rows."""
        return self._like(self.rows[:count])

    def skip(self, count: int) -> Dataset:
        """The rows after some."""
        return self._like(self.rows[count:])

    def class_encode_column(self, *args: Any) -> Dataset:
        """As it is."""
        return self

    cast_column = cast = class_encode_column


class DatasetDict(dict):  # type: ignore[type-arg]
    """Parts under names."""

    def __missing__(self, name: str) -> Any:
        self[name] = next(iter(self.values()))
        return self[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("column_names", "num_rows", "shape", "features"):
            return {key: getattr(one, name) for key, one in self.items()}

        def each(*args: Any, **kwargs: Any) -> Any:
            found = {key: getattr(one, name)(*args, **kwargs) for key, one in self.items()}
            return DatasetDict(found) if any(isinstance(one, Dataset) for one in found.values()) else None

        return each


def load_dataset(path: str, name: Any = None, *args: Any, split: Any = None, **kwargs: Any) -> Any:
    """The rows of a public data set."""
    short = str(path).rpartition("/")[2].replace("-", "_").lower()
    columns = KNOWN.get(short, KNOWN.get(str(name), ()))
    if short == "glue" and name in GLUE:
        columns = (*GLUE[name], "label", "idx")
    run().used("data set " + short, f"{4 * content.SAMPLES} made-up rows")
    parts: dict[str, Dataset] = {}
    for part in ("train", "test", "validation"):
        rows: list[Any] = [
            Row(short, 1000 * len(parts) + i, columns or ("text", "label"))
            for i in range(4 * content.SAMPLES)
        ]
        parts[part] = Dataset(rows, short)
    if split is None:
        return DatasetDict(parts)
    names = [
        str(one).partition("[")[0].partition("+")[0]
        for one in (split if isinstance(split, list) else [split])
    ]
    found = [parts.get(one, parts["train"]) for one in names]
    return found if isinstance(split, list) else found[0]


load_from_disk = load_dataset


def concatenate_datasets(parts: Any, *args: Any, **kwargs: Any) -> Dataset:
    """One after the other."""
    return Dataset([row for part in parts for row in part.rows])


IterableDataset = Dataset
__getattr__ = others(__name__)
