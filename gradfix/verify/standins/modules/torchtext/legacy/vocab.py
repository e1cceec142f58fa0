"""The older versions under their later name."""

from .. import vocab as _now

globals().update({name: value for name, value in vars(_now).items() if not name.startswith("__")})
