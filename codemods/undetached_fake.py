"""A loss for one network also backpropagates into another network that only computed its input.
Autograd raises, or the other network is trained with the wrong gradients, or work is wasted.

    fake = G(z)                                    fake = G(z)
    d_loss = bce(D(fake), zeros) + ...        =>   d_loss = bce(D(fake.detach()), zeros) + ...
    d_loss.backward()                              d_loss.backward()
    optimizer_D.step()                             optimizer_D.step()

The discriminator's loss has no business in the generator. If it gets there, one of three things happens: its
backward frees (or a step in between modifies) the graph that the generator's own loss needs, and autograd
raises; or its gradients stay in the generator and the generator's optimizer uses them, pushing it the wrong
way; or they are cleared before that, and the backward through it was wasted.

Which network a loss is for is not read from names: it is the one whose optimizer steps first on its
gradients.

When not to fix it: where this loss should train both networks.

Preconditions:

* the loss reaches the other network only through its own one, whose call is where the detach goes; or its own
  one judges what the other makes, against the loss of that one: then a detach is left to hand where the loss
  also uses the fake in another way;
* nobody watches the gradient on the way by a hook;
* nobody computes gradients with respect to what would be detached (WGAN-div and the like need that graph). A
  penalty that does so with a tensor that it computes itself and marks with `requires_grad_()` gets a detached
  input. If that tensor requires grad only because of the fake in it, it is detached where it is computed and
  marked with `requires_grad_()`, if nothing else uses it;
* in a helper that serves the other network's loss too, the detach has no place: it goes on what the helper
  is given, or the helper's expression is written out at the call of this loss;
* the very prediction is not used for another loss (that is stale-forward);
* for the silent leak: the other optimizer also uses a loss of its own that goes through this network.

If the other network's output is only used after a detach, and the fix only saves work, the detach goes to
where the output is computed: otherwise a graph that no backward goes through stays in memory as long as the
variable.

Ways (`gradfix apply --way NAME`):

* detach, the default: right wherever it stands, also where the other network's own loss needs the same fake;
* no-grad: the fake is computed without a graph. Right only where nothing else needs its graph: the other
  network's loss makes a fake of its own. It saves what the forward of the other network keeps;
* freeze: the other network is frozen while it computes the fake, and trainable again after it. Right where
  no-grad is, and also where the fake is no variable, `D(G(z))`; all of its parameters are trainable then;
* reorder: the other network's phase comes first, with the weights from before this one's step, and this loss
  is cut off after it. Right where either order will do: no graph is kept beyond its phase;
* inputs: `backward(inputs=...)` says whose gradients are wanted. Right with a fake that is shared, if each
  loss has a prediction of its own. It needs torch 1.8, and the graph of the fake is kept until then.

By hand: detach the input of the network through which this loss should not train anything.

Effect: repairs where autograd raised, changes where a leak is closed, preserves where only work is saved.
`retain_graph=True` that was there only for this goes with it.

Severity: error, or a warning where only work is saved: a backward through the other network.
Clause: no other loss.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from gradfix.autograd.graph import Backward, Leaf, ModuleCall, Node, OptimizerState, Step, ZeroGrad
from gradfix.autograd.program import EntryPoint, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    calls_in,
    detached_code,
    expanded_operands,
    first_step,
    gradient_clears,
    operands_reaching,
    same_iteration,
    steps,
    steps_using,
    without_call,
)
from gradfix.autograd.values import Tensor, Value
from gradfix.core.codemod import Claim, Edit, Effect, Enclose, Finding, Fix, Note, ReplaceExpression, Way
from gradfix.core.span import Span
from gradfix.core.syntax import walk
from gradfix.rules.clauses import UNKNOWN, Verdict, breaches, optimizers_that_step, used_by_nobody
from gradfix.rules.diagnosis import Diagnosis, diagnose, leaking, reused
from gradfix.rules.edits import (
    constructed,
    drop_retain,
    insert,
    line,
    network,
    note,
    only_for,
    receiver,
    shown,
    stepped,
    torch_name,
    within_file,
)
from gradfix.rules.inlining import written_out
from gradfix.rules.intent.leak_paths import LeakPath, calls_between, leak_path, opponents
from gradfix.rules.intent.purpose import Evidence, meant_for, purpose
from gradfix.rules.phases import swap_phases
from gradfix.rules.targets import trained_target

DetachPoint = tuple[ModuleCall, ast.expr, Value]
"""The call of a network, and an operand of it that is to be detached."""


@dataclass(eq=False)
class Leak:
    """A loss that also reaches a network it should not train, and the consequence."""

    run: Run
    backward: Backward
    optimizer: OptimizerState
    foreign: set[Leaf]
    cuts: list[DetachPoint]
    effect: Effect
    failing: Backward | None = None
    step: Step | None = None
    cleared: ZeroGrad | None = None
    """What clears the gradients of a leak that nobody consumes."""
    asked: set[ast.expr] = field(default_factory=set)
    """Operands for which the script computes gradients: once detached, they have to require grad."""
    shared: tuple[ModuleCall, ...] = ()
    """If a helper serves both losses: its calls for the other loss, at the places of the cuts."""
    besides: bool = False
    """Whether the loss also uses what the other network has made beside its own network."""


def find(program: Program) -> Iterator[Finding]:
    """Report each loss that flows into a network that only feeds it."""
    seen: set[ast.AST] = set()
    for entry in program.entry_points:
        found = [
            *entry.certain_observations(raising, _failing_site, raises=True, merge=_take),
            *entry.certain_observations(silent, lambda leak: leak.backward.site, raises=False, merge=_take),
            *(
                leak
                for leak in entry.certain_observations(
                    wasted, lambda leak: leak.backward.site, raises=False, merge=_take
                )
                if not _never_stepped(entry, leak) and not _serves_others(entry, leak)
            ),
        ]
        for leak in found:
            if leak.backward.site not in seen:
                seen.add(leak.backward.site)
                if not _cut_where_computed(program, leak):
                    continue
                leak.shared = _needed_elsewhere(program, leak)
                finding = _finding(program, leak)
                if finding.fixes or leak.effect is not Effect.PRESERVES:
                    yield finding


def _owners(leak: Leak) -> set[ast.AST]:
    """Where the optimizers are made that own what a leak ends in."""
    owning = (o.state for o in leak.run.optimizers if not leak.foreign.isdisjoint(o.state.owned()))
    return {state.created for state in owning}


def _place(cut: DetachPoint) -> tuple[ast.AST, ...]:
    """Where a cut stands: its operand, by way of the calls of helpers that lead there."""
    call, expression, _ = cut
    return expression, *(site for site, _ in call.stack)


def _needed_elsewhere(program: Program, leak: Leak) -> tuple[ModuleCall, ...]:
    """By which calls a loss for the other network goes through a place of the cuts, in a helper for both."""
    sites = {call.site for call, _, _ in leak.cuts if call.stack}
    found: list[ModuleCall] = []
    for run in (run for entry in program.entry_points for run in entry.runs) if sites else ():
        for other in backwards(run):
            owning = meant_for(run, other)
            if owning is not None and owning.created in _owners(leak):
                found += [call for call in calls_in(other.visited) if call.site in sites]
    return tuple(found)


def _never_stepped(entry: EntryPoint, leak: Leak) -> bool:
    """Whether no run steps on what a leak ends in, which has an optimizer: it is that which is forgotten."""
    return _owners(leak).isdisjoint(optimizers_that_step(entry.runs))


def _serves_others(entry: EntryPoint, leak: Leak) -> bool:
    """Whether, in iterations that do without this loss, another one goes through what is to be detached.

    Where every run with this loss steps on what the leak ends in, that was seen already.
    """
    owners = _owners(leak)
    without = [run for run in entry.runs if owners.isdisjoint(optimizers_that_step([run]))]
    if not any(backward.site is leak.backward.site for run in without for backward in backwards(run)):
        return False
    places = {expression for _, expression, _ in leak.cuts}
    for run in entry.runs:
        iterations = {backward.loops for backward in backwards(run) if backward.site is leak.backward.site}
        for other in backwards(run):
            if other.loops not in iterations:
                operands = (e for call in calls_in(other.visited) for e, _ in call.operands)
                if not places.isdisjoint(operands):
                    return True
    return False


def _failing_site(leak: Leak) -> ast.AST:
    assert leak.failing is not None
    return leak.failing.site


def _take(leak: Leak, other: Leak) -> None:
    """Add the cuts of ``other``, the same leak in another branch."""
    places = set(map(_place, leak.cuts))
    leak.cuts += [cut for cut in other.cuts if _place(cut) not in places]


def raising(run: Run) -> dict[Hashable, Leak]:
    """Leaks that make autograd raise."""
    found: dict[Hashable, Leak] = {}
    for event in backwards(run):
        if diagnose(run, event) is Diagnosis.UNDETACHED:
            backward = leaking(run, event)
            assert backward is not None
            leak = _leak(run, backward, Effect.REPAIRS)
            if leak is not None:
                leak.failing = event
                _merge(found, leak)
                for other in _accomplices(run, leak):
                    _merge(found, other)
    return found


def _accomplices(run: Run, leak: Leak) -> Iterator[Leak]:
    """Further losses of the same iteration that flow through networks of their own into the same one."""
    for other in backwards(run):
        fed = leak_path(run, other) if other.loops == leak.backward.loops else None
        if fed is not None and fed.leaves & leak.foreign and any(opponents(run, other, fed)):
            more = _leak(run, other, leak.effect)
            if more is not None:
                more.failing = leak.failing
                yield more


def _merge(found: dict[Hashable, Leak], leak: Leak) -> None:
    """Leaks of one iteration into one network are one mistake: mending one would only uncover the next."""
    for known in found.values():
        if known.foreign & leak.foreign:
            _take(known, leak)
            return
    found[leak.backward.site] = leak


def silent(run: Run) -> dict[Hashable, Leak]:
    """Leaks whose gradients the other optimizer consumes together with those of its own loss."""

    def judge(backward: Backward) -> Leak | Verdict:
        path = _flowing(run, backward)
        step = None if path is None else _consuming(run, backward, path)
        leak = None if step is None else _leak(run, backward, Effect.CHANGES)
        return UNKNOWN if leak is None else replace(leak, step=step)

    return breaches(backwards(run), judge, _take)


def wasted(run: Run) -> dict[Hashable, Leak]:
    """Leaks whose gradients are always cleared before anybody consumes them."""

    def judge(backward: Backward) -> Leak | Verdict:
        path = _flowing(run, backward)
        clearing = UNKNOWN if path is None else used_by_nobody(run, backward, path.leaves)
        if isinstance(clearing, Verdict):
            return clearing
        leak = _leak(run, backward, Effect.PRESERVES)
        if leak is None or trained_target(run, backward) is not None:
            return UNKNOWN  # What is to be detached is the whole target.
        if any(n.call is c for _, n, _ in run.detached for c, _, _ in leak.cuts):
            return UNKNOWN  # A prediction that is detached for another loss is stale-forward's.
        return replace(leak, cleared=next(iter(clearing), None))

    return breaches(backwards(run), judge, _take)


def _flowing(run: Run, backward: Backward) -> LeakPath | None:
    """How a loss leaks that comes off, if it is known what each optimizer owns."""
    known = backward.failure is None and all(o.state.in_view for o in run.optimizers)
    return leak_path(run, backward) if known else None


def _consuming(run: Run, backward: Backward, path: LeakPath) -> Step | None:
    """The step of another optimizer that consumes a leak next to a loss of its own through this network."""
    mine, taking = path.optimizer, steps_using(run, [backward])
    first = next((step for step in taking if step.optimizer is mine), None)
    if first is None:
        return None
    known = ((other, purpose(run, other)) for other in opponents(run, backward, path))
    against = {
        other: its.optimizer
        for other, its in known
        if its is not None
        and (its.evidence is Evidence.FOOLS or first.serial < other.serial or first is not taking[0])
    }
    for step in taking:
        for held in (step.consumed.get(leaf, {}) for leaf in path.leaves if not step.doubtful):
            own = (other for other, meant in against.items() if meant is step.optimizer)
            if held.get(backward, (False,))[0] and any(held.get(other, (False,))[0] for other in own):
                return step
    return None


def _leak(run: Run, backward: Backward, effect: Effect) -> Leak | None:
    """The calls at which to cut, unless somebody needs the graph behind them."""
    fed = leak_path(run, backward)
    if fed is None:
        return None
    mine, foreign, targets = fed
    cuts: list[DetachPoint] = []
    asked: set[ast.expr] = set()
    calls = calls_between(backward, mine.owned(), foreign)
    for call in calls:
        # Where one of its own networks feeds another, the cut belongs before the first.
        operands = operands_reaching(call, targets, [c for c in calls if c is not call])
        if not operands:
            continue
        if reused(run, backward, call) or not run.hooked.isdisjoint(backward.visited):
            return None
        if any(_penalties(run, call)):
            # What is differentiated with respect to keeps its gradient; what it is computed of goes without.
            asked |= {expression for expression, _ in operands}
            operands = _handed_in(call, targets) or operands
        places = set(map(_place, cuts))
        found = [(call, expression, value) for expression, value in operands]
        cuts += [cut for cut in found if _place(cut) not in places]
    besides = not targets.isdisjoint(without_call(backward, {*calls}))
    return Leak(run, backward, mine, foreign, cuts, effect, asked=asked, besides=besides) if cuts else None


def _handed_in(call: ModuleCall, targets: set[Node]) -> list[tuple[ast.expr, Value]]:
    """What carries a graph into the function that calls a network, and differentiates by what it computes."""
    if not call.stack:
        return []
    _, given = call.stack[-1]
    return operands_reaching(
        replace(call, operands=[(expression, value) for value, expression in given]), targets
    )


def _penalties(run: Run, call: ModuleCall) -> Iterator[Backward]:
    """Where a call is differentiated with respect to something else than parameters."""
    return (b for b in backwards(run) if not b.accumulates and any(n.call is call for n in b.visited))


def _cut_where_computed(program: Program, leak: Leak) -> bool:
    """Cut what a penalty differentiates by where it is computed, if it requires grad by its graph only.

    ``x = share * real + (1 - share) * fake`` has to require grad of its own then. False if that has no place.
    """
    asked, cuts = leak.asked, leak.cuts
    leak.asked, leak.cuts = set(), []
    for call, expression, value in cuts:
        operands = [operand for operand in expanded_operands(call.operands) if operand[0] in asked]
        inline = any(operand is expression for operand, _ in operands)
        if not operands or (not inline and _asks_again(program, call, expression, value)):
            leak.cuts.append((call, expression, value))
            continue
        for operand, mixed in operands:
            computed = _mixed(program, leak.run, call, operand, mixed)
            if computed is None:
                return False
            leak.asked.add(computed)
            leak.cuts.append((call, computed, mixed))
    leak.cuts.sort(key=lambda cut: cut[1] in leak.asked)
    return True


def _mixed(program: Program, run: Run, call: ModuleCall, operand: ast.expr, value: Value) -> ast.expr | None:
    """What computes an operand, which is used for nothing but a penalty that is taken with respect to it."""
    if not isinstance(operand, ast.Name) or not isinstance(value, Tensor) or line(operand) <= 0:
        return None
    assignment = _computed(program, operand)
    if assignment is None or value.node is None or value.node.call is not None:
        return None
    allowed: set[ast.AST] = {operand}
    for penalty in _penalties(run, call):
        assert isinstance(penalty.site, ast.Call)
        given = [*penalty.site.args[1:2], *(k.value for k in penalty.site.keywords if k.arg == "inputs")]
        allowed |= {node for one in given for node in walk(one)}
    used = _used(program, assignment, operand.id)
    asked = used is not None and any(n in allowed and n is not operand for n in used)
    if used is None or not asked or not all(n in allowed or _without_graph(program, n) for n in used):
        return None
    return assignment.value


def _finding(program: Program, leak: Leak) -> Finding:
    expression = _first_place(leak)
    entering = leak.cuts[0][1] if leak.shared and line(leak.cuts[0][1]) > 0 else expression
    loss = receiver(program, leak.backward)
    name = stepped(program, leak.optimizer) or "its optimizer"
    operand = shown(program, entering)
    notes: list[Note] = [
        note(entering, f"`{operand}` goes into this network without `detach()`"),
        note(
            leak.backward.site,
            f"this backward is for `{name}`, but also goes through the graph of `{operand}`",
        ),
    ]
    if leak.effect is Effect.REPAIRS:
        assert leak.failing is not None and leak.failing.failure is not None
        failure = leak.failing.failure
        if failure.kind == "E1":
            who = "next iteration" if leak.failing.site is leak.backward.site else "other loss"
            why = f"whose graph is already freed when the {who} needs it"
            notes.append(note(leak.failing.site, "autograd raises here: the graph has been freed"))
        else:
            step = isinstance(failure.culprit, Step)
            what = "weights" if step else "saved tensors"
            why = f"whose {what} have been modified by then"
            if failure.culprit is not None:
                what = "this step modifies weights" if step else "this modifies a tensor"
                notes.append(note(failure.culprit.site, f"{what} that the graph needs"))
            notes.append(note(leak.failing.site, "autograd raises here: a saved tensor was modified"))
    elif leak.effect is Effect.CHANGES:
        assert leak.step is not None
        why = "and another optimizer uses the gradients"
        notes.append(note(leak.step.site, f"this step also uses gradients from `{loss}`"))
    else:
        why = "where the gradients are cleared unused: wasted work"
        if leak.cleared is not None and getattr(leak.cleared.site, "lineno", 0) > 0:
            notes.append(note(leak.cleared.site, f"this clears the gradients that `{loss}` computed there"))
    message = (
        f"`{operand}` is not detached: `{loss}` also backpropagates into the network that computed it, {why}"
    )
    return Finding(
        "undetached-fake",
        message,
        Span.of(expression),
        tuple(notes),
        within_file(_fixes(program, leak)),
        None if leak.failing is None or leak.failing.failure is None else leak.failing.failure.kind,
        ways=within_file(_ways(program, leak)),
        advice=f"detach `{operand}` wherever this loss uses it" if leak.besides else "",
    )


def _first_place(leak: Leak) -> ast.expr:
    """The operand of the first cut, as this file writes it where the call stands in another."""
    call, expression, value = leak.cuts[0]
    written = [e for _, args in reversed(call.stack) for v, e in args if v is value and e.lineno > 0]
    if leak.shared and not written:
        outermost = call.stack[-1][0]
        assert isinstance(outermost, ast.expr)
        return outermost if line(outermost) > 0 else expression
    return written[0] if (expression.lineno <= 0 or leak.shared) and written else expression


def _fixes(program: Program, leak: Leak) -> Iterator[Fix]:
    """Cut where the network is called; or in the caller of a helper that serves both losses."""
    if leak.besides or not all(cut[1] in leak.asked or _asks_again(program, *cut) for cut in leak.cuts):
        return
    inner = [(e, v) for _, e, v in leak.cuts]
    if not leak.shared and all(e.lineno > 0 for e, _ in inner):
        sources = _sources(program, inner) if leak.effect is Effect.PRESERVES else None
        if sources:
            yield from _fixes_at(program, leak, sources, [shown(program, e) for e, _ in inner])
        yield from _fixes_at(program, leak, inner)
    outer: list[tuple[ast.expr, Value]] = []
    for call, _, value in leak.cuts:
        handed = [(e, v) for _, args in call.stack for v, e in args if v is value and e.lineno > 0]
        if not handed:
            if leak.shared:
                yield from _fixes_in_place(program, leak)
            return
        outer += [place for place in handed[:1] if place[0] not in [e for e, _ in outer]]
    yield from _fixes_at(program, leak, outer)


def _asks_again(program: Program, call: ModuleCall, expression: ast.expr, value: Value) -> bool:
    """Whether a function that differentiates by what it computes says that this requires grad."""
    if any(operand is expression for operand, _ in expanded_operands(call.operands)) or line(call.site) <= 0:
        return True
    names = (getattr(node, "attr", getattr(node, "arg", "")) for node in walk(program.function(call.site)))
    return any(name in ("requires_grad", "requires_grad_") for name in names)


def _ways(program: Program, leak: Leak) -> Iterator[Fix]:
    """What else keeps the loss from the other network."""
    inner = [(e, v) for _, e, v in leak.cuts]
    if not leak.shared and not leak.asked and not leak.besides and all(line(e) > 0 for e, _ in inner):
        sources = _sources(program, inner)
        places = [program.statement(e) for e, _ in sources or inner]
        torch = torch_name(program, places[0])
        what = listed_names(program, [e for e, _ in inner])
        if sources and torch:
            edits: list[Edit] = [Enclose(Span.of(place), f"{torch}.no_grad()") for place in places]
            yield from _carried_out(
                program, leak, edits, f"compute {what} under {torch}.no_grad()", Way.NO_GRAD
            )
        frozen = _frozen(program, leak, places, [v for _, v in inner], whole=sources is not None)
        if frozen is not None:
            yield from _carried_out(program, leak, *frozen, Way.FREEZE)
        yield from _other_first(program, leak, inner)
    only = only_for(program, leak.backward, leak.optimizer, [call for call, _, _ in leak.cuts])
    if only is not None:
        loss, name = receiver(program, leak.backward), stepped(program, leak.optimizer) or "its optimizer"
        message = f"restrict the backward of `{loss}` to the parameters of `{name}`"
        yield Fix(message, leak.effect, (only,), _claim(leak), Way.INPUTS)


def _other_first(program: Program, leak: Leak, places: list[tuple[ast.expr, Value]]) -> Iterator[Fix]:
    """The other network's phase comes first, with the weights from before; this loss is cut off behind it."""
    run, mine = leak.run, leak.optimizer
    step = first_step(run, leak.backward)
    later = (
        (s for s in between(steps(run), step.serial) if not leak.foreign.isdisjoint(s.optimizer.owned()))
        if step
        else iter(())
    )
    other = next((s for s in later if s.loops == leak.backward.loops), None)
    if step is None or other is None or step.optimizer is not mine:
        return
    own = set(mine.owned())
    events: set[ast.AST] = {call.site for call in calls_in(leak.backward.visited) if call.leaves & own}
    events |= {b.site for b in backwards(run) if meant_for(run, b) is mine}
    events |= {z.site for z in gradient_clears(run) if own & set(z.leaves)} | {leak.backward.site}
    moves = swap_phases(program, events, step.site, other.site)
    detach = _detached(program, places, leak.asked)
    if moves is None or detach is None:
        return
    raises = leak.failing is not None
    claim = _claim(leak)._replace(
        unchanged=constructed(run, mine) if raises else (), beyond=False, same_forwards=False
    )
    what = f"update `{stepped(program, other.optimizer) or 'the other optimizer'}` first, and detach "
    message = what + listed_names(program, [expression for expression, _ in places])
    effect = Effect.REPAIRS if raises else Effect.CHANGES
    for fix in _carried_out(program, leak, [*moves, *detach], message, Way.REORDER):
        yield fix._replace(effect=effect, claim=claim)


def _frozen(
    program: Program, leak: Leak, places: list[ast.stmt], values: list[Value], *, whole: bool
) -> tuple[list[Edit], str] | None:
    """The network that feeds, frozen while it computes what only this loss uses, and trainable again after.

    ``whole``: each of the places computes nothing else. Where it stands within a larger expression, it has to
    be a call of the network, in the place of the operand.
    """
    edits: list[Edit] = []
    names: list[str] = []
    for place, value in zip(places, values):
        made = value.node if isinstance(value, Tensor) else None
        call = made.call if made is not None else None
        if call is None or not call.leaves or any(leaf.requires is not True for leaf in call.leaves):
            return None
        if line(call.site) <= 0 or program.statement(call.site) is not place:
            return None
        if not whole and call.site not in [expression for _, expression, _ in leak.cuts]:
            return None
        name = program.segment(network(call))
        names.append(name)
        edits.append(insert(place, "before", f"{name}.requires_grad_(False)"))
        edits.append(insert(place, "after", f"{name}.requires_grad_(True)"))
    every = " and ".join(f"`{name}`" for name in dict.fromkeys(names))
    return list(dict.fromkeys(edits)), f"freeze {every} while it computes this"


def listed_names(program: Program, expressions: list[ast.expr]) -> str:
    """The expressions as they stand in the file, each once."""
    return ", ".join(dict.fromkeys(f"`{shown(program, expression)}`" for expression in expressions))


def _fixes_in_place(program: Program, leak: Leak) -> Iterator[Fix]:
    """What a helper does, written where it is called, with a detach that its other callers must not have."""
    edits: list[Edit] = []
    names: list[str] = []
    others = {site for call in leak.shared for site, _ in call.stack}
    for call, expression, value in leak.cuts:
        site = call.stack[-1][0] if call.stack else None
        if not isinstance(site, ast.Call) or line(site) <= 0 or site in others:
            return
        written = written_out(
            program, site, expression, partial(detached_code, expression=expression, value=value)
        )
        if written is None:
            return
        edits.append(ReplaceExpression(Span.of(site), written))
        names += [f"write out `{shown(program, site)}` here, with `{shown(program, expression)}` detached"]
    yield from _carried_out(program, leak, edits, ", ".join(dict.fromkeys(names)))


def _sources(program: Program, places: list[tuple[ast.expr, Value]]) -> list[tuple[ast.expr, Value]] | None:
    """What computes the operands of all cuts, if nobody uses it but behind a cut.

    Detached there, its graph goes at once. A graph that no backward runs stays in memory for as long as the
    variable that leads to it.
    """
    computed: dict[ast.Assign, tuple[ast.Name, Value]] = {}
    for expression, value in places:
        assignment = _computed(program, expression)
        made = value.node if isinstance(value, Tensor) else None
        # What is only put together of others holds no graph of its own worth mentioning.
        if assignment is None or not isinstance(expression, ast.Name) or made is None or made.call is None:
            return None
        if not isinstance(assignment.value, ast.Call):
            return None
        computed.setdefault(assignment, (expression, value))
    behind = {e for e, _ in places} | {n for a in computed for n in walk(a.value)}
    for assignment, (name, _) in computed.items():
        used = _used(program, assignment, name.id)
        if used is None or not all(n in behind or _without_graph(program, n) for n in used):
            return None
    return [(assignment.value, value) for assignment, (_, value) in computed.items()]


def _computed(program: Program, expression: ast.expr) -> ast.Assign | None:
    """The assignment to a variable, before its use in the same block, with nothing in between."""
    if not isinstance(expression, ast.Name):
        return None
    statement = program.statement(expression)
    block = program.suite_around(statement)
    for before in reversed(block[: block.index(statement)]):
        if any(isinstance(n, ast.Name) and n.id == expression.id and _binds(n) for n in walk(before)):
            if isinstance(before, ast.Assign):
                if len(before.targets) == 1 and isinstance(before.targets[0], ast.Name):
                    return before
            return None
    return None


def _without_graph(program: Program, name: ast.Name) -> bool:
    """Whether a use asks for what a detached tensor has too: ``fake[0].detach().cpu()``, ``fake.shape``."""
    node: ast.AST = name
    while True:
        outer = program.parent(node)
        if isinstance(outer, ast.Attribute):
            if outer.attr in ("detach", "data", "shape", "size", "device", "dtype", "item"):
                return True
        elif not (isinstance(outer, ast.Subscript) and outer.value is node):
            return False
        node = outer


def _binds(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def _used(program: Program, assignment: ast.Assign, name: str) -> list[ast.Name] | None:
    """Where the value of an assignment is read; None if it may be read in a later iteration, or elsewhere."""
    scope = program.function(assignment)
    mentioned = [n for n in walk(scope) if isinstance(n, ast.Name) and n.id == name]
    end = (assignment.end_lineno or 0, assignment.end_col_offset or 0)
    begin = (assignment.lineno, assignment.col_offset)
    after = [n for n in mentioned if (n.lineno, n.col_offset) >= end]
    again = min((n for n in after if _binds(n)), key=lambda n: (n.lineno, n.col_offset), default=None)
    if again is None:
        # Bound nowhere else behind it: in a loop, what stands before it reads the value of the iteration
        # before.
        earlier = any((n.lineno, n.col_offset) < begin and not _binds(n) for n in mentioned)
        return None if earlier else after
    other = program.statement(again)
    if not isinstance(other, ast.Assign) or other not in program.suite_around(assignment):
        return None
    until = (other.end_lineno or 0, other.end_col_offset or 0)
    return [n for n in after if (n.lineno, n.col_offset) < until and not _binds(n)]


def _detached(
    program: Program, places: list[tuple[ast.expr, Value]], asked: set[ast.expr]
) -> list[Edit] | None:
    """The edits that detach what stands at some places; ``None`` where it cannot be."""
    edits: list[Edit] = []
    for expression, value in places:
        code = detached_code(program.segment(expression), expression, value)
        if code is None:
            return None
        code += ".requires_grad_()" if expression in asked else ""
        edits.append(ReplaceExpression(Span.of(expression), code))
    return edits


def _fixes_at(
    program: Program, leak: Leak, places: list[tuple[ast.expr, Value]], computed: list[str] | None = None
) -> Iterator[Fix]:
    """Detach at some places: operands, or what computes the variables of the names ``computed``."""
    detach = _detached(program, places, leak.asked)
    if detach is None:
        return
    names = computed or [shown(program, e) for e, _ in places]
    message = "detach " + ", ".join(dict.fromkeys(f"`{name}`" for name in names))
    if computed:
        message += " where it is computed" if len(set(names)) == 1 else " where they are computed"
    if len({e.lineno for e, _ in places} | {_first_place(leak).lineno}) > 1:
        message += " on line " + ", ".join(str(n) for n in sorted({e.lineno for e, _ in places}))
    if any(e in leak.asked for e, _ in places):
        message += ", and call `requires_grad_()` on the input of the gradient penalty"
    yield from _carried_out(program, leak, detach, message)


def _carried_out(
    program: Program, leak: Leak, detach: list[Edit], message: str, way: Way = Way.DETACH
) -> Iterator[Fix]:
    """The fixes that a detach comes to, with what need not be kept any more."""
    events = [leak.backward]
    failing = leak.failing
    if failing is not None and failing.failure is not None:
        events += [e for e in (failing, failing.failure.culprit) if isinstance(e, Backward)]
    graph = {n for e in events for n in e.visited}
    events += [
        b for b in backwards(leak.run) if same_iteration(b, leak.backward) and not graph.isdisjoint(b.visited)
    ]
    # The pair with create_graph=True is an idiom of its own.
    retained = {
        e.site: drop_retain(e) for e in events if e.accumulates and not e.create_graph and drop_retain(e)
    }
    for choice in _choices(list(retained.values())):
        suffix = " and drop retain_graph=True" if choice else ""
        if choice and len(choice) < len(retained):
            suffix += " on line " + ", ".join(str(line(site)) for site, e in retained.items() if e in choice)
        edits = [edit for part in choice for edit in part]
        yield Fix(message + suffix, leak.effect, (*detach, *edits), _claim(leak), way)


def _claim(leak: Leak) -> Claim:
    """What every way to keep the loss from the other network has to show."""
    failing = leak.failing
    if failing is not None and failing.failure is not None:
        return Claim(failing.failure.kind if failing.failure.kind != "E4" else None, line(failing.site))
    if leak.effect is Effect.CHANGES:
        return Claim(unchanged=constructed(leak.run, leak.optimizer))
    return Claim()


def _choices(retained: list[list[Edit]]) -> list[list[list[Edit]]]:
    """All of the retain_graph flags, then each alone, then none: the first that stays right is taken."""
    choices = [retained] if retained else []
    if len(retained) > 1:
        choices += [[one] for one in retained]
    return [*choices, []]
