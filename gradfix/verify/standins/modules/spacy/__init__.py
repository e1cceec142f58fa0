"""spacy: the words of a text, with what their letters say of them; vectors are made up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ...context import run
from ...inert import others
from ...spaces import array

WIDTH = 300
"""Numbers of a word's vector."""


class Token:
    """A word, a number or a sign."""

    def __init__(self, text: str, index: int = 0, space: bool = True) -> None:
        self.text = self.orth_ = text
        self.i = index
        self.whitespace_ = " " if space else ""
        self.text_with_ws = text + self.whitespace_
        self.lower_ = self.lemma_ = self.norm_ = text.lower()
        self.is_alpha, self.is_digit, self.is_space = text.isalpha(), text.isdigit(), text.isspace()
        self.like_num = self.is_digit
        self.is_punct = not re.search(r"\w", text)
        self.is_stop = self.is_oov = self.like_url = False
        self.has_vector = True

    @property
    def vector(self) -> Any:
        """Numbers that depend on the word."""
        return array(torch.randn(WIDTH, generator=run().generator("word", self.lower_)))

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __len__(self) -> int:
        return len(self.text)


class Doc:
    """A text, word by word."""

    def __init__(self, text: str, words: Iterable[str]) -> None:
        self.text = text
        self.tokens = [Token(one, index) for index, one in enumerate(words)]
        self.ents: tuple[Any, ...] = ()

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: Any) -> Any:
        return self.tokens[index]

    def __str__(self) -> str:
        return self.text

    @property
    def sents(self) -> list[Any]:
        """The whole is one sentence."""
        return [self]

    @property
    def vector(self) -> Any:
        """The mean of those of its words."""
        rows = [torch.as_tensor(one.vector) for one in self.tokens]
        return array(torch.stack(rows).mean(0) if rows else torch.zeros(WIDTH))


class Tokenizer:
    """Takes a text to pieces."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, text: Any) -> Doc:
        return Doc(str(text), re.findall(r"\w+|[^\w\s]", str(text)))

    def pipe(self, texts: Any, *args: Any, **kwargs: Any) -> Iterator[Doc]:
        """One after the other."""
        return (self(one) for one in texts)

    def add_special_case(self, *args: Any) -> None:
        """There are none."""


class Language(Tokenizer):
    """What has been loaded for a language: here it takes texts to pieces, no more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.tokenizer = Tokenizer()
        self.vocab: Any = Vocab()
        self.pipe_names: list[str] = []
        self.max_length = 1 << 20
        self.Defaults = self

    def create_tokenizer(self, *args: Any) -> Tokenizer:
        """The one that it has."""
        return Tokenizer()

    def add_pipe(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is added."""

    disable_pipes = select_pipes = create_pipe = add_pipe


class Vocab:
    """Any word may be asked for."""

    vectors_length = WIDTH

    def __getitem__(self, word: Any) -> Token:
        return Token(str(word))

    def __contains__(self, word: Any) -> bool:
        return True


def load(name: Any = "en", *args: Any, **kwargs: Any) -> Language:
    """A language."""
    return Language()


blank = load


def prefer_gpu(*args: Any) -> bool:
    """There is none."""
    return False


require_gpu = prefer_gpu
__getattr__ = others(__name__)
