"""A whole program as the model saw it, and the questions that codemods ask of it.

A file is run from its top, then every function and method that differentiates something and that nothing
in the file called, with unknown arguments. Where a condition could not be decided, the run is repeated
with the other outcome. A mistake is reported only if it does not depend on such a choice: see
:meth:`EntryPoint.certain_observations`.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
from collections import Counter, abc
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from gradfix.autograd import callers, implicit_loops, imports
from gradfix.autograd.arguments import Argument, Call
from gradfix.autograd.dependence import reaches_events, sets_only
from gradfix.autograd.graph import Backward, InPlaceChange, OptimizerState, Step, ZeroGrad
from gradfix.autograd.imports import LocalModule
from gradfix.autograd.interpreter.contexts import exhaust
from gradfix.autograd.interpreter.loops import carried, values_by_path
from gradfix.autograd.open_world import assume, is_followed
from gradfix.autograd.parameters import set_mode
from gradfix.autograd.relevance import FunctionDefinition, Relevance, backwards_in, suites
from gradfix.autograd.run import (
    Alternative,
    BudgetExceeded,
    Exited,
    Impossible,
    Run,
    Scenario,
    Stopped,
    Uncaught,
)
from gradfix.autograd.semantics.functions import MANY_CALLS, call_function, instantiate, passed
from gradfix.autograd.symbols import Role, World
from gradfix.autograd.trace_queries import steps_using
from gradfix.autograd.unbound import CONSTRUCTORS
from gradfix.autograd.values import (
    Class,
    Const,
    Defining,
    Definitions,
    Frame,
    Function,
    ImportedName,
    Instance,
    Mapping,
    Module,
    Optimizer,
    PendingGenerator,
    Sequence,
    StaticOrClassMethod,
    Tensor,
    Unknown,
    Value,
    graphless_value,
    graphs_in,
)
from gradfix.core.segments import Lines
from gradfix.core.span import Span
from gradfix.core.syntax import children, walk

BUDGET = 40_000
"""Statements that one run may execute; far beyond what a training script takes (a few thousand)."""
BUDGET_PER_LINE = 8
"""... or as many for each line of the file, where that is more."""
FLIPS = 12
"""How many undecided conditions are tried the other way."""
HIDDEN_RUNS = 3
"""How many runs are added only to reach a backward that no other run has reached (see :func:`_hidden`)."""
SCRIPTS = 4
"""How many of the scripts that import a file are run."""
SCRIPT_FUNCTIONS = 4
"""How many functions of these scripts are called, if no script trains anything by itself."""
SCRIPT_STATEMENTS = 40_000
"""Statements that all runs through such scripts may execute together."""
FILE_STATEMENTS = 100_000
"""Statements that all other runs of a file may execute together."""
FILE_STATEMENTS_PER_LINE = 40
"""... or as many for each line of the file, where that is more."""
REVISED_GUESSES = 4
"""How many guesses about setup conditions are revised because they only led to an exception."""
CALLS = 3
"""How many times in a row a method is called that an outside caller calls once for each batch."""

Found = TypeVar("Found")

EntryPointKey = tuple[str, str]
"""An entry point, by the names of its class, if it is a method's, and of its function."""


class Elsewhere(Exception):
    """The node in question is not in this file, but in a module that it imports."""


@dataclass(eq=False)
class EntryPoint:
    """An entry point of the file, with the runs that start there; the first is the main one."""

    name: str
    node: ast.AST
    runs: list[Run] = field(default_factory=list)
    varying: dict[ast.AST, bool] = field(default_factory=dict)
    """Undecided conditions, with whether their answer may differ from iteration to iteration."""
    pending: list[Callable[[], Run]] = field(default_factory=list)
    """Further runs, each with one condition decided the other way: made only when a codemod needs them."""
    with_default_options: Callable[[], EntryPoint] | None = None
    """Makes the same entry point anew with all options at their defaults, where conditions depend on
    options."""
    default_run: Run | None = None
    """The run with all options at their defaults."""
    owner: str = ""
    """The class of the method that it calls, if it calls one."""
    explore_in: Callable[..., EntryPoint] | None = None
    """Explores it again, in the ``world`` that it is given."""
    covered_by_others: set[ast.AST] = field(default_factory=set)
    """Nodes that are reached from other entry points with more known about them: this one reports nothing
    there."""

    @property
    def key(self) -> EntryPointKey:
        """Identifies it among the entry points of the file."""
        return self.owner, self.name

    @property
    def run_without_options(self) -> Run:
        """The run without command-line options, if there is a separate one; else the main run."""
        return self.default_run or self.runs[0]

    def release(self) -> None:
        """Release all runs, when no codemod needs this entry point any more."""
        self.pending.clear()
        self.with_default_options = self.explore_in = None
        for run in dict.fromkeys([*self.runs, *([self.default_run] if self.default_run is not None else [])]):
            run.release()

    def iter_runs(self) -> Iterator[Run]:
        """The runs one by one; a pending run is executed when it is its turn."""
        yield from self.runs
        while self.pending:
            run = self.pending.pop(0)()
            self.runs.append(run)
            yield run

    def all_runs(self) -> list[Run]:
        """All runs, those included that are made only on demand."""
        return list(self.iter_runs())

    def certain_observations(
        self,
        observe: Callable[[Run], abc.Mapping[Hashable, Found]],
        anchor: Callable[[Found], ast.AST],
        *,
        raises: bool,
        merge: Callable[[Found, Found], None] | None = None,
        repeated: Callable[[Run], bool] | None = None,
        besides: Callable[[Run], Container[ast.AST]] = lambda run: (),
        against: Callable[[Run], Container[ast.AST]] | None = None,
    ) -> Iterator[Found]:
        """What ``observe`` finds in all runs, however undecided conditions are decided.

        An observation counts if every run that reaches its anchor makes it. One of a mistake that ``raises``
        may depend on conditions that vary from iteration to iteration, since they hold in some iteration, and
        on command-line options, if it is made when none is given. One of a silent mistake may depend on
        neither. ``merge`` adds to an observation what another run shows of the same mistake, in a branch that
        the first run did not take. Some mistakes show only the second time: a run that reaches the anchor
        once and then leaves the loop says nothing about them. For such a mistake ``repeated`` tells whether
        the main run has anything that might lead to it; only then are further runs made. ``besides`` gives
        the places at which a run without the observation does not count against it. Where no event happens
        at the anchor, ``against`` gives the places about which a run shows the opposite.
        """
        reported: set[ast.AST] = set()
        for found in self._certain_observations(observe, anchor, raises, merge, repeated, besides, against):
            if anchor(found) not in self.covered_by_others:
                reported.add(anchor(found))
                yield found
        if raises and self.with_default_options is not None and self.default_run is not None:
            if all(anchor(found) in reported for found in observe(self.default_run).values()):
                return
            for found in self.with_default_options().certain_observations(
                observe, anchor, raises=True, merge=merge
            ):
                if anchor(found) not in reported:
                    yield found

    def _certain_observations(
        self,
        observe: Callable[[Run], abc.Mapping[Hashable, Found]],
        anchor: Callable[[Found], ast.AST],
        raises: bool,
        merge: Callable[[Found, Found], None] | None,
        repeated: Callable[[Run], bool] | None,
        besides: Callable[[Run], Container[ast.AST]],
        against: Callable[[Run], Container[ast.AST]] | None,
    ) -> Iterator[Found]:
        """What the runs from this entry point find."""
        seen = [(run, observe(run)) for run in self.runs]
        main = self.runs[0]
        if self.pending and (
            any(observations for _, observations in seen)
            or (repeated is not None and self._once() and repeated(main))
        ):
            self.all_runs()
            seen += [(run, observe(run)) for run in self.runs[len(seen) :]]
        if not any(observations for _, observations in seen) or main.unfinished:
            return
        if any(run.substituted for run in self.runs):
            return
        # What comes of a program in the end shows only if it gets there.
        if not raises and any(run.refused_write and not run.scenario.other for run in self.runs):
            return
        reached = [{e.site for e in run.events} for run in self.runs]
        contrary = reached if against is None else [against(run) for run in self.runs]
        failing = [_failing(run) for run in self.runs] if raises else []
        keys = {key: found for _, observations in reversed(seen) for key, found in observations.items()}
        for key, found in keys.items():
            at = anchor(found)
            holds = getattr(at, "lineno", 0) > 0  # a place in an imported module is not in this file
            for (run, observations), sites in zip(seen, contrary):
                if key in observations or at not in sites or not self._testifies(run, raises):
                    continue
                if raises and run is main and any(key in o and self._returns_otherwise(r) for r, o in seen):
                    continue
                once = [event for event in run.events if event.site is at] if repeated else []
                if (not repeated or len(once) > 1 or not once[0].loops) and at not in besides(run):
                    holds = False
                    break
            if holds and raises and self._masked(at, reached, failing):
                holds = False
            if holds:
                first, *others = [o[key] for _, o in seen if key in o]
                if merge is not None:
                    for other in others:
                        merge(first, other)
                yield first

    def _once(self) -> bool:
        """Whether some step happens only once in a loop of the main run, so that another run may repeat
        it."""
        steps = Counter(e.site for e in self.runs[0].events if isinstance(e, Step) and e.loops)
        return 1 in steps.values()

    def _testifies(self, run: Run, raises: bool) -> bool:
        """Whether a run that does not show a mistake counts as evidence against it."""
        flipped = run.scenario.flipped
        if run.impossible or (run.raised and not raises and run.scenario.other):
            return False
        # The run that decides everything the other way proves nothing: it may never reach the fault.
        if not raises or (not flipped and run.scenario.main):
            return True
        return bool(flipped) and not any(self.varying.get(site, False) for site in flipped)

    def _returns_otherwise(self, run: Run) -> bool:
        """Whether a run differs from the main one in how a function comes to its result in some
        iterations."""
        flipped = run.scenario.flipped if run.scenario.main else frozenset()
        return bool(flipped) and all(self.varying.get(site) and _returns(site) for site in flipped)

    def _masked(self, at: ast.AST, reached: list[set[ast.AST]], failing: list[set[ast.AST]]) -> bool:
        """Whether another backward raises before, or may: reporting the later one would mislead."""
        for event in self.runs[0].events:
            if isinstance(event, Backward) and event.failure is not None and event.certain:
                if event.site is at:
                    return False
                for run, sites, failed in zip(self.runs, reached, failing):
                    fails = event.site in failed
                    if event.site in sites and not fails and self._testifies(run, raises=True):
                        return True
        return False


def _failing(run: Run) -> set[ast.AST]:
    """The places of the backwards that raise."""
    return {event.site for event in run.events if isinstance(event, Backward) and event.failure}


class Program:
    """One file: its tree, and everything that happened when the model ran it."""

    def __init__(self, tree: ast.Module, text: str, path: Path) -> None:
        self.tree = tree
        self.text = text
        self.path = path
        self.entry_points: list[EntryPoint] = []
        self.reported: list[str] = []
        """Messages about analyses that were cut off, with repetitions; pending runs may add more."""
        self.allowances: list[Allowance] = []
        self.assumption = ""
        """What its entry points assume of what they are handed, if this is a program under an assumption."""
        self._under_assumption: list[Program] | None = None
        self._lines: Lines | None = None
        self._parents: dict[ast.AST, ast.AST] = {}

    @property
    def statements_executed(self) -> int:
        """How many statements have been executed in all runs."""
        return sum(allowance.whole - allowance.left for allowance in self.allowances)

    @property
    def messages(self) -> tuple[str, ...]:
        """What was cut off so far, each once."""
        return tuple(dict.fromkeys(self.reported))

    @contextlib.contextmanager
    def no_further_runs(self) -> Iterator[None]:
        """Within it, no pending run is executed: codemods may then find mistakes that those runs would rule
        out."""
        held = [(entry, entry.pending) for entry in self.entry_points]
        for entry, _ in held:
            entry.pending = []
        try:
            yield
        finally:
            for entry, pending in held:
                entry.pending = pending

    def under_assumption(self) -> list[Program]:
        """The same program once for each entry point that can only be followed under an assumption.

        Each has that entry point alone, followed in every world that is admissible
        (:mod:`gradfix.autograd.open_world`).
        """
        if self._under_assumption is None:
            with deep_recursion():
                self._under_assumption = list(_under_assumption(self))
        return self._under_assumption

    def release(self) -> None:
        """Release all runs, when the program is not needed any more."""
        for entry in self.entry_points:
            entry.release()
        self.entry_points.clear()
        for program in self._under_assumption or ():
            program.release()

    def certain_observations(
        self,
        observe: Callable[[Run], abc.Mapping[Hashable, Found]],
        anchor: Callable[[Found], ast.AST],
        **how: Any,
    ) -> Iterator[Found]:
        """What :meth:`EntryPoint.certain_observations` gives, of each of the entry points."""
        for entry in self.entry_points:
            yield from entry.certain_observations(observe, anchor, **how)

    # ------------------------------------------------------------------ source

    def entry_points_to(self, spans: Iterable[Span]) -> set[EntryPointKey] | None:
        """The entry points from which a run has reached one of some nodes.

        None if that is not known: a place is in no function, or a run has ended before its time.
        """
        places = [self._function_around(span) for span in spans]
        found: set[EntryPointKey] = set()
        for entry in self.entry_points:
            for run in entry.runs:
                if None in places or not run.entered or run.unfinished:
                    return None
                if not run.entered.isdisjoint(places):
                    found.add(entry.key)
        return found or None

    def _function_around(self, span: Span) -> ast.AST | None:
        """The innermost function that a place is a part of, or all of."""
        around = (node for node in reversed(self._functions) if Span.of(node).contains(span))
        return next(around, None)

    @cached_property
    def _functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions of the file, outer ones before those within them."""
        return [n for n in walk(self.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The source text of a node, as written; of one in an imported module, as Python would write it."""
        if node.lineno <= 0:
            return ast.unparse(node)
        if self._lines is None:
            self._lines = Lines(self.text)
        return self._lines.segment(Span.of(node))

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that holds ``node`` (computed for the whole file at the first question)."""
        if isinstance(node, implicit_loops.LoopCall):
            return node.returned
        if not self._parents:
            for outer in walk(self.tree):
                for inner in children(outer):
                    self._parents[inner] = outer
        return self._parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds ``node``.

        Raises:
            Elsewhere: it stands in an imported module.
        """
        if getattr(node, "lineno", 1) <= 0:
            raise Elsewhere
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.stmt):
            at = self.parent(at)
        assert isinstance(at, ast.stmt)
        return at

    def suite_around(self, statement: ast.stmt) -> list[ast.stmt]:
        """The suite that ``statement`` stands in."""
        outer = self.parent(statement)
        for name in ("body", "orelse", "finalbody"):
            suite = getattr(outer, name, None)
            if isinstance(suite, list) and statement in suite:
                return suite
        return [statement]

    def ancestors(self, node: ast.AST) -> list[ast.AST]:
        """Everything that holds ``node``, innermost first."""
        found = []
        at = self.parent(node)
        while at is not None:
            found.append(at)
            at = self.parent(at)
        return found

    def proxy_calls(self) -> set[Span]:
        """The calls that stand for what happens in the modules of the project which they lead into."""
        return {
            Span.of(call) for entry in self.entry_points for run in entry.runs for call in run.proxy_calls
        }

    def calls_of_frameworks(self) -> set[Span]:
        """Where calls stand that a framework makes: nothing can be edited there."""
        return {
            Span.of(event.site)
            for entry in self.entry_points
            for run in entry.runs
            for event in run.events
            if isinstance(event.site, implicit_loops.LoopCall)
        }

    def function(self, node: ast.AST) -> ast.AST:
        """The function (or lambda, or the module) whose code ``node`` is.

        Of a node in an imported module nothing is known: it counts as its own function.
        """
        if getattr(node, "lineno", 1) <= 0:
            return node
        for outer in self.ancestors(node):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return outer
        return self.tree


RECURSION = 6000
"""Python frames that a run may nest: some three for each level of an expression that the parser accepts."""


def analyze(tree: ast.Module, text: str, path: Path, keys: Container[EntryPointKey] | None = None) -> Program:
    """Run the model on one file, or only from some of its entry points."""
    program = Program(tree, text, path)
    relevance = Relevance(tree, text, trained=implicit_loops.methods_in(tree, text))
    if not relevance.backwards and not relevance.trains_all_the_same():
        return program
    imports.begin(str(path))
    with deep_recursion():
        _fill(program, relevance, keys)
    return program


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Allow the Python frames that a run may nest."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def worlds_of(entry: EntryPoint) -> list[World]:
    """The admissible worlds of an entry point; where it is not known who owns what, one with its networks."""
    explore_in = entry.explore_in
    if explore_in is None:
        return [World()]
    tried: list[World] = []

    def explore(world: World) -> Run:
        tried.append(world)
        return _main_run(explore_in, world)

    with deep_recursion():
        found = assume(explore)
    if found is not None:
        return found.worlds
    networks = {key: role for key, role in tried[-1].roles.items() if role is Role.NETWORK}
    return [World(networks, names=tried[-1].names)]


def _under_assumption(program: Program) -> Iterator[Program]:
    """The program once for each entry point that is not followed as it stands, but is in some worlds."""
    followed = {
        site for entry in program.entry_points for run in entry.runs for site in _followed(run, stepped=True)
    }
    for entry in program.entry_points:
        met = {e.site for run in entry.runs for e in run.events if isinstance(e, Backward)}
        if met <= followed or entry.explore_in is None:
            continue
        assumption = assume(partial(_main_run, entry.explore_in))
        if assumption is None:
            continue
        first, *others = assumption.worlds
        explored = entry.explore_in(world=first)
        explored.owner, explored.covered_by_others = entry.owner, followed
        explored.runs += [_main_run(entry.explore_in, world) for world in others]
        explained = [set(_followed(run)) for run in explored.runs if not run.scenario.other]
        if not others:
            explained = [set().union(*map(_followed, explored.runs))]
        if set.intersection(*explained) - followed:
            found = Program(program.tree, program.text, program.path)
            found.assumption = assumption.text
            found.entry_points = [explored]
            yield found
        else:
            explored.release()


def _main_run(explore_in: Callable[..., EntryPoint], world: World) -> Run:
    (run,) = explore_in(world=world, alone=True).runs
    return run


def _followed(run: Run, stepped: bool = False) -> Iterator[ast.AST]:
    """The places of the backwards of a run whose effect on parameters is known.

    If ``stepped``, it also has to be known which optimizer takes it.
    """
    if run.unfinished or run.substituted:
        return
    for event in run.events:
        if isinstance(event, Backward) and is_followed(event):
            if not stepped or event.failure is not None or not event.accumulates or _taken(run, event):
                yield event.site


def _taken(run: Run, loss: Backward) -> bool:
    """Whether an optimizer that is known steps on what a loss gives."""
    return any(not step.optimizer.external for step in steps_using(run, [loss]))


def _fill(program: Program, relevance: Relevance, keys: Container[EntryPointKey] | None) -> None:
    tree = program.tree
    messages = program.reported
    allowance = Allowance(max(FILE_STATEMENTS, FILE_STATEMENTS_PER_LINE * _last_line(tree)))
    program.allowances.append(allowance)
    entered: set[ast.AST] = set()
    at_once = keys is None or ("", MODULE) in keys
    if at_once and any(relevance.differentiates(s) for s in tree.body if not isinstance(s, DEFINITIONS)):

        def execute(run: Run) -> None:
            run.tree = tree
            run.file(tree.body, run.globals)

        entry = explore(
            MODULE, tree, relevance, execute, messages, str(program.path), _budget(tree), allowance
        )
        program.entry_points.append(entry)
        for run in entry.runs:
            entered |= run.entered
    scope: ModuleScope | None = None
    asked = False
    met: set[ast.AST] = set()
    looked = 0
    for definition in functions_to_start(tree, relevance):
        known: set[ast.AST] = set()
        if definition in entered:
            met |= _met(run for entry in program.entry_points[looked:] for run in entry.runs)
            looked = len(program.entry_points)
            if all(call in met for call in backwards_in([definition])):
                continue
            known = met.copy()
        if not asked and definition not in entered:
            asked = True
            if keys is None or ("", THROUGH_SCRIPTS) in keys:
                program.entry_points += through_scripts(program, relevance, messages)
        cls = relevance.classes.get(definition)
        owner = cls.name if cls is not None else ""
        if keys is not None and (owner, definition.name) not in keys:
            continue
        scope = scope or ModuleScope(tree, relevance)

        def start(
            run: Run,
            definition: FunctionDefinition = definition,
            scope: ModuleScope = scope,
            otherwise: bool = definition in entered,
        ) -> None:
            run_entry(run, scope, definition, otherwise)

        # A setting of the script may keep it from some of a function's training: that is looked at by itself.
        entry = explore(
            definition.name,
            definition,
            relevance,
            start,
            messages,
            str(program.path),
            BUDGET,
            allowance,
            otherwise=partial(start, otherwise=True) if _asks_for_a_setting(definition) else None,
        )
        entry.owner, entry.covered_by_others = owner, known
        program.entry_points.append(entry)
        for run in entry.runs:
            entered |= run.entered


MODULE = "<module>"
"""The name of the entry point that runs a file from its top."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def through_scripts(program: Program, relevance: Relevance, messages: list[str]) -> Iterator[EntryPoint]:
    """Yield the entry point that runs the scripts which import the file, if any of them trains here."""
    path = os.path.abspath(program.path)
    scripts = callers.scripts(path)
    scripts.sort(key=lambda script: not relevance.join_caller(script.path, script.relevance))
    relevance.cleared_elsewhere = cache(partial(callers.clears, path))
    entry: EntryPoint | None = None
    offered = 0
    starts: list[tuple[LocalModule, FunctionDefinition | None]] = [
        (script, None) for script in scripts[:SCRIPTS]
    ]
    starts += [(s, f) for s in scripts[:SCRIPTS] for f in s.tree.body if isinstance(f, FunctionDefinition)]
    allowance = Allowance(SCRIPT_STATEMENTS)
    program.allowances.append(allowance)
    for script, function in starts:
        if not allowance.left:
            break
        if function is not None:
            # A script may offer several trainings and run one of them, or one that is asked for.
            if (entry is not None and not offered) or offered == SCRIPT_FUNCTIONS:
                break
            if not relevance.differentiates(function):
                continue
            offered += 1

        def start(
            run: Run, script: LocalModule = script, function: FunctionDefinition | None = function
        ) -> None:
            run_script(run, program.tree, path, script, function)

        run_from = partial(
            explore,
            THROUGH_SCRIPTS,
            program.tree,
            relevance,
            start,
            messages,
            str(program.path),
            BUDGET,
            allowance,
            alone=entry is not None,
        )
        one = run_from()
        if not _trains_here(one):
            parsed = any(run.options_read for run in one.runs)
            one.release()
            # What evaluates or goes on from a file may come first where every option is given.
            one = run_from(default_options=True) if parsed else one
        if not _trains_here(one):
            one.release()
            continue
        if entry is None:
            entry = one
        else:
            entry.runs += one.runs
    if entry is not None:
        yield entry


def _misleading_guess(run: Run) -> ast.AST | None:
    """The guess that led to an exception before anything was trained, or ruled out whatever trains."""
    revised = run.scenario.revised_guesses
    trains = any(isinstance(event, Backward) for event in run.events)
    if len(revised) == REVISED_GUESSES or trains or run.refused_write:
        return None
    return next((site for site in (*run.refused[-1:], *run.precluding) if site not in revised), None)


def _trains_here(entry: EntryPoint) -> bool:
    """Whether anything is differentiated in this very file."""
    return any(
        isinstance(event, Backward) and getattr(event.site, "lineno", 0) > 0
        for run in entry.runs
        for event in run.events
    )


def run_script(
    run: Run, tree: ast.Module, path: str, script: LocalModule, function: FunctionDefinition | None = None
) -> None:
    """Run a script from the top that imports the file at hand, or import it and call a ``function`` of it."""
    run.modules[path] = run.globals
    run.globals.variables["__name__"] = ImportedName(os.path.basename(path))
    run.top = Frame(None, None)
    run.top.origin = script.path
    run.execute_block(
        [s for s in tree.body if isinstance(s, imports.EXECUTED) and not imports.main_guard(s)], run.globals
    )
    run.top.variables["__name__"] = Const("__main__")
    run.modules[script.path] = run.top
    if function is None:
        run.file(script.tree.body, run.top)
        return
    defining: list[ast.stmt] = [
        s for s in script.tree.body if isinstance(s, imports.EXECUTED) and not imports.main_guard(s)
    ]
    run.execute_block(defining, run.top)
    value = run.top.variables.get(function.name)
    if isinstance(value, Function):
        call_function(run, value, Call([], {}, function))


def functions_to_start(tree: ast.Module, relevance: Relevance) -> list[FunctionDefinition]:
    """Functions and methods that differentiate, those first that nothing in the file mentions."""
    found: list[FunctionDefinition] = []
    for statement in tree.body:
        body = statement.body if isinstance(statement, ast.ClassDef) else [statement]
        found += [
            s
            for s in body
            if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)) and relevance.differentiates(s)
        ]
    mentioned = relevance.mentioned([f.name for f in found])
    return sorted(found, key=lambda f: (f.name in mentioned, f.lineno))


def explore(
    name: str,
    node: ast.AST,
    relevance: Relevance,
    start: Callable[[Run], None],
    messages: list[str],
    origin: str,
    budget: int,
    allowance: Allowance,
    main: Run | None = None,
    default_options: bool = False,
    alone: bool = False,
    otherwise: Callable[[Run], None] | None = None,
    world: World | None = None,
) -> EntryPoint:
    """Make the main run (only that, if ``alone``) and the runs that decide undecided conditions the other
    way.

    If ``default_options`` is true, or a ``main`` run is given, all command-line options have their defaults.
    One more run is started by ``otherwise`` in place of ``start``. In a ``world``, symbols have the roles
    that it gives them.
    """
    entry = EntryPoint(name, node)
    entry.explore_in = partial(
        explore, name, node, relevance, start, messages, origin, budget, allowance, otherwise=otherwise
    )
    default_options = default_options or main is not None

    def make(scenario: Scenario, start: Callable[[Run], None] = start) -> Run:
        granted = min(budget, allowance.left)
        run = Run(relevance, scenario, granted)
        run.globals.origin = origin
        try:
            start(run)
        except Stopped as stopped:
            run.impossible = isinstance(stopped, Impossible)
            run.raised = not isinstance(stopped, Exited)
            run.refused_write = isinstance(stopped, Uncaught)
        except BudgetExceeded as spent:
            (function,) = spent.args
            where = f" in {function}" if function not in ("", name) else ""
            if granted == budget and name != THROUGH_SCRIPTS:
                messages.append(f"analysis of {name} stopped{where}: more than {budget} statements")
            else:
                run.unfinished = True
                whole = "the scripts that import it" if name == THROUGH_SCRIPTS else "it"
                messages.append(
                    f"analysis of {whole} stopped: more than {allowance.whole} statements together"
                )
            run.events.clear()
            run.entered.clear()  # what it has called is looked at from outside instead
        except RecursionError:
            messages.append(f"analysis of {name} stopped: calls or expressions nested too deeply")
            run.events.clear()
        for function in sorted(run.not_followed):
            messages.append(f"analysis of {function} stopped: more than {MANY_CALLS} calls within it")
        allowance.left -= granted - max(run.budget, 0)
        return run

    main = main or make(Scenario(default_options=default_options, world=world))
    while (wrong := _misleading_guess(main)) is not None:
        revised = main.scenario.revised_guesses | {wrong}
        main.release()
        main = make(Scenario(default_options=default_options, revised_guesses=revised, world=world))
    entry.runs.append(main)
    if alone:
        return entry
    worth = [site for site in main.undecided if _worth(site, main)]
    for site in worth:
        entry.varying[site] = _varies(site, main)
    worth.sort(key=lambda s: not relevance.touches(s))

    def opposite() -> Run:
        # Of a single condition it is known what the other answer is about.
        single = worth if len(worth) == 1 else []
        run = make(Scenario(bool(single), single, main, default_options))
        if not run.refused or any(isinstance(event, Backward) for event in run.events):
            return run
        # ``else: raise``: all of several kinds were refused. The last one is what no other run has asked for.
        *others, last = run.refused
        revised = run.scenario.revised_guesses | {last}
        entry.pending.append(lambda: make(Scenario(bool(single), single, main, default_options, revised)))
        run.release()
        return make(Scenario(True, others, main, default_options))

    optional = (
        []
        if default_options or main.called_from_outside
        else [site for site in worth if site in main.optional]
    )
    departs = not main.changed_by_options.isdisjoint(optional)
    if departs and not _may_raise(main):
        optional, departs = [], False
    if optional:
        without = cache(lambda: make(Scenario(main_run=main, default_options=True)))
        entry.with_default_options = cache(
            lambda: explore(name, node, relevance, start, messages, origin, budget, allowance, without())
        )
        entry.default_run = without() if departs else main
    if departs:
        # It is another branch than the main run's, and one that is certainly taken.
        entry.runs.append(without())
        entry.pending.append(opposite)
    elif not default_options and any(_skipped(site, relevance) for site in worth):
        entry.runs.append(opposite())
    elif worth:
        entry.pending.append(opposite)
    for _ in range(HIDDEN_RUNS):
        hidden = _hidden(entry.runs)
        if hidden is None:
            break
        before, site = hidden
        entry.varying.setdefault(site, _varies(site, before))
        entry.runs.append(make(Scenario(True, before.scenario.flipped | {site}, main, default_options)))
    if otherwise is not None:
        entry.pending.append(lambda: make(Scenario(True, [node], main, default_options), otherwise))
    if len(worth) > 1:
        tried = {run.scenario.flipped for run in entry.runs}
        others = [site for site in worth[:FLIPS] if frozenset([site]) not in tried]
        entry.pending += [partial(make, Scenario(True, [site], main, default_options)) for site in others]
    return entry


def _varies(site: ast.AST, run: Run) -> bool:
    """Whether the answer to an undecided condition may differ from iteration to iteration."""
    keys = run.undecided[site]
    return None in keys or len(set(keys)) > 1


def _may_raise(run: Run) -> bool:
    """Whether there is what it takes for autograd to raise: two backwards, or a change in place."""
    sites = {event.site for event in run.events if isinstance(event, Backward)}
    return len(sites) > 1 or any(
        isinstance(event, InPlaceChange) and getattr(event.site, "lineno", 0) > 0 for event in run.events
    )


def _skipped(site: ast.AST, relevance: Relevance) -> bool:
    """Whether the main run leaves out code that matters: an else-branch, or whatever is not a plain if."""
    if not isinstance(site, ast.If) or _returns_what_is_kept(site, relevance):
        return True
    return any(relevance.touches(s) or relevance.shapes(s) for s in site.orelse)


def _returns(site: ast.AST) -> bool:
    """Whether a condition decides to return something; one that stands for a lookup has no body."""
    return isinstance(site, ast.If) and bool(site.body) and isinstance(site.body[-1], ast.Return)


def _returns_what_is_kept(site: ast.If, relevance: Relevance) -> bool:
    """Whether a function gives what an earlier call of it has kept, under a condition: a cache."""
    if not _returns(site):
        return False
    read = {node.attr for node in walk(site.body[-1]) if isinstance(node, ast.Attribute)}
    around = (f for f in relevance.functions if f.lineno <= site.lineno <= (f.end_lineno or f.lineno))
    return any(not read.isdisjoint(_assigned(function)) for function in around)


def _hidden(runs: list[Run]) -> tuple[Run, ast.AST] | None:
    """A run, and a condition which it may answer differently to come to a backward that no run has met.

    Of three alternatives the third is behind two conditions: the second is asked only by a run that
    answers the first one differently. And what has been asked before has its answer already, also about what
    rules it out: ``elif kind == "b"`` after ``if kind == "a"``.
    """
    met = _met(runs)
    tried = {run.scenario.flipped for run in runs if run.scenario.main}
    for run in runs:
        for site in run.undecided if run.scenario.main else ():
            if isinstance(site, ast.If) and run.scenario.flipped | {site} not in tried:
                decided = [site, *(s for s in run.ruled_out.get(site, ()) if isinstance(s, ast.If))]
                if any(call not in met for s in decided for call in _decides(s, run.relevance)):
                    return run, site
    return None


def _decides(site: ast.If, relevance: Relevance) -> Iterator[ast.Call]:
    """The backward calls that a condition decides about: in its body, in a class, or behind a switch."""
    yield from backwards_in([*site.body, *site.orelse])
    yield from relevance.switched(site)
    yield from relevance.started(site)


def _met(runs: Iterable[Run]) -> set[ast.AST]:
    """The places at which anything happened in any of the runs."""
    return {event.site for run in runs for event in run.events}


def _worth(site: ast.AST, run: Run) -> bool:
    """Whether the other outcome of a condition could change what autograd does."""
    relevance = run.relevance
    if relevance.touches(site) or relevance.shapes(site):
        return True
    if not isinstance(site, ast.If):
        return False
    if isinstance(site, Alternative):
        return True
    assigned: set[str] = set()
    if not all(sets_only(s, assigned) for s in [*site.body, *site.orelse]):
        return True
    if not relevance.read_outside(assigned, site):
        return False
    home = _home(site, run)
    return home is None or reaches_events(assigned, site, home, relevance)


def _home(site: ast.If, run: Run) -> ast.Module | FunctionDefinition | None:
    """The function that a condition stands in, or the file; None if that is not at hand."""
    around = [
        function
        for function in run.entered
        if isinstance(function, FunctionDefinition)
        and function.lineno <= site.lineno <= (function.end_lineno or function.lineno)
    ]
    if around:
        return max(around, key=lambda function: function.lineno)
    return run.relevance.tree if site.lineno > 0 else None


def _budget(tree: ast.Module) -> int:
    """The budget of a run from the top: a long file may be long for no other reason than its length."""
    return max(BUDGET, BUDGET_PER_LINE * _last_line(tree))


def _last_line(tree: ast.Module) -> int:
    return tree.body[-1].end_lineno or 0 if tree.body else 0


THROUGH_SCRIPTS = "<scripts>"
"""The name of the entry point by way of scripts that import the file."""


class Allowance:
    """How many statements several runs may execute together."""

    def __init__(self, whole: int) -> None:
        self.whole = whole
        self.left = whole


class ModuleScope:
    """The module-level variables for a function that is called from outside: the file without its training
    code."""

    def __init__(self, tree: ast.Module, relevance: Relevance) -> None:
        bound = Counter(name for s in tree.body for name in _binds(s))
        self._definitions: dict[str, Defining] = {}
        self._statements: list[ast.stmt] = []
        for statement in tree.body:
            if not isinstance(statement, DEFINITIONS):
                if not relevance.touches(statement):
                    self._statements.append(statement)
            elif bound[statement.name] == 1:
                self._definitions[statement.name] = statement
            else:
                self._statements.append(statement)
        self._shared: Frame | None = None
        self._stateful = False

    def around(self, run: Run) -> None:
        """Give a run the variables of the file.

        They are the same for every run if no tensor, network or optimizer is among them: a file with hundreds
        of test methods is executed once.
        """
        if self._shared is not None:
            run.globals = self._shared
            return
        run.globals.definitions = Definitions(self._definitions)
        with contextlib.suppress(Stopped):
            run.execute_block(self._statements, run.globals)
        if not self._stateful:
            held = run.globals.variables.values()
            stateful = any(isinstance(v, (Module, Optimizer, Tensor)) for v in held)
            self._stateful = bool(stateful or run.nodes or run.optimizers or run.undecided)
            self._shared = None if self._stateful else run.globals


def _binds(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of the module binds, as far as its own scope goes.

    A name that an expression binds (``:=``) is none that a definition has.
    """
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name
            return
        case ast.Assign() | ast.Delete():
            targets = statement.targets
        case ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.AsyncFor():
            targets = [statement.target]
        case ast.With() | ast.AsyncWith():
            targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
        case ast.Import() | ast.ImportFrom():
            for alias in statement.names:
                yield (alias.asname or alias.name).split(".", 1)[0]
            return
        case _:
            targets = []
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id
        elif not isinstance(target, (ast.Attribute, ast.Subscript)):
            names = (node for node in walk(target) if isinstance(node, ast.Name))
            yield from (name.id for name in names if not isinstance(name.ctx, ast.Load))
    for inner in suites(statement):
        yield from _binds(inner)


def run_entry(run: Run, scope: ModuleScope, definition: FunctionDefinition, otherwise: bool = False) -> None:
    """Call a function or method of the file as an outside caller would, with unknown arguments.

    If ``otherwise``, parameters with a default are unknown, too: the file calls it with the defaults.
    """
    given = _settings(definition) if otherwise else []
    keywords: dict[str, Argument] = {a.arg: (passed(run, a), ast.Name(a.arg, ast.Load())) for a in given}
    scope.around(run)
    if run.relevance.switches_mode:
        run.grad_enabled = None
    _forget_modes(run, run.globals.variables)
    owner = run.relevance.classes.get(definition)
    if owner is None:
        run.called_from_outside = True
        value = run.variable(definition.name)
        if isinstance(value, Function):
            result = call_function(run, value, Call([], keywords, definition))
            _hand_back(run, result)
            _call_back(run, result)
        return
    cls = run.variable(owner.name)
    if not isinstance(cls, Class):
        return
    # How an object is set up is taken as it comes, as it is in a script.
    instance = instantiate(run, cls, Call([], {}, definition))
    run.called_from_outside = True
    method = cls.attributes.get(definition.name)
    if isinstance(method, StaticOrClassMethod):
        _hand_back(run, call_function(run, method.function, Call([], keywords, definition)))
    if not isinstance(method, Function) or not isinstance(instance, (Module, Instance)):
        return
    _set_up(run, cls, instance, definition)
    run.events.clear()
    _forget_modes(run, instance.attributes)
    if isinstance(instance, Module):
        set_mode(run, instance, None)
    loop = implicit_loops.loop_of(cls, definition)
    if loop is None and definition in run.relevance.trained:
        return  # Nothing is seen to train with what it returns.
    training = None
    if loop is not None:
        training = implicit_loops.Training(run, loop, instance, definition)
        keywords |= training.arguments
    foreign = training is None and cls.unknown_bases() and not cls.is_module
    once = foreign or _has_relevant_loop(definition, run)
    for number in range(1 if once else CALLS):
        if number and training is None:
            _between_calls(run, cls, instance)
        run.loops = ((definition, number),)
        if number:
            names = {f"self.{k}": v for k, v in carried_attributes(instance).items()}
            run.carried[definition, run.loops] = names
        else:
            run.before[definition, ()] = {
                f"self.{k}": v for k, v in values_by_path(instance.attributes).items()
            }
        if training is not None:
            training.batch(method, Call([], keywords, definition))
            continue
        result = call_function(run, method.bind(instance), Call([], keywords, definition))
        _hand_back(run, result, instance)
    run.loops = ()


def _set_up(run: Run, cls: Class, instance: Module | Instance, definition: FunctionDefinition) -> None:
    """Call what an outside caller has to call first: the method that creates the optimizer which another one
    uses.

    What lists and dicts hold by then that are empty at first is not known, nor how far anything has counted.
    """
    _forget_counts(instance, definition)
    for held in instance.attributes.values():
        if (isinstance(held, Sequence) and held.kind == "list") or isinstance(held, Mapping):
            held.open = held.open or not held.items
    methods = {
        f.name: f for c in reversed(cls.order()) for f in c.attributes.values() if isinstance(f, Function)
    }
    methods.pop(definition.name, None)
    for writer in _needed_first(instance, methods, definition, True, {definition.name, "__init__"}):
        call_function(run, writer.bind(instance), Call([], {}, definition))


def _forget_counts(holder: Module | Instance, caller: FunctionDefinition | None, depth: int = 2) -> None:
    """Forget the numbers that other methods count than the constructor, and the one that is called.

    They begin in the constructor or in the body of the class.
    """
    bodies = [cls.attributes for cls in holder.cls.order()] if holder.cls is not None else []
    methods = [
        value.node
        for body in bodies
        for value in body.values()
        if isinstance(value, Function) and value.name not in CONSTRUCTORS
    ]
    held = {name: value for body in reversed(bodies) for name, value in body.items()} | holder.attributes
    for name, value in held.items():
        if isinstance(value, Const) and type(value.value) is int:
            counted = any(_counts(method, name) for method in methods)
            if counted and not (caller is not None and _counts(caller, name)):
                holder.attributes[name] = graphless_value(name)
        elif isinstance(value, Instance) and depth:
            _forget_counts(value, None, depth - 1)


@lru_cache(maxsize=4096)
def _counts(method: ast.AST, name: str) -> bool:
    """Whether a method does ``self.name += ...``."""
    return any(
        isinstance(node, ast.AugAssign)
        and isinstance(node.target, ast.Attribute)
        and node.target.attr == name
        and isinstance(node.target.value, ast.Name)
        and node.target.value.id == "self"
        for node in walk(method)
    )


def _needed_first(
    instance: Module | Instance,
    methods: dict[str, Function],
    reader: ast.AST,
    stepped: bool,
    called: set[str],
) -> Iterator[Function]:
    """The methods, in order, that alone write what a reader will find missing in an object."""
    for name in _reads(reader, stepped):
        if name in instance.attributes:
            continue
        if name in methods and name not in called:
            # What it calls itself reads for it.
            called.add(name)
            yield from _needed_first(instance, methods, methods[name].node, stepped, called)
            continue
        writers = [f for f in methods.values() if _assigns(f.node, name)]
        if len(writers) == 1 and writers[0].name not in called:
            called.add(writers[0].name)
            yield from _needed_first(instance, methods, writers[0].node, False, called)
            yield writers[0]


@lru_cache(maxsize=4096)
def _reads(node: ast.AST, stepped: bool) -> tuple[str, ...]:
    """The attributes of ``self`` that code reads, or only those that it steps or clears, and its methods."""
    found = []
    for part in walk(node):
        match part:
            case ast.Attribute(ast.Attribute(ast.Name("self"), name), "step" | "zero_grad"):
                found.append(name)
            case ast.Call(ast.Attribute(ast.Name("self"), name)):
                found.append(name)
            case ast.Attribute(ast.Name("self"), name, ast.Load()) if not stepped:
                found.append(name)
    return tuple(dict.fromkeys(found))


def _asks_for_a_setting(definition: FunctionDefinition) -> bool:
    """Whether a function decides by a parameter that a caller need not give: ``again=False``."""
    names = {one.arg for one in _settings(definition)}
    tests = (n.test for n in walk(definition) if isinstance(n, (ast.If, ast.IfExp, ast.While)))
    return bool(names) and any(
        isinstance(part, ast.Name) and part.id in names for test in tests for part in walk(test)
    )


def _settings(definition: FunctionDefinition) -> list[ast.arg]:
    """The parameters that have a default."""
    spec = definition.args
    positional = [*spec.posonlyargs, *spec.args]
    optional = [a for a, default in zip(spec.kwonlyargs, spec.kw_defaults) if default is not None]
    return [*positional[len(positional) - len(spec.defaults) :], *optional]


def _forget_modes(run: Run, variables: dict[str, Value]) -> None:
    """Somebody outside may have put networks into evaluation mode before."""
    for value in variables.values():
        if isinstance(value, Module):
            set_mode(run, value, None)


def _hand_back(run: Run, result: Value, instance: Module | Instance | None = None) -> None:
    """The result escapes to a caller outside the file, as do the object and the variables of the file.

    The caller may run backward through their graphs. What a generator yields escapes in the same way.
    """
    within = [instance] if instance is not None else []
    if isinstance(result, PendingGenerator):
        exhaust(run, result, lambda item: run.returned.extend(graphs_in([item, *within])))
    run.returned += graphs_in([result, *within, *run.globals.variables.values()])


def _call_back(run: Run, result: Value) -> None:
    """Call what an outside caller is given to call: a function that trains, made by one that sets it up."""
    if not isinstance(result, Function) or not run.relevance.differentiates(result.node):
        return
    if result.node not in run.entered:
        _hand_back(run, call_function(run, result, Call([], {}, result.node)))


def carried_attributes(instance: Module | Instance) -> dict[str, Value]:
    """What an instance holds between two calls that carries a graph."""
    return carried(instance.attributes)


def _between_calls(run: Run, cls: Class, instance: Module | Instance) -> None:
    """Between two calls an outside caller may clear gradients, or reset what another method resets.

    The gradients of an optimizer that the class makes for itself, and for known networks, are its own
    business, unless something else in the file clears gradients. So are those of networks that were handed
    in where the call has cleared and stepped on others of that kind, or has computed what it differentiates
    of them and no module that imports it clears anything: it leaves that to nobody else.
    """
    first = run.scenario.main_run
    private = _clearing(run.relevance.tree) <= (run.entered if first is None else run.entered | first.entered)
    inside = set().union(*(_nodes(c.node) for c in cls.order())) if private else set()
    cleared = {leaf for e in run.events if isinstance(e, ZeroGrad) for leaf in e.leaves}
    made = [o.state for o in run.optimizers if o.state.groups_known and o.state.created in inside]
    unseen = {key for keys in run.symbols.world.unseen.values() for key in keys} if run.symbols else ()
    tidy = any(o.steps and _handed_in(o) and cleared.issuperset(o.owned()) for o in made)
    for optimizer in run.optimizers:
        state = optimizer.state
        if (
            state in made
            and state.created not in unseen
            and (tidy or not _handed_in(state) or _trains_by_itself(run, state))
        ):
            continue
        for leaf in state.owned():
            leaf.unknown_grad = True
    for name in carried_attributes(instance):
        top = name.split(".", 1)[0]
        for function in (f for c in cls.order() for f in c.attributes.values() if isinstance(f, Function)):
            if function.node in run.entered or function.name == "__init__":
                continue
            if _assigns(function.node, top):
                instance.attributes[top] = Unknown(top)


@lru_cache(maxsize=64)
def _nodes(node: ast.AST) -> frozenset[ast.AST]:
    """A node, and all that stands in it."""
    return frozenset(walk(node))


def _trains_by_itself(run: Run, optimizer: OptimizerState) -> bool:
    """Whether a call has computed all that reaches an optimizer, and nothing is seen that clears its
    gradients."""
    computed = any(
        step.optimizer is optimizer
        and bool(step.consumed)
        and all(any(sure for sure, *_ in by.values()) for by in step.consumed.values())
        for step in run.events
        if isinstance(step, Step)
    )
    return computed and not run.relevance.cleared_elsewhere()


def _handed_in(optimizer: OptimizerState) -> bool:
    """Whether it owns networks that were passed in: their blocks were created on first use."""
    return any(_asked_for(leaf.created) for leaf in optimizer.owned())


def _asked_for(created: ast.AST | None) -> bool:
    return isinstance(created, ast.Call) and getattr(created.func, "attr", "") in (
        "parameters",
        "named_parameters",
    )


@lru_cache(maxsize=16)
def _clearing(tree: ast.Module) -> frozenset[ast.AST]:
    """The functions of a file, and the file itself, that clear gradients for others, by any writing.

    One that clears, differentiates and steps on the same optimizers leaves its own gradients behind.
    """
    found: set[ast.AST] = set()

    def visit(node: ast.AST, home: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            home = node
        if isinstance(node, ast.Attribute) and node.attr in ("zero_grad", "grad", "zero_grads"):
            found.add(home)
        for inner in children(node):
            visit(inner, home)

    visit(tree, tree)
    return frozenset(home for home in found if home is tree or not _trains_alone(home))


def _trains_alone(function: ast.AST) -> bool:
    """Whether what a function clears is written as what it steps on, after a backward that comes later."""
    order: dict[str, list[tuple[int, str]]] = {"zero_grad": [], "backward": [], "step": []}
    for node in walk(function):
        if isinstance(node, ast.Attribute) and node.attr in ("grad", "zero_grads"):
            return False
        if isinstance(node, ast.Attribute) and node.attr in order:
            order[node.attr].append((node.lineno, ast.unparse(node.value)))
    last = {name: max(line for line, _ in uses) for name, uses in order.items() if uses}
    return (
        len(last) == len(order)
        and last["zero_grad"] < last["backward"] < last["step"]
        and {name for _, name in order["zero_grad"]} <= {name for _, name in order["step"]}
    )


def _assigns(node: ast.AST, attribute: str) -> bool:
    return attribute in _assigned(node)


@lru_cache(maxsize=4096)
def _assigned(node: ast.AST) -> frozenset[str]:
    """The attributes, of whatever, that code assigns."""
    return frozenset(
        n.attr for n in walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    )


def _has_relevant_loop(definition: FunctionDefinition, run: Run) -> bool:
    return any(
        isinstance(n, (ast.For, ast.While, ast.AsyncFor)) and run.relevance.differentiates(n)
        for n in walk(definition)
    )


__all__ = ["BUDGET", "CALLS", "Elsewhere", "EntryPoint", "Program", "analyze"]
