"""pytz: time zones, all of them the world's."""

from __future__ import annotations

import datetime

from ..inert import others

utc = UTC = datetime.UTC


def timezone(name: str) -> datetime.timezone:
    """The world's time, whatever the zone: nothing is trained by the hour."""
    return utc


__getattr__ = others(__name__)
