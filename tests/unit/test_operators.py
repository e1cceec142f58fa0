"""The operator table says what the installed torch does, and the facts that the model leans on hold."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradfix.autograd import operator_table
from gradfix.autograd.operators import (
    AUX,
    OUT,
    REST,
    Operator,
    attribute,
    augmented,
    binary,
    function,
    method,
    module,
    unary,
)
from gradfix.rules.edits import REPARAMETERIZED

ROOT = Path(__file__).resolve().parent.parent.parent


def row(found: Operator | None) -> Operator:
    assert found is not None
    return found


def operands(operator: Operator, *names: str) -> int:
    """The mask of the operands with these names."""
    return sum(1 << operator.operands.index(name) for name in names)


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location(
        "generate_operators", ROOT / "tools" / "generate_operators.py"
    )
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look their module up
    spec.loader.exec_module(loaded)
    return loaded


def test_the_table_is_what_torch_does(generator: Any) -> None:
    torch = pytest.importorskip("torch")
    if torch.__version__.partition("+")[0] != operator_table.TORCH:
        pytest.skip(f"the table was observed on torch {operator_table.TORCH}")
    rows = generator.table()
    differences = generator.differences(generator.committed(), rows)
    assert not differences, "python tools/generate_operators.py\n" + "\n".join(differences)
    assert generator.TABLE.read_text(encoding="utf-8") == generator.render(rows)


def test_the_table_needs_no_torch_and_little_time() -> None:
    code = (
        "import sys; from gradfix.autograd import operators; operators.function('torch.mul');"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
    assert len(operator_table.TABLE) < 150_000


@pytest.mark.parametrize(
    "name", ["sum", "mean", "add", "sub", "neg", "view", "reshape", "permute", "clone", "flatten"]
)
def test_what_saves_nothing(name: str) -> None:
    assert set(row(method(name)).possible.values()) == {0}


@pytest.mark.parametrize(
    "found",
    [
        function("torch.cat"),
        function("torch.stack"),
        function("torch.nn.functional.pad"),
        method("getitem.int_or_slice"),
        method("float"),
        method("copy_"),
        method("zero_"),
        method("add_"),
        binary("Add"),
        binary("Sub", "left"),
        augmented("Add", scalar=True),
        unary("USub"),
        attribute("T"),
        module("torch.nn.Flatten"),
        module("torch.nn.Identity"),
        module("torch.nn.Dropout#eval"),
        module("torch.nn.Upsample"),
    ],
    ids=str,
)
def test_more_that_saves_nothing(found: Operator | None) -> None:
    assert set(row(found).possible.values()) == {0}


@pytest.mark.parametrize("op", ["Mult", "Div"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_python_factor_is_saved_out_of_reach(op: str, side: Any) -> None:
    if (op, side) == ("Div", "left"):
        pytest.skip("2 / x is a reciprocal, which saves its result, times 2")
    assert row(binary(op, side)).saves(1) == AUX


def test_a_product_saves_the_other_factor() -> None:
    for found in (binary("Mult"), function("torch.matmul"), method("mul"), function("torch.einsum")):
        a, b = 1, 2
        assert [row(found).saves(mask) for mask in (a, b, a | b)] == [b, a, a | b]


def test_activations_save_their_result_or_their_input() -> None:
    for name in ("relu", "tanh", "sigmoid", "exp", "softmax"):
        assert row(function(f"torch.{name}")).saves(1) == OUT
    for name in ("leaky_relu", "gelu", "silu", "softplus", "elu"):
        assert row(function(f"torch.nn.functional.{name}")).saves(1) == 1
    for name in ("relu", "leaky_relu"):
        inplace = row(function(f"torch.nn.functional.{name}#inplace"))
        assert (inplace.result, inplace.saves(1)) == ("inplace", OUT)


def test_results_share_memory_or_not() -> None:
    expected = {
        "view": "view",
        "reshape": "either",
        "contiguous": "either",
        "detach": "detached",
        "clone": "new",
        "to": "either",
        "cuda": "either",
        "mul_": "inplace",
        "getitem.tensor": "new",
    }
    assert {name: row(method(name)).result for name in expected} == expected
    assert not row(method("detach")).differentiable


def test_the_shape_of_a_result() -> None:
    assert row(function("torch.mul")).outputs == "t"
    assert row(function("torch.chunk")).outputs == "[t]"
    assert row(module("torch.nn.LSTM")).outputs == "(t(tt))"
    assert row(method("item")).outputs == "v"
    largest = row(method("max.dim"))
    assert (largest.outputs, largest.fields) == ("(ti)", ("values", "indices"))
    assert largest.saves(1) == REST
    assert not row(function("torch.argmax")).differentiable


def test_where_operands_stand() -> None:
    gather = row(function("torch.gather"))
    assert (gather.operands, gather.positions) == (("input", "index"), (0, 2))
    assert gather.gradients == 0b01, "no gradient passes through an index"
    assert row(function("torch.cat")).sequences == 1
    lstm = row(module("torch.nn.LSTM"))
    assert lstm.operands == ("input", "h_0", "c_0", "weight")
    assert lstm.positions == (0, 1, 1, None)


def test_what_a_call_leaves_out_is_not_saved() -> None:
    lerp = row(function("torch.lerp"))
    assert lerp.saves(0b001) == 0b100, "the weight, where it is a tensor"
    assert lerp.saves(0b001, given=0b011) == 0
    clamp = row(method("clamp_"))
    assert clamp.saves(0b001, given=0b001) == AUX


def test_a_part_that_is_assigned_to_replaces_the_history_of_the_whole() -> None:
    setitem = row(method("setitem.int_or_slice"))
    value = operands(setitem, "value")
    assert setitem.result == "inplace"
    assert setitem.saves(value) == AUX, "a second backward raises though nothing visible is saved"


def test_gradients_do_not_pass_through_a_shape_or_a_dtype() -> None:
    assert row(method("expand_as")).gradients == 0b01
    assert row(method("type_as")).gradients == 0b01


def test_creation_is_known_and_the_unknown_is_none() -> None:
    for name in ("zeros", "ones", "randn", "tensor", "arange", "full", "randint", "from_numpy", "zeros_like"):
        assert not row(function(f"torch.{name}")).differentiable
    assert row(function("torch.zeros")).operands == ()
    assert function("torch.no_such_thing") is None
    assert module("torch.nn.NoSuchThing#eval") is None


def test_other_paths_to_the_same_thing() -> None:
    assert module("torch.nn.modules.linear.Linear") == module("torch.nn.Linear")
    assert function("torch.Tensor.mul") == method("mul")
    normal = "torch.distributions.normal.Normal.log_prob"
    assert function(normal) == function("torch.distributions.Normal.log_prob") is not None
    assert function("torch.distributions.kl_divergence.Normal") is not None
    assert module("torch.nn.ReLU#eval") == module("torch.nn.ReLU")


STEPPED = {
    "Linear(3, 4)": (5, 3),
    "Conv2d(3, 4, 2)": (2, 3, 5, 5),
    "ConvTranspose2d(3, 4, 2)": (2, 3, 5, 5),
    "BatchNorm1d(3)": (5, 3),
    "LayerNorm(3)": (5, 3),
    "GroupNorm(1, 3)": (5, 3),
    "InstanceNorm1d(3, affine=True)": (5, 3, 4),
    "PReLU()": (5, 3),
    "LSTM(3, 4)": (5, 2, 3),
    "LSTMCell(3, 4)": (5, 3),
    "GRUCell(3, 4)": (5, 3),
    "RNNCell(3, 4)": (5, 3),
    "GRU(3, 4)": (5, 2, 3),
    "TransformerEncoderLayer(4, 2, 8)": (5, 2, 4),
}


@pytest.mark.parametrize("input_requires_grad", [True, False])
@pytest.mark.parametrize("source", STEPPED)
def test_a_real_step_between_two_backwards(source: str, input_requires_grad: bool) -> None:
    """What the rows say of `weight`, seen with a real optimizer and no help of the generator."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = eval(f"torch.nn.{source}", {"torch": torch})
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    result = network(torch.randn(STEPPED[source], requires_grad=input_requires_grad))
    while isinstance(result, tuple):
        result = result[0]
    gradient = torch.randn_like(result)
    result.backward(gradient, retain_graph=True)
    optimizer.step()

    operator = row(module(f"torch.nn.{source.partition('(')[0]}"))
    weight = operands(operator, "weight")
    requires_grad = weight | (operands(operator, operator.operands[0]) if input_requires_grad else 0)
    if operator.saves(requires_grad) & weight:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.backward(gradient)
    elif not operator.may_save(requires_grad) & weight:
        result.backward(gradient)


def test_the_distributions_that_can_be_reparameterized_are_known() -> None:
    distributions = pytest.importorskip("torch").distributions
    classes = [c for c in vars(distributions).values() if inspect.isclass(c)]
    known = {
        f"distributions.{c.__name__}"
        for c in classes
        if issubclass(c, distributions.Distribution) and c.has_rsample is True
    }
    assert known == REPARAMETERIZED
