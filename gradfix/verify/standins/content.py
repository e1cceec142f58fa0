"""Content of data files that do not exist: made up as it is used, in the shapes that the use asks for.

A :class:`Content` stands for what ``pickle.load``, ``np.load`` and the like would have returned. Nobody
knows its structure, but the script does: it asks for keys, unpacks, iterates, reshapes. Each such use
settles a part of it, and where values are needed an array is made from the run's seed and the place in
the file. A size that no use has settled is a prime number that occurs nowhere else, so that the
message of a mismatch (``mat1 and mat2 shapes cannot be multiplied (4x37 and 784x128)``) says which size
should have been what. From that :func:`advise` derives a *plan*, with which the run may be repeated (see
``runner.planned``). Before and after a rewrite are run with the same plan.
"""

from __future__ import annotations

import ast
import functools
import json
import math
import operator
import os
import re
import sys
import types
import zlib
from collections.abc import Iterator
from typing import Any

import torch

from . import context, inert, media

FIELDS = 13
"""Fields in a line of a text, at most."""
SAMPLES = 64
"""Samples in what is made up, and words in a vocabulary."""
WITHIN = (16, 4)
"""Elements of what is an element itself, and of what lies deeper."""
PRIMES = tuple(one for one in range(37, 200) if all(one % other for other in range(2, 15)))
CLASSES = 2
DEEPEST = 5
"""Dimensions of what is made up, at most."""
LARGEST = 1 << 24
"""Values in it, at most."""
GROUPS = 6
"""Classes under whose names the numbers of their samples stand."""
TURNS = 3
"""Of several things of which nothing says which is meant, those that are tried."""
SIDE = 32
"""Height and width of pictures."""

LABEL = re.compile(r"label|target|\by\b|y_|_y\b|class|\bgt\b|answer", re.I)
INDEX = re.compile(
    r"idx|index|indices|token|\bids?\b|_ids?\b|word|vocab|seq|length|count|src|tgt|edge|user|item|caption|bound",
    re.I,
)
NUMBERING = re.compile(r"(2|_to_|to)_?(i|id|idx|ix|ind|index|int|indices)$|^stoi$|^vocab(ulary)?$", re.I)
"""Names of mappings that give each word a number."""
LENGTH = re.compile(r"(lens?|lengths?)(?![a-z])", re.I)
"""Names of lengths, which are more than one."""
BOX = re.compile(r"(?<![a-z])b?box(es)?(?![a-z])", re.I)
"""Names of boxes in pictures: two corners each."""
BESIDE = re.compile(r"label|class|categor|difficult|crowd|area|score", re.I)
"""Names of what each box has, where it stands beside them."""
TIME = re.compile(r"^(start|end|begin|stop|duration|timestamp|fps)(_time|_?sec)?$", re.I)
"""Names of numbers of a sample."""
BOXES = 3
"""Boxes in a picture."""
SQUARE = re.compile(r"adj|laplacian|\bcov", re.I)
AUDIO = re.compile(r"\['(?:\w+_)?(?:wave?|wavs|waveform|audio|speech)s?'\]$", re.I)
"""What is said to be a sound: one row of numbers, many for each of other kinds."""
ENDINGS = frozenset(
    ".json .jsonl .pkl .pickle .p .npy .npz .pt .pth .mat .h5 .hdf5 .csv .tsv .tab .txt .joblib".split()
)
"""Of files: they say nothing of what is in one."""
MAPPING = frozenset(("keys", "items", "values", "get", "pop", "update", "setdefault"))
TEXT = frozenset(
    "split strip rstrip lstrip lower upper encode decode replace startswith endswith join splitlines title "
    "rsplit partition rpartition isdigit isalpha format find".split()
)
LIST = frozenset(("append", "extend", "insert", "index", "remove", "reverse"))


class Book:
    """What was made up in a run, and the plan by which it was."""

    def __init__(self, plan: str) -> None:
        self.plan: dict[str, dict[str, Any]] = json.loads(plan) if plan else {}
        self.dims: dict[str, list[int]] = {}
        """The sizes of what was made, by place; the latest last."""
        self.kinds: dict[str, str] = {}
        self.styles: dict[str, str] = {}
        self.separators: dict[str, str] = {}
        """By absent file of text: what its lines are taken apart by, if anything says so."""
        self.blanks: set[str] = set()
        """Absent files of text whose readers ask for lines that hold nothing."""
        self.touched = ""
        """The place that was looked at last."""
        self.shaped = ""
        """The place whose ``shape`` was asked for last."""
        self.pictures = 0
        """Channels of the last picture that was made."""
        self.brought = False
        """Whether pictures are brought to smaller sizes than the script asks for."""
        self.sides: set[tuple[int, int]] = set()
        """These sizes and those of the script that they are in the place of."""
        self.classes = 0
        """Of the folders of pictures that were made."""
        self.turns: dict[str, list[Any]] = {}
        """What one of several was taken for, and all of them, where nothing says which of them it is."""
        self.chosen: dict[str, list[str]] = {}
        """Of options that have to have one of several texts: these, by the option's name."""
        self.folders = False
        """Whether a folder has been made up."""
        self.missed: list[str] = []
        """Endings of files that were looked for in one, and not found."""
        self.gone_through = ""
        """The place of what was gone through last, element by element."""
        self.collated: list[str] = []
        """The places whose elements were put together into batches."""
        self.kin: dict[str, dict[str, Any]] = {}
        """The plan by what files of training and of tests have in common in their names."""
        for place, fields in self.plan.items():
            self.kin[kin(place)] = {**fields, **self.kin.get(kin(place), {})}
        self.boxed = {owner(place) for place in self.plan if BOX.search(last(place))}
        """Places of mappings in which there are boxes."""
        self.primes: dict[str, int] = {}
        self.taken = {one for fields in self.plan.values() for one in fields.get("dims", ())}

    def prime(self, place: str) -> int:
        """A size for a dimension at a place, which nothing else has but its likes in other files.

        It comes from the place, not from the order in which places are looked at: that may be another
        after a rewrite.
        """
        place = kin(place)
        if place in self.primes:
            return self.primes[place]
        start = zlib.crc32(place.encode())
        free = [one for one in PRIMES if one not in self.taken] or PRIMES
        first = PRIMES[start % len(PRIMES)]
        chosen = first if first in free else free[start % len(free)]
        self.taken.add(chosen)
        self.primes[place] = chosen
        return chosen

    def planned(self, place: str, what: str) -> Any:
        """What the plan says of a place, else of one that is its like in a file for tests."""
        found = self.plan.get(place, {}).get(what)
        return self.kin.get(kin(place), {}).get(what) if found is None and self.kin else found

    def turn(self, name: str, among: list[Any]) -> Any:
        """One of several that may all be meant by ``name``: the next one if the run failed with another."""
        if not among:
            return None
        self.turns.setdefault(name, among[:TURNS])
        return among[(self.planned(name, "turn") or 0) % len(among)]

    def sizes(self, place: str, count: int | None = None) -> list[int]:
        """The sizes of the array at a place, with ``count`` dimensions if that is known."""
        known = self.planned(place, "dims")
        known = self.dims.get(place) if known is None else known
        if known is None:
            known = [BATCH] if in_batch(place) else [] if one_sample(place) else [SAMPLES]
            if SQUARE.search(last(place)):
                known = [self.prime(place)] * 2
            elif BOX.search(last(place)):
                self.boxed.add(owner(place))
                known = [BOXES if one_sample(place) else SAMPLES, 4]
            elif one_sample(place) and owner(place) in self.boxed and BESIDE.search(last(place)):
                known = [BOXES]
            elif AUDIO.search(place):
                known = [SAMPLES * 256]
            elif (
                not LABEL.search(last(place))
                and not (one_sample(place) and TIME.search(last(place)))
                and (count is None or count > len(known))
            ):
                known.append(self.prime(f"{place} {len(known)}"))
        known = list(known)
        if count == 4 and len(known) == 2:
            known += [SIDE, SIDE]
        while count is not None and len(known) < count:
            known.append(self.prime(f"{place} {len(known)}"))
        self.dims.pop(place, None)
        self.dims[place] = known
        return list(known)

    def style(self, name: str) -> str:
        """What the lines of an absent file of text hold; files that are numbered are alike."""
        name = re.sub(r"\d+", "*", name)
        self.styles.pop(name, None)
        self.styles[name] = str(self.planned(name, "style") or "common words")
        return self.styles[name]

    def kind(self, place: str) -> str:
        """``float`` or ``int``."""
        found = self.planned(place, "kind")
        if found is None:
            name = last(place)
            counted = LABEL.search(name) or INDEX.search(name) or NUMBERING.search(last(owner(place)))
            found = "int" if counted else "float"
        self.kinds[place] = found
        return str(found)


SPLITS = re.compile(r"(?<![a-z])(?:train(?:ing)?|valid(?:ation)?|val|dev|eval|test(?:ing)?)(?![a-z])", re.I)
"""What tells the files of one kind from each other, and their parts."""


@functools.cache
def kin(place: str) -> str:
    """A place without what tells samples for training from those for tests, or ``left1`` from ``left2``."""
    name, bracket, rest = place.partition("[")
    rest = re.sub(r"(?<=[A-Za-z_])\d(?='\])", "*", SPLITS.sub("*", rest))
    return re.sub(r"\d+", "*", SPLITS.sub("*", name)) + bracket + rest


book = Book("")
"""Of this process's run."""


def one_sample(place: str) -> bool:
    """Whether a place lies within one of several samples that are alike."""
    return "[*]" in place


def in_batch(place: str) -> bool:
    """Whether a place is a part of one of the batches that a loader gives."""
    return BATCHES.search(place) is not None and place.count("[*]") == 1


BATCHES = re.compile(r"\['(?:\w*_)?(?:\w*loader|iter(?:ator)?|batches)s?'\]\[\*\]\[[^*]", re.I)
"""What is given one after the other by what is called a loader."""
BATCH = 4
"""Samples in a batch of it."""


def owner(place: str) -> str:
    """The place of what a place is a part of."""
    return place.rpartition("[")[0]


def nested(place: str) -> int:
    """How many elements there are at a place of which nothing is known: fewer within others."""
    return (SAMPLES, *WITHIN)[min(place.count("[*]"), len(WITHIN))]


def grouped(place: str) -> bool:
    """Whether what has names for keys at a place is said to hold classes: each has its own samples."""
    return re.search(r"class", last(place), re.I) is not None


def last(place: str) -> str:
    """The name that says most about a place: the last key, else the file's."""
    keys = re.findall(r"\['([^']*)'\]|\.(\w+)(?=\[|$)", place)
    named = [one or other for one, other in keys if one or (other and "." + other not in ENDINGS)]
    return named[-1] if named else place.split("[")[0]


def numpy() -> Any:
    """numpy, if it is there."""
    return sys.modules.get("numpy")


class Content:
    """A value that a file would have held; see the module's docstring."""

    def __init__(self, place: str, number: int = 0, *, tensors: bool = False, dims: Any = None) -> None:
        self._place = place
        self._number = number
        """Which of the elements that are alike it is."""
        self._tensors = tensors
        self._dims: list[int] | None = dims
        """The sizes, if something else has settled them; none of a number."""
        self._children: dict[Any, Any] | None = None
        self._array: Any = None
        self._list: list[Any] | None = None

    # -- parts ---------------------------------------------------------------------------

    def _part(self, suffix: str, number: int | None = None, dims: Any = None) -> Any:
        return part(self._place + suffix, self._number if number is None else number, self._tensors, dims)

    def _child(self, key: Any) -> Any:
        if self._children is None:
            self._children = {}
        if key not in self._children:
            name = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
            dims: list[int] | None = [] if NUMBERING.search(last(self._place)) else None
            self._children[key] = self._part("[" + repr(name) + "]", dims=dims)
        return self._children[key]

    def _length(self) -> int:
        if self._list is not None:
            return len(self._list)
        if self._array is not None:
            return len(self._array)
        if self._dims is not None:
            if not self._dims:
                raise TypeError("a number has no length")
            return self._dims[0]
        known = book.planned(self._place, "dims") or [BATCH if in_batch(self._place) else nested(self._place)]
        return int(known[0])

    def _element(self, number: int) -> Any:
        if self._list is None and self._place.endswith("[**]") and grouped(self._place[:-4]):
            # The numbers of the samples of one class.
            self._list = list(range(self._number, SAMPLES, GROUPS))
        if self._list is not None:
            return self._list[number]
        if self._array is not None:
            return self._array[number]
        if number < 0:
            number += self._length()
        if not 0 <= number < self._length():
            raise IndexError("index out of range")
        if self._dims is not None and len(self._dims) == 1:
            return self._settled()[number]
        rest = None if self._dims is None else self._dims[1:]
        fields = book.planned(self._place, "fields")
        if fields:
            return tuple(
                self._part("[*][" + str(i) + "]", self._number * 1000 + number) for i in range(fields)
            )
        return self._part("[*]", self._number * 1000 + number, rest)

    def _text(self) -> str:
        words = media.text(context.run(), self._place + str(self._number), 1)
        return words.strip()

    def _name(self) -> str:
        name = re.sub(r"\W+", "_", last(self._place)).strip("_")
        return name + "_" + format(self._number, "03d")

    # -- values --------------------------------------------------------------------------

    def _settled(self, count: int | None = None) -> Any:
        """The array of its values, an array of numpy's or a tensor."""
        if self._list is not None:
            return self._list
        if self._array is None:
            self._array = self._made(count)
        return self._array

    def _made(self, count: int | None) -> Any:
        place = self._place
        if self._dims is not None:
            dims = self._dims
        elif place.endswith("[*]"):
            dims = book.sizes(place[:-3], None if count is None else count + 1)[1:]
        else:
            dims = book.sizes(place, count)
        kind = book.kind(place)
        generator = context.run().generator("content", place, self._number)
        if kind == "int" and LENGTH.search(last(place)) and book.planned(place, "high") is None:
            values = torch.randint(4, 9, dims, generator=generator)
        elif kind == "int":
            values = torch.randint(0, book.planned(place, "high") or CLASSES, dims, generator=generator)
        else:
            values = torch.rand(dims, generator=generator)
            if BOX.search(last(place)) and dims and dims[-1] == 4:
                # The second corner lies below the first, and to the right of it.
                values[..., 2:] = values[..., :2] / 2 + 0.25
                values[..., :2] /= 4
        np = numpy()
        return values if self._tensors or np is None else values.numpy()

    def _known(self) -> bool:
        """Whether anything has settled what it is."""
        return not (self._array is None and self._dims is None and self._list is None)

    def _tensor(self) -> Any:
        return torch.as_tensor(self._settled())

    def _scalar(self) -> Any:
        if self._dims is None and self._array is None:
            name = last(self._place)
            if LENGTH.search(name):
                return int(torch.randint(4, 9, (), generator=self._generator()))
            if LABEL.search(name) or "[*]" in self._place:
                return int(torch.randint(0, CLASSES, (), generator=self._generator()))
            if re.search(r"epoch|step|iter|start|best|loss|acc", name, re.I):
                return 0
            return SAMPLES
        return self._tensor().reshape(-1)[0].item()

    def _generator(self) -> torch.Generator:
        return context.run().generator("content", self._place, self._number)

    # -- how it is used ------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._list is not None:
            return getattr(self._list, name)
        if self._array is None and self._dims is None:
            if name in MAPPING:
                return getattr(self._mapping(), name)
            if name in TEXT:
                return getattr(self._text(), name)
            if name in LIST:
                self._list = [self._element(i) for i in range(self._length())]
                return getattr(self._list, name)
            if name == "item":
                return lambda: self._part(".item")
            if name in ("reshape", "view", "transpose", "permute"):
                # numpy passes an order on.
                return lambda *sizes, **order: self._arranged(name, sizes)
            if name == "shape":
                book.shaped = self._place
                return self._settled(asked_dimensions(sys._getframe(1))).shape
        array = self._settled_for(name)
        if array is None:
            return self._child_attribute(name)
        return getattr(array, name)

    def _settled_for(self, name: str) -> Any:
        if name == "shape":
            book.shaped = self._place
        np = numpy()
        if self._array is None and self._dims is None:
            known = hasattr(torch.Tensor, name) or (np is not None and hasattr(np.ndarray, name))
            if not known:
                return None
        array = self._settled()
        if hasattr(array, name):
            return array
        return torch.as_tensor(array) if hasattr(torch.Tensor, name) else None

    def _child_attribute(self, name: str) -> Any:
        if self._children is None:
            self._children = {}
        if "." + name not in self._children:
            self._children["." + name] = self._part("." + name)
        return self._children["." + name]

    def _mapping(self) -> Mapping:
        return Mapping(self)

    def _arranged(self, how: str, sizes: Any) -> Any:
        sizes = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
        whole = all(isinstance(size, int) for size in sizes)
        if whole and how in ("transpose", "permute"):
            count = len(sizes) if len(sizes) > 2 or how == "permute" else None
            return getattr(self._settled(count), how)(*sizes)
        if whole and sizes and book.planned(self._place, "dims") is None and self._place not in book.dims:
            fixed = math.prod(size for size in sizes if size > 0)
            if sizes[0] == -1 and len(sizes) > 1:
                book.dims[self._place] = [SAMPLES, fixed]
            elif -1 not in sizes:
                book.dims[self._place] = [sizes[0], fixed // max(1, sizes[0])]
        array = self._settled()
        return getattr(array if hasattr(array, how) else torch.as_tensor(array), how)(*sizes)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            self.__dict__[name] = value
        else:
            if self._children is None:
                self._children = {}
            self._children["." + name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(one, torch.Tensor) for one in (*args, *kwargs.values())):
            # It may be a network, and what that computes is not made up.
            context.run().stop(self._place + " is made up and is called with a tensor")
        return self._part("()")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (str, bytes)) or (self._children is not None and key in self._children):
            return self._child(key)
        if self._list is not None:
            return self._list[key]
        if isinstance(key, Content):
            key = key._scalar()
        if isinstance(key, tuple):
            if not any(isinstance(one, str) for one in key):
                wanted = sum(one is not None and one is not Ellipsis for one in key)
                return self._settled(max(2, wanted) if self._array is None and key else None)[key]
            return self._child(key)
        if self._array is not None:
            return self._array[key]
        if isinstance(key, slice):
            return self._shorter(len(range(*key.indices(self._length()))))
        if hasattr(key, "__len__") and getattr(key, "ndim", 1) == 1:
            return self._settled()[as_index(key)]
        try:
            number = operator.index(key)
        except TypeError:
            return self._child(key)
        if self._list is None and self._converted(sys._getframe(1)):
            return self._settled()[number]
        if "[*]" in self._place and self._dims is None and constant_index(sys._getframe(1)):
            return self._part("[" + str(number) + "]")
        return self._element(number)

    def _shorter(self, length: int) -> Any:
        if self._dims is not None:
            return self._settled()[:length]
        found = self._part("")
        found._list = [self._element(i) for i in range(length)] if length < 4 else None
        if found._list is None:
            found.__class__ = Part
            found.__dict__["_long"] = length
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, int) and self._array is None:
            if self._list is None:
                self._list = [self._element(i) for i in range(self._length())]
            self._list[key] = value
        elif isinstance(key, tuple) and any(isinstance(one, slice) for one in key):
            self._settled(len(key))[key] = value
        elif self._array is not None and not isinstance(key, str):
            self._array[key] = value
        else:
            self._child(key)
            assert self._children is not None
            self._children[key] = value

    def __iter__(self) -> Iterator[Any]:
        if self._list is not None:
            return iter(self._list)
        count = context.unpacking(sys._getframe(1))
        if count is not None and self._array is None:
            if self._dims is not None:
                return iter([self._element(i) for i in range(count)])
            names = unpacked_names(sys._getframe(1), count)
            return iter([self._part("[" + name + "]") for name in names])
        if self._array is not None:
            return iter(self._array)
        book.gone_through = self._place
        fields = book.planned(self._place, "record")
        if fields:
            return iter([self._part("[" + str(one) + "]") for one in range(fields)])
        if self._length():
            self._element(0)  # It may be found to be a list.
        return iter([self._element(i) for i in range(self._length())])

    def __len__(self) -> int:
        frame = sys._getframe(1)
        self._asked = (id(frame), frame.f_lasti)
        return self._length()

    def _converted(self, frame: types.FrameType) -> bool:
        """Whether the instruction that asked for the length now asks for elements: it converts all."""
        return self.__dict__.get("_asked") == (id(frame), frame.f_lasti)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, (str, bytes))

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __str__(self) -> str:
        return self._name()

    __repr__ = __fspath__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self._name(), spec) if not spec or spec[-1] == "s" else format(self._scalar(), spec)

    def __hash__(self) -> int:
        return hash((self._place, self._number))

    def __eq__(self, other: object) -> Any:
        if other is None or isinstance(other, (str, bytes, bool)):
            return False
        if isinstance(other, Content):
            return self._place == other._place and self._number == other._number
        return self._settled() == other

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self._settled()
        array = numpy().asarray(array)
        return array if dtype is None else array.astype(dtype)


class Tensors(Content):
    """A content of tensors, which functions of torch take.

    Others have no ``__torch_function__``: constructors such as ``torch.Tensor`` would then not see the
    sequence that they are; nor ``__index__``, which they would take for a size.
    """

    @classmethod
    def __torch_function__(cls, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*known(args), **known(kwargs or {}))


class Number(Content):
    """A content that is known to be one number."""

    def __index__(self) -> int:
        return int(self._scalar())


def part(place: str, number: int = 0, tensors: bool = False, dims: Any = None) -> Any:
    """The content at a place, of the class that fits what is known of it."""
    settled = book.planned(place, "dims") if dims is None else dims
    book.touched = place
    if book.planned(place, "text"):
        return Content(place, number)._text()
    kind = Number if settled == [] else Tensors if tensors else Content
    return kind(place, number, tensors=tensors, dims=dims)


class Part(Content):
    """Some of the elements of a content."""

    def _length(self) -> int:
        if self._list is not None or self._array is not None:
            return super()._length()
        return int(self.__dict__["_long"])

    def _made(self, count: int | None) -> Any:
        array = super()._made(count)
        long = self._length()
        return array[torch.arange(long).remainder(len(array)).numpy()] if len(array) < long else array[:long]


class Mapping(dict):  # type: ignore[type-arg]
    """What ``items()`` and the like of a content give: words, and a part for each."""

    def __init__(self, content: Content) -> None:
        held = content._children or {}
        # Attributes are no keys.
        known = [(key, one) for key, one in held.items() if not (isinstance(key, str) and key[:1] == ".")]
        if not known:
            count = GROUPS if grouped(content._place) else SAMPLES
            words = [media.WORDS[i] if i < len(media.WORDS) else "word_" + str(i) for i in range(count)]
            known = [(word, content._part("[**]", i)) for i, word in enumerate(words)]
        super().__init__(known)
        self._content = content

    def get(self, key: Any, default: Any = None) -> Any:
        return self._content[key] if isinstance(key, (str, bytes)) else super().get(key, default)

    def __missing__(self, key: Any) -> Any:
        return self._content._child(key)


ORDER = frozenset(("lt", "le", "gt", "ge"))


def _operation(name: str, reverse: bool) -> Any:
    real = getattr(operator, name)

    def operate(self: Content, *others: Any) -> Any:
        if isinstance(others[0] if others else None, str):
            return real(others[0], str(self)) if reverse else real(str(self), others[0])
        if name in ORDER and isinstance(others[0], Content) and not (self._known() or others[0]._known()):
            # As texts are put in order, or things of which only the order matters.
            return real((self._place, self._number), (others[0]._place, others[0]._number))
        values = [
            one._settled() if isinstance(one, Content) else one
            for one in ((*others, self) if reverse else (self, *others))
        ]
        if any(isinstance(one, torch.Tensor) for one in values):
            values = [torch.as_tensor(one) for one in values]
        return real(*values)

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"):
    for _reverse in (False, True):
        setattr(
            Content,
            "__" + ("r" if _reverse else "") + _name.rstrip("_") + "__",
            _operation(_name, _reverse),
        )
for _name in ("neg", "abs", *sorted(ORDER)):
    setattr(Content, "__" + _name + "__", _operation(_name, False))


def as_index(key: Any) -> Any:
    """A list or tensor of numbers as an index of an array."""
    return key.tolist() if isinstance(key, torch.Tensor) else key


def known(value: Any) -> Any:
    """``value`` with tensors in the place of contents."""
    if isinstance(value, Content):
        return value._tensor()
    if isinstance(value, (list, tuple)) and any(isinstance(one, Content) for one in value):
        return type(value)(known(one) for one in value)
    if isinstance(value, tuple):
        return tuple(known(one) for one in value) if type(value) is tuple else value
    if isinstance(value, dict):
        return {key: known(one) for key, one in value.items()}
    return value


def asked_dimensions(frame: types.FrameType) -> int | None:
    """How many dimensions an array has whose ``shape`` a frame is asking for, as far as it shows."""
    after = context.following(frame)
    if after is None:
        return None
    if after.opname == "UNPACK_SEQUENCE":
        return int(after.argval)
    if after.opname == "LOAD_CONST" and isinstance(after.argval, int) and after.argval >= 2:
        return int(after.argval) + 1
    return None


def unpacked_names(frame: types.FrameType, count: int) -> list[str]:
    """What a frame calls the ``count`` values into which it unpacks one: names as keys, else numbers."""
    found: list[str] = []
    for index in range(3 * count):
        after = context.following(frame, index + 1)
        if after is None or len(found) == count:
            break
        if after.opname.startswith("STORE_") and isinstance(after.argval, str):
            found.append(repr(after.argval))
        elif after.opname.startswith("STORE_") and isinstance(after.argval, tuple):
            found.extend(repr(one) for one in after.argval)
        elif not after.opname.startswith("LOAD_"):
            break
    return found if len(set(found)) == count else [str(one) for one in range(count)]


def constant_index(frame: types.FrameType) -> bool:
    """Whether a frame is indexing with a number that stands in its text."""
    before = context.following(frame, -1)
    return before is not None and before.opname in ("LOAD_CONST", "LOAD_SMALL_INT")


def absent(run: context.Run, path: Any, *, tensors: bool = False) -> Any:
    """The content of the data file at ``path``, which is not there."""
    name = os.path.basename(os.fspath(path))
    run.used("content of " + name, "values made up as they are used")
    run.shortened |= run.small
    convert_contents()
    return part(name, tensors=tensors)


_converting = False


def convert_contents() -> None:
    """Let torch take contents where it takes arrays; from the first that there is."""
    global _converting
    if _converting:
        return
    _converting = True
    for name in ("tensor", "as_tensor", "from_numpy"):
        real = getattr(torch, name)

        def convert(data: Any, *args: Any, _real: Any = real, _name: str = name, **kwargs: Any) -> Any:
            if isinstance(data, Content):
                if _name == "from_numpy":
                    return torch.as_tensor(data._settled())
                data = data._settled()
                if _name == "tensor" and isinstance(data, torch.Tensor):
                    data = data.tolist()
            elif _name != "from_numpy" and isinstance(data, (list, tuple)):
                data = plain(data)
            return _real(data, *args, **kwargs)

        context.replace(torch, name, convert)
    constructors()
    real_set = torch.Tensor.__setitem__

    def assign(self: Any, index: Any, value: Any) -> None:
        real_set(self, index, value._tensor() if isinstance(value, Content) else value)

    context.replace(torch.Tensor, "__setitem__", assign)
    real_default = json.JSONEncoder.default

    def default(self: Any, value: Any) -> Any:
        if isinstance(value, Content):
            return value._settled().tolist() if value._known() else str(value)
        return real_default(self, value)

    context.replace(json.JSONEncoder, "default", default)
    try:
        from torch.utils.data._utils import collate
    except ImportError:
        return

    def together(batch: Any, *, collate_fn_map: Any = None) -> Any:
        place = getattr(batch[0], "_place", "")
        if place.endswith("[*]"):
            book.collated.append(place[:-3])
        parts = [one._tensor() if isinstance(one, Content) else torch.as_tensor(one) for one in batch]
        return torch.stack([one.to(parts[0].dtype) for one in parts])

    def tensors(batch: Any, *, collate_fn_map: Any = None) -> Any:
        if any(isinstance(one, Content) for one in batch):
            return together(batch)
        return real_tensors(batch, collate_fn_map=collate_fn_map)

    real_tensors = collate.default_collate_fn_map[torch.Tensor]
    collate.default_collate_fn_map[torch.Tensor] = tensors
    for kind in (Content, Tensors, Number, Part):
        collate.default_collate_fn_map[kind] = together


class Constructor(type):
    """Stands for a type of tensors (``torch.FloatTensor``) and takes contents as well."""

    real: Any
    dtype: torch.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Content):
            return torch.as_tensor(args[0]._settled()).to(cls.dtype)
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = (plain(args[0]),)
        return cls.real(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.real)


def constructors() -> None:
    """Let the types of tensors take contents."""
    for name in ("Float", "Double", "Long", "Int", "Byte", "Bool", "Short", "Half"):
        real = getattr(torch, name + "Tensor")
        made = Constructor(name + "Tensor", (), {"real": real, "dtype": real.dtype})
        for owner in (torch, torch.cuda):
            setattr(owner, name + "Tensor", made)
    variable = type(
        "Variable",
        (Constructor,),
        {"__call__": lambda cls, *args, **kwargs: cls.real(*known(args), **kwargs)},
    )
    torch.autograd.Variable = variable(  # type: ignore[misc]
        "Variable", (), {"real": torch.autograd.Variable}
    )
    real_type = torch.Tensor.type

    def kind(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = tuple(one.dtype if isinstance(one, Constructor) else one for one in args)
        return real_type(self, *args, **kwargs)

    context.replace(torch.Tensor, "type", kind)


def plain(values: Any) -> Any:
    """Nested lists with numbers and lists in the place of contents."""
    if isinstance(values, Content):
        settled = values._settled() if values._dims or values._array is not None else None
        return values._scalar() if settled is None else settled.tolist()
    if isinstance(values, (list, tuple)) and any(isinstance(one, (Content, list, tuple)) for one in values):
        return type(values)(plain(one) for one in values)
    return values


# -- plans -----------------------------------------------------------------------------------

NUMBER = r"(\d+)"
WRONG_RIGHT = (
    r"cannot be multiplied \(\d+x(?P<wrong>\d+) and (?P<right>\d+)x\d+\)",
    r"to have (?P<right>\d+) channels, but got (?P<wrong>\d+) channels",
    r"Expected (?P<right>\d+), got (?P<wrong>\d+)",
    r"expected input with shape \[\*, (?P<right>\d+)\], but got input of size\s*\[(?:\d+, )*(?P<wrong>\d+)\]",
    r"running_mean should contain (?P<wrong>\d+) elements not (?P<right>\d+)",
    r"size of tensor a \((?P<wrong>\d+)\) must match the size of tensor b \((?P<right>\d+)\)",
    r"size of tensor a \((?P<right>\d+)\) must match the size of tensor b \((?P<wrong>\d+)\)",
    r"Expected size (?P<right>\d+) but got size (?P<wrong>\d+)",
    r"Expected size (?P<wrong>\d+) but got size (?P<right>\d+)",
    r"expanded size of the tensor \((?P<right>\d+)\) must match the existing size \((?P<wrong>\d+)\)",
    r"expanded size of the tensor \((?P<wrong>\d+)\) must match the existing size \((?P<right>\d+)\)",
    r"not aligned: (?P<wrong>\d+) \(dim \d+\) != (?P<right>\d+)",
    r"not aligned: (?P<right>\d+) \(dim \d+\) != (?P<wrong>\d+)",
    r"from shape \((?:\d+,\s*)*(?P<wrong>\d+),?\) into shape \((?:\d+,\s*)*(?P<right>\d+),?\)",
    r"shapes \((?:\d+,\s*)*(?P<wrong>\d+),?\) \((?:\d+,\s*)*(?P<right>\d+),?\)",
    r"shapes \((?:\d+,\s*)*(?P<right>\d+),?\) \((?:\d+,\s*)*(?P<wrong>\d+),?\)",
    r"expected tensor \[(?P<right>\d+)\] and src \[(?P<wrong>\d+)\]",
    r"input batch_size \((?P<right>\d+)\) to match target batch_size \((?P<wrong>\d+)\)",
    r"[Tt]arget size \(torch\.Size\(\[(?:\d+, )*(?P<wrong>\d+)\]\)\).*"
    r"input size \(torch\.Size\(\[(?:\d+, )*(?P<right>\d+)\]\)\)",
)
"""Messages that name a size that was met, and the one that was wanted."""


SMALL_PICTURES = re.compile(
    r"cannot be multiplied|[Oo]utput size is too small|Kernel size can't be greater than actual input size|"
    r"is invalid for input of size|more than 1 value per channel"
)
"""Messages of a network that is made for pictures of one size."""


def advise(error: BaseException) -> str | None:
    """A plan by which the run might get further than this error, ``None`` if nothing suggests one."""
    change = advised(error)
    if change is not None:
        return change
    if (larger := larger_pictures()) is not None:
        return planned_with(*larger)
    if (other := other_pictures(str(error))) is not None:
        return planned_with(*other)
    for name, among in book.turns.items():
        turn = (book.planned(name, "turn") or 0) + 1
        if turn < len(among):
            return planned_with(name, "turn", turn)
    return None


def advised(error: BaseException) -> str | None:
    """The plan that the message of an error suggests."""
    message = str(error)
    unlike = re.search(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", message)
    reduced = unlike is not None and {int(unlike[1]), int(unlike[2])} in [set(pair) for pair in book.sides]
    if book.brought and (reduced or SMALL_PICTURES.search(message)):
        return planned_with("pictures", "brought", "to the sizes of the script")
    if book.pictures and (change := pictures(message)) is not None:
        return planned_with(*change)
    if not book.touched and not book.styles:
        return None
    if isinstance(error, TypeError) and TEXT_WANTED.search(message):
        return planned_with(wanting_text(error), "text", True)
    if isinstance(error, TypeError) and TEXT_ADDED.search(message) and (column := named_column(error)):
        return planned_with(column, "text", True)
    if re.search(r"\b(Content|Part|Number)\b", message) and isinstance(error, TypeError):
        # A function of torch was looked up before the content was there that it is called with.
        return planned_with("torch", "contents", True) or planned_with("code", "tensors", True)
    if re.search(
        r"(flatten|sum|mean|squeeze|repeat)\(\) (takes|got)|'int' object is not callable|"
        r"numpy.ndarray' object has no attribute",
        message,
    ):
        if (tensors := planned_with("code", "tensors", True)) is not None:
            return tensors
    if WHOLE.search(message) and book.touched:
        return planned_with(book.touched, "dims", [])
    change = (
        sizes(message)
        or insisted(error)
        or columns(message, error)
        or shape_unpacked(message, error)
        or dimensions(message)
        or arrangement(message)
        or kinds(message)
    )
    if change is None:
        return None
    return planned_with(*change)


WHOLE = re.compile(
    r"object cannot be interpreted as an integer|integers or slices, not (Content|Part|Tensors)|"
    r"must be tuple of ints, but found element of type (Content|Part|Tensors)"
)
"""Messages where a value has the place of a whole number."""
TEXT_WANTED = re.compile(
    r"(expected string or bytes-like object, got|expected str instance,|must be str, not|apply to a) "
    r"'?(Content|Part|Number)\b"
)
"""Messages of what takes nothing but a text."""


TEXT_ADDED = re.compile(
    r"for \+: '(int|float)[^']*' and 'str'|for \+: 'str' and '(int|float)|can only concatenate str|"
    r"expected str, bytes or os.PathLike object, not (int|float)|join\(\) argument must be str"
)
"""Messages where a number has the place of a text."""


def named_column(error: BaseException) -> str:
    """The column of a table of numbers that the statement names which failed, or that which called it."""
    trace, run = error.__traceback__, context.run()
    names: set[str] = set()
    while trace is not None:
        if run.owns(trace.tb_frame):
            around = context.statements_at(run.tree(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
            constants = (
                [one.value for one in ast.walk(around[-1]) if isinstance(one, ast.Constant)] if around else []
            )
            names |= {one for one in constants if isinstance(one, str)}
        trace = trace.tb_next
    places = [place for place in book.kinds if last(place) in names and not one_sample(place)]
    return places[-1] if places else ""


def wanting_text(error: BaseException) -> str:
    """The place of what was given where a text was wanted: what the function that failed holds, if any."""
    frame = context.raised_in(error)
    held = inert.flat(list(frame.f_locals.values())) if frame is not None else []
    places = [one._place for one in held if isinstance(one, Content)]
    return places[-1] if places else book.touched


def pictures(message: str) -> tuple[str, str, Any] | None:
    """Pictures without colours, or whose values are classes, if nothing else has the sizes in a message."""
    channels = re.search(r"to have (\d+) channels, but got (\d+) channels", message)
    if channels and book.pictures == 3 and int(channels[2]) - int(channels[1]) in (2, 4):
        # One of them, or two, are stacked in what is too deep by two, or four.
        return "pictures", "channels", 1
    pairs = [found for pattern in WRONG_RIGHT if (found := re.search(pattern, message, re.S))]
    for found in pairs:
        side = fitting_side(int(found["wrong"]), int(found["right"]))
        if side is not None:
            return "pictures", "side", side
    if book.classes > 1 and re.search(r"index out of range in self|Target \d+ is out of bounds", message):
        return "pictures", "classes", 1
    classes = re.search(r"index \d+ is out of bounds for dimension \d+ with size (\d+)", message)
    if classes and located(int(classes[1])) is None and not book.planned("pictures", "values"):
        return "pictures", "values", int(classes[1])
    return None


def fitting_side(wrong: int, right: int) -> int | None:
    """The side of pictures with which a size would be right that is their side now, or all their values."""
    side = media.side(context.run())
    if wrong == side and 8 <= right < side:
        return right
    for channels in (1, 3):
        if wrong == channels * side**2 and right % channels == 0:
            wanted = math.isqrt(right // channels)
            if wanted**2 * channels == right and wanted >= 8:
                return wanted
    return None


def planned_with(place: str, what: str, value: Any) -> str | None:
    """The plan of this run with one change, ``None`` if that changes nothing."""
    if what == "dims" and (len(value) > DEEPEST or math.prod(value) > LARGEST):
        return None  # Nothing has so many: they are not what is wrong.
    plan = {name: dict(fields) for name, fields in book.plan.items()}
    for name, dims in book.dims.items():
        plan.setdefault(name, {})["dims"] = dims
    had = book.dims.get(place)
    plan.setdefault(place, {})[what] = value
    if what == "dims" and had:
        for name, fields in plan.items():
            dims = fields.get("dims", [])
            if name != place and kin(name) == kin(place) and dims[1:] == had[1:]:
                # What training reads and what tests read have the same sizes.
                fields["dims"] = [*dims[:1], *value[1:]]
    # What was tried before is not tried again: two messages may ask for one thing and its contrary.
    seen = plan.pop(SEEN, {}).get("plans", [])
    now = {name: fields for name, fields in book.plan.items() if name != SEEN}
    seen = [*seen, digest(now)]
    if digest(plan) in seen:
        return None
    plan[SEEN] = {"plans": seen}
    return json.dumps(plan, sort_keys=True)


SEEN = "plans before this one"


def digest(plan: dict[str, Any]) -> int:
    """A number for a plan."""
    return zlib.crc32(json.dumps(plan, sort_keys=True).encode())


def sizes(message: str) -> tuple[str, str, Any] | None:
    """A size that has to be another: one that nothing has settled before one that an earlier plan has."""
    lead = re.search(r"expected input\[1, (\d+), .*but got (\d+) channels", message)
    if lead and lead[1] == lead[2] and located(int(lead[1])) is None:
        return one_more()
    pairs = [found for pattern in WRONG_RIGHT if (found := re.search(pattern, message, re.S))]
    for free in (True, False):
        for found in pairs:
            change = resized(int(found["wrong"]), int(found["right"]), free)
            if change is not None:
                return change
    product = re.search(WRONG_RIGHT[0], message)
    if product and (change := beside(int(product["wrong"]), int(product["right"]))) is not None:
        return change
    found = re.search(r"index (\d+) is out of bounds for (?:axis|dimension) \d+ with size (\d+)", message)
    if (change := sides(message)) is not None:
        return change
    if found and int(found[2]) == SAMPLES and (change := longer(int(found[1]))) is not None:
        return change
    if found:
        return resized(int(found[2]), max(int(found[1]) + 1, 2 * int(found[2])))
    return None


USUAL = (28, 32, 64, 84, 96, 128, 224, 256, 299)
"""Sides of pictures that networks are made for."""


def sides(message: str) -> tuple[str, str, Any] | None:
    """Another usual side for pictures, if their values would then be about as many as a layer takes."""
    found = re.search(WRONG_RIGHT[0], message)
    if found is None:
        return None
    ratio = int(found["right"]) / max(1, int(found["wrong"]))
    for place, dims in reversed(list(book.dims.items())):
        for index in range(len(leading(place)), len(dims) - 1):
            side = dims[index]
            if side != dims[index + 1] or len(dims) - len(leading(place)) < 3 or side not in USUAL:
                continue
            wanted = min(USUAL, key=lambda one: abs(one - side * math.sqrt(ratio)))
            if wanted > side and 0.9 < wanted / (side * math.sqrt(ratio)) < 1.1:
                return place, "dims", [*dims[:index], wanted, wanted, *dims[index + 2 :]]
    return None


def larger_pictures() -> tuple[str, str, Any] | None:
    """Larger sides for pictures whose size nothing has settled: a network may not take such small ones."""
    for place, dims in reversed(list(book.dims.items())):
        for index in range(len(leading(place)), len(dims) - 1):
            if any(one in PRIMES for one in dims) or len(dims) - len(leading(place)) != 3:
                continue
            if place.startswith("states of "):
                continue  # Of environments: these are large enough for what is made for games.
            if dims[index] == dims[index + 1] in LARGER:
                side = LARGER[dims[index]]
                return place, "dims", [*dims[:index], side, side, *dims[index + 2 :]]
    return None


def other_pictures(message: str) -> tuple[str, str, Any] | None:
    """Pictures of another usual size, for a network whose shapes are made for one."""
    if not book.pictures or not re.search(r"is invalid for input of size|must match|multiplied", message):
        return None
    tried = book.planned("pictures", "tried") or 0
    if tried >= len(OTHERS):
        return None
    book.plan.setdefault("pictures", {})["tried"] = tried + 1  # It goes into the next plan.
    return "pictures", "side", OTHERS[tried]


OTHERS = (84, 32, 224)
"""Sides of pictures in files, those that networks with fixed shapes are made for most."""
LARGER = {SIDE: 84, 84: 224}
"""What sides of pictures are tried after others."""


def longer(index: int) -> tuple[str, str, Any] | None:
    """As many samples as another array has for one that has too few for ``index``; labels before others."""
    places = [place for place, dims in book.dims.items() if dims[:1] == [SAMPLES] and not one_sample(place)]
    places.sort(key=lambda place: bool(LABEL.search(last(place))))
    if not places:
        return None
    others = [dims[0] for dims in book.dims.values() if dims and dims[0] > index]
    return places[-1], "dims", [max(others, default=index + 1), *book.dims[places[-1]][1:]]


def leading(place: str) -> list[int]:
    """The sizes before those of one sample."""
    return [] if one_sample(place) and not in_batch(place) else book.dims[place][:1]


def located(size: int) -> tuple[str, int] | None:
    """The place and the dimension of a size that is made up, looked for from the latest."""
    for place, dims in reversed(list(book.dims.items())):
        for index, one in enumerate(dims):
            if one == size and one != SAMPLES:
                return place, index
    return None


def resized(wrong: int, right: int, free: bool = False) -> tuple[str, str, Any] | None:
    """The change that makes ``right`` of ``wrong``, made up or a multiple of that; a new one if ``free``."""
    if right < 1:
        return None
    for place, dims in reversed(list(book.dims.items())):
        for index in range(len(dims) - 1, -1, -1):
            one = dims[index]
            if one in PRIMES and wrong % one == 0 and wrong:
                others = wrong // one
                if right % others == 0:
                    return place, "dims", [*dims[:index], right // others, *dims[index + 1 :]]
                inner = math.prod(dims[len(leading(place)) :])
                if inner and wrong % inner == 0 and right % (wrong // inner) == 0:
                    # Flattened: all of it stands in one dimension.
                    return place, "dims", [*leading(place), right // (wrong // inner)]
    found = None if free or wrong < 8 else located(wrong)
    if found is not None:
        place, index = found
        dims = book.dims[place]
        return place, "dims", [*dims[:index], right, *dims[index + 1 :]]
    return None


def beside(wrong: int, right: int) -> tuple[str, str, Any] | None:
    """The size that is right for what may stand beside others in one of the size ``wrong``."""
    for place, dims in reversed(list(book.dims.items())):
        size = dims[-1] + right - wrong if len(dims) > len(leading(place)) else 0
        if wrong != right and dims and dims[-1] in PRIMES and 0 < size < right:
            return place, "dims", [*dims[:-1], size]
    return None


def one_more(count: int = 1, size: int | None = None) -> tuple[str, str, Any] | None:
    """More dimensions for the array with ``size`` in it, without a size for the first with the fewest."""
    places = [place for place, dims in book.dims.items() if size is None or size in dims]
    if size is None:
        places = [one for one in places if not LABEL.search(last(one))]
        places.sort(key=lambda one: len(book.dims[one]))
    if not places:
        return None
    place = places[0] if size is None else places[-1]
    before = leading(place)
    inner = book.dims[place][len(before) :]
    sides = [SIDE] * (count + len(inner) - 1) if count > 1 else inner
    return place, "dims", [*before, book.prime(f"{place} {len(before)} {len(inner)}"), *sides]


def innermost(error: BaseException) -> types.TracebackType | None:
    """Where an error left the user's code that it came from."""
    trace, found, run = error.__traceback__, None, context.run()
    while trace is not None:
        found = trace if run.owns(trace.tb_frame) else found
        trace = trace.tb_next
    return found


def insisted(error: BaseException) -> tuple[str, str, Any] | None:
    """A size that the script itself compares with another and insists on: ``assert a == b``."""
    trace, run = innermost(error), context.run()
    if trace is None or trace.tb_next is not None:
        return None
    frame = trace.tb_frame
    test: ast.expr | None = None
    for node in context.statements_at(run.tree(frame.f_code.co_filename), trace.tb_lineno):
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and context.gives_up(node.body)):
            test = node.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        return None
    pair = [whole_number(one, frame) for one in (test.left, test.comparators[0])]
    # A line of text may have one more than it has numbers: it begins with a name.
    for more in (0, 1) if book.styles else (0,):
        for wrong, right in (pair, pair[::-1]):
            if wrong is not None and right is not None and right >= 1:
                if (change := resized(wrong + more, right + more, True)) is not None:
                    return change
    return None


READ = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub)


def whole_number(node: ast.expr, frame: types.FrameType) -> int | None:
    """The whole number that an expression has in a frame, if it only reads it or asks for a length."""
    inner = node.args[0] if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" else node
    if not all(isinstance(one, READ) for one in ast.walk(inner)):
        return None
    try:
        code = compile(ast.Expression(node), "", "eval")
        found = eval(code, frame.f_globals, frame.f_locals)
    except Exception:
        return None
    return found if type(found) is int else None


SENTENCES = "words in sentences"
"""The style of a text with a word and more on each line, and one that holds nothing after each sentence."""
NOTHING_LEFT = re.compile(r"division by zero|num_samples should be a positive|empty (range|sequence)")
"""Messages where a text of one long sentence may have been too long, and left no sample."""


def highest_index(error: BaseException) -> int:
    """The highest number by which the function that failed asks for a part of what it failed for; else 0."""
    trace, run = innermost(error), context.run()
    if trace is None:
        return 0
    tree, line = run.tree(trace.tb_frame.f_code.co_filename), trace.tb_lineno
    around = [one for one in context.statements_at(tree, line) if isinstance(one, ast.FunctionDef)]
    indices: dict[str, int] = {}
    failed: set[str] = set()
    for node in ast.walk(around[-1] if around else tree):
        if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)):
            continue
        if isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
            name = node.value.id
            indices[name] = max(node.slice.value, indices.get(name, 0))
            if node.lineno <= line <= (node.end_lineno or line):
                failed.add(name)
    return max((indices[name] for name in failed), default=0)


def of_nothing(error: BaseException) -> bool:
    """Whether what failed asks for no more than the first or the last of a list: there is nothing in it."""
    trace, run = innermost(error), context.run()
    statements = (
        context.statements_at(run.tree(trace.tb_frame.f_code.co_filename), trace.tb_lineno) if trace else []
    )
    if not statements:
        return False
    asked = [one.slice for one in ast.walk(statements[-1]) if isinstance(one, ast.Subscript)]
    return bool(asked) and all(ast.unparse(one) in ("0", "-1") for one in asked)


def columns(message: str, error: BaseException) -> tuple[str, str, Any] | None:
    """Another number of values in a row."""
    short = re.search(r"not enough values to unpack \(expected (\d+), got (\d+)\)", message)
    if short or (message == "list index out of range" and not of_nothing(error)):
        for name, style in reversed(list(book.styles.items())):
            had = int(style.split(":")[1]) if ":" in style else 1
            highest = highest_index(error)
            wanted = int(short[1]) if short else max(had, highest) + 1
            if not short and 0 < highest < had:
                continue  # There are as many already: it is not for their number.
            if short and int(short[2]) != had:
                continue
            if book.separators.get(name) and 1 < wanted < FIELDS and wanted != had:
                return name, "style", f"fields:{wanted}:{book.separators[name]}"
    if NOTHING_LEFT.search(message):
        for name, style in reversed(list(book.styles.items())):
            if style == "common words" and name in book.blanks:
                return name, "style", SENTENCES
    found = re.search(r"too many values to unpack \(expected (\d+)", message)
    if found:
        if book.collated:
            return book.collated[-1], "fields", int(found[1])
        if book.gone_through and not book.planned(book.gone_through, "record"):
            return book.gone_through, "record", int(found[1])
        for place, dims in reversed(list(book.dims.items())):
            if len(dims) > 1 and dims[-1] in PRIMES:
                return place, "dims", [*dims[:-1], int(found[1])]
        for name, style in reversed(list(book.styles.items())):
            if style == "common words":
                return name, "style", "names and numbers"
    word = re.search(r"(?:invalid literal for int.*|convert string to float): '([^']*)'", message)
    styles = [(name, style) for name, style in reversed(list(book.styles.items()))]
    if word and styles:
        for name, style in styles:
            if style.startswith("fields:") and word[1].split(" ")[0] in media.WORDS:
                return name, "style", style.replace("fields:", "numbers:", 1)
            if style == "common words" and word[1].split(" ")[0] in (*media.WORDS, "."):
                return name, "style", "names and numbers"
            if style == "names and numbers" and ".png" in word[1]:
                return name, "style", "numbers"
            if style.startswith(("fields:", "numbers:")) and re.match(r"\d{3}\.\w+$", word[1]):
                return name, "style", "counts:" + style.partition(":")[2]
        if " " in word[1] or "," not in word[1]:
            return (styles[0][0], "separator", ",") if styles[0][1] != "common words" else None
    return None


def shape_unpacked(message: str, error: BaseException) -> tuple[str, str, Any] | None:
    """More dimensions for what the function holds that unpacked its shape: ``n, c, h, w = it.shape``."""
    found = re.search(r"not enough values to unpack \(expected (\d), got (\d)\)", message)
    trace = innermost(error) if found else None
    if found is None or trace is None:
        return None
    for one in reversed(list(trace.tb_frame.f_locals.values())):
        shape = list(one.shape) if isinstance(one, torch.Tensor) else []
        place, _ = located(shape[-1]) or ("", 0) if len(shape) == int(found[2]) else ("", 0)
        if place:
            dims, more = book.dims[place], int(found[1]) - len(shape)
            sides = (
                [book.planned("torch", "side") or SIDE] * more
                if int(found[1]) == 4
                else [book.prime(f"{place} {len(dims)} {i}") for i in range(more)]
            )
            return place, "dims", [*dims, *sides]
    return None


def dimensions(message: str) -> tuple[str, str, Any] | None:
    """Another number of dimensions."""
    found = re.search(r"[Ee]xpected (\d)D.*?(?:or (\d)D.*?)?input.*?of size:? ?\[([\d, ]*)\]", message)
    if found:
        got = [int(one) for one in found[3].split(",") if one.strip()]
        wanted = int(found[2] or found[1])
        own = next((one for one in reversed(got) if located(one) is not None), None)
        if wanted > len(got):
            return one_more(wanted - len(got), own)
    for pattern in (
        r"array is (\d)-dimensional, but (\d) were indexed",
        r"axis (?P<axis>\d) is out of bounds for array of dimension (?P<have>\d)",
        r"expected (?P<wanted>\d)D (?:tensor|input),? \(?(?:but )?got (?P<have>\d)D",
        r"must have (?P<wanted>\d) dimensions, got (?P<have>\d)",
        r"(?P<have>\d)-dimensional array given. Array must be at least (?P<wanted>two)-dimensional",
        r"not enough values to unpack \(expected (?P<wanted>\d), got (?P<have>\d)\)",
        r"sparse_dim.*number of dimensions \((?P<have>\d)\).*(?P<wanted>\d)",
        r"input\.dim\(\) = (?P<have>\d) is not equal to len\(dims\) = (?P<wanted>\d)",
    ):
        found = re.search(pattern, message)
        if found:
            groups = found.groupdict()
            have = int(groups.get("have") or found[1])
            least = (groups.get("wanted") or "").replace("two", "2") or found[2]
            wanted = int(groups["axis"]) + 1 if "axis" in groups else int(least)
            latest = list(reversed(list(book.dims.items())))
            fitting = [
                one for one in latest if len(one[1]) + (one_sample(one[0]) and not in_batch(one[0])) == have
            ]
            fitting += [one for one in latest if len(one[1]) - 1 == have]
            # What stands under one of many names is a sample, and a batch has one more.
            fitting += [one for one in latest if one[0].endswith("[**]") and len(one[1]) + 1 == have]
            if wanted > have and fitting:
                place, dims = fitting[0]
                if wanted == 3 and have == 1:  # A picture, whose sides are better equal.
                    return place, "dims", [*dims[:-1], SIDE, SIDE, book.prime(place + " last")]
                if wanted == 4 and have == 2 and "len(dims)" in message:  # Pictures, colours last.
                    return place, "dims", [dims[0], SIDE, SIDE, dims[1]]
                if wanted == 4 and have == 2 and len(dims) == 2:  # Pictures, colours first.
                    return place, "dims", [*dims, SIDE, SIDE]
                return (
                    place,
                    "dims",
                    [*dims, *(book.prime(f"{place} {len(dims) + i}") for i in range(wanted - have))],
                )
    if message == "tuple index out of range" and book.shaped in book.dims:
        place, dims = book.shaped, book.dims[book.shaped]
        return place, "dims", [*dims, book.prime(f"{place} {len(dims)}")]
    if re.search(r"0-d(?:im)? (?:tensor|array)|has no dimensions", message):
        rows = list(reversed(list(book.dims.items())))
        rows = [one for one in rows if not LABEL.search(last(one[0]))]
        if rows:
            # The first of those with the fewest: what training reads comes before what tests do.
            place, dims = min(reversed(rows), key=lambda one: len(one[1]))
            return place, "dims", [*dims, book.prime(f"{place} {len(dims)}")]
    if "too many indices for tensor" in message or "Dimension out of range" in message:
        return one_more()
    if re.search(
        r"must be (batches of )?square matrices|[Ll]ast 2 dimensions of the array must be square", message
    ):
        for place, dims in reversed(list(book.dims.items())):
            if len(dims) > 1 and dims[-1] in PRIMES and dims[-1] != dims[-2]:
                return place, "dims", [*dims[:-1], dims[-2]] if dims[-2] != SAMPLES else [dims[-1], dims[-1]]
    if "multi-target not supported" in message or "multilabel" in message:
        rows = [(place, dims) for place, dims in reversed(list(book.dims.items())) if len(dims) == 2]
        likely = [one for one in rows if LABEL.search(last(one[0]))]
        likely += [one for one in rows if book.kinds.get(one[0]) == "int"]
        for place, dims in likely or [one for one in rows if one[1][1] in PRIMES]:
            # A line of a text has its number, or a name, and one class.
            return place, "dims", [dims[0], 2] if place in book.styles else dims[:1]
    return None


def arrangement(message: str) -> tuple[str, str, Any] | None:
    """A number of elements that a shape asks for."""
    found = re.search(r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)", message)
    if found:
        shape, size = found[1], int(found[2])
    else:
        found = re.search(r"cannot reshape array of size (\d+) into shape \(([-\d, ]+)\)", message)
        if not found:
            return None
        shape, size = found[2], int(found[1])
    wanted = [int(one) for one in shape.split(",") if one.strip()]
    fixed = math.prod(one for one in wanted if one > 0)
    for place, dims in reversed(list(book.dims.items())):
        for index in range(len(dims) - 1, -1, -1):
            if dims[index] in PRIMES and size % dims[index] == 0:
                others = size // dims[index]
                if -1 not in wanted and fixed % others:
                    continue
                inner = math.prod(dims[1:]) // dims[index]
                new = fixed // others if -1 not in wanted else fixed // math.gcd(fixed, inner)
                return place, "dims", [*dims[:index], max(1, new), *dims[index + 1 :]]
    for place, dims in reversed(list(book.dims.items())):
        if math.prod(dims) == size and -1 not in wanted and any(one in PRIMES for one in dims):
            # All of it is to have that shape.
            return place, "dims", wanted
    if len(wanted) > 1 and wanted[0] == size and -1 not in wanted:
        for place, dims in reversed(list(book.dims.items())):
            if len(dims) == 1:
                # Numbers where there should have been samples of several numbers.
                return place, "dims", [*dims, fixed // size]
    return None


def kinds(message: str) -> tuple[str, str, Any] | None:
    """Numbers of another kind."""
    whole = re.search(
        r"expected scalar type Long|'indices' to have one of the following scalar types|"
        r"must be (?:long|Long)|tensors used as indices must be|arrays used as indices must be|"
        r"one_hot is only applicable|not implemented for '(?:Float|Double)'|"
        r"list indices must be integers|Expected object of scalar type Long",
        message,
    )
    broken = re.search(
        r"scalar type Float but found Long|not implemented for '(?:Long|Int)'|Long and Float|"
        r"dtype Long but expected Float|expected Float|got Long|scalar type Long and Float|"
        r"can't be cast to the desired output type Long|same dtype, but got Long",
        message,
    )
    if broken:
        wanted, have = "float", "int"
    elif whole:
        wanted, have = "int", "float"
    else:
        if re.search(r"index out of range in self|is out of bounds", message):
            for place, kind in reversed(list(book.kinds.items())):
                if kind == "int" and book.planned(place, "high") is None:
                    return place, "high", 1
        return None
    for place, kind in reversed(list(book.kinds.items())):
        if kind == have:
            return place, "kind", wanted
    return None
