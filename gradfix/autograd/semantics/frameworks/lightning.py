"""What a ``LightningModule`` does to optimizers, and its ``backward`` (documentation of lightning 2.6)."""

from __future__ import annotations

import ast

from gradfix.autograd.arguments import Call
from gradfix.autograd.engine import backward
from gradfix.autograd.graph import Leaf, Tri
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import call_value, method
from gradfix.autograd.values import NONE, Function, Mapping, Module, Optimizer, Sequence, Unknown, Value

TELLING = frozenset("log log_dict print lr_schedulers clip_gradients".split())
"""Methods of a ``LightningModule`` after which networks and graphs are as before."""


Toggled = dict[Module, dict[Leaf, Tri]]
"""What each module's toggled parameters required before."""


def _is_of_lightning(module: Module) -> bool:
    """Whether a network may have the methods of ``LightningModule``."""
    return module.cls is not None and module.cls.unknown_bases()


@method(Module, *TELLING)
def _tell(run: Run, module: Module, call: Call) -> Value | None:
    return Unknown(call.name) if _is_of_lightning(module) else None


@method(Module, "manual_backward")
def _manual_backward(run: Run, module: Module, call: Call) -> Value | None:
    if not call.args:
        return None
    event = backward(run, [call.args[0]], Call([], call.keywords, call.site))
    event.through = module
    return NONE


@method(Module, "optimizers")
def _optimizers_method(run: Run, module: Module, call: Call) -> Value | None:
    return made_by_configure_optimizers(run, module, call.site) if _is_of_lightning(module) else None


@method(Module, "toggle_optimizer")
def _toggle_optimizer(run: Run, module: Module, call: Call) -> Value | None:
    optimizer = call.args[0][0] if call.args else None
    if not _is_of_lightning(module) or not isinstance(optimizer, Optimizer):
        return None
    _toggle(run, module, optimizer)
    return NONE


@method(Module, "untoggle_optimizer")
def _untoggle_optimizer(run: Run, module: Module, call: Call) -> Value | None:
    if not _is_of_lightning(module):
        return None
    for leaf, required in run.toggled.pop(module, {}).items():
        leaf.requires = required
    return NONE


def made_by_configure_optimizers(run: Run, module: Module, node: ast.AST) -> Value:
    """``self.optimizers()``: what ``configure_optimizers()`` made, once, without its schedulers."""
    known = run.configured.get(module)
    if known is not None:
        return known
    assert module.cls is not None
    configure = module.cls.lookup("configure_optimizers")
    found: list[Value] = []
    if isinstance(configure, Function):
        found = _without_schedulers(call_value(run, configure.bind(module), Call([], {}, node)))
    made = found[0] if len(found) == 1 else Sequence("list", found) if found else Unknown("optimizers")
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
