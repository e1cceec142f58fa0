"""Which random draws of a program stand for which of another one, by what they are drawn for.

A program that draws noise of its own for the generator, where another one uses the noise that the
discriminator has seen, trains it alike if it gets the same noise. Whether it does is a matter of a run in
which it gets that (see ``draws.py``). That the noise is as good is a matter of counting: each optimizer's
gradients have to depend on as many draws of each kind and shape as in the other program, at each step on as
many new ones, and again on those on which they depended before. Then what one optimizer consumes is
distributed alike in both, and only what two of them have in common need not be.
"""

from __future__ import annotations

from gradfix.verify.recording.records import Recording

Numbers = tuple[tuple[str, tuple[int, ...]], ...]
"""By kind of draw: the number that each one is to have (see :class:`draws.Numbered`)."""
OWN = -1
"""For a draw that stands for none."""
Draw = tuple[str, int]


def paired(one: Recording, other: Recording) -> Numbers | None:
    """The numbers of the first run's draws that those of the second stand for; none if they do not.

    What no gradient depends on, as far as is known, may still decide what a script does: these draws are
    paired in their order. What is left over then has numbers that nothing in the first run has.
    """
    found: dict[Draw, Draw] = {}
    for optimizer in one.optimizers:
        stands: dict[Draw, Draw] = {}
        for mine, theirs in zip(one.steps_of(optimizer.index), other.steps_of(optimizer.index)):
            new = sorted(mine.draws - set(stands.values())), sorted(theirs.draws - stands.keys())
            if [kind for kind, _ in new[0]] != [kind for kind, _ in new[1]]:
                return None
            stands.update(zip(new[1], new[0]))
            if {stands[draw] for draw in theirs.draws} != mine.draws:
                return None
        for draw, known in stands.items():
            if found.setdefault(draw, known) != known:
                return None
    used, taken = ({draw for step in run.steps for draw in step.draws} for run in (one, other))
    counts, wanted = (run.steps[-1].drawn if run.steps else {} for run in (one, other))
    numbers = []
    for kind, count in wanted.items():
        spare = iter([number for number in range(counts.get(kind, 0)) if (kind, number) not in used])
        row = []
        for draw in ((kind, number) for number in range(count)):
            if draw in found:
                row.append(found[draw][1])
            else:
                row.append(OWN if draw in taken else next(spare, OWN))
        numbers.append((kind, tuple(row)))
    return tuple(numbers)
