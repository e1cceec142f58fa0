"""The open world: what an entry point is handed, and what holds whoever calls it.

A training step whose networks and optimizers come from out of sight is followed in *worlds*. Roles come from
use: what is called on data, and whose result a backward goes through, is a network; what is stepped and
cleared is an optimizer. Which optimizer may own which network follows from axioms:

- each optimizer owns something that a loss before one of its steps reaches;
- a term of a loss trains something: a term that reaches one network, beside those that other terms train, is
  there for that one, and the optimizer that steps next owns it;
- an optimizer that is made of a network owns it;
- no two optimizers own the same network.

What these axioms leave open is followed in every way; names choose only between worlds that train the same
networks. A mistake is reported if it is one in all of these worlds, with what they have in common as its
assumption.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Node, OptimizerState, Step, reachable_nodes
from gradfix.autograd.model_ledger import terms_of
from gradfix.autograd.run import Run
from gradfix.autograd.symbols import SCHEDULED, Given, Key, Role, Search, Use, World
from gradfix.core.syntax import last_name

ROUNDS = 8
"""How often roles are inferred again, with the roles that were found: a network's result is data no more."""
WORLDS = 6
"""How many worlds are followed; an entry point that has more is not followed."""


class Assumption(NamedTuple):
    """The worlds of an entry point, and what they have in common, for people."""

    worlds: list[World]
    text: str


def assume(explore: Callable[[World], Run]) -> Assumption | None:
    """The worlds of an entry point, which ``explore`` runs in one; None where there is nothing to assume."""
    world, rounds = World(), 0
    while True:
        run = explore(world)
        found = {**world.roles, **roles_in(run, world.roles)}
        if found == world.roles:
            if world.search is Search.HEADS or _is_explained(run, world.search):
                break
            world = replace(world, search=Search(world.search + 1))
        else:
            assert run.symbols is not None
            used = {key: run.symbols.names[key] for key in run.symbols.used}
            world = replace(world, roles=found, names={**used, **world.names})
        run.release()
        rounds += 1
        if rounds > ROUNDS:
            return None
    assert run.symbols is not None
    assumed = world.roles or run.symbols.handed_back
    if not assumed or run.symbols.gradients_written:
        run.release()
        return None
    inference = Ownership(run)
    worlds = inference.worlds()
    text = inference.text(worlds) if worlds else ""
    run.release()
    return Assumption(worlds, text) if worlds else None


def _is_explained(run: Run, search: Search) -> bool:
    """Whether it is known what each loss reaches, and, of methods as well, whether the axioms can hold."""
    if not all(map(is_followed, _losses(run))):
        return False
    return search is Search.CALLED or bool(Ownership(run).worlds())


def _losses(run: Run) -> list[Backward]:
    return [event for event in run.events if isinstance(event, Backward) and event.accumulates]


def is_followed(loss: Backward) -> bool:
    """Whether it is known what a loss reaches, or why it reaches nothing."""
    if loss.failure is not None:
        return loss.failure.kind != "E3" or loss.lost is not None
    return loss.error_expected or (loss.certain and any(loss.reached.values()))


# -- roles ------------------------------------------------------------------------------------

OF_NETWORKS = frozenset({"parameters", "named_parameters", "train", "eval", "modules", "named_modules"})
"""Methods that only networks have, among what carries no data."""


ANNOTATED = {"Module": Role.NETWORK, "Optimizer": Role.OPTIMIZER}
"""What annotations of parameters say, by their last name: ``nn.Module``, ``torch.optim.Optimizer``."""


def roles_in(run: Run, known: Mapping[Key, Role]) -> dict[Key, Role]:
    """The roles that a run gives evidence of, beside those that are known.

    What has only been called on data is a network if nothing is known to be one that has computed the data:
    it is asked about when there is no better evidence any more.
    """
    assert run.symbols is not None
    uses: dict[Key, list[Use]] = {}
    for use in run.symbols.uses:
        uses.setdefault(use.key, []).append(use)
    differentiated = {node for event in run.events if isinstance(event, Backward) for node in event.visited}
    # Only what has a graph needs to be detached.
    differentiated |= set(reachable_nodes([(node, True) for _, node, _ in run.detached]))
    roles: dict[Key, Role] = {}
    for key, of in uses.items():
        if _is_optimizer(run, key, of):
            roles[key] = Role.OPTIMIZER
        elif _is_declared(of):
            roles[key] = Role.NETWORK
    roles.update(dict.fromkeys(_only_stepped(run), Role.OPTIMIZER))
    for key in run.symbols.keys.values():
        if isinstance(key, ast.arg) and key.annotation is not None:
            kind = ANNOTATED.get(last_name(key.annotation))
            roles.update({key: kind} if kind is not None else {})
    evidence = {Given.DATA: differentiated}
    if run.symbols.world.search > Search.CALLED:
        evidence[Given.COMPUTED] = differentiated
    if run.symbols.world.search is Search.HEADS:
        evidence[Given.GRAPH] = _unexplained(run)
    for given, nodes in evidence.items():
        if roles.keys() <= known.keys():
            called = (key for key, of in uses.items() if _is_called_on(given, of, nodes))
            own = (key for key in called if not run.symbols.held_under(key))
            roles.update((key, Role.NETWORK) for key in own if key not in roles)
    return roles


def _unexplained(run: Run) -> set[Node]:
    """What losses go through that reach no network, or fewer than optimizers step on them."""
    ownership = Ownership(run)
    losses = [loss for loss in _losses(run) if not is_followed(loss)]
    for group, terms in ownership.sources():
        if len(frozenset[Key]().union(*terms)) < len(group.stepping):
            losses += group.losses
    return {node for loss in losses for node in loss.visited}


def _only_stepped(run: Run) -> Iterator[Key]:
    """What is stepped first after a loss that no optimizer is stepped for; a schedule is stepped later."""
    assert run.symbols is not None
    losses = [loss.serial for loss in _losses(run)]
    for start, end in zip(losses, [*losses[1:], math.inf]):
        if not any(isinstance(event, Step) and start < event.serial < end for event in run.events):
            stepped = (
                u.key for u in run.symbols.uses if u.method == "step" and u.plain and start <= u.serial < end
            )
            yield from itertools.islice(stepped, 1)


def _is_optimizer(run: Run, key: Key, uses: Iterable[Use]) -> bool:
    """Whether something is scheduled, or cleared and stepped, if only in a branch that is not taken here."""
    assert run.symbols is not None
    methods = {use.method for use in uses if use.method != "step" or use.plain}
    cleared = "zero_grad" in methods or (key, "param_groups") in run.symbols.names
    stepped = "step" in methods or (
        not _is_used_as_network(uses) and run.relevance.steps_on(run.symbols.names[key])
    )
    return SCHEDULED in methods or (stepped and cleared)


def _is_used_as_network(uses: Iterable[Use]) -> bool:
    """Whether something is called, or has methods that optimizers do not have."""
    return any(not use.method or use.method in OF_NETWORKS for use in uses)


def _is_declared(uses: Iterable[Use]) -> bool:
    """Whether something has methods that only networks have.

    What is only ever called on the results of networks is a criterion, which has no parameters as a rule.
    """
    called = [use for use in uses if not use.method]
    declared = any(use.method in OF_NETWORKS and use.plain for use in uses)
    return declared and (not called or any(use.given is not Given.GRAPH for use in called))


def _is_called_on(given: Given, uses: Iterable[Use], differentiated: set[Node]) -> bool:
    """Whether something is called on data, and a backward goes through the result."""
    return any(use.given is given and use.result in differentiated for use in uses if not use.method)


# -- owners -----------------------------------------------------------------------------------


@dataclass(eq=False)
class _Group:
    """Losses that follow each other, and the optimizers that step after them, before the next loss."""

    losses: list[Backward] = field(default_factory=list)
    stepping: dict[OptimizerState, None] = field(default_factory=dict)


class Ownership:
    """Which optimizer may own which network, as far as a run tells in which every network is trainable."""

    def __init__(self, run: Run) -> None:
        assert run.symbols is not None
        self.run = run
        self.symbols = run.symbols
        blocks = self.symbols.blocks
        self.network = {leaf: key for key, block in blocks.items() for leaf in block.family()}
        self.network.update((block, key) for key, block in blocks.items())
        self.optimizer = {state: key for key, state in self.symbols.states.items()}
        self.groups = list(_groups(run))
        self.owners: dict[Key, Key] = {}
        """What follows from the axioms alone."""

    def worlds(self) -> list[World]:
        """The worlds that the axioms admit; none if there are too many, or none.

        What an optimizer owns that steps only in a branch which is not taken here cannot be told.
        """
        if not all(state.steps for state in self.optimizer):
            return []
        sources = self.sources()
        self._made_of_networks()
        self._by_terms(sources)
        free: dict[Key, list[Key | None]] = {}
        for group, terms in sources:
            stepping = [self.optimizer[state] for state in group.stepping if state in self.optimizer]
            reached = frozenset[Key]().union(*terms)
            for key in filter(reached.__contains__, self.symbols.blocks):
                if key not in self.owners and not self._owned_in_sight(key):
                    if stepping:
                        known = free.setdefault(key, [None])
                        known += [one for one in stepping if one not in known]
        found = [
            owners
            for choice in itertools.islice(itertools.product(*free.values()), 4096)
            if self._admissible(owners := {**self.owners, **dict(zip(free, choice))}, sources)
        ]
        found = self._as_named(found)
        if not found or len(found) > WORLDS:
            return []
        of = replace(self.symbols.world, search=Search.CALLED)
        before = self._gradients_before()
        return [replace(of, owners=owners, entered_with_gradients=before) for owners in found]

    def _as_named(self, found: list[dict[Key, Key | None]]) -> list[dict[Key, Key | None]]:
        """Those of some worlds in which most optimizers are named for the networks that they own.

        Names choose only between worlds in which the same networks are trained: by whom.
        """
        trained = {frozenset(key for key, owner in owners.items() if owner is not None) for owners in found}
        if len(found) < 2 or len(trained) > 1:
            return found
        names = self.symbols.names
        scores = [
            sum(_alike(names[key], names[owner]) for key, owner in owners.items() if owner is not None)
            for owners in found
        ]
        best = max(scores)
        return [owners for owners, score in zip(found, scores) if score == best]

    def text(self, worlds: list[World]) -> str:
        """What the worlds have in common, for people."""
        names = self.symbols.names
        by_world = [world.owners or {} for world in worlds]
        owned: dict[Key, dict[Key, int]] = {}
        for owners in by_world:
            for network, owner in owners.items():
                if owner is not None:
                    of = owned.setdefault(owner, {})
                    of[network] = of.get(network, 0) + 1
        parts = []
        for owner, networks in owned.items():
            always = [key for key, count in networks.items() if count == len(worlds)]
            listed = " and ".join(f"`{names[key]}`" for key in always or networks)
            parts.append(f"`{names[owner]}` updates {'' if always else 'at least one of '}{listed}")
        parts += [f"`{names[key]}` steps the optimizer that it is made of" for key in self.symbols.wrappers]
        parts += [f"`{function}` returns what it is handed" for function in self.symbols.handed_back]
        elsewhere = [key for key in self.symbols.blocks if all(key not in owners for owners in by_world)]
        if elsewhere and not parts:
            parts.append(" and ".join(f"`{names[key]}`" for key in elsewhere) + " can be trained")
        states = self.symbols.states
        of_known = [names[key] for key, state in states.items() if key not in owned and state.leaves]
        parts += [f"`{name}` updates the network that it is made of" for name in of_known]
        if not parts:
            parts = [f"`{names[key]}` is an optimizer" for key in states]
        return ", and ".join(parts)

    def sources(self) -> list[tuple[_Group, list[frozenset[Key]]]]:
        """By group: the networks that each term of its losses is computed with."""
        found = []
        for group in self.groups:
            terms = []
            for loss in group.losses:
                nodes = list(terms_of(loss)) or loss.roots
                if loss.lost is not None and isinstance(loss.lost.graph, Node):
                    nodes = [*nodes, loss.lost.graph]
                terms += [self._networks_in(node) for node in nodes]
            found.append((group, [term for term in terms if term]))
        return found

    def _networks_in(self, node: Node) -> frozenset[Key]:
        leaves = {leaf for reached in reachable_nodes([(node, True)]) for leaf, _, _ in reached.leaves}
        trained = (leaf for leaf in leaves if leaf.requires is not False)
        return frozenset(self.network[leaf] for leaf in trained if leaf in self.network)

    def _owned_in_sight(self, key: Key) -> bool:
        """Whether an optimizer that the file makes owns a network."""
        block = self.symbols.blocks[key]
        return any(block in optimizer.state.owned() for optimizer in self.run.optimizers)

    def _made_of_networks(self) -> None:
        """What is made of networks, and steps, owns these: ``make_optimizer(config, network)``."""
        for key in self.symbols.states:
            given = self.symbols.made_of.get(key, ())
            for value in given:
                network = self.symbols.keys.get(value)
                if network in self.symbols.blocks:
                    self.owners[network] = key

    def _by_terms(self, sources: list[tuple[_Group, list[frozenset[Key]]]]) -> None:
        """Give a network the optimizer that steps after a term which is there for that network alone."""
        changed = True
        while changed:
            changed = False
            for group, terms in sources:
                if len(group.stepping) != 1:
                    continue
                (state,) = group.stepping
                for term in terms:
                    new = [key for key in term if key not in self.owners and not self._owned_in_sight(key)]
                    old = len(term) - len(new)
                    if (
                        len(new) == 1
                        and state in self.optimizer
                        and (not old or not self._trains(term, state))
                    ):
                        self.owners[new[0]] = self.optimizer[state]
                        changed = True

    def _trains(self, networks: frozenset[Key], state: OptimizerState) -> bool:
        """Whether an optimizer is known to own one of some networks."""
        return any(self.owners.get(key) == self.optimizer.get(state) for key in networks)

    def _admissible(
        self, owners: Mapping[Key, Key | None], sources: list[tuple[_Group, list[frozenset[Key]]]]
    ) -> bool:
        """Whether every optimizer owns something that a loss before its steps reaches, and every term trains
        something."""
        reached: dict[Key, set[Key]] = {}
        for group, terms in sources:
            stepping = {self.optimizer[state] for state in group.stepping if state in self.optimizer}
            known = len(stepping) < len(group.stepping)
            for term in terms:
                if stepping and not known and stepping.isdisjoint(owners.get(key) for key in term):
                    return False
            for optimizer in stepping:
                reached.setdefault(optimizer, set()).update(key for term in terms for key in term)
        return all(any(owners.get(key) == one for key in keys) for one, keys in reached.items() if keys)

    def _gradients_before(self) -> frozenset[Key]:
        """The networks that an optimizer may step on before anything here is differentiated."""
        first = next((e for e in self.run.events if isinstance(e, (Backward, Step))), None)
        return frozenset(self.symbols.blocks) if isinstance(first, Step) else frozenset()


NEUTRAL = frozenset(
    """self optimizer optimizers optim optims opt opts optimiser network networks net nets model models
    module""".split()
)
"""Words of names that do not tell one network, or one optimizer, from the others."""


def _alike(network: str, optimizer: str) -> int:
    """How many letters the distinguishing words of two names begin with in common: ``gen`` and ``opt_g``."""
    first, second = (
        "".join(word for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name) if word.lower() not in NEUTRAL)
        for name in (network, optimizer)
    )
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first.lower(), second.lower()))
    return sum(1 for _ in same)


def _groups(run: Run) -> Iterable[_Group]:
    """The losses of a run with the steps that follow them; of each group of losses one, with all its steps.

    In the last iteration that is run, steps may be missing which follow in the next one.
    """
    found: dict[frozenset[ast.AST], _Group] = {}
    group = _Group()
    for event in run.events:
        if isinstance(event, Backward) and event.accumulates:
            if group.stepping:
                _join(found, group)
                group = _Group()
            group.losses.append(event)
        elif isinstance(event, Step) and group.losses:
            group.stepping[event.optimizer] = None
    if group.losses:
        _join(found, group)
    return found.values()


def _join(groups: dict[frozenset[ast.AST], _Group], group: _Group) -> None:
    """Add a group, or its steps to those of the group with losses at the same places."""
    known = groups.setdefault(frozenset(loss.site for loss in group.losses), group)
    known.stepping.update(group.stepping)
