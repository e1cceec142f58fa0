"""What Accelerate, Fabric, Lightning and learn2learn do to networks, optimizers and gradients.

The first three wrap what they are given: to autograd a prepared network is that network. Their forms of
``backward`` are read where every backward is. A learner of learn2learn gives clones, whose weights are
``torch.clone`` of the network's, so that a loss of theirs leaves its gradients in the network; adapting one
replaces its weights by what ``autograd.grad`` of a loss makes of them. Facts from the documentation of
accelerate 1.15, lightning 2.6 and learn2learn 0.2.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.autograd.engine import flag, option
from gradfix.autograd.graph import Edge, Leaf, Tri, reach
from gradfix.autograd.values import (
    NONE,
    Function,
    Learner,
    Mapping,
    Module,
    Opaque,
    Optimizer,
    Sequence,
    Value,
    tensors_in,
)

if TYPE_CHECKING:
    from gradfix.autograd.calls import Argument, Keywords
    from gradfix.autograd.interpreter import Run

PREPARING = frozenset(
    """prepare prepare_model prepare_optimizer setup setup_module setup_optimizers unwrap_model""".split()
)
"""Methods of an ``Accelerator`` or a ``Fabric`` that give back what they are given, wrapped."""

MOVING = frozenset("to cuda cpu float half double train eval".split())
"""Methods of a network that give it back."""

TELLING = frozenset("log log_dict print lr_schedulers clip_gradients".split())
"""Methods of a ``LightningModule`` after which networks and graphs are as before."""

Toggled = dict[Module, dict[Leaf, Tri]]
"""What each module's toggled parameters required before."""


def prepared(args: list[Argument]) -> Value | None:
    """What preparing these gives; None where no network or optimizer is among them."""
    values = [value for value, _ in args]
    if not any(isinstance(value, (Module, Optimizer)) for value in values):
        return None
    return values[0] if len(values) == 1 else Sequence("tuple", values)


def lightning(run: Run, module: Module, name: str, args: list[Argument], node: ast.AST) -> Value | None:
    """A method that a network has of ``LightningModule``; None if it is none of its."""
    if module.cls is None or not module.cls.unknown_bases():
        return None
    if name in TELLING:
        return Opaque(name)
    if name == "optimizers":
        return _optimizers(run, module, node)
    if name == "toggle_optimizer" and args and isinstance(args[0][0], Optimizer):
        _toggle(run, module, args[0][0])
        return NONE
    if name == "untoggle_optimizer":
        for leaf, required in run.toggled.pop(module, {}).items():
            leaf.requires = required
        return NONE
    return None


def _optimizers(run: Run, module: Module, node: ast.AST) -> Value:
    """``self.optimizers()``: what ``configure_optimizers()`` made, once, without its schedulers."""
    from gradfix.autograd.calls import call_function

    known = run.configured.get(module)
    if known is not None:
        return known
    assert module.cls is not None
    configure = module.cls.lookup("configure_optimizers")
    found: list[Value] = []
    if isinstance(configure, Function):
        found = _without_schedulers(call_function(run, configure.bind(module), [], {}, node))
    made = found[0] if len(found) == 1 else Sequence("list", found) if found else Opaque("optimizers")
    run.configured[module] = made
    return made


def _without_schedulers(value: Value) -> list[Value]:
    """The optimizers in any of the forms that ``configure_optimizers`` may return; none if one is unknown."""
    if isinstance(value, Optimizer):
        return [value]
    if isinstance(value, Mapping):
        return _without_schedulers(value.items.get("optimizer", NONE))
    if not isinstance(value, Sequence) or value.open:
        return []
    if value.items and all(isinstance(item, Sequence) for item in value.items):
        return _without_schedulers(value.items[0])  # two lists, the second of schedulers
    parts = [_without_schedulers(item) for item in value.items]
    return [optimizer for part in parts for optimizer in part] if all(parts) else []


def _toggle(run: Run, module: Module, optimizer: Optimizer) -> None:
    """Only the parameters of one optimizer require gradients, of all those that any optimizer owns."""
    mine = set(optimizer.state.owned())
    others = {leaf for other in run.optimizers for leaf in other.state.owned()} - mine
    before = run.toggled.setdefault(module, {})
    for leaf in others:
        before.setdefault(leaf, leaf.requires)
        leaf.requires = False


def make_learner(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """``MAML(model, lr, first_order=False)`` and ``MetaSGD(model, lr=1.0, first_order=False)``."""
    from gradfix.autograd.calls import module_leaves

    model = option(args, keywords, "model", 0)
    if isinstance(model, Module):
        leaves = module_leaves(model)
    elif isinstance(model, Opaque):
        leaves = [model.block(node)]
    else:
        return Opaque("learner")
    return Learner(model, leaves, flag(option(args, keywords, "first_order", 2), False))


def learner_method(
    run: Run, learner: Learner, name: str, args: list[Argument], keywords: Keywords, node: ast.AST
) -> Value | None:
    """A method that learners have of their own, or any of a clone; None for what the network itself does."""
    from gradfix.autograd.calls import call_learner

    if name == "clone":
        first_order = flag(option(args, keywords, "first_order", 0), learner.first_order)
        made = Learner(learner.module, learner.leaves, first_order, cloned=True)
        made.adapted = learner.adapted
        return made
    if name == "adapt":
        first_order = flag(option(args, keywords, "first_order", 1), learner.first_order)
        _adapt(run, learner, option(args, keywords, "loss", 0), first_order, node)
        return NONE
    if not learner.cloned:
        return None
    if name in MOVING:
        return learner
    if name == "zero_grad":
        return NONE  # What a clone calls its parameters are no leaves, and no gradient ends in them.
    if name in ("parameters", "named_parameters", "state_dict", "buffers"):
        return Opaque(name)
    return call_learner(run, learner, args, keywords, node)


def _adapt(run: Run, learner: Learner, loss: Value | None, first_order: Tri, node: ast.AST) -> None:
    """Its weights are ``w - lr * autograd.grad(loss, w)`` from now on; gradients stay as they are.

    The graph of the loss is freed, or kept as a part of what the new weights were computed with.
    """
    if run.grad_enabled is False:
        return
    roots = [t.node for t in tensors_in(loss) if t.node is not None] if loss is not None else []
    if first_order is not False:
        for reached in reach([(root, True) for root in roots]):
            reached.maybe_freed = True
    made = run.node("adapt", node)
    made.saves = None
    if first_order is not True:
        made.edges = tuple(Edge(root, first_order is False, None) for root in roots)
    if learner.adapted is not None:
        made.edges += (Edge(learner.adapted, True, None),)
    learner.adapted = made
