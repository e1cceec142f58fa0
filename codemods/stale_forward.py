"""A prediction made before an optimizer's step is used in a backward after it.
That backward needs the old weights, which the step has modified: autograd raises "modified by an inplace
operation", or "a second time" where the graph has been freed as well.

    pred = D(fake)                                 pred = D(fake.detach())
    d_loss = bce(pred, zeros) + ...                d_loss = bce(pred, zeros) + ...
    d_loss.backward(retain_graph=True)        =>   d_loss.backward()
    optimizer_D.step()                             optimizer_D.step()
                                                   pred = D(fake)
    g_loss = bce(pred, ones)                       g_loss = bce(pred, ones)
    g_loss.backward()                              g_loss.backward()

The second loss needs a fresh forward with the current weights; `detach` on the old prediction would silence
the error and leave that loss without any gradient.

What is repaired how:

* the prediction serves the first loss too: its statement is repeated before the first use after the step,
  and the first forward gets its input detached, if that leads into a network of the second loss;
* the prediction had been made from a detached input: the repeated one is made without the detach;
* the second loss trains nothing through it (a critic's value that is a factor of an actor's loss): it is
  detached where it enters;
* only the second loss uses it (the policy's loss in SAC, computed up front): its statements move to directly
  after the step, or are repeated there where what they compute is read in between as well;
* the second loss is for the very optimizer that has stepped, and would be cleared unused: the step moves to
  after its backward;
* it was made before a loop that steps: it is made in every iteration. Where the loss compares it with what
  the same network makes of the same data now (the old log-probability of PPO), it is a number, and is
  detached;
* two calls of a helper, or iterations over pairs of an optimizer and its loss, update with losses from
  before: the later one comes first, if its step moves nothing that the other loss needs;
* both losses come from elsewhere (`def backward(self, g_loss, d_loss)`): the step moves to after the second
  backward, which gives gradients to its own optimizer alone (`inputs=`, since torch 1.8).

Nothing is repeated where all that is stale is the target of a comparison, networks' own words, discounted and
added to data: it is to be a constant of all losses that share it.

When not to fix it: where both losses should use the same weights. Then call both backwards before the step.

Where nothing raises, it is told all the same: a layer that saves no weight (`Linear` on plain data,
`Embedding`), or a step that moves no version (`fused=True`, a write to `.data`). The gradients are then those
of the old weights, or of a mixture, and a step applies them to the new ones.

Preconditions: the step certainly moved weights that the prediction used, and the gradient depends on what it
predicted (that of a mean of linear scores does not); the statement that is repeated or moved reads nothing
that is rebound in between, and means the same where it goes.

Ways (`gradfix apply --way NAME`), of which a finding admits some:

* detach: the first loss gets a detached input and the second one a fresh forward; or what is only a factor
  of a loss is a number. Right where each loss is to see the weights at its time, as in the paper on GANs;
* reorder: statements move, and nothing is computed twice. Right where a loss is used only after the step, or
  the step can wait;
* inputs: both backwards come before the step, the second with `inputs=...`. Right where both losses are
  meant for the weights that they were computed with. It needs torch 1.8.

By hand: compute the prediction again after the step, or step only when every backward that needs the old
weights has run.

Effect: repairs where autograd raised or a step used nothing, changes where the program ran on with gradients
of old weights, or of a mixture of old and new ones, or with a term that gave no gradient. A prediction that
is repeated or moved draws random numbers (dropout) and updates running statistics (batch normalization) once
more, or later: the certificate says from which step on.

Severity: error.
Clause: with the weights that the step updates.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from gradfix.autograd.graph import Edge, ModuleCall, Node, Step, first_divergence, reachable_nodes
from gradfix.autograd.model_ledger import operation
from gradfix.autograd.program import Program
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    calls_in,
    detached_code,
    gradient_clears,
    leading_to,
    operands_reaching,
    optimizer_of_loss,
)
from gradfix.autograd.values import Value, tensors_in
from gradfix.core.codemod import (
    Claim,
    Edit,
    Effect,
    Finding,
    Fix,
    InsertStatement,
    Losses,
    MoveStatement,
    RemoveStatement,
    ReplaceExpression,
    Way,
)
from gradfix.core.span import Span
from gradfix.core.syntax import undetached, walk
from gradfix.rules.diagnosis import leak_path
from gradfix.rules.edits import (
    constructed,
    detach_operands,
    drop_retain,
    insert,
    line,
    move,
    note,
    only_for,
    receiver,
    shown,
    stepped,
    targets_in,
    with_parts,
    within_file,
)
from gradfix.rules.moving import (
    behind,
    bindings,
    computed_again,
    may_pass,
    moved_inside,
    statements,
    variables,
)
from gradfix.rules.phases import swap_phases
from gradfix.rules.staleness import Outcome, Stale, raising, silent
from gradfix.rules.targets import OF_A_DISTRIBUTION, estimated_targets, likelihood

DIFFERENCES = frozenset({"binary.Sub", "sub", "subtract"})
"""What compares two log-probabilities."""


class Plan(NamedTuple):
    """A way to repair it: what moves after a step, is computed again there, or is a number."""

    what: str
    edits: Sequence[Edit]
    way: Way | None = None
    first: Sequence[Edit] = ()
    """What is detached before the step, if the model then agrees."""
    effect: Effect | None = None
    """What it does, if that is not what the others do."""


class Place(NamedTuple):
    """A stale backward, and where it is mended: at the events, or at the calls of helpers that lead there."""

    stale: Stale
    at: ast.AST
    step_at: ast.AST


def find(program: Program) -> Iterator[Finding]:
    """Report each backward through a prediction that a step has made stale."""
    seen: set[ast.AST] = set()
    for entry in program.entry_points:
        for observe in (raising, silent):
            for one in entry.certain_observations(observe, lambda s: s.event.site, raises=observe is raising):
                place, fixes = _mended(program, one)
                if place.at not in seen:
                    seen.add(place.at)
                    yield _finding(program, place, fixes)


def _mended(program: Program, one: Stale) -> tuple[Place, tuple[Fix, ...]]:
    """The repairs where the backward stands; or else where one function has what leads to both."""
    own, apart = Place(one, one.event.site, one.step.site), Place(one, *first_divergence(one.event, one.step))
    # To repeat the target of a comparison would train the estimates by what they say of later states.
    if _target(one) is None:
        for place in dict.fromkeys([apart, own] if apart.at is own.at else [own, apart]):
            if found := within_file(_fixes(program, place)):
                return place, found
    return own, ()


def _target(one: Stale) -> ast.expr | None:
    """What the loss compares a prediction with, if that is an estimate and all that is stale."""
    targets = estimated_targets(one.event).items()
    return next((place for place, calls in targets if calls.issuperset(one.calls)), None)


# ---------------------------------------------------------------------- words


def _finding(program: Program, place: Place, fixes: tuple[Fix, ...]) -> Finding:
    one, event, failure = place.stale, place.stale.event, place.stale.event.failure
    assert isinstance(place.at, ast.expr) and isinstance(place.step_at, (ast.expr, ast.stmt))
    loss, by = receiver(program, event), shown(program, place.step_at)
    if place.at is not event.site:
        loss = shown(program, place.at)  # It is mended where the helpers are called, and told there.
    elif isinstance(one.step, Step):
        by = f"{receiver(program, one.step)}.step()"
    kind, target = None if failure is None else failure.kind, _target(one)
    told, why = WORDS[kind or one.outcome]
    notes = [note(c.site, "computed with the weights before the step") for c in one.calls[:1]]
    notes.append(note(place.step_at, "this step modifies them in place"))
    if kind == "E2":
        others = _other_steps(one)
        notes += [note(other.site, "this step modifies others that the backward needs") for other in others]
    elif failure is not None and failure.culprit is not None:
        notes.append(note(failure.culprit.site, "this backward frees its graph"))
    notes.append(note(one.detached or place.at, told))
    unnoticed = "the fused step" if isinstance(one.step, Step) else "what is written to `.data`"
    what = f"`{shown(program, one.calls[0].site)}`" if one.calls else "a prediction"
    message = f"`{loss}` uses {what} from before `{by}`, {why.format(unnoticed)}"
    advice = ""
    if target is not None:
        advice = (
            f"detach `{shown(program, target)}` where it is computed, if it is the target of all these losses"
        )
    return Finding("stale-forward", message, Span.of(place.at), tuple(notes), fixes, kind, advice=advice)


WORDS: dict[str | Outcome, tuple[str, str]] = {
    "E1": ("this backward goes through it again: autograd raises", "and that graph has been freed"),
    "E2": (
        "this backward needs the old weights: autograd raises",
        "and its backward needs the old weights",
    ),
    Outcome.DETACHED: (
        "detached: to autograd, this term of the loss is a constant",
        "detached: no parameter gets a gradient from it",
    ),
    Outcome.MIXED: (
        "this backward mixes old activations with new weights, and nothing raises",
        "and autograd does not notice {}: the gradients mix old and new weights",
    ),
    Outcome.OLD: (
        "these are gradients at the old weights, and the next step applies them to the new ones",
        "and nothing raises: its gradients are those of the old weights",
    ),
    Outcome.CUT_OFF: (
        "no gradient flows past the `detach()`: the next step gets none from this loss",
        "and its input was detached: the optimizer of this loss gets no gradient from it",
    ),
}
"""By what comes of it: the note at the backward, or at the detach, and the end of the message."""


def _other_steps(one: Stale) -> list[Step]:
    """Further steps that have changed what the same backward needs, one for each place in this file."""
    changes = (
        storage.history[version]
        for node in one.event.visited
        for storage, version, _ in node.saved
        if storage.version > version and storage.history[version].serial < one.event.serial
    )
    found = {e.site: e for e in changes if isinstance(e, Step) and line(e.site) > 0}
    return sorted((s for site, s in found.items() if site is not one.step.site), key=lambda s: s.serial)


# ---------------------------------------------------------------------- repairs


def _fixes(program: Program, place: Place) -> Iterator[Fix]:
    for plan in _plans(program, place):
        yield from _carried_out(program, place.stale, plan)
    if _former(program, place) is None:
        yield from _step_waits(program, place)


def _plans(program: Program, place: Place) -> Iterator[Plan]:
    """The ways to repair it, the one that changes least first."""
    one = place.stale
    if (former := _former(program, place)) is not None:
        yield former
        return
    if one.detached is not None:
        candidates = [_undetached_term]
    elif any(call.loops != one.event.loops for call in one.calls):
        # Predictions of several iterations are not made again one by one; as numbers they may all be taken.
        candidates = [_constant_factor, _made_in_the_loop]
    else:
        candidates = [_fed_again, _constant_factor, _computed_later, _later_update_first]
    yield from (plan for candidate in candidates if (plan := candidate(program, place)) is not None)


def _effect(one: Stale) -> Effect:
    """What a repair is: the others run, and learn something else by it."""
    return Effect.REPAIRS if one.outcome in (Outcome.RAISES, Outcome.CUT_OFF) else Effect.CHANGES


def _carried_out(program: Program, one: Stale, plan: Plan) -> Iterator[Fix]:
    """The fixes that a plan comes to: with what is to be detached, and what need not be kept any more."""
    event, failure, mine = one.event, one.event.failure, optimizer_of_loss(one.run, one.event)
    kind = failure.kind if failure is not None else None
    stepped_on = one.step.optimizer if isinstance(one.step, Step) else None
    # Who steps again on the repeated forward consumes other gradients from there on.
    claim = Claim(kind, line(event.site) if kind else None, beyond=mine is not stepped_on)
    if plan.way is Way.DETACH:
        others = [o.state for o in one.run.optimizers if o.state is not mine]
        claim = claim._replace(losses="rerouted")
    else:
        others = [stepped_on] if stepped_on is not None and (kind or mine is not stepped_on) else []
        again = any(isinstance(edit, (InsertStatement, MoveStatement)) for edit in plan.edits)
        # A prediction that was detached for the first loss gives the second one nothing, however it is kept.
        losses: Losses = "same" if kind and not _is_cut_off(one) else "rerouted"
        claim = claim._replace(same_forwards=not again, losses=losses)
    claim = claim._replace(unchanged=tuple(n for state in others for n in constructed(one.run, state)))
    # Where the loss trains its network by another term already, a path that is joined is another gradient.
    effect = plan.effect or (Effect.CHANGES if mine is not None and _is_cut_off(one) else _effect(one))
    kept = [b for b in backwards(one.run) if b.loops == event.loops]
    retain = list(dict.fromkeys(edit for b in kept for edit in drop_retain(b, program)))
    for detached in dict.fromkeys([tuple(plan.first), ()]):
        for dropped in dict.fromkeys([tuple(retain), ()]):
            what = plan.what + (", detach the first" if detached else "")
            what += ", drop retain_graph=True" if dropped else ""
            way = Way.DETACH if detached else plan.way
            yield Fix(what, effect, (*plan.edits, *detached, *dropped), claim, way)


def _step_waits(program: Program, place: Place) -> Iterator[Fix]:
    """The step moves to after the backward that needs what it modifies.

    So it may where it consumes the same then: the loss is for nobody else, or the second backward is told
    whose gradients it is for, where it would add to those that wait for the step.
    """
    one, event, step = place.stale, place.stale.event, place.stale.step
    run, mine = one.run, optimizer_of_loss(one.run, event)
    if not isinstance(step, Step) or event.failure is None:
        return
    waiting, first = set(step.optimizer.owned()), program.statement(step.site)
    block = program.suite_around(first)
    around = [event.site, *program.ancestors(event.site)]
    second = next((s for s in block[block.index(first) + 1 :] if s in around), None)
    cleared = (z.leaves for z in between(gradient_clears(run), step.serial, event.serial))
    added = (b.reached for b in between(backwards(run), step.serial, event.serial))
    if (
        second is None
        or isinstance(second, (ast.For, ast.While))
        or any(not waiting.isdisjoint(leaves) for leaves in (*cleared, *added))
    ):
        return
    edit = move(first, second, "after")
    kind = event.failure.kind
    if mine is None and waiting.issuperset(event.reached):
        claim = Claim(kind, line(event.site), (), same_forwards=False)
        yield Fix("step after the backward", Effect.REPAIRS, (edit,), claim, Way.REORDER)
    if mine is None or (name := stepped(program, mine)) is None or not waiting.isdisjoint(mine.owned()):
        return
    if any(c.leaves & waiting and c.serial > step.serial for c in calls_in(event.visited)):
        return
    claim = Claim(kind, line(event.site), tuple(n for o in run.optimizers for n in constructed(run, o.state)))
    if waiting.isdisjoint(event.reached):
        yield Fix("step after both backwards", Effect.REPAIRS, (edit,), claim, Way.REORDER)
    elif isinstance(event.site, ast.Call) and not event.site.keywords:
        restricted = only_for(program, event, mine)
        what = f"step after both backwards, and restrict the second to the parameters of `{name}`"
        if restricted is not None:
            yield Fix(what, Effect.REPAIRS, (restricted, edit), claim, Way.INPUTS)


def _computed_later(program: Program, place: Place) -> Plan | None:
    """The statements of the loss move to after the step, or are repeated there.

    What only this loss uses moves; what another one uses as well is computed again, and so is what is read in
    between: a critic's value for a log or a target.
    """
    one, event, serial = place.stale, place.stale.event, place.stale.step.serial
    home, nodes, at = program.function(place.at), behind(event, one.calls), program.statement(place.at)
    early = statements(program, home, (n for n in nodes if n.serial < serial))
    late = statements(program, home, (n for n in nodes if n.serial > serial))
    shared = statements(program, home, (n for n in nodes & _of_others(one) if n.serial < serial))
    alone, block = [s for s in early if s not in shared], program.suite_around(at)
    around = {place.step_at, *program.ancestors(place.step_at)}
    end = next((index for index, s in enumerate(block) if s in around), -1)
    anchor = (late or (block[end + 1 :] if end >= 0 else []) or [at])[0]
    for s in alone:
        passed = block[block.index(s) + 1 : end + 1] if s in block else []
        if not passed or not bindings(s) or not may_pass(s, passed, alone):
            shared, alone = early, []
            break
    if not shared and alone:
        edits = [move(s, block[end], "after") for s in alone]
        return Plan("compute the loss after the step", edits, Way.REORDER)
    # What moves reads what is repeated, and comes behind it.
    removed = [RemoveStatement(Span.of(statement)) for statement in alone]
    text = _uncut(program, one.calls)
    return _repeated(
        program, place, shared, anchor, text, "repeat the forward after the step", alone, removed
    )


def _repeated(
    program: Program,
    place: Place,
    made: Iterable[ast.stmt],
    anchor: ast.stmt,
    text: Callable[[ast.expr], str],
    what: str,
    moved: Sequence[ast.stmt] = (),
    besides: Sequence[Edit] = (),
) -> Plan | None:
    """Compute again at ``anchor`` what some statements have made, with what is ``moved`` behind it."""
    last = max(program.statement(place.at).end_lineno or 0, anchor.end_lineno or 0)
    nodes = [n for n in walk(program.function(anchor)) if anchor.lineno <= getattr(n, "lineno", 0) <= last]
    wanted = variables(program, [*nodes, *(n for s in moved for n in walk(s))])
    again = computed_again(program, made, anchor, wanted, text)
    if again is None:
        return None
    code = "\n".join([*again, *map(program.segment, moved)])
    return Plan(what, [insert(anchor, "before", code), *besides], first=_detached_first(program, place.stale))


def _of_others(one: Stale) -> set[Node]:
    """What the other backwards of the iteration go through."""
    others = (b for b in backwards(one.run) if b is not one.event and b.loops == one.event.loops)
    return {node for b in others for node in b.visited}


def _uncut(program: Program, calls: Iterable[ModuleCall]) -> Callable[[ast.expr], str]:
    """Writes a prediction made from inputs that are not detached."""
    operands = [operand for call in calls for operand, _ in call.operands]
    parts = {o: program.segment(kept) for o in operands if (kept := undetached(o)) is not None}
    return lambda value: with_parts(program, value, parts)


def _detached_first(program: Program, one: Stale) -> list[Edit]:
    """Detach what enters the first forward, where it leads into other networks."""
    moved = set(one.step.consumed)
    trained = {leaf for optimizer in one.run.optimizers for leaf in optimizer.state.owned()}
    edits: list[Edit] = []
    used = {node.call for node in _of_others(one)}
    for expression, value in [operand for call in one.calls if call in used for operand in call.operands]:
        assert isinstance(value, Value)
        roots = [(t.node, True) for t in tensors_in(value) if t.node is not None]
        leaves = {leaf for n in reachable_nodes(roots) for leaf, _, _ in n.leaves}
        # Data that requires grad is nobody's to train: a detach of it would only puzzle.
        code = detached_code(program.segment(expression), expression, value)
        if leaves & trained - moved and code is not None:
            edits.append(ReplaceExpression(Span.of(expression), code))
    return edits


def _undetached_term(program: Program, place: Place) -> Plan | None:
    """Predict again before the loss, and let its gradient through."""
    one, term = place.stale, place.stale.detached
    held = undetached(term) if term is not None else None
    assert term is not None and held is not None
    made, text = program.statement(one.calls[0].site), _uncut(program, one.calls)
    edit = ReplaceExpression(Span.of(term), program.segment(held))
    what = "repeat the forward after the step"
    return _repeated(program, place, [made], program.statement(term), text, what, besides=[edit])


def _fed_again(program: Program, place: Place) -> Plan | None:
    """Where the network that was stepped on only feeds: predict again from its detached output.

    A discriminator's loss that reuses the prediction of the generator's loss, after the generator's step.
    """
    one, event = place.stale, place.stale.event
    fed = leak_path(one.run, event)
    if fed is None or fed[1].isdisjoint(one.step.consumed):
        return None
    mine, foreign, targets = fed
    own = set(mine.owned())
    parts: dict[ast.expr, str] = {}
    calls: list[ModuleCall] = []
    for call in calls_in(event.visited):
        if call.leaves & own and not call.leaves & foreign:
            for expression, held in operands_reaching(call, targets):
                calls.append(call)
                parts[expression] = detached_code(program.segment(expression), expression, held) or ""
    home, nodes = program.function(place.at), behind(event, calls)
    late = statements(program, home, (n for n in nodes if n.serial > one.step.serial))
    if not late or not all(parts.values()):
        return None
    made = {program.statement(call.site) for call in calls}
    what = "repeat the forward on the detached input after the step"
    return _repeated(program, place, made, late[0], lambda value: with_parts(program, value, parts), what)


def _made_in_the_loop(program: Program, place: Place) -> Plan | None:
    """What was predicted before a loop that steps is predicted in each of its iterations."""
    one, event = place.stale, place.stale.event
    if not event.loops or any(call.serial > one.step.serial for call in _same_networks(one)):
        return None  # The same network has its word now as well: what it said before may be a constant.
    loop, nodes, home = event.loops[-1][0], behind(event, one.calls), program.function(place.at)
    assert isinstance(loop, ast.stmt)
    before = [n for n in nodes if all(at is not loop for at, _ in n.loops)]
    moved = moved_inside(program, event, before[0]) if before else None
    if moved is not None:
        return Plan("do the forward in every iteration", moved[1], Way.REORDER)
    made = statements(program, home, before)
    within = statements(program, home, (n for n in nodes if n.loops == event.loops))
    if not made or not within:
        return None
    bound = {program.segment(t) for s in made for target, _ in bindings(s) for t in targets_in(target)}
    text = _uncut(program, one.calls)
    again = computed_again(program, made, within[0], bound, text)
    read = variables(program, (n for n in walk(home) if getattr(n, "lineno", 0) > (loop.end_lineno or 0)))
    if again is not None and read.isdisjoint(bound):
        edits = [insert(within[0], "before", "\n".join(again))]
        return Plan("repeat the forward in every iteration", edits)
    # What was predicted before the loop is read behind it as well, and is not to be bound anew.
    pairs = bindings(made[0])
    uses = [n for n in walk(loop) if isinstance(n, (ast.Name, ast.Attribute)) and program.segment(n) in bound]
    if again is None or len(made) + len(pairs) > 2 or len(uses) != 1:
        return None
    ((target, value),) = pairs
    edits = [ReplaceExpression(Span.of(uses[0]), text(value))]
    return Plan(f"compute `{shown(program, target)}` again in every iteration", edits, Way.REORDER)


def _same_networks(one: Stale) -> list[ModuleCall]:
    """The calls in a loss of the networks that are stale in it."""
    modules = {call.module for call in one.calls}
    return [call for call in calls_in(one.event.visited) if call.module in modules]


def _later_update_first(program: Program, place: Place) -> Plan | None:
    """Of two updates, each in a call of a helper or in an iteration over pairs, the later one comes first.

    Its loss was computed with the weights that it moves, and the other one has nothing to do with these.
    """
    if place.at is place.stale.event.site:
        return _other_pair_first(program, place)
    edits = swap_phases(program, {place.step_at}, place.step_at, place.at)
    text = shown(program, program.statement(place.at))
    what = f"call `{text}` first: each backward then comes before the step that would invalidate it"
    return Plan(what, edits, Way.REORDER) if edits is not None else None


def _other_pair_first(program: Program, place: Place) -> Plan | None:
    """``for optimizer, loss in ((a, loss_a), (b, loss_b))``: the second pair of two comes first."""
    loop = next((a for a in program.ancestors(place.at) if isinstance(a, ast.For)), None)
    if loop is None or not isinstance(loop.iter, (ast.Tuple, ast.List)) or len(loop.iter.elts) != 2:
        return None
    first, second = loop.iter.elts
    edits: list[Edit] = [
        ReplaceExpression(Span.of(first), program.segment(second)),
        ReplaceExpression(Span.of(second), program.segment(first)),
    ]
    what = "swap the two: each backward then comes before the step that would invalidate it"
    return Plan(what, edits, Way.REORDER)


def _constant_factor(program: Program, place: Place) -> Plan | None:
    """Where the loss trains nothing through the prediction: it is meant as a number, and is detached.

    A critic's value in the actor's loss: the advantage weighs the log-probability. What the prediction
    leads to is no part of what the loss's optimizer owns, and was not cut off from it by a detach.
    """
    one, event = place.stale, place.stale.event
    mine = optimizer_of_loss(one.run, event)
    if mine is None or _is_cut_off(one):
        return None
    taught, below = leading_to(event.visited, set(mine.owned())), behind(event, one.calls)
    cuts = [e for node in taught for e in node.edges if e.node in below and e.node not in taught]
    detached = detach_operands(program, cuts)
    if detached is None:
        return None
    what = f"detach {detached[0]}, which is only a factor of this loss"
    return Plan(what, detached[1], Way.DETACH)


def _is_cut_off(one: Stale) -> bool:
    """Whether a stale prediction was made from a detached input."""
    return any(undetached(operand) is not None for call in one.calls for operand, _ in call.operands)


def _former(program: Program, place: Place) -> Plan | None:
    """Where the loss compares it with what the same network says now: it is a number.

    The log-probabilities of PPO from before the epochs. The data are the same, predicted again the two would
    be equal; or the two make a ratio of probabilities, `exp(new - old)`, whatever they are predicted from.
    """
    one, serial = place.stale, place.stale.step.serial
    former = {node for node in behind(one.event, one.calls) if node.serial < serial}
    later = (node for node in one.event.visited if node.serial > serial)
    crossing = [(node, edge) for node in later for edge in node.edges if edge.node in former]
    repeated = _all_repeated(one)
    detached = detach_operands(program, [edge for _, edge in crossing])
    if detached is None or not (repeated or all(_in_ratio(*each) for each in crossing)):
        return None
    # Of other data, the original's own graph has another gradient: which one is meant, its author knows.
    effect = None if repeated else Effect.CHANGES
    return Plan(f"detach {detached[0]}, which it is compared with", detached[1], Way.DETACH, effect=effect)


def _all_repeated(one: Stale) -> bool:
    """Whether each stale prediction is made again after the step, by the same network of the same data."""

    def asked(call: ModuleCall) -> tuple[int, ...]:
        return id(call.module), *(id(value) for _, value in call.operands)

    now = {asked(call) for call in calls_in(one.event.visited) if call.serial > one.step.serial}
    return bool(one.calls) and now.issuperset(map(asked, one.calls))


def _in_ratio(node: Node, edge: Edge) -> bool:
    """Whether an operand is the old one of `new - old`, both log-probabilities by the same networks."""
    if operation(node) not in DIFFERENCES or not all(
        likelihood(e.node, OF_A_DISTRIBUTION) for e in node.edges
    ):
        return False
    by = [{call.module for call in calls_in(reachable_nodes([(e.node, True)]))} for e in (edge, *node.edges)]
    return all(modules == by[0] for modules in by)
