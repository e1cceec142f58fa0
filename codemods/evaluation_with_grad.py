"""Validation, sampling or a rollout builds graphs that no backward uses.
`eval()` switches dropout and batch normalization, and does not disable autograd: each forward keeps its
activations in memory for a backward that never comes.

    def evaluate(model, loader):              @torch.no_grad()
        model.eval()                          def evaluate(model, loader):
        for x, y in loader:            =>         model.eval()
            ...                                   for x, y in loader:
                                                      ...

That takes several times the memory, and time; what is added up or collected on the way keeps the graphs of
all batches.

When not to fix it: where the caller computes gradients of the result (saliency maps, adversarial examples).

Preconditions:

* a whole function, a loop, or a branch (`if step % 100 == 0:`) runs a network with parameters that require
  grad, with grad enabled, and neither calls backward, steps or clears anything nor looks at gradients or at
  what requires grad. A single forward within a training step is too little to speak of;
* what a branch computes is read in it alone;
* the network runs more than once there: in a loop, in a function that a loop calls, or in eval mode;
* whichever way undecided conditions go, no backward reaches what is computed there, and nobody who is not
  seen gets hold of it: no unknown function is handed it, and no caller outside the file has it. Nor does
  code that is not seen get hold of the network or its parameters there: it may differentiate what it
  computes (a learner that adapts itself, an optimizer that is unrolled), and `no_grad` around that raises;
* nothing around it may switch grad off unseen: no decorator or context of which that is not known, and
  `torch` itself is imported by name at the top of the file.

By hand: decorate what only evaluates with `@torch.no_grad()`, or put it into `with torch.no_grad():`.

Effect: preserves. The gradients are the same, bit for bit.

What is named for a loss, or stands where losses do, is no evaluation: who calls it may have left out the
term for the moment. Of that it is said that no backward uses its graph (info), and nothing is rewritten.

Severity: warning. The graph of a batch stays in memory until its variables go. How much that is cannot be
told from the code: it is no tenth of a step for one state of a small policy, and as much as a step for
validation in batches of the same size, which is what mostly runs out of memory.
Clause: what is meant for nobody costs nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial

from gradfix.autograd.cuts import cut_off
from gradfix.autograd.graph import reachable_nodes
from gradfix.autograd.program import Program
from gradfix.autograd.relevance import Relevance
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.functions import is_abstract
from gradfix.autograd.trace_queries import walked_by_any
from gradfix.core.codemod import Decorate, Edit, Effect, Enclose, Finding, Fix, Severity
from gradfix.core.span import Span
from gradfix.core.syntax import LOOPS, walk
from gradfix.rules.edits import note, torch_name

Phase = ast.FunctionDef | ast.For | ast.While | ast.If

Chain = tuple[ast.AST, ...]
"""Where a network is called, and the calls that lead there, innermost first."""

SHOWN = 3
"""So many calls of networks are named."""
PARTS = frozenset({"forward", "__call__", "__init__"})
"""Functions that are parts of a network, whoever calls it."""
BINDING = frozenset({"staticmethod", "classmethod", "property"})
"""Decorators of which it is known that they leave the mode alone."""
LOSSES = frozenset(
    "loss losses criterion criterions objective objectives penalty penalties regularizer regulariser "
    "regularization regularisation".split()
)
"""Words by which names say that something computes a loss, or a term of one"""
EVALUATING = re.compile(r"eval|valid|val$|test|estimat")
"""... unless another word says that it evaluates."""
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
SWITCHING = ("grad", "infer", "eval", "frozen", "freeze")
"""Parts of names of contexts that may switch grad off."""
LOOKS = frozenset({"grad", "grad_fn", "requires_grad", "requires_grad_", "enable_grad", "set_grad_enabled"})
"""Names by which code asks for gradients."""


@dataclass(eq=False)
class Wasted:
    """A phase in which networks compute graphs that nothing walks."""

    phase: Phase
    relevance: Relevance
    chains: dict[Chain, None] = field(default_factory=dict)
    """The calls of networks in it."""


@dataclass
class Survey:
    """What one run shows of such phases."""

    wasted: dict[Hashable, Wasted] = field(default_factory=dict)
    needed: set[ast.AST] = field(default_factory=set)
    """Phases of which a graph is walked, or is in the hands of somebody who is not seen."""


def find(program: Program) -> Iterator[Finding]:
    """Report each function or loop that does nothing but evaluate, with graphs."""
    if "volatile" in program.text or "torch" not in program.text:
        return  # ``volatile`` is how it was said until torch 0.4.
    reported: set[ast.AST] = set()
    survey = cache(partial(_survey, program))
    for entry in program.entry_points:
        if not any(_outermost(program, [*survey(run).wasted.values()]) for run in entry.runs):
            continue  # Nothing would be told, and no further run has to be made.
        found = entry.certain_observations(
            lambda run: survey(run).wasted,
            lambda wasted: wasted.phase,
            raises=False,
            against=lambda run: survey(run).needed,
            merge=lambda one, other: one.chains.update(other.chains),
        )
        for phase, calls in _outermost(program, list(found)).items():
            torch = torch_name(program, phase)
            if phase not in reported and torch is not None:
                reported.add(phase)
                yield _finding(phase, calls, torch, _computes_loss(program, phase))


def _outermost(program: Program, found: list[Wasted]) -> dict[Phase, list[ast.AST]]:
    """The phases that are told, with the calls in each: of several around a call, the outermost function."""
    sure = {wasted.phase for wasted in found}
    chosen: dict[Phase, dict[ast.AST, None]] = {}
    for wasted in found:
        for chain in wasted.chains:
            around = [phase for phase in _phases(program, wasted.relevance, chain) if phase in sure]
            functions = [phase for phase in around if isinstance(phase, ast.FunctionDef)]
            reported = (functions or around)[-1]
            if _again(program, reported, chain):
                chosen.setdefault(reported, {})[_within(program, reported, chain)] = None
    # What stands in another phase goes with it.
    return {
        reported: list(calls)
        for reported, calls in chosen.items()
        if chosen.keys().isdisjoint(program.ancestors(reported))
    }


def _finding(phase: Phase, calls: list[ast.AST], torch: str, loss: bool) -> Finding:
    what = f"`{phase.name}`" if isinstance(phase, ast.FunctionDef) else "this loop"
    if isinstance(phase, ast.If):
        what = "this branch"
    notes = [note(call, "this builds a graph, and no backward uses it") for call in calls[:SHOWN]]
    if loss:
        return Finding(
            "evaluation-with-grad",
            f"{what} looks like a loss, and no backward uses what it computes",
            _head(phase),
            tuple(notes),
            advice="add it to the loss it belongs to, or run it under `no_grad` if it is only logged",
            severity=Severity.INFO,
        )
    return Finding(
        "evaluation-with-grad",
        f"{what} only evaluates, but with gradients enabled: each forward keeps its activations in memory "
        "for a backward that never comes",
        _head(phase),
        tuple(notes),
        (_fix(phase, torch),),
    )


def _computes_loss(program: Program, phase: Phase) -> bool:
    """Whether names say that a function or loop computes a loss, and none that it evaluates.

    Its own name counts, and those of the functions, the class and the module that it stands in.
    """
    if _evaluates(phase):
        return False
    around = [phase, *program.ancestors(phase)]
    names = [getattr(outer, "name", "") for outer in around]
    names += [name for name in (program.path.stem, program.path.parent.name) if name.lower() in LOSSES]
    words = {word.lower() for name in names for word in WORD.findall(name)}
    return not words.isdisjoint(LOSSES) and not any(map(EVALUATING.match, words))


def _head(phase: Phase) -> Span:
    """Where a phase is named, on one line if it can be."""
    if isinstance(phase, ast.FunctionDef):
        return Span(phase.lineno, phase.col_offset, phase.lineno, phase.col_offset + len(f"def {phase.name}"))
    return Span.of(phase.iter if isinstance(phase, ast.For) else phase.test)


def _fix(phase: Phase, torch: str) -> Fix:
    code = f"{torch}.no_grad()"
    if isinstance(phase, ast.FunctionDef):
        edits: tuple[Edit, ...] = (Decorate(Span.of(phase), code),)
        return Fix(f"decorate it with {code}", Effect.PRESERVES, edits, only_cuts=True)
    return Fix(f"run it under {code}", Effect.PRESERVES, (Enclose(Span.of(phase), code),), only_cuts=True)


# ---------------------------------------------------------------------------- what a run shows


def _survey(program: Program, run: Run) -> Survey:
    found = Survey()
    walked = walked_by_any(run)
    returned = reachable_nodes([(node, True) for node in run.returned]).keys()
    handed = reachable_nodes([(node, True) for handover in run.handovers for node in handover.graphs]).keys()
    taken = run.escaped_since(-1) | returned | handed | walked | cut_off(run)
    for chain in {handover.chain: None for handover in run.handovers if handover.network}:
        found.needed.update(_phases(program, run.relevance, chain))
    candidates: dict[Chain, list[Phase]] = {}
    for node in run.nodes:
        site = node.call.site if node.call is not None else node.site
        chain = (site, *(call for call, _ in reversed(node.stack)))
        phases = candidates.get(chain)
        if phases is None:
            phases = candidates[chain] = list(_phases(program, run.relevance, chain))
        if node in taken:
            found.needed.update(phases)
        elif phases and node.call is not None and any(sure for _, sure, _ in node.leaves):
            for phase in phases:
                found.wasted.setdefault(phase, Wasted(phase, run.relevance)).chains[chain] = None
    for place in found.needed:
        found.wasted.pop(place, None)
    if not walked or run.raised:
        found.wasted.clear()  # What it has not come to might walk what was computed.
    return found


def _phases(program: Program, relevance: Relevance, chain: Chain) -> Iterator[Phase]:
    """The functions and loops around a place that neither train nor look at gradients, from within."""
    around = [program.ancestors(place) for place in chain if getattr(place, "lineno", 0) > 0]
    if any(_may_switch(relevance, outer) for every in around for outer in every):
        return
    found: list[Phase] = []
    for every in around:
        for outer in every:
            if not isinstance(outer, Phase):
                continue
            if relevance.touches(outer) or _looks(outer) or _calls_abstract(program, outer):
                yield from found
                return
            if isinstance(outer, ast.If) and _hands_on(program, outer):
                continue
            if getattr(outer, "name", "") not in PARTS:
                found.append(outer)
            elif _network(program, outer):
                found.clear()  # What a part of a network runs is a part of it as well.
    yield from found


def _calls_abstract(program: Program, phase: Phase) -> bool:
    """Whether a method is called that subclasses define: one of them may differentiate in it."""
    owner = next((outer for outer in program.ancestors(phase) if isinstance(outer, ast.ClassDef)), None)
    defined = owner.body if owner is not None else ()
    abstract = {one.name for one in defined if isinstance(one, ast.FunctionDef) and is_abstract(one)}
    return bool(abstract) and any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in abstract
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id == "self"
        for part in walk(phase)
    )


def _hands_on(program: Program, branch: ast.If) -> bool:
    """Whether a branch computes something that is read outside of it: what for is not known."""
    inside = set(ast.walk(branch))
    names = {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    around = next((o for o in program.ancestors(branch) if isinstance(o, ast.FunctionDef)), program.tree)
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        for node in walk(around)
        if node not in inside
    )


def _network(program: Program, method: ast.AST) -> bool:
    """Whether the class of a method is that of a network: whether it has a forward."""
    owner = next((outer for outer in program.ancestors(method) if isinstance(outer, ast.ClassDef)), None)
    return owner is not None and any(getattr(part, "name", "") == "forward" for part in owner.body)


@lru_cache(maxsize=4096)
def _looks(phase: ast.AST) -> bool:
    """Whether code asks for gradients or about them, or hands over values one by one."""
    return any(
        (isinstance(part, ast.Attribute) and part.attr in LOOKS)
        or (isinstance(part, ast.keyword) and part.arg in LOOKS)
        or isinstance(part, (ast.Yield, ast.YieldFrom))
        for part in walk(phase)
    )


def _may_switch(relevance: Relevance, outer: ast.AST) -> bool:
    """Whether something around a call may switch grad off: a decorator, or a context by its name."""
    if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
        known = all(ast.unparse(decorator) in BINDING for decorator in outer.decorator_list)
        return not (known or relevance.touches(outer))
    if not isinstance(outer, (ast.With, ast.AsyncWith)):
        return False
    contexts = [item.context_expr for item in outer.items]
    return any(
        not isinstance(context, ast.Call)
        or any(word in ast.unparse(context.func).lower() for word in SWITCHING)
        for context in contexts
    )


def _within(program: Program, phase: Phase, chain: Chain) -> ast.AST:
    """The outermost place of a chain of calls that stands within a phase."""
    return [p for p in chain if getattr(p, "lineno", 0) > 0 and phase in program.ancestors(p)][-1]


def _again(program: Program, phase: Phase, chain: Chain) -> bool:
    """Whether a loop runs the network again and again, or the phase puts something into evaluation mode."""
    return _evaluates(phase) or any(
        isinstance(outer, LOOPS)
        for place in chain
        if getattr(place, "lineno", 0) > 0
        for outer in program.ancestors(place)
    )


@lru_cache(maxsize=4096)
def _evaluates(phase: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "eval"
        for part in walk(phase)
    )
