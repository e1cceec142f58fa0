"""Learners of learn2learn and their clones.

A learner gives clones, whose weights are ``torch.clone`` of the network's, so that a loss of theirs leaves
its gradients in the network; adapting one replaces its weights by what ``autograd.grad`` of a loss makes of
them. Facts from the documentation of learn2learn 0.2.
"""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Call, flag
from gradfix.autograd.engine import hand_over
from gradfix.autograd.graph import Edge, Tri, reachable_nodes
from gradfix.autograd.parameters import module_leaves
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import (
    attribute,
    attributes_of,
    call_method,
    call_value,
    called,
    function,
    method,
    other_methods,
)
from gradfix.autograd.semantics.operations import Operand, enter_call, operands_of, record
from gradfix.autograd.values import NONE, Learner, Module, Unknown, Value, tensors_in


@called(Learner)
def _call_learner(run: Run, value: Learner, call: Call) -> Value:
    return call_learner(run, value, call)


@attributes_of(Learner)
def _learner_attribute(run: Run, value: Learner, name: str, node: ast.AST) -> Value:
    if name == "module" or value.cloned:
        return value if value.cloned else value.module
    return attribute(run, value.module, name, node)


def call_learner(run: Run, value: Learner, call: Call) -> Value:
    """A network itself, or a clone, which saves copies of the weights that no optimizer moves."""
    if not value.cloned:
        return call_value(run, value.module, Call(call.args, call.keywords, call.site))
    operands = [o for v, e in call.given for o in operands_of(v, e)]
    entered = enter_call(run, value, value.leaves, call)
    weights = [Operand(leaf, None) for leaf in value.leaves]
    recorded, requires, _ = record(run, "learner", call.site, [operands, weights], None)
    result = Unknown("learner")
    if recorded is not None:
        recorded.raises_when_freed = True if requires else None
        if value.adapted is not None:
            recorded.edges += (Edge(value.adapted, True, None),)
        result.node, result.requires = recorded, requires
    if entered is not None:
        run.current_call = None
    return result


MOVING = frozenset("to cuda cpu float half double train eval".split())
"""Methods of a network that return the network itself."""


@function(
    "learn2learn.algorithms.MAML",
    "learn2learn.algorithms.MetaSGD",
    "learn2learn.algorithms.maml.MAML",
    "learn2learn.algorithms.meta_sgd.MetaSGD",
)
def make_learner(run: Run, call: Call) -> Value:
    """``MAML(model, lr, first_order=False)`` and ``MetaSGD(model, lr=1.0, first_order=False)``."""

    model = call.argument("model", 0)
    if isinstance(model, Module):
        leaves = module_leaves(model)
    elif isinstance(model, Unknown):
        leaves = [model.parameter_block(call.site)]
    else:
        return Unknown("learner")
    return Learner(model, leaves, flag(call.argument("first_order", 2), False))


@method(Learner, "clone")
def _clone(run: Run, learner: Learner, call: Call) -> Value:
    first_order = flag(call.argument("first_order", 0), learner.first_order)
    made = Learner(learner.module, learner.leaves, first_order, cloned=True)
    made.adapted = learner.adapted
    return made


@method(Learner, "adapt")
def _adapt_to_loss(run: Run, learner: Learner, call: Call) -> Value:
    first_order = flag(call.argument("first_order", 1), learner.first_order)
    _adapt(run, learner, call.argument("loss", 0), first_order, call.site)
    return NONE


@method(Learner, *MOVING)
def _clone_itself(run: Run, learner: Learner, call: Call) -> Value | None:
    return learner if learner.cloned else None


@method(Learner, "zero_grad")
def _clear_clone(run: Run, learner: Learner, call: Call) -> Value | None:
    # What a clone calls its parameters are no leaves, and no gradient ends in them.
    return NONE if learner.cloned else None


@method(Learner, "parameters", "named_parameters", "state_dict", "buffers")
def _of_clone(run: Run, learner: Learner, call: Call) -> Value | None:
    return Unknown(call.name) if learner.cloned else None


@other_methods(Learner)
def _other_method(run: Run, learner: Learner, call: Call) -> Value:
    if learner.cloned:
        return call_learner(run, learner, call)
    result = call_method(run, learner.module, call)
    return learner if result is learner.module else result


def _adapt(run: Run, learner: Learner, loss: Value | None, first_order: Tri, node: ast.AST) -> None:
    """Its weights are ``w - lr * autograd.grad(loss, w)`` from now on; gradients stay as they are.

    The graph of the loss is freed, or kept as a part of what the new weights were computed with.
    """
    if run.grad_enabled is False:
        return
    roots = [t.node for t in tensors_in(loss) if t.node is not None] if loss is not None else []
    if first_order is not False:
        for reached in reachable_nodes([(root, True) for root in roots]):
            reached.maybe_freed = True
    hand_over(run, [learner] if loss is None else [learner, loss], node)
    made = run.node("adapt", node)
    made.raises_when_freed = None
    if first_order is not True:
        made.edges = tuple(Edge(root, first_order is False, None) for root in roots)
    if learner.adapted is not None:
        made.edges += (Edge(learner.adapted, True, None),)
    learner.adapted = made
