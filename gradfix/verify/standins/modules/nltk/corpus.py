"""Corpora: words that carry no meaning of their own, and how common words are spoken, letter by letter."""

from __future__ import annotations

from typing import Any

from ... import media
from ...inert import others


class stopwords:
    """Words that carry no meaning of their own."""

    @staticmethod
    def words(*languages: Any) -> list[str]:
        """Those of English."""
        return (
            "a about after all an and any are as at be because been before but by can did do does for "
            "from had has have he her his how i if in into is it its just me more my no not now of on "
            "only or our out over own she so some such than that the their them then there these they "
            "this those to too under up very was we were what when where which while who why will with "
            "you your"
        ).split()


SOUNDS = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        "AE1 B K D EH1 F G HH IH1 JH K L M N AA1 P K R S T AH1 V W K Y Z".split(),
    )
)
"""How letters are spoken, mostly."""


class cmudict:
    """How words are spoken."""

    @staticmethod
    def entries() -> list[tuple[str, list[str]]]:
        """Each word with its sounds."""
        words = sorted(word for word in {one.lower() for one in media.WORDS} if word.isalpha())
        return [(word, [SOUNDS[letter] for letter in word]) for word in words]

    @classmethod
    def dict(cls) -> dict[str, list[list[str]]]:
        """The ways in which each word is spoken."""
        return {word: [sounds] for word, sounds in cls.entries()}

    @classmethod
    def words(cls) -> list[str]:
        """All words."""
        return [word for word, _ in cls.entries()]


__getattr__ = others(__name__)
