"""Functions and classes of the project, which are followed into their bodies."""

from __future__ import annotations

import ast
from functools import lru_cache

from gradfix.autograd import imports
from gradfix.autograd.arguments import Argument, Call, Keywords, unwritten
from gradfix.autograd.engine import hand_over
from gradfix.autograd.graph import Leaf
from gradfix.autograd.parameters import leaves_of
from gradfix.autograd.run import Impossible, Run, Stopped
from gradfix.autograd.semantics.adjusting import make_schedule
from gradfix.autograd.semantics.attributes import member_of
from gradfix.autograd.semantics.dispatch import attribute, call_method, call_value, called, other_methods
from gradfix.autograd.semantics.distributions import make_distribution
from gradfix.autograd.semantics.layers import begin_layer
from gradfix.autograd.semantics.names import FUNCTION, GRAD_CONTEXTS
from gradfix.autograd.semantics.operations import may_carry, unknown
from gradfix.autograd.semantics.optimizers import is_optimizer, make_own_optimizer
from gradfix.autograd.semantics.unknown import call_unknown
from gradfix.autograd.values import (
    NONE,
    Class,
    Const,
    Frame,
    Function,
    GradMode,
    ImportedName,
    Instance,
    Mapping,
    Method,
    Module,
    Namespace,
    Omitted,
    ParameterIterable,
    Partial,
    PendingGenerator,
    Property,
    Sequence,
    StaticOrClassMethod,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    tensors_in,
)
from gradfix.core.syntax import walk


@called(Function)
def _call_function(run: Run, value: Function, call: Call) -> Value:
    return call_function(run, value, call)


@called(StaticOrClassMethod)
def _call_static(run: Run, value: StaticOrClassMethod, call: Call) -> Value:
    return call_function(run, value.function, call)


@called(Class)
def _call_class(run: Run, value: Class, call: Call) -> Value:
    return instantiate(run, value, call)


@called(Method)
def _call_bound(run: Run, value: Method, call: Call) -> Value:
    return call_method(run, value.of, Call(call.args, call.keywords, call.site, call.discarded, value.name))


@called(Partial)
def _call_partial(run: Run, value: Partial, call: Call) -> Value:
    merged = {k: (v, unwritten(call.site)) for k, v in value.keywords.items()}
    return call_value(
        run,
        value.function,
        Call(value.args + call.args, {**merged, **call.keywords}, call.site, call.discarded),
    )


@called(Instance)
def _call_instance(run: Run, value: Instance, call: Call) -> Value:
    method = value.cls.lookup("__call__")
    if isinstance(method, Function):
        return call_function(run, method.bind(value), call)
    if FUNCTION in value.cls.outside():
        # As functions were written until torch 1.2: an object is called. There is no graph inside.
        return call_value(run, attribute(run, value.cls, "apply", call.site), call)
    if value.cls.lookup("forward") is not None and value.cls.unknown_bases():
        forward = value.cls.lookup("forward")
        if isinstance(forward, Function):
            return call_function(run, forward.bind(value), call)
    return call_unknown(run, Unknown(value.cls.name), call)


@other_methods(Namespace)
def _namespace_member(
    run: Run,
    base: Namespace,
    call: Call,
) -> Value:
    return call_value(run, member_of(run, base, call.name), call)


@lru_cache(maxsize=4096)
def is_abstract(definition: ast.AST) -> bool:
    """Whether a method says that others are to define it."""
    if isinstance(definition, ast.Lambda):
        return False
    decorators = getattr(definition, "decorator_list", [])
    if any((getattr(d, "attr", None) or getattr(d, "id", None)) == "abstractmethod" for d in decorators):
        return True
    last = definition.body[-1]  # type: ignore[attr-defined]
    raised = last.exc if isinstance(last, ast.Raise) else None
    raised = raised.func if isinstance(raised, ast.Call) else raised
    rest = definition.body[:-1]  # type: ignore[attr-defined]
    return getattr(raised, "id", None) == "NotImplementedError" and all(
        isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in rest
    )


NESTED = 5
"""How often a function is followed into itself for what is in lists: those of states are seldom deeper."""


CUTTING = frozenset("detach detach_ data item numpy tolist no_grad new_tensor".split())
"""What leaves graphs behind."""


def _cuts(definition: ast.AST) -> bool:
    """Whether a function says anywhere that it leaves graphs behind."""
    return any(isinstance(node, ast.Attribute) and node.attr in CUTTING for node in walk(definition))


def _is_endless(run: Run, active: tuple[ast.AST, Module | None], args: list[Argument]) -> bool:
    """Whether a function has been followed into itself often enough."""
    # What goes into lists of pairs of states ends at the tensors.
    nested = any(isinstance(value, (Tensor, Sequence)) for value, _ in args)
    return run.active.count(active) >= (NESTED if nested else 2)


MANY_CALLS = 2_000
"""How many calls are followed within one call of a function that trains nothing.

No training script comes near it. A function may call another one twice, and that a third one twice.
"""


def _within_bounds(run: Run) -> bool:
    """Whether a call is followed, or there were too many within the outermost one that trains nothing."""
    helper = next((f for f, _ in run.active if not run.relevance.touches(f)), None)
    if helper is None:
        run.calls_within = 0
    elif run.calls_within >= MANY_CALLS:
        run.not_followed.add(getattr(helper, "name", "a lambda"))
        return False
    else:
        run.calls_within += 1
    return True


def call_function(run: Run, function: Function, call: Call) -> Value:
    """Follow a call into a function of the project."""
    args = call.args
    definition = function.node
    if definition.lineno <= 0:
        imports.joined(run, definition)
    # A network within a network of the same class is no recursion.
    active = definition, function.bound if isinstance(function.bound, Module) else None
    if run.depth >= run.max_depth or (active in run.active and _is_endless(run, active, args)):
        if not run.relevance.touches(definition):
            # A tree: the rest is like what was seen, unless the end of it is what matters.
            return unknown(run, args, call.keywords, call.site, function.name, certain=not _cuts(definition))
        return call_unknown(run, Unknown(function.name), Call(args, call.keywords, call.site, True))
    if isinstance(function.bound, (Module, Instance)) and is_abstract(definition):
        # A subclass that is not here has it.
        hand_over(run, [function.bound], call.site)
        missing = Unknown(function.name)
        missing.owner = function.bound if isinstance(function.bound, Module) else None
        return call_unknown(run, missing, Call(args, call.keywords, call.site, False))
    if not _within_bounds(run):
        return unknown(run, args, call.keywords, call.site, function.name, certain=False)
    frame = Frame(function.frame, function)
    if function.bound is not None:
        args = [(function.bound, unwritten(call.site)), *args]
    spec = definition.args
    if spec.vararg is None and len(args) > len(spec.posonlyargs) + len(spec.args):
        # Python raises here: this is not the function that is called.
        if run.scenario.other:
            raise Impossible
        result = unknown(run, args, call.keywords, call.site, function.name)
        if isinstance(result, Unknown) and result.node is None:
            may_carry(run, result, call.site)
        return result
    begins = isinstance(call.site, (ast.FunctionDef, ast.AsyncFunctionDef))
    bind(run, definition.args, frame, args, call.keywords, function.frame, by_anyone=begins)
    enabled = run.grad_enabled
    if isinstance(definition, ast.Lambda):
        run.charge(1)
        run.entered.add(definition)
        run.grad_enabled = function.mode.enabled if function.mode is not None else enabled
        result = run.evaluate(definition.body, frame)
        run.grad_enabled = enabled
        return result
    generator = run.relevance.generator(definition)
    if generator and not function.context and run.relevance.differentiates(definition):
        return PendingGenerator(definition, frame)  # entered when it is iterated
    run.entered.add(definition)
    if generator:
        if function.context:
            return PendingGenerator(definition, frame)
        return (
            _yielded_parameters(run, definition, frame)
            or _yielded_graphs(run, definition, frame)
            or Unknown("generator")
        )
    if function.mode is not None:
        run.grad_enabled = function.mode.enabled
    run.depth += 1
    run.active.append(active)
    statement, stack, guesses = run.statement, run.stack, len(run.guesses)
    if run.current_call is None:
        run.stack = (*stack, (call.site, args))
    try:
        flow = run.execute_block(definition.body, frame)
    finally:
        run.depth -= 1
        run.active.pop()
        del run.guesses[guesses:]
        if function.mode is not None:
            run.grad_enabled = enabled
        run.statement, run.stack = statement, stack
    if flow is None:
        return NONE
    value = getattr(flow, "value", None)
    if value is None:
        return _result_of_failure(run, function, call)
    assert isinstance(value, Value)
    return value


def _result_of_failure(run: Run, function: Function, call: Call) -> Value:
    """What a call gives that raises for sure, as far as can be seen.

    A program that works does not raise there: a registry is filled elsewhere, or files are there. So the
    result is unknown, and the run goes on.

    Raises:
        Stopped: A handler catches it, or a guess has led here that another run revises.
    """
    revisable = bool(run.refused) and run.refused[-1] not in run.scenario.revised_guesses
    main = run.scenario.main_run
    if run.handlers or revisable or (main is not None and call.site not in main.failed_calls):
        raise Stopped
    run.failed_calls.add(call.site)
    if isinstance(function.bound, Module):
        function.bound.rest = function.bound.rest or Leaf(f"the rest of {function.bound.label}", None)
    return call_unknown(run, Unknown(function.name), call)


def _yielded(run: Run, definition: ast.AST, frame: Frame) -> list[tuple[Value, int]]:
    """What a generator yields, run as a whole, each with the loops of unknown length around it."""
    assert isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef))
    found: list[tuple[Value, int]] = []
    statement, symbolic = run.statement, run.symbolic
    run.yielding[frame] = lambda value: found.append((value, run.symbolic - symbolic))
    run.depth += 1
    run.active.append((definition, None))
    try:
        run.execute_block(definition.body, frame)
    finally:
        del run.yielding[frame]
        run.depth -= 1
        run.active.pop()
        run.statement = statement
    return found


def _yielded_graphs(run: Run, definition: ast.AST, frame: Frame) -> Sequence | None:
    """What a generator of the project hands out that carries a graph: slices of what was computed before.

    It is run when it is called, so only one that writes nothing but its own variables.
    """
    if run.relevance.touches(definition) or not _writes_nothing(definition):
        return None
    found = [value for value, _ in _yielded(run, definition, frame)]
    carries = any(tensor.node is not None for value in found for tensor in tensors_in(value))
    return Sequence("list", found, True) if carries else None


WRITING = (ast.While, ast.With, ast.Try, ast.Raise, ast.Global, ast.Nonlocal)


@lru_cache(maxsize=4096)
def _writes_nothing(definition: ast.AST) -> bool:
    """Whether a function, as far as its own statements tell, writes nothing but its own variables."""
    return not any(
        isinstance(node, WRITING)
        or (isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        for node in walk(definition)
    )


def _yielded_parameters(run: Run, definition: ast.AST, frame: Frame) -> ParameterIterable | None:
    """The parameters that a generator of the project yields, where it yields nothing else.

    ``for module in self.modules(): for p in module.parameters(): yield p``, the groups of an optimizer. It is
    run when it is called: nothing that it reads changes before its items are asked for.
    """
    assert isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef))
    names = (node.attr for node in walk(definition) if isinstance(node, ast.Attribute))
    if run.relevance.touches(definition) or not any(name.endswith("parameters") for name in names):
        return None
    found = _yielded(run, definition, frame)
    leaves: dict[Leaf, None] = {}
    tests = [node.test for node in walk(definition) if isinstance(node, ast.If)]
    # Who picks by name or by kind leaves some to others.
    complete = all(isinstance(test, ast.Attribute) and test.attr == "requires_grad" for test in tests)
    for value, unknown_loops in found:
        if not isinstance(value, (SummaryTensor, ParameterIterable, Tensor)) or (
            isinstance(value, SummaryTensor) and value.view
        ):
            return None
        held, known = leaves_of(value)
        leaves.update(dict.fromkeys(held))
        # A loop over the parameters of a network is one, in a loop over its parts none may be left out.
        complete = complete and known and unknown_loops <= isinstance(value, SummaryTensor)
    return ParameterIterable(list(leaves), complete) if leaves else None


def bind(
    run: Run,
    spec: ast.arguments,
    frame: Frame,
    args: list[Argument],
    keywords: Keywords,
    outer: Frame,
    by_anyone: bool = False,
) -> None:
    """Bind arguments to parameters as Python does; what is missing is unknown.

    A function that is called ``by_anyone`` is an entry point, or sets its object up: callers out of sight may
    pass what has a default, too.
    """
    names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
    variables = frame.variables
    variables.update(zip(names, (v for v, _ in args)))
    missing = [*names[len(args) :], *(a.arg for a in spec.kwonlyargs)]
    if missing:
        defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults))
        defaults.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults) if d is not None})
        for name in missing:
            if name in keywords:
                variables[name] = keywords[name][0]
            elif name in defaults:
                variables[name] = default = run.evaluate(defaults[name], outer)
                if by_anyone and isinstance(default, Const):
                    variables[name] = _omitted(run, spec, name, default)
            else:
                variables[name] = _argument(run, spec, name)
    if spec.vararg is not None:
        variables[spec.vararg.arg] = Sequence("tuple", [v for v, _ in args[len(names) :]])
    if spec.kwarg is not None:
        known = set(names) | {a.arg for a in spec.kwonlyargs}
        variables[spec.kwarg.arg] = Mapping(
            {k: v for k, (v, _) in keywords.items() if k not in known and k != "**"}, "**" in keywords
        )
        if run.symbols is not None:
            run.symbols.keys[variables[spec.kwarg.arg]] = spec.kwarg
            run.symbols.names[spec.kwarg] = spec.kwarg.arg


def _omitted(run: Run, spec: ast.arguments, name: str, default: Const) -> Const:
    """A parameter of an entry point that has a default: a caller may pass it all the same."""
    if default.value is None:
        return Omitted(None, _argument(run, spec, name))
    return Omitted(default.value, Const(not default.value)) if isinstance(default.value, bool) else default


def _argument(run: Run, spec: ast.arguments, name: str) -> Value:
    """The value of a parameter that no call in sight binds."""
    return passed(run, next(a for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if a.arg == name))


def passed(run: Run, parameter: ast.arg) -> Value:
    """What a caller out of sight passes for a parameter."""
    value = Unknown(parameter.arg)
    if run.symbols is None:
        return value
    return run.symbols.introduce(value, parameter, parameter.arg, parameter)


def instantiate(run: Run, cls: Class, call: Call) -> Value:
    """Make an instance of a class of the project and run its ``__init__``."""
    if is_optimizer(cls):
        return make_own_optimizer(run, cls, call)
    value: Module | Instance = Module("user", cls.name, cls) if cls.is_module else Instance(cls)
    inherits = cls.unknown_bases() and FUNCTION not in cls.outside()
    if not cls.is_module and inherits and isinstance(cls.lookup("forward"), Function):
        value = Module("user", cls.name, cls)
    if isinstance(value, Module) and cls.unknown_bases():
        value.rest = Leaf(f"the rest of {cls.name}", None)
    if isinstance(value, Module):
        begin_layer(value, call)
    initialiser = cls.lookup("__init__")
    if isinstance(initialiser, Function):
        outer = run.current_call
        run.current_call = None
        call_function(run, initialiser.bind(value), call)
        run.current_call = outer
    elif isinstance(value, Instance):
        inherit(run, value, call)
        # A dataclass or a namedtuple: fields by position and keyword.
        fields = [
            s.target.id
            for s in cls.node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        value.attributes.update(zip(fields, (v for v, _ in call.args)))
        value.attributes.update({k: v for k, (v, _) in call.keywords.items()})
    return value


def decorate(run: Run, function: Value, decorator: ast.expr, frame: Frame) -> Value:
    """Apply a decorator; one that is not known is taken to keep the function's meaning."""
    value = run.evaluate(decorator, frame)
    if not isinstance(function, Function):
        return function
    if isinstance(value, GradMode):
        return function.within(value)
    if isinstance(value, ImportedName):
        if value.name == "builtins.property" or value.name.endswith("cached_property"):
            return Property(function)
        if value.name in ("builtins.staticmethod", "builtins.classmethod"):
            return StaticOrClassMethod(function, value.name.endswith("classmethod"))
        if value.name in GRAD_CONTEXTS:
            return function.within(GradMode(GRAD_CONTEXTS[value.name]))
        if value.name in ("contextlib.contextmanager", "contextlib.asynccontextmanager"):
            function.context = True
    made_by = value.cls if isinstance(value, Instance) else value
    if isinstance(made_by, (Function, PendingGenerator, Class)) and _sets_mode(made_by.node):
        return function.within(GradMode(None))
    return function


@called(GradMode)
def _call_mode(run: Run, value: GradMode, call: Call) -> Value:
    """``torch.no_grad()(evaluate)``: a context that is called decorates."""
    function = call.args[0][0] if call.args else NONE
    return function.within(value) if isinstance(function, Function) else function


@lru_cache(maxsize=1024)
def _sets_mode(definition: ast.AST) -> bool:
    """Whether a function, or a class, says anywhere whether graphs are recorded."""
    names = (getattr(node, "attr", getattr(node, "id", "")) for node in walk(definition))
    return not GRAD_MODES.isdisjoint(names)


GRAD_MODES = frozenset({"no_grad", "inference_mode", "set_grad_enabled", "enable_grad"})


def inherit(run: Run, of: Instance, call: Call) -> None:
    """Set up what an object inherits from a class of torch that the model knows: distributions, schedules."""
    if any(name.startswith("torch.distributions.") for name in of.cls.outside()):
        of.inherited = make_distribution(run, call)
    elif any(".lr_scheduler." in name for name in of.cls.outside()):
        of.inherited = make_schedule(run, call, call.argument("last_epoch", 1))
