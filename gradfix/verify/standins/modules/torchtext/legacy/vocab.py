"""The older versions under their later name."""

from ..vocab import *  # noqa: F403
from ..vocab import __dict__ as _all

globals().update({name: value for name, value in _all.items() if not name.startswith("__")})
