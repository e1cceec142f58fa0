"""unidecode: letters without their marks."""

from __future__ import annotations

import unicodedata


def unidecode(text: str, *args: object) -> str:
    """The text in ASCII."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
