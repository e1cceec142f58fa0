"""An optimizer steps, but its parameters, or some of them, get no gradient from any loss.
Nothing raises, the losses are printed, and the parameters never change.

    lossG = criterion(D(fake.detach()), ones)   =>   lossG = criterion(D(fake), ones)
    optimG.zero_grad()                               optimG.zero_grad()
    lossG.backward()                                 lossG.backward()
    optimG.step()                                    optimG.step()

The usual reasons: a `detach()` too many between a network and its loss; the network runs under `no_grad`, or
its result becomes numbers on the way; the optimizer was created with the parameters of another network, or
of a copy; a forgotten `backward()`. For a loss without any graph, see `loss-without-graph`.

When not to fix it: where code that gradfix cannot see fills `.grad`.

Preconditions:

* all parameters of the optimizer are known, were made here, and are not frozen at any time; no unknown
  function has had them, the optimizer, or something computed from them in hand; nothing reads or writes
  their gradients;
* in every run in which it steps, every loss that is backpropagated is known to its end, and none of them
  reaches, or may reach, one of its parameters;
* its networks are run in the loop of its steps, with what they compute reaching no loss; or all that the
  losses of its iteration reach is owned by no optimizer, in which case losses for others may reach its
  parameters if all that is cleared before each of its steps. Who just steps is none of these;
* or, whatever the losses for others reach: each step at that place comes after the clearing, in its own
  iteration, and no loss in between reaches its parameters; they are used in the iteration for what nobody
  differentiates, and no unknown code has been given that, or such a loss is for no other optimizer. Nor does
  the step call a closure, nor a condition decide what the optimizer is made from, nor are the networks that
  it owns and that the loss reaches both out of sight, for they may be one (where what is handed in is
  assumed to be a network, it is one of its own);
* or it trains others, and one network of its own is run in the loop whose parameters no loss reaches, in no
  run of any part of the file: what is computed with it loses its graph on the way into a loss that is
  backpropagated there (`z = dist.sample()`), and that loss is known to its end;
* where no backward is called at all, gradients are cleared in the loop, and networks run there with a graph;
  of those that a caller hands in, torch alone gets what they say, and not some function that may
  differentiate it;
* gradients that `autograd.grad` returns are put into no `.grad`, and nothing moves the weights by hand;
* where a function is called from outside and anything is backpropagated, the optimizer is made in it: its
  caller may differentiate as well.

Where the only loss before the step runs through another network whose argument is `x.detach()`, and `x` was
computed with the optimizer's parameters, the `.detach()` goes; a `sample()` that cuts off one network of
several becomes `rsample()`, where the distribution has it. Otherwise nothing is rewritten.

By hand: call `backward()` on the loss before the step; check that the loss is computed from these
parameters, without `detach`, `no_grad`, `.data`, `.item()` or a new tensor on the way, and that the
optimizer was created with the parameters of the network that is trained.

Effect: repairs where the optimizer trains nobody, changes where it trains others.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial

from gradfix.autograd.cuts import dead_terms, graphless
from gradfix.autograd.graph import (
    Backward,
    Leaf,
    ModuleCall,
    Node,
    OptimizerState,
    Step,
    begins_in_unseen_code,
    reachable_nodes,
)
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    calls_in,
    first_step,
    followed,
    gradient_clears,
    may_share,
    steps,
    touched,
    undifferentiated,
)
from gradfix.core.codemod import Claim, Effect, Finding, Fix, Note, ReplaceExpression
from gradfix.core.span import Span
from gradfix.core.syntax import undetached
from gradfix.rules.clauses import KEPT, breaches, step_before
from gradfix.rules.edits import (
    constructed_beside,
    line,
    network,
    note,
    receiver,
    shown,
    stepped,
    uncut,
    within_file,
)
from gradfix.rules.untrained import Untrained, trained_elsewhere, untrained


@dataclass(eq=False)
class Idle:
    """An optimizer that never finds a gradient, at its first step."""

    step: Step
    loss: Backward | None
    """What is backpropagated for it, as far as can be told: the last before the step. None: nothing is."""
    calls: list[ModuleCall]
    """Where its networks are run."""
    computed: ast.AST | None = None
    """Where something is computed with a graph, if nothing is backpropagated."""
    returned: bool = False
    """Whether that is its gradient, by ``autograd.grad``."""
    cuts: list[ast.Call] = field(default_factory=list)
    """Where what they compute is detached on its way into that loss."""
    alone: bool = False
    """Whether that loss is the only one of the iteration that the detached value could be for."""
    leaf: bool = False
    """Whether what is backpropagated is a leaf of its own, and leads nowhere."""
    astray: bool = False
    """Whether it reaches parameters that no optimizer owns, and none that one does."""
    beside: bool = False
    """Whether other losses are backpropagated, for others."""


def find(program: Program) -> Iterator[Finding]:
    """Report each optimizer whose steps never find a gradient."""
    reported: set[ast.AST] = set()
    for entry in program.entry_points:
        observe = partial(never_fed, within=entry.node)
        for idle in entry.certain_observations(
            observe, lambda i: i.step.site, raises=False, repeated=_starves
        ):
            chosen = idle.beside and _one_of_several(program, idle.step.optimizer.created)
            if not chosen and idle.step.site not in reported:
                reported.add(idle.step.site)
                yield _finding(program, idle)
        for part in entry.certain_observations(_parts, lambda one: one.step.site, raises=False):
            if not trained_elsewhere(program, part.step.optimizer, part.call.leaves):
                yield _part_finding(program, part)


def _parts(run: Run) -> dict[Hashable, Untrained]:
    """Networks of an optimizer that trains others, from which every loss is cut off."""
    terms = {one.cut.site for one in dead_terms(run).values()}  # Of these detached-term tells.
    found: dict[Hashable, Untrained] = {}
    for one in untrained(run):
        if one.cut is not None and one.cut.site not in terms and line(one.cut.site) > 0:
            found.setdefault(one.cut.site, one)
    return found


def _one_of_several(program: Program, made: ast.AST) -> bool:
    """Whether a condition decides what an optimizer is made of: of its branches, one is followed."""
    return line(made) > 0 and any(
        isinstance(outer, (ast.If, ast.IfExp)) and outer.orelse for outer in program.ancestors(made)
    )


def _starves(run: Run) -> bool:
    return not all(step.consumed for step in steps(run))


def never_fed(run: Run, within: ast.AST) -> dict[Hashable, Idle]:
    """The first steps of optimizers that never find a gradient, where it is known that none comes."""
    losses = [b for b in backwards(run) if b.accumulates]
    found: dict[Hashable, Idle] = {}
    if run.substituted or any(leaf is None for _, leaf in run.grad_reads):
        return found
    for optimizer in dict.fromkeys(step.optimizer for step in steps(run)) if losses else ():
        if optimizer.in_view:
            found |= breaches(optimizer.steps, lambda step: _starved(run, step, losses) or KEPT)
    if not all(map(followed, losses)):
        return found
    other_ways = touched(run)
    graphless_losses = graphless(run)  # Why these reach nobody is told of them.
    reached = {leaf for loss in losses for leaf in loss.reached}
    for optimizer in dict.fromkeys(step.optimizer for step in steps(run)):
        owned = set(optimizer.owned())
        if not owned.isdisjoint(other_ways if losses else other_ways - run.differentiated):
            continue
        if not losses:
            idle = _returned(run, optimizer, within) if backwards(run) else _forgotten(run, optimizer, within)
        else:
            idle = _idle(run, optimizer, losses) if _known(run, optimizer, within) else None
        if idle is None or (idle.loss is not None and idle.loss.site in graphless_losses):
            continue
        known = found.get(idle.step.site)
        if (idle.astray or owned.isdisjoint(reached)) and not (known and known.cuts):
            found[idle.step.site] = idle
    return found


def _starved(run: Run, step: Step, losses: list[Backward]) -> Idle | None:
    """A step with nothing differentiated for it since its gradients were cleared.

    Something is meant to be: its parameters are used in the same iteration for what nobody differentiates, or
    a loss comes in between that no other optimizer steps on.
    """
    owned, previous = set(step.optimizer.owned()), step_before(step)
    clearing = [z for z in between(gradient_clears(run), previous, step.serial) if owned.issubset(z.leaves)]
    if not clearing or clearing[-1].loops != step.loops or not step.loops or not owned:
        return None
    since = clearing[-1].serial
    if step.doubtful or not isinstance(step.site, ast.Call) or step.site.args or step.site.keywords:
        return None  # A closure differentiates, and so may what has had the parameters in hand.
    if any(since < at < step.serial and leaf in owned for at, leaf in run.grad_reads):
        return None
    there = list(between(losses, since, step.serial))
    if not all(_passes_by(run, loss, owned) for loss in there):
        return None
    own = [loss for loss in there if first_step(run, loss) is None]
    place = undifferentiated(run, step, owned, previous) if not own else None
    if place is None and not own:
        return None
    idle = Idle(step, own[-1] if own else None, [], place, beside=True, alone=len(own) == 1)
    idle.cuts = _cuts(run, own[-1], owned) if own else []
    return idle


def _passes_by(run: Run, loss: Backward, owned: set[Leaf]) -> bool:
    """Whether a loss certainly reaches none of some parameters; what cannot be seen is in other networks."""
    return (
        loss.certain
        and bool(loss.visited)  # Without a graph it raises.
        and loss.failure is None
        and all(loss.reached.values())
        and owned.isdisjoint(loss.reached)
        and not any(may_share(run, one, other) for one in loss.reached for other in owned)
        and not any(
            begins_in_unseen_code(node) and (node.call is None or not owned.isdisjoint(node.call.leaves))
            for node in loss.visited
        )
    )


def _forgotten(run: Run, optimizer: OptimizerState, within: ast.AST) -> Idle | None:
    """The first step of an optimizer for which gradients are cleared and networks run, if nothing else is."""
    known = _known(run, optimizer, within)
    if not known and (optimizer.escaped or run.escapes):
        return None
    owned = set(optimizer.owned())
    for step in optimizer.steps:
        here = len(step.loops)
        cleared = any(
            z.loops[:here] == step.loops and not owned.isdisjoint(z.leaves) for z in gradient_clears(run)
        )
        if step.loops and cleared and not step.doubtful:
            nodes = [n for n in run.nodes if n.loops[:here] == step.loops and n.serial < step.serial]
            place = _computed(run, nodes, owned) if known else _computed_of_external_optimizers(step, nodes)
            if place is not None:
                return Idle(step, None, [], place)
    return None


def _returned(run: Run, optimizer: OptimizerState, within: ast.AST) -> Idle | None:
    """The first step of an optimizer whose gradients ``autograd.grad`` returns, and nobody puts anywhere."""
    owned = optimizer.owned()
    if not _known(run, optimizer, within) or any(
        leaf.storage.history or leaf.storage.maybe for leaf in owned
    ):
        return None
    for step in optimizer.steps:
        given = (b for b in backwards(run) if b.loops == step.loops and b.serial < step.serial and b.certain)
        returned = next(
            (b for b in given if b.failure is None and run.differentiated.issuperset(owned)), None
        )
        if step.loops and returned is not None and not run.differentiated.isdisjoint(returned.reached):
            return Idle(step, None, [], returned.site, returned=True)
    return None


def _computed(run: Run, nodes: list[Node], owned: set[Leaf]) -> ast.AST | None:
    """Where a network whose parameters are owned is run with a graph."""
    graphs = {node.call for node in nodes}
    return next((c.site for c in run.module_calls if c in graphs and not owned.isdisjoint(c.leaves)), None)


def _computed_of_external_optimizers(step: Step, nodes: list[Node]) -> ast.AST | None:
    """Where something is computed of what a network says that nobody can see, and by torch alone.

    An unknown function that has it in hand may differentiate it, and so may a step that is given something.
    """
    if any(node.foreign for node in nodes) or not isinstance(step.site, ast.Call) or step.site.args:
        return None
    return next((n.site for n in nodes if any(edge.node.opaque for edge in n.edges)), None)


def _known(run: Run, optimizer: OptimizerState, within: ast.AST) -> bool:
    """Whether all of an optimizer's parameters are known, and were made where everything can be seen."""
    owned = optimizer.owned()
    if not owned or not optimizer.in_view:
        return False
    if any(s.doubtful or s.consumed for s in optimizer.steps):
        return False
    if any(leaf.requires is not True or leaf.created is not None or leaf.unknown_grad for leaf in owned):
        return False
    if optimizer.original is not optimizer or any(
        o.state.original is optimizer and o.state is not optimizer for o in run.optimizers
    ):
        return False  # It is replaced, and the steps are another one's.
    return not run.called_from_outside or any(node is optimizer.created for node in ast.walk(within))


def _idle(run: Run, optimizer: OptimizerState, losses: list[Backward]) -> Idle | None:
    """What shows that an optimizer is meant to train, and for which loss."""
    owned = set(optimizer.owned())
    for step in optimizer.steps:
        if not step.loops:
            continue
        before = [b for b in losses if b.loops == step.loops and b.serial < step.serial]
        if not before:
            continue
        loss = before[-1]
        mine = [c for c in run.module_calls if c.leaves & owned and c.loops[: len(step.loops)] == step.loops]
        elsewhere = {leaf for o in run.optimizers for leaf in o.state.owned()}
        since = max((s.serial for s in steps(run) if s.serial < step.serial), default=-1)
        idle = Idle(step, loss, mine)
        idle.leaf = not loss.roots and bool(loss.reached)
        fresh = {leaf for b in before if b.serial > since for leaf in b.reached}
        # A gradient that accumulates in a copy is none that ``autograd.grad`` gives of it.
        looked_at = {leaf for _, leaf in run.grad_reads} | {f for f in run.differentiated if not f.copied}
        idle.astray = bool(fresh) and fresh.isdisjoint(elsewhere | looked_at) and not idle.leaf
        idle.cuts = _cuts(run, loss, owned)
        idle.alone = [b.serial > since for b in before].count(True) == 1
        return idle if mine or idle.astray else None
    return None


def _cuts(run: Run, loss: Backward, owned: set[Leaf]) -> list[ast.Call]:
    """The arguments ``x.detach()`` of networks, and of comparisons, that keep a loss from some parameters."""
    cut = {
        site
        for _, node, site in run.detached
        if any(
            sure and leaf in owned
            for n, sure in reachable_nodes([(node, True)]).items()
            for leaf, _, _ in n.leaves
        )
    }
    given = [expression for call in calls_in(loss.visited) for expression, _ in call.operands]
    beside = [
        getattr(node.graphless_operand[1], "detached_from", None)
        for node in loss.visited
        if node.graphless_operand is not None
    ]
    given += [one[1] for one in beside if one is not None]
    found = [e for e in given if e in cut and isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute)]
    return [e for e in dict.fromkeys(found) if isinstance(e, ast.Call)]


def _finding(program: Program, idle: Idle) -> Finding:
    name = stepped(program, idle.step.optimizer) or "the optimizer"
    assert isinstance(idle.step.site, (ast.expr, ast.stmt))
    if idle.beside:
        return _cleared_finding(program, idle, name)
    if idle.returned and idle.computed is not None:
        return Finding(
            "step-without-gradients",
            f"`{name}.step()` never finds a gradient: `autograd.grad` returns gradients without filling "
            "`.grad`",
            Span.of(idle.step.site),
            (
                note(idle.computed, "this returns the gradients"),
                note(idle.step.site, "this step looks for them in `.grad`, and updates nothing"),
            ),
            advice="call `backward()`, or put each gradient into the `.grad` of its parameter",
        )
    if idle.loss is None:
        return Finding(
            "step-without-gradients",
            f"`{name}.step()` never finds a gradient: `backward()` is never called",
            Span.of(idle.step.site),
            (
                *_computed_note(idle, "this builds a graph"),
                note(idle.step.site, "no `backward()` comes before this step, which updates nothing"),
            ),
            advice="call `backward()` on the loss before the step",
        )
    loss = receiver(program, idle.loss)
    notes: list[Note] = []
    for cut in idle.cuts:
        notes.append(note(cut, f"the gradient of `{loss}` ends here, before the parameters of `{name}`"))
    if not idle.cuts:
        made = idle.step.optimizer.created
        if getattr(made, "lineno", 0) > 0:
            notes.append(note(made, "it keeps the parameters that exist here"))
        for call in idle.calls[:1]:
            if call.site.lineno > 0:
                notes.append(note(call.site, "the result computed with them here enters no loss"))
    if idle.leaf:
        notes.append(note(idle.loss.site, f"`{loss}` has no graph: its backward reaches no parameter"))
    elif idle.astray:
        notes.append(note(idle.loss.site, f"`{loss}` gives gradients only to parameters of no optimizer"))
    else:
        notes.append(note(idle.loss.site, f"none of its parameters gets a gradient from `{loss}`"))
    notes.append(note(idle.step.site, "this step finds no gradient and updates nothing"))
    assert isinstance(idle.step.site, ast.Call)
    return Finding(
        "step-without-gradients",
        f"`{name}.step()` never finds a gradient: "
        + (
            f"`{loss}` gives gradients only to parameters of no optimizer"
            if idle.astray
            else "its parameters get none from any loss"
        ),
        Span.of(idle.step.site),
        tuple(notes),
        _fixes(program, idle),
        advice="create the optimizer with the parameters that the loss should train" if idle.astray else "",
    )


def _computed_note(idle: Idle, words: str) -> list[Note]:
    """What is said of where something is computed, if that is in this file."""
    return [note(idle.computed, words)] if idle.computed is not None and line(idle.computed) > 0 else []


def _cleared_finding(program: Program, idle: Idle, name: str) -> Finding:
    """What is said of a step that nothing reaches since the gradients were cleared, whatever others do."""
    assert isinstance(idle.step.site, ast.Call)
    notes = _computed_note(idle, f"computed with the parameters of `{name}`, and no backward uses it")
    if idle.loss is not None:
        loss = receiver(program, idle.loss)
        ends = f"the gradient of `{loss}` ends here, before the parameters of `{name}`"
        notes = [note(cut, ends) for cut in idle.cuts]
        notes.append(note(idle.loss.site, f"none of its parameters gets a gradient from `{loss}`"))
    words = "since the gradients were cleared, no `backward()` has computed one for this step"
    return Finding(
        "step-without-gradients",
        f"`{name}.step()` never finds a gradient: none is computed between the clearing and the step",
        Span.of(idle.step.site),
        (*notes, note(idle.step.site, words)),
        _fixes(program, idle),
        advice="" if idle.loss is not None else "call `backward()` on the loss before the step",
    )


def _part_finding(program: Program, part: Untrained) -> Finding:
    """What is said of a network that gets no gradient, while others of the same optimizer do."""
    assert part.cut is not None and part.backward is not None
    name = stepped(program, part.step.optimizer) or "the optimizer"
    net, loss = shown(program, network(part.call)), receiver(program, part.backward)
    cut = part.cut.site
    assert isinstance(cut, (ast.expr, ast.stmt))
    notes = (
        note(part.call.site, f"`{net}` belongs to `{name}`, and is used here"),
        note(cut, f"the gradient of `{loss}` ends here, before the parameters of `{net}`"),
        note(part.step.site, f"this step finds no gradient for `{net}` and does not update it"),
    )
    message = f"`{name}.step()` never finds a gradient for `{net}`: the graph of `{loss}` ends before it"
    edit = uncut(program, part.cut)
    fixes = []
    if edit is not None:
        words, edits = edit
        unchanged = constructed_beside(part.run, part.step.optimizer)
        fixes.append(Fix(words, Effect.CHANGES, edits, Claim(unchanged=unchanged, losses="rerouted")))
    return Finding("step-without-gradients", message, Span.of(cut), notes, within_file(fixes))


def _fixes(program: Program, idle: Idle) -> tuple[Fix, ...]:
    if len(idle.cuts) != 1 or not idle.alone or idle.loss is None:
        return ()
    (cut,) = idle.cuts
    kept = undetached(cut)
    if cut.lineno <= 0 or kept is None:
        return ()
    edit = ReplaceExpression(Span.of(cut), program.segment(kept))
    words = f"use `{shown(program, kept)}` without `detach()`"
    return within_file([Fix(words, Effect.REPAIRS, (edit,), Claim(unchanged=(), losses="rerouted"))])
