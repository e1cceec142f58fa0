"""One symbolic execution (a *run*): its state, and the dispatch of statements and expressions.

The interpreter registers what each kind of statement and expression does (:func:`statement`,
:func:`expression`). So the layer in between, the semantics of values, needs only :class:`Run`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from gradfix.autograd.graph import (
    Backward,
    Event,
    GraphEnd,
    Handover,
    InPlaceChange,
    Leaf,
    LoopContext,
    ModeChange,
    ModuleCall,
    Node,
    OptimizerState,
    Stack,
    Step,
    Storage,
    Stored,
    Tri,
    reachable_nodes,
)
from gradfix.autograd.relevance import Relevance
from gradfix.autograd.symbols import Symbols, World
from gradfix.autograd.values import (
    Class,
    Const,
    Defining,
    Frame,
    ImportedName,
    Instance,
    Module,
    Optimizer,
    Preparer,
    Sequence,
    Tensor,
    Unknown,
    Value,
    graphs_in,
    tensors_in,
)


class Stopped(Exception):
    """The program raised or ended; unwinds the functions in progress."""


class Exited(Stopped):
    """The program ends itself."""


class Uncaught(Stopped):
    """Autograd raises, and no handler in the script catches it."""


class Impossible(Stopped):
    """A further run took a path that no program continues on: it reads a variable that was never bound."""


class Chain(NamedTuple):
    """The layers of a ``Sequential`` that is being called, with those of the ones within it."""

    site: ast.AST
    given: Storage | None
    """The memory of what it was called on."""
    born: int
    """The number of the first memory that only these layers can hold."""


class BudgetExceeded(Exception):
    """The run executed more statements than its budget; the argument names the function, if it was in one."""


class Break:
    """Flow: leave the loop."""


class Continue:
    """Flow: next iteration."""


class Return:
    """Flow: leave the function with a value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Stop:
    """Flow: an exception or the end of the program."""


ControlFlow = Break | Continue | Return | Stop | None


BREAK, CONTINUE, STOP = Break(), Continue(), Stop()


DEPTH = 40
"""How deep calls are followed."""


class Scenario:
    """How a run decides undecided conditions: as the main run (``main``), all otherwise, or some
    ``flipped``."""

    __slots__ = ("default_options", "earlier", "flipped", "main", "main_run", "revised_guesses", "world")

    def __init__(
        self,
        main: bool = True,
        flipped: Iterable[ast.AST] = (),
        main_run: Run | None = None,
        default_options: bool = False,
        revised_guesses: frozenset[ast.AST] = frozenset(),
        world: World | None = None,
    ) -> None:
        self.main = main
        self.flipped = frozenset(flipped)
        self.main_run = main_run
        """The main run, in the others."""
        self.default_options = default_options
        """Whether the options of the command line have their defaults; else they are not known."""
        self.world: World | None = world if main_run is None else main_run.scenario.world
        """What the symbols are taken for; None: they are unknown values."""
        self.revised_guesses: frozenset[ast.AST] = (
            revised_guesses if main_run is None else revised_guesses | main_run.scenario.revised_guesses
        )
        """Conditions whose first branch only leads to an exception: a training run takes the other one."""
        answered = main_run.answered if main_run is not None else {}
        self.earlier = frozenset(answered[site] for site in self.flipped if site in answered)
        """Where the conditions that are decided the other way were first evaluated, during setup."""

    @property
    def other(self) -> bool:
        """Whether some condition is decided differently than in the main run."""
        return bool(self.flipped) or not self.main or self.default_options

    @property
    def chosen(self) -> bool:
        """Whether another item of a dict is taken than in the main run."""
        return any(isinstance(site, Alternative) for site in self.flipped)


class MayHaveGraph(Protocol):
    """Whatever may have a graph: a tensor, for example, or an operand. (It is not the graph itself.)"""

    node: Node | None
    leaf: Leaf | None
    requires: Tri


class Replayable(Protocol):
    """The graph of a network's call, which can be recorded again (:mod:`gradfix.autograd.summaries`)."""

    def replay(self, run: Run, operands: list[Value]) -> Value:
        """Record it here and now, on other operands."""


Handler = TypeVar("Handler", bound=Callable[..., Any])


class _Expressions(dict[type[ast.expr], Callable[["Run", Any, Frame], Value]]):
    """What evaluates each kind of expression; one that nothing is registered for has an unknown value."""

    def __missing__(self, kind: type[ast.expr]) -> Callable[[Run, Any, Frame], Value]:
        return lambda run, node, frame: Unknown()


STATEMENTS: dict[type[ast.stmt], Callable[[Run, Any, Frame], ControlFlow]] = {}
"""What executes each kind of statement; one that nothing is registered for does nothing."""
EXPRESSIONS = _Expressions()


def statement(*kinds: type[ast.stmt]) -> Callable[[Handler], Handler]:
    """Decorator: registers the function that executes these kinds of statements."""

    def register(function: Handler) -> Handler:
        STATEMENTS.update(dict.fromkeys(kinds, function))
        return function

    return register


def expression(*kinds: type[ast.expr]) -> Callable[[Handler], Handler]:
    """Decorator: registers the function that evaluates these kinds of expressions."""

    def register(function: Handler) -> Handler:
        EXPRESSIONS.update(dict.fromkeys(kinds, function))
        return function

    return register


class Run:
    """One symbolic execution, with the events and calls it met."""

    def __init__(self, relevance: Relevance, scenario: Scenario, budget: int) -> None:
        self.relevance = relevance
        self.scenario = scenario
        self.budget = budget
        self.serial = 0
        self.loops: LoopContext = ()
        self.events: list[Event] = []
        self.index: Any = None
        """The events by kind: see :mod:`gradfix.autograd.trace_queries`, which makes it when it is asked."""
        self.module_calls: list[ModuleCall] = []
        self.current_call: ModuleCall | None = None
        self.grad_enabled: Tri = True
        self.symbolic = 0
        self.decided_by_number = 0
        """How many conditions were decided because the current iteration can have only certain numbers."""
        self.left_open = 0
        """How often a condition was decided that its value leaves open."""
        self.unflipped: dict[ast.expr, bool | None] = {}
        """Conditions on an iteration number: the answer so far, if a later iteration changes it; None: it
        has."""
        self.counters: list[tuple[Frame, dict[str, Value]]] = []
        """The loops of unknown length that are running, with the variables from before each."""
        self.options_read = False
        """Whether options of a command line were asked for."""
        self.optional: set[ast.AST] = set()
        """Conditions that options decide."""
        self.changed_by_options: set[ast.AST] = set()
        """Those of ``optional`` that decide about graphs and would come out otherwise with default
        options."""
        self.substituted = False
        """Whether weights are replaced by what was computed, in a network's own table of them: whatever that
        network computes then shares a graph that is not followed."""
        self.unfinished = False
        """Whether it was cut off because earlier runs had used up the allowance."""
        self.impossible = False
        """Whether it ended where no program continues: nothing follows from what it does not reach."""
        self.raised = False
        """Whether it ended early with an exception."""
        self.refused_write = False
        """Whether autograd ended it by refusing an in-place write (E4, E5)."""
        self.unknown_contexts = 0
        """How many unknown context managers are active; each may switch gradients on or off."""
        self.remade: set[Leaf] = set()
        """Leaves that the program may have replaced by another tensor: moved to another device, or computed
        from a parameter by weight normalisation."""
        self.called_from_outside = False
        """Whether it calls a function as an outside caller would, and does not run the file from the top."""
        self.guesses: list[ast.AST] = []
        """The conditions in whose branches it is, whose answer is a guess."""
        self.parameter_variables: list[set[str]] = []
        """For each running loop over parameters, the variables that its target binds."""
        self.selects_some = False
        """Whether a loop over parameters is in a branch that an unknown condition takes for some of them
        only."""
        self.modules_run: set[int] = set()
        """The modules of the project whose functions have been run, by the numbers of their lines."""
        self.repeat_counts: set[tuple[Any, ...]] = set()
        """Unknown numbers by which a loop has made several iterations."""
        self.refused: list[ast.AST] = []
        """The ``guesses`` in force when an exception was raised, or the program ended, outermost first."""
        self.ended_in: ast.stmt | None = None
        """The statement that raised the last exception, or ended the program."""
        self.weight = 1
        self.calls_within = 0
        """How many calls were followed within the outermost function that is running and trains nothing."""
        self.unknown_functions: dict[str, ast.AST] = {}
        """The functions of torch of which the model knows nothing, and that were given a network or what may
        have a graph: where each was called first."""
        self.not_followed: set[str] = set()
        """Functions within which more than ``MANY_CALLS`` calls were made: the rest was not followed."""
        self.stack: Stack = ()
        self.depth = 0
        self.max_depth = DEPTH
        self.catching = 0
        """How many ``try`` statements are running that catch the errors of autograd."""
        self.handlers = 0
        """How many ``try`` statements are running that catch anything."""
        self.failed_calls: set[ast.AST] = set()
        """The calls of functions that raise for sure: what they give is unknown."""
        self.active: list[tuple[ast.AST, Module | None]] = []
        """The functions that are running, with the networks whose methods they are."""
        self.entered: set[ast.AST] = set()
        self.uses_of_none: set[ast.AST] = set()
        """Where None is used as if it were something: what cannot be seen must have replaced it."""
        self.missed: set[tuple[str, str]] = set()
        """Lookups that failed, as far as can be seen, as ``(holder, name)``: attributes by their class, dict
        keys by the expression of the dict, uses of None or of a number by an empty holder."""
        self.undecided: dict[ast.AST, list[Any]] = {}
        self.path_condition: dict[Any, bool] = {}
        """The answers that this run has given so far, by question (see ``conditions.question``)."""
        self.made: set[tuple[ast.AST, str]] = set()
        """The attributes by their classes that hold networks and optimizers since an object was made."""
        self.setup_guesses: dict[Any, ast.AST | None] = {}
        """Questions whose answer was guessed while networks and options were set up, and the first place."""
        self.picked: dict[Any, ast.AST] = {}
        """Questions that decide the value of a conditional expression in training code, and where each came
        first."""
        self.precluding: list[ast.AST] = []
        """Those places whose guess rules out what is asked later: ``if mode == 2``, then ``if mode == 1``."""
        self.answered: dict[ast.AST, ast.AST] = {}
        """By condition in training code: the condition that answered the same question before, during
        setup."""
        self.reversed: set[Any] = set()
        """Questions that were answered the other way during setup."""
        self.unusual: set[ast.AST | None] = set()
        """Conditions that were not decided by habit: a window of micro-batches closes, an argument is not
        there."""
        self.training_questions: set[Any] = set()
        """Questions whose answer decided whether a backward is run."""
        self.equals: dict[Any, Any] = {}
        self.equated: dict[Any, ast.AST | None] = {}
        """The conditions whose answers say which value something has."""
        self.ruled_out: dict[ast.AST | None, set[ast.AST]] = {}
        """By such a condition: later conditions that are false because of its answer, and need another
        one."""
        self.kept: list[Value] = []
        """Values whose identity is part of a key: they must not be collected."""
        self.nodes: list[Node] = []
        self.parts: list[Unknown] = []
        """The unknown values that have a ``parent``."""
        self.views: list[Tensor] = []
        """The tensors that have a ``base``."""
        self.summaries: dict[Hashable, Replayable] = {}
        self.any_number: tuple[str, Unknown | None] | None = None
        """An unknown index by which one of several similar objects was chosen; the first of them stands for
        it."""
        self.leaves_known: dict[Module, tuple[int, list[Leaf]]] = {}
        self.mutations = 0
        """How many attributes and items have been written."""
        self.modes = 0
        """How often a network has been put into another mode."""
        self.mode_of: dict[object, ModeChange] = {}
        """What has put each network, or part of one, into the mode that it is in."""
        self.keyed: dict[Tensor, Unknown] = {}
        """Tensors that turned out to be mappings, as they have items by name, with the values that replace
        them."""
        self.appended: list[Sequence] = []
        self.stored: list[Stored] = []
        """What was put into lists that carries a graph."""
        self.brought: dict[tuple[ast.AST, LoopContext], dict[str, list[Node]]] = {}
        """By loop and iteration: the graphs that each variable has brought into it."""
        self.carried: dict[tuple[ast.AST, LoopContext], dict[str, Value]] = {}
        """What carried a graph into each iteration but the first."""
        self.before: dict[tuple[ast.AST, LoopContext], dict[str, Value]] = {}
        """What was there before the first iteration."""
        self.differentiated: set[Leaf] = set()
        """Leaves with respect to which something was differentiated."""
        self.thawed: set[Leaf] = set()
        """Parameters that were frozen and are trainable again."""
        self.optimizers: list[Optimizer] = []
        self.symbols = Symbols(scenario.world, self.optimizers) if scenario.world is not None else None
        self.preparers: list[Preparer] = []
        """What frameworks prepare networks with, that is made here."""
        self.external_optimizers: list[OptimizerState] = []
        """External optimizers: passed in by a caller, where no other optimizer is known."""
        self.configured: dict[Module, Value] = {}
        """What the optimizers of Lightning's modules are."""
        self.toggled: dict[Module, dict[Leaf, Tri]] = {}
        self.scaled: dict[Node | Value, Value] = {}
        """Losses that a ``GradScaler`` has scaled, and their graphs, with the scaler."""
        self.escapes: list[tuple[int, list[Node]]] = []
        """When graphs escaped to unknown code, which could traverse them, and their roots."""
        self.handovers: list[Handover] = []
        """The calls through which something that can be differentiated escaped to code that is not seen."""
        self.returned_last: ast.Return | None = None
        """The statement that has returned last."""
        self.returned: list[Node] = []
        """The graphs that are returned to a caller outside the file."""
        self.unrolled: set[ast.AST] = set()
        """The loops over the parts of the program, see :func:`_names_a_part`."""
        self.yielding: dict[Frame, Callable[[Value], None]] = {}
        """What runs where the context managers that are being entered yield."""
        self.started: set[ast.AST] = set()
        """The functions that processes and threads run."""
        self.proxy_calls: set[ast.Call] = set()
        """Call-site proxies: calls in this file that are reported in place of what happens in another module
        of the project."""
        self.chain: Chain | None = None
        """The ``Sequential`` whose layers are being called."""
        self.overwriters: dict[ast.AST, dict[ast.AST, ast.expr | None]] = {}
        """By the call that created an ``inplace=True`` layer: the calls in which it modifies memory that
        others may hold, each with the expression of its input, where that tells whose memory it is."""
        self.hooked: set[Node] = set()
        """Nodes with a gradient hook."""
        self.retaining: set[Node] = set()
        """Non-leaf nodes that keep their gradient (``retain_grad``)."""
        self.detached: list[tuple[int, Node, ast.AST]] = []
        """What was detached, when and where."""
        self.graphs_ended = 0
        """How many values without a graph were computed from values with one."""
        self.grad_reads: list[tuple[int, Leaf | None]] = []
        """When a gradient was looked at, and whose."""
        self.moved_by_hand: dict[Leaf, int] = {}
        """When parameters were last moved by their gradients and no optimizer did it."""
        self.grad_writes: list[int] = []
        """When gradients were written by hand, in place."""
        self.starred: list[str] = []
        """Modules from outside of which everything was imported."""
        self.modules: dict[str, Frame] = {}
        """The modules of the project that were imported, by their files."""
        self.passed: dict[ImportedName, Value] = {}
        """What names stand for in this run that were imported into modules shared by all runs."""
        self.passing = 0
        """How many lookups gave a value that is another one in other runs."""
        self.tree: ast.Module | None = None
        """The file, where all of it is run from the top."""
        self.globals = Frame(None, None)
        self.globals.variables["__name__"] = Const("__main__")
        self.top = self.globals
        """The variables of the file that is run from the top; if a script imports this file, those of the
        script."""
        self.assigned_from: dict[int, ast.stmt] = {}
        self.statement: ast.stmt | None = None

    # ------------------------------------------------------------------ bookkeeping

    def next_serial(self) -> int:
        """The next serial number: the order of nodes and events."""
        self.serial += 1
        return self.serial

    def budget_exceeded(self) -> BudgetExceeded:
        """What is raised when the budget is spent: it names the function that has been called first."""
        return BudgetExceeded(getattr(self.active[0][0], "name", "") if self.active else "")

    def escaped_since(self, serial: int) -> set[Node]:
        """Every node that something unknown could traverse after the given moment."""
        roots = [(node, True) for at, nodes in self.escapes if at > serial for node in nodes]
        return set(reachable_nodes(roots))

    def grad_read_between(self, first: int, last: int) -> bool:
        """Whether a gradient was read or written by hand between two serial numbers; clipping is neither."""
        return any(first < at < last for at in (*self.grad_writes, *(at for at, _ in self.grad_reads)))

    def release(self) -> None:
        """Drop all references when the run is not needed any more, so that its memory is freed at once.

        Events and the nodes that they refer to form reference cycles, and so do variables and functions.
        """
        self.index = None
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
                event.optimizer.leaves = []
                event.consumed = {}
        for frame in (self.globals, self.top, *self.modules.values()):
            if not frame.shared and frame.definitions is None:  # Other runs may have these.
                for value in frame.variables.values():
                    if isinstance(value, (Module, Instance)) or (
                        isinstance(value, Class) and value.frame is frame
                    ):
                        value.attributes = {}
                frame.variables = {}
        kept = (self.nodes, self.events, self.module_calls, self.kept, self.path_condition, self.summaries)
        for held in (*kept, self.parts, self.views, self.stored, self.handovers):
            held.clear()

    # ------------------------------------------------------------------ statements

    def execute_block(self, statements: list[ast.stmt], frame: Frame) -> ControlFlow:
        """Execute statements in order until one of them diverts control."""
        for statement in statements:
            self.budget -= 1
            if self.budget <= 0:
                raise self.budget_exceeded()
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
            BudgetExceeded: The budget is spent.
        """
        self.budget -= steps
        if self.budget <= 0:
            raise self.budget_exceeded()

    def file(self, statements: list[ast.stmt], frame: Frame) -> None:
        """Execute a file from its top.

        Raises:
            Stopped: It raises there.
        """
        if isinstance(self.execute_block(statements, frame), Stop):
            raise Stopped

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""
        return EXPRESSIONS[node.__class__](self, node, frame)

    def variable(self, name: str) -> Value:
        """The value of a variable of the file."""
        return self.evaluate(ast.Name(name, ast.Load()), self.globals)

    def define(self, statement: Defining) -> None:
        """Execute the definition of a function or class of the file."""
        STATEMENTS[statement.__class__](self, statement, self.globals)

    # ------------------------------------------------------------------ conditions

    def turned_back(self) -> None:
        """The program raises or ends here: the last guess may be why."""
        self.refused = self.guesses.copy()
        self.ended_in = self.statement

    # ------------------------------------------------------------------ tensors

    def node(self, op: str, site: ast.AST) -> Node:
        """A new node of the graph, recorded here and now."""
        self.serial += 1
        node = Node(op, site, self.serial, self.loops, self.current_call, self.stack)
        self.nodes.append(node)
        return node

    def part_of(self, value: Unknown, name: str) -> Unknown:
        """An unknown part of an unknown value."""
        part = Unknown(name, None, value)
        self.parts.append(part)
        return part

    def change(self, tensor: Tensor, site: ast.AST, what: str, layer: Module | None = None) -> InPlaceChange:
        """An in-place change of a tensor's memory."""
        event = InPlaceChange(self.site_in_file(site), self.loops, self.next_serial(), what, layer=layer)
        self.events.append(event)
        tensor.storage.record_change(event)
        return event

    def store(self, value: Value, expression: ast.expr, into: Value) -> None:
        """Note that a list, or something unknown, was given a value to hold, if that carries a graph."""
        if value.__class__ is not Const and any(t.node is not None for t in tensors_in(value)):
            held = len(into.items) if isinstance(into, Sequence) else 0
            now = self.loops, self.next_serial(), self.stack, self.symbolic
            self.stored.append(Stored(value, expression, into, held, *now))

    def hand_on(self, value: Value) -> None:
        """Note that a value was stored in an unknown object: whoever created or passed in that object can
        reach it."""
        graphs = graphs_in([value]) if value.__class__ is not Const else []
        if self.called_from_outside:
            self.returned += graphs
        elif graphs:
            self.escapes.append((self.next_serial(), graphs))

    def graph_end(self, operand: MayHaveGraph, site: ast.AST) -> GraphEnd | None:
        """Where the graph of an operand ended, whose result at ``site`` has none: there, or earlier.

        None if the operand certainly had no graph.
        """
        if operand.requires is True:
            graph = operand.node or operand.leaf
            if graph is not None:
                self.graphs_ended += 1
                return GraphEnd(graph, (site,), self.grad_enabled is not False)
        lost: GraphEnd | None = getattr(operand, "lost", None)
        return lost and lost._replace(sites=(*lost.sites, site))

    # ------------------------------------------------------------------ imported modules

    def site_in_file(self, node: ast.AST) -> ast.AST:
        """Where in this file something happens: ``node``, or the call that leads into a module.

        What happens in a loop of the imported module keeps its place there.
        """
        if node.lineno > 0 or any(loop.lineno <= 0 for loop, _ in self.loops):  # type: ignore[attr-defined]
            return node
        for call, _ in reversed(self.stack):
            if isinstance(call, ast.Call) and call.lineno > 0:
                self.proxy_calls.add(call)
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


class Alternative(ast.If):
    """Stands for ``if key == name:``, where a dict is looked up by an unknown key: whether it is this one."""


def used_none(run: Run, node: ast.AST) -> None:
    """None is used as if it were something: subscripted, unpacked, computed with, asked for a method.

    So is a number that is asked for what no number has (``loss = 0`` for ``loss.backward()``).
    In a further run Python would raise here, unless the main run uses None here as well: then code that
    cannot be seen must have replaced it.
    """
    # With other arguments it is asked for the same.
    run.missed.add(("", ast.unparse(node.func if isinstance(node, ast.Call) else node)))
    first = run.scenario.main_run
    if first is not None and node not in first.uses_of_none:
        raise Impossible
    run.uses_of_none.add(node)
