"""What Accelerate, Fabric and Lightning do to networks, optimizers and gradients.

They wrap what they are given: to autograd a prepared network is that network. Their forms of ``backward`` are
read where every backward is. Facts from the documentation of accelerate 1.15 and lightning 2.6.
"""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Argument, Call
from gradfix.autograd.graph import Leaf, Tri
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import call_value
from gradfix.autograd.values import NONE, Function, Mapping, Module, Opaque, Optimizer, Sequence, Value

PREPARING = frozenset(
    """prepare prepare_model prepare_optimizer setup setup_module setup_optimizers unwrap_model""".split()
)
"""Methods of an ``Accelerator`` or a ``Fabric`` that give back what they are given, wrapped."""


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

    known = run.configured.get(module)
    if known is not None:
        return known
    assert module.cls is not None
    configure = module.cls.lookup("configure_optimizers")
    found: list[Value] = []
    if isinstance(configure, Function):
        found = _without_schedulers(call_value(run, configure.bind(module), Call([], {}, node)))
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
