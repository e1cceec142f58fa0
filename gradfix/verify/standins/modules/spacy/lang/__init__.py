"""spacy.lang: a language is like any other here."""

from __future__ import annotations

from .. import Language

English = German = French = Spanish = Italian = Dutch = Portuguese = Chinese = Language
__all__ = ["Chinese", "Dutch", "English", "French", "German", "Italian", "Language", "Portuguese", "Spanish"]
