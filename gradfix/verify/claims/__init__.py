"""What a fix promises about gradients, as predicates over recordings of both versions.

"The error is gone" is no evidence: moving both optimizer steps to the end silences an error and
changes what the discriminator learns, and a detach too many silences it and stops the generator
from learning at all. So the checks here compare what optimizers *consume*:

``original``
    The original raised the predicted error on the predicted line, or ran. Another error of autograd is
    reported, but decides nothing; ``fixed-runs`` checks whether the fixed program gets past it.
``crash``
    Every error of autograd that stops a version is explained by a finding.
``fixed-runs``
    The fixed program gets past that place. Another autograd error at a later place is another
    fault of the file, and is said as "as far as"; one at the same place or earlier fails. Where something
    else stops both versions, nobody knows what would have come after: that is no proof.
``unchanged``
    The optimizers that the claim lists consume equal gradients, step for step: all steps for a
    fix that preserves, those before the crash for one that repairs, those before the first step
    of an optimizer that is not listed for one that changes.
``reference``
    The same against the original run with its graphs *kept* (nothing freed, saved tensors as
    they were when saved): what the original would have consumed had autograd not stopped it. It
    is compared until an unlisted optimizer consumes something different, since from there on the weights
    differ. A difference fails the check for the optimizers that the claim lists by line; for ``"all"``, which
    promises nothing beyond the crash, for those that no declared backward feeds; for none if the claim ends
    at the crash. Other differences are only reported.
``kept``
    No parameter loses its gradient: what has one in the original or the reference has one in the
    fixed program.
``reached``
    The fixed program has executed every statement that the rewrite has changed, and every part of one that is
    evaluated under a condition; the original, if nothing stops it, what stood there before.
``stepped``
    Every optimizer has stepped at least twice in both versions, or the program ends before by itself.
``once``
    No step consumes two entries of one loss, unless the original does (an entry is what one backward call
    adds to one parameter's gradient): keeping the graph does not repair a loss that is backpropagated twice.
``meant``
    Where a step consumes two losses with a common graph, and the original does not, both are meant for what
    receives both (see :mod:`gradfix.core.intent`).
``consumes``
    Every step finds a gradient.
``modes``
    Where the claim says so, every step finds the networks in the modes (training, evaluation) in which the
    first step of its optimizer found them, and in the original one does not.
``clipped``
    Where the claim says so, the first step whose gradients differ consumes shorter ones than in the original,
    at the same weights, and none that is longer. Where none differs, nothing was above the bound.
``scheduled``
    Where the claim says so, an optimizer begins with other options (a learning rate, say) than in the
    original, and goes on, some steps later, with those that the original begins with, in the same order.
``cleared``
    For programs without an optimizer, where the claim says so: the first leaf gradients that differ are those
    of the original less what was there before the backward call.
``moved``
    Nothing but steps changes weights, unless something does in the original. Listed only where it fails.
``feeds``
    Every step consumes gradients of exactly the declared backward calls. They are declared as the source
    writes them; where it writes several losses alike (``losses[name]``), ``entries`` alone tells them apart.
``same-loss``
    With updates off, the first backward of a declared loss (for this optimizer, where
    a helper gives several losses one name) gives its optimizer
    what it gives in the original's own graph. A detach does not change a loss's value: where the
    values agree and the gradients do not, something was cut off, and a fix of E1 or E2 fails.
``entries``
    With updates off, for each optimizer that is not known to consume the same as in the original: its steps
    consume only losses of the original, with the same values and (unless the claim says that they are
    rerouted) the same gradients, each once, and all that are its own (see
    :mod:`gradfix.verify.claims.entries`), and consume nothing but their sum (see
    :mod:`gradfix.verify.claims.sums`).
``observed``
    The versions do something differently with gradients or graphs. Where the claim says that losses are
    rerouted, listed only if no step uses another gradient than in the original with its graphs kept.
``random``, ``buffers``
    At every step the random generators are in the same state, and the buffers of the networks (running
    statistics, say) hold the same, for as long as the weights are the same. A claim may say that networks
    are run more or less often, or at another time: then these two only tell where the versions part.
``leaves``
    For programs without an optimizer: the gradients of leaf tensors after each backward.

Equal hashes of how two gradients were computed (:mod:`gradfix.runtime.probe.provenance`) settle that they are
equal, bit for bit; different hashes prove nothing, and numbers decide. Hashes that say equal where the
values of the same seed differ are a fault of the recorder: then nothing is proved.

By numbers, gradients are equal if no element differs by more than :data:`RELATIVE` of the tensor's largest
magnitude plus :data:`ABSOLUTE` of the largest among the optimizer's gradients. Rounding grows
from step to step, so the relative tolerance is also :data:`GROWTH` times what the weights differ
by, up to :data:`GROWN`; while the weights are equal bit for bit that adds nothing. Where gradients differ by
more, the original runs once more with weights that are moved by as little as their type can tell: what that
makes of a gradient, :data:`NOISE` times, is rounding, up to :data:`ROUNDED` of the gradient. Tensors too
large to be stored whole are compared by the estimated norm of their difference.
"""

from __future__ import annotations

from gradfix.core.codemod import Claim, Effect
from gradfix.verify.checks import (
    COMPARISONS,
    CONTRADICTION,
    NO_NUMBERS,
    PROMISED,
    SIDE_EFFECTS,
    SUBSTANCE,
    Check,
    Verdict,
    missing,
)
from gradfix.verify.claims import (
    consumption,
    losses,
    observed,
    promises,
    running,
    side_effects,
    without_optimizer,
)
from gradfix.verify.claims.case import Case
from gradfix.verify.claims.course import first_line, incomplete, missed_by, summary, too_few
from gradfix.verify.claims.entries import entries, unsettled
from gradfix.verify.claims.gradients import (
    RELATIVE,
    Followed,
    follow,
    leftover,
    same_course,
    same_gradients,
    updates_apart,
)
from gradfix.verify.claims.side_effects import SideEffectComparison, compare_side_effects, longest
from gradfix.verify.claims.verdicts import Faults, UpdatesOff, contradiction, doubted, merge, settled
from gradfix.verify.claims.without_optimizer import by_hand
from gradfix.verify.recording.records import Recording


def check(
    claim: Claim,
    effect: Effect,
    before: Recording,
    after: Recording,
    reference: Recording | None = None,
    still: UpdatesOff | None = None,
    faults: tuple[Faults, Faults] | None = None,
) -> list[Check]:
    """Check a fix's claim against one run of each version with the same seed.

    Args:
        claim: What the fix promises.
        effect: What it does to gradients.
        before: The original.
        after: The fixed program.
        reference: The original with its graphs kept, for a claim that it raises E1 or E2.
        still: Both versions with updates off. The original has its graphs kept, or runs without gradients
            where autograd refuses to compute them. ``None`` where such runs are not possible.
        faults: What is wrong with the original and with the fixed program, as far as that is known.
    """
    case = Case(claim, effect, before, after, reference)
    checks = [
        *(running.crashes(case, *faults) if faults else ()),
        running.original(case),
        running.fixed_runs(case),
        *running.reached(case),
        *running.stepped(case),
    ]
    checks += [*consumption.unchanged(case), *consumption.against_reference(case)]
    checks += [
        *consumption.kept(case),
        *consumption.once(case),
        *consumption.meant(case),
        *consumption.consumes(case),
        *consumption.moved(case),
        *consumption.feeds(case),
        *side_effects.unaltered(case),
    ]
    checks += [
        *promises.modes(case),
        *promises.clipped(case),
        *promises.scheduled(case),
        *promises.cleared(case),
    ]
    if still is not None and claim.feeds:
        checks += losses.same_loss(case, still)
    checks += [*entries(case, still), *observed.observed(case)]
    return doubted([*checks, *without_optimizer.leaves(case)], contradiction(before, after, reference))


__all__ = [
    "COMPARISONS",
    "CONTRADICTION",
    "NO_NUMBERS",
    "PROMISED",
    "RELATIVE",
    "SIDE_EFFECTS",
    "SUBSTANCE",
    "Check",
    "Faults",
    "Followed",
    "SideEffectComparison",
    "UpdatesOff",
    "Verdict",
    "by_hand",
    "check",
    "compare_side_effects",
    "contradiction",
    "first_line",
    "follow",
    "incomplete",
    "leftover",
    "longest",
    "merge",
    "missed_by",
    "missing",
    "same_course",
    "same_gradients",
    "settled",
    "summary",
    "too_few",
    "unsettled",
    "updates_apart",
]
