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
networks. Where they leave nothing, a term may train nobody; then an optimizer may own the one network that
no loss reaches. Where that leaves nothing either, or a loss reaches no network in sight, an optimizer owns
something that the losses before its steps are computed with, and that is not seen: a part of a network that
another one updates, say. A mistake is reported if it is one in all of these worlds, with what they have in
common as its assumption.
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
    world, plain, rounds = World(), World(), 0
    run = explore(world)
    while True:
        found = {**world.roles, **roles_in(run, world.roles)}
        assert run.symbols is not None
        if found == world.roles:
            if world.search is Search.CALLED:
                plain = world
            if world.search is Search.HEADS or _is_explained(run):
                break
            world = replace(world, search=Search(world.search + 1))
            repeats = not run.symbols.may_find_more
        else:
            used = {key: run.symbols.names[key] for key in run.symbols.used}
            world = replace(world, roles=found, names={**used, **world.names})
            repeats = False
        rounds += 1
        if repeats and rounds <= ROUNDS:
            run.symbols.world = world  # Another run would be the same.
            continue
        run.release()
        if rounds > ROUNDS:
            break
        run = explore(world)
    assert run.symbols is not None
    written = run.symbols.gradients_written
    inference = Ownership(run)
    worlds = inference.worlds()
    if not worlds and not written:
        run.release()
        optimizers = {key: role for key, role in world.roles.items() if role is Role.OPTIMIZER}
        run = explore(replace(plain, roles={**plain.roles, **optimizers}))
        inference = Ownership(run)
        worlds = inference.world_of_losses()
    text = inference.text(worlds)
    run.release()
    return Assumption(worlds, text) if worlds and text and not written else None


def _is_explained(run: Run) -> bool:
    """Whether it is known what each loss reaches, and the axioms can hold."""
    return all(map(is_followed, _losses(run))) and bool(Ownership(run).worlds())


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


_Sources = list[tuple[_Group, list[frozenset[Key]]]]
"""By group of losses: the networks that each of their terms is computed with."""


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
        self.idle: set[Key] = set()
        """Optimizers that are taken to own a network which no loss reaches."""

    def worlds(self) -> list[World]:
        """The worlds that the axioms admit; none if there are too many, or none.

        What an optimizer owns that steps only in a branch which is not taken here cannot be told.
        """
        if not all(state.steps for state in self.optimizer):
            return []
        sources = self.sources()
        self._made_of_networks()
        made = dict(self.owners)
        self._by_terms(sources)
        found = self._admitted(sources)
        if not found:
            # Whoever owns what, some term trains nobody: that is for a codemod to tell.
            self.owners = made
            found = self._admitted(sources, every_term=False) or self._by_elimination(sources)
        found = self._as_named(found)
        return [self._world(owners) for owners in found] if len(found) <= WORLDS else []

    def _admitted(
        self, sources: _Sources, every_term: bool = True, idle: Key | None = None
    ) -> list[dict[Key, Key | None]]:
        """The admissible ways to give an owner to each network that has none, or to leave it without.

        What is ``idle`` owns none of them.
        """
        free: dict[Key, list[Key | None]] = {}
        for group, terms in sources:
            stepping = [self.optimizer[state] for state in group.stepping if state in self.optimizer]
            reached = frozenset[Key]().union(*terms)
            for key in filter(reached.__contains__, self.symbols.blocks):
                if key not in self.owners and not self._owned_in_sight(key):
                    if stepping:
                        known = free.setdefault(key, [None])
                        known += [one for one in stepping if one not in known]
        return [
            owners
            for choice in itertools.islice(itertools.product(*free.values()), 4096)
            if (idle is None or idle not in choice)
            and self._admissible(
                owners := {**self.owners, **dict(zip(free, choice))}, sources, every_term, idle
            )
        ]

    def _world(self, owners: Mapping[Key, Key | None]) -> World:
        """A world in which networks have these owners; what losses are computed with that reach none of
        these is not seen."""
        first = next((e for e in self.run.events if isinstance(e, (Backward, Step))), None)
        unseen = self._unseen(owners) or {}
        # It may be what the optimizer owns.
        served = (loss for loss in _losses(self.run) if loss.site in unseen)
        reached = {key for loss in served for term in self._terms(loss) for key in term}
        return replace(
            self.symbols.world,
            search=Search.CALLED,
            owners={**dict.fromkeys(reached), **owners},
            # An optimizer may step before anything here is differentiated.
            entered_with_gradients=isinstance(first, Step),
            unseen=unseen,
        )

    def world_of_losses(self) -> list[World]:
        """The world in which optimizers own what the losses before their steps are computed with, seen or
        not.

        It is there where no other is: two optimizers of one network, say, or a loss that is an argument.
        What a network is trained by is not known where an optimizer steps after a loss which reaches it, and
        owns nothing of that.
        """
        self._by_terms(self.sources())
        owners: dict[Key, Key | None] = dict(self.owners)
        while True:
            found = self._unseen(owners)
            if found is None or not all(state.steps for state in self.optimizer):
                return []
            shared = {
                key
                for group in self.groups
                for loss in group.losses
                if loss.site in found
                for term in self._terms(loss)
                for key in term
                if owners.get(key) is not None
            }
            if not shared:
                break
            owners.update(dict.fromkeys(shared))
        for key in self.symbols.blocks:
            owners.setdefault(key, None)
        return [self._world(owners)] if found else []

    def _unseen(self, owners: Mapping[Key, Key | None]) -> dict[ast.AST, set[Key]] | None:
        """By the place of a loss: the optimizers that step after it, and own nothing that it is seen to
        reach.

        None where several losses come before the steps of several optimizers: for whom each is, is not known.
        """
        found: dict[ast.AST, set[Key]] = {}
        for group in self.groups:
            places = {loss.site for loss in group.losses}
            for loss in group.losses:
                lacking = [state for state in group.stepping if self._owns_nothing_of(state, loss, owners)]
                if lacking and len(places) > 1 and len(group.stepping) > 1:
                    return None
                for state in lacking:
                    found.setdefault(loss.site, set()).add(self.optimizer.get(state, state.created))
        return found

    def _owns_nothing_of(
        self, state: OptimizerState, loss: Backward, owners: Mapping[Key, Key | None]
    ) -> bool:
        """Whether an optimizer is not seen to own anything that a loss reaches, although it may."""
        if loss.failure is not None or loss.error_expected:
            return False
        optimizer = self.optimizer.get(state)
        if optimizer in self.idle:
            return False
        if optimizer is None:
            owned = state.owned()
            reaches = not loss.reached.keys().isdisjoint(owned)
            if is_followed(loss):
                # Of what it is made of some may not be seen: an object that holds the network, say.
                lacking = not reaches and all(leaf.requires is None for leaf in owned)
            else:
                lacking = reaches or loss.graph_unknown
            return lacking and state.in_view and bool(owned)
        if not loss.reached.keys().isdisjoint(state.owned()):
            return False
        networks = frozenset[Key]().union(*self._terms(loss))
        return all(owners.get(key) != optimizer for key in networks) and (loss.lost is None or bool(networks))

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
        parts: list[str] = []
        steps = (event for event in self.run.events if isinstance(event, Step))
        for state, step in {step.optimizer: step for step in steps}.items():
            key = self.optimizer.get(state, state.created)
            updated = [*self._networks_updated(key, worlds), *self._losses_served(key, worlds)]
            if not updated and key in self.symbols.states and state.leaves:
                updated = ["the network that it is made of"]
            if updated:
                parts.append(
                    f"`{_stepped(step) or self.symbols.names.get(key)}` updates {' and '.join(updated)}"
                )
        names = self.symbols.names
        parts += [f"`{names[key]}` steps the optimizer that it is made of" for key in self.symbols.wrappers]
        parts += [f"`{function}` returns what it is handed" for function in self.symbols.handed_back]
        owned = {key for world in worlds for key in world.owners or ()}
        elsewhere = [names[key] for key in self.symbols.blocks if key not in owned]
        if worlds and elsewhere and not parts:
            parts.append(f"{_listed(elsewhere)} can be trained")
        if not parts:
            parts = [f"`{names[key]}` is an optimizer" for key in self.symbols.states]
        return ", and ".join(dict.fromkeys(parts))

    def _networks_updated(self, optimizer: Key, worlds: list[World]) -> Iterator[str]:
        """The networks that an optimizer owns in all worlds, or else in some of them."""
        number = {
            key: sum((world.owners or {}).get(key) == optimizer for world in worlds)
            for key in self.symbols.blocks
        }
        always = [key for key, count in number.items() if count == len(worlds)]
        some = [key for key, count in number.items() if count]
        if some:
            computing = {use.key for use in self.symbols.uses if self._is_loss(use)}
            computing -= {use.key for use in self.symbols.uses if use.method in OF_NETWORKS}
            names = [
                f"what `{name}` computes with" if key in computing else f"`{name}`"
                for key in always or some
                for name in [self.symbols.names[key].removesuffix(".forward")]
            ]
            yield f"{'' if always else 'at least one of '}{' and '.join(names)}"

    def _is_loss(self, use: Use) -> bool:
        """Whether a call has computed a loss, or one of its terms: what is called may be no network."""
        return not use.method and any(use.result in terms_of(loss) for loss in _losses(self.run))

    def _losses_served(self, optimizer: Key, worlds: list[World]) -> Iterator[str]:
        """The losses that an optimizer is there for, although they are not seen to reach what it owns."""
        losses = [
            ast.unparse(loss)
            for event in _losses(self.run)
            if any(optimizer in world.unseen.get(event.site, ()) for world in worlds)
            for loss in event.receivers
        ]
        if losses:
            are = "is" if len(set(losses)) == 1 else "are"
            yield f"something that {_listed(losses)} {are} computed with"

    def sources(self) -> _Sources:
        """By group: the networks that each term of its losses is computed with."""
        return [
            (group, [term for loss in group.losses for term in self._terms(loss) if term])
            for group in self.groups
        ]

    def _terms(self, loss: Backward) -> list[frozenset[Key]]:
        nodes = list(terms_of(loss)) or loss.roots
        if loss.lost is not None and isinstance(loss.lost.graph, Node):
            nodes = [*nodes, loss.lost.graph]
        return [self._networks_in(node) for node in nodes]

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

    def _by_terms(self, sources: _Sources) -> None:
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

    def _by_elimination(self, sources: _Sources) -> list[dict[Key, Key | None]]:
        """The worlds in which an optimizer owns the one network that no loss reaches: all it computes is
        detached."""
        reached = {key for _, terms in sources for term in terms for key in term}
        spare = [key for key in self.symbols.blocks if key not in reached and not self._owned_in_sight(key)]
        if len(spare) != 1 or spare[0] in self.owners:
            return []
        found = []
        for idle in self.symbols.states:
            others = self._admitted(sources, every_term=False, idle=idle)
            found += [{**owners, spare[0]: idle} for owners in others]
            self.idle.add(idle)
        return found

    def _admissible(
        self, owners: Mapping[Key, Key | None], sources: _Sources, every_term: bool, idle: Key | None
    ) -> bool:
        """Whether every optimizer that is not ``idle`` owns something that a loss before its steps reaches,
        and, if it is asked of ``every_term``, each of them trains something."""
        reached: dict[Key, set[Key]] = {}
        for group, terms in sources:
            stepping = {self.optimizer[state] for state in group.stepping if state in self.optimizer}
            known = len(stepping) < len(group.stepping)
            for term in terms if every_term else ():
                if stepping and not known and stepping.isdisjoint(owners.get(key) for key in term):
                    return False
            for optimizer in stepping:
                reached.setdefault(optimizer, set()).update(key for term in terms for key in term)
        return all(
            any(owners.get(key) == one for key in keys)
            for one, keys in reached.items()
            if keys and one != idle
        )


NEUTRAL = frozenset(
    """self optimizer optimizers optim optims opt opts optimiser network networks net nets model models
    module""".split()
)
"""Words of names that do not tell one network, or one optimizer, from the others."""


def _stepped(step: Step) -> str:
    """What is written for the optimizer that steps: ``opt.step()``, ``scaler.step(opt)``."""
    match step.site:
        case ast.Call(ast.Attribute(), [optimizer]) if step.scaler is not None:
            return ast.unparse(optimizer)
        case ast.Call(ast.Attribute(optimizer)):
            return ast.unparse(optimizer)
        case _:
            return ""


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"`{name}`" for name in dict.fromkeys(names))


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
