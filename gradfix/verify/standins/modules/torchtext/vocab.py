"""Vocabularies, and vectors of words that are drawn at random."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ...context import run


class Vectors:
    """A vector for any word, drawn from the seed of the run and the word."""

    def __init__(self, name: Any = None, cache: Any = None, dim: int | None = None, **kwargs: Any) -> None:
        self.dim = dim or 100
        self.name = str(name)
        self.stoi: dict[str, int] = {}
        self.itos: list[str] = []
        self.vectors = torch.zeros(0, self.dim)
        run().used("vectors of words", f"random ones of {self.dim} numbers")

    def __getitem__(self, word: str) -> torch.Tensor:
        return torch.randn(self.dim, generator=run().generator("vector", word)) * 0.1

    def __contains__(self, word: str) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.itos)

    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> torch.Tensor:
        """The vector of a word, or one row for each of several."""
        return self[tokens] if isinstance(tokens, str) else torch.stack([self[word] for word in tokens])


class GloVe(Vectors):
    """Those of 50 to 300 numbers."""

    def __init__(self, name: str = "840B", dim: int = 300, **kwargs: Any) -> None:
        super().__init__("glove." + name, dim=dim)


class FastText(Vectors):
    """Those of 300 numbers."""

    def __init__(self, language: str = "en", **kwargs: Any) -> None:
        super().__init__("fasttext." + language, dim=300)


class CharNGram(Vectors):
    """Those of 100 numbers."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("charngram", dim=100)


def named(vectors: Any) -> Vectors:
    """Vectors by a name such as ``glove.6B.100d``."""
    if isinstance(vectors, Vectors):
        return vectors
    size = str(vectors).rpartition(".")[2].rstrip("d")
    return Vectors(vectors, dim=int(size) if size.isdigit() else 300)


class Vocab:
    """Words and their numbers, of the older and of the newer kind."""

    def __init__(
        self,
        counter: Any = None,
        max_size: int | None = None,
        min_freq: int = 1,
        specials: Any = ("<unk>", "<pad>"),
        vectors: Any = None,
        specials_first: bool = True,
        **kwargs: Any,
    ) -> None:
        self.freqs = collections.Counter(counter or {})
        chosen = [word for word, count in self.freqs.most_common() if count >= max(1, min_freq)]
        chosen = [word for word in chosen if word not in specials][:max_size]
        self.itos: list[str] = [*specials, *chosen] if specials_first else [*chosen, *specials]
        self.default: int | None = self.itos.index("<unk>") if "<unk>" in self.itos else None
        self.vectors: Any = None
        if vectors is not None:
            self.load_vectors(vectors)

    @property
    def stoi(self) -> dict[str, int]:
        """The number of each word; of an unknown one that of ``<unk>``."""
        return collections.defaultdict(lambda: self.default or 0, self.get_stoi())

    def load_vectors(self, vectors: Any, **kwargs: Any) -> None:
        """Take the vectors of its words."""
        several = [named(one) for one in (vectors if isinstance(vectors, (list, tuple)) else [vectors])]
        rows = [torch.cat([one[word] for one in several]) for word in self.itos]
        self.vectors = torch.stack(rows)

    def set_vectors(self, stoi: Any, vectors: Any, dim: int, **kwargs: Any) -> None:
        """Take given vectors, zeros for words that have none."""
        rows = [vectors[stoi[word]] if word in stoi else torch.zeros(dim) for word in self.itos]
        self.vectors = torch.stack([torch.as_tensor(row) for row in rows])

    def extend(self, other: Any, sort: bool = False) -> None:
        """Take the words of another."""
        self.itos += [word for word in other.itos if word not in self.itos]

    def __len__(self) -> int:
        return len(self.itos)

    def __contains__(self, word: object) -> bool:
        return word in self.itos

    def __getitem__(self, word: str) -> int:
        numbers = self.get_stoi()
        if word not in numbers and self.default is None:
            raise RuntimeError("Token " + str(word) + " not found and default index is not set")
        return numbers.get(word, self.default or 0)

    def __call__(self, words: Iterable[str]) -> list[int]:
        return [self[word] for word in words]

    forward = lookup_indices = __call__

    def __iter__(self) -> Iterator[str]:
        return iter(self.itos)

    def lookup_token(self, number: int) -> str:
        """The word of a number."""
        return self.itos[int(number)]

    def lookup_tokens(self, numbers: Iterable[int]) -> list[str]:
        """The words of numbers."""
        return [self.itos[int(number)] for number in numbers]

    def set_default_index(self, number: int | None) -> None:
        """What an unknown word gets."""
        self.default = number

    def get_default_index(self) -> int | None:
        """What an unknown word gets."""
        return self.default

    def get_stoi(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.itos)}

    def get_itos(self) -> list[str]:
        """The words in the order of their numbers."""
        return list(self.itos)

    def insert_token(self, word: str, number: int) -> None:
        """Put a word in."""
        self.itos.insert(number, word)

    def append_token(self, word: str) -> None:
        """Put a word at the end."""
        self.itos.append(word)


def build_vocab_from_iterator(
    iterator: Iterable[Any],
    min_freq: int = 1,
    specials: Any = None,
    special_first: bool = True,
    max_tokens: int | None = None,
) -> Vocab:
    """The vocabulary of lists of words."""
    counts: collections.Counter[str] = collections.Counter()
    for line in iterator:
        counts.update(line)
    made = Vocab(counts, max_tokens, min_freq, tuple(specials or ()), None, special_first)
    made.default = None
    return made


def vocab(ordered: Any, min_freq: int = 1, specials: Any = None, special_first: bool = True) -> Vocab:
    """The vocabulary of counted words."""
    made = Vocab(ordered, None, min_freq, tuple(specials or ()), None, special_first)
    made.default = None
    return made
