"""`retain_graph=True` stands on a backward whose graph no later backward uses.
It keeps activations in memory, and turns the clear error of a later mistake into silently wrong gradients.

    loss.backward(retain_graph=True)   =>   loss.backward()
    optimizer.step()                        optimizer.step()

The flag keeps every saved activation in memory until the last reference to the graph is gone. Without it,
whoever goes through the graph again gets the error "backward through the graph a second time".

When not to fix it: where code that gradfix cannot see goes through the graph again.

Preconditions, each because removing the flag is right only with a proof:

* the flag is written literally: a variable may be false already;
* whichever way undecided conditions go, no later `backward` or `autograd.grad` reaches a node that this one
  ran and that saved something: such a node would raise once it is freed;
* in a loop, every network of the graph is seen: an unknown one may keep a state from call to call, which is
  of use to it as long as the steps that follow do not move every parameter that went into it. It keeps none
  if in some iteration a backward without the flag ran an earlier call of it: this one would raise; nor does
  one of a library such as torchvision. The flag is of no use either to a state that outlives steps which
  move all that it may hold: the backward of a later call would raise. A file that calls or uses something
  whose name says that states start over (`net.reset_state()`, `net.hidden = None`) is not taken to have such
  ones;
* no list that outlives the iteration holds a part of the graph, where the loop takes items out of that list;
* `create_graph=True` is not given: it keeps the graph anyway, and the pair is the idiom of penalties;
* no function that the model cannot see is handed a tensor of this graph afterwards, and nobody outside has
  one in hand when the function that holds the call is over: as its result, in an object, a list or a
  variable of the file. He could traverse it, unless steps moved all that it was computed with.

By hand: drop `retain_graph=True`.

Effect: preserves. The gradients are the same, bit for bit.

Severity: warning, or an info where no variable holds on to the graph. It costs no time, and memory as long as
a variable holds the graph: mostly until the next forward has computed another one, so that two are there at
once. And it hides errors.
Clause: nothing is kept longer than it is used.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Hashable, Iterator

from gradfix.autograd.graph import Backward, Leaf, Node, Step, reachable_nodes
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, between, steps
from gradfix.autograd.values import Sequence, tensors_in
from gradfix.core.codemod import Effect, Finding, Fix, Severity
from gradfix.core.span import Span
from gradfix.core.syntax import walk
from gradfix.rules.clauses import KEPT, UNKNOWN, Verdict, breaches
from gradfix.rules.edits import drop_retain, note, receiver, retain_argument


def find(program: Program) -> Iterator[Finding]:
    """Report each `retain_graph=True` that is proved to be needless."""
    # Most files hold no such flag, and need not be gone through.
    lasting = "retain_" in program.text and not _renews(program.tree)
    for event in program.certain_observations(
        lambda run: needless(run, lasting), lambda e: e.site, raises=False
    ):
        assert isinstance(event.site, ast.Call)
        severity = None if _held(program, event) else Severity.INFO
        yield Finding(
            "needless-retain-graph",
            f"`retain_graph=True` keeps the graph of `{receiver(program, event)}`, "
            "and no later backward uses it",
            Span.of(event.site),
            (note(event.site, "no later backward goes through this graph"),),
            (Fix("drop retain_graph=True", Effect.PRESERVES, tuple(drop_retain(event))),),
            severity=severity,
        )


def _held(program: Program, event: Backward) -> bool:
    """Whether anything may hold the graph of a backward once its statement is over.

    Nothing does where all of it is computed in that statement.
    """
    statement = program.statement(event.site)
    within = set(walk(statement)) if isinstance(statement, ast.Expr) else set()
    return any(isinstance(node, ast.NamedExpr) for node in within) or any(
        bool(node.stack) or (node.call.site if node.call is not None else node.site) not in within
        for node in event.visited
    )


def needless(run: Run, lasting: bool = False) -> dict[Hashable, Backward]:
    """The backwards with the flag that no event of the run needs it for; every iteration must agree.

    ``lasting``: what a network that cannot be seen keeps from call to call, it keeps until the end.
    """
    every = list(backwards(run))
    if not any(event.retain is True for event in every):
        return {}  # All that follows is about the flag, and goes through every graph.
    returned = {node: set(reachable_nodes([(node, True)])) for node in run.returned}
    stateless = {_call(node) for node in _stateless(every)}
    if lasting:
        stateless |= _outdated(run, every)

    def judge(event: Backward) -> Backward | Verdict:
        if event.retain is not True or event.create_graph or retain_argument(event.site) is None:
            return UNKNOWN
        following = every[every.index(event) + 1 :]
        kept = {node for node in event.visited if node.raises_when_freed is not False}
        moved = _moved(run, event)
        useless = bool(moved) and moved.issuperset(event.reached)
        unseen = {node for node in event.visited if node.opaque and _call(node) not in stateless}
        vague = not all(_followed(event, run.called_from_outside).values()) or (
            bool(event.loops) and bool(unseen)
        )
        needed = (
            not event.certain
            or not event.roots
            or not event.visited  # How it gets from there to what it differentiates for cannot be seen.
            or event.failure is not None
            or any(node.maybe_freed for node in event.visited)
            or (vague and not useless and not _spent(run, event, unseen, moved))
            or any(node in kept for later in following for node in later.visited)
            or any(not later.roots for later in following)
            # Where it leads from there is not always seen; what it begins with is.
            or any(root in event.visited for later in following for root in later.roots)
            or bool(kept & run.escaped_since(event.serial))
            or _kept_in_a_list(run, event, kept)
            or (not useless and any(_survives(run, event, held) for held in returned.values() if held & kept))
        )
        return KEPT if needed else event

    return breaches(every, judge)


def _kept_in_a_list(run: Run, event: Backward, kept: set[Node]) -> bool:
    """Whether later iterations find a part of the graph in a list of which they take items out.

    The model runs few iterations; a later one than these may come to an item that they have passed over.
    """
    for (loop, loops), carried in run.carried.items():
        depth = len(loops) - 1
        if loops[:depth] != event.loops[:depth] or [at for at, _ in event.loops[depth : depth + 1]] != [loop]:
            continue
        if loops[depth][1] <= event.loops[depth][1]:
            continue
        for name, value in carried.items():
            if isinstance(value, Sequence) and _takes_from(loop, name):
                roots = [(tensor.node, True) for tensor in tensors_in(value) if tensor.node is not None]
                if not kept.isdisjoint(reachable_nodes(roots)):
                    return True
    return False


def _takes_from(loop: ast.AST, name: str) -> bool:
    """Whether code reads items of a list, by their place or one after the other."""
    for node in ast.walk(loop):
        holder = node.value if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) else None
        holder = node.iter if isinstance(node, (ast.For, ast.comprehension)) else holder
        if holder is not None and ast.unparse(holder) == name:
            return True
    return False


def _followed(event: Backward, inside: bool) -> dict[Node, bool]:
    """What a backward ran, with whether nothing unknown is on the way to it.

    A second derivative may leave out some of what the first one ran, and of an operand it may not be known
    whether it requires grad: that makes it uncertain what is traversed, but not who else could traverse it.
    From ``inside`` a program, operands of which nothing is known may have graphs that other functions made.
    """
    seen: dict[Node, bool] = {}
    work = [(root, True) for root in event.roots]
    while work:
        node, known = work.pop()
        if seen.get(node) is not None and (seen[node] or not known):
            continue
        seen[node] = known
        plain = node.op == "autograd.grad" or not (inside or node.foreign or node.opaque)
        work += [(e.node, known and (e.certain or plain)) for e in node.edges if e.node in event.visited]
    return seen


def _moved(run: Run, event: Backward) -> set[Leaf]:
    """The parameters that the steps after a backward move, before anything else is differentiated."""
    following = between(backwards(run), event.serial)
    end = next((later.serial for later in following), math.inf)
    moved: set[Leaf] = set()
    for step in between(steps(run), event.serial, end):
        known = not step.doubtful and step.optimizer.fused is False and not step.optimizer.external
        if step.loops == event.loops and known:
            moved.update(step.consumed)
    return moved


def _survives(run: Run, event: Backward, held: set[Node]) -> bool:
    """Whether somebody outside who holds a graph could traverse it after the steps that follow a backward.

    If they move every parameter that is in it, or one whose weights it saved, that raises "modified by an
    inplace operation", with the flag as without it.
    """
    moved = {
        leaf
        for step in between(steps(run), event.serial, math.inf)
        if not step.doubtful and step.optimizer.fused is False and not step.optimizer.external
        for leaf in step.consumed
    }
    leaves = {leaf for node in held for leaf, _, _ in node.leaves if leaf.requires is not False}
    return not (leaves and leaves <= moved)


def _call(node: Node) -> tuple[ast.AST, frozenset[Leaf]]:
    """The call of an unseen network, the same one in every iteration."""
    return node.site, frozenset(leaf for leaf, _, _ in node.leaves)


def _stateless(every: list[Backward]) -> set[Node]:
    """The calls of unseen networks that are shown to keep no graph from call to call.

    An earlier backward without the flag ran an earlier call of the network. Had a call gone on from a
    state which that one left, its backward would meet what is freed and raise, with its own flag or without.
    What a later iteration shows holds for the first one, before which nothing was run.
    """
    found: set[Node] = set()
    before: dict[Leaf, int] = {}
    """For each parameter, the first call on it that a backward before this one ran and freed."""
    for event in every:
        unseen = [node for node in event.visited if node.opaque]
        found.update(
            node
            for node in unseen
            if node.leaves
            if all(before.get(leaf, node.serial) < node.serial for leaf, _, _ in node.leaves)
        )
        if event.retain is False and event.create_graph is False and event.certain and event.failure is None:
            for node in unseen:
                for leaf, _, _ in node.leaves:
                    before[leaf] = min(before.get(leaf, node.serial), node.serial)
    return found


RENEWS = re.compile(
    r"reset(?!_?param)|renew|init_?(hidden|state)|(clear|zero|detach|repackage)_?(hidden|state|mem)"
)
"""Names of what lets the states of networks begin anew."""
STATES = re.compile(
    r"_?[hc]x?|_?((rnn|lstm|gru|cell|last|prev)_)?(hidden(_states?)?|carry|states?|mem|memory)"
)
"""Names of states."""


def _renews(tree: ast.Module) -> bool:
    """Whether a network that the file does not show may lose its state there, as far as names tell.

    Something is called that lets states begin anew, or what is named for one is got from it; an environment
    has no such state, nor has what a method has at hand as ``self``, which is seen.
    """
    for node in walk(tree):
        if isinstance(node, ast.Attribute):
            of = ast.unparse(node.value).lower()
            if of != "self" and "env" not in of:
                if STATES.fullmatch(node.attr) or RENEWS.search(node.attr.lower()):
                    return True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if RENEWS.search(node.func.id.lower()):
                return True
    return False


def _outdated(run: Run, every: list[Backward]) -> set[tuple[ast.AST, frozenset[Leaf]]]:
    """The calls of unseen networks whose states, if there are any, no later call can make use of.

    A state goes from one call of a network to the next one. Where steps have moved the parameters of all
    that it may hold in between, the backward of the later call would raise "modified by an inplace
    operation" when it comes there, and with every flag: a program that goes on has no such state. An
    optimizer that somebody handed in together with one network is taken to be for that.
    """
    found: set[tuple[ast.AST, frozenset[Leaf]]] = set()
    for number, event in enumerate(every):
        calls = {_call(node): node for node in event.visited if node.opaque}
        for later in every[number + 1 :] if calls.keys() - found else ():
            for node in later.visited:
                first = calls.get(_call(node)) if node.opaque else None
                if first is None or first.serial >= node.serial or _call(node) in found:
                    continue
                held = {
                    leaf
                    for at in reachable_nodes([(first, True)])
                    for leaf, _, _ in at.leaves
                    if leaf.requires is not False
                }
                inside = between(steps(run), event.serial, node.serial)
                if any(_moves(step, held, alone=len(calls) == 1) for step in inside):
                    found.add(_call(node))
    return found


def _moves(step: Step, parameters: set[Leaf], alone: bool) -> bool:
    """Whether a step moves all parameters; ``alone``: there is one network that nobody sees."""
    if step.optimizer.external:
        return alone and not parameters
    known = not step.doubtful and step.optimizer.fused is False
    return known and bool(parameters) and parameters <= step.consumed.keys()


def _spent(run: Run, event: Backward, unseen: set[Node], moved: set[Leaf]) -> bool:
    """Whether steps make all of a graph useless that somebody who is not seen may hold on to.

    A network that keeps a state from call to call, a function that stores what it is handed: they hold what
    they computed and what went into it. A traversal of that after the steps raises "modified by an inplace
    operation", with the flag as without it, if the steps move every parameter that is in it. Data that a
    penalty differentiates by is no parameter, and made anew for each.
    """
    held = reachable_nodes([(node, True) for node in event.visited if node in unseen or node.foreign])
    leaves = {leaf for node in held for leaf, _, _ in node.leaves if leaf.requires is not False}
    asked = {leaf for other in backwards(run) if not other.accumulates for leaf in other.reached}
    owned = {leaf for optimizer in run.optimizers for leaf in optimizer.state.owned()}
    leaves -= {leaf for leaf in asked - owned if leaf.created is not None and not run.external_optimizers}
    return bool(leaves) and leaves <= moved
