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

Preconditions: the step certainly moved weights that the prediction saved; the statement that is repeated or
moved reads nothing that is rebound in between, and means the same where it goes.

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
from a mixture of old and new weights, or with a term that gave no gradient. A prediction that is repeated or
moved draws random numbers (dropout) and updates running statistics (batch normalization) once more, or
later: the certificate says from which step on.

Severity: error.
Clause: with the weights that the step updates.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import is_

from gradfix.autograd.graph import Backward, Edge, ModuleCall, Node, Step, first_divergence, reachable_nodes
from gradfix.autograd.model_ledger import operation
from gradfix.autograd.program import Program
from gradfix.autograd.relevance import suites, walk
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    calls_in,
    detached_code,
    earlier_iteration,
    gradient_clears,
    leading_to,
    operands_reaching,
    optimizer_of_loss,
    step_follows,
    steps,
)
from gradfix.autograd.values import Value, tensors_in
from gradfix.core.codemod import (
    Claim,
    Edit,
    Effect,
    Finding,
    Fix,
    InsertStatement,
    MoveStatement,
    RemoveStatement,
    ReplaceExpression,
    Way,
)
from gradfix.core.span import Span
from gradfix.rules.diagnosis import Diagnosis, diagnose, leak_path, stale_step
from gradfix.rules.edits import (
    constructed,
    detach_at,
    drop_retain,
    insert,
    line,
    move,
    names_bound,
    names_read,
    note,
    only_for,
    receiver,
    shown,
    stepped,
    targets_in,
    within_file,
)
from gradfix.rules.moving import statements
from gradfix.rules.targets import estimated_targets

DIFFERENCES = frozenset({"binary.Sub", "sub", "subtract"})
COLLECTING = frozenset("stack cat getitem index_select squeeze unsqueeze view reshape flatten sum to".split())
"""Operations that put log-probabilities together: of several actions, or of the parts of one."""


@dataclass(eq=False)
class Stale:
    """A backward that needs a prediction from before a step."""

    run: Run
    event: Backward
    step: Step
    calls: list[ModuleCall]
    """The network calls that the step made stale, in the event's graph."""
    effect: Effect = Effect.REPAIRS
    detached: ast.Call | None = None
    """The `pred.detach()` that stands as a term of the loss."""

    def __post_init__(self) -> None:
        self.at, self.step_at = self.event.site, self.step.site
        """Where it is mended: at the backward and the step, or at the calls of helpers that lead to them."""
        targets = estimated_targets(self.event).items()
        stale = set(self.calls)
        self.target = next((place for place, calls in targets if stale and stale <= calls), None)
        """What the loss compares a prediction with, if that is an estimate and all that is stale."""

    def fixes(self, program: Program) -> tuple[Fix, ...]:
        """The repairs where the backward stands; or else where one function has what leads to both."""
        if self.target is not None:
            return ()  # To repeat it would train the estimates by what they say of later states.
        own = self.event.site, self.step.site
        for places in dict.fromkeys([own, first_divergence(self.event, self.step)]):
            self.at, self.step_at = places
            if found := within_file(_fixes(program, self)):
                return found
        self.at, self.step_at = own
        return ()


def find(program: Program) -> Iterator[Finding]:
    """Report each backward through a prediction that a step has made stale."""
    seen: set[ast.AST] = set()
    for entry in program.entry_points:
        found = [
            *entry.certain_observations(stale, lambda s: s.event.site, raises=True),
            *entry.certain_observations(mixed, lambda s: s.event.site, raises=False),
            *entry.certain_observations(silenced, lambda s: s.event.site, raises=False),
            *entry.certain_observations(cut_off, lambda s: s.event.site, raises=False),
        ]
        for one in found:
            if one.detached is not None and not _is_term(program, one.detached):
                continue
            finding = _finding(program, one)
            if one.at not in seen:
                seen.add(one.at)
                yield finding


def stale(run: Run) -> dict[Hashable, Stale]:
    """Failing backwards through predictions that a step made stale."""
    found: dict[Hashable, Stale] = {}
    for event in backwards(run):
        if diagnose(run, event) is Diagnosis.STALE:
            step = stale_step(run, event)
            assert step is not None
            moved = set(step.optimizer.owned())
            old = [n for n in event.visited if n.serial < step.serial]
            calls = [c for c in calls_in(old) if c.leaves & moved and c.loops == event.loops]
            if event.failure is not None and event.failure.node is not None:
                if not calls and earlier_iteration(event.failure.node, event) is None:
                    calls = [c for c in calls_in(old) if c.leaves & moved]  # It was made before the loop.
            # A network may hold others that its call does not use: ``self(x)`` with a critic beside.
            using = {n.call for n in old if any(leaf in moved for _, _, leaf in n.saved)}
            calls = [c for c in calls if c in using] or calls
            one = Stale(run, event, step, calls)
            found.setdefault(first_divergence(event, step)[0], one)
    return found


def mixed(run: Run) -> dict[Hashable, Stale]:
    """Backwards through a prediction whose weights a fused optimizer has changed since.

    Fused optimizers do not move version counters: autograd does not notice, and the gradients come from a
    mixture of old and new weights.
    """
    found: dict[Hashable, Stale] = {}
    fused = [step for step in steps(run) if step.optimizer.fused]
    for event in backwards(run) if fused else ():
        if event.failure is not None or not event.certain:
            continue
        for step in fused:
            if step.loops != event.loops or step.serial > event.serial:
                continue
            moved = set(step.consumed)
            calls = [
                c
                for c in calls_in(n for n, sure in event.visited.items() if sure and n.serial < step.serial)
                if c.loops == event.loops
                and any(leaf in moved for n in event.visited for _, _, leaf in n.saved)
                and c.leaves & moved
            ]
            if calls:
                found.setdefault(event.site, Stale(run, event, step, calls, Effect.CHANGES))
    return found


def silenced(run: Run) -> dict[Hashable, Stale]:
    """Losses one of whose terms is a detached old prediction: the term has no gradient at all.

    The prediction was made from what the loss is to train, before a step of the network that made it; the
    detach keeps autograd from raising, and the loss from teaching.
    """
    found: dict[Hashable, Stale] = {}
    for serial, node, site in run.detached:
        if not isinstance(site, ast.Call) or _without_detach(site) is None:
            continue
        event = next((b for b in between(backwards(run), serial) if b.loops == node.loops), None)
        if event is None or event.failure is not None or not event.certain:
            continue
        mine = optimizer_of_loss(run, event)
        call = node.call
        if mine is None or call is None or not call.operands or call.loops != event.loops:
            continue
        own = set(mine.owned())
        feeds = {
            leaf
            for _, value in call.operands
            for n in reachable_nodes([(t.node, True) for t in tensors_in(value) if t.node])  # type: ignore[arg-type]
            for leaf, _, _ in n.leaves
        }
        moved = [
            s for s in between(steps(run), call.serial, serial) if call.leaves & set(s.optimizer.owned())
        ]
        if not moved or not feeds & own or call.leaves & own:
            continue
        earlier = between(backwards(run), call.serial, serial)
        if any(n.call is call for b in earlier for n in b.visited):
            found.setdefault(event.site, Stale(run, event, moved[-1], [call], Effect.CHANGES, site))
    return found


def _is_term(program: Program, site: ast.AST) -> bool:
    """Whether an expression is only added to the rest of its statement."""
    for outer in program.ancestors(site):
        if isinstance(outer, ast.Assign):
            return True
        reduction = isinstance(outer, ast.Attribute) and outer.attr in ("sum", "mean")
        called = (
            isinstance(outer, ast.Call)
            and isinstance(outer.func, ast.Attribute)
            and outer.func.attr
            in (
                "sum",
                "mean",
            )
        )
        added = isinstance(outer, ast.BinOp) and isinstance(outer.op, (ast.Add, ast.Sub))
        if not (reduction or called or added):
            return False
    return False


def cut_off(run: Run) -> dict[Hashable, Stale]:
    """Losses that nobody's step learns from, because the prediction they reuse was made from a cut input."""
    found: dict[Hashable, Stale] = {}
    refuted: set[Hashable] = set()
    last: Backward | None = None
    for event in run.events:
        if isinstance(event, Backward) and event.accumulates:
            last = event
        if not isinstance(event, Step) or last is None or last.loops != event.loops or event.doubtful:
            continue
        nothing = not event.consumed and event.without_gradient and event.optimizer.groups_known
        if not nothing:
            refuted.add(last.site)
            continue
        earlier = [
            s
            for s in steps(run)
            if s.loops == event.loops and s.serial < last.serial and s.optimizer is not event.optimizer
        ]
        hit = None
        for step in earlier:
            moved = set(step.optimizer.owned())
            calls = [
                c
                for c in calls_in(n for n in last.visited if n.serial < step.serial)
                if c.leaves & moved and _cut_operands(c, event)
            ]
            if calls and last.failure is None and last.certain:
                hit = Stale(run, last, step, calls)
        if hit is not None:
            found.setdefault(last.site, hit)
        else:
            refuted.add(last.site)
    return {key: one for key, one in found.items() if key not in refuted}


def _cut_operands(call: ModuleCall, step: Step) -> list[ast.expr]:
    """The operands that are written with a detach."""
    return [e for e, _ in call.operands if _without_detach(e) is not None]


def _without_detach(expression: ast.expr) -> ast.expr | None:
    if (
        isinstance(expression, ast.Call)
        and isinstance(expression.func, ast.Attribute)
        and expression.func.attr == "detach"
        and not expression.args
    ):
        return expression.func.value
    return None


def _finding(program: Program, one: Stale) -> Finding:
    event, step = one.event, one.step
    fixes = one.fixes(program)
    assert isinstance(one.at, ast.expr)
    loss, by = receiver(program, event), f"{receiver(program, step)}.step()"
    if one.at is not event.site:
        # It is mended where the helpers are called, and told there.
        loss, by = shown(program, one.at), shown(program, one.step_at)  # type: ignore[arg-type]
    notes = [note(c.site, "computed with the weights before the step") for c in one.calls[:1]]
    notes.append(note(one.step_at, "this step modifies them in place"))
    failure = event.failure
    if one.detached is not None:
        notes.append(note(one.detached, "detached: to autograd, this term of the loss is a constant"))
        why = "detached: no parameter gets a gradient from it"
    elif failure is None and one.effect is Effect.CHANGES:
        notes.append(note(one.at, "this backward mixes old activations with new weights, and nothing raises"))
        why = "and autograd does not notice the fused step: the gradients mix old and new weights"
    elif failure is None:
        notes.append(
            note(one.at, "no gradient flows past the `detach()`: the next step gets none from this loss")
        )
        why = "and its input was detached: the optimizer of this loss gets no gradient from it"
    elif failure.kind == "E2":
        for other in _other_steps(one):
            notes.append(note(other.site, "this step modifies others that the backward needs"))
        notes.append(note(one.at, "this backward needs the old weights: autograd raises"))
        why = "and its backward needs the old weights"
    else:
        if failure.culprit is not None:
            notes.append(note(failure.culprit.site, "this backward frees its graph"))
        notes.append(note(one.at, "this backward goes through it again: autograd raises"))
        why = "and that graph has been freed"
    what = f"`{shown(program, one.calls[0].site)}`" if one.calls else "a prediction"
    return Finding(
        "stale-forward",
        f"`{loss}` uses {what} from before `{by}`, {why}",
        Span.of(one.at),
        tuple(notes),
        fixes,
        None if failure is None else failure.kind,
        advice=_advice(program, one),
    )


def _advice(program: Program, one: Stale) -> str:
    if one.target is None:
        return ""
    return (
        f"detach `{shown(program, one.target)}` where it is computed, if it is the target of all these losses"
    )


def _other_steps(one: Stale) -> list[Step]:
    """Further steps that have changed what the same backward needs, one for each place in this file."""
    changes = (
        storage.history[version]
        for node in one.event.visited
        for storage, version, _ in node.saved
        if storage.version > version and storage.history[version].serial < one.event.serial
    )
    found = {e.site: e for e in changes if isinstance(e, Step) and getattr(e.site, "lineno", 0) > 0}
    return sorted((s for site, s in found.items() if site is not one.step.site), key=lambda s: s.serial)


# ---------------------------------------------------------------------- repairs


def _fixes(program: Program, one: Stale) -> Iterator[Fix]:
    if not all(o.state.groups_known for o in one.run.optimizers):
        return  # a step of unknown reach may have made more stale than is seen
    plan = _former(program, one)
    if plan is not None:
        # As it is, the loss teaches nothing as long as the two are equal.
        others = [o.state for o in one.run.optimizers if o.state is not optimizer_of_loss(one.run, one.event)]
        unchanged = tuple(number for state in others for number in constructed(one.run, state))
        # Of other data, the original's own graph has another gradient: which one is meant, its author knows.
        effect = one.effect if _all_repeated(one) else Effect.CHANGES
        for fix in _carried_out(program, one, *plan):
            yield fix._replace(
                effect=effect, claim=fix.claim._replace(unchanged=unchanged, losses="rerouted")
            )
        return
    if not all(call.loops == one.event.loops for call in one.calls):
        # Predictions of several iterations are not made again one by one; as numbers they may all be taken.
        plan = _constant_weight(program, one) or _made_in_the_loop(program, one)
        yield from _carried_out(program, one, *plan) if plan is not None else ()
        return
    yield from _step_later(program, one)
    for plan in _plans(program, one):
        yield from _carried_out(program, one, *plan)
    plan = _swap_phases(program, one)
    yield from _carried_out(program, one, *plan) if plan is not None else ()
    yield from _both_first(program, one)


def _carried_out(
    program: Program, one: Stale, edits: list[Edit], detach: list[Edit], what: str
) -> Iterator[Fix]:
    """The fixes that a plan comes to: with what is to be detached, and what need not be kept any more."""
    event = one.event
    failure = event.failure
    kind = failure.kind if failure is not None and failure.kind != "E4" else None
    mine = optimizer_of_loss(one.run, event)
    claim = Claim(
        kind,
        line(event.site) if kind else None,
        constructed(one.run, one.step.optimizer),
        # Who steps again on the repeated forward consumes other gradients from there on.
        beyond=mine is not one.step.optimizer,
        same_forwards=not any(isinstance(edit, (InsertStatement, MoveStatement)) for edit in edits),
        # A prediction that was detached for the first loss gives the second one nothing, however it is kept.
        losses="same" if kind and mine is not None and set(event.reached) & set(mine.owned()) else "rerouted",
    )
    way = _way(edits)
    retain: list[Edit] = []
    for backward in backwards(one.run):
        if backward.retain is True and backward.loops == event.loops:
            retain += [edit for edit in drop_retain(backward, program) if edit not in retain]
    for detached in [detach, []] if detach else [[]]:
        for dropped in [retain, []] if retain else [[]]:
            message = (
                what
                + (", detach the first" if detached else "")
                + (", drop retain_graph=True" if dropped else "")
            )
            yield Fix(
                message, one.effect, (*edits, *detached, *dropped), claim, Way.DETACH if detached else way
            )


def _way(edits: Sequence[Edit]) -> Way | None:
    """What a plan is called: there is no name for a forward that is repeated."""
    if all(isinstance(edit, MoveStatement) for edit in edits):
        return Way.REORDER
    if all(isinstance(edit, ReplaceExpression) for edit in edits):
        cuts = all(edit.code.endswith(".detach()") for edit in edits if isinstance(edit, ReplaceExpression))
        return Way.DETACH if cuts else Way.REORDER
    return None


def _step_later(program: Program, one: Stale) -> Iterator[Fix]:
    """Where nobody steps on the failing loss but the optimizer that has stepped before it: the step waits."""
    event, step = one.event, one.step
    if event.failure is None or event.failure.kind != "E2" or step.loops != event.loops:
        return
    if step_follows(one.run, event) or any(event in c for s in steps(one.run) for c in s.consumed.values()):
        return
    mine = set(step.optimizer.owned())
    once = sum(s.loops == event.loops for s in step.optimizer.steps) == 1
    moved, after = program.statement(step.site), program.statement(event.site)
    block = program.suite_around(moved)
    if once and after in block and set(event.reached) <= mine and block.index(moved) < block.index(after):
        claim = Claim("E2", line(event.site), (), same_forwards=False)
        edits = (move(moved, after, "after"),)
        yield Fix("step after the backward", Effect.REPAIRS, edits, claim, Way.REORDER)


def _both_first(program: Program, one: Stale) -> Iterator[Fix]:
    """Both losses were computed with the same weights, elsewhere: both are differentiated before the step.

    The second backward is told whose gradients it is for, where it would add to those that wait for the step.
    """
    run, event, step = one.run, one.event, one.step
    mine = optimizer_of_loss(run, event)
    if event.failure is None or event.failure.kind != "E2" or step.loops != event.loops or mine is None:
        return
    assert isinstance(event.site, ast.Call)
    waiting = set(step.optimizer.owned())
    first = program.statement(step.site)
    block = program.suite_around(first)
    around = [event.site, *program.ancestors(event.site)]
    second = next((s for s in block[block.index(first) + 1 :] if s in around), None)
    name = stepped(program, mine)
    following = next((s for s in between(steps(run), event.serial) if s.optimizer is mine), None)
    if (
        not waiting.isdisjoint(mine.owned())
        or name is None
        or following is None
        or program.statement(following.site) not in block
        or second is None
        or isinstance(second, (ast.For, ast.While))
        or sum(s.loops == event.loops for s in step.optimizer.steps) != 1
        or _other_steps(one)
        or any(
            leaf in waiting
            for z in between(gradient_clears(run), step.serial, event.serial)
            for leaf in z.leaves
        )
        or any(waiting & set(b.reached) for b in between(backwards(run), step.serial, event.serial))
        or any(c.leaves & waiting and c.serial > step.serial for c in calls_in(event.visited))
    ):
        return
    edits: list[Edit] = []
    what = "step after both backwards"
    if waiting & set(event.reached):
        restricted = only_for(program, event, mine) if not event.site.keywords else None
        if restricted is None:
            return
        edits.append(restricted)
        what += f", and restrict the second to the parameters of `{name}`"
    every = tuple(number for o in run.optimizers for number in constructed(run, o.state))
    way = Way.INPUTS if edits else Way.REORDER
    edits.append(move(first, second, "after"))
    yield Fix(what, Effect.REPAIRS, tuple(edits), Claim("E2", line(event.site), every), way)


Plan = tuple[list[Edit], list[Edit], str]
"""What is to be repeated or moved after a step, what to be detached before it, and what to say of it."""


def _plans(program: Program, one: Stale) -> Iterator[Plan]:
    """The ways to repair it, the one that changes least first."""
    if one.detached is not None:
        plan = _undetach(program, one)
    else:
        plan = _feed_again(program, one)
        if plan is None:
            weight = _constant_weight(program, one)
            if weight is not None:
                yield weight
            plan = _computed_later(program, one)
    if plan is not None:
        yield plan


def _computed_later(program: Program, one: Stale) -> Plan | None:
    """The statements of the loss move to after the step, or are repeated there."""
    event, step = one.event, one.step
    calls = set(one.calls)
    dependent = _behind(event, calls)
    home = program.function(one.at)
    early = statements(program, home, (n for n in dependent if n.serial < step.serial))
    late = statements(program, home, (n for n in dependent if n.serial > step.serial))
    if not early:
        return None
    others = {n for b in backwards(one.run) if b is not event and b.loops == event.loops for n in b.visited}
    shared_nodes = {n for n in dependent if n in others and n.serial < step.serial}
    shared = statements(program, home, shared_nodes)
    exclusive = [s for s in early if s not in shared]
    step_statement = program.statement(one.step_at)
    if not late:
        anchor: ast.stmt = program.statement(one.at)
        anchor_block = program.suite_around(anchor)
        if step_statement in anchor_block:
            after = anchor_block[anchor_block.index(step_statement) + 1 :]
            anchor = next((s for s in after), anchor)
    else:
        anchor = late[0]
    if exclusive and late and not _statement_before(program, step_statement, anchor):
        return None
    edits: list[Edit] = []
    # What only the second loss uses moves; what the first loss uses as well is repeated.
    repeated = [] if not shared else _repeat(program, one, shared, anchor, exclusive)
    if repeated is None:
        return None
    if not all(_may_move(program, statement, step_statement, exclusive) for statement in exclusive):
        # What is read in between as well, a critic's value for a log or a target, is computed twice.
        repeated, exclusive = _repeat(program, one, early, anchor), []
        if repeated is None:
            return None
    if repeated and exclusive:
        # What moves reads what is repeated, and comes behind it.
        repeated += [program.segment(statement) for statement in exclusive]
        edits += [RemoveStatement(Span.of(statement)) for statement in exclusive]
        exclusive = []
    if repeated:
        edits.append(insert(anchor, "before", "\n".join(repeated)))
    place = step_statement if step_statement in program.suite_around(anchor) else None
    for statement in exclusive:
        edits.append(
            move(statement, place, "after") if place is not None else move(statement, anchor, "before")
        )
    detach = _detach(program, one, others) if shared else []
    what = "repeat the forward after the step" if repeated else "compute the loss after the step"
    return edits, detach, what


def _made_in_the_loop(program: Program, one: Stale) -> Plan | None:
    """What was predicted before a loop that steps is predicted in each of its iterations."""
    event, step = one.event, one.step
    if not event.loops or step.loops[:-1] != event.loops[:-1] or step.loops[-1:] == event.loops[-1:]:
        return None
    loop = event.loops[-1][0]
    if any(at is loop for call in one.calls for at, _ in call.loops):
        return None
    calls, modules = set(one.calls), {call.module for call in one.calls}
    if any(call.module in modules for call in calls_in(event.visited) if call.serial > step.serial):
        return None  # The same network has its word now as well: what it said before may be a constant.
    stale = _behind(event, calls)
    home = program.function(one.at)
    before = statements(program, home, (n for n in stale if all(at is not loop for at, _ in n.loops)))
    within = statements(program, home, (n for n in stale if n.loops == event.loops))
    if not before or not within:
        return None
    repeated = _repeat(program, one, before, within[0])
    if repeated is None:
        return None
    kept = _read_beyond(program, before, loop)
    if not kept:
        written = [program.segment(statement) for statement in before]
        if repeated == written and not _read_beyond(program, before, loop, on_the_way=True):
            moved = [move(statement, within[0], "before") for statement in before]
            return moved, [], "do the forward in every iteration"
        return [insert(within[0], "before", "\n".join(repeated))], [], "repeat the forward in every iteration"
    # What was predicted before the loop is read behind it as well, and is not to be bound anew.
    pairs = _bindings(before[0])
    uses = [n for n in walk(loop) if isinstance(n, (ast.Name, ast.Attribute)) and program.segment(n) in kept]
    if pairs is None or len(before) + len(pairs) > 2 or len(uses) != 1:
        return None
    ((target, value),) = pairs
    text = _undetached(program, one, value)
    if text is None:
        return None
    edits: list[Edit] = [ReplaceExpression(Span.of(uses[0]), text)]
    return edits, [], f"compute `{shown(program, target)}` again in every iteration"


def _read_beyond(
    program: Program, before: list[ast.stmt], loop: ast.AST, on_the_way: bool = False
) -> set[str]:
    """The variables that some statements before a loop bind and that are read elsewhere than in it.

    What is read on the way to the loop does not count, unless it is asked for.
    """
    assert isinstance(loop, ast.stmt)
    bound = {program.segment(t) for s in before for t, _ in _bindings(s) or () for t in targets_in(t)}
    inside = {n for statement in (*before, loop) for n in walk(statement)}
    first, last = min(statement.lineno for statement in before), loop.end_lineno or 0
    return {
        program.segment(n)
        for n in walk(program.function(loop))
        if isinstance(n, (ast.Name, ast.Attribute))
        and isinstance(n.ctx, ast.Load)
        and n not in inside
        and (on_the_way or not first <= n.lineno <= last)
        and program.segment(n) in bound
    }


def _statement_before(program: Program, first: ast.stmt, second: ast.stmt) -> bool:
    return first.lineno < second.lineno


def _undetach(program: Program, one: Stale) -> Plan | None:
    """Predict again before the loss, and let its gradient through."""
    assert one.detached is not None
    held = _without_detach(one.detached)
    anchor, made = program.statement(one.detached), program.statement(one.calls[0].site)
    lines = _repeat(program, one, [made], anchor)
    if held is None or lines is None:
        return None
    edits = [
        insert(anchor, "before", "\n".join(lines)),
        ReplaceExpression(Span.of(one.detached), program.segment(held)),
    ]
    others = {
        n for b in backwards(one.run) if b is not one.event and b.loops == one.event.loops for n in b.visited
    }
    return edits, _detach(program, one, others), "repeat the forward after the step"


def _former(program: Program, one: Stale) -> Plan | None:
    """Where the loss compares it with what the same network says now: it is a number.

    The log-probabilities of PPO from before the epochs. The data are the same, predicted again the two would
    be equal; or the two make a ratio of probabilities, `exp(new - old)`, whatever they are predicted from.
    """
    event, step = one.event, one.step
    now = [call for call in calls_in(event.visited) if call.serial > step.serial]
    former = {node for node in _behind(event, set(one.calls)) if node.serial < step.serial}
    crossing = [
        (node, edge)
        for node in event.visited
        if node.serial > step.serial
        for edge in node.edges
        if edge.node in former
    ]
    if not _all_repeated(one) and not all(_in_ratio(event, node, edge, now) for node, edge in crossing):
        return None
    edits: dict[ast.expr, Edit] = {}
    for _, edge in crossing:
        operand = edge.operand
        if operand is None or line(operand) <= 0:
            return None
        edits[operand] = detach_at(program, operand)
    names = ", ".join(dict.fromkeys(f"`{shown(program, e)}`" for e in edits))
    return (list(edits.values()), [], f"detach {names}, which it is compared with") if edits else None


def _all_repeated(one: Stale) -> bool:
    """Whether each stale prediction is made again after the step, of the same data."""
    now = [call for call in calls_in(one.event.visited) if call.serial > one.step.serial]
    return bool(one.calls) and all(any(_repeats(call, old) for call in now) for old in one.calls)


def _repeats(call: ModuleCall, old: ModuleCall) -> bool:
    """Whether a call of a network is given the very values that an older one was."""
    given, before = ([value for _, value in each.operands] for each in (call, old))
    return call.module is old.module and len(given) == len(before) and all(map(is_, given, before))


def _in_ratio(event: Backward, node: Node, edge: Edge, now: list[ModuleCall]) -> bool:
    """Whether an operand is the old one of `exp(new - old)`, both log-probabilities by the same networks."""
    if operation(node) not in DIFFERENCES or len(node.edges) != 2 or node.edges[1] is not edge:
        return False
    if not all(_is_log_probability(operand.node) for operand in node.edges):
        return False
    above = [one for one in event.visited if any(e.node is node for e in one.edges)]
    old, new = (calls_in(reachable_nodes([(e.node, True)])) for e in (edge, node.edges[0]))
    modules = {call.module for call in new if call in now}
    return (
        bool(above) and all(operation(one) == "exp" for one in above) and {c.module for c in old} == modules
    )


def _is_log_probability(node: Node) -> bool:
    """Whether a node is the log-probability of something, by a distribution, or is put together from such."""
    if operation(node) == "log_prob":
        return True
    return (
        bool(node.edges)
        and operation(node) in COLLECTING
        and all(_is_log_probability(edge.node) for edge in node.edges)
    )


def _behind(event: Backward, calls: set[ModuleCall]) -> set[Node]:
    """The nodes of a backward that belong to some network calls, or lead to them."""
    found: set[Node] = set()
    # Operands are always older than what is computed from them.
    for node in sorted(event.visited, key=lambda n: n.serial):
        if node.call in calls or any(edge.node in found for edge in node.edges):
            found.add(node)
    return found


def _swap_phases(program: Program, one: Stale) -> Plan | None:
    """Of two updates, each in a call of a helper or in an iteration over pairs, the later one comes first.

    Its loss was computed with the weights that it moves, and the other one has nothing to do with these.
    """
    at, before = program.statement(one.at), program.statement(one.step_at)
    if one.at is one.event.site:
        return _other_pair_first(program, one)
    block = program.suite_around(at)
    alone = all(
        isinstance(s, ast.Expr) and s.value is place for s, place in ((at, one.at), (before, one.step_at))
    )
    if not alone or before not in block or block.index(before) > block.index(at):
        return None
    between = block[block.index(before) : block.index(at)]
    if any(names_read(at) & names_bound(statement) for statement in between):
        return None
    text = shown(program, at)
    return (
        [move(at, before, "before")],
        [],
        f"call `{text}` first: each backward then comes before the step that would invalidate it",
    )


def _other_pair_first(program: Program, one: Stale) -> Plan | None:
    """``for optimizer, loss in ((a, loss_a), (b, loss_b))``: the second pair of two comes first."""
    loop = next((a for a in program.ancestors(one.at) if isinstance(a, ast.For)), None)
    if loop is None or not isinstance(loop.iter, (ast.Tuple, ast.List)) or len(loop.iter.elts) != 2:
        return None
    turns = [b for b in backwards(one.run) if b.site is one.event.site and b.loops == one.event.loops]
    if len(turns) != 2 or turns[1] is not one.event:
        return None
    first, second = loop.iter.elts
    edits: list[Edit] = [
        ReplaceExpression(Span.of(first), program.segment(second)),
        ReplaceExpression(Span.of(second), program.segment(first)),
    ]
    return edits, [], "swap the two: each backward then comes before the step that would invalidate it"


def _constant_weight(program: Program, one: Stale) -> Plan | None:
    """Where the loss trains nothing through the prediction: it is meant as a number, and is detached.

    A critic's value in the actor's loss: the advantage weighs the log-probability. What the prediction
    leads to is no part of what the loss's optimizer owns, and was not cut off from it by a detach.
    """
    event = one.event
    mine = optimizer_of_loss(one.run, event)
    if mine is None or mine is one.step.optimizer:
        return None
    if any(_without_detach(e) is not None for c in one.calls for e, _ in c.operands):
        return None
    own = set(mine.owned())
    calls = set(one.calls)
    taught = leading_to(event.visited, own)
    below = _behind(event, calls)
    if any(n in taught and n.call in calls for n in below):
        return None
    cuts: dict[ast.expr, None] = {}
    for node in event.visited:
        if node not in taught:
            continue
        for edge in node.edges:
            if edge.node in below and edge.node not in taught:
                if edge.operand is None or edge.operand.lineno <= 0:
                    return None
                cuts[edge.operand] = None
    if not cuts or any(_inside_other_loss(program, one, e) for e in cuts):
        return None
    edits = [detach_at(program, e) for e in cuts]
    names = ", ".join(f"`{shown(program, e)}`" for e in cuts)
    return edits, [], f"detach {names}, which is only a factor of this loss"


def _inside_other_loss(program: Program, one: Stale, expression: ast.expr) -> bool:
    """Whether an operand stands in a statement that another backward goes through too."""
    statement = program.statement(expression)
    home = program.function(one.at)
    others = {
        n for b in backwards(one.run) if b is not one.event and b.loops == one.event.loops for n in b.visited
    }
    return statement in statements(program, home, others)


def _feed_again(program: Program, one: Stale) -> Plan | None:
    """Where the network that was stepped on only feeds: predict again from its detached output.

    A discriminator's loss that reuses the prediction of the generator's loss, after the generator's step.
    """
    event = one.event
    fed = leak_path(one.run, event)
    if fed is None or not fed[1] & set(one.step.optimizer.owned()):
        return None
    mine, foreign, targets = fed
    own = set(mine.owned())
    home = program.function(one.at)
    lines: list[str] = []
    first: ast.stmt | None = None
    for call in calls_in(event.visited):
        if not call.leaves & own or call.leaves & foreign or call.serial > one.step.serial:
            continue
        operands = operands_reaching(call, targets)
        if not operands:
            continue
        made = program.statement(call.site)
        nodes = {n for n in event.visited if n.call is call}
        late = statements(
            program,
            home,
            (
                n
                for n in event.visited
                if n.serial > one.step.serial and any(m in nodes for m in reachable_nodes([(n, True)]))
            ),
        )
        pairs = _bindings(made)
        if pairs is None or not late or program.function(made) is not home:
            return None
        first = late[0] if first is None or late[0].lineno < first.lineno else first
        for target, value in pairs:
            if not any(n is call.site for n in walk(value)):
                continue
            text = program.segment(value)
            for expression, held in operands:
                code = detached_code(program.segment(expression), expression, held)
                if code is None:
                    return None
                text = text.replace(program.segment(expression), code, 1)
            if not _means_the_same(program, made, value, late[0]):
                return None
            lines.append(f"{program.segment(target)} = {text}")
    if first is None:
        return None
    return (
        [insert(first, "before", "\n".join(lines))],
        [],
        "repeat the forward on the detached input after the step",
    )


def _repeat(
    program: Program,
    one: Stale,
    shared: list[ast.stmt],
    anchor: ast.stmt,
    readers: Iterable[ast.stmt] = (),
) -> list[str] | None:
    """The code that makes the shared predictions again, as far as the code after the step reads them.

    ``readers`` are statements that will be there as well.
    """
    lines: list[str] = []
    wanted = names_read_from(program, anchor, one).union(*map(names_read, readers))
    for statement in reversed(shared):
        pairs = _bindings(statement)
        if pairs is None:
            continue
        code: list[str] = []
        for target, value in pairs:
            names = {program.segment(n) for n in targets_in(target)}
            if wanted.isdisjoint(names):
                continue
            if not wanted >= names:
                return None  # It would bind anew what nobody asks for.
            text = _undetached(program, one, value)
            if text is None or not _means_the_same(program, statement, value, anchor):
                return None
            code.append(f"{program.segment(target)} = {text}")
            wanted |= {program.segment(n) for n in walk(value) if isinstance(n, (ast.Name, ast.Attribute))}
        lines = code + lines
    return lines or None


def names_read_from(program: Program, anchor: ast.stmt, one: Stale) -> set[str]:
    """What the statements from ``anchor`` to the failing backward read, as source text."""
    end = program.statement(one.at)
    function = program.function(anchor)
    found: set[str] = set()
    for node in walk(function):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            continue
        if anchor.lineno <= node.lineno <= max(end.end_lineno or 0, anchor.end_lineno or 0) or (
            program.function(end) is not function and node.lineno >= anchor.lineno
        ):
            found.add(program.segment(node))
    return found


def _bindings(statement: ast.stmt) -> list[tuple[ast.expr, ast.expr]] | None:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(statement.value, ast.Tuple):
        if len(statement.value.elts) != len(target.elts):
            return None
        return list(zip(target.elts, statement.value.elts))
    return [(target, statement.value)]


def _undetached(program: Program, one: Stale, value: ast.expr) -> str | None:
    """The text of a prediction, made from inputs that are not detached."""
    text = program.segment(value)
    for call in one.calls:
        if not any(n is call.site for n in walk(value)):
            continue
        for expression, _ in call.operands:
            inner = _without_detach(expression)
            if inner is not None:
                text = text.replace(program.segment(expression), program.segment(inner), 1)
    return text


def _means_the_same(program: Program, statement: ast.stmt, value: ast.expr, anchor: ast.stmt) -> bool:
    """Whether an expression of ``statement`` can be evaluated at ``anchor`` with the same result."""
    here, there = program.function(statement), program.function(anchor)
    if here is not there:
        names = names_read(value)
        return names <= {"self", "torch", "F", "nn"}
    read = names_read(value)
    between = _statements_from(here, statement.lineno + 1, anchor.lineno - 1)
    return not any(read & names_bound(part) for s in between for part in _own_parts(s))


def _statements_from(function: ast.AST, first: int, last: int) -> Iterator[ast.stmt]:
    """The statements of a function, nested ones too, that begin on the lines ``first`` to ``last``."""
    body = getattr(function, "body", [])
    work: list[ast.stmt] = list(body) if isinstance(body, list) else []
    while work:
        statement = work.pop()
        if statement.lineno <= last and (statement.end_lineno or 0) >= first:
            if statement.lineno >= first:
                yield statement
            work += suites(statement)


def _own_parts(statement: ast.stmt) -> list[ast.AST]:
    """What a statement holds that is no statement: all of it, or the head of a compound one."""
    return [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt)]


def _may_move(program: Program, statement: ast.stmt, step: ast.stmt, others: list[ast.stmt]) -> bool:
    """Whether ``statement`` may be executed after ``step`` instead of where it stands, if ``others`` are."""
    block = program.suite_around(statement)
    if step not in block or not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    between = block[block.index(statement) + 1 : block.index(step) + 1]
    bound, read = names_bound(statement), names_read(statement)
    for other in between:
        if names_bound(other) & (read | bound):
            return False
        if names_read(other) & bound and other not in others:
            return False
    return True


def _detach(program: Program, one: Stale, others: set[Node]) -> list[Edit]:
    """Detach what enters the first forward, where it leads into other networks."""
    moved = set(one.step.optimizer.owned())
    trained = {leaf for optimizer in one.run.optimizers for leaf in optimizer.state.owned()}
    edits: list[Edit] = []
    for call in one.calls:
        if not any(n.call is call for n in others):
            continue
        for expression, value in call.operands:
            assert isinstance(value, Value)
            roots = [(t.node, True) for t in tensors_in(value) if t.node is not None]
            leaves = {leaf for n in reachable_nodes(roots) for leaf, _, _ in n.leaves}
            # Data that requires grad is nobody's to train: a detach of it would only puzzle.
            if leaves & trained - moved:
                code = detached_code(program.segment(expression), expression, value)
                if code is not None:
                    edits.append(ReplaceExpression(Span.of(expression), code))
    return edits
