"""Requirements: one line of what a project asks for, taken apart, and how it is relaxed.

The syntax is that of PEP 508 (names, extras, specifiers, markers) and PEP 440 (versions). What is handed to
uv is put together again from the parts, so a line of a stranger's file reaches it as a requirement or not at
all: never as an option, a path or an address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"[A-Za-z0-9](?:[A-Za-z0-9._+!-]*[A-Za-z0-9])?(?:\.\*)?"
_CLAUSE = rf"(?:===|==|~=|!=|<=|>=|<|>)\s*{_VERSION}"
_SPECIFIER = rf"{_CLAUSE}(?:\s*,\s*{_CLAUSE})*\s*,?"
_LINE = re.compile(
    rf"(?P<name>{_NAME})"
    rf"\s*(?:\[\s*(?P<extras>{_NAME}(?:\s*,\s*{_NAME})*)?\s*\])?"
    rf"\s*(?:\(\s*(?P<inner>{_SPECIFIER})\s*\)|(?P<outer>{_SPECIFIER}))?"
    r"\s*(?:;\s*(?P<marker>[A-Za-z0-9_ .'\"()<>=!~,*+-]+))?"
)
_CLAUSES = re.compile(rf"(===|==|~=|!=|<=|>=|<|>)\s*({_VERSION})")

MISNAMED = {
    "pytorch": "torch",
    "opencv": "opencv-python",
    "cv2": "opencv-python",
    "pil": "pillow",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "torch-vision": "torchvision",
    "tensorflow-gpu": "tensorflow",
}
"""Names that projects state and that PyPI has for nothing but to say that another one is meant."""

TORCH = frozenset({"torch", "torchvision", "torchaudio", "torchtext", "torchdata"})
"""Distributions that are released together, and of which PyTorch's own index has CPU builds."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A distribution that is asked for."""

    name: str
    """Normalised, as PEP 503 has it."""
    specifier: str
    """Which versions, without blanks; empty for any."""
    extras: str
    marker: str
    origin: str
    """Where it is stated, for people: a file, or the import that it comes from."""

    @property
    def text(self) -> str:
        """What is handed to uv; one line."""
        return f"{self.versioned}{f' ; {self.marker}' if self.marker else ''}"

    @property
    def versioned(self) -> str:
        """The same without its marker, for people."""
        return f"{self.name}{f'[{self.extras}]' if self.extras else ''}{self.specifier}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something stated that is not installed."""

    text: str
    why: str
    origin: str
    matters: bool = True
    """Whether the environment lacks something for it; the project itself, for one, needs no installing."""


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(line: str, origin: str) -> Requirement | LeftOut:
    """Take one requirement apart, without comments or options around it."""
    line = " ".join(line.split())
    if line.startswith("-"):
        return LeftOut(line, "options are not passed on", origin, matters=False)
    if "://" in line or re.search(r"\s@\s|^[\w.-]+(\[[^\]]*\])?\s*@", line):
        return LeftOut(
            line, "it is at an address of its own, and only wheels from an index are installed", origin
        )
    if line.startswith((".", "/", "~")) or "/" in line or "\\" in line:
        return LeftOut(line, "it is a path, and only wheels from an index are installed", origin)
    found = _LINE.fullmatch(line)
    if found is None:
        return LeftOut(line, "it is not understood", origin)
    name = normalised(found["name"])
    specifier = (found["inner"] or found["outer"] or "").replace(" ", "").rstrip(",")
    extras = (found["extras"] or "").replace(" ", "")
    marker = (found["marker"] or "").strip()
    return Requirement(MISNAMED.get(name, name), specifier, extras, marker, origin)


def relaxed(requirement: Requirement) -> Requirement | None:
    """The next looser one, or ``None`` where it already takes any version.

    A build of its own (``+cu118``) goes first. Then any version of the same major number that is not older
    will do, since a new major number is where programs are broken; last, any version at all. PyTorch is
    relaxed at once: what gradfix watches is how today's PyTorch computes gradients.
    """
    if not requirement.specifier:
        return None
    if "+" in requirement.specifier:
        return replace(requirement, specifier=re.sub(r"\+[A-Za-z0-9._-]*", "", requirement.specifier))
    if requirement.name in TORCH:
        return replace(requirement, specifier="")
    return replace(requirement, specifier=_same_major(requirement.specifier))


def _same_major(specifier: str) -> str:
    """``>=1.16.2,<2`` for ``==1.16.2``; empty where a specifier already says as much, or where 0 is major."""
    for operator, version in _CLAUSES.findall(specifier):
        major = re.match(r"[0-9]+", version)
        if operator in (">=", ">", "!=") or not major or int(major[0]) < 1 or "!" in version:
            continue
        floor = version.removesuffix(".*")
        if operator in ("<", "<="):
            looser = f"<{int(major[0]) + 1}"
            # A bound that is a major number itself has nothing above it within that number.
            return "" if operator == "<" and not re.search(r"[1-9]", version[major.end() :]) else looser
        return f">={floor},<{int(major[0]) + 1}"
    return ""


def pinned(requirement: Requirement) -> bool:
    """Whether it asks for one version, or for one series of versions."""
    return requirement.specifier.startswith(("==", "~="))
