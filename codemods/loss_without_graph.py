"""`backward()` is called on a loss that has lost its graph: no parameter gets a gradient from it.
Autograd raises "element 0 of tensors does not require grad and does not have a grad_fn", unless that was
silenced.

    outputs = model(x).detach()                 outputs = model(x)
    loss = criterion(outputs, y)           =>   loss = criterion(outputs, y)
    loss.backward()                             loss.backward()
    optimizer.step()                            optimizer.step()

Where `loss.requires_grad = True`, or `torch.tensor(loss.item(), requires_grad=True)`, has silenced the
error, nothing raises and nothing learns: the loss is a new leaf, and its gradient goes nowhere.

When not to fix it: where nothing should be trained there. Then drop the backward.

Preconditions:

* all that the loss is computed from is known, and has no graph: what an unknown function gives may have one,
  and nothing is said then. What comes of a data loader, or of what a loop that trains goes over and takes
  apart, is data;
* something that it is computed from certainly had a graph, which leads to a parameter, and which ends at a
  place that is known: at `detach()`, `.data`, `item()`, `float()`, `numpy()`, in a new tensor, at an
  operation that has no derivative (`argmax`, `>`, a conversion to integers), or where no graphs are
  recorded; Of a loss that is a leaf of its own, made from something by `Variable(loss, requires_grad=True)`
  or told to require a gradient, no more has to be known than that: what it was computed from may be frozen;
* this holds whichever way conditions go, and nothing expects the error;
* where the loss is a leaf, nothing reads its gradients, no optimizer owns it, and a step follows.

Where the graph ends by `detach()`, `.data`, `item()` or `float()`, that goes. What is put into a new tensor
by itself is used itself, and tensors that are put together by `torch.tensor([...])` are stacked. What
silences the error goes as well. An operation without a derivative, a way through numpy and a region without
graphs have more than one remedy: these are reported.

By hand: compute the loss directly from the output of the network: from logits or probabilities in place of
`argmax` or of a comparison, with gradients enabled, and with torch operations in place of numpy's.

Effect: repairs.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.autograd.cuts import Graphless, graphless
from gradfix.autograd.graph import GraphEnd, Leaf
from gradfix.autograd.program import Program
from gradfix.core.codemod import Claim, Edit, Effect, Finding, Fix, RemoveStatement, ReplaceExpression
from gradfix.core.span import Span
from gradfix.core.syntax import last_name
from gradfix.rules.edits import constructed, creating_graph, line, note, receiver, shown, stepped, within_file

ENDS = {
    "detach": "the graph of `{of}` ends here",
    "data": "the graph of `{of}` ends here",
    "item": "this makes a plain number of `{of}`: its graph ends here",
    "tolist": "this makes plain numbers of `{of}`: its graph ends here",
    "float": "this makes a plain number of `{of}`: its graph ends here",
    "grad": "this gradient has no graph: `create_graph=True` is missing",
    "numpy": "this makes a numpy array of `{of}`: its graph ends here",
}
"""What is said of where a graph ends, by what ends it."""
MAKING = frozenset("tensor as_tensor Tensor FloatTensor DoubleTensor HalfTensor Variable Parameter".split())
"""Functions of torch that make a tensor of what they are given first."""


def find(program: Program) -> Iterator[Finding]:
    """Report each loss that is backpropagated and has no graph any more."""
    for one in program.certain_observations(graphless, lambda one: one.backward.site, raises=False):
        yield _finding(program, one)


def _finding(program: Program, one: Graphless) -> Finding:
    loss, site = receiver(program, one.backward), one.backward.site
    assert isinstance(site, (ast.expr, ast.stmt))
    notes = [note(cut.site, _ending(program, cut)) for cut in one.cuts if line(cut.site) > 0]
    raises = one.backward.failure is not None
    for leaf in one.leaves:
        if leaf.created is not None and line(leaf.created) > 0 and leaf.created not in _sites(one):
            made = last_name(leaf.created) in MAKING
            why = "this makes a new tensor" if made else "this silences the error"
            notes.append(note(leaf.created, f"{why}, but does not bring the graph back"))
    if raises:
        notes.append(note(site, f"autograd stops here: `{loss}` has no graph"))
    else:
        notes.append(note(site, f"`{loss}` has no graph: its backward reaches no parameter"))
    if one.step is not None and not raises and line(one.step.site) > 0:
        notes.append(note(one.step.site, "this step gets no gradient from it"))
    message = f"`{loss}` is backpropagated but has no graph: no parameter gets a gradient from it"
    if not one.backward.accumulates:
        message = f"`{loss}` is differentiated but has no graph: `autograd.grad` raises"
    return Finding(
        "loss-without-graph",
        message,
        Span.of(site),
        tuple(dict.fromkeys(notes)),
        _fixes(program, one),
        raises="E3" if raises else None,
        advice=_advice(one),
    )


def _sites(one: Graphless) -> set[ast.AST]:
    return {site for cut in one.cuts for site in cut.sites}


def _ending(program: Program, cut: GraphEnd) -> str:
    if not cut.recorded:
        return "this is computed with gradients disabled"
    of = _operand(cut.site)
    way = ENDS.get(last_name(cut.site))
    if way is not None and of is not None:
        return way.format(of=shown(program, of))
    if last_name(cut.site) in MAKING:
        return "this makes a new tensor: the graph ends here"
    return "this operation has no derivative: the graph ends here"


def _advice(one: Graphless) -> str:
    if not one.cuts:
        return "compute the loss from tensors that require grad, and do not set its `requires_grad`"
    cut = one.cuts[0]
    if not cut.recorded:
        return "compute it with gradients enabled, outside of `no_grad`"
    if last_name(cut.site) in ENDS or last_name(cut.site) in MAKING:
        return "compute the loss with torch operations, from tensors that still have their graph"
    return "compute the loss from the input of this operation, with operations that have a derivative"


def _operand(site: ast.AST) -> ast.expr | None:
    """What an operation takes whose graph it does not hand on: ``x`` of ``x.item()``, of ``float(x)``."""
    if isinstance(site, ast.Attribute):
        return site.value
    if not isinstance(site, ast.Call):
        return None
    if isinstance(site.func, ast.Attribute) and not site.args and not site.keywords:
        return site.func.value
    return site.args[0] if site.args and not isinstance(site.args[0], ast.Starred) else None


def _fixes(program: Program, one: Graphless) -> tuple[Fix, ...]:
    if len(one.cuts) != 1 or one.step is None:
        return ()
    edits = _restored(program, one.cuts[0])
    if edits is None:
        return ()
    for leaf in one.leaves:
        asked = _unasked(program, leaf, _sites(one))
        if asked is None:
            return ()
        edits += asked
    loss, optimizer = receiver(program, one.backward), one.step.optimizer
    feeds = tuple((made, loss) for made in constructed(one.run, optimizer) if made > 0)
    if one.backward.failure is not None:
        claim = Claim("E3", line(one.backward.site), feeds=feeds, losses="rerouted")
    else:
        claim = Claim(unchanged=(), feeds=feeds, losses="rerouted")
    name = stepped(program, optimizer) or "the optimizer"
    words = f"let `{loss}` keep its graph, so that `{name}` gets gradients from it"
    return within_file([Fix(words, Effect.REPAIRS, tuple(edits), claim)])


def _restored(program: Program, cut: GraphEnd) -> list[Edit] | None:
    """The edits by which a graph goes on where it ended; None where more than one remedy is at hand."""
    if not cut.recorded:
        return None
    code: dict[ast.AST, str] = {}
    for site in cut.sites:
        if line(site) <= 0 or not isinstance(site, ast.expr):
            return None
        text = _going_on(program, site, code, cut.from_list)
        if text is None:
            return None
        code[site] = text
    return [
        ReplaceExpression(Span.of(site), text) for site, text in code.items() if isinstance(site, ast.expr)
    ]


def _going_on(program: Program, site: ast.expr, code: dict[ast.AST, str], listed: bool | None) -> str | None:
    """What an operation is replaced by that hands no graph on; what is in it and was replaced is taken in."""
    operand, way = _operand(site), last_name(site)
    if operand is None:
        return None
    if way == "grad" and isinstance(site, ast.Call):
        return creating_graph(program, site)
    method = isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute) and not site.args
    if way in MAKING and not method:
        if listed is not False or isinstance(operand, (ast.List, ast.Tuple)):
            return _stacked(program, site, operand, code, listed)
        return code.pop(operand, None) or program.segment(operand)
    number = way == "float" and isinstance(site, ast.Call) and isinstance(site.func, ast.Name)
    return code.pop(operand, None) or program.segment(operand) if number or _is_cut(site) else None


def _stacked(
    program: Program, site: ast.expr, of: ast.expr, code: dict[ast.AST, str], listed: bool | None
) -> str | None:
    """``torch.stack([a, b])`` for ``torch.tensor([a, b])``, or for ``torch.tensor([a.item(), b.item()])``."""
    if not isinstance(site, ast.Call) or not isinstance(site.func, ast.Attribute) or len(site.args) != 1:
        return None
    if site.func.attr != "tensor" or any(keyword.arg != "requires_grad" for keyword in site.keywords):
        return None
    text = program.segment(of)
    if isinstance(of, ast.List) and of.elts and all(_is_cut(element) for element in of.elts):
        for element in of.elts:
            code.pop(element, None)
        text = f"[{', '.join(program.segment(_operand(element) or element) for element in of.elts)}]"
    elif not listed:
        return None
    return f"{program.segment(site.func.value)}.stack({text})"


def _is_cut(site: ast.expr) -> bool:
    """Whether an expression is ``x.item()``, ``x.detach()`` or ``x.data``."""
    if isinstance(site, ast.Attribute):
        return site.attr == "data"
    method = isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute) and not site.args
    return method and last_name(site) in ("detach", "item")


def _unasked(program: Program, leaf: Leaf, sites: set[ast.AST]) -> list[Edit] | None:
    """The edit that takes away what asked for a gradient of a number; None if it is not known how."""
    asked = leaf.created
    if asked in sites:
        return []
    if asked is None or line(asked) <= 0:
        return None
    statement = program.statement(asked)
    if isinstance(statement, ast.Assign) and statement.targets == [asked]:
        return [RemoveStatement(Span.of(statement))]
    if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute):
        if isinstance(statement, ast.Expr) and statement.value is asked:
            return [RemoveStatement(Span.of(statement))]
        return [ReplaceExpression(Span.of(asked), program.segment(asked.func.value))]
    return None
