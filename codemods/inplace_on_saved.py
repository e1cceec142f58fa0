"""An in-place operation modifies a value that another operation has saved for its backward.
Autograd raises "one of the variables needed for gradient computation has been modified by an inplace
operation".

    rate = layer(x).exp()        rate = layer(x).exp()
    rate += 1               =>   rate = rate + 1
    rate.mean().backward()       rate.mean().backward()

The derivative of an exponential, a sigmoid, a relu, a softmax, a square root and others is computed from
their results, that of a product from its factors. The same happens where a layer after one of these works in
place:

    nn.Sequential(                                  nn.Sequential(
        nn.Linear(4, 4),                                nn.Linear(4, 4),
        nn.ReLU(),                                      nn.ReLU(),
        nn.Dropout(0.5, inplace=True),      =>          nn.Dropout(0.5),
    )                                               )

What a linear layer, a convolution, a normalization, a dropout or a leaky relu gives may be overwritten: they
save what they were given. (That is also why the usual relu in place after one of them is right. After
another relu in place it is not.) Dropout changes nothing in evaluation, or at a probability of zero.

When not to fix it: where other code needs the tensor itself to change. Then clone what is saved.

Preconditions of a fix:

* the change is an augmented assignment to a variable, a method like ``x.add_(y)``, an assignment to an item
  or a slice, or ``inplace=True`` in a call or where a layer is made in this file;
* nothing reads the overwritten memory afterwards but through the result of the change: it is handed on from
  layer to layer, or it is a variable that was assigned in the same block before, from something that is
  computed and no view, which nothing else has got hold of, and which is rebound or not read again. Of a
  layer this holds for every call of it: ``self.relu(x)`` as a statement of its own is there to change ``x``.

An item or a slice of such a variable (``h[:, 0] = ...``) is written into a clone. Where somebody else may
hold the memory, in a view, a list, an attribute or by another name, and where a loop fills a tensor step by
step, the change has to stay one in place. There what is saved is a copy: the operand (``net(seq.clone())``)
or the result (``torch.sigmoid(x).clone()``) of the operation that saves it. Nothing is reported where a
parameter is changed: see stale-forward.

By hand: compute a new tensor (`x = x * 2` for `x *= 2`, `torch.stack` of a list for items that are written
one by one), or write into a copy (`x = x.clone()`).

Effect: repairs.

Severity: error.
Clause: autograd can compute each gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.graph import Backward, InPlaceChange
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.layers import INPLACE
from gradfix.autograd.trace_queries import backwards
from gradfix.autograd.values import Module
from gradfix.core.codemod import Claim, Edit, Effect, Finding, Fix, RemoveArgument, ReplaceExpression
from gradfix.core.segments import call_method
from gradfix.core.span import Span
from gradfix.core.syntax import last_name, walk
from gradfix.rules.diagnosis import Diagnosis, diagnose
from gradfix.rules.edits import insert, line, note, receiver, shown, within_file
from gradfix.rules.out_of_place import bound_anew, out_of_place, read_again, renamed

VIEWS = frozenset(
    """view view_as reshape reshape_as flatten unflatten ravel squeeze unsqueeze t transpose permute movedim
    swapaxes expand expand_as narrow select diagonal chunk split unbind unfold detach data T mT H real imag
    contiguous to cpu cuda float double half type requires_grad_ index_select""".split()
)
"""What gives the same memory, or may."""


UNALTERED = ("Identity", "Dropout", "DropPath", "Flatten", "Sequential()")
"""What stands where layers are made that may give back the very tensor that they were given."""


def find(program: Program) -> Iterator[Finding]:
    """Report each backward that needs what was overwritten in the forward."""
    for event in program.certain_observations(overwritten, lambda e: e.site, raises=True):
        assert event.failure is not None and event.failure.node is not None
        change, saver = event.failure.culprit, event.failure.node
        assert isinstance(change, InPlaceChange) and isinstance(event.site, ast.Call)
        # A layer that is called twice is laid down the second time as it was the first.
        again = saver.call is not None and saver.site is change.site
        saved = saver.call.site if again and saver.call is not None else saver.site
        layer = _made(change)
        place = change.site if layer is None else layer
        # The layers of a Sequential are all called where it is called.
        places = [(saved, "saved here for the backward")] if saved is not change.site else []
        places += [(change.site, "modified in place here"), (event.site, "needed here: autograd raises")]
        fixes = within_file(_fixes(program, event))
        if line(place) <= 0 or (line(change.site) <= 0 and not fixes):
            continue  # It happens in another module, which is not to be told unless it is mended here.
        assert isinstance(place, (ast.expr, ast.stmt))
        yield Finding(
            "inplace-on-saved",
            f"in-place operation `{shown(program, place)}` modifies a value that the backward of "
            f"`{receiver(program, event)}` needs",
            Span.of(place),
            tuple(note(place, words) for place, words in places if line(place) > 0),
            fixes,
            event.failure.kind,
        )


def overwritten(run: Run) -> dict[Hashable, Backward]:
    """Backwards that fail for what was changed in place."""
    return {e.site: e for e in reversed(backwards(run)) if diagnose(run, e) is Diagnosis.OVERWRITTEN}


def _made(change: InPlaceChange) -> ast.Call | None:
    """The call that made the layer which changed something, if it stands in this file and says so there."""
    layer = change.layer
    if not isinstance(layer, Module) or not isinstance(layer.created, ast.Call) or line(layer.created) <= 0:
        return None
    return layer.created if _inplace(layer.created, layer.kind) is not None else None


def _inplace(call: ast.Call, name: str) -> str | int | None:
    """How a call says literally that what it calls works in place: the keyword, the position, or None."""
    for keyword in call.keywords:
        if keyword.arg == "inplace":
            return "inplace" if _is_true(keyword.value) else None
    position = INPLACE.get(name.rsplit(".", 1)[-1])
    if position is None or len(call.args) != position + 1 or any(k.arg is None for k in call.keywords):
        return None
    starred = any(isinstance(given, ast.Starred) for given in call.args)
    return position if not starred and _is_true(call.args[position]) else None


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _fixes(program: Program, event: Backward) -> Iterator[Fix]:
    claim = Claim("E2", line(event.site))
    for changes in (_changes(event, later=False), _changes(event, later=True)):
        written = [_out_of_place(program, change) for change in changes]
        complete = tuple(edit for edit in written if edit is not None)
        if complete and len(complete) == len(written):
            yield Fix("compute a new tensor instead", Effect.REPAIRS, complete, claim)
    copied = _copied(program, event)
    if copied:
        texts = ", ".join(dict.fromkeys(f"`{shown(program, expression)}`" for expression in copied))
        edits = [ReplaceExpression(Span.of(e), call_method(program.segment(e), e, "clone")) for e in copied]
        yield Fix(
            f"clone {texts}, so that the saved value stays as it is", Effect.REPAIRS, tuple(edits), claim
        )


def _copied(program: Program, event: Backward) -> list[ast.expr]:
    """What is to be cloned so that what a backward needs is saved in memory of its own: operands or results.

    That is right whoever else has the memory that is overwritten: it goes on holding what it held.
    """
    found: dict[ast.expr, None] = {}
    for node in sorted((n for n, sure in event.visited.items() if sure), key=lambda n: n.serial):
        for number, (storage, version, leaf) in enumerate(node.saved):
            since = [c for c in storage.history[version:] if c.serial < event.serial]
            if leaf is not None or not any(isinstance(change, InPlaceChange) for change in since):
                continue
            named = node.saved_expressions[number] if number < len(node.saved_expressions) else node.site
            if (
                number < len(node.saved_expressions)
                and (named is None or line(named) <= 0)
                and node.call is not None
            ):
                held = (e for e, value in node.call.operands if getattr(value, "storage", None) is storage)
                named = next(held, None)
            if not isinstance(named, ast.expr) or line(named) <= 0:
                return []
            found[named] = None
    return list(found)


def _changes(event: Backward, later: bool) -> list[InPlaceChange]:
    """What a backward stumbles over, or would once the first error is mended: one change in each place.

    ``later``: also what comes behind the first one that overwrites something. It matters where that one saves
    its own result.
    """
    found: dict[ast.AST, InPlaceChange] = {}
    for node in sorted((n for n, sure in event.visited.items() if sure), key=lambda n: -n.serial):
        for storage, version, leaf in node.saved:
            since = [c for c in storage.history[version:] if c.serial < event.serial] if leaf is None else []
            for change in since if later else since[:1]:
                if isinstance(change, InPlaceChange):
                    made = _made(change)
                    found.setdefault(change.site if made is None else made, change)
    return list(found.values())


def _out_of_place(program: Program, change: InPlaceChange) -> Edit | None:
    """The edit that makes a new tensor of what is changed, where nothing else reads the old one."""
    made = _made(change)
    if made is None:
        return _rewritten(program, change) if change.layer is None else None
    assert isinstance(change.layer, Module)
    argument = _inplace(made, change.layer.kind)
    assert argument is not None
    return RemoveArgument(Span.of(made), argument) if _only_results(program, made) else None


def _rewritten(program: Program, change: InPlaceChange) -> Edit | None:
    """The edit of a change that is written where it happens."""
    site = change.site
    statement = program.statement(site)
    match statement:
        case ast.AugAssign(ast.Name(name)) if site is statement:
            pass
        case ast.Assign([ast.Subscript(ast.Name(name))]) | ast.AugAssign(ast.Subscript(ast.Name(name))):
            alone = _alone(program, statement, name, _overwriters(program))
            return insert(statement, "before", f"{name} = {name}.clone()") if alone else None
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name))) as call) if site is call:
            pass
        case _:
            return _result_only(program, change, site) if isinstance(site, ast.Call) else None
    alone = _alone(program, statement, name, _overwriters(program))
    return bound_anew(program, statement) if alone else None


def _result_only(program: Program, change: InPlaceChange, call: ast.Call) -> Edit | None:
    """The edit of a call whose result is used, where that alone is."""
    name = last_name(call)
    argument = _inplace(call, name)
    if argument is not None:
        if change.what != f"{name}#inplace":
            return None  # somebody's own function, which hands it on
        operand = call.args[0] if call.args else None
        edit: Edit = RemoveArgument(Span.of(call), argument)
    else:
        plain = out_of_place(name)
        if plain is None or not isinstance(call.func, ast.Attribute):
            return None
        operand = call.func.value
        edit = ReplaceExpression(Span.of(call), renamed(program, call, plain))
    return edit if _unread(program, call, operand, _overwriters(program)) else None


def _overwriters(program: Program) -> set[ast.AST]:
    """The calls of layers that work in place on what others may hold, and give that back."""
    runs = (run for entry in program.entry_points for run in entry.runs)
    return {call for run in runs for calls in run.overwriters.values() for call in calls}


def _only_results(program: Program, made: ast.Call) -> bool:
    """Whether nobody reads what a layer overwrites but through its results, wherever it is called."""
    overwriters = _overwriters(program)
    calls: dict[ast.AST, ast.expr | None] = {}
    for run in (run for entry in program.entry_points for run in entry.runs):
        for call, operand in run.overwriters.get(made, {}).items():
            calls[call] = operand if calls.get(call, operand) is operand else None
    statement = program.statement(made)
    if calls or getattr(statement, "value", None) is made:
        # Also where no run has come to.
        for call in _called(program, statement):
            calls.setdefault(call, call.args[0] if call.args else None)
    return all(
        isinstance(call, ast.Call) and _unread(program, call, operand, overwriters)
        for call, operand in calls.items()
    )


def _called(program: Program, statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of what an assignment binds, by its names, as far as they may be calls of it."""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    names = {n.id for t in targets if t is not None for n in walk(t) if isinstance(n, ast.Name)}
    fields = {n.attr for t in targets if t is not None for n in walk(t) if isinstance(n, ast.Attribute)}
    home = next((n for n in program.ancestors(statement) if isinstance(n, ast.ClassDef)), None)
    inside = set(walk(home)) if home is not None else set()
    for node in walk(program.tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(name) if name in names - {"self"}:
                yield node
            case ast.Attribute(owner, field) if field in fields:
                # Another class may call something else so.
                if node in inside or not (isinstance(owner, ast.Name) and owner.id == "self"):
                    yield node


def _unread(program: Program, call: ast.Call, operand: ast.expr | None, overwriters: set[ast.AST]) -> bool:
    """Whether what a call overwrites is read afterwards through its result alone."""
    statement = program.statement(call)
    operand = _source(program, operand, overwriters)
    if operand is None or (isinstance(statement, ast.Expr) and statement.value is call):
        return False
    if not isinstance(operand, ast.Name):
        return _computed(operand)
    name = operand.id
    if _reads(statement, name) > 1 or not _alone(program, statement, name, overwriters):
        return False
    rebound = isinstance(statement, ast.Assign) and any(_binds(t, name) for t in statement.targets)
    return rebound or not read_again(program, statement, name)


def _source(program: Program, node: ast.expr | None, overwriters: set[ast.AST]) -> ast.expr | None:
    """The expression whose tensor another one may be, behind calls that may give back what they are given."""
    while isinstance(node, ast.Call) and _may_give_back(program, node, overwriters):
        node = node.args[0] if node.args else None
    return node


def _may_give_back(program: Program, call: ast.Call, overwriters: set[ast.AST]) -> bool:
    """Whether the result of a call may be the tensor that it is given first."""
    name = last_name(call)
    if call in overwriters or _inplace(call, name) is not None or "dropout" in name.lower():
        return True
    made = (
        node.value
        for node in walk(program.tree)
        if isinstance(node, ast.Assign)
        and any(name in (getattr(t, "attr", ""), getattr(t, "id", "")) for t in node.targets)
    )
    return any(word in program.segment(value) for value in made for word in UNALTERED)


def _reads(node: ast.AST, name: str) -> int:
    """How often a variable is read in a piece of code; what is bound in place is read as well."""
    loads = sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in walk(node))
    augmented = sum(isinstance(n, ast.AugAssign) and _binds(n.target, name) for n in walk(node))
    return loads + augmented


def _binds(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _alone(program: Program, statement: ast.stmt, name: str, overwriters: set[ast.AST]) -> bool:
    """Whether a variable was computed in the same block, and nothing else holds its tensor at a statement.

    What changes it in place on the way leaves it its memory.
    """
    block = program.suite_around(statement)
    between: list[ast.stmt] = []
    for earlier in reversed(block[: block.index(statement)]):
        if isinstance(earlier, ast.AugAssign) and _binds(earlier.target, name):
            between.append(ast.copy_location(ast.Expr(earlier.value), earlier))
            continue
        if any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in walk(earlier)
        ):
            value = earlier.value if isinstance(earlier, ast.Assign) and len(earlier.targets) == 1 else None
            plain = isinstance(earlier, ast.Assign) and isinstance(earlier.targets[0], ast.Name)
            source = _source(program, value, overwriters)
            if plain and source is not value and isinstance(source, ast.Name) and source.id == name:
                assert value is not None
                between.append(ast.copy_location(ast.Expr(value), earlier))
                continue
            return (
                plain
                and source is not None
                and _computed(source)
                and not any(_shared(s, name) for s in between)
            )
        between.append(earlier)
    return False


def _computed(value: ast.expr) -> bool:
    """Whether an expression gives a tensor that is nobody else's."""
    if isinstance(value, (ast.BinOp, ast.UnaryOp)):
        return True
    if not isinstance(value, ast.Call):
        return False
    name = last_name(value)
    return name not in VIEWS and not name.endswith("_")


def _shared(statement: ast.stmt, name: str) -> bool:
    """Whether somebody else may hold the tensor of a variable after a statement."""
    for node in walk(statement):
        inside = list(ast.iter_child_nodes(node))
        if not any(isinstance(n, ast.Name) and n.id == name for n in inside):
            continue
        if isinstance(node, ast.Attribute) and node.attr in VIEWS:
            return True
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
            "append",
            "extend",
            "insert",
            "add",
        ):
            return True
        if not isinstance(node, (ast.Call, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Compare, ast.keyword)):
            return True
    return False
