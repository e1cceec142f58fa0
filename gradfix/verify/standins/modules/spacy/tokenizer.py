"""spacy.tokenizer."""

from __future__ import annotations

from . import Tokenizer

__all__ = ["Tokenizer"]
