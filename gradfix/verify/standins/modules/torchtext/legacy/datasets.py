"""The older versions under their later name."""

from ..datasets import *  # noqa: F403
from ..datasets import __dict__ as _all

globals().update({name: value for name, value in _all.items() if not name.startswith("__")})
