"""Methods of instances and classes of the project, and of what they inherit."""

from __future__ import annotations

from gradfix.autograd.arguments import Call
from gradfix.autograd.engine import hand_over, havoc, prepares
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.attributes import method_held
from gradfix.autograd.semantics.dispatch import call_method, call_value, inherent_method, other_methods
from gradfix.autograd.semantics.functions import inherit
from gradfix.autograd.semantics.layers import begin_layer, plain_forward
from gradfix.autograd.semantics.libraries import HARMLESS, NETWORKS
from gradfix.autograd.semantics.names import CONTEXT, FUNCTION, MODULE_METHODS
from gradfix.autograd.semantics.processes import PROCESSES, start
from gradfix.autograd.semantics.unknown import LOGGING, call_unknown, is_logging, note_method
from gradfix.autograd.symbols import Symbols
from gradfix.autograd.values import (
    NONE,
    Class,
    Function,
    Instance,
    Module,
    StaticOrClassMethod,
    Super,
    Unknown,
    Value,
)


@other_methods(Instance)
def _instance_method(
    run: Run,
    base: Instance,
    call: Call,
) -> Value:
    held = method_held(run, base, call.name, call.site)
    if held is not None:
        return call_value(run, held, call)
    if call.name in CONTEXT and FUNCTION in base.cls.outside():
        return NONE
    if call.name == "start" and not PROCESSES.isdisjoint(base.cls.outside()):
        body = base.cls.lookup("run")
        if isinstance(body, Function):
            start(run, body.bind(base), call.site)
        return NONE
    if base.inherited is not None:
        return call_method(run, base.inherited, call)
    if is_logging(call):
        return Unknown(call.name)  # a logger that hands on what it is asked for, by ``__getattr__``
    if call.discarded and call.name not in LOGGING and base.cls.unknown_bases():
        # A method inherited from a class that is not seen can reach all of the object.
        havoc(run, [base], call.site, preparing=prepares(run, call.name))
    inherited = _inherited(base, call.name)
    if run.symbols is not None and not inherited.harmless:
        return _of_symbol(run, run.symbols, base, inherited, call)
    if not inherited.harmless:
        hand_over(run, [base], call.site)
    return call_unknown(run, inherited, call)


def _of_symbol(run: Run, symbols: Symbols, base: Instance, held: Unknown, call: Call) -> Value:
    """A method that no class in sight has: it may be a network that a class out of sight has set."""
    value = symbols.introduce(held, (base.cls.node, call.name), f"self.{call.name}", call.site)
    base.attributes[call.name] = value
    if not isinstance(value, Unknown) or value.leaf is not None:
        return call_value(run, value, call)
    hand_over(run, [base], call.site)
    result = call_unknown(run, value, call)
    note_method(run, symbols, value, call, result)
    return result


@other_methods(Class)
def _class_method(
    run: Run,
    base: Class,
    call: Call,
) -> Value:
    found = base.lookup(call.name)
    if isinstance(found, Function):
        return call_value(run, found, Call(call.args, call.keywords, call.site))
    if isinstance(found, StaticOrClassMethod):
        target = found.function.bind(base) if found.of_class else found.function
        return call_value(run, target, Call(call.args, call.keywords, call.site))
    return call_unknown(run, Unknown(call.name), call)


def _inherited(instance: Instance, name: str) -> Unknown:
    """A method from a class outside of the project; one of an environment or the like has no weights."""
    value = Unknown(name)
    roots = {base.split(".", 1)[0] for base in instance.cls.outside()}
    value.harmless = bool(roots) and roots <= HARMLESS - NETWORKS
    instance.attributes[name] = value
    return value


@other_methods(Super)
def _super_method(
    run: Run,
    base: Super,
    call: Call,
) -> Value:
    of = base.of
    cls = of.cls if isinstance(of, (Module, Instance)) else None
    if cls is not None:
        found = cls.lookup(call.name, base.after or cls)
        if found is None and call.name == "__call__" and isinstance(of, Module):
            found = cls.lookup("forward")
        if isinstance(found, Function):
            return call_value(run, found.bind(of), Call(call.args, call.keywords, call.site))
    if isinstance(of, Instance):
        if call.name == "__init__":
            inherit(run, of, call)
        elif of.inherited is not None:
            return call_method(run, of.inherited, Call(call.args, call.keywords, call.site, False, call.name))
    if isinstance(of, Module) and call.name in ("forward", "__call__"):
        plain = plain_forward(run, of, Call(call.args, call.keywords, call.site))
        if plain is not None:
            return plain
    if call.name == "__init__":
        if isinstance(of, Module):
            begin_layer(of, call)
        if isinstance(of, Module) and call.args and cls is not None:
            # nn.Sequential.__init__(*layers) by a subclass.
            of.items += [v for v, _ in call.args if isinstance(v, Module)]
        return NONE
    if isinstance(of, Module) and call.name in MODULE_METHODS:
        return inherent_method(run, of, Call(call.args, call.keywords, call.site, False, call.name))
    return call_unknown(run, Unknown(call.name), Call(call.args, call.keywords, call.site, True))
