"""What a training step does beside gradients: memory for backward, random draws, buffers.

Everything here reads, and changes nothing:

* **Saved for backward.** Hooks on saved tensors would be the documented way to see them, but autograd
  does not check the versions of tensors that went through a hook, so an error that the script is about to
  meet ("modified by an inplace operation") would be gone. So the graph is walked from the roots of a
  backward call before it runs, and the ``_saved_*`` attributes of its nodes are read. Reading one checks its
  version as autograd does, and the tensor that it gives is let go at once. Where the script has hooks of its
  own (checkpointing, offloading), reading would call them, so nothing is measured any more.
* **Random draws.** A digest of the state of each generator: torch's for the CPU, Python's, numpy's.
* **Buffers.** Those of the modules that hold the optimizers' parameters, found among the objects that the
  garbage collector knows: no name is assumed, and a module that was copied or loaded is found too.
* **Settings** of these modules: the momentum of running statistics, whether they are in training mode.
* **Parameters that no optimizer owns**: averages of weights, target networks; and lists and dictionaries of
  tensors that have the shapes of a module's parameters, or one tensor that has room for all, which is how
  others keep averages. Where the script that runs has no name for them, they are told from each other by what
  they hold at first.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import functools
import gc
import hashlib
import random
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import torch

from . import storages

NODES = 20_000
"""Nodes of graphs that are looked at in one run, which takes about 10 microseconds each."""

LARGE = 1 << 20
"""Elements of a parameter that no optimizer owns, above which it is not looked at."""

Description = Any
"""What the recorder writes of a tensor."""


class SideEffects:
    """Looks at what surrounds the gradients of one run."""

    def __init__(self) -> None:
        self.nodes = 0
        self.hooked = False
        """Whether the script hooks into what is saved."""
        self.attributes: dict[type, list[str]] = {}
        """By class of graph nodes: the attributes that hold what is saved."""
        self.owned: list[torch.Tensor] = []
        self.modules: list[tuple[str, torch.nn.Module]] = []
        """The modules of the networks that hold owned parameters, and what each is called."""
        self.trained: list[tuple[str, torch.nn.Module]] = []
        """Those of them that are found in any case."""
        self.unowned: list[tuple[str, torch.Tensor]] = []
        """The parameters of networks that no optimizer owns."""
        self.averages: list[tuple[str, Callable[[], Any]]] = []
        """What holds other tensors, of the shapes that a module's parameters have, as it is then."""
        self.lasting: set[int] = set()
        """The memory of all modules' parameters and buffers, which no graph holds."""
        self.written: dict[str, tuple[str | None, Description]] = {}
        """By buffer or unowned parameter: the hash of its value, and its description, at the last look."""
        self.set: dict[str, dict[str, Any]] = {}
        """By module: its settings at the last look."""

    def install(self) -> None:
        """Notice when the script hooks into what is saved. Once in a process, before the script runs."""
        for owner, name in (
            (torch._C._autograd, "_push_saved_tensors_default_hooks"),
            (torch._C._autograd.SavedTensor, "register_hooks"),
        ):
            setattr(owner, name, self.noticing(getattr(owner, name)))

    def noticing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """``real``, which puts hooks on what is saved."""

        @functools.wraps(real)
        def hooking(*args: Any) -> Any:
            self.hooked = True
            return real(*args)

        return hooking

    # -- saved for backward ----------------------------------------------------------------

    def saved(self, roots: Iterable[torch.Tensor]) -> int | None:
        """Bytes of memory that the graph behind ``roots`` has saved for backward.

        Memory counts once; that of leaves, and of the parameters and buffers of modules, does not count.
        What a function of the script keeps other than by ``save_for_backward`` is not seen. ``None`` where
        nothing is known: the script has hooks on saved tensors, or its graphs are too large.
        """
        if self.hooked:
            return None
        sizes: dict[int, int] = {}
        leaves: set[int] = set()
        seen: set[Any] = set()
        waiting: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            self.nodes += 1
            if self.nodes > NODES:
                return None
            seen.add(node)
            kind = type(node)
            for name in self.attributes_of(kind):
                # It raises for what has been freed or has moved: autograd would too.
                with contextlib.suppress(RuntimeError):
                    found = getattr(node, name)
                    for tensor in found if isinstance(found, (list, tuple)) else (found,):
                        if isinstance(tensor, torch.Tensor):
                            sizes.update(self.memory(tensor))
            if hasattr(kind, "variable"):
                leaves.update(identity for identity, _ in self.memory(node.variable))
            waiting.extend([following for following, _ in node.next_functions if following is not None])
        return sum(size for identity, size in sizes.items() if identity not in leaves | self.lasting)

    def attributes_of(self, kind: type) -> list[str]:
        """The attributes under which nodes of a type keep what they have saved for backward."""
        if kind not in self.attributes:
            self.attributes[kind] = saving(kind)
        return self.attributes[kind]

    def saves(self, kind: type) -> bool:
        """Whether nodes of a type save anything for backward."""
        return bool(self.attributes_of(kind))

    def memory(self, tensor: torch.Tensor) -> list[tuple[int, int]]:
        """The storages of a tensor: what tells each from all others that live, and its bytes."""
        parts: tuple[torch.Tensor, ...] = (tensor,)
        if tensor.layout is torch.sparse_coo:
            parts = tensor._indices(), tensor._values()
        found = []
        for part in parts:
            # Not every class of tensors has memory of its own.
            with contextlib.suppress(RuntimeError, NotImplementedError):
                if storages.strided(part):
                    storage = storages.storage_of(part)
                    found.append((storage._cdata, storage.nbytes()))
        return found

    # -- random draws ----------------------------------------------------------------------

    def draws(self) -> list[str | None]:
        """A digest of the state of torch's generator, Python's and numpy's: equal after equal draws."""
        state = torch.default_generator.get_state()
        _, words, gauss = random.getstate()
        found: list[str | None] = [
            short(ctypes.string_at(storages.data_ptr_of(state), state.numel())),
            short(array.array("Q", words).tobytes(), repr(gauss).encode()),
            None,
        ]
        if "numpy" in sys.modules:
            whole = sys.modules["numpy"].random.get_state(legacy=False)
            inner = whole["state"]
            keys = inner["key"].tobytes() if "key" in inner else b""
            rest = [(name, value) for name, value in inner.items() if name != "key"]
            found[2] = short(keys, repr((rest, whole.get("has_gauss"), whole.get("gauss"))).encode())
        return found

    # -- buffers ---------------------------------------------------------------------------

    def look(
        self,
        owned: Iterable[torch.Tensor],
        names: Callable[[], dict[int, str]],
        describe: Callable[[torch.Tensor], Description] | None = None,
    ) -> None:
        """Find the modules that hold these parameters, unless that has been done for the same ones.

        ``names`` says what the script calls its modules, by identity. With ``describe`` all others are found
        too, and what else holds tensors like these parameters.
        """
        parameters = list(owned)
        if len(parameters) == len(self.owned) and all(a is b for a, b in zip(parameters, self.owned)):
            return
        self.owned = parameters
        wanted = {id(parameter): place for place, parameter in enumerate(parameters)}
        objects = gc.get_objects()
        # Of some objects `isinstance` would ask the class that they pretend to have.
        modules = [one for one in objects if issubclass(type(one), torch.nn.Module)]
        inner = {id(child) for module in modules for child in held_by(module, "_modules").values()}
        self.lasting = set()
        held: set[int] = set(wanted)
        found, others = [], []
        for network in modules:
            if id(network) in inner:
                continue
            places = []
            for _, module in within(network):
                tensors = held_by(module, "_parameters")
                places += [wanted[id(one)] for one in tensors.values() if id(one) in wanted]
                for tensor in (*tensors.values(), *held_by(module, "_buffers").values()):
                    held.add(id(tensor))
                    self.lasting.update(identity for identity, _ in self.memory(tensor))
            if places:
                found.append((min(places), network))
            else:
                others.append(network)
        called = names()
        if describe is not None:
            for network in (*(one for _, one in found), *others):
                if id(network) not in called:
                    # The order in which such are found is not the same in every version, what they hold is.
                    name = type(network).__name__
                    called[id(network)] = name + mark(parameters_of(within(network)), describe)
        turns: dict[str, int] = {}
        self.modules = []
        for _, network in sorted(found, key=lambda pair: pair[0]):
            self.modules += labelled(network, called, turns)
        self.unowned = [entry for entry in parameters_of(self.modules) if id(entry[1]) not in wanted]
        self.averages = []
        self.trained = list(self.modules)
        if describe is not None:
            self.look_further(others, objects, held, called, turns, describe)

    def look_further(
        self,
        networks: list[torch.nn.Module],
        objects: list[Any],
        held: set[int],
        called: dict[int, str],
        turns: dict[str, int],
        describe: Callable[[torch.Tensor], Description],
    ) -> None:
        """Find what no optimizer owns: these networks, and among the objects what keeps averages.

        ``held`` are the tensors of modules and optimizers, by identity.
        """
        known = Counter(called[id(network)] for network in networks)
        for network in networks:
            if known[called[id(network)]] == 1:
                inside = labelled(network, called, turns)
                self.modules += inside
                self.unowned += parameters_of(inside)
        alike, sizes = [], set()
        for _, module in self.modules:
            parameters = parameters_of(within(module))
            numbers = [entry for entry in buffers_of(within(module)) if entry[1].is_floating_point()]
            alike += [shapes_of(parameters), shapes_of([*parameters, *numbers])]
            sizes.add(sum(tensor.numel() for _, tensor in parameters))
        found: list[tuple[str, Callable[[], Any]]] = []
        for one in objects:
            entries = tensors_in(one)
            if not entries or any(id(tensor) in held for _, tensor in entries):
                continue
            whole = one is entries[0][1] and one.numel() in sizes
            if whole or (len(entries) > 1 and shapes_of(entries) in alike):
                name, place = place_of(one)
                found.append((name + mark(entries, describe), place))
        known = Counter(name for name, _ in found)
        self.averages = [entry for entry in found if known[entry[0]] == 1]

    def buffers(
        self,
        describe: Callable[[torch.Tensor], Description],
        provenance: Callable[[torch.Tensor], str | None],
    ) -> dict[str, Description]:
        """The buffers that differ from what they were at the last call; at the first all of them.

        ``describe`` says what is written of one, ``provenance`` gives a hash of its present value, if it can:
        what has the hash that it had is not looked at again.
        """
        return self.changed(buffers_of(self.modules), describe, provenance)

    def others(
        self,
        describe: Callable[[torch.Tensor], Description],
        provenance: Callable[[torch.Tensor], str | None],
    ) -> dict[str, Description]:
        """As :meth:`buffers`, of the parameters that no optimizer owns, and of what is kept like these."""
        kept = [(name + key, one) for name, held in self.averages for key, one in tensors_in(held())]
        small = (entry for entry in (*self.unowned, *kept) if entry[1].numel() <= LARGE)
        return self.changed(small, describe, provenance)

    def changed(
        self,
        tensors: Iterable[tuple[str, torch.Tensor]],
        describe: Callable[[torch.Tensor], Description],
        provenance: Callable[[torch.Tensor], str | None],
    ) -> dict[str, Description]:
        """The tensors, each with its name, that differ from what they were."""
        changed = {}
        for name, tensor in tensors:
            how = provenance(tensor)
            known = self.written.get(name)
            if known is not None and how is not None and known[0] == how:
                continue
            description = describe(tensor)
            self.written[name] = how, description
            if known is None or known[1] != description:
                changed[name] = description
        return changed

    def settings(self) -> dict[str, str]:
        """By module that has any: its settings, where they are not what they were at the last call.

        Torch's own modules list what is set once as ``__constants__``. Whether they work in place says
        nothing of what they compute, and of most the mode does not either.
        """
        changed = {}
        for name, module in self.trained:
            constants = {*getattr(type(module), "__constants__", ())} - {"inplace"}
            if constants & {"p", "dropout"} or held_by(module, "_buffers"):
                constants.add("training")
            if constants:
                given = {key: module.__dict__.get(key) for key in sorted(constants)}
                name = type(module).__name__ + " " + name
                if self.set.get(name) != given:
                    self.set[name] = given
                    changed[name] = repr(given)
        return changed


def held_by(module: torch.nn.Module, what: str) -> dict[str, Any]:
    """What a module itself holds: ``_modules``, ``_parameters`` or ``_buffers`` that are there.

    Scripts override the methods that would tell.
    """
    held = module.__dict__.get(what) or {}
    lazy = torch.nn.parameter.is_lazy
    return {name: one for name, one in held.items() if one is not None and not lazy(one)}


def tensors_in(one: Any) -> list[tuple[str, torch.Tensor]]:
    """The tensors of fractions in a list or a dictionary that holds nothing but tensors, with their keys.

    A row of numbers is taken for one that holds itself.
    """
    pairs: list[tuple[Any, Any]] = []
    if type(one) is list:
        pairs = list(enumerate(one))
    elif type(one) in (dict, OrderedDict):
        pairs = list(one.items())
    elif type(one) is torch.Tensor and one.dim() == 1 and one.grad_fn is None:
        pairs = [(None, one)]
    plain = (torch.Tensor, torch.nn.Parameter)
    if not all(type(value) in plain for _, value in pairs):
        return []
    return [("" if key is None else f"[{key!r}]", value) for key, value in pairs if value.is_floating_point()]


def place_of(one: Any) -> tuple[str, Callable[[], Any]]:
    """The name of the variable or attribute that an object is in, and what gives whatever is in it then."""
    places = []
    for referrer in gc.get_referrers(one):
        space = referrer if type(referrer) is dict else getattr(referrer, "__dict__", None)
        if type(space) is dict:
            names = [key for key, value in list(space.items()) if value is one]
            places += [(key, space) for key in names if type(key) is str]
    if places:
        key, space = min(places, key=lambda place: place[0])
        return key, functools.partial(space.get, key)
    return type(one).__name__, lambda: one


def shapes_of(tensors: Iterable[tuple[str, torch.Tensor]]) -> Counter[torch.Size]:
    """How many tensors there are of each shape."""
    return Counter(tensor.shape for _, tensor in tensors)


def buffers_of(modules: Iterable[tuple[str, torch.nn.Module]]) -> list[tuple[str, torch.Tensor]]:
    """The buffers that modules themselves hold, with their names."""
    return [
        (name + "." + inner, tensor)
        for name, module in modules
        for inner, tensor in held_by(module, "_buffers").items()
    ]


def mark(tensors: Iterable[tuple[str, torch.Tensor]], describe: Callable[[torch.Tensor], Description]) -> str:
    """A suffix of a name that tells what holds these tensors now."""
    return " @" + short(repr([describe(one) for _, one in tensors if one.numel() <= LARGE]).encode())


def labelled(
    network: torch.nn.Module, called: dict[int, str], turns: dict[str, int]
) -> list[tuple[str, torch.nn.Module]]:
    """A network and all in it, with what each is called; ``turns`` counts names that stand for several."""
    labels: dict[str, str] = {}
    found = []
    for path, module in within(network):
        above, _, last = path.rpartition(".")
        inherited = labels[above] + "." + last if path else type(module).__name__
        name = called.get(id(module)) or inherited
        turn = turns[name] = turns.get(name, 0) + 1
        labels[path] = name if turn == 1 else name + " #" + str(turn)
        found.append((labels[path], module))
    return found


def parameters_of(modules: Iterable[tuple[str, torch.nn.Module]]) -> list[tuple[str, torch.Tensor]]:
    """The parameters that modules themselves hold, with their names."""
    return [
        (name + "." + inner, tensor)
        for name, module in modules
        for inner, tensor in held_by(module, "_parameters").items()
    ]


def within(network: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """A module and all in it, each once, with their paths; what holds comes before what is held."""
    found: dict[int, tuple[str, torch.nn.Module]] = {}
    waiting = [("", network)]
    while waiting:
        path, module = waiting.pop()
        if id(module) not in found:
            found[id(module)] = path, module
            inner = held_by(module, "_modules").items()
            waiting += [(path + "." + name if path else name, one) for name, one in reversed(list(inner))]
    return list(found.values())


def saving(kind: type) -> list[str]:
    """The attributes of a graph node's class that hold saved tensors.

    Beside each `_saved_x` that is a tensor, and no number, there is a `_raw_saved_x`. For functions that a
    script defines, both go by other names.
    """
    if hasattr(kind, "saved_tensors"):
        return ["saved_tensors"]
    return [name[len("_raw") :] for name in dir(kind) if name.startswith("_raw_saved_")]


def short(*parts: bytes) -> str:
    """A short digest."""
    return hashlib.blake2b(b"".join(parts), digest_size=8).hexdigest()
