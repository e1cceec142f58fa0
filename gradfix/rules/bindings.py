"""Whether the variables that a rewrite uses are bound, and have the values that it expects.

Two questions of data flow, asked of every rewrite, whichever codemod it comes from. *Definite assignment*:
nothing that is written may read a variable that some path to this place may not have bound. *Reaching
definitions*: what computes a variable again, as one branch has it, must be what every branch has that comes
to this place. A condition is taken to go either way, and a loop to make no iteration, unless constants tell.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from gradfix.core.codemod import (
    Edit,
    InsertStatement,
    MoveStatement,
    RemoveStatement,
    ReplaceExpression,
    ReplaceStatement,
)
from gradfix.core.span import Span
from gradfix.core.syntax import children, last_name, walk

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
Binding = ast.AST | None
"""What has bound a variable; None: nothing has."""
Reaching = dict[str, frozenset[Binding]]
"""The definitions of each variable that some path to a place leaves in force."""
ELSEWHERE = ast.Pass()
"""What has bound an attribute, or a parameter, before a function begins."""
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Delete, ast.Assert, ast.Raise)
ENDS = frozenset({"exit", "quit", "_exit"})


class Read(NamedTuple):
    """A place where a variable is read that may not be bound."""

    scope: str
    name: str
    around: tuple[str, ...]
    """The heads of the statements around it, and the condition within its own statement, if there is one."""
    statement: str


def variables_hold(before: ast.Module, after: ast.Module, edits: Sequence[Edit]) -> bool:
    """Whether all variables that ``edits`` use are bound, and are computed again as every path has them."""
    try:
        names = _names_in(before, edits)
        return not _newly_unbound(before, after, names) and not _of_one_branch(before, edits)
    except RecursionError:
        return False


def _newly_unbound(before: ast.Module, after: ast.Module, names: Collection[str]) -> bool:
    """Whether a variable is read that may not be bound, where it was not read before."""
    flow = ReachingDefinitions(after, names) if names else None
    if flow is None or not flow.unbound:
        return False
    now, then = Counter(flow.unbound), Counter(ReachingDefinitions(before, names).unbound)
    gone = list((then - now).elements())
    for read in (now - then).elements():
        # What has been read there in any case is read in another statement, or in one just before it.
        same = next((old for old in gone if old[:3] == read[:3] and _leads_to(flow, read, old)), None)
        if same is not None:
            gone.remove(same)
        elif _is_bound(after, read.name) or not _gets_names_from_outside(before):
            return True
    return False


def _is_bound(tree: ast.Module, name: str) -> bool:
    """Whether anything in a file binds a name, in whatever scope."""
    return any(name in _bound_by(node) or getattr(node, "arg", None) == name for node in walk(tree))


def _gets_names_from_outside(tree: ast.Module) -> bool:
    """Whether a file reads names that nothing in it binds: whoever runs it puts them there, and others."""
    bound = {name for node in walk(tree) for name in _bound_by(node)}
    bound |= {node.arg for node in walk(tree) if isinstance(node, ast.arg)}
    return not all(
        name in bound or hasattr(builtins, name) or _is_special(name) for name in _identifiers(tree)
    )


def _is_special(name: str) -> bool:
    """Whether every module has a variable of this name."""
    return name.startswith("__") and name.endswith("__")


def _leads_to(flow: ReachingDefinitions, read: Read, old: Read) -> bool:
    """Whether a variable is still what it was where it was read before, or is read there in its place."""
    block, place = flow.places[read]
    later = [ast.unparse(s) if isinstance(s, SIMPLE) else _head(s) for s in block[place:]]
    if old.statement not in later:
        return True
    between = block[place + 1 : place + later.index(old.statement)]
    return not any(old.name in _bound_by(node) for s in between for node in walk(s))


def _of_one_branch(tree: ast.Module, edits: Iterable[Edit]) -> bool:
    """Whether a variable is computed again in the form of one definition where others may be in force."""
    copies = [(edit, *copy) for edit in edits for copy in _copies(tree, edit)]
    if not copies:
        return False
    flow = ReachingDefinitions(tree, {name for _, name, _ in copies})
    for edit, name, value in copies:
        place = edit.anchor if isinstance(edit, InsertStatement) else edit.span
        states = flow.behind if isinstance(edit, InsertStatement) and edit.where == "after" else flow.ahead
        statement = _statement_at(tree, place)
        reaching = states.get(statement, {}).get(name, frozenset()) if statement is not None else frozenset()
        forms = {_form(definition, name) for definition in reaching - {None}}
        if len(forms) > 1 and _undetached(value) in forms:
            return True
    return False


def _copies(tree: ast.Module, edit: Edit) -> Iterator[tuple[str, ast.expr]]:
    """The variables that an edit computes, or uses something computed for: each with its value."""
    if isinstance(edit, InsertStatement):
        for node in walk(ast.parse(edit.code)):
            if isinstance(node, ast.Assign):
                for target, value in _pairs(node):
                    if target not in _dotted_names(value):
                        yield target, value
    elif isinstance(edit, ReplaceExpression):
        around = _statement_at(tree, edit.span) or tree
        replaced = next(
            (n for n in walk(around) if isinstance(n, ast.expr) and Span.of(n) == edit.span), None
        )
        if isinstance(replaced, (ast.Name, ast.Attribute)):
            value = ast.parse(f"({edit.code})", mode="eval").body
            if ast.unparse(replaced) not in _dotted_names(value):
                yield ast.unparse(replaced), value


def _pairs(assignment: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """The variables that an assignment binds, each with what it is given alone."""
    for target in assignment.targets:
        value = assignment.value
        if isinstance(target, (ast.Name, ast.Attribute)):
            yield ast.unparse(target), value
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            if len(target.elts) == len(value.elts):
                for part, given in zip(target.elts, value.elts):
                    if isinstance(part, (ast.Name, ast.Attribute)):
                        yield ast.unparse(part), given


def _form(definition: Binding, name: str) -> str:
    """How a definition computes a variable, as far as that can be written elsewhere."""
    if isinstance(definition, ast.Assign):
        for target, value in _pairs(definition):
            if target == name:
                return _undetached(value)
    return f"<{id(definition)}>"


def _undetached(value: ast.expr) -> str:
    """The text of an expression, whatever is detached in it."""
    return ast.unparse(value).replace(".detach()", "")


def _dotted_names(node: ast.AST) -> set[str]:
    """The variables and attributes that an expression reads."""
    return {ast.unparse(n) for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute))}


def _statement_at(tree: ast.Module, place: Span) -> ast.stmt | None:
    """The innermost statement around a place."""
    found: ast.stmt | None = None
    block: list[ast.stmt] = list(tree.body)
    while block:
        inner = next((s for s in block if Span.of(s).contains(place)), None)
        if inner is None:
            return found
        found = inner
        block = [s for s in children(inner) if isinstance(s, ast.stmt)]
        for part in children(inner):
            if isinstance(part, (ast.ExceptHandler, ast.match_case)):
                block += part.body
    return found


def _names_in(tree: ast.Module, edits: Iterable[Edit]) -> set[str]:
    """The variables that edits read, or no longer bind where they were bound."""
    names: set[str] = set()
    for edit in edits:
        code = getattr(edit, "code", None)
        if code is not None:
            whole = isinstance(edit, (InsertStatement, ReplaceStatement))
            names |= _identifiers(ast.parse(code if whole else f"({code})"))
        if isinstance(edit, (MoveStatement, RemoveStatement, ReplaceStatement)):
            statement = _statement_at(tree, edit.span)
            names |= _identifiers(statement) if statement is not None else set()
    return names


def _identifiers(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


class ReachingDefinitions:
    """The definitions of some variables that reach each statement of a program.

    ``unbound`` lists the reads of those that may not be bound. One that has been read is bound from there on,
    or Python has raised.
    """

    def __init__(self, tree: ast.Module, names: Collection[str]) -> None:
        self.tree = tree
        self.names = frozenset(names)
        self.unbound: list[Read] = []
        self.places: dict[Read, tuple[list[ast.stmt], int]] = {}
        """Where each of these is for the first time: the block, and the number of the statement."""
        self.ahead: dict[ast.stmt, Reaching] = {}
        """What is in force when a statement begins."""
        self.behind: dict[ast.stmt, Reaching] = {}
        """What is in force when it is over, where it lets go on."""
        nodes = walk(tree)
        declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        self._at_top = self.names & (_locals(tree) | declared)
        self.starred = any(
            isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
            for node in nodes
        )
        waiting: list[tuple[Scope, str, frozenset[str]]] = [(tree, "", frozenset())]
        while waiting:
            scope, path, outer = waiting.pop()
            waiting += _Walk(self, scope, path, outer).inner

    def is_free(self, name: str, outer: frozenset[str]) -> bool:
        """Whether what a scope does not bind itself is certainly bound around it."""
        return (
            name in outer
            or name in self._at_top
            or hasattr(builtins, name)
            or self.starred
            or _is_special(name)
        )


def _locals(scope: Scope) -> set[str]:
    """The variables that a scope binds for itself."""
    found: set[str] = set()
    foreign: set[str] = set()
    if not isinstance(scope, ast.Module):
        found |= {a.arg for a in walk(scope.args) if isinstance(a, ast.arg)}
    for node in _within(scope):
        found |= _bound_by(node)
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            foreign.update(node.names)
    return found - foreign


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, those of the scopes within it left out but for their heads."""
    work: list[ast.AST] = list(getattr(scope, "body", []))
    while work:
        node = work.pop()
        yield node
        if isinstance(node, FUNCTIONS):
            work += [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        elif isinstance(node, ast.ClassDef):
            work += [*node.decorator_list, *node.bases]
        elif isinstance(node, COMPREHENSIONS):
            work += [n for n in walk(node) if isinstance(n, ast.NamedExpr)]
        elif not isinstance(node, ast.Lambda):
            work += children(node)


def _bound_by(node: ast.AST) -> set[str]:
    """The variables that a node binds itself."""
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            return {node.id}
        case ast.NamedExpr():
            return {node.target.id}
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
            return {node.name} if node.name else set()
        case ast.MatchMapping():
            return {node.rest} if node.rest else set()
    return set()


class _Loop(NamedTuple):
    left: list[Reaching]
    """What is in force where the loop is left by ``break``."""
    again: list[Reaching]
    """... and where an iteration is over before its end."""


class _Walk:
    """One scope, gone through along its paths."""

    def __init__(self, flow: ReachingDefinitions, scope: Scope, path: str, outer: frozenset[str]) -> None:
        self.flow = flow
        self.path = path
        self.own = flow.names & _locals(scope)
        self.outer = outer
        self.inner: list[tuple[Scope, str, frozenset[str]]] = []
        """The functions within it."""
        self.around: list[ast.AST] = []
        self.place: tuple[list[ast.stmt], int] = [], 0
        self.loops: list[_Loop] = []
        # What a starred import binds, only the module that it names could tell.
        anything = flow.starred and isinstance(scope, ast.Module)
        start: Reaching = {
            name: frozenset({ELSEWHERE if anything or "." in name else None}) for name in flow.names
        }
        if not isinstance(scope, ast.Module):
            given = {a.arg for a in walk(scope.args) if isinstance(a, ast.arg)}
            start |= {name: frozenset({ELSEWHERE}) for name in given & flow.names}
        self.block(scope.body, start)

    # ------------------------------------------------------------------ statements

    def block(self, body: list[ast.stmt], state: Reaching | None) -> Reaching | None:
        for number, statement in enumerate(body):
            if state is None:
                return None
            self.flow.ahead[statement] = state
            self.place = body, number
            state = self.run(statement, state)
            if state is not None:
                self.flow.behind[statement] = state
        return state

    def inside(self, head: ast.AST, body: list[ast.stmt], state: Reaching | None) -> Reaching | None:
        self.around.append(head)
        state = self.block(body, state)
        self.around.pop()
        return state

    def run(self, node: ast.stmt, state: Reaching) -> Reaching | None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return self.definition(node, state)
            case ast.If():
                state = self.read(node.test, state)
                return _join(self.inside(node, node.body, state), self.inside(node, node.orelse, state))
            case ast.For() | ast.AsyncFor() | ast.While():
                return self.loop(node, state)
            case ast.With() | ast.AsyncWith():
                return self.context(node, state)
            case ast.Try() | ast.TryStar():
                return self.attempt(node, state)
            case ast.Match():
                return self.match(node, state)
            case ast.Break() | ast.Continue():
                if self.loops:
                    (self.loops[-1].left if isinstance(node, ast.Break) else self.loops[-1].again).append(
                        state
                    )
                return None
        state = self.simple(node, state)
        ends = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and last_name(node.value) in ENDS
        )
        return None if isinstance(node, (ast.Return, ast.Raise)) or ends else state

    def simple(self, node: ast.stmt, state: Reaching) -> Reaching:
        """A statement that holds no other: what it reads, then what it binds."""
        match node:
            case ast.Assign():
                return self.bind(node.targets, node, self.read(node.value, state))
            case ast.AnnAssign():
                return (
                    state
                    if node.value is None
                    else self.bind([node.target], node, self.read(node.value, state))
                )
            case ast.AugAssign():
                if isinstance(node.target, ast.Name):
                    state = self.name(node.target.id, state, False)
                return self.bind([node.target], node, self.read(node.value, state))
            case ast.Delete():
                gone = {t.id for t in node.targets if isinstance(t, ast.Name)} & state.keys()
                return {**state, **dict.fromkeys(gone, frozenset({None}))}
            case ast.Import() | ast.ImportFrom():
                return self.binds(_bound_by(node), node, state)
            case ast.Assert():
                return self.read(node.test, state)
        for part in children(node):
            if isinstance(part, ast.expr):
                state = self.read(part, state)
        return state

    def definition(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, state: Reaching
    ) -> Reaching:
        given = [] if isinstance(node, ast.ClassDef) else [*node.args.defaults, *node.args.kw_defaults]
        for part in (*node.decorator_list, *given, *getattr(node, "bases", ())):
            state = self.read(part, state) if part is not None else state
        path = f"{self.path}.{node.name}"
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, FUNCTIONS):
                    self.inner.append((method, f"{path}.{method.name}", self.outer | self.own))
        else:
            self.inner.append((node, path, self.outer | self.own))
        return self.binds({node.name}, node, state)

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, state: Reaching) -> Reaching | None:
        if not isinstance(node, ast.While):
            state = self.read(node.iter, state)
        # An iteration begins with what is in force before the loop, or with what iterations before it have
        # bound.
        head = _with(state, _definitions(list(_within(node)), self.own))
        loop = _Loop([], [])
        self.loops.append(loop)
        if isinstance(node, ast.While):
            head = self.read(node.test, head)
            over = self.inside(node, node.body, head)
            endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        else:
            over = self.inside(node, node.body, self.bind([node.target], node, head))
            endless = False
        self.loops.pop()
        for passed in loop.again:
            over = _join(over, passed)
        iterates_for_sure = not isinstance(node, ast.While) and _iterates_for_sure(node.iter)
        through = None if endless else over if iterates_for_sure else _join(head, over)
        after = self.inside(node, node.orelse, through)
        for left in loop.left:
            after = _join(after, left)
        return after

    def context(self, node: ast.With | ast.AsyncWith, state: Reaching) -> Reaching | None:
        for item in node.items:
            state = self.read(item.context_expr, state)
            if item.optional_vars is not None:
                state = self.bind([item.optional_vars], node, state)
        suppresses = any(
            isinstance(i.context_expr, ast.Call) and last_name(i.context_expr) in ("suppress", "raises")
            for i in node.items
        )
        # What is in a plain context is run as it would be outside.
        if not suppresses:
            return self.block(node.body, state)
        return _join(state, self.inside(node, node.body, state))

    def attempt(self, node: ast.Try | ast.TryStar, state: Reaching) -> Reaching | None:
        body = [part for statement in node.body for part in (statement, *_within(statement))]
        midway = _with(state, _definitions(body, self.own))
        after = self.inside(node, node.body, state)
        after = self.inside(node, node.orelse, after) if after is not None else None
        for handler in node.handlers:
            caught = self.read(handler.type, midway) if handler.type is not None else midway
            caught = self.binds({handler.name}, handler, caught) if handler.name else caught
            after = _join(after, self.inside(handler, handler.body, caught))
        if not node.finalbody:
            return after
        final = self.inside(node, node.finalbody, midway if after is None else after)
        return None if after is None else final

    def match(self, node: ast.Match, state: Reaching) -> Reaching | None:
        state = self.read(node.subject, state)
        after: Reaching | None = None
        everything = False
        for case in node.cases:
            bound = {name for part in walk(case.pattern) for name in _bound_by(part)}
            inside = self.binds(bound, node, state)
            inside = self.read(case.guard, inside) if case.guard is not None else inside
            after = _join(after, self.inside(case, case.body, inside))
            everything |= (
                case.guard is None and isinstance(case.pattern, ast.MatchAs) and not case.pattern.pattern
            )
        return after if everything else _join(after, state)

    # ------------------------------------------------------------------ expressions

    def read(self, node: ast.AST, state: Reaching, doubtful: bool = False) -> Reaching:
        """What is in force after an expression; ``doubtful``: it may not be evaluated at all."""
        match node:
            case ast.Name():
                return self.name(node.id, state, doubtful) if isinstance(node.ctx, ast.Load) else state
            case ast.NamedExpr():
                state = self.read(node.value, state, doubtful)
                bound = self.binds({node.target.id}, node, state)
                return _join(state, bound) or bound if doubtful else bound
            case ast.BoolOp():
                return self.parts(node.values, state, doubtful, sure=1)
            case ast.Compare():
                return self.parts([node.left, *node.comparators], state, doubtful, sure=2)
            case ast.IfExp():
                return self.parts([node.test, node.body, node.orelse], state, doubtful, sure=1)
            case ast.Lambda():
                return self.parts(
                    [d for d in (*node.args.defaults, *node.args.kw_defaults) if d], state, doubtful
                )
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self.comprehension(node, state, doubtful)
        return self.parts(children(node), state, doubtful)

    def parts(self, parts: Sequence[ast.AST], state: Reaching, doubtful: bool, sure: int = -1) -> Reaching:
        for number, part in enumerate(parts):
            state = self.read(part, state, doubtful or 0 <= sure <= number)
        return state

    def comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        state: Reaching,
        doubtful: bool,
    ) -> Reaching:
        state = self.read(node.generators[0].iter, state, doubtful)
        bound = {name for g in node.generators for n in walk(g.target) for name in _bound_by(n)}
        hidden = {**state, **dict.fromkeys(bound & state.keys(), frozenset({ELSEWHERE}))}
        for generator in node.generators:
            for part in (*generator.ifs, *([generator.iter] if generator is not node.generators[0] else ())):
                self.read(part, hidden, True)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.read(part, hidden, True)
        return state

    def name(self, name: str, state: Reaching, doubtful: bool) -> Reaching:
        """What is in force when a variable has been read: it was bound, or Python has raised."""
        reaching = state.get(name)
        if reaching is None:
            return state
        local = name in self.own or reaching != frozenset({None})
        if not local and self.flow.is_free(name, self.outer):
            return state
        if None in reaching:
            heads = tuple(_head(one) for one in self.around)
            block, number = self.place
            text = _head(block[number])
            read = Read(self.path, name, (*heads, text) if doubtful else heads, text)
            self.flow.unbound.append(read)
            self.flow.places.setdefault(read, self.place)
        known = reaching - {None}
        return state if doubtful or not known or len(known) == len(reaching) else {**state, name: known}

    def bind(self, targets: Sequence[ast.expr], by: ast.AST, state: Reaching) -> Reaching:
        """What is in force after an assignment to some targets."""
        bound: set[str] = set()
        for target in targets:
            for part in walk(target):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                    state = self.name(part.id, state, False)
                elif isinstance(part, ast.Name):
                    bound.add(part.id)
                elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                    bound.add(ast.unparse(part))
        return self.binds(bound, by, state)

    def binds(self, names: Iterable[str], by: ast.AST, state: Reaching) -> Reaching:
        bound = set(names) & state.keys()
        return {**state, **dict.fromkeys(bound, frozenset({by}))} if bound else state


def _join(one: Reaching | None, other: Reaching | None) -> Reaching | None:
    """What is in force where two paths meet; None for a path that does not come there."""
    if one is None or other is None:
        return other if one is None else one
    return one if one is other else {name: one[name] | other[name] for name in one}


def _with(state: Reaching, more: dict[str, set[ast.AST]]) -> Reaching:
    return {name: reaching | more.get(name, set()) for name, reaching in state.items()}


def _definitions(nodes: Iterable[ast.AST], names: Collection[str]) -> dict[str, set[ast.AST]]:
    """What binds some variables in a stretch of code."""
    found: dict[str, set[ast.AST]] = {}
    for node in nodes:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
            for target in targets:
                for part in walk(target) if target is not None else ():
                    if isinstance(part, ast.Name) and part.id in names:
                        found.setdefault(part.id, set()).add(node)
        else:
            for name in _bound_by(node) & set(names) if not isinstance(node, ast.Name) else ():
                found.setdefault(name, set()).add(node)
    return found


def _iterates_for_sure(iterable: ast.expr) -> bool:
    """Whether a loop over this certainly makes one iteration at least, by constants."""
    if isinstance(iterable, (ast.List, ast.Tuple, ast.Set)):
        return any(not isinstance(item, ast.Starred) for item in iterable.elts)
    if isinstance(iterable, ast.Call) and last_name(iterable) == "range" and iterable.args:
        bound = iterable.args[0] if len(iterable.args) == 1 else None
        return isinstance(bound, ast.Constant) and isinstance(bound.value, int) and bound.value > 0
    return isinstance(iterable, ast.Constant) and bool(iterable.value)


def _head(node: ast.AST) -> str:
    """What a statement says before the block that it holds."""
    match node:
        case ast.If() | ast.While():
            return f"{type(node).__name__} {ast.unparse(node.test)}"
        case ast.For() | ast.AsyncFor():
            return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
        case ast.With() | ast.AsyncWith():
            return f"with {', '.join(ast.unparse(item) for item in node.items)}"
        case ast.ExceptHandler():
            return f"except {ast.unparse(node.type) if node.type is not None else ''}"
        case ast.match_case():
            return f"case {ast.unparse(node.pattern)}"
        case ast.Match():
            return f"match {ast.unparse(node.subject)}"
        case ast.Try() | ast.TryStar():
            return "try"
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name
    return ast.unparse(node)
