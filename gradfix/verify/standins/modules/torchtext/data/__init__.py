"""Fields, examples, data sets and iterators of the older versions."""

from __future__ import annotations

import collections
import csv
import json
import math
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .... import content
from ....content import CLASSES, Content
from ....context import run
from ..vocab import Vocab
from . import functional, utils
from .functional import to_map_style_dataset
from .utils import get_tokenizer, interleave_keys, ngrams_iterator

__all__ = [
    "functional",
    "get_tokenizer",
    "interleave_keys",
    "ngrams_iterator",
    "to_map_style_dataset",
    "utils",
]


class RawField:
    """A field that is taken as it is."""

    def __init__(
        self, preprocessing: Any = None, postprocessing: Any = None, is_target: bool = False
    ) -> None:
        self.preprocessing, self.postprocessing, self.is_target = preprocessing, postprocessing, is_target

    def preprocess(self, value: Any) -> Any:
        """What an example keeps of a value."""
        return self.preprocessing(value) if self.preprocessing else value

    def process(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        """What a batch holds of the values."""
        return self.postprocessing(batch) if self.postprocessing else list(batch)


class Field(RawField):
    """Words, as a tensor of their numbers."""

    vocab_cls = Vocab

    def __init__(
        self,
        sequential: bool = True,
        use_vocab: bool = True,
        init_token: str | None = None,
        eos_token: str | None = None,
        fix_length: int | None = None,
        dtype: torch.dtype = torch.long,
        preprocessing: Any = None,
        postprocessing: Any = None,
        lower: bool = False,
        tokenize: Any = None,
        tokenizer_language: str = "en",
        include_lengths: bool = False,
        batch_first: bool = False,
        pad_token: str | None = "<pad>",
        unk_token: str | None = "<unk>",
        pad_first: bool = False,
        truncate_first: bool = False,
        stop_words: Any = None,
        is_target: bool = False,
        tensor_type: Any = None,
    ) -> None:
        super().__init__(preprocessing, postprocessing, is_target)
        self.sequential, self.use_vocab, self.dtype, self.lower = sequential, use_vocab, dtype, lower
        self.init_token, self.eos_token, self.fix_length = init_token, eos_token, fix_length
        self.tokenize: Callable[[str], list[str]] = get_tokenizer(tokenize, tokenizer_language)
        self.include_lengths, self.batch_first = include_lengths, batch_first
        self.pad_token = pad_token if sequential else None
        self.unk_token, self.pad_first = unk_token, pad_first
        self.stop_words = set(stop_words or ())
        self.vocab: Any = None

    def preprocess(self, value: Any) -> Any:
        if self.sequential and isinstance(value, str):
            value = self.tokenize(value.rstrip("\n"))
        if self.lower:
            value = [one.lower() for one in value] if self.sequential else str(value).lower()
        if self.sequential and self.stop_words:
            value = [one for one in value if one not in self.stop_words]
        return self.preprocessing(value) if self.preprocessing else value

    def build_vocab(self, *sources: Any, **kwargs: Any) -> None:
        """The vocabulary of the columns of data sets that belong to this field."""
        counts: collections.Counter[str] = collections.Counter()
        for source in sources:
            for column in self.columns(source):
                for value in column:
                    counts.update([value] if not self.sequential else value)
        specials = [self.unk_token, self.pad_token, self.init_token, self.eos_token]
        specials += kwargs.pop("specials", [])
        unique = tuple(dict.fromkeys(one for one in specials if one is not None))
        self.vocab = self.vocab_cls(counts, specials=unique, **kwargs)

    def columns(self, source: Any) -> list[Any]:
        """The columns of a data set that belong to this field; of anything else, it is one."""
        if not isinstance(source, Dataset):
            return [source]
        return [getattr(source, name) for name, field in source.fields.items() if field is self]

    def pad(self, batch: Any) -> Any:
        """Equally long lists, and their lengths before if those are asked for."""
        batch = [list(one) for one in batch]
        if not self.sequential:
            return batch
        extra = (self.init_token is not None) + (self.eos_token is not None)
        longest = self.fix_length - extra if self.fix_length else max(len(one) for one in batch)
        padded, lengths = [], []
        for one in batch:
            row = [
                *([self.init_token] if self.init_token is not None else []),
                *one[:longest],
                *([self.eos_token] if self.eos_token is not None else []),
            ]
            missing = [self.pad_token] * (longest + extra - len(row))
            lengths.append(len(row))
            padded.append(missing + row if self.pad_first else row + missing)
        return (padded, lengths) if self.include_lengths else padded

    def numericalize(self, batch: Any, device: Any = None) -> Any:
        """A tensor of numbers, words along the first dimension unless the batch is."""
        lengths = None
        if self.include_lengths and isinstance(batch, tuple):
            batch, lengths = batch
        if self.use_vocab:
            numbers = self.vocab.stoi
            batch = [[numbers[one] for one in row] if self.sequential else numbers[row] for row in batch]
        elif not self.sequential:
            kind = float if self.dtype.is_floating_point else int
            batch = [kind(one) if isinstance(one, str) else one for one in batch]
        if self.postprocessing:
            batch = self.postprocessing(batch, self.vocab if self.use_vocab else None)
        found = torch.tensor(batch, dtype=self.dtype)
        if self.sequential and not self.batch_first:
            found = found.t().contiguous()
        return (found, torch.tensor(lengths)) if lengths is not None else found

    def process(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        return self.numericalize(self.pad(batch) if self.sequential else list(batch))

    def reverse(self, batch: torch.Tensor) -> list[str]:
        """Sentences of numbers."""
        rows = batch if self.batch_first else batch.t()
        return [" ".join(self.vocab.itos[number] for number in row.tolist()) for row in rows]


class ReversibleField(Field):
    """A field whose numbers can be made sentences again."""


class LabelField(Field):
    """A class."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"sequential": False, "unk_token": None, "is_target": True, **kwargs})


class NestedField(Field):
    """Words of several parts each, by another field: letters, as a tensor of three dimensions."""

    def __init__(self, nesting_field: Field, use_vocab: bool = True, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "use_vocab": use_vocab, "batch_first": True})
        self.nesting_field = nesting_field

    def preprocess(self, value: Any) -> Any:
        return [self.nesting_field.preprocess(one) for one in super().preprocess(value)]

    def build_vocab(self, *sources: Any, **kwargs: Any) -> None:
        """The vocabulary of the parts, which both fields have."""
        columns = []
        for source in sources:
            for column in self.columns(source):
                columns.append([part for value in column for part in value])
        self.nesting_field.build_vocab(*columns, **kwargs)
        self.vocab = self.nesting_field.vocab

    def pad(self, batch: Any) -> Any:
        """As many words for each, and as many parts for each word; all lengths before if asked for."""
        inner = self.nesting_field
        begin, end = ([[one]] if one is not None else [] for one in (self.init_token, self.eos_token))
        most = (self.fix_length or max(map(len, batch)) + len(begin + end)) - len(begin + end)
        rows = [begin + list(one[:most]) + end for one in batch]
        # All words are as long as the longest of all samples.
        whole = inner.pad([word for row in rows for word in row] or [[]])
        words = iter(whole[0] if inner.include_lengths else whole)
        padded = [[next(words) for _ in row] for row in rows]
        size = max(map(len, padded))
        longest = max((len(word) for row in padded for word in row), default=0)
        blank = [[inner.pad_token] * longest]
        lengths = [len(row) for row in rows]
        parts = [[len(word) for word in row] + [0] * (size - len(row)) for row in rows]
        padded = [row + blank * (size - len(row)) for row in padded]
        return (padded, lengths, parts) if self.include_lengths else padded

    def numericalize(self, batch: Any, device: Any = None) -> Any:
        """A tensor of numbers: samples, words, parts."""
        rows, *lengths = batch if self.include_lengths else [batch]
        numbers = [[[self.vocab.stoi[one] for one in word] for word in row] for row in rows]
        found = torch.tensor(numbers, dtype=self.dtype)
        return (found, *map(torch.tensor, lengths)) if lengths else found


class UnknownField(Field):
    """A field out of a file that is not there: a batch holds numbers of words that its vocabulary has."""

    LENGTH = 12

    def __init__(self, made_up: Content) -> None:
        super().__init__()
        self.place, self.vocab = made_up._place, made_up.vocab

    def process(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        return torch.stack([self.words(one) for one in batch], 1)

    def words(self, value: Any) -> torch.Tensor:
        """As many for all, since nothing says by which word short ones are filled up; none has a number that
        the script may have been given for a word, as one of these may be left out of its loss."""
        which = (value._place, value._number) if isinstance(value, Content) else (str(value),)
        generator = run().generator("words of a field", self.place, *which)
        count = len(self.vocab)
        return torch.randint(min(CLASSES, count - 1), count, (self.LENGTH,), generator=generator)


def field_for(field: Any) -> Any:
    """A field, also for what a file that is not there would have held."""
    return UnknownField(field) if isinstance(field, Content) else field


class Example:
    """One sample; its fields are attributes."""

    @classmethod
    def fromlist(cls, values: Any, fields: Any) -> Example:
        """Of values in the order of the fields."""
        made = cls()
        for (name, field), value in zip(fields, values):
            if field is not None and isinstance(name, (list, tuple)):
                for one, inner in zip(name, field):
                    setattr(made, one, field_for(inner).preprocess(value))
            elif field is not None:
                setattr(made, name, field_for(field).preprocess(value))
        return made

    @classmethod
    def fromdict(cls, values: Any, fields: Any) -> Example:
        """Of values by the names of the fields."""
        made = cls()
        for key, known in fields.items():
            for name, field in known if isinstance(known, list) else [known]:
                setattr(made, name, field_for(field).preprocess(values[key]))
        return made

    @classmethod
    def fromJSON(cls, text: str, fields: Any) -> Example:
        """Of a line of JSON."""
        return cls.fromdict(json.loads(text), fields)

    @classmethod
    def fromCSV(cls, text: str, fields: Any, *args: Any) -> Example:
        """Of a line of a table."""
        return cls.fromlist(next(csv.reader([text])), fields)


class Dataset(torch.utils.data.Dataset[Any]):
    """Examples with fields."""

    sort_key: Any = None

    def __init__(self, examples: Any, fields: Any, filter_pred: Any = None) -> None:
        examples = list(examples)
        self.examples = [one for one in examples if filter_pred(one)] if filter_pred else examples
        if not self.examples and content.book.planned("code", "kept"):
            # As of other lists: what the condition goes by was made up.
            self.examples = examples
        self.fields: dict[str, Any] = {}
        for name, field in fields.items() if isinstance(fields, dict) else fields:
            if isinstance(name, (list, tuple)):
                self.fields.update(zip(name, field))
            elif field is not None:
                self.fields[name] = field_for(field)

    @classmethod
    def splits(cls, path: Any = None, root: str = ".data", **kwargs: Any) -> tuple[Any, ...]:
        """One for each part that is named."""
        parts = [kwargs.pop(name, None) for name in ("train", "validation", "test")]
        return tuple(
            cls(os.path.join(str(path or root), part), **kwargs) for part in parts if part is not None
        )

    def split(
        self,
        split_ratio: Any = 0.7,
        stratified: bool = False,
        strata_field: str = "label",
        random_state: Any = None,
    ) -> tuple[Dataset, ...]:
        """Parts in these proportions."""
        shares = [split_ratio, 1 - split_ratio] if isinstance(split_ratio, float) else list(split_ratio)
        shares = [share / sum(shares) for share in shares]
        mixed = random.sample(self.examples, len(self.examples))
        parts, start = [], 0
        for index, share in enumerate(shares):
            end = len(mixed) if index == len(shares) - 1 else start + round(share * len(mixed))
            part = Dataset(mixed[start:end], self.fields)
            part.sort_key = self.sort_key
            parts.append(part)
            start = end
        return tuple(parts)

    def __getitem__(self, index: int) -> Any:
        return self.examples[index]

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.examples)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.__dict__.get("fields", {}):
            raise AttributeError(name)
        return (getattr(one, name) for one in self.examples)


class TabularDataset(Dataset):
    """The rows of a table; of one that is not there, words where a field takes words, else small numbers."""

    def __init__(self, path: str, format: str, fields: Any, skip_header: bool = False, **kwargs: Any) -> None:
        named = isinstance(fields, dict)
        listed = list(fields.values()) if named else list(fields)
        # One value may be kept in several ways: ``{"text": [("words", WORDS), ("letters", LETTERS)]}``.
        listed = [tuple(zip(*one)) if isinstance(one, list) else one for one in listed]
        if os.path.exists(path):
            with open(path, encoding="utf8") as file:
                lines = file.read().splitlines()
            if format.lower() == "json":
                rows = [[json.loads(line).get(key) for key in fields] for line in lines]
            else:
                reader = csv.reader(lines, delimiter="," if format.lower() == "csv" else "\t")
                rows = list(reader)
                if named and rows:
                    header = rows.pop(0)
                    rows = [[row[header.index(key)] for key in fields] for row in rows]
                elif skip_header:
                    rows = rows[1:]
        else:
            rows = made_up_rows(os.path.basename(path), listed)
        keep = kwargs.get("filter_pred")
        super().__init__([Example.fromlist(row, listed) for row in rows], listed, keep)


def made_up_rows(name: str, fields: Any, count: int = 256) -> list[list[str]]:
    """Rows of a table for these fields."""
    from ..corpora import classes, sentences

    run().used("table " + name, str(count) + " made-up rows")
    columns: list[list[str]] = []
    for number, (label, field) in enumerate(fields):
        inner = field[0] if isinstance(field, (list, tuple)) else field
        if isinstance(inner, Field) and inner.sequential:
            columns.append(sentences(name, str(number), str(label), count))
        else:
            columns.append([str(one) for one in classes(name, str(label), 2, count)])
    return [list(row) for row in zip(*columns)]


class Batch:
    """The fields of some examples, as tensors."""

    def __init__(self, data: Any = None, dataset: Any = None, device: Any = None) -> None:
        if data is None:
            return
        self.batch_size = len(data)
        self.dataset = dataset
        self.fields = list(dataset.fields)
        self.input_fields = [name for name, field in dataset.fields.items() if not field.is_target]
        self.target_fields = [name for name, field in dataset.fields.items() if field.is_target]
        for name, field in dataset.fields.items():
            setattr(self, name, field.process([getattr(one, name) for one in data], device=device))

    def __len__(self) -> int:
        return self.batch_size

    def __iter__(self) -> Iterator[Any]:
        inputs = [getattr(self, name) for name in self.input_fields]
        targets = [getattr(self, name) for name in self.target_fields]
        yield inputs[0] if len(inputs) == 1 else tuple(inputs)
        yield (targets[0] if len(targets) == 1 else tuple(targets)) if targets else None


class Iterator_:
    """Batches of a data set."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        sort_key: Any = None,
        device: Any = None,
        batch_size_fn: Any = None,
        train: bool = True,
        repeat: bool = False,
        shuffle: bool | None = None,
        sort: bool | None = None,
        sort_within_batch: bool | None = None,
    ) -> None:
        self.dataset, self.batch_size, self.train, self.repeat = dataset, batch_size, train, repeat
        self.device, self.sort_key = device, sort_key or dataset.sort_key
        self.shuffle = train if shuffle is None else shuffle
        self.sort = not train if sort is None else sort
        self.sort_within_batch = bool(self.sort if sort_within_batch is None else sort_within_batch)
        self.batch_size_fn = batch_size_fn
        self.iterations = 0

    @classmethod
    def splits(cls, datasets: Any, batch_sizes: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """One for each data set; the first is for training."""
        size = kwargs.pop("batch_size", None)
        return tuple(
            cls(one, batch_sizes[number] if batch_sizes else size, train=number == 0, **kwargs)
            for number, one in enumerate(datasets)
        )

    @property
    def epoch(self) -> float:
        """How often the data set was gone through."""
        return math.floor(self.iterations / max(1, len(self)))

    def __len__(self) -> int:
        return math.ceil(len(self.dataset) / self.batch_size)

    def init_epoch(self) -> None:
        """Nothing is kept between epochs."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            chosen = list(self.dataset)
            if self.sort and self.sort_key:
                chosen.sort(key=self.sort_key)
            elif self.shuffle:
                chosen = random.sample(chosen, len(chosen))
            for start in range(0, len(chosen), self.batch_size):
                part = chosen[start : start + self.batch_size]
                if self.sort_within_batch and self.sort_key:
                    part.sort(key=self.sort_key, reverse=True)
                self.iterations += 1
                yield Batch(part, self.dataset, self.device)
            if not self.repeat:
                return


class BucketIterator(Iterator_):
    """Batches of sentences of one length; here of any."""


class BPTTIterator(Iterator_):
    """Pieces of one long text, each with the same text one word later."""

    def __init__(self, dataset: Any, batch_size: int, bptt_len: int, **kwargs: Any) -> None:
        self.bptt_len = bptt_len
        super().__init__(dataset, batch_size, **kwargs)

    def __len__(self) -> int:
        return math.ceil((len(self.dataset[0].text) / self.batch_size - 1) / self.bptt_len)

    def __iter__(self) -> Iterator[Any]:
        field = self.dataset.fields["text"]
        words = self.dataset[0].text
        columns = max(2, math.ceil(len(words) / self.batch_size))
        words = words + [field.pad_token] * (columns * self.batch_size - len(words))
        numbers = torch.tensor([field.vocab.stoi[word] for word in words])
        numbers = numbers.view(self.batch_size, -1).t().contiguous()
        while True:
            for start in range(0, columns - 1, self.bptt_len):
                length = min(self.bptt_len, columns - start - 1)
                batch = Batch()
                batch.batch_size, batch.dataset, batch.fields = (
                    self.batch_size,
                    self.dataset,
                    ["text", "target"],
                )
                batch.input_fields, batch.target_fields = ["text"], ["target"]
                text, target = numbers[start : start + length], numbers[start + 1 : start + 1 + length]
                if field.batch_first:
                    text, target = text.t().contiguous(), target.t().contiguous()
                batch.text, batch.target = text, target  # type: ignore[attr-defined]
                self.iterations += 1
                yield batch
            if not self.repeat:
                return


globals()["Iterator"] = Iterator_


def batch(data: Any, batch_size: int, batch_size_fn: Any = None) -> Any:
    """Lists of that many."""
    data = list(data)
    for start in range(0, len(data), batch_size):
        yield data[start : start + batch_size]


def pool(data: Any, batch_size: int, *args: Any, **kwargs: Any) -> Any:
    """Lists of that many."""
    return batch(data, batch_size)
