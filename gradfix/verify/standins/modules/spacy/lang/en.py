"""spacy.lang.en: its words are found like those of any language here."""

from __future__ import annotations

from . import English

STOP_WORDS: set[str] = set()
__all__ = ["STOP_WORDS", "English"]
