"""Steps from words to numbers."""

from __future__ import annotations

from typing import Any

import torch


class VocabTransform(torch.nn.Module):
    """Words to numbers."""

    def __init__(self, vocab: Any) -> None:
        super().__init__()
        self.vocab = vocab

    def forward(self, words: Any) -> Any:
        return [self.vocab(one) for one in words] if isinstance(words[0], list) else self.vocab(words)


class Truncate(torch.nn.Module):
    """No more than so many."""

    def __init__(self, max_seq_len: int) -> None:
        super().__init__()
        self.longest = max_seq_len

    def forward(self, values: Any) -> Any:
        if values and isinstance(values[0], list):
            return [one[: self.longest] for one in values]
        return values[: self.longest]


class AddToken(torch.nn.Module):
    """One more at the beginning or at the end."""

    def __init__(self, token: Any, begin: bool = True) -> None:
        super().__init__()
        self.token, self.begin = token, begin

    def forward(self, values: Any) -> Any:
        if values and isinstance(values[0], list):
            return [self(one) for one in values]
        return [self.token, *values] if self.begin else [*values, self.token]


class ToTensor(torch.nn.Module):
    """A tensor, padded where rows differ in length."""

    def __init__(self, padding_value: int | None = None, dtype: torch.dtype = torch.long) -> None:
        super().__init__()
        self.padding, self.dtype = padding_value or 0, dtype

    def forward(self, values: Any) -> torch.Tensor:
        if values and isinstance(values[0], list):
            longest = max(len(one) for one in values)
            values = [one + [self.padding] * (longest - len(one)) for one in values]
        return torch.tensor(values, dtype=self.dtype)


class PadTransform(torch.nn.Module):
    """Padded at the end up to a length."""

    def __init__(self, max_length: int, pad_value: int) -> None:
        super().__init__()
        self.longest, self.padding = max_length, pad_value

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        missing = max(0, self.longest - values.size(-1))
        return torch.nn.functional.pad(values, (0, missing), value=self.padding)


class Sequential(torch.nn.Sequential):
    """One after the other."""
