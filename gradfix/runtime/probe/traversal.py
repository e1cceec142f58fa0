"""What a backward call goes through: the terms that its loss adds up, and the parameters behind each.

Nodes of autograd's graph are told from each other by a stamp in their ``metadata``, which lives as long as
they do, so no graph is kept alive by being looked at.

A loss is taken apart as far as it is a sum: ``a + 0.5 * b`` has the terms of ``a`` and of ``b``. What is no
sum any more is a term. Two calls with a term in common differentiate one loss twice, whatever it is called.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

NODES = 20_000
"""Nodes that are looked at in one run: a Python object is made for each."""
LAYERS = 2_000
"""Nodes of one graph that use parameters, which are held against each other."""
TERM, CALLS = "gradfix_term", "gradfix_calls"
"""The stamps on a node: its number as a term, the backward calls that have gone through it."""
ALIVE = "gradfix_alive"
"""The stamp on what was differentiated, which goes when its graph does."""

DIFFERENCES = frozenset({"RsubBackward0", "RsubBackward1"})
"""A number, or a tensor, less what has a graph."""
SUMS = frozenset({"AddBackward0", "SubBackward0", "StackBackward0", "CatBackward0", *DIFFERENCES})
"""Sums of what they are given, or lists of it."""
SCALES = frozenset({"MulBackward0", "DivBackward0"})
"""The same, where only one of two factors has a graph."""
SHAPES = frozenset(
    [f"{name}Backward0" for name in ("Neg", "Clone", "Alias", "ToCopy", "View", "ReshapeAlias")]
    + [f"{name}Backward{number}" for name in ("Squeeze", "Unsqueeze") for number in range(3)]
)
"""The same value with another sign, shape, type or memory."""
TOTALS = frozenset(f"{name}Backward{number}" for name in ("Sum", "Mean") for number in range(2))
"""Sums of the elements of one tensor: a sum of losses where that is a list of these."""


CRITERIA = frozenset(
    f"{name}Backward0"
    for name in ("MseLoss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits")
)
"""What holds a first argument, the prediction, against a second one, the target."""
LIKELIHOODS = frozenset({"NllLossBackward0", "NllLoss2DBackward0"})
"""What holds a prediction against data that nothing can be differentiated by."""
SIZES = frozenset({"AbsBackward0", "PowBackward0"})
"""What makes the distance from data a loss."""
SCORE = "gradfix_score"
"""The stamp on the likelihood of something that was drawn by it."""
DRAWN = "_gradfix_drawn"
"""The attribute of what was drawn."""
THROUGH_SCORES = frozenset(
    {*SUMS, *SHAPES, "ExpBackward0", "SelectBackward0", "GatherBackward0", "IndexBackward0"}
    | {"ClampBackward0", "ClampBackward1", "ClampMinBackward0", "ClampMaxBackward0"}
)
"""What a likelihood may go through and be one still."""

Edge = tuple[Any, int]
"""A node, and the number of one of those that come next."""


class Alive:
    """Counts the graphs that have been differentiated and are still referred to."""

    def __init__(self) -> None:
        self.count = 0

    def stamp(self) -> object:
        """Something that lives as long as a graph to which it is given."""
        counter = self

        class Stamp:
            def __del__(self) -> None:
                counter.count -= 1

        self.count += 1
        return Stamp()


class Traversals:
    """Looks at the graphs of the backward calls of one run.

    Args:
        saves: Whether nodes of a type save anything for backward. What others share (a parameter's transpose,
            say) may be gone through as often as one likes.
    """

    def __init__(self, saves: Callable[[type], bool]) -> None:
        self.saves = saves
        self.nodes = 0
        self.terms = 0
        self.pending: list[Any] = []
        """The nodes of the call that is about to happen."""
        self.alive = Alive()
        self.moved: dict[int, list[int]] = {}
        """By the identity of a parameter: the number of the nodes that were made before each of its moves."""
        self.edges: list[Edge] = []
        """Those by which the losses of that call depend on what they take for constants."""
        self.numbered: dict[int, Any] = {}
        """By number: the terms of that call."""

    def made(self) -> int:
        """How many graph nodes have been created in this thread, including the one that was created to find
        out."""
        with torch.inference_mode(False), torch.enable_grad():
            return _age(torch.zeros(1, requires_grad=True, device="cpu").clone().grad_fn)

    def graphs(self, *, references: bool = False) -> tuple[int, int, int]:
        """How many nodes of graphs have been made, how many graphs that have been differentiated are referred
        to, and, if that is asked for, how many references there are to tensors with a graph: who asks that
        looks at all objects there are."""
        found = 0
        for one in gc.get_objects() if references else ():
            if isinstance(one, torch.Tensor) and one.grad_fn is not None:
                found += sys.getrefcount(one)
        return self.made(), self.alive.count, found

    def stepped(self, parameters: Iterable[torch.Tensor]) -> None:
        """Note that parameters have been moved."""
        now = self.made()
        for key in {id(one) for one in parameters if one.grad is not None}:
            self.moved.setdefault(key, []).append(now)

    def gone(self, call: int) -> None:
        """Note that the call has happened that was looked at last."""
        for node in self.pending:
            node.metadata.setdefault(CALLS, set()).add(call)
        self.pending, self.edges, self.numbered = [], [], {}

    def look(
        self,
        roots: Iterable[torch.Tensor],
        owned: Mapping[int, list[tuple[int, int]]],
        seeded: bool = False,
        inputs: Collection[torch.Tensor] = (),
    ) -> dict[str, Any] | None:
        """What a call goes through that is about to differentiate ``roots``.

        Args:
            roots: What is differentiated.
            owned: By the identity of a parameter, ``(optimizer, position)`` of everyone that owns it.
            seeded: Whether a vector is given whose product with the Jacobian is asked for. Of another vector
                it is another loss: no term of it is told from others.
            inputs: What alone it is to give gradients, if anything.

        Returns:
            ``layers``: of each node that uses parameters, ``[[optimizer, position], ...]``; ``below``: by
            layer, those that come next towards the leaves; ``terms``: of each ``[number, count, [layer, ...],
            predicts, scale]``, with the layers that come first, whether it holds a prediction against data,
            and by what number the loss multiplies it, if that is one and known; ``again``: earlier calls that
            have gone through a part of the same graph; ``versions``: ``[[optimizer, position, forward, now],
            ...]``, how often each parameter had moved when it was used first, and until now. Where losses
            depend on what they take for constants, ``constants`` are the layers that come first behind these;
            ``weighs``: whether all of them weigh likelihoods; ``cut`` has ``below`` and the layers of
            ``terms`` without them. ``None`` where the graphs are too large.
        """
        starts = [root.grad_fn for root in roots if root.grad_fn is not None]
        for start in starts:
            noted: dict[Any, Any] = start.metadata  # type: ignore[assignment]
            if ALIVE not in noted:
                noted[ALIVE] = self.alive.stamp()
        nodes = in_order(starts, _following, NODES - self.nodes)
        if inputs:
            nodes = _leading_to(nodes, inputs)
        self.nodes += len(nodes)
        self.pending = [node for node in nodes if self.saves(type(node))]
        layers = {node: used for node in nodes if (used := self.uses(node, owned))}
        if self.nodes >= NODES or len(layers) > LAYERS:
            return None
        number = {node: index for index, node in enumerate(layers)}
        ahead = _ahead(nodes, number)
        terms = _terms(starts)
        self.numbered = {self.stamped(node, seeded): node for node in terms}
        numbers = {node: number for number, node in self.numbered.items()}
        self.edges = [edge for node in nodes for edge in _constants(node)]
        found = {
            "layers": list(layers.values()),
            "below": [list(_bits(ahead[node])) for node in layers],
            "terms": [
                [numbers[node], count, _first(node, number, ahead), _predicts(node), scale]
                for node, (count, scale) in terms.items()
            ],
            "again": sorted({call for node in self.pending for call in node.metadata.get(CALLS, ())}),
            "versions": self.versions(layers, owned),
        }
        if self.edges:
            cut = _ahead(nodes, number, self.edges)
            behind = {
                layer
                for node, at in self.edges
                for layer in _first(node.next_functions[at][0], number, ahead)
            }
            found["constants"] = sorted(behind)
            found["weighs"] = not any(node.name() in CRITERIA for node, _ in self.edges)
            found["cut"] = {
                "below": [list(_bits(cut[node])) for node in layers],
                "terms": [_first(node, number, cut) for node in terms],
            }
        return found

    @contextlib.contextmanager
    def cut_off(self, constants: bool, terms: Collection[int]) -> Iterator[None]:
        """Within it, the call that was looked at last gives nothing by way of what it takes for constants, or
        nothing by way of some terms, by number."""

        def cutting(at: int) -> Callable[[Any, Any], Any]:
            return lambda given, _: tuple(None if one == at else g for one, g in enumerate(given))

        def silent(given: Any) -> Any:
            return tuple(None if one is None else torch.zeros_like(one) for one in given)

        handles = [node.register_hook(cutting(at)) for node, at in (self.edges if constants else ())]
        handles += [
            node.register_prehook(silent) for number, node in self.numbered.items() if number in terms
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def versions(
        self, layers: Iterable[Any], owned: Mapping[int, list[tuple[int, int]]]
    ) -> list[tuple[int, int, int, int]]:
        """Of each parameter that some nodes use: how often it had moved when the first was made, and now."""
        used: dict[int, int] = {}
        for node in layers:
            for leaf in _leaves(node):
                age = _age(node)
                used[id(leaf)] = min(used.get(id(leaf), age), age)
        return [
            (*place, bisect_left(moves, age), len(moves))
            for leaf, age in used.items()
            for moves in [self.moved.get(leaf, [])]
            for place in owned.get(leaf, ())
        ]

    @staticmethod
    def uses(node: Any, owned: Mapping[int, list[tuple[int, int]]]) -> list[tuple[int, int]]:
        """The parameters that a node uses itself."""
        return [place for leaf in _leaves(node) for place in owned.get(id(leaf), ())]

    def stamped(self, node: Any, fresh: bool) -> int:
        """The number of a term, which it keeps, unless it is to have a ``fresh`` one of its own."""
        number: int = self.terms if fresh else node.metadata.setdefault(TERM, self.terms)
        self.terms += number == self.terms
        return number


def in_order(starts: Iterable[Any], following: Callable[[Any], list[Any]], most: int) -> list[Any]:
    """What can be come to, each before all that comes behind it; no more than about ``most``."""
    done: set[Any] = set()
    found: list[Any] = []
    waiting = [(start, False) for start in starts]
    while waiting and len(done) <= most:
        node, finished = waiting.pop()
        if finished:
            found.append(node)
        elif node not in done:
            done.add(node)
            waiting.append((node, True))
            waiting.extend((one, False) for one in following(node))
    return found[::-1]


def _leading_to(nodes: Sequence[Any], targets: Iterable[torch.Tensor]) -> list[Any]:
    """Those of some nodes, in order, through which a gradient gets to some tensors: no other one is run."""
    wanted = {id(one) for one in targets}
    leading = {one.grad_fn for one in targets if one.grad_fn is not None}
    for node in reversed(nodes):
        below = any(one in leading for one, _ in node.next_functions)
        if below or any(id(leaf) in wanted for leaf in _leaves(node)):
            leading.add(node)
    return [node for node in nodes if node in leading]


def _following(node: Any) -> list[Any]:
    """The nodes that come next towards the leaves, but for these."""
    return [one for one, _ in node.next_functions if one is not None and not hasattr(one, "variable")]


def _leaves(node: Any) -> Iterator[torch.Tensor]:
    """The leaves that come next."""
    return (one.variable for one, _ in node.next_functions if hasattr(one, "variable"))


def _ahead(nodes: Sequence[Any], number: Mapping[Any, int], without: Sequence[Edge] = ()) -> dict[Any, int]:
    """By node, the layers that come next towards the leaves, as the bits of a number."""
    ahead: dict[Any, int] = {}
    cut = set(without)
    for node in reversed(nodes):
        ahead[node] = 0
        for at, (one, _) in enumerate(node.next_functions):
            if one is not None and not hasattr(one, "variable") and (node, at) not in cut:
                ahead[node] |= 1 << number[one] if one in number else ahead.get(one, 0)
    return ahead


def _first(node: Any, number: Mapping[Any, int], ahead: Mapping[Any, int]) -> list[int]:
    """The layers that a gradient gets to first from a node on; itself, if it is one."""
    return [number[node]] if node in number else list(_bits(ahead.get(node, 0)))


def _age(node: Any) -> int:
    """How many nodes were made before this one, in the thread that made it."""
    count = getattr(node, "_sequence_nr", None)
    return count() if count is not None else 0


def _constants(node: Any) -> list[Edge]:
    """The edges of a node by which it depends on what it takes for a constant."""
    following = [one for one, _ in node.next_functions]
    if node.name() in CRITERIA and len(following) == 2 and None not in following:
        return [(node, 1)]
    if node.name() == "MulBackward0" and len(following) == 2 and None not in following:
        scores = [_is_score(one) for one in following]
        if scores.count(True) == 1:
            return [(node, scores.index(False))]
    return []


def _is_score(node: Any) -> bool:
    """Whether a node is the logarithm of a likelihood, or a sum of such, of what was drawn by it."""
    for _ in range(LONGEST):
        if SCORE in node.metadata:
            return True
        following = _following(node)
        if not following or node.name() not in THROUGH_SCORES | SCALES | TOTALS:
            return False
        if len(following) > 1:
            return node.name() not in SCALES and all(map(_is_score, following))
        (node,) = following
    return False


LONGEST = 50
"""Nodes that a likelihood goes through at most."""


def _predicts(node: Any) -> bool:
    """Whether a term holds a prediction against data, or that times parameters that weigh losses."""
    for _ in range(LONGEST):
        name, following = node.name(), [one for one, _ in node.next_functions if one is not None]
        if name in CRITERIA:
            return len(following) == 1
        if name in LIKELIHOODS:
            return True
        if name in SIZES and len(following) == 1:
            inner = following[0]
            behind = [one for one, _ in inner.next_functions if one is not None]
            return inner.name() in ("SubBackward0", "AddBackward0") and len(behind) == 1
        if name in SCALES and len(following) == 2:
            following = [one for one in following if not _of_parameters(one)]
        if len(following) != 1 or name not in SHAPES | SCALES | TOTALS:
            return False
        (node,) = following
    return False


def _of_parameters(node: Any) -> bool:
    """Whether a node is a function of one parameter and of nothing else."""
    for _ in range(LONGEST):
        if hasattr(node, "variable"):
            return True
        following = [one for one, _ in node.next_functions if one is not None]
        if len(node.next_functions) != 1 or len(following) != 1:
            return False
        (node,) = following
    return False


def watch_draws() -> None:
    """Let torch's distributions say which likelihoods are those of what was drawn."""
    waiting: list[Any] = [torch.distributions.Distribution]
    while waiting:
        kind = waiting.pop()
        waiting.extend(kind.__subclasses__())
        for name, noting in (("sample", _drawing), ("log_prob", _scoring)):
            if name in vars(kind) and not hasattr(vars(kind)[name], DRAWN):
                setattr(kind, name, noting(vars(kind)[name]))


def _drawing(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def sample(*args: Any, **kwargs: Any) -> Any:
        drawn = real(*args, **kwargs)
        if isinstance(drawn, torch.Tensor) and not drawn.requires_grad:
            setattr(drawn, DRAWN, True)
        return drawn

    setattr(sample, DRAWN, True)
    return sample


def _scoring(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def log_prob(self: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        score = real(self, value, *args, **kwargs)
        if hasattr(value, DRAWN) and isinstance(score, torch.Tensor) and score.grad_fn is not None:
            noted: dict[Any, Any] = score.grad_fn.metadata  # type: ignore[assignment]
            noted[SCORE] = True
        return score

    setattr(log_prob, DRAWN, True)
    return log_prob


def _terms(starts: Sequence[Any]) -> dict[Any, tuple[int, float | None]]:
    """The terms of a sum: how often each is added or subtracted, and by what it is multiplied."""
    counts = Counter(starts)
    scales: dict[Any, set[float | None]] = {start: {1.0} for start in starts}
    for node in in_order(starts, _summands, NODES):
        for one in _summands(node):
            counts[one] += counts[node]
            by = [_factor(node, at) for at, (other, _) in enumerate(node.next_functions) if other is one]
            scales.setdefault(one, set()).update(
                None if scale is None or factor is None else scale * factor
                for scale in scales[node]
                for factor in by
            )
    return {
        node: (count, scales[node].pop() if len(scales[node]) == 1 else None)
        for node, count in counts.items()
        if not _summands(node)
    }


def _summands(node: Any) -> list[Any]:
    """What a node adds up, if it does nothing else; nothing for a term."""
    name = node.name()
    following = _following(node)
    if len(following) < sum(one is not None for one, _ in node.next_functions):
        return []  # A leaf is added, or multiplied by.
    if name in SUMS or name in SHAPES:
        return following
    if name in SCALES and len(following) == 1:
        # A quotient is a multiple of what is divided: `3 / x`, which is computed as `3 * (1 / x)`, is none.
        quotient = name == "DivBackward0" and node.next_functions[0][0] is not following[0]
        return [] if quotient or following[0].name() == "ReciprocalBackward0" else following
    if name in TOTALS and any(one.name() in ("StackBackward0", "CatBackward0") for one in following):
        return following
    return []


def _factor(node: Any, at: int) -> float | None:
    """By what a sum multiplies one of its summands, or a multiple what it is one of; None: not known."""
    name = node.name()
    try:
        if name in SCALES:
            by = float(node._saved_self if at else node._saved_other)
            return 1 / by if name == "DivBackward0" else by
        if name.startswith("Mean"):
            return None
        sign = (
            -1.0 if name in DIFFERENCES or name == "NegBackward0" or (name == "SubBackward0" and at) else 1.0
        )
        return sign * float(getattr(node, "_saved_alpha", 1) if at or name in DIFFERENCES else 1)
    except (AttributeError, RuntimeError, TypeError, ValueError, ZeroDivisionError):
        return None  # A tensor of several numbers, or one that has been freed.


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
