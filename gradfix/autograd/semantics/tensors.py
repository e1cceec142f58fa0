"""Methods and attributes of tensors, and of every parameter of a set at once."""

from __future__ import annotations

import ast

from gradfix.autograd import operators
from gradfix.autograd.arguments import Call
from gradfix.autograd.engine import backward, change_gradients, zero_grad
from gradfix.autograd.parameters import set_requires
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.attributes import TENSOR_DATA
from gradfix.autograd.semantics.dispatch import attributes_of, methods_of
from gradfix.autograd.semantics.operations import apply, each_changed, operands_of, overload, unknown
from gradfix.autograd.values import NONE, TRUE, Const, Each, Function, Method, Opaque, Sequence, Tensor, Value


@attributes_of(Tensor)
def _tensor_attribute(run: Run, value: Tensor, name: str, node: ast.AST) -> Value:
    if name in ("grad", "_grad"):
        run.grad_reads.append((run.tick(), value.leaf))
        return Each([value.leaf], "grad", True) if value.leaf is not None else Opaque("grad")
    if name == "data":
        # Writes through .data do not move the version counter: memory of its own to the model.
        return Each([value.leaf], "data") if value.leaf is not None else Tensor()
    if name == "requires_grad":
        return Opaque("requires_grad") if value.requires is None else Const(value.requires)
    if name in TENSOR_DATA:
        return Opaque(name)
    table = operators.attribute(name)
    if table is not None and isinstance(node, ast.Attribute):
        # What has the attribute is no argument: it has a name alone.
        return apply(run, table, [], {table.operands[0]: (value, node.value)}, node)
    return Method(value, name)


@attributes_of(Each)
def _each_attribute(run: Run, value: Each, name: str, node: ast.AST) -> Value:
    if name in ("grad", "_grad", "data"):
        if name != "data":
            run.grad_reads += [(run.tick(), leaf) for leaf in value.leaves]
        itself = name != "data" and value.view == ""
        return Each(value.leaves, "grad" if name != "data" or value.view == "grad" else "data", itself)
    if name == "requires_grad":
        flags = {leaf.requires for leaf in value.leaves}
        flag = flags.pop() if len(flags) == 1 else None
        return Opaque(name) if flag is None else Const(flag)
    if name in TENSOR_DATA:
        return Opaque(name)
    return Method(value, name)


SAME = frozenset(
    """to cuda cpu float double half bfloat16 type contiguous type_as pin_memory share_memory
    train eval apply share_memory_ compile to_empty""".split()
)
"""Methods whose result is, to autograd, the value itself."""


PLAIN = frozenset(
    """item tolist numpy size dim numel nelement element_size stride data_ptr is_contiguous get_device
    is_floating_point __len__ new_zeros new_ones new_empty new_tensor new_full new argmax argmin
    argsort""".split()
)
"""Methods of a tensor whose result carries no graph."""


@methods_of(Tensor)
def _tensor_method(
    run: Run,
    base: Tensor,
    call: Call,
) -> Value:
    receiver = call.receiver
    if call.name == "backward":
        backward(run, [(base, receiver)], Call(call.args[0:], call.keywords, call.site))
        return NONE
    if call.name in ("double", "half", "bfloat16"):
        return _converted(run, base, call)
    if call.name in SAME:
        return base
    if call.name in PLAIN:
        return Opaque(call.name)
    if call.name == "requires_grad_":
        set_requires(
            run, base, [base.leaf] if base.leaf else [], call.args[0][0] if call.args else TRUE, call.site
        )
        return base
    if call.name == "detach_":
        base.node, base.leaf, base.requires = None, None, False
        return base
    if call.name in ("register_hook", "retain_grad"):
        if call.name == "register_hook" and base.node is not None:
            hook = call.args[0][0] if call.args else NONE
            if not isinstance(hook, Function) or run.relevance.differentiates(hook.node):
                base.node.maybe_freed = True
            run.hooked.add(base.node)
        return NONE
    if call.name == "unbind" or call.name == "split" or call.name == "chunk":
        table = operators.method(call.name)
        if table is not None:
            count = call.args[0][0] if call.args else NONE
            result = apply(run, table, [(base, receiver), *call.args], call.keywords, call.site)
            if (
                call.name == "chunk"
                and isinstance(count, Const)
                and isinstance(result, Sequence)
                and result.items
            ):
                number = count.value if isinstance(count.value, int) else 0
                if 0 < number <= 16:
                    return Sequence("tuple", result.items * number)
            return result
    table = overload(call.name, call.args, call.keywords)
    if table is not None:
        return apply(run, table, [(base, receiver), *call.args], call.keywords, call.site)
    return unknown(run, [(base, receiver), *call.args], call.keywords, call.site, call.name)


def _converted(run: Run, base: Tensor, call: Call) -> Tensor:
    """A copy in another precision; the conversion saves nothing."""
    if run.grad_enabled is False:
        return Tensor()
    if base.leaf is None:
        return Tensor(base.node, base.requires)
    made = run.node(call.name, call.site)
    made.leaves = ((base.leaf, base.leaf.requires is True, call.receiver),)
    return Tensor(made, base.leaf.requires)


NUMBERS = frozenset("numpy item tolist norm mean sum abs std var max min square pow sqrt".split())
"""Methods of a gradient whose result is read only: nobody changes the gradient through it."""


@methods_of(Each)
def _each_method(
    run: Run,
    base: Each,
    call: Call,
) -> Value:
    if call.name == "requires_grad_":
        set_requires(run, base, base.leaves, call.args[0][0] if call.args else TRUE, call.site)
        return base
    if base.view == "grad":
        if call.name.endswith("_") and call.name not in ("detach_", "requires_grad_"):
            by = call.args[0][0] if call.args else NONE
            nothing = call.name in ("fill_", "mul_") and isinstance(by, Const) and by.value == 0
            change_gradients(run, base, call.site, emptied=nothing or call.name == "zero_")
        if call.name in NUMBERS:
            return Opaque(call.name)
        graph = [o for v, e in call.given for o in operands_of(v, e)]
        if call.name.endswith("_") or all(o.requires is False for o in graph):
            return Each(base.leaves, "grad")
    if call.name in ("detach_", "detach", "clone"):
        return base if base.view else Each(base.leaves, "data")
    if call.name in ("zero_grad",):
        zero_grad(run, base, base.leaves, call.site)
        return NONE
    if base.view == "data" and call.name.endswith("_") and not call.name.endswith("__"):
        return base
    if base.view == "" and call.name.endswith("_") and not call.name.endswith("__"):
        each_changed(run, base, call.site)
        return base
    table = overload(call.name, call.args, call.keywords)
    if table is not None and table.differentiable:
        # What is computed of data has the graph of the other operands.
        of: Value = base if base.view == "" else Tensor()
        return apply(run, table, [(of, call.receiver), *call.args], call.keywords, call.site)
    return Opaque(call.name)
