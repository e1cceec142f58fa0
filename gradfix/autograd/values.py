"""What the model knows of a Python value: the domain in which training code is interpreted.

A value is either known in full (a constant, a container of known length, a function of the same file),
known as far as autograd is concerned (a tensor, a network, an optimizer), or :class:`Unknown`. An opaque
value learns its role from how it is used: what hands its ``parameters()`` to an optimizer is a network.
"""

from __future__ import annotations

import ast
import re
from collections import abc
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from gradfix.autograd.graph import GraphEnd, Leaf, Node, OptimizerState, Storage, Tri
from gradfix.autograd.iteration_numbers import ARITHMETIC, NUMBER, LoopIteration, NumberExpression

LARGEST = 10_000
"""How many values a list or dict may hold, nested ones counted each time they occur.

The rest is left out."""
LONGEST = 100_000
"""How many characters a text may have to be known."""

Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Value:
    """Anything a Python expression can evaluate to."""

    __slots__ = ()


class Const(Value):
    """A Python constant: number, string, bool, None, Ellipsis."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Const({self.value!r})"


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)


class Unknown(Value):
    """A value the model does not know.

    ``node`` is set where tensors with a graph went into it. Where it is not, it may still have one that is
    not seen, unless it is :func:`graphless_value`. ``leaf`` is set once it is known to be a network: the
    block of all its parameters.
    """

    __slots__ = (
        "attributes",
        "called_by",
        "graphless",
        "handed",
        "harmless",
        "label",
        "leaf",
        "library",
        "lost",
        "made",
        "made_from",
        "node",
        "optimizer",
        "owner",
        "parent",
        "requires",
        "storage",
    )

    def __init__(self, label: str = "", node: Node | None = None, parent: Unknown | None = None) -> None:
        self.label = label
        self.node = node
        self.requires: Tri = None if node is not None else False
        self.graphless = False
        """Whether it certainly has no graph: a number, a text, an array, a batch of a data loader."""
        self.lost: GraphEnd | None = None
        """Where a graph ended that it was computed with, if it is known to have none."""
        self.leaf: Leaf | None = None
        self.parent = parent
        self.harmless = False
        """A logger, a transformation of pictures: it has no weights, and its methods leave tensors alone."""
        self.library = False
        """Of a library, or a network, that keeps no graph from call to call."""
        self.owner: Module | None = None
        """The network whose attribute it is."""
        self.made_from: Module | None = None
        """A network that was handed to what made it: it may be that network, or hold parts of it."""
        self.made = False
        """The result of a call, which nothing else refers to, in contrast to an argument."""
        self.storage: Storage | None = None
        """Its memory, once a graph has saved it."""
        self.handed: tuple[ast.AST, ParameterIterable] | None = None
        """The call that made it and the parameters it was given: if it is stepped, it is their optimizer."""
        self.optimizer: Optimizer | None = None
        """The optimizer that it is, once its ``step`` or ``zero_grad`` has been called."""

    def __getattr__(self, name: str) -> Any:
        """The attributes, made on first access: most unknown values never need them."""
        if name != "attributes":
            raise AttributeError(name)
        self.attributes: dict[str, Value] = {}
        return self.attributes

    def has_attributes(self) -> bool:
        """Whether any attribute was accessed."""
        try:
            object.__getattribute__(self, "attributes")
        except AttributeError:
            return False
        return True

    def parameter_block(self, asked: ast.AST | None = None) -> Leaf:
        """Its parameters as one block; from this call on it is taken for a network.

        ``asked`` becomes the place of their creation, unless a call is known to have created the network.
        """
        if self.leaf is None:
            self.leaf = Leaf(self.label, True, None if self._is_made() else asked)
            self.leaf.assumed = True
            root = self.parent
            while root is not None and root.leaf is None:
                root = root.parent
            if root is not None and root.leaf is not None:
                root.leaf.children.append(self.leaf)
                self.leaf.requires = root.leaf.requires
            # Attributes that were known as networks before belong to this one.
            self._adopt(self)
        return self.leaf

    def become_part(self, holder: Unknown, name: str) -> None:
        """What a method gives that is handed nothing is a part of its object, as far as anybody can see."""
        if self.parent is not None or self.node is not None or self is holder:
            return
        self.parent = holder
        # Each call gives a value of its own, though it may be the same part.
        holder.attributes[f"{name} {len(holder.attributes)}"] = self
        root: Unknown | None = holder
        while root is not None and root.leaf is None:
            root = root.parent
        if self.leaf is not None and root is not None and root.leaf is not None:
            root.leaf.children.append(self.leaf)

    def stateless(self) -> bool:
        """Whether it is (a part of) a library's network to which the project has added no network of its
        own."""
        root: Unknown | None = self
        while root is not None and not root.library:
            root = root.parent
        return root is not None and not self._altered()

    def _altered(self) -> bool:
        """Whether something of the project's own has been put into it: a layer of torch's keeps nothing."""
        return any(
            value._altered() if isinstance(value, Unknown) else not is_plain(value)
            for value in self.attributes.values()
        )

    def _is_made(self) -> bool:
        root = self
        while root.parent is not None:
            root = root.parent
        return root.made

    def _adopt(self, value: Unknown) -> None:
        assert self.leaf is not None
        for child in value.attributes.values():
            if isinstance(child, Unknown):
                if child.leaf is not None:
                    if child.leaf not in self.leaf.family():
                        self.leaf.children.append(child.leaf)
                else:
                    self._adopt(child)


class IterationNumber(Unknown):
    """A number that a loop of unknown length counts, or that is computed from one.

    The iterations that are run are the first ones, so ``number`` is what it is in this very iteration. What a
    later iteration would make of it is left open: see
    :func:`gradfix.autograd.interpreter.conditions.value_in_iteration`.
    """

    __slots__ = ("counts", "iteration", "number", "term")

    def __init__(
        self,
        number: float,
        counts: bool = True,
        iteration: LoopIteration | None = None,
        term: NumberExpression = NUMBER,
    ) -> None:
        super().__init__("index")
        self.number = number
        self.graphless = True
        self.counts = counts
        """Whether it grows with every iteration, unlike what is computed from it in other ways (``i %
        2``)."""
        self.iteration = iteration
        """The iteration whose number it is computed from, if it is one alone."""
        self.term = term
        """How it is computed from that."""


class NumberCondition(Unknown):
    """A comparison of iteration numbers: it ``holds`` in this iteration, and perhaps not in another one."""

    __slots__ = ("holds", "iteration", "term")

    def __init__(
        self, holds: bool, iteration: LoopIteration | None = None, term: NumberExpression = NUMBER
    ) -> None:
        super().__init__("condition")
        self.graphless = True
        self.holds = holds
        self.iteration = iteration
        self.term = term


class Omitted(Const):
    """None, True or False, the default of a parameter that callers out of sight may pass."""

    __slots__ = ("given",)

    def __init__(self, value: bool | None, given: Value) -> None:
        super().__init__(value)
        self.given = given
        """What it is for those who pass something else."""


class Recurring(Unknown):
    """What is decided every n-th time: ``i % n``, and ``i % n == 0``, with an ``n`` that is not known."""

    __slots__ = ("then",)

    def __init__(self, then: bool) -> None:
        super().__init__("value")
        self.graphless = True
        self.then = then
        """Its truth at those times."""


class NumberAnswer(Const):
    """The answer to a ``test`` of the iteration number, in an iteration whose number leaves no choice."""

    __slots__ = ("flips", "test")

    def __init__(self, value: bool, test: ast.expr, flips: bool) -> None:
        super().__init__(value)
        self.test = test
        self.flips = flips
        """Whether some later iteration has the other answer."""


class Tensor(Value):
    """A tensor: where it hangs in the graph, whether it requires grad, which memory it has."""

    __slots__ = (
        "among",
        "base",
        "detached_from",
        "leaf",
        "lost",
        "may_view",
        "node",
        "requires",
        "storage",
        "views",
    )

    def __init__(
        self, node: Node | None = None, requires: Tri = False, storage: Storage | None = None
    ) -> None:
        self.node = node
        self.requires: Tri = requires
        self.storage = storage if storage is not None else Storage()
        self.leaf: Leaf | None = None
        self.base: Tensor | None = None
        """The tensor that this is a view of."""
        self.views: abc.Sequence[Tensor] = ()
        """Its views, whose graph follows it when it is changed in place."""
        self.may_view: Leaf | None = None
        """The leaf that this may be a view of, or a copy."""
        self.detached_from: tuple[Node, ast.AST] | None = None
        """The graph from which it was detached, and where; it shares the memory."""
        self.lost: GraphEnd | None = None
        """Where a graph ended that it was computed with, if it has none, or is a leaf."""
        self.among: ast.AST | None = None
        """The operation that returned it, if autograd refuses to modify it in place: it is one of several
        views that were returned at once, or a view that was created under ``no_grad``, or a view of such a
        view."""

    def seen_as(self, view: Tensor) -> None:
        """Note a view of it."""
        if isinstance(self.views, list):
            self.views.append(view)
        else:
            self.views = [view]  # Most tensors have none.

    @classmethod
    def of_leaf(cls, leaf: Leaf) -> Tensor:
        """The leaf tensor itself (or a whole block of parameters seen as one)."""
        tensor = cls(None, leaf.requires, leaf.storage)
        tensor.leaf = leaf
        return tensor


class SummaryTensor(Value):
    """Stands for every parameter of a set: the loop variable of ``for p in net.parameters()``."""

    __slots__ = ("itself", "leaves", "view")

    def __init__(self, leaves: list[Leaf], view: str = "", itself: bool = False) -> None:
        self.leaves = leaves
        self.view = view
        """What it stands for: the parameters (empty), their gradients (``grad``), or their data
        (``data``)."""
        self.itself = itself
        """Whether these are the very gradients, and not what a method gave of them: a copy, perhaps."""

    def is_none(self) -> bool:
        """Whether none of the parameters has a gradient yet."""
        return self.itself and all(leaf.grad is None and not leaf.unknown_grad for leaf in self.leaves)


WholeNetworks = tuple[tuple[Leaf, ...], ...]
"""The parameters of several networks, all that each has: a network may be there twice."""


class ParameterIterable(Value):
    """An iterable of parameters, as ``parameters()`` gives it."""

    __slots__ = ("complete", "exhausted_by", "leaves", "made", "named", "selection", "whole_networks")

    def __init__(
        self, leaves: list[Leaf], complete: bool = True, named: bool = False, made: ast.AST | None = None
    ) -> None:
        self.leaves = leaves
        self.complete = complete
        self.named = named
        self.selection: tuple[str, bool] | None = None
        """If a condition has selected them: its text, and whether it holds for them."""
        self.made = made
        """What created it, if it is a generator, which can be iterated only once."""
        self.exhausted_by: ast.AST | None = None
        """What has gone through it."""
        self.whole_networks: WholeNetworks | None = None
        """The networks all of whose parameters these are; None where some may have been picked."""


class Module(Value):
    """A ``torch.nn.Module``: a layer of torch, a container, or an instance of a class in the project."""

    __slots__ = (
        "attributes",
        "biased",
        "cls",
        "created",
        "items",
        "kind",
        "label",
        "leaf",
        "options",
        "rest",
        "training",
    )

    def __init__(self, kind: str, label: str = "", cls: Class | None = None) -> None:
        self.kind = kind
        """The canonical name of torch's class ("torch.nn.Linear"), or "user"."""
        self.cls = cls
        self.label = label or kind.rsplit(".", 1)[-1]
        self.attributes: dict[str, Value] = {}
        self.items: list[Value] = []
        """Children of Sequential, ModuleList and ModuleDict, in order."""
        self.leaf: Leaf | None = None
        """The layer's own parameters, if it has any."""
        self.rest: Leaf | None = None
        """Parameters that may exist in parts of the class that the model could not follow."""
        self.options: dict[str, Value] = {}
        self.created: ast.AST | None = None
        """The call that made it, if it is a layer of torch's."""
        self.biased = False
        """Whether it certainly has a parameter ``bias``."""
        self.training: Tri = True
        """Whether it is in training mode, which it is when it is made."""

    @property
    def numbered(self) -> bool:
        """Whether it holds layers by their number."""
        return self.kind in ("torch.nn.Sequential", "torch.nn.ModuleList")

    def leaves(self, seen: set[int] | None = None) -> list[Leaf]:
        """Every block of parameters in it, its own first, each once."""
        seen = set() if seen is None else seen
        if id(self) in seen:
            return []
        seen.add(id(self))
        found = [self.leaf] if self.leaf is not None else []
        for value in [*self.items, *self.attributes.values()]:
            found += _leaves_below(value, seen)
        if self.rest is not None:
            found.append(self.rest)
        return list(dict.fromkeys(found))


def _leaves_below(value: Value, seen: set[int]) -> list[Leaf]:
    if isinstance(value, Module):
        return value.leaves(seen)
    if isinstance(value, Tensor) and value.leaf is not None and value.leaf.label.startswith("parameter"):
        return [value.leaf]
    if isinstance(value, Unknown) and value.leaf is not None:
        return [value.leaf]
    return []


class Optimizer(Value):
    """A ``torch.optim.Optimizer``."""

    __slots__ = ("state",)

    def __init__(self, state: OptimizerState) -> None:
        self.state = state


class GrowingLength(Const):
    """The length of a list that a loop of unknown length fills: this long now, longer later."""

    __slots__ = ()


class Sequence(Value):
    """A list, tuple or set. ``open`` says that it may hold more than ``items``."""

    __slots__ = ("grows", "items", "kind", "loops", "open", "size")

    def __init__(self, kind: str, items: list[Value], open: bool = False, loops: int | None = None) -> None:
        self.kind = kind
        self.items = items
        self.open = open
        self.size = len(items) + sum(map(_size, items))
        if self.size > LARGEST:
            self.items, self.size = _fitting(items)
            self.open = True
        self.loops = loops
        """How many loops of unknown length were running when it was made, where that is known."""
        self.grows = False
        """Whether such a loop, begun later, has added to it."""

    def add(self, items: list[Value]) -> None:
        """Put more into it: as much as there is room for."""
        if self.size + len(items) > LARGEST:
            self.open = True
            return
        more = len(items) + sum(map(_size, items))
        if self.size + more > LARGEST:
            self.open = True
            return
        self.items += items
        self.size += more


class NamedResults(Sequence):
    """A named tuple of an operation's results: ``values`` and ``indices`` of ``max(dim)``."""

    __slots__ = ("fields",)

    def __init__(self, items: list[Value], fields: tuple[str, ...]) -> None:
        super().__init__("tuple", items)
        self.fields = fields


def _size(value: Value) -> int:
    """How many values a value holds, of those that hold others by place or by key."""
    return value.size if isinstance(value, (Sequence, Mapping)) else 0


def _fitting(items: Iterable[Value]) -> tuple[list[Value], int]:
    """The first items that are not too many together, and how many values these are."""
    held: list[Value] = []
    size = 0
    for item in items:
        more = 1 + _size(item)
        if size + more > LARGEST:
            break
        held.append(item)
        size += more
    return held, size


class Mapping(Value):
    """A dict with constant keys. ``open`` says that it may hold more."""

    __slots__ = ("items", "open", "size")

    def __init__(self, items: dict[Any, Value], open: bool = False) -> None:
        self.items = items
        self.open = open
        self.size = len(items) + sum(map(_size, items.values()))
        if self.size > LARGEST:
            held, self.size = _fitting(items.values())
            self.items = dict(zip(items, held))
            self.open = True

    def fresh(self, key: str) -> Value:
        """What it gives for a key whose value was never seen."""
        return Unknown(key)


class DefaultDictOfLists(Mapping):
    """``defaultdict(list)``: a missing key gets an empty list."""

    __slots__ = ("loops",)

    def __init__(self, items: dict[Any, Value], open: bool = True, loops: int | None = None) -> None:
        super().__init__(items, open)
        self.loops = loops
        """How many loops of unknown length were running when it was made."""

    def fresh(self, key: str) -> Value:
        """A list that is as old as the dict."""
        return Sequence("list", [], False, self.loops)


class Record(Mapping):
    """A dict whose keys are attributes as well, or a namespace."""

    __slots__ = ()


class Frame:
    """The variables of one running function (or of the module)."""

    __slots__ = ("definitions", "function", "nonlocals", "origin", "parent", "shared", "variables")

    def __init__(self, parent: Frame | None, function: Function | None) -> None:
        self.parent = parent
        self.function = function
        self.variables: dict[str, Value] = {}
        self.definitions: Definitions | None = None
        """For the frame of a file that is called from outside: what it defines, apart from the variables."""
        self.nonlocals: dict[str, Frame] | None = None
        """The frames of names that it has declared ``global`` or ``nonlocal``, if it has any."""
        self.origin = ""
        """For the frame of a module: its file."""
        self.shared = False
        """Whether all runs have this one: what is found out for one run only must not be kept in it."""

    def binding_frame(self, name: str) -> Frame:
        """The frame in which it binds a variable."""
        return self.nonlocals.get(name, self) if self.nonlocals is not None else self

    def declare(self, name: str, home: Frame) -> None:
        """Note that a variable is one of another frame."""
        if self.nonlocals is None:
            self.nonlocals = {}
        self.nonlocals[name] = home


class Definitions:
    """The functions and classes that a file defines once, each made when it is first asked for.

    Hundreds may be defined for each of which one is called. Apart from the variables they cost nothing where
    all variables are gone through.
    """

    __slots__ = ("_made", "_statements")

    def __init__(self, statements: dict[str, Defining]) -> None:
        self._statements = statements
        self._made: dict[str, Value] = {}

    def find(self, name: str, frame: Frame, define: Callable[[Defining], object]) -> Value | None:
        """The function or class of that name in the file whose ``frame`` it is.

        ``define`` executes its statement. What a decorator makes of it is a variable like others.
        """
        made = self._made.get(name)
        if made is not None:
            return made
        statement = self._statements.get(name)
        if statement is None:
            return None
        frame.variables[name] = ImportedName(name)  # for a class that mentions itself
        define(statement)
        value = frame.variables[name]
        if isinstance(value, (Function, Class)) and value.node is statement:
            self._made[name] = frame.variables.pop(name)
        return value


class Function(Value):
    """A function or lambda of the project, with the frame it closes over."""

    __slots__ = ("bound", "context", "frame", "mode", "name", "node", "owner")

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        frame: Frame,
        bound: Value | None = None,
        owner: Class | None = None,
    ) -> None:
        self.node = node
        self.frame = frame
        self.bound = bound
        self.owner = owner
        self.name = getattr(node, "name", "<lambda>")
        self.mode: GradMode | None = None
        """What sets, for its body, whether graphs are recorded; nothing if it runs as its caller does."""
        self.context = False
        """Decorated with ``contextlib.contextmanager``."""

    def mentioned(self) -> list[Value]:
        """What it is bound to, and the variables around it that its code names: to call it is to use them."""
        found = [self.bound] if self.bound is not None else []
        for name in names_in(self.node):
            frame: Frame | None = self.frame
            while frame is not None and name not in frame.variables:
                frame = frame.parent
            if frame is not None:
                found.append(frame.variables[name])
        return found

    def bind(self, value: Value) -> Function:
        """The method of ``value`` that this function is."""
        bound = Function(self.node, self.frame, value, self.owner)
        bound.mode = self.mode
        bound.context = self.context
        return bound

    def within(self, mode: GradMode) -> Function:
        """This function run in a grad mode, as by a decorator; if it has one already, that inner one
        applies."""
        wrapped = Function(self.node, self.frame, self.bound, self.owner)
        wrapped.mode = self.mode or mode
        wrapped.context = self.context
        return wrapped


@lru_cache(maxsize=4096)
def names_in(definition: ast.AST) -> tuple[str, ...]:
    """The names that code reads."""
    nodes = (node for node in ast.walk(definition) if isinstance(node, ast.Name))
    return tuple(dict.fromkeys(node.id for node in nodes if isinstance(node.ctx, ast.Load)))


class PendingGenerator(Value):
    """A generator of the project that has been called and not yet run.

    It is a ``contextmanager``, or a generator that runs a backward.
    """

    __slots__ = ("frame", "node")

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        self.node = node
        self.frame = frame


class Class(Value):
    """A class of the project."""

    __slots__ = ("_order", "attributes", "bases", "frame", "is_module", "name", "node")

    def __init__(self, node: ast.ClassDef, bases: list[Value], frame: Frame) -> None:
        self._order: list[Class] | None = None
        self.node = node
        self.name = node.name
        self.bases = bases
        self.frame = frame
        self.attributes: dict[str, Value] = {}
        self.is_module: bool = any(
            (isinstance(b, Class) and b.is_module)
            or (isinstance(b, ImportedName) and b.name.rsplit(".", 1)[-1] in MODULE_BASES)
            for b in bases
        )

    def lookup(self, name: str, after: Class | None = None) -> Value | None:
        """The class attribute ``name`` by a depth-first search of the bases; ``after`` for ``super()``."""
        order = self.order()
        if after is not None and after in order:
            order = order[order.index(after) + 1 :]
        for cls in order:
            if name in cls.attributes:
                return cls.attributes[name]
        return None

    def order(self) -> list[Class]:
        """This class and its known bases, nearest first."""
        if self._order is None:
            found: dict[Class, None] = {self: None}
            for base in self.bases:
                if isinstance(base, Class):
                    found.update(dict.fromkeys(base.order()))
            self._order = list(found)
        return self._order

    def outside(self) -> list[str]:
        """The names of what it inherits from outside of the project."""
        return [base.name for cls in self.order() for base in cls.bases if isinstance(base, ImportedName)]

    def unknown_bases(self) -> bool:
        """Whether something that the model cannot see is inherited."""
        for cls in self.order():
            for base in cls.bases:
                if isinstance(base, Class):
                    continue
                if isinstance(base, ImportedName) and base.name in KNOWN_BASES:
                    continue
                return True
        return False


MODULE_BASES = frozenset({"Module", "LightningModule", "Sequential", "ModuleList", "PreTrainedModel"})
KNOWN_BASES = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "builtins.object", "abc.ABC"})


class Instance(Value):
    """An instance of a class of the project that is not a network."""

    __slots__ = ("attributes", "cls", "inherited")

    def __init__(self, cls: Class) -> None:
        self.cls = cls
        self.attributes: dict[str, Value] = {}
        self.inherited: Value | None = None
        """What it is besides, of a class of torch's: it has the attributes and methods of that."""


class Learner(Value):
    """A meta-learning library's network around one of the script's (``semantics/learners.py``).

    A clone computes with copies of the weights, and what differentiates them goes on into the weights.
    """

    __slots__ = ("adapted", "cloned", "first_order", "leaves", "module")

    def __init__(self, module: Value, leaves: list[Leaf], first_order: Tri, cloned: bool = False) -> None:
        self.module = module
        self.leaves = leaves
        self.first_order = first_order
        """Whether what it learns from a loss is a constant to what is differentiated later."""
        self.cloned = cloned
        self.adapted: Node | None = None
        """What its weights were computed with, once it has been adapted to a loss."""


class ImportedName(Value):
    """Something imported from outside, by its dotted name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Method(Value):
    """A method of a value of the model, not yet called."""

    __slots__ = ("name", "of")

    def __init__(self, of: Value, name: str) -> None:
        self.of = of
        self.name = name


class Super(Value):
    """``super()`` inside a method."""

    __slots__ = ("after", "of")

    def __init__(self, of: Value, after: Class | None) -> None:
        self.of = of
        self.after = after


class Partial(Value):
    """``functools.partial``."""

    __slots__ = ("args", "function", "keywords")

    def __init__(
        self, function: Value, args: list[tuple[Value, ast.expr]], keywords: dict[str, Value]
    ) -> None:
        self.function = function
        self.args = args
        self.keywords = keywords


class Process(Partial):
    """A process or thread that has not been started."""

    __slots__ = ()


class ScaledLossContext(Value):
    """A context that gives a scaled loss (apex)."""

    __slots__ = ("loss",)

    def __init__(self, loss: Value) -> None:
        self.loss = loss


class GradMode(Value):
    """A context that sets whether graphs are recorded; ``enabled`` None: cannot know."""

    __slots__ = ("enabled", "switch")

    def __init__(self, enabled: Tri, switch: bool = False) -> None:
        self.enabled = enabled
        self.switch = switch
        """``set_grad_enabled(...)`` as a statement sets the mode from there on."""


class Scaler(Value):
    """A ``GradScaler``; one that is switched off leaves losses and gradients as they are."""

    __slots__ = ("enabled",)

    def __init__(self, enabled: Tri = True) -> None:
        self.enabled = enabled


class Preparer(Unknown):
    """What prepares networks and optimizers for training, and differentiates: ``Accelerator``, ``Fabric``."""

    __slots__ = ("accumulates", "prepared", "waits")

    def __init__(self, label: str, waits: bool = True, accumulates: bool = False) -> None:
        super().__init__(label)
        self.waits = waits
        """Whether it may let optimizers wait for the last of several batches."""
        self.accumulates = accumulates
        """Whether it is told to do so."""
        self.prepared: list[tuple[Value, ast.expr, ast.AST]] = []
        """What it has prepared, how that was written, and the call that did so."""


class Engine(Preparer):
    """DeepSpeed's engine around a network and an optimizer."""

    __slots__ = ("network", "own")

    def __init__(self, network: Value, optimizer: Optimizer, made: ast.AST) -> None:
        super().__init__("engine")
        self.network = network
        self.own = optimizer
        """Its optimizer."""
        written = ast.Name("model", ast.Load())
        self.prepared = [(network, written, made), (optimizer, written, made)]


class Array(Unknown):
    """An array of numpy: what is put into it becomes numbers, and no graph is kept."""

    __slots__ = ()

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.graphless = True


class Scheduler(Unknown):
    """A scheduler of torch's kind: it sets the learning rate of an optimizer, and leaves gradients alone."""

    __slots__ = ("optimizer_state", "resumed")

    def __init__(self, label: str, optimizer: OptimizerState, resumed: bool) -> None:
        super().__init__(label)
        self.harmless = True
        self.optimizer_state = optimizer
        self.resumed = resumed
        """Whether it may begin with a later value than the first."""


class Namespace(Value):
    """An imported module of the project."""

    __slots__ = ("frame",)

    def __init__(self, frame: Frame) -> None:
        self.frame = frame


class LazyIterable(Value):
    """``zip``, ``enumerate``, ``reversed`` and the like, not yet run."""

    __slots__ = ("kind", "parts", "start")

    def __init__(self, kind: str, parts: list[Value], start: int | None = 0) -> None:
        self.kind = kind
        self.parts = parts
        self.start = start


class Property(Value):
    """A ``@property`` of a class of the project."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function


class Attributes(Value):
    """``holder.__dict__``, or ``vars(holder)``, of an object or of a module that was imported."""

    __slots__ = ("holder",)

    def __init__(self, holder: Module | Instance | ImportedName | Namespace) -> None:
        self.holder = holder


class StaticOrClassMethod(Value):
    """A ``@staticmethod`` or ``@classmethod``."""

    __slots__ = ("function", "of_class")

    def __init__(self, function: Function, of_class: bool) -> None:
        self.function = function
        self.of_class = of_class


def is_plain(value: Value) -> bool:
    """Whether something is a layer of torch, or made of such layers."""
    seen: set[Module] = set()
    work = [value]
    while work:
        part = work.pop()
        if not isinstance(part, Module):
            if not isinstance(part, Const):
                return False
        elif part.kind == "user":
            return False
        elif part not in seen:
            seen.add(part)
            work += [*part.items, *part.attributes.values()]
    return True


def graphless_value(label: str, *computed_of: Value) -> Unknown:
    """A value of which nothing is known but that it has no graph: a number, a text, a size, an array.

    If something that it was ``computed_of`` had a graph, the result notes where that ended.
    """
    value = Unknown(label)
    value.graphless = True
    value.lost = lost_in(computed_of)
    return value


def hides_graph(value: Value, depth: int = 3) -> bool:
    """Whether a value is, or a container holds, something unknown that may have a graph which is not seen."""
    if isinstance(value, Unknown):
        return value.node is None and not value.graphless
    if depth and isinstance(value, (Sequence, Mapping)):
        items = value.items if isinstance(value, Sequence) else value.items.values()
        return value.open or any(hides_graph(item, depth - 1) for item in items)
    return False


def fill_of(value: Value) -> float | None:
    """The number that a value is, or that all elements of a tensor are."""
    if isinstance(value, Tensor):
        return value.storage.fill
    number = value.value if isinstance(value, Const) else None
    return float(number) if isinstance(number, (int, float)) else None


def lost_in(values: Iterable[Value], depth: int = 3) -> GraphEnd | None:
    """Where the first of some values, or of what containers hold, has lost a graph."""
    for value in values:
        if value.__class__ is Const:
            continue
        if isinstance(value, (Tensor, Unknown)):
            if value.lost is not None:
                return value.lost
        elif depth and isinstance(value, (Sequence, Mapping)):
            inner = value.items if isinstance(value, Sequence) else value.items.values()
            found = lost_in(inner, depth - 1)
            if found is not None:
                return found
    return None


def tensors_in(value: Value, depth: int = 4) -> list[Tensor | Unknown]:
    """The tensors in a value or in the containers it is made of (opaque ones only if they carry a graph)."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Unknown):
        return [value] if value.node is not None else []
    if depth == 0:
        return []
    if isinstance(value, Sequence):
        return [t for item in value.items for t in tensors_in(item, depth - 1)]
    if isinstance(value, Mapping):
        return [t for item in value.items.values() for t in tensors_in(item, depth - 1)]
    if isinstance(value, LazyIterable):
        return [t for part in value.parts for t in tensors_in(part, depth - 1)]
    if isinstance(value, Instance) and value.inherited is not None:
        return tensors_in(value.inherited, depth - 1)
    return []


def graphs_in(values: Iterable[Value]) -> list[Node]:
    """The graphs that are reachable from some values, and so can be differentiated by code that has them.

    Reachable is what containers and objects hold, what functions close over, and what they are bound to.
    """
    found: list[Node] = []
    seen: set[int] = set()
    work = list(values)
    while work:
        value = work.pop()
        if value.__class__ is Const or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (Tensor, Unknown)):
            if value.node is not None:
                found.append(value.node)
        if isinstance(value, Sequence):
            work += value.items
        elif isinstance(value, LazyIterable):
            work += value.parts
        elif isinstance(value, Mapping):
            work += value.items.values()
        elif isinstance(value, (Unknown, Module, Instance)):
            work += value.attributes.values()
            if isinstance(value, Instance) and value.inherited is not None:
                work.append(value.inherited)
        elif isinstance(value, Function):
            if value.frame.function is not None:
                work += value.frame.variables.values()
            if value.bound is not None:
                work.append(value.bound)
        elif isinstance(value, Partial):
            work += [value.function, *(part for part, _ in value.args), *value.keywords.values()]
    return found


def _holds_nothing(value: Value) -> bool:
    """Whether an unknown value leads to no other value, like most arguments of unseen code."""
    if value.__class__ is not Unknown:
        return False
    if value.node is not None or value.leaf is not None or value.made_from is not None:
        return False
    return value.optimizer is None and not value.has_attributes()


REACHED = 1_000
"""How many values are searched for graphs; what holds more is taken to hold a network."""


def in_reach(values: Iterable[Value]) -> tuple[list[Node], bool]:
    """The graphs that are reachable from some values, and whether parameters are reachable, too.

    Besides what :func:`graphs_in` finds, these are what a function mentions, which can be called, the
    parameters of a network or an optimizer, and the network that something unknown was made from. Only
    parameters that may require grad count.
    """
    found: list[Node] = []
    trainable = False
    seen: set[int] = set()
    work = list(values)
    while work:
        value = work.pop()
        if value.__class__ is Const or id(value) in seen or _holds_nothing(value):
            continue
        seen.add(id(value))
        if len(seen) > REACHED:
            return found, True
        leaves: Iterable[Leaf] = ()
        match value:
            case Tensor():
                leaves = [value.leaf] if value.leaf is not None else []
                if value.node is not None and value.requires is not False:
                    found.append(value.node)
            case Unknown():
                leaves = [value.leaf] if value.leaf is not None else []
                if value.node is not None:
                    found.append(value.node)
                if value.has_attributes():
                    work += value.attributes.values()
                work += [made for made in (value.made_from, value.optimizer) if made is not None]
            case Module():
                leaves = [leaf for leaf in (value.leaf, value.rest) if leaf is not None]
                work += [*value.items, *value.attributes.values()]
            case ParameterIterable():
                leaves = value.leaves
            case SummaryTensor():
                leaves = value.leaves if value.view == "" else ()
            case Learner() | Optimizer():
                leaves = value.leaves if isinstance(value, Learner) else value.state.owned()
            case Sequence():
                work += value.items
            case Mapping():
                work += value.items.values()
            case Instance():
                work += value.attributes.values()
                if value.inherited is not None:
                    work.append(value.inherited)
            case Function():
                work += value.mentioned()
            case StaticOrClassMethod():
                work.append(value.function)
            case Method():
                work.append(value.of)
            case Partial():
                work += [value.function, *(part for part, _ in value.args), *value.keywords.values()]
        trainable = trainable or any(leaf.requires is not False for leaf in leaves)
    return found, trainable


_WIDE = re.compile(r"[%:][^a-zA-Z%}]*(\d{3}|\*)")
"""A format that may make a very long text of a short one."""


def spelled(template: str, make: Callable[[], object], size: int = 0) -> Value:
    """The text that ``make`` gives by ``template``: the name of a layer, say.

    ``size`` is how long it may become at most, where what it is made of may be long.
    """
    if size > LONGEST or len(template) > LONGEST or _WIDE.search(template):
        return graphless_value("text")
    try:
        return Const(make())
    except Exception:
        return graphless_value("text")


def length(value: object) -> int:
    """The length of a text, or roughly that of ``str(value)``."""
    if isinstance(value, (str, bytes)):
        return len(value)
    return sum(map(length, value)) if isinstance(value, tuple) else 32


def known_items(value: Value) -> tuple[Any, ...] | None:
    """The items of a sequence of constants."""
    if not isinstance(value, Sequence) or value.open or value.grows:
        return None
    items = [item.value for item in value.items if type(item) is Const]
    return tuple(items) if len(items) == len(value.items) else None


def fold(op: ast.operator, left: Any, right: Any) -> Value:
    """Python's arithmetic on constants, within bounds (no huge strings or numbers)."""
    function = ARITHMETIC.get(op.__class__)
    if function is None:
        return Unknown()
    if isinstance(left, str) and isinstance(op, ast.Mod):
        return spelled(left, lambda: left % right, len(left) + left.count("%") * length(right))
    if isinstance(left, (str, bytes, tuple)) or isinstance(right, (str, bytes, tuple)):
        if not isinstance(op, ast.Add) or length(left) + length(right) > LONGEST:
            return Unknown()
    elif isinstance(left, int) and isinstance(right, int) and max(abs(left), abs(right)) > 1 << 64:
        return Unknown()
    try:
        return Const(function(left, right))
    except Exception:
        return Unknown()
