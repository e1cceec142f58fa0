"""Plans: what the message of an error says of content that was made up, and should have been another.

A run with made-up content fails because an array has another size, number of dimensions or kind of numbers
than the script takes. The message names what it met and what it wanted; :func:`advise` finds the content
that has it, and says how it should look in the next try (see ``content`` and ``runner.planned``).
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import re
import sys
import types
from typing import Any

import torch

from . import content, context, elastic, inert, media

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
    r"array at index \d+ has size (?P<right>\d+) and the array at index \d+ has size (?P<wrong>\d+)",
    r"array at index \d+ has size (?P<wrong>\d+) and the array at index \d+ has size (?P<right>\d+)",
    r"expected tensor \[(?P<right>\d+)\] and src \[(?P<wrong>\d+)\]",
    r"input batch_size \((?P<right>\d+)\) to match target batch_size \((?P<wrong>\d+)\)",
    r"[Tt]arget size \(torch\.Size\(\[(?:\d+, )*(?P<wrong>\d+)\]\)\).*"
    r"input size \(torch\.Size\(\[(?:\d+, )*(?P<right>\d+)\]\)\)",
)
"""Messages that name a size that was met, and the one that was wanted."""
INTO_LAYERS = WRONG_RIGHT[:2]
"""Those that name the width of what goes into a layer: several things may stand in it side by side."""


SMALL_PICTURES = re.compile(
    r"cannot be multiplied|[Oo]utput size is too small|Kernel size can't be greater than actual input size|"
    r"is invalid for input of size|more than 1 value per channel|more than 1 spatial element"
)
"""Messages of a network that is made for pictures of one size."""


def advise(error: BaseException) -> str | None:
    """A plan by which the run might get further than this error, ``None`` if nothing suggests one."""
    change = advised(error)
    if change is not None:
        return change
    if (larger := larger_pictures()) is not None:
        return content.planned_with(*larger)
    if (other := other_pictures(str(error))) is not None:
        return content.planned_with(*other)
    for name, among in content.book.turns.items():
        turn = (content.book.planned(name, "turn") or 0) + 1
        if turn < min(len(among), content.MISTAKEN if type(error) is NameError else content.TURNS):
            return content.planned_with(name, "turn", turn)
    return None


def advised(error: BaseException) -> str | None:
    """The plan that the message of an error suggests."""
    message = str(error)
    sides = [set(pair) for pair in content.book.sides]
    unlike = re.search(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", message)
    reduced = unlike is not None and {int(unlike[1]), int(unlike[2])} in sides
    if unlike is not None and (part := in_proportion(int(unlike[1]), int(unlike[2]))) is not None:
        if (plan := content.planned_with("pictures", "part", part)) is not None:
            return plan
    if content.book.brought and (reduced or SMALL_PICTURES.search(message)):
        return content.planned_with("pictures", "brought", "to the sizes of the script")
    if content.book.pictures and (change := pictures(message) or insisted(error)) is not None:
        return content.planned_with(*change)
    if not (content.book.touched or content.book.styles or content.book.within or content.book.heard):
        return None
    if isinstance(error, KeyError) and content.book.worded and (named := keys_missed(error)) is not None:
        return content.planned_with(*named)
    if isinstance(error, TypeError) and TEXT_WANTED.search(message):
        return content.planned_with(wanting_text(error), "text", True)
    if isinstance(error, TypeError) and TEXT_ADDED.search(message) and (column := named_column(error)):
        return content.planned_with(column, "text", True)
    if NUMBER_FOR_TEXT.search(message) and (column := named_column(error) or last_column()):
        if (texts := content.planned_with(column, "text", True)) is not None:
            return texts
    if re.search(r"\b(Content|Number)\b", message) and isinstance(error, TypeError):
        # A function of torch was looked up before the content was there that it is called with.
        return content.planned_with("torch", "contents", True) or content.planned_with(
            "code", "tensors", True
        )
    if re.search(
        r"(flatten|sum|mean|squeeze|repeat)\(\) (takes|got)|'int' object is not callable|"
        r"numpy.ndarray' object has no attribute",
        message,
    ):
        if (tensors := content.planned_with("code", "tensors", True)) is not None:
            return tensors
    place, number = content.book.beyond
    if message == content.NO_ELEMENT and place and 0 <= number < content.LARGEST // 64:
        return content.planned_with(place, "count", max(content.MANY[0], 2 * number))
    if message == content.NO_LENGTH and (plain := content.planned_with("code", "numbers", True)) is not None:
        return plain
    if WHOLE.search(message) and content.book.touched:
        return content.planned_with(content.book.touched, "dims", [])
    if HEADING.search(message) and (table := headless()) is not None:
        return table
    if content.book.heard and TOO_SHORT.search(message):
        if (longer := content.planned_with("sounds", "seconds", media.LONG)) is not None:
            return longer
    if (few := TOO_FEW.search(message)) or divided(error):
        wanted = content.samples() + int(few["short"] or 0) if few else 0
        if (more := content.more_samples(min(wanted, content.MANY[-1]))) is not None:
            return more
    if (reach := reached(message, error)) and (more := content.more_samples(reach)) is not None:
        return more
    change = (
        wanted_by_loss(error)
        or sizes(message)
        or insisted(error)
        or columns(message, error)
        or shape_unpacked(message, error)
        or shape_too_short(message, error)
        or dimensions(message, error)
        or transposed(message, error)
        or arrangement(message)
        or kinds(message)
    )
    if change is None:
        return None
    return content.planned_with(*change)


def advise_when_left(leaving: SystemExit) -> str | None:
    """The plan for a script that has left as what was made up has not the size that it insists on."""
    change = insisted(leaving)
    return content.planned_with(*change) if change is not None else None


def wanted_by_loss(error: BaseException) -> tuple[str, str, Any] | None:
    """The sizes of what a network gives, for the target of another shape that a loss compares it with."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_name not in elastic.LOSSES:
        trace = trace.tb_next
    held = trace.tb_frame.f_locals if trace is not None else {}
    shapes = [list(one.shape) for one in (held.get("input"), held.get("target")) if torch.is_tensor(one)]
    if len(shapes) != 2 or len(shapes[0]) != len(shapes[1]) or shapes[0][:1] != shapes[1][:1]:
        return None
    given, target = (one[1:] for one in shapes)
    for place, dims in reversed(list(content.book.dims.items())):
        before = leading(place)
        if given != target and dims[len(before) :] == target:
            return place, "dims", [*before, *given]
    return None


def in_proportion(one: int, other: int) -> int | None:
    """By what to divide the sizes of pictures, if they no longer fit as one of two kinds has been reduced
    more than the other: ``96`` and ``384``, of which both became ``64``."""
    small, large = sorted((one, other))
    limit = min((limit for limit, _ in content.book.sides), default=0)
    own = {side for _, side in content.book.sides} | {limit}
    fitting = [side for side in own if side * small in {inner * large for inner in own}]
    if large == small or not limit or limit not in (small, large) or not fitting:
        return None
    part = 2
    while max(own) // part > 2 * limit:
        part *= 2
    return part


def keys_missed(error: KeyError) -> tuple[str, str, Any] | None:
    """The keys that a file should have had whose keys were made up: that which the script asked for in what
    it has made of them, and those for which it asks the same thing elsewhere."""
    trace, run = innermost(error), context.run()
    if trace is None or trace.tb_next is not None or not isinstance(error.args[0], str):
        return None
    name = error.args[0]
    asked: dict[tuple[str, str], dict[str, None]] = {}
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    files = [one for one in loaded if one and one.endswith(".py") and run.recorder.in_project(one)]
    for path in dict.fromkeys([trace.tb_frame.f_code.co_filename, run.script, *files]):
        for node in context.walk(run.tree(path)):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                if isinstance(node.slice.value, str):
                    asked.setdefault((path, root_of(node)), {})[node.slice.value] = None
    others = [key for keys in asked.values() if name in keys for key in keys]
    given = [place for place, fields in content.book.plan.items() if "keys" in fields]
    for place in [*given, *reversed(content.book.worded)]:
        had = content.book.planned(place, "keys") or []
        if name not in had:
            return place, "keys", list(dict.fromkeys([*had, name, *others]))
    return None


def root_of(node: ast.expr) -> str:
    """What an expression asks for a part of, or for a part of a part."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node)


HEADING = re.compile(r"(?:invalid literal for int\(\)|could not convert string to float).*column_\d")
"""Messages where the first line of a table should not have said what its columns are called."""


def headless() -> str | None:
    """The plan in which the table that was made last has no such line."""
    for place, dims in reversed(list(content.book.dims.items())):
        if len(dims) == 2 and place.lower().endswith((".csv", ".tsv", ".tab")):
            if (plan := content.planned_with(place, "headless", True)) is not None:
                return plan
    return None


TOO_SHORT = re.compile(
    r"empty sequence|cannot be empty|empty range|low >= high|high <= 0|Padding size should be less|"
    r"stack expects each tensor to be equal size|Kernel size can't be greater"
)
"""Messages of code that cuts a part out of what is shorter than that, or computes with what is left of it."""
TOO_FEW = re.compile(
    r"__len__\(\) should return >= 0|num_samples=-\d|low >= high|^high <= 0|"
    r"(?:empty range (?:for|in) randrange\D*(?:\d+, )?|from=\d+ >= to=)-(?P<short>\d+)"
)
"""Messages of a data set of sequences that are longer than all there is, or of what draws a place."""


def divided(error: BaseException) -> bool:
    """Whether the function that failed goes over parts of the samples, of which each takes more than there
    are: ``range(len(order) // bin_size)``."""
    trace, run = innermost(error), context.run()
    if trace is None:
        return False
    frame = trace.tb_frame
    around = context.statements_at(run.tree(frame.f_code.co_filename), trace.tb_lineno)
    functions = [one for one in around if isinstance(one, ast.FunctionDef)]
    for node in ast.walk(functions[-1]) if functions else ():
        parts = node.args[-1] if isinstance(node, ast.Call) and node.args else None
        if isinstance(parts, ast.BinOp) and isinstance(parts.op, ast.FloorDiv) and is_range(node):
            samples, size = (whole_number(one, frame) for one in (parts.left, parts.right))
            if samples is not None and size is not None and 0 < samples < size:
                return True
    return False


BEYOND = re.compile(r"index \d+ is out of bounds for (?:axis|dimension) \d+ with size (\d+)")


def reached(message: str, error: BaseException) -> int:
    """How many samples the statement that failed asks for, if it names several by their numbers, and some
    of these lie further beyond the last one than at its end: ``found[rows]``; else 0."""
    beyond, trace, run = BEYOND.search(message), innermost(error), context.run()
    firsts = {dims[0] for dims in content.book.dims.values() if dims}
    if beyond is None or trace is None or int(beyond[1]) not in firsts:
        return 0
    around = context.statements_at(run.tree(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
    asked = [one.slice for one in ast.walk(around[-1]) if isinstance(one, ast.Subscript)] if around else []
    count = max((highest_in(read_in(one, one, trace.tb_frame)) + 1 for one in asked), default=0)
    return count if count > int(beyond[1]) + 1 else 0


def highest_in(rows: Any) -> int:
    """The highest of several whole numbers, -1 of anything else."""
    try:
        numbers = torch.as_tensor(rows).reshape(-1)
    except (TypeError, ValueError, RuntimeError):
        return -1
    whole = not (numbers.is_floating_point() or numbers.dtype == torch.bool or numbers.is_complex())
    return int(numbers.max()) if whole and len(numbers) > 1 else -1


def is_range(node: ast.AST) -> bool:
    """Whether a call counts: ``range(...)``."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("range", "xrange", "trange")


WHOLE = re.compile(
    r"object cannot be interpreted as an integer|integers or slices, not (Content|Tensors)|"
    r"must be tuple of ints, but found element of type (Content|Tensors)"
)
"""Messages where a value has the place of a whole number."""
TEXT_WANTED = re.compile(
    r"(expected string or bytes-like object, got|expected str instance,|must be str, not|apply to a) "
    r"'?(Content|Number)\b"
)
"""Messages of what takes nothing but a text."""


TEXT_ADDED = re.compile(
    r"for \+: '(int|float)[^']*' and 'str'|for \+: 'str' and '(int|float)|can only concatenate str|"
    r"expected str, bytes or os.PathLike object, not (int|float)|join\(\) argument must be str"
)
"""Messages where a number has the place of a text."""


NUMBER_FOR_TEXT = re.compile(
    r"'(?:float|int|numpy\.float64|numpy\.int64)' object (?:is not subscriptable|has no attribute '(?:"
    + "|".join(sorted(content.TEXT))
    + r")')"
)
"""Messages where a number is taken apart as a text is."""


def last_column() -> str:
    """The column of a table of numbers that was asked for last."""
    tables = {place for place, dims in content.book.dims.items() if len(dims) == 2}
    places = [place for place in content.book.kinds if content.owner(place) in tables]
    return places[-1] if places and not content.one_sample(places[-1]) else ""


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
    places = [
        place
        for place in content.book.kinds
        if content.last(place) in names and not content.one_sample(place)
    ]
    return places[-1] if places else ""


def wanting_text(error: BaseException) -> str:
    """The place of what was given where a text was wanted: what the function that failed holds, if any."""
    frame = context.raised_in(error)
    held = inert.flat(list(frame.f_locals.values())) if frame is not None else []
    places = [one._place for one in held if isinstance(one, content.Content)]
    return places[-1] if places else content.book.touched


def pictures(message: str) -> tuple[str, str, Any] | None:
    """Pictures without colours, or whose values are classes, if nothing else has the sizes in a message."""
    channels = re.search(r"to have (\d+) channels, but got (\d+) channels", message)
    if channels and content.book.pictures == 3 and int(channels[2]) - int(channels[1]) in (2, 4):
        # One of them, or two, are stacked in what is too deep by two, or four.
        return "pictures", "channels", 1
    pairs = [found for pattern in WRONG_RIGHT if (found := re.search(pattern, message, re.S))]
    for found in pairs:
        side = fitting_side(int(found["wrong"]), int(found["right"]))
        if side is not None:
            return "pictures", "side", side
    if content.book.classes > 1 and re.search(
        r"index out of range in self|Target \d+ is out of bounds", message
    ):
        return "pictures", "classes", 1
    if CUT.search(message) and (side := max(CUT_FROM, 2 * media.side(context.run()))) <= 2 * CUT_FROM:
        return "pictures", "side", side
    classes = re.search(r"index \d+ is out of bounds for dimension \d+ with size (\d+)", message)
    if classes and located(int(classes[1])) is None and not content.book.planned("pictures", "values"):
        return "pictures", "values", int(classes[1])
    return None


CUT = re.compile(
    r"empty range (?:for|in) rand\w+ ?\(.*-\d|low >= high|high <= 0|"
    r"random_ expects 'from' to be less than 'to'"
)
"""Messages where the place of what is cut of a picture is drawn, and more is cut than there is."""
CUT_FROM = 512
"""The side of pictures of which that is cut."""


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
    for pattern in INTO_LAYERS:
        layer = re.search(pattern, message)
        if layer and (change := beside(int(layer["wrong"]), int(layer["right"]))) is not None:
            return change
    found = re.search(r"index (\d+) is out of bounds for (?:axis|dimension) \d+ with size (\d+)", message)
    if (change := sides(message)) is not None:
        return change
    if found and int(found[2]) == content.SAMPLES and (change := longer(int(found[1]))) is not None:
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
    for place, dims in reversed(list(content.book.dims.items())):
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
    for place, dims in reversed(list(content.book.dims.items())):
        for index in range(len(leading(place)), len(dims) - 1):
            if any(one in content.PRIMES for one in dims) or len(dims) - len(leading(place)) != 3:
                continue
            if place.startswith("states of "):
                continue  # Of environments: these are large enough for what is made for games.
            if dims[index] == dims[index + 1] in LARGER:
                side = LARGER[dims[index]]
                return place, "dims", [*dims[:index], side, side, *dims[index + 2 :]]
    return None


def other_pictures(message: str) -> tuple[str, str, Any] | None:
    """Pictures of another usual size, for a network whose shapes are made for one."""
    if not content.book.pictures or not re.search(
        r"is invalid for input of size|must match|multiplied", message
    ):
        return None
    tried = content.book.planned("pictures", "tried") or 0
    if tried >= len(OTHERS):
        return None
    content.book.plan.setdefault("pictures", {})["tried"] = tried + 1  # It goes into the next plan.
    return "pictures", "side", OTHERS[tried]


OTHERS = (84, 32, 224)
"""Sides of pictures in files, those that networks with fixed shapes are made for most."""
LARGER = {content.SIDE: 84, 84: 224}
"""What sides of pictures are tried after others."""


def longer(index: int) -> tuple[str, str, Any] | None:
    """As many samples as another array has for one that has too few for ``index``; labels before others."""
    places = [
        place
        for place, dims in content.book.dims.items()
        if dims[:1] == [content.SAMPLES] and not content.one_sample(place)
    ]
    places.sort(key=lambda place: bool(content.LABEL.search(content.last(place))))
    if not places:
        return None
    others = [dims[0] for dims in content.book.dims.values() if dims and dims[0] > index]
    return places[-1], "dims", [max(others, default=index + 1), *content.book.dims[places[-1]][1:]]


def leading(place: str) -> list[int]:
    """The sizes before those of one sample."""
    return [] if content.one_sample(place) and not content.in_batch(place) else content.book.dims[place][:1]


def located(size: int) -> tuple[str, int] | None:
    """The place and the dimension of a size that is made up, looked for from the latest."""
    for place, dims in reversed(list(content.book.dims.items())):
        several = content.numbered(place) and len(dims) > 1
        for index, one in enumerate(dims):
            # What comes first in a file is how many samples there are, but where the file is one of these.
            if one == size and (one not in (content.SAMPLES, *content.MANY) or several):
                return place, index
    return None


def resized(wrong: int, right: int, free: bool = False) -> tuple[str, str, Any] | None:
    """The change that makes ``right`` of ``wrong``, made up or a multiple of that; a new one if ``free``."""
    if right < 1:
        return None
    for place, dims in reversed(list(content.book.dims.items())):
        for index in range(len(dims) - 1, -1, -1):
            one = dims[index]
            if one in content.PRIMES and wrong % one == 0 and wrong:
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
        dims = content.book.dims[place]
        # Pictures whose sides nobody has settled stay square.
        count = 2 if wrong == content.SIDE and dims[index : index + 2] == [wrong] * 2 else 1
        return place, "dims", [*dims[:index], *[right] * count, *dims[index + count :]]
    return None


def beside(wrong: int, right: int) -> tuple[str, str, Any] | None:
    """The size that is right for what may stand beside others in one of the size ``wrong``."""
    for place, dims in reversed(list(content.book.dims.items())):
        size = dims[-1] + right - wrong if len(dims) > len(leading(place)) else 0
        if wrong != right and dims and dims[-1] in content.PRIMES and 0 < size < right:
            return place, "dims", [*dims[:-1], size]
    return None


def one_more(count: int = 1, size: int | None = None, have: int = 0) -> tuple[str, str, Any] | None:
    """More dimensions for the array with ``size`` in it, without a size for the first with the fewest, of
    those first that ``have`` so many."""
    places = [place for place, dims in content.book.dims.items() if size is None or size in dims]
    if size is None:
        places = [one for one in places if not content.LABEL.search(content.last(one))]
        places.sort(key=lambda one: (len(content.book.dims[one]) != have, len(content.book.dims[one])))
    if not places:
        return None
    place = places[0] if size is None else places[-1]
    before = leading(place)
    inner = content.book.dims[place][len(before) :]
    sides = [content.SIDE] * (count + len(inner) - 1) if count > 1 else inner
    return place, "dims", [*before, content.book.prime(f"{place} {len(before)} {len(inner)}"), *sides]


def innermost(error: BaseException) -> types.TracebackType | None:
    """Where an error left the user's code that it came from."""
    trace, found, run = error.__traceback__, None, context.run()
    while trace is not None:
        found = trace if run.owns(trace.tb_frame) else found
        trace = trace.tb_next
    return found


def insisted(error: BaseException) -> tuple[str, str, Any] | None:
    """A size that the script itself compares with another and insists on: ``assert a == b``, ``a >= b``."""
    trace, run = innermost(error), context.run()
    if trace is None or (trace.tb_next is not None and not isinstance(error, SystemExit)):
        return None
    frame = trace.tb_frame
    test: ast.expr | None = None
    for node in context.statements_at(run.tree(frame.f_code.co_filename), trace.tb_lineno):
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and context.gives_up(node.body)):
            test = node.test
    for one in test.values if isinstance(test, ast.BoolOp) else [test]:
        if (found := compared(one, frame)) is not None:
            return found
    return None


def compared(test: ast.expr | None, frame: types.FrameType) -> tuple[str, str, Any] | None:
    """The change that makes what a condition compares what it is compared with."""
    if not isinstance(test, ast.Compare) or not isinstance(
        test.ops[0], (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    ):
        return None
    if not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        # The one that is made up is to be twice the other, or half of it.
        left, right = (whole_number(one, frame) for one in (test.left, test.comparators[0]))
        if left is None or right is None:
            return None
        small, large = sorted((left, right))
        return resized(small, 2 * large, True) or (resized(large, small // 2, True) if small > 1 else None)
    shapes = [shape_in(one, frame) for one in (test.left, test.comparators[0])]
    for had, wanted in (shapes, shapes[::-1]):
        if had is not None and wanted is not None and len(had) == len(wanted) and 0 not in wanted:
            changes = [resized(*unlike, True) for unlike in zip(had, wanted) if unlike[0] != unlike[1]]
            if (found := next((one for one in changes if one is not None), None)) is not None:
                return found
    pair = [whole_number(one, frame) for one in (test.left, test.comparators[0])]
    if content.book.heard and media.RATE in pair and not content.book.planned("sounds", "rate"):
        rate = next((one for one in pair if one is not None and one != media.RATE), 0)
        if media.RATES[0] <= rate <= media.RATES[1]:
            return "sounds", "rate", rate
    if content.book.within and None in pair and (count := next((one for one in pair if one), None)):
        # ``assert len(folders_in(place)) == count``
        return "folders", "count", count
    if content.book.pictures and None not in pair:
        for wrong, right in (pair, pair[::-1]):
            if (side := fitting_side(int(wrong or 0), int(right or 0))) is not None:
                return "pictures", "side", side
    if (parts := parts_of_a_line(test, frame)) is not None:
        return parts
    # A line of text may have one more than it has numbers: it begins with a name.
    for more in (0, 1) if content.book.styles else (0,):
        for wrong, right in (pair, pair[::-1]):
            if wrong is not None and right is not None and right >= 1:
                if (change := resized(wrong + more, right + more, True)) is not None:
                    return change
    return None


def parts_of_a_line(test: ast.Compare, frame: types.FrameType) -> tuple[str, str, Any] | None:
    """As many parts in the lines of a text as the script insists on: ``assert len(parts) == 4``."""
    sides = (test.left, test.comparators[0])
    for one, other in (sides, sides[::-1]):
        if not (isinstance(one, ast.Call) and ast.unparse(one.func) == "len" and len(one.args) == 1):
            continue
        held, wanted = read_in(one.args[0], one.args[0], frame), whole_number(other, frame)
        if not (isinstance(held, list) and held and all(isinstance(part, str) for part in held)):
            continue
        for name, style in reversed(list(content.book.styles.items())):
            separator = content.book.separators.get(name)
            if style == "common words" and separator and wanted and 1 < wanted < content.FIELDS:
                return name, "style", f"fields:{wanted}:{separator}"
    return None


READ = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub)
COMPUTED = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def whole_number(node: ast.expr, frame: types.FrameType) -> int | None:
    """The whole number that an expression has in a frame, if it only reads it, asks for a length or a size,
    or is computed from such numbers."""
    if isinstance(node, ast.BinOp) and (compute := COMPUTED.get(type(node.op))) is not None:
        pair = [whole_number(one, frame) for one in (node.left, node.right)]
        with contextlib.suppress(ZeroDivisionError):
            return compute(*pair) if None not in pair else None
    inner = node
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "len":
        inner = node.args[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        inner = node.func.value
    found = read_in(inner, node, frame)
    return found if type(found) is int else None


def shape_in(node: ast.expr, frame: types.FrameType) -> list[int] | None:
    """The shape that an expression has in a frame, if it only reads it, or all of its sizes."""
    if isinstance(node, (ast.Tuple, ast.List)):
        sizes: Any = [whole_number(one, frame) for one in node.elts]
    else:
        sizes = read_in(node, node, frame)
    whole = isinstance(sizes, (tuple, list)) and all(type(one) is int for one in sizes)
    return list(sizes) if whole else None


def read_in(inner: ast.expr, node: ast.expr, frame: types.FrameType) -> Any:
    """What an expression has in a frame, nothing if ``inner`` of it does more than to read."""
    if not all(isinstance(one, READ) for one in ast.walk(inner)):
        return None
    try:
        code = compile(ast.Expression(node), "", "eval")
        return eval(code, frame.f_globals, frame.f_locals)
    except Exception:
        return None


SENTENCES = "words in sentences"
"""The style of a text with a word and more on each line, and one that holds nothing after each sentence."""
LABELLED = "words with classes"
"""The style of a text with a word and a class of it on each line, and one that holds nothing after each
sentence."""
NOTHING_LEFT = re.compile(
    r"(?:division|modulo) by zero|num_samples should be a positive|empty (range|sequence)"
)
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


def parted_by(error: BaseException) -> str:
    """What the statement that failed takes a text apart by, if it names one thing: ``line.split("-")``.

    Not what it takes a part apart by (``pair[1].split(" ")``), for it is the parts that are too few.
    """
    trace, run = innermost(error), context.run()
    statements = (
        context.statements_at(run.tree(trace.tb_frame.f_code.co_filename), trace.tb_lineno) if trace else []
    )
    found = {
        node.args[0].value
        for node in (ast.walk(statements[-1]) if statements else ())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"
        and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        and not isinstance(node.func.value, ast.Subscript)
    }  # fmt: skip
    return next(iter(found)) if len(found) == 1 else ""


def columns(message: str, error: BaseException) -> tuple[str, str, Any] | None:
    """Another number of values in a row."""
    if message == "list index out of range" and not highest_index(error):
        for name, style in reversed(list(content.book.styles.items())):
            if style == "common words" and name in content.book.blanks:
                return name, "style", LABELLED
    short = re.search(r"not enough values to unpack \(expected (\d+), got (\d+)\)", message)
    if short or (message == "list index out of range" and not of_nothing(error)):
        for name, style in reversed(list(content.book.styles.items())):
            had = int(style.split(":")[1]) if ":" in style else 1
            highest = highest_index(error)
            wanted = int(short[1]) if short else max(had, highest) + 1
            if not short and 0 < highest < had:
                continue  # There are as many already: it is not for their number.
            if short and int(short[2]) != had:
                continue
            separator = parted_by(error) or content.book.separators.get(name)
            if separator and 1 < wanted < content.FIELDS and wanted != had:
                return name, "style", f"fields:{wanted}:{separator}"
    if NOTHING_LEFT.search(message):
        for name, style in reversed(list(content.book.styles.items())):
            if style == "common words" and name in content.book.blanks:
                return name, "style", SENTENCES
    found = re.search(r"too many values to unpack \(expected (\d+)", message)
    if found:
        if content.book.collated:
            return content.book.collated[-1], "fields", int(found[1])
        if content.book.gone_through and not content.book.planned(content.book.gone_through, "record"):
            return content.book.gone_through, "record", int(found[1])
        for place, dims in reversed(list(content.book.dims.items())):
            if len(dims) > 1 and dims[-1] in content.PRIMES:
                return place, "dims", [*dims[:-1], int(found[1])]
        for name, style in reversed(list(content.book.styles.items())):
            if style == "common words":
                return name, "style", "names and numbers"
    word = re.search(r"(?:invalid literal for int.*|convert string to float): '([^']*)'", message)
    styles = [(name, style) for name, style in reversed(list(content.book.styles.items()))]
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
    found = re.search(r"not enough values to unpack \(expected (\d), got ([1-9])\)", message)
    trace = innermost(error) if found else None
    if found is None or trace is None:
        return None
    for one in reversed(list(trace.tb_frame.f_locals.values())):
        shape = list(one.shape) if isinstance(one, torch.Tensor) else []
        place, _ = located(shape[-1]) or ("", 0) if 0 < len(shape) == int(found[2]) else ("", 0)
        if place:
            dims, more = content.book.dims[place], int(found[1]) - len(shape)
            sides = (
                [content.book.planned("torch", "side") or content.SIDE] * more
                if int(found[1]) == 4
                else [content.book.prime(f"{place} {len(dims)} {i}") for i in range(more)]
            )
            return place, "dims", [*dims, *sides]
    return None


def shape_too_short(message: str, error: BaseException) -> tuple[str, str, Any] | None:
    """Sides for what the function that failed was told the shape of, and asks for more of: a network that
    is made for pictures takes ``shape[0]`` for their channels and ``shape[1:]`` for their sides."""
    found = re.search(
        r"tuple index out of range|index \d is out of bounds for axis 0 with size [01]$", message
    )
    trace = innermost(error) if found else None
    for one in reversed(list(trace.tb_frame.f_locals.values())) if trace is not None else ():
        shape = list(one) if isinstance(one, (tuple, list)) and len(one) == 1 else []
        for place, dims in reversed(list(content.book.dims.items())):
            before = leading(place)
            if shape and shape == dims[len(before) :] and shape[0] in content.PRIMES:
                return place, "dims", [*dims, content.SIDE, content.SIDE]
    return None


OF_A_PICTURE = ", for a picture"
"""How the stand-ins' messages end of what is no picture."""


def sizes_at(error: BaseException) -> set[int]:
    """The last sizes of the arrays that the function had which failed, a stand-in maybe."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    held = list(trace.tb_frame.f_locals.values()) if trace is not None else []
    shapes = [one.shape for one in held if isinstance(getattr(one, "shape", None), tuple)]
    return {int(one[-1]) for one in shapes if one}


def dimensions(message: str, error: BaseException) -> tuple[str, str, Any] | None:
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
        r"must have same number of dimensions: got (?P<wanted>\d) and (?P<have>\d)",
        r"must have same number of dimensions: got (?P<have>\d) and (?P<wanted>\d)",
        r"sparse_dim.*number of dimensions \((?P<have>\d)\).*(?P<wanted>\d)",
        r"input\.dim\(\) = (?P<have>\d) is not equal to len\(dims\) = (?P<wanted>\d)",
    ):
        found = re.search(pattern, message)
        if found:
            groups = found.groupdict()
            have = int(groups.get("have") or found[1])
            least = (groups.get("wanted") or "").replace("two", "2") or found[2]
            wanted = int(groups["axis"]) + 1 if "axis" in groups else int(least)
            latest = list(reversed(list(content.book.dims.items())))
            fitting = [
                one
                for one in latest
                if len(one[1]) + (content.one_sample(one[0]) and not content.in_batch(one[0])) == have
            ]
            fitting += [one for one in latest if len(one[1]) - 1 == have]
            # What stands under one of many names is a sample, and a batch has one more.
            fitting += [one for one in latest if one[0].endswith("[**]") and len(one[1]) + 1 == have]
            if wanted > have and fitting:
                held = sizes_at(error)
                place, dims = next((one for one in fitting if one[1] and one[1][-1] in held), fitting[0])
                if wanted == 3 and have == 1:  # A picture, whose sides are better equal.
                    channels = 3 if OF_A_PICTURE in message else content.book.prime(place + " last")
                    return place, "dims", [*dims[:-1], content.SIDE, content.SIDE, channels]
                if wanted == 4 and have == 2 and "len(dims)" in message:  # Pictures, colours last.
                    return place, "dims", [dims[0], content.SIDE, content.SIDE, dims[1]]
                if wanted == 4 and have == 2 and len(dims) == 2:  # Pictures, colours first.
                    return place, "dims", [*dims, content.SIDE, content.SIDE]
                if wanted == 3 and have == 2 and len(inner := dims[len(leading(place)) :]) == 1:
                    if inner[0] not in content.PRIMES:
                        # What has fitted as the last dimension stays the last.
                        return place, "dims", [*leading(place), content.book.prime(place + " row"), *inner]
                return (
                    place,
                    "dims",
                    [*dims, *(content.book.prime(f"{place} {len(dims) + i}") for i in range(wanted - have))],
                )
    if message == "tuple index out of range" and content.book.shaped in content.book.dims:
        place, dims = content.book.shaped, content.book.dims[content.book.shaped]
        return place, "dims", [*dims, content.book.prime(f"{place} {len(dims)}")]
    if re.search(r"len\(\) of (?:unsized object|a 0-d tensor)|iteration over a 0-d", message):
        place = content.book.single.removesuffix("[*]")
        if place in content.book.dims:
            return place, "dims", [*content.book.dims[place], content.BOXES]  # A sample has several of them.
    if re.search(r"0-d(?:im)? (?:tensor|array)|has no dimensions", message):
        rows = list(reversed(list(content.book.dims.items())))
        rows = [one for one in rows if not content.LABEL.search(content.last(one[0]))]
        if rows:
            # The first of those with the fewest: what training reads comes before what tests do.
            place, dims = min(reversed(rows), key=lambda one: len(one[1]))
            return place, "dims", [*dims, content.book.prime(f"{place} {len(dims)}")]
    alone = re.search(r"expected np\.ndarray \(got numpy\.(int|float)", message)
    if alone:
        # ``torch.from_numpy(labels[number])``: each sample has a row of one.
        for place, dims in reversed(list(content.book.dims.items())):
            if len(dims) == 1 and (content.book.kinds.get(place) == "int") == (alone[1] == "int"):
                return place, "dims", [*dims, 1]
    few = re.search(
        r"too many indices for tensor of dimension (\d)|"
        r"Dimension out of range \(expected to be in range of \[-(\d)",
        message,
    )
    if few:
        return one_more(have=int(few[1] or few[2]))
    if re.search(
        r"must be (batches of )?square matrices|[Ll]ast 2 dimensions of the array must be square", message
    ):
        for place, dims in reversed(list(content.book.dims.items())):
            if len(dims) > 1 and dims[-1] in content.PRIMES and dims[-1] != dims[-2]:
                return (
                    place,
                    "dims",
                    [*dims[:-1], dims[-2]] if dims[-2] != content.SAMPLES else [dims[-1], dims[-1]],
                )
    if "multi-target not supported" in message or "multilabel" in message:
        rows = [(place, dims) for place, dims in reversed(list(content.book.dims.items())) if len(dims) == 2]
        likely = [one for one in rows if content.LABEL.search(content.last(one[0]))]
        likely += [one for one in rows if content.book.kinds.get(one[0]) == "int"]
        for place, dims in likely or [one for one in rows if one[1][1] in content.PRIMES]:
            # A line of a text has its number, or a name, and one class.
            return place, "dims", [dims[0], 2] if place in content.book.styles else dims[:1]
    return None


def transposed(message: str, error: BaseException) -> tuple[str, str, Any] | None:
    """As many dimensions as the statement that failed puts in order: ``np.transpose(it, [0, 3, 1, 2])``."""
    trace, run = innermost(error), context.run()
    if trace is None or not re.search(r"axes don't match array|number of dimensions in the tensor", message):
        return None
    around = context.statements_at(run.tree(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
    for node in ast.walk(around[-1]) if around else ():
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("transpose", "permute"))):
            continue
        given = [node.func.value, *node.args] if isinstance(node.func, ast.Attribute) else node.args
        orders = [one.elts if isinstance(one, (ast.List, ast.Tuple)) else () for one in given]
        wanted = max([len(one) for one in orders] + [sum(isinstance(one, ast.Constant) for one in given)])
        for one in given:
            name = one.id if isinstance(one, ast.Name) else ""
            value = trace.tb_frame.f_locals.get(name, trace.tb_frame.f_globals.get(name))
            # A module has a function of that name.
            shape = getattr(value, "shape", ())
            shape = list(shape) if isinstance(shape, tuple) else []
            for place, dims in reversed(list(content.book.dims.items())):
                if dims == shape and 1 < len(dims) < wanted:
                    # As many as fit into what is made up at most.
                    more = [content.book.prime(f"{place} {i}") for i in range(len(dims), wanted)]
                    return place, "dims", [*dims, *(more if wanted < 4 else [content.SIDE] * len(more))]
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
    for place, dims in reversed(list(content.book.dims.items())):
        for index in range(len(dims) - 1, -1, -1):
            if dims[index] in content.PRIMES and size % dims[index] == 0:
                others = size // dims[index]
                if -1 not in wanted and fixed % others:
                    continue
                inner = math.prod(dims[1:]) // dims[index]
                new = fixed // others if -1 not in wanted else fixed // math.gcd(fixed, inner)
                return place, "dims", [*dims[:index], max(1, new), *dims[index + 1 :]]
    for place, dims in reversed(list(content.book.dims.items())):
        if math.prod(dims) == size and -1 not in wanted and any(one in content.PRIMES for one in dims):
            # All of it is to have that shape.
            return place, "dims", wanted
    if len(wanted) > 1 and wanted[0] == size and -1 not in wanted:
        for place, dims in reversed(list(content.book.dims.items())):
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
    if re.search(r"same dtype, but got Float and Double|scalar type Double but found Float", message):
        wanted, have = "double", "float"
    elif broken:
        wanted, have = "float", "int"
    elif whole:
        wanted, have = "int", "float"
    else:
        if re.search(r"index out of range in self|is out of bounds", message):
            for place, kind in reversed(list(content.book.kinds.items())):
                if kind == "int" and content.book.planned(place, "high") is None:
                    return place, "high", 1
        return None
    for place, kind in reversed(list(content.book.kinds.items())):
        if kind == have:
            return place, "kind", wanted
    return None
