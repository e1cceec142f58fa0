"""Certificates: what was rewritten, what was promised, and what running both versions showed, as a file.

A certificate holds both texts, so that whoever has it can have everything run again. Its fields are those of
:mod:`gradfix.pipeline.json_types`; ``docs/certificate.md`` explains them, and a test holds the two together.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from gradfix import __version__
from gradfix.core.codemod import Claim, Effect, Losses
from gradfix.core.errors import WORDS
from gradfix.pipeline.results import Attempt, Outcome
from gradfix.project.configuration import ANALYSED
from gradfix.project.source import Problem, character_column, split_lines
from gradfix.project.source import read as read_source
from gradfix.system import files
from gradfix.verify.checks import proves

if TYPE_CHECKING:
    from gradfix.pipeline.json_types import CertificateData, WayData
    from gradfix.verify.evidence import Evidence, StepAlone
    from gradfix.verify.trial import Rewrite

SCHEMA: Literal[4] = 4
"""Counts changes that a reader of an earlier schema would not understand."""
READ = (1, 2, 3, 4)
"""The schemas that are read. A claim of the first promised nothing of forward passes, one of the first two
nothing of other errors than autograd's, of modes and of clipping, one of the first three nothing of
losses."""
MAX_BYTES = 64 << 20


def way_of(attempt: Attempt) -> WayData:
    """What a way to repair a finding came to, and what it costs."""
    cost = None if attempt.evidence is None else attempt.evidence.cost()
    return {
        "way": attempt.fix.way,
        "message": attempt.fix.message,
        "effect": attempt.fix.effect,
        "outcome": attempt.outcome,
        "reason": attempt.reason,
        "saved": None if cost is None else cost.saved,
        "backward_seconds": None if cost is None else cost.seconds,
        "after": {"sha256": _digest(attempt.after), "text": attempt.after},
    }


def of(path: str, attempt: Attempt) -> CertificateData:
    """The certificate of one rewrite of the file at ``path``."""
    span = attempt.finding.span
    lines = split_lines(attempt.before)
    claim = attempt.fix.claim
    return {
        "schema": SCHEMA,
        "gradfix": __version__,
        "filename": path,
        "code": attempt.finding.code,
        "finding": attempt.finding.message,
        "severity": attempt.finding.severity,
        "location": {"row": span.line, "column": character_column(lines[span.line - 1], span.column)},
        "message": attempt.fix.message,
        "effect": attempt.fix.effect,
        "way": attempt.fix.way,
        "ways": [way_of(one) for one in (attempt, *attempt.ways)] if attempt.ways else [],
        "claim": {
            "raises": claim.raises,
            "raises_line": claim.raises_line,
            "unchanged": "all" if claim.unchanged == "all" else list(claim.unchanged),
            "feeds": list(claim.feeds),
            "beyond": claim.beyond,
            "same_forwards": claim.same_forwards,
            "stops": claim.stops,
            "steady_modes": claim.steady_modes,
            "clips": list(claim.clips),
            "schedules": list(claim.schedules),
            "clears": claim.clears,
            "losses": claim.losses,
        },
        "before": {"sha256": _digest(attempt.before), "text": attempt.before},
        "after": {"sha256": _digest(attempt.after), "text": attempt.after},
        "outcome": attempt.outcome,
        "reason": attempt.reason,
        "evidence": None if attempt.evidence is None else attempt.evidence.to_json(),
    }


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that was read from a file."""

    filename: str
    code: str
    message: str
    effect: Effect
    claim: Claim
    before: str
    after: str
    outcome: str
    alone: StepAlone | None = None
    """In what the step was run alone, where the program could not run."""

    def rewrite(self, place: RerunLocation) -> Rewrite:
        """What has to be run to see it again."""
        from gradfix.verify.trial import Rewrite

        return Rewrite(place.file, self.before, self.after, self.claim, self.effect, place.within)

    def place(self, named: str) -> RerunLocation | Problem:
        """Where it is run again if the user names a file, which is the one that it is about, or a folder, in
        which that file is.

        What a certificate says of where its file is may lead anywhere: it counts within that folder alone.
        """
        if not os.path.isdir(named):
            return RerunLocation(Path(named))
        folder = os.path.realpath(named)
        file = os.path.realpath(os.path.join(folder, self.filename))
        if not Path(file).is_relative_to(folder) or file == folder:
            return Problem(named, f"does not hold {self.filename}; name the file that takes its place")
        return RerunLocation(Path(file), Path(folder))

    def place_apart(self, folder: Path) -> RerunLocation:
        """Where it is run again if the user names nothing: in an empty folder, in which there is only it."""
        name = os.path.basename(self.filename)
        return RerunLocation(folder / (name if name.endswith(ANALYSED) else "script.py"), folder)

    def file_now(
        self, file: Path | None
    ) -> Literal["as before", "as after", "changed", "missing", "not looked at"]:
        """What ``file`` holds now, the one that it is about."""
        if file is None:
            return "not looked at"
        now = read_source(str(file))
        if isinstance(now, Problem):
            return "changed" if os.path.exists(file) else "missing"
        return "as before" if now.text == self.before else "as after" if now.text == self.after else "changed"


@dataclass(frozen=True, slots=True)
class RerunLocation:
    """Where the versions of a certificate are run again."""

    file: Path
    within: Path | None = None
    """The folder that the runs may read; ``None``: the project of the file."""


def read(path: str) -> Certificate | Problem:
    """The certificate in a file; a problem if it is none, or its texts are not those that it names."""
    try:
        data = files.read(path, MAX_BYTES)
    except OSError as error:
        return Problem(path, files.describe_error(error))
    try:
        content = json.loads(data)
        if content["schema"] not in READ:
            readable = " and ".join(map(str, READ))
            return Problem(
                path, f"is of schema {content['schema']}; this version of gradfix reads {readable}"
            )
        claim = content["claim"]
        found = Certificate(
            filename=_path(content["filename"]),
            code=_text(content["code"]),
            message=_text(content["message"]),
            effect=Effect(content["effect"]),
            claim=Claim(
                raises=_error(claim["raises"]),
                raises_line=None if claim["raises_line"] is None else _line(claim["raises_line"]),
                unchanged="all" if claim["unchanged"] == "all" else tuple(map(_line, claim["unchanged"])),
                feeds=tuple((_line(line), _text(receiver)) for line, receiver in claim["feeds"]),
                beyond=bool(claim["beyond"]),
                same_forwards=content["schema"] > 1 and bool(claim["same_forwards"]),
                **(_later(claim) if content["schema"] > 2 else {}),
                losses=_losses(claim["losses"]) if content["schema"] > 3 else "other",
            ),
            before=_text(content["before"]["text"]),
            after=_text(content["after"]["text"]),
            outcome=str(Outcome(content["outcome"])),
            alone=_alone(content),
        )
        digests = content["before"]["sha256"], content["after"]["sha256"]
        if found.outcome == "proved" and not proves(content.get("evidence")):
            return Problem(path, "has been changed: it calls proved what by its own checks is not")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Problem(path, f"is no certificate: {type(error).__name__}: {error}")
    if digests != (_digest(found.before), _digest(found.after)):
        return Problem(path, "has been changed: its texts do not have the digests that it names")
    return found


def _alone(content: Any) -> StepAlone | None:
    """In what a step was run alone, where that has proved it."""
    from gradfix.verify.evidence import StepAlone

    held = (content.get("evidence") or {}).get("alone")
    if held is None or content["outcome"] != Outcome.PROVED_ALONE:
        return None
    first, last = map(int, held.get("lines", (1, 1)))
    lists = {name: tuple(map(_text, held.get(name, ()))) for name in ("worlds", "networks", "others")}
    return StepAlone(
        _text(held["entry"]),
        _text(held["why"]),
        refuted=(),
        driver=_text(held["driver"]),
        callers=tuple((int(a), int(b)) for a, b in held.get("callers", ())),
        lines=(first, last),
        **lists,
    )


def again(found: Certificate, file: Path | None, evidence: Evidence) -> dict[str, Any]:
    """What running a certificate's versions again has shown, beside what it says itself."""
    return {
        "filename": found.filename,
        "code": found.code,
        "message": found.message,
        "file": found.file_now(file),
        "outcome": found.outcome,
        "again": evidence.to_json(),
    }


def _later(claim: Mapping[str, Any]) -> dict[str, Any]:
    """What a claim of the third schema promises beyond those of earlier ones."""
    return {
        "stops": None if claim["stops"] is None else _text(claim["stops"]),
        "steady_modes": bool(claim["steady_modes"]),
        "clips": tuple(map(_line, claim["clips"])),
        "schedules": tuple(map(_line, claim["schedules"])),
        "clears": bool(claim["clears"]),
    }


def _losses(value: object) -> Losses:
    if value not in get_args(Losses):
        raise ValueError(f"{value!r} is nothing that is said of losses")
    return cast(Losses, value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    value.encode()  # Python's own error if there is half a pair of UTF-16 in it.
    return value


def _line(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no line")
    return value


def _error(value: Any) -> Any:
    if value is not None and value not in WORDS:
        raise ValueError(f"{value!r} is no error of autograd's")
    return value


def _path(value: object) -> str:
    # Bytes of a name that are no UTF-8 are kept as half a pair of UTF-16.
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("no file is called so")
    return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["MAX_BYTES", "READ", "SCHEMA", "Certificate", "RerunLocation", "again", "of", "read", "way_of"]
