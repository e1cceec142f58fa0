"""What the message of an error says of content that was made up, and should have been another.

A run with made-up content fails because an array has another size, number of dimensions or type than the
script takes. The message names what it met and what it wanted; what was met is looked for among the arrays
that were made. The messages are those of torch 2 and numpy 2.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator

import torch

from . import context, value
from .schema import Schema, with_entry

MET_WANTED = tuple(
    re.compile(pattern)
    for pattern in (
        r"cannot be multiplied \(\d+x(?P<met>\d+) and (?P<wanted>\d+)x\d+\)",
        r"to have (?P<wanted>\d+) channels, but got (?P<met>\d+) channels",
        r"Expected (?P<wanted>\d+), got (?P<met>\d+)",
        r"normalized_shape=\[(?P<wanted>\d+)\].*size\s*\[(?:\d+, )*(?P<met>\d+)\]",
        r"running_mean should contain (?P<met>\d+) elements not (?P<wanted>\d+)",
        r"size of tensor a \((?P<met>\d+)\) must match the size of tensor b \((?P<wanted>\d+)\)",
        r"size of tensor a \((?P<wanted>\d+)\) must match the size of tensor b \((?P<met>\d+)\)",
        r"Expected size (?P<wanted>\d+) but got size (?P<met>\d+)",
        r"Expected size (?P<met>\d+) but got size (?P<wanted>\d+)",
        r"expanded size of the tensor \((?P<wanted>\d+)\) must match the existing size \((?P<met>\d+)\)",
        r"not aligned: (?P<met>\d+) \(dim \d+\) != (?P<wanted>\d+)",
        r"not aligned: (?P<wanted>\d+) \(dim \d+\) != (?P<met>\d+)",
        r"from shape \((?:\d+,\s*)*(?P<met>\d+),?\) into shape \((?:\d+,\s*)*(?P<wanted>\d+),?\)",
        r"shapes \((?:\d+,\s*)*(?P<met>\d+),?\) \((?:\d+,\s*)*(?P<wanted>\d+),?\)",
        r"shapes \((?:\d+,\s*)*(?P<wanted>\d+),?\) \((?:\d+,\s*)*(?P<met>\d+),?\)",
        r"input batch_size \((?P<wanted>\d+)\) to match target batch_size \((?P<met>\d+)\)",
        r"[Tt]arget size \(torch\.Size\(\[(?:\d+, )*(?P<met>\d+)\]\)\).*"
        r"input size \(torch\.Size\(\[(?:\d+, )*(?P<wanted>\d+)\]\)\)",
        r"size \((?P<met>\d+)\) must match .*size \((?P<wanted>\d+)\)",
        r"index 0 has size (?P<met>\d+) and the array at index 1 has size (?P<wanted>\d+)",
        r"Length mismatch: Expected axis has (?P<met>\d+) elements, new values have (?P<wanted>\d+)",
    )
)
"""Messages that name a size that was met, and the one that was wanted."""
INTO_SHAPE = re.compile(
    r"cannot reshape array of size (?P<met>\d+) into shape \((?P<shape>[\d, ]+)\)|"
    r"shape '\[(?P<view>[-\d, ]+)\]' is invalid for input of size (?P<size>\d+)"
)
DIMENSIONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"not enough values to unpack \(expected (?P<more>\d+), got (?P<met>\d+)\)",
        r"too many values to unpack \(expected (?P<more>\d+)",
        r"array is (?P<met>\d+)-dimensional, but (?P<more>\d+) were indexed",
        r"too many indices for tensor of dimension (?P<met>\d+)()",
        r"[Ee]xpected (?P<more>\d)-?D .*?(?:got|but got)[^\d]*(?P<met>\d)-?D",
        r"must have (?P<more>\d) dimensions, got (?P<met>\d)",
        r"Dimension out of range \(expected to be in range of \[-(?P<met>\d+), ",
        r"axis \d is out of bounds for array of dimension (?P<met>\d)",
        r"expected input to be (?P<more>\d)D(?: or \d)?, got (?P<met>\d)D",
        r"or (?P<more>\d)D \(batched\) input to \w+, but got input of size: \[(?P<sizes>[\d, ]+)\]",
        r"not supported for (?P<met>\d)D input tensor",
        r"(?P<more>1)D target tensor expected, multi-target not supported",
    )
)
UNLIKE = re.compile(r"must have same number of dimensions: got \d and \d")
SCALAR = re.compile(
    r"size 1 to a Python scalar|elements cannot be converted to Scalar|only (?:length-1|0-dimensional)"
)
"""Messages where an array has the place of a number."""
WHOLE = re.compile(
    r"(?:scalar types?:?|target dtype to be|must be) Long|expected scalar type Long|"
    r"'indices' to have|only integer|"
    r"not implemented for '(?:Float|Double)'|indices must be integers|arrays used as indices|"
    r"can't be cast to .*Long|cannot be interpreted as an integer|tensors used as indices must be",
    re.I,
)
"""Messages where floating-point numbers have the place of whole ones."""
FLOATING = re.compile(
    r"Found dtype Long but expected|expected (?:scalar type |m1 and m2 .*|.*dtype.*)Float|must be floating|"
    r"result type Float can't be cast to|Only Tensors of floating point|same dtype, but got Long|"
    r"not implemented for '(?:Long|Int)'|Input type \(torch\.LongTensor\)|could not infer output dtype",
    re.I,
)
"""Messages where whole numbers have the place of floating-point ones."""
HEADER = re.compile(
    r"could not convert string (?:to float|'\w*column_0).*column_|invalid literal.*column_|column_0"
)
LARGER = re.compile(
    r"Expected more than 1 (?:spatial element|value per channel)|"
    r"Output size is too small|Kernel size can't be greater|must be smaller|[Cc]rop size|[Pp]adding size"
)
SIDES = (64, 28, 32, 128, 224, 256, 84, 96, 299)
"""Sides of pictures, in the order in which they are tried."""
KEY = re.compile(
    r"^'([^']*)'$|^(\w+)$|\['([^']+)'\](?: not in index|\])|'([^']+)' is not a file in the archive"
)


TOO_FEW = re.compile(
    r"__len__\(\) should return >= 0|num_samples=-|empty range|high <= 0|low >= high|Sum of input lengths|"
    r"larger than population|larger sample than|cannot take a larger|n_splits|stack expects a non-empty"
)
"""What is said where there are fewer samples than are asked for."""
ROWS = (4096, 32768)
"""How many rows there are then, first and where those are too few as well."""


def _more(run: context.StandinRun, message: str) -> Schema | None:
    """More rows in tables, and elements in everything that is gone through."""
    had = value.rows_of(run)
    larger = next((one for one in ROWS if one > had), None)
    if larger is None or not TOO_FEW.search(message):
        return None
    sizes = {
        place: [larger, *dims[1:]] if dims[:1] == [had] else dims
        for place, dims in run.schema.get("sizes", {}).items()
    }
    return {**run.schema, "rows": larger, "sizes": sizes}


def advise(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The schema in which what was made up has what an error says that it lacks."""
    if not any(run.schema.get(part) for part in ("files", "datasets", "hub", "handed")):
        return None
    message = str(error)
    for found in (
        _key(run, error),
        _header(run, message),
        _more(run, message),
        _beyond(run, message),
        _broadcast(run, message),
        *_sizes(run, message),
        _like_input(run, message),
        _shape(run, message),
        _dimensions(run, message),
        _type(run, message),
        _wider(run, message),
        _pictures(run, message),
    ):
        if found is not None:
            return found
    return None


def _places(run: context.StandinRun) -> list[str]:
    """The places of arrays, the latest first."""
    return [place for place in reversed(run.sizes) if place != "pictures"]


def _tables(run: context.StandinRun) -> list[str]:
    """The names of the files that are tables, the latest last."""
    return [name for name, entry in run.schema.get("files", {}).items() if entry["kind"] == "table"]


def _key(run: context.StandinRun, error: BaseException) -> Schema | None:
    """A table or an archive with the name that was asked for."""
    if not isinstance(error, (KeyError, AttributeError, ValueError)):
        return None
    message = str(error)
    found = KEY.search(message)
    if isinstance(error, AttributeError):
        found = re.search(r"'(?:DataFrame|NpzFile)' object has no attribute '([^']+)'", message)
    elif isinstance(error, ValueError):
        found = re.search(
            r"(?:columns expected but not found|not in list|Usecols do not match).*?\['([^']+)'", message
        )
    names = [one for one in found.groups() if one] if found else []
    if "None of [Index([" in message or "not in index" in message:
        names = re.findall(r"'([^']+)'", message.partition("dtype")[0])
    for table in [*reversed(_tables(run)), *reversed(run.enumerated)]:
        # Which of several tables it is nobody says: what one has, others may have as well.
        known = run.schema.get("keys", {}).get(table, [])
        fresh = [name for name in names if name not in known]
        if fresh:
            return with_entry(run.schema, "keys", table, [*known, *fresh])
    return None


def _header(run: context.StandinRun, message: str) -> Schema | None:
    """A table without a line that names its columns."""
    tables = _tables(run)
    if tables and HEADER.search(message):
        return with_entry(run.schema, "types", tables[-1], "no header")
    return None


BROADCAST = re.compile(r"tensor a \((\d+)\) must match .*tensor b \((\d+)\) at non-singleton dimension (\d)")


def _broadcast(run: context.StandinRun, message: str) -> Schema | None:
    """An array with the dimensions between its rows and the rest, where rows have met something else."""
    found = BROADCAST.search(message)
    if found is None:
        return None
    one, other, dimension = map(int, found.groups())
    if dimension == 0 or not {one, other} & run.rows:
        return None
    wanted = other if one in run.rows else one
    for place in _places(run):
        dims = run.sizes[place]
        if 1 < len(dims) < 4 and dims[0] == value.rows_of(run):
            between = [1] * (dimension - 1)
            return with_entry(run.schema, "sizes", place, [dims[0], *between, wanted, *dims[1:]])
    return None


SIDE = 512
"""The side of a picture, at most."""
APART = 3
"""Columns of an array that are not among those that are met, at most."""


def _sizes(run: context.StandinRun, message: str) -> Iterator[Schema | None]:
    """An array with the size that was wanted in the place of the one that was met."""
    for pattern in MET_WANTED:
        found = pattern.search(message)
        if found is None:
            continue
        met, wanted = int(found["met"]), int(found["wanted"])
        for place in _places(run):
            dims = run.sizes[place]
            if len(dims) == 3 and dims[0] == met and "channels" in message:
                yield with_entry(
                    run.schema, "sizes", place, [wanted, *dims[1:]]
                )  # One picture, and no batch.
            for at in reversed(range(len(dims))):
                # What is met may be several of them side by side: ``[64, 3, 37]`` flattened is 111.
                if dims[at] > 1 and met % dims[at] == 0 and wanted % (met // dims[at]) == 0 and dims[at] > 30:
                    size = wanted // (met // dims[at])
                    if size != dims[at]:
                        yield with_entry(run.schema, "sizes", place, [*dims[:at], size, *dims[at + 1 :]])
                elif dims[at] > 30 and 0 < dims[at] - met <= APART:
                    # All columns but the last ones, which are what is to be learnt.
                    size = wanted + dims[at] - met
                    yield with_entry(run.schema, "sizes", place, [*dims[:at], size, *dims[at + 1 :]])
        for place in _places(run):
            dims = run.sizes[place]
            if len(dims) > 1 and 30 < dims[1] < met and (size := dims[1] + wanted - met) > 0:
                # Beside something else, of a size that is right.
                yield with_entry(run.schema, "sizes", place, [dims[0], size, *dims[2:]])
        if wanted > met and wanted % met == 0 and "channels" not in message:
            for place in _places(run):
                dims = run.sizes[place]
                if len(dims) == 4 and dims[2] == dims[3] and (side := dims[2] * wanted // met) <= SIDE:
                    # Pictures of which a network makes smaller ones, by a factor.
                    yield with_entry(run.schema, "sizes", place, [*dims[:2], side, side])
        pictures = run.sizes.get("pictures")
        if pictures is not None:
            yield _picture_of(run, pictures, met, wanted)


def _picture_of(run: context.StandinRun, pictures: list[int], met: int, wanted: int) -> Schema | None:
    """Pictures with the channels, or as many pixels, as were wanted."""
    side, _, channels = pictures
    if met == channels and wanted in (1, 3, 4):
        return with_entry(run.schema, "pictures", "channels", wanted)
    for count in (channels, 1, 3):
        new = round((wanted / count) ** 0.5)
        if met in (side, side * side, side * side * channels) and new * new * count == wanted:
            chosen = {**run.schema.get("pictures", {}), "side": new, "channels": count}
            return {**run.schema, "pictures": chosen}
    return None


BEYOND = re.compile(r"index (\d+) is out of bounds for (?:axis|dimension) (\d+) with size (\d+)")
MOST = 1 << 17
"""Rows of an array, at most."""


def _beyond(run: context.StandinRun, message: str) -> Schema | None:
    """An array that goes as far as it is asked for."""
    found = BEYOND.search(message)
    if found is None:
        return None
    index, axis, size = map(int, found.groups())
    for place in _places(run):
        dims = run.sizes[place]
        at = axis if len(dims) > axis and dims[axis] == size else dims.index(size) if size in dims else None
        if at is not None and index < MOST:
            larger = index + 1 if size < 32 else 2 * index
            return with_entry(run.schema, "sizes", place, [*dims[:at], larger, *dims[at + 1 :]])
    return None


TARGET = re.compile(
    r"target size \(torch\.Size\(\[([\d, ]+)\]\)\).*input size \(torch\.Size\(\[([\d, ]+)\]\)\)"
)


def _like_input(run: context.StandinRun, message: str) -> Schema | None:
    """A target with as many dimensions as what it is compared with."""
    found = TARGET.search(message)
    if found is None:
        return None
    met, wanted = ([int(one) for one in sizes.split(",")] for sizes in found.groups())
    for place in _places(run):
        if len(met) != len(wanted) and run.sizes[place][1:] == met[1:] and run.sizes[place]:
            return with_entry(run.schema, "sizes", place, [run.sizes[place][0], *wanted[1:]])
    return None


def _shape(run: context.StandinRun, message: str) -> Schema | None:
    """An array with as many elements as the shape has that it is brought into."""
    found = INTO_SHAPE.search(message)
    if found is None:
        return None
    met = int(found["met"] or found["size"])
    wanted = 1
    for one in (found["shape"] or found["view"]).split(","):
        if one.strip() and int(one) > 0:
            wanted *= int(one)
    for place in _places(run):
        dims = run.sizes[place]
        if len(dims) == 4 and dims[2] == dims[3]:
            # Pictures of which a network makes smaller ones, and then so many features.
            factor = round((wanted * max(run.rows, default=dims[0]) / met) ** 0.5)
            if factor > 1 and met * factor**2 in {wanted * rows for rows in {dims[0], *run.rows}}:
                side = dims[2] * factor
                return (
                    with_entry(run.schema, "sizes", place, [*dims[:2], side, side]) if side <= SIDE else None
                )
        total = 1
        for size in dims:
            total *= size
        if total == met and dims:
            rows = dims[0] if len(dims) > 1 else 1
            if wanted % rows == 0 and wanted // rows > 1:
                return with_entry(run.schema, "sizes", place, [*dims[:1], wanted // rows][-len(dims) :])
            return with_entry(run.schema, "sizes", place, [*dims[:1], wanted] if len(dims) > 1 else [wanted])
    return None


def _dimensions(run: context.StandinRun, message: str) -> Schema | None:
    """The array that was made last, with another number of dimensions."""
    if SCALAR.search(message):
        count = re.search(r"Tensor with (\d+) elements", message)
        for place in _places(run):
            if count is not None and len(run.sizes[place]) > 1 and run.sizes[place][0] == int(count[1]):
                return with_entry(
                    run.schema, "sizes", place, run.sizes[place][1:]
                )  # One sample, and no batch.
        last = next((one for one in _places(run) if run.sizes[one]), None)
        return with_entry(run.schema, "sizes", last, []) if last is not None else None
    if message in ("tuple index out of range", "axes don't match array") and _places(run):
        dims = run.sizes[_places(run)[0]]
        return with_entry(run.schema, "sizes", _places(run)[0], [*dims, 11]) if len(dims) < 5 else None
    if UNLIKE.search(message):
        # What was embedded has one dimension more: labels, most likely what comes second.
        flat = [place for place in _places(run) if len(run.sizes[place]) == 2]
        flat.sort(key=lambda place: not (value.whole_numbers(run, place) or place.endswith("[1]")))
        if flat:
            return with_entry(run.schema, "sizes", flat[0], run.sizes[flat[0]][:-1])
    for pattern in DIMENSIONS:
        found = pattern.search(message)
        if found is None:
            continue
        groups = found.groupdict()
        met = int(groups["met"]) if groups.get("met") else None
        met = len(groups["sizes"].split(",")) if groups.get("sizes") else met
        for place in _places(run):
            dims = run.sizes[place]
            more = int(groups["more"]) if groups.get("more") else len(dims) + 1
            more = 4 if message.startswith("Padding size 4 ") else more  # Pictures, in a batch.
            if (met is None or len(dims) == met) and len(dims) != more <= 5:
                larger = [*dims, *(32 if len(dims) + more > 4 else 11 for _ in range(more - len(dims)))]
                return with_entry(run.schema, "sizes", place, larger[:more])
    return None


def _type(run: context.StandinRun, message: str) -> Schema | None:
    """The array that was made last and is not yet of the type that was wanted."""
    if "Cannot handle this data type" in message and _places(run):
        return with_entry(run.schema, "types", _places(run)[0], "byte")
    wanted = "int" if WHOLE.search(message) else "float" if FLOATING.search(message) else None
    if wanted is None:
        return None
    for place in _places(run):
        if value.whole_numbers(run, place) != (wanted == "int"):
            return with_entry(run.schema, "types", place, wanted)
    if "expected scalar type Long but found Float" in message:  # By a layer, whose weights are no integers.
        return with_entry(run.schema, "types", _places(run)[0], "float") if _places(run) else None
    return None


def _pictures(run: context.StandinRun, message: str) -> Schema | None:
    """Pictures of the next side, for a network that is made for one."""
    if "pictures" not in run.sizes:
        return None
    if not (LARGER.search(message) or any(one.search(message) for one in (*MET_WANTED[:1], INTO_SHAPE))):
        return None
    now = run.sizes["pictures"][0]
    following = SIDES[SIDES.index(now) + 1 :] if now in SIDES else ()
    return with_entry(run.schema, "pictures", "side", following[0]) if following else None


def _wider(run: context.StandinRun, message: str) -> Schema | None:
    """Arrays that are pictures with sides that are twice as long."""
    if not LARGER.search(message):
        return None
    for place in _places(run):
        dims = run.sizes[place]
        if len(dims) == 4 and dims[2] == dims[3] and 2 * dims[2] <= SIDE:
            return with_entry(run.schema, "sizes", place, [*dims[:2], 2 * dims[2], 2 * dims[3]])
    return None


BATCHES = (8, 2)
FEW = 512
"""Samples in a data set of torchvision's, where going through all of them takes too long."""


def smaller_batches(run: context.StandinRun) -> Schema | None:
    """The schema with smaller batches, for a run whose time was over."""
    if not any(isinstance(one, torch.utils.data.DataLoader) for one in gc.get_objects()):
        return None
    smaller = [one for one in BATCHES if one < run.schema.get("batch", 1 << 30)]
    fewer = {"samples": FEW} if run.schema.get("datasets") else {}
    return {**run.schema, **fewer, "batch": smaller[0]} if smaller else None
