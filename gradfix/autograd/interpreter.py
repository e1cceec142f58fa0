"""Runs training code symbolically: statements and expressions in, events of the graph out.

One :class:`Run` is one way through the program. It executes statements in order on the values of
:mod:`gradfix.autograd.values`, so names, aliases, closures, containers and attributes mean what they
mean in Python. A condition that the values do not decide is decided by the run's *scenario*, the same
way each time the same question is asked of the same values. Statements return how control leaves them
(a *flow*), loops over unknown data run a few passes.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gradfix.autograd import imports, options, unbound
from gradfix.autograd.arguments import Argument
from gradfix.autograd.call_expressions import NEVER, call_expression
from gradfix.autograd.counting import ORDER
from gradfix.autograd.graph import (
    Backward,
    Change,
    Event,
    Leaf,
    ModuleCall,
    Node,
    OptimizerState,
    Path,
    Stack,
    Step,
    Tri,
    reach,
)
from gradfix.autograd.matching import as_if
from gradfix.autograd.relevance import walk
from gradfix.autograd.run import Chain, Exited, Impossible, Stopped
from gradfix.autograd.semantics import dispatch
from gradfix.autograd.semantics.arithmetic import binary, counted, inplace_binary, of_pass
from gradfix.autograd.semantics.attributes import set_attribute
from gradfix.autograd.semantics.external import starred
from gradfix.autograd.semantics.frameworks import Toggled
from gradfix.autograd.semantics.functions import call_function, decorate
from gradfix.autograd.semantics.items import delete_item, keyed, set_item, slice_of
from gradfix.autograd.semantics.iteration import Made, extend, generator, is_each
from gradfix.autograd.semantics.libraries import HARMLESS
from gradfix.autograd.semantics.names import BUILTINS, canonical, member
from gradfix.autograd.semantics.operations import each_changed, perhaps_changed, simple
from gradfix.autograd.values import (
    FALSE,
    LONGEST,
    NONE,
    TRUE,
    Class,
    Condition,
    Const,
    Defining,
    Each,
    External,
    Frame,
    Function,
    GradMode,
    Index,
    Instance,
    Length,
    Mapping,
    Module,
    Namespace,
    Opaque,
    Optimizer,
    Params,
    Scaled,
    Sequence,
    Suspended,
    Tensor,
    Value,
    spelled,
    tensors_in,
)

if TYPE_CHECKING:
    from gradfix.autograd.questions import Sorted
    from gradfix.autograd.relevance import Relevance
    from gradfix.autograd.templates import Template


class OutOfFuel(Exception):
    """The run took more steps than its budget; the argument names the function that it was in, if any."""


class Break:
    """Flow: leave the loop."""


class Continue:
    """Flow: next pass."""


class Return:
    """Flow: leave the function with a value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Stop:
    """Flow: an exception or the end of the program."""


Flow = Break | Continue | Return | Stop | None

BREAK, CONTINUE, STOP = Break(), Continue(), Stop()

EXACT = 8
"""A loop over this many known items is run item by item; longer ones run a few passes."""
EXACT_TOTAL = 36
"""... as long as no more than this many passes come of the nest of loops."""
PARTS = 600
"""Loops over so many layers of a network are run layer by layer."""
OUTER_PASSES = 2
ALTERNATIVES = 8
"""Of so many things that a dict lists, each may be the one that is asked for."""
DEPTH = 40
"""How deep calls are followed."""


class Scenario:
    """How conditions that nothing decides come out: the main way, the other way, or some flipped."""

    __slots__ = ("avoided", "earlier", "first", "flipped", "main", "unset")

    def __init__(
        self,
        main: bool = True,
        flipped: Iterable[ast.AST] = (),
        first: Run | None = None,
        unset: bool = False,
        avoided: frozenset[ast.AST] = frozenset(),
    ) -> None:
        self.main = main
        self.flipped = frozenset(flipped)
        self.first = first
        """The main run, in the others."""
        self.unset = unset
        """Whether the options of the command line have their defaults; else they are not known."""
        self.avoided: frozenset[ast.AST] = avoided if first is None else avoided | first.scenario.avoided
        """Conditions whose first way only leads to an exception, which is not how anybody trains."""
        answered = first.answered if first is not None else {}
        self.earlier = frozenset(answered[site] for site in self.flipped if site in answered)
        """Where the questions that are answered the other way came up first, while things were set up."""

    @property
    def other(self) -> bool:
        """Whether some condition is answered the other way than in the main run."""
        return bool(self.flipped) or not self.main or self.unset

    @property
    def chosen(self) -> bool:
        """Whether another item of a dict is taken than in the main run."""
        return any(isinstance(site, Alternative) for site in self.flipped)


class Run:
    """One symbolic execution, with the events and calls it met."""

    def __init__(self, relevance: Relevance, scenario: Scenario, fuel: int) -> None:
        self.relevance = relevance
        self.scenario = scenario
        self.fuel = fuel
        self.serial = 0
        self.path: Path = ()
        self.events: list[Event] = []
        self.sorted: Sorted | None = None
        """The events by kind, made when somebody asks."""
        self.module_calls: list[ModuleCall] = []
        self.current_call: ModuleCall | None = None
        self.grad_enabled: Tri = True
        self.symbolic = 0
        self.pinned = 0
        """How often a condition was decided by which passes a pass can still be."""
        self.left_open = 0
        """How often a condition was decided that its value leaves open."""
        self.turn: tuple[ast.expr, bool, bool] | None = None
        """The condition on the number of a pass that was computed last, see :meth:`turned`."""
        self.unturned: dict[ast.expr, bool | None] = {}
        """Conditions that came out the same so far, and will not in a later pass; None: did not."""
        self.counters: list[tuple[Frame, dict[str, Value]]] = []
        """The loops of unknown length that are running, with the variables from before each."""
        self.parsed = False
        """Whether options of a command line were asked for."""
        self.optional: set[ast.AST] = set()
        """Conditions that options decide."""
        self.departed: set[ast.AST] = set()
        """Those of them that decide about graphs and come out as they did only where an option is given."""
        self.substituted = False
        """Whether weights are replaced by what was computed, in a network's own table of them: whatever that
        network computes then shares a graph that is not followed."""
        self.unfinished = False
        """Whether it was cut off as too much had been run before: what it would have shown is not known."""
        self.impossible = False
        """Whether it ended where no program goes on: it shows nothing by what it does not come to."""
        self.raised = False
        """Whether it ended early by an exception, which the program itself raises or this way leads to."""
        self.inside = False
        """Whether this is a call of a function from outside, rather than a run from the top."""
        self.guesses: list[ast.AST] = []
        """The conditions in whose branches it is, whose answer is a guess."""
        self.each: list[set[str]] = []
        """What each parameter is called in the loops over parameters that are being run."""
        self.some = False
        """What is done to each of them is done to some, by a condition that is not known."""
        self.joined: set[int] = set()
        """The modules of the project whose functions have been run, by the numbers of their lines."""
        self.several: set[tuple[Any, ...]] = set()
        """Unknown numbers by which a loop has made several passes."""
        self.refused: list[ast.AST] = []
        """Those of them when an exception was raised, or the program ended, outermost first."""
        self.weight = 1
        self.stack: Stack = ()
        self.depth = 0
        self.max_depth = DEPTH
        self.catching = 0
        self.active: list[tuple[ast.AST, Module | None]] = []
        """The functions that are running, with the networks whose methods they are."""
        self.entered: set[ast.AST] = set()
        self.nothing: set[ast.AST] = set()
        """Where None is used as if it were something: what cannot be seen must have replaced it."""
        self.undecided: dict[ast.AST, list[Any]] = {}
        self.decisions: dict[Any, bool] = {}
        self.made: set[tuple[ast.AST, str]] = set()
        """The attributes by their classes that hold networks and optimizers since an object was made."""
        self.outset: dict[Any, ast.AST | None] = {}
        """Questions whose answer was guessed while networks and options were set up, and the first place."""
        self.picked: dict[Any, ast.AST] = {}
        """Questions by which an expression of training picks its value, and where they came up first."""
        self.precluding: list[ast.AST] = []
        """Those places whose guess rules out what is asked later: ``if mode == 2``, then ``if mode == 1``."""
        self.answered: dict[ast.AST, ast.AST] = {}
        """Where the questions of training were answered before, while things were set up."""
        self.reversed: set[Any] = set()
        """Questions that were answered the other way there."""
        self.hinged: set[Any] = set()
        """Questions on whose answer it hung whether something is differentiated."""
        self.equals: dict[Any, Any] = {}
        self.equated: dict[Any, ast.AST | None] = {}
        """The conditions whose answers say which value something has."""
        self.ruled_out: dict[ast.AST | None, set[ast.AST]] = {}
        """... and the later ones that it fails for that reason: to ask them takes another answer there."""
        self.kept: list[Value] = []
        """Values whose identity is part of a key: they must not be collected."""
        self.nodes: list[Node] = []
        self.parts: list[Opaque] = []
        """What knows what it is a part of."""
        self.views: list[Tensor] = []
        """What knows what it is a view of."""
        self.templates: dict[Any, Template] = {}
        self.any_number: tuple[str, Opaque | None] | None = None
        """The number of one of several things of one make, of which the first is looked at."""
        self.leaves_known: dict[Module, tuple[int, list[Leaf]]] = {}
        self.mutations = 0
        """How many attributes and items have been written."""
        self.modes = 0
        """How often a network has been put into another mode."""
        self.keyed: dict[Tensor, Opaque] = {}
        """What tensors turned out to be that have items by name."""
        self.appended: list[Sequence] = []
        self.carried: dict[tuple[ast.AST, Path], dict[str, Value]] = {}
        """What carried a graph into each pass but the first."""
        self.before: dict[tuple[ast.AST, Path], dict[str, Value]] = {}
        """What was there before the first pass."""
        self.differentiated: set[Leaf] = set()
        """Leaves with respect to which something was differentiated."""
        self.thawed: set[Leaf] = set()
        """Parameters that were frozen for a while."""
        self.optimizers: list[Optimizer] = []
        self.strangers: list[OptimizerState] = []
        """The optimizers that somebody handed in, where no other is known."""
        self.configured: dict[Module, Value] = {}
        """What the optimizers of Lightning's modules are."""
        self.toggled: Toggled = {}
        self.escapes: list[tuple[int, list[Node]]] = []
        """When something unknown was handed graphs that it could traverse, and their roots."""
        self.returned: list[Node] = []
        """The graphs that a caller outside the file gets hold of."""
        self.unrolled: set[ast.AST] = set()
        """The loops over the parts of the program, see :func:`_names_a_part`."""
        self.yielding: dict[Frame, Callable[[Value], None]] = {}
        """What runs where the context managers that are being entered yield."""
        self.started: set[ast.AST] = set()
        """The functions that processes and threads run."""
        self.lent: set[ast.Call] = set()
        """Calls that stand for what happens in the modules of the project which they lead into."""
        self.chain: Chain | None = None
        """The ``Sequential`` whose layers are being called."""
        self.overwriters: dict[ast.AST, dict[ast.AST, ast.expr | None]] = {}
        """For the call that made a layer which works in place: the calls in which it works on what others may
        hold, each with what it is called on, where that says whose memory it is."""
        self.hooked: set[Node] = set()
        """What somebody watches the gradient of."""
        self.detached: list[tuple[int, Node, ast.AST]] = []
        """What was detached, when and where."""
        self.grad_reads: list[tuple[int, Leaf | None]] = []
        """When a gradient was looked at, and whose."""
        self.starred: list[str] = []
        """Modules from outside of which everything was imported."""
        self.modules: dict[str, Frame] = {}
        """The modules of the project that were imported, by their files."""
        self.passed: dict[imports.Lazy, Value] = {}
        """What imported names of modules that all runs have stand for in this one."""
        self.passing = 0
        """How often something was looked up that is another one in other runs."""
        self.tree: ast.Module | None = None
        """The file, where all of it is run from the top."""
        self.globals = Frame(None, None)
        self.globals.variables["__name__"] = Const("__main__")
        self.top = self.globals
        """The variables of the file that is run from the top: another one, where a script calls this file."""
        self.assigned_from: dict[int, ast.stmt] = {}
        self.statement: ast.stmt | None = None

    # ------------------------------------------------------------------ bookkeeping

    def tick(self) -> int:
        """The next serial number: the order of nodes and events."""
        self.serial += 1
        return self.serial

    def spent(self) -> OutOfFuel:
        """What is raised when the budget is spent: it names the function that has been called first."""
        return OutOfFuel(getattr(self.active[0][0], "name", "") if self.active else "")

    def escaped_after(self, serial: int) -> set[Node]:
        """Every node that something unknown could traverse after the given moment."""
        roots = [(node, True) for at, nodes in self.escapes if at > serial for node in nodes]
        return set(reach(roots))

    def grad_read_between(self, first: int, last: int) -> bool:
        """Whether a gradient was looked at between two serial numbers."""
        return any(first < at < last for at, _ in self.grad_reads)

    def dissolve(self) -> None:
        """Let go of everything, so that it is freed at once: nobody asks about this run any more.

        What happened and the nodes that it happened to hold each other, as variables and functions do.
        """
        self.sorted = None
        for part in self.parts:
            part.parent = None
        for view in self.views:
            view.base = None
        for node in self.nodes:
            node.freed_by = node.call = None
            node.stack = ()
        for event in self.events:
            if isinstance(event, Backward):
                event.visited, event.reached, event.roots, event.failure = {}, {}, [], None
            elif isinstance(event, Step):
                event.optimizer.steps.clear()
                event.consumed = {}
        for frame in (self.globals, self.top, *self.modules.values()):
            if not frame.shared and frame.definitions is None:  # Other runs may have these.
                for value in frame.variables.values():
                    if isinstance(value, (Module, Instance)) or (
                        isinstance(value, Class) and value.frame is frame
                    ):
                        value.attributes = {}
                frame.variables = {}
        kept = (self.nodes, self.events, self.module_calls, self.kept, self.decisions, self.templates)
        for held in (*kept, self.parts, self.views):
            held.clear()

    # ------------------------------------------------------------------ statements

    def block(self, statements: list[ast.stmt], frame: Frame) -> Flow:
        """Execute statements in order until one of them diverts control."""
        for statement in statements:
            self.fuel -= 1
            if self.fuel <= 0:
                raise self.spent()
            self.statement = statement
            handler = STATEMENTS.get(statement.__class__)
            if handler is not None:
                flow = handler(self, statement, frame)
                if flow is not None:
                    return flow
        return None

    def charge(self, steps: int) -> None:
        """Count something as so many statements: it takes as much work.

        Raises:
            OutOfFuel: The budget is spent.
        """
        self.fuel -= steps
        if self.fuel <= 0:
            raise self.spent()

    def file(self, statements: list[ast.stmt], frame: Frame) -> None:
        """Execute a file from its top.

        Raises:
            Stopped: It raises there.
        """
        if isinstance(self.block(statements, frame), Stop):
            raise Stopped

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""
        return EXPRESSIONS[node.__class__](self, node, frame)

    def variable(self, name: str) -> Value:
        """The value of a variable of the file."""
        return _name(self, ast.Name(name, ast.Load()), self.globals)

    def define(self, statement: Defining) -> None:
        """Execute the definition of a function or class of the file."""
        STATEMENTS[statement.__class__](self, statement, self.globals)

    # ------------------------------------------------------------------ conditions

    def decide(
        self,
        test: ast.expr,
        frame: Frame,
        default: bool = True,
        site: ast.AST | None = None,
        guess: bool = True,
    ) -> bool:
        """Whether ``test`` holds: by its value, by an earlier answer, or by the scenario.

        Where nobody is to ``guess``, an earlier answer does not count.
        """
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return not self.decide(test.operand, frame, not default, site, guess)
        parts = test.values if isinstance(test, ast.BoolOp) else _links(test)
        if parts:
            stop = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)
            for part in parts:
                if self.decide(part, frame, default, site, guess) is stop:
                    return stop
            return not stop
        value = self.evaluate(test, frame)
        if self.turn is not None:
            turn, self.turn = self.turn, None
            if site is not None and turn[0] is test and self._matters(site):
                self.turned(*turn)
        known = truth(value)
        if known is not None:
            return known
        passed = value.passed if isinstance(value, (Index, Condition)) else None
        if passed is not None:
            held = passed.holds(value.term)  # type: ignore[attr-defined]
            if held is not None:
                if not held and site is not None and self._matters(site):
                    self.pinned += 1
                return held
        self.left_open += 1
        if site is None and now(value) is (not self.lean(default)):
            # The loop is left in this pass: there is no later one.
            return not self.lean(default)
        if not guess:
            return self.lean(default)
        answer = self._choose(test, value, frame, default, site)
        skips = isinstance(site, ast.If) and isinstance(site.body[-1], ast.Continue)
        if passed is not None and site is not None and (skips or self._matters(site)):
            # Of what only prints, every hundredth time say, nothing is to be concluded.
            passed.learn(value.term, answer)  # type: ignore[attr-defined]
        return answer

    def _matters(self, site: ast.AST) -> bool:
        """Whether a condition decides about gradients or graphs."""
        return self.relevance.touches(site) or self.relevance.shapes(site)

    def _choose(
        self, test: ast.expr, value: Value, frame: Frame, default: bool, site: ast.AST | None
    ) -> bool:
        """Whether a condition holds that its value leaves open."""
        held = self._counted(test, frame)
        if held is not None:
            return held
        key, negated = self.key(test, frame)
        learns = site is not None and self.relevance.differentiates(site)
        given = None
        if key is None and isinstance(test, ast.Call) and isinstance(value, Opaque):
            # A function gives what is asked about elsewhere too: ``def over(self): return self.done``. Where
            # training hangs on it, what was answered before says nothing: the value has changed unseen.
            given = "truth", ("value", id(value))
            if given in self.decisions and not learns:
                return self.decisions[given]
        answer = self._choose_openly(test, value, frame, default, site, key, negated)
        if given is not None:
            self.kept.append(value)
            self.decisions[given] = answer
        if learns:
            self.hinged.add(key or given)
        return answer

    def _counted(self, test: ast.expr, frame: Frame) -> bool | None:
        """Whether a condition holds about a number by which a loop makes two passes or more in this run."""
        if not self.several or not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return None
        op, bound = test.ops[0], test.comparators[0]
        if not isinstance(bound, ast.Constant) or not isinstance(bound.value, int):
            return None
        if self.atom(test.left, frame) not in self.several:
            return None
        match op:
            case ast.Gt() | ast.NotEq() if bound.value <= 1:
                return True
            case ast.GtE() if bound.value <= 2:
                return True
            case ast.LtE() | ast.Eq() if bound.value <= 1:
                return False
            case ast.Lt() if bound.value <= 2:
                return False
        return None

    def repeats(self, iterable: ast.expr, frame: Frame) -> bool:
        """Whether a loop over ``range(n)`` may make a second pass, by what was answered about ``n``."""
        for node in walk(iterable):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", None) == "range"
                and len(node.args) == 1
            ):
                number = self.atom(node.args[0], frame)
                if number is None or number[0] == "const":
                    return True
                if self.decisions.get(("Gt", number, 1)) is False or self.decisions.get(("Eq", number, 1)):
                    return False
                self.several.add(number)
        return True

    def turned_back(self) -> None:
        """The program raises or ends here: the last guess may be why."""
        self.refused = self.guesses.copy()

    def settled(self, test: ast.expr, frame: Frame) -> bool | None:
        """What a condition comes to by the answer that has led to training, or kept it from being run."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            held = self.settled(test.operand, frame)
            return None if held is None else not held
        if isinstance(test, ast.BoolOp):
            stop = isinstance(test.op, ast.Or)
            return stop if any(self.settled(part, frame) is stop for part in test.values) else None
        key, negated = self.key(test, frame)
        return self.decisions[key] is not negated if key in self.hinged and key in self.decisions else None

    def _choose_openly(
        self,
        test: ast.expr,
        value: Value,
        frame: Frame,
        default: bool,
        site: ast.AST | None,
        key: Any,
        negated: bool,
    ) -> bool:
        """Whether a condition holds by the scenario, or by an earlier answer to the same question."""
        trains = site is not None and (
            self.path
            or self.inside
            or self.relevance.touches(site)
            or any(self.relevance.switched(site))
            or self.relevance.started(site)
        )
        if key is not None and key in self.decisions:
            if site is not None and trains and site not in self.undecided:
                # Decided while networks were set up, and asked again where they are trained.
                self.undecided[site] = [key]
                before = self.outset.get(key) or self.picked.get(key)
                if before is not None:
                    self.answered[site] = before
                if self.parsed:
                    held = self.decisions[key] is not negated
                    self._note_options(site, test, value, frame, held)
                if site in self.scenario.flipped and key not in self.reversed:
                    self.answer(test, frame, self.decisions[key] is negated)
            return self.decisions[key] is not negated
        if key is not None and key[0] == "Eq" and key[1] in self.equals:
            guessed = self.outset.get((*key[:2], self.equals[key[1]]))
            if guessed is not None and self.equals[key[1]] != key[2]:
                self.precluding.append(guessed)
            if site is not None:
                self.ruled_out.setdefault(self.equated.get(key[1]), set()).add(site)
            return (self.equals[key[1]] == key[2]) is not negated
        made = _made(self, site, frame) if isinstance(site, ast.If) else None
        if self.parsed and isinstance(site, ast.If) and not trains and site not in self.scenario.avoided:
            # Networks are set up as they are for who gives no options.
            unset = self._without_options(test, value, frame)[1]
            default = default if unset is None else unset
        answer = default if (self.scenario.main if made is None else made) else not default
        among = key is not None and key[0] == "In" and key[2].__class__ is tuple and key[1] in self.equals
        if among:
            assert key is not None
            answer = (self.equals[key[1]] in key[2]) is not negated
        if site is not None and trains and made is None:
            # How networks are set up is taken as it comes; how they are trained is asked both ways.
            self.undecided.setdefault(site, []).append(key)
            if self.parsed:
                self._note_options(site, test, value, frame, answer)
            if isinstance(site, ast.IfExp) and key is not None:
                self.picked[key] = site
            if site in self.scenario.flipped:
                answer = not answer
                if among:
                    assert key is not None
                    self._equals_something_else(key[1])
            elif site in self.scenario.earlier:
                # Who picks by this question what is trained picks by the other answer, too.
                answer = not answer
                self.reversed.add(key)
        elif site in self.scenario.earlier and made is None:
            # Networks that are set up for the other answer are the ones that are trained by it.
            answer = not answer
            self.reversed.add(key)
        if key is not None:
            self._decided(key, answer is not negated)
            if key[1] in self.equals:
                self.equated[key[1]] = site
            if not trains:
                self.outset[key] = site
        return answer

    def supposed(self, test: ast.expr, frame: Frame) -> bool:
        """Whether the answer to a question was guessed while things were set up."""
        key, _ = self.key(test, frame)
        return key is not None and key in self.outset

    def answer(self, test: ast.expr, frame: Frame, holds: bool) -> None:
        """Keep another answer to a question than the one that was guessed."""
        key, negated = self.key(test, frame)
        if key is not None and self.decisions.get(key) is not (holds is not negated):
            if key[0] == "Eq" and key[1] in self.equals:
                self._equals_something_else(key[1])
            self._decided(key, holds is not negated)

    def _decided(self, key: tuple[Any, ...], answer: bool) -> None:
        """Keep the answer to a question, and which value something has by it."""
        self.decisions[key] = answer
        if key[0] == "Eq" and answer and isinstance(key[2], (str, int, float, bool)):
            self.equals[key[1]] = key[2]

    def _note_options(self, site: ast.AST, test: ast.expr, value: Value, frame: Frame, answer: bool) -> None:
        """Note whether options decide a condition, and whether it comes out the same if none is given."""
        decides, unset = self._without_options(test, value, frame)
        if not decides:
            return
        self.optional.add(site)
        # What is decided outside networks, and moves no gradient, decides what the data is.
        differs = unset is not None and unset is not answer
        if differs and (self.current_call is not None or self._matters(site)):
            self.departed.add(site)

    def _without_options(self, test: ast.expr, value: Value, frame: Frame) -> tuple[bool, bool | None]:
        """Whether options decide a condition, and what it comes to if none is given, where that is known."""
        how = None
        sides: list[Value | None] = [value]
        if isinstance(test, ast.Compare):
            how = test.ops[0].__class__
            sides = [self.looked_up(side, frame) for side in (test.left, *test.comparators)]
        if not any(isinstance(side, options.Option) for side in sides):
            return False, None
        given = [side.default if isinstance(side, options.Option) else side for side in sides]
        if len(given) <= 2 and all(isinstance(side, Const) for side in given):
            values = [side.value for side in given]  # type: ignore[union-attr]
            with contextlib.suppress(TypeError):
                return True, bool(values[0] if how is None else COMPARE[how](*values))
        return True, None

    def asked_for(self, node: ast.expr, held: Value, name: ast.expr, frame: Frame) -> Value | None:
        """The function or class that is looked up in a dict, or in a module of the project, by a ``name``.

        None if what is held there are other things, or so many that any of them could be meant.
        """
        if not isinstance(held, (Mapping, Namespace)):
            return None
        made = _offered(self, held)
        return _alternative(self, node, made, name, frame) if 0 < len(made) <= ALTERNATIVES else None

    def looked_up(self, node: ast.expr, frame: Frame) -> Value | None:
        """The value of what can be evaluated once more, as it calls nothing."""
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value
        with contextlib.suppress(Impossible):  # it is not bound yet
            return self.evaluate(node, frame) if isinstance(base, (ast.Name, ast.Constant)) else None
        return None

    def _equals_something_else(self, atom: tuple[Any, ...]) -> None:
        """Forget which value something has: it is asked about as if it had another."""
        del self.equals[atom]
        for known in [k for k in self.decisions if k[0] == "Eq" and k[1] == atom]:
            del self.decisions[known]

    def lean(self, answer: bool) -> bool:
        """The default with which :meth:`decide` gives ``answer`` in every scenario."""
        return answer if self.scenario.main else not answer

    def key(self, test: ast.expr, frame: Frame) -> tuple[Any, bool]:
        """What is asked, so that the same question about the same values gets the same answer.

        Returns the key (None where the question cannot be recognised) and whether ``test`` negates it.
        """
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            name = test.ops[0].__class__.__name__
            negated = name in ("NotEq", "IsNot", "NotIn")
            name = {"NotEq": "Eq", "IsNot": "Is", "NotIn": "In"}.get(name, name)
            left, right = self.atom(test.left, frame), self.atom(test.comparators[0], frame)
            if left is None or right is None:
                return None, negated
            return (name, left, right[1] if right[0] == "const" else right), negated
        atom = self.atom(test, frame)
        return (None if atom is None else ("truth", atom)), False

    def atom(self, node: ast.expr, frame: Frame) -> tuple[Any, ...] | None:
        """A comparable stand-in for a value that is looked up or computed without a call."""
        if isinstance(node, ast.Constant):
            return ("const", node.value)
        if isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(e, ast.Constant) for e in node.elts):
            return ("const", tuple(e.value for e in node.elts if isinstance(e, ast.Constant)))
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = self.evaluate(node, frame)
            if isinstance(value, Const):
                try:
                    hash(value.value)
                except TypeError:
                    return None
                return ("const", value.value)
            if isinstance(value, External):
                return ("external", value.name)
            self.kept.append(value)
            return ("value", id(value))
        if isinstance(node, ast.BinOp):
            left, right = self.atom(node.left, frame), self.atom(node.right, frame)
            if left is None or right is None:
                return None
            return (node.op.__class__.__name__, left, right)
        if isinstance(node, ast.Subscript):
            left, right = self.atom(node.value, frame), self.atom(node.slice, frame)
            if left is None or right is None:
                return None
            return ("item", left, right)
        if isinstance(node, ast.Call):
            parts = [self.atom(a, frame) for a in [node.func, *node.args]]
            if not node.keywords and all(p is not None for p in parts) and parts[0][0] == "external":  # type: ignore[index]
                if "rand" in parts[0][1]:  # type: ignore[index]
                    return None
                return ("call", *parts)
        return None

    # ------------------------------------------------------------------ tensors

    def node(self, op: str, site: ast.AST) -> Node:
        """A new node of the graph, recorded here and now."""
        self.serial += 1
        node = Node(op, site, self.serial, self.path, self.current_call, self.stack)
        self.nodes.append(node)
        return node

    def part_of(self, value: Opaque, name: str) -> Opaque:
        """An unknown part of an unknown value."""
        part = Opaque(name, None, value)
        self.parts.append(part)
        return part

    def change(self, tensor: Tensor, site: ast.AST, what: str, layer: Module | None = None) -> Change:
        """An in-place change of a tensor's memory."""
        event = Change(self.home(site), self.path, self.tick(), what, layer=layer)
        self.events.append(event)
        tensor.storage.move(event)
        return event

    # ------------------------------------------------------------------ imported modules

    def home(self, node: ast.AST) -> ast.AST:
        """Where in this file something happens: ``node``, or the call that leads into a module.

        What happens in a loop of the module is the module's own affair, and keeps its place there.
        """
        if node.lineno > 0 or any(loop.lineno <= 0 for loop, _ in self.path):  # type: ignore[attr-defined]
            return node
        for call, _ in reversed(self.stack):
            if isinstance(call, ast.Call) and call.lineno > 0:
                self.lent.add(call)
                return call
        return node

    def operand(self, value: Value, expression: ast.expr) -> ast.expr:
        """What this file calls a value that a module of the project names by ``expression``."""
        if expression.lineno > 0:
            return expression
        for _, args in reversed(self.stack):
            for given, written in args:
                if given is value and written.lineno > 0:
                    return written
        return expression

    # ------------------------------------------------------------------ loops

    def passes(self, node: ast.For | ast.While | ast.AsyncFor) -> int:
        """How many passes to run of a loop whose length is unknown."""
        if not self.relevance.touches(node):
            return 2
        if self.relevance.nests(node, self.unrolled):
            return 1 if self.relevance.quiet_around(node) else OUTER_PASSES
        return 2

    def numbers(self, node: ast.For | ast.While | ast.AsyncFor) -> Iterator[int]:
        """The numbers of the passes to run; what a pass shows of inner loops may ask for more of them."""
        number, shown = 0, _Shown(self, node)
        while number < self.passes(node) + shown.asks_for_more():
            shown.begin()
            yield number
            number += 1

    def turned(self, test: ast.expr, holds: bool, turns: bool) -> None:
        """Note how a condition on the number of a pass came out, and whether it may turn in a later one."""
        if self.unturned.get(test, holds) is not holds:
            self.unturned[test] = None
        elif turns:
            self.unturned.setdefault(test, holds)

    def counts(self, target: ast.expr, frame: Frame) -> bool:
        """Whether a variable counts the passes of a loop of unknown length: it was there before the loop."""
        if not isinstance(target, ast.Name):
            return bool(self.symbolic)
        return any(home is frame and target.id in names for home, names in self.counters)

    def loop(
        self,
        node: ast.For | ast.While | ast.AsyncFor,
        frame: Frame,
        items: Iterator[Value | None],
        symbolic: bool,
        count: int,
        unrolled: bool = False,
    ) -> Flow:
        """Run the passes of a loop; ``items`` gives what each pass binds (None: nothing).

        Args:
            symbolic: The number of passes is not known. It may also turn out in time (``UNSURE``): of
                ``done = False; while not done:`` it is only known that there is a first one.
            count: How many passes are run at most.
            unrolled: The passes are no repetitions, see :func:`_names_a_part`.
        """
        outer, weight = self.path, self.weight
        before = self.variables_for(node, frame)
        if symbolic:
            self.counters.append((frame, before))
        self.weight *= max(count, 1)
        self.symbolic += symbolic
        watched = not unrolled and self.relevance.touches(node)
        flow: Flow = None
        broken, left_open = False, self.left_open
        try:
            for number, item in enumerate(items):
                if item is UNSURE and not symbolic:
                    symbolic = True
                    self.symbolic += 1
                    self.counters.append((frame, before))
                if watched:
                    self.path = (*outer, (node, number))
                    if number:
                        self.carried[node, self.path] = carried(self.variables_for(node, frame))
                    else:
                        self.before[node, outer] = named(before)
                if item is not None and not isinstance(node, ast.While):
                    assign(self, node.target, item, frame, None)
                flow = self.block(node.body, frame)
                if isinstance(flow, Continue):
                    flow = None
                if isinstance(flow, Break):
                    broken, flow = True, None
                    break
                if flow is not None:
                    return flow
        finally:
            self.path, self.weight = outer, weight
            self.symbolic -= symbolic
            if symbolic:
                _, known_before = self.counters.pop()
                self.forget_counters(node, frame, known_before)
        if node.orelse and not broken:
            # Of something that is looked for, and raised if it is not there, a program that works finds one.
            sought = isinstance(node.orelse[-1], ast.Raise) and self.left_open > left_open
            if not (sought and self.scenario.main):
                flow = self.block(node.orelse, frame)
        return flow

    def variables_for(self, loop: ast.AST, frame: Frame) -> dict[str, Value]:
        """The variables of a frame that the passes of a loop may use, as they are now."""
        variables = frame.variables
        home = frame.function.node if frame.function is not None else None
        return {n: variables[n] for n in self.relevance.names(loop, home) if n in variables}

    def forget_counters(self, loop: ast.AST, frame: Frame, before: dict[str, Value]) -> None:
        """After a loop of unknown length nobody knows how far it has counted."""
        for name, value in self.variables_for(loop, frame).items():
            if value.__class__ in COUNTING and before.get(name) is not value:
                frame.variables[name] = Opaque("counter")


class _Shown:
    """What the passes of a running loop have shown, as far as it asks for another pass."""

    __slots__ = ("first", "last", "nodes", "pinned", "run", "trains", "unturned")

    def __init__(self, run: Run, loop: ast.AST) -> None:
        self.run = run
        self.trains = run.relevance.differentiates(loop)
        self.pinned = run.pinned
        self.unturned = len(run.unturned)
        self.first = run.serial
        self.begin()

    def begin(self) -> None:
        """A pass begins."""
        self.last = self.run.serial
        self.nodes = len(self.run.nodes)

    def asks_for_more(self) -> bool:
        """Whether there is something that only a further pass would show.

        A condition on the number of the pass has kept something from being run. Or a graph is handed on from
        pass to pass: a recurrent step is first stale in the third (autograd_facts: RNN).
        """
        if self.run.pinned > self.pinned:
            return True
        if len(self.run.unturned) > self.unturned:
            news = itertools.islice(self.run.unturned.values(), self.unturned, None)
            if any(outcome is not None for outcome in news):
                return True
        if self.last == self.first or not self.trains:
            return False
        made = self.run.nodes[self.nodes :]
        return any(self.first < edge.node.serial <= self.last for node in made for edge in node.edges)


UNSURE = Opaque("pass")
"""What stands for a pass of a ``while`` of which nobody knows whether it comes."""
COUNTING = (Index, Condition)
NUMBERED = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList"})
"""Networks that hold layers by their number."""
PLAIN = frozenset({External, Function, Class, Optimizer, Params})
"""What can be handed on from pass to pass without consequence."""


def named(variables: dict[str, Value]) -> dict[str, Value]:
    """What can be named in a frame: access path as source text -> value."""
    found: dict[str, Value] = {}
    for name, value in variables.items():
        if value.__class__ not in PLAIN:
            _named(name, value, found, 2)
    return found


def _named(name: str, value: Value, found: dict[str, Value], depth: int) -> None:
    if isinstance(value, Mapping):
        for key, held in value.items.items():
            if isinstance(key, str) and key.isidentifier() and held.__class__ not in PLAIN:
                _named(f'{name}["{key}"]', held, found, 0)
    elif isinstance(value, (Module, Instance)):
        if depth:
            for attribute, held in value.attributes.items():
                if held.__class__ not in PLAIN:
                    _named(f"{name}.{attribute}", held, found, depth - 1)
            if isinstance(value, Module) and value.kind in NUMBERED:
                for place, layer in enumerate(value.items):
                    _named(f"{name}[{place}]", layer, found, depth - 1)
    else:
        found[name] = value


def carried(variables: dict[str, Value]) -> dict[str, Value]:
    """What a new pass inherits that carries a graph."""
    return {
        name: value
        for name, value in named(variables).items()
        if value.__class__ is not Const and any(t.node is not None for t in tensors_in(value))
    }


def now(value: Value) -> bool | None:
    """What a condition on the number of a pass comes to in this pass, or None if it is no such condition.

    Where it decides what a pass does, it is left open, since passes of all numbers come in the end. Where
    it decides whether there is another pass, it is not.
    """
    if isinstance(value, Condition):
        return value.holds
    return bool(value.number) if isinstance(value, Index) else None


@lru_cache(maxsize=1024)
def _links(test: ast.expr) -> list[ast.expr]:
    """The comparisons that a chained one is the conjunction of, if none of its operands is computed anew."""
    if not isinstance(test, ast.Compare) or len(test.ops) == 1:
        return []
    acting = (ast.Call, ast.NamedExpr, ast.Await)
    if any(isinstance(n, acting) for c in test.comparators for n in walk(c)):
        return []
    operands = [test.left, *test.comparators]
    return [
        ast.copy_location(ast.Compare(left, [op], [right]), test)
        for left, op, right in zip(operands, test.ops, operands[1:])
    ]


def truth(value: Value) -> bool | None:
    """Python's truth of a value, or None where it cannot be known."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Sequence):
        return True if value.items else (None if value.open else False)
    if isinstance(value, Mapping):
        return True if value.items else (None if value.open else False)
    if isinstance(value, (Function, Class, Optimizer, Instance)):
        return True
    if isinstance(value, Module):
        return True
    return None


# ---------------------------------------------------------------------- statement handlers


def _assign(run: Run, node: ast.Assign, frame: Frame) -> Flow:
    value = run.evaluate(node.value, frame)
    for target in node.targets:
        assign(run, target, value, frame, node.value)
    return None


def _annotated(run: Run, node: ast.AnnAssign, frame: Frame) -> Flow:
    if node.value is not None:
        assign(run, node.target, run.evaluate(node.value, frame), frame, node.value)
    return None


def assign(run: Run, target: ast.expr, value: Value, frame: Frame, source: ast.expr | None) -> None:
    """Bind ``value`` to a target of any form."""
    kind = target.__class__
    if kind is ast.Name:
        name = target.id  # type: ignore[attr-defined]
        holder = frame.home(name) if frame.nonlocals else frame
        holder.variables[name] = value
    elif kind is ast.Attribute:
        set_attribute(run, run.evaluate(target.value, frame), target.attr, value, target)  # type: ignore[attr-defined]
    elif kind is ast.Subscript:
        set_item(run, target, value, frame)  # type: ignore[arg-type]
    elif kind in (ast.Tuple, ast.List):
        _unpack(run, target.elts, value, frame, source)  # type: ignore[attr-defined]
    elif kind is ast.Starred:
        assign(run, target.value, value, frame, None)  # type: ignore[attr-defined]


def _unpack(run: Run, targets: list[ast.expr], value: Value, frame: Frame, source: ast.expr | None) -> None:
    starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    if isinstance(value, Sequence) and not value.open:
        items = value.items
        if starred is None and len(items) == len(targets):
            for target, item in zip(targets, items):
                assign(run, target, item, frame, None)
            return
        if starred is not None and len(items) >= len(targets) - 1:
            tail = len(targets) - starred - 1
            middle = items[starred : len(items) - tail]
            parts = [*items[:starred], Sequence("list", middle), *items[len(items) - tail :]]
            for target, item in zip(targets, parts):
                assign(run, target, item, frame, None)
            return
    for number, target in enumerate(targets):
        assign(run, target, dispatch.item(run, value, Const(number), source or target), frame, None)


def _augmented(run: Run, node: ast.AugAssign, frame: Frame) -> Flow:
    target = node.target
    old = run.evaluate(target, frame)
    operand = run.evaluate(node.value, frame)
    if isinstance(old, Tensor):
        changed = inplace_binary(run, old, operand, node)
        if not isinstance(target, ast.Name):
            # x[i] += y writes back through the container; the tensor itself has changed in place.
            if isinstance(target, ast.Subscript):
                set_item(run, target, changed, frame)
            else:
                assign(run, target, changed, frame, None)
            return None
        assign(run, target, changed, frame, None)
        return None
    if isinstance(old, Each):
        each_changed(run, old, node)
        return None
    if isinstance(old, Sequence) and old.kind == "list" and isinstance(node.op, ast.Add):
        extend(run, old, operand)
        return None
    if isinstance(old, (Const, Index)) and isinstance(operand, Const) and run.counts(target, frame):
        named = isinstance(target, ast.Name)
        value = counted(node.op, old, operand) if named else Opaque("counter")
        assign(run, target, value, frame, None)
        return None
    result = binary(run, node.op, old, operand, node.target, node.value, node)
    if old.__class__ is Opaque and old.storage is not None:
        # Of a number this makes another one, a tensor is changed in place.
        perhaps_changed(old)
        if result.__class__ is Opaque:
            result.storage = old.storage
        elif isinstance(result, Tensor):
            result.storage.may_be(old.storage)
    assign(run, target, result, frame, None)
    return None


def _expression(run: Run, node: ast.Expr, frame: Frame) -> Flow:
    value = node.value
    if isinstance(value, ast.Call):
        function = value.func
        if isinstance(function, ast.Attribute) and function.attr == "add_argument":
            options.learn(run.evaluate(function.value, frame), value)
            return None
        if not run.relevance.touches(node) and _only_tells(run, function, frame):
            return None
        result = call_expression(run, value, frame, discarded=True)
        if isinstance(result, GradMode) and result.switch:
            run.grad_enabled = result.enabled
        if result is NEVER:
            return STOP
    elif not isinstance(value, ast.Constant):
        run.evaluate(value, frame)
    return None


def _only_tells(run: Run, function: ast.expr, frame: Frame) -> bool:
    """Whether a call whose result is dropped only prints, logs, plots or saves."""
    while isinstance(function, ast.Attribute):
        function = function.value
    if not isinstance(function, ast.Name):
        return False
    if function.id == "print":
        return True
    value = _name(run, function, frame)
    if isinstance(value, External):
        return value.name.split(".", 1)[0] in HARMLESS
    return isinstance(value, Opaque) and value.harmless


def _bails_out(body: list[ast.stmt]) -> bool:
    """Whether a suite ends by leaving what it stands in."""
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)) or (
        isinstance(body[-1], ast.Expr)
        and isinstance(body[-1].value, ast.Call)
        and isinstance(body[-1].value.func, (ast.Attribute, ast.Name))
        and (getattr(body[-1].value.func, "attr", None) or getattr(body[-1].value.func, "id", None))
        in ("exit", "quit", "_exit")
    )


def _answers(statement: ast.stmt) -> bool:
    """Whether a statement returns something that was computed."""
    return (
        isinstance(statement, ast.Return)
        and statement.value is not None
        and not isinstance(statement.value, ast.Constant)
    )


def _if(run: Run, node: ast.If, frame: Frame) -> Flow:
    ends = _ends_recursion(run, node.body, node.orelse)
    if ends is not None:
        return run.block(node.body if run.decide(node.test, frame, run.lean(ends)) else node.orelse, frame)
    if _bails_out(node.body) and not node.orelse:
        # Nothing is learned from leaving early: it is taken only where the values say so. What gives another
        # result, as against none, is one of two ways.
        last = node.body[-1]
        site = node if (run.depth and _answers(last)) or _skips_by_number(run, node, frame) else None
        default = node in run.scenario.avoided if site else not run.scenario.main
        # What was guessed before is no reason to end the program, nor, if that was while things were set up,
        # to leave out what comes.
        anew = site is None and not isinstance(last, ast.Raise) and run.supposed(node.test, frame)
        open_before = run.left_open
        taken = run.decide(node.test, frame, default, site, not anew and not isinstance(last, ast.Raise))
        if site and not taken and run.left_open > open_before:
            run.guesses.append(node)  # The rest of the function is the other way.
        if run.left_open > open_before and _picks(run, node.test):
            run.some = True
        if anew:
            run.answer(node.test, frame, taken)
    elif isinstance(node.body[-1], ast.Raise) and not isinstance(node.orelse[-1], ast.Raise):
        taken = run.decide(node.test, frame, not run.scenario.main, guess=False)
    else:
        open_before = run.left_open
        taken = run.decide(node.test, frame, node not in run.scenario.avoided, node)
        if run.left_open > open_before:
            before, some = len(run.guesses), run.some
            run.guesses.append(node)
            run.some = some or _picks(run, node.test)
            try:
                return run.block(node.body if taken else node.orelse, frame)
            finally:
                del run.guesses[before:]
                run.some = some
    return run.block(node.body if taken else node.orelse, frame)


def _picks(run: Run, test: ast.expr) -> bool:
    """Whether a condition picks parameters, as ``if "head" in name`` does in a loop over them."""
    picked = set().union(*run.each)
    return bool(picked) and any(isinstance(n, ast.Name) and n.id in picked for n in walk(test))


def _skips_by_number(run: Run, node: ast.If, frame: Frame) -> bool:
    """Whether a pass leaves out the rest by its number, as in ``if i % 5: continue``: others do it all."""
    test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
    if not isinstance(node.body[-1], ast.Continue) or any(isinstance(n, ast.Call) for n in walk(test)):
        return False
    return isinstance(run.evaluate(test, frame), (Index, Condition))


def _made(run: Run, node: ast.If, frame: Frame) -> bool | None:
    """Which way makes a network by a class that can be seen, where the other one gets it from elsewhere."""
    if run.relevance.touches(node):
        return None
    for target, ways in _made_by(node):
        made: set[bool] = set()
        unseen: set[bool] = set()
        for way, function in ways.items():
            value = run.looked_up(function, frame)
            known = (
                value.name.startswith("torch.nn.")
                if isinstance(value, External)
                else isinstance(value, Class)
            )
            if known or value.__class__ in (External, Opaque):
                (made if known else unseen).add(way)
        if len(ways) == 1 and isinstance(run.looked_up(target, frame), Module):
            made = {not way for way in ways}
        if len(made) == len(unseen) == 1 and made != unseen:
            return True in made
    return None


@lru_cache(maxsize=1024)
def _made_by(node: ast.If) -> list[tuple[ast.expr, dict[bool, ast.expr]]]:
    """What the ways of a condition assign from calls: each target, with what is called first for it."""
    targets: dict[str, ast.expr] = {}
    called: dict[str, dict[bool, ast.expr]] = {}
    for way, suite in ((True, node.body), (False, node.orelse)):
        for statement in suite:
            if isinstance(statement, ast.Assign) and isinstance(
                statement.targets[0], (ast.Name, ast.Attribute)
            ):
                name, value = ast.unparse(statement.targets[0]), statement.value
                function = None
                while isinstance(value, (ast.Call, ast.Attribute, ast.Subscript)):
                    function = value.func if isinstance(value, ast.Call) else function
                    value = value.func if isinstance(value, ast.Call) else value.value
                if function is not None:
                    targets[name] = statement.targets[0]
                    called.setdefault(name, {}).setdefault(way, function)
    return [(targets[name], ways) for name, ways in called.items()]


def _ends_recursion(
    run: Run, body: list[ast.stmt] | ast.expr, orelse: list[ast.stmt] | ast.expr
) -> bool | None:
    """Which way a condition goes in a call of a function from inside itself: the one that ends it.

    None where it says nothing: elsewhere, or if both ways call the function again, or neither does and the
    function goes on.
    """
    if len(run.active) < 2 or run.active[-1] not in run.active[:-1]:
        return None
    name = getattr(run.active[-1][0], "name", "")
    again, otherwise = (_mentions(part, name) for part in (body, orelse))
    if again or otherwise:
        return None if again and otherwise else otherwise
    return True if isinstance(body, list) and isinstance(body[-1], ast.Return) and not orelse else None


def _mentions(code: list[ast.stmt] | ast.expr, name: str) -> bool:
    return any(
        name in (getattr(node, "id", ""), getattr(node, "attr", ""))
        for part in (code if isinstance(code, list) else [code])
        for node in walk(part)
    )


def _for(run: Run, node: ast.For | ast.AsyncFor, frame: Frame) -> Flow:
    iterable = run.evaluate(node.iter, frame)
    made = generator(iterable)
    if made is not None:
        return _drive(run, made, node, frame)
    items, element = dispatch.iterate(run, iterable, node.iter)
    if items is not None:
        if len(items) <= PARTS and all(isinstance(i, Module) for i in items):
            # The parts of a network: a reset that left some out would be no reset.
            return run.loop(node, frame, iter(items), False, 1)
        # Fifty steps of a sampler that leave no graph are as good as a few.
        graphless = run.grad_enabled is False and run.current_call is not None
        limit = EXACT if graphless or run.relevance.differentiates(node) else 64
        if len(items) <= limit and run.weight * len(items) <= EXACT_TOTAL * (1 if limit == EXACT else 8):
            if any(is_each(i) for i in items):
                return _over_parameters(run, node, frame, items)
            unrolled = all(_names_a_part(i) for i in items)
            if unrolled:
                run.unrolled.add(node)
            return run.loop(node, frame, iter(items), False, len(items), unrolled)
        if not isinstance(items[0], Const):
            return run.loop(node, frame, iter(items[:3]), True, 3)
    if not run.repeats(node.iter, frame):
        return run.loop(node, frame, iter([element(0)]), True, 1)
    count = run.passes(node)
    return run.loop(node, frame, map(element, run.numbers(node)), True, count)


def _over_parameters(run: Run, node: ast.For | ast.AsyncFor, frame: Frame, items: list[Value]) -> Flow:
    some = run.some
    run.each.append({name.id for name in walk(node.target) if isinstance(name, ast.Name)})
    try:
        return run.loop(node, frame, iter(items), False, len(items))
    finally:
        run.each.pop()
        run.some = some


def _names_a_part(item: Value) -> bool:
    """Whether a loop over such items goes over the parts of a program, and not over time or data.

    Its passes are different statements rather than repetitions of one: they belong to one pass of the loop
    around them.
    """
    if isinstance(item, Const):
        return isinstance(item.value, str)
    if isinstance(item, Sequence):
        return any(_names_a_part(i) for i in item.items)
    return isinstance(item, (Module, Optimizer, Function))


def _while(run: Run, node: ast.While, frame: Frame) -> Flow:
    def items() -> Iterator[Value | None]:
        number, shown = 0, _Shown(run, node)
        while True:
            limit = run.passes(node) + shown.asks_for_more()
            shown.begin()
            value = run.evaluate(node.test, frame)
            known = truth(value) if not isinstance(node.test, ast.BoolOp) else _known(run, node.test, frame)
            if known is False or (number and now(value) is False):
                return
            if number and known is None and run.settled(node.test, frame) is False:
                return  # ``while not done:``, with ``if done: learn()`` at the end of the episode.
            if number >= (EXACT if known and not isinstance(node.test, ast.Constant) else limit):
                return
            yield UNSURE if number and known is None else None
            number += 1

    symbolic = isinstance(node.test, ast.Constant) or _known(run, node.test, frame) is None
    return run.loop(node, frame, items(), symbolic, run.passes(node))


def _known(run: Run, test: ast.expr, frame: Frame) -> bool | None:
    """Whether a condition holds, as far as the values of all its parts tell."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        held = _known(run, test.operand, frame)
        return None if held is None else not held
    if isinstance(test, ast.BoolOp):
        stop = isinstance(test.op, ast.Or)
        parts = [_known(run, part, frame) for part in test.values]
        return stop if stop in parts else None if None in parts else not stop
    return truth(run.evaluate(test, frame))


def _with(run: Run, node: ast.With | ast.AsyncWith, frame: Frame) -> Flow:
    enabled = run.grad_enabled
    flow = _enter(run, node, 0, frame)
    run.grad_enabled = enabled
    return flow


def _enter(run: Run, node: ast.With | ast.AsyncWith, position: int, frame: Frame) -> Flow:
    """Run the body of a ``with`` within its contexts from ``position`` on."""
    if position == len(node.items):
        return run.block(node.body, frame)
    entry = node.items[position]
    context = run.evaluate(entry.context_expr, frame)

    def inside(held: Value) -> Flow:
        if entry.optional_vars is not None:
            assign(run, entry.optional_vars, held, frame, None)
        return _enter(run, node, position + 1, frame)

    if isinstance(context, Suspended):
        return _resume(run, context, inside)
    if isinstance(context, Instance):
        return _within_instance(run, context, node, inside)
    if isinstance(context, GradMode):
        run.grad_enabled = context.enabled
    if isinstance(context, Scaled):
        return inside(context.loss)
    catches = _suppresses(entry.context_expr)
    run.catching += catches
    flow = inside(context if isinstance(context, (Module, Optimizer)) else Opaque("context"))
    run.catching -= catches
    return flow


def _resume(run: Run, context: Suspended, inside: Callable[[Value], Flow]) -> Flow:
    """Run a ``contextmanager`` of the project, and what is inside of it where it yields."""
    left: list[Flow] = []
    stack, statement, call = run.stack, run.statement, run.current_call

    def body(held: Value) -> None:
        within = run.stack
        run.stack = stack
        left.append(inside(held))
        run.stack = within

    run.yielding[context.frame] = body
    try:
        run.block(context.node.body, context.frame)
    finally:
        del run.yielding[context.frame]
        run.stack, run.statement, run.current_call = stack, statement, call
    return left[0] if left else None


class _Closed(Exception):
    """The loop over a generator is left: what it would do after that is not done."""


def _drive(run: Run, made: Made, node: ast.For | ast.AsyncFor, frame: Frame) -> Flow:
    """Run a generator of the project that differentiates, and a pass of the loop over it where it yields."""
    left: list[Flow] = []
    passes = itertools.count()
    path, catching, enabled = run.path, run.catching, run.grad_enabled

    def body(item: Value) -> None:
        within, run.path = run.path, (*path, (node, next(passes)))
        assign(run, node.target, made.item(item), frame, None)
        flow = run.block(node.body, frame)
        run.path = within
        if flow is not None and not isinstance(flow, Continue):
            left.append(flow)
            raise _Closed

    try:
        exhaust(run, made.call, body)
    except _Closed:
        run.path, run.catching, run.grad_enabled = path, catching, enabled
        return None if isinstance(left[0], Break) else left[0]
    return run.block(node.orelse, frame)


def exhaust(run: Run, call: Suspended, item: Callable[[Value], None] = lambda value: None) -> None:
    """Run a generator of the project to its end.

    Args:
        item: What somebody does with each value that it yields, before it goes on.

    Raises:
        Stopped: It raises.
    """
    if run.depth >= run.max_depth:
        return
    run.entered.add(call.node)
    outside = run.stack, run.statement, run.current_call, run.depth

    def body(value: Value) -> None:
        within = run.stack, run.statement, run.current_call, run.depth
        run.stack, run.statement, run.current_call, run.depth = outside
        item(value)
        run.stack, run.statement, run.current_call, run.depth = within

    run.yielding[call.frame] = body
    run.depth += 1
    try:
        if isinstance(run.block(call.node.body, call.frame), Stop):
            raise Stopped
    finally:
        del run.yielding[call.frame]
        run.stack, run.statement, run.current_call, run.depth = outside


def _within_instance(
    run: Run, context: Instance, node: ast.With | ast.AsyncWith, inside: Callable[[Value], Flow]
) -> Flow:
    """Run ``__enter__`` and ``__exit__`` of a class of the project, where it has them."""
    names = ("__aenter__", "__aexit__") if isinstance(node, ast.AsyncWith) else ("__enter__", "__exit__")
    enter, leave = (context.cls.lookup(name) for name in names)
    held: Value = context
    if isinstance(enter, Function):
        held = call_function(run, enter.bind(context), [], {}, node)
    flow = inside(held)
    if isinstance(leave, Function):
        nothing: list[Argument] = [(NONE, ast.copy_location(ast.Constant(None), node))] * 3
        call_function(run, leave.bind(context), nothing, {}, node)
    return flow


def _suppresses(context: ast.expr) -> bool:
    """Whether this is ``suppress(RuntimeError)`` or the like."""
    if not isinstance(context, ast.Call):
        return False
    name = getattr(context.func, "attr", None) or getattr(context.func, "id", None)
    return name == "suppress" and any(_is_runtime_error(kind) for kind in context.args)


def _try(run: Run, node: ast.Try, frame: Frame) -> Flow:
    catching, enabled, call = run.catching, run.grad_enabled, run.current_call
    run.catching += any(_catches_runtime_error(h) for h in node.handlers)
    try:
        flow = run.block(node.body, frame)
    except Exited:
        raise
    except Stopped:  # raised in a function that was called
        if not node.handlers:
            raise
        flow = STOP
        run.grad_enabled, run.current_call = enabled, call
    run.catching = catching
    if isinstance(flow, Stop) and node.handlers:
        flow = run.block(node.handlers[0].body, frame)
    elif flow is None:
        flow = run.block(node.orelse, frame)
    final = run.block(node.finalbody, frame)
    return final if final is not None else flow


ERRORS = (
    "Trying to backward through the graph a second time",
    "one of the variables needed for gradient computation has been modified by an inplace operation",
)
"""Autograd's errors, as their texts begin (E1, E2)."""


def _catches_runtime_error(handler: ast.ExceptHandler) -> bool:
    """Whether autograd's errors end in this handler: those that it does not look for may be raised again."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not any(kind is None or _is_runtime_error(kind) for kind in kinds):
        return False
    inside = list(walk(handler))
    return not any(isinstance(part, ast.Raise) for part in inside) or any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and any(part.value in error for error in ERRORS)
        for part in inside
    )


def _is_runtime_error(kind: ast.expr) -> bool:
    return isinstance(kind, ast.Name) and kind.id in ("RuntimeError", "Exception", "BaseException")


def _return(run: Run, node: ast.Return, frame: Frame) -> Flow:
    return Return(NONE if node.value is None else run.evaluate(node.value, frame))


def _raise(run: Run, node: ast.Raise, frame: Frame) -> Flow:
    run.turned_back()
    return STOP


def _assert(run: Run, node: ast.Assert, frame: Frame) -> Flow:
    # Written to end here: ``assert 0, "unknown kind of loss"``.
    if isinstance(node.test, ast.Constant) and not node.test.value:
        run.turned_back()
        return STOP
    return None


def _function(run: Run, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Flow:
    function: Value = Function(node, frame)
    for decorator in reversed(node.decorator_list):
        function = decorate(run, function, decorator, frame)
    frame.home(node.name).variables[node.name] = function
    return None


def _class(run: Run, node: ast.ClassDef, frame: Frame) -> Flow:
    bases = [run.evaluate(b, frame) for b in node.bases]
    cls = Class(node, bases, frame)
    body = Frame(frame, None)
    run.block(node.body, body)
    cls.attributes = body.variables
    for value in cls.attributes.values():
        for function in (value, getattr(value, "function", None)):
            if isinstance(function, Function):
                function.owner = cls
                function.frame = frame
    frame.variables[node.name] = cls
    return None


def _import(run: Run, node: ast.Import, frame: Frame) -> Flow:
    origin = imports.origin_of(frame)
    for alias in node.names:
        module = alias.name if alias.asname else alias.name.split(".", 1)[0]
        path = imports.locate(module, origin)
        value: Value | None = None
        if path is not None:
            near = frame in (run.globals, run.top)
            value = imports.namespace(run, path) if near else imports.Lazy(module, "", origin)
        elif module != alias.name:
            value = imports.outermost(alias.name, origin)
        frame.variables[alias.asname or module] = External(module) if value is None else value
    return None


def _import_from(run: Run, node: ast.ImportFrom, frame: Frame) -> Flow:
    module = "." * node.level + (node.module or "")
    origin = imports.origin_of(frame)
    path = imports.locate(module, origin)
    local = path is not None or (node.level and not node.module)
    # Only what this very file imports can make its own lines relevant.
    eager = path is not None and frame is run.globals and imports.trains(path)
    for alias in node.names:
        if alias.name == "*" and not local:
            run.starred.append(module)
            continue
        if local and alias.name == "*":
            held = imports.load(run, path or "")
            if held is not None:
                frame.variables.update(held.variables)
            continue
        if local and not eager:
            frame.variables[alias.asname or alias.name] = imports.Lazy(module, alias.name, origin)
            continue
        inner = None if local else imports.locate(f"{module}.{alias.name}", origin)
        if inner is not None and not (frame is run.globals and imports.trains(inner)):
            frame.variables[alias.asname or alias.name] = imports.Lazy(f"{module}.{alias.name}", "", origin)
            continue
        value = imports.member(run, module, alias.name, origin) if local or inner is not None else None
        if value is not None:
            frame.variables[alias.asname or alias.name] = value
            if isinstance(value, Function):
                run.relevance.mention(alias.asname or alias.name, value.node)
            continue
        frame.variables[alias.asname or alias.name] = External(canonical(f"{module}.{alias.name}"))
    return None


def _global(run: Run, node: ast.Global, frame: Frame) -> Flow:
    for name in node.names:
        frame.declare(name, run.globals)
    return None


def _nonlocal(run: Run, node: ast.Nonlocal, frame: Frame) -> Flow:
    for name in node.names:
        at = frame.parent
        while at is not None:
            if name in at.variables:
                frame.declare(name, at)
                break
            at = at.parent
    return None


def _delete(run: Run, node: ast.Delete, frame: Frame) -> Flow:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.variables.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            delete_item(run, target, frame)
        elif isinstance(target, ast.Attribute):
            holder = run.evaluate(target.value, frame)
            if isinstance(holder, (Module, Instance, Opaque)):
                holder.attributes.pop(target.attr, None)
                run.mutations += 1
    return None


def _match(run: Run, node: ast.Match, frame: Frame) -> Flow:
    return run.block(as_if(node), frame)


def _break(run: Run, node: ast.Break, frame: Frame) -> Flow:
    return BREAK


def _continue(run: Run, node: ast.Continue, frame: Frame) -> Flow:
    return CONTINUE


STATEMENTS: dict[type[ast.stmt], Callable[[Run, Any, Frame], Flow]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Delete: _delete,
    ast.Match: _match,
    ast.Break: _break,
    ast.Continue: _continue,
}


# ---------------------------------------------------------------------- expression handlers


def _constant(run: Run, node: ast.Constant, frame: Frame) -> Value:
    value = node.value
    if value is None:
        return NONE
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    return Const(value)


def _name(run: Run, node: ast.Name, frame: Frame) -> Value:
    name = node.id
    at: Frame | None = frame.home(name) if frame.nonlocals else frame
    while at is not None:
        value = at.variables.get(name)
        if value is None and at.definitions is not None:
            value = at.definitions.find(name, at, run.define)
        if value is not None:
            return imports.settled(run, at, name, value) if value.__class__ is imports.Lazy else value
        at = at.parent
    value = starred(run, name)
    if value is None:
        value = member("builtins", name) if name in BUILTINS else Opaque(name)
    if isinstance(value, Opaque):
        if run.scenario.other and unbound.missing_variable(run.tree, frame, name):
            raise Impossible
        # The same unknown name is the same unknown value wherever it is read.
        run.globals.variables[name] = value
    return value


def _attribute(run: Run, node: ast.Attribute, frame: Frame) -> Value:
    return dispatch.attribute(run, run.evaluate(node.value, frame), node.attr, node)


def _identical(left: Any, right: Any) -> bool:
    """``left is right`` of constants, of which Python keeps one of each."""
    return left is right or (type(left) is type(right) and bool(left == right))


COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    **ORDER,
    ast.Is: _identical,
    ast.IsNot: lambda a, b: not _identical(a, b),
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def _binary(run: Run, node: ast.BinOp, frame: Frame) -> Value:
    left, right = run.evaluate(node.left, frame), run.evaluate(node.right, frame)
    return binary(run, node.op, left, right, node.left, node.right, node)


def _unary(run: Run, node: ast.UnaryOp, frame: Frame) -> Value:
    value = run.evaluate(node.operand, frame)
    if isinstance(node.op, ast.Not):
        known = truth(value)
        return Opaque("condition") if known is None else Const(not known)
    if isinstance(value, Const):
        try:
            return Const(-value.value if isinstance(node.op, ast.USub) else value.value)
        except TypeError:
            return Opaque()
    if isinstance(value, (Tensor, Opaque)) and isinstance(node.op, ast.USub):
        return simple(run, "neg", [(value, node.operand)], node)
    return value if isinstance(value, Tensor) else Opaque()


def _boolean(run: Run, node: ast.BoolOp, frame: Frame) -> Value:
    is_or = isinstance(node.op, ast.Or)
    value: Value = NONE
    for part in node.values:
        value = run.evaluate(part, frame)
        known = truth(value)
        if known is None:
            if is_or:
                return value
            continue
        if known is is_or:
            return value
    return value if truth(value) is not None else Opaque("condition")


MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
SHORT = 2
"""Up to so many items of a list that grows, the passes that are run show all there is to see."""


def _against_length(op: ast.cmpop, left: Const, right: Const) -> Const | Opaque:
    """How a comparison of what a list holds comes out, as long as it stays so: the list grows."""
    how = op.__class__
    if left.__class__ is not Length:
        left, right, how = right, left, MIRRORED.get(how, how)
    if right.__class__ is Length or not isinstance(right.value, (int, float)):
        return Opaque("condition")
    held = bool(COMPARE[how](left.value, right.value)) if how in COMPARE else None
    stays = (how in (ast.Gt, ast.GtE) and held) or (how in (ast.Lt, ast.LtE) and held is False)
    if how in (ast.Eq, ast.NotEq):
        stays = left.value > right.value
    return Const(held) if stays or (held is not None and right.value <= SHORT) else Opaque("condition")


def _compare(run: Run, node: ast.Compare, frame: Frame) -> Value:
    left = run.evaluate(node.left, frame)
    rights = [run.evaluate(c, frame) for c in node.comparators]
    if len(rights) == 1:
        op, right = node.ops[0], rights[0]
        if isinstance(op, AMONG) and isinstance(left, Index):
            right = _choices(right)
        held = _held(op, left, right)
        if held is not None:
            passed, term = of_pass(op.__class__, left, right)
            known = passed.holds(term) if passed is not None else None
            numbered = _number(left, right) is not left or _number(right, left) is not right
            if known is None and passed is not None and numbered:
                known = held
                passed.learn(term, held)
            if passed is not None and known is not None:
                run.turn = node, known, passed.turns(term, known)
                return Const(known)
        left, right = _number(left, right), _number(right, left)
        if isinstance(left, Const) and isinstance(right, Const):
            if left.__class__ is Length or right.__class__ is Length:
                return _against_length(op, left, right)
            try:
                return Const(bool(COMPARE[op.__class__](left.value, right.value)))
            except Exception:
                return Opaque("condition")
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = None
            if isinstance(right, Const) and right.value is None and not isinstance(left, (Opaque, Const)):
                same = isinstance(left, Each) and left.is_none()
            elif isinstance(left, (Module, Optimizer, Instance)) and isinstance(
                right, (Module, Optimizer, Instance)
            ):
                same = left is right
            if same is not None:
                return Const(same is isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)) and isinstance(left, Const):
            holds = None
            if isinstance(right, Mapping) and not right.open:
                holds = left.value in right.items
            elif (
                isinstance(right, Sequence)
                and not right.open
                and all(isinstance(i, Const) for i in right.items)
            ):
                holds = any(i.value == left.value for i in right.items if isinstance(i, Const))
            if holds is not None:
                return Const(holds is isinstance(op, ast.In))
        if held is not None:
            return Condition(held, passed, term)
    elif all(isinstance(v, Const) for v in (left, *rights)):
        values = [v.value for v in (left, *rights) if isinstance(v, Const)]
        try:
            pairs = zip(node.ops, values, values[1:])
            return Const(all(COMPARE[op.__class__](a, b) for op, a, b in pairs))
        except Exception:
            return Opaque("condition")
    if isinstance(left, Tensor) and not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return Tensor()
    return Opaque("condition")


def _number(value: Value, other: Value) -> Value:
    """The number of a pass, where it is compared to one of the passes that are run.

    A comparison with a larger number (after a warm-up, every hundredth batch) may come out either way.
    """
    if isinstance(value, Index) and value.counts and isinstance(other, Const) and other.value in (0, 1, 2):
        return Const(value.number)
    return value


AMONG = (ast.In, ast.NotIn)


def _choices(value: Value) -> Value:
    """A list, tuple or set of numbers as one constant."""
    if not isinstance(value, Sequence) or value.open or not value.items:
        return value
    numbers = [getattr(item, "value", None) for item in value.items]
    return Const(tuple(numbers)) if all(isinstance(n, (int, float)) for n in numbers) else value


def _held(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """What a comparison of numbers of passes comes to in this pass."""
    if not (isinstance(left, Index) or isinstance(right, Index)):
        return None
    numbers = [v.number if isinstance(v, Index) else getattr(v, "value", None) for v in (left, right)]
    wanted = (int, float, tuple) if op.__class__ in AMONG else (int, float)
    if not (isinstance(numbers[0], (int, float)) and isinstance(numbers[1], wanted)):
        return None
    if op.__class__ not in ORDER or (op.__class__ in AMONG and not isinstance(numbers[1], tuple)):
        return None
    return bool(COMPARE[op.__class__](*numbers))


def _conditional(run: Run, node: ast.IfExp, frame: Frame) -> Value:
    ends = _ends_recursion(run, node.body, node.orelse)
    if ends is not None:
        taken = run.decide(node.test, frame, run.lean(ends))
    else:
        taken = run.decide(node.test, frame, True, node)
    return run.evaluate(node.body if taken else node.orelse, frame)


def _sequence(kind: str) -> Callable[[Run, Any, Frame], Value]:
    def build(run: Run, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Value:
        items: list[Value] = []
        unknown = False
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner, _ = dispatch.iterate(run, run.evaluate(element.value, frame), element)
                unknown = unknown or inner is None
                items += inner or []
            else:
                items.append(run.evaluate(element, frame))
        run.charge(len(items) >> 4)
        return Sequence(kind, items, unknown, run.symbolic)

    return build


def _dict(run: Run, node: ast.Dict, frame: Frame) -> Value:
    items: dict[Any, Value] = {}
    unknown = False
    for key, value in zip(node.keys, node.values):
        held = run.evaluate(value, frame)
        if key is None:
            if isinstance(held, Mapping):
                run.charge(len(held.items) >> 4)
                items.update(held.items)
                unknown = unknown or held.open
            else:
                unknown = True
            continue
        name = run.evaluate(key, frame)
        if isinstance(name, Const) and isinstance(name.value, (str, int, float, bool, bytes, type(None))):
            items[name.value] = held
        else:
            unknown = True
    return Mapping(items, unknown)


def _comprehension(run: Run, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Value:
    inner = Frame(frame, frame.function)
    out: list[Value] = []
    # What differentiates for each of unknown things does so for more than one.
    often = 2 if run.relevance.differentiates(node) else 1
    complete = _generate(
        run, node.generators, 0, inner, lambda: out.append(run.evaluate(node.elt, inner)), often
    )
    kind = "tuple" if isinstance(node, ast.GeneratorExp) else "list"
    if len(out) == 1 and isinstance(out[0], Each) and out[0].view == "":
        picked = Params(out[0].leaves, complete)
        picked.half = _half(node.generators)
        if picked.half is not None:
            source = run.evaluate(node.generators[0].iter, frame)
            if isinstance(source, Params) and not source.complete:
                picked.half = None
        return picked
    if any(isinstance(v, Each) for v in out):
        leaves = [leaf for v in out if isinstance(v, Each) for leaf in v.leaves]
        return Params(leaves, complete)
    return Sequence(kind, out, not complete)


COMPLEMENTS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.NotEq: ast.Eq,
    ast.NotIn: ast.In,
    ast.IsNot: ast.Is,
}


def _half(generators: list[ast.comprehension]) -> tuple[str, bool] | None:
    """The one condition of a comprehension, and whether it has to hold: another may pick what is left out."""
    if len(generators) != 1 or len(generators[0].ifs) != 1:
        return None
    test, holds = generators[0].ifs[0], True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    text = ast.dump(test)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in COMPLEMENTS:
        other = COMPLEMENTS[type(test.ops[0])]()
        text, holds = ast.dump(ast.Compare(test.left, [other], test.comparators)), not holds
    return text, holds


def _dict_comprehension(run: Run, node: ast.DictComp, frame: Frame) -> Value:
    inner = Frame(frame, frame.function)
    out: dict[Any, Value] = {}
    named: list[Leaf] = []
    unknown = False

    def add() -> None:
        nonlocal unknown
        key, value = run.evaluate(node.key, inner), run.evaluate(node.value, inner)
        if isinstance(key, Const) and isinstance(key.value, (str, int)):
            out[key.value] = value
        else:
            unknown = True
            if isinstance(value, Each) and value.view == "":
                named.extend(value.leaves)

    complete = _generate(run, node.generators, 0, inner, add, 2 if run.relevance.differentiates(node) else 1)
    if named and not out:
        return Params(named, complete, named=True)
    return Mapping(out, unknown or not complete)


def _generate(
    run: Run,
    generators: list[ast.comprehension],
    level: int,
    frame: Frame,
    emit: Callable[[], None],
    often: int = 1,
) -> bool:
    """Run a comprehension's loops, those over unknown things so ``often``; returns whether all were known."""
    if level == len(generators):
        emit()
        return True
    generator = generators[level]
    items, element = dispatch.iterate(run, run.evaluate(generator.iter, frame), generator.iter)
    complete = items is not None and len(items) <= 64
    if isinstance(items, list) and len(items) > 64:
        items = items[:2]
    if items is None:
        items = [element(number) for number in range(often)]
    for item in items:
        run.charge(1)
        tests = [t for t in generator.ifs if not _asks_for_gradient(t, generator.target)]
        named = isinstance(item, Sequence) and len(item.items) == 2
        each = item.items[1] if isinstance(item, Sequence) and named else item
        if isinstance(each, Each) and len(tests) < len(generator.ifs):
            # Those that are left out get no gradient: to whoever wants it, all are there.
            each = Each([leaf for leaf in each.leaves if leaf.requires is not False], each.view)
            item = Sequence("tuple", [item.items[0], each]) if isinstance(item, Sequence) else each
        else:
            tests = generator.ifs
        assign(run, generator.target, item, frame, None)
        keep = True
        for test in tests:
            value = run.evaluate(test, frame)
            known = truth(value)
            if known is None and isinstance(test, ast.Name) and _is_a_setting(value) and items is not None:
                # Flags beside what they switch on: ``[l for l, on in zip(losses, flags) if on]``.
                known = run.decide(test, frame)
            if known is None:
                complete = False
            keep = keep and known is not False
        if keep:
            complete = _generate(run, generators, level + 1, frame, emit, often) and complete
    return complete


def _is_a_setting(value: Value) -> bool:
    """Whether something has nothing to do with tensors: what was computed of options, for one."""
    return isinstance(value, Opaque) and value.node is None and not value.made and value.requires is False


def _asks_for_gradient(test: ast.expr, target: ast.expr) -> bool:
    """Whether this is ``p.requires_grad`` where ``p`` is what a comprehension goes over, by name or not."""
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    return (
        isinstance(test, ast.Attribute)
        and test.attr == "requires_grad"
        and isinstance(test.value, ast.Name)
        and isinstance(target, ast.Name)
        and test.value.id == target.id
    )


def _subscript(run: Run, node: ast.Subscript, frame: Frame) -> Value:
    value = run.evaluate(node.value, frame)
    if isinstance(node.slice, ast.Slice):
        return slice_of(run, value, node, frame)
    if isinstance(value, Tensor) and isinstance(node.slice, ast.Tuple) and all(map(_basic, node.slice.elts)):
        # Slices, integers, None and the ellipsis, in any number, make a view.
        return dispatch.item(run, value, Const(0), node.value, node)
    chosen = run.asked_for(node, value, node.slice, frame)
    if chosen is not None:
        return chosen
    index = run.evaluate(node.slice, frame)
    return dispatch.item(run, keyed(run, value, index, frame), index, node.value, node)


class Alternative(ast.If):
    """The question whether a dict is asked for one of its keys, as if ``if key == name:`` were written."""


@lru_cache(maxsize=256)
def _alternatives(node: ast.expr, key: ast.expr, names: tuple[str, ...]) -> dict[str, Alternative]:
    """One question for each key."""
    asked: dict[str, Alternative] = {}
    for name in names:
        test = ast.Compare(key, [ast.Eq()], [ast.Constant(name)])
        site = Alternative(ast.copy_location(test, node), [], [])
        asked[name] = ast.copy_location(site, node)
    return asked


def _alternative(
    run: Run, node: ast.expr, held: dict[str, Value], asked: ast.expr, frame: Frame
) -> Value | None:
    """One of the functions or classes that are ``held`` by their names, where it is not known which one.

    ``{"a": TrainerA, "b": TrainerB}[args.trainer]``. It is the one that leads into the file at hand, the one
    that no option picks, or the first; further runs take the others.
    """
    names = tuple(held)
    every = _alternatives(node, asked, names)
    keys = {name: run.key(site.test, frame)[0] for name, site in every.items()}
    first = keys[names[0]]
    if first is None or first[1][0] == "const":
        return None
    if run.equals.get(first[1]) not in held:
        index = run.looked_up(asked, frame)
        default = index.default.value if isinstance(index, options.Option) else None
        usual = default if default in held else names[0]
        if run.top is not run.globals:
            here = (name for name in names if _makes(held[name], run.globals))
            usual = next(here, usual)
        sites = {name: site for name, site in every.items() if name != usual}
        for name, site in sites.items():
            run.undecided.setdefault(site, []).append(keys[name])
        others = [name for name, site in sites.items() if site in run.scenario.flipped]
        run.equals[first[1]] = next(iter(others), usual if run.scenario.main or not sites else [*sites][-1])
        run.decisions.update({key: name == run.equals[first[1]] for name, key in keys.items()})
    return held[run.equals[first[1]]]


def _offered(run: Run, value: Value) -> dict[str, Value]:
    """The functions and classes of which a dict, or a module of the project, has one for each name.

    Of a module they are those that it defines itself and uses nowhere: what is a part of another one of
    them is hardly what somebody asks for.
    """
    if isinstance(value, Mapping):
        names = [name for name in value.items if isinstance(name, str)]
        if value.open or len(names) < len(value.items) or not all(map(_makes, value.items.values())):
            return {}
        return {name: value.items[name] for name in names}
    if not isinstance(value, Namespace):
        return {}
    frame = value.frame
    held = {
        name: made
        for name, made in frame.variables.items()
        if isinstance(made, (Function, Class))
        and made.frame is frame
        and made.name == name
        and name[0] != "_"
    }
    used = {
        node.id
        for name, made in held.items()
        for node in walk(made.node)
        if isinstance(node, ast.Name) and node.id != name
    }
    return {name: made for name, made in held.items() if name not in used}


def _makes(value: Value, within: Frame | None = None) -> bool:
    """Whether this is a function or a class of the project, or several: of the file ``within``, if given."""
    if isinstance(value, Sequence):
        every = [_makes(item, within) for item in value.items]
        return bool(every) and (all(every) if within is None else any(every))
    if within is None or not isinstance(value, (Function, Class)):
        return isinstance(value, (Function, Class))
    classes = value.order() if isinstance(value, Class) else [value]
    return any(one.frame is within for one in classes)


def _basic(index: ast.expr) -> bool:
    if isinstance(index, ast.UnaryOp):
        index = index.operand
    return isinstance(index, ast.Slice) or (
        isinstance(index, ast.Constant) and not isinstance(index.value, str)
    )


def _lambda(run: Run, node: ast.Lambda, frame: Frame) -> Value:
    return Function(node, frame)


def _walrus(run: Run, node: ast.NamedExpr, frame: Frame) -> Value:
    value = run.evaluate(node.value, frame)
    assign(run, node.target, value, frame, node.value)
    return value


def _await(run: Run, node: ast.Await, frame: Frame) -> Value:
    return run.evaluate(node.value, frame)


def _formatted(run: Run, node: ast.JoinedStr, frame: Frame) -> Value:
    parts: list[Value] = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(Const(str(value.value)))
            continue
        assert isinstance(value, ast.FormattedValue)
        parts.append(_part(run, value, frame))
    known = [part.value for part in map(options.given, parts) if isinstance(part, Const)]
    if len(known) < len(parts) or sum(map(len, known)) > LONGEST:
        return Opaque("text")
    return options.text(Const("".join(known)), parts)


CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("r"): repr, ord("s"): str, ord("a"): ascii}


def _part(run: Run, node: ast.FormattedValue, frame: Frame) -> Value:
    """The text of ``{value!r:>4}`` in an f-string."""
    option = run.evaluate(node.value, frame)
    held = options.given(option)
    how = run.evaluate(node.format_spec, frame) if node.format_spec is not None else Const("")
    if not isinstance(held, Const) or isinstance(held, Length) or not isinstance(how, Const):
        return Opaque("text")
    value = CONVERSIONS[node.conversion](held.value) if node.conversion in CONVERSIONS else held.value
    return options.text(spelled(f":{how.value}", lambda: format(value, how.value)), [option])


def _yield(run: Run, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Value:
    value = run.evaluate(node.value, frame) if node.value is not None else NONE
    resume = run.yielding.get(frame)
    if resume is not None:
        resume(value)
    return Opaque("sent")


def _other(run: Run, node: ast.expr, frame: Frame) -> Value:
    return Opaque()


EXPRESSIONS: dict[type[ast.expr], Callable[[Run, Any, Frame], Value]] = {
    **dict.fromkeys(ast.expr.__subclasses__(), _other),
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: call_expression,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Tuple: _sequence("tuple"),
    ast.List: _sequence("list"),
    ast.Set: _sequence("set"),
    ast.Dict: _dict,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Subscript: _subscript,
    ast.Lambda: _lambda,
    ast.NamedExpr: _walrus,
    ast.Await: _await,
    ast.JoinedStr: _formatted,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
}
