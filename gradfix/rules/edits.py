"""Building blocks of fixes: the edits that several codemods make, and the words that they share."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from gradfix.autograd.graph import (
    Backward,
    Edge,
    Event,
    GraphEnd,
    Leaf,
    ModuleCall,
    Node,
    OptimizerState,
    Step,
)
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.core.codemod import (
    Edit,
    Fix,
    InsertStatement,
    MoveStatement,
    Note,
    RemoveArgument,
    ReplaceExpression,
)
from gradfix.core.segments import call_method, replaced_segment
from gradfix.core.span import Span
from gradfix.core.syntax import last_name, undetached
from gradfix.rules import conditional_steps

RETAIN_POSITION = {"backward": 1, "grad": 3}
"""Where ``retain_graph`` stands when given by position: ``backward(gradient, retain_graph)``."""
REPARAMETERIZED = frozenset(
    f"distributions.{name}"
    for name in """Beta Cauchy Chi2 ContinuousBernoulli Dirichlet Exponential FisherSnedecor Gamma
    GeneralizedPareto HalfCauchy HalfNormal InverseGamma Kumaraswamy Laplace LogNormal LogisticNormal
    LowRankMultivariateNormal MultivariateNormal Normal OneHotCategoricalStraightThrough RelaxedBernoulli
    RelaxedOneHotCategorical StudentT Uniform Wishart""".split()
)
"""The distributions of torch 2.13 that have ``has_rsample``, as nodes of the graph are named for them."""
SHOWN = 72
"""Characters up to which a call is written whole in a message."""


def retain_argument(call: ast.AST) -> str | int | None:
    """How a backward is told literally to keep its graph: the keyword, the position, or None."""
    if not isinstance(call, ast.Call):
        return None
    for keyword in call.keywords:
        if keyword.arg == "retain_graph":
            literal = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            return "retain_graph" if literal else None
    name = last_name(call)
    position = RETAIN_POSITION.get(name, 1)
    if name == "backward" and isinstance(call.func, ast.Attribute) and _is_module(call.func.value):
        position = 2  # torch.autograd.backward(tensors, grad_tensors, retain_graph)
    if len(call.args) == position + 1:
        given = call.args[position]
        if isinstance(given, ast.Constant) and given.value is True:
            return position
    return None


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "autograd"


def drop_retain(backward: Event, program: Program | None = None) -> list[Edit]:
    """The edit that removes ``retain_graph=True`` from a backward, if it is there.

    Where the program is given, also from the call of a helper that hands it on, and does without it too.
    """
    argument = retain_argument(backward.site)
    if argument is None:
        return [] if program is None else _drop_handed(program, backward)
    assert isinstance(backward.site, ast.Call)
    return [RemoveArgument(Span.of(backward.site), argument)]


def _drop_handed(program: Program, backward: Event) -> list[Edit]:
    """``update(optimizer, loss, True)`` without the last argument, where ``keep=False`` is the default."""
    site, call = backward.site, next(reversed(backward.calls), None)
    if line(site) <= 0 or not isinstance(site, ast.Call) or not isinstance(call, ast.Call) or line(call) <= 0:
        return []
    flag = next((k.value for k in site.keywords if k.arg == "retain_graph"), None)
    helper = program.function(site)
    if not isinstance(flag, ast.Name) or not isinstance(helper, ast.FunctionDef):
        return []
    given = helper.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    defaults = dict(zip(reversed(names), reversed(given.defaults)))
    defaults |= {a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults) if d is not None}
    default = defaults.get(flag.id)
    if not isinstance(default, ast.Constant) or default.value:
        return []
    for keyword in call.keywords:
        if keyword.arg == flag.id and isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
            return [RemoveArgument(Span.of(call), flag.id)]
    place = names.index(flag.id) if flag.id in names else -1
    if isinstance(program.parent(helper), ast.ClassDef) and isinstance(call.func, ast.Attribute):
        place -= 1
    last = call.args[-1] if call.args else None
    if place == len(call.args) - 1 and isinstance(last, ast.Constant) and last.value is True:
        return [RemoveArgument(Span.of(call), place)]
    return []


def add_retain(program: Program, backward: Event) -> Edit | None:
    """The edit that adds ``retain_graph=True`` to a backward."""
    site = backward.site
    if not isinstance(site, ast.Call) or any(k.arg in ("retain_graph", None) for k in site.keywords):
        return None
    return ReplaceExpression(Span.of(site), with_argument(program, site, "retain_graph=True"))


def with_argument(program: Program, call: ast.Call, argument: str) -> str:
    """The text of a call with one more argument at the end."""
    inner = program.segment(call)[:-1].rstrip()
    if not (call.args or call.keywords):
        return f"{inner}{argument})"
    return f"{inner.removesuffix(',')}, {argument})"


def creating_graph(program: Program, call: ast.Call) -> str | None:
    """A call of ``torch.autograd.grad`` that gives the gradient a graph; None if it is not known how."""
    given = next((keyword for keyword in call.keywords if keyword.arg == "create_graph"), None)
    if len(call.args) > 4 or any(keyword.arg is None for keyword in call.keywords):
        return None
    if given is None:
        return with_argument(program, call, "create_graph=True")
    if not isinstance(given.value, ast.Constant):
        return None
    return with_parts(program, call, {given.value: "True"})


def insert(anchor: ast.stmt, where: Literal["before", "after"], code: str) -> Edit:
    """The edit that puts ``code`` beside a statement."""
    return InsertStatement(Span.of(anchor), where, code)


def move(statement: ast.stmt, anchor: ast.stmt, where: Literal["before", "after"]) -> Edit:
    """The edit that moves a statement beside another."""
    return MoveStatement(Span.of(statement), Span.of(anchor), where)


def note(node: ast.AST, message: str) -> Note:
    """A note at a node of the syntax tree."""
    assert isinstance(node, (ast.expr, ast.stmt))
    return Note(Span.of(node), message)


def receiver(program: Program, event: Event) -> str:
    """The source text of what ``backward``, ``step`` or ``zero_grad`` is called on."""
    site = event.site
    if isinstance(event, Backward) and event.receivers:
        return shown(program, event.receivers[0])
    if isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute):
        return shown(program, site.func.value)
    return ""


def shown(program: Program, node: ast.expr | ast.stmt) -> str:
    """Source text for a message: on one line, and of a long call without the arguments."""
    text = " ".join(program.segment(node).split())
    if len(text) > SHOWN and isinstance(node, ast.Call):
        return f"{shown(program, node.func)}(…)"
    return text


def network(call: ModuleCall) -> ast.expr:
    """What names the network that is called: ``net`` in ``net(x)`` and in ``net.forward(x)``."""
    function = call.site.func
    return function.value if isinstance(function, ast.Attribute) and function.attr == "forward" else function


def detach_at(program: Program, expression: ast.expr) -> Edit:
    """The edit that cuts an expression off from its graph where it stands."""
    code = call_method(program.segment(expression), expression, "detach")
    return ReplaceExpression(Span.of(expression), code)


def detach_operands(program: Program, edges: Iterable[Edge]) -> tuple[str, list[Edit]] | None:
    """The names of what some operations are given, and the edits that detach it there; None if nothing is."""
    operands = [operand for operand in dict.fromkeys(edge.operand for edge in edges) if operand is not None]
    if not operands:
        return None
    names = ", ".join(dict.fromkeys(f"`{shown(program, operand)}`" for operand in operands))
    return names, [detach_at(program, operand) for operand in operands]


def with_parts(program: Program, expression: ast.expr, parts: Mapping[ast.expr, str]) -> str:
    """The source text of an expression with other code in the place of some of its parts."""
    return replaced_segment(
        program.text, Span.of(expression), {Span.of(part): code for part, code in parts.items()}
    )


def uncut(program: Program, cut: GraphEnd) -> tuple[str, tuple[Edit, ...]] | None:
    """How a graph that ends at a call of the file is kept, in words and as edits; None if not known.

    That is ``x`` instead of ``x.detach()``, and ``rsample()`` instead of ``sample()`` where the distribution
    can be reparameterized.
    """
    site = cut.site
    if not isinstance(site, ast.Call) or len(set(cut.sites)) > 1 or not isinstance(site.func, ast.Attribute):
        return None
    kept = site.func.value
    if undetached(site) is not None:
        return f"use `{shown(program, kept)}` without `detach()`", (
            ReplaceExpression(Span.of(site), program.segment(kept)),
        )
    if isinstance(cut.graph, Node) and cut.graph.op in REPARAMETERIZED and site.func.attr == "sample":
        text = program.segment(site)
        code = f"{program.segment(kept)}.r{text[len(program.segment(kept)) + 1 :]}"
        return f"draw with `rsample()`, which has a gradient, from `{shown(program, kept)}`", (
            ReplaceExpression(Span.of(site), code),
        )
    return None


def torch_name(program: Program, place: ast.stmt) -> str | None:
    """What the file calls torch at a statement."""
    for statement in program.tree.body:
        if isinstance(statement, ast.Import) and statement.lineno < place.lineno:
            for alias in statement.names:
                if alias.name == "torch":
                    return alias.asname or alias.name
                if alias.name.startswith("torch.") and alias.asname is None:
                    return "torch"
    return None


def stepped(program: Program, optimizer: OptimizerState, at: ast.AST | None = None) -> str | None:
    """How the program calls an optimizer when it steps it: ``optimizer_D``, ``self.opt["g"]``.

    ``at``, if it is given, is where that name is to be used. What goes through several of them,
    ``for opt in (opt_g, opt_d): opt.step()``, is no name of one there.
    """
    holders = [h for step in optimizer.steps if (h := stepping(program, step)) is not None]
    around = set(program.ancestors(at)) if at is not None else set()
    named = (h for h in holders if at is None or (loop := binding_loop(program, h)) is None or loop in around)
    own = next(named, None)
    if own is None and holders:
        return named_where_made(program, optimizer) or program.segment(holders[0])
    return program.segment(own) if own is not None else None


def binding_loop(program: Program, holder: ast.expr) -> ast.AST | None:
    """The loop, or the comprehension, around the use of a variable that binds it."""
    name = names_read(holder)
    for outer in program.ancestors(holder):
        targets = [outer.target] if isinstance(outer, (ast.For, ast.AsyncFor)) else []
        targets += [generator.target for generator in getattr(outer, "generators", ())]
        if any(name & names_bound(target) for target in targets):
            return outer
    return None


def named_where_made(program: Program, optimizer: OptimizerState) -> str | None:
    """What an optimizer was put into when it was made: a variable, an attribute, an item."""
    made = optimizer.created
    statement = program.statement(made) if line(made) > 0 else None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, (ast.Name, ast.Attribute)):
        return _item_named(program.segment(target), value, made)
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        if len(target.elts) == len(value.elts):
            given = zip(target.elts, value.elts)
            return next((program.segment(t) for t, v in given if v is made), None)
    return None


def _item_named(name: str, value: ast.expr, made: ast.AST) -> str | None:
    """What names a value where it is all that ``name`` holds, or an item of it."""
    if value is made:
        return name
    if isinstance(value, (ast.List, ast.Tuple)) and made in value.elts:
        before = value.elts[: value.elts.index(made)]
        return None if any(isinstance(v, ast.Starred) for v in before) else f"{name}[{len(before)}]"
    if isinstance(value, ast.Dict) and made in value.values:
        key = value.keys[value.values.index(made)]
        return f"{name}[{key.value!r}]" if isinstance(key, ast.Constant) else None
    return None


def stepping(program: Program, step: Step) -> ast.expr | None:
    """What names the optimizer where it is stepped: ``opt`` in ``opt.step()`` and in ``scaler.step(opt)``."""
    site = step.site
    if not isinstance(site, ast.Call) or not isinstance(site.func, ast.Attribute):
        return None
    if site.func.attr != "step":
        return None  # a call that leads to the step, which stands in an imported module
    holder = site.func.value
    if site.args and not isinstance(site.args[0], (ast.Lambda, ast.Name)):
        return site.args[0]  # scaler.step(optimizer)
    if site.args and "scaler" in program.segment(holder).lower():
        return site.args[0]
    return holder


def clearing_place(
    program: Program, backward: Backward, step: Step
) -> tuple[ast.stmt, Literal["before", "after"]] | None:
    """Where a step's gradients are to be cleared: before its backward (or the statement around it), or after
    the step.

    What several iterations of a loop add up before the step is meant to add up, so that a step that waits for
    several of them clears behind itself. Where a branch holds the backward and not the step, the other branch
    may have one too. None: it is not known whether the step waits.
    """
    waiting = conditional_steps.clearing_statement(program, backward, step)
    if waiting is False:
        return None
    if waiting is not True:
        return waiting, "after"
    place = program.statement(backward.site)
    around = set(program.ancestors(step.site))
    for outer in program.ancestors(place):
        if outer in around or isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(outer, (ast.For, ast.While, ast.AsyncFor, ast.If)):
            place = outer
    return place, "before"


def only_for(
    program: Program,
    backward: Backward,
    optimizer: OptimizerState,
    calls: Iterable[ModuleCall] = (),
    needed_again: bool = False,
) -> Edit | None:
    """The edit that gives the gradients of a backward to what an optimizer owns and to nothing else.

    They are named by the network among ``calls`` that is all that the optimizer owns, else by the optimizer.
    ``retain_graph`` goes, unless another backward needs the way to these parameters again.
    """
    site = backward.site
    if not isinstance(site, ast.Call) or line(site) <= 0 or not backward.receivers or len(site.args) > 0:
        return None
    if any(keyword.arg != "retain_graph" for keyword in site.keywords) or not optimizer.groups_known:
        return None
    home, owned = program.function(site), set(optimizer.owned())
    whole = (c for c in calls if c.leaves == owned and line(c.site) > 0 and program.function(c.site) is home)
    net = next(whole, None)
    name = stepped(program, optimizer, site)
    if net is not None:
        inputs = f"list({program.segment(network(net))}.parameters())"
    elif name is not None:
        inputs = f'[p for group in {name}.param_groups for p in group["params"]]'
    else:
        return None
    again = next((k for k in site.keywords if k.arg == "retain_graph"), None) if needed_again else None
    kept = f"retain_graph={program.segment(again.value)}, " if again is not None else ""
    return ReplaceExpression(Span.of(site), f"{program.segment(site.func)}({kept}inputs={inputs})")


def constructed(run: Run, optimizer: OptimizerState) -> tuple[int, ...]:
    """The line that names an optimizer in a claim; nothing where another is made on the same line."""
    mine = line(optimizer.created)
    others = [o for o in run.optimizers if o.state is not optimizer and line(o.state.created) == mine]
    return () if others else (mine,)


def constructed_beside(run: Run, optimizer: OptimizerState | None) -> tuple[int, ...]:
    """The lines that name all other optimizers in a claim."""
    others = (one.state for one in run.optimizers if one.state is not optimizer)
    return tuple(made for state in others for made in constructed(run, state) if made > 0)


def line(node: ast.AST) -> int:
    """The line of a node."""
    number = getattr(node, "lineno", 0)
    return int(number)


def _places(edit: Edit) -> Iterator[Span]:
    """Where an edit changes something, or puts something."""
    for name in ("span", "anchor"):
        place = getattr(edit, name, None)
        if place is not None:
            yield place


def within_file(fixes: Iterable[Fix]) -> tuple[Fix, ...]:
    """The fixes that lie within the file, without those that would edit another one."""
    found: list[Fix] = []
    with contextlib.suppress(Elsewhere):
        for fix in fixes:
            if any(place.line < 1 for edit in fix.edits for place in _places(edit)):
                continue
            # Several calls of one helper lead to the same edit in it.
            found.append(fix._replace(edits=tuple(dict.fromkeys(fix.edits))))
    return tuple(found)


def requires_grad_call(leaf: Leaf) -> ast.Call | None:
    """The call that has made a tensor of data require a gradient, if it says so literally."""
    call = leaf.created
    if isinstance(call, ast.Call) and leaf.label == "tensor":
        if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_" and not call.args:
            return call
        for keyword in call.keywords:
            if (
                keyword.arg == "requires_grad"
                and isinstance(keyword.value, ast.Constant)
                and keyword.value.value
            ):
                return call
    return None


def without_requires_grad(program: Program, call: ast.Call) -> Edit:
    """The edit by which the call that :func:`requires_grad_call` found no longer makes the tensor require
    grad."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return ReplaceExpression(Span.of(call), program.segment(call.func.value))
    return RemoveArgument(Span.of(call), "requires_grad")


def with_lone_condition(program: Program, statement: ast.stmt) -> ast.stmt:
    """A statement, or the condition that holds it and nothing else: ``if args.clip: clip(...)``."""
    while True:
        outer = program.parent(statement)
        if not isinstance(outer, ast.If) or outer.orelse or outer.body != [statement]:
            return statement
        above = program.parent(outer)
        if isinstance(above, ast.If) and outer in above.orelse:
            return statement  # an ``elif``
        statement = outer


def names_read(node: ast.AST) -> set[str]:
    """The variables that a piece of code reads."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def names_bound(node: ast.AST) -> set[str]:
    """The variables that a piece of code binds."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def targets_in(target: ast.expr) -> list[ast.expr]:
    """What an assignment binds: the variables of ``mean, (low, high) = ...``."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [inner for element in target.elts for inner in targets_in(element)]
    return [target.value if isinstance(target, ast.Starred) else target]


def in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below ``node`` in the order in which Python meets them: values before targets."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            # Read and bound at once: first of all a read.
            yield ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        if node.value is not None:
            yield from in_order(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from in_order(target)
        return
    if isinstance(node, (ast.For, ast.AsyncFor)):
        parts: list[ast.AST] = [node.iter, node.target, *node.body, *node.orelse]
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        parts = [*node.generators, node.elt]
    elif isinstance(node, ast.NamedExpr):
        parts = [node.value, node.target]
    else:
        parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Name):
        yield node
    for part in parts:
        yield from in_order(part)
