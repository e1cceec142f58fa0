"""What is handed in and is neither network nor optimizer: a value that its use gives a shape.

It is the value that takes the place of a file's content (``standins/value.py``), made of tensors: a batch
of data, a loader of batches, a configuration, a criterion, a logger. A size that is wrong is mended by what
torch says of it, as for every stand-in.
"""

from __future__ import annotations

import dis
import inspect
import linecache
import re
import sys
import types
import zlib
from collections.abc import Iterator
from typing import Any

import torch

from ..standins import context, value
from ..standins.value import Value, unpacked

FRACTION = re.compile(
    r"(?:^|_)(?:lr|rate|eps|epsilon|momentum|decay|betas?|beta\d|b1|b2|gamma|lambda\w*|lam|alpha|tau|coeff?|"
    r"weights?|scale|ratio|prob|dropout|std|sigma|threshold|margin|temp\w*|clip\w*|norm|noise|smooth\w*|w)(?:_|\d|$)",
    re.I,
)
"""Names of numbers between 0 and 1."""
FEW = re.compile(
    r"epochs?|steps?|iters?|iterations?|n_?critic|freq|interval|every|period|accum|repeat|updates?|times|episodes?",
    re.I,
)
"""Names of numbers that say how often something is done."""
SIZE = re.compile(
    r"dims?|size|hidden|channels?|features?|width|height|classes|vocab|length|^len|^num|^n_|_n$|latent|^n[a-z]$|"
    r"^n[a-z]f$|units|heads|layers|depth|workers|^start|offset|index|seed",
    re.I,
)
"""Names of sizes and counts."""
TURN = re.compile(
    r"^(?:i|n|t|k|it|idx|index|step|turn|epoch|iter|iteration|batch_idx|batch_i|global_step|episode)$"
)
"""Names of the number of a call."""
SETTINGS = re.compile(r"conf|cfg|args|opt|param|setting|flags|^hp", re.I)
"""Names of what holds settings."""
CHANGING = re.compile(r"backward|step|zero_grad|minimi[sz]e|optimi[sz]e|update|fit|train")
"""Methods that may change weights or gradients: nobody may take their place."""


SIZES = (10, 14, 22, 26, 34, 38)
"""What sizes are that settings say: small, in halves, and none is a divisor of another."""
FLAG = re.compile(
    r"^(?:is|has|do|no|only|load|save|resume)_|^(?:pretrained|resume|verbose|debug|flag)|cuda|gpu", re.I
)
"""Names of settings that are on or off: off, unless somebody has turned them on."""
SWITCH = re.compile(r"^(?:use|with|enable|add|apply)_", re.I)
"""Names of settings that choose a part of the training: they are off and on by turns."""


class Switch:
    """A setting that is off when everything is set up, and then on at every other call of the entry."""

    turn = 0

    def __bool__(self) -> bool:
        return Switch.turn % 2 == 1

    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    __hash__ = None  # type: ignore[assignment]


REWARD = re.compile(r"^(?:r|rew|rewards?|cost)_?\d*$", re.I)
"""Names of what an action has earned."""
OVER = re.compile(r"^(?:d|dones?|terminated|truncated|terminals?|end|over|finished)_?$", re.I)
"""Names of what says whether something has come to its end."""
ENDING = 5
"""After how many steps that is so, on an average."""
LEFT_OUT = re.compile(r"test|eval|infer|none|predict|demo", re.I)
"""Words for what does not train."""
WORDS = re.compile(r"path|dir|file|folder|root|name|mode|type|kind|url|env|logger|writer", re.I)
"""Names of what is no number."""


def make(cls: type, **known: Any) -> Any:
    """An instance of a class whose constructor hands on what it is given: with all that a base wants."""
    for base in cls.__mro__:
        if "__init__" in base.__dict__ and base is not object:
            wanted = list(inspect.signature(base.__dict__["__init__"]).parameters.values())[1:]
            if not any(one.kind is one.VAR_POSITIONAL for one in wanted):
                required = [
                    one for one in wanted if one.default is one.empty and one.kind is not one.VAR_KEYWORD
                ]
                text = "".join(inspect.getsource(one) for one in cls.__mro__ if one is not object)
                return cls(*(known.get(one.name, handed(one.name, text)) for one in required))
    return cls()


def handed(name: str, text: str) -> Any:
    """What a parameter gets: a number, unless the code asks it for parts or calls it."""
    return Given(name) if re.search(rf"\b{name}(?:\.|\[|\()|in (?:self\.)?{name}\b", text) else number(name)


def number(name: str, turn: int = 0) -> Any:
    """A number for what is called so, as far as its name says; a path, a mode, is no number."""
    if TURN.match(name):
        return turn
    found = _number(name, name)
    if found is None and not WORDS.search(name):
        found = _size(name)
    return Given(name, turn) if found is None else found


def _number(name: str, place: str) -> Any:
    """The number that a name stands for; None if it stands for none."""
    spread = zlib.crc32(place.encode())
    if name in ("device", "dev"):
        return "cpu"
    if FLAG.search(name) and not FEW.search(name):
        return False
    if SWITCH.search(name):
        return Switch()
    if re.search(r"batch_?size|^bs$", name, re.I):
        return value.rows_of(context.run())
    if re.search(r"workers|seed|^start", name, re.I):
        return 0
    if re.search(r"(?:^|_)lr|learning_?rate", name, re.I):
        return 0.01
    if FRACTION.search(name):
        return 0.2 + spread % 61 / 100
    if name in ("epoch", "iteration", "step"):
        return 1  # The first, or the only one.
    if FEW.search(name):
        return 3 if "epoch" in name else 2
    if re.search(r"layers|depth|heads|blocks", name, re.I):
        return 2
    if SIZE.search(name):
        return _size(place)
    return None


def _size(place: str) -> int:
    """The size that a setting says: another one where that has met one that it had to agree with."""
    run = context.run()
    found: int = run.schema.get("numbers", {}).get(place, SIZES[zlib.crc32(place.encode()) % len(SIZES)])
    run.numbers[place] = found
    return found


class Given(Value):
    """A part of what is handed in.

    Args:
        place: What people call it.
        turn: The number of the call: each has data of its own.
        parts: What it is known to hold, as attributes.
    """

    def __init__(self, place: str, turn: object = 0, **parts: Any) -> None:
        super().__init__(place, turn)
        self._calls = 0
        self._word: str | None = None
        """The word that it is, where it has been compared with some."""
        self._rows: int | None = None
        """How many rows it has, where something has put as many samples together."""
        self.__dict__.update(parts)

    def _array(self, count: int | None = None) -> Any:
        if self._held is None or isinstance(self._held, str):
            run = context.run()
            held = torch.as_tensor(value.array(run, self._place, count, self._number_of))
            run.rows.add(self._rows or value.rows_of(run))
            self._held = (
                held if not self._rows or not held.dim() else held[torch.arange(self._rows) % len(held)]
            )
            kind = "whole numbers" if value.whole_numbers(run, self._place) else "numbers from 0 to 1"
            run.used(self._place, f"made-up {kind} of sizes {list(self._held.shape)}")
        return self._held

    def _tensor(self) -> torch.Tensor:
        found: torch.Tensor = self._array()
        return found

    def _part(self, key: Any, step: str) -> Given:
        if key not in self._parts:
            each = step == "[*]"
            number = (self._number_of, key) if each else self._number_of
            place = self._place + (EACH if each else step)
            if place.endswith(".step()[0]"):
                # What an environment shows after a step is as what it shows at first.
                first = self._place.removesuffix(".step()") + ".reset()"
                place = first + "[0]" if first + "[0]" in context.run().sizes else first
            self._parts[key] = Given(place, number)
            self._parts[key]._rows = self._rows
        found: Given = self._parts[key]
        return found

    def _called(self, at: int, name: str) -> Any:
        """The part that is unpacked into a variable: a number if it is called so."""
        at_all = context.generator(self._place, self._number_of, at).initial_seed()
        if name and self._place.endswith("()") and REWARD.search(name):
            return (at_all % 100) / 100
        if name and self._place.endswith("()") and OVER.search(name):
            return at_all % ENDING == 0
        return self._part(at, f"[{at}]")

    def __getitem__(self, key: Any) -> Any:
        if ... in self._parts:
            return self._parts[...]
        if isinstance(key, str):
            found = _number(key, f"{self._place}.{key}") if SETTINGS.search(self._place) else None
            return self._part(key, f"[{key!r}]") if found is None or key in self._parts else found
        known = context.run().schema.get("sizes", {})
        if isinstance(key, int) and self._held is None and self._place not in known:
            return self._part(key, f"[{key}]" if _is_constant(sys._getframe(1)) else "[*]")
        return self._array()[value.settled(key)]

    def __setitem__(self, key: Any, held: Any) -> None:
        if key is ...:
            self._parts[key] = held  # All that it lists is this one.
        else:
            super().__setitem__(key, held)

    def __len__(self) -> int:
        if ... in self._parts:
            return 1
        if self._held is not None and not isinstance(self._held, str):
            return len(self._held)
        rows = value.rows_of(context.run())
        return SAMPLES if self._place.endswith("()") else rows

    def __iter__(self) -> Iterator[Any]:
        if self._held is not None:
            return iter(self._held)
        if ... in self._parts:
            return iter([self._parts[...]])
        count = unpacked(sys._getframe(1))
        if count is not None:
            names = value.names_unpacked(sys._getframe(1), count)
            return iter([self._called(at, name) for at, name in zip(range(count), names)])
        return Rows(self._part(("each", at), "[*]") for at in range(value.rows_of(context.run())))

    def __next__(self) -> Any:
        self._calls += 1
        return self._part(("each", self._calls), "[*]")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_held", "_calls", "_rows", "_word"):
            raise AttributeError(name)
        if name in ("parameters", "named_parameters", "modules", "named_modules"):
            context.run().stop(f"{self._place} is a network, and it is not known who trains it")
        if name == "gpu_ids":
            return []
        if name in ("shape", "ndim", "size", "dim"):
            return getattr(self._array(unpacked(sys._getframe(1), 2)), name)
        if name == "keys" or name == "items" or name == "values":
            return super().__getattr__(name)
        if name == "append":
            return self._parts.setdefault("list", []).append
        is_setting = SETTINGS.search(self._place) is not None and self._held is None
        if hasattr(torch.Tensor, name) and not is_setting:
            return getattr(self._array(), name)
        found = None
        if not is_method(sys._getframe(1)):
            found = _number(name, f"{self._place}.{name}")
        if found is None:
            found = self._part("." + name, "." + name)
        self.__dict__[name] = found
        return found

    def __fspath__(self) -> str:
        return re.sub(r"\W+", "_", self._place).strip("_")

    def __eq__(self, other: object) -> Any:
        if isinstance(other, str) and other and self._held is None and not LEFT_OUT.search(other):
            self._word = self._word or other  # The first that somebody compares it with.
        if self._word is not None and isinstance(other, str):
            return self._word == other
        if not self and isinstance(other, (bool, int, float, str)) and self._held is None:
            return other in ("", False)
        return super().__eq__(other)

    def __str__(self) -> str:
        return self._word or super().__str__()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        found = self._tensor().detach().numpy()
        return found if dtype is None else found.astype(dtype)

    __hash__ = Value.__hash__

    @classmethod
    def __torch_function__(cls, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") in TAKING_SIZES:
            first, rest = (args[:1], args[1:]) if isinstance(args and args[0], torch.Tensor) else ((), args)
            return function(*value.settled(first), *_sized(rest), **_sized(kwargs or {}))
        return function(*value.settled(args), **value.settled(kwargs or {}))

    def __index__(self) -> int:
        return _size(self._place) if self._held is None else super().__index__()

    def __bool__(self) -> bool:
        # A setting that nobody has made is off.
        return "." not in self._place.rpartition("]")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (known := returned(sys._getframe(1))) is not None:
            return known
        name = self._place.rpartition(".")[2]
        unused = is_unused(sys._getframe(1))
        acts = name == "step" and bool(args) and not trained(args) and _is_environment(sys._getframe(1), args)
        if (CHANGING.search(name) and not acts) or (unused and trained((args, kwargs))):
            context.run().stop(f"{self._place}() may change weights or gradients, and nobody sees how")
        if unused:
            return None
        if has_graph((args, kwargs)) and not acts:
            return self._computed([*tensors(args), *tensors(kwargs)])
        self._calls += 1
        return Given(self._place + "()", (self._number_of, self._calls))

    def _computed(self, handed: list[torch.Tensor]) -> torch.Tensor:
        """What a criterion computes of what networks have computed: each has a part in it."""
        context.run().used(f"{self._place}()", "a number that depends on all that it is handed")
        first = handed[0].float().flatten()
        parts = [first.square().mean()]
        for at, one in enumerate(handed[1:], 2):
            other = one.float().flatten()
            size = min(len(first), len(other))
            parts.append((first[:size] - other[:size] / at).square().mean() + other.sigmoid().mean() / at)
        return torch.stack(parts).sum()


def _is_environment(frame: types.FrameType, args: tuple[Any, ...]) -> bool:
    """Whether ``step()`` is one of an environment, which is given an action, and gives what came of it."""
    return (value.unpacked(frame) or 0) > 2 or not (is_unused(frame) or has_graph(args))


class Rows:
    """What goes through the elements of something; it has a method ``next`` as well, as loaders once had."""

    def __init__(self, elements: Iterator[Any]) -> None:
        self._elements = elements

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    next = __next__


TAKING_SIZES = frozenset(
    "randn rand zeros ones empty full randint arange linspace eye view reshape expand repeat chunk".split()
)
"""Functions of torch, and methods of tensors, whose arguments are sizes."""


def _sized(held: Any) -> Any:
    """``held`` with whole numbers in the place of settings."""
    if isinstance(held, Given):
        return int(held.__index__()) if held._held is None else held._tensor()
    if type(held) in (list, tuple):
        return type(held)(_sized(one) for one in held)
    if type(held) is dict:
        return {name: _sized(one) for name, one in held.items()}
    return held


def _with_a_number(name: str) -> Any:
    """An operation of :class:`Given` with a plain number: an attribute that is no array yet is one too."""
    with_arrays = getattr(Value, name)

    def operate(self: Given, *others: Any) -> Any:
        plain = bool(others) and isinstance(others[0], (bool, int, float)) and self._held is None
        if plain and not self:
            return getattr(0.5, name)(*others)
        return with_arrays(self, *others)

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Given, f"__{_name}__", _with_a_number(f"__{_name}__"))
    setattr(Given, f"__r{_name}__", _with_a_number(f"__r{_name}__"))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Given, f"__{_name}__", _with_a_number(f"__{_name}__"))


SAMPLES = 256
"""How many elements something has that absent code has made: a data set."""
EACH = "[each]"
"""How the place of the elements of what is gone through ends."""


def has_graph(held: Any) -> bool:
    """Whether anything in what a call is given has a graph; what is handed in has none, and stays open."""
    if isinstance(held, torch.Tensor):
        return held.requires_grad
    inner = held.values() if isinstance(held, dict) else held if isinstance(held, (list, tuple)) else ()
    return any(has_graph(one) for one in inner)


def tensors(held: Any, depth: int = 3) -> Iterator[torch.Tensor]:
    """The tensors in what a call is given."""
    if isinstance(held, Given):
        held = held._tensor()
    if isinstance(held, torch.Tensor):
        yield held
    elif isinstance(held, dict) and depth:
        for one in held.values():
            yield from tensors(one, depth - 1)
    elif isinstance(held, (list, tuple)) and depth:
        for one in held:
            yield from tensors(one, depth - 1)


_returns: dict[str, Any] = {}


def returns(line: str, made: Any) -> None:
    """Let the call of code out of sight on a ``line`` of source return what was ``made``."""
    _returns[line] = made


def returned(frame: types.FrameType) -> Any:
    """What the call that ``frame`` makes is known to return; None if that is not known."""
    return (
        _returns.get(linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip())
        if _returns
        else None
    )


def trained(held: Any, depth: int = 3) -> bool:
    """Whether there are networks, optimizers or parameters in what a call is given, which it may change."""
    if isinstance(held, (torch.nn.Module, torch.optim.Optimizer, torch.nn.Parameter, types.GeneratorType)):
        return True
    inner = held.values() if isinstance(held, dict) else held if isinstance(held, (list, tuple)) else ()
    return depth > 0 and any(trained(one, depth - 1) for one in inner)


def _is_constant(frame: types.FrameType) -> bool:
    """Whether the code that asks for an item names it: ``batch[0]``, not ``dataset[index]``."""
    before = [one for one in dis.get_instructions(frame.f_code) if one.offset < frame.f_lasti]
    return bool(before) and before[-1].opname == "LOAD_CONST"


def is_method(frame: types.FrameType) -> bool:
    """Whether the code that asks for an attribute is about to call it."""
    now = next((one for one in dis.get_instructions(frame.f_code) if one.offset >= frame.f_lasti), None)
    if now is None or now.opname == "LOAD_METHOD":
        return now is not None
    return sys.version_info >= (3, 12) and now.opname == "LOAD_ATTR" and bool((now.arg or 0) & 1)


def is_unused(frame: types.FrameType) -> bool:
    """Whether the code that calls throws the result away: it only logs, or draws."""
    following = (one for one in dis.get_instructions(frame.f_code) if one.offset > frame.f_lasti)
    after = next((one for one in following if one.opname != "CACHE"), None)
    return after is not None and after.opname == "POP_TOP"
