"""Which lines of a file can matter to gradients: a text search before anything is interpreted.

Interpretation asks these questions at every loop and every function, so they must cost nothing: the
lines with a relevant call are found once by searching for its name, and a statement is relevant if one of
them lies within it. Calls of functions that hold relevant lines are relevant in turn.
"""

from __future__ import annotations

import ast
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate

from gradfix.core.syntax import LOOPS, children, walk

MOVES = ("backward", "manual_backward", "step", "zero_grad")
"""Calls that move gradients or parameters."""
SHAPES = (
    *("detach", "detach_", "no_grad", "requires_grad", "requires_grad_", "retain_graph"),
    *("inference_mode", "set_grad_enabled", "clone"),
)
"""What shapes the graph: a condition around it is worth both outcomes."""
DIFFERENTIATES = ("backward", "manual_backward", "grad")
"""Where a backward may be called; whether it is one, and not a comment, the syntax tree says."""
CALLED = re.compile(r"\s*\(")
NAME = re.compile(r"\w+")
UNPACKED = re.compile(r"[^=#]*,[^=#]*=\s*(\w[\w.\[\]]*\.)?")
"""What stands before a call on a line that unpacks what it gives."""
ASSIGNED = re.compile(r"\s*=(?!=)")

SEARCHES = 100
"""From so many names on, to search the text for each takes longer than to find all that it holds."""


FunctionDefinition = ast.FunctionDef | ast.AsyncFunctionDef


class Relevance:
    """The relevant lines of one file."""

    def __init__(
        self, tree: ast.Module, text: str, offset: int = 0, trained: Iterable[FunctionDefinition] = ()
    ) -> None:
        """``offset`` is what has been added to the tree's line numbers; what the ``trained`` methods return
        may be differentiated by a framework."""
        self.tree = tree
        self._offset = offset
        self._joined: set[str] = set()
        self._callers: set[str] = set()
        self.cleared_elsewhere: Callable[[], bool] = lambda: True
        """Whether a module that imports the file clears gradients, as far as anybody has looked."""
        self.functions: list[FunctionDefinition] = []
        self.classes: dict[FunctionDefinition, ast.ClassDef] = {}
        self._generators: dict[ast.AST, bool] = {}
        self._inner: dict[ast.AST, list[ast.stmt]] = {}
        """The relevant loops in a loop, as long as no module is joined."""
        self._names: dict[ast.AST, dict[str, None]] = {}
        """What each loop may look up, see :meth:`names`, in the order in which it stands there."""
        self._started: dict[ast.AST, list[ast.Call]] = {}
        self._called_names: dict[ast.AST | None, dict[str, None]] = {}
        """What the functions in each function, or in the module, mention."""
        self._collect(tree.body, None)
        self._text = text
        self._searched: dict[str, list[int]] = {}
        """Where the names stand that somebody has asked for."""
        self._places: Mapping[str, list[int]] | None = None
        """Where each name stands, as soon as many were asked for."""
        if "\r" in text:
            self._starts = [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", text))]
        else:
            self._starts = [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]
        self.used: set[str] = set()
        """Names of functions that differentiate and are mentioned outside their definition."""
        self._yields = "yield" in text
        self.switches_mode = "set_grad_enabled" in text
        """Whether the mode in which a function is called cannot be taken for granted."""
        self.graph = self._lines(at for word in SHAPES for at in self._mentions(word))
        self.trained = frozenset(trained)
        returns = (n.lineno for method in self.trained for n in walk(method) if isinstance(n, ast.Return))
        self.backwards = sorted({*self._spread(self._calls(tree)), *returns})
        self.direct: list[int] = self._moves() if self.backwards else []

    def _moves(self) -> list[int]:
        """The lines on which gradients or parameters move, and those that lead there."""
        moves = [at for word in MOVES for at in self._mentions(word) if self._called(at, word)]
        moves = [at for at in moves if not self._is_unpacked(at)]
        moves += [at for at in self._mentions("grad") if self._text[at - 1] == "." and at]
        return self._spread(self._lines(moves))

    def trains_all_the_same(self) -> bool:
        """Whether a file that differentiates nothing clears gradients and steps.

        Where it does so, it is looked at as if it differentiated there.
        """
        if all(any(self._called(at, word) for at in self._mentions(word)) for word in ("step", "zero_grad")):
            self.backwards = self.direct = self._moves()
        return bool(self.backwards)

    def _collect(self, body: Iterable[ast.stmt], cls: ast.ClassDef | None) -> None:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.append(statement)
                if cls is not None:
                    self.classes[statement] = cls
                self._collect(statement.body, None)
            elif isinstance(statement, ast.ClassDef):
                self._collect(statement.body, statement)
            elif SUITES[type(statement)]:
                self._collect(suites(statement), cls)

    def _mentions(self, name: str) -> Sequence[int]:
        """Where ``name`` stands in the text."""
        if self._places is not None:
            return self._places.get(name, ())
        known = self._searched.get(name)
        if known is None:
            if len(self._searched) == SEARCHES:
                self._places = _places(self._text)
                return self._mentions(name)
            known = self._searched[name] = list(_search(self._text, name))
        return known

    def _called(self, at: int, name: str) -> bool:
        return CALLED.match(self._text, at + len(name)) is not None

    def _is_unpacked(self, at: int) -> bool:
        """Whether what the call at a position gives is unpacked, as an environment's ``step`` is: an
        optimizer's gives one loss, or nothing."""
        return UNPACKED.fullmatch(self._text, self._text.rfind("\n", 0, at) + 1, at) is not None

    def _defined(self, at: int) -> bool:
        """Whether the name at a position is that of a function that is being defined."""
        return self._text.endswith("def ", 0, at)

    def _lines(self, positions: Iterable[int]) -> list[int]:
        return sorted({self._line(position) for position in positions})

    def _line(self, position: int) -> int:
        return bisect_right(self._starts, position) + self._offset

    def _calls(self, tree: ast.Module) -> list[int]:
        """The lines on which something is differentiated."""
        candidates = self._lines(
            at
            for word in DIFFERENTIATES
            for at in self._mentions(word)
            if self._called(at, word) and not self._defined(at)
        )
        found: set[int] = set()
        work: list[ast.AST] = list(tree.body)
        while work:
            node = work.pop()
            # What has no place of its own, such as a clause of a comprehension, may hold anything.
            if hasattr(node, "lineno") and not _within(node, candidates):
                continue
            if isinstance(node, ast.Call) and is_differentiation(node.func):
                found.add(node.func.end_lineno or node.lineno)
            work.extend(children(node))
        return sorted(found)

    def _spread(self, found: list[int]) -> list[int]:
        """The lines found, and those that mention a function that holds such lines, and so on."""
        known: set[str] = {"__init__", "__call__"}
        while True:
            names = {f.name for f in self.functions if f.name not in known and _within(f, found)}
            if not names:
                return found
            known |= names
            if "run" in names:
                names.add("start")  # of a thread or process
            relevant = set(found)
            for name in names:
                uses = [at for at in self._mentions(name) if not self._defined(at)]
                relevant.update(map(self._line, uses))
                if uses:
                    self.used.add(name)
            found = sorted(relevant)

    def join(self, path: str, other: Relevance) -> None:
        """Take in the lines of an imported module, which have numbers of their own."""
        if path in self._joined:
            return
        self._joined.add(path)
        self._take_in(other, other.direct, other.backwards)

    def join_caller(self, path: str, other: Relevance) -> bool:
        """Take in the lines of a module that calls this one: those that mention what differentiates here.

        Whether it mentions a function or method that does, and not only a class.
        """
        names = {f.name for f in self.functions if self.differentiates(f)} - {"__init__", "__call__"}
        called = {other._line(at) for name in names for at in other._mentions(name)}
        if path not in self._callers:
            self._callers.add(path)
            owners = {self.classes[f].name for f in self.functions if f in self.classes and f.name in names}
            made = {other._line(at) for name in owners for at in other._mentions(name)}
            found = (
                other._spread(sorted({*lines, *called, *made})) for lines in (other.direct, other.backwards)
            )
            self._take_in(other, *found)
        return bool(called)

    def _take_in(self, other: Relevance, direct: list[int], backwards: list[int]) -> None:
        self._inner.clear()
        self.direct = sorted({*self.direct, *direct})
        self.backwards = sorted({*self.backwards, *backwards})
        self.graph = sorted({*self.graph, *other.graph})

    def mention(self, name: str, definition: ast.AST) -> None:
        """Make the lines relevant that mention an imported function which is."""
        self._inner.clear()
        for lines in ("direct", "backwards"):
            known: list[int] = getattr(self, lines)
            if _within(definition, known):
                found = self._lines(at for at in self._mentions(name) if not self._defined(at))
                setattr(self, lines, sorted({*known, *found}))

    def steps_on(self, name: str) -> bool:
        """Whether the file calls ``step`` on something of that name."""
        ending = f"{name}."
        return any(
            self._text.endswith(ending, 0, at)
            and not NAME.match(self._text, at - len(ending) - 1, at - len(ending))
            and self._called(at, "step")
            for at in self._mentions("step")
        )

    def touches(self, node: ast.AST) -> bool:
        """Whether a statement holds a call that moves gradients, directly or through the project."""
        return _within(node, self.direct)

    def differentiates(self, node: ast.AST) -> bool:
        """Whether a statement holds a backward, directly or through the project."""
        return _within(node, self.backwards)

    def shapes(self, node: ast.AST) -> bool:
        """Whether a statement holds something that cuts or keeps graphs."""
        return _within(node, self.graph)

    def evaluates(self, node: ast.AST) -> bool:
        """Whether a statement puts something into evaluation mode, directly or through the project."""
        return _within(node, self._evaluating)

    @cached_property
    def _evaluating(self) -> list[int]:
        called = (
            at for at in self._mentions("eval") if self._text[at - 1] == "." and self._called(at, "eval")
        )
        lines = self._lines(called)
        return self._spread(lines) if lines else []

    def nests(self, loop: ast.For | ast.While | ast.AsyncFor, but: Container[ast.AST]) -> bool:
        """Whether a loop holds another relevant loop, ``but`` those."""
        inner = self._inner.get(loop)
        if inner is None:
            inner = self._inner[loop] = []
            work: list[ast.stmt] = list(loop.body)
            while work:
                statement = work.pop()
                if isinstance(statement, LOOPS) and self.differentiates(statement):
                    inner.append(statement)
                work += suites(statement)
        return any(other not in but for other in inner)

    def switched(self, site: ast.AST) -> Iterator[ast.Call]:
        """The backward calls for which a condition sets a switch.

        ``else: warm_up = True`` decides about what stands in ``if warm_up:``.
        """
        if isinstance(site, ast.If) and self._asked:
            for statement in (*site.body, *site.orelse):
                if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                    for target in statement.targets:
                        yield from self._asked.get(ast.unparse(target), ())

    def started(self, site: ast.AST) -> Sequence[ast.Call]:
        """The backward calls of the classes that a condition picks: ``elif new: agent = AgentB()``.

        Also where a method of the class makes the object: ``agents.AgentB.from_config(config)``.
        """
        if not (isinstance(site, ast.If) and self._trainers):
            return ()
        if site not in self._started:
            calls = [
                node
                for statement in (*site.body, *site.orelse)
                for node in walk(statement)
                if isinstance(node, ast.Call)
            ]
            names = [
                getattr(made, "id", "") or getattr(made, "attr", "")
                for call in calls
                for made in (call.func, getattr(call.func, "value", None))
            ]
            self._started[site] = [call for name in names for call in self._trainers.get(name, ())]
        return self._started[site]

    @cached_property
    def _trainers(self) -> Mapping[str, list[ast.Call]]:
        """The backward calls of the classes of the file, by their names."""
        classes = (s for s in self.tree.body if isinstance(s, ast.ClassDef) and self.differentiates(s))
        return {cls.name: list(backwards_in([cls])) for cls in classes}

    @cached_property
    def modules(self) -> Container[str]:
        """The names of the modules that the file imports."""
        imports = (statement for statement in self.tree.body if isinstance(statement, ast.Import))
        return {(a.asname or a.name).split(".")[0] for statement in imports for a in statement.names}

    @cached_property
    def _asked(self) -> Mapping[str, set[ast.Call]]:
        """The backward calls that an ``if`` on a variable decides about, by the name of the variable."""
        found: dict[str, set[ast.Call]] = {}
        for node in walk(self.tree):
            if isinstance(node, ast.If) and self.differentiates(node):
                calls = set(backwards_in([*node.body, *node.orelse]))
                for name in variables_of([node.test]) if calls else ():
                    found.setdefault(name, set()).update(calls)
        return found

    def mentioned(self, names: list[str]) -> set[str]:
        """Those names that occur in the file other than in their own definition."""
        return {name for name in names if name in self.used}

    def read_outside(self, names: set[str], statement: ast.AST) -> bool:
        """Whether any of ``names`` is mentioned outside ``statement``, other than to be assigned."""
        if not names:
            return False
        if statement.lineno <= 0:  # type: ignore[attr-defined]
            return True  # it stands in an imported module, whose text is not at hand
        start = self._starts[statement.lineno - 1]  # type: ignore[attr-defined]
        end = self._starts[min(statement.end_lineno, len(self._starts) - 1)]  # type: ignore[attr-defined]
        return any(
            not start <= at < end and ASSIGNED.match(self._text, at + len(name)) is None
            for name in names
            for at in self._mentions(name)
        )

    def quiet_around(self, loop: ast.For | ast.While | ast.AsyncFor) -> bool:
        """Whether nothing in a loop but one inner loop moves gradients or shapes graphs.

        A second iteration of such a loop (over epochs) shows nothing that the inner loop's iterations do not.
        Of two inner loops, the one takes up what the other has left in the iteration before.
        """
        inner = 0
        for statement in loop.body:
            if isinstance(statement, LOOPS):
                inner += self.touches(statement)
            elif self.touches(statement) or self.shapes(statement):
                return False
        return inner < 2

    def names(self, loop: ast.AST, home: ast.AST | None) -> Iterable[str]:
        """The names that an iteration of a loop may look up in the frame of ``home``, a function or the
        module.

        They stand in the loop, or in a function or lambda of ``home``, which it may call.
        """
        known = self._names.get(loop)
        if known is None:
            if loop.lineno > 0:  # type: ignore[attr-defined]
                known = self._names_within(loop) | self._names_of_functions(home)
            else:  # It stands in an imported module, whose text is not at hand.
                known = dict.fromkeys(n.id for n in walk(loop) if isinstance(n, ast.Name))
            self._names[loop] = known
        return known

    def _names_of_functions(self, home: ast.AST | None) -> dict[str, None]:
        known = self._called_names.get(home)
        if known is None:
            known = self._called_names[home] = {}
            first = home.lineno if home is not None else 0  # type: ignore[attr-defined]
            last = home.end_lineno if home is not None else math.inf  # type: ignore[attr-defined]
            at = bisect_right(self._by_line, first, key=lambda part: part[0])
            while at < len(self._by_line) and self._by_line[at][0] <= last:
                line, end = self._by_line[at]
                known |= dict.fromkeys(NAME.findall(self._text, self._starts[line - 1], self._end(end)))
                at = bisect_right(self._by_line, end, key=lambda part: part[0])
        return known

    @cached_property
    def _by_line(self) -> list[tuple[int, int]]:
        """Where the functions of the file begin and end, and the lines that hold a lambda."""
        parts = [(f.lineno, f.end_lineno or f.lineno) for f in self.functions]
        return sorted([*parts, *((line, line) for line in self._lines(self._mentions("lambda")))])

    def _names_within(self, node: ast.AST) -> dict[str, None]:
        """The names on the lines of a node, each once."""
        start = self._starts[node.lineno - 1]  # type: ignore[attr-defined]
        return dict.fromkeys(NAME.findall(self._text, start, self._end(node.end_lineno)))  # type: ignore[attr-defined]

    def _end(self, line: int) -> int:
        """Where a line ends."""
        return self._starts[line] if line < len(self._starts) else len(self._text)

    def generator(self, definition: ast.AST) -> bool:
        """Whether a function yields."""
        known = self._generators.get(definition)
        if known is None:
            some = self._yields or definition.lineno <= 0  # type: ignore[attr-defined]
            known = self._generators[definition] = some and _yields(getattr(definition, "body", []))
        return known


CLAUSES = ("handlers", "cases")
"""The fields of a statement whose elements have a suite each."""
SUITES = {
    kind: tuple(name for name in ("body", "orelse", "finalbody", *CLAUSES) if name in kind._fields)
    for kind in ast.stmt.__subclasses__()
}
"""The fields of each kind of statement that hold statements; of most kinds, none do."""


def suites(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of the suites of a compound statement."""
    for name in SUITES[type(statement)]:
        if name in CLAUSES:
            for clause in getattr(statement, name):
                yield from clause.body
        else:
            yield from getattr(statement, name)


def backwards_in(block: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """The calls of ``backward`` in a block."""
    for statement in block:
        yield from _backwards(statement)


@lru_cache(maxsize=4096)
def _backwards(statement: ast.AST) -> tuple[ast.Call, ...]:
    return tuple(
        node
        for node in walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
    )


def variables_of(expressions: Iterable[ast.AST]) -> Iterator[str]:
    """The names that stand in expressions, ``self.x`` being one too."""
    for expression in expressions:
        for node in walk(expression):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"


def _places(text: str) -> Mapping[str, list[int]]:
    """Where each name stands in a text."""
    found: dict[str, list[int]] = {}
    for match in NAME.finditer(text):
        found.setdefault(match[0], []).append(match.start())
    return found


def _search(text: str, name: str) -> Iterator[int]:
    """Where ``name`` stands in a text, and not a longer name that holds it."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (at and NAME.match(text, at - 1, at)) and not NAME.match(text, end, end + 1):
            yield at
        at = text.find(name, end)


def _within(node: ast.AST, lines: list[int]) -> bool:
    at = bisect_left(lines, node.lineno)  # type: ignore[attr-defined]
    return at < len(lines) and lines[at] <= node.end_lineno  # type: ignore[attr-defined]


def is_differentiation(function: ast.expr) -> bool:
    """Whether a call of this is one that differentiates: ``loss.backward``, ``autograd.grad``."""
    if isinstance(function, ast.Attribute):
        if function.attr == "grad":
            holder = function.value
            return getattr(holder, "attr", None) == "autograd" or getattr(holder, "id", None) == "autograd"
        return function.attr in ("backward", "manual_backward")
    return isinstance(function, ast.Name) and function.id in ("grad", "backward")


def _yields(body: list[ast.stmt]) -> bool:
    work: list[ast.AST] = list(body)
    while work:
        node = work.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        work.extend(children(node))
    return False
