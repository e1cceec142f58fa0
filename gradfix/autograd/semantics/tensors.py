"""Methods and attributes of tensors, and of every parameter of a set at once."""

from __future__ import annotations

import ast

from gradfix.autograd import operators
from gradfix.autograd.arguments import Call
from gradfix.autograd.engine import backward, change_gradients, move_by_hand, zero_grad
from gradfix.autograd.graph import NonLeaf
from gradfix.autograd.parameters import set_requires
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.adjusting import note_clipping
from gradfix.autograd.semantics.attributes import TENSOR_DATA
from gradfix.autograd.semantics.dispatch import attributes_of, before_methods, method, other_methods
from gradfix.autograd.semantics.operations import (
    apply,
    graphs_of,
    note_unknown,
    operands_of,
    overload,
    unknown,
    write_to_all,
)
from gradfix.autograd.values import (
    FALSE,
    NONE,
    TRUE,
    Const,
    Function,
    Method,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    graphless_value,
)


@attributes_of(Tensor)
def _tensor_attribute(run: Run, value: Tensor, name: str, node: ast.AST) -> Value:
    if name in ("grad", "_grad"):
        run.grad_reads.append((run.next_serial(), value.leaf))
        if value.leaf is None and value.node is not None and isinstance(node, ast.Attribute):
            where = run.site_in_file(node), run.loops, run.next_serial()
            run.events.append(NonLeaf(*where, value.node, node.value, False))
        return SummaryTensor([value.leaf], "grad", True) if value.leaf is not None else Unknown("grad")
    if name == "data":
        # Writes through .data do not move the version counter: memory of its own to the model.
        if value.leaf is not None:
            return SummaryTensor([value.leaf], "data")
        cut = Tensor()
        cut.lost = run.graph_end(value, node)
        return cut
    if name == "requires_grad":
        return graphless_value("requires_grad") if value.requires is None else Const(value.requires)
    if name in TENSOR_DATA:
        return graphless_value(name)
    table = operators.attribute(name)
    if table is not None and isinstance(node, ast.Attribute):
        # What has the attribute is no argument: it has a name alone.
        return apply(run, table, [], {table.operands[0]: (value, node.value)}, node)
    return Method(value, name)


@attributes_of(SummaryTensor)
def _summary_attribute(run: Run, value: SummaryTensor, name: str, node: ast.AST) -> Value:
    if name in ("grad", "_grad", "data"):
        if name != "data":
            run.grad_reads += [(run.next_serial(), leaf) for leaf in value.leaves]
        itself = name != "data" and value.view == ""
        return SummaryTensor(
            value.leaves, "grad" if name != "data" or value.view == "grad" else "data", itself
        )
    if name == "requires_grad":
        flags = {leaf.requires for leaf in value.leaves}
        flag = flags.pop() if len(flags) == 1 else None
        return graphless_value(name) if flag is None else Const(flag)
    if name in TENSOR_DATA:
        return graphless_value(name)
    return Method(value, name)


SAME = frozenset(
    """to cuda cpu float double half bfloat16 type contiguous type_as pin_memory share_memory
    train eval apply share_memory_ compile to_empty""".split()
)
"""Methods whose result is, to autograd, the value itself."""


PLAIN = frozenset(
    """item tolist numpy size dim numel nelement element_size stride data_ptr is_contiguous get_device
    is_floating_point __len__ new_zeros new_ones new_empty new_tensor new_full new""".split()
)
"""Methods of a tensor whose result carries no graph."""


OWN = frozenset({"item", "tolist", "numpy"})
"""Those whose result is what the tensor is."""


@method(Tensor, "backward")
def _backward(run: Run, tensor: Tensor, call: Call) -> Value:
    backward(run, [(tensor, call.receiver)], Call(call.args[:], call.keywords, call.site))
    return NONE


@method(Tensor, *(SAME - {"double", "half", "bfloat16"}))
def _tensor_itself(run: Run, tensor: Tensor, call: Call) -> Value:
    if tensor.leaf is not None:
        run.remade.add(tensor.leaf)  # It is a copy if it has to be moved.
    return tensor


@method(Tensor, *PLAIN)
def _no_graph(run: Run, tensor: Tensor, call: Call) -> Value:
    number = graphless_value(call.name)
    if call.name in OWN:
        number.lost = run.graph_end(tensor, call.site)
    return number


@method(Tensor, "requires_grad_")
def _tensor_requires_grad(run: Run, tensor: Tensor, call: Call) -> Value:
    leaves = [tensor.leaf] if tensor.leaf else []
    set_requires(run, tensor, leaves, call.args[0][0] if call.args else TRUE, call.site)
    return tensor


@method(Tensor, "detach_")
def _detach_in_place(run: Run, tensor: Tensor, call: Call) -> Value:
    if tensor.leaf is not None:
        # A leaf stays what it is, and requires no gradient any more.
        set_requires(run, tensor, [tensor.leaf], FALSE, call.site)
    tensor.node, tensor.leaf, tensor.requires = None, None, False
    return tensor


@method(Tensor, "retain_grad")
def _retain_grad(run: Run, tensor: Tensor, call: Call) -> Value:
    if tensor.node is not None:
        run.retaining.add(tensor.node)
    return NONE


@method(Tensor, "register_hook")
def _register_hook(run: Run, tensor: Tensor, call: Call) -> Value:
    if tensor.node is not None:
        hook = call.args[0][0] if call.args else NONE
        if not isinstance(hook, Function) or run.relevance.differentiates(hook.node):
            tensor.node.maybe_freed = True
        run.hooked.add(tensor.node)
    return NONE


@method(Tensor, "unbind", "split", "chunk")
def _parts(run: Run, tensor: Tensor, call: Call) -> Value | None:
    table = operators.method(call.name)
    if table is None:
        return None
    count = call.args[0][0] if call.args else NONE
    result = apply(run, table, [(tensor, call.receiver), *call.args], call.keywords, call.site)
    if call.name == "chunk" and isinstance(count, Const) and isinstance(result, Sequence) and result.items:
        number = count.value if isinstance(count.value, int) else 0
        if 0 < number <= 16:
            return Sequence("tuple", result.items * number)
    return result


@other_methods(Tensor)
def _operation(run: Run, tensor: Tensor, call: Call) -> Value:
    operands = [(tensor, call.receiver), *call.args]
    table = overload(call.name, call.args, call.keywords)
    if table is not None:
        return apply(run, table, operands, call.keywords, call.site)
    note_unknown(run, f"torch.Tensor.{call.name}", operands, call.site)
    return unknown(run, operands, call.keywords, call.site, call.name)


@method(Tensor, "double", "half", "bfloat16")
def _converted(run: Run, base: Tensor, call: Call) -> Tensor:
    """A copy in another precision; the conversion saves nothing."""
    if run.grad_enabled is False:
        cut = Tensor()
        cut.lost = run.graph_end(base, call.site)
        return cut
    if base.leaf is None:
        copy = Tensor(base.node, base.requires)
        copy.lost = base.lost
        return copy
    made = run.node(call.name, call.site)
    made.leaves = ((base.leaf, base.leaf.requires is True, call.receiver),)
    return Tensor(made, base.leaf.requires)


NUMBERS = frozenset("numpy item tolist norm mean sum abs std var max min square pow sqrt".split())
"""Methods of a gradient whose result cannot be used to change the gradient."""


@before_methods(SummaryTensor)
def _gradient_method(run: Run, each: SummaryTensor, call: Call) -> Value | None:
    """What is done to gradients: they are clipped, or cleared by what makes them zero."""
    if each.view != "grad" or call.name == "requires_grad_":
        return None
    if call.name in ("clamp_", "clip_"):
        note_clipping(run, each.leaves, True, call.site)
    elif call.name.endswith("_") and call.name != "detach_":
        by = call.args[0][0] if call.args else None
        nothing = call.name in ("fill_", "mul_") and isinstance(by, Const) and by.value == 0
        change_gradients(run, each, call.site, emptied=nothing or call.name == "zero_")
    if call.name in NUMBERS:
        return graphless_value(call.name)
    graph = [o for v, e in call.given for o in operands_of(v, e)]
    if call.name.endswith("_") or all(o.requires is False for o in graph):
        return SummaryTensor(each.leaves, "grad")
    return None


@method(SummaryTensor, "requires_grad_")
def _all_require_grad(run: Run, each: SummaryTensor, call: Call) -> Value:
    set_requires(run, each, each.leaves, call.args[0][0] if call.args else TRUE, call.site)
    return each


@method(SummaryTensor, "detach_")
def _detach_all_in_place(run: Run, each: SummaryTensor, call: Call) -> Value:
    if not each.view:
        set_requires(run, each, each.leaves, FALSE, call.site)
    return each


@method(SummaryTensor, "detach", "clone")
def _data_of_all(run: Run, each: SummaryTensor, call: Call) -> Value:
    if call.name == "clone" and each.view == "data":
        return Tensor()  # A copy: who writes to it changes no parameter.
    return each if each.view else SummaryTensor(each.leaves, "data")


@method(SummaryTensor, "zero_grad")
def _clear_all(run: Run, each: SummaryTensor, call: Call) -> Value:
    zero_grad(run, each, each.leaves, call.site)
    return NONE


@other_methods(SummaryTensor)
def _operation_on_all(run: Run, each: SummaryTensor, call: Call) -> Value:
    in_place = call.name.endswith("_") and not call.name.endswith("__")
    if each.view == "data" and in_place:
        move_by_hand(run, each.leaves, call.site)
        if call.name in ("copy_", "lerp_", "set_"):
            for leaf in each.leaves:
                leaf.given.append(run.loops)
        return each
    table = overload(call.name, call.args, call.keywords)
    if each.view == "" and in_place:
        values = [value for value, _ in call.given]
        known = table is not None and table.result == "inplace"
        write_to_all(run, each, call.site, sources=graphs_of(*values), known=known)
        return each
    if table is not None and table.differentiable:
        # What is computed of data has the graph of the other operands.
        of: Value = each if each.view == "" else Tensor()
        return apply(run, table, [(of, call.receiver), *call.args], call.keywords, call.site)
    return Unknown(call.name)
