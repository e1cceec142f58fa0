"""What a codemod is made of: the mistake it names, the findings it reports, the fixes it offers.

A fix is a list of *edits* in terms of the original source, an *effect* on what the
optimizers consume, and a *claim* that verification tests by running both versions.
Nothing here imports libcst, torch or anything slow: ``gradfix check`` loads this module.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise, takewhile
from types import ModuleType
from typing import TYPE_CHECKING, Literal, NamedTuple

from gradfix.core.span import Span

if TYPE_CHECKING:
    from gradfix.autograd.program import Program


class Effect(enum.StrEnum):
    """What a fix does to the gradients that optimizers consume."""

    PRESERVES = "preserves"
    """Every gradient that an optimizer consumes stays equal."""
    REPAIRS = "repairs"
    """The program cannot work as written: it raises, or a step consumes nothing."""
    CHANGES = "changes"
    """The program runs and trains, and the fix changes what it learns (applied only on request)."""


class Applicability(enum.StrEnum):
    """Ruff's vocabulary for when a fix may be applied."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


class Severity(enum.StrEnum):
    """How bad a mistake is, the worst first."""

    ERROR = "error"
    """The program raises, or trains wrongly."""
    WARNING = "warning"
    """It trains as it should, and wastes much, or a small change would make it an error."""
    INFO = "info"
    """It could be tidier."""

    def is_at_least(self, least: Severity) -> bool:
        """Whether it is as bad as ``least``, or worse."""
        order = list(Severity)
        return order.index(self) <= order.index(least)

    @property
    def milder(self) -> Severity:
        """The next less bad one, if there is one."""
        return Severity.WARNING if self is Severity.ERROR else Severity.INFO


class Clause(enum.StrEnum):
    """What is right of gradients and steps: each mistake breaks one of these.

    At every step, each parameter of the optimizer gets each loss that is meant for it *once*, computed *with
    the weights that the step updates*, and *no other*; every gradient that is meant for it is *used*.
    """

    COMPUTED = "autograd can compute each gradient"
    """Broken where it raises: the graph has been freed, or what it needs has been modified."""
    ONCE = "each loss once"
    """Broken by a loss that a parameter gets twice, or not at all."""
    CURRENT = "with the weights that the step updates"
    ALONE = "no other loss"
    """Broken by a loss that is meant for another network, or by a target that is trained."""
    USED = "every gradient that is meant is used"
    """Broken where it is cleared before the step, or where the step comes too early or is another one's."""
    FREE = "what is meant for nobody costs nothing"
    APPLIED = "used as it is meant"
    """Broken where clipping, unscaling and schedules come in the wrong order, or the optimizer forgets."""
    RELEASED = "nothing is kept longer than it is used"
    """Graphs, and the modes that networks are put into."""


class Way(enum.StrEnum):
    """How a gradient is kept from where it does not belong, where there are several ways to do it."""

    DETACH = "detach"
    NO_GRAD = "no-grad"
    FREEZE = "freeze"
    REORDER = "reorder"
    INPUTS = "inputs"


@dataclass(frozen=True, slots=True)
class ReplaceExpression:
    """Put ``code`` in the place of the expression at ``span``."""

    span: Span
    code: str


@dataclass(frozen=True, slots=True)
class RemoveArgument:
    """Drop one argument of the call at ``span``: a keyword by name, a positional one by index."""

    span: Span
    argument: str | int


@dataclass(frozen=True, slots=True)
class InsertStatement:
    """Insert one or more statements beside the statement at ``anchor``.

    ``code`` is dedented source; it takes the anchor's indentation and the file's newline.
    """

    anchor: Span
    where: Literal["before", "after"]
    code: str


@dataclass(frozen=True, slots=True)
class RemoveStatement:
    """Remove the statement at ``span``; a block that it leaves empty gets ``pass``."""

    span: Span


@dataclass(frozen=True, slots=True)
class ReplaceStatement:
    """Put ``code``, one simple statement on one line, in the place of the simple statement at ``span``."""

    span: Span
    code: str


@dataclass(frozen=True, slots=True)
class MoveStatement:
    """Move the statement at ``span``, with the comments that lead it, beside ``anchor``.

    Other edits of the same fix inside the moved statement travel with it.
    """

    span: Span
    anchor: Span
    where: Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Decorate:
    """Put a decorator on the function at ``span``, beneath those that it has.

    ``code`` is the expression that decorates: ``torch.no_grad()``.
    """

    span: Span
    code: str


@dataclass(frozen=True, slots=True)
class Enclose:
    """Put the statement at ``span`` into a ``with``: it is indented once more, with what it holds.

    ``code`` is the expression that is entered: ``torch.no_grad()``. What follows in the same block goes in as
    well, up to the statement at ``last``; there no text goes over several lines.
    """

    span: Span
    code: str
    last: Span | None = None


Edit = (
    ReplaceExpression
    | RemoveArgument
    | InsertStatement
    | RemoveStatement
    | ReplaceStatement
    | MoveStatement
    | Decorate
    | Enclose
)

SEVERITY = "Severity: "
"""How the paragraph of a codemod's documentation begins whose next word is the severity of its findings."""
CLAUSE = "Clause: "
"""How the line of a codemod's documentation begins that says which clause its mistake breaks."""
WAYS = "Ways"
"""How the paragraph of a codemod's documentation begins that the list of its ways follows."""
BY_HAND = "By hand: "
"""How the paragraph of a codemod's documentation begins that says what a person can do."""
LEAVE = "When not to fix it: "
"""How the paragraph of a codemod's documentation begins that says where the code is right as it is."""


class Note(NamedTuple):
    """One step of the explanation of a finding, at its place in the source."""

    span: Span
    message: str


Losses = Literal["same", "multiplied", "rerouted", "other"]


class Claim(NamedTuple):
    """What verification must find when it runs both versions (see :mod:`gradfix.verify.claims`).

    Optimizers are named by the line of their constructor call in the *original* source.
    """

    raises: Literal["E1", "E2", "E3", "E4", "E5"] | None = None
    """The error that the original must raise, see :mod:`gradfix.core.errors`; ``None``: it runs to the
    end."""
    raises_line: int | None = None
    """The line of the original on which it is raised, seen from the script itself."""
    unchanged: Literal["all"] | tuple[int, ...] = "all"
    """Constructor lines of the optimizers whose consumed gradients stay equal, step for step,
    as far as the original gets (its crash or the end) or, for a fix that changes what is learned,
    up to the first step of an optimizer that is not listed."""
    feeds: tuple[tuple[int, str], ...] = ()
    """``(constructor line, receiver text of a backward call)``: in the fixed program each
    step of that optimizer consumes gradients of exactly the listed backward calls."""
    beyond: bool = True
    """Whether the gradients of ``unchanged`` also stay equal beyond the crash, to what the original with
    its graphs kept would consume. A history that is cut is another gradient from there on."""
    same_forwards: bool = True
    """Whether networks are run as often, and as early relative to the steps, as in the original. Then random
    draws and buffers (running statistics) are the same at every step, for as long as the weights are. A fix
    that runs one again, no more, or later says that they may differ."""
    stops: str | None = None
    """Part of the message of an error that is not autograd's, with which the original must end."""
    steady_modes: bool = False
    """Whether every step finds the networks in the modes in which the optimizer's first step found them, and
    those of the original do not."""
    clips: tuple[int, ...] = ()
    """Constructor lines of the optimizers whose gradients are clipped, and are not in the original."""
    schedules: tuple[int, ...] = ()
    """Constructor lines of the optimizers whose schedule moves one value later than in the original."""
    clears: bool = False
    """Whether gradients that the original adds up from iteration to iteration are those of one iteration
    each."""
    losses: Losses = "same"
    """What backward calls differentiate, held against the original's own graphs at the same weights. The
    losses and the gradients that they give are the ``same`` (and it changes which steps consume them), or
    some are ``multiplied`` by one positive number; or they are ``rerouted``: of the same value, but a path of
    the gradient is cut, or one that was cut is joined. Where they are ``other`` ones, the values part at some
    step."""


class Fix(NamedTuple):
    """One way to repair a finding: the edits, applied whole or not at all."""

    message: str
    effect: Effect
    edits: tuple[Edit, ...]
    claim: Claim = Claim()
    way: Way | None = None
    """Which of several ways it is; ``None`` where there is no name for it."""
    only_cuts: bool = False
    """Whether it only removes graphs that no backward goes through in any run, so that each backward frees
    and finds exactly what it did before."""
    assumed: bool = False
    """Whether it is right only under the assumption of its finding."""

    @property
    def is_authors_choice(self) -> bool:
        """Whether only the author can say that it is right: which of several programs was meant.

        Running it shows what it does, and proves no choice.
        """
        return self.effect is Effect.CHANGES and self.claim.raises is not None

    @property
    def applicability_label(self) -> str:
        """When it may be applied, in a word for people."""
        return "unproved" if self.is_authors_choice else self.applicability

    @property
    def applicability(self) -> Applicability:
        """Safe unless the fix changes what a running program learns, or rests on an assumption."""
        unsafe = self.effect is Effect.CHANGES or self.assumed
        return Applicability.UNSAFE if unsafe else Applicability.SAFE


class Finding(NamedTuple):
    """A mistake at a place, why it is one, and the fixes to choose from, best first."""

    code: str
    """The name of the codemod, in kebab case."""
    message: str
    span: Span
    notes: tuple[Note, ...] = ()
    fixes: tuple[Fix, ...] = ()
    raises: Literal["E1", "E2", "E3", "E4", "E5"] | None = None
    """The error of autograd that a note puts at its line; the fixes say so as well."""
    advice: str = ""
    """What a person can do where no fix holds; by default what the codemod's documentation says of that."""
    severity: Severity | None = None
    """By default what follows from the fixes and the codemod's documentation (see :func:`severity_of`)."""
    ways: tuple[Fix, ...] = ()
    """Further fixes, each of a way that a person may ask for by its name. None is tried without that."""
    for_later: bool = False
    """Whether it is about state that iterations compute for later ones alone, as a bank of features or an
    average: where that begins anew in each iteration, it is lost."""
    assumption: str = ""
    """What it takes for granted of what the code is handed; empty where it is a mistake whoever calls it."""

    def assuming(self, assumption: str) -> Finding:
        """The same under an assumption: it says so, is less bad by one degree, and no fix of it is safe."""
        fixes, ways = ([fix._replace(assumed=True) for fix in of] for of in (self.fixes, self.ways))
        return self._replace(
            message=f"{self.message} (assumes that {assumption})",
            severity=None if self.severity is None else self.severity.milder,
            fixes=tuple(fixes),
            ways=tuple(ways),
            assumption=assumption,
        )

    @property
    def available_ways(self) -> tuple[Way, ...]:
        """The ways that it can be repaired by, the default first."""
        named = (fix.way for fix in (*self.fixes, *self.ways))
        return tuple(dict.fromkeys(way for way in named if way is not None))

    def fixes_by(self, way: Way | None) -> tuple[Fix, ...]:
        """The fixes to try where ``way`` is asked for: those of that way, if there is a choice at all."""
        if way is None or not self.available_ways:
            return self.fixes
        return tuple(fix for fix in (*self.fixes, *self.ways) if fix.way is way)


def severity_of(finding: Finding, usual: Severity) -> Severity:
    """How bad a finding is, of a codemod whose findings are ``usual``.

    What raises, or cannot train anything, is an error whatever is usual, and what only wastes work is none.
    """
    if finding.severity is not None:
        return finding.severity
    effects = {fix.effect for fix in finding.fixes}
    raises = any(fix.claim.raises is not None or fix.claim.stops is not None for fix in finding.fixes)
    if finding.raises is not None or raises or Effect.REPAIRS in effects:
        return Severity.ERROR
    if effects == {Effect.PRESERVES} and usual is Severity.ERROR:
        return Severity.WARNING
    return usual


class UnknownFunction(NamedTuple):
    """A function of torch that the model knows nothing of: what it is given, and gives, is uncertain."""

    line: int
    """That of its first call."""
    name: str


@dataclass(frozen=True, slots=True)
class Codemod:
    """A mistake that gradfix knows: its name, its documentation, and how to find it.

    All but the name needs its module, which is loaded when it is first asked for: what is in the cache needs
    none. What loading raises is raised there.
    """

    name: str
    """The mistake in kebab case, as in ``# gradfix: ignore[name]``."""
    module: Callable[[], ModuleType]
    """Its module, loaded once."""

    @property
    def summary(self) -> str:
        """One line for ``gradfix list``."""
        return self.documentation.splitlines()[0]

    @property
    def documentation(self) -> str:
        """The docstring of its module: before and after, preconditions, and why each is needed."""
        from inspect import cleandoc

        return cleandoc(self.module().__doc__ or "")

    @property
    def in_short(self) -> str:
        """What is wrong and what it does, an example before and after, and when not to fix it."""
        first, *others = self.documentation.split("\n\n")
        example = takewhile(lambda one: one.startswith("    "), others)
        leave = (one for one in others if one.startswith(LEAVE))
        return "\n\n".join((first, *example, *leave))

    @property
    def by_hand(self) -> str:
        """What a person can do where no fix holds: a paragraph of the documentation."""
        told = self._paragraph(BY_HAND).removesuffix(".")
        return told or f"`gradfix explain {self.name}` says what is wrong with it"

    @property
    def severity(self) -> Severity:
        """How bad its findings are, unless a finding is another case (see :func:`severity_of`): the first
        word of a paragraph of the documentation, and a warning where nothing is said."""
        word = re.match(r"\w*", self._paragraph(SEVERITY))
        return next((one for one in Severity if word and one == word[0]), Severity.WARNING)

    @property
    def clause(self) -> Clause | None:
        """What its mistake breaks, as a line of the documentation says."""
        told = re.search(rf"^{CLAUSE}([^.]*)\.", self.documentation, re.MULTILINE)
        return next((one for one in Clause if told and one == told[1]), None)

    @property
    def ways(self) -> str:
        """The ways to repair what it finds, and when each is right: a list, as the documentation has it."""
        paragraphs = self.documentation.split("\n\n")
        follows = (after for before, after in pairwise(paragraphs) if before.startswith(WAYS))
        return next(follows, "")

    def _paragraph(self, begins: str) -> str:
        """The paragraph of the documentation that begins so, without its beginning, on one line."""
        found = (one for one in self.documentation.split("\n\n") if one.startswith(begins))
        return " ".join(next(found, "").removeprefix(begins).split())

    @property
    def find(self) -> Callable[[Program], Iterable[Finding]]:
        """What looks for the mistake in a program."""
        found: Callable[[Program], Iterable[Finding]] = self.module().find
        return found
