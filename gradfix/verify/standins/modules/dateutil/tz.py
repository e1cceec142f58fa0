"""dateutil.tz: all zones are that of Greenwich."""

from __future__ import annotations

import datetime
from typing import Any

UTC = datetime.timezone(datetime.timedelta())


def tzlocal() -> datetime.tzinfo:
    """The zone of this machine."""
    return UTC


tzutc = tzlocal


def gettz(name: Any = None) -> datetime.tzinfo:
    """A zone by its name."""
    return UTC
