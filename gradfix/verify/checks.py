"""Checks of a rewrite, and when they make a proof: what runs have shown, or what a file says of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

Verdict = Literal["holds", "fails", "not checked"]
COMPARISONS = frozenset({"unchanged", "reference", "leaves", "same-loss"})
"""Checks that mean nothing if two runs of the same program differ."""
SIDE_EFFECTS = frozenset({"random", "buffers"})
"""Checks of what surrounds the gradients."""
CONTRADICTION = "recorder contradiction"
"""Begins the detail of a check where equal hashes stand for different values."""
NO_NUMBERS = "and there are no numbers"
"""Ends the detail of a check where hashes differ, which prove nothing then, in a run without data."""
PROMISED = frozenset({"modes", "clipped", "scheduled", "cleared"})
"""The checks that a claim asks for by itself: nothing is proved where one of them could not be made."""
DECISIVE = PROMISED | {"crash", "fixed-runs", "reached", "stepped", "meant", "entries", "observed"}
"""The checks without which nothing is proved, where they could not be made."""
SUBSTANCE = COMPARISONS | PROMISED | {"entries", "feeds", "kept"}
"""Checks of which at least one must hold for evidence to be evidence."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what was found."""

    name: str
    """Stable, see the module's documentation."""
    verdict: Verdict
    detail: str
    """For people: what holds or fails, or why it was not checked."""
    subject: str = ""
    """The optimizer it is about, as the script calls it."""
    by_hash: bool = False
    """Whether it is about gradients, none was left out, and hashes alone have shown that they are equal."""


def missing(checks: Sequence[Check]) -> str | None:
    """What keeps checks of which none fails from being a proof, in words; ``None`` if they are one."""
    for one in checks:
        if one.name in DECISIVE and one.verdict == "not checked":
            return one.detail
    doubt = next((one.detail for one in checks if one.detail.startswith(CONTRADICTION)), None)
    if doubt is not None:
        return doubt
    held = [one for one in checks if one.verdict == "holds"]
    compared = {one.subject for one in held if one.name in ("unchanged", "reference")}
    for one in checks:
        if one.name == "unchanged" and one.verdict == "not checked" and one.subject not in compared:
            return f"nothing could be compared: {one.detail}"
    if not any(one.name in SUBSTANCE for one in held):
        detail = next((one.detail for one in checks if one.verdict == "not checked"), "no optimizer step ran")
        return f"nothing could be compared: {detail}"
    return None


def proves(evidence: Mapping[str, Any]) -> bool:
    """Whether evidence that was read in a file, whoever wrote it, says that it is a proof, as do its checks.

    Raises:
        KeyError, TypeError, ValueError: It is no evidence.
    """
    checks = [_read(one) for one in evidence["checks"]]
    failed = any(one.verdict == "fails" for one in checks)
    return evidence["outcome"] == "proved" and not failed and missing(checks) is None


def _read(item: Mapping[str, Any]) -> Check:
    name, verdict, detail, subject = (item[field] for field in ("name", "verdict", "detail", "subject"))
    if not all(isinstance(text, str) for text in (name, verdict, detail, subject)):
        raise TypeError("a check is made of texts")
    if verdict not in get_args(Verdict):
        raise ValueError(f"{verdict!r} is no verdict")
    return Check(name, verdict, detail, subject)
