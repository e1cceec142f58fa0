"""Calling a training function that nobody calls, with what its own body says of its arguments.

A parameter is what the body does with it. What is called, put in training mode or asked for its parameters
is a network of the file; what makes steps is an optimizer of the networks; what a loop goes over is
batches of a shape that the network takes; what a ``range`` goes up to is a number. Calls with literals
elsewhere in the project, defaults and annotations come first. Where nothing says what a parameter is, the
function is not called: the run ends and names it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import torch

from . import arguments, context, inert, library

WIDTH = 8
"""What a network of which nothing is known gets as a size."""
ATTEMPTS = 60
"""Inputs that a network is tried with."""
BATCHES = 16
CLASSIFIES = re.compile(r"cross_entropy|CrossEntropyLoss|nll_loss|NLLLoss")
CRITERION = re.compile(r"crit|loss|objective", re.I)
NETWORK = frozenset("parameters train eval state_dict load_state_dict zero_grad named_parameters".split())
NUMBERS = {"lr": 0.01, "rate": 0.01, "alpha": 0.5, "gamma": 0.9, "beta": 0.5, "decay": 0.0, "momentum": 0.5}
NUMBERS.update(dropout=0.0, eps=0.1, epsilon=0.1, tau=0.1, weight=1.0, scale=1.0, lambda_=1.0, coef=1.0)
"""What a number with such a name gets."""
LOGS = re.compile(r"log|writer|vis|tensorboard|wandb|progress|bar", re.I)


class Unknown(Exception):
    """Nothing says what a parameter is; the message is its name."""


class Missing(NamedTuple):
    """A function that cannot be called."""

    function: str
    argument: str
    line: int

    def said(self) -> str:
        """The reason, for people."""
        return (
            "nothing calls " + self.function + ", and nothing says what its argument " + self.argument + " is"
        )


def call(run: context.Run, main: types.ModuleType) -> Missing | None:
    """Call the first training function of the script whose arguments can be derived.

    Where there are functions but none can be called, what is in the way of the first is returned.
    """
    missing: Missing | None = None
    for name, node, make in candidates(run, main):
        try:
            ready = make()
        except Unknown as error:
            missing = missing or Missing(name, str(error), node.lineno)
            continue
        run.used("a caller of " + name, "called with " + (", ".join(ready[1]) or "its defaults"))
        ready[0]()
        return None
    return missing


Ready = tuple[Callable[[], Any], list[str]]
"""A call that can be made, and the names of the arguments that were derived for it."""


def candidates(
    run: context.Run, main: types.ModuleType
) -> Iterator[tuple[str, ast.FunctionDef, Callable[[], Ready]]]:
    """Functions and methods that train and are called by nobody, and how to get ready to call them."""
    for node in uncalled(run.tree(run.script)):
        owner = main.__dict__.get(node.name)
        if isinstance(node, ast.FunctionDef) and isinstance(owner, types.FunctionType):
            yield node.name, node, functools.partial(ready, run, main, owner, node)
        elif isinstance(node, ast.ClassDef) and isinstance(owner, type):
            methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
            for method in outermost(methods, owned_calls):
                if method.name not in ("__init__", "__call__"):
                    name = node.name + "." + method.name
                    yield name, method, functools.partial(ready_method, run, main, owner, node, method)


Definition = TypeVar("Definition", bound=ast.stmt)


def uncalled(tree: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    """The functions and classes at the top of a file that train, and that nothing in the file uses."""
    defined: dict[str, ast.FunctionDef | ast.ClassDef] = {
        node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    top: set[str] = set()
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            top |= names_called(node)
    asked = {one.attr for one in context.walk(tree) if isinstance(one, ast.Attribute)}

    def idle(node: ast.stmt) -> bool:
        # A file may make an object of its class only to see that it can be made.
        methods = {one.name: one for one in getattr(node, "body", ()) if isinstance(one, ast.FunctionDef)}
        training = {one.name for one in outermost(methods, owned_calls)}
        return bool(training) and not training & {*asked, "__init__", "__call__", "forward"}

    return [node for node in outermost(defined, names_called) if node.name not in top or idle(node)]


def names_called(node: ast.AST) -> set[str]:
    """The names that are called, or given as the work of a process."""
    found: set[str] = set()
    for one in context.walk(node):
        if isinstance(one, ast.Call):
            found.add(getattr(one.func, "id", ""))
            found.update(getattr(given.value, "id", "") for given in one.keywords if given.arg == "target")
    return found


def owned_calls(node: ast.AST) -> set[str]:
    """The methods of its own object that a method calls."""
    return {
        one.func.attr
        for one in context.walk(node)
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and is_name(one.func.value, "self")
    }


def outermost(defined: dict[str, Definition], calls_of: Callable[[ast.AST], set[str]]) -> list[Definition]:
    """Those that have a backward call, by themselves or by others, and that no other one calls."""
    calls = {name: calls_of(node) - {name} for name, node in defined.items()}
    reach = {name for name, node in defined.items() if ".backward(" in ast.unparse(node)}
    steps = any(".step(" in ast.unparse(node) for node in defined.values())
    for _ in defined:
        reach |= {name for name, others in calls.items() if others & reach}
    inner: set[str] = set()
    for name, others in calls.items():
        if name != "__init__":
            inner |= others
    return [defined[name] for name in defined if steps and name in reach - inner]


def ready(run: context.Run, main: types.ModuleType, function: Any, node: ast.FunctionDef) -> Ready:
    """A call of a function with all that it requires.

    Raises:
        Unknown: if an argument cannot be derived.
    """
    values = Arguments(run, main, node).all()
    return (lambda: function(**values)), told(values)


def ready_method(
    run: context.Run, main: types.ModuleType, owner: type, node: ast.ClassDef, method: ast.FunctionDef
) -> Ready:
    """A call of a method of a new object.

    Raises:
        Unknown: if an argument of the method or of the object's making cannot be derived.
    """
    init = next(
        (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None
    )
    made: dict[str, Any] = {}
    if init is not None:
        made = Arguments(run, main, init, renamed(node, kept(init))).all()
    else:
        for one in inspect.signature(owner).parameters.values():
            if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
                raise Unknown(one.name)
    work = getattr(owner(**made), method.name)
    held = {name: value for name, value in vars(work.__self__).items() if isinstance(value, torch.nn.Module)}
    body = renamed(method, {name: name for name in held})
    given = Arguments(run, main, method, body, held).all()
    return (lambda: work(**given)), told({**made, **given})


def kept(init: ast.FunctionDef) -> dict[str, str]:
    """The attributes in which an object keeps what it is made with, and the names of that."""
    names = {one.arg for one in [*init.args.args, *init.args.kwonlyargs]}
    return {
        target.attr: value.id
        for node in context.walk(init)
        if isinstance(node, ast.Assign)
        for one in node.targets
        for target, value in paired(one, node.value)
        if isinstance(value, ast.Name) and value.id in names
        if isinstance(target, ast.Attribute) and is_name(target.value, "self")
    }


def paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Targets with what they are given: ``self.a, self.b = a, b`` are two."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [*zip(target.elts, value.elts)]
    return [(target, value)]


def renamed(node: ast.AST, names: dict[str, str]) -> ast.AST:
    """A class or method with the names of what its object keeps in the places of the attributes."""
    return Held("self", names).visit(ast.parse(ast.unparse(node)).body[0])  # type: ignore[no-any-return]


def told(values: dict[str, Any]) -> list[str]:
    """Arguments as people read them: plain values, and of what kind the others are."""
    plain = (bool, int, float, str)
    return [
        name + "=" + (repr(value) if isinstance(value, plain) else type(value).__name__)
        for name, value in values.items()
    ]


PLAIN_CALLS = frozenset("range int float min max print str format".split())
"""Functions that a number may be given to without being more than a number."""


class Uses:
    """What the body of a function does with one of its parameters."""

    def __init__(self, name: str, body: ast.AST) -> None:
        self.attributes: set[str] = set()
        self.methods: set[str] = set()
        self.called_with: list[list[ast.expr]] = []
        self.loops: list[ast.For] = []
        self.computed = self.counted = self.passed = self.indexed = False
        for node in context.walk(body):
            if isinstance(node, ast.Attribute) and is_name(node.value, name):
                self.attributes.add(node.attr)
            elif isinstance(node, ast.Call):
                function = node.func
                if is_name(function, name):
                    self.called_with.append(node.args)
                if isinstance(function, ast.Attribute) and is_name(function.value, name):
                    self.methods.add(function.attr)
                if any(is_name(one, name) for one in node.args):
                    self.counted |= is_name(function, "range")
                    self.passed |= ast.unparse(function) not in PLAIN_CALLS
            elif isinstance(node, ast.Subscript):
                self.indexed |= is_name(node.value, name)
            elif isinstance(node, ast.For) and goes_over(node.iter, name):
                self.loops.append(node)
            elif isinstance(node, (ast.BinOp, ast.Compare)):
                sides = [node.left, *(node.comparators if isinstance(node, ast.Compare) else [node.right])]
                self.computed |= any(is_name(side, name) for side in sides)
        self.anything = bool(
            self.attributes or self.called_with or self.loops or self.computed or self.counted
        )


def is_name(node: ast.AST, name: str) -> bool:
    """Whether an expression is a name."""
    return isinstance(node, ast.Name) and node.id == name


def goes_over(node: ast.expr, name: str) -> bool:
    """Whether a loop over an expression goes over a name: itself, counted, or with a progress bar."""
    while isinstance(node, ast.Call) and node.args and not isinstance(node.func, ast.Attribute):
        if is_name(node.func, "range") or is_name(node.func, "len"):
            return False
        node = node.args[0]
    return is_name(node, name)


class Parameter(NamedTuple):
    """A parameter as it is written; decorators may hide it from whoever asks the function."""

    name: str
    annotation: str
    place: int
    """How many positional ones stand before it, other than ``self``."""


def required(node: ast.FunctionDef) -> list[Parameter]:
    """The parameters of a function that have no default."""
    positional = [*node.args.posonlyargs, *node.args.args]
    wanted = positional[: len(positional) - len(node.args.defaults)]
    wanted += [one for one, given in zip(node.args.kwonlyargs, node.args.kw_defaults) if given is None]
    methods = [one for one in wanted if one.arg in ("self", "cls")]
    return [
        Parameter(one.arg, ast.unparse(one.annotation).strip("\"'") if one.annotation else "", place)
        for place, one in enumerate(one for one in wanted if one not in methods)
    ]


class Arguments:
    """The values for one function's required parameters."""

    def __init__(
        self,
        run: context.Run,
        main: types.ModuleType,
        node: ast.FunctionDef,
        body: ast.AST | None = None,
        networks: dict[str, torch.nn.Module] | None = None,
    ) -> None:
        """``body`` is where the parameters are used, if not in the function alone, under the names that
        ``networks`` has for networks that are there."""
        self.run = run
        self.main = main
        self.node = node
        self.body = body or node
        self.called = getattr(self.body, "name", node.name)
        self.text = ast.unparse(self.body)
        self.networks = dict(networks or {})

    def all(self) -> dict[str, Any]:
        """A value for each parameter that has no default.

        Raises:
            Unknown: if one of them is unknown.
        """
        wanted = required(self.node)
        uses = {one.name: Uses(one.name, self.body) for one in wanted}
        found: dict[str, Any] = {}
        # Optimizers need the networks, batches what the networks take.
        for turn in (self.plain, self.network, self.made_of_networks):
            for one in wanted:
                if one.name not in found:
                    value = turn(one, uses[one.name])
                    if value is not NOTHING:
                        found[one.name] = value
        for one in wanted:
            if one.name not in found:
                raise Unknown(one.name)
        return {one.name: found[one.name] for one in wanted}

    # -- what needs nothing else ------------------------------------------------------------------

    def plain(self, parameter: Parameter, uses: Uses) -> Any:
        """Numbers, texts, devices, settings, and what only logs."""
        name, kind = parameter.name, parameter.annotation
        if name == "device" or kind == "torch.device":
            return torch.device("cpu")
        literal = elsewhere(self.run, self.called, name, parameter.place)
        if literal is not NOTHING:
            return literal
        if kind == "bool":
            return False
        if kind == "int" or uses.counted:
            return count_of(self.run, name)
        if kind == "float":
            return number_of(name)
        if kind == "str":
            return arguments.text_for(self.run, name)
        if uses.called_with or uses.loops:
            return NOTHING
        if LOGS.search(name) and not uses.computed:
            return inert.Inert(name, lenient=True)
        if uses.computed and not (uses.attributes or uses.passed or uses.indexed):
            known = any(part in name.lower() for part in NUMBERS)
            return number_of(name) if known else count_of(self.run, name)
        if re.fullmatch(r"epochs?|n_?epochs?|num_?epochs?|steps?|i|it|iteration|idx", name, re.I):
            return count_of(self.run, name)
        if uses.attributes and not uses.methods:
            return self.settings(name, uses)
        if re.search(r"(^|_)(folder|dir|directory|path|root)$", name) and not uses.attributes:
            return arguments.text_for(self.run, name)
        return NOTHING

    def settings(self, name: str, uses: Uses) -> Any:
        """An object of settings: what the file's own parser makes, else fields by their names and uses."""
        for one in vars(self.main).values():
            if isinstance(one, types.FunctionType) and re.search(r"arg|opt|config", one.__name__, re.I):
                if "parse_args" in self.run.text(one.__code__.co_filename):
                    found = one() if not inspect.signature(one).parameters else None
                    if found is not None and all(hasattr(found, field) for field in uses.attributes):
                        return found
        fields: dict[str, Any] = {}
        for field in sorted(uses.attributes):
            held = Uses(field, Held(name).visit(ast.parse(self.text)))
            if held.called_with or held.loops or held.attributes:
                raise Unknown(name + "." + field)
            if "device" in field:
                fields[field] = torch.device("cpu")
            elif arguments.PATH.search(field) and not (held.counted or held.computed):
                fields[field] = arguments.text_for(self.run, field)
            elif any(part in field.lower() for part in NUMBERS):
                fields[field] = number_of(field)
            elif held.counted or held.computed:
                fields[field] = count_of(self.run, field)
            elif re.match(r"use_|is_|no_|do_|cuda|verbose|debug", field):
                fields[field] = False
            else:
                raise Unknown(name + "." + field)
        return types.SimpleNamespace(**fields)

    # -- networks, and what is made for them ------------------------------------------------------

    def network(self, parameter: Parameter, uses: Uses) -> Any:
        """A network of the file for what is called, or asked for its parameters."""
        name = parameter.name
        if not (uses.called_with or uses.methods & NETWORK) or uses.loops:
            return NOTHING
        if CRITERION.search(name) and not uses.methods & NETWORK:
            return NOTHING
        if "zero_grad" in uses.methods and "step" in uses.methods:
            return NOTHING
        kinds = [
            kind
            for kind in vars(self.main).values()
            if isinstance(kind, type)
            and issubclass(kind, torch.nn.Module)
            and not kind.__module__.startswith(("torch.", "_gradfix"))
        ]
        annotated = [kind for kind in kinds if parameter.annotation == kind.__name__]
        alike = [kind for kind in kinds if similar(name, kind.__name__)]
        fitting = fit(self.run, kinds, uses.attributes)
        for kind in annotated or fitting or alike or (kinds if len(kinds) == 1 else []):
            made = construct(self.run, kind)
            if made is not None:
                self.networks[name] = made
                return made
        return NOTHING

    def made_of_networks(self, parameter: Parameter, uses: Uses) -> Any:
        """Optimizers, schedules, losses and batches."""
        name = parameter.name
        if "step" in uses.methods and self.networks:
            if re.search(r"sched", name, re.I):
                return inert.Inert(name, lenient=True)
            alike = [net for own, net in self.networks.items() if similar(name, own)]
            owned = alike if len(alike) == 1 else list(self.networks.values())
            weights = [weight for net in owned for weight in net.parameters()]
            return torch.optim.SGD(weights, lr=0.01) if weights else NOTHING
        if uses.called_with and CRITERION.search(name) and len(uses.called_with[0]) == 2:
            return self.criterion(name, uses.called_with)
        if uses.loops and self.networks:
            return self.batches(uses.loops[0])
        for own, net in self.networks.items():
            if any(
                is_name(one, name) for given in Uses(own, self.body).called_with for one in given
            ) and parameter.annotation.endswith("Tensor"):
                shaped = inputs_of(self.run, net)
                return NOTHING if shaped is None else shaped[0]
        return NOTHING

    def criterion(self, name: str, calls: list[list[ast.expr]]) -> Any:
        """The loss that the project or the body means by a name; else another one for each seed.

        Before a rewrite and after it the seed's is the same. What is to be proved has to hold for each of
        them, which save different tensors for their gradients, so it does not rest on a guess.
        """
        named = losses_named(self.run, name)
        if len(named) == 1:
            return next(iter(named.values()))()
        if any(self.compares_classes(given[1]) for given in calls):
            return torch.nn.CrossEntropyLoss()
        ends = [list(net.modules())[-1] for net in self.networks.values()]
        judges = ends and all(isinstance(one, torch.nn.Sigmoid) for one in ends)
        first = torch.nn.BCELoss if judges else torch.nn.MSELoss
        return (first, torch.nn.SmoothL1Loss, Difference)[self.run.seed % 3]()

    def compares_classes(self, target: ast.expr) -> bool:
        """Whether the body compares a loss's target with the place of the largest answer."""
        name = re.escape(ast.unparse(target))
        compared = rf"== ?{name}\b|{name} ?==|\.eq\({name}\b|{name}\.eq\(|{name}\.long\(\)"
        return bool(LARGEST.search(self.text) and re.search(compared, self.text))

    @functools.cached_property
    def classifies(self) -> bool:
        """Whether a loss of the body is over classes."""
        if CLASSIFIES.search(self.text):
            return True
        for one in required(self.node):
            calls = Uses(one.name, self.body).called_with
            if calls and CRITERION.search(one.name) and len(calls[0]) == 2:
                named = losses_named(self.run, one.name)
                if any(CLASSIFIES.search(known) for known in named):
                    return True
                if not named and any(self.compares_classes(given[1]) for given in calls):
                    return True
        return False

    def batches(self, loop: ast.For) -> Any:
        """Batches that the network takes which the loop calls."""
        target = loop.target
        if isinstance(loop.iter, ast.Call) and "enumerate" in ast.unparse(loop.iter.func):
            target = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else target
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        names = [one.id for one in parts if isinstance(one, ast.Name)]
        first = parts[0].id if isinstance(parts[0], ast.Name) else ""
        taking = [
            net
            for own, net in self.networks.items()
            if any(given and first in ast.unparse(given[0]) for given in Uses(own, loop).called_with)
        ]
        taking = taking or list(self.networks.values())
        if len(taking) != 1 or len(names) != len(parts) or not 1 <= len(parts) <= 2:
            return NOTHING
        shaped = inputs_of(self.run, taking[0])
        if shaped is None:
            return NOTHING
        example, result = shaped
        if len(parts) == 2 and not isinstance(result, torch.Tensor):
            return NOTHING
        found = Batches()
        for number in range(BATCHES):
            generator = self.run.generator("batch", number)
            given = alike(example, generator)
            if isinstance(target, (ast.Tuple, ast.List)) and len(parts) == 2:
                found.append((given, self.wanted(result, generator)))
            else:
                found.append((given,) if isinstance(target, (ast.Tuple, ast.List)) else given)
        return found

    def wanted(self, result: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """What the network is to answer: classes if the function's loss is over classes."""
        if self.classifies and result.dim() >= 2:
            shape = (result.shape[0], *result.shape[2:])
            return torch.randint(0, result.shape[1], shape, generator=generator)
        return torch.rand(result.shape, generator=generator)


NOTHING = object()
"""What is returned where nothing was found."""


class Difference(torch.nn.Module):
    """The mean difference, whose gradient needs neither the answer nor what was wanted."""

    def forward(self, answer: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        """Of an answer and what was wanted of it."""
        return (answer - wanted).mean()


LARGEST = re.compile(r"argmax|\.max\(|torch\.max|topk")


def losses_named(run: context.Run, name: str) -> dict[str, type[torch.nn.Module]]:
    """The losses of torch that the script and the files beside it give to a name, by their names."""
    found: dict[str, type[torch.nn.Module]] = {}
    for text in library.texts(run):
        for node in context.walk(context.parse(text)):
            kind = made_plainly(given_to(node, name))
            if isinstance(kind, type) and kind.__name__.endswith("Loss"):
                found[kind.__name__] = kind
    return found


def given_to(node: ast.AST, name: str) -> ast.expr | None:
    """What an assignment, or an argument of a call, gives to a name."""
    if isinstance(node, ast.Assign) and any(is_name(one, name) for one in node.targets):
        return node.value
    return node.value if isinstance(node, ast.keyword) and node.arg == name else None


def made_plainly(value: ast.expr | None) -> Any:
    """The class of torch's modules that is made without arguments, and perhaps moved: ``Loss().cuda()``."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if not isinstance(value.func.value, ast.Call):
            break
        value = value.func.value
    if not isinstance(value, ast.Call) or value.args or value.keywords:
        return None
    return getattr(torch.nn, getattr(value.func, "attr", getattr(value.func, "id", "")), None)


class Held(ast.NodeTransformer):
    """Turns ``args.field`` into ``field``, so that the uses of what is held are those of a name."""

    def __init__(self, owner: str, names: dict[str, str] | None = None) -> None:
        """Of all attributes of ``owner``, or of those in ``names``, with what they are to be called."""
        self.owner = owner
        self.names = names

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """``args.field``."""
        self.generic_visit(node)
        name = node.attr if self.names is None else self.names.get(node.attr)
        return ast.Name(name, node.ctx) if name and is_name(node.value, self.owner) else node


class Batches(list[Any]):
    """What a function takes for a loader."""

    @property
    def dataset(self) -> Batches:
        """As many samples as batches, for what only counts them."""
        return self

    batch_size = 4
    sampler = None


GENERAL = frozenset("net network model optimizer optim opt".split())
"""Parts of names that do not tell one thing from another."""


def similar(one: str, other: str) -> bool:
    """Whether two names are of the same thing: ``netG`` and ``Generator``, ``d_optimizer`` and ``D``."""
    short = {"g": "generator", "d": "discriminator", "c": "critic", "e": "encoder", "f": "classifier"}

    def parts(name: str) -> set[str]:
        found = {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+", name)}
        return {short.get(part, part) for part in found} - {
            "net",
            "network",
            "model",
            "optimizer",
            "optim",
            "opt",
        }

    return bool(parts(one) & parts(other))


def number_of(name: str) -> float:
    """A number for what is called so."""
    return next((value for part, value in NUMBERS.items() if part in name.lower()), 1.0)


def count_of(run: context.Run, name: str) -> int:
    """A small whole number for what is called so; more than enough epochs, as a run ends by its budget."""
    if re.search(r"interval|every|freq|accum", name, re.I):
        return 1
    return 4 if re.search(r"batch", name, re.I) else 2


def elsewhere(run: context.Run, called: str, name: str, position: int) -> Any:
    """The literal that a call in the script gives for a parameter."""
    for node in context.walk(run.tree(run.script)):
        if not isinstance(node, ast.Call):
            continue
        if getattr(node.func, "id", getattr(node.func, "attr", "")) != called:
            continue
        given = [one.value for one in node.keywords if one.arg == name]
        given += node.args[position : position + 1]
        if given and isinstance(given[0], ast.Constant):
            return given[0].value
    return NOTHING


def fit(run: context.Run, kinds: list[type], asked: set[str]) -> list[type]:
    """The one class that has all that is asked for and that not every network has, as a list; else none."""
    special = {name for name in asked if not hasattr(torch.nn.Module, name) and name != "module"}
    found = [kind for kind in kinds if special <= attributes_of(run, kind)] if special else []
    return found if len(found) == 1 else []


def attributes_of(run: context.Run, kind: type) -> set[str]:
    """What objects of a class have: what it defines, and what its methods give to ``self``."""
    found = set(dir(kind))
    for node in context.walk(definition(run, kind) or ast.Module([], [])):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and is_name(node.value, "self")
        ):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[0], ast.Constant):
            found.add(str(node.args[0].value))  # ``register_buffer``, by whatever name.
    return found


def definition(run: context.Run, kind: type) -> ast.ClassDef | None:
    """The statement that defines a class of the script."""
    body = run.tree(run.script).body
    return next((one for one in body if isinstance(one, ast.ClassDef) and one.name == kind.__name__), None)


def inner_network(run: context.Run, kind: type, name: str) -> Any:
    """The network that a network of the script is made around, by what its methods ask of it."""
    node = definition(run, kind)
    init = next((one for one in node.body if getattr(one, "name", "") == "__init__"), None) if node else None
    if node is None or not isinstance(init, ast.FunctionDef):
        return None
    uses = Uses(name, renamed(node, kept(init)))
    kinds = [
        one
        for one in vars(sys.modules[kind.__module__]).values()
        if isinstance(one, type)
        and issubclass(one, torch.nn.Module)
        and one is not kind
        and definition(run, one) is not None
    ]
    for one in fit(run, kinds, uses.attributes):
        return construct(run, one)
    return None


def construct(run: context.Run, kind: type) -> Any:
    """A network of a class whose arguments have defaults, are given as literals, are sizes, or networks."""
    values: dict[str, Any] = {}
    try:
        parameters = list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):
        return None
    for position, one in enumerate(parameters):
        if one.default is not one.empty or one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        literal = elsewhere(run, kind.__name__, one.name, position)
        number = one.annotation in (int, "int", one.empty) and re.search(
            r"dim|size|num|n_|_n|in_|out|hid|feat|channel|width|class|vocab|embed|unit|state|action|nc|nz|ngf|ndf",
            one.name,
            re.I,
        )
        if literal is NOTHING and not number:
            inner = inner_network(run, kind, one.name)
            if inner is None:
                return None
            values[one.name] = inner
            continue
        values[one.name] = WIDTH if literal is NOTHING else literal
    try:
        return kind(**values)
    except Exception:
        return None


def inputs_of(run: context.Run, net: torch.nn.Module) -> Any:
    """An input that a network takes and what it answers, or ``None``; the network stays as it was."""
    try:
        required = [
            one
            for one in inspect.signature(net.forward).parameters.values()
            if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
        ]
    except (TypeError, ValueError):
        return None
    if len(required) != 1:
        return None
    modes = {module: module.training for module in net.modules()}
    state = torch.get_rng_state()
    net.eval()
    try:
        with torch.no_grad():
            for example in itertools.islice(examples(run, net), ATTEMPTS):
                try:
                    return example, net(example)
                except Exception:
                    continue
    finally:
        torch.set_rng_state(state)
        for module, mode in modes.items():
            module.training = mode
    return None


def examples(run: context.Run, net: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Inputs of the shapes that a network's first layers may take."""
    generator = run.generator("example")
    sides: tuple[int, ...] = (28, 32, 64, 16, 8, 128, 224)
    for layer in net.modules():
        shapes: list[tuple[int, ...]] = []
        if isinstance(layer, torch.nn.Embedding):
            for size in ((4, 8), (8, 4), (4,), (1,)):
                yield torch.randint(0, layer.num_embeddings, size, generator=generator)
        elif isinstance(layer, torch.nn.Linear):
            flat = layer.in_features
            pictures = [(planes, side) for side in sides for planes in (1, 3)]
            shapes = [(4, flat), (4, 7, flat), (flat,)]
            shapes += [(4, planes, side, side) for planes, side in pictures if planes * side**2 == flat]
        elif isinstance(layer, torch.nn.Conv2d):
            shapes = [(4, layer.in_channels, side, side) for side in sides]
        elif isinstance(layer, torch.nn.ConvTranspose2d):
            shapes = [(4, layer.in_channels, 1, 1), (4, layer.in_channels)]
        elif isinstance(layer, torch.nn.Conv1d):
            shapes = [(4, layer.in_channels, 32)]
        elif isinstance(layer, torch.nn.RNNBase):
            shapes = [(4, 7, layer.input_size)]
        for shape in shapes:
            yield torch.rand(shape, generator=generator)


def alike(example: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Another input of the same kind."""
    if example.is_floating_point():
        return torch.rand(example.shape, generator=generator)
    return torch.randint(0, int(example.max()) + 1, example.shape, generator=generator)
