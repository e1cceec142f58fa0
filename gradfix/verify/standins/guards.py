"""Code that prepares data and fails: what it would have given is made up, and the rest of it runs.

A script whose data are not there does with what was made up whatever it does with data: it takes names
of files apart, looks words up, counts, draws. Much of that fails for reasons that no message tells. So the
statement that failed is *guarded* in the next try: what it binds is made-up content where it fails again.
Where three statements of a function were guarded, or a guarded one did not help, the function is: what it
returns, or gives to ``self``, is made up by its own ``return`` statements. From there it goes outwards.

That is done for data only. Code has to do with the training, and is not guarded, if it is handed or names
a network, an optimizer or a tensor with a graph, makes one, or says ``backward``, ``parameters`` and the
like, itself or in what it calls; nor is what reads settings, which say what the script does. No condition
of the training is decided by what is made up here.

A place is named by its function and its text, not by its line, so that it is the same before a rewrite
and after it.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import importlib
import inspect
import os
import re
import sys
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import absent, content, context, finder, inert

ENOUGH = 3
"""Guarded statements of a function after which it is guarded itself."""
DEEP = 4
"""Calls that are followed to find out whether code has to do with the training."""
BATCHES = 16
"""Batches of a loader that are made up."""
TURNS = 256
"""Turns of a loop that only makes data, where the time was over in it."""

TRAINING = frozenset(
    "backward zero_grad parameters named_parameters state_dict load_state_dict requires_grad requires_grad_ "
    "retain_grad set_grad_enabled enable_grad autograd optim register_hook register_forward_hook detach_ "
    "register_backward_hook register_full_backward_hook Parameter DataParallel "
    "DistributedDataParallel".split()
)
"""Names that only code of the training says."""
SETTINGS = re.compile(
    r"^(.*_)?(conf|cfg|config|configs|setting|settings|args|opt|opts|options|params|hparams|hp)$"
)
"""Names of what says what a script does."""
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete)
HEADED = (ast.For, ast.With)
FUNCTIONS = (ast.FunctionDef, ast.ClassDef)
MADE, LOOPED, TRIED, SOME, GIVEN, YIELDED, FILLED, FOUND, KEPT, FEWER, LOADED = (
    "_gradfix_" + name
    for name in (
        "made", "looped", "tried", "some", "given", "yielded", "filled", "found", "kept", "fewer", "loaded"
    )
)  # fmt: skip
"""What guarded code calls, among the names that are built in."""


# -- which code is guarded -------------------------------------------------------------------


def planned() -> bool:
    """Whether any code is guarded, or shortened."""
    return any({"guard", "kept", "turns"} & fields.keys() for fields in content.book.plan.values())


def statement_key(scope: str, node: ast.stmt) -> str:
    """What a statement is called in a plan, the same wherever in its file it stands."""
    if isinstance(node, ast.For):
        text = ast.unparse(node.target) + " in " + ast.unparse(node.iter)
    elif isinstance(node, ast.With):
        text = "with " + ", ".join(ast.unparse(item) for item in node.items)
    else:
        text = ast.unparse(node)
    return scope + " " + format(zlib.crc32(text.encode()), "08x")


def place_of(run: context.Run, filename: str, key: str) -> str:
    """Where in a plan a piece of code stands."""
    shown = os.path.basename(run.script) if filename == run.script else os.path.relpath(filename, run.root)
    return "code of " + shown + ": " + key


def made(place: str) -> bool:
    """Whether the content at a place is what guarded code would have given."""
    scope = place.partition("[")[0]
    guarded = [key for key, fields in content.book.plan.items() if "guard" in fields]
    return any(re.search(rf": {re.escape(scope)}(?:\(\)| |$)", key) for key in guarded)


def level(place: str) -> str:
    """How a piece of code is guarded, empty if it is not."""
    return str(content.book.plan.get(place, {}).get("guard", ""))


class Spot:
    """A place in the user's code that is being executed: a statement of a function."""

    def __init__(self, run: context.Run, frame: types.FrameType, line: int) -> None:
        self.run = run
        self.frame = frame
        self.filename = frame.f_code.co_filename
        around = context.statements_at(run.tree(self.filename), line)
        self.scopes = [node for node in around if isinstance(node, FUNCTIONS)]
        self.scope = ".".join(node.name for node in self.scopes)
        self.statement = around[-1] if around else None
        inner = self.scopes[-1] if self.scopes else None
        self.function = inner if isinstance(inner, ast.FunctionDef) else None

    def place(self, key: str) -> str:
        return place_of(self.run, self.filename, key)

    def guards(self) -> Iterator[tuple[str, str]]:
        """The guards that might help, the narrowest first, as places and levels."""
        node, scope = self.statement, self.place(self.scope + "()")
        narrow = isinstance(node, (*SIMPLE, *HEADED, ast.Import, ast.ImportFrom))
        if node is not None and narrow and not level(scope):
            place = self.place(statement_key(self.scope, node))
            had = [one for one in content.book.plan if one.startswith(self.place(self.scope + " "))]
            if not (self.function is not None and len(had) >= ENOUGH and self.harmless(self.function)):
                if not level(place) and self.possible(node):
                    yield place, STATEMENT
        if self.function is not None and not level(scope) and self.harmless(self.function):
            if not self.function.name.startswith("__") or self.function.name in KNOWN:
                yield scope, "function"

    def guarded(self) -> bool:
        """Whether what fails here is guarded already."""
        node = self.statement
        if node is not None and level(self.place(statement_key(self.scope, node))):
            return True
        return self.function is not None and bool(level(self.place(self.scope + "()")))

    def possible(self, node: ast.stmt) -> bool:
        """Whether a statement only has to do with data."""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return any(alias.name == "*" for alias in node.names) is False
        if isinstance(node, ast.Assign) and any(
            SETTINGS.match(name) for one in node.targets for name in bound(one)
        ):
            return False
        if self.function is not None and self.function.name in (
            "__getattr__",
            "__getattribute__",
            "__setattr__",
        ):
            return False
        if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Yield, ast.YieldFrom, ast.Await)):
            return False
        if isinstance(node, ast.Return) and (node.value is None or self.function is None):
            return False
        parts: list[ast.AST] = [node]
        if isinstance(node, ast.For):
            parts = [node.iter]
        elif isinstance(node, ast.With):
            parts = [*node.items]
        return all(self.harmless(part) and not self.computes(part) for part in parts)

    def computes(self, node: ast.AST) -> bool:
        """Whether code of the training names tensors: they may only lack a graph as data are made up."""
        if self.function is not None and self.harmless(self.function):
            return False
        names = {one.id for one in context.walk(node) if isinstance(one, ast.Name)}
        held = [
            space[name]
            for name in names
            for space in (self.frame.f_locals, self.frame.f_globals)
            if name in space
        ]
        return any(isinstance(one, torch.Tensor) and one.is_floating_point() for one in inert.flat(held, 2))

    def harmless(self, node: ast.AST) -> bool:
        """Whether code of this place has nothing to do with the training."""
        spaces = [self.frame.f_locals, self.frame.f_globals]
        return not any(trains(value, 1) for value in self.given()) and not involves(node, spaces, DEEP, set())

    def given(self) -> list[Any]:
        """What the function that is being executed was given, but for the object that it belongs to."""
        code = self.frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if self.function is None:
            return []
        used = {one.id for one in context.walk(self.statement or self.function) if isinstance(one, ast.Name)}
        return [self.frame.f_locals.get(name) for name in names if name != "self" and name in used]


KNOWN = ("__init__", "__getitem__", "__len__", "__iter__", "__next__", "__call__")


def bound(target: ast.AST) -> list[str]:
    """The names, or attributes, that an assignment binds."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Attribute):
        return [target.attr]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for one in target.elts for name in bound(one)]
    return bound(target.value) if isinstance(target, (ast.Subscript, ast.Starred)) else []


KINDS = (torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)


def trains(value: Any, depth: int) -> bool:
    """Whether a value is part of the training, or holds something that is."""
    if isinstance(value, torch.Tensor):
        return value.requires_grad
    if isinstance(value, type):
        return issubclass(value, (*KINDS, torch.autograd.Function)) and not of_transformations(value)
    if isinstance(value, KINDS):
        return not changes_pictures(value)
    if isinstance(value, functools.partial):
        return any(trains(one, 1) for one in (value.func, *value.args, *value.keywords.values()))
    if depth and isinstance(value, (list, tuple)):
        return any(trains(one, depth - 1) for one in value[:8])
    if depth and isinstance(value, dict):
        return any(trains(one, depth - 1) for one in list(value.values())[:64])
    return False


def of_transformations(kind: type) -> bool:
    """Whether a class stands where libraries and projects have the transformations of data; a module of
    transformers is none of these."""
    return re.search(r"(^|[._])(transforms?|augment\w*)([._]|$)", str(kind.__module__)) is not None


def changes_pictures(value: Any) -> bool:
    """Whether an object is one of the transformations of data that are written as modules: no weights."""
    if not isinstance(value, torch.nn.Module) or not of_transformations(type(value)):
        return False
    # One that is still being made may not be able to say.
    return "_modules" not in vars(value) or next(value.parameters(), None) is None


def involves(node: ast.AST, spaces: list[Any], depth: int, seen: set[int]) -> bool:
    """Whether code has to do with the training: by what it says, by what its names are, or what it calls."""
    for one in context.walk(node):
        if isinstance(one, ast.Attribute) and one.attr in TRAINING:
            return True
        if isinstance(one, ast.Name) and one.id in TRAINING:
            return True
        if isinstance(one, ast.keyword) and one.arg in TRAINING:
            return True
    chains = Chains()
    chains.visit(node)
    return any(
        unfit(found, depth, seen, alone) for chain, alone in chains.found for found in values(chain, spaces)
    )


class Chains(ast.NodeVisitor):
    """The names that code reads, each with the attributes that are asked of it."""

    def __init__(self) -> None:
        self.found: list[tuple[list[str], bool]] = []

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """``a.b.c``, whole."""
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            self.found.append(([inner.id, *reversed(parts)], False))
        else:
            self.visit(inner)

    def visit_Name(self, node: ast.Name) -> None:
        """``a``, by itself."""
        self.found.append(([node.id], True))


def values(chain: list[str], spaces: list[Any]) -> Iterator[Any]:
    """What a name is, and what is found on the way along its attributes."""
    for space in spaces:
        if chain[0] in space:
            value = space[chain[0]]
            break
    else:
        return
    if isinstance(value, content.Content):
        return
    yield value if len(chain) == 1 or isinstance(value, KINDS) else None
    for name in chain[1:]:
        if isinstance(value, (content.Content, inert.Inert, torch.Tensor)):
            return
        owner = value
        value = vars(value).get(name) if hasattr(value, "__dict__") else None
        if value is None and not isinstance(owner, types.ModuleType):
            value = getattr(owner if isinstance(owner, type) else type(owner), name, None)
            if isinstance(value, types.FunctionType) and not isinstance(owner, type):
                value = types.MethodType(value, owner)
        if value is None:
            return
        if not (isinstance(value, types.ModuleType) and name == chain[-1]):
            yield value


def wrapped(value: Any) -> list[Any]:
    """What an object may call when it is called."""
    held = getattr(value, "__dict__", {})
    return [held.get(name) for name in ("callback", "__wrapped__", "func", "function")]


def unfit(value: Any, depth: int, seen: set[int], alone: bool) -> bool:
    """Whether a value that code names has to do with the training."""
    if trains(value, 1):
        return True
    if (
        alone
        and isinstance(getattr(value, "__dict__", None), dict)
        and not isinstance(value, (type, types.ModuleType))
    ):
        if not isinstance(value, types.FunctionType) and not isinstance(value, torch.utils.data.DataLoader):
            if any(trains(one, 1) for one in list(vars(value).values())[:64]):
                return True
    function: Any = vars(value).get("__init__") if isinstance(value, type) else value
    if not isinstance(value, (type, types.ModuleType, torch.nn.Module)) and not hasattr(function, "__code__"):
        # A command that a decorator has made of a function.
        function = next((one for one in wrapped(value) if isinstance(one, types.FunctionType)), function)
    spaces: list[Any] = []
    if isinstance(function, types.MethodType):
        function, owner = function.__func__, function.__self__
        names = getattr(getattr(function, "__code__", None), "co_varnames", ())
        spaces = [{names[0]: owner}] if names else []
    code = getattr(function, "__code__", None)
    run = context.run()
    if code is None or id(code) in seen or not depth:
        return False
    if not (code.co_filename == run.script or run.recorder.in_project(code.co_filename)):
        return False
    seen.add(id(code))
    found = [
        one
        for one in context.walk(run.tree(code.co_filename))
        if isinstance(one, ast.FunctionDef) and one.name == code.co_name
        # The code of a function begins with what decorates it.
        if code.co_firstlineno in (one.lineno, *(above.lineno for above in one.decorator_list))
    ]
    return bool(found) and involves(found[-1], [*spaces, function.__globals__], depth - 1, seen)


# -- what is advised -------------------------------------------------------------------------


def advise(error: BaseException) -> str | None:
    """A plan by which what failed is guarded, if it only has to do with data."""
    run = context.run()
    if not isinstance(error, Exception) or autograd(error):
        return None
    if not (run.lacking or isinstance(error, (OSError, ImportError))):
        return None  # It has all that it needs, and the mistake is its own.
    if type(error) is NameError and not planned():
        return None
    if NOTHING_KEPT.search(str(error)) and (plan := content.planned_with("code", "kept", True)) is not None:
        return plan
    spots, trace = [], error.__traceback__
    while trace is not None:
        if run.owns(trace.tb_frame):
            spots.append(Spot(run, trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return advised(spots[::-1], error)


NOTHING_KEPT = re.compile(
    r"empty (sequence|range)|num_samples|at least one array|non-empty|zero-size array|by zero|is an empty"
)
"""Messages where a condition may have kept nothing of what is made up."""


def autograd(error: BaseException) -> bool:
    """Whether an error is one of autograd's own, which is what a run is made to find."""
    return re.search(r"backward|inplace|in-place|requires? grad|grad_fn", str(error)) is not None


def advised(spots: list[Spot], error: BaseException | None) -> str | None:
    """The plan that guards the narrowest piece of code that can be."""
    if error is not None and "num_samples" in str(error) and spots:
        plan = (content.more_samples() if content.book.touched else None) or longer(spots[0])
        if plan is not None:
            return plan
    if (plan := loading(spots, error)) is not None:
        return plan
    for number, spot in enumerate(spots):
        if in_a_network(spot):
            break
        whole = widest(spots[number:])
        if whole and sum(of == whole for of in wholes().values()) >= ENOUGH:
            return widened(whole)
        for place, how in spot.guards():
            how += whole if how == STATEMENT else ""
            plan = content.planned_with(place, "guard", how)
            if plan is not None:
                return plan
    # What was guarded so far has led to something that cannot be: the functions that it is in are.
    return next((widened(whole) for whole in sorted({*wholes().values()}) if whole), None)


LOADING = re.compile(r"_?(?:load|restore|copy)_\w*(?:from|weights?|pretrained|npz|checkpoint|darknet|params)")
"""Names of methods by which a network takes trained weights out of a file, and of functions for that."""
WEIGHTS = "weights"
"""How a call of such a method is guarded."""
WEIGHTS_OF_FIRST = "weights of what is given first"
"""How a call of such a function is guarded."""
CHANGING = re.compile(
    r"\brequires_grad|\bParameter\(|\bregister_|\badd_module\(|\bsetattr\(|\bnn\.(?!init\b)"
)
"""What says that a method changes more of a network than its weights."""


def loading(spots: list[Spot], error: BaseException | None) -> str | None:
    """The plan by which a network keeps its own weights where a method of it, or a function that is given it
    first, fails to take others out of a file that is not there: ``net.load_from(np.load(path))``, where that
    does nothing else."""
    run = context.run()
    for number in reversed(range(1, len(spots))):
        inner, spot = spots[number - 1], spots[number]
        call = spot.statement.value if isinstance(spot.statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, (ast.Attribute, ast.Name)):
            continue
        given = inspect.getargvalues(inner.frame)
        owner, *others = (given.locals.get(name) for name in given.args or [""])
        called = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
        function = given.args[:1] != ["self"]
        if function:
            # What a function reads it may have found by itself.
            held = list(given.locals.values())
            others += [part for one in held for part in (one if isinstance(one, list) else [one])]
        made = (function and isinstance(error, FileNotFoundError)) or any(
            isinstance(one, content.Content)
            or (isinstance(one, str) and os.path.splitext(one)[1] and absent.is_absent(one))
            for one in others
        )
        if not made or not isinstance(owner, torch.nn.Module) or not LOADING.match(called):
            continue
        if function and (not call.args or isinstance(call.args[0], ast.Starred)):
            continue
        methods = [
            one
            for one in context.walk(run.tree(inner.filename))
            if isinstance(one, ast.FunctionDef) and one.name == called
        ]
        place = spot.place(statement_key(spot.scope, spot.statement)) if spot.statement else ""
        if methods and not any(CHANGING.search(ast.unparse(one)) for one in methods) and not level(place):
            return content.planned_with(place, "guard", WEIGHTS_OF_FIRST if function else WEIGHTS)
    return None


STATEMENT = "statement of "
"""How a statement is guarded, before the place of the function that may be guarded in its place."""


def wholes() -> dict[str, str]:
    """The places of statements that are guarded, with those of the functions that may be in their place."""
    levels = {place: level(place) for place in content.book.plan}
    return {
        place: how[len(STATEMENT) :]
        for place, how in levels.items()
        if how.startswith(STATEMENT) and not level(how[len(STATEMENT) :])
    }


def widest(spots: list[Spot]) -> str:
    """The place of the function that may be guarded for what fails in it, or in what it calls: that by which
    an item is asked for, or a set of data made, if there is one, else the innermost."""
    found = ""
    for spot in spots:
        if in_a_network(spot) or spot.function is None or not spot.harmless(spot.function):
            break
        asked = spot.function.name in KNOWN or "collate" in spot.function.name
        if not found or asked:
            known = asked or not spot.function.name.startswith("__")
            found = spot.place(spot.scope + "()") if known else found
        if asked and isinstance(spot.frame.f_locals.get("self"), torch.utils.data.Dataset):
            break
    return found


def widened(whole: str) -> str | None:
    """The plan by which a function is guarded in the place of its statements, and of what it calls."""
    for place, of in wholes().items():
        if of == whole:
            del content.book.plan[place]
    return content.planned_with(whole, "guard", "function")


def in_a_network(spot: Spot) -> bool:
    """Whether code is a part of what a network computes."""
    owner = spot.frame.f_locals.get("self")
    return isinstance(owner, KINDS) and not changes_pictures(owner)


def longer(spot: Spot) -> str | None:
    """The plan by which the data sets of the project that a statement names are not empty."""
    run = context.run()
    for one in context.walk(spot.statement or ast.Module([], [])):
        name = one.id if isinstance(one, ast.Name) else ""
        for space in (spot.frame.f_locals, spot.frame.f_globals):
            found = getattr(type(space.get(name)), "__len__", None)
            code = getattr(found, "__code__", None)
            if code is not None and run.owns_file(code.co_filename):
                place = place_of(
                    run,
                    code.co_filename,
                    str(code.co_qualname if hasattr(code, "co_qualname") else "") + "()",
                )
                if not level(place):
                    return content.planned_with(place, "guard", "some")
    return None


def advise_when_late() -> str | None:
    """A plan by which a loop over numbers ends early that only makes data, and in which the time was over."""
    run = context.run()
    for spot in reversed(stack()):
        for node in context.statements_at(run.tree(spot.filename), spot.frame.f_lineno):
            if isinstance(node, ast.For) and counted(node) is not None and spot.harmless(node):
                plan = content.planned_with(spot.place(statement_key(spot.scope, node)), "turns", TURNS)
                if plan is not None:
                    return plan
    return None


def counted(node: ast.For) -> ast.Call | None:
    """The ``range`` that a loop goes over."""
    for inner in context.walk(node.iter):
        if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") in ("range", "xrange", "trange"):
            return inner
    return None


def stopping() -> bool:
    """Whether the code that runs is guarded, so that a value that nobody knows only ends a part of it."""
    return any(spot.guarded() for spot in stack())


def advise_here() -> str | None:
    """A plan by which the code that runs is guarded, if it only has to do with data."""
    return advised(stack(), None)


def stack() -> list[Spot]:
    """The user's code that is being executed, innermost first."""
    run = context.run()
    frame: types.FrameType | None = sys._getframe(1)
    found = []
    while frame is not None:
        if run.owns(frame):
            found.append(Spot(run, frame, frame.f_lineno))
        frame = frame.f_back
    return found


# -- how it is guarded -----------------------------------------------------------------------


class Guard(ast.NodeTransformer):
    """Puts what a plan says in a ``try``, with content for what it would have given."""

    def __init__(self, run: context.Run, filename: str) -> None:
        self.run = run
        self.filename = filename
        self.scopes: list[str] = []
        self.loops = 0

    def level(self, key: str) -> str:
        return level(place_of(self.run, self.filename, key))

    @property
    def scope(self) -> str:
        return ".".join(self.scopes)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A scope."""
        return self.scoped(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A scope, guarded as a whole or not."""
        self.scoped(node)
        key = ".".join([*self.scopes, node.name])
        how = self.level(key + "()")
        if how == "some":
            Some(key).visit(node)
        elif how:
            self.whole(node, key)
        return node

    def scoped(self, node: Any) -> ast.AST:
        self.scopes.append(node.name)
        loops, self.loops = self.loops, int(node.name in ("__getitem__", "__next__", "__call__"))
        self.generic_visit(node)
        self.loops = loops
        self.scopes.pop()
        found: ast.AST = node
        return found

    def whole(self, node: ast.FunctionDef, key: str) -> None:
        """A function that gives what its ``return`` says where it fails."""
        first = 1 if ast.get_docstring(node, clean=False) is not None else 0
        body = node.body[first:]
        if not body:
            return
        own = list(own_nodes(node))
        give = next((one for one in reversed(own) if isinstance(one, ast.Return) and one.value), None)
        yields = [one for one in own if isinstance(one, (ast.Yield, ast.YieldFrom)) and one.value]
        after: list[ast.stmt]
        names = sorted(
            {
                one.attr
                for one in own
                if isinstance(one, ast.Attribute)
                and isinstance(one.ctx, ast.Store)
                and isinstance(one.value, ast.Name)
                and one.value.id == "self"
            }
        )
        if yields and yields[-1].value is not None:
            text = f"yield from {YIELDED}({key!r}, {ast.unparse(yields[-1].value)!r}, locals())"
        elif give is not None and give.value is not None:
            text = f"return {GIVEN}({key!r}, {ast.unparse(give.value)!r}, locals())"
        elif names:
            text = f"{FILLED}({key!r}, self, {names!r})"
        else:
            text = "pass"
        after = ast.parse(text).body
        node.body[first:] = [attempt(body, after)]

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """``[it for it in them if ...]``, which may keep nothing of what is made up."""
        self.generic_visit(node)
        if not content.book.planned("code", "kept") or not any(one.ifs for one in node.generators):
            return node
        whole = [
            ast.comprehension(one.target, one.iter, [], one.is_async)
            for one in copy.deepcopy(node.generators)
        ]
        found = calling(
            KEPT, [self.scope], ast.copy_location(ast.ListComp(copy.deepcopy(node.elt), whole), node)
        )
        found.args.insert(1, node)
        return found

    def visit(self, node: ast.AST) -> Any:
        """A statement, guarded or not."""
        if isinstance(node, (ast.For, ast.While)):
            self.loops += 1
            found = super().visit(self.header(node) if isinstance(node, ast.For) else node)
            self.loops -= 1
            return found
        if isinstance(node, ast.With):
            return super().visit(self.header(node))
        if not isinstance(node, (*SIMPLE, ast.Import, ast.ImportFrom)):
            return super().visit(node)
        how = self.level(statement_key(self.scope, node))
        if not how:
            return super().visit(node)
        if (
            how in (WEIGHTS, WEIGHTS_OF_FIRST)
            and isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
        ):
            network = node.value.args[0] if how == WEIGHTS_OF_FIRST else node.value.func.value  # type: ignore[attr-defined]
            call = calling(LOADED, [], node.value)
            call.args.insert(0, copy.deepcopy(network))
            node.value = call
            return node
        after = ast.parse("\n".join(self.instead(node)) or "pass").body
        return attempt([node], after)

    def instead(self, node: ast.stmt) -> list[str]:
        """The statements that bind what a failed one would have bound."""
        key = self.scope + ("[*]" if self.loops else "")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name.split(".")[0] for alias in node.names]
            source = (node.module or "") if isinstance(node, ast.ImportFrom) and not node.level else ""
            return [f"{name} = {FOUND}({source!r}, {alias.name!r})" for name, alias in zip(names, node.names)]
        if isinstance(node, ast.Return) and node.value is not None:
            return [f"return {GIVEN}({self.scope!r}, {ast.unparse(node.value)!r}, locals())"]
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        texts = node.value is not None and makes_text(node.value) if isinstance(node, ast.Assign) else False
        return [
            f"{ast.unparse(one)} = {MADE}({key!r}, {(bound(one) or ['it'])[0]!r}, {texts})"
            for target in targets
            for one in leaves(target)
        ]

    def header(self, node: Any) -> Any:
        """A loop over what fails, or ``with`` what fails."""
        key = statement_key(self.scope, node)
        if content.book.plan.get(place_of(self.run, self.filename, key), {}).get("turns"):
            node.iter = calling(FEWER, [], node.iter)
        if not self.level(key):
            return node
        if isinstance(node, ast.For):
            said = [ast.unparse(node.target), ast.unparse(node.iter)]
            node.iter = calling(LOOPED, [self.scope, *said], node.iter)
        else:
            for item in node.items:
                name = (bound(item.optional_vars) if item.optional_vars else []) or ["it"]
                item.context_expr = calling(TRIED, [self.scope, name[0]], item.context_expr)
        return node


class Some(ast.NodeTransformer):
    """Lets a function that returns nothing, or 0, return that there is something."""

    def __init__(self, key: str) -> None:
        self.key = key

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """``return len(self.files)``."""
        if node.value is not None:
            call = ast.Call(ast.Name(SOME, ast.Load()), [ast.Constant(self.key), node.value], [])
            node.value = ast.fix_missing_locations(ast.copy_location(call, node.value))
        return node


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function itself, not in one within it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            yield from own_nodes(child)


def leaves(target: ast.expr) -> list[ast.expr]:
    """The single targets of an assignment."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [inner for one in target.elts for inner in leaves(one)]
    return [target.value if isinstance(target, ast.Starred) else target]


def makes_text(node: ast.expr) -> bool:
    """Whether an expression gives a text: it adds to one, formats one or joins parts of a path."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return True
    if isinstance(node, ast.BinOp):
        return makes_text(node.left) or (isinstance(node.op, ast.Add) and makes_text(node.right))
    return isinstance(node, ast.Call) and (
        ast.unparse(node.func) in ("str", "os.path.join", "osp.join", "join")
        or (
            isinstance(node.func, ast.Attribute) and node.func.attr in ("strip", "lower", "format", "replace")
        )
    )


def attempt(body: list[ast.stmt], after: list[ast.stmt]) -> ast.Try:
    """``try: body except Exception: after``, where ``after`` stands at the first line of ``body``."""
    for statement in after:
        for one in context.walk(statement):
            ast.copy_location(one, body[0])
    handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, after)
    found = ast.Try(body, [handler], [], [])
    for node in (found, handler, handler.type):
        if node is not None:
            ast.copy_location(node, body[0])
    return found


def calling(name: str, said: list[str], value: ast.expr) -> ast.Call:
    """``name(*said, lambda: value)``."""
    nothing = ast.arguments([], [], None, [], [], None, [])
    call = ast.Call(
        ast.Name(name, ast.Load()), [*(ast.Constant(one) for one in said), ast.Lambda(nothing, value)], []
    )
    inner = set(context.walk(value))
    for node in context.walk(call):
        if node not in inner:
            ast.copy_location(node, value)
    return call


# -- what is given ---------------------------------------------------------------------------


def install(run: context.Run) -> None:
    """Make what guarded code calls, if any is guarded."""
    if not planned():
        return
    counts: dict[str, int] = {}
    content.convert_contents()

    def made(scope: str, name: str, text: bool = False) -> Any:
        number = counts[scope + name] = counts.get(scope + name, -1) + 1
        run.used(f"{name} in {shown(scope)}", "made up: the code that makes it failed without its data")
        found = piece(scope, name, number)
        return found._name() if text else found

    def some(key: str, value: Any) -> Any:
        if value != 0:
            return value
        run.used("length of " + key.partition(".")[0], str(content.SAMPLES))
        return content.SAMPLES

    def given(key: str, text: str, local: dict[str, Any]) -> Any:
        run.used("values of " + key, "made up: it failed without its data")
        scope, number = key, local.get("index", local.get("idx", local.get("i", local.get("item"))))
        if key.endswith("__getitem__"):
            scope = key + "[*]"
        if type(number) is not int:
            number = counts[key] = counts.get(key, -1) + 1
        return built(scope, ast.parse(text, mode="eval").body, local, number)

    def yielded(key: str, text: str, local: dict[str, Any]) -> Iterator[Any]:
        run.used("values of " + key, "made up: it failed without its data")
        for number in range(BATCHES):
            yield built(key, ast.parse(text, mode="eval").body, local, number)

    def filled(key: str, owner: Any, names: list[str]) -> None:
        run.used("values of " + key, "made up: it failed without its data")
        for name in names:
            held = vars(owner).get(name)
            if held is None or (isinstance(held, (list, dict, tuple, set)) and not held):
                setattr(owner, name, piece(key, name, 0))

    def loaded(network: Any, load: Callable[[], Any]) -> None:
        with content.unrecorded():
            own = [(one, one.detach().clone()) for one in [*network.parameters(), *network.buffers()]]
        try:
            load()
        except Exception:
            run.used("weights of " + type(network).__name__, "networks keep their own")
            with content.unrecorded(), torch.no_grad():
                for one, value in own:
                    if one.shape == value.shape:
                        one.data.copy_(value)
                    else:
                        one.data = value

    def fewer(over: Callable[[], Any]) -> Iterator[Any]:
        for number, one in enumerate(over()):
            if number == TURNS:
                run.used("a long loop that makes data", str(TURNS) + " turns")
                return
            yield one

    def looped(scope: str, target: str, text: str, over: Callable[[], Any]) -> Iterator[Any]:
        try:
            yield from over()
            return
        except Exception:
            run.used(f"{target} in {shown(scope)}", "made up: what it is taken from failed without its data")
        names = ast.parse(target, mode="eval").body
        counted = text.startswith("enumerate(")
        for number in range(BATCHES):
            if counted and isinstance(names, ast.Tuple) and len(names.elts) == 2:
                yield number, built(scope, names.elts[1], {}, number)
            else:
                yield built(scope, names, {}, number)

    def kept(scope: str, some: list[Any], whole: Callable[[], list[Any]]) -> list[Any]:
        if some:
            return some
        found = whole()
        if not found or any(trains(one, 1) for one in found):
            return some
        run.used(f"a list in {shown(scope)}", "all of it: its condition kept nothing of what is made up")
        return found

    def tried(scope: str, name: str, what: Callable[[], Any]) -> Any:
        try:
            return what()
        except Exception:
            return made(scope, name)

    for name, function in (
        (MADE, made),
        (SOME, some),
        (GIVEN, given),
        (YIELDED, yielded),
        (FILLED, filled),
        (FEWER, fewer),
        (LOADED, loaded),
        (FOUND, lambda source, name: imported(run, source, name)),
        (KEPT, kept),
        (LOOPED, looped),
        (TRIED, tried),
    ):
        setattr(builtins, name, function)


def imported(run: context.Run, source: str, name: str) -> Any:
    """What cannot be imported: from the module of its package that has it, else an object without values."""
    package = sys.modules.get(source)
    if (part := finder.defining(run, package, name)) is not None:
        return getattr(importlib.import_module(part), name)
    run.used("import of " + name, "objects without values")
    return inert.Inert(name)


def shown(scope: str) -> str:
    """A scope for people."""
    return scope.replace("[*]", "") or "the script"


def piece(scope: str, name: str, number: int) -> Any:
    """What is made up for a name of a scope."""
    dims: list[int] | None = [] if COUNTS.search(name) else None
    return content.part(f"{scope}[{name!r}]", number, bool(content.book.planned("code", "tensors")), dims)


COUNTS = re.compile(
    r"^(n|num|nb|in|out|max|min|total)_\w+$|(^|_)(size|dim|channels?|count|num|number|width|height|length)$|^(n|h|w|c)$",
    re.I,
)
"""Names of numbers."""


def built(scope: str, node: ast.expr, local: dict[str, Any], number: int) -> Any:
    """A value in the form of an expression; names that have a value keep it."""
    if isinstance(node, (ast.Tuple, ast.List)):
        values = [built(scope, one, local, number) for one in node.elts]
        return tuple(values) if isinstance(node, ast.Tuple) else values
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
        return {key: built(scope, one, local, number) for key, one in zip(keys, node.values)}
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "len":
        return content.CLASSES if content.LABEL.search(named(node)) else content.SAMPLES
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("int", "sum", "max", "min"):
        return int(content.part(f"{scope}[{named(node)!r}]", number, False, []))
    if isinstance(node, ast.Name) and node.id in local:
        held = local[node.id]
        if held is not None and not empty(held):
            return held
    return piece(scope, named(node), number)


def empty(value: Any) -> bool:
    """Whether a value of a function that failed holds nothing: it would have been filled."""
    size = getattr(value, "size", None) if not isinstance(value, torch.Tensor) else value.numel()
    return (isinstance(value, (list, dict)) and not value) or (type(size) is int and size == 0)


ROOTS = frozenset("torch np numpy F os self Image cv2 random json pickle transforms".split())


def named(node: ast.expr) -> str:
    """The name that says most about an expression's value."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return node.attr
        if isinstance(node, ast.Call):
            function = node.func
            root = function.value if isinstance(function, ast.Attribute) else None
            plain = root is None or (isinstance(root, ast.Name) and root.id in ROOTS)
            if plain and node.args and not isinstance(node.args[0], ast.Starred):
                node = node.args[0]
            elif root is not None and not plain:
                node = root
            else:
                node = function
        elif isinstance(node, (ast.Subscript, ast.Starred, ast.Await)):
            node = node.value
        elif isinstance(node, ast.BinOp):
            node = node.left
        else:
            return "value"
