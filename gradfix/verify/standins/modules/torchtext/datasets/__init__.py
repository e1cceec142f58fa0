"""The corpora, in the older way (``splits`` of fields) and in the newer one (pairs by ``split``)."""

from __future__ import annotations

import types
from typing import Any

from .. import data
from ..corpora import classes, sentences

CLASSES = {
    "AG_NEWS": 4,
    "AmazonReviewFull": 5,
    "AmazonReviewPolarity": 2,
    "DBpedia": 14,
    "IMDB": 2,
    "SogouNews": 5,
    "SST": 3,
    "SST2": 2,
    "TREC": 6,
    "YahooAnswers": 10,
    "YelpReviewFull": 5,
    "YelpReviewPolarity": 2,
}
NAMES = {
    "IMDB": ("neg", "pos"),
    "SST": ("negative", "neutral", "positive"),
    "TREC": ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
}
PAIRS = ("Multi30k", "IWSLT", "IWSLT2016", "IWSLT2017", "WMT14")
TEXTS = ("WikiText2", "WikiText103", "PennTreebank", "WikiText")
PARTS = ("train", "valid", "test")


def parts(split: Any) -> list[str]:
    """The parts that are asked for."""
    return [split] if isinstance(split, str) else list(split)


def only(values: list[Any], split: Any) -> Any:
    """One value for one part, several for several."""
    return values[0] if isinstance(split, str) else tuple(values)


class Classified(data.Dataset):
    """Sentences with classes. Called with ``split`` in place of fields it is a list of pairs."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], list):
            return super().__new__(cls)
        split = kwargs.get("split", ("train", "test"))
        split = next((one for one in args if one in (*PARTS, "dev")), split)
        first = 0 if cls.__name__ == "SST2" else 1
        found = []
        for part in parts(split):
            lines = sentences(cls.__name__, part)
            drawn = classes(cls.__name__, part, CLASSES[cls.__name__])
            pairs = [(label + first, line) for label, line in zip(drawn, lines)]
            found.append([(line, label) for label, line in pairs] if cls.__name__ == "SST2" else pairs)
        return only(found, split)

    @classmethod
    def splits(cls, text_field: Any, label_field: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:  # type: ignore[override]
        """A data set for each part."""
        fields = [("text", text_field), ("label", label_field)]
        names = NAMES.get(cls.__name__) or [str(i) for i in range(CLASSES[cls.__name__])]
        keep = kwargs.get("filter_pred")
        found = []
        for part in PARTS if cls.__name__ == "SST" else ("train", "test"):
            drawn = classes(cls.__name__, part, len(names))
            rows = zip(sentences(cls.__name__, part), (names[one] for one in drawn))
            made = cls([data.Example.fromlist(row, fields) for row in rows], fields, keep)
            made.sort_key = lambda one: len(one.text)
            found.append(made)
        return tuple(found)

    @classmethod
    def iters(cls, batch_size: int = 32, device: Any = None, **kwargs: Any) -> Any:
        """Iterators with fields of their own."""
        text, label = data.Field(), data.Field(sequential=False)
        made = cls.splits(text, label)
        text.build_vocab(made[0])
        label.build_vocab(made[0])
        return data.BucketIterator.splits(made, batch_size=batch_size, device=device)


for _name in CLASSES:
    globals()[_name] = type(_name, (Classified,), {"__module__": __name__})


class TranslationDataset(data.Dataset):
    """Pairs of sentences. Called with ``split`` in place of fields it is a list of pairs."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 2 or "fields" in kwargs:
            return super().__new__(cls)
        split = kwargs.get("split", PARTS)
        languages = kwargs.get("language_pair", ("de", "en"))
        found = [list(zip(*(sentences(cls.__name__, p, one) for one in languages))) for p in parts(split)]
        return only(found, split)

    def __init__(self, path: str, exts: Any, fields: Any, **kwargs: Any) -> None:
        named = fields if isinstance(fields[0], (tuple, list)) else list(zip(("src", "trg"), fields))
        rows = zip(*(sentences(type(self).__name__, str(path), one) for one in exts[:2]))
        examples = [data.Example.fromlist(row, named) for row in rows]
        super().__init__(examples, named, kwargs.get("filter_pred"))

    @staticmethod
    def sort_key(one: Any) -> int:
        """Short pairs first."""
        return data.interleave_keys(len(one.src), len(one.trg))

    @classmethod
    def splits(cls, exts: Any = (".de", ".en"), fields: Any = None, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """A data set for each part."""
        fields = fields or (data.Field(), data.Field())
        return tuple(cls(part, exts, fields, filter_pred=kwargs.get("filter_pred")) for part in PARTS)


for _name in PAIRS:
    globals()[_name] = type(_name, (TranslationDataset,), {"__module__": __name__})


class LanguageModelingDataset(data.Dataset):
    """One long text. Called with ``split`` in place of a field it is a list of lines."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(one, data.Field) for one in [*args, *kwargs.values()]):
            return super().__new__(cls)
        split = kwargs.get("split", PARTS)
        split = next((one for one in args if one in PARTS), split)
        return only([sentences(cls.__name__, part) for part in parts(split)], split)

    def __init__(self, path: str, text_field: Any, newline_eos: bool = True, **kwargs: Any) -> None:
        words: list[str] = []
        for line in sentences(type(self).__name__, str(path)):
            words += text_field.preprocess(line) + (["<eos>"] if newline_eos else [])
        super().__init__([data.Example.fromlist([words], [("text", text_field)])], [("text", text_field)])

    @classmethod
    def splits(cls, text_field: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:  # type: ignore[override]
        """A text for each part."""
        return tuple(cls(part, text_field) for part in PARTS)

    @classmethod
    def iters(cls, batch_size: int = 32, bptt_len: int = 35, device: Any = None, **kwargs: Any) -> Any:
        """Iterators with a field of their own."""
        text = data.Field()
        made = cls.splits(text)
        text.build_vocab(made[0])
        return data.BPTTIterator.splits(made, batch_size=batch_size, bptt_len=bptt_len, device=device)


for _name in TEXTS:
    globals()[_name] = type(_name, (LanguageModelingDataset,), {"__module__": __name__})


class SNLI(data.Dataset):
    """Pairs of sentences with a relation."""

    @staticmethod
    def sort_key(one: Any) -> int:
        """Short pairs first."""
        return data.interleave_keys(len(one.premise), len(one.hypothesis))

    @classmethod
    def splits(cls, text_field: Any, label_field: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:  # type: ignore[override]
        """A data set for each part."""
        names = ("entailment", "contradiction", "neutral")
        fields = [("premise", text_field), ("hypothesis", text_field), ("label", label_field)]
        found = []
        for part in PARTS:
            labels = [names[one] for one in classes("SNLI", part, 3)]
            rows = zip(sentences("SNLI", part, "1"), sentences("SNLI", part, "2"), labels)
            found.append(cls([data.Example.fromlist(row, fields) for row in rows], fields))
        return tuple(found)


MultiNLI = SNLI


class UDPOS(data.Dataset):
    """Sentences with a tag for each word."""

    @classmethod
    def splits(cls, fields: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:  # type: ignore[override]
        """A data set for each part."""
        tags = ("NOUN", "VERB", "DET", "ADJ", "PUNCT")
        fields = list(fields)
        found = []
        for part in PARTS:
            rows = []
            for line in sentences("UDPOS", part):
                words = line.split()
                rows.append([words, *([[tags[len(one) % 5] for one in words]] * (len(fields) - 1))])
            found.append(cls([data.Example.fromlist(row, fields) for row in rows], fields))
        return tuple(found)


SequenceTaggingDataset = UDPOS
for _name in (*CLASSES, *PAIRS, *TEXTS):
    globals()[_name.lower()] = types.SimpleNamespace(URL={}, MD5={}, NUM_LINES={})
