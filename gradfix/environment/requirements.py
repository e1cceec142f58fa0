"""Requirements: one line of what a project asks for, taken apart, and how it is relaxed.

What is handed to uv is put together again from the parts, so a line of a stranger's file reaches it as a
requirement or not at all: never as an option, a path or an address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as Parsed
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

_OLD_VERSIONS = re.compile(
    r"(?P<name>[a-z0-9][\w.-]*)\s*(?P<specifier>(?:(?:===?|[<>!~]=|[<>])\s*[a-z0-9][\w.*+!-]*\s*,?\s*)+)",
    re.IGNORECASE | re.ASCII,
)
"""Versions such as ``>=1.0.*`` or ``==2.x``, which older tools took and PEP 440 has not. uv refuses them as
well, and then they are relaxed."""

_PLAIN_MARKER = re.compile(r"[A-Za-z0-9_ .'\"()<>=!~,*+-]*")
"""A marker may compare with any text; what begins a comment or an address is none that projects need."""

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


def parse(line: str, origin: str) -> Requirement | LeftOut:
    """Take one requirement apart (PEP 508), without comments or options around it."""
    line = " ".join(line.split())
    if line.startswith("-"):
        return LeftOut(line, "options are not passed on", origin, matters=False)
    try:
        found = Parsed(line)
        specifier = _ascending(found.specifier)
    except (InvalidRequirement, InvalidSpecifier) as error:
        if old := _OLD_VERSIONS.fullmatch(line):
            return _requirement(old["name"], old["specifier"].replace(" ", "").rstrip(","), origin=origin)
        return LeftOut(line, _why_none(line, error), origin)
    marker = str(found.marker or "")
    if found.url is not None:
        return LeftOut(line, ADDRESS, origin)
    if not _PLAIN_MARKER.fullmatch(marker):
        return LeftOut(line, "its marker holds characters that are not passed on", origin)
    return _requirement(found.name, specifier, ",".join(sorted(found.extras)), marker, origin=origin)


def _requirement(
    name: str, specifier: str, extras: str = "", marker: str = "", *, origin: str
) -> Requirement:
    name = canonicalize_name(name)
    return Requirement(MISNAMED.get(name, name), specifier, extras, marker, origin)


ADDRESS = "it is at an address of its own, and only wheels from an index are installed"


def _why_none(line: str, error: Exception) -> str:
    if "://" in line:
        return ADDRESS
    if line.startswith((".", "/", "~")) or "/" in line or "\\" in line:
        return "it is a path, and only wheels from an index are installed"
    return f"it is not understood: {str(error).splitlines()[0]}"


def _ascending(specifiers: SpecifierSet) -> str:
    """The clauses by their versions, as uv's messages have them; ``===1.7.1`` becomes ``==1.7.1``."""
    clauses = [Specifier(str(clause).replace("===", "==")) for clause in specifiers]
    return ",".join(map(str, sorted(clauses, key=lambda clause: (_version(clause), clause.operator))))


def _version(clause: Specifier) -> Version:
    return Version(clause.version.removesuffix(".*"))


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
    try:
        clauses = [(clause, _version(clause)) for clause in map(Specifier, specifier.split(","))]
    except InvalidSpecifier:
        return ""
    for clause, version in clauses:
        if clause.operator in (">=", ">", "!=") or version.major < 1 or version.epoch:
            continue
        ceiling = f"<{version.major + 1}"
        if clause.operator == "<" and version == Version(str(version.major)):
            return ""  # Nothing of that major number is below it.
        if clause.operator in ("<", "<="):
            return ceiling
        return f">={clause.version.removesuffix('.*')},{ceiling}"
    return ""


def pinned(requirement: Requirement) -> bool:
    """Whether it asks for one version, or for one series of versions."""
    return requirement.specifier.startswith(("==", "~="))
