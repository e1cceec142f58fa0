"""What the JSON that is read by other programs consists of: findings, certificates, and baselines.

``tools/generate_schemas.py`` makes the files in ``gradfix/schemas`` of these types and of the docstrings
beneath their fields. Nothing else imports this when gradfix runs: those who make the JSON name the types in
annotations, so that a type checker holds the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from gradfix.core.codemod import Applicability, Effect, Losses, Severity, Way
from gradfix.core.coverage import Status
from gradfix.pipeline.results import Outcome
from gradfix.rewriting.patch import Position, TextEdit
from gradfix.verify.evidence import Evidence

if TYPE_CHECKING:
    EvidenceData = dict[str, Any]  # As ``Evidence.to_json`` returns it.
else:
    EvidenceData = Evidence

Error = Literal["E1", "E2", "E3", "E4", "E5"]


class FindingFix(TypedDict):
    """The fix that `apply` would make of a finding."""

    applicability: Applicability
    """`safe`: applied by default; `unsafe`: it changes what a running program learns, and needs
    `--unsafe-fixes`; `display`: shown only."""
    message: str
    """What it does, in words."""
    edits: list[TextEdit]
    """Replacements in the text as it is, in order and apart from each other: apply the last one first."""


class FindingNote(TypedDict):
    """One step of why it is a mistake."""

    cell: int | None
    """The cell of a notebook within which rows are counted; null elsewhere."""
    location: Position
    end_location: Position
    message: str


class TrainingStepData(TypedDict):
    """A function, or an outermost loop outside of functions, that differentiates or steps an optimizer."""

    filename: str
    cell: int | None
    """The cell of a notebook within which rows are counted; null elsewhere."""
    location: Position
    """Of the call that differentiates or steps: the first one, or the first that was not followed."""
    kind: Literal["function", "loop", "script"]
    name: str
    status: Status
    """How far it was followed. Where it was not, it says nothing that no mistake is found in it."""
    assumption: str | None
    """What is taken for granted, or of what is not decided, what would decide it."""
    reason: str | None
    """Why it was not followed."""
    advice: str | None
    """What a person can do about that."""


class FindingData(TypedDict):
    """A mistake, a problem that kept a file from being checked, or the training steps. The fields up to `url`
    are ruff's."""

    code: str
    """The codemod, as `gradfix list` names it; of a problem, its kind: `syntax-error`, say. `training-steps`
    is no mistake: it is the last element, where there are training steps, and tells how many of them were
    followed."""
    message: str
    """What is wrong."""
    filename: str
    """The file, as it was named on the command line or found below a folder; empty for `training-steps`."""
    cell: int | None
    """The cell of a notebook within which rows are counted: its number among all cells, those of text
    included, from 1. Null where the file is no notebook."""
    location: Position
    """Where it begins."""
    end_location: Position
    """Where it ends; the column is that behind its last character."""
    fix: FindingFix | None
    """Null where no fix is known to hold."""
    url: str | None
    """A page on the mistake; null where there is none."""
    severity: Severity | None
    """`error`: it raises or trains wrongly; `warning`: it wastes much or is about to become an error; `info`:
    it could be tidier."""
    assumption: str | None
    """What it assumes of what the code is handed, which `message` says as well; null where it is a mistake
    whoever calls the code."""
    ways: list[Way]
    """The ways to repair it that `--way` can ask for, the default first; empty where there is no choice."""
    effect: Effect | None
    """What the fix does to the gradients that optimizers use."""
    notes: list[FindingNote]
    """Why it is a mistake, step by step."""
    training_steps: list[TrainingStepData] | None
    """Of `training-steps`: all of them, in all files. Null elsewhere."""


class BaselineEntry(TypedDict):
    """Findings that are known, and not reported."""

    filename: str
    """The file, from the folder of the baseline on."""
    code: str
    """The codemod."""
    function: str
    """The function that the finding is in, by its qualified name; empty outside of any."""
    line: str
    """The text of the line, with one blank for all that is between its words."""
    severity: Severity
    count: int
    """How many such findings there may be: on equal lines of one function, or several on one line."""


class BaselineData(TypedDict):
    """A baseline: the findings that a project has for now."""

    schema: Literal[1]
    """Counts changes that a reader of an earlier schema would not understand."""
    findings: list[BaselineEntry]


class ClaimData(TypedDict):
    """What a fix promises. Optimizers are named by the line of their construction in the version before."""

    raises: Error | None
    """The error of autograd that the version before must raise; null: it runs to the end."""
    raises_line: int | None
    """The line on which it raises it."""
    unchanged: Literal["all"] | list[int]
    """The optimizers that must use equal gradients."""
    feeds: list[tuple[int, str]]
    """Pairs of an optimizer's line and the text of a loss: each of its steps uses the gradients of exactly
    these losses."""
    beyond: bool
    """Whether what is unchanged also equals, after a crash, what the version before would have used had its
    graphs been kept."""
    same_forwards: bool
    """Whether networks run as often, and as early relative to the steps, as in the version before."""
    stops: str | None
    """A part of what an error that is not autograd's says, by which the version before must end."""
    steady_modes: bool
    """Whether every step finds the networks in the modes in which the first step found them."""
    clips: list[int]
    """The optimizers whose gradients the version after clips, as the version before does not."""
    schedules: list[int]
    """The optimizers whose options change one move of their schedule later than in the version before."""
    clears: bool
    """Whether gradients that the version before adds up over iterations are those of one iteration each."""
    losses: Losses
    """What backward calls compute gradients of, held against the version before at the same weights."""


class VersionData(TypedDict):
    """One version of the file."""

    sha256: str
    """Of the text in UTF-8."""
    text: str


class WayData(TypedDict):
    """What one way to repair the mistake came to."""

    way: Way | None
    message: str
    effect: Effect
    outcome: Outcome
    reason: str
    saved: int | None
    """Bytes that graphs hold for backward, the most for each loss, added up."""
    backward_seconds: float | None
    """One backward call of each loss, watched: for comparison only."""
    after: VersionData


class CertificateData(TypedDict):
    """What was rewritten, what the fix promises, and what running both versions showed."""

    schema: Literal[4]
    """Counts changes that a reader of an earlier schema would not understand."""
    gradfix: str
    """The version that made it."""
    filename: str
    """The file that was rewritten, as it was named."""
    code: str
    """The codemod that found the mistake."""
    finding: str
    """Its message."""
    severity: Severity | None
    location: Position
    """Where the mistake is, in the text of the version before. Of a notebook that is all its code as one
    module, in which a statement marks the end of each cell."""
    message: str
    """The fix, in words."""
    effect: Effect
    way: Way | None
    """Which of several ways to repair it this is."""
    ways: list[WayData]
    """Where `--compare` had several ways proved, what each of them came to."""
    claim: ClaimData
    before: VersionData
    after: VersionData
    outcome: Outcome
    reason: str
    """What refutes the fix, why it could not be run, or how much was checked."""
    evidence: EvidenceData | None
    """What was run and seen; null if nothing was to be run."""
