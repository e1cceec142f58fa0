"""tiktoken: texts as numbers, one for each word and for each space."""

from __future__ import annotations

import re
import zlib
from typing import Any

SIZES = {"gpt2": 50257, "r50k_base": 50257, "p50k_base": 50281, "cl100k_base": 100277, "o200k_base": 200019}


class Encoding:
    """Words and their numbers, of which those that were met can be told again."""

    def __init__(self, name: str = "gpt2") -> None:
        self.name = name
        self.n_vocab = SIZES.get(name, 50257)
        self.max_token_value = self.eot_token = self.n_vocab - 1
        self.known: dict[int, str] = {self.eot_token: "<|endoftext|>"}

    def encode(self, text: str, *args: Any, **kwargs: Any) -> list[int]:
        """A number for each word with the space before it."""
        found = []
        for word in re.findall(r"\s?\S+|\s+", text):
            number = zlib.crc32(word.encode()) % self.eot_token
            self.known[number] = word
            found.append(number)
        return found

    encode_ordinary = encode

    def encode_batch(self, texts: Any, *args: Any, **kwargs: Any) -> list[list[int]]:
        """Several texts."""
        return [self.encode(one) for one in texts]

    encode_ordinary_batch = encode_batch

    def decode(self, numbers: Any, *args: Any, **kwargs: Any) -> str:
        """The words."""
        return "".join(self.known.get(int(one), " word") for one in numbers)


def get_encoding(name: str) -> Encoding:
    """The words of a name."""
    return Encoding(name)


def encoding_for_model(name: str) -> Encoding:
    """The words of a network."""
    return Encoding("gpt2" if name.startswith("gpt2") else "cl100k_base")
