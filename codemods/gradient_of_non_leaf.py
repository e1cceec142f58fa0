"""The gradient of a computed tensor is asked for, but backward fills the `.grad` of leaf tensors only.
Its `.grad` stays None, which fails later with an error about NoneType; an optimizer raises "can't optimize a
non-leaf Tensor".

    w = torch.randn(3, requires_grad=True) * 0.01       w = (torch.randn(3) * 0.01).requires_grad_()
    for x, y in data:                              =>   for x, y in data:
        loss = (x @ w - y).square().mean()                  loss = (x @ w - y).square().mean()
        loss.backward()                                     loss.backward()
        w.data -= 0.1 * w.grad                              w.data -= 0.1 * w.grad
        w.grad = None                                       w.grad = None

A leaf is a tensor that was created with `requires_grad=True`, and not computed. What is computed from one,
be it by `* 0.01`, `.view(...)` or `w = w - 0.1 * w.grad`, is another tensor.

When not to fix it: where the gradient of the original leaf is meant. Then read the `.grad` of that one.

Preconditions:

* the tensor is certainly computed from one that requires a gradient, and a backward has gone through it
  before its `grad` is asked for; or it is listed for an optimizer;
* nothing has told it to keep its gradient (`retain_grad()`) or watches it (`register_hook`), and the program
  does not ask whether there is one (`is None`), nor only print it: a lesson may show that there is none;
* or an update under `no_grad` reassigns it, after which the backward of the loop finds no graph ("element 0
  of tensors does not require grad");
* or a tensor that is trained, or whose gradient is read, was moved in the expression that made it on the CPU
  and let it require one: what `torch.zeros(3, requires_grad=True).to(device)` gives is a copy elsewhere.

What is updated by hand, or listed for an optimizer, is made a leaf: `.requires_grad_()` goes from the tensor
that it is computed from to the result, where one expression makes both; where the update reassigns the name,
the new value is detached from the old one and made a leaf, or the leaf is changed in place where its
gradient is used once more. What is only looked at keeps its gradient by `retain_grad()`, after the
assignment that computes it. Otherwise nothing is rewritten.

By hand: call `retain_grad()` on the tensor before the backward if you only look at its gradient; if it is
trained, make it a leaf: call `requires_grad_()` last.

Effect: repairs, or preserves where the gradient is only looked at, or all is well on the CPU.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import Backward, Leaf, NonLeaf, reachable_nodes
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, of_kind
from gradfix.core.codemod import (
    Claim,
    Edit,
    Effect,
    Finding,
    Fix,
    ReplaceExpression,
    ReplaceStatement,
    Severity,
)
from gradfix.core.segments import call_method
from gradfix.core.span import Span
from gradfix.core.syntax import last_name
from gradfix.rules.edits import insert, line, note, requires_grad_call, shown, with_parts, within_file

SAME_TYPE = ("to", "double", "half", "bfloat16", "type", "contiguous")
"""What gives the very tensor where it has that type already."""
MAKING = frozenset(
    "rand randn randint zeros ones full empty tensor linspace arange eye FloatTensor Tensor".split()
)
"""What makes a tensor on the CPU where nothing else is said."""
ASKS = re.compile(r",\s*requires_grad\s*=\s*True")


def find(program: Program) -> Iterator[Finding]:
    """Report each tensor that is taken for a leaf and is none."""
    for entry in program.entry_points:
        reported: set[ast.AST] = set()
        for event in entry.certain_observations(taken_for_leaf, lambda e: e.site, raises=True):
            origin = event.node.site
            if (
                origin in reported
                or line(event.site) <= 0
                or line(event.named) <= 0
                or _asked(program, event)
            ):
                continue
            reported.add(origin)
            yield _finding(program, event)
        for failing in entry.certain_observations(left_without_graph, lambda b: b.site, raises=True):
            updates = _updates_without_graph(program, failing)
            if updates:
                yield _made_constant(program, failing, updates)
        for one in entry.certain_observations(
            trained_leaves, lambda m: m.backward.site, raises=False, merge=Trained.merge
        ):
            for leaf in one.leaves:
                call = requires_grad_call(leaf)
                moved = None if call is None or line(call) <= 0 else _moved(program, call)
                if call is not None and moved is not None and moved not in reported:
                    reported.add(moved)
                    yield _copied(program, call, moved, one.backward)


def taken_for_leaf(run: Run) -> dict[Hashable, NonLeaf]:
    """By place: where something computed is listed for an optimizer, or its gradient is asked for."""
    found: dict[Hashable, NonLeaf] = {}
    kept = run.retaining | run.hooked
    passed = [
        b
        for b in backwards(run)
        if b.accumulates and b.certain and b.failure is None and not b.error_expected
    ]
    for event in of_kind(run, NonLeaf):
        node = event.node
        if node in kept or node.op.rpartition(".")[2] in SAME_TYPE or node.foreign or node.opaque:
            continue
        differentiated = any(b.serial < event.serial and b.visited.get(node) for b in passed)
        leads = any(sure and leaf.requires is True for leaf, sure in _leaves(event).items())
        if leads and (event.optimizer or differentiated):
            found.setdefault(event.site, event)
    return found


def left_without_graph(run: Run) -> dict[Hashable, Backward]:
    """By place: the backwards that find no graph, where they have found one in an earlier iteration."""
    found: dict[Hashable, Backward] = {}
    leading: set[ast.AST] = set()
    for event in backwards(run):
        if event.failure is not None and event.failure.kind == "E3" and event.site in leading and event.loops:
            found.setdefault(event.site, event)
        if any(sure and leaf.label == "tensor" for leaf, sure in event.reached.items()):
            leading.add(event.site)
    return found


def _updates_without_graph(program: Program, event: Backward) -> list[ast.Assign]:
    """The updates ``w = w - 0.1 * w.grad`` under ``no_grad`` in the loop of a backward."""
    loop, site = event.loops[-1][0], event.site
    if line(site) <= 0 or not isinstance(loop, (ast.For, ast.While)) or line(loop) <= 0:
        return []
    found = []
    for node in ast.walk(loop):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
            continue
        asked = any(
            isinstance(n, ast.Attribute) and ast.unparse(n) == f"{target.id}.grad"
            for n in ast.walk(node.value)
        )
        around = [o for o in program.ancestors(node) if isinstance(o, ast.With)]
        entered = [ast.unparse(item.context_expr) for o in around for item in o.items]
        if asked and any(text.endswith("no_grad()") for text in entered):
            found.append(node)
    return found


def _made_constant(program: Program, event: Backward, updates: list[ast.Assign]) -> Finding:
    """What to say of weights that an update under ``no_grad`` binds anew, as data."""
    first = updates[0]
    assert isinstance(first.targets[0], ast.Name)
    notes = [note(one.value, "computed under `no_grad`, this does not require grad") for one in updates]
    notes.append(note(event.site, "from the second iteration on there is no graph"))
    edits = [
        ReplaceExpression(
            Span.of(one.value), call_method(program.segment(one.value), one.value, "requires_grad_")
        )
        for one in updates
    ]
    fix = Fix(
        "make each new value a leaf that requires grad",
        Effect.REPAIRS,
        tuple(edits),
        Claim("E3", line(event.site)),
    )
    return Finding(
        "gradient-of-non-leaf",
        f"`{first.targets[0].id}` is reassigned under `no_grad`, and does not require grad any more",
        Span.of(first),
        tuple(notes),
        within_file([fix]),
        "E3",
    )


@dataclass(eq=False)
class Trained:
    """A backward, and the tensors that it leaves gradients in and that somebody trains or looks at."""

    backward: Backward
    leaves: list[Leaf]

    def merge(self, other: Trained) -> None:
        """Add what another run shows."""
        self.leaves += other.leaves


def trained_leaves(run: Run) -> dict[Hashable, Trained]:
    """By place: the backwards for tensors that were made with a gradient and may be moved elsewhere."""
    found: dict[Hashable, Trained] = {}
    if not run.remade:
        return found
    owned = {leaf for optimizer in run.optimizers for leaf in optimizer.state.owned()}
    used = owned | {leaf for _, leaf in run.grad_reads}
    for event in backwards(run):
        leaves = [
            leaf for leaf, sure in event.reached.items() if sure and leaf in run.remade and leaf in used
        ]
        if leaves and event.accumulates and event.certain:
            found.setdefault(event.site, Trained(event, leaves))
    return found


def _moved(program: Program, call: ast.Call) -> ast.Call | None:
    """The call that moves a tensor to another device where it is made: ``torch.zeros(3, ...).to(device)``."""
    method = program.parent(call)
    moved = program.parent(method) if isinstance(method, ast.Attribute) else None
    if not isinstance(method, ast.Attribute) or method.attr not in ("to", "cuda"):
        return None
    if not isinstance(moved, ast.Call) or moved.func is not method:
        return None
    here = any(isinstance(a, ast.Constant) and a.value == "cpu" for a in moved.args)
    return None if here or not _on_the_cpu(program, call) else moved


def _on_the_cpu(program: Program, call: ast.Call) -> bool:
    """Whether a call makes a tensor on the CPU, as far as is written."""
    made: ast.expr = call
    if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        made = call.func.value
    if not isinstance(made, ast.Call) or any(k.arg in ("device", None) for k in made.keywords):
        return False
    if "set_default_" in program.text:
        return False
    return last_name(made) in MAKING


def _copied(program: Program, call: ast.Call, moved: ast.Call, backward: Backward) -> Finding:
    """What to say of a leaf that is left behind, where its copy is used."""
    what = shown(program, moved)
    plain = _without_asking(program, call)
    fixes = []
    if plain is not None:
        text = with_parts(program, moved, {call: plain})
        edit = ReplaceExpression(Span.of(moved), f"{text}.requires_grad_()")
        fixes.append(Fix("call `requires_grad_()` after the move to the device", Effect.PRESERVES, (edit,)))
    return Finding(
        "gradient-of-non-leaf",
        f"`{what}` is a leaf only where the move makes no copy: on another device its `.grad` stays None",
        Span.of(moved),
        (
            note(call, "this is the leaf"),
            note(backward.site, "this fills the `.grad` of the leaf, not that of a copy"),
        ),
        within_file(fixes),
        severity=Severity.ERROR,
    )


def _without_asking(program: Program, call: ast.Call) -> str | None:
    """The text of what makes a tensor, with nothing that makes it require a gradient."""
    inner = program.segment(call)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return program.segment(call.func.value)
    return ASKS.sub("", inner) if len(ASKS.findall(inner)) == 1 else None


def _leaves(event: NonLeaf) -> dict[Leaf, bool]:
    """What something is computed of."""
    graph = reachable_nodes([(event.node, True)])
    return {leaf: sure and certain for n, sure in graph.items() for leaf, certain, _ in n.leaves}


def _asked(program: Program, event: NonLeaf) -> bool:
    """Whether a program asks if there is a gradient, or hands on what it finds."""
    if event.optimizer:
        return False
    name = ast.unparse(event.named)
    home = program.function(event.site)
    for node in ast.walk(home):
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            if ast.unparse(node.left) == f"{name}.grad":
                return True
    held = program.parent(event.site)
    tested = isinstance(held, (ast.Assert, ast.If, ast.IfExp, ast.BoolOp))
    return tested or _only_shown(held) or any(isinstance(o, ast.Try) for o in program.ancestors(event.site))


def _only_shown(held: ast.AST | None) -> bool:
    """Whether what holds a gradient prints it, or names it alone."""
    printed = isinstance(held, ast.Call) and isinstance(held.func, ast.Name) and held.func.id == "print"
    return printed or isinstance(held, (ast.FormattedValue, ast.Expr))


def _finding(program: Program, event: NonLeaf) -> Finding:
    assert isinstance(event.site, (ast.expr, ast.stmt))
    name, origin = shown(program, event.named), event.node.site
    notes = []
    if line(origin) > 0:
        notes.append(
            note(
                origin, f"`{name}` is computed here, so it is not a leaf: backward does not fill its `.grad`"
            )
        )
    notes.append(note(event.site, "torch raises here" if event.optimizer else "this is None"))
    result = "an optimizer cannot take it" if event.optimizer else "its `.grad` stays None"
    return Finding(
        "gradient-of-non-leaf",
        f"`{name}` is computed, not a leaf tensor: {result}",
        Span.of(event.named if event.optimizer else event.site),
        tuple(notes),
        within_file(_fixes(program, event)),
    )


def _fixes(program: Program, event: NonLeaf) -> Iterator[Fix]:
    name = event.named
    if line(event.node.site) <= 0 or not isinstance(name, ast.Name):
        return
    try:
        made = program.statement(event.node.site)
    except Elsewhere:
        return
    home = program.function(event.site)
    if not isinstance(made, ast.Assign) or program.function(made) is not home or len(made.targets) != 1:
        return
    target = made.targets[0]
    if not isinstance(target, ast.Name) or target.id != name.id:
        return
    updating = not event.optimizer and _updates(program.statement(event.site), name.id)
    if updating and program.statement(event.site) is made:
        yield from _recomputed(program, made, name.id)
    elif updating or event.optimizer:
        yield from _made_leaf(program, event, made)
    elif _stores(home, name.id) == 1:
        raises = isinstance(program.parent(event.site), (ast.Attribute, ast.BinOp, ast.Subscript))
        words = f"call `{name.id}.retain_grad()`"
        edit: Edit = insert(made, "after", f"{name.id}.retain_grad()")
        if raises:
            yield Fix(words, Effect.REPAIRS, (edit,), Claim(stops="NoneType"))
        else:
            yield Fix(words, Effect.PRESERVES, (edit,))


def _recomputed(program: Program, made: ast.Assign, name: str) -> Iterator[Fix]:
    """A new value that is a leaf, or the leaf changed in place where something else asks for its gradient."""
    home = program.function(made)
    reads = [n for n in ast.walk(home) if isinstance(n, ast.Attribute) and n.attr == "grad"]
    within = set(ast.walk(made))
    if any(n not in within and ast.unparse(n.value) == name for n in reads):
        yield from _changed_in_place(program, made, name)
        return
    cut = call_method(program.segment(made.value), made.value, "detach")
    edit = ReplaceExpression(Span.of(made.value), f"{cut}.requires_grad_()")
    words = f"make each new `{name}` a leaf that requires grad"
    yield Fix(words, Effect.REPAIRS, (edit,), Claim(stops="NoneType", unchanged=()))


def _changed_in_place(program: Program, made: ast.Assign, name: str) -> Iterator[Fix]:
    """``w = w - 0.1 * w.grad`` as an update of the leaf itself, which then keeps its gradient."""
    value = made.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Sub | ast.Add):
        return
    if ast.unparse(value.left) != name or "\n" in program.segment(value):
        return
    sign = "-" if isinstance(value.op, ast.Sub) else "+"
    edit = ReplaceStatement(Span.of(made), f"{name}.data {sign}= {program.segment(value.right)}")
    words = f"update `{name}.data` in place"
    yield Fix(words, Effect.REPAIRS, (edit,), Claim(stops="NoneType", unchanged=()))


def _made_leaf(program: Program, event: NonLeaf, made: ast.Assign) -> Iterator[Fix]:
    """The result made a leaf, rather than what it is computed of."""
    leaves = list(_leaves(event))
    call = requires_grad_call(leaves[0]) if len(leaves) == 1 else None
    if call is None or call not in set(ast.walk(made.value)):
        return
    plain = _without_asking(program, call)
    if plain is None:
        return
    text = call_method(with_parts(program, made.value, {call: plain}), made.value, "requires_grad_")
    edit = ReplaceExpression(Span.of(made.value), text)
    said = "can't optimize a non-leaf Tensor" if event.optimizer else "NoneType"
    words = f"make `{ast.unparse(made.targets[0])}` itself the leaf"
    yield Fix(words, Effect.REPAIRS, (edit,), Claim(stops=said, unchanged=()))


def _updates(statement: ast.stmt, name: str) -> bool:
    """Whether a statement writes a variable, its data, or binds it anew."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets = [statement.target]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr.endswith("_"):
            targets = [function.value]
    return any(ast.unparse(target).removesuffix(".data") == name for target in targets)


def _stores(home: ast.AST, name: str) -> int:
    """How often a function binds a variable."""
    return sum(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(home)
    )
