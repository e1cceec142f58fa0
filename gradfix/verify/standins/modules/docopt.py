"""docopt: the options that a script's own description says, with their defaults."""

from __future__ import annotations

import re
import sys
from typing import Any

from ..arguments import text_for
from ..context import run
from ..sizes import reduced

OPTION = re.compile(
    r"^\s+(?P<names>-{1,2}[A-Za-z](?:[^\s]|,? -|[ =](?=<)|[ =](?=[A-Z]+\b))*)(?:\s{2,}|$)(?P<said>.*)$"
)
DEFAULT = re.compile(r"\[default:\s*([^\]]*?)\s*\]", re.I)
USAGE = re.compile(r"usage:(.*?)(?:\n\s*\n|\Z)", re.I | re.S)


class Dict(dict):  # type: ignore[type-arg]
    """What was given, by the names that the description has."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)


class DocoptExit(SystemExit):
    """The end of a script that was called otherwise than it says."""


def docopt(doc: str | None = None, *args: Any, **kwargs: Any) -> Dict:
    """The values of all options; what the usage requires gets one as an argument would."""
    text = doc or sys.modules["__main__"].__doc__ or ""
    found = Dict()
    for line in re.sub(r"\n\s+(?=\[default)", " ", text).splitlines():
        option = OPTION.match(line)
        if option is None:
            continue
        names = re.findall(r"--?[A-Za-z][\w-]*", option["names"])
        takes = re.search(r"[ =](<[^>]+>|[A-Z]+\b)", option["names"])
        default = DEFAULT.search(option["said"])
        name = max(names, key=len)
        found[name] = (default[1] if default else None) if takes else False
    usage = USAGE.search(text)
    lines = [line.strip() for line in (usage[1] if usage else "").splitlines() if line.strip()]
    for line in lines:
        for name in re.findall(r"--[A-Za-z][\w-]*", line):
            found.setdefault(name, False)
    first = lines[0] if lines else ""
    required = re.sub(r"\[[^\]]*\]", "", first)
    for given in re.findall(r"(?<![=\w])(<[^>]+>)", first):
        name = given.strip("<>").replace("-", "_")
        found[given] = text_for(run(), name) if given in required and f"={given}" not in first else None
        if found[given] is not None:
            run().used("argument " + name, repr(found[given]))
    if run().small:
        for name, value in found.items():
            if isinstance(value, str) and value.isdigit():
                found[name] = str(reduced(run(), "argument " + name, name.strip("-"), int(value)))
    return found
