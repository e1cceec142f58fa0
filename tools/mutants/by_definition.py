"""Operators whose mutants are faults by definition: they waste memory, or train in the wrong mode.

No gradient on a stage shows these faults. So each operator plants only where the file itself shows that what
comes out is one; what it is not sure of, it passes over.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from syntax import FUNCTIONS, LOOPS, Code, Plan, Project, method_of, without_head

from gradfix.core.codemod import MoveStatement, RemoveStatement, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rules.edits import targets_in

Loop = ast.For | ast.While | ast.AsyncFor
CUTTING = frozenset({"item", "detach", "numpy", "tolist"})
"""Methods after which nothing has a graph."""
PASSED_ON = frozenset({"cpu", "cuda", "clone", "float", "to"})
"""Methods that may stand in a chain with these."""
SWITCHES = re.compile(r"no_grad|inference_mode|enable_grad|set_grad_enabled")
LOOKS = re.compile(
    r"\bgrad\b|requires_grad|enable_grad|set_grad_enabled|\w[a-z]_\(|\.numpy\(\)|\bnp\.|\bnumpy\."
)
"""What evaluation does not do, or cannot do with what has a graph."""
NUMBERS = re.compile(r"\.(data|detach\(\))(\.cpu\(\))?\.numpy\(\)")
FREEZES = re.compile(r"requires_grad\s*=\s*False|requires_grad_\((False|requires_grad=False)\)|[Ff]reez")
CONSTANT = re.compile(r"target(?!s\b)|teacher|[_.]old|old_|_ema|ema_")
"""Names of networks whose output is taken for a constant."""
MODES = re.compile(
    r"BatchNorm|Dropout\w*\((?!\s*(p\s*=\s*)?0(\.0*)?\s*[,)])|F\.dropout|self\.training|track_running_stats\s*=\s*True"
    r"|nn\.Transformer|\b(models|torchvision\.models)\.(resnet|vgg|densenet|mobilenet|efficientnet|inception)",
)
"""What depends on the mode of a network."""
DEPTH = 3
"""So many calls are followed from a loop."""
SHORT = 8
"""A loop over so few numbers keeps so few graphs that nobody notices."""


# ---------------------------------------------------------------------------- graphs kept for the log


def item_dropped(code: Code) -> Iterator[Plan]:
    """``total += loss.item()`` => ``total += loss``; lists, dicts, meters, ``detach()``, ``float(loss)``.

    Each pass of a loop adds to what is there before it, and the loss is differentiated in the same pass. That
    nobody differentiates the sum is plain: in the original it has no graph.
    """
    for node in ast.walk(code.tree):
        kept = _kept(code, node)
        if kept is None or _switched(code, node):
            continue
        target, value = kept
        scope = code.loop(node) or code.function(node)
        if _is_short(scope) or not _grows(code, scope, node, target):
            continue
        if not isinstance(scope, LOOPS) and not (
            isinstance(target, ast.Attribute) and _is_repeated(code, scope) and _lives_on(code, scope, target)
        ):
            continue
        for number in _summands(value):
            tensor = _tensor(number)
            backwards = [] if tensor is None else _differentiating(code, scope, tensor, node)
            if tensor is not None and backwards:
                edit = ReplaceExpression(Span.of(number), code.segment(tensor))
                yield Plan(number, (edit,), (code.statement(node), *backwards))


def returned_item_dropped(code: Code) -> Iterator[Plan]:
    """``return loss.item()`` => ``return loss``, if a caller adds up or lists what it gets in each pass."""
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Return):
            yield from _handed_back(code, node)


def _handed_back(code: Code, node: ast.Return) -> Iterator[Plan]:
    function = code.function(node)
    if not isinstance(function, ast.FunctionDef) or node.value is None or code.loop(node) is not None:
        return
    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    for number, part in enumerate(parts):
        tensor = _tensor(part)
        backwards = [] if tensor is None else _differentiating(code, function, tensor, node)
        if tensor is None or not backwards:
            continue
        index = number if len(parts) > 1 else None
        callers = [(c, call) for c in {*code.project.codes, code} for call in _calls_to(c, code, function)]
        kept = [(c, s) for c, call in callers for s in _keeps_result(c, call, index)]
        if kept:
            edit = ReplaceExpression(Span.of(part), code.segment(tensor))
            here = (s for c, s in kept if c is code)
            yield Plan(part, (edit,), (node, *backwards, *here))


def _calls_to(caller: Code, code: Code, function: ast.FunctionDef) -> Iterator[ast.Call]:
    if function.name in caller.text:
        for node in ast.walk(caller.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rsplit(".", 1)[-1] == function.name:
                if _called(caller, node) == (code, function):
                    yield node


def _keeps_result(code: Code, call: ast.Call, index: int | None) -> Iterator[ast.stmt]:
    """The statements that keep what a call gives back (of several things, one) from pass to pass."""
    loop, statement = code.loop(call), code.statement(call)
    if loop is None or _is_short(loop) or _switched(code, call):
        return
    name = ""
    if isinstance(statement, ast.Assign) and statement.value is call:
        target = statement.targets[0]
        if index is not None:
            target = (
                target.elts[index] if isinstance(target, ast.Tuple) and index < len(target.elts) else target
            )
        name = target.id if isinstance(target, ast.Name) else ""
    for part in ast.walk(loop):
        kept = _kept(code, part)
        if kept is None or code.loop(part) is not loop or not _grows(code, loop, part, kept[0]):
            continue
        for summand in _summands(kept[1]):
            if (summand is call and index is None) or (name and ast.unparse(summand) == name):
                yield code.statement(part)


def _kept(code: Code, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """What holds something from pass to pass, and what is put into it here."""
    match node:
        case ast.AugAssign(target, ast.Add(), value):
            return target, value
        case ast.Assign([target], ast.BinOp(left, ast.Add(), value)) if ast.unparse(target) == ast.unparse(
            left
        ):
            return target, value
        case ast.Expr(ast.Call(ast.Attribute(target, "append"), [value], [])):
            return target, value
        case ast.Expr(ast.Call(ast.Attribute(target, "update"), [value, *_], [])) if _adds_up(code, target):
            return target, value
    return None


def _adds_up(code: Code, meter: ast.expr) -> bool:
    """Whether something is a meter whose ``update`` adds up what it is handed, as it is."""
    text = ast.unparse(meter)
    made = [value for value in _bound_to(code.tree, text) if isinstance(value, ast.Call)]
    if not made:
        return False
    kind = ast.unparse(made[0].func).rsplit(".", 1)[-1]
    try:
        tree = ast.parse(code.project.texts.get(kind, ""))
    except SyntaxError:
        return False
    for method in ast.walk(tree):
        if isinstance(method, ast.FunctionDef) and method.name == "update" and len(method.args.args) > 1:
            given = method.args.args[1].arg
            words = {
                ast.unparse(part) for part in ast.walk(method) if isinstance(part, (ast.Call, ast.Assign))
            }
            sums = [p for p in ast.walk(method) if isinstance(p, ast.AugAssign) and given in _names(p.value)]
            return bool(sums) and not any("(" in word or word.startswith(f"{given} =") for word in words)
    return False


def _is_repeated(code: Code, function: ast.AST) -> bool:
    """Whether a loop of the project calls a function in each pass."""
    return isinstance(function, ast.FunctionDef) and any(
        caller.loop(call) is not None and not _is_short(caller.loop(call))
        for caller in {*code.project.codes, code}
        for call in _calls_to(caller, code, function)
    )


def _lives_on(code: Code, function: ast.AST, holder: ast.expr) -> bool:
    """Whether an attribute is begun anew nowhere but where its object is made."""
    return all(
        getattr(code.function(value), "name", "") == "__init__"
        for value in _bound_to(code.tree, ast.unparse(holder))
    )


def _grows(code: Code, loop: ast.AST, node: ast.AST, target: ast.expr) -> bool:
    """Whether what holds something is empty before the loop, and no pass of it begins anew."""
    holder = target
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    text = ast.unparse(holder)
    before = [value for value in _bound_to(code.tree, text) if _is_empty(value)]
    listed = isinstance(node, ast.Expr)
    meter = listed and method_of(node.value) == "update"  # type: ignore[attr-defined]
    if isinstance(target, ast.Subscript):
        if not any(isinstance(v, (ast.Dict, ast.Call, ast.DictComp)) for v in before):
            return False
    elif not meter and not any(isinstance(v, ast.List) == listed for v in before):
        return False
    for part in ast.walk(loop):
        bound = isinstance(part, ast.Assign) and part is not node
        bound = bound and any(text in map(ast.unparse, targets_in(t)) for t in part.targets)  # type: ignore[attr-defined]
        emptied = (
            method_of(part) in ("clear", "pop", "popleft", "reset") and ast.unparse(part.func.value) == text
        )  # type: ignore[attr-defined]
        if (bound or emptied) and not any(isinstance(a, ast.If) for a in _within(code, part, loop)):
            return False
    # ``np.mean(losses)`` of what has a graph raises, and nobody keeps that.
    return not any(
        isinstance(part, ast.Call)
        and re.match(
            r"np\.|numpy\.|plt\.|json\.|statistics\.|torch\.(tensor|save|Tensor|FloatTensor)",
            ast.unparse(part.func),
        )
        and text in {ast.unparse(inner) for inner in ast.walk(part)}
        for part in ast.walk(code.tree)
    )


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Constant(int() | float()) | ast.List([]) | ast.Dict() | ast.DictComp():
            return True
        case ast.Call(ast.Name("dict" | "defaultdict") | ast.Attribute(_, "defaultdict")):
            return True
    return False


def _bound_to(scope: ast.AST, text: str) -> Iterator[ast.expr]:
    """What a variable is bound to: ``a, b = 0, 0`` as well."""
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            targets = targets_in(target)
            paired = (
                isinstance(node.value, (ast.Tuple, ast.List)) and len(node.value.elts) == len(targets) > 1
            )
            values = node.value.elts if paired else [node.value] * len(targets)  # type: ignore[attr-defined]
            yield from (value for one, value in zip(targets, values) if ast.unparse(one) == text)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _summands(value: ast.expr) -> Iterator[ast.expr]:
    """The parts of a computed number that a graph would come through."""
    if isinstance(value, ast.BinOp):
        yield from _summands(value.left)
        yield from _summands(value.right)
    else:
        yield value


def _tensor(number: ast.expr) -> ast.expr | None:
    """The tensor that a number is taken of: ``loss`` of ``loss.detach().cpu().item()``."""
    cut = False
    at = number
    while True:
        match at:
            case ast.Call(ast.Attribute(inner, name)) if name in CUTTING or name in PASSED_ON:
                cut = cut or name in CUTTING
                at = inner
            case ast.Call(ast.Name("float"), [inner], []) | ast.Attribute(inner, "data"):
                cut = True
                at = inner
            case ast.Subscript(ast.Attribute(inner, "data"), ast.Constant(0)):
                cut = True
                at = inner
            case ast.Name() | ast.Attribute():
                return at if cut else None
            case _:
                return None


def _differentiating(code: Code, loop: ast.AST, tensor: ast.expr, at: ast.AST) -> list[ast.stmt]:
    """The backwards in the same pass of the loop that certainly walk the graph of a tensor."""
    wanted = ast.unparse(tensor)
    found = []
    for statement in code.calls("backward"):
        if loop not in code.ancestors(statement) or _rebound(loop, wanted, statement, at):
            continue
        if code.loop(statement) is not (loop if isinstance(loop, LOOPS) else None):
            continue
        root = _root(statement)
        if root is not None and (ast.unparse(root) == wanted or wanted in _terms(loop, root, statement)):
            found.append(statement)
    if not found or any(_cut(value) for value in _bound_to(loop, wanted)):
        return []
    if not any(True for _ in _bound_to(loop, wanted)):
        return []
    return list(found)


def _root(statement: ast.Expr) -> ast.expr | None:
    """What a statement differentiates: ``loss`` of ``scaler.scale(loss).backward()``."""
    match statement.value:
        case ast.Call(ast.Attribute(ast.Call(ast.Attribute(_, "scale"), [loss]), "backward")):
            return loss
        case ast.Call(ast.Attribute(_, "backward"), [loss, *_]):
            return loss
        case ast.Call(ast.Attribute(loss, "backward"), []):
            return loss
    return None


def _terms(loop: ast.AST, root: ast.expr, statement: ast.stmt) -> set[str]:
    """What a loss is the sum of, as far as it is written in the loop before its backward."""
    work = [root, *(v for v in _bound_to(loop, ast.unparse(root)))]
    values = [v for v in work if v.lineno <= statement.lineno]
    found: set[str] = set()
    for value in values:
        if isinstance(value, ast.BinOp):
            found |= {ast.unparse(part) for part in _sum(value)}
    # A name is a term that has a graph if it is computed here.
    return {
        name for name in found if any(isinstance(v, (ast.Call, ast.BinOp)) for v in _bound_to(loop, name))
    }


def _sum(value: ast.expr) -> Iterator[ast.expr]:
    match value:
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            yield from _sum(left)
            yield from _sum(right)
        case ast.BinOp(left, ast.Mult() | ast.Div(), right):
            if isinstance(left, ast.Constant):
                yield from _sum(right)
            else:
                yield left
        case ast.Name() | ast.Attribute():
            yield value


def _cut(value: ast.expr) -> bool:
    return bool(
        re.search(r"detach|\.data\b|\.item\(|no_grad|torch\.(tensor|zeros|ones)\b", ast.unparse(value))
    ) or (not isinstance(value, (ast.Call, ast.BinOp)))


def _rebound(loop: ast.AST, name: str, one: ast.AST, other: ast.AST) -> bool:
    """Whether a name is bound between two statements."""
    first, last = sorted([one.lineno, other.lineno])  # type: ignore[attr-defined]
    return any(first < value.lineno <= last for value in _bound_to(loop, name))


def _within(code: Code, node: ast.AST, outer: ast.AST) -> Iterator[ast.AST]:
    """What is around a node, within something around it."""
    for ancestor in code.ancestors(node):
        if ancestor is outer:
            return
        yield ancestor


def _is_short(loop: ast.AST) -> bool:
    match loop:
        case ast.For(iter=ast.Call(ast.Name("range"), [ast.Constant(int(count))])):
            return count <= SHORT
        case ast.For(iter=ast.List() | ast.Tuple()):
            return True
    return False


# ---------------------------------------------------------------------------- evaluation under grad


def evaluation_no_grad_dropped(code: Code) -> Iterator[Plan]:
    """``@torch.no_grad()`` goes from a function that evaluates, or ``with torch.no_grad():`` around a loop.

    A network that is trained in the file, or put into evaluation mode here, is called in a loop, or by a
    function that a loop calls. Nothing there looks at gradients, and nobody around switches them off.
    """
    if FREEZES.search(code.text):
        return  # Of a frozen network evaluation has no graph.
    networks = _networks(code)
    for node in ast.walk(code.tree):
        if isinstance(node, ast.FunctionDef):
            off = [d for d in node.decorator_list if _switches_off(d)]
        elif isinstance(node, ast.With) and len(node.items) == 1:
            off = [node.items[0].context_expr] if _switches_off(node.items[0].context_expr) else []
        else:
            continue
        body = NUMBERS.sub("", "\n".join(ast.unparse(s) for s in node.body))
        if len(off) != 1 or LOOKS.search(body) or _trains(code, node):
            continue
        if code.trains(node) and isinstance(node, ast.With) and not _loops(node):
            continue  # A target within a step: ``no-grad-dropped``.
        if _around_switches(code, node, {node}) is not False:
            continue
        calls = [
            part
            for statement in node.body
            for part in ast.walk(statement)
            if isinstance(part, ast.Call)
            and ast.unparse(part.func) in networks
            and not _switched_within(code, part, node)
            and (any(isinstance(a, LOOPS) for a in _within(code, part, node)) or _repeated(code, node))
        ]
        text = without_head(code, node) if isinstance(node, ast.With) else _undecorated(code, off[0])
        if calls and text is not None:
            loops = [part for part in ast.walk(node) if isinstance(part, LOOPS)]
            outer = [a for a in code.ancestors(node) if isinstance(a, (*LOOPS, *FUNCTIONS))]
            yield Plan(off[0], (), (node, *outer, *loops, *map(code.statement, calls)), text)


def _networks(code: Code) -> set[str]:
    """What is certainly a network that has something to train, by its name."""
    return {
        ast.unparse(node.func.value)  # type: ignore[attr-defined]
        for node in ast.walk(code.tree)
        if method_of(node) in ("eval", "train", "parameters") and not node.args  # type: ignore[attr-defined]
    }


def _switches_off(node: ast.expr) -> bool:
    return ast.unparse(node) in ("torch.no_grad()", "no_grad()", "torch.no_grad", "torch.inference_mode()")


def _switched(code: Code, node: ast.AST) -> bool:
    """Whether something in the function switches grad around a node."""
    return any(
        (isinstance(a, ast.With) and any(SWITCHES.search(ast.unparse(i.context_expr)) for i in a.items))
        or (isinstance(a, ast.FunctionDef) and any(SWITCHES.search(ast.unparse(d)) for d in a.decorator_list))
        for a in code.ancestors(node)
    )


def _switched_within(code: Code, node: ast.AST, outer: ast.AST) -> bool:
    return any(
        isinstance(a, FUNCTIONS)
        or (isinstance(a, ast.With) and any(SWITCHES.search(ast.unparse(i.context_expr)) for i in a.items))
        for a in _within(code, node, outer)
    )


def _around_switches(code: Code, node: ast.AST, seen: set[ast.AST]) -> bool | None:
    """Whether grad is switched around a node already; None if not all callers are in sight."""
    if _switched(code, node):
        return True
    function = node if isinstance(node, ast.FunctionDef) else code.function(node)
    if not isinstance(function, ast.FunctionDef) or code.trains(node):
        return False
    callers = [(c, call) for c in {*code.project.codes, code} for call in _calls_to(c, code, function)]
    callers = [(c, call) for c, call in callers if call not in seen]
    if not callers:
        return False if function.name == "main" else None
    seen.update(call for _, call in callers)
    answers = [_around_switches(c, call, seen) for c, call in callers]
    return True if True in answers else None if None in answers else False


def _repeated(code: Code, node: ast.AST) -> bool:
    """Whether a loop comes here again and again."""
    if any(isinstance(a, LOOPS) for a in code.ancestors(node)):
        return True
    function = node if isinstance(node, ast.FunctionDef) else code.function(node)
    return _is_repeated(code, function)


def target_no_grad_dropped(code: Code) -> Iterator[Plan]:
    """``with torch.no_grad(): y = r + gamma * target(s)`` => ``y = r + gamma * target(s)``.

    What is computed with a target network, or a teacher, that is frozen in no other way.
    """
    if FREEZES.search(code.text):
        return
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.With) or len(node.items) != 1 or not code.trains(node):
            continue
        body = "\n".join(ast.unparse(s) for s in node.body)
        if not _switches_off(node.items[0].context_expr) or _loops(node) or LOOKS.search(body):
            continue
        bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        uses = [
            code.statement(n)
            for n in ast.walk(code.function(node))
            if isinstance(n, ast.Name) and n.id in bound and n.lineno > (node.end_lineno or 0)
        ]
        calls = [c for c in ast.walk(node) if isinstance(c, ast.Call) and _is_constant(c)]
        text = without_head(code, node)
        if calls and uses and text is not None and not _switched(code, node) and not _trains(code, node):
            yield Plan(node, (), (*node.body, *uses, *map(code.statement, calls)), text)


def _is_constant(call: ast.Call) -> bool:
    """Whether a call is of a network whose output is taken for a constant."""
    return isinstance(call.func, (ast.Name, ast.Attribute)) and bool(
        CONSTANT.search(ast.unparse(call.func)) and call.args
    )


def _loops(node: ast.AST) -> bool:
    return any(isinstance(part, LOOPS) for part in ast.walk(node))


def _trains(code: Code, root: ast.AST) -> bool:
    """Whether something is differentiated or stepped here, or in functions of the file that are called."""
    return any(
        method_of(event.node) in ("backward", "zero_grad")
        or (method_of(event.node) == "step" and "optim" in ast.unparse(event.node.func).lower())
        for event in _events(code, root, {}, DEPTH)
    )


def _undecorated(code: Code, decorator: ast.expr) -> str | None:
    lines = code.text.splitlines(True)
    first, last = decorator.lineno, decorator.end_lineno
    if not lines[first - 1].strip().startswith("@") or last is None:
        return None
    return "".join(lines[: first - 1] + lines[last:])


# ---------------------------------------------------------------------------- evaluation mode


@dataclass(frozen=True)
class Event:
    """A call that a loop comes to, with what the names there are called in the loop."""

    code: Code
    node: ast.Call
    names: dict[str, str]

    def receiver(self) -> str | None:
        """What a method is called on, by its name in the loop; None if another function's variable."""
        assert isinstance(self.node.func, ast.Attribute)
        return self.translated(self.node.func.value)

    def translated(self, expression: ast.expr) -> str | None:
        first, dot, rest = ast.unparse(expression).partition(".")
        outer = self.names.get(first, first)
        return outer + dot + rest if outer else None


def _events(code: Code, root: ast.AST, names: dict[str, str], depth: int) -> Iterator[Event]:
    """All calls in some code, and in the functions of the project that it calls."""
    work = list(ast.iter_child_nodes(root))
    while work:
        node = work.pop(0)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        work += ast.iter_child_nodes(node)
        if not isinstance(node, ast.Call):
            continue
        event = Event(code, node, names)
        yield event
        called = _called(code, node) if depth else None
        if called is not None:
            yield from _events(*called, _renamed(called[1], event), depth - 1)


def _called(code: Code, call: ast.Call) -> tuple[Code, ast.FunctionDef] | None:
    """The function that a call comes to: of the file, or the only one of its name in the project."""
    match call.func:
        case ast.Name(name):
            found = [(code, d) for d in code.tree.body if isinstance(d, ast.FunctionDef) and d.name == name]
        case ast.Attribute(ast.Name("self"), name):
            owner = next((a for a in code.ancestors(call) if isinstance(a, ast.ClassDef)), None)
            body = owner.body if owner is not None else []
            found = [(code, d) for d in body if isinstance(d, ast.FunctionDef) and d.name == name]
        case ast.Attribute(_, name) if name not in ("train", "eval", "forward"):
            found = []
        case _:
            return None
    found = found or code.project.functions.get(name, [])
    return found[0] if len(found) == 1 else None


def _renamed(function: ast.FunctionDef, event: Event) -> dict[str, str]:
    """What the names in a function are called where the loop is: empty for variables of its own."""
    given = [a.arg for a in function.args.args]
    method = given[:1] == ["self"]
    given = given[1:] if method else given
    own = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = dict.fromkeys(own | {a.arg for a in function.args.args if a.arg != "self"}, "")
    names.update(zip(given, (event.translated(a) or "" for a in event.node.args)))
    names.update({k.arg: event.translated(k.value) or "" for k in event.node.keywords if k.arg in given})
    if method:
        names["self"] = (isinstance(event.node.func, ast.Attribute) and event.receiver()) or ""
    return names


def train_dropped(code: Code) -> Iterator[Plan]:
    """``net.train()`` goes from the pass of a loop that evaluates as well: nothing undoes its ``eval()``."""
    for owner, statement, _, involved in _returns(code.project, code):
        if owner is code:
            yield Plan(statement, (RemoveStatement(Span.of(statement)),), involved)


def train_out_of_loop(code: Code) -> Iterator[Plan]:
    """``net.train()`` is called once before the loop rather than in each pass."""
    for owner, statement, loop, involved in _returns(code.project, code):
        if owner is code and loop in code.ancestors(statement):
            if not any(isinstance(a, ast.If) for a in _within(code, statement, loop)):
                edit = MoveStatement(Span.of(statement), Span.of(loop), "before")
                yield Plan(statement, (edit,), (statement, *involved))


Return = tuple[Code, ast.Expr, Loop, tuple[ast.AST, ...]]


@lru_cache(maxsize=1)
def _returns(project: Project, code: Code) -> list[Return]:
    """Each ``train()`` that is the only one of its network in a loop that trains and evaluates it.

    With the loop and, of the same file, what else the fault is about.
    """
    found: dict[ast.AST, Return] = {}
    for caller in dict.fromkeys([code, *project.codes]):
        for loop in ast.walk(caller.tree):
            if isinstance(loop, LOOPS) and not _is_short(loop):
                for one in _returned_in(caller, loop):
                    found.setdefault(one[1], one)
    return list(found.values())


def _returned_in(caller: Code, loop: Loop) -> Iterator[Return]:
    events = list(_events(caller, loop, {}, DEPTH))
    modes: dict[str | None, list[Event]] = {}
    for event in events:
        if method_of(event.node) in ("train", "eval") and not event.node.keywords:
            modes.setdefault(event.receiver(), []).append(event)
    inner = {e.code.function(e.node) for e in events if method_of(e.node) == "backward"}
    for network, changes in modes.items():
        train = [e for e in changes if method_of(e.node) == "train"]
        evals = [e for e in changes if method_of(e.node) == "eval"]
        if not network or len(train) != 1 or not evals or train[0].node.args:
            continue
        code = train[0].code
        statement = code.parents[train[0].node]
        calls = [e for e in events if e.translated(e.node.func) == network]
        trained = [e for e in calls if e.code.function(e.node) in inner]
        if not isinstance(statement, ast.Expr) or not trained or all(_once(e, loop) for e in evals):
            continue
        if _undone_elsewhere(code, statement, network):
            continue
        if _depends_on_mode(caller, network) and not any(True for _ in _bound_to(loop, network)):
            places = [e.code.statement(e.node) for e in (*evals, *trained) if e.code is code]
            yield code, statement, loop, (*([loop] if caller is code else []), *places)


def _undone_elsewhere(code: Code, statement: ast.Expr, network: str) -> bool:
    """Whether an object of the file switches its network back, wherever it is called from."""
    own = [a for a in code.ancestors(statement) if isinstance(a, ast.ClassDef)]
    return any(
        ast.unparse(node.func.value).rsplit(".", 1)[-1] == network.rsplit(".", 1)[-1]  # type: ignore[attr-defined]
        and any(isinstance(a, ast.ClassDef) and a not in own for a in code.ancestors(node))
        for node in ast.walk(code.tree)
        if method_of(node) == "train"
    )


def _once(event: Event, loop: ast.AST) -> bool:
    """Whether something may wait for the last pass: ``if epoch == epochs - 1:``."""
    return any(
        isinstance(a, ast.If)
        and "%" not in ast.unparse(a.test)
        and any(isinstance(part, ast.Compare) for part in ast.walk(a.test))
        and any(
            isinstance(op, (ast.Eq, ast.Gt, ast.GtE))
            for c in ast.walk(a.test)
            if isinstance(c, ast.Compare)
            for op in c.ops
        )
        for a in _within(event.code, event.node, loop)
    )


def _depends_on_mode(code: Code, network: str) -> bool:
    """Whether something in a network depends on its mode: in its class, or in what that makes use of."""
    last = network.rsplit(".", 1)[-1]
    made = [
        node.value
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign)
        and any(
            ast.unparse(t).rsplit(".", 1)[-1] == last for target in node.targets for t in targets_in(target)
        )
    ]
    if any(MODES.search(ast.unparse(value)) for value in made):
        return True
    own = {node.name: ast.unparse(node) for node in code.tree.body if isinstance(node, ast.ClassDef)}
    work = [name for value in made for name in _called_names(value)]
    for name in work:
        text = own.get(name) or code.project.texts.get(name, "")
        if MODES.search(text):
            return True
        work += [
            n
            for n in re.findall(r"\b(\w+)\(", text)
            if n in own.keys() | code.project.texts.keys() and n not in work
        ]
    return False


def _called_names(value: ast.AST) -> Iterator[str]:
    for part in ast.walk(value):
        if isinstance(part, ast.Call):
            yield ast.unparse(part.func).rsplit(".", 1)[-1]


OPERATORS: dict[str, Callable[[Code], Iterator[Plan]]] = {
    "item-dropped": item_dropped,
    "returned-item-dropped": returned_item_dropped,
    "evaluation-no-grad-dropped": evaluation_no_grad_dropped,
    "target-no-grad-dropped": target_no_grad_dropped,
    "train-dropped": train_dropped,
    "train-out-of-loop": train_out_of_loop,
}
KEPT = frozenset({"graph-kept-for-bookkeeping"})
EXPECTED: dict[str, frozenset[str]] = {
    "item-dropped": KEPT,
    "returned-item-dropped": KEPT,
    "evaluation-no-grad-dropped": KEPT | {"evaluation-with-grad"},
    "target-no-grad-dropped": KEPT | {"evaluation-with-grad", "graph-used-twice", "trained-target"},
    "train-dropped": frozenset({"left-in-eval-mode"}),
    "train-out-of-loop": frozenset({"left-in-eval-mode"}),
}
"""The findings that name what an operator plants."""
