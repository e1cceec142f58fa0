"""Methods of instances and classes of the project, and of what they inherit."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.autograd.arguments import Argument, Keywords
from gradfix.autograd.engine import poison
from gradfix.autograd.semantics.attributes import method_held
from gradfix.autograd.semantics.dispatch import call, call_method, methods_of
from gradfix.autograd.semantics.functions import inherit
from gradfix.autograd.semantics.layers import module_method
from gradfix.autograd.semantics.libraries import HARMLESS, NETWORKS
from gradfix.autograd.semantics.names import CONTEXT, FUNCTION, MODULE_METHODS
from gradfix.autograd.semantics.processes import PROCESSES, start
from gradfix.autograd.semantics.unknown import LOGGING, _told, call_opaque
from gradfix.autograd.values import NONE, Class, Function, Instance, Module, Opaque, Static, Super, Value

if TYPE_CHECKING:
    from gradfix.autograd.interpreter import Run


@methods_of(Instance)
def _instance_method(
    run: Run,
    base: Instance,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    held = method_held(run, base, name, node)
    if held is not None:
        return call(run, held, args, keywords, node, discarded)
    if name in CONTEXT and FUNCTION in base.cls.outside():
        return NONE
    if name == "start" and not PROCESSES.isdisjoint(base.cls.outside()):
        body = base.cls.lookup("run")
        if isinstance(body, Function):
            start(run, body.bind(base), node)
        return NONE
    if base.inherited is not None:
        return call_method(run, base.inherited, name, args, keywords, node, discarded)
    if _told(name, args, keywords, discarded):
        return Opaque(name)  # a logger that hands on what it is asked for, by ``__getattr__``
    if discarded and name not in LOGGING and base.cls.unknown_bases():
        # What is inherited from somewhere that cannot be seen has all of the object in hand.
        poison(run, [base], node)
    return call_opaque(run, _inherited(base, name), args, keywords, node, discarded)


@methods_of(Class)
def _class_method(
    run: Run,
    base: Class,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool,
) -> Value:
    found = base.lookup(name)
    if isinstance(found, Function):
        return call(run, found, args, keywords, node)
    if isinstance(found, Static):
        target = found.function.bind(base) if found.of_class else found.function
        return call(run, target, args, keywords, node)
    return call_opaque(run, Opaque(name), args, keywords, node, discarded)


def _inherited(instance: Instance, name: str) -> Opaque:
    """A method from a class outside of the project; one of an environment or the like has no weights."""
    value = Opaque(name)
    roots = {base.split(".", 1)[0] for base in instance.cls.outside()}
    value.harmless = bool(roots) and roots <= HARMLESS - NETWORKS
    instance.attributes[name] = value
    return value


@methods_of(Super)
def _super_method(
    run: Run,
    base: Super,
    name: str,
    args: list[Argument],
    keywords: Keywords,
    node: ast.AST,
    discarded: bool = False,
) -> Value:
    of = base.of
    cls = of.cls if isinstance(of, (Module, Instance)) else None
    if cls is not None:
        found = cls.lookup(name, base.after or cls)
        if found is None and name == "__call__" and isinstance(of, Module):
            found = cls.lookup("forward")
        if isinstance(found, Function):
            return call(run, found.bind(of), args, keywords, node)
    if isinstance(of, Instance):
        if name == "__init__":
            inherit(run, of, args, keywords, node)
        elif of.inherited is not None:
            return call_method(run, of.inherited, name, args, keywords, node, False)
    if name == "__init__":
        if isinstance(of, Module) and args and cls is not None:
            # nn.Sequential.__init__(*layers) by a subclass.
            of.items += [v for v, _ in args if isinstance(v, Module)]
        return NONE
    if isinstance(of, Module) and name in MODULE_METHODS:
        return module_method(run, of, name, args, keywords, node, False)
    return call_opaque(run, Opaque(name), args, keywords, node, True)
