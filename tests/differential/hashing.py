"""Holds the hashes of gradients against the gradients: equal hashes must mean equal bits.

A program and small mutations of it run in this process, each from the same seed. At every optimizer step
the hash and the bits of every gradient and parameter are noted, and what stands in the same place of two
versions is compared. Apart from that, nothing seen anywhere under one hash may ever have other bits:
the table of :class:`Tally` holds all programs of a run against each other.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import hashlib
import io
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from agreement import program
from choices import Choices, Seeded
from outcome import FILE
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._python_dispatch import _disable_current_modes

from gradfix.runtime.probe.operations import UNINITIALISED, Operation
from gradfix.runtime.probe.provenance import Provenance
from gradfix.runtime.probe.storages import tensors

Place = tuple[int, int, int, str]
"""The optimizer (by its first step), which of its steps, which of its parameters; gradient or value."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A tensor at a step."""

    hash: str | None
    bits: str


def bits(tensor: torch.Tensor) -> str:
    """A digest of a tensor's type, shape and elements; all NaN are one."""
    dense = tensor.detach()
    dense = dense.to_dense() if dense.layout != torch.strided else dense
    if dense.is_floating_point():
        dense = torch.where(dense.isnan(), torch.full_like(dense, torch.nan), dense)
    raw = dense.contiguous().view(-1).view(torch.uint8).numpy().tobytes() if dense.numel() else b""
    head = repr((dense.dtype, tuple(dense.shape))).encode()
    return hashlib.blake2b(head + raw, digest_size=16).hexdigest()


SECONDS = 5
"""Programs take milliseconds; a mutation may make one that does not end."""


class TooLong(BaseException):
    """The program does not end; no `except` of its own, nor of what watches it, is to stop this."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Stop a program that does not end by itself."""

    def stop(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Watching(Provenance):
    """Holds hashes against bits after every single operation, not at steps only."""

    def __init__(self) -> None:
        super().__init__()
        self.table: dict[str, str] = {}
        self.wrong: list[str] = []

    def wrote(self, operation: Operation, bound: list[Any], name: Any) -> None:
        """See the base class; then look at what was read and written."""
        super().wrote(operation, bound, name)
        self.look(operation, bound)

    def made(self, operation: Operation, result: Any, inputs: set[int], name: Any) -> None:
        """See the base class; then look at the results."""
        super().made(operation, result, inputs, name)
        if operation.name not in UNINITIALISED:
            self.look(operation, result)

    def look(self, operation: Operation, value: Any) -> None:
        for tensor in tensors(value):
            found = bits(tensor)
            if self.table.setdefault(self.value(tensor), found) != found:
                self.wrong.append(operation.name)


def observe(source: str, provenance: Provenance | None = None) -> tuple[dict[Place, Seen], str | None]:
    """Run a program: what its optimizers found at their steps, up to the first error of any kind, and
    why no hash could be trusted, if so.

    Raises:
        TooLong: the program does not end.
    """
    provenance = provenance or Provenance()
    seen: dict[Place, Seen] = {}
    numbers: dict[int, int] = {}
    turns: Counter[int] = Counter()
    kept: list[Any] = []

    def note(optimizer: torch.optim.Optimizer) -> None:
        kept.append(optimizer)
        number = numbers.setdefault(id(optimizer), len(numbers))
        owned = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        with _disable_current_modes(), torch.no_grad():
            for position, parameter in enumerate(owned):
                for what, tensor in (("gradient", parameter.grad), ("value", parameter)):
                    if tensor is not None:
                        place = (number, turns[number], position, what)
                        seen[place] = Seen(provenance.of(tensor), bits(tensor))
        turns[number] += 1

    def before(optimizer: torch.optim.Optimizer, args: Any, keywords: Any) -> Any:
        closure = keywords.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            note(optimizer)
            return None

        def first() -> Any:
            result = closure()
            note(optimizer)
            return result

        return (args[0], first), {}

    hook = register_optimizer_step_pre_hook(before)
    torch.manual_seed(1)
    try:
        code = compile(source, FILE, "exec")
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), provenance:
            warnings.simplefilter("ignore")
            with limited():
                exec(code, {"__name__": "__main__"})
    except Exception:
        pass  # what was seen before counts
    finally:
        hook.remove()
        torch.set_grad_enabled(True)
    return seen, provenance.lost


@dataclass
class Tally:
    """The result of many comparisons."""

    programs: int = 0
    pairs: Counter[str] = field(default_factory=Counter)
    """Gradients in the same place of two versions: ``proved`` (equal hashes, equal bits), ``missed``
    (equal bits only), ``changed`` (neither), ``wrong`` (equal hashes only)."""
    values: Counter[str] = field(default_factory=Counter)
    """The same of parameters."""
    repeated: int = 0
    """How often a hash was seen again, anywhere in this part."""
    lost: Counter[str] = field(default_factory=Counter)
    """Why whole runs had no hashes."""
    wrong: list[str] = field(default_factory=list)
    """Where equal hashes stood for different bits: the programs."""
    missed: list[str] = field(default_factory=list)
    """Some pairs of programs whose equal gradients no hash has proved."""
    table: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def proved(self) -> float:
        """The share of equal gradients that hashes prove equal."""
        equal = self.pairs["proved"] + self.pairs["missed"]
        return self.pairs["proved"] / equal if equal else 1.0

    def add(self, source: str, seen: dict[Place, Seen], lost: str | None) -> None:
        """Count one run, and hold it against everything that was seen before."""
        self.programs += 1
        if lost is not None:
            self.lost[lost] += 1
        for one in seen.values():
            if one.hash is None:
                continue
            self.repeated += one.hash in self.table
            if self.table.setdefault(one.hash, one.bits) != one.bits:
                self.wrong.append(source)

    def compare(self, pair: tuple[str, str], one: dict[Place, Seen], other: dict[Place, Seen]) -> None:
        """Compare what stands in the same places."""
        found: Counter[str] = Counter()
        for place in one.keys() & other.keys():
            a, b = one[place], other[place]
            hashed = a.hash is not None and a.hash == b.hash
            equal = a.bits == b.bits
            word = ("proved" if hashed else "missed") if equal else ("wrong" if hashed else "changed")
            (self.pairs if place[3] == "gradient" else self.values)[word] += 1
            found[word] += 1
        if found["wrong"]:
            self.wrong.append("\n# against\n".join(pair))
        if found["missed"] and len(self.missed) < 20:
            self.missed.append("\n# against\n".join(pair))

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally; its table stays its own, or the memory would not do."""
        self.programs += other.programs
        self.pairs += other.pairs
        self.values += other.values
        self.repeated += other.repeated
        self.lost += other.lost
        self.wrong += other.wrong
        self.missed += other.missed


def compare_many(seed: object, numbers: range, mutants: int = 4) -> Tally:
    """Run the programs of these numbers and mutations of each, and compare every two versions."""
    tally = Tally()
    for number in numbers:
        source, _ = program(seed, number)
        choices = Choices(Seeded(f"mutants of {seed}.{number}"))
        try:
            original, lost = observe(source)
        except TooLong:
            continue
        tally.add(source, original, lost)
        versions = [(source, original)]
        for _ in range(mutants if original else 0):
            changed = mutated(source, choices)
            try:
                seen, lost = observe(changed)
            except TooLong:
                continue
            tally.add(changed, seen, lost)
            for text, earlier in versions:
                tally.compare((text, changed), earlier, seen)
            versions.append((changed, seen))
    return tally


# ---------------------------------------------------------------------- mutations


def mutated(source: str, choices: Choices) -> str:
    """The program with one to three small changes, of the kinds that fixes and mistakes are made of."""
    tree = ast.parse(source)
    for _ in range(1 + choices.below(3)):
        edits = [*KINDS[choices.below(len(KINDS))](tree)]
        if edits:
            edits[choices.below(len(edits))]()
    return ast.unparse(ast.fix_missing_locations(tree))


Edits = Iterator[Callable[[], None]]


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.For | ast.While | ast.FunctionDef | ast.If | ast.With):
            yield node.body


def _calls(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


def _swaps(tree: ast.Module) -> Edits:
    """Two statements change places."""
    for body in _bodies(tree):
        for number in range(len(body) - 1):

            def swap(body: list[ast.stmt] = body, number: int = number) -> None:
                body[number], body[number + 1] = body[number + 1], body[number]

            yield swap


def _deletions(tree: ast.Module) -> Edits:
    """A statement goes."""
    for body in _bodies(tree):
        for number in range(len(body) if len(body) > 1 else 0):
            yield lambda body=body, number=number: body.__delitem__(number)


def _repetitions(tree: ast.Module) -> Edits:
    """A statement runs twice."""
    for body in _bodies(tree):
        for number in range(len(body)):
            yield lambda body=body, number=number: body.insert(number, copy.deepcopy(body[number]))


def _statement(text: str) -> Callable[[ast.Module], Edits]:
    """A statement more."""

    def insertions(tree: ast.Module) -> Edits:
        for body in _bodies(tree):
            for number in range(len(body) + 1):
                yield lambda body=body, number=number: body.insert(number, ast.parse(text).body[0])

    return insertions


def _keyword(call: str, name: str) -> Callable[[ast.Module], Edits]:
    """A flag of a call is set, or taken away."""

    def toggles(tree: ast.Module) -> Edits:
        for node in _calls(tree, call):

            def toggle(node: ast.Call = node) -> None:
                kept = [keyword for keyword in node.keywords if keyword.arg != name]
                if len(kept) == len(node.keywords):
                    kept.append(ast.keyword(name, ast.Constant(call == "backward")))
                node.keywords = kept

            yield toggle

    return toggles


def _wrapped(method: str) -> Callable[[ast.Module], Edits]:
    """An argument of a call is passed on by a method of it: ``D(fake)`` becomes ``D(fake.detach())``."""

    def wraps(tree: ast.Module) -> Edits:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for number, argument in enumerate(node.args):
                    if isinstance(argument, ast.Name):

                        def wrap(node: ast.Call = node, number: int = number) -> None:
                            called = ast.Attribute(node.args[number], method, ast.Load())
                            node.args[number] = ast.Call(called, [], [])

                        yield wrap

    return wraps


def _numbers(tree: ast.Module) -> Edits:
    """A constant becomes another."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is float:
            yield lambda node=node: setattr(node, "value", node.value * 1.5)


KINDS: tuple[Callable[[ast.Module], Edits], ...] = (
    _swaps,
    _deletions,
    _repetitions,
    _statement("torch.randn(3)"),
    _statement("gradfix_spare = torch.zeros(2)"),
    _keyword("backward", "retain_graph"),
    _keyword("zero_grad", "set_to_none"),
    _wrapped("detach"),
    _wrapped("clone"),
    _numbers,
)
