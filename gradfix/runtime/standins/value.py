"""What a file that is not there would have held: a value that takes the shape which its use asks for.

Nobody knows what ``pickle.load(open("train.pkl", "rb"))`` would have returned, but the script does: it asks
for keys, unpacks, goes through, computes. Each use settles a part of a :class:`Value`: a key makes it a
mapping, ``.split()`` a text, a slice or an operation of numpy's or torch's an array. A *place* names a part:
``train.pkl['images'][*]``. What an array holds depends on its place and on nothing else.

A size that nothing has settled is a prime number that no other size has. Where it is wrong, the message of
torch or numpy names it beside the one that was wanted, and ``fit.py`` puts that into the schema.
"""

from __future__ import annotations

import contextlib
import dis
import json
import operator
import os
import pickle
import re
import sys
import types
import zlib
from collections.abc import Iterator
from typing import Any

import torch

from . import context

MARK = b"gradfix: made-up content of "
"""With what a file begins whose content is a :class:`Value`."""
SAMPLES = 64
"""Elements in what is gone through, and rows of an array."""
PRIMES = tuple(one for one in range(37, 200) if all(one % other for other in range(2, 15)))
LABEL = re.compile(r"label|target|\by\b|y_|_y\b|class|answer|survived|outcome", re.I)
INDEX = re.compile(r"idx|index|indices|token|\bids?\b|_ids?\b|word|vocab|seq|user|item|edge", re.I)
TEXT = frozenset(
    "split strip rstrip lstrip lower upper encode decode replace startswith endswith splitlines title".split()
)
MAPPING = frozenset("keys items values get pop setdefault".split())


# -- arrays --------------------------------------------------------------------------------------


def sizes(run: context.StandinRun, place: str, count: int | None = None) -> list[int]:
    """The sizes of the array at a place; of a label one dimension, of anything else two by default.

    Args:
        count: The number of dimensions, if that is known.
    """
    found = run.schema.get("sizes", {}).get(place)
    if found is None:
        rows = [] if place.endswith("[*]") or "[*]" in place else [rows_of(run)]
        wanted = len(rows) + (not _is_label(place)) if count is None else count
        found = [*rows, *(_prime(f"{place} {at}") for at in range(wanted))][: max(wanted, 0)]
    found = list(found)
    run.sizes.pop(place, None)
    run.sizes[place] = found
    return found


def rows_of(run: context.StandinRun) -> int:
    """How many rows and elements there are where nothing says it."""
    return int(run.schema.get("rows", SAMPLES))


def _prime(about: str) -> int:
    """A size that hardly another place has; it does not depend on the order of asking."""
    return PRIMES[zlib.crc32(about.encode()) % len(PRIMES)]


def _last(place: str) -> str:
    """The last name in a place: ``images`` of ``train.pkl['images'][*]``."""
    return re.sub(r"\[\*\]|\[\d+\]", "", place).rpartition("[")[2].strip("'] ") or place


def _is_label(place: str) -> bool:
    return LABEL.search(_last(place)) is not None


def whole_numbers(run: context.StandinRun, place: str) -> bool:
    """Whether the array at a place holds whole numbers: labels, indices, and what had to be."""
    kind = run.schema.get("types", {}).get(place)
    return kind in ("int", "byte") if kind else bool(_is_label(place) or INDEX.search(_last(place)))


@context.quietly
def array(run: context.StandinRun, place: str, count: int | None = None, number: object = 0) -> Any:
    """The array of numpy's at a place: numbers from 0 to 1, or 0 and 1 where they are whole.

    Args:
        count: The number of dimensions, if that is known.
        number: What tells the elements at one place from each other.
    """
    shape, drawn = sizes(run, place, count), context.generator(place, number)
    if run.schema.get("types", {}).get(place) == "byte":
        return torch.randint(0, 256, shape, generator=drawn).to(torch.uint8).numpy()
    if whole_numbers(run, place):
        return torch.randint(0, 2, shape, generator=drawn).numpy()
    return torch.rand(shape, generator=drawn).numpy()


def table(run: context.StandinRun, name: str) -> str:
    """The lines of a table: a column for each name that was asked for, and as many others as it takes."""
    known = run.schema.get("keys", {}).get(name, [])
    rows, width = run.schema.get("sizes", {}).get(name, [rows_of(run), max(_prime(name), len(known))])
    names = [*known, *(f"column_{at}" for at in range(width - len(known)))]
    run.sizes[name] = [rows, width]
    separator = "\t" if name.endswith((".tsv", ".tab")) else ","
    columns = []
    for column in names:
        place = f"{name}['{column}']"
        drawn = context.generator(place)
        if whole_numbers(run, place):
            columns.append(torch.randint(0, 2, (rows,), generator=drawn).tolist())
        else:
            columns.append([round(number, 4) for number in torch.rand(rows, generator=drawn).tolist()])
    lines = [separator.join(names)] if run.schema.get("types", {}).get(name) != "no header" else []
    lines += [separator.join(str(cell) for cell in row) for row in zip(*columns)]
    return "\n".join(lines) + "\n"


# -- values --------------------------------------------------------------------------------------


class Value:
    """A part of a file that is not there; see the module's docstring."""

    def __init__(self, place: str, number: object = 0) -> None:
        self._place, self._number_of = place, number
        self._parts: dict[Any, Any] = {}
        self._held: Any = None
        """The array or the text that it has turned out to be."""

    # -- what it turns out to be --

    def _array(self, count: int | None = None) -> Any:
        if self._held is None or isinstance(self._held, str):
            self._held = array(context.run(), self._place, count, self._number_of)
        return self._held

    def _tensor(self) -> torch.Tensor:
        return torch.as_tensor(self._array())

    def _text(self) -> str:
        about = f"{self._place} {self._number_of}"
        text = " ".join(f"word{zlib.crc32(f'{about} {at}'.encode()) % 50}" for at in range(8))
        self._held = text
        return text

    def _part(self, key: Any, step: str) -> Value:
        if key not in self._parts:
            # Elements of one list have one place, and are told apart by their numbers.
            number = (self._number_of, key) if step == "[*]" else self._number_of
            self._parts[key] = Value(self._place + step, number)
        found: Value = self._parts[key]
        return found

    def _names(self) -> list[str]:
        """The keys of a mapping: those that were asked for."""
        known = [key for key in self._parts if isinstance(key, str)]
        return list(dict.fromkeys([*context.run().schema.get("keys", {}).get(self._place, []), *known]))

    def _enumerate(self, how: str) -> None:
        """Note that the keys were asked for, whatever they are."""
        if how in ("keys", "items", "values"):
            context.run().enumerated.pop(self._place, None)
            context.run().enumerated[self._place] = None

    # -- mappings, sequences, texts --

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (str, bytes)):
            return self._part(key, f"[{key!r}]")
        if (
            isinstance(key, int)
            and self._held is None
            and self._place not in context.run().schema.get("sizes", {})
        ):
            count = rows_of(context.run())
            if not -count <= key < count:
                raise IndexError("list index out of range")
            return self._part(key, "[*]")
        return self._array()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, (str, int)) and self._held is None:
            self._parts[key] = value
        else:
            self._array()[key] = value

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._names()

    def __len__(self) -> int:
        return len(self._held) if self._held is not None else len(self._names()) or rows_of(context.run())

    def __iter__(self) -> Iterator[Any]:
        if self._held is not None:
            return iter(self._held)
        count = unpacked(sys._getframe(1))
        if count is not None:
            return iter([self._part(at, f"[{at}]") for at in range(count)])
        if self._names():
            return iter(self._names())
        return (self._part(at, "[*]") for at in range(rows_of(context.run())))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in MAPPING:
            self._enumerate(name)
            return getattr({key: self._part(key, f"[{key!r}]") for key in self._names()}, name)
        if name in TEXT:
            return getattr(self._text(), name)
        if name in ("shape", "dim", "ndim", "size"):
            return getattr(
                self._tensor() if name == "dim" else self._array(unpacked(sys._getframe(1), 1)), name
            )
        if name in ("append", "extend"):
            return getattr(list(self), name)
        held = self._array()
        return getattr(held if hasattr(held, name) else self._tensor(), name)

    def __enter__(self) -> Value:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def close(self) -> None:
        """As a file of arrays is closed; what it held stays."""

    def state_dict(self) -> Value:
        """A network that was saved whole gives the weights that it was saved with."""
        return self

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        context.run().stop(f"{self._place.partition('[')[0]} is not there, and is used as a network")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._place.endswith("]"):
            context.run().stop(f"{self._place} is not there, and is called")
        return self.load_state_dict()

    # -- numbers --

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        found = self._array()
        return found if dtype is None else found.astype(dtype)

    @classmethod
    def __torch_function__(cls, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*settled(args), **settled(kwargs or {}))

    def _number(self) -> Any:
        found = self._array(0) if self._held is None else self._held
        return found.item() if hasattr(found, "item") else found

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return self._text() if self._held is None or isinstance(self._held, str) else str(self._held)

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self._place)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, str):
            return str(self) == other
        return self is other if isinstance(other, Value) or other is None else self._array() == other


def _operator(name: str, reflected: bool) -> Any:
    function = getattr(operator, name)

    def operate(self: Value, *others: Any) -> Any:
        if others and isinstance(others[0], str):
            mine: Any = self._text()
        elif others and isinstance(others[0], (int, float)) and "[*]" in self._place and self._held is None:
            mine = self._number()
        else:
            mine = self._array()
        if others and isinstance(others[0], torch.Tensor):
            mine = torch.as_tensor(mine)
        return function(*((settled(others[0]), mine) if reflected else (mine, *settled(others))))

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(Value, f"__{_name}__", _operator(_name, False))
    setattr(Value, f"__r{_name}__", _operator(_name, True))
for _name in ("neg", "abs", "lt", "le", "gt", "ge"):
    setattr(Value, f"__{_name}__", _operator(_name, False))


def settled(held: Any) -> Any:
    """``held`` with tensors in the place of values, also within lists, tuples and dictionaries."""
    if isinstance(held, Value):
        return held._tensor()
    if type(held) in (list, tuple):
        return type(held)(settled(one) for one in held)
    if type(held) is dict:
        return {key: settled(one) for key, one in held.items()}
    return held


def unpacked(frame: types.FrameType, further: int = 0) -> int | None:
    """Into how many names a frame unpacks what it is about to get, if it does, or ``further`` on."""
    instructions = iter(dis.get_instructions(frame.f_code))
    for instruction in instructions:
        if instruction.offset >= frame.f_lasti:
            following = [instruction, *(one for _, one in zip(range(3), instructions))]
            found = [one for one in following[: 2 + further] if one.opname == "UNPACK_SEQUENCE"]
            return int(found[0].argval) if found else None
    return None


def names_unpacked(frame: types.FrameType, count: int) -> list[str]:
    """The variables into which a frame is about to unpack something; empty for parts that go elsewhere."""
    stored: list[dis.Instruction] = []
    for one in dis.get_instructions(frame.f_code):
        if one.offset > frame.f_lasti and one.opname != "CACHE" and len(stored) < count:
            stored.append(one)
    known = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
    return [str(one.argval) if one.opname in known else "" for one in stored]


# -- who loads one -------------------------------------------------------------------------------


def install(run: context.StandinRun) -> None:
    """Let the functions that load a file give a value for one that was made up."""
    _loader(run, pickle, "load")
    _loader(run, json, "load")
    _loader(run, torch, "load")
    holder: Any = json
    real_loads = holder.loads

    def loads(text: Any, *args: Any, **kwargs: Any) -> Any:
        data = text if isinstance(text, bytes) else str(text).encode()
        if data.startswith(MARK):
            return Value(os.path.basename(data[len(MARK) :].decode()))
        return real_loads(text, *args, **kwargs)

    holder.loads = loads
    context.when_imported("numpy", lambda module: _loader(run, module, "load", arrays=True))
    context.when_imported("joblib", lambda module: _loader(run, module, "load"))
    context.when_imported("scipy.io", lambda module: _loader(run, module, "loadmat"))
    context.when_imported("h5py", lambda module: _loader(run, module, "File"))
    context.when_imported("pandas", lambda module: _loader(run, module, "read_pickle"))
    for name in ("tensor", "as_tensor", "from_numpy"):
        _taking_values(name)
    _weights(run)


def _loader(run: context.StandinRun, module: Any, name: str, arrays: bool = False) -> None:
    """Let ``module.name`` give a value, or an array, for a file that was made up."""
    real = getattr(module, name)

    def load(*args: Any, **kwargs: Any) -> Any:
        made = _made_up(run, args[0]) if args else None
        if made is None:
            return real(*args, **kwargs)
        if arrays and made.endswith(".npy") and not run.schema.get("keys", {}).get(made):
            return array(run, made)
        return Value(made)

    # ``class Data(h5py.File)`` has to stay a class.
    if isinstance(real, type):
        made = type(real.__name__, (real,), {"__new__": lambda cls, *a, **k: _new(cls, real, load, a, k)})
        setattr(module, name, made)
    else:
        setattr(module, name, load)


def _new(cls: type, real: type, load: Any, args: Any, kwargs: Any) -> Any:
    made = _made_up(context.run(), args[0]) if args else None
    return Value(made) if made is not None else object.__new__(cls)


def _made_up(run: context.StandinRun, source: Any) -> str | None:
    """The name of the file that ``source`` is, a path or an open file, if its content was made up."""
    path = getattr(source, "name", source)
    if not isinstance(path, (str, os.PathLike)):
        return None
    place = run.overlay.reading(os.fspath(path))
    if not str(place).startswith(run.overlay.upper):
        return None
    with contextlib.suppress(OSError), open(place, "rb") as file:
        if file.read(len(MARK)) == MARK:
            return str(os.path.basename(place))
    return None


def _taking_values(name: str) -> None:
    """Let a function of torch that makes a tensor take values."""
    real = getattr(torch, name)

    def make(data: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(data, Value):
            data = data._array()
            if name == "from_numpy" and isinstance(data, torch.Tensor):
                return data
        elif isinstance(data, (list, tuple)) and any(isinstance(one, Value) for one in data):
            data = torch.stack([settled(one) for one in data]).numpy()
        return real(data, *args, **kwargs)

    setattr(torch, name, make)


def _weights(run: context.StandinRun) -> None:
    """Let weights that are not there leave a network, or an optimizer, with those that it has."""
    for owner in (torch.nn.Module, torch.optim.Optimizer):

        def load(self: Any, state: Any, *args: Any, _real: Any = owner.load_state_dict, **kwargs: Any) -> Any:
            # What a script has made of weights that are not there, name by name, is nothing.
            if isinstance(state, Value) or (not state and run.enumerated):
                place = state._place if isinstance(state, Value) else next(reversed(run.enumerated))
                name = place.partition("[")[0]
                run.used(f"weights in {name}", "those that the network was made with")
                return None
            return _real(self, state, *args, **kwargs)

        owner.load_state_dict = load  # type: ignore[method-assign,assignment]
    if run.schema.get("weights"):
        hub: Any = torch.hub

        def from_url(url: str, *args: Any, **kwargs: Any) -> Value:
            run.used(f"weights {os.path.basename(url)}", "a made-up value, shaped by its use")
            return Value(os.path.basename(url))

        hub.load_state_dict_from_url = from_url
