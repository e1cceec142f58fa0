"""A loss computes gradients for a network that no optimizer trains.
Nothing raises, and no step uses them: they cost memory and time in every iteration.

    y = r + gamma * target(s2).max(1)[0]      y = r + gamma * target(s2).detach().max(1)[0]
    loss = mse_loss(q(s)[a], y)           =>  loss = mse_loss(q(s)[a], y)
    loss.backward()                           loss.backward()

The output of a target network, a teacher or a reference policy is a constant of the loss. Where it is not
detached, each forward keeps its whole graph, and each backward goes through it and adds to gradients that no
step ever uses. So do the gradients of the weights of a network that only leads a loss to another one (a
perceptual loss): these should be frozen.

The layers that a network keeps in a plain list or dict are in no optimizer either: `parameters()` has what
is registered, by an attribute of its own, `nn.ModuleList` or `nn.ModuleDict`.

When not to fix it: where the network should be trained. Then give its parameters to an optimizer.

Preconditions:

* the network certainly gets gradients, and what the same backward leaves elsewhere is used; or it leaves
  nothing elsewhere, in an iteration in which an optimizer uses another loss;
* no optimizer owns any of its parameters, or none that steps once this has begun (a teacher that was trained
  before), or none that ever steps while the network is given its weights in another way; all optimizers are
  known with all that they own; nothing reads the gradients, and no unknown code has been given the network.

Layers in a plain list or dict are reported where an optimizer owns others of the network, and a loss
certainly gives gradients to these, that nothing uses.

All its results are detached, where nothing that is trained and no input that requires grad goes into the
calls, and nothing else differentiates these. Otherwise its parameters are frozen where it is put into eval
mode, before training begins. Either is done only where the network is a copy, has been given its weights
(`load_state_dict`, in-place writes) or is in eval mode. If nothing says so, nobody but its author knows
whether it is a constant, or was forgotten when the optimizer was made: the finding names both, unless a
gradient only passes through it on the way to another one, or somebody clears what it gets. It is reported
even so where the loss trains another network of the same class, and this one is not in eval mode.

By hand: detach the output of the network (`target(x).detach()`, or compute it under `torch.no_grad()`), or
give its parameters to an optimizer if it should be trained.

Effect: preserves.

Severity: warning. A part of each backward is done for nothing, and what no step uses adds up until somebody
does. Error where a loss reaches nothing else: whom it is for never learns.
Clause: what is meant for nobody costs nothing.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, field

from gradfix.autograd.graph import (
    Backward,
    InPlaceChange,
    Leaf,
    ModuleCall,
    Node,
    OptimizerState,
    reachable_nodes,
)
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    calls_in,
    detached_code,
    first_step,
    gradient_clears,
    operands_reaching,
    steps,
    steps_in,
)
from gradfix.autograd.values import Sequence, Tensor
from gradfix.core.codemod import (
    Claim,
    Edit,
    Effect,
    Finding,
    Fix,
    InsertStatement,
    ReplaceExpression,
    Severity,
)
from gradfix.core.span import Span
from gradfix.rules.edits import line, network, note, receiver, shown, within_file
from gradfix.rules.untrained import Unregistered, assignments, unregistered

Made = tuple[ast.AST, int]
"""What tells an optimizer from others in every run: where it is made, and the how-manieth it is there."""


@dataclass(eq=False)
class Wasted:
    """A network that nobody trains, and a backward that leaves gradients in it."""

    backward: Backward
    constant: str
    """Why the network is a constant; nothing if that is not known."""
    idle: set[Made] = field(default_factory=set)
    """The optimizers that own the network, and never step."""
    trained_before: bool = False
    """Whether an optimizer owns the network that has stepped, and never does so again."""
    calls: dict[ast.AST, ModuleCall] = field(default_factory=dict)
    """The calls that are differentiated, by place."""
    alone: bool = False
    """Whether the loss reaches nothing that anybody trains."""
    leads_on: bool = False
    """Whether a gradient goes on through a call to something that is trained, or somebody else needs it."""
    sibling: ModuleCall | None = None
    """A call of another network of its class, which the loss trains: this one is made to be trained, too."""

    written: bool = False
    """Whether the weights are loaded, or copied from others."""

    def merge(self, other: Wasted) -> None:
        """Add what another run shows."""
        self.written = self.written or other.written
        self.constant = self.constant or other.constant

    @property
    def first(self) -> ModuleCall:
        """The first of the calls."""
        return next(iter(self.calls.values()))


def find(program: Program) -> Iterator[Finding]:
    """Report each network without an optimizer that a loss is differentiated into."""
    for found in program.certain_observations(
        wasted, lambda one: one.backward.site, raises=False, merge=Wasted.merge
    ):
        # Another method may step an optimizer, but not on weights that are written in another way.
        if not found.idle or (found.written and found.idle.isdisjoint(_stepping(program))):
            yield _finding(program, found)
    for hidden in program.certain_observations(unregistered, lambda one: one.backward.site, raises=False):
        yield _hidden_finding(program, hidden)


def _stepping(program: Program) -> set[Made]:
    """The optimizers that step, in whatever run, on weights that are written as well."""
    return {
        made
        for run in (run for entry in program.entry_points for run in entry.runs)
        for state, made in _made(run).items()
        if any(step.optimizer is state for step in steps(run)) and _are_written(state.owned())
    }


def _made(run: Run) -> dict[OptimizerState, Made]:
    """How the optimizers of a run are told in another one."""
    count: Counter[ast.AST] = Counter()
    found: dict[OptimizerState, Made] = {}
    for state in (one.state for one in run.optimizers):
        found[state] = state.created, count[state.created]
        count[state.created] += 1
    return found


def wasted(run: Run) -> dict[Hashable, Wasted]:
    """By the place of its first call: the networks whose gradients no step can consume."""
    if run.external_optimizers or not run.optimizers or not all(o.state.in_view for o in run.optimizers):
        return {}
    stepping = {step.optimizer for step in steps(run)}
    owned = {leaf for o in run.optimizers for leaf in o.state.owned()}
    first: dict[ast.AST, int] = {}
    for event in backwards(run):
        first.setdefault(event.site, event.serial)
    made = _made(run)
    idle = [state for state in made if state not in stepping]
    idle_owned = {leaf for state in idle for leaf in state.owned()}
    read = {leaf for _, leaf in run.grad_reads}
    if None in read:
        return {}
    found: dict[object, Wasted] = {}
    needed = {node.call for b in backwards(run) if not b.accumulates for node in b.visited}
    failing = {node.call for b in backwards(run) if b.failure is not None for node in b.visited}
    for event in backwards(run):
        if not event.certain or not event.accumulates or event.failure is not None:
            continue
        if first_step(run, event) is None and not _trained_beside(run, event, owned):
            continue
        # Who has stepped in an earlier phase only consumes nothing of what comes after it.
        here, since = {loop for loop, _ in event.loops}, first[event.site]
        later = (s for s in steps(run) if s.serial > since or any(loop in here for loop, _ in s.loops))
        trained = {leaf for state in {s.optimizer for s in later} for leaf in state.owned()}
        inside: dict[ModuleCall, list[tuple[Node, bool]]] = {}
        for node, sure in event.visited.items():
            if node.call is not None:
                inside.setdefault(node.call, []).append((node, sure))
        for call in calls_in(event.visited):
            if call in failing or not call.leaves or not call.leaves.isdisjoint(trained | read):
                continue
            known = [leaf for leaf in call.leaves if leaf.requires is not None]  # Others may not be there.
            if not known or any(not event.reached.get(leaf) or leaf.unknown_grad for leaf in known):
                continue
            owners = {made[state] for state in idle if not call.leaves.isdisjoint(state.owned())}
            one = found.setdefault(call.module, Wasted(event, _constant(call), owners))
            one.trained_before = one.trained_before or not call.leaves.isdisjoint(owned - idle_owned)
            one.calls.setdefault(call.site, call)
            one.written = one.written or _are_written(call.leaves)
            one.alone = one.alone or first_step(run, event) is None
            behind = {leaf for node in reachable_nodes(inside[call]) for leaf, _, _ in node.leaves}
            one.leads_on = one.leads_on or call in needed or not behind <= call.leaves
            one.sibling = one.sibling or _sibling(call, event, trained)
    cleared = {leaf for zero in gradient_clears(run) for leaf in zero.leaves}
    return {
        one.first.site: one
        for one in found.values()
        if one.constant
        or one.idle
        or (one.sibling is not None and not one.idle and not one.first.leaves & cleared)
        or not (one.leads_on or one.first.leaves & cleared)
    }


def _sibling(call: ModuleCall, event: Backward, trained: set[Leaf]) -> ModuleCall | None:
    """A call, in the same loss, of another network of its class (of the project) that is trained."""
    made_of = getattr(call.module, "cls", None)
    if made_of is None or call.training is False:
        return None
    alike = (c for c in calls_in(event.visited) if getattr(c.module, "cls", None) is made_of)
    return next((c for c in alike if c.module is not call.module and c.leaves and c.leaves <= trained), None)


def _trained_beside(run: Run, event: Backward, owned: set[Leaf]) -> bool:
    """Whether all that a loss reaches is owned by nobody, and other losses of its iteration are consumed.

    If a step follows that finds nothing, its optimizer was meant for it: see step-without-gradients.
    """
    following = next((s for s in steps_in(run, event.loops) if s.serial > event.serial), None)
    return (
        bool(event.loops)
        and (following is None or bool(following.consumed))
        and owned.isdisjoint(event.reached)
        and run.differentiated.isdisjoint(event.reached)
        and any(step.consumed for step in steps_in(run, event.loops))
    )


def _constant(call: ModuleCall) -> str:
    """Why what a network computes is a constant, as far as anything says so."""
    if any(leaf.copied for leaf in call.leaves):
        return "it is a copy"
    if _are_written(call.leaves):
        return "its weights are copied or loaded, not trained"
    return "it is in eval mode" if call.training is False else ""


def _may_be_forgotten(found: Wasted) -> bool:
    """Whether a network in training mode, whose weights were written once, feeds one that is trained.

    A pretrained part that is to be trained on, and was left out of the optimizer, looks just so. What teaches
    is a copy, or is compared with what is trained, or is written again and again.
    """
    if found.leads_on or found.first.training is False or any(leaf.copied for leaf in found.first.leaves):
        return False
    changes = {e for leaf in found.first.leaves for e in leaf.storage.history if isinstance(e, InPlaceChange)}
    if any(change.loops for change in changes) or any(any(leaf.given) for leaf in found.first.leaves):
        return False
    calls = calls_in(found.backward.visited)
    inside = {node for node in found.backward.visited if node.call in found.calls.values()}
    others = (c for c in calls if c not in found.calls.values() and any(not leaf.copied for leaf in c.leaves))
    return any(operands_reaching(call, inside) for call in others)


def _are_written(weights: Collection[Leaf]) -> bool:
    return any(
        leaf.given or any(isinstance(e, InPlaceChange) for e in leaf.storage.history) for leaf in weights
    )


def _finding(program: Program, found: Wasted) -> Finding:
    call, event = found.first, found.backward
    name, loss = shown(program, network(call)), receiver(program, event)
    which = "that still steps " if found.trained_before else "that steps " if found.idle else ""
    notes = [
        *(note(site, f"no optimizer {which}has the parameters of `{name}`") for site in found.calls),
        note(event.site, "this backward computes gradients for them that no optimizer uses"),
    ]
    known = found.constant and not found.alone and not _may_be_forgotten(found)
    fixes = within_file((_frozen if found.leads_on else _detached)(program, found)) if known else ()
    if not fixes:
        remedy = f"freeze `{name}`" if found.leads_on else "detach the result"
        notes.append(
            note(call.site, f"{remedy} if it is not to be trained; if it is, give it to an optimizer")
        )
    if found.sibling is not None and not fixes:
        other = shown(program, network(found.sibling))
        notes.append(note(found.sibling.site, f"`{other}`, of the same class, is trained"))
    more = " any more" if found.trained_before else ""
    message = f"`{loss}` computes gradients for `{name}`, which no optimizer trains{more}"
    severity = Severity.ERROR if found.alone else None
    return Finding("unused-gradients", message, Span.of(call.site), tuple(notes), fixes, severity=severity)


def _hidden_finding(program: Program, hidden: Unregistered) -> Finding:
    """What is said of layers that their network has not registered."""
    call, name = hidden.call, hidden.attribute
    net, loss = shown(program, network(call)), receiver(program, hidden.backward)
    made = next((n for n in assignments(hidden) if line(n) > 0), None)
    kind, right = hidden.container, "ModuleList" if hidden.container == "list" else "ModuleDict"
    place: ast.expr | ast.stmt = call.site if made is None else made
    notes = (
        note(call.site, f"`{net}` runs these layers"),
        note(hidden.backward.site, f"the gradients that `{loss}` computes for them are used by no optimizer"),
    )
    message = f"`self.{name}` is a plain {kind} of layers: `{net}.parameters()` leaves them out"
    advice = f"make it an `nn.{right}`, or freeze the layers if they are not to be trained"
    return Finding("unused-gradients", message, Span.of(place), notes, severity=Severity.ERROR, advice=advice)


def _detached(program: Program, found: Wasted) -> Iterator[Fix]:
    """The results of the calls, without their graphs."""
    edits = []
    for call in found.calls.values():
        result = call.result
        if not isinstance(result, (Tensor, Sequence)):
            return
        code = detached_code(program.segment(call.site), call.site, result)
        if code is None:
            return
        edits.append(ReplaceExpression(Span.of(call.site), code))
    message = f"detach the output of `{shown(program, network(found.first))}`: {found.constant}"
    yield Fix(message, Effect.PRESERVES, tuple(edits), Claim())


def _frozen(program: Program, found: Wasted) -> Iterator[Fix]:
    """The network's parameters, frozen where it is put into evaluation mode before training begins."""
    mode = found.first.mode
    if mode is None or mode.training is not False or mode.loops or not isinstance(mode.site, ast.Call):
        return
    function, statement = mode.site.func, program.statement(mode.site)
    if not isinstance(function, ast.Attribute) or function.attr != "eval":
        return
    if isinstance(statement, ast.Expr) and statement.value is mode.site:
        name = program.segment(function.value)
    elif isinstance(statement, ast.Assign) and statement.value is mode.site and len(statement.targets) == 1:
        name = program.segment(statement.targets[0])
    else:
        return
    edit: Edit = InsertStatement(Span.of(statement), "after", f"{name}.requires_grad_(False)")
    yield Fix(f"freeze `{name}`: {found.constant}", Effect.PRESERVES, (edit,), Claim())
