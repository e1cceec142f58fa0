"""yaml: files of settings as people write them: maps, lists, numbers, words. No anchors, no long texts."""

from __future__ import annotations

import json
import re
from typing import Any


class Loader:
    """There is one way of loading."""

    @classmethod
    def add_implicit_resolver(cls, *args: Any) -> None:
        """Numbers are recognized anyway."""


SafeLoader = FullLoader = UnsafeLoader = CLoader = CSafeLoader = Dumper = SafeDumper = Loader


class YAMLError(Exception):
    """Something else than settings."""


def scalar(text: str) -> Any:
    """One value."""
    text = text.strip()
    if text.startswith("!!python/tuple"):
        return tuple(scalar(text[len("!!python/tuple") :]) or ())
    if text[:1] in "[{" and text:
        return flow(text)
    if text[:1] in ("'", '"') and text[-1:] == text[:1]:
        return text[1:-1]
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if text.lower() in words:
        return words[text.lower()]
    if text.lower() in ("", "null", "~", "none") and text != "None":
        return None
    if re.fullmatch(r"[-+]?\d[\d_]*", text):
        return int(text.replace("_", ""))
    if re.fullmatch(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?", text):
        return float(text)
    return text


def flow(text: str) -> Any:
    """A list or a map within brackets."""
    inner = text.strip()[1:-1]
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(inner + ","):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            parts.append(inner[start:index])
            start = index + 1
    kept = [part for part in parts if part.strip()]
    if text.strip()[0] == "[":
        return [scalar(part) for part in kept]
    return {scalar(name): scalar(value) for name, _, value in (part.partition(":") for part in kept)}


def lines(text: str) -> list[tuple[int, str]]:
    """Indentation and content of each line, without comments."""
    found: list[tuple[int, str]] = []
    for line in text.splitlines():
        bare = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if bare.strip() and not bare.startswith(("---", "...", "%")):
            content = bare.lstrip()
            if found and not balanced(found[-1][1]):
                found[-1] = (found[-1][0], found[-1][1] + " " + content)
            else:
                found.append((len(bare) - len(content), content))
    return found


def balanced(text: str) -> bool:
    """Whether all brackets are closed."""
    return text.count("[") <= text.count("]") and text.count("{") <= text.count("}")


def block(rows: list[tuple[int, str]]) -> Any:
    """The value that rows of equal indentation, and what is under them, describe."""
    if not rows:
        return None
    if len(rows) == 1 and not rows[0][1].startswith("- ") and not entry(rows[0][1]):
        return scalar(rows[0][1])
    listed: list[Any] = []
    mapped: dict[Any, Any] = {}
    at = 0
    level = rows[0][0]
    while at < len(rows):
        content = rows[at][1]
        end = at + 1
        dash = content.startswith("- ") or content == "-"
        while end < len(rows) and (
            rows[end][0] > level or (not dash and rows[end][0] == level and rows[end][1].startswith("- "))
        ):
            end += 1
        inner = rows[at + 1 : end]
        if dash:
            rest = content[1:].lstrip()
            listed.append(block(([(level + len(content) - len(rest), rest)] if rest else []) + inner))
        else:
            found = entry(content)
            if found is None:
                raise YAMLError(content)
            name, value = found
            mapped[scalar(name)] = scalar(value) if value else block(inner)
        at = end
    return listed or mapped


def entry(content: str) -> tuple[str, str] | None:
    """Name and value of a line of a map."""
    found = re.match(r"""("[^"]*"|'[^']*'|[^:\s"'\[{][^:]*?)\s*:(?:\s+(.*))?$""", content)
    return (found[1], found[2] or "") if found else None


def safe_load(stream: Any) -> Any:
    """The settings in a text or a file."""
    text = stream if isinstance(stream, str) else stream.read()
    text = text.decode() if isinstance(text, bytes) else text
    return block(lines(text))


def load(stream: Any, *args: Any, **kwargs: Any) -> Any:
    """The settings in a text or a file."""
    return safe_load(stream)


full_load = unsafe_load = safe_load


def dump(data: Any, stream: Any = None, *args: Any, **kwargs: Any) -> Any:
    """JSON, which is yaml too."""
    text = json.dumps(data, indent=2, default=str)
    return text if stream is None else stream.write(text)


safe_dump = dump


def add_constructor(*args: Any, **kwargs: Any) -> None:
    """There are no tags."""


add_representer = add_constructor
