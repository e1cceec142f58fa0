"""What each operation saves for its backward, by the name under which a program calls it.

The facts are observed, not read in a manual: ``tools/generate_operators.py`` runs every operation
under torch (the version is :data:`gradfix.autograd.operator_table.TORCH`, on a CPU), moves the
version counter of each tensor involved, and notes when ``backward`` complains. A unit test holds
the committed table to the torch that is installed. Nothing here imports torch.

An operation that is called in several ways has one row for each way. After the name,

* ``.word`` tells overloads apart: ``max.dim`` and ``max.other`` beside ``max``; ``.scalar`` where
  it matters that a Python number stands for an operand: ``mul.scalar``; ``.plain`` for a module
  that was built without parameters: ``torch.nn.LayerNorm.plain``;
* ``#word`` tells modes apart: ``torch.nn.functional.relu#inplace``, ``torch.nn.Dropout#eval``,
  ``torch.nn.functional.batch_norm#train``, ``torch.nn.functional.pad#reflect``,
  ``torch.nn.LSTM#packed``, ``torch.distributions.Categorical#logits``.

The row without a suffix is the call with default arguments; a module's is its training mode.
A method of a distribution has the parameters of the distribution as its first operands. Where the
constructor computes something that all its methods share (``Categorical`` normalises), it has a row
of its own, and the operand of the methods is what that row results in.

What no row can say:

* An in-place operation on a view also replaces the history of the tensor that is viewed. The node
  that does so raises at a second backward even if the operation itself saves nothing, as in
  ``x[0] = y`` (row ``setitem.int_or_slice``).
* Under ``autocast``, ``Linear``, ``Conv`` and recurrent layers save a cast copy of their weight: a
  step then goes unnoticed, so that what is saved of an operand there is only possible.
* What only changes how the graph is attached is no operation here: ``detach_``, ``requires_grad_``,
  ``retain_grad``, ``.data``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple, cast

from gradfix.autograd import operator_table

OUT = 1 << 30
"""In a mask of saved tensors: the result (of several, the first)."""
REST = 1 << 28
"""In a mask of saved tensors: a result after the first, such as the indices of ``max(dim)``."""
AUX = 1 << 29
"""In a mask of saved tensors: something that the program cannot reach (a dropout mask, a Python
factor). It makes a second backward raise, but its version never moves."""

Result = Literal["new", "view", "either", "inplace", "detached"]


def is_loss(name: str) -> bool:
    """Whether an operation is one of torch's losses: it compares something with what it should be."""
    last = name.rpartition(".")[2]
    return last.endswith(("_loss", "Loss", "cross_entropy", "cross_entropy_with_logits", "kl_div"))


class Operator(NamedTuple):
    """What autograd does for one operation.

    Bit ``i`` of a mask stands for operand ``i``. Two questions are answered for a set of operands
    that require grad: what the graph *surely* saved (:attr:`saved`), and what it saved in some of
    the ways to make the call that were tried (:attr:`possible`, a superset: shapes, options and
    starting from a result other than the first can matter). A node that saved nothing survives
    being traversed twice; one that saved something raises at the second ``backward``.
    """

    name: str
    """The short name: ``mul``, ``relu#inplace``, ``nn.Linear``."""
    operands: tuple[str, ...]
    """The tensor operands in call order, as keywords spell them. The object of a method is the
    first. ``weight``, last, stands for all parameters of a module at once."""
    positions: tuple[int | None, ...]
    """Where each operand stands in the call (a method's object is 0). Operands that share a
    position are the elements of one tuple there, as ``(h_0, c_0)`` of an LSTM; ``None`` cannot be
    passed by position (keyword only, or the parameters of a module)."""
    sequences: int
    """The operands that are a list of tensors (or all further arguments): their bit stands for
    any of the tensors."""
    saved: Mapping[int, int]
    """Operands that require grad -> what was surely saved. The keys cover every combination of the
    operands through which gradients pass, and no other operand: indices and masks are in none."""
    possible: Mapping[int, int]
    """As :attr:`saved`, with what is saved only in some of the ways to make the call."""
    result: Result
    """``new`` storage; a ``view`` (or the very object) that shares storage and version counter with
    operand 0; ``either`` of these, depending on layout, dtype or device; operand 0 modified
    ``inplace``; or ``detached``: shares storage and version counter, never requires grad. For an
    in-place operation what is saved of operand 0 after the change is ``OUT``."""
    outputs: str
    """The shape of the result: ``t`` a tensor, ``i`` a tensor that never requires grad, ``v``
    anything else, ``?`` either; ``(tt)`` a tuple, ``(t(tt))`` that of an LSTM, ``[t]`` a sequence
    whose length depends on the call."""
    fields: tuple[str, ...] = ()
    """The attributes of a named tuple: ``values`` and ``indices`` of ``max(dim)``."""

    gradients: int = 0
    """The operands through which gradients pass: the result requires grad if one of them does."""
    differentiable: bool = True
    """Whether a result can require grad."""

    def saves(self, requires_grad: int, given: int = -1) -> int:
        """What was surely saved when these operands require grad; other bits do not matter.

        ``given`` are the operands that the call has: what it leaves out (or gives as a Python
        number) is no tensor that could have been saved.
        """
        return self.saved.get(requires_grad & self.gradients, 0) & (given | OUT | REST | AUX)

    def may_save(self, requires_grad: int, given: int = -1) -> int:
        """What was saved, or may have been, when these operands require grad."""
        return self.possible.get(requires_grad & self.gradients, 0) & (given | OUT | REST | AUX)


def function(name: str) -> Operator | None:
    """The row of a function, by its dotted name after imports are resolved.

    >>> function("torch.relu").saves(0b1) == OUT
    True
    """
    return _row(name)


def method(name: str) -> Operator | None:
    """The row of a tensor method: ``view``, ``mul_``, ``getitem.mask``, ``setitem.slice``."""
    return _row(f"Tensor.{name}")


def attribute(name: str) -> Operator | None:
    """The row of a tensor attribute that is an operation: ``T``, ``mT``, ``real``."""
    return _row(f"attribute.{name}")


def binary(op: str, scalar: Literal["left", "right"] | None = None) -> Operator | None:
    """The row of a binary operator or comparison, by the name of its :mod:`ast` class.

    ``scalar`` tells which side is a Python number: ``binary("Sub", "left")`` is ``2 - x``.
    """
    return _row(f"binary.{op}.{scalar}" if scalar else f"binary.{op}")


def augmented(op: str, scalar: bool = False) -> Operator | None:
    """The row of an augmented assignment to a tensor, such as ``x += y`` or ``x *= 2``."""
    return _row(f"augmented.{op}.scalar" if scalar else f"augmented.{op}")


def unary(op: str) -> Operator | None:
    """The row of a unary operator, by the name of its :mod:`ast` class."""
    return _row(f"unary.{op}")


def module(name: str) -> Operator | None:
    """The row of a module's call, by the class: ``torch.nn.Linear``, ``torch.nn.Dropout#eval``.

    A module that does the same in both modes has one row, which its ``#eval`` finds too.
    """
    return _row(name) or (_row(name.removesuffix("#eval")) if name.endswith("#eval") else None)


SELECTING = frozenset(
    """max min amax amin maximum minimum fmax fmin median nanmedian quantile clamp clamp_min clamp_max clip
    where gather take masked_select""".split()
)
"""Operations that save their operand to know which elements were taken: their derivative is a choice."""


@cache
def derivative_of(short: str) -> Literal["operand", "result"] | None:
    """What the derivative of an operation by its first operand is computed of, if of that or of the result.

    A derivative of that derivative then leads to what the operand was computed of. Those of products, and of
    what selects, lead nowhere but to other operands.

    Args:
        short: The short name of the operation, :attr:`Operator.name`.
    """
    row = next(filter(None, (_row(f"{path}{short}") for path in ("torch.", "Tensor.", *_FURTHER))), None)
    if row is None or short.split(".")[0].split("#")[0] in SELECTING:
        return None
    own = row.saved.get(1, 0)
    return "operand" if own & 1 else "result" if own & OUT else None


_FURTHER = ("torch.nn.functional.", "")
_PATHS = (
    (re.compile(r"^torch\.nn\.modules\.[a-z_]+\."), "torch.nn."),
    (re.compile(r"^torch\.distributions\.(?!kl_divergence)[a-z_]+\."), "torch.distributions."),
    (re.compile(r"^torch\.functional\."), "torch."),
    (re.compile(r"^torch\.(?=Tensor\.)"), ""),
)
"""Where torch defines what it exports under a shorter name."""
_ROW = re.compile(
    r"(?P<operands>.*): (?P<result>new|view|either|inplace|detached) (?P<outputs>\S+);(?P<rules>.*)"
)
_SHORT = re.compile(r"^(torch\.nn\.functional\.|torch\.|Tensor\.)")


@cache
def _index() -> dict[str, str]:
    """Every name -> the line of the table that describes it."""
    index: dict[str, str] = {}
    row = ""
    for line in operator_table.TABLE.splitlines():
        if line.startswith(" "):
            index.update(dict.fromkeys(line.split(), row))
        else:
            row = line
    return index


@lru_cache(maxsize=1024)
def _row(name: str) -> Operator | None:
    for pattern, short in _PATHS:
        name = pattern.sub(short, name)
    line = _index().get(name)
    return parse(_SHORT.sub("", name), line) if line is not None else None


def parse(name: str, line: str) -> Operator:
    """Read one line of the table: ``operands: result outputs; rules``.

    An operand is ``name@position``; the position is left out where it is the operand's own index,
    and ``-`` where there is none. A ``*`` before marks a sequence, a ``~`` after that no gradient
    iterations. A rule ``b<ac`` says that operand b is saved if a or c requires grad, ``b?ac`` that it
    may be; ``O``, ``R`` and ``X`` are the result, a further result and something unreachable.
    """
    match = _ROW.fullmatch(line)
    assert match, line
    operands: list[str] = []
    positions: list[int | None] = []
    sequences = gradients = 0
    for bit, word in enumerate(match["operands"].split()):
        operand, _, position = word.partition("@")
        if operand.startswith("*"):
            sequences |= 1 << bit
        if not operand.endswith("~"):
            gradients |= 1 << bit
        operands.append(operand.strip("*~"))
        positions.append(None if position == "-" else int(position or bit))

    sure: list[tuple[int, int]] = []
    maybe: list[tuple[int, int]] = []
    for rule in match["rules"].split():
        what = {"O": OUT, "R": REST, "X": AUX}.get(rule[0]) or 1 << ord(rule[0]) - ord("a")
        because = sum(1 << ord(letter) - ord("a") for letter in rule[2:])
        maybe.append((what, because))
        if rule[1] == "<":
            sure.append((what, because))

    outputs, _, fields = match["outputs"].partition(":")
    return Operator(
        name=name,
        operands=tuple(operands),
        positions=tuple(positions),
        sequences=sequences,
        saved=_masks(gradients, sure),
        possible=_masks(gradients, maybe),
        result=cast(Result, match["result"]),
        outputs=outputs,
        fields=tuple(fields.split(",")) if fields else (),
        gradients=gradients,
        differentiable="t" in outputs,
    )


def _masks(gradients: int, rules: list[tuple[int, int]]) -> Mapping[int, int]:
    """Evaluate the rules for every non-empty subset of ``gradients``."""
    masks: dict[int, int] = {}
    subset = gradients
    while subset:
        masks[subset] = 0
        for what, because in rules:
            if subset & because:
                masks[subset] |= what
        subset = (subset - 1) & gradients
    return MappingProxyType(masks)
