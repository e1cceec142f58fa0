"""Content of data files that do not exist: made up as it is used, in the shapes that the use asks for.

A :class:`Content` stands for what ``pickle.load``, ``np.load`` and the like would have returned. Nobody
knows its structure, but the script does: it asks for keys, unpacks, iterates, reshapes. Each such use
settles a part of it, and where values are needed an array is made from the run's seed and the place in
the file. A size that no use has settled is a prime number that occurs nowhere else, so that the
message of a mismatch (``mat1 and mat2 shapes cannot be multiplied (4x37 and 784x128)``) says which size
should have been what. From that ``plans`` derives a *plan*, with which the run may be repeated (see
``runner.planned``). Before and after a rewrite are run with the same plan.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import numbers
import operator
import os
import re
import sys
import types
import zlib
from collections.abc import Iterator
from typing import Any

import torch

from . import context, media

FIELDS = 13
"""Fields in a line of a text, at most."""
MANY = (1024, 2048, 8192)
"""Samples, where those were too few for what a script cuts of them, and where these are as well."""
SAMPLES = 64
"""Samples in what is made up, and words in a vocabulary."""
WITHIN = (16, 4, 2)
"""Elements of what is an element itself, and of what lies deeper."""
FEW = (4, 2, 1)
"""The same where going through all of them took too long."""
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
MISTAKEN = 8
"""The same where names are missing in the script's way with one: that is soon over."""
SIDE = 32
"""Height and width of pictures."""

LABEL = re.compile(r"label|target|\by\b|y_|_y\b|class|\bgt\b|answer", re.I)
CLASSES_IN_ALL = re.compile(r"^(?:num|nb?|no)_?(?:[a-z]+_)*(?:class(?:es)?|labels|categories)$", re.I)
"""Names of how many classes there are."""
INDEX = re.compile(
    r"idx|index|indices|token|\bids?\b|_ids?\b|word|vocab|seq|length|count|src|tgt|edge|user|item|caption|bound",
    re.I,
)
NUMBERING = re.compile(r"(2|_to_|to)_?(i|id|idx|ix|ind|index|int|indices)$|^stoi$|^vocab(ulary)?$", re.I)
"""Names of mappings that give each word a number."""
LENGTH = re.compile(r"(lens?|lengths?)(?![a-z])", re.I)
"""Names of lengths, which are more than one."""
BOUND = re.compile(
    r"(?:start|begin|(end|stop))_?(?:ix|idx|ind|index|indices|ptr|pointers?|offsets?)s?$", re.I
)
"""Names of where in a list what belongs to each sample begins, or ends."""
IN_ALL = re.compile(
    r"^max_?(?:[a-z0-9]+_)*len(?:gth)?$|"
    r"^(?:(?:vocab(?:ulary)?|dict(?:ionary)?|words?|chars?|tokens?|src|tgt|users?|items?)_)+(?:size|num|count)$|"
    r"^(?:n|num)_?(?:words|tokens|chars|users|items|entities|relations|vocab)$",
    re.I,
)
"""Names of one number for all samples: how long they are at most, or how many words there are."""
BOX = re.compile(r"(?<![a-z])b?box(es)?(?![a-z])", re.I)
"""Names of boxes in pictures: two corners each."""
BESIDE = re.compile(r"label|class|categor|difficult|crowd|area|score", re.I)
"""Names of what each box has, where it stands beside them."""
FILLED = re.compile(r"(?:attention|attn|input|token|seq(?:uence)?|valid)_?masks?$", re.I)
"""Names of which parts of a sample there are: the first ones, and what fills a batch up is behind them."""
TIME = re.compile(r"^(start|end|begin|stop|duration|timestamp|fps)(_time|_?sec)?$", re.I)
"""Names of numbers of a sample."""
BOXES = 3
"""Boxes in a picture."""
POSE = re.compile(
    r"^(transform_matrix|c2ws?|w2cs?|(ex|in)trinsics?(_matrix)?|(camera|cam)_?to_?world)$", re.I
)
"""Names of where a camera is, how it is turned, and what it shows on a picture."""
LENS = re.compile(r"^(camera_angle_[xy]|fl_[xy]|focal(_length)?)$", re.I)
"""Names of single numbers of a camera."""
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
        self.parted: dict[str, Any] = {}
        """By absent file of text: what its lines are, where the code takes them apart twice or more."""
        self.separators: dict[str, str] = {}
        """By absent file of text: what its lines are taken apart by, if anything says so."""
        self.blanks: set[str] = set()
        """Absent files of text whose readers ask for lines that hold nothing."""
        self.heard = False
        """Whether sounds were made up."""
        self.worded: list[str] = []
        """The places whose keys were asked for, and nobody knew any."""
        self.touched = ""
        """The place that was looked at last."""
        self.single = ""
        """The place of the last array without dimensions."""
        self.beyond = "", 0
        """The place of what was asked for an element that it has not, and the number of that."""
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
        self.options: dict[str, str] = {}
        """The texts that options have."""
        self.told = 0
        """The command lines that the project shows, of which the script takes something."""
        self.folders = False
        """Whether a folder has been made up."""
        self.within = 0
        """How many folders a folder was made with that the script looks for folders in."""
        self.shortened = False
        """Whether a file of a known data set was made with fewer samples than the real one has."""
        self.shallow = False
        """Whether a known network was made with fewer blocks than the real one has."""
        self.asked = False
        """Whether the script asked for a folder that is not there, and did something else."""
        self.asked_file = False
        """Whether it asked so for a file of data."""
        self.asked_place = False
        """Whether it asked so whether there is anything, where a folder may be."""
        self.begun = False
        """Whether names were looked for in a folder that begin as none in it does."""
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
        self.turns.setdefault(name, among)
        return among[(self.planned(name, "turn") or 0) % len(among)]

    def sizes(self, place: str, count: int | None = None) -> list[int]:
        """The sizes of the array at a place, with ``count`` dimensions if that is known."""
        known = self.planned(place, "dims")
        known = self.dims.get(place) if known is None else known
        if known is None:
            known = [BATCH] if in_batch(place) else [] if one_sample(place) else [nested(place)]
            if (svhn := SVHN.fullmatch(place)) is not None:
                known = [32, 32, 3, samples()] if svhn[1] == "X" else [samples(), 1]
            elif SQUARE.search(last(place)):
                known = [self.prime(place)] * 2
            elif POSE.search(last(place)):
                known += [3, 3] if last(place).lower().startswith("intrinsic") else [4, 4]
                # Rows, and numbers in these, may be asked for one by one.
                known = known[len(re.findall(r"\[\d+\]", place.rpartition("']")[2])) :]
            elif LENS.search(last(place)):
                known = []
            elif BOX.search(last(place)):
                self.boxed.add(owner(place))
                known = [BOXES if one_sample(place) else samples(), 4]
            elif one_sample(place) and owner(place) in self.boxed and BESIDE.search(last(place)):
                known = [BOXES]
            elif (sides := SIDES.search(last(place))) is not None:
                known = [samples(), 3, int(sides[1]), int(sides[1])]
            elif AUDIO.search(place):
                known = [SAMPLES * 256]
            elif (
                not (LABEL.search(last(place)) or BOUND.search(last(place)))
                and not (one_sample(place) and TIME.search(last(place)))
                and (count is None or count > len(known))
            ):
                known.append(self.prime(f"{place} {len(known)}"))
        known = list(known)
        if count == 4 and len(known) == 1:
            known.append(self.prime(f"{place} {len(known)}"))
        if count == 4 and len(known) == 2:
            known += [SIDE, SIDE]
        while count is not None and len(known) < count:
            known.append(self.prime(f"{place} {len(known)}"))
        self.dims.pop(place, None)
        self.dims[place] = known
        return list(known)

    def style(self, name: str, wanted: str = "") -> str:
        """What the lines of an absent file of text hold: what is planned, else what is ``wanted`` or was at
        first; files that are numbered are alike."""
        name = unnumbered(name)
        had = self.styles.pop(name, "common words")
        self.styles[name] = str(self.planned(name, "style") or wanted or had)
        return self.styles[name]

    def kind(self, place: str) -> str:
        """``float``, ``double`` or ``int``."""
        found = self.planned(place, "kind")
        if found is None:
            name = last(place)
            counted = LABEL.search(name) or INDEX.search(name) or BOUND.search(name)
            counted = counted or NUMBERING.search(last(owner(place)))
            found = "int" if counted else "float"
        self.kinds[place] = found
        return str(found)


SVHN = re.compile(r"(?:train|test|extra)_32x32\.mat\['(X|y)'\]")
"""Pictures, the number of each last, and labels, in the files of SVHN (http://ufldl.stanford.edu/housenumbers)."""
SIDES = re.compile(r"(?<!\d)(\d+)x\1(?!\d)")
"""Names of pictures of one of several sizes: ``data16x16``."""
SPLITS = re.compile(r"(?<![a-z])(?:train(?:ing)?|valid(?:ation)?|val|dev|eval|test(?:ing)?)(?![a-z])", re.I)
"""What tells the files of one kind from each other, and their parts."""


@functools.cache
def kin(place: str) -> str:
    """A place without what tells samples for training from those for tests, or ``left1`` from ``left2``, or
    files that a made-up text lists from each other."""
    name, bracket, rest = place.partition("[")
    if NAMED.fullmatch(name):
        name = "*"
    rest = re.sub(r"(?<=[A-Za-z_])\d(?='\])", "*", SPLITS.sub("*", rest))
    return unnumbered(SPLITS.sub("*", name)) + bracket + rest


NAMED = re.compile(r"\w*\W+(?:(?:" + "|".join(media.WORDS) + r")\b\W*)+(?:\.\w+)?")
"""Names of files that a made-up text lists: lines of common words, of which the first may be cut off."""
HASHED = (
    r"(?<![0-9a-z])(?=[a-f-]*\d)(?:[0-9a-f]{12,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9a-z])"
)
"""What tells files from each other that have hashes for names, or other numbers that nobody counts."""
TOLD_APART = re.compile(HASHED + r"|\d+")


def unnumbered(name: str) -> str:
    """A name without the numbers that tell files of one kind from each other."""
    return TOLD_APART.sub("*", name)


book = Book("")
"""Of this process's run."""


def samples() -> int:
    """Samples in what is made up: more, where the plan says that they were too few."""
    return int(book.planned("samples", "count") or SAMPLES)


def more_samples(least: int = 0) -> str | None:
    """The plan with many more samples in all that is made up, of which a script asks for ``least``."""
    had = samples()
    count = next((one for one in MANY if one > had and one >= least), None)
    if count is None:
        return None
    for sizes in (book.dims, *({"": fields["dims"]} for fields in book.plan.values() if "dims" in fields)):
        for place, dims in sizes.items():
            more = samples_within(place, count)
            if dims[:1] == [samples_within(place, had)] and more * math.prod(dims[1:]) <= LARGEST:
                sizes[place][0] = more
    return planned_with("samples", "count", count)


def one_sample(place: str) -> bool:
    """Whether a place lies within one of several samples that are alike."""
    return "[*]" in place


def numbered(place: str) -> bool:
    """Whether a file is one of many that are told apart by numbers: each is a sample."""
    return NUMBERED.search(place) is not None


NUMBERED = re.compile(r"(?:\d{3}|" + HASHED + r")\.\w+(\[|$)")


def samples_within(place: str, count: int) -> int:
    """How many elements a file has first, where there are ``count`` samples: one that is a sample itself has
    more of them only where nothing else has helped."""
    return SAMPLES if numbered(place) and count < MANY[-1] else count


def is_sample(place: str) -> bool:
    """Whether a place is a sample, or lies within one."""
    return one_sample(place) or numbered(place)


def lies_behind(key: slice, length: int) -> bool:
    """Whether a slice begins behind the last of so many elements, or of ``length``, and ends there."""
    whole = all(isinstance(one, numbers.Integral) for one in (key.start, key.stop)) and key.step is None
    return whole and min(length, SAMPLES) <= key.start < key.stop <= LARGEST and length < key.stop


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
    whole = samples_within(place, samples())
    within = FEW if book.planned("sizes", "tight") else WITHIN
    return (whole, *within)[min(place.count("[*]"), len(within))]


def grouped(place: str) -> bool:
    """Whether what has names for keys at a place is said to hold classes: each has its own samples."""
    return re.search(r"class", last(place), re.I) is not None


@functools.cache
def last(place: str) -> str:
    """The name that says most about a place: the last key, else the file's."""
    keys = re.findall(r"\['([^']*)'\]|\.(\w+)(?=\[|$)", place)
    named = [one or other for one, other in keys if one or (other and "." + other not in ENDINGS)]
    if named:
        return str(named[-1])
    name, ending = os.path.splitext(place.split("[")[0])
    return name if ending in ENDINGS else name + ending


def numpy() -> Any:
    """numpy, if it is there."""
    return sys.modules.get("numpy")


NO_LENGTH = "a number has no length"
"""The message of what takes a number for several, as it is none of Python's own: a tensor's index."""


NO_ELEMENT = "index out of range"
"""The message of a content that has fewer elements than the script thinks."""


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
        self._words: dict[Any, Any] = {}
        """What stands under keys that were made up."""
        self._long: int | None = None
        """How many elements it has, if it is some of those of another."""

    # -- parts ---------------------------------------------------------------------------

    def _part(self, suffix: str, number: int | None = None, dims: Any = None) -> Any:
        return part(self._place + suffix, self._number if number is None else number, self._tensors, dims)

    def _child(self, key: Any) -> Any:
        if self._children is None:
            self._children = {}
        if key not in self._children and key in self._words:
            self._children[key] = self._words[key]
        elif key not in self._children:
            name = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
            dims: list[int] | None = [] if NUMBERING.search(last(self._place)) else None
            self._children[key] = self._part("[" + repr(name) + "]", dims=dims)
        return self._children[key]

    def _length(self) -> int:
        if self._list is not None:
            return len(self._list)
        if self._dims is not None and not self._dims:
            raise TypeError(NO_LENGTH)
        if self._array is not None:
            return len(self._array)
        if self._long is not None:
            return self._long
        if self._dims is not None:
            return self._dims[0]
        known = book.planned(self._place, "dims") or [BATCH if in_batch(self._place) else nested(self._place)]
        return int(book.planned(self._place, "count") or known[0])

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
            book.beyond = self._place, number
            raise IndexError(NO_ELEMENT)
        if self._dims is not None and len(self._dims) == 1:
            return self._settled()[number]
        if BOUND.search(last(self._place)) and not one_sample(self._place):
            return self._settled(1)[number]
        rest = None if self._dims is None else self._dims[1:]
        if rest is None and NUMBERING.search(last(self._place)):
            rest = []
        fields = book.planned(self._place, "fields")
        if fields:
            return tuple(
                self._part("[*][" + str(i) + "]", self._number * 1000 + number) for i in range(fields)
            )
        return self._part("[*]", self._number * 1000 + number, rest)

    def _text(self) -> str:
        words = media.text(context.run(), self._place + str(self._number), 1)
        return words.strip()

    def _parted(self, separator: Any = None, *most: Any, **given: Any) -> list[str]:
        """The parts of a text: as many as the code that takes it apart goes on to name, ``[2]``; those before
        the last one are common to many of its likes, as folders and classes are."""
        count = parts_named(sys._getframe(1))
        parts = self._text().split(separator, *most, **given)
        if count <= len(parts):
            return parts
        name = last(self._place)
        shared = [f"{name}_{number}_{self._number % CLASSES}" for number in range(count - 1)]
        return [*(re.sub(r"\W+", "_", one).strip("_") for one in shared), self._name()]

    def _name(self) -> str:
        name = re.sub(r"\W+", "_", last(self._place)).strip("_")
        return name + "_" + format(self._number, "03d")

    # -- values --------------------------------------------------------------------------

    def _settled(self, count: int | None = None) -> Any:
        """The array of its values, an array of numpy's or a tensor."""
        if self._list is not None:
            return self._list
        if self._array is None:
            with contextlib.nullcontext() if self._tensors or numpy() is None else unrecorded():
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
        book.single = book.single if dims else place
        kind = book.kind(place)
        generator = context.run().generator("content", place, self._number)
        if CLASSES_IN_ALL.search(last(place)):
            values = torch.full(dims, CLASSES)
        elif dims and FILLED.search(last(place)):
            long = torch.randint((dims[-1] + 1) // 2, dims[-1] + 1, (*dims[:-1], 1), generator=generator)
            values = (torch.arange(dims[-1]) < long).to(torch.long if kind == "int" else torch.float32)
        elif kind == "int" and LENGTH.search(last(place)) and book.planned(place, "high") is None:
            values = torch.randint(4, 9, dims, generator=generator)
        elif kind == "int" and len(dims) == 1 and (bound := BOUND.search(last(place))) is not None:
            # One sample begins after the other, whether what stands at its end still belongs to it or not.
            values = torch.arange(dims[0]) + (bound[1] is not None)
        elif kind == "int":
            values = torch.randint(0, book.planned(place, "high") or CLASSES, dims, generator=generator)
        else:
            values = torch.rand(dims, generator=generator)
            if BOX.search(last(place)) and dims and dims[-1] == 4:
                # The second corner lies below the first, and to the right of it.
                values[..., 2:] = values[..., :2] / 2 + 0.25
                values[..., :2] /= 4
            if kind == "double":
                values = values.double()
        if self._long is not None:
            values = values[torch.arange(self._long).remainder(len(values))]
        np = numpy()
        return values if self._tensors or np is None else values.numpy()

    def _known(self) -> bool:
        """Whether anything has settled what it is."""
        return not (self._array is None and self._dims is None and self._list is None)

    def _tensor(self) -> Any:
        return torch.as_tensor(self._settled())

    def _scalar(self) -> Any:
        with unrecorded():
            return self._number_of()

    def _number_of(self) -> Any:
        if self._dims is None and self._array is None:
            name = last(self._place)
            if CLASSES_IN_ALL.search(name):
                return CLASSES
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
            if name == "split":
                return self._parted
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
            if is_sample(self._place) and lies_behind(key, self._length()):
                return self._longer(key)
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
        found._long = length
        return found

    def _longer(self, key: slice) -> Any:
        """What a sample, such as a sound, has where it is asked for what lies behind its end."""
        book.dims.pop(self._place, None)
        book.dims[self._place] = dims = [int(key.stop), *(self._dims or ())[1:]]
        return self._part("", dims=dims)._settled()[key]

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

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self._scalar()), digits)

    def __str__(self) -> str:
        return self._name()

    __repr__ = __fspath__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self._name(), spec) if not spec or spec[-1] == "s" else format(self._scalar(), spec)

    def __hash__(self) -> int:
        name = last(self._place)
        return hash(("id" if name == "id" or name.endswith("_id") else self._place, self._number))

    def __eq__(self, other: object) -> Any:
        if other is None or isinstance(other, (str, bytes, bool)):
            return False
        if isinstance(other, Content):
            same = self._place == other._place or refers(self._place, other._place)
            return (same or refers(other._place, self._place)) and self._number == other._number
        return self._settled() == other

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self._settled()
        array = numpy().asarray(array)
        return array if dtype is None else array.astype(dtype)


def unrecorded() -> contextlib.AbstractContextManager[Any]:
    """Where torch makes numbers that leave it: how they come about is nothing to be recorded, which takes
    longer than all else."""
    return torch.utils._python_dispatch._disable_current_modes()


def refers(place: str, other: str) -> bool:
    """Whether what is at a place says which of others is meant: ``category_id`` an ``id`` of categories, or
    the ``category_id`` of something else."""
    name, same = last(place), last(other)
    return name.endswith("_id") and (name == same or (same == "id" and name[:-4] in other[:-2]))


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
    if settled is None and "*" not in place and IN_ALL.match(last(place)):
        return Content(place, number)._scalar()
    if book.planned(place, "text"):
        return Content(place, number)._text()
    kind = Number if settled == [] else Tensors if tensors else Content
    made = kind(place, number, tensors=tensors, dims=dims)
    return made._scalar() if settled == [] and book.planned("code", "numbers") else made


class Mapping(dict):  # type: ignore[type-arg]
    """What ``items()`` and the like of a content give: words, and a part for each."""

    def __init__(self, content: Content) -> None:
        held = content._children or {}
        # Attributes are no keys.
        known = [(key, one) for key, one in held.items() if not (isinstance(key, str) and key[:1] == ".")]
        names = book.planned(content._place, "keys") or ()
        known += [(name, content._child(name)) for name in names if name not in held]
        if names or not known:
            book.worded.append(content._place)
        if not known:
            count = GROUPS if grouped(content._place) else SAMPLES
            words = [media.WORDS[i] if i < len(media.WORDS) else "word_" + str(i) for i in range(count)]
            known = [(word, content._part("[**]", i)) for i, word in enumerate(words)]
            content._words = dict(known)
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


def parts_named(frame: types.FrameType) -> int:
    """How many parts a frame that takes something apart goes on to name: ``a, b = it.split()``, ``[2]``."""
    before, behind = context.following(frame), context.following(frame, 2)
    if before is None or behind is None:
        return 0
    if before.opname == "UNPACK_SEQUENCE":
        return int(before.argval)
    indexed = behind.opname == "BINARY_SUBSCR" or (behind.opname == "BINARY_OP" and behind.argrepr == "[]")
    if indexed and type(before.argval) is int and before.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
        return before.argval + 1 if before.argval >= 0 else -before.argval
    return 0


def absent(run: context.Run, path: Any, *, tensors: bool = False) -> Any:
    """The content of the data file at ``path``, which is not there."""
    path = os.fspath(path)
    name = os.path.basename(path)
    run.used("content of " + name, "values made up as they are used")
    folder = os.path.basename(os.path.dirname(os.path.relpath(path, run.cwd)))
    if numbered(name) and folder not in ("", os.pardir):
        # What there is of one sample may lie in files of the same name: ``mel/003.npy``, ``text/003.npy``.
        name = folder + "/" + name
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
            elif _name == "from_numpy" and isinstance(data, torch.Tensor) and not data.requires_grad:
                return data  # A part of what ``torch.load`` has given, which may hold arrays as well.
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
    for kind in (Content, Tensors, Number):
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


class VariableKind(Constructor):
    """Stands for the type that tensors with a history once had."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.real(*known(args), **kwargs)


def constructors() -> None:
    """Let the types of tensors take contents."""
    for name in ("Float", "Double", "Long", "Int", "Byte", "Bool", "Short", "Half"):
        real = getattr(torch, name + "Tensor")
        made = Constructor(name + "Tensor", (), {"real": real, "dtype": real.dtype})
        for owner in (torch, torch.cuda):
            setattr(owner, name + "Tensor", made)
    variable: Any = VariableKind("Variable", (), {"real": torch.autograd.Variable})
    torch.autograd.Variable = variable  # type: ignore[misc]
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


def planned_with(place: str, what: str, value: Any) -> str | None:
    """The plan of this run with one change, ``None`` if that changes nothing."""
    if what == "dims" and (len(value) > DEEPEST or math.prod(value) > LARGEST):
        return None  # Nothing has so many: they are not what is wrong.
    plan = {name: dict(fields) for name, fields in book.plan.items()}
    alike = told_once()
    for name, dims in book.dims.items():
        if name not in alike:
            plan.setdefault(name, {})["dims"] = dims
    had = book.dims.get(place)
    plan.setdefault(place, {})[what] = value
    if what == "dims" and had:
        for name, fields in plan.items():
            dims = fields.get("dims", [])
            if name != place and kin(name) == kin(place) and dims[1:] == had[1:]:
                # What training reads and what tests read have the same sizes; of samples also the first.
                fields["dims"] = [*(value if numbered(name) else dims)[:1], *value[1:]]
    # What was tried before is not tried again: two messages may ask for one thing and its contrary.
    seen = plan.pop(SEEN, {}).get("plans", [])
    now = {name: fields for name, fields in book.plan.items() if name != SEEN}
    seen = [*seen, digest(now)]
    if digest(plan) in seen:
        return None
    plan[SEEN] = {"plans": seen}
    return json.dumps(plan, sort_keys=True)


def told_once() -> set[str]:
    """The places of which the plan need not say their sizes, as one of very many files like theirs has the
    same ones: a plan has to be read again."""
    sizes: dict[str, list[list[int]]] = {}
    for name, dims in book.dims.items():
        sizes.setdefault(kin(name), []).append(dims)
    many = {one for one, of in sizes.items() if len(of) > ALIKE and all(dims == of[0] for dims in of)}
    found, told = set(), set()
    for name in book.dims:
        if (one := kin(name)) in many and not BOX.search(last(name)):
            if one in told and name not in book.plan:
                found.add(name)
            told.add(one)
    return found


ALIKE = 16
"""Files of one kind of which each may be named in a plan."""
SEEN = "plans before this one"


def digest(plan: dict[str, Any]) -> int:
    """A number for a plan."""
    return zlib.crc32(json.dumps(plan, sort_keys=True).encode())
