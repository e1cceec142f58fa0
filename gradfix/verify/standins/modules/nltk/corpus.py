"""Corpora: only the words that carry no meaning of their own are known."""

from __future__ import annotations

from typing import Any

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


__getattr__ = others(__name__)
