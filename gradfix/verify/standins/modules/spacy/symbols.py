"""spacy.symbols: numbers that name parts of a word."""

from __future__ import annotations

ORTH, LEMMA, NORM, POS, TAG = 65, 73, 67, 74, 75
