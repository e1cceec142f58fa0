"""Symbols: what a file does not show, told apart by where it comes from, and what a world takes them for.

A parameter that no call in sight binds, an attribute that no method in sight sets, what a function out of
sight returns, and the attributes and items of these are symbols. Which of them are networks and optimizers,
and which optimizer owns which network, is a *world*: see :mod:`gradfix.autograd.open_world`. A run without a
world leaves them unknown.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gradfix.autograd import values
from gradfix.autograd.arguments import Argument, Call, Keywords
from gradfix.autograd.graph import Leaf, Node, OptimizerState
from gradfix.autograd.values import Module, Optimizer, Sequence, Tensor, Unknown, Value, tensors_in

Key = Hashable
"""Identifies a symbol in every run of one file: the node of the syntax tree that introduces it, and the way
from there."""


class Role(enum.Enum):
    """What a symbol is used as."""

    NETWORK = enum.auto()
    OPTIMIZER = enum.auto()


class Search(enum.IntEnum):
    """Where networks are looked for, beside what has methods that only networks have: the surest first."""

    CALLED = enum.auto()
    """Among what is called on data."""
    METHODS = enum.auto()
    """Also among methods, and what is called on the results of code out of sight: ``state.model(x)``."""
    HEADS = enum.auto()
    """Also among what is only called on results of networks, where a loss or an optimizer has none else."""


@dataclass(frozen=True, eq=False)
class World:
    """What the symbols of one entry point are taken for."""

    roles: Mapping[Key, Role] = field(default_factory=dict)
    owners: Mapping[Key, Key | None] | None = None
    """By network: the optimizer that owns its parameters, or None if no optimizer in sight does, although one
    might; whether it is trained at all is not known then. Others are trained out of sight. While it is None
    altogether, every network is trainable and no optimizer owns anything."""
    search: Search = Search.CALLED
    """How far networks are looked for."""
    names: Mapping[Key, str] = field(default_factory=dict)
    """What people call the symbols."""
    entered_with_gradients: bool = False
    """Whether what optimizers own may have gradients when the entry point is called."""
    unseen: Mapping[ast.AST, Collection[Key]] = field(default_factory=dict)
    """By the place of a backward: the optimizers that own something which its loss is computed with, although
    no network is seen that could be that. One that the file makes is known by the place where it is made."""


class Given(enum.Enum):
    """What a call is given first."""

    DATA = enum.auto()
    """What may be a tensor, and no code out of sight has computed it."""
    COMPUTED = enum.auto()
    """The same, computed by code out of sight: it may have a graph."""
    GRAPH = enum.auto()
    """What has a graph, or has been detached from one."""
    OTHER = enum.auto()
    """No tensor, or nothing."""


class Use(NamedTuple):
    """A call of a symbol, or of a method of it."""

    key: Key
    serial: int
    """When, among the events of the run."""
    method: str
    """Empty for a call of the symbol itself."""
    plain: bool
    """Whether nothing was passed by position."""
    given: Given
    result: Node | None
    """Where the result's graph begins, if it may have one."""


class Symbols:
    """The symbols that one run has met, as its world takes them."""

    def __init__(self, world: World, optimizers: list[Optimizer]) -> None:
        self.world = world
        self.optimizers = optimizers
        """Those of the run: what turns out to be an optimizer is added."""
        self.keys: dict[Value, Key] = {}
        self.names: dict[Key, str] = dict(world.names)
        self.used: set[Key] = set(world.names)
        self.blocks: dict[Key, Leaf] = {}
        self.states: dict[Key, OptimizerState] = {}
        self.wrappers: dict[Key, Optimizer] = {}
        """What is made of an optimizer, and is one: it steps that one."""
        self.handed_back: dict[str, None] = {}
        """The functions out of sight that are taken to return what they are handed, prepared for training."""
        self.uses: list[Use] = []
        self.may_find_more = False
        """Whether the run would be another one if networks were looked for among methods."""
        self.methods: set[Key] = set()
        """What is called as methods are, of other symbols."""
        self.made_of: dict[Key, list[Value]] = {}
        """By the key of what a call returned: what the call was given."""
        self.gradients_written = False
        """Whether something is given a gradient by hand: whose optimizer steps on it is not known then."""
        self.counts: dict[ast.AST, int] = {}
        """How many results each call out of sight has had."""

    def introduce(self, value: Unknown, key: Key, name: str, place: ast.AST | None) -> Value:
        """``value`` as the world has it: itself, with parameters if it is a network, or an optimizer."""
        self.keys[value] = key
        if key not in self.names:
            self.names[key] = name
        role = self.world.roles.get(key)
        if role is Role.OPTIMIZER:
            return self._optimizer(key, place)
        if role is Role.NETWORK:
            self._give_block(value, key)
        return value

    def _optimizer(self, key: Key, place: ast.AST | None) -> Optimizer:
        """The optimizer that a symbol is; what is made of one steps that one: ``LARC(optimizer)``."""
        wrapped = [one for one in self.made_of.get(key, ()) if isinstance(one, Optimizer)]
        if len(wrapped) == 1:
            self.wrappers[key] = wrapped[0]
            return wrapped[0]
        state = self.state(key, place)
        optimizer = next((one for one in self.optimizers if one.state is state), None)
        if optimizer is None:
            optimizer = Optimizer(state)
            self.optimizers.append(optimizer)
        self.keys[optimizer] = key
        return optimizer

    def part(self, value: Value, child: Unknown, name: str, node: ast.AST | None) -> Value:
        """An attribute or item of ``value``, which is a symbol if that is one."""
        key = self.keys.get(value)
        if key is None:
            return child
        written = f"{self.names[key]}{name if name[:1] == '[' else '.' + name}"
        return self.introduce(child, (key, name), written, node)

    def returned(self, value: Unknown, site: ast.AST, given: list[Value]) -> Value:
        """What a call out of sight returns."""
        number = self.counts[site] = self.counts.get(site, 0) + 1
        key = (site, number)
        self.made_of[key] = given
        return self.introduce(value, key, value.label, site)

    def makes(self, site: ast.AST) -> bool:
        """Whether the next call at ``site`` makes networks or optimizers, and does nothing else."""
        made = (site, self.counts.get(site, 0) + 1)
        return any(made in _wholes(key) for key in self.world.roles)

    def give(self, holder: Value, value: Value) -> None:
        """Note that a symbol is given something to hold: ``engine.model = net``, ``engine.register(net)``."""
        key = self.keys.get(holder)
        if key is not None and networks_in(value):
            self.made_of.setdefault(key, []).append(value)

    def store(self, holder: Value, value: Value) -> None:
        """Note that something becomes an attribute of a symbol.

        What has a graph a network may compute with, instead of a parameter of its own.
        """
        self.give(holder, value)
        block = self.blocks.get(self.keys.get(holder))
        if block is not None and any(tensor.node is not None for tensor in tensors_in(value)):
            block.requires = None

    def held_by(self, value: Value) -> list[Leaf]:
        """The parameters of the networks that something was made of, which it may compute with.

        ``loss_module = Loss(actor, critic)``, ``net = parallelize(net)``: it is no network of its own.
        """
        return self.held_under(self.keys.get(value))

    def held_under(self, key: Key | None) -> list[Leaf]:
        """The same, of a symbol by its key."""
        while key is not None:
            leaves = [leaf for given in self.made_of.get(key, ()) for leaf in networks_in(given)]
            if leaves:
                return list(dict.fromkeys(leaves))
            key = key[0] if isinstance(key, tuple) else None
        return []

    def may_share(self, one: Leaf, other: Leaf) -> bool:
        """Whether two networks may have parameters in common."""
        own = [key for key, block in self.blocks.items() if block is one or block is other]
        if len(own) < 2 or any(key in self.methods or self.held_under(key) for key in own):
            return True
        families = (set(block.family()) for block in self.blocks.values() if block.children)
        return any(one in family and other in family for family in families)

    def handed_over(self, args: list[Argument], keywords: Keywords) -> list[Leaf]:
        """The parameters of the networks that a function out of sight is handed: it may call them."""
        given = [value for value, _ in (*args, *keywords.values()) if isinstance(value, Unknown)]
        return [value.leaf for value in given if value.leaf is not None and value in self.keys]

    def state(self, key: Key, place: ast.AST | None = None) -> OptimizerState:
        """The optimizer that a symbol is: one for each symbol, however often it is met."""
        if key not in self.states:
            made = OptimizerState(self.names.get(key, ""), place or ast.Pass(lineno=0), ())
            made.leaves += self._of_known_networks(key)
            self.states[key] = made
        return self.states[key]

    def optimizers_in(self, value: Value) -> Iterator[OptimizerState]:
        """The optimizers that are parts of a symbol: whoever has it may clear what they own."""
        key = self.keys.get(value)
        for part, state in self.states.items() if key is not None else ():
            if key in _wholes(part):
                yield state

    def anywhere(self) -> Iterator[Leaf]:
        """What may belong to any network: what optimizers own unseen, and what methods compute with."""
        yield from (state.unseen for state in self.states.values() if state.unseen is not None)
        networks = {use.key for use in self.uses if use.method}
        yield from (self.blocks[key] for key in self.methods - networks if key in self.blocks)

    def beside(self, method: Value) -> list[Leaf]:
        """The networks of its object that a method may compute with that no optimizer is known to own."""
        key = self.keys.get(method)
        known = self.world.owners is None or key in self.world.owners
        if known or key not in self.blocks or any(use.key == key and use.method for use in self.uses):
            return []
        _, whole, *_ = _wholes(key)
        return [block for part, block in self.blocks.items() if part != key and whole in _wholes(part)]

    def unseen_parameters(self, site: ast.AST, seen: Collection[Leaf]) -> list[tuple[Leaf, bool]]:
        """What the loss of a backward is computed with, although no certain way to it is ``seen``, each with
        whether that is certain."""
        found: list[tuple[Leaf, bool]] = []
        for key in self.world.unseen.get(site, ()):
            if self.world.roles.get(key) is not Role.OPTIMIZER:
                made = [one.state for one in self.optimizers if one.state.created is key]
                owned = made[0].owned() if len(made) == 1 else []
                found += [(leaf, True) for leaf in [one for one in owned if one in seen] or owned]
                continue
            state = self.state(key)
            if state.unseen is None:
                state.unseen = Leaf(self.names[key], True)
                state.unseen.assumed = True
                state.unseen.unknown_grad = self.world.entered_with_gradients
                state.leaves.append(state.unseen)
            found += [(leaf, leaf is state.unseen) for leaf in state.owned()]
        return found

    def _of_known_networks(self, key: Key) -> list[Leaf]:
        """The parameters of the networks in sight that the call was given which has made this optimizer."""
        whole = next((one for one in _wholes(key) if one in self.made_of), None)
        stepped = [one for one, role in self.world.roles.items() if role is Role.OPTIMIZER]
        if whole is None or sum(whole in _wholes(one) for one in stepped) > 1:
            return []
        given = self.made_of[whole]
        return list(dict.fromkeys(leaf for one in given if isinstance(one, Module) for leaf in one.leaves()))

    def _give_block(self, value: Unknown, key: Key) -> None:
        known = self.blocks.get(key)
        if known is not None:
            value.leaf = known
            return
        block = self.blocks[key] = value.parameter_block()
        block.label, block.requires = self.names[key], True
        owners = self.world.owners
        if owners is None:
            return
        owner = owners.get(key)
        if owner is not None:
            self.state(owner).leaves.append(block)
        elif key in owners:
            block.requires, block.idle = None, True
        block.unknown_grad = self.world.entered_with_gradients

    def note(self, serial: int, value: Value, call: Call, method: str, result: Value) -> None:
        """Note a use, as evidence of a role: a call of ``value``, or of its ``method``."""
        key = self.keys.get(value)
        if key is None:
            return
        if key not in self.used and isinstance(call.site, ast.Call):
            # People know it by what it is called where it is used.
            self.used.add(key)
            self.names[key] = ast.unparse(call.receiver if method else call.site.func)
        given = call.values
        for one in given if method else ():
            self.give(value, one)
        node = result.node if isinstance(result, Unknown) else None
        first = _kind_of(given[0]) if given else Given.OTHER
        self.uses.append(Use(key, serial, method, not given, first, node))

    def note_stepped(self, value: Value) -> None:
        """Note that something steps the symbol, or schedules its learning rate: it is an optimizer."""
        key = self.keys.get(value)
        if key is not None:
            self.uses.append(Use(key, 0, SCHEDULED, True, Given.OTHER, None))


def _wholes(key: Key) -> Iterator[Key]:
    """A key, and the keys of what it is a part of."""
    yield key
    while isinstance(key, tuple) and isinstance(key[1], str):
        key = key[0]
        yield key


SCHEDULED = "<scheduled>"


def networks_in(value: Value, depth: int = 2) -> list[Leaf]:
    """The parameters of the networks in a value, or in what it lists."""
    if isinstance(value, Module):
        return value.leaves()
    if isinstance(value, Unknown):
        return [value.leaf] if value.leaf is not None else []
    inner = value.items if isinstance(value, Sequence) else ()
    if isinstance(value, values.Mapping):
        inner = list(value.items.values())
    return [leaf for one in inner for leaf in networks_in(one, depth - 1)] if depth else []


def _kind_of(value: Value) -> Given:
    if isinstance(value, Unknown) and value.node is None:
        if value.__class__ is not Unknown or value.leaf is not None:
            return Given.OTHER
        return Given.COMPUTED if value.made else Given.DATA
    tensors = tensors_in(value)
    if any(tensor.node is not None or tensor.lost is not None for tensor in tensors):
        return Given.GRAPH
    if any(isinstance(tensor, Tensor) and tensor.detached_from is not None for tensor in tensors):
        return Given.GRAPH
    return Given.DATA if tensors else Given.OTHER
