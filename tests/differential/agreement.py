"""Compares the model with PyTorch on many generated programs, and shrinks what they disagree on."""

from __future__ import annotations

import ast
import copy
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from choices import Choices, Seeded
from model import predict
from outcome import Verdict, compare
from programs import Features, generate
from reality import Unsuitable, run


def judge(source: str, *, exact: bool = True) -> Verdict | None:
    """Whether the model agrees with torch about one program; None: it is no program to compare on."""
    try:
        real = run(source)
    except (Unsuitable, SyntaxError):
        return None
    try:
        prediction = predict(source, exact=exact)
    except Exception as crash:
        where = traceback.extract_tb(crash.__traceback__)[-1]
        place = f"{type(crash).__name__} in {where.name}"
        return Verdict("differs", f"crash: {place}", f"{crash} at {where.filename}:{where.lineno}")
    return compare(real, prediction, exact=exact)


@dataclass
class Tally:
    """The result of many comparisons."""

    programs: int = 0
    unsuitable: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    differing: list[tuple[str, Verdict, str, bool]] = field(default_factory=list)
    """The seed, the verdict, the program and whether its loops are exact."""

    def add(self, seed: str, source: str, verdict: Verdict | None, exact: bool) -> None:
        """Count one program."""
        self.programs += 1
        if verdict is None:
            self.unsuitable += 1
            return
        self.kinds[verdict.kind] += 1
        if verdict.kind != "agrees":
            self.words[f"{verdict.kind}: {verdict.what}"] += 1
        if verdict.kind == "differs":
            self.differing.append((seed, verdict, source, exact))

    def merge(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.programs += other.programs
        self.unsuitable += other.unsuitable
        self.kinds += other.kinds
        self.words += other.words
        self.differing += other.differing

    @property
    def agreement(self) -> float:
        """The share of agreement among the programs about which the model says something."""
        answered = self.kinds["agrees"] + self.kinds["differs"]
        return self.kinds["agrees"] / answered if answered else 1.0

    @property
    def abstention(self) -> float:
        """The share of programs about which the model leaves something open."""
        compared = self.programs - self.unsuitable
        return self.kinds["abstains"] / compared if compared else 0.0


UNKNOWN_SHARE = 5
"""One program in so many has loops of unknown length."""


def program(seed: object, number: int) -> tuple[str, bool]:
    """The program of a number, and whether the model can follow its loops pass for pass."""
    exact = number % UNKNOWN_SHARE != UNKNOWN_SHARE - 1
    return generate(Choices(Seeded(f"{seed}.{number}")), Features(not exact)), exact


def compare_many(seed: object, numbers: range) -> Tally:
    """Compare on the programs of these numbers."""
    tally = Tally()
    for number in numbers:
        source, exact = program(seed, number)
        tally.add(f"{seed}.{number}", source, judge(source, exact=exact), exact)
    return tally


# ---------------------------------------------------------------------- shrinking

LOADERS = ("for _ in range(4)", "torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2)")


def shrink(source: str, *, exact: bool = True, same: Callable[[Verdict], bool] | None = None) -> str:
    """A smaller program on which the two differ in the same way."""
    first = judge(source, exact=exact)
    if first is None or first.kind != "differs":
        return source
    keep = same or (lambda verdict: verdict.what == first.what)

    # The data must stay long where the model cannot know how long it is.
    fixed = [part for part in LOADERS if not exact and part in source]

    def differs(text: str) -> bool:
        if any(part not in text for part in fixed) or text.count("while ") > text.count(" += 1\n"):
            return False
        try:
            verdict = judge(text, exact=exact)
        except Exception:
            return False
        return verdict is not None and verdict.kind == "differs" and keep(verdict)

    best = ast.unparse(ast.parse(source))
    if not differs(best):
        return source
    progress = True
    while progress:
        progress = False
        at = 0
        while True:
            candidate = _edit(best, at)
            if candidate is None:
                break
            if candidate and len(candidate) < len(best) and differs(candidate):
                best, progress = candidate, True
            else:
                at += 1
    return best


def _edit(source: str, number: int) -> str | None:
    """The program after the ``number``-th simplification: "" if it changes nothing, None after the last."""
    tree = ast.parse(source)
    for at, apply in enumerate(_edits(tree)):
        if at == number:
            apply()
            try:
                return ast.unparse(ast.fix_missing_locations(tree))
            except Exception:
                return ""
    return None


def _edits(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """Every simplification of a tree, those that remove most first."""
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            suite = getattr(node, name, None)
            if not isinstance(suite, list):
                continue
            for statement in list(suite):
                yield lambda s=suite, x=statement: _replace(s, x, [])
                inner = getattr(statement, "body", None)
                if isinstance(inner, list) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                    yield lambda s=suite, x=statement, b=inner: _replace(s, x, b)
                if isinstance(statement, ast.If) and statement.orelse:
                    yield lambda s=suite, x=statement: _replace(s, x, x.orelse)
                    yield lambda x=statement: x.orelse.clear()
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and not isinstance(node, (ast.Attribute, ast.keyword)):
                for smaller in _smaller(value):
                    yield lambda n=node, k=name, v=smaller: setattr(n, k, v)
            elif isinstance(value, list):
                for position, item in enumerate(value):
                    if not isinstance(item, (ast.expr, ast.keyword)):
                        continue
                    if name in ("args", "keywords", "elts"):
                        yield lambda v=value, p=position: v.pop(p)
                    if isinstance(item, ast.expr):
                        for smaller in _smaller(item):
                            yield lambda v=value, p=position, s=smaller: v.__setitem__(p, s)


def _smaller(node: ast.expr) -> list[ast.expr]:
    """Parts of an expression that may stand for it."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Call):
        found += node.args
        if isinstance(node.func, ast.Attribute):
            found.append(node.func.value)
    elif isinstance(node, ast.BinOp):
        found += [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        found.append(node.operand)
    elif isinstance(node, (ast.Subscript, ast.Attribute)):
        found.append(node.value)
    elif isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Load):
        found += node.elts
    elif isinstance(node, ast.IfExp):
        found += [node.body, node.orelse]
    elif isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 1:
        found.append(ast.Constant(node.value - 1))
    return [copy.deepcopy(f) for f in found if not isinstance(f, ast.Starred)]


def _replace(suite: list[ast.stmt], statement: ast.stmt, by: list[ast.stmt]) -> None:
    at = suite.index(statement)
    suite[at : at + 1] = by
    if not suite:
        suite.append(ast.Pass())
