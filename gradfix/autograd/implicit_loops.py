"""Training loops that a framework runs: a class says how a loss is computed, the rest is the framework's.

Of Lightning's automatic optimization that is ``training_step``: the loss that it returns is differentiated
after gradients were cleared, and the optimizers of ``configure_optimizers`` step (documentation of lightning
2.6, "Optimization"). Of Hugging Face's ``Trainer`` it is ``compute_loss``: what that returns is
differentiated, and the optimizer of all parameters of the model steps (documentation of transformers 5.24,
"Trainer").
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from gradfix.autograd import engine
from gradfix.autograd.arguments import Call, Keywords
from gradfix.autograd.graph import Leaf, OptimizerState
from gradfix.autograd.relevance import FunctionDefinition, is_differentiation
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.frameworks.lightning import made_by_configure_optimizers
from gradfix.autograd.semantics.functions import call_function, passed
from gradfix.autograd.values import (
    NONE,
    Class,
    Function,
    Instance,
    Mapping,
    Module,
    Optimizer,
    Sequence,
    Unknown,
    Value,
)
from gradfix.core.syntax import walk


class ImplicitLoop(NamedTuple):
    """How a framework trains with the loss that a method returns."""

    base: str
    """What the name of the framework's class ends with."""
    method: str
    """The method that returns the loss."""
    manual: frozenset[str] = frozenset()
    """What a class assigns, defines or calls that runs the loop itself."""
    replaced: tuple[str, ...] = ()
    """Methods of the framework's by which a class does a part of the loop in its own way."""
    model: str = ""
    """The argument, the first after ``self``, that is the network; empty: the object is that itself."""
    before: tuple[str, ...] = ()
    """Methods that the framework calls before that for each batch."""
    after: tuple[str, ...] = ()
    """Methods that it calls when it has stepped."""
    backward: str = ""
    """What a class that differentiates by itself calls in place of ``loss.backward()``."""


LOOPS = (
    ImplicitLoop(
        "LightningModule",
        "training_step",
        manual=frozenset({"automatic_optimization", "manual_backward"}),
        replaced=("backward", "optimizer_zero_grad"),
        before=("on_train_batch_start",),
        after=("on_before_zero_grad", "on_train_batch_end"),
        backward="self.manual_backward",
    ),
    ImplicitLoop(
        "Trainer",
        "compute_loss",
        replaced=("training_step",),
        model="model",
        backward="self.accelerator.backward",
    ),
)


class LoopCall(ast.Call):
    """A call that a framework makes with what a method returns; it stands where the method returns that."""

    def __init__(self, method: str, returned: ast.Return) -> None:
        value = returned.value if returned.value is not None else ast.Constant(None)
        super().__init__(ast.Attribute(value, method, ast.Load()), [], [])
        self.returned = returned
        self.lineno, self.col_offset = returned.lineno, returned.col_offset
        self.end_lineno, self.end_col_offset = returned.lineno, returned.col_offset + len("return")


@lru_cache(maxsize=4096)
def _call(method: str, returned: ast.Return) -> LoopCall:
    """The same place for the same call in all runs."""
    return LoopCall(method, returned)


def methods_in(tree: ast.Module, text: str) -> Iterator[FunctionDefinition]:
    """The methods of a file that a framework may train with: none that differentiates something itself."""
    if not any(f"def {loop.method}" in text for loop in LOOPS):
        return
    names = {loop.method for loop in LOOPS}
    for cls in walk(tree):
        if isinstance(cls, ast.ClassDef) and cls.bases:
            for method in cls.body:
                if isinstance(method, FunctionDefinition) and method.name in names:
                    if not any(isinstance(n, ast.Call) and is_differentiation(n.func) for n in walk(method)):
                        yield method


def loop_of(cls: Class, method: FunctionDefinition) -> ImplicitLoop | None:
    """The loop that a framework runs with a method of a class; None if the class runs its own, or none."""
    for loop in LOOPS:
        if loop.method == method.name and any(name.endswith(loop.base) for name in cls.outside()):
            own = any(isinstance(cls.lookup(name), Function) for name in loop.replaced)
            named = not loop.model or [one.arg for one in method.args.args[1:2]] == [loop.model]
            return loop if named and not own and not _mentions(cls, loop.manual) else None
    return None


def own_backward(cls: Class) -> str:
    """What a class of a framework calls to differentiate a loss by itself; empty if it does not do so."""
    for loop in LOOPS:
        if any(name.endswith(loop.base) for name in cls.outside()):
            return "" if loop.manual and not _mentions(cls, loop.manual) else loop.backward
    return ""


def _mentions(cls: Class, names: frozenset[str]) -> bool:
    """Whether a class, or a known base, has one of some names for an attribute, a variable or a method."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, FunctionDefinition) and node.name in names)
        for one in (cls.order() if names else ())
        for node in walk(one.node)
    )


class Training:
    """A framework that trains with what a method of an object returns, batch by batch."""

    def __init__(
        self, run: Run, loop: ImplicitLoop, trained: Module | Instance, method: FunctionDefinition
    ) -> None:
        self.run = run
        self.loop = loop
        self.trained = trained
        self.arguments: Keywords = {}
        """What it hands to the method, as far as that is known."""
        leaves: list[Leaf] = []
        made: Value = NONE
        if loop.model:
            leaves = self._hand_model(trained, method.args.args[1])
        elif isinstance(trained, Module):
            leaves, made = trained.leaves(), made_by_configure_optimizers(run, trained, method)
        found = [made] if isinstance(made, Optimizer) else made.items if isinstance(made, Sequence) else []
        self.optimizers = [one for one in found if isinstance(one, Optimizer)]
        if not self.optimizers:
            # The framework makes it, or it is made out of sight.
            state = OptimizerState("the optimizer", method, ())
            state.leaves, state.groups_known = leaves, bool(leaves)
            self.optimizers.append(Optimizer(state))
            run.optimizers += self.optimizers

    def _hand_model(self, trained: Module | Instance, parameter: ast.arg) -> list[Leaf]:
        """Hand the method the network; its parameters are trainable."""
        model = passed(self.run, parameter)
        if not isinstance(model, Unknown):
            return []
        block = model.parameter_block()
        block.label, block.requires = parameter.arg, True
        self.arguments[parameter.arg] = (model, ast.Name(parameter.arg, ast.Load()))
        trained.attributes.setdefault("model", model)
        return [block]

    def batch(self, method: Function, call: Call) -> None:
        """Call the method with a batch, and train with what it returns."""
        self._call(self.loop.before, call)
        result = call_function(self.run, method.bind(self.trained), call)
        self._take(result, self.run.returned_last)
        self._call(self.loop.after, call)

    def _call(self, hooks: Iterable[str], call: Call) -> None:
        """Call those methods that the class defines."""
        for name in hooks:
            hook = self.trained.cls.lookup(name) if self.trained.cls is not None else None
            if isinstance(hook, Function):
                call_function(self.run, hook.bind(self.trained), Call([], {}, call.site))

    def _take(self, result: Value, returned: ast.Return | None) -> None:
        """Clear the gradients, differentiate what the method has returned for a batch, and step."""
        if returned is None or returned.value is None or result is NONE:
            return  # The batch is left out.
        loss, written = _loss(result, returned)
        for optimizer in self.optimizers:
            engine.zero_grad(self.run, optimizer, optimizer.state.owned(), _call("zero_grad", returned))
        engine.backward(self.run, [(loss, written)], Call([], {}, _call("backward", returned)))
        for optimizer in self.optimizers:
            engine.step(self.run, optimizer, _call("step", returned))


def _loss(result: Value, returned: ast.Return) -> tuple[Value, ast.expr]:
    """What is differentiated of what a method has returned, and how it is written."""
    written = returned.value
    assert written is not None
    while isinstance(written, ast.IfExp):
        written = written.orelse  # ``(loss, outputs) if return_outputs else loss``
    if isinstance(result, Mapping):
        result = result.items.get("loss", Unknown("loss"))
        if isinstance(written, ast.Dict):
            keys = [getattr(key, "value", None) for key in written.keys]
            written = written.values[keys.index("loss")] if "loss" in keys else written
    elif isinstance(result, Sequence) and result.items:
        result = result.items[0]
        written = written.elts[0] if isinstance(written, ast.Tuple) else written
    return result, written
